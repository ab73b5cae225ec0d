//===- attn-opt.cpp - Runs passes on attn IR ------------------------------===//

#include "Tool/Tool.h"
#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/InitAll.h"
#include "attn/Support/Files.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/ToolMain.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Regex.h"
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
  llvm::Expected<std::string> contents = readFile(input);
  if (!contents)
    return fail(llvm::toString(contents.takeError()));
  StringRef name = input == "-" ? "<stdin>" : input;
  if (std::optional<TextProblem> problem = findTextProblem(*contents)) {
    llvm::WithColor::error(llvm::errs(),
                           (name + ":" + llvm::Twine(problem->line) + ":" +
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
    result = MlirOptMain(stream,
                         llvm::MemoryBuffer::getMemBufferCopy(*contents, name),
                         registry, MlirOptMainConfig::createFromCLOptions());
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
  Tool tool(argc, argv, "attn-opt");
  // Those of MLIR and of the passes come after them.
  hideOptionsOfLibraries();
  // MLIR makes these two as it reads flags, before which all are checked.
  llvm::cl::opt<std::string> input(llvm::cl::Positional, llvm::cl::init("-"),
                                   llvm::cl::desc("<input file>"));
  llvm::cl::opt<std::string> output("o", llvm::cl::init("-"),
                                    llvm::cl::value_desc("file"),
                                    llvm::cl::desc("Where the output goes"));
  DialectRegistry registry;
  attn::registerAllDialects(registry);
  attn::registerAllPasses();
  attn::registerAllPipelines();
  registerTransformsPasses();
  bufferization::registerOneShotBufferizePass();
  registerGpuModuleToBinaryPass();
  std::string header = registerCLIOptions("attn optimizer driver\n", registry);
  // An error has its place in the file. Printed whole, a kernel would push it
  // out of the terminal.
  if (auto *printsOps = static_cast<llvm::cl::opt<bool> *>(
          llvm::cl::getRegisteredOptions().lookup(
              "mlir-print-op-on-diagnostic")))
    printsOps->setInitialValue(false);
  tool.parse(header);
  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  // A filter that is none would let nothing pass, in silence.
  for (const std::string &filter :
       {config.getRemarksAllFilter(), config.getRemarksPassedFilter(),
        config.getRemarksFailedFilter(), config.getRemarksMissedFilter(),
        config.getRemarksAnalyseFilter()})
    if (std::string error;
        !filter.empty() && !llvm::Regex(filter).isValid(error))
      return asMainReturnCode(fail("--remarks-filter: " + error));
  // MLIR reads this file without an end to what it takes.
  if (StringRef path = config.getIrdlFile(); !path.empty())
    if (llvm::Expected<std::string> text = readFile(path); !text)
      return asMainReturnCode(fail(llvm::toString(text.takeError())));
  // Lists need no input.
  LogicalResult result =
      config.shouldShowDialects() || config.shouldListPasses()
          ? MlirOptMain(argc, argv, input, output, registry)
          : run(input, output, registry);
  if (llvm::Error error = flushOutput())
    result = fail(llvm::toString(std::move(error)));
  return asMainReturnCode(result);
}
