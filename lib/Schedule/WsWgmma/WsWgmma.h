//===- WsWgmma.h - The schedule ws_wgmma ------------------------*- C++ -*-===//
//
// FlashAttention-3 style (Shah et al., "FlashAttention-3: Fast and Accurate
// Attention with Asynchrony and Low-precision", 2024): one thread loads Q, K
// and V by TMA into rings, warpgroups of 64 query rows each multiply with
// wgmma. One CTA for each SM walks the tiles of the whole problem.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMA_H
#define ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMA_H

#include "../Tma/RingFacts.h"
#include "attn/Planner/Facts/RegisterLimit.h"
#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

struct TilePlan;

/// Slots of what is to be transposed or widened.
inline constexpr int64_t kRawSlots = 2;

/// Registers that a thread of each partition asks for.
struct RegisterBudget {
  int64_t consumer = 0;
  int64_t producer = 0;
  int64_t widener = 0;
};

/// The most columns of 8-bit values for which QK ahead leaves consumers
/// registers for the scores of a block of more than 32 keys.
inline constexpr RegisterLimit kMostWidenedAhead{
    "ws_wgmma.widened_ahead_columns"};

/// True for products in order beside more 8-bit columns.
bool widensInOrder(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Threads of a CTA: a warpgroup more than the plan's where keys are widened.
int64_t countThreads(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Returns budgets that together fit the registers that the kernel starts with.
RegisterBudget getRegisterBudget(const ProblemFacts &facts,
                                 WsWgmmaPlanAttr plan);

/// True if lost bets are corrected, so that scores and probabilities share
/// registers (`rescore` of attn.kv_loop): where results leave registers for
/// that.
bool rescores(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// True if whole warps of the producer look for the keys of a tile, which takes
/// a single thread longer than the consumers have blocks for.
bool producerLooksForKeys(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// True if the producer's partition reads the indices as well: all threads of
/// one that transposes or looks for keys, and the producers of all CTAs of a
/// cluster.
bool producerReadsTiles(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Says why tiles cannot begin where documents do; none if they can.
std::optional<std::string> findUncut(const ProblemFacts &facts);
/// Returns of how many keys of a batch the begins of blocks are a multiple
/// where tiles begin with documents.
int64_t getDocumentAlign(WsWgmmaPlanAttr plan);

/// Whether results leave by TMA, and what they pass through.
ResultBuffer getResultBuffer(const ProblemFacts &facts, WsWgmmaPlanAttr plan,
                             const TargetRow &target);

/// Bytes of the rings, of their mbarriers, and of results that have memory of
/// their own.
ResourceSum getSharedBytes(const ProblemFacts &facts, WsWgmmaPlanAttr plan,
                           const TargetRow &target);

/// True for more columns than an instruction of wgmma has.
bool isWide(const ProblemFacts &facts);

/// Returns which tiles CTAs walk under a plan.
TilePlan getTilePlan(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitWsWgmma(KernelContext &context, WsWgmmaPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMA_H
