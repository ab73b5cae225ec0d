//===- BulkCopyOps.cpp - cp.async.bulk ------------------------------------===//

#include "Decoder.h"

using namespace mlir::attn::sim;
using llvm::Error;

namespace mlir::attn::sim {
Error decodeBulkCopy(Decoding &c) {
  return c.error("bulk copies are not supported yet");
}
void registerBulkCopyOps(DecodeTable &table) {}
void registerWgmmaOps(DecodeTable &table) {}
void registerTensorMemoryOps(DecodeTable &table) {}
} // namespace mlir::attn::sim
