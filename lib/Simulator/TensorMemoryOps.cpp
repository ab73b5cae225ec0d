//===- TensorMemoryOps.cpp - tcgen05 --------------------------------------===//

#include "Decoder.h"

void mlir::attn::sim::registerTensorMemoryOps(DecodeTable &table) {}
