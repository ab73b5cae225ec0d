//===- WarpFormsTest.cpp - Votes, reductions, barriers by form ------------===//
//
// Lane l holds the value (l * 7) % 32 + 1 in %r2 unless a test says otherwise.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

uint32_t valueOf(unsigned lane) { return lane * 7 % 32 + 1; }

/// Runs one warp; %r8 of each lane comes back.
std::vector<uint32_t> run32(llvm::StringRef body, unsigned threads = 32) {
  Outcome r = runBody("mul.lo.u32 %r2, %r0, 7;\nand.b32 %r2, %r2, 31;\n"
                      "add.u32 %r2, %r2, 1;\nsetp.gt.u32 %p1, %r2, 16;\n"
                      "cvt.u64.u32 %d6, %r2;\nmov.u32 %r8, 0;\n"
                      "mul.wide.u32 %d2, %r0, 4;\nadd.u64 %d2, %d2, %d1;\n" +
                          body.str() + "\nst.global.b32 [%d2], %r8;\n",
                      std::vector<uint8_t>(16), 4 * threads, threads);
  EXPECT_TRUE(r.error.empty() && r.report.isClean()) << body.str() << r.text();
  std::vector<uint32_t> values(threads);
  for (unsigned i = 0; i < threads && r.out.size(); ++i)
    values[i] = r.at<uint32_t>(i);
  return values;
}

void expectAll(llvm::StringRef body, uint32_t want, unsigned threads = 32) {
  for (uint32_t v : run32(body, threads))
    ASSERT_EQ(v, want) << body.str();
}

} // namespace

TEST(WarpForms, Votes) {
  uint32_t ballot = 0;
  for (unsigned l = 0; l < 32; ++l)
    ballot |= uint32_t(valueOf(l) > 16) << l;
  expectAll("vote.sync.ballot.b32 %r8, %p1, 0xffffffff;", ballot);
  expectAll(
      "vote.sync.all.pred %p2, %p1, 0xffffffff;\nselp.u32 %r8, 1, 2, %p2;", 2);
  expectAll(
      "vote.sync.any.pred %p2, %p1, 0xffffffff;\nselp.u32 %r8, 1, 2, %p2;", 1);
  expectAll(
      "vote.sync.uni.pred %p2, %p1, 0xffffffff;\nselp.u32 %r8, 1, 2, %p2;", 2);
  expectAll("activemask.b32 %r8;", ~0u);
  expectAll("elect.sync %r8|%p2, 0xffffffff;\n@%p2 add.u32 %r8, %r8, 0;", 0);
  std::vector<uint32_t> elected =
      run32("elect.sync _|%p2, 0xffffffff;\nselp.u32 %r8, 1, 0, %p2;");
  for (unsigned l = 0; l < 32; ++l)
    EXPECT_EQ(elected[l], l == 0);
}

/// Runs `body` in groups of four lanes with masks of their own in %r5. The
/// first lane of each group but one comes later than the others.
static std::vector<uint32_t> runGroups(llvm::StringRef body) {
  return run32(("and.b32 %r4, %r0, 28;\nmov.b32 %r5, 15;\n"
                "shl.b32 %r5, %r5, %r4;\nand.b32 %r3, %r0, 3;\n"
                "setp.eq.u32 %p2, %r3, 0;\nsetp.ne.and.u32 %p3, %r0, 0, %p2;\n"
                "@%p3 bra LATE;\nJOIN:\n" +
                body + "\nbra END;\nLATE: mov.u32 %r7, 3;\nbra JOIN;\nEND:")
                   .str());
}

