//===- LowerTileLoops.cpp - Loops over tiles ------------------------------===//

#include "attn/Analysis/Flow/HandleFlow.h"
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

//===----------------------------------------------------------------------===//
// Tiles that are dealt
//===----------------------------------------------------------------------===//

namespace {
/// Lowers a loop to one that starts with the tile of the CTA's or cluster's
/// rank. The dealer, one thread, asks for the next tile: of a counter at the
/// end of the body, or in front of it for a cluster that has not started, which
/// takes time. Readers find the tile's number in the ring. Each role carries
/// its cursor.
class DealtLoop {
public:
  DealtLoop(gpu::GPUFuncOp kernel, TileLoopOp loop)
      : loop(loop), b(loop.getLoc(), loop) {
    if (std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize())
      cluster = countLaunched(*size);
  }

  /// Checks that the loop's partition has the roles that it needs.
  LogicalResult check();
  Operation *lower(Value own, Value number);

private:
  Value deal(Value number, Value cursor);
  void request(Value cursor);
  Value read(Value cursor);
  /// Inserts what follows where the dealer's thread alone comes.
  void enterDealer();
  /// Inserts what follows in a region of `op`.
  void enter(Operation *op);
  bool isInElect() {
    return static_cast<bool>(loop->getParentOfType<ElectOp>());
  }
  bool isRequested() { return loop.getScheduler() == TileScheduler::Clc; }

  TileLoopOp loop;
  ImplicitLocOpBuilder b;
  int64_t cluster = 1;
  ChannelCreateOp channel;
  /// The loop's roles: null where its partition does not deal, or where the
  /// thread that does knows the index.
  RoleAttr dealer, reader;
};
} // namespace

LogicalResult DealtLoop::check() {
  channel = loop.getChannel().getDefiningOp<ChannelCreateOp>();
  if (!channel)
    return loop.emitOpError("expected the result of an attn.channel.create as "
                            "its channel");
  auto fail = [&](const Twine &message) -> LogicalResult {
    InFlightDiagnostic diag = loop.emitOpError("expected ") << message;
    diag.attachNote(channel.getLoc()) << "the roles are here";
    return diag;
  };
  StringRef partition;
  if (auto [partitions, index] = getPartition(loop); partitions)
    partition = cast<StringAttr>(partitions.getNames()[index]).getValue();
  for (auto [index, role] :
       llvm::enumerate(channel.getRoles().getAsRange<RoleAttr>())) {
    if (!role.hasPartition(partition))
      continue;
    if (reader)
      return fail("one role of partition '" + partition +
                  "' that reads indices, got '" + reader.getName() + "' and '" +
                  role.getName() + "'");
    (index == 0 ? dealer : reader) = role;
  }
  if (!dealer && !reader)
    return fail("to stand in the partition of a role of its channel");
  if (!dealer)
    return success();
  if (!reader && isRequested())
    return fail("a second role of partition '" + partition +
                "', which reads responses, got none");
  if (!reader && cluster > 1)
    return fail("a second role of partition '" + partition +
                "', by which the CTAs of a cluster read indices, got none");
  if (!reader && !isInElect())
    return fail("to stand in an attn.elect or a second role of partition '" +
                partition + "', by which its threads read indices, got none");
  // On hardware st.async is an illegal instruction in a launch without
  // clusters.
  SignalKind needed =
      cluster > 1 || isRequested() ? SignalKind::Tx : SignalKind::Arrive;
  if (dealer.getSignal() == needed)
    return success();
  std::string where =
      isRequested() ? "with the scheduler 'clc'"
                    : llvm::formatv("in clusters of {0} CTAs", cluster).str();
  return fail("a first role that signals by " + stringifySignalKind(needed) +
              " " + where + ", got " + stringifySignalKind(dealer.getSignal()));
}

void DealtLoop::enter(Operation *op) {
  b.createBlock(&op->getRegion(0));
  b.setInsertionPoint(YieldOp::create(b, ValueRange()));
}

