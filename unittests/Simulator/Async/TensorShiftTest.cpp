//===- TensorShiftTest.cpp - Rows that move, lanes that are refreshed -----===//
//
// tcgen05.shift, tcgen05.cp of 4x256b and products with .ashift, by the words
// of the manual: "the shifting of 32-byte elements downwards across all the
// rows, except the last, by one row", of a shape 31x256b, at a lane that is a
// multiple of 32.
//
//===----------------------------------------------------------------------===//

#include "../MatrixKernels.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

constexpr unsigned Columns = 16;

/// What a cell holds before the operations.
uint32_t cellValue(unsigned cta, unsigned lane, unsigned column) {
  return cta << 16 | lane << 8 | column;
}
/// Word i of row r of the copy's source.
uint32_t sourceValue(unsigned cta, unsigned row, unsigned i) {
  return 0xc0000000 | cta << 16 | row << 8 | i;
}

/// Fills sixteen columns, runs `ops` in one thread of the first CTA and reads
/// the columns back. %r10 is the address of the columns, %d5 a descriptor of
/// the copy's source.
Outcome runOps(const std::string &ops, unsigned ctas = 1,
               Profile profile = Profile::Hw,
               AsyncTiming timing = AsyncTiming::Completion) {
  std::string group = ctas == 2 ? "cta_group::2" : "cta_group::1";
  std::string sync = "tcgen05.fence::before_thread_sync;\n";
  sync += ctas == 2 ? "barrier.cluster.arrive.aligned;\n"
                      "barrier.cluster.wait.aligned;\n"
                    : "bar.sync 0;\n";
  sync += "tcgen05.fence::after_thread_sync;\n";
  std::string s =
      "mov.u32 %r1, smem;\nmov.u32 %r50, %cluster_ctarank;\n"
      "setp.eq.u32 %p0, %r0, 0;\nsetp.lt.u32 %p1, %r0, 32;\n"
      "@%p0 mbarrier.init.shared::cta.b64 [%r1+16], 1;\n"
      "fence.mbarrier_init.release.cluster;\n"
      // Row r, half h: sixteen bytes at 16r + 4096h.
      "shr.u32 %r2, %r0, 1;\nand.b32 %r3, %r0, 1;\n"
      "shl.b32 %r4, %r2, 4;\nshl.b32 %r5, %r3, 12;\nadd.u32 %r4, %r4, %r5;\n"
      "add.u32 %r4, %r4, %r1;\nshl.b32 %r5, %r2, 8;\nshl.b32 %r6, %r50, 16;\n"
      "add.u32 %r5, %r5, %r6;\nshl.b32 %r7, %r3, 2;\nadd.u32 %r5, %r5, %r7;\n"
      "add.u32 %r5, %r5, 0xc0000000;\nadd.u32 %r7, %r5, 1;\n"
      "add.u32 %r8, %r5, 2;\nadd.u32 %r9, %r5, 3;\nsetp.lt.u32 %p2, %r0, 16;\n"
      "@%p2 st.shared.v4.b32 [%r4+1024], {%r5, %r7, %r8, %r9};\n"
      "fence.proxy.async;\n" +
      sync + "@%p1 tcgen05.alloc." + group +
      ".sync.aligned.shared::cta.b32 [%r1], 32;\n" + sync +
      "ld.shared.b32 %r10, [%r1];\nshr.u32 %r8, %r0, 5;\n"
      "shl.b32 %r8, %r8, 21;\nadd.u32 %r11, %r10, %r8;\n"
      "shl.b32 %r9, %r0, 8;\nadd.u32 %r9, %r9, %r6;\n";
  for (unsigned i = 0; i < Columns; ++i)
    s += "add.u32 %r" + std::to_string(100 + i) + ", %r9, " +
         std::to_string(i) + ";\n";
  std::string cells = list("%r", 100, Columns);
  s += "tcgen05.st.sync.aligned.32x32b.x16.b32 [%r11], " + cells +
       ";\ntcgen05.wait::st.sync.aligned;\n" + sync +
       "or.b32 %r12, %r0, %r50;\nsetp.ne.u32 %p3, %r12, 0;\n"
       "add.u32 %r12, %r1, 1024;\nshr.u32 %r12, %r12, 4;\n"
       "and.b32 %r12, %r12, 0x3fff;\ncvt.u64.u32 %d5, %r12;\n"
       "or.b64 %d5, %d5, " +
       std::to_string(uint64_t(1) << 46 | uint64_t(8) << 32 |
                      uint64_t(256) << 16) +
       ";\nmov.u16 %h1, " + std::to_string(ctas == 2 ? 3 : 1) +
       ";\n@%p3 bra W;\n" + ops + "\ntcgen05.commit." + group +
       ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 "
       "[%r1+16], %h1;\nW:\n"
       "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p4, "
       "[%r1+16], 0;\n@!%p4 bra W;\ntcgen05.fence::after_thread_sync;\n"
       "tcgen05.ld.sync.aligned.32x32b.x16.b32 " +
       cells +
       ", [%r11];\ntcgen05.wait::ld.sync.aligned;\n"
       "mad.lo.u32 %r13, %r50, 128, %r0;\nmul.wide.u32 %d2, %r13, 64;\n"
       "add.u64 %d2, %d2, %d1;\n";
  for (unsigned i = 0; i < Columns; ++i)
    s += "st.global.b32 [%d2+" + std::to_string(4 * i) + "], %r" +
         std::to_string(100 + i) + ";\n";
  s += sync + "@%p1 tcgen05.dealloc." + group + ".sync.aligned.b32 %r10, 32;\n";
  LaunchConfig config;
  config.block = {128, 1, 1};
  config.grid = config.cluster = {ctas, 1, 1};
  config.dynamicShared = 16384;
  config.profile = profile;
  config.asyncReads = config.asyncWrites = timing;
  return runText(wrapKernel(s), {}, ctas * 128 * Columns * 4, config);
}

