//===- FuzzTargets.cpp - What one fuzzed input is given to ----------------===//

#include "../../../lib/CAPI/Request.h"
#include "Mutator.h"
#include "Targets.h"
#include "attn/Compile/Verify.h"
#include "attn/Harness/Recorded.h"
#include "attn/InitAll.h"
#include "attn/Launch/BundleFile.h"
#include "attn/Lint/SassLint.h"
#include "attn/Planner/Choice/PlanTable.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/xxhash.h"
#include <sys/mman.h>
#include <unistd.h>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::fuzz;

/// Warp instructions of a CTA: enough to get through a prologue and some
/// blocks.
static constexpr uint64_t kSteps = 4000;

Targets::Targets() {
  attn::registerAllPasses();
  attn::registerAllPipelines();
  registerTransformsPasses();
  bufferization::registerOneShotBufferizePass();
  registerPassManagerCLOptions();
}

Targets::~Targets() = default;

ArrayRef<StringLiteral> Targets::getNames() {
  static constexpr StringLiteral names[] = {
      "ir",    "compile", "flags",  "passes", "ptx", "launch", "recorded",
      "plans", "budget",  "bundle", "npy",    "npz", "sass"};
  return names;
}

MLIRContext &Targets::getContext() {
  if (!context || ++contextUses % 256 == 0) {
    DialectRegistry registry;
    registerCompileDialects(registry);
    context = std::make_unique<MLIRContext>(registry,
                                            MLIRContext::Threading::DISABLED);
    context->printOpOnDiagnostic(false);
  }
  return *context;
}

/// The same decision for the same text: one in `n`.
static bool oneIn(unsigned n, StringRef text) {
  return llvm::xxh3_64bits(text) % n == 0;
}

template <typename T>
static bool consume(llvm::Expected<T> value) {
  if (value)
    return true;
  llvm::consumeError(value.takeError());
  return false;
}

namespace {

/// Renders every diagnostic, as a terminal would, and forgets it.
struct Silence : ScopedDiagnosticHandler {
  explicit Silence(MLIRContext *context)
      : ScopedDiagnosticHandler(context, [](Diagnostic &diagnostic) {
          (void)diagnostic.str();
          for (Diagnostic &note : diagnostic.getNotes())
            (void)note.str();
          return success();
        }) {}
};

} // namespace

static OwningOpRef<ModuleOp> parseText(StringRef text, MLIRContext &context,
                                       llvm::SourceMgr &sources) {
  AttnRequest request;
  request.text = text.str();
  request.fileName = "input.mlir";
  return makeModule(request, ParsedRequest(), context, sources);
}

bool Targets::runIR(StringRef text) {
  MLIRContext &context = getContext();
  Silence silence(&context);
  llvm::SourceMgr sources, again;
  OwningOpRef<ModuleOp> module = parseText(text, context, sources);
  if (!module)
    return false;
  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  OwningOpRef<ModuleOp> copy = parseText(printed, context, again);
  if (!copy && printed.size() < 200000)
    llvm::report_fatal_error("round trip: what was printed does not parse");
  return true;
}

static void addOptions(StringRef text, AttnRequest &request) {
  for (StringRef line : llvm::split(text, '\n')) {
    auto [name, value] = line.split('=');
    // A file's name would be one of this machine's files.
    if (!name.empty() && name != "plan-table")
      request.options.emplace_back(name.str(), value.str());
  }
}

bool Targets::runCompile(StringRef options, std::optional<StringRef> text) {
  AttnRequest request;
  if (text) {
    request.text = text->str();
    request.fileName = "input.mlir";
  }
  addOptions(options, request);
  llvm::Expected<ParsedRequest> parsed = parseRequest(request);
  if (!parsed) {
    llvm::consumeError(parsed.takeError());
    return false;
  }
  // ptxas is not ours, and a whole compilation takes a hundred times as long as
  // its first half.
  Rung most = oneIn(16, options) ? Rung::PTX : Rung::Barrier;
  parsed->compile.last = std::min(parsed->compile.last, most);
  MLIRContext &context = getContext();
  Silence silence(&context);
  llvm::SourceMgr sources;
  OwningOpRef<ModuleOp> module = makeModule(request, *parsed, context, sources);
  if (!module)
    return false;
  DefaultTimingManager timingManager;
  TimingScope timing = timingManager.getRootScope();
  CompileResult result;
  return succeeded(compile(*module, parsed->compile, timing, result));
}

