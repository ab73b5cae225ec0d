//===- RegionArithmetic.cpp - What arith and math ops compute -------------===//

#include "RegionArithmetic.h"
#include "attn/Dialect/Attn/IR/IndexBits.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

unsigned attn::getWidth(Type type) {
  return type.isIndex() ? 64 : type.getIntOrFloatBitWidth();
}

std::optional<int64_t> attn::getConstantNumber(Value value) {
  APInt constant;
  if (!matchPattern(value, m_ConstantInt(&constant)) ||
      (value.getType().isIndex() && !constant.isSignedIntN(kIndexBits)))
    return std::nullopt;
  return constant.getSExtValue();
}

bool attn::isNumberType(Type type) {
  return isa<FloatType>(type) || type.isIndex() ||
         (type.isInteger() && getWidth(type) <= 64);
}

llvm::Error attn::makeTypeError(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return llvm::createStringError(
      "expected floats and integers of up to 64 bits in a region, got '" +
      text + "'");
}

//===----------------------------------------------------------------------===//
// Forms of operations
//===----------------------------------------------------------------------===//

static Arithmetic unary(double (*function)(double)) {
  return [=](const RegionNumber *x, RegionNumber &result) {
    result.real = function(x[0].real);
    return true;
  };
}

static Arithmetic binary(double (*function)(double, double)) {
  return [=](const RegionNumber *x, RegionNumber &result) {
    result.real = function(x[0].real, x[1].real);
    return true;
  };
}

/// The low `width` bits of a number, as an unsigned one.
static uint64_t zeroExtend(int64_t value, unsigned width) {
  return static_cast<uint64_t>(value) & llvm::maskTrailingOnes<uint64_t>(width);
}

/// An operation on signed integers, done modulo 2^64 and cut to its width.
static Arithmetic integer(Operation *op,
                          uint64_t (*function)(int64_t, int64_t)) {
  unsigned width = getWidth(op->getResult(0).getType());
  return [=](const RegionNumber *x, RegionNumber &result) {
    result.integer =
        llvm::SignExtend64(function(x[0].integer, x[1].integer), width);
    return true;
  };
}

/// The same on unsigned integers.
static Arithmetic unsignedInteger(Operation *op,
                                  uint64_t (*function)(uint64_t, uint64_t)) {
  unsigned width = getWidth(op->getResult(0).getType());
  return [=](const RegionNumber *x, RegionNumber &result) {
    result.integer =
        llvm::SignExtend64(function(zeroExtend(x[0].integer, width),
                                    zeroExtend(x[1].integer, width)),
                           width);
    return true;
  };
}

/// An operation that is undefined when the second operand is zero, or when its
/// result does not fit.
static Arithmetic division(Operation *op, Arithmetic divide) {
  int64_t least = llvm::minIntN(getWidth(op->getResult(0).getType()));
  return [least, divide = std::move(divide)](const RegionNumber *x,
                                             RegionNumber &result) {
    bool overflows = x[1].integer == -1 && x[0].integer == least;
    return x[1].integer != 0 && !overflows && divide(x, result);
  };
}

/// A shift, which is undefined beyond the width.
static Arithmetic shift(Operation *op, Arithmetic shifted) {
  unsigned width = getWidth(op->getResult(0).getType());
  return [width, shifted = std::move(shifted)](const RegionNumber *x,
                                               RegionNumber &result) {
    return zeroExtend(x[1].integer, width) < width && shifted(x, result);
  };
}

//===----------------------------------------------------------------------===//
// Functions that the C library lacks
//===----------------------------------------------------------------------===//

/// IEEE minimum and maximum: a NaN operand gives NaN.
static double maximum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmax(a, b);
}
static double minimum(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? NAN : std::fmin(a, b);
}

static int64_t floorDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0));
}
static int64_t ceilDivide(int64_t a, int64_t b) {
  int64_t quotient = a / b;
  return quotient + (a % b != 0 && (a < 0) == (b < 0));
}

