//===- AllocateShared.cpp - Offsets in shared memory ----------------------===//
//
// First fit (Placement.h) of buffers by their lifetimes. Buffers of one overlay
// group count as one, as large as the largest of them. Offsets that are already
// in the IR are kept.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/BufferLiveness.h"
#include "attn/Analysis/Memory/Placement.h"
#include "attn/Dialect/Attn/IR/OccupancyAttr.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/Format.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNALLOCATESHAREDPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Buffers without a swizzle start at a full line of banks.
constexpr int64_t kLeastAlignment = 128;

/// Bytes and alignment of an mbarrier (PTX ISA, mbarrier).
constexpr int64_t kBarrierBytes = 8;

/// One alloc, or all of an overlay group.
struct Item : PlacedItem {
  Item() { alignment = kLeastAlignment; }
  SmallVector<AllocOp, 2> members;
};

struct AttnAllocateSharedPass
    : attn::impl::AttnAllocateSharedPassBase<AttnAllocateSharedPass> {
  using Base::Base;

  void runOnOperation() override {
    std::string target = getChip();
    auto row = lookupTarget(target);
    if (!row) {
      getOperation().emitError() << llvm::toString(row.takeError());
      return signalPassFailure();
    }
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(allocate(kernel, *row)))
        return signalPassFailure();
  }

  std::string getChip() {
    if (ArrayAttr targets = getOperation().getTargetsAttr())
      for (Attribute attr : targets)
        if (auto target = dyn_cast<TargetAttr>(attr))
          return target.getChip().str();
    return chip;
  }

  LogicalResult allocate(gpu::GPUFuncOp kernel, const TargetRow &target);
};

} // namespace

/// The buffers grouped into items, in the order of the text.
static FailureOr<SmallVector<Item>> makeItems(const BufferLiveness &liveness) {
  SmallVector<Item> items;
  llvm::StringMap<size_t> groups;
  for (AllocOp alloc : liveness.getAllocs()) {
    auto bytes = getAllocBytes(alloc);
    if (!bytes)
      return alloc.emitOpError("cannot be placed: ")
             << llvm::toString(bytes.takeError());
    size_t index = items.size();
    if (std::optional<StringRef> group = alloc.getOverlay())
      index = groups.try_emplace(*group, index).first->second;
    if (index == items.size())
      items.emplace_back();
    Item &item = items[index];
    for (AllocOp member : item.members) {
      if (!liveness.overlap(member, alloc))
        continue;
      auto diag = alloc.emitOpError("expected the buffers of overlay group '")
                  << *alloc.getOverlay() << "' to be live one after the other, "
                  << "got '" << getBufferName(member) << "' and '"
                  << getBufferName(alloc) << "' live at the same time";
      diag.attachNote(member.getLoc()) << "the other buffer is here";
      return diag;
    }
    int64_t alignment =
        llvm::cantFail(getSharedLayout(alloc.getType())).alignment();
    item.members.push_back(alloc);
    item.size = std::max(item.size, *bytes);
    item.alignment = std::max(item.alignment, alignment);
    if (std::optional<uint64_t> offset = alloc.getOffset())
      item.offset = *offset;
  }
  return items;
}

static bool liveTogether(const BufferLiveness &liveness, const Item &a,
                         const Item &b) {
  return llvm::any_of(a.members, [&](AllocOp first) {
    return llvm::any_of(b.members, [&](AllocOp second) {
      return liveness.overlap(first, second);
    });
  });
}

/// Offsets that were given may be wrong.
static LogicalResult checkGivenOffsets(MutableArrayRef<Item> items,
                                       ArrayRef<PlacedItem *> placed,
                                       LiveTogether liveTogether) {
  for (auto [index, item] : llvm::enumerate(items)) {
    AllocOp alloc = item.members.front();
    if (*item.offset % item.alignment != 0)
      return alloc.emitOpError("expected an offset that is a multiple of ")
             << item.alignment << ", got " << *item.offset;
    std::optional<size_t> overlapping =
        findOverlap(placed, index, liveTogether);
    if (!overlapping)
      continue;
    const Item &other = items[*overlapping];
    AllocOp neighbour = other.members.front();
    auto diag = alloc.emitOpError("expected bytes of its own, got [")
                << *item.offset << ", " << item.end() << "), which overlap '"
                << getBufferName(neighbour) << "' at [" << *other.offset << ", "
                << other.end() << ")";
    diag.attachNote(neighbour.getLoc())
        << "the other buffer is here, live at the same time";
    return diag;
  }
  return success();
}

