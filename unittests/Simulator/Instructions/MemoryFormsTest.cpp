//===- MemoryFormsTest.cpp - Loads, stores and atomics by form ------------===//
//
// One warp. Loads come from `in` or from shared memory, whose byte i holds i;
// what an atomic does to 7 with the operand 5 is worked out here.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

std::vector<uint8_t> countingBytes(size_t n) {
  std::vector<uint8_t> bytes(n);
  for (size_t i = 0; i < n; ++i)
    bytes[i] = i;
  return bytes;
}

/// One thread; %d9 is the address of 64 bytes in the space, %r9 for shared.
Outcome runIn(llvm::StringRef space, llvm::StringRef body) {
  std::string s;
  if (space == "shared") {
    s = "mov.u32 %r9, smem;\nmov.u64 %d9, smem;\n";
    for (unsigned i = 0; i < 64; i += 8)
      s += "ld.global.b64 %d10, [%d0+" + std::to_string(i) +
           "];\nst.shared.b64 [%r9+" + std::to_string(i) + "], %d10;\n";
  } else if (space == "local") {
    s = ".local .align 16 .b8 frame[64];\nmov.u64 %d9, frame;\n";
    for (unsigned i = 0; i < 64; i += 8)
      s += "ld.global.b64 %d10, [%d0+" + std::to_string(i) +
           "];\nst.local.b64 [%d9+" + std::to_string(i) + "], %d10;\n";
  } else {
    // Stores go to `out`, which holds the same.
    s = "mov.u64 %d9, %d1;\n";
    for (unsigned i = 0; i < 64; i += 8)
      s += "ld.global.b64 %d10, [%d0+" + std::to_string(i) +
           "];\nst.global.b64 [%d1+" + std::to_string(i) + "], %d10;\n";
  }
  return runBody(s + body.str(), countingBytes(64), 128, 1, 1024);
}

} // namespace

TEST(MemoryForms, LoadsOfEveryTypeAndSpace) {
  struct Kind {
    const char *type;
    unsigned bytes;
    const char *reg;
  };
  const Kind kinds[] = {{"b8", 1, "%h1"},  {"u8", 1, "%h1"},  {"s8", 1, "%h1"},
                        {"b16", 2, "%h1"}, {"u16", 2, "%h1"}, {"s16", 2, "%h1"},
                        {"b32", 4, "%r2"}, {"u32", 4, "%r2"}, {"s32", 4, "%r2"},
                        {"f32", 4, "%r2"}, {"b64", 8, "%d2"}, {"u64", 8, "%d2"},
                        {"s64", 8, "%d2"}, {"f64", 8, "%d2"}};
  for (const char *space : {"", ".global", ".shared", ".local"})
    for (const Kind &k : kinds)
      for (const char *order :
           {"", ".weak", ".volatile", ".relaxed.cta", ".acquire.gpu",
            ".relaxed.sys", ".acquire.cta", ".relaxed.gpu", ".acquire.sys"}) {
        bool ordered = order[0] && std::string(order) != ".weak" &&
                       std::string(order) != ".volatile";
        if (std::string(space) == ".local" && order[0])
          continue;
        if (ordered && k.bytes != 4)
          continue;
        std::string inst = std::string("ld") + order + space + "." + k.type +
                           " " + k.reg + ", [%d9+8];\n";
        std::string st = std::string("st") +
                         (std::string(order).find("acquire") == 1
                              ? ".release" + std::string(order).substr(8)
                              : order) +
                         space + "." + k.type + " [%d9+24], " + k.reg + ";\n" +
                         "ld" + space +
                         ".b64 %d3, [%d9+24];\n"
                         "st.global.b64 [%d1+64], %d3;\n";
        Outcome r = runIn(space[0] ? space + 1 : "", inst + st);
        ASSERT_TRUE(r.error.empty() && r.report.isClean())
            << inst << st << r.text();
        uint64_t want = 0x1f1e1d1c1b1a1918ull, value = 0x0f0e0d0c0b0a0908ull;
        uint64_t mask = k.bytes == 8 ? ~0ull : (1ull << (8 * k.bytes)) - 1;
        EXPECT_EQ(r.at<uint64_t>(8), (want & ~mask) | (value & mask)) << inst;
      }
}

