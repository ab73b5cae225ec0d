//===- MatrixTest.cpp - wgmma, tcgen05 and tensor memory ------------------===//

#include "../MatrixKernels.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

TEST(Wgmma, SharedOperands) {
  auto kernel = [](const char *fence, const char *wait,
                   const char *registers = "wgmma.fence.sync.aligned;\n") {
    std::string s = fillShared(64 * 32 + 16 * 32) + fence + "\nbar.sync 0;\n" +
                    descriptor(10, 1024, false) +
                    descriptor(11, 1024 + 2048, false) + registers +
                    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " +
                    list("%r", 100, 8) +
                    ", %d10, %d11, 0, 1, 1, 0, 0;\n"
                    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " +
                    list("%r", 100, 8) +
                    ", %d10, %d11, 1, 1, -1, 0, 0;\n"
                    "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 " +
                    list("%r", 100, 8) +
                    ", %d10, %d11, 1, 1, 1, 0, 0;\n"
                    "wgmma.commit_group.sync.aligned;\n" +
                    wait +
                    "\nmul.wide.u32 %d2, %r0, 32;\nadd.s64 %d3, %d1, "
                    "%d2;\n";
    for (int i = 0; i < 8; i += 4)
      s += "st.global.v4.b32 [%d3+" + std::to_string(4 * i) + "], " +
           list("%r", 100 + i, 4) + ";\n";
    return s;
  };
  const char *fence = "fence.proxy.async.shared::cta;";
  const char *wait = "wgmma.wait_group.sync.aligned 0;";
  for (AsyncTiming timing : {AsyncTiming::Issue, AsyncTiming::Completion}) {
    LaunchConfig config;
    config.block = {128, 1, 1};
    config.dynamicShared = 8192;
    config.asyncReads = timing;
    auto go = [&](const std::string &body) {
      return runText(wrapKernel(body, "sm_90a"), operands(64, 16), 128 * 32,
                     config);
    };
    Outcome r = go(kernel(fence, wait));
    expectClean(r);
    for (unsigned t = 0; t < 128; ++t)
      for (unsigned i = 0; i < 8; ++i) {
        unsigned row = t / 32 * 16 + t % 32 / 4 + (i >> 1 & 1) * 8;
        unsigned col = i / 4 * 8 + t % 4 * 2 + (i & 1);
        EXPECT_EQ(r.at<float>(t * 8 + i), product(row, col))
            << row << " " << col;
      }
    expectError(go(kernel("", wait)), FindingKind::Race);
    expectError(go(kernel(fence, "")), FindingKind::InvalidOperation);
    expectError(go(kernel(fence, wait, "")), FindingKind::InvalidOperation);
    expectError(go(kernel(fence, "wgmma.wait_group.sync.aligned 1;")),
                FindingKind::InvalidOperation);
  }
}

// A warpgroup runs `body`; then its threads store registers 100 to 103.
static Outcome runAccumulators(const std::string &body) {
  LaunchConfig config;
  config.block = {128, 1, 1};
  config.dynamicShared = 8192;
  std::string store = "mul.wide.u32 %d2, %r0, 16;\nadd.s64 %d3, %d1, %d2;\n"
                      "st.global.v4.b32 [%d3], " +
                      list("%r", 100, 4) + ";\n";
  return runText(wrapKernel(body + store, "sm_90a"), operands(64, 16), 128 * 16,
                 config);
}

// Its registers are the product's until it is waited for, also where another
// product follows that adds to what was written.
TEST(Wgmma, AccumulatorsAreLeftAlone) {
  auto go = [](const std::string &before, const std::string &after) {
    std::string product =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " +
        list("%r", 100, 4) +
        ", %d10, %d11, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n";
    std::string body = fillShared(64 * 32 + 16 * 32) +
                       "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
                       descriptor(10, 1024, false) +
                       descriptor(11, 1024 + 2048, false);
    for (int i = 0; i < 4; ++i)
      body += "mov.b32 %r10" + std::to_string(i) + ", 0;\n";
    body += "wgmma.fence.sync.aligned;\n" + product + before + product + after;
    return runAccumulators(body);
  };
  std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
  std::string scale = "mul.f32 %r102, %r102, 0f40000000;\n";
  std::string clear = "mov.b32 %r103, 0;\n";
  expectClean(go("", wait));
  expectClean(go("", wait + scale + clear));
  expectClean(go(wait + scale + clear + "wgmma.fence.sync.aligned;\n", wait));
  for (const std::string &change : {scale, clear, scale + clear}) {
    Outcome between = go(change, wait), behind = go("", change + wait);
    expectError(between, FindingKind::InvalidOperation);
    EXPECT_EQ(between.report.findings.size(), 1u);
    expectError(behind, FindingKind::InvalidOperation);
    EXPECT_EQ(behind.report.findings.size(), 1u);
  }
}

