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

static cl::OptionCategory category("attn-sim options");

static cl::opt<std::string> ptxPath(cl::Positional, cl::desc("<kernel.ptx>"),
                                    cl::cat(category));
static cl::opt<std::string> secondPath(cl::Positional, cl::Optional,
                                       cl::desc("[second.json]"),
                                       cl::cat(category));
static cl::opt<std::string> launchPath("launch", cl::value_desc("file"),
                                       cl::desc("Launch record (JSON)"),
                                       cl::cat(category));
static cl::opt<std::string> newLaunchPath(
    "new-launch", cl::value_desc("file"),
    cl::desc("Write a draft of a launch record for the PTX, to be filled in"),
    cl::cat(category));
static cl::opt<std::string>
    kernelName("kernel", cl::value_desc("name"),
               cl::desc("Kernel of --new-launch, where the PTX has several"),
               cl::cat(category));
static cl::opt<std::string>
    recordedPath("recorded", cl::value_desc("folder"),
                 cl::desc("Run a recorded launch of another compiler"),
                 cl::cat(category));
static cl::list<std::string>
    inputFlags("in", cl::value_desc("tensor=file.npy"),
               cl::desc("Contents of an input; random without"),
               cl::cat(category));
static cl::list<std::string> outputFlags("out",
                                         cl::value_desc("tensor=file.npy"),
                                         cl::desc("Write an output to a file"),
                                         cl::cat(category));
static cl::list<std::string> expectFlags(
    "expect", cl::value_desc("tensor=file.npy"),
    cl::desc("Compare what the kernel leaves in a tensor with a file"),
    cl::cat(category));
static cl::list<std::string>
    sizeFlags("size", cl::value_desc("q.dim2=300"),
              cl::desc("A size or stride that the record leaves open"),
              cl::cat(category));
static cl::list<std::string>
    scalarFlags("scalar", cl::value_desc("name=value"),
                cl::desc("The value of a scalar parameter"), cl::cat(category));
static cl::opt<std::string>
    gridFlag("grid", cl::value_desc("x,y,z"),
             cl::desc("CTAs of a persistent kernel, in place of the launch's"),
             cl::cat(category));
static cl::opt<std::string>
    replayPath("replay", cl::value_desc("witness.json"),
               cl::desc("Run the order of warps that attn-check-barriers has "
                        "written, and compare what is found"),
               cl::cat(category));
static cl::opt<std::string>
    skeletonPath("skeleton", cl::value_desc("skeleton.json"),
                 cl::desc("Hold what each warp does against what "
                          "attn-check-barriers has proved"),
                 cl::cat(category));
static cl::opt<uint64_t> seed("seed",
                              cl::desc("Seed of inputs and of the schedule"),
                              cl::init(0), cl::cat(category));
static cl::opt<bool> verify("verify",
                            cl::desc("Compare with the float64 reference"),
                            cl::cat(category));
static cl::opt<cl::boolOrDefault> loseBets(
    "lose-bets",
    cl::desc("With --verify, also run on scores that grow from block to block "
             "(default: where the run is short)"),
    cl::cat(category));
static cl::opt<double>
    tolerance("tolerance", cl::init(-1),
              cl::desc("Largest relative error of O that passes"),
              cl::cat(category));
static cl::opt<double>
    lseTolerance("lse-tolerance", cl::init(-1),
                 cl::desc("Largest error of LSE that passes"),
                 cl::cat(category));
static cl::opt<bool> printJson("json", cl::desc("Print the report as JSON"),
                               cl::cat(category));
static cl::opt<bool>
    corners("corners",
            cl::desc("Also run every corner of schedule and timing, and "
                     "compare the outputs"),
            cl::cat(category));
static cl::opt<Schedule> schedule(
    "schedule", cl::desc("Order in which warps advance:"),
    cl::values(clEnumValN(Schedule::RoundRobin, "round-robin",
                          "fixed order, lowest warp first (default)"),
               clEnumValN(Schedule::Random, "random", "seeded random")),
    cl::init(Schedule::RoundRobin), cl::cat(category));
static cl::opt<uint32_t> lateCluster(
    "late", cl::value_desc("number"),
    cl::desc("CTA, or cluster of CTAs, of each kernel that gets on last, by "
             "its place in the grid"),
    cl::cat(category));
static auto timings() {
  return cl::values(
      clEnumValN(AsyncTiming::Issue, "issue", "at once"),
      clEnumValN(AsyncTiming::Completion, "completion", "as late as possible"),
      clEnumValN(AsyncTiming::Random, "random", "seeded random"));
}
static cl::opt<AsyncTiming>
    reads("reads", cl::desc("When asynchronous operations read:"), timings(),
          cl::init(LaunchConfig().asyncReads), cl::cat(category));
