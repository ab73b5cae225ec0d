//===- AssembleCheck.cpp - Plans that ptxas is asked about ----------------===//
//
// A candidate is compiled to PTX in a context of its own, so that nothing of it
// shows: neither diagnostics nor remarks. ptxas says whether it spills, and the
// machine code where; without nvdisasm any spill counts. The choice is then
// attn-plan's, told how many plans to leave out.
//
//===----------------------------------------------------------------------===//

#include "AssembleCheck.h"
#include "attn/Dialect/Attn/IR/AssembledAttr.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Lint/SassLint.h"
#include "attn/Planner/Facts/RegisterModel.h"
#include "attn/Target/Assembler.h"
#include "attn/Target/Disassembler.h"
#include "attn/Target/PTX/Passes.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

/// Plans that ptxas is asked about at most.
static constexpr unsigned kMostCandidates = 3;

namespace {

/// Says where attn-plan finds a candidate.
struct Place {
  /// With tables of measured plans, and how many of the others are left out.
  bool hasTables = true;
  unsigned skipped = 0;
};

/// Holds what ptxas makes of a candidate.
struct Candidate {
  Place place;
  std::string plan;
  /// True if no loop over blocks of keys spills, and why or why not.
  bool fits = true;
  std::string reason;
};

class AssembleCheckPass
    : public PassWrapper<AssembleCheckPass, OperationPass<ModuleOp>> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(AssembleCheckPass)

  explicit AssembleCheckPass(const AttnPipelineOptions &given)
      : options(std::make_shared<AttnPipelineOptions>()) {
    options->copyOptionValuesFrom(given);
    options->assembleCheck = false;
  }

  StringRef getArgument() const final { return "attn-assemble-check"; }
  StringRef getDescription() const final {
    return "Plan, and ask ptxas about plans before they are taken";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    OpPassManager plan(ModuleOp::getOperationName());
    addPlanPasses(plan, *options);
    plan.getDependentDialects(registry);
  }
  void runOnOperation() final;

private:
  /// Compiles the module with the plan of a place, and asks ptxas; nothing if
  /// it does not compile, which attn-plan and the passes after it explain.
  std::optional<Candidate> ask(StringRef module, const Place &place);
  /// Returns the candidates up to the first one that fits.
  std::vector<Candidate> askAll();
  void report(ArrayRef<Candidate> candidates, const Candidate &taken,
              StringRef version);

  std::shared_ptr<AttnPipelineOptions> options;
};

} // namespace

/// Returns the version in what ptxas says of its build, such as "13.0" of
/// "Build cuda_13.0.r13.0/compiler.36424714_0", or all of it.
static std::string getRelease(StringRef build) {
  StringRef release = build.split("cuda_").second.split(".r").first;
  return (release.empty() ? build : release).str();
}

/// Returns the plans of a module's attentions.
static std::string getPlans(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream os(text);
  module.walk([&](AttentionOp op) {
    os << (text.empty() ? "" : "; ") << op.getPlanAttr();
  });
  return text;
}

/// Counts the spill instructions of a kernel in loops over blocks of keys.
static llvm::Expected<unsigned> countLoopSpills(StringRef listing,
                                                StringRef kernel) {
  SassInput input;
  input.kernel = kernel.str();
  input.listing = listing.str();
  llvm::Expected<SassReport> report = lintSass(input);
  if (!report)
    return report.takeError();
  return report->countLoopSpills();
}

/// Judges one module's PTX: `candidate` fits no longer if it spills in a loop.
static void judge(StringRef ptx, StringRef chip, Candidate &candidate) {
  auto refuse = [&](const Twine &reason) {
    candidate.fits = false;
    candidate.reason = reason.str();
  };
  AssemblerOptions assembler;
  assembler.chip = chip.str();
  llvm::Expected<AssemblerResult> result = assemblePTX(ptx, assembler);
  if (!result)
    return refuse(llvm::toString(result.takeError()));
  for (const AssemblerMessage &message : result->log.messages)
    if (message.severity == AssemblerMessage::Severity::Error)
      return refuse("ptxas refuses it: " + message.text);
  unsigned bytes = 0, registers = 0;
  SmallVector<StringRef> spilling;
  for (const FunctionResources &function : result->log.functions) {
    registers = std::max(registers, function.registers);
    bytes += function.spillStoreBytes + function.spillLoadBytes;
    if (function.spillStoreBytes || function.spillLoadBytes ||
        function.stackBytes)
      spilling.push_back(function.name);
  }
  candidate.reason =
      llvm::formatv("{0} registers a thread, {1} bytes stored and loaded by "
                    "spills",
                    registers, bytes);
  if (spilling.empty())
    return;
  llvm::Expected<std::string> listing = disassemble(result->cubin, "");
  if (!listing) {
    llvm::consumeError(listing.takeError());
    return refuse(candidate.reason + ", and no machine code says where");
  }
  unsigned inLoops = 0;
  for (StringRef kernel : spilling) {
    llvm::Expected<unsigned> count = countLoopSpills(*listing, kernel);
    if (!count)
      return refuse(llvm::toString(count.takeError()));
    inLoops += *count;
  }
  if (inLoops != 0)
    return refuse(candidate.reason + ", " + Twine(inLoops) +
                  " spill instructions in loops over blocks of keys");
  candidate.reason += ", none of them in loops over blocks of keys";
}

