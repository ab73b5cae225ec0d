//===- JSONTest.cpp - JSON from outside -----------------------------------===//

#include "attn/Support/JSON.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

static std::string fail(const std::string &text) {
  llvm::Expected<llvm::json::Value> value = parseJSON(text);
  return value ? "no error" : llvm::toString(value.takeError());
}

static std::string nest(unsigned depth, char open, char close) {
  return std::string(depth, open) + std::string(depth, close);
}

TEST(JSON, LimitsTheDepth) {
  EXPECT_EQ(fail(nest(kMaxJSONDepth, '[', ']')), "no error");
  EXPECT_EQ(fail(nest(kMaxJSONDepth + 1, '[', ']')),
            "expected at most 64 nested arrays and objects, got more at line "
            "1");
  // Far beyond what the stack holds, with and without an end.
  EXPECT_NE(fail(nest(10000000, '[', ']')), "no error");
  EXPECT_NE(fail(std::string(10000000, '[')), "no error");
  std::string objects;
  for (unsigned i = 0; i < 1000000; ++i)
    objects += "{\"a\":\n";
  EXPECT_EQ(fail(objects), "expected at most 64 nested arrays and objects, got "
                           "more at line 65");
}

TEST(JSON, CountsBracketsAlone) {
  EXPECT_EQ(fail("\"" + std::string(1000, '[') + "\""), "no error");
  EXPECT_EQ(fail("[\"\\\"" + std::string(1000, '{') + "\\\\\", 1]"),
            "no error");
  // Side by side is not nested.
  std::string row = "[";
  for (unsigned i = 0; i < 1000; ++i)
    row += "[{}],";
  EXPECT_EQ(fail(row + "0]"), "no error");
  EXPECT_NE(fail("\"" + std::string(9, '\\')), "no error");
}
