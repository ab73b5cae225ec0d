//===- KeySource.cpp - Where the keys of a tile come from -----------------===//

#include "attn/Schedule/Kernel/KeySource.h"
#include "../Core/CommonChecks.h"
#include "attn/Planner/Facts/RowPitch.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

Value attn::emitPackedLength(KernelContext &context, StringRef name,
                             Value batch, Value &start) {
  ImplicitLocOpBuilder &b = context.b;
  Value index = context.widen(batch);
  Value next = arith::AddIOp::create(b, index, context.i64(1));
  Value first = context.loadElement(name, index);
  Value last = context.loadElement(name, next);
  start = context.widen(first);
  // Numbers of rows so far do not decrease, which the check of synchronisation
  // has to know: lengths are divided by those of blocks.
  return arith::SubIOp::create(b, last, first,
                               arith::IntegerOverflowFlags::nuw);
}

/// Returns the length of the tensor `name` for `batch`, `known` if that is not
/// null, from 0 to `capacity`.
static Value emitOwnLength(KernelContext &context, StringRef name, Value known,
                           Value batch, Value capacity) {
  Value length = known;
  if (!length)
    length = context.loadElement(name, context.widen(batch));
  return arith::MinSIOp::create(
      context.b, arith::MaxSIOp::create(context.b, length, context.i32(0)),
      capacity);
}

namespace {

/// Rows of a batch, or of sequences that follow each other.
class RowKeys : public KeySource {
public:
  using KeySource::emitView;
  explicit RowKeys(KernelContext &context)
      : context(context), facts(context.facts) {}
  void find(const TileCoordinates &at, Value) override {
    Value batch = lead = at.batch;
    if (facts.cuSeqlensK) {
      length = emitPackedLength(context, "cu_seqlens_k", batch, start);
      return;
    }
    length = context.getKeys();
    if (facts.kvLengths)
      length = emitOwnLength(context, "kv_lengths", known, batch, length);
  }
  /// Views of sequences that follow each other have a dimension in place of the
  /// batch.
  bool isBounded() const override {
    return facts.kvLengths && !facts.cuSeqlensK;
  }
  Value emitLead(Value) override { return lead; }
  KeyRows emitRows(Value first) override { return {first, length}; }
  Value emitView(StringRef name, const TileCoordinates &at, int64_t first,
                 int64_t columns) override {
    HeadRows rows = {at.kvHead, at.batch, start, length};
    rows.firstColumn = first;
    rows.columns = columns;
    return emitHeadRows(context, name, rows);
  }
  Value emitColumnView(StringRef name, const TileCoordinates &at,
                       int64_t column) override {
    HeadRows rows = {at.kvHead, at.batch, start, length};
    rows.firstColumn = column;
    rows.isOneColumn = true;
    return emitHeadRows(context, name, rows);
  }

private:
  KernelContext &context;
  const ProblemFacts &facts;
  /// The batch, i32.
  Value lead;
};

/// Pages and the table that names them.
struct PagePool {
  /// Names of the tensors: `prefix` is in front of those of k and v.
  StringRef prefix, table, lengths;
  const TensorFacts &tableFacts, &keyFacts;
  int64_t pages, pageSize;
};

/// Rows of pages.
class PagedKeys : public KeySource {
public:
  using KeySource::emitView;
  PagedKeys(KernelContext &context, const PagePool &pool)
      : context(context), facts(context.facts), b(context.b), pool(pool) {}
  void find(const TileCoordinates &at, Value row) override;
  Value emitView(StringRef name, const TileCoordinates &at, int64_t firstColumn,
                 int64_t columns) override;
  Value emitColumnView(StringRef name, const TileCoordinates &at,
                       int64_t column) override;
  bool isBounded() const override { return true; }
  Value emitLead(Value first) override;
  Value emitIsAbsent(Value lead) override;
  void emitRowNumbers(Value first, const TileCoordinates &at,
                      Value dest) override;
  KeyRows emitRows(Value first) override;
  /// Returns the page of a key that the sequence has, or of one of the first
  /// page.
  Value emitPage(Value key);

private:
  /// A view of `shape` from `firstColumn` of a head's rows on.
  Value emitPagedView(StringRef name, const TileCoordinates &at,
                      int64_t firstColumn, ArrayRef<int64_t> shape);
  /// Finds the sequence's part of the table; the number of its entries.
  Value findEntries(Value batch);
  Value getPages() {
    return context.getExtent({{pool.prefix.str() + "k", 0}}, pool.pages);
  }

