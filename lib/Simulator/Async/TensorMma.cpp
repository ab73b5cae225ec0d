//===- TensorMma.cpp - The product of a tcgen05.mma -----------------------===//

#include "TensorMma.h"
#include "../Numerics/FloatFormat.h"
#include "../Numerics/MatrixMath.h"
#include "llvm/ADT/Twine.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Twine;

unsigned TensorMmaOp::aColumns() const {
  return aux->aInTensorMemory ? (rowBytes(aType) + 3) / 4 : 0;
}

//===----------------------------------------------------------------------===//
// The instruction descriptor
//===----------------------------------------------------------------------===//

static Error failProduct(const Twine &message) {
  return llvm::createStringError("instruction descriptor: " + message);
}

/// The element type that a field of kind f8f6f4 names.
static Type narrowFloat(unsigned format) {
  static const Type types[] = {Type::E4M3, Type::E5M2, Type::None, Type::E2M3,
                               Type::E3M2, Type::E2M1, Type::None, Type::None};
  return types[format];
}

Error TensorMmaOp::decodeTypes(uint32_t d) {
  unsigned aFormat = d >> 7 & 7, bFormat = d >> 10 & 7;
  switch (aux->kind) {
  case TensorMmaAux::F16:
    if (aFormat > 1 || bFormat > 1)
      return failProduct("expected f16 or bf16 operands");
    aType = aFormat ? Type::BF16 : Type::F16;
    bType = bFormat ? Type::BF16 : Type::F16;
    shape.k = 16;
    break;
  case TensorMmaAux::TF32:
    if (aFormat != 2 || bFormat != 2)
      return failProduct("expected tf32 operands");
    aType = bType = Type::TF32;
    shape.k = 8;
    break;
  case TensorMmaAux::F8F6F4:
  case TensorMmaAux::MxF8F6F4:
    aType = narrowFloat(aFormat);
    bType = narrowFloat(bFormat);
    if (aType == Type::None || bType == Type::None)
      return failProduct("expected operands of 8, 6 or 4 bits, got formats " +
                         Twine(aFormat) + " and " + Twine(bFormat));
    shape.k = 32;
    break;
  case TensorMmaAux::I8:
    if (aFormat > 1 || bFormat > 1)
      return failProduct("expected u8 or s8 operands");
    aType = aFormat ? Type::S8 : Type::U8;
    bType = bFormat ? Type::S8 : Type::U8;
    shape.k = 32;
    break;
  case TensorMmaAux::MxF4:
  case TensorMmaAux::MxF4NvF4:
    if (aFormat != 1 || (bFormat & 3) != 1)
      return failProduct("expected e2m1 operands");
    aType = bType = Type::E2M1;
    shape.k = d >> 31 ? 96 : 64;
    break;
  }
  negateA = d >> 13 & 1;
  negateB = d >> 14 & 1;
  transposeA = d >> 15 & 1;
  transposeB = d >> 16 & 1;
  auto cannotTranspose = [](Type t) {
    return t == Type::E2M1 || t == Type::E2M3 || t == Type::E3M2;
  };
  if ((transposeA && cannotTranspose(aType)) ||
      (transposeB && cannotTranspose(bType)))
    return failProduct("expected operands of 4 and 6 bits along K");
  return Error::success();
}

/// The fields of kinds with scaled blocks.
Error TensorMmaOp::decodeScales(uint32_t d) {
  shape.m = (d >> 27 & 3) << 7;
  exponentScales = d >> 23 & 1;
  bool e4m3 = aux->kind == TensorMmaAux::MxF4NvF4 && aux->block == 16;
  if (!exponentScales && !e4m3)
    return failProduct("expected ue8m0 scales");
  scaleA.id = d >> 29 & 3;
  scaleB.id = d >> 4 & 3;
  unsigned count = shape.k / aux->block;
  unsigned step = count == 2 || count == 6 ? 2 : count == 4 ? 4 : 1;
  if (scaleA.id % step || scaleB.id % step)
    return failProduct("expected scale factor IDs that are multiples of " +
                       Twine(step) + ", got " + Twine(scaleA.id) + " and " +
                       Twine(scaleB.id));
  scaleA.count = scaleB.count = count;
  scaleA.rows = shape.m / parts();
  scaleB.rows = shape.n;
  dType = Type::F32;
  return Error::success();
}

