//===- ProofAttr.cpp - The verdict of the check in the IR -----------------===//

#include "attn/Dialect/Attn/IR/ProofAttr.h"
#include "attn/Support/Assumption.h"
#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace mlir::attn;

static StringRef nameOf(SyncVerdict::Kind kind) {
  switch (kind) {
  case SyncVerdict::Kind::Proved:
    return "proved";
  case SyncVerdict::Kind::Bounded:
    return "bounded";
  case SyncVerdict::Kind::Unchecked:
    return "unchecked";
  }
  llvm_unreachable("all kinds handled");
}

DictionaryAttr attn::getProofAttr(MLIRContext *context,
                                  const SyncVerdict &verdict) {
  Builder builder(context);
  NamedAttrList entries;
  entries.set("verdict", builder.getStringAttr(nameOf(verdict.kind)));
  if (!verdict.profile.empty()) {
    SmallVector<Attribute> assumptions;
    for (unsigned number = 1; number <= numAssumptions; ++number)
      if (verdict.assumptions >> number & 1)
        assumptions.push_back(builder.getStringAttr("A" + Twine(number)));
    entries.set("profile", builder.getStringAttr(verdict.profile));
    entries.set("assumptions", builder.getArrayAttr(assumptions));
  }
  if (verdict.kind == SyncVerdict::Kind::Bounded)
    entries.set("tiles", builder.getI64IntegerAttr(verdict.tiles));
  if (verdict.kind != SyncVerdict::Kind::Proved)
    entries.set("reason", builder.getStringAttr(verdict.reason));
  return entries.getDictionary(context);
}

std::optional<SyncVerdict> attn::readProofAttr(Attribute attribute) {
  auto entries = dyn_cast<DictionaryAttr>(attribute);
  if (!entries)
    return std::nullopt;
  auto textOf = [&](StringRef name) {
    auto text = entries.getAs<StringAttr>(name);
    return text ? text.getValue() : StringRef();
  };
  SyncVerdict verdict;
  for (auto kind : {SyncVerdict::Kind::Proved, SyncVerdict::Kind::Bounded})
    if (textOf("verdict") == nameOf(kind))
      verdict.kind = kind;
  verdict.profile = textOf("profile").str();
  verdict.reason = textOf("reason").str();
  if (auto tiles = entries.getAs<IntegerAttr>("tiles"))
    verdict.tiles = tiles.getValue().getLimitedValue(INT64_MAX);
  if (auto assumptions = entries.getAs<ArrayAttr>("assumptions"))
    for (Attribute each : assumptions)
      for (unsigned number = 1; number <= numAssumptions; ++number)
        if (auto text = dyn_cast<StringAttr>(each);
            text && text.getValue() == ("A" + Twine(number)).str())
          verdict.assumptions |= 1u << number;
  // What it says is all that there is, and has the form that it is given.
  bool isFollowed = verdict.kind != SyncVerdict::Kind::Unchecked;
  bool isProfile = verdict.profile == "isa" || verdict.profile == "hw";
  bool hasReason = !verdict.reason.empty();
  if (isFollowed != isProfile ||
      hasReason == (verdict.kind == SyncVerdict::Kind::Proved) ||
      getProofAttr(attribute.getContext(), verdict) != entries)
    return std::nullopt;
  return verdict;
}
