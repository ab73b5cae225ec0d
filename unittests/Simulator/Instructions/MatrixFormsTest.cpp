//===- MatrixFormsTest.cpp - ldmatrix, stmatrix, mma, wmma ----------------===//
//
// Results are compared with loops over the matrices. The fragments of mma.sync
// are those of the manual's figures.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"
#include <cmath>
#include <random>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

std::vector<uint8_t> randomBytes(size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<uint8_t> bytes(n);
  for (uint8_t &b : bytes)
    b = rng();
  return bytes;
}

std::string registers(unsigned first, unsigned count,
                      const char *prefix = "%r") {
  std::string s = "{";
  for (unsigned i = 0; i < count; ++i)
    s += (i ? ", " : "") + std::string(prefix) + std::to_string(first + i);
  return s + "}";
}

/// Copies 512 bytes of `in` to shared memory; %r3 is the address of row %tid.x.
const char *copyIn = "mov.u32 %r1, smem;\nmul.wide.u32 %d2, %r0, 16;\n"
                     "add.u64 %d3, %d2, %d0;\n"
                     "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d3];\n"
                     "mad.lo.u32 %r3, %r0, 16, %r1;\n"
                     "st.shared.v4.b32 [%r3], {%r4, %r5, %r6, %r7};\n"
                     "bar.warp.sync -1;\n";

/// Stores registers %r20… of each lane one after the other.
std::string storeRegisters(unsigned count) {
  std::string s = "mul.wide.u32 %d4, %r0, " + std::to_string(4 * count) +
                  ";\nadd.u64 %d4, %d4, %d1;\n";
  for (unsigned i = 0; i < count; ++i)
    s += "st.global.b32 [%d4+" + std::to_string(4 * i) + "], %r" +
         std::to_string(20 + i) + ";\n";
  return s;
}

} // namespace

TEST(LdMatrixBytes, EveryForm) {
  struct Case {
    const char *shape, *format;
    unsigned matrices, rows, bits;
  };
  const Case cases[] = {
      {"m16n16.x1.trans", "b8", 1, 16, 8},
      {"m16n16.x2.trans", "b8", 2, 16, 8},
      {"m16n16.x1.trans", "b8x16.b6x16_p32", 1, 16, 6},
      {"m16n16.x2.trans", "b8x16.b4x16_p64", 2, 16, 4},
      {"m8n16.x1", "b8x16.b4x16_p64", 1, 8, 4},
      {"m8n16.x2", "b8x16.b6x16_p32", 2, 8, 6},
      {"m8n16.x4", "b8x16.b6x16_p32", 4, 8, 6},
  };
  for (const Case &c : cases) {
    std::vector<uint8_t> in = randomBytes(512, 1);
    unsigned regs = c.matrices * c.rows / 8;
    Outcome r =
        runBody(std::string(copyIn) + "ldmatrix.sync.aligned." + c.shape +
                    ".shared." + c.format + " " + registers(20, regs) +
                    ", [%r3];\n" + storeRegisters(regs),
                in, 128 * regs, 32, 1024);
    expectClean(r);
    auto element = [&](unsigned row, unsigned i) {
      unsigned v = 0;
      for (unsigned b = 0; b < c.bits; ++b) {
        unsigned bit = i * c.bits + b;
        v |= (in[row * 16 + bit / 8] >> bit % 8 & 1u) << b;
      }
      return v;
    };
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned g = 0; g < regs; ++g)
        for (unsigned e = 0; e < 4; ++e) {
          unsigned want =
              c.rows == 16
                  ? element(g / 2 * 16 + 4 * (l % 4) + e, l / 4 + 8 * (g % 2))
                  : element(g * 8 + l / 4, 4 * (l % 4) + e);
          EXPECT_EQ(r.at<uint8_t>((l * regs + g) * 4 + e), want)
              << c.shape << " " << c.format << " " << l;
        }
  }
}

