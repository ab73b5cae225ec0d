//===- AsyncInstructions.h - The instructions of this folder ----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_ASYNCINSTRUCTIONS_H
#define ATTN_LIB_SIMULATOR_ASYNC_ASYNCINSTRUCTIONS_H

namespace mlir::attn::sim {

class DecodeTable;

/// Each adds those of one file.
void registerAsyncCopyOps(DecodeTable &table);
void registerBulkCopyOps(DecodeTable &table);
void registerClusterLaunchOps(DecodeTable &table);
void registerMbarrierOps(DecodeTable &table);
void registerTensorMapOps(DecodeTable &table);
void registerTensorMemoryOps(DecodeTable &table);
void registerWgmmaOps(DecodeTable &table);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_ASYNCINSTRUCTIONS_H
