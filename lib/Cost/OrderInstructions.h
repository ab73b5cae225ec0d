//===- OrderInstructions.h - As ptxas would order them ----------*- C++ -*-===//

#ifndef ATTN_LIB_COST_ORDERINSTRUCTIONS_H
#define ATTN_LIB_COST_ORDERINSTRUCTIONS_H

#include "attn/Simulator/Machine/Trace.h"

namespace mlir::attn::sim {

/// Puts arithmetic behind the memory accesses and signals that do not need it,
/// as ptxas does inside of a basic block: a warp stores and signals as soon as
/// it has what it stores.
void orderInstructions(Trace &trace);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_COST_ORDERINSTRUCTIONS_H
