//===- WsTmemChunks.cpp - Masked blocks in chunks of keys -----------------===//

#include "WsTmemEmitter.h"
#include "attn/Dialect/Attn/IR/BlockBounds.h"
#include "mlir/IR/Remarks.h"

using namespace mlir;
using namespace mlir::attn;

/// Keys that a warp computes together of a block that a mask cuts: as many as
/// it has rows, so that a diagonal cuts one chunk of a block where it is
/// aligned to them, and two where it is not.
static constexpr int64_t kChunkKeys = 32;

namespace {
/// Chunks of the blocks that a mask cuts, of all warps and tiles of a head.
struct ChunkCount {
  int64_t all = 0, computed = 0, masked = 0;
};
} // namespace

/// None where the launch decides lengths, or a warp's rows are no queries.
static std::optional<ChunkCount> countChunks(const ProblemFacts &facts,
                                             WsTmemPlanAttr plan) {
  if (AttentionOp(facts.op).isVariableLength() || facts.isServed() ||
      ShapedType::isDynamic(facts.queries) ||
      ShapedType::isDynamic(facts.keys) || plan.getPackHeads() ||
      plan.getBlockN() % kChunkKeys != 0)
    return std::nullopt;
  auto bound = [&](int64_t row, int64_t rows, int64_t keys) {
    return computeBlockBounds(facts.mask, row, facts.queries, facts.keys, rows,
                              keys);
  };
  int64_t chunks = plan.getBlockN() / kChunkKeys;
  ChunkCount count;
  auto countIn = [&](int64_t row, int64_t firstBlock, int64_t endBlock) {
    int64_t least = firstBlock * chunks, most = endBlock * chunks;
    auto inside = [&](int64_t first, int64_t end) {
      return std::max<int64_t>(std::min(end, most) - std::max(first, least), 0);
    };
    BlockBoundsOf<int64_t> own = bound(row, kChunkKeys, kChunkKeys);
    int64_t computed = inside(own.begin, own.end);
    count.all += most - least;
    count.computed += computed;
    count.masked += computed - inside(own.fullBegin, own.fullEnd);
  };
  for (int64_t first = 0; first < facts.queries; first += kTmemRows) {
    BlockBoundsOf<int64_t> tile = bound(first, kTmemRows, plan.getBlockN());
    int64_t end = std::min(first + kTmemRows, facts.queries);
    for (int64_t row = first; row < end; row += kChunkKeys) {
      countIn(row, tile.begin, tile.fullBegin);
      countIn(row, tile.fullEnd, tile.end);
    }
  }
  return count;
}

void WsTmemEmitter::setChunks(int64_t number, OnlineSoftmaxOp softmax) {
  softmax.setChunk(kChunkKeys);
  // Both softmaxes are alike.
  if (number != 0)
    return;
  auto options =
      remark::RemarkOpts::name("masked-blocks").category("attn.ws-tmem");
  std::optional<ChunkCount> count = countChunks(facts, plan);
  if (!count) {
    remark::passed(b.getLoc(), options)
        << remark::add("warps leave out chunks of keys that none of their rows "
                       "has")
        << remark::metric("keys", kChunkKeys);
    return;
  }
  remark::passed(b.getLoc(), options)
      << remark::add("of blocks that the mask cuts warps compute {0} of {1} "
                     "chunks and mask {2}",
                     count->computed, count->all, count->masked)
      << remark::metric("keys", kChunkKeys)
      << remark::metric("chunks", count->all)
      << remark::metric("computed", count->computed)
      << remark::metric("masked", count->masked);
}
