//===- attn-reduce.cpp - Shrinks IR that shows a bug ----------------------===//

#include "Tool/Tool.h"
#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/InitAll.h"
#include "attn/Reduce/Reduce.h"
#include "attn/Support/Files.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/ToolMain.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Reducer/Passes.h"
#include "mlir/Tools/ParseUtilities.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::attn;
namespace cl = llvm::cl;

static cl::OptionCategory category("attn-reduce options");

static cl::opt<std::string> inputPath(cl::Positional, cl::init("-"),
                                      cl::desc("<input file>"),
                                      cl::cat(category));
static cl::opt<std::string> outputPath("o", cl::init("-"),
                                       cl::value_desc("file"),
                                       cl::desc("Where the reduced file goes"),
                                       cl::cat(category));
static cl::opt<bool>
    noImplicitModule("no-implicit-module",
                     cl::desc("Take the file's op as it is, without a "
                              "'builtin.module' around it"),
                     cl::cat(category));

static LogicalResult fail(const llvm::Twine &message) {
  llvm::WithColor::error(llvm::errs(), "attn-reduce") << message << "\n";
  return failure();
}

/// The op of the input file, or null after an error was printed.
static OwningOpRef<Operation *> readInput(MLIRContext &context) {
  llvm::Expected<std::string> text = readFile(inputPath);
  if (!text) {
    (void)fail(llvm::toString(text.takeError()));
    return nullptr;
  }
  if (std::optional<TextProblem> problem = findTextProblem(*text)) {
    llvm::WithColor::error(llvm::errs(),
                           (inputPath + ":" + llvm::Twine(problem->line) + ":" +
                            llvm::Twine(problem->column))
                               .str())
        << problem->message << "\n";
    return nullptr;
  }
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBufferCopy(*text, inputPath), llvm::SMLoc());
  return parseSourceFileForTool(sources, &context, !noImplicitModule);
}

/// Reads the input, runs the passes, and writes the output.
static LogicalResult run(const PassPipelineCLParser &passes,
                         MLIRContext &context) {
  if (!passes.hasAnyOccurrences())
    return fail("expected a pass, such as --reduction-tree="
                "'traversal-mode=0 test=SCRIPT', got none");
  OwningOpRef<Operation *> op = readInput(context);
  if (!op)
    return failure();
  PassManager manager(&context, (*op)->getName().getStringRef());
  auto report = [](const llvm::Twine &message) { return fail(message); };
  if (failed(passes.addToPipeline(manager, report)))
    return failure();
  // MLIR's reduction fails with a warning, which is not printed, where the test
  // finds nothing in the input.
  bool isSaid = false;
  DiagnosticEngine::HandlerID handler =
      context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
        isSaid |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
        return failure();
      });
  LogicalResult result = manager.run(*op);
  context.getDiagEngine().eraseHandler(handler);
  if (failed(result))
    return isSaid ? failure()
                  : fail("expected a test that finds the input interesting "
                         "(exit status 1), got one that does not");
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*op)->print(stream);
  stream << "\n";
  if (llvm::Error error = writeOutput(outputPath, text))
    return fail(llvm::toString(std::move(error)));
  return success();
}

int main(int argc, char **argv) {
  Tool tool(argc, argv, "attn-reduce");
  cl::HideUnrelatedOptions(category);
  DialectRegistry registry;
  attn::registerAllDialects(registry);
  attn::registerReductions(registry);
  attn::registerAllPasses();
  attn::registerAllPipelines();
  registerReducerPasses();
  PassPipelineCLParser passes("", "Passes to run");
  tool.parse("attn-reduce - the smallest file that shows a bug\n");
  MLIRContext context(registry);
  LogicalResult result = failure();
  std::optional<std::string> fatal =
      runGuarded([&] { result = run(passes, context); });
  if (fatal) {
    // MLIR ends the process where it cannot run the test.
    llvm::StringRef reason = *fatal;
    result = reason.consume_front("Error running interestingness test: ")
                 ? fail("cannot run the test of the reduction: " + reason)
                 : fail("fatal error in the compiler: " + reason);
  }
  return failed(result);
}
