//===- Options.h - The options of an attention problem ----------*- C++ -*-===//
//
// What Options.def says, as data: for help texts, keys and generated code.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PROBLEM_OPTIONS_H
#define ATTN_PROBLEM_OPTIONS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include <cstdint>
#include <string>

namespace mlir::attn {

/// How the value of an option is written.
enum class OptionKind {
  /// Extents and an element type: 4x32x4096x128xf16.
  Shape,
  /// An extent, from 0 to 2^31 - 1.
  Size,
  /// A number from 1 to 2^31 - 1.
  Count,
  /// A number from 0 to 2^31 - 1.
  Natural,
  /// Where a diagonal lies; may stand without a value.
  Align,
  /// Two bounds, and where the diagonal lies.
  Window,
  /// A finite number that an f32 can hold.
  Factor,
  /// An element type.
  Type,
  /// An order of dimensions.
  Order,
  /// Lengths of sequences.
  Lengths,
  /// Numbers that an i32 holds, one for each sequence: 300,17,0.
  Numbers,
  /// There or not.
  Switch,
  /// A function in Python; no flag.
  Region
};

/// What a factor may be.
enum class FactorSign {
  /// Above zero; a problem that has none says 0.
  Positive,
  /// Anything but zero; a problem always has one.
  AnySign
};

/// The factor of a problem that states none.
constexpr double getDefaultFactor(FactorSign sign) {
  return sign == FactorSign::Positive ? 0 : 1;
}

/// The type that holds what was written.
template <OptionKind kind>
struct OptionValue {
  using type = std::string;
};
template <>
struct OptionValue<OptionKind::Size> {
  using type = int64_t;
};
template <>
struct OptionValue<OptionKind::Count> {
  using type = int64_t;
};
template <>
struct OptionValue<OptionKind::Natural> {
  using type = int64_t;
};
template <>
struct OptionValue<OptionKind::Switch> {
  using type = bool;
};

/// A row of Options.def.
struct OptionRow {
  OptionKind kind;
  /// With underscores, as in IR, JSON and Python.
  llvm::StringLiteral name;
  /// What stands for its value in a help text; empty for a switch.
  llvm::StringLiteral value;
  /// Numbers of docs/spec.md with blanks between them.
  llvm::StringLiteral constraints;
  /// One sentence without full stop, about the flag.
  llvm::StringLiteral doc;
  /// A field of this name stands in the problem of launch records: the number
  /// of a factor, whether others are there.
  bool isRecorded = false;
  /// A switch that is on unless it is written otherwise.
  bool isOn = false;
  /// Of a factor.
  FactorSign sign = FactorSign::Positive;

  /// The flag without the dashes in front: kv-heads.
  std::string getFlag() const;
};

/// The name of a kind in lower case.
llvm::StringRef stringifyOptionKind(OptionKind kind);

/// All options, regions too, in the order in which help texts have them.
llvm::ArrayRef<OptionRow> getProblemOptions();

/// The options as an array of objects with name, flag (null for a region),
/// kind, value, default (of a switch), sign (of a factor: positive or any),
/// recorded, constraints and doc.
llvm::json::Value describeOptions();

} // namespace mlir::attn

#endif // ATTN_PROBLEM_OPTIONS_H
