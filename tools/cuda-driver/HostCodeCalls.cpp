//===- HostCodeCalls.cpp - What compiled launches call beside CUDA --------===//
//
// Host code that CuTe DSL compiles calls a few functions that CUDA has not got:
// they name and show errors, and load a module at the first call of a function
// that TVM FFI knows. Names and arguments are those that the Python part of
// nvidia-cutlass-dsl declares where it generates the calls.
//
//===----------------------------------------------------------------------===//

#include "Abi.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>
#include <mutex>
#include <string>

extern "C" {
int cuGetErrorName(int, const char **);
int cuGetErrorString(int, const char **);
int _cudaGetDeviceCount(int *);
int _cudaLibraryUnload(Handle);
}

/// Returns the name of an error, and what is known of its cause.
static std::pair<const char *, const char *> describe(int status) {
  const char *name = nullptr, *text = nullptr;
  cuGetErrorName(status, &name);
  cuGetErrorString(status, &text);
  return {name ? name : "unknown", text ? text : ""};
}

ATTN_API const char *cuda_dialect_get_error_name(int status) {
  return describe(status).first;
}

/// Shows an error on standard error. Returns whether it is one.
static bool showError(int status) {
  if (status == 0)
    return false;
  auto [name, text] = describe(status);
  llvm::errs() << "attn: " << name << ": " << text << '\n';
  return true;
}

ATTN_API void cuda_dialect_print_on_error(int status) { showError(status); }

/// Ends the process at an error: host code has no way to go on.
ATTN_API void cuda_dialect_assert_success(int status) {
  if (showError(status))
    std::abort();
}

//===----------------------------------------------------------------------===//
// TVM FFI
//===----------------------------------------------------------------------===//

/// TVMFFIErrorSetRaisedFromCStr and TVMFFIErrorSetRaisedFromCStrParts, which
/// host code hands in: the stand-in does not link to TVM FFI.
using SetError = void (*)(const char *kind, const char *message);
using SetErrorParts = void (*)(const char *kind, const char **parts, int count);

/// Functions of the host code, which return errors: one loads the module's
/// library, the other one looks the library's kernels up for a device.
using Load = int (*)(Handle *library);
using LoadToDevice = int (*)(Handle *library, int device);

/// The class of errors in Python, which reads the code from its message.
static constexpr char kErrorKind[] = "CUDADialectError";

static std::string describeToPython(int status) {
  auto [name, text] = describe(status);
  return "CUDA Error Code: " + std::to_string(status) + "\n" + name + ": " +
         text;
}

ATTN_API void CuteDSLRT_TVMFFISetRaisedCudaError(SetErrorParts set,
                                                 int status) {
  std::string message = describeToPython(status);
  const char *parts[] = {message.c_str()};
  set(kErrorKind, parts, 1);
}

/// Loads a module's library, and its kernels for each device.
static int loadLibrary(Handle *library, Load load, LoadToDevice loadToDevice) {
  int status = load(library), count = 0;
  if (!status)
    status = _cudaGetDeviceCount(&count);
  for (int device = 0; device < count && !status; ++device)
    status = loadToDevice(library, device);
  return status;
}

/// Libraries are loaded and dropped by one thread at a time.
static std::mutex libraries;

/// Loads the library of a module that `state` does not have yet. Returns 0, or
/// -1 where the error is set for Python.
ATTN_API int cuda_dialect_init_library_once(Handle *state, Load load,
                                            LoadToDevice loadToDevice,
                                            SetError set) {
  std::lock_guard<std::mutex> lock(libraries);
  if (*state)
    return 0;
  Handle library = nullptr;
  if (int status = loadLibrary(&library, load, loadToDevice)) {
    set(kErrorKind, describeToPython(status).c_str());
    if (library)
      _cudaLibraryUnload(library);
    return -1;
  }
  *state = library;
  return 0;
}

ATTN_API void cuda_dialect_unload_library_once(Handle *state) {
  std::lock_guard<std::mutex> lock(libraries);
  if (*state)
    _cudaLibraryUnload(*state);
  *state = nullptr;
}
