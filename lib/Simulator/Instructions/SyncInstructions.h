//===- SyncInstructions.h - The instructions of this folder -----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_SYNCINSTRUCTIONS_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_SYNCINSTRUCTIONS_H

namespace mlir::attn::sim {

class DecodeTable;

/// Each adds those of one file.
void registerAtomicOps(DecodeTable &table);
void registerBarrierOps(DecodeTable &table);
void registerBitOps(DecodeTable &table);
void registerBulkStoreOps(DecodeTable &table);
void registerCompareOps(DecodeTable &table);
void registerControlOps(DecodeTable &table);
void registerConvertOps(DecodeTable &table);
void registerFloatOps(DecodeTable &table);
void registerIntegerOps(DecodeTable &table);
void registerMatrixMemoryOps(DecodeTable &table);
void registerMatrixOps(DecodeTable &table);
void registerMemoryOps(DecodeTable &table);
void registerMoveOps(DecodeTable &table);
void registerWarpOps(DecodeTable &table);
void registerWmmaOps(DecodeTable &table);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_SYNCINSTRUCTIONS_H
