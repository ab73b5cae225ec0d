//===- ShardCGA.cpp - Loads that the CTAs of a cluster share --------------===//
//
// First everything is checked, then everything is rewritten: products of pairs
// and their loads (ShardPairs.h), the other loads, and the boxes of their
// tensor maps (MapDivider.h).
//
//===----------------------------------------------------------------------===//

#include "MapDivider.h"
#include "ShardPairs.h"
#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Flow/ClusterUniformity.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNSHARDCGAPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

/// On a kernel whose loads have been decided. The pass runs on IR of any step
/// before the barrier rung, and what it asks for is not to be seen any more
/// once tile loops are lowered: indices are then of block ids or read from
/// slots.
static constexpr StringLiteral kShardedAttr = "attn.sharded";
/// CTAs of a cluster, beyond the portable 8 (CUDA programming guide).
static constexpr int64_t kMostClusterCTAs = 16;

namespace {

/// The loads of a role that signals by tx.
struct LoadGroup {
  SmallVector<BulkCopyOpInterface> loads;
  /// Why each CTA loads for itself; empty if all load together.
  std::string reason;
  /// True if somebody made the loads multicasts before.
  bool isGiven = false;

  bool isShared() const { return reason.empty(); }
};

/// Distributes the loads of one kernel.
class KernelSharder {
public:
  KernelSharder(gpu::GPUFuncOp kernel, int64_t ctas, ModuleOp module)
      : kernel(kernel), ctas(ctas), uniformity(kernel), maps(kernel, module),
        pairs(kernel, ctas, uniformity, maps) {}

  /// Checks, decides and rewrites. On failure a diagnostic was emitted.
  LogicalResult run();

  int64_t numShared = 0, numOwn = 0, numPairs = 0;

private:
  LogicalResult checkGrid();
  LogicalResult addLoad(BulkCopyOpInterface load,
                        const ChannelAnalysis &channels);
  LogicalResult checkGiven(BulkCopyOpInterface load);
  std::string findReason(BulkCopyOpInterface load);
  void dropUncounted(const ChannelAnalysis &channels);
  void dropMixedMaps();
  void report(Owner owner, const LoadGroup &group);

  gpu::GPUFuncOp kernel;
  int64_t ctas;
  ClusterUniformity uniformity;
  MapDivider maps;
  PairSharder pairs;
  llvm::MapVector<std::pair<Operation *, unsigned>, LoadGroup> groups;
};

/// The CTAs of a cluster; 0 if an extent is out of range.
int64_t getClusterCTAs(ArrayRef<int32_t> size) {
  int64_t ctas = 1;
  for (int32_t extent : size)
    ctas = extent < 1 || extent > kMostClusterCTAs ? 0 : ctas * extent;
  return ctas;
}

struct AttnShardCGAPass : attn::impl::AttnShardCGAPassBase<AttnShardCGAPass> {
  using Base::Base;

  void runOnOperation() override {
    WalkResult walk = getOperation().walk([&](gpu::GPUFuncOp kernel) {
      std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
      if (!size || kernel->hasAttr(kShardedAttr))
        return WalkResult::skip();
      int64_t ctas = getClusterCTAs(*size);
      if (ctas < 1 || ctas > kMostClusterCTAs) {
        kernel.emitOpError("expected 'known_cluster_size' of 1 to ")
            << kMostClusterCTAs << " CTAs, got [" << *size << "]";
        return WalkResult::interrupt();
      }
      if (ctas == 1)
        return WalkResult::skip();
      KernelSharder sharder(kernel, ctas, getOperation());
      if (failed(sharder.run()))
        return WalkResult::interrupt();
      kernel->setAttr(kShardedAttr, UnitAttr::get(kernel.getContext()));
      numShared += sharder.numShared;
      numOwn += sharder.numOwn;
      numPairs += sharder.numPairs;
      return WalkResult::skip();
    });
    if (walk.wasInterrupted())
      signalPassFailure();
  }
};

} // namespace

//===----------------------------------------------------------------------===//
// Which loads are shared
//===----------------------------------------------------------------------===//

