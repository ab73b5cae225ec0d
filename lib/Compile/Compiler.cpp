//===- Compiler.cpp - From a problem to any rung --------------------------===//

#include "attn/Compile/Compiler.h"
#include "WriteFile.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Dialect/Attn/Transforms/Pipelines.h"
#include "attn/InitAll.h"
#include "attn/Target/Assembler.h"
#include "attn/Target/PTX/Driver.h"
#include "attn/Target/PTX/Passes.h"
#include "mlir/Dialect/Bufferization/Transforms/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <chrono>

using namespace mlir;
using namespace mlir::attn;

void attn::registerCompileDialects(DialectRegistry &registry) {
  registerAllDialects(registry);
  registerPTXTranslations(registry);
}

namespace {

/// One compilation: the module on its way down, and what has come out so far.
class Compilation {
public:
  Compilation(ModuleOp module, const CompileOptions &options,
              TimingScope &timing, CompileResult &result)
      : module(module), options(options), timing(timing), result(result) {}

  LogicalResult run();

private:
  /// Finds the rung that the input is at, and whether it suits the options.
  LogicalResult findFirst();
  LogicalResult checkOptions();
  LogicalResult failTooLate(StringRef option);
  /// Whether what the options want of a kernel at the barrier rung is done.
  LogicalResult checkProofOptions();
  bool hasTensors();
  LogicalResult runStage(Rung rung);
  LogicalResult runPasses(Rung rung);
  FailureOr<std::string> getText(Rung rung);
  LogicalResult dump(Rung rung, StringRef text);

  std::string printModule();
  LogicalResult collectPlans();
  LogicalResult collectLaunches();
  FailureOr<gpu::GPUModuleOp> getKernelModule();
  FailureOr<std::string> printLLVM();
  FailureOr<std::string> emitPTX(std::string *llvmText = nullptr);
  FailureOr<std::string> assemble();

  ModuleOp module;
  const CompileOptions &options;
  TimingScope &timing;
  CompileResult &result;
  /// Where the input is. Passes behind it do not run.
  Rung first = Rung::Problem;
};

} // namespace

LogicalResult Compilation::findFirst() {
  FailureOr<Rung> found = findRung(module);
  if (failed(found))
    return failure();
  // A problem may have a plan already, which attn-plan checks.
  first = *found == Rung::Plan ? Rung::Problem : *found;
  if (options.last < first)
    return module.emitError("expected the last rung to be '")
           << stringifyRung(first) << "', at which the input is, or one after "
           << "it, got '" << stringifyRung(options.last) << "'";
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    setRung(kernels, first);
  return checkOptions();
}

LogicalResult Compilation::failTooLate(StringRef option) {
  return module.emitError("option '")
         << option << "' comes too late: the input is at rung '"
         << stringifyRung(first) << "'";
}

LogicalResult Compilation::checkProofOptions() {
  // The file of a skeleton may be one that check-ptx has made.
  for (auto [isGiven, option] :
       {std::pair(options.checkPTX.has_value(), "check-ptx"),
        std::pair(!options.skeleton.empty(), "skeleton"),
        std::pair(!options.witness.empty(), "witness"),
        std::pair(options.requireProof, "require-proof"),
        std::pair(options.instrument.has_value(), "instrument")})
    if (isGiven && first > Rung::Barrier)
      return failTooLate(option);
  for (auto [isGiven, option] :
       {std::pair(!options.skeleton.empty(), "skeleton"),
        std::pair(options.instrument.has_value(), "instrument")})
    if (isGiven && options.last < Rung::Thread)
      return module.emitError("option '")
             << option << "' needs rung 'thread', and rung '"
             << stringifyRung(options.last) << "' is the last one";
  return success();
}

LogicalResult Compilation::checkOptions() {
  if (failed(checkProofOptions()))
    return failure();
  if (first < Rung::Tile)
    return success();
  for (auto [isGiven, option] :
       {std::pair(!options.schedule.empty(), "schedule"),
        std::pair(!options.set.empty(), "set"),
        std::pair(!options.planTable.empty(), "plan-table"),
        std::pair(options.assembleCheck, "assemble-check"),
        std::pair(options.partials != "auto", "partials"),
        std::pair(options.printPlan || options.printAllPlans, "print-plan")})
    if (isGiven)
      return failTooLate(option);
  if (first > Rung::Tile && options.epilogue != "auto")
    return failTooLate("epilogue");
  if (options.chip.empty())
    return success();
  for (auto kernels : module.getOps<gpu::GPUModuleOp>()) {
    FailureOr<TargetAttr> target = getTarget(kernels);
    if (failed(target))
      return failure();
    if (target->getChip() != options.chip)
      return kernels.emitError("expected chip '")
             << target->getChip() << "', for which the kernels are, got '"
             << options.chip << "'";
  }
  return success();
}

