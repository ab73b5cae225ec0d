//===- LaunchNumbers.h - Numbers of one CTA ---------------------*- C++ -*-===//

#ifndef ATTN_LIB_ANALYSIS_TILES_LAUNCHNUMBERS_H
#define ATTN_LIB_ANALYSIS_TILES_LAUNCHNUMBERS_H

#include "../Flow/RegionArithmetic.h"
#include "../Knowledge/NumberList.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::attn::barriers {

/// More tiles or blocks than this are not looked at one by one.
inline constexpr int64_t kMostTiles = 1 << 20;

/// Blocks of a launch, and how many of them in a row are a cluster.
struct LaunchShape {
  std::array<int64_t, 3> grid = {0, 0, 0};
  int64_t cluster = 1;
};

/// Numbers of values in one CTA, from those that are given. How a value is
/// computed is looked up once, for all CTAs and tiles.
class LaunchNumbers {
public:
  explicit LaunchNumbers(const LaunchShape &launch) : launch(launch) {}
  /// Forgets all numbers, and takes another CTA.
  void start(std::array<int64_t, 3> first) {
    block = first;
    ++round;
  }
  /// True once more CTAs and tiles were looked at than there is time for.
  bool isExhausted() const { return round > 4 * kMostTiles; }
  void set(Value value, int64_t number) { settle(find(value), number); }
  std::optional<int64_t> get(Value value) { return get(find(value)); }

private:
  struct Node {
    Value value;
    /// A constant, or a number of the launch.
    std::function<int64_t()> leaf;
    Arithmetic compute;
    SmallVector<unsigned, 3> operands;
    int64_t round = 0;
    std::optional<int64_t> number;
  };

  unsigned find(Value value);
  void describe(Node &node);
  std::optional<int64_t> get(unsigned index);
  void settle(unsigned index, std::optional<int64_t> number) {
    nodes[index].round = round;
    nodes[index].number = number;
  }

  LaunchShape launch;
  std::array<int64_t, 3> block = {0, 0, 0};
  int64_t round = 1;
  llvm::DenseMap<Value, unsigned> places;
  std::vector<Node> nodes;
};

/// The numbers of a CTA's tiles in one of its loops.
struct WalkedTiles {
  /// All in a row; or, with `takesTurns`, the first ones of all runs, then the
  /// second ones.
  SmallVector<NumberList::Run, 2> runs;
  bool takesTurns = false;
  int64_t count = 0;

  /// Returns true if they are the same in the same order.
  bool areSame(const WalkedTiles &other) const;
  /// Returns the first of them, at most so many.
  std::vector<int64_t> getFirst(int64_t most) const;
};

/// Returns which tiles a CTA walks, or why that is not known.
llvm::Expected<WalkedTiles> walkTiles(LaunchNumbers &values, scf::ForOp loop,
                                      Value tile, int64_t block);

/// The numbers of all tiles that some CTA of the grid may take.
class TileSet {
public:
  /// Adds all numbers below `bound`.
  void addBelow(int64_t bound);
  void add(const WalkedTiles &tiles);
  int64_t size() const { return count; }
  int64_t getLeast() const { return least; }
  int64_t getGreatest() const { return greatest; }
  /// Returns true if no number comes twice, false if one does, nothing if that
  /// takes too long to say.
  std::optional<bool> areDistinct() const;
  /// Returns true if they are all numbers below one, each of them once.
  bool areAllBelow() const {
    return least == 0 && greatest == count - 1 && areDistinct().value_or(false);
  }
  /// Returns them in the order in which they were added, or nothing if they are
  /// more than `most`.
  std::vector<int64_t> list(int64_t most) const;

private:
  std::vector<WalkedTiles> walks;
  int64_t count = 0, least = INT64_MAX, greatest = INT64_MIN;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_TILES_LAUNCHNUMBERS_H
