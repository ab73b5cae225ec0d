//===- CountersTest.cpp - L2 traffic and waits ----------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

Counters countersOf(const std::string &body, unsigned threads = 32,
                    unsigned ctas = 1) {
  LaunchConfig config;
  config.block = {threads, 1, 1};
  config.grid = config.cluster = {ctas, 1, 1};
  config.dynamicShared = 4096;
  Outcome r = runText(wrapKernel("mov.u32 %r1, smem;\nshl.b32 %r2, %r0, 2;\n"
                                 "setp.eq.u32 %p0, %r0, 0;\n"
                                 "mul.wide.u32 %d2, %r0, 4;\n"
                                 "add.s64 %d3, %d0, %d2;\n"
                                 "add.s64 %d4, %d1, %d2;\n"
                                 "mul.wide.u32 %d5, %r0, 32;\n" +
                                 body),
                      std::vector<uint8_t>(4096), 4096, config);
  expectClean(r);
  return r.report.counters;
}

void expectL2(const L2Traffic &l2, uint64_t read, uint64_t delivered,
              uint64_t written, uint64_t atomic) {
  EXPECT_EQ(l2.readBytes, read);
  EXPECT_EQ(l2.deliveredBytes, delivered);
  EXPECT_EQ(l2.writtenBytes, written);
  EXPECT_EQ(l2.atomicBytes, atomic);
}

std::string bulkLoad(const char *multicast, const char *mask) {
  return "@%p0 mbarrier.init.shared::cta.b64 [%r1], 1;\n"
         "fence.mbarrier_init.release.cluster;\n"
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n"
         "mov.u32 %r5, %cluster_ctarank;\n@!%p0 bra W;\n"
         "mbarrier.arrive.expect_tx.shared::cta.b64 %d6, [%r1], 256;\n"
         "setp.ne.u32 %p1, %r5, 0;\n@%p1 bra W;\nmov.u16 %h1, 3;\n"
         "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes" +
         std::string(multicast) + " [%r1+64], [%d0], 256, [%r1]" + mask +
         ";\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\n"
         "@!%p2 bra W;\n"
         "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
}

} // namespace

TEST(Counters, SectorsOfPlainAccesses) {
  // A line; a sector for each lane; one sector for all.
  expectL2(countersOf("ld.global.b32 %r3, [%d3];").l2, 128, 128, 0, 0);
  expectL2(countersOf("add.s64 %d6, %d5, %d0;\nld.global.b32 %r3, [%d6];").l2,
           1024, 1024, 0, 0);
  expectL2(countersOf("ld.global.b32 %r3, [%d0];").l2, 32, 32, 0, 0);
  expectL2(countersOf("st.global.b32 [%d4], %r0;").l2, 0, 0, 128, 0);
  expectL2(countersOf("add.s64 %d6, %d5, %d1;\nst.global.b32 [%d6], %r0;\n"
                      "red.global.add.u32 [%d6], 1;")
               .l2,
           0, 0, 1024, 1024);
  // Shared memory has its own counters.
  expectL2(countersOf("add.u32 %r3, %r1, %r2;\nst.shared.b32 [%r3], %r0;\n"
                      "atom.shared.add.u32 %r4, [%r3], 1;")
               .l2,
           0, 0, 0, 0);
}

TEST(Counters, SectorsOfCopies) {
  expectL2(countersOf("add.u32 %r3, %r1, %r2;\n"
                      "cp.async.ca.shared.global [%r3], [%d3], 4;\n"
                      "cp.async.commit_group;\ncp.async.wait_group 0;")
               .l2,
           128, 128, 0, 0);
  const char *fill = "add.u32 %r3, %r1, %r2;\nst.shared.b32 [%r3+64], %r0;\n"
                     "fence.proxy.async;\nbar.sync 0;\n";
  const char *wait =
      "\n@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;";
  expectL2(countersOf(std::string(fill) +
                      "@%p0 cp.async.bulk.global.shared::cta.bulk_group [%d1], "
                      "[%r1+64], 128;" +
                      wait)
               .l2,
           0, 0, 128, 0);
  expectL2(countersOf("st.global.b32 [%d4], %r0;\nfence.proxy.async;\n" +
                      std::string(fill) +
                      "@%p0 cp.reduce.async.bulk.global.shared::cta.bulk_group."
                      "add.u32 [%d1], [%r1+64], 128;" +
                      wait)
               .l2,
           0, 0, 128, 128);
  // A multicast copy leaves L2 once and arrives twice.
  expectL2(countersOf(bulkLoad("", ""), 32, 1).l2, 256, 256, 0, 0);
  expectL2(countersOf(bulkLoad(".multicast::cluster", ", %h1"), 32, 2).l2, 256,
           512, 0, 0);
}

TEST(Counters, BankConflictsOfEightBytes) {
  auto getTraffic = [](const char *access, unsigned shift) {
    Counters c =
        countersOf("shl.b32 %r3, %r0, " + std::to_string(shift) +
                   ";\nand.b32 %r3, %r3, 4095;\nadd.u32 %r3, %r1, %r3;\n"
                   "mov.b64 %d6, 7;\nst.shared.b64 [%r3], %d6;\n"
                   "bar.warp.sync -1;\n" +
                   access);
    return c.shared["ld.shared"];
  };
  const char *load = "ld.shared.b64 %d7, [%r3];";
  // A half warp at a time moves 128 bytes: in order without a conflict.
  SharedTraffic dense = getTraffic(load, 3);
  EXPECT_EQ(dense.wavefronts, 2u);
  EXPECT_EQ(dense.conflicts, 0u);
  EXPECT_EQ(dense.bytes, 256u);
  // Every second 8 bytes: half the banks, twice the wavefronts.
  SharedTraffic spread = getTraffic(load, 4);
  EXPECT_EQ(spread.wavefronts, 4u);
  EXPECT_EQ(spread.conflicts, 2u);
  // All lanes of a half warp in one pair of banks.
  SharedTraffic column = getTraffic(load, 7);
  EXPECT_EQ(column.wavefronts, 32u);
  EXPECT_EQ(column.conflicts, 30u);
}

TEST(Counters, Waits) {
  Counters c = countersOf("bar.sync 0;\nbar.sync 0;", 96);
  EXPECT_EQ(c.waits["barrier"].waits, 6u);
  // The last warp that comes does not stall.
  EXPECT_EQ(c.waits["barrier"].stalled, 4u);
  EXPECT_EQ(c.waits.count("mbarrier"), 0u);
  c = countersOf(bulkLoad(".multicast::cluster", ", %h1"), 32, 2);
  EXPECT_EQ(c.waits["cluster barrier"].waits, 4u);
  EXPECT_EQ(c.waits["cluster barrier"].stalled, 2u);
  EXPECT_GE(c.waits["mbarrier"].stalled, 2u);
  EXPECT_EQ(c.waits["mbarrier"].waits - c.waits["mbarrier"].stalled, 2u);
  llvm::json::Value json = c.toJSON();
  EXPECT_EQ(json.getAsObject()->getObject("l2")->getInteger("delivered_bytes"),
            512);
  EXPECT_EQ(json.getAsObject()
                ->getObject("waits")
                ->getObject("cluster barrier")
                ->getInteger("waits"),
            4);
}
