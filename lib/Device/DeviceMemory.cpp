//===- DeviceMemory.cpp - Memory that programs and kernels share ----------===//

#include "attn/Device/DeviceMemory.h"
#include "attn/Support/HostMemory.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>
#include <sys/mman.h>

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::formatv;

/// Allocations begin at multiples of this, as the driver's do, and at least so
/// much of nothing lies behind each.
static constexpr uint64_t kAlignment = 512, kRedZone = 256;
static constexpr uint64_t kPage = 4096;

/// Address space whose pages cost nothing until they are touched.
static uint8_t *reserve(uint64_t bytes) {
  void *memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t *>(memory);
}

DeviceMemory::DeviceMemory(uint64_t capacity) : capacity(capacity) {
  // Twice, so that a place that was freed is not soon another's.
  for (reserved = 2 * llvm::alignTo(capacity, kPage); reserved > kPage;
       reserved = llvm::alignTo(reserved / 2, kPage)) {
    bytes = reserve(reserved);
    valid = bytes ? reserve(reserved) : nullptr;
    if (valid)
      return;
    if (bytes)
      ::munmap(bytes, reserved);
  }
  llvm::report_bad_alloc_error("no address space for a device's memory");
}

DeviceMemory::~DeviceMemory() {
  ::munmap(bytes, reserved);
  ::munmap(valid, reserved);
}

bool DeviceMemory::isReserved(uint64_t address) const {
  return address - reinterpret_cast<uint64_t>(bytes) < reserved;
}

uint64_t DeviceMemory::takePlace(uint64_t extent) {
  uint64_t base = reinterpret_cast<uint64_t>(bytes);
  if (extent <= reserved - next) {
    next += extent;
    return base + next - extent;
  }
  auto fitting = freed.lower_bound(extent);
  if (fitting == freed.end())
    return 0;
  uint64_t place = fitting->second.front();
  fitting->second.pop_front();
  if (fitting->first > extent)
    freed[fitting->first - extent].push_back(place + extent);
  if (fitting->second.empty())
    freed.erase(fitting);
  return place;
}

Expected<uint64_t> DeviceMemory::allocate(uint64_t size, llvm::StringRef name,
                                          MemoryKind kind) {
  if (!size)
    return fail(Status::InvalidValue, "expected at least one byte, got 0");
  uint64_t place = 0, extent = 0;
  if (size <= capacity - used) {
    extent = llvm::alignTo(size + kRedZone, kAlignment);
    place = takePlace(extent);
  }
  if (!place)
    return fail(Status::OutOfMemory,
                formatv("expected at most {0} of device memory beside the {1} "
                        "that are in use, got {2}",
                        formatBytes(capacity - used), formatBytes(used),
                        formatBytes(size)));
  uint64_t offset = place - reinterpret_cast<uint64_t>(bytes);
  sim::Storage storage{bytes + offset, valid + offset, size};
  if (Expected<sim::Allocation *> adopted = memory.adopt(place, storage, name);
      !adopted)
    return adopted.takeError();
  blocks[place] = {size, extent, kind};
  used += size;
  return place;
}

Error DeviceMemory::free(uint64_t address, MemoryKind kind,
                         llvm::StringRef where) {
  auto it = blocks.find(address);
  if (it == blocks.end() || it->second.kind != kind) {
    const sim::FreedAllocation *before = memory.findFreed(address);
    std::string got = before && before->address == address
                          ? formatv("'{0}', which was freed by {1}",
                                    before->name, before->where)
                                .str()
                          : formatv("address {0:x}", address).str();
    return fail(Status::InvalidValue,
                "expected the start of an allocation to free, got " + got);
  }
  llvm::cantFail(memory.release(address, where));
  uint64_t offset = address - reinterpret_cast<uint64_t>(bytes);
  Block block = it->second;
  // Whole pages go back to the system; nothing is known to be written.
  uint64_t first = llvm::alignTo(offset, kPage);
  uint64_t last = llvm::alignDown(offset + block.extent, kPage);
  if (first < last) {
    ::madvise(bytes + first, last - first, MADV_DONTNEED);
    ::madvise(valid + first, last - first, MADV_DONTNEED);
    std::memset(valid + offset, 0, first - offset);
    std::memset(valid + last, 0, offset + block.extent - last);
  } else {
    std::memset(valid + offset, 0, block.extent);
  }
  freed[block.extent].push_back(address);
  used -= block.bytes;
  blocks.erase(it);
  return Error::success();
}

