//===- ProblemFacts.cpp - What schedules ask about an attention -----------===//

#include "attn/Planner/Facts/ProblemFacts.h"
#include "KeyRangeValues.h"
#include "attn/Planner/Facts/Captures.h"
#include "attn/Planner/Facts/GroupFactor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

/// Sequences are shorter than that.
static constexpr int64_t kAllKeys = int64_t(1) << 29;

int64_t ProblemFacts::getGroup() const {
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(kvHeads))
    return ShapedType::kDynamic;
  return heads / kvHeads;
}

bool ProblemFacts::isNarrow() const {
  return elementType.getIntOrFloatBitWidth() == 8;
}

bool ProblemFacts::hasNarrowKeys() const {
  return keyType.getIntOrFloatBitWidth() == 8 && !isNarrow();
}

bool ProblemFacts::isServed() const {
  return isPaged() || static_cast<bool>(kvLengths);
}

bool ProblemFacts::hasTransposedValues() const {
  return v.getContiguousDim() == 2;
}

bool ProblemFacts::hasScoreMod() const {
  return !AttentionOp(op).getScoreMod().empty();
}

bool ProblemFacts::hasMaskMod() const {
  return !isDocument && !AttentionOp(op).getMaskMod().empty();
}

bool ProblemFacts::hasOutMod() const {
  return AttentionOp(op).getOutMod() || mergedMod;
}

double ProblemFacts::getGroupFactor() const {
  double factor = getResultFactor();
  bool joins = usesResults() && hasResultScales() &&
               isa<Float4E2M1FNType>(outType) && joinsGroupScale(factor);
  return joins ? factor : 1;
}

bool ProblemFacts::hasKeyRange() const {
  return !isDocument && AttentionOp(op).hasKeyRange();
}

bool ProblemFacts::mayEndEarlier() const {
  if (!hasKeyRange())
    return false;
  KeyRangeValues range(*AttentionOp(op).getKeyRange());
  APInt end;
  return !matchPattern(range.end, m_ConstantInt(&end)) ||
         end.slt(ShapedType::isDynamic(keys) ? kAllKeys : keys);
}

bool ProblemFacts::knowsFullKeys() const {
  if (hasBlockLists())
    return hasMaskMod();
  if (!hasKeyRange())
    return false;
  return static_cast<bool>(
      KeyRangeValues(*AttentionOp(op).getKeyRange()).fullEnd);
}

bool ProblemFacts::readsScores() const {
  if (hasScoreMod())
    return true;
  return hasMaskMod() &&
         !AttentionOp(op).getMaskMod().getArgument(0).use_empty();
}

bool ProblemFacts::hasRuns() const { return runKeys != 0; }

ProblemFacts ProblemFacts::getPlanned() const {
  ProblemFacts facts = *this;
  if (!hasRuns())
    return facts;
  facts.batch = facts.kvSplits = 1;
  facts.queries = std::min<int64_t>(1, facts.queries);
  // A chunk of a prompt has a causal mask where one query alone needs none.
  facts.mask = MaskAttr::get(facts.op.getContext(), MaskKind::None,
                             MaskAlign::TopLeft, -1, -1);
  facts.keys = facts.runKeys;
  if (facts.isPaged())
    facts.pages = ShapedType::kDynamic;
  return facts;
}

/// Returns the type of results in elements of `type`.
static Type getResultType(Type type) {
  // Two of them in a byte.
  return type.isInteger(8) ? Float4E2M1FNType::get(type.getContext()) : type;
}

/// Finds keys beside those of k and counts them; then no mask stands alone.
static LogicalResult addAddedKeys(AttentionOp op, ProblemFacts &facts) {
  for (auto [member, name, value] :
       {std::tuple(&facts.addedK, "added_k", op.getAddedK()),
        std::tuple(&facts.addedV, "added_v", op.getAddedV()),
        std::tuple(&facts.addedTable, "added_table", op.getAddedTable()),
        std::tuple(&facts.addedLengths, "added_lengths",
                   op.getAddedLengths())}) {
    FailureOr<TensorFacts> tensor =
        TensorFacts::get(op, name, value, /*written=*/false);
    if (failed(tensor))
      return failure();
    *member = *tensor;
  }
  if (!facts.hasAddedKeys())
    return success();
  facts.addedPages = unifyExtents({{&facts.addedK, 0}, {&facts.addedV, 0}});
  // Bounds so far away hide nothing, and keys are numbered in 32 bits.
  auto getNear = [](int64_t width) {
    return width >= kLengthLimit ? -1 : width;
  };
  MaskAttr given = facts.mask;
  MaskAttr mask = facts.ownMask =
      MaskAttr::get(facts.op.getContext(), given.getKind(), given.getAlign(),
                    getNear(given.getLeft()), getNear(given.getRight()));
  facts.mask = MaskAttr::get(facts.op.getContext(), MaskKind::None,
                             MaskAlign::TopLeft, -1, -1);
  int64_t entries = facts.addedTable.shape[1];
  if (ShapedType::isDynamic(facts.keys) || ShapedType::isDynamic(entries)) {
    facts.keys = ShapedType::kDynamic;
    return success();
  }
  // Keys that are too old for each query are not looked at.
  if (mask.hasLeft() && !ShapedType::isDynamic(facts.queries))
    facts.keys = std::min(facts.keys, facts.queries - mask.leftBound());
  facts.keys += entries * facts.addedPageSize;
  return success();
}

