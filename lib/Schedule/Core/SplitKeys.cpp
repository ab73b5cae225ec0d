//===- SplitKeys.cpp - Runs of keys, merged by a second kernel ------------===//

#include "attn/Schedule/Core/SplitKeys.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/ScopedPrinter.h"

using namespace mlir;
using namespace mlir::attn;

/// Allocates what o and lse become for each run: f32, with one more dimension
/// in front.
static std::pair<Value, Value>
allocatePartials(OpBuilder &builder, Location loc, Value o, int64_t splits) {
  SmallVector<int64_t> shape = {splits};
  llvm::append_range(shape, cast<MemRefType>(o.getType()).getShape());
  SmallVector<Value> extents;
  for (auto [dim, extent] : llvm::enumerate(ArrayRef(shape).drop_front()))
    if (ShapedType::isDynamic(extent))
      extents.push_back(memref::DimOp::create(builder, loc, o, dim));
  // The head dimension, which lse does not have, is static.
  auto allocate = [&](ArrayRef<int64_t> shape) -> Value {
    return memref::AllocOp::create(
        builder, loc, MemRefType::get(shape, builder.getF32Type()), extents);
  };
  Value partialO = allocate(shape);
  return {partialO, allocate(ArrayRef(shape).drop_back())};
}

CombineOp attn::splitKeys(AttentionOp op, int64_t splits) {
  OpBuilder builder(op);
  Value o = op.getO(), lse = op.getLse();
  auto [partialO, partialLse] =
      allocatePartials(builder, op.getLoc(), o, splits);
  op.getOMutable().assign(partialO);
  op.getLseMutable().assign(partialLse);
  op.setKvSplitsAttr(builder.getI64IntegerAttr(splits));
  builder.setInsertionPointAfter(op);
  return CombineOp::create(builder, op.getLoc(), TypeRange(), partialO,
                           partialLse, o, lse, /*kernel=*/StringAttr(),
                           /*plan=*/PlanAttrInterface());
}

/// Takes back what splitKeys did.
static void joinKeys(AttentionOp op, CombineOp combine) {
  Value partialO = op.getO(), partialLse = op.getLse();
  op.getOMutable().assign(combine.getO());
  if (Value lse = combine.getLse())
    op.getLseMutable().assign(lse);
  else
    op.getLseMutable().clear();
  op.removeKvSplitsAttr();
  combine.erase();
  for (Value partial : {partialO, partialLse})
    partial.getDefiningOp()->erase();
}

//===----------------------------------------------------------------------===//
// Which numbers of runs
//===----------------------------------------------------------------------===//

/// Keys of the shortest run that is worth a CTA.
static constexpr int64_t kShortestRun = 256;
/// Most runs: a thread of attn.combine walks all of a row.
static constexpr int64_t kMostRuns = 128;

SmallVector<int64_t> attn::listSplits(int64_t tiles, int64_t keys,
                                      const TargetRow &target) {
  int64_t most = std::min(kMostRuns, keys / kShortestRun);
  SmallVector<int64_t> all = {2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128};
  // Those that fill all SMs with one, two, ... CTAs.
  for (int64_t ctas : {1, 2, 3, 4, 6, 8})
    all.push_back(ctas * target.smCount / std::max<int64_t>(1, tiles));
  llvm::sort(all);
  all.erase(llvm::unique(all), all.end());
  llvm::erase_if(all,
                 [&](int64_t splits) { return splits < 2 || splits > most; });
  return all;
}

bool attn::maySplitKeys(const ProblemFacts &facts) {
  bool isKnown = llvm::none_of(
      ArrayRef({facts.batch, facts.heads, facts.queries, facts.keys}),
      ShapedType::isDynamic);
  return facts.isServed() && isKnown && facts.kvSplits == 0 &&
         !facts.cuSeqlensQ &&
         (facts.outType.isF16() || facts.outType.isBF16() ||
          facts.outType.isF32());
}

//===----------------------------------------------------------------------===//
// What they take
//===----------------------------------------------------------------------===//

/// Microseconds of a second kernel behind a first one in a CUDA graph, and more
/// for each run that its threads walk: 2.5 to 4.8 were seen on an H200 for 4 to
/// 132 runs.
static constexpr double kSecondKernel = 2.2;
static constexpr double kMergedRun = 0.02;

/// What a number of runs has to save of the time of one run, so that a second
/// kernel and partial results are worth it within the error of estimates.
static constexpr double kWorthwhile = 0.93;
/// Fewer runs are taken where they are that close to the fastest ones.
static constexpr double kAsFast = 1.02;

double attn::estimateMerge(int64_t splits) {
  return kSecondKernel + kMergedRun * splits;
}

FailureOr<SplitChoice> attn::chooseSplits(AttentionOp op,
                                          const PlanCandidate &whole,
                                          const ProblemFacts &facts,
                                          const TargetRow &target,
                                          ArrayRef<const Schedule *> schedules,
                                          ArrayRef<PlanParameter> parameters) {
  SplitChoice choice;
  choice.candidates.push_back(
      {/*splits=*/1, whole.estimate.microseconds, /*merge=*/0, whole});
  int64_t tiles = std::max<int64_t>(1, whole.estimate.tiles);
  for (int64_t splits : listSplits(tiles, facts.keys, target)) {
    CombineOp combine = splitKeys(op, splits);
    FailureOr<ProblemFacts> split = ProblemFacts::get(op);
    if (succeeded(split)) {
      PlanCandidates plans =
          collectCandidates(*split, target, schedules, parameters);
      if (!plans.plans.empty()) {
        PlanCandidate &first = plans.plans.front();
        choice.candidates.push_back({splits, first.estimate.microseconds,
                                     estimateMerge(splits), first});
      }
    }
    joinKeys(op, combine);
    if (failed(split))
      return failure();
  }
  ArrayRef<SplitCandidate> more = ArrayRef(choice.candidates).drop_front();
  if (more.empty())
    return choice;
  double best = std::numeric_limits<double>::infinity();
  for (const SplitCandidate &each : more)
    best = std::min(best, each.getTotal());
  if (best > kWorthwhile * choice.candidates.front().getTotal())
    return choice;
  const auto *taken = llvm::find_if(more, [&](const SplitCandidate &each) {
    return each.getTotal() <= kAsFast * best;
  });
  choice.best = taken - choice.candidates.begin();
  return choice;
}

std::string attn::formatSplitTable(const SplitChoice &choice) {
  std::string text =
      "  runs   tiles   waves  us of runs  us of merging      us";
  for (const SplitCandidate &each : choice.candidates)
    text += llvm::formatv("\n{0,6}{1,8}{2,8:f2}{3,12:f1}{4,15:f1}{5,8:f1}",
                          each.splits, each.candidate.estimate.tiles,
                          each.candidate.estimate.waves, each.microseconds,
                          each.mergeMicroseconds, each.getTotal());
  return text;
}
