//===- ShardCGA.cpp - Loads that the CTAs of a cluster share --------------===//
//
// First everything is checked, then everything is rewritten: the loads, and the
// box of their tensor maps in the three places that state it.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Flow/ClusterUniformity.h"
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
/// Rows after which the swizzle of an address repeats.
static constexpr int64_t kSwizzleRows = 8;
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
      : kernel(kernel), ctas(ctas), module(module), uniformity(kernel) {}

  /// Checks, decides and rewrites. On failure a diagnostic was emitted.
  LogicalResult run();

  int64_t numShared = 0, numOwn = 0;

private:
  LogicalResult addLoad(BulkCopyOpInterface load,
                        const ChannelAnalysis &channels);
  LogicalResult checkGiven(BulkCopyOpInterface load);
  std::string findReason(BulkCopyOpInterface load);
  bool mayBeginInFront(BlockArgument map);
  void dropUncounted(const ChannelAnalysis &channels);
  void dropMixedMaps();
  LogicalResult checkRecord(BlockArgument map);
  LogicalResult collectEncodings(BlockArgument map);
  TensorMapType getPart(TensorMapType type);
  void rewriteMap(BlockArgument map);
  void report(Owner owner, const LoadGroup &group);

  gpu::GPUFuncOp kernel;
  int64_t ctas;
  ModuleOp module;
  ClusterUniformity uniformity;
  llvm::MapVector<std::pair<Operation *, unsigned>, LoadGroup> groups;
  /// The operands of launches that pass a shared map.
  llvm::MapVector<Value, SmallVector<OpOperand *>> encodings;
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

/// The entry of the launch record for `map`; null if there is none.
static DictionaryAttr lookupRecord(LaunchAttr launch, BlockArgument map) {
  ArrayAttr args = launch.getArgs();
  if (args.size() <= map.getArgNumber())
    return {};
  return cast<DictionaryAttr>(args[map.getArgNumber()]);
}

/// Whether the launch record says that a map's address may be no one's memory.
bool KernelSharder::mayBeginInFront(BlockArgument map) {
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  DictionaryAttr entry = launch ? lookupRecord(launch, map) : DictionaryAttr();
  auto view = entry ? entry.getAs<StringAttr>("view") : StringAttr();
  return view &&
         (view == "packed" || view == "packed_by_row" || view == "bounded");
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
  auto argument = dyn_cast<BlockArgument>(load.getMap());
  if (!argument || argument.getOwner() != &kernel.getBody().front())
    return "a load's tensor map is no parameter of the kernel";
  if (mayBeginInFront(argument))
    return "a part of a packed sequence's rows may lie behind its end, and TMA "
           "reads the address of its map then, which is in front of the tensor";
  auto map = cast<TensorMapType>(load.getMap().getType());
  int64_t rows = map.getRows();
  if (map.getBox()[map.getRank() - 2] != rows ||
      rows % (ctas * kSwizzleRows) != 0)
    return llvm::formatv(
        "a box of {0} rows is not {1} parts of a multiple of {2} rows", rows,
        ctas, kSwizzleRows);
  return "";
}

/// A slot that all CTAs fill is handed back in all of them, which not every
/// signal can be counted for.
void KernelSharder::dropUncounted(const ChannelAnalysis &channels) {
  for (auto &[key, group] : groups) {
    auto channel = cast<ChannelCreateOp>(key.first);
    ChannelInfo info = channels.getChannels().lookup(channel);
    info.roles[key.second].multicast = ctas;
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
// Tensor maps
//===----------------------------------------------------------------------===//

/// The map for one part of the rows.
TensorMapType KernelSharder::getPart(TensorMapType type) {
  SmallVector<int64_t> box(type.getBox());
  box[box.size() - 2] /= ctas;
  return TensorMapType::get(type.getContext(), box, type.getElementType(),
                            type.getSwizzle());
}

/// The launch record's arguments are in the kernel's order, its boxes have the
/// innermost extent first.
static SmallVector<int64_t> getRecordBox(TensorMapType type) {
  return llvm::to_vector(llvm::reverse(type.getBox()));
}

LogicalResult KernelSharder::checkRecord(BlockArgument map) {
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  if (!launch)
    return success();
  DictionaryAttr entry = lookupRecord(launch, map);
  SmallVector<int64_t> expected =
      getRecordBox(cast<TensorMapType>(map.getType()));
  auto box =
      entry ? entry.getAs<DenseI64ArrayAttr>("box") : DenseI64ArrayAttr();
  if (box && box.asArrayRef() == ArrayRef(expected))
    return success();
  InFlightDiagnostic diag =
      kernel.emitOpError("expected argument ")
      << map.getArgNumber()
      << " of the launch record to be a tensor map with box ["
      << ArrayRef(expected) << "], got ";
  if (box)
    return diag << box;
  if (entry)
    return diag << entry;
  return diag << "none";
}

LogicalResult KernelSharder::collectEncodings(BlockArgument map) {
  SmallVector<OpOperand *> &operands = encodings[map];
  WalkResult walk = module.walk([&](gpu::LaunchFuncOp launch) -> WalkResult {
    if (SymbolTable::lookupNearestSymbolFrom(launch, launch.getKernel()) !=
        kernel)
      return WalkResult::advance();
    OpOperand &operand = launch.getKernelOperandsMutable()[map.getArgNumber()];
    if (!operand.get().getDefiningOp<EncodeTensorMapOp>()) {
      InFlightDiagnostic diag =
          launch.emitOpError("expected the result of an attn.encode_tensor_map "
                             "as kernel operand ")
          << map.getArgNumber() << ", whose box attn-shard-cga divides";
      diag.attachNote(kernel.getLoc()) << "for this kernel";
      return diag;
    }
    operands.push_back(&operand);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

void KernelSharder::rewriteMap(BlockArgument map) {
  TensorMapType part = getPart(cast<TensorMapType>(map.getType()));
  map.setType(part);
  SmallVector<Type> inputs(kernel.getArgumentTypes());
  inputs[map.getArgNumber()] = part;
  kernel.setFunctionType(kernel.getFunctionType().clone(inputs, {}));
  if (auto launch =
          kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr)) {
    Builder b(kernel.getContext());
    NamedAttrList entry(lookupRecord(launch, map));
    entry.set("box", b.getDenseI64ArrayAttr(getRecordBox(part)));
    SmallVector<Attribute> args(launch.getArgs().getValue());
    args[map.getArgNumber()] = entry.getDictionary(b.getContext());
    kernel->setAttr(AttnDialect::kLaunchAttr,
                    launch.withArgs(b.getArrayAttr(args)));
  }
  for (OpOperand *operand : encodings[map]) {
    auto encoding = operand->get().getDefiningOp<EncodeTensorMapOp>();
    OpBuilder b(encoding);
    operand->set(EncodeTensorMapOp::create(
        b, encoding.getLoc(), part, encoding.getSource(), encoding.getPacked(),
        encoding.getBounded(), encoding.getByRow()));
    if (encoding.use_empty())
      encoding.erase();
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

LogicalResult KernelSharder::run() {
  ChannelAnalysis channels(kernel);
  if (failed(channels.run()))
    return failure();
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
        auto map = cast<BlockArgument>(load.getMap());
        if (!encodings.contains(map) &&
            (failed(checkRecord(map)) || failed(collectEncodings(map))))
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
      load.setMulticastCTAs(ctas);
  }
  for (auto &[map, operands] : encodings)
    rewriteMap(cast<BlockArgument>(map));
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
