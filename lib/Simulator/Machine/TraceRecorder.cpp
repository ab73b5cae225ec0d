//===- TraceRecorder.cpp - Records one cluster ----------------------------===//

#include "TraceRecorder.h"
#include "Exec.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;

/// A recording beyond this is cut off.
static constexpr size_t maxEvents = 1 << 22;

void mlir::attn::sim::describeInstructions(const ProgramImpl &program,
                                           Trace &trace) {
  for (const Inst &inst : program.code) {
    TraceInstruction info;
    info.line = inst.line;
    info.text = inst.text.str();
    info.cls = stringifyInstClass(inst.cls).str();
    for (unsigned i = 0; i < inst.numOps; ++i) {
      if (inst.ops[i].cls == RegClass::Sink)
        continue;
      (inst.writes(i) ? info.writes : info.reads).push_back(inst.ops[i].meta);
    }
    if (inst.hasGuard)
      info.reads.push_back(inst.guardMeta);
    trace.instructions.push_back(std::move(info));
  }
}

TraceRecorder::TraceRecorder(Trace &trace, const Cluster &cluster,
                             bool notesSync)
    : trace(trace), notesSync(notesSync), firstCta(trace.ctas.size()),
      polls(cluster.warps.size()) {
  for (const auto &cta : cluster.ctas) {
    CtaTrace recorded;
    recorded.id = cta->id;
    recorded.cluster = cluster.linear;
    recorded.warps.resize(cta->warps.size());
    trace.ctas.push_back(std::move(recorded));
  }
}

std::vector<TraceEvent> &TraceRecorder::eventsOf(const Warp &warp) {
  return trace.ctas[firstCta + warp.cta->rank].warps[warp.id].events;
}

void TraceRecorder::add(const Warp &warp, TraceEvent event) {
  if (notesSync)
    return;
  std::vector<TraceEvent> &events = eventsOf(warp);
  if (events.size() >= maxEvents)
    ++trace.dropped;
  else
    events.push_back(event);
}

TraceRecorder::Before TraceRecorder::look(const Cluster &cluster) const {
  const Counters &c = cluster.counters;
  Before b;
  for (const auto &entry : c.shared)
    b.wavefronts += entry.second.wavefronts;
  b.sectors = c.globalLoadSectors + c.globalStoreSectors;
  b.bytes = c.bulkLoadBytes + c.bulkStoreBytes;
  b.flops = c.mmaFlops;
  b.operations = cluster.engine.size();
  return b;
}

void TraceRecorder::executed(const Exec &x, const Before &before) {
  Before now = look(x.cluster);
  if (notesSync)
    noteSync(x, now.bytes - before.bytes);
  // A copy between memories is asked for the sectors that it reads.
  uint64_t traffic = now.sectors > before.sectors
                         ? now.sectors - before.sectors
                         : now.wavefronts - before.wavefronts;
  TraceEvent event;
  event.index = x.pc;
  event.traffic = std::min<uint64_t>(traffic, 0xffff);
  event.amount = now.flops - before.flops;
  addStep(x, event);
  for (size_t i = before.operations; i < x.cluster.engine.size(); ++i) {
    uint32_t index = trace.operations.size();
    operations[x.cluster.engine[i].get()] = index;
    TraceOperation operation;
    operation.instruction = x.pc;
    operation.cta = firstCta + x.warp->cta->rank;
    operation.work = x.cluster.engine[i]->getWork();
    trace.operations.push_back(operation);
    event.kind = TraceEvent::Start;
    event.index = index;
    event.amount = now.bytes > before.bytes
                       ? (now.bytes - before.bytes) /
                             (x.cluster.engine.size() - before.operations)
                       : event.amount;
    add(*x.warp, event);
  }
}

void TraceRecorder::skipped(const Exec &x) {
  TraceEvent event;
  event.index = x.pc;
  addStep(x, event);
}

void TraceRecorder::addStep(const Exec &x, TraceEvent event) {
  size_t place = eventsOf(*x.warp).size();
  add(*x.warp, event);
  if (eventsOf(*x.warp).size() == place)
    return;
  for (auto &[pc, poll] : polls[x.warp->index])
    if ((x.splitMask & ~poll.lanes) == 0)
      poll.steps.push_back(place);
}

