//===- BarrierUnknowns.cpp - Trip counts that only the launch gives -------===//
//
// A warp's value may be a sum of unknowns. Where a step depends on one, the run
// goes on twice, and remembers which way it went. All warps that compute the
// same have the same unknown.
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

//===----------------------------------------------------------------------===//
// What the launch gives
//===----------------------------------------------------------------------===//

/// Extents are not negative; of others nothing is known.
void Machine::openLaunch() {
  if (!unknowns)
    unknowns = std::make_shared<Unknowns>();
  for (auto [slot, argument] : program->arguments) {
    Affine value = getArgument(argument);
    learn(value, /*isAlways=*/true);
    for (Warp &warp : warps)
      warp.unknown[slot] = value;
  }
}

Affine Machine::getArgument(unsigned argument) {
  return Affine::unknown(unknowns->get(
      llvm::formatv("argument {0}", argument).str(), {}, /*isGiven=*/true));
}

bool Machine::openLaunchAs(const Machine &other, std::string &text) {
  unknowns = other.unknowns;
  auto numbers = other.path.findNumbers();
  if (!numbers || !unknowns->areComputed(*numbers))
    return false;
  llvm::raw_string_ostream os(text);
  for (auto [number, value] : *numbers) {
    Affine difference = Affine::unknown(number).plus(Affine(-value));
    learn(difference);
    learn(difference.times(-1));
    if (unknowns->isRoot(number))
      os << (text.empty() ? "" : ", ") << unknowns->getText(number) << " is "
         << value;
  }
  openLaunch();
  return true;
}

Affine Machine::getBlock(unsigned dim) {
  Affine first = Affine::unknown(
      unknowns->get(llvm::formatv("number of the block, {0}", dim).str(), {},
                    /*isGiven=*/true));
  learn(first, /*isAlways=*/true);
  Affine behind = getGrid(dim);
  learn(
      behind.plus(first, -1).plus(Affine(dim == 0 ? program->cluster : 1), -1),
      /*isAlways=*/true);
  return first;
}

Affine Machine::getGrid(unsigned dim) {
  if (program->grid[dim] > 0)
    return Affine(program->grid[dim]);
  Affine size = Affine::unknown(unknowns->get(
      llvm::formatv("size of the grid, {0}", dim).str(), {}, /*isGiven=*/true));
  learn(size.plus(Affine(-1)), /*isAlways=*/true);
  return size;
}

bool Machine::setOpenLaunchNumber(Warp &warp, const Step &step) {
  if (!unknowns)
    return false;
  if (step.launch == LaunchNumber::Block)
    setOpen(warp, step.dst,
            getBlock(step.dim).plus(Affine(step.dim == 0 ? warp.cta : 0)));
  else if (step.launch == LaunchNumber::Grid)
    setOpen(warp, step.dst, getGrid(step.dim));
  else
    return false;
  return true;
}

void Machine::setOpen(Warp &warp, Slot slot, const Affine &value) {
  if (value.isConstant())
    return set(warp, slot, value.constant);
  warp.known[slot] = false;
  warp.unwritten.erase(slot);
  if (value.isSmall())
    warp.unknown[slot] = value;
  else
    warp.unknown.erase(slot);
}

std::optional<Affine> Machine::getOpen(const Warp &warp, Slot slot) const {
  if (slot == kNoSlot)
    return std::nullopt;
  if (warp.known[slot])
    return Affine(warp.values[slot]);
  auto found = warp.unknown.find(slot);
  if (found == warp.unknown.end())
    return std::nullopt;
  return found->second;
}

bool Machine::isOpenStep(const Warp &warp, const Step &step) const {
  return llvm::any_of(step.args,
                      [&](Slot slot) { return warp.unknown.count(slot) != 0; });
}

//===----------------------------------------------------------------------===//
// Questions
//===----------------------------------------------------------------------===//

/// Returns true for a choice between a number and what is left of another one
/// without it, which is not negative either.
static bool isFromEitherEnd(arith::SelectOp op) {
  Value sides[] = {op.getTrueValue(), op.getFalseValue()};
  return llvm::any_of(ArrayRef({0, 1}), [&](int side) {
    auto rest = sides[side].getDefiningOp<arith::SubIOp>();
    return rest && isPromisedCount(rest) && rest.getRhs() == sides[1 - side];
  });
}

