//===- MaskReader.cpp - From a mask_mod to a formula ----------------------===//

#include "MaskReader.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::masks;

/// Returns a bound on a number of rows, at least 1.
static int64_t getRowBound(std::optional<int64_t> rows) {
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  if (!rows || ShapedType::isDynamic(*rows))
    return all;
  return std::max<int64_t>(*rows, 1);
}

static AtomTable makeTable(AttentionOp op) {
  std::optional<int64_t> queries = op.getMaxSeqlenQ(), keys;
  if (!op.isVariableLength())
    queries = AttentionOp::getShape(op.getQ())[2];
  // Of pages that is the size of one.
  if (!op.getPageTable())
    keys = AttentionOp::getShape(op.getK())[2];
  return AtomTable(getRowBound(queries), getRowBound(keys));
}

MaskReader::MaskReader(AttentionOp op)
    : atoms(makeTable(op)), region(op.getMaskMod()) {}

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

Formula MaskReader::readPair(Value x, bool isX, Value y, bool isY, bool both) {
  std::vector<Formula> parts;
  parts.push_back(read(x, isX));
  parts.push_back(read(y, isY));
  return Formula::join(both ? Formula::Kind::And : Formula::Kind::Or,
                       std::move(parts));
}

Formula MaskReader::readChoice(Value x, Value y, Value z, bool isTrue) {
  std::vector<Formula> parts;
  parts.push_back(readPair(x, true, y, isTrue, /*both=*/true));
  parts.push_back(readPair(x, false, z, isTrue, /*both=*/true));
  return Formula::join(Formula::Kind::Or, std::move(parts));
}

std::optional<std::pair<Labels, unsigned>> MaskReader::readLabels(Value value) {
  while (auto extend = value.getDefiningOp<arith::ExtSIOp>())
    value = extend.getIn();
  auto load = value.getDefiningOp<memref::LoadOp>();
  if (!load || load.getIndices().empty() || load.getIndices().size() > 2 ||
      !(value.getType().isInteger(32) || value.getType().isInteger(64)) ||
      region.isAncestor(load.getMemRef().getParentRegion()))
    return std::nullopt;
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(load.getMemRefType().getStridesAndOffset(strides, offset)) ||
      strides.back() != 1)
    return std::nullopt;
  Labels labels;
  labels.memref = load.getMemRef();
  for (Value index : load.getIndices()) {
    Number place = readNumber(index);
    if (!place.value)
      return std::nullopt;
    labels.indices.push_back(*place.value);
  }
  Linear last = labels.indices.pop_back_val();
  labels.offset = last.constant;
  if (std::abs(labels.offset) > kMostCaptured)
    return std::nullopt;
  last.constant = 0;
  for (const Linear &index : labels.indices) {
    if (atoms.variesInTile(index))
      return std::nullopt;
    atoms.setComputed(index);
  }
  for (unsigned row : {AtomTable::kKey, AtomTable::kQuery})
    if (last == atoms.make(row))
      return std::pair(labels, row);
  return std::nullopt;
}

std::optional<Formula> MaskReader::readSameLabel(Value x, Value y) {
  auto first = readLabels(x), second = readLabels(y);
  if (!first || !second || first->second == second->second ||
      getElementTypeOrSelf(first->first.memref.getType()) !=
          getElementTypeOrSelf(second->first.memref.getType()))
    return std::nullopt;
  if (first->second != AtomTable::kKey)
    std::swap(first, second);
  Formula formula;
  formula.kind = Formula::Kind::SameLabel;
  formula.keyLabels = first->first;
  formula.queryLabels = second->first;
  return formula;
}

