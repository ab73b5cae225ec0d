//===- EstimateTest.cpp - tests of estimates and their corners ------------===//
#include "attn/Cost/Estimate.h"

#include "../Simulator/TestKernel.h"
#include "attn/Cost/Registers.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::StringRef;
using ::testing::HasSubstr;

namespace {

const TargetRow &targetOf(StringRef chip) {
  return llvm::cantFail(lookupTarget(chip));
}

Trace recordBody(StringRef body, unsigned threads, unsigned clusters = 1,
                 unsigned cluster = 1) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = {clusters * cluster, 1, 1};
  config.cluster = {cluster, 1, 1};
  config.dynamicShared = 1024;
  config.tracedClusters = clusters;
  std::vector<uint8_t> in(4096, 1);
  Outcome result = runText(wrapKernel(body.str()), in, 4096, config);
  EXPECT_TRUE(result.report.isClean()) << result.text();
  return result.report.trace ? *result.report.trace : Trace();
}

Estimate estimateOn(const Trace &trace, StringRef chip, bool corners = false) {
  LaunchShape shape;
  shape.threads = 32;
  shape.clusterSize = trace.getClusterSize();
  shape.ctas = trace.ctas.size();
  shape.instructions = 100;
  auto result = estimate(trace, targetOf(chip), shape, corners);
  EXPECT_TRUE(bool(result)) << llvm::toString(result.takeError());
  return result ? std::move(*result) : Estimate();
}

std::string printed(const Estimate &estimate) {
  std::string text;
  llvm::raw_string_ostream os(text);
  estimate.print(os);
  return text;
}

/// A report as attn-sim writes it.
std::string report(const Estimate &estimate) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::json::Value(llvm::json::Object{{"estimate", estimate.toJSON()}});
  return text;
}

std::string compare(StringRef first, StringRef second) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::Error error = compareEstimates("a", first, "b", second, os);
  return error ? "error: " + llvm::toString(std::move(error)) : text;
}

std::string repeat(StringRef line, unsigned count) {
  std::string text;
  for (unsigned i = 0; i < count; ++i)
    text += line;
  return text;
}

TEST(Estimate, SaysWhetherTheChipWasMeasured) {
  Trace trace =
      recordBody("ld.global.u32 %r1, [%d0];\nadd.u32 %r2, %r1, 1;\n", 32);
  Estimate hopper = estimateOn(trace, "sm_90a");
  EXPECT_TRUE(hopper.error);
  EXPECT_FALSE(hopper.range);
  EXPECT_THAT(printed(hopper), HasSubstr("on an H200 kernels"));
  for (StringRef chip : {"sm_80", "sm_89", "sm_100a", "sm_103a"}) {
    Estimate other = estimateOn(trace, chip);
    EXPECT_FALSE(other.error);
    ASSERT_TRUE(other.range);
    EXPECT_LE(other.range->low, other.cycles);
    EXPECT_GT(other.range->high, other.cycles);
    EXPECT_THAT(printed(other), HasSubstr("not measured on this chip"));
    EXPECT_THAT(printed(other), HasSubstr("over the believed numbers"));
  }
}

TEST(Estimate, CornersAreAllChoicesOfWhatMatters) {
  Trace trace = recordBody(repeat("max.f32 %r1, %r1, %r0;\n", 64), 256);
  Estimate result = estimateOn(trace, "sm_100a", /*corners=*/true);
  ASSERT_TRUE(result.corners);
  const Corners &corners = *result.corners;
  std::vector<StringRef> keys;
  size_t count = 1;
  for (const CornerAxis &axis : corners.axes) {
    keys.push_back(getCycleKey(axis.number));
    count *= axis.values.size();
  }
  // Nothing touches tensor memory.
  EXPECT_THAT(keys, ::testing::ElementsAre("alu_lanes", "latency_factor"));
  EXPECT_EQ(corners.cycles.size(), count);
  EXPECT_EQ(corners.cycles.front(), result.cycles);
  EXPECT_EQ(corners.getName(0), "nominal");
  EXPECT_EQ(corners.getName(3), "alu_lanes=128 latency_factor=1.5");
  // Twice the lanes, more than half of the time.
  EXPECT_LT(corners.cycles[2], corners.cycles[0]);
  EXPECT_THAT(printed(result), HasSubstr("alu_lanes: 64:"));
}

TEST(Estimate, ComparisonSaysWhatDecides) {
  auto vary = [](StringRef body) {
    return report(estimateOn(recordBody(body, 256), "sm_100a", true));
  };
  std::string few = vary(repeat("max.f32 %r1, %r0, %r0;\n", 300));
  std::string many = vary(repeat("max.f32 %r1, %r0, %r0;\n", 400));
  std::string floats = vary(repeat("fma.rn.f32 %r1, %r0, %r0, %r0;\n", 450));
  EXPECT_THAT(compare(few, many), HasSubstr("a is faster in all 4 corners"));
  EXPECT_THAT(compare(many, few), HasSubstr("a is slower in all 4 corners"));
  // Half of the lanes make 400 maxima as long as 800 of these.
  std::string text = compare(many, floats);
  EXPECT_THAT(text, HasSubstr("a is faster in 2 of 4 corners, slower in 2"));
  EXPECT_THAT(text, HasSubstr("alu_lanes decides: a is faster in 0 of 2 with "
                              "64, a is faster in 2 of 2 with 128"));
}