TEST(WarpForms, GroupsWithMasksOfTheirOwn) {
  auto expectGroups = [](llvm::StringRef body,
                         llvm::function_ref<uint32_t(unsigned)> want) {
    std::vector<uint32_t> values = runGroups(body);
    for (unsigned lane = 0; lane < 32; ++lane)
      EXPECT_EQ(values[lane], want(lane & ~3u)) << body.str() << lane;
  };
  auto largest = [](unsigned first) {
    uint32_t most = 0;
    for (unsigned lane = first; lane < first + 4; ++lane)
      most = std::max(most, valueOf(lane));
    return most;
  };
  expectGroups("shfl.sync.bfly.b32 %r6, %r2, 2, 31, %r5;\n"
               "max.u32 %r6, %r6, %r2;\n"
               "shfl.sync.bfly.b32 %r8, %r6, 1, 31, %r5;\n"
               "max.u32 %r8, %r8, %r6;",
               largest);
  expectGroups("redux.sync.max.u32 %r8, %r2, %r5;", largest);
  expectGroups("vote.sync.ballot.b32 %r8, %p1, %r5;", [](unsigned first) {
    uint32_t ballot = 0;
    for (unsigned lane = first; lane < first + 4; ++lane)
      ballot |= uint32_t(valueOf(lane) > 16) << lane;
    return ballot;
  });
  expectGroups("and.b32 %r6, %r0, 28;\n"
               "match.sync.all.b32 %r8|%p2, %r6, %r5;",
               [](unsigned first) { return 15u << first; });
  expectGroups("elect.sync %r8|%p2, %r5;",
               [](unsigned first) { return first; });
}

TEST(WarpForms, Match) {
  std::vector<uint32_t> any =
      run32("and.b32 %r3, %r2, 3;\nmatch.sync.any.b32 %r8, %r3, 0xffffffff;");
  std::vector<uint32_t> any64 =
      run32("and.b64 %d7, %d6, 3;\nmatch.sync.any.b64 %r8, %d7, 0xffffffff;");
  for (unsigned l = 0; l < 32; ++l) {
    uint32_t want = 0;
    for (unsigned o = 0; o < 32; ++o)
      want |= uint32_t((valueOf(o) & 3) == (valueOf(l) & 3)) << o;
    EXPECT_EQ(any[l], want);
    EXPECT_EQ(any64[l], want);
  }
  expectAll("match.sync.all.b32 %r8|%p2, %r2, 0xffffffff;\n"
            "@%p2 mov.u32 %r8, 9;",
            0);
  expectAll("mov.b64 %d7, 5;\nmatch.sync.all.b64 %r8|%p2, %d7, 0xffffffff;\n"
            "@!%p2 mov.u32 %r8, 9;",
            ~0u);
}

TEST(WarpForms, Reductions) {
  expectAll("redux.sync.add.u32 %r8, %r2, 0xffffffff;", 528);
  expectAll("redux.sync.add.s32 %r8, %r2, 0xffffffff;", 528);
  expectAll("redux.sync.min.u32 %r8, %r2, 0xffffffff;", 1);
  expectAll("redux.sync.max.u32 %r8, %r2, 0xffffffff;", 32);
  expectAll("neg.s32 %r3, %r2;\nredux.sync.min.s32 %r8, %r3, 0xffffffff;",
            uint32_t(-32));
  expectAll("neg.s32 %r3, %r2;\nredux.sync.max.s32 %r8, %r3, 0xffffffff;",
            uint32_t(-1));
  expectAll("redux.sync.and.b32 %r8, %r2, 0xffffffff;", 0);
  expectAll("redux.sync.or.b32 %r8, %r2, 0xffffffff;", 63);
  expectAll("redux.sync.xor.b32 %r8, %r2, 0xffffffff;", 32);
  // -1.5 in lane 3, NaN in lane 4, 0.25 elsewhere.
  const char *values = "setp.eq.u32 %p2, %r0, 3;\nsetp.eq.u32 %p3, %r0, 4;\n"
                       "selp.b32 %r3, 0xbfc00000, 0x3e800000, %p2;\n"
                       "selp.b32 %r3, 0x7fc00000, %r3, %p3;\n";
  const std::pair<const char *, uint32_t> floats[] = {
      {"min", 0xbfc00000},         {"max", 0x3e800000},
      {"min.abs", 0x3e800000},     {"max.abs", 0x3fc00000},
      {"min.NaN", 0x7fffffff},     {"max.NaN", 0x7fffffff},
      {"min.abs.NaN", 0x7fffffff}, {"max.abs.NaN", 0x7fffffff}};
  for (const auto &[op, want] : floats)
    expectAll(std::string(values) + "redux.sync." + op +
                  ".f32 %r8, %r3, 0xffffffff;",
              want);
}

