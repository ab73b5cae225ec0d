//===- Scheduler.cpp - In which order a launch advances -------------------===//

#include "Scheduler.h"
#include "Async/CpAsync.h"
#include "Deadlock.h"
#include "LoopWatch.h"
#include "Machine/ClusterSetup.h"
#include "Machine/DroppedLoads.h"
#include "Machine/TraceRecorder.h"
#include "WarpReplay.h"
#include "WarpRunner.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <future>
#include <random>

using namespace mlir::attn::sim;

bool mlir::attn::sim::completeEngineOp(Cluster &cluster, bool random) {
  if (cluster.engine.empty())
    return false;
  // Signals that may come late give way to everything else, and to newer ones.
  size_t index = 0;
  while (index < cluster.engine.size() && cluster.engine[index]->deferred)
    ++index;
  if (index == cluster.engine.size()) {
    --index;
  } else if (random) {
    index = cluster.rng() % cluster.engine.size();
    uint64_t stream = cluster.engine[index]->stream;
    if (stream)
      for (size_t i = 0; i < index; ++i)
        if (cluster.engine[i]->stream == stream) {
          index = i;
          break;
        }
  }
  std::unique_ptr<EngineOp> op = std::move(cluster.engine[index]);
  cluster.engine.erase(cluster.engine.begin() + index);
  TraceRecorder *recorder = cluster.recorder.get();
  size_t before = cluster.engine.size();
  if (recorder)
    recorder->begins(*op);
  op->complete(cluster);
  if (recorder)
    recorder->ended(*op, cluster, before);
  ++cluster.writes;
  cluster.advance();
  return true;
}

/// Finishes the oldest cp.async of a warp; false when none is in flight.
static bool completeOldestCpAsync(Exec &x) {
  for (Warp *warp : x.cluster.warps)
    if (!warp->cpAsync.ops.empty()) {
      x.warp = warp;
      x.cta = warp->cta;
      completeCpAsync(x, *warp);
      ++x.cluster.writes;
      x.cluster.advance();
      return true;
    }
  return false;
}

bool Scheduler::endLoops(LoopWatch &watch, Cluster &cluster, Warp &warp) {
  bool random = machine.config.schedule == Schedule::Random;
  // What is in flight completes when no warp can do anything else.
  for (Cluster *each : watch.getClusters()) {
    Exec x(machine, *each);
    if (completeEngineOp(*each, random) || completeOldestCpAsync(x))
      return watch.restart(/*isOnlyTry=*/false);
  }
  // A satisfied wait may have been told that it is not.
  bool polls = false;
  for (Cluster *each : watch.getClusters())
    for (Warp *w : each->warps)
      for (Split &s : w->splits)
        polls |= std::exchange(s.pollProgress, 0) != 0;
  if (polls && watch.restart(/*isOnlyTry=*/true))
    return true;
  Exec x(machine, cluster);
  watch.report(x, warp);
  machine.stop = true;
  return false;
}

