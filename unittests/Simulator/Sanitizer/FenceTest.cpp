//===- FenceTest.cpp - What each qualifier of a fence orders --------------===//
//
// Good and bad twins that differ in a fence alone.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// Warp 0 writes a word and raises a flag, warp 1 waits for the flag and uses
/// the word; both accesses of the flag are relaxed, so that the fences alone
/// order the word.
struct Message {
  std::string release = "fence.release.cta;", acquire = "fence.acquire.cta;";
  /// Where the word is, and what warp 1 does with it.
  std::string word = "shared", address = "%r1+128";
  std::string use = "ld.shared.b32 %r4, [%r1+128];\n"
                    "st.global.b32 [%d1+64], %r4;\n";

  void inGlobalMemory() {
    word = "global";
    address = "%d1";
    use = "ld.global.b32 %r4, [%d1];\nst.global.b32 [%d1+64], %r4;\n";
  }
  void byBulkStore() {
    use = "cp.async.bulk.global.shared::cta.bulk_group [%d1], [%r1+128], 16;\n"
          "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  }
  Outcome go() const {
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.dynamicShared = 1024;
    return runText(
        wrapKernel("mov.b32 %r1, smem;\nsetp.lt.u32 %p1, %r0, 32;\n"
                   "setp.eq.u32 %p2, %r0, 0;\nsetp.eq.u32 %p3, %r0, 32;\n"
                   "mov.b32 %r2, 0;\nmov.b32 %r5, 5;\n"
                   "@%p2 st.shared.b32 [%r1], %r2;\n"
                   "@%p3 st.shared.v4.b32 [%r1+128], {%r2, %r2, %r2, %r2};\n"
                   "@%p3 st.global.b32 [%d1], %r2;\n"
                   "fence.proxy.async;\nbar.sync 0;\n"
                   "@%p1 bra W;\n@!%p3 bra E;\n"
                   "L: ld.relaxed.cta.shared.b32 %r3, [%r1];\n"
                   "setp.eq.u32 %p4, %r3, 0;\n@%p4 bra L;\n" +
                   acquire + "\n" + use + "bra E;\nW: @!%p2 bra E;\nst." +
                   word + ".b32 [" + address + "], %r5;\n" + release +
                   "\nst.relaxed.cta.shared.b32 [%r1], 1;\nE:"),
        {}, 256, config);
  }
};

const char *restrictedRelease =
    "fence.release.sync_restrict::shared::cta.cluster;";
const char *restrictedAcquire =
    "fence.acquire.sync_restrict::shared::cluster.cluster;";

} // namespace

TEST(Fence, Directions) {
  Message m;
  Outcome r = m.go();
  expectClean(r);
  EXPECT_EQ(r.at<uint32_t>(16), 5u);
  for (const char *both : {"fence.cta;", "fence.acq_rel.cta;", "fence.sc.cta;",
                           "membar.cta;", "membar.gl;"}) {
    m.release = m.acquire = both;
    expectClean(m.go());
  }
  m = Message();
  m.release = "fence.acquire.cta;";
  expectError(m.go(), FindingKind::Race);
  m = Message();
  m.acquire = "fence.release.cta;";
  expectError(m.go(), FindingKind::Race);
  // Of proxies, but not between threads.
  for (const char *proxy :
       {"fence.proxy.alias;", "membar.proxy.alias;", "fence.proxy.async;",
        "fence.mbarrier_init.release.cluster;"}) {
    m = Message();
    m.release = proxy;
    expectError(m.go(), FindingKind::Race);
  }
  m = Message();
  m.release = "fence.proxy.tensormap::generic.release.cta;";
  m.acquire = "fence.proxy.tensormap::generic.acquire.cta [%d1], 128;";
  expectClean(m.go());
  std::swap(m.release, m.acquire);
  expectError(m.go(), FindingKind::Race);
}

TEST(Fence, RestrictedToSharedMemory) {
  Message m;
  m.release = restrictedRelease;
  m.acquire = restrictedAcquire;
  expectClean(m.go());
  m.inGlobalMemory();
  expectError(m.go(), FindingKind::Race);
  m.release = "fence.release.cta;";
  expectError(m.go(), FindingKind::Race);
  m.release = restrictedRelease;
  m.acquire = "fence.acquire.cta;";
  expectError(m.go(), FindingKind::Race);
  m.release = "fence.release.cta;";
  expectClean(m.go());
  // What a restricted fence leaves out, a later one may acquire.
  m.acquire = std::string(restrictedAcquire) + "\nfence.acquire.cta;";
  expectClean(m.go());
}

