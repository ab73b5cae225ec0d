//===- Machine.cpp - Running a launch -------------------------------------===//
//
// Lanes of a warp that share a program counter form a split. The split with
// the lowest program counter runs first, and splits merge when they meet: that
// reconverges structured code where compilers place their joins. Instructions
// that need several lanes wait for them, so correctness never depends on this
// order. From time to time another split gets a turn, as independent thread
// scheduling promises.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>
#include <future>

using namespace mlir::attn::sim;
using llvm::StringRef;
using llvm::Twine;

bool Cluster::done() const {
  for (const Warp *warp : warps)
    if (!warp->done())
      return false;
  return true;
}

//===----------------------------------------------------------------------===//
// Warps
//===----------------------------------------------------------------------===//

void Machine::exitLanes(Exec &x, Split &split, uint32_t lanes) {
  Warp &warp = *x.warp;
  split.mask &= ~lanes;
  warp.live &= ~lanes;
  warp.cta->liveThreads -= llvm::popcount(lanes);
  x.cluster.advance();
  // What waits for lanes of this warp looks again.
  for (Split &s : warp.splits)
    if (s.block == BlockKind::Converge || s.block == BlockKind::WarpSync)
      s.block = BlockKind::None;
  exitAtBarriers(warp);
}

unsigned Machine::pickSplit(Warp &warp, bool rotate) {
  unsigned best = ~0u, other = ~0u;
  for (unsigned i = 0; i < warp.splits.size(); ++i) {
    const Split &s = warp.splits[i];
    if (s.block != BlockKind::None)
      continue;
    bool stuck = s.pollProgress == warp.cta->cluster->progress;
    if (best == ~0u) {
      best = i;
      continue;
    }
    const Split &b = warp.splits[best];
    bool bestStuck = b.pollProgress == warp.cta->cluster->progress;
    if (stuck != bestStuck ? bestStuck : s.pc < b.pc) {
      other = best;
      best = i;
    } else {
      other = i;
    }
  }
  return rotate && other != ~0u ? other : best;
}

