//===- ModuleCalls.cpp - Modules, functions and launches ------------------===//

#include "Platform.h"
#include "attn/Simulator/Async/TensorMap.h"
#include "attn/Support/Files.h"
#include <cstring>

using namespace cuda;
using namespace mlir::attn;
using device::LaunchRequest;
using llvm::formatv;
using llvm::StringRef;

static Error loadModule(Platform &p, Handle *module, const void *image,
                        bool isLibrary) {
  if (Error error = checkOutput(module))
    return error;
  // A library belongs to no context; it is loaded for the current device.
  Expected<int> ordinal = p.getCurrentOrdinal();
  if (!ordinal && !isLibrary)
    return ordinal.takeError();
  int number = ordinal ? *ordinal : 0;
  if (!ordinal)
    llvm::consumeError(ordinal.takeError());
  Expected<std::string> ptx = device::extractPTX(image);
  if (!ptx && device::isFatbin(image) && !p.settings.keptPTX.empty()) {
    llvm::consumeError(ptx.takeError());
    ptx = device::findKeptPTX(image, p.settings.keptPTX);
  }
  if (!ptx)
    return ptx.takeError();
  Expected<device::Module *> loaded = (*p.getDevice(number))->loadModule(*ptx);
  if (!loaded)
    return loaded.takeError();
  *module = p.modules.add({number, *loaded, {}, isLibrary});
  return Error::success();
}

static Error unloadModule(Platform &p, Handle module) {
  Expected<LoadedModule *> found = p.modules.get(module);
  if (!found)
    return found.takeError();
  for (const auto &[name, function] : (*found)->functions)
    p.functions.drop(function);
  Error error =
      (*p.getDevice((*found)->ordinal))->unloadModule(*(*found)->module);
  p.modules.drop(module);
  return error;
}

static Error getFunction(Platform &p, Handle *function, Handle module,
                         const char *name) {
  if (!function || !name)
    return checkOutput(nullptr);
  Expected<LoadedModule *> found = p.modules.get(module);
  if (!found)
    return found.takeError();
  Handle &known = (*found)->functions[name];
  if (!known) {
    Device &device = **p.getDevice((*found)->ordinal);
    Expected<device::Function> kernel =
        device.getFunction(*(*found)->module, name);
    if (!kernel) {
      (*found)->functions.erase(name);
      return kernel.takeError();
    }
    known = p.functions.add({(*found)->ordinal, *kernel, module});
  }
  *function = known;
  return Error::success();
}

static Error getGlobal(Platform &p, Pointer *address, size_t *bytes,
                       Handle module, const char *name) {
  Expected<LoadedModule *> found = p.modules.get(module);
  if (!found)
    return found.takeError();
  const sim::ModuleVariable *variable =
      name ? (*found)->module->variables.find(name) : nullptr;
  if (!variable)
    return fail(Status::NotFound,
                formatv("expected a variable of the module, got '{0}'",
                        name ? name : ""));
  if (address)
    *address = variable->address;
  if (bytes)
    *bytes = variable->bytes;
  return Error::success();
}

ATTN_API int cuModuleLoadData(Handle *module, const void *image) {
  return call("cuModuleLoadData", [&](Platform &p) {
    return loadModule(p, module, image, /*isLibrary=*/false);
  });
}
ATTN_API int cuModuleLoadDataEx(Handle *module, const void *image, unsigned,
                                void *, void **) {
  return cuModuleLoadData(module, image);
}
ATTN_API int cuModuleLoadFatBinary(Handle *module, const void *image) {
  return cuModuleLoadData(module, image);
}
ATTN_API int cuModuleLoad(Handle *module, const char *path) {
  return call("cuModuleLoad", [&](Platform &p) -> Error {
    if (Error error = checkOutput(path))
      return error;
    Expected<std::string> image = readFile(path);
    if (!image)
      return fail(Status::FileNotFound, llvm::toString(image.takeError()));
    return loadModule(p, module, image->c_str(), /*isLibrary=*/false);
  });
}
ATTN_API int cuModuleUnload(Handle module) {
  return call("cuModuleUnload",
              [&](Platform &p) { return unloadModule(p, module); });
}
ATTN_API int cuModuleGetFunction(Handle *function, Handle module,
                                 const char *name) {
  return call("cuModuleGetFunction", [&](Platform &p) {
    return getFunction(p, function, module, name);
  });
}
ATTN_API int cuModuleGetGlobal_v2(Pointer *address, size_t *bytes,
                                  Handle module, const char *name) {
  return call("cuModuleGetGlobal", [&](Platform &p) {
    return getGlobal(p, address, bytes, module, name);
  });
}
/// CU_MODULE_EAGER_LOADING.
ATTN_API int cuModuleGetLoadingMode(int *mode) {
  return call("cuModuleGetLoadingMode", [&](Platform &) -> Error {
    if (Error error = checkOutput(mode))
      return error;
    *mode = 1;
    return Error::success();
  });
}

