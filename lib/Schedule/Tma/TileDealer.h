//===- TileDealer.h - How dealt tiles reach all roles -----------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_TMA_TILEDEALER_H
#define ATTN_LIB_SCHEDULE_TMA_TILEDEALER_H

#include "Rings.h"

namespace mlir::attn {

/// How tiles that a counter deals, or responses to requests for clusters, reach
/// all roles; null values where there are none, and a null counter of requests.
struct TileDealer {
  Value counter, channel, ring;
};

/// Makes a counter, whose tiles the first of the roles hands on to the others.
TileDealer makeTileDealer(KernelContext &context,
                          ArrayRef<std::pair<Role, SignalKind>> roles);
/// Makes a ring of responses to the requests that the first of the roles makes.
TileDealer makeTileRequester(KernelContext &context,
                             ArrayRef<std::pair<Role, SignalKind>> roles);
/// Lets the loop have its tiles from `dealer`, if that deals.
void setTileDealer(TileLoopOp loop, const TileDealer &dealer);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_TMA_TILEDEALER_H
