//===- AssembledAttr.cpp - What ptxas said of plans, in the IR ------------===//

#include "attn/Dialect/Attn/IR/AssembledAttr.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::attn;

DictionaryAttr attn::getAssembledAttr(MLIRContext *context,
                                      const AssembledPlan &assembled) {
  Builder builder(context);
  NamedAttrList entries;
  entries.set("ptxas", builder.getStringAttr(assembled.ptxas));
  entries.set("skipped", builder.getI64IntegerAttr(assembled.skipped));
  return entries.getDictionary(context);
}

std::optional<AssembledPlan> attn::readAssembledAttr(Attribute attribute) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  if (!entries)
    return std::nullopt;
  auto ptxas = entries.getAs<StringAttr>("ptxas");
  auto skipped = entries.getAs<IntegerAttr>("skipped");
  if (!ptxas || ptxas.empty() || !skipped || !skipped.getType().isInteger(64) ||
      skipped.getInt() < 0 || entries.size() != 2)
    return std::nullopt;
  return AssembledPlan{ptxas.str(), skipped.getInt()};
}
