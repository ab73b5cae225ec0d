//===- Progress.cpp - How far a long computation is -----------------------===//

#include "attn/Support/Progress.h"
#include "llvm/Support/raw_ostream.h"
#include <algorithm>
#include <chrono>

using namespace mlir::attn;

char StoppedError::ID = 0;

void StoppedError::log(llvm::raw_ostream &os) const {
  os << "stopped by the caller";
}

std::error_code StoppedError::convertToErrorCode() const {
  return std::make_error_code(std::errc::operation_canceled);
}

double ProgressMeter::readSteadyClock() {
  return std::chrono::duration<double>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

double ProgressMeter::getElapsed() const { return clock() - started; }

bool ProgressMeter::begin(const llvm::Twine &name, double seconds,
                          double behind) {
  phase = name.str();
  expected = seconds;
  after = behind;
  detail.clear();
  furthest = -1;
  started = clock();
  return report(0);
}

bool ProgressMeter::update(double fraction) {
  if (!function || stopped)
    return !stopped;
  if (clock() - reported < 0.1)
    return true;
  return report(fraction);
}

bool ProgressMeter::report(double fraction) {
  if (!function || stopped)
    return !stopped;
  reported = clock();
  double elapsed = getElapsed(), left = -1;
  // The pace so far says more than an estimate, once there is one.
  if (fraction >= 0.02 && elapsed >= 0.5)
    left = elapsed * (1 - fraction) / fraction;
  else if (expected > elapsed)
    left = expected - elapsed;
  // An estimate that is over says nothing: what ends soon gets on.
  if (fraction > furthest) {
    furthest = fraction;
    reachedAt = elapsed;
  }
  if (fraction >= 0.02 && elapsed - reachedAt > std::max(left, 2.0))
    left = -1;
  if (left >= 0)
    left = after >= 0 ? left + after : -1;
  ProgressState state;
  state.phase = phase;
  state.fraction = fraction < 0 ? -1 : std::min(fraction, 1.0);
  state.secondsLeft = left;
  state.detail = detail;
  if (!function(state))
    stopped = true;
  return !stopped;
}

llvm::Error ProgressMeter::takeError() const {
  if (stopped)
    return llvm::make_error<StoppedError>();
  return llvm::Error::success();
}
