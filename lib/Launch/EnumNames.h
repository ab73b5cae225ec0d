//===- EnumNames.h - Names that stand for enumerators -----------*- C++ -*-===//

#ifndef ATTN_LIB_LAUNCH_ENUMNAMES_H
#define ATTN_LIB_LAUNCH_ENUMNAMES_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <utility>

namespace mlir::attn {

/// An enumerator and its name.
template <typename T>
using NameEntry = std::pair<T, llvm::StringLiteral>;

/// The name of `value`; every enumerator has one.
template <typename T, size_t N>
llvm::StringRef getName(const NameEntry<T> (&names)[N], T value) {
  for (const NameEntry<T> &entry : names)
    if (entry.first == value)
      return entry.second;
  return "";
}

/// The enumerator called `name`.
template <typename T>
std::optional<T> findByName(llvm::ArrayRef<NameEntry<T>> names,
                            llvm::StringRef name) {
  for (const NameEntry<T> &entry : names)
    if (entry.second == name)
      return entry.first;
  return std::nullopt;
}

} // namespace mlir::attn

#endif // ATTN_LIB_LAUNCH_ENUMNAMES_H
