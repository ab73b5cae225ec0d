//===- attn-opt.cpp - Runs passes on attn IR ------------------------------===//

#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/InitAll.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/ToolMain.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::attn;

static LogicalResult fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attn-opt") << message << "\n";
  return failure();
}

/// Reads `input`, runs what the flags say, and writes `output`.
static LogicalResult run(StringRef input, StringRef output,
                         DialectRegistry &registry) {
  std::string message;
  std::unique_ptr<llvm::MemoryBuffer> file = openInputFile(input, &message);
  if (!file)
    return fail(message);
  if (std::optional<TextProblem> problem = findTextProblem(file->getBuffer())) {
    llvm::WithColor::error(llvm::errs(), (file->getBufferIdentifier() + ":" +
                                          llvm::Twine(problem->line) + ":" +
                                          llvm::Twine(problem->column))
                                             .str())
        << problem->message << "\n";
    return failure();
  }
  // What is printed is kept until it is known whether the run succeeds.
  std::string text;
  llvm::raw_string_ostream stream(text);
  LogicalResult result = failure();
  std::optional<std::string> fatal = runGuarded([&] {
    result = MlirOptMain(stream, std::move(file), registry,
                         MlirOptMainConfig::createFromCLOptions());
  });
  if (fatal)
    return fail("fatal error in the compiler: " + *fatal);
  if (failed(result) && output != "-")
    return failure();
  if (llvm::Error error = writeOutput(output, text))
    return fail(llvm::toString(std::move(error)));
  return result;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  DialectRegistry registry;
  attn::registerAllDialects(registry);
  attn::registerAllPasses();
  attn::registerAllPipelines();
  registerTransformsPasses();
  bufferization::registerOneShotBufferizePass();
  registerGpuModuleToBinaryPass();
  setVersionPrinter();
  auto [input, output] = registerAndParseCLIOptions(
      argc, argv, "attn optimizer driver\n", registry);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  // Lists need no input.
  LogicalResult result =
      config.shouldShowDialects() || config.shouldListPasses()
          ? MlirOptMain(argc, argv, input, output, registry)
          : run(input, output, registry);
  if (llvm::Error error = flushOutput())
    result = fail(llvm::toString(std::move(error)));
  return asMainReturnCode(result);
}
