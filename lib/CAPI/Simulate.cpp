//===- Simulate.cpp - Simulation through the C interface ------------------===//

#include "Handles.h"
#include "Request.h"
#include "attn/Compile/Verify.h"
#include "attn/Cost/CostReport.h"
#include "attn/Harness/Recorded.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;

struct AttnSimulation {
  sim::HarnessOptions options;
  sim::CostOptions costs;
  /// Element types of the inputs; numpy's names in `options` are coarser.
  llvm::StringMap<DType> dtypes;
  /// What was wrong with an input; reported by the run.
  std::string error;

  AttnSimulation() { options.verify = true; }
};

namespace {

/// A tensor after the run.
struct Tensor {
  std::string name, dtype;
  std::vector<int64_t> shape;
  bool written = false;
  std::vector<uint8_t> bytes;
};

} // namespace

struct AttnReport {
  bool ran = false, passed = false, stopped = false;
  std::string error, json, text;
  std::vector<Tensor> tensors;
};

static const AttnReport &get(const AttnReport *report) {
  return Handles<AttnReport>::read(report);
}

AttnSimulation *attnSimulationCreate(void) {
  return Handles<AttnSimulation>::make();
}

void attnSimulationDestroy(AttnSimulation *simulation) {
  Handles<AttnSimulation>::destroy(simulation);
}

void attnSimulationSetInput(AttnSimulation *simulation, AttnStringRef name,
                            AttnStringRef dtype, const int64_t *shape,
                            size_t rank, const void *data, size_t numBytes) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  std::string tensor = copyString(name), typeName = copyString(dtype);
  auto fail = [&](const Twine &message) {
    simulation->error = ("input \"" + tensor + "\": " + message).str();
  };
  if ((!shape && rank) || (!data && numBytes))
    return fail(Twine("expected ") + (!shape && rank ? "a shape" : "elements") +
                ", got NULL");
  std::optional<DType> type = symbolizeDType(typeName);
  if (!type)
    return fail("expected a known dtype, got \"" + typeName + "\"");
  sim::NpyArray array;
  array.width = getByteWidth(*type);
  bool isNative =
      *type == DType::F16 || *type == DType::F32 || *type == DType::F64;
  array.kind = isNative                   ? 'f'
               : isFloat(*type)           ? 'V'
               : isUnsignedInteger(*type) ? 'u'
                                          : 'i';
  array.shape.assign(shape, shape + rank);
  uint64_t expected = array.width;
  for (int64_t extent : array.shape) {
    if (extent < 0 || extent > std::numeric_limits<int32_t>::max())
      return fail("expected extents from 0 to 2^31 - 1, got " + Twine(extent));
    expected = llvm::SaturatingMultiply<uint64_t>(expected, extent);
  }
  if (expected != numBytes)
    return fail("expected " + Twine(expected) + " bytes, got " +
                Twine(numBytes));
  const auto *bytes = static_cast<const uint8_t *>(data);
  array.data.assign(bytes, bytes + numBytes);
  simulation->options.inputs[tensor] = std::move(array);
  simulation->dtypes[tensor] = *type;
}

void attnSimulationSetSize(AttnSimulation *simulation, AttnStringRef name,
                           int64_t value) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  simulation->options.sizes[copyString(name)] = value;
}

void attnSimulationSetSeed(AttnSimulation *simulation, uint64_t seed) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  simulation->options.seed = seed;
  simulation->options.config.seed = seed;
}

void attnSimulationSetVerify(AttnSimulation *simulation, bool verify) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  simulation->options.verify = verify;
}

void attnSimulationSetQuick(AttnSimulation *simulation, bool quick) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  simulation->options.sampledCTAs = quick ? sim::kSampledCTAs : 0;
}

void attnSimulationSetCorners(AttnSimulation *simulation, bool corners) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  simulation->options.corners = corners;
}

void attnSimulationSetThreads(AttnSimulation *simulation, uint32_t threads) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  simulation->options.config.threads = threads;
}

void attnSimulationSetProgress(AttnSimulation *simulation,
                               AttnProgressCallback callback, void *userData) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  if (!callback) {
    simulation->options.progress = nullptr;
    return;
  }
  simulation->options.progress = [=](const ProgressState &state) {
    std::string phase = state.phase.str();
    return callback(userData, toC(phase), state.fraction, state.secondsLeft);
  };
}