bool Targets::runPasses(StringRef pipeline, StringRef text) {
  MLIRContext &context = getContext();
  Silence silence(&context);
  std::string message;
  llvm::raw_string_ostream stream(message);
  FailureOr<OpPassManager> passes = parsePassPipeline(pipeline.trim(), stream);
  if (failed(passes))
    return false;
  llvm::SourceMgr sources;
  OwningOpRef<ModuleOp> module = parseText(text, context, sources);
  if (!module)
    return false;
  PassManager manager(&context);
  static_cast<OpPassManager &>(manager) = std::move(*passes);
  return succeeded(manager.run(*module));
}

/// Bytes of parameters: addresses of some memory in front, numbers behind.
static std::vector<uint8_t> makeParameters(const sim::KernelInfo &kernel,
                                           sim::Memory &memory) {
  std::vector<uint8_t> bytes(kernel.paramBytes);
  for (const sim::KernelParam &param : kernel.params) {
    uint64_t value = 64;
    if (param.size == 8) {
      value = memory.allocate(65536, param.name);
      llvm::cantFail(memory.fill(value, 65536, 0));
    }
    if (param.size <= 8 && param.offset + param.size <= bytes.size())
      std::memcpy(bytes.data() + param.offset, &value, param.size);
  }
  return bytes;
}

static bool runPTX(StringRef text) {
  llvm::Expected<std::unique_ptr<sim::Program>> program =
      sim::parsePTX(text, "input.ptx");
  if (!program) {
    llvm::consumeError(program.takeError());
    return false;
  }
  bool ran = false;
  for (const sim::KernelInfo &kernel : (*program)->getKernels().take_front(4)) {
    if (kernel.params.size() > 64)
      continue;
    sim::Memory memory;
    sim::LaunchConfig config;
    config.kernel = kernel.name;
    config.stepLimit = kSteps;
    config.threads = 1;
    config.block = {kernel.reqntid[0] ? kernel.reqntid[0] : 64, 1, 1};
    if (kernel.reqnctapercluster[0]) {
      config.cluster = kernel.reqnctapercluster;
      config.grid = {std::min(config.cluster[0], 16u), 1, 1};
    }
    config.params = makeParameters(kernel, memory);
    ran |= consume(sim::run(**program, memory, config));
  }
  return ran;
}

/// Options of a run that ends soon whatever the launch is.
static sim::HarnessOptions makeHarnessOptions() {
  sim::HarnessOptions options;
  options.config.stepLimit = kSteps;
  options.config.threads = 1;
  return options;
}

static bool runLaunchRecord(StringRef ptx, StringRef json) {
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(json);
  if (!record) {
    llvm::consumeError(record.takeError());
    return false;
  }
  llvm::json::Value written = toJSON(*record);
  std::string text;
  llvm::raw_string_ostream(text) << written;
  if (!consume(parseLaunchRecord(text)))
    llvm::report_fatal_error("round trip: a launch record that was written "
                             "cannot be read");
  // A long launch is no error, and takes long.
  for (LaunchStep &step : record->steps)
    for (SizeExpr &extent : step.grid) {
      llvm::Expected<int64_t> value = extent.evaluate(
          [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
            return symbol.isStride ? 1 : 64;
          });
      if (!value)
        llvm::consumeError(value.takeError());
      else if (*value > 2)
        extent = SizeExpr(1);
    }
  sim::HarnessOptions options = makeHarnessOptions();
  options.verify =
      record->problem && record->problem->d < 300 && oneIn(16, json);
  for (const LaunchTensor &tensor : record->tensors) {
    uint64_t elements = 1;
    for (int64_t extent : tensor.shape)
      elements = llvm::SaturatingMultiply<uint64_t>(elements,
                                                    extent < 0 ? 64 : extent);
    if (elements > (1 << 20))
      options.verify = false;
  }
  return consume(verifyKernel(ptx.str(), *record, options));
}

