//===- TripSkipper.cpp - Trips that are as those before them --------------===//

#include "TripSkipper.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// A loop with fewer trips left is followed without looking for states that
/// come up again.
static constexpr int64_t kFewTrips = 8;

/// After so many states none is expected to come up again.
static constexpr int64_t kMostPatience = 256;

bool Pauses::isDue(const Warp &warp, uint32_t number, const Step &step,
                   const Facts &facts) const {
  if (step.code != Code::Branch || !step.flag || (of && *of != number))
    return false;
  Slot left = step.args[0];
  if (auto sum = warp.unknown.find(left); sum != warp.unknown.end())
    return facts.imply(sum->second.plus(Affine(-kFewTrips)));
  if (auto varied = warp.varied.find(left); varied != warp.varied.end())
    return varied->second.getLeast() > kFewTrips;
  return warp.known[left] && warp.values[left] > kFewTrips;
}

bool TripSkipper::run() {
  m.pauses = Pauses();
  // Notes are taken of each trip.
  m.pauses.isOn = !m.recorded && !m.notes;
  m.run();
  while (m.pauses.isReached) {
    look();
    m.run();
  }
  m.pauses = Pauses();
  return hasSkipped;
}

/// Compares with one earlier state, which a later one replaces after twice as
/// many each time: so a state that comes up again is found, whatever led to it
/// and after how many trips.
void TripSkipper::look() {
  StateSummary now = StateKey(m, /*leavesOutCounts=*/true).summarise(m.work);
  ++since;
  if (earlier && skipTrips(now)) {
    hasSkipped = true;
    // Another warp may go around a loop by itself.
    m.pauses.of.reset();
    earlier.reset();
    since = 0;
    patience = 1;
  } else if (!earlier || since == patience) {
    earlier = std::move(now);
    m.pauses.begun.clear();
    since = 0;
    patience *= 2;
  }
  m.steps += m.work.takeSteps();
  m.pauses.after = m.steps + 1;
  if (patience > kMostPatience)
    m.pauses.isOn = false;
}

/// Returns true if all that a counter may be is at least so much.
bool TripSkipper::isAtLeast(const StateSummary::Count &count, int64_t sign,
                            int64_t least) const {
  if (count.unknowns.isConstant())
    return (sign > 0 ? count.numbers.getLeast()
                     : -count.numbers.getGreatest()) >= least;
  Affine sum = count.unknowns.plus(Affine(count.numbers.front()));
  return m.facts.imply(sum.times(sign).plus(Affine(-least)));
}

/// Returns how often a counter can go on by so much towards zero, without
/// getting there, at most `most` times.
int64_t TripSkipper::countTrips(const StateSummary::Count &count, int64_t sign,
                                int64_t by, int64_t most) const {
  int64_t trips = 0;
  for (int64_t more = most; more > 0; more /= 2)
    while (trips + more <= most &&
           isAtLeast(count, sign, 1 + (trips + more) * by))
      trips += more;
  return trips;
}

/// Returns how often all counters can move on once more as they have since
/// `earlier`, without any of them getting to zero.
int64_t TripSkipper::countTrips(const StateSummary &now) const {
  constexpr int64_t any = int64_t(1) << 32;
  int64_t most = any;
  for (auto [before, after] : llvm::zip_equal(earlier->counts, now.counts)) {
    std::optional<int64_t> moved = after.numbers.getDistanceTo(before.numbers);
    if (!moved || !(before.unknowns == after.unknowns))
      return 0;
    if (*moved == 0)
      continue;
    // One that began anew has not moved on trip by trip.
    if (m.pauses.begun.contains({after.warp, after.slot}))
      return 0;
    int64_t sign = isAtLeast(after, 1, 1) ? 1 : -1;
    if (!isAtLeast(after, sign, 1) || !isAtLeast(before, sign, 1))
      return 0;
    if ((sign > 0) == (*moved < 0))
      most = countTrips(after, sign, std::abs(*moved), most);
  }
  return most == any ? 0 : most;
}

bool TripSkipper::skipTrips(const StateSummary &now) {
  if (earlier->places != now.places || !(earlier->kinds == now.kinds) ||
      !earlier->standsFor(now, m.work) || !now.standsFor(*earlier, m.work))
    return false;
  int64_t trips = countTrips(now);
  m.work.take(m.facts);
  if (trips == 0)
    return false;
  for (auto [before, after] : llvm::zip_equal(earlier->counts, now.counts)) {
    int64_t by = trips * *after.numbers.getDistanceTo(before.numbers);
    Warp &warp = m.warps[after.warp];
    warp.values[after.slot] += by;
    if (auto varied = warp.varied.find(after.slot); varied != warp.varied.end())
      varied->second = varied->second.shift(by);
    if (auto sum = warp.unknown.find(after.slot); sum != warp.unknown.end())
      sum->second.constant += by;
  }
  return true;
}