  KernelContext &context;
  const ProblemFacts &facts;
  ImplicitLocOpBuilder &b;
  const PagePool pool;
  /// The first entry of the sequence, i64.
  Value firstEntry;
};

/// Keys of two tables: the added ones, and behind them those of k that some
/// query of the sequence sees.
class JoinedKeys : public KeySource {
public:
  using KeySource::emitView;
  explicit JoinedKeys(KernelContext &context)
      : context(context), mask(context.facts.ownMask), b(context.b),
        added(context, {"added_", "added_table", "added_lengths",
                        context.facts.addedTable, context.facts.addedK,
                        context.facts.addedPages, context.facts.addedPageSize}),
        own(context, getOwnPool(context.facts)) {}
  void find(const TileCoordinates &at, Value row) override;
  Value emitView(StringRef name, const TileCoordinates &at, int64_t firstColumn,
                 int64_t columns) override {
    return join(added.emitView(name, at, firstColumn, columns),
                own.emitView(name, at, firstColumn, columns));
  }
  Value emitColumnView(StringRef name, const TileCoordinates &at,
                       int64_t column) override {
    return join(added.emitColumnView(name, at, column),
                own.emitColumnView(name, at, column));
  }
  Value emitIsHidden(function_ref<Value()> getQuery, Value place) override;
  Value emitIsFront(Value first) override {
    return align == 1 ? Value() : isBelow(first, front);
  }
  SeenPlaces emitSeen(Value first) override;
  void emitRowNumbers(Value first, const TileCoordinates &at,
                      Value dest) override;
  static PagePool getOwnPool(const ProblemFacts &facts) {
    return {"",      "page_table", "kv_lengths",  facts.pageTable,
            facts.k, facts.pages,  facts.pageSize};
  }

private:
  Value join(Value front, Value back) {
    return JoinedViewOp::create(b, front.getType(), front, back, skip);
  }
  Value isBelow(Value x, Value y) {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::slt, x, y);
  }
  /// Returns the newest key of k that query 0 would see without a bound on the
  /// right.
  Value getNewest() {
    return arith::SubIOp::create(b, own.length, context.getQueries());
  }
  /// Returns the number of a key of k, given its place.
  Value getOwnKey(Value place) {
    return arith::AddIOp::create(b, arith::SubIOp::create(b, place, front),
                                 skip);
  }

  KernelContext &context;
  MaskAttr mask;
  ImplicitLocOpBuilder &b;
  PagedKeys added, own;
  /// The places of the added keys, and the keys of k that are too old for each
  /// query, i32.
  Value front, skip;
};

/// Blocks of a batch's rows that the list of a tile's queries names, full ones
/// first. Keys are numbered by their places in the list.
class ListedKeys : public KeySource {
public:
  using KeySource::emitView;
  explicit ListedKeys(KernelContext &context)
      : context(context), facts(context.facts), b(context.b) {}
  void find(const TileCoordinates &at, Value row) override;
  Value emitView(StringRef name, const TileCoordinates &at, int64_t firstColumn,
                 int64_t columns) override;
  Value emitColumnView(StringRef, const TileCoordinates &, int64_t) override {
    llvm_unreachable("schedules with columns of keys take no lists");
  }
  Value emitKey(Value first) override;
  bool isListed() const override { return true; }

private:
  /// Returns the element of the list of (batch, head, row) that comes first in
  /// a tensor, i64.
  Value findList(StringRef name, ArrayRef<Value> at);

  KernelContext &context;
  const ProblemFacts &facts;
  ImplicitLocOpBuilder &b;
  /// The list's first entry, i64.
  Value firstEntry;
};

} // namespace

