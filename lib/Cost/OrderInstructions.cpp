//===- OrderInstructions.cpp - As ptxas would order them ------------------===//

#include "OrderInstructions.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir::attn::sim;

namespace {

/// Orders the events of one basic block.
class BlockOrder {
public:
  BlockOrder(const Trace &trace, const std::vector<bool> &isArithmetic,
             llvm::ArrayRef<TraceEvent> events)
      : trace(trace), isArithmetic(isArithmetic), events(events),
        before(events.size()), isDone(events.size(), false) {}

  void appendTo(std::vector<TraceEvent> &ordered);

private:
  /// Arithmetic waits for somebody who needs it; all else keeps its order.
  bool isPatient(const TraceEvent &event) const {
    return event.kind == TraceEvent::Execute && isArithmetic[event.index];
  }
  void findOrder();
  /// The event, and before it all that has to come first.
  void append(size_t at, std::vector<TraceEvent> &ordered);

  const Trace &trace;
  const std::vector<bool> &isArithmetic;
  llvm::ArrayRef<TraceEvent> events;
  /// Events that have to come before each.
  std::vector<llvm::SmallVector<uint32_t, 4>> before;
  std::vector<bool> isDone;
};

} // namespace

void BlockOrder::findOrder() {
  llvm::DenseMap<uint32_t, uint32_t> writer;
  llvm::DenseMap<uint32_t, llvm::SmallVector<uint32_t, 2>> readers;
  for (auto [i, event] : llvm::enumerate(events)) {
    if (event.kind != TraceEvent::Execute)
      continue;
    const TraceInstruction &inst = trace.instructions[event.index];
    for (uint32_t reg : inst.reads) {
      if (auto it = writer.find(reg); it != writer.end())
        before[i].push_back(it->second);
      readers[reg].push_back(i);
    }
    for (uint32_t reg : inst.writes) {
      if (auto it = writer.find(reg); it != writer.end())
        before[i].push_back(it->second);
      for (uint32_t reader : readers[reg])
        if (reader != i)
          before[i].push_back(reader);
      readers[reg].clear();
      writer[reg] = i;
    }
  }
}

void BlockOrder::append(size_t at, std::vector<TraceEvent> &ordered) {
  llvm::SmallVector<uint32_t> needed;
  auto need = [&](uint32_t event) {
    if (!isDone[event])
      needed.push_back(event);
    isDone[event] = true;
  };
  need(at);
  for (size_t i = 0; i < needed.size(); ++i)
    llvm::for_each(before[needed[i]], need);
  // The order of the PTX is one in which nothing comes too late.
  llvm::sort(needed);
  for (uint32_t event : needed)
    ordered.push_back(events[event]);
}

void BlockOrder::appendTo(std::vector<TraceEvent> &ordered) {
  findOrder();
  // The branch or wait at the end stays there.
  size_t last = events.size() - 1;
  for (size_t i = 0; i < last; ++i)
    if (!isPatient(events[i]))
      append(i, ordered);
  for (size_t i = 0; i <= last; ++i)
    append(i, ordered);
}

void mlir::attn::sim::orderInstructions(Trace &trace) {
  static const llvm::StringSet<> arithmetic = {
      "alu",  "compare", "imad", "float",   "fma",   "half",
      "move", "special", "ex2",  "convert", "double"};
  std::vector<bool> isArithmetic;
  for (const TraceInstruction &inst : trace.instructions)
    isArithmetic.push_back(arithmetic.contains(inst.cls));
  for (CtaTrace &cta : trace.ctas)
    for (WarpTrace &warp : cta.warps) {
      std::vector<TraceEvent> ordered;
      ordered.reserve(warp.events.size());
      size_t begin = 0;
      for (size_t i = 0; i < warp.events.size(); ++i) {
        const TraceEvent &event = warp.events[i];
        bool endsBlock = event.kind == TraceEvent::Wait ||
                         (event.kind == TraceEvent::Execute &&
                          trace.instructions[event.index].cls == "branch");
        if (!endsBlock && i + 1 < warp.events.size())
          continue;
        BlockOrder(trace, isArithmetic,
                   llvm::ArrayRef(warp.events).slice(begin, i + 1 - begin))
            .appendTo(ordered);
        begin = i + 1;
      }
      warp.events = std::move(ordered);
    }
}
