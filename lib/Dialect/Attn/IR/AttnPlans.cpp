//===- AttnPlans.cpp - Plans of the project's schedules -------------------===//

#include "attn/Dialect/Attn/IR/TensorProducts.h"

using namespace mlir;
using namespace mlir::attn;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

int64_t SplitQPlanAttr::getThreads() const { return 32 * getWarps(); }

/// More rows than shared memory holds at the smallest head dimension, and few
/// enough for sums of bytes not to wrap.
static constexpr int64_t kMostBlockRows = 8192;

/// Heads that run side by side where a grid, not a loop, has the tiles.
static LogicalResult verifyGroupHeads(EmitErrorFn emitError, int64_t groupHeads,
                                      TileOrder order) {
  if (groupHeads < 0 || (groupHeads > 0 && order != TileOrder::LongestFirst))
    return emitError() << "expected group_heads to be 0, or positive in order "
                          "'longest_first', got "
                       << groupHeads << " in order '"
                       << stringifyTileOrder(order) << "'";
  return success();
}

LogicalResult SplitQPlanAttr::verify(EmitErrorFn emitError,
                                     const Parameters &p) {
  if (p.warps < 1 || p.warps > 32 || !llvm::isPowerOf2_64(p.warps))
    return emitError() << "expected warps to be a power of two up to 32, got "
                       << p.warps;
  if (p.blockM < 1 || p.blockM > kMostBlockRows ||
      p.blockM % (16 * p.warps) != 0)
    return emitError() << "expected block_m to be a multiple of 16 * warps = "
                       << 16 * p.warps << " up to " << kMostBlockRows
                       << ", got " << p.blockM;
  if (p.blockN < 16 || p.blockN > kMostBlockRows || p.blockN % 16 != 0)
    return emitError() << "expected block_n to be a multiple of 16 up to "
                       << kMostBlockRows << ", got " << p.blockN;
  if (p.stages < 1 || p.stages > 4)
    return emitError() << "expected stages from 1 to 4, got " << p.stages;
  if (p.parts < 1 || p.blockN / 16 % p.parts != 0)
    return emitError() << "expected parts to divide block_n / 16 = "
                       << p.blockN / 16 << ", got " << p.parts;
  if (failed(verifyGroupHeads(emitError, p.groupHeads, p.order)))
    return failure();
  if (p.share == KVShare::KV && p.parts != 1)
    return emitError() << "expected 1 part with share = kv, got " << p.parts;
  return success();
}

/// Rows of several heads in a tile, which no other CTA has tiles beside.
static LogicalResult verifyPackedTiles(EmitErrorFn emitError, bool packHeads,
                                       int64_t together, TileOrder order) {
  if (!packHeads)
    return success();
  if (together != 1)
    return emitError() << "expected CTAs of one tile with pack_heads, got "
                       << together << " tiles in a cluster";
  if (order != TileOrder::RowMajor)
    return emitError() << "expected order = row_major with pack_heads, got "
                       << stringifyTileOrder(order);
  return success();
}

/// What plans of all schedules with wgmma and rings share.
static LogicalResult
verifyWgmmaBlock(EmitErrorFn emitError, int64_t blockN, int64_t groupHeads,
                 ArrayRef<std::pair<StringRef, int64_t>> rings) {
  if (blockN < 16 || blockN > 256 || blockN % 16 != 0)
    return emitError() << "expected block_n to be a multiple of 16 up to 256, "
                          "got "
                       << blockN;
  for (auto [name, stages] : rings)
    if (stages < 1 || stages > 8)
      return emitError() << "expected " << name << " from 1 to 8, got "
                         << stages;
  if (groupHeads < 0)
    return emitError() << "expected group_heads not to be negative, got "
                       << groupHeads;
  return success();
}

int64_t WsWgmmaPlanAttr::getThreads() const {
  // A warpgroup for each 64 rows, and one that loads.
  return 128 * (getBlockM() / 64 + 1);
}

