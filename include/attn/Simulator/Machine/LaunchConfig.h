//===- LaunchConfig.h - How a launch is to run ------------------*- C++ -*-===//

#ifndef ATTN_SIMULATOR_MACHINE_LAUNCHCONFIG_H
#define ATTN_SIMULATOR_MACHINE_LAUNCHCONFIG_H

#include "attn/Simulator/Clocks/TouchedRange.h"
#include "attn/Support/Assumption.h"
#include "attn/Support/Progress.h"
#include "attn/Support/ReplayTurn.h"
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn::sim {

struct ModuleVariables;

using attn::Assumption;
using attn::numAssumptions;

/// In which order ready warps and pending engine operations advance.
enum class Schedule {
  RoundRobin, ///< fixed quantum, lowest warp first
  Random,     ///< seeded random warp and quantum
};

/// When an asynchronous operation reads its operands or writes its results.
/// The corners are separate runs; values may differ between them only when
/// there is a race.
enum class AsyncTiming {
  Issue,      ///< at once, when the instruction executes
  Completion, ///< as late as the synchronisation allows
  Random,     ///< seeded choice for each operation
};

/// Which orderings count (docs/Simulator.md): `Isa` takes what the PTX manual
/// orders, `Hw` adds the closed list of assumptions that shipped kernels use.
enum class Profile { Isa, Hw };

/// A launch that may still run when another one begins.
struct EarlierLaunch {
  /// Accesses of the one before have this epoch, those of its own `before` a
  /// later one, which no wait makes known.
  static constexpr uint32_t LastEpoch = 1;

  std::string what; ///< "kernel 'add' (launch 3)"
  /// In the order of addresses.
  std::vector<TouchedRange> touched;
  /// One that it may have overlapped and has not waited for, so that its end
  /// says nothing of that one's; null: none.
  std::shared_ptr<const EarlierLaunch> before = nullptr;
};

/// Everything that one launch needs.
struct LaunchConfig {
  std::string kernel; ///< may be empty when the module has one kernel
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::array<uint32_t, 3> cluster = {1, 1, 1};
  uint32_t dynamicShared = 0; ///< bytes
  /// The flat parameter buffer, laid out by KernelInfo::params.
  std::vector<uint8_t> params;

  Schedule schedule = Schedule::RoundRobin;
  uint64_t seed = 0;
  /// The cluster that comes last, by its place in the grid (x first), as far as
  /// the others do not wait for it; then all clusters run interleaved.
  std::optional<uint32_t> lateCluster;
  /// Clusters that start at first where they may take others over: those that
  /// have not started then start as others end. Half of all without, or in
  /// random schedules as many as the seed says.
  std::optional<uint32_t> startedClusters;
  /// Which warps of a cluster go on first, one after the other, each until it
  /// cannot; then the order is that of `schedule`. Operations of engines end at
  /// once, and registers are not waited for.
  std::vector<ReplayTurn> replay;
  /// With `replay`: the first CTA of the only cluster that runs.
  std::array<uint32_t, 3> replayed = {0, 0, 0};
  /// The clusters that run, by their places in the grid (x first); empty: all.
  /// For kernels whose clusters do not need each other.
  std::vector<uint32_t> chosenClusters;
  AsyncTiming asyncReads = AsyncTiming::Issue;
  AsyncTiming asyncWrites = AsyncTiming::Completion;
  /// Injects false results into satisfied try_wait and elects random lanes.
  bool adversarial = false;

  bool sanitize = true;
  /// Reports races of loads whose value reaches no store, branch, address or
  /// product; without it they are counted (RunReport::droppedLoadRaces).
  bool strict = true;
  Profile profile = Profile::Hw;
  /// What is assumed beyond the profile: bit n - 1 grants assumption n.
  uint16_t assumptions = 0;
  /// Whether the profile or `assumptions` grants it.
  bool assumes(Assumption a) const {
    return profile == Profile::Hw || (assumptions >> (unsigned(a) - 1) & 1);
  }
  /// Warp instructions that one CTA may execute before the run is stopped.
  uint64_t stepLimit = 2000000000;
  /// Findings kept in full; more are only counted.
  unsigned maxFindings = 50;
  /// Host threads over independent clusters; 0 takes all cores. A kernel whose
  /// CTAs can talk to each other through global memory always runs on one. The
  /// report does not depend on the number: a launch in which something is found
  /// is run again in the order of its clusters.
  unsigned threads = 0;
  /// Clusters, spread over the grid, whose steps are recorded in
  /// RunReport::trace. They run one after the other.
  unsigned tracedClusters = 0;
  /// What is recorded of them is what their warps do about synchronisation.
  bool notesSync = false;
  /// CTAs that fit on the device at once when they have to run interleaved.
  unsigned residentClusters = 132;
  /// Bytes of host memory that the launch may take; 0 is what the machine has.
  uint64_t memoryLimit = 0;
  /// Hears how far the launch is, from the thread that called run(), and may
  /// stop it. Not owned.
  ProgressMeter *progress = nullptr;
  /// Lists the global memory that the kernel touches (RunReport::touched),
  /// where the launch is sanitized.
  bool listsTouched = false;
  /// The launch that this one may overlap, up to its griddepcontrol.wait; null:
  /// all launches before are over. Its values are there either way: accesses
  /// in front of the wait are races.
  std::shared_ptr<const EarlierLaunch> earlier;
  /// Where the variables of the module are, if it is loaded (loadVariables);
  /// null: they live as long as the launch. Not owned.
  const ModuleVariables *variables = nullptr;
  /// Variables of the module that are read at the end.
  std::vector<std::string> watched;
  /// Bytes that the kernel will have stored at its end, where that is known: a
  /// measure of progress for CTAs that live as long as the launch.
  uint64_t expectedStores = 0;
};

} // namespace mlir::attn::sim

#endif // ATTN_SIMULATOR_MACHINE_LAUNCHCONFIG_H
