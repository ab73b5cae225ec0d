//===- ProfileTest.cpp - What each assumption grants ----------------------===//
//
// Each assumption of docs/Simulator.md has a kernel that needs it: an error
// under the isa profile, clean with the assumption granted, clean under hw; and
// a twin that the manual orders.
//
//===----------------------------------------------------------------------===//

#include "../MatrixKernels.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

constexpr uint16_t bitOf(Assumption a) { return 1u << (unsigned(a) - 1); }
constexpr uint16_t allBut(Assumption a) {
  return ((1u << numAssumptions) - 1) & ~bitOf(a);
}

/// Runs under a profile and assumptions.
using Go = llvm::function_ref<Outcome(Profile, uint16_t)>;

/// The kernel is wrong without the assumption and only without it.
void expectNeeds(Assumption a, FindingKind kind, Go go) {
  expectError(go(Profile::Isa, 0), kind);
  expectError(go(Profile::Isa, allBut(a)), kind);
  Outcome granted = go(Profile::Isa, bitOf(a));
  EXPECT_TRUE(granted.report.isClean()) << granted.text();
  Outcome hw = go(Profile::Hw, 0);
  EXPECT_TRUE(hw.report.isClean()) << hw.text();
}

LaunchConfig configFor(unsigned threads, Profile profile, uint16_t assumptions,
                       unsigned ctas = 1) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = config.cluster = {ctas, 1, 1};
  config.dynamicShared = 16384;
  config.profile = profile;
  config.assumptions = assumptions;
  return config;
}

/// Two products: D at column 0 first, then one with A or D elsewhere. The
/// second overwrites what the first reads as A unless `second` says otherwise.
std::string twoProducts(const char *first, const char *second,
                        const char *commits) {
  return "mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\n"
         "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
         "@%p0 mbarrier.init.shared.b64 [%r1+8], 1;\n"
         "setp.lt.u32 %p7, %r0, 32;\n@!%p7 bra A;\n"
         "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+16], "
         "128;\nA:\n" +
         fillShared(128 * 32 + 32 * 32) +
         "fence.proxy.async.shared::cta;\nbar.sync 0;\n"
         "tcgen05.fence::after_thread_sync;\nld.shared.b32 %r10, [%r1+16];\n" +
         descriptor(10, 1024, true) + descriptor(11, 1024 + 4096, true) +
         "add.s32 %r12, %r10, 64;\nmov.b32 %r11, " +
         std::to_string(1u << 4 | 4u << 17 | 8u << 24) + ";\n@!%p0 bra W;\n" +
         first + "\n" + second + "\n" + commits +
         "\nW:\nL: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
         "@!%p1 bra L;\nbar.sync 0;\n@!%p7 bra E;\n"
         "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 128;\nE:";
}
constexpr const char *IntoS =
    "tcgen05.mma.cta_group::1.kind::f16 [%r10], %d10, %d11, %r11, 0;";
constexpr const char *ReadsS =
    "tcgen05.mma.cta_group::1.kind::f16 [%r12], [%r10], %d11, %r11, 0;";

} // namespace

TEST(Profile, A1ProductsRunInOrder) {
  auto go = [](const char *first, const char *second, Profile profile,
               uint16_t assumptions) {
    return runText(wrapKernel(twoProducts(first, second, Commit)),
                   operands(128, 32), 4, configFor(128, profile, assumptions));
  };
  // One product reads as A what another accumulator receives.
  expectNeeds(Assumption::MmaOrder, FindingKind::Race,
              [&](Profile p, uint16_t a) { return go(IntoS, ReadsS, p, a); });
  // Products of one accumulator are a pipeline of the manual.
  expectClean(go(IntoS, IntoS, Profile::Isa, 0));
}

TEST(Profile, A2CommitsArriveInOrder) {
  // Nobody waits for the commit to the second barrier; the one that is waited
  // for comes before or after it.
  std::string unwaited = Commit;
  unwaited.replace(unwaited.find("[%r1]"), 5, "[%r1+8]");
  auto go = [&](const std::string &commits, Profile profile,
                uint16_t assumptions) {
    return runText(wrapKernel(twoProducts(IntoS, IntoS, commits.c_str())),
                   operands(128, 32), 4, configFor(128, profile, assumptions));
  };
  std::string covered = unwaited + "\n" + Commit;
  expectNeeds(Assumption::CommitOrder, FindingKind::ExitInFlight,
              [&](Profile p, uint16_t a) { return go(covered, p, a); });
  // After it, not even the order helps.
  expectError(go(Commit + ("\n" + unwaited), Profile::Hw, 0),
              FindingKind::ExitInFlight);
}

