//===- TensorShiftOps.cpp - Rows of tensor memory move down ---------------===//
//
// tcgen05.shift and the shift that `.ashift` adds to a product. The manual
// gives the shape 31x256b and an address whose lane is a multiple of 32: the 32
// lanes of one partition, eight columns of them, of which all but the last take
// the element of the next lane. A product reads its A before it is shifted.
//
//===----------------------------------------------------------------------===//

#include "../PTX/Decoder.h"
#include "TensorOperations.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Twine;

void TensorMemory::shiftRows(unsigned lane, uint32_t column) {
  unsigned first = lane / Partition * Partition;
  for (unsigned l = first; l + 1 < first + Partition; ++l) {
    unsigned to = l * Columns + column;
    std::copy_n(cells.begin() + to + Columns, ShiftColumns, cells.begin() + to);
    std::copy_n(valid.begin() + to + Columns, ShiftColumns, valid.begin() + to);
  }
}

void mlir::attn::sim::trackShift(Exec &x, Cta &cta, const Stamp &stamp,
                                 unsigned lane, uint32_t column) {
  unsigned first = lane / TensorMemory::Partition * TensorMemory::Partition;
  unsigned written = TensorMemory::Partition - 1;
  const Clock &know = x.warp->order.know.tensor;
  trackTensor(x, cta, stamp, know, RowShadow::range(first, written), column,
              TensorMemory::ShiftColumns, true);
  trackTensor(x, cta, stamp, know, RowShadow::range(first + written, 1), column,
              TensorMemory::ShiftColumns, false);
}

namespace {

struct TensorShiftOp : EngineOp {
  llvm::SmallVector<Cta *, 2> ctas;
  unsigned lane = 0;
  uint32_t column = 0;

  void complete(Cluster &) override {
    for (Cta *cta : ctas)
      tensorMemoryOf(*cta).shiftRows(lane, column);
  }
  std::string describe() const override { return "a tcgen05.shift"; }
  bool touches(const Cta *cta) const override {
    return llvm::is_contained(ctas, cta);
  }
};

/// flags: 1 in both CTAs of the pair. ops: the address.
void execTensorShift(Exec &x, const Inst &I) {
  if (!checkTensorGroup(x, I.flags ? TensorGroup::Pair : TensorGroup::Cta))
    return;
  forLanes(x.active, [&](unsigned thread) {
    if (x.action == Action::Fault)
      return;
    auto op = std::make_unique<TensorShiftOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    op->stream = x.warp->index + 1;
    uint32_t address = x.r32(I.ops[0])[thread] + uint32_t(I.imm);
    op->lane = address >> 16;
    op->column = address & 0xffff;
    if (op->lane % TensorMemory::Partition || op->lane >= TensorMemory::Lanes)
      return x.fault(FindingKind::TensorMemoryMisuse,
                     "expected a lane that is a multiple of 32 below 128, got "
                     "lane " +
                         Twine(op->lane),
                     thread);
    unsigned rank = x.cta->rank;
    op->ctas.push_back(x.cluster.ctas[I.flags ? rank & ~1u : rank].get());
    if (I.flags)
      op->ctas.push_back(x.cluster.ctas[rank | 1].get());
    Warp &w = *x.warp;
    uint32_t epoch = ++w.mma.epoch;
    if (!x.machine.config.assumes(Assumption::MmaOrder))
      w.tcgen05.pipelines.resize(epoch + 1, Tcgen05State::ShiftPipeline);
    Stamp stamp = x.stampHere(-1);
    stamp.actor = w.mma.actor;
    stamp.epoch = epoch;
    stamp.flags = Stamp::Async | Stamp::Tensor;
    for (Cta *cta : op->ctas) {
      if (!checkAllocated(x, *cta, op->column, TensorMemory::ShiftColumns,
                          "tcgen05.shift moves columns", thread))
        return;
      trackShift(x, *cta, stamp, op->lane, op->column);
      noteTensorUse(x, *cta);
    }
    rememberIssue(x, thread);
    startOperation(x, std::move(op));
  });
}

} // namespace

Error mlir::attn::sim::decodeTensorShift(Decoding &c) {
  c.take("shift");
  c.inst.flags = c.take("cta_group::2");
  if (!c.inst.flags && !c.take("cta_group::1"))
    return c.error("expected '.cta_group'");
  if (!c.take("down"))
    return c.error("expected '.down'");
  ATTN_SIM_TRY(c.expectOps(1, 1));
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  return c.set(execTensorShift, InstClass::Tcgen05);
}
