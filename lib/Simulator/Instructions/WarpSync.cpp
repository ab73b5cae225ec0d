//===- WarpSync.cpp - Instructions that need several lanes ----------------===//

#include "WarpSync.h"

using namespace mlir::attn::sim;

bool mlir::attn::sim::gatherLanes(Exec &x, const Operand &mask,
                                  uint32_t &members) {
  members = x.r32(mask)[llvm::countr_zero(x.active)];
  bool ok = true, isOne = true;
  forLanes(x.active, [&](unsigned lane) {
    if (!ok)
      return;
    uint32_t own = x.r32(mask)[lane];
    isOne &= own == members;
    if (!(own >> lane & 1)) {
      x.fault(FindingKind::BarrierMisuse,
              "the executing lane is not in its member mask", lane);
      ok = false;
    }
  });
  // Groups of lanes may have masks of their own, but one each.
  forLanes(ok && !isOne ? x.active : 0, [&](unsigned lane) {
    uint32_t own = x.r32(mask)[lane];
    forLanes(own & x.active, [&](unsigned other) {
      if (!ok || x.r32(mask)[other] == own)
        return;
      x.fault(FindingKind::BarrierMisuse,
              "a lane of the member mask executes the instruction with another "
              "mask",
              other);
      ok = false;
    });
  });
  if (!ok)
    return false;
  uint32_t need = members & x.warp->live;
  if (!x.converge(need))
    return false;
  if (need & ~x.active) {
    x.fault(FindingKind::BarrierMisuse,
            "lanes of the member mask do not execute the instruction",
            llvm::countr_zero(need & ~x.active));
    return false;
  }
  return true;
}

bool mlir::attn::sim::gatherWarp(Exec &x) {
  if (!x.converge(x.warp->live))
    return false;
  if (x.active != x.splitMask) {
    x.fault(FindingKind::BarrierMisuse,
            "an aligned instruction is executed by some lanes of the warp only",
            llvm::countr_zero(x.splitMask & ~x.active));
    return false;
  }
  return true;
}
