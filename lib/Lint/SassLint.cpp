//===- SassLint.cpp - Checks of a kernel's machine code -------------------===//

#include "attn/Lint/SassLint.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using llvm::formatv;
using llvm::StringRef;

namespace {

/// Collects what is found about one kernel.
class Linter {
public:
  explicit Linter(const SassInput &input) : input(input) {}
  llvm::Expected<SassReport> run();

private:
  void checkLog();
  void checkLocal(const CodeListing &listing);
  void checkWaits();
  void checkRarePath();
  void checkRemoteArrivals(const CodeListing &listing);
  void checkBudget();
  void checkLoopBudget(llvm::StringRef name, const HotLoop &loop,
                       const HotLoop &budget);
  /// An error if `got` is more than `most`.
  void checkMost(const llvm::Twine &what, unsigned most, unsigned got);

  void addError(const llvm::Twine &text) {
    report.findings.push_back({/*isError=*/true, text.str()});
  }
  void addWarning(const llvm::Twine &text) {
    report.findings.push_back({/*isError=*/false, text.str()});
  }
  void leaveOut(const llvm::Twine &text) {
    report.notChecked.push_back(text.str());
  }

  const SassInput &input;
  SassReport report;
};

} // namespace

static std::string format(llvm::ArrayRef<CodeWait> waits) {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(waits, os, [&](const CodeWait &wait) {
    os << wait.work << " " << wait.pending;
  });
  return text.empty() ? "none" : text;
}

void Linter::checkMost(const llvm::Twine &what, unsigned most, unsigned got) {
  if (got > most)
    addError(formatv("expected at most {0} {1}, got {2}", most, what.str(), got)
                 .str());
}

void Linter::checkLog() {
  for (const AssemblerMessage &message : input.log->messages) {
    if (message.severity == AssemblerMessage::Severity::Info ||
        (!message.function.empty() && message.function != report.kernel))
      continue;
    // Spills are counted below.
    if (StringRef(message.text).starts_with("Registers are spilled"))
      continue;
    addError("ptxas" + (message.code.empty() ? "" : " " + message.code) + ": " +
             message.text);
  }
  for (const FunctionResources &function : input.log->functions)
    if (function.name == report.kernel) {
      report.registers = function.registers;
      report.spillBytes = function.spillStoreBytes + function.spillLoadBytes;
    }
  // A listing says where they are, which decides.
  if (input.budget || !input.listing)
    checkMost("bytes stored and loaded by spills",
              input.budget ? input.budget->spillBytes : 0, report.spillBytes);
}

void Linter::checkLocal(const CodeListing &listing) {
  for (const CodeInstruction &inst : listing.instructions) {
    report.localStores += inst.getBase() == "STL";
    report.localLoads += inst.getBase() == "LDL";
  }
  report.blockLoops = findBlockLoops(listing);
  for (const BlockLoop &loop : *report.blockLoops)
    if (loop.countSpills() != 0)
      addError(formatv("expected no spill instructions in the loop at {0:x} "
                       "({1}), which runs for each block of keys, got {2}",
                       loop.begin, loop.getWork(), loop.countSpills()));
  unsigned local = report.localStores + report.localLoads;
  if (input.budget)
    checkMost("instructions on local memory", input.budget->local, local);
  else if (local != report.countLoopSpills())
    addWarning(formatv("{0} spill instructions stand outside of the loops that "
                       "run for each block of keys",
                       local - report.countLoopSpills()));
}

void Linter::checkWaits() {
  const HotLoop &loop = *report.loop, &wanted = *report.ptxLoop;
  if (wanted.tensor == 0 || loop.tensor % wanted.tensor != 0) {
    leaveOut(formatv("waits of the hot loop: it has {0} tensor instructions, "
                     "that of the PTX {1}",
                     loop.tensor, wanted.tensor));
    return;
  }
  // ptxas may have unrolled the loop.
  std::vector<CodeWait> expected;
  for (unsigned copy = 0; copy != loop.tensor / wanted.tensor; ++copy)
    llvm::append_range(expected, wanted.waits);
  if (loop.waits != expected) {
    addError(formatv("expected the waits of the PTX in the hot loop, {0}, got "
                     "{1}",
                     format(expected), format(loop.waits)));
    return;
  }
  for (auto [i, pair] : llvm::enumerate(llvm::zip(expected, loop.waits))) {
    auto &[want, got] = pair;
    if (got.exponentials < want.exponentials)
      addWarning(formatv("wait {0} of the hot loop ({1} {2}) stands behind {3} "
                         "exponentials, in the PTX behind {4}",
                         i + 1, got.work, got.pending, got.exponentials,
                         want.exponentials));
  }
}

