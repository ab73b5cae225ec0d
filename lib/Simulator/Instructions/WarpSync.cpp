//===- WarpSync.cpp - Instructions that need several lanes ----------------===//

#include "WarpSync.h"

using namespace mlir::attn::sim;

/// Checks the member masks of the executing lanes. The lanes of all of them, or
/// nothing after a fault.
static std::optional<uint32_t> collectMembers(Exec &x, const Operand &mask) {
  const uint32_t *masks = x.r32(mask);
  uint32_t all = 0;
  bool ok = true;
  auto fault = [&](const char *message, unsigned lane) {
    if (ok)
      x.fault(FindingKind::BarrierMisuse, message, lane);
    ok = false;
  };
  forLanes(x.active, [&](unsigned lane) {
    if (!(masks[lane] >> lane & 1))
      fault("the executing lane is not in its member mask", lane);
    all |= masks[lane];
  });
  // Groups of lanes may have masks of their own, but one each.
  forLanes(ok ? x.active : 0, [&](unsigned lane) {
    forLanes(masks[lane] & x.active, [&](unsigned other) {
      if (masks[other] != masks[lane])
        fault("a lane of the member mask executes the instruction with another "
              "mask",
              other);
    });
  });
  if (!ok)
    return std::nullopt;
  return all & x.warp->live;
}

void mlir::attn::sim::forEachGroup(
    Exec &x, const Operand &mask,
    llvm::function_ref<void(uint32_t members)> body) {
  std::optional<uint32_t> need = collectMembers(x, mask);
  if (!need || !x.converge(*need))
    return;
  if (*need & ~x.active)
    return x.fault(FindingKind::BarrierMisuse,
                   "lanes of the member mask do not execute the instruction",
                   llvm::countr_zero(*need & ~x.active));
  uint32_t active = x.active;
  for (uint32_t rest = active; rest && x.action != Action::Fault;) {
    uint32_t members = x.r32(mask)[llvm::countr_zero(rest)];
    x.active = members & active;
    body(members);
    rest &= ~members;
  }
  x.active = active;
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
