//===- StateKey.h - When two states go on in the same way -------*- C++ -*-===//

#ifndef ATTN_LIB_ANALYSIS_STATEKEY_H
#define ATTN_LIB_ANALYSIS_STATEKEY_H

#include "BarrierMachine.h"

namespace mlir::attn::barriers {

/// Drops what cannot matter any more from a state that waits for a tile, and
/// writes what is left as text. States with the same text take the same steps
/// from there on, with the same verdicts.
std::string makeStateKey(Machine &machine);

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_STATEKEY_H
