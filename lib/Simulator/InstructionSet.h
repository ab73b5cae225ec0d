//===- InstructionSet.h - All instructions ----------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONSET_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONSET_H

#include "PTX/Decoder.h"

namespace mlir::attn::sim {

/// How each instruction is decoded.
const DecodeTable &getInstructions();

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONSET_H
