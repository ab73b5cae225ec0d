//===- Replay.cpp - Times for a recorded launch ---------------------------===//

#include "CycleCosts.h"
#include "attn/Cost/Timeline.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <deque>
#include <queue>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

llvm::StringRef mlir::attn::sim::stringifyActivity(Activity activity) {
  static const StringRef names[] = {"compute", "special", "tensor", "shared",
                                    "global",  "copy",    "wait"};
  return names[unsigned(activity)];
}

namespace {

/// Asynchronous operations of a warp that it commits in groups.
struct Groups {
  double open = 0; ///< when what is not committed yet ends
  std::deque<double> committed;

  void commit() {
    committed.push_back(
        std::max(open, committed.empty() ? 0 : committed.back()));
    open = 0;
  }
  /// When all but the `left` newest groups have ended.
  double getEnd(size_t left) const {
    return committed.size() > left ? committed[committed.size() - 1 - left] : 0;
  }
};

/// A unit's time in slices: what runs later may be placed before what does not
/// need the unit yet.
class Calendar {
public:
  /// Takes `length` cycles from `time` on; when they begin.
  double reserve(double time, double length) {
    if (length <= 0)
      return time;
    size_t slice = findFree(size_t(time / width));
    double begin = std::max(time, slice * width + used[slice]);
    for (double left = length; left > 0; slice = findFree(slice)) {
      double part = std::min(left, width - used[slice]);
      used[slice] += part;
      left -= part;
      if (used[slice] >= width - 1e-6)
        next[slice] = slice + 1;
    }
    return begin;
  }

private:
  static constexpr double width = 16;
  size_t findFree(size_t slice) {
    if (slice + 2 > used.size()) {
      size_t old = next.size();
      used.resize(2 * slice + 64, 0);
      next.resize(used.size());
      for (size_t i = old; i < next.size(); ++i)
        next[i] = i;
    }
    size_t found = slice;
    while (next[found] != found) {
      found = next[found];
      if (found + 2 > used.size())
        return findFree(found);
    }
    for (size_t i = slice; i != found;) {
      size_t after = next[i];
      next[i] = found;
      i = after;
    }
    return found;
  }
  std::vector<double> used;
  std::vector<size_t> next; ///< the slice itself while it has room
};

/// ptxas moves instructions up by about so many others.
constexpr unsigned window = 24;

struct WarpState {
  const std::vector<TraceEvent> *events = nullptr;
  size_t next = 0;
  /// When the newest instruction has issued.
  double time = 0;
  /// Nothing moves above the last wait, and no load above the last store to
  /// shared or global memory.
  double fence = 0;
  std::array<double, 2> stores = {0, 0};
  /// When the last instructions have issued.
  std::array<double, window> issued{};
  size_t count = 0;
  unsigned scheduler = 0;
  unsigned cta = 0;
  /// When each register may be read.
  std::vector<float> ready;
  Groups copies, products, bulk;
};

struct TokenState {
  uint32_t missing = 0;
  double time = 0;
  std::vector<unsigned> waiters;
};

class Replayer {
public:
  Replayer(const Trace &trace, const TargetRow &target, unsigned resident)
      : trace(trace), resident(resident), costs(makeCycleCosts(trace, target)) {
  }
  Expected<Timeline> run();

private:
  void startCta(double time);
  /// Runs one event; false when the warp waits for a token or has ended.
  bool step(unsigned index);
  /// When the event could begin.
  double getStart(const WarpState &warp, const TraceEvent &event) const;
  void execute(WarpState &warp, unsigned index, const TraceEvent &event);
  void startOperation(WarpState &warp, const TraceEvent &event);
  void signal(uint32_t token, double time, unsigned cta);
  void addSpan(unsigned row, Activity activity, double begin, double end,
               uint32_t instruction);
  void stall(unsigned index, double until, uint32_t instruction,
             const std::string &why);

  const Trace &trace;
  unsigned resident;
  std::vector<CycleCost> costs;
  uint32_t numRegisters = 0;
  std::vector<WarpState> warps;
  std::vector<unsigned> firstWarp, liveWarps; ///< by CTA
  unsigned nextCta = 0;
  std::vector<TokenState> tokens;
  std::array<std::array<Calendar, 4>, numUnits> units;
  std::array<double, numUnits> busy{};
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  Timeline result;
};

} // namespace

