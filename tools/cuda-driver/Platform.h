//===- Platform.h - Devices and handles of the process ----------*- C++ -*-===//

#ifndef ATTN_TOOLS_CUDA_DRIVER_PLATFORM_H
#define ATTN_TOOLS_CUDA_DRIVER_PLATFORM_H

#include "HandleTable.h"
#include "attn/Device/Graph.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <mutex>
#include <optional>
#include <set>

namespace cuda {

using llvm::Error;
using llvm::Expected;
using mlir::attn::device::Device;
using mlir::attn::device::fail;
using mlir::attn::device::Status;

/// A context: all of a device's are the same.
struct Context {
  int ordinal = 0;
};
struct LoadedModule {
  int ordinal = 0;
  mlir::attn::device::Module *module = nullptr;
  /// Handles of functions by name: one for each, however often it is asked for.
  std::map<std::string, Handle> functions;
  /// Loaded as a library: its kernels are functions, too.
  bool isLibrary = false;
};
struct LoadedFunction {
  int ordinal = 0;
  mlir::attn::device::Function function;
  Handle module = nullptr;
};
struct LoadedStream {
  int ordinal = 0;
  mlir::attn::device::Stream stream;
  uint64_t id = 0;
  unsigned flags = 0;
};
struct LoadedEvent {
  int ordinal = 0;
  mlir::attn::device::Event event;
  /// Set where it was recorded in a captured stream.
  std::shared_ptr<mlir::attn::device::Capture> capture;
  mlir::attn::device::Capture::Tips tips;
};
struct LoadedGraph {
  int ordinal = 0;
  std::shared_ptr<const mlir::attn::device::Graph> graph;
  /// What its launches have come to: one runs behind the other.
  std::shared_ptr<mlir::attn::device::OrderClock> end;
};

/// How the environment wants the stand-in (docs/StandInDriver.md).
struct Settings {
  std::vector<std::string> chips = {"sm_90a"};
  mlir::attn::device::DeviceOptions device;
  unsigned sms = 0; ///< that devices say they have; 0: the board's
  std::vector<std::string> reportPaths;
  std::string keptPTX; ///< folder of the PTX of machine code
  std::string label;   ///< in front of kernels' names in reports
  std::vector<mlir::attn::device::Suppression> suppressions;
  bool isQuiet = false, wantsTable = false, logsCalls = false;
  /// Looks for the line of Python that a call comes from.
  bool findsSites = false;
};

/// All of it. Locked while a call runs.
class Platform {
public:
  static Platform &get();

  /// Reads the environment and makes the devices.
  Error start();
  bool isStarted() const { return !devices.empty(); }
  size_t countDevices() const { return devices.size(); }
  Expected<Device *> getDevice(int ordinal);
  /// The device of the thread's current context.
  Expected<int> getCurrentOrdinal() const;
  Expected<Device *> getCurrent();
  /// A stream that a program names; null and the two numbers are those of the
  /// current device.
  Expected<LoadedStream *> getStream(Handle handle);

  /// Does work of a stream, or adds it to the stream's capture.
  Error submit(LoadedStream &stream, mlir::attn::device::Work work);
  /// The capture that a stream is part of, or null.
  std::shared_ptr<mlir::attn::device::Capture>
  findCapture(const mlir::attn::device::Stream &stream) const;
  /// An error in a stream that is captured, where the call has no place.
  Error checkNotCaptured(const LoadedStream &stream) const;

  /// The thread's contexts, the current one last.
  static std::vector<Handle> &getContexts();
  Handle getPrimary(int ordinal);

  /// Says what the stand-in lacks, once.
  void noteOnce(llvm::StringRef text);
  mlir::attn::device::FindingLog &getLog() { return log; }
  /// Shows findings that were logged since the last time.
  void showFindings();
  /// Writes the report that the environment asks for.
  void finish();

  Settings settings;
  std::mutex mutex;
  HandleTable<Context> contexts{1, "context"};
  HandleTable<LoadedModule> modules{2, "module"};
  HandleTable<LoadedFunction> functions{3, "function"};
  HandleTable<LoadedStream> streams{4, "stream"};
  HandleTable<LoadedEvent> events{5, "event"};
  HandleTable<LoadedGraph> graphs{6, "graph"};
  /// Captures that have not ended.
  std::vector<std::shared_ptr<mlir::attn::device::Capture>> captures;
  std::string site; ///< of the caller, if it has said so

private:
  mlir::attn::device::FindingLog log;
  std::vector<std::unique_ptr<Device>> devices;
  /// Each device has these without a program's asking.
  struct Given {
    Handle context = nullptr;
    LoadedStream defaultStream, perThreadStream;
  };
  std::vector<Given> given;
  size_t shown = 0;
  std::set<std::string> noted;
};

/// Runs the body of a driver call: under the lock, with the error as its code
/// and its text kept for cuGetErrorString.
int call(const char *name, llvm::function_ref<Error(Platform &)> body,
         bool needsStart = true);

/// Runs a call that does work in a stream, or makes memory, in this way:
/// reports name the line that it comes from.
int callWork(const char *name, llvm::function_ref<Error(Platform &)> body);

/// The text of the thread's last error with this code; empty without one.
const std::string &getLastText(int status);

/// That a pointer that the call writes to is one.
Error checkOutput(const void *pointer);

} // namespace cuda

#endif // ATTN_TOOLS_CUDA_DRIVER_PLATFORM_H
