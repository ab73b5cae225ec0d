//===- attn-compile.cpp - From an attention problem to a kernel -----------===//
//
//   attn-compile problem.mlir --chip=sm_90a -o kernel.ptx
//   attn-compile --q=4x32x4096x128xf16 --kv-heads=8 --causal --verify
//
// The exit status is 0 when everything asked for was done and, with --verify,
// the kernel is right; else 1, with the reason on standard error.
//
//===----------------------------------------------------------------------===//

#include "EnableRemarks.h"
#include "PlanFlags.h"
#include "ProblemOptions.h"
#include "RunOptions.h"
#include "Tool/Commands.h"
#include "Tool/Tool.h"
#include "attn/Compile/Bundle.h"
#include "attn/Compile/CandidateFolder.h"
#include "attn/Compile/CheckPTX.h"
#include "attn/Compile/Compiler.h"
#include "attn/Compile/Problem.h"
#include "attn/Compile/ScheduleList.h"
#include "attn/Compile/Verify.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/ProofAttr.h"
#include "attn/Dialect/Attn/IR/TextCheck.h"
#include "attn/Support/Files.h"
#include "attn/Support/ProgressBar.h"
#include "attn/Target/PTX/FatalErrors.h"
#include "attn/Target/TargetTable.h"
#include "attn/Target/ToolMain.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/WithColor.h"

using namespace mlir;
using namespace mlir::attn;
namespace cl = llvm::cl;

//===----------------------------------------------------------------------===//
// Flags
//===----------------------------------------------------------------------===//

static cl::OptionCategory problemCategory("The problem, without <input>");
static cl::OptionCategory &compileCategory = getCompileCategory();
static cl::OptionCategory outputCategory("Output");
static cl::OptionCategory verifyCategory("Verification");

static cl::opt<std::string> inputPath(cl::Positional, cl::init(""),
                                      cl::desc("<input.mlir, - for stdin>"),
                                      cl::cat(compileCategory));

static ProblemOptions problemOptions(problemCategory);

static cl::opt<std::string>
    flagChip("chip", cl::init("sm_80"),
             cl::desc("Target (default: that of the kernels in "
                      "<input>, else sm_80)"),
             cl::cat(compileCategory));
static cl::opt<std::string>
    flagBoard("board", cl::value_desc("name"),
              cl::desc("Board to plan for, or native (default: the chip's "
                       "first one)"),
              cl::cat(compileCategory));
static cl::opt<std::string>
    flagSchedule("schedule", cl::value_desc("name"),
                 cl::desc("Take this schedule instead of choosing one"),
                 cl::cat(compileCategory));
static cl::list<std::string>
    flagSet("set", cl::value_desc("name=value"), cl::CommaSeparated,
            cl::desc("Fix a parameter of the plan; may be repeated"),
            cl::cat(compileCategory));
static cl::opt<std::string> flagPlanTable(
    "plan-table", cl::value_desc("file"),
    cl::desc("Measured plans, which are taken for their problems"),
    cl::cat(compileCategory));
static cl::opt<bool> flagNoShippedPlans(
    "no-shipped-plans",
    cl::desc("Do not take the compiler's own measured plans"),
    cl::cat(compileCategory));
static cl::opt<bool> flagNoReadMasks(
    "no-read-masks",
    cl::desc("Leave conditions of mask_mod to mask_mod, and blocks to mask"),
    cl::cat(compileCategory));
static cl::opt<bool> flagNoSplitKeys(
    "no-split-keys",
    cl::desc("Leave keys in one run, even where runs are faster"),
    cl::cat(compileCategory));
static cl::opt<std::string> flagPartials(
    "partials", cl::init("auto"), cl::value_desc("auto|f32|f16|bf16"),
    cl::desc("Element type of the results of runs that the launch merges"),
    cl::cat(compileCategory));
static cl::opt<std::string> flagEpilogue(
    "epilogue", cl::init("auto"), cl::value_desc("direct|shuffled|staged|tma"),
    cl::desc("How results leave the kernel"), cl::cat(compileCategory));

