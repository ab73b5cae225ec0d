//===- ValueFormsTest.cpp - Kinds of tiles against all tiles --------------===//
//
// Random expressions of the number of a tile, or of a block, as tiles are found
// by: the kinds that follow from their forms have to be those of all tiles.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Analysis/Tiles/ValueForms.h"
#include "../../../lib/Analysis/Tiles/LaunchNumbers.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

namespace {

class ValueFormsTest : public ::testing::Test {
protected:
  ValueFormsTest() {
    context.loadDialect<AttnDialect, func::FuncDialect, arith::ArithDialect,
                        gpu::GPUDialect, scf::SCFDialect>();
  }

  int64_t draw(int64_t least, int64_t most) {
    return least + int64_t(rng() % (most - least + 1));
  }
  std::string drawOp(unsigned count);
  std::string drawBody(unsigned ops, bool isOfTile);
  void parse(const std::string &body, bool isOfTile);

  MLIRContext context;
  std::mt19937 rng{1};
  OwningOpRef<ModuleOp> module;
  SmallVector<Value> values;
  Value tile;
};

} // namespace

/// An op of values before it, mostly of the last one, and of small constants.
std::string ValueFormsTest::drawOp(unsigned count) {
  auto value = [&] {
    return "%v" + std::to_string(draw(0, 2) ? count - 1 : draw(0, count - 1));
  };
  auto constant = [&] {
    const int64_t constants[] = {1, 2, 3, 4, 7, 8, 16, 24, 32, 100};
    return "%c" + std::to_string(constants[draw(0, 9)]);
  };
  auto either = [&] { return draw(0, 3) ? constant() : value(); };
  std::string a = value(), b = constant();
  switch (draw(0, 12)) {
  case 0:
    return llvm::formatv("arith.addi {0}, {1} : i32", a, either());
  case 1:
    return llvm::formatv("arith.subi {0}, {1} : i32", either(), a);
  case 2:
    return llvm::formatv("arith.muli {0}, {1} : i32", a, b);
  case 3:
  case 4:
    return llvm::formatv("arith.divui {0}, {1} : i32", a, either());
  case 5:
  case 6:
    return llvm::formatv("arith.remui {0}, {1} : i32", a, either());
  case 7:
    return llvm::formatv("arith.minsi {0}, {1} : i32", a, either());
  case 8:
    return llvm::formatv("arith.maxsi {0}, {1} : i32", a, either());
  case 9:
    return llvm::formatv("arith.andi {0}, {1} : i32", a, either());
  case 10:
    return llvm::formatv("arith.ceildivui {0}, {1} : i32", a, b);
  case 11:
    return llvm::formatv("arith.shrui {0}, %c{1} : i32", a, draw(1, 4));
  default:
    // As a remainder is written where tiles are grouped.
    return llvm::formatv("arith.divui {0}, {1} : i32\n"
                         "%m{2} = arith.muli %q{2}, {1} : i32\n"
                         "%v{2} = arith.subi {0}, %m{2} : i32",
                         a, b, count);
  }
}

std::string ValueFormsTest::drawBody(unsigned ops, bool isOfTile) {
  std::string text;
  for (int64_t number : {0, 1, 2, 3, 4, 7, 8, 16, 24, 32, 100})
    text += llvm::formatv("%c{0} = arith.constant {0} : i32\n", number);
  unsigned count = 1;
  if (!isOfTile) {
    text += "%x = gpu.block_id x\n%v0 = arith.index_cast %x : index to i32\n"
            "%y = gpu.block_id y\n%v1 = arith.index_cast %y : index to i32\n"
            "%r = gpu.cluster_block_id x\n"
            "%v2 = arith.index_cast %r : index to i32\n";
    count = 3;
  }
  for (unsigned end = count + ops; count < end; ++count) {
    if (draw(0, 6) == 0 && count > 1) {
      text += llvm::formatv("%b{0} = arith.cmpi slt, %v{1}, %v{2} : i32\n"
                            "%v{0} = arith.select %b{0}, %v{2}, %v{1} : i32\n",
                            count, draw(0, count - 1), count - 1);
      continue;
    }
    std::string op = drawOp(count);
    bool isRest = StringRef(op).contains('\n');
    text += llvm::formatv("%{0}{1} = {2}\n", isRest ? "q" : "v", count, op);
  }
  return text;
}

