//===- ProblemFacts.cpp - What schedules ask about an attention -----------===//

#include "attn/Schedule/Problem/ProblemFacts.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::attn;

/// What everything that only the launch decides is a multiple of, in bytes: by
/// contract, since an address that is not faults and is never silently wrong.
static constexpr int64_t kAssumedAlignment = 16;

unsigned TensorFacts::getContiguousDim() const {
  unsigned last = strides.size() - 1;
  return last > 0 && strides[last] != 1 && strides[last - 1] == 1 ? last - 1
                                                                  : last;
}

int64_t TensorFacts::getRowAlignment() const {
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  int64_t alignment = kAssumedAlignment;
  auto limit = [&](int64_t elements) {
    if (elements == 0)
      return;
    uint64_t size = std::abs(elements) * bytes;
    alignment =
        std::min<int64_t>(alignment, int64_t(1) << llvm::countr_zero(size));
  };
  if (!ShapedType::isDynamic(offset))
    limit(offset);
  for (auto [dim, stride, extent] : llvm::enumerate(strides, shape))
    if (dim != getContiguousDim() && !ShapedType::isDynamic(stride) &&
        extent != 1)
      limit(stride);
  return alignment;
}

/// The facts of one operand; without value for an absent one.
static FailureOr<TensorFacts> describeTensor(Operation *op, StringRef name,
                                             Value value, bool written) {
  TensorFacts facts;
  facts.name = name.str();
  facts.value = value;
  facts.written = written;
  if (!value)
    return facts;
  auto type = cast<ShapedType>(value.getType());
  facts.elementType = type.getElementType();
  facts.shape.assign(type.getShape().begin(), type.getShape().end());
  if (auto memref = dyn_cast<MemRefType>(type)) {
    if (failed(memref.getStridesAndOffset(facts.strides, facts.offset)))
      return op->emitOpError("expected '")
             << name << "' to have strides, got " << memref;
    return facts;
  }
  facts.strides.assign(facts.shape.size(), 1);
  for (size_t dim = facts.shape.size(); dim > 1; --dim) {
    int64_t extent = facts.shape[dim - 1], inner = facts.strides[dim - 1];
    facts.strides[dim - 2] =
        ShapedType::isDynamic(extent) || ShapedType::isDynamic(inner)
            ? ShapedType::kDynamic
            : extent * inner;
  }
  return facts;
}

/// The first static extent among (tensor, dimension) pairs, else dynamic.
static int64_t
unify(std::initializer_list<std::pair<const TensorFacts *, unsigned>> extents) {
  for (auto [tensor, dim] : extents)
    if (*tensor && !ShapedType::isDynamic(tensor->shape[dim]))
      return tensor->shape[dim];
  return ShapedType::kDynamic;
}

bool ProblemFacts::isNarrow() const {
  return elementType.getIntOrFloatBitWidth() == 8;
}

bool ProblemFacts::hasTransposedValues() const {
  return v.getContiguousDim() == 2;
}

bool ProblemFacts::hasScoreMod() const {
  return !AttentionOp(op).getScoreMod().empty();
}

bool ProblemFacts::hasMaskMod() const {
  return !AttentionOp(op).getMaskMod().empty();
}

/// Collects what the regions use from outside.
static LogicalResult collectCaptures(AttentionOp op, ProblemFacts &facts) {
  llvm::SetVector<Value> captured;
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, captured);
  for (Value value : captured) {
    if (isa<MemRefType>(value.getType())) {
      FailureOr<TensorFacts> tensor = describeTensor(
          op, "capture" + std::to_string(facts.captures.size()), value,
          /*written=*/false);
      if (failed(tensor))
        return failure();
      facts.captures.push_back(*tensor);
      continue;
    }
    Operation *def = value.getDefiningOp();
    if (def && def->hasTrait<OpTrait::ConstantLike>())
      continue;
    if (!value.getType().isIntOrIndexOrFloat()) {
      InFlightDiagnostic diag =
          op.emitOpError("expected regions to use memrefs and scalars from "
                         "outside, got a value of type ")
          << value.getType();
      diag.attachNote(value.getLoc()) << "the value stands here";
      return diag;
    }
    facts.scalars.push_back(value);
  }
  return success();
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
                   false)}) {
    FailureOr<TensorFacts> tensor = describeTensor(op, name, value, written);
    if (failed(tensor))
      return failure();
    *member = *tensor;
  }
  facts.elementType = facts.q.elementType;
  facts.outType = facts.o.elementType;
  facts.varlen = op.isVariableLength();
  facts.headDim = op.getHeadDim();
  facts.valueDim = op.getValueDim();
  facts.mask = op.getEffectiveMask();
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (auto attr = op->getAttrOfType<FloatAttr>(NAME))                          \
    facts.ID = attr.getValueAsDouble();
#define ATTN_COUNT(ID, NAME, VALUE, CONSTRAINTS, DOC)                          \
  if (auto attr = op->getAttrOfType<IntegerAttr>(NAME))                        \
    facts.ID = attr.getInt();
#include "attn/Problem/Options.def"
  facts.scale = op.getEffectiveScale();
  unsigned lead = facts.kvSplits != 0 ? 1 : 0;
  facts.heads = unify({{&facts.q, 1},
                       {&facts.o, lead + 1},
                       {&facts.lse, lead + 1},
                       {&facts.sinks, 0}});
  facts.kvHeads = unify({{&facts.k, 1}, {&facts.v, 1}});
  facts.keys = unify({{&facts.k, 2}, {&facts.v, 2}});
  if (facts.varlen) {
    int64_t entries = unify({{&facts.cuSeqlensQ, 0}, {&facts.cuSeqlensK, 0}});
    facts.batch = ShapedType::isDynamic(entries) ? entries : entries - 1;
    facts.queries = *op.getMaxSeqlenQ();
  } else {
    facts.batch =
        unify({{&facts.q, 0}, {&facts.k, 0}, {&facts.v, 0}, {&facts.o, lead}});
    facts.queries =
        unify({{&facts.q, 2}, {&facts.o, lead + 2}, {&facts.lse, lead + 2}});
  }
  if (failed(collectCaptures(op, facts)))
    return failure();
  return facts;
}