/// A load that somebody made a multicast has to be one.
LogicalResult KernelSharder::checkGiven(BulkCopyOpInterface load) {
  for (auto [index, coordinate] : llvm::enumerate(load.getBoxStart()))
    if (Operation *source = uniformity.getSource(coordinate)) {
      InFlightDiagnostic diag =
          load->emitOpError(
              "expected coordinates that are the same in all CTAs "
              "of the cluster to multicast, got coordinate ")
          << index << " that may differ";
      diag.attachNote(source->getLoc()) << "it depends on this";
      return diag;
    }
  Operation *source = uniformity.getControlSource(load);
  if (!source)
    return success();
  InFlightDiagnostic diag =
      load->emitOpError("expected all CTAs of the cluster to multicast equally "
                        "often, got a load under conditions that may differ");
  diag.attachNote(source->getLoc()) << "they depend on this";
  return diag;
}

/// Why `load` cannot be a multicast; empty if it can.
std::string KernelSharder::findReason(BulkCopyOpInterface load) {
  auto print = [](Operation *op) { return op->getName().getStringRef(); };
  if (load.getMulticastCTAs())
    return "it is a multicast already";
  if (!load.canMulticast())
    return llvm::formatv("{0} has no multicast", print(load));
  if (load.getStackedBoxes() != 1)
    return "a load is of stacked boxes";
  for (auto [index, coordinate] : llvm::enumerate(load.getBoxStart()))
    if (Operation *source = uniformity.getSource(coordinate))
      return llvm::formatv("coordinate {0} of a load depends on {1}", index,
                           print(source));
  if (Operation *source = uniformity.getControlSource(load))
    return llvm::formatv("whether a load runs depends on {0}", print(source));
  if (std::string reason = maps.findReason(load.getMap()); !reason.empty())
    return reason;
  auto map = cast<TensorMapType>(load.getMap().getType());
  int64_t rows = map.getRows();
  if (map.getBox()[map.getRank() - 2] != rows ||
      rows % (ctas * kRowsOfSwizzle) != 0)
    return llvm::formatv(
        "a box of {0} rows is not {1} parts of a multiple of {2} rows", rows,
        ctas, kRowsOfSwizzle);
  return "";
}

/// A slot that all CTAs fill is handed back in all of them, which not every
/// signal can be counted for.
void KernelSharder::dropUncounted(const ChannelAnalysis &channels) {
  for (auto &[key, group] : groups) {
    auto channel = cast<ChannelCreateOp>(key.first);
    ChannelInfo info = channels.getChannels().lookup(channel);
    info.roles[key.second].multicast = ctas;
    info.roles[key.second].multicastBits = ~0u;
    std::optional<unsigned> uncounted = info.findUncounted(channel);
    if (!group.isShared() || !uncounted)
      continue;
    RoleAttr role = channel.getRole(*uncounted);
    group.reason = llvm::formatv(
        "role '{0}', which hands its slots back, signals by {1}, which is not "
        "counted in other CTAs",
        role.getName(), stringifySignalKind(role.getSignal()));
  }
}

/// A map has one box: loads that share it are all multicasts or none is.
void KernelSharder::dropMixedMaps() {
  // A user that needs the whole box.
  auto isOther = [&](Operation *user) {
    auto copy = dyn_cast<BulkCopyOpInterface>(user);
    if (copy && !copy.getCopiedBuffer())
      return false;
    return llvm::none_of(groups, [&](auto &entry) {
      return entry.second.isShared() && copy &&
             llvm::is_contained(entry.second.loads, copy);
    });
  };
  auto findOther = [&](const LoadGroup &group) -> Operation * {
    for (BulkCopyOpInterface load : group.loads)
      for (Operation *user : load.getMap().getUsers())
        if (isOther(user))
          return user;
    return nullptr;
  };
  bool changed = true;
  while (changed) {
    changed = false;
    for (auto &[key, group] : groups) {
      Operation *other = group.isShared() ? findOther(group) : nullptr;
      if (!other)
        continue;
      group.reason = llvm::formatv("{0} uses the tensor map of a load, and is "
                                   "not shared by the CTAs",
                                   other->getName());
      changed = true;
    }
  }
}

//===----------------------------------------------------------------------===//
// The kernel
//===----------------------------------------------------------------------===//