static bool compareFloats(arith::CmpFPredicate predicate, double a, double b) {
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case arith::CmpFPredicate::AlwaysFalse:
    return false;
  case arith::CmpFPredicate::OEQ:
    return a == b;
  case arith::CmpFPredicate::OGT:
    return a > b;
  case arith::CmpFPredicate::OGE:
    return a >= b;
  case arith::CmpFPredicate::OLT:
    return a < b;
  case arith::CmpFPredicate::OLE:
    return a <= b;
  case arith::CmpFPredicate::ONE:
    return !unordered && a != b;
  case arith::CmpFPredicate::ORD:
    return !unordered;
  case arith::CmpFPredicate::UEQ:
    return unordered || a == b;
  case arith::CmpFPredicate::UGT:
    return unordered || a > b;
  case arith::CmpFPredicate::UGE:
    return unordered || a >= b;
  case arith::CmpFPredicate::ULT:
    return unordered || a < b;
  case arith::CmpFPredicate::ULE:
    return unordered || a <= b;
  case arith::CmpFPredicate::UNE:
    return a != b;
  case arith::CmpFPredicate::UNO:
    return unordered;
  case arith::CmpFPredicate::AlwaysTrue:
    return true;
  }
  llvm_unreachable("unknown predicate");
}

static bool compareIntegers(arith::CmpIPredicate predicate, unsigned width,
                            int64_t a, int64_t b) {
  uint64_t unsignedA = zeroExtend(a, width), unsignedB = zeroExtend(b, width);
  switch (predicate) {
  case arith::CmpIPredicate::eq:
    return a == b;
  case arith::CmpIPredicate::ne:
    return a != b;
  case arith::CmpIPredicate::slt:
    return a < b;
  case arith::CmpIPredicate::sle:
    return a <= b;
  case arith::CmpIPredicate::sgt:
    return a > b;
  case arith::CmpIPredicate::sge:
    return a >= b;
  case arith::CmpIPredicate::ult:
    return unsignedA < unsignedB;
  case arith::CmpIPredicate::ule:
    return unsignedA <= unsignedB;
  case arith::CmpIPredicate::ugt:
    return unsignedA > unsignedB;
  case arith::CmpIPredicate::uge:
    return unsignedA >= unsignedB;
  }
  llvm_unreachable("unknown predicate");
}

//===----------------------------------------------------------------------===//
// The operations
//===----------------------------------------------------------------------===//

static Arithmetic compare(arith::CmpFOp op) {
  return [predicate = op.getPredicate()](const RegionNumber *x,
                                         RegionNumber &result) {
    // An i1 that holds is -1, its bit with the sign extended.
    result.integer = -compareFloats(predicate, x[0].real, x[1].real);
    return true;
  };
}

static Arithmetic compare(arith::CmpIOp op) {
  return [predicate = op.getPredicate(),
          width = getWidth(op.getLhs().getType())](const RegionNumber *x,
                                                   RegionNumber &result) {
    result.integer =
        -compareIntegers(predicate, width, x[0].integer, x[1].integer);
    return true;
  };
}

/// Rounds to types narrower than f32; wider ones keep float64.
static Arithmetic truncateFloat(arith::TruncFOp op) {
  auto type = cast<FloatType>(op.getType());
  return [width = type.getWidth(), &semantics = type.getFloatSemantics()](
             const RegionNumber *x, RegionNumber &result) {
    result = x[0];
    if (width >= 32)
      return true;
    llvm::APFloat number(x[0].real);
    bool losesInfo;
    number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    number.convert(llvm::APFloat::IEEEdouble(),
                   llvm::APFloat::rmNearestTiesToEven, &losesInfo);
    result.real = number.convertToDouble();
    return true;
  };
}

static Arithmetic select() {
  return [](const RegionNumber *x, RegionNumber &result) {
    result = x[0].integer != 0 ? x[1] : x[2];
    return true;
  };
}

