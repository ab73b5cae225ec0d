//===- InstructionTest.cpp - Each instruction against known results -------===//
//
// Expected values are worked out from the ISA manual, or by the host where the
// operation is IEEE arithmetic. A case names an instruction with operands
// %a, %b, %c (sources) and %o (result); one thread runs it.
//
//===----------------------------------------------------------------------===//

#include "../TestKernel.h"
#include <cmath>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

struct Case {
  const char *inst;
  const char *width; ///< of a, b, c, o: one letter each: h 16, r 32, d 64
  uint64_t a, b, c;
  uint64_t expected;
};

std::string typeOf(char w) {
  return w == 'h' ? "b16" : w == 'd' ? "b64" : "b32";
}

uint64_t evaluate(const Case &t, std::string &problem) {
  std::string body, mov = "ld.global.";
  const char *names[] = {"%a", "%b", "%c", "%o"};
  for (int i = 0; i < 4; ++i)
    body += ".reg ." + typeOf(t.width[i]) + " " + names[i] + ";\n";
  for (int i = 0; i < 3; ++i)
    body += "ld.global." + typeOf(t.width[i]) + " " + names[i] + ", [%d0+" +
            std::to_string(8 * i) + "];\n";
  body += "mov." + typeOf(t.width[3]) + " %o, 0;\n";
  body += std::string(t.inst) + ";\n";
  body += "st.global." + typeOf(t.width[3]) + " [%d1], %o;\n";
  Outcome r = runBody(body, bytesOf<uint64_t>({t.a, t.b, t.c}), 8, 1);
  problem = r.error;
  if (!r.report.isClean())
    problem += r.text();
  if (!problem.empty())
    return 0;
  uint64_t v = r.at<uint64_t>(0);
  return t.width[3] == 'h'   ? v & 0xffff
         : t.width[3] == 'r' ? v & 0xffffffff
                             : v;
}

void check(std::initializer_list<Case> cases) {
  for (const Case &t : cases) {
    std::string problem;
    uint64_t got = evaluate(t, problem);
    EXPECT_TRUE(problem.empty()) << t.inst << ": " << problem;
    EXPECT_EQ(got, t.expected)
        << t.inst << std::hex << " a=" << t.a << " b=" << t.b << " c=" << t.c
        << " got " << got << " expected " << t.expected;
  }
}

uint32_t bits(float f) {
  uint32_t b;
  std::memcpy(&b, &f, 4);
  return b;
}
uint64_t bits(double f) {
  uint64_t b;
  std::memcpy(&b, &f, 8);
  return b;
}

} // namespace

TEST(Instruction, IntegerAddSub) {
  check({
      {"add.s32 %o, %a, %b", "rrrr", 0x7fffffff, 1, 0, 0x80000000},
      {"add.sat.s32 %o, %a, %b", "rrrr", 0x7fffffff, 1, 0, 0x7fffffff},
      {"add.u64 %o, %a, %b", "dddd", ~0ull, 2, 0, 1},
      {"add.s16 %o, %a, %b", "hhhh", 0xffff, 2, 0, 1},
      {"sub.s32 %o, %a, %b", "rrrr", 0, 1, 0, 0xffffffff},
      {"sub.sat.s32 %o, %a, %b", "rrrr", 0x80000000, 1, 0, 0x80000000},
      {"neg.s32 %o, %a", "rrrr", 5, 0, 0, 0xfffffffb},
      {"abs.s32 %o, %a", "rrrr", 0xfffffffb, 0, 0, 5},
      {"abs.s64 %o, %a", "dddd", ~0ull, 0, 0, 1},
      {"sad.s32 %o, %a, %b, %c", "rrrr", 0xffffffff, 3, 10, 14},
      {"sad.u32 %o, %a, %b, %c", "rrrr", 7, 3, 10, 14},
      {"add.u16x2 %o, %a, %b", "rrrr", 0xffff0001, 0x00010002, 0, 0x00000003},
      {"min.s16x2 %o, %a, %b", "rrrr", 0xffff0001, 0x00010002, 0, 0xffff0001},
      {"max.u16x2 %o, %a, %b", "rrrr", 0xffff0001, 0x00010002, 0, 0xffff0002},
  });
}

