//===- KernelContext.cpp - The kernel that a schedule fills ---------------===//

#include "attn/Schedule/Core/KernelContext.h"
#include "llvm/ADT/ScopeExit.h"

using namespace mlir;
using namespace mlir::attn;

/// The tensors of an attention's launch, in parameter order. Values that are
/// columns of the keys are no tensor of their own.
static SmallVector<TensorFacts> collectTensors(const ProblemFacts &facts) {
  SmallVector<TensorFacts> tensors;
  for (const TensorFacts *tensor : {&facts.q,           &facts.k,
                                    &facts.v,           &facts.o,
                                    &facts.lse,         &facts.mergedO,
                                    &facts.mergedLse,   &facts.mergedScales,
                                    &facts.amax,        &facts.mergedAmax,
                                    &facts.sinks,       &facts.cuSeqlensQ,
                                    &facts.cuSeqlensK,  &facts.qDescale,
                                    &facts.kDescale,    &facts.vDescale,
                                    &facts.pageTable,   &facts.pageIndptr,
                                    &facts.kvLengths,   &facts.initO,
                                    &facts.initLse,     &facts.kScales,
                                    &facts.vScales,     &facts.kRope,
                                    &facts.qRope,       &facts.oScales,
                                    &facts.blockCounts, &facts.blockIndices,
                                    &facts.addedK,      &facts.addedV,
                                    &facts.addedTable,  &facts.addedLengths,
                                    &facts.work})
    if (*tensor && (!facts.isLatent() || tensor != &facts.v))
      tensors.push_back(*tensor);
  llvm::append_range(tensors, facts.captures);
  return tensors;
}

std::pair<TensorFacts, int64_t> attn::getDealtBatch(const ProblemFacts &facts) {
  return {facts.kvLengths, facts.kvSplits};
}

KernelContext::KernelContext(const ProblemFacts &facts, const TargetRow &target,
                             Location loc)
    : KernelFrame(target, loc, collectTensors(facts), facts.scalars),
      facts(facts) {
  collectDescriptorArgs();
}

void KernelContext::collectDescriptorArgs() {
  addSize("q", 1, facts.heads);
  addSize("k", 1, facts.kvHeads);
  if (!facts.varlen)
    addSize("q", 2, facts.queries);
  if (!facts.varlen && !facts.isPaged())
    addSize("k", 2, facts.keys);
  if (facts.isPaged()) {
    addSize("k", 0, facts.pages);
    // Entries of the list, or of a sequence's row.
    unsigned dim = facts.pageIndptr ? 0 : 1;
    addSize("page_table", dim, facts.pageTable.shape[dim]);
  }
  if (facts.hasAddedKeys()) {
    addSize("added_k", 0, facts.addedPages);
    addSize("added_table", 1, facts.addedTable.shape[1]);
  }
  if (facts.hasBlockLists())
    addSize("block_indices", 3, facts.blockIndices.shape.back());
  // Partial results have their run in front of the batch.
  auto isPartial = [&](const TensorFacts &tensor) {
    return facts.kvSplits && tensor.written;
  };
  for (auto [index, tensor] : llvm::enumerate(tensors))
    for (auto [dim, stride] : llvm::enumerate(tensor.strides)) {
      // Packed sequences have batch 1: its stride is never used. Pools have
      // pages in its place.
      bool isPool = facts.isPaged() &&
                    llvm::is_contained({"k", "v", "k_scales", "v_scales",
                                        "k_rope", "added_k", "added_v"},
                                       StringRef(tensor.name));
      bool isBatch = facts.varlen && !isPool &&
                     dim == (isPartial(tensor) ? 1 : 0) &&
                     tensor.shape.size() >= 3 &&
                     index < tensors.size() - facts.captures.size();
      if (ShapedType::isDynamic(stride) && !isBatch)
        addStride(index, dim);
    }
}

Value KernelContext::getBatch() {
  if (!ShapedType::isDynamic(facts.batch))
    return i32(facts.batch);
  if (!facts.varlen)
    return getSize("q", 0);
  // They start and end at one number more than there are of them.
  return b.createOrFold<arith::SubIOp>(getSize("cu_seqlens_q", 0), i32(1));
}
Value KernelContext::getHeads() { return getExtent({{"q", 1}}, facts.heads); }
Value KernelContext::getKVHeads() {
  return getExtent({{"k", 1}}, facts.kvHeads);
}
Value KernelContext::getQueries() {
  return getExtent({{"q", 2}}, facts.queries);
}
Value KernelContext::getLengths() { return getPointer("kv_lengths"); }
Value KernelContext::getKeys() { return getExtent({{"k", 2}}, facts.keys); }

//===----------------------------------------------------------------------===//
// Keys that are looked for
//===----------------------------------------------------------------------===//

