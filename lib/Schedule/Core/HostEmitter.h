//===- HostEmitter.h - The host launches a kernel ---------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_HOSTEMITTER_H
#define ATTN_LIB_SCHEDULE_CORE_HOSTEMITTER_H

#include "attn/Schedule/Core/KernelFrame.h"

namespace mlir::attn {

/// Emits the launch of `kernel`, which was emitted in `frame`, in front of
/// `op`.
void emitHostLaunch(Operation *op, const KernelFrame &frame,
                    gpu::GPUFuncOp kernel, const KernelShape &shape);

/// The tensor of the launch that a symbol names, if it has the dimension.
std::optional<unsigned> findTensor(const KernelFrame &frame,
                                   const SizeSymbol &symbol);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_HOSTEMITTER_H