TEST(MemoryForms, VectorsAndHints) {
  const std::pair<const char *, const char *> pairs[] = {
      {"ld.global.v2.b32 {%r2, %r3}, [%d0]",
       "st.global.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.global.ca.v2.b32 {%r2, %r3}, [%d0]",
       "st.global.wb.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.global.cg.v2.b32 {%r2, %r3}, [%d0]",
       "st.global.cg.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.global.cs.v2.b32 {%r2, %r3}, [%d0]",
       "st.global.cs.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.global.lu.v2.b32 {%r2, %r3}, [%d0]",
       "st.global.wt.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.global.cv.v2.b32 {%r2, %r3}, [%d0]",
       "st.global.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.global.nc.L1::no_allocate.L2::128B.v4.b32 {%r2, %r3, %r4, %r5}, "
       "[%d0]",
       "st.global.v4.f32 [%d1], {%r2, %r3, %r4, %r5}"},
      {"mov.u64 %d4, 0;\nld.global.nc.L1::no_allocate.L2::cache_hint.v4.f32 "
       "{%r2, %r3, %r4, %r5}, [%d0], %d4",
       "st.global.L1::no_allocate.L2::cache_hint.v4.f32 [%d1], {%r2, %r3, %r4, "
       "%r5}, %d4"},
      {"ld.global.L1::evict_last.b32 %r2, [%d0]", "st.global.b32 [%d1], %r2"},
      {"ld.mmio.relaxed.sys.global.u32 %r2, [%d0]",
       "st.mmio.relaxed.sys.global.u32 [%d1], %r2"},
      {"ld.global.v8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%d0]",
       "st.global.v8.b32 [%d1], {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}"},
      {"ld.global.nc.L2::evict_last.v8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, "
       "%r9}, [%d0]",
       "st.global.v8.b32 [%d1], {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}"},
      {"ld.global.v8.f32 {%r2, _, %r4, %r5, %r6, %r7, %r8, %r9}, [%d0]",
       "st.global.b32 [%d1], %r2"},
      {"ld.global.v4.b64 {%d2, %d3, %d4, %d5}, [%d0]",
       "st.global.v4.b64 [%d1], {%d2, %d3, %d4, %d5}"},
      {"ld.global.v2.f64 {%d2, %d3}, [%d0]",
       "st.global.v2.b64 [%d1], {%d2, %d3}"},
      {"ld.global.v4.b8 {%h1, %h2, %h3, %h4}, [%d0]",
       "st.global.v4.b8 [%d1], {%h1, %h2, %h3, %h4}"},
      {"ld.global.v4.b16 {%h1, %h2, %h3, %h4}, [%d0]",
       "st.global.v4.b16 [%d1], {%h1, %h2, %h3, %h4}"},
      {".reg .b128 %q;\nld.global.b128 %q, [%d0]", "st.global.b128 [%d1], %q"},
      {"ldu.global.b32 %r2, [%d0]", "st.global.b32 [%d1], %r2"},
      {"ldu.global.v2.f32 {%r2, %r3}, [%d0]",
       "st.global.v2.b32 [%d1], {%r2, %r3}"},
      {"ld.const.b32 %r2, [table]", "st.global.b32 [%d1], %r2"},
  };
  for (const auto &[load, store] : pairs) {
    LaunchConfig config;
    config.block = {1, 1, 1};
    Outcome r =
        runText(wrapKernel(std::string(load) + ";\n" + store + ";\n", "sm_100a",
                           ".const .b32 table[1] = {0x03020100};\n"),
                countingBytes(64), 64, config);
    ASSERT_TRUE(r.error.empty() && r.report.isClean()) << load << r.text();
    size_t bytes = llvm::StringRef(store).contains(".v8.")      ? 32
                   : llvm::StringRef(store).contains(".v4.b64") ? 32
                                                                : 4;
    for (size_t i = 0; i < bytes; ++i)
      EXPECT_EQ(r.out[i], i) << load;
  }
}

