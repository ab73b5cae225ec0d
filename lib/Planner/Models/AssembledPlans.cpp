//===- AssembledPlans.cpp - Plans of tiled_d at the edge of registers -----===//
//
// Warps of 32 rows and blocks of 96 and 128 keys take all registers that a
// thread has: a sum of terms does not tell the last few. These plans were
// assembled by ptxas 13.0 for keys and values of one width, f16 and bf16, masks
// of all kinds, caps of scores, groups of heads, tails and extents of the
// launch: up to the columns that are stated none spills in code for its own
// chip.
//
//===----------------------------------------------------------------------===//

#include "AssembledPlans.h"
#include "../../Schedule/Copied/CopiedExtents.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// What a problem has to be like: any, of columns in whole slices, or in whole
/// steps of 64, or of strides that are known as well.
enum class Shape { Any, Whole, Steps, Plain };

struct AssembledPlan {
  int64_t blockM, blockN, warpsM, warpsN, slice, stages;
  /// Most columns in code for generation 8 (sm_80 to sm_89), 9 and 10: of
  /// whole blocks without a mask, of other masks, and of windows.
  struct Columns {
    int64_t whole, masked, windowed;
  } most[3];
  Shape shape = Shape::Any;
  /// Fewest columns.
  int64_t least = 0;
  /// First generation in whose code it spills where results go on from those of
  /// other keys.
  unsigned spillsStatesFrom = kNone;
  /// Last one in whose code it spills at the most columns where the last block
  /// of keys may not be full and a mask counts from it.
  unsigned spillsTailsTo = 0;
  static constexpr unsigned kNone = 100;
};
} // namespace

// clang-format off
static constexpr AssembledPlan kAssembledPlans[] = {
    {64, 128, 2, 4, 64, 5, {{320, 320, 256}, {320, 0, 0}, {320, 0, 0}}, Shape::Plain, 0, 8, 8},
    {64, 128, 2, 4, 192, 2, {{384, 384, 384}, {384, 0, 0}, {384, 0, 0}}, Shape::Plain},
    {64, 96, 2, 4, 64, 4, {{384, 384, 384}, {384, 384, 384}, {384, 384, 384}}},
    {64, 96, 2, 4, 64, 3, {{320, 320, 320}, {0, 0, 0}, {0, 0, 0}}},
    {64, 64, 2, 4, 128, 5, {{512, 512, 512}, {512, 384, 384}, {512, 512, 384}}, Shape::Plain, 0, 10, 10},
    {64, 64, 2, 4, 64, 8, {{448, 448, 448}, {448, 448, 448}, {448, 448, 448}}},
    {64, 64, 2, 4, 64, 4, {{448, 448, 448}, {0, 0, 0}, {0, 0, 0}}},
    {64, 64, 4, 2, 64, 3, {{512, 512, 512}, {0, 0, 0}, {0, 0, 0}}, Shape::Plain, 0, 8},
    {64, 48, 4, 2, 128, 4, {{640, 640, 640}, {640, 640, 640}, {640, 640, 640}}, Shape::Steps, 576},
    {32, 128, 1, 8, 128, 3, {{768, 768, 640}, {768, 768, 768}, {768, 640, 640}}, Shape::Whole, 648, AssembledPlan::kNone, 9},
    {32, 128, 2, 4, 64, 4, {{1024, 0, 0}, {0, 0, 0}, {0, 0, 0}}, Shape::Plain},
    {32, 96, 2, 4, 128, 3, {{0, 1024, 0}, {0, 0, 0}, {0, 0, 0}}, Shape::Plain, 776, 8, 8},
    {32, 64, 2, 4, 128, 4, {{1024, 1024, 896}, {896, 896, 896}, {1024, 1024, 1024}}, Shape::Any, 0, 8},
    {32, 64, 2, 4, 256, 2, {{0, 0, 1024}, {0, 0, 1024}, {0, 0, 1024}}, Shape::Any, 0, 8},
    {32, 64, 2, 4, 64, 4, {{832, 832, 832}, {832, 832, 832}, {832, 832, 832}}},
    {32, 64, 2, 4, 64, 3, {{1024, 1024, 1024}, {0, 0, 0}, {1024, 1024, 1024}}},
};
// clang-format on

/// Registers of what stands between products and softmax, at most: a cap's.
static constexpr int64_t kAssembledScore = 6;

std::vector<TiledDPlanAttr> attn::getAssembledPlans(MLIRContext *context) {
  std::vector<TiledDPlanAttr> plans;
  for (const AssembledPlan &row : kAssembledPlans) {
    TiledDPlanAttr::Parameters p;
    p.blockM = row.blockM;
    p.blockN = row.blockN;
    p.warpsM = row.warpsM;
    p.warpsN = row.warpsN;
    p.slice = row.slice;
    p.stages = row.stages;
    p.softmax = SoftmaxPolicy::Exact;
    plans.push_back(TiledDPlanAttr::get(context, p));
  }
  return plans;
}

/// True if a problem is like those of which `row` was assembled.
static bool hasShape(const ProblemFacts &facts, const CopiedExtents &extents,
                     const AssembledPlan &row) {
  switch (row.shape) {
  case Shape::Any:
    return true;
  case Shape::Whole:
    return !extents.hasPadding;
  case Shape::Steps:
    return facts.headDim % 64 == 0;
  case Shape::Plain:
    return !extents.hasPadding && !extents.dynamicStrides;
  }
  llvm_unreachable("unknown shape");
}

bool attn::wasAssembled(const ProblemFacts &facts, TiledDPlanAttr plan,
                        const TargetRow &target) {
  const auto *row = llvm::find_if(kAssembledPlans, [&](const AssembledPlan &r) {
    return r.blockM == plan.getBlockM() && r.blockN == plan.getBlockN() &&
           r.warpsM == plan.getWarpsM() && r.warpsN == plan.getWarpsN() &&
           r.slice == plan.getSlice() && r.stages == plan.getStages();
  });
  unsigned generation = target.instructionCapability / 10;
  CopiedPlan copied(plan);
  CopiedExtents extents(facts, copied);
  if (row == std::end(kAssembledPlans) || !copied.gathersProbabilities() ||
      generation < 8 || generation > 10)
    return false;
  // What was not assembled, or spilled: packed sequences 4 to 20 bytes, results
  // of f32 4.
  if (facts.cuSeqlensQ || facts.outType.isF32() || plan.getQStreamed() ||
      plan.getAccumulateS() != ScoreSums::F32 ||
      plan.getAccumulateO() != ResultSums::F32 || extents.isPaged ||
      extents.scoreRegisters > kAssembledScore ||
      extents.keyColumns != extents.valueColumns)
    return false;
  if (facts.initLse && generation >= row->spillsStatesFrom)
    return false;
  int64_t columns = std::max(facts.headDim, facts.valueDim);
  if (columns < row->least || !hasShape(facts, extents, *row))
    return false;
  const AssembledPlan::Columns &most = row->most[generation - 8];
  bool hasTail = facts.mask.hasRight() &&
                 facts.mask.getAlign() == MaskAlign::BottomRight &&
                 (facts.hasLengths() || ShapedType::isDynamic(facts.keys) ||
                  facts.keys % row->blockN != 0);
  if (hasTail && generation <= row->spillsTailsTo && columns == most.masked)
    return false;
  if (extents.isWindowed)
    return columns <= most.windowed;
  return columns <= (extents.isMasked ? most.masked : most.whole);
}