TEST(StMatrixBytes, UndoesTheLoad) {
  // Two 16x8 matrices stored from the bytes of a 16x16 matrix, put into their
  // order: rows 4t, 4t+1 of both halves, then 4t+2, 4t+3. The rows come in the
  // order that the load gives them.
  std::vector<uint8_t> in = randomBytes(512, 2);
  std::string body =
      std::string(copyIn) +
      "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r20, %r21}, [%r3];\n"
      "prmt.b32 %r22, %r20, %r21, 0x5410;\nprmt.b32 %r23, %r20, %r21, 0x7632;\n"
      "add.u32 %r8, %r3, 512;\n"
      "stmatrix.sync.aligned.m16n8.x2.trans.shared.b8 [%r8], {%r22, %r23};\n"
      "bar.warp.sync -1;\nld.shared.v4.b32 {%r20, %r21, %r22, %r23}, [%r8];\n"
      "setp.lt.u32 %p0, %r0, 16;\n@!%p0 bra E;\n" +
      storeRegisters(4) + "E:\n";
  Outcome r = runBody(body, in, 256, 32, 2048);
  expectClean(r);
  for (unsigned row = 0; row < 16; ++row) {
    unsigned half = row / 8, t = row % 8 / 2, b = row % 2;
    unsigned source = 4 * t + 2 * half + b;
    for (unsigned i = 0; i < 16; ++i)
      EXPECT_EQ(r.at<uint8_t>(row * 16 + i), in[source * 16 + i]) << row;
  }
  for (const char *x : {"x1", "x4"}) {
    unsigned n = x[1] - '0';
    Outcome s =
        runBody(std::string(copyIn) +
                    "mov.u32 %r20, %r0;\nmov.u32 %r21, %r0;\n"
                    "mov.u32 %r22, %r0;\nmov.u32 %r23, %r0;\n"
                    "stmatrix.sync.aligned.m16n8." +
                    x + ".trans.shared.b8 [%r3], " + registers(20, n) +
                    ";\nbar.warp.sync -1;\nld.shared.b32 %r20, [%r3];\n" +
                    storeRegisters(1),
                in, 128, 32, 1024);
    expectClean(s);
    // Row 2t of a matrix holds byte 0 of lanes 4g + t.
    EXPECT_EQ(s.at<uint32_t>(2), 0x0d090501u);
  }
}

TEST(MatrixMemory, WrongForms) {
  for (const char *wrong :
       {"ldmatrix.sync.aligned.m16n16.x4.trans.shared.b8 {%r4, %r5}, [%r3];",
        "ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r4, %r5}, [%r3];",
        "ldmatrix.sync.aligned.m8n16.x1.shared.b8 {%r4}, [%r3];",
        "ldmatrix.sync.aligned.m4n4.x1.shared.b16 {%r4}, [%r3];",
        "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8x16.b4x16_p64 [%r3], "
        "{%r4};"})
    EXPECT_FALSE(runBody(wrong, randomBytes(16, 1), 16).error.empty()) << wrong;
}

namespace {

/// Integer products of mma.sync, from operand words that are random.
struct IntegerCase {
  const char *shape, *types, *tail;
  unsigned m, k, bits;
  bool aSigned, bSigned;
};

int64_t elementAt(const std::vector<uint32_t> &words, unsigned index,
                  unsigned bits, bool isSigned) {
  unsigned per = 32 / bits;
  uint32_t v = words[index / per] >> (bits * (index % per));
  v &= bits == 32 ? ~0u : (1u << bits) - 1;
  return isSigned && v >> (bits - 1) ? int64_t(v) - (1 << bits) : v;
}

} // namespace

