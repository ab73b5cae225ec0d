//===- TensorMemoryFormsTest.cpp - Loads, stores and copies by shape ------===//
//
// Cells hold what tells their lane and column. Expected places are those of
// the manual's figures, written down for each thread and register.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"
#include <cmath>
#include <functional>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

std::string registers(unsigned first, unsigned count) {
  std::string s = "{";
  for (unsigned i = 0; i < count; ++i)
    s += (i ? ", %r" : "%r") + std::to_string(first + i);
  return s + "}";
}

/// Sixteen columns of lane·256 + column, then `middle`, which uses %r10 as the
/// address of the lanes' first column and writes %r100 and on. Those `words`
/// of each thread are the result.
Outcome runWarp(const std::string &middle, unsigned words,
                llvm::StringRef target = "sm_100a") {
  std::string s =
      "mov.u32 %r1, smem;\nmov.u32 %r2, 32;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;\n"
      "ld.shared.b32 %r10, [%r1];\nshl.b32 %r3, %r0, 8;\n";
  for (unsigned i = 0; i < 16; ++i)
    s += "add.u32 %r" + std::to_string(20 + i) + ", %r3, " + std::to_string(i) +
         ";\n";
  s += "tcgen05.st.sync.aligned.32x32b.x16.b32 [%r10], " + registers(20, 16) +
       ";\ntcgen05.wait::st.sync.aligned;\n" + middle +
       "mul.wide.u32 %d2, %r0, " + std::to_string(4 * words) +
       ";\nadd.u64 %d2, %d2, %d1;\n";
  for (unsigned i = 0; i < words; ++i)
    s += "st.global.b32 [%d2+" + std::to_string(4 * i) + "], %r" +
         std::to_string(100 + i) + ";\n";
  s += "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
  LaunchConfig config;
  config.block = {32, 1, 1};
  config.dynamicShared = 1024;
  Outcome r = runText(wrapKernel(s, target), {}, 128 * words, config);
  EXPECT_TRUE(r.error.empty() && r.report.isClean()) << middle << r.text();
  r.out.resize(128 * words);
  return r;
}

struct Shape {
  const char *name;
  unsigned regs;
  const char *split;
  /// Lane and element of a thread's register.
  std::function<std::pair<unsigned, unsigned>(unsigned, unsigned)> place;
};
const Shape shapes[] = {
    {"16x128b.x1", 2, "",
     [](unsigned t, unsigned r) { return std::pair(t / 4 + 8 * r, t % 4); }},
    {"16x256b.x1", 4, "",
     [](unsigned t, unsigned r) {
       return std::pair(t / 4 + 8 * (r / 2), t % 4 * 2 + r % 2);
     }},
    {"16x64b.x2", 2, "",
     [](unsigned t, unsigned r) {
       return std::pair(t / 4 + 8 * (t % 2), r * 2 + t / 2 % 2);
     }},
    {"16x32bx2.x2", 2, ", 4",
     [](unsigned t, unsigned r) { return std::pair(t % 16, r + t / 16 * 4); }},
};

} // namespace

TEST(TensorMemoryForms, LoadShapes) {
  for (const Shape &shape : shapes)
    for (bool pack : {false, true})
      for (unsigned half : {0u, 16u}) {
        Outcome r =
            runWarp("add.u32 %r11, %r10, " + std::to_string(half << 16) +
                        ";\ntcgen05.ld.sync.aligned." + shape.name +
                        (pack ? ".pack::16b" : "") + ".b32 " +
                        registers(100, shape.regs) + ", [%r11]" + shape.split +
                        ";\ntcgen05.wait::ld.sync.aligned;\n",
                    shape.regs);
        for (unsigned t = 0; t < 32; ++t)
          for (unsigned i = 0; i < shape.regs; ++i) {
            auto [lane, element] = shape.place(t, i);
            unsigned cell = (lane + half) * 256 + element;
            if (pack) {
              // The second half starts where the instruction says.
              unsigned start = *shape.split && t >= 16 ? 4 : 0;
              cell = (lane + half) * 256 + start + (element - start) * 2;
              cell |= (cell + 1) << 16;
            }
            EXPECT_EQ(r.at<uint32_t>(t * shape.regs + i), cell)
                << shape.name << pack << " " << t << " " << i;
          }
      }
}

