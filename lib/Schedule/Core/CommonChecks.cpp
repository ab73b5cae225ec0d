//===- CommonChecks.cpp - What schedules refuse alike ---------------------===//

#include "CommonChecks.h"
#include "OptionError.h"
#include "WidthError.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

char WidthError::ID;
char OptionError::ID;

llvm::Error attn::makeUnsupported(llvm::StringRef schedule,
                                  const llvm::Twine &what) {
  return llvm::createStringError("schedule '" + schedule +
                                 "' does not support " + what);
}

llvm::Error attn::makeLacking(llvm::StringRef schedule,
                              const llvm::Twine &what) {
  return llvm::make_error<OptionError>(
      llvm::toString(makeUnsupported(schedule, what)));
}

llvm::Error attn::checkCommon(llvm::StringRef schedule,
                              const ProblemFacts &facts, const Parts &parts) {
  auto unsupported = [&](const llvm::Twine &what) {
    return makeUnsupported(schedule, what);
  };
  auto lacking = [&](const llvm::Twine &what) {
    return makeLacking(schedule, what);
  };
  if (facts.isPaged() && !parts.pages)
    return lacking("paged keys");
  if (facts.isPaged() && facts.pageSize > kPageLimit)
    return unsupported(llvm::formatv("pages of {0} keys, expected at most {1}",
                                     facts.pageSize, kPageLimit));
  if (facts.kvLengths && !parts.lengths)
    return lacking("lengths of the keys ('kv_lengths')");
  if (facts.hasAddedKeys() && !parts.addedKeys)
    return lacking("keys beside those of k ('added')");
  if (facts.addedPageSize > kPageLimit)
    return unsupported(llvm::formatv("added pages of {0} keys, expected at "
                                     "most {1}",
                                     facts.addedPageSize, kPageLimit));
  if (facts.hasBlockLists() && !parts.blockLists)
    return lacking("lists of blocks of keys ('blocks')");
  if (facts.kvSplits && !parts.partialResults)
    return lacking("split keys with partial results");
  if (facts.initLse && !parts.init)
    return lacking("a state to go on from ('init')");
  if (facts.isLatent() && !parts.latent)
    return lacking("the absorbed latent form ('rope_dim')");
  auto typeName = [](Type type) {
    std::string text;
    llvm::raw_string_ostream(text) << type;
    return text;
  };
  if (facts.isNarrow() && !parts.narrow)
    return lacking("operands of type " + typeName(facts.elementType) +
                   ", expected f16 or bf16");
  if (facts.isNarrow() && facts.rowState)
    return unsupported("sums of rows of 8-bit operands as results "
                       "('row_state')");
  if (facts.hasNarrowKeys() && !parts.narrowKeys)
    return lacking("keys of type " + typeName(facts.keyType) +
                   " beside queries of type " + typeName(facts.elementType));
  if (facts.kScales && !parts.rowScales)
    return lacking("scales of the rows of keys ('scales')");
  if (facts.hasResultScales() && !parts.resultScales)
    return lacking("scales of the output ('out_scales')");
  if (llvm::Error error = checkScaleColumns(schedule, facts, kDimStep))
    return error;
  for (auto [name, dim] : {std::pair("head dimension", facts.headDim),
                           std::pair("value dimension", facts.valueDim)})
    if (dim < kDimStep || dim > parts.mostColumns || dim % kDimStep != 0) {
      llvm::Error error = unsupported(
          llvm::formatv("a {0} of {1}, expected a multiple of {2} up to {3}",
                        name, dim, kDimStep, parts.mostColumns));
      if (dim <= parts.mostColumns || dim % kDimStep != 0)
        return error;
      return llvm::make_error<WidthError>(llvm::toString(std::move(error)),
                                          parts.mostColumns);
    }
  for (auto [name, length] :
       {std::pair("queries", facts.queries), std::pair("keys", facts.keys)})
    if (!ShapedType::isDynamic(length) && length >= kLengthLimit)
      return unsupported(llvm::formatv("{0} {1}, expected fewer than {2}",
                                       length, name, kLengthLimit));
  return llvm::Error::success();
}

