//===- embed.cpp - attn as the backend of another compiler ----------------===//
//
// Reads a module in which a function works on tensors with attn.attention, and
// writes the kernel as PTX with its launch record. What stays in the module is
// the host's part: buffers, and a gpu.launch_func for each attention.
//
//===----------------------------------------------------------------------===//

#include "TwoPass.h"
#include "attn/Compile/Compiler.h"
#include "attn/Dialect/Attn/Transforms/Pipelines.h"
#include "attn/InitAll.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;

static llvm::cl::opt<std::string> input(llvm::cl::Positional,
                                        llvm::cl::desc("<input.mlir>"),
                                        llvm::cl::Required);
static llvm::cl::opt<std::string> output("o", llvm::cl::desc("The PTX"),
                                         llvm::cl::init("-"));
static llvm::cl::opt<std::string>
    launchOut("launch-out", llvm::cl::desc("The launch record"));
static llvm::cl::opt<std::string>
    hostOut("host-out", llvm::cl::desc("What is left of the module"));
static llvm::cl::opt<std::string> chip("chip", llvm::cl::init("sm_80"));
static llvm::cl::opt<std::string> schedule("schedule");
static llvm::cl::list<std::string> set("set", llvm::cl::CommaSeparated);
static llvm::cl::opt<bool> printPlan("print-plan");

static LogicalResult write(StringRef path, const Twine &text) {
  std::error_code code;
  llvm::ToolOutputFile file(path, code, llvm::sys::fs::OF_None);
  if (code) {
    llvm::errs() << path << ": " << code.message() << "\n";
    return failure();
  }
  file.os() << text;
  file.keep();
  return success();
}

/// What a compiler does that takes attn's passes into its own pipeline.
static LogicalResult lower(ModuleOp module) {
  PassManager manager(module.getContext());
  // Kernels need an innermost stride of 1, so functions get dense buffers.
  bufferization::OneShotBufferizePassOptions bufferize;
  bufferize.bufferizeFunctionBoundaries = true;
  bufferize.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  manager.addPass(bufferization::createOneShotBufferizePass(bufferize));

  attn::AttnPipelineOptions options;
  options.chip = chip;
  options.schedule = schedule;
  options.set = ArrayRef<std::string>(set);
  options.printPlans = printPlan;
  attn::buildPTXPipeline(manager, options);
  return manager.run(module);
}

/// Takes the PTX and the launch record of each kernel module.
static LogicalResult collect(ModuleOp module, std::string &ptx,
                             std::string &launch) {
  for (auto kernels : module.getOps<gpu::GPUModuleOp>()) {
    ptx += kernels->getAttrOfType<StringAttr>("attn.ptx").getValue();
    llvm::Expected<attn::LaunchRecord> record =
        attn::readLaunchSequence(kernels);
    if (!record)
      return kernels.emitError(llvm::toString(record.takeError()));
    launch += llvm::formatv("{0:2}\n", attn::toJSON(*record)).str();
  }
  if (ptx.empty())
    return module.emitError("expected an attn.attention, got none");
  return success();
}

int main(int argc, char **argv) {
  llvm::cl::ParseCommandLineOptions(argc, argv, "attention to PTX\n");
  if (llvm::Error error = attn::registerSchedule(two_pass::getSchedule())) {
    llvm::errs() << llvm::toString(std::move(error)) << "\n";
    return 1;
  }
  DialectRegistry registry;
  attn::registerAllDialects(registry);
  registry.insert<two_pass::TwoPassDialect>();
  MLIRContext context(registry);
  context.loadDialect<two_pass::TwoPassDialect>();

  // Prints remarks as well, which carry the plans.
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(input.getValue(), sources, &context);
  std::string ptx, launch, host;
  if (!module || failed(lower(*module)) ||
      failed(collect(*module, ptx, launch)))
    return 1;
  // The kernels are text by now.
  for (auto kernels : llvm::to_vector(module->getOps<gpu::GPUModuleOp>()))
    kernels.erase();
  llvm::raw_string_ostream(host) << *module << "\n";
  if (failed(write(output, ptx)) ||
      (!launchOut.empty() && failed(write(launchOut, launch))) ||
      (!hostOut.empty() && failed(write(hostOut, host))))
    return 1;
  return 0;
}
