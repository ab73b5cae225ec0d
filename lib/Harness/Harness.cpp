//===- Harness.cpp - run a launch record on the simulator -----------------===//
//
// Simulated memory keeps an initialised bit for each byte, which does the work
// of poison: an output byte that is still uninitialised after the launch was
// not written, and a byte between the elements that is initialised was.
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Harness.h"

#include "HarnessEffort.h"
#include "HarnessInputs.h"
#include "HarnessSteps.h"
#include "KernelReports.h"
#include "OutputScales.h"
#include "ReplayVerdict.h"
#include "SampledRun.h"
#include "SkeletonVerdict.h"
#include "WrittenElements.h"
#include "attn/Harness/PartialResults.h"
#include "attn/Harness/Results.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include <cmath>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static StringRef describeTiming(AsyncTiming timing) {
  switch (timing) {
  case AsyncTiming::Issue:
    return "at issue";
  case AsyncTiming::Completion:
    return "at completion";
  case AsyncTiming::Random:
    return "at random";
  }
  llvm_unreachable("covered switch");
}

std::string sim::describeConfig(const LaunchConfig &config) {
  return llvm::formatv(
      "{0}{1}, reads {2}, writes {3}",
      config.schedule == Schedule::RoundRobin ? "round-robin" : "random",
      config.adversarial ? ", adversarial" : "",
      describeTiming(config.asyncReads), describeTiming(config.asyncWrites));
}

std::vector<LaunchConfig> sim::getCorners(const LaunchConfig &base) {
  std::vector<LaunchConfig> corners;
  for (bool adversarial : {false, true})
    for (AsyncTiming reads : {AsyncTiming::Issue, AsyncTiming::Completion})
      for (AsyncTiming writes : {AsyncTiming::Issue, AsyncTiming::Completion}) {
        LaunchConfig corner = base;
        corner.schedule = adversarial ? Schedule::Random : Schedule::RoundRobin;
        corner.adversarial = adversarial;
        corner.asyncReads = reads;
        corner.asyncWrites = writes;
        corners.push_back(corner);
      }
  return corners;
}

namespace {

/// Runs one record; the tensors are made once, each run gets fresh memory.
class Runner {
public:
  Runner(const LaunchRecord &record, const Program &program,
         const HarnessOptions &options)
      : record(record), program(program), options(options),
        progress(options.progress) {}

  Expected<HarnessReport> run();

private:
  Expected<std::vector<HarnessStep>>
  runOnce(LaunchConfig config, std::vector<HarnessTensor> &tensors,
          std::vector<std::string> &problems);
  Error checkWorkspaces(ArrayRef<HarnessTensor> tensors);
  Error computeReferenceOf(ArrayRef<HarnessTensor> tensors);
  Error compare(HarnessReport &report);
  Error compareExpected(HarnessReport &report);
  /// True for an attn.combine by itself, whose inputs are all that there is.
  bool mergesPartialResults() const {
    return !record.problem && record.findTensor("partial_o") &&
           record.findTensor("partial_lse") && record.findTensor("o");
  }
  Error computeMerged(ArrayRef<HarnessTensor> tensors);
  void prepareSample(HarnessReport &report);
  void describeSample(HarnessReport &report);
  Error runCorners(HarnessReport &report);
  Error runLostBets(HarnessReport &report);

  const LaunchRecord &record;
  const Program &program;
  const HarnessOptions &options;
  ProgressMeter progress;
  ResolvedLaunch resolved;
  std::optional<AttentionResult> reference;
  std::optional<OwnedRows> ownedRows;
  /// CTAs that run, 0 for all, and the rows of the results that they write.
  unsigned sampledCTAs = 0;
  std::vector<uint8_t> sampledRows;
};

} // namespace

/// Workspaces have sizes of their own, beside the tensors.
Error Runner::checkWorkspaces(ArrayRef<HarnessTensor> tensors) {
  std::vector<HostBuffer> buffers;
  for (auto [index, bytes] : llvm::enumerate(resolved.workspaceBytes))
    buffers.push_back({record.describeWorkspace(index),
                       getHostBytes(bytes, TensorAccess::Write)});
  for (const HarnessTensor &tensor : tensors)
    buffers.push_back(
        {"tensor \"" + tensor.argument.name + "\"", 3 * tensor.bytes.size()});
  return checkMemory(buffers, options.config.memoryLimit);
}

