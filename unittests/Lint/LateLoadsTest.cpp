//===- LateLoadsTest.cpp - tests of loads that arrivals may overtake ------===//
#include "attn/Lint/SassLint.h"

#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::ElementsAre;

namespace {

constexpr unsigned None = 7;

/// A line of a listing whose word names the scoreboard `written` and waits for
/// those in the mask `awaited`.
std::string row(unsigned place, const char *code, unsigned written = None,
                unsigned awaited = 0) {
  uint64_t word = uint64_t(awaited << 11 | 7 << 8 | written << 5 | 2) << 41;
  return llvm::formatv("/*{0:x-4}*/ {1} ; /* 0x0000000000007918 */\n"
                       "       /* 0x{2:x-16} */\n",
                       place, code, word)
      .str();
}

RemoteArrivals find(const std::string &text) {
  auto code = parseSassListing(".text.k:\n" + text);
  EXPECT_TRUE(bool(code)) << llvm::toString(code.takeError());
  std::optional<RemoteArrivals> found = findRemoteArrivals(*code);
  EXPECT_TRUE(found);
  return *found;
}

unsigned countEarly(const std::string &text) { return find(text).early.size(); }

constexpr const char *Load = "LDSM.16.M88.4 R4, [R0]";
constexpr const char *Arrive =
    "@!P0 SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [R2], RZ";
constexpr const char *Use = "FADD R8, R4, R4";

} // namespace

TEST(LateLoads, ArrivalsBehindWaits) {
  RemoteArrivals bad =
      find(row(0, Load, 2) + row(0x10, Arrive) + row(0x20, Use, None, 4));
  EXPECT_EQ(bad.arrivals, 1u);
  EXPECT_EQ(bad.loads, 1u);
  ASSERT_EQ(bad.early.size(), 1u);
  EXPECT_EQ(bad.early[0].place, 0x10u);
  EXPECT_THAT(bad.early[0].loads, ElementsAre(0u));
  // Of another instruction, of the arrival itself, by DEPBAR.
  EXPECT_EQ(
      countEarly(row(0, Load, 2) + row(0x10, Use, None, 4) + row(0x20, Arrive)),
      0u);
  EXPECT_EQ(countEarly(row(0, Load, 2) + row(0x10, Arrive, None, 4)), 0u);
  EXPECT_EQ(countEarly(row(0, Load, 2) + row(0x10, "DEPBAR.LE SB2, 0x0") +
                       row(0x20, Arrive)),
            0u);
  // One may be left; another scoreboard.
  EXPECT_EQ(countEarly(row(0, Load, 2) + row(0x10, "DEPBAR.LE SB2, 0x1") +
                       row(0x20, Arrive)),
            1u);
  EXPECT_EQ(countEarly(row(0, Load, 2) + row(0x10, Arrive, None, 2)), 1u);
}

TEST(LateLoads, OtherArrivalsAndLoads) {
  EXPECT_EQ(countEarly(row(0, Load, 2) +
                       row(0x10, "SYNCS.ARRIVE.TRANS64.A1T0 RZ, [R2], RZ")),
            0u);
  EXPECT_EQ(countEarly(row(0, "LDG.E R4, [R2.64]", 2) + row(0x10, Arrive)), 0u);
  EXPECT_EQ(countEarly(row(0, "LD.E R4, [R2.64]", 2) + row(0x10, Arrive)), 1u);
}

TEST(LateLoads, DataComeInOrder) {
  // The wait for the last one shows all of them.
  std::string loads = row(0, Load) + row(0x10, Load, 1) + row(0x20, Load, 2);
  EXPECT_EQ(countEarly(loads + row(0x30, Arrive, None, 4)), 0u);
  RemoteArrivals bad = find(loads + row(0x30, Arrive, None, 2));
  ASSERT_EQ(bad.early.size(), 1u);
  EXPECT_THAT(bad.early[0].loads, ElementsAre(0x20u));
  // Generic loads have no such order.
  EXPECT_EQ(countEarly(row(0, "LD.E R4, [R2.64]", 1) + row(0x10, Load, 2) +
                       row(0x20, Arrive, None, 4)),
            1u);
}

TEST(LateLoads, OnAnyPath) {
  // Around the wait, and around a loop.
  EXPECT_EQ(countEarly(row(0, Load, 2) + row(0x10, "@P0 BRA `(.L_x_0)") +
                       row(0x20, Use, None, 4) + ".L_x_0:\n" +
                       row(0x30, Arrive)),
            1u);
  EXPECT_EQ(countEarly(".L_x_0:\n" + row(0, Arrive) + row(0x10, Load, 2) +
                       row(0x20, "@P0 BRA `(.L_x_0)")),
            1u);
  EXPECT_EQ(countEarly(".L_x_0:\n" + row(0, Arrive) + row(0x10, Load, 2) +
                       row(0x20, "@P0 BRA `(.L_x_0)", None, 4)),
            0u);
  // A later load covers the first one on one of the paths alone.
  EXPECT_EQ(countEarly(row(0, Load, 1) + row(0x10, "@P0 BRA `(.L_x_0)") +
                       row(0x20, Load, 2) + ".L_x_0:\n" +
                       row(0x30, Arrive, None, 4)),
            1u);
}

TEST(LateLoads, ListingsWithoutWords) {
  auto code = parseSassListing(".text.k:\n/*0000*/ EXIT ;\n");
  ASSERT_TRUE(bool(code));
  EXPECT_FALSE(findRemoteArrivals(*code));
}