TEST(Profile, A3UsedLoadsHaveRead) {
  // Warp 0 loads from tensor memory and uses the value, then warp 4, which has
  // the same lanes, stores there.
  auto go = [](const char *wait, Profile profile, uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\nsetp.lt.u32 %p1, %r0, 32;\n@!%p1 bra A;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;\n"
        "A:\nbar.sync 0;\nld.shared.b32 %r10, [%r1];\n@!%p1 bra B;\n"
        "mov.b32 %r22, 1;\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r22};\n"
        "tcgen05.wait::st.sync.aligned;\n"
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r22}, [%r10];\n" +
        std::string(wait) +
        "\nadd.s32 %r23, %r22, 1;\ntcgen05.fence::before_thread_sync;\n"
        "bar.sync 1, 64;\nbra C;\nB:\nsetp.lt.u32 %p2, %r0, 128;\n"
        "@%p2 bra C;\nbar.sync 1, 64;\ntcgen05.fence::after_thread_sync;\n"
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r0};\n"
        "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
        "C:\nbar.sync 0;\n@!%p1 bra E;\n"
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\nE:";
    return runText(wrapKernel(body), {}, 4,
                   configFor(160, profile, assumptions));
  };
  expectNeeds(Assumption::LoadUse, FindingKind::Race,
              [&](Profile p, uint16_t a) { return go("", p, a); });
  expectClean(go("tcgen05.wait::ld.sync.aligned;", Profile::Isa, 0));
}

TEST(Profile, A3RegistersAreAwaited) {
  // Whoever has the cells: the registers of a load hold it after wait::ld.
  auto go = [](const std::string &use, Profile profile, uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\n"
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;\n"
        "bar.sync 0;\nld.shared.b32 %r10, [%r1];\n"
        "tcgen05.st.sync.aligned.32x32b.x2.b32 [%r10], {%r0, %r0};\n"
        "tcgen05.wait::st.sync.aligned;\n"
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r22, %r23}, [%r10];\n" +
        use +
        "tcgen05.wait::ld.sync.aligned;\nadd.s32 %r25, %r22, %r23;\n"
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
    return runText(wrapKernel(body), {}, 4,
                   configFor(32, profile, assumptions));
  };
  for (const char *use :
       {"add.s32 %r24, %r23, 1;\n", "mov.b32 %r24, %r22;\n",
        "mov.b32 %r23, 0;\n", "setp.eq.s32 %p1, %r22, 1;\n",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r23}, [%r10];\n",
        "st.shared.b32 [%r1+16], %r22;\n"}) {
    expectNeeds(Assumption::LoadUse, FindingKind::InvalidOperation,
                [&](Profile p, uint16_t a) { return go(use, p, a); });
    // One report for a load, which names it and the assumption.
    Outcome r =
        go(use + std::string("add.s32 %r26, %r22, 1;\n"), Profile::Isa, 0);
    EXPECT_EQ(r.report.findings.size(), 1u) << r.text();
    EXPECT_NE(r.text().find("assumption A3"), std::string::npos) << r.text();
    ASSERT_TRUE(r.report.findings[0].first);
    EXPECT_EQ(r.report.findings[0].first->text.rfind("tcgen05.ld", 0), 0u);
  }
  expectClean(go("add.s32 %r24, %r0, 1;\n", Profile::Isa, 0));
}

