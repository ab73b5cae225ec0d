//===- KeyRange.cpp - Which keys a formula leaves to a tile ---------------===//
//
// Interval arithmetic in 32 bits: the table of atoms has seen that no value
// needs more, as long as captured numbers are small enough, which is checked
// where they are read.
//
//===----------------------------------------------------------------------===//

#include "KeyRange.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::masks;

/// A bound that stands for all keys.
static constexpr int64_t kAllKeys = int64_t(1) << 30;

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

void KeyRangeEmitter::addExcess(Value number) {
  excess = excess ? max(excess, number) : number;
}

Value KeyRangeEmitter::narrow(Value number, bool isComputed) {
  auto type = cast<IntegerType>(number.getType());
  auto clamp = [&](Value value, int64_t most) -> Value {
    auto make = [&](int64_t bound) {
      return arith::ConstantIntOp::create(b, bound, type.getWidth());
    };
    return min(max(value, make(-most)), make(most));
  };
  auto convert = [&](Value value) -> Value {
    if (type.getWidth() == 32)
      return value;
    return arith::TruncIOp::create(b, b.getI32Type(), value);
  };
  Value clamped = clamp(number, kMostCaptured);
  if (isComputed) {
    Value beyond = subtract(number, clamped);
    if (type.getWidth() != 32)
      beyond = convert(clamp(beyond, 1));
    addExcess(max(beyond, subtract(constant(0), beyond)));
  }
  return convert(clamped);
}

Value KeyRangeEmitter::emitIndex(const Linear &x) {
  Interval place = emitLinear(x);
  // Heads of one tile may have elements of their own.
  if (!place.isPoint())
    addExcess(min(subtract(place.high, place.low), constant(1)));
  return arith::IndexCastOp::create(b, b.getIndexType(), place.low);
}

KeyRangeEmitter::Interval KeyRangeEmitter::emitElement(const Atom &element) {
  SmallVector<Value> indices;
  for (const Linear &index : element.operands)
    indices.push_back(emitIndex(index));
  Value number = memref::LoadOp::create(b, element.value, indices);
  unsigned width = number.getType().getIntOrFloatBitWidth();
  if (width > 16)
    number = narrow(number, element.isComputed);
  else if (element.isUnsigned)
    number = arith::ExtUIOp::create(b, b.getI32Type(), number);
  else
    number = arith::ExtSIOp::create(b, b.getI32Type(), number);
  return {number, number};
}

KeyRangeEmitter::Interval KeyRangeEmitter::emitAtom(unsigned number) {
  if (auto known = intervals.find(number); known != intervals.end())
    return known->second;
  const Atom &atom = atoms[number];
  auto find = [&]() -> Interval {
    switch (atom.kind) {
    case AtomKind::Batch:
      return {arguments[0], arguments[0]};
    case AtomKind::Head:
      return {arguments[1], arguments[2]};
    case AtomKind::Query:
      return {arguments[3], arguments[4]};
    case AtomKind::Key:
      break;
    case AtomKind::Scalar: {
      Value value = narrow(atom.value, atom.isComputed);
      return {value, value};
    }
    case AtomKind::Element:
      return emitElement(atom);
    case AtomKind::Quotient: {
      Interval x = emitLinear(atom.operands.front());
      auto bounds = atoms.getBounds(atom.operands.front());
      Value low = divide(x.low, bounds, atom.divisor);
      return {low, x.isPoint() ? low : divide(x.high, bounds, atom.divisor)};
    }
    case AtomKind::Minimum:
    case AtomKind::Maximum: {
      Interval x = emitLinear(atom.operands.front());
      Interval y = emitLinear(atom.operands.back());
      auto choose = [&](Value one, Value other) {
        return atom.kind == AtomKind::Minimum ? min(one, other)
                                              : max(one, other);
      };
      Value low = choose(x.low, y.low);
      bool isPoint = x.isPoint() && y.isPoint();
      return {low, isPoint ? low : choose(x.high, y.high)};
    }
    case AtomKind::Absolute: {
      Interval x = emitLinear(atom.operands.front());
      Interval negated = emitLinear(atoms.scale(atom.operands.front(), -1));
      Value high = max(x.high, negated.high);
      if (x.isPoint())
        return {high, high};
      return {max(max(x.low, negated.low), constant(0)), high};
    }
    }
    llvm_unreachable("an atom with the key");
  };
  Interval interval = find();
  intervals[number] = interval;
  return interval;
}

