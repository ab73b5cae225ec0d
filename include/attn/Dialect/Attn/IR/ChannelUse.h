//===- ChannelUse.h - What ops do with channels, and signals ----*- C++ -*-===//
//
// What ChannelUserOpInterface answers, and what analyses and lowerings have to
// know of the ways in which a role signals. A new way is a case of SignalKind
// and a row.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_CHANNELUSE_H
#define ATTN_DIALECT_ATTN_IR_CHANNELUSE_H

#include "mlir/IR/Builders.h"

namespace mlir::attn {

enum class SignalKind : uint32_t;

/// What an op does with a channel.
enum class ChannelUse {
  /// Nothing: it could, but was given no channel.
  None,
  /// Makes the first cursor of a role.
  Start,
  /// Makes the next cursor from one.
  Advance,
  /// Waits for the slot at a cursor and makes its token.
  Acquire,
  /// Hands the slot of a token to the next role.
  Release,
  /// Starts accesses to the slot of a token, whose bytes the slot counts.
  Fill,
  /// Makes of the token of a whole slot those of the role's parts.
  Split,
  /// Makes of the tokens of all parts that of the whole slot.
  Join,
  /// Becomes such ops when a pass before `attn-lower-channels` lowers it.
  Later
};

/// What a role's signal is for the mbarrier that counts it.
struct ChannelSignal {
  /// The least compute capability that has it, 80 for sm_80.
  int minimumSM;
  /// Arrivals that complete a phase; 0 if as many as come of the releases:
  /// `warpArrivals` of each warp, or one of each elected thread.
  int64_t arrivals;
  int64_t warpArrivals;
  /// True if an acquire announces the bytes of the fills started with its
  /// token, which complete the phase.
  bool countsBytes;
  /// True if the signal comes behind the products that the releasing thread has
  /// started.
  bool awaitsProducts;
  /// True if the signal comes behind the copies that the releasing threads have
  /// started in groups.
  bool awaitsCopies;
  /// Makes the signal where a release stands, at barrier `index` of `barriers`:
  /// in this CTA, in all of `ctas` if not null, or with `leader` in the
  /// cluster's first one; of these CTAs' ranks only `bits` differ, if not null.
  /// With `pair` products are of both CTAs of a pair. Null if what was started
  /// before signals by itself.
  void (*emitRelease)(OpBuilder &builder, Location loc, Value barriers,
                      Value index, IntegerAttr ctas, bool leader,
                      IntegerAttr bits, bool pair);
};

/// The row of a kind of signal.
const ChannelSignal &getChannelSignal(SignalKind kind);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_CHANNELUSE_H
