//===- ProductRegisters.h - What wgmma.fence hands over ---------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_PRODUCTREGISTERS_H
#define ATTN_LIB_SIMULATOR_SANITIZER_PRODUCTREGISTERS_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// An instruction that `feedsProduct` has written its registers. A copy is as
/// old as what it copies: compilers move accumulators between a fence and a
/// product, of which nothing is left when the program is assembled.
void noteProductWrite(Exec &x, const Inst &I);

/// Reports a register of a product that was written behind the warp's last
/// wgmma.fence; `regs` are accumulators and fragments of A.
void checkProductRegisters(Exec &x, llvm::ArrayRef<Operand> regs);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_PRODUCTREGISTERS_H
