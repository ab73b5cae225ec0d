//===- OpenAccessesTest.cpp - Signals that overtake accesses --------------===//
//
// What an H100 does with an arrival in another CTA behind stores, and behind
// loads whose registers nothing has used
// (docs/Rationale/Clusters.md): each bad kernel has a good twin.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

constexpr const char *Arrive = "mbarrier.arrive.shared::cluster.b64 _, [%r4];";
constexpr const char *ArriveRelease =
    "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];";
constexpr const char *Wait = "mbarrier.try_wait.parity.shared.b64";
constexpr const char *WaitAcquire =
    "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64";
constexpr const char *LdMatrix =
    "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r20, %r21, %r22, %r23}, "
    "[%r6];\n";
/// CTA 1 overwrites, 16 bytes a thread.
constexpr const char *Store =
    "st.shared::cluster.v4.b32 [%r7], {%r0, %r0, %r0, %r0};";

constexpr uint16_t A4 = 1u << (unsigned(Assumption::ClusterScope) - 1);

/// CTA 0 does `reader`: %r4 is an mbarrier of CTA 1 that takes 32 arrivals, %r6
/// the thread's 16 bytes of a slot, %r3 its warp. CTA 1 waits for it with
/// `wait` and does `writer`, where %r7 is the same place in CTA 0 and %r8 an
/// mbarrier there.
Outcome runPair(const std::string &reader, const char *writer = Store,
                const char *wait = Wait, unsigned threads = 32,
                Profile profile = Profile::Hw, uint16_t assumptions = 0) {
  std::string body =
      "mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
      "shr.u32 %r3, %r0, 5;\nsetp.eq.s32 %p0, %r0, 0;\n"
      "setp.eq.s32 %p1, %r2, 0;\nsetp.eq.s32 %p3, %r3, 0;\n"
      "and.b32 %r9, %r0, 31;\nshl.b32 %r5, %r9, 4;\n"
      "add.s32 %r6, %r1, %r5;\nadd.s32 %r6, %r6, 64;\n"
      "mov.b32 %r10, 0;\nmov.b32 %r11, 1;\n"
      "mapa.shared::cluster.u32 %r4, %r1, %r11;\n"
      "mapa.shared::cluster.u32 %r8, %r1, %r10;\n"
      "mapa.shared::cluster.u32 %r7, %r6, %r10;\nadd.s32 %r8, %r8, 8;\n"
      "@%p0 mbarrier.init.shared.b64 [%r1], 32;\n"
      "@%p0 mbarrier.init.shared.b64 [%r1+8], 1;\n"
      "@%p3 st.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};\n"
      "@%p0 fence.mbarrier_init.release.cluster;\n"
      "barrier.cluster.arrive;\nbarrier.cluster.wait;\n@!%p1 bra W;\n" +
      reader + "\nbra E;\nW:\n@!%p3 bra E;\nL: " + wait +
      " %p2, [%r1], 0;\n@!%p2 bra L;\n" + writer +
      "\nE:\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\n"
      "add.s32 %r30, %r20, %r21;\n";
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = config.cluster = {2, 1, 1};
  config.dynamicShared = 4096;
  config.profile = profile;
  config.assumptions = assumptions;
  return runText(wrapKernel(body, "sm_90a"), {}, 4, config);
}

/// The one report names the load and the signal.
void expectOvertaken(const Outcome &r) {
  expectError(r, FindingKind::Race);
  EXPECT_NE(r.text().find("of another CTA by a load of which no instruction "
                          "had used a register before the signal of line"),
            std::string::npos)
      << r.text();
}

} // namespace

