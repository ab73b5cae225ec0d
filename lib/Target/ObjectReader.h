//===- ObjectReader.h - Strict reading of JSON objects ----------*- C++ -*-===//
//
// Reads JSON field by field. The first problem is kept with the path of its
// field; later reads then do nothing, so that the code reads straight through.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_TARGET_OBJECTREADER_H
#define ATTN_LIB_TARGET_OBJECTREADER_H

#include "EnumNames.h"
#include "attn/Target/SizeExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include <cmath>
#include <optional>
#include <string>

namespace mlir::attn {

/// How a value reads in a message: its text, cut to a line's length.
inline std::string describeValue(const llvm::json::Value &value) {
  if (value.kind() == llvm::json::Value::Object)
    return "an object";
  if (value.kind() == llvm::json::Value::Array)
    return "an array";
  std::string text = llvm::formatv("{0}", value);
  if (text.size() > 60)
    text = text.substr(0, 57) + "...";
  return text;
}

/// The first problem found.
struct Failure {
  explicit Failure(llvm::StringRef subject = "launch record")
      : subject(subject) {}
  /// What is read.
  std::string subject;
  std::string message;
  void report(const llvm::Twine &path, const llvm::Twine &problem) {
    if (message.empty())
      message = (subject + ": " + path + ": " + problem).str();
  }
  explicit operator bool() const { return !message.empty(); }
};

/// One object of the record. Fields are taken by name; finish() rejects those
/// that nobody took.
class ObjectReader {
public:
  ObjectReader(const llvm::json::Value &value, std::string path,
               Failure &failure)
      : path(std::move(path)), failure(failure), object(value.getAsObject()) {
    if (!object)
      failure.report(this->path,
                     "expected an object, got " + describeValue(value));
  }

  std::string at(llvm::StringRef field) const {
    return path.empty() ? field.str() : (path + "." + field).str();
  }

  void fail(llvm::StringRef field, const llvm::Twine &problem) {
    failure.report(at(field), problem);
  }

  bool failed() const { return bool(failure); }

  bool has(llvm::StringRef field) const { return object && object->get(field); }

  /// The value of a field that must be there.
  const llvm::json::Value *take(llvm::StringRef field) {
    if (failure || !object)
      return nullptr;
    known.insert(field);
    const llvm::json::Value *value = object->get(field);
    if (!value)
      fail(field, "missing field");
    return value;
  }

  std::string takeString(llvm::StringRef field) {
    const llvm::json::Value *value = take(field);
    if (!value)
      return "";
    std::optional<llvm::StringRef> text = value->getAsString();
    if (!text || text->empty()) {
      fail(field,
           "expected a string that is not empty, got " + describeValue(*value));
      return "";
    }
    return text->str();
  }

  bool takeBool(llvm::StringRef field) {
    const llvm::json::Value *value = take(field);
    if (!value)
      return false;
    if (!value->getAsBoolean())
      fail(field, "expected true or false, got " + describeValue(*value));
    return value->getAsBoolean().value_or(false);
  }

  double takeNumber(llvm::StringRef field) {
    const llvm::json::Value *value = take(field);
    if (!value)
      return 0;
    std::optional<double> number = value->getAsNumber();
    if (!number || !std::isfinite(*number)) {
      fail(field, "expected a finite number, got " + describeValue(*value));
      return 0;
    }
    return *number;
  }

  /// An integer in [low, high].
  int64_t takeInteger(llvm::StringRef field, int64_t low,
                      int64_t high = INT64_MAX) {
    const llvm::json::Value *value = take(field);
    return value ? toInteger(*value, at(field), low, high) : 0;
  }

  /// The index of a field's text among `names`.
  size_t takeName(llvm::StringRef field,
                  llvm::ArrayRef<llvm::StringRef> names) {
    const llvm::json::Value *value = take(field);
    if (!value)
      return 0;
    std::optional<llvm::StringRef> text = value->getAsString();
    const llvm::StringRef *found =
        text ? llvm::find(names, *text) : names.end();
    if (found != names.end())
      return found - names.begin();
    std::string list;
    for (llvm::StringRef name : names)
      list += (list.empty() ? "\"" : ", \"") + name.str() + "\"";
    fail(field, "expected one of " + list + ", got " + describeValue(*value));
    return 0;
  }

  template <typename T, size_t N>
  T takeEnum(llvm::StringRef field, const NameEntry<T> (&entries)[N]) {
    llvm::SmallVector<llvm::StringRef, N> names;
    for (const NameEntry<T> &entry : entries)
      names.push_back(entry.second);
    return failed() ? T() : entries[takeName(field, names)].first;
  }

  /// Calls `element` with each value of an array and its path.
  void takeArray(
      llvm::StringRef field,
      llvm::function_ref<void(const llvm::json::Value &, std::string)> element,
      std::optional<size_t> count = std::nullopt) {
    const llvm::json::Value *value = take(field);
    if (!value)
      return;
    const llvm::json::Array *array = value->getAsArray();
    if (!array)
      return fail(field, "expected an array, got " + describeValue(*value));
    if (count && array->size() != *count)
      return fail(field, "expected " + llvm::Twine(*count) + " elements, got " +
                             llvm::Twine(array->size()));
    for (auto [index, item] : llvm::enumerate(*array)) {
      if (failure)
        return;
      element(item, at(field) + "[" + std::to_string(index) + "]");
    }
  }

  template <typename Vector>
  void takeIntegers(llvm::StringRef field, Vector &result, int64_t low,
                    std::optional<size_t> count = std::nullopt) {
    takeArray(
        field,
        [&](const llvm::json::Value &value, std::string path) {
          result.push_back(toInteger(value, path, low, INT64_MAX));
        },
        count);
  }

  SizeExpr toExpression(const llvm::json::Value &value, llvm::StringRef path) {
    std::optional<llvm::StringRef> text = value.getAsString();
    if (!text) {
      failure.report(path, "expected an expression as a string, got " +
                               describeValue(value));
      return SizeExpr();
    }
    llvm::Expected<SizeExpr> expression = SizeExpr::parse(*text);
    if (!expression) {
      failure.report(path, llvm::toString(expression.takeError()));
      return SizeExpr();
    }
    return std::move(*expression);
  }

  /// Rejects fields that the format does not know.
  void finish() {
    if (failure || !object)
      return;
    // An object has no order; name the first in the alphabet.
    std::optional<llvm::StringRef> unknown;
    for (const auto &field : *object) {
      llvm::StringRef name = field.first;
      if (!known.contains(name) && (!unknown || name < *unknown))
        unknown = name;
    }
    if (unknown)
      fail(*unknown, "unknown field");
  }

private:
  int64_t toInteger(const llvm::json::Value &value, llvm::StringRef path,
                    int64_t low, int64_t high) {
    std::optional<int64_t> integer = value.getAsInteger();
    if (integer && *integer >= low && *integer <= high)
      return *integer;
    std::string range =
        high == INT64_MAX
            ? llvm::formatv("an integer of at least {0}", low).str()
            : llvm::formatv("an integer from {0} to {1}", low, high).str();
    failure.report(path, "expected " + range + ", got " + describeValue(value));
    return 0;
  }

  std::string path;
  Failure &failure;
  const llvm::json::Object *object;
  llvm::StringSet<> known;
};

} // namespace mlir::attn

#endif // ATTN_LIB_TARGET_OBJECTREADER_H
