//===- RegisterUses.h - Which instructions have a register -------*- C++
//-*-===//

#ifndef ATTN_LIB_SIMULATOR_PTX_REGISTERUSES_H
#define ATTN_LIB_SIMULATOR_PTX_REGISTERUSES_H

#include "ProgramImpl.h"

namespace mlir::attn::sim {

/// The instructions that have each register among their operands.
class RegisterUses {
public:
  explicit RegisterUses(const ProgramImpl &program);
  /// Indices into ProgramImpl::code, by the number of the register.
  llvm::ArrayRef<uint32_t> get(uint32_t meta) const {
    return llvm::ArrayRef(uses).slice(first[meta],
                                      first[meta + 1] - first[meta]);
  }

private:
  std::vector<uint32_t> first, uses;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_REGISTERUSES_H
