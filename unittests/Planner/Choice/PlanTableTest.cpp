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
            "plan table t: plans[0].problem.queries: expected a value, "
            "[least, most], \"any\" or a comparison such as \">= 64\", got "
            "[1]");
  EXPECT_EQ(getError(makeTable("\"keys\"", "\"keyz\"")),
            "plan table t: plans[0].problem.keys: expected an integer, a range "
            "of them or \"dynamic\"");
  EXPECT_EQ(getError(makeTable("[\"lse\"]", "[1]")),
            "plan table t: plans[0].problem.features: expected an array of "
            "strings or \"any\"");
  EXPECT_EQ(getError(makeTable("1.5", "1.5, \"rank\": \"x\"")),
            "plan table t: plans[0].rank: expected an integer");
  EXPECT_EQ(getError(makeTable("1.5", "1.5, \"boards\": []")),
            "plan table t: plans[0].boards: expected an array of names of "
            "boards");
}

/// A table with two rows, each in a line of its own, whose problems and other
/// fields are the given ones.
static std::string makeRows(const std::string &first,
                            const std::string &second) {
  auto row = [](const std::string &changes) {
    std::string text = makeTable();
    text = text.substr(text.find("[{") + 1);
    text = text.substr(0, text.size() - 2);
    if (size_t colon = changes.find(':'); colon != std::string::npos) {
      std::string field = changes.substr(0, colon);
      size_t at = text.find("\"" + field + "\": ") + field.size() + 4;
      size_t length =
          field == "queries" ? 7 : text.find_first_of(",}", at) - at;
      text.replace(at, length, changes.substr(colon + 1));
    }
    return text;
  };
  return "{\"version\": 1, \"plans\": [\n" + row(first) + ",\n" + row(second) +
         "\n]}";
}

TEST(PlanTable, RefusesRowsThatOverlap) {
  const std::string message =
      "plan table t: plans[0] in line 2 and plans[1] in line 3: expected "
      "classes without a problem in common, or another rank";
  EXPECT_EQ(getError(makeRows("", "")), message);
  EXPECT_EQ(getError(makeRows("queries:[1, 64]", "queries:[64, 128]")),
            message);
  EXPECT_EQ(getError(makeRows("queries:\">= 64\"", "queries:\"any\"")),
            message);
  EXPECT_EQ(getError(makeRows("queries:[1, 64]", "queries:[65, 128]")),
            "no error");
  EXPECT_EQ(getError(makeRows("", "head_dim:128")), "no error");
  EXPECT_EQ(getError(makeRows("", "mask:\"causal\"")), "no error");
  EXPECT_EQ(getError(makeRows("", "mask:\"any\"")), message);
  EXPECT_EQ(getError(makeRows("", "chip:\"sm_86\"")), "no error");
  EXPECT_EQ(getError(makeRows("", "microseconds:2, \"rank\": 1")), "no error");
  EXPECT_EQ(getError(makeRows("microseconds:2, \"boards\": [\"h100\"]",
                              "microseconds:2, \"boards\": [\"h200\"]")),
            "no error");
  EXPECT_EQ(getError(makeRows("microseconds:2, \"boards\": [\"h100\"]", "")),
            message);
}

// The shipped table parses, or this ends the process.
TEST(PlanTable, ShipsATable) {
  EXPECT_EQ(PlanTable::getShipped().getName(), "shipped");
}
