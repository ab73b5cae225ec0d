//===- ChannelAnalysis.h - What a kernel's channels need --------*- C++ -*-===//
//
// Counts, bytes and CTAs of the channels of a kernel, derived from its
// partitions and from what its ops say of themselves (ChannelUserOpInterface).
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_ANALYSIS_CHANNELS_CHANNELANALYSIS_H
#define ATTN_ANALYSIS_CHANNELS_CHANNELANALYSIS_H

#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Dialect/Attn/IR/SignalMask.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallBitVector.h"

namespace mlir::attn {

/// A partition that takes part in a role.
struct Participant {
  /// Its index in the kernel's attn.warp_specialize.
  unsigned partition = 0;
  /// Its arrivals in a phase; 0 until a release says.
  int64_t count = 0;
  /// A release from which `count` is derived.
  Operation *release = nullptr;
  /// The parts that some release hands on, by their indices.
  llvm::SmallBitVector released;
};

/// One role of a channel.
struct RoleInfo {
  /// In the order of the role's attribute.
  SmallVector<Participant, 1> participants;
  /// Bytes of a phase in the order of the text, one number for each acquire.
  SmallVector<int64_t> bytes;
  /// A fill that says to how many CTAs it goes, the largest such number, and
  /// the bits in which the ranks of these CTAs differ.
  Operation *fill = nullptr;
  int64_t multicast = 1;
  uint32_t multicastBits = 0;
  /// A fill whose bytes can count in its own CTA only.
  Operation *ownFill = nullptr;
  /// Bytes complete a phase, which one thread announces.
  bool countsBytes = false;
  /// An acquire or release, and the bits that are clear in the ranks of the
  /// CTAs that come to it: all of them where they stand in an
  /// attn.cluster_leader that is not about some bits.
  Operation *place = nullptr;
  uint32_t leaderBits = 0;
  bool isAcquired = false;

  bool canFillAtLeader() const;
  /// Returns true if the leaders of CTAs run the role alone.
  bool isLeader() const { return leaderBits != 0; }

  /// Arrivals of all participants that complete a phase.
  int64_t getCount() const {
    int64_t count = 0;
    for (const Participant &participant : participants)
      count += participant.count;
    return count;
  }
};

struct ChannelInfo {
  SmallVector<RoleInfo, 2> roles;
  /// CTAs of a cluster.
  int64_t cluster = 1;

  /// Where the releases of `role` signal: wherever the role after it runs or
  /// writes. The leader's slots are those of all CTAs.
  SignalMask getTarget(unsigned role) const {
    const RoleInfo &next = roles[(role + 1) % roles.size()];
    uint32_t own = roles[role].leaderBits;
    return {next.leaderBits & ~own,
            (own & ~next.leaderBits) | next.multicastBits};
  }
  /// CTAs that signal to each CTA to which the releases of `role` go.
  int64_t countSenders(unsigned role) const {
    return getTarget(role).countSenders(cluster, roles[role].leaderBits);
  }
  /// True if the bytes that several CTAs copy count in their leader, which
  /// announces them.
  bool announcesAtLeader(unsigned role) const {
    return roles[role].countsBytes && getTarget(role).getClear() != 0;
  }
  /// True if leaders of other CTAs than its own signal to `role` behind their
  /// products: it waits at its end until they have.
  bool hasTail(unsigned role, ChannelCreateOp channel) const;
  /// Returns the roles that do, such as "load"; empty if none does.
  std::string describeTails(ChannelCreateOp channel) const;
  /// Returns such as "load 1 1, mma 3 3": for each role and each rank in the
  /// cluster, the CTAs in which its releases arrive, one bit for each, or "-"
  /// in a CTA that does not run it; empty where all are the own one.
  std::string describeMasks(ChannelCreateOp channel) const;
  /// Returns which CTAs have barriers of `role` of their own and which have one
  /// together, in a kernel of pairs; else null.
  CGAAttr getBarrierCGA(unsigned role, MLIRContext *context,
                        bool isOfPairs) const;
  /// Returns the bytes of a phase at the barrier that counts them, of the
  /// `bytes` that each CTA's own loads have.
  int64_t getBytes(unsigned role, int64_t bytes) const {
    return announcesAtLeader(role) ? bytes * countSenders(role) : bytes;
  }
  /// True if CTAs signal or copy to each other.
  bool crossesCTAs() const {
    return llvm::any_of(roles, [](const RoleInfo &role) {
      return role.multicast > 1 || role.isLeader();
    });
  }
  /// Returns the first role whose releases would have to arrive in other CTAs
  /// and cannot be counted there.
  std::optional<unsigned> findUncounted(ChannelCreateOp channel) const;
  /// Returns true if someone acquires a slot.
  bool isUsed() const {
    return llvm::any_of(roles,
                        [](const RoleInfo &role) { return role.isAcquired; });
  }
  /// Arrivals from all CTAs that complete a phase of `role`.
  int64_t getCount(unsigned role) const {
    return roles[role].getCount() *
           (announcesAtLeader(role) ? 1 : countSenders(role));
  }
};

/// A role's place in a channel: what a cursor or a token belongs to.
struct Owner {
  /// The part of each warpgroup's number.
  static constexpr int kOwnPart = -1;