static cl::opt<AsyncTiming>
    writes("writes", cl::desc("When asynchronous operations write:"), timings(),
           cl::init(LaunchConfig().asyncWrites), cl::cat(category));
static cl::opt<bool>
    adversarial("adversarial",
                cl::desc("False results of try_wait, random elected lanes"),
                cl::cat(category));
static cl::opt<Profile> profile(
    "profile", cl::desc("Which orderings count:"),
    cl::values(clEnumValN(Profile::Isa, "isa", "what the PTX manual orders"),
               clEnumValN(Profile::Hw, "hw",
                          "also what shipped kernels assume (default)")),
    cl::init(Profile::Hw), cl::cat(category));
static cl::list<std::string>
    assumeFlags("assume", cl::value_desc("A1,A2,..."), cl::CommaSeparated,
                cl::desc("Assumptions to grant beyond --profile=isa"),
                cl::cat(category));
static cl::opt<bool> sanitize("sanitize",
                              cl::desc("Look for races and other errors"),
                              cl::init(true), cl::cat(category));
static cl::opt<uint64_t>
    stepLimit("step-limit", cl::desc("Warp instructions that a CTA may run"),
              cl::init(LaunchConfig().stepLimit), cl::cat(category));
static cl::opt<unsigned>
    maxFindings("max-findings", cl::init(LaunchConfig().maxFindings),
                cl::desc("Findings that are shown; more are only counted"),
                cl::cat(category));
static cl::opt<unsigned> threads("jobs",
                                 cl::desc("Host threads; 0 takes all cores"),
                                 cl::init(0), cl::cat(category));

static cl::opt<bool>
    wantsEstimate("estimate",
                  cl::desc("Estimate the time of the launch on the chip"),
                  cl::cat(category));
static cl::opt<bool>
    wantsVary("vary",
              cl::desc("Estimate for all values that the believed numbers of "
                       "the cycle model may have; implies --estimate"),
              cl::cat(category));
static cl::opt<bool> wantsComparison(
    "compare",
    cl::desc("Compare two reports of --vary --json: which launch takes fewer "
             "cycles in all corners of the model, or which corner decides"),
    cl::cat(category));
static cl::opt<bool>
    wantsSass("sass",
              cl::desc("Count machine instructions (ptxas and nvdisasm)"),
              cl::cat(category));
static cl::opt<std::string>
    tracePath("trace", cl::value_desc("file.json"),
              cl::desc("Write a timeline that Perfetto reads"),
              cl::cat(category));
static cl::opt<std::string> timelinePath("timeline",
                                         cl::value_desc("file.html"),
                                         cl::desc("Write a timeline as a page"),
                                         cl::cat(category));
static cl::opt<std::string>
    modelChip("chip", cl::value_desc("chip"),
              cl::desc("Chip of --estimate, --sass and timelines; that of the "
                       "launch without"),
              cl::cat(category));
static cl::opt<unsigned>
    registerCount("registers",
                  cl::desc("Registers of a thread for --estimate; ptxas says "
                           "without"),
                  cl::init(0), cl::cat(category));

static CostOptions getCostOptions() {
  CostOptions options;
  options.estimate = wantsEstimate;
  options.vary = wantsVary;
  options.sass = wantsSass;
  options.trace = tracePath;
  options.timeline = timelinePath;
  options.chip = modelChip;
  options.registers = registerCount;
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
  config.schedule = schedule;
  config.seed = seed;
  if (lateCluster.getNumOccurrences())
    config.lateCluster = lateCluster;
  config.asyncReads = reads;
  config.asyncWrites = writes;
  config.adversarial = adversarial;
  config.profile = profile;
  config.sanitize = sanitize;
  config.stepLimit = stepLimit;
  config.threads = threads;
  config.maxFindings = maxFindings;
}