static cl::opt<std::string>
    flagEmit("emit", cl::value_desc("rung"),
             cl::desc("problem, plan, tile, barrier, thread, nvvm, launch, "
                      "llvm, ptx (default) or cubin"),
             cl::cat(outputCategory));
static cl::opt<std::string> outputPath("o", cl::value_desc("file"),
                                       cl::desc("Where the output goes"),
                                       cl::cat(outputCategory));
static cl::opt<std::string>
    launchPath("launch-out", cl::value_desc("file"),
               cl::desc("Also write the launch record to this file"),
               cl::cat(outputCategory));
static cl::opt<std::string>
    bundlePath("bundle", cl::value_desc("file"),
               cl::desc("Also write launch record, cubins and PTX to this one "
                        "file, which attn.runtime launches"),
               cl::cat(outputCategory));
static cl::list<std::string>
    flagBundleChips("bundle-chips", cl::value_desc("chip"), cl::CommaSeparated,
                    cl::desc("The cubins of the bundle (default: one for "
                             "--chip where ptxas is found)"),
                    cl::cat(outputCategory));
static cl::opt<unsigned>
    flagAutotune("autotune", cl::value_desc("N"), cl::init(0),
                 cl::desc("Write the kernels of the N plans that are expected "
                          "to be fastest, for python -m attn.autotune"),
                 cl::cat(outputCategory));
static cl::opt<std::string>
    flagAutotuneDir("autotune-dir", cl::value_desc("folder"),
                    cl::desc("Where the kernels of --autotune go"),
                    cl::cat(outputCategory));
static cl::opt<std::string>
    flagDumpDir("dump-dir", cl::value_desc("folder"),
                cl::desc("Write each rung to a numbered file there"),
                cl::cat(outputCategory));
static cl::opt<std::string>
    flagPrintPlan("print-plan", cl::ValueOptional, cl::value_desc("all"),
                  cl::desc("Print the plan and the ten best candidates it was "
                           "chosen from, or all with their sums of memory and "
                           "registers"),
                  cl::cat(outputCategory));
static cl::opt<std::string> flagListParameters(
    "list-parameters", cl::ValueOptional, cl::value_desc("schedule"),
    cl::desc("List what --set knows, of one schedule or of all, and end"),
    cl::cat(outputCategory));
static cl::opt<bool>
    flagListOptions("list-options",
                    cl::desc("List the options of a problem as JSON, and end"),
                    cl::cat(outputCategory));
static cl::opt<bool> flagListSchedules(
    "list-schedules",
    cl::desc("List as JSON which schedules take the problem, and end"),
    cl::cat(outputCategory));
static cl::opt<bool> flagDebugLines("debug-lines",
                                    cl::desc("Print .loc lines into the PTX"),
                                    cl::cat(outputCategory));
static cl::opt<bool> flagVerifyEach("verify-each",
                                    cl::desc("Verify the IR after each pass, "
                                             "not only before the first and "
                                             "after the last one"),
                                    cl::cat(outputCategory));
static cl::opt<bool>
    flagNoCheckBarriers("no-check-barriers",
                        cl::desc("Do not check on the way to PTX that "
                                 "synchronisation is right"),
                        cl::cat(outputCategory));
static cl::opt<bool>
    flagRequireProof("require-proof",
                     cl::desc("Make it an error if that check ends without "
                              "a proof"),
                     cl::cat(outputCategory));
static cl::opt<std::string>
    flagWitness("witness", cl::value_desc("file.json"),
                cl::desc("Write what that check finds wrong to a file, with an "
                         "order of warps that attn-sim --replay runs"),
                cl::cat(outputCategory));
static cl::opt<std::string>
    flagSkeleton("skeleton", cl::value_desc("file.json"),
                 cl::desc("Write what each warp of the proved kernel does to a "
                          "file, which attn-sim --skeleton holds the PTX "
                          "against"),
                 cl::cat(outputCategory));
static cl::opt<std::string> flagInstrument(
    "instrument", cl::ValueOptional, cl::value_desc("options"),
    cl::desc("Let the kernel check its synchronisation as it runs; options of "
             "attn-instrument such as timeout-us=1000,delay-ns=500"),
    cl::cat(outputCategory));