TEST(Profile, A4SignalsReachTheCluster) {
  // CTA 1 reads what CTA 0 holds, uses it and arrives there; then CTA 0
  // overwrites it.
  auto go = [](const char *arrive, const char *wait, Profile profile,
               uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
        "setp.eq.s32 %p0, %r0, 0;\nsetp.eq.s32 %p1, %r2, 0;\n"
        "@%p0 mbarrier.init.shared.b64 [%r1], 32;\n"
        "shl.b32 %r5, %r0, 2;\nadd.s32 %r6, %r1, %r5;\n"
        "st.shared.b32 [%r6+64], 7;\n"
        "@%p0 fence.mbarrier_init.release.cluster;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@%p1 bra C;\n"
        "mov.b32 %r3, 0;\nmapa.shared::cluster.u32 %r4, %r1, %r3;\n"
        "add.s32 %r7, %r4, %r5;\nld.shared::cluster.b32 %r8, [%r7+64];\n"
        "add.s32 %r8, %r8, 1;\n" +
        std::string(arrive) + " _, [%r4];\nbra E;\nC:\nL: " + wait +
        " %p2, [%r1], 0;\n@!%p2 bra L;\n"
        "st.shared.b32 [%r6+64], %r0;\nld.shared.b32 %r7, [%r6+64];\n"
        "mul.wide.u32 %d2, %r0, 4;\nadd.s64 %d3, %d1, %d2;\n"
        "st.global.b32 [%d3], %r7;\nE:\nbarrier.cluster.arrive;\n"
        "barrier.cluster.wait;";
    return runText(wrapKernel(body), {}, 128,
                   configFor(32, profile, assumptions, 2));
  };
  const char *arrive = "mbarrier.arrive.shared::cluster.b64";
  const char *arriveCluster =
      "mbarrier.arrive.release.cluster.shared::cluster.b64";
  const char *wait = "mbarrier.try_wait.parity.shared.b64";
  const char *waitCluster =
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64";
  const char *pairs[][2] = {
      {arrive, wait}, {arriveCluster, wait}, {arrive, waitCluster}};
  for (const auto &pair : pairs)
    expectNeeds(Assumption::ClusterScope, FindingKind::Race,
                [&](Profile p, uint16_t bits) {
                  return go(pair[0], pair[1], p, bits);
                });
  Outcome good = go(arriveCluster, waitCluster, Profile::Isa, 0);
  expectClean(good);
  EXPECT_EQ(good.at<uint32_t>(9), 9u);
}

TEST(Profile, A4CopiesOfAPeer) {
  // CTA 1 sends four bytes a thread; their signal has cluster scope, so the
  // wait decides.
  auto go = [](const char *wait, Profile profile, uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
        "setp.eq.s32 %p0, %r0, 0;\nsetp.eq.s32 %p1, %r2, 0;\n"
        "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
        "@%p0 fence.mbarrier_init.release.cluster;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@%p1 bra C;\n"
        "mov.b32 %r3, 0;\nmapa.shared::cluster.u32 %r4, %r1, %r3;\n"
        "shl.b32 %r5, %r0, 2;\nadd.s32 %r6, %r4, %r5;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
        "[%r6+64], %r0, [%r4];\nbra E;\nC:\n"
        "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 128;\nL: " +
        std::string(wait) +
        " %p2, [%r1], 0;\n@!%p2 bra L;\nshl.b32 %r5, %r0, 2;\n"
        "add.s32 %r6, %r1, %r5;\nld.shared.b32 %r7, [%r6+64];\nE:\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;";
    return runText(wrapKernel(body), {}, 4,
                   configFor(32, profile, assumptions, 2));
  };
  expectNeeds(Assumption::ClusterScope, FindingKind::Race,
              [&](Profile p, uint16_t a) {
                return go("mbarrier.try_wait.parity.shared.b64", p, a);
              });
  expectClean(go("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
                 Profile::Isa, 0));
}

TEST(Profile, A5FencesOfTensorMemory) {
  auto go = [](const char *after, const char *before, Profile profile,
               uint16_t assumptions) {
    return runTensor(
        tensorKernel(ProxyFence, Commit, WaitPhase0, Dealloc, after, before),
        AsyncTiming::Completion, profile, assumptions);
  };
  expectNeeds(Assumption::NoTensorFence, FindingKind::Race,
              [&](Profile p, uint16_t a) { return go("", FenceBefore, p, a); });
  expectNeeds(Assumption::NoTensorFence, FindingKind::Race,
              [&](Profile p, uint16_t a) { return go(FenceAfter, "", p, a); });
  expectClean(go(FenceAfter, FenceBefore, Profile::Isa, 0));
}

