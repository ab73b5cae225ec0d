//===- TensorMmaTest.cpp - tcgen05.mma by kind, scale, layout -------------===//
//
// One kernel for all: it fills shared and tensor memory from `in`, multiplies
// once, and copies D out. Expected values are worked out here in double.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"
#include <cmath>
#include <functional>
#include <random>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

/// A float format by its exponent and mantissa bits.
double decode(uint32_t bits, unsigned expBits, unsigned manBits) {
  int bias = (1 << (expBits - 1)) - 1;
  int e = bits >> manBits & ((1 << expBits) - 1);
  double m = bits & ((1 << manBits) - 1);
  double v = e ? std::ldexp(m + (1 << manBits), e - bias - int(manBits))
               : std::ldexp(m, 1 - bias - int(manBits));
  return bits >> (expBits + manBits) & 1 ? -v : v;
}

struct Element {
  unsigned code; ///< in the descriptor of kind f8f6f4
  unsigned bits, expBits, manBits;
  double value(uint32_t v) const { return decode(v, expBits, manBits); }
};
const Element E4M3{0, 8, 4, 3}, E5M2{1, 8, 5, 2}, E2M3{3, 6, 2, 3},
    E3M2{4, 6, 3, 2}, E2M1{5, 4, 2, 1};

constexpr unsigned InBytes = 16384, ScaleOffset = 12288;

/// Operands in the layout without swizzle: chunk c of row r at (c·rows + r)·16.
struct Operand {
  unsigned rows, k;
  std::vector<uint32_t> values; ///< row-major, raw bits
  Operand(unsigned rows, unsigned k, unsigned bits, std::mt19937 &rng)
      : rows(rows), k(k) {
    for (unsigned i = 0; i < rows * k; ++i)
      values.push_back(rng() & ((1u << bits) - 1));
  }
  uint32_t at(unsigned r, unsigned i) const { return values[r * k + i]; }
  /// Writes the elements: `perChunk` of `bits` bits in 16 bytes.
  void store(uint8_t *to, unsigned bits, unsigned perChunk) const {
    for (unsigned r = 0; r < rows; ++r)
      for (unsigned i = 0; i < k; ++i) {
        uint8_t *chunk = to + ((i / perChunk) * rows + r) * 16;
        unsigned bit = i % perChunk * bits;
        for (unsigned b = 0; b < bits; ++b)
          if (at(r, i) >> b & 1)
            chunk[(bit + b) / 8] |= 1 << (bit + b) % 8;
      }
  }
};

struct MmaTest {
  std::string kind;     ///< with qualifiers
  std::string operands; ///< after the instruction descriptor
  uint32_t descriptor = 0;
  unsigned m = 128, n = 16;
  bool aInTensorMemory = false;
  std::string beforeScales; ///< what is done to %r20, words of A's scales
  std::vector<uint8_t> in = std::vector<uint8_t>(InBytes);