TEST(MemoryForms, HintsWithoutEffect) {
  const char *forms[] = {
      "prefetch.global.L1 [%d0]",
      "prefetch.L2 [%d0]",
      "prefetch.global.L2::evict_last [%d0]",
      "prefetchu.L1 [%d0]",
      "prefetch.tensormap [%d0]",
      "prefetch.param.tensormap [in]",
      "applypriority.global.L2::evict_normal [%d0], 128",
      "discard.global.L2 [%d0], 128",
      "createpolicy.fractional.L2::evict_last.b64 %d2, 1.0",
      "createpolicy.fractional.L2::evict_first.L2::evict_"
      "unchanged.b64 %d2, 0.5",
      "createpolicy.range.L2::evict_last.L2::evict_"
      "unchanged.b64 %d2, [%d0], 64, 128",
      "createpolicy.cvt.L2.b64 %d2, %d0",
      "cp.async.bulk.prefetch.L2.global [%d0], 64",
      "nanosleep.u32 20",
      "pmevent 1",
      "griddepcontrol.launch_dependents",
      "griddepcontrol.wait",
      "membar.cta",
      "brkpt",
      "membar.gl",
      "membar.sys",
      "fence.sc.cta",
      "fence.acq_rel.gpu",
      "fence.sys",
      "fence.acquire.cluster",
      "fence.release.cluster",
      "fence.sc.cluster",
      "fence.acquire.sync_restrict::shared::cluster.cluster",
      "fence.release.sync_restrict::shared::cta.cluster",
      "fence.proxy.alias",
      "fence.proxy.async",
      "fence.proxy.async.global",
      "fence.proxy.async.shared::cluster",
      "fence.proxy.tensormap::generic.release.gpu",
      "fence.proxy.tensormap::generic.acquire.sys [%d0], 128",
      "fence.proxy.async::generic.acquire.sync_restrict::"
      "shared::cluster.cluster",
      "fence.proxy.async::generic.release.sync_restrict::"
      "shared::cta.cluster",
      "bar.warp.sync 1"};
  for (const char *form : forms) {
    Outcome r = runBody(std::string(form) + ";\nst.global.b32 [%d1], 7;\n",
                        countingBytes(128), 4, 1);
    ASSERT_TRUE(r.error.empty() && r.report.isClean()) << form << r.text();
    EXPECT_EQ(r.at<uint32_t>(0), 7u);
  }
}

TEST(MemoryForms, BulkStoreZeroes) {
  for (const char *form :
       {"st.bulk.weak.shared::cta [%r9+16], %d11, 0",
        "st.bulk.shared::cta [%r9+16], %d11, 0",
        "cvta.shared.u64 %d12, %d9;\nst.bulk [%d12+16], %d11, 0",
        "cvta.shared.u64 %d12, %d9;\nst.bulk.weak [%d12+16], %d11, 0"}) {
    Outcome r =
        runIn("shared", std::string("mov.u64 %d11, 16;\n") + form +
                            ";\nld.shared.v4.b32 {%r2, %r3, %r4, %r5}, "
                            "[%r9+8];\nst.global.v4.b32 [%d1], {%r2, "
                            "%r3, %r4, %r5};\nld.shared.b32 %r2, "
                            "[%r9+32];\nst.global.b32 [%d1+16], %r2;\n");
    ASSERT_TRUE(r.error.empty()) << form << r.text();
  }
  Outcome r = runIn("shared", "mov.u64 %d11, 16;\nst.bulk.shared::cta "
                              "[%r9+16], %d11, 0;\nld.shared.b64 %d2, "
                              "[%r9+8];\nld.shared.b64 %d3, [%r9+24];\n"
                              "ld.shared.b64 %d4, [%r9+32];\n"
                              "st.global.b64 [%d1], %d2;\n"
                              "st.global.b64 [%d1+8], %d3;\n"
                              "st.global.b64 [%d1+16], %d4;\n");
  ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
  EXPECT_EQ(r.at<uint64_t>(0), 0x0f0e0d0c0b0a0908ull);
  EXPECT_EQ(r.at<uint64_t>(1), 0u);
  EXPECT_EQ(r.at<uint64_t>(2), 0x2726252423222120ull);
  r = runIn("shared", "mov.u64 %d11, 12;\nst.bulk.shared::cta [%r9], %d11, 0;");
  EXPECT_NE(r.text().find("multiple of 8 up to 16777216, got 12"),
            std::string::npos);
  r = runIn("shared", "mov.u64 %d11, 8;\nst.bulk.shared::cta [%r9], %d11, 1;");
  EXPECT_NE(r.text().find("expected the value 0, got 1"), std::string::npos);
}

