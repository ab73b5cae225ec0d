//===- Replay.cpp - Times for a recorded launch ---------------------------===//

#include "Replayer.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using N = CycleNumber;

llvm::StringRef mlir::attn::sim::stringifyActivity(Activity activity) {
  static const StringRef names[] = {"compute", "special", "tensor", "shared",
                                    "global",  "copy",    "wait"};
  return names[unsigned(activity)];
}

Groups *WarpState::getGroups(Group group) {
  switch (group) {
  case Group::None:
    return nullptr;
  case Group::Copies:
    return &copies;
  case Group::Products:
    return &products;
  case Group::Bulk:
    return &bulk;
  case Group::TmemLoads:
    return &tmemLoads;
  case Group::TmemStores:
    return &tmemStores;
  }
  llvm_unreachable("unknown group");
}

void Replayer::startCluster(double time) {
  unsigned first = clusterSize * nextCluster++;
  for (unsigned cta = first; cta < first + clusterSize; ++cta)
    for (unsigned w = 0; w < liveWarps[cta]; ++w) {
      WarpState &warp = warps[firstWarp[cta] + w];
      warp.time = warp.fence = time;
      warp.ready.assign(numRegisters, 0);
      warp.issued.assign(numbers[N::ScheduleWindow], 0);
      queue.push({time, firstWarp[cta] + w});
    }
}

void Replayer::addSpan(unsigned row, Activity activity, double begin,
                       double end, uint32_t instruction) {
  std::vector<TimelineSpan> &spans = result.rows[row].spans;
  result.cycles = std::max(result.cycles, end);
  if (!spans.empty() && spans.back().activity == activity &&
      begin - spans.back().end < 8) {
    spans.back().end = std::max(spans.back().end, end);
    return;
  }
  if (!spans.empty())
    begin = std::max(begin, spans.back().end);
  if (end > begin)
    spans.push_back({activity, begin, end, instruction});
}

void Replayer::stall(unsigned index, double until, uint32_t instruction,
                     const std::string &why) {
  WarpState &warp = warps[index];
  if (until <= warp.time)
    return;
  result.stalls[why] += until - warp.time;
  addSpan(index, Activity::Wait, warp.time, until, instruction);
  warp.time = until;
}

void Replayer::signal(uint32_t token, double time, unsigned cta) {
  TokenState &state = tokens[token];
  int64_t home = trace.tokens[token].cta;
  bool isRemote = home < 0 ? clusterSize > 1 : cta != home;
  if (isRemote)
    time += numbers[N::RemoteLatency];
  state.time = std::max(state.time, time);
  if (--state.missing)
    return;
  result.barriers.push_back({trace.tokens[token].name, cta, state.time});
  for (unsigned index : state.waiters)
    queue.push({std::max(state.time, warps[index].time), index});
  state.waiters.clear();
}

double Replayer::getStart(const WarpState &warp,
                          const TraceEvent &event) const {
  if (event.kind != TraceEvent::Execute)
    return warp.time;
  const CycleCost &cost = costs[event.index];
  const TraceInstruction &inst = trace.instructions[event.index];
  double start =
      std::max(warp.fence, warp.issued[warp.count % warp.issued.size()]);
  for (unsigned memory : {0, 1})
    if (cost.loads >> memory & 1)
      start = std::max(start, warp.stores[memory]);
  for (uint32_t reg : inst.reads)
    start = std::max(start, double(warp.ready[reg]));
  return start;
}

double Replayer::useUnit(WarpState &warp, const CycleCost &cost,
                         const TraceEvent &event, double &start, double &end) {
  auto &units = sms[warp.sm].units;
  double length = cost.interval + cost.perTraffic * event.traffic +
                  cost.perFlop * event.amount;
  double begin =
      units[unsigned(cost.unit)][cost.isShared ? 0 : warp.scheduler].reserve(
          start, length);
  busy[unsigned(cost.unit)] += length;
  ++instructions[unsigned(cost.unit)];
  if (cost.perTraffic && cost.isShared) {
    wavefronts += event.traffic;
    // Warps go first: what they take is missing to operands and copies.
    usePort(warp.sm, start, length);
  }
  tmemBytes += cost.tmemBytes;
  // A full queue holds the warp.
  if (cost.queue)
    start = std::max(start, begin - cost.queue);
  double done = begin + std::max(length, 1.0) + cost.latency;
  end = std::max(end, begin + length);
  if (cost.alsoFma) {
    units[unsigned(Unit::Fma)][warp.scheduler].reserve(start, cost.alsoFma);
    busy[unsigned(Unit::Fma)] += cost.alsoFma;
  }
  if (cost.l2PerTraffic) {
    double bytes = cost.l2PerTraffic * event.traffic;
    double l2 = units[unsigned(Unit::L2)][0].reserve(begin, bytes) + bytes;
    busy[unsigned(Unit::L2)] += bytes;
    done = std::max(done, l2 + cost.latency);
    result.cycles = std::max(result.cycles, l2);
  }
  return done;
}

