//===- Device.h - A GPU that is simulated -----------------------*- C++ -*-===//
//
// Does for a program what a CUDA driver does, over the simulator: memory,
// modules, streams, events and launches. Work is done when it is asked for, in
// the caller's thread; what may run at the same time on a GPU is known from the
// order of streams (StreamOrder.h), and what nothing orders is a finding.
//
//   FindingLog &log;
//   Device device(chip, log, DeviceOptions());
//   Module *module = cantFail(device.loadModule(ptx));
//   Function kernel = cantFail(device.getFunction(*module, "add"));
//   uint64_t x = cantFail(device.getMemory().allocate(bytes, "x"));
//   ...
//   cantFail(device.launch(request, device.getDefaultStream()));
//   log.print(os, ReportForm::Text);
//
// Not for concurrent use by several threads.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DEVICE_DEVICE_H
#define ATTN_DEVICE_DEVICE_H

#include "attn/Device/DeviceMemory.h"
#include "attn/Device/FindingLog.h"
#include "attn/Device/LaunchCosts.h"
#include "attn/Device/Module.h"
#include "attn/Device/StreamOrder.h"
#include "attn/Target/TargetTable.h"

namespace mlir::attn::device {

/// How a device is to be.
struct DeviceOptions {
  /// Bytes of device memory; 0: half of the host's.
  uint64_t memory = 0;
  /// Schedule, seed, timing, profile and limits of launches.
  sim::LaunchConfig launch;
  /// A folder for recordings of launches that new findings come from; empty:
  /// none are made.
  std::string recordings;
  /// Launches are estimated by the cycle model.
  bool estimates = false;
};

/// A launch of a kernel.
struct LaunchRequest {
  const Function *function = nullptr;
  std::array<uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  /// Zeros: as the kernel declares it, or no cluster.
  std::array<uint32_t, 3> cluster = {0, 0, 0};
  uint32_t dynamicShared = 0; ///< bytes
  /// The kernel's parameters, as KernelInfo lays them out.
  std::vector<uint8_t> params;
  /// All CTAs have to be on the chip at once.
  bool isCooperative = false;
  /// It may begin while the kernel in front of it in the stream runs.
  bool isProgrammatic = false;
  /// The caller's line, for reports.
  std::string site;
};

/// Work in order.
struct Stream {
  uint32_t actor = 0;
  StreamKind kind = StreamKind::Blocking;
  /// The last kernel, if it is the last operation, and what it has done.
  TurnRef lastTurn = nullptr;
  std::shared_ptr<const sim::EarlierLaunch> lastLaunch = nullptr;
};

/// A point in a stream's work.
struct Event {
  bool isRecorded = false;
  OrderClock clock;
  double seconds = 0; ///< of the device's clock, when it was recorded
};

class Device {
public:
  /// `log` takes what launches are found to do, and outlives the device.
  Device(const TargetRow &chip, FindingLog &log,
         const DeviceOptions &options = DeviceOptions());
  ~Device();

  const TargetRow &getChip() const { return chip; }
  DeviceMemory &getMemory() { return memory; }
  StreamOrder &getOrder() { return order; }
  Stream &getDefaultStream() { return defaultStream; }
  /// Seconds of work so far.
  double getSeconds() const { return seconds; }

  /// Loads PTX, and places its variables.
  llvm::Expected<Module *> loadModule(llvm::StringRef ptx,
                                      llvm::StringRef name = "module.ptx");
  llvm::Error unloadModule(Module &module);
  /// Finds a kernel of a module. The error says what the module has.
  llvm::Expected<Function> getFunction(Module &module,
                                       llvm::StringRef name) const;

  /// Returns how many CTAs of so many threads and bytes of shared memory fit on
  /// an SM.
  uint64_t countResident(uint64_t threads, uint64_t shared) const;

  /// Runs a launch behind the stream's work. What the sanitizer finds goes to
  /// the log; the error is for a launch that cannot start, or that a fault has
  /// ended.
  llvm::Error launch(const LaunchRequest &request, Stream &stream);

  /// Copies bytes between any memory, behind the stream's work.
  llvm::Error copy(uint64_t to, uint64_t from, uint64_t bytes, Stream &stream,
                   llvm::StringRef site = "");
  /// Repeats a pattern of 1, 2 or 4 bytes.
  llvm::Error fill(uint64_t to, uint32_t pattern, unsigned width,
                   uint64_t count, Stream &stream, llvm::StringRef site = "");
  /// Frees device memory behind the stream's work; without a stream when all
  /// work is over. `what` is the call, for reports.
  llvm::Error free(uint64_t address, Stream *stream, llvm::StringRef what,
                   llvm::StringRef site = "");

  Stream makeStream(StreamKind kind);
  /// A stream of part of a graph, which comes after what `before` knows.
  Stream makeBranch(const OrderClock &before);
  void dropStream(const Stream &stream) { order.dropStream(stream.actor); }
  void record(Event &event, const Stream &stream);
  /// Later work of the stream waits for the event.
  void wait(Stream &stream, const Event &event);
  /// The host waits for it.
  void synchronise(const Event &event);

private:
  llvm::Error checkLaunch(const LaunchRequest &request) const;
  sim::LaunchConfig makeConfig(const LaunchRequest &request,
                               const std::array<uint32_t, 3> &cluster) const;
  /// Returns the launch that this one may overlap; null: none.
  std::shared_ptr<const sim::EarlierLaunch>
  findOverlap(const LaunchRequest &request, const Stream &stream) const;
  /// Notes that an operation touches memory, and logs races.
  void note(const TurnRef &turn, llvm::ArrayRef<sim::TouchedRange> touched);

  const TargetRow &chip;
  DeviceOptions options;
  DeviceMemory memory;
  StreamOrder order;
  LaunchCosts costs;
  FindingLog &log;
  Stream defaultStream;
  std::vector<std::unique_ptr<Module>> modules;
  uint64_t copies = 0;
  double seconds = 0;
};

} // namespace mlir::attn::device

#endif // ATTN_DEVICE_DEVICE_H
