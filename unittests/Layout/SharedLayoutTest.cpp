//===- SharedLayoutTest.cpp - Buffers against their formulas --------------===//

#include "attn/Layout/SharedLayout.h"
#include "LayoutTesting.h"
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// TMA's swizzle on an absolute byte address (PTX ISA, swizzling modes): with
/// 128 B, address bits 4..6 ^= bits 7..9, with 64 B bits 4..5 ^= 7..8, with 32
/// B bit 4 ^= 7.
static int64_t swizzleAddress(int64_t address, unsigned span) {
  int64_t mask = span == 128 ? 7 : span == 64 ? 3 : span == 32 ? 1 : 0;
  return address ^ (((address >> 7) & mask) << 4);
}

TEST(SharedLayout, SwizzleIsTmas) {
  for (unsigned bits : {8, 16, 32})
    for (unsigned span : {32, 64, 128})
      for (int64_t spans : {1, 2, 3, 5})
        for (int64_t rows : {8, 40, 64, 12}) {
          int64_t bytes = bits / 8, spanElements = span / bytes;
          SharedLayout buffer = unwrap(
              SharedLayout::swizzled(rows, spans * spanElements, bits, span));
          EXPECT_EQ(buffer.spanBytes(), span);
          EXPECT_EQ(buffer.alignment(), 8 * span);
          EXPECT_EQ(buffer.shape(), Coords({rows, spans * spanElements}));
          int64_t allRows = (rows + 7) / 8 * 8;
          std::set<int64_t> seen;
          for (const Coords &c : allCoords(buffer.shape())) {
            int64_t linear = c[1] / spanElements * allRows * span +
                             c[0] * span + c[1] % spanElements * bytes;
            int64_t offset = buffer.offset(c);
            EXPECT_EQ(offset, swizzleAddress(linear, span));
            EXPECT_TRUE(seen.insert(offset).second);
            EXPECT_LE(offset + bytes, buffer.sizeBytes());
            EXPECT_EQ(buffer.find(offset), c);
          }
          EXPECT_EQ(buffer.sizeBytes(), allRows * spans * span);
          EXPECT_EQ(buffer.contiguousDim(), 1u);
          EXPECT_EQ(buffer.contiguousElements(), 16 / bytes);
        }
}

TEST(SharedLayout, ChooseTakesTheWidestSpan) {
  for (auto [cols, span] : {std::pair(64, 128),
                            {128, 128},
                            {192, 128},
                            {256, 128},
                            {32, 64},
                            {96, 64},
                            {160, 64},
                            {16, 32},
                            {48, 32},
                            {80, 32},
                            {8, 0},
                            {40, 0}}) {
    EXPECT_EQ(SharedLayout::chooseSpan(cols, 16), unsigned(span)) << cols;
    SharedLayout buffer = unwrap(SharedLayout::choose(64, cols, 16));
    EXPECT_EQ(buffer.spanBytes(), unsigned(span));
    if (!span) {
      // An odd number of chunks for each row, without padding here.
      EXPECT_EQ(buffer.offset({1, 0}), 2 * cols);
    }
  }
  // 24 bytes are padded to 3 chunks, 40 bytes to 3.
  EXPECT_EQ(unwrap(SharedLayout::choose(8, 24, 8)).offset({1, 0}), 48);
  EXPECT_EQ(unwrap(SharedLayout::choose(8, 40, 8)).offset({1, 0}), 48);
}

TEST(SharedLayout, PlainRowsAndPitch) {
  for (int64_t cols : {1, 8, 40, 80, 96, 100}) {
    SharedLayout buffer = unwrap(SharedLayout::swizzled(10, cols, 32, 0, 104));
    for (const Coords &c : allCoords(buffer.shape())) {
      EXPECT_EQ(buffer.offset(c), 4 * (104 * c[0] + c[1]));
      EXPECT_EQ(buffer.find(buffer.offset(c)), c);
    }
    if (cols < 104) {
      EXPECT_FALSE(buffer.find(4 * cols));
    }
    EXPECT_FALSE(buffer.find(3));
  }
  SharedLayout line = unwrap(SharedLayout::linear(300, 32));
  EXPECT_EQ(line.sizeBytes(), 1200);
  EXPECT_EQ(line.offset({299}), 1196);
}

TEST(SharedLayout, ColumnOfPlainRows) {
  SharedLayout rows = unwrap(SharedLayout::swizzled(48, 4, 32, 0));
  SharedLayout column = unwrap(rows.column());
  EXPECT_EQ(column.shape(), Coords({48}));
  for (int64_t row = 0; row < 48; ++row)
    EXPECT_EQ(column.offset({row}), rows.offset({row, 0}));
  expectError(unwrap(SharedLayout::linear(64, 32)).column(),
              "expected plain rows to have a column of");
  expectError(unwrap(SharedLayout::swizzled(8, 64, 16, 128)).column(),
              "expected plain rows to have a column of");
}

