//===- SkeletonVerdict.cpp - Does PTX do what is proved? ------------------===//
//
// A thread has to come to the same signals, waits, barriers and ends of groups
// in the same order, and between two of them it may touch what the proof has
// its warp touch there, and nothing else. Fences and barriers of a warp that
// the proof has must be there; more of them do no harm, so that one may be the
// proof's or one more, and both ways are followed.
//
//===----------------------------------------------------------------------===//

#include "SkeletonVerdict.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::sim;

llvm::Error sim::takeSkeleton(const LaunchRecord &record,
                              HarnessOptions &options) {
  const SyncSkeleton &skeleton = *options.skeleton;
  if (record.steps.size() != 1 ||
      record.steps.front().kernel != skeleton.kernel)
    return llvm::createStringError(
        "skeleton: expected a launch of kernel \"" + skeleton.kernel +
        "\" alone, got " +
        (record.steps.empty() ? "none" : record.describeStep(0)));
  if (skeleton.runsAllTiles) {
    options.grid.emplace();
    for (unsigned axis : {0, 1, 2})
      (*options.grid)[axis] = record.steps.front().cluster[axis];
  }
  LaunchConfig &config = options.config;
  config.notesSync = true;
  config.tracedClusters = ~0u;
  config.schedule = Schedule::RoundRobin;
  config.adversarial = false;
  return llvm::Error::success();
}

/// Of a warp.
static constexpr unsigned kThreads = 32;

namespace {

/// Walks along what the proof has of one thread.
class Comparison {
public:
  Comparison(const SyncSkeleton &skeleton, const Trace &trace,
             const std::vector<SyncStep> &proved, unsigned thread)
      : skeleton(skeleton), trace(trace), proved(proved), thread(thread) {}

  /// What is wrong, nothing if nothing is.
  std::optional<std::string> run(const std::vector<SyncStep> &done);

private:
  using Steps = std::vector<const SyncStep *>;
  /// How far a thread is, in one way to take what it has done.
  struct State {
    /// Behind the last step that both have come to.
    size_t place = 0;
    /// Bytes that loads have started since.
    std::map<std::string, int64_t> loads;

    bool operator==(const State &other) const {
      return place == other.place && loads == other.loads;
    }
  };
  bool collect(size_t from, Steps &between, Steps &ends,
               std::vector<size_t> &behind) const;
  size_t endOfRare(size_t begin) const;
  bool mayDo(const SyncStep &step, const Steps &between) const;
  /// Adds what a state becomes by a step; what is wrong where it becomes none.
  std::optional<std::string> take(const State &state, const SyncStep &step,
                                  std::vector<State> &next) const;
  std::optional<std::string> takeEnd(const State &state, const SyncStep &step,
                                     std::vector<State> &next) const;
  std::optional<std::string> finish(const State &state) const;
  std::optional<std::string> checkLoads(const State &state,
                                        const Steps &between,
                                        const SyncStep *at) const;
  std::string describe(const SyncStep &step) const;
  std::string line(const SyncStep &step) const;

  const SyncSkeleton &skeleton;
  const Trace &trace;
  const std::vector<SyncStep> &proved;
  unsigned thread;
};

} // namespace

std::string Comparison::describe(const SyncStep &step) const {
  return "'" + step.text + "' of " + skeleton.sites[step.place];
}

std::string Comparison::line(const SyncStep &step) const {
  std::string text;
  for (const TraceInstruction &inst : trace.instructions)
    if (inst.line == step.place) {
      text = inst.text;
      break;
    }
  return llvm::formatv("'{0}' of line {1}: {2}", step.text, step.place, text);
}

size_t Comparison::endOfRare(size_t begin) const {
  unsigned depth = 0;
  for (size_t i = begin; i < proved.size(); ++i) {
    depth += proved[i].kind == SyncStep::RareBegin;
    if (proved[i].kind == SyncStep::RareEnd && --depth == 0)
      return i + 1;
  }
  return proved.size();
}

