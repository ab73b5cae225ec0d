//===- Progress.h - How far a long computation is ---------------*- C++ -*-===//
//
// A library that computes for long does not print: it calls a function that its
// user gave, which may show something and may ask it to stop.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_SUPPORT_PROGRESS_H
#define ATTN_SUPPORT_PROGRESS_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <atomic>
#include <functional>
#include <limits>
#include <string>

namespace mlir::attn {

/// How far a computation is.
struct ProgressState {
  /// What is being done: "inputs", "reference", "simulation",
  /// "corner 3 of 8".
  llvm::StringRef phase;
  /// How much of the phase is done, from 0 to 1; negative where unknown.
  double fraction = -1;
  /// Estimate for all that is left, this phase and those behind it; negative
  /// where there is none.
  double secondsLeft = -1;
  /// More about the phase, such as which loop runs; may be empty.
  llvm::StringRef detail = "";
};

/// Returns true to go on, false to stop.
using ProgressFn = std::function<bool(const ProgressState &)>;

/// The error of a computation that its ProgressFn has stopped.
class StoppedError : public llvm::ErrorInfo<StoppedError> {
public:
  static char ID;
  void log(llvm::raw_ostream &os) const override;
  std::error_code convertToErrorCode() const override;
};

/// Passes on how far a computation is, about ten times a second, and remembers
/// that it is to stop. One thread begins phases and reports; any may ask
/// whether to stop.
class ProgressMeter {
public:
  /// Seconds since some moment.
  using ClockFn = double (*)();

  /// Makes a meter that reads a steady clock, or `clock`. Without a function
  /// nothing is reported and nothing stops.
  explicit ProgressMeter(ProgressFn function = nullptr,
                         ClockFn clock = readSteadyClock)
      : function(std::move(function)), clock(clock) {}

  /// Begins a phase, and reports it. `seconds` estimates the phase, `after`
  /// all that comes behind it; negative where unknown. False to stop.
  bool begin(const llvm::Twine &phase, double seconds = -1, double after = 0);
  /// Reports how much of the phase is done, if it is time to. False to stop.
  bool update(double fraction);
  /// Says with later reports of the phase what it is doing.
  void setDetail(std::string text) { detail = std::move(text); }
  bool isStopped() const { return stopped; }
  /// StoppedError if the computation is to stop.
  llvm::Error takeError() const;
  /// Seconds since the phase began.
  double getElapsed() const;

private:
  static double readSteadyClock();
  bool report(double fraction);

  ProgressFn function;
  ClockFn clock;
  std::string phase, detail;
  double expected = -1, after = 0;
  /// The largest fraction so far, and seconds until it was reached.
  double furthest = -1, reachedAt = 0;
  double started = clock(), reported = -std::numeric_limits<double>::infinity();
  std::atomic<bool> stopped{false};
};

} // namespace mlir::attn

#endif // ATTN_SUPPORT_PROGRESS_H
