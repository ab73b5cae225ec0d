//===- MaskFormula.cpp - Conditions on query and key ----------------------===//

#include "MaskFormula.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::masks;

/// Lengths, and numbers of heads and batches, are below this.
static constexpr int64_t kIndexLimit = int64_t(1) << 29;
/// Sums beyond this are not told apart: products of two fit in 64 bits.
static constexpr int64_t kFar = int64_t(1) << 40;

int64_t Linear::getFactor(unsigned atom) const {
  for (auto [number, factor] : terms)
    if (number == atom)
      return factor;
  return 0;
}

Linear Linear::without(unsigned atom) const {
  Linear rest = *this;
  llvm::erase_if(rest.terms,
                 [&](const auto &term) { return term.first == atom; });
  return rest;
}

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

AtomTable::AtomTable(int64_t queries, int64_t keys) {
  auto addIndex = [&](AtomKind kind, int64_t count) {
    atoms.push_back({kind, 0, std::min(count, kIndexLimit) - 1,
                     /*hasKey=*/kind == AtomKind::Key});
  };
  addIndex(AtomKind::Batch, kIndexLimit);
  addIndex(AtomKind::Head, kIndexLimit);
  addIndex(AtomKind::Query, queries);
  addIndex(AtomKind::Key, keys);
}

/// Sets the bounds of an atom that is made of expressions.
static void findBounds(const AtomTable &table, Atom &atom) {
  if (atom.kind == AtomKind::Element || atom.kind == AtomKind::Scalar)
    return;
  auto [least, most] = table.getBounds(atom.operands.front());
  if (atom.kind == AtomKind::Quotient) {
    least = llvm::divideFloorSigned(least, atom.divisor);
    most = llvm::divideFloorSigned(most, atom.divisor);
  } else if (atom.kind == AtomKind::Absolute) {
    int64_t size = std::max(std::abs(least), std::abs(most));
    least = least > 0 ? least : most < 0 ? -most : 0;
    most = size;
  } else {
    auto [otherLeast, otherMost] = table.getBounds(atom.operands.back());
    bool isMinimum = atom.kind == AtomKind::Minimum;
    least =
        isMinimum ? std::min(least, otherLeast) : std::max(least, otherLeast);
    most = isMinimum ? std::min(most, otherMost) : std::max(most, otherMost);
  }
  atom.least = least;
  atom.most = most;
}

Linear AtomTable::add(Atom atom) {
  for (auto [number, known] : llvm::enumerate(atoms))
    if (known.kind == atom.kind && known.operands == atom.operands &&
        known.divisor == atom.divisor && known.value == atom.value &&
        known.isUnsigned == atom.isUnsigned)
      return make(number);
  atom.hasKey = llvm::any_of(
      atom.operands, [&](const Linear &operand) { return hasKey(operand); });
  findBounds(*this, atom);
  atoms.push_back(std::move(atom));
  return make(atoms.size() - 1);
}

static bool isCaptured(const Atom &atom) {
  return atom.kind == AtomKind::Scalar || atom.kind == AtomKind::Element;
}

void AtomTable::setComputed(const Linear &x) {
  for (auto [number, factor] : x.terms) {
    if (isCaptured(atoms[number]))
      atoms[number].isComputed = true;
    // Indices of elements are marked when these are read.
    else
      for (const Linear &operand : atoms[number].operands)
        setComputed(operand);
  }
}

bool AtomTable::hasCaptured(const Linear &x) const {
  return llvm::any_of(x.terms, [&](const auto &term) {
    const Atom &atom = atoms[term.first];
    return (isCaptured(atom) && atom.most == kMostCaptured) ||
           llvm::any_of(atom.operands, [&](const Linear &operand) {
             return hasCaptured(operand);
           });
  });
}

Linear AtomTable::divide(const Linear &x, int64_t divisor) {
  if (divisor == 1)
    return x;
  if (x.terms.empty())
    return makeConstant(llvm::divideFloorSigned(x.constant, divisor));
  Atom atom{AtomKind::Quotient, 0, 0, false, {x}};
  atom.divisor = divisor;
  return add(std::move(atom));
}

Linear AtomTable::combine(const Linear &x, const Linear &y,
                          int64_t factor) const {
  Linear sum;
  sum.constant = x.constant + factor * y.constant;
  const auto *a = x.terms.begin(), *b = y.terms.begin();
  while (a != x.terms.end() || b != y.terms.end()) {
    unsigned number =
        b == y.terms.end() || (a != x.terms.end() && a->first <= b->first)
            ? a->first
            : b->first;
    int64_t total = 0;
    if (a != x.terms.end() && a->first == number)
      total += (a++)->second;
    if (b != y.terms.end() && b->first == number)
      total += factor * (b++)->second;
    if (total != 0)
      sum.terms.push_back({number, total});
  }
  return sum;
}