Error Runner::computeReferenceOf(ArrayRef<HarnessTensor> tensors) {
  if (!options.verify)
    return Error::success();
  if (mergesPartialResults())
    return computeMerged(tensors);
  if (!record.problem)
    return createStringError("launch record: expected a problem to verify, got "
                             "none");
  Expected<AttentionInputs> inputs =
      getReferenceInputs(record, tensors, options);
  if (!inputs)
    return inputs.takeError();
  inputs->rows = sampledRows;
  Expected<AttentionResult> result =
      computeReference(*record.problem, *inputs, &progress);
  if (!result)
    return result.takeError();
  reference = std::move(*result);
  return Error::success();
}

Error Runner::computeMerged(ArrayRef<HarnessTensor> tensors) {
  Expected<AttentionResult> result =
      mergePartialResults(tensors[*record.findTensor("partial_o")].getView(),
                          tensors[*record.findTensor("partial_lse")].getView());
  if (!result)
    return result.takeError();
  reference = std::move(*result);
  return Error::success();
}

/// A launch that shares the workspace would not find what it needs.
static void checkRestored(const std::string &name, const Allocation &allocation,
                          std::vector<std::string> &problems) {
  size_t left = llvm::count_if(allocation.getBytes(),
                               [](uint8_t byte) { return byte != 0; });
  if (left)
    problems.push_back(
        llvm::formatv("{0}: expected zeros behind the kernel, got {1} bytes "
                      "that are not 0",
                      name, left));
}

/// Gives a tensor its place in memory, with the contents of one that is read.
static Error placeTensor(HarnessTensor &tensor, Memory &memory) {
  TensorArgument &argument = tensor.argument;
  uint64_t bytes = cantFail(
      getExtentBytes(argument.shape, argument.strides, argument.dtype));
  argument.address = memory.allocate(bytes, argument.name);
  if (!isRead(tensor.access))
    return Error::success();
  // Later runs begin with what the first one found.
  if (tensor.access == TensorAccess::Update) {
    if (tensor.initial.empty())
      tensor.initial = tensor.bytes;
    else
      tensor.bytes = tensor.initial;
  }
  // Elements that lie side by side at once; what lies between them stays
  // uninitialised.
  Error error = Error::success();
  int64_t width = getByteWidth(argument.dtype), first = 0, end = 0;
  auto write = [&] {
    if (!error && first != end)
      error = memory.write(argument.address + first,
                           ArrayRef(tensor.bytes).slice(first, end - first));
  };
  forEachElement(argument, [&](int64_t offset) {
    if (!tensor.absent.empty() && tensor.absent[offset])
      return;
    if (offset != end) {
      write();
      first = offset;
    }
    end = offset + width;
  });
  write();
  if (error || !bytes || isWritten(tensor.access))
    return error;
  return memory.setAccess(argument.address, Access::Read);
}

Expected<std::vector<HarnessStep>>
Runner::runOnce(LaunchConfig config, std::vector<HarnessTensor> &tensors,
                std::vector<std::string> &problems) {
  LaunchMemory place;
  for (HarnessTensor &tensor : tensors) {
    if (Error error = placeTensor(tensor, place.memory))
      return std::move(error);
    place.tensors.push_back(tensor.argument);
  }
  if (Error error = placeWorkspaces(record, resolved, place))
    return std::move(error);
  config.progress = &progress;
  Expected<std::vector<HarnessStep>> steps = runSteps(
      record, resolved, program, config, options.scalars, place, sampledCTAs);
  if (!steps)
    return steps.takeError();
  for (const HarnessStep &step : *steps)
    llvm::append_range(problems, readKernelReports(step.run));
  bool completed = llvm::all_of(
      *steps, [](const HarnessStep &step) { return step.run.completed; });
  bool areStates = hasStatesOfRows(record);
  if (sampledCTAs)
    for (const HarnessTensor &tensor : tensors)
      if (const Allocation *allocation =
              place.memory.find(tensor.argument.address);
          allocation && isWritten(tensor.access) &&
          findTiledRows(record, tensors, tensor).empty())
        noteWrittenRows(tensor, *allocation, areStates, sampledRows);
  for (HarnessTensor &tensor : tensors) {
    if (!isWritten(tensor.access))
      continue;
    Allocation *allocation = place.memory.find(tensor.argument.address);
    tensor.bytes.clear();
    if (!allocation)
      continue;
    // The memory ends with this run.
    tensor.bytes = std::move(allocation->ownBytes);
    // A run that stopped early left its outputs unfinished in any case.
    if (completed)
      checkWrites(tensor, *allocation, ownedRows, areStates, sampledRows,
                  findTiledRows(record, tensors, tensor), problems);
  }
  if (completed)
    for (auto [index, address] : llvm::enumerate(place.workspaces))
      if (const Allocation *allocation = place.memory.find(address);
          allocation && record.workspaces[index].restored)
        checkRestored(record.describeWorkspace(index), *allocation, problems);
  return steps;
}