TEST(Profile, A6OverwriteThroughTheAsyncProxy) {
  // A generic read, a barrier, a bulk copy into the same bytes.
  auto go = [](const char *fence, Profile profile, uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\nshl.b32 %r2, %r0, 2;\n"
        "add.s32 %r3, %r1, %r2;\nst.shared.b32 [%r3+64], %r0;\n"
        "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n" +
        std::string(fence) +
        "\nbar.sync 0;\n@!%p0 bra W;\n"
        "mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 128;\n"
        "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
        "[%r1+64], [%d0], 128, [%r1];\nW:\n" +
        WaitPhase0;
    return runText(wrapKernel(body), std::vector<uint8_t>(128), 4,
                   configFor(32, profile, assumptions));
  };
  Outcome isa = go("", Profile::Isa, 0);
  ASSERT_EQ(isa.report.findings.size(), 1u) << isa.text();
  EXPECT_EQ(isa.report.findings[0].severity, Severity::HwOnly);
  expectClean(go("", Profile::Isa, bitOf(Assumption::NoProxyFenceWar)));
  expectClean(go("", Profile::Hw, 0));
  expectClean(go("fence.proxy.async.shared::cta;", Profile::Isa, 0));
}

TEST(Profile, A7LanesOfAWarp) {
  auto go = [](const char *sync, Profile profile, uint16_t assumptions) {
    return runText(
        wrapKernel("shl.b32 %r1, %r0, 2;\nmov.b32 %r2, smem;\n"
                   "add.s32 %r3, %r2, %r1;\nst.shared.b32 [%r3], %r0;\n" +
                   std::string(sync) +
                   "\nxor.b32 %r4, %r1, 4;\nadd.s32 %r5, %r2, %r4;\n"
                   "ld.shared.b32 %r6, [%r5];"),
        {}, 4, configFor(32, profile, assumptions));
  };
  expectNeeds(Assumption::WarpLockstep, FindingKind::Race,
              [&](Profile p, uint16_t a) { return go("", p, a); });
  expectClean(go("bar.warp.sync -1;", Profile::Isa, 0));
}

TEST(Profile, A8EqualValues) {
  auto go = [](const char *value, Profile profile, uint16_t assumptions) {
    return runText(wrapKernel("mov.b32 %r2, smem;\nsetp.eq.s32 %p1, %r0, 0;\n"
                              "setp.eq.s32 %p2, %r0, 32;\n"
                              "or.pred %p1, %p1, %p2;\n"
                              "@%p1 st.shared.b32 [%r2], " +
                              std::string(value) + ";"),
                   {}, 4, configFor(64, profile, assumptions));
  };
  Outcome isa = go("7", Profile::Isa, 0);
  ASSERT_EQ(isa.report.findings.size(), 1u) << isa.text();
  EXPECT_EQ(isa.report.findings[0].severity, Severity::HwOnly);
  expectClean(go("7", Profile::Isa, bitOf(Assumption::SameValue)));
  expectClean(go("7", Profile::Hw, 0));
  expectError(go("%r0", Profile::Hw, 0), FindingKind::Race);
  // Rows of matrices too.
  auto rows = [](const char *value, Profile profile, uint16_t assumptions) {
    return runText(wrapKernel("mov.b32 %r2, smem;\nand.b32 %r3, %r0, 7;\n"
                              "mad.lo.u32 %r3, %r3, 16, %r2;\nmov.b32 %r4, " +
                              std::string(value) +
                              ";\nstmatrix.sync.aligned.m8n8.x1.shared.b16 "
                              "[%r3], {%r4};"),
                   {}, 4, configFor(64, profile, assumptions));
  };
  EXPECT_EQ(rows("7", Profile::Isa, 0).report.findings[0].severity,
            Severity::HwOnly);
  expectClean(rows("7", Profile::Isa, bitOf(Assumption::SameValue)));
  expectClean(rows("7", Profile::Hw, 0));
  expectError(rows("%r0", Profile::Hw, 0), FindingKind::Race);
}