Formula MaskReader::readComparison(arith::CmpIOp compare, bool isTrue) {
  using arith::CmpIPredicate;
  Location loc = compare.getLoc();
  CmpIPredicate predicate = compare.getPredicate();
  Value x = compare.getLhs(), y = compare.getRhs();
  bool isEquality =
      predicate == CmpIPredicate::eq || predicate == CmpIPredicate::ne;
  if (x.getType().isInteger(1)) {
    if (!isEquality)
      return Formula::unknown("an order of conditions", loc);
    // Equal: both or none.
    bool isEqual = (predicate == CmpIPredicate::eq) == isTrue;
    std::vector<Formula> parts;
    parts.push_back(readPair(x, true, y, isEqual, /*both=*/true));
    parts.push_back(readPair(x, false, y, !isEqual, /*both=*/true));
    return Formula::join(Formula::Kind::Or, std::move(parts));
  }
  if (isEquality && (predicate == CmpIPredicate::eq) == isTrue)
    if (std::optional<Formula> same = readSameLabel(x, y))
      return *same;
  Number left = readNumber(x), right = readNumber(y);
  for (const Number *number : {&left, &right})
    if (!number->value)
      return Formula::unknown(number->reason, number->loc.value_or(loc));
  for (auto [number, other] : {std::pair(&left, &right), {&right, &left}}) {
    // A captured number beyond all indices compares with them as the greatest
    // one that counts.
    auto [least, most] = atoms.getBounds(*other->value);
    bool isDirect = number->value->terms.size() == 1 &&
                    number->value->terms.front().second == 1 &&
                    number->value->constant == 0 && least >= -kMostCaptured &&
                    most <= kMostCaptured && !atoms.hasCaptured(*other->value);
    if (!isDirect)
      atoms.setComputed(*number->value);
  }
  bool isUnsigned = predicate >= CmpIPredicate::ult;
  if (isUnsigned)
    for (const Number *number : {&left, &right})
      if (atoms.getBounds(*number->value).first < 0)
        return Formula::unknown("numbers below 0 as unsigned ones", loc);

  // The predicate in force, of signed numbers.
  if (!isTrue)
    predicate = arith::invertPredicate(predicate);
  Linear less = atoms.combine(*left.value, *right.value, -1);
  Linear more = atoms.scale(less, -1);
  auto make = [&](Linear difference, int64_t more) {
    difference.constant += more;
    return makeAtMostZero(atoms, difference, loc);
  };
  auto joinBoth = [&](Formula::Kind kind, int64_t by) {
    std::vector<Formula> parts;
    parts.push_back(make(less, by));
    parts.push_back(make(more, by));
    return Formula::join(kind, std::move(parts));
  };
  switch (predicate) {
  case CmpIPredicate::eq:
    return joinBoth(Formula::Kind::And, 0);
  case CmpIPredicate::ne:
    return joinBoth(Formula::Kind::Or, 1);
  case CmpIPredicate::slt:
  case CmpIPredicate::ult:
    return make(less, 1);
  case CmpIPredicate::sle:
  case CmpIPredicate::ule:
    return make(less, 0);
  case CmpIPredicate::sgt:
  case CmpIPredicate::ugt:
    return make(more, 1);
  case CmpIPredicate::sge:
  case CmpIPredicate::uge:
    return make(more, 0);
  }
  llvm_unreachable("unknown predicate");
}

