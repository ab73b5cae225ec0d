//===- TensorLoads.h - Registers that tcgen05.ld may still write -*- C++
//-*-===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_TENSORLOADS_H
#define ATTN_LIB_SIMULATOR_SANITIZER_TENSORLOADS_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Reports registers of the instruction that a tcgen05.ld has written for which
/// the warp has not waited: only assumption A3 makes it wait for them.
void checkTensorLoads(Exec &x, const Inst &I);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_TENSORLOADS_H
