//===- WsTmemOneTile.cpp - Loads, products and stores of one tile ---------===//
//
// A tile alone has no other one's products to hide its softmax under: those of
// the next block's scores and of the results of the block before are. Rows of
// queries and keys come in slices of columns and values in parts of a block, a
// slot each, so that a slot is filled again while the rest of its block is
// read.
//
//===----------------------------------------------------------------------===//

#include "../Wgmma/WgmmaFacts.h"
#include "WsTmemKernel.h"
#include "attn/Schedule/Kernel/StoreResults.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns slice `i`, i32, of the tile's queries.
static Value getQuerySlice(WsTmemKernel &shared, Value i) {
  const Ring &q = shared.memory.q;
  return SlotOp::create(shared.b, q.slotType, q.buffer, i,
                        /*distance=*/IntegerAttr());
}

//===----------------------------------------------------------------------===//
// Loads
//===----------------------------------------------------------------------===//

/// Starts to load the slices of the tile's queries into the slots of `all`.
static void loadQueries(WsTmemKernel &shared, Slot all) {
  const WsTmemMemory &memory = shared.memory;
  int64_t columns = getSliceColumns(shared.facts, shared.plan);
  int64_t values = shared.facts.valueDim;
  for (int64_t i = 0, e = countKeySlices(shared.facts, shared.plan); i < e;
       ++i) {
    // Rotated columns in a tensor of their own come after those of the values.
    int64_t first = i * columns;
    bool isApart = memory.qRope.map && first >= values;
    Value slice =
        narrowSlot(shared.walk, getQuerySlice(shared, shared.context.i32(i)),
                   shared.facts.headDim - first);
    startLoad(shared.walk, isApart ? memory.qRope : memory.q, slice,
              all.getToken(), shared.tile.at.head, shared.walk.cluster.row,
              shared.context.i32(isApart ? first - values : first));
  }
}

void attn::forSlots(WsTmemKernel &shared, int64_t from, int64_t to,
                    int64_t step, function_ref<void(Value)> body) {
  KernelContext &context = shared.context;
  if (hasWideHeads(shared.facts, shared.plan) && to - from > step)
    return shared.control.forRange(context.i32(from), context.i32(to),
                                   context.i32(step), body);
  for (int64_t i = from; i < to; i += step)
    body(context.i32(i));
}

int64_t attn::getColumnsInSlot(WsTmemKernel &shared) {
  return hasWideHeads(shared.facts, shared.plan)
             ? getResultTensorColumns(shared.facts, shared.plan)
             : 0;
}

/// Returns where each box of the half begins that a CTA of a pair has of
/// `count` keys or columns from `first` on, i32: it has 64 of each 128.
static SmallVector<Value> listHalves(WsTmemKernel &shared, Value first,
                                     int64_t count) {
  constexpr int64_t own = kHalvedColumns / 2;
  ImplicitLocOpBuilder &b = shared.b;
  Value place = arith::AddIOp::create(b, first, getOwnHalf(shared, own));
  SmallVector<Value> places;
  for (int64_t i = 0; i < count; i += kHalvedColumns)
    places.push_back(
        b.createOrFold<arith::AddIOp>(place, shared.context.i32(i)));
  return places;
}