/// Conversions between numbers.
static Arithmetic getConversion(Operation *op) {
  Type from = op->getNumOperands() ? op->getOperand(0).getType() : Type();
  Type to = op->getNumResults() ? op->getResult(0).getType() : Type();
  using llvm::TypeSwitch;
  return TypeSwitch<Operation *, Arithmetic>(op)
      .Case<arith::ExtFOp>(
          [](auto) { return unary([](double x) { return x; }); })
      .Case([](arith::TruncFOp truncate) { return truncateFloat(truncate); })
      .Case<arith::SIToFPOp>([](auto) -> Arithmetic {
        return [](const RegionNumber *x, RegionNumber &result) {
          result.real = static_cast<double>(x[0].integer);
          return true;
        };
      })
      .Case<arith::UIToFPOp>([=](auto) -> Arithmetic {
        return [width = getWidth(from)](const RegionNumber *x,
                                        RegionNumber &result) {
          result.real = static_cast<double>(zeroExtend(x[0].integer, width));
          return true;
        };
      })
      .Case<arith::FPToSIOp, arith::FPToUIOp>([=](auto) -> Arithmetic {
        bool isSigned = isa<arith::FPToSIOp>(op);
        return [width = getWidth(to), isSigned](const RegionNumber *x,
                                                RegionNumber &result) {
          double limit = std::ldexp(1.0, isSigned ? width - 1 : width);
          double whole = std::trunc(x[0].real);
          if (!(whole < limit && whole >= (isSigned ? -limit : 0.0)))
            return false;
          result.integer = llvm::SignExtend64(
              isSigned ? static_cast<uint64_t>(static_cast<int64_t>(whole))
                       : static_cast<uint64_t>(whole),
              width);
          return true;
        };
      })
      // Numbers are kept with the sign extended, so extensions and index casts
      // of signed numbers only cut them.
      .Case<arith::ExtSIOp, arith::TruncIOp, arith::IndexCastOp>(
          [=](auto) -> Arithmetic {
            return [width = getWidth(to)](const RegionNumber *x,
                                          RegionNumber &result) {
              result.integer = llvm::SignExtend64(x[0].integer, width);
              return true;
            };
          })
      .Case<arith::ExtUIOp, arith::IndexCastUIOp>([=](auto) -> Arithmetic {
        return [from = getWidth(from), width = getWidth(to)](
                   const RegionNumber *x, RegionNumber &result) {
          result.integer =
              llvm::SignExtend64(zeroExtend(x[0].integer, from), width);
          return true;
        };
      })
      .Default([](Operation *) { return Arithmetic(); });
}

/// Quotients and remainders.
static Arithmetic getDivision(Operation *op) {
  using Signed = int64_t;
  using Unsigned = uint64_t;
  return llvm::TypeSwitch<Operation *, Arithmetic>(op)
      .Case<arith::DivSIOp>([=](auto) {
        return division(op, integer(op, [](Signed a, Signed b) -> Unsigned {
                          return a / b;
                        }));
      })
      .Case<arith::RemSIOp>([=](auto) {
        return division(op, integer(op, [](Signed a, Signed b) -> Unsigned {
                          return a % b;
                        }));
      })
      .Case<arith::FloorDivSIOp>([=](auto) {
        return division(op, integer(op, [](Signed a, Signed b) -> Unsigned {
                          return floorDivide(a, b);
                        }));
      })
      .Case<arith::CeilDivSIOp>([=](auto) {
        return division(op, integer(op, [](Signed a, Signed b) -> Unsigned {
                          return ceilDivide(a, b);
                        }));
      })
      .Case<arith::DivUIOp>([=](auto) {
        return division(op, unsignedInteger(op, [](Unsigned a, Unsigned b) {
                          return a / b;
                        }));
      })
      .Case<arith::CeilDivUIOp>([=](auto) {
        return division(op, unsignedInteger(op, [](Unsigned a, Unsigned b) {
                          return a / b + (a % b != 0);
                        }));
      })
      .Case<arith::RemUIOp>([=](auto) {
        return division(op, unsignedInteger(op, [](Unsigned a, Unsigned b) {
                          return a % b;
                        }));
      })
      .Default([](Operation *) { return Arithmetic(); });
}