TEST(MemoryForms, AtomicsOfEveryType) {
  struct Case {
    const char *op, *type;
    unsigned bytes;
    uint64_t old, operand, want;
  };
  const Case cases[] = {
      {"add", "u32", 4, 7, 5, 12},
      {"add", "s32", 4, 7, 0xfffffff0, 0xfffffff7},
      {"min", "u32", 4, 7, 5, 5},
      {"max", "s32", 4, 7, 0xffffffff, 7},
      {"inc", "u32", 4, 7, 7, 0},
      {"dec", "u32", 4, 7, 5, 5},
      {"and", "b32", 4, 7, 5, 5},
      {"or", "b32", 4, 7, 8, 15},
      {"xor", "b32", 4, 7, 5, 2},
      {"add", "f32", 4, 0x3f800000, 0x40000000, 0x40400000},
      {"add", "u64", 8, 7, 5, 12},
      {"min", "s64", 8, 7, ~0ull, ~0ull},
      {"max", "u64", 8, 7, ~0ull, ~0ull},
      {"and", "b64", 8, 7, 5, 5},
      {"or", "b64", 8, 7, 8, 15},
      {"xor", "b64", 8, 7, 5, 2},
      {"add", "f64", 8, 0x3ff0000000000000, 0x4000000000000000,
       0x4008000000000000},
      {"add.noftz", "f16x2", 4, 0x3c004000, 0x3c003c00, 0x40004200},
      {"add.noftz", "bf16x2", 4, 0x3f804000, 0x3f803f80, 0x40004040},
      {"add.noftz", "f16", 2, 0x3c00, 0x3c00, 0x4000},
      {"add.noftz", "bf16", 2, 0x3f80, 0x3f80, 0x4000},
  };
  for (const char *space : {"", ".global", ".shared"})
    for (const char *base : {"atom", "red"})
      for (const Case &c : cases)
        for (const char *order :
             {"", ".relaxed.cta", ".acq_rel.gpu", ".acquire.sys",
              ".release.cta", ".relaxed.gpu", ".relaxed.sys"}) {
          bool red = base[0] == 'r';
          if (red && std::string(order).find("acq") != std::string::npos)
            continue;
          const char *r = c.bytes == 8 ? "%d" : c.bytes == 2 ? "%h" : "%r";
          std::string w = std::to_string(8 * c.bytes), reg = r;
          std::string inst = std::string(base) + order + space + "." + c.op +
                             "." + c.type + " " + (red ? "" : reg + "3, ") +
                             "[%d9+8], " + reg + "2";
          std::string body =
              "mov.b" + w + " " + reg + "2, " + std::to_string(c.old) +
              ";\nst" + space + ".b" + w + " [%d9+8], " + reg + "2;\nmov.b" +
              w + " " + reg + "2, " + std::to_string(c.operand) + ";\nmov.b" +
              w + " " + reg + "3, 0;\n" + inst + ";\nld" + space + ".b" + w +
              " " + reg + "4, [%d9+8];\nst.global.b" + w + " [%d1+64], " + reg +
              "4;\nst.global.b" + w + " [%d1+72], " + reg + "3;\n";
          Outcome o = runIn(space[0] ? space + 1 : "", body);
          ASSERT_TRUE(o.error.empty() && o.report.isClean())
              << inst << o.text();
          uint64_t mask = c.bytes == 8 ? ~0ull : (1ull << (8 * c.bytes)) - 1;
          EXPECT_EQ(o.at<uint64_t>(8) & mask, c.want) << inst;
          EXPECT_EQ(o.at<uint64_t>(9) & mask, red ? 0 : c.old) << inst;
        }
}