bool barriers::isPlaceOnly(Operation *op) {
  if (auto select = dyn_cast<arith::SelectOp>(op))
    return isFromEitherEnd(select);
  if (isa<arith::CmpIOp>(op))
    return llvm::all_of(op->getUses(), [](OpOperand &use) {
      auto select = dyn_cast<arith::SelectOp>(use.getOwner());
      return select && use.getOperandNumber() == 0 && isFromEitherEnd(select);
    });
  return isa<arith::MinSIOp>(op) &&
         llvm::all_of(op->getUsers(),
                      llvm::IsaPred<arith::DivUIOp, arith::MulIOp>);
}

/// True if it is known whether the sum is negative; else the run has to go on
/// twice.
bool Machine::isDecided(const Affine &sum) {
  if (facts.decide(sum))
    return true;
  question = sum;
  return false;
}

/// What a comparison asks: that a sum is not negative. Nothing for one whose
/// numbers may be negative and that takes them as if they were not.
static std::optional<Affine> getQuestion(arith::CmpIPredicate predicate,
                                         const Affine &a, const Affine &b) {
  switch (predicate) {
  case arith::CmpIPredicate::slt:
  case arith::CmpIPredicate::ult:
    return b.plus(a, -1).plus(Affine(-1));
  case arith::CmpIPredicate::sle:
  case arith::CmpIPredicate::ule:
    return b.plus(a, -1);
  case arith::CmpIPredicate::sgt:
  case arith::CmpIPredicate::ugt:
    return a.plus(b, -1).plus(Affine(-1));
  case arith::CmpIPredicate::sge:
  case arith::CmpIPredicate::uge:
    return a.plus(b, -1);
  default:
    return std::nullopt;
  }
}

static Affine getRest(const Affine &sum, const Affine &quotient, int64_t by) {
  return sum.plus(quotient, -by);
}

/// True for a conversion that says whether a number is odd.
static bool isLowestBit(Operation *op) {
  return isa<arith::TruncIOp>(op) && op->getResult(0).getType().isInteger(1);
}

/// True if someone reads what a step of `warp` computes.
static bool isUsed(const Program &program, const Warp &warp, const Step &step) {
  return step.dst == kNoSlot || step.code != Code::Compute ||
         program.getLive(warp.cta, warp.pc + 1).test(step.dst);
}

/// Asks what a step depends on; true if all of it is known.
bool Machine::answer(Warp &warp, const Step &step) {
  if (!isUsed(*program, warp, step) || step.isNamed)
    return true;
  SmallVector<Affine, 3> args;
  for (Slot slot : step.args) {
    std::optional<Affine> value = getOpen(warp, slot);
    if (!value)
      return true;
    args.push_back(*value);
  }
  if (step.code == Code::Branch)
    return !facts.imply(args[0]) || isDecided(args[0].plus(Affine(-1)));
  if (step.code == Code::Count)
    return isDecided(args[1].plus(args[0], -1).plus(Affine(-1)));
  if (step.code != Code::Compute || !step.factors.empty())
    return true;
  if (auto compare = dyn_cast<arith::CmpIOp>(step.op)) {
    Affine other = args.size() == 1 ? Affine() : args[1];
    if (auto asked = getQuestion(compare.getPredicate(), args[0], other))
      return isDecided(*asked);
    Affine difference = args[0].plus(other, -1);
    return isDecided(difference) &&
           (!facts.imply(difference) || isDecided(difference.times(-1)));
  }
  if (isa<arith::MinSIOp, arith::MaxSIOp, arith::MinUIOp, arith::MaxUIOp>(
          step.op))
    return isDecided(args[0].plus(args[1], -1));
  // Quotients without a sign are followed where none is.
  if (isa<arith::DivUIOp, arith::RemUIOp, arith::CeilDivUIOp, arith::ShRUIOp>(
          step.op))
    return isDecided(args[0]);
  if (isLowestBit(step.op))
    return isDecided(args[0]) &&
           (!facts.imply(args[0]) ||
            isDecided(
                getRest(args[0], divide(args[0], 2), 2).plus(Affine(-1))));
  return true;
}

