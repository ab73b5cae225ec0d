//===- BankConflicts.h - Shared-memory wavefronts ---------------*- C++ -*-===//
//
// Counts the wavefronts of a warp's access to shared memory: 32 banks of 4
// bytes, one word of each bank for each wavefront, the same word of several
// lanes once. Accesses of 8 bytes take (at least) two wavefronts, half a warp
// each, of 16 bytes four, a quarter each; ldmatrix and stmatrix take one for
// each 8x8 matrix.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LAYOUT_BANKCONFLICTS_H
#define ATTN_LAYOUT_BANKCONFLICTS_H

#include "attn/Layout/CopyPlan.h"
#include "attn/Layout/MatrixAccess.h"

namespace mlir::attn {

/// Wavefronts taken and the least number possible for the same instructions.
struct BankReport {
  uint64_t wavefronts = 0;
  uint64_t ideal = 0;

  uint64_t conflicts() const { return wavefronts - ideal; }
  BankReport &operator+=(const BankReport &other) {
    wavefronts += other.wavefronts;
    ideal += other.ideal;
    return *this;
  }
};

/// Wavefronts of one ld.shared, st.shared or cp.async; one byte address for
/// each lane (32 at most), negative for lanes without access, `bytes` (1 to 16)
/// each.
BankReport countBankConflicts(llvm::ArrayRef<int64_t> addresses,
                              unsigned bytes);
/// Wavefronts of one ldmatrix or stmatrix; row addresses of 8 lanes for each of
/// its matrices.
BankReport countMatrixConflicts(llvm::ArrayRef<int64_t> addresses);

/// Sums over all accesses of a plan and all warps.
BankReport countBankConflicts(const VectorPlan &plan, unsigned numWarps);
BankReport countBankConflicts(const MatrixPlan &plan, unsigned numWarps);
BankReport countBankConflicts(const CopyPlan &plan);

} // namespace mlir::attn

#endif // ATTN_LAYOUT_BANKCONFLICTS_H
