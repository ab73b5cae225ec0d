//===- Lexer.cpp - Names, numbers and operands of PTX ---------------------===//

#include "Lexer.h"
#include <cstring>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

Error Lexer::error(const llvm::Twine &message) {
  return llvm::createStringError(fileName + ":" + llvm::Twine(line) + ": " +
                                 message);
}

Error Lexer::expected(StringRef what) {
  if (cur == end)
    return error("expected " + what + ", got the end of the file");
  StringRef rest(cur, end - cur);
  return error(
      "expected " + what + ", got '" +
      rest.take_until([](char c) { return c == '\n'; }).take_front(40) + "'");
}

void Lexer::skipLineComment() {
  const char *begin = cur;
  while (cur != end && *cur != '\n')
    ++cur;
  StringRef comment = StringRef(begin, cur - begin).drop_front(2).trim();
  if (comment == "begin inline asm")
    isInlineAsm = true;
  else if (comment == "end inline asm")
    isInlineAsm = false;
}

void Lexer::skipSpace() {
  while (cur != end) {
    if (*cur == '\n') {
      ++line;
      ++cur;
    } else if (llvm::isSpace(*cur)) {
      ++cur;
    } else if (StringRef(cur, end - cur).starts_with("//")) {
      skipLineComment();
    } else if (StringRef(cur, end - cur).starts_with("/*")) {
      cur += 2;
      while (cur != end && !StringRef(cur, end - cur).starts_with("*/")) {
        line += *cur == '\n';
        ++cur;
      }
      cur = cur == end ? end : cur + 2;
    } else {
      break;
    }
  }
}

bool Lexer::at(char c) {
  skipSpace();
  return cur != end && *cur == c;
}

bool Lexer::consume(char c) {
  if (!at(c))
    return false;
  ++cur;
  return true;
}

Error Lexer::require(char c) {
  if (consume(c))
    return Error::success();
  return expected(std::string("'") + c + "'");
}

StringRef Lexer::name() {
  skipSpace();
  const char *begin = cur;
  if (cur != end && isNameStart(*cur))
    while (cur != end && isNameChar(*cur))
      ++cur;
  return StringRef(begin, cur - begin);
}

StringRef Lexer::dottedName() {
  skipSpace();
  const char *begin = cur;
  if (cur != end && isNameStart(*cur))
    while (cur != end && (isNameChar(*cur) || (*cur == '.' && cur + 1 != end &&
                                               isNameChar(cur[1]))))
      ++cur;
  return StringRef(begin, cur - begin);
}

StringRef Lexer::directive() {
  skipSpace();
  if (cur == end || *cur != '.')
    return {};
  ++cur;
  const char *begin = cur;
  while (cur != end && (isNameChar(*cur) || *cur == ':'))
    ++cur;
  return StringRef(begin, cur - begin);
}

StringRef Lexer::peekDirective() {
  skipSpace();
  const char *save = cur;
  StringRef d = directive();
  cur = save;
  return d;
}

Error Lexer::skipString() {
  if (Error e = require('"'))
    return e;
  while (cur != end && *cur != '"')
    ++cur;
  return require('"');
}

Expected<int64_t> Lexer::integer() {
  AstOperand op;
  if (Error e = number(op))
    return std::move(e);
  if (op.kind != AstOperand::Int)
    return expected("an integer");
  return int64_t(op.bits);
}

