//===- AllocateTmem.cpp - Columns of tensor memory ------------------------===//
//
// First fit (Placement.h). Accesses through different buffers are ordered by
// barriers of the CTA only, so the lifetime of a buffer is counted in the
// stretches between barriers at the kernel's top level.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/Placement.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Format.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNALLOCATETMEMPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// PTX ISA, tcgen05.alloc.
constexpr int64_t kLeastColumns = 32;

/// An allocation and the stretches between barriers in which it is live.
struct TmemItem : PlacedItem {
  TmemAllocOp alloc;
  int64_t firstStretch = 0;
  int64_t lastStretch = 0;
};

struct AttnAllocateTmemPass
    : attn::impl::AttnAllocateTmemPassBase<AttnAllocateTmemPass> {
  using Base::Base;

  void runOnOperation() override {
    std::string name = chip;
    if (ArrayAttr targets = getOperation().getTargetsAttr())
      for (Attribute attr : targets)
        if (auto target = dyn_cast<TargetAttr>(attr))
          name = target.getChip().str();
    auto row = lookupTarget(name);
    if (!row) {
      getOperation().emitError() << llvm::toString(row.takeError());
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(allocate(kernel, *row)))
        return signalPassFailure();
  }

  LogicalResult allocate(gpu::GPUFuncOp kernel, const TargetRow &target);
};

} // namespace

static StringRef getTmemName(TmemAllocOp alloc) {
  return alloc.getName().value_or("buffer");
}

/// Adds the ops that touch `buffer` or a view of it.
static void collectAccesses(Value buffer,
                            SmallVectorImpl<Operation *> &accesses) {
  for (Operation *user : buffer.getUsers())
    if (isa<ViewLikeOpInterface>(user))
      collectAccesses(user->getResult(0), accesses);
    else
      accesses.push_back(user);
}

/// Counts the stretches of an allocation. A product ends where an mbarrier
/// says, which may be anywhere behind it.
static void findStretches(TmemItem &item,
                          const DenseMap<Operation *, int64_t> &stretches,
                          int64_t last) {
  SmallVector<Operation *> accesses;
  collectAccesses(item.alloc, accesses);
  Block *block = item.alloc->getBlock();
  item.firstStretch = last;
  Operation *final = nullptr, *finalAccess = nullptr;
  for (Operation *access : accesses) {
    Operation *op = block->findAncestorOpInBlock(*access);
    item.firstStretch = std::min(item.firstStretch, stretches.lookup(op));
    if (final && op->isBeforeInBlock(final))
      continue;
    final = op;
    finalAccess = access;
  }
  auto async = dyn_cast_or_null<AsyncOpInterface>(finalAccess);
  bool ends =
      final == finalAccess && async &&
      async.getAsyncEngine().completion == AsyncEngine::Completion::Groups;
  item.lastStretch = ends ? stretches.lookup(final) : last;
}

