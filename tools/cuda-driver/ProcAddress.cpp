//===- ProcAddress.cpp - Functions by name, and own ones ------------------===//
//
// Programs ask for functions by name, hundreds at once. Those that the stand-in
// lacks are there all the same: they fail, and say their name.
//
//===----------------------------------------------------------------------===//

#include "Platform.h"
#include <array>
#include <dlfcn.h>
#include <utility>

using namespace cuda;
using llvm::formatv;
using llvm::StringRef;
using mlir::attn::device::ReportForm;

namespace {

constexpr size_t kMostMissing = 1024;
std::array<std::string, kMostMissing> missingNames;

int failByName(const std::string &name) {
  return call("missing function", [&](Platform &p) -> Error {
    p.noteOnce(name + " is not part of the stand-in driver");
    return fail(Status::NotSupported,
                "expected a function of the stand-in driver, got '" + name +
                    "'");
  });
}

// Nothing but the call: it is compiled once for each number.
template <size_t Index>
int failMissing() {
  return failByName(missingNames[Index]);
}

template <size_t... Index>
constexpr std::array<int (*)(), sizeof...(Index)>
listFailing(std::index_sequence<Index...>) {
  return {failMissing<Index>...};
}
constexpr auto failing = listFailing(std::make_index_sequence<kMostMissing>());

/// A function of this library by its name without a version.
void *findOwn(StringRef name) {
  static void *self = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void *>(&findOwn), &info);
    return dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  }();
  for (const char *version : {"_v4", "_v3", "_v2", ""})
    if (void *found = dlsym(self, (name + version).str().c_str()))
      return found;
  return nullptr;
}

} // namespace

/// CUdriverProcAddressQueryResult.
enum QueryResult { QueryFound = 0, QueryNotFound = 1 };

ATTN_API int cuGetProcAddress_v2(const char *symbol, void **function, int,
                                 uint64_t, int *result) {
  return call(
      "cuGetProcAddress",
      [&](Platform &) -> Error {
        if (!symbol || !function)
          return checkOutput(nullptr);
        *function = findOwn(symbol);
        if (!*function && StringRef(symbol).starts_with("cu")) {
          static size_t count = 0;
          size_t at = 0;
          while (at < count && missingNames[at] != symbol)
            ++at;
          if (at < kMostMissing) {
            if (at == count)
              missingNames[count++] = symbol;
            *function = reinterpret_cast<void *>(failing[at]);
          }
        }
        if (result)
          *result = *function ? QueryFound : QueryNotFound;
        return *function ? Error::success()
                         : fail(Status::NotFound,
                                StringRef("expected a function of the driver, "
                                          "got '") +
                                    symbol + "'");
      },
      /*needsStart=*/false);
}
ATTN_API int cuGetProcAddress(const char *symbol, void **function, int version,
                              uint64_t flags) {
  return cuGetProcAddress_v2(symbol, function, version, flags, nullptr);
}

/// Tables of functions that have no names. A program that needs one is out of
/// reach: who asks is said, since the CUDA runtime makes a bare number of the
/// error.
ATTN_API int cuGetExportTable(const void **table, const void *) {
  const void *caller = __builtin_return_address(0);
  return call(
      "cuGetExportTable",
      [&](Platform &p) -> Error {
        if (table)
          *table = nullptr;
        Dl_info info = {};
        dladdr(caller, &info);
        p.noteOnce(
            formatv(
                "'{0}' asks for a private table, which only a real driver "
                "has: what goes through the CUDA runtime, such as CuPy's "
                "arrays, cuBLAS and torch's tensors on \"cuda\", fails here",
                info.dli_fname ? info.dli_fname : "a program")
                .str());
        return fail(Status::NotFound,
                    "expected a table that the stand-in driver has, got a "
                    "private one of the CUDA runtime");
      },
      /*needsStart=*/false);
}

// These the stand-in has beside the driver's interface, for Python.

/// Says in which line of the caller's what comes next is, for reports; null
/// ends that.
ATTN_API int attnSimSetSite(const char *site) {
  return call(
      "attnSimSetSite",
      [&](Platform &p) {
        p.site = site ? site : "";
        return Error::success();
      },
      /*needsStart=*/false);
}

/// Lets kernels of the current device use memory of the host, where it is.
ATTN_API int attnSimRegister(const void *pointer, size_t bytes,
                             const char *name) {
  return call("attnSimRegister", [&](Platform &p) -> Error {
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    return (*device)->getMemory().registerHost(
        reinterpret_cast<uint64_t>(pointer), bytes, name ? name : "");
  });
}
ATTN_API int attnSimUnregister(const void *pointer) {
  return call("attnSimUnregister", [&](Platform &p) -> Error {
    Expected<Device *> device = p.getCurrent();
    if (!device)
      return device.takeError();
    return (*device)->getMemory().unregisterHost(
        reinterpret_cast<uint64_t>(pointer));
  });
}

/// Says whether findings are not to be printed as they come.
ATTN_API int attnSimSetQuiet(int isQuiet) {
  return call(
      "attnSimSetQuiet",
      [&](Platform &p) {
        p.settings.isQuiet = isQuiet;
        return Error::success();
      },
      /*needsStart=*/false);
}

/// Counts findings: all, and those that are errors.
ATTN_API int attnSimCountFindings(uint64_t *all, uint64_t *errors) {
  return call("attnSimCountFindings", [&](Platform &p) -> Error {
    if (!all || !errors)
      return checkOutput(nullptr);
    *all = p.getLog().getFindings().size();
    *errors = p.getLog().count();
    return Error::success();
  });
}

/// Gives the report of findings from the `from`-th on, in the form of that
/// name, to `take`.
ATTN_API int attnSimReport(const char *form, uint64_t from,
                           void (*take)(const char *text, size_t bytes,
                                        void *data),
                           void *data) {
  return call("attnSimReport", [&](Platform &p) -> Error {
    if (!form || !take)
      return checkOutput(nullptr);
    Expected<ReportForm> parsed = mlir::attn::device::parseReportForm(form);
    if (!parsed)
      return fail(Status::InvalidValue, llvm::toString(parsed.takeError()));
    std::string text;
    llvm::raw_string_ostream os(text);
    p.getLog().print(os, *parsed, from);
    take(text.data(), text.size(), data);
    return Error::success();
  });
}
