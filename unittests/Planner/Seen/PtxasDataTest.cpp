//===- PtxasDataTest.cpp - What ptxas was seen to spill -------------------===//

#include "../../../lib/Planner/Seen/PtxasData.h"
#include "attn/Planner/Choice/PlanCandidates.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

std::string getError(llvm::StringRef text) {
  return llvm::toString(PtxasData::parse(text, "t").takeError());
}

std::string getRowError(llvm::StringRef row) {
  return getError(
      ("{\"version\": 1, \"ptxas\": \"13.0\", \"rows\": [" + row + "]}").str());
}

TEST(PtxasData, ErrorsNameThePlace) {
  EXPECT_EQ(getError("[]"), "ptxas data t: version: expected 1, got none");
  EXPECT_EQ(getError("{\"version\": 2}"),
            "ptxas data t: version: expected 1, got 2");
  EXPECT_EQ(getError("{\"version\": 1}"),
            "ptxas data t: ptxas: expected a string");
  EXPECT_EQ(getError("{\"version\": 1, \"ptxas\": \"13.0\"}"),
            "ptxas data t: rows: expected an array");
  EXPECT_EQ(getRowError("3"), "ptxas data t: rows[0]: expected an object");
  EXPECT_EQ(getRowError("{}"),
            "ptxas data t: rows[0].schedule: expected a string");
  EXPECT_EQ(getRowError("{\"schedule\": \"mla\", \"verdict\": \"may\"}"),
            "ptxas data t: rows[0].verdict: expected \"spills\" or \"fits\", "
            "got \"may\"");
  EXPECT_EQ(getRowError("{\"schedule\": \"mla\", \"verdict\": \"fits\", "
                        "\"problem\": {\"moon\": 1}}"),
            "ptxas data t: rows[0].problem: expected features of "
            "PtxasFeatures.def, got 'moon'");
  EXPECT_EQ(getRowError("{\"schedule\": \"mla\", \"verdict\": \"fits\", "
                        "\"plan\": {\"block_n\": \">= x\"}}"),
            "ptxas data t: rows[0].plan.block_n: expected a value, [least, "
            "most], \"any\" or a comparison such as \">= 64\", got \">= x\"");
  EXPECT_EQ(getRowError("{\"schedule\": \"mla\", \"verdict\": \"fits\", "
                        "\"any\": [1]}"),
            "ptxas data t: rows[0].any: expected an array of objects");
  EXPECT_EQ(getRowError("{\"schedule\": \"mla\", \"verdict\": \"fits\", "
                        "\"chips\": [80]}"),
            "ptxas data t: rows[0].chips: expected an array of chips");
  EXPECT_EQ(getRowError("{\"schedule\": \"mla\", \"verdict\": \"fits\", "
                        "\"generation\": 1.5}"),
            "ptxas data t: rows[0].generation: expected a value, [least, "
            "most], \"any\" or a comparison such as \">= 64\", got 1.5");
}

TEST(PtxasData, ListsPlansThatFit) {
  PtxasData data = llvm::cantFail(PtxasData::parse(
      R"({"version": 1, "ptxas": "13.0", "rows": [
        {"schedule": "mla", "verdict": "spills", "plan": {"block_n": 16}},
        {"schedule": "mla", "verdict": "fits", "plan": {"block_n": 64}},
        {"schedule": "mla", "verdict": "fits", "plan": {"block_n": 64}},
        {"schedule": "mla", "verdict": "fits", "plan": {"block_n": "> 3"}},
        {"schedule": "mla", "verdict": "fits"}]})",
      "t"));
  std::vector<std::vector<std::pair<std::string, std::string>>> expected = {
      {{"block_n", "64"}}};
  EXPECT_EQ(data.listFitting("mla"), expected);
  EXPECT_TRUE(data.listFitting("decode").empty());
}

TEST(PtxasData, IsShipped) {
  EXPECT_EQ(PtxasData::getShipped().getVersion(), "13.0");
  EXPECT_FALSE(PtxasData::getShipped().listFitting("tiled_d").empty());
}

/// Rows about parameters that no plan has would never hold.
TEST(PtxasData, KnowsTheParametersOfSchedules) {
  MLIRContext context;
  context.loadDialect<AttnDialect>();
  for (const auto &[name, parameter] :
       PtxasData::getShipped().listParameters()) {
    const Schedule &schedule = llvm::cantFail(lookupSchedule(name));
    EXPECT_TRUE(hasParameter(schedule, &context, parameter))
        << name << " has no parameter " << parameter;
  }
}

} // namespace