TEST(MmaSync, IntegersAndBits) {
  const IntegerCase cases[] = {
      {"m8n8k16", "s8.u8", "", 8, 16, 8, true, false},
      {"m8n8k16", "u8.s8", ".satfinite", 8, 16, 8, false, true},
      {"m16n8k16", "s8.s8", "", 16, 16, 8, true, true},
      {"m16n8k32", "u8.u8", "", 16, 32, 8, false, false},
      {"m8n8k32", "s4.u4", "", 8, 32, 4, true, false},
      {"m16n8k32", "s4.s4", "", 16, 32, 4, true, true},
      {"m16n8k64", "u4.s4", "", 16, 64, 4, false, true},
      {"m8n8k128", "b1.b1", "xor", 8, 128, 1, false, false},
      {"m16n8k128", "b1.b1", "and", 16, 128, 1, false, false},
      {"m16n8k256", "b1.b1", "xor", 16, 256, 1, false, false},
  };
  std::mt19937 rng(3);
  for (const IntegerCase &c : cases) {
    unsigned wordsPerRow = c.k * c.bits / 32;
    unsigned aRegs = c.m / 8 * wordsPerRow / 4, bRegs = wordsPerRow / 4,
             cRegs = c.m / 4;
    // Rows of A, then columns of B, in words; the fragments are gathered here.
    std::vector<uint32_t> a(c.m * wordsPerRow), b(8 * wordsPerRow), in;
    for (auto *list : {&a, &b})
      for (uint32_t &v : *list)
        v = rng();
    std::vector<int32_t> acc(c.m * 8);
    for (int32_t &v : acc)
      v = rng() % 1000;
    for (unsigned l = 0; l < 32; ++l) {
      for (unsigned r = 0; r < aRegs; ++r)
        in.push_back(a[(l / 4 + 8 * (r % (c.m / 8))) * wordsPerRow + l % 4 +
                       4 * (r / (c.m / 8))]);
      for (unsigned r = 0; r < bRegs; ++r)
        in.push_back(b[l / 4 * wordsPerRow + l % 4 + 4 * r]);
      for (unsigned r = 0; r < cRegs; ++r)
        in.push_back(acc[(l / 4 + 8 * (r / 2)) * 8 + l % 4 * 2 + r % 2]);
    }
    unsigned total = aRegs + bRegs + cRegs;
    std::string body = "mul.wide.u32 %d2, %r0, " + std::to_string(4 * total) +
                       ";\nadd.u64 %d2, %d2, %d0;\n";
    for (unsigned i = 0; i < total; ++i)
      body += "ld.global.b32 %r" + std::to_string(40 + i) + ", [%d2+" +
              std::to_string(4 * i) + "];\n";
    bool isBits = c.bits == 1;
    body += std::string("mma.sync.aligned.") + c.shape + ".row.col" +
            (isBits ? "" : c.tail) + ".s32." + c.types + ".s32" +
            (isBits ? "." + std::string(c.tail) + ".popc" : "") + " " +
            registers(20, cRegs) + ", " + registers(40, aRegs) + ", " +
            registers(40 + aRegs, bRegs) + ", " +
            registers(40 + aRegs + bRegs, cRegs) + ";\n" +
            storeRegisters(cRegs);
    Outcome r = runBody(body, bytesOf(in), 128 * cRegs, 32);
    SCOPED_TRACE(std::string(c.shape) + c.types);
    expectClean(r);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned g = 0; g < cRegs; ++g) {
        unsigned row = l / 4 + 8 * (g / 2), col = l % 4 * 2 + g % 2;
        int64_t sum = acc[row * 8 + col];
        for (unsigned i = 0; i < c.k; ++i) {
          int64_t x = elementAt(a, row * c.k + i, c.bits, c.aSigned);
          int64_t y = elementAt(b, col * c.k + i, c.bits, c.bSigned);
          sum += !isBits ? x * y : c.tail[0] == 'x' ? x ^ y : x & y;
        }
        EXPECT_EQ(r.at<int32_t>(l * cRegs + g), sum);
      }
  }
}

