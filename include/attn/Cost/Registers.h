//===- Registers.h - Registers of a thread of a kernel ----------*- C++ -*-===//

#ifndef ATTN_COST_REGISTERS_H
#define ATTN_COST_REGISTERS_H

#include "attn/Cost/SassCounts.h"
#include "attn/Target/TargetTable.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace mlir::attn::sim {

/// What the directives of a kernel say about its registers.
struct RegisterDirectives {
  unsigned maxRegisters = 0; ///< .maxnreg, 0 without
  unsigned threads = 0;      ///< of .reqntid, else of .maxntid; 0 without
  unsigned minCtas = 0;      ///< .minnctapersm, 0 without
  /// Uses setmaxnreg, for which ptxas has to give each thread exactly what the
  /// directives allow.
  bool isDynamic = false;

  /// Most registers that they leave to a thread of `target`.
  unsigned getMost(const TargetRow &target) const;
  /// Their texts, ".reqntid 512 .minnctapersm 1", "none" without any.
  std::string describe() const;
};

/// Reads those of `kernel`; none where there is no such kernel.
RegisterDirectives readRegisterDirectives(llvm::StringRef ptx,
                                          llvm::StringRef kernel);

/// Registers from ptxas, or from the directives where ptxas is missing or does
/// not know the version of the PTX; then also from ptxas with the version that
/// it knows. Errors: none of these says how many, with what each said.
llvm::Expected<RegisterCount> findRegisters(llvm::StringRef ptx,
                                            llvm::StringRef kernel,
                                            const TargetRow &target);

} // namespace mlir::attn::sim

#endif // ATTN_COST_REGISTERS_H
