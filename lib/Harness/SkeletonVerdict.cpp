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
  /// How far a thread is, in one way to take what it has done and to go on to
  /// the next step that ends something, along paths that may be left out or
  /// around them.
  struct State {
    /// What may happen before that step.
    Steps between;
    /// That step, none at the exit, and what comes behind it.
    const SyncStep *end = nullptr;
    size_t behind = 0;
    /// Bytes that loads have started since the last one.
    std::map<std::string, int64_t> loads;

    bool operator==(const State &other) const {
      return behind == other.behind && end == other.end &&
             between == other.between && loads == other.loads;
    }
  };
  void follow(size_t from, State state, std::vector<State> &next) const;
  size_t endOfRare(size_t begin) const;
  bool isEmpty(size_t begin, size_t end) const;
  bool mayDo(const SyncStep &step, const Steps &between) const;
  /// Adds what a state becomes by a step; what is wrong where it becomes none.
  std::optional<std::string> take(const State &state, const SyncStep &step,
                                  std::vector<State> &next) const;
  std::optional<std::string> takeEnd(const State &state, const SyncStep &step,
                                     std::vector<State> &next) const;
  std::optional<std::string> finish(const State &state) const;
  std::optional<std::string> checkLoads(const State &state,
                                        const SyncStep *at) const;
  static void removeCopies(std::vector<State> &states);
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

/// Whether a thread does nothing between two steps.
bool Comparison::isEmpty(size_t begin, size_t end) const {
  for (size_t i = begin; i < end; ++i)
    if (proved[i].kind != SyncStep::RareBegin &&
        proved[i].kind != SyncStep::RareEnd &&
        (proved[i].threads >> thread & 1))
      return false;
  return true;
}

/// Goes on to the next step that ends something: first around each path that
/// may be left out, then along it.
void Comparison::follow(size_t from, State state,
                        std::vector<State> &next) const {
  for (size_t i = from; i < proved.size(); ++i) {
    const SyncStep &step = proved[i];
    if (!(step.threads >> thread & 1))
      continue;
    if (step.kind == SyncStep::RareBegin && !isEmpty(i, endOfRare(i)))
      follow(endOfRare(i), state, next);
    if (step.kind == SyncStep::Event || step.kind == SyncStep::Order) {
      state.end = &step;
      state.behind = i + 1;
      next.push_back(std::move(state));
      return;
    }
    if (step.kind == SyncStep::Work || step.kind == SyncStep::Access)
      state.between.push_back(&step);
  }
  state.end = nullptr;
  state.behind = proved.size();
  next.push_back(std::move(state));
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
                                                  const SyncStep *at) const {
  std::map<std::string, int64_t> expected;
  for (const SyncStep *step : state.between)
    if (step->amount != 0)
      expected[step->text] += step->amount;
  if (expected == state.loads)
    return std::nullopt;
  for (const SyncStep *step : state.between) {
    auto found = state.loads.find(step->text);
    int64_t got = found == state.loads.end() ? 0 : found->second;
    if (step->amount != 0 && got != expected[step->text])
      return llvm::formatv("expected {0} to start {1} bytes, got {2} before "
                           "{3}",
                           describe(*step), expected[step->text], got,
                           at ? line(*at) : "the exit");
  }
  return std::nullopt;
}

/// A step that ends what may happen in between.
std::optional<std::string> Comparison::takeEnd(const State &state,
                                               const SyncStep &step,
                                               std::vector<State> &next) const {
  bool matches = state.end && state.end->text == step.text;
  std::optional<std::string> wrong;
  if (matches) {
    wrong = checkLoads(state, &step);
    if (!wrong)
      follow(state.behind, {}, next);
  }
  // Where the elected thread waits others may wait with it.
  bool isWait = llvm::StringRef(step.text).starts_with("wait ");
  if (step.kind == SyncStep::Order || (!matches && isWait && thread != 0)) {
    next.push_back(state);
    return std::nullopt;
  }
  if (matches)
    return wrong;
  return llvm::formatv("expected {0}, got {1}",
                       state.end ? describe(*state.end) : "the exit",
                       line(step));
}

std::optional<std::string> Comparison::take(const State &state,
                                            const SyncStep &step,
                                            std::vector<State> &next) const {
  if (step.kind == SyncStep::Event || step.kind == SyncStep::Order)
    return takeEnd(state, step, next);
  if (!mayDo(step, state.between))
    return llvm::formatv("expected {0} before any such access, got {1}",
                         state.end ? describe(*state.end) : "the exit",
                         line(step));
  next.push_back(state);
  if (step.amount != 0)
    next.back().loads[step.text] += step.amount;
  return std::nullopt;
}

std::optional<std::string> Comparison::finish(const State &state) const {
  if (!state.end)
    return checkLoads(state, nullptr);
  return "expected " + describe(*state.end) + ", got the exit";
}

/// Ways that have met are one.
void Comparison::removeCopies(std::vector<State> &states) {
  for (size_t i = 0; i < states.size();)
    if (llvm::is_contained(llvm::ArrayRef(states).take_front(i), states[i]))
      states.erase(states.begin() + i);
    else
      ++i;
}

std::optional<std::string> Comparison::run(const std::vector<SyncStep> &done) {
  std::vector<State> states, next;
  follow(0, {}, states);
  for (const SyncStep &step : done) {
    if (!(step.threads >> thread & 1))
      continue;
    std::optional<std::string> first;
    next.clear();
    for (const State &state : states) {
      std::optional<std::string> wrong = take(state, step, next);
      if (wrong && !first)
        first = wrong;
    }
    if (next.empty())
      return first;
    removeCopies(next);
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