llvm::Error attn::checkPolicy(llvm::StringRef schedule, SoftmaxPolicy policy) {
  if (policy != SoftmaxPolicy::Lagged)
    return llvm::Error::success();
  return makeUnsupported(
      schedule,
      llvm::formatv(
          "the softmax policy '{0}', expected 'exact', 'threshold' or "
          "'optimistic'",
          stringifySoftmaxPolicy(policy)));
}

llvm::Error attn::checkExactMaxima(const ProblemFacts &facts,
                                   SoftmaxPolicy policy) {
  if (!facts.needsExactMaxima() || policy == SoftmaxPolicy::Exact)
    return llvm::Error::success();
  return llvm::createStringError(llvm::formatv(
      "expected softmax = exact with {0}, got {1}",
      facts.rowState ? "maxima of rows as results ('row_state')"
                     : "runs of a fixed length, whose rows depend on no others",
      stringifySoftmaxPolicy(policy)));
}

llvm::Error attn::checkPackedHeads(const ProblemFacts &facts,
                                   int64_t groupHeads) {
  auto name = [](int64_t extent) {
    return ShapedType::isDynamic(extent) ? std::string("a dynamic number of")
                                         : std::to_string(extent);
  };
  int64_t group = facts.getGroup();
  if (ShapedType::isDynamic(group) || group == 1 || group > kPackedHeadsLimit)
    return llvm::createStringError(llvm::formatv(
        "expected groups of 2 to {0} heads for pack_heads, got {1} query heads "
        "and {2} key heads",
        kPackedHeadsLimit, name(facts.heads), name(facts.kvHeads)));
  if (facts.hasBlockLists())
    return llvm::createStringError(
        "expected pack_heads = false with lists of blocks, got true");
  if (groupHeads != 0)
    return llvm::createStringError(llvm::formatv(
        "expected group_heads to be 0 with pack_heads, got {0}", groupHeads));
  // Rows are numbered in 32 bits.
  if (!ShapedType::isDynamic(facts.queries) &&
      facts.queries >= kLengthLimit / group)
    return llvm::createStringError(llvm::formatv(
        "expected fewer than {0} rows with pack_heads, got {1} queries of {2} "
        "heads",
        kLengthLimit, facts.queries, group));
  return llvm::Error::success();
}

llvm::Error attn::checkBlockLists(const ProblemFacts &facts, int64_t rows,
                                  int64_t blockN) {
  if (!facts.hasBlockLists())
    return llvm::Error::success();
  if (facts.blockRows % rows != 0)
    return llvm::createStringError(
        llvm::formatv("expected block_rows to be a multiple of the {0} rows "
                      "that walk blocks together, got {1}",
                      rows, facts.blockRows));
  if (facts.blockKeys % blockN != 0)
    return llvm::createStringError(
        llvm::formatv("expected block_keys to be a multiple of block_n, {0}, "
                      "got {1}",
                      blockN, facts.blockKeys));
  return llvm::Error::success();
}

llvm::Error attn::checkPackedRuns(llvm::StringRef schedule,
                                  const ProblemFacts &facts) {
  if (!facts.kvSplits || !facts.cuSeqlensQ)
    return llvm::Error::success();
  return makeUnsupported(schedule,
                         "split keys of packed sequences, since attn.combine "
                         "would write rows that no sequence owns");
}

llvm::SmallVector<PlanParameter>
attn::dropHeadGroups(llvm::ArrayRef<PlanParameter> parameters) {
  llvm::SmallVector<PlanParameter> all(parameters);
  bool sets = false, drops = false;
  for (PlanParameter parameter : parameters) {
    sets |= parameter.name == "group_heads";
    drops |= parameter.name == "order" &&
             parameter.value != stringifyTileOrder(TileOrder::LongestFirst);
    drops |= parameter.name == "pack_heads" && parameter.value == "true";
  }
  if (drops && !sets)
    all.push_back({"group_heads", "0"});
  return all;
}

llvm::Error attn::checkSharedBytes(const ResourceSum &shared,
                                   const TargetRow &target) {
  if (shared.getTotal() <= target.sharedBytesPerCTA)
    return llvm::Error::success();
  return llvm::createStringError(
      llvm::formatv("does not fit: shared memory {0} exceeds {1} on {2}",
                    shared.str(), target.sharedBytesPerCTA, target.chip));
}