void Machine::runWarp(Exec &x, Warp &warp, uint32_t quantum) {
  x.warp = &warp;
  x.cta = warp.cta;
  x.regs = warp.regs.data();
  x.poison = warp.poison.data();
  x.origin = warp.origin.data();
  bool forced = warp.splits.size() > 1 && (++warp.quantumCount & 3) == 3;
  const Inst *code = program.code.data();
  uint64_t *execCount = x.cluster.execCount.data();
  uint64_t executed = 0, lanes = 0;
  TraceRecorder *recorder = x.cluster.recorder.get();
  while (quantum && !warp.splits.empty()) {
    unsigned index = pickSplit(warp, forced);
    if (index == ~0u)
      break;
    bool reschedule = false;
    while (quantum && !reschedule) {
      --quantum;
      Split &split = warp.splits[index];
      uint32_t pc = split.pc;
      const Inst &I = code[pc];
      x.pc = pc;
      x.split = &split;
      x.splitMask = x.active = split.mask;
      x.resumed = split.resumed;
      if (I.hasGuard) {
        uint32_t p = x.regs[I.guardOff];
        x.active &= I.guardNegated ? ~p : p;
        if (x.poison[I.guardMeta] & split.mask) {
          Operand guard;
          guard.meta = I.guardMeta;
          x.active = split.mask;
          x.checkPoison(guard, "a predicate that guards an instruction");
          x.active = split.mask & (I.guardNegated ? ~p : p);
        }
      }
      ++execCount[pc];
      ++executed;
      lanes += llvm::popcount(x.active);
      if (!x.active) {
        if (LLVM_UNLIKELY(recorder != nullptr))
          recorder->skipped(warp, pc);
        split.pc = pc + 1;
        split.resumed = false;
      } else {
        x.action = Action::None;
        if (LLVM_LIKELY(!recorder)) {
          I.fn(x, I);
        } else {
          TraceRecorder::Before before = recorder->look(x.cluster);
          I.fn(x, I);
          if (x.action != Action::Block && x.action != Action::Fault)
            recorder->executed(x, before);
        }
        switch (x.action) {
        case Action::None:
          split.pc = pc + 1;
          split.resumed = false;
          break;
        case Action::Yield:
          split.pc = pc + 1;
          split.resumed = false;
          quantum = 0;
          break;
        case Action::Branch:
          split.resumed = false;
          if (x.active == split.mask) {
            split.pc = x.branchTarget;
          } else {
            Split taken;
            taken.pc = x.branchTarget;
            taken.mask = x.active;
            split.mask &= ~x.active;
            split.pc = pc + 1;
            warp.splits.push_back(taken);
            reschedule = true;
          }
          break;
        case Action::Indirect: {
          uint32_t left = x.active;
          uint32_t rest = split.mask & ~x.active;
          split.resumed = false;
          llvm::SmallVector<Split, 4> made;
          while (left) {
            uint32_t target = x.laneTargets[llvm::countr_zero(left)];
            Split s;
            s.pc = target;
            forLanes(left, [&](unsigned lane) {
              if (x.laneTargets[lane] == target)
                s.mask |= 1u << lane;
            });
            left &= ~s.mask;
            made.push_back(s);
          }
          if (rest) {
            split.mask = rest;
            split.pc = pc + 1;
          } else {
            split = made.pop_back_val();
          }
          warp.splits.append(made.begin(), made.end());
          reschedule = warp.splits.size() > 1;
          break;
        }
        case Action::Exit: {
          uint32_t gone = x.active;
          split.pc = pc + 1;
          split.resumed = false;
          exitLanes(x, split, gone);
          if (!split.mask) {
            warp.splits.erase(warp.splits.begin() + index);
            reschedule = true;
          }
          break;
        }
        case Action::Block:
          split.resumed = split.block != BlockKind::Converge;
          reschedule = true;
          break;
        case Action::Fault:
          stop = true;
          quantum = 0;
          reschedule = true;
          break;
        }
      }
      if (warp.splits.size() > 1 && !reschedule) {
        // Merge with splits that wait at the same place; let a lower one run.
        Split *current = &warp.splits[index];
        for (unsigned i = 0; i < warp.splits.size(); ++i) {
          Split &s = warp.splits[i];
          if (i == index)
            continue;
          if (s.pc == current->pc && !s.resumed && !current->resumed &&
              (s.block == BlockKind::None || s.block == BlockKind::Converge)) {
            current->mask |= s.mask;
            warp.splits.erase(warp.splits.begin() + i);
            reschedule = true;
            break;
          }
          if (!forced && s.block == BlockKind::None && s.pc < current->pc)
            reschedule = true;
        }
      }
    }
    // Splits may have become equal by blocking or branching.
    for (unsigned i = 0; i < warp.splits.size(); ++i)
      for (unsigned j = i + 1; j < warp.splits.size();) {
        Split &a = warp.splits[i], &b = warp.splits[j];
        auto open = [](const Split &s) {
          return !s.resumed &&
                 (s.block == BlockKind::None || s.block == BlockKind::Converge);
        };
        if (a.pc == b.pc && open(a) && open(b)) {
          a.mask |= b.mask;
          a.block = BlockKind::None;
          warp.splits.erase(warp.splits.begin() + j);
        } else {
          ++j;
        }
      }
  }
  x.cluster.steps += executed;
  x.cluster.laneCount += lanes;
}

//===----------------------------------------------------------------------===//
// Schedules
//===----------------------------------------------------------------------===//

/// Finishes an engine operation whose stream has no earlier one.
static bool completeEngineOp(Cluster &cluster, bool random) {
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
  cluster.advance();
  return true;
}

