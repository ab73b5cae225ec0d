//===- CopiedPlan.h - What plans on cp.async have in common -----*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDPLAN_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDPLAN_H

#include "attn/Dialect/Attn/IR/Attn.h"

namespace mlir::attn {

/// A plan of split_q, decode, mla or tiled_d: tiles, the rings that cp.async
/// fills, and the teams of a CTA that divide the keys of a tile, each with
/// `warps` warps and rings of its own.
class CopiedPlan {
public:
  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(SplitQPlanAttr plan)
      : threads(plan.getThreads()), blockM(plan.getBlockM()),
        blockN(plan.getBlockN()), warps(plan.getWarps()),
        stages(plan.getStages()), parts(plan.getParts()),
        groupHeads(plan.getGroupHeads()), qInRegs(plan.getQInRegs()),
        packHeads(plan.getPackHeads()), share(plan.getShare()),
        scoreSums(plan.getAccumulateS()), resultSums(plan.getAccumulateO()),
        softmax(plan.getSoftmax()), order(plan.getOrder()),
        epilogue(plan.getEpilogue()), combine(plan.getCombine()) {}
  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(DecodePlanAttr plan)
      : threads(plan.getThreads()), blockM(plan.getBlockM()),
        blockN(plan.getBlockN()), warps(plan.getWarpsN()),
        columnWarps(plan.getWarpsN()), stages(plan.getStages()),
        teams(plan.getWarps() / plan.getWarpsN()), qInRegs(plan.getQInRegs()),
        packHeads(plan.getPackHeads()), score(ScoreWork::Twice),
        softmax(plan.getSoftmax()), epilogue(plan.getEpilogue()),
        combine(plan.getCombine()), dealtRuns(plan.getDealtRuns()),
        headTeams(plan.getCtaHeads()),
        hasPlannedWork(plan.getPlanWork() && plan.getDealtRuns()),
        hasLoadedQueries(plan.getQInRegs() && plan.getWarpsN() == 1 &&
                         plan.getBlockN() <= kMostBesideLoaded) {}

  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(MlaPlanAttr plan)
      : threads(plan.getThreads()), blockM(plan.getBlockM()),
        blockN(plan.getBlockN()), warps(plan.getWarpsM() * plan.getWarpsN()),
        columnWarps(plan.getWarpsN()), stages(plan.getStages()),
        qInRegs(plan.getQInRegs()), packHeads(plan.getPackHeads()),
        score(plan.getScore()), wgmma(plan.getWgmma()),
        softmax(plan.getSoftmax()), epilogue(plan.getEpilogue()),
        combine(plan.getCombine()) {
    gathers = exchangesScores() && softmax == SoftmaxPolicy::Exact;
  }

  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(TiledDPlanAttr plan)
      : threads(plan.getThreads()), blockM(plan.getBlockM()),
        blockN(plan.getBlockN()), warps(plan.getWarpsM() * plan.getWarpsN()),
        columnWarps(plan.getWarpsN()), stages(plan.getStages()),
        groupHeads(plan.getGroupHeads()), slice(plan.getSlice()),
        streamsQ(plan.getQStreamed()), scoreSplit(plan.getSSplit()),
        scoreSums(plan.getAccumulateS()), resultSums(plan.getAccumulateO()),
        softmax(plan.getSoftmax()), order(plan.getOrder()),
        epilogue(plan.getEpilogue()) {
    gathers =
        exchangesScores() && !dividesDepth() && softmax == SoftmaxPolicy::Exact;
  }

  /// Threads of a CTA.
  int64_t getThreads() const { return threads; }
  int64_t getBlockM() const { return blockM; }
  int64_t getBlockN() const { return blockN; }
  /// Warps of a team.
  int64_t getWarps() const { return warps; }
  /// Of these, how many share rows, and how many groups of rows there are.
  int64_t getColumnWarps() const { return columnWarps; }
  int64_t getRowWarps() const { return warps / columnWarps; }
  /// True if warps that share rows exchange their scores.
  bool exchangesScores() const {
    return columnWarps > 1 && score == ScoreWork::Shard;
  }
  /// True if they exchange probabilities instead, and maxima first.
  bool gathersProbabilities() const { return gathers; }
  /// True if these are partial sums, of a part of the depth each.
  bool dividesDepth() const {
    return exchangesScores() && scoreSplit == ScoreSplit::Depth;
  }
  int64_t getStages() const { return stages; }
  /// Columns of the slices of K and V that share one ring; 0 where whole rows
  /// of each have slots of their own.
  int64_t getSlice() const { return slice; }
  /// True if slices of Q are loaded for each block, in a ring of their own.
  bool getStreamsQ() const { return streamsQ; }
  /// True if K and V of a block have the slots of one ring in turns.
  bool sharesRing() const { return slice != 0 || share == KVShare::KV; }
  ScoreSums getScoreSums() const { return scoreSums; }
  ResultSums getResultSums() const { return resultSums; }
  int64_t getParts() const { return parts; }
  int64_t getTeams() const { return teams; }
  /// Heads that a CTA has tiles of, one behind the other among its teams, and
  /// the teams that divide the keys of each.
  int64_t getHeadTeams() const { return headTeams; }
  int64_t getKeyTeams() const { return teams / headTeams; }
  int64_t getGroupHeads() const { return groupHeads; }
  bool getQInRegs() const { return qInRegs; }
  /// True if queries go to registers by themselves, not by shared memory.
  bool loadsQueries() const { return hasLoadedQueries; }
  ScoreWork getScore() const { return score; }
  bool getWgmma() const { return wgmma; }
  bool getPackHeads() const { return packHeads; }
  SoftmaxPolicy getSoftmax() const { return softmax; }
  TileOrder getOrder() const { return order; }
  EpilogueKind getEpilogue() const { return epilogue; }
  CombineWay getCombine() const { return combine; }
  /// Runs that all sequences have together; 0 where each has as many.
  int64_t getDealtRuns() const { return dealtRuns; }
  /// Partial results stay in L2 until another kernel merges them.
  bool keepsPartials() const {
    return dealtRuns != 0 && combine == CombineWay::Kernel;
  }
  /// True if a kernel in front deals them.
  bool plansWork() const { return hasPlannedWork; }

private:
  /// Keys of a block beside which `decode` loads queries to registers: with
  /// blocks of 64 one short sequence was seen to take 1.04 of the time.
  static constexpr int64_t kMostBesideLoaded = 32;

  int64_t threads, blockM, blockN;
  int64_t warps = 1, columnWarps = 1, stages, parts = 1, teams = 1,
          groupHeads = 0;
  int64_t slice = 0;
  bool streamsQ = false, qInRegs = false, packHeads = false, gathers = false;
  ScoreWork score = ScoreWork::Shard;
  KVShare share = KVShare::None;
  ScoreSplit scoreSplit = ScoreSplit::Keys;
  ScoreSums scoreSums = ScoreSums::F32;
  ResultSums resultSums = ResultSums::F32;
  bool wgmma = false;
  SoftmaxPolicy softmax;
  TileOrder order = TileOrder::RowMajor;
  EpilogueKind epilogue;
  CombineWay combine = CombineWay::Kernel;
  int64_t dealtRuns = 0, headTeams = 1;
  bool hasPlannedWork = false, hasLoadedQueries = false;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDPLAN_H
