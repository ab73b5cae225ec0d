//===- Condition.cpp - What a row of a data file asks of a value ----------===//

#include "attn/Planner/Facts/Condition.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <limits>

using namespace mlir::attn;
namespace json = llvm::json;

static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

static llvm::Error refuse(const json::Value &value) {
  return llvm::createStringError(llvm::formatv(
      "expected a value, [least, most], \"any\" or a comparison such as "
      "\">= 64\", got {0}",
      value));
}

llvm::Expected<Condition> Condition::parse(const json::Value &value) {
  Condition result;
  auto setRange = [&](int64_t least, int64_t most) {
    result.kind = Kind::Range;
    result.least = least;
    result.most = most;
    return result;
  };
  if (std::optional<int64_t> number = value.getAsInteger())
    return setRange(*number, *number);
  if (std::optional<bool> flag = value.getAsBoolean()) {
    result.kind = Kind::Text;
    result.text = *flag ? "true" : "false";
    return result;
  }
  if (const json::Array *range = value.getAsArray()) {
    if (range->size() != 2 || !(*range)[0].getAsInteger() ||
        !(*range)[1].getAsInteger() ||
        *(*range)[0].getAsInteger() > *(*range)[1].getAsInteger())
      return refuse(value);
    return setRange(*(*range)[0].getAsInteger(), *(*range)[1].getAsInteger());
  }
  std::optional<llvm::StringRef> text = value.getAsString();
  if (!text)
    return refuse(value);
  if (*text == "any")
    return result;
  auto [sign, operand] = text->split(' ');
  int64_t number = 0;
  bool isNumber = !operand.empty() && !operand.getAsInteger(10, number);
  if (sign == "!=" && !operand.empty()) {
    result.kind = isNumber ? Kind::NotNumber : Kind::NotText;
    result.least = number;
    result.text = operand.str();
    return result;
  }
  bool isComparison = llvm::is_contained({"<", "<=", ">", ">="}, sign);
  if (isComparison && !isNumber)
    return refuse(value);
  if (isComparison) {
    bool isOpen = sign.size() == 1;
    return sign.front() == '<' ? setRange(kLeast, number - isOpen)
                               : setRange(number + isOpen, kMost);
  }
  result.kind = Kind::Text;
  result.text = text->str();
  return result;
}

bool Condition::holds(int64_t number) const {
  switch (kind) {
  case Kind::Any:
    return true;
  case Kind::Range:
    return least <= number && number <= most;
  case Kind::NotNumber:
    return number != least;
  case Kind::Text:
    return false;
  case Kind::NotText:
    return true;
  }
  llvm_unreachable("unknown kind of condition");
}

bool Condition::holds(llvm::StringRef value) const {
  int64_t number;
  if (!value.getAsInteger(10, number))
    return holds(number);
  switch (kind) {
  case Kind::Any:
    return true;
  case Kind::Range:
    return false;
  case Kind::NotNumber:
    return true;
  case Kind::Text:
    return value == text;
  case Kind::NotText:
    return value != text;
  }
  llvm_unreachable("unknown kind of condition");
}

bool Condition::overlaps(const Condition &other) const {
  auto isNot = [](Kind kind) {
    return kind == Kind::NotText || kind == Kind::NotNumber;
  };
  if (kind == Kind::Any || other.kind == Kind::Any ||
      (isNot(kind) && isNot(other.kind)))
    return true;
  if (isNot(kind))
    return other.overlaps(*this);
  if (kind == Kind::Text)
    return other.holds(llvm::StringRef(text));
  if (other.kind == Kind::Range)
    return std::max(least, other.least) <= std::min(most, other.most);
  // A range of one number is what `!=` may leave out.
  return other.kind == Kind::NotText ||
         (other.kind == Kind::NotNumber &&
          (least != most || least != other.least));
}
