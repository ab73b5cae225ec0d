//===- Launch.cpp - Launches on a simulated GPU ---------------------------===//

#include "attn/Device/Device.h"
#include "attn/Device/Recording.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::formatv;

/// The cluster of a launch.
static std::array<uint32_t, 3> getCluster(const LaunchRequest &request) {
  if (request.cluster[0])
    return request.cluster;
  const std::array<uint32_t, 3> &declared =
      request.function->kernel->reqnctapercluster;
  return declared[0] ? declared : std::array<uint32_t, 3>{1, 1, 1};
}

uint64_t Device::countResident(uint64_t threads, uint64_t shared) const {
  uint64_t bySize =
      chip.sharedBytesPerSM / (shared + std::max(1u, chip.sharedBytesReserved));
  return std::min<uint64_t>(
      {bySize, chip.maxThreadsPerSM / std::max<uint64_t>(threads, 1),
       chip.maxCTAsPerSM});
}

Error Device::checkLaunch(const LaunchRequest &request) const {
  const Function &function = *request.function;
  const sim::KernelInfo &kernel = *function.kernel;
  uint64_t threads = 1, ctas = 1, clusterCtas = 1;
  std::array<uint32_t, 3> cluster = getCluster(request);
  for (unsigned axis : {0, 1, 2}) {
    threads *= std::min<uint64_t>(request.block[axis], 1 << 20);
    ctas *= request.grid[axis];
    clusterCtas *= std::min<uint32_t>(cluster[axis], 1 << 20);
  }
  if (threads > chip.maxThreadsPerCTA)
    return fail(Status::InvalidValue,
                formatv("kernel '{0}': expected at most {1} threads a CTA, got "
                        "{2}",
                        kernel.name, chip.maxThreadsPerCTA, threads));
  uint64_t shared = uint64_t(kernel.staticShared) + request.dynamicShared;
  if (shared > chip.sharedBytesPerCTA)
    return fail(
        Status::InvalidValue,
        formatv("kernel '{0}': expected at most {1} bytes of shared memory on "
                "{2}, got {3} static and {4} dynamic ones, in all {5}",
                kernel.name, chip.sharedBytesPerCTA, chip.chip,
                kernel.staticShared, request.dynamicShared, shared));
  if (request.dynamicShared > function.maxDynamicShared)
    return fail(Status::InvalidValue,
                formatv("kernel '{0}': expected at most {1} bytes of dynamic "
                        "shared memory, as the function's attribute says, got "
                        "{2}",
                        kernel.name, function.maxDynamicShared,
                        request.dynamicShared));
  uint64_t mostCtas = function.allowsLargeClusters && chip.maxClusterSize > 1
                          ? 16
                          : chip.maxClusterSize;
  if (clusterCtas > mostCtas)
    return fail(Status::InvalidValue,
                formatv("kernel '{0}': expected clusters of at most {1} CTAs "
                        "on {2}, got {3}",
                        kernel.name, mostCtas, chip.chip, clusterCtas));
  uint64_t resident = chip.smCount * countResident(threads, shared);
  if (request.isCooperative && ctas > resident)
    return fail(Status::OutOfResources,
                formatv("kernel '{0}': expected at most {1} CTAs of a "
                        "cooperative launch on {2}, got {3}",
                        kernel.name, resident, chip.chip, ctas));
  return Error::success();
}

sim::LaunchConfig
Device::makeConfig(const LaunchRequest &request,
                   const std::array<uint32_t, 3> &cluster) const {
  sim::LaunchConfig config = options.launch;
  config.kernel = request.function->kernel->name;
  config.grid = request.grid;
  config.block = request.block;
  config.cluster = cluster;
  config.dynamicShared = request.dynamicShared;
  config.params = request.params;
  config.variables = &request.function->module->variables;
  config.listsTouched = true;
  uint64_t threads =
      uint64_t(request.block[0]) * request.block[1] * request.block[2];
  uint64_t shared =
      uint64_t(request.function->kernel->staticShared) + request.dynamicShared;
  uint64_t ctas = uint64_t(cluster[0]) * cluster[1] * cluster[2];
  config.residentClusters = std::max<uint64_t>(
      1, chip.smCount * countResident(threads, shared) / ctas);
  return config;
}

