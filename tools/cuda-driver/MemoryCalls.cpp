//===- MemoryCalls.cpp - Allocations, copies and sets ---------------------===//

#include "Platform.h"
#include <cstring>

using namespace cuda;
using llvm::formatv;
using mlir::attn::device::MemoryKind;
using mlir::attn::sim::Allocation;

static uint64_t toAddress(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

/// Makes an allocation of the current device.
static Error allocate(Platform &p, uint64_t *address, size_t bytes,
                      MemoryKind kind) {
  if (Error error = checkOutput(address))
    return error;
  Expected<Device *> device = p.getCurrent();
  if (!device)
    return device.takeError();
  static uint64_t count = 0;
  std::string name = formatv("allocation {0}{1}{2}", ++count,
                             p.site.empty() ? "" : " of ", p.site);
  return (*device)->getMemory().allocate(bytes, name, kind).moveInto(*address);
}

/// The device that has the address, the current one where none has.
static Expected<Device *> findOwner(Platform &p, uint64_t address) {
  for (size_t ordinal = 0; ordinal < p.countDevices(); ++ordinal) {
    Expected<Device *> device = p.getDevice(ordinal);
    if ((*device)->getMemory().classify(address) != MemoryKind::Unknown)
      return device;
  }
  return p.getCurrent();
}

/// Which memory a copy's address is in: only the program knows of the host's.
enum class Side { Device, Host, Any };

/// That an address of the device is one.
static Error checkSide(Device &device, uint64_t address, size_t bytes,
                       Side side) {
  if (side != Side::Device || !bytes || device.getMemory().find(address, bytes))
    return Error::success();
  // Says what is wrong with the device's own addresses.
  if (Error error = device.getMemory().checkRange(address, bytes, "copy"))
    return error;
  return fail(Status::InvalidValue,
              formatv("expected {0} bytes of the device to copy, got address "
                      "{1:x}",
                      bytes, address));
}

/// Copies behind the stream's work; the host waits where there is no stream.
static int copy(const char *name, uint64_t to, uint64_t from, size_t bytes,
                std::optional<Handle> stream, Side toSide, Side fromSide) {
  return callWork(name, [&](Platform &p) -> Error {
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    if (Error error = checkSide(**device, to, bytes, toSide))
      return error;
    if (Error error = checkSide(**device, from, bytes, fromSide))
      return error;
    Expected<LoadedStream *> behind = p.getStream(stream.value_or(nullptr));
    if (!behind)
      return behind.takeError();
    if (!stream)
      if (Error error = p.checkNotCaptured(**behind))
        return error;
    auto work = [owner = *device, to, from, bytes,
                 site = p.site](mlir::attn::device::Stream &in) {
      return owner->copy(to, from, bytes, in, site);
    };
    if (Error error = p.submit(**behind, work))
      return error;
    if (!stream)
      (*device)->getOrder().synchronise((*behind)->stream.actor);
    return Error::success();
  });
}

static int fill(const char *name, uint64_t to, uint32_t pattern, unsigned width,
                size_t count, Handle stream) {
  return callWork(name, [&](Platform &p) -> Error {
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    Expected<LoadedStream *> behind = p.getStream(stream);
    if (!behind)
      return behind.takeError();
    auto work = [owner = *device, to, pattern, width, count,
                 site = p.site](mlir::attn::device::Stream &in) {
      return owner->fill(to, pattern, width, count, in, site);
    };
    return p.submit(**behind, work);
  });
}

static int release(const char *name, uint64_t address,
                   std::optional<Handle> stream) {
  return callWork(name, [&](Platform &p) -> Error {
    if (!address)
      return Error::success();
    Expected<Device *> device = findOwner(p, address);
    if (!device)
      return device.takeError();
    if (!stream)
      return (*device)->free(address, nullptr, name, p.site);
    Expected<LoadedStream *> behind = p.getStream(*stream);
    if (!behind)
      return behind.takeError();
    if (Error error = p.checkNotCaptured(**behind))
      return error;
    return (*device)->free(address, &(*behind)->stream, name, p.site);
  });
}

ATTN_API int cuMemAlloc_v2(Pointer *address, size_t bytes) {
  return callWork("cuMemAlloc", [&](Platform &p) {
    return allocate(p, address, bytes, MemoryKind::Device);
  });
}
ATTN_API int cuMemAllocAsync(Pointer *address, size_t bytes, Handle stream) {
  return callWork("cuMemAllocAsync", [&](Platform &p) -> Error {
    if (Error error = p.getStream(stream).takeError())
      return error;
    return allocate(p, address, bytes, MemoryKind::Device);
  });
}
ATTN_API int cuMemAllocFromPoolAsync(Pointer *address, size_t bytes, Handle,
                                     Handle stream) {
  return cuMemAllocAsync(address, bytes, stream);
}
ATTN_API int cuMemAllocManaged(Pointer *address, size_t bytes, unsigned) {
  return cuMemAlloc_v2(address, bytes);
}
ATTN_API int cuMemAllocPitch_v2(Pointer *address, size_t *pitch, size_t width,
                                size_t height, unsigned elementBytes) {
  if (!pitch || width > SIZE_MAX - 511)
    return int(Status::InvalidValue);
  *pitch = (width + 511) / 512 * 512;
  size_t bytes = 0;
  if (__builtin_mul_overflow(*pitch, height, &bytes))
    return int(Status::OutOfMemory);
  return cuMemAlloc_v2(address, bytes);
}
ATTN_API int cuMemFree_v2(Pointer address) {
  return release("cuMemFree", address, std::nullopt);
}
ATTN_API int cuMemFreeAsync(Pointer address, Handle stream) {
  return release("cuMemFreeAsync", address, stream);
}

ATTN_API int cuMemAllocHost_v2(void **pointer, size_t bytes) {
  return callWork("cuMemAllocHost", [&](Platform &p) {
    return allocate(p, reinterpret_cast<uint64_t *>(pointer), bytes,
                    MemoryKind::Host);
  });
}
ATTN_API int cuMemHostAlloc(void **pointer, size_t bytes, unsigned) {
  return cuMemAllocHost_v2(pointer, bytes);
}
ATTN_API int cuMemFreeHost(void *pointer) {
  return call("cuMemFreeHost", [&](Platform &p) -> Error {
    Expected<Device *> device = findOwner(p, toAddress(pointer));
    if (!device)
      return device.takeError();
    (*device)->getOrder().synchroniseAll();
    return (*device)->getMemory().free(toAddress(pointer), MemoryKind::Host,
                                       "cuMemFreeHost");
  });
}
ATTN_API int cuMemHostRegister_v2(void *pointer, size_t bytes, unsigned) {
  return call("cuMemHostRegister", [&](Platform &p) -> Error {
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    return (*device)->getMemory().registerHost(toAddress(pointer), bytes,
                                               "memory of the host");
  });
}
ATTN_API int cuMemHostUnregister(void *pointer) {
  return call("cuMemHostUnregister", [&](Platform &p) -> Error {
    Expected<Device *> device = findOwner(p, toAddress(pointer));
    if (!device)
      return device.takeError();
    return (*device)->getMemory().unregisterHost(toAddress(pointer));
  });
}
ATTN_API int cuMemHostGetDevicePointer_v2(Pointer *address, void *pointer,
                                          unsigned) {
  return call("cuMemHostGetDevicePointer", [&](Platform &p) -> Error {
    if (Error error = checkOutput(address))
      return error;
    *address = toAddress(pointer);
    return Error::success();
  });
}

ATTN_API int cuMemcpyHtoD_v2(Pointer to, const void *from, size_t bytes) {
  return copy("cuMemcpyHtoD", to, toAddress(from), bytes, std::nullopt,
              Side::Device, Side::Host);
}
ATTN_API int cuMemcpyDtoH_v2(void *to, Pointer from, size_t bytes) {
  return copy("cuMemcpyDtoH", toAddress(to), from, bytes, std::nullopt,
              Side::Host, Side::Device);
}
ATTN_API int cuMemcpyDtoD_v2(Pointer to, Pointer from, size_t bytes) {
  return copy("cuMemcpyDtoD", to, from, bytes, std::nullopt, Side::Device,
              Side::Device);
}
ATTN_API int cuMemcpy(Pointer to, Pointer from, size_t bytes) {
  return copy("cuMemcpy", to, from, bytes, std::nullopt, Side::Any, Side::Any);
}
ATTN_API int cuMemcpyHtoDAsync_v2(Pointer to, const void *from, size_t bytes,
                                  Handle stream) {
  return copy("cuMemcpyHtoDAsync", to, toAddress(from), bytes, stream,
              Side::Device, Side::Host);
}
ATTN_API int cuMemcpyDtoHAsync_v2(void *to, Pointer from, size_t bytes,
                                  Handle stream) {
  return copy("cuMemcpyDtoHAsync", toAddress(to), from, bytes, stream,
              Side::Host, Side::Device);
}
ATTN_API int cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, size_t bytes,
                                  Handle stream) {
  return copy("cuMemcpyDtoDAsync", to, from, bytes, stream, Side::Device,
              Side::Device);
}
ATTN_API int cuMemcpyAsync(Pointer to, Pointer from, size_t bytes,
                           Handle stream) {
  return copy("cuMemcpyAsync", to, from, bytes, stream, Side::Any, Side::Any);
}

