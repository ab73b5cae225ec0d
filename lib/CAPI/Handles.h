//===- Handles.h - Objects that the C interface hands out -------*- C++ -*-===//
//
// Every call says of its object whether it is one: NULL and what was destroyed
// are none, so that a mistake of a binding is a refused call and no crash. An
// address that a later object has again cannot be told from it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_CAPI_HANDLES_H
#define ATTN_LIB_CAPI_HANDLES_H

#include "llvm/ADT/DenseSet.h"
#include <mutex>

namespace mlir::attn {

/// The objects of one type that were made and not destroyed.
template <typename T>
class Handles {
public:
  static T *make() {
    auto *object = new T;
    std::lock_guard<std::mutex> lock(get().mutex);
    get().live.insert(object);
    return object;
  }

  static void destroy(T *object) {
    {
      std::lock_guard<std::mutex> lock(get().mutex);
      if (!get().live.erase(object))
        return;
    }
    delete object;
  }

  /// The object, or null where there is none.
  template <typename U>
  static U *find(U *object) {
    std::lock_guard<std::mutex> lock(get().mutex);
    return get().live.contains(object) ? object : nullptr;
  }

  /// The object, or an empty one where there is none.
  static const T &read(const T *object) {
    static const T none;
    const T *found = find(object);
    return found ? *found : none;
  }

private:
  static Handles &get() {
    // Never destroyed: a program may end while a thread is in a call.
    static auto *handles = new Handles;
    return *handles;
  }

  std::mutex mutex;
  llvm::DenseSet<const T *> live;
};

} // namespace mlir::attn

#endif // ATTN_LIB_CAPI_HANDLES_H
