//===- UnknownsTest.cpp - What follows of numbers that only a launch gives ===//

#include "../../../lib/Analysis/Knowledge/Unknowns.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::attn::barriers;

namespace {

/// Blocks of 128 of `keys`, counted up and down where they do not divide.
struct CountedBlocks {
  CountedBlocks() {
    // 128 up <= keys + 127, and 128 down <= keys < 128 down + 128.
    facts.add(keys.plus(up, -128).plus(Affine(127)));
    facts.add(keys.plus(down, -128));
    facts.add(down.times(128).plus(keys, -1).plus(Affine(127)));
  }
  Affine keys = Affine::unknown(0), up = Affine::unknown(1),
         down = Affine::unknown(2);
  Facts facts;
};

TEST(UnknownsTest, RoundsDifferences) {
  CountedBlocks blocks;
  Affine atMostOneMore = blocks.down.plus(blocks.up, -1).plus(Affine(1));
  EXPECT_FALSE(blocks.facts.imply(atMostOneMore));
  blocks.facts.roundDifferences({1, 2});
  EXPECT_TRUE(blocks.facts.imply(atMostOneMore));
  // No less than holds of integers: 1 and 0 blocks of one key.
  EXPECT_FALSE(blocks.facts.imply(blocks.down.plus(blocks.up, -1)));
  EXPECT_TRUE(blocks.facts.haveIntegers());
}

TEST(UnknownsTest, RoundsDifferencesOfTheseAlone) {
  CountedBlocks blocks;
  size_t before = blocks.facts.get().size();
  blocks.facts.roundDifferences({1});
  blocks.facts.roundDifferences({1, 7});
  EXPECT_EQ(blocks.facts.get().size(), before);
}

/// Returns what a sum is of numbers.
int64_t evaluate(const Affine &sum, const std::array<int64_t, 3> &numbers) {
  int64_t value = sum.constant;
  for (auto [number, factor] : sum.terms)
    value += factor * numbers[number];
  return value;
}

TEST(UnknownsTest, RoundingKeepsAllIntegers) {
  unsigned seed = std::random_device()();
  SCOPED_TRACE(seed);
  std::mt19937 draw(seed);
  std::uniform_int_distribution<int> factors(-4, 4), constants(-3, 9);
  for (int turn = 0; turn < 100; ++turn) {
    Facts facts;
    for (int count = 0; count < 5; ++count) {
      Affine sum(constants(draw));
      for (uint32_t number : {0, 1, 2})
        sum = sum.plus(Affine::unknown(number), factors(draw));
      facts.add(sum);
    }
    Facts rounded = facts;
    rounded.roundDifferences({0, 1, 2});
    for (int64_t a = -5; a <= 5; ++a)
      for (int64_t b = -5; b <= 5; ++b)
        for (int64_t c = -5; c <= 5; ++c) {
          auto holds = [&](const Affine &fact) {
            return evaluate(fact, {a, b, c}) >= 0;
          };
          if (llvm::all_of(facts.get(), holds))
            ASSERT_TRUE(llvm::all_of(rounded.get(), holds));
        }
  }
}

} // namespace
