//===- BarrierPeriods.cpp - Counters of which the remainder matters -------===//
//
// A counter may say by its remainder which slot of a ring comes, and by the
// remainder of its quotient which lap: slot `i mod 3`, parity `i div 3 mod 2`.
// Then the kernel does the same at `i + 6` as at `i`, and the check counts
// modulo 6, so that states of a loop with any number of trips recur. As for all
// unknowns, sums are taken not to overflow (docs/BarrierCheck.md).
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SmallPtrSet.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// Longer periods are not worth it.
static constexpr int64_t kMostPeriod = 1 << 10;
/// Larger constants are no steps of a counter.
static constexpr int64_t kMostStep = 1 << 16;

static std::optional<int64_t> getStep(Value value) {
  std::optional<int64_t> number = getConstantNumber(value);
  return number && *number >= 0 && *number <= kMostStep ? number : std::nullopt;
}

/// The divisor of an op of which the remainder is taken, or the mask plus one.
static std::optional<int64_t> getModulus(Operation *op) {
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> by = getStep(op->getOperand(1));
  if (!by)
    return std::nullopt;
  if (isa<arith::RemUIOp, arith::RemSIOp>(op))
    return by;
  if (isa<arith::AndIOp>(op) && llvm::isPowerOf2_64(*by + 1))
    return *by + 1;
  return std::nullopt;
}

/// What an op divides by, rounding down.
static std::optional<int64_t> getDivisor(Operation *op) {
  if (op->getNumOperands() != 2)
    return std::nullopt;
  std::optional<int64_t> by = getStep(op->getOperand(1));
  if (by && isa<arith::DivUIOp, arith::DivSIOp>(op))
    return by;
  if (by && isa<arith::ShRUIOp, arith::ShRSIOp>(op) && *by < 10)
    return int64_t(1) << *by;
  return std::nullopt;
}

/// The constant that a sum adds to `value`.
static std::optional<int64_t> getAddend(Operation *op, Value value) {
  auto sum = dyn_cast<arith::AddIOp>(op);
  if (!sum || getWidth(sum.getType()) < 32)
    return std::nullopt;
  return getStep(sum.getLhs() == value ? sum.getRhs() : sum.getLhs());
}

/// A conversion that keeps numbers that are not negative.
static bool keepsCount(Operation *op) {
  return isa<arith::IndexCastOp, arith::IndexCastUIOp, arith::ExtUIOp,
             arith::ExtSIOp>(op) &&
         getWidth(op->getResult(0).getType()) >= 32 &&
         getWidth(op->getOperand(0).getType()) >= 32;
}

/// Whether an op, or what comes of it, matters because of `value`.
bool Compiler::mattersBy(Operation *user, Value value) const {
  return llvm::any_of(user->getResults(),
                      [&](Value result) { return isDemanded(result); }) ||
         llvm::is_contained(roots, std::pair(user, value));
}

/// Whether a value goes on as another one that matters.
bool Compiler::isPassedOn(Value value) const {
  return llvm::any_of(flow, [&](const auto &entry) {
    return isDemanded(entry.first) && llvm::is_contained(entry.second, value);
  });
}

/// After how many steps of a counter all that an op makes of it is the same
/// again; nothing if it is not, or after too many. Sums and conversions of it
/// are appended to `more`.
std::optional<int64_t> Compiler::getPeriod(Operation *user, Value value,
                                           SmallVectorImpl<Value> &more) const {
  if (user->getNumResults() != 1 || user->getNumRegions() != 0)
    return std::nullopt;
  Value result = user->getResult(0);
  if (getAddend(user, value) || keepsCount(user)) {
    more.push_back(result);
    return 1;
  }
  if (user->getOperand(0) != value)
    return std::nullopt;
  if (std::optional<int64_t> by = getModulus(user))
    return by;
  std::optional<int64_t> divisor = getDivisor(user);
  if (!divisor || isPassedOn(result))
    return std::nullopt;
  int64_t laps = 1;
  for (Operation *later : result.getUsers()) {
    if (!mattersBy(later, result))
      continue;
    std::optional<int64_t> by = getModulus(later);
    if (!by || later->getOperand(0) != result)
      return std::nullopt;
    laps = std::lcm(laps, *by);
    if (laps == 0 || laps > kMostPeriod)
      return std::nullopt;
  }
  return *divisor * laps;
}

/// The period of a loop's counter, if only remainders of it matter.
std::optional<int64_t> Compiler::findPeriod(scf::ForOp loop) {
  Value induction = loop.getInductionVar();
  bool isCounted = getStep(loop.getLowerBound()) && getStep(loop.getStep()) &&
                   getWidth(induction.getType()) >= 32;
  if (!program.isOpen || !isCounted || loop.getUnsignedCmp())
    return std::nullopt;
  llvm::SmallPtrSet<Operation *, 4> compared;
  for (const Difference &difference : findDifferences(loop))
    compared.insert(difference.compare);
  llvm::SmallSetVector<Value, 4> values;
  values.insert(induction);
  int64_t period = 1;
  for (size_t i = 0; i < values.size(); ++i) {
    if (isPassedOn(values[i]))
      return std::nullopt;
    for (Operation *user : values[i].getUsers()) {
      if (!mattersBy(user, values[i]) || compared.contains(user))
        continue;
      SmallVector<Value> more;
      std::optional<int64_t> own = getPeriod(user, values[i], more);
      if (!own || *own <= 0 || *own > kMostPeriod)
        return std::nullopt;
      period = std::lcm(period, *own);
      if (period > kMostPeriod)
        return std::nullopt;
      values.insert(more.begin(), more.end());
    }
  }
  return period > 1 ? std::optional(period) : std::nullopt;
}
