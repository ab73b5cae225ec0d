//===- CpAsyncTest.cpp - Waits for copies that threads issue --------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

TEST(CpAsync, NeedsWaitAndBarrier) {
  auto kernel = [](llvm::StringRef wait) {
    return ("shl.b32 %r1, %r0, 4;\nmov.b32 %r2, smem;\nadd.s32 %r3, %r2, %r1;\n"
            "mul.wide.u32 %d2, %r0, 16;\nadd.s64 %d3, %d0, %d2;\n"
            "cp.async.cg.shared.global [%r3], [%d3], 16;\n"
            "cp.async.commit_group;\n" +
            wait +
            "\nxor.b32 %r4, %r1, 512;\nadd.s32 %r5, %r2, %r4;\n"
            "ld.shared.b32 %r6, [%r5];\n")
        .str();
  };
  for (AsyncTiming timing :
       {AsyncTiming::Issue, AsyncTiming::Completion, AsyncTiming::Random}) {
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.dynamicShared = 1024;
    config.asyncWrites = timing;
    auto go = [&](llvm::StringRef wait) {
      return runText(wrapKernel(kernel(wait)), std::vector<uint8_t>(1024), 4,
                     config);
    };
    expectClean(go("cp.async.wait_group 0;\nbar.sync 0;"));
    expectClean(go("cp.async.wait_all;\nbar.sync 0;"));
    expectOnly(go("cp.async.wait_group 1;\nbar.sync 0;"), FindingKind::Race);
    expectOnly(go("cp.async.wait_group 0;"), FindingKind::Race);
    expectOnly(go("bar.sync 0;\ncp.async.wait_group 0;"), FindingKind::Race);
  }
}

TEST(CpAsync, GroupsOfBranches) {
  // Lanes of one branch issue both groups before those of the other issue one.
  auto go = [](llvm::StringRef wait) {
    std::string copies = "cp.async.cg.shared.global [%r3], [%d3], 16;\n"
                         "cp.async.commit_group;\n"
                         "cp.async.cg.shared.global [%r3+1024], [%d3], 16;\n"
                         "cp.async.commit_group;\n";
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.dynamicShared = 2048;
    return runText(
        wrapKernel("shl.b32 %r1, %r0, 4;\nmov.b32 %r2, smem;\n"
                   "add.s32 %r3, %r2, %r1;\nmul.wide.u32 %d2, %r0, 16;\n"
                   "add.s64 %d3, %d0, %d2;\nand.b32 %r4, %r0, 16;\n"
                   "setp.eq.u32 %p0, %r4, 0;\n@%p0 bra LOW;\n" +
                   copies + "bra JOIN;\nLOW:\n" + copies +
                   "JOIN:\nbar.warp.sync -1;\n" + wait.str() +
                   "\nxor.b32 %r4, %r1, 512;\nadd.s32 %r5, %r2, %r4;\n"
                   "ld.shared.b32 %r6, [%r5];\ncp.async.wait_all;\n"),
        std::vector<uint8_t>(1024), 4, config);
  };
  expectClean(go("cp.async.wait_group 1;\nbar.sync 0;"));
  expectOnly(go("cp.async.wait_group 2;\nbar.sync 0;"), FindingKind::Race);
  expectOnly(go("cp.async.wait_group 1;"), FindingKind::Race);
  expectOnly(go("bar.sync 0;\ncp.async.wait_group 1;"), FindingKind::Race);
}

TEST(CpAsync, EachLaneWaitsForItself) {
  auto go = [](llvm::StringRef guard) {
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.dynamicShared = 512;
    return runText(
        wrapKernel(("shl.b32 %r1, %r0, 4;\nmov.b32 %r2, smem;\n"
                    "add.s32 %r3, %r2, %r1;\nmul.wide.u32 %d2, %r0, 16;\n"
                    "add.s64 %d3, %d0, %d2;\nsetp.lt.u32 %p0, %r0, 16;\n"
                    "cp.async.cg.shared.global [%r3], [%d3], 16;\n"
                    "cp.async.commit_group;\n" +
                    guard +
                    "cp.async.wait_group 0;\nld.shared.b32 %r6, [%r3];\n"
                    "cp.async.wait_all;\n")
                       .str()),
        std::vector<uint8_t>(512), 4, config);
  };
  expectClean(go(""));
  expectOnly(go("@%p0 "), FindingKind::Race);
}
