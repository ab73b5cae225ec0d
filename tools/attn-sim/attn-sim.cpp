//===- attn-sim.cpp - Run PTX with a launch record on the CPU -------------===//
//
//   attn-sim kernel.ptx --launch=launch.json --verify
//   attn-sim --recorded=FOLDER
//   attn-sim --compare first.json second.json
//
// Exit status: 0 when nothing was found, 1 when the kernel is wrong, 2 when it
// could not be run.
//
//===----------------------------------------------------------------------===//
#include "Flags.h"
#include "Tool/Commands.h"
#include "Tool/Tool.h"
#include "attn/Cost/CostReport.h"
#include "attn/Harness/NewLaunch.h"
#include "attn/Harness/Recorded.h"
#include "attn/Support/Files.h"
#include "attn/Support/ProgressBar.h"
#include "attn/Target/ToolMain.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace cl = llvm::cl;

/// The flags of this run.
static Flags *flags;

static CostOptions getCostOptions() {
  CostOptions options;
  options.estimate = flags->wantsEstimate;
  options.vary = flags->wantsVary;
  options.sass = flags->wantsSass;
  options.trace = flags->tracePath;
  options.timeline = flags->timelinePath;
  options.chip = flags->modelChip;
  options.registers = flags->registerCount;
  return options;
}

/// Splits `name=value`.
static Expected<std::pair<StringRef, StringRef>> splitPair(StringRef option,
                                                           StringRef text) {
  auto [name, value] = text.split('=');
  if (name.empty() || value.empty())
    return createStringError("--" + option + ": expected NAME=VALUE, got \"" +
                             text + "\"");
  return std::pair(name, value);
}

static Expected<std::array<uint32_t, 3>> readGrid(StringRef text) {
  llvm::SmallVector<StringRef, 3> parts;
  text.split(parts, ',');
  std::array<uint32_t, 3> grid = {1, 1, 1};
  bool isRead = parts.size() <= 3;
  for (size_t axis = 0; isRead && axis < parts.size(); ++axis)
    isRead = !parts[axis].getAsInteger(10, grid[axis]) && grid[axis] != 0;
  if (!isRead)
    return createStringError("--grid: expected one to three positive numbers "
                             "such as 2,1,1, got \"" +
                             text + "\"");
  return grid;
}

/// What flags say of each run.
static void applySettings(LaunchConfig &config) {
  config.schedule = flags->schedule;
  config.seed = flags->seed;
  if (flags->lateCluster.getNumOccurrences())
    config.lateCluster = flags->lateCluster;
  if (flags->startedClusters.getNumOccurrences())
    config.startedClusters = flags->startedClusters;
  config.asyncReads = flags->reads;
  config.asyncWrites = flags->writes;
  config.adversarial = flags->adversarial;
  config.profile = flags->profile;
  config.sanitize = flags->sanitize;
  config.stepLimit = flags->stepLimit;
  config.threads = flags->threads;
  config.maxFindings = flags->maxFindings;
}

