//===- RuntimeCalls.cpp - What CuTe DSL's host code calls -----------------===//
//
// CuTe DSL compiles a kernel's launch to host code, which calls functions of a
// runtime library that the variable CUTE_DSL_LIBS names: functions of the CUDA
// runtime with an underscore in front. Here they are the driver's: numbers of
// attributes and errors are the same, and the first device's primary context is
// taken where a thread has none.
//
//===----------------------------------------------------------------------===//

#include "Platform.h"

extern "C" {
int cuInit(unsigned);
int cuDeviceGetCount(int *);
int cuDeviceGetAttribute(int *, int, int);
int cuDevicePrimaryCtxRetain(Handle *, int);
int cuCtxGetCurrent(Handle *);
int cuCtxSetCurrent(Handle);
int cuCtxGetDevice(int *);
int cuCtxSynchronize();
int cuLibraryLoadData(Handle *, const void *, void *, void **, unsigned, void *,
                      void **, unsigned);
int cuLibraryUnload(Handle);
int cuLibraryGetKernel(Handle *, Handle, const char *);
int cuLibraryGetGlobal(Pointer *, size_t *, Handle, const char *);
int cuFuncSetAttribute(Handle, int, int);
int cuKernelGetAttribute(int *, int, Handle, int);
int cuKernelSetAttribute(int, int, Handle, int);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned,
                   unsigned, unsigned, Handle, void **, void **);
int cuLaunchKernelEx(const LaunchConfigC *, Handle, void **, void **);
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *, Handle, int, size_t);
int cuMemAlloc_v2(Pointer *, size_t);
int cuMemAllocAsync(Pointer *, size_t, Handle);
int cuMemFree_v2(Pointer);
int cuMemFreeAsync(Pointer, Handle);
int cuMemcpy(Pointer, Pointer, size_t);
int cuMemcpyAsync(Pointer, Pointer, size_t, Handle);
int cuMemsetD8_v2(Pointer, unsigned char, size_t);
int cuMemsetD8Async(Pointer, unsigned char, size_t, Handle);
int cuStreamSynchronize(Handle);
int cuTensorMapEncodeTiled(void *, int, unsigned, void *, const uint64_t *,
                           const uint64_t *, const unsigned *, const unsigned *,
                           int, int, int, int);
}

/// Gives the calling thread the first device's primary context, as the CUDA
/// runtime does, if it has none.
static int takeContext() {
  if (int status = cuInit(0))
    return status;
  Handle context = nullptr;
  if (int status = cuCtxGetCurrent(&context))
    return status;
  if (context)
    return 0;
  if (int status = cuDevicePrimaryCtxRetain(&context, 0))
    return status;
  return cuCtxSetCurrent(context);
}

/// Calls a function of the driver in a context.
template <typename Function, typename... Arguments>
static int callDriver(Function *function, Arguments... arguments) {
  int status = takeContext();
  return status ? status : function(arguments...);
}

static Pointer toPointer(const void *address) {
  return reinterpret_cast<Pointer>(address);
}

ATTN_API int _cudaGetDeviceCount(int *count) {
  return callDriver(cuDeviceGetCount, count);
}
ATTN_API int _cudaGetDevice(int *device) {
  return callDriver(cuCtxGetDevice, device);
}
ATTN_API int _cudaSetDevice(int device) {
  Handle context = nullptr;
  if (int status = callDriver(cuDevicePrimaryCtxRetain, &context, device))
    return status;
  return cuCtxSetCurrent(context);
}
ATTN_API int _cudaDeviceGetAttribute(int *value, int attribute, int device) {
  return callDriver(cuDeviceGetAttribute, value, attribute, device);
}
ATTN_API int _cudaDeviceSynchronize() { return callDriver(cuCtxSynchronize); }
ATTN_API int _cudaStreamSynchronize(Handle stream) {
  return callDriver(cuStreamSynchronize, stream);
}