static int64_t getBytes(MBarrierAllocOp op) {
  return op.getType().getCount() * kBarrierBytes;
}

static StringRef getName(MBarrierAllocOp op) {
  return op.getName().value_or("mbarriers");
}

/// Puts mbarriers without an offset at `end`, one array behind the other, and
/// checks those that have one. Returns the bytes of shared memory then.
static FailureOr<int64_t> placeBarriers(ArrayRef<MBarrierAllocOp> barriers,
                                        ArrayRef<Item> items, int64_t end) {
  SmallVector<std::pair<int64_t, MBarrierAllocOp>> placed;
  for (MBarrierAllocOp op : barriers)
    if (op.getOffset())
      end = std::max<int64_t>(end, *op.getOffset() + getBytes(op));
  end = llvm::alignTo(end, kBarrierBytes);
  for (MBarrierAllocOp op : barriers) {
    if (!op.getOffset()) {
      op.setOffset(end);
      end += getBytes(op);
    }
    int64_t begin = *op.getOffset();
    if (begin % kBarrierBytes != 0)
      return op.emitOpError("expected an offset that is a multiple of ")
             << kBarrierBytes << ", got " << begin;
    auto check = [&](int64_t otherBegin, int64_t otherEnd, StringRef name,
                     Location loc) -> LogicalResult {
      if (otherEnd <= begin || begin + getBytes(op) <= otherBegin)
        return success();
      auto diag = op.emitOpError("expected bytes of its own, got [")
                  << begin << ", " << begin + getBytes(op)
                  << "), which overlap '" << name << "' at [" << otherBegin
                  << ", " << otherEnd << ")";
      diag.attachNote(loc) << "it is made here";
      return diag;
    };
    for (const Item &item : items)
      if (AllocOp alloc = item.members.front(); failed(check(
              *item.offset, item.end(), getBufferName(alloc), alloc.getLoc())))
        return failure();
    for (auto [offset, other] : placed)
      if (failed(check(offset, offset + getBytes(other), getName(other),
                       other.getLoc())))
        return failure();
    placed.push_back({begin, op});
  }
  return end;
}

/// "k 2 x 16384".
static void printSize(llvm::raw_ostream &os, AllocOp alloc) {
  BufferType type = alloc.getType();
  os << getBufferName(alloc) << ' ';
  if (type.getNumSlots() > 1)
    os << type.getNumSlots() << " x ";
  os << llvm::cantFail(type.getSlotBytes());
}

/// The sum of the buffers that are live where most bytes are, and of mbarriers.
static std::string describeSum(const BufferLiveness &liveness,
                               ArrayRef<MBarrierAllocOp> barriers,
                               int64_t total) {
  SmallVector<AllocOp> allocs = liveness.getAllocs(), peak;
  int64_t peakBytes = 0;
  for (AllocOp alloc : allocs) {
    for (const LiveRange &range : liveness.getRanges(alloc)) {
      SmallVector<AllocOp> live;
      int64_t bytes = 0;
      for (AllocOp other : allocs) {
        if (!liveness.isLive(other, range.begin))
          continue;
        live.push_back(other);
        bytes += llvm::cantFail(getAllocBytes(other));
      }
      if (bytes > peakBytes) {
        peakBytes = bytes;
        peak = live;
      }
    }
  }
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleave(
      peak, os, [&](AllocOp alloc) { printSize(os, alloc); }, " + ");
  int64_t count = 0;
  for (MBarrierAllocOp op : barriers)
    count += op.getType().getCount();
  if (count != 0)
    os << (peak.empty() ? "" : " + ") << "mbarriers " << count << " x "
       << kBarrierBytes;
  peakBytes += count * kBarrierBytes;
  if (total > peakBytes)
    os << " + " << total - peakBytes << " between them";
  return text;
}

