//===- SanitizerTest.cpp - Good and bad twins of each class ---------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// Each thread writes its word to shared memory, synchronises, reads another
/// warp's word.
std::string exchange(llvm::StringRef sync) {
  return ("shl.b32 %r1, %r0, 2;\nmov.b32 %r2, smem;\nadd.s32 %r3, %r2, %r1;\n"
          "st.shared.b32 [%r3], %r0;\n" +
          sync +
          "\nxor.b32 %r4, %r1, 128;\nadd.s32 %r5, %r2, %r4;\n"
          "ld.shared.b32 %r6, [%r5];\nmul.wide.u32 %d2, %r0, 4;\n"
          "add.s64 %d3, %d1, %d2;\nst.global.b32 [%d3], %r6;\n")
      .str();
}

Outcome run64(llvm::StringRef body, unsigned shared = 1024) {
  return runBody(body, std::vector<uint8_t>(1024), 1024, 64, shared);
}

} // namespace

TEST(Sanitizer, BarrierOrdersShared) {
  Outcome good = run64(exchange("bar.sync 0;"));
  expectClean(good);
  for (unsigned i = 0; i < 64; ++i)
    EXPECT_EQ(good.at<uint32_t>(i), i ^ 32);
  Outcome bad = run64(exchange(""));
  // One warp reads before the other writes: a race or an uninitialised read.
  EXPECT_GE(bad.report.countErrors(FindingKind::Race), 1u) << bad.text();
  const Finding *race = nullptr;
  for (const Finding &f : bad.report.findings)
    if (f.kind == FindingKind::Race)
      race = &f;
  ASSERT_TRUE(race);
  ASSERT_TRUE(race->first && race->second);
  EXPECT_NE(race->first->warp, race->second->warp);
  EXPECT_NE(race->first->ptxLine, race->second->ptxLine);
  EXPECT_EQ(race->space, "shared");
  EXPECT_FALSE(race->hint.empty());
}

TEST(Sanitizer, LanesExchangeThroughMbarriers) {
  // The first lane writes and signals, all lanes read; where `waits` is not
  // empty they wait for its signal.
  auto kernel = [](llvm::StringRef store, llvm::StringRef waits) {
    return ("mov.b32 %r2, smem;\nsetp.eq.s32 %p1, %r0, 0;\n"
            "@%p1 mbarrier.init.shared.b64 [%r2], 1;\nbar.sync 0;\n"
            "@%p1 st.shared.b32 [%r2+16], %r0;\n"
            "@%p1 mbarrier.arrive.shared.b64 %d9, [%r2];\n" +
            store + waits +
            "ld.shared.b32 %r6, [%r2+16];\nmul.wide.u32 %d2, %r0, 4;\n"
            "add.s64 %d3, %d1, %d2;\nst.global.b32 [%d3], %r6;\n")
        .str();
  };
  auto run = [](const std::string &body) {
    return runBody(body, std::vector<uint8_t>(1024), 1024, 32, 1024);
  };
  const char *wait = "W: mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r2], "
                     "0;\n@!%p5 bra W;\n";
  const char *late = "@%p1 st.shared.b32 [%r2+16], %r2;\n";
  expectClean(run(kernel("", wait)));
  // Nobody waits, one lane waits, and a write behind the signal.
  auto hasRace = [](const Outcome &r) {
    EXPECT_NE(r.text().find("another lane of the same warp"), std::string::npos)
        << r.text();
  };
  hasRace(run(kernel("", "")));
  hasRace(run(kernel("", "@!%p1 bra N;\nW: mbarrier.try_wait.parity.shared::"
                         "cta.b64 %p5, [%r2], 0;\n@!%p5 bra W;\nN:\n")));
  hasRace(run(kernel(late, wait)));
}

TEST(Sanitizer, NamedBarriersCountWarps) {
  expectClean(run64(exchange("barrier.sync 3, 64;")));
  expectClean(run64(exchange("bar.arrive 2, 128;\nbar.sync 2, 128;")));
  expectOnly(run64("setp.lt.s32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 96;\n"
                   "bra B;\nA: bar.sync 1, 64;\nB:"),
             FindingKind::BarrierMisuse);
  expectOnly(run64("bar.sync 1, 40;"), FindingKind::BarrierMisuse);
}

