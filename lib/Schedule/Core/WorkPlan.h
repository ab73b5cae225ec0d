//===- WorkPlan.h - Runs that a kernel in front deals -----------*- C++ -*-===//
//
// A kernel in front of the one that attends writes down which run each CTA has
// (attn.plan_work), or which tiles there are (attn.plan_tiles). It reads
// lengths or numbers of documents only, so that its records serve every launch
// on the same ones.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_WORKPLAN_H
#define ATTN_LIB_SCHEDULE_CORE_WORKPLAN_H

#include "attn/Schedule/Core/KernelContext.h"

namespace mlir::attn {

/// Keys of a sequence that its queries see at most.
int64_t getSeenKeys(const ProblemFacts &facts);

/// Gives `facts` memory for the records that a kernel of `shape` reads, a
/// workspace of the launch.
void makeWorkPlan(ProblemFacts &facts, const KernelShape &shape);

/// The kernel that writes the records of `facts.work` for one of `shape`.
class WorkPlanFrame : public KernelFrame {
public:
  WorkPlanFrame(const ProblemFacts &facts, const KernelShape &shape,
                const TargetRow &target);
  KernelShape getShape() const;
  void emit();

private:
  int64_t getRuns() const {
    return equalRuns ? equalRuns.runs : facts.work.shape.front();
  }

  /// Lists the tiles of documents.
  void emitCutTiles();

  const ProblemFacts &facts;
  const EqualRuns equalRuns;
  const CutTiles cutTiles;
};

/// A record, i32 each: a sequence, its run, how many runs it has, its keys.
struct WorkRecord {
  Value sequence, run, runs, keys;
};

/// Loads record `index`, i32.
WorkRecord loadWorkRecord(KernelContext &context, Value index);

/// One of equal runs, i32 each: its first record and the one after its last,
/// and the sequence that begins in it and goes on, with the number of its
/// pieces.
struct RunOfPieces {
  Value first, end, merged, pieces;
};

/// Loads run `index`, i32, of equal runs.
RunOfPieces loadRunOfPieces(KernelFrame &frame, Value index);

/// A piece of a sequence, i32 each: the sequence, its keys, and the piece's
/// first block and how many it has.
struct PieceRecord {
  Value sequence, keys, first, blocks;
};

/// Loads record `index`, i32, of `runs` equal runs.
PieceRecord loadPiece(KernelFrame &frame, int64_t runs, Value index);

/// A tile of a list, i32 each: its batch, the place in it from which the others
/// count, its first query and the end of them, its first key and the end of
/// these; and whether all keys are those of all queries, i1.
struct TileRecord {
  Value batch, origin, query, queries, begin, end, isOne;
};

/// Returns how many tiles the list has, i32.
Value loadTileCount(KernelFrame &frame);
/// Loads tile `index`, i32.
TileRecord loadTile(KernelFrame &frame, Value index);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_WORKPLAN_H
