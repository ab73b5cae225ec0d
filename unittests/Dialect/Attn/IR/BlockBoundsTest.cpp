//===- BlockBoundsTest.cpp - Which blocks of keys a tile walks ------------===//
//
// The emitted bounds against the mask's definition, for all residues of
// lengths, bounds and rows.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// The value of `value` where block arguments have `arguments`.
int64_t evaluate(Value value, ArrayRef<int64_t> arguments) {
  if (auto argument = dyn_cast<BlockArgument>(value))
    return arguments[argument.getArgNumber()];
  Operation *op = value.getDefiningOp();
  auto operand = [&](unsigned index) {
    return evaluate(op->getOperand(index), arguments);
  };
  return llvm::TypeSwitch<Operation *, int64_t>(op)
      .Case([](arith::ConstantIntOp constant) { return constant.value(); })
      .Case([&](arith::MulIOp) { return operand(0) * operand(1); })
      .Case([&](arith::AddIOp) { return operand(0) + operand(1); })
      .Case([&](arith::SubIOp) { return operand(0) - operand(1); })
      .Case([&](arith::MinSIOp) { return std::min(operand(0), operand(1)); })
      .Case([&](arith::MaxSIOp) { return std::max(operand(0), operand(1)); })
      .Case([&](arith::DivUIOp) {
        EXPECT_GE(operand(0), 0) << "an unsigned division";
        return operand(0) / operand(1);
      })
      .Default([](Operation *other) {
        ADD_FAILURE() << "expected an operation that is known here, got "
                      << other->getName().getStringRef().str();
        return 0;
      });
}

/// A tile and the mask's definition.
struct Tile {
  MaskAttr mask;
  int64_t blockM, blockN, row, queries, keys;
  /// Rows of a query.
  int64_t group = 1;

  std::string describe() const {
    return llvm::formatv("left {0}, right {1}, {2}, tile {3} x {4} at row {5} "
                         "of {6} queries of {7} rows, {8} keys",
                         mask.getLeft(), mask.getRight(),
                         stringifyMaskAlign(mask.getAlign()), blockM, blockN,
                         row, queries, group, keys);
  }
  /// The tile's queries.
  int64_t begin() const { return row / group; }
  int64_t end() const {
    return llvm::divideCeil(std::min(row + blockM, queries * group), group);
  }
  int64_t offset() const {
    return mask.getAlign() == MaskAlign::BottomRight ? keys - queries : 0;
  }
  bool passesRight(int64_t i, int64_t j) const {
    return j < keys &&
           (mask.getRight() < 0 || j <= i + offset() + mask.getRight());
  }
  bool passesLeft(int64_t i, int64_t j) const {
    return mask.getLeft() < 0 || j >= i + offset() - mask.getLeft();
  }
  /// True if `test` holds for all pairs of the tile's rows and a block's keys.
  template <typename Test>
  bool all(int64_t block, Test test) const {
    for (int64_t i = begin(); i < end(); ++i)
      for (int64_t j = block * blockN; j < (block + 1) * blockN; ++j)
        if (!test(i, j))
          return false;
    return true;
  }
  bool isRightFree(int64_t block) const {
    return all(block, [&](int64_t i, int64_t j) { return passesRight(i, j); });
  }
  bool isLeftFree(int64_t block) const {
    return all(block, [&](int64_t i, int64_t j) { return passesLeft(i, j); });
  }
  bool isNeeded(int64_t block) const {
    return !all(block, [&](int64_t i, int64_t j) {
      return !passesRight(i, j) || !passesLeft(i, j);
    });
  }
};

