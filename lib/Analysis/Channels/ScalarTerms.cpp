//===- ScalarTerms.cpp - Numbers of a kernel by how they are computed -----===//

#include "ScalarTerms.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using TermKind = Term::Kind;

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

TermId TermTable::add(Term term, const void *op) {
  auto [entry, isNew] = numbers.insert(
      {{int(term.kind), term.value, op, term.operands}, TermId(terms.size())});
  if (isNew)
    terms.push_back(std::move(term));
  return entry->second;
}

TermId TermTable::getConstant(int64_t value) {
  return add({TermKind::Constant, value, {}, {}});
}

TermId TermTable::makeLeaf(Value value) {
  TermId leaf = add({TermKind::Leaf, 0, {}, value}, value.getAsOpaquePointer());
  known[value] = leaf;
  return leaf;
}

TermId TermTable::get(Value value) {
  if (auto found = known.find(value); found != known.end())
    return found->second;
  TermId term = compute(value);
  known[value] = term;
  return term;
}

/// The result of an operation on two constants.
static std::optional<int64_t> fold(TermKind kind, int64_t a, int64_t b) {
  int64_t result = 0;
  switch (kind) {
  case TermKind::Add:
    return llvm::AddOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case TermKind::Mul:
    return llvm::MulOverflow(a, b, result) ? std::nullopt
                                           : std::optional(result);
  case TermKind::Div:
    return a >= 0 && b > 0 ? std::optional(a / b) : std::nullopt;
  case TermKind::CeilDiv:
    return a >= 0 && b > 0 ? std::optional(a / b + (a % b != 0)) : std::nullopt;
  case TermKind::Rem:
    return a >= 0 && b > 0 ? std::optional(a % b) : std::nullopt;
  case TermKind::And:
    return a & b;
  case TermKind::Or:
    return a | b;
  case TermKind::Xor:
    return a ^ b;
  case TermKind::Max:
    return std::max(a, b);
  case TermKind::Min:
    return std::min(a, b);
  default:
    return std::nullopt;
  }
}

TermId TermTable::combine(TermKind kind, TermId a, TermId b, Value origin) {
  if (terms[a].kind == TermKind::Constant &&
      terms[b].kind == TermKind::Constant)
    if (auto folded = fold(kind, terms[a].value, terms[b].value))
      return getConstant(*folded);
  // A number that changes nothing.
  for (auto [one, other] : {std::pair(a, b), std::pair(b, a)}) {
    if (terms[one].kind != TermKind::Constant)
      continue;
    if ((kind == TermKind::Add && terms[one].value == 0) ||
        (kind == TermKind::Mul && terms[one].value == 1))
      return other;
  }
  bool keepsOrder = kind == TermKind::Div || kind == TermKind::CeilDiv ||
                    kind == TermKind::Rem;
  if (!keepsOrder && a > b)
    std::swap(a, b);
  return add({kind, 0, {a, b}, origin});
}

/// True if `bits` with sign hold a number; of 0 bits, if it is not negative.
static bool fits(int64_t value, unsigned bits) {
  return bits == 0 ? value >= 0 : llvm::isIntN(bits, value);
}

TermId TermTable::fit(TermId number, unsigned bits, Value origin) {
  const Term &term = terms[number];
  if (term.kind == TermKind::Constant && fits(term.value, bits))
    return number;
  return add({TermKind::Fit, bits, {number}, origin});
}