/// What may happen from a place on up to the next step that ends it; paths that
/// may be left out are gone around, then along. Whether nothing may be left
/// out.
bool Comparison::collect(size_t from, Steps &between, Steps &ends,
                         std::vector<size_t> &behind) const {
  bool isSure = true;
  std::vector<size_t> ways = {from};
  // Ways around what may be left out meet the others again.
  std::set<size_t> seen;
  while (!ways.empty()) {
    size_t i = ways.back();
    ways.pop_back();
    for (; seen.insert(i).second; ++i) {
      if (i == proved.size()) {
        ends.push_back(nullptr);
        behind.push_back(i);
        break;
      }
      const SyncStep &step = proved[i];
      if (!(step.threads >> thread & 1))
        continue;
      if (step.kind == SyncStep::RareBegin) {
        ways.push_back(i + 1);
        i = endOfRare(i) - 1;
        isSure = false;
        continue;
      }
      if (step.kind == SyncStep::Event || step.kind == SyncStep::Order) {
        ends.push_back(&step);
        behind.push_back(i + 1);
        break;
      }
      if (step.kind == SyncStep::Work || step.kind == SyncStep::Access)
        between.push_back(&step);
    }
  }
  return isSure;
}

bool Comparison::mayDo(const SyncStep &step, const Steps &between) const {
  auto isWithin = [&](std::pair<int64_t, int64_t> range) {
    // Ranges of one access may meet those of another one.
    for (int64_t at = range.first; at < range.second;) {
      int64_t next = at;
      for (const SyncStep *other : between)
        if (other->kind == SyncStep::Access &&
            (other->text == "write" || step.text == "read"))
          for (auto [begin, end] : other->bytes)
            if (begin <= at && at < end)
              next = std::max(next, end);
      if (next == at)
        return false;
      at = next;
    }
    return true;
  };
  if (step.kind == SyncStep::Access)
    return llvm::all_of(step.bytes, isWithin);
  return llvm::any_of(between, [&](const SyncStep *other) {
    return other->kind == SyncStep::Work && other->text == step.text;
  });
}

/// A load may be cut into several, with as many bytes in all.
std::optional<std::string> Comparison::checkLoads(const State &state,
                                                  const Steps &between,
                                                  const SyncStep *at) const {
  const std::map<std::string, int64_t> &loads = state.loads;
  std::map<std::string, int64_t> expected;
  for (const SyncStep *step : between)
    if (step->amount != 0)
      expected[step->text] += step->amount;
  if (expected == loads)
    return std::nullopt;
  for (const SyncStep *step : between) {
    auto found = loads.find(step->text);
    int64_t got = found == loads.end() ? 0 : found->second;
    if (step->amount != 0 && got != expected[step->text])
      return llvm::formatv("expected {0} to start {1} bytes, got {2} before "
                           "{3}",
                           describe(*step), expected[step->text], got,
                           at ? line(*at) : "the exit");
  }
  return std::nullopt;
}

/// A step that ends what may happen in between.
std::optional<std::string>
Comparison::takeEnd(const State &state, const SyncStep &step,
                    std::vector<State> &next) const {
  Steps between, ends;
  std::vector<size_t> behind;
  bool isSure = collect(state.place, between, ends, behind);
  std::optional<std::string> wrong;
  bool isTaken = false;
  for (auto [end, after] : llvm::zip_equal(ends, behind)) {
    if (!end || end->text != step.text)
      continue;
    // On a path around one that may be left out its loads are none.
    if (isSure)
      wrong = checkLoads(state, between, &step);
    if (!wrong)
      next.push_back({after, {}});
    isTaken = true;
  }
  // Where the elected thread waits others may wait with it.
  bool isWait = llvm::StringRef(step.text).starts_with("wait ");
  if (step.kind == SyncStep::Order || (!isTaken && isWait && thread != 0)) {
    next.push_back(state);
    return std::nullopt;
  }
  if (isTaken)
    return wrong;
  return llvm::formatv("expected {0}, got {1}",
                       ends.back() ? describe(*ends.back()) : "the exit",
                       line(step));
}

std::optional<std::string> Comparison::take(const State &state,
                                            const SyncStep &step,
                                            std::vector<State> &next) const {
  if (step.kind == SyncStep::Event || step.kind == SyncStep::Order)
    return takeEnd(state, step, next);
  Steps between, ends;
  std::vector<size_t> behind;
  collect(state.place, between, ends, behind);
  if (!mayDo(step, between))
    return llvm::formatv("expected {0} before any such access, got {1}",
                         ends.back() ? describe(*ends.back()) : "the exit",
                         line(step));
  next.push_back(state);
  if (step.amount != 0)
    next.back().loads[step.text] += step.amount;
  return std::nullopt;
}

