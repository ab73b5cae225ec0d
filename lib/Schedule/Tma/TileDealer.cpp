//===- TileDealer.cpp - A counter that deals tiles ------------------------===//

#include "TileDealer.h"

using namespace mlir;
using namespace mlir::attn;

TileDealer attn::makeTileDealer(KernelContext &context,
                                ArrayRef<std::pair<Role, SignalKind>> roles) {
  ImplicitLocOpBuilder &b = context.b;
  TileDealer dealer;
  dealer.counter =
      context.addWorkspace({/*bytes=*/4, /*zeroed=*/true, /*restored=*/true});
  dealer.channel = makeChannel(b, "tile", kTileStages, roles);
  auto type =
      BufferType::get(b.getContext(), {kTileStages}, b.getI32Type(),
                      AutoLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  dealer.ring = AllocOp::create(b, type, b.getStringAttr("tile"), IntegerAttr(),
                                StringAttr());
  return dealer;
}

void attn::setTileDealer(TileLoopOp loop, const TileDealer &dealer) {
  if (!dealer.counter)
    return;
  loop.getCounterMutable().assign(dealer.counter);
  loop.getChannelMutable().assign(dealer.channel);
  loop.getRingMutable().assign(dealer.ring);
}