bool Scheduler::step(Cluster &cluster, LoopWatch &watch) {
  size_t n = cluster.warps.size();
  bool random = machine.config.schedule == Schedule::Random;
  Exec x(machine, cluster);
  if (random && !cluster.engine.empty() &&
      machine.config.asyncWrites != AsyncTiming::Completion &&
      cluster.rng() % 4 == 0)
    completeEngineOp(cluster, true);
  // A warp that can do something new, or else one that polls.
  Warp *chosen = nullptr, *spinning = nullptr;
  size_t start = random ? cluster.rng() % n : cluster.nextWarp;
  bool anyLive = false;
  for (size_t k = 0; k < n && !chosen; ++k) {
    Warp *warp = cluster.warps[(start + k) % n];
    for (const Split &s : warp->splits) {
      anyLive = true;
      if (s.block != BlockKind::None)
        continue;
      if (s.pollProgress != cluster.progress) {
        chosen = warp;
        cluster.nextWarp = (start + k + 1) % n;
        break;
      }
      if (!spinning)
        spinning = warp;
    }
  }
  if (!anyLive)
    return completeEngineOp(cluster, random);
  if (!chosen) {
    if (completeEngineOp(cluster, random))
      return true;
    if (completeOldestCpAsync(x))
      return true;
    if (!spinning || ++cluster.idleRounds > 64) {
      reportDeadlock(cluster);
      machine.stop = true;
      return false;
    }
    // Nothing has changed for any of them: look again, in case a poll has a
    // side that this bookkeeping does not see.
    cluster.nextWarp = 0;
    for (Warp *warp : cluster.warps)
      for (Split &s : warp->splits)
        s.pollProgress = 0;
    return true;
  }
  uint32_t quantum = random ? 1 + cluster.rng() % 200 : 256;
  runWarp(x, *chosen, quantum);
  if (cluster.steps > llvm::SaturatingMultiply<uint64_t>(
                          machine.config.stepLimit, cluster.ctas.size())) {
    x.warp = chosen;
    x.cta = chosen->cta;
    Finding f;
    f.kind = FindingKind::StepLimit;
    f.message = llvm::formatv("stopped after {0} warp instructions of one "
                              "cluster: an infinite loop?",
                              cluster.steps);
    f.second = x.siteOf(x.pc, chosen->cta, chosen->id, -1);
    machine.report(std::move(f));
    machine.stop = true;
    return false;
  }
  return !watch.repeats(*chosen) || endLoops(watch, cluster, *chosen);
}

void Scheduler::runToEnd(Cluster &cluster) {
  LoopWatch watch(machine);
  watch.add(cluster);
  while (!machine.stop && step(cluster, watch))
    tick(cluster, watch);
}

Scheduler::Scheduler(Machine &machine) : machine(machine) {}

Scheduler::~Scheduler() = default;

uint32_t Scheduler::countClusters() const {
  const std::vector<uint32_t> &chosen = machine.config.chosenClusters;
  return chosen.empty() ? machine.countClusters() : chosen.size();
}

std::unique_ptr<Cluster> Scheduler::makeCluster(uint32_t linear) {
  if (!machine.config.chosenClusters.empty())
    linear = machine.config.chosenClusters[linear];
  std::unique_ptr<Cluster> cluster = createCluster(machine, linear);
  if (droppedLoads) {
    cluster->droppedLoads = droppedLoads.get();
    for (Warp *warp : cluster->warps)
      droppedLoads->prepare(*warp);
  }
  return cluster;
}

/// Begins anew to keep races of loads back, where that is to be done.
void Scheduler::resetDroppedLoads() {
  droppedLoads.reset();
  if (machine.config.sanitize && !machine.config.strict)
    droppedLoads =
        std::make_unique<DroppedLoads>(machine, getLoadFates(machine.program));
}

void Scheduler::finish(Cluster &cluster) {
  ++finishedClusters;
  if (droppedLoads)
    droppedLoads->finish(cluster);
  machine.count(cluster);
}

double Scheduler::getFraction() const {
  double done = double(finishedClusters) / countClusters();
  if (machine.config.expectedStores)
    done = std::max(done, double(storedBytes) / machine.config.expectedStores);
  return std::min(done, 1.0);
}

void Scheduler::tick(Cluster &cluster, LoopWatch &watch) {
  if (!machine.config.progress)
    return;
  uint64_t stores =
      cluster.counters.globalStoreBytes + cluster.counters.bulkStoreBytes;
  if (stores != cluster.reportedStores)
    storedBytes += stores - std::exchange(cluster.reportedStores, stores);
  if (std::this_thread::get_id() == caller) {
    std::string lines = watch.takeLines();
    double ofLimit = double(cluster.steps) / machine.config.stepLimit /
                     double(cluster.ctas.size());
    // Early on anything may still happen.
    if (!lines.empty() && ofLimit >= 0.01)
      machine.config.progress->setDetail(
          llvm::formatv("{0} repeat, {1} % of the step limit", lines,
                        unsigned(100 * ofLimit)));
    machine.config.progress->update(getFraction());
  }
  if (machine.config.progress->isStopped())
    machine.stop = true;
}

