//===- ReplayOperations.cpp - Times for what runs beside the warps --------===//

#include "Replayer.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using N = CycleNumber;

llvm::SmallVector<unsigned, 2> Replayer::getSms(const WarpState &warp,
                                                const TraceWork &work) const {
  if (work.ranks.empty())
    return {warp.sm};
  return {work.ranks.begin(), work.ranks.end()};
}

double Replayer::usePort(unsigned sm, double time, double cycles) {
  sharedBytes += cycles * numbers[N::SharedBytes];
  if (!numbers[N::OperandsShare] && !numbers[N::FillsShare])
    return time + cycles;
  Calendar &port = sms[sm].units[unsigned(Unit::Port)][0];
  port.reserve(time, cycles);
  busy[unsigned(Unit::Port)] += cycles;
  return port.getEnd();
}

void Replayer::awaitTensorCore(unsigned index,
                               const TraceOperation &operation) {
  unsigned depth = numbers[N::TensorDepth];
  for (unsigned sm : getSms(warps[index], operation.work)) {
    std::deque<double> &begins = sms[sm].begins;
    while (begins.size() > depth)
      begins.pop_front();
    if (depth && begins.size() == depth)
      stall(index, begins.front(), operation.instruction, "tensor core");
  }
}

/// Cycles and latency are those of CycleTable.cpp: N / 2 for 128 rows of an SM,
/// of which a single CTA's 64 take as many; longer where operands come from
/// shared memory more slowly.
double Replayer::startProduct(unsigned index, const TraceOperation &operation) {
  const TraceWork &work = operation.work;
  awaitTensorCore(index, operation);
  auto group = getSms(warps[index], work);
  bool isPair = group.size() > 1, isHalf = work.rows < 128;
  // FLOP of 16-bit elements: the 32 bytes of a row of A take as long whatever
  // their type is.
  double rows = isPair ? work.rows : std::max(work.rows, 128u);
  double length = rows * work.columns * 32 / numbers[N::TensorFlop];
  double latency = numbers[!isPair  ? N::TensorLatency
                           : isHalf ? N::HalfPairLatency
                                    : N::PairLatency];
  double done = length + latency, port = 0;
  if (numbers[N::OperandsShare]) {
    port = work.sharedBytes / numbers[N::SharedBytes];
    done += work.bytesOfA / numbers[N::SharedBytes];
  }
  if (isPair) {
    port += numbers[isHalf ? N::HalfPairOperands : N::PairOperands];
    length = std::max(length, numbers[N::PairInterval]);
  }
  double begin = warps[index].time, fetch = begin;
  for (unsigned sm : group) {
    begin = std::max(begin, sms[sm].tensorFree);
    // While the ones before it run, its operands are fetched.
    const std::deque<double> &begins = sms[sm].begins;
    size_t ahead = std::max(numbers[N::TensorDepth], 2.0) - 1;
    if (begins.size() >= ahead)
      fetch = std::max(fetch, begins[begins.size() - ahead]);
  }
  // What it takes longer than with all of the port.
  double end = begin + length, late = 0;
  for (unsigned sm : group) {
    double fetched = usePort(sm, fetch, port);
    late = std::max(late, fetched - (begin + std::max(length, port)));
    end = std::max(end, fetched);
  }
  for (unsigned sm : group) {
    sms[sm].tensorFree = end;
    sms[sm].begins.push_back(begin);
    busy[unsigned(Unit::TensorEngine)] += length;
    ++products;
  }
  addSpan(warps.size() + operation.cta, Activity::Tensor, begin, end,
          operation.instruction);
  return begin + done + late;
}

void Replayer::fill(unsigned sm, double time, double bytes) {
  // It comes at the speed of L2 and goes first, as what warps load does.
  constexpr double piece = 16;
  double each = piece * numbers[N::L2Bytes];
  for (; bytes > 0; bytes -= each, time += piece)
    usePort(sm, time, std::min(bytes, each) / numbers[N::SharedBytes]);
}

double Replayer::startCopy(unsigned index, const TraceOperation &operation,
                           double bytes) {
  double length = std::max(1.0, bytes / numbers[N::L2Bytes]);
  double latency = numbers[N::CopyLatency] * numbers[N::LatencyFactor];
  auto group = getSms(warps[index], operation.work);
  double begin = warps[index].time;
  for (unsigned sm : group) {
    begin = std::max(begin, sms[sm].units[unsigned(Unit::L2)][0].reserve(
                                warps[index].time, length));
    busy[unsigned(Unit::L2)] += length;
  }
  double end = begin + length + latency;
  // A store reads shared memory first, a load writes it last.
  bool isStore = operation.work.ranks.empty();
  for (unsigned sm : group)
    if (numbers[N::FillsShare])
      fill(sm, isStore ? begin : begin + latency, bytes);
    else
      sharedBytes += bytes;
  addSpan(warps.size() + operation.cta, Activity::Copy, begin, begin + length,
          operation.instruction);
  result.cycles = std::max(result.cycles, begin + length);
  return end;
}

double Replayer::startOther(unsigned index, const TraceOperation &operation) {
  const TraceInstruction &inst = trace.instructions[operation.instruction];
  if (inst.cls != "tcgen05") {
    double bytes = 0;
    double end = startCopy(index, operation, bytes);
    // What stores started goes at the speed of stores.
    return inst.cls == "bulk"
               ? end
               : end - numbers[N::CopyLatency] * numbers[N::LatencyFactor];
  }
  // Copies and shifts of tensor memory take their turn among the products.
  double length =
      std::max(1.0, operation.work.sharedBytes / numbers[N::SharedBytes]);
  double begin = warps[index].time;
  auto group = getSms(warps[index], operation.work);
  for (unsigned sm : group)
    begin = std::max(begin, sms[sm].tensorFree);
  double end = begin + length;
  for (unsigned sm : group)
    end = std::max(
        end, usePort(sm, begin,
                     operation.work.sharedBytes / numbers[N::SharedBytes]));
  for (unsigned sm : group) {
    sms[sm].tensorFree = end;
    busy[unsigned(Unit::TensorEngine)] += length;
  }
  addSpan(warps.size() + operation.cta, Activity::Tensor, begin, end,
          operation.instruction);
  return end + numbers[N::TensorLatency];
}

void Replayer::startOperation(unsigned index, const TraceEvent &event) {
  const TraceOperation &operation = trace.operations[event.index];
  double end = 0;
  switch (operation.work.kind) {
  case TraceWork::Product:
    end = startProduct(index, operation);
    break;
  case TraceWork::Copy:
    end = startCopy(index, operation, event.amount);
    break;
  case TraceWork::Commit:
    // The published latencies reach to the wake-up, as does signal().
    end = std::max(warps[index].time,
                   warps[index].productsEnd -
                       numbers[N::BarrierLatency] * numbers[N::LatencyFactor]);
    for (uint32_t token : operation.tokens)
      signal(token, end, trace.tokens[token].cta);
    return;
  case TraceWork::Other:
    end = startOther(index, operation);
    break;
  }
  WarpState &warp = warps[index];
  if (trace.instructions[operation.instruction].cls == "tcgen05")
    warp.productsEnd = std::max(warp.productsEnd, end);
  else
    warp.bulk.open = std::max(warp.bulk.open, end);
  for (uint32_t token : operation.tokens)
    signal(token, end, operation.cta);
}
