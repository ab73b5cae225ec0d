//===- TensorPair.h - Two CTAs that share tensor operations -----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_MACHINE_TENSORPAIR_H
#define ATTN_LIB_SIMULATOR_MACHINE_TENSORPAIR_H

#include "Warp.h"
#include <optional>

namespace mlir::attn::sim {

/// `.cta_group` of a tcgen05 instruction.
enum class TensorGroup : uint8_t { Cta = 1, Pair = 2 };

/// One CTA's part of an allocation of both CTAs of a pair.
struct PairRequest {
  WarpEvent event;
  uint32_t columns = 0;
  std::optional<uint32_t> granted; ///< first column, once both have asked
};

/// The CTAs of ranks 2n and 2n + 1 of a cluster. All their tcgen05 instructions
/// have one group. With that of pairs, an allocation takes the same columns in
/// both CTAs, and each of them waits until the other asks for its part.
struct TensorPair {
  struct Use {
    TensorGroup group;
    WarpEvent event;
  };
  /// The first tcgen05 instruction with a group.
  std::optional<Use> first;
  /// By the lowest bit of the rank.
  std::array<std::optional<PairRequest>, 2> requests;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_MACHINE_TENSORPAIR_H
