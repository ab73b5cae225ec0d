//===- ChannelRuns.h - Runs of partitions about their channels ------------===//
//
// Partitions of a kernel for given numbers: arguments, tile, and what is
// computed from them. No step of a partition depends on the others, so that
// each is a list of acquires and releases.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_CHANNELS_CHANNELRUNS_H
#define ATTN_LIB_ANALYSIS_CHANNELS_CHANNELRUNS_H

#include "ChannelProgram.h"

namespace mlir::attn {

/// An acquire or a release.
struct ChannelEvent {
  const ChannelStep *step = nullptr;
  /// Of a release: which of the partition's acquires its tokens are of, by
  /// their place in the list; of one whole slot in parts there are several.
  SmallVector<unsigned, 2> acquires;
};

/// The events of one tile, for each partition, with nothing held at the end.
using TileEvents = std::vector<std::vector<ChannelEvent>>;

struct TileSample {
  TileEvents events;
  /// The numbers that are given.
  TermValues values;
};

/// A kernel with given arguments.
struct KernelSample {
  /// In front of its tiles and behind them.
  TileEvents before, after;
  /// Some of its tiles, the first of them if there are many.
  std::vector<TileSample> tiles;
};

/// Makes tiles of a kernel.
class ChannelRuns {
public:
  ChannelRuns(ChannelProgram &program, ChannelReport &report)
      : program(program), report(report) {}

  /// A number that decides over steps and that one partition has by itself, if
  /// there is one.
  std::optional<TermId> findLocal();
  /// Kernels with arguments that are tried, small ones first, which are always
  /// the same.
  std::vector<KernelSample> makeKernels();
  /// Runs tiles one after the other. If the partitions come to wait for each
  /// other, that is returned.
  std::optional<ChannelWitness> run(ArrayRef<const TileEvents *> tiles);

private:
  void collectLeaves();
  void collectLeaves(TermId term);
  void collectLeaves(const std::vector<ChannelStep> &steps);
  void giveLeaves(TermValues &values, unsigned number);
  bool giveTile(TermValues &values, unsigned number);
  bool unroll(std::vector<ChannelStep> PartitionProgram::*steps,
              TermValues &values, TileEvents &events);
  bool unroll(const std::vector<ChannelStep> &steps, TermValues &values,
              std::vector<ChannelEvent> &events);
  bool unrollLoop(const ChannelStep &loop, TermValues &values,
                  std::vector<ChannelEvent> &events);

  ChannelProgram &program;
  ChannelReport &report;
  /// What numbers of the program are computed from.
  SmallVector<TermId> leaves;
  DenseSet<TermId> seen;
  /// Trips of loops, in the tile that is unrolled and in all of them.
  unsigned numTrips = 0, numTripsOfAll = 0;
  /// While a partition is unrolled: the acquires that tokens are of.
  DenseMap<Value, SmallVector<unsigned, 2>> tokens;
};

} // namespace mlir::attn

#endif // ATTN_LIB_ANALYSIS_CHANNELS_CHANNELRUNS_H
