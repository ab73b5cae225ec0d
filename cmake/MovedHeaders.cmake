# Headers that moved: programs that name the old path still compile. Each row is
# the old path and the new one, below include/.

set(moved_headers
  attn/Analysis/BarrierCheck.h attn/Analysis/Barriers/BarrierCheck.h
  attn/Analysis/BarrierReport.h attn/Analysis/Barriers/BarrierReport.h
  attn/Analysis/BufferLiveness.h attn/Analysis/Memory/BufferLiveness.h
  attn/Analysis/ChannelAnalysis.h attn/Analysis/Channels/ChannelAnalysis.h
  attn/Analysis/ChannelCheck.h attn/Analysis/Channels/ChannelCheck.h
  attn/Analysis/ChannelReport.h attn/Analysis/Channels/ChannelReport.h
  attn/Analysis/ClusterUniformity.h attn/Analysis/Flow/ClusterUniformity.h
  attn/Analysis/Footprint.h attn/Analysis/Memory/Footprint.h
  attn/Analysis/HandleFlow.h attn/Analysis/Flow/HandleFlow.h
  attn/Analysis/LaunchAgreement.h attn/Analysis/Barriers/LaunchAgreement.h
  attn/Analysis/Placement.h attn/Analysis/Memory/Placement.h
  attn/Analysis/ProxyFences.h attn/Analysis/Memory/ProxyFences.h
  attn/Analysis/RegionEvaluator.h attn/Analysis/Flow/RegionEvaluator.h
  attn/Analysis/RegionNumber.h attn/Analysis/Flow/RegionNumber.h
  attn/Analysis/RegionPaths.h attn/Analysis/Flow/RegionPaths.h
  attn/Analysis/SharedAccess.h attn/Analysis/Memory/SharedAccess.h
  attn/Analysis/SharedHazards.h attn/Analysis/Memory/SharedHazards.h
  attn/Analysis/TensorFences.h attn/Analysis/Memory/TensorFences.h
  attn/Schedule/Core/CombineChoice.h attn/Planner/Choice/CombineChoice.h
  attn/Schedule/Core/PlanCandidates.h attn/Planner/Choice/PlanCandidates.h
  attn/Schedule/Core/PlanTable.h attn/Planner/Choice/PlanTable.h
  attn/Schedule/Core/SplitKeys.h attn/Planner/Choice/SplitKeys.h
  attn/Schedule/Core/UnevenTime.h attn/Planner/Choice/UnevenTime.h
  attn/Schedule/Problem/CombineFacts.h attn/Planner/Facts/CombineFacts.h
  attn/Schedule/Problem/ProblemFacts.h attn/Planner/Facts/ProblemFacts.h
  attn/Schedule/Problem/TensorFacts.h attn/Planner/Facts/TensorFacts.h
  attn/Target/BundleFile.h attn/Launch/BundleFile.h
  attn/Target/DType.h attn/Launch/DType.h
  attn/Target/LaunchBinding.h attn/Launch/LaunchBinding.h
  attn/Target/LaunchRecord.h attn/Launch/LaunchRecord.h
  attn/Target/SizeExpr.h attn/Launch/SizeExpr.h
  attn/Target/SyncSkeleton.h attn/Launch/SyncSkeleton.h
  attn/Target/SyncVerdict.h attn/Launch/SyncVerdict.h
  attn/Target/SyncWitness.h attn/Launch/SyncWitness.h
)

# Writes a header at each old path of the build tree, which is installed.
while(moved_headers)
  list(POP_FRONT moved_headers old new)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/include/${old} @ONLY CONTENT
"// Moved: forwards to its new place.
#include \"@new@\"
")
endwhile()
