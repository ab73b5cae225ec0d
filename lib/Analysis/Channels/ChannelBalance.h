//===- ChannelBalance.h - As many acquires of all roles -------------------===//
//
// Numbers of acquires as expressions, and whether they are equal whatever they
// are computed from.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELS_CHANNELBALANCE_H
#define ATTN_LIB_ANALYSIS_CHANNELS_CHANNELBALANCE_H

#include "ChannelRuns.h"

namespace mlir::attn {

/// What one partition acquires as one role.
struct AcquireCount {
  unsigned partition = 0;
  ChannelPlace place;
  /// The first acquire.
  Operation *op = nullptr;
};

/// Compares the numbers of acquires per tile of all roles of all channels: by
/// what is proved of them, and where nothing is by the tiles of `kernels`. A
/// difference in one of these is what is wrong; numbers that neither shows
/// equal or different are what is not supported.
void checkBalance(ChannelProgram &program, std::vector<KernelSample> &kernels,
                  ChannelReport &report);

/// True if both partitions acquire as often in each tile, as the terms of their
/// loops and conditions say; sets whether it takes numbers that have to be not
/// negative for that to be so.
bool haveEqualCounts(ChannelProgram &program, const AcquireCount &a,
                     const AcquireCount &b, bool &takesSigns);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELS_CHANNELBALANCE_H
