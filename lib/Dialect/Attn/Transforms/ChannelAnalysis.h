//===- ChannelAnalysis.h - What a kernel's channels need --------*- C++ -*-===//
//
// Counts, bytes and CTAs of the channels of a kernel, derived from its
// partitions and loads.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CHANNELANALYSIS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CHANNELANALYSIS_H

#include "attn/Analysis/HandleFlow.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::attn {

/// One role of a channel.
struct RoleInfo {
  /// Arrivals that complete a phase; 0 until a release says.
  int64_t count = 0;
  /// A release from which `count` is derived.
  ChannelReleaseOp release;
  /// The parts that some release hands on, by their indices.
  llvm::SmallBitVector released;
  /// Bytes of a phase in the order of the text, one number for each acquire.
  SmallVector<int64_t> bytes;
  /// A load of a tx role, and the CTAs that its loads go to.
  TmaLoadOp load;
  int64_t multicast = 1;
};

struct ChannelInfo {
  SmallVector<RoleInfo, 2> roles;

  /// The CTAs to which a release of `role` signals: those that the loads of the
  /// role after it write to.
  int64_t getCTAs(unsigned role) const {
    return roles[(role + 1) % roles.size()].multicast;
  }
  /// True if the loads of a role go to more than one CTA.
  bool isMulticast() const {
    return llvm::any_of(
        roles, [](const RoleInfo &role) { return role.multicast > 1; });
  }
  /// Arrivals from all CTAs that complete a phase of `role`.
  int64_t getCount(unsigned role) const {
    return roles[role].count * getCTAs(role);
  }
};

/// A role's place in a channel: what a cursor or a token belongs to.
struct Owner {
  /// The part of each warpgroup's number.
  static constexpr int kOwnPart = -1;

  ChannelCreateOp channel;
  unsigned role = 0;
  /// Of tokens: the index of the part, 0 without parts.
  int part = 0;

  bool operator==(const Owner &other) const {
    return channel == other.channel && role == other.role && part == other.part;
  }
  bool operator!=(const Owner &other) const { return !(*this == other); }
};

/// The channels of one kernel.
class ChannelAnalysis {
public:
  explicit ChannelAnalysis(gpu::GPUFuncOp kernel) : kernel(kernel) {}

  /// Checks the kernel and counts. On failure a diagnostic was emitted.
  LogicalResult run();

  gpu::GPUFuncOp getKernel() const { return kernel; }
  WarpSpecializeOp getPartitions() const { return partitions; }
  /// In the order of the text.
  const llvm::MapVector<ChannelCreateOp, ChannelInfo> &getChannels() const {
    return channels;
  }
  /// All cursors and tokens, with what they belong to.
  const llvm::MapVector<Value, Owner> &getOwners() const { return owners; }
  /// The bytes that an acquire of a tx role announces; nothing for others.
  std::optional<int64_t> getBytes(ChannelAcquireOp op) const;
  /// True if a channel's loads go to more than one CTA.
  bool isMulticast() const;

private:
  LogicalResult addChannel(ChannelCreateOp op);
  FailureOr<Owner> getOwner(Operation *op, Value channel, StringRef role);
  FailureOr<int> getPart(ChannelAcquireOp op, Owner owner);
  FailureOr<Owner> checkPlace(Operation *op, Value channel, StringRef role);
  LogicalResult setOwner(Value value, Owner owner, Operation *op);
  LogicalResult propagate();
  LogicalResult checkOwner(Operation *op, Value handle, Owner expected);
  LogicalResult checkCursors();
  LogicalResult countRelease(ChannelReleaseOp op);
  LogicalResult countCTAs(TmaLoadOp op);
  LogicalResult checkCluster();
  LogicalResult countBytes(ChannelAcquireOp op);
  FailureOr<int64_t> sumBytes(Value token, Block *block);

  gpu::GPUFuncOp kernel;
  WarpSpecializeOp partitions;
  llvm::MapVector<ChannelCreateOp, ChannelInfo> channels;
  /// For cursors and tokens.
  llvm::MapVector<Value, Owner> owners;
  DenseMap<ChannelAcquireOp, int64_t> announced;
};

/// "role 'consumer' of channel 'k'".
std::string describe(Owner owner);

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_CHANNELANALYSIS_H
