//===- ChannelReport.h - What the check of channels has found ---*- C++ -*-===//

#ifndef ATTN_ANALYSIS_CHANNELS_CHANNELREPORT_H
#define ATTN_ANALYSIS_CHANNELS_CHANNELREPORT_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// Something at an op.
struct ChannelNote {
  Operation *op = nullptr;
  std::string text;
};

/// Which of the checks fails.
enum class ChannelFault {
  /// An access to a slot whose token is not held.
  Licence,
  /// Roles of a channel that acquire different numbers of slots.
  Balance,
  /// Partitions that wait for each other.
  Order
};

/// Such as "licence".
StringRef stringifyChannelFault(ChannelFault fault);

/// Something that is wrong.
struct ChannelWitness {
  ChannelFault fault = ChannelFault::Licence;
  ChannelNote what;
  SmallVector<ChannelNote> notes;
};

struct ChannelReport {
  /// The first thing that is wrong, if there is one.
  std::optional<ChannelWitness> witness;
  /// What was not followed or not shown; what is wrong beyond it is not known.
  std::optional<ChannelNote> unsupported;
  /// Accesses to slots.
  int64_t accesses = 0;
  /// Numbers of acquires that were shown to be equal.
  int64_t balances = 0;
  /// Those of them that take what is divided, or without sign, to be not
  /// negative.
  int64_t takenSigns = 0;
  /// Tiles that were not tried: a number or a token is missing, or there are
  /// too many trips or events.
  int64_t leftOut = 0;
  /// Runs of the partitions, and acquires and releases in them.
  int64_t runs = 0;
  int64_t steps = 0;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_CHANNELS_CHANNELREPORT_H