TEST(MmaSync, Floats) {
  struct Case {
    const char *shape, *types, *accumulator;
    unsigned k, bits;
  };
  const Case cases[] = {
      {"m16n8k8", "f16.f16", "f32", 8, 16},
      {"m16n8k8", "f16.f16", "f16", 8, 16},
      {"m16n8k8", "bf16.bf16", "f32", 8, 16},
      {"m16n8k16", "f16.f16", "f32", 16, 16},
      {"m16n8k16", "f16.f16", "f16", 16, 16},
      {"m16n8k16", "bf16.bf16", "f32", 16, 16},
      {"m16n8k4", "tf32.tf32", "f32", 4, 32},
      {"m16n8k8", "tf32.tf32", "f32", 8, 32},
      {"m16n8k16", "e4m3.e5m2", "f32", 16, 8},
      {"m16n8k32", "e5m2.e4m3", "f32", 32, 8},
      {"m16n8k32", "e4m3.e4m3", "f16", 32, 8},
  };
  // Powers of two from -4 to 4, so that every sum is exact.
  auto encode = [](llvm::StringRef type, int v) -> uint32_t {
    uint32_t sign = v < 0, e = v == 0              ? 0
                               : v == 4 || v == -4 ? 2
                                                   : std::abs(v) - 1;
    if (!v)
      return 0;
    if (type == "f16")
      return sign << 15 | (15 + e) << 10;
    if (type == "bf16")
      return sign << 15 | (127 + e) << 7;
    if (type == "tf32")
      return sign << 31 | (127 + e) << 23;
    return type == "e4m3" ? sign << 7 | (7 + e) << 3
                          : sign << 7 | (15 + e) << 2;
  };
  const int choices[] = {0, 1, 2, 4, -1, -2, -4};
  std::mt19937 rng(5);
  for (const Case &c : cases) {
    auto [aType, bType] = llvm::StringRef(c.types).split('.');
    bool half = c.accumulator == llvm::StringRef("f16");
    unsigned words = c.k * c.bits / 32, per = 32 / c.bits;
    unsigned aRegs = 2 * words / 4, bRegs = words / 4, cRegs = half ? 2 : 4;
    std::vector<int> a(16 * c.k), b(8 * c.k);
    for (auto *list : {&a, &b})
      for (int &v : *list)
        v = choices[rng() % 7];
    auto word = [&](const std::vector<int> &list, llvm::StringRef type,
                    unsigned row, unsigned w) {
      uint32_t bits = 0;
      for (unsigned e = 0; e < per; ++e)
        bits |= encode(type, list[row * c.k + w * per + e]) << (c.bits * e);
      return bits;
    };
    std::vector<uint32_t> in;
    for (unsigned l = 0; l < 32; ++l) {
      for (unsigned r = 0; r < aRegs; ++r)
        in.push_back(word(a, aType, l / 4 + 8 * (r % 2), l % 4 + 4 * (r / 2)));
      for (unsigned r = 0; r < bRegs; ++r)
        in.push_back(word(b, bType, l / 4, l % 4 + 4 * r));
    }
    std::string body = "mul.wide.u32 %d2, %r0, " +
                       std::to_string(4 * (aRegs + bRegs)) +
                       ";\nadd.u64 %d2, %d2, %d0;\n";
    for (unsigned i = 0; i < aRegs + bRegs; ++i)
      body += "ld.global.b32 %r" + std::to_string(40 + i) + ", [%d2+" +
              std::to_string(4 * i) + "];\n";
    // The accumulator starts with ones.
    for (unsigned i = 0; i < cRegs; ++i)
      body += "mov.b32 %r" + std::to_string(60 + i) + ", " +
              (half ? "0x3c003c00" : "0x3f800000") + ";\n";
    body += std::string("mma.sync.aligned.") + c.shape + ".row.col." +
            c.accumulator + "." + c.types + "." + c.accumulator + " " +
            registers(20, cRegs) + ", " + registers(40, aRegs) + ", " +
            registers(40 + aRegs, bRegs) + ", " + registers(60, cRegs) + ";\n" +
            storeRegisters(cRegs);
    Outcome r = runBody(body, bytesOf(in), 128 * cRegs, 32);
    SCOPED_TRACE(std::string(c.shape) + c.types);
    expectClean(r);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned i = 0; i < 4; ++i) {
        unsigned row = l / 4 + 8 * (i / 2), col = l % 4 * 2 + i % 2;
        int sum = 1;
        for (unsigned k = 0; k < c.k; ++k)
          sum += a[row * c.k + k] * b[col * c.k + k];
        if (!half) {
          EXPECT_EQ(r.at<float>(l * 4 + i), float(sum));
          continue;
        }
        uint16_t got = r.at<uint16_t>(l * 4 + i);
        int e = (got >> 10 & 31) - 25;
        float value = std::ldexp(float((got & 1023) | 1024), e);
        EXPECT_EQ(got & 0x7fff ? (got >> 15 ? -value : value) : 0.0f,
                  float(sum));
      }
  }
}