TEST(Instruction, CarryChain) {
  check({
      {"add.cc.u32 %o, %a, %b; addc.u32 %o, %c, 0", "rrrr", 0xffffffff, 1, 7,
       8},
      {"sub.cc.u32 %o, %a, %b; subc.u32 %o, %c, 0", "rrrr", 0, 1, 7, 6},
      {"mad.lo.cc.u32 %o, %a, %b, %c; madc.hi.u32 %o, %a, %b, 0", "rrrr",
       0xffffffff, 2, 2, 2},
  });
}

TEST(Instruction, IntegerMultiplyDivide) {
  check({
      {"mul.lo.s32 %o, %a, %b", "rrrr", 0x10001, 0x10001, 0, 0x20001},
      {"mul.hi.u32 %o, %a, %b", "rrrr", 0xffffffff, 0xffffffff, 0, 0xfffffffe},
      {"mul.hi.s32 %o, %a, %b", "rrrr", 0xffffffff, 2, 0, 0xffffffff},
      {"mul.hi.u64 %o, %a, %b", "dddd", ~0ull, 16, 0, 15},
      {"mul.hi.s64 %o, %a, %b", "dddd", ~0ull, 16, 0, ~0ull},
      {"mul.wide.s32 %o, %a, %b", "rrrd", 0xffffffff, 3, 0, ~0ull - 2},
      {"mul.wide.u32 %o, %a, %b", "rrrd", 0xffffffff, 3, 0, 0x2fffffffdull},
      {"mul.wide.u16 %o, %a, %b", "hhhr", 0xffff, 0xffff, 0, 0xfffe0001},
      {"mul.wide.s16 %o, %a, %b", "hhhr", 0xffff, 7, 0, 0xfffffff9},
      {"mul.lo.u16 %o, %a, %b", "hhhh", 0xffff, 0xffff, 0, 1},
      {"mad.lo.s32 %o, %a, %b, %c", "rrrr", 3, 4, 5, 17},
      {"mad.wide.u32 %o, %a, %b, %c", "rrdd", 0xffffffff, 2, 1, 0x1ffffffffull},
      {"mad.wide.s32 %o, %a, %b, %c", "rrdd", 0xffffffff, 2, 1, ~0ull},
      {"mad.hi.u32 %o, %a, %b, %c", "rrrr", 0xffffffff, 2, 1, 2},
      {"mad.hi.sat.s32 %o, %a, %b, %c", "rrrr", 0x40000000, 8, 0x7fffffff,
       0x7fffffff},
      {"mad.hi.sat.s32 %o, %a, %b, %c", "rrrr", 0x40000000, 0xfffffff8,
       0x80000001, 0x80000000},
      {"mul24.lo.s32 %o, %a, %b", "rrrr", 3, 5, 0, 15},
      {"div.s32 %o, %a, %b", "rrrr", 0xfffffff9, 2, 0, 0xfffffffd},
      {"div.u32 %o, %a, %b", "rrrr", 0xfffffff9, 2, 0, 0x7ffffffc},
      {"div.u32 %o, %a, %b", "rrrr", 5, 0, 0, 0xffffffff},
      {"div.s32 %o, %a, %b", "rrrr", 0x80000000, 0xffffffff, 0, 0x80000000},
      {"rem.s32 %o, %a, %b", "rrrr", 0xfffffff9, 2, 0, 0xffffffff},
      {"rem.u64 %o, %a, %b", "dddd", 17, 5, 0, 2},
      {"rem.u32 %o, %a, %b", "rrrr", 17, 0, 0, 0xffffffff},
      {"dp4a.s32.s32 %o, %a, %b, %c", "rrrr", 0x01ff0203, 0x01020304, 1,
       1 + 1 - 2 + 6 + 12},
      {"dp4a.u32.u32 %o, %a, %b, %c", "rrrr", 0x01ff0203, 0x01020304, 1,
       1 + 1 + 510 + 6 + 12},
  });
}