TEST(TensorMemoryForms, StoreShapes) {
  for (const Shape &shape : shapes)
    for (bool unpack : {false, true}) {
      std::string s = "shl.b32 %r4, %r0, 4;\nadd.u32 %r4, %r4, 0x5000;\n"
                      "shl.b32 %r5, %r4, 16;\nadd.u32 %r5, %r5, 0x10000000;\n"
                      "add.u32 %r4, %r4, %r5;\n";
      for (unsigned i = 0; i < shape.regs; ++i)
        s += "add.u32 %r" + std::to_string(40 + i) + ", %r4, " +
             std::to_string(i * 0x10001) + ";\n";
      Outcome r = runWarp(s + "tcgen05.st.sync.aligned." + shape.name +
                              (unpack ? ".unpack::16b" : "") + ".b32 [%r10]" +
                              shape.split + ", " + registers(40, shape.regs) +
                              ";\ntcgen05.wait::st.sync.aligned;\n"
                              "tcgen05.ld.sync.aligned.32x32b.x16.b32 " +
                              registers(100, 16) +
                              ", [%r10];\ntcgen05.wait::ld.sync.aligned;\n",
                          16);
      std::vector<uint32_t> want(32 * 16);
      for (unsigned i = 0; i < want.size(); ++i)
        want[i] = i / 16 * 256 + i % 16;
      for (unsigned t = 0; t < 32; ++t)
        for (unsigned i = 0; i < shape.regs; ++i) {
          auto [lane, element] = shape.place(t, i);
          uint32_t low = 0x5000 + t * 16 + i, high = low + 0x1000;
          unsigned start = *shape.split && t >= 16 ? 4 : 0;
          if (unpack) {
            unsigned column = start + (element - start) * 2;
            want[lane * 16 + column] = low;
            want[lane * 16 + column + 1] = high;
          } else {
            want[lane * 16 + element] = low | high << 16;
          }
        }
      for (unsigned i = 0; i < want.size(); ++i)
        EXPECT_EQ(r.at<uint32_t>(i), want[i]) << shape.name << unpack << i;
    }
}

TEST(TensorMemoryForms, ReducingLoads) {
  // Cells are 5·lane + column with the sign of the lane's lowest bit; lane 3
  // has a NaN in column 1.
  auto cell = [](unsigned lane, unsigned column, bool isFloat) {
    int v = int(5 * lane + 3 * column) * (lane % 2 == column % 2 ? 1 : -1);
    float f = float(v);
    uint32_t bits;
    std::memcpy(&bits, &f, 4);
    if (isFloat)
      return lane == 3 && column == 1 ? 0x7fc00000u : bits;
    return uint32_t(v);
  };
  for (const char *type : {"u32", "s32", "f32"})
    for (const char *op : {"min", "max"})
      for (const char *flags : {"", ".abs", ".NaN", ".abs.NaN"})
        for (bool halves : {false, true}) {
          bool isFloat = type[0] == 'f', isMax = op[1] == 'a';
          bool abs = std::strstr(flags, "abs"), nan = std::strstr(flags, "NaN");
          if (*flags && !isFloat)
            continue;
          std::string s = "and.b32 %r5, %r0, 1;\nmul.lo.u32 %r6, %r0, 5;\n";
          for (unsigned i = 0; i < 8; ++i) {
            std::string v = "%r" + std::to_string(20 + i);
            s += "add.u32 " + v + ", %r6, " + std::to_string(3 * i) +
                 ";\nneg.s32 %r7, " + v + ";\nsetp.ne.u32 %p1, %r5, " +
                 std::to_string(i % 2) + ";\nselp.b32 " + v + ", %r7, " + v +
                 ", %p1;\n";
            if (isFloat)
              s += "cvt.rn.f32.s32 " + v + ", " + v + ";\n";
          }
          if (isFloat)
            s += "setp.eq.u32 %p2, %r0, 3;\n"
                 "selp.b32 %r21, 0x7fc00000, %r21, %p2;\n";
          s += "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], " +
               registers(20, 8) +
               ";\ntcgen05.wait::st.sync.aligned;\ntcgen05.ld.red.sync."
               "aligned." +
               (halves ? "16x32bx2" : "32x32b") + ".x2." + op + flags + "." +
               type + " {%r100, %r101}, %r102, [%r10]" + (halves ? ", 4" : "") +
               ";\ntcgen05.wait::ld.sync.aligned;\n";
          Outcome r = runWarp(s, 3, "sm_103a");
          for (unsigned t = 0; t < 32; ++t) {
            unsigned lane = halves ? t % 16 : t;
            unsigned first = halves && t >= 16 ? 4 : 0;
            uint32_t a = cell(lane, first, isFloat);
            uint32_t b = cell(lane, first + 1, isFloat);
            EXPECT_EQ(r.at<uint32_t>(3 * t), a);
            EXPECT_EQ(r.at<uint32_t>(3 * t + 1), b);
            uint32_t want;
            if (isFloat) {
              float x, y;
              std::memcpy(&x, &a, 4);
              std::memcpy(&y, &b, 4);
              if (abs)
                x = std::abs(x), y = std::abs(y);
              float z = std::isnan(y) ? x : (y > x) == isMax ? y : x;
              std::memcpy(&want, &z, 4);
              if (nan && std::isnan(y))
                want = 0x7fffffff;
            } else if (type[0] == 's') {
              want = (int32_t(b) > int32_t(a)) == isMax ? b : a;
            } else {
              want = (b > a) == isMax ? b : a;
            }
            EXPECT_EQ(r.at<uint32_t>(3 * t + 2), want)
                << type << op << flags << halves << " " << t;
          }
        }
}