void Machine::splitAtQuestion(Machine &other) {
  other.learn(Affine(-1).plus(*question, -1));
  learn(*question);
  // A key would keep the numbers that are not integers and lose these.
  impossible = !facts.haveIntegers();
  other.impossible = !other.facts.haveIntegers();
  question = other.question = std::nullopt;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

/// The quotient by a constant, rounded down, of what is not negative. What all
/// factors have in common is left out, so that quotients that are the same for
/// all integers are one unknown.
Affine Machine::divide(const Affine &given, int64_t by) {
  if (given.isConstant())
    return given.dividedBy(by);
  int64_t common = std::gcd(by, given.getCommonFactor());
  Affine sum = given.dividedBy(common);
  by /= common;
  if (by == 1)
    return sum;
  Affine quotient = Affine::unknown(unknowns->get(
      llvm::formatv("{0}{1}", Unknowns::kQuotient, by).str(), {sum}));
  // Of any numbers, as facts are of, it does not follow.
  learn(quotient, unknowns->ofEachLaunch.imply(sum));
  Affine rest = sum.plus(quotient, -by);
  learn(rest, /*isAlways=*/true);
  learn(Affine(by - 1).plus(rest, -1), /*isAlways=*/true);
  impossible |= facts.areImpossible();
  return quotient;
}

/// How an op is written, but for its values.
static std::string getName(Operation *op) {
  std::string text;
  llvm::raw_string_ostream os(text);
  os << op->getName() << op->getAttrDictionary() << op->getResultTypes();
  return text;
}

/// The name of a word of global memory.
static std::string getWordName(const Step &step) {
  return "word " + step.address;
}

/// True for a result of at least 32 bits, into which numbers of the launch and
/// what comes of them are taken to fit (docs/BarrierCheck.md).
static bool isWide(Operation *op) {
  return getWidth(op->getResult(0).getType()) >= 32;
}

/// True for a conversion that keeps the number.
static bool keepsNumber(Operation *op) {
  return isWide(op) || getWidth(op->getResult(0).getType()) >=
                           getWidth(op->getOperand(0).getType());
}

/// What an op makes of numbers that are not negative; nothing if it is not one
/// of those that are followed.
std::optional<Affine> Machine::computeCounts(Operation *op,
                                             ArrayRef<Affine> args) {
  bool isFactor = args.size() == 2 && args[1].isConstant();
  int64_t by = isFactor ? args[1].constant : 0;
  if (isa<arith::ExtUIOp, arith::IndexCastUIOp>(op) && keepsNumber(op))
    return args[0];
  if (isa<arith::ShRUIOp, arith::ShRSIOp>(op) && isFactor && by >= 0 && by < 31)
    return divide(args[0], int64_t(1) << by);
  // It was asked for. A bit that is set is -1, with the sign extended.
  if (isLowestBit(op))
    return Affine(-int64_t(
        facts.imply(getRest(args[0], divide(args[0], 2), 2).plus(Affine(-1)))));
  if (!isFactor && args.size() == 2 && isa<arith::DivUIOp>(op)) {
    Affine quotient =
        Affine::unknown(unknowns->getQuotient(getName(op), args[0], args[1]));
    learn(quotient);
    learn(args[0].plus(quotient, -1));
    return quotient;
  }
  if (by <= 0)
    return std::nullopt;
  if (isa<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(op))
    return divide(args[0], by);
  if (isa<arith::CeilDivUIOp, arith::CeilDivSIOp>(op))
    return divide(args[0].plus(Affine(by - 1)), by);
  if (isa<arith::RemUIOp, arith::RemSIOp>(op))
    return getRest(args[0], divide(args[0], by), by);
  if (isa<arith::AndIOp>(op) && isWide(op) && llvm::isPowerOf2_64(by + 1))
    return getRest(args[0], divide(args[0], by + 1), by + 1);
  return std::nullopt;
}

/// Sums and products are taken not to overflow (docs/BarrierCheck.md).
std::optional<Affine> Machine::computeSum(Operation *op,
                                          ArrayRef<Affine> args) {
  bool isSum = isa<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op);
  if (isSum && !isWide(op))
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return args[0].plus(args[1]);
  if (auto difference = dyn_cast<arith::SubIOp>(op)) {
    Affine result = args[0].plus(args[1], -1);
    if (isPromisedCount(difference)) {
      learn(result);
      impossible |= facts.areImpossible();
    }
    return result;
  }
  if (isa<arith::MulIOp>(op) && args[1].isConstant())
    return args[0].times(args[1].constant);
  if (isa<arith::MulIOp>(op) && args[0].isConstant())
    return args[1].times(args[0].constant);
  if (isa<arith::IndexCastOp, arith::ExtSIOp>(op) && keepsNumber(op))
    return args[0];
  bool isMin = isa<arith::MinSIOp, arith::MinUIOp>(op);
  if (isMin || isa<arith::MaxSIOp, arith::MaxUIOp>(op))
    return facts.imply(args[0].plus(args[1], -1)) != isMin ? args[0] : args[1];
  if (isa<arith::SelectOp>(op) && args[0].isConstant())
    return args[0].constant ? args[1] : args[2];
  return std::nullopt;
}

