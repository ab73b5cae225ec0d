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

  /// Returns what an operation gives for two numbers of the type index; nothing
  /// where it is not followed.
  std::optional<int64_t> compute(StringRef operation, int64_t x, int64_t y) {
    std::string text = llvm::formatv(
        "func.func @f(%x: index, %y: index) {{\n%r = {0} %x, %y : index\n"
        "return\n}",
        operation);
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