  uint32_t *scaleWords(bool b) {
    return reinterpret_cast<uint32_t *>(in.data() + ScaleOffset +
                                        (b ? 1024 : 0));
  }
  /// Sets the byte of a factor: row, and byte counted from the first column.
  void setScale(bool b, unsigned row, unsigned byte, uint8_t value,
                unsigned rows) {
    unsigned column = row / 32 + byte / 4 * 4 * ((rows + 127) / 128);
    scaleWords(b)[row % 32 * 8 + column] |= uint32_t(value) << (8 * (byte % 4));
  }
  Outcome go() const {
    std::string s = "mov.u32 %r1, smem;\n";
    for (unsigned i = 0; i < 6; ++i) {
      std::string at = std::to_string(2048 * i);
      s += "mad.lo.u32 %r3, %r0, 16, %r1;\nmul.wide.u32 %d2, %r0, 16;\n"
           "add.u64 %d2, %d2, %d0;\n"
           "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d2+" +
           at + "];\nst.shared.v4.b32 [%r3+" + std::to_string(2048 * i + 1024) +
           "], {%r4, %r5, %r6, %r7};\n";
    }
    s += "setp.eq.u32 %p0, %r0, 0;\nsetp.lt.u32 %p1, %r0, 32;\n"
         "@%p0 mbarrier.init.shared::cta.b64 [%r1+16], 1;\n"
         "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], "
         "128;\n"
         "tcgen05.fence::before_thread_sync;\nfence.proxy.async;\nbar.sync 0;\n"
         "tcgen05.fence::after_thread_sync;\nld.shared.b32 %r10, [%r1];\n"
         "shr.u32 %r8, %r0, 5;\nshl.b32 %r8, %r8, 21;\nadd.u32 %r11, %r10, "
         "%r8;\nand.b32 %r9, %r0, 31;\nmul.wide.u32 %d2, %r9, 32;\n"
         "add.u64 %d2, %d2, %d0;\n";
    auto fill = [&](const char *base, unsigned from, unsigned column) {
      s += std::string("ld.global.v4.b32 {%r20, %r21, %r22, %r23}, [") + base +
           "+" + std::to_string(from) +
           "];\nld.global.v4.b32 {%r24, %r25, %r26, %r27}, [" + base + "+" +
           std::to_string(from + 16) + "];\n" + beforeScales +
           "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r11+" +
           std::to_string(column) +
           "], {%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27};\n";
    };
    fill("%d2", ScaleOffset, 64);
    fill("%d2", ScaleOffset + 1024, 80);
    s += "mul.wide.u32 %d2, %r0, 32;\nadd.u64 %d2, %d2, %d0;\n";
    if (aInTensorMemory)
      fill("%d2", 0, 96);
    s += "tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n"
         "bar.sync 0;\ntcgen05.fence::after_thread_sync;\n@!%p0 bra W;\n"
         "add.u32 %r12, %r1, 1024;\nshr.u32 %r12, %r12, 4;\n"
         "cvt.u64.u32 %d5, %r12;\nadd.u64 %d6, %d5, 512;\n";
    // Strides of 128 bytes between groups of eight rows.
    uint64_t common = uint64_t(1) << 46 | uint64_t(8) << 32;
    s += "or.b64 %d5, %d5, " + std::to_string(common | uint64_t(m) << 16) +
         ";\nor.b64 %d6, %d6, " + std::to_string(common | uint64_t(n) << 16) +
         ";\nmov.u32 %r13, " + std::to_string(descriptor) +
         ";\nadd.u32 %r14, %r10, 64;\nadd.u32 %r15, %r10, 80;\n"
         "add.u32 %r16, %r10, 96;\nsetp.ne.u32 %p2, %r0, 0;\n"
         "tcgen05.mma." +
         kind + " [%r10], " + (aInTensorMemory ? "[%r16]" : "%d5") +
         ", %d6, %r13, " + operands +
         ";\ntcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster"
         ".b64 [%r1+16];\nW:\n"
         "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+16], 0;\n"
         "@!%p3 bra W;\ntcgen05.fence::after_thread_sync;\n"
         "tcgen05.ld.sync.aligned.32x32b.x16.b32 {";
    for (unsigned i = 0; i < 16; ++i)
      s += (i ? ", %r" : "%r") + std::to_string(100 + i);
    s += "}, [%r11];\ntcgen05.wait::ld.sync.aligned;\n"
         "mul.wide.u32 %d2, %r0, 64;\nadd.u64 %d2, %d2, %d1;\n";
    for (unsigned i = 0; i < 16; ++i)
      s += "st.global.b32 [%d2+" + std::to_string(4 * i) + "], %r" +
           std::to_string(100 + i) + ";\n";
    s += "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
         "tcgen05.fence::after_thread_sync;\n"
         "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 128;\n";
    return runBody(s, in, 128 * 64, 128, 16384);
  }
};

/// Compares D with sums of products, for D in 128 lanes.
void expectProduct(const Outcome &r, unsigned n, unsigned k,
                   const std::function<double(unsigned, unsigned)> &a,
                   const std::function<double(unsigned, unsigned)> &b) {
  ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
  for (unsigned row = 0; row < 128; ++row)
    for (unsigned col = 0; col < n; ++col) {
      double want = 0, size = 0;
      for (unsigned i = 0; i < k; ++i) {
        want += a(row, i) * b(col, i);
        size += std::fabs(a(row, i) * b(col, i));
      }
      ASSERT_NEAR(r.at<float>(row * 16 + col), want, 1e-5 * size + 1e-30)
          << row << " " << col;
    }
}

uint32_t shapeBits(unsigned m, unsigned n) {
  return n / 8 << 17 | m / 16 << 24;
}

} // namespace