/// Checks which flags may stand together.
static Error checkFlags() {
  for (auto [isGiven, flag] :
       {std::pair(tolerance.getNumOccurrences() != 0, "tolerance"),
        std::pair(lseTolerance.getNumOccurrences() != 0, "lse-tolerance")})
    if (isGiven && !verify && recordedPath.empty() && expectFlags.empty())
      return createStringError("--%s needs --verify, --expect or --recorded",
                               flag);
  if (loseBets.getNumOccurrences() != 0 && !verify && skeletonPath.empty())
    return createStringError("--lose-bets needs --verify or --skeleton");
  bool hasModel = wantsEstimate || wantsVary || wantsSass ||
                  !tracePath.empty() || !timelinePath.empty();
  if (registerCount.getNumOccurrences() != 0 && !hasModel)
    return createStringError("--registers needs --estimate, --vary, --trace "
                             "or --timeline");
  if (modelChip.getNumOccurrences() != 0 && !hasModel)
    return createStringError("--chip needs --estimate, --vary, --sass, "
                             "--trace or --timeline");
  if (registerCount > 255)
    return createStringError("--registers: expected at most 255, got " +
                             Twine(registerCount));
  for (auto [flag, values] :
       {std::pair<StringRef, llvm::ArrayRef<std::string>>("in", inputFlags),
        {"size", sizeFlags},
        {"scalar", scalarFlags}})
    if (Error error = checkNamesDiffer(flag, values))
      return error;
  llvm::SmallVector<std::pair<StringRef, StringRef>> outputs = {
      {"--trace", tracePath}, {"--timeline", timelinePath}};
  for (StringRef text : outputFlags)
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
  if (Error error = readArrays("in", inputFlags, options.inputs))
    return std::move(error);
  if (Error error = readArrays("expect", expectFlags, options.expected))
    return std::move(error);
  for (StringRef text : sizeFlags) {
    auto parts = splitPair("size", text);
    if (!parts)
      return parts.takeError();
    int64_t value;
    if (parts->second.getAsInteger(10, value))
      return createStringError("--size: expected an integer, got \"" +
                               parts->second + "\"");
    options.sizes[parts->first] = value;
  }
  for (StringRef text : scalarFlags) {
    auto parts = splitPair("scalar", text);
    if (!parts)
      return parts.takeError();
    double value;
    if (parts->second.getAsDouble(value))
      return createStringError("--scalar: expected a number, got \"" +
                               parts->second + "\"");
    options.scalars[parts->first] = value;
  }
  if (!gridFlag.empty()) {
    Expected<std::array<uint32_t, 3>> grid = readGrid(gridFlag);
    if (!grid)
      return grid.takeError();
    options.grid = *grid;
  }
  if (!replayPath.empty()) {
    if (verify || corners || !gridFlag.empty() || !recordedPath.empty() ||
        !expectFlags.empty())
      return createStringError("--replay: expected none of --verify, --expect, "
                               "--corners, --grid and --recorded beside it");
    Expected<std::string> text = readFile(replayPath);
    if (!text)
      return text.takeError();
    Expected<SyncWitness> witness = parseWitness(*text);
    if (!witness)
      return createStringError(replayPath + ": " +
                               llvm::toString(witness.takeError()));
    options.replay = std::move(*witness);
  }
  if (!skeletonPath.empty()) {
    if (corners || !gridFlag.empty() || !recordedPath.empty() ||
        !replayPath.empty() || wantsEstimate || !tracePath.empty() ||
        !timelinePath.empty())
      return createStringError(
          "--skeleton: expected none of --corners, --grid, --recorded, "
          "--replay, --estimate and timelines beside it");
    // The bytes that a warp touches are noted where accesses are checked.
    if (!sanitize)
      return createStringError(
          "--skeleton: expected --sanitize=true, got --sanitize=false");
    Expected<std::string> text = readFile(skeletonPath);
    if (!text)
      return text.takeError();
    Expected<SyncSkeleton> skeleton = parseSkeleton(*text);
    if (!skeleton)
      return createStringError(skeletonPath + ": " +
                               llvm::toString(skeleton.takeError()));
    options.skeleton = std::move(*skeleton);
  }
  for (StringRef text : assumeFlags) {
    unsigned number;
    if (!text.starts_with_insensitive("a") ||
        text.drop_front().getAsInteger(10, number) || number < 1 ||
        number > numAssumptions)
      return createStringError("--assume: expected A1 to A" +
                               Twine(numAssumptions) + ", got \"" + text +
                               "\"");
    options.config.assumptions |= 1u << (number - 1);
  }
  options.seed = seed;
  options.verify = verify;
  options.corners = corners;
  if (loseBets != cl::boolOrDefault::BOU_UNSET)
    options.losesBets = loseBets == cl::boolOrDefault::BOU_TRUE;
  for (auto [flag, value] : {std::pair{&tolerance, &options.outputTolerance},
                             std::pair{&lseTolerance, &options.lseTolerance}}) {
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
  for (StringRef text : outputFlags) {
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
  bool isRecorded = !recordedPath.empty();
  if (isRecorded && options.grid)
    return createStringError("--grid: expected --launch, got --recorded");
  if (isRecorded && !expectFlags.empty())
    return createStringError("--expect: expected --launch, got --recorded");
  if (!secondPath.empty())
    return createStringError("expected one PTX file without --compare, got \"" +
                             secondPath + "\" as well");
  if (isRecorded && (!launchPath.empty() || !ptxPath.empty()))
    return createStringError(
        "--recorded: expected neither a PTX file nor --launch beside it");
  if (!isRecorded && ptxPath.empty())
    return createStringError("expected a PTX file or --recorded, got neither");
  if (!isRecorded && launchPath.empty())
    return createStringError("expected --launch with a PTX file, got none; "
                             "--new-launch drafts one");
  path = isRecorded ? recordedPath + "/kernel.ptx" : ptxPath;
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<Program>> program = parsePTX(*text, path);
  if (!program)
    return program.takeError();
  if (isRecorded) {
    Expected<RecordedLaunch> launch = readRecordedLaunch(recordedPath);
    if (!launch)
      return launch.takeError();
    return runRecorded(*launch, **program, options);
  }
  Expected<std::string> json = readFile(launchPath);
  if (!json)
    return json.takeError();
  Expected<LaunchRecord> record = parseLaunchRecord(*json);
  if (!record) {
    // A line for each thing that is wrong.
    std::string message = llvm::toString(record.takeError()), lines;
    for (StringRef line : llvm::split(message, '\n'))
      lines += (lines.empty() ? "" : "\n") + launchPath + ": " + line.str();
    return createStringError(lines);
  }
  return runLaunch(*record, **program, options);
}

static Expected<bool> compareReports() {
  if (ptxPath.empty() || secondPath.empty() || !launchPath.empty() ||
      !recordedPath.empty())
    return createStringError("--compare: expected two reports of --vary "
                             "--json and no launch");
  Expected<std::string> first = readFile(ptxPath);
  if (!first)
    return first.takeError();
  Expected<std::string> second = readFile(secondPath);
  if (!second)
    return second.takeError();
  std::string text;
  llvm::raw_string_ostream os(text);
  if (Error error = compareEstimates(ptxPath, *first, secondPath, *second, os))
    return std::move(error);
  if (Error error =
          writeFile("-", [&](llvm::raw_ostream &out) { out << text; }))
    return std::move(error);
  return true;
}

static Expected<bool> writeNewLaunch() {
  if (ptxPath.empty())
    return createStringError("--new-launch: expected a PTX file, got none");
  if (!launchPath.empty() || !recordedPath.empty())
    return createStringError(
        "--new-launch: expected neither --launch nor --recorded beside it");
  // What somebody has filled in is not lost.
  if (newLaunchPath != "-" && llvm::sys::fs::exists(newLaunchPath))
    return createStringError("--new-launch: expected a file that is not there "
                             "yet, got \"" +
                             newLaunchPath + "\"");
  Expected<std::string> text = readFile(ptxPath);
  if (!text)
    return text.takeError();
  Expected<std::unique_ptr<Program>> program = parsePTX(*text, ptxPath);
  if (!program)
    return program.takeError();
  Expected<std::string> draft = draftLaunch(**program, kernelName);
  if (!draft)
    return draft.takeError();
  if (Error error = writeOutput(newLaunchPath, *draft))
    return std::move(error);
  if (newLaunchPath != "-")
    llvm::WithColor::note(llvm::errs(), "attn-sim")
        << "fill in what begins with \"?\" in " << newLaunchPath << "\n";
  return true;
}

static Expected<bool> runTool() {
  if (wantsComparison)
    return compareReports();
  if (!newLaunchPath.empty())
    return writeNewLaunch();
  if (!kernelName.empty())
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
    if (printJson) {
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

int main(int argc, char **argv) {
  Tool tool(argc, argv, "attn-sim");
  tool.addValues(schedule);
  tool.addValues(reads);
  tool.addValues(writes);
  tool.addValues(profile);
  tool.parse(
      "attn-sim - runs PTX on the CPU and checks what it does\n\nexit "
      "status: 0 nothing found, 1 the kernel or a flag is wrong, 2 it could "
      "not be run\n",
      &category, /*withLibraries=*/false);
  Expected<bool> passed = runTool();
  if (!passed) {
    std::string message = llvm::toString(passed.takeError());
    for (StringRef line : llvm::split(message, '\n'))
      llvm::WithColor::error(llvm::errs(), "attn-sim") << line << "\n";
    return 2;
  }
  return *passed ? 0 : 1;
}
