//===- Pipelines.h - The named pipelines ------------------------*- C++ -*-===//
//
// One function for each rung that a user can stop at; each contains the one
// before it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_PIPELINES_H
#define ATTN_DIALECT_ATTN_TRANSFORMS_PIPELINES_H

#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassOptions.h"

namespace mlir::attn {

/// Options of all pipelines.
struct AttnPipelineOptions : PassPipelineOptions<AttnPipelineOptions> {
  Option<std::string> chip{*this, "chip",
                           llvm::cl::desc("The target, a name from the target "
                                          "table."),
                           llvm::cl::init("sm_80")};
  Option<std::string> board{
      *this, "board",
      llvm::cl::desc("The board, or native; empty takes the chip's default."),
      llvm::cl::init("")};
  Option<std::string> schedule{
      *this, "schedule",
      llvm::cl::desc("Take this schedule instead of choosing one."),
      llvm::cl::init("")};
  ListOption<std::string> set{
      *this, "set",
      llvm::cl::desc("Fix parameters of the plan, each as name=value.")};
  Option<std::string> planTable{
      *this, "plan-table",
      llvm::cl::desc("A JSON file of measured plans, which are taken for its "
                     "problems."),
      llvm::cl::init("")};
  Option<bool> shippedPlans{
      *this, "shipped-plans",
      llvm::cl::desc("Take the plans of the library's own table for its "
                     "problems."),
      llvm::cl::init(true)};
  Option<unsigned> skipPlans{
      *this, "skip-plans",
      llvm::cl::desc("Leave out so many of the best plans."),
      llvm::cl::init(0)};
  Option<bool> readMasks{
      *this, "read-masks",
      llvm::cl::desc("Find in mask_mod what masks and block bounds say."),
      llvm::cl::init(true)};
  Option<bool> assembleCheck{
      *this, "assemble-check",
      llvm::cl::desc("Ask ptxas about the plan that is chosen, and take the "
                     "next one, of at most three, if its kernel spills in a "
                     "loop over blocks of keys."),
      llvm::cl::init(false)};
  Option<bool> splitKeys{
      *this, "split-keys",
      llvm::cl::desc("Cut the keys of servers' attentions into runs where it "
                     "pays."),
      llvm::cl::init(true)};
  Option<std::string> partials{
      *this, "partials",
      llvm::cl::desc("Element type of the results of runs that the launch "
                     "merges: f32, f16, bf16, or auto."),
      llvm::cl::init("auto")};
  Option<bool> printPlans{
      *this, "print-plans",
      llvm::cl::desc("Print the ten best candidates with their estimates."),
      llvm::cl::init(false)};
  Option<bool> printAllPlans{
      *this, "print-all-plans",
      llvm::cl::desc("Print all candidates with their sums of memory and "
                     "registers."),
      llvm::cl::init(false)};
  Option<std::string> epilogue{
      *this, "epilogue",
      llvm::cl::desc("How results leave the kernel: the plan's parameter, and "
                     "where tile IR says auto."),
      llvm::cl::init("auto")};
  Option<bool> checkBarriers{
      *this, "check-barriers",
      llvm::cl::desc("On the way to PTX, check that the kernel's "
                     "synchronisation is right."),
      llvm::cl::init(true)};
  Option<bool> clusterScope{
      *this, "cluster-scope",
      llvm::cl::desc("Signals between CTAs of a cluster name it as their "
                     "scope, in the kernel and in the check."),
      llvm::cl::init(false)};
  Option<bool> requireProof{
      *this, "require-proof",
      llvm::cl::desc("Anything but a proof of that is an error."),
      llvm::cl::init(false)};
  Option<std::string> witness{
      *this, "witness",
      llvm::cl::desc("File to write what is wrong with it to, for attn-sim "
                     "--replay."),
      llvm::cl::init("")};
  Option<std::string> skeleton{
      *this, "skeleton",
      llvm::cl::desc("File to write what each warp of a proved kernel does "
                     "to, for attn-sim --skeleton."),
      llvm::cl::init("")};
};

/// The passes from one rung to the next. Each takes a pass manager on modules.
void addPlanPasses(OpPassManager &pm, const AttnPipelineOptions &options);
void addTilePasses(OpPassManager &pm, const AttnPipelineOptions &options);
void addBarrierPasses(OpPassManager &pm, const AttnPipelineOptions &options);
/// None without `checkBarriers` and `requireProof`.
void addCheckPasses(OpPassManager &pm, const AttnPipelineOptions &options);
/// attn-instrument with the options in `text`; an error for others.
LogicalResult
addInstrumentPasses(OpPassManager &pm, StringRef text,
                    function_ref<LogicalResult(const Twine &)> fail);
void addThreadPasses(OpPassManager &pm, const AttnPipelineOptions &options);
void addNVVMPasses(OpPassManager &pm);
void addPTXPasses(OpPassManager &pm);

/// Problem to tile IR.
void buildTilePipeline(OpPassManager &pm, const AttnPipelineOptions &options);
/// Problem to tile IR with layouts, allocated shared memory and barriers.
void buildBarrierPipeline(OpPassManager &pm,
                          const AttnPipelineOptions &options);
/// Problem to the LLVM and NVVM dialects.
void buildNVVMPipeline(OpPassManager &pm, const AttnPipelineOptions &options);
/// Problem to PTX text.
void buildPTXPipeline(OpPassManager &pm, const AttnPipelineOptions &options);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_PIPELINES_H