/// The fields of the other kinds.
Error TensorMmaOp::decodeAccumulator(uint32_t d) {
  unsigned format = d >> 4 & 3;
  shape.m = (d >> 24 & 0x1f) << 4;
  saturate = d >> 3 & 1;
  dType = format == 0 ? Type::F16 : format == 1 ? Type::F32 : Type::S32;
  if ((dType == Type::S32) != (aux->kind == TensorMmaAux::I8) || format == 3 ||
      (dType == Type::F16 && aux->kind == TensorMmaAux::TF32))
    return failProduct("expected an accumulator type of this kind");
  return Error::success();
}

Error TensorMmaOp::checkShape() const {
  bool mOk = aux->pair    ? shape.m == 128 || shape.m == 256
             : aux->block ? shape.m == 128
             : aux->weightStationary
                 ? shape.m == 32 || shape.m == 64 || shape.m == 128
                 : shape.m == 64 || shape.m == 128;
  if (aux->shiftA && shape.m < 128)
    return failProduct("expected M=128 or M=256 with '.ashift', got M=" +
                       Twine(shape.m));
  bool nOk = shape.n >= 8 && shape.n <= 256;
  if (aux->weightStationary)
    nOk = shape.n == 64 || shape.n == 128 || shape.n == 256;
  else if (aux->pair)
    nOk &= shape.n % (aux->kind == TensorMmaAux::I8 ? 32 : 16) == 0;
  else if (aux->kind == TensorMmaAux::I8)
    nOk &= shape.n == 8 || shape.n == 24 || shape.n % 16 == 0;
  if (!mOk || !nOk)
    return failProduct("unsupported shape M=" + Twine(shape.m) +
                       " N=" + Twine(shape.n));
  return Error::success();
}

Error TensorMmaOp::decodeDescriptor(uint32_t d) {
  if (d & 4)
    return failProduct("sparse products are not supported");
  if (Error error = decodeTypes(d))
    return error;
  shape.n = (d >> 17 & 0x3f) << 3;
  shape.pair = aux->pair;
  shape.weightStationary = aux->weightStationary;
  if (Error error = aux->block ? decodeScales(d) : decodeAccumulator(d))
    return error;
  return checkShape();
}

//===----------------------------------------------------------------------===//
// Operands
//===----------------------------------------------------------------------===//

void TensorMmaOp::readShared(Cluster &cluster) {
  if (dataRead)
    return;
  dataRead = true;
  for (unsigned i = 0; i < parts(); ++i) {
    if (!aux->aInTensorMemory &&
        !readMatrix(*ctas[i], MatrixDescriptor::tcgen05(aDesc), aType,
                    transposeA, 0, shape.m / parts(), shape.k, a[i],
                    TileOrder::ByRow, isDense()))
      return reportOutside(cluster, *this);
    if (!readMatrix(*ctas[i], MatrixDescriptor::tcgen05(bDesc), bType,
                    transposeB, 0, shape.n / parts(), shape.k, b[i], orderOfB(),
                    isDense()))
      return reportOutside(cluster, *this);
  }
}

