//===- ObjectReader.h - Strict reading of JSON objects ----------*- C++ -*-===//
//
// Reads JSON field by field. What is wrong is kept with the path of its field,
// and reading goes on with zeros in its place, so that the code reads straight
// through and the author of a file sees all of it at once.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_LAUNCH_OBJECTREADER_H
#define ATTN_LIB_LAUNCH_OBJECTREADER_H

#include "EnumNames.h"
#include "attn/Launch/SizeExpr.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
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

/// The problems found, in order.
class Failure {
public:
  explicit Failure(llvm::StringRef subject = "launch record")
      : subject(subject) {}
  void report(const llvm::Twine &path, const llvm::Twine &problem) {
    if (++count <= kMostNamed)
      messages.push_back((subject + ": " + path + ": " + problem).str());
  }
  explicit operator bool() const { return count != 0; }
  /// All of them as one error, a line each.
  llvm::Error takeError() const {
    std::string text = llvm::join(messages, "\n");
    if (count > kMostNamed)
      text +=
          llvm::formatv("\n{0}: {1} more errors", subject, count - kMostNamed);
    return llvm::createStringError(text);
  }

private:
  static constexpr size_t kMostNamed = 20;
  /// What is read.
  std::string subject;
  std::vector<std::string> messages;
  size_t count = 0;
};

/// One object of the record. Fields are taken by name; finish() rejects those
/// that nobody took.
class ObjectReader {
public:
  ObjectReader(const llvm::json::Value &value, std::string path,
               Failure &failure)
      : path(std::move(path)), failure(failure), object(value.getAsObject()) {
    if (!object)
      report(this->path, "expected an object, got " + describeValue(value));
  }

  std::string at(llvm::StringRef field) const {
    return path.empty() ? field.str() : (path + "." + field).str();
  }

  void fail(llvm::StringRef field, const llvm::Twine &problem) {
    report(at(field), problem);
  }

  /// True once something about this object was wrong.
  bool failed() const { return hasFailed; }

  bool has(llvm::StringRef field) const { return object && object->get(field); }

  /// The value of a field that must be there.
  const llvm::json::Value *take(llvm::StringRef field) {
    if (!object)
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
    return entries[takeName(field, names)].first;
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
    for (auto [index, item] : llvm::enumerate(*array))
      element(item, at(field) + "[" + std::to_string(index) + "]");
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
      report(path,
             "expected an expression as a string, got " + describeValue(value));
      return SizeExpr();
    }
    llvm::Expected<SizeExpr> expression = SizeExpr::parse(*text);
    if (!expression) {
      report(path, llvm::toString(expression.takeError()));
      return SizeExpr();
    }
    return std::move(*expression);
  }

  /// Reads no further: which other fields there are follows from one that is
  /// wrong.
  void giveUp() { isGivenUp = true; }

  /// Rejects fields that the format does not know.
  void finish() {
    if (!object || isGivenUp)
      return;
    // An object has no order; name them in that of the alphabet.
    llvm::SmallVector<llvm::StringRef, 2> unknown;
    for (const auto &field : *object)
      if (!known.contains(field.first))
        unknown.push_back(field.first);
    llvm::sort(unknown);
    for (llvm::StringRef name : unknown)
      fail(name, "unknown field");
  }

  /// The same of a value that was taken.
  int64_t toInteger(const llvm::json::Value &value, llvm::StringRef path,
                    int64_t low, int64_t high = INT64_MAX) {
    std::optional<int64_t> integer = value.getAsInteger();
    if (integer && *integer >= low && *integer <= high)
      return *integer;
    std::string range =
        high == INT64_MAX
            ? llvm::formatv("an integer of at least {0}", low).str()
            : llvm::formatv("an integer from {0} to {1}", low, high).str();
    report(path, "expected " + range + ", got " + describeValue(value));
    return 0;
  }

private:
  void report(const llvm::Twine &at, const llvm::Twine &problem) {
    hasFailed = true;
    failure.report(at, problem);
  }

  std::string path;
  Failure &failure;
  const llvm::json::Object *object;
  llvm::StringSet<> known;
  bool hasFailed = false, isGivenUp = false;
};

} // namespace mlir::attn

#endif // ATTN_LIB_LAUNCH_OBJECTREADER_H
