//===- FactorTest.cpp - Calibrated numbers of the model of time -----------===//

#include "attn/Planner/Facts/Factor.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

namespace {

std::string getError(llvm::StringRef text) {
  return llvm::toString(Calibration::parse(text, "t").takeError());
}

std::string getFactorError(llvm::StringRef factors) {
  return getError(
      ("{\"version\": 1, \"board\": \"h200\", \"factors\": [" + factors + "]}")
          .str());
}

TEST(Calibration, ErrorsNameThePlace) {
  EXPECT_EQ(getError("[]"), "calibration t: expected version 1, a board and an "
                            "array \"factors\"");
  EXPECT_EQ(getFactorError("3"),
            "calibration t: factors[0]: expected an object "
            "with a name and a value");
  EXPECT_EQ(getFactorError("{\"name\": \"moon.phase\", \"value\": 1}"),
            "calibration t: factors[0]: expected a residual of factor "
            "'moon.phase', a number of at least 0 or null");
  EXPECT_EQ(getFactorError("{\"name\": \"moon.phase\", \"value\": 1, "
                           "\"residual\": -1}"),
            "calibration t: factors[0]: expected a residual of factor "
            "'moon.phase', a number of at least 0 or null");
  EXPECT_EQ(getFactorError("{\"name\": \"moon.phase\", \"value\": 1, "
                           "\"residual\": null}"),
            "calibration t: factors[0]: unknown factor 'moon.phase'");
  std::string first = "{\"name\": \"" + std::string(kFactorNames[0]) +
                      "\", \"value\": 1, \"residual\": 0.1}";
  EXPECT_EQ(getFactorError(first + ", " + first),
            "calibration t: factors[1]: factor '" +
                std::string(kFactorNames[0]) + "' stands there twice");
  EXPECT_EQ(getFactorError(first), "calibration t: expected a factor '" +
                                       std::string(kFactorNames[1]) +
                                       "', got none");
}

TEST(Calibration, IsShipped) {
  EXPECT_EQ(Calibration::getShipped().getBoard(), "h200");
}

} // namespace
