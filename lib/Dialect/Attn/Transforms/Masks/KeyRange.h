//===- KeyRange.h - Which keys a formula leaves to a tile -------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_KEYRANGE_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_KEYRANGE_H

#include "MaskFormula.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::attn::masks {

/// Keys that a formula leaves to a tile of queries, i32. Bounds that are null
/// are those of all keys.
struct KeyRange {
  /// It is false for all of the tile's queries outside of these keys.
  Value begin, end;
  /// It is true for all of them between the others, if those are known.
  bool hasFull = false;
  Value fullBegin, fullEnd;

  bool saysNothing() const { return !begin && !end && !hasFull; }
};

/// Writes the operations of a key_range.
class KeyRangeEmitter {
public:
  /// `arguments` are those of key_range.
  KeyRangeEmitter(ImplicitLocOpBuilder &b, const AtomTable &atoms,
                  ValueRange arguments)
      : b(b), atoms(atoms), arguments(arguments) {}

  KeyRange emit(const Formula &formula);
  /// Finds the keys that both of two formulas, or one of them, leave.
  KeyRange joinBoth(const KeyRange &x, const KeyRange &y);
  KeyRange joinEither(const KeyRange &x, const KeyRange &y);
  /// Returns what key_range yields. Captured numbers with which the formula is
  /// not exact give all keys.
  SmallVector<Value> finish(KeyRange range);

private:
  /// The least and the greatest value in the tile.
  struct Interval {
    Value low, high;
    bool isPoint() const { return low == high; }
  };

  Interval emitAtom(unsigned number);
  Interval emitElement(const Atom &element);
  Interval emitLinear(const Linear &x);
  /// Emits floor(x / divisor); nothing if that needs more than 32 bits.
  std::optional<Interval> emitQuotient(const Linear &x, int64_t divisor);
  Value divide(Value x, std::pair<int64_t, int64_t> bounds, int64_t divisor);
  KeyRange emitLeaf(const Linear &x);
  /// Emits the condition that a captured number is small enough, and returns it
  /// as i32.
  Value narrow(Value number);
  void require(Value condition);

  Value constant(int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value min(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(x, y); }
  Value select(Value condition, Value x, Value y) {
    return b.createOrFold<arith::SelectOp>(condition, x, y);
  }
  Value isAtMost(Value x, Value y) {
    return b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle, x, y);
  }

  ImplicitLocOpBuilder &b;
  const AtomTable &atoms;
  ValueRange arguments;
  llvm::DenseMap<unsigned, Interval> intervals;
  /// True where all captured numbers are small enough; null without any.
  Value isExact;
};

} // namespace mlir::attn::masks

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_KEYRANGE_H