TEST(WarpForms, MatrixTranspose) {
  // Lane l holds row l / 4, columns 2 (l % 4) and the next: 8 row + column.
  std::vector<uint32_t> v = run32(
      "shl.b32 %r3, %r0, 1;\nadd.u32 %r4, %r3, 1;\nshl.b32 %r4, %r4, 16;\n"
      "or.b32 %r3, %r3, %r4;\n"
      "movmatrix.sync.aligned.m8n8.trans.b16 %r8, %r3;");
  for (unsigned l = 0; l < 32; ++l) {
    unsigned column = l / 4, row = l % 4 * 2;
    EXPECT_EQ(v[l], (8 * row + column) | (8 * (row + 1) + column) << 16);
  }
}

TEST(WarpForms, BarrierReductions) {
  for (const char *cta : {"", ".cta"})
    for (const char *name : {"bar", "barrier"})
      for (const char *aligned : {"", ".aligned"}) {
        bool plain = std::string(name) == "bar";
        if (plain && aligned[0])
          continue;
        std::string red = std::string(name) + cta + ".red.";
        std::string a = aligned;
        expectAll(red + "popc" + a + ".u32 %r8, 1, 64, %p1;", 32, 64);
        expectAll(red + "popc" + a + ".u32 %r8, 1, %p1;", 32, 64);
        expectAll(red + "and" + a +
                      ".pred %p2, 1, 64, %p1;\n"
                      "selp.u32 %r8, 1, 2, %p2;",
                  2, 64);
        expectAll(red + "or" + a +
                      ".pred %p2, 1, %p1;\n"
                      "selp.u32 %r8, 1, 2, %p2;",
                  1, 64);
        // One warp arrives, the other waits.
        expectAll("setp.lt.u32 %p2, %r0, 32;\n@%p2 bra A;\n" +
                      std::string(name) + cta + ".sync" + a +
                      " 2, 64;\nbra E;\nA:\n" + name + cta + ".arrive" + a +
                      " 2, 64;\nE:\nmov.u32 %r8, 3;",
                  3, 64);
        expectAll(std::string(name) + cta + ".sync" + a + " 1;\n" + name + cta +
                      ".sync" + a +
                      " 1, 64;\nmov.u32 %r3, 2;\nmov.u32 %r4, "
                      "64;\n" +
                      name + cta + ".sync" + a + " %r3, %r4;\nmov.u32 %r8, 4;",
                  4, 64);
      }
}

TEST(WarpForms, SpacesAndWideMoves) {
  const std::pair<const char *, uint32_t> tests[] = {
      {"mov.u64 %d7, smem;\ncvta.shared.u64 %d7, %d7;\n"
       "isspacep.shared %p2, %d7;\nisspacep.global %p3, %d7;",
       1},
      {"mov.u64 %d7, smem;\ncvta.shared::cluster.u64 %d7, %d7;\n"
       "isspacep.shared::cluster %p2, %d7;\nisspacep.local %p3, %d7;",
       1},
      {"mov.u64 %d7, smem;\ncvta.shared.u64 %d7, %d7;\n"
       "isspacep.shared::cta %p2, %d7;\nisspacep.const %p3, %d7;",
       1},
      {"isspacep.global %p2, %d1;\nisspacep.param %p3, %d1;", 1},
      {".local .b8 frame[8];\nmov.u64 %d7, frame;\ncvta.local.u64 %d7, %d7;\n"
       "isspacep.local %p2, %d7;\nisspacep.shared %p3, %d7;",
       1},
      {".reg .b128 %q;\nmov.b128 %q, {%d1, %d0};\nmov.b128 {%d7, %d8}, %q;\n"
       "setp.eq.u64 %p2, %d7, %d1;\nsetp.ne.u64 %p3, %d8, %d0;",
       1},
      {"mov.u64 %d7, smem;\ncvta.shared::cluster.u64 %d8, %d7;\n"
       "cvta.to.shared::cluster.u64 %d8, %d8;\nsetp.eq.u64 %p2, %d7, %d8;\n"
       "setp.ne.u64 %p3, %d7, %d8;",
       1}};
  for (const auto &[body, want] : tests)
    expectAll(std::string(body) + "\nselp.u32 %r8, 1, 0, %p2;\n"
                                  "@%p3 add.u32 %r8, %r8, 8;",
              want);
}

