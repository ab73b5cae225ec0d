//===- CopiedPlan.h - What plans on cp.async have in common -----*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_COPIED_COPIEDPLAN_H
#define ATTN_LIB_SCHEDULE_COPIED_COPIEDPLAN_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Planner/Facts/Factor.h"

namespace mlir::attn {

/// A plan of split_q, decode, mla or tiled_d: tiles, the rings that cp.async
/// fills, and the teams of a CTA that divide the keys of a tile, each with
/// `warps` warps and rings of its own.
class CopiedPlan {
public:
  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(SplitQPlanAttr plan) {
    setCommon(plan);
    warps.all = plan.getWarps();
    rings.parts = plan.getParts();
    rings.sharing = plan.getShare();
    rings.qInRegs = plan.getQInRegs();
    sums.scores = plan.getAccumulateS();
    sums.results = plan.getAccumulateO();
    tiles.order = plan.getOrder();
    tiles.groupHeads = plan.getGroupHeads();
    tiles.packHeads = plan.getPackHeads();
    runs.combine = plan.getCombine();
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(DecodePlanAttr plan) {
    setCommon(plan);
    warps.all = warps.columns = plan.getWarpsN();
    warps.teams = plan.getWarps() / plan.getWarpsN();
    warps.headTeams = plan.getCtaHeads();
    rings.qInRegs = plan.getQInRegs();
    rings.loadsQueries = plan.getQInRegs() && plan.getWarpsN() == 1 &&
                         double(plan.getBlockN()) <= kMostBesideLoaded;
    sums.score = ScoreWork::Twice;
    tiles.packHeads = plan.getPackHeads();
    runs.combine = plan.getCombine();
    runs.dealt = plan.getDealtRuns();
    runs.isPlanned = plan.getPlanWork() && plan.getDealtRuns();
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(MlaPlanAttr plan) {
    setCommon(plan);
    warps.all = plan.getWarpsM() * plan.getWarpsN();
    warps.columns = plan.getWarpsN();
    rings.qInRegs = plan.getQInRegs();
    sums.score = plan.getScore();
    sums.wgmma = plan.getWgmma();
    sums.gathers = exchangesScores() && softmax == SoftmaxPolicy::Exact;
    tiles.packHeads = plan.getPackHeads();
    runs.combine = plan.getCombine();
  }
  // NOLINTNEXTLINE(google-explicit-constructor): a plan stands for its parts.
  CopiedPlan(TiledDPlanAttr plan) {
    setCommon(plan);
    warps.all = plan.getWarpsM() * plan.getWarpsN();
    warps.columns = plan.getWarpsN();
    rings.slice = plan.getSlice();
    rings.streamsQ = plan.getQStreamed();
    sums.split = plan.getSSplit();
    sums.scores = plan.getAccumulateS();
    sums.results = plan.getAccumulateO();
    sums.gathers =
        exchangesScores() && !dividesDepth() && softmax == SoftmaxPolicy::Exact;
    tiles.order = plan.getOrder();
    tiles.groupHeads = plan.getGroupHeads();
    tiles.packHeads = plan.getPackHeads();
  }

  /// Threads of a CTA.
  int64_t getThreads() const { return tiles.threads; }
  int64_t getBlockM() const { return tiles.blockM; }
  int64_t getBlockN() const { return tiles.blockN; }
  /// Warps of a team.
  int64_t getWarps() const { return warps.all; }
  /// Of these, how many share rows, and how many groups of rows there are.
  int64_t getColumnWarps() const { return warps.columns; }
  int64_t getRowWarps() const { return warps.all / warps.columns; }
  /// True if warps that share rows exchange their scores.
  bool exchangesScores() const {
    return warps.columns > 1 && sums.score == ScoreWork::Shard;
  }
  /// True if they exchange probabilities instead, and maxima first.
  bool gathersProbabilities() const { return sums.gathers; }
  /// True if these are partial sums, of a part of the depth each.
  bool dividesDepth() const {
    return exchangesScores() && sums.split == ScoreSplit::Depth;
  }
  int64_t getStages() const { return rings.stages; }
  /// Columns of the slices of K and V that share one ring; 0 where whole rows
  /// of each have slots of their own.
  int64_t getSlice() const { return rings.slice; }
  /// True if slices of Q are loaded for each block, in a ring of their own.
  bool getStreamsQ() const { return rings.streamsQ; }
  /// True if K and V of a block have the slots of one ring in turns.
  bool sharesRing() const {
    return rings.slice != 0 || rings.sharing == KVShare::KV;
  }
  ScoreSums getScoreSums() const { return sums.scores; }
  ResultSums getResultSums() const { return sums.results; }
  int64_t getParts() const { return rings.parts; }
  int64_t getTeams() const { return warps.teams; }
  /// Heads that a CTA has tiles of, one behind the other among its teams, and
  /// the teams that divide the keys of each.
  int64_t getHeadTeams() const { return warps.headTeams; }
  int64_t getKeyTeams() const { return warps.teams / warps.headTeams; }
  int64_t getGroupHeads() const { return tiles.groupHeads; }
  bool getQInRegs() const { return rings.qInRegs; }
  /// True if queries go to registers by themselves, not by shared memory.
  bool loadsQueries() const { return rings.loadsQueries; }
  ScoreWork getScore() const { return sums.score; }
  bool getWgmma() const { return sums.wgmma; }
  bool getPackHeads() const { return tiles.packHeads; }
  SoftmaxPolicy getSoftmax() const { return softmax; }
  TileOrder getOrder() const { return tiles.order; }
  EpilogueKind getEpilogue() const { return epilogue; }
  CombineWay getCombine() const { return runs.combine; }
  /// Runs that all sequences have together; 0 where each has as many.
  int64_t getDealtRuns() const { return runs.dealt; }
  /// Partial results stay in L2 until another kernel merges them.
  bool keepsPartials() const {
    return runs.dealt != 0 && runs.combine == CombineWay::Kernel;
  }
  /// True if a kernel before it deals them.
  bool plansWork() const { return runs.isPlanned; }

private:
  /// Keys of the longest block beside which `decode` loads queries to
  /// registers: short sequences wait for them.
  static constexpr Factor kMostBesideLoaded{"decode.loaded_block_keys"};

  struct Tiles {
    int64_t threads, blockM, blockN;
    TileOrder order = TileOrder::RowMajor;
    int64_t groupHeads = 0;
    bool packHeads = false;
  };
  struct Warps {
    int64_t all = 1, columns = 1, teams = 1, headTeams = 1;
  };
  struct Rings {
    int64_t stages, parts = 1, slice = 0;
    KVShare sharing = KVShare::None;
    bool streamsQ = false, qInRegs = false, loadsQueries = false;
  };
  struct Sums {
    ScoreWork score = ScoreWork::Shard;
    ScoreSplit split = ScoreSplit::Keys;
    ScoreSums scores = ScoreSums::F32;
    ResultSums results = ResultSums::F32;
    bool wgmma = false, gathers = false;
  };
  struct Runs {
    CombineWay combine = CombineWay::Kernel;
    int64_t dealt = 0;
    bool isPlanned = false;
  };

  /// Sets what all plans have.
  template <typename PlanAttr>
  void setCommon(PlanAttr plan) {
    tiles.threads = plan.getThreads();
    tiles.blockM = plan.getBlockM();
    tiles.blockN = plan.getBlockN();
    rings.stages = plan.getStages();
    softmax = plan.getSoftmax();
    epilogue = plan.getEpilogue();
  }

  Tiles tiles;
  Warps warps;
  Rings rings;
  Sums sums;
  SoftmaxPolicy softmax;
  EpilogueKind epilogue;
  Runs runs;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_COPIED_COPIEDPLAN_H
