//===- Exchange.h - Registers that lanes exchange ---------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_EXCHANGE_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_EXCHANGE_H

#include "PartitionLowering.h"
#include "attn/Layout/Convert.h"

namespace mlir::attn::lowering {

/// Returns the sum of numbers that the bits of a lane's number stand for.
using LaneNumber = function_ref<Value(ArrayRef<int64_t>)>;

/// Exchanges registers among lanes as a plan says; each holds `packing`
/// elements of a tile.
void exchangeRegisters(ImplicitLocOpBuilder &b, const ConversionPlan &plan,
                       unsigned packing, Value lane, LaneNumber combine,
                       MutableArrayRef<Value> registers);

/// Returns the bytes of f4E2M1FN pairs in the layout `target`; four of them are
/// a register on their way. Failure where a plan does not move them so.
FailureOr<SmallVector<Value>> exchangePairs(ImplicitLocOpBuilder &b,
                                            const ConversionPlan &plan,
                                            const TileValue &source,
                                            const TileLayout &target,
                                            Value lane, LaneNumber combine);

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_EXCHANGE_H
