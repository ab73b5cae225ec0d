//===- ReplayVerdict.cpp - Does the simulator see the same? ---------------===//

#include "ReplayVerdict.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;

/// Assumptions that proofs under the profile isa may rest on.
static constexpr Assumption kOfProofs[] = {
    Assumption::MmaOrder, Assumption::CommitOrder, Assumption::ClusterScope};

llvm::Error sim::takeWitness(const LaunchRecord &record,
                             HarnessOptions &options) {
  const SyncWitness &witness = *options.replay;
  if (record.steps.size() != 1 || record.steps.front().kernel != witness.kernel)
    return createStringError("replay: expected a launch of kernel \"" +
                             witness.kernel + "\" alone, got " +
                             record.describeStep(0));
  if (witness.turns.empty())
    return createStringError(
        "replay: the witness has no order of warps: no launch takes the tiles "
        "that it needs in their order");
  const LaunchStep &step = record.steps.front();
  if (witness.runsAllTiles) {
    options.grid.emplace();
    for (unsigned axis : {0, 1, 2})
      (*options.grid)[axis] = step.cluster[axis];
  }
  LaunchConfig &config = options.config;
  config.replay = witness.turns;
  for (unsigned axis : {0, 1, 2})
    config.replayed[axis] = witness.block[axis];
  config.asyncReads = config.asyncWrites = AsyncTiming::Issue;
  config.schedule = Schedule::RoundRobin;
  config.adversarial = false;
  config.profile = witness.profile == "hw" ? Profile::Hw : Profile::Isa;
  for (Assumption assumption : kOfProofs)
    config.assumptions |= 1u << (unsigned(assumption) - 1);
  return llvm::Error::success();
}

/// How the simulator calls what the check does.
static bool isOfKind(FindingKind kind, llvm::StringRef fault) {
  bool isMisuse =
      kind == FindingKind::MbarrierMisuse || kind == FindingKind::BarrierMisuse;
  return llvm::StringSwitch<bool>(fault)
      .Case("phase slip", kind == FindingKind::PhaseSlip)
      .Case("early wait", kind == FindingKind::EarlyWait)
      .Case("deadlock", kind == FindingKind::Deadlock)
      .Case("unwritten tensor memory", kind == FindingKind::UninitialisedRead)
      .Case("exit in flight", kind == FindingKind::ExitInFlight)
      .Cases({"race", "missing proxy fence", "missing tensor fence"},
             kind == FindingKind::Race)
      .Case("result in flight",
            kind == FindingKind::Race || kind == FindingKind::InvalidOperation)
      .Case("request after a denial", kind == FindingKind::InvalidOperation)
      .Case("lifetime", isMisuse || kind == FindingKind::ExitInFlight ||
                            kind == FindingKind::Race ||
                            kind == FindingKind::TensorMemoryMisuse)
      .Default(isMisuse);
}

/// Whether those who take part in a finding take part in the witness: by the
/// lines of their ops where the PTX has these, else by their warps.
static bool hasSameSites(const SyncWitness &witness, const Finding &finding) {
  std::set<std::pair<int64_t, int64_t>> warps;
  std::set<unsigned> lines;
  for (const WitnessSite &site : witness.sites) {
    warps.insert({site.cta, site.warp});
    lines.insert(site.line);
  }
  unsigned known = 0;
  for (const std::optional<Site> &site : {finding.first, finding.second}) {
    if (!site || (site->warp < 0 && site->line == 0))
      continue;
    ++known;
    int64_t rank = int64_t(site->cta[0]) - witness.block[0];
    if (site->line ? !lines.count(site->line)
                   : !warps.count({rank, site->warp}))
      return false;
  }
  return known != 0;
}

static std::string describe(const Finding &finding) {
  std::string text = stringifyFindingKind(finding.kind).str();
  llvm::StringRef word = " at";
  for (const std::optional<Site> &site : {finding.second, finding.first})
    if (site && site->ptxLine) {
      text += llvm::formatv("{0} line {1}", word, site->ptxLine);
      word = " and";
    }
  return text;
}

ReplayVerdict sim::judgeReplay(const SyncWitness &witness,
                               const RunReport &run) {
  if (!run.diverged.empty())
    return {false,
            "the kernel does not do what the witness says: " + run.diverged};
  for (const Finding &finding : run.findings) {
    if (!isOfKind(finding.kind, witness.fault))
      continue;
    // That they wait for the same was seen at the end of each turn.
    if (finding.kind == FindingKind::Deadlock)
      return {true, "the same: a deadlock with the waiters of the witness"};
    if (hasSameSites(witness, finding))
      return {true, "the same: " + describe(finding)};
  }
  if (run.findings.empty())
    return {false, "expected '" + witness.fault +
                       "' as the witness says, got no finding"};
  return {false, "expected '" + witness.fault + "' as the witness says, got " +
                     describe(run.findings.front())};
}