TEST(Instruction, MinMax) {
  check({
      {"min.s32 %o, %a, %b", "rrrr", 0xffffffff, 1, 0, 0xffffffff},
      {"min.u32 %o, %a, %b", "rrrr", 0xffffffff, 1, 0, 1},
      {"max.s64 %o, %a, %b", "dddd", ~0ull, 1, 0, 1},
      {"max.s16 %o, %a, %b", "hhhh", 0xffff, 1, 0, 1},
  });
}

TEST(Instruction, Logic) {
  check({
      {"and.b32 %o, %a, %b", "rrrr", 0xf0f0, 0xff00, 0, 0xf000},
      {"or.b64 %o, %a, %b", "dddd", 0xf0f0, 0xff00, 0, 0xfff0},
      {"xor.b16 %o, %a, %b", "hhhh", 0xf0f0, 0xff00, 0, 0x0ff0},
      {"not.b32 %o, %a", "rrrr", 0xf0f0, 0, 0, 0xffff0f0f},
      {"cnot.b32 %o, %a", "rrrr", 0, 0, 0, 1},
      {"shl.b32 %o, %a, %b", "rrrr", 1, 31, 0, 0x80000000},
      {"shl.b32 %o, %a, %b", "rrrr", 1, 32, 0, 0},
      {"shl.b64 %o, %a, %b", "drdd", 1, 40, 0, 1ull << 40},
      {"shr.s32 %o, %a, %b", "rrrr", 0x80000000, 40, 0, 0xffffffff},
      {"shr.u32 %o, %a, %b", "rrrr", 0x80000000, 31, 0, 1},
      {"shr.s16 %o, %a, %b", "hrhh", 0x8000, 15, 0, 0xffff},
      {"shr.u64 %o, %a, %b", "drdd", ~0ull, 64, 0, 0},
      {"shf.l.wrap.b32 %o, %a, %b, %c", "rrrr", 0x80000000, 1, 1, 3},
      {"shf.r.wrap.b32 %o, %a, %b, %c", "rrrr", 0x80000000, 1, 1, 0xc0000000},
      {"shf.r.clamp.b32 %o, %a, %b, %c", "rrrr", 0x80000000, 1, 99, 1},
      {"shf.l.clamp.b32 %o, %a, %b, %c", "rrrr", 0x80000000, 1, 32, 0x80000000},
      {"lop3.b32 %o, %a, %b, %c, 0x96", "rrrr", 0xf0, 0xcc, 0xaa, 0x96},
      {"lop3.b32 %o, %a, %b, %c, 0xe8", "rrrr", 0xf0, 0xcc, 0xaa, 0xe8},
  });
}

