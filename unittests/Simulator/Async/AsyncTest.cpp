//===- AsyncTest.cpp - Bulk copies, clusters, register pool ---------------===//
//
// Small kernels that use one engine each, with good and bad twins.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"
#include "attn/Simulator/Async/TensorMap.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// A kernel with a tensor map, a pointer `in` and a pointer `out`.
struct MapKernel {
  std::string text;
  std::vector<uint8_t> in;
  TensorMapInfo map;   ///< address is filled in
  uint64_t before = 0; ///< bytes by which the map begins in front of `in`
  size_t outBytes = 0;
  LaunchConfig config;

  MapKernel() {
    config.block = {64, 1, 1};
    config.dynamicShared = 32768;
  }
  static std::string wrap(llvm::StringRef body, const char *extra = "") {
    return (".version 8.8\n.target sm_100a\n.address_size 64\n"
            ".extern .shared .align 1024 .b8 smem[];\n"
            ".visible .entry k(.param .align 64 .b8 map[128], .param .u64 in, "
            ".param .u64 out)\n" +
            std::string(extra) +
            "{\n.reg .pred %p<20>;\n.reg .b32 %r<300>;\n.reg .b64 %d<40>;\n"
            ".reg .b16 %h<10>;\n"
            "ld.param.u64 %d0, [in];\nld.param.u64 %d1, [out];\n"
            "mov.u64 %d9, map;\ncvta.param.u64 %d8, %d9;\n"
            "mov.u32 %r0, %tid.x;\nmov.b32 %r1, smem;\n"
            "setp.eq.s32 %p0, %r0, 0;\n" +
            body.str() + "\nret;\n}\n");
  }
  Outcome go(llvm::StringRef body, const char *extra = "") {
    Outcome r;
    auto program = parsePTX(wrap(body, extra), "test.ptx");
    if (!program) {
      r.error = llvm::toString(program.takeError());
      return r;
    }
    Memory memory;
    uint64_t inAddress = memory.allocate(in.size(), "in");
    uint64_t outAddress = memory.allocate(outBytes, "out");
    llvm::cantFail(memory.write(inAddress, in));
    TensorMapInfo m = map;
    m.address = (m.address ? outAddress : inAddress) - before;
    auto bytes = encodeTensorMap(m);
    if (!bytes) {
      r.error = llvm::toString(bytes.takeError());
      return r;
    }
    config.params.assign(144, 0);
    std::memcpy(config.params.data(), bytes->data(), 128);
    std::memcpy(config.params.data() + 128, &inAddress, 8);
    std::memcpy(config.params.data() + 136, &outAddress, 8);
    recordText(wrap(body, extra));
    auto report = run(**program, memory, config);
    if (!report) {
      r.error = llvm::toString(report.takeError());
      return r;
    }
    r.report = std::move(*report);
    r.out.resize(outBytes);
    llvm::cantFail(memory.read(outAddress, r.out));
    return r;
  }
};

/// Loads an 8x64-element f16 box to smem+1024 and copies it to `out` with
/// `sync` steps that a test can break.
std::string loadKernel(const char *expect, const char *wait, const char *x,
                       const char *y) {
  return std::string("@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
                     "@%p0 fence.mbarrier_init.release.cluster;\nbar.sync 0;\n"
                     "@!%p0 bra W;\n") +
         expect +
         "\ncp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_"
         "tx::bytes [%r1+1024], [%d8, {" +
         x + ", " + y + "}], [%r1];\nW:\n" + wait +
         "\nshl.b32 %r2, %r0, 4;\nadd.s32 %r3, %r1, %r2;\n"
         "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3+1024];\n"
         "cvt.u64.u32 %d2, %r2;\nadd.s64 %d3, %d1, %d2;\n"
         "st.global.v4.b32 [%d3], {%r4, %r5, %r6, %r7};\n";
}
const char *Expect = "mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 1024;";
const char *Wait = "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
                   "@%p1 bra D;\nbra L;\nD:";

