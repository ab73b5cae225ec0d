//===- GlobalMemory.cpp - Simulated global memory -------------------------===//

#include "attn/Simulator/Machine/GlobalMemory.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Expected;

namespace mlir::attn::sim {
/// Keeps what a MemoryUndo puts back of one allocation.
class UndoPages {
public:
  explicit UndoPages(Allocation &allocation);
  ~UndoPages();

  /// Keeps what is about to be written, here and in older ones. Usable from
  /// several host threads.
  void keep(uint64_t offset, uint64_t bytes);
  /// Puts it back, and begins anew.
  void restore();
  /// Returns the bytes that are kept.
  uint64_t countKept() const;

private:
  static constexpr uint64_t PageBytes = 4096;
  /// A page as it was. Without bytes that say what has been written: all were.
  struct Page {
    uint64_t offset;
    std::vector<uint8_t> bytes, valid;
  };

  Allocation &allocation;
  UndoPages *outer;
  /// One byte a page, 1 where it is kept; made when something is written.
  std::unique_ptr<std::atomic<uint8_t>[]> isKept;
  std::once_flag isMade;
  std::mutex mutex;
  std::vector<Page> pages;

  void keepPage(uint64_t page);
};

} // namespace mlir::attn::sim

static Error makeRangeError(uint64_t address, uint64_t bytes) {
  return llvm::createStringError(llvm::formatv(
      "expected {0} bytes at address {1:x} inside one allocation, got none",
      bytes, address));
}

uint64_t Memory::allocate(uint64_t bytes, llvm::StringRef name,
                          uint64_t align) {
  align = std::max<uint64_t>(llvm::PowerOf2Ceil(align), 256);
  // As much before an allocation belongs to nobody: some tensor maps begin
  // before their tensor, by at most its size, where a board has any memory or
  // none.
  uint64_t address = llvm::alignTo(next + bytes, align);
  auto allocation = std::make_unique<Allocation>();
  allocation->name = name.str();
  allocation->address = address;
  allocation->ownBytes.assign(bytes, 0xCB);
  allocation->ownValid.assign(bytes, 0);
  allocation->storage = {allocation->ownBytes.data(),
                         allocation->ownValid.data(), bytes};
  // The gap makes an access that runs over the end land in no allocation.
  next = llvm::alignTo(address + bytes + 4096, 4096);
  allocations[address] = std::move(allocation);
  return address;
}

Expected<Allocation *> Memory::adopt(uint64_t address, const Storage &storage,
                                     llvm::StringRef name) {
  if (storage.size > UINT64_MAX - address)
    return makeRangeError(address, storage.size);
  uint64_t end = address + std::max<uint64_t>(storage.size, 1);
  auto it = allocations.lower_bound(end);
  if (it != allocations.begin()) {
    const Allocation &below = *std::prev(it)->second;
    if (below.address + std::max<uint64_t>(below.size(), 1) > address)
      return llvm::createStringError(llvm::formatv(
          "expected memory for '{0}' that no other allocation holds, got {1} "
          "bytes at {2:x} beside '{3}' with {4} bytes at {5:x}",
          name, storage.size, address, below.name, below.size(),
          below.address));
  }
  // Accesses are about the new owner of the place.
  auto old = freed.lower_bound(address);
  if (old != freed.begin() &&
      std::prev(old)->first + std::prev(old)->second.size > address)
    --old;
  while (old != freed.end() && old->first < end)
    old = freed.erase(old);
  auto allocation = std::make_unique<Allocation>();
  allocation->name = name.str();
  allocation->address = address;
  allocation->storage = storage;
  return (allocations[address] = std::move(allocation)).get();
}

Allocation *Memory::find(uint64_t address, uint64_t bytes) {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return nullptr;
  Allocation *a = std::prev(it)->second.get();
  return a->contains(address, bytes) ? a : nullptr;
}

const Allocation *Memory::find(uint64_t address, uint64_t bytes) const {
  return const_cast<Memory *>(this)->find(address, bytes);
}

const Allocation *Memory::findNear(uint64_t address) const {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return nullptr;
  return std::prev(it)->second.get();
}

const FreedAllocation *Memory::findFreed(uint64_t address) const {
  auto it = freed.upper_bound(address);
  if (it == freed.begin())
    return nullptr;
  const FreedAllocation &below = std::prev(it)->second;
  return address - below.address < below.size ? &below : nullptr;
}

Error Memory::setAccess(uint64_t address, Access access) {
  Allocation *a = find(address, 0);
  if (!a)
    return makeRangeError(address, 0);
  a->access = access;
  return Error::success();
}

Error Memory::write(uint64_t address, llvm::ArrayRef<uint8_t> data) {
  Allocation *a = find(address, data.size());
  if (!a)
    return makeRangeError(address, data.size());
  if (data.empty())
    return Error::success();
  uint64_t offset = address - a->address;
  std::memcpy(a->startWrite(offset, data.size()), data.data(), data.size());
  if (uint8_t *valid = a->validAt(offset))
    std::memset(valid, 1, data.size());
  return Error::success();
}