TEST(SharedLayout, ViewsAndRings) {
  SharedLayout buffer = unwrap(SharedLayout::swizzled(64, 96, 16, 64));
  SharedLayout view = unwrap(buffer.subview({16, 8}, {48, 40}));
  SharedLayout across = view.transposed();
  EXPECT_EQ(across.shape(), Coords({40, 48}));
  EXPECT_EQ(across.viewOffsets(), Coords({8, 16}));
  EXPECT_EQ(across.spanBytes(), 64u);
  EXPECT_EQ(across.contiguousDim(), 0u);
  for (const Coords &c : allCoords(view.shape())) {
    int64_t offset = buffer.offset({c[0] + 16, c[1] + 8});
    EXPECT_EQ(view.offset(c), offset);
    EXPECT_EQ(across.offset({c[1], c[0]}), offset);
    EXPECT_EQ(view.find(offset), c);
  }
  EXPECT_FALSE(view.find(0));
  SharedLayout ring = unwrap(buffer.ring(3));
  EXPECT_EQ(ring.slotBytes(), 64 * 96 * 2);
  EXPECT_EQ(ring.totalBytes(), 3 * 64 * 96 * 2);
  EXPECT_EQ(unwrap(buffer.ring(2, 16384)).totalBytes(), 16384 + 64 * 96 * 2);
}

TEST(SharedLayout, TextRoundTrip) {
  SharedLayout buffer = unwrap(SharedLayout::swizzled(60, 96, 16, 64));
  for (const SharedLayout &layout :
       {buffer, buffer.transposed(), unwrap(buffer.ring(2)),
        unwrap(buffer.subview({8, 16}, {16, 24})),
        unwrap(SharedLayout::choose(10, 40, 16)),
        unwrap(SharedLayout::linear(300, 32))}) {
    SharedLayout parsed = unwrap(SharedLayout::parse(layout.str()));
    EXPECT_EQ(parsed, layout) << layout.str();
    EXPECT_EQ(parsed.spanBytes(), layout.spanBytes());
  }
  EXPECT_EQ(unwrap(buffer.ring(2)).str(),
            "16-bit {dim0: [32] [72] [144]; dim1: [1] [2] [4] [8] [16] -> "
            "offset: 256} * (8 @ 256, 3 @ 2048) shape (60, 96) slots 2 @ "
            "12288");
}

TEST(SharedLayout, PairsAndInterleavedRows) {
  for (auto [rows, columns, span] :
       {std::tuple(64, 128, 128), {32, 64, 64}, {48, 32, 32}, {16, 256, 128}}) {
    SharedLayout bytes = unwrap(SharedLayout::swizzled(rows, columns, 8, span));
    SharedLayout pairs = unwrap(bytes.inPairs());
    SharedLayout mixed = unwrap(pairs.interleavedRows());
    ASSERT_EQ(mixed.shape(), Coords({rows, columns / 2}));
    for (int64_t row = 0; row < rows; ++row) {
      int64_t s = row % 16 / 8, r = row % 8;
      int64_t actual = row / 16 * 16 + (r < 4 ? 2 * r + s : 2 * r + 1 - s);
      for (int64_t column = 0; column < columns; column += 2) {
        EXPECT_EQ(pairs.offset({row, column / 2}), bytes.offset({row, column}));
        EXPECT_EQ(mixed.offset({row, column / 2}),
                  bytes.offset({actual, column}));
      }
    }
    // Eight rows of 16 bytes fill the 32 banks.
    for (int64_t row = 0; row < rows; row += 8) {
      std::set<int64_t> banks;
      for (int64_t r = 0; r < 8; ++r)
        banks.insert(mixed.offset({row + r, 0}) / 16 % 8);
      EXPECT_EQ(banks.size(), 8u) << "span " << span;
    }
  }
}

TEST(SharedLayout, QuadColumns) {
  for (auto [rows, columns, span] :
       {std::tuple(16, 128, 128), {8, 64, 64}, {48, 16, 32}, {64, 192, 128}}) {
    SharedLayout plain =
        unwrap(SharedLayout::swizzled(rows, columns, 16, span));
    SharedLayout quads = unwrap(plain.quadColumns());
    ASSERT_EQ(quads.shape(), plain.shape());
    EXPECT_EQ(quads.sizeBytes(), plain.sizeBytes());
    EXPECT_EQ(quads.alignment(), plain.alignment());
    // What would be fragments of a product with neighbours is with quads.
    EXPECT_EQ(quads.spanBytes(), 0u);
    for (int64_t row = 0; row < rows; ++row)
      for (int64_t column = 0; column < columns; ++column) {
        int64_t h = column % 16 / 8, t = column % 8 / 2, i = column % 2;
        int64_t quad = column / 16 * 16 + 4 * t + 2 * h + i;
        EXPECT_EQ(quads.offset({row, quad}), plain.offset({row, column}));
      }
  }
}

