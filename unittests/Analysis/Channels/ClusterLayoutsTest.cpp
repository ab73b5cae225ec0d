//===- ClusterLayoutsTest.cpp - Layouts of clusters by enumeration --------===//
//
// All layouts of the factors of a product in clusters of 1, 2, 4 and 8 CTAs:
// what follows from bases is held against CTAs that copy pieces to each other.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Dialect/Attn/IR/CGALayout.h"
#include "gtest/gtest.h"
#include <map>
#include <set>

using namespace mlir::attn;

namespace {

/// Warps of each CTA that read results.
constexpr int64_t kWarps = 4;
/// Pieces of a CTA's block of a, and of a half of b.
constexpr int64_t kPieces = 8;

/// All ways to give bits of the rank steps along a dimension, the others none.
std::vector<CGABases> listBases(unsigned bits, unsigned dim) {
  std::vector<CGABases> all;
  for (uint32_t code = 0; code < 1u << 2 * bits; ++code) {
    CGABases bases;
    for (unsigned bit = 0; bit < bits; ++bit) {
      bases.push_back({0, 0});
      bases.back()[dim] = (code >> 2 * bit & 3) == 3 ? 4 : code >> 2 * bit & 3;
    }
    if (findFault(bases).empty())
      all.push_back(bases);
  }
  return all;
}

int64_t blockOf(const CGABases &bases, unsigned rank, unsigned dim) {
  int64_t block = 0;
  for (size_t bit = 0; bit < bases.size(); ++bit)
    block += rank >> bit & 1 ? bases[bit][dim] : 0;
  return block;
}

/// A piece of a tensor: its block along M or N, which half, and which piece.
using Piece = std::array<int64_t, 3>;

/// CTAs that copy pieces to each other, and remember who wrote what.
struct ToyCluster {
  std::vector<std::multiset<Piece>> memory;
  std::vector<std::set<uint32_t>> writers;
  /// Pieces that come to the memory of each pair.
  std::vector<int64_t> arrived;

  explicit ToyCluster(uint32_t ctas)
      : memory(ctas), writers(ctas), arrived(ctas) {}

