//===- WgmmaFacts.h - What wgmma needs and takes ---------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_WGMMA_WGMMAFACTS_H
#define ATTN_LIB_SCHEDULE_WGMMA_WGMMAFACTS_H

#include "../Tma/RingFacts.h"
#include "attn/Schedule/Core/KernelFrame.h"
#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

struct TilePlan;

/// True if V is transposed between its load and wgmma, whose 8-bit operands
/// have the contraction's index contiguous.
inline bool needsTransposer(const ProblemFacts &facts) {
  return facts.isNarrow() && !facts.hasTransposedValues();
}

/// The head dimension in whole steps of QK.
int64_t getKeyDepth(const ProblemFacts &facts);

/// What checkCommon refuses with 8-bit floats allowed and head dimensions up to
/// `mostColumns`, chips without wgmma, and problems that no tensor map can
/// describe. Pages and lengths of keys, and 8-bit keys beside 16-bit queries,
/// are refused too unless the schedule `serves`, runs of keys unless it
/// `splits` them, and lists of blocks unless it takes `blockLists`.
llvm::Error checkWgmma(llvm::StringRef schedule, const ProblemFacts &facts,
                       const TargetRow &target, int64_t mostColumns,
                       bool serves = false, bool splits = false,
                       bool blockLists = false);

/// Refuses heads that cannot be packed, and runs of keys that the tiles of a
/// plan cannot have: runs come in order of rows, and of one CTA's tiles.
llvm::Error checkTileRuns(const ProblemFacts &facts, bool packHeads,
                          TileOrder order, int64_t groupHeads, int64_t together,
                          int64_t blockN);

/// Refuses rings whose slots QK of the next block would have to wait for.
llvm::Error checkQKAhead(bool qkAhead, int64_t kStages, int64_t vStages);

/// Why the rows of K cannot be loaded in the order of quads; nothing if they
/// can.
std::optional<std::string> findNoQuads(const ProblemFacts &facts);

/// Refuses blocks of `blockN` keys that 8-bit operands, or keys, cannot have,
/// and the order of quads where keys cannot be in it.
llvm::Error checkNarrow(const ProblemFacts &facts, int64_t blockN,
                        bool keyQuads);

/// Registers of a thread for the probabilities of a block.
int64_t getProbabilityRegisters(const ProblemFacts &facts, int64_t blockN);

/// True if the CTAs of a cluster may bring parts of K and V to each other: not
/// of packed sequences, of which a part may lie behind the end.
bool mayShareLoads(const ProblemFacts &facts);

/// Refuses results that leave by TMA or through shared memory.
llvm::Error checkThreadStores(llvm::StringRef schedule, EpilogueKind epilogue);

/// One CTA for each SM of the target's board that is in a whole cluster. They
/// walk all tiles, so any number is right; clusters that have to wait for
/// others to end would take as long once more.
KernelShape getPersistentShape(const ProblemFacts &facts, const TilePlan &tiles,
                               int64_t threads, const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WGMMA_WGMMAFACTS_H