TEST(TensorMma, NarrowFormats) {
  std::mt19937 rng(1);
  const std::pair<Element, Element> pairs[] = {
      {E4M3, E5M2}, {E2M3, E3M2}, {E2M1, E4M3}, {E3M2, E2M1}};
  for (const auto &pair : pairs) {
    const Element &ea = pair.first, &eb = pair.second;
    MmaTest t;
    t.kind = "cta_group::1.kind::f8f6f4";
    t.operands = "%p2";
    t.descriptor = 1 << 4 | ea.code << 7 | eb.code << 10 | shapeBits(128, 16);
    // Without the topmost exponents, which hold infinities and NaN.
    Operand a(128, 32, ea.bits, rng), b(16, 32, eb.bits, rng);
    for (Operand *o : {&a, &b})
      for (uint32_t &v : o->values)
        if (o == &a ? ea.bits == 8 : eb.bits == 8)
          v &= 0xbf;
    a.store(t.in.data(), ea.bits, 16);
    b.store(t.in.data() + 8192, eb.bits, 16);
    expectProduct(
        t.go(), 16, 32,
        [&](unsigned r, unsigned i) { return ea.value(a.at(r, i)); },
        [&](unsigned c, unsigned i) { return eb.value(b.at(c, i)); });
  }
}

TEST(TensorMma, NarrowFormatsInTensorMemory) {
  // Four bits lie in the middle of their byte, six at its bottom.
  std::mt19937 rng(2);
  for (const Element &ea : {E2M1, E2M3}) {
    MmaTest t;
    t.kind = "cta_group::1.kind::f8f6f4";
    t.operands = "%p2";
    t.aInTensorMemory = true;
    t.descriptor = 1 << 4 | ea.code << 7 | E2M3.code << 10 | shapeBits(128, 16);
    Operand a(128, 32, ea.bits, rng), b(16, 32, 6, rng);
    for (unsigned r = 0; r < 128; ++r)
      for (unsigned i = 0; i < 32; ++i)
        t.in[r * 32 + i] = a.at(r, i) << (ea.bits == 4 ? 2 : 0);
    b.store(t.in.data() + 8192, 6, 16);
    expectProduct(
        t.go(), 16, 32,
        [&](unsigned r, unsigned i) { return ea.value(a.at(r, i)); },
        [&](unsigned c, unsigned i) { return E2M3.value(b.at(c, i)); });
  }
}

TEST(TensorMma, BlockScales) {
  struct Case {
    const char *kind;
    unsigned k, block, idA, idB;
    bool exponent;
  };
  const Case cases[] = {
      {"kind::mxf8f6f4.block_scale", 32, 32, 1, 3, true},
      {"kind::mxf8f6f4.block_scale.scale_vec::1X", 32, 32, 0, 2, true},
      {"kind::mxf4.block_scale", 64, 32, 2, 0, true},
      {"kind::mxf4.block_scale.block32", 64, 32, 0, 2, true},
      {"kind::mxf4nvf4.block_scale.scale_vec::2X", 64, 32, 2, 2, true},
      {"kind::mxf4nvf4.block_scale.scale_vec::4X", 64, 16, 0, 0, false},
      {"kind::mxf4nvf4.block_scale.block16", 64, 16, 0, 0, true},
      {"kind::mxf4.block_scale.block32", 96, 32, 3, 1, true},
      {"kind::mxf4nvf4.block_scale.block16", 96, 16, 2, 0, false},
  };
  std::mt19937 rng(3);
  for (const Case &c : cases) {
    bool eight = c.k == 32;
    Element ea = eight ? E4M3 : E2M1, eb = eight ? E2M1 : E2M1;
    MmaTest t;
    t.kind = std::string("cta_group::1.") + c.kind;
    t.operands = "[%r14], [%r15], %p2";
    t.descriptor = c.idB << 4 | (eight ? ea.code : 1u) << 7 |
                   (eight ? eb.code : 1u) << 10 | 16 / 8 << 17 |
                   uint32_t(c.exponent) << 23 | 1u << 27 | c.idA << 29 |
                   uint32_t(c.k == 96) << 31;
    Operand a(128, c.k, ea.bits, rng), b(16, c.k, eb.bits, rng);
    for (uint32_t &v : a.values)
      if (eight)
        v &= 0xbf;
    unsigned perChunk = eight ? 16 : 32;
    a.store(t.in.data(), ea.bits, perChunk);
    b.store(t.in.data() + 8192, eb.bits, perChunk);
    unsigned blocks = c.k / c.block;
    Operand sa(128, blocks, 3, rng), sb(16, blocks, 3, rng);
    auto raw = [&](uint32_t v) { return c.exponent ? 124 + v : 0x30 + v * 3; };
    auto factor = [&](uint32_t v) {
      return c.exponent ? std::ldexp(1.0, int(raw(v)) - 127)
                        : decode(raw(v), 4, 3);
    };
    for (unsigned i = 0; i < blocks; ++i) {
      for (unsigned r = 0; r < 128; ++r)
        t.setScale(false, r, c.idA + i, raw(sa.at(r, i)), 128);
      for (unsigned r = 0; r < 16; ++r)
        t.setScale(true, r, c.idB + i, raw(sb.at(r, i)), 16);
    }
    SCOPED_TRACE(c.kind);
    expectProduct(
        t.go(), 16, c.k,
        [&](unsigned r, unsigned i) {
          return ea.value(a.at(r, i)) * factor(sa.at(r, i / c.block));
        },
        [&](unsigned r, unsigned i) {
          return eb.value(b.at(r, i)) * factor(sb.at(r, i / c.block));
        });
  }
}