/// The result of a conversion between integers, if `op` is one that is
/// followed. One bit is 0 or 1, others have signs.
std::optional<TermId> TermTable::convert(Operation *op) {
  if (!isa<arith::IndexCastOp, arith::ExtUIOp, arith::ExtSIOp, arith::TruncIOp>(
          op) ||
      !op->getOperand(0).getType().isIntOrIndex())
    return std::nullopt;
  Value result = op->getResult(0);
  TermId whole = get(op->getOperand(0));
  if (result.getType().isInteger(1))
    return combine(TermKind::And, whole, getConstant(1), result);
  bool isBit = op->getOperand(0).getType().isInteger(1);
  if (isBit && isa<arith::ExtSIOp, arith::IndexCastOp>(op))
    return combine(TermKind::Mul, getConstant(-1), whole, result);
  if (isa<arith::TruncIOp>(op))
    return fit(whole, result.getType().getIntOrFloatBitWidth(), result);
  if (isa<arith::ExtUIOp>(op) && !isBit)
    return fit(whole, 0, result);
  return whole;
}

/// The kind of an op on two numbers.
static std::optional<TermKind> getKind(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<TermKind>>(op)
      .Case<arith::AddIOp>([](auto) { return TermKind::Add; })
      .Case<arith::MulIOp>([](auto) { return TermKind::Mul; })
      .Case<arith::DivUIOp, arith::DivSIOp, arith::FloorDivSIOp>(
          [](auto) { return TermKind::Div; })
      .Case<arith::CeilDivUIOp, arith::CeilDivSIOp>(
          [](auto) { return TermKind::CeilDiv; })
      .Case<arith::RemUIOp, arith::RemSIOp>([](auto) { return TermKind::Rem; })
      .Case<arith::AndIOp>([](auto) { return TermKind::And; })
      .Case<arith::OrIOp>([](auto) { return TermKind::Or; })
      .Case<arith::XOrIOp>([](auto) { return TermKind::Xor; })
      .Case<arith::MaxSIOp, arith::MaxUIOp>([](auto) { return TermKind::Max; })
      .Case<arith::MinSIOp, arith::MinUIOp>([](auto) { return TermKind::Min; })
      .Default([](auto) { return std::nullopt; });
}

/// True if an op that is not followed has the same result wherever its operands
/// are the same.
static bool isFunctionOfOperands(Operation *op) {
  if (op->getNumRegions() != 0 || op->getNumResults() != 1)
    return false;
  if (auto load = dyn_cast<LLVM::LoadOp>(op))
    return !load.getVolatile_() && load.getAddr().getType().getAddressSpace() ==
                                       unsigned(NVVM::NVVMMemorySpace::Global);
  return isa<FindKeyOp, InOrderOp>(op) || isMemoryEffectFree(op);
}

static bool isSigned(arith::CmpIPredicate predicate) {
  using Predicate = arith::CmpIPredicate;
  return predicate == Predicate::slt || predicate == Predicate::sle ||
         predicate == Predicate::sgt || predicate == Predicate::sge;
}

