//===- DeviceCalls.cpp - Devices, contexts and errors ---------------------===//

#include "Platform.h"
#include <cstring>

using namespace cuda;
using mlir::attn::TargetRow;

/// The version of the interface, as cuDriverGetVersion says it.
static constexpr int kDriverVersion = 13020;

ATTN_API int cuInit(unsigned flags) {
  return call(
      "cuInit", [&](Platform &p) { return p.start(); }, /*needsStart=*/false);
}

ATTN_API int cuDriverGetVersion(int *version) {
  return call(
      "cuDriverGetVersion",
      [&](Platform &) -> Error {
        if (Error error = checkOutput(version))
          return error;
        *version = kDriverVersion;
        return Error::success();
      },
      /*needsStart=*/false);
}

ATTN_API int cuDeviceGetCount(int *count) {
  return call("cuDeviceGetCount", [&](Platform &p) -> Error {
    if (Error error = checkOutput(count))
      return error;
    *count = p.countDevices();
    return Error::success();
  });
}

ATTN_API int cuDeviceGet(int *device, int ordinal) {
  return call("cuDeviceGet", [&](Platform &p) -> Error {
    if (Error error = checkOutput(device))
      return error;
    *device = ordinal;
    return p.getDevice(ordinal).takeError();
  });
}

ATTN_API int cuDeviceGetName(char *name, int length, int ordinal) {
  return call("cuDeviceGetName", [&](Platform &p) -> Error {
    if (Error error = checkOutput(name))
      return error;
    Expected<Device *> device = p.getDevice(ordinal);
    if (!device)
      return device.takeError();
    if (length < 1)
      return fail(Status::InvalidValue, "expected room for a name, got none");
    std::snprintf(name, length, "attn simulator of %s",
                  (*device)->getChip().chip.str().c_str());
    return Error::success();
  });
}

/// Bytes of a CUuuid.
static constexpr size_t kIdBytes = 16;

ATTN_API int cuDeviceGetUuid_v2(void *id, int ordinal) {
  return call("cuDeviceGetUuid", [&](Platform &p) -> Error {
    if (Error error = checkOutput(id))
      return error;
    std::memset(id, 0x5a, kIdBytes);
    std::memcpy(id, &ordinal, sizeof(ordinal));
    return p.getDevice(ordinal).takeError();
  });
}
ATTN_API int cuDeviceGetUuid(void *id, int ordinal) {
  return cuDeviceGetUuid_v2(id, ordinal);
}

ATTN_API int cuDeviceTotalMem_v2(size_t *bytes, int ordinal) {
  return call("cuDeviceTotalMem", [&](Platform &p) -> Error {
    if (Error error = checkOutput(bytes))
      return error;
    Expected<Device *> device = p.getDevice(ordinal);
    if (!device)
      return device.takeError();
    *bytes = (*device)->getMemory().getCapacity();
    return Error::success();
  });
}

ATTN_API int cuDeviceGetPCIBusId(char *text, int length, int ordinal) {
  return call("cuDeviceGetPCIBusId", [&](Platform &p) -> Error {
    if (Error error = checkOutput(text))
      return error;
    if (length < 1)
      return fail(Status::InvalidValue, "expected room for an id, got none");
    std::snprintf(text, length, "0000:%02x:00.0", ordinal + 1);
    return p.getDevice(ordinal).takeError();
  });
}