MapKernel loadTest() {
  MapKernel k;
  std::vector<uint16_t> in(20 * 80);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = i + 1;
  k.in = bytesOf(in);
  k.map.rank = 2;
  k.map.dims = {80, 20, 1, 1, 1};
  k.map.strides = {0, 160, 0, 0, 0};
  k.map.box = {64, 8, 1, 1, 1};
  k.map.swizzleBytes = 128;
  k.outBytes = 1024;
  return k;
}

} // namespace

TEST(TensorMap, ChecksAndRoundTrips) {
  TensorMapInfo info;
  info.address = 0x700000000;
  info.rank = 3;
  info.dims = {128, 70, 3, 1, 1};
  info.strides = {0, 256, 65536, 0, 0};
  info.box = {32, 7, 1, 1, 1};
  info.swizzleBytes = 64;
  auto bytes = llvm::cantFail(encodeTensorMap(info));
  TensorMapInfo back = llvm::cantFail(decodeTensorMap(bytes));
  EXPECT_EQ(back.dims, info.dims);
  EXPECT_EQ(back.strides, info.strides);
  EXPECT_EQ(back.box, info.box);
  EXPECT_EQ(back.swizzleBytes, 64u);
  info.box[0] = 64;
  EXPECT_EQ(llvm::toString(encodeTensorMap(info).takeError()),
            "tensor map: expected an inner box of at most 64 bytes, got 128");
  info.box[0] = 32;
  info.strides[1] = 250;
  EXPECT_TRUE(llvm::StringRef(llvm::toString(encodeTensorMap(info).takeError()))
                  .contains("multiple of 16"));
  bytes[11] = 1;
  EXPECT_EQ(llvm::toString(decodeTensorMap(bytes).takeError()),
            "tensor map: expected no flags but the known ones, got 1000000");
}

TEST(BulkCopy, TensorLoadSwizzlesAndFills) {
  for (AsyncTiming timing :
       {AsyncTiming::Issue, AsyncTiming::Completion, AsyncTiming::Random}) {
    MapKernel k = loadTest();
    k.config.asyncReads = k.config.asyncWrites = timing;
    // The box starts at (32, 15): both dimensions run over the end.
    Outcome r = k.go(loadKernel(Expect, Wait, "32", "15"));
    expectClean(r);
    for (unsigned row = 0; row < 8; ++row)
      for (unsigned c = 0; c < 64; ++c) {
        unsigned chunk = (c / 8) ^ row;
        uint16_t want = row < 5 && c < 48 ? (15 + row) * 80 + 32 + c + 1 : 0;
        EXPECT_EQ(r.at<uint16_t>(row * 64 + chunk * 8 + c % 8), want)
            << row << " " << c;
      }
  }
}

TEST(BulkCopy, NegativeCoordinatesReadZeros) {
  MapKernel k = loadTest();
  Outcome r = k.go(loadKernel(Expect, Wait, "-8", "-1"));
  expectClean(r);
  EXPECT_EQ(r.at<uint16_t>(0), 0u);
  EXPECT_EQ(r.at<uint16_t>(64 + 0), 0u + 1); // row 1, chunk 1 is elements 0-7
}

TEST(BulkCopy, ReadsTheAddressOfItsMapForAbsentBoxes) {
  // Nothing of the box is in the map, whose address is that of `in`, or lies in
  // front of it.
  MapKernel k = loadTest();
  for (const char *row : {"20", "-8", "1000"}) {
    Outcome r = k.go(loadKernel(Expect, Wait, "0", row));
    expectClean(r);
    EXPECT_EQ(r.at<uint16_t>(0), 0u);
  }
  k.before = 160;
  expectClean(k.go(loadKernel(Expect, Wait, "0", "1")));
  for (const char *row : {"20", "-8"}) {
    Outcome r = k.go(loadKernel(Expect, Wait, "0", row));
    expectError(r, FindingKind::OutOfBounds);
    EXPECT_NE(r.text().find("no element inside of its tensor map"),
              std::string::npos);
  }
}

TEST(BulkCopy, MapsThatFillWithNaN) {
  MapKernel k = loadTest();
  k.map.nanFill = true;
  Outcome r = k.go(loadKernel(Expect, Wait, "-8", "-1"));
  expectClean(r);
  EXPECT_EQ(r.at<uint16_t>(0), 0x7fffu);
  EXPECT_EQ(r.at<uint16_t>(64 + 0), 0u + 1);
}

