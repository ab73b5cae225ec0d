//===- HandleTable.h - Objects by numbers that are never used again -*- C++
//-*-//

#ifndef ATTN_TOOLS_CUDA_DRIVER_HANDLETABLE_H
#define ATTN_TOOLS_CUDA_DRIVER_HANDLETABLE_H

#include "Abi.h"
#include "attn/Device/Status.h"
#include "llvm/Support/FormatVariadic.h"
#include <map>
#include <memory>

/// Gives programs numbers for objects, which look like pointers that nobody can
/// follow. A number that was dropped, or is another table's, is an error.
template <typename T>
class HandleTable {
public:
  /// `tag` tells tables apart, `what` is the word for their objects.
  HandleTable(unsigned tag, const char *what)
      : base(uint64_t(0x5a00 + tag) << 32), what(what) {}

  Handle add(T object) {
    uint64_t number = base + 16 * ++count;
    objects[number] = std::make_unique<T>(std::move(object));
    return reinterpret_cast<Handle>(number);
  }
  T *find(Handle handle) const {
    auto it = objects.find(reinterpret_cast<uint64_t>(handle));
    return it == objects.end() ? nullptr : it->second.get();
  }
  llvm::Expected<T *> get(Handle handle) const {
    if (T *object = find(handle))
      return object;
    uint64_t number = reinterpret_cast<uint64_t>(handle);
    const char *state =
        number > base && number <= base + 16 * count && number % 16 == 0
            ? " that was destroyed"
            : "";
    return mlir::attn::device::fail(
        mlir::attn::device::Status::InvalidHandle,
        llvm::formatv("expected a {0}, got handle {1:x}{2}", what, number,
                      state));
  }
  bool drop(Handle handle) {
    return objects.erase(reinterpret_cast<uint64_t>(handle));
  }
  auto begin() const { return objects.begin(); }
  auto end() const { return objects.end(); }

private:
  uint64_t base, count = 0;
  const char *what;
  std::map<uint64_t, std::unique_ptr<T>> objects;
};

#endif // ATTN_TOOLS_CUDA_DRIVER_HANDLETABLE_H