/// An attribute of a device by its number in CUdevice_attribute; zero for those
/// that the simulator has no word for.
static int getAttribute(const TargetRow &chip, unsigned sms, unsigned number) {
  switch (number) {
  case 1: // threads of a block
    return chip.maxThreadsPerCTA;
  case 2: // its size in x and y
  case 3:
    return 1024;
  case 4: // and in z
    return 64;
  case 5: // size of a grid in x
    return INT32_MAX;
  case 6: // in y and z
  case 7:
    return 65535;
  case 8: // shared memory of a block without asking for more
    return 49152;
  case 9: // constant memory
    return 65536;
  case 10: // lanes of a warp
    return 32;
  case 11: // pitch of a copy
    return INT32_MAX;
  case 12: // registers of a block, of a multiprocessor
  case 82:
    return chip.registersPerSM;
  case 13: // clock in kHz
    return chip.clockMHz * 1000;
  case 14: // alignment of textures
    return 512;
  case 16:
    return sms ? sms : chip.smCount;
  case 33: // bus
    return 1;
  case 36: // memory clock in kHz for a bus of 4096 bits at twice the rate
    return chip.dramGBPerSecond * (1000000 / 1024);
  case 37:
    return 4096;
  case 38:
    return chip.l2Bytes;
  case 39:
    return chip.maxThreadsPerSM;
  case 40: // copy engines
    return 2;
  case 75:
    return chip.computeCapability / 10;
  case 76:
    return chip.computeCapability % 10;
  case 81:
    return chip.sharedBytesPerSM;
  case 97:
    return chip.sharedBytesPerCTA;
  case 106:
    return chip.maxCTAsPerSM;
  case 111:
    return chip.sharedBytesReserved;
  case 120: // clusters
    return chip.maxClusterSize > 1;
  case 15:  // copies beside kernels
  case 19:  // host memory that kernels can read
  case 31:  // kernels beside each other
  case 41:  // one address space
  case 78:  // priorities
  case 83:  // managed memory
  case 91:  // host pointers of registered memory
  case 95:  // cooperative launches
  case 99:  // registering host memory
  case 115: // memory pools
  case 124: // and their handles
    return 1;
  default:
    return 0;
  }
}

ATTN_API int cuDeviceGetAttribute(int *value, unsigned number, int ordinal) {
  return call("cuDeviceGetAttribute", [&](Platform &p) -> Error {
    if (Error error = checkOutput(value))
      return error;
    Expected<Device *> device = p.getDevice(ordinal);
    if (!device)
      return device.takeError();
    *value = getAttribute((*device)->getChip(), p.settings.sms, number);
    return Error::success();
  });
}

ATTN_API int cuDeviceGetDefaultMemPool(Handle *pool, int ordinal) {
  return call("cuDeviceGetDefaultMemPool", [&](Platform &p) -> Error {
    if (Error error = checkOutput(pool))
      return error;
    *pool =
        p.countDevices() > size_t(ordinal) ? p.getPrimary(ordinal) : nullptr;
    return p.getDevice(ordinal).takeError();
  });
}

ATTN_API int cuDevicePrimaryCtxRetain(Handle *context, int ordinal) {
  return call("cuDevicePrimaryCtxRetain", [&](Platform &p) -> Error {
    if (Error error = checkOutput(context))
      return error;
    if (Error error = p.getDevice(ordinal).takeError())
      return error;
    *context = p.getPrimary(ordinal);
    return Error::success();
  });
}
ATTN_API int cuDevicePrimaryCtxRelease_v2(int ordinal) {
  return call("cuDevicePrimaryCtxRelease", [&](Platform &p) -> Error {
    return p.getDevice(ordinal).takeError();
  });
}
ATTN_API int cuDevicePrimaryCtxSetFlags_v2(int ordinal, unsigned flags) {
  return call("cuDevicePrimaryCtxSetFlags", [&](Platform &p) -> Error {
    return p.getDevice(ordinal).takeError();
  });
}
ATTN_API int cuDevicePrimaryCtxGetState(int ordinal, unsigned *flags,
                                        int *active) {
  return call("cuDevicePrimaryCtxGetState", [&](Platform &p) -> Error {
    if (!flags || !active)
      return checkOutput(nullptr);
    *flags = 0;
    *active = 1;
    return p.getDevice(ordinal).takeError();
  });
}

