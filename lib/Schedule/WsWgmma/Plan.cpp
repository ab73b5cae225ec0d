//===- Plan.cpp - Plans of ws_wgmma: legality and parameters --------------===//

#include "../CommonChecks.h"
#include "../PlanParameters.h"
#include "WsWgmma.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

const Schedule &attn::getWsWgmmaSchedule() {
  static const WsWgmmaSchedule schedule;
  return schedule;
}

ResourceSum attn::getRingBytes(const ProblemFacts &facts,
                               WsWgmmaPlanAttr plan) {
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  ResourceSum sum;
  sum.add("q", plan.getBlockM() * facts.headDim * bytes, plan.getQStages());
  sum.add("k", plan.getBlockN() * facts.headDim * bytes, plan.getKStages());
  sum.add("v", plan.getBlockN() * facts.valueDim * bytes, plan.getVStages());
  // Two mbarriers of 8 bytes for each slot.
  sum.add("barriers", 16,
          plan.getQStages() + plan.getKStages() + plan.getVStages());
  return sum;
}

/// The number of query heads whose keys and values take half of L2: each half
/// of the chip may hold a copy of its own.
static int64_t chooseGroup(const ProblemFacts &facts, const TargetRow &target) {
  if (ShapedType::isDynamic(facts.keys) || ShapedType::isDynamic(facts.heads) ||
      ShapedType::isDynamic(facts.kvHeads))
    return 0;
  int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
  int64_t headBytes = facts.keys * (facts.headDim + facts.valueDim) * bytes;
  int64_t sharing = facts.heads / facts.kvHeads;
  int64_t keyHeads = std::max<int64_t>(1, target.l2Bytes / 2 / headBytes);
  int64_t heads = keyHeads * sharing;
  return heads >= facts.batch * facts.heads ? 0 : heads;
}

std::vector<PlanAttrInterface>
WsWgmmaSchedule::getCandidates(const ProblemFacts &facts,
                               const TargetRow &target) const {
  MLIRContext *context = AttentionOp(facts.op).getContext();
  TileOrder order = TileOrder::RowMajor;
  int64_t groupHeads = 0;
  if (facts.mask.getKind() != MaskKind::None) {
    order = TileOrder::LongestFirst;
    groupHeads = chooseGroup(facts, target);
  }
  std::vector<PlanAttrInterface> plans;
  for (SoftmaxPolicy softmax :
       {SoftmaxPolicy::Optimistic, SoftmaxPolicy::Exact})
    for (int64_t blockM : {128, 64})
      for (int64_t blockN : {128, 112, 96, 80, 64})
        for (int64_t qStages : {2, 1}) {
          // Loads run as far ahead as shared memory lets them.
          for (int64_t stages : {4, 3, 2}) {
            auto plan = WsWgmmaPlanAttr::get(context, blockM, blockN, qStages,
                                             stages, stages,
                                             /*qkAhead=*/true, softmax, order,
                                             groupHeads, EpilogueKind::Auto);
            plans.push_back(plan);
            if (getRingBytes(facts, plan).getTotal() <=
                target.sharedBytesPerCTA)
              break;
            if (stages > 2)
              plans.pop_back();
          }
        }
  return plans;
}

llvm::Error WsWgmmaSchedule::isApplicable(const ProblemFacts &facts,
                                          const TargetRow &target) const {
  auto unsupported = [&](const llvm::Twine &what) {
    return makeUnsupported(getName(), what);
  };
  if (!target.has(Capability::Wgmma))
    return unsupported(llvm::formatv("{0}, which has no wgmma, expected {1}",
                                     target.chip,
                                     getCapabilityChips(Capability::Wgmma)));
  if (llvm::Error error = checkCommon(getName(), facts, /*dimStep=*/16))
    return error;
  if (ShapedType::isDynamic(facts.batch))
    return unsupported("a batch size that only the launch decides");
  // A tensor map has no extent of 0.
  for (auto [name, length] :
       {std::pair("queries", facts.queries), std::pair("keys", facts.keys)})
    if (length == 0)
      return unsupported(llvm::formatv("0 {0}", name));
  for (const TensorFacts *tensor : {&facts.q, &facts.k, &facts.v}) {
    int64_t bytes = facts.elementType.getIntOrFloatBitWidth() / 8;
    for (int64_t stride : ArrayRef(tensor->strides).drop_back())
      if (!ShapedType::isDynamic(stride) && stride * bytes % 16 != 0)
        return unsupported(llvm::formatv(
            "a stride of {0} bytes in '{1}', expected a multiple of 16",
            stride * bytes, tensor->name));
    if (tensor->getRowAlignment() < 16)
      return unsupported(llvm::formatv(
          "rows of '{0}' that start at multiples of {1} bytes, expected 16",
          tensor->name, tensor->getRowAlignment()));
  }
  return llvm::Error::success();
}

