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

/// Actor, epoch, lane and flags of the earlier access, and whether it wrote.
using Conflicts = std::set<std::array<unsigned, 5>>;

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
    stamp.flags = draw(4)   ? 0
                  : draw(2) ? Stamp::Async
                            : Stamp::Strong | (draw(3) ? 0 : Stamp::OfCta);
    isWrite = !draw(4);
    clocks[actor].raise(actor, stamp.epoch - draw(2));
  }
  ShadowAccess makeAccess() const {
    return ShadowAccess(stamp, isWrite, clocks[stamp.actor]);
  }
  /// Shadows without a second cell that could share a state.
  static std::vector<Shadow> makeSingleCells() {
    std::vector<Shadow> cells(NumCells);
    for (Shadow &cell : cells)
      cell.init(4, 4);
    return cells;
  }
  static void note(Conflicts &to, const Stamp &s, bool wasWrite) {
    to.insert({s.actor, s.epoch, s.lane, s.flags, wasWrite});
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
    Shadow areas;
    areas.init(4 * NumCells, 4);
    std::vector<Shadow> cells = makeSingleCells();
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
          cells[cell].access(0, 4, one,
                             [&](const Stamp &s, bool wasWrite, uint64_t) {
                               note(expected, s, wasWrite);
                             });
        }
      }
      ASSERT_EQ(found, expected) << "step " << step;
    }
  }
}

TEST_F(ShadowTest, LanesFindWhatTheyFindAlone) {
  for (Clock &clock : clocks)
    clock.cluster = 0;
  Shadow shared;
  shared.init(4 * NumCells, 4);
  std::vector<Shadow> cells = makeSingleCells();
  for (unsigned step = 0; step < 5000; ++step) {
    advance();
    if (!draw(3)) // A part of an actor's past is known of some lanes only.
      clocks[stamp.actor].setPart(draw(NumActors), draw(step + 1), draw(~0u));
    unsigned first = draw(NumCells), stride = draw(4), flags = stamp.flags;
    ShadowDecision decided;
    for (unsigned lane = 0; lane < 32; ++lane) {
      stamp.lane = lane;
      stamp.flags = draw(8) ? flags : flags | Stamp::SameValue;
      // Memory that gets a new owner gives numbers of states back.
      for (unsigned cell = draw(8) ? NumCells : 0; cell < NumCells; ++cell)
        if (draw(2)) {
          shared.reset(4 * cell, 4);
          cells[cell].reset(0, 4);
          const Clock &clock = clocks[0];
          Stamp other = stamp;
          other.actor = NumActors;
          auto ignore = [](const Stamp &, bool, uint64_t) {};
          ShadowAccess here(other, true, clock), there(other, true, clock);
          shared.access(4 * cell, 4, here, ignore);
          cells[cell].access(0, 4, there, ignore);
        }
      unsigned cell = (first + stride * lane) % NumCells;
      Conflicts found, expected;
      ShadowAccess access(stamp, isWrite, clocks[stamp.actor], &decided);
      shared.access(4 * cell, 4, access,
                    [&](const Stamp &s, bool wasWrite, uint64_t) {
                      note(found, s, wasWrite);
                    });
      ShadowAccess one = makeAccess();
      cells[cell].access(0, 4, one,
                         [&](const Stamp &s, bool wasWrite, uint64_t) {
                           note(expected, s, wasWrite);
                         });
      ASSERT_EQ(found, expected) << "step " << step << ", lane " << lane;
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

namespace {

Stamp stampOf(unsigned actor, uint8_t flags = 0) {
  Stamp stamp;
  stamp.actor = actor;
  stamp.epoch = 1;
  stamp.flags = flags;
  return stamp;
}

/// Knows what some actors have done.
Clock clockOf(std::initializer_list<unsigned> actors) {
  Clock clock;
  clock.cluster = 0;
  for (unsigned actor : actors)
    clock.raise(actor, 1);
  return clock;
}

/// The actors whose accesses are not ordered before this one.
std::set<unsigned> access(Shadow &shadow, const Stamp &stamp, bool isWrite,
                          const Clock &clock, uint64_t offset = 0,
                          uint64_t bytes = 4) {
  std::set<unsigned> found;
  ShadowAccess each(stamp, isWrite, clock);
  shadow.access(offset, bytes, each,
                [&](const Stamp &s, bool, uint64_t) { found.insert(s.actor); });
  return found;
}

} // namespace

TEST(ShadowReaders, NoneIsForgotten) {
  // Whoever is the one that a write does not know of, of up to six.
  for (unsigned count = 1; count <= 6; ++count)
    for (unsigned unknown = 0; unknown < count; ++unknown) {
      Shadow shadow;
      shadow.init(64, 4);
      Clock nothing = clockOf({}), clock = clockOf({});
      for (unsigned actor = 0; actor < count; ++actor) {
        EXPECT_TRUE(access(shadow, stampOf(actor), false, nothing).empty());
        if (actor != unknown)
          clock.raise(actor, 1);
      }
      EXPECT_EQ(access(shadow, stampOf(9), true, clock),
                (std::set<unsigned>{unknown}));
    }
}

TEST(ShadowReaders, CoverOnlyWhatTheirEndShows) {
  // Actor 1 reads after actor 0: who comes after 1 comes after 0, unless 1 is
  // asynchronous, whose end says nothing of what its issuer knew, or 0 asks
  // that nothing is ever written.
  for (uint8_t first : {0, int(Stamp::ReadOnly)})
    for (uint8_t second : {0, int(Stamp::Async)}) {
      Shadow shadow;
      shadow.init(64, 4);
      access(shadow, stampOf(0, first), false, clockOf({}));
      access(shadow, stampOf(1, second), false, clockOf({0}));
      bool isCovered = !first && !second;
      EXPECT_EQ(access(shadow, stampOf(2), true, clockOf({1})).empty(),
                isCovered);
    }
}

TEST(ShadowReaders, StayInTheirCells) {
  // What cells in one state become is not for one that nobody has touched.
  Shadow shadow;
  shadow.init(64, 4);
  access(shadow, stampOf(0), false, clockOf({}));
  access(shadow, stampOf(1), false, clockOf({}), 0, 12);
  EXPECT_TRUE(access(shadow, stampOf(2), true, clockOf({1}), 4, 8).empty());
  EXPECT_EQ(access(shadow, stampOf(3), true, clockOf({1}), 0, 4),
            (std::set<unsigned>{0}));
}

TEST(ShadowReaders, EachAreaOfAnAccessIsReported) {
  Shadow shadow;
  shadow.init(64, 4);
  for (unsigned offset : {0, 32})
    access(shadow, stampOf(0), true, clockOf({}), offset);
  Clock nothing = clockOf({});
  ShadowAccess each(stampOf(1), true, nothing);
  std::set<uint64_t> found;
  for (unsigned offset : {0, 32})
    shadow.access(offset, 4, each,
                  [&](const Stamp &, bool, uint64_t at) { found.insert(at); });
  EXPECT_EQ(found, (std::set<uint64_t>{0, 32}));
}
