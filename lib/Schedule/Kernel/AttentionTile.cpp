//===- AttentionTile.cpp - A tile of queries and its keys -----------------===//

#include "attn/Schedule/Kernel/AttentionTile.h"
#include "../Core/WorkPlan.h"

using namespace mlir;
using namespace mlir::attn;

AttentionTile::AttentionTile(KernelContext &context, int64_t blockM,
                             int64_t group, int64_t members)
    : context(context), facts(context.facts), b(context.b), blockM(blockM),
      resultColumns(facts.valueDim), group(group),
      members(members == 0 ? group : members),
      source(KeySource::create(context)) {}

bool AttentionTile::hasWholeTiles() const {
  return !facts.varlen && !origin && !ShapedType::isDynamic(facts.queries) &&
         facts.queries * group % rowsTogether == 0;
}

HeadRows AttentionTile::getQueryRows() const {
  // Without groups rows share an address, and a bound costs a compare.
  HeadRows rows = {at.head,
                   at.batch,
                   queryStart,
                   getRows(),
                   group,
                   members,
                   group != 1 && hasWholeTiles()};
  rows.origin = origin;
  return rows;
}

void attn::emitLengths(AttentionTile &tile, Value row) {
  KernelContext &context = tile.context;
  tile.queries = tile.facts.varlen
                     ? emitPackedLength(context, "cu_seqlens_q", tile.at.batch,
                                        tile.queryStart)
                     : context.getQueries();
  tile.source->known = tile.at.keys;
  tile.source->find(tile.at, row);
  tile.keys = tile.source->length;
  tile.keyStart = tile.source->start;
  if (tile.group != 1)
    tile.packedRows =
        arith::MulIOp::create(tile.b, tile.queries, context.i32(tile.group));
}

