//===- CountProver.cpp - Are two numbers of acquires always equal? --------===//
//
// Numbers of acquires are sums over loops and branches. Where a maximum, a
// trip count or a condition has two cases, both are followed, unless what holds
// already leaves one of them; along each path the numbers are affine, and equal
// if no integers make their difference positive or negative (Presburger
// arithmetic). Quotients are numbers of their own at first, and if that does
// not suffice, what they are the quotients of.
//
//===----------------------------------------------------------------------===//

#include "ChannelBalance.h"
#include "mlir/Analysis/Presburger/IntegerRelation.h"
#include "mlir/Analysis/Presburger/Simplex.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::presburger;
using StepKind = ChannelStep::Kind;
using TermKind = Term::Kind;

/// Paths, and systems of inequalities, after which it gives up.
static constexpr unsigned kMaxPaths = 400;
static constexpr unsigned kMaxQueries = 3000;

namespace {

/// A constant and the coefficients of variables.
struct Affine {
  int64_t constant = 0;
  SmallVector<int64_t, 8> coefficients;
  /// Some number is none of 64 bits.
  bool overflows = false;

  bool isConstant() const {
    return llvm::all_of(coefficients, [](int64_t c) { return c == 0; });
  }
  int64_t get(unsigned variable) const {
    return variable < coefficients.size() ? coefficients[variable] : 0;
  }
  Affine &add(const Affine &other, int64_t factor) {
    overflows |= other.overflows;
    addTo(constant, other.constant, factor);
    if (coefficients.size() < other.coefficients.size())
      coefficients.resize(other.coefficients.size());
    for (auto [variable, c] : llvm::enumerate(other.coefficients))
      addTo(coefficients[variable], c, factor);
    return *this;
  }

private:
  void addTo(int64_t &sum, int64_t added, int64_t factor) {
    int64_t product = 0;
    overflows |= llvm::MulOverflow(added, factor, product) ||
                 llvm::AddOverflow(sum, product, sum);
  }
};

Affine operator+(Affine a, const Affine &b) { return a.add(b, 1); }
Affine operator-(Affine a, const Affine &b) { return a.add(b, -1); }
Affine operator*(Affine a, int64_t factor) { return Affine().add(a, factor); }
Affine makeConstant(int64_t value) {
  Affine affine;
  affine.constant = value;
  return affine;
}

/// Values of a loop's counter, of which an op runs in each.
struct Range {
  unsigned counter = 0;
  TermId leaf = 0;
  Affine first, end;
};

class CountProver {
public:
  CountProver(ChannelProgram &program, bool dividesOut)
      : program(program), terms(program.terms), dividesOut(dividesOut) {}

  bool areEqual(const AcquireCount &a, const AcquireCount &b);
  bool takesSigns() const { return takesSign; }

private:
  using Steps = std::vector<ChannelStep>;
  using Count = llvm::function_ref<std::optional<Affine>(const Range *)>;

  // Along a path.
  std::optional<Affine> count(const Steps &steps, const AcquireCount &of,
                              const Range *range);
  std::optional<Affine> countLoop(const ChannelStep &loop,
                                  const AcquireCount &of);
  std::optional<Affine> countIf(TermId condition, const Range *range,
                                Count then, Count otherwise);
  std::optional<Affine> countSide(Affine bound, const Range &range, Count then,
                                  Count otherwise);
  bool dependsOnCounter(const Steps &steps, TermId counter,
                        const AcquireCount &of);
  std::optional<Affine> get(TermId term);
  std::optional<Affine> compute(TermId term);
  std::optional<Affine> getRest(TermId term);
  std::optional<bool> isTrue(TermId condition);
  std::optional<Affine> divide(Affine a, int64_t by);
  Affine getVariable(TermId term, std::optional<int64_t> least,
                     std::optional<int64_t> most = std::nullopt);
  void assumeTile();

  // Paths.
  bool decide(Affine atLeastZero);
  SmallVector<int64_t, 16> makeRow(const Affine &affine) const;
  void assume(const Affine &atLeastZero);
  bool isPossible(const Affine &atLeastZero);
  bool isPossibleForIntegers(const Affine &atLeastZero);
  bool next();