TEST(OpenAccesses, ArrivalBehindUnusedLoads) {
  const std::string loads[] = {
      LdMatrix,
      "ld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r6];\n",
      "ld.shared::cluster.b32 %r20, [%r6];\n",
      "ld.volatile.shared.b32 %r20, [%r6];\n",
  };
  for (const std::string &load : loads) {
    SCOPED_TRACE(load);
    expectOvertaken(runPair(load + Arrive));
    expectOvertaken(runPair(load + Arrive, Store, WaitAcquire));
    expectOvertaken(runPair(load + Arrive, Store, Wait, 32, Profile::Isa, A4));
    expectClean(runPair(load + "add.s32 %r24, %r20, 1;\n" + Arrive));
    // A signal that needs no assumption.
    expectClean(
        runPair(load + ArriveRelease, Store, WaitAcquire, 32, Profile::Isa));
    expectClean(runPair(load + "fence.acq_rel.cluster;\n" + Arrive));
  }
}

TEST(OpenAccesses, OneRegisterOfEachLoad) {
  std::string second = "ld.shared.b32 %r24, [%r6+4];\n";
  std::string useFirst = "add.s32 %r25, %r22, 1;\n";
  expectClean(runPair(LdMatrix + useFirst + Arrive));
  expectOvertaken(runPair(LdMatrix + second + useFirst + Arrive));
  // In any order.
  expectClean(runPair(LdMatrix + second + "add.s32 %r25, %r24, 1;\n" +
                      useFirst + Arrive));
  // A guard that no lane passes does not use it, a store does.
  expectOvertaken(runPair(LdMatrix + ("@!%p1 " + useFirst) + Arrive));
  expectClean(runPair(LdMatrix +
                      std::string("st.shared.b32 [%r6+1024], "
                                  "%r23;\n") +
                      Arrive));
}

TEST(OpenAccesses, CopiesOfRegisters) {
  std::string copy = "mov.b32 %r25, %r21;\nmov.b32 {%h1, %h2}, %r25;\n";
  expectOvertaken(runPair(LdMatrix + copy + Arrive));
  expectClean(runPair(LdMatrix + copy + "add.s16 %h3, %h2, 1;\n" + Arrive));
}

TEST(OpenAccesses, AsynchronousOverwrites) {
  const char *async =
      "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r7], "
      "{%r0, %r0, %r0, %r0}, [%r8];";
  const char *bulk = "@%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
                     "complete_tx::bytes [%r7], [%r1+1024], 512, [%r8];";
  std::string arm =
      "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1+8], 512;\n";
  std::string wait =
      std::string("\nM: ") + WaitAcquire + " %p4, [%r1+8], 0;\n@!%p4 bra M;";
  std::string use = "add.s32 %r24, %r20, 1;\n";
  for (const char *writer : {async, bulk}) {
    SCOPED_TRACE(writer);
    expectOvertaken(runPair(arm + LdMatrix + Arrive + wait, writer));
    expectClean(runPair(arm + LdMatrix + use + Arrive + wait, writer));
  }
}

TEST(OpenAccesses, SignalsOfAnotherWarp) {
  // Warp 1 loads, warp 0 signals behind a barrier.
  auto go = [](const std::string &use, const std::string &later) {
    return runPair("@%p3 bra S;\n" + (LdMatrix + use) + "bar.sync 1, 64;\n" +
                       later + "bra E;\nS:\nbar.sync 1, 64;\n" + Arrive,
                   Store, Wait, 64);
  };
  std::string use = "add.s32 %r24, %r20, 1;\n";
  expectOvertaken(go("", ""));
  expectClean(go(use, ""));
  // Nothing orders the use and the signal.
  expectOvertaken(go("", use));
}

TEST(OpenAccesses, LaterSignals) {
  // The second signal comes behind the use: what the first one left open is
  // known to have been read.
  std::string first = std::string(LdMatrix) + Arrive + "\nM: " + Wait +
                      " %p4, [%r1+8], 0;\n@!%p4 bra M;\n";
  std::string use = "add.s32 %r24, %r20, 1;\n";
  // What the peer releases in between does not complete loads of others.
  for (const char *scope : {"", ".release.cluster"}) {
    std::string writer = "@%p0 mbarrier.arrive" + std::string(scope) +
                         ".shared::cluster.b64 _, [%r8];\nN: " + Wait +
                         " %p4, [%r1], 1;\n@!%p4 bra N;\n" + Store;
    expectClean(runPair(first + use + Arrive, writer.c_str()));
    expectOvertaken(runPair(first + Arrive, writer.c_str()));
  }
}