KeyRangeEmitter::Interval KeyRangeEmitter::emitLinear(const Linear &x) {
  Interval sum;
  bool isPoint = true;
  for (auto [number, factor] : x.terms) {
    Interval atom = emitAtom(number);
    isPoint &= atom.isPoint();
    if (factor < 0)
      std::swap(atom.low, atom.high);
    for (auto [total, part] :
         {std::pair(&sum.low, atom.low), std::pair(&sum.high, atom.high)}) {
      if (factor != 1)
        part = b.createOrFold<arith::MulIOp>(part, constant(factor));
      *total = *total ? add(*total, part) : part;
    }
  }
  if (!sum.low)
    sum.low = sum.high = constant(x.constant);
  else if (x.constant != 0) {
    sum.low = add(sum.low, constant(x.constant));
    sum.high = add(sum.high, constant(x.constant));
  }
  if (isPoint)
    sum.high = sum.low;
  return sum;
}

Value KeyRangeEmitter::divide(Value x, std::pair<int64_t, int64_t> bounds,
                              int64_t divisor) {
  if (divisor == 1)
    return x;
  Value by = constant(divisor);
  if (llvm::isPowerOf2_64(divisor))
    return b.createOrFold<arith::ShRSIOp>(x, constant(llvm::Log2_64(divisor)));
  if (bounds.first >= 0)
    return b.createOrFold<arith::DivUIOp>(x, by);
  return b.createOrFold<arith::FloorDivSIOp>(x, by);
}

std::optional<KeyRangeEmitter::Interval>
KeyRangeEmitter::emitQuotient(const Linear &x, int64_t divisor) {
  if (!atoms.fits(x))
    return std::nullopt;
  Interval whole = emitLinear(x);
  auto bounds = atoms.getBounds(x);
  Value low = divide(whole.low, bounds, divisor);
  return Interval{low,
                  whole.isPoint() ? low : divide(whole.high, bounds, divisor)};
}

//===----------------------------------------------------------------------===//
// Formulas
//===----------------------------------------------------------------------===//

KeyRange KeyRangeEmitter::emitLeaf(const Linear &x) {
  KeyRange range;
  int64_t factor = x.getFactor(AtomTable::kKey);
  Linear rest = x.without(AtomTable::kKey);
  if (factor == 0) {
    // All keys or none: for some of the queries, and for each of them.
    Interval value = emitLinear(rest);
    Value zero = constant(0), all = constant(kAllKeys);
    range.end = multiply(isAtMost(value.low, zero), all);
    range.begin = subtract(all, range.end);
    range.hasFull = true;
    range.fullEnd =
        value.isPoint() ? range.end : multiply(isAtMost(value.high, zero), all);
    return range;
  }
  int64_t size = std::abs(factor);
  if (factor > 0) {
    // k <= floor(-rest / f), and one past that.
    Linear limit = atoms.scale(rest, -1);
    limit.constant += size;
    if (std::optional<Interval> end = emitQuotient(limit, size)) {
      range.end = end->high;
      range.fullEnd = end->low;
      range.hasFull = true;
    }
    return range;
  }
  // k >= ceil(rest / f).
  rest.constant += size - 1;
  if (std::optional<Interval> begin = emitQuotient(rest, size)) {
    range.begin = begin->low;
    range.fullBegin = begin->high;
    range.hasFull = true;
  }
  return range;
}

KeyRange KeyRangeEmitter::emitSameLabel(const Formula &formula) {
  auto emitIndices = [&](const Labels &labels) {
    return llvm::map_to_vector(
        labels.indices, [&](const Linear &index) { return emitIndex(index); });
  };
  SmallVector<Value> keyIndices = emitIndices(formula.keyLabels);
  SmallVector<Value> queryIndices =
      formula.queryLabels.indices == formula.keyLabels.indices
          ? keyIndices
          : emitIndices(formula.queryLabels);
  // Keys beyond the labels count as their end.
  Value zero = constant(0), all = constant(kAllKeys);
  Value to = scope.end ? min(max(scope.end, zero), all) : all;
  Value from = scope.begin ? min(max(scope.begin, zero), to) : zero;
  Value keyOffset = constant(formula.keyLabels.offset);
  Value queryOffset = constant(formula.queryLabels.offset);
  Type element = getElementTypeOrSelf(formula.keyLabels.memref.getType());
  auto find = [&](KeySearch search, Value begin, Value end) {
    Value found = FindKeyOp::create(
        b, b.getI32Type(), search, formula.keyLabels.memref, keyIndices,
        add(begin, keyOffset), add(end, keyOffset), formula.queryLabels.memref,
        queryIndices, add(arguments[3], queryOffset),
        add(arguments[4], queryOffset), /*ordered=*/Value(), element);
    return subtract(found, keyOffset);
  };
  KeyRange range;
  range.begin = find(KeySearch::First, from, to);
  range.end = find(KeySearch::Last, range.begin, to);
  range.hasFull = true;
  range.fullBegin = range.begin;
  range.fullEnd = find(KeySearch::Same, range.begin, range.end);
  return range;
}