void Replayer::startCta(double time) {
  unsigned cta = nextCta++;
  for (unsigned w = 0; w < liveWarps[cta]; ++w) {
    WarpState &warp = warps[firstWarp[cta] + w];
    warp.time = warp.fence = time;
    warp.ready.assign(numRegisters, 0);
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
  double start = std::max(warp.fence, warp.issued[warp.count % window]);
  for (unsigned memory : {0, 1})
    if (cost.loads >> memory & 1)
      start = std::max(start, warp.stores[memory]);
  for (uint32_t reg : inst.reads)
    start = std::max(start, double(warp.ready[reg]));
  return start;
}

void Replayer::execute(WarpState &warp, unsigned index,
                       const TraceEvent &event) {
  const CycleCost &cost = costs[event.index];
  const TraceInstruction &inst = trace.instructions[event.index];
  double start = getStart(warp, event);
  double done = start;
  if (!cost.isFree) {
    start = units[unsigned(Unit::Issue)][warp.scheduler].reserve(start, 1);
    ++busy[unsigned(Unit::Issue)];
    done = start + cost.latency;
  }
  double end = start + 1;
  if (cost.unit != Unit::None) {
    double length = cost.interval + cost.perTraffic * event.traffic +
                    cost.perFlop * event.amount;
    double begin =
        units[unsigned(cost.unit)][cost.isShared ? 0 : warp.scheduler].reserve(
            start, length);
    busy[unsigned(cost.unit)] += length;
    // A full queue holds the warp.
    if (cost.queue)
      start = std::max(start, begin - cost.queue);
    done = begin + std::max(length, 1.0) + cost.latency;
    end = std::max(end, begin + length);
    if (cost.l2PerTraffic) {
      double bytes = cost.l2PerTraffic * event.traffic;
      double l2 = units[unsigned(Unit::L2)][0].reserve(begin, bytes) + bytes;
      busy[unsigned(Unit::L2)] += bytes;
      done = std::max(done, l2 + cost.latency);
      result.cycles = std::max(result.cycles, l2);
    }
  }
  for (uint32_t reg : inst.writes)
    warp.ready[reg] = done;
  if (!cost.isFree) {
    if (start > warp.time + 4) {
      result.stalls["data and units"] += start - warp.time;
      addSpan(index, Activity::Wait, warp.time, start, event.index);
    }
    warp.time = std::max(warp.time, start);
    warp.issued[warp.count++ % window] = warp.time;
    for (unsigned memory : {0, 1})
      if (cost.stores >> memory & 1)
        warp.stores[memory] = warp.time;
    addSpan(index, cost.activity, start, end, event.index);
  }
  Groups *groups = cost.group == Group::Copies     ? &warp.copies
                   : cost.group == Group::Products ? &warp.products
                   : cost.group == Group::Bulk     ? &warp.bulk
                                                   : nullptr;
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
    stall(index, until, event.index, "asynchronous operations");
    warp.fence = warp.time;
  }
}

void Replayer::startOperation(WarpState &warp, const TraceEvent &event) {
  const TraceOperation &operation = trace.operations[event.index];
  const CycleCost &cost = costs[operation.instruction];
  double length = std::max(1.0, event.amount * cost.enginePerUnit);
  double begin = units[unsigned(cost.engine)][0].reserve(warp.time, length);
  busy[unsigned(cost.engine)] += length;
  double end = begin + length + cost.engineLatency;
  warp.bulk.open = std::max(warp.bulk.open, end);
  addSpan(warps.size() + operation.cta,
          cost.engine == Unit::TensorEngine ? Activity::Tensor : Activity::Copy,
          begin, begin + length, operation.instruction);
  result.cycles = std::max(result.cycles, begin + length);
  for (uint32_t token : operation.tokens)
    signal(token, end, operation.cta);
}

bool Replayer::step(unsigned index) {
  WarpState &warp = warps[index];
  const TraceEvent &event = (*warp.events)[warp.next];
  switch (event.kind) {
  case TraceEvent::Execute:
    execute(warp, index, event);
    break;
  case TraceEvent::Start:
    startOperation(warp, event);
    break;
  case TraceEvent::Signal:
    signal(event.index, warp.time, warp.cta);
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
    stall(index, token.time + barrierLatency, instruction,
          StringRef(trace.tokens[event.index].name).split(' ').first.str());
    warp.fence = warp.time;
    break;
  }
  }
  ++warp.next;
  return true;
}

Expected<Timeline> Replayer::run() {
  if (trace.dropped)
    return createStringError("expected a trace of at most 4194304 steps of a "
                             "warp, got " +
                             llvm::Twine(trace.dropped) + " more");
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
      warps.push_back(std::move(warp));
      result.rows.push_back({unsigned(index), int(w), {}});
    }
  }
  for (size_t index = 0; index < trace.ctas.size(); ++index)
    result.rows.push_back({unsigned(index), -1, {}});
  unsigned left = trace.ctas.size();
  while (nextCta < trace.ctas.size() && nextCta < resident)
    startCta(0);
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
    if (isBlocked || warp.next < warp.events->size())
      continue;
    result.cycles = std::max(result.cycles, warp.time);
    if (--liveWarps[warp.cta])
      continue;
    --left;
    if (nextCta < trace.ctas.size())
      startCta(warp.time);
  }
  if (left)
    return createStringError("expected a trace whose waits all end, got " +
                             llvm::Twine(left) + " CTAs that do not");
  static const StringRef unitNames[] = {"none", "issue", "alu", "fma",
                                        "xu",   "fp64",  "mma", "lsu",
                                        "L2",   "tensor"};
  for (unsigned unit = 1; unit < numUnits; ++unit) {
    bool shared = unit >= unsigned(Unit::Lsu);
    if (busy[unit])
      result.busy[unitNames[unit].str()] = busy[unit] / (shared ? 1 : 4);
  }
  return std::move(result);
}

Expected<Timeline> mlir::attn::sim::replay(const Trace &trace,
                                           const TargetRow &target,
                                           unsigned resident) {
  return Replayer(trace, target, std::max(resident, 1u)).run();
}
