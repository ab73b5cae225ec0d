//===- KeyRuns.cpp - Keys in runs, and their partial results --------------===//

#include "attn/Planner/Choice/KeyRuns.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

namespace {
/// Holds the results that an attention writes of its runs.
struct PartialResults {
  /// scales is null where rows of o have none.
  Value o, lse, scales;
};
} // namespace

/// Allocates what o and lse become for each run, with one more dimension in
/// front: o of `columns` of type `partials`, f32 if that is null, lse, of two
/// numbers for a row with `rowState`, and scales f32, these for all columns of
/// a row in common.
static PartialResults allocatePartials(OpBuilder &builder, Location loc,
                                       Value o, int64_t columns, int64_t splits,
                                       Type partials, bool rowState) {
  SmallVector<int64_t> shape = {splits};
  llvm::append_range(shape, cast<MemRefType>(o.getType()).getShape());
  // A column of o may be two results.
  shape.back() = columns;
  SmallVector<Value> extents;
  for (auto [dim, extent] : llvm::enumerate(ArrayRef(shape).drop_front()))
    if (ShapedType::isDynamic(extent))
      extents.push_back(memref::DimOp::create(builder, loc, o, dim));
  // The head dimension, which lse does not have, is static.
  Type f32 = builder.getF32Type();
  auto allocate = [&](ArrayRef<int64_t> shape, Type element) -> Value {
    return memref::AllocOp::create(builder, loc,
                                   MemRefType::get(shape, element), extents);
  };
  PartialResults all;
  all.o = allocate(shape, partials ? partials : f32);
  SmallVector<int64_t> logs(ArrayRef(shape).drop_back());
  if (rowState)
    logs.push_back(2);
  all.lse = allocate(logs, f32);
  if (CombineOp::hasPartialScales(all.o.getType())) {
    shape.back() = 1;
    all.scales = allocate(shape, f32);
  }
  return all;
}

CombineOp attn::splitKeys(AttentionOp op, int64_t splits, Type partials) {
  OpBuilder builder(op);
  Value o = op.getO(), lse = op.getLse();
  PartialResults own =
      allocatePartials(builder, op.getLoc(), o, op.getValueDim(), splits,
                       partials, op.getRowState());
  op.getOMutable().assign(own.o);
  op.getLseMutable().assign(own.lse);
  op.setKvSplitsAttr(builder.getI64IntegerAttr(splits));
  builder.setInsertionPointAfter(op);
  // The op that rounds o scales it.
  FloatAttr outScale = op.getOutScaleAttr();
  op.removeOutScaleAttr();
  SmallVector<Value> others;
  if (own.scales)
    others.push_back(own.scales);
  others.push_back(o);
  if (lse)
    others.push_back(lse);
  IntegerAttr outGroup = op.getOutGroupAttr();
  if (outGroup) {
    others.push_back(op.getOScales());
    op.getOScalesMutable().clear();
    op.removeOutGroupAttr();
  }
  UnitAttr hasAmax;
  if (Value amax = op.getAmax()) {
    others.push_back(amax);
    op.getAmaxMutable().clear();
    hasAmax = builder.getUnitAttr();
  }
  if (own.scales)
    op.getOScalesMutable().assign(own.scales);
  Region *outMod = op.getOutMod();
  auto combine = CombineOp::create(builder, op.getLoc(), TypeRange(), own.o,
                                   own.lse, others, outScale, outGroup, hasAmax,
                                   /*kernel=*/StringAttr(),
                                   /*plan=*/PlanAttrInterface(),
                                   /*outModsCount=*/outMod ? 1 : 0);
  if (outMod)
    combine.getOutMods().front().takeBody(*outMod);
  return combine;
}