/// The deviation of LSE that is accepted. Scores that f16 adds up are rounded
/// to 11 bits in each step of 16 columns; twice what independent roundings add
/// up to is accepted of the largest one.
static double getLSETolerance(const AttentionProblem *problem,
                              const AttentionResult &reference) {
  constexpr double usual = 1e-3, columns = 16;
  if (!problem || !problem->narrowScores)
    return usual;
  double most = 0;
  for (double lse : reference.lse)
    if (std::isfinite(lse))
      most = std::max(most, std::abs(lse));
  double steps = std::max(1.0, problem->d / columns);
  return std::max(usual, 2 * std::sqrt(steps) * std::ldexp(most, -11));
}

Error Runner::compare(HarnessReport &report) {
  if (!reference || !report.run.completed)
    return Error::success();
  const HarnessTensor *o = report.findTensor("o");
  const HarnessTensor *q = report.findTensor("q");
  const AttentionProblem *problem = record.problem ? &*record.problem : nullptr;
  report.outputTolerance =
      options.outputTolerance >= 0
          ? options.outputTolerance
          : getDefaultTolerance(q ? q->argument.dtype : o->argument.dtype,
                                o->argument.dtype, problem);
  report.lseTolerance = options.lseTolerance >= 0
                            ? options.lseTolerance
                            : getLSETolerance(problem, *reference);
  const HarnessTensor *lse = report.findTensor("lse");
  std::optional<AttentionResult> merged;
  // Partial results are right if they merge to the whole.
  if (lse && o->argument.shape.size() == 5) {
    Expected<AttentionResult> result =
        mergePartialResults(o->getView(), lse->getView());
    if (!result)
      return result.takeError();
    merged = std::move(*result);
  }
  if (const HarnessTensor *scales = report.findTensor("o_scales")) {
    int64_t groupColumns = problem ? problem->outGroup : 0;
    Expected<AttentionResult> result =
        applyOutputScales(o->getView(), o->argument.dtype, scales->getView(),
                          groupColumns, *reference);
    if (!result)
      return result.takeError();
    merged = std::move(*result);
    DType operand = q ? q->argument.dtype : DType::F32;
    // Results of 4 bits have scales of what they were before. A probability of
    // f8E5M2 that decides a row is off by an eighth at most.
    double tolerance = report.outputTolerance;
    if (o->argument.dtype == DType::I8)
      tolerance =
          std::max(1.6e-2, getDefaultTolerance(operand, DType::F32, problem));
    if (operand == DType::F8E5M2)
      tolerance = std::max(tolerance, 0x1p-3);
    // Errors of narrow probabilities are of a row, whose groups may be small.
    bool isNarrow = operand == DType::F8E4M3FN || operand == DType::F8E5M2;
    if (std::optional<std::string> problem =
            findWrongScale(scales->getView(), o->argument.dtype, groupColumns,
                           *reference, tolerance, isNarrow ? tolerance : 0))
      report.problems.push_back(*problem);
  }
  compareNarrow(report, problem, *reference);
  std::optional<AttentionResult> limited;
  if (o->argument.dtype == DType::I8)
    limitFloat4(limited.emplace(*reference));
  Expected<Deviation> output =
      compareOutput(merged ? viewOutput(*merged) : o->getView(),
                    limited ? *limited : *reference);
  if (!output)
    return output.takeError();
  report.output = std::move(*output);
  if (lse) {
    bool isPartial = o->argument.shape.size() == 5;
    std::vector<double> logs;
    if (isPartial)
      logs = listLogs(*merged);
    Expected<Deviation> deviation = compareLSE(
        isPartial ? viewLogs(*merged, logs) : lse->getView(), *reference);
    if (!deviation)
      return deviation.takeError();
    report.lse = std::move(*deviation);
  }
  return Error::success();
}