TEST(MemoryForms, VectorAtomics) {
  struct Case {
    const char *op, *type;
    unsigned count, bytes;
    uint32_t old, operand, want;
  };
  const Case cases[] = {
      {"add", "f32", 2, 4, 0x3f800000, 0x3f800000, 0x40000000},
      {"add", "f32", 4, 4, 0x3f800000, 0x3f800000, 0x40000000},
      {"add.noftz", "f16", 8, 2, 0x3c00, 0x3c00, 0x4000},
      {"min.noftz", "f16", 4, 2, 0x3c00, 0x4000, 0x3c00},
      {"max.noftz", "bf16", 2, 2, 0x3f80, 0x4000, 0x4000},
      {"add.noftz", "bf16", 8, 2, 0x3f80, 0x3f80, 0x4000},
      {"max.noftz", "f16", 8, 2, 0x3c00, 0x4000, 0x4000},
      {"add.noftz", "bf16x2", 2, 4, 0x3f803f80, 0x3f803f80, 0x40004000},
      {"max.noftz", "f16x2", 4, 4, 0x3c003c00, 0x40003000, 0x40003c00},
      {"min.noftz", "bf16x2", 4, 4, 0x3f803f80, 0x40004000, 0x3f803f80},
  };
  for (const char *base : {"atom", "red"})
    for (const Case &c : cases) {
      std::string reg = c.bytes == 2 ? "%h" : "%r", body, from = "{", to = "{";
      std::string w = std::to_string(8 * c.bytes);
      body = "mov.b" + w + " " + reg + "18, " + std::to_string(c.old) +
             ";\nmov.b" + w + " " + reg + "19, " + std::to_string(c.operand) +
             ";\n";
      for (unsigned i = 0; i < c.count; ++i) {
        body += "st.global.b" + w + " [%d1+" + std::to_string(i * c.bytes) +
                "], " + reg + "18;\n";
        from += (i ? ", " : "") + reg + "19";
        to += (i ? ", " : "") + reg + std::to_string(1 + i);
      }
      std::string inst = std::string(base) + ".global." + c.op + ".v" +
                         std::to_string(c.count) + "." + c.type + " " +
                         (base[0] == 'r' ? "" : to + "}, ") + "[%d1], " + from +
                         "};\n";
      Outcome r = runBody(body + inst, countingBytes(16), 64, 1);
      ASSERT_TRUE(r.error.empty() && r.report.isClean()) << inst << r.text();
      for (unsigned i = 0; i < c.count; ++i)
        EXPECT_EQ(c.bytes == 2 ? r.at<uint16_t>(i) : r.at<uint32_t>(i), c.want)
            << inst;
    }
}

TEST(MemoryForms, CompareAndExchange) {
  for (const char *space : {".global", ".shared"}) {
    std::string s = space;
    Outcome r = runIn(
        space + 1,
        "mov.b16 %h1, 0x0908;\nmov.b16 %h2, 77;\natom" + s +
            ".cas.b16 %h3, [%d9+8], %h1, %h2;\nst.global.b16 [%d1+64], %h3;\n"
            "ld" +
            s +
            ".b16 %h4, [%d9+8];\nst.global.b16 [%d1+66], %h4;\n"
            "mov.b32 %r2, 1;\nmov.b32 %r3, 5;\natom" +
            s +
            ".cas.b32 %r4, [%d9+12], %r2, %r3;\n"
            "st.global.b32 [%d1+68], %r4;\natom" +
            s +
            ".exch.b32 %r5, [%d9+12], %r3;\nst.global.b32 [%d1+72], %r5;\n"
            "mov.b64 %d2, 9;\natom" +
            s +
            ".exch.b64 %d3, [%d9+16], %d2;\nst.global.b64 [%d1+80], %d3;\n"
            "atom" +
            s +
            ".cas.b64 %d4, [%d9+16], %d2, 3;\nst.global.b64 [%d1+88], %d4;\n");
    ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
    EXPECT_EQ(r.at<uint16_t>(32), 0x0908u);
    EXPECT_EQ(r.at<uint16_t>(33), 77u);
    EXPECT_EQ(r.at<uint32_t>(17), 0x0f0e0d0cu);
    EXPECT_EQ(r.at<uint32_t>(18), 0x0f0e0d0cu);
    EXPECT_EQ(r.at<uint64_t>(10), 0x1716151413121110ull);
    EXPECT_EQ(r.at<uint64_t>(11), 9u);
  }
  Outcome r = runIn("global", ".reg .b128 %q<4>;\nld.global.b128 %q1, [%d1];\n"
                              "ld.global.b128 %q2, [%d1+16];\n"
                              "atom.global.cas.b128 %q0, [%d1], %q1, %q2;\n"
                              "st.global.b128 [%d1+64], %q0;\n"
                              "atom.global.exch.b128 %q3, [%d1], %q1;\n"
                              "st.global.b128 [%d1+80], %q3;\n"
                              "atom.global.cas.b128 %q0, [%d1], %q2, %q2;\n");
  ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
  for (unsigned i = 0; i < 16; ++i) {
    EXPECT_EQ(r.out[64 + i], i);
    EXPECT_EQ(r.out[80 + i], 16 + i);
    EXPECT_EQ(r.out[i], i);
  }
}

