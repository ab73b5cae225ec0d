//===- WsTmemResults.cpp - Results with a partition of their own ----------===//
//
// With o_partition nobody waits between two tiles for results to leave. The
// thread that multiplies starts the first scores of a tile in front of the last
// results of the one before, and a warpgroup of its own reads these, divides
// and stores them. A tile's softmax hands it what rows are multiplied by, and
// waits in front of the probabilities of its first block until the results of
// the tile before have been read, so that the product of these may be written
// over them.
//
//===----------------------------------------------------------------------===//

#include "../Tma/RingFacts.h"
#include "WsTmemEmitter.h"

using namespace mlir;
using namespace mlir::attn;

/// Columns of results that a thread has at a time.
static constexpr int64_t kPartColumns = 32;

/// Slots of an order of issue beside those of tensor memory.
static constexpr StringRef kDoneSlots[] = {"o0", "o1"};
static constexpr StringRef kQuerySlots[] = {"q0", "q1"};

void WsTmemEmitter::makeResultChannels(int64_t number) {
  TensorTile &tile = tiles[number];
  std::string suffix = std::to_string(number);
  tile.done = makeChannel(
      "o" + suffix, /*stages=*/1,
      {{kMultiplier, SignalKind::Commit}, {kResults, SignalKind::Arrive}});
  tile.factored = makeChannel("l" + suffix, /*stages=*/1,
                              {{kSoftmaxes[number], SignalKind::Arrive},
                               {kResults, SignalKind::Arrive}});
  tile.freed = makeChannel("f" + suffix, /*stages=*/1,
                           {{kSoftmaxes[number], SignalKind::Arrive},
                            {kResults, SignalKind::Arrive}});
  auto rows =
      BufferType::get(b.getContext(), {kTmemRows}, b.getF32Type(),
                      AutoLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  for (int64_t factor = 0; factor < getTmemFactors(facts); ++factor)
    tile.factors.push_back(
        alloc("l" + suffix + (factor == 0 ? "" : "_logits"), rows));
  // Both tiles' results pass through the same memory.
  if (number != 0 || resultBuffer != ResultBuffer::Own)
    return;
  for (int64_t first = 0; first < facts.valueDim; first += kPartColumns) {
    int64_t columns = std::min(kPartColumns, facts.valueDim - first);
    staging.push_back(alloc("out" + std::to_string(first),
                            bufferType({kTmemRows, columns}, facts.outType)));
  }
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

int64_t WsTmemEmitter::countLeft() const {
  return 1 + (plan.getOwnBlocks() ? 2 * kTmemTiles : 0);
}

IssueOrder WsTmemEmitter::startRotatedOrder(Value trips, ValueRange cursors,
                                            ValueRange left,
                                            ValueRange values) {
  IssueOrder order;
  order.role = kMultiplier;
  order.trips = trips;
  order.cursors = llvm::to_vector(cursors);
  order.left = left[0];
  order.values = llvm::to_vector(values);
  order.leftValues = llvm::to_vector(left.drop_front());
  addKeySlots(order);
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    order.addSlot(kTileSlots[number], tiles[number].channel);
    if (tiles[number].handed)
      order.addSlot(kHandedSlots[number], tiles[number].handed);
    order.addSlot(kDoneSlots[number], tiles[number].done);
  }
  // Where a tile may have no product, queries of both are waited for in front
  // of any, as in the order without rotation.
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    order.slots.push_back(kQuerySlots[number]);
    order.slotChannels.push_back(order.channels.size());
    int64_t first = plan.getOwnBlocks() ? 0 : number;
    order.spans.push_back({kQuerySlots[number], "qk" + std::to_string(first),
                           "qk" + std::to_string(number)});
  }
  order.channels.push_back(q.channel);
  if (plan.getPBeside())
    for (int64_t number = 0; number < kTmemTiles; ++number)
      addRotatedScores(order, number);
  for (int64_t number = 0; number < kTmemTiles; ++number) {
    addRotatedResults(order, number);
    if (!plan.getPBeside())
      addRotatedScores(order, number);
  }
  if (holdsKeys(plan)) {
    order.heldSlot = "k";
    order.releasedBehind = getFront() != 0 ? "pv0_back" : "pv0";
  }
  return order;
}

/// A tile's own steps of those that statements are told.
static OwnSteps getOwnSteps(ValueRange args, int64_t number, bool hasOwn) {
  if (!hasOwn)
    return {};
  ValueRange values = args.take_back(2 * kTmemTiles);
  return {values[2 * number], values[2 * number + 1]};
}

void WsTmemEmitter::addRotatedScores(IssueOrder &order, int64_t number) {
  order.statements.push_back(
      {"qk" + std::to_string(number),
       /*isLess=*/false,
       {"k", kTileSlots[number]},
       /*parts=*/{},
       [this, number](ValueRange args) {
         OwnSteps own = getOwnSteps(args, number, plan.getOwnBlocks());
         emitIfOwn(own, args[0], [&](Value) {
           emitScoreProduct(number, emitSlot(q, context.i32(number)), args[1]);
         });
       }});
}

