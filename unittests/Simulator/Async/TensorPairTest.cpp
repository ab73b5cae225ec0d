//===- TensorPairTest.cpp - tcgen05 of the two CTAs of a pair -------------===//
//
// What a pair's allocations, deallocations and exits have to wait for, and
// requests for further clusters: each bad kernel has a good twin, and findings
// name both CTAs. test/Simulator/Inputs/twins has more of them.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using llvm::StringRef;

namespace {

const std::string Meet = "barrier.cluster.arrive;\nbarrier.cluster.wait;\n";

std::string alloc(StringRef columns = "32", StringRef group = "2") {
  return ("tcgen05.alloc.cta_group::" + group +
          ".sync.aligned.shared::cta.b32 [%r1+16], " + columns +
          ";\nld.shared.b32 %r10, [%r1+16];\n")
      .str();
}
std::string dealloc(StringRef columns = "32", StringRef address = "%r10") {
  return ("tcgen05.dealloc.cta_group::2.sync.aligned.b32 " + address + ", " +
          columns + ";\n")
      .str();
}

/// Clusters of two CTAs of 32 threads. %p1: the first CTA, %r1: shared memory.
Outcome runPair(const std::string &body, uint64_t seed = 0,
                Profile profile = Profile::Hw) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.grid = config.cluster = {2, 1, 1};
  config.dynamicShared = 16384;
  config.profile = profile;
  if (seed) {
    config.schedule = Schedule::Random;
    config.seed = seed;
  }
  return runText(
      wrapKernel("mov.u32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
                 "setp.eq.u32 %p1, %r2, 0;\nsetp.eq.u32 %p0, %r0, 0;\n" +
                 body),
      {}, 4, config);
}

/// The one finding; it says `text` and names both CTAs.
void expectFinding(const Outcome &r, FindingKind kind, StringRef text) {
  ASSERT_TRUE(r.error.empty()) << r.error;
  for (const Finding &f : r.report.findings) {
    bool namesBoth = f.first && f.second && f.first->cta != f.second->cta;
    if (f.kind == kind && (StringRef(f.message).contains(text) ||
                           StringRef(f.hint).contains(text))) {
      EXPECT_TRUE(namesBoth || StringRef(f.message).contains("CTA ("))
          << r.text();
      return;
    }
  }
  ADD_FAILURE() << "expected '" << text.str() << "', got " << r.text();
}

} // namespace

TEST(TensorPair, AllocatesInBothOrWaits) {
  for (uint64_t seed : {0, 1, 2, 3}) {
    expectClean(runPair(Meet + alloc() + Meet + dealloc(), seed));
    // Each part is free only when both are.
    expectClean(runPair(Meet + alloc("512") + Meet + dealloc("512") +
                            alloc("512") + Meet + dealloc("512"),
                        seed));
  }
  expectFinding(runPair(Meet + "@!%p1 bra E;\n" + alloc() + "E:\n"),
                FindingKind::TensorMemoryMisuse,
                "allocates tensor memory for a pair alone: CTA (1,0,0) exits");
  expectFinding(
      runPair(Meet + "@%p1 bra E;\n" + alloc() + "E:\n" + Meet),
      FindingKind::TensorMemoryMisuse,
      "allocates tensor memory for a pair alone: CTA (0,0,0) waits for");
  // The other CTA has left before.
  expectFinding(runPair(Meet +
                        "@!%p1 bra E;\nmov.u32 %r7, 0;\nW:\n"
                        "add.u32 %r7, %r7, 1;\n"
                        "setp.lt.u32 %p2, %r7, 2000;\n@%p2 bra W;\n" +
                        alloc() + "E:\n"),
                FindingKind::TensorMemoryMisuse, "CTA (1,0,0) exits");
  for (uint64_t seed : {0, 1, 2})
    expectFinding(runPair(Meet + "mov.u32 %r20, 32;\nshl.b32 %r20, %r20, %r2;" +
                              alloc("%r20"),
                          seed),
                  FindingKind::TensorMemoryMisuse,
                  "expected both CTAs of a pair to allocate the same "
                  "number of columns, got");
}

