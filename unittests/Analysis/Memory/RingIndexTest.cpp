//===- RingIndexTest.cpp - Counters of loops ------------------------------===//

#include "../../../lib/Analysis/Memory/RingIndex.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class RingIndexTest : public ::testing::Test {
protected:
  RingIndexTest() {
    context
        .loadDialect<func::FuncDialect, arith::ArithDialect, scf::SCFDialect>();
  }

  /// Returns the first loop of a function of `%n: index`.
  LoopLikeOpInterface parse(StringRef body) {
    module = parseSourceString<ModuleOp>(
        ("func.func @f(%n: index) {\n%c0 = arith.constant 0 : index\n%c1 = "
         "arith.constant 1 : index\n" +
         body + "\nreturn\n}")
            .str(),
        &context);
    LoopLikeOpInterface loop;
    if (module)
      module->walk([&](LoopLikeOpInterface found) { loop = found; });
    return loop;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_F(RingIndexTest, OneCounter) {
  LoopLikeOpInterface loop = parse("scf.for %i = %c0 to %n step %c1 {\n}");
  ASSERT_TRUE(loop);
  EXPECT_EQ(getCounter(loop), loop.getLoopInductionVars()->front());
}

TEST_F(RingIndexTest, NoneOfSeveral) {
  LoopLikeOpInterface loop = parse("scf.forall (%i, %j) in (%n, %n) {\n}");
  ASSERT_TRUE(loop);
  EXPECT_FALSE(getCounter(loop));
}

TEST_F(RingIndexTest, NoneWhereTheLoopHasNone) {
  LoopLikeOpInterface loop = parse(
      "%r = scf.while (%i = %c0) : (index) -> index {\n%t = arith.cmpi slt, "
      "%i, %n : index\nscf.condition(%t) %i : index\n} do {\n^bb0(%i: "
      "index):\n%k = arith.addi %i, %c1 : index\nscf.yield %k : index\n}");
  ASSERT_TRUE(loop);
  EXPECT_FALSE(getCounter(loop));
}