  ChannelProgram &program;
  TermTable &terms;
  bool dividesOut;
  /// What holds on the path, twice.
  std::vector<Affine> constraints;
  std::optional<Simplex> simplex;
  unsigned numVariables = 0;
  /// Those of loop counters, which stand for no number.
  DenseSet<unsigned> counters;
  DenseMap<TermId, Affine> memo;
  /// Which side was taken, and whether the other one is left.
  SmallVector<std::pair<bool, bool>> decisions;
  unsigned numDecided = 0;
  unsigned numQueries = 0;
  bool givesUp = false;
  /// Numbers without sign are taken to be not negative.
  bool takesSign = false;
};

} // namespace

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

SmallVector<int64_t, 16> CountProver::makeRow(const Affine &affine) const {
  SmallVector<int64_t, 16> row(numVariables + 1);
  llvm::copy(affine.coefficients, row.begin());
  row.back() = affine.constant;
  return row;
}

/// Makes what is not negative hold from here on.
void CountProver::assume(const Affine &affine) {
  if ((givesUp |= affine.overflows))
    return;
  constraints.push_back(affine);
  simplex->addInequality(getDynamicAPIntVec(makeRow(affine)));
}

/// True if a number can be not negative while what holds does: for fractions,
/// which is so for more than for integers.
bool CountProver::isPossible(const Affine &affine) {
  if (++numQueries > kMaxQueries || affine.overflows)
    givesUp = true;
  if (givesUp)
    return true;
  unsigned snapshot = simplex->getSnapshot();
  simplex->addInequality(getDynamicAPIntVec(makeRow(affine)));
  bool isEmpty = simplex->isEmpty();
  simplex->rollback(snapshot);
  return !isEmpty;
}

/// The same for integers.
bool CountProver::isPossibleForIntegers(const Affine &affine) {
  if (!isPossible(affine))
    return false;
  IntegerPolyhedron set(PresburgerSpace::getSetSpace(numVariables));
  for (const Affine &constraint : constraints)
    set.addInequality(makeRow(constraint));
  set.addInequality(makeRow(affine));
  return !set.isIntegerEmpty();
}

bool CountProver::decide(Affine affine) {
  givesUp |= affine.overflows;
  if (affine.isConstant())
    return affine.constant >= 0;
  for (unsigned counter : counters)
    givesUp |= affine.get(counter) != 0;
  if (givesUp)
    return true;
  Affine below = makeConstant(-1) - affine;
  if (numDecided == decisions.size()) {
    bool canBe = isPossible(affine), canBeBelow = isPossible(below);
    decisions.push_back({canBe, canBe && canBeBelow});
  }
  bool taken = decisions[numDecided++].first;
  assume(taken ? affine : below);
  return taken;
}

/// Turns to the next path, if there is one.
bool CountProver::next() {
  while (!decisions.empty() && !decisions.back().second)
    decisions.pop_back();
  if (decisions.empty())
    return false;
  decisions.back() = {false, false};
  return true;
}

bool CountProver::areEqual(const AcquireCount &a, const AcquireCount &b) {
  for (unsigned path = 0; path < kMaxPaths; ++path) {
    constraints.clear();
    counters.clear();
    memo.clear();
    numVariables = numDecided = 0;
    simplex.emplace(0);
    assumeTile();
    auto first = count(program.partitions[a.partition].tile, a, nullptr);
    auto second = count(program.partitions[b.partition].tile, b, nullptr);
    if (!first || !second || givesUp)
      return false;
    Affine more = *first - *second - makeConstant(1);
    Affine less = *second - *first - makeConstant(1);
    if (isPossibleForIntegers(more) || isPossibleForIntegers(less))
      return false;
    if (!next())
      return !givesUp;
  }
  return false;
}

