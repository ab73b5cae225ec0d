//===- Powers.cpp - Exponentials on two pipes -----------------------------===//
//
// A part of the powers of two that attn.exp2 computes goes to the FMA pipes
// (docs/Rationale/Driver.md): 2^x = 2^n 2^f with n = floor(x) and 0
// <= f < 1. x is held at -127 and 128, where the power is 0 and infinite.
// Rounding x + 1.5 2^23 down leaves n in the low bits of the sum, from where a
// shift and an addition make the bits of 2^n; the polynomial is 2^f. NaN stays
// NaN through f. Where exponents are bounded, what is shifted is added to the
// bits of 2^f, which makes of NaN a number: nobody looks at it.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Coefficients of f, f^2 and f^3, behind 1, of least relative error in [0, 1]:
/// 8.6e-5.
static constexpr float kTerms[] = {0x1.63e658p-1f, 0x1.d2378ap-3f,
                                   0x1.3baaa6p-4f};
/// 1.5 2^23: sums with numbers below 2^22 have an ulp of 1.
static constexpr float kRounder = 0x1.8p23f;
static constexpr int64_t kMantissaBits = 23;
/// The bits of 1.
static constexpr int64_t kOne = 0x3F800000;

namespace {

/// Emits arithmetic on f32 scalars or on pairs of them.
class PowerEmitter {
public:
  PowerEmitter(ImplicitLocOpBuilder &b, bool isBounded)
      : b(b), isBounded(isBounded) {}
  Value one(Value x) {
    auto [power, sum] = split(clamp(x));
    return scaled(power, bitsOf(sum));
  }
  std::pair<Value, Value> two(Value x, Value y);

private:
  Value constant(Value like, float value);
  Value clamp(Value x);
  /// The sum, rounded towards minus infinity.
  Value addDown(Value x, Value y);
  /// Of x, or of two, 2^f and the sum that rounding has left n in.
  std::pair<Value, Value> split(Value x);
  /// The bits of two sums.
  std::pair<Value, Value> splitBits(Value sums);
  /// The bits of 1 or of 2^f, with the n of a sum added to the exponent.
  Value addExponent(Value bits, Value sum);
  /// 2^n 2^f.
  Value scaled(Value power, Value sum);
  Value bitsOf(Value x) {
    return arith::BitcastOp::create(b, b.getI32Type(), x);
  }

  ImplicitLocOpBuilder &b;
  const bool isBounded;
};

} // namespace

Value PowerEmitter::constant(Value like, float value) {
  TypedAttr attribute = b.getF32FloatAttr(value);
  if (auto vector = dyn_cast<VectorType>(like.getType()))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return arith::ConstantOp::create(b, attribute);
}

Value PowerEmitter::clamp(Value x) {
  x = arith::MaximumFOp::create(b, x, constant(x, -127));
  if (isBounded)
    return x;
  return arith::MinimumFOp::create(b, x, constant(x, 128));
}

Value PowerEmitter::addDown(Value x, Value y) {
  if (!isa<VectorType>(x.getType()))
    return LLVM::CallIntrinsicOp::create(
               b, b.getF32Type(), b.getStringAttr("llvm.nvvm.add.rm.ftz.f"),
               ValueRange{x, y})
        .getResults();
  Type bits = b.getI64Type();
  auto sum = LLVM::InlineAsmOp::create(
      b, bits,
      ValueRange{LLVM::BitcastOp::create(b, bits, x),
                 LLVM::BitcastOp::create(b, bits, y)},
      "add.rm.ftz.f32x2 $0, $1, $2;", "=l,l,l", /*has_side_effects=*/false,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
  return LLVM::BitcastOp::create(b, x.getType(), sum.getResult(0));
}

std::pair<Value, Value> PowerEmitter::split(Value x) {
  Value rounder = constant(x, kRounder);
  Value sum = addDown(x, rounder);
  Value whole = arith::SubFOp::create(b, sum, rounder);
  Value rest = arith::SubFOp::create(b, x, whole);
  Value power = constant(x, kTerms[2]);
  for (float term : {kTerms[1], kTerms[0], 1.0f})
    power = math::FmaOp::create(b, power, rest, constant(x, term));
  return {power, sum};
}

std::pair<Value, Value> PowerEmitter::splitBits(Value sums) {
  // LLVM shifts and masks 64 bits to shift their upper half.
  Type i32 = b.getI32Type();
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), {i32, i32});
  auto halves = LLVM::InlineAsmOp::create(
      b, type, ValueRange{LLVM::BitcastOp::create(b, b.getI64Type(), sums)},
      "mov.b64 {$0, $1}, $2;", "=r,=r,l", /*has_side_effects=*/false,
      /*is_align_stack=*/false, LLVM::tailcallkind::TailCallKind::None,
      LLVM::AsmDialectAttr(), ArrayAttr());
  return {LLVM::ExtractValueOp::create(b, halves.getResult(0), 0),
          LLVM::ExtractValueOp::create(b, halves.getResult(0), 1)};
}

