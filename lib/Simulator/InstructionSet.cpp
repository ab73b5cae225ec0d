//===- InstructionSet.cpp - All instructions ------------------------------===//

#include "InstructionSet.h"
#include "Async/AsyncInstructions.h"
#include "Instructions/SyncInstructions.h"

using namespace mlir::attn::sim;

const DecodeTable &mlir::attn::sim::getInstructions() {
  static const DecodeTable table = [] {
    DecodeTable table;
    registerAtomicOps(table);
    registerBarrierOps(table);
    registerBitOps(table);
    registerBulkStoreOps(table);
    registerCompareOps(table);
    registerControlOps(table);
    registerConvertOps(table);
    registerFloatOps(table);
    registerIntegerOps(table);
    registerMatrixMemoryOps(table);
    registerMatrixOps(table);
    registerMemoryOps(table);
    registerMoveOps(table);
    registerWarpOps(table);
    registerWmmaOps(table);
    registerAsyncCopyOps(table);
    registerBulkCopyOps(table);
    registerClusterLaunchOps(table);
    registerMbarrierOps(table);
    registerTensorMapOps(table);
    registerTensorMemoryOps(table);
    registerWgmmaOps(table);
    return table;
  }();
  return table;
}