ATTN_API int cuLibraryLoadData(Handle *library, const void *image, void *,
                               void **, unsigned, void *, void **, unsigned) {
  return call("cuLibraryLoadData", [&](Platform &p) {
    return loadModule(p, library, image, /*isLibrary=*/true);
  });
}
ATTN_API int cuLibraryUnload(Handle library) {
  return call("cuLibraryUnload",
              [&](Platform &p) { return unloadModule(p, library); });
}
ATTN_API int cuLibraryGetKernel(Handle *kernel, Handle library,
                                const char *name) {
  return call("cuLibraryGetKernel", [&](Platform &p) {
    return getFunction(p, kernel, library, name);
  });
}
ATTN_API int cuLibraryGetModule(Handle *module, Handle library) {
  return call("cuLibraryGetModule", [&](Platform &p) -> Error {
    if (Error error = checkOutput(module))
      return error;
    *module = library;
    return p.modules.get(library).takeError();
  });
}
ATTN_API int cuLibraryGetGlobal(Pointer *address, size_t *bytes, Handle library,
                                const char *name) {
  return call("cuLibraryGetGlobal", [&](Platform &p) {
    return getGlobal(p, address, bytes, library, name);
  });
}
ATTN_API int cuKernelGetFunction(Handle *function, Handle kernel) {
  return call("cuKernelGetFunction", [&](Platform &p) -> Error {
    if (Error error = checkOutput(function))
      return error;
    *function = kernel;
    return p.functions.get(kernel).takeError();
  });
}

/// Attributes of functions, by their numbers in CUfunction_attribute.
enum FunctionAttribute {
  FunctionThreads = 0,
  FunctionStaticShared = 1,
  FunctionRegisters = 4,
  FunctionPtxVersion = 5,
  FunctionBinaryVersion = 6,
  FunctionDynamicShared = 8,
  FunctionClusterWidth = 11,
  FunctionLargeClusters = 14,
  FunctionMost = 15,
};

/// Registers of a thread where the kernel states no bound.
static constexpr unsigned kUsualRegisters = 32;

static Error readAttribute(Platform &p, int *value, int attribute,
                           Handle handle) {
  if (Error error = checkOutput(value))
    return error;
  Expected<LoadedFunction *> found = p.functions.get(handle);
  if (!found)
    return found.takeError();
  const device::Function &function = (*found)->function;
  const TargetRow &chip = (*p.getDevice((*found)->ordinal))->getChip();
  const sim::KernelInfo &kernel = *function.kernel;
  switch (attribute) {
  case FunctionThreads:
    *value = kernel.maxntid[0]
                 ? kernel.maxntid[0] * kernel.maxntid[1] * kernel.maxntid[2]
                 : chip.maxThreadsPerCTA;
    break;
  case FunctionStaticShared:
    *value = kernel.staticShared;
    break;
  case FunctionRegisters:
    *value = kernel.maxnreg ? kernel.maxnreg : kUsualRegisters;
    break;
  case FunctionPtxVersion:
  case FunctionBinaryVersion:
    *value = chip.computeCapability;
    break;
  case FunctionDynamicShared:
    *value = function.maxDynamicShared;
    break;
  case FunctionClusterWidth:
  case FunctionClusterWidth + 1:
  case FunctionClusterWidth + 2:
    *value = kernel.reqnctapercluster[attribute - FunctionClusterWidth];
    break;
  case FunctionLargeClusters:
    *value = function.allowsLargeClusters;
    break;
  default:
    *value = 0;
  }
  return Error::success();
}

static Error setAttribute(Platform &p, Handle handle, int attribute,
                          int value) {
  Expected<LoadedFunction *> found = p.functions.get(handle);
  if (!found)
    return found.takeError();
  device::Function &function = (*found)->function;
  const TargetRow &chip = (*p.getDevice((*found)->ordinal))->getChip();
  if (attribute == FunctionLargeClusters)
    function.allowsLargeClusters = value;
  // Programs ask for what only newer drivers have, and do without.
  if (attribute < 0 || attribute > FunctionMost)
    return fail(Status::InvalidValue,
                formatv("expected an attribute of a function up to {0}, got "
                        "{1}",
                        int(FunctionMost), attribute));
  if (attribute != FunctionDynamicShared)
    return Error::success();
  uint32_t most =
      chip.sharedBytesPerCTA -
      std::min(chip.sharedBytesPerCTA, function.kernel->staticShared);
  if (value < 0 || uint32_t(value) > most)
    return fail(Status::InvalidValue,
                formatv("kernel '{0}': expected at most {1} bytes of dynamic "
                        "shared memory beside {2} static ones on {3}, got {4}",
                        function.kernel->name, most,
                        function.kernel->staticShared, chip.chip, value));
  function.maxDynamicShared = value;
  return Error::success();
}

