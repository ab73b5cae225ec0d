//===- AsyncFormsTest.cpp - mbarriers and asynchronous copies -------------===//
//
// One thread does everything. Shared memory: an mbarrier at smem, data from
// smem+1024 on.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"
#include "attn/Simulator/Async/TensorMap.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

const char *initBarrier =
    "mov.u32 %r1, smem;\nmbarrier.init.shared::cta.b64 [%r1], 1;\n"
    "fence.mbarrier_init.release.cluster;\nmov.u64 %d9, 0;\nmov.u16 %h1, 1;\n";

std::string waitFor(unsigned parity) {
  static unsigned label = 0;
  std::string l = "W" + std::to_string(label++);
  return l + ":\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], " +
         std::to_string(parity) + ";\n@!%p1 bra " + l + ";\n";
}

std::vector<uint8_t> words(size_t n, uint32_t first) {
  std::vector<uint32_t> v(n);
  for (size_t i = 0; i < n; ++i)
    v[i] = first + i;
  return bytesOf(v);
}

Outcome runOne(llvm::StringRef body, llvm::ArrayRef<uint8_t> in, size_t out) {
  LaunchConfig config;
  config.dynamicShared = 8192;
  // A launch with clusters, though of one CTA.
  std::string text = wrapKernel(body);
  text.replace(text.find(")\n{"), 2, ")\n.reqnctapercluster 1, 1, 1\n");
  Outcome r = runText(text, in, out, config);
  EXPECT_TRUE(r.error.empty() && r.report.isClean()) << body.str() << "\n"
                                                     << r.text();
  r.out.resize(out);
  return r;
}

} // namespace

