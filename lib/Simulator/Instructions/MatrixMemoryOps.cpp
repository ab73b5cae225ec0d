//===- MatrixMemoryOps.cpp - ldmatrix, stmatrix, movmatrix ----------------===//

#include "../Sanitizer/OpenAccesses.h"
#include "../Sanitizer/Races.h"
#include "MemoryTraffic.h"
#include "SyncInstructions.h"
#include "WarpSync.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

// flags: 1 transposed; numOps - 1 matrices; last operand is the address.
bool resolveRows(Exec &x, const Inst &I, unsigned rows, bool write,
                 MemRef *refs, const char *counter) {
  const Operand &base = I.ops[I.numOps - 1];
  uint32_t addressLanes = rows == 32 ? ~0u : (1u << rows) - 1;
  uint32_t saved = x.active;
  x.active &= addressLanes;
  if (x.poisonOf(base))
    x.checkPoison(base, "an address");
  x.active = saved;
  TrafficCounter traffic(16);
  for (unsigned r = 0; r < rows; ++r) {
    uint64_t address = x.read(base, r) + I.imm;
    if (base.cls == RegClass::R32)
      address = uint32_t(address);
    else if (address >= SharedWindow && address < SharedWindow + WindowSize)
      address -= SharedWindow;
    if (!x.resolve(Space::Shared, address, 16, 16, write, r, refs[r]))
      return false;
    traffic.add(refs[r], r);
  }
  // Whether a store changes anything is known when its rows are.
  if (!write)
    trackAll(x, llvm::ArrayRef(refs, rows), 16, /*write=*/false);
  traffic.shared(x, counter);
  return true;
}

/// Rows of sixteen bytes on their way to shared memory.
struct StoredRows {
  std::array<std::array<uint8_t, 16>, 32> data, valid;

  void store(Exec &x, const MemRef *refs, unsigned rows) const {
    ShadowDecision decided;
    for (unsigned r = 0; r < rows; ++r) {
      const MemRef &ref = refs[r];
      auto ones = [](const uint8_t *v) {
        return std::all_of(v, v + 16, [](uint8_t b) { return b; });
      };
      bool same = !std::memcmp(ref.data, data[r].data(), 16) &&
                  ones(ref.valid) && ones(valid[r].data());
      track(x, ref, 16, true, same ? Stamp::SameValue : 0, -1, &decided);
      checkMbarrierOverlap(x, ref, 16, -1);
      std::memcpy(ref.data, data[r].data(), 16);
      std::memcpy(ref.valid, valid[r].data(), 16);
    }
  }
};

void execLdMatrix(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  unsigned n = I.numOps - 1;
  MemRef refs[32];
  if (!resolveRows(x, I, n * 8, false, refs, "ldmatrix"))
    return;
  for (unsigned m = 0; m < n; ++m) {
    uint16_t tile[8][8];
    bool bad[8][8], anyBad = false;
    for (unsigned r = 0; r < 8; ++r) {
      const MemRef &ref = refs[m * 8 + r];
      std::memcpy(tile[r], ref.data, 16);
      for (unsigned c = 0; c < 8; ++c) {
        bad[r][c] = !ref.valid[2 * c] || !ref.valid[2 * c + 1];
        anyBad |= bad[r][c];
      }
    }
    uint32_t *d = x.r32(I.ops[m]);
    uint32_t poisoned = 0;
    for (unsigned l = 0; l < 32; ++l) {
      unsigned i = l / 4, j = l % 4 * 2;
      uint32_t lo, hi;
      if (I.flags & 1) {
        lo = tile[j][i];
        hi = tile[j + 1][i];
        if (anyBad && (bad[j][i] || bad[j + 1][i]))
          poisoned |= 1u << l;
      } else {
        lo = tile[i][j];
        hi = tile[i][j + 1];
        if (anyBad && (bad[i][j] || bad[i][j + 1]))
          poisoned |= 1u << l;
      }
      d[l] = lo | hi << 16;
    }
    x.setPoison(I.ops[m], poisoned, x.pc + 1);
  }
  noteLoad(x, I);
}