Value PowerEmitter::addExponent(Value bits, Value sum) {
  Value shifted = arith::ShLIOp::create(
      b, sum, arith::ConstantIntOp::create(b, kMantissaBits, 32));
  return arith::BitcastOp::create(b, b.getF32Type(),
                                  arith::AddIOp::create(b, shifted, bits));
}

Value PowerEmitter::scaled(Value power, Value sum) {
  if (isBounded)
    return addExponent(bitsOf(power), sum);
  Value one = arith::ConstantIntOp::create(b, kOne, 32);
  return arith::MulFOp::create(b, power, addExponent(one, sum));
}

std::pair<Value, Value> PowerEmitter::two(Value x, Value y) {
  x = clamp(x);
  y = clamp(y);
  auto [powers, sums] = split(joinPair(b, x, y));
  auto [firstSum, secondSum] = splitBits(sums);
  if (isBounded) {
    auto [first, second] = splitPair(b, powers);
    return {scaled(first, firstSum), scaled(second, secondSum)};
  }
  Value one = arith::ConstantIntOp::create(b, kOne, 32);
  Value first = addExponent(one, firstSum);
  Value scales = joinPair(b, first, addExponent(one, secondSum));
  return splitPair(b, arith::MulFOp::create(b, powers, scales));
}

/// Of the pairs in every 16 elements, those that take the polynomial, in the
/// order in which more of them do: apart from each other, so that neither pipe
/// waits for the other.
static constexpr unsigned kPairOrder[] = {7, 3, 5, 1, 6, 2, 4, 0};

/// True if place `index` of a thread's elements takes the polynomial, of which
/// every 16 have `count`. One alone would cost as much as a pair, so that of an
/// odd count the first 16 have one more, the next ones one less, and so on.
static bool takesPolynomial(unsigned index, unsigned count) {
  unsigned place = index % 16;
  if (count % 2 != 0)
    count += index / 16 % 2 == 0 ? 1 : -1;
  unsigned rank =
      std::distance(std::begin(kPairOrder), llvm::find(kPairOrder, place / 2));
  return 2 * rank + place % 2 < count;
}

/// Powers of halves, as f32, of an even number of exponents.
static SmallVector<Value> emitHalfPowers(ImplicitLocOpBuilder &b,
                                         ArrayRef<Value> exponents) {
  Type halves = VectorType::get(2, b.getF16Type());
  SmallVector<Value> powers;
  for (unsigned i = 0; i < exponents.size(); i += 2) {
    Value pair = joinPair(b, exponents[i], exponents[i + 1]);
    Value power = LLVM::CallIntrinsicOp::create(
                      b, halves, b.getStringAttr("llvm.nvvm.ex2.approx.v2f16"),
                      ValueRange{LLVM::FPTruncOp::create(b, halves, pair)})
                      .getResults();
    for (unsigned half : {0, 1}) {
      Value element = LLVM::ExtractElementOp::create(
          b, power, arith::ConstantIntOp::create(b, half, 32));
      powers.push_back(arith::ExtFOp::create(b, b.getF32Type(), element));
    }
  }
  return powers;
}

LogicalResult PartitionLowering::lowerHalfPowers(Exp2Op op) {
  FailureOr<TileValue> source = tile(op, op.getSource());
  if (failed(source))
    return failure();
  if (source->values.size() % 2 != 0)
    return op.emitOpError("expected threads to hold an even number of "
                          "exponents for 'halves', got ")
           << source->values.size();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  setTile(op.getResult(), source->layout, emitHalfPowers(b, source->values));
  return success();
}

template <>
LogicalResult PartitionLowering::lower(Exp2Op op) {
  if (!isTile(op.getType())) {
    ImplicitLocOpBuilder b(op.getLoc(), op);
    op.replaceAllUsesWith(lowerApproximate(b, op, op.getSource()));
    return success();
  }
  if (op.getHalves())
    return lowerHalfPowers(op);
  unsigned count = op.getPolynomial();
  if (count == 0)
    return lowerElementwise(op);
  FailureOr<TileValue> source = tile(op, op.getSource());
  if (failed(source))
    return failure();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  PowerEmitter emitter(b, op.getBounded());
  bool isPacked = kernel.targetsHave(Capability::F32x2);
  ArrayRef<Value> exponents = source->values;
  if (exponents.size() < 16)
    count = 0;
  SmallVector<Value> powers;
  // Threads that divide a row hold an equal part of the columns in front.
  unsigned before = op.getColumn() * exponents.size() /
                    cast<RankedTensorType>(op.getType()).getShape()[1];
  for (unsigned i = 0; i < exponents.size(); ++i) {
    bool isFirst = i % 2 == 0 && i + 1 < exponents.size();
    if (!takesPolynomial(before + i, count)) {
      powers.push_back(lowerApproximate(b, op, exponents[i]));
    } else if (isPacked && isFirst && takesPolynomial(before + i + 1, count)) {
      auto [first, second] = emitter.two(exponents[i], exponents[i + 1]);
      powers.append({first, second});
      ++i;
    } else {
      powers.push_back(emitter.one(exponents[i]));
    }
  }
  setTile(op.getResult(), source->layout, powers);
  return success();
}

void lowering::addPowerLowerings(LoweringTable &table) {
  table.addReplaced<Exp2Op>();
}
