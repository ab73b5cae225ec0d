//===- LowerTileLoops.cpp - Loops over tiles ------------------------------===//

#include "attn/Analysis/HandleFlow.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNLOWERTILELOOPSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {
struct AttnLowerTileLoopsPass
    : attn::impl::AttnLowerTileLoopsPassBase<AttnLowerTileLoopsPass> {
  using Base::Base;

  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      SmallVector<TileLoopOp> loops;
      kernel.walk([&](TileLoopOp loop) { loops.push_back(loop); });
      for (TileLoopOp loop : loops)
        if (failed(lower(kernel, loop)))
          return signalPassFailure();
      numLoops += loops.size();
    }
  }

  LogicalResult lower(gpu::GPUFuncOp kernel, TileLoopOp loop);
};
} // namespace

/// Moves the loop's body to the end of `block`, which yields its values.
static void moveBody(TileLoopOp loop, Block *block, Value tile,
                     ValueRange carried) {
  Block &body = loop.getBody().front();
  Operation *yield = body.getTerminator();
  SmallVector<Value> arguments = {tile};
  llvm::append_range(arguments, carried);
  for (auto [argument, value] : llvm::zip(body.getArguments(), arguments))
    argument.replaceAllUsesWith(value);
  auto builder = OpBuilder::atBlockEnd(block);
  scf::YieldOp::create(builder, yield->getLoc(), yield->getOperands());
  block->getOperations().splice(std::prev(block->end()), body.getOperations(),
                                body.begin(), yield->getIterator());
}

/// The role of a loop whose tiles a counter deals.
static FailureOr<StringAttr> checkDealt(gpu::GPUFuncOp kernel, TileLoopOp loop,
                                        bool &isDealer) {
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  if (size && llvm::product_of(*size) > 1) {
    InFlightDiagnostic diag =
        loop.emitOpError("expected a kernel without clusters for the scheduler "
                         "'dynamic', got clusters of ")
        << llvm::product_of(*size) << " CTAs";
    diag.attachNote(kernel.getLoc()) << "the kernel is here";
    return diag;
  }
  auto channel = loop.getChannel().getDefiningOp<ChannelCreateOp>();
  if (!channel)
    return loop.emitOpError("expected the result of an attn.channel.create as "
                            "its channel");
  auto [partitions, index] = getPartition(loop);
  StringAttr name;
  std::optional<unsigned> role;
  if (partitions) {
    name = cast<StringAttr>(partitions.getNames()[index]);
    role = channel.findRole(name);
  }
  if (!role || channel.getRoles().size() != 2) {
    InFlightDiagnostic diag =
        loop.emitOpError("expected to stand in the partition of one of two "
                         "roles of its channel");
    diag.attachNote(channel.getLoc()) << "the roles are here";
    return diag;
  }
  isDealer = *role == 0;
  if (isDealer && !loop->getParentOfType<ElectOp>())
    return loop.emitOpError("expected to stand in an attn.elect, since one "
                            "thread takes tiles from the counter");
  return name;
}

/// A loop whose condition hands a tile's index over: the dealer puts the one
/// that it has at hand, `own` at first, into the ring; the other role finds it
/// there. The dealer carries its tile, and both their cursor.
static FailureOr<Operation *>
lowerDynamic(gpu::GPUFuncOp kernel, TileLoopOp loop, Value own, Value number) {
  bool isDealer = false;
  FailureOr<StringAttr> role = checkDealt(kernel, loop, isDealer);
  if (failed(role))
    return failure();
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Value channel = loop.getChannel(), ring = loop.getRing();
  SmallVector<Value> inits = {CursorStartOp::create(b, channel, *role)};
  if (isDealer)
    inits.push_back(own);
  size_t extra = inits.size();
  llvm::append_range(inits, loop.getInits());
  SmallVector<Type> types = {b.getI32Type(), inits.front().getType()};
  llvm::append_range(types, loop.getResultTypes());
  auto tiles = scf::WhileOp::create(b, types, inits);
  SmallVector<Location> locations(types.size(), loop.getLoc());

  Block *before =
      b.createBlock(&tiles.getBefore(), {}, ValueRange(inits).getTypes(),
                    ArrayRef(locations).take_front(inits.size()));
  Value cursor = before->getArgument(0);
  auto slot = ChannelAcquireOp::create(b, channel, cursor, *role);
  Value tile;
  if (isDealer) {
    tile = before->getArgument(1);
    ScalarStoreOp::create(b, tile, ring, slot.getIndex());
  } else {
    tile = ScalarLoadOp::create(b, ring, slot.getIndex());
  }
  ChannelReleaseOp::create(b, channel, slot.getToken(), *role);
  SmallVector<Value> passed = {tile,
                               CursorAdvanceOp::create(b, cursor, channel)};
  llvm::append_range(passed, before->getArguments().drop_front(extra));
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, tile,
                                       loop.getCount());
  scf::ConditionOp::create(b, exists, passed);

  Block *after = b.createBlock(&tiles.getAfter(), {}, types, locations);
  moveBody(loop, after, after->getArgument(0),
           after->getArguments().drop_front(2));
  Operation *yield = after->getTerminator();
  b.setInsertionPoint(yield);
  SmallVector<Value> next = {after->getArgument(1)};
  if (isDealer) {
    // Each tile that is not a CTA's first one is taken once, and each CTA that
    // has a tile finds none once: as many as there are tiles. The last one
    // leaves 0 for the next launch.
    Value last = arith::SubIOp::create(b, loop.getCount(),
                                       arith::ConstantIntOp::create(b, 1, 32));
    Value dealt = LLVM::AtomicRMWOp::create(
        b, LLVM::AtomicBinOp::uinc_wrap, loop.getCounter(), last,
        LLVM::AtomicOrdering::monotonic, /*syncscope=*/"device");
    next.push_back(arith::AddIOp::create(b, number, dealt));
  }
  yield->insertOperands(0, next);
  return tiles.getOperation();
}