TEST(Sanitizer, WriteAfterRead) {
  std::string body =
      "shl.b32 %r1, %r0, 2;\nmov.b32 %r2, smem;\nadd.s32 %r3, %r2, %r1;\n"
      "st.shared.b32 [%r3], %r0;\nbar.sync 0;\nxor.b32 %r4, %r1, 128;\n"
      "add.s32 %r5, %r2, %r4;\nld.shared.b32 %r6, [%r5];\n";
  std::string tail = "st.shared.b32 [%r3], %r6;\n";
  expectClean(run64(body + "bar.sync 0;\n" + tail));
  expectOnly(run64(body + tail), FindingKind::Race);
}

TEST(Sanitizer, LanesOfAWarp) {
  std::string write =
      "shl.b32 %r1, %r0, 2;\nmov.b32 %r2, smem;\nadd.s32 %r3, %r2, %r1;\n"
      "st.shared.b32 [%r3], %r0;\n";
  std::string read = "xor.b32 %r4, %r1, 4;\nadd.s32 %r5, %r2, %r4;\n"
                     "ld.shared.b32 %r6, [%r5];\n";
  expectClean(run64(write + "bar.warp.sync -1;\n" + read));
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.dynamicShared = 1024;
  config.profile = Profile::Isa;
  expectOnly(runText(wrapKernel(write + read), {}, 4, config),
             FindingKind::Race);
  config.profile = Profile::Hw;
  Outcome hw = runText(wrapKernel(write + read), {}, 4, config);
  EXPECT_TRUE(hw.report.isClean()) << hw.text();
  ASSERT_EQ(hw.report.findings.size(), 1u);
  EXPECT_EQ(hw.report.findings[0].severity, Severity::HwOnly);
}

TEST(Sanitizer, LanesMeetAtBarriers) {
  // Lane 0 of each warp arrives by itself.
  std::string write =
      "shl.b32 %r1, %r0, 2;\nmov.b32 %r2, smem;\nadd.s32 %r3, %r2, %r1;\n"
      "st.shared.b32 [%r3], %r0;\nand.b32 %r7, %r0, 31;\n"
      "setp.eq.s32 %p1, %r7, 0;\n@%p1 bra A;\n";
  std::string read = "xor.b32 %r4, %r1, 4;\nadd.s32 %r5, %r2, %r4;\n"
                     "ld.shared.b32 %r6, [%r5];\n";
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.dynamicShared = 1024;
  config.profile = Profile::Isa;
  auto go = [&](llvm::StringRef many, llvm::StringRef one) {
    std::string parted = (many + "\nbra B;\nA: " + one + "\nB:\n").str();
    return runText(wrapKernel(write + parted + read), {}, 4, config);
  };
  expectClean(go("barrier.sync 1, 64;", "barrier.sync 1, 64;"));
  // Who does not wait has not met anybody.
  expectOnly(go("barrier.sync 1, 64;", "barrier.arrive 1, 64;"),
             FindingKind::Race);
}

TEST(Sanitizer, Uninitialised) {
  std::string load = "mov.b32 %r1, smem;\nld.shared.b32 %r2, [%r1];\n";
  expectOnly(runBody(load + "st.global.b32 [%d1], %r2;", {}, 4, 1, 64),
             FindingKind::UninitialisedRead);
  // A value that is masked off does not matter.
  expectClean(runBody(load + "setp.eq.s32 %p1, %r0, 0;\n"
                             "selp.b32 %r3, 7, %r2, %p1;\n"
                             "st.global.b32 [%d1], %r3;",
                      {}, 4, 1, 64));
  expectOnly(
      runBody(load + "setp.eq.s32 %p1, %r2, 0;\n@%p1 bra E;\nE:", {}, 4, 1, 64),
      FindingKind::UninitialisedRead);
  expectOnly(
      runBody("ld.global.b32 %r2, [%d1];\nst.global.b32 [%d1], %r2;", {}, 4, 1),
      FindingKind::UninitialisedRead);
}