TEST(MmaSync, Doubles) {
  for (unsigned m : {8u, 16u})
    for (unsigned k : {4u, 8u, 16u}) {
      if (m == 8 && k != 4)
        continue;
      unsigned aRegs = m / 8 * k / 4, bRegs = k / 4, cRegs = m / 4;
      std::mt19937 rng(6);
      std::vector<double> a(m * k), b(8 * k), in;
      for (auto *list : {&a, &b})
        for (double &v : *list)
          v = int(rng() % 2001) - 1000;
      for (unsigned l = 0; l < 32; ++l) {
        for (unsigned r = 0; r < aRegs; ++r)
          in.push_back(
              a[(l / 4 + 8 * (r % (m / 8))) * k + l % 4 + 4 * (r / (m / 8))]);
        for (unsigned r = 0; r < bRegs; ++r)
          in.push_back(b[l / 4 * k + l % 4 + 4 * r]);
      }
      std::string body =
          "mul.wide.u32 %d2, %r0, " + std::to_string(8 * (aRegs + bRegs)) +
          ";\nadd.u64 %d2, %d2, %d0;\nmul.wide.u32 %d3, %r0, " +
          std::to_string(8 * cRegs) + ";\nadd.u64 %d3, %d3, %d1;\n";
      for (unsigned i = 0; i < aRegs + bRegs; ++i)
        body += "ld.global.b64 %d" + std::to_string(10 + i) + ", [%d2+" +
                std::to_string(8 * i) + "];\n";
      for (unsigned i = 0; i < cRegs; ++i)
        body += "mov.b64 %d" + std::to_string(30 + i) + ", 0;\n";
      std::string c = registers(30, cRegs, "%d");
      body += "mma.sync.aligned.m" + std::to_string(m) + "n8k" +
              std::to_string(k) + ".row.col.f64.f64.f64.f64 " + c + ", " +
              registers(10, aRegs, "%d") + ", " +
              registers(10 + aRegs, bRegs, "%d") + ", " + c + ";\n";
      for (unsigned i = 0; i < cRegs; ++i)
        body += "st.global.b64 [%d3+" + std::to_string(8 * i) + "], %d" +
                std::to_string(30 + i) + ";\n";
      Outcome r = runBody(body, bytesOf(in), 256 * cRegs, 32);
      expectClean(r);
      for (unsigned l = 0; l < 32; ++l)
        for (unsigned i = 0; i < cRegs; ++i) {
          double sum = 0;
          for (unsigned j = 0; j < k; ++j)
            sum += a[(l / 4 + 8 * (i / 2)) * k + j] *
                   b[(l % 4 * 2 + i % 2) * k + j];
          EXPECT_EQ(r.at<double>(l * cRegs + i), sum);
        }
    }
}

TEST(LdMatrix, SixteenBits) {
  // Eight rows of eight elements a matrix; the store puts back what was loaded.
  for (unsigned n : {1u, 2u, 4u})
    for (const char *trans : {"", ".trans"})
      for (const char *space : {".shared", ".shared::cta"}) {
        std::vector<uint8_t> in = randomBytes(512, 8);
        std::string x = ".x" + std::to_string(n), t = trans, s = space;
        Outcome r = runBody(
            std::string(copyIn) + "ldmatrix.sync.aligned.m8n8" + x + t + s +
                ".b16 " + registers(20, n) +
                ", [%r3];\nadd.u32 %r8, %r3, 512;"
                "\nstmatrix.sync.aligned.m8n8" +
                x + t + s + ".b16 [%r8], " + registers(20, n) +
                ";\nbar.warp.sync -1;\nsetp.lt.u32 %p0, "
                "%r0, " +
                std::to_string(8 * n) +
                ";\n@!%p0 bra E;\nld.shared.v4.b32 {%r30, %r31, %r32, %r33}, "
                "[%r8];\nmul.wide.u32 %d5, %r0, 16;\nadd.u64 %d5, %d5, %d1;\n"
                "st.global.v4.b32 [%d5+512], {%r30, %r31, %r32, %r33};\nE:\n" +
                storeRegisters(n),
            in, 1024, 32, 2048);
        expectClean(r);
        for (unsigned i = 0; i < 128 * n; ++i)
          EXPECT_EQ(r.out[512 + i], in[i]);
        for (unsigned l = 0; l < 32; ++l)
          for (unsigned m = 0; m < n; ++m)
            for (unsigned h = 0; h < 2; ++h) {
              unsigned row = l / 4, column = l % 4 * 2 + h;
              if (t.size())
                std::swap(row, column);
              uint16_t want;
              std::memcpy(&want, &in[m * 128 + row * 16 + column * 2], 2);
              EXPECT_EQ(r.at<uint16_t>((l * n + m) * 2 + h), want);
            }
      }
}

