//===- LowerTileLoops.cpp - Loops over tiles ------------------------------===//

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
        lower(kernel, loop);
      numLoops += loops.size();
    }
  }

  void lower(gpu::GPUFuncOp kernel, TileLoopOp loop);
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

void AttnLowerTileLoopsPass::lower(gpu::GPUFuncOp kernel, TileLoopOp loop) {
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
  }
  loop.replaceAllUsesWith(lowered->getResults());
  loop.erase();
}