/// The cells after a run, as the tests expect them.
struct Cells {
  std::vector<uint32_t> v;
  unsigned ctas;
  explicit Cells(unsigned ctas) : v(ctas * 128 * Columns), ctas(ctas) {
    for (unsigned i = 0; i < v.size(); ++i)
      v[i] = cellValue(i / Columns / 128, i / Columns % 128, i % Columns);
  }
  uint32_t &at(unsigned cta, unsigned lane, unsigned column) {
    return v[(cta * 128 + lane) * Columns + column];
  }
  void shift(unsigned partition, unsigned column) {
    for (unsigned cta = 0; cta < ctas; ++cta)
      for (unsigned row = 0; row < 31; ++row)
        for (unsigned i = 0; i < 8; ++i)
          at(cta, 32 * partition + row, column + i) =
              at(cta, 32 * partition + row + 1, column + i);
  }
  void refresh(unsigned lane, unsigned column) {
    for (unsigned cta = 0; cta < ctas; ++cta)
      for (unsigned row = 0; row < 4; ++row)
        for (unsigned i = 0; i < 8; ++i)
          at(cta, 32 * row + lane, column + i) = sourceValue(cta, row, i);
  }
  void expect(const Outcome &r, const std::string &ops) const {
    ASSERT_TRUE(r.error.empty() && r.report.isClean()) << ops << r.text();
    for (unsigned i = 0; i < v.size(); ++i)
      ASSERT_EQ(r.at<uint32_t>(i), v[i])
          << ops << " CTA " << i / Columns / 128 << " lane "
          << i / Columns % 128 << " column " << i % Columns;
  }
};

std::string groupOf(unsigned ctas) {
  return ctas == 2 ? "cta_group::2" : "cta_group::1";
}
std::string shiftAt(unsigned lane, unsigned column, unsigned ctas = 1) {
  return "tcgen05.shift." + groupOf(ctas) + ".down [%r10+" +
         std::to_string(lane << 16 | column) + "];\n";
}
std::string refreshAt(unsigned lane, unsigned column, unsigned ctas = 1) {
  return "tcgen05.cp." + groupOf(ctas) + ".4x256b [%r10+" +
         std::to_string(lane << 16 | column) + "], %d5;\n";
}

} // namespace

TEST(TensorShift, MovesThePartitionOfItsLane) {
  for (unsigned ctas : {1u, 2u})
    for (unsigned partition = 0; partition < 4; ++partition)
      for (unsigned column : {0u, 5u, 8u})
        for (AsyncTiming timing :
             {AsyncTiming::Issue, AsyncTiming::Completion}) {
          Cells cells(ctas);
          cells.shift(partition, column);
          std::string ops = shiftAt(32 * partition, column, ctas);
          cells.expect(runOps(ops, ctas, Profile::Hw, timing), ops);
        }
}

