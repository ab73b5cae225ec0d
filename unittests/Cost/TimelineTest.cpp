//===- TimelineTest.cpp - tests of traces and the cycle model -------------===//
#include "attn/Cost/Estimate.h"

#include "../Simulator/TestKernel.h"
#include "llvm/Support/JSON.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::StringRef;
using ::testing::HasSubstr;
using ::testing::Not;

static const TargetRow &getHopper() {
  return llvm::cantFail(lookupTarget("sm_90a"));
}

/// A trace of `warps` warps that execute the body of a kernel.
static Trace recordRun(StringRef body, unsigned threads, unsigned clusters = 1,
                       unsigned cluster = 1) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = {clusters * cluster, 1, 1};
  config.cluster = {cluster, 1, 1};
  config.dynamicShared = 1024;
  config.tracedClusters = clusters;
  std::vector<uint8_t> in(4096, 1);
  Outcome result = runText(wrapKernel(body), in, 4096, config);
  EXPECT_TRUE(result.report.isClean()) << result.text();
  return result.report.trace ? *result.report.trace : Trace();
}

static Timeline replayAll(const Trace &trace, unsigned resident = 8) {
  llvm::Expected<Timeline> timeline = replay(trace, getHopper(), resident);
  EXPECT_TRUE(bool(timeline)) << llvm::toString(timeline.takeError());
  return timeline ? std::move(*timeline) : Timeline();
}

TEST(Trace, RecordsInstructionsAndBarriers) {
  Trace trace = recordRun("setp.lt.u32 %p0, %r0, 32;\n@%p0 bra L;\n"
                          "ld.global.u32 %r1, [%d0];\nL: bar.sync 1, 64;\n",
                          64);
  ASSERT_EQ(trace.ctas.size(), 1u);
  ASSERT_EQ(trace.ctas[0].warps.size(), 2u);
  ASSERT_EQ(trace.tokens.size(), 1u);
  EXPECT_EQ(trace.tokens[0].name, "barrier 1");
  EXPECT_EQ(trace.tokens[0].signals, 2u);
  for (unsigned warp : {0, 1}) {
    unsigned waits = 0, signals = 0, loads = 0;
    for (const TraceEvent &event : trace.ctas[0].warps[warp].events) {
      waits += event.kind == TraceEvent::Wait;
      signals += event.kind == TraceEvent::Signal;
      if (event.kind != TraceEvent::Execute ||
          trace.instructions[event.index].cls != "ld.global")
        continue;
      ++loads;
      EXPECT_EQ(event.traffic, 1u);
      EXPECT_EQ(trace.instructions[event.index].writes.size(), 1u);
    }
    EXPECT_EQ(waits, 1u);
    EXPECT_EQ(signals, 1u);
    EXPECT_EQ(loads, warp);
  }
  // The warp without the load waits for the other one's.
  Timeline timeline = replayAll(trace);
  EXPECT_GT(timeline.stalls["barrier"], 0);
  ASSERT_EQ(timeline.barriers.size(), 1u);
}

TEST(Trace, FollowsCopiesThroughTheirMbarrier) {
  Trace trace = recordRun(
      "setp.ne.u32 %p0, %r0, 0;\nmov.u32 %r1, smem;\n@%p0 bra W;\n"
      "mbarrier.init.shared.b64 [%r1], "
      "1;\nfence.mbarrier_init.release.cluster;\n"
      "W: bar.sync 0;\n@%p0 bra L;\n"
      "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 512;\n"
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%r1+128], [%d0], 512, [%r1];\n"
      "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n@!%p1 bra L;\n"
      "ld.shared.u32 %r2, [%r1+128];\n",
      64);
  ASSERT_EQ(trace.operations.size(), 1u);
  ASSERT_EQ(trace.operations[0].tokens.size(), 1u);
  const TraceToken &token = trace.tokens[trace.operations[0].tokens[0]];
  EXPECT_THAT(token.name, HasSubstr("mbarrier of line "));
  EXPECT_EQ(token.signals, 2u);
  // Failing polls are no part of it.
  for (const WarpTrace &warp : trace.ctas[0].warps) {
    unsigned polls = 0;
    for (const TraceEvent &event : warp.events)
      polls += event.kind == TraceEvent::Execute &&
               StringRef(trace.instructions[event.index].text)
                   .starts_with("mbarrier.try_wait");
    EXPECT_EQ(polls, 1u);
  }
  Timeline timeline = replayAll(trace);
  EXPECT_GT(timeline.stalls["mbarrier"], 400);
  // A row for each warp and one for the copy.
  ASSERT_EQ(timeline.rows.size(), 3u);
  ASSERT_EQ(timeline.rows[2].spans.size(), 1u);
  EXPECT_EQ(timeline.rows[2].spans[0].activity, Activity::Copy);
}