ATTN_API int _cudaLibraryLoadData(Handle *library, const void *code,
                                  void *options, void **values, unsigned count,
                                  void *libraryOptions, void **libraryValues,
                                  unsigned libraryCount) {
  return callDriver(cuLibraryLoadData, library, code, options, values, count,
                    libraryOptions, libraryValues, libraryCount);
}
ATTN_API int _cudaLibraryUnload(Handle library) {
  return callDriver(cuLibraryUnload, library);
}
ATTN_API int _cudaLibraryGetKernel(Handle *kernel, Handle library,
                                   const char *name) {
  return callDriver(cuLibraryGetKernel, kernel, library, name);
}
ATTN_API int _cudaLibraryGetGlobal(void **address, size_t *bytes,
                                   Handle library, const char *name) {
  return callDriver(cuLibraryGetGlobal, reinterpret_cast<Pointer *>(address),
                    bytes, library, name);
}
ATTN_API int _cudaFuncSetAttribute(Handle function, int attribute, int value) {
  return callDriver(cuFuncSetAttribute, function, attribute, value);
}
ATTN_API int _cudaKernelSetAttributeForDevice(Handle kernel, int attribute,
                                              int value, int device) {
  return callDriver(cuKernelSetAttribute, attribute, value, kernel, device);
}
ATTN_API int _cuKernelGetAttribute(int *value, int attribute, Handle kernel,
                                   int device) {
  return callDriver(cuKernelGetAttribute, value, attribute, kernel, device);
}

/// The configurations of the runtime and of the driver are laid out alike.
ATTN_API int _cudaLaunchKernelEx(const LaunchConfigC *config, Handle function,
                                 void **arguments) {
  return callDriver(cuLaunchKernelEx, config, function, arguments,
                    static_cast<void **>(nullptr));
}
ATTN_API int _cudaLaunchKernel(Handle function, unsigned gridX, unsigned gridY,
                               unsigned gridZ, unsigned blockX, unsigned blockY,
                               unsigned blockZ, void **arguments, size_t shared,
                               Handle stream) {
  return callDriver(cuLaunchKernel, function, gridX, gridY, gridZ, blockX,
                    blockY, blockZ, static_cast<unsigned>(shared), stream,
                    arguments, static_cast<void **>(nullptr));
}
ATTN_API int _cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *count,
                                                            Handle function,
                                                            int threads,
                                                            size_t shared) {
  return callDriver(cuOccupancyMaxActiveBlocksPerMultiprocessor, count,
                    function, threads, shared);
}
ATTN_API int
_cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                        const uint64_t *dims, const uint64_t *strides,
                        const unsigned *box, const unsigned *elementStrides,
                        int interleave, int swizzle, int promotion, int fill) {
  return cuTensorMapEncodeTiled(map, type, rank, address, dims, strides, box,
                                elementStrides, interleave, swizzle, promotion,
                                fill);
}

ATTN_API int _cudaMalloc(void **address, size_t bytes) {
  return callDriver(cuMemAlloc_v2, reinterpret_cast<Pointer *>(address), bytes);
}
ATTN_API int _cudaMallocAsync(void **address, size_t bytes, Handle stream) {
  return callDriver(cuMemAllocAsync, reinterpret_cast<Pointer *>(address),
                    bytes, stream);
}
ATTN_API int _cudaFree(void *address) {
  return callDriver(cuMemFree_v2, toPointer(address));
}
ATTN_API int _cudaFreeAsync(void *address, Handle stream) {
  return callDriver(cuMemFreeAsync, toPointer(address), stream);
}
/// Copies between any two places: the driver knows what memory they are in.
ATTN_API int _cudaMemcpy(void *target, const void *source, size_t bytes, int) {
  return callDriver(cuMemcpy, toPointer(target), toPointer(source), bytes);
}
ATTN_API int _cudaMemcpyAsync(void *target, const void *source, size_t bytes,
                              int, Handle stream) {
  return callDriver(cuMemcpyAsync, toPointer(target), toPointer(source), bytes,
                    stream);
}
ATTN_API int _cudaMemset(void *target, int value, size_t bytes) {
  return callDriver(cuMemsetD8_v2, toPointer(target),
                    static_cast<unsigned char>(value), bytes);
}
ATTN_API int _cudaMemsetAsync(void *target, int value, size_t bytes,
                              Handle stream) {
  return callDriver(cuMemsetD8Async, toPointer(target),
                    static_cast<unsigned char>(value), bytes, stream);
}