TermId TermTable::compute(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)) &&
      constant.getSignificantBits() <= 64)
    return getConstant(constant.getBitWidth() == 1 ? constant.getZExtValue()
                                                   : constant.getSExtValue());
  Operation *op = value.getDefiningOp();
  if (!op || !isFunctionOfOperands(op)) {
    TermId leaf = makeLeaf(value);
    terms[leaf].isLocal =
        op || !isa<FunctionOpInterface>(value.getParentBlock()->getParentOp());
    return leaf;
  }
  if (auto converted = convert(op))
    return *converted;
  SmallVector<TermId, 3> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  // Of one bit, which is minus one where it has a sign.
  if (op->getNumOperands() == 2 && op->getOperand(0).getType().isInteger(1)) {
    if (isa<arith::AddIOp, arith::SubIOp>(op))
      return combine(TermKind::Xor, operands[0], operands[1], value);
    auto compare = dyn_cast<arith::CmpIOp>(op);
    if (compare && isSigned(compare.getPredicate()))
      std::swap(operands[0], operands[1]);
  }
  // By a constant number of bits.
  if (isa<arith::ShLIOp, arith::ShRUIOp, arith::ShRSIOp>(op)) {
    const Term &by = terms[operands[1]];
    if (by.kind == TermKind::Constant && by.value >= 0 && by.value < 62)
      return combine(isa<arith::ShLIOp>(op) ? TermKind::Mul : TermKind::Div,
                     operands[0], getConstant(int64_t(1) << by.value), value);
  }
  // Without sign a negative number is a large one.
  if (isa<arith::MaxUIOp, arith::MinUIOp>(op))
    for (TermId &operand : operands)
      operand = fit(operand, 0, value);
  // The other one of two.
  if (isa<arith::XOrIOp>(op) && value.getType().isInteger(1))
    for (unsigned side : {0, 1})
      if (operands[side] == getConstant(1))
        return add({TermKind::Select,
                    0,
                    {operands[1 - side], getConstant(0), getConstant(1)},
                    value});
  if (auto kind = getKind(op))
    return combine(*kind, operands[0], operands[1], value);
  if (isa<arith::SubIOp>(op)) {
    TermId minus = combine(TermKind::Mul, getConstant(-1), operands[1], value);
    return combine(TermKind::Add, operands[0], minus, value);
  }
  if (isa<arith::SelectOp>(op))
    return add({TermKind::Select, 0, operands, value});
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return add(
        {TermKind::Compare, int64_t(compare.getPredicate()), operands, value});
  // Ops are told apart by name, attributes and type.
  auto attributes = op->getAttrDictionary();
  if (!op->getPropertiesAsAttribute())
    attributes = DictionaryAttr::get(op->getContext());
  auto key = ArrayAttr::get(
      op->getContext(),
      {StringAttr::get(op->getContext(), op->getName().getStringRef()),
       attributes, TypeAttr::get(value.getType())});
  bool isLeaf = operands.empty() && !op->hasTrait<OpTrait::ConstantLike>();
  auto kind = isLeaf ? TermKind::Leaf : TermKind::Opaque;
  return add({kind, 0, operands, value}, key.getAsOpaquePointer());
}

bool TermTable::dependsOn(TermId term, TermId leaf) {
  if (term == leaf)
    return true;
  if (auto found = depends.find({term, leaf}); found != depends.end())
    return found->second;
  bool result = llvm::any_of(terms[term].operands, [&](TermId operand) {
    return dependsOn(operand, leaf);
  });
  depends[{term, leaf}] = result;
  return result;
}

//===----------------------------------------------------------------------===//
// Values
//===----------------------------------------------------------------------===//

uint64_t attn::mixNumbers(uint64_t a, uint64_t b) {
  uint64_t mixed =
      (a * 0x9E3779B97F4A7C15ull) ^ ((b + 1) * 0xC2B2AE3D27D4EB4Full);
  mixed ^= mixed >> 29;
  mixed *= 0xBF58476D1CE4E5B9ull;
  return mixed ^ (mixed >> 32);
}

int64_t attn::limitToType(int64_t value, Type type) {
  if (!type.isInteger() || type.getIntOrFloatBitWidth() >= 64)
    return value;
  unsigned bits = type.getIntOrFloatBitWidth();
  return value & ((int64_t(1) << (bits == 1 ? 1 : bits - 1)) - 1);
}

/// The value of an op on numbers that its type holds; none if it wraps around.
static std::optional<int64_t> checkType(std::optional<int64_t> value,
                                        Value origin) {
  Type type = origin ? origin.getType() : Type();
  if (!value || !type || !type.isInteger() ||
      type.getIntOrFloatBitWidth() >= 64)
    return value;
  if (type.isInteger(1))
    return *value & 1;
  return fits(*value, type.getIntOrFloatBitWidth()) ? value : std::nullopt;
}

/// True if a term is of an op on numbers, which does not have any value.
static bool isArithmetic(const Term &term) {
  Operation *op = term.origin.getDefiningOp();
  return isa<arith::ArithDialect>(op->getDialect()) &&
         llvm::all_of(op->getOperandTypes(),
                      [](Type type) { return type.isIntOrIndex(); });
}

void TermValues::set(TermId leaf, int64_t value) {
  leaves[leaf] = value;
  memo.clear();
}