TEST(Trace, SpreadsOverTheGrid) {
  LaunchConfig config;
  config.grid = {100, 1, 1};
  config.block = {32, 1, 1};
  config.tracedClusters = 4;
  std::vector<uint8_t> in(16);
  Outcome result = runText(wrapKernel("add.u32 %r1, %r0, 1;"), in, 16, config);
  ASSERT_TRUE(result.report.trace);
  std::vector<uint32_t> ids;
  for (const CtaTrace &cta : result.report.trace->ctas)
    ids.push_back(cta.id[0]);
  EXPECT_THAT(ids, ::testing::ElementsAre(0, 25, 50, 75));
  Trace half = selectCtas(*result.report.trace, 2);
  ASSERT_EQ(half.ctas.size(), 2u);
  EXPECT_EQ(half.ctas[1].id[0], 50u);
}

TEST(Timeline, UnitsLimitThroughput) {
  // 64 exponentials of a warp take 8 cycles each on its scheduler; of four
  // warps, on four schedulers, as long; of eight, twice as long.
  std::string body = "mov.f32 %r1, 0f3f800000;\n";
  for (unsigned i = 0; i < 64; ++i)
    body += "ex2.approx.f32 %r" + std::to_string(2 + i) + ", %r1;\n";
  double one = replayAll(recordRun(body, 32)).cycles;
  double four = replayAll(recordRun(body, 128)).cycles;
  double eight = replayAll(recordRun(body, 256)).cycles;
  EXPECT_NEAR(one, 64 * 8, 40);
  EXPECT_NEAR(four, one, 10);
  EXPECT_NEAR(eight, 128 * 8, 40);
}

TEST(Timeline, RegistersOrderInstructions) {
  std::string chain, free;
  for (unsigned i = 0; i < 32; ++i) {
    chain += "fma.rn.f32 %r1, %r1, %r1, %r1;\n";
    free += "fma.rn.f32 %r" + std::to_string(2 + i) + ", %r1, %r1, %r1;\n";
  }
  std::string start = "mov.f32 %r1, 0f3f800000;\n";
  double slow = replayAll(recordRun(start + chain, 32)).cycles;
  double fast = replayAll(recordRun(start + free, 32)).cycles;
  EXPECT_GT(slow, 32 * 4);
  EXPECT_LT(fast, 32 * 2);
}

TEST(Timeline, ResidentCtasRunTogether) {
  Trace trace =
      recordRun("ld.global.u32 %r1, [%d0];\nadd.u32 %r2, %r1, 1;\n", 32,
                /*clusters=*/4);
  double together = replayAll(trace, 4).cycles;
  double inTurn = replayAll(trace, 1).cycles;
  EXPECT_GT(inTurn, 3 * together);
}

TEST(Timeline, RefusesWhatCannotEnd) {
  Trace trace;
  trace.tokens.push_back({"barrier 0", 1});
  trace.ctas.resize(1);
  trace.ctas[0].warps.resize(1);
  trace.ctas[0].warps[0].events.push_back({TraceEvent::Wait, 0, 0, 0});
  EXPECT_EQ(llvm::toString(replay(trace, getHopper(), 1).takeError()),
            "expected a trace whose waits all end, got 1 CTAs that do not");
  trace.dropped = 3;
  EXPECT_EQ(llvm::toString(replay(trace, getHopper(), 1).takeError()),
            "expected a trace of at most 4194304 steps of a warp, got 3 more");
}