TEST(MemoryForms, AsyncReductionsSignal) {
  const std::pair<const char *, uint64_t> cases[] = {
      {"add.u32", 12}, {"add.s32", 12}, {"min.u32", 5}, {"max.s32", 7},
      {"inc.u32", 0},  {"dec.u32", 5},  {"and.b32", 5}, {"or.b32", 7},
      {"xor.b32", 2},  {"add.u64", 12}, {"min.s32", 5}, {"max.u32", 7}};
  for (const auto &[op, want] : cases) {
    bool wide = llvm::StringRef(op).ends_with("64");
    std::string r = wide ? "%d" : "%r", w = wide ? "64" : "32";
    std::string text = wrapKernel(
        "mov.u32 %r1, smem;\nmov.u32 %r9, %cluster_ctarank;\n"
        "mapa.shared::cluster.u32 %r10, %r1, %r9;\n"
        "mov.b64 %d6, 7;\nst.shared.b64 [%r1+16], %d6;\n"
        "mbarrier.init.shared::cta.b64 [%r1], 1;\n"
        "fence.mbarrier_init.release.cluster;\n"
        "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], " +
        std::string(wide ? "8" : "4") + ";\nmov.b" + w + " " + r +
        "7, 5;\nred.async.relaxed.cluster.shared::cluster.mbarrier::"
        "complete_tx::bytes." +
        op + " [%r10+16], " + r +
        "7, [%r10];\nW:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, "
        "[%r1], 0;\n@!%p1 bra W;\nld.shared.b64 %d7, [%r1+16];\n"
        "st.global.b64 [%d1], %d7;\n");
    // A launch with clusters, though of one CTA.
    text.replace(text.find(")\n{"), 2, ")\n.reqnctapercluster 1, 1, 1\n");
    LaunchConfig config;
    config.dynamicShared = 64;
    Outcome o = runText(text, countingBytes(16), 8, config);
    ASSERT_TRUE(o.error.empty() && o.report.isClean()) << op << o.text();
    EXPECT_EQ(o.at<uint64_t>(0), want) << op;
  }
  for (const char *wrong :
       {"red.async.relaxed.gpu.shared::cluster.mbarrier::complete_tx::bytes."
        "add.u32 [%r1], %r2, [%r3];",
        "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::"
        "bytes."
        "exch.u32 [%r1], %r2, [%r3];"})
    EXPECT_FALSE(runBody(wrong, countingBytes(16), 8, 1).error.empty());
}

TEST(MemoryForms, ClusterSharedMemory) {
  Outcome r = runBody(
      "mov.u32 %r1, smem;\nmov.u32 %r9, 0;\n"
      "mapa.shared::cluster.u32 %r10, %r1, %r9;\nmov.u32 %r2, 5;\n"
      "st.release.cluster.shared::cluster.b32 [%r10], %r2;\n"
      "st.relaxed.cluster.shared::cluster.b32 [%r10], %r2;\n"
      "atom.relaxed.cluster.shared::cluster.add.u32 %r3, [%r10], %r2;\n"
      "ld.acquire.cluster.shared::cluster.b32 %r4, [%r10];\n"
      "ld.relaxed.cluster.shared::cluster.b32 %r4, [%r10];\n"
      "st.global.b32 [%d1], %r4;\nst.global.b32 [%d1+4], %r3;\n"
      "mov.u64 %d2, 0;\nred.relaxed.cluster.global.add.L2::cache_hint.f32 "
      "[%d1+4], %r9, %d2;\n"
      "getctarank.shared::cluster.u32 %r5, %r10;\nst.global.b32 [%d1+8], %r5;\n"
      "cvt.u64.u32 %d3, %r1;\ncvta.shared.u64 %d3, %d3;\n"
      "mapa.u64 %d4, %d3, %r9;\ngetctarank.u64 %r5, %d4;\n"
      "st.global.b32 [%d1+12], %r5;\n"
      "mov.pred %p5, %is_explicit_cluster;\nselp.u32 %r6, 1, 0, %p5;\n"
      "st.global.b32 [%d1+16], %r6;\nmov.u32 %r7, %aggr_smem_size;\n",
      countingBytes(16), 20, 1, 64);
  ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
  EXPECT_EQ(r.at<uint32_t>(0), 10u);
  EXPECT_EQ(r.at<uint32_t>(1), 5u);
  EXPECT_EQ(r.at<uint32_t>(2), 0u);
  EXPECT_EQ(r.at<uint32_t>(3), 0u);
}