KeyRange KeyRangeEmitter::emitConjunction(const Formula &formula) {
  // Keys are looked for among those that the others leave.
  KeyRange outer = scope, range = emit(Formula::get(true));
  for (bool searches : {false, true})
    for (const Formula &part : formula.parts)
      if (part.hasLabels() == searches) {
        KeyRange own = emit(part);
        range = joinBoth(range, own);
        narrow(own);
      }
  scope = outer;
  return range;
}

KeyRange KeyRangeEmitter::joinBoth(const KeyRange &x, const KeyRange &y) {
  auto either = [&](Value one, Value other, auto join) {
    return one && other ? join(one, other) : one ? one : other;
  };
  auto least = [&](Value one, Value other) { return min(one, other); };
  auto most = [&](Value one, Value other) { return max(one, other); };
  KeyRange range;
  range.begin = either(x.begin, y.begin, most);
  range.end = either(x.end, y.end, least);
  range.hasFull = x.hasFull && y.hasFull;
  if (range.hasFull) {
    range.fullBegin = either(x.fullBegin, y.fullBegin, most);
    range.fullEnd = either(x.fullEnd, y.fullEnd, least);
  }
  return range;
}

KeyRange KeyRangeEmitter::joinEither(const KeyRange &x, const KeyRange &y) {
  KeyRange range;
  if (x.begin && y.begin)
    range.begin = min(x.begin, y.begin);
  if (x.end && y.end)
    range.end = max(x.end, y.end);
  if (!x.hasFull || !y.hasFull) {
    const KeyRange &known = x.hasFull ? x : y;
    range.hasFull = known.hasFull;
    range.fullBegin = known.fullBegin;
    range.fullEnd = known.fullEnd;
    return range;
  }
  range.hasFull = true;
  // Those that begin together give the longer one.
  if (!x.fullBegin && !y.fullBegin) {
    if (x.fullEnd && y.fullEnd)
      range.fullEnd = max(x.fullEnd, y.fullEnd);
    return range;
  }
  if (!x.fullEnd && !y.fullEnd) {
    if (x.fullBegin && y.fullBegin)
      range.fullBegin = min(x.fullBegin, y.fullBegin);
    return range;
  }
  Value zero = constant(0), all = constant(kAllKeys);
  auto clamp = [&](Value bound, Value other) {
    return bound ? min(max(bound, zero), all) : other;
  };
  Value begin = clamp(x.fullBegin, zero), end = clamp(x.fullEnd, all);
  Value otherBegin = clamp(y.fullBegin, zero);
  Value otherEnd = clamp(y.fullEnd, all);
  // The longer one: one of them, and so much of the difference.
  Value isOther =
      isAtMost(subtract(end, begin), subtract(otherEnd, otherBegin));
  range.fullBegin = add(begin, multiply(isOther, subtract(otherBegin, begin)));
  range.fullEnd = add(end, multiply(isOther, subtract(otherEnd, end)));
  return range;
}

KeyRange KeyRangeEmitter::emit(const Formula &formula) {
  KeyRange range;
  switch (formula.kind) {
  case Formula::Kind::True:
    range.hasFull = true;
    return range;
  case Formula::Kind::False:
    range.begin = constant(kAllKeys);
    range.end = constant(0);
    return range;
  case Formula::Kind::Unknown:
    return range;
  case Formula::Kind::AtMostZero:
    return emitLeaf(formula.linear);
  case Formula::Kind::SameLabel:
    return emitSameLabel(formula);
  case Formula::Kind::And:
    return emitConjunction(formula);
  case Formula::Kind::Or:
    break;
  }
  range = emit(formula.parts.front());
  for (const Formula &part : llvm::drop_begin(formula.parts))
    range = joinEither(range, emit(part));
  return range;
}

SmallVector<Value> KeyRangeEmitter::finish(KeyRange range) {
  // Formulas are exact with the numbers that they no longer name, too.
  for (unsigned number = 0; number < atoms.size(); ++number)
    if (AtomKind kind = atoms[number].kind;
        kind == AtomKind::Scalar || kind == AtomKind::Element)
      emitAtom(number);
  Value zero = constant(0);
  SmallVector<Value> yielded = {range.begin ? range.begin : zero,
                                range.end ? range.end : constant(kAllKeys)};
  if (range.hasFull) {
    yielded.push_back(range.fullBegin ? range.fullBegin : zero);
    yielded.push_back(range.fullEnd ? range.fullEnd : constant(kAllKeys));
  }
  if (!excess)
    return yielded;
  // All keys, and none that need no test, where there is an excess.
  Value isExact = b.createOrFold<arith::CmpIOp>(arith::CmpIPredicate::sle,
                                                excess, constant(0));
  auto replace = [&](Value &bound, int64_t by) {
    bound = b.createOrFold<arith::SelectOp>(isExact, bound, constant(by));
  };
  if (range.begin)
    replace(yielded[0], 0);
  if (range.end)
    replace(yielded[1], kAllKeys);
  if (range.hasFull)
    replace(yielded[3], 0);
  return yielded;
}
