//===- MaskReader.h - From a mask_mod to a formula --------------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_MASKREADER_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_MASKREADER_H

#include "MaskFormula.h"

namespace mlir::attn::masks {

/// Reads the values of one mask_mod.
class MaskReader {
public:
  explicit MaskReader(AttentionOp op);

  /// Reads a condition, an i1.
  Formula read(Value condition) { return read(condition, /*isTrue=*/true); }

  AtomTable atoms;

private:
  /// An expression, or why there is none.
  struct Number {
    std::optional<Linear> value;
    std::string reason;
    std::optional<Location> loc;
  };

  /// Reads a condition, or with `isTrue` false its negation.
  Formula read(Value condition, bool isTrue);
  Formula readComparison(arith::CmpIOp compare, bool isTrue);
  /// Reads the equality of labels; nothing if it is something else.
  std::optional<Formula> readSameLabel(Value x, Value y);
  /// Reads an element that the key or the query indexes, and says which.
  std::optional<std::pair<Labels, unsigned>> readLabels(Value value);
  /// Reads `both` of two conditions, or one of them.
  Formula readPair(Value x, bool isX, Value y, bool isY, bool both);
  /// Reads x ? y : z.
  Formula readChoice(Value x, Value y, Value z, bool isTrue);

  Number readNumber(Value value);
  Number readOperation(Operation *op);
  Number readQuotient(Operation *op);
  Number readRemainder(Operation *op);
  Number readProduct(Operation *op);
  Number readPair(Operation *op, AtomKind kind);
  Number readElement(memref::LoadOp load, bool isUnsigned);
  Number fail(const llvm::Twine &reason, Location loc) const {
    return {std::nullopt, reason.str(), loc};
  }
  /// An expression, if it needs no more than 32 bits.
  Number finish(const Linear &x, Location loc) const;

  Region &region;
  llvm::DenseMap<Value, Number> numbers;
  /// Conditions that may still be read: shared ones are read for each use.
  int64_t budget = 1000;
};

} // namespace mlir::attn::masks

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_MASKREADER_H
