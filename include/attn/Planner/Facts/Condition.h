//===- Condition.h - What a row of a data file asks of a value --*- C++ -*-===//
//
// Rows of data files hold for classes of problems and plans. Each of their
// fields is a condition on one value:
//
//   8, "exact", true        this value
//   ">= 64", "<= 64", "> 64", "< 64", "!= 64", "!= exact"
//   [64, 128]               from 64 to 128
//   "any"                   every value
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PLANNER_FACTS_CONDITION_H
#define ATTN_PLANNER_FACTS_CONDITION_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <string>

namespace mlir::attn {

/// Holds for some values of one field.
class Condition {
public:
  /// Reads a condition. An error says what was expected and what was found.
  static llvm::Expected<Condition> parse(const llvm::json::Value &value);

  /// Returns true if the condition holds for a number.
  bool holds(int64_t number) const;
  /// Returns true if it holds for a text, which may be a number or a bool.
  bool holds(llvm::StringRef text) const;

  /// Returns true if some number or text fulfils both conditions.
  bool overlaps(const Condition &other) const;

private:
  enum class Kind { Any, Range, Text, NotText, NotNumber };
  Kind kind = Kind::Any;
  int64_t least = 0, most = 0;
  std::string text;
};

} // namespace mlir::attn

#endif // ATTN_PLANNER_FACTS_CONDITION_H
