//===- ChannelProgram.h - What partitions do about channels ---------------===//
//
// Of each partition of a kernel behind attn-expand-pipeline only acquires and
// releases are left, and the loops and branches around them, with the numbers
// that these depend on.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELS_CHANNELPROGRAM_H
#define ATTN_LIB_ANALYSIS_CHANNELS_CHANNELPROGRAM_H

#include "ScalarTerms.h"
#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Channels/ChannelReport.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace mlir::attn {

/// A role's place in a kernel's channels, and some of its parts.
struct ChannelPlace {
  /// In the order of ChannelAnalysis::getChannels.
  unsigned channel = 0;
  unsigned role = 0;
  /// Of an acquire those of the role before; bit 0 of a slot without parts.
  unsigned parts = 1;
};

struct ChannelStep {
  enum class Kind { Acquire, Release, Split, Pass, If, Loop };
  Kind kind = Kind::Pass;
  Operation *op = nullptr;
  /// Of acquires and releases.
  ChannelPlace place;
  /// The token that is taken or made.
  Value token;
  /// Tokens that control flow, a split or a join hands on, each to several.
  SmallVector<std::pair<Value, SmallVector<Value, 2>>, 0> passes;
  /// The condition of a branch.
  TermId condition = 0;
  /// A loop's bounds, step and counter.
  TermId lower = 0, upper = 0, step = 0, counter = 0;
  /// What a loop or the first region of a branch does, and the second region.
  std::vector<ChannelStep> body, otherwise;
};

/// One partition. Without a loop over tiles everything is `tile`.
struct PartitionProgram {
  StringRef name;
  unsigned index = 0;
  /// In front of the loop over tiles, in it, and behind it.
  std::vector<ChannelStep> before, tile, after;
};

/// The loop over tiles, which is the same in all partitions.
struct TileLoop {
  /// The loop of one of them.
  Operation *op = nullptr;
  /// The numbers that stand for the tile.
  SmallVector<TermId, 2> tile;
  /// Of an scf.for.
  TermId lower = 0, upper = 0, step = 0;
  /// Of an scf.while: whether there is a tile, and the first one.
  std::optional<TermId> condition;
  SmallVector<TermId, 2> first;
  /// The numbers of the tile behind `tile`.
  SmallVector<TermId, 2> next;
};

/// The partitions of a kernel that use channels.
class ChannelProgram {
public:
  explicit ChannelProgram(const ChannelAnalysis &analysis)
      : analysis(analysis) {}

  /// Follows the kernel; what it cannot follow is what it returns.
  std::optional<ChannelNote> build();

  TermTable terms;
  std::vector<PartitionProgram> partitions;
  std::optional<TileLoop> tiles;

  ChannelCreateOp getChannel(unsigned channel) const {
    return (analysis.getChannels().begin() + channel)->first;
  }
  const ChannelInfo &getInfo(unsigned channel) const {
    return (analysis.getChannels().begin() + channel)->second;
  }
  unsigned getNumChannels() const { return analysis.getChannels().size(); }
  int64_t getDepth(unsigned channel) const;
  int64_t getClusterSize() const;
  /// "partition 'consumer'".
  static std::string describe(const PartitionProgram &partition);

private:
  using Steps = std::vector<ChannelStep>;
  std::optional<ChannelNote> build(Operation &op, Steps &steps,
                                   const HandleFlow &flow);
  std::optional<ChannelNote> build(Block &block, Steps &steps,
                                   const HandleFlow &flow);
  std::optional<ChannelNote> buildUser(ChannelUserOpInterface op, Steps &steps);
  std::optional<ChannelNote> buildRegions(Operation &op, Steps &steps,
                                          const HandleFlow &flow);
  std::optional<ChannelNote> build(Block &block, PartitionProgram &program,
                                   Operation *tileLoop, const HandleFlow &flow);
  std::optional<ChannelNote> buildTile(Operation *loop, Steps &steps,
                                       const HandleFlow &flow);
  void findTileLoops(WarpSpecializeOp partitionsOp);
  bool bindTiles(Operation *loop);
  bool bindWhile(scf::WhileOp loop, bool isFirst);
  bool usesChannels(Operation *op) const;

  const ChannelAnalysis &analysis;
  /// Of each partition that uses channels, if all of them have one.
  DenseMap<Region *, Operation *> tileLoops;
  /// Ops with an acquire or a release at or below them.
  DenseSet<Operation *> users;
};

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELS_CHANNELPROGRAM_H
