//===- WarpExit.h - What is left when threads exit --------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_WARPEXIT_H
#define ATTN_LIB_SIMULATOR_WARPEXIT_H

namespace mlir::attn::sim {

struct Warp;

/// Lanes of the warp have exited: counts it at barriers where only they were
/// missing, and checks what the last thread of a CTA leaves behind.
void exitAtBarriers(Warp &warp);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_WARPEXIT_H