/// Cuts the blocks of a piece out of those of its sequence.
static void emitPiece(AttentionTile &tile, int64_t blockN) {
  KernelContext &context = tile.context;
  const ProblemFacts &facts = tile.facts;
  ImplicitLocOpBuilder &b = tile.b;
  BlockBounds &bounds = tile.bounds;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto max = [&](Value x, Value y) -> Value {
    return arith::MaxSIOp::create(b, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  Value first = tile.at.firstBlock;
  Value count = max(tile.at.blocks, context.i32(0));
  Value all = bounds.end, stop = add(first, count);
  bool isMasked = facts.mask.getKind() != MaskKind::None || facts.hasKeyRange();
  // Runs are cut by the keys that are seen at most.
  if (isMasked)
    all = arith::CeilDivUIOp::create(
        b, min(tile.keys, context.i32(getSeenKeys(facts))),
        context.i32(blockN));
  tile.at.isRest =
      arith::CmpIOp::create(b, arith::CmpIPredicate::sge, stop, all);
  if (!isMasked) {
    // How many blocks there are is then a word of the record, by which the
    // check of synchronisation knows it. The last one may lack keys.
    Value lacks = arith::ExtUIOp::create(
        b, b.getI32Type(),
        arith::CmpIOp::create(b, arith::CmpIPredicate::slt, bounds.fullEnd,
                              stop));
    bounds.begin = bounds.fullBegin = first;
    bounds.end = stop;
    bounds.fullEnd = arith::SubIOp::create(b, stop, min(lacks, count));
    return;
  }
  auto clamp = [&](Value x) -> Value {
    return min(max(x, bounds.begin), bounds.end);
  };
  Value end = arith::SelectOp::create(b, tile.at.isRest, bounds.end,
                                      min(add(bounds.begin, stop), bounds.end));
  bounds.begin = min(add(bounds.begin, first), bounds.end);
  bounds.end = max(bounds.begin, end);
  bounds.fullBegin = clamp(bounds.fullBegin);
  bounds.fullEnd = clamp(bounds.fullEnd);
}

void attn::emitRun(AttentionTile &tile, int64_t blockN) {
  if (tile.at.piece)
    return emitPiece(tile, blockN);
  Value split = tile.at.split;
  if (!split)
    return;
  KernelContext &context = tile.context;
  const ProblemFacts &facts = tile.facts;
  ImplicitLocOpBuilder &b = tile.b;
  BlockBounds &bounds = tile.bounds;
  auto min = [&](Value x, Value y) -> Value {
    return arith::MinSIOp::create(b, x, y);
  };
  auto clamp = [&](Value x) -> Value {
    return min(arith::MaxSIOp::create(b, x, bounds.begin), bounds.end);
  };
  if (facts.runKeys) {
    // The ends are multiples of keys, so that neither other sequences nor the
    // number of runs move them.
    Value length = context.i32(facts.runKeys / blockN);
    Value first = arith::MulIOp::create(b, split, length);
    Value isLast = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, split,
                                         context.i32(facts.kvSplits - 1));
    Value end = bounds.end;
    Value next = clamp(arith::AddIOp::create(b, first, length));
    bounds.begin = clamp(first);
    bounds.end = arith::SelectOp::create(b, isLast, end, next);
    bounds.fullBegin = clamp(bounds.fullBegin);
    bounds.fullEnd = clamp(bounds.fullEnd);
    return;
  }
  Value blocks = arith::SubIOp::create(b, bounds.end, bounds.begin);
  Value runs = tile.at.runs, less;
  if (runs) {
    less = arith::SubIOp::create(b, runs, context.i32(1));
  } else {
    runs = context.i32(facts.kvSplits);
    less = context.i32(facts.kvSplits - 1);
  }
  Value length =
      arith::DivUIOp::create(b, arith::AddIOp::create(b, blocks, less), runs);
  Value first = arith::AddIOp::create(b, bounds.begin,
                                      arith::MulIOp::create(b, split, length));
  Value end = bounds.end;
  bounds.begin = min(first, end);
  bounds.end = min(arith::AddIOp::create(b, bounds.begin, length), end);
  bounds.fullBegin = clamp(bounds.fullBegin);
  bounds.fullEnd = clamp(bounds.fullEnd);
}

//===----------------------------------------------------------------------===//
// Views
//===----------------------------------------------------------------------===//

Value attn::emitQueryView(const AttentionTile &tile, int64_t first,
                          int64_t columns) {
  HeadRows rows = tile.getQueryRows();
  bool isApart = tile.facts.qRope && first >= tile.facts.valueDim;
  rows.firstColumn = isApart ? first - tile.facts.valueDim : first;
  rows.columns = columns;
  return emitHeadRows(tile.context, isApart ? "q_rope" : "q", rows);
}

Value attn::emitFirstColumn(const AttentionTile &tile,
                            const ResultColumns &columns) {
  Value first = tile.context.i32(columns.first);
  if (!columns.part)
    return first;
  Value distance = arith::MulIOp::create(tile.b, columns.part,
                                         tile.context.i32(columns.partColumns));
  return arith::AddIOp::create(tile.b, first, distance);
}

Value attn::emitResultView(const AttentionTile &tile, StringRef name,
                           const ResultColumns &columns) {
  HeadRows rows = tile.getQueryRows();
  rows.firstColumn = columns.first;
  rows.columns = columns.columns;
  rows.part = columns.part;
  rows.partColumns = columns.partColumns;
  rows.isOneColumn = columns.isOneColumn;
  rows.inWord = columns.inWord;
  const ProblemFacts &facts = tile.facts;
  if (!facts.kvSplits)
    return emitHeadRows(tile.context, name, rows);
  // attn.combine merges it: the run of keys comes before the batch. What the
  // kernel merges itself has names of its own.
  rows.lead = 1;
  rows.leadIndex = tile.at.split;
  if (tile.at.piece) {
    Value batch = tile.context.getBatch();
    rows.leadIndex = arith::DivUIOp::create(tile.b, tile.at.piece, batch);
    rows.batch = arith::RemUIOp::create(tile.b, tile.at.piece, batch);
  }
  const TensorFacts &result = name == "o"     ? facts.o
                              : name == "lse" ? facts.lse
                                              : facts.oScales;
  return emitHeadRows(tile.context, result.name, rows);
}

Value attn::emitMergedView(const AttentionTile &tile, StringRef name,
                           const ResultColumns &columns) {
  HeadRows rows = tile.getQueryRows();
  rows.firstColumn = columns.first;
  rows.columns = columns.columns;
  rows.isOneColumn = columns.isOneColumn;
  return emitHeadRows(tile.context, name, rows);
}

std::array<Value, 3> attn::openElements(const AttentionTile &tile,
                                        MapElementsOp map) {
  ImplicitLocOpBuilder &b = tile.b;
  Type i32 = b.getI32Type();
  Block *block = b.createBlock(&map.getBody(), {}, {b.getF32Type(), i32, i32},
                               SmallVector<Location>(3, b.getLoc()));
  return {block->getArgument(0), block->getArgument(1), block->getArgument(2)};
}