void Replayer::execute(WarpState &warp, unsigned index,
                       const TraceEvent &event) {
  const CycleCost &cost = costs[event.index];
  const TraceInstruction &inst = trace.instructions[event.index];
  double start = getStart(warp, event);
  double done = start;
  if (!cost.isFree) {
    double slots = 4 * cost.issues / numbers[N::IssueLanes];
    start = sms[warp.sm].units[unsigned(Unit::Issue)][warp.scheduler].reserve(
        start, slots);
    busy[unsigned(Unit::Issue)] += slots;
    issues += cost.issues;
    done = start + cost.latency;
  }
  double end = start + 1;
  if (cost.unit != Unit::None)
    done = useUnit(warp, cost, event, start, end);
  for (uint32_t reg : inst.writes)
    warp.ready[reg] = done;
  if (!cost.isFree) {
    if (start > warp.time + 4) {
      result.stalls["data and units"] += start - warp.time;
      addSpan(index, Activity::Wait, warp.time, start, event.index);
    }
    warp.time = std::max(warp.time, start);
    warp.issued[warp.count++ % warp.issued.size()] = warp.time;
    for (unsigned memory : {0, 1})
      if (cost.stores >> memory & 1)
        warp.stores[memory] = warp.time;
    addSpan(index, cost.activity, start, end, event.index);
  }
  advanceGroups(warp, index, event, done);
}

void Replayer::advanceGroups(WarpState &warp, unsigned index,
                             const TraceEvent &event, double done) {
  const CycleCost &cost = costs[event.index];
  Groups *groups = warp.getGroups(cost.group);
  if (!groups)
    return;
  if (cost.step == GroupStep::Add) {
    groups->open = std::max(groups->open, done);
  } else if (cost.step == GroupStep::Commit) {
    groups->commit();
  } else {
    double until = groups->getEnd(cost.left);
    if (cost.waitsForAll)
      until = std::max(until, groups->open);
    // Only what comes out of the warp waits for its stores to tensor memory:
    // ptxas goes on with arithmetic.
    if (cost.group == Group::TmemStores) {
      warp.storesEnd = std::max(warp.storesEnd, until);
      return;
    }
    stall(index, until, event.index, "asynchronous operations");
    warp.fence = warp.time;
  }
}

bool Replayer::step(unsigned index) {
  WarpState &warp = warps[index];
  const TraceEvent &event = (*warp.events)[warp.next];
  switch (event.kind) {
  case TraceEvent::Execute:
    execute(warp, index, event);
    break;
  case TraceEvent::Start:
    startOperation(index, event);
    break;
  case TraceEvent::Signal:
    signal(event.index, std::max(warp.time, warp.storesEnd), warp.cta);
    break;
  case TraceEvent::Wait: {
    TokenState &token = tokens[event.index];
    if (token.missing) {
      token.waiters.push_back(index);
      return false;
    }
    uint32_t instruction = 0;
    if (warp.next)
      instruction = (*warp.events)[warp.next - 1].index;
    ++barrierWaits;
    stall(index,
          token.time + numbers[N::BarrierLatency] * numbers[N::LatencyFactor],
          instruction,
          StringRef(trace.tokens[event.index].name).split(' ').first.str());
    warp.fence = warp.time;
    break;
  }
  }
  ++warp.next;
  return true;
}