TEST(SharedLayout, Errors) {
  expectError(SharedLayout::swizzled(0, 64, 16, 128),
              "expected a positive shape, got 0x64");
  expectError(SharedLayout::swizzled(8, 64, 12, 128),
              "expected elements of 8, 16, 32, 64 or 128 bits, got 12");
  expectError(SharedLayout::swizzled(8, 64, 16, 48),
              "expected a swizzle span of 0, 32, 64 or 128 bytes, got 48");
  expectError(SharedLayout::swizzled(8, 96, 16, 128),
              "expected rows of a multiple of 64 elements for a span of 128 "
              "bytes, got 96");
  expectError(SharedLayout::swizzled(8, 64, 16, 128, 72),
              "expected no pitch with a swizzle, got 72");
  expectError(SharedLayout::swizzled(8, 64, 16, 0, 60),
              "expected a pitch of at least 64 elements, got 60");
  expectError(SharedLayout::linear(0, 16), "expected a positive size, got 0");
  SharedLayout buffer = unwrap(SharedLayout::swizzled(8, 64, 16, 128));
  expectError(buffer.interleavedRows(),
              "expected a swizzled buffer with a multiple of 16 rows, got "
              "16-bit {dim0: [72] [144] [288]; dim1: [1] [2] [4] [8] [16] [32] "
              "-> offset: 512} * (1 @ 0, 1 @ 0)");
  expectError(unwrap(SharedLayout::swizzled(8, 64, 8, 64)).quadColumns(),
              "expected a swizzled buffer of 16-bit elements, got 8-bit {dim0: "
              "[64] [144] [288]; dim1: [1] [2] [4] [8] [16] [32] -> offset: "
              "512} * (1 @ 0, 1 @ 0)");
  expectError(unwrap(SharedLayout::linear(64, 8)).inPairs(),
              "expected a swizzled buffer of two dimensions, got 8-bit {dim0: "
              "[1] [2] [4] [8] [16] [32] -> offset: 64} * (1 @ 0)");
  expectError(buffer.subview({0}, {1}),
              "expected 2 offsets and sizes, got 1 and 1");
  expectError(buffer.subview({0, 60}, {1, 8}),
              "expected a part of 64 elements along dim1, got 8 at 60");
  expectError(buffer.ring(0), "expected a positive number of slots, got 0");
  expectError(buffer.ring(2, 1000),
              "expected slots a multiple of 1024 and at least 1024 bytes "
              "apart, got 1000");
  expectError(buffer.ring(2, 1040),
              "expected slots a multiple of 1024 and at least 1024 bytes "
              "apart, got 1040");
  auto parse = [](llvm::StringRef text) { return SharedLayout::parse(text); };
  expectError(parse("9-bit {dim0: -> offset: 1} * (1 @ 0)"),
              "expected elements of 8, 16, 32, 64 or 128 bits, got 9");
  expectError(parse("8-bit {dim0: -> place: 1} * (1 @ 0)"),
              "expected a shared unit with the one dimension 'offset'");
  expectError(parse("8-bit {dim1: -> offset: 1} * (1 @ 0)"),
              "expected axis 0 to be 'dim0', got 'dim1'");
  expectError(parse("8-bit {dim0: -> offset: 1} * (1 @ 0, 1 @ 0)"),
              "expected 1 repetitions, got 2");
  expectError(parse("8-bit {dim0: [0] -> offset: 1} * (1 @ 0)"),
              "expected different offsets for different elements, got rank 0 "
              "of 1 bits");
  expectError(parse("8-bit {dim0: -> offset: 1} * (0 @ 0)"),
              "expected a positive repetition count, got 0");
  expectError(parse("8-bit {dim0: -> offset: 1} * (2000000000 @ 1)"),
              "expected a buffer below 16777216 bytes, got count 2000000000 "
              "and stride 1");
  expectError(parse("8-bit {dim0: -> offset: 1} * (4 @ 1) shape 4"),
              "expected '(' at character 43 of the layout, got '4'");
  expectError(parse("8-bit {dim0: -> offset: 1} * (4 @ 1) slots 2 16"),
              "expected '@' at character 45 of the layout, got '16'");
}