  /// The CTA of rank `from` brings its part of a block to the CTAs that hold
  /// the same one: those of which `holds` says so.
  template <typename Holds>
  void load(uint32_t from, int64_t block, int64_t half, Holds holds) {
    std::vector<uint32_t> holders;
    for (uint32_t to = 0; to < memory.size(); ++to)
      if (holds(to))
        holders.push_back(to);
    size_t own =
        std::find(holders.begin(), holders.end(), from) - holders.begin();
    int64_t count = kPieces / int64_t(holders.size());
    for (uint32_t to : holders)
      for (int64_t piece = own * count; piece < int64_t(own + 1) * count;
           ++piece) {
        memory[to].insert({block, half, piece});
        writers[to].insert(from);
        ++arrived[to - to % 2];
      }
  }
};

/// The channel of a factor, and that of results.
ChannelInfo makeChannel(uint32_t ctas, uint32_t multicast, int64_t warps) {
  ChannelInfo info;
  info.cluster = ctas;
  info.roles.resize(2);
  for (RoleInfo &role : info.roles) {
    role.participants.resize(1);
    role.participants[0].count = 1;
  }
  RoleInfo &products = info.roles[warps ? 0 : 1];
  products.leaderBits = 1;
  if (warps) {
    info.roles[1].participants[0].count = warps;
    return info;
  }
  info.roles[0].countsBytes = true;
  info.roles[0].multicastBits = multicast;
  return info;
}

/// Holds what is derived for one factor against what the toy does.
void checkFactor(uint32_t ctas, const CGABases &bases, unsigned dim,
                 bool isHalved) {
  uint32_t bits = getCopiedBits(bases) & ~1u;
  ChannelInfo info = makeChannel(ctas, bits, 0);
  SignalMask loads(0, bits);
  // A block of b has two halves for each step.
  auto place = [&](uint32_t rank) {
    int64_t block = blockOf(bases, rank, dim);
    return isHalved ? std::pair(block / 2, block % 2)
                    : std::pair(block, int64_t(0));
  };
  ToyCluster toy(ctas);
  for (uint32_t rank = 0; rank < ctas; ++rank) {
    uint32_t holders = 0;
    auto holds = [&](uint32_t to) { return place(to) == place(rank); };
    for (uint32_t to = 0; to < ctas; ++to)
      holders |= uint32_t(holds(to)) << to;
    EXPECT_EQ(loads.getTargets(rank, ctas), holders);
    toy.load(rank, place(rank).first, place(rank).second, holds);
  }
  std::map<uint32_t, std::set<uint32_t>> readers;
  for (uint32_t rank = 0; rank < ctas; ++rank) {
    // Each piece of its own once, and nothing else.
    std::multiset<Piece> block;
    for (int64_t piece = 0; piece < kPieces; ++piece)
      block.insert({place(rank).first, place(rank).second, piece});
    EXPECT_EQ(toy.memory[rank], block);
    for (uint32_t writer : toy.writers[rank])
      readers[writer].insert(rank - rank % 2);
  }
  for (uint32_t leader = 0; leader < ctas; leader += 2) {
    EXPECT_EQ(info.getBytes(0, kPieces), toy.arrived[leader]);
    uint32_t mask = 0;
    for (uint32_t writer = 0; writer < ctas; ++writer)
      mask |= uint32_t(readers[writer].count(leader)) << writer;
    EXPECT_EQ(info.getTarget(1).getTargets(leader, ctas), mask);
    for (uint32_t of : {leader, leader + 1})
      EXPECT_EQ(info.getTarget(0).getTargets(of, ctas), 1u << leader);
  }
  // The leader announces; each writer hears of all leaders that read.
  EXPECT_EQ(info.getCount(0), 1);
  for (uint32_t writer = 0; writer < ctas; ++writer)
    EXPECT_EQ(info.getCount(1), int64_t(readers[writer].size()));
}

TEST(ClusterLayouts, PairsByEnumeration) {
  int64_t pairs = 0, refused = 0;
  for (unsigned bits = 0; bits <= 3; ++bits) {
    uint32_t ctas = 1u << bits;
    for (const CGABases &a : listBases(bits, 0))
      for (const CGABases &b : listBases(bits, 1)) {
        bool isPair = bits != 0;
        for (uint32_t rank = 0; rank + 1 < ctas; rank += 2)
          isPair &= blockOf(a, rank, 0) != blockOf(a, rank + 1, 0) &&
                    blockOf(b, rank, 1) == blockOf(b, rank + 1, 1);
        ProductLayouts own = ProductLayouts::get(a, b);
        ASSERT_EQ(own.canPair(), isPair);
        ++(isPair ? pairs : refused);
        if (!isPair)
          continue;
        ProductLayouts paired = own.getPaired();
        for (uint32_t rank = 0; rank < ctas; ++rank) {
          // Each CTA has the rows and columns that it would have by itself, and
          // half of the columns of b.
          EXPECT_EQ(blockOf(paired.d, rank, 0), blockOf(a, rank, 0));
          EXPECT_EQ(blockOf(paired.d, rank, 1), blockOf(b, rank, 1));
          EXPECT_EQ(blockOf(paired.b, rank, 1),
                    2 * blockOf(b, rank, 1) + rank % 2);
        }
        checkFactor(ctas, paired.a, 0, /*isHalved=*/false);
        checkFactor(ctas, paired.b, 1, /*isHalved=*/true);
      }
  }
  EXPECT_GT(pairs, 50);
  EXPECT_GT(refused, 100);
}

TEST(ClusterLayouts, ResultsAndTheirReaders) {
  for (uint32_t ctas : {2u, 4u, 8u}) {
    ChannelInfo info = makeChannel(ctas, 0, kWarps);
    for (uint32_t rank = 0; rank < ctas; ++rank) {
      uint32_t leader = rank - rank % 2;
      EXPECT_EQ(info.getTarget(0).getTargets(leader, ctas), 3u << leader);
      EXPECT_EQ(info.getTarget(1).getTargets(rank, ctas), 1u << leader);
    }
    EXPECT_EQ(info.getCount(0), 1);
    EXPECT_EQ(info.getCount(1), 2 * kWarps);
  }
}

TEST(ClusterLayouts, Refused) {
  // Rows of a that are the same in both CTAs; depth that differs; columns of b
  // that do.
  EXPECT_FALSE(ProductLayouts::get({{0, 0}}, {{0, 0}}).canPair());
  EXPECT_FALSE(ProductLayouts::get({{0, 1}}, {{0, 0}}).canPair());
  EXPECT_FALSE(ProductLayouts::get({{1, 0}}, {{0, 1}}).canPair());
  EXPECT_FALSE(ProductLayouts::get({{1, 0}}, {{1, 0}}).canPair());
  // Two steps, a step that is no power of two, one that is left out.
  EXPECT_FALSE(findFault({{1, 1}}).empty());
  EXPECT_FALSE(findFault({{3, 0}}).empty());
  EXPECT_FALSE(findFault({{2, 0}}).empty());
  EXPECT_FALSE(findFault({{1, 0}, {1, 0}}).empty());
  EXPECT_FALSE(findFault({{1, 0}, {2}}).empty());
  EXPECT_TRUE(findFault({{2, 0}, {0, 0}, {1, 0}}).empty());
}

} // namespace
