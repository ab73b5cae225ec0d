//===- LaunchAttrBuilder.h - The launch of a kernel -------------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_CORE_LAUNCHATTRBUILDER_H
#define ATTN_SCHEDULE_CORE_LAUNCHATTRBUILDER_H

#include "attn/Schedule/Core/KernelFrame.h"

namespace mlir::attn {

/// The attribute `attn.launch` of a kernel that was emitted in `frame`.
/// `problem` may be null. `others` are tensors of the steps in front of it, to
/// which sizes of workspaces may refer.
LaunchAttr buildLaunchAttr(KernelFrame &frame, const KernelShape &shape,
                           DictionaryAttr problem,
                           ArrayRef<TensorFacts> others = {});

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_LAUNCHATTRBUILDER_H