LogicalResult Compilation::run() {
  if (failed(findFirst()))
    return failure();
  if (!options.dumpDir.empty())
    if (std::error_code code =
            llvm::sys::fs::create_directories(options.dumpDir))
      return module.emitError("cannot create folder '")
             << options.dumpDir << "': " << code.message();
  for (Rung rung : getRungs()) {
    if (rung < first)
      continue;
    // The record is a side way: it is printed where asked for, and dumped.
    if (rung == Rung::Launch && options.last != Rung::Launch &&
        options.dumpDir.empty())
      continue;
    auto start = std::chrono::steady_clock::now();
    if (failed(runStage(rung)))
      return failure();
    std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    result.times.push_back({stringifyRung(rung).str(), elapsed.count()});
    if (rung == options.last)
      return success();
  }
  return success();
}

LogicalResult Compilation::runStage(Rung rung) {
  if (rung != first && failed(runPasses(rung)))
    return failure();
  if (rung == Rung::Plan && failed(collectPlans()))
    return failure();
  if (rung == Rung::NVVM && failed(collectLaunches()))
    return failure();
  // Text costs time: print a rung only where somebody reads it. The PTX and
  // what comes after it are made by printing them.
  if (rung != options.last && options.dumpDir.empty() && rung != Rung::PTX)
    return success();
  TimingScope scope = timing.nest(("emit " + stringifyRung(rung)).str());
  FailureOr<std::string> text = getText(rung);
  if (failed(text) || failed(dump(rung, *text)))
    return failure();
  if (rung == options.last)
    result.output = std::move(*text);
  return success();
}