// What writes an accumulator or a fragment of A comes in front of a fence; what
// only moves one may come behind.
TEST(Wgmma, RegistersAreFenced) {
  std::string fence = "wgmma.fence.sync.aligned;\n";
  std::string wait = "wgmma.wait_group.sync.aligned 0;\n";
  auto go = [&](const std::string &behindTheFence, const std::string &between) {
    std::string product =
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " +
        list("%r", 100, 4) + ", " + list("%r", 110, 4) +
        ", %d11, 1, 1, 1, 0;\nwgmma.commit_group.sync.aligned;\n" + wait;
    std::string body = fillShared(64 * 32 + 16 * 32) +
                       "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
                       descriptor(11, 1024 + 2048, false);
    for (int i = 0; i < 4; ++i)
      body += "mov.b32 %r10" + std::to_string(i) + ", 0;\nadd.s32 %r11" +
              std::to_string(i) + ", %r0, 1;\n";
    body += fence + behindTheFence + product + between + product;
    return runAccumulators(body);
  };
  std::string scale = "mul.f32 %r102, %r102, 0f40000000;\n";
  std::string fragment = "add.s32 %r112, %r112, 1;\n";
  std::string moved = "add.s32 %r120, %r112, 1;\nmov.b32 %r112, %r120;\n";
  std::string copies = "mov.b32 %r103, 0;\nmov.b32 %r120, %r101;\n"
                       "mov.b32 %r101, %r102;\nmov.b32 %r102, %r120;\n";
  expectClean(go("", ""));
  expectClean(go(copies, copies));
  for (const std::string &change : {scale, fragment, moved}) {
    expectClean(go(change + fence, change + fence));
    expectError(go(change, ""), FindingKind::InvalidOperation);
    Outcome between = go("", change);
    expectError(between, FindingKind::InvalidOperation);
    EXPECT_EQ(between.report.findings.size(), 1u);
  }
}

TEST(TensorMemory, MmaAndLoad) {
  for (AsyncTiming timing :
       {AsyncTiming::Issue, AsyncTiming::Completion, AsyncTiming::Random})
    for (Profile profile : {Profile::Hw, Profile::Isa}) {
      Outcome r =
          runTensor(tensorKernel(ProxyFence, Commit, WaitPhase0, Dealloc),
                    timing, profile);
      expectClean(r);
      for (unsigned row = 0; row < 128; ++row)
        for (unsigned n = 0; n < 32; ++n)
          ASSERT_EQ(r.at<float>(row * 32 + n), 2 * product(row, n))
              << row << " " << n;
    }
}

TEST(TensorMemory, BadTwins) {
  expectError(runTensor(tensorKernel("", Commit, WaitPhase0, Dealloc)),
              FindingKind::Race);
  expectError(
      runTensor(tensorKernel(ProxyFence, Commit, "bar.sync 0;", Dealloc)),
      FindingKind::Race);
  expectError(runTensor(tensorKernel(ProxyFence, "", WaitPhase0, Dealloc)),
              FindingKind::Deadlock);
  expectError(runTensor(tensorKernel(ProxyFence, Commit, WaitPhase0, "")),
              FindingKind::TensorMemoryMisuse);
  expectError(runTensor(tensorKernel(
                  ProxyFence, Commit, WaitPhase0,
                  "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;")),
              FindingKind::TensorMemoryMisuse);
}

namespace {

/// Warp 0 stores to tensor memory, signals, and warp 4 (the same lanes) loads.
std::string handOver(const char *wait, const char *rest) {
  return std::string(
             "mov.b32 %r1, smem;\nsetp.lt.u32 %p1, %r0, 32;\n@!%p1 bra A;\n"
             "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], "
             "32;\nA:\nbar.sync 0;\nld.shared.b32 %r10, [%r1];\n"
             "@!%p1 bra B;\nadd.s32 %r20, %r0, 100;\nadd.s32 %r21, %r0, 200;\n"
             "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r10], {%r20, %r21};\n") +
         wait +
         "\nbar.sync 1, 64;\nbra C;\nB:\nsetp.lt.u32 %p2, %r0, 128;\n"
         "@%p2 bra C;\nbar.sync 1, 64;\n"
         "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r22, %r23}, [%r10];\n" +
         rest +
         "\nC:\nbar.sync 0;\n@!%p1 bra E;\n"
         "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\nE:";
}

} // namespace

TEST(TensorMemory, StoreNeedsWait) {
  LaunchConfig config;
  config.block = {160, 1, 1};
  config.dynamicShared = 1024;
  const char *rest = "tcgen05.wait::ld.sync.aligned;\nsub.s32 %r24, %r0, 128;\n"
                     "mul.wide.u32 %d2, %r24, 8;\nadd.s64 %d3, %d1, %d2;\n"
                     "st.global.v2.b32 [%d3], {%r22, %r23};";
  Outcome r =
      runText(wrapKernel(handOver("tcgen05.wait::st.sync.aligned;", rest)), {},
              256, config);
  expectClean(r);
  EXPECT_EQ(r.at<uint32_t>(2 * 7), 107u);
  EXPECT_EQ(r.at<uint32_t>(2 * 7 + 1), 207u);
  Outcome bad = runText(wrapKernel(handOver("", rest)), {}, 256, config);
  expectError(bad, FindingKind::Race);
  EXPECT_NE(bad.text().find("tcgen05.wait::st"), std::string::npos);
  // A load whose registers nobody uses is still running at the release.
  expectError(
      runText(wrapKernel(handOver("tcgen05.wait::st.sync.aligned;", "")), {},
              256, config),
      FindingKind::Race);
}

TEST(TensorMemory, WarpsSeeTheirPartition) {
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.dynamicShared = 1024;
  expectError(
      runText(wrapKernel("mov.b32 %r1, smem;\nsetp.lt.u32 %p1, %r0, 32;\n"
                         "@!%p1 bra A;\ntcgen05.alloc.cta_group::1.sync."
                         "aligned.shared::cta.b32 [%r1], 32;\nA:\nbar.sync 0;\n"
                         "ld.shared.b32 %r10, [%r1];\n"
                         "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r22}, "
                         "[%r10];"),
              {}, 4, config),
      FindingKind::TensorMemoryMisuse);
}
