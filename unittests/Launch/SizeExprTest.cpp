//===- SizeExprTest.cpp - tests of integer expressions --------------------===//
#include "attn/Launch/SizeExpr.h"

#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::HasSubstr;

static std::optional<int64_t> lookup(const SizeSymbol &symbol) {
  if (symbol.tensor == "q" && !symbol.isStride)
    return symbol.index == 2 ? 300 : 2;
  if (symbol.tensor == "k_cache" && symbol.isStride && symbol.index == 10)
    return 7;
  return std::nullopt;
}

static int64_t evaluate(llvm::StringRef text) {
  llvm::Expected<SizeExpr> expression = SizeExpr::parse(text);
  if (!expression) {
    ADD_FAILURE() << llvm::toString(expression.takeError());
    return INT64_MIN;
  }
  llvm::Expected<int64_t> value = expression->evaluate(lookup);
  if (!value) {
    ADD_FAILURE() << llvm::toString(value.takeError());
    return INT64_MIN;
  }
  return *value;
}

static std::string failure(llvm::StringRef text) {
  llvm::Expected<SizeExpr> expression = SizeExpr::parse(text);
  if (!expression)
    return llvm::toString(expression.takeError());
  llvm::Expected<int64_t> value = expression->evaluate(lookup);
  if (!value)
    return llvm::toString(value.takeError());
  return "no error";
}

TEST(SizeExpr, Arithmetic) {
  EXPECT_EQ(evaluate("42"), 42);
  EXPECT_EQ(evaluate("1 + 2 * 3"), 7);
  EXPECT_EQ(evaluate("(1 + 2) * 3"), 9);
  EXPECT_EQ(evaluate("10 - 4 - 3"), 3);
  EXPECT_EQ(evaluate("100 / 10 / 5"), 2);
  EXPECT_EQ(evaluate("-3 + 5"), 2);
  EXPECT_EQ(evaluate("2 - -3"), 5);
  EXPECT_EQ(evaluate("--4"), 4);
  EXPECT_EQ(evaluate("---4"), -4);
  EXPECT_EQ(evaluate("min(3, 5) + max(3, 5)"), 8);
}

TEST(SizeExpr, DivisionRoundsAsDocumented) {
  EXPECT_EQ(evaluate("7 / 2"), 3);
  EXPECT_EQ(evaluate("-7 / 2"), -4);
  EXPECT_EQ(evaluate("-7 % 2"), 1);
  EXPECT_EQ(evaluate("7 % -2"), -1);
  EXPECT_EQ(evaluate("ceildiv(7, 2)"), 4);
  EXPECT_EQ(evaluate("ceildiv(-7, 2)"), -3);
  EXPECT_EQ(evaluate("ceildiv(0, 128)"), 0);
}

TEST(SizeExpr, Symbols) {
  EXPECT_EQ(evaluate("ceildiv(q.dim2, 128)"), 3);
  EXPECT_EQ(evaluate("q.dim1*q.dim0"), 4);
  EXPECT_EQ(evaluate("k_cache.stride10"), 7);
  auto expression = SizeExpr::parse("ceildiv(q.dim2, k_cache.stride10)");
  ASSERT_TRUE(bool(expression));
  ASSERT_EQ(expression->getSymbols().size(), 2u);
  EXPECT_EQ(expression->getSymbols()[0].tensor, "q");
  EXPECT_EQ(expression->getSymbols()[0].index, 2u);
  EXPECT_TRUE(expression->getSymbols()[1].isStride);
  EXPECT_EQ(expression->getText(), "ceildiv(q.dim2, k_cache.stride10)");
}

// The cases that attn.record's reader has to agree on as well
// (python/tests/launch/test_record.py).
TEST(SizeExpr, AgreesWithTheSharedCases) {
  auto file =
      llvm::MemoryBuffer::getFile(ATTN_TARGET_INPUTS "/size-expressions.json");
  ASSERT_TRUE(bool(file));
  llvm::json::Value cases =
      llvm::cantFail(llvm::json::parse((*file)->getBuffer()));
  const llvm::json::Object &root = *cases.getAsObject();
  auto find = [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
    std::string name = symbol.tensor + (symbol.isStride ? ".stride" : ".dim") +
                       std::to_string(symbol.index);
    return root.getObject("symbols")->getInteger(name);
  };
  auto run = [&](llvm::StringRef text) -> llvm::Expected<int64_t> {
    llvm::Expected<SizeExpr> expression = SizeExpr::parse(text);
    if (!expression)
      return expression.takeError();
    return expression->evaluate(find);
  };
  for (const llvm::json::Value &each : *root.getArray("values")) {
    const llvm::json::Array &pair = *each.getAsArray();
    llvm::StringRef text = *pair[0].getAsString();
    llvm::Expected<int64_t> value = run(text);
    ASSERT_TRUE(bool(value)) << llvm::toString(value.takeError());
    EXPECT_EQ(*value, *pair[1].getAsInteger()) << text.str();
  }
  for (const llvm::json::Value &each : *root.getArray("errors")) {
    const llvm::json::Array &pair = *each.getAsArray();
    llvm::StringRef text = *pair[0].getAsString();
    llvm::Expected<int64_t> value = run(text);
    ASSERT_FALSE(bool(value)) << text.str() << " = " << *value;
    EXPECT_THAT(llvm::toString(value.takeError()),
                HasSubstr(pair[1].getAsString()->str()));
  }
}