TEST(Sanitizer, UninitialisedParts) {
  // Compilers pad with what they never wrote, and drop it again.
  auto go = [](const std::string &body) {
    return runBody("mov.b32 %r1, smem;\nld.shared.b32 %r2, [%r1];\n" + body +
                       "\nst.global.b32 [%d1], %r9;",
                   {}, 4, 1, 64);
  };
  // Byte 1 of %r3 is undefined, then the upper half.
  std::string byte = "prmt.b32 %r3, %r0, %r2, 0x3340;\n";
  expectClean(go(byte + "prmt.b32 %r9, %r3, %r0, 0x5420;"));
  expectClean(go(byte + "prmt.b32 %r9, %r0, %r3, 0x3264;"));
  expectOnly(go(byte + "prmt.b32 %r9, %r3, %r0, 0x5410;"),
             FindingKind::UninitialisedRead);
  expectOnly(go(byte + "mov.b32 %r9, %r3;"), FindingKind::UninitialisedRead);
  std::string half = "mov.b32 {%h1, %h2}, %r0;\nmov.b32 {%h3, %h4}, %r2;\n"
                     "mov.b32 %r3, {%h1, %h3};\n";
  expectClean(go(half + "prmt.b32 %r9, %r3, %r0, 0x5410;"));
  expectOnly(go(half + "prmt.b32 %r9, %r3, %r0, 0x5432;"),
             FindingKind::UninitialisedRead);
  std::string word = "mov.b64 %d5, {%r0, %r2};\n";
  expectClean(go(word + "mov.b64 {%r9, %r8}, %d5;"));
  expectOnly(go(word + "mov.b64 {%r8, %r9}, %d5;"),
             FindingKind::UninitialisedRead);
  expectClean(go(word + "mov.b64 {%h1, %h2, %h3, %h4}, %d5;\n"
                        "mov.b32 %r9, {%h2, %h1};"));
  expectOnly(go(word + "mov.b64 {%h1, %h2, %h3, %h4}, %d5;\n"
                       "mov.b32 %r9, {%h2, %h3};"),
             FindingKind::UninitialisedRead);
  // Packed arithmetic keeps halves apart.
  std::string pair = "mov.b64 %d5, {%r0, %r2};\n";
  for (const char *op :
       {"add.rn.f32x2 %d6, %d5, %d5;\n", "fma.rn.f32x2 %d6, %d5, %d5, %d5;\n",
        "add.rm.ftz.f32x2 %d6, %d5, %d5;\n"}) {
    SCOPED_TRACE(op);
    expectClean(go(pair + op + "mov.b64 {%r9, _}, %d6;"));
    expectOnly(go(pair + op + "mov.b64 {_, %r9}, %d6;"),
               FindingKind::UninitialisedRead);
  }
  std::string sum = half + "add.f16x2 %r3, %r3, %r3;\n";
  expectClean(go(sum + "prmt.b32 %r9, %r3, %r0, 0x5410;"));
  expectOnly(go(sum + "prmt.b32 %r9, %r3, %r0, 0x5432;"),
             FindingKind::UninitialisedRead);
}

TEST(Sanitizer, Bounds) {
  expectOnly(
      runBody("ld.global.b32 %r1, [%d0+16];", std::vector<uint8_t>(16), 4, 1),
      FindingKind::OutOfBounds);
  expectOnly(
      runBody("mov.b32 %r1, smem;\nst.shared.b32 [%r1+64], %r0;", {}, 4, 1, 64),
      FindingKind::OutOfBounds);
  expectOnly(
      runBody("ld.global.b32 %r1, [%d0+2];", std::vector<uint8_t>(16), 4, 1),
      FindingKind::Misaligned);
  expectOnly(runBody("mov.b64 %d5, 0;\nld.global.b32 %r1, [%d5];", {}, 4, 1),
             FindingKind::OutOfBounds);
}

TEST(Sanitizer, Deadlock) {
  Outcome r = run64("setp.lt.s32 %p1, %r0, 32;\n@%p1 bra A;\nbar.sync 1, 64;\n"
                    "bra E;\nA: bar.sync 2, 64;\nE:");
  expectOnly(r, FindingKind::Deadlock);
  EXPECT_NE(r.text().find("deadlock: warp 0 waits for barrier 2 from warp 1, "
                          "which waits for barrier 1"),
            std::string::npos)
      << r.text();
  EXPECT_NE(r.text().find("warp 1 waits here for barrier 1, which lacks 32 of "
                          "64 threads from warp 0"),
            std::string::npos)
      << r.text();
  EXPECT_FALSE(r.report.completed);
}

