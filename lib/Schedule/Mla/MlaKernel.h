//===- MlaKernel.h - Kernels of mla with own scores -------------*- C++ -*-===//
//
// Three partitions walk the same tiles and, in each, the same blocks of keys
// from the last to the first. A warpgroup loads keys and queries: by TMA, whose
// thread waits for free slots only, and by cp.async what TMA cannot copy. One
// computes scores and probabilities. Two hold the results, half of the columns
// of each slice each.
//
// The columns of a block of keys come in slices, with a ring each, so that
// scores begin when the first columns are there, and the slice that results
// read first is loaded anew while their product with the next one runs. A slot
// of the first slices, the values, goes from the loads to the scores, from
// there to the results, and back; one of the other columns, `rope`, from the
// scores back. With queries in registers (`holdsLatentQueries`) the queries of
// the first slice pass through a slot of its keys at the begin of a tile.
// The channel p hands over probabilities, in shared memory, and the factor by
// which results are rescaled first; it has one slot, so that the scores of the
// next block and their softmax run during the product of this one. The
// channel scale hands over what results are multiplied by at the end.
//
// 8-bit keys have two rings for each slice: loads fill one, and a fourth
// partition, `widener`, writes them as f16 to the other one.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_MLA_MLAKERNEL_H
#define ATTN_LIB_SCHEDULE_MLA_MLAKERNEL_H

#include "../Kernel/Pipe.h"
#include "MlaRings.h"
#include "attn/Schedule/Kernel/Scores.h"
#include "attn/Schedule/Kernel/StoreResults.h"

namespace mlir::attn {

class MlaKernel {
public:
  MlaKernel(KernelContext &context, MlaPlanAttr plan);
  LogicalResult run();

private:
  /// The programs of the partitions. Either of the first two loads.
  void loadByTma();
  void loadByThreads();
  void computeScores();
  void computeResults();
  void widen();
  /// Registers that a thread of each role asks for.
  struct RoleBudget {
    int64_t results = 0, scores = 0, load = 0, widener = 0;
  };
  RoleBudget getBudget() const;
  SmallVector<Partition> listPartitions();

  /// Returns the ends that `role` has of the channels of queries.
  std::vector<Pipe> openQueries(const Role &role);
  /// Returns the ends that `role` has of the rings of `slices`.
  std::vector<Pipe> openKeys(ArrayRef<LatentSlice> slices, const Role &role);
  /// Returns the ends that the loads have of the rings that they fill.
  std::vector<Pipe> openLoads();
  /// Returns how many blocks of keys the tile has.
  Value countTrips();
  Value getLastBlock();
  /// Returns the first key of block `trip`, counted from `last`.
  Value getFirstKey(Value last, Value trip);

  /// Brings the table of pages to L2 where a tile begins with the CTA.
  void prefetchPages();
  /// True if there are no more tiles than CTAs.
  bool hasOneTile() const;
  /// True if a slot of keys is one copy from a page, whose address leaves the
  /// widener registers to load a part of a slot ahead.
  bool hasSimpleLoads() const;

  /// Starts to copy the tile's queries by cp.async.
  void startQueryCopies();
  /// Starts to copy a slice of the block at `firstKey` to `slot`, by cp.async.
  void startKeyCopy(const LatentSlice &slice, Value firstKey, Slot slot);

  /// Calls `body` with the first key of each block of the tile.
  void forBlocks(function_ref<void(Value)> body);
  /// Returns the slot of a slice's queries.
  Value getQueries(const LatentSlice &slice);
  /// Returns a slice's queries as an operand, which the slot has already in the
  /// type of operands, or which are converted in place.
  Value convertQueries(const LatentSlice &slice);
  /// Returns a slice's queries in registers, from the slot of keys that they
  /// pass through.
  Value loadQueries(const LatentSlice &slice, Slot slot);
  /// Makes probabilities of the scores `s` of the block at `firstKey`. Returns
  /// them, in the type of operands, and the factor of results; null after a
  /// diagnostic.
  std::pair<Value, Value> softmax(Value scale, Value firstKey, Value s, Var &m,
                                  Var &l, Var &largest);
  /// Stores the LSE of rows, if the launch has one.
  void storeLse(const FinalRows &rows);
  /// Returns half `index` of the probabilities `p`.
  Value cutHalf(Value p, int64_t index);
  /// Returns half `index` of the memory of the probabilities.
  Value getHalf(int64_t index);

  /// Returns a number of each row from shared memory.
  Value loadRows(Value buffer);
  /// Returns the slices of results without keys.
  SmallVector<Value> makeZeros();
  /// Starts to add probabilities times a slot of values to `sum`: those of half
  /// `part` of the keys where halves are handed over, else all.
  Value multiplyValues(int64_t part, Value values, Value sum);
  /// True if partial results of f16 have units that all slices have in common.
  bool sharesUnits() const;
  /// True if slices of the results are stored in the tile's last block.
  bool storesEarly() const;
  /// True if slice `index` is stored in the tile's last block.
  bool isStoredEarly(int64_t index) const;
  /// Lets the next step start where the CTA stores its last results.
  void releaseNext();
  /// Stores the sum `result` of slice `index` times `scale` of its rows.
  void storeScaled(int64_t index, Value result, Value scale);
  /// Stores it in the type of the results, and units of these if they are the
  /// slice's own.
  void storeOwn(int64_t index, Value result, Value scale);
  /// Stores it as results of a whole sequence, which nobody merges.
  void storeWhole(int64_t index, Value result, Value scale);
  /// Stores `o`, of the type of the results.
  void storeSlice(int64_t index, Value o);
  /// Stores the slices of `results`, times `scale` of their rows, that were not
  /// stored in the tile's last block.
  void storeRest(ValueRange results, Value scale);

  KernelContext &context;
  const ProblemFacts &facts;
  MlaPlanAttr plan;
  ImplicitLocOpBuilder &b;
  Control control;
  TileWalk tiles;
  AttentionTile &tile;
  LatentRings rings;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_MLA_MLAKERNEL_H
