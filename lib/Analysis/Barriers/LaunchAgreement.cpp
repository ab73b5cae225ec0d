//===- LaunchAgreement.cpp - Does a kernel agree with its launch? ---------===//

#include "attn/Analysis/Barriers/LaunchAgreement.h"
#include "attn/Launch/LaunchRecord.h"

using namespace mlir;
using namespace mlir::attn;

/// How many threads a kernel has by what it does: those of its partitions, or
/// of the warps that share its tiles.
std::optional<int64_t> attn::countThreads(gpu::GPUFuncOp kernel) {
  std::optional<int64_t> threads;
  if (auto warps =
          kernel->getAttrOfType<DenseI64ArrayAttr>(AttnDialect::kWarpsAttr))
    threads = 32 * warps[0] * warps[1] * getTeams(kernel);
  kernel.walk([&](WarpSpecializeOp op) { threads = 32 * op.getTotalWarps(); });
  return threads;
}

/// Such as "a tensor map with box [64, 64], swizzle 128 and elements of 16
/// bits", the innermost extent first, as launches have it.
static std::string describeMap(ArrayRef<int64_t> box, int64_t swizzle,
                               unsigned bits) {
  return llvm::formatv("a tensor map with box [{0}], swizzle {1} and elements "
                       "of {2} bits",
                       llvm::make_range(box.begin(), box.end()), swizzle, bits);
}

/// What the kernel expects as an argument; empty for what no launch gives.
static std::string describeParameter(Type type) {
  if (auto map = dyn_cast<TensorMapType>(type))
    return describeMap(llvm::to_vector(llvm::reverse(map.getBox())),
                       map.getSwizzle(),
                       map.getElementType().getIntOrFloatBitWidth());
  if (isa<LLVM::LLVMPointerType>(type))
    return "a pointer";
  if (type.isIntOrFloat())
    return llvm::formatv("a number of {0} bits", type.getIntOrFloatBitWidth());
  return "";
}

/// What a launch gives.
static std::string describeArgument(const LaunchArg &arg) {
  switch (arg.kind) {
  case ArgKind::Pointer:
  case ArgKind::Workspace:
    return "a pointer";
  case ArgKind::TensorMap:
    return describeMap(arg.box, getSwizzleBytes(arg.swizzle),
                       8 * getByteWidth(arg.element));
  case ArgKind::Size:
  case ArgKind::Stride:
  case ArgKind::Scalar:
  case ArgKind::Expression:
    return llvm::formatv("a number of {0} bits", 8 * getByteWidth(arg.type));
  }
  llvm_unreachable("covered switch");
}

static std::optional<std::string> findUnlikeArguments(gpu::GPUFuncOp kernel,
                                                      LaunchAttr launch) {
  size_t given = launch.getArgs().size();
  if (kernel.getNumArguments() != given)
    return llvm::formatv("it has {0} arguments, and its launch {1}",
                         kernel.getNumArguments(), given);
  llvm::Expected<LaunchRecord> record =
      launch.getRecord(kernel.getName(), /*sharedBytes=*/0);
  // The verifier of the attribute has said why.
  if (!record)
    return "its launch is none: " + llvm::toString(record.takeError());
  ArrayRef<LaunchArg> args = record->steps.front().args;
  for (auto [index, type, arg] :
       llvm::enumerate(kernel.getArgumentTypes(), args)) {
    std::string expected = describeParameter(type), got = describeArgument(arg);
    if (!expected.empty() && expected != got)
      return llvm::formatv("argument {0} is {1}, and that of its launch {2}",
                           index, expected, got);
  }
  return std::nullopt;
}

/// The only target of the kernel's module; null if there is none.
static TargetAttr getOnlyTarget(gpu::GPUFuncOp kernel) {
  auto module = kernel->getParentOfType<gpu::GPUModuleOp>();
  ArrayAttr targets = module ? module.getTargetsAttr() : ArrayAttr();
  return targets && targets.size() == 1 ? dyn_cast<TargetAttr>(targets[0])
                                        : TargetAttr();
}

/// Extents of a launch, such as "[256, 1, 1]".
template <typename Extents>
static std::string printExtents(const Extents &extents) {
  return llvm::formatv("[{0}]",
                       llvm::make_range(extents.begin(), extents.end()));
}

std::optional<std::string> attn::findUnlikeLaunch(gpu::GPUFuncOp kernel) {
  std::optional<int64_t> threads = countThreads(kernel);
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  if (block && countLaunched(*block) != int64_t(block->front()))
    return "its threads do not lie along x, but in a block of " +
           printExtents(*block);
  if (block && threads && block->front() != *threads)
    return llvm::formatv("its block has {0} threads, and its warps {1}",
                         block->front(), *threads);
  if (!launch)
    return std::nullopt;
  auto differs = [](ArrayRef<int32_t> known, ArrayRef<int64_t> launched) {
    return !llvm::equal(known, launched, [](int32_t one, int64_t other) {
      return one == other;
    });
  };
  ArrayRef<int64_t> launchedBlock = launch.getBlock().asArrayRef();
  if (block && differs(*block, launchedBlock))
    return "it has blocks of " + printExtents(*block) + ", and its launch " +
           printExtents(launchedBlock);
  if (launchedBlock[1] != 1 || launchedBlock[2] != 1)
    return "its threads do not lie along x, but in a block of " +
           printExtents(launchedBlock);
  if (threads && launchedBlock[0] != *threads)
    return llvm::formatv("its launch has {0} threads, and its warps {1}",
                         launchedBlock[0], *threads);
  std::optional<ArrayRef<int32_t>> cluster = kernel.getKnownClusterSize();
  SmallVector<int64_t> launched(3, 1);
  if (launch.getCluster())
    launched.assign(launch.getCluster().asArrayRef().begin(),
                    launch.getCluster().asArrayRef().end());
  if (cluster && differs(*cluster, launched))
    return "it has clusters of " + printExtents(*cluster) +
           ", and its launch " + printExtents(launched);
  TargetAttr target = getOnlyTarget(kernel);
  if (target && target.getChip() != launch.getChip())
    return llvm::formatv("its module is for {0}, and its launch for {1}",
                         target.getChip(), launch.getChip());
  return findUnlikeArguments(kernel, launch);
}