Error Lexer::number(AstOperand &op) {
  skipSpace();
  bool negative = false;
  while (cur != end && (*cur == '-' || *cur == '+')) {
    negative ^= *cur == '-';
    ++cur;
    skipSpace();
  }
  const char *begin = cur;
  if (cur == end || !llvm::isDigit(*cur))
    return expected("a number");
  if (*cur == '0' && end - cur > 9 && (cur[1] == 'f' || cur[1] == 'F')) {
    uint32_t bits;
    if (StringRef(cur + 2, 8).getAsInteger(16, bits))
      return expected("eight hexadecimal digits");
    cur += 10;
    op.kind = AstOperand::F32;
    op.bits = negative ? bits ^ 0x80000000u : bits;
    return Error::success();
  }
  if (*cur == '0' && end - cur > 17 && (cur[1] == 'd' || cur[1] == 'D')) {
    if (StringRef(cur + 2, 16).getAsInteger(16, op.bits))
      return expected("sixteen hexadecimal digits");
    cur += 18;
    op.kind = AstOperand::F64;
    if (negative)
      op.bits ^= uint64_t(1) << 63;
    return Error::success();
  }
  bool isHex = *cur == '0' && cur + 1 != end && (cur[1] | 32) == 'x';
  bool isFloat = false;
  while (cur != end &&
         (llvm::isAlnum(*cur) || *cur == '.' ||
          (!isHex && (*cur == '-' || *cur == '+') && (cur[-1] | 32) == 'e'))) {
    isFloat |= !isHex && (*cur == '.' || (*cur | 32) == 'e');
    ++cur;
  }
  StringRef text(begin, cur - begin);
  if (isFloat) {
    double value;
    if (text.getAsDouble(value))
      return error("expected a number, got '" + text + "'");
    if (negative)
      value = -value;
    op.kind = AstOperand::F64;
    std::memcpy(&op.bits, &value, 8);
    return Error::success();
  }
  StringRef digits = text;
  digits.consume_back("U");
  if (digits.getAsInteger(0, op.bits))
    return error("expected a number, got '" + text + "'");
  if (negative)
    op.bits = -op.bits;
  op.kind = AstOperand::Int;
  return Error::success();
}

Error Lexer::skipBraces() {
  if (Error e = require('{'))
    return e;
  unsigned depth = 1;
  while (cur != end && depth) {
    if (*cur == '{')
      ++depth;
    if (*cur == '}')
      --depth;
    line += *cur == '\n';
    ++cur;
  }
  return Error::success();
}

Error Lexer::failNesting() {
  return error("expected at most " + llvm::Twine(kMostDepth) +
               " braces, brackets and parentheses inside of each other, got "
               "more");
}

Error Lexer::nest(llvm::function_ref<Error()> parse) {
  if (depth == kMostDepth)
    return failNesting();
  ++depth;
  Error e = parse();
  --depth;
  return e;
}

Error Lexer::parseSequence(AstOperand &op, char close) {
  if (consume(close))
    return Error::success();
  do {
    AstOperand elem;
    if (Error e = nest([&] { return parseOperand(elem); }))
      return e;
    op.elems.push_back(std::move(elem));
  } while (consume(','));
  return require(close);
}

Error Lexer::parseOperand(AstOperand &op) {
  skipSpace();
  if (cur == end)
    return expected("an operand");
  if (consume('{')) {
    op.kind = AstOperand::Vector;
    return parseSequence(op, '}');
  }
  if (consume('[')) {
    op.kind = AstOperand::Address;
    return parseSequence(op, ']');
  }
  if (consume('(')) {
    op.kind = AstOperand::List;
    return parseSequence(op, ')');
  }
  if (consume('!')) {
    op.kind = AstOperand::NotName;
    op.name = dottedName();
    return op.name.empty() ? expected("a predicate") : Error::success();
  }
  if (isNameStart(*cur)) {
    op.kind = AstOperand::Name;
    op.name = dottedName();
    if (op.name == "_")
      op.kind = AstOperand::Sink;
    if (consume('|')) {
      AstOperand first = op, second;
      if (Error e = nest([&] { return parseOperand(second); }))
        return e;
      op = AstOperand();
      op.kind = AstOperand::Pair;
      op.elems.push_back(std::move(first));
      op.elems.push_back(std::move(second));
      return Error::success();
    }
    while (at('+') || at('-')) {
      bool negative = at('-');
      ++cur;
      AstOperand offset;
      if (Error e = number(offset))
        return e;
      if (offset.kind != AstOperand::Int)
        return error("expected an integer offset");
      // Sums of addresses wrap.
      op.imm =
          int64_t(uint64_t(op.imm) + (negative ? -offset.bits : offset.bits));
    }
    return Error::success();
  }
  return number(op);
}
