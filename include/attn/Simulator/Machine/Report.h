//===- Report.h - What a simulated launch found and counted -----*- C++ -*-===//
//
// Findings of the sanitizer with both sites, counters, and their JSON form.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SIMULATOR_MACHINE_REPORT_H
#define ATTN_SIMULATOR_MACHINE_REPORT_H

#include "attn/Simulator/Clocks/TouchedRange.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// Classes of findings.
enum class FindingKind {
  Race,
  UninitialisedRead,
  OutOfBounds,
  UseAfterFree,
  Misaligned,
  ReadOnlyWrite,
  BarrierMisuse,
  MbarrierMisuse,
  PhaseSlip,
  EarlyWait,
  Deadlock,
  StepLimit,
  EndlessLoop,
  Trap,
  InvalidOperation,
  ExitInFlight,
  TensorMemoryMisuse,
  RegisterPool,
};

/// `Error`: the kernel is wrong. `HwOnly`: right only under the hardware
/// assumptions of the profile. `Note`: legal, worth knowing.
enum class Severity { Error, HwOnly, Note };

/// The kind as JSON and messages spell it, such as "race".
llvm::StringRef stringifyFindingKind(FindingKind kind);
/// "error", "hw-only" or "note".
llvm::StringRef stringifySeverity(Severity severity);

/// Where an access or event happened.
struct Site {
  unsigned ptxLine = 0; ///< 1-based; 0 when there is no instruction
  std::string text;     ///< the instruction
  std::string file;     ///< from `.loc`, empty when absent
  unsigned line = 0;    ///< from `.loc`
  std::array<uint32_t, 3> cta = {0, 0, 0};
  int warp = -1;
  int lane = -1; ///< -1: several lanes or unknown
};

/// A second place of a finding, with a message.
struct FindingNote {
  std::string message;
  Site site;
};

/// One finding. `second` is the access during which it was found, `first` the
/// earlier one that it conflicts with, where there is one.
struct Finding {
  FindingKind kind = FindingKind::Race;
  Severity severity = Severity::Error;
  std::string message; ///< complete sentence without the sites
  std::string hint;    ///< the synchronisation that would have ordered them
  std::optional<Site> first;
  std::optional<Site> second;
  /// In place of the two sites where they would not say enough.
  std::vector<FindingNote> notes;
  std::string space;   ///< "shared", "global", "local", "tmem", or empty
  std::string buffer;  ///< allocation name, for global memory
  uint64_t offset = 0; ///< in the buffer or the space, in bytes
  uint64_t address = 0;
  uint64_t bytes = 0;
  uint64_t occurrences = 1; ///< same kind at the same pair of sites
  /// Where it occurred to several: all of them, such as "warps 0-3 of CTA
  /// (0,0,0)".
  std::string actors;

  llvm::json::Value toJSON() const;
  /// Prints one paragraph: `kernel.ptx:12: error: ...` with notes for both
  /// sites.
  void print(llvm::raw_ostream &os, llvm::StringRef file) const;
};

/// Wavefronts and conflicts of one class of shared-memory instruction. A
/// wavefront moves up to 128 bytes, each bank once.
struct SharedTraffic {
  uint64_t instructions = 0;
  uint64_t wavefronts = 0;
  uint64_t conflicts = 0; ///< wavefronts above the least possible number
  uint64_t bytes = 0;
};

/// Bytes between L2 and the SMs, in the sectors of 32 bytes that instructions
/// and copies ask for. There is no L1 in between.
struct L2Traffic {
  uint64_t readBytes = 0;      ///< leave L2; a multicast copy counts once
  uint64_t deliveredBytes = 0; ///< arrive; it counts at each destination
  uint64_t writtenBytes = 0;
  uint64_t atomicBytes = 0; ///< of atomics and reductions, bulk ones too

  void add(const L2Traffic &other);
  llvm::json::Value toJSON() const;
};

/// Waits of one kind.
struct WaitCounts {
  uint64_t waits = 0;   ///< warp instructions; of mbarriers: looks
  uint64_t stalled = 0; ///< those that did not go on at once
};

/// Counts over the whole launch.
struct Counters {
  uint64_t warpInstructions = 0;
  uint64_t laneInstructions = 0;
  /// Warp instructions by class ("fma", "alu", "ex2", "mma", "ld.shared", ...).
  std::map<std::string, uint64_t> classes;
  /// By "ld.shared", "st.shared", "atom.shared", "ldmatrix", "stmatrix",
  /// "cp.async".
  std::map<std::string, SharedTraffic> shared;
  uint64_t globalLoadInstructions = 0;
  uint64_t globalStoreInstructions = 0;
  uint64_t globalLoadSectors = 0; ///< 32-byte sectors, counted per instruction
  uint64_t globalStoreSectors = 0;
  uint64_t globalLoadBytes = 0;
  uint64_t globalStoreBytes = 0;
  uint64_t bulkLoadBytes = 0; ///< cp.async.bulk and tensor copies
  uint64_t bulkStoreBytes = 0;
  L2Traffic l2;
  /// By "barrier", "cluster barrier", "mbarrier", "registers" (setmaxnreg.inc)
  /// and "tensor memory" (tcgen05.alloc), in the schedule that ran.
  std::map<std::string, WaitCounts> waits;
  uint64_t mmaInstructions = 0;
  uint64_t mmaFlops = 0;
  uint64_t ex2Lanes = 0;
  uint64_t barriers = 0;

  void add(const Counters &other);
  llvm::json::Value toJSON() const;
};

struct Trace;

/// Bytes of what a cluster prints that are kept: those of a device's buffer.
constexpr uint64_t kMostPrinted = 1 << 20;

/// The result of a launch.
struct RunReport {
  /// True when every thread ran to its end.
  bool completed = false;
  std::vector<Finding> findings;
  uint64_t findingsDropped = 0; ///< beyond LaunchConfig::maxFindings
  /// Races of loads that nobody needs, without LaunchConfig::strict.
  uint64_t droppedLoadRaces = 0;
  /// Where the kernel has not done what LaunchConfig::replay says.
  std::string diverged;
  Counters counters;
  /// Clusters that have stored something in global memory.
  uint64_t storingClusters = 0;
  /// Warp instructions by line of the PTX, guarded ones included.
  std::map<unsigned, uint64_t> lines;
  /// With LaunchConfig::listsTouched, in the order of addresses: neighbours
  /// differ in what was done to them.
  std::vector<TouchedRange> touched;
  /// A thread has waited for the launches before (griddepcontrol.wait).
  bool hasWaited = false;
  /// With LaunchConfig::tracedClusters (Trace.h).
  std::shared_ptr<Trace> trace;
  double seconds = 0; ///< host time
  /// What LaunchConfig::watched variables of the module hold at the end.
  std::map<std::string, std::vector<uint8_t>> variables;

  /// The text that threads have printed (vprintf), by cluster and in its order;
  /// bytes beyond kMostPrinted of a cluster are counted.
  std::string printed;
  uint64_t printedDropped = 0;

  /// Completed and no finding of severity Error.
  bool isClean() const;
  /// Findings of a kind and severity Error.
  uint64_t countErrors(FindingKind kind) const;
  llvm::json::Value toJSON() const;
  void print(llvm::raw_ostream &os, llvm::StringRef file) const;
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_MACHINE_REPORT_H