// What is built from parts means what its text says.
TEST(SizeExpr, Builds) {
  SizeExpr queries = SizeExpr::getDim("q", 2), heads = SizeExpr::getDim("q", 1);
  auto check = [](const SizeExpr &built, llvm::StringRef text) {
    EXPECT_EQ(built.getText(), text);
    EXPECT_EQ(llvm::cantFail(built.evaluate(lookup)), evaluate(text));
  };
  check(7, "7");
  check(SizeExpr::ceilDiv(queries, 128), "ceildiv(q.dim2, 128)");
  check(heads * (queries - 1), "q.dim1 * (q.dim2 - 1)");
  check((queries + heads) * 3 * heads, "(q.dim2 + q.dim1) * 3 * q.dim1");
  check(heads - (queries - 1), "(q.dim1 - (q.dim2 - 1))");
  check(heads - SizeExpr(-2), "(q.dim1 - (-2))");
  check(heads * (heads * 3), "q.dim1 * (q.dim1 * 3)");
  auto parse = [](llvm::StringRef text) {
    return llvm::cantFail(SizeExpr::parse(text));
  };
  check(heads * parse("7 / 2"), "q.dim1 * (7 / 2)");
  check(parse("7 % 4") * parse("(5) + (1)"), "(7 % 4) * ((5) + (1))");
  check(parse("-q.dim2") + 1, "((-q.dim2) + 1)");
  check(SizeExpr::ceilDiv(parse("9 - 2"), queries - 290),
        "ceildiv(9 - 2, (q.dim2 - 290))");
}

TEST(SizeExpr, ParseErrors) {
  EXPECT_THAT(failure(""), HasSubstr("expected an integer, a size, a function "
                                     "or '(', got the end"));
  EXPECT_THAT(failure("1 +"), HasSubstr("at column 4"));
  EXPECT_THAT(failure("1 2"), HasSubstr("expected an operator or the end"));
  EXPECT_THAT(failure("(1"), HasSubstr("expected ')', got the end"));
  EXPECT_THAT(failure("q.size2"),
              HasSubstr("expected 'dim' or 'stride' and a number"));
  EXPECT_THAT(failure("q.dim"), HasSubstr("expected an integer below 2^63"));
  EXPECT_THAT(failure("q"), HasSubstr("expected '.' or '(' after \"q\""));
  EXPECT_THAT(failure("floordiv(1, 2)"),
              HasSubstr("expected 'ceildiv', 'min' or 'max', got \"floordiv"));
  EXPECT_THAT(failure("min(1)"), HasSubstr("expected ','"));
  EXPECT_THAT(failure("99999999999999999999"),
              HasSubstr("expected an integer below 2^63"));
  EXPECT_THAT(failure(std::string(100000, '(')),
              HasSubstr("expected at most 64 nested expressions"));
}

TEST(SizeExpr, EvaluationErrors) {
  EXPECT_EQ(failure("1 / (2 - 2)"), "division by zero in \"1 / (2 - 2)\"");
  EXPECT_THAT(failure("1 % 0"), HasSubstr("division by zero"));
  EXPECT_THAT(failure("ceildiv(1, 0)"), HasSubstr("division by zero"));
  EXPECT_THAT(failure("9223372036854775807 + 1"),
              HasSubstr("overflow of a 64-bit integer"));
  EXPECT_THAT(failure("9223372036854775807 * 2"), HasSubstr("overflow"));
  EXPECT_THAT(failure("(-9223372036854775807 - 1) / -1"),
              HasSubstr("overflow"));
  EXPECT_THAT(failure("v.dim0"), HasSubstr("no value for \"v.dim0\""));
}