TEST(Fence, IntoTheAsyncProxy) {
  Message m;
  m.byBulkStore();
  expectError(m.go(), FindingKind::Race);
  m.acquire += "\nfence.proxy.async;";
  expectClean(m.go());
  m.acquire = "fence.acquire.cta;\nfence.proxy.async.shared::cta;";
  expectClean(m.go());
  m.acquire = "fence.acquire.cta;\nfence.proxy.async.shared::cluster;";
  expectClean(m.go());
  m.acquire = "fence.acquire.cta;\nfence.proxy.async.global;";
  expectError(m.go(), FindingKind::Race);
  m.release = "fence.proxy.async::generic.release.sync_restrict::shared::cta."
              "cluster;";
  m.acquire = "fence.proxy.async::generic.acquire.sync_restrict::shared::"
              "cluster.cluster;";
  expectClean(m.go());
  m.acquire = restrictedAcquire;
  expectError(m.go(), FindingKind::Race);
}

TEST(Fence, SpacesOfTheAsyncProxy) {
  // A word of global memory is written and then copied by the engine.
  auto go = [](const std::string &fence) {
    LaunchConfig config;
    config.dynamicShared = 1024;
    return runText(
        wrapKernel(
            "mov.b32 %r1, smem;\nmbarrier.init.shared.b64 [%r1], 1;\n"
            "fence.mbarrier_init.release.cluster;\nmov.b32 %r2, 5;\n"
            "st.global.v4.b32 [%d1], {%r2, %r2, %r2, %r2};\n" +
            fence +
            "\nmbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 16;\n"
            "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes "
            "[%r1+64], [%d1], 16, [%r1];\n"
            "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
            "@!%p1 bra L;"),
        {}, 256, config);
  };
  expectClean(go("fence.proxy.async;"));
  expectClean(go("fence.proxy.async.global;"));
  expectError(go(""), FindingKind::Race);
  expectError(go("fence.proxy.async.shared::cta;"), FindingKind::Race);
  expectError(go("fence.proxy.async.shared::cluster;"), FindingKind::Race);
}

TEST(Fence, SharedMemoryOfThePeer) {
  // CTA 0 writes into CTA 1, which stores that by the engine.
  auto go = [](const char *before, const char *after) {
    LaunchConfig config;
    config.grid = config.cluster = {2, 1, 1};
    config.dynamicShared = 1024;
    return runText(
        wrapKernel("mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
                   "setp.eq.u32 %p1, %r2, 0;\nmov.b32 %r3, 1;\n"
                   "mov.b32 %r5, 5;\n@!%p1 bra B;\n"
                   "mapa.shared::cluster.u32 %r4, %r1, %r3;\n"
                   "st.shared::cluster.v4.b32 [%r4], {%r5, %r5, %r5, %r5};\n" +
                   std::string(before) +
                   "\nB: barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                   "@%p1 bra E;\n" +
                   after +
                   "\ncp.async.bulk.global.shared::cta.bulk_group [%d1], "
                   "[%r1], 16;\ncp.async.bulk.commit_group;\n"
                   "cp.async.bulk.wait_group 0;\nE:"),
        {}, 256, config);
  };
  expectClean(go("fence.proxy.async;", ""));
  expectClean(go("fence.proxy.async.shared::cluster;", ""));
  expectClean(go("", "fence.proxy.async.shared::cta;"));
  expectError(go("", ""), FindingKind::Race);
  expectError(go("fence.proxy.async.shared::cta;", ""), FindingKind::Race);
  expectError(go("", "fence.proxy.async.global;"), FindingKind::Race);
}

TEST(Fence, FormsThatDoNotExist) {
  auto errorOf = [](const char *fence) {
    auto program = parsePTX(wrapKernel(fence), "test.ptx");
    return program ? "" : llvm::toString(program.takeError());
  };
  auto expectMessage = [&](const char *fence, const char *message) {
    EXPECT_NE(errorOf(fence).find(message), std::string::npos)
        << fence << ": " << errorOf(fence);
  };
  expectMessage("fence.proxy.alias.global;", "unknown qualifier '.global'");
  expectMessage("fence.proxy.async.acquire;", "unknown qualifier '.acquire'");
  expectMessage("fence.proxy.async.shared::cta.global;", "unknown qualifier");
  expectMessage("fence.proxy.tensormap::generic.cta;",
                "expected '.acquire' or '.release'");
  expectMessage("fence.mbarrier_init.cluster;",
                "expected 'fence.mbarrier_init.release.cluster'");
  expectMessage("fence.acquire.sync_restrict::shared::cta.cluster;",
                "expected '.sync_restrict::shared::cluster.cluster'");
  expectMessage("fence.release.sync_restrict::shared::cta.gpu;",
                "expected '.sync_restrict::shared::cta.cluster'");
  expectMessage("fence.acq_rel.sync_restrict::shared::cta.cluster;",
                "unknown qualifier '.sync_restrict::shared::cta'");
  expectMessage("membar.proxy.none;", "unknown proxy fence");
}