Value PagedKeys::findEntries(Value batch) {
  const TensorFacts &table = pool.tableFacts;
  if (!facts.pageIndptr) {
    firstEntry = arith::MulIOp::create(b, context.widen(batch),
                                       context.getStride(pool.table, 0));
    return context.getExtent({{pool.table, 1}}, table.shape[1]);
  }
  // Wrong counts must not lead out of the list.
  Value all = context.getExtent({{"page_table", 0}}, table.shape[0]);
  auto clamp = [&](Value x, Value low) -> Value {
    return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, x, low), all);
  };
  Value index = context.widen(batch);
  Value next = arith::AddIOp::create(b, index, context.i64(1));
  Value begin =
      clamp(context.loadElement("page_indptr", index), context.i32(0));
  Value end = clamp(context.loadElement("page_indptr", next), begin);
  firstEntry = context.widen(begin);
  return arith::SubIOp::create(b, end, begin);
}

void PagedKeys::find(const TileCoordinates &at, Value) {
  Value batch = at.batch;
  Value entries = findEntries(batch);
  // Keys are numbered in 32 bits, with room for the bounds of masks. Beside
  // others those that a window leaves are known, and may be fewer.
  int64_t listed = pool.tableFacts.shape[facts.pageIndptr ? 0 : 1];
  if (ShapedType::isDynamic(facts.keys) || ShapedType::isDynamic(listed) ||
      listed > (kLengthLimit - 1) / pool.pageSize)
    entries = arith::MinSIOp::create(
        b, entries, context.i32((kLengthLimit - 1) / pool.pageSize));
  Value capacity =
      arith::MulIOp::create(b, entries, context.i32(pool.pageSize));
  length = capacity;
  if (facts.kvLengths || !pool.prefix.empty()) {
    length = emitOwnLength(context, pool.lengths, known, batch, capacity);
  } else if (facts.cuSeqlensK) {
    Value unused;
    length = arith::MinSIOp::create(
        b, emitPackedLength(context, "cu_seqlens_k", batch, unused), capacity);
  }
}

Value PagedKeys::emitView(StringRef name, const TileCoordinates &at,
                          int64_t firstColumn, int64_t columns) {
  std::string tensor = (pool.prefix + name).str();
  return emitPagedView(
      tensor, at, firstColumn,
      {ShapedType::kDynamic,
       columns ? columns : context.getTensor(tensor).shape.back()});
}

Value PagedKeys::emitColumnView(StringRef name, const TileCoordinates &at,
                                int64_t column) {
  return emitPagedView((pool.prefix + name).str(), at, column,
                       {ShapedType::kDynamic});
}

Value PagedKeys::emitPagedView(StringRef name, const TileCoordinates &at,
                               int64_t firstColumn, ArrayRef<int64_t> shape) {
  const TensorFacts &tensor = context.getTensor(name);
  Value offset = arith::MulIOp::create(b, context.widen(at.kvHead),
                                       context.getStride(name, 1));
  if (firstColumn)
    offset = arith::AddIOp::create(b, offset, context.i64(firstColumn));
  int64_t bytes = firstColumn * tensor.elementType.getIntOrFloatBitWidth() / 8;
  auto type = GlobalType::get(b.getContext(), shape, tensor.elementType);
  return PagedViewOp::create(
      b, type, context.getPointer(name), offset, length,
      context.getStride(name, 2), context.getPointer(pool.table), firstEntry,
      getPages(), context.getStride(name, 0),
      b.getI64IntegerAttr(pool.pageSize),
      b.getI64IntegerAttr(std::gcd(tensor.getRowAlignment(), bytes)));
}

Value PagedKeys::emitLead(Value first) {
  Value size = context.i32(pool.pageSize);
  auto pageOf = [&](Value key) -> Value {
    return arith::DivUIOp::create(b, key, size);
  };
  // Nobody loads keys of a sequence without any.
  Value last = arith::SubIOp::create(b, length, context.i32(1));
  Value entry = arith::MinSIOp::create(b, pageOf(first), pageOf(last));
  return context.loadElement(
      pool.table, arith::AddIOp::create(b, firstEntry, context.widen(entry)));
}

