//===- MaskFormula.h - Conditions on query and key --------------*- C++ -*-===//
//
// What a mask_mod says, as a formula: conjunctions and disjunctions of linear
// expressions that have to be at most 0. Expressions are sums of atoms with
// factors; an atom is an index, a captured number, or a quotient, minimum,
// maximum or absolute value of expressions. Each comparison is brought into a
// form in which the key stands alone, as far as that can be done.
//
// All expressions are exact: their values fit in 32 bits, with captured numbers
// up to kMostCaptured in size. Where greater ones are compared with indices,
// these are all on one side of them; where mask_mod computes with them, who
// uses the formula has to see that they are small enough.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_MASKFORMULA_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_MASKFORMULA_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <optional>
#include <vector>

namespace mlir::attn::masks {

/// The greatest size of a captured number with which formulas are exact.
constexpr int64_t kMostCaptured = int64_t(1) << 29;
/// The greatest size of any value of an expression.
constexpr int64_t kMostValue = (int64_t(1) << 31) - (int64_t(1) << 20);

/// A sum of atoms, by number and in that order, with factors other than 0.
struct Linear {
  SmallVector<std::pair<unsigned, int64_t>, 2> terms;
  int64_t constant = 0;

  bool operator==(const Linear &other) const {
    return terms == other.terms && constant == other.constant;
  }
  /// Returns the factor of an atom, 0 without it.
  int64_t getFactor(unsigned atom) const;
  /// Returns the sum without an atom.
  Linear without(unsigned atom) const;
};

enum class AtomKind {
  Batch,
  Head,
  Query,
  Key,
  /// A scalar from outside.
  Scalar,
  /// An element of a memref from outside, at a place that no query or key
  /// names.
  Element,
  /// The quotient of an expression and a number above 1, rounded down.
  Quotient,
  Minimum,
  Maximum,
  Absolute,
};

struct Atom {
  AtomKind kind;
  /// Bounds of its values.
  int64_t least, most;
  bool hasKey;
  /// Of the last four kinds: the expressions; of an element its indices.
  SmallVector<Linear, 2> operands;
  int64_t divisor = 1;
  /// The scalar, or the memref.
  Value value;
  /// True if an element of fewer bits has no sign.
  bool isUnsigned = false;
  /// True if mask_mod computes with a scalar or an element.
  bool isComputed = false;
};

/// The atoms of a formula, each once.
class AtomTable {
public:
  /// Atoms that are always there.
  enum : unsigned { kBatch, kHead, kQuery, kKey };

  /// `queries` and `keys` are bounds of their numbers, at least 1.
  AtomTable(int64_t queries, int64_t keys);

  unsigned size() const { return atoms.size(); }
  const Atom &operator[](unsigned number) const { return atoms[number]; }
  Linear makeConstant(int64_t value) const { return {{}, value}; }
  Linear make(unsigned atom) const { return {{{atom, 1}}, 0}; }
  /// Adds an atom, whose bounds it finds. Minima, maxima and absolute values of
  /// constants are not folded.
  Linear add(Atom atom);
  /// Notes that mask_mod computes with captured numbers of an expression.
  void setComputed(const Linear &x);
  /// Returns true if an expression has captured numbers of 32 bits or more.
  bool hasCaptured(const Linear &x) const;
  /// Returns the quotient rounded down.
  Linear divide(const Linear &x, int64_t divisor);

  /// Returns x + factor * y.
  Linear combine(const Linear &x, const Linear &y, int64_t factor = 1) const;
  Linear scale(const Linear &x, int64_t factor) const {
    return combine({}, x, factor);
  }
  /// Returns the bounds of an expression's values.
  std::pair<int64_t, int64_t> getBounds(const Linear &x) const;
  bool fits(const Linear &x) const;
  bool hasKey(const Linear &x) const;
  /// Returns true if values depend on the query or the key.
  bool variesInTile(const Linear &x) const;

  /// Prints an expression as a reader of mask_mod knows it.
  std::string print(const Linear &x) const;

private:
  std::string printAtom(unsigned number) const;

  std::vector<Atom> atoms;
};

/// Numbers of keys or queries, such as those of the documents that they are of:
/// a memref from outside, the indices of all dimensions but the last one, and
/// what is added to the key or the query there.
struct Labels {
  Value memref;
  SmallVector<Linear, 2> indices;
  int64_t offset = 0;
};

/// A formula. What is not known may be true or false anywhere.
struct Formula {
  enum class Kind { True, False, AtMostZero, SameLabel, And, Or, Unknown };
  Kind kind = Kind::True;
  Linear linear;
  /// That have to be equal, of the key and of the query.
  Labels keyLabels, queryLabels;
  std::vector<Formula> parts;
  /// Of what is not known: why, and where.
  std::string reason;
  std::optional<Location> loc;

  static Formula get(bool value) {
    Formula formula;
    formula.kind = value ? Kind::True : Kind::False;
    return formula;
  }
  static Formula unknown(const llvm::Twine &reason, Location loc) {
    Formula formula;
    formula.kind = Kind::Unknown;
    formula.reason = reason.str();
    formula.loc = loc;
    return formula;
  }
  /// Joins formulas, and leaves out those that decide nothing.
  static Formula join(Kind kind, std::vector<Formula> parts);

  /// Returns true if keys have to be looked for by their labels.
  bool hasLabels() const;
  /// Returns the first part that is not known, or null.
  const Formula *findUnknown() const;
};

/// Makes the formula `x <= 0`. In its leaves the key stands alone, or is not
/// there.
Formula makeAtMostZero(AtomTable &atoms, const Linear &x, Location loc);

/// Prints a formula as a reader of mask_mod knows it.
std::string print(const AtomTable &atoms, const Formula &formula);

} // namespace mlir::attn::masks

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_MASKS_MASKFORMULA_H
