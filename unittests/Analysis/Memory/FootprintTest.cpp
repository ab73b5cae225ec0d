//===- FootprintTest.cpp - Bytes of rows against the layouts --------------===//

#include "attn/Analysis/Memory/Footprint.h"
#include "attn/Layout/TensorMemoryLayout.h"
#include "mlir/Parser/Parser.h"
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

namespace {

/// A store to half of a field, and a load of a slot.
constexpr llvm::StringLiteral kTensorOps = R"mlir(
#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
func.func @loads(%i: i32, %t: tensor<128x32xf16, #regs>) {
  %sp = attn.tmem_alloc {column = 64, name = "s", fields = [#attn.field<"s", 0, 64>, #attn.field<"p", 32, 32>]} : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
  %p = attn.tmem.field %sp "p" : !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>
  %half = attn.tmem.slice %p {column = 32} : !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x32xf16, #attn.tmem<m = 128>, tmem>
  attn.tmem.store %t, %half : tensor<128x32xf16, #regs>, !attn.buffer<128x32xf16, #attn.tmem<m = 128>, tmem>
  %ring = attn.tmem_alloc {column = 128, name = "ring"} : !attn.buffer<2x128x16xf32, #attn.tmem<m = 128>, tmem>
  %slot = attn.slot %ring[%i] : !attn.buffer<2x128x16xf32, #attn.tmem<m = 128>, tmem> -> !attn.buffer<128x16xf32, #attn.tmem<m = 128>, tmem>
  %f = attn.tmem.load %slot : !attn.buffer<128x16xf32, #attn.tmem<m = 128>, tmem> -> !attn.inflight<128x16xf32, #regs>
  return
}
)mlir";

/// True if a part holds column `column` of the alloc, in the group of lanes.
bool holds(ArrayRef<ByteRange> part, int64_t lane, int64_t column) {
  int64_t byte = lane / 16 * kTmemColumns * 4 + column * 4;
  return llvm::any_of(part, [&](ByteRange range) {
    return range.begin <= byte && byte + 4 <= range.end;
  });
}

/// The part of each warp is its lanes of columns [first, first + 16).
void compareCells(const Footprint &footprint, int64_t first) {
  ASSERT_EQ(footprint.by, RowParts::Lanes);
  ASSERT_EQ(footprint.parts.size(), 4u);
  for (auto [warp, part] : llvm::enumerate(footprint.parts))
    for (int64_t lane = 0; lane < kTmemLanes; ++lane)
      for (int64_t column = 0; column < 64; ++column)
        EXPECT_EQ(holds(part, lane, column), lane / 32 == int64_t(warp) &&
                                                 column >= first &&
                                                 column < first + 16)
            << "warp " << warp << ", lane " << lane << ", column " << column;
}

} // namespace

TEST(Footprint, CellsOfTensorMemory) {
  MLIRContext context;
  context.loadDialect<AttnDialect, func::FuncDialect>();
  auto module = parseSourceString<ModuleOp>(kTensorOps, &context);
  ASSERT_TRUE(bool(module));
  SmallVector<Footprint> footprints;
  module->walk([&](AsyncOpInterface op) {
    auto found = getTensorFootprints(op);
    ASSERT_TRUE(succeeded(found));
    footprints.append(found->begin(), found->end());
  });
  ASSERT_EQ(footprints.size(), 2u);
  // Two elements of 16 bits in a column: p starts at column 32, its half at 16.
  EXPECT_EQ(footprints[0].getName(), "s");
  EXPECT_TRUE(footprints[0].isWrite());
  EXPECT_FALSE(bool(footprints[0].slotIndex));
  compareCells(footprints[0], 32 + 16);
  EXPECT_EQ(footprints[1].getName(), "ring");
  EXPECT_FALSE(footprints[1].isWrite());
  EXPECT_TRUE(bool(footprints[1].slotIndex));
  EXPECT_EQ(footprints[1].slotBytes, 16 * 4);
  EXPECT_EQ(footprints[1].numSlots, 2);
  compareCells(footprints[1], 0);
  // Allocations lie as many bytes apart as columns say.
  EXPECT_EQ(footprints[1].getStart() - footprints[0].getStart(),
            (128 - 64) * 4);
}