TEST(TensorMma, ReadsTheBytesOfItsScales) {
  // Byte 1 of each word is a factor, and bytes of %r30 have no value.
  for (bool isUsed : {false, true}) {
    MmaTest t;
    t.kind = "cta_group::1.kind::mxf8f6f4.block_scale";
    t.operands = "[%r14], [%r15], %p2";
    t.descriptor = 1 << 4 | 16 / 8 << 17 | 1u << 23 | 1u << 27 | 1u << 29;
    t.beforeScales = std::string("prmt.b32 %r20, %r20, %r30, ") +
                     (isUsed ? "0x7654" : "0x7614") + ";\n";
    Outcome r = t.go();
    ASSERT_TRUE(r.error.empty()) << r.text();
    EXPECT_EQ(r.report.isClean(), !isUsed) << r.text();
  }
}

TEST(TensorMma, Integers) {
  std::mt19937 rng(4);
  for (bool signedA : {false, true})
    for (bool signedB : {false, true}) {
      MmaTest t;
      t.kind = "cta_group::1.kind::i8";
      t.operands = "%p2";
      t.descriptor = 2 << 4 | unsigned(signedA) << 7 | unsigned(signedB) << 10 |
                     shapeBits(128, 16);
      Operand a(128, 32, 8, rng), b(16, 32, 8, rng);
      a.store(t.in.data(), 8, 16);
      b.store(t.in.data() + 8192, 8, 16);
      Outcome r = t.go();
      ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
      auto valueOf = [](uint32_t v, bool isSigned) {
        return isSigned ? int32_t(int8_t(v)) : int32_t(v);
      };
      for (unsigned row = 0; row < 128; ++row)
        for (unsigned col = 0; col < 16; ++col) {
          int32_t want = 0;
          for (unsigned i = 0; i < 32; ++i)
            want +=
                valueOf(a.at(row, i), signedA) * valueOf(b.at(col, i), signedB);
          ASSERT_EQ(r.at<int32_t>(row * 16 + col), want)
              << signedA << " " << signedB;
        }
    }
}

TEST(TensorMma, WeightStationaryLayouts) {
  // M = 32 and 64 put parts of N beside each other in lanes.
  std::mt19937 rng(5);
  for (unsigned m : {32u, 64u, 128u}) {
    unsigned n = 64, columns = n * m / 128;
    MmaTest t;
    t.m = m;
    t.n = n;
    t.kind = "ws.cta_group::1.kind::f8f6f4.collector::b1::fill";
    t.operands = "%p2";
    t.descriptor = 1 << 4 | shapeBits(m, n);
    Operand a(m, 32, 7, rng), b(n, 32, 6, rng);
    for (uint32_t &v : a.values)
      v &= 0x3f;
    a.store(t.in.data(), 8, 16);
    b.store(t.in.data() + 8192, 8, 16);
    Outcome r = t.go();
    ASSERT_TRUE(r.error.empty()) << r.text();
    for (unsigned row = 0; row < m; ++row)
      for (unsigned col = 0; col < n; ++col) {
        if (col % columns >= 16)
          continue;
        double want = 0;
        for (unsigned i = 0; i < 32; ++i)
          want += E4M3.value(a.at(row, i)) * E4M3.value(b.at(col, i));
        unsigned lane = row + m * (col / columns);
        EXPECT_NEAR(r.at<float>(lane * 16 + col % columns), want, 1e-4)
            << m << " " << row << " " << col;
      }
  }
}