LogicalResult AttnLowerTileLoopsPass::lower(gpu::GPUFuncOp kernel,
                                            TileLoopOp loop) {
  ImplicitLocOpBuilder b(loop.getLoc(), loop);
  Type i32 = b.getI32Type();
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  // This CTA or cluster and their number.
  Value own = arith::IndexCastOp::create(
      b, i32, gpu::BlockIdOp::create(b, gpu::Dimension::x));
  Value number = arith::IndexCastOp::create(
      b, i32, gpu::GridDimOp::create(b, gpu::Dimension::x));
  if (std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
      size && size->front() > 1) {
    Value cluster = constant(size->front());
    own = arith::DivUIOp::create(b, own, cluster);
    number = arith::DivUIOp::create(b, number, cluster);
  }
  Value count = loop.getCount(), zero = constant(0), one = constant(1);
  ValueRange inits = loop.getInits();

  auto isOdd = [&](Value value) -> Value {
    Value bit = arith::AndIOp::create(b, value, one);
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ne, bit, zero);
  };
  Operation *lowered = nullptr;
  switch (loop.getScheduler()) {
  case TileScheduler::Single: {
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, own, count);
    auto branch = scf::IfOp::create(b, loop.getResultTypes(), exists,
                                    /*addThenBlock=*/true,
                                    /*addElseBlock=*/true);
    moveBody(loop, branch.thenBlock(), own, inits);
    auto builder = OpBuilder::atBlockEnd(branch.elseBlock());
    scf::YieldOp::create(builder, loop.getLoc(), inits);
    lowered = branch;
    break;
  }
  case TileScheduler::Strided: {
    auto tiles = scf::ForOp::create(b, own, count, number, inits);
    if (inits.empty())
      tiles.getBody()->getTerminator()->erase();
    moveBody(loop, tiles.getBody(), tiles.getInductionVar(),
             tiles.getRegionIterArgs());
    lowered = tiles;
    break;
  }
  case TileScheduler::Snake: {
    // All whole rounds, and the last one if it has a tile at our place.
    Value last = arith::SubIOp::create(b, number, one);
    Value mirrored = arith::SubIOp::create(b, last, own);
    Value whole = arith::DivUIOp::create(b, count, number);
    Value rest = arith::RemUIOp::create(b, count, number);
    Value place = arith::SelectOp::create(b, isOdd(whole), mirrored, own);
    Value more =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, place, rest);
    Value rounds =
        arith::AddIOp::create(b, whole, arith::ExtUIOp::create(b, i32, more));
    auto tiles = scf::ForOp::create(b, zero, rounds, one, inits);
    if (inits.empty())
      tiles.getBody()->getTerminator()->erase();
    b.setInsertionPointToStart(tiles.getBody());
    Value round = tiles.getInductionVar();
    Value first = arith::MulIOp::create(b, round, number);
    Value within = arith::SelectOp::create(b, isOdd(round), mirrored, own);
    Value tile = arith::AddIOp::create(b, first, within);
    moveBody(loop, tiles.getBody(), tile, tiles.getRegionIterArgs());
    lowered = tiles;
    break;
  }
  case TileScheduler::Dynamic: {
    FailureOr<Operation *> tiles = lowerDynamic(kernel, loop, own, number);
    if (failed(tiles))
      return failure();
    lowered = *tiles;
    break;
  }
  }
  // The last values of a loop are those that it carries.
  loop.replaceAllUsesWith(
      lowered->getResults().take_back(loop.getNumResults()));
  loop.erase();
  return success();
}