void ValueFormsTest::parse(const std::string &body, bool isOfTile) {
  std::string text = llvm::formatv("func.func @f({0}) {{\n{1}return\n}",
                                   isOfTile ? "%v0: i32" : "", body);
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module) << text;
  values.clear();
  auto function = *module->getOps<func::FuncOp>().begin();
  if (isOfTile)
    tile = function.getArgument(0);
  for (Operation &op : function.getBody().front())
    if (op.getNumResults() == 1)
      values.push_back(op.getResult(0));
}

TEST_F(ValueFormsTest, FindsAllKindsOfTiles) {
  for (unsigned round = 0; round < 400; ++round) {
    std::string body = drawBody(draw(2, 9), /*isOfTile=*/true);
    parse(body, /*isOfTile=*/true);
    LaunchShape launch;
    launch.grid = {1, 1, 1};
    int64_t count = draw(1, 3) == 1 ? draw(1, 40) : draw(4000, 9000);
    ArrayRef<Value> keys = ArrayRef(values).take_back(draw(1, 2));
    LaunchNumbers numbers(launch);
    auto getKey = [&](int64_t number) {
      numbers.start({0, 0, 0});
      numbers.set(tile, number);
      return llvm::map_to_vector(
          keys, [&](Value value) { return numbers.get(value).value_or(-7); });
    };
    std::set<SmallVector<int64_t>> all, found;
    for (int64_t number = 0; number < count; ++number)
      all.insert(SmallVector<int64_t>(getKey(number)));
    int64_t asked = 0;
    EXPECT_TRUE(forKinds(launch, {{{0, count}, {0, 1}, {0, 1}}},
                         /*isOfTile=*/true, tile, keys,
                         [&](std::array<int64_t, 3> at) {
                           ++asked;
                           found.insert(SmallVector<int64_t>(getKey(at[0])));
                         }));
    ASSERT_TRUE(all == found) << count << " tiles\n" << body;
    EXPECT_LE(asked, count);
  }
}

TEST_F(ValueFormsTest, FindsAllKindsOfBlocks) {
  for (unsigned round = 0; round < 200; ++round) {
    std::string body = drawBody(draw(2, 7), /*isOfTile=*/false);
    parse(body, /*isOfTile=*/false);
    LaunchShape launch;
    launch.cluster = int64_t(1) << draw(0, 2);
    launch.grid = {launch.cluster * draw(1, 300), draw(1, 30), 1};
    Value key = values.back();
    LaunchNumbers numbers(launch);
    auto getKey = [&](std::array<int64_t, 3> block) {
      SmallVector<int64_t> ofRanks;
      for (int64_t rank = 0; rank < launch.cluster; ++rank) {
        numbers.start({block[0] + rank, block[1], block[2]});
        ofRanks.push_back(numbers.get(key).value_or(INT64_MIN));
      }
      return ofRanks;
    };
    std::set<SmallVector<int64_t>> all, found;
    for (int64_t y = 0; y < launch.grid[1]; ++y)
      for (int64_t x = 0; x < launch.grid[0]; x += launch.cluster)
        all.insert(getKey({x, y, 0}));
    EXPECT_TRUE(forKinds(
        launch, {{{0, launch.grid[0]}, {0, launch.grid[1]}, {0, 1}}},
        /*isOfTile=*/false, {}, key,
        [&](std::array<int64_t, 3> block) { found.insert(getKey(block)); }));
    ASSERT_TRUE(all == found) << launch.grid[0] << " by " << launch.grid[1]
                              << " in clusters of " << launch.cluster << "\n"
                              << body;
  }
}