TEST(TensorMma, BadTwins) {
  auto message = [](const char *kind, const char *operands, uint32_t d) {
    MmaTest t;
    t.kind = std::string("cta_group::1.") + kind;
    t.operands = operands;
    t.descriptor = d;
    return t.go().text();
  };
  struct Case {
    const char *kind, *operands;
    uint32_t descriptor;
    const char *expected;
  };
  uint32_t shape = shapeBits(128, 16), scaledShape = 2 << 17 | 1u << 27;
  const char *scaled = "[%r14], [%r15], %p2";
  const Case cases[] = {
      {"kind::f8f6f4", "%p2", 1 << 4 | 2 << 7 | shape,
       "expected operands of 8, 6 or 4 bits, got formats 2 and 0"},
      {"kind::f8f6f4", "%p2", 1 << 4 | 5 << 7 | 1 << 15 | shape,
       "expected operands of 4 and 6 bits along K"},
      {"kind::f8f6f4", "%p2", 1 << 4 | 4 | shape,
       "instruction descriptor: sparse products are not supported"},
      {"kind::i8", "%p2", 2 << 4 | 2 << 7 | shape,
       "expected u8 or s8 operands"},
      {"kind::i8", "%p2", 2 << 4 | 2 << 10 | shape,
       "expected u8 or s8 operands"},
      {"kind::i8", "%p2", 1 << 4 | shape,
       "expected an accumulator type of this kind"},
      {"kind::f16", "%p2", 1 << 4 | 2 << 7 | shape,
       "expected f16 or bf16 operands"},
      {"kind::f16", "%p2", 1 << 4 | 2 << 10 | shape,
       "expected f16 or bf16 operands"},
      {"kind::tf32", "%p2", 1 << 4 | 2 << 7 | shape, "expected tf32 operands"},
      {"kind::tf32", "%p2", 1 << 4 | 2 << 10 | shape, "expected tf32 operands"},
      {"kind::f16", "%p2", 1 << 4 | shapeBits(96, 16),
       "unsupported shape M=96 N=16"},
      {"kind::mxf8f6f4.block_scale", scaled, scaledShape,
       "expected ue8m0 scales"},
      {"kind::mxf4.block_scale", scaled,
       1 << 7 | 1 << 10 | 1 << 4 | 1 << 23 | scaledShape,
       "expected scale factor IDs that are multiples of 2, got 0 and 1"},
      {"kind::mxf4.block_scale", scaled, 1 << 23 | scaledShape,
       "expected e2m1 operands"},
      {"kind::mxf8f6f4.block_scale", "[%r14+500], [%r15], %p2",
       1 << 23 | scaledShape, "columns that the CTA has not allocated"},
      {"kind::f16", "%p2, 16", 1 << 4 | shape,
       "expected a scale between 0 and 15, of kind f16 or tf32"},
      {"kind::f8f6f4", "%p2, 1", 1 << 4 | shape,
       "expected a scale between 0 and 15, of kind f16 or tf32"},
      {"kind::mxf8f6f4", "%p2", shape,
       "expected '.block_scale' with the mx kinds only"},
      {"kind::f16.block_scale", "%p2", shape,
       "expected '.block_scale' with the mx kinds only"},
      {"kind::mxf4nvf4.block_scale", scaled, scaledShape,
       "expected a size of scaled blocks of this kind"},
      {"kind::mxf8f6f4.block_scale.block16", scaled, scaledShape,
       "expected a size of scaled blocks of this kind"},
      {"kind::f16.ashift", "%p2", shape,
       "expected A in tensor memory with '.ashift'"},
      {"kind::f16.ashift.collector::a::use", "%p2", shape,
       "expected '.ashift' without filling or using a collector"},
      {"kind::mxf4.block_scale.ashift", scaled, scaledShape,
       "expected '.ashift' without '.ws' and scaled blocks"},
  };
  for (const Case &c : cases)
    EXPECT_NE(message(c.kind, c.operands, c.descriptor).find(c.expected),
              std::string::npos)
        << c.kind << "\n"
        << message(c.kind, c.operands, c.descriptor);
  MmaTest t;
  t.kind = "ws.cta_group::2.kind::f16";
  t.operands = "%p2";
  EXPECT_NE(t.go().text().find("expected '.ws' with '.cta_group::1'"),
            std::string::npos);
  t.kind = "ws.cta_group::1.kind::f16";
  t.operands = "%p2, %d7";
  t.descriptor = 1 << 4 | shapeBits(64, 64);
  EXPECT_TRUE(t.go().error.empty());
}

