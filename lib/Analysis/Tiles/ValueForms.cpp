//===- ValueForms.cpp - How values depend on tiles and blocks -------------===//
//
// What holds of a value follows from what holds of those that it is computed
// from: any op on values that repeat gives one that repeats. A quotient of the
// number is the same for some in a row, a remainder repeats. Where a value is
// between two numbers decides comparisons and minima: the last tiles may be
// others than those before them, so a domain with too many kinds is halved.
//
//===----------------------------------------------------------------------===//

#include "ValueForms.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Larger periods, factors and bounds are not told from any.
static constexpr int64_t kMostNumber = int64_t(1) << 31;

/// Nor are numbers with more bits, sign included.
static constexpr unsigned kMostBits = 32;

/// A domain with more kinds than this is halved.
static constexpr int64_t kFewEnough = 1 << 12;

static int64_t getCommonPeriod(int64_t a, int64_t b) {
  if (a == 0 || b == 0)
    return 0;
  int64_t both = std::lcm(a, b);
  return both > kMostNumber ? 0 : both;
}

void Dependence::join(const Dependence &other) {
  block = std::gcd(block, other.block);
  period = getCommonPeriod(period, other.period);
}

ValueForms::Form ValueForms::getNumber(unsigned dim) const {
  Form form;
  form.in = {domain[dim].first, domain[dim].second - 1};
  if (form.in.isOne())
    return form;
  form.depends[dim] = {1, 0};
  form.digit = Digit();
  form.digit->dim = dim;
  return form;
}

/// A number of the launch. Which CTA of its cluster it is counts as one that is
/// not known, since all of them are looked at together.
ValueForms::Form ValueForms::getLeaf(Operation *op) const {
  Form form;
  if (auto id = dyn_cast<gpu::BlockIdOp>(op)) {
    unsigned dim = unsigned(id.getDimension());
    if (!isOfTile)
      return getNumber(dim);
    form.in = {0, dim == 0 ? launch.cluster - 1 : 0};
  } else if (auto grid = dyn_cast<gpu::GridDimOp>(op)) {
    int64_t blocks = launch.grid[unsigned(grid.getDimension())];
    if (blocks > 0)
      form.in = {blocks, blocks};
  } else if (auto id = dyn_cast<gpu::ClusterBlockIdOp>(op)) {
    bool isRow = id.getDimension() == gpu::Dimension::x;
    form.in = {0, isRow ? launch.cluster - 1 : 0};
    if (isRow && !isOfTile)
      form.depends[0] = {1, launch.cluster};
  }
  return form;
}

const ValueForms::Form &ValueForms::getForm(Value value) {
  if (auto known = forms.find(value); known != forms.end())
    return known->second;
  Operation *def = value.getDefiningOp();
  Form form;
  if (std::optional<int64_t> number = getConstantNumber(value)) {
    form.in = {*number, *number};
  } else if (isa_and_nonnull<gpu::BlockIdOp, gpu::GridDimOp,
                             gpu::ClusterBlockIdOp>(def)) {
    form = getLeaf(def);
  } else if (def && def->getNumResults() == 1 && def->getNumRegions() == 0 &&
             def->getNumOperands() != 0 && def->getNumOperands() <= 3 &&
             llvm::all_of(def->getOperandTypes(),
                          [](Type type) { return type.isIntOrIndex(); }) &&
             getPlainArithmetic(def)) {
    SmallVector<Form, 3> operands;
    for (Value operand : def->getOperands())
      operands.push_back(getForm(operand));
    form = compute(def, operands);
  } else {
    // What has no number tells all of them apart.
    form.depends.fill({1, 0});
  }
  // What is one number depends on nothing.
  if (form.in.isOne()) {
    form.depends.fill(Dependence());
    form.digit.reset();
  }
  return forms[value] = form;
}