namespace {
/// How far clusters that may wait for each other get in a round: in random
/// schedules by chance. One of them, which the launch names or the seed picks,
/// hardly gets on at all, so that it comes last unless others wait for it.
class Turns {
public:
  Turns(const LaunchConfig &config, uint32_t total)
      : isRandom(config.schedule == Schedule::Random && total > 1),
        rng(config.seed), late(config.lateCluster) {
    if (isRandom && !late)
      late = rng() % total;
  }
  void startRound() { ++round; }
  unsigned take(const Cluster &cluster) {
    constexpr unsigned kSteps = 16;
    constexpr uint64_t kLateRounds = 256;
    if (cluster.linear == late && round % kLateRounds != 0)
      return 0;
    return isRandom ? rng() % (2 * kSteps) : kSteps;
  }

private:
  bool isRandom;
  std::mt19937_64 rng;
  std::optional<uint32_t> late;
  uint64_t round = 0;
};
} // namespace

/// CTAs may wait for each other, so all that fit are resident at once.
void Scheduler::runInterleaved(uint32_t total) {
  std::vector<std::unique_ptr<Cluster>> resident;
  LoopWatch watch(machine);
  Turns turns(machine.config, total);
  // Work stealing is only seen when not everything fits.
  size_t limit = std::max(1u, machine.config.residentClusters);
  if (machine.program.cancelsLaunches && machine.config.startedClusters)
    limit = std::min<size_t>(limit, *machine.config.startedClusters);
  else if (machine.program.cancelsLaunches && total > 1)
    limit = std::min<size_t>(
        limit,
        machine.config.schedule == Schedule::Random
            ? 1 + (machine.config.seed * 0x9E3779B97F4A7C15ull >> 33) % total
            : (total + 1) / 2);
  while (!machine.stop && (machine.nextCluster < total || !resident.empty())) {
    while (machine.nextCluster < total && resident.size() < limit)
      watch.add(*resident.emplace_back(makeCluster(machine.nextCluster++)));
    turns.startRound();
    for (size_t i = 0; i < resident.size() && !machine.stop;) {
      bool more = true;
      unsigned steps = turns.take(*resident[i]);
      for (unsigned k = 0; k < steps && more && !machine.stop; ++k)
        more = step(*resident[i], watch);
      tick(*resident[i], watch);
      if (more) {
        ++i;
        continue;
      }
      finish(*resident[i]);
      watch.remove(*resident[i]);
      resident.erase(resident.begin() + i);
    }
  }
  for (auto &cluster : resident)
    finish(*cluster);
}

void Scheduler::runInOrder(uint32_t total) {
  for (uint32_t index = 0; index < total && !machine.stop; ++index) {
    std::unique_ptr<Cluster> cluster = makeCluster(index);
    runToEnd(*cluster);
    finish(*cluster);
  }
}

void Scheduler::runReplay() {
  const std::array<uint32_t, 3> &first = machine.config.replayed;
  std::array<uint32_t, 3> id;
  for (unsigned axis : {0, 1, 2})
    id[axis] = first[axis] / machine.config.cluster[axis];
  if (id[0] >= machine.clusters[0] || id[1] >= machine.clusters[1] ||
      id[2] >= machine.clusters[2]) {
    machine.result.diverged = llvm::formatv(
        "the launch has no CTA ({0}, {1}, {2})", first[0], first[1], first[2]);
    machine.stop = true;
    return;
  }
  std::unique_ptr<Cluster> cluster = makeCluster(
      id[0] + machine.clusters[0] * (id[1] + machine.clusters[1] * id[2]));
  LoopWatch watch(machine);
  while (!machine.stop && cluster->replayed < machine.config.replay.size() &&
         replayTurn(machine, *cluster))
    tick(*cluster, watch);
  runToEnd(*cluster);
  finish(*cluster);
}