static Arithmetic getIntegerArithmetic(Operation *op) {
  using Signed = int64_t;
  using Unsigned = uint64_t;
  return llvm::TypeSwitch<Operation *, Arithmetic>(op)
      .Case<arith::AddIOp>([=](auto) {
        return unsignedInteger(op,
                               [](Unsigned a, Unsigned b) { return a + b; });
      })
      .Case<arith::SubIOp>([=](auto) {
        return unsignedInteger(op,
                               [](Unsigned a, Unsigned b) { return a - b; });
      })
      .Case<arith::MulIOp>([=](auto) {
        return unsignedInteger(op,
                               [](Unsigned a, Unsigned b) { return a * b; });
      })
      .Case<arith::AndIOp>([=](auto) {
        return unsignedInteger(op,
                               [](Unsigned a, Unsigned b) { return a & b; });
      })
      .Case<arith::OrIOp>([=](auto) {
        return unsignedInteger(op,
                               [](Unsigned a, Unsigned b) { return a | b; });
      })
      .Case<arith::XOrIOp>([=](auto) {
        return unsignedInteger(op,
                               [](Unsigned a, Unsigned b) { return a ^ b; });
      })
      .Case<arith::MaxSIOp>([=](auto) {
        return integer(
            op, [](Signed a, Signed b) -> Unsigned { return std::max(a, b); });
      })
      .Case<arith::MinSIOp>([=](auto) {
        return integer(
            op, [](Signed a, Signed b) -> Unsigned { return std::min(a, b); });
      })
      .Case<arith::MaxUIOp>([=](auto) {
        return unsignedInteger(
            op, [](Unsigned a, Unsigned b) { return std::max(a, b); });
      })
      .Case<arith::MinUIOp>([=](auto) {
        return unsignedInteger(
            op, [](Unsigned a, Unsigned b) { return std::min(a, b); });
      })
      .Case<arith::ShLIOp>([=](auto) {
        return shift(op, unsignedInteger(op, [](Unsigned a, Unsigned b) {
                       return a << b;
                     }));
      })
      .Case<arith::ShRUIOp>([=](auto) {
        return shift(op, unsignedInteger(op, [](Unsigned a, Unsigned b) {
                       return a >> b;
                     }));
      })
      .Case<arith::ShRSIOp>([=](auto) {
        return shift(op, integer(op, [](Signed a, Signed b) -> Unsigned {
                       return a >> b;
                     }));
      })
      .Case<math::AbsIOp>([=](auto) -> Arithmetic {
        return [width = getWidth(op->getResult(0).getType())](
                   const RegionNumber *x, RegionNumber &result) {
          uint64_t value = x[0].integer;
          result.integer =
              llvm::SignExtend64(x[0].integer < 0 ? 0 - value : value, width);
          return true;
        };
      })
      .Default([](Operation *) { return Arithmetic(); });
}

static Arithmetic getFloatArithmetic(Operation *op) {
  using Real = double;
  return llvm::TypeSwitch<Operation *, Arithmetic>(op)
      .Case<arith::AddFOp>(
          [](auto) { return binary([](Real a, Real b) { return a + b; }); })
      .Case<arith::SubFOp>(
          [](auto) { return binary([](Real a, Real b) { return a - b; }); })
      .Case<arith::MulFOp>(
          [](auto) { return binary([](Real a, Real b) { return a * b; }); })
      .Case<arith::DivFOp>(
          [](auto) { return binary([](Real a, Real b) { return a / b; }); })
      .Case<arith::RemFOp>([](auto) { return binary(std::fmod); })
      .Case<arith::MaximumFOp>([](auto) { return binary(maximum); })
      .Case<arith::MinimumFOp>([](auto) { return binary(minimum); })
      .Case<arith::MaxNumFOp>([](auto) { return binary(std::fmax); })
      .Case<arith::MinNumFOp>([](auto) { return binary(std::fmin); })
      .Case<arith::NegFOp>(
          [](auto) { return unary([](Real x) { return -x; }); })
      .Case<math::AbsFOp>([](auto) { return unary(std::fabs); })
      .Case<math::ExpOp>([](auto) { return unary(std::exp); })
      .Case<math::Exp2Op>([](auto) { return unary(std::exp2); })
      .Case<math::ExpM1Op>([](auto) { return unary(std::expm1); })
      .Case<math::LogOp>([](auto) { return unary(std::log); })
      .Case<math::Log2Op>([](auto) { return unary(std::log2); })
      .Case<math::Log10Op>([](auto) { return unary(std::log10); })
      .Case<math::Log1pOp>([](auto) { return unary(std::log1p); })
      .Case<math::SqrtOp>([](auto) { return unary(std::sqrt); })
      .Case<math::RsqrtOp>(
          [](auto) { return unary([](Real x) { return 1 / std::sqrt(x); }); })
      .Case<math::SinOp>([](auto) { return unary(std::sin); })
      .Case<math::CosOp>([](auto) { return unary(std::cos); })
      .Case<math::TanOp>([](auto) { return unary(std::tan); })
      .Case<math::TanhOp>([](auto) { return unary(std::tanh); })
      .Case<math::AtanOp>([](auto) { return unary(std::atan); })
      .Case<math::Atan2Op>([](auto) { return binary(std::atan2); })
      .Case<math::ErfOp>([](auto) { return unary(std::erf); })
      .Case<math::FloorOp>([](auto) { return unary(std::floor); })
      .Case<math::CeilOp>([](auto) { return unary(std::ceil); })
      .Case<math::TruncOp>([](auto) { return unary(std::trunc); })
      .Case<math::RoundOp>([](auto) { return unary(std::round); })
      .Case<math::RoundEvenOp>([](auto) { return unary(std::nearbyint); })
      .Case<math::PowFOp>([](auto) { return binary(std::pow); })
      .Case<math::CopySignOp>([](auto) { return binary(std::copysign); })
      .Case<math::FmaOp>([](auto) -> Arithmetic {
        return [](const RegionNumber *x, RegionNumber &result) {
          result.real = std::fma(x[0].real, x[1].real, x[2].real);
          return true;
        };
      })
      .Default([](Operation *) { return Arithmetic(); });
}