void execStMatrix(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  unsigned n = I.numOps - 1;
  MemRef refs[32];
  if (!resolveRows(x, I, n * 8, true, refs, "stmatrix"))
    return;
  StoredRows rows;
  for (unsigned m = 0; m < n; ++m) {
    const uint32_t *s = x.r32(I.ops[m]);
    uint32_t poisoned = x.poisonOf(I.ops[m]);
    for (unsigned l = 0; l < 32; ++l) {
      for (unsigned h = 0; h < 2; ++h) {
        unsigned i = l / 4, j = l % 4 * 2 + h;
        if (I.flags & 1)
          std::swap(i, j);
        uint16_t v = s[l] >> (16 * h);
        std::memcpy(&rows.data[m * 8 + i][2 * j], &v, 2);
        std::memset(&rows.valid[m * 8 + i][2 * j], !(poisoned >> l & 1), 2);
      }
    }
  }
  rows.store(x, refs, n * 8);
}

/// Matrices of sixteen bytes a row whose elements become bytes: `rows` is 8, or
/// 16 for a transposed matrix in two registers.
struct ByteMatrixAux {
  unsigned matrices = 1, rows = 8;
  unsigned sourceBits = 8; ///< 4 and 6: sixteen elements and their padding
};

/// Element `i` of a row of sixteen; false when a byte of it was never written.
bool readNarrow(const MemRef &row, unsigned bits, unsigned i, uint32_t &value) {
  unsigned first = i * bits / 8, last = (i * bits + bits - 1) / 8;
  unsigned word = row.data[first] | unsigned(row.data[last]) << 8;
  if (first == last)
    word = row.data[first];
  value = word >> (i * bits % 8) & ((1u << bits) - 1);
  return row.valid[first] && row.valid[last];
}

void execLdBytes(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const ByteMatrixAux *>(I.aux);
  MemRef refs[32];
  if (!resolveRows(x, I, o.matrices * o.rows, false, refs, "ldmatrix"))
    return;
  unsigned perMatrix = o.rows / 8;
  for (unsigned r = 0; r < o.matrices * perMatrix; ++r) {
    const MemRef *matrix = refs + r / perMatrix * o.rows;
    uint32_t *d = x.r32(I.ops[r]);
    uint32_t poisoned = 0;
    for (unsigned l = 0; l < 32; ++l) {
      d[l] = 0;
      for (unsigned e = 0; e < 4; ++e) {
        // A thread holds four columns of a row; of a transposed matrix, four
        // rows of a column in each register.
        unsigned row = l / 4, column = 4 * (l % 4) + e;
        if (o.rows == 16) {
          row = 4 * (l % 4) + e;
          column = l / 4 + 8 * (r % 2);
        }
        uint32_t v;
        if (!readNarrow(matrix[row], o.sourceBits, column, v))
          poisoned |= 1u << l;
        d[l] |= v << (8 * e);
      }
    }
    x.setPoison(I.ops[r], poisoned, x.pc + 1);
  }
  noteLoad(x, I);
}

/// Stores 16x8 matrices of bytes, column by column: a thread holds two rows of
/// two columns that lie side by side.
void execStBytes(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  const auto &o = *static_cast<const ByteMatrixAux *>(I.aux);
  MemRef refs[32];
  if (!resolveRows(x, I, o.matrices * 8, true, refs, "stmatrix"))
    return;
  StoredRows rows;
  for (unsigned m = 0; m < o.matrices; ++m)
    for (unsigned l = 0; l < 32; ++l)
      for (unsigned e = 0; e < 4; ++e) {
        unsigned row = l / 4 + 8 * (e / 2), column = 2 * (l % 4) + e % 2;
        rows.data[m * 8 + column][row] = x.r32(I.ops[m])[l] >> (8 * e);
        rows.valid[m * 8 + column][row] = !(x.poison[I.ops[m].meta] >> l & 1);
      }
  rows.store(x, refs, o.matrices * 8);
}