// An H200 does not count them where the instruction names a thread count, not
// even that of the whole CTA.
TEST(Sanitizer, ExitedThreadsDoNotCountWithAThreadCount) {
  expectOnly(run64("setp.lt.s32 %p1, %r0, 32;\n@%p1 exit;\nbar.sync 1, 64;"),
             FindingKind::Deadlock);
}

TEST(Sanitizer, ExitedThreadsCountAtTheBarrier) {
  expectClean(run64("setp.lt.s32 %p1, %r0, 32;\n@%p1 exit;\nbar.sync 0;"));
}

TEST(Sanitizer, StepLimit) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.stepLimit = 10000;
  expectOnly(runText(wrapKernel("L: bra L;"), {}, 4, config),
             FindingKind::StepLimit);
}

TEST(Sanitizer, DivergentAligned) {
  expectOnly(run64("setp.lt.s32 %p1, %r0, 16;\n@%p1 bar.sync 0;"),
             FindingKind::BarrierMisuse);
  expectOnly(run64("setp.lt.s32 %p1, %r0, 16;\n"
                   "@%p1 shfl.sync.idx.b32 %r1, %r0, 0, 31, -1;"),
             FindingKind::BarrierMisuse);
}

TEST(Sanitizer, Trap) {
  expectOnly(run64("setp.eq.s32 %p1, %r0, 40;\n@%p1 trap;"), FindingKind::Trap);
}

TEST(Sanitizer, MbarrierHandOver) {
  // Warp 0 produces, warp 1 waits for it on an mbarrier.
  auto kernel = [](llvm::StringRef arrive, llvm::StringRef wait) {
    return ("mov.b32 %r2, smem;\nsetp.eq.s32 %p1, %r0, 0;\n"
            "@%p1 mbarrier.init.shared.b64 [%r2], 32;\nbar.sync 0;\n"
            "setp.ge.s32 %p2, %r0, 32;\nand.b32 %r7, %r0, 31;\n"
            "shl.b32 %r1, %r7, 2;\nadd.s32 %r3, %r2, %r1;\n@%p2 bra C;\n"
            "st.shared.b32 [%r3+64], %r0;\n" +
            arrive + "\nbra E;\nC:\n" + wait +
            "\nld.shared.b32 %r6, [%r3+64];\nmul.wide.u32 %d2, %r7, 4;\n"
            "add.s64 %d3, %d1, %d2;\nst.global.b32 [%d3], %r6;\nE:\n")
        .str();
  };
  llvm::StringRef arrive = "mbarrier.arrive.shared.b64 %d5, [%r2];";
  llvm::StringRef wait = "W: mbarrier.test_wait.parity.shared.b64 %p3, [%r2], "
                         "0;\n@%p3 bra D;\nbra W;\nD:";
  Outcome good = run64(kernel(arrive, wait));
  expectClean(good);
  EXPECT_EQ(good.at<uint32_t>(5), 5u);
  // Parity 1 of a fresh barrier is true at once.
  Outcome early = run64(
      kernel(arrive, "W: mbarrier.test_wait.parity.shared.b64 %p3, [%r2], 1;\n"
                     "@%p3 bra D;\nbra W;\nD:"));
  EXPECT_GE(early.report.countErrors(FindingKind::Race), 1u) << early.text();
  expectOnly(run64(kernel("", wait)), FindingKind::Deadlock);
  expectOnly(run64(kernel("mbarrier.arrive.shared.b64 %d5, [%r2], 3;", wait)),
             FindingKind::MbarrierMisuse);
}

TEST(Sanitizer, PhaseSlip) {
  // Warp 0 goes through three phases before warp 1 looks at the first.
  auto kernel = [](int phases) {
    std::string s = "mov.b32 %r2, smem;\nsetp.eq.s32 %p1, %r0, 0;\n"
                    "@%p1 mbarrier.init.shared.b64 [%r2], 32;\nbar.sync 0;\n"
                    "setp.ge.s32 %p2, %r0, 32;\n@%p2 bra C;\n";
    for (int i = 0; i < phases; ++i)
      s += "mbarrier.arrive.shared.b64 %d5, [%r2];\n";
    return s + "bra E;\nC: mbarrier.test_wait.parity.shared.b64 %p3, [%r2], "
               "0;\n@!%p3 bra C;\nE:";
  };
  expectClean(run64(kernel(1)));
  expectOnly(run64(kernel(3)), FindingKind::PhaseSlip);
}

