//===- LeaderOracle.h - Pairs of CTAs in every order ------------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_LEADERORACLE_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_LEADERORACLE_H

#include <optional>
#include <random>
#include <string>
#include <vector>

namespace mlir::attn::oracle {

/// Bytes of a slot in a CTA: those of a copy, and of a word.
inline constexpr int kSlotBytes = 4096, kWordBytes = 4;

/// CTAs of a cluster, all of which run one program.
inline constexpr unsigned kPairCTAs = 2;

/// The CTAs in which an op of a pair has its effect.
enum class PairTarget { Own, Leader, Both };

/// Describes what the elected thread of a warp does next.
struct PairOp {
  enum Kind {
    Wait,   ///< for the phase of `parity` of the own `barrier`
    Arrive, ///< at `barrier` of the targets
    Expect, ///< arrives there and announces `bytes`
    Copy,   ///< starts a copy to the own `slot`, counted at the own or leader's
    Send,   ///< starts a store to the word `slot` of the targets
    Read,   ///< of the own word `slot`
    Product, ///< starts one that reads `slot` of both CTAs
    Commit   ///< signals `barrier` of the targets behind the products
  };
  Kind kind = Wait;
  unsigned barrier = 0;
  unsigned parity = 0;
  unsigned slot = 0;
  int bytes = 0;
  PairTarget target = PairTarget::Own;
  /// Only the first CTA does it.
  bool isOfLeader = false;
};

/// Warps without loops, of two CTAs.
struct PairKernel {
  std::vector<std::vector<PairOp>> warps;
  /// The arrivals that each mbarrier expects, in both CTAs.
  std::vector<unsigned> counts;
  /// Slots are words that the leader sends to both CTAs, not the operand of
  /// products of both.
  bool sends = false;
};

/// A ring of operands whose products the leader starts, or of words that it
/// sends, mostly with something changed in it.
PairKernel makePairKernel(std::mt19937 &rng);

/// The kernel at the barrier rung.
std::string print(const PairKernel &kernel);

/// Executes the kernel in every order; `wrong` says what goes wrong in one.
/// False if there are too many.
bool explore(const PairKernel &kernel, std::optional<std::string> &wrong);

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_LEADERORACLE_H
