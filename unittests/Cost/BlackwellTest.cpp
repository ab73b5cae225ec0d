//===- BlackwellTest.cpp - the cycle model beside published figures -------===//
//
// Small kernels of PTX, each for one figure that somebody has published for
// sm_100 (docs/CycleModel.md), which the model has to meet within 3 %.
//
//===----------------------------------------------------------------------===//
#include "../Simulator/MatrixKernels.h"
#include "attn/Cost/Estimate.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::StringRef;

namespace {

const TargetRow &getTarget(StringRef chip = "sm_100a") {
  return llvm::cantFail(lookupTarget(chip));
}

Trace record(const std::string &body, LaunchConfig config) {
  config.dynamicShared = 16384;
  config.tracedClusters = 1;
  config.sanitize = false;
  std::vector<uint8_t> in(4096, 1);
  Outcome result = runText(wrapKernel(body), in, 4096, config);
  EXPECT_TRUE(result.report.isClean()) << result.text();
  return result.report.trace ? *result.report.trace : Trace();
}

Timeline replayOn(const Trace &trace, StringRef chip = "sm_100a") {
  llvm::Expected<Timeline> timeline = replay(trace, getTarget(chip), 1);
  EXPECT_TRUE(bool(timeline)) << llvm::toString(timeline.takeError());
  return timeline ? std::move(*timeline) : Timeline();
}

/// A product of each shape that was measured.
struct Shape {
  bool isShared; ///< A is in shared memory
  unsigned group, m, n;
  StringRef kind = "f16";
};

/// `count` products of a shape, a commit, and a wait for it, by one warp.
std::string productKernel(const Shape &shape, unsigned count) {
  std::string group = ".cta_group::" + std::to_string(shape.group);
  bool isPair = shape.group == 2;
  std::string sync = isPair ? "barrier.cluster.arrive.aligned;\n"
                              "barrier.cluster.wait.aligned;\n"
                            : "bar.sync 0;\n";
  uint32_t idesc = 1u << 4 | shape.n / 8 << 17 | shape.m / 16 << 24;
  std::string s =
      "mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\n"
      "mov.u32 %r20, %cluster_ctarank;\nsetp.eq.s32 %p2, %r20, 0;\n"
      "and.pred %p2, %p0, %p2;\n"
      "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
      "tcgen05.alloc" +
      group +
      ".sync.aligned.shared::cta.b32 [%r1+16], 512;\n"
      "tcgen05.relinquish_alloc_permit" +
      group + ".sync.aligned;\n" + sync + "ld.shared.b32 %r10, [%r1+16];\n" +
      descriptor(10, 1024, true) + descriptor(11, 1024 + 4096, true) +
      "mov.b32 %r11, " + std::to_string(idesc) + ";\n@!%p2 bra W;\n";
  std::string a = shape.isShared ? "%d10" : "[%r10+256]";
  for (unsigned i = 0; i < count; ++i)
    s += "tcgen05.mma" + group + ".kind::" + shape.kind.str() + " [%r10], " +
         a + ", %d11, %r11, 1;\n";
  return s + "tcgen05.commit" + group +
         ".mbarrier::arrive::one.shared::cluster.b64 [%r1];\n" + WaitPhase0 +
         "\nW:\n" + sync + "tcgen05.dealloc" + group +
         ".sync.aligned.b32 %r10, 512;\n";
}

Timeline runProducts(const Shape &shape, unsigned count) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.grid = config.cluster = {shape.group, 1, 1};
  return replayOn(record(productKernel(shape, count), config));
}

/// From the issue of the product to the wake-up of who waits for its commit.
double getLatency(const Timeline &timeline) {
  double begin = 0, end = 0;
  for (const TimelineRow &row : timeline.rows)
    for (const TimelineSpan &span : row.spans)
      if (row.warp < 0 && span.activity == Activity::Tensor)
        begin = span.begin;
  for (const TimelineBarrier &barrier : timeline.barriers)
    if (StringRef(barrier.name).starts_with("mbarrier"))
      end = barrier.time;
  CycleNumbers numbers = getCycleTable(getTarget()).getNominal();
  return end + numbers[CycleNumber::BarrierLatency] - begin;
}

