//===- MatrixOps.cpp - mma.sync -------------------------------------------===//
//
// mma.sync unpacks the fragments into small matrices, multiplies, and packs the
// result. Products of the narrow formats are exact in f32; sums are f32 in the
// order of k, starting from C. The hardware's order and internal width are not
// documented, so results agree up to the usual accumulation error.
//
//===----------------------------------------------------------------------===//

#include "../Numerics/FloatFormat.h"
#include "../PTX/Decoder.h"
#include "SyncInstructions.h"
#include "WarpSync.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

//===----------------------------------------------------------------------===//
// mma.sync
//===----------------------------------------------------------------------===//

struct MmaAux {
  unsigned m = 16, n = 8, k = 16;
  Type d = Type::F32, a = Type::F16, b = Type::F16, c = Type::F32;
  unsigned aRegs = 4, bRegs = 2, cRegs = 4;
  bool saturate = false;
  bool conjunction = false; ///< of single bits
};

/// Poison of the result: a row of A spoils a row, a column of B a column.
void mmaPoison(Exec &x, const Inst &I, const MmaAux &o, const Operand *d,
               const Operand *a, const Operand *b, const Operand *c) {
  uint32_t any = 0, from = 0;
  auto scan = [&](const Operand *list, unsigned n) {
    for (unsigned r = 0; r < n; ++r)
      if (x.poison[list[r].meta]) {
        any |= x.poison[list[r].meta];
        from = x.origin[list[r].meta];
      }
  };
  scan(a, o.aRegs);
  scan(b, o.bRegs);
  scan(c, o.cRegs);
  if (!any) {
    for (unsigned r = 0; r < o.cRegs; ++r)
      x.poison[d[r].meta] = 0;
    return;
  }
  bool row[16] = {}, col[8] = {};
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned r = 0; r < o.aRegs; ++r)
      if (x.poison[a[r].meta] >> l & 1)
        row[l / 4 + (o.m == 16 ? 8 * (r & 1) : 0)] = true;
    for (unsigned r = 0; r < o.bRegs; ++r)
      if (x.poison[b[r].meta] >> l & 1)
        col[l / 4] = true;
  }
  bool packed = o.d == Type::F16;
  uint32_t result[8] = {};
  for (unsigned r = 0; r < o.cRegs; ++r)
    for (unsigned l = 0; l < 32; ++l) {
      unsigned i = l / 4 + 8 * (packed ? r : r >> 1);
      unsigned j = l % 4 * 2 + (packed ? 0 : r & 1);
      bool bad = row[i] || col[j] || (packed && col[j + 1]) ||
                 (x.poison[c[r].meta] >> l & 1);
      result[r] |= uint32_t(bad) << l;
    }
  for (unsigned r = 0; r < o.cRegs; ++r)
    x.setPoison(d[r], result[r], from);
}