TEST(BulkCopy, BadTwins) {
  MapKernel k = loadTest();
  // Reading before the barrier's phase has completed.
  expectError(k.go(loadKernel(Expect, "bar.sync 0;", "0", "0")),
              FindingKind::Race);
  // Too many bytes expected: nobody can go on.
  expectError(
      k.go(loadKernel("mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 2048;",
                      Wait, "0", "0")),
      FindingKind::Deadlock);
  // Exit with a load in flight.
  expectError(
      k.go(std::string("@%p0 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync "
                       "0;\n@!%p0 bra E;\n") +
           Expect +
           "\ncp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::"
           "complete_tx::bytes [%r1+1024], [%d8, {0, 0}], [%r1];\nE:"),
      FindingKind::ExitInFlight);
  // Elements of 2 bytes from the middle of 16 bytes on.
  for (const char *column : {"4", "-1"}) {
    Outcome r = k.go(loadKernel(Expect, Wait, column, "0"));
    expectError(r, FindingKind::Misaligned);
    EXPECT_NE(r.text().find("expected the first coordinate of a tensor load to "
                            "be a multiple of 8, 16 bytes, got " +
                            std::string(column)),
              std::string::npos);
  }
  // The box starts inside a row of 128 bytes.
  std::string shifted = loadKernel(Expect, Wait, "0", "0");
  shifted.replace(shifted.find("[%r1+1024], [%d8"), 10, "[%r1+1040]");
  Outcome r = k.go(shifted);
  expectError(r, FindingKind::Misaligned);
  EXPECT_NE(r.text().find("expected shared memory aligned to 128 bytes"),
            std::string::npos);
  // A box of more bytes than the CTA has.
  k.map.box = {64, 256, 1, 1, 1};
  r = k.go(loadKernel(Expect, Wait, "0", "0"));
  expectError(r, FindingKind::OutOfBounds);
  EXPECT_NE(r.text().find("a bulk copy of 32768 bytes leaves the 32768 bytes"),
            std::string::npos)
      << r.text();
  k.map.box = {64, 8, 1, 1, 1};
  // A map of another rank.
  k.map.rank = 3;
  k.map.strides[2] = 3200;
  expectError(k.go(loadKernel(Expect, Wait, "0", "0")),
              FindingKind::InvalidOperation);
}

TEST(BulkCopy, StoreNeedsProxyFence) {
  auto kernel = [](const char *fence, const char *wait) {
    return std::string("shl.b32 %r2, %r0, 4;\nadd.s32 %r3, %r1, %r2;\n"
                       "st.shared.v4.b32 [%r3], {%r0, %r0, %r0, %r0};\n") +
           fence +
           "\nbar.sync 0;\n@!%p0 bra E;\n"
           "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group "
           "[%d8, {0, 0}], [%r1];\ncp.async.bulk.commit_group;\n" +
           wait + "\nE:";
  };
  MapKernel k = loadTest();
  k.map.address = 1; // the map describes `out`
  k.map.dims = {64, 6, 1, 1, 1};
  k.map.strides = {0, 128, 0, 0, 0};
  k.map.swizzleBytes = 0;
  const char *fence = "fence.proxy.async.shared::cta;";
  const char *wait = "cp.async.bulk.wait_group.read 0;";
  Outcome r = k.go(kernel(fence, wait));
  expectClean(r);
  EXPECT_EQ(r.at<uint32_t>(4 * 13), 13u);
  EXPECT_EQ(r.at<uint32_t>(4 * 47), 47u);
  EXPECT_EQ(r.at<uint32_t>(4 * 48), 0xCBCBCBCBu); // beyond the six rows
  expectError(k.go(kernel("", wait)), FindingKind::Race);
  expectError(k.go(kernel(fence, "")), FindingKind::ExitInFlight);
  // The space counts.
  expectClean(k.go(kernel("fence.proxy.async;", wait)));
  expectClean(k.go(kernel("fence.proxy.async.shared::cluster;", wait)));
  expectError(k.go(kernel("fence.proxy.async.global;", wait)),
              FindingKind::Race);
}