/// Cycles of each product among many, and from its issue to the wake-up of who
/// waits for it, for N = 64, 80, 96, 112, 128 and 256. Measured by others on a
/// B200: SemiAnalysisAI/microbench-blackwell, umma_throughput/full.csv (the
/// 128 products by which depth 256 is longer than depth 128) and
/// umma_latency/results.csv, BF16.
struct Row {
  bool isShared;
  unsigned group, m;
  double cycles[6], latency[6];
};
constexpr unsigned widths[] = {64, 80, 96, 112, 128, 256};
const Row rows[] = {
    {true, 1, 64, {32, 40, 48, 56, 64, 128}, {152, 160, 168, 176, 184, 248}},
    {true, 1, 128, {48, 52, 56, 60, 64, 128}, {168, 176, 184, 192, 200, 264}},
    {true, 2, 128, {25, 27, 29, 30, 32, 64}, {168, 174, 180, 186, 192, 224}},
    {true,
     2,
     256,
     {43, 45.3, 49.3, 56, 64, 128},
     {197, 205, 213, 221, 229, 293}},
    {false, 1, 64, {32, 40, 48, 56, 64, 128}, {136, 144, 152, 160, 168, 232}},
    {false, 1, 128, {32, 40, 48, 56, 64, 128}, {136, 144, 152, 160, 168, 232}},
    {false, 2, 128, {17, 20, 24, 28, 32, 64}, {157, 161, 165, 169, 173, 205}},
    {false, 2, 256, {32, 40, 48, 56, 64, 128}, {165, 173, 181, 189, 197, 261}},
};

/// A warp's `body`, `count` times, on all four schedulers; cycles of one.
double getInterval(const std::string &body, unsigned count,
                   StringRef chip = "sm_100a", unsigned warps = 8) {
  LaunchConfig config;
  config.block = {32 * warps, 1, 1};
  auto time = [&](unsigned times) {
    std::string text = "mov.f32 %r1, 0f3F800000;\nmov.b64 %d3, {%r1, %r1};\n";
    for (unsigned i = 0; i < times; ++i)
      text += body;
    return replayOn(record(text, config), chip).cycles;
  };
  // A scheduler has warps / 4 of them.
  return (time(3 * count) - time(count)) / (2 * count) / (warps / 4);
}

TEST(Blackwell, ProductsByShape) {
  for (const Row &row : rows)
    for (unsigned i = 0; i < 6; ++i) {
      Shape shape = {row.isShared, row.group, row.m, widths[i]};
      SCOPED_TRACE(llvm::formatv("{0} pair {1} M {2} N {3}",
                                 row.isShared ? "SS" : "TS", row.group == 2,
                                 row.m, widths[i])
                       .str());
      double cycles =
          (runProducts(shape, 40).cycles - runProducts(shape, 8).cycles) / 32;
      EXPECT_NEAR(cycles, row.cycles[i], 0.03 * row.cycles[i]);
      EXPECT_NEAR(getLatency(runProducts(shape, 1)), row.latency[i],
                  0.03 * row.latency[i]);
    }
}

TEST(Blackwell, ProductsOfEightBits) {
  // 32 of the depth in an instruction, which takes as long as 16 of f16.
  for (const Row &row : rows)
    for (unsigned i = 0; i < 6; ++i) {
      Shape shape = {row.isShared, row.group, row.m, widths[i], "f8f6f4"};
      double cycles =
          (runProducts(shape, 40).cycles - runProducts(shape, 8).cycles) / 32;
      EXPECT_NEAR(cycles, row.cycles[i], 0.03 * row.cycles[i])
          << row.m << " x " << widths[i];
    }
}

TEST(Blackwell, ExponentialsAndPackedArithmetic) {
  // 16 lanes a cycle, 32 on sm_103a.
  std::string exp = "ex2.approx.ftz.f32 %r2, %r1;\n";
  EXPECT_NEAR(getInterval(exp, 64), 8, 0.24);
  EXPECT_NEAR(getInterval(exp, 64, "sm_103a"), 4, 0.12);
  // Two instructions where the chip has no packed one.
  std::string packed = "ex2.approx.ftz.bf16x2 %r2, %r1;\n";
  EXPECT_NEAR(getInterval(packed, 64), 16, 0.48);
  EXPECT_NEAR(getInterval(packed, 64, "sm_103a"), 4, 0.12);
  EXPECT_NEAR(getInterval("fma.rn.f32 %r2, %r1, %r1, %r1;\n", 128), 1, 0.03);
  EXPECT_NEAR(getInterval("fma.rn.f32x2 %d4, %d3, %d3, %d3;\n", 128), 2, 0.06);
  EXPECT_NEAR(getInterval("max.f32 %r2, %r1, %r1, %r1;\n", 64), 2, 0.06);
  EXPECT_NEAR(getInterval("cvt.rn.bf16x2.f32 %r2, %r1, %r1;\n", 64), 2, 0.06);
}