static cl::opt<std::string>
    flagRemarksFilter("remarks-filter", cl::value_desc("regular expression"),
                      cl::desc("Print the remarks of these categories, such as "
                               "attn.*"),
                      cl::cat(outputCategory));
static cl::opt<bool> flagTiming("timing",
                                cl::desc("Print how long each pass and each "
                                         "stage took"),
                                cl::cat(outputCategory));
static cl::opt<bool> flagJSON("json",
                              cl::desc("Print plan, times and the result of "
                                       "--verify as JSON"),
                              cl::cat(outputCategory));

static RunOptions runOptions(verifyCategory);

//===----------------------------------------------------------------------===//
// Reading the flags
//===----------------------------------------------------------------------===//

template <typename T>
static std::optional<T> given(const cl::opt<T> &flag) {
  if (flag.getNumOccurrences() == 0)
    return std::nullopt;
  return flag.getValue();
}

/// Checks which flags may stand together.
static llvm::Error checkFlags(const ProblemFlags &problem) {
  std::string first = problem.getFirstGiven();
  if (!inputPath.empty() && !first.empty())
    return llvm::createStringError("--" + first +
                                   " describes a problem, but the problem "
                                   "comes from '" +
                                   inputPath + "'");
  if (inputPath.empty() && first.empty())
    return llvm::createStringError(
        "expected an input file or --q, got neither");
  if (llvm::Error error = problemOptions.check())
    return error;
  if (llvm::Error error = checkFilesDiffer({{"-o", outputPath},
                                            {"--launch-out", launchPath},
                                            {"--bundle", bundlePath},
                                            {"--witness", flagWitness},
                                            {"--skeleton", flagSkeleton}}))
    return error;
  if (flagJSON && given(flagEmit) && outputPath.empty())
    return llvm::createStringError("--emit and --json both write to standard "
                                   "output; give a file with -o");
  if (!flagBundleChips.empty() && bundlePath.empty())
    return llvm::createStringError("--bundle-chips needs --bundle");
  if ((flagAutotune == 0) != flagAutotuneDir.empty())
    return llvm::createStringError(
        "--autotune and --autotune-dir need each other");
  if (flagAutotune != 0)
    for (auto [isGiven, name] :
         {std::pair(runOptions.verify.isGiven(), "verify"),
          std::pair(!bundlePath.empty(), "bundle"),
          std::pair(!launchPath.empty(), "launch-out"),
          std::pair(!flagDumpDir.empty(), "dump-dir"),
          std::pair(!flagWitness.empty(), "witness"),
          std::pair(!flagSkeleton.empty(), "skeleton"),
          std::pair(given(flagInstrument).has_value(), "instrument"),
          std::pair(!outputPath.empty(), "o"),
          std::pair(given(flagEmit).has_value(), "emit")})
      if (isGiven)
        return llvm::createStringError("--%s is for one kernel, and --autotune "
                                       "writes many",
                                       name);
  if (llvm::Error error = runOptions.check(flagAutotune != 0))
    return error;
  if (given(flagInstrument))
    for (auto [isGiven, name] :
         {std::pair(!flagSkeleton.empty(), "skeleton"),
          std::pair(runOptions.getCheckPTX().has_value(), "check-ptx")})
      if (isGiven)
        return llvm::createStringError("--instrument and --%s exclude each "
                                       "other: what is put in is not proved",
                                       name);
  if (runOptions.getCheckPTX() && flagNoCheckBarriers)
    return llvm::createStringError(
        "--check-ptx and --no-check-barriers exclude each other");
  return llvm::Error::success();
}