TEST(MbarrierForms, EveryArrival) {
  // Each of them, with its count, completes a phase; test_wait and try_wait by
  // state and by parity see that.
  struct Case {
    std::string arrive;
    unsigned count; ///< to initialise with
    unsigned tx;    ///< bytes to complete
  };
  std::vector<Case> cases;
  for (const char *space : {".shared", ".shared::cta"}) {
    for (const char *order :
         {"", ".release.cta", ".release.cluster", ".relaxed.cta"}) {
      cases.push_back({std::string("mbarrier.arrive") + order + space +
                           ".b64 %d5, [%r1], 3;\n",
                       3, 0});
      cases.push_back({std::string("mbarrier.arrive_drop") + order + space +
                           ".b64 %d5, [%r1];\n",
                       1, 0});
    }
    cases.push_back({std::string("mbarrier.arrive_drop.relaxed.cluster") +
                         space + ".b64 %d5, [%r1];\n",
                     1, 0});
    for (const char *order : {"", ".release.cta", ".relaxed.cluster"})
      cases.push_back({std::string("mbarrier.arrive.expect_tx") + order +
                           space + ".b64 %d5, [%r1], 8;\n",
                       1, 8});
  }
  std::string state = "mbarrier.arrive.noComplete.shared.b64 %d5, [%r1], 1;\n";
  cases.push_back(
      {state + "mbarrier.arrive.shared::cluster.b64 _, [%r10];\n", 2, 0});
  cases.push_back(
      {"cvta.shared.u64 %d7, %d6;\nmbarrier.arrive.noComplete.b64 %d5, [%d7], "
       "1;\nmbarrier.arrive.b64 %d4, [%d7];\n",
       2, 0});
  for (const char *order : {"", ".release.cluster", ".relaxed.cluster"})
    cases.push_back({state + "mbarrier.arrive" + order +
                         ".shared::cluster.b64 _, [%r10], 2;\n",
                     3, 0});
  cases.push_back({state +
                       "mbarrier.arrive.release.cluster.shared::cluster.b64 "
                       "_, [%r10];\n",
                   2, 0});
  for (const char *order : {"", ".release.cluster"})
    cases.push_back({state + "mbarrier.arrive.expect_tx" + order +
                         ".shared::cluster.b64 _, [%r10], 8;\n",
                     2, 8});
  cases.push_back({"mbarrier.arrive_drop.noComplete.shared.b64 %d5, [%r1], 1;\n"
                   "mbarrier.arrive_drop.shared::cluster.b64 _, [%r10], 1;\n",
                   2, 0});
  cases.push_back(
      {"mbarrier.arrive_drop.expect_tx.shared::cta.b64 %d5, [%r1], 8;\n", 1,
       8});
  cases.push_back({state + "mbarrier.arrive_drop.expect_tx.shared::cluster.b64 "
                           "_, [%r10], 8;\n",
                   2, 8});
  for (const char *order : {"", ".relaxed.cta", ".relaxed.cluster"})
    for (const char *space : {".shared::cta", ".shared::cluster"}) {
      std::string o = order, s = space,
                  at = s == ".shared::cta" ? "[%r1]" : "[%r10]";
      cases.push_back({"mbarrier.expect_tx" + o + s + ".b64 " + at +
                           ", 8;\nmbarrier.complete_tx" + o + s + ".b64 " + at +
                           ", 8;\nmbarrier.arrive.shared.b64 %d5, [%r1];\n",
                       1, 0});
    }
  const char *waits[] = {"mbarrier.test_wait@@.b64 %p1, [%r1], %d5",
                         "mbarrier.test_wait.parity@@.b64 %p1, [%r1], 0",
                         "mbarrier.try_wait@@.b64 %p1, [%r1], %d5",
                         "mbarrier.try_wait.parity@@.b64 %p1, [%r1], 0",
                         "mbarrier.try_wait@@.b64 %p1, [%r1], %d5, 100",
                         "mbarrier.try_wait.parity@@.b64 %p1, [%r1], 0, 100"};
  const char *orders[] = {".shared", ".shared::cta", ".acquire.cta.shared::cta",
                          ".acquire.cluster.shared::cta",
                          ".relaxed.cta.shared::cta"};
  unsigned n = 0;
  for (const Case &c : cases) {
    std::string wait = waits[n % 6];
    wait.replace(wait.find("@@"), 2, orders[n / 6 % 5]);
    ++n;
    std::string body =
        "mov.u32 %r1, smem;\nmov.u64 %d6, smem;\nmov.u32 %r9, 0;\n"
        "mapa.shared::cluster.u32 %r10, %r1, %r9;\n"
        "mbarrier.init.shared.b64 [%r1], " +
        std::to_string(c.count) + ";\n" + c.arrive;
    if (c.tx)
      body += "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r1], " +
              std::to_string(c.tx) + ";\n";
    body += "W:\n" + wait + ";\n@!%p1 bra W;\nst.global.b32 [%d1], 7;\n";
    EXPECT_EQ(runOne(body, words(4, 0), 4).at<uint32_t>(0), 7u)
        << c.arrive << wait;
  }
}

TEST(MbarrierForms, EveryWait) {
  for (const char *kind : {"test_wait", "try_wait"})
    for (const char *parity : {"", ".parity"})
      for (const char *order :
           {"", ".acquire.cta", ".acquire.cluster", ".relaxed.cta"})
        for (const char *space : {".shared", ".shared::cta"}) {
          std::string w = std::string("mbarrier.") + kind + parity + order +
                          space + ".b64 %p1, [%r1], " +
                          (parity[0] ? "0" : "%d5");
          Outcome r = runOne(
              std::string(initBarrier) +
                  "mbarrier.arrive.shared::cta.b64 %d5, [%r1];\n" + w +
                  ";\nselp.u32 %r2, 1, 2, %p1;\n"
                  "mbarrier.pending_count.b64 %r3, %d5;\n"
                  "st.global.b32 [%d1], %r2;\nst.global.b32 [%d1+4], %r3;\n",
              words(4, 0), 8);
          EXPECT_EQ(r.at<uint32_t>(0), 1u) << w;
          EXPECT_EQ(r.at<uint32_t>(1), 1u) << w;
        }
}

