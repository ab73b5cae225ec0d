//===- CandidateFolder.cpp - Kernels to choose from by timing -------------===//

#include "attn/Compile/CandidateFolder.h"
#include "WriteFile.h"
#include "attn/Compile/Bundle.h"
#include "attn/Compile/CheckPTX.h"
#include "attn/Compile/Verify.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Pipelines.h"
#include "attn/Planner/Choice/PlanCandidates.h"
#include "attn/Planner/Choice/PlanTable.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/ScopedPrinter.h"
#include <chrono>

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Writes the candidates of one attention.
class CandidateWriter {
public:
  CandidateWriter(ModuleOp module, const CompileOptions &options,
                  StringRef folder, TimingScope &timing, ProgressFn progress)
      : module(module), options(options), folder(folder), timing(timing),
        meter(std::move(progress)) {}

  LogicalResult run(unsigned count);

private:
  /// The attention of a clone of the module that attn-plan has gone through.
  FailureOr<AttentionOp> plan();
  FailureOr<SmallVector<PlanCandidate>> choose(AttentionOp op, unsigned count);
  LogicalResult write(AttentionOp op, const PlanCandidate &candidate);
  /// Takes a candidate to the barrier rung. Whether its synchronisation is
  /// right; a remark says if not.
  bool check(ModuleOp candidate, const CompileOptions &whole, StringRef plan,
             StringRef skeleton);
  /// Whether the PTX of a candidate does what is proved; a remark says if not.
  bool checkPTX(const CompileResult &result, const PTXCheck &held,
                StringRef plan);
  void reportChecks();
  LogicalResult writeText(const llvm::Twine &name, StringRef text);

  ModuleOp module;
  const CompileOptions &options;
  StringRef folder;
  TimingScope &timing;
  ProgressMeter meter;
  OwningOpRef<ModuleOp> planned;
  llvm::json::Array entries;
  unsigned checks = 0;
  std::chrono::duration<double, std::milli> checkTime{0};
};

} // namespace

LogicalResult CandidateWriter::writeText(const llvm::Twine &name,
                                         StringRef text) {
  SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  return writeFile(module, path, text);
}

FailureOr<AttentionOp> CandidateWriter::plan() {
  planned = module.clone();
  CompileOptions stop = options;
  stop.last = Rung::Plan;
  stop.dumpDir.clear();
  // Tables of measured plans have problems that are not split.
  stop.splitKeys = false;
  CompileResult result;
  if (failed(compile(*planned, stop, timing, result)))
    return failure();
  SmallVector<AttentionOp> attentions;
  planned->walk([&](AttentionOp op) { attentions.push_back(op); });
  if (attentions.size() != 1)
    return module.emitError("expected one 'attn.attention' to tune, got ")
           << attentions.size();
  return attentions.front();
}

/// Plans whose variants are candidates too.
static constexpr size_t kVariedPlans = 2;

/// The best plans with choices that the cost model does not tell apart, where
/// their schedule has these.
static SmallVector<PlanAttrInterface>
makeVariants(AttentionOp op, const ProblemFacts &facts, const TargetRow &target,
             ArrayRef<PlanCandidate> chosen) {
  // Versions of ptxas know this word in a kernel's name, and schedule the
  // kernel otherwise.
  std::string name = ("cutlass_" + op.getKernelName()).str();
  const PlanParameter choices[] = {{"dynamic", "true"},
                                   {"epilogue", "tma"},
                                   {"pair", "true"},
                                   {"kernel", name}};
  ScopedDiagnosticHandler silence(op.getContext(),
                                  [](Diagnostic &) { return success(); });
  SmallVector<PlanAttrInterface> variants;
  for (const PlanCandidate &base : chosen.take_front(kVariedPlans))
    for (PlanParameter choice : choices) {
      // A name that was asked for stays.
      if (choice.name == "kernel" && !base.plan.getKernelName().empty())
        continue;
      FailureOr<PlanAttrInterface> changed = base.schedule->setParameters(
          [&] { return op.emitOpError(); }, base.plan, choice);
      if (failed(changed))
        continue;
      if (llvm::Error error = base.schedule->isLegal(facts, *changed, target))
        llvm::consumeError(std::move(error));
      else
        variants.push_back(*changed);
    }
  return variants;
}

