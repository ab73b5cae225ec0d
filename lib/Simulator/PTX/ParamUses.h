//===- ParamUses.h - What a kernel's parameters seem to be ------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_PTX_PARAMUSES_H
#define ATTN_LIB_SIMULATOR_PTX_PARAMUSES_H

#include "Syntax.h"
#include "attn/Simulator/PTX/Program.h"

namespace mlir::attn::sim {

/// Says which parameters of a kernel seem to be pointers, of what, by the
/// instructions that use them. Nothing but drafts for people may rest on it.
void guessParams(const AstFunction &kernel, std::vector<KernelParam> &params);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_PARAMUSES_H