/// Copies row by row.
static int copyRows(const char *name, const Copy2D *what,
                    std::optional<Handle> stream) {
  if (!what)
    return call(name, [](Platform &) { return checkOutput(nullptr); });
  auto sideOf = [](uint32_t kind) {
    return kind == DeviceMemoryC ? Side::Device
           : kind == HostMemory  ? Side::Host
                                 : Side::Any;
  };
  auto baseOf = [](uint32_t kind, const void *host, Pointer device) {
    return kind == HostMemory ? toAddress(host) : device;
  };
  uint64_t from = baseOf(what->sourceKind, what->sourceHost, what->source) +
                  what->sourceY * what->sourcePitch + what->sourceX;
  uint64_t to = baseOf(what->targetKind, what->targetHost, what->target) +
                what->targetY * what->targetPitch + what->targetX;
  int status = 0;
  for (size_t row = 0; row < what->height && !status; ++row)
    status = copy(name, to + row * what->targetPitch,
                  from + row * what->sourcePitch, what->width, stream,
                  sideOf(what->targetKind), sideOf(what->sourceKind));
  return status;
}
ATTN_API int cuMemcpy2DAsync_v2(const Copy2D *what, Handle stream) {
  return copyRows("cuMemcpy2DAsync", what, stream);
}
ATTN_API int cuMemcpy2D_v2(const Copy2D *what) {
  return copyRows("cuMemcpy2D", what, std::nullopt);
}
ATTN_API int cuMemcpy2DUnaligned_v2(const Copy2D *what) {
  return copyRows("cuMemcpy2DUnaligned", what, std::nullopt);
}