SmallVector<std::string, 2> barriers::getUnknownKinds(const Program &program,
                                                      const Step &step) {
  if (step.code == Code::Count) {
    // Trips of a loop that goes on by one are a difference.
    bool isByOne = llvm::is_contained(program.constants,
                                      std::make_pair(step.args[2], int64_t(1)));
    SmallVector<std::string, 2> kinds = {Unknowns::kTrips.str()};
    if (!isByOne)
      kinds.push_back(Unknowns::kQuotient.str());
    return kinds;
  }
  if (step.code != Code::Compute || !step.factors.empty() || !step.op)
    return {};
  if (isa<LLVM::LoadOp, DealRunOp, FindKeyOp>(step.op))
    return {getWordName(step)};
  // Where it is no quotient, or not known to be one, it has a name of its own.
  SmallVector<std::string, 2> kinds = {getName(step.op)};
  if (isa<arith::ShRUIOp, arith::ShRSIOp, arith::DivUIOp, arith::DivSIOp,
          arith::FloorDivSIOp, arith::CeilDivUIOp, arith::CeilDivSIOp,
          arith::RemUIOp, arith::RemSIOp, arith::AndIOp, arith::TruncIOp>(
          step.op))
    kinds.push_back(Unknowns::kQuotient.str());
  return kinds;
}

/// A word of global memory that the kernel does not write is the same whoever
/// reads it.
std::optional<Affine> Machine::readGlobal(const Step &step,
                                          ArrayRef<Affine> args) {
  if (step.address.empty())
    return std::nullopt;
  Affine word = Affine::unknown(unknowns->get(getWordName(step), args));
  // Neither a run nor a key is below 0.
  if (isa<DealRunOp, FindKeyOp>(step.op))
    learn(word);
  return word;
}

/// A sum that can be but one number in a launch is that number, so that
/// products and quotients by it are known. What a tile has learned is no part
/// of it: warps that come to it sooner would have another product.
static Affine settle(const Facts &facts, const Affine &sum) {
  if (sum.isConstant())
    return sum;
  std::optional<int64_t> only = facts.findOnly(sum);
  return only ? Affine(*only) : sum;
}

/// Returns sums that are not negative of the outcome of an op that only says
/// where something is: it is no more than either side of a minimum, and between
/// 0 and both sides together of a choice from either end.
static SmallVector<Affine, 3> listBounds(Operation *op, const Affine &outcome,
                                         ArrayRef<Affine> args,
                                         const Facts &facts) {
  SmallVector<Affine, 3> bounds;
  if (isa<arith::CmpIOp>(op))
    return bounds;
  bool isChoice = isa<arith::SelectOp>(op);
  const Affine &a = args[isChoice ? 1 : 0], &b = args[isChoice ? 2 : 1];
  bool areCounts = facts.imply(a) && facts.imply(b);
  if (areCounts)
    bounds.push_back(outcome);
  if (!isChoice)
    llvm::append_range(bounds,
                       ArrayRef({a.plus(outcome, -1), b.plus(outcome, -1)}));
  else if (areCounts)
    bounds.push_back(a.plus(b).plus(outcome, -1));
  return bounds;
}

/// Returns what is not negative where one factor of a product is a quotient by
/// the other: what was divided is no less, and less than one multiple more. A
/// quotient has its name on other ways, too, where what is divided may be
/// negative.
static SmallVector<Affine, 4> getRests(const Unknowns &unknowns,
                                       const Facts &facts,
                                       const Affine &product,
                                       ArrayRef<Affine> args) {
  SmallVector<Affine, 4> rests;
  for (auto [factor, by] : {std::pair(args[0], args[1]), {args[1], args[0]}}) {
    const auto *quotient = unknowns.findQuotient(factor);
    if (!quotient || quotient->by != by || !facts.imply(quotient->of))
      continue;
    Affine rest = quotient->of.plus(product, -1);
    rests.push_back(rest);
    rests.push_back(by.plus(rest, -1).plus(Affine(-1)));
  }
  return rests;
}

