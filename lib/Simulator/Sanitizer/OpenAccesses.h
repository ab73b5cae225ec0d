//===- OpenAccesses.h - What signals to other CTAs overtake -----*- C++ -*-===//
//
// A warp goes on behind a load before it has read, until an instruction needs
// one of its registers, and behind a store before other CTAs see it. Signals
// with the scope of the CTA order both for the CTA, but overtake them on their
// way to another one (assumption A4).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_OPENACCESSES_H
#define ATTN_LIB_SIMULATOR_SANITIZER_OPENACCESSES_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// The executing warp has loaded; nothing has used it yet.
void noteLoad(Exec &x, const Inst &I);
/// The warp is about to execute an instruction that may use what was loaded.
void noteUse(Warp &warp, const Inst &I);
/// The executing warp stores.
void noteStore(Exec &x);
/// What the executing warp has stored, and what it knows that others of the CTA
/// have, reaches other CTAs before what follows.
void completeStores(Exec &x);
/// The same, and what they have loaded has been read.
void completeAccesses(Exec &x);
/// Adds the warp's open accesses to what it publishes.
void publishOpen(const Warp &warp, Knowledge &to);
/// What is published goes to another CTA by an instruction.
void nameSignal(Knowledge &published, uint32_t inst);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_OPENACCESSES_H
