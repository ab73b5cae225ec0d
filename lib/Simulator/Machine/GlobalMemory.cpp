//===- GlobalMemory.cpp - Simulated global memory -------------------------===//

#include "attn/Simulator/Machine/GlobalMemory.h"
#include "MemoryUndo.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cstring>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Expected;

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