TEST(CpAsyncForms, SizesAndSignals) {
  struct Case {
    const char *copy;
    unsigned bytes;
  };
  const Case cases[] = {
      {"cp.async.ca.shared.global [%r1+1024], [%d0], 4", 4},
      {"cp.async.ca.shared::cta.global [%r1+1024], [%d0], 8", 8},
      {"cp.async.ca.shared.global [%r1+1024], [%d0], 16", 16},
      {"cp.async.cg.shared::cta.global.L2::128B [%r1+1024], [%d0], 16", 16},
      {"cp.async.cg.shared.global [%r1+1024], [%d0], 16, 8", 8},
      {"setp.eq.u32 %p2, %r0, 1;\n"
       "cp.async.ca.shared.global [%r1+1024], [%d0], 4, %p2",
       4},
      {"cp.async.cg.shared.global.L2::cache_hint [%r1+1024], [%d0], 16, 12, "
       "%d9",
       12},
  };
  const char *signals[] = {
      "cp.async.commit_group;\ncp.async.wait_group 0;\n",
      "cp.async.wait_all;\n",
      "cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];\n@",
      "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r1];\n@",
      "cp.async.mbarrier.arrive.shared.b64 [%r1];\n"
      "mbarrier.arrive.shared.b64 %d5, [%r1];\n@",
      "cp.async.mbarrier.arrive.shared::cta.b64 [%r1];\n"
      "mbarrier.arrive.shared.b64 %d5, [%r1];\n@",
      "cvta.shared.u64 %d7, %d6;\ncp.async.mbarrier.arrive.noinc.b64 [%d7];\n@",
      "cvta.shared.u64 %d7, %d6;\ncp.async.mbarrier.arrive.b64 [%d7];\n"
      "mbarrier.arrive.shared.b64 %d5, [%r1];\n@"};
  for (const Case &c : cases)
    for (std::string signal : signals) {
      if (signal.back() == '@')
        signal = signal.substr(0, signal.size() - 1) + waitFor(0);
      Outcome r = runOne(std::string(initBarrier) +
                             "mov.u64 %d6, smem;\nmov.u32 %r2, 0;\n"
                             "st.shared.v4.b32 [%r1+1024], {%r2, %r2, %r2, "
                             "%r2};\n" +
                             c.copy + ";\n" + signal +
                             "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, "
                             "[%r1+1024];\n"
                             "st.global.v4.b32 [%d1], {%r2, %r3, %r4, %r5};\n",
                         words(4, 100), 16);
      for (unsigned i = 0; i < 4; ++i)
        EXPECT_EQ(r.at<uint32_t>(i), 4 * i < c.bytes ? 100 + i : 0u) << c.copy;
    }
}

TEST(BulkForms, PlainCopies) {
  for (
      const char *form :
      {"shared::cluster.global.mbarrier::complete_tx::bytes [%r1+1024], [%d0], "
       "32, [%r1]",
       "shared::cta.global.mbarrier::complete_tx::bytes [%r1+1024], [%d0], 32, "
       "[%r1]",
       "shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
       "[%r1+1024], [%d0], 32, [%r1], %h1",
       "shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint "
       "[%r1+1024], [%d0], 32, [%r1], %d9"}) {
    Outcome r =
        runOne(std::string(initBarrier) +
                   "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], 32;\n"
                   "cp.async.bulk." +
                   form + ";\n" + waitFor(0) +
                   "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r1+1040];\n"
                   "st.global.v4.b32 [%d1], {%r2, %r3, %r4, %r5};\n",
               words(8, 50), 16);
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(r.at<uint32_t>(i), 54 + i) << form;
  }
}