/// The allocations of a kernel in the order of the text.
static FailureOr<SmallVector<TmemItem>> makeItems(gpu::GPUFuncOp kernel) {
  SmallVector<TmemItem> items;
  DenseMap<Operation *, int64_t> stretches;
  Block &entry = kernel.getBody().front();
  int64_t stretch = 0;
  for (Operation &op : entry) {
    stretches[&op] = stretch;
    stretch += isa<gpu::BarrierOp>(op);
  }
  WalkResult walk = kernel.walk<WalkOrder::PreOrder>([&](TmemAllocOp alloc) {
    if (alloc->getBlock() != &entry) {
      alloc.emitOpError("expected to stand at the kernel's top level");
      return WalkResult::interrupt();
    }
    TmemItem item;
    item.alloc = alloc;
    item.size =
        alloc.getType().getSlotColumns() * alloc.getType().getNumSlots();
    if (std::optional<int64_t> column = alloc.getColumn())
      item.offset = *column;
    findStretches(item, stretches, stretch);
    items.push_back(item);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return items;
}

/// "s0 128 + s1 128 + o 257 = 513", of what is live where most columns are.
static std::string describeSum(ArrayRef<TmemItem> items, int64_t total) {
  int64_t most = 0, mostStretch = 0;
  auto isLive = [](const TmemItem &item, int64_t stretch) {
    return item.firstStretch <= stretch && stretch <= item.lastStretch;
  };
  for (const TmemItem &item : items) {
    int64_t columns = 0;
    for (const TmemItem &other : items)
      if (isLive(other, item.firstStretch))
        columns += other.size;
    if (columns > most) {
      most = columns;
      mostStretch = item.firstStretch;
    }
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator plus(" + ");
  for (TmemItem item : items)
    if (isLive(item, mostStretch))
      os << plus << getTmemName(item.alloc) << ' ' << item.size;
  if (total > most)
    os << plus << total - most << " between them";
  os << " = " << total;
  return text;
}

/// One line for each buffer and field: column, columns, name.
static std::string describeMap(ArrayRef<TmemItem> items, int64_t total,
                               int64_t reserved) {
  SmallVector<TmemItem> rows(items);
  llvm::stable_sort(rows, [](const TmemItem &a, const TmemItem &b) {
    return *a.offset < *b.offset;
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "tensor memory, " << total << " columns, " << reserved << " reserved";
  for (TmemItem &row : rows) {
    os << "\n  " << llvm::format_decimal(*row.offset, 4) << ' '
       << llvm::format_decimal(row.size, 4) << "  " << getTmemName(row.alloc);
    if (int64_t slots = row.alloc.getType().getNumSlots(); slots > 1)
      os << ", " << slots << " slots";
    if (!row.alloc.getFields())
      continue;
    for (auto field : row.alloc.getFields()->getAsRange<FieldAttr>())
      os << "\n  " << llvm::format_decimal(*row.offset + field.getFirst(), 4)
         << ' ' << llvm::format_decimal(field.getColumns(), 4) << "    "
         << field.getName();
  }
  return text;
}

/// Takes the columns in front of the allocations and gives them back.
static void reserve(gpu::GPUFuncOp kernel, TmemAllocOp first, int64_t columns) {
  OpBuilder b(first);
  Location loc = first.getLoc();
  auto type =
      BufferType::get(b.getContext(), {1}, b.getI32Type(),
                      RowLayoutAttr::get(b.getContext()), MemorySpace::Shared);
  auto slot = AllocOp::create(b, loc, type, b.getStringAttr("tmem"),
                              /*offset=*/IntegerAttr(),
                              /*overlay=*/StringAttr());
  bool pair = usesPairs(kernel);
  Value base = TmemReserveOp::create(b, loc, slot, columns, pair);
  for (Block &block : kernel.getBody())
    if (auto end = dyn_cast<gpu::ReturnOp>(block.getTerminator())) {
      b.setInsertionPoint(end);
      TmemDeallocOp::create(b, end.getLoc(), base, columns, pair);
    }
}

LogicalResult AttnAllocateTmemPass::allocate(gpu::GPUFuncOp kernel,
                                             const TargetRow &target) {
  if (failed(checkTensorGroups(kernel)))
    return failure();
  FailureOr<SmallVector<TmemItem>> items = makeItems(kernel);
  if (failed(items))
    return failure();
  if (items->empty())
    return success();
  SmallVector<PlacedItem *> placed;
  for (TmemItem &item : *items)
    placed.push_back(&item);
  auto together = [&](size_t a, size_t b) {
    const TmemItem &first = (*items)[a], &second = (*items)[b];
    return first.firstStretch <= second.lastStretch &&
           second.firstStretch <= first.lastStretch;
  };
  placeItems(placed, together);
  int64_t total = 0;
  for (auto [index, item] : llvm::enumerate(*items)) {
    total = std::max(total, item.end());
    if (std::optional<size_t> other = findOverlap(placed, index, together)) {
      TmemItem &neighbour = (*items)[*other];
      auto diag = item.alloc.emitOpError("expected columns of its own, got [")
                  << *item.offset << ", " << item.end() << "), which overlap '"
                  << getTmemName(neighbour.alloc) << "' at ["
                  << *neighbour.offset << ", " << neighbour.end() << ")";
      diag.attachNote(neighbour.alloc.getLoc())
          << "the other buffer is here, live at the same time";
      return diag;
    }
  }
  if (total > target.tmemColumns)
    return kernel.emitError("tensor memory does not fit: ")
           << describeSum(*items, total) << " of " << target.tmemColumns
           << " columns on " << target.chip;
  int64_t reserved =
      std::max<int64_t>(kLeastColumns, llvm::PowerOf2Ceil(total));
  Builder builder(&getContext());
  for (TmemItem &item : *items)
    item.alloc.setColumnAttr(builder.getI64IntegerAttr(*item.offset));
  numBuffers += items->size();
  reserve(kernel, items->front().alloc, reserved);

  if (printMap) {
    emitRemark(kernel.getLoc(), describeMap(*items, total, reserved));
    FailureOr<std::string> products = describeTensorProducts(kernel);
    if (failed(products))
      return failure();
    if (!products->empty())
      emitRemark(kernel.getLoc(), *products);
  }
  remark::passed(kernel.getLoc(), remark::RemarkOpts::name("map")
                                      .category("attn.allocate-tmem")
                                      .function(kernel.getName()))
      << remark::add("tensor memory is laid out")
      << remark::metric("columns", total)
      << remark::metric("reserved", reserved)
      << remark::metric("limit", target.tmemColumns)
      << remark::metric("at-peak", describeSum(*items, total));
  return success();
}
