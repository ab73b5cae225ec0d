//===- PlanTableTest.cpp - tests of tables of measured plans --------------===//

#include "attn/Planner/Choice/PlanTable.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::HasSubstr;

static const char *const problem =
    "{\"type\": \"f16\", \"out_type\": \"f16\", \"mask\": \"none\", \"batch\": "
    "1, \"heads\": 2, \"kv_heads\": 2, \"queries\": [1, 64], \"keys\": "
    "\"dynamic\", \"head_dim\": 64, \"value_dim\": 64, \"features\": "
    "[\"lse\"]}";

/// A table with one entry, in which `from` became `to`.
static std::string makeTable(std::string from = "", std::string to = "") {
  std::string text =
      std::string("{\"version\": 1, \"plans\": [{\"problem\": ") + problem +
      ", \"chip\": \"sm_80\", \"plan\": \"#attn.split_q<>\", \"microseconds\": "
      "1.5, \"board\": \"a board\"}]}";
  if (size_t at = text.find(from); !from.empty() && at != std::string::npos)
    text.replace(at, from.size(), to);
  return text;
}

static std::string getError(const std::string &json) {
  auto table = PlanTable::parse(json, "t");
  return table ? "no error" : llvm::toString(table.takeError());
}

TEST(PlanTable, Reads) {
  auto table = PlanTable::parse(makeTable(), "t");
  ASSERT_TRUE(bool(table)) << llvm::toString(table.takeError());
  EXPECT_EQ(table->getName(), "t");
  ASSERT_EQ(table->getEntries().size(), 1u);
  const PlanTableEntry &entry = table->getEntries()[0];
  EXPECT_EQ(entry.chip, "sm_80");
  EXPECT_EQ(entry.plan, "#attn.split_q<>");
  EXPECT_EQ(entry.microseconds, 1.5);
  EXPECT_EQ(entry.board, "a board");
}

TEST(PlanTable, NamesThePlaceOfErrors) {
  EXPECT_THAT(getError("nonsense"), HasSubstr("plan table t: JSON: "));
  EXPECT_EQ(getError("[]"), "plan table t: version: expected 1, got none");
  EXPECT_EQ(getError("{\"version\": 2}"),
            "plan table t: version: expected 1, got 2");
  EXPECT_EQ(getError("{\"version\": 1}"),
            "plan table t: plans: expected an array");
  EXPECT_EQ(getError("{\"version\": 1, \"plans\": [1]}"),
            "plan table t: plans[0]: expected an object with an object "
            "\"problem\" in it");
  EXPECT_EQ(getError(makeTable("\"sm_80\"", "80")),
            "plan table t: plans[0].chip: expected a string");
  EXPECT_EQ(getError(makeTable("1.5", "\"1.5\"")),
            "plan table t: plans[0].microseconds: expected a number");
  EXPECT_EQ(getError(makeTable("\"f16\"", "16")),
            "plan table t: plans[0].problem.type: expected a string");
  EXPECT_EQ(getError(makeTable("[1, 64]", "[1]")),
            "plan table t: plans[0].problem.queries: expected an integer, "
            "[least, most] or \"dynamic\"");
  EXPECT_EQ(getError(makeTable("[\"lse\"]", "[1]")),
            "plan table t: plans[0].problem.features: expected an array of "
            "strings");
}

// The shipped table parses, or this ends the process.
TEST(PlanTable, ShipsATable) {
  EXPECT_EQ(PlanTable::getShipped().getName(), "shipped");
}
