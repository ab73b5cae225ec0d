//===- WsTmemMultiplier.cpp - The thread of ws_tmem that multiplies -------===//

#include "../Tma/RingFacts.h"
#include "../Wgmma/WgmmaFacts.h"
#include "WsTmemKernel.h"
#include "attn/Dialect/Attn/IR/KernelAttrs.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class Multiplier {
public:
  explicit Multiplier(WsTmemKernel &shared);
  /// Multiplies the blocks of two tiles, of which at least one needs some.
  void multiply();

private:
  /// Starts the product of the queries of tile `i` and the keys of a trip, if
  /// the tile needs these.
  void qk(int64_t i, Slot keys, Value trip);
  /// Starts the product of the probabilities of a part of the keys of a trip
  /// and the values, if tile `i` needs these.
  void pv(int64_t i, const KeyPart &part, Slot values, Value trip);
  /// Waits for the queries of tile `i`, whose blocks are known then.
  Slot awaitQueries(int64_t i);
  /// Calls `body` if tile `i` needs the block of a trip, with a value that
  /// tells if it needed one before.
  void ifOwn(int64_t i, Value trip, function_ref<void(Value)> body);

  WsTmemKernel &shared;
  ImplicitLocOpBuilder &b;
  WsTmemPlanAttr plan;
  const WsTmemMemory &memory;
  Pipe query;
  KeyPipes kv;
  TilePipes tiles[kMostTmemTiles];
  Value queries[kMostTmemTiles];
  /// The blocks that each tile needs, where it does not compute those of both.
  ClusterTile own[kMostTmemTiles];
};

} // namespace

void attn::keepRolled(Operation *loop) {
  loop->setAttr(kRolledAttr, UnitAttr::get(loop->getContext()));
}

Multiplier::Multiplier(WsTmemKernel &shared)
    : shared(shared), b(shared.b), plan(shared.plan), memory(shared.memory),
      query(shared.control, memory.q.channel, kMultiplier),
      kv(shared.control, memory.k, memory.v, kMultiplier),
      tiles{{shared.control, memory.tiles[0], memory.parts},
            {shared.control, memory.tiles[1], memory.parts}} {}

void Multiplier::multiply() {
  Pipe &key = kv.keys(), &value = kv.values();
  // Where probabilities lie over scores, s0 and p0 are one pipe, as s1 and p1:
  // a slot that was acquired as p0 is then released as s0.
  PartedPipe &s0 = tiles[0].scores(), &p0 = tiles[0].probabilities();
  PartedPipe &s1 = tiles[1].scores(), &p1 = tiles[1].probabilities();
  Value zero = shared.context.i32(0), one = shared.context.i32(1);

  // The first scores of a tile wait for its own queries alone. Where a tile may
  // have no product, they wait for both: the commits that hand queries back
  // order what products after those waits read, and nothing else.
  Slot firstKeys = key.take();
  Slot query0 = awaitQueries(0), query1;
  if (plan.getOwnBlocks())
    query1 = awaitQueries(1);
  s0.acquire();
  qk(0, firstKeys, zero);
  s0.release();
  if (!plan.getOwnBlocks())
    query1 = awaitQueries(1);
  s1.acquire();
  qk(1, firstKeys, zero);
  s1.release();
  std::optional<HeldSlot> held;
  if (holdsKeys(plan))
    held.emplace(shared.control, firstKeys);
  else
    firstKeys.release();
  Value last = shared.getLastTrip();

  // Probabilities come in parts, each with a product of its own.
  auto acquireAndMultiply = [&](PartedPipe &p, int64_t i, Slot values,
                                Value trip) {
    for (const KeyPart &part : memory.parts) {
      p.acquire(part);
      pv(i, part, values, trip);
    }
  };
  // Scores in the place of probabilities come after the product that reads
  // these: PV0 QK0 PV1 QK1.
  auto multiplyOver = [&](Value trip) {
    Slot values = value.take();
    acquireAndMultiply(p0, 0, values, trip);
    if (held)
      held->release();
    Slot keys = key.take();
    Value next = arith::AddIOp::create(b, trip, one);
    qk(0, keys, next);
    s0.release();
    acquireAndMultiply(p1, 1, values, trip);
    values.release();
    qk(1, keys, next);
    if (held)
      *held = keys;
    else
      keys.release();
    s1.release();
  };
  // Scores with columns of their own come first: QK0 QK1 PV0 PV1.
  auto multiplyBeside = [&](Value trip) {
    Slot keys = key.take();
    Value next = arith::AddIOp::create(b, trip, one);
    s0.acquire();
    qk(0, keys, next);
    s0.release();
    s1.acquire();
    qk(1, keys, next);
    keys.release();
    s1.release();
    Slot values = value.take();
    acquireAndMultiply(p0, 0, values, trip);
    p0.release();
    acquireAndMultiply(p1, 1, values, trip);
    values.release();
    p1.release();
  };
  auto step = [&](Value trip) {
    plan.getPBeside() ? multiplyBeside(trip) : multiplyOver(trip);
  };
  shared.control.forRange(zero, last, step, keepRolled);

  if (held)
    held->release();
  // The next tile's queries are loaded while this one's last softmaxes run.
  query0.release();
  query1.release();
  Slot values = value.take();
  acquireAndMultiply(p0, 0, values, last);
  p0.release();
  acquireAndMultiply(p1, 1, values, last);
  values.release();
  p1.release();
  // The softmaxes hand their channel back once more, without probabilities,
  // when they have read the results.
  if (plan.getPBeside())
    for (PartedPipe *results : {&p0, &p1}) {
      results->acquire();
      results->release();
    }
}

