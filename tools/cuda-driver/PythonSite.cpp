//===- PythonSite.cpp - The line of Python that calls ---------------------===//
//
// The process may have an interpreter, of any version: its functions are looked
// up by name, and only those of the stable interface are used.
//
//===----------------------------------------------------------------------===//

#include "PythonSite.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/FormatVariadic.h"
#include <dlfcn.h>

namespace {

/// The interpreter, as far as it is used.
struct Interpreter {
  int (*isInitialized)() = nullptr;
  void *(*getThreadState)() = nullptr;
  int (*ensure)() = nullptr;
  void (*release)(int) = nullptr;
  void *(*getFrame)() = nullptr;
  void *(*getBack)(void *) = nullptr;
  void *(*getCode)(void *) = nullptr;
  int (*getLine)(void *) = nullptr;
  void *(*getAttribute)(void *, const char *) = nullptr;
  const char *(*asText)(void *) = nullptr;
  void (*retain)(void *) = nullptr;
  void (*drop)(void *) = nullptr;
  void (*takeError)(void **, void **, void **) = nullptr;
  void (*giveError)(void *, void *, void *) = nullptr;
  bool isHere = true;

  Interpreter() {
    find(isInitialized, "Py_IsInitialized");
    find(getThreadState, "PyGILState_GetThisThreadState");
    find(ensure, "PyGILState_Ensure");
    find(release, "PyGILState_Release");
    find(getFrame, "PyEval_GetFrame");
    find(getBack, "PyFrame_GetBack");
    find(getCode, "PyFrame_GetCode");
    find(getLine, "PyFrame_GetLineNumber");
    find(getAttribute, "PyObject_GetAttrString");
    find(asText, "PyUnicode_AsUTF8");
    find(retain, "Py_IncRef");
    find(drop, "Py_DecRef");
    find(takeError, "PyErr_Fetch");
    find(giveError, "PyErr_Restore");
  }

  /// The file of a frame; empty where it has none.
  std::string getFile(void *frame) const {
    void *code = getCode(frame);
    void *name = getAttribute(code, "co_filename");
    const char *text = name ? asText(name) : nullptr;
    std::string file = text ? text : "";
    if (name)
      drop(name);
    drop(code);
    return file;
  }

private:
  template <typename Fn>
  void find(Fn &function, const char *name) {
    function = reinterpret_cast<Fn>(dlsym(RTLD_DEFAULT, name));
    isHere &= function != nullptr;
  }
};

} // namespace

/// Returns true for a file of an installed package, and for none.
static bool isOfPackage(llvm::StringRef file) {
  return file.empty() || file.starts_with("<frozen") ||
         llvm::any_of(
             llvm::ArrayRef<llvm::StringRef>{
                 "/site-packages/", "/dist-packages/", "/lib/python3",
                 "/attn/sim/", "/attn/launch/", "/attn/runtime.py"},
             [&](llvm::StringRef part) { return file.contains(part); });
}

std::string cuda::findPythonSite() {
  static const Interpreter python;
  if (!python.isHere || !python.isInitialized() || !python.getThreadState())
    return "";
  int state = python.ensure();
  std::string nearest;
  // An exception that is on its way stays, and none of ours does.
  void *error[3] = {};
  python.takeError(&error[0], &error[1], &error[2]);
  void *frame = python.getFrame();
  if (frame)
    python.retain(frame);
  while (frame) {
    std::string file = python.getFile(frame);
    bool isSite = !isOfPackage(file);
    if (isSite || nearest.empty())
      nearest = llvm::formatv("{0}:{1}", file, python.getLine(frame));
    void *back = isSite ? nullptr : python.getBack(frame);
    python.drop(frame);
    frame = back;
  }
  python.giveError(error[0], error[1], error[2]);
  python.release(state);
  return nearest;
}
