//===- SignalMaskTest.cpp - Where signals of a cluster go -----------------===//

#include "attn/Dialect/Attn/IR/SignalMask.h"
#include "gtest/gtest.h"
#include <vector>

using namespace mlir::attn;

namespace {

/// The CTAs that a signal goes to, written down bit by bit.
uint32_t getTargetsByHand(uint32_t clear, uint32_t any, uint32_t from,
                          uint32_t ctas) {
  std::vector<uint32_t> targets = {0};
  for (uint32_t bit = 1; bit < ctas; bit *= 2)
    for (size_t i = 0, count = targets.size(); i < count; ++i) {
      bool isAny = any & bit, isOwn = !isAny && !(clear & bit) && (from & bit);
      if (isAny)
        targets.push_back(targets[i] | bit);
      else if (isOwn)
        targets[i] |= bit;
    }
  uint32_t mask = 0;
  for (uint32_t to : targets)
    mask |= 1u << to;
  return mask;
}

} // namespace

TEST(SignalMask, AgreesWithEachBitByHand) {
  for (uint32_t ctas : {1u, 2u, 4u, 8u})
    for (uint32_t clear = 0; clear < ctas; ++clear)
      for (uint32_t any = 0; any < ctas; ++any) {
        SignalMask mask(clear, any);
        std::vector<uint32_t> senders(ctas);
        for (uint32_t from = 0; from < ctas; ++from) {
          uint32_t targets = getTargetsByHand(clear, any, from, ctas);
          EXPECT_EQ(mask.getTargets(from, ctas), targets)
              << clear << ' ' << any << ' ' << from << " of " << ctas;
          for (uint32_t to = 0; to < ctas; ++to)
            senders[to] += targets >> to & 1;
        }
        // All that are signalled are by as many.
        for (uint32_t count : senders)
          EXPECT_TRUE(count == 0 || count == mask.countSenders(ctas))
              << clear << ' ' << any << " of " << ctas;
      }
}

TEST(SignalMask, OwnAllAndLeader) {
  for (uint32_t ctas : {1u, 2u, 3u, 4u, 8u, 16u})
    for (uint32_t from = 0; from < ctas; ++from) {
      EXPECT_EQ(SignalMask::own().getTargets(from, ctas), 1u << from);
      EXPECT_EQ(SignalMask::all().getTargets(from, ctas), (1u << ctas) - 1);
      EXPECT_EQ(SignalMask::leader().getTargets(from, ctas), 1u);
      EXPECT_EQ(SignalMask::own().countSenders(ctas), 1u);
      EXPECT_EQ(SignalMask::all().countSenders(ctas), ctas);
      EXPECT_EQ(SignalMask::leader().countSenders(ctas), ctas);
    }
  // Two pairs: their leaders, both CTAs of a pair, CTAs of one place in theirs.
  EXPECT_EQ(SignalMask(1, 0).getTargets(3, 4), 0b0100u);
  EXPECT_EQ(SignalMask(0, 1).getTargets(2, 4), 0b1100u);
  EXPECT_EQ(SignalMask(0, 2).getTargets(1, 4), 0b1010u);
  EXPECT_EQ(SignalMask(1, 0).countSenders(4), 2u);
}
