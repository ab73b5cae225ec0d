//===- PlanParameters.h - Parameters of plans by name -----------*- C++ -*-===//
//
// What PlanBase.td makes of the parameters of a plan's attribute: a struct
// whose fields can be listed, read as text and set by name. Nothing else knows
// which parameters a plan has.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_PLANPARAMETERS_H
#define ATTN_DIALECT_ATTN_IR_PLANPARAMETERS_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace mlir::attn {

/// A parameter of a plan as text, such as `--set` gives it.
struct PlanParameter {
  llvm::StringRef name;
  llvm::StringRef value;
};

/// One parameter of a plan, for people to read.
struct PlanParameterInfo {
  llvm::StringRef name;
  /// What its value has to be: "an integer", "one of exact, threshold".
  std::string values;
  /// Its value in the plan that was asked, as IR prints it.
  std::string value;
  /// What it decides, without a final full stop.
  llvm::StringRef doc;
};

/// A name that a parameter had in earlier versions.
struct RenamedParameter {
  llvm::StringRef was, is;
};

/// What messages about a plan's parameters say beside them.
struct PlanSyntax {
  llvm::StringRef schedule;
  llvm::SmallVector<RenamedParameter, 1> renamed;
};

/// How text stands for values of the type `T`: integers, booleans, and
/// enumerations of ODS.
template <typename T>
struct PlanValue {
  static_assert(std::is_enum_v<T>, "expected an enumeration of ODS");
  static std::optional<T> read(llvm::StringRef text) {
    for (uint32_t i = 0; !stringifyEnum(static_cast<T>(i)).empty(); ++i)
      if (stringifyEnum(static_cast<T>(i)) == text)
        return static_cast<T>(i);
    return std::nullopt;
  }
  static std::string print(T value) { return stringifyEnum(value).str(); }
  static std::string getExpected() {
    std::string text = "one of ";
    for (uint32_t i = 0; !stringifyEnum(static_cast<T>(i)).empty(); ++i)
      text += (i ? ", " : "") + print(static_cast<T>(i));
    return text;
  }
};

template <>
struct PlanValue<int64_t> {
  static std::optional<int64_t> read(llvm::StringRef text) {
    int64_t value;
    if (text.getAsInteger(10, value))
      return std::nullopt;
    return value;
  }
  static std::string print(int64_t value) { return std::to_string(value); }
  static std::string getExpected() { return "an integer"; }
};

template <>
struct PlanValue<bool> {
  static std::optional<bool> read(llvm::StringRef text) {
    if (text != "true" && text != "false")
      return std::nullopt;
    return text == "true";
  }
  static std::string print(bool value) { return value ? "true" : "false"; }
  static std::string getExpected() { return "true or false"; }
};

/// Text that is checked with the whole plan.
template <>
struct PlanValue<std::string> {
  static std::optional<std::string> read(llvm::StringRef text) {
    return text.str();
  }
  static std::string print(const std::string &value) { return value; }
  static std::string getExpected() { return "a name"; }
};

/// A field of the struct of a plan's parameters, whatever its type.
class PlanField {
public:
  /// `name` and `doc` are literals; `value` outlives the field.
  template <typename T>
  static PlanField get(llvm::StringRef name, llvm::StringRef doc, T &value) {
    PlanField field;
    field.name = name;
    field.doc = doc;
    field.value = &value;
    field.readFn = [](llvm::StringRef text, void *to) {
      std::optional<T> read = PlanValue<T>::read(text);
      if (read)
        *static_cast<T *>(to) = *read;
      return read.has_value();
    };
    field.printFn = [](const void *from) {
      return PlanValue<T>::print(*static_cast<const T *>(from));
    };
    field.expectedFn = PlanValue<T>::getExpected;
    return field;
  }

  llvm::StringRef getName() const { return name; }
  llvm::StringRef getDoc() const { return doc; }
  /// The value as IR prints it.
  std::string print() const { return printFn(value); }
  /// What the value has to be, in words.
  std::string getExpected() const { return expectedFn(); }
  /// Replaces the value; false if `text` is none, and then it stays.
  bool read(llvm::StringRef text) { return readFn(text, value); }

private:
  llvm::StringRef name, doc;
  void *value = nullptr;
  bool (*readFn)(llvm::StringRef, void *) = nullptr;
  std::string (*printFn)(const void *) = nullptr;
  std::string (*expectedFn)() = nullptr;
};

/// Names, values and documentation of the fields.
std::vector<PlanParameterInfo>
describePlanFields(llvm::ArrayRef<PlanField> fields);

/// Replaces the fields that `parameters` name. An unknown name is an error that
/// lists the known ones, or says the new one of a former one; a wrong value one
/// that says what it has to be.
LogicalResult setPlanFields(llvm::function_ref<InFlightDiagnostic()> emitError,
                            const PlanSyntax &syntax,
                            llvm::MutableArrayRef<PlanField> fields,
                            llvm::ArrayRef<PlanParameter> parameters);

/// Success if a kernel can be called `name`: letters, digits and underscores,
/// the first one no digit.
LogicalResult
verifyKernelName(llvm::function_ref<InFlightDiagnostic()> emitError,
                 llvm::StringRef name);

/// Parses `<name = value, ...>` in any order, with the errors of setPlanFields;
/// a name that comes twice is another one.
LogicalResult parsePlanFields(AsmParser &parser, const PlanSyntax &syntax,
                              llvm::MutableArrayRef<PlanField> fields);

/// Prints `<name = value, ...>` of the fields that differ from `defaults`.
void printPlanFields(AsmPrinter &printer, llvm::ArrayRef<PlanField> fields,
                     llvm::ArrayRef<PlanField> defaults);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_PLANPARAMETERS_H
