//===- Flags.h - The flags of attn-sim ---------------------------*- C++
//-*-===//

#ifndef ATTN_TOOLS_ATTN_SIM_FLAGS_H
#define ATTN_TOOLS_ATTN_SIM_FLAGS_H

#include "Tool/VerifyFlag.h"
#include "attn/Simulator/Machine/LaunchConfig.h"
#include "llvm/Support/CommandLine.h"
#include <string>

namespace mlir::attn::sim {

/// Returns the values of --reads and --writes.
inline auto getTimings() {
  return llvm::cl::values(
      clEnumValN(AsyncTiming::Issue, "issue", "at once"),
      clEnumValN(AsyncTiming::Completion, "completion", "as late as possible"),
      clEnumValN(AsyncTiming::Random, "random", "seeded random"));
}

/// The flags. They are registered when this is made, not when the program is
/// loaded, so that several commands may be in one library.
struct Flags {
  llvm::cl::OptionCategory category{"attn-sim options"};

  llvm::cl::opt<std::string> ptxPath{llvm::cl::Positional,
                                     llvm::cl::desc("<kernel.ptx>"),
                                     llvm::cl::cat(category)};
  llvm::cl::opt<std::string> secondPath{
      llvm::cl::Positional, llvm::cl::Optional, llvm::cl::desc("[second.json]"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> launchPath{"launch", llvm::cl::value_desc("file"),
                                        llvm::cl::desc("Launch record (JSON)"),
                                        llvm::cl::cat(category)};
  llvm::cl::opt<std::string> newLaunchPath{
      "new-launch", llvm::cl::value_desc("file"),
      llvm::cl::desc(
          "Write a draft of a launch record for the PTX, to be filled in"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> kernelName{
      "kernel", llvm::cl::value_desc("name"),
      llvm::cl::desc("Kernel of --new-launch, where the PTX has several"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> recordedPath{
      "recorded", llvm::cl::value_desc("folder"),
      llvm::cl::desc("Run a recorded launch of another compiler"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> inputFlags{
      "in", llvm::cl::value_desc("tensor=file.npy"),
      llvm::cl::desc("Contents of an input; random without"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> outputFlags{
      "out", llvm::cl::value_desc("tensor=file.npy"),
      llvm::cl::desc("Write an output to a file"), llvm::cl::cat(category)};
  llvm::cl::list<std::string> expectFlags{
      "expect", llvm::cl::value_desc("tensor=file.npy"),
      llvm::cl::desc("Compare what the kernel leaves in a tensor with a file"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> sizeFlags{
      "size", llvm::cl::value_desc("q.dim2=300"),
      llvm::cl::desc("A size or stride that the record leaves open"),
      llvm::cl::cat(category)};
  llvm::cl::list<std::string> scalarFlags{
      "scalar", llvm::cl::value_desc("name=value"),
      llvm::cl::desc("The value of a scalar parameter"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> gridFlag{
      "grid", llvm::cl::value_desc("x,y,z"),
      llvm::cl::desc("CTAs of a persistent kernel, in place of the launch's"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> replayPath{
      "replay", llvm::cl::value_desc("witness.json"),
      llvm::cl::desc("Run the order of warps that attn-check-barriers has "
                     "written, and compare what is found"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> skeletonPath{
      "skeleton", llvm::cl::value_desc("skeleton.json"),
      llvm::cl::desc("Hold what each warp does against what "
                     "attn-check-barriers has proved"),
      llvm::cl::cat(category)};
  llvm::cl::opt<uint64_t> seed{
      "seed", llvm::cl::desc("Seed of inputs and of the schedule"),
      llvm::cl::init(0), llvm::cl::cat(category)};
  VerifyFlag verify{"Compare with the float64 reference:", category};
  llvm::cl::opt<llvm::cl::boolOrDefault> loseBets{
      "lose-bets",
      llvm::cl::desc(
          "With --verify, also run on scores that grow from block to block "
          "(default: where the run is short)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<double> tolerance{
      "tolerance", llvm::cl::init(-1),
      llvm::cl::desc("Largest relative error of O that passes"),
      llvm::cl::cat(category)};
  llvm::cl::opt<double> lseTolerance{
      "lse-tolerance", llvm::cl::init(-1),
      llvm::cl::desc("Largest error of LSE that passes"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> printJson{"json",
                                llvm::cl::desc("Print the report as JSON"),
                                llvm::cl::cat(category)};
  llvm::cl::opt<bool> corners{
      "corners",
      llvm::cl::desc("Also run every corner of schedule and timing, and "
                     "compare the outputs"),
      llvm::cl::cat(category)};
  llvm::cl::opt<Schedule> schedule{
      "schedule", llvm::cl::desc("Order in which warps advance:"),
      llvm::cl::values(clEnumValN(Schedule::RoundRobin, "round-robin",
                                  "fixed order, lowest warp first (default)"),
                       clEnumValN(Schedule::Random, "random", "seeded random")),
      llvm::cl::init(Schedule::RoundRobin), llvm::cl::cat(category)};
  llvm::cl::opt<uint32_t> lateCluster{
      "late", llvm::cl::value_desc("number"),
      llvm::cl::desc(
          "CTA, or cluster of CTAs, of each kernel that gets on last, by "
          "its place in the grid"),
      llvm::cl::cat(category)};
  llvm::cl::opt<uint32_t> startedClusters{
      "started", llvm::cl::value_desc("number"),
      llvm::cl::desc("CTAs, or clusters of CTAs, that start at first of a "
                     "kernel in which they may take others over"),
      llvm::cl::cat(category)};
  llvm::cl::opt<AsyncTiming> reads{
      "reads", llvm::cl::desc("When asynchronous operations read:"),
      getTimings(), llvm::cl::init(LaunchConfig().asyncReads),
      llvm::cl::cat(category)};
  llvm::cl::opt<AsyncTiming> writes{
      "writes", llvm::cl::desc("When asynchronous operations write:"),
      getTimings(), llvm::cl::init(LaunchConfig().asyncWrites),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> adversarial{
      "adversarial",
      llvm::cl::desc("False results of try_wait, random elected lanes"),
      llvm::cl::cat(category)};
  llvm::cl::opt<Profile> profile{
      "profile", llvm::cl::desc("Which orderings count:"),
      llvm::cl::values(
          clEnumValN(Profile::Isa, "isa", "what the PTX manual orders"),
          clEnumValN(Profile::Hw, "hw",
                     "also what shipped kernels assume (default)")),
      llvm::cl::init(Profile::Hw), llvm::cl::cat(category)};
  llvm::cl::list<std::string> assumeFlags{
      "assume", llvm::cl::value_desc("A1,A2,..."), llvm::cl::CommaSeparated,
      llvm::cl::desc("Assumptions to grant beyond --profile=isa"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> sanitize{
      "sanitize", llvm::cl::desc("Look for races and other errors"),
      llvm::cl::init(true), llvm::cl::cat(category)};
  llvm::cl::opt<uint64_t> stepLimit{
      "step-limit", llvm::cl::desc("Warp instructions that a CTA may run"),
      llvm::cl::init(LaunchConfig().stepLimit), llvm::cl::cat(category)};
  llvm::cl::opt<unsigned> maxFindings{
      "max-findings", llvm::cl::init(LaunchConfig().maxFindings),
      llvm::cl::desc("Findings that are shown; more are only counted"),
      llvm::cl::cat(category)};
  llvm::cl::opt<unsigned> threads{
      "jobs", llvm::cl::desc("Host threads; 0 takes all cores"),
      llvm::cl::init(0), llvm::cl::cat(category)};

  llvm::cl::opt<bool> wantsEstimate{
      "estimate", llvm::cl::desc("Estimate the time of the launch on the chip"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> wantsVary{
      "vary",
      llvm::cl::desc("Estimate for all values that the believed numbers of "
                     "the cycle model may have; implies --estimate"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> wantsComparison{
      "compare",
      llvm::cl::desc(
          "Compare two reports of --vary --json: which launch takes fewer "
          "cycles in all corners of the model, or which corner decides"),
      llvm::cl::cat(category)};
  llvm::cl::opt<bool> wantsSass{
      "sass", llvm::cl::desc("Count machine instructions (ptxas and nvdisasm)"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> tracePath{
      "trace", llvm::cl::value_desc("file.json"),
      llvm::cl::desc("Write a timeline that Perfetto reads"),
      llvm::cl::cat(category)};
  llvm::cl::opt<std::string> timelinePath{
      "timeline", llvm::cl::value_desc("file.html"),
      llvm::cl::desc("Write a timeline as a page"), llvm::cl::cat(category)};
  llvm::cl::opt<std::string> modelChip{
      "chip", llvm::cl::value_desc("chip"),
      llvm::cl::desc("Chip of --estimate, --sass and timelines; that of the "
                     "launch without"),
      llvm::cl::cat(category)};
  llvm::cl::opt<unsigned> registerCount{
      "registers",
      llvm::cl::desc("Registers of a thread for --estimate; ptxas says "
                     "without"),
      llvm::cl::init(0), llvm::cl::cat(category)};
};

} // namespace mlir::attn::sim

#endif // ATTN_TOOLS_ATTN_SIM_FLAGS_H