std::optional<int64_t> TermValues::get(TermId id) {
  if (auto found = memo.find(id); found != memo.end())
    return found->second;
  std::optional<int64_t> value = compute(terms[id], id);
  memo[id] = value;
  return value;
}

/// Nothing for what is unsigned and of negative numbers.
static std::optional<int64_t> compare(int64_t predicate, int64_t a, int64_t b) {
  using Predicate = arith::CmpIPredicate;
  switch (Predicate(predicate)) {
  case Predicate::eq:
    return a == b;
  case Predicate::ne:
    return a != b;
  case Predicate::slt:
    return a < b;
  case Predicate::sle:
    return a <= b;
  case Predicate::sgt:
    return a > b;
  case Predicate::sge:
    return a >= b;
  default:
    break;
  }
  if (a < 0 || b < 0)
    return std::nullopt;
  switch (Predicate(predicate)) {
  case Predicate::ult:
    return a < b;
  case Predicate::ule:
    return a <= b;
  case Predicate::ugt:
    return a > b;
  default:
    return a >= b;
  }
}

std::optional<int64_t> TermValues::compute(const Term &term, TermId id) {
  switch (term.kind) {
  case TermKind::Constant:
    return term.value;
  case TermKind::Leaf: {
    auto found = leaves.find(id);
    return found == leaves.end() ? std::nullopt : std::optional(found->second);
  }
  case TermKind::Opaque:
    if (isArithmetic(term))
      return std::nullopt;
    return limitToType(mixNumbers(seed, id) % 3, term.origin.getType());
  default:
    break;
  }
  auto first = get(term.operands[0]);
  if (!first)
    return std::nullopt;
  if (term.kind == TermKind::Select)
    return get(term.operands[*first ? 1 : 2]);
  if (term.kind == TermKind::Fit)
    return fits(*first, term.value) ? first : std::nullopt;
  auto second = get(term.operands[1]);
  if (!second)
    return std::nullopt;
  if (term.kind == TermKind::Compare)
    return compare(term.value, *first, *second);
  return checkType(fold(term.kind, *first, *second), term.origin);
}

//===----------------------------------------------------------------------===//
// In messages
//===----------------------------------------------------------------------===//

std::string
attn::printTerm(const TermTable &terms, TermId id,
                llvm::function_ref<std::string(const Term &)> names) {
  const Term &term = terms[id];
  auto print = [&](unsigned operand) {
    return printTerm(terms, term.operands[operand], names);
  };
  switch (term.kind) {
  case TermKind::Constant:
    return std::to_string(term.value);
  case TermKind::Max:
    return "max(" + print(0) + ", " + print(1) + ")";
  case TermKind::Min:
    return "min(" + print(0) + ", " + print(1) + ")";
  case TermKind::Add: {
    // A constant comes first in the table, and last in the text.
    unsigned last = terms[term.operands[0]].kind == TermKind::Constant ? 0 : 1;
    const Term &added = terms[term.operands[last]];
    std::string text = print(1 - last);
    auto printSubtracted = [&](TermId subtracted) {
      std::string text = printTerm(terms, subtracted, names);
      bool isSum = terms[subtracted].kind == TermKind::Add;
      return isSum ? "(" + text + ")" : text;
    };
    if (added.kind == TermKind::Constant && added.value < 0)
      return text + " - " + std::to_string(-added.value);
    // Minus one times something, in either order, stands first if possible.
    for (unsigned minus : {last, 1 - last}) {
      const Term &product = terms[term.operands[minus]];
      if (product.kind != TermKind::Mul)
        continue;
      for (unsigned one : {0, 1})
        if (terms[product.operands[one]].kind == TermKind::Constant &&
            terms[product.operands[one]].value == -1)
          return print(1 - minus) + " - " +
                 printSubtracted(product.operands[1 - one]);
    }
    return text + " + " + print(last);
  }
  default:
    return names(term);
  }
}