LogicalResult WsWgmmaPlanAttr::verify(EmitErrorFn emitError,
                                      const Parameters &p) {
  if (p.blockM != 64 && p.blockM != 128 && p.blockM != 192)
    return emitError() << "expected block_m to be 64, 128 or 192, got "
                       << p.blockM;
  if (failed(verifyWgmmaBlock(emitError, p.blockN, p.groupHeads,
                              {{"q_stages", p.qStages},
                               {"k_stages", p.kStages},
                               {"v_stages", p.vStages}})))
    return failure();
  if (p.pvBehind && (!p.qkAhead || p.softmax != SoftmaxPolicy::Optimistic))
    return emitError() << "expected pv_behind with qk_ahead and the softmax "
                          "policy 'optimistic', got qk_ahead = "
                       << (p.qkAhead ? "true" : "false") << " and '"
                       << stringifySoftmaxPolicy(p.softmax) << "'";
  if (p.turns && !p.qkAhead)
    return emitError() << "expected turns with qk_ahead";
  if (p.firstBlock != FirstBlock::Whole && !p.qkAhead)
    return emitError() << "expected first_block = whole without qk_ahead, got "
                       << stringifyFirstBlock(p.firstBlock);
  if (p.cluster != 1 && p.cluster != 2 && p.cluster != 4)
    return emitError() << "expected cluster to be 1, 2 or 4, got " << p.cluster;
  if (p.loaders != 1 && p.loaders != 2)
    return emitError() << "expected loaders to be 1 or 2, got " << p.loaders;
  if (p.loaders != 1 && p.cluster != 1)
    return emitError() << "expected loaders = 1 in a cluster, got "
                       << p.loaders;
  if (p.cutDocuments &&
      (p.cluster != 1 || p.order != TileOrder::LongestFirst || p.packHeads))
    return emitError() << "expected cut_documents with cluster = 1 and order = "
                          "longest_first, without pack_heads";
  return verifyPackedTiles(emitError, p.packHeads, p.cluster, p.order);
}

int64_t SelfLoadPlanAttr::getThreads() const { return 128; }

LogicalResult SelfLoadPlanAttr::verify(EmitErrorFn emitError,
                                       const Parameters &p) {
  if (failed(
          verifyWgmmaBlock(emitError, p.blockN, p.groupHeads,
                           {{"k_stages", p.kStages}, {"v_stages", p.vStages}})))
    return failure();
  if (p.ctasPerSm < 1 || p.ctasPerSm > 4)
    return emitError() << "expected ctas_per_sm from 1 to 4, got "
                       << p.ctasPerSm;
  return success();
}

int64_t WsTmemPlanAttr::getThreads() const {
  // A warpgroup for each of two tiles, or of one tile for its softmax and its
  // results, and one that multiplies and loads.
  return 3 * 128;
}

/// Checks what a CTA with one tile does not have.
static LogicalResult verifyOneTile(EmitErrorFn emitError,
                                   const WsTmemPlanAttr::Parameters &p) {
  if (p.blockN % kTensorPartKeys != 0)
    return emitError() << "expected block_n to be a multiple of "
                       << kTensorPartKeys << " with one tile, got " << p.blockN;
  for (auto [name, isSet] :
       {std::pair("p_beside", p.pBeside), std::pair("own_blocks", p.ownBlocks)})
    if (isSet)
      return emitError() << "expected two tiles with " << name << ", got one";
  if (p.softmax == SoftmaxPolicy::Optimistic)
    return emitError()
           << "expected the softmax 'exact', 'threshold' or 'lagged' with one "
              "tile, got 'optimistic'";
  if (p.epilogue != EpilogueKind::Auto && p.epilogue != EpilogueKind::Direct)
    return emitError() << "expected the epilogue 'direct' with one tile, got '"
                       << stringifyEpilogueKind(p.epilogue) << "'";
  return success();
}