/// A million tiles in groups of eight heads, the longest first, are of as many
/// kinds as one head has tiles.
TEST_F(ValueFormsTest, LooksAtFewOfManyTiles) {
  parse(R"(
    %c1 = arith.constant 1 : i32
    %c8 = arith.constant 8 : i32
    %c31 = arith.constant 31 : i32
    %c256 = arith.constant 256 : i32
    %heads = arith.constant 130999 : i32
    %group = arith.divui %v0, %c256 : i32
    %first = arith.muli %group, %c256 : i32
    %place = arith.subi %v0, %first : i32
    %before = arith.muli %group, %c8 : i32
    %more = arith.subi %heads, %before : i32
    %width = arith.minsi %c8, %more : i32
    %row = arith.divui %place, %width : i32
    %isOdd = arith.andi %group, %c1 : i32
    %b = arith.cmpi eq, %isOdd, %c1 : i32
    %back = arith.subi %c31, %row : i32
    %key = arith.select %b, %back, %row : i32
  )",
        /*isOfTile=*/true);
  LaunchShape launch;
  launch.grid = {132, 1, 1};
  std::set<int64_t> found;
  int64_t asked = 0;
  LaunchNumbers numbers(launch);
  EXPECT_TRUE(forKinds(launch, {{{0, 130999 * 32}, {0, 1}, {0, 1}}},
                       /*isOfTile=*/true, tile, values.back(),
                       [&](std::array<int64_t, 3> at) {
                         ++asked;
                         numbers.start({0, 0, 0});
                         numbers.set(tile, at[0]);
                         found.insert(*numbers.get(values.back()));
                       }));
  EXPECT_EQ(found.size(), 32u);
  EXPECT_LT(asked, 40000);
}

/// Which tiles CTAs walk, in turns of alternating direction too.
TEST_F(ValueFormsTest, WalksTilesAsTheLoopDoes) {
  for (int64_t turns : {1, 2}) {
    for (int64_t count : {0, 3, 7, 1000, 100003}) {
      parse(llvm::formatv(R"(
        %x = gpu.block_id x
        %block = arith.index_cast %x : index to i32
        %c0 = arith.constant 0 : i32
        %c1 = arith.constant 1 : i32
        %g = arith.constant 13 : i32
        %last = arith.constant 12 : i32
        %all = arith.constant {0} : i32
        %mask = arith.constant {1} : i32
        %rest = arith.subi %last, %block : i32
        %trips = arith.ceildivui %all, %g : i32
        scf.for %i = %c0 to %trips step %c1 : i32 {{
          %n = arith.muli %i, %g : i32
          %m = arith.andi %i, %mask : i32
          %b = arith.cmpi ne, %m, %c0 : i32
          %p = arith.select %b, %rest, %block : i32
          %t = arith.addi %n, %p : i32
        }
      )",
                          count, turns - 1)
                .str(),
            /*isOfTile=*/false);
      auto function = *module->getOps<func::FuncOp>().begin();
      auto loop = *function.getOps<scf::ForOp>().begin();
      Value number = std::prev(std::prev(loop.getBody()->end()))->getResult(0);
      LaunchShape launch;
      launch.grid = {13, 1, 1};
      LaunchNumbers numbers(launch);
      TileSet all;
      for (int64_t block = 0; block < 13; ++block) {
        auto walked = walkTiles(numbers, loop, number, block);
        ASSERT_TRUE(bool(walked));
        int64_t trips = (count + 12) / 13;
        EXPECT_EQ(walked->count, trips);
        std::vector<int64_t> expected;
        for (int64_t i = 0; i < trips; ++i)
          expected.push_back(13 * i +
                             (turns == 2 && i % 2 ? 12 - block : block));
        EXPECT_EQ(walked->getFirst(trips), expected);
        EXPECT_LE(walked->runs.size(), 3u);
        all.add(*walked);
      }
      EXPECT_EQ(all.areDistinct(), true);
      EXPECT_EQ(all.areAllBelow(), count > 0);
    }
  }
}