void WsTmemEmitter::addRotatedResults(IssueOrder &order, int64_t number) {
  addResultParts(
      order, number, /*skew=*/1,
      [this, number](ValueRange args, function_ref<void(Value)> emit) {
        emitIfOwn(getOwnSteps(args, number, plan.getOwnBlocks()), args[0],
                  emit);
      });
  order.statements.back().ends = kDoneSlots[number];
}

Value WsTmemEmitter::emitWalkedTrips() {
  Value blocks = b.createOrFold<arith::SubIOp>(walk.end, walk.begin);
  return b.createOrFold<arith::MaxSIOp>(blocks, context.i32(0));
}

/// A tile without blocks has what is left of the one before: nobody is to wait
/// for that until there is a tile with some.
SmallVector<Value> WsTmemEmitter::emitRotatedTile(ValueRange carried) {
  Value trips = emitWalkedTrips();
  SmallVector<Value> values;
  if (plan.getOwnBlocks())
    for (int64_t number = 0; number < kTmemTiles; ++number) {
      OwnSteps own = emitOwnSteps(emitOwnTile(number));
      if (!own.first)
        own = {context.i32(0), trips};
      values.append({own.first, own.behind});
    }
  SmallVector<Value> next =
      emitIssueLoop(startRotatedOrder(trips, carried.drop_back(countLeft()),
                                      carried.take_back(countLeft()), values));
  next.push_back(trips);
  llvm::append_range(next, values);
  return next;
}

LogicalResult WsTmemEmitter::emitRotatedMultiplier() {
  LogicalResult status = success();
  elect([&]() {
    rank = context.i32(0);
    TileLoopOp loop = emitTileLoop(
        [&] {
          SmallVector<Value> carried = startKeyCursors(kMultiplier);
          for (const TensorTile &tile : tiles) {
            for (Value channel : tile.getChannels())
              carried.push_back(CursorStartOp::create(b, channel, kMultiplier));
            carried.push_back(CursorStartOp::create(b, tile.done, kMultiplier));
          }
          carried.push_back(CursorStartOp::create(b, q.channel, kMultiplier));
          carried.append(countLeft(), context.i32(0));
          return carried;
        },
        [&](ValueRange carried) -> FailureOr<SmallVector<Value>> {
          return emitRotatedTile(carried);
        });
    if (!(status = success(static_cast<bool>(loop))).succeeded())
      return;
    setDealer(loop, dealer);
    // The last results of the last tile.
    ValueRange behind = loop.getResults();
    ValueRange left = behind.take_back(countLeft());
    emitIssueLoop(startRotatedOrder(context.i32(0),
                                    behind.drop_back(countLeft()), left,
                                    left.drop_front()));
  });
  return status;
}

//===----------------------------------------------------------------------===//
// What the softmax hands over
//===----------------------------------------------------------------------===//

Value WsTmemEmitter::awaitFreed(int64_t number, Value condition, Value cursor) {
  Value channel = tiles[number].freed;
  Role role = kSoftmaxes[number];
  auto branch = scf::IfOp::create(b, cursor.getType(), condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  auto slot = ChannelAcquireOp::create(b, channel, cursor, role);
  ChannelReleaseOp::create(b, channel, slot.getToken(), role);
  scf::YieldOp::create(b,
                       CursorAdvanceOp::create(b, cursor, channel).getResult());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, cursor);
  return branch.getResult(0);
}

Value WsTmemEmitter::emitHandedState(int64_t number, const FinalRows &rows,
                                     Value cursor) {
  const TensorTile &tile = tiles[number];
  auto slot =
      ChannelAcquireOp::create(b, tile.factored, cursor, kSoftmaxes[number]);
  LocalStoreOp::create(b, emitInverse(rows.getDivisor()), tile.factors[0]);
  if (rows.factor)
    LocalStoreOp::create(b, rows.factor, tile.factors[1]);
  ChannelReleaseOp::create(b, tile.factored, slot.getToken(),
                           kSoftmaxes[number]);
  if (facts.lse)
    emitLSE(rows.m, rows.l, emitResultView("lse"));
  return CursorAdvanceOp::create(b, cursor, tile.factored);
}

Value WsTmemEmitter::emitLeftTurn(int64_t number, Value trips, Value left,
                                  Value cursor) {
  Value isEmpty = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::eq, trips,
                                                context.i32(0));
  return awaitLastCommit(
      number, cursor,
      b.createOrFold<arith::SelectOp>(isEmpty, left, context.i32(0)));
}

Value WsTmemEmitter::awaitLastCommit(int64_t number, Value cursor, Value left) {
  Value channel = tiles[number].getLast();
  auto wait = [&]() -> Value {
    auto slot =
        ChannelAcquireOp::create(b, channel, cursor, kSoftmaxes[number]);
    emitReleaseAll(number, channel, slot.getToken());
    return CursorAdvanceOp::create(b, cursor, channel);
  };
  if (!left)
    return wait();
  Value isLeft =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, left, context.i32(0));
  auto branch = scf::IfOp::create(b, cursor.getType(), isLeft,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(b, wait());
  b.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(b, cursor);
  return branch.getResult(0);
}

