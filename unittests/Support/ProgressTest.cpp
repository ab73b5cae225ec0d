//===- ProgressTest.cpp - How far a long computation is -------------------===//

#include "attn/Support/ProgressBar.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

TEST(Progress, ReportsPhases) {
  std::vector<std::string> seen;
  std::vector<double> left;
  auto note = [&](const ProgressState &state) {
    seen.push_back(state.phase.str());
    left.push_back(state.secondsLeft);
    return true;
  };
  ProgressMeter meter(note, /*clock=*/[] { return 100.0; });
  EXPECT_TRUE(meter.begin("first", 10, 5));
  // Too early for the next report.
  EXPECT_TRUE(meter.update(0.5));
  EXPECT_TRUE(meter.begin("second"));
  EXPECT_EQ(seen, (std::vector<std::string>{"first", "second"}));
  EXPECT_EQ(left[0], 15);
  EXPECT_LT(left[1], 0);
  EXPECT_FALSE(bool(meter.takeError()));
}

TEST(Progress, UsesThePace) {
  static double now;
  now = 100;
  double left = -1;
  auto note = [&](const ProgressState &state) {
    left = state.secondsLeft;
    return true;
  };
  ProgressMeter meter(note, /*clock=*/[] { return now; });
  meter.begin("phase", 1000, 3);
  EXPECT_EQ(left, 1003);
  // Too early for the next report.
  now += 0.0625;
  meter.update(0.25);
  EXPECT_EQ(left, 1003);
  // Too early for a pace.
  now += 0.25;
  meter.update(0.5);
  EXPECT_EQ(left, 1003 - 0.3125);
  now += 0.6875;
  meter.update(0.25);
  EXPECT_EQ(left, 3 + 3);
  // So little is done that it says nothing of the pace.
  now += 1;
  meter.update(0.0078125);
  EXPECT_EQ(left, 1003 - 2);
}

TEST(Progress, Stops) {
  unsigned calls = 0;
  ProgressMeter meter([&](const ProgressState &) { return ++calls < 2; });
  EXPECT_TRUE(meter.begin("first"));
  EXPECT_FALSE(meter.begin("second"));
  EXPECT_FALSE(meter.update(1));
  EXPECT_EQ(calls, 2u);
  llvm::Error error = meter.takeError();
  EXPECT_TRUE(error.isA<StoppedError>());
  EXPECT_EQ(llvm::toString(std::move(error)), "stopped by the caller");
  ProgressMeter silent;
  EXPECT_TRUE(silent.begin("phase"));
  EXPECT_TRUE(silent.update(0.5));
}

TEST(Progress, FormatsDurations) {
  EXPECT_EQ(formatDuration(12.4), "12 s");
  EXPECT_EQ(formatDuration(120), "2 min");
  EXPECT_EQ(formatDuration(2 * 3600), "2.0 h");
}

TEST(ProgressBar, LinesWithoutATerminal) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ProgressBar bar(os, "attn-sim", /*isTerminal=*/false);
  bar.show({"reference", 0, 30}, 0);
  bar.show({"reference", 0.5, 15}, 1.9);
  EXPECT_EQ(text, "");
  bar.show({"simulation", 0.25, 90}, 2.1);
  bar.show({"simulation", 0.3, 80}, 5);
  EXPECT_EQ(text, "simulation:  25 %, 2 min left\n");
  text.clear();
  bar.show({"corner 1 of 8", -1, -1}, 13);
  EXPECT_EQ(text, "corner 1 of 8: running\n");
  text.clear();
  bar.show({"simulation", 0.97, -1, "lines 15 to 17 repeat"}, 25);
  EXPECT_EQ(text, "simulation:  97 %, lines 15 to 17 repeat\n");
}

TEST(ProgressBar, BarOnATerminal) {
  std::string text;
  llvm::raw_string_ostream os(text);
  {
    ProgressBar bar(os, "attn-sim", /*isTerminal=*/true, /*columns=*/80);
    bar.show({"simulation", 0.5, 12}, 1);
    EXPECT_EQ(text, "");
    bar.show({"simulation", 0.5, 12}, 3);
    EXPECT_EQ(text, "\rsimulation     [###############---------------]  50 %, "
                    "12 s left");
    text.clear();
    bar.show({"simulation", 0.6, -1}, 4);
    // Blanks wipe what was longer.
    EXPECT_EQ(text, "\rsimulation     [##################------------]  60 %"
                    "           ");
    text.clear();
  }
  EXPECT_EQ(text, "\r" + std::string(53, ' ') + "\r");
}

TEST(ProgressBar, FitsTheTerminal) {
  ProgressState state{"simulation", 0.97, 50,
                      "lines 15 to 17 repeat, 3 % of the step limit"};
  auto show = [&](unsigned columns) {
    std::string text;
    llvm::raw_string_ostream os(text);
    ProgressBar bar(os, "attn-sim", /*isTerminal=*/true, columns);
    bar.show(state, 3);
    return std::string(text);
  };
  EXPECT_EQ(show(120), "\rsimulation     [#############################-]  97 "
                       "%, 50 s left, lines 15 to 17 repeat, 3 % of the step "
                       "limit");
  for (unsigned columns = 1; columns < 130; ++columns)
    EXPECT_LT(show(columns).size(), columns + 1) << columns;
  EXPECT_EQ(show(40), "\rsimulation     [###############-]  97 %");
  EXPECT_EQ(show(25), "\rsimulation 97 %, 50 s le");
  state.detail = "";
  EXPECT_EQ(show(40), "\rsimulation     [####-]  97 %, 50 s left");
}

TEST(ProgressBar, WarnsBeforeLongRuns) {
  std::string text;
  llvm::raw_string_ostream os(text);
  ProgressBar bar(os, "attn-sim", /*isTerminal=*/false);
  bar.show({"inputs", 0, 1800}, 0);
  EXPECT_EQ(text, "attn-sim: warning: the run takes about 30 min; a smaller "
                  "problem ends sooner\n");
  bar.show({"reference", 0, 1800}, 0.1);
  EXPECT_EQ(text.find("warning"), text.rfind("warning"));
}
