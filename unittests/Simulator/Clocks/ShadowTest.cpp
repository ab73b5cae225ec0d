//===- ShadowTest.cpp - Cells and rows that share their state -------------===//
//
// Random accesses of a few actors, of which each knows a part of what the
// others did: shadows whose cells or rows share states find what shadows find
// that are asked for one cell at a time.
//
//===----------------------------------------------------------------------===//

#include "../../../lib/Simulator/Clocks/RowShadow.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>
#include <set>

using namespace mlir::attn::sim;

namespace {

/// Actor, epoch and lane of the earlier access, and whether it wrote.
using Conflicts = std::set<std::array<unsigned, 4>>;

class ShadowTest : public ::testing::Test {
protected:
  static constexpr unsigned NumActors = 6, NumCells = 64;

  unsigned draw(unsigned limit) { return random() % limit; }
  /// The next access of some actor, who may have learnt of another one before.
  void advance() {
    unsigned actor = draw(NumActors), other = draw(NumActors);
    if (draw(2))
      clocks[actor].raise(other, epochs[other]);
    stamp = Stamp();
    stamp.actor = actor;
    stamp.epoch = ++epochs[actor];
    stamp.lane = draw(3) ? unsigned(Stamp::AllLanes) : draw(32);
    stamp.flags = draw(4) ? 0 : draw(2) ? Stamp::Async : Stamp::Strong;
    isWrite = !draw(4);
    clocks[actor].raise(actor, stamp.epoch - draw(2));
  }
  ShadowAccess makeAccess() const {
    return ShadowAccess(stamp, isWrite, clocks[stamp.actor]);
  }
  static void note(Conflicts &to, const Stamp &s, bool wasWrite) {
    to.insert({s.actor, s.epoch, s.lane, wasWrite});
  }

  std::mt19937_64 random{5};
  Clock clocks[NumActors];
  uint32_t epochs[NumActors] = {};
  Stamp stamp;
  bool isWrite = false;
};

} // namespace

TEST_F(ShadowTest, AreasFindWhatTheirCellsFind) {
  for (Clock &clock : clocks)
    clock.cluster = 0;
  for (unsigned maxReaders : {~0u, 4u}) {
    Shadow areas, cells;
    areas.init(4 * NumCells, 4);
    cells.init(4 * NumCells, 4);
    for (unsigned step = 0; step < 5000; ++step) {
      advance();
      Conflicts found, expected;
      ShadowAccess access = makeAccess();
      access.maxReaders = maxReaders;
      // Two areas of one access, as chunks of an operand.
      for (unsigned area = 0; area < 2; ++area) {
        unsigned first = draw(NumCells), count = 1 + draw(NumCells - first);
        areas.access(4 * first, 4 * count, access,
                     [&](const Stamp &s, bool wasWrite, uint64_t) {
                       note(found, s, wasWrite);
                     });
        for (unsigned cell = first; cell < first + count; ++cell) {
          ShadowAccess one = makeAccess();
          one.maxReaders = maxReaders;
          cells.access(4 * cell, 4, one,
                       [&](const Stamp &s, bool wasWrite, uint64_t) {
                         note(expected, s, wasWrite);
                       });
        }
      }
      ASSERT_EQ(found, expected) << "step " << step;
    }
  }
}

TEST_F(ShadowTest, RowsFindWhatShadowsOfTheirOwnFind) {
  for (Clock &clock : clocks)
    clock.cluster = 0;
  RowShadow shared;
  shared.init(NumCells);
  std::vector<Shadow> rows(RowShadow::NumRows);
  for (Shadow &row : rows)
    row.init(NumCells, 1);
  for (unsigned step = 0; step < 2000; ++step) {
    advance();
    // Partitions of warps, all rows, and now and then any.
    RowShadow::Rows taken = RowShadow::range(32 * draw(4), 32);
    if (!draw(3))
      taken.set();
    else if (!draw(20))
      taken = RowShadow::range(draw(100), 1 + draw(28));
    unsigned first = draw(NumCells), count = 1 + draw(NumCells - first);
    Conflicts found, expected;
    ShadowAccess access = makeAccess();
    shared.access(taken, first, count, access,
                  [&](const Stamp &s, bool wasWrite, unsigned row, unsigned) {
                    EXPECT_TRUE(taken.test(row));
                    note(found, s, wasWrite);
                  });
    for (unsigned row = 0; row < RowShadow::NumRows; ++row) {
      if (!taken.test(row))
        continue;
      ShadowAccess one = makeAccess();
      rows[row].access(first, count, one,
                       [&](const Stamp &s, bool wasWrite, uint64_t) {
                         note(expected, s, wasWrite);
                       });
    }
    ASSERT_EQ(found, expected) << "step " << step;
    if (draw(50))
      continue;
    shared.reset(first, count);
    for (Shadow &row : rows)
      row.reset(first, count);
  }
}
