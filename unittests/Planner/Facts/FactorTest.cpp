//===- FactorTest.cpp - Calibrated numbers of the model of time -----------===//

#include "attn/Planner/Facts/Factor.h"
#include "attn/Target/Boards.h"
#include "attn/Target/TargetTable.h"
#include "llvm/ADT/StringExtras.h"
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

/// Returns all scales, with the value 1, as a file has them.
std::string listScales() {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::ListSeparator separator;
#define ATTN_PLAN_FACTOR(name, meaning)
#define ATTN_PLAN_SCALE(name, meaning)                                         \
  os << separator << "{\"name\": \"" << (name)                                 \
     << "\", \"value\": 1, \"residual\": null}";
#include "attn/Planner/Facts/Factors.def"
  return text;
}

TEST(Calibration, TakesClocksOfAnotherBoard) {
  auto parse = [](llvm::StringRef board, llvm::StringRef other,
                  llvm::StringRef factors) {
    return Calibration::parse(("{\"version\": 1, \"board\": \"" + board +
                               "\", \"clocks_of\": \"" + other +
                               "\", \"factors\": [" + factors + "]}")
                                  .str(),
                              "t");
  };
  std::string own = ", {\"name\": \"ws_pair.l2_bytes\", \"value\": 7, "
                    "\"residual\": null}";
  Calibration moon = llvm::cantFail(parse("moon", "h200", listScales() + own));
  EXPECT_EQ(moon.getValue(findFactor("ws_pair.l2_bytes")), 7);
  unsigned latency = findFactor("split_q.tile_latency");
  EXPECT_EQ(moon.getValue(latency),
            Calibration::findShipped("h200")->getValue(latency));
  // A board's own scales are nobody else's.
  EXPECT_EQ(llvm::toString(parse("moon", "h200", "").takeError()),
            "calibration t: expected a factor 'lengths.decode', got none");
  EXPECT_EQ(
      llvm::toString(parse("moon", "mars", listScales()).takeError()),
      "calibration t: expected another board with a file in 'clocks_of', got "
      "'mars'");
  EXPECT_EQ(
      llvm::toString(parse("h200", "h200", listScales()).takeError()),
      "calibration t: expected another board with a file in 'clocks_of', got "
      "'h200'");
}

TEST(Calibration, IsShippedForEachBoard) {
  EXPECT_EQ(Calibration::getUsed().getBoard(), "h200");
  for (const Board &board : getBoards()) {
    const Calibration *own = Calibration::findShipped(board.name);
    ASSERT_TRUE(own) << board.name;
    EXPECT_EQ(own->getBoard(), board.name);
    TargetRow target =
        llvm::cantFail(lookupTarget(board.chips.front(), board.name));
    CalibrationScope scope(target);
    EXPECT_EQ(&Calibration::getUsed(), own);
  }
  EXPECT_EQ(Calibration::findShipped("moon"), nullptr);
}

} // namespace
