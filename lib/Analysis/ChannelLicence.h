//===- ChannelLicence.h - Accesses through held tokens --------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELLICENCE_H
#define ATTN_LIB_ANALYSIS_CHANNELLICENCE_H

#include "attn/Analysis/ChannelAnalysis.h"
#include "attn/Analysis/ChannelReport.h"

namespace mlir::attn {

/// Follows what each partition holds, and compares it with what it touches.
void checkLicence(const ChannelAnalysis &analysis, ChannelReport &report);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELLICENCE_H