std::optional<std::string> Comparison::finish(const State &state) const {
  Steps between, ends;
  std::vector<size_t> behind;
  collect(state.place, between, ends, behind);
  if (llvm::is_contained(ends, nullptr))
    return checkLoads(state, between, nullptr);
  return "expected " + describe(*ends.back()) + ", got the exit";
}

std::optional<std::string> Comparison::run(const std::vector<SyncStep> &done) {
  std::vector<State> states(1), next;
  for (const SyncStep &step : done) {
    if (!(step.threads >> thread & 1))
      continue;
    std::optional<std::string> first;
    next.clear();
    for (const State &state : states) {
      size_t before = next.size();
      std::optional<std::string> wrong = take(state, step, next);
      if (wrong && !first)
        first = wrong;
      // Ways that have met are one.
      for (size_t i = before; i < next.size();)
        if (llvm::is_contained(llvm::ArrayRef(next).take_front(i), next[i]))
          next.erase(next.begin() + i);
        else
          ++i;
    }
    if (next.empty())
      return first;
    std::swap(states, next);
  }
  std::optional<std::string> first;
  for (const State &state : states) {
    std::optional<std::string> wrong = finish(state);
    if (!wrong)
      return std::nullopt;
    if (!first)
      first = wrong;
  }
  return first;
}

/// With what the run has found first.
static ReplayVerdict addFinding(llvm::StringRef text, const RunReport &run) {
  for (const Finding &finding : run.findings)
    if (finding.severity == Severity::Error)
      return {false, (text + ": " + finding.message).str()};
  return {false, text.str()};
}

/// Of a launch that has stopped, why it has: its warps do less for it.
static ReplayVerdict endEarly(llvm::StringRef text, const RunReport &run) {
  if (run.completed)
    return {false, text.str()};
  return addFinding((text + "; the launch did not complete").str(), run);
}

ReplayVerdict sim::judgeSkeleton(const SyncSkeleton &skeleton,
                                 const RunReport &run) {
  if (!run.trace || run.trace->ctas.empty())
    return addFinding("the kernel has not run", run);
  const Trace &trace = *run.trace;
  int64_t steps = 0;
  for (const SyncRun &expected : skeleton.runs) {
    size_t cta = 0;
    while (cta < trace.ctas.size() && !skeleton.runsAllTiles &&
           !std::equal(expected.block.begin(), expected.block.end(),
                       trace.ctas[cta].id.begin()))
      ++cta;
    size_t ofCta = cta < trace.ctas.size() ? trace.ctas[cta].warps.size() : 0;
    if (ofCta == 0 || expected.warps.empty() ||
        expected.warps.size() % ofCta != 0)
      return {false,
              llvm::formatv("expected {0} warps in the CTAs of a cluster, "
                            "got {1} in each",
                            expected.warps.size(), ofCta)};
    for (auto [number, proved] : llvm::enumerate(expected.warps)) {
      // CTAs of a cluster stand behind each other.
      size_t own = cta + number / ofCta;
      if (own >= trace.ctas.size())
        return {false,
                llvm::formatv("expected a launch with warp {0} of block {1}, "
                              "{2}, {3}, got none",
                              number, expected.block[0], expected.block[1],
                              expected.block[2])};
      const std::vector<SyncStep> &done =
          trace.ctas[own].warps[number % ofCta].syncs;
      for (unsigned thread = 0; thread < kThreads; ++thread)
        if (auto wrong = Comparison(skeleton, trace, proved, thread).run(done))
          return endEarly(
              llvm::formatv("thread {0} of warp {1} of CTA {2} does "
                            "not do what is proved: {3}",
                            thread, number % ofCta, own, *wrong)
                  .str(),
              run);
      steps += done.size();
    }
  }
  if (!run.isClean())
    return addFinding("the run has findings", run);
  return {true, llvm::formatv("the same in {0} steps of warps", steps)};
}
