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
  /// Says that only these keys matter from now on.
  void narrow(const KeyRange &range) { scope = joinBoth(scope, range); }
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
  /// Emits an index that is the same for the whole tile, or counts it as a
  /// reason for which the formula is not exact.
  Value emitIndex(const Linear &x);
  Interval emitLinear(const Linear &x);
  /// Emits floor(x / divisor); nothing if that needs more than 32 bits.
  std::optional<Interval> emitQuotient(const Linear &x, int64_t divisor);
  Value divide(Value x, std::pair<int64_t, int64_t> bounds, int64_t divisor);
  KeyRange emitLeaf(const Linear &x);
  KeyRange emitSameLabel(const Formula &formula);
  KeyRange emitConjunction(const Formula &formula);
  /// Emits a captured number as i32, and counts it as too great if mask_mod
  /// computes with it.
  Value narrow(Value number, bool isComputed);
  /// Counts a number above 0 as a reason for which the formula is not exact.
  void addExcess(Value number);
  /// Emits 1 where x is at most y, else 0. Arithmetic of all values, without
  /// conditions, is what the check of barriers follows.
  Value isAtMost(Value x, Value y) {
    Value difference = add(subtract(y, x), constant(1));
    return min(max(difference, constant(0)), constant(1));
  }

  Value constant(int64_t value) {
    Value &made = constants[value];
    if (!made)
      made = arith::ConstantIntOp::create(b, value, 32);
    return made;
  }
  Value add(Value x, Value y) { return b.createOrFold<arith::AddIOp>(x, y); }
  Value min(Value x, Value y) { return b.createOrFold<arith::MinSIOp>(x, y); }
  Value max(Value x, Value y) { return b.createOrFold<arith::MaxSIOp>(x, y); }
  Value subtract(Value x, Value y) {
    return b.createOrFold<arith::SubIOp>(x, y);
  }
  Value multiply(Value x, Value y) {
    return b.createOrFold<arith::MulIOp>(x, y);
  }

  ImplicitLocOpBuilder &b;
  const AtomTable &atoms;
  ValueRange arguments;
  llvm::DenseMap<unsigned, Interval> intervals;
  /// Of 32 bits, each once.
  llvm::DenseMap<int64_t, Value> constants;
  /// The keys that matter: keys are looked for there.
  KeyRange scope;
  /// Above 0 where a captured number is too great, else 0; null without any.
  Value excess;
};

} // namespace mlir::attn::masks

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_KEYRANGE_H