TEST(Sanitizer, UninitialisedMbarrier) {
  expectOnly(run64("mov.b32 %r2, smem;\n"
                   "mbarrier.arrive.shared.b64 %d5, [%r2];"),
             FindingKind::MbarrierMisuse);
}

TEST(Sanitizer, SameSeedSameRun) {
  LaunchConfig config;
  config.block = {64, 1, 1};
  config.dynamicShared = 1024;
  config.schedule = Schedule::Random;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    config.seed = seed;
    Outcome a = runText(wrapKernel(exchange("")), {}, 256, config);
    Outcome b = runText(wrapKernel(exchange("")), {}, 256, config);
    EXPECT_EQ(a.out, b.out);
    EXPECT_EQ(a.text(), b.text());
    EXPECT_FALSE(a.report.isClean());
  }
}

TEST(Sanitizer, AtomicsThatIgnoreWhatWasThere) {
  // On memory that nobody wrote; what is there afterwards is stored.
  struct Case {
    const char *op, *value;
    bool isDefined;
  };
  const Case cases[] = {
      {"exch.b32", "7", true},          {"and.b32", "0", true},
      {"and.b32", "0xff", false},       {"or.b32", "-1", true},
      {"or.b32", "0xffffff", false},    {"min.u32", "0", true},
      {"min.u32", "1", false},          {"max.u32", "-1", true},
      {"max.u32", "0x7fffffff", false}, {"min.s32", "0x80000000", true},
      {"min.s32", "0", false},          {"max.s32", "0x7fffffff", true},
      {"max.s32", "-1", false},         {"inc.u32", "0", true},
      {"inc.u32", "1", false},          {"dec.u32", "0", true},
      {"dec.u32", "1", false},          {"add.u32", "0", false},
      {"xor.b32", "0", false},          {"cas.b32", "1, 1", false},
  };
  auto judge = [](const Outcome &r, bool isDefined, const std::string &what) {
    EXPECT_TRUE(r.error.empty()) << r.error;
    EXPECT_EQ(r.report.countErrors(FindingKind::UninitialisedRead),
              isDefined ? 0u : 1u)
        << what << r.text();
  };
  auto run = [](const std::string &body) {
    LaunchConfig config;
    config.dynamicShared = 64;
    std::string text = wrapKernel("mov.b32 %r1, smem;\n" + body);
    text.replace(text.find(")\n{"), 2, ")\n.reqnctapercluster 1, 1, 1\n");
    return runText(text, std::vector<uint8_t>(16), 16, config);
  };
  for (const Case &c : cases)
    for (bool isGlobal : {false, true}) {
      std::string op = c.op, at = isGlobal ? "[%d1+8]" : "[%r1]";
      op = (isGlobal ? "global." : "shared.") + op;
      std::string atomic =
          "atom." + op + " %r2, " + at + ", " + c.value + ";\n";
      std::string load = std::string("ld.") + (isGlobal ? "global" : "shared") +
                         ".b32 %r3, " + at + ";\n";
      judge(run(atomic + load + "st.global.b32 [%d1], %r3;\n"), c.isDefined,
            atomic);
      // What the instruction returns is what nobody wrote.
      judge(run(atomic + "st.global.b32 [%d1], %r2;\n"), false, atomic);
      if (op.find("exch") != std::string::npos ||
          op.find("cas") != std::string::npos)
        continue;
      atomic = "red." + op + " " + at + ", " + c.value + ";\n";
      judge(run(atomic + load + "st.global.b32 [%d1], %r3;\n"), c.isDefined,
            atomic);
    }
  // Bytes that the value decides, one by one, and all sixteen.
  judge(run("atom.shared.and.b32 %r2, [%r1], 0xff00ffff;\n"
            "ld.shared.u8 %r3, [%r1+2];\nst.global.b32 [%d1], %r3;\n"),
        true, "one byte");
  judge(run(".reg .b128 q, s;\nmov.b64 %d5, 1;\nmov.b128 q, {%d5, %d5};\n"
            "atom.shared.exch.b128 s, [%r1], q;\n"
            "ld.shared.b64 %d6, [%r1+8];\nst.global.b64 [%d1], %d6;\n"),
        true, "b128");
  // An undefined value makes memory undefined.
  std::string undefined = "st.shared.b32 [%r1+16], 1;\nld.shared.b32 %r4, "
                          "[%r1];\n";
  for (const char *atomic : {"red.shared.add.u32 [%r1+16], %r4;\n",
                             "atom.shared.exch.b32 %r5, [%r1+16], %r4;\n",
                             "atom.shared.cas.b32 %r5, [%r1+16], 1, %r4;\n",
                             "atom.shared.cas.b32 %r5, [%r1+16], %r4, 1;\n"})
    judge(run(undefined + atomic +
              "ld.shared.b32 %r3, [%r1+16];\n"
              "st.global.b32 [%d1], %r3;\n"),
          false, atomic);
  judge(run(undefined + "atom.shared.cas.b32 %r5, [%r1+16], 2, %r4;\n"
                        "ld.shared.b32 %r3, [%r1+16];\n"
                        "st.global.b32 [%d1], %r3;\n"),
        true, "not swapped");
  judge(run(undefined + "red.global.add.u32 [%d0], %r4;\n"), false, "global");
}