Error Runner::compareExpected(HarnessReport &report) {
  for (const auto &entry : options.expected) {
    StringRef name = entry.getKey();
    auto fail = [&](const Twine &problem) {
      return createStringError("expected result \"" + name + "\": " + problem);
    };
    const HarnessTensor *tensor = report.findTensor(name);
    if (!tensor)
      return fail("the launch record has no tensor of this name");
    if (!isWritten(tensor->access))
      return fail("the kernel only reads this tensor");
    if (!report.run.completed)
      continue;
    Expected<ComparedResult> result =
        compareResult(*tensor, entry.second, options.outputTolerance);
    if (!result)
      return fail(llvm::toString(result.takeError()));
    report.results.push_back(std::move(*result));
  }
  llvm::sort(report.results,
             [](const auto &a, const auto &b) { return a.name < b.name; });
  return Error::success();
}

/// What is wrong with a run that is not clean.
static std::string getFirstError(const RunReport &run) {
  auto found = llvm::find_if(run.findings, [](const Finding &finding) {
    return finding.severity == Severity::Error;
  });
  return found == run.findings.end() ? "the run did not complete"
                                     : found->message;
}

Error Runner::runCorners(HarnessReport &report) {
  std::vector<LaunchConfig> corners = getCorners(options.config);
  for (auto [index, corner] : llvm::enumerate(corners)) {
    double seconds = report.run.seconds;
    progress.begin("corner " + Twine(index + 1) + " of " +
                       Twine(corners.size()),
                   seconds, seconds * double(corners.size() - index - 1));
    std::vector<HarnessTensor> tensors = report.tensors;
    std::vector<std::string> problems;
    Expected<std::vector<HarnessStep>> steps =
        runOnce(corner, tensors, problems);
    if (!steps)
      return steps.takeError();
    RunReport result = joinReports(*steps);
    ++report.runs;
    std::string name = describeConfig(corner);
    if (!result.isClean())
      report.problems.push_back("under " + name + ": " + getFirstError(result));
    for (const std::string &problem : problems)
      report.problems.push_back("under " + name + ": " + problem);
    for (auto [first, second] : llvm::zip_equal(report.tensors, tensors)) {
      if (first.bytes == second.bytes)
        continue;
      auto at = std::mismatch(first.bytes.begin(), first.bytes.end(),
                              second.bytes.begin());
      report.problems.push_back(llvm::formatv(
          "under {0}: output \"{1}\" differs from the first run "
          "at byte {2}",
          name, first.argument.name, at.first - first.bytes.begin()));
    }
  }
  return Error::success();
}

/// The second run is a report of its own, of which the first one takes what it
/// prints.
Error Runner::runLostBets(HarnessReport &report) {
  if (!(options.verify || options.skeleton) || !record.problem ||
      !report.run.completed || options.inputs.count("q") ||
      options.inputs.count("k") || !options.losesBets.value_or(true))
    return Error::success();
  if (!options.losesBets &&
      report.run.counters.warpInstructions > kMostForSecondRun) {
    report.isSecondRunLeftOut = true;
    return Error::success();
  }
  HarnessReport second;
  second.tensors = report.tensors;
  enlargeScores(*record.problem, second.tensors);
  if (Error error = computeReferenceOf(second.tensors))
    return error;
  Expected<std::vector<HarnessStep>> steps =
      runOnce(options.config, second.tensors, second.problems);
  if (!steps)
    return steps.takeError();
  second.run = joinReports(*steps);
  if (options.skeleton) {
    report.skeleton = judgeSkeleton(*options.skeleton, second.run);
    report.skeleton->text = "with scores that grow: " + report.skeleton->text;
  }
  if (Error error = compare(second))
    return error;
  if (!second.run.isClean())
    second.problems.push_back(getFirstError(second.run));
  auto judge = [&](StringRef name, const std::optional<Deviation> &deviation,
                   double tolerance) {
    if (deviation && !(deviation->error <= tolerance))
      second.problems.push_back(llvm::formatv(
          "{0} {1:e2}, accepted {2:e2}; largest at [{3:$[, ]}]: "
          "expected {4:f6}, got {5:f6}",
          name, deviation->error, tolerance,
          llvm::make_range(deviation->worst.begin(), deviation->worst.end()),
          deviation->ref, deviation->out));
  };
  judge("relative error", second.output, second.outputTolerance);
  judge("LSE error", second.lse, second.lseTolerance);
  for (const std::string &problem : second.problems)
    report.problems.push_back("with scores that grow: " + problem);
  if (second.output)
    report.lostBets = LostBets{second.run.counters.warpInstructions,
                               *second.output, second.lse};
  return Error::success();
}

