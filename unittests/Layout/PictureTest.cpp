//===- PictureTest.cpp - Layouts as text grids and SVG --------------------===//

#include "attn/Layout/Picture.h"
#include "LayoutTesting.h"
#include "attn/Layout/NamedLayouts.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;
using ::testing::HasSubstr;

template <typename Layout>
static std::string draw(const Layout &layout, PictureFormat format) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::Error error = printPicture(layout, format, os);
  return error ? "error: " + llvm::toString(std::move(error)) : text;
}

TEST(Picture, RegisterTileAsText) {
  TileLayout tile = unwrap(TileLayout::parse(
      "{register: [0,1]; lane: [1,0] [0,2]; warp: [2,0] -> dim0: 4, dim1: 4}"));
  EXPECT_EQ(draw(tile, PictureFormat::Text),
            "  |       0       1       2       3\n"
            "--+--------------------------------\n"
            "0 |  T0:r0*  T0:r1*  T2:r0*  T2:r1*\n"
            "1 |  T1:r0*  T1:r1*  T3:r0*  T3:r1*\n"
            "2 | T32:r0* T32:r1* T34:r0* T34:r1*\n"
            "3 | T33:r0* T33:r1* T35:r0* T35:r1*\n");
  TileLayout blocks = unwrap(TileLayout::parse(
      "{lane: [1] [2] [4] [8] [16]; block: [32] -> dim0: 64}"));
  EXPECT_THAT(draw(blocks, PictureFormat::Text), HasSubstr("B1:T3:r0"));
}

TEST(Picture, AccumulatorAsText) {
  std::string text =
      draw(unwrap(mmaAccumulator(16, 8, {1, 1})), PictureFormat::Text);
  EXPECT_THAT(text, HasSubstr("\n 1 |  T4:r0  T4:r1  T5:r0  T5:r1"));
  EXPECT_THAT(text, HasSubstr("\n 9 |  T4:r2  T4:r3  T5:r2  T5:r3"));
}

TEST(Picture, BufferAsText) {
  SharedLayout buffer = unwrap(SharedLayout::swizzled(5, 8, 32, 32));
  EXPECT_EQ(draw(buffer, PictureFormat::Text),
            "  |      0      1      2      3      4      5      6      7\n"
            "--+--------------------------------------------------------\n"
            "0 |    0/0    4/1    8/2   12/3   16/4   20/5   24/6   28/7\n"
            "1 |   32/8   36/9  40/10  44/11  48/12  52/13  56/14  60/15\n"
            "2 |  64/16  68/17  72/18  76/19  80/20  84/21  88/22  92/23\n"
            "3 |  96/24 100/25 104/26 108/27 112/28 116/29 120/30 124/31\n"
            "4 |  144/4  148/5  152/6  156/7  128/0  132/1  136/2  140/3\n");
}

TEST(Picture, Svg) {
  std::string tile =
      draw(unwrap(mmaAccumulator(16, 8, {1, 1})), PictureFormat::Svg);
  EXPECT_THAT(tile, HasSubstr("<svg xmlns="));
  EXPECT_THAT(tile, HasSubstr(">T4:r3</text>"));
  EXPECT_THAT(tile, HasSubstr("</svg>\n"));
  size_t cells = 0;
  for (size_t at = tile.find("<rect x="); at != std::string::npos;
       at = tile.find("<rect x=", at + 1))
    ++cells;
  EXPECT_EQ(cells, 128u);
  EXPECT_THAT(draw(unwrap(SharedLayout::linear(4, 32)), PictureFormat::Svg),
              HasSubstr(">12/3</text>"));
}

TEST(Picture, Errors) {
  TileLayout cube = unwrap(
      TileLayout::parse("{register: [1,0,0] -> dim0: 2, dim1: 1, dim2: 1}"));
  EXPECT_EQ(draw(cube, PictureFormat::Text),
            "error: expected a layout of one or two dimensions to draw, got 3");
  EXPECT_EQ(draw(unwrap(SharedLayout::linear(1 << 21, 8)), PictureFormat::Svg),
            "error: expected at most 1048576 elements to draw, got 1x2097152");
}