/// The next tile, taken from the counter and handed over.
Value DealtLoop::deal(Value number, Value cursor) {
  // Each tile that is not a CTA's first one is taken once, and each CTA that
  // has a tile finds none once: as many as there are tiles. The last one
  // leaves 0 for the next launch.
  Value last = arith::SubIOp::create(b, loop.getCount(),
                                     arith::ConstantIntOp::create(b, 1, 32));
  Value dealt = LLVM::AtomicRMWOp::create(
      b, LLVM::AtomicBinOp::uinc_wrap, loop.getCounter(), last,
      LLVM::AtomicOrdering::monotonic, /*syncscope=*/"device");
  Value next = arith::AddIOp::create(b, number, dealt);
  StringRef role = dealer.getName();
  auto slot = ChannelAcquireOp::create(b, channel, cursor, role);
  if (getChannelSignal(dealer.getSignal()).countsBytes)
    ScalarSendOp::create(b, next, loop.getRing(), slot.getIndex(),
                         slot.getToken(), /*barriers=*/Value(),
                         /*which=*/Value(), /*ctas=*/IntegerAttr());
  else
    ScalarStoreOp::create(b, next, loop.getRing(), slot.getIndex());
  ChannelReleaseOp::create(b, channel, slot.getToken(), role);
  return next;
}

/// Asks for the cluster whose tile is the next one.
void DealtLoop::request(Value cursor) {
  StringRef role = dealer.getName();
  auto slot = ChannelAcquireOp::create(b, channel, cursor, role);
  ClusterRequestOp::create(b, loop.getRing(), slot.getIndex(), slot.getToken(),
                           /*barriers=*/Value(), /*which=*/Value(),
                           /*ctas=*/IntegerAttr());
  ChannelReleaseOp::create(b, channel, slot.getToken(), role);
}

Value DealtLoop::read(Value cursor) {
  StringRef role = reader.getName();
  auto slot = ChannelAcquireOp::create(b, channel, cursor, role);
  Value next;
  if (isRequested()) {
    next = ClusterResponseOp::create(b, loop.getRing(), slot.getIndex(),
                                     loop.getCount());
    // The next response comes through the async proxy.
    FenceProxyOp::create(b);
  } else {
    next = ScalarLoadOp::create(b, loop.getRing(), slot.getIndex());
  }
  ChannelReleaseOp::create(b, channel, slot.getToken(), role);
  return next;
}

void DealtLoop::enterDealer() {
  if (reader && !isInElect())
    enter(ElectOp::create(b));
  if (cluster > 1)
    enter(ClusterLeaderOp::create(b));
}

Operation *DealtLoop::lower(Value own, Value number) {
  SmallVector<Value> inits = {own};
  for (RoleAttr role : {dealer, reader})
    if (role)
      inits.push_back(CursorStartOp::create(b, channel, role.getName()));
  size_t extra = inits.size();
  llvm::append_range(inits, loop.getInits());
  TypeRange types = ValueRange(inits).getTypes();
  auto tiles = scf::WhileOp::create(b, types, inits);
  SmallVector<Location> locations(inits.size(), loop.getLoc());
  Block *before = b.createBlock(&tiles.getBefore(), {}, types, locations);
  Value exists = arith::CmpIOp::create(b, arith::CmpIPredicate::ult,
                                       before->getArgument(0), loop.getCount());
  scf::ConditionOp::create(b, exists, before->getArguments());

  Block *after = b.createBlock(&tiles.getAfter(), {}, types, locations);
  ValueRange cursors = after->getArguments().slice(1, extra - 1);
  if (dealer && isRequested()) {
    OpBuilder::InsertionGuard guard(b);
    enterDealer();
    request(cursors.front());
  }
  moveBody(loop, after, after->getArgument(0),
           after->getArguments().drop_front(extra));
  Operation *yield = after->getTerminator();
  b.setInsertionPoint(yield);
  Value next;
  if (dealer && !isRequested()) {
    OpBuilder::InsertionGuard guard(b);
    enterDealer();
    next = deal(number, cursors.front());
  }
  if (reader)
    next = read(cursors.back());
  SmallVector<Value> passed = {next};
  for (Value cursor : cursors)
    passed.push_back(CursorAdvanceOp::create(b, cursor, channel));
  yield->insertOperands(0, passed);
  return tiles;
}

//===----------------------------------------------------------------------===//
// All loops
//===----------------------------------------------------------------------===//

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
  case TileScheduler::Dynamic:
  case TileScheduler::Clc: {
    DealtLoop dealt(kernel, loop);
    if (failed(dealt.check()))
      return failure();
    lowered = dealt.lower(own, number);
    break;
  }
  }
  // The last values of a loop are those that it carries.
  loop.replaceAllUsesWith(
      lowered->getResults().take_back(loop.getNumResults()));
  loop.erase();
  return success();
}