Slot Multiplier::awaitQueries(int64_t i) {
  if (plan.getOwnBlocks())
    own[i] = shared.emitProductRows(i);
  Slot slot = query.take();
  queries[i] = memory.q.at(slot);
  return slot;
}

void Multiplier::ifOwn(int64_t i, Value trip, function_ref<void(Value)> body) {
  const ClusterTile &tile = own[i];
  auto compare = [&](arith::CmpIPredicate predicate, Value x, Value y) {
    return arith::CmpIOp::create(b, predicate, x, y);
  };
  if (!tile.skippedBehind && !tile.skippedInFront)
    return body(compare(arith::CmpIPredicate::ne, trip, shared.context.i32(0)));
  Value first = arith::SubIOp::create(b, tile.end, tile.bounds.end);
  Value end = arith::SubIOp::create(b, tile.end, tile.bounds.begin);
  Value isOwn =
      arith::AndIOp::create(b, compare(arith::CmpIPredicate::sge, trip, first),
                            compare(arith::CmpIPredicate::slt, trip, end));
  shared.control.ifThen(
      isOwn, [&] { body(compare(arith::CmpIPredicate::ne, trip, first)); });
}

void Multiplier::qk(int64_t i, Slot keys, Value trip) {
  int64_t depth = getKeyDepth(shared.facts);
  int64_t columns = getKeyColumns(shared.facts);
  IntegerAttr limit =
      depth == columns ? IntegerAttr() : b.getI64IntegerAttr(depth);
  ifOwn(i, trip, [&](Value) {
    Value transposed = TransposeOp::create(
        b, shared.tile.bufferType({columns, getOwnKeys(plan)}),
        memory.k.at(keys));
    Value none = arith::ConstantIntOp::create(b, 0, 1);
    Tcgen05MmaOp::create(b, queries[i], transposed, memory.tiles[i].scores,
                         none, limit, /*first=*/IntegerAttr(), plan.getPair());
  });
}

void Multiplier::pv(int64_t i, const KeyPart &part, Slot values, Value trip) {
  IntegerAttr depth, first;
  if (part.count != plan.getBlockN())
    depth = b.getI64IntegerAttr(part.count);
  if (part.first != 0)
    first = b.getI64IntegerAttr(part.first);
  ifOwn(i, trip, [&](Value adds) {
    if (part.first != 0)
      adds = arith::ConstantIntOp::create(b, 1, 1);
    const TensorTile &tile = memory.tiles[i];
    Tcgen05MmaOp::create(b, tile.probabilities, memory.v.at(values),
                         tile.results, adds, depth, first, plan.getPair());
  });
}

void attn::multiplyBlocks(WsTmemKernel &shared) {
  Multiplier multiplier(shared);
  shared.forTiles(/*number=*/0,
                  [&] { shared.ifBlocks([&] { multiplier.multiply(); }); });
}