Formula MaskReader::read(Value condition, bool isTrue) {
  Location loc = condition.getLoc();
  if (--budget < 0)
    return Formula::unknown("too many conditions", loc);
  APInt constant;
  if (matchPattern(condition, m_ConstantInt(&constant)))
    return Formula::get(!constant.isZero() == isTrue);
  Operation *def = condition.getDefiningOp();
  if (!def)
    return Formula::unknown("a condition from outside", loc);
  if (auto compare = dyn_cast<arith::CmpIOp>(def))
    return readComparison(compare, isTrue);
  // Not of "both" is one of the negations.
  if (auto both = dyn_cast<arith::AndIOp>(def))
    return readPair(both.getLhs(), isTrue, both.getRhs(), isTrue, isTrue);
  if (auto any = dyn_cast<arith::OrIOp>(def))
    return readPair(any.getLhs(), isTrue, any.getRhs(), isTrue, !isTrue);
  if (auto either = dyn_cast<arith::XOrIOp>(def)) {
    for (auto [x, y] : {std::pair(either.getLhs(), either.getRhs()),
                        std::pair(either.getRhs(), either.getLhs())})
      if (matchPattern(x, m_ConstantInt(&constant)))
        return read(y, constant.isZero() == isTrue);
    std::vector<Formula> parts;
    parts.push_back(readPair(either.getLhs(), true, either.getRhs(), !isTrue,
                             /*both=*/true));
    parts.push_back(readPair(either.getLhs(), false, either.getRhs(), isTrue,
                             /*both=*/true));
    return Formula::join(Formula::Kind::Or, std::move(parts));
  }
  if (auto choice = dyn_cast<arith::SelectOp>(def))
    return readChoice(choice.getCondition(), choice.getTrueValue(),
                      choice.getFalseValue(), isTrue);
  return Formula::unknown("'" + def->getName().getStringRef() + "'", loc);
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

MaskReader::Number MaskReader::finish(const Linear &x, Location loc) const {
  if (!atoms.fits(x))
    return fail("numbers may need more than 32 bits", loc);
  return {x, "", loc};
}

MaskReader::Number MaskReader::readNumber(Value value) {
  if (auto known = numbers.find(value); known != numbers.end())
    return known->second;
  auto find = [&]() -> Number {
    Location loc = value.getLoc();
    APInt constant;
    if (matchPattern(value, m_ConstantInt(&constant))) {
      if (constant.getSignificantBits() > 32)
        return fail("numbers may need more than 32 bits", loc);
      return finish(atoms.makeConstant(constant.getSExtValue()), loc);
    }
    if (auto argument = dyn_cast<BlockArgument>(value);
        argument && argument.getOwner()->getParent() == &region)
      // The score comes first.
      return finish(atoms.make(AtomTable::kBatch + argument.getArgNumber() - 1),
                    loc);
    Operation *def = value.getDefiningOp();
    if (def && region.isAncestor(def->getParentRegion()))
      return readOperation(def);
    if (!value.getType().isInteger(32) && !value.getType().isInteger(64))
      return fail("a value from outside", loc);
    Atom scalar{AtomKind::Scalar, -kMostCaptured, kMostCaptured, false, {}};
    scalar.value = value;
    return finish(atoms.add(std::move(scalar)), loc);
  };
  Number number = find();
  auto type = dyn_cast<IntegerType>(value.getType());
  if (number.value && type && type.getWidth() < 32) {
    auto [least, most] = atoms.getBounds(*number.value);
    int64_t half = (int64_t(1) << type.getWidth()) / 2;
    if (type.getWidth() == 1 || least < -half || most >= half)
      number = fail("the last bits of numbers", value.getLoc());
  }
  numbers[value] = number;
  return number;
}

MaskReader::Number MaskReader::readElement(memref::LoadOp load,
                                           bool isUnsigned) {
  Location loc = load.getLoc();
  auto type = dyn_cast<IntegerType>(load.getType());
  if (!type || type.getWidth() > 64 || type.getWidth() == 1)
    return fail("a tensor of conditions or floats", loc);
  Atom element{AtomKind::Element, -kMostCaptured, kMostCaptured, false, {}};
  if (type.getWidth() <= 16) {
    int64_t count = int64_t(1) << type.getWidth();
    element.least = isUnsigned ? 0 : -count / 2;
    element.most = element.least + count - 1;
  } else if (isUnsigned) {
    return fail("numbers below 0 as unsigned ones", loc);
  }
  for (Value index : load.getIndices()) {
    Number place = readNumber(index);
    if (!place.value)
      return place;
    if (atoms.variesInTile(*place.value))
      return fail("a tensor that a query or a key indexes", loc);
    atoms.setComputed(*place.value);
    element.operands.push_back(*place.value);
  }
  element.value = load.getMemRef();
  element.isUnsigned = isUnsigned;
  return finish(atoms.add(std::move(element)), loc);
}

MaskReader::Number MaskReader::readQuotient(Operation *op) {
  APInt constant;
  Number x = readNumber(op->getOperand(0));
  if (!x.value)
    return x;
  bool isShift = isa<arith::ShRSIOp, arith::ShRUIOp>(op);
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&constant)) ||
      constant.isNegative() || constant.ugt(isShift ? 30 : kMostCaptured) ||
      (!isShift && constant.isZero()))
    return fail("a quotient by what is no constant", op->getLoc());
  // These round towards 0, or take numbers below 0 as others.
  if (isa<arith::DivSIOp, arith::DivUIOp, arith::ShRUIOp>(op) &&
      atoms.getBounds(*x.value).first < 0)
    return fail("a quotient of numbers below 0", op->getLoc());
  int64_t divisor = constant.getZExtValue();
  if (isShift)
    divisor = int64_t(1) << divisor;
  if (isa<arith::CeilDivSIOp>(op)) {
    x.value->constant += divisor - 1;
    x = finish(*x.value, op->getLoc());
    if (!x.value)
      return x;
  }
  return finish(atoms.divide(*x.value, divisor), op->getLoc());
}

MaskReader::Number MaskReader::readRemainder(Operation *op) {
  APInt constant;
  Number x = readNumber(op->getOperand(0));
  if (!x.value)
    return x;
  bool isBits = isa<arith::AndIOp>(op);
  if (!matchPattern(op->getOperand(1), m_ConstantInt(&constant)) ||
      constant.isNegative() || constant.ugt(kMostCaptured) ||
      (isBits ? !(constant + 1).isPowerOf2() : constant.isZero()))
    return fail(isBits ? "bits of numbers"
                       : "a remainder by what is no constant",
                op->getLoc());
  if (!isBits && atoms.getBounds(*x.value).first < 0)
    return fail("a remainder of numbers below 0", op->getLoc());
  int64_t divisor = constant.getZExtValue() + (isBits ? 1 : 0);
  Linear quotient = atoms.divide(*x.value, divisor);
  return finish(atoms.combine(*x.value, quotient, -divisor), op->getLoc());
}

