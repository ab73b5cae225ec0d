//===- ValueForms.h - How values depend on tiles and blocks -----*- C++ -*-===//
//
// A million tiles are of few kinds, since what matters of a tile is a remainder
// of its number, or a quotient. From how values are computed follows which
// tiles are alike, so that one of each suffices.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_TILES_VALUEFORMS_H
#define ATTN_LIB_ANALYSIS_TILES_VALUEFORMS_H

#include "LaunchNumbers.h"

namespace mlir::attn::barriers {

/// Up to three numbers that count up, the number of a tile or those of a block,
/// and from where up to where each of them goes.
using Domain = std::array<std::pair<int64_t, int64_t>, 3>;

/// How a value depends on one of these numbers: it is the same for `block` of
/// them in a row, counted from 0 on, and again after `period`. With a block of
/// zero it does not depend on the number, with a period of zero it need not
/// come up again.
struct Dependence {
  int64_t block = 0, period = 1;
  /// Makes this hold for what two values have in common.
  void join(const Dependence &other);
};
using Dependences = std::array<Dependence, 3>;

/// Works out how values depend on numbers in a domain.
class ValueForms {
public:
  /// With `isOfTile` the first number is that of a tile, and a CTA is any one
  /// of the first cluster; without it the numbers are those of a block.
  ValueForms(const LaunchShape &launch, const Domain &domain, bool isOfTile)
      : launch(launch), domain(domain), isOfTile(isOfTile) {}
  /// Says which value is the number of the tile.
  void setTile(Value tile) { forms[tile] = getNumber(0); }
  const Dependences &get(Value value) { return getForm(value).depends; }

private:
  /// Numbers that a value is between, those at the ends included.
  struct Interval {
    int64_t least = INT64_MIN, greatest = INT64_MAX;
    bool isOne() const { return least == greatest; }
    bool isKnown() const { return least != INT64_MIN; }
  };
  /// factor * ((number mod modulus) div divisor) + addend, of the number in
  /// one of the dimensions; without a modulus if that is zero.
  struct Digit {
    unsigned dim = 0;
    int64_t divisor = 1, modulus = 0, factor = 1, addend = 0;
    bool isPlain() const { return factor == 1 && addend == 0; }
    bool isAlike(const Digit &other) const {
      return dim == other.dim && divisor == other.divisor &&
             modulus == other.modulus;
    }
  };
  struct Form {
    Dependences depends;
    Interval in;
    std::optional<Digit> digit;
  };

  const Form &getForm(Value value);
  Form getNumber(unsigned dim) const;
  Form getLeaf(Operation *op) const;
  Form compute(Operation *op, ArrayRef<Form> x);
  void setSum(Form &form, const Form &a, const Form &b, int64_t times) const;
  void setProduct(Form &form, const Form &a, int64_t by) const;
  void setQuotient(Form &form, const Form &a, int64_t by) const;
  void setRemainder(Form &form, const Form &a, int64_t by) const;
  void setComparison(Form &form, Operation *op, const Form &a,
                     const Form &b) const;
  bool setRest(Form &form, Operation *op);

  LaunchShape launch;
  Domain domain;
  bool isOfTile;
  llvm::DenseMap<Value, Form> forms;
};

/// Calls `take` with numbers of a domain, so that of all that are alike by the
/// values' forms at least one is there. False if there are too many of them.
bool forKinds(const LaunchShape &launch, const Domain &domain, bool isOfTile,
              ArrayRef<Value> tiles, ArrayRef<Value> values,
              llvm::function_ref<void(std::array<int64_t, 3>)> take);

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_TILES_VALUEFORMS_H