void Replayer::addWarps() {
  for (const TraceInstruction &inst : trace.instructions) {
    for (uint32_t reg : inst.reads)
      numRegisters = std::max(numRegisters, reg + 1);
    for (uint32_t reg : inst.writes)
      numRegisters = std::max(numRegisters, reg + 1);
    result.lines.push_back(inst.line);
    result.texts.push_back(inst.text);
  }
  for (const TraceToken &token : trace.tokens)
    tokens.push_back({token.signals, 0, {}});
  clusterSize = trace.getClusterSize();
  sms.resize(clusterSize);
  liveCtas.assign(trace.ctas.size() / clusterSize, clusterSize);
  // A row for each warp, then one for the operations of each CTA.
  for (auto [index, cta] : llvm::enumerate(trace.ctas)) {
    result.ctas.push_back(cta.id);
    firstWarp.push_back(warps.size());
    liveWarps.push_back(cta.warps.size());
    for (auto [w, recorded] : llvm::enumerate(cta.warps)) {
      WarpState warp;
      warp.events = &recorded.events;
      warp.scheduler = w % 4;
      warp.cta = index;
      // The CTAs of a cluster have an SM each.
      warp.sm = index % clusterSize;
      warps.push_back(std::move(warp));
      result.rows.push_back({unsigned(index), int(w), {}});
    }
  }
  for (size_t index = 0; index < trace.ctas.size(); ++index)
    result.rows.push_back({unsigned(index), -1, {}});
}

void Replayer::finish(const WarpState &warp) {
  result.cycles = std::max(result.cycles, warp.time);
  if (--liveWarps[warp.cta])
    return;
  if (--liveCtas[warp.cta / clusterSize])
    return;
  if (nextCluster < liveCtas.size())
    startCluster(warp.time);
}

void Replayer::runWarps() {
  while (!queue.empty()) {
    auto [time, index] = queue.top();
    queue.pop();
    WarpState &warp = warps[index];
    bool isBlocked = false;
    while (!isBlocked && warp.next < warp.events->size()) {
      double start = getStart(warp, (*warp.events)[warp.next]);
      // Somebody else comes first.
      if (start > time && !queue.empty() && start > queue.top().first) {
        queue.push({start, index});
        break;
      }
      isBlocked = !step(index);
    }
    if (!isBlocked && warp.next == warp.events->size())
      finish(warp);
  }
}

void Replayer::summarise() {
  static const StringRef unitNames[] = {"none", "issue", "alu", "fma",
                                        "xu",   "fp64",  "mma", "tmem",
                                        "lsu",  "port",  "L2",  "tensor"};
  double count = sms.size();
  for (unsigned unit = 1; unit < numUnits; ++unit) {
    bool shared = unit >= unsigned(Unit::Lsu);
    if (busy[unit])
      result.busy[unitNames[unit].str()] =
          busy[unit] / (shared ? 1 : 4) / count;
  }
  const std::pair<StringRef, double> found[] = {
      {"issue", issues},
      {"mufu", instructions[unsigned(Unit::Special)]},
      {"fma", instructions[unsigned(Unit::Fma)]},
      {"alu", instructions[unsigned(Unit::Alu)]},
      {"products", products},
      {"shared_wavefronts", wavefronts},
      {"shared_bytes", sharedBytes},
      {"tmem_bytes", tmemBytes},
      {"barrier_waits", barrierWaits}};
  for (auto [name, value] : found)
    result.counts[name.str()] = value / count;
}

Expected<Timeline> Replayer::run() {
  if (trace.dropped)
    return createStringError("expected a trace of at most 4194304 steps of a "
                             "warp, got " +
                             llvm::Twine(trace.dropped) + " more");
  addWarps();
  while (nextCluster < liveCtas.size() && nextCluster < resident)
    startCluster(0);
  runWarps();
  size_t left = llvm::count_if(liveWarps, [](unsigned live) { return live; });
  if (left)
    return createStringError("expected a trace whose waits all end, got " +
                             llvm::Twine(left) + " CTAs that do not");
  summarise();
  return std::move(result);
}

Expected<Timeline> mlir::attn::sim::replay(const Trace &trace,
                                           const CycleNumbers &numbers,
                                           unsigned resident) {
  return Replayer(trace, numbers, std::max(resident, 1u)).run();
}

Expected<Timeline> mlir::attn::sim::replay(const Trace &trace,
                                           const TargetRow &target,
                                           unsigned resident) {
  return replay(trace, getCycleTable(target).getNominal(), resident);
}