LogicalResult WsTmemPlanAttr::verify(EmitErrorFn emitError,
                                     const Parameters &p) {
  // Two threads have the scores of a row where products have 64 rows.
  bool mayBeLong = p.pair && p.tiles == 1 && p.blockN == 256;
  if (!mayBeLong && (p.blockN < 16 || p.blockN > 128 || p.blockN % 16 != 0))
    return emitError() << "expected block_n to be a multiple of 16 up to 128, "
                          "or 256 with pair and tiles = 1, got "
                       << p.blockN;
  if (p.tiles != 1 && p.tiles != 2)
    return emitError() << "expected tiles to be 1 or 2, got " << p.tiles;
  if (p.tiles == 1)
    if (failed(verifyOneTile(emitError, p)))
      return failure();
  if (p.kvStages < 2 || p.kvStages > 32)
    return emitError() << "expected kv_stages from 2 to 32, got " << p.kvStages;
  if (p.polynomial < 0 || p.polynomial > 16)
    return emitError() << "expected polynomial from 0 to 16, got "
                       << p.polynomial;
  if (p.groupHeads < 0)
    return emitError() << "expected group_heads not to be negative, got "
                       << p.groupHeads;
  if (p.oHalves && p.epilogue != EpilogueKind::Staged &&
      p.epilogue != EpilogueKind::Tma)
    return emitError()
           << "expected the epilogue 'staged' or 'tma' with o_halves, got '"
           << stringifyEpilogueKind(p.epilogue) << "'";
  if (p.clc && p.dynamic)
    return emitError() << "expected clc or dynamic, got both";
  if (p.dealtRuns < 0)
    return emitError() << "expected dealt_runs of at least 0, got "
                       << p.dealtRuns;
  if (p.valueCtas != 1 && p.valueCtas != 2)
    return emitError() << "expected value_ctas to be 1 or 2, got "
                       << p.valueCtas;
  if (p.valueCtas == 2 && (p.tiles != 1 || p.pair))
    return emitError() << "expected tiles = 1 and pair = false with value_ctas "
                          "= 2, got tiles = "
                       << p.tiles
                       << " and pair = " << (p.pair ? "true" : "false");
  if (p.cluster != 1 && p.cluster != 4)
    return emitError() << "expected cluster to be 1 or 4, got " << p.cluster;
  auto print = [](bool value) { return value ? "true" : "false"; };
  if (p.cluster == 4 && (p.tiles != 2 || !p.pair || p.ownBlocks))
    return emitError() << "expected tiles = 2, pair = true and own_blocks = "
                          "false with cluster = 4, got tiles = "
                       << p.tiles << ", pair = " << print(p.pair)
                       << " and own_blocks = " << print(p.ownBlocks);
  if (p.oneRing && (p.tiles != 2 || !p.pair))
    return emitError() << "expected tiles = 2 and pair = true with one_ring, "
                          "got tiles = "
                       << p.tiles << " and pair = " << print(p.pair);
  return success();
}

int64_t WsColumnsPlanAttr::getThreads() const {
  // Two warpgroups that multiply, and one that loads.
  return 3 * 128;
}

LogicalResult WsColumnsPlanAttr::verify(EmitErrorFn emitError,
                                        const Parameters &p) {
  std::pair<StringRef, int64_t> rings[] = {{"k_stages", p.kStages},
                                           {"v_stages", p.vStages},
                                           {"w_stages", p.wStages}};
  if (failed(verifyWgmmaBlock(emitError, p.blockN, p.groupHeads, rings)))
    return failure();
  // A slot is read until the product behind it has started.
  for (auto [name, stages] : rings)
    if (stages < 2)
      return emitError() << "expected " << name << " of at least 2, got "
                         << stages;
  if (p.softmaxColumns < 64 || p.softmaxColumns > 256 ||
      p.softmaxColumns % 64 != 0)
    return emitError() << "expected softmax_columns to be a multiple of 64 up "
                          "to 256, got "
                       << p.softmaxColumns;
  if (p.cluster != 1 && p.cluster != 2 && p.cluster != 4)
    return emitError() << "expected cluster to be 1, 2 or 4, got " << p.cluster;
  if (p.depthCtas != 1 && p.depthCtas != 2)
    return emitError() << "expected depth_ctas to be 1 or 2, got "
                       << p.depthCtas;
  if (p.depthCtas == 2 && p.cluster != 2)
    return emitError() << "expected cluster = 2 with depth_ctas = 2, got "
                       << p.cluster;
  return verifyPackedTiles(emitError, p.packHeads, p.cluster / p.depthCtas,
                           p.order);
}

int64_t WsPairPlanAttr::getThreads() const {
  // Two warpgroups that multiply, and one that loads.
  return 3 * 128;
}

LogicalResult WsPairPlanAttr::verify(EmitErrorFn emitError,
                                     const Parameters &p) {
  if (failed(verifyWgmmaBlock(emitError, p.blockN, p.groupHeads, {})))
    return failure();
  if (p.blockN % 32 != 0)
    return emitError() << "expected block_n to be a multiple of 32, of which "
                          "each CTA has half, got "
                       << p.blockN;
  // A slot is read until the product behind it has started.
  if (p.stages < 2 || p.stages > 32)
    return emitError() << "expected stages from 2 to 32, got " << p.stages;
  if (p.slice < 64 || p.slice > 256 || p.slice % 64 != 0)
    return emitError() << "expected slice to be a multiple of 64 up to 256, "
                          "got "
                       << p.slice;
  return success();
}

int64_t DecodePlanAttr::getThreads() const { return 32 * getWarps(); }

