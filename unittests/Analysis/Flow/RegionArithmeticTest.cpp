//===- RegionArithmeticTest.cpp - Arithmetic of an index ------------------===//

#include "../../../lib/Analysis/Flow/RegionArithmetic.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <optional>

using namespace mlir;
using namespace mlir::attn;

namespace {

class RegionArithmeticTest : public ::testing::Test {
protected:
  RegionArithmeticTest() {
    context.loadDialect<func::FuncDialect, arith::ArithDialect>();
  }

  /// Returns a difference that promises not to be below 0; nothing where it is
  /// not followed.
  std::optional<int64_t> computeCount(int64_t x, int64_t y) {
    return compute("arith.subi", x, y, " overflow<nuw>");
  }

  /// Returns what an operation gives for two numbers of the type index; nothing
  /// where it is not followed.
  std::optional<int64_t> compute(StringRef operation, int64_t x, int64_t y,
                                 StringRef flags = "") {
    std::string text = llvm::formatv(
        "func.func @f(%x: index, %y: index) {{\n%r = {0} %x, %y{1} : index\n"
        "return\n}",
        operation, flags);
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << text;
      return std::nullopt;
    }
    auto function = *module->getOps<func::FuncOp>().begin();
    Arithmetic compute = getPlainArithmetic(&function.front().front());
    RegionNumber numbers[2], result;
    numbers[0].integer = x;
    numbers[1].integer = y;
    if (!compute || !compute(numbers, result))
      return std::nullopt;
    return result.integer;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

/// What may be a promise that is not kept has no number.
TEST_F(RegionArithmeticTest, DifferencesThatPromiseToBeCounts) {
  for (int64_t least : {0, 1, 7})
    EXPECT_EQ(computeCount(7, least), 7 - least);
  EXPECT_FALSE(computeCount(7, 8));
  EXPECT_FALSE(computeCount(-7, -8));
  EXPECT_FALSE(computeCount(7, -1));
}

/// MLIR folds an index with 64 bits, and kernels have 32: numbers without a
/// sign differ below zero.
TEST_F(RegionArithmeticTest, NoNegativeIndexWithoutSign) {
  for (StringRef operation :
       {"arith.cmpi ult,", "arith.cmpi ule,", "arith.cmpi ugt,",
        "arith.cmpi uge,", "arith.divui", "arith.ceildivui", "arith.remui",
        "arith.shrui", "arith.minui", "arith.maxui"}) {
    EXPECT_TRUE(compute(operation, 7, 2)) << operation.str();
    EXPECT_FALSE(compute(operation, -7, 2)) << operation.str();
    EXPECT_FALSE(compute(operation, 7, -2)) << operation.str();
  }
  for (StringRef operation : {"arith.cmpi eq,", "arith.cmpi slt,",
                              "arith.cmpi sge,", "arith.divsi", "arith.minsi"})
    EXPECT_TRUE(compute(operation, -7, 2)) << operation.str();
}

TEST_F(RegionArithmeticTest, NoIndexBeyondItsBits) {
  EXPECT_EQ(compute("arith.addi", 1 << 30, (1 << 30) - 1),
            std::numeric_limits<int32_t>::max());
  EXPECT_FALSE(compute("arith.addi", 1 << 30, 1 << 30));
}