TEST(Instruction, BitFields) {
  check({
      {"popc.b32 %o, %a", "rrrr", 0xf0f1, 0, 0, 9},
      {"popc.b64 %o, %a", "drdr", ~0ull, 0, 0, 64},
      {"clz.b32 %o, %a", "rrrr", 1, 0, 0, 31},
      {"clz.b32 %o, %a", "rrrr", 0, 0, 0, 32},
      {"brev.b32 %o, %a", "rrrr", 1, 0, 0, 0x80000000},
      {"bfind.u32 %o, %a", "rrrr", 0x00010000, 0, 0, 16},
      {"bfind.s32 %o, %a", "rrrr", 0xffff0000, 0, 0, 15},
      {"bfind.shiftamt.u32 %o, %a", "rrrr", 0x00010000, 0, 0, 15},
      {"bfind.u32 %o, %a", "rrrr", 0, 0, 0, 0xffffffff},
      {"bfe.u32 %o, %a, %b, %c", "rrrr", 0x12345678, 8, 8, 0x56},
      {"bfe.s32 %o, %a, %b, %c", "rrrr", 0x0000f000, 12, 4, 0xffffffff},
      {"bfe.s32 %o, %a, %b, %c", "rrrr", 0x80000000, 28, 8, 0xfffffff8},
      {"bfe.u32 %o, %a, %b, %c", "rrrr", 0x12345678, 40, 8, 0},
      {"bfe.u64 %o, %a, %b, %c", "drrd", 0x1234567800000000ull, 32, 16, 0x5678},
      {"bfi.b32 %o, %a, %b, 8, 4", "rrrr", 0xab, 0xffffffff, 0, 0xfffffbff},
      {"bfi.b32 %o, %a, %b, 28, 8", "rrrr", 0xff, 0, 0, 0xf0000000},
      {"prmt.b32 %o, %a, %b, 0x5410", "rrrr", 0x33221100, 0x77665544, 0,
       0x55441100},
      {"prmt.b32 %o, %a, %b, 0x7632", "rrrr", 0x33221100, 0x77665544, 0,
       0x77663322},
      {"prmt.b32 %o, %a, %b, 0x8888", "rrrr", 0x80, 0, 0, 0xffffffff},
      {"prmt.b32.f4e %o, %a, %b, %c", "rrrr", 0x33221100, 0x77665544, 1,
       0x44332211},
      {"prmt.b32.b4e %o, %a, %b, %c", "rrrr", 0x33221100, 0x77665544, 0,
       0x55667700},
      {"prmt.b32.rc16 %o, %a, %b, %c", "rrrr", 0x33221100, 0, 1, 0x33223322},
  });
}

TEST(Instruction, MovesAndSelections) {
  check({
      {"mov.b32 %o, {%a, %b}", "hhhr", 0x1234, 0xabcd, 0, 0xabcd1234},
      {"mov.b64 %o, {%a, %b}", "rrrd", 1, 2, 0, 0x200000001ull},
      {".reg .b16 lo, hi; mov.b32 {lo, hi}, %a; mov.b32 %o, {hi, lo}", "rrrr",
       0xabcd1234, 0, 0, 0x1234abcd},
      {".reg .b32 x; mov.b64 {_, x}, %a; mov.b32 %o, x", "drrr", 0x500000001ull,
       0, 0, 5},
      {"mov.b32 %o, 0f3f800000", "rrrr", 0, 0, 0, 0x3f800000},
      {"mov.b64 %o, 0d3ff0000000000000", "rrrd", 0, 0, 0, 0x3ff0000000000000},
      {"{ .reg .pred p; setp.lt.s32 p, %a, %b; selp.b32 %o, %a, %b, p; }",
       "rrrr", 0xffffffff, 1, 0, 0xffffffff},
      {"{ .reg .pred p; setp.lo.u32 p, %a, %b; selp.b32 %o, %a, %b, p; }",
       "rrrr", 0xffffffff, 1, 0, 1},
      {"{ .reg .pred p, q; setp.eq.b32 q, %a, %a; setp.eq.and.s32 p|q, %a, %b, "
       "q; selp.b32 %o, 1, 0, q; }",
       "rrrr", 3, 4, 0, 1},
      {"{ .reg .pred p; setp.neu.f32 p, %a, %b; selp.b32 %o, 1, 0, p; }",
       "rrrr", 0x7fc00000, 0, 0, 1},
      {"{ .reg .pred p; setp.ne.f32 p, %a, %b; selp.b32 %o, 1, 0, p; }", "rrrr",
       0x7fc00000, 0, 0, 0},
      {"{ .reg .pred p; setp.gt.f16 p, %a, %b; selp.b32 %o, 1, 0, p; }", "hhhr",
       0x4000, 0x3c00, 0, 1},
      {"{ .reg .pred p, q; setp.lt.f16x2 p|q, %a, %b; selp.b32 %o, 1, 0, q; }",
       "rrrr", 0x3c004000, 0x40003c00, 0, 1},
      {"slct.b32.s32 %o, %a, %b, %c", "rrrr", 7, 9, 0xffffffff, 9},
      // A negative subnormal is below zero until it is flushed.
      {"slct.b32.f32 %o, %a, %b, %c", "rrrr", 7, 9, 0x80000001, 9},
      {"slct.ftz.b32.f32 %o, %a, %b, %c", "rrrr", 7, 9, 0x80000001, 7},
      {"slct.ftz.b32.f32 %o, %a, %b, %c", "rrrr", 7, 9, 0x7fc00000, 9},
      {"set.lt.u32.s32 %o, %a, %b", "rrrr", 1, 2, 0, 0xffffffff},
      {"set.lt.f32.s32 %o, %a, %b", "rrrr", 1, 2, 0, 0x3f800000},
      {"{ .reg .pred p, q; setp.eq.b32 p, %a, 1; not.pred q, p; xor.pred p, p, "
       "q; selp.b32 %o, 1, 0, p; }",
       "rrrr", 1, 0, 0, 1},
  });
}