TEST(BulkForms, BetweenSharedMemories) {
  std::string head = std::string(initBarrier) +
                     "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], 16;"
                     "\nld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d0];\n"
                     "mov.b64 %d6, {%r2, %r3};\nmov.b64 %d7, {%r4, %r5};\n"
                     "add.u32 %r6, %r1, 1024;\n";
  std::string async = "st.async.shared::cluster.mbarrier::complete_tx::bytes";
  std::string weak = "st.async.weak.shared::cluster.mbarrier::complete_tx::"
                     "bytes";
  for (const std::string &store :
       {"st.shared.v4.b32 [%r1+2048], {%r2, %r3, %r4, %r5};\n"
        "fence.proxy.async;\nadd.u32 %r7, %r1, 2048;\n"
        "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
        " [%r6], [%r7], 16, [%r1];\n" +
            std::string(),
        async + ".b64 [%r6], %d6, [%r1];\n" + async +
            ".b64 [%r6+8], %d7, [%r1];\n",
        async + ".v2.b32 [%r6], {%r2, %r3}, [%r1];\n" + async +
            ".v2.f32 [%r6+8], {%r4, %r5}, [%r1];\n",
        async + ".v2.b64 [%r6], {%d6, %d7}, [%r1];\n",
        weak + ".v4.b32 [%r6], {%r2, %r3, %r4, %r5}, [%r1];\n"}) {
    Outcome r = runOne(head + store + waitFor(0) +
                           "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r6];\n"
                           "st.global.v4.b32 [%d1], {%r2, %r3, %r4, %r5};\n",
                       words(4, 50), 16);
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(r.at<uint32_t>(i), 50 + i) << store;
  }
}

namespace {

struct Reduction {
  const char *name;
  unsigned bytes;
  uint64_t old, operand, want;
};
const Reduction reductions[] = {
    {"add.u32", 4, 7, 5, 12},
    {"add.s32", 4, 7, 0xffffffff, 6},
    {"min.u32", 4, 7, 5, 5},
    {"max.u32", 4, 7, 5, 7},
    {"min.s32", 4, 7, 0xffffffff, 0xffffffff},
    {"max.s32", 4, 7, 0xffffffff, 7},
    {"inc.u32", 4, 7, 7, 0},
    {"dec.u32", 4, 7, 5, 5},
    {"and.b32", 4, 7, 5, 5},
    {"or.b32", 4, 7, 8, 15},
    {"xor.b32", 4, 7, 5, 2},
    {"add.u64", 8, 7, ~0ull, 6},
};
const Reduction globalReductions[] = {
    {"and.b64", 8, 7, 5, 5},
    {"or.b64", 8, 7, 8, 15},
    {"xor.b64", 8, 7, 5, 2},
    {"min.u64", 8, 7, 5, 5},
    {"max.s64", 8, 7, ~0ull, 7},
    {"add.f32", 4, 0x3f800000, 0x40000000, 0x40400000},
    {"add.f64", 8, 0x3ff0000000000000, 0x4000000000000000, 0x4008000000000000},
    {"add.noftz.f16", 2, 0x3c00, 0x3c00, 0x4000},
    {"add.noftz.bf16", 2, 0x3f80, 0x3f80, 0x4000},
    {"min.f16", 2, 0x3c00, 0x4000, 0x3c00},
    {"max.bf16", 2, 0x3f80, 0x4000, 0x4000},
};

/// Sixteen bytes of a value.
std::vector<uint8_t> filled(uint64_t value, unsigned bytes) {
  std::vector<uint8_t> v;
  while (v.size() < 16) {
    const auto *p = reinterpret_cast<const uint8_t *>(&value);
    v.insert(v.end(), p, p + bytes);
  }
  return v;
}

void expectReduced(const Reduction &c, bool toGlobal) {
  std::vector<uint8_t> in = filled(c.operand, c.bytes), old;
  old = filled(c.old, c.bytes);
  in.insert(in.end(), old.begin(), old.end());
  std::string body =
      std::string(initBarrier) +
      "ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d0];\n"
      "st.shared.v4.b32 [%r1+1024], {%r2, %r3, %r4, %r5};\n"
      "ld.global.v4.b32 {%r2, %r3, %r4, %r5}, [%d0+16];\n"
      "st.shared.v4.b32 [%r1+2048], {%r2, %r3, %r4, %r5};\n"
      "st.global.v4.b32 [%d1], {%r2, %r3, %r4, %r5};\nfence.proxy.async;\n";
  if (toGlobal)
    body += std::string("cp.reduce.async.bulk.global.shared::cta.bulk_group.") +
            c.name +
            " [%d1], [%r1+1024], 16;\ncp.async.bulk.commit_group;\n"
            "cp.async.bulk.wait_group 0;\n";
  else
    body += std::string("mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], "
                        "16;\ncp.reduce.async.bulk.shared::cluster.shared::cta."
                        "mbarrier::complete_tx::bytes.") +
            c.name + " [%r1+2048], [%r1+1024], 16, [%r1];\n" + waitFor(0) +
            "ld.shared.v4.b32 {%r2, %r3, %r4, %r5}, [%r1+2048];\n"
            "st.global.v4.b32 [%d1], {%r2, %r3, %r4, %r5};\n";
  Outcome r = runOne(body, in, 16);
  EXPECT_EQ(r.out, filled(c.want, c.bytes)) << c.name << toGlobal;
}

} // namespace