TEST(TensorShift, ThenRefreshesTheLastLane) {
  for (unsigned ctas : {1u, 2u}) {
    Cells cells(ctas);
    std::string ops;
    for (unsigned partition = 0; partition < 4; ++partition) {
      cells.shift(partition, 4);
      ops += shiftAt(32 * partition, 4, ctas);
    }
    cells.refresh(31, 4);
    ops += refreshAt(31, 4, ctas);
    cells.expect(runOps(ops, ctas), ops);
  }
  Cells cells(1);
  cells.refresh(0, 0);
  cells.expect(runOps(refreshAt(0, 0)), "first lanes");
}

TEST(TensorShift, Pipelines) {
  // shift -> cp.4x256b, shift -> mma, mma -> shift are the manual's.
  std::string product = "mov.u32 %r14, " +
                        std::to_string(1u << 4 | 1u << 17 | 8u << 24) +
                        ";\nadd.u32 %r15, %r10, 16;\n";
  std::string mma = "tcgen05.mma.cta_group::1.kind::f16 [%r15], [%r10], %d5, "
                    "%r14, 0;\n";
  auto isa = [](const std::string &ops) {
    return runOps(ops, 1, Profile::Isa);
  };
  expectClean(isa(shiftAt(0, 0) + refreshAt(31, 0)));
  expectClean(isa(product + shiftAt(0, 0) + mma));
  expectClean(isa(product + mma + shiftAt(0, 0)));
  // Others are not; hw runs them in order (A1).
  for (const std::string &ops :
       {refreshAt(31, 0) + shiftAt(0, 0), shiftAt(0, 0) + shiftAt(0, 0),
        product + mma + refreshAt(31, 0)}) {
    expectError(isa(ops), FindingKind::Race);
    EXPECT_TRUE(runOps(ops).report.isClean()) << ops << runOps(ops).text();
  }
}

TEST(TensorMma, LanesOfAPairThatAreNotWritten) {
  // M = 256: rows are the lanes of the first CTA, then those of the second.
  const uint32_t masks[] = {0xffff0000, 0, 0, 0x80000000, 1, 0xff00, 0, 0};
  std::string words;
  for (uint32_t mask : masks)
    words += (words.empty() ? "{" : ", ") + std::to_string(mask);
  std::string ops = "mov.u32 %r14, " +
                    std::to_string(1u << 4 | 2u << 17 | 16u << 24) +
                    ";\nadd.u32 %r15, %r10, 8;\n"
                    "tcgen05.mma.cta_group::2.kind::f16 [%r15], [%r10], %d5, "
                    "%r14, " +
                    words + "}, 0;";
  Outcome r = runOps(ops, 2);
  ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
  Cells before(2);
  for (unsigned row = 0; row < 256; ++row)
    for (unsigned i = 0; i < Columns; ++i) {
      bool kept = i < 8 || (masks[row / 32] >> row % 32 & 1);
      EXPECT_EQ(r.at<uint32_t>(row * Columns + i) ==
                    before.v[row * Columns + i],
                kept)
          << row << " " << i;
    }
}

TEST(TensorShift, BadTwins) {
  struct Case {
    std::string ops, expected;
  };
  const Case cases[] = {
      {shiftAt(16, 0), "expected a lane that is a multiple of 32 below 128, "
                       "got lane 16"},
      {shiftAt(128, 0), "got lane 128"},
      {shiftAt(0, 28), "tcgen05.shift moves columns that the CTA has not "
                       "allocated"},
      {shiftAt(0, 0, 2), "expected a pair of CTAs in the cluster"},
      {refreshAt(32, 0), "expected a lane below 32 for a copy of one lane of "
                         "each partition, got lane 32"},
      {"tcgen05.shift.cta_group::1 [%r10];", "expected '.down'"},
      {"tcgen05.shift.down [%r10];", "expected '.cta_group'"},
  };
  for (const Case &c : cases)
    EXPECT_NE(runOps(c.ops).text().find(c.expected), std::string::npos)
        << c.ops << runOps(c.ops).text();
  // A commit covers what came before it only.
  expectError(runOps("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared"
                     "::cluster.b64 [%r1+16];\n" +
                     shiftAt(0, 0)),
              FindingKind::Race);
}
