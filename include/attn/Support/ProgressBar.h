//===- ProgressBar.h - Progress on standard error ---------------*- C++ -*-===//

#ifndef ATTN_SUPPORT_PROGRESSBAR_H
#define ATTN_SUPPORT_PROGRESSBAR_H

#include "attn/Support/Progress.h"
#include "llvm/Support/raw_ostream.h"
#include <chrono>
#include <memory>

namespace mlir::attn {

/// "45 s", "12 min" or "3.5 h".
std::string formatDuration(double seconds);

/// Shows progress to whoever waits: nothing in the first two seconds, then a
/// bar on a terminal, which is wiped at the end, and a line every ten seconds
/// elsewhere. The bar fits the terminal. A run that is estimated at more than a
/// minute is announced by a warning before it begins.
class ProgressBar {
public:
  /// `program` begins the warning; `columns` are those of the terminal, 0 asks
  /// it.
  ProgressBar(llvm::raw_ostream &os, llvm::StringRef program, bool isTerminal,
              unsigned columns = 0);
  ~ProgressBar();
  ProgressBar(const ProgressBar &) = delete;
  ProgressBar &operator=(const ProgressBar &) = delete;

  /// Shows `state` at `seconds` after the start.
  void show(const ProgressState &state, double seconds);
  /// Wipes the bar, so that something else can be printed.
  void clear();
  /// What shows progress here and never stops; refers to this object.
  ProgressFn getFunction();

private:
  /// Returns a line that fits the terminal: less important parts give way.
  std::string makeLine(const ProgressState &state, llvm::StringRef amount,
                       llvm::StringRef left) const;

  llvm::raw_ostream &os;
  std::string program;
  bool isTerminal;
  unsigned columns;
  std::chrono::steady_clock::time_point start;
  /// Columns of the bar that is shown; 0 without one.
  size_t width = 0;
  bool isFirst = true;
  double nextLine = 2;
};

} // namespace mlir::attn

#endif // ATTN_SUPPORT_PROGRESSBAR_H
