//===- LaunchAgreement.cpp - Does a kernel agree with its launch? ---------===//

#include "attn/Analysis/LaunchAgreement.h"
#include "attn/Target/LaunchRecord.h"

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

/// True if a tensor map of the launch copies what the kernel's type says.
static bool isAlike(TensorMapType type, const LaunchArg &arg) {
  return arg.kind == ArgKind::TensorMap &&
         llvm::equal(llvm::reverse(type.getBox()), arg.box) &&
         getSwizzleBytes(arg.swizzle) == type.getSwizzle() &&
         8 * getByteWidth(arg.element) ==
             type.getElementType().getIntOrFloatBitWidth();
}

static bool hasUnlikeMaps(gpu::GPUFuncOp kernel, LaunchAttr launch) {
  if (llvm::none_of(kernel.getArgumentTypes(), llvm::IsaPred<TensorMapType>))
    return false;
  llvm::Expected<LaunchRecord> record =
      launch.getRecord(kernel.getName(), /*sharedBytes=*/0);
  if (!record) {
    // The verifier of the attribute has said why.
    llvm::consumeError(record.takeError());
    return true;
  }
  // A launch without all arguments is none.
  ArrayRef<LaunchArg> args = record->steps.front().args;
  for (auto [type, arg] : llvm::zip(kernel.getArgumentTypes(), args))
    if (auto map = dyn_cast<TensorMapType>(type); map && !isAlike(map, arg))
      return true;
  return false;
}

std::optional<StringRef> attn::findUnlikeLaunch(gpu::GPUFuncOp kernel) {
  std::optional<int64_t> threads = countThreads(kernel);
  std::optional<ArrayRef<int32_t>> block = kernel.getKnownBlockSize();
  if (block && countLaunched(*block) != int64_t(block->front()))
    return "its threads do not lie along x";
  if (block && threads && block->front() != *threads)
    return "its block has other threads than its warps";
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  if (!launch)
    return std::nullopt;
  auto differs = [](ArrayRef<int32_t> known, ArrayRef<int64_t> launched) {
    return !llvm::equal(known, launched, [](int32_t one, int64_t other) {
      return one == other;
    });
  };
  ArrayRef<int64_t> launchedBlock = launch.getBlock().asArrayRef();
  if (block && differs(*block, launchedBlock))
    return "its launch has blocks of another size";
  if (launchedBlock[1] != 1 || launchedBlock[2] != 1)
    return "its threads do not lie along x";
  if (threads && launchedBlock[0] != *threads)
    return "its launch has other threads than its warps";
  std::optional<ArrayRef<int32_t>> cluster = kernel.getKnownClusterSize();
  SmallVector<int64_t> launched(3, 1);
  if (launch.getCluster())
    launched.assign(launch.getCluster().asArrayRef().begin(),
                    launch.getCluster().asArrayRef().end());
  if (cluster && differs(*cluster, launched))
    return "its launch has clusters of another size";
  if (hasUnlikeMaps(kernel, launch))
    return "its launch has other tensor maps than its arguments";
  return std::nullopt;
}
