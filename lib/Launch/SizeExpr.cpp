//===- SizeExpr.cpp - integer expressions over tensor sizes ---------------===//
//
// A recursive-descent parser that emits postfix steps, and their evaluation on
// a stack.
//
//===----------------------------------------------------------------------===//
#include "attn/Launch/SizeExpr.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace mlir::attn;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

SizeExpr::SizeExpr(int64_t value)
    : text(std::to_string(value)), steps({{Op::Constant, value}}) {}

SizeExpr SizeExpr::getDim(StringRef tensor, unsigned dim) {
  SizeExpr result;
  result.text = llvm::formatv("{0}.dim{1}", tensor, dim).str();
  result.steps = {{Op::Symbol, 0}};
  result.symbols = {{tensor.str(), /*isStride=*/false, dim}};
  return result;
}

SizeExpr SizeExpr::getMultiprocessors() {
  SizeExpr result;
  result.text = "sms";
  result.steps = {{Op::Symbol, 0}};
  result.symbols = {SizeSymbol()};
  return result;
}

SizeExpr SizeExpr::combine(Op op, const SizeExpr &left, const SizeExpr &right,
                           std::string text) {
  SizeExpr result = left;
  result.text = std::move(text);
  int64_t known = left.symbols.size();
  for (Step step : right.steps) {
    if (step.op == Op::Symbol)
      step.value += known;
    result.steps.push_back(step);
  }
  result.symbols.append(right.symbols.begin(), right.symbols.end());
  result.steps.push_back({op, 0});
  return result;
}

/// The text of an operand of a sum or a product. What was parsed may have any
/// form; `-` and `%` bind differently on the right.
static std::string getOperandText(const SizeExpr &operand, bool isRight) {
  SizeExpr::Op last = operand.getSteps().back().op;
  StringRef text = operand.getText();
  bool isAtom = last == SizeExpr::Op::Symbol || last == SizeExpr::Op::CeilDiv ||
                last == SizeExpr::Op::Min || last == SizeExpr::Op::Max ||
                (last == SizeExpr::Op::Constant && !text.starts_with("-"));
  bool isProduct = last == SizeExpr::Op::Mul;
  bool isClosed =
      text.starts_with("(") && text.ends_with(")") && text.count('(') == 1;
  if (isAtom || isClosed || (isProduct && !isRight))
    return text.str();
  return ("(" + text + ")").str();
}

SizeExpr SizeExpr::operator+(const SizeExpr &right) const {
  return combine(Op::Add, *this, right,
                 "(" + getOperandText(*this, false) + " + " +
                     getOperandText(right, true) + ")");
}

SizeExpr SizeExpr::operator-(const SizeExpr &right) const {
  return combine(Op::Sub, *this, right,
                 "(" + getOperandText(*this, false) + " - " +
                     getOperandText(right, true) + ")");
}

SizeExpr SizeExpr::operator*(const SizeExpr &right) const {
  return combine(Op::Mul, *this, right,
                 getOperandText(*this, false) + " * " +
                     getOperandText(right, true));
}

SizeExpr SizeExpr::ceilDiv(const SizeExpr &left, const SizeExpr &right) {
  return combine(
      Op::CeilDiv, left, right,
      ("ceildiv(" + left.getText() + ", " + right.getText() + ")").str());
}

namespace mlir::attn {

/// Parses one expression into the postfix steps of `result`.
class SizeExprParser {
public:
  explicit SizeExprParser(StringRef text) : text(text) {
    result.text = text.str();
    result.steps.clear();
  }

  Expected<SizeExpr> run() {
    if (Error error = parseSum())
      return std::move(error);
    skipBlanks();
    if (position != text.size())
      return fail("expected an operator or the end");
    return std::move(result);
  }

private:
  using Op = SizeExpr::Op;

  /// Bounds the recursion, so that hostile input cannot exhaust the stack.
  static constexpr unsigned maxDepth = 64;

  Error fail(const llvm::Twine &expected) {
    std::string got = position < text.size()
                          ? llvm::formatv("\"{0}\"", text.substr(position, 16))
                          : std::string("the end");
    return createStringError(
        llvm::formatv("in \"{0}\" at column {1}: {2}, got {3}", text,
                      position + 1, expected.str(), got)
            .str());
  }

  void skipBlanks() {
    while (position < text.size() && llvm::isSpace(text[position]))
      ++position;
  }

  bool consume(char c) {
    skipBlanks();
    if (position >= text.size() || text[position] != c)
      return false;
    ++position;
    return true;
  }

  void emit(Op op, int64_t value = 0) { result.steps.push_back({op, value}); }

  Error parseSum() {
    if (++depth > maxDepth)
      return fail(
          llvm::formatv("expected at most {0} nested expressions", maxDepth)
              .str());
    if (Error error = parseProduct())
      return error;
    while (true) {
      Op op;
      if (consume('+'))
        op = Op::Add;
      else if (consume('-'))
        op = Op::Sub;
      else
        break;
      if (Error error = parseProduct())
        return error;
      emit(op);
    }
    --depth;
    return Error::success();
  }

  Error parseProduct() {
    if (Error error = parseFactor())
      return error;
    while (true) {
      Op op;
      if (consume('*'))
        op = Op::Mul;
      else if (consume('/'))
        op = Op::FloorDiv;
      else if (consume('%'))
        op = Op::Mod;
      else
        return Error::success();
      if (Error error = parseFactor())
        return error;
      emit(op);
    }
  }

