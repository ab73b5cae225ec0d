//===- Pipelines.cpp - The named pipelines --------------------------------===//

#include "attn/Dialect/Attn/Transforms/Pipelines.h"
#include "AssembleCheck.h"
#include "attn/Conversion/Passes.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/InitAll.h"
#include "attn/Target/PTX/Passes.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;
using namespace mlir::attn;

void attn::addPlanPasses(OpPassManager &pm,
                         const AttnPipelineOptions &options) {
  if (options.assembleCheck) {
    pm.addPass(createAssembleCheckPass(options));
    return;
  }
  if (options.readMasks)
    pm.addPass(createAttnReadMasksPass());
  AttnPlanPassOptions plan;
  plan.chip = options.chip;
  plan.board = options.board;
  plan.skipPlans = options.skipPlans;
  plan.schedule = options.schedule;
  // Results that pass through shared memory count in a plan's sum. What `set`
  // says comes behind, and holds.
  if (options.epilogue != "auto")
    plan.set.push_back("epilogue=" + options.epilogue);
  llvm::append_range(plan.set, options.set);
  plan.planTable = options.planTable;
  plan.shippedPlans = options.shippedPlans;
  plan.split = options.splitKeys;
  plan.partials = options.partials;
  plan.print = options.printPlans;
  plan.printAll = options.printAllPlans;
  pm.addPass(createAttnPlanPass(plan));
}

void attn::addTilePasses(OpPassManager &pm,
                         const AttnPipelineOptions &options) {
  AttnExpandPassOptions expand;
  expand.chip = options.chip;
  expand.board = options.board;
  pm.addPass(createAttnExpandPass(expand));
  // Emitters state a constant or an index wherever they need one.
  pm.addPass(createCSEPass());
}

void attn::addBarrierPasses(OpPassManager &pm,
                            const AttnPipelineOptions &options) {
  pm.addPass(createAttnVerifyRungPass());
  pm.addPass(createAttnExpandArithmeticPass());
  pm.addPass(createAttnShardCGAPass());
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  // SSA does not keep tokens from being used twice.
  auto add = [&](std::unique_ptr<Pass> pass) {
    kernels.addPass(std::move(pass));
    kernels.addPass(createAttnVerifyTokensPass());
  };
  add(createAttnVerifyArchPass());
  add(createAttnLowerTileLoopsPass());
  add(createAttnExpandPipelinePass());
  if (options.checkBarriers || options.requireProof)
    kernels.addPass(createAttnCheckChannelsPass());
  add(createAttnFuseRowMaximaPass());
  AttnSelectEpiloguePassOptions epilogue;
  epilogue.kind = options.epilogue;
  epilogue.printMap = options.printPlans || options.printAllPlans;
  add(createAttnSelectEpiloguePass(epilogue));
  add(createAttnInferLayoutsPass());
  // Its scratch is a buffer too.
  AttnAllocateTmemPassOptions tmem;
  tmem.chip = options.chip;
  tmem.printMap = options.printPlans || options.printAllPlans;
  add(createAttnAllocateTmemPass(tmem));
  add(createAttnMaterializeScratchPass());
  add(createAttnLowerChannelsPass());
  AttnAllocateSharedPassOptions shared;
  shared.chip = options.chip;
  kernels.addPass(createAttnAllocateSharedPass(shared));
  AttnInsertFencesPassOptions fences;
  fences.leaveOutProved = true;
  kernels.addPass(createAttnInsertFencesPass(fences));
}

/// Steps after which the check gives up here: about a second, or more where
/// nothing but a proof will do.
static constexpr int64_t kCheckLimit = 3000000, kProofLimit = 8 * kCheckLimit;

void attn::addCheckPasses(OpPassManager &pm,
                          const AttnPipelineOptions &options) {
  if (!options.checkBarriers && !options.requireProof)
    return;
  AttnCheckBarriersPassOptions check;
  check.limit = options.requireProof ? kProofLimit : kCheckLimit;
  check.clusterScope = options.clusterScope;
  check.requireProof = options.requireProof;
  check.launchRemark = true;
  check.witness = options.witness;
  check.skeleton = options.skeleton;
  pm.nest<gpu::GPUModuleOp>().addPass(createAttnCheckBarriersPass(check));
}

LogicalResult
attn::addInstrumentPasses(OpPassManager &pm, StringRef text,
                          function_ref<LogicalResult(const Twine &)> fail) {
  std::unique_ptr<Pass> pass = createAttnInstrumentPass();
  std::string options = text.str();
  llvm::replace(options, ',', ' ');
  if (failed(pass->initializeOptions(options, fail)))
    return failure();
  pm.nest<gpu::GPUModuleOp>().addPass(std::move(pass));
  return success();
}

void attn::addThreadPasses(OpPassManager &pm,
                           const AttnPipelineOptions &options) {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  AttnLowerTilesPassOptions lower;
  lower.clusterScope = options.clusterScope;
  kernels.addPass(createAttnLowerTilesPass(lower));
  kernels.addPass(createCSEPass());
  kernels.addPass(createAttnMoveRarePathsPass());
}

void attn::addNVVMPasses(OpPassManager &pm) {
  pm.nest<gpu::GPUModuleOp>().addPass(createConvertAttnToNVVMPass());
}

void attn::addPTXPasses(OpPassManager &pm) {
  pm.nest<gpu::GPUModuleOp>().addPass(createAttnEmitPTXPass());
}

void attn::buildTilePipeline(OpPassManager &pm,
                             const AttnPipelineOptions &options) {
  addPlanPasses(pm, options);
  addTilePasses(pm, options);
}

void attn::buildBarrierPipeline(OpPassManager &pm,
                                const AttnPipelineOptions &options) {
  buildTilePipeline(pm, options);
  addBarrierPasses(pm, options);
}

void attn::buildNVVMPipeline(OpPassManager &pm,
                             const AttnPipelineOptions &options) {
  buildBarrierPipeline(pm, options);
  addThreadPasses(pm, options);
  addNVVMPasses(pm);
}

void attn::buildPTXPipeline(OpPassManager &pm,
                            const AttnPipelineOptions &options) {
  buildBarrierPipeline(pm, options);
  addCheckPasses(pm, options);
  addThreadPasses(pm, options);
  addNVVMPasses(pm);
  addPTXPasses(pm);
}

void attn::registerAllPipelines() {
  PassPipelineRegistration<AttnPipelineOptions>(
      "attn-to-tile", "From attn.attention to tile IR.", buildTilePipeline);
  PassPipelineRegistration<AttnPipelineOptions>(
      "attn-to-barrier",
      "From attn.attention to tile IR with chosen layouts, allocated shared "
      "memory and barriers.",
      buildBarrierPipeline);
  PassPipelineRegistration<AttnPipelineOptions>(
      "attn-to-nvvm", "From attn.attention to the LLVM and NVVM dialects.",
      buildNVVMPipeline);
  PassPipelineRegistration<AttnPipelineOptions>(
      "attn-to-ptx",
      "From attn.attention to PTX text, in the attribute attn.ptx of each "
      "gpu.module.",
      buildPTXPipeline);
}