/// Checks which flags may stand together.
static Error checkFlags() {
  if (flags->startedClusters.getNumOccurrences() && !flags->startedClusters)
    return createStringError("--started: expected a positive number, got 0");
  for (auto [isGiven, flag] :
       {std::pair(flags->tolerance.getNumOccurrences() != 0, "tolerance"),
        std::pair(flags->lseTolerance.getNumOccurrences() != 0,
                  "lse-tolerance")})
    if (isGiven && !flags->verify.isGiven() && flags->recordedPath.empty() &&
        flags->expectFlags.empty())
      return createStringError("--%s needs --verify, --expect or --recorded",
                               flag);
  if (flags->loseBets.getNumOccurrences() != 0 && !flags->verify.isGiven() &&
      flags->skeletonPath.empty())
    return createStringError("--lose-bets needs --verify or --skeleton");
  bool hasModel = flags->wantsEstimate || flags->wantsVary ||
                  flags->wantsSass || !flags->tracePath.empty() ||
                  !flags->timelinePath.empty();
  if (flags->verify.isQuick() &&
      (hasModel || !flags->expectFlags.empty() || !flags->skeletonPath.empty()))
    return createStringError(
        "--verify=quick: expected none of --estimate, --vary, --sass, "
        "timelines, --expect and --skeleton beside it, which are of the whole "
        "launch");
  if (flags->registerCount.getNumOccurrences() != 0 && !hasModel)
    return createStringError("--registers needs --estimate, --vary, --trace "
                             "or --timeline");
  if (flags->modelChip.getNumOccurrences() != 0 && !hasModel)
    return createStringError("--chip needs --estimate, --vary, --sass, "
                             "--trace or --timeline");
  if (flags->registerCount > 255)
    return createStringError("--registers: expected at most 255, got " +
                             Twine(flags->registerCount));
  for (auto [flag, values] : {std::pair<StringRef, llvm::ArrayRef<std::string>>(
                                  "in", flags->inputFlags),
                              {"size", flags->sizeFlags},
                              {"scalar", flags->scalarFlags}})
    if (Error error = checkNamesDiffer(flag, values))
      return error;
  llvm::SmallVector<std::pair<StringRef, StringRef>> outputs = {
      {"--trace", flags->tracePath}, {"--timeline", flags->timelinePath}};
  for (StringRef text : flags->outputFlags)
    outputs.emplace_back("--out", text.split('=').second);
  return checkFilesDiffer(outputs);
}

/// Reads the files of `tensor=file.npy`.
static Error readArrays(StringRef option, llvm::ArrayRef<std::string> flags,
                        llvm::StringMap<NpyArray> &arrays) {
  for (StringRef text : flags) {
    auto parts = splitPair(option, text);
    if (!parts)
      return parts.takeError();
    Expected<NpyArray> array = readNpy(parts->second);
    if (!array)
      return array.takeError();
    arrays[parts->first] = std::move(*array);
  }
  return Error::success();
}

static Expected<HarnessOptions> makeOptions() {
  HarnessOptions options;
  if (Error error = readArrays("in", flags->inputFlags, options.inputs))
    return std::move(error);
  if (Error error = readArrays("expect", flags->expectFlags, options.expected))
    return std::move(error);
  for (StringRef text : flags->sizeFlags) {
    auto parts = splitPair("size", text);
    if (!parts)
      return parts.takeError();
    int64_t value;
    if (parts->second.getAsInteger(10, value))
      return createStringError("--size: expected an integer, got \"" +
                               parts->second + "\"");
    options.sizes[parts->first] = value;
  }
  for (StringRef text : flags->scalarFlags) {
    auto parts = splitPair("scalar", text);
    if (!parts)
      return parts.takeError();
    double value;
    if (parts->second.getAsDouble(value))
      return createStringError("--scalar: expected a number, got \"" +
                               parts->second + "\"");
    options.scalars[parts->first] = value;
  }
  if (!flags->gridFlag.empty()) {
    Expected<std::array<uint32_t, 3>> grid = readGrid(flags->gridFlag);
    if (!grid)
      return grid.takeError();
    options.grid = *grid;
  }
  if (!flags->replayPath.empty()) {
    if (flags->verify.isGiven() || flags->corners || !flags->gridFlag.empty() ||
        !flags->recordedPath.empty() || !flags->expectFlags.empty())
      return createStringError("--replay: expected none of --verify, --expect, "
                               "--corners, --grid and --recorded beside it");
    Expected<std::string> text = readFile(flags->replayPath);
    if (!text)
      return text.takeError();
    Expected<SyncWitness> witness = parseWitness(*text);
    if (!witness)
      return createStringError(flags->replayPath + ": " +
                               llvm::toString(witness.takeError()));
    options.replay = std::move(*witness);
  }
  if (!flags->skeletonPath.empty()) {
    if (flags->corners || !flags->gridFlag.empty() ||
        !flags->recordedPath.empty() || !flags->replayPath.empty() ||
        flags->wantsEstimate || !flags->tracePath.empty() ||
        !flags->timelinePath.empty())
      return createStringError(
          "--skeleton: expected none of --corners, --grid, --recorded, "
          "--replay, --estimate and timelines beside it");
    // The bytes that a warp touches are noted where accesses are checked.
    if (!flags->sanitize)
      return createStringError(
          "--skeleton: expected --sanitize=true, got --sanitize=false");
    Expected<std::string> text = readFile(flags->skeletonPath);
    if (!text)
      return text.takeError();
    Expected<SyncSkeleton> skeleton = parseSkeleton(*text);
    if (!skeleton)
      return createStringError(flags->skeletonPath + ": " +
                               llvm::toString(skeleton.takeError()));
    options.skeleton = std::move(*skeleton);
  }
  for (StringRef text : flags->assumeFlags) {
    unsigned number;
    if (!text.starts_with_insensitive("a") ||
        text.drop_front().getAsInteger(10, number) || number < 1 ||
        number > numAssumptions)
      return createStringError("--assume: expected A1 to A" +
                               Twine(numAssumptions) + ", got \"" + text +
                               "\"");
    options.config.assumptions |= 1u << (number - 1);
  }
  options.seed = flags->seed;
  flags->verify.apply(options);
  options.corners = flags->corners;
  if (flags->loseBets != cl::boolOrDefault::BOU_UNSET)
    options.losesBets = flags->loseBets == cl::boolOrDefault::BOU_TRUE;
  for (auto [flag, value] :
       {std::pair{&flags->tolerance, &options.outputTolerance},
        std::pair{&flags->lseTolerance, &options.lseTolerance}}) {
    // Below zero the harness takes its own.
    if (flag->getNumOccurrences() && !(*flag >= 0))
      return createStringError(
          "--" + flag->ArgStr +
          ": expected a number that is not negative, got " +
          llvm::formatv("{0}", flag->getValue()).str());
    *value = *flag;
  }
  applySettings(options.config);
  getCostOptions().apply(options.config);
  return std::move(options);
}

