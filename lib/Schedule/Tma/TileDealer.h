//===- TileDealer.h - A counter that deals tiles ----------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TMA_TILEDEALER_H
#define ATTN_LIB_SCHEDULE_TMA_TILEDEALER_H

#include "Rings.h"

namespace mlir::attn {

/// How the counter's tiles reach all roles; null values where none deals.
struct TileDealer {
  Value counter, channel, ring;
};

/// Makes a counter, whose tiles the first of the roles hands on to the others.
TileDealer makeTileDealer(KernelContext &context,
                          ArrayRef<std::pair<Role, SignalKind>> roles);
/// Lets the loop have its tiles from `dealer`, if that deals.
void setTileDealer(TileLoopOp loop, const TileDealer &dealer);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_TILEDEALER_H
