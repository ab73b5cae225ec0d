//===- TensorMma.h - A tcgen05.mma in flight --------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_TENSORMMA_H
#define ATTN_LIB_SIMULATOR_ASYNC_TENSORMMA_H

#include "EngineOps.h"
#include "SharedMatrix.h"
#include "TensorOperations.h"

namespace mlir::attn::sim {

struct TensorMmaAux {
  enum Kind { F16, TF32, F8F6F4, I8, MxF8F6F4, MxF4, MxF4NvF4 } kind = F16;
  bool pair = false;
  bool weightStationary = false;
  bool aInTensorMemory = false;
  bool shiftA = false; ///< the rows of A move once it has been read
  bool hasMask = false, hasScale = false, hasZeroMask = false;
  unsigned maskWords = 0;
  int64_t scale = 0;
  int64_t aDisplacement = 0;
  /// Elements that share a scale; 0: not scaled by blocks.
  unsigned block = 0;
  int64_t scaleADisplacement = 0, scaleBDisplacement = 0;
};

/// Where row r and column n of D (or row r of A in tensor memory) are.
struct TensorPlace {
  unsigned cta, lane, column;
};

struct TensorMmaShape {
  unsigned m = 0, n = 0, k = 0;
  bool pair = false, weightStationary = false;
  unsigned baseLane = 0;

  /// Parts of N that lie beside each other in lanes.
  unsigned splits() const {
    if (pair)
      return m == 128 ? 2 : 1;
    return weightStationary ? 128 / m : 1;
  }
  TensorPlace d(unsigned r, unsigned n0) const {
    if (pair && m == 256)
      return {r / 128, r % 128, n0};
    if (pair)
      return {r / 64, r % 64 + 64 * (n0 / (n / 2)), n0 % (n / 2)};
    if (weightStationary)
      return {0, r + m * (n0 / columns()), n0 % columns()};
    if (m == 64)
      return {0, 32 * (r / 16) + r % 16 + baseLane % 32, n0};
    return {0, r, n0};
  }
  TensorPlace aRow(unsigned r) const { return d(r, 0); }
  /// Columns of D in each CTA's tensor memory.
  unsigned columns() const { return n / splits(); }
};

/// Scale factors of an operand in tensor memory: one byte for each row and
/// block of K, repeated in every partition of 32 lanes. Row r of block c lies
/// in lane r % 32, in byte `id` + c of the words at column r / 32.
struct BlockScales {
  uint32_t column = 0;
  unsigned id = 0;
  unsigned rows = 0;  ///< that a CTA holds
  unsigned count = 0; ///< blocks of K

  unsigned columnOf(unsigned row, unsigned block) const {
    return column + row / 32 + (id + block) / 4 * 4 * ((rows + 127) / 128);
  }
  /// Columns from the first to the last one that is read.
  unsigned columns() const {
    return columnOf(rows - 1, count - 1) - column + 1;
  }
};

struct TensorMmaOp : EngineOp {
  const TensorMmaAux *aux = nullptr;
  Cta *ctas[2] = {};
  TensorMmaShape shape;
  Type aType = Type::F16, bType = Type::F16, dType = Type::F32;
  bool negateA = false, negateB = false, transposeA = false, transposeB = false;
  bool saturate = false;
  /// Scales are powers of two, not e4m3.
  bool exponentScales = true;
  BlockScales scaleA, scaleB;
  uint32_t dColumn = 0, aColumn = 0;
  uint64_t aDesc = 0, bDesc = 0;
  bool accumulate = false;
  uint32_t mask[8] = {};
  bool dataRead = false;
  MatrixTile a[2], b[2];

  /// Two 4-bit elements in a byte, without padding.
  bool isDense() const {
    return aux->kind == TensorMmaAux::MxF4 ||
           aux->kind == TensorMmaAux::MxF4NvF4;
  }
  unsigned parts() const { return aux->pair ? 2 : 1; }
  /// Columns of A in tensor memory, 0 when it is not there.
  unsigned aColumns() const;
  /// Bytes of a row of an operand in shared memory.
  unsigned rowBytes(Type type) const {
    return isDense() ? shape.k / 2 : shape.k * bitWidth(type) / 8;
  }

  /// Decodes the instruction descriptor; the error says what is wrong with it.
  llvm::Error decodeDescriptor(uint32_t d);
  void readShared(Cluster &cluster);
  void complete(Cluster &cluster) override;
  std::string describe() const override { return "a tcgen05.mma"; }
  TraceWork getWork() const override;
  bool touches(const Cta *cta) const override {
    return ctas[0] == cta || ctas[1] == cta;
  }

private:
  llvm::Error decodeTypes(uint32_t d);
  llvm::Error decodeScales(uint32_t d);
  llvm::Error decodeAccumulator(uint32_t d);
  llvm::Error checkShape() const;
  bool readRowOfA(unsigned r, std::vector<float> &row) const;
  /// Blocks of scales go along K.
  TileOrder orderOfB() const {
    return aux->block ? TileOrder::ByRow : TileOrder::ByK;
  }
  std::vector<float> gatherB();
  /// Adds row `aRow` by the columns from `first` on to the sums in `sums`.
  void addIntegers(uint32_t *sums, unsigned first, unsigned count,
                   const float *aRow, const float *byK) const;
  void addScaled(unsigned r, const std::vector<float> &aRow,
                 std::vector<float> &sums, std::vector<uint8_t> &bad) const;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_TENSORMMA_H