TEST(Instruction, Float32) {
  uint32_t tiny = 1; // smallest subnormal
  check({
      {"add.f32 %o, %a, %b", "rrrr", bits(1.5f), bits(2.25f), 0, bits(3.75f)},
      {"add.rz.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(-0x1p-30f), 0,
       bits(0x1.fffffep-1f)},
      {"add.rm.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(0x1p-30f), 0,
       bits(1.0f)},
      {"add.rp.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(0x1p-30f), 0,
       bits(0x1.000002p0f)},
      {"add.rm.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(-1.0f), 0,
       bits(-0.0f)},
      {"fma.rm.f32 %o, %a, %b, %c", "rrrr", bits(-1.0f), bits(-0.0f),
       bits(-0.0f), bits(-0.0f)},
      {"add.sat.f32 %o, %a, %b", "rrrr", bits(1.5f), bits(2.0f), 0, bits(1.0f)},
      {"add.ftz.f32 %o, %a, %b", "rrrr", tiny, tiny, 0, 0},
      {"add.f32 %o, %a, %b", "rrrr", tiny, tiny, 0, 2},
      {"sub.f32 %o, %a, %b", "rrrr", bits(INFINITY), bits(INFINITY), 0,
       0x7fffffff},
      {"mul.f32 %o, %a, %b", "rrrr", bits(1.1f), bits(1.3f), 0,
       bits(1.1f * 1.3f)},
      {"mul.rz.f32 %o, %a, %b", "rrrr", bits(0x1.fffffep0f),
       bits(0x1.fffffep0f), 0, bits(0x1.fffffcp1f)},
      {"fma.rn.f32 %o, %a, %b, %c", "rrrr", bits(1.1f), bits(1.3f), bits(-1.0f),
       bits(std::fma(1.1f, 1.3f, -1.0f))},
      {"fma.rm.f32 %o, %a, %b, %c", "rrrr", bits(1.0f), bits(1.0f),
       bits(0x1p-40f), bits(1.0f)},
      {"fma.rp.f32 %o, %a, %b, %c", "rrrr", bits(1.0f), bits(1.0f),
       bits(0x1p-40f), bits(0x1.000002p0f)},
      {"div.rn.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(3.0f), 0,
       bits(1.0f / 3.0f)},
      {"div.rz.f32 %o, %a, %b", "rrrr", bits(2.0f), bits(3.0f), 0,
       bits(0x1.555554p-1f)},
      {"div.full.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(4.0f), 0,
       bits(0.25f)},
      {"div.approx.f32 %o, %a, %b", "rrrr", bits(1.0f), bits(0x1p127f), 0, 0},
      {"rcp.approx.ftz.f32 %o, %a", "rrrr", bits(0.0f), 0, 0, bits(INFINITY)},
      {"rcp.rn.f32 %o, %a", "rrrr", bits(3.0f), 0, 0, bits(1.0f / 3.0f)},
      {"sqrt.rn.f32 %o, %a", "rrrr", bits(2.0f), 0, 0, bits(std::sqrt(2.0f))},
      {"sqrt.approx.f32 %o, %a", "rrrr", bits(-1.0f), 0, 0, 0x7fffffff},
      {"rsqrt.approx.f32 %o, %a", "rrrr", bits(4.0f), 0, 0, bits(0.5f)},
      {"ex2.approx.f32 %o, %a", "rrrr", bits(-2.0f), 0, 0, bits(0.25f)},
      {"ex2.approx.ftz.f32 %o, %a", "rrrr", bits(-INFINITY), 0, 0, 0},
      {"ex2.approx.ftz.f32 %o, %a", "rrrr", bits(-130.0f), 0, 0, 0},
      {"ex2.approx.f32 %o, %a", "rrrr", bits(-130.0f), 0, 0, bits(0x1p-130f)},
      {"lg2.approx.f32 %o, %a", "rrrr", bits(8.0f), 0, 0, bits(3.0f)},
      {"lg2.approx.ftz.f32 %o, %a", "rrrr", bits(0.0f), 0, 0, bits(-INFINITY)},
      {"tanh.approx.f32 %o, %a", "rrrr", bits(0.5f), 0, 0,
       bits(float(std::tanh(0.5)))},
      {"neg.f32 %o, %a", "rrrr", bits(1.0f), 0, 0, bits(-1.0f)},
      {"abs.f32 %o, %a", "rrrr", bits(-1.0f), 0, 0, bits(1.0f)},
      {"copysign.f32 %o, %a, %b", "rrrr", bits(-1.0f), bits(3.0f), 0,
       bits(-3.0f)},
  });
}