static llvm::Expected<CompileOptions> getCompileOptions() {
  CompileOptions options;
  llvm::Expected<TargetRow> target = lookupTarget(flagChip, flagBoard);
  if (!target)
    return target.takeError();
  if (given(flagChip))
    options.chip = flagChip;
  options.board = flagBoard;
  options.schedule = flagSchedule;
  options.set = std::vector<std::string>(flagSet.begin(), flagSet.end());
  options.planTable = flagPlanTable;
  if (llvm::Error error = readPlanFlags(options))
    return std::move(error);
  options.shippedPlans = !flagNoShippedPlans;
  options.readMasks = !flagNoReadMasks;
  options.splitKeys = !flagNoSplitKeys;
  options.partials = flagPartials;
  options.epilogue = flagEpilogue;
  if (std::optional<std::string> plans = given(flagPrintPlan)) {
    if (!plans->empty() && *plans != "all")
      return llvm::createStringError("--print-plan: expected all or no value, "
                                     "got '" +
                                     *plans + "'");
    options.printPlan = plans->empty();
    options.printAllPlans = !plans->empty();
  }
  options.checkBarriers = !flagNoCheckBarriers;
  options.requireProof = flagRequireProof;
  options.witness = flagWitness;
  options.skeleton = flagSkeleton;
  options.instrument = given(flagInstrument);
  options.checkPTX = runOptions.getCheckPTX();
  options.debugLines = flagDebugLines;
  options.dumpDir = flagDumpDir;
  options.verifyEach = flagVerifyEach;
  if (std::optional<std::string> name = given(flagEmit)) {
    llvm::Expected<Rung> rung = parseRung(*name);
    if (!rung)
      return llvm::createStringError("--emit: " +
                                     llvm::toString(rung.takeError()));
    options.last = *rung;
  }
  if (options.last == Rung::Cubin &&
      (outputPath.empty() || outputPath == "-") &&
      llvm::sys::Process::StandardOutIsDisplayed())
    return llvm::createStringError(
        "--emit=cubin writes bytes, expected a file with -o, got a terminal");
  if (flagNoCheckBarriers && flagRequireProof)
    return llvm::createStringError(
        "--require-proof and --no-check-barriers exclude each other");
  if (flagNoCheckBarriers && !flagWitness.empty())
    return llvm::createStringError(
        "--witness and --no-check-barriers exclude each other");
  if (flagNoCheckBarriers && !flagSkeleton.empty())
    return llvm::createStringError(
        "--skeleton and --no-check-barriers exclude each other");
  for (auto [isGiven, name] :
       {std::pair(runOptions.verify.isGiven(), "verify"),
        std::pair(runOptions.getCheckPTX().has_value(), "check-ptx")})
    if (isGiven && options.last < Rung::PTX)
      return llvm::createStringError(
          "--" + Twine(name) + " needs PTX, and --emit=" +
          stringifyRung(options.last) + " stops before it");
  if (!bundlePath.empty() && options.last < Rung::PTX)
    return llvm::createStringError(
        "--bundle needs PTX, and --emit=" + stringifyRung(options.last) +
        " stops before it");
  if (!launchPath.empty() && options.last < Rung::NVVM)
    return llvm::createStringError(
        "--launch-out needs a complete launch record, and --emit=" +
        stringifyRung(options.last) + " stops before it");
  return options;
}

//===----------------------------------------------------------------------===//
// The work
//===----------------------------------------------------------------------===//

static LogicalResult fail(llvm::Error error) {
  llvm::WithColor::error(llvm::errs(), "attn-compile")
      << llvm::toString(std::move(error)) << "\n";
  return failure();
}

/// Reads the input file into `sources` and parses it.
static OwningOpRef<ModuleOp> parseInput(MLIRContext &context,
                                        llvm::SourceMgr &sources) {
  llvm::Expected<std::string> text = readFile(inputPath);
  if (!text) {
    (void)fail(text.takeError());
    return nullptr;
  }
  StringRef name = inputPath == "-" ? "<stdin>" : StringRef(inputPath);
  if (std::optional<TextProblem> problem = findTextProblem(*text)) {
    emitError(
        FileLineColLoc::get(&context, name, problem->line, problem->column))
        << problem->message;
    return nullptr;
  }
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(*text, name),
                             llvm::SMLoc());
  return parseSourceFile<ModuleOp>(sources, &context);
}

static LogicalResult writeFile(StringRef path, StringRef text) {
  llvm::Error error = writeOutput(path, text);
  return error ? fail(std::move(error)) : success();
}

