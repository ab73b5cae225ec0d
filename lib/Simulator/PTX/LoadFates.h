//===- LoadFates.h - Where values of loads may go ---------------*- C++ -*-===//
//
// Compilers let warps load what they do not need: where a tile is smaller than
// a CTA, the warps that have no part of it repeat what others do, and drop the
// result. Whether such a load reads before or after a store matters to nobody.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PTX_LOADFATES_H
#define ATTN_LIB_SIMULATOR_PTX_LOADFATES_H

#include <cstdint>
#include <vector>

namespace mlir::attn::sim {

class ProgramImpl;

/// An instruction in which the value of a load makes a difference: a store, a
/// branch, an address, a product, an exchange with other warps.
struct LoadUse {
  uint32_t slot = 0; ///< of the instruction
  /// The value is part of the guard: it matters to lanes that do not pass, too.
  bool isGuard = false;
  /// It has been exchanged between lanes: what one uses is all lanes'.
  bool isShared = false;
};

/// A load of global memory and all uses that its value may reach through
/// registers.
struct LoadFate {
  uint32_t inst = 0;
  uint32_t slot = 0; ///< of the load itself
  std::vector<LoadUse> uses;
};

/// All of a program's, found without regard to the order of its instructions.
class LoadFates {
public:
  explicit LoadFates(const ProgramImpl &program);

  const std::vector<LoadFate> &get() const { return fates; }
  /// The load at an instruction, or null.
  const LoadFate *find(uint32_t inst) const;
  /// Returns the number of an instruction that counts, 0 for others.
  uint32_t getSlot(uint32_t inst) const { return slots[inst]; }
  uint32_t countSlots() const { return numSlots; }

private:
  uint32_t makeSlot(uint32_t inst);

  std::vector<LoadFate> fates;
  std::vector<uint32_t> slots;
  uint32_t numSlots = 1;
};

/// Returns those of a program, which keeps them.
const LoadFates &getLoadFates(const ProgramImpl &program);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_LOADFATES_H
