//===- Plan.cpp - Plans of self_load: legality and parameters -------------===//

#include "../CommonChecks.h"
#include "../PlanParameters.h"
#include "../RingFacts.h"
#include "../TileBalance.h"
#include "SelfLoad.h"
#include "attn/Target/Clusters.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getSelfLoadSchedule() {
  static const SelfLoadSchedule schedule;
  return schedule;
}

int64_t attn::getThreadRegisters(SelfLoadPlanAttr plan) {
  int64_t threads = plan.getThreads() * plan.getCtasPerSm();
  return std::min<int64_t>(256, llvm::alignDown(kRegisterFile / threads, 8));
}

bool attn::storesByTma(const ProblemFacts &facts, SelfLoadPlanAttr plan) {
  // A packed sequence ends before the tensor does.
  return plan.getEpilogue() == EpilogueKind::Tma && !facts.varlen &&
         !findUnmappable(facts.o);
}

bool attn::hasResultMemory(const ProblemFacts &facts, SelfLoadPlanAttr plan) {
  return plan.getEpilogue() == EpilogueKind::Staged || storesByTma(facts, plan);
}

int64_t attn::getValuesAhead(const ProblemFacts &facts, SelfLoadPlanAttr plan) {
  bool isTransposedBefore = needsTransposer(facts) && !plan.getQkAhead();
  return plan.getVStages() - (isTransposedBefore ? 0 : 1);
}

ResourceSum attn::getSharedBytes(const ProblemFacts &facts,
                                 SelfLoadPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  ResourceSum sum;
  sum.add("q", kSelfLoadRows * facts.headDim * bytes);
  sum.add("k", plan.getBlockN() * facts.headDim * bytes, plan.getKStages());
  sum.add("v", plan.getBlockN() * facts.valueDim * bytes, plan.getVStages());
  if (needsTransposer(facts))
    sum.add("vt", plan.getBlockN() * facts.valueDim * bytes);
  // Two mbarriers of 8 bytes for each slot.
  sum.add("barriers", 16, 1 + plan.getKStages() + plan.getVStages());
  if (hasResultMemory(facts, plan))
    sum.add("o", kSelfLoadRows * facts.valueDim *
                     facts.outType.getIntOrFloatBitWidth() / 8);
  return sum;
}

/// True if as many CTAs as the plan says fit an SM.
static bool fitsShared(const ProblemFacts &facts, SelfLoadPlanAttr plan,
                       const TargetRow &target) {
  int64_t bytes = getSharedBytes(facts, plan).getTotal();
  return bytes <= int64_t(target.sharedBytesPerCTA) &&
         plan.getCtasPerSm() * (bytes + int64_t(target.sharedBytesReserved)) <=
             int64_t(target.sharedBytesPerSM);
}

std::vector<PlanAttrInterface>
SelfLoadSchedule::getCandidates(const ProblemFacts &facts,
                                const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  bool masked = facts.mask.getKind() != MaskKind::None;
  TileOrder order = masked ? TileOrder::LongestFirst : TileOrder::RowMajor;
  std::vector<PlanAttrInterface> plans;
  for (int64_t ctas : {3, 2, 1})
    for (int64_t blockN : {128, 96, 64}) {
      int64_t groupHeads = masked
                               ? chooseGroupHeads(facts, target, kSelfLoadRows,
                                                  blockN, target.smCount * ctas)
                               : 0;
      for (SoftmaxPolicy softmax : getUsualPolicies(facts))
        for (bool qkAhead : {true, false}) {
          auto get = [&](int64_t vStages) {
            return SelfLoadPlanAttr::get(
                context, blockN, /*kStages=*/2, vStages, qkAhead, ctas,
                /*key_quads=*/!findNoQuads(facts), softmax, order, groupHeads,
                EpilogueKind::Auto);
          };
          // A slot of V is refilled a block later than one of K.
          SelfLoadPlanAttr more = get(3);
          bool fits = fitsShared(facts, more, target);
          plans.push_back(fits ? more : get(2));
        }
    }
  return plans;
}

llvm::Error SelfLoadSchedule::isApplicable(const ProblemFacts &facts,
                                           const TargetRow &target) const {
  return checkWgmma(getName(), facts, target);
}