/// Checks the four bounds; false after a failure.
bool check(const Tile &tile, int64_t begin, int64_t fullBegin, int64_t fullEnd,
           int64_t end) {
  std::string bounds =
      llvm::formatv("{0}: blocks {1}, {2}, {3}, {4}", tile.describe(), begin,
                    fullBegin, fullEnd, end);
  bool good = true;
  auto expect = [&](bool condition, const char *what) {
    EXPECT_TRUE(condition) << what << "; " << bounds;
    good &= condition;
  };
  expect(0 <= begin && begin <= fullBegin && fullBegin <= fullEnd &&
             fullEnd <= end,
         "the bounds ascend");
  int64_t blocks = llvm::divideCeil(tile.keys, tile.blockN), needed = 0;
  for (int64_t block = 0; block < blocks; ++block) {
    if (!tile.isNeeded(block))
      continue;
    ++needed;
    expect(begin <= block && block < end, "a block with keys is walked");
  }
  // Where a window begins behind the last key, its block may hold other keys.
  if (needed == 0)
    expect(end - begin <= 1, "no block is walked for nothing");
  else
    expect(end - begin == needed, "each block that is walked has a key");
  for (int64_t block = begin; block < fullEnd; ++block)
    expect(tile.isRightFree(block), "no key right of the band or of the end");
  for (int64_t block = fullBegin; block < end; ++block)
    if (block < fullEnd)
      expect(tile.isLeftFree(block), "no key left of the band");
  if (begin <= fullEnd && fullEnd < end)
    expect(!tile.isRightFree(fullEnd), "the first right block needs its tests");
  if (begin < fullBegin)
    expect(!tile.isLeftFree(fullBegin - 1),
           "the last left block needs its test");
  return good;
}

class BlockBoundsTest : public ::testing::Test {
protected:
  BlockBoundsTest() { context.loadDialect<AttnDialect, arith::ArithDialect>(); }

  /// Checks all tiles of lengths up to `most` under a mask; false after a
  /// failure.
  bool checkAll(MaskAttr mask, int64_t blockM, int64_t blockN, int64_t most,
                int64_t group = 1) {
    Location loc = UnknownLoc::get(&context);
    Block block;
    IntegerType i32 = IntegerType::get(&context, 32);
    for (int argument = 0; argument < 3; ++argument)
      block.addArgument(i32, loc);
    ImplicitLocOpBuilder builder(loc, &context);
    builder.setInsertionPointToStart(&block);
    auto blocks =
        KeyBlocksOp::create(builder, block.getArgument(0), block.getArgument(1),
                            block.getArgument(2), /*range=*/ValueRange(), mask,
                            blockM, blockN, group);
    SmallVector<Value> bounds = blocks.emitArithmetic(builder);
    for (int64_t queries = 1; queries <= most; ++queries)
      for (int64_t keys = 0; keys <= most; ++keys)
        for (int64_t row = 0; row < queries * group; row += blockM) {
          auto get = [&](Value value) {
            return evaluate(value, {row, queries, keys});
          };
          if (!check({mask, blockM, blockN, row, queries, keys, group},
                     get(bounds[0]), get(bounds[1]), get(bounds[2]),
                     get(bounds[3])))
            return false;
        }
    return true;
  }

  /// Checks the bounds of a tile where another mask leaves a range of keys;
  /// false after a failure.
  bool checkRange(const Tile &tile, ArrayRef<int64_t> range) {
    auto whole = computeBlockBounds(tile.mask, tile.row, tile.queries,
                                    tile.keys, tile.blockM, tile.blockN);
    auto bounds =
        computeBlockBounds(tile.mask, tile.row, tile.queries, tile.keys,
                           tile.blockM, tile.blockN, /*group=*/1, range);
    bool good = 0 <= bounds.begin && bounds.begin <= bounds.fullBegin &&
                bounds.fullBegin <= bounds.fullEnd &&
                bounds.fullEnd <= bounds.end;
    // Blocks of none may stand anywhere.
    good &= bounds.begin == bounds.end ||
            (whole.begin <= bounds.begin && bounds.end <= whole.end);
    for (int64_t block = whole.begin; block < whole.end; ++block) {
      int64_t first = block * tile.blockN, last = first + tile.blockN - 1;
      bool isWalked = bounds.begin <= block && block < bounds.end;
      bool isNeeded =
          first < range[1] && last >= range[0] && range[0] < range[1];
      good &= isWalked || !isNeeded;
      bool isFull = bounds.fullBegin <= block && block < bounds.fullEnd;
      bool mayBeFull = whole.fullBegin <= block && block < whole.fullEnd;
      if (range.size() == 4)
        mayBeFull &= first >= range[2] && last < range[3];
      good &= mayBeFull || !isFull;
    }
    EXPECT_TRUE(good) << tile.describe() << ", keys " << range[0] << " to "
                      << range[1] << ": blocks " << bounds.begin << ", "
                      << bounds.fullBegin << ", " << bounds.fullEnd << ", "
                      << bounds.end;
    return good;
  }

