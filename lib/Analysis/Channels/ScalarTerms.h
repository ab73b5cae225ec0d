//===- ScalarTerms.h - Numbers of a kernel by how they are computed -------===//
//
// Partitions of a kernel compute the same numbers each for itself. A term is a
// number by the way it is computed, so that those of two partitions are one
// term if they are computed alike from the same leaves: arguments, places of
// the CTA, the number of the tile. Terms are of unbounded integers: what wraps
// around is not followed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELS_SCALARTERMS_H
#define ATTN_LIB_ANALYSIS_CHANNELS_SCALARTERMS_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include <map>

namespace mlir::attn {

/// A term of a table, by its number there.
using TermId = unsigned;

struct Term {
  enum class Kind {
    Constant,
    /// A number that is given: an argument, a counter, a place.
    Leaf,
    Add,
    Mul,
    /// Of a number that is not negative by one that is positive, rounded down
    /// or up.
    Div,
    CeilDiv,
    Rem,
    And,
    Or,
    Xor,
    Max,
    Min,
    /// Condition, and the numbers where it is true and false.
    Select,
    /// Of two numbers by `value`, an arith::CmpIPredicate.
    Compare,
    /// The number itself where `value` bits with sign hold it, or, of 0 bits,
    /// where it is not negative; else none.
    Fit,
    /// An op that is not followed, of its operands.
    Opaque
  };
  Kind kind = Kind::Constant;
  /// The constant, the predicate or the bits.
  int64_t value = 0;
  SmallVector<TermId, 3> operands;
  /// A value of the kernel that the term is of.
  Value origin;
  /// Of a leaf: a partition has it by itself, as what a loop carries or what is
  /// read from shared memory, and nothing says what it is in other partitions.
  bool isLocal = false;
};

/// The terms of a kernel.
class TermTable {
public:
  const Term &operator[](TermId id) const { return terms[id]; }
  unsigned size() const { return terms.size(); }

  /// The term of an integer of the kernel.
  TermId get(Value value);
  TermId getConstant(int64_t value);
  /// A new leaf, of which `value` is one; further values are bound to it.
  TermId makeLeaf(Value value);
  /// Makes `value` a value of a term, before anything else asks for its term.
  void bind(Value value, TermId term) { known[value] = term; }
  /// True if a term is computed from `leaf`.
  bool dependsOn(TermId term, TermId leaf);

private:
  TermId add(Term term, const void *op = nullptr);
  TermId compute(Value value);
  TermId combine(Term::Kind kind, TermId a, TermId b, Value origin);
  TermId fit(TermId number, unsigned bits, Value origin);
  std::optional<TermId> convert(Operation *op);

  std::vector<Term> terms;
  DenseMap<Value, TermId> known;
  /// By kind, value, op or place of an opaque one, and operands.
  std::map<std::tuple<int, int64_t, const void *, SmallVector<TermId, 3>>,
           TermId>
      numbers;
  DenseMap<std::pair<TermId, TermId>, bool> depends;
};

/// Numbers that two others decide, the same in each run, as hashes of LLVM are
/// not.
uint64_t mixNumbers(uint64_t a, uint64_t b);
/// A number from 0 on as an integer of `type` with its sign holds it: of one
/// bit 0 or 1.
int64_t limitToType(int64_t value, Type type);

/// Values of terms for given leaves.
class TermValues {
public:
  explicit TermValues(const TermTable &terms) : terms(terms) {}

  /// Gives a leaf its value; what was computed from others is forgotten.
  void set(TermId leaf, int64_t value);
  /// The value of a term: nothing if it has none, as a quotient by zero, or
  /// depends on a leaf without value, or wraps around. What is read from memory
  /// has small values, the same at each time, that `seed` decides; ops on
  /// numbers that are not followed have none.
  std::optional<int64_t> get(TermId term);
  uint64_t seed = 0;

private:
  std::optional<int64_t> compute(const Term &term, TermId id);

  const TermTable &terms;
  DenseMap<TermId, int64_t> leaves;
  DenseMap<TermId, std::optional<int64_t>> memo;
};

/// Such as "n - 1": `names` prints what has no operands, and what is more than
/// a few levels deep.
std::string printTerm(const TermTable &terms, TermId term,
                      llvm::function_ref<std::string(const Term &)> names);

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELS_SCALARTERMS_H
