//===- CombineFacts.cpp - What is asked about a combine -------------------===//

#include "attn/Planner/Facts/CombineFacts.h"
#include "attn/Planner/Facts/Captures.h"
#include "attn/Problem/ScaleTiles.h"

using namespace mlir;
using namespace mlir::attn;

FailureOr<CombineFacts> CombineFacts::get(CombineOp op) {
  CombineFacts facts;
  facts.op = op;
  if (FloatAttr scale = op.getOutScaleAttr())
    facts.outScale = scale.getValueAsDouble();
  facts.groupColumns = op.getOutGroup().value_or(0);
  for (auto [member, name, value, written] :
       {std::tuple(&facts.partialO, "partial_o", Value(op.getPartialO()),
                   false),
        std::tuple(&facts.partialLse, "partial_lse", Value(op.getPartialLse()),
                   false),
        std::tuple(&facts.partialScales, "partial_scales",
                   Value(op.getPartialScales()), false),
        std::tuple(&facts.o, "o", Value(op.getO()), true),
        std::tuple(&facts.lse, "lse", Value(op.getLse()), true),
        std::tuple(&facts.oScales, "o_scales", Value(op.getOScales()), true),
        std::tuple(&facts.amax, "amax", op.getAmaxOutput(), true)}) {
    FailureOr<TensorFacts> tensor = TensorFacts::get(op, name, value, written);
    if (failed(tensor))
      return failure();
    *member = *tensor;
  }
  // Results join the number that is there.
  facts.amax.reread = true;
  const TensorFacts *po = &facts.partialO, *pl = &facts.partialLse;
  const TensorFacts *o = &facts.o, *lse = &facts.lse;
  // A matrix of scales has tokens and heads in its dimensions.
  const TensorFacts none;
  const TensorFacts *scales =
      isInScaleTiles(facts.oScales.shape) ? &none : &facts.oScales;
  facts.splits = unifyExtents({{po, 0}, {pl, 0}});
  facts.batch = unifyExtents({{po, 1}, {pl, 1}, {o, 0}, {lse, 0}, {scales, 0}});
  facts.heads = unifyExtents({{po, 2}, {pl, 2}, {o, 1}, {lse, 1}, {scales, 1}});
  facts.queries =
      unifyExtents({{po, 3}, {pl, 3}, {o, 2}, {lse, 2}, {scales, 2}});
  facts.valueDim = facts.hasFloat4Results() ? unifyExtents({{po, 4}})
                                            : unifyExtents({{po, 4}, {o, 3}});
  facts.outMod = op.getOutMod();
  if (failed(collectCaptures(op, facts.captures, facts.scalars)))
    return failure();
  return facts;
}