FailureOr<SmallVector<PlanCandidate>> CandidateWriter::choose(AttentionOp op,
                                                              unsigned count) {
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  // attn-plan has accepted chip, schedule and parameters.
  TargetRow target =
      llvm::cantFail(lookupTarget(options.getChip(), options.board));
  SmallVector<const Schedule *> schedules(getSchedules());
  if (!options.schedule.empty())
    schedules = {&llvm::cantFail(lookupSchedule(options.schedule))};
  SmallVector<PlanParameter> parameters;
  for (const std::string &text : options.set) {
    auto [name, value] = StringRef(text).split('=');
    parameters.push_back({name, value});
  }
  PlanCandidates candidates =
      collectCandidates(*facts, target, schedules, parameters);
  if (candidates.plans.empty())
    completeCandidates(*facts, target, parameters, candidates);
  SmallVector<PlanCandidate> chosen;
  auto has = [&](auto predicate) { return llvm::any_of(chosen, predicate); };
  for (PlanCandidate &each : candidates.plans) {
    bool isFirst = !has([&](const PlanCandidate &other) {
      return other.schedule == each.schedule;
    });
    if (chosen.size() < count || isFirst)
      chosen.push_back(std::move(each));
  }
  auto add = [&](PlanAttrInterface plan) {
    if (!has([&](const PlanCandidate &other) { return other.plan == plan; }))
      chosen.push_back(makeCandidate(
          *facts, target, llvm::cantFail(lookupSchedule(plan.getSchedule())),
          plan));
  };
  for (PlanAttrInterface variant : makeVariants(op, *facts, target, chosen))
    add(variant);
  add(op.getPlanAttr());
  return chosen;
}

bool CandidateWriter::check(ModuleOp candidate, const CompileOptions &whole,
                            StringRef plan, StringRef skeleton) {
  CompileOptions half = whole;
  half.last = Rung::Barrier;
  AttnPipelineOptions pipeline;
  pipeline.skeleton = skeleton.str();
  pipeline.requireProof = options.requireProof;
  PassManager manager(candidate->getContext(),
                      candidate->getName().getStringRef());
  addCheckPasses(manager, pipeline);
  std::string reason;
  // What is wrong with one candidate is no error of the whole.
  ScopedDiagnosticHandler handler(
      candidate.getContext(), [&](Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() != DiagnosticSeverity::Error)
          return failure();
        reason = diagnostic.str();
        return success();
      });
  CompileResult unchecked;
  // Channels are checked on the way to the barrier rung.
  bool isRight = succeeded(compile(candidate, half, timing, unchecked));
  auto start = std::chrono::steady_clock::now();
  isRight = isRight && succeeded(manager.run(candidate));
  checkTime += std::chrono::steady_clock::now() - start;
  ++checks;
  if (!isRight)
    module.emitRemark("candidate ") << plan << " is dropped: " << reason;
  return isRight;
}

bool CandidateWriter::checkPTX(const CompileResult &result,
                               const PTXCheck &held, StringRef plan) {
  auto drop = [&](llvm::Error error) {
    module.emitRemark("candidate ")
        << plan << " is dropped: " << llvm::toString(std::move(error));
    return false;
  };
  llvm::Expected<Modifications> modifications = Modifications::get(module);
  if (!modifications)
    return drop(modifications.takeError());
  sim::HarnessOptions harness;
  modifications->apply(harness);
  auto start = std::chrono::steady_clock::now();
  llvm::Expected<std::string> said =
      held.run(result.ptx, result.launches.front(), harness, *options.checkPTX);
  checkTime += std::chrono::steady_clock::now() - start;
  return said ? true : drop(said.takeError());
}

void CandidateWriter::reportChecks() {
  if (checks == 0)
    return;
  remark::analysis(module.getLoc(),
                   remark::RemarkOpts::name("checks").category("attn.autotune"))
      << remark::add("synchronisation of the candidates is checked")
      << remark::metric("candidates", checks)
      << remark::metric("dropped", checks - unsigned(entries.size()))
      << remark::metric("milliseconds",
                        llvm::formatv("{0:f1}", checkTime.count()).str());
}