/// Reads a row of A; true when it holds an undefined value.
bool TensorMmaOp::readRowOfA(unsigned r, std::vector<float> &row) const {
  unsigned rows = shape.m / parts();
  if (!aux->aInTensorMemory) {
    const MatrixTile &t = a[r / rows];
    std::copy_n(&t.values[(r % rows) * shape.k], shape.k, row.begin());
    return t.undefined[r % rows];
  }
  TensorPlace p = shape.aRow(r);
  TensorMemory &t = tensorMemoryOf(*ctas[p.cta]);
  unsigned bits = isDense() ? 4 : bitWidth(aType), perCell = 32 / bits;
  bool bad = false;
  for (unsigned i = 0; i < shape.k; ++i) {
    unsigned cell = p.lane * TensorMemory::Columns + aColumn + i / perCell;
    uint32_t v = t.cells[cell] >> (bits * (i % perCell));
    if (bits < 32)
      v &= (1u << bits) - 1;
    // Four bits lie in the middle of their byte, six at its bottom.
    if (aType == Type::E2M1 && !isDense())
      v = v >> 2 & 15;
    else if (aType == Type::E2M3 || aType == Type::E3M2)
      v &= 63;
    row[i] = decodeMatrixElement(aType, v);
    bad |= t.valid[cell] != TensorMemory::AllBytes;
  }
  return bad;
}

//===----------------------------------------------------------------------===//
// The product
//===----------------------------------------------------------------------===//

/// The factor in one byte.
static double scaleFactor(uint8_t bits, bool exponent) {
  if (!exponent)
    return decodeFloat(bits & 0x7f, formatOf(Type::E4M3));
  return bits == 0xff ? NAN : std::ldexp(1.0, int(bits) - 127);
}

/// Adds row r of the product scaled by blocks to `sums`. Each partition of
/// 32 lanes reads its own copy of the factors.
void TensorMmaOp::addScaled(unsigned r, const std::vector<float> &aRow,
                            std::vector<float> &sums,
                            std::vector<uint8_t> &bad) const {
  unsigned rowsA = shape.m / parts(), rowsB = shape.n / parts();
  float sign = negateA != negateB ? -1.0f : 1.0f;
  std::vector<double> scaledA(shape.k);
  unsigned last = ~0u;
  bool badA = false;
  for (unsigned n = 0; n < shape.n; ++n) {
    TensorPlace p = shape.d(r, n);
    TensorMemory &t = tensorMemoryOf(*ctas[p.cta]);
    auto factor = [&](const BlockScales &s, unsigned row, unsigned block,
                      bool &undefined) {
      unsigned cell = (p.lane / 32 * 32 + row % 32) * TensorMemory::Columns +
                      s.columnOf(row, block);
      // Other bytes of the word are padding, or belong to other products.
      unsigned byte = (s.id + block) % 4;
      undefined |= !(t.valid[cell] >> byte & 1);
      return scaleFactor(t.cells[cell] >> (8 * byte), exponentScales);
    };
    if (p.lane != last) {
      last = p.lane;
      badA = false;
      for (unsigned i = 0; i < shape.k; ++i)
        scaledA[i] =
            sign * aRow[i] * factor(scaleA, r % rowsA, i / aux->block, badA);
    }
    bool badB = false;
    const MatrixTile &tile = b[n / rowsB];
    const float *column = &tile.values[(n % rowsB) * shape.k];
    double factorB = 0;
    for (unsigned i = 0; i < shape.k; ++i) {
      // Where the halves of N lie beside each other, so do their factors.
      if (i % aux->block == 0)
        factorB = factor(scaleB, shape.splits() == 2 ? p.column : n,
                         i / aux->block, badB);
      sums[n] = float(sums[n] + scaledA[i] * (column[i] * factorB));
    }
    bad[n] |= badA || badB;
  }
}

TraceWork TensorMmaOp::getWork() const {
  TraceWork work;
  work.kind = TraceWork::Product;
  for (unsigned i = 0; i < parts(); ++i)
    work.ranks.push_back(ctas[i]->rank);
  work.rows = shape.m / parts();
  work.columns = shape.n;
  if (!aux->aInTensorMemory)
    work.bytesOfA = work.rows * rowBytes(aType);
  // Each CTA of a pair holds half of B.
  work.sharedBytes = work.bytesOfA + shape.n / parts() * rowBytes(bType);
  return work;
}