void attn::joinKeys(AttentionOp op, CombineOp combine) {
  SmallVector<Value> partials = {op.getO(), op.getLse()};
  if (Value scales = op.getOScales())
    partials.push_back(scales);
  op.getOScalesMutable().clear();
  op.getOMutable().assign(combine.getO());
  if (Value lse = combine.getLse())
    op.getLseMutable().assign(lse);
  else
    op.getLseMutable().clear();
  op.removeKvSplitsAttr();
  if (FloatAttr scale = combine.getOutScaleAttr())
    op.setOutScaleAttr(scale);
  if (IntegerAttr group = combine.getOutGroupAttr()) {
    op.getOScalesMutable().assign(combine.getOScales());
    op.setOutGroupAttr(group);
  }
  if (Value amax = combine.getAmaxOutput())
    op.getAmaxMutable().assign(amax);
  // Its place is empty since it became that of the combine.
  if (Region *outMod = combine.getOutMod())
    op.getLateRegions().back().takeBody(*outMod);
  combine.erase();
  for (Value partial : partials)
    partial.getDefiningOp()->erase();
}

Type attn::choosePartials(const ProblemFacts &facts, llvm::StringRef asked) {
  AttentionOp op = facts.op;
  MLIRContext *context = op.getContext();
  if (asked == "bf16")
    return BFloat16Type::get(context);
  // Partial results of a few latent sequences are as many bytes as their keys,
  // and what f16 takes from them is nothing beside the results' own rounding.
  bool isShort = asked == "auto" && facts.isLatent();
  if (isShort) {
    CombineOp combine = op.getKvSplits() ? findMergedCombine(op) : CombineOp();
    Value o = combine ? combine.getO() : op.getO();
    isShort = !getElementTypeOrSelf(o.getType()).isF32();
  }
  return isShort || asked == "f16" ? Type(Float16Type::get(context)) : Type();
}

/// Gives scales of partial results `groups` groups of columns in the place of
/// those that their type has.
static void setGroups(Value scales, int64_t groups) {
  auto type = cast<MemRefType>(scales.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = groups;
  scales.setType(MemRefType::Builder(type).setShape(shape));
}

/// The op that merges what `op` writes, if `partial`, memory of the launch, is
/// used by nobody else; else null.
static CombineOp findOnlyReader(AttentionOp op, Value partial) {
  CombineOp combine = findMergedCombine(op);
  bool isOwn =
      combine && llvm::all_of(partial.getUsers(), [&](Operation *user) {
        return user == op || user == combine || isa<memref::DeallocOp>(user);
      });
  return isOwn ? combine : CombineOp();
}

void attn::setPartials(AttentionOp op, Type partials) {
  Value o = op.getO();
  CombineOp combine = findOnlyReader(op, o);
  if (!combine || op.getOScales())
    return;
  o.setType(MemRefType::Builder(cast<MemRefType>(o.getType()))
                .setElementType(partials));
  if (!CombineOp::hasPartialScales(o.getType()))
    return;
  OpBuilder builder(op);
  builder.setInsertionPointAfter(op.getLse().getDefiningOp());
  Value scales = builder.clone(*o.getDefiningOp())->getResult(0);
  scales.setType(MemRefType::Builder(cast<MemRefType>(o.getType()))
                     .setElementType(builder.getF32Type()));
  setGroups(scales, 1);
  op.getOScalesMutable().assign(scales);
  SmallVector<Value> others = {scales};
  llvm::append_range(others, combine.getOthers());
  combine.getOthersMutable().assign(others);
}

LogicalResult attn::setUnitGroups(AttentionOp op) {
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  Value scales = facts->oScales.value;
  if (!facts->hasPartialScales() || !scales.getDefiningOp<memref::AllocOp>() ||
      !findOnlyReader(op, scales))
    return success();
  PlanAttrInterface plan = op.getPlanAttr();
  llvm::Expected<const Schedule &> schedule =
      lookupSchedule(plan.getSchedule());
  if (!schedule)
    return op.emitOpError() << llvm::toString(schedule.takeError());
  setGroups(scales, schedule->countUnitGroups(*facts, plan));
  return success();
}

LogicalResult attn::countPartials(AttentionOp op, const TargetRow &target,
                                  PlanCandidates &candidates) {
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  for (PlanCandidate &each : candidates.plans) {
    llvm::Expected<const Schedule &> found =
        lookupSchedule(each.plan.getSchedule());
    if (!found)
      return op.emitOpError() << llvm::toString(found.takeError());
    PlanEstimate own =
        makeCandidate(*facts, target, *found, each.plan).estimate;
    each.estimate.sharedBytes = own.sharedBytes;
    each.estimate.registers = own.registers;
  }
  return success();
}