/// `Bits` is the width of an element, `Decode` turns it into a float:
/// constants, so that unpacking becomes straight vector code.
template <unsigned Bits, float (*Decode)(const MmaAux &, bool, uint32_t)>
void execMmaFloat(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const MmaAux *>(I.aux);
  const Operand *d = I.ops, *a = d + o.cRegs, *b = a + o.aRegs,
                *c = b + o.bRegs;
  alignas(32) float A[16][32], B[32][8], C[16][8];
  constexpr unsigned perReg = 32 / Bits;
  constexpr uint32_t elementMask = uint32_t((uint64_t(1) << Bits) - 1);
  for (unsigned r = 0; r < o.aRegs; ++r) {
    const uint32_t *v = x.r32(a[r]);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned e = 0; e < perReg; ++e)
        A[l / 4 + 8 * (r & 1)][l % 4 * perReg + e + 4 * perReg * (r >> 1)] =
            Decode(o, true, v[l] >> (Bits * e) & elementMask);
  }
  for (unsigned r = 0; r < o.bRegs; ++r) {
    const uint32_t *v = x.r32(b[r]);
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned e = 0; e < perReg; ++e)
        B[l % 4 * perReg + e + 4 * perReg * r][l / 4] =
            Decode(o, false, v[l] >> (Bits * e) & elementMask);
  }
  bool halfC = o.c == Type::F16;
  for (unsigned r = 0; r < o.cRegs; ++r) {
    const uint32_t *v = x.r32(c[r]);
    for (unsigned l = 0; l < 32; ++l) {
      if (halfC) {
        C[l / 4 + 8 * r][l % 4 * 2] = halfToFloat(v[l]);
        C[l / 4 + 8 * r][l % 4 * 2 + 1] = halfToFloat(v[l] >> 16);
      } else {
        C[l / 4 + 8 * (r >> 1)][l % 4 * 2 + (r & 1)] = bitCast<float>(v[l]);
      }
    }
  }
  for (unsigned i = 0; i < 16; ++i)
    for (unsigned k = 0; k < o.k; ++k) {
      float av = A[i][k];
      for (unsigned j = 0; j < 8; ++j)
        C[i][j] += av * B[k][j];
    }
  mmaPoison(x, I, o, d, a, b, c);
  bool halfD = o.d == Type::F16;
  for (unsigned r = 0; r < (halfD ? 2u : 4u); ++r) {
    uint32_t *v = x.r32(d[r]);
    for (unsigned l = 0; l < 32; ++l) {
      if (halfD)
        v[l] = floatToHalf(C[l / 4 + 8 * r][l % 4 * 2]) |
               uint32_t(floatToHalf(C[l / 4 + 8 * r][l % 4 * 2 + 1])) << 16;
      else
        v[l] = bitCast<uint32_t>(
            canonical(C[l / 4 + 8 * (r >> 1)][l % 4 * 2 + (r & 1)]));
    }
  }
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * o.m * o.n * o.k;
}

float decodeF16(const MmaAux &, bool, uint32_t v) { return halfToFloat(v); }
float decodeBF16(const MmaAux &, bool, uint32_t v) { return bfloatToFloat(v); }
float decodeTF32(const MmaAux &, bool, uint32_t v) {
  return bitCast<float>(v & 0xffffe000);
}
float decodeF8(const MmaAux &o, bool isA, uint32_t v) {
  return float(decodeFloat(v, formatOf(isA ? o.a : o.b)));
}

void execMmaInteger(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const MmaAux *>(I.aux);
  const Operand *d = I.ops, *a = d + o.cRegs, *b = a + o.aRegs,
                *c = b + o.bRegs;
  int32_t A[16][64], B[64][8];
  int64_t C[16][8];
  unsigned bits = bitWidth(o.a), perReg = 32 / bits, halves = o.m / 8;
  auto element = [&](Type t, uint32_t v, unsigned e) -> int32_t {
    uint32_t u = v >> (bits * e) & ((1u << bits) - 1);
    bool isSigned = t == Type::S8 || t == Type::S4;
    return isSigned && u >> (bits - 1) ? int32_t(u) - (1 << bits) : int32_t(u);
  };
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned r = 0; r < o.aRegs; ++r)
      for (unsigned e = 0; e < perReg; ++e)
        A[l / 4 + 8 * (r % halves)]
         [l % 4 * perReg + e + 4 * perReg * (r / halves)] =
             element(o.a, x.r32(a[r])[l], e);
    for (unsigned r = 0; r < o.bRegs; ++r)
      for (unsigned e = 0; e < perReg; ++e)
        B[l % 4 * perReg + e + 4 * perReg * r][l / 4] =
            element(o.b, x.r32(b[r])[l], e);
    for (unsigned r = 0; r < o.cRegs; ++r)
      C[l / 4 + 8 * (r >> 1)][l % 4 * 2 + (r & 1)] = int32_t(x.r32(c[r])[l]);
  }
  for (unsigned i = 0; i < o.m; ++i)
    for (unsigned j = 0; j < 8; ++j) {
      int64_t sum = C[i][j];
      for (unsigned k = 0; k < o.k; ++k)
        sum += int64_t(A[i][k]) * B[k][j];
      if (o.saturate)
        sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
      C[i][j] = sum;
    }
  mmaPoison(x, I, o, d, a, b, c);
  for (unsigned r = 0; r < o.cRegs; ++r)
    for (unsigned l = 0; l < 32; ++l)
      x.r32(d[r])[l] = uint32_t(C[l / 4 + 8 * (r >> 1)][l % 4 * 2 + (r & 1)]);
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * o.m * o.n * o.k;
}