/// Finds the extents that operands share.
static void findExtents(AttentionOp op, ProblemFacts &facts) {
  unsigned lead = facts.kvSplits != 0 ? 1 : 0;
  facts.heads = unifyExtents({{&facts.q, 1},
                              {&facts.o, lead + 1},
                              {&facts.lse, lead + 1},
                              {&facts.sinks, 0}});
  facts.kvHeads = unifyExtents({{&facts.k, 1}, {&facts.v, 1}});
  facts.keys = unifyExtents({{&facts.k, 2}, {&facts.v, 2}});
  if (facts.isPaged()) {
    // Dimension 2 of k and v is the size of a page, not the number of keys.
    facts.pages = unifyExtents({{&facts.k, 0}, {&facts.v, 0}});
    int64_t perSequence =
        facts.pageIndptr ? ShapedType::kDynamic : facts.pageTable.shape[1];
    facts.keys = ShapedType::isDynamic(perSequence)
                     ? perSequence
                     : perSequence * facts.pageSize;
  }
  if (facts.varlen) {
    int64_t entries =
        unifyExtents({{&facts.cuSeqlensQ, 0}, {&facts.cuSeqlensK, 0}});
    facts.batch = ShapedType::isDynamic(entries) ? entries : entries - 1;
    facts.queries = *op.getMaxSeqlenQ();
  } else {
    facts.batch = facts.isPaged()
                      ? unifyExtents({{&facts.q, 0}, {&facts.o, lead}})
                      : unifyExtents({{&facts.q, 0},
                                      {&facts.k, 0},
                                      {&facts.v, 0},
                                      {&facts.o, lead}});
    facts.queries = unifyExtents(
        {{&facts.q, 2}, {&facts.o, lead + 2}, {&facts.lse, lead + 2}});
  }
}

FailureOr<ProblemFacts> ProblemFacts::get(AttentionOp op) {
  ProblemFacts facts;
  facts.op = op;
  for (auto [member, name, value, written] :
       {std::tuple(&facts.q, "q", Value(op.getQ()), false),
        std::tuple(&facts.k, "k", Value(op.getK()), false),
        std::tuple(&facts.v, "v", Value(op.getV()), false),
        std::tuple(&facts.o, "o", Value(op.getO()), true),
        std::tuple(&facts.lse, "lse", Value(op.getLse()), true),
        std::tuple(&facts.oScales, "o_scales", Value(op.getOScales()), true),
        std::tuple(&facts.amax, "amax", Value(op.getAmax()), true),
        std::tuple(&facts.sinks, "sinks", Value(op.getSinks()), false),
        std::tuple(&facts.cuSeqlensQ, "cu_seqlens_q", Value(op.getCuSeqlensQ()),
                   false),
        std::tuple(&facts.cuSeqlensK, "cu_seqlens_k", Value(op.getCuSeqlensK()),
                   false),
        std::tuple(&facts.qDescale, "q_descale", Value(op.getQDescale()),
                   false),
        std::tuple(&facts.kDescale, "k_descale", Value(op.getKDescale()),
                   false),
        std::tuple(&facts.vDescale, "v_descale", Value(op.getVDescale()),
                   false),
        std::tuple(&facts.pageTable, "page_table", Value(op.getPageTable()),
                   false),
        std::tuple(&facts.pageIndptr, "page_indptr", Value(op.getPageIndptr()),
                   false),
        std::tuple(&facts.kvLengths, "kv_lengths", Value(op.getKvLengths()),
                   false),
        std::tuple(&facts.blockCounts, "block_counts",
                   Value(op.getBlockCounts()), false),
        std::tuple(&facts.blockIndices, "block_indices",
                   Value(op.getBlockIndices()), false),
        std::tuple(&facts.initO, "init_o", Value(op.getInitO()), false),
        std::tuple(&facts.initLse, "init_lse", Value(op.getInitLse()), false),
        std::tuple(&facts.kScales, "k_scales", Value(op.getKScales()), false),
        std::tuple(&facts.vScales, "v_scales", Value(op.getVScales()), false),
        std::tuple(&facts.kRope, "k_rope", Value(op.getKRope()), false),
        std::tuple(&facts.qRope, "q_rope", Value(op.getQRope()), false)}) {
    FailureOr<TensorFacts> tensor = TensorFacts::get(op, name, value, written);
    if (failed(tensor))
      return failure();
    *member = *tensor;
  }
  // Results join the number that is there.
  facts.amax.reread = true;
  facts.elementType = facts.q.elementType;
  facts.keyType = facts.k.elementType;
  facts.outType = getResultType(facts.o.elementType);
  facts.varlen = op.isVariableLength();
  facts.selected = op.getSelected();
  facts.rowState = op.getRowState();
  llvm::append_range(facts.expectedKeys,
                     op.getExpectedKeys().value_or(ArrayRef<int64_t>()));
  facts.headDim = op.getHeadDim();
  facts.valueDim = op.getValueDim();
  facts.mask = op.getEffectiveMask();
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (auto attr = op->getAttrOfType<FloatAttr>(NAME))                          \
    facts.ID = attr.getValueAsDouble();
#define ATTN_COUNT(ID, NAME, VALUE, CONSTRAINTS, DOC)                          \
  if (auto attr = op->getAttrOfType<IntegerAttr>(NAME))                        \
    facts.ID = attr.getInt();
#define ATTN_NATURAL(ID, NAME, VALUE, CONSTRAINTS, DOC)                        \
  if (auto attr = op->getAttrOfType<IntegerAttr>(NAME))                        \
    facts.ID = attr.getInt();
#include "attn/Problem/Options.def"
  facts.scale = op.getEffectiveScale();
  findExtents(op, facts);
  if (failed(addAddedKeys(op, facts)) ||
      failed(collectCaptures(op, facts.captures, facts.scalars)))
    return failure();
  return facts;
}
