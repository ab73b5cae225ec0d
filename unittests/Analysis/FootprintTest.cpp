//===- FootprintTest.cpp - Bytes of rows against the layouts --------------===//

#include "attn/Analysis/Footprint.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// The bytes of rows, one element at a time.
llvm::BitVector getBytes(BufferType type, int64_t first, int64_t count) {
  int64_t bits = type.getElementType().getIntOrFloatBitWidth();
  auto layout = cast<BufferLayoutAttrInterface>(type.getLayout())
                    .toSharedLayout(type.getSlotShape(), bits);
  EXPECT_TRUE(bool(layout));
  llvm::BitVector bytes(*type.getSlotBytes());
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t column = 0; column < type.getSlotShape()[1]; ++column) {
      int64_t begin = layout->offset({row, column});
      bytes.set(begin, begin + bits / 8);
    }
  return bytes;
}

void compare(BufferType type, int64_t first, int64_t count) {
  auto ranges = getRowBytes(type, first, count);
  ASSERT_TRUE(bool(ranges));
  llvm::BitVector bytes(*type.getSlotBytes());
  int64_t last = -1;
  for (ByteRange range : *ranges) {
    // In order, and joined where they meet.
    EXPECT_LT(last, range.begin);
    last = range.end;
    bytes.set(range.begin, range.end);
  }
  EXPECT_TRUE(bytes == getBytes(type, first, count))
      << type.getSlotShape()[0] << " x " << type.getSlotShape()[1] << ", rows "
      << first << " to " << first + count;
}

} // namespace

TEST(Footprint, RowsOfLayouts) {
  MLIRContext context;
  context.loadDialect<AttnDialect>();
  Builder b(&context);
  Type types[] = {b.getF16Type(), b.getI8Type(), b.getF32Type()};
  for (Type type : types)
    for (int64_t span : {0, 32, 64, 128})
      for (int64_t rows : {16, 40, 64, 128})
        for (int64_t columns : {32, 64, 96, 128, 256}) {
          if (span != 0 && columns * type.getIntOrFloatBitWidth() / 8 % span)
            continue;
          auto buffer = BufferType::get(&context, {rows, columns}, type,
                                        SwizzledLayoutAttr::get(&context, span),
                                        MemorySpace::Shared);
          compare(buffer, 0, rows);
          compare(buffer, 0, rows / 2);
          compare(buffer, rows / 2, rows / 2);
          compare(buffer, 8, 8);
          // What the swizzle mixes.
          compare(buffer, 3, 2);
        }
}

TEST(Footprint, NeedsALayout) {
  MLIRContext context;
  context.loadDialect<AttnDialect>();
  auto buffer =
      BufferType::get(&context, {64, 64}, Builder(&context).getF16Type(),
                      AutoLayoutAttr::get(&context), MemorySpace::Shared);
  auto ranges = getRowBytes(buffer, 0, 64);
  ASSERT_FALSE(bool(ranges));
  EXPECT_EQ(llvm::toString(ranges.takeError()), "its layout is not chosen");
}