namespace {

struct FormCase {
  const char *instruction; ///< %o from %a, %b, %c
  const char *widths;      ///< of o, a, b, c
  uint64_t a, b, c, want;
};

uint64_t evaluate(const FormCase &t) {
  auto type = [](char w) {
    return w == 'h' ? "b16" : w == 'd' ? "b64" : w == 'b' ? "b8" : "b32";
  };
  const char *names[] = {"%o", "%a", "%b", "%c"};
  std::string s;
  for (unsigned i = 0; i < 4; ++i)
    s += std::string(".reg .") + type(t.widths[i]) + " " + names[i] + ";\n";
  for (unsigned i = 1; i < 4; ++i)
    s += std::string("ld.global.") + type(t.widths[i]) + " " + names[i] +
         ", [%d0+" + std::to_string(8 * i - 8) + "];\n";
  s += std::string("st.global.b64 [%d1], 0;\n") + t.instruction +
       ";\nst.global." + type(t.widths[0]) + " [%d1], %o;\n";
  Outcome r = runBody(s, bytesOf<uint64_t>({t.a, t.b, t.c}), 8, 1);
  EXPECT_TRUE(r.error.empty() && r.report.isClean())
      << t.instruction << r.text();
  return r.out.empty() ? 0 : r.at<uint64_t>(0);
}

} // namespace