std::pair<int64_t, int64_t> AtomTable::getBounds(const Linear &x) const {
  int64_t least = x.constant, most = x.constant;
  for (auto [number, factor] : x.terms) {
    const Atom &atom = atoms[number];
    least += factor * (factor > 0 ? atom.least : atom.most);
    most += factor * (factor > 0 ? atom.most : atom.least);
    least = std::max(least, -kFar);
    most = std::min(most, kFar);
  }
  return {least, most};
}

bool AtomTable::fits(const Linear &x) const {
  auto isSmall = [](int64_t value) { return std::abs(value) <= kMostValue; };
  if (!isSmall(x.constant) || !llvm::all_of(x.terms, [&](const auto &term) {
        return isSmall(term.second);
      }))
    return false;
  auto [least, most] = getBounds(x);
  return least >= -kMostValue && most <= kMostValue;
}

bool AtomTable::hasKey(const Linear &x) const {
  return llvm::any_of(
      x.terms, [&](const auto &term) { return atoms[term.first].hasKey; });
}

bool AtomTable::variesInTile(const Linear &x) const {
  return llvm::any_of(x.terms, [&](const auto &term) {
    const Atom &atom = atoms[term.first];
    if (atom.kind == AtomKind::Query || atom.kind == AtomKind::Key)
      return true;
    return llvm::any_of(atom.operands, [&](const Linear &operand) {
      return variesInTile(operand);
    });
  });
}

std::string AtomTable::printAtom(unsigned number) const {
  const Atom &atom = atoms[number];
  std::string operands = llvm::join(
      llvm::map_range(atom.operands, [&](const Linear &x) { return print(x); }),
      ", ");
  switch (atom.kind) {
  case AtomKind::Batch:
    return "b";
  case AtomKind::Head:
    return "h";
  case AtomKind::Query:
    return "q";
  case AtomKind::Key:
    return "kv";
  case AtomKind::Scalar:
    return "scalar";
  case AtomKind::Element:
    return "tensor[" + operands + "]";
  case AtomKind::Quotient:
    if (atom.operands.front().terms.size() > 1 ||
        atom.operands.front().constant != 0)
      operands = "(" + operands + ")";
    return operands + " // " + std::to_string(atom.divisor);
  case AtomKind::Minimum:
    return "min(" + operands + ")";
  case AtomKind::Maximum:
    return "max(" + operands + ")";
  case AtomKind::Absolute:
    return "|" + operands + "|";
  }
  llvm_unreachable("unknown kind of atom");
}