/// Single bits: the number of ones in the exclusive or, or in the conjunction.
void execMmaBits(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const MmaAux *>(I.aux);
  const Operand *d = I.ops, *a = d + o.cRegs, *b = a + o.aRegs,
                *c = b + o.bRegs;
  uint32_t A[16][8], B[8][8], C[4][32];
  unsigned halves = o.m / 8;
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned r = 0; r < o.aRegs; ++r)
      A[l / 4 + 8 * (r % halves)][l % 4 + 4 * (r / halves)] = x.r32(a[r])[l];
    for (unsigned r = 0; r < o.bRegs; ++r)
      B[l / 4][l % 4 + 4 * r] = x.r32(b[r])[l];
    for (unsigned r = 0; r < o.cRegs; ++r)
      C[r][l] = x.r32(c[r])[l];
  }
  mmaPoison(x, I, o, d, a, b, c);
  for (unsigned r = 0; r < o.cRegs; ++r)
    for (unsigned l = 0; l < 32; ++l) {
      const uint32_t *row = A[l / 4 + 8 * (r >> 1)];
      const uint32_t *column = B[l % 4 * 2 + (r & 1)];
      uint32_t sum = C[r][l];
      for (unsigned k = 0; k < o.k / 32; ++k)
        sum += llvm::popcount(o.conjunction ? row[k] & column[k]
                                            : row[k] ^ column[k]);
      x.r32(d[r])[l] = sum;
    }
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * o.m * o.n * o.k;
}

void execMmaDouble(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const MmaAux *>(I.aux);
  const Operand *d = I.ops, *a = d + o.cRegs, *b = a + o.aRegs,
                *c = b + o.bRegs;
  bool small = o.m == 8;
  double A[16][16], B[16][8], C[16][8];
  for (unsigned l = 0; l < 32; ++l) {
    for (unsigned r = 0; r < o.aRegs; ++r)
      A[l / 4 + (small ? 0 : 8 * (r & 1))][l % 4 + (small ? 0 : 4 * (r >> 1))] =
          bitCast<double>(x.r64(a[r])[l]);
    for (unsigned r = 0; r < o.bRegs; ++r)
      B[l % 4 + 4 * r][l / 4] = bitCast<double>(x.r64(b[r])[l]);
    for (unsigned r = 0; r < o.cRegs; ++r)
      C[l / 4 + 8 * (r >> 1)][l % 4 * 2 + (r & 1)] =
          bitCast<double>(x.r64(c[r])[l]);
  }
  for (unsigned i = 0; i < o.m; ++i)
    for (unsigned j = 0; j < 8; ++j)
      for (unsigned k = 0; k < o.k; ++k)
        C[i][j] = std::fma(A[i][k], B[k][j], C[i][j]);
  mmaPoison(x, I, o, d, a, b, c);
  for (unsigned l = 0; l < 32; ++l)
    for (unsigned r = 0; r < o.cRegs; ++r)
      x.r64(d[r])[l] =
          bitCast<uint64_t>(C[l / 4 + 8 * (r >> 1)][l % 4 * 2 + (r & 1)]);
  ++x.cluster.counters.mmaInstructions;
  x.cluster.counters.mmaFlops += 2ull * o.m * o.n * o.k;
}