/// Returns the searches of key_range.
static SmallVector<FindKeyOp> getSearches(const ProblemFacts &facts) {
  if (!facts.hasKeyRange())
    return {};
  Block &range = AttentionOp(facts.op).getKeyRange()->front();
  return llvm::to_vector(range.getOps<FindKeyOp>());
}

void KernelContext::emitOrders() {
  for (FindKeyOp find : getSearches(facts))
    for (Value memref : {find.getKeys(), find.getQueries()}) {
      const TensorFacts *tensor = findCapture(find, memref);
      bool isKnown = llvm::any_of(orders, [&](const auto &order) {
        return std::get<0>(order) == memref;
      });
      if (!tensor || isKnown)
        continue;
      bool hasRows = tensor->shape.size() > 1;
      Value rows = hasRows ? getSize(tensor->name, 0) : i32(1);
      Value order = InOrderOp::create(
          b, b.getI1Type(), getPointer(tensor->name), rows,
          hasRows ? getStride(tensor->name, 0) : i64(0),
          getSize(tensor->name, tensor->shape.size() - 1), find.getElement());
      orders.push_back({memref, {}, order});
    }
}

Value KernelContext::emitOrder(ImplicitLocOpBuilder &lb,
                               const TensorFacts &tensor, Value row,
                               ValueRange place, Type type) {
  for (const auto &[memref, known, order] : orders)
    if (memref == tensor.value && (known.empty() || ValueRange(known) == place))
      return order;
  Value one = arith::ConstantIntOp::create(lb, 1, 32);
  Value none = arith::ConstantIntOp::create(lb, 0, 64);
  Value count = getSize(tensor.name, tensor.shape.size() - 1);
  Value order =
      InOrderOp::create(lb, lb.getI1Type(), row, one, none, count, type);
  orders.push_back({tensor.value, llvm::to_vector(place), order});
  return order;
}

Value KernelContext::inlineFindKey(ImplicitLocOpBuilder &lb, FindKeyOp find,
                                   const IRMapping &mapping) {
  auto lookUp = [&](Value value) { return mapping.lookup(value); };
  Type type = find.getElement();
  SmallVector<Value> rows;
  Value ordered, count;
  for (auto [memref, indices] :
       {std::pair(find.getQueries(), find.getQueryIndices()),
        std::pair(find.getKeys(), find.getKeyIndices())}) {
    const TensorFacts *tensor = findCapture(find, memref);
    if (!tensor)
      return {};
    SmallVector<Value> place = llvm::map_to_vector(indices, lookUp);
    Value row = getElementAddress(lb, *tensor, place, type);
    Value order = emitOrder(lb, *tensor, row, place, type);
    ordered = ordered && ordered != order
                  ? arith::AndIOp::create(lb, ordered, order).getResult()
                  : order;
    rows.push_back(row);
    count = getSize(tensor->name, tensor->shape.size() - 1);
  }
  Value zero = arith::ConstantIntOp::create(lb, 0, 32);
  auto clamp = [&](Value key) -> Value {
    return arith::MaxSIOp::create(lb, arith::MinSIOp::create(lb, key, count),
                                  zero);
  };
  Value from = lookUp(find.getFrom()), to = lookUp(find.getTo());
  if (searchBegin) {
    from = arith::MaxSIOp::create(lb, from, searchBegin);
    to = arith::MinSIOp::create(lb, to, searchEnd);
  }
  return FindKeyOp::create(lb, lb.getI32Type(), find.getSearch(), rows[1],
                           ValueRange(), clamp(from), clamp(to), rows[0],
                           ValueRange(), lookUp(find.getFirst()),
                           lookUp(find.getLast()), ordered, type);
}

Value KernelContext::inlineRegion(OpBuilder &builder, Region &region,
                                  ValueRange arguments) {
  SmallVector<Value> results = inlineResults(builder, region, arguments);
  return results.empty() ? Value() : results.front();
}

SmallVector<Value> KernelContext::inlineRangeBetween(OpBuilder &builder,
                                                     ValueRange arguments,
                                                     Value begin, Value end) {
  searchBegin = begin, searchEnd = end;
  llvm::scope_exit forget([&] { searchBegin = searchEnd = Value(); });
  AttentionOp op = facts.op;
  return inlineResults(builder, *op.getKeyRange(), arguments);
}

SmallVector<Value> KernelContext::inlineResults(OpBuilder &builder,
                                                Region &region,
                                                ValueRange arguments) {
  // Other tiles do not know what a tile finds out of its own rows.
  size_t known = orders.size();
  llvm::scope_exit forget([&] { orders.truncate(known); });
  return cloneRegion(builder, region, arguments,
                     [this](ImplicitLocOpBuilder &lb, FindKeyOp find,
                            const IRMapping &mapping) {
                       return inlineFindKey(lb, find, mapping);
                     });
}
