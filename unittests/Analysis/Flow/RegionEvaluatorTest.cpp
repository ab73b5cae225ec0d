//===- RegionEvaluatorTest.cpp - Regions evaluated in float64 -------------===//

#include "attn/Analysis/Flow/RegionEvaluator.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {

class RegionEvaluatorTest : public ::testing::Test {
protected:
  RegionEvaluatorTest() {
    context
        .loadDialect<AttnDialect, func::FuncDialect, memref::MemRefDialect>();
  }

  /// Translates a function body that uses %x: f32, %i, %j: i32 and the captures
  /// %table: memref<4xi32>, %slopes: memref<2x3xf32> and %scalar: f32.
  llvm::Expected<RegionEvaluator> translate(StringRef body) {
    // attn.yield needs one of its parents; any terminator does here.
    std::string text =
        llvm::formatv("func.func @outer(%table: memref<4xi32>, %slopes: "
                      "memref<2x3xf32>, %scalar: f32) {{\n"
                      "  %two = arith.constant 2.0 : f32\n"
                      "  %wide = arith.constant 5 : i128\n"
                      "  \"test.region\"() ({{\n"
                      "  ^bb0(%x: f32, %i: i32, %j: i32):\n{0}\n"
                      "  }) : () -> ()\n  return\n}",
                      body);
    context.allowUnregisteredDialects();
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return llvm::createStringError("the test does not parse");
    Region *region = nullptr;
    module->walk([&](Operation *op) {
      if (op->getName().getStringRef() == "test.region")
        region = &op->getRegion(0);
    });
    return RegionEvaluator::get(*region);
  }

  RegionNumber evaluate(StringRef body, double x, int64_t i, int64_t j) {
    llvm::Expected<RegionEvaluator> evaluator = translate(body);
    if (!evaluator) {
      ADD_FAILURE() << llvm::toString(evaluator.takeError());
      return RegionNumber();
    }
    llvm::Expected<RegionNumber> result =
        evaluator->evaluate(arguments(x, i, j));
    EXPECT_TRUE(static_cast<bool>(result));
    return *result;
  }

  double real(StringRef body, double x = 0, int64_t i = 0, int64_t j = 0) {
    return evaluate(body, x, i, j).real;
  }
  int64_t integer(StringRef body, double x = 0, int64_t i = 0, int64_t j = 0) {
    return evaluate(body, x, i, j).integer;
  }

  static SmallVector<RegionNumber> arguments(double x, int64_t i, int64_t j) {
    SmallVector<RegionNumber> numbers(3);
    numbers[0].real = x;
    numbers[1].integer = i;
    numbers[2].integer = j;
    return numbers;
  }

  /// `%r = <operation>` and its result yielded.
  static std::string one(StringRef operation, StringRef type) {
    return llvm::formatv("%r = {0}\n\"test.end\"(%r) : ({1}) -> ()", operation,
                         type);
  }

