//===- SyncWitness.h - What is wrong, and an order that shows it *- C++ -*-===//
//
// What the check of barriers writes (--witness) and the simulator runs
// (--replay). The JSON form is described in docs/BarrierCheck.md; reading is
// strict.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAUNCH_SYNCWITNESS_H
#define ATTN_LAUNCH_SYNCWITNESS_H

#include "attn/Support/ReplayTurn.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <array>
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn {

/// Somebody who takes part, as far as that is known.
struct WitnessSite {
  /// What it says of the op.
  std::string text;
  std::string op;
  /// Of the op, in the file that was read; 0 where it has none.
  std::string file;
  unsigned line = 0, column = 0;
  /// In the cluster and in the CTA; -1 where all or none is meant.
  int64_t cta = -1, warp = -1;
  /// The mbarriers' name and channel, the slot and the phase.
  std::string barrier, channel;
  int64_t slot = -1, phase = -1;
  /// How often the ring was gone through in slots: phase times depth and slot.
  int64_t position = -1;
};

struct SyncWitness {
  static constexpr int64_t version = 1;

  std::string kernel;
  /// Which condition does not hold, such as "race".
  std::string fault;
  /// Which orders counted: isa or hw.
  std::string profile;
  /// The op that is wrong, and those that it should be ordered with.
  std::vector<WitnessSite> sites;
  /// Who goes on until it cannot, in this order; empty if no launch takes the
  /// tiles that it needs in their order.
  std::vector<ReplayTurn> turns;
  /// Tiles: one cluster does all, in their order. Else the first CTA of the
  /// cluster that is meant.
  bool runsAllTiles = false;
  std::array<int64_t, 3> block = {0, 0, 0};
};

llvm::json::Value toJSON(const SyncWitness &witness);

/// Errors are of the form `witness: turns[3].cta: expected ..., got ...`.
llvm::Expected<SyncWitness> parseWitness(llvm::StringRef json);

} // namespace mlir::attn

#endif // ATTN_LAUNCH_SYNCWITNESS_H
