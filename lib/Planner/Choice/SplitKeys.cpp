//===- SplitKeys.cpp - Into how many runs keys are cut --------------------===//

#include "attn/Planner/Choice/SplitKeys.h"
#include "../Facts/BlockCount.h"
#include "EqualRuns.h"
#include "SecondKernel.h"
#include "attn/Planner/Choice/UnevenTime.h"
#include "attn/Planner/Facts/Factor.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

int64_t attn::getShortestRun(int64_t queries) {
  static constexpr Factor kKeysOfQuery{"splits.keys_of_query"};
  // There may be no queries.
  return std::llround(std::clamp<double>(kKeysOfQuery * double(queries), 1,
                                         double(kShortestRun)));
}

/// Most runs: a thread of attn.combine walks all of a row.
static constexpr int64_t kMostRuns = 128;

SmallVector<int64_t> attn::listSplits(int64_t tiles, int64_t keys,
                                      int64_t queries,
                                      const TargetRow &target) {
  if (double(keys) < 2 * kShortestRun)
    return {};
  int64_t most = std::min(kMostRuns, keys / getShortestRun(queries));
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

/// Most queries whose dense keys may be cut. Those of a few are, however many
/// tiles there are; those of more are where an SM has few tiles.
static constexpr int64_t kMostCut = 256;
static constexpr Factor kDecodedQueries{"splits.decoded_queries"};
static constexpr Factor kFewTiles{"splits.few_tiles"};

bool attn::maySplitKeys(const ProblemFacts &facts) {
  bool isKnown = llvm::none_of(
      ArrayRef({facts.batch, facts.heads, facts.queries, facts.keys}),
      ShapedType::isDynamic);
  // A batch without sequences has nothing to cut.
  return isKnown && (facts.isServed() || facts.queries <= kMostCut) &&
         facts.batch > 0 && facts.kvSplits == 0 && !facts.cuSeqlensQ &&
         !facts.hasBlockLists() && mayMergeScales(facts);
}

//===----------------------------------------------------------------------===//
// What they take
//===----------------------------------------------------------------------===//

/// What runs may take more than the fastest ones where lengths are even, so
/// that they are faster where these differ.
static constexpr Factor kEvenLoss{"splits.even_loss"};
/// Plans that are as fast as each other within the error of estimates.
static constexpr Factor kSamePlan{"splits.same_plan"};
/// What another one of these has to take where lengths differ to be better.
static constexpr Factor kBetterPlan{"splits.better_plan"};
/// Estimates that are one but for their rounding.
static constexpr Factor kSameTime{"splits.same_time"};
static constexpr Factor kSameUneven{"splits.same_uneven"};

static constexpr llvm::StringLiteral kCtasPerSM = "ctas_per_sm";
static constexpr llvm::StringLiteral kWarps = "warps";
static constexpr llvm::StringLiteral kCtaHeads = "cta_heads";
/// Warps of an SM where runs are dealt, the most runs of a sequence, whose LSEs
/// the merge looks at, and sequences of the smallest batch.
static constexpr Factor kWarpsPerSM{"splits.warps_per_sm"},
    kMostDealt{"splits.most_dealt"}, kFewestDealtTo{"splits.fewest_dealt_to"};
static int64_t getWarpsPerSM() { return std::llround(double(kWarpsPerSM)); }

/// How many runs to deal where an SM holds `ctas` CTAs of `tiles` tiles, so
/// that nearly all run at once; none where that leaves few to deal.
static DealtRuns countDealt(const UnevenBatch &batch, int64_t tiles,
                            int64_t queries, int64_t ctas,
                            const TargetRow &target) {
  int64_t places =
      ctas * target.smCount / std::max<int64_t>(1, tiles / batch.sequences);
  if (double(batch.sequences) < kFewestDealtTo ||
      batch.sequences > DealRunOp::kMostSequences ||
      places < 2 * batch.sequences)
    return {};
  // A sequence has half a run to spare, more or less.
  int64_t total = places + batch.sequences / 2;
  int64_t most =
      std::min({int64_t(std::llround(double(kMostDealt))),
                total - batch.sequences, batch.seen / getShortestRun(queries)});
  return most < 2 ? DealtRuns() : DealtRuns{total, most};
}

/// True if somebody has said that lengths will differ, and how.
static bool expectsUneven(const UnevenBatch &batch) {
  return batch.sequences > 1 && !batch.expected.empty() &&
         !llvm::all_equal(batch.expected);
}

/// The plan of a number of runs where lengths are known to differ: the fastest
/// one with these.
static SplitCandidate pickExpected(const PlanCandidates &plans,
                                   const PlanEstimate &whole, int64_t splits,
                                   const UnevenBatch &batch,
                                   const TargetRow &target) {
  // Plans come by what they take where all lengths are the mean.
  constexpr int64_t kMostPlans = 48;
  SplitCandidate best;
  double merge = estimateMerge(splits), least = 0;
  for (const PlanCandidate &each :
       ArrayRef(plans.plans).take_front(kMostPlans)) {
    if (each.spills)
      break;
    double uneven =
        merge + estimateUneven(whole, each.estimate, splits, batch, target);
    double time = each.estimate.margin * uneven;
    if (best.candidate.plan && time >= kBetterPlan * least)
      continue;
    least = time;
    best = {splits,
            /*dealtRuns=*/0, each, merge, merge + each.estimate.microseconds,
            uneven};
  }
  return best;
}

/// The plan of a number of runs: the fastest one, and among those that are as
/// fast the one that takes lengths that differ best.
static SplitCandidate pickPlan(const PlanCandidates &plans,
                               const PlanEstimate &whole, int64_t splits,
                               const UnevenBatch &batch,
                               const TargetRow &target, DealtRuns dealt = {}) {
  if (expectsUneven(batch) && !dealt.total)
    return pickExpected(plans, whole, splits, batch, target);
  SplitCandidate best;
  double fastest = plans.plans.front().estimate.microseconds;
  for (const PlanCandidate &each : plans.plans) {
    if (each.spills || (each.estimate.microseconds > kSamePlan * fastest &&
                        best.candidate.plan))
      break;
    int64_t runs = splits;
    if (dealt.total)
      runs = std::max<int64_t>(1, each.estimate.tiles /
                                      std::max<int64_t>(1, whole.tiles));
    double merge = estimateMerge(runs);
    double uneven =
        merge + (batch.sequences ? estimateUneven(whole, each.estimate, runs,
                                                  batch, target, dealt)
                                 : each.estimate.microseconds);
    // Of plans that are as fast the one with small blocks leaves fewer warps
    // without one where a run is short.
    bool isFiner = best.candidate.plan &&
                   each.estimate.blocks > best.candidate.estimate.blocks &&
                   merge + each.estimate.microseconds <=
                       kSameTime * best.evenMicroseconds &&
                   uneven <= kSameTime * best.unevenMicroseconds;
    if (best.candidate.plan && !isFiner &&
        uneven >= kBetterPlan * best.unevenMicroseconds)
      continue;
    best = {
        splits, dealt.total, each, merge, each.estimate.microseconds + merge,
        uneven};
    // Lengths that differ are timed by what is read.
    if (batch.sequences <= 1 || !each.estimate.isBoundByDram())
      break;
  }
  return best;
}

/// Lets the faster way merge the runs of `picked`, which is one of `plans`.
static void setCombine(SplitCandidate &picked, const ProblemFacts &facts,
                       const TargetRow &target,
                       ArrayRef<PlanParameter> parameters,
                       PlanCandidates &plans) {
  PlanAttrInterface plan = picked.candidate.plan;
  int64_t splits = facts.kvSplits;
  picked.candidate =
      chooseCombine(facts, splits, target, picked.candidate, parameters);
  for (PlanCandidate &each : plans.plans)
    if (each.plan == plan)
      each = picked.candidate;
  double merge = estimateMerge(facts, splits, picked.candidate);
  picked.evenMicroseconds += merge - picked.mergeMicroseconds;
  picked.unevenMicroseconds += merge - picked.mergeMicroseconds;
  picked.mergeMicroseconds = merge;
}

/// Whether runs put a CTA on nearly every SM.
static bool fillsSMs(const SplitCandidate &each, const TargetRow &target) {
  const PlanEstimate &estimate = each.candidate.estimate;
  return 10 * estimate.tiles >= 9 * int64_t(target.smCount) * estimate.ctaTiles;
}

/// The number of runs to take where lengths are known to differ. One run needs
/// no second kernel.
static size_t pickExpected(ArrayRef<SplitCandidate> all) {
  double best = all.front().unevenMicroseconds;
  for (const SplitCandidate &each : all)
    best = std::min(best, each.unevenMicroseconds);
  const auto *found = llvm::find_if(all, [&](const SplitCandidate &each) {
    return each.unevenMicroseconds <=
           best * (each.splits == 1 ? 1 / kSplitWorthwhile : kSameUneven);
  });
  return found - all.begin();
}

/// The number of runs to take. One sequence has whatever length it has; of
/// several the lengths may differ.
static size_t pickSplits(ArrayRef<SplitCandidate> all, const UnevenBatch &batch,
                         const TargetRow &target) {
  bool hasSeveral = batch.sequences > 1;
  if (expectsUneven(batch))
    return pickExpected(all);
  double fastest = all.front().evenMicroseconds;
  for (const SplitCandidate &each : all)
    fastest = std::min(fastest, each.evenMicroseconds);
  SmallVector<size_t> near;
  for (auto [index, each] : llvm::enumerate(all))
    if (each.evenMicroseconds <=
        fastest * (each.splits == 1 ? 1 / kSplitWorthwhile : kEvenLoss))
      near.push_back(index);
  if (!hasSeveral) {
    if (all[near.front()].splits == 1)
      return near.front();
    const auto *full = llvm::find_if(
        near, [&](size_t index) { return fillsSMs(all[index], target); });
    return full == near.end() ? near.front() : *full;
  }
  double best = all[near.front()].unevenMicroseconds;
  for (size_t index : near)
    best = std::min(best, all[index].unevenMicroseconds);
  return *llvm::find_if(near, [&](size_t index) {
    return all[index].unevenMicroseconds <= kSameUneven * best;
  });
}

/// Heads that a CTA of a plan has.
static int64_t getCtaHeads(PlanAttrInterface plan) {
  int64_t heads = 1;
  for (const PlanParameterInfo &each : plan.listParameters())
    if (each.name == kCtaHeads &&
        llvm::StringRef(each.value).getAsInteger(10, heads))
      return 1;
  return heads;
}

/// Adds what deals runs by the lengths of sequences, and takes it where it is
/// better than what was picked. Even lengths count where none are expected.
static void offer(SplitCandidate picked, PlanCandidates plans,
                  const UnevenBatch &batch, SplitChoice &choice,
                  std::vector<PlanCandidates> &offered) {
  const SplitCandidate &best = choice.getBest();
  // Equal runs are the fastest ones of even lengths, too, within the error of
  // estimates, and gain far more where lengths differ.
  double loss = picked.areEqual ? 1 / kSplitWorthwhile : double(kEvenLoss);
  bool isBetter = picked.unevenMicroseconds < best.unevenMicroseconds &&
                  (expectsUneven(batch) ||
                   picked.evenMicroseconds <= loss * best.evenMicroseconds);
  choice.candidates.push_back(std::move(picked));
  offered.push_back(std::move(plans));
  if (isBetter)
    choice.best = choice.candidates.size() - 1;
}

/// Adds the runs `dealt` of plans with the parameters `fixed` whose CTAs have
/// so many heads, and takes them where they are better.
static LogicalResult considerDealt(AttentionOp op, const PlanEstimate &whole,
                                   const UnevenBatch &batch, DealtRuns dealt,
                                   int64_t ctaHeads, const TargetRow &target,
                                   ArrayRef<const Schedule *> able,
                                   SmallVector<PlanParameter> fixed,
                                   SplitChoice &choice,
                                   std::vector<PlanCandidates> &offered) {
  std::string total = std::to_string(dealt.total);
  fixed.push_back({kDealtRuns, total});
  CombineOp combine = splitKeys(op, dealt.most);
  FailureOr<ProblemFacts> split = ProblemFacts::get(op);
  if (failed(split))
    return failure();
  // A second kernel merges them, not the last CTA.
  PlanCandidates plans = collectCandidates(*split, target, able, fixed);
  llvm::erase_if(plans.plans, [&](const PlanCandidate &each) {
    return getCtaHeads(each.plan) != ctaHeads;
  });
  noteStandard(plans, able, target);
  SplitCandidate picked;
  if (!plans.plans.empty())
    picked = pickPlan(plans, whole, dealt.most, batch, target, dealt);
  joinKeys(op, combine);
  if (picked.candidate.plan)
    offer(std::move(picked), std::move(plans), batch, choice, offered);
  return success();
}

/// Adds runs that are dealt by the lengths of sequences, and takes them where
/// they are better than the number of runs that was picked.
static LogicalResult considerDealt(AttentionOp op, const PlanEstimate &whole,
                                   const UnevenBatch &batch, int64_t queries,
                                   const TargetRow &target,
                                   ArrayRef<const Schedule *> schedules,
                                   ArrayRef<PlanParameter> parameters,
                                   SplitChoice &choice,
                                   std::vector<PlanCandidates> &offered) {
  auto isAsked = [&](llvm::StringRef name) {
    return llvm::any_of(parameters, [&](PlanParameter parameter) {
      return parameter.name == name;
    });
  };
  // One CTA on an SM walks tiles, or several have one each.
  SmallVector<const Schedule *> walking, able;
  for (const Schedule *each : schedules)
    if (hasParameter(*each, op.getContext(), kDealtRuns) &&
        !dealsEqualRuns(*each, op.getContext()))
      (hasParameter(*each, op.getContext(), kCtasPerSM) ? able : walking)
          .push_back(each);
  if (isAsked(kDealtRuns))
    return success();
  DealtRuns walked = countDealt(batch, whole.tiles, queries, 1, target);
  if (!walking.empty() && walked.total &&
      failed(considerDealt(op, whole, batch, walked, /*ctaHeads=*/1, target,
                           walking, SmallVector<PlanParameter>(parameters),
                           choice, offered)))
    return failure();
  if (able.empty() || isAsked(kCtasPerSM) || isAsked(kWarps))
    return success();
  // Where CTAs of several heads are faster, they are with runs that are dealt.
  int64_t most = getCtaHeads(choice.getBest().candidate.plan);
  for (int64_t ctas : {1, 2, 4}) {
    int64_t own = std::min(most, getWarpsPerSM() / ctas);
    if (ctas == 1 && own == 1)
      continue;
    DealtRuns dealt =
        countDealt(batch, whole.tiles / own, queries, ctas, target);
    if (!dealt.total)
      continue;
    std::string places = std::to_string(ctas),
                warps = std::to_string(getWarpsPerSM() / ctas);
    SmallVector<PlanParameter> fixed(parameters);
    fixed.push_back({kCtasPerSM, places});
    fixed.push_back({kWarps, warps});
    if (failed(considerDealt(op, whole, batch, dealt, own, target, able,
                             std::move(fixed), choice, offered)))
      return failure();
  }
  return success();
}

FailureOr<SplitChoice> attn::chooseSplits(AttentionOp op,
                                          const PlanCandidates &whole,
                                          const ProblemFacts &facts,
                                          const TargetRow &target,
                                          ArrayRef<const Schedule *> schedules,
                                          ArrayRef<PlanParameter> parameters) {
  SplitChoice choice;
  const PlanEstimate &one = whole.plans.front().estimate;
  // Keys outside of a window cost nothing.
  static constexpr Factor kStep{"splits.step"};
  int64_t seen = std::min<int64_t>(
      facts.keys, kStep * countBlocks(facts, facts.queries, facts.keys,
                                      facts.queries, kStep));
  // Dense keys are as many for each sequence.
  UnevenBatch batch = {facts.isServed() ? facts.batch : 0, facts.keys, seen,
                       facts.expectedKeys};
  bool hasSeveral = batch.sequences > 1;
  std::vector<PlanCandidates> offered;
  auto add = [&](const ProblemFacts &facts, PlanCandidates plans,
                 int64_t splits) {
    if (plans.plans.empty())
      return;
    SplitCandidate picked = pickPlan(plans, one, splits, batch, target);
    if (!picked.candidate.plan)
      return;
    setCombine(picked, facts, target, parameters, plans);
    choice.candidates.push_back(std::move(picked));
    offered.push_back(std::move(plans));
  };
  add(facts, whole, 1);
  if (choice.candidates.empty())
    return choice;
  int64_t tiles = std::max<int64_t>(1, one.tiles);
  SmallVector<int64_t> numbers = listSplits(tiles, seen, facts.queries, target);
  if (!facts.isServed() && facts.queries > kDecodedQueries &&
      one.tiles >= kFewTiles * target.smCount)
    numbers.clear();
  for (int64_t splits : numbers) {
    CombineOp combine = splitKeys(op, splits);
    FailureOr<ProblemFacts> split = ProblemFacts::get(op);
    if (succeeded(split))
      add(*split, collectCandidates(*split, target, schedules, parameters),
          splits);
    joinKeys(op, combine);
    if (failed(split))
      return failure();
  }
  choice.best = pickSplits(choice.candidates, batch, target);
  if (hasSeveral)
    if (failed(considerDealt(op, one, batch, facts.queries, target, schedules,
                             parameters, choice, offered)))
      return failure();
  if (hasSeveral) {
    FailureOr<std::vector<EqualRunsPlans>> found =
        collectEqualRuns(op, one, batch, target, schedules, parameters);
    if (failed(found))
      return failure();
    for (EqualRunsPlans &each : *found)
      offer(std::move(each.picked), std::move(each.plans), batch, choice,
            offered);
  }
  choice.plans = std::move(offered[choice.best]);
  SmallVector<PlanCandidate> &plans = choice.plans.plans;
  auto *picked = llvm::find_if(plans, [&](const PlanCandidate &each) {
    return each.plan == choice.getBest().candidate.plan;
  });
  assert(picked != plans.end() && "the picked plan is one of those offered");
  std::rotate(plans.begin(), picked, picked + 1);
  return choice;
}

static llvm::StringRef describeMerger(const SplitCandidate &each) {
  if (each.splits == 1)
    return "";
  return getCombineWay(each.candidate.plan) == CombineWay::Launch
             ? "  the last CTA"
             : "  a kernel";
}

std::string attn::formatSplitTable(const SplitChoice &choice) {
  std::string text =
      "  runs   tiles   waves  us of merging  us even  us uneven  merged by";
  for (const SplitCandidate &each : choice.candidates) {
    text += llvm::formatv("\n{0,6}{1,8}{2,8:f2}{3,15:f1}{4,9:f1}{5,11:f1}{6}",
                          each.splits, each.candidate.estimate.tiles,
                          each.candidate.estimate.waves, each.mergeMicroseconds,
                          each.evenMicroseconds, each.unevenMicroseconds,
                          describeMerger(each));
    if (each.dealtRuns)
      text += llvm::formatv(", {0} {1}", each.dealtRuns,
                            each.areEqual ? "equal ones of all sequences"
                                          : "dealt");
  }
  return text;
}
