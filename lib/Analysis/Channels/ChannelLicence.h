//===- ChannelLicence.h - Accesses through held tokens --------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELS_CHANNELLICENCE_H
#define ATTN_LIB_ANALYSIS_CHANNELS_CHANNELLICENCE_H

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Channels/ChannelReport.h"

namespace mlir::attn {

/// Follows what each partition holds, and compares it with what it touches.
void checkLicence(const ChannelAnalysis &analysis, ChannelReport &report);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELS_CHANNELLICENCE_H