void attn::loadHalves(WsTmemKernel &shared) {
  ImplicitLocOpBuilder &b = shared.b;
  Control &control = shared.control;
  KernelContext &context = shared.context;
  TileWalk &walk = shared.walk;
  const WsTmemMemory &memory = shared.memory;
  const Ring &q = memory.q, &k = memory.k, &v = memory.v;
  prefetchMaps(b, {q.map, k.map, v.map, memory.qRope.map, memory.kRope.map});
  Pipe query(control, q.channel, kLoader), kv(control, k.channel, kLoader);
  Value head;
  // A table is read once for all slots with the same rows: the thread waits
  // for each entry.
  auto find = [&](const Ring &ring, ArrayRef<Value> rows) {
    return llvm::map_to_vector(
        rows, [&](Value row) { return findLoadPlace(walk, ring, row); });
  };
  auto fill = [&](const Ring &ring, ArrayRef<LoadPlace> rows,
                  ArrayRef<Value> columns, int64_t columnsInSlot) {
    SmallVector<BoxPlace> places;
    for (LoadPlace row : rows)
      for (Value column : columns)
        places.push_back({row, column});
    Slot slot = kv.take();
    Value dest = narrowSlot(walk, ring.at(slot), columnsInSlot);
    startLoads(walk, ring, dest, slot.getToken(), head, places);
    slot.release();
  };
  int64_t blockN = shared.plan.getBlockN(),
          columns = getSliceColumns(shared.facts, shared.plan);

  auto loadKeys = [&](Value trip) {
    SmallVector<Value> rows =
        listHalves(shared, shared.getFirstKey(trip), blockN);
    auto fillFrom = [&](const Ring &ring, int64_t count) {
      SmallVector<LoadPlace> places = find(ring, rows);
      constexpr int64_t box = kTensorSliceBytes / 2;
      auto fillSlice = [&](Value column, int64_t columns) {
        SmallVector<Value> boxes;
        for (int64_t i = 0; i < columns; i += box)
          boxes.push_back(
              b.createOrFold<arith::AddIOp>(column, context.i32(i)));
        fill(ring, places, boxes, columns);
      };
      int64_t whole = llvm::alignDown(count, columns);
      forSlots(shared, 0, whole, columns,
               [&](Value column) { fillSlice(column, columns); });
      if (whole < count)
        fillSlice(context.i32(whole), count - whole);
    };
    int64_t all = shared.facts.headDim,
            apart = memory.kRope.map ? shared.facts.valueDim : all;
    fillFrom(k, apart);
    if (apart < all)
      fillFrom(memory.kRope, all - apart);
  };
  auto loadValues = [&](Value trip) {
    Value first = shared.getFirstKey(trip);
    forSlots(shared, 0, blockN, kHalfTileKeys, [&](Value row) {
      Value key = arith::AddIOp::create(b, first, row);
      SmallVector<LoadPlace> places = find(v, key);
      for (int64_t column = 0; column < shared.facts.valueDim;
           column += kHalfTileColumns)
        fill(v, places,
             listHalves(shared, context.i32(column), kHalfTileColumns),
             kHalfTileColumns / 2);
    });
  };

  shared.forTiles(/*number=*/0, [&] {
    head = shared.tile.at.kvHead;
    shared.ifBlocks([&] {
      Slot queries = query.take();
      loadQueries(shared, queries);
      queries.release();
      shared.forOperands(loadKeys, [] {}, loadValues);
    });
  });
}