/// One line for each buffer: offset, bytes, lines where it is live, name.
static std::string describeMap(const BufferLiveness &liveness,
                               ArrayRef<Item> items,
                               ArrayRef<MBarrierAllocOp> barriers,
                               int64_t total) {
  SmallVector<std::tuple<int64_t, size_t, AllocOp>> rows;
  for (const Item &item : items)
    for (AllocOp alloc : item.members)
      rows.push_back({*item.offset, rows.size(), alloc});
  llvm::sort(rows, [](const auto &a, const auto &b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) <
           std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "shared memory, " << total << " bytes";
  for (auto [offset, index, alloc] : rows) {
    os << "\n  " << llvm::format_decimal(offset, 7) << ' '
       << llvm::format_decimal(llvm::cantFail(getAllocBytes(alloc)), 7) << "  "
       << getBufferName(alloc);
    ArrayRef<LiveRange> ranges = liveness.getRanges(alloc);
    os << (ranges.empty() ? ", never used" : ", live");
    llvm::interleave(
        ranges, os,
        [&](const LiveRange &range) {
          os << " [" << range.begin << ", " << range.end << "]";
        },
        "");
  }
  for (MBarrierAllocOp op : barriers)
    os << "\n  " << llvm::format_decimal(*op.getOffset(), 7) << ' '
       << llvm::format_decimal(getBytes(op), 7) << "  " << getName(op)
       << ", mbarriers";
  return text;
}

LogicalResult AttnAllocateSharedPass::allocate(gpu::GPUFuncOp kernel,
                                               const TargetRow &target) {
  auto liveness = BufferLiveness::compute(kernel);
  if (failed(liveness))
    return failure();
  auto items = makeItems(*liveness);
  if (failed(items))
    return failure();
  SmallVector<PlacedItem *> placed;
  for (Item &item : *items)
    placed.push_back(&item);
  auto together = [&](size_t a, size_t b) {
    return liveTogether(*liveness, (*items)[a], (*items)[b]);
  };
  placeItems(placed, together);
  if (failed(checkGivenOffsets(*items, placed, together)))
    return failure();

  Builder builder(&getContext());
  int64_t total = 0, sum = 0;
  for (const Item &item : *items) {
    total = std::max(total, item.end());
    for (AllocOp alloc : item.members) {
      alloc.setOffsetAttr(builder.getI64IntegerAttr(*item.offset));
      sum += llvm::cantFail(getAllocBytes(alloc));
      ++numBuffers;
    }
  }
  SmallVector<MBarrierAllocOp> barriers;
  kernel.walk([&](MBarrierAllocOp op) { barriers.push_back(op); });
  FailureOr<int64_t> end = placeBarriers(barriers, *items, total);
  if (failed(end))
    return failure();
  if (!barriers.empty())
    total = *end;
  for (MBarrierAllocOp op : barriers)
    sum += getBytes(op);
  std::string atPeak = describeSum(*liveness, barriers, total);
  if (int64_t teams = getTeams(kernel); teams > 1) {
    int64_t alignment = kLeastAlignment;
    for (const Item &item : *items)
      alignment = std::max(alignment, item.alignment);
    atPeak = std::to_string(teams) + " teams with " + atPeak;
    total = teams * llvm::alignTo(total, alignment);
    sum *= teams;
  }
  if (auto most = kernel->getAttrOfType<IntegerAttr>(kMostCtasAttr)) {
    int64_t share = target.sharedBytesPerSM / (most.getInt() + 1) + 1 -
                    int64_t(target.sharedBytesReserved);
    total = std::max<int64_t>(total, llvm::alignTo(share, kLeastAlignment));
  }
  if (total > target.sharedBytesPerCTA)
    return kernel.emitError("shared memory does not fit: expected at most ")
           << target.sharedBytesPerCTA << " bytes on " << target.chip
           << ", got " << total << " (" << atPeak << ")";
  kernel->setAttr(AttnDialect::kSharedBytesAttr,
                  builder.getI64IntegerAttr(total));

  if (printMap)
    emitRemark(kernel.getLoc(),
               describeMap(*liveness, *items, barriers, total));
  remark::passed(kernel.getLoc(), remark::RemarkOpts::name("map")
                                      .category("attn.allocate-shared")
                                      .function(kernel.getName()))
      << remark::add("shared memory is laid out")
      << remark::metric("bytes", total)
      << remark::metric("bytes-without-reuse", sum)
      << remark::metric("limit", target.sharedBytesPerCTA)
      << remark::metric("at-peak", atPeak);
  return success();
}