/// Prints plan, times and report as one JSON object.
static void printJSON(const CompileResult &result,
                      const sim::HarnessReport *report) {
  llvm::json::Object object;
  if (report)
    object = std::move(*report->toJSON().getAsObject());
  llvm::json::Object times;
  for (const StageTime &time : result.times)
    times[time.name] = time.milliseconds;
  object["milliseconds"] = std::move(times);
  object["plan"] = llvm::json::Array(result.plans);
  llvm::outs() << llvm::formatv("{0:2}\n",
                                llvm::json::Value(std::move(object)));
}

/// Writes what was asked for.
static LogicalResult writeOutputs(const CompileResult &result) {
  if (!launchPath.empty() && result.launches.size() != 1)
    return fail(llvm::createStringError(
        "--launch-out: expected one kernel with '" + AttnDialect::kLaunchAttr +
        "', got " + Twine(result.launches.size())));
  if (given(flagPrintPlan))
    for (const std::string &plan : result.plans)
      llvm::errs() << "plan: " << plan << "\n";
  if (!launchPath.empty()) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (const LaunchRecord &launch : result.launches)
      stream << llvm::formatv("{0:2}\n", toJSON(launch));
    if (failed(writeFile(launchPath, text)))
      return failure();
  }
  if (!bundlePath.empty()) {
    std::vector<std::string> chips(flagBundleChips.begin(),
                                   flagBundleChips.end());
    std::string whyNoCubin;
    llvm::Expected<Bundle> bundle = makeBundle(result, chips, &whyNoCubin);
    if (!bundle)
      return fail(bundle.takeError());
    if (!whyNoCubin.empty())
      llvm::WithColor::warning(llvm::errs(), "attn-compile")
          << "the bundle has PTX and no cubin: " << whyNoCubin << "\n";
    if (failed(writeFile(bundlePath, writeBundle(*bundle))))
      return failure();
  }
  // A report or a bundle takes the place of the output unless both were asked
  // for.
  bool wantsOutput = given(flagEmit) || !outputPath.empty() ||
                     !(runOptions.verify.isGiven() || flagJSON ||
                       given(flagPrintPlan) || !bundlePath.empty());
  if (wantsOutput)
    return writeFile(outputPath.empty() ? "-" : outputPath.getValue(),
                     result.output);
  return success();
}

/// Runs the kernel on the simulator, before it is written where it is held
/// against the proof.
static LogicalResult runKernel(const CompileResult &result,
                               sim::HarnessOptions &options,
                               Modifications &modifications,
                               const std::optional<Problem> &problem,
                               const std::optional<PTXCheck> &check) {
  if (!check && failed(writeOutputs(result)))
    return failure();
  if (result.launches.size() != 1)
    return fail(llvm::createStringError(
        "expected one kernel with a launch record to run, got " +
        Twine(result.launches.size())));
  modifications.apply(options);
  if (problem)
    applyProblem(*problem, options);
  ProgressBar bar(llvm::errs(), "attn-compile", llvm::errs().is_displayed());
  options.progress = bar.getFunction();
  if (check) {
    llvm::Expected<std::string> said =
        check->run(result.ptx, result.launches.front(), options,
                   *runOptions.getCheckPTX());
    bar.clear();
    if (!said)
      return fail(said.takeError());
    llvm::errs() << "check-ptx: " << *said << "\n";
    if (failed(writeOutputs(result)))
      return failure();
  }
  if (!runOptions.verify.isGiven()) {
    if (flagJSON)
      printJSON(result, nullptr);
    return success();
  }
  llvm::Expected<sim::HarnessReport> report =
      verifyKernel(result.ptx, result.launches.front(), options);
  bar.clear();
  if (!report)
    return fail(report.takeError());
  if (flagJSON)
    printJSON(result, &*report);
  else
    report->print(llvm::outs(), report->steps.front().kernel + ".ptx");
  return success(report->hasPassed());
}