/// The tile is one that the loop has.
void CountProver::assumeTile() {
  if (!program.tiles || program.tiles->condition || !dividesOut)
    return;
  auto tile = get(program.tiles->tile.front());
  auto lower = get(program.tiles->lower), upper = get(program.tiles->upper);
  if (tile && lower)
    assume(*tile - *lower);
  if (tile && upper)
    assume(*upper - *tile - makeConstant(1));
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

Affine CountProver::getVariable(TermId term, std::optional<int64_t> least,
                                std::optional<int64_t> most) {
  Affine variable;
  variable.coefficients.resize(++numVariables);
  variable.coefficients.back() = 1;
  simplex->appendVariable();
  if (least)
    assume(variable - makeConstant(*least));
  if (most)
    assume(makeConstant(*most) - variable);
  return variable;
}

/// Rounded down.
std::optional<Affine> CountProver::divide(Affine a, int64_t by) {
  bool isWhole =
      llvm::all_of(a.coefficients, [&](int64_t c) { return c % by == 0; });
  if (isWhole) {
    for (int64_t &c : a.coefficients)
      c /= by;
    a.constant = llvm::divideFloorSigned(a.constant, by);
    return a;
  }
  for (unsigned counter : counters)
    if (a.get(counter) != 0)
      return std::nullopt;
  Affine quotient = getVariable(0, std::nullopt);
  assume(a - quotient * by);
  assume(quotient * by + makeConstant(by - 1) - a);
  return quotient;
}

/// What a division by a constant leaves: of an And, by the power of two above
/// its mask.
std::optional<Affine> CountProver::getRest(TermId id) {
  const Term &term = terms[id];
  bool isMask = term.kind == TermKind::And;
  for (unsigned side : {1, 0}) {
    const Term &constant = terms[term.operands[side]];
    int64_t by = constant.value + isMask;
    if (constant.kind != TermKind::Constant || by <= 0 ||
        (isMask && !llvm::isPowerOf2_64(by)) || (!isMask && side == 0))
      continue;
    auto a = get(term.operands[1 - side]);
    auto quotient = a ? divide(*a, by) : std::nullopt;
    if (quotient)
      return *a - *quotient * by;
    return getVariable(id, 0, by - 1);
  }
  return getVariable(id, isMask ? std::nullopt : std::optional<int64_t>(0));
}

std::optional<Affine> CountProver::get(TermId term) {
  if (auto found = memo.find(term); found != memo.end())
    return found->second;
  auto value = compute(term);
  if (value)
    memo[term] = *value;
  return value;
}

std::optional<Affine> CountProver::compute(TermId id) {
  const Term &term = terms[id];
  auto operand = [&](unsigned index) { return get(term.operands[index]); };
  bool isBit = term.origin && term.origin.getType().isInteger(1);
  auto getAny = [&] {
    return isBit ? getVariable(id, 0, 1) : getVariable(id, std::nullopt);
  };
  switch (term.kind) {
  case TermKind::Constant:
    return makeConstant(term.value);
  case TermKind::Leaf: {
    Operation *op = term.origin ? term.origin.getDefiningOp() : nullptr;
    bool isPlace = op && isa<gpu::GPUDialect>(op->getDialect());
    if (!isPlace)
      return getAny();
    if (isa<gpu::ClusterBlockIdOp>(op))
      return getVariable(id, 0, program.getClusterSize() - 1);
    return getVariable(id, 0);
  }
  case TermKind::Add: {
    auto a = operand(0), b = operand(1);
    return a && b ? std::optional(*a + *b) : std::nullopt;
  }
  case TermKind::Mul: {
    auto a = operand(0), b = operand(1);
    if (!a || !b)
      return std::nullopt;
    if (a->isConstant())
      return *b * a->constant;
    if (b->isConstant())
      return *a * b->constant;
    return getVariable(id, std::nullopt);
  }
  case TermKind::Div:
  case TermKind::CeilDiv: {
    // What is divided is not negative.
    const Term &by = terms[term.operands[1]];
    takesSign = true;
    if (!dividesOut || by.kind != TermKind::Constant || by.value <= 0)
      return getVariable(id, 0);
    auto a = operand(0);
    if (!a)
      return std::nullopt;
    assume(*a);
    int64_t up = term.kind == TermKind::CeilDiv ? by.value - 1 : 0;
    return divide(*a + makeConstant(up), by.value);
  }
  case TermKind::Rem:
    takesSign = true;
    return getRest(id);
  case TermKind::And:
    return getRest(id);
  case TermKind::Fit:
    takesSign = true;
    return operand(0);
  case TermKind::Max:
  case TermKind::Min: {
    auto a = operand(0), b = operand(1);
    if (!a || !b)
      return std::nullopt;
    return decide(*a - *b) == (term.kind == TermKind::Max) ? a : b;
  }
  case TermKind::Select: {
    auto condition = isTrue(term.operands[0]);
    if (!condition)
      return std::nullopt;
    return operand(*condition ? 1 : 2);
  }
  case TermKind::Or:
  case TermKind::Xor:
  case TermKind::Compare:
  case TermKind::Opaque:
    return getAny();
  }
  llvm_unreachable("covered switch");
}

/// A comparison as a number that is not negative where it holds; nothing for
/// those that no such number says.
static std::optional<Affine> getBound(int64_t predicate, const Affine &a,
                                      const Affine &b) {
  using Predicate = arith::CmpIPredicate;
  switch (Predicate(predicate)) {
  case Predicate::slt:
  case Predicate::ult:
    return b - a - makeConstant(1);
  case Predicate::sle:
  case Predicate::ule:
    return b - a;
  case Predicate::sgt:
  case Predicate::ugt:
    return a - b - makeConstant(1);
  case Predicate::sge:
  case Predicate::uge:
    return a - b;
  default:
    return std::nullopt;
  }
}

std::optional<bool> CountProver::isTrue(TermId id) {
  const Term &term = terms[id];
  // Of conditions; a mask is a number.
  bool isLogical = term.origin && term.origin.getType().isInteger(1) &&
                   llvm::none_of(term.operands, [&](TermId operand) {
                     return terms[operand].kind == TermKind::Constant;
                   });
  if (isLogical && (term.kind == TermKind::And || term.kind == TermKind::Or)) {
    auto a = isTrue(term.operands[0]);
    if (!a)
      return std::nullopt;
    return *a == (term.kind == TermKind::And) ? isTrue(term.operands[1]) : a;
  }
  if (term.kind == TermKind::Compare) {
    takesSign |= term.value >= int64_t(arith::CmpIPredicate::ult);
    auto a = get(term.operands[0]), b = get(term.operands[1]);
    if (!a || !b)
      return std::nullopt;
    if (auto bound = getBound(term.value, *a, *b))
      return decide(*bound);
    bool isEqual = decide(*a - *b) && decide(*b - *a);
    return isEqual == (term.value == int64_t(arith::CmpIPredicate::eq));
  }
  auto value = get(id);
  if (!value)
    return std::nullopt;
  return decide(*value - makeConstant(1));
}

//===----------------------------------------------------------------------===//
// Numbers of acquires
//===----------------------------------------------------------------------===//

static bool isCounted(const ChannelStep &step, const AcquireCount &of) {
  return step.kind == StepKind::Acquire &&
         step.place.channel == of.place.channel &&
         step.place.role == of.place.role && step.place.parts == of.place.parts;
}

static bool hasCounted(const std::vector<ChannelStep> &steps,
                       const AcquireCount &of) {
  return llvm::any_of(steps, [&](const ChannelStep &step) {
    return isCounted(step, of) || hasCounted(step.body, of) ||
           hasCounted(step.otherwise, of);
  });
}

/// True if what is counted in steps of a loop depends on its counter.
bool CountProver::dependsOnCounter(const Steps &steps, TermId counter,
                                   const AcquireCount &of) {
  return llvm::any_of(steps, [&](const ChannelStep &step) {
    if (!hasCounted(step.body, of) && !hasCounted(step.otherwise, of))
      return false;
    if (step.kind == StepKind::If && terms.dependsOn(step.condition, counter))
      return true;
    if (step.kind == StepKind::Loop && (terms.dependsOn(step.lower, counter) ||
                                        terms.dependsOn(step.upper, counter)))
      return true;
    return dependsOnCounter(step.body, counter, of) ||
           dependsOnCounter(step.otherwise, counter, of);
  });
}

/// Of the counter's values in `range` those where `bound`, which is affine in
/// it, is not negative run `then`, the others `otherwise`.
std::optional<Affine> CountProver::countSide(Affine bound, const Range &range,
                                             Count then, Count otherwise) {
  int64_t slope = bound.get(range.counter);
  bound.coefficients[range.counter] = 0;
  // It holds from `from` on, or, if it falls, below it.
  auto quotient = divide(bound, std::abs(slope));
  if (!quotient)
    return std::nullopt;
  Affine from =
      slope > 0 ? makeConstant(0) - *quotient : *quotient + makeConstant(1);
  if (!decide(from - range.first))
    from = range.first;
  else if (!decide(range.end - from))
    from = range.end;
  Range low = range, high = range;
  low.end = high.first = from;
  auto below = (slope > 0 ? otherwise : then)(&low);
  auto above = (slope > 0 ? then : otherwise)(&high);
  return below && above ? std::optional(*below + *above) : std::nullopt;
}

std::optional<Affine> CountProver::countIf(TermId id, const Range *range,
                                           Count then, Count otherwise) {
  const Term &term = terms[id];
  if (!range || !terms.dependsOn(id, range->leaf)) {
    auto condition = isTrue(id);
    if (!condition)
      return std::nullopt;
    return *condition ? then(range) : otherwise(range);
  }
  if (term.kind == TermKind::And)
    return countIf(
        term.operands[0], range,
        [&](const Range *inner) {
          return countIf(term.operands[1], inner, then, otherwise);
        },
        otherwise);
  if (term.kind != TermKind::Compare)
    return std::nullopt;
  takesSign |= term.value >= int64_t(arith::CmpIPredicate::ult);
  auto a = get(term.operands[0]), b = get(term.operands[1]);
  if (!a || !b)
    return std::nullopt;
  auto bound = getBound(term.value, *a, *b);
  if (!bound || bound->get(range->counter) == 0)
    return std::nullopt;
  return countSide(*bound, *range, then, otherwise);
}

std::optional<Affine> CountProver::countLoop(const ChannelStep &loop,
                                             const AcquireCount &of) {
  auto lower = get(loop.lower), upper = get(loop.upper), step = get(loop.step);
  if (!lower || !upper || !step || !step->isConstant() || step->constant <= 0)
    return std::nullopt;
  auto trips = divide(*upper - *lower + makeConstant(step->constant - 1),
                      step->constant);
  if (!trips)
    return std::nullopt;
  if (!decide(*trips))
    trips = makeConstant(0);
  if (!dependsOnCounter(loop.body, loop.counter, of)) {
    auto each = count(loop.body, of, nullptr);
    if (!each)
      return std::nullopt;
    if (each->isConstant())
      return *trips * each->constant;
    return trips->isConstant() ? std::optional(*each * trips->constant)
                               : std::nullopt;
  }
  if (step->constant != 1)
    return std::nullopt;
  // What is known is of the counter of another count of the loop.
  for (const auto &[term, value] : DenseMap<TermId, Affine>(memo))
    if (terms.dependsOn(term, loop.counter))
      memo.erase(term);
  Affine counter = getVariable(loop.counter, std::nullopt);
  memo[loop.counter] = counter;
  Range range{numVariables - 1, loop.counter, *lower, *lower + *trips};
  counters.insert(range.counter);
  return count(loop.body, of, &range);
}

/// The acquires of `steps`, in each value of a counter if there is a range.
std::optional<Affine> CountProver::count(const Steps &steps,
                                         const AcquireCount &of,
                                         const Range *range) {
  Affine sum;
  for (const ChannelStep &step : steps) {
    std::optional<Affine> added = makeConstant(0);
    if (!isCounted(step, of) && !hasCounted(step.body, of) &&
        !hasCounted(step.otherwise, of))
      continue;
    switch (step.kind) {
    case StepKind::Acquire:
      added = range ? range->end - range->first : makeConstant(1);
      break;
    case StepKind::If:
      added = countIf(
          step.condition, range,
          [&](const Range *inner) { return count(step.body, of, inner); },
          [&](const Range *inner) { return count(step.otherwise, of, inner); });
      break;
    case StepKind::Loop:
      // Loops in a loop whose steps depend on its counter are not followed.
      added = range ? std::nullopt : countLoop(step, of);
      break;
    default:
      break;
    }
    if (!added || givesUp)
      return std::nullopt;
    sum.add(*added, 1);
  }
  return sum;
}

bool attn::haveEqualCounts(ChannelProgram &program, const AcquireCount &a,
                           const AcquireCount &b, bool &takesSigns) {
  for (bool dividesOut : {false, true}) {
    CountProver prover(program, dividesOut);
    bool areEqual = prover.areEqual(a, b);
    takesSigns = prover.takesSigns();
    if (areEqual)
      return true;
  }
  return false;
}
