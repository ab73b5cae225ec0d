//===- ProgressBar.cpp - Progress on standard error -----------------------===//

#include "attn/Support/ProgressBar.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/WithColor.h"
#include <algorithm>

using namespace mlir::attn;

std::string mlir::attn::formatDuration(double seconds) {
  if (seconds < 90)
    return llvm::formatv("{0:f0} s", std::max(seconds, 0.0));
  if (seconds < 90 * 60)
    return llvm::formatv("{0:f0} min", seconds / 60);
  return llvm::formatv("{0:f1} h", seconds / 3600);
}

ProgressBar::ProgressBar(llvm::raw_ostream &os, llvm::StringRef program,
                         bool isTerminal, unsigned columns)
    : os(os), program(program.str()), isTerminal(isTerminal), columns(columns),
      start(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() { clear(); }

void ProgressBar::clear() {
  if (width)
    os << '\r' << std::string(width, ' ') << '\r';
  width = 0;
}

std::string ProgressBar::makeLine(const ProgressState &state,
                                  llvm::StringRef amount,
                                  llvm::StringRef left) const {
  unsigned space = columns ? columns : llvm::sys::Process::StandardErrColumns();
  // A terminal that fills its last column begins a new line.
  space = space ? space - 1 : 79;
  std::string text = amount.str();
  for (llvm::StringRef more : {left, state.detail})
    if (!more.empty())
      text += (text.empty() ? "" : ", ") + more.str();
  constexpr size_t mostCells = 30, leastCells = 5;
  size_t taken = llvm::formatv("{0,-14} [] ", state.phase).str().size();
  // The name, a bar and the amount, or those without the bar.
  for (llvm::StringRef end : {llvm::StringRef(text), amount}) {
    if (taken + leastCells + end.size() > space)
      continue;
    size_t cells = std::min(mostCells, space - taken - end.size());
    size_t filled = std::max(0, int(cells * state.fraction));
    return llvm::formatv("{0,-14} [{1}{2}] {3}", state.phase,
                         std::string(filled, '#'),
                         std::string(cells - filled, '-'), end);
  }
  return (state.phase + " " + llvm::StringRef(text).ltrim())
      .str()
      .substr(0, space);
}

void ProgressBar::show(const ProgressState &state, double seconds) {
  constexpr double quiet = 2, interval = 10, longRun = 60;
  if (isFirst && state.secondsLeft > longRun)
    llvm::WithColor::warning(os, program)
        << "the run takes about " << formatDuration(state.secondsLeft)
        << "; a smaller problem ends sooner\n";
  isFirst = false;
  if (seconds < quiet || (!isTerminal && seconds < nextLine))
    return;
  nextLine = seconds + interval;
  std::string amount, left;
  if (state.fraction >= 0)
    amount = llvm::formatv("{0,3} %", int(100 * state.fraction));
  if (state.secondsLeft >= 0)
    left = formatDuration(state.secondsLeft) + " left";
  if (!isTerminal) {
    os << state.phase << ": " << (amount.empty() ? "running" : amount)
       << (left.empty() ? "" : ", ") << left
       << (state.detail.empty() ? "" : ", ") << state.detail << "\n";
    return;
  }
  std::string line = makeLine(state, amount, left);
  size_t shown = width;
  width = line.size();
  line.append(shown > width ? shown - width : 0, ' ');
  os << '\r' << line;
}

ProgressFn ProgressBar::getFunction() {
  return [this](const ProgressState &state) {
    std::chrono::duration<double> elapsed =
        std::chrono::steady_clock::now() - start;
    show(state, elapsed.count());
    return true;
  };
}