TEST(TensorMemoryForms, CopiesOfEveryShape) {
  // Rows of 16 bytes at 16·row; 128x256b has its second half 4096 bytes on.
  struct Case {
    const char *name;
    unsigned columns;
    std::function<unsigned(unsigned)> row; ///< of a lane
  };
  const Case cases[] = {
      {"128x128b", 4, [](unsigned lane) { return lane; }},
      {"128x256b", 8, [](unsigned lane) { return lane; }},
      {"32x128b.warpx4", 4, [](unsigned lane) { return lane % 32; }},
      {"64x128b.warpx2::02_13", 4, [](unsigned lane) { return lane % 64; }},
      {"64x128b.warpx2::01_23", 4,
       [](unsigned lane) { return lane / 64 * 32 + lane % 32; }},
  };
  std::vector<uint32_t> in(2048);
  for (unsigned i = 0; i < in.size(); ++i)
    in[i] = i * 3;
  for (const Case &c : cases)
    for (const char *commit :
         {".b64 [%r1+16]", ".multicast::cluster.b64 [%r1+16], %h1"}) {
      std::string s = "mov.u32 %r1, smem;\nmad.lo.u32 %r3, %r0, 16, %r1;\n"
                      "mul.wide.u32 %d2, %r0, 16;\nadd.u64 %d3, %d2, %d0;\n"
                      "mov.u16 %h1, 1;\n";
      for (unsigned at = 0; at < 8192; at += 2048)
        s += "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d3+" +
             std::to_string(at) + "];\nst.shared.v4.b32 [%r3+" +
             std::to_string(at + 1024) + "], {%r4, %r5, %r6, %r7};\n";
      s += "setp.eq.u32 %p0, %r0, 0;\nsetp.lt.u32 %p1, %r0, 32;\n"
           "@%p0 mbarrier.init.shared::cta.b64 [%r1+16], 1;\n"
           "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 "
           "[%r1], 32;\ntcgen05.fence::before_thread_sync;\n"
           "fence.proxy.async;\nbar.sync 0;\n"
           "tcgen05.fence::after_thread_sync;\nld.shared.b32 %r10, [%r1];\n"
           "@!%p0 bra W;\nadd.u32 %r12, %r1, 1024;\nshr.u32 %r12, %r12, 4;\n"
           "cvt.u64.u32 %d5, %r12;\nor.b64 %d5, %d5, " +
           std::to_string(uint64_t(1) << 46 | uint64_t(8) << 32 |
                          uint64_t(256) << 16) +
           ";\ntcgen05.cp.cta_group::1." + c.name +
           " [%r10], %d5;\ntcgen05.commit.cta_group::1.mbarrier::arrive::one."
           "shared::cluster" +
           commit +
           ";\nW:\n"
           "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+16], 0;\n"
           "@!%p3 bra W;\ntcgen05.fence::after_thread_sync;\n"
           "shr.u32 %r8, %r0, 5;\nshl.b32 %r8, %r8, 21;\n"
           "add.u32 %r11, %r10, %r8;\n";
      std::string columns = std::to_string(c.columns);
      s += "tcgen05.ld.sync.aligned.32x32b.x" + columns + ".b32 " +
           registers(20, c.columns) +
           ", [%r11];\ntcgen05.wait::ld.sync.aligned;\n"
           "mul.wide.u32 %d2, %r0, 32;\nadd.u64 %d3, %d2, %d1;\n";
      for (unsigned i = 0; i < c.columns; ++i)
        s += "st.global.b32 [%d3+" + std::to_string(4 * i) + "], %r" +
             std::to_string(20 + i) + ";\n";
      s += "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
           "tcgen05.fence::after_thread_sync;\n"
           "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
      Outcome r = runBody(s, bytesOf(in), 128 * 32, 128, 16384);
      ASSERT_TRUE(r.error.empty() && r.report.isClean()) << c.name << r.text();
      for (unsigned lane = 0; lane < 128; ++lane)
        for (unsigned i = 0; i < c.columns; ++i)
          EXPECT_EQ(r.at<uint32_t>(lane * 8 + i),
                    in[c.row(lane) * 4 + i % 4 + i / 4 * 1024])
              << c.name << " " << lane << " " << i;
    }
}
