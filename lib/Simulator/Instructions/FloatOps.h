//===- FloatOps.h - Mnemonics of integers and floats ------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_FLOATOPS_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_FLOATOPS_H

#include "../PTX/Decoder.h"

namespace mlir::attn::sim {

/// Whether an instruction whose mnemonic integers share is about floats.
bool isFloatInstruction(const Decoding &c);
llvm::Error decodeFloatArithmetic(Decoding &c);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_FLOATOPS_H