ATTN_API int cuCtxGetCurrent(Handle *context) {
  return call("cuCtxGetCurrent", [&](Platform &p) -> Error {
    if (Error error = checkOutput(context))
      return error;
    std::vector<Handle> &contexts = Platform::getContexts();
    *context = contexts.empty() ? nullptr : contexts.back();
    return Error::success();
  });
}
ATTN_API int cuCtxSetCurrent(Handle context) {
  return call("cuCtxSetCurrent", [&](Platform &p) -> Error {
    if (context)
      if (Error error = p.contexts.get(context).takeError())
        return error;
    std::vector<Handle> &contexts = Platform::getContexts();
    if (!contexts.empty())
      contexts.pop_back();
    contexts.push_back(context);
    return Error::success();
  });
}
ATTN_API int cuCtxPushCurrent_v2(Handle context) {
  return call("cuCtxPushCurrent", [&](Platform &p) -> Error {
    if (Error error = p.contexts.get(context).takeError())
      return error;
    Platform::getContexts().push_back(context);
    return Error::success();
  });
}
ATTN_API int cuCtxPopCurrent_v2(Handle *context) {
  return call("cuCtxPopCurrent", [&](Platform &p) -> Error {
    std::vector<Handle> &contexts = Platform::getContexts();
    if (contexts.empty())
      return fail(Status::InvalidContext, "expected a current context to pop, "
                                          "got none");
    if (context)
      *context = contexts.back();
    contexts.pop_back();
    return Error::success();
  });
}
ATTN_API int cuCtxCreate_v2(Handle *context, unsigned flags, int ordinal) {
  return call("cuCtxCreate", [&](Platform &p) -> Error {
    if (Error error = checkOutput(context))
      return error;
    if (Error error = p.getDevice(ordinal).takeError())
      return error;
    *context = p.contexts.add({ordinal});
    Platform::getContexts().push_back(*context);
    return Error::success();
  });
}
ATTN_API int cuCtxCreate_v3(Handle *context, void *, int, unsigned flags,
                            int ordinal) {
  return cuCtxCreate_v2(context, flags, ordinal);
}
ATTN_API int cuCtxCreate_v4(Handle *context, void *, unsigned flags,
                            int ordinal) {
  return cuCtxCreate_v2(context, flags, ordinal);
}
ATTN_API int cuCtxDestroy_v2(Handle context) {
  return call("cuCtxDestroy", [&](Platform &p) -> Error {
    Expected<Context *> found = p.contexts.get(context);
    if (!found)
      return found.takeError();
    if (p.getPrimary((*found)->ordinal) == context)
      return fail(Status::InvalidContext, "expected a context that the program "
                                          "has made, got the primary one");
    p.contexts.drop(context);
    llvm::erase(Platform::getContexts(), context);
    return Error::success();
  });
}
ATTN_API int cuCtxGetDevice(int *ordinal) {
  return call("cuCtxGetDevice", [&](Platform &p) -> Error {
    if (Error error = checkOutput(ordinal))
      return error;
    return p.getCurrentOrdinal().moveInto(*ordinal);
  });
}
ATTN_API int cuCtxGetApiVersion(Handle context, unsigned *version) {
  return call("cuCtxGetApiVersion", [&](Platform &p) -> Error {
    if (Error error = checkOutput(version))
      return error;
    *version = kDriverVersion;
    return Error::success();
  });
}
ATTN_API int cuCtxGetFlags(unsigned *flags) {
  return call("cuCtxGetFlags", [&](Platform &p) -> Error {
    if (Error error = checkOutput(flags))
      return error;
    *flags = 0;
    return p.getCurrent().takeError();
  });
}
ATTN_API int cuCtxGetLimit(size_t *value, unsigned limit) {
  return call("cuCtxGetLimit", [&](Platform &p) -> Error {
    if (Error error = checkOutput(value))
      return error;
    *value = 1 << 20;
    return p.getCurrent().takeError();
  });
}
ATTN_API int cuCtxSetLimit(unsigned limit, size_t value) {
  return call("cuCtxSetLimit",
              [&](Platform &p) { return p.getCurrent().takeError(); });
}
ATTN_API int cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return call("cuCtxGetStreamPriorityRange", [&](Platform &p) -> Error {
    if (least)
      *least = 0;
    if (greatest)
      *greatest = -5;
    return p.getCurrent().takeError();
  });
}
ATTN_API int cuCtxSynchronize() {
  return call("cuCtxSynchronize", [&](Platform &p) -> Error {
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    (*device)->getOrder().synchroniseAll();
    return Error::success();
  });
}

ATTN_API int cuGetErrorString(int status, const char **text) {
  if (!text)
    return int(Status::InvalidValue);
  *text = getLastText(status).c_str();
  if (!**text)
    *text = mlir::attn::device::getStatusText(status).data();
  return *text ? 0 : int(Status::InvalidValue);
}
ATTN_API int cuGetErrorName(int status, const char **text) {
  if (!text)
    return int(Status::InvalidValue);
  *text = mlir::attn::device::getStatusName(status).data();
  return **text ? 0 : int(Status::InvalidValue);
}
