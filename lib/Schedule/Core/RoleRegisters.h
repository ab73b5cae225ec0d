//===- RoleRegisters.h - Registers that roles of warps divide ---*- C++ -*-===//
//
// A kernel starts with as many registers for each thread as the file has for
// all of them; what the warpgroups of its roles ask for comes out of these.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_ROLEREGISTERS_H
#define ATTN_LIB_SCHEDULE_CORE_ROLEREGISTERS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::attn {

/// Returns the registers that a thread of each of `warpgroups` warpgroups gets
/// where the others of a CTA of `threads` threads take `taken` together.
inline int64_t divideRegisters(int64_t threads, int64_t taken,
                               int64_t warpgroups) {
  constexpr int64_t kWarpgroup = 128, kMost = 240, kUnit = 8;
  int64_t start = llvm::alignDown(kRegisterFile / threads, kUnit);
  int64_t left = start * threads / kWarpgroup - taken;
  return std::min<int64_t>(kMost, llvm::alignDown(left / warpgroups, kUnit));
}

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_ROLEREGISTERS_H
