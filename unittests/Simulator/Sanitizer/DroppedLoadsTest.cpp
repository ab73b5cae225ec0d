//===- DroppedLoadsTest.cpp - Races of loads that nobody needs ------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// Two warps load in[0]; warp 0 stores to it. `use` is what warp 1 does with
/// what it has loaded, in %r1; in %p1 are the lanes of warp 0.
std::string makeInPlace(llvm::StringRef use, bool storesFirst) {
  std::string load = "ld.global.u32 %r1, [%d0];\n";
  std::string store = "add.u32 %r2, %r1, 1;\n@%p1 st.global.u32 [%d0], %r2;\n";
  std::string body = "setp.lt.u32 %p1, %r0, 32;\nsetp.ge.u32 %p2, %r0, 32;\n";
  body += load;
  // Warps advance one after the other, up to a barrier.
  body += storesFirst ? store : "bar.sync 0;\n" + store;
  return wrapKernel(body + use.str());
}

Outcome runInPlace(llvm::StringRef use, bool storesFirst, bool strict = false) {
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.strict = strict;
  return runText(makeInPlace(use, storesFirst), bytesOf<uint32_t>({1}), 256,
                 config);
}

TEST(DroppedLoads, CountWithoutStrict) {
  Outcome r = runInPlace("", true);
  expectClean(r);
  EXPECT_GT(r.report.droppedLoadRaces, 0u);
  Outcome strict = runInPlace("", true, true);
  expectError(strict, FindingKind::Race);
  EXPECT_EQ(strict.report.droppedLoadRaces, 0u);
}

TEST(DroppedLoads, ThroughRegistersOfTheLane) {
  Outcome r = runInPlace("mul.lo.u32 %r3, %r1, 3;\nxor.b32 %r4, %r3, %r1;\n"
                         "@%p1 st.global.u32 [%d1], %r4;",
                         true);
  expectClean(r);
}

TEST(DroppedLoads, ValuesThatAreUsed) {
  const char *const uses[] = {
      // A store, also behind arithmetic and behind another lane.
      "@%p2 st.global.u32 [%d1], %r1;",
      "cvt.u64.u32 %d3, %r1;\nshl.b64 %d3, %d3, 1;\n"
      "@%p2 st.global.u64 [%d1], %d3;",
      "shfl.sync.idx.b32 %r3, %r1, 0, 31, -1;\n"
      "setp.eq.u32 %p3, %r0, 35;\n@%p3 st.global.u32 [%d1], %r3;",
      // Shared memory, an address, a branch, and a guard that does not pass.
      "@%p2 st.shared.u32 [smem], %r1;",
      "and.b32 %r3, %r1, 4;\ncvt.u64.u32 %d3, %r3;\nadd.u64 %d3, %d1, %d3;\n"
      "@%p2 st.global.u32 [%d3], %r0;",
      "setp.eq.u32 %p3, %r1, 77;\n@%p3 bra DONE;\nDONE:",
      "setp.eq.u32 %p3, %r1, 77;\n@%p3 st.global.u32 [%d1], %r0;",
      "@%p2 atom.global.add.u32 %r3, [%d1], %r1;",
  };
  for (const char *use : uses) {
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.strict = false;
    config.dynamicShared = 16;
    for (bool storesFirst : {true, false}) {
      Outcome r = runText(makeInPlace(use, storesFirst), bytesOf<uint32_t>({1}),
                          256, config);
      EXPECT_TRUE(r.error.empty()) << r.error;
      // Behind the barrier the store comes after the load.
      if (storesFirst)
        EXPECT_GE(r.report.countErrors(FindingKind::Race), 1u) << use << '\n'
                                                               << r.text();
    }
  }
}

TEST(DroppedLoads, StoresBehindTheLoad) {
  // Warp 1 loads, then warp 0 stores: nothing orders them.
  const char body[] = "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra STORE;\n"
                      "ld.global.u32 %r1, [%d0];\nUSE\nbra DONE;\nSTORE:\n"
                      "nanosleep.u32 100;\nst.global.u32 [%d0], %r0;\nDONE:";
  for (bool isUsed : {false, true}) {
    std::string text = body;
    text.replace(text.find("USE"), 3,
                 isUsed ? "st.global.u32 [%d1], %r1;" : "");
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.strict = false;
    for (uint64_t seed = 0; seed < 8; ++seed) {
      config.schedule = Schedule::Random;
      config.seed = seed;
      Outcome r =
          runText(wrapKernel(text), bytesOf<uint32_t>({1}), 256, config);
      EXPECT_EQ(r.report.countErrors(FindingKind::Race) != 0, isUsed)
          << r.text();
      EXPECT_EQ(r.report.droppedLoadRaces != 0, !isUsed);
    }
  }
}

TEST(DroppedLoads, OfOtherCtas) {
  // Each CTA stores in[ctaid] and loads in[0], which all but the first drop.
  const char body[] =
      "mov.u32 %r5, %ctaid.x;\nmul.wide.u32 %d2, %r5, 4;\n"
      "add.u64 %d2, %d0, %d2;\nld.global.u32 %r1, [%d0];\n"
      "setp.eq.u32 %p1, %r5, 0;\nLIMIT\n@%p1 st.global.u32 [%d2], %r1;";
  for (bool isUsed : {false, true}) {
    std::string text = body;
    text.replace(text.find("LIMIT"), 5,
                 isUsed ? "setp.lt.u32 %p1, %r5, 2;" : "");
    LaunchConfig config;
    config.grid = {4, 1, 1};
    config.block = {32, 1, 1};
    config.strict = false;
    for (unsigned threads : {1, 2}) {
      config.threads = threads;
      Outcome r = runText(wrapKernel(text), bytesOf<uint32_t>({1, 2, 3, 4}),
                          256, config);
      EXPECT_EQ(r.report.countErrors(FindingKind::Race) != 0, isUsed)
          << r.text();
    }
  }
}

} // namespace