void attnSimulationSetOption(AttnSimulation *simulation, AttnStringRef name,
                             AttnStringRef value) {
  if (!Handles<AttnSimulation>::find(simulation))
    return;
  std::string option = copyString(name), text = copyString(value);
  sim::LaunchConfig &config = simulation->options.config;
  std::optional<sim::AsyncTiming> timing =
      llvm::StringSwitch<std::optional<sim::AsyncTiming>>(text)
          .Case("issue", sim::AsyncTiming::Issue)
          .Case("completion", sim::AsyncTiming::Completion)
          .Case("random", sim::AsyncTiming::Random)
          .Default(std::nullopt);
  bool isTrue = text == "true" || text.empty();
  bool isBool = isTrue || text == "false";
  uint64_t number = 0;
  bool isNumber = !StringRef(text).getAsInteger(10, number) && number;
  if (option == "schedule" && (text == "round-robin" || text == "random"))
    config.schedule =
        text == "random" ? sim::Schedule::Random : sim::Schedule::RoundRobin;
  else if (option == "reads" && timing)
    config.asyncReads = *timing;
  else if (option == "writes" && timing)
    config.asyncWrites = *timing;
  else if (option == "adversarial" && isBool)
    config.adversarial = isTrue;
  else if (option == "sanitize" && isBool)
    config.sanitize = isTrue;
  else if (option == "profile" && (text == "isa" || text == "hw"))
    config.profile = text == "isa" ? sim::Profile::Isa : sim::Profile::Hw;
  else if (option == "step-limit" && isNumber)
    config.stepLimit = number;
  else if (option == "estimate" && isBool)
    simulation->costs.estimate = isTrue;
  else if (option == "vary" && isBool)
    simulation->costs.vary = isTrue;
  else if (option == "sass" && isBool)
    simulation->costs.sass = isTrue;
  else if (option == "trace")
    simulation->costs.trace = text;
  else if (option == "timeline")
    simulation->costs.timeline = text;
  else if (option == "chip")
    simulation->costs.chip = text;
  else if (option == "registers" && isNumber && number <= UINT32_MAX)
    simulation->costs.registers = number;
  else
    simulation->error = "option \"" + option +
                        "\": expected a known option and value, got \"" + text +
                        "\"";
}

/// Lengths and sizes that the problem's options give, where the caller gave
/// none.
static void applyOpenSizes(const Problem &problem,
                           sim::HarnessOptions &options) {
  sim::HarnessOptions own;
  applyProblem(problem, own);
  for (const auto &entry : own.inputs)
    options.inputs.try_emplace(entry.getKey(), entry.second);
  // A caller who gives sizes or arrays, which bring theirs, decides them all.
  if (!options.sizes.empty())
    return;
  for (StringRef name : {"q", "k", "v"})
    if (options.inputs.count(name))
      return;
  for (const auto &entry : own.sizes)
    options.sizes.try_emplace(entry.getKey(), entry.second);
}

static void fillError(llvm::Error error, AttnReport &result) {
  result.stopped = error.isA<StoppedError>();
  result.error = llvm::toString(std::move(error));
}

static void fillReport(const sim::HarnessReport &report,
                       const sim::CostReport &costs, AttnReport &result) {
  result.ran = true;
  result.passed = report.hasPassed();
  llvm::json::Value json = report.toJSON();
  costs.addTo(json);
  result.json = llvm::formatv("{0:2}", json).str();
  llvm::raw_string_ostream text(result.text);
  costs.print(text);
  report.print(text, report.steps.front().kernel + ".ptx");
  for (const sim::HarnessTensor &tensor : report.tensors) {
    const TensorArgument &argument = tensor.argument;
    result.tensors.push_back(
        {argument.name, stringifyDType(argument.dtype).str(),
         std::vector<int64_t>(argument.shape.begin(), argument.shape.end()),
         isWritten(tensor.access), tensor.getElements()});
  }
}

static llvm::Error simulateInto(StringRef ptx, StringRef launch,
                                const AttnRequest *request,
                                const AttnSimulation *simulation,
                                AttnReport &result) {
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(launch);
  if (!record)
    return record.takeError();
  sim::HarnessOptions options;
  options.verify = true;
  if (simulation) {
    if (!simulation->error.empty())
      return llvm::createStringError(simulation->error);
    for (const LaunchTensor &tensor : record->tensors) {
      auto given = simulation->dtypes.find(tensor.name);
      if (given != simulation->dtypes.end() && given->second != tensor.dtype)
        return llvm::createStringError("input \"" + tensor.name +
                                       "\": expected elements of " +
                                       stringifyDType(tensor.dtype) + ", got " +
                                       stringifyDType(given->second));
    }
    options = simulation->options;
  }

  // The regions are functions of the module, which has to outlive the run.
  DialectRegistry registry;
  registerCompileDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  llvm::SourceMgr sources;
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  SourceMgrDiagnosticHandler handler(sources, &context, stream);
  std::optional<Modifications> modifications;
  if (request) {
    llvm::Expected<ParsedRequest> parsed = parseRequest(*request);
    if (!parsed)
      return parsed.takeError();
    OwningOpRef<ModuleOp> module =
        makeModule(*request, *parsed, context, sources);
    if (!module)
      return llvm::createStringError(messages);
    llvm::Expected<Modifications> found = Modifications::get(*module);
    if (!found)
      return found.takeError();
    modifications.emplace(std::move(*found));
    modifications->apply(options);
    if (parsed->problem)
      applyOpenSizes(*parsed->problem, options);
  }
  llvm::Expected<sim::HarnessReport> report =
      verifyKernel(ptx.str(), *record, options);
  if (!report)
    return report.takeError();

  fillReport(*report, sim::CostReport(), result);
  return llvm::Error::success();
}

