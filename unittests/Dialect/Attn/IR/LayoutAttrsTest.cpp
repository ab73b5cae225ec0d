//===- LayoutAttrsTest.cpp - Layouts of types, as passes ask for them -----===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class LayoutAttrs : public ::testing::Test {
protected:
  LayoutAttrs() { context.loadDialect<AttnDialect>(); }

  /// The text of the error that `result` holds, or "none".
  template <typename T>
  static std::string errorOf(llvm::Expected<T> result) {
    return result ? "none" : llvm::toString(result.takeError());
  }

  MLIRContext context;
};

TEST_F(LayoutAttrs, TileWithoutChosenLayout) {
  auto type = RankedTensorType::get({128, 64}, Float32Type::get(&context),
                                    AutoLayoutAttr::get(&context));
  EXPECT_EQ(errorOf(getTileLayout(type)),
            "expected a tile whose layout is chosen");
}

TEST_F(LayoutAttrs, TileWithLayout) {
  auto type =
      RankedTensorType::get({128, 64}, Float32Type::get(&context),
                            MmaLayoutAttr::get(&context, /*warps=*/{4, 1}));
  EXPECT_EQ(errorOf(getTileLayout(type)), "none");
}

TEST_F(LayoutAttrs, BufferWithoutChosenLayout) {
  auto type =
      BufferType::get(&context, {64, 128}, Float16Type::get(&context),
                      AutoLayoutAttr::get(&context), MemorySpace::Shared);
  EXPECT_EQ(errorOf(getSharedLayout(type)),
            "expected a buffer whose layout is chosen");
}

TEST_F(LayoutAttrs, RowsHaveOneOrTwoDimensions) {
  auto layout = RowLayoutAttr::get(&context);
  EXPECT_EQ(errorOf(layout.toSharedLayout({2, 64, 128}, 16)),
            "expected a slot of rank 1 or 2 for #attn.rows, got rank 3");
  EXPECT_EQ(errorOf(layout.toSharedLayout({64, 128}, 16)), "none");
}

} // namespace