  MLIRContext context;
};

TEST_F(BlockBoundsTest, AreThoseOfTheMask) {
  constexpr std::pair<int64_t, int64_t> sizes[] = {{4, 2}, {4, 4}, {2, 6}};
  for (MaskAlign align : {MaskAlign::TopLeft, MaskAlign::BottomRight})
    for (int64_t left : {-1, 0, 1, 2, 3, 4, 5, 7, 11})
      for (int64_t right : {-1, 0, 1, 2, 3, 4, 6})
        for (auto [blockM, blockN] : sizes) {
          // Without bounds a window is no mask.
          bool isBounded = left >= 0 || right >= 0;
          auto mask = MaskAttr::get(
              &context, isBounded ? MaskKind::Window : MaskKind::None, align,
              left, right);
          ASSERT_TRUE(checkAll(mask, blockM, blockN, /*most=*/13));
        }
}

TEST_F(BlockBoundsTest, RowsOfGroups) {
  constexpr std::pair<int64_t, int64_t> sizes[] = {{4, 2}, {2, 6}};
  for (MaskAlign align : {MaskAlign::TopLeft, MaskAlign::BottomRight})
    for (int64_t left : {-1, 0, 2, 5})
      for (int64_t right : {-1, 0, 3})
        for (int64_t group : {2, 3, 5})
          for (auto [blockM, blockN] : sizes) {
            bool isBounded = left >= 0 || right >= 0;
            auto mask = MaskAttr::get(
                &context, isBounded ? MaskKind::Window : MaskKind::None, align,
                left, right);
            ASSERT_TRUE(checkAll(mask, blockM, blockN, /*most=*/9, group));
          }
}

TEST_F(BlockBoundsTest, RangesNarrow) {
  constexpr int64_t blockM = 4, blockN = 3, queries = 9, keys = 11;
  for (int64_t left : {-1, 2})
    for (int64_t right : {-1, 0}) {
      bool isBounded = left >= 0 || right >= 0;
      auto mask =
          MaskAttr::get(&context, isBounded ? MaskKind::Window : MaskKind::None,
                        MaskAlign::TopLeft, left, right);
      for (int64_t row = 0; row < queries; row += blockM)
        for (int64_t begin = -2; begin <= keys + 2; ++begin)
          for (int64_t end = -2; end <= keys + 2; ++end)
            for (int64_t size : {2, 4})
              ASSERT_TRUE(checkRange(
                  {mask, blockM, blockN, row, queries, keys},
                  ArrayRef<int64_t>{begin, end, begin + 1, end - 1}.take_front(
                      size)));
    }
}

TEST_F(BlockBoundsTest, CausalIsAWindowWithoutLeftBound) {
  // The test's definition reads the bounds of a window.
  auto window = MaskAttr::get(&context, MaskKind::Window, MaskAlign::TopLeft,
                              /*left=*/-1, /*right=*/0);
  auto causal = MaskAttr::get(&context, MaskKind::Causal, MaskAlign::TopLeft,
                              /*left=*/-1, /*right=*/-1);
  EXPECT_TRUE(causal.hasRight());
  EXPECT_FALSE(causal.hasLeft());
  EXPECT_EQ(causal.rightBound(), window.rightBound());
}

} // namespace