void ValueForms::setSum(Form &form, const Form &a, const Form &b,
                        int64_t times) const {
  if (!a.in.isKnown() || !b.in.isKnown())
    return;
  auto [low, high] = std::minmax({times * b.in.least, times * b.in.greatest});
  form.in = {a.in.least + low, a.in.greatest + high};
  bool areAlike = a.digit && b.digit && a.digit->isAlike(*b.digit);
  if (!areAlike && !(a.digit && b.in.isOne()) && !(a.in.isOne() && b.digit))
    return;
  form.digit = a.digit ? *a.digit : *b.digit;
  form.digit->factor =
      (a.digit ? a.digit->factor : 0) + times * (b.digit ? b.digit->factor : 0);
  form.digit->addend = (a.digit ? a.digit->addend : a.in.least) +
                       times * (b.digit ? b.digit->addend : b.in.least);
}

void ValueForms::setProduct(Form &form, const Form &a, int64_t by) const {
  if (!a.in.isKnown() || std::abs(by) > kMostNumber)
    return;
  auto [low, high] = std::minmax({by * a.in.least, by * a.in.greatest});
  form.in = {low, high};
  form.digit = a.digit;
  if (form.digit) {
    form.digit->factor *= by;
    form.digit->addend *= by;
  }
}

void ValueForms::setQuotient(Form &form, const Form &a, int64_t by) const {
  if (!a.in.isKnown() || a.in.least < 0 || by <= 0)
    return;
  form.in = {a.in.least / by, a.in.greatest / by};
  if (a.digit && a.digit->isPlain() && a.digit->divisor <= kMostNumber / by) {
    form.digit = a.digit;
    form.digit->divisor *= by;
  }
}

/// A remainder of a digit is one of the number, if the digit itself repeats
/// after as many or never.
void ValueForms::setRemainder(Form &form, const Form &a, int64_t by) const {
  if (by <= 0)
    return;
  if (a.in.isKnown() && a.in.least >= 0 && a.in.greatest < by) {
    form = a;
    return;
  }
  form.in = {0, by - 1};
  if (!a.in.isKnown() || !a.digit || a.digit->divisor > kMostNumber / by)
    return;
  int64_t period = a.digit->divisor * by;
  if (a.digit->modulus % period != 0)
    return;
  form.depends[a.digit->dim] = {a.digit->divisor, period};
  if (a.digit->isPlain()) {
    form.digit = a.digit;
    form.digit->modulus = period;
  }
}

/// Decides a comparison, a minimum or a maximum where the operands are apart.
void ValueForms::setComparison(Form &form, Operation *op, const Form &a,
                               const Form &b) const {
  bool isMinimum = isa<arith::MinSIOp, arith::MinUIOp>(op);
  bool isMaximum = isa<arith::MaxSIOp, arith::MaxUIOp>(op);
  auto compare = dyn_cast<arith::CmpIOp>(op);
  bool isUnsigned =
      isa<arith::MinUIOp, arith::MaxUIOp>(op) ||
      (compare && compare.getPredicate() >= arith::CmpIPredicate::ult);
  bool areKnown = a.in.isKnown() && b.in.isKnown() &&
                  (!isUnsigned || (a.in.least >= 0 && b.in.least >= 0));
  if (!areKnown)
    return;
  if (compare) {
    if (a.in.greatest >= b.in.least && b.in.greatest >= a.in.least)
      return;
    RegionNumber operands[2], result;
    operands[0].integer = a.in.least;
    operands[1].integer = b.in.least;
    if (getPlainArithmetic(op)(operands, result)) {
      form = Form();
      form.in = {result.integer, result.integer};
    }
    return;
  }
  auto least = isMinimum ? std::min(a.in.least, b.in.least)
                         : std::max(a.in.least, b.in.least);
  auto greatest = isMinimum ? std::min(a.in.greatest, b.in.greatest)
                            : std::max(a.in.greatest, b.in.greatest);
  if (a.in.greatest <= b.in.least)
    form = isMaximum ? b : a;
  else if (b.in.greatest <= a.in.least)
    form = isMaximum ? a : b;
  else
    form.in = {least, greatest};
}

