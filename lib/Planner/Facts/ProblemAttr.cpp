//===- ProblemAttr.cpp - The problem in a launch record -------------------===//

#include "attn/Planner/Facts/ProblemFacts.h"
#include "attn/Problem/RecordedFactors.h"

using namespace mlir;
using namespace mlir::attn;

static DictionaryAttr buildMask(Builder &builder, MaskAttr mask) {
  NamedAttrList fields;
  auto add = [&](StringRef name, StringRef value) {
    fields.append(name, builder.getStringAttr(value));
  };
  add("kind", stringifyEnum(mask.getKind()));
  if (mask.getKind() != MaskKind::None)
    add("align", stringifyEnum(mask.getAlign()));
  if (mask.getKind() == MaskKind::Window) {
    fields.append("left", builder.getI64IntegerAttr(mask.getLeft()));
    fields.append("right", builder.getI64IntegerAttr(mask.getRight()));
  }
  return fields.getDictionary(builder.getContext());
}

DictionaryAttr attn::buildProblemAttr(Builder &builder,
                                      const ProblemFacts &facts) {
  NamedAttrList fields;
  fields.append("mask", buildMask(builder, facts.getStatedMask()));
  fields.append("max_seqlen_q",
                builder.getI64IntegerAttr(facts.varlen ? facts.queries : 0));
  if (facts.hasBlockLists()) {
    fields.append("block_rows", builder.getI64IntegerAttr(facts.blockRows));
    fields.append("block_keys", builder.getI64IntegerAttr(facts.blockKeys));
  }
  if (facts.hasResultScales())
    fields.append("out_group", builder.getI64IntegerAttr(facts.outGroup));
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (recordsFactor(NAME, facts.ID))                                           \
    fields.append(NAME, builder.getF64FloatAttr(facts.ID));
#define ATTN_RECORDED_EXTENT(FACT, NAME, ID, RECORD)                           \
  fields.append(RECORD, builder.getI64IntegerAttr(facts.FACT));
#define ATTN_FEATURE(ID, NAME, GIVEN, RECORD)                                  \
  ATTN_IF_##RECORD(fields.append(NAME, builder.getBoolAttr(GIVEN));)
#include "attn/Problem/Options.def"
  return fields.getDictionary(builder.getContext());
}