ATTN_API int cuFuncGetAttribute(int *value, int attribute, Handle function) {
  return call("cuFuncGetAttribute", [&](Platform &p) {
    return readAttribute(p, value, attribute, function);
  });
}
ATTN_API int cuFuncSetAttribute(Handle function, int attribute, int value) {
  return call("cuFuncSetAttribute", [&](Platform &p) {
    return setAttribute(p, function, attribute, value);
  });
}
ATTN_API int cuKernelGetAttribute(int *value, int attribute, Handle kernel,
                                  int) {
  return cuFuncGetAttribute(value, attribute, kernel);
}
ATTN_API int cuKernelSetAttribute(int attribute, int value, Handle kernel,
                                  int) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
ATTN_API int cuFuncSetCacheConfig(Handle function, int) {
  return call("cuFuncSetCacheConfig", [&](Platform &p) {
    return p.functions.get(function).takeError();
  });
}
ATTN_API int cuFuncGetModule(Handle *module, Handle function) {
  return call("cuFuncGetModule", [&](Platform &p) -> Error {
    if (Error error = checkOutput(module))
      return error;
    Expected<LoadedFunction *> found = p.functions.get(function);
    if (!found)
      return found.takeError();
    *module = (*found)->module;
    return Error::success();
  });
}
ATTN_API int cuFuncGetName(const char **name, Handle function) {
  return call("cuFuncGetName", [&](Platform &p) -> Error {
    if (Error error = checkOutput(name))
      return error;
    Expected<LoadedFunction *> found = p.functions.get(function);
    if (!found)
      return found.takeError();
    *name = (*found)->function.kernel->name.c_str();
    return Error::success();
  });
}
ATTN_API int cuFuncGetParamInfo(Handle function, size_t index, size_t *offset,
                                size_t *bytes) {
  return call("cuFuncGetParamInfo", [&](Platform &p) -> Error {
    Expected<LoadedFunction *> found = p.functions.get(function);
    if (!found)
      return found.takeError();
    const auto &params = (*found)->function.kernel->params;
    if (index >= params.size())
      return fail(Status::InvalidValue,
                  formatv("expected a parameter below {0}, got {1}",
                          params.size(), index));
    if (offset)
      *offset = params[index].offset;
    if (bytes)
      *bytes = params[index].size;
    return Error::success();
  });
}

/// Takes the parameters of a launch together, as the kernel lays them out.
static Error readParams(const sim::KernelInfo &kernel, void **params,
                        void **extra, std::vector<uint8_t> &bytes) {
  bytes.resize(kernel.paramBytes);
  if (params) {
    for (const sim::KernelParam &param : kernel.params) {
      const void *from = params[&param - kernel.params.data()];
      if (!from)
        return fail(Status::InvalidValue,
                    formatv("kernel '{0}': expected an address of parameter "
                            "'{1}', got null",
                            kernel.name, param.name));
      std::memcpy(&bytes[param.offset], from, param.size);
    }
    return Error::success();
  }
  const void *buffer = nullptr;
  size_t size = 0;
  for (; extra && uintptr_t(*extra) != ExtraEnd; extra += 2)
    if (uintptr_t(*extra) == ExtraBuffer)
      buffer = extra[1];
    else if (uintptr_t(*extra) == ExtraSize && extra[1])
      size = *static_cast<const size_t *>(extra[1]);
    else
      break;
  if (kernel.paramBytes && (!buffer || size < kernel.paramBytes))
    return fail(Status::InvalidValue,
                formatv("kernel '{0}': expected {1} bytes of parameters, got "
                        "{2}",
                        kernel.name, kernel.paramBytes, buffer ? size : 0));
  if (kernel.paramBytes)
    std::memcpy(bytes.data(), buffer, kernel.paramBytes);
  return Error::success();
}