TEST(TensorMma, Collectors) {
  // They say what to keep, and change no result.
  std::mt19937 rng(9);
  for (bool ws : {false, true})
    for (const char *buffer : {"a", "b0", "b1", "b2", "b3"})
      for (const char *use : {"fill", "use", "lastuse", "discard"}) {
        if (ws != (buffer[0] == 'b'))
          continue;
        MmaTest t;
        t.n = ws ? 64 : 16;
        t.kind = std::string(ws ? "ws." : "") +
                 "cta_group::1.kind::f16.collector::" + buffer + "::" + use;
        t.operands = "%p2";
        t.descriptor = 1 << 4 | shapeBits(128, t.n);
        Operand a(128, 16, 14, rng), b(t.n, 16, 14, rng);
        a.store(t.in.data(), 16, 8);
        b.store(t.in.data() + 8192, 16, 8);
        expectProduct(
            t.go(), 16, 16,
            [&](unsigned r, unsigned i) { return decode(a.at(r, i), 5, 10); },
            [&](unsigned c, unsigned i) { return decode(b.at(c, i), 5, 10); });
      }
  MmaTest t;
  t.kind = "cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X."
           "collector::a::use";
  t.operands = "[%r14], [%r15], %p2";
  t.aInTensorMemory = true;
  t.descriptor = 16 / 8 << 17 | 1u << 23 | 1u << 27;
  Operand a(128, 32, 6, rng), b(16, 32, 6, rng);
  for (unsigned i = 0; i < 128 * 32; ++i)
    t.in[i] = a.values[i];
  b.store(t.in.data() + 8192, 8, 16);
  for (unsigned r = 0; r < 128; ++r)
    t.setScale(false, r, 0, 128, 128);
  for (unsigned r = 0; r < 16; ++r)
    t.setScale(true, r, 0, 127, 16);
  expectProduct(
      t.go(), 16, 32,
      [&](unsigned r, unsigned i) { return 2 * E4M3.value(a.at(r, i)); },
      [&](unsigned c, unsigned i) { return E4M3.value(b.at(c, i)); });
}

TEST(TensorMma, ShiftsOnceARowIsRead) {
  // The product with .ashift takes A as it is, a later one its shifted rows,
  // but the last of each partition.
  std::mt19937 rng(11);
  struct Case {
    const char *kind;
    unsigned k;
  };
  const Case cases[] = {{"kind::f8f6f4", 32}, {"kind::f16", 16}};
  for (const Case &c : cases)
    for (const char *collector :
         {"", ".collector::a::discard", ".collector::a::lastuse"})
      for (bool again : {false, true}) {
        bool narrow = c.k == 32;
        std::string shifting =
            std::string("cta_group::1.") + c.kind + ".ashift" + collector;
        MmaTest t;
        t.kind = shifting;
        if (again)
          t.kind += " [%r10], [%r16], %d6, %r13, %p2;\ntcgen05.mma."
                    "cta_group::1." +
                    std::string(c.kind);
        t.operands = "%p2";
        t.aInTensorMemory = true;
        t.descriptor = 1 << 4 | shapeBits(128, 16);
        unsigned bits = narrow ? 8 : 16;
        Operand a(128, c.k, narrow ? 6 : 14, rng);
        Operand b(16, c.k, narrow ? 6 : 14, rng);
        for (unsigned r = 0; r < 128; ++r)
          for (unsigned i = 0; i < c.k; ++i)
            std::memcpy(&t.in[(r * c.k + i) * bits / 8], &a.values[r * c.k + i],
                        bits / 8);
        b.store(t.in.data() + 8192, bits, 128 / bits);
        auto value = [&](uint32_t v) {
          return narrow ? E4M3.value(v) : decode(v, 5, 10);
        };
        SCOPED_TRACE(t.kind);
        expectProduct(
            t.go(), 16, c.k,
            [&](unsigned r, unsigned i) {
              return value(a.at(again && r % 32 != 31 ? r + 1 : r, i));
            },
            [&](unsigned n, unsigned i) { return value(b.at(n, i)); });
      }
}