void Linter::checkRarePath() {
  if (report.loop->rareInside != 0 && !input.budget)
    addWarning(formatv("{0} instructions of a rare path stand inside of the "
                       "hot loop",
                       report.loop->rareInside));
}

void Linter::checkRemoteArrivals(const CodeListing &listing) {
  if (!hasRemoteArrival(listing))
    return;
  report.remote = findRemoteArrivals(listing);
  if (!report.remote) {
    leaveOut("arrivals in other CTAs: the listing has no words of instructions "
             "(nvdisasm -hex)");
    return;
  }
  for (const RemoteArrivals::Early &early : report.remote->early) {
    std::string loads;
    llvm::raw_string_ostream os(loads);
    llvm::interleaveComma(early.loads, os,
                          [&](unsigned load) { os << formatv("{0:x}", load); });
    addError(formatv("the {0} another CTA at {1:x} may overtake what nothing "
                     "has waited for: loads at {2}",
                     early.isSend ? "st.async to" : "arrival in", early.place,
                     loads));
  }
}

void Linter::checkLoopBudget(llvm::StringRef name, const HotLoop &loop,
                             const HotLoop &budget) {
  if (loop.tensor != budget.tensor) {
    addError(formatv("expected {0} tensor instructions in the {1}, got "
                     "{2}",
                     budget.tensor, name, loop.tensor));
    return;
  }
  checkMost("instructions in the " + name, budget.instructions,
            loop.instructions);
  for (const auto &[purpose, count] : loop.purposes) {
    auto most = budget.purposes.find(purpose);
    checkMost("instructions for " + purpose + " in the " + name,
              most == budget.purposes.end() ? 0 : most->second, count);
  }
  for (const auto &[opcode, most] : budget.moves) {
    auto got = loop.moves.find(opcode);
    if (got != loop.moves.end())
      checkMost(opcode + " in the " + name, most, got->second);
  }
  checkMost("instructions of a rare path inside of the " + name,
            budget.rareInside, loop.rareInside);
  if (loop.waits != budget.waits) {
    addError(formatv("expected the waits {0} in the {1}, got {2}",
                     format(budget.waits), name, format(loop.waits)));
    return;
  }
  for (auto [i, pair] : llvm::enumerate(llvm::zip(budget.waits, loop.waits))) {
    auto &[least, got] = pair;
    if (got.exponentials < least.exponentials)
      addError(formatv("expected at least {0} exponentials before wait {1} of "
                       "the {2}, got {3}",
                       least.exponentials, i + 1, name, got.exponentials));
  }
}

void Linter::checkBudget() {
  if (input.log)
    checkMost("registers", input.budget->registers, report.registers);
  if (report.loop)
    checkLoopBudget("hot loop", *report.loop, input.budget->loop);
  if (report.softmaxLoop && input.budget->softmaxLoop)
    checkLoopBudget("softmax loop", *report.softmaxLoop,
                    *input.budget->softmaxLoop);
  if (report.epilogue && input.budget->epilogue)
    checkLoopBudget("epilogue", *report.epilogue, *input.budget->epilogue);
}

llvm::Expected<SassReport> Linter::run() {
  report.kernel = input.kernel;
  std::optional<CodeListing> ptx;
  if (input.ptx) {
    llvm::Expected<CodeListing> parsed =
        parsePTXListing(*input.ptx, input.kernel);
    if (!parsed)
      return parsed.takeError();
    ptx = std::move(*parsed);
    report.kernel = ptx->kernel;
    report.ptxLoop = findHotLoop(*ptx, /*isPTX=*/true);
  }
  std::optional<CodeListing> listing;
  if (input.listing) {
    llvm::Expected<CodeListing> parsed =
        parseSassListing(*input.listing, report.kernel);
    if (!parsed)
      return parsed.takeError();
    listing = std::move(*parsed);
    report.kernel = listing->kernel;
    report.loop = findHotLoop(*listing, /*isPTX=*/false);
    if (auto softmax = findSoftmax(*listing, /*isPTX=*/false)) {
      report.softmaxLoop = std::move(softmax->loop);
      report.epilogue = std::move(softmax->epilogue);
    }
  }
  if (input.log)
    checkLog();
  else
    leaveOut("what ptxas says: no log");
  if (listing) {
    checkLocal(*listing);
    checkRemoteArrivals(*listing);
    if (!report.loop)
      leaveOut("the hot loop: no loop with tensor instructions");
  }
  if (report.loop) {
    checkRarePath();
    if (report.ptxLoop)
      checkWaits();
    else
      leaveOut("waits of the hot loop: no PTX with such a loop");
  }
  if (input.budget)
    checkBudget();
  return std::move(report);
}

llvm::Expected<SassReport> mlir::attn::lintSass(const SassInput &input) {
  return Linter(input).run();
}