TEST(Forms, OfLaterChips) {
  // What an sm_90 does not have, worked out from the manual.
  const FormCase cases[] = {
      {"add.f32.f16 %o, %a, %b", "rhrr", 0x3c00, 0x40000000, 0, 0x40400000},
      {"add.rz.sat.f32.bf16 %o, %a, %b", "rhrr", 0x3f80, 0x40000000, 0,
       0x3f800000},
      {"sub.rn.f32.f16 %o, %a, %b", "rhrr", 0x3c00, 0x40000000, 0, 0xbf800000},
      {"sub.f32.bf16 %o, %a, %b", "rhrr", 0x4000, 0x3f800000, 0, 0x3f800000},
      {"fma.rn.f32.f16 %o, %a, %b, %c", "rhhr", 0x4000, 0x4200, 0x3f800000,
       0x40e00000},
      {"fma.rp.f32.bf16 %o, %a, %b, %c", "rhhr", 0x3f80, 0x3f80, 0x33000000,
       0x3f800001},
      {"sub.rn.f32x2 %o, %a, %b", "dddd", 0x400000003f800000,
       0x3f8000003f800000, 0, 0x3f80000000000000},
      {"mul.rz.f32x2 %o, %a, %b", "dddd", 0x400000003f800000,
       0x4000000040000000, 0, 0x4080000040000000},
      {"min.abs.f32 %o, %a, %b, %c", "rrrr", 0xbf800000, 0xc0000000, 0x40400000,
       0x3f800000},
      {"max.NaN.abs.f32 %o, %a, %b, %c", "rrrr", 0xbf800000, 0xc0000000,
       0x7fc00000, 0x7fffffff},
      {"cvt.rn.satfinite.e2m3x2.f32 %o, %a, %b", "hrrr", 0x3f800000, 0xc1000000,
       0, 0x083f},
      {"cvt.rn.satfinite.e3m2x2.f32 %o, %a, %b", "hrrr", 0x3f800000, 0xc0000000,
       0, 0x0c30},
      {"cvt.rn.satfinite.relu.e3m2x2.f32 %o, %a, %b", "hrrr", 0x3f800000,
       0xc0000000, 0, 0x0c00},
      {"cvt.rn.f16x2.e2m3x2 %o, %a", "rhrr", 0x083f, 0, 0, 0x3c00c780},
      {"cvt.rn.relu.f16x2.e3m2x2 %o, %a", "rhrr", 0x0c30, 0, 0, 0x3c000000},
      {"cvt.rn.f16x2.e2m1x2 %o, %a", "rbrr", 0x2f, 0, 0, 0x3c00c600},
      {"cvt.rn.satfinite.e2m1x2.f32 %o, %a, %b", "brrr", 0x3f800000, 0xc1000000,
       0, 0x2f},
      {"cvt.rz.ue8m0x2.f32 %o, %a, %b", "hrrr", 0x3fc00000, 0x40000000, 0,
       0x7f80},
      {"cvt.rp.satfinite.ue8m0x2.f32 %o, %a, %b", "hrrr", 0x3fc00000,
       0x7f7fffff, 0, 0x80fe},
      {"cvt.rp.ue8m0x2.bf16x2 %o, %a", "hrrr", 0x3fc04000, 0, 0, 0x8080},
      {"cvt.rn.bf16x2.ue8m0x2 %o, %a", "rhrr", 0x7f80, 0, 0, 0x3f804000},
      {"cvt.rn.satfinite.tf32.f32 %o, %a", "rrrr", 0x3f801000, 0, 0,
       0x3f800000},
      {"cvt.rz.satfinite.relu.tf32.f32 %o, %a", "rrrr", 0xbf801000, 0, 0, 0},
      {"cvt.rna.satfinite.tf32.f32 %o, %a", "rrrr", 0x3f801000, 0, 0,
       0x3f802000},
      {"fma.rn.oob.f16 %o, %a, %b, %c", "hhhh", 0x3c00, 0x4000, 0x3c00, 0x4200},
      {"fma.rn.oob.bf16x2 %o, %a, %b, %c", "rrrr", 0x3f803f80, 0x40004000, 0,
       0x40004000},
      {"fns.b32 %o, %a, %b, %c", "rrrr", 0xaaaaaaaa, 2, 1, 3},
      {"fns.b32 %o, %a, %b, %c", "rrrr", 0xaaaaaaaa, 2, uint32_t(-1), 1},
      {"fns.b32 %o, %a, %b, %c", "rrrr", 0xaaaaaaaa, 3, 0, 3},
      {"bfi.b64 %o, %a, %b, 8, 8", "dddd", 0xab, ~0ull, 0, 0xffffffffffffabff},
      {"mad.lo.cc.u32 %o, %a, %b, %c;\nmadc.hi.cc.s32 %o, %a, %b, %c", "rrrr",
       0xffffffff, 2, 2, 2},
  };
  for (const FormCase &t : cases)
    EXPECT_EQ(evaluate(t), t.want) << t.instruction;
}

TEST(Forms, ApproximateHalves) {
  const FormCase cases[] = {
      {"tanh.approx.f16 %o, %a", "hhrr", 0, 0, 0, 0},
      {"tanh.approx.bf16 %o, %a", "hhrr", 0x7f80, 0, 0, 0x3f80},
      {"tanh.approx.bf16x2 %o, %a", "rrrr", 0x7f800000, 0, 0, 0x3f800000},
      {"tanh.approx.f16x2 %o, %a", "rrrr", 0x7c000000, 0, 0, 0x3c000000},
      {"ex2.approx.f16 %o, %a", "hhrr", 0x4000, 0, 0, 0x4400},
      {"ex2.approx.f16x2 %o, %a", "rrrr", 0x40003c00, 0, 0, 0x44004000},
      {"ex2.approx.ftz.bf16 %o, %a", "hhrr", 0x4000, 0, 0, 0x4080},
      {"ex2.approx.ftz.bf16x2 %o, %a", "rrrr", 0x40003f80, 0, 0, 0x40804000},
      {"rsqrt.approx.f64 %o, %a", "dddd", 0x4010000000000000, 0, 0,
       0x3fe0000000000000},
      {"rsqrt.approx.ftz.f64 %o, %a", "dddd", 0x4010000000000000, 0, 0,
       0x3fe0000000000000},
      {"rcp.approx.ftz.f64 %o, %a", "dddd", 1, 0, 0, 0x7ff0000000000000},
  };
  for (const FormCase &t : cases)
    EXPECT_EQ(evaluate(t), t.want) << t.instruction;
}