TEST(Profile, A8IsNoneForAsynchronousWrites) {
  // cp.async and a store of the same value: until the wait the copy may still
  // come, whatever it brings.
  auto go = [](const char *wait) {
    LaunchConfig config = configFor(32, Profile::Hw, 0);
    config.asyncWrites = AsyncTiming::Issue;
    std::vector<uint32_t> in(32, 7);
    return runText(
        wrapKernel("mov.b32 %r2, smem;\nshl.b32 %r3, %r0, 2;\n"
                   "add.s32 %r3, %r2, %r3;\nmul.wide.u32 %d2, %r0, 4;\n"
                   "add.s64 %d3, %d0, %d2;\n"
                   "cp.async.ca.shared.global [%r3], [%d3], 4;\n"
                   "cp.async.commit_group;\n" +
                   std::string(wait) +
                   "mov.b32 %r4, 7;\nst.shared.b32 [%r3], %r4;\n"
                   "cp.async.wait_group 0;"),
        bytesOf(in), 4, config);
  };
  expectClean(go("cp.async.wait_group 0;\n"));
  expectError(go(""), FindingKind::Race);
}

TEST(Profile, A9SignalsToAnInvalidatedBarrier) {
  // CTA 0 invalidates its barrier while CTA 1 may still signal it.
  auto go = [](const char *sync, Profile profile, uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
        "setp.eq.s32 %p0, %r0, 0;\nsetp.eq.s32 %p1, %r2, 0;\n"
        "@%p0 mbarrier.init.shared.b64 [%r1], 32;\n"
        "@%p0 fence.mbarrier_init.release.cluster;\n"
        "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@%p1 bra C;\n"
        "mov.b32 %r3, 0;\nmapa.shared::cluster.u32 %r4, %r1, %r3;\n"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];\nC:\n" +
        std::string(sync) +
        "\n@%p1 bra I;\nbra E;\nI:\n@%p0 mbarrier.inval.shared.b64 [%r1];\n"
        "E:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;";
    return runText(wrapKernel(body), {}, 4,
                   configFor(32, profile, assumptions, 2));
  };
  Outcome isa = go("", Profile::Isa, 0);
  EXPECT_FALSE(isa.report.isClean()) << isa.text();
  Outcome granted = go("", Profile::Isa, bitOf(Assumption::LateSignal));
  EXPECT_TRUE(granted.report.isClean()) << granted.text();
  ASSERT_FALSE(granted.report.findings.empty());
  EXPECT_EQ(granted.report.findings[0].severity, Severity::Note);
  EXPECT_TRUE(go("", Profile::Hw, 0).report.isClean());
  expectClean(
      go("barrier.cluster.arrive;\nbarrier.cluster.wait;", Profile::Isa, 0));
}

TEST(Profile, A10CopiesWithoutAProxyFence) {
  // cp.async, its wait, a barrier, and a bulk store of the same bytes.
  auto go = [](const char *fill, const char *fence, Profile profile,
               uint16_t assumptions) {
    std::string body =
        "mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\nshl.b32 %r2, %r0, 2;\n"
        "add.s32 %r3, %r1, %r2;\nmul.wide.u32 %d2, %r0, 4;\n"
        "add.s64 %d3, %d0, %d2;\n" +
        std::string(fill) + "\n" + fence +
        "\nbar.sync 0;\n@!%p0 bra W;\n"
        "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1], 128;\n"
        "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nW:";
    return runText(wrapKernel(body), std::vector<uint8_t>(128), 128,
                   configFor(32, profile, assumptions));
  };
  const char *copy = "cp.async.ca.shared.global [%r3], [%d3], 4;\n"
                     "cp.async.commit_group;\ncp.async.wait_group 0;";
  const char *fence = "fence.proxy.async.shared::cta;";
  Outcome isa = go(copy, "", Profile::Isa, 0);
  ASSERT_EQ(isa.report.findings.size(), 1u) << isa.text();
  EXPECT_EQ(isa.report.findings[0].severity, Severity::HwOnly);
  expectClean(go(copy, "", Profile::Isa, bitOf(Assumption::CopyProxy)));
  expectClean(go(copy, "", Profile::Hw, 0));
  expectClean(go(copy, fence, Profile::Isa, 0));
  // A copy that nobody has waited for, and a plain store, are errors.
  expectError(go("cp.async.ca.shared.global [%r3], [%d3], 4;\n"
                 "cp.async.commit_group;",
                 "", Profile::Hw, 0),
              FindingKind::Race);
  expectError(go("st.shared.b32 [%r3], %r0;", "", Profile::Hw, 0),
              FindingKind::Race);
}