TEST(TensorMma, LanesThatAreNotWritten) {
  MmaTest t;
  t.kind = "cta_group::1.kind::f8f6f4";
  t.operands = "{0xffff0000, 0, 0, 0x80000000}, %p2";
  t.descriptor = 1 << 4 | shapeBits(128, 16);
  Outcome r = t.go();
  for (unsigned lane = 0; lane < 128; ++lane) {
    bool masked = (lane >= 16 && lane < 32) || lane == 127;
    EXPECT_EQ(r.at<uint32_t>(lane * 16) != 0, masked) << lane;
  }
  // What was not written is stored all the same.
  EXPECT_GE(r.report.countErrors(FindingKind::UninitialisedRead), 1u);
}

TEST(TensorCopy, WidensElements) {
  // Rows of sixteen elements of 4 or 6 bits and their padding become bytes.
  for (const char *source : {"b4x16_p64", "b6x16_p32"}) {
    unsigned bits = source[1] - '0';
    std::vector<uint8_t> in(2048);
    std::mt19937 rng(7);
    for (uint8_t &b : in)
      b = rng();
    std::string s =
        "mov.u32 %r1, smem;\nmad.lo.u32 %r3, %r0, 16, %r1;\n"
        "mul.wide.u32 %d2, %r0, 16;\nadd.u64 %d3, %d2, %d0;\n"
        "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d3];\n"
        "st.shared.v4.b32 [%r3+1024], {%r4, %r5, %r6, %r7};\n"
        "setp.eq.u32 %p0, %r0, 0;\nsetp.lt.u32 %p1, %r0, 32;\n"
        "@%p0 mbarrier.init.shared::cta.b64 [%r1+16], 1;\n"
        "@%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], "
        "32;\ntcgen05.fence::before_thread_sync;\nfence.proxy.async;\n"
        "bar.sync 0;\ntcgen05.fence::after_thread_sync;\n"
        "ld.shared.b32 %r10, [%r1];\n@!%p0 bra W;\n"
        "add.u32 %r12, %r1, 1024;\nshr.u32 %r12, %r12, 4;\n"
        "cvt.u64.u32 %d5, %r12;\nor.b64 %d5, %d5, " +
        std::to_string(uint64_t(1) << 46 | uint64_t(8) << 32) +
        ";\ntcgen05.cp.cta_group::1.128x128b.b8x16." + source +
        " [%r10], %d5;\n"
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 "
        "[%r1+16];\nW:\n"
        "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r1+16], 0;\n"
        "@!%p3 bra W;\ntcgen05.fence::after_thread_sync;\n"
        "shr.u32 %r8, %r0, 5;\nshl.b32 %r8, %r8, 21;\nadd.u32 %r11, %r10, %r8;"
        "\ntcgen05.ld.sync.aligned.32x32b.x4.b32 {%r20, %r21, %r22, %r23}, "
        "[%r11];\ntcgen05.wait::ld.sync.aligned;\nadd.u64 %d3, %d2, %d1;\n"
        "st.global.v4.b32 [%d3], {%r20, %r21, %r22, %r23};\n"
        "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n"
        "tcgen05.fence::after_thread_sync;\n"
        "@%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 32;\n";
    Outcome r = runBody(s, in, 2048, 128, 8192);
    ASSERT_TRUE(r.error.empty() && r.report.isClean()) << r.text();
    for (unsigned row = 0; row < 128; ++row)
      for (unsigned i = 0; i < 16; ++i) {
        unsigned want = 0;
        for (unsigned b = 0; b < bits; ++b) {
          unsigned bit = i * bits + b;
          want |= (in[row * 16 + bit / 8] >> bit % 8 & 1u) << b;
        }
        EXPECT_EQ(r.at<uint8_t>(row * 16 + i), bits == 4 ? want << 2 : want);
      }
  }
}
