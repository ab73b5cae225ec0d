//===- UnknownsTest.cpp - What is known of numbers of the launch ----------===//

#include "../../../lib/Analysis/Knowledge/Unknowns.h"
#include "gtest/gtest.h"

using namespace mlir::attn::barriers;

/// So many times x + y = 2 z and x - y = 2 w + 1: numbers are like that,
/// integers are not, which no row says by itself.
static Facts makeHalves(unsigned count) {
  Facts facts;
  auto isZero = [&](const Affine &sum) {
    facts.add(sum);
    facts.add(sum.times(-1));
  };
  for (unsigned first = 0; first < 4 * count; first += 4) {
    Affine x = Affine::unknown(first), y = Affine::unknown(first + 1),
           z = Affine::unknown(first + 2), w = Affine::unknown(first + 3);
    isZero(x.plus(y).plus(z, -2));
    isZero(x.plus(y, -1).plus(w, -2).plus(Affine(-1)));
    for (const Affine &number : {x, y, z, w}) {
      facts.add(number);
      facts.add(Affine(9).plus(number, -1));
    }
  }
  return facts;
}

/// Integers are searched for as long as the table is small. A search counts as
/// work, and what takes too much is not begun: there may be integers then.
TEST(Unknowns, SearchesForIntegersInSmallTables) {
  Facts few = makeHalves(1), many = makeHalves(12);
  EXPECT_FALSE(few.areImpossible());
  int64_t table = few.takeWork();
  EXPECT_FALSE(few.haveIntegers());
  // Beside what shows that numbers are like that, which it begins with.
  EXPECT_GT(few.takeWork(), 2 * table);
  EXPECT_FALSE(many.areImpossible());
  EXPECT_TRUE(many.haveIntegers());
  EXPECT_LT(many.takeWork(), 48 * 144 * 49);
}

/// Numbers of 0 or 1 of which so many even factors, and an odd one, have to add
/// up to an odd number: each choice of them has to be tried, as it were.
static Facts makeChoices(unsigned count) {
  Facts facts;
  Affine sum;
  int64_t factor = 1, all = 0;
  for (unsigned number = 0; number < count; ++number) {
    factor = number == 0 ? 2001 : 2 * (1000 + (factor * 7919) % 1000);
    all += factor;
    Affine choice = Affine::unknown(number);
    facts.add(choice);
    facts.add(Affine(1).plus(choice, -1));
    sum = sum.plus(choice, factor);
  }
  sum = sum.plus(Affine(-(all / 4) * 2 - 1));
  facts.add(sum);
  facts.add(sum.times(-1));
  return facts;
}

/// A mask may add up any numbers. A search among few of them ends soon, and one
/// among many is not begun, small as the table may be.
TEST(Unknowns, SearchesForIntegersAmongFewUnknowns) {
  Facts few = makeChoices(14), many = makeChoices(24);
  EXPECT_FALSE(few.areImpossible());
  int64_t table = few.takeWork();
  few.haveIntegers();
  EXPECT_GT(few.takeWork(), 2 * table);
  EXPECT_FALSE(many.areImpossible());
  table = many.takeWork();
  EXPECT_TRUE(many.haveIntegers());
  EXPECT_EQ(many.takeWork(), table);
}