LogicalResult DecodePlanAttr::verify(EmitErrorFn emitError,
                                     const Parameters &p) {
  if (p.blockM < 16 || p.blockM > 64 || p.blockM % 16 != 0)
    return emitError() << "expected block_m to be a multiple of 16 up to 64, "
                          "got "
                       << p.blockM;
  if (p.blockN < 16 || p.blockN > 128 || p.blockN % 16 != 0)
    return emitError() << "expected block_n to be a multiple of 16 up to 128, "
                          "got "
                       << p.blockN;
  if (p.warps < 1 || p.warps > 16 || !llvm::isPowerOf2_64(p.warps))
    return emitError() << "expected warps to be a power of two up to 16, got "
                       << p.warps;
  if (p.stages < 2 || p.stages > 8)
    return emitError() << "expected stages from 2 to 8, got " << p.stages;
  if (p.ctasPerSm < 1 || p.ctasPerSm > 8)
    return emitError() << "expected ctas_per_sm from 1 to 8, got "
                       << p.ctasPerSm;
  if (p.warpsN != 1 && p.warpsN != p.warps)
    return emitError() << "expected warps_n to be 1 or the number of warps, "
                       << p.warps << ", got " << p.warpsN;
  if (p.dealtRuns < 0)
    return emitError() << "expected dealt_runs of at least 0, got "
                       << p.dealtRuns;
  int64_t teams = p.warps / p.warpsN;
  if (p.ctaHeads < 1 || p.ctaHeads > teams || !llvm::isPowerOf2_64(p.ctaHeads))
    return emitError() << "expected cta_heads to be a power of two up to warps "
                          "/ warps_n = "
                       << teams << ", got " << p.ctaHeads;
  return success();
}

int64_t MlaPlanAttr::getThreads() const {
  // One warpgroup more for the scores, and one that loads.
  int64_t others = getScore() == ScoreWork::Own ? 256 : 0;
  return 32 * getWarpsM() * getWarpsN() + others;
}

LogicalResult MlaPlanAttr::verify(EmitErrorFn emitError, const Parameters &p) {
  if (!isWarpGrid({p.warpsM, p.warpsN}) || !llvm::isPowerOf2_64(p.warpsM))
    return emitError() << "expected warps_m and warps_n to be powers of two "
                          "with a product up to 32, got "
                       << p.warpsM << " and " << p.warpsN;
  if (p.blockM < 1 || p.blockM > 128 || p.blockM % (16 * p.warpsM) != 0)
    return emitError() << "expected block_m to be a multiple of 16 * warps_m = "
                       << 16 * p.warpsM << " up to 128, got " << p.blockM;
  if (p.blockN < 16 || p.blockN > 128 || p.blockN % 16 != 0)
    return emitError() << "expected block_n to be a multiple of 16 up to 128, "
                          "got "
                       << p.blockN;
  if (p.score == ScoreWork::Shard && p.blockN % (8 * p.warpsN) != 0)
    return emitError() << "expected block_n to be a multiple of 8 * warps_n = "
                       << 8 * p.warpsN << " with score = shard, got "
                       << p.blockN;
  if (p.wgmma && (p.blockM != 64 || p.warpsM != 4 || p.warpsN != 2 ||
                  p.score == ScoreWork::Shard))
    return emitError() << "expected block_m = 64, warps_m = 4, warps_n = 2 and "
                          "score = twice or own with wgmma";
  if (p.wgmma && p.qInRegs && p.score != ScoreWork::Own)
    return emitError() << "expected q_in_regs = false with wgmma and score = "
                          "twice, got true";
  if (p.score == ScoreWork::Own && !p.wgmma)
    return emitError() << "expected wgmma with score = own, got false";
  if (p.cluster != 1 && (p.cluster != 2 || p.score != ScoreWork::Own))
    return emitError() << "expected cluster = 1, or 2 with score = own, got "
                       << p.cluster;
  // A slot is read until the product that reads it is awaited. Of scores with a
  // warpgroup of their own it is other warps that fill it.
  if (p.wgmma && p.stages < 2 && p.score != ScoreWork::Own)
    return emitError() << "expected at least 2 stages with wgmma, got "
                       << p.stages;
  if (p.stages < 1 || p.stages > 8)
    return emitError() << "expected stages from 1 to 8, got " << p.stages;
  if (p.ctasPerSm < 1 || p.ctasPerSm > 8)
    return emitError() << "expected ctas_per_sm from 1 to 8, got "
                       << p.ctasPerSm;
  if (p.dealtRuns < 0 || (p.dealtRuns > 0 && p.score != ScoreWork::Own))
    return emitError() << "expected dealt_runs of at least 0, and 0 unless "
                          "score = own, got "
                       << p.dealtRuns;
  if (p.startBlocks < 1 || p.pieceBlocks < 1)
    return emitError() << "expected start_blocks and piece_blocks of at least "
                          "1, got "
                       << p.startBlocks << " and " << p.pieceBlocks;
  return success();
}