llvm::Error WsWgmmaSchedule::isLegal(const ProblemFacts &facts,
                                     PlanAttrInterface planAttr,
                                     const TargetRow &target) const {
  if (llvm::Error error = isApplicable(facts, target))
    return error;
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  if (plan.getSoftmax() == SoftmaxPolicy::Lagged)
    return llvm::createStringError(
        llvm::formatv("schedule 'ws_wgmma' does not support the softmax policy "
                      "'{0}', expected 'exact', 'threshold' or 'optimistic'",
                      stringifySoftmaxPolicy(plan.getSoftmax())));
  if (plan.getQkAhead() && (plan.getKStages() < 2 || plan.getVStages() < 2))
    return llvm::createStringError(
        llvm::formatv("qk_ahead needs 2 slots of K and of V, got {0} and {1}",
                      plan.getKStages(), plan.getVStages()));
  ResourceSum shared = getRingBytes(facts, plan);
  if (shared.getTotal() > target.sharedBytesPerCTA)
    return llvm::createStringError(
        llvm::formatv("does not fit: shared memory {0} exceeds {1} on {2}",
                      shared.str(), target.sharedBytesPerCTA, target.chip));
  return llvm::Error::success();
}

KernelShape WsWgmmaSchedule::getKernelShape(const ProblemFacts &facts,
                                            PlanAttrInterface planAttr) const {
  auto plan = cast<WsWgmmaPlanAttr>(planAttr);
  KernelShape shape;
  // One CTA for each SM of the target's board. They walk all tiles, so any
  // number is right.
  llvm::Expected<const TargetRow &> target = lookupTarget("sm_90a");
  assert(target && "the schedule's only chip");
  shape.grid = {std::to_string(target->smCount), "1", "1"};
  shape.threads = plan.getThreads();
  shape.warps = {plan.getBlockM() / 16, 1};
  return shape;
}

FailureOr<PlanAttrInterface> WsWgmmaSchedule::setParameters(
    llvm::function_ref<InFlightDiagnostic()> emitError, MLIRContext *context,
    PlanAttrInterface planAttr,
    llvm::ArrayRef<PlanParameter> parameters) const {
  auto plan = llvm::cast_if_present<WsWgmmaPlanAttr>(planAttr);
  if (!plan)
    plan = WsWgmmaPlanAttr::get(context, 128, 128, 1, 2, 2, true,
                                SoftmaxPolicy::Exact, TileOrder::RowMajor, 0,
                                EpilogueKind::Auto);
  int64_t blockM = plan.getBlockM(), blockN = plan.getBlockN();
  int64_t qStages = plan.getQStages(), kStages = plan.getKStages(),
          vStages = plan.getVStages(), groupHeads = plan.getGroupHeads();
  bool qkAhead = plan.getQkAhead();
  SoftmaxPolicy softmax = plan.getSoftmax();
  TileOrder order = plan.getOrder();
  EpilogueKind epilogue = plan.getEpilogue();
  for (const PlanParameter &parameter : parameters) {
    int64_t *integer = llvm::StringSwitch<int64_t *>(parameter.name)
                           .Case("block_m", &blockM)
                           .Case("block_n", &blockN)
                           .Case("q_stages", &qStages)
                           .Case("k_stages", &kStages)
                           .Case("v_stages", &vStages)
                           .Case("group_heads", &groupHeads)
                           .Default(nullptr);
    LogicalResult result = success();
    if (integer) {
      result = setInteger(emitError, parameter, *integer);
    } else if (parameter.name == "qk_ahead") {
      result = setBool(emitError, parameter, qkAhead);
    } else if (std::optional<LogicalResult> common =
                   setCommon(emitError, parameter, softmax, order, epilogue)) {
      result = *common;
    } else {
      return emitError() << "unknown parameter '" << parameter.name
                         << "' of schedule 'ws_wgmma', expected one of "
                            "block_m, block_n, q_stages, k_stages, v_stages, "
                            "qk_ahead, softmax, order, group_heads, epilogue";
    }
    if (failed(result))
      return failure();
  }
  auto changed = WsWgmmaPlanAttr::getChecked(
      emitError, context, blockM, blockN, qStages, kStages, vStages, qkAhead,
      softmax, order, groupHeads, epilogue);
  if (!changed)
    return failure();
  return PlanAttrInterface(changed);
}