TEST(OpenAccesses, ReadersBehindABarrier) {
  // Warp 0 reads what warp 1 has read before: both have to have read.
  auto go = [](const std::string &use) {
    return runPair("@%p3 bra S;\n" + (LdMatrix + use) +
                       "bar.sync 1, 64;\nbra E;\nS:\nbar.sync 1, 64;\n" +
                       LdMatrix + "add.s32 %r24, %r20, 1;\n" + Arrive,
                   Store, Wait, 64);
  };
  expectOvertaken(go(""));
  expectClean(go("add.s32 %r24, %r20, 1;\n"));
}

TEST(OpenAccesses, SignalsInTheCta) {
  // Another warp of the CTA overwrites, behind a barrier or an mbarrier.
  std::string overwrite = "st.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};\n";
  expectClean(runPair("@%p3 bra S;\nbar.sync 1, 64;\n" + overwrite +
                          "bra E;\nS:\n" + LdMatrix + "bar.sync 1, 64;\n" +
                          ArriveRelease,
                      "", WaitAcquire, 64));
  expectClean(runPair("@%p3 bra S;\nV: " + std::string(Wait) +
                          " %p4, [%r1+8], 0;\n@!%p4 bra V;\n" + overwrite +
                          "bra E;\nS:\n" + LdMatrix +
                          "bar.warp.sync -1;\n"
                          "@%p0 mbarrier.arrive.shared.b64 %d5, [%r1+8];\n" +
                          ArriveRelease,
                      "", WaitAcquire, 64));
}

TEST(OpenAccesses, AsynchronousStoresIntoTheOwnCta) {
  // They go as if to another CTA, and overtake what a barrier orders.
  auto go = [](const std::string &use) {
    return runPair(
        "@%p3 bra S;\nbar.sync 1, 64;\n"
        "mapa.shared::cluster.u32 %r12, %r6, %r10;\n"
        "setp.eq.s32 %p5, %r9, 0;\n@%p5 mbarrier.arrive.expect_tx.shared.b64 "
        "%d5, [%r1+8], 512;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        "[%r12], {%r0, %r0, %r0, %r0}, [%r8];\n"
        "V: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, "
        "[%r1+8], 0;\n@!%p4 bra V;\nbra E;\nS:\n" +
            (LdMatrix + use) + "bar.sync 1, 64;\n" + ArriveRelease,
        "", WaitAcquire, 64);
  };
  Outcome bad = go("");
  expectError(bad, FindingKind::Race);
  EXPECT_NE(bad.text().find("an earlier read by a load of which no"),
            std::string::npos)
      << bad.text();
  expectClean(go("add.s32 %r24, %r20, 1;\n"));
}

TEST(OpenAccesses, AsynchronousStoresInAClusterOfOne) {
  // Warp 1 reads a slot; a barrier later warp 0 overwrites it by st.async.
  auto go = [](const std::string &use) {
    std::string text = wrapKernel(
        "mov.b32 %r1, smem;\nshr.u32 %r3, %r0, 5;\n"
        "setp.eq.s32 %p0, %r0, 0;\nsetp.eq.s32 %p3, %r3, 0;\n"
        "and.b32 %r9, %r0, 31;\nshl.b32 %r5, %r9, 4;\n"
        "add.s32 %r6, %r1, %r5;\nadd.s32 %r6, %r6, 64;\nmov.b32 %r10, 0;\n"
        "mapa.shared::cluster.u32 %r8, %r1, %r10;\n"
        "mapa.shared::cluster.u32 %r12, %r6, %r10;\n"
        "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
        "@%p3 st.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};\n"
        "@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
        "@!%p3 bra S;\nbar.sync 1, 64;\n"
        "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 512;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 "
        "[%r12], {%r0, %r0, %r0, %r0}, [%r8];\n"
        "V: mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, "
        "[%r1], 0;\n@!%p4 bra V;\nbra E;\nS:\n" +
            (LdMatrix + use) +
            "bar.sync 1, 64;\nE:\nbar.sync 0;\n"
            "add.s32 %r30, %r20, %r21;\n",
        "sm_90a");
    text.replace(text.find(")\n{"), 2, ")\n.reqnctapercluster 1, 1, 1\n");
    LaunchConfig config;
    config.block = {64, 1, 1};
    config.dynamicShared = 4096;
    return runText(text, {}, 4, config);
  };
  expectError(go(""), FindingKind::Race);
  expectClean(go("add.s32 %r24, %r20, 1;\n"));
}