int64_t WsMlaPlanAttr::getThreads() const {
  // 4 load, 4 have the scores, 2 the softmax and 8 the results.
  return 32 * (4 + 4 + 2 + 8);
}

LogicalResult WsMlaPlanAttr::verify(EmitErrorFn emitError,
                                    const Parameters &p) {
  if (p.blockM != 16 && p.blockM != 32 && p.blockM != 64)
    return emitError() << "expected block_m to be 16, 32 or 64, got "
                       << p.blockM;
  // Four warps share out 16 rows by their keys, 8 for each or more.
  int64_t step = p.blockM == 16 ? 32 : 16;
  if (p.blockN < step || p.blockN > 128 || p.blockN % step != 0)
    return emitError() << "expected block_n to be a multiple of " << step
                       << " up to 128 with block_m = " << p.blockM << ", got "
                       << p.blockN;
  if (p.stages < 1 || p.stages > 8)
    return emitError() << "expected stages from 1 to 8, got " << p.stages;
  for (auto [name, stages] :
       {std::pair("s_stages", p.sStages), std::pair("p_stages", p.pStages)})
    if (stages != 1 && stages != 2)
      return emitError() << "expected " << name << " of 1 or 2, got " << stages;
  return success();
}

int64_t TiledDPlanAttr::getThreads() const {
  return 32 * getWarpsM() * getWarpsN();
}

LogicalResult TiledDPlanAttr::verify(EmitErrorFn emitError,
                                     const Parameters &p) {
  if (!isWarpGrid({p.warpsM, p.warpsN}) || !llvm::isPowerOf2_64(p.warpsM))
    return emitError() << "expected warps_m and warps_n to be powers of two "
                          "with a product up to 32, got "
                       << p.warpsM << " and " << p.warpsN;
  if (p.blockM < 1 || p.blockM > 128 || p.blockM % (16 * p.warpsM) != 0)
    return emitError() << "expected block_m to be a multiple of 16 * warps_m = "
                       << 16 * p.warpsM << " up to 128, got " << p.blockM;
  // Whole k-steps, and 8 columns for each warp.
  int64_t step = std::max<int64_t>(16, 8 * p.warpsN);
  // Warps that divide the depth have all keys.
  bool isDepth = p.sSplit == ScoreSplit::Depth;
  if (p.blockN < 1 || p.blockN > 128 || p.blockN % (isDepth ? 16 : step) != 0)
    return emitError() << "expected block_n to be a multiple of 16 and of 8 * "
                          "warps_n = "
                       << 8 * p.warpsN << " up to 128, got " << p.blockN;
  if (p.slice < 1 || p.slice > 256 || p.slice % step != 0)
    return emitError() << "expected slice to be a multiple of 16 and of 8 * "
                          "warps_n = "
                       << 8 * p.warpsN << " up to 256, got " << p.slice;
  if (isDepth && p.slice % (16 * p.warpsN) != 0)
    return emitError() << "expected slice to be a multiple of 16 * warps_n = "
                       << 16 * p.warpsN << " with s_split = depth, got "
                       << p.slice;
  // A run of columns of the partial sums.
  if (isDepth && !llvm::isPowerOf2_64(p.blockN))
    return emitError() << "expected block_n to be a power of two with s_split "
                          "= depth, got "
                       << p.blockN;
  if (p.stages < 2 || p.stages > 16)
    return emitError() << "expected stages from 2 to 16, got " << p.stages;
  return verifyGroupHeads(emitError, p.groupHeads, p.order);
}

int64_t CombinePlanAttr::getThreads() const { return 32 * getWarps(); }

LogicalResult CombinePlanAttr::verify(EmitErrorFn emitError,
                                      const Parameters &p) {
  if (p.warps < 1 || p.warps > 32 || !llvm::isPowerOf2_64(p.warps))
    return emitError() << "expected warps to be a power of two up to 32, got "
                       << p.warps;
  return success();
}