TEST(Profile, A11ResultsMovedBeforeTheWait) {
  auto go = [](const std::string &before, const std::string &after,
               Profile profile, uint16_t assumptions) {
    std::string body =
        fillShared(64 * 32 + 16 * 32) +
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
        descriptor(10, 1024, false) + descriptor(11, 1024 + 2048, false) +
        "wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " +
        list("%r", 100, 4) +
        ", %d10, %d11, 0, 1, 1, 0, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " +
        list("%r", 100, 4) +
        ", %d10, %d11, 1, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n" +
        before + "\nwgmma.wait_group.sync.aligned 0;\n" + after +
        "\nmul.wide.u32 %d2, %r0, 16;\nadd.s64 %d3, %d1, %d2;\n"
        "st.global.v4.b32 [%d3], " +
        list("%r", 110, 4) + ";\n";
    LaunchConfig config = configFor(128, profile, assumptions);
    config.asyncReads = config.asyncWrites = AsyncTiming::Completion;
    return runText(wrapKernel(body, "sm_90a"), operands(64, 16), 128 * 16,
                   config);
  };
  std::string pairs = "mov.b64 %d20, {%r100, %r101};\n"
                      "mov.b64 {%r110, %r111}, %d20;\n";
  std::string moves = pairs + "mov.b32 %r112, %r102;\n"
                              "mov.b32 {%h1, %h2}, %r103;\n"
                              "mov.b32 %r113, {%h1, %h2};";
  auto expectProduct = [](const Outcome &r) {
    expectClean(r);
    for (unsigned t = 0; t < 128; ++t)
      for (unsigned i = 0; i < 4; ++i)
        EXPECT_EQ(r.at<float>(t * 4 + i),
                  2 * product(t / 32 * 16 + t % 32 / 4 + (i >> 1) * 8,
                              t % 4 * 2 + (i & 1)))
            << t << " " << i;
  };
  expectNeeds(Assumption::MovedResult, FindingKind::InvalidOperation,
              [&](Profile p, uint16_t a) { return go(moves, "", p, a); });
  expectProduct(go(moves, "", Profile::Hw, 0));
  expectProduct(go("", moves, Profile::Isa, 0));
  // Only moves: what computes with it comes after the wait.
  expectError(go("add.f32 %r110, %r100, 0f00000000;",
                 "mov.b32 %r111, 0;\nmov.b32 %r112, 0;\nmov.b32 %r113, 0;",
                 Profile::Hw, 0),
              FindingKind::InvalidOperation);
}

TEST(Profile, A12WaitsOfSingleWarps) {
  auto go = [](const std::string &extra, Profile profile,
               uint16_t assumptions) {
    std::string body =
        fillShared(64 * 32 + 16 * 32) +
        "fence.proxy.async.shared::cta;\nbar.sync 0;\n" +
        descriptor(10, 1024, false) + descriptor(11, 1024 + 2048, false) +
        "setp.lt.u32 %p5, %r0, 32;\n"
        "wgmma.fence.sync.aligned;\n"
        "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 " +
        list("%r", 100, 4) +
        ", %d10, %d11, 0, 1, 1, 0, 0;\nwgmma.commit_group.sync.aligned;\n" +
        extra + "\nwgmma.wait_group.sync.aligned 0;\n" +
        "mul.wide.u32 %d2, %r0, 16;\nadd.s64 %d3, %d1, %d2;\n"
        "st.global.v4.b32 [%d3], " +
        list("%r", 100, 4) + ";\n";
    return runText(wrapKernel(body, "sm_90a"), operands(64, 16), 128 * 16,
                   configFor(128, profile, assumptions));
  };
  uint16_t a12 = bitOf(Assumption::OwnWait);
  std::string wait = "@!%p5 bra W;\nwgmma.wait_group.sync.aligned 0;\nW:";
  expectClean(go("", Profile::Isa, 0));
  expectClean(go(wait, Profile::Hw, 0));
  expectClean(go(wait, Profile::Isa, a12));
  expectError(go(wait, Profile::Isa, 0), FindingKind::InvalidOperation);
  // Nothing grants another product, commit or fence.
  for (std::string extra :
       {"wgmma.commit_group.sync.aligned;", "wgmma.fence.sync.aligned;"})
    expectError(go("@!%p5 bra W;\n" + extra + "\nW:\nwgmma.fence.sync.aligned;",
                   Profile::Hw, 0),
                FindingKind::InvalidOperation);
}