/// Decides whether a few CTAs run.
void Runner::prepareSample(HarnessReport &report) {
  if (!options.verify || !options.sampledCTAs)
    return;
  if (std::optional<std::string> reason = findReasonToRunAll(record, program)) {
    report.sample = "all CTAs, since " + *reason;
    return;
  }
  sampledCTAs = options.sampledCTAs;
  if (!options.grid)
    spreadTiles(record, report.tensors, resolved);
}

/// Says what ran. CTAs that write nothing would pass unseen.
void Runner::describeSample(HarnessReport &report) {
  const HarnessStep &step = report.steps.front();
  size_t rows = llvm::count(sampledRows, 1);
  uint64_t width = 1;
  for (int64_t extent : record.steps.front().cluster)
    width *= extent;
  report.sample =
      llvm::formatv("{0} CTAs with {1} of {2} rows",
                    step.run.storingClusters * width, rows, sampledRows.size());
  bool isEmpty = llvm::is_contained(step.grid, 0u) || sampledRows.empty();
  if (report.run.completed && !isEmpty && rows == 0)
    report.problems.push_back("expected CTAs that write results, got none");
}

Expected<HarnessReport> Runner::run() {
  HarnessReport report;
  report.chip = record.chip;
  Expected<std::vector<HarnessTensor>> tensors =
      makeTensors(record, options, progress);
  if (!tensors)
    return tensors.takeError();
  report.tensors = std::move(*tensors);
  std::vector<TensorArgument> arguments;
  for (const HarnessTensor &tensor : report.tensors)
    arguments.push_back(tensor.argument);
  std::optional<int64_t> multiprocessors;
  if (Expected<const TargetRow &> target = lookupTarget(record.chip))
    multiprocessors = target->smCount;
  else
    llvm::consumeError(target.takeError());
  Expected<ResolvedLaunch> launch =
      resolveLaunch(record, arguments, multiprocessors);
  if (!launch)
    return launch.takeError();
  resolved = std::move(*launch);
  if (options.grid)
    if (Error error = sim::overrideGrid(record, *options.grid, resolved))
      return error;
  prepareSample(report);
  ownedRows = findOwnedRows(record, report.tensors);
  if (Error error = checkWorkspaces(report.tensors))
    return std::move(error);
  if (Error error = sim::checkProgram(record, resolved, program))
    return std::move(error);
  Effort effort = estimateEffort(record, report.tensors, options);
  double corners = options.corners ? 8 * effort.simulation : 0;
  if (options.verify)
    progress.begin("reference", effort.reference, effort.simulation + corners);
  // Only the run says which rows of a sample are compared.
  if (!sampledCTAs)
    if (Error error = computeReferenceOf(report.tensors))
      return std::move(error);
  if (!progress.begin("simulation", effort.simulation, corners))
    return progress.takeError();
  Expected<std::vector<HarnessStep>> steps =
      runOnce(options.config, report.tensors, report.problems);
  if (!steps)
    return steps.takeError();
  report.steps = std::move(*steps);
  report.run = joinReports(report.steps);
  report.runs = 1;
  if (sampledCTAs) {
    describeSample(report);
    if (Error error = computeReferenceOf(report.tensors))
      return std::move(error);
  }
  if (Error error = compare(report))
    return std::move(error);
  if (Error error = compareExpected(report))
    return std::move(error);
  if (options.corners && report.run.completed)
    if (Error error = runCorners(report))
      return std::move(error);
  if (Error error = runLostBets(report))
    return std::move(error);
  return std::move(report);
}

Expected<HarnessReport> sim::runLaunch(const LaunchRecord &record,
                                       const Program &program,
                                       const HarnessOptions &options) {
  HarnessOptions own = options;
  if (options.skeleton) {
    if (Error error = takeSkeleton(record, own))
      return std::move(error);
    Expected<HarnessReport> report = Runner(record, program, own).run();
    if (!report)
      return report;
    ReplayVerdict first = judgeSkeleton(*own.skeleton, report->run);
    // Of a second run only what is wrong says more.
    if (!report->skeleton || report->skeleton->isSame || !first.isSame)
      report->skeleton = std::move(first);
    return report;
  }
  if (!options.replay)
    return Runner(record, program, options).run();
  if (Error error = takeWitness(record, own))
    return std::move(error);
  own.verify = own.corners = false;
  Expected<HarnessReport> report = Runner(record, program, own).run();
  if (!report)
    return report;
  // Other clusters have not written their results.
  report->problems.clear();
  report->replay = judgeReplay(*own.replay, report->run);
  return report;
}