Error decodeMma(Decoding &c) {
  for (StringRef mod : c.mods)
    if (mod == "sp" || mod.starts_with("sp::") || mod == "block_scale")
      return c.error("sparse and block-scaled products are not supported");
  if (!c.take("sync") || !c.take("aligned"))
    return c.error("expected 'mma.sync.aligned'");
  MmaAux o;
  StringRef shape;
  for (StringRef mod : c.mods)
    if (mod.starts_with("m") && mod.contains('n') && mod.contains('k'))
      shape = mod;
  if (shape.empty())
    return c.error("expected a shape");
  c.take(shape);
  StringRef rest = shape;
  rest.consume_front("m");
  if (rest.consumeInteger(10, o.m) || !rest.consume_front("n") ||
      rest.consumeInteger(10, o.n) || !rest.consume_front("k") ||
      rest.consumeInteger(10, o.k) || !rest.empty())
    return c.error("expected a shape");
  if (!c.take("row") || !c.take("col"))
    return c.error("expected '.row.col'");
  o.saturate = c.take("satfinite");
  o.d = c.takeType();
  o.a = c.takeType();
  o.b = c.takeType();
  o.c = c.takeType();
  bool isBits = o.a == Type::B1;
  if (isBits) {
    StringRef how = c.takeAny({"xor", "and"});
    o.conjunction = how == "and";
    if (how.empty() || !c.take("popc"))
      return c.error("expected '.xor.popc' or '.and.popc'");
  }
  ATTN_SIM_TRY(c.expectOps(4, 4));
  bool isF64 = o.a == Type::F64;
  bool isInt =
      o.a == Type::S8 || o.a == Type::U8 || o.a == Type::S4 || o.a == Type::U4;
  bool isFloat = o.a == Type::F16 || o.a == Type::BF16 || o.a == Type::TF32 ||
                 o.a == Type::E4M3 || o.a == Type::E5M2;
  Type reg = isF64 ? Type::B64 : Type::B32;
  unsigned perReg = isF64 ? 1 : 32 / std::max(1u, bitWidth(o.a));
  if (o.n != 8 || (o.m != 16 && !(o.m == 8 && !isFloat)) ||
      (!isF64 && !isInt && !isFloat && !isBits) ||
      bitWidth(o.a) != bitWidth(o.b) || (bitWidth(o.a) > 8 && o.a != o.b))
    return c.error("unsupported shape or types");
  unsigned kSteps = o.k / (4 * perReg);
  if (kSteps * 4 * perReg != o.k || !kSteps ||
      (isF64 ? kSteps > 4 : kSteps > 2) || (o.m == 8 && kSteps > 1))
    return c.error("unsupported shape for these types");
  o.aRegs = kSteps * (o.m / 8);
  o.bRegs = kSteps;
  o.cRegs = o.d == Type::F16 ? 2 : o.m / 4;
  bool typesOk = isF64 ? o.d == Type::F64 && o.c == Type::F64
                 : isInt || isBits
                     ? o.d == Type::S32 && o.c == Type::S32
                     : (o.d == Type::F32 || o.d == Type::F16) && o.c == o.d;
  if (!typesOk)
    return c.error("unsupported accumulator type");
  ATTN_SIM_TRY(c.dstVector(c.ast.ops[0], reg, o.cRegs));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[1], reg, o.aRegs));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[2], reg, o.bRegs));
  ATTN_SIM_TRY(c.srcVector(c.ast.ops[3], reg, o.cRegs));
  *c.makeAux<MmaAux>() = o;
  ExecFn fn = isF64               ? execMmaDouble
              : isInt             ? execMmaInteger
              : isBits            ? execMmaBits
              : o.a == Type::F16  ? execMmaFloat<16, decodeF16>
              : o.a == Type::BF16 ? execMmaFloat<16, decodeBF16>
              : o.a == Type::TF32 ? execMmaFloat<32, decodeTF32>
                                  : execMmaFloat<8, decodeF8>;
  return c.set(fn, InstClass::Mma);
}

} // namespace

void mlir::attn::sim::registerMatrixOps(DecodeTable &table) {
  table["mma"] = decodeMma;
}