void attn::loadSlices(WsTmemKernel &shared) {
  ImplicitLocOpBuilder &b = shared.b;
  Control &control = shared.control;
  TileWalk &walk = shared.walk;
  const AttentionTile &tile = walk.tile;
  const WsTmemMemory &memory = shared.memory;
  const Ring &q = memory.q, &k = memory.getLoadedKeys(),
             &v = memory.getLoadedValues();
  prefetchMaps(b, {q.map, k.map, v.map, k.frontMap, v.frontMap,
                   memory.qRope.map, memory.kRope.map});
  int64_t slices = countKeySlices(shared.facts, shared.plan);
  int64_t columns = getSliceColumns(shared.facts, shared.plan);
  int64_t partKeys = getPartKeys(shared.facts, shared.plan);
  int64_t columnsInSlot = getColumnsInSlot(shared);
  // Halves of a pair, or the columns of results that the CTA has.
  Value ownKeys, ownColumns;
  if (shared.plan.getPair()) {
    ownKeys = getOwnHalf(shared, getOwnKeys(shared.plan));
    ownColumns =
        getOwnHalf(shared, getOwnValueColumns(shared.facts, shared.plan));
  } else if (shared.dividesResults()) {
    ownColumns =
        getOwnHalf(shared, getOwnResultColumns(shared.facts, shared.plan));
  }
  Pipe query(control, q.channel, kLoader);
  KeyPipes kv(control, k, v, kLoader);
  RowPipe numbers(shared);

  auto loadKeys = [&](Value trip) {
    Value first = shared.getFirstKey(trip);
    if (ownKeys)
      first = arith::AddIOp::create(b, first, ownKeys);
    int64_t all = slices * columns,
            apart = memory.kRope.map ? shared.facts.valueDim : all;
    numbers.take(trip, [&](RowNumbers rows) {
      auto fill = [&](const Ring &ring, int64_t count) {
        forSlots(shared, 0, count, columns, [&](Value column) {
          fillSlot(walk, ring, kv.keys(), tile.at.kvHead, first, column,
                   /*columns=*/0, rows);
        });
      };
      fill(k, apart);
      fill(memory.kRope, all - apart);
    });
  };
  auto loadValues = [&](Value trip) {
    Value first = shared.getFirstKey(trip);
    numbers.take(trip, [&](RowNumbers rows) {
      forSlots(shared, 0, shared.plan.getBlockN(), partKeys, [&](Value row) {
        rows.from = row;
        fillSlot(walk, v, kv.values(), tile.at.kvHead,
                 arith::AddIOp::create(b, first, row), ownColumns,
                 columnsInSlot, rows);
      });
    });
  };

  shared.forTiles(/*number=*/0, [&] {
    shared.ifBlocks([&] {
      // All of the queries are waited for before the first slice of keys.
      Slot queries = query.take();
      loadQueries(shared, queries);
      queries.release();
      shared.forOperands(loadKeys, [] {}, loadValues);
    });
  });

  // A CTA must not end before the last commit of the queries has arrived. Those
  // of keys and values have: results come after them. As for two tiles a pair
  // does without.
  if (!shared.plan.getPair())
    query.take().release();
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

/// Starts the product of slice `i`, i32, of the queries and of keys, of whose
/// columns `depth` are multiplied, and which is added to the scores if `adds`
/// is true.
static void multiplySlice(WsTmemKernel &shared, Value i, Slot keys,
                          Value scores, Value adds, int64_t depth) {
  ImplicitLocOpBuilder &b = shared.b;
  int64_t columns = getSliceColumns(shared.facts, shared.plan);
  Value transposed = TransposeOp::create(
      b, shared.tile.bufferType({columns, getOwnKeys(shared.plan)}),
      shared.memory.k.at(keys));
  Tcgen05MmaOp::create(b, getQuerySlice(shared, i), transposed, scores, adds,
                       depth == columns ? IntegerAttr()
                                        : b.getI64IntegerAttr(depth),
                       /*first=*/IntegerAttr(), shared.plan.getPair());
}

/// Calls `body` with the number of each slice, i32, whether there was one
/// before it, i1, and how many of its columns are multiplied.
static void forSlices(WsTmemKernel &shared,
                      function_ref<void(Value, Value, int64_t)> body) {
  ImplicitLocOpBuilder &b = shared.b;
  int64_t slices = countKeySlices(shared.facts, shared.plan);
  int64_t columns = getSliceColumns(shared.facts, shared.plan);
  int64_t lastDepth = getKeyDepth(shared.facts) - (slices - 1) * columns;
  int64_t first = 0;
  // The thread has no registers for the descriptors of many slices.
  if (hasWideHeads(shared.facts, shared.plan)) {
    first = lastDepth == columns ? slices : slices - 1;
    Value zero = shared.context.i32(0);
    shared.control.forRange(
        zero, shared.context.i32(first),
        [&](Value i) {
          body(i, arith::CmpIOp::create(b, arith::CmpIPredicate::ne, i, zero),
               columns);
        },
        keepRolled);
  }
  for (int64_t i = first; i < slices; ++i)
    body(shared.context.i32(i),
         arith::ConstantIntOp::create(b, i == 0 ? 0 : 1, 1),
         i + 1 == slices ? lastDepth : columns);
}

/// Starts the products of the probabilities of half tiles and the values of a
/// block, which are added to the results if `adds` is true. Each slot has the
/// values of some keys, and half of the columns of a product.
static void multiplyHalves(WsTmemKernel &shared, Pipe &values, Value adds) {
  ImplicitLocOpBuilder &b = shared.b;
  const TensorTile &tile = shared.memory.tiles.front();
  auto parts = cast<BufferType>(tile.probabilityParts.getType());
  auto type = BufferType::get(b.getContext(), parts.getSlotShape(),
                              parts.getElementType(), parts.getLayout(),
                              parts.getSpace());
  for (int64_t i = 0, e = parts.getNumSlots(); i < e; ++i) {
    Value some =
        SlotOp::create(b, type, tile.probabilityParts, shared.context.i32(i),
                       /*distance=*/IntegerAttr());
    for (int64_t column = 0; column < shared.facts.valueDim;
         column += kHalfTileColumns) {
      Slot slot = values.take();
      Value results = sliceTensor(b, tile.results, column, kHalfTileColumns);
      Tcgen05MmaOp::create(
          b, some, shared.memory.v.at(slot), results,
          i == 0 ? adds : arith::ConstantIntOp::create(b, 1, 1).getResult(),
          /*depth=*/IntegerAttr(), /*first=*/IntegerAttr(), /*pair=*/true);
      slot.release();
    }
  }
}

/// Starts the product of the probabilities of the keys from `first` on and a
/// slot of their values, which is added to the results if `adds` is true.
static void multiplyPart(WsTmemKernel &shared, int64_t first, Slot values,
                         Value probabilities, Value adds) {
  ImplicitLocOpBuilder &b = shared.b;
  Value some = TmemSliceOp::create(
      b,
      getTensorType({kTmemRows, getPartKeys(shared.facts, shared.plan)},
                    shared.facts.elementType),
      probabilities, first);
  Value slot = shared.memory.v.at(values);
  if (hasWideHeads(shared.facts, shared.plan))
    slot = narrowSlot(shared.walk, slot,
                      getResultTensorColumns(shared.facts, shared.plan));
  Tcgen05MmaOp::create(b, some, slot, shared.memory.tiles.front().results, adds,
                       /*depth=*/IntegerAttr(), /*first=*/IntegerAttr(),
                       shared.plan.getPair());
}

void attn::multiplySlices(WsTmemKernel &shared) {
  ImplicitLocOpBuilder &b = shared.b;
  Control &control = shared.control;
  const WsTmemMemory &memory = shared.memory;
  const TensorTile &tile = memory.tiles.front();
  int64_t partKeys = getPartKeys(shared.facts, shared.plan);
  Pipe query(control, memory.q.channel, kMultiplier);
  KeyPipes kv(control, memory.k, memory.v, kMultiplier);
  PartedPipe scores(control, tile.channel, memory.parts);
  Pipe results(control, tile.resultChannel, kMultiplier),
      whole(control, memory.resultChannel, kMultiplier);
  Value zero = shared.context.i32(0), one = shared.context.i32(1);

  // Slots of keys are handed back one by one, and all scores at once.
  auto multiplyKeys = [&](Slot slot) {
    forSlices(shared, [&](Value i, Value adds, int64_t depth) {
      Slot keys = kv.keys().take();
      multiplySlice(shared, i, keys, tile.getScores(b, slot), adds, depth);
      keys.release();
    });
  };
  // Probabilities come in parts of several slots of values each. The softmax
  // has rescaled the results before it wrote the first ones.
  auto multiplyValues = [&](Value trip) {
    Slot slot, sum;
    for (const KeyPart &part : memory.parts) {
      slot = scores.acquire(part);
      if (part.first == 0)
        sum = results.take();
      if (tile.probabilityParts) {
        multiplyHalves(
            shared, kv.values(),
            arith::CmpIOp::create(b, arith::CmpIPredicate::ne, trip, zero));
        continue;
      }
      for (int64_t row = part.first; row < part.first + part.count;
           row += partKeys) {
        Slot values = kv.values().take();
        Value adds =
            row == 0
                ? arith::CmpIOp::create(b, arith::CmpIPredicate::ne, trip, zero)
                      .getResult()
                : arith::ConstantIntOp::create(b, 1, 1).getResult();
        multiplyPart(shared, row, values, tile.getProbabilities(b, slot), adds);
        values.release();
      }
    }
    sum.release();
    return slot;
  };

  shared.forTiles(/*number=*/0, [&] {
    shared.ifBlocks([&] {
      Value last = shared.getLastTrip();
      // The scores of two blocks come first, so that a softmax always finds the
      // next ones. Both slots go round where there is one block, too.
      Slot queries = query.take();
      multiplyKeys(scores.acquire());
      scores.release();
      Slot second = scores.acquire();
      control.ifThen(
          arith::CmpIOp::create(b, arith::CmpIPredicate::ne, last, zero),
          [&] { multiplyKeys(second); });
      scores.release();
      // The results of the tile before have been read.
      Slot output = whole.take();
      Value rest =
          arith::MaxSIOp::create(b, arith::SubIOp::create(b, last, one), zero);
      // Scores take the place of the probabilities that were just multiplied.
      control.forRange(
          zero, rest,
          [&](Value trip) {
            multiplyKeys(multiplyValues(trip));
            scores.release();
          },
          keepRolled);
      // The next tile's queries are loaded while the last products run.
      queries.release();
      control.forRange(
          rest, arith::AddIOp::create(b, last, one),
          [&](Value trip) {
            multiplyValues(trip);
            scores.release();
          },
          keepRolled);
      output.release();
    });
  });
}

//===----------------------------------------------------------------------===//
// Stores
//===----------------------------------------------------------------------===//

void attn::storeResults(WsTmemKernel &shared) {
  ImplicitLocOpBuilder &b = shared.b;
  Control &control = shared.control;
  const WsTmemMemory &memory = shared.memory;
  const AttentionTile &tile = shared.tile;
  int64_t columns = getOwnResultColumns(shared.facts, shared.plan);
  int64_t most = getStoredColumns(shared.facts, shared.plan);
  Pipe whole(control, memory.resultChannel, kStorer),
      factors(control, memory.factorChannel, kStorer);

  // Stores columns from `first` on, which `get` returns.
  auto forColumns = [&](Value factor, Value weight,
                        function_ref<Value(int64_t, int64_t)> get) {
    for (int64_t first = 0; first < columns; first += most) {
      int64_t count = std::min(most, columns - first);
      Value part = get(first, count);
      ResultColumns stored = shared.getResultColumns(first, count);
      if (shared.facts.hasPartialScales()) {
        ResultColumns group = shared.getResultColumns(first / most, 1);
        group.partColumns /= most;
        part = emitScaledRows(tile, part, factor, weight, /*divided=*/nullptr,
                              group, stored)
                   .front();
      } else {
        part = emitQuotient(tile, part, factor, stored, weight);
      }
      // Zeros of a tile without keys have no layout of their own that would
      // say where another epilogue is one.
      StoreResultOp::create(b, part, emitResultView(tile, "o", stored),
                            tile.row,
                            /*scratch=*/Value(), /*map=*/Value(),
                            /*coordinates=*/ValueRange(), EpilogueKind::Direct);
    }
  };

  shared.forTiles(/*number=*/0, [&] {
    Slot rows = factors.take();
    auto load = [&](Value buffer) -> Value {
      return LocalLoadOp::create(b, tile.f32Tile({tile.blockM}), buffer);
    };
    Value factor = load(memory.factors), weight;
    if (memory.initWeights)
      weight = load(memory.initWeights);
    rows.release();
    control.ifElse(
        shared.hasBlocks(),
        [&] {
          Slot slot = whole.take();
          forColumns(factor, weight, [&](int64_t first, int64_t count) {
            Value part =
                loadTensor(tile, memory.tiles.front().results, first, count);
            // The next tile's products begin while the last columns are stored.
            if (first + count == columns)
              slot.release();
            return part;
          });
        },
        [&] {
          forColumns(factor, weight, [&](int64_t, int64_t count) -> Value {
            return tile.splat(tile.f32Tile({tile.blockM, count}), 0);
          });
        });
  });
}
