//===- WsTmemLoader.cpp - The thread of ws_tmem that loads ----------------===//

#include "WsTmemKernel.h"

using namespace mlir;
using namespace mlir::attn;

void attn::fillSlot(const TileWalk &walk, const Ring &ring, Pipe &pipe,
                    Value head, Value first, Value column, int64_t columns,
                    RowNumbers rows) {
  // The table is read before the wait: its first entry brings the others near.
  // All of them would take registers that nobody has.
  LoadPlace place;
  if (!rows)
    place = findLoadPlace(walk, ring, first);
  Slot slot = pipe.take();
  Value dest = ring.at(slot);
  if (columns != 0)
    dest = narrowSlot(walk, dest, columns);
  if (rows)
    startGather(walk, ring, dest, slot.getToken(), rows, column);
  else
    startLoad(walk, ring, dest, slot.getToken(), head, place.first, column,
              place.lead);
  slot.release();
}

RowPipe::RowPipe(WsTmemKernel &shared) : shared(shared) {
  if (Value channel = shared.memory.rowChannel)
    pipe.emplace(shared.control, channel, kLoader);
}

void RowPipe::take(Value trip, function_ref<void(RowNumbers)> body) {
  if (!pipe)
    return body({});
  Value isFront = shared.tile.source->emitIsFront(shared.getFirstKey(trip));
  Slot slot = pipe->take();
  body({shared.memory.getRowNumbers(shared.b, slot), shared.context.i32(0),
        isFront});
  slot.release();
}

void attn::numberRows(WsTmemKernel &shared) {
  Pipe rows(shared.control, shared.memory.rowChannel, kNumberer);
  // The keys' numbers and those of the values are the same. Slots that live on
  // from the keys to the values of a block would be handed back out of order.
  auto number = [&](Value trip) {
    Slot slot = rows.take();
    shared.tile.source->emitRowNumbers(
        shared.getFirstKey(trip), shared.tile.at,
        shared.memory.getRowNumbers(shared.b, slot));
    slot.release();
  };
  shared.forTiles(/*number=*/0, [&] {
    shared.ifBlocks([&] { shared.forOperands(number, [] {}, number); });
  });
}

Value attn::getOwnHalf(WsTmemKernel &shared, int64_t own) {
  Value rank = shared.rank;
  // Pairs are of ranks 2n and 2n + 1.
  if (countClusterPairs(shared.plan) > 1)
    rank = arith::AndIOp::create(shared.b, rank, shared.context.i32(1));
  return arith::MulIOp::create(shared.b, rank, shared.context.i32(own));
}

void attn::loadBlocks(WsTmemKernel &shared) {
  ImplicitLocOpBuilder &b = shared.b;
  Control &control = shared.control;
  TileWalk &walk = shared.walk;
  const AttentionTile &tile = walk.tile;
  const WsTmemMemory &memory = shared.memory;
  const Ring &q = memory.q, &k = memory.k, &v = memory.v;
  WsTmemPlanAttr plan = shared.plan;
  prefetchMaps(b,
               {q.map, k.map, v.map, k.frontMap, v.frontMap, memory.resultMap});
  // Halves of a pair.
  Value ownKeys, ownColumns;
  if (plan.getPair()) {
    ownKeys = getOwnHalf(shared, getOwnKeys(plan));
    ownColumns = getOwnHalf(shared, getOwnValueColumns(shared.facts, plan));
  }
  Pipe query(control, q.channel, kLoader);
  KeyPipes kv(control, k, v, kLoader);
  RowPipe numbers(shared);
  SmallVector<Pipe> queryPipes;
  if (memory.resultBuffer == ResultBuffer::Queries)
    for (const TensorTile &each : memory.tiles)
      queryPipes.emplace_back(control, each.queryChannel, kLoader);

  auto loadQueries = [&](int64_t i) {
    Value before = b.createOrFold<arith::MulIOp>(shared.getPlace(i),
                                                 shared.context.i32(kTmemRows));
    Value row = arith::AddIOp::create(b, walk.cluster.firstRow, before);
    fillSlot(walk, q, query, tile.at.head, row);
  };
  auto loadKeys = [&](Value trip) {
    Value first = shared.getFirstKey(trip);
    if (ownKeys)
      first = arith::AddIOp::create(b, first, ownKeys);
    numbers.take(trip, [&](RowNumbers rows) {
      fillSlot(walk, k, kv.keys(), tile.at.kvHead, first, /*column=*/{},
               /*columns=*/0, rows);
    });
  };
  auto loadValues = [&](Value trip) {
    numbers.take(trip, [&](RowNumbers rows) {
      fillSlot(walk, v, kv.values(), tile.at.kvHead, shared.getFirstKey(trip),
               ownColumns, /*columns=*/0, rows);
    });
  };

  shared.forTiles(/*number=*/0, [&] {
    // The queries' memory has the results of the tiles before, until these are
    // stored.
    for (Pipe &results : queryPipes)
      results.take().release();
    shared.ifBlocks([&] {
      // The first product needs the first keys and one tile of queries. The
      // keys' slot is free before those of the queries are.
      auto loadBoth = [&] {
        loadQueries(0);
        loadQueries(1);
      };
      shared.forOperands(loadKeys, loadBoth, loadValues);
    });
  });

  // A CTA must not end before the last commits of the queries have arrived.
  // Those of keys and values have: results come after them. A pair waits for
  // each other anyway, and has no bytes by which such a slot would be full.
  for (int64_t i = 0; i < kMostTmemTiles && !plan.getPair(); ++i)
    query.take().release();
}