TEST(BulkForms, Reductions) {
  for (const Reduction &c : reductions) {
    expectReduced(c, false);
    expectReduced(c, true);
  }
  for (const Reduction &c : globalReductions)
    expectReduced(c, true);
}

namespace {

/// A map in the first 128 bytes of `in`, over u32 data that begins 256 bytes
/// into `in` and counts from 0; on the device it is put to the end of `out`.
struct Tensor {
  TensorMapInfo info;
  std::vector<uint8_t> in = std::vector<uint8_t>(256);
  Tensor(std::vector<uint64_t> dims, std::vector<uint32_t> box) {
    info.address = 4096;
    info.element = TensorMapElement::U32;
    info.rank = dims.size();
    uint64_t stride = 4;
    for (unsigned i = 0; i < dims.size(); ++i) {
      info.dims[i] = dims[i];
      info.box[i] = box[i];
      info.strides[i] = i ? stride : 0;
      stride *= dims[i];
    }
    std::vector<uint8_t> data = words(stride / 4, 0);
    in.insert(in.end(), data.begin(), data.end());
    auto bytes = llvm::cantFail(encodeTensorMap(info));
    std::copy(bytes.begin(), bytes.end(), in.begin());
  }
  /// The map lies at %d8 and describes `in`, or `out` from byte 0.
  static std::string setup(bool overOut) {
    std::string s = initBarrier;
    s += "add.u64 %d8, %d1, 1920;\nand.b64 %d8, %d8, -128;\n";
    for (unsigned i = 0; i < 128; i += 8)
      s += "ld.global.b64 %d2, [%d0+" + std::to_string(i) +
           "];\nst.global.b64 [%d8+" + std::to_string(i) + "], %d2;\n";
    s += overOut ? "mov.u64 %d2, %d1;\n" : "add.u64 %d2, %d0, 256;\n";
    return s + "tensormap.replace.tile.global_address.global.b1024.b64 [%d8], "
               "%d2;\nfence.proxy.tensormap::generic.acquire.gpu [%d8], 128;\n"
               "mov.u32 %r2, 2;\nmov.u32 %r3, 1;\nmov.u32 %r4, 0;\n"
               "mov.u32 %r5, 3;\nmov.u32 %r6, 0;\n";
  }
};

} // namespace