static Error launch(Platform &p, LaunchRequest request, Handle function,
                    Handle stream, void **params, void **extra) {
  Expected<LoadedFunction *> found = p.functions.get(function);
  if (!found)
    return found.takeError();
  Expected<LoadedStream *> behind = p.getStream(stream);
  if (!behind)
    return behind.takeError();
  if ((*behind)->ordinal != (*found)->ordinal)
    return fail(Status::InvalidHandle,
                "expected a stream of the kernel's device, got another's");
  request.site = p.site;
  if (Error error =
          readParams(*(*found)->function.kernel, params, extra, request.params))
    return error;
  // A graph may run it when the function is gone.
  auto work = [request, function](device::Stream &in) mutable -> Error {
    Platform &p = Platform::get();
    Expected<LoadedFunction *> now = p.functions.get(function);
    if (!now)
      return now.takeError();
    request.function = &(*now)->function;
    return (*p.getDevice((*now)->ordinal))->launch(request, in);
  };
  return p.submit(**behind, work);
}

ATTN_API int cuLaunchKernelEx(const LaunchConfigC *config, Handle function,
                              void **params, void **extra) {
  return callWork("cuLaunchKernelEx", [&](Platform &p) -> Error {
    if (Error error = checkOutput(config))
      return error;
    LaunchRequest request;
    for (unsigned axis : {0, 1, 2}) {
      request.grid[axis] = config->grid[axis];
      request.block[axis] = config->block[axis];
    }
    request.dynamicShared = config->sharedBytes;
    for (unsigned i = 0; i < config->attributeCount && config->attributes;
         ++i) {
      const LaunchAttribute &attribute = config->attributes[i];
      if (attribute.id == AttributeCooperative)
        request.isCooperative = attribute.value[0];
      if (attribute.id == AttributeProgrammaticSerialization)
        request.isProgrammatic = attribute.value[0];
      if (attribute.id == AttributeClusterDimension)
        std::copy_n(attribute.value, 3, request.cluster.begin());
    }
    return launch(p, std::move(request), function, config->stream, params,
                  extra);
  });
}

static int launchPlain(const char *name, Handle function,
                       std::array<unsigned, 6> sizes, unsigned sharedBytes,
                       Handle stream, void **params, void **extra,
                       bool isCooperative) {
  return callWork(name, [&](Platform &p) {
    LaunchRequest request;
    std::copy_n(sizes.begin(), 3, request.grid.begin());
    std::copy_n(sizes.begin() + 3, 3, request.block.begin());
    request.dynamicShared = sharedBytes;
    request.isCooperative = isCooperative;
    return launch(p, std::move(request), function, stream, params, extra);
  });
}
ATTN_API int cuLaunchKernel(Handle function, unsigned gx, unsigned gy,
                            unsigned gz, unsigned bx, unsigned by, unsigned bz,
                            unsigned sharedBytes, Handle stream, void **params,
                            void **extra) {
  return launchPlain("cuLaunchKernel", function, {gx, gy, gz, bx, by, bz},
                     sharedBytes, stream, params, extra, false);
}
ATTN_API int cuLaunchCooperativeKernel(Handle function, unsigned gx,
                                       unsigned gy, unsigned gz, unsigned bx,
                                       unsigned by, unsigned bz,
                                       unsigned sharedBytes, Handle stream,
                                       void **params) {
  return launchPlain("cuLaunchCooperativeKernel", function,
                     {gx, gy, gz, bx, by, bz}, sharedBytes, stream, params,
                     nullptr, true);
}

ATTN_API int cuOccupancyMaxActiveClusters(int *count, Handle function,
                                          const LaunchConfigC *config) {
  return call("cuOccupancyMaxActiveClusters", [&](Platform &p) -> Error {
    if (!count || !config)
      return checkOutput(nullptr);
    Expected<LoadedFunction *> found = p.functions.get(function);
    if (!found)
      return found.takeError();
    unsigned ctas = 1;
    for (unsigned i = 0; i < config->attributeCount && config->attributes; ++i)
      if (config->attributes[i].id == AttributeClusterDimension)
        for (unsigned axis : {0, 1, 2})
          ctas *= std::max(1u, config->attributes[i].value[axis]);
    *count = (*p.getDevice((*found)->ordinal))->getChip().smCount /
             std::max(1u, ctas);
    return Error::success();
  });
}

ATTN_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *count,
                                                         Handle function,
                                                         int threads,
                                                         size_t shared) {
  return call("cuOccupancyMaxActiveBlocksPerMultiprocessor",
              [&](Platform &p) -> Error {
                if (Error error = checkOutput(count))
                  return error;
                Expected<LoadedFunction *> found = p.functions.get(function);
                if (!found)
                  return found.takeError();
                Device &device = **p.getDevice((*found)->ordinal);
                *count = device.countResident(
                    std::max(threads, 1),
                    shared + (*found)->function.kernel->staticShared);
                return Error::success();
              });
}
ATTN_API int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *count, Handle function, int threads, size_t shared, unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads,
                                                     shared);
}
