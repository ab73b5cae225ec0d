//===- LaunchAttrBuilder.h - The launch of a kernel -------------*- C++ -*-===//

#ifndef ATTN_SCHEDULE_CORE_LAUNCHATTRBUILDER_H
#define ATTN_SCHEDULE_CORE_LAUNCHATTRBUILDER_H

#include "attn/Schedule/Core/KernelFrame.h"
#include "attn/Schedule/Problem/ProblemFacts.h"

namespace mlir::attn {

/// The attribute `attn.launch` of a kernel that was emitted in `frame`.
/// `problem` may be null. `others` are tensors of the steps in front of it, to
/// which sizes of workspaces may refer.
LaunchAttr buildLaunchAttr(KernelFrame &frame, const KernelShape &shape,
                           DictionaryAttr problem,
                           ArrayRef<TensorFacts> others = {});

/// The problem as the launch record states it: the fields of
/// docs/LaunchRecord.md under the same names. Null for numbers of heads that only
/// the launch decides.
DictionaryAttr buildProblemAttr(Builder &builder, const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_CORE_LAUNCHATTRBUILDER_H