/// What data.npz would hold: the contents of inputs, and results as f32.
static void addZeros(const sim::RecordedTensor &tensor,
                     llvm::StringMap<sim::NpyArray> &arrays) {
  uint64_t elements = 1;
  for (int64_t extent : tensor.shape)
    elements = llvm::SaturatingMultiply<uint64_t>(elements, extent);
  if (elements > (1 << 16))
    return;
  sim::NpyArray array;
  array.shape.assign(tensor.shape.begin(), tensor.shape.end());
  if (tensor.isInput || tensor.isUpdated)
    array.width = getByteWidth(tensor.dtype);
  array.data.assign(elements * array.width, 0);
  arrays[tensor.name] = std::move(array);
}

static bool runRecording(StringRef ptx, StringRef json) {
  llvm::Expected<sim::RecordedLaunch> launch = sim::parseRecordedLaunch(json);
  if (!launch) {
    llvm::consumeError(launch.takeError());
    return false;
  }
  for (const sim::RecordedTensor &tensor : launch->tensors)
    addZeros(tensor, launch->arrays);
  for (unsigned i = 0; i < 3; ++i)
    if (launch->grid[i] <= (1u << 20))
      launch->grid[i] = std::min(launch->grid[i], 2 * launch->cluster[i]);
  llvm::Expected<std::unique_ptr<sim::Program>> program =
      sim::parsePTX(ptx, "input.ptx");
  if (!program) {
    llvm::consumeError(program.takeError());
    return false;
  }
  return consume(sim::runRecorded(*launch, **program, makeHarnessOptions()));
}

bool Targets::runPlans(StringRef text) {
  llvm::Expected<PlanTable> table = PlanTable::parse(text, "plans.json");
  if (!table) {
    llvm::consumeError(table.takeError());
    return false;
  }
  MLIRContext &context = getContext();
  context.loadAllAvailableDialects();
  Silence silence(&context);
  for (const PlanTableEntry &entry : table->getEntries())
    (void)parseAttribute(entry.plan, &context);
  return true;
}

static bool runNpz(StringRef text) {
  int file = memfd_create("fuzz", 0);
  if (file < 0)
    llvm::report_fatal_error("expected a file in memory, got none");
  bool written = write(file, text.data(), text.size()) == ssize_t(text.size());
  bool read =
      written && consume(sim::readNpz("/proc/self/fd/" + std::to_string(file)));
  close(file);
  return read;
}

static bool runLint(ArrayRef<StringRef> parts) {
  SassInput input;
  input.ptx = parts[0].str();
  if (parts.size() > 1)
    input.log = parseAssemblerLog(parts[1]);
  if (parts.size() > 2)
    input.listing = parts[2].str();
  llvm::Expected<SassReport> report = lintSass(input);
  if (!report) {
    llvm::consumeError(report.takeError());
    return false;
  }
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  report->print(stream);
  stream << report->toJSON();
  return true;
}

bool Targets::run(StringRef target, StringRef text) {
  SmallVector<StringRef> parts;
  text.split(parts, kPartSeparator);
  StringRef second = parts.size() > 1 ? parts[1] : "";
  if (target == "ir")
    return runIR(text);
  if (target == "compile")
    return runCompile(parts[0], second);
  if (target == "flags")
    return runCompile(text, std::nullopt);
  if (target == "passes")
    return runPasses(parts[0], second);
  if (target == "ptx")
    return runPTX(text);
  if (target == "launch")
    return runLaunchRecord(parts[0], second);
  if (target == "recorded")
    return runRecording(parts[0], second);
  if (target == "plans")
    return runPlans(text);
  if (target == "budget")
    return consume(readBudget(second, parts[0].trim()));
  if (target == "bundle")
    return consume(readBundle(text));
  if (target == "npy")
    return consume(sim::parseNpy(
        ArrayRef(reinterpret_cast<const uint8_t *>(text.data()), text.size()),
        "input.npy"));
  if (target == "npz")
    return runNpz(text);
  assert(target == "sass" && "a target of getNames()");
  return runLint(parts);
}