TEST(Instruction, FloatMinMax) {
  uint32_t nan = 0x7fc12345;
  check({
      {"max.f32 %o, %a, %b", "rrrr", nan, bits(1.0f), 0, bits(1.0f)},
      {"max.f32 %o, %a, %b", "rrrr", bits(1.0f), nan, 0, bits(1.0f)},
      {"max.NaN.f32 %o, %a, %b", "rrrr", nan, bits(1.0f), 0, 0x7fffffff},
      {"max.f32 %o, %a, %b", "rrrr", nan, nan, 0, 0x7fffffff},
      {"max.f32 %o, %a, %b", "rrrr", bits(-0.0f), bits(0.0f), 0, bits(0.0f)},
      {"min.f32 %o, %a, %b", "rrrr", bits(0.0f), bits(-0.0f), 0, bits(-0.0f)},
      {"max.f32 %o, %a, %b, %c", "rrrr", bits(1.0f), bits(5.0f), bits(3.0f),
       bits(5.0f)},
      {"min.xorsign.abs.f32 %o, %a, %b", "rrrr", bits(-3.0f), bits(2.0f), 0,
       bits(-2.0f)},
      {"min.f16 %o, %a, %b", "hhhh", 0x3c00, 0xc000, 0, 0xc000},
      {"max.NaN.bf16x2 %o, %a, %b", "rrrr", 0x3f807fc0, 0x40003f80, 0,
       0x40007fff},
  });
}