/// `x - x / by * by` is a remainder.
bool ValueForms::setRest(Form &form, Operation *op) {
  auto product = op->getOperand(1).getDefiningOp<arith::MulIOp>();
  if (!product)
    return false;
  for (unsigned place : {0, 1}) {
    auto quotient = product->getOperand(place).getDefiningOp<arith::DivUIOp>();
    if (!quotient || quotient.getLhs() != op->getOperand(0))
      continue;
    const Form x = getForm(quotient.getLhs());
    const Interval by = getForm(quotient.getRhs()).in;
    const Interval times = getForm(product->getOperand(1 - place)).in;
    if (!by.isOne() || !times.isOne() || by.least != times.least ||
        by.least <= 0 || !x.in.isKnown() || x.in.least < 0)
      continue;
    setRemainder(form, x, by.least);
    return true;
  }
  return false;
}

ValueForms::Form ValueForms::compute(Operation *op, ArrayRef<Form> x) {
  Form form;
  for (const Form &operand : x)
    for (auto [own, other] : llvm::zip(form.depends, operand.depends))
      own.join(other);
  if (llvm::all_of(x, [](const Form &operand) { return operand.in.isOne(); })) {
    RegionNumber operands[3], result;
    for (auto [place, operand] : llvm::enumerate(x))
      operands[place].integer = operand.in.least;
    form = Form();
    if (getPlainArithmetic(op)(operands, result))
      form.in = {result.integer, result.integer};
    return form;
  }
  const Interval by = x.back().in;
  unsigned width = getWidth(op->getResult(0).getType());
  if (isa<arith::AddIOp>(op)) {
    setSum(form, x[0], x[1], 1);
  } else if (isa<arith::SubIOp>(op)) {
    if (!setRest(form, op))
      setSum(form, x[0], x[1], -1);
  } else if (isa<arith::MulIOp>(op)) {
    if (by.isOne())
      setProduct(form, x[0], by.least);
    else if (x[0].in.isOne())
      setProduct(form, x[1], x[0].in.least);
  } else if (isa<arith::DivUIOp, arith::DivSIOp>(op) && by.isOne()) {
    setQuotient(form, x[0], by.least);
  } else if (isa<arith::ShRUIOp, arith::ShRSIOp>(op) && by.isOne() &&
             by.least >= 0 && by.least < 32) {
    setQuotient(form, x[0], int64_t(1) << by.least);
  } else if (isa<arith::RemUIOp, arith::RemSIOp>(op) && by.isOne()) {
    if (x[0].in.isKnown() && x[0].in.least >= 0)
      setRemainder(form, x[0], by.least);
  } else if (isa<arith::AndIOp>(op) && by.isOne() && by.least > 0 &&
             llvm::isPowerOf2_64(by.least + 1)) {
    setRemainder(form, x[0], by.least + 1);
  } else if (isa<arith::CmpIOp, arith::MinSIOp, arith::MinUIOp, arith::MaxSIOp,
                 arith::MaxUIOp>(op)) {
    setComparison(form, op, x[0], x[1]);
  } else if (isa<arith::SelectOp>(op)) {
    if (x[0].in.isOne())
      form = x[0].in.least != 0 ? x[1] : x[2];
    else if (x[1].in.isKnown() && x[2].in.isKnown())
      form.in = {std::min(x[1].in.least, x[2].in.least),
                 std::max(x[1].in.greatest, x[2].in.greatest)};
  } else if (isa<arith::TruncIOp>(op) && width < 32) {
    setRemainder(form, x[0], int64_t(1) << width);
  } else if (isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
                 arith::ExtSIOp, arith::TruncIOp>(op)) {
    if (x[0].in.isKnown() && x[0].in.least >= 0)
      form = x[0];
  }
  // What leaves its type is another number.
  width = std::min(width, kMostBits);
  if (!form.in.isKnown() || !llvm::isIntN(width, form.in.least) ||
      !llvm::isIntN(width, form.in.greatest)) {
    form.in = Interval();
    form.digit.reset();
  }
  if (form.digit && (std::abs(form.digit->factor) > kMostNumber ||
                     std::abs(form.digit->addend) > kMostNumber))
    form.digit.reset();
  if (form.digit) {
    form.depends.fill(Dependence());
    form.depends[form.digit->dim] = {
        std::gcd(form.digit->divisor, form.digit->modulus),
        form.digit->modulus};
  }
  return form;
}