//===----------------------------------------------------------------------===//
// The partition of the results
//===----------------------------------------------------------------------===//

void WsTmemEmitter::forResultParts(
    function_ref<void(int64_t, int64_t, Value)> emit) {
  for (int64_t first = 0; first < facts.valueDim; first += kPartColumns)
    emit(first, std::min(kPartColumns, facts.valueDim - first),
         staging.empty() ? Value() : staging[first / kPartColumns]);
}

Value WsTmemEmitter::emitResultPart(int64_t number, int64_t first,
                                    int64_t columns, ValueRange factors,
                                    Value isThere) {
  RankedTensorType type = f32Tile({kTmemRows, columns});
  auto branch = scf::IfOp::create(b, TypeRange{type}, isThere,
                                  /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    scf::YieldOp::create(b,
                         emitTensorLoad(tiles[number].results, first, columns));
    b.setInsertionPointToStart(branch.elseBlock());
    scf::YieldOp::create(b, splat(type, 0));
  }
  Value part = branch.getResult(0);
  // In the order in which a softmax does so that stores its own results.
  for (Value factor : factors.drop_front())
    part = arith::MulFOp::create(b, part, BroadcastOp::create(b, type, factor));
  return emitQuotient(part, factors[0]);
}

void WsTmemEmitter::emitResultParts(int64_t number, ValueRange factors,
                                    Value isThere) {
  forResultParts([&](int64_t first, int64_t columns, Value memory) {
    Value part;
    if (isThere)
      part = emitResultPart(number, first, columns, factors, isThere);
    else
      part = arith::ConstantOp::create(
          b, b.getZeroAttr(tileType({kTmemRows, columns}, facts.outType)));
    if (memory)
      LocalStoreOp::create(b, part, memory);
    else
      StoreResultOp::create(b, part, emitResultView("o", first, columns), row,
                            /*scratch=*/Value(), /*map=*/Value(),
                            /*coordinates=*/ValueRange(), plan.getEpilogue());
  });
}

SmallVector<Value> WsTmemEmitter::emitResultTile(int64_t number,
                                                 ValueRange cursors) {
  const TensorTile &tile = tiles[number];
  if (number != 0) {
    ClusterTile own = emitOwnTile(number);
    row = own.row;
    bounds = own.bounds;
  }
  auto isSome = [&](Value begin, Value end) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, begin, end);
  };
  auto freed = ChannelAcquireOp::create(b, tile.freed, cursors[1], kResults);
  auto handed =
      ChannelAcquireOp::create(b, tile.factored, cursors[2], kResults);
  SmallVector<Value> factors;
  for (Value factor : tile.factors)
    factors.push_back(LocalLoadOp::create(b, f32Tile({kTmemRows}), factor));
  auto branch =
      scf::IfOp::create(b, cursors[0].getType(), isSome(walk.begin, walk.end),
                        /*withElseRegion=*/true);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(branch.thenBlock());
    auto slot = ChannelAcquireOp::create(b, tile.done, cursors[0], kResults);
    // A tile may have no block of its own among those of both.
    Value isThere = plan.getOwnBlocks()
                        ? isSome(bounds.begin, bounds.end)
                        : arith::ConstantIntOp::create(b, 1, 1).getResult();
    emitResultParts(number, factors, isThere);
    ChannelReleaseOp::create(b, tile.done, slot.getToken(), kResults);
    scf::YieldOp::create(
        b, CursorAdvanceOp::create(b, cursors[0], tile.done).getResult());
    b.setInsertionPointToStart(branch.elseBlock());
    emitResultParts(number, factors, /*isThere=*/Value());
    scf::YieldOp::create(b, cursors[0]);
  }
  ChannelReleaseOp::create(b, tile.freed, freed.getToken(), kResults);
  ChannelReleaseOp::create(b, tile.factored, handed.getToken(), kResults);
  forResultParts([&](int64_t first, int64_t columns, Value memory) {
    if (memory)
      CopyOutOp::create(b, memory, emitResultView("o", first, columns), row);
  });
  return {branch.getResult(0),
          CursorAdvanceOp::create(b, cursors[1], tile.freed),
          CursorAdvanceOp::create(b, cursors[2], tile.factored)};
}

LogicalResult WsTmemEmitter::emitResultPartition() {
  rank = context.i32(0);
  TileLoopOp loop = emitTileLoop(
      [&] {
        SmallVector<Value> cursors;
        for (const TensorTile &tile : tiles)
          for (Value channel : {tile.done, tile.freed, tile.factored})
            cursors.push_back(CursorStartOp::create(b, channel, kResults));
        return cursors;
      },
      [&](ValueRange cursors) -> FailureOr<SmallVector<Value>> {
        SmallVector<Value> next;
        for (int64_t number = 0; number < kTmemTiles; ++number)
          llvm::append_range(
              next, emitResultTile(number, cursors.slice(3 * number, 3)));
        return next;
      });
  if (!loop)
    return failure();
  setDealer(loop, dealer);
  return success();
}