TEST(Instruction, OtherFloats) {
  check({
      {"add.f64 %o, %a, %b", "dddd", bits(1.5), bits(2.0), 0, bits(3.5)},
      {"fma.rn.f64 %o, %a, %b, %c", "dddd", bits(1.1), bits(1.3), bits(-1.0),
       bits(std::fma(1.1, 1.3, -1.0))},
      {"div.rn.f64 %o, %a, %b", "dddd", bits(1.0), bits(3.0), 0,
       bits(1.0 / 3.0)},
      // The NaN that an H200 makes, unlike the one of narrower types.
      {"div.rn.f64 %o, %a, %b", "dddd", 0, 0, 0, 0xfff8000000000000},
      {"add.rp.f64 %o, %a, %b", "dddd", bits(1.0), bits(0x1p-80), 0,
       bits(0x1.0000000000001p0)},
      {"add.f16 %o, %a, %b", "hhhh", 0x3c00, 0x1400, 0, 0x3c01},
      {"fma.rn.f16 %o, %a, %b, %c", "hhhh", 0x3c01, 0x3c01, 0xbc02, 0x0010},
      {"fma.rn.relu.f16 %o, %a, %b, %c", "hhhh", 0x3c00, 0x3c00, 0xc000, 0},
      {"mul.f16x2 %o, %a, %b", "rrrr", 0x40003c00, 0x42004400, 0, 0x46004400},
      {"fma.rn.bf16x2 %o, %a, %b, %c", "rrrr", 0x3f804000, 0x40404040,
       0x3f803f80, 0x408040e0},
      {"add.rn.bf16 %o, %a, %b", "hhhh", 0x3f80, 0x3b80, 0, 0x3f80},
      {"add.rn.f32x2 %o, %a, %b", "dddd", 0x400000003f800000ull,
       0x3f8000003f800000ull, 0, 0x4040000040000000ull},
      {"fma.rn.f32x2 %o, %a, %b, %c", "dddd", 0x400000003f800000ull,
       0x4000000040000000ull, 0x3f8000003f800000ull, 0x40a0000040400000ull},
      {"add.rm.f32x2 %o, %a, %b", "dddd", 0x4b4000003f800000ull,
       0x3f4000000d800000ull, 0, 0x4b4000003f800000ull},
      {"ex2.approx.f16x2 %o, %a", "rrrr", 0x3c004000, 0, 0, 0x40004400},
      {"ex2.approx.ftz.bf16x2 %o, %a", "rrrr", 0x3f804000, 0, 0, 0x40004080},
      {"neg.bf16x2 %o, %a", "rrrr", 0x3f804000, 0, 0, 0xbf80c000},
      {"{ .reg .pred p; testp.infinite.f32 p, %a; selp.b32 %o, 1, 0, p; }",
       "rrrr", 0x7f800000, 0, 0, 1},
  });
}