  ChannelCreateOp channel;
  unsigned role = 0;
  /// Of tokens: the names of the parts of which it is one, none if it is for a
  /// whole slot, and its index among them.
  ArrayRef<StringAttr> parts = {};
  int part = 0;

  bool operator==(const Owner &other) const {
    return channel == other.channel && role == other.role &&
           parts == other.parts && part == other.part;
  }
  bool operator!=(const Owner &other) const { return !(*this == other); }
  /// How the role signals.
  const ChannelSignal &getSignal() const {
    return getChannelSignal(ChannelCreateOp(channel).getRole(role).getSignal());
  }
};

/// The channels of one kernel.
class ChannelAnalysis {
public:
  explicit ChannelAnalysis(gpu::GPUFuncOp kernel) : kernel(kernel) {}

  /// Checks the kernel and counts. On failure a diagnostic was emitted.
  LogicalResult run();
  /// Checks that each role releases, which loops over tiles do when they are
  /// lowered.
  LogicalResult checkReleases();

  gpu::GPUFuncOp getKernel() const { return kernel; }
  WarpSpecializeOp getPartitions() const { return partitions; }
  /// In the order of the text.
  const llvm::MapVector<ChannelCreateOp, ChannelInfo> &getChannels() const {
    return channels;
  }
  /// All cursors and tokens, with what they belong to.
  const llvm::MapVector<Value, Owner> &getOwners() const { return owners; }
  /// The bytes that an acquire announces if its role's signal counts bytes.
  std::optional<int64_t> getBytes(Operation *acquire) const;
  /// True if CTAs signal or copy to each other in some channel.
  bool crossesCTAs() const;

private:
  LogicalResult addChannel(ChannelCreateOp op);
  FailureOr<Owner> getOwner(Operation *op, Value channel, StringRef role);
  FailureOr<int> getPart(ChannelUserOpInterface acquire, Owner owner);
  LogicalResult setParts(ChannelUserOpInterface op, Owner owner);
  LogicalResult checkSplit(ChannelUserOpInterface op);
  LogicalResult checkJoin(ChannelUserOpInterface op);
  FailureOr<Owner> checkPlace(ChannelUserOpInterface op);
  LogicalResult setOwner(Value value, Owner owner, Operation *op);
  LogicalResult collectMade();
  LogicalResult propagate();
  LogicalResult checkOwner(Operation *op, Value handle, Owner expected);
  LogicalResult checkUser(ChannelUserOpInterface op);
  LogicalResult checkAdvance(ChannelUserOpInterface op);
  LogicalResult checkRelease(ChannelUserOpInterface op);
  LogicalResult checkLeader(Operation *op, Owner owner);
  LogicalResult checkFill(ChannelUserOpInterface op);
  LogicalResult checkCommit(ChannelUserOpInterface release);
  LogicalResult checkProduct(ChannelUserOpInterface release,
                             Operation *product);
  LogicalResult countRelease(ChannelUserOpInterface op);
  LogicalResult checkReleases(Owner owner, const Participant &participant);
  LogicalResult countCTAs(ChannelUserOpInterface op);
  LogicalResult checkCluster();
  LogicalResult countBytes(ChannelUserOpInterface acquire);
  FailureOr<int64_t> sumBytes(Value token, Block *block);

  gpu::GPUFuncOp kernel;
  /// CTAs of a cluster.
  int64_t cluster = 1;
  WarpSpecializeOp partitions;
  llvm::MapVector<ChannelCreateOp, ChannelInfo> channels;
  /// For cursors and tokens.
  llvm::MapVector<Value, Owner> owners;
  /// For acquires.
  DenseMap<Operation *, int64_t> announced;
};

/// "role 'consumer' of channel 'k'".
std::string describe(Owner owner);

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_CHANNELS_CHANNELANALYSIS_H