std::optional<Candidate> AssembleCheckPass::ask(StringRef module,
                                                const Place &place) {
  // Dialects may not be loaded into the context that passes run in.
  MLIRContext context(getContext().getDialectRegistry(),
                      MLIRContext::Threading::DISABLED);
  ScopedDiagnosticHandler silence(&context,
                                  [](Diagnostic &) { return success(); });
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(module, &context);
  if (!parsed)
    return std::nullopt;
  AttnPipelineOptions own;
  own.copyOptionValuesFrom(*options);
  own.checkBarriers = own.requireProof = false;
  own.printPlans = own.printAllPlans = false;
  own.witness = own.skeleton = std::string();
  own.skipPlans = options->skipPlans + place.skipped;
  if (!place.hasTables) {
    own.planTable = std::string();
    own.shippedPlans = false;
  }
  PassManager plan(&context);
  addPlanPasses(plan, own);
  if (failed(plan.run(*parsed)))
    return std::nullopt;
  Candidate candidate;
  candidate.place = place;
  candidate.plan = getPlans(*parsed);
  PassManager rest(&context);
  addTilePasses(rest, own);
  addBarrierPasses(rest, own);
  addThreadPasses(rest, own);
  addNVVMPasses(rest);
  addPTXPasses(rest);
  if (failed(rest.run(*parsed)))
    return std::nullopt;
  for (auto kernels : parsed->getOps<gpu::GPUModuleOp>()) {
    auto ptx = kernels->getAttrOfType<StringAttr>("attn.ptx");
    FailureOr<TargetAttr> target = getTarget(kernels);
    if (ptx && succeeded(target) && candidate.fits)
      judge(ptx.getValue(), target->getChip(), candidate);
  }
  return candidate;
}

std::vector<Candidate> AssembleCheckPass::askAll() {
  std::string module;
  llvm::raw_string_ostream(module) << getOperation();
  // A table's plan is not among those that are left out.
  std::vector<Candidate> candidates;
  Place place;
  while (candidates.size() != kMostCandidates) {
    std::optional<Candidate> candidate = ask(module, place);
    // The last plan is never left out.
    bool isKnown = candidate && place.skipped != 0 &&
                   candidate->plan == candidates.back().plan;
    if (!candidate || isKnown)
      break;
    bool isOfTable = place.hasTables || candidates.empty() ||
                     candidate->plan != candidates.front().plan;
    if (isOfTable)
      candidates.push_back(*candidate);
    if (candidates.back().fits)
      break;
    if (place.hasTables)
      place.hasTables = false;
    else
      ++place.skipped;
  }
  return candidates;
}

void AssembleCheckPass::report(ArrayRef<Candidate> candidates,
                               const Candidate &taken, StringRef version) {
  ModuleOp module = getOperation();
  for (const Candidate &candidate : candidates)
    if (&candidate != &taken)
      module.emitRemark() << "ptxas " << version << " spills plan "
                          << candidate.plan << ": " << candidate.reason;
  if (!taken.fits)
    module.emitRemark() << "ptxas " << version << " spills all of "
                        << candidates.size() << " plans; the first one is "
                        << "taken, " << taken.plan << ": " << taken.reason;
  else if (candidates.size() > 1)
    module.emitRemark() << "plan " << taken.plan
                        << " is taken: " << taken.reason;
  remark::passed(
      module.getLoc(),
      remark::RemarkOpts::name("assembled").category("attn.assemble"))
      << remark::add("plan {0}: {1}", taken.plan, taken.reason)
      << remark::metric("skipped", &taken - candidates.data())
      << remark::metric("ptxas", version);
}

void AssembleCheckPass::runOnOperation() {
  ModuleOp module = getOperation();
  llvm::Expected<std::string> build = getPtxasVersion();
  if (!build) {
    module.emitError("assemble-check: ") << llvm::toString(build.takeError());
    return signalPassFailure();
  }
  std::string version = getRelease(*build);
  StringRef known = RegisterModel::getUsed().getVersion();
  if (version != known)
    module.emitRemark() << "ptxas " << version
                        << " is asked; the planner's data on registers and "
                           "spills is of ptxas "
                        << known;
  std::vector<Candidate> candidates = askAll();
  // Where none fits, the fastest is as good as any; where none compiles,
  // attn-plan says why.
  const Candidate *taken = nullptr;
  if (!candidates.empty())
    taken = candidates.back().fits ? &candidates.back() : &candidates.front();
  AttnPipelineOptions own;
  own.copyOptionValuesFrom(*options);
  if (taken) {
    report(candidates, *taken, version);
    own.skipPlans = options->skipPlans + taken->place.skipped;
    if (!taken->place.hasTables) {
      own.planTable = std::string();
      own.shippedPlans = false;
    }
    AssembledPlan assembled{version, taken - candidates.data()};
    module->setAttr(kAssembledAttr, getAssembledAttr(&getContext(), assembled));
  }
  OpPassManager plan(ModuleOp::getOperationName());
  addPlanPasses(plan, own);
  if (failed(runPipeline(plan, module)))
    signalPassFailure();
}

std::unique_ptr<Pass>
attn::createAssembleCheckPass(const AttnPipelineOptions &options) {
  return std::make_unique<AssembleCheckPass>(options);
}
