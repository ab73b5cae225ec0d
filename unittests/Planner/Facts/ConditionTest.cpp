//===- ConditionTest.cpp - What a row of a data file asks of a value ------===//

#include "attn/Planner/Facts/Condition.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
namespace json = llvm::json;

namespace {

Condition parse(json::Value value) {
  return llvm::cantFail(Condition::parse(value));
}

TEST(Condition, HoldsForItsValues) {
  struct Case {
    json::Value condition;
    llvm::StringRef value;
    bool holds;
  } cases[] = {
      {64, "64", true},         {64, "65", false},
      {64, "auto", false},      {true, "true", true},
      {true, "false", false},   {"exact", "exact", true},
      {"exact", "64", false},   {">= 64", "64", true},
      {">= 64", "63", false},   {"> 64", "64", false},
      {"< 64", "63", true},     {"<= 64", "65", false},
      {"!= 64", "64", false},   {"!= 64", "65", true},
      {"!= exact", "64", true}, {"!= exact", "exact", false},
      {"any", "64", true},      {json::Array{8, 16}, "8", true},
      {"any", "exact", true},   {json::Array{8, 16}, "17", false},
      {"!= 64", "exact", true}, {"!= exact", "lagged", true},
  };
  for (const Case &each : cases)
    EXPECT_EQ(parse(each.condition).holds(each.value), each.holds)
        << llvm::formatv("{0}", each.condition).str() << " of "
        << each.value.str();
}

TEST(Condition, KnowsWhichOverlap) {
  struct Case {
    json::Value one, other;
    bool overlaps;
  } cases[] = {
      {64, 64, true},
      {64, 65, false},
      {">= 64", 64, true},
      {">= 65", 64, false},
      {">= 64", "< 64", false},
      {"any", 3, true},
      {"exact", "exact", true},
      {"exact", "lagged", false},
      {"!= 64", 64, false},
      {"!= 64", ">= 64", true},
      {"!= 64", "!= 3", true},
      {"exact", ">= 3", false},
      {"!= exact", "exact", false},
  };
  for (const Case &each : cases) {
    EXPECT_EQ(parse(each.one).overlaps(parse(each.other)), each.overlaps)
        << llvm::formatv("{0} and {1}", each.one, each.other).str();
    EXPECT_EQ(parse(each.other).overlaps(parse(each.one)), each.overlaps);
  }
}

TEST(Condition, SaysWhatIsExpected) {
  for (json::Value bad : {json::Value(json::Array{3}), json::Value(1.5),
                          json::Value(json::Array{3, 2}), json::Value(">= x")})
    EXPECT_EQ(llvm::toString(Condition::parse(bad).takeError()),
              llvm::formatv("expected a value, [least, most], \"any\" or a "
                            "comparison such as \">= 64\", got {0}",
                            bad)
                  .str());
}

} // namespace