std::string AtomTable::print(const Linear &x) const {
  std::string text;
  auto append = [&](int64_t factor, const std::string &what) {
    if (text.empty())
      text += factor < 0 ? "-" : "";
    else
      text += factor < 0 ? " - " : " + ";
    text += what;
  };
  for (auto [number, factor] : x.terms) {
    std::string atom = printAtom(number);
    if (std::abs(factor) != 1)
      atom = std::to_string(std::abs(factor)) + " * (" + atom + ")";
    append(factor, atom);
  }
  if (x.constant != 0 || x.terms.empty())
    append(x.constant, std::to_string(std::abs(x.constant)));
  return text;
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

Formula Formula::join(Kind kind, std::vector<Formula> parts) {
  Kind neutral = kind == Kind::And ? Kind::True : Kind::False;
  Kind strong = kind == Kind::And ? Kind::False : Kind::True;
  Formula joined;
  joined.kind = kind;
  for (Formula &part : parts) {
    if (part.kind == strong)
      return part;
    if (part.kind != neutral)
      joined.parts.push_back(std::move(part));
  }
  if (joined.parts.empty())
    return get(kind == Kind::And);
  if (joined.parts.size() == 1) {
    Formula only = std::move(joined.parts.front());
    return only;
  }
  return joined;
}

bool Formula::hasLabels() const {
  return kind == Kind::SameLabel ||
         llvm::any_of(parts,
                      [](const Formula &part) { return part.hasLabels(); });
}

const Formula *Formula::findUnknown() const {
  if (kind == Kind::Unknown)
    return this;
  for (const Formula &part : parts)
    if (const Formula *found = part.findUnknown())
      return found;
  return nullptr;
}

/// Makes `factor * |x|`, or a minimum or maximum times a factor, `+ rest <= 0`.
static Formula splitExtreme(AtomTable &atoms, const Atom &atom, int64_t factor,
                            const Linear &rest, Location loc) {
  const Linear &x = atom.operands.front(), &y = atom.operands.back();
  bool isAbsolute = atom.kind == AtomKind::Absolute;
  // The greater of two is at most something if both are.
  bool isGreater = atom.kind != AtomKind::Minimum;
  Formula first = makeAtMostZero(atoms, atoms.combine(rest, x, factor), loc);
  Formula second = makeAtMostZero(
      atoms,
      atoms.combine(rest, isAbsolute ? x : y, isAbsolute ? -factor : factor),
      loc);
  bool isBoth = isGreater == (factor > 0);
  return Formula::join(isBoth ? Formula::Kind::And : Formula::Kind::Or,
                       {std::move(first), std::move(second)});
}

Formula masks::makeAtMostZero(AtomTable &atoms, const Linear &x, Location loc) {
  if (!atoms.fits(x))
    return Formula::unknown("numbers may need more than 32 bits", loc);
  auto [least, most] = atoms.getBounds(x);
  if (most <= 0 || least > 0)
    return Formula::get(most <= 0);

  SmallVector<std::pair<unsigned, int64_t>> withKey;
  for (auto term : x.terms)
    if (atoms[term.first].hasKey)
      withKey.push_back(term);
  // A copy, since more atoms may come.
  for (auto [number, factor] : withKey)
    if (Atom atom = atoms[number]; atom.kind == AtomKind::Minimum ||
                                   atom.kind == AtomKind::Maximum ||
                                   atom.kind == AtomKind::Absolute)
      return splitExtreme(atoms, atom, factor, x.without(number), loc);
  if (withKey.size() > 1)
    return Formula::unknown("the key stands there more than once", loc);
  if (!withKey.empty() && !atoms.fits(x.without(withKey.front().first)))
    return Formula::unknown("numbers may need more than 32 bits", loc);
  if (withKey.empty() || withKey.front().first == AtomTable::kKey) {
    Formula leaf;
    leaf.kind = Formula::Kind::AtMostZero;
    leaf.linear = x;
    return leaf;
  }

  // A quotient: floor(i / d) <= r is i <= d r + d - 1.
  auto [number, factor] = withKey.front();
  Atom atom = atoms[number];
  const Linear &inner = atom.operands.front();
  Linear limit =
      atoms.divide(atoms.scale(x.without(number), -1), std::abs(factor));
  if (factor > 0) {
    Linear bound = atoms.scale(limit, -atom.divisor);
    bound.constant -= atom.divisor - 1;
    return makeAtMostZero(atoms, atoms.combine(inner, bound), loc);
  }
  // -floor(i / d) <= r is i >= -d r.
  return makeAtMostZero(
      atoms, atoms.combine(atoms.scale(limit, -atom.divisor), inner, -1), loc);
}

/// Prints labels, of `row` in their last dimension.
static std::string print(const AtomTable &atoms, const Labels &labels,
                         unsigned row) {
  std::string text = "tensor[";
  for (const Linear &index : labels.indices)
    text += atoms.print(index) + ", ";
  Linear last = atoms.make(row);
  last.constant = labels.offset;
  return text + atoms.print(last) + "]";
}

std::string masks::print(const AtomTable &atoms, const Formula &formula) {
  switch (formula.kind) {
  case Formula::Kind::True:
    return "true";
  case Formula::Kind::False:
    return "false";
  case Formula::Kind::Unknown:
    return "...";
  case Formula::Kind::SameLabel:
    return ::print(atoms, formula.keyLabels, AtomTable::kKey) +
           " == " + ::print(atoms, formula.queryLabels, AtomTable::kQuery);
  case Formula::Kind::AtMostZero: {
    // The key on one side, with a factor above 0.
    const Linear &x = formula.linear;
    int64_t factor = x.getFactor(AtomTable::kKey);
    Linear left, rest = x;
    if (factor != 0) {
      left.terms.push_back({AtomTable::kKey, std::abs(factor)});
      rest = x.without(AtomTable::kKey);
    } else {
      left = x;
      left.constant = 0;
      rest.terms.clear();
    }
    bool isAbove = factor < 0;
    Linear right = atoms.scale(rest, isAbove ? 1 : -1);
    const char *sign = isAbove ? " >= " : " <= ";
    // Nobody writes kv <= n - 1.
    if (!right.terms.empty() && right.constant == (isAbove ? 1 : -1)) {
      right.constant = 0;
      sign = isAbove ? " > " : " < ";
    }
    return atoms.print(left) + sign + atoms.print(right);
  }
  case Formula::Kind::And:
  case Formula::Kind::Or: {
    const char *word = formula.kind == Formula::Kind::And ? " and " : " or ";
    std::string text;
    for (const Formula &part : formula.parts) {
      std::string inner = print(atoms, part);
      if (!part.parts.empty())
        inner = "(" + inner + ")";
      text += (text.empty() ? "" : word) + inner;
    }
    return text;
  }
  }
  llvm_unreachable("unknown kind of formula");
}
