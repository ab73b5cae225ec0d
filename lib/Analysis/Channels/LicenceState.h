//===- LicenceState.h - What a partition holds ----------------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELS_LICENCESTATE_H
#define ATTN_LIB_ANALYSIS_CHANNELS_LICENCESTATE_H

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Channels/ChannelReport.h"
#include "attn/Dialect/Attn/IR/AsyncEngine.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include <map>

namespace mlir::attn {

/// What an acquire gave.
struct Grant {
  Operation *acquire = nullptr;
  /// The parts that are not released yet, and the last release.
  unsigned held = 0;
  Operation *released = nullptr;

  auto tie() const { return std::tie(acquire, held, released); }
};

/// A grant, and parts of its slot.
using Right = std::pair<unsigned, unsigned>;

/// Accesses of an engine that end together, each with its grant.
struct Group {
  const AsyncEngine *engine = nullptr;
  bool isClosed = false;
  SmallVector<std::pair<unsigned, Operation *>, 2> accesses;

  auto tie() const { return std::tie(engine, isClosed, accesses); }
};

/// What a partition holds at one place of one of its paths.
struct LicenceState {
  /// Of tokens and indices, by the number of the value.
  std::map<unsigned, SmallVector<Right, 1>> rights;
  std::vector<Grant> grants;
  std::vector<Group> groups;

  bool operator==(const LicenceState &other) const;
  /// Drops grants that nothing names, and numbers the others as they are named,
  /// so that states that differ in numbers only are equal.
  void tidy();
};

/// True if a partition has a role in a channel.
bool takesPart(const ChannelInfo &channel, unsigned partition);
/// The channels in which a partition has a role.
unsigned countChannels(const ChannelAnalysis &analysis, unsigned partition);

/// The only acquire of `channel` in the partition of `access`, if a loop runs
/// it once in each trip, at the next position each time, and in each trip comes
/// to the access too; null if that is not known, or if the loop has one trip.
Operation *findAcquireOfEachTrip(const ChannelAnalysis &analysis,
                                 Operation *access, ChannelCreateOp channel);

/// An access, and the channels of which a token is held at each time.
struct AccessInfo {
  unsigned partition = 0;
  Operation *op = nullptr;
  llvm::SmallBitVector held;
  /// The index of a slot, if that is no position of a channel.
  Value elsewhere;
};

using BufferAccesses = llvm::MapVector<Value, std::vector<AccessInfo>>;
/// The channel by whose positions a buffer's slots are found, and one of them.
using BufferRings = DenseMap<Value, std::pair<unsigned, Operation *>>;

/// The name of what is allocated.
std::string getMemoryName(Value memory);

/// Judges what partitions do to buffers together.
void checkBuffers(const ChannelAnalysis &analysis,
                  const BufferAccesses &buffers, const BufferRings &ringOf,
                  ChannelReport &report);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELS_LICENCESTATE_H