//===----------------------------------------------------------------------===//
// One of each kind
//===----------------------------------------------------------------------===//

/// How many numbers of a range are not alike.
static int64_t countKinds(std::pair<int64_t, int64_t> range,
                          const Dependence &depends) {
  int64_t count = range.second - range.first;
  if (depends.block == 0)
    return std::min<int64_t>(count, 1);
  if (depends.period != 0)
    count = std::min(count, depends.period);
  return count == 0 ? 0 : (count - 1) / depends.block + 2;
}

static SmallVector<int64_t> listKinds(std::pair<int64_t, int64_t> range,
                                      const Dependence &depends) {
  SmallVector<int64_t> numbers;
  auto [first, last] = range;
  if (depends.period != 0)
    last = std::min(last, first + depends.period);
  for (int64_t number = first; number < last;
       number = (number / depends.block + 1) * depends.block) {
    numbers.push_back(number);
    if (depends.block == 0)
      break;
  }
  return numbers;
}

namespace {

/// Halves domains until their kinds are few.
class KindWalk {
public:
  KindWalk(const LaunchShape &launch, bool isOfTile, ArrayRef<Value> tiles,
           ArrayRef<Value> values,
           llvm::function_ref<void(std::array<int64_t, 3>)> take)
      : launch(launch), isOfTile(isOfTile), tiles(tiles), values(values),
        take(take) {}
  bool walk(const Domain &domain);

private:
  Dependences getDependences(const Domain &domain) const;

  LaunchShape launch;
  bool isOfTile;
  ArrayRef<Value> tiles, values;
  llvm::function_ref<void(std::array<int64_t, 3>)> take;
  int64_t taken = 0;
};

} // namespace

Dependences KindWalk::getDependences(const Domain &domain) const {
  ValueForms forms(launch, domain, isOfTile);
  for (Value tile : tiles)
    forms.setTile(tile);
  Dependences all;
  for (Value value : values)
    for (auto [own, other] : llvm::zip(all, forms.get(value)))
      own.join(other);
  if (isOfTile)
    return all;
  // The CTAs of a cluster are looked at with the first of them.
  Dependence &row = all[0];
  if (row.block % launch.cluster != 0 || row.block == 0)
    row = {launch.cluster, row.block == 0
                               ? launch.cluster
                               : getCommonPeriod(row.period, launch.cluster)};
  return all;
}

bool KindWalk::walk(const Domain &domain) {
  Dependences depends = getDependences(domain);
  int64_t kinds = 1, most = 0;
  unsigned widest = 0;
  for (unsigned dim = 0; dim < 3; ++dim) {
    int64_t own = countKinds(domain[dim], depends[dim]);
    if (own == 0)
      return true;
    if (own > most)
      widest = dim;
    most = std::max(most, own);
    kinds = std::min(kinds, kMostNumber) * std::min(own, kMostTiles);
  }
  auto [first, last] = domain[widest];
  if (kinds > kFewEnough && last - first > kFewEnough) {
    Domain low = domain, high = domain;
    int64_t middle = first + (last - first) / 2;
    // Clusters stay whole.
    middle = middle / launch.cluster * launch.cluster;
    low[widest].second = high[widest].first = middle;
    return walk(low) && walk(high);
  }
  taken += kinds;
  if (taken > kMostTiles)
    return false;
  for (int64_t z : listKinds(domain[2], depends[2]))
    for (int64_t y : listKinds(domain[1], depends[1]))
      for (int64_t x : listKinds(domain[0], depends[0]))
        take({x, y, z});
  return true;
}

bool barriers::forKinds(const LaunchShape &launch, const Domain &domain,
                        bool isOfTile, ArrayRef<Value> tiles,
                        ArrayRef<Value> values,
                        llvm::function_ref<void(std::array<int64_t, 3>)> take) {
  return KindWalk(launch, isOfTile, tiles, values, take).walk(domain);
}