ATTN_API int cuMemsetD8_v2(Pointer to, unsigned char value, size_t count) {
  return fill("cuMemsetD8", to, value, 1, count, nullptr);
}
ATTN_API int cuMemsetD16_v2(Pointer to, unsigned short value, size_t count) {
  return fill("cuMemsetD16", to, value, 2, count, nullptr);
}
ATTN_API int cuMemsetD32_v2(Pointer to, unsigned value, size_t count) {
  return fill("cuMemsetD32", to, value, 4, count, nullptr);
}
ATTN_API int cuMemsetD8Async(Pointer to, unsigned char value, size_t count,
                             Handle stream) {
  return fill("cuMemsetD8Async", to, value, 1, count, stream);
}
ATTN_API int cuMemsetD16Async(Pointer to, unsigned short value, size_t count,
                              Handle stream) {
  return fill("cuMemsetD16Async", to, value, 2, count, stream);
}
ATTN_API int cuMemsetD32Async(Pointer to, unsigned value, size_t count,
                              Handle stream) {
  return fill("cuMemsetD32Async", to, value, 4, count, stream);
}

ATTN_API int cuMemGetInfo_v2(size_t *free, size_t *all) {
  return call("cuMemGetInfo", [&](Platform &p) -> Error {
    if (!free || !all)
      return checkOutput(nullptr);
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    *all = (*device)->getMemory().getCapacity();
    *free = *all - (*device)->getMemory().getUsed();
    return Error::success();
  });
}