  /// The result of an operation on %i and %j.
  int64_t onIntegers(StringRef name, int64_t i, int64_t j) {
    return integer(one((name + " %i, %j : i32").str(), "i32"), 0, i, j);
  }
  double onFloat(StringRef name, double x) {
    return real(one((name + " %x : f32").str(), "f32"), x);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(RegionEvaluatorTest, FloatsKeepDoublePrecision) {
  EXPECT_EQ(real(one("arith.mulf %x, %two : f32", "f32"), 1.0 / 3), 2.0 / 3);
  EXPECT_EQ(onFloat("math.exp", 1.5), std::exp(1.5));
  EXPECT_EQ(onFloat("math.rsqrt", 4), 0.5);
  EXPECT_EQ(onFloat("math.tanh", 0.25), std::tanh(0.25));
  EXPECT_EQ(onFloat("arith.negf", 0.25), -0.25);
  EXPECT_EQ(real(one("math.fma %x, %x, %two : f32", "f32"), 3), 11);
}

TEST_F(RegionEvaluatorTest, NaNInMinimaAndMaxima) {
  EXPECT_TRUE(
      std::isnan(real(one("arith.maximumf %x, %two : f32", "f32"), NAN)));
  EXPECT_EQ(real(one("arith.maxnumf %x, %two : f32", "f32"), NAN), 2);
  EXPECT_EQ(real(one("arith.minimumf %x, %two : f32", "f32"), -1), -1);
}

TEST_F(RegionEvaluatorTest, IntegersWrapAtTheirWidth) {
  EXPECT_EQ(onIntegers("arith.addi", INT32_MAX, 1), INT32_MIN);
  EXPECT_EQ(onIntegers("arith.muli", 1 << 16, 1 << 15), INT32_MIN);
  EXPECT_EQ(onIntegers("arith.subi", 3, 5), -2);
}

TEST_F(RegionEvaluatorTest, DivisionsRoundAsTheyShould) {
  EXPECT_EQ(onIntegers("arith.divsi", -7, 2), -3);
  EXPECT_EQ(onIntegers("arith.floordivsi", -7, 2), -4);
  EXPECT_EQ(onIntegers("arith.ceildivsi", 7, 2), 4);
  EXPECT_EQ(onIntegers("arith.ceildivsi", -7, 2), -3);
  EXPECT_EQ(onIntegers("arith.remsi", -7, 2), -1);
  EXPECT_EQ(onIntegers("arith.divui", -1, 2), INT32_MAX);
}

TEST_F(RegionEvaluatorTest, BitsAndShifts) {
  EXPECT_EQ(onIntegers("arith.andi", 12, 10), 8);
  EXPECT_EQ(onIntegers("arith.xori", 12, 10), 6);
  EXPECT_EQ(onIntegers("arith.shli", 3, 2), 12);
  EXPECT_EQ(onIntegers("arith.shrsi", -8, 1), -4);
  EXPECT_EQ(onIntegers("arith.shrui", -8, 28), 15);
}

TEST_F(RegionEvaluatorTest, ShiftsStayWithinTheWidth) {
  for (const char *name : {"arith.shli", "arith.shrsi", "arith.shrui"}) {
    llvm::Expected<RegionEvaluator> evaluator =
        translate(one(std::string(name) + " %i, %j : i32", "i32"));
    ASSERT_TRUE(static_cast<bool>(evaluator));
    auto isDefined = [&](int64_t by) {
      return !llvm::errorToBool(
          evaluator->evaluate(arguments(0, 1, by)).takeError());
    };
    EXPECT_TRUE(isDefined(0) && isDefined(31)) << name;
    EXPECT_FALSE(isDefined(32) || isDefined(33) || isDefined(-1)) << name;
  }
}

TEST_F(RegionEvaluatorTest, ComparisonsAndSelect) {
  EXPECT_NE(integer(one("arith.cmpi sle, %j, %i : i32", "i1"), 0, 5, 5), 0);
  EXPECT_EQ(integer(one("arith.cmpi ult, %j, %i : i32", "i1"), 0, 5, -1), 0);
  EXPECT_EQ(integer(one("arith.cmpf olt, %x, %two : f32", "i1"), NAN), 0);
  EXPECT_NE(integer(one("arith.cmpf ult, %x, %two : f32", "i1"), NAN), 0);
  EXPECT_EQ(real("%c = arith.cmpi slt, %i, %j : i32\n" +
                     one("arith.select %c, %x, %two : f32", "f32"),
                 7, 1, 2),
            7);
}

TEST_F(RegionEvaluatorTest, EveryComparisonOfIntegers) {
  struct Case {
    const char *predicate;
    bool less, equal, greater; ///< of 1 and 2, 2 and 2, 2 and 1
    bool ofNegative;           ///< of -1 and 1
  };
  const Case cases[] = {
      {"eq", false, true, false, false},  {"ne", true, false, true, true},
      {"slt", true, false, false, true},  {"sle", true, true, false, true},
      {"sgt", false, false, true, false}, {"sge", false, true, true, false},
      {"ult", true, false, false, false}, {"ule", true, true, false, false},
      {"ugt", false, false, true, true},  {"uge", false, true, true, true},
  };
  for (const Case &c : cases) {
    auto holds = [&](int64_t i, int64_t j) {
      std::string op = std::string("arith.cmpi ") + c.predicate;
      return integer(one(op + ", %i, %j : i32", "i1"), 0, i, j) != 0;
    };
    EXPECT_EQ(holds(1, 2), c.less) << c.predicate;
    EXPECT_EQ(holds(2, 2), c.equal) << c.predicate;
    EXPECT_EQ(holds(2, 1), c.greater) << c.predicate;
    EXPECT_EQ(holds(-1, 1), c.ofNegative) << c.predicate;
  }
}

TEST_F(RegionEvaluatorTest, Conversions) {
  EXPECT_EQ(real(one("arith.sitofp %i : i32 to f32", "f32"), 0, -3), -3);
  EXPECT_EQ(real(one("arith.uitofp %i : i32 to f32", "f32"), 0, -1),
            4294967295.0);
  EXPECT_EQ(integer(one("arith.fptosi %x : f32 to i32", "i32"), -2.7), -2);
  EXPECT_EQ(integer("%c = arith.cmpi slt, %i, %j : i32\n" +
                        one("arith.extui %c : i1 to i32", "i32"),
                    0, 1, 2),
            1);
  EXPECT_EQ(integer(one("arith.trunci %i : i32 to i8", "i8"), 0, 255), -1);
}

TEST_F(RegionEvaluatorTest, NarrowTypesRound) {
  EXPECT_EQ(real("%h = arith.truncf %x : f32 to f16\n" +
                     one("arith.extf %h : f16 to f32", "f32"),
                 1 + 0x1p-12),
            1);
}

TEST_F(RegionEvaluatorTest, TypesFromF32OnKeepDoublePrecision) {
  EXPECT_EQ(real("%d = arith.extf %x : f32 to f64\n" +
                     one("arith.truncf %d : f64 to f32", "f32"),
                 1 + 0x1p-40),
            1 + 0x1p-40);
}

TEST_F(RegionEvaluatorTest, LoadsGetTheirIndex) {
  llvm::Expected<RegionEvaluator> evaluator =
      translate("%a = arith.index_cast %i : i32 to index\n"
                "%b = arith.index_cast %j : i32 to index\n" +
                one("memref.load %slopes[%a, %b] : memref<2x3xf32>", "f32"));
  ASSERT_TRUE(static_cast<bool>(evaluator));
  ASSERT_EQ(evaluator->getCaptures().size(), 1u);
  EXPECT_EQ(llvm::toString(evaluator->evaluate(arguments(0, 1, 2)).takeError()),
            "expected all captured values of a region to be bound");
  evaluator->bindMemRef(0,
                        [](ArrayRef<int64_t> index) -> llvm::Expected<double> {
                          if (index[0] > 1)
                            return llvm::createStringError("out of bounds");
                          return 10.0 * index[0] + index[1];
                        });
  EXPECT_EQ(llvm::cantFail(evaluator->evaluate(arguments(0, 1, 2))).real, 12);
  EXPECT_EQ(llvm::toString(evaluator->evaluate(arguments(0, 2, 0)).takeError()),
            "out of bounds");
}

TEST_F(RegionEvaluatorTest, CapturedScalars) {
  llvm::Expected<RegionEvaluator> evaluator =
      translate(one("arith.addf %x, %scalar : f32", "f32"));
  ASSERT_TRUE(static_cast<bool>(evaluator));
  RegionNumber value;
  value.real = 0.5;
  evaluator->bindScalar(0, value);
  EXPECT_EQ(llvm::cantFail(evaluator->evaluate(arguments(1, 0, 0))).real, 1.5);
}

TEST_F(RegionEvaluatorTest, Errors) {
  auto errorOf = [&](StringRef body) {
    llvm::Expected<RegionEvaluator> evaluator = translate(body);
    return evaluator ? "none" : llvm::toString(evaluator.takeError());
  };
  EXPECT_EQ(errorOf(one("\"test.op\"(%x) : (f32) -> f32", "f32")),
            "expected arith, math or memref.load operations that the reference "
            "can evaluate, got 'test.op'");
  EXPECT_EQ(errorOf(one("arith.addi %wide, %wide : i128", "i128")),
            "expected floats and integers of up to 64 bits in a region, got "
            "'i128'");
  llvm::Expected<RegionEvaluator> evaluator =
      translate(one("arith.divsi %i, %j : i32", "i32"));
  ASSERT_TRUE(static_cast<bool>(evaluator));
  EXPECT_EQ(llvm::toString(evaluator->evaluate(arguments(0, 1, 0)).takeError()),
            "division by zero in a region");
  EXPECT_EQ(llvm::toString(evaluator->evaluate({}).takeError()),
            "expected 3 arguments of a region, got 0");
}

} // namespace