  Error parseInteger(int64_t &value) {
    StringRef digits = text.substr(position).take_while(llvm::isDigit);
    if (digits.empty() || digits.getAsInteger(10, value))
      return fail("expected an integer below 2^63");
    position += digits.size();
    return Error::success();
  }

  Error parseFactor() {
    unsigned negations = 0;
    while (consume('-'))
      ++negations;
    if (Error error = parsePrimary())
      return error;
    if (negations % 2)
      emit(Op::Neg);
    return Error::success();
  }

  Error parsePrimary() {
    if (consume('(')) {
      if (Error error = parseSum())
        return error;
      if (!consume(')'))
        return fail("expected ')'");
      return Error::success();
    }
    skipBlanks();
    if (position < text.size() && llvm::isDigit(text[position])) {
      int64_t value = 0;
      if (Error error = parseInteger(value))
        return error;
      emit(Op::Constant, value);
      return Error::success();
    }
    StringRef name = text.substr(position).take_while(
        [](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (name.empty())
      return fail("expected an integer, a size, a function or '('");
    size_t start = position;
    position += name.size();
    if (consume('.'))
      return parseSymbol(name);
    if (consume('('))
      return parseCall(name, start);
    if (name == "sms") {
      emit(Op::Symbol, result.symbols.size());
      result.symbols.push_back(SizeSymbol());
      return Error::success();
    }
    return fail("expected '.' or '(' after \"" + name + "\"");
  }

  Error parseSymbol(StringRef tensor) {
    bool isStride = text.substr(position).starts_with("stride");
    if (!isStride && !text.substr(position).starts_with("dim"))
      return fail("expected 'dim' or 'stride' and a number");
    position += isStride ? 6 : 3;
    int64_t index = 0;
    if (Error error = parseInteger(index))
      return error;
    emit(Op::Symbol, result.symbols.size());
    result.symbols.push_back(
        {tensor.str(), isStride, unsigned(std::min<int64_t>(index, 1 << 20))});
    return Error::success();
  }

  Error parseCall(StringRef name, size_t start) {
    Op op;
    if (name == "ceildiv")
      op = Op::CeilDiv;
    else if (name == "min")
      op = Op::Min;
    else if (name == "max")
      op = Op::Max;
    else {
      position = start;
      return fail("expected 'ceildiv', 'min' or 'max'");
    }
    if (Error error = parseSum())
      return error;
    if (!consume(','))
      return fail("expected ','");
    if (Error error = parseSum())
      return error;
    if (!consume(')'))
      return fail("expected ')'");
    emit(op);
    return Error::success();
  }

  StringRef text;
  size_t position = 0;
  unsigned depth = 0;
  SizeExpr result;
};

} // namespace mlir::attn

Expected<SizeExpr> SizeExpr::parse(StringRef text) {
  return SizeExprParser(text).run();
}

Expected<int64_t> SizeExpr::evaluate(Lookup lookup) const {
  auto fail = [&](const llvm::Twine &message) {
    return createStringError(message + " in \"" + text + "\"");
  };
  llvm::SmallVector<int64_t, 8> stack;
  for (const Step &step : steps) {
    if (step.op == Op::Constant) {
      stack.push_back(step.value);
      continue;
    }
    if (step.op == Op::Symbol) {
      const SizeSymbol &symbol = symbols[step.value];
      std::optional<int64_t> value = lookup(symbol);
      if (!value && symbol.isDevice())
        return fail("no value for \"sms\"");
      if (!value)
        return fail("no value for \"" + symbol.tensor +
                    (symbol.isStride ? ".stride" : ".dim") +
                    llvm::Twine(symbol.index) + "\"");
      stack.push_back(*value);
      continue;
    }
    int64_t right = stack.pop_back_val(), value = 0;
    bool overflow = false;
    if (step.op == Op::Neg) {
      overflow = llvm::SubOverflow<int64_t>(0, right, value);
    } else {
      int64_t left = stack.pop_back_val();
      bool divides = step.op == Op::FloorDiv || step.op == Op::CeilDiv ||
                     step.op == Op::Mod;
      if (divides && right == 0)
        return fail("division by zero");
      overflow = divides && left == INT64_MIN && right == -1;
      switch (step.op) {
      case Op::Add:
        overflow = llvm::AddOverflow(left, right, value);
        break;
      case Op::Sub:
        overflow = llvm::SubOverflow(left, right, value);
        break;
      case Op::Mul:
        overflow = llvm::MulOverflow(left, right, value);
        break;
      case Op::FloorDiv:
        value = overflow ? 0 : llvm::divideFloorSigned(left, right);
        break;
      case Op::CeilDiv:
        value = overflow ? 0 : llvm::divideCeilSigned(left, right);
        break;
      case Op::Mod:
        value =
            overflow ? 0 : left - llvm::divideFloorSigned(left, right) * right;
        break;
      case Op::Min:
        value = std::min(left, right);
        break;
      case Op::Max:
        value = std::max(left, right);
        break;
      case Op::Constant:
      case Op::Symbol:
      case Op::Neg:
        break;
      }
    }
    if (overflow)
      return fail("overflow of a 64-bit integer");
    stack.push_back(value);
  }
  return stack.back();
}