/// B by k: the inner loop runs along columns.
std::vector<float> TensorMmaOp::gatherB() {
  if (parts() == 1 && negateA == negateB)
    return std::move(b[0].values);
  unsigned rowsB = shape.n / parts();
  std::vector<float> all(size_t(shape.k) * shape.n);
  float sign = negateA != negateB ? -1.0f : 1.0f;
  for (unsigned k = 0; k < shape.k; ++k)
    for (unsigned n = 0; n < shape.n; ++n)
      all[k * shape.n + n] = sign * b[n / rowsB].values[k * rowsB + n % rowsB];
  return all;
}

void TensorMmaOp::addIntegers(uint32_t *sums, unsigned first, unsigned count,
                              const float *aRow, const float *byK) const {
  for (unsigned n = 0; n < count; ++n) {
    int64_t sum = accumulate ? int32_t(sums[n]) : 0;
    for (unsigned i = 0; i < shape.k; ++i)
      sum += int64_t(aRow[i]) * int64_t(byK[i * shape.n + first + n]);
    if (saturate)
      sum = std::min<int64_t>(std::max<int64_t>(sum, INT32_MIN), INT32_MAX);
    sums[n] = uint32_t(sum);
  }
}

void TensorMmaOp::complete(Cluster &cluster) {
  readShared(cluster);
  if (cluster.machine->stop)
    return;
  unsigned rowsB = shape.n / parts();
  std::vector<float> byK, aRow(shape.k), row(shape.n);
  if (!aux->block)
    byK = gatherB();
  std::vector<uint8_t> bad(shape.n);
  float inputScale = aux->hasScale ? std::ldexp(1.0f, -int(aux->scale)) : 1.0f;
  for (unsigned r = 0; r < shape.m; ++r) {
    bool aBad = readRowOfA(r, aRow);
    for (unsigned n = 0; n < shape.n; ++n)
      bad[n] = aBad || b[n / rowsB].undefined[n % rowsB];
    // Columns that lie side by side in tensor memory.
    auto forParts = [&](auto &&fn) {
      for (unsigned n = 0; n < shape.n; n += shape.columns()) {
        TensorPlace p = shape.d(r, n);
        unsigned bit = 128 * p.cta + p.lane;
        bool isMasked = mask[bit / 32] >> (bit % 32) & 1;
        TensorMemory &t = tensorMemoryOf(*ctas[p.cta]);
        unsigned cell = p.lane * TensorMemory::Columns + dColumn + p.column;
        fn(n, shape.columns(), &t.cells[cell], &t.valid[cell], isMasked);
      }
    };
    bool half = dType == Type::F16, integer = dType == Type::S32;
    forParts([&](unsigned first, unsigned count, const uint32_t *cells,
                 const uint8_t *, bool) {
      for (unsigned n = 0; n < count && !integer; ++n)
        row[first + n] = !accumulate ? 0.0f
                                     : (half ? halfToFloat(cells[n])
                                             : bitCast<float>(cells[n])) *
                                           inputScale;
    });
    if (aux->block)
      addScaled(r, aRow, row, bad);
    else if (!integer)
      addProducts(row.data(), aRow.data(), byK.data(), shape.n, shape.k);
    forParts([&](unsigned first, unsigned count, uint32_t *cells,
                 uint8_t *valid, bool isMasked) {
      if (isMasked)
        return;
      if (integer)
        addIntegers(cells, first, count, aRow.data(), byK.data());
      for (unsigned n = 0; n < count; ++n) {
        if (!integer)
          cells[n] = half ? floatToHalf(row[first + n])
                          : bitCast<uint32_t>(canonical(row[first + n]));
        bool isRight = !accumulate || valid[n] == TensorMemory::AllBytes;
        valid[n] = isRight && !bad[first + n] ? TensorMemory::AllBytes : 0;
      }
    });
  }
  for (unsigned r = 0; aux->shiftA && r < shape.m;
       r += TensorMemory::Partition) {
    TensorPlace p = shape.aRow(r);
    tensorMemoryOf(*ctas[p.cta]).shiftRows(p.lane, aColumn);
  }
}