Error DeviceMemory::rebuild(uint64_t begin, uint64_t end) {
  auto it = visible.upper_bound(begin);
  if (it != visible.begin() && std::prev(it)->second > begin)
    --it;
  while (it != visible.end() && it->first < end) {
    begin = std::min(begin, it->first);
    end = std::max(end, it->second);
    llvm::cantFail(memory.forget(it->first));
    it = visible.erase(it);
  }
  for (auto r = registered.lower_bound(begin);
       r != registered.end() && r->first < end;) {
    uint64_t first = r->first, last = first;
    std::string name = r->second.name;
    for (; r != registered.end() && (r->first < last || r->first == first); ++r)
      last = std::max(last, r->first + r->second.bytes);
    auto adopted = memory.adopt(
        first, {reinterpret_cast<uint8_t *>(first), nullptr, last - first},
        name);
    if (!adopted)
      return fail(Status::InvalidValue, llvm::toString(adopted.takeError()));
    visible[first] = last;
  }
  return Error::success();
}

Error DeviceMemory::registerHost(uint64_t address, uint64_t size,
                                 llvm::StringRef name) {
  if (!size || !address || size > UINT64_MAX - address)
    return fail(Status::InvalidValue,
                formatv("expected memory of the host, got {0} bytes at {1:x}",
                        size, address));
  if (isReserved(address))
    return checkRange(address, size, "register");
  auto added = registered.insert({address, {size, name.str()}});
  if (Error error = rebuild(address, address + size)) {
    registered.erase(added);
    llvm::cantFail(rebuild(address, address + size));
    return error;
  }
  return Error::success();
}

Error DeviceMemory::unregisterHost(uint64_t address) {
  if (isReserved(address))
    return Error::success();
  auto it = registered.find(address);
  if (it == registered.end())
    return fail(Status::NotRegistered,
                formatv("expected the start of registered memory, got address "
                        "{0:x}",
                        address));
  uint64_t size = it->second.bytes;
  registered.erase(it);
  return rebuild(address, address + size);
}

MemoryKind DeviceMemory::classify(uint64_t address) const {
  const sim::Allocation *found = memory.find(address);
  if (!found)
    return MemoryKind::Unknown;
  auto it = blocks.find(found->address);
  return it == blocks.end() ? MemoryKind::Registered : it->second.kind;
}

Error DeviceMemory::checkRange(uint64_t address, uint64_t size,
                               llvm::StringRef what) const {
  if (!size || !isReserved(address) || memory.find(address, size))
    return Error::success();
  if (const sim::FreedAllocation *before = memory.findFreed(address))
    return fail(Status::InvalidValue,
                formatv("expected memory to {0} that is allocated, got "
                        "{1} bytes of '{2}', which was freed by {3}",
                        what, size, before->name, before->where));
  const sim::Allocation *near = memory.findNear(address);
  return fail(Status::InvalidValue,
              formatv("expected memory to {0} inside of one allocation, got "
                      "{1} bytes at {2:x}{3}",
                      what, size, address,
                      near ? formatv(", behind '{0}' of {1} bytes", near->name,
                                     near->size())
                                 .str()
                           : ""));
}

Error DeviceMemory::copy(uint64_t to, uint64_t from, uint64_t size) {
  if (Error error = checkRange(from, size, "read"))
    return error;
  if (Error error = checkRange(to, size, "write"))
    return error;
  if (!size)
    return Error::success();
  if (!to || !from)
    return fail(Status::InvalidValue, "expected an address, got null");
  const sim::Allocation *source = memory.find(from, size);
  sim::Allocation *target = memory.find(to, size);
  std::memmove(reinterpret_cast<void *>(to),
               reinterpret_cast<const void *>(from), size);
  uint8_t *known = target ? target->validAt(to - target->address) : nullptr;
  if (!known)
    return Error::success();
  if (source && source->storage.valid)
    std::memmove(known, source->storage.valid + (from - source->address), size);
  else
    std::memset(known, 1, size);
  return Error::success();
}

Error DeviceMemory::fill(uint64_t to, uint32_t pattern, unsigned width,
                         uint64_t count) {
  if (count > UINT64_MAX / width || to % width)
    return fail(Status::InvalidValue,
                formatv("expected an address that is a multiple of {0}, got "
                        "{1:x}",
                        width, to));
  uint64_t size = count * width;
  if (Error error = checkRange(to, size, "write"))
    return error;
  if (size == 0)
    return Error::success();
  sim::Allocation *target = memory.find(to, size);
  if (!target)
    return fail(Status::InvalidValue,
                formatv("expected memory that the device knows, got address "
                        "{0:x}",
                        to));
  auto *bytes = reinterpret_cast<uint8_t *>(to);
  if (width == 1)
    std::memset(bytes, pattern, size);
  else
    for (uint64_t i = 0; i < count; ++i)
      std::memcpy(bytes + i * width, &pattern, width);
  if (uint8_t *known = target->validAt(to - target->address))
    std::memset(known, 1, size);
  return Error::success();
}