static LogicalResult run() {
  if (std::optional<std::string> schedule = given(flagListParameters)) {
    llvm::Expected<std::string> text = listParameters(*schedule);
    return text ? writeFile("-", *text) : fail(text.takeError());
  }
  if (flagListOptions)
    return writeFile("-", llvm::formatv("{0:2}\n", describeOptions()).str());
  ProblemFlags flags = problemOptions.get();
  if (llvm::Error error = checkFlags(flags))
    return fail(std::move(error));
  llvm::Expected<CompileOptions> options = getCompileOptions();
  if (!options)
    return fail(options.takeError());
  std::optional<Problem> problem;
  if (inputPath.empty()) {
    llvm::Expected<Problem> parsed = parseProblem(flags);
    if (!parsed)
      return fail(parsed.takeError());
    problem = std::move(*parsed);
  }
  llvm::Expected<sim::HarnessOptions> harness = runOptions.get();
  if (!harness)
    return fail(harness.takeError());

  DefaultTimingManager timingManager;
  applyDefaultTimingManagerCLOptions(timingManager);
  if (flagTiming) {
    timingManager.setEnabled(true);
    timingManager.setDisplayMode(DefaultTimingManager::DisplayMode::Tree);
  }
  TimingScope timing = timingManager.getRootScope();

  TimingScope start = timing.nest("read the problem");
  DialectRegistry registry;
  registerCompileDialects(registry);
  // A thread pool costs more than it saves on one kernel.
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  // The op that an error is about stands in the user's file.
  context.printOpOnDiagnostic(false);
  if (failed(enableRemarks(context, given(flagRemarksFilter))))
    return failure();
  llvm::SourceMgr sources;
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module =
      problem ? buildProblem(&context, *problem) : parseInput(context, sources);
  if (!module || failed(verify(*module)))
    return failure();
  // A verdict in the file may be of a kernel that was changed since.
  if (!options->checkBarriers)
    module->walk([](gpu::GPUFuncOp kernel) { kernel->removeAttr(kProofAttr); });
  start.stop();
  if (flagListSchedules) {
    FailureOr<llvm::json::Value> found = listSchedules(*module);
    return failed(found)
               ? failure()
               : writeFile("-", llvm::formatv("{0:2}\n", *found).str());
  }

  if (flagAutotune != 0) {
    ProgressBar bar(llvm::errs(), "attn-compile", llvm::errs().is_displayed());
    return writeCandidates(*module, *options, flagAutotune, flagAutotuneDir,
                           timing, bar.getFunction());
  }

  std::optional<Modifications> modifications;
  std::optional<PTXCheck> check;
  if (runOptions.getCheckPTX()) {
    llvm::Expected<PTXCheck> made = PTXCheck::create(options->skeleton);
    if (!made)
      return fail(made.takeError());
    check.emplace(std::move(*made));
    options->skeleton = check->getPath();
  }
  bool runs = runOptions.verify.isGiven() || check;
  if (runs) {
    llvm::Expected<Modifications> found = Modifications::get(*module);
    if (!found)
      return fail(found.takeError());
    modifications.emplace(std::move(*found));
  }
  CompileResult result;
  if (failed(compile(*module, *options, timing, result)))
    return failure();
  if (runs)
    return runKernel(result, *harness, *modifications, problem, check);
  if (failed(writeOutputs(result)))
    return failure();
  if (flagJSON)
    printJSON(result, nullptr);
  return success();
}

int mlir::attn::runAttnCompile(int argc, char **argv) {
  Tool tool(argc, argv, "attn-compile");
  registerAsmPrinterCLOptions();
  registerPassManagerCLOptions();
  registerDefaultTimingManagerCLOptions();
  tool.parse(
      "attn-compile - an attention kernel from a problem\n",
      {&problemCategory, &compileCategory, &outputCategory, &verifyCategory},
      /*withLibraries=*/true);
  LogicalResult result = failure();
  std::optional<std::string> fatal = runGuarded([&] { result = run(); });
  if (fatal) {
    llvm::WithColor::error(llvm::errs(), "attn-compile")
        << "fatal error in the compiler: " << *fatal << "\n";
    result = failure();
  }
  if (llvm::Error error = flushOutput())
    result = fail(std::move(error));
  return failed(result);
}