void Scheduler::runParallel(uint32_t total, unsigned threads) {
  MemoryUndo before(machine.memory);
  std::atomic<uint32_t> next{0};
  auto takeOne = [&] {
    uint32_t index = machine.stop ? total : next++;
    if (index >= total)
      return false;
    std::unique_ptr<Cluster> cluster = makeCluster(index);
    runToEnd(*cluster);
    finish(*cluster);
    return true;
  };
  machine.parallel = true;
  std::vector<std::future<void>> pool;
  // A small launch is over before other threads have begun.
  constexpr std::chrono::microseconds worthwhile(3000);
  auto begin = std::chrono::steady_clock::now();
  while (takeOne())
    if (pool.empty() && std::chrono::steady_clock::now() - begin > worthwhile)
      for (unsigned i = 1; i < threads; ++i)
        pool.push_back(std::async(std::launch::async, [&] {
          while (takeOne())
            ;
        }));
  // Somebody may want to stop while only other threads are at work.
  for (std::future<void> &helper : pool)
    while (helper.wait_for(std::chrono::milliseconds(50)) !=
           std::future_status::ready)
      if (machine.config.progress)
        machine.config.progress->update(getFraction());
  machine.parallel = false;
  if (!machine.repeat ||
      (machine.config.progress && machine.config.progress->isStopped()))
    return;
  // Clusters that have met in memory, or one that is wrong: what is seen of
  // that has to be the same each time.
  before.restore();
  machine.forgetFindings();
  resetDroppedLoads();
  machine.printed.clear();
  machine.execCount.assign(machine.program.code.size(), 0);
  machine.stop = false;
  finishedClusters = storedBytes = 0;
  startShadow();
  runInOrder(total);
}

void Scheduler::startShadow() {
  const std::shared_ptr<const EarlierLaunch> &earlier = machine.config.earlier;
  llvm::SmallVector<llvm::ArrayRef<TouchedRange>, 2> touched;
  for (const EarlierLaunch *each = earlier.get(); each;
       each = each->before.get())
    touched.push_back(each->touched);
  machine.globalShadow.init(std::max(machine.program.globalGranule, 1u),
                            touched);
}

void Scheduler::listTouched() {
  std::vector<TouchedRange> &touched = machine.result.touched;
  machine.globalShadow.forEachTouched([&](uint64_t address, uint64_t bytes,
                                          ShadowTouch touch) {
    TouchedRange::Kind kind = touch == ShadowTouch::Read ? TouchedRange::Read
                              : touch == ShadowTouch::Write
                                  ? TouchedRange::Write
                                  : TouchedRange::Atomic;
    if (!touched.empty() && touched.back().end == address &&
        touched.back().kind == kind)
      touched.back().end += bytes;
    else
      touched.push_back({address, address + bytes, kind});
  });
}

RunReport Scheduler::run() {
  auto begin = std::chrono::steady_clock::now();
  uint32_t total = countClusters();
  startShadow();
  resetDroppedLoads();
  machine.execCount.assign(machine.program.code.size(), 0);
  unsigned threads = machine.config.threads
                         ? machine.config.threads
                         : std::thread::hardware_concurrency();
  threads = std::max(1u, std::min<unsigned>(threads, total));
  if (machine.config.tracedClusters) {
    threads = 1;
    machine.result.trace = std::make_shared<Trace>();
    describeInstructions(machine.program, *machine.result.trace);
  }
  if (!machine.config.replay.empty())
    runReplay();
  else if (machine.program.communicates || machine.config.lateCluster)
    runInterleaved(total);
  else if (threads == 1)
    runInOrder(total);
  else
    runParallel(total, threads);
  machine.result.completed = !machine.stop;
  for (const auto &[cluster, text] : machine.printed)
    machine.result.printed += text;
  for (size_t i = 0; i < machine.execCount.size(); ++i)
    if (machine.execCount[i])
      machine.result.lines[machine.program.code[i].line] +=
          machine.execCount[i];
  if (machine.config.listsTouched)
    listTouched();
  machine.nameActors();
  llvm::sort(machine.result.findings, [](const Finding &a, const Finding &b) {
    auto key = [](const Finding &f) {
      return std::make_tuple(int(f.severity), int(f.kind),
                             f.second ? f.second->ptxLine : 0,
                             f.first ? f.first->ptxLine : 0, f.message);
    };
    return key(a) < key(b);
  });
  machine.result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return std::move(machine.result);
}
