//===- WaitGroupsTest.cpp - Warps in words, and who waits for whom --------===//

#include "attn/Support/WaitGroups.h"
#include "attn/Support/WarpNames.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

TEST(WarpNames, Numbers) {
  const std::pair<std::vector<int64_t>, const char *> rows[] = {
      {{3}, "3"},
      {{1, 0}, "0, 1"},
      {{0, 1, 2, 3, 7}, "0-3, 7"},
      {{5, 5, 6, 7, 7}, "5-7"},
      {{0, 2, 4, 6, 8, 10, 12, 14}, "0, 2, 4, 6, 8, 10 and 2 more"}};
  for (const auto &[numbers, text] : rows)
    EXPECT_EQ(describeNumbers(numbers), text);
}

TEST(WarpNames, Warps) {
  auto all = [](std::vector<std::array<uint32_t, 3>> ctas, int64_t warps) {
    std::vector<WarpName> names;
    for (const auto &cta : ctas)
      for (int64_t warp = 0; warp < warps; ++warp)
        names.push_back({cta, warp});
    return names;
  };
  EXPECT_EQ(describeWarps(all({{0, 0, 0}}, 1), CtaNames::None), "warp 0");
  EXPECT_EQ(describeWarps(all({{0, 0, 0}}, 18), CtaNames::None), "warps 0-17");
  std::vector<std::array<uint32_t, 3>> two = {{0, 0, 0}, {1, 0, 0}};
  EXPECT_EQ(describeWarps(all(two, 4), CtaNames::Rank),
            "warps 0-3 of CTAs 0, 1");
  EXPECT_EQ(describeWarps(all(two, 4), CtaNames::Grid),
            "warps 0-3 of CTAs (0-1,0,0)");
  // No box: one by one.
  EXPECT_EQ(describeWarps(all({{0, 0, 0}, {1, 1, 0}}, 2), CtaNames::Grid),
            "warps 0, 1 of CTAs (0,0,0), (1,1,0)");
  // CTAs that differ.
  EXPECT_EQ(describeWarps({{{0, 0, 0}, 0}, {{1, 0, 0}, 1}}, CtaNames::Rank),
            "warp 0 of CTA 0 and warp 1 of CTA 1");
  EXPECT_EQ(describeWarps({{{2, 0, 0}, -1}, {{3, 0, 0}, -1}}, CtaNames::Grid),
            "CTAs (2-3,0,0)");
}

/// Of one CTA.
static WaiterNames getNames() {
  WaiterNames names;
  for (unsigned warp = 0; warp < 18; ++warp)
    names.warps.push_back({{}, warp});
  return names;
}

TEST(WaitGroups, CycleOfTwo) {
  std::vector<Waiter> waiters;
  for (unsigned warp : {0, 1, 2, 3})
    waiters.push_back({warp, 10, "phase 1 of 'k.full'[0]", "1 arrival", {4}});
  waiters.push_back(
      {4, 20, "phase 0 of 'v.empty'[1]", "4 arrivals", {0, 1, 2, 3}});
  WaitGroups found = groupWaiters(waiters, getNames());
  EXPECT_EQ(found.summary,
            "warps 0-3 wait for phase 1 of 'k.full'[0] from warp 4, which "
            "waits for phase 0 of 'v.empty'[1]");
  ASSERT_EQ(found.groups.size(), 2u);
  EXPECT_EQ(found.groups[1].text,
            "warp 4 waits here for phase 0 of 'v.empty'[1], which lacks 4 "
            "arrivals from warps 0-3");
}

TEST(WaitGroups, WhatNobodyBrings) {
  WaitGroups found = groupWaiters({{0, 10, "a", "1 arrival", {4}},
                                   {4, 20, "b", "8192 bytes", {}},
                                   {5, 30, "a barrier", "", {4}}},
                                  getNames());
  EXPECT_EQ(found.summary, "warp 0 waits for a from warp 4, which waits for "
                           "b, which lacks 8192 bytes");
  // Who has left brings nothing.
  EXPECT_EQ(
      groupWaiters({{0, 10, "a", "1 arrival", {}, {4}}}, getNames()).summary,
      "warp 0 waits for a, which lacks 1 arrival from warp 4, which "
      "exited");
  // Who is not on the way there comes last.
  ASSERT_EQ(found.groups.size(), 3u);
  EXPECT_EQ(found.groups[2].text,
            "warp 5 waits here for a barrier from warp 4");
}

TEST(WaitGroups, WhoOnlyWaitsForTheCycleIsNotOfIt) {
  WaitGroups found = groupWaiters(
      {{0, 1, "a", "", {1}}, {1, 2, "b", "", {2}}, {2, 3, "c", "", {1}}},
      getNames());
  EXPECT_EQ(found.summary, "warp 1 waits for b from warp 2, which waits for c");
  EXPECT_EQ(found.groups.size(), 3u);
}

TEST(WaitGroups, LongCyclesAreCut) {
  std::vector<Waiter> waiters;
  for (unsigned warp = 0; warp < 18; ++warp)
    waiters.push_back({warp,
                       warp,
                       "phase 0 of the mbarrier at shared offset 8",
                       "1 arrival",
                       {(warp + 1) % 18}});
  WaitGroups found = groupWaiters(waiters, getNames());
  // With "deadlock: " before it, less than a line of 120 characters.
  EXPECT_LT(found.summary.size(), 110u);
  EXPECT_NE(found.summary.find("; 17 more places"), std::string::npos);
  EXPECT_EQ(found.groups.size(), 18u);
}

/// The same in several CTAs is said once.
TEST(WaitGroups, CtasAreNamedOnceWhereTheyAreAlike) {
  WaiterNames names;
  for (uint32_t cta : {0, 1})
    for (unsigned warp = 0; warp < 5; ++warp)
      names.warps.push_back({{cta, 0, 0}, warp});
  names.ctas = CtaNames::Rank;
  names.role = [](llvm::ArrayRef<unsigned> warps) -> std::string {
    return warps.front() % 5 == 4 ? "'producer'" : "";
  };
  std::vector<Waiter> waiters;
  for (unsigned cta : {0, 5}) {
    waiters.push_back({cta, 1, "a", "", {cta + 4}});
    waiters.push_back({cta + 4, 2, "b", "1 of 2 arrivals", {cta}});
  }
  WaitGroups found = groupWaiters(waiters, names);
  EXPECT_EQ(found.summary,
            "CTAs 0, 1: warp 0 waits for a from 'producer', which waits for "
            "b");
  EXPECT_EQ(found.groups[1].text,
            "'producer' warp 4 waits here for b, which lacks 1 of 2 arrivals "
            "from warp 0");
  // One CTA waits for the other one.
  waiters.back().awaitedOf = {0};
  EXPECT_EQ(groupWaiters(waiters, names).summary,
            "warp 0 of CTAs 0, 1 wait for a from 'producer' warp 4 of CTAs 0, "
            "1, which wait for b from warp 0 of CTA 0");
}