static Error writeOutputs(const HarnessReport &report) {
  for (StringRef text : flags->outputFlags) {
    auto parts = splitPair("out", text);
    if (!parts)
      return parts.takeError();
    const HarnessTensor *tensor = report.findTensor(parts->first);
    if (!tensor)
      return createStringError("--out: the launch has no tensor \"" +
                               parts->first + "\"");
    if (Error error = writeNpy(parts->second, tensor->argument.dtype,
                               tensor->argument.shape, tensor->getElements()))
      return error;
  }
  return Error::success();
}

static Expected<HarnessReport> runFiles(std::string &path,
                                        const HarnessOptions &options) {
  bool isRecorded = !flags->recordedPath.empty();
  if (isRecorded && options.grid)
    return createStringError("--grid: expected --launch, got --recorded");
  if (isRecorded && !flags->expectFlags.empty())
    return createStringError("--expect: expected --launch, got --recorded");
  if (!flags->secondPath.empty())
    return createStringError("expected one PTX file without --compare, got \"" +
                             flags->secondPath + "\" as well");
  if (isRecorded && (!flags->launchPath.empty() || !flags->ptxPath.empty()))
    return createStringError(
        "--recorded: expected neither a PTX file nor --launch beside it");
  if (!isRecorded && flags->ptxPath.empty())
    return createStringError("expected a PTX file or --recorded, got neither");
  if (!isRecorded && flags->launchPath.empty())
    return createStringError("expected --launch with a PTX file, got none; "
                             "--new-launch drafts one");
  path = isRecorded ? flags->recordedPath + "/kernel.ptx" : flags->ptxPath;
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<Program>> program = parsePTX(*text, path);
  if (!program)
    return program.takeError();
  if (isRecorded) {
    Expected<RecordedLaunch> launch = readRecordedLaunch(flags->recordedPath);
    if (!launch)
      return launch.takeError();
    return runRecorded(*launch, **program, options);
  }
  Expected<std::string> json = readFile(flags->launchPath);
  if (!json)
    return json.takeError();
  Expected<LaunchRecord> record = parseLaunchRecord(*json);
  if (!record) {
    // A line for each thing that is wrong.
    std::string message = llvm::toString(record.takeError()), lines;
    for (StringRef line : llvm::split(message, '\n'))
      lines +=
          (lines.empty() ? "" : "\n") + flags->launchPath + ": " + line.str();
    return createStringError(lines);
  }
  return runLaunch(*record, **program, options);
}