TEST(Estimate, WhatDecidesIsBehindAllThatIsSlower) {
  // Both numbers leave the same corner to the second; only with one of its
  // values is the first faster everywhere.
  auto report = [](StringRef cycles) {
    return ("{\"estimate\":{\"chip\":\"sm_100a\",\"corners\":{\"axes\":["
            "{\"number\":\"alu_lanes\",\"values\":[64,128]},"
            "{\"number\":\"l2_bytes\",\"values\":[64,39]},"
            "{\"number\":\"copy_latency\",\"values\":[370,650]}],"
            "\"cycles\":[" +
            cycles + "]}}}")
        .str();
  };
  std::string text =
      compare(report("5,5,6,5,5,5,5,7"), report("6,6,5,6,6,6,6,6"));
  EXPECT_THAT(text, HasSubstr("a is faster in 6 of 8 corners"));
  EXPECT_THAT(text, HasSubstr("l2_bytes decides: a is faster in 4 of 4 with "
                              "64, a is faster in 2 of 4 with 39"));
}

TEST(Estimate, ComparisonRefusesWhatIsNoPair) {
  Trace trace = recordBody("add.u32 %r2, %r0, 1;\n", 32);
  std::string one = report(estimateOn(trace, "sm_100a", true));
  EXPECT_EQ(compare(one, "{}"),
            "error: b: expected a report of --estimate --vary --json on one "
            "kernel, got none");
  EXPECT_EQ(compare(report(estimateOn(trace, "sm_100a")), one),
            "error: a: expected a report of --estimate --vary --json on one "
            "kernel, got none");
  EXPECT_EQ(compare(one, report(estimateOn(trace, "sm_103a", true))),
            "error: expected two estimates of one chip, got sm_100a and "
            "sm_103a");
  EXPECT_THAT(compare(one, "{"), HasSubstr("error: b: "));
  std::string broken = one;
  size_t at = broken.find("\"cycles\":[") + 10;
  broken.insert(at, "1,");
  EXPECT_THAT(compare(broken, one), HasSubstr("a: expected cycles of "));
  std::string zero = one;
  zero.replace(at, zero.find_first_of(",]", at) - at, "0");
  EXPECT_EQ(compare(zero, one), "error: a: expected positive cycles");
  std::string other = one;
  other.replace(other.find("1.5"), 3, "1.7");
  EXPECT_THAT(
      compare(one, other),
      HasSubstr("b: expected the values of latency_factor that a has, got "
                "others: they are of different versions of the model"));
}

TEST(Estimate, RefusesInstructionsThatTheChipLacks) {
  Trace trace = recordBody("fma.rn.f32x2 %d4, %d0, %d0, %d0;\n", 32);
  LaunchShape shape;
  auto result = estimate(trace, targetOf("sm_90a"), shape);
  ASSERT_FALSE(bool(result));
  EXPECT_THAT(llvm::toString(result.takeError()),
              HasSubstr("expected a chip with f32x2 (sm_100) for an estimate "
                        "of \"fma.rn.f32x2"));
}

TEST(Estimate, CtasOfAClusterHaveSmsOfTheirOwn) {
  // Each CTA waits for the other one: on one SM that holds one CTA the second
  // could never start.
  std::string body = "barrier.cluster.arrive.aligned;\n"
                     "barrier.cluster.wait.aligned;\n" +
                     repeat("fma.rn.f32 %r1, %r0, %r0, %r0;\n", 200);
  Trace pair = recordBody(body, 32, /*clusters=*/3, /*cluster=*/2);
  EXPECT_EQ(pair.getClusterSize(), 2u);
  auto timeline = replay(pair, targetOf("sm_90a"), /*resident=*/1);
  ASSERT_TRUE(bool(timeline)) << llvm::toString(timeline.takeError());
  Trace one =
      recordBody(repeat("fma.rn.f32 %r1, %r0, %r0, %r0;\n", 200), 32, 3);
  auto alone = replay(one, targetOf("sm_90a"), 1);
  ASSERT_TRUE(bool(alone));
  // Both at once, with what the barriers cost.
  double numbers = getCycleTable(targetOf("sm_90a"))
                       .getNominal()[CycleNumber::RemoteLatency];
  EXPECT_GT(timeline->cycles, alone->cycles + 3 * numbers);
  EXPECT_LT(timeline->cycles, alone->cycles + 3 * numbers + 200);
  Trace two = selectCtas(pair, 2);
  EXPECT_EQ(two.ctas.size(), 4u);
  for (const TraceToken &token : two.tokens)
    EXPECT_LT(token.cta, 4);
}

TEST(Registers, AreReadFromDirectives) {
  StringRef ptx = ".visible .entry other(.param .u64 p)\n{\nret;\n}\n"
                  ".visible .entry k(.param .u64 p)\n"
                  ".reqntid 512, 1, 1\n.minnctapersm 1\n{\n"
                  "setmaxnreg.inc.sync.aligned.u32 184;\nret;\n}\n";
  const TargetRow &target = targetOf("sm_100a");
  RegisterDirectives found = readRegisterDirectives(ptx, "k");
  EXPECT_EQ(found.threads, 512u);
  EXPECT_EQ(found.minCtas, 1u);
  EXPECT_TRUE(found.isDynamic);
  EXPECT_EQ(found.getMost(target), 128u);
  EXPECT_EQ(found.describe(), ".reqntid or .maxntid 512, .minnctapersm 1");
  RegisterDirectives none = readRegisterDirectives(ptx, "other");
  EXPECT_EQ(none.describe(), "none");
  EXPECT_EQ(none.getMost(target), 255u);
  EXPECT_FALSE(none.isDynamic);
  // 65536 / 384 threads, in steps of 8.
  RegisterDirectives three;
  three.threads = 384;
  EXPECT_EQ(three.getMost(target), 168u);
  three.maxRegisters = 128;
  EXPECT_EQ(three.getMost(target), 128u);
}

} // namespace