/// Groups the load with the others of its role, if a channel's slot counts it.
LogicalResult KernelSharder::addLoad(BulkCopyOpInterface load,
                                     const ChannelAnalysis &channels) {
  if (load.getMulticastCTAs() && failed(checkGiven(load)))
    return failure();
  auto fill = dyn_cast<ChannelUserOpInterface>(load.getOperation());
  if (!fill || fill.getChannelUse() != ChannelUse::Fill)
    return success();
  auto found = channels.getOwners().find(fill.getUsedHandle()->get());
  if (found == channels.getOwners().end())
    return success();
  Owner owner = found->second;
  LoadGroup &group = groups[{owner.channel, owner.role}];
  group.loads.push_back(load);
  group.isGiven |= load.getMulticastCTAs().has_value();
  if (group.isShared())
    group.reason = findReason(load);
  return success();
}

/// Clusters divide the grid, where its extents are numbers.
LogicalResult KernelSharder::checkGrid() {
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  if (!launch)
    return success();
  ArrayRef<int32_t> size = *kernel.getKnownClusterSize();
  for (auto [dim, text] :
       llvm::enumerate(launch.getGrid().getAsRange<StringAttr>())) {
    int64_t extent = 0;
    if (dim >= size.size() || text.getValue().getAsInteger(10, extent) ||
        extent % size[dim] == 0)
      continue;
    return kernel.emitOpError("expected a grid that clusters of ")
           << size[dim] << " CTAs divide along dimension " << dim << ", got "
           << extent << " CTAs";
  }
  return success();
}

LogicalResult KernelSharder::run() {
  ChannelAnalysis channels(kernel);
  if (failed(checkGrid()) || failed(checkTensorGroups(kernel)) ||
      failed(channels.run()) || failed(pairs.run(channels)))
    return failure();
  numPairs = pairs.countProducts();
  if (pairs.areMade())
    return success();
  WalkResult walk = kernel.walk([&](BulkCopyOpInterface copy) {
    return copy.isBulkLoad() ? WalkResult(addLoad(copy, channels))
                             : WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  dropUncounted(channels);
  dropMixedMaps();

  for (auto &[key, group] : groups)
    if (group.isShared())
      for (BulkCopyOpInterface load : group.loads) {
        if (failed(maps.add(load.getMap(), ctas)))
          return failure();
      }
  for (auto &[key, group] : groups) {
    if (group.isGiven)
      continue;
    report({cast<ChannelCreateOp>(key.first), key.second}, group);
    if (!group.isShared()) {
      ++numOwn;
      continue;
    }
    ++numShared;
    for (BulkCopyOpInterface load : group.loads)
      load.setMulticastCTAs(ctas, IntegerAttr());
  }
  maps.rewrite();
  return success();
}

void KernelSharder::report(Owner owner, const LoadGroup &group) {
  std::string channel = owner.channel.getName().str();
  if (!group.isShared()) {
    remark::analysis(owner.channel.getLoc(),
                     remark::RemarkOpts::name("own-loads")
                         .category("attn.shard-cga")
                         .function(kernel.getName()))
        << remark::add("each CTA fills the slots of channel '{0}' for itself",
                       channel)
        << remark::reason("{0}", group.reason);
    return;
  }
  BulkCopyOpInterface load = group.loads.front();
  auto map = cast<TensorMapType>(load.getMap().getType());
  ArrayRef<int64_t> slot =
      cast<BufferType>(load.getCopiedBuffer().getType()).getShape();
  int64_t bytes = load.getCopiedBytes();
  remark::passed(owner.channel.getLoc(), remark::RemarkOpts::name("multicast")
                                             .category("attn.shard-cga")
                                             .function(kernel.getName()))
      << remark::add("the CTAs of a cluster fill the slots of channel '{0}' "
                     "together",
                     channel)
      << remark::metric("ctas", ctas)
      << remark::metric("mask", (int64_t(1) << ctas) - 1)
      << remark::metric("rows", slot[0] / ctas)
      << remark::metric("boxes", slot[1] / map.getColumns())
      << remark::metric("l2-bytes", bytes / ctas)
      << remark::metric("l2-bytes-saved", bytes - bytes / ctas);
}