bool Compilation::hasTensors() {
  return module
      .walk([](Operation *op) {
        auto problem = dyn_cast<DestinationStyleOpInterface>(op);
        return problem && isa<AttentionOp, CombineOp>(op) &&
                       problem.hasPureTensorSemantics()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Turns problems on tensors into problems on memrefs. Functions get dense
/// buffers, since kernels need an innermost stride of 1.
static void addBufferization(OpPassManager &manager) {
  bufferization::OneShotBufferizePassOptions options;
  options.bufferizeFunctionBoundaries = true;
  options.functionBoundaryTypeConversion =
      bufferization::LayoutMapOption::IdentityLayoutMap;
  manager.addPass(bufferization::createOneShotBufferizePass(options));
}

LogicalResult Compilation::runPasses(Rung rung) {
  AttnPipelineOptions pipeline;
  pipeline.chip = options.getChip();
  pipeline.board = options.board;
  pipeline.schedule = options.schedule;
  pipeline.set = ArrayRef<std::string>(options.set);
  pipeline.planTable = options.planTable;
  pipeline.shippedPlans = options.shippedPlans;
  pipeline.readMasks = options.readMasks;
  pipeline.assembleCheck = options.assembleCheck;
  pipeline.splitKeys = options.splitKeys;
  pipeline.partials = options.partials;
  pipeline.epilogue = options.epilogue;
  pipeline.printPlans = options.printPlan;
  pipeline.printAllPlans = options.printAllPlans;
  pipeline.checkBarriers = options.checkBarriers;
  pipeline.requireProof = options.requireProof;
  pipeline.witness = options.witness;
  pipeline.skeleton = options.skeleton;

  PassManager manager(module->getContext(), module->getName().getStringRef());
  if (failed(applyPassManagerCLOptions(manager)))
    return failure();
  manager.enableVerifier(options.verifyEach);
  switch (rung) {
  case Rung::Plan:
    if (hasTensors())
      addBufferization(manager);
    addPlanPasses(manager, pipeline);
    break;
  case Rung::Tile:
    addTilePasses(manager, pipeline);
    break;
  case Rung::Barrier:
    addBarrierPasses(manager, pipeline);
    break;
  case Rung::Thread:
    addCheckPasses(manager, pipeline);
    if (options.instrument &&
        failed(addInstrumentPasses(
            manager, *options.instrument, [&](const Twine &message) {
              return module.emitError("--instrument: ") << message;
            })))
      return failure();
    addThreadPasses(manager, pipeline);
    break;
  case Rung::NVVM:
    addNVVMPasses(manager);
    break;
  case Rung::Problem:
  case Rung::Launch:
  case Rung::LLVM:
  case Rung::PTX:
  case Rung::Cubin:
    return success();
  }
  TimingScope scope = timing.nest(("passes to " + stringifyRung(rung)).str());
  manager.enableTiming(scope);
  if (failed(manager.run(module)))
    return failure();
  bool isLast = rung == Rung::NVVM || rung == options.last;
  return success(options.verifyEach || !isLast || succeeded(verify(module)));
}

FailureOr<std::string> Compilation::getText(Rung rung) {
  switch (rung) {
  case Rung::Problem:
  case Rung::Plan:
  case Rung::Tile:
  case Rung::Barrier:
  case Rung::Thread:
  case Rung::NVVM:
    return printModule();
  case Rung::Launch: {
    // Beside the other rungs the record is not what was asked for.
    if (result.launches.empty() && rung == options.last)
      return module.emitError("expected a kernel with '")
             << AttnDialect::kLaunchAttr << "', got none";
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (const LaunchRecord &launch : result.launches)
      stream << llvm::formatv("{0:2}\n", toJSON(launch));
    return text;
  }
  case Rung::LLVM:
    return printLLVM();
  case Rung::PTX:
    return emitPTX();
  case Rung::Cubin:
    return assemble();
  }
  llvm_unreachable("unknown rung");
}

LogicalResult Compilation::dump(Rung rung, StringRef text) {
  if (options.dumpDir.empty())
    return success();
  StringRef extension = llvm::StringSwitch<StringRef>(stringifyRung(rung))
                            .Case("launch", ".json")
                            .Case("llvm", ".ll")
                            .Case("ptx", ".ptx")
                            .Case("cubin", ".cubin")
                            .Default(".mlir");
  SmallString<128> path(options.dumpDir);
  llvm::sys::path::append(path, llvm::formatv("{0,0+2}-{1}{2}",
                                              static_cast<unsigned>(rung),
                                              stringifyRung(rung), extension)
                                    .str());
  return writeFile(module, path, text);
}

std::string Compilation::printModule() {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags());
  stream << "\n";
  return text;
}

LogicalResult Compilation::collectPlans() {
  module.walk([&](Operation *op) {
    auto plan = op->getAttrOfType<PlanAttrInterface>("plan");
    if (!isa<AttentionOp, CombineOp>(op) || !plan)
      return;
    std::string text;
    llvm::raw_string_ostream(text) << plan;
    result.plans.push_back(std::move(text));
  });
  return success();
}

LogicalResult Compilation::collectLaunches() {
  WalkResult walk = module.walk([&](gpu::GPUModuleOp kernels) {
    bool hasLaunch = llvm::any_of(*kernels.getBody(), [](Operation &op) {
      return op.hasAttr(AttnDialect::kLaunchAttr);
    });
    if (!hasLaunch)
      return WalkResult::advance();
    llvm::Expected<LaunchRecord> record = readLaunchSequence(kernels);
    if (!record) {
      kernels.emitError() << llvm::toString(record.takeError());
      return WalkResult::interrupt();
    }
    result.launches.push_back(std::move(*record));
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

FailureOr<gpu::GPUModuleOp> Compilation::getKernelModule() {
  auto modules = llvm::to_vector(module.getOps<gpu::GPUModuleOp>());
  if (modules.size() != 1)
    return module.emitError("expected one 'gpu.module' to translate, got ")
           << modules.size();
  return modules.front();
}

FailureOr<std::string> Compilation::printLLVM() {
  std::string text;
  // The LLVM IR is a by-product of the way to PTX.
  if (failed(emitPTX(&text)))
    return failure();
  return text;
}

FailureOr<std::string> Compilation::emitPTX(std::string *llvmText) {
  if (!result.ptx.empty())
    return result.ptx;
  FailureOr<gpu::GPUModuleOp> kernels = getKernelModule();
  if (failed(kernels))
    return failure();
  FailureOr<TargetAttr> target = getTarget(*kernels);
  if (failed(target))
    return failure();
  PTXOptions ptx;
  ptx.chip = target->getChip().str();
  ptx.ptx = target->getPTXVersion();
  ptx.debugLines = options.debugLines;
  ptx.llvmText = llvmText;
  FailureOr<std::string> text = translateToPTX(*kernels, ptx);
  if (succeeded(text))
    result.ptx = *text;
  return text;
}

FailureOr<std::string> Compilation::assemble() {
  FailureOr<gpu::GPUModuleOp> kernels = getKernelModule();
  if (failed(kernels))
    return failure();
  FailureOr<TargetAttr> target = getTarget(*kernels);
  if (failed(target))
    return failure();
  AssemblerOptions assembler;
  assembler.chip = target->getChip().str();
  llvm::Expected<AssemblerResult> assembled =
      assemblePTX(result.ptx, assembler);
  if (!assembled)
    return module.emitError(llvm::toString(assembled.takeError()));
  for (const AssemblerMessage &message : assembled->log.messages) {
    InFlightDiagnostic diag =
        message.severity == AssemblerMessage::Severity::Error
            ? module.emitError()
        : message.severity == AssemblerMessage::Severity::Info
            ? module.emitRemark()
            : module.emitWarning();
    diag << "ptxas: " << message.text;
    if (message.line)
      diag << " (line " << message.line << " of the PTX)";
  }
  if (assembled->log.hasErrors())
    return failure();
  return std::move(assembled->cubin);
}

LogicalResult attn::compile(ModuleOp module, const CompileOptions &options,
                            TimingScope &timing, CompileResult &result) {
  return Compilation(module, options, timing, result).run();
}