Value PagedKeys::emitPage(Value key) {
  Value entry = arith::DivUIOp::create(b, key, context.i32(pool.pageSize));
  return context.loadElement(
      pool.table, arith::AddIOp::create(b, firstEntry, context.widen(entry)));
}

Value PagedKeys::emitIsAbsent(Value lead) {
  return arith::CmpIOp::create(b, arith::CmpIPredicate::uge, lead, getPages());
}

void PagedKeys::emitRowNumbers(Value first, const TileCoordinates &at,
                               Value dest) {
  RowSteps steps = getRowSteps(pool.keyFacts);
  Value offset = arith::MulIOp::create(b, at.kvHead, context.i32(steps.head));
  PageRowsOp::create(b, context.getPointer(pool.table), firstEntry, first,
                     length, getPages(), offset, dest, pool.pageSize, steps.row,
                     steps.page);
}

KeyRows PagedKeys::emitRows(Value first) {
  Value page = context.i32(pool.pageSize);
  Value row = arith::RemUIOp::create(b, first, page);
  Value left =
      arith::SubIOp::create(b, length, arith::SubIOp::create(b, first, row));
  return {row, arith::MinSIOp::create(b, left, page)};
}

//===----------------------------------------------------------------------===//
// Keys of two tables
//===----------------------------------------------------------------------===//

void JoinedKeys::find(const TileCoordinates &at, Value row) {
  own.known = known;
  own.find(at, row);
  added.find(at, row);
  skip = context.i32(0);
  if (mask.hasLeft()) {
    // The first query sees the oldest key. The last one is at the last key.
    Value back = arith::AddIOp::create(b, context.getQueries(),
                                       context.i32(-mask.leftBound()));
    skip = arith::MaxSIOp::create(b, arith::SubIOp::create(b, own.length, back),
                                  skip);
  }
  front = added.length;
  if (align != 1) {
    Value places = context.i32(align);
    front = arith::MulIOp::create(
        b, arith::CeilDivUIOp::create(b, front, places), places);
    whole = added.length;
  }
  length = arith::AddIOp::create(b, front,
                                 arith::SubIOp::create(b, own.length, skip));
}