TEST(BulkCopy, PlainAndReduce) {
  MapKernel k = loadTest();
  k.outBytes = 1024;
  Outcome r = k.go(std::string("@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
                               "bar.sync 0;\n@!%p0 bra W;\n") +
                   Expect +
                   "\ncp.async.bulk.shared::cta.global.mbarrier::complete_tx::"
                   "bytes [%r1+1024], [%d0], 1024, [%r1];\nW:\n" +
                   Wait +
                   "\nbar.sync 0;\n@!%p0 bra E;\n"
                   "cp.async.bulk.global.shared::cta.bulk_group [%d1], "
                   "[%r1+1024], 1024;\ncp.async.bulk.commit_group;\n"
                   "cp.async.bulk.wait_group 0;\n"
                   "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 "
                   "[%d1], [%r1+1024], 512;\ncp.async.bulk.commit_group;\n"
                   "cp.async.bulk.wait_group 0;\nE:");
  expectClean(r);
  EXPECT_EQ(r.at<uint16_t>(3), 8u);
  EXPECT_EQ(r.at<uint16_t>(300), 301u);
}

TEST(Cluster, MulticastAndRemoteArrive) {
  // CTA 0 loads once for both; each waits on its own barrier; then both
  // signal CTA 0, which waits before it exits.
  MapKernel k = loadTest();
  k.config.grid = {2, 1, 1};
  k.config.cluster = {2, 1, 1};
  k.outBytes = 2048;
  auto kernel = [](const char *mask, const char *last) {
    return std::string(
               "mov.u32 %r20, %cluster_ctarank;\n"
               "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
               "@%p0 mbarrier.init.shared.b64 [%r1+8], 128;\n"
               "@%p0 fence.mbarrier_init.release.cluster;\n"
               "barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;\n"
               "@!%p0 bra W;\n") +
           Expect + "\nsetp.ne.s32 %p2, %r20, 0;\n@%p2 bra W;\nmov.b16 %h1, " +
           mask +
           ";\ncp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
           "complete_tx::bytes.multicast::cluster [%r1+1024], [%d8, {0, 0}], "
           "[%r1], %h1;\nW:\n" +
           Wait +
           "\nshl.b32 %r2, %r0, 4;\nadd.s32 %r3, %r1, %r2;\n"
           "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r3+1024];\n"
           "shl.b32 %r8, %r20, 10;\nadd.s32 %r8, %r8, %r2;\n"
           "cvt.u64.u32 %d2, %r8;\nadd.s64 %d3, %d1, %d2;\n"
           "st.global.v4.b32 [%d3], {%r4, %r5, %r6, %r7};\n"
           "mov.b32 %r30, 0;\nadd.s32 %r31, %r1, 8;\n"
           "mapa.shared::cluster.u32 %r32, %r31, %r30;\n"
           "mbarrier.arrive.shared::cluster.b64 _, [%r32];\n" +
           last;
  };
  const char *last = "setp.ne.s32 %p4, %r20, 0;\n@%p4 bra E;\n"
                     "M: mbarrier.try_wait.parity.shared.b64 %p5, [%r1+8], 0;\n"
                     "@!%p5 bra M;\nE:";
  for (bool random : {false, true}) {
    k.config.schedule = random ? Schedule::Random : Schedule::RoundRobin;
    Outcome r = k.go(kernel("3", last));
    expectClean(r);
    EXPECT_EQ(r.at<uint16_t>(0), 1u);
    EXPECT_EQ(r.at<uint16_t>(512), 1u);
    // Row 1 is 80 elements further on and its chunks change places by one.
    EXPECT_EQ(r.at<uint16_t>(512 + 64 + 8), 81u);
  }
  expectError(k.go(kernel("1", last)), FindingKind::Deadlock);
  // CTA 0 does not wait for its peer's signals.
  Outcome early = k.go(kernel("3", ""));
  EXPECT_FALSE(early.report.isClean()) << early.text();
}

