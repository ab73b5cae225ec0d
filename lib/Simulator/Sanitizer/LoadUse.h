//===- LoadUse.h - Loads that nothing has used ------------------*- C++ -*-===//
//
// A warp goes on behind a load before it has read, until an instruction needs
// one of its registers. Signals with the scope of the CTA order the read for
// the CTA, but overtake it on their way to another one (assumption A4).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_LOADUSE_H
#define ATTN_LIB_SIMULATOR_SANITIZER_LOADUSE_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// The executing warp has loaded; nothing has used it yet.
void noteLoad(Exec &x, const Inst &I);
/// The warp is about to execute an instruction that may use what was loaded.
void noteUse(Warp &warp, const Inst &I);
/// What the executing warp has loaded has been read, and what it knows that
/// others of the CTA have.
void completeLoads(Exec &x);
/// Adds the warp's unused loads to what it publishes.
void publishUnused(const Warp &warp, Knowledge &to);
/// What is published goes to another CTA by an instruction.
void nameSignal(Knowledge &published, uint32_t inst);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_LOADUSE_H