bool Machine::step(Cluster &cluster) {
  size_t n = cluster.warps.size();
  bool random = config.schedule == Schedule::Random;
  Exec x(*this, cluster);
  if (random && !cluster.engine.empty() &&
      config.asyncWrites != AsyncTiming::Completion && cluster.rng() % 4 == 0)
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
    for (Warp *warp : cluster.warps)
      if (!warp->cpOps.empty()) {
        x.warp = warp;
        x.cta = warp->cta;
        CpAsyncOp &op = warp->cpOps.front();
        completeCpAsync(x, *warp, op);
        cluster.advance();
        return true;
      }
    if (!spinning || ++cluster.idleRounds > 64) {
      reportDeadlock(cluster);
      stop = true;
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
  if (cluster.steps > llvm::SaturatingMultiply<uint64_t>(config.stepLimit,
                                                         cluster.ctas.size())) {
    x.warp = chosen;
    x.cta = chosen->cta;
    Finding f;
    f.kind = FindingKind::StepLimit;
    f.message = llvm::formatv("stopped after {0} warp instructions of one "
                              "cluster: an infinite loop?",
                              cluster.steps);
    f.second = x.siteOf(x.pc, chosen->cta, chosen->id, -1);
    report(std::move(f));
    stop = true;
    return false;
  }
  return true;
}

void Machine::reportDeadlock(Cluster &cluster) {
  Exec x(*this, cluster);
  std::string waiters;
  llvm::raw_string_ostream os(waiters);
  std::optional<Site> first;
  unsigned count = 0;
  for (Warp *warp : cluster.warps)
    for (const Split &s : warp->splits) {
      x.warp = warp;
      Site site = x.siteOf(s.pc, warp->cta, warp->id, -1);
      if (!first)
        first = site;
      if (++count > 64)
        continue;
      os << llvm::formatv("; CTA ({0},{1},{2}) warp {3} lanes {4:x} at line "
                          "{5}: ",
                          warp->cta->id[0], warp->cta->id[1], warp->cta->id[2],
                          warp->id, s.mask, site.ptxLine);
      switch (s.block) {
      case BlockKind::None:
        os << "polls";
        if (s.pollAddress) {
          uint32_t rank = s.pollAddress >> 24 & 0xff;
          uint32_t offset = (s.pollAddress & 0xffffff) - SharedBase;
          os << llvm::formatv(" the mbarrier at shared offset {0}", offset);
          if (rank < cluster.ctas.size()) {
            auto it = cluster.ctas[rank]->mbarriers.find(offset);
            if (it != cluster.ctas[rank]->mbarriers.end())
              os << llvm::formatv(
                  " (phase {0}, {1} of {2} arrivals pending, {3} bytes "
                  "pending)",
                  it->second.phase, it->second.pending, it->second.expected,
                  it->second.tx);
          }
        }
        break;
      case BlockKind::Converge:
        os << "waits for the other lanes of its warp";
        break;
      case BlockKind::WarpSync:
        os << llvm::formatv("waits in bar.warp.sync for lanes {0:x}", s.arg);
        break;
      case BlockKind::NamedBarrier: {
        const NamedBarrier &b = warp->cta->barriers[s.arg];
        os << llvm::formatv("waits at barrier {0} ({1} of {2} threads arrived)",
                            s.arg, b.arrived, b.expected);
        break;
      }
      case BlockKind::ClusterBarrier:
        os << "waits at the cluster barrier";
        break;
      case BlockKind::Mbarrier:
        os << "waits on an mbarrier";
        break;
      case BlockKind::Registers:
        os << llvm::formatv("waits for {0} registers a thread ({1} free in the "
                            "CTA)",
                            s.arg, warp->cta->freeRegisters);
        break;
      case BlockKind::TensorAlloc:
        os << "waits for tensor memory";
        break;
      case BlockKind::AsyncWait:
        os << "waits for its asynchronous operations";
        break;
      }
    }
  Finding f;
  f.kind = FindingKind::Deadlock;
  f.message = llvm::formatv("no thread can advance: {0} waiters", count).str() +
              waiters;
  f.second = first;
  report(std::move(f));
}

void Machine::finishCluster(Cluster &cluster) {
  ++finishedClusters;
  std::lock_guard<std::mutex> lock(reportMutex);
  Counters &c = cluster.counters;
  for (size_t i = 0; i < cluster.execCount.size(); ++i)
    if (cluster.execCount[i])
      c.classes[stringifyInstClass(program.code[i].cls).str()] +=
          cluster.execCount[i];
  for (size_t i = 0; i < cluster.execCount.size(); ++i)
    execCount[i] += cluster.execCount[i];
  c.warpInstructions = cluster.steps;
  c.laneInstructions = cluster.laneCount;
  result.counters.add(c);
}

void Machine::report(Finding finding) {
  if (parallel) {
    repeat = stop = true;
    return;
  }
  std::lock_guard<std::mutex> lock(reportMutex);
  std::string key = llvm::formatv(
      "{0}/{1}/{2}/{3}/{4}", int(finding.kind), int(finding.severity),
      finding.first ? finding.first->ptxLine : 0,
      finding.second ? finding.second->ptxLine : 0, finding.space);
  if (!finding.second)
    key += finding.message;
  auto [it, inserted] = seen.try_emplace(key, result.findings.size());
  if (!inserted) {
    if (it->second < result.findings.size())
      ++result.findings[it->second].occurrences;
    return;
  }
  if (result.findings.size() >= config.maxFindings) {
    ++result.findingsDropped;
    return;
  }
  result.findings.push_back(std::move(finding));
}

bool Machine::claimCluster(std::array<uint32_t, 3> &id) {
  if (nextCluster >= clusters[0] * clusters[1] * clusters[2])
    return false;
  uint32_t linear = nextCluster++;
  id = {linear % clusters[0], linear / clusters[0] % clusters[1],
        linear / clusters[0] / clusters[1]};
  return true;
}

double Machine::getFraction() const {
  double done = double(finishedClusters) /
                (uint64_t(clusters[0]) * clusters[1] * clusters[2]);
  if (config.expectedStores)
    done = std::max(done, double(storedBytes) / config.expectedStores);
  return std::min(done, 1.0);
}

void Machine::tick(Cluster &cluster) {
  if (!config.progress)
    return;
  uint64_t stores =
      cluster.counters.globalStoreBytes + cluster.counters.bulkStoreBytes;
  if (stores != cluster.reportedStores)
    storedBytes += stores - std::exchange(cluster.reportedStores, stores);
  if (std::this_thread::get_id() == caller)
    config.progress->update(getFraction());
  if (config.progress->isStopped())
    stop = true;
}

/// CTAs may wait for each other, so all that fit are resident at once.
void Machine::runInterleaved(uint32_t total) {
  std::vector<std::unique_ptr<Cluster>> resident;
  // Work stealing is only seen when not everything fits.
  size_t limit = std::max(1u, config.residentClusters);
  if (program.cancelsLaunches && total > 1)
    limit = std::min<size_t>(
        limit, config.schedule == Schedule::Random
                   ? 1 + (config.seed * 0x9E3779B97F4A7C15ull >> 33) % total
                   : (total + 1) / 2);
  while (!stop && (nextCluster < total || !resident.empty())) {
    while (nextCluster < total && resident.size() < limit)
      resident.push_back(createCluster(nextCluster++));
    for (size_t i = 0; i < resident.size() && !stop;) {
      bool more = true;
      for (unsigned k = 0; k < 16 && more && !stop; ++k)
        more = step(*resident[i]);
      tick(*resident[i]);
      if (more) {
        ++i;
        continue;
      }
      finishCluster(*resident[i]);
      resident.erase(resident.begin() + i);
    }
  }
  for (auto &cluster : resident)
    finishCluster(*cluster);
}

void Machine::runInOrder(uint32_t total) {
  for (uint32_t index = 0; index < total && !stop; ++index) {
    std::unique_ptr<Cluster> cluster = createCluster(index);
    while (!stop && step(*cluster))
      tick(*cluster);
    finishCluster(*cluster);
  }
}

void Machine::runParallel(uint32_t total, unsigned threads) {
  Memory::Snapshot before = memory.save();
  std::atomic<uint32_t> next{0};
  auto work = [&] {
    while (!stop) {
      uint32_t index = next++;
      if (index >= total)
        break;
      std::unique_ptr<Cluster> cluster = createCluster(index);
      while (!stop && step(*cluster))
        tick(*cluster);
      finishCluster(*cluster);
    }
  };
  parallel = true;
  std::vector<std::future<void>> pool;
  for (unsigned i = 1; i < threads; ++i)
    pool.push_back(std::async(std::launch::async, work));
  work();
  // Somebody may want to stop while only other threads are at work.
  for (std::future<void> &helper : pool)
    while (helper.wait_for(std::chrono::milliseconds(50)) !=
           std::future_status::ready)
      if (config.progress)
        config.progress->update(getFraction());
  parallel = false;
  if (!repeat || (config.progress && config.progress->isStopped()))
    return;
  // Clusters that have met in memory, or one that is wrong: what is seen of
  // that has to be the same each time.
  memory.restore(before);
  result = RunReport();
  execCount.assign(program.code.size(), 0);
  stop = false;
  finishedClusters = storedBytes = 0;
  globalShadow.init(globalShadow.getGranule());
  runInOrder(total);
}

RunReport Machine::run() {
  auto begin = std::chrono::steady_clock::now();
  uint32_t total = clusters[0] * clusters[1] * clusters[2];
  globalShadow.init(std::max(program.globalGranule, 1u));
  execCount.assign(program.code.size(), 0);
  unsigned threads =
      config.threads ? config.threads : std::thread::hardware_concurrency();
  threads = std::max(1u, std::min<unsigned>(threads, total));
  if (config.tracedClusters) {
    threads = 1;
    result.trace = std::make_shared<Trace>();
    describeInstructions(program, *result.trace);
  }
  if (program.communicates)
    runInterleaved(total);
  else if (threads == 1)
    runInOrder(total);
  else
    runParallel(total, threads);
  result.completed = !stop;
  for (size_t i = 0; i < execCount.size(); ++i)
    if (execCount[i])
      result.lines[program.code[i].line] += execCount[i];
  llvm::sort(result.findings, [](const Finding &a, const Finding &b) {
    auto key = [](const Finding &f) {
      return std::make_tuple(int(f.severity), int(f.kind),
                             f.second ? f.second->ptxLine : 0,
                             f.first ? f.first->ptxLine : 0, f.message);
    };
    return key(a) < key(b);
  });
  result.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  return std::move(result);
}

void mlir::attn::sim::wake(Cluster &cluster, Cta *cta, BlockKind kind,
                           uint64_t arg, uint64_t generation) {
  for (Warp *warp : cluster.warps) {
    if (cta && warp->cta != cta)
      continue;
    for (Split &s : warp->splits)
      if (s.block == kind && s.arg == arg && s.generation <= generation)
        s.block = BlockKind::None;
  }
}
