//===- PartPoison.h - Poison of parts of a register -------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_SANITIZER_PARTPOISON_H
#define ATTN_LIB_SIMULATOR_SANITIZER_PARTPOISON_H

#include "../Machine/Exec.h"

namespace mlir::attn::sim {

/// Lanes in which each quarter of a register is undefined.
using PartPoison = std::array<uint32_t, 4>;

/// What pack and permute have kept apart. Any other write of the register
/// changes its poison, so that the parts no longer agree with it.
inline PartPoison partsOf(const Exec &x, const Operand &o) {
  uint32_t p = x.poisonOf(o);
  const std::array<uint32_t, 2> *kept = &x.warp->file.halves[2 * o.meta];
  PartPoison parts = {kept[0][0] & x.active, kept[0][1] & x.active,
                      kept[1][0] & x.active, kept[1][1] & x.active};
  if ((parts[0] | parts[1] | parts[2] | parts[3]) != p)
    parts.fill(p);
  return parts;
}

/// Sets the poison of a register by parts.
inline void setParts(Exec &x, const Operand &d, const PartPoison &parts,
                     uint32_t from) {
  uint32_t p = parts[0] | parts[1] | parts[2] | parts[3];
  x.setPoison(d, p, from);
  if (!p)
    return;
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t &kept = x.warp->file.halves[2 * d.meta + i / 2][i % 2];
    kept = (kept & ~x.active) | parts[i];
  }
}

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_SANITIZER_PARTPOISON_H