TEST(Sanitizer, ReductionsThatIgnoreWhatWasThere) {
  // The same of red.async and of bulk reductions, whose results are read.
  auto run = [](const char *op, const char *value) {
    return std::string(
               "mov.b32 %r1, smem;\nmbarrier.init.shared.b64 [%r1], 1;\n"
               "mov.b32 %r2, ") +
           value +
           ";\nst.shared.v4.b32 [%r1+64], {%r2, %r2, %r2, %r2};\n"
           "fence.proxy.async;\n"
           "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], @;\n" +
           op +
           ";\nW: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
           "@!%p1 bra W;\nld.shared.b32 %r3, [%r1+16];\n"
           "st.global.b32 [%d1], %r3;\n";
  };
  auto go = [](std::string body, const char *bytes) {
    body.replace(body.find('@'), 1, bytes);
    LaunchConfig config;
    config.dynamicShared = 128;
    std::string text = wrapKernel(body);
    text.replace(text.find(")\n{"), 2, ")\n.reqnctapercluster 1, 1, 1\n");
    return runText(text, std::vector<uint8_t>(16), 16, config);
  };
  std::string end = ".shared::cluster.mbarrier::complete_tx::bytes.";
  for (auto [op, value, isDefined] : {std::make_tuple("and.b32", "0", true),
                                      std::make_tuple("and.b32", "1", false),
                                      std::make_tuple("max.u32", "-1", true),
                                      std::make_tuple("add.u32", "0", false)}) {
    std::string name = llvm::StringRef(op).split('.').first.str(),
                type = llvm::StringRef(op).split('.').second.str();
    Outcome sent = go(run(("red.async.relaxed.cluster." + name + end + type +
                           " [%r1+16], %r2, [%r1]")
                              .c_str(),
                          value),
                      "4");
    Outcome bulk = go(run(("cp.reduce.async.bulk.shared::cluster.shared::cta."
                           "mbarrier::complete_tx::bytes." +
                           std::string(op) + " [%r1+16], [%r1+64], 16, [%r1]")
                              .c_str(),
                          value),
                      "16");
    for (const Outcome *r : {&sent, &bulk})
      EXPECT_EQ(r->error.empty() &&
                    r->report.countErrors(FindingKind::UninitialisedRead) == 0,
                isDefined)
          << op << value << r->text();
  }
  // From what nobody wrote, onto what somebody has.
  Outcome r = go(run("cp.reduce.async.bulk.shared::cluster.shared::cta."
                     "mbarrier::complete_tx::bytes.add.u32 [%r1+64], "
                     "[%r1+96], 16, [%r1];\nadd.u32 %r1, %r1, 48",
                     "0"),
                 "16");
  EXPECT_FALSE(r.report.isClean());
}