/// `.m16n16` and `.m8n16` of ldmatrix, `.m16n8` of stmatrix.
Error decodeByteMatrix(Decoding &c, bool store, StringRef shape, unsigned n) {
  auto *o = c.makeAux<ByteMatrixAux>();
  o->matrices = n;
  o->rows = shape == "m16n16" ? 16 : 8;
  bool trans = c.take("trans");
  if (trans != (shape != "m8n16"))
    return c.error("expected '.trans' with this shape, or not with '.m8n16'");
  if (shape == "m16n16" && n == 4)
    return c.error("expected '.x1' or '.x2'");
  c.takeAny({"shared", "shared::cta"});
  if (c.take("b8x16")) {
    StringRef source = c.takeAny({"b6x16_p32", "b4x16_p64"});
    if (store || source.empty())
      return c.error("expected '.b6x16_p32' or '.b4x16_p64' of ldmatrix");
    o->sourceBits = source == "b6x16_p32" ? 6 : 4;
  } else if (shape == "m8n16" || !c.take("b8")) {
    return c.error("expected '.b8', or '.b8x16' and a source format");
  }
  ATTN_SIM_TRY(c.expectOps(2, 2));
  const AstOperand &value = c.ast.ops[store ? 1 : 0];
  unsigned regs = n * o->rows / 8;
  ATTN_SIM_TRY(store ? c.srcVector(value, Type::B32, regs)
                     : c.dstVector(value, Type::B32, regs));
  ATTN_SIM_TRY(c.address(c.ast.ops[store ? 0 : 1], c.inst.imm));
  return c.set(store ? execStBytes : execLdBytes,
               store ? InstClass::StMatrix : InstClass::LdMatrix);
}

Error decodeLdStMatrix(Decoding &c) {
  bool store = c.ast.base == "stmatrix";
  if (!c.take("sync") || !c.take("aligned"))
    return c.error("expected '.sync.aligned'");
  StringRef shape =
      c.takeAny({"m8n8", store ? "m16n8" : "m16n16", store ? "" : "m8n16"});
  if (shape.empty())
    return c.error("expected a shape");
  unsigned n = c.take("x1") ? 1 : c.take("x2") ? 2 : c.take("x4") ? 4 : 0;
  if (!n)
    return c.error("expected '.x1', '.x2' or '.x4'");
  if (shape != "m8n8")
    return decodeByteMatrix(c, store, shape, n);
  c.inst.flags = c.take("trans");
  c.takeAny({"shared", "shared::cta"});
  if (c.takeType() != Type::B16)
    return c.error("expected '.b16'");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  const AstOperand &value = c.ast.ops[store ? 1 : 0];
  const AstOperand &address = c.ast.ops[store ? 0 : 1];
  ATTN_SIM_TRY(store ? c.srcVector(value, Type::B32, n)
                     : c.dstVector(value, Type::B32, n));
  ATTN_SIM_TRY(c.address(address, c.inst.imm));
  return c.set(store ? execStMatrix : execLdMatrix,
               store ? InstClass::StMatrix : InstClass::LdMatrix);
}

void execMovMatrix(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  uint32_t in[32];
  std::memcpy(in, x.r32(I.ops[1]), sizeof(in));
  uint32_t *d = x.r32(I.ops[0]);
  auto element = [&](unsigned row, unsigned col) -> uint32_t {
    return in[row * 4 + col / 2] >> (16 * (col % 2)) & 0xffff;
  };
  for (unsigned l = 0; l < 32; ++l)
    d[l] = element(l % 4 * 2, l / 4) | element(l % 4 * 2 + 1, l / 4) << 16;
  uint32_t poisoned = x.poisonOf(I.ops[1]) ? ~0u : 0;
  x.setPoison(I.ops[0], poisoned, x.origin[I.ops[1].meta]);
}

Error decodeMovMatrix(Decoding &c) {
  for (StringRef mod : {"sync", "aligned", "m8n8", "trans", "b16"})
    if (!c.take(mod))
      return c.error("expected '.sync.aligned.m8n8.trans.b16'");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.dst(c.ast.ops[0], Type::B32));
  ATTN_SIM_TRY(c.src(c.ast.ops[1], Type::B32));
  return c.set(execMovMatrix, InstClass::Shuffle);
}

} // namespace

void mlir::attn::sim::registerMatrixMemoryOps(DecodeTable &table) {
  table["ldmatrix"] = table["stmatrix"] = decodeLdStMatrix;
  table["movmatrix"] = decodeMovMatrix;
}
