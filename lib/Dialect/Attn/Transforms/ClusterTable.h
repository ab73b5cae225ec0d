//===- ClusterTable.h - What a cluster's CTAs share -------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CLUSTERTABLE_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CLUSTERTABLE_H

#include "attn/Analysis/Channels/ChannelAnalysis.h"

namespace mlir::attn {

/// Returns the view of all slots of a ring under which `buffer` has slots of
/// another shape than the allocated ones; null if it has the latter.
ReinterpretOp findRingView(Value buffer);

/// Returns the table of a kernel in clusters of `ctas` CTAs: the blocks,
/// copies, boxes and masks of buffers with a layout, and the leaders, counts,
/// bytes, masks and tails of the roles of channels.
std::string describeCluster(const ChannelAnalysis &channels, int64_t ctas);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CLUSTERTABLE_H
