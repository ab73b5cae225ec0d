//===- NumberListTest.cpp - Lists of numbers against plain ones -----------===//

#include "../../../lib/Analysis/Knowledge/NumberList.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::attn::barriers;

static std::vector<int64_t> expand(const NumberList &list) {
  std::vector<int64_t> numbers;
  for (const NumberList::Run &run : list.getRuns())
    for (int64_t index = 0; index < run.count; ++index)
      numbers.push_back(run.at(index));
  return numbers;
}

static NumberList makeList(llvm::ArrayRef<int64_t> numbers) {
  NumberList list;
  for (int64_t number : numbers)
    list.push_back(number);
  return list;
}

TEST(NumberList, KeepsEqualDistancesAsTwoNumbers) {
  NumberList list;
  list.append({7, 1000000, 3});
  EXPECT_EQ(list.size(), 1000000);
  EXPECT_EQ(list.getRuns().size(), 1u);
  EXPECT_EQ(list.getGreatest(), 7 + 3 * 999999);
  EXPECT_EQ(list.select({{10, 20}, {999990, 1000000}}).getRuns().size(), 2u);
  EXPECT_EQ(list.shift(2).getDistanceTo(list), 2);
  EXPECT_FALSE(list.select({{0, 5}}).getDistanceTo(list));
}

TEST(NumberList, AgreesWithPlainNumbers) {
  std::mt19937 rng(1);
  auto draw = [&](int64_t most) { return int64_t(rng() % (most + 1)); };
  for (unsigned round = 0; round < 2000; ++round) {
    std::vector<int64_t> numbers;
    NumberList list;
    for (int64_t runs = 1 + draw(3); runs > 0; --runs) {
      NumberList::Run run{draw(6) - 3, 1 + draw(5), draw(4) - 2};
      list.append(run);
      for (int64_t index = 0; index < run.count; ++index)
        numbers.push_back(run.at(index));
    }
    ASSERT_EQ(expand(list), numbers);
    ASSERT_EQ(list.size(), int64_t(numbers.size()));
    // However a list came about, its runs are the same.
    EXPECT_TRUE(list.getRuns() == makeList(numbers).getRuns());
    EXPECT_EQ(list.areAllEqual(), llvm::all_equal(numbers));
    EXPECT_EQ(list.getLeast(), *llvm::min_element(numbers));
    EXPECT_EQ(list.getGreatest(), *llvm::max_element(numbers));
    int64_t number = draw(6) - 3;
    std::vector<int64_t> rest, found;
    for (auto [index, own] : llvm::enumerate(numbers))
      (own == number ? found : rest).push_back(own);
    IndexRanges at = list.find(number);
    EXPECT_EQ(expand(list.select(at)), found);
    EXPECT_EQ(expand(list.select(getOthers(at, list.size()))), rest);
    std::vector<int64_t> squares;
    for (int64_t own : numbers)
      squares.push_back(own * own);
    EXPECT_EQ(expand(list.map([](int64_t n) { return n * n; })), squares);
  }
}