TEST(Cluster, SharedMemoryOfThePeer) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.grid = config.cluster = {2, 1, 1};
  config.dynamicShared = 1024;
  auto kernel = [](const char *first, const char *last) {
    return wrapKernel(
        std::string(
            "mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
            "xor.b32 %r3, %r2, 1;\nshl.b32 %r4, %r0, 2;\n"
            "add.s32 %r5, %r1, %r4;\nmapa.shared::cluster.u32 %r6, %r5, "
            "%r3;\nshl.b32 %r8, %r2, 7;\nadd.s32 %r9, %r8, %r0;\n"
            "st.shared::cluster.b32 [%r6], %r9;\n") +
        first +
        "\nld.shared.b32 %r7, [%r5];\nadd.s32 %r10, %r8, %r4;\n"
        "cvt.u64.u32 %d2, %r10;\nadd.s64 %d3, %d1, %d2;\n"
        "st.global.b32 [%d3], %r7;\n" +
        last);
  };
  const char *barrier = "barrier.cluster.arrive;\nbarrier.cluster.wait;";
  Outcome r = runText(kernel(barrier, ""), {}, 256, config);
  expectClean(r);
  EXPECT_EQ(r.at<uint32_t>(5), 128u + 5);
  EXPECT_EQ(r.at<uint32_t>(32 + 5), 5u);
  Outcome relaxed = runText(
      kernel("barrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;", ""), {},
      256, config);
  EXPECT_GE(relaxed.report.countErrors(FindingKind::Race), 1u)
      << relaxed.text();
}

TEST(Cluster, AsyncStoreSignalsItsBytes) {
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.grid = config.cluster = {2, 1, 1};
  config.dynamicShared = 1024;
  auto kernel = [](const char *bytes) {
    return wrapKernel(
        std::string("mov.b32 %r1, smem;\nmov.u32 %r2, %cluster_ctarank;\n"
                    "xor.b32 %r3, %r2, 1;\nsetp.eq.s32 %p0, %r0, 0;\n"
                    "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
                    "@%p0 fence.mbarrier_init.release.cluster;\n"
                    "barrier.cluster.arrive;\nbarrier.cluster.wait;\n"
                    "@%p0 mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], ") +
        bytes +
        ";\nshl.b32 %r4, %r0, 2;\nadd.s32 %r5, %r1, %r4;\n"
        "mapa.shared::cluster.u32 %r6, %r5, %r3;\n"
        "mapa.shared::cluster.u32 %r7, %r1, %r3;\n"
        "shl.b32 %r8, %r2, 7;\nadd.s32 %r9, %r8, %r0;\n"
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
        "[%r6+64], %r9, [%r7];\n" +
        Wait +
        "\nld.shared.b32 %r10, [%r5+64];\nadd.s32 %r11, %r8, %r4;\n"
        "cvt.u64.u32 %d2, %r11;\nadd.s64 %d3, %d1, %d2;\n"
        "st.global.b32 [%d3], %r10;\nbarrier.cluster.arrive;\n"
        "barrier.cluster.wait;");
  };
  Outcome r = runText(kernel("128"), {}, 256, config);
  expectClean(r);
  EXPECT_EQ(r.at<uint32_t>(9), 137u);
  EXPECT_EQ(r.at<uint32_t>(32 + 9), 9u);
  expectError(runText(kernel("256"), {}, 256, config), FindingKind::Deadlock);
}

TEST(Cluster, AsyncStoreNeedsAClusterLaunch) {
  auto go = [](const char *store, const char *directive) {
    std::string text = wrapKernel(
        std::string("mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\n"
                    "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
                    "@%p0 st.shared.b32 [%r1+64], 0;\nbar.sync 0;\n"
                    "@!%p0 bra E;\n"
                    "mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 4;\n") +
        store + " [%r1+64], %r0, [%r1];\n" + Wait + "\nE:");
    text.replace(text.find(")\n{"), 2, std::string(")\n") + directive);
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.dynamicShared = 1024;
    return runText(text, {}, 4, config);
  };
  const char *cluster = ".reqnctapercluster 1, 1, 1\n";
  for (const char *store :
       {"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
        "bytes.add.u32"}) {
    expectClean(go(store, cluster));
    Outcome r = go(store, "");
    expectError(r, FindingKind::InvalidOperation);
    EXPECT_NE(r.text().find("expected a launch with clusters for "),
              std::string::npos)
        << r.text();
  }
}

