//===- SignalMask.h - Where signals of a cluster go -------------*- C++ -*-===//

#ifndef ATTN_ANALYSIS_CHANNELS_SIGNALMASK_H
#define ATTN_ANALYSIS_CHANNELS_SIGNALMASK_H

#include <algorithm>
#include <cstdint>

namespace mlir::attn {

/// The CTAs of a cluster in which a signal arrives, as a function of the rank
/// of the CTA that sends it. Each bit of their ranks is the sender's own, is
/// clear, or is both.
class SignalMask {
public:
  /// Clears the bits of `clear` and takes both values of those of `any`.
  constexpr SignalMask(uint32_t clear, uint32_t any)
      : clear(clear & ~any), any(any) {}

  /// Goes to the sender alone.
  static constexpr SignalMask own() { return {0, 0}; }
  /// Goes to all CTAs of the cluster.
  static constexpr SignalMask all() { return {0, ~0u}; }
  /// Goes to the first CTA of the cluster.
  static constexpr SignalMask leader() { return {~0u, 0}; }

  bool operator==(SignalMask other) const {
    return clear == other.clear && any == other.any;
  }
  bool operator!=(SignalMask other) const { return !(*this == other); }

  /// Returns whether a signal of the CTA of rank `from` arrives in that of rank
  /// `to`.
  constexpr bool reaches(uint32_t from, uint32_t to) const {
    return (((from & ~clear) ^ to) & ~any) == 0;
  }
  /// Returns the CTAs that a signal of the CTA of rank `from` arrives in, one
  /// bit for each.
  uint32_t getTargets(uint32_t from, uint32_t ctas) const {
    uint32_t targets = 0;
    for (uint32_t to = 0; to < ctas; ++to)
      targets |= uint32_t(reaches(from, to)) << to;
    return targets;
  }
  /// Returns how many CTAs signal to each one that is signalled at all.
  uint32_t countSenders(uint32_t ctas) const {
    uint32_t most = 0;
    for (uint32_t to = 0; to < ctas; ++to) {
      uint32_t senders = 0;
      for (uint32_t from = 0; from < ctas; ++from)
        senders += reaches(from, to);
      most = std::max(most, senders);
    }
    return most;
  }

private:
  uint32_t clear, any;
};

} // namespace mlir::attn

#endif // ATTN_ANALYSIS_CHANNELS_SIGNALMASK_H