LogicalResult CandidateWriter::write(AttentionOp op,
                                     const PlanCandidate &candidate) {
  op.setPlanAttr(candidate.plan);
  OwningOpRef<ModuleOp> copy = planned->clone();
  CompileOptions whole = options;
  whole.last = Rung::PTX;
  whole.dumpDir.clear();
  whole.printPlan = whole.printAllPlans = false;
  // All of it is in the plan.
  whole.schedule.clear();
  whole.set.clear();
  std::string plan = llvm::to_string(candidate.plan);
  std::optional<PTXCheck> held;
  if (options.checkPTX) {
    llvm::Expected<PTXCheck> made = PTXCheck::create("");
    if (!made)
      return module.emitError(llvm::toString(made.takeError()));
    held.emplace(std::move(*made));
  }
  if (options.checkBarriers) {
    if (!check(*copy, whole, plan, held ? held->getPath() : ""))
      return success();
    whole.checkBarriers = whole.requireProof = false;
    // What comes too late behind that.
    whole.planTable.clear();
    whole.epilogue = CompileOptions().epilogue;
  }
  CompileResult result;
  if (failed(compile(*copy, whole, timing, result)))
    return failure();
  if (held && !checkPTX(result, *held, plan))
    return success();
  llvm::Expected<Bundle> bundle = makeBundle(result, {});
  if (!bundle)
    return module.emitError(llvm::toString(bundle.takeError()));
  // The PTX is beside the bundle, which is carried to other machines.
  if (bundle->images.size() > 1)
    bundle->images.pop_back();
  std::string name = llvm::formatv("{0,0+2}", entries.size());
  entries.push_back(
      llvm::json::Object{{"name", name},
                         {"plan", std::move(plan)},
                         {"estimate_us", candidate.estimate.microseconds},
                         {"expected_to_spill", candidate.spills}});
  return success(
      succeeded(writeText(name + ".ptx", result.ptx)) &&
      succeeded(writeText(
          name + ".json",
          llvm::formatv("{0:2}\n", toJSON(result.launches.front())).str())) &&
      succeeded(writeText(name + ".attn", writeBundle(*bundle))));
}

LogicalResult CandidateWriter::run(unsigned count) {
  FailureOr<AttentionOp> op = plan();
  if (failed(op))
    return failure();
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return module.emitError("cannot create folder '")
           << folder << "': " << code.message();
  std::string plannedText = llvm::to_string(op->getPlanAttr());
  FailureOr<SmallVector<PlanCandidate>> chosen = choose(*op, count);
  if (failed(chosen))
    return failure();
  FailureOr<ProblemFacts> facts = ProblemFacts::get(*op);
  if (failed(facts))
    return failure();
  llvm::json::Object problem = describeProblem(*facts);
  meter.begin("candidates");
  size_t done = 0;
  for (const PlanCandidate &candidate : *chosen) {
    if (failed(write(*op, candidate)))
      return failure();
    if (!meter.update(double(++done) / chosen->size()))
      return module.emitError(llvm::toString(meter.takeError()));
  }
  reportChecks();
  if (entries.empty())
    return module.emitError("expected a candidate whose synchronisation is "
                            "right, got none");
  llvm::json::Value index = llvm::json::Object{
      {"version", 1},
      {"chip", options.getChip()},
      {"problem", std::move(problem)},
      {"planned", plannedText},
      {"candidates", std::move(entries)},
  };
  return writeText("index.json", llvm::formatv("{0:2}\n", index).str());
}

LogicalResult attn::writeCandidates(ModuleOp module,
                                    const CompileOptions &options,
                                    unsigned count, StringRef folder,
                                    TimingScope &timing, ProgressFn progress) {
  return CandidateWriter(module, options, folder, timing, std::move(progress))
      .run(count);
}

llvm::Expected<std::string> attn::listParameters(StringRef schedule) {
  DialectRegistry registry;
  registerCompileDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  context.loadDialect<AttnDialect>();
  return listParameters(schedule, &context);
}
