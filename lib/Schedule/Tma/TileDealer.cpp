//===- TileDealer.cpp - How dealt tiles reach all roles -------------------===//

#include "TileDealer.h"

using namespace mlir;
using namespace mlir::attn;

/// Makes a dealer without a counter, whose ring has elements of `bits`.
static TileDealer makeHandOver(KernelContext &context, unsigned bits,
                               ArrayRef<std::pair<Role, SignalKind>> roles) {
  ImplicitLocOpBuilder &b = context.b;
  TileDealer dealer;
  dealer.channel = makeChannel(b, "tile", kTileStages, roles);
  auto type =
      BufferType::get(b.getContext(), {kTileStages}, b.getIntegerType(bits),
                      AutoLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  dealer.ring = AllocOp::create(b, type, b.getStringAttr("tile"), IntegerAttr(),
                                StringAttr());
  return dealer;
}

TileDealer attn::makeTileDealer(KernelContext &context,
                                ArrayRef<std::pair<Role, SignalKind>> roles) {
  Value counter =
      context.addWorkspace({/*bytes=*/4, /*zeroed=*/true, /*restored=*/true});
  TileDealer dealer = makeHandOver(context, /*bits=*/32, roles);
  dealer.counter = counter;
  return dealer;
}

TileDealer
attn::makeTileRequester(KernelContext &context,
                        ArrayRef<std::pair<Role, SignalKind>> roles) {
  return makeHandOver(context, /*bits=*/128, roles);
}

void attn::setTileDealer(TileLoopOp loop, const TileDealer &dealer) {
  if (!dealer.channel)
    return;
  if (dealer.counter)
    loop.getCounterMutable().assign(dealer.counter);
  loop.getChannelMutable().assign(dealer.channel);
  loop.getRingMutable().assign(dealer.ring);
}