/// True for an op that says of its operands what may not be true: that it does
/// not overflow, or leaves no rest. What becomes of it then is open.
static bool makesPromises(Operation *op) {
  if (auto flags = dyn_cast<arith::ArithIntegerOverflowFlagsInterface>(op))
    return flags.getOverflowAttr().getValue() !=
           arith::IntegerOverflowFlags::none;
  return op->hasAttr("isExact") || op->hasAttr("nonNeg");
}

bool attn::isPromisedCount(Operation *op) {
  auto difference = dyn_cast<arith::SubIOp>(op);
  return difference &&
         difference.getOverflowFlags() == arith::IntegerOverflowFlags::nuw;
}

/// True for an op that takes its operands as numbers without a sign.
static bool isUnsigned(Operation *op) {
  if (auto compare = dyn_cast<arith::CmpIOp>(op))
    return compare.getPredicate() >= arith::CmpIPredicate::ult;
  return isa<arith::DivUIOp, arith::CeilDivUIOp, arith::RemUIOp, arith::ShRUIOp,
             arith::MinUIOp, arith::MaxUIOp, arith::IndexCastUIOp>(op);
}

Arithmetic attn::getPlainArithmetic(Operation *op) {
  bool isCount = isPromisedCount(op);
  Arithmetic compute =
      makesPromises(op) && !isCount ? Arithmetic() : getArithmetic(op);
  auto isIndex = [](Type type) { return type.isIndex(); };
  bool hasIndex = llvm::any_of(op->getOperandTypes(), isIndex) ||
                  llvm::any_of(op->getResultTypes(), isIndex);
  if (!compute || !(hasIndex || isCount))
    return compute;
  // MLIR folds an index with 64 bits, and the kernel has kIndexBits.
  bool givesIndex = op->getResult(0).getType().isIndex();
  unsigned count = isUnsigned(op) || isCount ? op->getNumOperands() : 0;
  return [=](const RegionNumber *x, RegionNumber &result) {
    for (unsigned i = 0; i < count; ++i)
      if (x[i].integer < 0)
        return false;
    if (isCount && x[0].integer < x[1].integer)
      return false;
    return compute(x, result) &&
           (!givesIndex || llvm::isIntN(kIndexBits, result.integer));
  };
}

Arithmetic attn::getArithmetic(Operation *op) {
  if (auto cmp = dyn_cast<arith::CmpFOp>(op))
    return compare(cmp);
  if (auto cmp = dyn_cast<arith::CmpIOp>(op))
    return compare(cmp);
  if (isa<arith::SelectOp>(op))
    return select();
  for (auto *get :
       {getFloatArithmetic, getIntegerArithmetic, getDivision, getConversion})
    if (Arithmetic arithmetic = get(op))
      return arithmetic;
  return nullptr;
}