MaskReader::Number MaskReader::readProduct(Operation *op) {
  Number x = readNumber(op->getOperand(0)), y = readNumber(op->getOperand(1));
  for (const Number &each : {x, y})
    if (!each.value)
      return each;
  if (isa<arith::ShLIOp>(op)) {
    int64_t by = y.value->constant;
    if (!y.value->terms.empty() || by < 0 || by > 30)
      return fail("a shift by what is no constant", op->getLoc());
    return finish(atoms.scale(*x.value, int64_t(1) << by), op->getLoc());
  }
  if (y.value->terms.empty())
    return finish(atoms.scale(*x.value, y.value->constant), op->getLoc());
  if (x.value->terms.empty())
    return finish(atoms.scale(*y.value, x.value->constant), op->getLoc());
  return fail("a product of what is no constant", op->getLoc());
}

MaskReader::Number MaskReader::readPair(Operation *op, AtomKind kind) {
  Atom atom{kind, 0, 0, false, {}};
  bool areConstants = true;
  for (Value operand : op->getOperands()) {
    Number number = readNumber(operand);
    if (!number.value)
      return number;
    areConstants &= number.value->terms.empty();
    atom.operands.push_back(*number.value);
  }
  if (isa<arith::MinUIOp, arith::MaxUIOp>(op) || areConstants)
    for (const Linear &operand : atom.operands)
      if (areConstants || atoms.getBounds(operand).first < 0)
        return fail("'" + op->getName().getStringRef() + "'", op->getLoc());
  return finish(atoms.add(std::move(atom)), op->getLoc());
}

MaskReader::Number MaskReader::readOperation(Operation *op) {
  Location loc = op->getLoc();
  // What is widened is what it was.
  if (!isa<arith::ExtSIOp, arith::ExtUIOp, arith::IndexCastOp, memref::LoadOp>(
          op))
    for (Value operand : op->getOperands())
      if (operand.getType().isIntOrIndex())
        if (Number number = readNumber(operand); number.value)
          atoms.setComputed(*number.value);
  auto sum = [&](int64_t factor) -> Number {
    Number x = readNumber(op->getOperand(0)), y = readNumber(op->getOperand(1));
    for (const Number &each : {x, y})
      if (!each.value)
        return each;
    return finish(atoms.combine(*x.value, *y.value, factor), loc);
  };
  return llvm::TypeSwitch<Operation *, Number>(op)
      .Case([&](arith::AddIOp) { return sum(1); })
      .Case([&](arith::SubIOp) { return sum(-1); })
      .Case<arith::MulIOp, arith::ShLIOp>([&](auto) { return readProduct(op); })
      .Case<arith::FloorDivSIOp, arith::CeilDivSIOp, arith::DivSIOp,
            arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(
          [&](auto) { return readQuotient(op); })
      .Case<arith::RemSIOp, arith::RemUIOp, arith::AndIOp>(
          [&](auto) { return readRemainder(op); })
      .Case<arith::MinSIOp, arith::MinUIOp>(
          [&](auto) { return readPair(op, AtomKind::Minimum); })
      .Case<arith::MaxSIOp, arith::MaxUIOp>(
          [&](auto) { return readPair(op, AtomKind::Maximum); })
      .Case([&](math::AbsIOp) { return readPair(op, AtomKind::Absolute); })
      .Case<arith::ExtSIOp, arith::IndexCastOp>([&](auto) {
        // A condition that is extended is -1 where it holds.
        if (op->getOperand(0).getType().isInteger(1))
          return fail("a condition as a number", loc);
        return readNumber(op->getOperand(0));
      })
      .Case([&](arith::ExtUIOp extend) {
        if (extend.getIn().getType().isInteger(1))
          return fail("a condition as a number", loc);
        if (auto load = extend.getIn().getDefiningOp<memref::LoadOp>())
          return readElement(load, /*isUnsigned=*/true);
        Number x = readNumber(extend.getIn());
        if (x.value && atoms.getBounds(*x.value).first < 0)
          return fail("numbers below 0 as unsigned ones", loc);
        return x;
      })
      .Case([&](arith::TruncIOp truncate) {
        // Of more than 32 bits nothing is lost; the type's bounds are checked.
        return readNumber(truncate.getIn());
      })
      .Case([&](memref::LoadOp load) {
        return readElement(load, /*isUnsigned=*/false);
      })
      .Default([&](Operation *) {
        return fail("'" + op->getName().getStringRef() + "'", loc);
      });
}