TEST(TensorForms, LoadsOfEveryRank) {
  struct Case {
    unsigned rank;
    const char *form, *coordinates, *tail;
  };
  const Case cases[] = {
      {1, "1d.shared::cluster.global.mbarrier::complete_tx::bytes", "{%r2}",
       ""},
      {1, "1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
       "{%r2}", ""},
      {2, "2d.shared::cta.global.mbarrier::complete_tx::bytes", "{%r2, %r3}",
       ""},
      {3,
       "3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes."
       "multicast::cluster",
       "{%r2, %r3, %r4}", ", %h1"},
      {4,
       "4d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint",
       "{%r2, %r3, %r4, %r5}", ", %d9"},
      {5,
       "5d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::"
       "cluster.L2::cache_hint",
       "{%r2, %r3, %r4, %r5, %r6}", ", %h1, %d9"},
      {2, "2d.cta_group::1.shared::cluster.global.mbarrier::complete_tx::bytes",
       "{%r2, %r3}", ""},
  };
  for (const Case &c : cases) {
    std::vector<uint64_t> dims = {8, 4, 3, 5, 2};
    std::vector<uint32_t> box = {4, 2, 1, 2, 1};
    dims.resize(c.rank);
    box.resize(c.rank);
    Tensor t(dims, box);
    unsigned n = 1;
    for (uint32_t b : box)
      n *= b;
    std::string body =
        Tensor::setup(false) +
        "mov.u32 %r2, 4;\nmbarrier.arrive.expect_tx.shared::cta.b64 %d5, "
        "[%r1], " +
        std::to_string(4 * n) + ";\ncp.async.bulk.tensor." + c.form +
        " [%r1+1024], [%d8, " + c.coordinates + "], [%r1]" + c.tail + ";\n" +
        waitFor(0);
    for (unsigned i = 0; i < n; ++i)
      body += "ld.shared.b32 %r9, [%r1+" + std::to_string(1024 + 4 * i) +
              "];\nst.global.b32 [%d1+" + std::to_string(4 * i) + "], %r9;\n";
    Outcome r = runOne(body, t.in, 2048);
    const unsigned first[] = {4, 1, 0, 3, 0};
    for (unsigned i = 0; i < n; ++i) {
      unsigned rest = i, index = 0, stride = 1;
      for (unsigned d = 0; d < c.rank; ++d) {
        index += (first[d] + rest % box[d]) * stride;
        rest /= box[d];
        stride *= dims[d];
      }
      EXPECT_EQ(r.at<uint32_t>(i), index) << c.form << i;
    }
  }
}

TEST(TensorForms, GatherAndScatter) {
  // Four rows anywhere: 3, 1, 0 and 3 again.
  Tensor t({8, 4}, {4, 1});
  for (const char *form :
       {"2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes "
        "[%r1+1024], [%d8, {%r2, %r5, %r3, %r4, %r5}], [%r1]",
        "2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes."
        "multicast::cluster [%r1+1024], [%d8, {%r2, %r5, %r3, %r4, %r5}], "
        "[%r1], %h1",
        "2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes."
        "multicast::cluster.cta_group::2 [%r1+1024], "
        "[%d8, {%r2, %r5, %r3, %r4, %r5}], [%r1], %h1"}) {
    std::string body =
        Tensor::setup(false) +
        "mbarrier.arrive.expect_tx.shared::cta.b64 %d5, [%r1], 64;\n"
        "cp.async.bulk.tensor." +
        form + ";\n" + waitFor(0);
    for (unsigned i = 0; i < 16; ++i)
      body += "ld.shared.b32 %r9, [%r1+" + std::to_string(1024 + 4 * i) +
              "];\nst.global.b32 [%d1+" + std::to_string(4 * i) + "], %r9;\n";
    Outcome r = runOne(body, t.in, 2048);
    const unsigned rows[] = {3, 1, 0, 3};
    for (unsigned i = 0; i < 16; ++i)
      EXPECT_EQ(r.at<uint32_t>(i), rows[i / 4] * 8 + 2 + i % 4) << form;
  }
  // The driver takes maps of higher boxes, and the instruction does not.
  Tensor high({8, 4}, {4, 2});
  LaunchConfig config;
  config.dynamicShared = 8192;
  Outcome refused = runText(
      wrapKernel(
          Tensor::setup(false) +
          "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::"
          "complete_tx::bytes [%r1+1024], [%d8, {%r2, %r5, %r3, %r4, %r5}], "
          "[%r1];\n"),
      high.in, 2048, config);
  EXPECT_NE(refused.text().find("expected a box of one row for rows that lie "
                                "apart, got 2"),
            std::string::npos)
      << refused.text();
  std::string body = Tensor::setup(true);
  for (unsigned i = 0; i < 16; ++i)
    body += "mov.u32 %r9, " + std::to_string(100 + i) +
            ";\nst.shared.b32 [%r1+" + std::to_string(1024 + 4 * i) +
            "], %r9;\n";
  body +=
      "mov.u32 %r7, 2;\nfence.proxy.async;\n"
      "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group "
      "[%d8, {%r2, %r5, %r3, %r4, %r7}], [%r1+1024];\n"
      "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n";
  Outcome r = runOne(body, t.in, 2048);
  const unsigned rows[] = {3, 1, 0, 2};
  for (unsigned i = 0; i < 16; ++i)
    EXPECT_EQ(r.at<uint32_t>(rows[i / 4] * 8 + 2 + i % 4), 100 + i);
}

