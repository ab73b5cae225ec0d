//===- Platform.cpp - Devices and handles of the process ------------------===//

#include "Platform.h"
#include "PythonSite.h"
#include "attn/Support/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/SaveAndRestore.h"
#include "llvm/Support/WithColor.h"
#include <pthread.h>

using namespace mlir::attn;
using namespace mlir::attn::device;
using llvm::Error;
using llvm::Expected;
using llvm::formatv;
using llvm::StringRef;

namespace cuda {

/// Codes and texts of the thread's last failed call.
static thread_local std::pair<int, std::string> lastError;
/// Set in the child of a fork, where nothing works.
static bool isForked = false;
/// Programs copy texts into buffers of 1024 bytes.
static constexpr size_t kMostText = 600;

/// A row by the name of a chip; "sm_90" is the one row of its capability.
static Expected<const TargetRow &> findChip(StringRef name) {
  for (const char *suffix : {"", "a"}) {
    Expected<const TargetRow &> row = lookupTarget((name + suffix).str());
    if (row || StringRef(suffix) == "a")
      return row;
    llvm::consumeError(row.takeError());
  }
  llvm_unreachable("the last suffix returns");
}

static std::string readVariable(const char *name) {
  return llvm::sys::Process::GetEnv(name).value_or("");
}

/// Reads a number of the environment, where there is one.
template <typename T>
static Error readNumber(const char *name, T &number) {
  std::string text = readVariable(name);
  if (!text.empty() && StringRef(text).getAsInteger(10, number))
    return fail(Status::InvalidValue, formatv("{0}: expected a number, got "
                                              "'{1}'",
                                              name, text));
  return Error::success();
}

static Error readSettings(Settings &settings) {
  sim::LaunchConfig &launch = settings.device.launch;
  if (std::string chips = readVariable("ATTN_SIM_CHIPS"); !chips.empty()) {
    settings.chips.clear();
    for (StringRef chip : llvm::split(chips, ','))
      settings.chips.push_back(chip.trim().str());
  }
  if (!readVariable("ATTN_SIM_SEED").empty())
    launch.schedule = sim::Schedule::Random;
  Error numbers = Error::success();
  auto read = [&](const char *name, auto &number) {
    numbers = llvm::joinErrors(std::move(numbers), readNumber(name, number));
  };
  read("ATTN_SIM_SEED", launch.seed);
  read("ATTN_SIM_JOBS", launch.threads);
  read("ATTN_SIM_STEP_LIMIT", launch.stepLimit);
  read("ATTN_SIM_MEMORY", settings.device.memory);
  read("ATTN_SIM_SMS", settings.sms);
  if (numbers)
    return numbers;
  std::string reports = readVariable("ATTN_SIM_REPORT");
  for (StringRef path : llvm::split(reports, ':'))
    if (!path.empty())
      settings.reportPaths.push_back(path.str());
  settings.keptPTX = readVariable("ATTN_SIM_PTX");
  settings.label = readVariable("ATTN_SIM_LABEL");
  settings.device.estimates = !readVariable("ATTN_SIM_ESTIMATE").empty();
  settings.device.recordings = readVariable("ATTN_SIM_RECORD");
  settings.isQuiet = !readVariable("ATTN_SIM_QUIET").empty();
  settings.wantsTable = !readVariable("ATTN_SIM_TABLE").empty();
  settings.findsSites = !readVariable("ATTN_SIM_SITES").empty();
  settings.logsCalls = !readVariable("ATTN_SIM_LOG").empty();
  launch.strict = !readVariable("ATTN_SIM_STRICT").empty();
  launch.sanitize = readVariable("ATTN_SIM_SANITIZE") != "0";
  std::string path = readVariable("ATTN_SIM_SUPPRESS");
  if (path.empty())
    return Error::success();
  Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  auto suppressions = parseSuppressions(*text, path);
  if (!suppressions)
    return suppressions.takeError();
  settings.suppressions = std::move(*suppressions);
  return Error::success();
}

Platform &Platform::get() {
  // Lives until the process ends: programs destroy objects in their own
  // destructors.
  static Platform *platform = [] {
    auto *made = new Platform;
    // Streams that live longer than what is registered behind them.
    llvm::outs();
    llvm::errs();
    std::atexit([] { Platform::get().finish(); });
    pthread_atfork(nullptr, nullptr, [] { isForked = true; });
    return made;
  }();
  return *platform;
}

Error Platform::start() {
  if (isStarted())
    return Error::success();
  if (Error error = readSettings(settings))
    return error;
  log.setSuppressions(settings.suppressions);
  log.setLabel(settings.label);
  for (const std::string &name : settings.chips) {
    Expected<const TargetRow &> row = findChip(name);
    if (!row) {
      devices.clear();
      return fail(Status::InvalidDevice, llvm::toString(row.takeError()));
    }
    int ordinal = devices.size();
    devices.push_back(std::make_unique<Device>(*row, log, settings.device));
    Device &device = *devices.back();
    given.push_back({contexts.add({ordinal}),
                     {ordinal, device.getDefaultStream(), 0, 0},
                     {ordinal, device.makeStream(StreamKind::Blocking), 1, 0}});
  }
  return Error::success();
}

Expected<Device *> Platform::getDevice(int ordinal) {
  if (ordinal < 0 || size_t(ordinal) >= devices.size())
    return fail(Status::InvalidDevice,
                formatv("expected a device below {0}, got {1}", devices.size(),
                        ordinal));
  return devices[ordinal].get();
}

std::vector<Handle> &Platform::getContexts() {
  static thread_local std::vector<Handle> contexts;
  return contexts;
}

Handle Platform::getPrimary(int ordinal) { return given[ordinal].context; }

Expected<int> Platform::getCurrentOrdinal() const {
  if (getContexts().empty() || !getContexts().back())
    return fail(Status::InvalidContext,
                "expected a current context (cuCtxSetCurrent), got none");
  Expected<Context *> context = contexts.get(getContexts().back());
  if (!context)
    return context.takeError();
  return (*context)->ordinal;
}

Expected<Device *> Platform::getCurrent() {
  Expected<int> ordinal = getCurrentOrdinal();
  if (!ordinal)
    return ordinal.takeError();
  return getDevice(*ordinal);
}

Expected<LoadedStream *> Platform::getStream(Handle handle) {
  auto number = reinterpret_cast<uintptr_t>(handle);
  if (number > kPerThreadStream)
    return streams.get(handle);
  Expected<int> ordinal = getCurrentOrdinal();
  if (!ordinal)
    return ordinal.takeError();
  return number == kPerThreadStream ? &given[*ordinal].perThreadStream
                                    : &given[*ordinal].defaultStream;
}

std::shared_ptr<Capture> Platform::findCapture(const Stream &stream) const {
  for (const std::shared_ptr<Capture> &capture : captures)
    if (capture->has(stream.actor))
      return capture;
  return nullptr;
}

Error Platform::submit(LoadedStream &stream, Work work) {
  if (std::shared_ptr<Capture> capture = findCapture(stream.stream)) {
    capture->add(stream.stream.actor, std::move(work));
    return Error::success();
  }
  return work(stream.stream);
}

Error Platform::checkNotCaptured(const LoadedStream &stream) const {
  if (!findCapture(stream.stream))
    return Error::success();
  return fail(Status::CaptureUnsupported,
              "expected a stream that the host can wait for, got a captured "
              "one");
}

void Platform::noteOnce(StringRef text) {
  if (noted.insert(text.str()).second)
    llvm::WithColor::note(llvm::errs(), "attn") << text << "\n";
}

void Platform::showFindings() {
  if (!settings.isQuiet)
    log.print(llvm::errs(), ReportForm::Text, shown);
  shown = log.getFindings().size();
}

void Platform::finish() {
  if (!isStarted() || isForked)
    return;
  if (settings.wantsTable)
    log.printTable(llvm::errs());
  for (const std::string &path : settings.reportPaths) {
    ReportForm form = getReportForm(path);
    if (Error error = writeFile(
            path, [&](llvm::raw_ostream &os) { log.print(os, form); }))
      llvm::logAllUnhandledErrors(std::move(error), llvm::errs(), "attn: ");
  }
}

int call(const char *name, llvm::function_ref<Error(Platform &)> body,
         bool needsStart) {
  Platform &platform = Platform::get();
  if (isForked) {
    lastError = {int(Status::NotInitialised),
                 "expected a process that was not forked from one that used "
                 "the driver: start workers by spawn"};
    return lastError.first;
  }
  std::lock_guard<std::mutex> lock(platform.mutex);
  Error error =
      needsStart && !platform.isStarted()
          ? fail(Status::NotInitialised, "expected cuInit before other calls")
          : body(platform);
  platform.showFindings();
  auto [status, text] = takeStatus(std::move(error));
  if (platform.settings.logsCalls)
    llvm::errs() << "attn: " << name << " = " << int(status)
                 << (text.empty() ? "" : ": ") << text << '\n';
  if (status == Status::Success)
    return 0;
  if (text.size() > kMostText)
    text.resize(kMostText);
  lastError = {int(status), std::move(text)};
  return int(status);
}

int callWork(const char *name, llvm::function_ref<Error(Platform &)> body) {
  std::string site;
  if (Platform::get().settings.findsSites && !isForked)
    site = findPythonSite();
  return call(name, [&](Platform &platform) {
    llvm::SaveAndRestore<std::string> keep(
        platform.site, platform.site.empty() ? site : platform.site);
    return body(platform);
  });
}

const std::string &getLastText(int status) {
  static const std::string none;
  return lastError.first == status ? lastError.second : none;
}

Error checkOutput(const void *pointer) {
  if (pointer)
    return Error::success();
  return fail(Status::InvalidValue,
              "expected a place for the result, got null");
}

} // namespace cuda
