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
#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// What a thread of the producer needs, and the most that a consumer gets.
inline constexpr int64_t kLeastProducerRegisters = 24;
inline constexpr int64_t kMostConsumerRegisters = 240;

/// What a thread of a producer needs that starts many copies for each slot.
inline constexpr int64_t kBoxesProducerRegisters = 40;

/// What a thread of a producer that transposes 8-bit values needs, and one that
/// widens keys and values.
inline constexpr int64_t kTransposerRegisters = 56, kWidenerRegisters = 56;
/// Slots of what is to be transposed or widened. With one slot the latter took
/// 1.17 times as long, whatever the rings behind it had in its place (H100,
/// D 128, 16384 keys).
inline constexpr int64_t kRawSlots = 2;

/// Registers that a thread of each partition asks for.
struct RegisterBudget {
  int64_t consumer = 0;
  int64_t producer = 0;
  int64_t widener = 0;
};

/// The most columns of 8-bit values for which QK ahead leaves consumers
/// registers for the scores of a block of more than 32 keys.
inline constexpr int64_t kMostWidenedAhead = 192;

/// The most columns of results that leave registers without spills beside a
/// number for each row of keys, but staged.
inline constexpr int64_t kMostBesideRowScales = 224;

/// True for products in order beside more 8-bit columns. The loading thread has
/// the fewest registers then: with 40 consumers spilled 4 to 40 bytes beside
/// blocks of 64 keys, with 24 nobody did, or 4 of one sequence without a mask.
bool widensInOrder(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Threads of a CTA: a warpgroup more than the plan's where keys are widened.
int64_t countThreads(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Budgets that together fit the registers that the kernel starts with: for two
/// consumer warpgroups 2 x 128 x 240 + 128 x 24 = 64512 of 384 x 168 (2 x 128 x
/// 224 + 128 x 56 with a transposer, 2 x 128 x 216 + 128 x 56 + 128 x 24 =
/// 65536 of 512 x 128 where keys are widened), for three 3 x 128 x 160 + 128 x
/// 24 = 64512 of 512 x 128.
RegisterBudget getRegisterBudget(const ProblemFacts &facts,
                                 WsWgmmaPlanAttr plan);

/// Whether lost bets are corrected, so that scores and probabilities share
/// registers (`rescore` of attn.kv_loop). At head dimension 256, where the
/// accumulator takes most registers, it made kernels slower; with three
/// warpgroups at 128, 80 keys spill 16 bytes.
bool rescores(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// True if the producer's partition reads the indices as well: all threads of
/// one that transposes, and the producers of all CTAs of a cluster.
bool producerReadsTiles(const ProblemFacts &facts, WsWgmmaPlanAttr plan);

/// Whether results leave by TMA, and what they pass through.
ResultBuffer getResultBuffer(const ProblemFacts &facts, WsWgmmaPlanAttr plan,
                             const TargetRow &target);

/// Bytes of the rings, of their mbarriers, and of results that have memory of
/// their own.
ResourceSum getSharedBytes(const ProblemFacts &facts, WsWgmmaPlanAttr plan,
                           const TargetRow &target);

/// True for more columns than an instruction of wgmma has.
bool isWide(const ProblemFacts &facts);

/// Emits the kernel of a plan in tile IR.
LogicalResult emitWsWgmma(KernelContext &context, WsWgmmaPlanAttr plan);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_WSWGMMA_WSWGMMA_H