void JoinedKeys::emitRowNumbers(Value first, const TileCoordinates &at,
                                Value dest) {
  auto branch =
      scf::IfOp::create(b, emitIsFront(first), /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  added.emitRowNumbers(first, at, dest);
  b.setInsertionPointToStart(branch.elseBlock());
  own.emitRowNumbers(getOwnKey(first), at, dest);
}

SeenPlaces JoinedKeys::emitSeen(Value first) {
  Value isFront = emitIsFront(first);
  auto select = [&](Value inFront, Value behind) -> Value {
    return arith::SelectOp::create(b, isFront, inFront, behind);
  };
  // The place of that key.
  Value newest = arith::SubIOp::create(
      b, arith::AddIOp::create(b, getNewest(), front), skip);
  auto limit = [&](int64_t none, int64_t bound) {
    return select(context.i32(none),
                  b.createOrFold<arith::AddIOp>(newest, context.i32(bound)));
  };
  SeenPlaces seen;
  seen.limit = select(added.length, length);
  if (mask.hasLeft())
    seen.lower = limit(-kLengthLimit, mask.leftBound());
  if (mask.hasRight())
    seen.upper = limit(kLengthLimit, mask.rightBound());
  return seen;
}

Value JoinedKeys::emitIsHidden(function_ref<Value()> getQuery, Value place) {
  if (align != 1)
    return added.emitIsHidden(getQuery, place);
  Value isAdded = isBelow(place, added.length);
  // All others look at an entry that is there.
  Value isAbsent = added.emitIsAbsent(added.emitPage(
      arith::SelectOp::create(b, isAdded, place, context.i32(0))));
  Value isMasked;
  if (mask.hasLeft() || mask.hasRight()) {
    Value key = getOwnKey(place);
    Value newest = arith::AddIOp::create(b, getNewest(), getQuery());
    auto limit = [&](int64_t bound) {
      return b.createOrFold<arith::AddIOp>(newest, context.i32(bound));
    };
    if (mask.hasRight())
      isMasked = isBelow(limit(mask.rightBound()), key);
    if (mask.hasLeft()) {
      Value isOld = isBelow(key, limit(mask.leftBound()));
      isMasked = isMasked ? arith::OrIOp::create(b, isMasked, isOld).getResult()
                          : isOld;
    }
  }
  if (!isMasked)
    return arith::AndIOp::create(b, isAdded, isAbsent);
  return arith::SelectOp::create(b, isAdded, isAbsent, isMasked);
}

//===----------------------------------------------------------------------===//
// Lists of blocks
//===----------------------------------------------------------------------===//

Value ListedKeys::findList(StringRef name, ArrayRef<Value> at) {
  Value element;
  for (auto [dim, index] : llvm::enumerate(at)) {
    Value distance = arith::MulIOp::create(b, context.widen(index),
                                           context.getStride(name, dim));
    element = element ? arith::AddIOp::create(b, element, distance).getResult()
                      : distance;
  }
  return element;
}

void ListedKeys::find(const TileCoordinates &at, Value row) {
  Value list = arith::DivUIOp::create(b, row, context.i32(facts.blockRows));
  firstEntry = findList("block_indices", {at.batch, at.head, list});
  Value counts = findList("block_counts", {at.batch, at.head, list});
  // Wrong counts must not lead out of the list.
  auto clamp = [&](Value x, Value high) -> Value {
    return arith::MinSIOp::create(
        b, arith::MaxSIOp::create(b, x, context.i32(0)), high);
  };
  Value held = context.getExtent({{"block_indices", 3}},
                                 facts.blockIndices.shape.back());
  listed.all = clamp(context.loadElement("block_counts", counts), held);
  Value next = arith::AddIOp::create(b, counts, context.i64(1));
  listed.full = clamp(context.loadElement("block_counts", next), listed.all);
  length = arith::MulIOp::create(b, listed.all, context.i32(facts.blockKeys));
}

Value ListedKeys::emitView(StringRef name, const TileCoordinates &at,
                           int64_t firstColumn, int64_t columns) {
  const TensorFacts &tensor = context.getTensor(name);
  Value offset = findList(name, {at.batch, at.kvHead});
  if (firstColumn)
    offset = arith::AddIOp::create(b, offset, context.i64(firstColumn));
  int64_t bytes = firstColumn * tensor.elementType.getIntOrFloatBitWidth() / 8;
  auto type = GlobalType::get(
      b.getContext(),
      {ShapedType::kDynamic, columns ? columns : tensor.shape.back()},
      tensor.elementType);
  // Blocks are pages of the batch's rows.
  Value keys = context.i32(facts.blockKeys),
        stride = context.getStride(name, 2);
  return PagedViewOp::create(
      b, type, context.getPointer(name), offset, length, stride,
      context.getPointer("block_indices"), firstEntry,
      arith::DivUIOp::create(b, context.getKeys(), keys),
      arith::MulIOp::create(b, stride, context.widen(keys)),
      b.getI64IntegerAttr(facts.blockKeys),
      b.getI64IntegerAttr(std::gcd(tensor.getRowAlignment(), bytes)));
}

Value ListedKeys::emitKey(Value first) {
  Value keys = context.i32(facts.blockKeys);
  Value entry = arith::DivUIOp::create(b, first, keys);
  Value block = context.loadElement(
      "block_indices",
      arith::AddIOp::create(b, firstEntry, context.widen(entry)));
  return arith::AddIOp::create(b, arith::MulIOp::create(b, block, keys),
                               arith::RemUIOp::create(b, first, keys));
}

std::unique_ptr<KeySource> KeySource::create(KernelContext &context) {
  const ProblemFacts &facts = context.facts;
  if (facts.hasBlockLists())
    return std::make_unique<ListedKeys>(context);
  if (facts.hasAddedKeys())
    return std::make_unique<JoinedKeys>(context);
  if (facts.isPaged())
    return std::make_unique<PagedKeys>(context, JoinedKeys::getOwnPool(facts));
  return std::make_unique<RowKeys>(context);
}
