//===- StreamOrderTest.cpp - What orders work of host and streams ---------===//

#include "attn/Device/StreamOrder.h"
#include "gtest/gtest.h"

using namespace mlir::attn::device;

namespace {

class StreamOrderTest : public ::testing::Test {
protected:
  /// Does an operation, and returns how many races it has.
  size_t touch(uint32_t actor, uint64_t begin, uint64_t end, bool isWrite) {
    races.clear();
    using Range = mlir::attn::sim::TouchedRange;
    order.access(order.begin(actor, {"operation", ""}),
                 Range{begin, end, isWrite ? Range::Write : Range::Read},
                 races);
    return races.size();
  }
  StreamOrder order;
  uint32_t main = order.addStream(StreamKind::Default);
  uint32_t a = order.addStream(StreamKind::NonBlocking);
  uint32_t b = order.addStream(StreamKind::NonBlocking);
  std::vector<OrderRace> races;
};

TEST_F(StreamOrderTest, WorkOfAStreamIsInOrder) {
  EXPECT_EQ(touch(a, 0, 10, true), 0u);
  EXPECT_EQ(touch(a, 0, 10, false), 0u);
  EXPECT_EQ(touch(a, 5, 20, true), 0u);
}

TEST_F(StreamOrderTest, ReadsDoNotRace) {
  EXPECT_EQ(touch(a, 0, 10, false), 0u);
  EXPECT_EQ(touch(b, 0, 10, false), 0u);
  EXPECT_EQ(touch(main, 0, 10, true), 2u);
  EXPECT_FALSE(races[0].earlierWrites);
  EXPECT_TRUE(races[0].laterWrites);
}

TEST_F(StreamOrderTest, PartsOfRanges) {
  EXPECT_EQ(touch(a, 10, 20, true), 0u);
  EXPECT_EQ(touch(b, 0, 10, true), 0u);
  EXPECT_EQ(touch(b, 20, 30, true), 0u);
  ASSERT_EQ(touch(b, 0, 12, false), 1u);
  EXPECT_EQ(races[0].begin, 10u);
  EXPECT_EQ(races[0].end, 12u);
  // The rest of the range is a's still.
  EXPECT_EQ(touch(b, 12, 20, true), 1u);
  EXPECT_EQ(touch(b, 12, 20, true), 0u);
  EXPECT_EQ(touch(a, 15, 16, false), 1u);
  EXPECT_EQ(touch(b, 8, 8, true), 0u);
}

TEST_F(StreamOrderTest, AtomicsGoTogether) {
  using Range = mlir::attn::sim::TouchedRange;
  auto count = [&](uint32_t actor) {
    races.clear();
    order.access(order.begin(actor, {"operation", ""}),
                 Range{0, 4, Range::Atomic}, races);
    return races.size();
  };
  EXPECT_EQ(count(a), 0u);
  EXPECT_EQ(count(b), 0u);
  EXPECT_EQ(touch(a, 0, 4, false), 1u);
  EXPECT_EQ(count(b), 1u);
}

TEST_F(StreamOrderTest, EventsCarryOrder) {
  EXPECT_EQ(touch(a, 0, 10, true), 0u);
  OrderClock event = order.record(a);
  EXPECT_EQ(touch(a, 20, 30, true), 0u);
  order.wait(b, event);
  EXPECT_EQ(touch(b, 0, 10, false), 0u);
  EXPECT_EQ(touch(b, 20, 30, false), 1u);
}

TEST_F(StreamOrderTest, TheHostCarriesOrder) {
  EXPECT_EQ(touch(a, 0, 10, true), 0u);
  order.synchronise(a);
  EXPECT_EQ(touch(b, 0, 10, true), 0u);
  EXPECT_EQ(touch(StreamOrder::Host, 0, 10, false), 1u);
  order.synchroniseAll();
  EXPECT_EQ(touch(StreamOrder::Host, 0, 10, true), 0u);
}

TEST_F(StreamOrderTest, BlockingStreamsGoWithTheDefaultOne) {
  uint32_t c = order.addStream(StreamKind::Blocking);
  uint32_t d = order.addStream(StreamKind::Blocking);
  EXPECT_EQ(touch(c, 0, 10, true), 0u);
  EXPECT_EQ(touch(d, 0, 10, false), 1u);
  EXPECT_EQ(touch(main, 0, 10, true), 0u);
  EXPECT_EQ(touch(d, 0, 10, true), 0u);
  EXPECT_EQ(touch(a, 0, 10, true), 1u);
  // An event of the default stream is behind the blocking ones.
  EXPECT_EQ(touch(c, 20, 30, true), 0u);
  order.wait(b, order.record(main));
  EXPECT_EQ(touch(b, 20, 30, true), 0u);
}

TEST_F(StreamOrderTest, StreamsThatAreGone) {
  uint32_t c = order.addStream(StreamKind::Blocking);
  EXPECT_EQ(touch(c, 0, 10, true), 0u);
  order.dropStream(c);
  EXPECT_EQ(touch(a, 0, 10, true), 1u);
  EXPECT_EQ(touch(c, 40, 50, true), 0u);
  // Its work may still run: a new stream does not come after it.
  uint32_t other = order.addStream(StreamKind::Blocking);
  EXPECT_EQ(touch(other, 40, 50, true), 1u);
  EXPECT_EQ(touch(main, 40, 50, true), 0u);
  order.synchroniseAll();
  EXPECT_EQ(order.addStream(StreamKind::Blocking), c);
}

TEST_F(StreamOrderTest, MemoryOfANewOwner) {
  EXPECT_EQ(touch(a, 0, 30, true), 0u);
  order.forget(10, 20);
  EXPECT_EQ(touch(b, 10, 20, true), 0u);
  EXPECT_EQ(touch(b, 9, 10, true), 1u);
  EXPECT_EQ(touch(b, 20, 21, true), 1u);
}

} // namespace