TEST(Instruction, Conversions) {
  check({
      {"cvt.rn.f32.s32 %o, %a", "rrrr", 0xffffffff, 0, 0, bits(-1.0f)},
      {"cvt.rn.f32.u32 %o, %a", "rrrr", 0xffffffff, 0, 0, bits(0x1p32f)},
      {"cvt.rz.f32.u32 %o, %a", "rrrr", 0xffffffff, 0, 0, bits(0x1.fffffep31f)},
      {"cvt.rn.f64.s64 %o, %a", "dddd", ~0ull, 0, 0, bits(-1.0)},
      {"cvt.rzi.s32.f32 %o, %a", "rrrr", bits(-1.7f), 0, 0, 0xffffffff},
      {"cvt.rni.s32.f32 %o, %a", "rrrr", bits(2.5f), 0, 0, 2},
      {"cvt.rmi.s32.f32 %o, %a", "rrrr", bits(-1.2f), 0, 0, 0xfffffffe},
      {"cvt.rpi.u32.f32 %o, %a", "rrrr", bits(1.2f), 0, 0, 2},
      {"cvt.rzi.s32.f32 %o, %a", "rrrr", bits(1e20f), 0, 0, 0x7fffffff},
      {"cvt.rzi.u32.f32 %o, %a", "rrrr", bits(-5.0f), 0, 0, 0},
      {"cvt.rzi.s32.f32 %o, %a", "rrrr", 0x7fc00000, 0, 0, 0},
      {"cvt.rni.f32.f32 %o, %a", "rrrr", bits(2.5f), 0, 0, bits(2.0f)},
      {"cvt.sat.f32.f32 %o, %a", "rrrr", bits(2.5f), 0, 0, bits(1.0f)},
      {"cvt.sat.f32.f32 %o, %a", "rrrr", bits(-0.0f), 0, 0, 0},
      {"cvt.rna.tf32.f32 %o, %a", "rrrr", 0xffffffff, 0, 0, 0xffffe000},
      {"cvt.s64.s32 %o, %a", "rrrd", 0xffffffff, 0, 0, ~0ull},
      {"cvt.u64.u32 %o, %a", "rrrd", 0xffffffff, 0, 0, 0xffffffff},
      {"cvt.s32.s8 %o, %a", "rrrr", 0x80, 0, 0, 0xffffff80},
      {"cvt.u32.u16 %o, %a", "hrrr", 0xffff, 0, 0, 0xffff},
      {"cvt.s32.s16 %o, %a", "hrrr", 0xffff, 0, 0, 0xffffffff},
      {"cvt.sat.u8.s32 %o, %a", "rrrr", 300, 0, 0, 255},
      {"cvt.sat.s8.s32 %o, %a", "rrrr", 300, 0, 0, 127},
      {"cvt.u16.u32 %o, %a", "rrrh", 0x12345678, 0, 0, 0x5678},
      {"cvt.rn.f16.f32 %o, %a", "rrrh", bits(65519.0f), 0, 0, 0x7bff},
      {"cvt.rn.f16.f32 %o, %a", "rrrh", bits(65520.0f), 0, 0, 0x7c00},
      {"cvt.rn.f16.f32 %o, %a", "rrrh", bits(0x1.8p-24f), 0, 0, 2},
      {"cvt.rz.f16.f32 %o, %a", "rrrh", bits(0x1.8p-24f), 0, 0, 1},
      {"cvt.rn.bf16.f32 %o, %a", "rrrh", bits(0x1.01p0f), 0, 0, 0x3f80},
      {"cvt.rn.bf16.f32 %o, %a", "rrrh", bits(0x1.03p0f), 0, 0, 0x3f82},
      {"cvt.f32.f16 %o, %a", "hrrr", 0x0001, 0, 0, bits(0x1p-24f)},
      {"cvt.f32.f16 %o, %a", "hrrr", 0xfc00, 0, 0, bits(-INFINITY)},
      {"cvt.f32.bf16 %o, %a", "hrrr", 0x4049, 0, 0, 0x40490000},
      {"cvt.rn.f16x2.f32 %o, %a, %b", "rrrr", bits(2.0f), bits(1.0f), 0,
       0x40003c00},
      {"cvt.rn.bf16x2.f32 %o, %a, %b", "rrrr", bits(2.0f), bits(1.0f), 0,
       0x40003f80},
      {"cvt.rn.relu.f16x2.f32 %o, %a, %b", "rrrr", bits(-2.0f), bits(1.0f), 0,
       0x00003c00},
      {"cvt.rna.tf32.f32 %o, %a", "rrrr", 0x3f801000, 0, 0, 0x3f802000},
      {"cvt.rn.satfinite.e4m3x2.f32 %o, %a, %b", "rrrh", bits(1000.0f),
       bits(1.0f), 0, 0x7e38},
      {"cvt.rn.satfinite.e5m2x2.f32 %o, %a, %b", "rrrh", bits(1.0f),
       bits(-2.0f), 0, 0x3cc0},
      {"cvt.rn.f16x2.e4m3x2 %o, %a", "hrrr", 0x3840, 0, 0, 0x3c004000},
      {"cvt.rn.satfinite.e2m1x2.f32 %o, %a, %b; and.b32 %o, %o, 0xff", "rrrr",
       bits(6.0f), bits(1.5f), 0, 0x73},
      {"cvt.rn.f32.f64 %o, %a", "drrr", bits(0.1), 0, 0, bits(0.1f)},
      {"cvt.f64.f32 %o, %a", "rrrd", bits(0.5f), 0, 0, bits(0.5)},
      {"cvt.rzi.u64.f64 %o, %a", "dddd", bits(1e18), 0, 0,
       1000000000000000000ull},
      {"cvt.pack.sat.s16.s32 %o, %a, %b", "rrrr", 70000, 0xffffffff, 0,
       0x7fffffff},
  });
}