TEST(TensorPair, AllocatesOnceBothRun) {
  for (uint64_t seed : {0, 1, 2}) {
    for (StringRef text : {"allocates tensor memory for a pair of which CTA (",
                           "a cluster barrier has to come before the "
                           "allocation"})
      expectFinding(runPair(alloc() + Meet + dealloc(), seed),
                    FindingKind::TensorMemoryMisuse, text);
    // That the other one has arrived is enough.
    expectClean(runPair("barrier.cluster.arrive.relaxed;\n"
                        "barrier.cluster.wait;\n" +
                            alloc() + Meet + dealloc(),
                        seed));
  }
}

TEST(TensorPair, FreesOnceBothAreDone) {
  const std::string load =
      "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r6}, [%r10];\n"
      "tcgen05.wait::ld.sync.aligned;\n";
  const std::string store =
      "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r0};\n"
      "tcgen05.wait::st.sync.aligned;\n";
  const std::string use = Meet + alloc() + store + load;
  for (uint64_t seed : {0, 1, 2}) {
    expectClean(runPair(use + Meet + dealloc(), seed));
    Outcome r = runPair(use + dealloc(), seed);
    EXPECT_FALSE(r.report.isClean());
    expectFinding(r,
                  r.report.countErrors(FindingKind::Race)
                      ? FindingKind::Race
                      : FindingKind::TensorMemoryMisuse,
                  "");
  }
  // One frees, the other one goes on.
  for (StringRef text :
       {"columns [0, 1) that the other CTA of the pair has freed",
        "both CTAs have to be done with the columns before one of them frees "
        "them, as behind a cluster barrier"})
    expectFinding(runPair(use + "@!%p1 bra B;\n" + dealloc() + "B:\n" + Meet +
                          "@%p1 bra E;\n" + load + dealloc() + "E:\n"),
                  FindingKind::TensorMemoryMisuse, text);
  // The one that frees last does not wait for what the first one did: in
  // another order of events it would free first.
  const std::string lastOfTwo =
      "barrier.cluster.arrive;\n@!%p1 bra B;\nbarrier.cluster.wait;\n" +
      dealloc() +
      "bra E;\nB:\nmov.u32 %r7, 0;\nW:\nadd.u32 %r7, %r7, 1;\n"
      "setp.lt.u32 %p2, %r7, 2000;\n@%p2 bra W;\n" +
      dealloc() + "barrier.cluster.wait;\nE:\n";
  for (uint64_t seed : {0, 1, 2})
    EXPECT_TRUE(
        runPair(use + lastOfTwo, seed).report.countErrors(FindingKind::Race));
  expectFinding(
      runPair(use + Meet + "@!%p1 bra B;\n" + dealloc() + "B:\n" + Meet),
      FindingKind::TensorMemoryMisuse,
      "the CTA exits with tensor memory allocated");
}

TEST(TensorPair, HasOneGroup) {
  expectFinding(runPair(Meet + "@!%p1 bra B;\n" + alloc("32", "1") +
                        "bra E;\nB:\n" + Meet + alloc() + "E:\n"),
                FindingKind::TensorMemoryMisuse,
                "expected the same '.cta_group' in all tcgen05 instructions of "
                "a pair of CTAs, got '.cta_group::2' after '.cta_group::1'");
  // Shifts, copies, products and commits have one too.
  for (const char *op :
       {"tcgen05.shift.cta_group::1.down [%r10];",
        "tcgen05.cp.cta_group::1.128x256b [%r10], %d2;",
        "tcgen05.mma.cta_group::1.kind::f16 [%r10], %d2, %d2, %r3, %p1;",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r1];",
        "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;"}) {
    Outcome r = runPair(Meet + alloc() + "mov.u64 %d2, 0;\nmov.u32 %r3, 0;\n" +
                        op + "\n" + Meet + dealloc());
    EXPECT_EQ(r.report.countErrors(FindingKind::TensorMemoryMisuse), 1u)
        << op << '\n'
        << r.text();
    EXPECT_NE(r.text().find("expected the same '.cta_group'"),
              std::string::npos)
        << r.text();
  }
}

