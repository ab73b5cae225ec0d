//===- Picture.cpp - Layouts as text grids and SVG ------------------------===//
//
// Both kinds of layout become a grid of cells first; text and SVG only differ
// in how a cell is drawn. SVG colours tell lanes (hue) of a register tile,
// banks of a buffer; warps are told apart by lightness.
//
//===----------------------------------------------------------------------===//

#include "attn/Layout/Picture.h"
#include "Errors.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"

using namespace mlir::attn;
using llvm::Error;
using llvm::StringRef;

/// Larger pictures cannot be looked at, and a typing error should not fill a
/// disk.
static constexpr int64_t maxCells = 1 << 20;

static constexpr unsigned cellWidth = 56;
static constexpr unsigned cellHeight = 22;
static constexpr unsigned margin = 40;

namespace {
/// One element of a picture.
struct Cell {
  std::string text;
  /// Degrees.
  unsigned hue = 0;
  /// Per cent.
  unsigned lightness = 85;
};

/// A layout, drawn.
struct Grid {
  int64_t rows = 0;
  int64_t cols = 0;
  std::vector<Cell> cells;

  const Cell &at(int64_t row, int64_t col) const {
    return cells[row * cols + col];
  }
};
} // namespace

static Error checkShape(llvm::ArrayRef<int64_t> shape, Grid &grid) {
  if (shape.empty() || shape.size() > 2)
    return makeError("expected a layout of one or two dimensions to draw, got "
                     "{0}",
                     shape.size());
  grid.rows = shape.size() == 2 ? shape[0] : 1;
  grid.cols = shape.back();
  if (grid.rows > maxCells || grid.cols > maxCells / grid.rows)
    return makeError("expected at most {0} elements to draw, got {1}x{2}",
                     maxCells, grid.rows, grid.cols);
  return Error::success();
}

static Coords coordsAt(unsigned rank, int64_t row, int64_t col) {
  return rank == 2 ? Coords{row, col} : Coords{col};
}

static void printText(const Grid &grid, llvm::raw_ostream &os) {
  size_t width = std::to_string(grid.cols - 1).size();
  for (const Cell &cell : grid.cells)
    width = std::max(width, cell.text.size());
  size_t rowWidth = std::to_string(grid.rows - 1).size();
  os << std::string(rowWidth, ' ') << " |";
  for (int64_t col = 0; col < grid.cols; ++col)
    os << ' ' << llvm::right_justify(std::to_string(col), width);
  os << '\n' << std::string(rowWidth, '-') << "-+";
  os << std::string(grid.cols * (width + 1), '-') << '\n';
  for (int64_t row = 0; row < grid.rows; ++row) {
    os << llvm::right_justify(std::to_string(row), rowWidth) << " |";
    for (int64_t col = 0; col < grid.cols; ++col)
      os << ' ' << llvm::right_justify(grid.at(row, col).text, width);
    os << '\n';
  }
}

static void printSvg(const Grid &grid, llvm::raw_ostream &os) {
  int64_t width = margin + grid.cols * cellWidth;
  int64_t height = margin + grid.rows * cellHeight;
  os << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << width
     << "\" height=\"" << height << "\" font-family=\"monospace\" "
     << "font-size=\"11\" text-anchor=\"middle\">\n"
     << "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n";
  auto text = [&](int64_t x, int64_t y, StringRef value) {
    os << "<text x=\"" << x << "\" y=\"" << y << "\">" << value << "</text>\n";
  };
  for (int64_t col = 0; col < grid.cols; ++col)
    text(margin + col * cellWidth + cellWidth / 2, margin - 8,
         std::to_string(col));
  for (int64_t row = 0; row < grid.rows; ++row) {
    int64_t top = margin + row * cellHeight;
    text(margin / 2, top + 15, std::to_string(row));
    for (int64_t col = 0; col < grid.cols; ++col) {
      const Cell &cell = grid.at(row, col);
      int64_t left = margin + col * cellWidth;
      os << "<rect x=\"" << left << "\" y=\"" << top << "\" width=\""
         << cellWidth << "\" height=\"" << cellHeight
         << "\" stroke=\"#888\" fill=\"hsl(" << cell.hue << ",70%,"
         << cell.lightness << "%)\"/>\n";
      text(left + cellWidth / 2, top + 15, cell.text);
    }
  }
  os << "</svg>\n";
}

static void printGrid(const Grid &grid, PictureFormat format,
                      llvm::raw_ostream &os) {
  if (format == PictureFormat::Text)
    printText(grid, os);
  else
    printSvg(grid, os);
}

Error mlir::attn::printPicture(const TileLayout &layout, PictureFormat format,
                               llvm::raw_ostream &os) {
  Grid grid;
  if (Error error = checkShape(layout.shape(), grid))
    return error;
  grid.cells.resize(grid.rows * grid.cols);
  bool copies = layout.laneBroadcastMask() || layout.warpBroadcastMask() ||
                layout.blockBroadcastMask();
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t col = 0; col < grid.cols; ++col) {
      std::optional<TileIndex> place =
          layout.find(coordsAt(layout.rank(), row, col));
      assert(place && "a tile holds every element of its shape");
      Cell &cell = grid.cells[row * grid.cols + col];
      if (layout.numBlocks() > 1)
        cell.text = "B" + std::to_string(place->block) + ":";
      cell.text +=
          "T" +
          std::to_string(TileLayout::numLanes * place->warp + place->lane) +
          ":r" + std::to_string(place->reg) + (copies ? "*" : "");
      cell.hue = place->lane * 360 / TileLayout::numLanes;
      cell.lightness = 88 - 6 * (place->warp % 4);
    }
  printGrid(grid, format, os);
  return Error::success();
}

Error mlir::attn::printPicture(const SharedLayout &layout, PictureFormat format,
                               llvm::raw_ostream &os) {
  Grid grid;
  if (Error error = checkShape(layout.shape(), grid))
    return error;
  grid.cells.resize(grid.rows * grid.cols);
  for (int64_t row = 0; row < grid.rows; ++row)
    for (int64_t col = 0; col < grid.cols; ++col) {
      int64_t offset = layout.offset(coordsAt(layout.rank(), row, col));
      unsigned bank = offset / 4 % 32;
      Cell &cell = grid.cells[row * grid.cols + col];
      cell.text = std::to_string(offset) + "/" + std::to_string(bank);
      cell.hue = bank * 360 / 32;
    }
  printGrid(grid, format, os);
  return Error::success();
}
