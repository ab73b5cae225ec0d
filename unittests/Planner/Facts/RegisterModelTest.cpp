//===- RegisterModelTest.cpp - tests of the model of registers ------------===//

#include "attn/Planner/Facts/RegisterModel.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

namespace {

std::string getModelError(llvm::StringRef text) {
  return llvm::toString(RegisterModel::parse(text, "t").takeError());
}

std::string getTermError(llvm::StringRef term) {
  return getModelError(
      ("{\"version\": 1, \"ptxas\": \"13.0\", \"kernels\": {\"k\": "
       "{\"terms\": [" +
       term + "]}}}")
          .str());
}

TEST(RegisterModel, ErrorsNameThePlace) {
  EXPECT_EQ(getModelError("[]"),
            "register model t: the whole: expected version 1, "
            "ptxas and an object \"kernels\"");
  EXPECT_EQ(getModelError("{\"version\": 1, \"ptxas\": \"13.0\", \"kernels\": "
                          "{\"k\": 1}}"),
            "register model t: kernels.k: expected an object with an array "
            "\"terms\"");
  EXPECT_EQ(getTermError("1"),
            "register model t: kernels.k.terms[0]: expected an object");
  EXPECT_EQ(getTermError("{\"term\": \"o\"}"),
            "register model t: kernels.k.terms[0]: expected a term's name and "
            "a weight");
  EXPECT_EQ(
      getTermError("{\"term\": \"o\", \"weight\": 1, \"of\": [\"moon\"]}"),
      "register model t: kernels.k.terms[0].of: expected a feature of "
      "RegisterFeatures.def, got 'moon'");
  EXPECT_EQ(
      getTermError("{\"term\": \"o\", \"weight\": 1, \"count\": \"moon\"}"),
      "register model t: kernels.k.terms[0].count: expected a feature of "
      "RegisterFeatures.def, got 'moon'");
  EXPECT_EQ(getTermError("{\"term\": \"o\", \"weight\": 1, \"when\": 3}"),
            "register model t: kernels.k.terms[0].when: expected an object");
  EXPECT_EQ(getTermError("{\"term\": \"o\", \"weight\": 1, \"any\": "
                         "[{\"s\": 1.5}]}"),
            "register model t: kernels.k.terms[0].any.s: expected a value, "
            "[least, most], \"any\" or a comparison such as \">= 64\", got "
            "1.5");
  EXPECT_EQ(
      getModelError("{\"version\": 1, \"ptxas\": \"13.0\", \"kernels\": {}}"),
      "register model t: the whole: expected an array \"limits\"");
}

std::string getLimitError(const llvm::Twine &limits) {
  return getModelError(
      ("{\"version\": 1, \"ptxas\": \"13.0\", \"kernels\": {}, "
       "\"limits\": [" +
       limits + "]}")
          .str());
}

std::string makeLimit(llvm::StringRef name) {
  return ("{\"name\": \"" + name + "\", \"value\": 8}").str();
}

TEST(RegisterModel, HasAllLimits) {
  std::string first = makeLimit(kRegisterLimitNames[0]);
  EXPECT_EQ(getLimitError("{\"name\": \"decode.columns\", \"value\": \"x\"}"),
            "register model t: limits[0]: expected an object with a name and "
            "an integer value");
  EXPECT_EQ(getLimitError(makeLimit("moon.phase")),
            "register model t: limits[0]: unknown limit 'moon.phase'");
  EXPECT_EQ(getLimitError(first + ", " + first),
            "register model t: limits[1]: limit '" +
                std::string(kRegisterLimitNames[0]) + "' stands there twice");
  EXPECT_EQ(getLimitError(first), "register model t: the whole: expected a "
                                  "limit '" +
                                      std::string(kRegisterLimitNames[1]) +
                                      "', got none");
}

TEST(RegisterModel, AddsTermsThatHold) {
  std::string limits;
  for (llvm::StringRef name : kRegisterLimitNames)
    limits += (limits.empty() ? "" : ", ") + makeLimit(name);
  RegisterModel model = llvm::cantFail(RegisterModel::parse(
      "{\"version\": 1, \"ptxas\": \"13.0\", \"limits\": [" + limits +
          R"(],
          "kernels": {"k": {"terms": [
        {"term": "o", "weight": 0.5, "of": ["o"], "count": "row_groups"},
        {"term": "other", "weight": 7},
        {"term": "other", "weight": 2, "of": ["s", "p"], "most": 5},
        {"term": "pages", "weight": 24, "when": {"pages": 1}},
        {"term": "slices", "weight": 9,
         "any": [{"slices": ">= 4"}, {"sliced": 1, "masked": 1}]}]}}})",
      "t"));
  EXPECT_EQ(model.getVersion(), "13.0");
  EXPECT_EQ(model.getLimit("decode.columns"), 8);
  RegisterFeatures features;
  features.o = 32;
  features.rowGroups = 2;
  features.s = 2;
  features.p = 4;
  EXPECT_EQ(model.count("k", features).str(), "49 (o 2 x 16 + other 17)");
  features.isPaged = 1;
  features.isSliced = features.isMasked = 1;
  EXPECT_EQ(model.count("k", features).str(),
            "82 (o 2 x 16 + other 17 + pages 24 + slices 9)");
  EXPECT_EQ(model.count("k", features, "pages").getTotal(), 24);
}

TEST(RegisterModel, IsShipped) {
  const RegisterModel &model = RegisterModel::getUsed();
  EXPECT_EQ(model.getVersion(), "13.0");
  RegisterFeatures features;
  features.o = 64;
  for (const char *kernel :
       {"copied", "self_load", "ws_columns", "ws_pair", "ws_tmem", "ws_wgmma"})
    EXPECT_GT(model.count(kernel, features).getTotal(), 0) << kernel;
  for (llvm::StringRef limit : kRegisterLimitNames)
    EXPECT_GT(model.getLimit(limit), 0) << limit.str();
}

} // namespace