TEST(TensorPair, ExitsBehindTheProductsOfTheOther) {
  // Both CTAs wait for the commit, or the second one only for what the first
  // one does behind its wait.
  auto build = [](const char *mask, const std::string &then) {
    return "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
           "@%p0 fence.mbarrier_init.release.cluster;\n" +
           Meet + alloc("32") + "mov.u16 %h1, " + mask +
           ";\nadd.u32 %r4, %r1, 1024;\nshr.u32 %r4, %r4, 4;\n"
           "cvt.u64.u32 %d2, %r4;\nor.b64 %d2, %d2, 70437464178688;\n"
           "mov.b32 %r3, 268959760;\nsetp.eq.and.u32 %p2, %r0, 0, %p1;\n"
           "setp.ne.u32 %p4, %r0, %r0;\n"
           "@!%p2 bra W;\n"
           "tcgen05.mma.cta_group::2.kind::f16 [%r10], %d2, %d2, %r3, %p4;\n"
           "tcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster."
           "multicast::cluster.b64 [%r1], %h1;\nW:\n" +
           then + "E:\n";
  };
  const std::string wait =
      "P: mbarrier.try_wait.parity.shared.b64 %p3, [%r1], 0;\n@!%p3 bra P;\n"
      "tcgen05.fence::after_thread_sync;\n";
  const std::string rest = Meet + dealloc();
  const std::string fill =
      "mov.u32 %r7, 0;\nshl.b32 %r8, %r0, 4;\nadd.u32 %r8, %r8, %r1;\n"
      "F: st.shared.v4.b32 [%r8+1024], {%r7, %r7, %r7, %r7};\n"
      "add.u32 %r8, %r8, 512;\nadd.u32 %r7, %r7, 0;\n"
      "sub.u32 %r9, %r8, %r1;\nsetp.lt.u32 %p5, %r9, 8192;\n@%p5 bra F;\n"
      "fence.proxy.async.shared::cta;\n";
  for (uint64_t seed : {0, 1, 2}) {
    expectClean(runPair(fill + build("3", wait + rest), seed));
    expectClean(runPair(
        fill + build("1", "@!%p1 bra B;\n" + wait + "B:\n" + rest), seed));
    // The second CTA waits for nothing that follows the product.
    expectFinding(
        runPair(fill + build("1", "@!%p1 bra E;\n" + wait), seed),
        FindingKind::ExitInFlight,
        seed ? "" : "the CTA exits while a tensor operation of the other CTA");
  }
}

namespace {
/// Two requests, each with an mbarrier and 16 bytes of its own, and `between`.
Outcome runRequests(const std::string &between) {
  auto request = [](const char *at, const char *barrier) {
    return std::string("@!%p0 bra R") + at +
           ";\nmbarrier.arrive.expect_tx.shared.b64 %d2, [%r1+" + barrier +
           "], 16;\nclusterlaunchcontrol.try_cancel.async.shared::cta."
           "mbarrier::complete_tx::bytes.b128 [%r1+" +
           at + "], [%r1+" + barrier + "];\nR" + at + ":\n";
  };
  auto wait = [](const char *barrier) {
    return std::string("W") + barrier +
           ": mbarrier.try_wait.parity.shared.b64 %p3, [%r1+" + barrier +
           "], 0;\n@!%p3 bra W" + barrier + ";\n";
  };
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.dynamicShared = 1024;
  return runText(
      wrapKernel(
          ".reg .b128 %q<2>;\nmov.u32 %r1, smem;\nsetp.eq.u32 %p0, %r0, 0;\n"
          "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
          "@%p0 mbarrier.init.shared.b64 [%r1+8], 1;\n"
          "fence.proxy.async.shared::cta;\nbar.warp.sync -1;\n" +
          request("16", "0") + (between.empty() ? "" : wait("0") + between) +
          request("32", "8") + wait("8") +
          (between.empty() ? wait("0") : std::string())),
      {}, 4, config);
}
} // namespace

TEST(TensorPair, RequestsEndWithADenial) {
  // Nobody has looked yet, or looks at something else.
  expectClean(runRequests(""));
  expectClean(runRequests("ld.shared.b128 %q0, [%r1+16];\n"));
  Outcome r = runRequests(
      "ld.shared.b128 %q0, [%r1+16];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p4, %q0;\n"
      "fence.proxy.async.shared::cta;\nbar.warp.sync -1;\n");
  expectError(r, FindingKind::InvalidOperation);
  EXPECT_NE(r.text().find("requests another cluster after a request was "
                          "denied"),
            std::string::npos)
      << r.text();
  EXPECT_NE(r.text().find("earlier 'clusterlaunchcontrol.query_cancel"),
            std::string::npos)
      << r.text();
}