TEST(Blackwell, PolynomialExponentials) {
  // Two elements of degree 3: 7.45 float lanes for each, 0.96 of what the
  // special-function unit takes for one.
  std::string pair = "max.f32 %r2, %r1, 0fC2FE0000;\n"
                     "max.f32 %r3, %r1, 0fC2FE0000;\n"
                     "mov.b64 %d4, {%r2, %r3};\n"
                     "add.rm.f32x2 %d5, %d4, %d3;\n"
                     "sub.rn.f32x2 %d6, %d5, %d3;\n"
                     "sub.rn.f32x2 %d7, %d4, %d6;\n"
                     "fma.rn.f32x2 %d8, %d3, %d7, %d3;\n"
                     "fma.rn.f32x2 %d8, %d8, %d7, %d3;\n"
                     "fma.rn.f32x2 %d8, %d8, %d7, %d3;\n"
                     "mov.b64 {%r4, %r5}, %d5;\nmov.b64 {%r6, %r7}, %d8;\n";
  // Registers of its own for each shift, as compilers give them.
  unsigned next = 100;
  std::string body;
  for (unsigned i = 0; i < 8; ++i) {
    body += pair;
    for (unsigned half : {0, 1}) {
      std::string shifted = "%r" + std::to_string(next++);
      body += "shl.b32 " + shifted + ", %r" + std::to_string(4 + half) +
              ", 23;\nadd.s32 %r" + std::to_string(8 + half) + ", " + shifted +
              ", %r" + std::to_string(6 + half) + ";\n";
    }
  }
  LaunchConfig config;
  config.block = {512, 1, 1};
  Trace trace = record(
      "mov.f32 %r1, 0f3F800000;\nmov.b64 %d3, {%r1, %r1};\n" + body, config);
  Timeline timeline = replayOn(trace);
  // 16 elements of four warps on each scheduler.
  EXPECT_NEAR(timeline.busy["fma"] / 64, 7.45, 0.03 * 7.45);
  EXPECT_NEAR(timeline.busy["fma"] / 64 / 8, 0.96, 0.03 * 0.96);
  // The shift is one instruction with the addition.
  EXPECT_NEAR(timeline.busy["issue"] / 64, 4.9, 0.2);
}

TEST(Blackwell, TensorMemoryByWidth) {
  // 128 bytes a cycle of each quarter.
  auto load = [](StringRef shape, unsigned repeat, unsigned registers) {
    return "tcgen05.ld.sync.aligned." + shape.str() + ".x" +
           std::to_string(repeat) + ".b32 " + list("%r", 100, registers) +
           ", [%r10];\n";
  };
  auto busy = [&](const std::string &body) {
    LaunchConfig config;
    config.block = {32, 1, 1};
    Trace trace = record(
        "mov.b32 %r1, smem;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 512;\n"
        "ld.shared.b32 %r10, [%r1];\n" +
            body +
            "tcgen05.wait::ld.sync.aligned;\ntcgen05.dealloc.cta_group::1."
            "sync.aligned.b32 %r10, 512;\n",
        config);
    return 4 * replayOn(trace).busy["tmem"];
  };
  EXPECT_EQ(busy(load("32x32b", 32, 32)), 32);
  EXPECT_EQ(busy(load("32x32b", 4, 4)), 4);
  EXPECT_EQ(busy(load("16x256b", 4, 16)), 16);
  EXPECT_EQ(busy(load("16x128b", 8, 16)), 16);
}

TEST(Blackwell, RecordsWhatAProductUses) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.grid = config.cluster = {2, 1, 1};
  Trace trace = record(productKernel({true, 2, 256, 128}, 1), config);
  ASSERT_EQ(trace.operations.size(), 2u);
  const TraceWork &work = trace.operations[0].work;
  EXPECT_EQ(work.kind, TraceWork::Product);
  EXPECT_THAT(work.ranks, ::testing::ElementsAre(0, 1));
  EXPECT_EQ(work.rows, 128u);
  EXPECT_EQ(work.columns, 128u);
  EXPECT_EQ(work.bytesOfA, 4096u);
  EXPECT_EQ(work.sharedBytes, 4096u + 2048u);
  EXPECT_EQ(trace.operations[1].work.kind, TraceWork::Commit);
  // Both SMs are at work.
  EXPECT_EQ(replayOn(trace).busy["tensor"], 64);
}

} // namespace
