//===- ChannelCheck.h - Are a kernel's channels used right? -----*- C++ -*-===//
//
// Three checks of a kernel behind attn-expand-pipeline, where channels, roles
// and slots stand and the order of their acquires is known: each access to a
// slot happens while its token is held, all roles of a channel acquire as many
// slots, and nobody waits for a slot that comes only behind it
// (docs/BarrierCheck.md).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_CHANNELS_CHANNELCHECK_H
#define ATTN_ANALYSIS_CHANNELS_CHANNELCHECK_H

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Channels/ChannelReport.h"

namespace mlir::attn {

/// Judges the channels of a kernel that `analysis` has seen without error. The
/// kernel has no op that a later pass makes acquires and releases of.
ChannelReport checkChannels(const ChannelAnalysis &analysis);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_CHANNELS_CHANNELCHECK_H
