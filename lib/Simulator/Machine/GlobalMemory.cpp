//===- GlobalMemory.cpp - Simulated global memory -------------------------===//

#include "attn/Simulator/Machine/GlobalMemory.h"
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
  allocation->bytes.assign(bytes, 0xCB);
  allocation->valid.assign(bytes, 0);
  // The gap makes an access that runs over the end land in no allocation.
  next = llvm::alignTo(address + bytes + 4096, 4096);
  allocations[address] = std::move(allocation);
  return address;
}

Allocation *Memory::find(uint64_t address, uint64_t bytes) {
  auto it = allocations.upper_bound(address);
  if (it == allocations.begin())
    return nullptr;
  Allocation *a = std::prev(it)->second.get();
  uint64_t offset = address - a->address;
  if (offset > a->bytes.size() || bytes > a->bytes.size() - offset)
    return nullptr;
  return a;
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
  std::memcpy(a->bytes.data() + (address - a->address), data.data(),
              data.size());
  std::memset(a->valid.data() + (address - a->address), 1, data.size());
  return Error::success();
}

Error Memory::read(uint64_t address,
                   llvm::MutableArrayRef<uint8_t> data) const {
  const Allocation *a = find(address, data.size());
  if (!a)
    return makeRangeError(address, data.size());
  if (!data.empty())
    std::memcpy(data.data(), a->bytes.data() + (address - a->address),
                data.size());
  return Error::success();
}

Error Memory::fill(uint64_t address, uint64_t bytes, uint8_t value) {
  Allocation *a = find(address, bytes);
  if (!a)
    return makeRangeError(address, bytes);
  uint64_t offset = address - a->address;
  std::fill_n(a->bytes.begin() + offset, bytes, value);
  std::fill_n(a->valid.begin() + offset, bytes, uint8_t(1));
  return Error::success();
}

Expected<uint64_t> Memory::countUninitialised(uint64_t address,
                                              uint64_t bytes) const {
  const Allocation *a = find(address, bytes);
  if (!a)
    return makeRangeError(address, bytes);
  auto begin = a->valid.begin() + (address - a->address);
  return std::count(begin, begin + bytes, uint8_t(0));
}

Memory::Snapshot Memory::save() const {
  Snapshot snapshot;
  for (const auto &[address, allocation] : allocations)
    if (allocation->access != Access::Read)
      snapshot.push_back(*allocation);
  return snapshot;
}

void Memory::restore(const Snapshot &snapshot) {
  for (const Allocation &saved : snapshot) {
    Allocation &to = *allocations.at(saved.address);
    to.bytes = saved.bytes;
    to.valid = saved.valid;
  }
}

Error Memory::release(uint64_t address) {
  if (!allocations.erase(address))
    return llvm::createStringError(llvm::formatv(
        "expected the start of an allocation, got address {0:x}", address));
  return Error::success();
}