TEST(ClusterLaunchControl, EveryTileOnce) {
  // Each CTA adds one to its tile's counter, then takes over another CTA's
  // tile until there is none left.
  std::string body =
      "mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\n"
      "@%p0 mbarrier.init.shared.b64 [%r1], 1;\nbar.sync 0;\n"
      "mov.u32 %r20, %ctaid.x;\nmov.b32 %r21, 0;\n@!%p0 bra E;\nT:\n"
      "mul.wide.u32 %d2, %r20, 4;\nadd.s64 %d3, %d0, %d2;\n"
      "atom.global.add.u32 %r22, [%d3], 1;\nadd.s64 %d4, %d1, %d2;\n"
      "add.s32 %r22, %r22, 1;\nst.global.b32 [%d4], %r22;\n"
      "mbarrier.arrive.expect_tx.shared.b64 %d5, [%r1], 16;\n"
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::"
      "complete_tx::bytes.b128 [%r1+16], [%r1];\n"
      "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], %r21;\n"
      "@!%p1 bra L;\nxor.b32 %r21, %r21, 1;\n.reg .b128 h;\n"
      "ld.shared.b128 h, [%r1+16];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, h;\n"
      "@!%p2 bra E;\n";
  const char *const coordinates[] = {
      "clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 "
      "{%r20, %r23, %r24, _}, h;\n",
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::y.b32.b128 %r23, h;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::z.b32.b128 %r24, h;\n"
      "clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r20, h;\n"
      "add.u32 %r20, %r20, %r23;\nadd.u32 %r20, %r20, %r24;\n"};
  for (uint64_t seed = 0; seed < 4; ++seed) {
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.grid = {7, 1, 1};
    config.dynamicShared = 64;
    config.seed = seed;
    config.schedule = seed ? Schedule::Random : Schedule::RoundRobin;
    Outcome r = runText(wrapKernel(body + coordinates[seed % 2] +
                                   "fence.proxy.async;\nbra T;\nE:"),
                        std::vector<uint8_t>(28), 28, config);
    expectClean(r);
    for (unsigned i = 0; i < 7; ++i)
      EXPECT_EQ(r.at<uint32_t>(i), 1u) << i;
  }
}

TEST(SetMaxReg, PoolBlocksAndDeadlocks) {
  LaunchConfig config;
  config.block = {256, 1, 1};
  auto kernel = [](const char *low) {
    std::string text = wrapKernel(
        std::string("setp.lt.s32 %p1, %r0, 128;\n@%p1 bra A;\n"
                    "setmaxnreg.inc.sync.aligned.u32 232;\nbra E;\nA:\n") +
        low + "\nE:");
    size_t at = text.find(")\n{");
    text.insert(at + 2, ".reqntid 256, 1, 1\n.maxnreg 128\n");
    return text;
  };
  expectClean(
      runText(kernel("setmaxnreg.dec.sync.aligned.u32 24;"), {}, 4, config));
  Outcome bad =
      runText(kernel("setmaxnreg.dec.sync.aligned.u32 40;"), {}, 4, config);
  EXPECT_EQ(bad.report.countErrors(FindingKind::Deadlock), 1u) << bad.text();
  EXPECT_NE(bad.text().find("registers a thread"), std::string::npos);
  Outcome wrong =
      runText(kernel("setmaxnreg.inc.sync.aligned.u32 24;"), {}, 4, config);
  EXPECT_EQ(wrong.report.countErrors(FindingKind::RegisterPool), 1u);
  // Of a replay only the order counts: registers may come before they are free.
  for (unsigned i = 0; i < 8; ++i)
    config.replay.push_back({0, (i + 4) % 8, mlir::attn::TurnEnd::Exit, 0});
  Outcome again =
      runText(kernel("setmaxnreg.dec.sync.aligned.u32 24;"), {}, 4, config);
  expectClean(again);
  EXPECT_EQ(again.report.diverged, "");
}

TEST(SetMaxReg, NoEffectWithoutABound) {
  for (const char *direction : {"inc", "dec"})
    expectClean(runBody(std::string("setmaxnreg.") + direction +
                            ".sync.aligned.u32 64;",
                        {}, 4, 128));
}