TEST(Wmma, EveryType) {
  struct Case {
    const char *shape, *operand, *accumulator, *mma;
    unsigned m, n, k, aRegs, bRegs, cRegs, bytes, accBytes;
  };
  const Case cases[] = {
      {"m16n16k16", "f16", "f32", "f32.f32", 16, 16, 16, 8, 8, 8, 2, 4},
      {"m32n8k16", "f16", "f32", "f32.f32", 32, 8, 16, 8, 8, 8, 2, 4},
      {"m8n32k16", "f16", "f16", "f16.f16", 8, 32, 16, 8, 8, 4, 2, 2},
      {"m16n16k16", "bf16", "f32", "f32.bf16.bf16.f32", 16, 16, 16, 4, 4, 8, 2,
       4},
      {"m16n16k8", "tf32", "f32", "f32.tf32.tf32.f32", 16, 16, 8, 4, 4, 8, 4,
       4},
      {"m16n16k16", "s8", "s32", "s32.s8.s8.s32", 16, 16, 16, 2, 2, 8, 1, 4},
      {"m32n8k16", "u8", "s32", "s32.u8.u8.s32.satfinite", 32, 8, 16, 4, 1, 8,
       1, 4},
      {"m8n8k4", "f64", "f64", "f64.f64.f64.f64", 8, 8, 4, 1, 1, 2, 8, 8},
  };
  for (const Case &c : cases) {
    llvm::StringRef t = c.operand;
    bool wide = t == "f64";
    std::mt19937 rng(4);
    std::vector<uint8_t> in(8192);
    auto put = [&](size_t at, llvm::StringRef type, int v) {
      if (type == "f64") {
        double d = v;
        std::memcpy(&in[at], &d, 8);
      } else if (type == "f32" || type == "tf32") {
        float f = v;
        std::memcpy(&in[at], &f, 4);
      } else if (type == "s32") {
        std::memcpy(&in[at], &v, 4);
      } else if (type == "f16" || type == "bf16") {
        // Small integers are exact in both.
        float f = v;
        uint32_t b;
        std::memcpy(&b, &f, 4);
        uint16_t h = b >> 16;
        if (type == "f16")
          h = v ? (b >> 16 & 0x8000) |
                      (((b >> 23 & 255) - 112) << 10 | (b >> 13 & 1023))
                : 0;
        std::memcpy(&in[at], &h, 2);
      } else {
        in[at] = v;
      }
    };
    std::vector<int> a(c.m * c.k), b(c.k * c.n), acc(c.m * c.n);
    // A by rows from 0, B by columns from 2048, C by rows from 4096.
    for (unsigned i = 0; i < a.size(); ++i)
      put(i * c.bytes, t, a[i] = int(rng() % 7) - (t == "u8" ? 0 : 3));
    for (unsigned i = 0; i < b.size(); ++i)
      put(2048 + i * c.bytes, t, b[i] = int(rng() % 7) - (t == "u8" ? 0 : 3));
    for (unsigned i = 0; i < acc.size(); ++i)
      put(4096 + i * c.accBytes, c.accumulator, acc[i] = int(rng() % 9) - 4);
    const char *p = wide ? "%d" : "%r";
    unsigned ra = wide ? 10 : 40, rb = wide ? 12 : 60, rc = wide ? 14 : 80,
             rd = wide ? 18 : 100;
    std::string shape = c.shape;
    std::string body =
        "mov.u32 %r1, " + std::to_string(c.k) + ";\nmov.u32 %r2, " +
        std::to_string(c.n) +
        ";\nadd.u64 %d2, %d0, 2048;\nadd.u64 %d3, %d0, 4096;\n"
        "wmma.load.a.sync.aligned.row." +
        shape + ".global." + c.operand + " " + registers(ra, c.aRegs, p) +
        ", [%d0], %r1;\nwmma.load.b.sync.aligned.col." + shape + ".global." +
        c.operand + " " + registers(rb, c.bRegs, p) +
        ", [%d2], %r1;\nwmma.load.c.sync.aligned.row." + shape + "." +
        c.accumulator + " " + registers(rc, c.cRegs, p) +
        ", [%d3];\nwmma.mma.sync.aligned.row.col." + shape + "." + c.mma + " " +
        registers(rd, c.cRegs, p) + ", " + registers(ra, c.aRegs, p) + ", " +
        registers(rb, c.bRegs, p) + ", " + registers(rc, c.cRegs, p) +
        ";\nwmma.store.d.sync.aligned.row." + shape + ".global." +
        c.accumulator + " [%d1], " + registers(rd, c.cRegs, p) + ", %r2;\n";
    Outcome r = runBody(body, in, c.m * c.n * c.accBytes, 32);
    SCOPED_TRACE(shape + c.operand);
    expectClean(r);
    for (unsigned i = 0; i < c.m; ++i)
      for (unsigned j = 0; j < c.n; ++j) {
        int want = acc[i * c.n + j];
        for (unsigned k = 0; k < c.k; ++k)
          want += a[i * c.k + k] * b[j * c.k + k];
        put(0, c.accumulator, want);
        EXPECT_EQ(0, std::memcmp(&in[0], &r.out[(i * c.n + j) * c.accBytes],
                                 c.accBytes))
            << i << " " << j;
      }
  }
  // From shared memory and with a stride, which the names of the spaces allow.
  std::vector<uint8_t> bytes = randomBytes(1024, 3);
  auto load = [&](const std::string &what, const char *address) {
    std::string s = "mov.u32 %r1, smem;\nmov.u32 %r2, 16;\ncvt.u64.u32 %d4, "
                    "%r1;\nmul.wide.u32 %d5, %r0, 32;\nadd.u64 %d6, %d0, %d5;\n"
                    "mad.lo.u32 %r3, %r0, 32, %r1;\n";
    for (unsigned i = 0; i < 32; i += 8)
      s += "ld.global.b64 %d7, [%d6+" + std::to_string(i) +
           "];\nst.shared.b64 [%r3+" + std::to_string(i) + "], %d7;\n";
    s += "bar.sync 0;\nwmma.load." + what + " " + registers(40, 8, "%r") +
         ", [" + address + "], %r2;\nadd.u64 %d6, %d1, %d5;\n";
    for (unsigned i = 0; i < 8; ++i)
      s += "st.global.b32 [%d6+" + std::to_string(4 * i) + "], %r" +
           std::to_string(40 + i) + ";\n";
    Outcome r = runBody(s, bytes, 1024, 32, 1024);
    EXPECT_TRUE(r.error.empty() && r.report.isClean()) << what << r.text();
    return r.out;
  };
  for (const char *what : {"a.sync.aligned.row.m16n16k16@.f16",
                           "b.sync.aligned.col.m16n16k16@.f16",
                           "c.sync.aligned.row.m16n16k16@.f32"}) {
    auto in = [&](const char *space, const char *address) {
      std::string s = what;
      s.replace(s.find('@'), 1, space);
      return load(s, address);
    };
    std::vector<uint8_t> want = in(".global", "%d0");
    EXPECT_EQ(want, in("", "%d0")) << what;
    EXPECT_EQ(want, in(".shared", "%d4")) << what;
  }
  for (const char *wrong :
       {"wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r4}, [%d0];",
        "wmma.load.a.sync.aligned.m16n16k16.f16 {%r4}, [%d0];",
        "wmma.move.a.sync.aligned.m16n16k16.f16 {%r4}, [%d0];"})
    EXPECT_FALSE(runBody(wrong, randomBytes(16, 1), 16).error.empty()) << wrong;
}