TEST(TensorForms, StoresAndReductions) {
  struct Case {
    const char *form;
    uint32_t want; ///< of 7 and 5
  };
  const Case cases[] = {
      {"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", 5},
      {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", 5},
      {"cp.async.bulk.tensor.2d.global.shared::cta.bulk_group.L2::cache_hint",
       5},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group", 12},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group",
       5},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.bulk_group", 7},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.inc.bulk_group", 0},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.dec.bulk_group", 5},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.and.bulk_group", 5},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.or.bulk_group", 7},
      {"cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.bulk_group", 2},
  };
  for (const Case &c : cases) {
    Tensor t({8, 4}, {4, 1});
    std::string hint =
        llvm::StringRef(c.form).ends_with("cache_hint") ? ", %d9" : "";
    Outcome r = runOne(
        Tensor::setup(true) +
            "mov.u32 %r9, 7;\nst.global.v4.b32 [%d1], {%r9, %r9, %r9, %r9};\n"
            "mov.u32 %r9, 5;\n"
            "st.shared.v4.b32 [%r1+1024], {%r9, %r9, %r9, %r9};\n"
            "fence.proxy.async;\n" +
            c.form + " [%d8, {%r4, %r4}], [%r1+1024]" + hint +
            ";\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group.read 0;\n"
            "cp.async.bulk.wait_group 0;\n",
        t.in, 2048);
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(r.at<uint32_t>(i), c.want) << c.form;
  }
  for (const auto &[rank, form, coordinates] :
       {std::tuple(1u, "1d.global.shared::cta.bulk_group", "{%r4}"),
        std::tuple(1u, "1d.global.shared::cta.tile.bulk_group", "{%r4}"),
        std::tuple(4u, "4d.global.shared::cta.bulk_group",
                   "{%r4, %r4, %r4, %r4}"),
        std::tuple(4u, "4d.global.shared::cta.tile.bulk_group",
                   "{%r4, %r4, %r4, %r4}")}) {
    std::vector<uint64_t> dims = {4, 2, 2, 2};
    std::vector<uint32_t> box = {4, 1, 1, 1};
    dims.resize(rank);
    box.resize(rank);
    Tensor t(dims, box);
    Outcome r = runOne(
        Tensor::setup(true) +
            "mov.u32 %r9, 5;\n"
            "st.shared.v4.b32 [%r1+1024], {%r9, %r9, %r9, %r9};\n"
            "fence.proxy.async;\nprefetch.tensormap [%d8];\n"
            "cp.async.bulk.prefetch.tensor.2d.L2.global [%d8, {%r4, %r4}];\n"
            "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%d8, {%r4, "
            "%r4}];\ncp.async.bulk.prefetch.tensor.2d.L2.global.tile::gather4 "
            "[%d8, {%r4, %r4, %r4, %r4, %r4}];\ncp.async.bulk.tensor." +
            form + " [%d8, " + coordinates +
            "], [%r1+1024];\ncp.async.bulk.commit_group;\n"
            "cp.async.bulk.wait_group 0;\n",
        t.in, 2048);
    EXPECT_EQ(r.at<uint32_t>(3), 5u) << form;
  }
}
