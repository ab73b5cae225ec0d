//===- MarginsTest.cpp - tests of margins between schedules ---------------===//

#include "../../../lib/Planner/Choice/Margins.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

namespace {

std::string getMarginError(llvm::StringRef row) {
  auto margins = Margins::parse(
      ("{\"version\": 1, \"margins\": [" + row + "]}").str(), "t");
  return margins ? "no error" : llvm::toString(margins.takeError());
}

TEST(Margins, ErrorsNameTheRow) {
  EXPECT_EQ(llvm::toString(Margins::parse("{}", "t").takeError()),
            "margins t: expected version 1 and an array \"margins\"");
  EXPECT_EQ(getMarginError("3"),
            "margins t: margins[0]: expected a schedule and a margin");
  EXPECT_EQ(getMarginError("{\"schedule\": \"mla\"}"),
            "margins t: margins[0]: expected a schedule and a margin");
  EXPECT_EQ(getMarginError("{\"schedule\": \"mla\", \"margin\": 2, "
                           "\"problem\": {\"moon\": 1}}"),
            "margins t: margins[0]: unknown field 'moon' of a problem");
  EXPECT_EQ(getMarginError("{\"schedule\": \"mla\", \"margin\": 2, \"plan\": "
                           "{\"block_n\": 1.5}}"),
            "margins t: margins[0]: expected a value, [least, most], \"any\" "
            "or a comparison such as \">= 64\", got 1.5");
  EXPECT_EQ(getMarginError("{\"schedule\": \"mla\", \"margin\": 2}"),
            "no error");
}

// The shipped rows parse, or this ends the process.
TEST(Margins, AreShipped) { Margins::getShipped(); }

} // namespace