TEST(OpenAccesses, ReadsOfThePeer) {
  // CTA 0 reads shared memory of CTA 1, which overwrites its own.
  std::string load = "mapa.shared::cluster.u32 %r12, %r6, %r11;\n"
                     "ld.shared::cluster.b32 %r20, [%r12];\n";
  const char *own = "st.shared.v4.b32 [%r6], {%r0, %r0, %r0, %r0};";
  expectOvertaken(runPair(load + Arrive, own));
  expectClean(runPair(load + "add.s32 %r24, %r20, 1;\n" + Arrive, own));
}

TEST(OpenAccesses, ReadsOfGlobalMemory) {
  const char *store = "st.global.b32 [%d1], %r0;";
  std::string load = "ld.global.b32 %r20, [%d1];\n";
  std::string one = "@%p0 ";
  auto go = [&](const std::string &use) {
    return runPair(one + load + use + "bar.warp.sync -1;\n" + Arrive,
                   (one + store).c_str());
  };
  expectOvertaken(go(""));
  expectClean(go("add.s32 %r24, %r20, 1;\n"));
}

TEST(OpenAccesses, ArrivalBehindStores) {
  // Into the own shared memory, into the peer's, into global memory.
  const char *kernels[][2] = {
      {"st.shared.b32 [%r6], %r0;\n", "ld.shared::cluster.b32 %r20, [%r7];"},
      {"mapa.shared::cluster.u32 %r12, %r6, %r11;\n"
       "st.shared::cluster.b32 [%r12], %r0;\n",
       "ld.shared.b32 %r20, [%r6];"},
      {"@%p0 st.global.b32 [%d1], %r0;\n", "@%p0 ld.global.b32 %r20, [%d1];"},
  };
  for (const auto &[stores, reader] : kernels) {
    SCOPED_TRACE(stores);
    std::string store = stores;
    auto expectUnreleased = [](const Outcome &r) {
      expectError(r, FindingKind::Race);
      EXPECT_NE(r.text().find("by a store that nothing released to the cluster "
                              "before the signal of line"),
                std::string::npos)
          << r.text();
    };
    std::string barrier = "bar.sync 1, 32;\n";
    for (const std::string &between : {std::string(), barrier})
      expectUnreleased(runPair(store + between + Arrive, reader));
    expectUnreleased(runPair(store + "fence.acq_rel.cta;\n" + Arrive, reader));
    expectClean(runPair(store + "bar.warp.sync -1;\n" + ArriveRelease, reader,
                        WaitAcquire, 32, Profile::Isa));
    for (const char *fence :
         {"fence.acq_rel.cluster;\n", "fence.proxy.async;\n"})
      expectClean(
          runPair(store + fence + "bar.warp.sync -1;\n" + Arrive, reader));
  }
}

TEST(OpenAccesses, StoresReleasedByAnotherWarp) {
  // Warp 1 stores; warp 0 releases it behind a barrier, or only signals.
  auto go = [](const char *arrive) {
    return runPair("@%p3 bra S;\nst.shared.b32 [%r6], %r0;\nbar.sync 1, 64;\n"
                   "bra E;\nS:\nbar.sync 1, 64;\n" +
                       std::string(arrive),
                   "ld.shared::cluster.b32 %r20, [%r7];", WaitAcquire, 64);
  };
  expectError(go(Arrive), FindingKind::Race);
  expectClean(go(ArriveRelease));
}