uint32_t TraceRecorder::getToken(const Key &key, const std::string &name,
                                 int64_t cta) {
  auto [it, inserted] = tokens.try_emplace(key, trace.tokens.size());
  if (inserted)
    trace.tokens.push_back({name, 0, cta});
  return it->second;
}

void TraceRecorder::arrive(const Warp &warp, int barrier, uint64_t generation) {
  uint64_t cta = barrier < 0 ? 0 : warp.cta->rank;
  std::string name =
      barrier < 0 ? "cluster barrier" : "barrier " + std::to_string(barrier);
  uint32_t token = getToken({barrier, cta, generation}, name,
                            barrier < 0 ? -1 : int64_t(firstCta + cta));
  ++trace.tokens[token].signals;
  add(warp, {TraceEvent::Signal, 0, token, 0});
}

void TraceRecorder::wait(const Warp &warp, int barrier, uint64_t generation) {
  uint64_t cta = barrier < 0 ? 0 : warp.cta->rank;
  auto it = tokens.find({barrier, cta, generation});
  if (it != tokens.end())
    add(warp, {TraceEvent::Wait, 0, it->second, 0});
}

static std::tuple<int, uint64_t, uint64_t> keyOf(const Mbarrier &b,
                                                 uint64_t phase) {
  return {64, b.actor, phase};
}

void TraceRecorder::signal(const Mbarrier &b, const Warp *warp) {
  uint32_t token = getToken(keyOf(b, b.phase),
                            llvm::formatv("mbarrier of line {0}",
                                          trace.instructions[b.initInst].line),
                            firstCta + b.rank);
  if (current >= 0) {
    trace.operations[current].tokens.push_back(token);
  } else if (warp) {
    add(*warp, {TraceEvent::Signal, 0, token, 0});
  } else {
    return;
  }
  ++trace.tokens[token].signals;
}

/// How many failing polls there were says nothing about time.
void TraceRecorder::dropPolls(const Warp &warp, uint32_t pc) {
  auto &known = polls[warp.index];
  auto found = known.find(pc);
  if (found == known.end())
    return;
  std::vector<size_t> steps = std::move(found->second.steps);
  known.erase(found);
  std::vector<TraceEvent> &events = eventsOf(warp);
  // Where an event has got to.
  auto moved = [&](size_t place) {
    return place - (llvm::lower_bound(steps, place) - steps.begin());
  };
  for (auto &[other, poll] : known) {
    llvm::erase_if(poll.steps, [&](size_t place) {
      return std::binary_search(steps.begin(), steps.end(), place);
    });
    for (size_t &place : poll.steps)
      place = moved(place);
  }
  size_t kept = steps.empty() ? events.size() : steps.front();
  size_t next = 0;
  for (size_t place = kept; place < events.size(); ++place) {
    if (next < steps.size() && steps[next] == place)
      ++next;
    else
      events[kept++] = events[place];
  }
  events.resize(kept);
}

void TraceRecorder::polled(const Exec &x, const Mbarrier &b, bool succeeded) {
  // Lanes that poll elsewhere have given up what they polled before.
  auto &known = polls[x.warp->index];
  for (auto poll = known.begin(); poll != known.end();)
    poll = poll->first != x.pc && (poll->second.lanes & x.splitMask) != 0
               ? known.erase(poll)
               : std::next(poll);
  if (!succeeded) {
    known[x.pc].lanes |= x.splitMask;
    return;
  }
  dropPolls(*x.warp, x.pc);
  if (b.phase == 0)
    return;
  auto it = tokens.find(keyOf(b, b.phase - 1));
  if (it != tokens.end())
    add(*x.warp, {TraceEvent::Wait, 0, it->second, 0});
}

void TraceRecorder::begins(const EngineOp &op) {
  auto it = operations.find(&op);
  current = it == operations.end() ? -1 : int64_t(it->second);
}

void TraceRecorder::ended(const EngineOp &op, const Cluster &cluster,
                          size_t before) {
  // What it has started itself counts as a part of it.
  if (current >= 0)
    for (size_t i = before; i < cluster.engine.size(); ++i)
      operations[cluster.engine[i].get()] = current;
  operations.erase(&op);
  current = -1;
}