TEST(Sanitizer, ShufflesFromAbsentLanes) {
  auto run = [](const std::string &shuffle, unsigned threads = 32) {
    return runBody("setp.lt.u32 %p1, %r0, 16;\n" + shuffle, {}, 4, threads);
  };
  auto isNoted = [&](const Outcome &r) {
    return r.error.empty() && r.report.isClean() &&
           r.report.findings.size() == 1 &&
           r.text().find("takes the value of a lane that does not execute the "
                         "shuffle") != std::string::npos &&
           r.text().find("the member mask has to hold the lanes that values "
                         "come from, and they have to be live") !=
               std::string::npos;
  };
  for (const char *shuffle :
       {"@%p1 shfl.sync.idx.b32 %r2, %r0, 16, 31, 0xffff;\n",
        "@%p1 shfl.sync.down.b32 %r2, %r0, 1, 31, 0xffff;\n",
        "@%p1 shfl.sync.bfly.b32 %r2, %r0, 16, 31, 0xffff;\n"})
    EXPECT_TRUE(isNoted(run(shuffle))) << run(shuffle).text();
  // Lanes that are not there at all.
  EXPECT_TRUE(isNoted(run("shfl.sync.bfly.b32 %r2, %r0, 16, 31, -1;\n", 16)));
  expectClean(run("@%p1 shfl.sync.idx.b32 %r2, %r0, 15, 31, 0xffff;\n"
                  "@%p1 shfl.sync.up.b32 %r2, %r0, 1, 0, 0xffff;\n"
                  "@%p1 shfl.sync.down.b32 %r2, %r0, 1, 15, 0xffff;\n"
                  "shfl.sync.bfly.b32 %r2, %r0, 16, 31, -1;\n"));
  // The value is undefined.
  expectError(run("@%p1 shfl.sync.idx.b32 %r2, %r0, 16, 31, 0xffff;\n"
                  "ld.shared.b32 %r4, [%r2];\n"),
              FindingKind::OutOfBounds);
}

TEST(Sanitizer, DiscardedMemoryIsUndefined) {
  auto run = [](const char *load) {
    return runBody(std::string("discard.global.L2 [%d0], 128;\n") + load +
                       "st.global.b32 [%d1], %r2;\n",
                   std::vector<uint8_t>(256), 4, 1);
  };
  expectOnly(run("ld.global.b32 %r2, [%d0+124];\n"),
             FindingKind::UninitialisedRead);
  expectClean(run("ld.global.b32 %r2, [%d0+128];\n"));
  expectClean(run("st.global.b32 [%d0+4], 1;\nld.global.b32 %r2, [%d0+4];\n"));
}

TEST(Sanitizer, ReportsDoNotDependOnHostThreads) {
  // What 16 CTAs do: all store one value; all store their own; one reads out
  // of bounds; each races within itself.
  const char *bodies[] = {
      "st.global.b32 [%d1], 7;", "st.global.b32 [%d1], %r1;",
      "setp.eq.s32 %p1, %r1, 11;\n@%p1 ld.global.b32 %r3, [%d1+4096];",
      "mov.b32 %r2, smem;\nst.shared.b32 [%r2], %r0;",
      ("ld.global.b32 %r3, [%d0];\nsetp.eq.s32 %p1, %r1, 9;\n"
       "@%p1 st.global.b32 [%d0], %r0;")};
  for (const char *body : bodies)
    for (Profile profile : {Profile::Hw, Profile::Isa}) {
      std::string text =
          wrapKernel(std::string("mov.u32 %r1, %ctaid.x;\n") + body);
      std::string want;
      std::vector<uint8_t> out;
      for (unsigned threads : {1, 2, 4, 4, 4, 4}) {
        LaunchConfig config;
        config.block = {64, 1, 1};
        config.grid = {16, 1, 1};
        config.dynamicShared = 64;
        config.profile = profile;
        config.threads = threads;
        Outcome r = runText(text, std::vector<uint8_t>(16), 64, config);
        EXPECT_TRUE(r.error.empty()) << r.error;
        r.report.seconds = 0;
        if (threads == 1) {
          want = r.text();
          out = r.out;
        }
        EXPECT_EQ(r.text(), want) << body;
        EXPECT_EQ(r.out, out) << body;
      }
    }
}

TEST(Sanitizer, EqualStoresOfTwoCtas) {
  LaunchConfig config;
  config.grid = {8, 1, 1};
  config.block = {32, 1, 1};
  std::string text = wrapKernel("st.global.b32 [%d1], 7;");
  for (unsigned threads : {1, 4}) {
    config.threads = threads;
    config.profile = Profile::Hw;
    for (unsigned i = 0; i < 20; ++i)
      expectClean(runText(text, {}, 4, config));
    config.profile = Profile::Isa;
    Outcome isa = runText(text, {}, 4, config);
    ASSERT_EQ(isa.report.findings.size(), 1u) << isa.text();
    EXPECT_EQ(isa.report.findings[0].severity, Severity::HwOnly);
  }
}