std::optional<Affine> Machine::computeOpen(const Step &step,
                                           ArrayRef<Affine> given) {
  SmallVector<Affine, 3> args(given);
  if (isa_and_nonnull<arith::MulIOp, arith::DivUIOp>(step.op) &&
      args.size() == 2 && !args[0].isConstant())
    args[1] = settle(unknowns->ofEachLaunch, args[1]);
  if (step.code == Code::Count) {
    // Few bits wrap around soon.
    if (getWidth(cast<scf::ForOp>(step.op).getLowerBound().getType()) < 32)
      return std::nullopt;
    // Trips of a loop that takes its bounds as they are without a sign.
    if (cast<scf::ForOp>(step.op).getUnsignedCmp() &&
        !(facts.imply(args[0]) && facts.imply(args[1])))
      return std::nullopt;
    Affine trips = args[1].plus(args[0], -1);
    if (!facts.imply(trips.plus(Affine(-1))))
      return Affine();
    if (!args[2].isConstant() || args[2].constant <= 0)
      return std::nullopt;
    return nameTrips(
        divide(trips.plus(Affine(args[2].constant - 1)), args[2].constant));
  }
  if (!step.factors.empty()) {
    Affine sum(step.value);
    for (auto [arg, factor] : llvm::zip(args, step.factors))
      sum = sum.plus(arg, factor);
    return sum;
  }
  if (isa<LLVM::LoadOp, DealRunOp, FindKeyOp>(step.op))
    return readGlobal(step, args);
  bool isChosen =
      isa_and_nonnull<arith::SelectOp>(step.op) && args[0].isConstant();
  if (step.isNamed && !isChosen) {
    // One number for all that compute it of the same numbers.
    uint32_t number = unknowns->get(getName(step.op), args);
    unknowns->define(number, step.compute, args);
    Affine outcome = Affine::unknown(number);
    for (const Affine &bound : listBounds(step.op, outcome, args, facts))
      learn(bound);
    impossible |= facts.areImpossible();
    return outcome;
  }
  bool isCount = llvm::all_of(
      args, [&](const Affine &value) { return facts.imply(value); });
  bool isUnsigned = isa<arith::MinUIOp, arith::MaxUIOp>(step.op);
  if (auto compare = dyn_cast<arith::CmpIOp>(step.op)) {
    isUnsigned = compare.getPredicate() >= arith::CmpIPredicate::ult;
    if (isUnsigned && !isCount)
      return std::nullopt;
    Affine other = args.size() == 1 ? Affine() : args[1];
    // A bit that is set is -1, with the sign extended.
    if (auto asked = getQuestion(compare.getPredicate(), args[0], other))
      return Affine(-int64_t(facts.imply(*asked)));
    Affine difference = args[0].plus(other, -1);
    bool isSame = facts.imply(difference) && facts.imply(difference.times(-1));
    return Affine(-int64_t(
        isSame == (compare.getPredicate() == arith::CmpIPredicate::eq)));
  }
  if (isUnsigned && !isCount)
    return std::nullopt;
  if (isCount)
    if (std::optional<Affine> result = computeCounts(step.op, args))
      return result;
  if (std::optional<Affine> result = computeSum(step.op, args))
    return result;
  // Whatever it is, it is the same of the same numbers.
  if (isa_and_nonnull<arith::ArithDialect>(step.op->getDialect()) &&
      !step.op->getResult(0).getType().isInteger(1)) {
    uint32_t number = unknowns->get(getName(step.op), args);
    unknowns->define(number, step.compute, args);
    Affine outcome = Affine::unknown(number);
    if (isa<arith::MulIOp>(step.op) && isWide(step.op) && isCount) {
      // A product of numbers that are not negative is not, either.
      const Facts &always = unknowns->ofEachLaunch;
      learn(outcome, always.imply(args[0]) && always.imply(args[1]));
      for (const Affine &rest : getRests(*unknowns, facts, outcome, args)) {
        learn(rest);
        impossible |= facts.areImpossible();
      }
    }
    return outcome;
  }
  return std::nullopt;
}

void Machine::setOpenResult(Warp &warp, const Step &step) {
  SmallVector<Affine, 3> args;
  bool isKnown = true;
  for (Slot slot : step.args) {
    std::optional<Affine> value = getOpen(warp, slot);
    isKnown &= value.has_value();
    args.push_back(value.value_or(Affine()));
  }
  std::optional<Affine> result;
  if (isKnown && isUsed(*program, warp, step))
    result = computeOpen(step, args);
  if (result)
    return setOpen(warp, step.dst, *result);
  warp.known[step.dst] = false;
  warp.unknown.erase(step.dst);
}