TEST(Timeline, WritesChromeTracesAndPages) {
  Timeline timeline = replayAll(recordRun(
      "ld.global.u32 %r1, [%d0];\nbar.sync 0;\nadd.u32 %r2, %r1, 1;\n", 64));
  std::string text;
  llvm::raw_string_ostream(text) << timeline.toChromeTrace();
  llvm::Expected<llvm::json::Value> parsed = llvm::json::parse(text);
  ASSERT_TRUE(bool(parsed));
  const llvm::json::Array *events =
      parsed->getAsObject()->getArray("traceEvents");
  ASSERT_TRUE(events);
  std::map<int64_t, double> ends;
  unsigned spans = 0, marks = 0;
  for (const llvm::json::Value &value : *events) {
    const llvm::json::Object &event = *value.getAsObject();
    marks += event.getString("ph") == "i";
    if (event.getString("ph") != "X")
      continue;
    ++spans;
    // Spans of one row follow each other.
    int64_t row = *event.getInteger("tid");
    EXPECT_GE(*event.getNumber("ts"), ends[row]);
    ends[row] = *event.getNumber("ts") + *event.getNumber("dur");
    EXPECT_GT(*event.getNumber("dur"), 0);
  }
  EXPECT_GT(spans, 4u);
  EXPECT_EQ(marks, 1u);
  std::string page;
  llvm::raw_string_ostream os(page);
  timeline.printHTML(os, "a < b");
  EXPECT_THAT(page, HasSubstr("<title>a &lt; b</title>"));
  EXPECT_THAT(page, HasSubstr("\"CTA (0,0,0)\""));
  EXPECT_THAT(page, HasSubstr("[\"warp 1\",["));
  EXPECT_THAT(page, Not(HasSubstr("http")));
  EXPECT_THAT(page, Not(HasSubstr("@")));
}

TEST(Estimate, ResidencyFollowsTheTightestBound) {
  LaunchShape shape;
  std::string limit;
  shape.threads = 128;
  shape.registers = 168;
  EXPECT_EQ(getResidentCtas(getHopper(), shape, limit), 3u);
  EXPECT_EQ(limit, "registers");
  shape.registers = 32;
  EXPECT_EQ(getResidentCtas(getHopper(), shape, limit), 16u);
  shape.sharedBytes = 100 * 1024;
  EXPECT_EQ(getResidentCtas(getHopper(), shape, limit), 2u);
  EXPECT_EQ(limit, "shared memory");
  shape.sharedBytes = 0;
  shape.threads = 32;
  EXPECT_EQ(getResidentCtas(getHopper(), shape, limit), 32u);
  EXPECT_EQ(limit, "CTAs");
  shape.threads = 1024;
  EXPECT_EQ(getResidentCtas(getHopper(), shape, limit), 2u);
  EXPECT_EQ(limit, "warps");
  // Few CTAs leave SMs with one each.
  shape.ctas = 100;
  EXPECT_EQ(getTracedCtas(getHopper(), shape), 1u);
  shape.ctas = 100000;
  EXPECT_EQ(getTracedCtas(getHopper(), shape), 4u);
}

TEST(Estimate, GrowsWithTheGrid) {
  std::string body;
  for (unsigned i = 0; i < 50; ++i)
    body += "fma.rn.f32 %r" + std::to_string(2 + i) + ", %r0, %r0, %r0;\n";
  Trace trace = recordRun(body, 128, 8);
  LaunchShape shape;
  shape.threads = 128;
  shape.ctas = 132;
  uint64_t each = 4 * 54;
  shape.instructions = shape.ctas * each;
  auto time = [&](uint64_t ctas) {
    shape.ctas = ctas;
    shape.instructions = ctas * each;
    auto result = estimate(trace, getHopper(), shape);
    EXPECT_TRUE(bool(result));
    return result ? result->cycles : 0;
  };
  double one = time(132), many = time(132 * 64);
  EXPECT_EQ(one, time(1));
  EXPECT_GT(many, one);
  EXPECT_GT(time(132 * 128), 1.5 * many);
}