llvm::Error SelfLoadSchedule::isLegal(const ProblemFacts &facts,
                                      PlanAttrInterface planAttr,
                                      const TargetRow &target) const {
  if (llvm::Error error = isApplicable(facts, target))
    return error;
  auto plan = cast<SelfLoadPlanAttr>(planAttr);
  if (llvm::Error error = checkPolicy(getName(), plan.getSoftmax()))
    return error;
  if (llvm::Error error =
          checkQKAhead(plan.getQkAhead(), plan.getKStages(), plan.getVStages()))
    return error;
  if (llvm::Error error =
          checkNarrow(facts, plan.getBlockN(), plan.getKeyQuads()))
    return error;
  if (!fitsShared(facts, plan, target))
    return llvm::createStringError(llvm::formatv(
        "does not fit: shared memory {0} and {1} more for each of {2} CTAs "
        "exceeds {3} of an SM or {4} of a CTA on {5}",
        getSharedBytes(facts, plan).str(), target.sharedBytesReserved,
        plan.getCtasPerSm(), target.sharedBytesPerSM, target.sharedBytesPerCTA,
        target.chip));
  return llvm::Error::success();
}

KernelShape SelfLoadSchedule::getKernelShape(const ProblemFacts &,
                                             PlanAttrInterface planAttr) const {
  auto plan = cast<SelfLoadPlanAttr>(planAttr);
  llvm::Expected<const TargetRow &> target = lookupTarget("sm_90a");
  assert(target && "the schedule's only chip");
  KernelShape shape;
  // As many CTAs as the target's board holds. They walk all tiles, so any
  // number is right.
  shape.grid = {std::to_string(target->smCount * plan.getCtasPerSm()), "1",
                "1"};
  shape.threads = plan.getThreads();
  shape.warps = {kSelfLoadRows / 16, 1};
  shape.ctasPerSM = plan.getCtasPerSm();
  return shape;
}

FailureOr<PlanAttrInterface> SelfLoadSchedule::setParameters(
    llvm::function_ref<InFlightDiagnostic()> emitError, MLIRContext *context,
    PlanAttrInterface planAttr,
    llvm::ArrayRef<PlanParameter> parameters) const {
  auto plan = llvm::cast_if_present<SelfLoadPlanAttr>(planAttr);
  if (!plan)
    plan = SelfLoadPlanAttr::get(context, 64, 2, 2, false, 1, false,
                                 SoftmaxPolicy::Exact, TileOrder::RowMajor, 0,
                                 EpilogueKind::Auto);
  int64_t blockN = plan.getBlockN(), kStages = plan.getKStages(),
          vStages = plan.getVStages(), ctasPerSM = plan.getCtasPerSm(),
          groupHeads = plan.getGroupHeads();
  bool qkAhead = plan.getQkAhead(), keyQuads = plan.getKeyQuads();
  SoftmaxPolicy softmax = plan.getSoftmax();
  TileOrder order = plan.getOrder();
  EpilogueKind epilogue = plan.getEpilogue();
  for (const PlanParameter &parameter : parameters) {
    int64_t *integer = llvm::StringSwitch<int64_t *>(parameter.name)
                           .Case("block_n", &blockN)
                           .Case("k_stages", &kStages)
                           .Case("v_stages", &vStages)
                           .Case("ctas_per_sm", &ctasPerSM)
                           .Case("group_heads", &groupHeads)
                           .Default(nullptr);
    bool *boolean = llvm::StringSwitch<bool *>(parameter.name)
                        .Case("qk_ahead", &qkAhead)
                        .Case("key_quads", &keyQuads)
                        .Default(nullptr);
    LogicalResult result = success();
    if (integer) {
      result = setInteger(emitError, parameter, *integer);
    } else if (boolean) {
      result = setBool(emitError, parameter, *boolean);
    } else if (std::optional<LogicalResult> common =
                   setCommon(emitError, parameter, softmax, order, epilogue)) {
      result = *common;
    } else {
      return emitError()
             << "unknown parameter '" << parameter.name
             << "' of schedule 'self_load', expected one of "
                "block_n, k_stages, v_stages, qk_ahead, "
                "ctas_per_sm, key_quads, softmax, order, group_heads, epilogue";
    }
    if (failed(result))
      return failure();
  }
  auto changed = SelfLoadPlanAttr::getChecked(
      emitError, context, blockN, kStages, vStages, qkAhead, ctasPerSM,
      keyQuads, softmax, order, groupHeads, epilogue);
  if (!changed)
    return failure();
  return PlanAttrInterface(changed);
}