/// The error code of a launch that has not come to its end.
static Status getFaultStatus(const sim::RunReport &report) {
  for (const sim::Finding &finding : report.findings) {
    if (finding.severity != sim::Severity::Error)
      continue;
    switch (finding.kind) {
    case sim::FindingKind::OutOfBounds:
    case sim::FindingKind::UseAfterFree:
    case sim::FindingKind::ReadOnlyWrite:
      return Status::IllegalAddress;
    case sim::FindingKind::Misaligned:
      return Status::Misaligned;
    case sim::FindingKind::Trap:
      return finding.message.find("assert") != std::string::npos
                 ? Status::Assert
                 : Status::IllegalInstruction;
    case sim::FindingKind::Deadlock:
    case sim::FindingKind::EndlessLoop:
    case sim::FindingKind::StepLimit:
      return Status::Timeout;
    default:
      break;
    }
  }
  return Status::LaunchFailed;
}

/// The first error of a report, in a line.
static std::string describeFault(const sim::RunReport &report) {
  for (const sim::Finding &finding : report.findings) {
    if (finding.severity != sim::Severity::Error)
      continue;
    std::string place;
    if (finding.second && !finding.second->file.empty())
      place = formatv("{0}:{1}: ", finding.second->file, finding.second->line);
    return place + finding.message;
  }
  return "it did not come to its end";
}

std::shared_ptr<const sim::EarlierLaunch>
Device::findOverlap(const LaunchRequest &request, const Stream &stream) const {
  if (!request.isProgrammatic || !stream.lastTurn ||
      order.isOver(*stream.lastTurn))
    return nullptr;
  return stream.lastLaunch;
}

/// The launch alone: of a chain in which nothing waits the last two count.
static std::shared_ptr<const sim::EarlierLaunch>
forgetOlder(std::shared_ptr<const sim::EarlierLaunch> launch) {
  if (!launch || !launch->before)
    return launch;
  return std::make_shared<const sim::EarlierLaunch>(
      sim::EarlierLaunch{launch->what, launch->touched});
}

Error Device::launch(const LaunchRequest &request, Stream &stream) {
  if (Error error = checkLaunch(request))
    return error;
  const sim::KernelInfo &kernel = *request.function->kernel;
  sim::LaunchConfig config = makeConfig(request, getCluster(request));
  config.earlier = findOverlap(request, stream);
  std::optional<LaunchRecorder> recorder;
  if (!options.recordings.empty())
    recorder.emplace(memory.getMemory(), chip.chip);
  const std::string &ptx = request.function->module->ptx;
  if (options.estimates)
    costs.prepare(ptx, config);
  Expected<sim::RunReport> report =
      sim::run(*request.function->module->program, memory.getMemory(), config);
  if (!report)
    return fail(Status::InvalidValue, "kernel '" + kernel.name + "': " +
                                          llvm::toString(report.takeError()));
  size_t known = log.getFindings().size();
  LaunchCost cost;
  if (options.estimates && report->completed)
    cost = costs.take(ptx, kernel, config, *report);
  uint64_t number = log.addLaunch(kernel.name, request.site, *report, cost);
  seconds += report->seconds;
  std::string what = formatv("kernel '{0}' (launch {1})", kernel.name, number);
  TurnRef turn = order.begin(stream.actor, {what, request.site});
  note(turn, report->touched);
  stream.lastTurn = turn;
  stream.lastLaunch =
      std::make_shared<const sim::EarlierLaunch>(sim::EarlierLaunch{
          std::move(what), report->touched,
          report->hasWaited ? nullptr : forgetOlder(config.earlier)});
  if (recorder && log.getFindings().size() != known) {
    std::string folder =
        formatv("{0}/{1}-{2}", options.recordings, kernel.name, number);
    if (Error error = recorder->write(folder, ptx, kernel, config, *report))
      return fail(Status::FileNotFound, llvm::toString(std::move(error)));
  }
  if (!report->printed.empty())
    llvm::outs() << report->printed;
  llvm::outs().flush();
  if (report->completed)
    return Error::success();
  return fail(getFaultStatus(*report),
              "kernel '" + kernel.name + "': " + describeFault(*report));
}