static llvm::Error simulateLaunchInto(const std::string &ptx, StringRef json,
                                      const AttnSimulation *simulation,
                                      AttnReport &result) {
  llvm::Expected<sim::RecordedLaunch> launch = sim::parseRecordedLaunch(json);
  if (!launch)
    return launch.takeError();
  sim::HarnessOptions options;
  sim::CostOptions costs;
  if (simulation) {
    if (!simulation->error.empty())
      return llvm::createStringError(simulation->error);
    options = simulation->options;
    costs = simulation->costs;
    costs.apply(options.config);
    for (const auto &entry : options.inputs)
      launch->arrays[entry.getKey()] = entry.second;
  }
  llvm::Expected<std::unique_ptr<sim::Program>> program =
      sim::parsePTX(ptx, launch->kernel + ".ptx");
  if (!program)
    return program.takeError();
  llvm::Expected<sim::HarnessReport> report =
      sim::runRecorded(*launch, **program, options);
  if (!report)
    return report.takeError();
  llvm::Expected<sim::CostReport> found =
      sim::computeCosts(report->getMeasured(), ptx, costs);
  if (!found)
    return found.takeError();
  fillReport(*report, *found, result);
  return llvm::Error::success();
}

/// That an object which may be left out is one if it is not.
template <typename T>
static llvm::Error checkGiven(StringRef what, const T *object) {
  if (!object || Handles<T>::find(object))
    return llvm::Error::success();
  return llvm::createStringError("expected a " + what +
                                 ", got one that was destroyed");
}

/// Runs `simulate` so that all that goes wrong is in the report.
static AttnReport *
makeReport(const AttnSimulation *simulation,
           llvm::function_ref<llvm::Error(AttnReport &)> simulate) {
  auto *report = Handles<AttnReport>::make();
  std::optional<std::string> fatal = runSafely([&] {
    llvm::Error error = checkGiven("simulation", simulation);
    if (!error)
      error = simulate(*report);
    if (error)
      fillError(std::move(error), *report);
  });
  if (fatal) {
    report->ran = report->passed = false;
    report->error = "fatal error in the simulator: " + *fatal;
  }
  return report;
}

AttnReport *attnSimulate(AttnStringRef ptx, AttnStringRef launch,
                         const AttnRequest *problem,
                         const AttnSimulation *simulation) {
  return makeReport(simulation, [&](AttnReport &report) {
    if (llvm::Error error = checkGiven("problem", problem))
      return error;
    return simulateInto(copyString(ptx), copyString(launch), problem,
                        simulation, report);
  });
}

AttnReport *attnSimulateLaunch(AttnStringRef ptx, AttnStringRef launch,
                               const AttnSimulation *simulation) {
  return makeReport(simulation, [&](AttnReport &report) {
    return simulateLaunchInto(copyString(ptx), copyString(launch), simulation,
                              report);
  });
}

void attnReportDestroy(AttnReport *report) {
  Handles<AttnReport>::destroy(report);
}

bool attnReportRan(const AttnReport *report) { return get(report).ran; }

bool attnReportWasStopped(const AttnReport *report) {
  return get(report).stopped;
}

AttnStringRef attnReportGetError(const AttnReport *report) {
  return toC(get(report).error);
}

bool attnReportPassed(const AttnReport *report) { return get(report).passed; }

AttnStringRef attnReportGetJSON(const AttnReport *report) {
  return toC(get(report).json);
}

AttnStringRef attnReportGetText(const AttnReport *report) {
  return toC(get(report).text);
}

size_t attnReportGetNumTensors(const AttnReport *report) {
  return get(report).tensors.size();
}

AttnTensor attnReportGetTensor(const AttnReport *report, size_t index) {
  static const Tensor empty;
  const Tensor &tensor =
      index < get(report).tensors.size() ? get(report).tensors[index] : empty;
  return {toC(tensor.name),    toC(tensor.dtype), tensor.shape.data(),
          tensor.shape.size(), tensor.written,    tensor.bytes.data(),
          tensor.bytes.size()};
}