ATTN_API int cuMemGetAddressRange_v2(Pointer *base, size_t *bytes,
                                     Pointer address) {
  return call("cuMemGetAddressRange", [&](Platform &p) -> Error {
    Expected<Device *> device = findOwner(p, address);
    if (!device)
      return device.takeError();
    const Allocation *found = (*device)->getMemory().find(address);
    if (!found)
      return fail(Status::NotFound,
                  formatv("expected memory that the device knows, got address "
                          "{0:x}",
                          address));
    if (base)
      *base = found->address;
    if (bytes)
      *bytes = found->size();
    return Error::success();
  });
}

/// Attributes of a pointer, by their numbers in CUpointer_attribute.
enum PointerAttribute {
  PointerContext = 1,
  PointerMemoryType = 2,
  PointerDevice = 3,
  PointerHost = 4,
  PointerIsManaged = 8,
  PointerOrdinal = 9,
  PointerStart = 11,
  PointerSize = 12,
};

static Error readAttribute(Platform &p, void *data, int attribute,
                           Pointer address) {
  for (size_t ordinal = 0; ordinal < p.countDevices(); ++ordinal) {
    auto &memory = (*p.getDevice(ordinal))->getMemory();
    MemoryKind kind = memory.classify(address);
    const Allocation *found = memory.find(address);
    if (kind == MemoryKind::Unknown)
      continue;
    switch (attribute) {
    case PointerContext:
      *static_cast<Handle *>(data) = p.getPrimary(ordinal);
      break;
    case PointerMemoryType:
      *static_cast<unsigned *>(data) =
          kind == MemoryKind::Host || kind == MemoryKind::Registered
              ? HostMemory
              : DeviceMemoryC;
      break;
    case PointerDevice:
    case PointerHost:
      *static_cast<Pointer *>(data) = address;
      break;
    case PointerIsManaged:
      *static_cast<unsigned *>(data) = 0;
      break;
    case PointerOrdinal:
      *static_cast<int *>(data) = ordinal;
      break;
    case PointerStart:
      *static_cast<Pointer *>(data) = found->address;
      break;
    case PointerSize:
      *static_cast<size_t *>(data) = found->size();
      break;
    default:
      return fail(Status::NotSupported,
                  formatv("expected an attribute of a pointer that the "
                          "stand-in knows, got {0}",
                          attribute));
    }
    return Error::success();
  }
  return fail(Status::InvalidValue,
              formatv("expected memory that a device knows, got address {0:x}: "
                      "memory of the host has to be registered",
                      address));
}

ATTN_API int cuPointerGetAttribute(void *data, int attribute, Pointer address) {
  return call("cuPointerGetAttribute", [&](Platform &p) -> Error {
    if (Error error = checkOutput(data))
      return error;
    return readAttribute(p, data, attribute, address);
  });
}
ATTN_API int cuPointerGetAttributes(unsigned count, const int *attributes,
                                    void **data, Pointer address) {
  return call("cuPointerGetAttributes", [&](Platform &p) -> Error {
    if (!attributes || !data)
      return checkOutput(nullptr);
    // Memory that no device knows has attributes of zero, and no error.
    for (unsigned i = 0; i < count; ++i)
      if (Error error = readAttribute(p, data[i], attributes[i], address))
        llvm::consumeError(std::move(error));
    return Error::success();
  });
}
