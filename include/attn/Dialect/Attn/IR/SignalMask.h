//===- SignalMask.h - Where signals of a cluster go -------------*- C++ -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_SIGNALMASK_H
#define ATTN_DIALECT_ATTN_IR_SIGNALMASK_H

#include <algorithm>
#include <cstdint>
#include <optional>

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

  /// Goes to `ctas` CTAs, or to a leader, whose ranks differ from the sender's
  /// in `bits` only: in any bits if that is not said.
  static constexpr SignalMask get(std::optional<int64_t> ctas, bool leader,
                                  std::optional<int64_t> bits) {
    uint32_t which = bits ? uint32_t(*bits) : ~0u;
    return {leader ? which : 0, ctas ? which : 0};
  }

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
  /// Returns the bits of the rank that are clear in the targets' ranks, and
  /// those that are both.
  constexpr uint32_t getClear() const { return clear; }
  constexpr uint32_t getAny() const { return any; }
  /// Returns the number of a CTA among the targets of its own signals, in the
  /// order of their ranks.
  constexpr uint32_t getNumber(uint32_t rank) const {
    uint32_t number = 0, place = 1;
    for (uint32_t bit = 1; bit != 0 && bit <= rank; bit <<= 1)
      if (any & bit) {
        number |= rank & bit ? place : 0;
        place <<= 1;
      }
    return number;
  }
  /// Returns how many CTAs signal to each one that is signalled at all, if
  /// those signal whose ranks have the bits of `silent` clear.
  uint32_t countSenders(uint32_t ctas, uint32_t silent = 0) const {
    uint32_t most = 0;
    for (uint32_t to = 0; to < ctas; ++to) {
      uint32_t senders = 0;
      for (uint32_t from = 0; from < ctas; ++from)
        senders += (from & silent) == 0 && reaches(from, to);
      most = std::max(most, senders);
    }
    return most;
  }

private:
  uint32_t clear, any;
};

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_SIGNALMASK_H