Error Memory::read(uint64_t address,
                   llvm::MutableArrayRef<uint8_t> data) const {
  const Allocation *a = find(address, data.size());
  if (!a)
    return makeRangeError(address, data.size());
  if (!data.empty())
    std::memcpy(data.data(), a->storage.bytes + (address - a->address),
                data.size());
  return Error::success();
}

Error Memory::fill(uint64_t address, uint64_t bytes, uint8_t value) {
  Allocation *a = find(address, bytes);
  if (!a)
    return makeRangeError(address, bytes);
  uint64_t offset = address - a->address;
  std::fill_n(a->startWrite(offset, bytes), bytes, value);
  if (uint8_t *valid = a->validAt(offset))
    std::fill_n(valid, bytes, uint8_t(1));
  return Error::success();
}

Expected<uint64_t> Memory::countUninitialised(uint64_t address,
                                              uint64_t bytes) const {
  const Allocation *a = find(address, bytes);
  if (!a)
    return makeRangeError(address, bytes);
  const uint8_t *valid = a->storage.valid;
  if (!valid)
    return 0;
  valid += address - a->address;
  return std::count(valid, valid + bytes, uint8_t(0));
}

Expected<std::unique_ptr<Allocation>> Memory::take(uint64_t address) {
  auto it = allocations.find(address);
  if (it == allocations.end())
    return llvm::createStringError(llvm::formatv(
        "expected the start of an allocation, got address {0:x}", address));
  for (MemoryUndo *each = undo; each; each = each->outer)
    each->pages.erase(address);
  std::unique_ptr<Allocation> taken = std::move(it->second);
  allocations.erase(it);
  return std::move(taken);
}

Error Memory::release(uint64_t address, llvm::StringRef where) {
  Expected<std::unique_ptr<Allocation>> taken = take(address);
  if (!taken)
    return taken.takeError();
  freed[address] = {(*taken)->name, address, (*taken)->size(), where.str()};
  return Error::success();
}

Error Memory::forget(uint64_t address) { return take(address).takeError(); }

UndoPages::UndoPages(Allocation &allocation)
    : allocation(allocation), outer(allocation.undo) {
  allocation.undo = this;
}

UndoPages::~UndoPages() { allocation.undo = outer; }

void UndoPages::keepPage(uint64_t page) {
  std::lock_guard<std::mutex> lock(mutex);
  if (isKept[page].load(std::memory_order_relaxed))
    return;
  uint64_t begin = page * PageBytes;
  uint64_t end = std::min(begin + PageBytes, allocation.size());
  Page kept{begin, {}, {}};
  kept.bytes.assign(allocation.storage.bytes + begin,
                    allocation.storage.bytes + end);
  if (const uint8_t *valid = allocation.validAt(begin))
    kept.valid.assign(valid, valid + (end - begin));
  pages.push_back(std::move(kept));
  // Others that write to the page go on behind this.
  isKept[page].store(1, std::memory_order_release);
}

void UndoPages::keep(uint64_t offset, uint64_t bytes) {
  if (!bytes)
    return;
  std::call_once(isMade, [&] {
    isKept = std::make_unique<std::atomic<uint8_t>[]>(
        (allocation.size() + PageBytes - 1) / PageBytes);
  });
  for (uint64_t page = offset / PageBytes,
                last = (offset + bytes - 1) / PageBytes;
       page <= last; ++page)
    if (!isKept[page].load(std::memory_order_acquire))
      keepPage(page);
  if (outer)
    outer->keep(offset, bytes);
}

void UndoPages::restore() {
  for (const Page &page : pages) {
    std::copy(page.bytes.begin(), page.bytes.end(),
              allocation.storage.bytes + page.offset);
    if (uint8_t *valid = allocation.validAt(page.offset))
      std::copy(page.valid.begin(), page.valid.end(), valid);
    isKept[page.offset / PageBytes] = 0;
  }
  pages.clear();
}

uint64_t UndoPages::countKept() const {
  uint64_t sum = 0;
  for (const Page &page : pages)
    sum += page.bytes.size();
  return sum;
}

uint8_t *Allocation::startWrite(uint64_t offset, uint64_t bytes) {
  if (undo)
    undo->keep(offset, bytes);
  return storage.bytes + offset;
}

MemoryUndo::MemoryUndo(Memory &memory) : memory(memory), outer(memory.undo) {
  memory.undo = this;
  for (auto &[address, allocation] : memory.allocations)
    if (allocation->access != Access::Read)
      pages[address] = std::make_unique<UndoPages>(*allocation);
}

MemoryUndo::~MemoryUndo() { memory.undo = outer; }

void MemoryUndo::restore() {
  for (auto &[address, each] : pages)
    each->restore();
}

uint64_t MemoryUndo::countKept() const {
  uint64_t sum = 0;
  for (const auto &[address, each] : pages)
    sum += each->countKept();
  return sum;
}