static Expected<bool> compareReports() {
  if (flags->ptxPath.empty() || flags->secondPath.empty() ||
      !flags->launchPath.empty() || !flags->recordedPath.empty())
    return createStringError("--compare: expected two reports of --vary "
                             "--json and no launch");
  Expected<std::string> first = readFile(flags->ptxPath);
  if (!first)
    return first.takeError();
  Expected<std::string> second = readFile(flags->secondPath);
  if (!second)
    return second.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (Error error = compareEstimates(flags->ptxPath, *first, flags->secondPath,
                                     *second, os))
    return std::move(error);
  if (Error error =
          writeFile("-", [&](llvm::raw_ostream &out) { out << text; }))
    return std::move(error);
  return true;
}

static Expected<bool> writeNewLaunch() {
  if (flags->ptxPath.empty())
    return createStringError("--new-launch: expected a PTX file, got none");
  if (!flags->launchPath.empty() || !flags->recordedPath.empty())
    return createStringError(
        "--new-launch: expected neither --launch nor --recorded beside it");
  // What somebody has filled in is not lost.
  if (flags->newLaunchPath != "-" &&
      llvm::sys::fs::exists(flags->newLaunchPath))
    return createStringError("--new-launch: expected a file that is not there "
                             "yet, got \"" +
                             flags->newLaunchPath + "\"");
  Expected<std::string> text = readFile(flags->ptxPath);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<Program>> program = parsePTX(*text, flags->ptxPath);
  if (!program)
    return program.takeError();
  Expected<std::string> draft = draftLaunch(**program, flags->kernelName);
  if (!draft)
    return draft.takeError();
  if (Error error = writeOutput(flags->newLaunchPath, *draft))
    return std::move(error);
  if (flags->newLaunchPath != "-")
    llvm::WithColor::note(llvm::errs(), "attn-sim")
        << "fill in what begins with \"?\" in " << flags->newLaunchPath << "\n";
  return true;
}

static Expected<bool> runTool() {
  if (flags->wantsComparison)
    return compareReports();
  if (!flags->newLaunchPath.empty())
    return writeNewLaunch();
  if (!flags->kernelName.empty())
    return createStringError("--kernel: expected --new-launch beside it");
  Expected<HarnessOptions> options = makeOptions();
  if (!options)
    return options.takeError();
  if (Error error = checkFlags())
    return std::move(error);
  std::string path;
  ProgressBar bar(llvm::errs(), "attn-sim", llvm::errs().is_displayed());
  options->progress = bar.getFunction();
  Expected<HarnessReport> report = runFiles(path, *options);
  bar.clear();
  if (!report)
    return report.takeError();
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<CostReport> costs =
      computeCosts(report->getMeasured(), *text, getCostOptions());
  if (!costs)
    return costs.takeError();
  if (Error error = writeOutputs(*report))
    return std::move(error);
  Error written = writeFile("-", [&](llvm::raw_ostream &os) {
    if (flags->printJson) {
      llvm::json::Value json = report->toJSON();
      costs->addTo(json);
      os << llvm::formatv("{0:2}\n", json);
    } else {
      costs->print(os);
      report->print(os, path);
    }
  });
  if (written)
    return std::move(written);
  return report->hasPassed();
}

int mlir::attn::runAttnSim(int argc, char **argv) {
  Tool tool(argc, argv, "attn-sim");
  static Flags own;
  flags = &own;
  tool.addValues(flags->schedule);
  tool.addValues(flags->reads);
  tool.addValues(flags->writes);
  tool.addValues(flags->profile);
  tool.parse(
      "attn-sim - runs PTX on the CPU and checks what it does\n\nexit "
      "status: 0 nothing found, 1 the kernel or a flag is wrong, 2 it could "
      "not be run\n",
      &flags->category, /*withLibraries=*/false);
  Expected<bool> passed = runTool();
  if (!passed) {
    std::string message = llvm::toString(passed.takeError());
    for (StringRef line : llvm::split(message, '\n'))
      llvm::WithColor::error(llvm::errs(), "attn-sim") << line << "\n";
    return 2;
  }
  return *passed ? 0 : 1;
}
