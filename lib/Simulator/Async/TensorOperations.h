//===- TensorOperations.h - What tcgen05 instructions share -----*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_TENSOROPERATIONS_H
#define ATTN_LIB_SIMULATOR_ASYNC_TENSOROPERATIONS_H

#include "../Machine/Exec.h"
#include "../Machine/TensorMemory.h"

namespace mlir::attn::sim {

struct Decoding;

/// The tensor memory of a CTA, made on first use.
TensorMemory &tensorMemoryOf(Cta &cta);

/// Checks that there is such a group, and that the pair of CTAs to which the
/// executing warp belongs has used no other; false after a fault.
bool checkTensorGroup(Exec &x, TensorGroup group);
/// Checks that a CTA may use `count` columns; false after a fault, whose
/// message begins with `what`.
bool checkAllocated(Exec &x, Cta &cta, uint32_t column, uint32_t count,
                    const llvm::Twine &what, int lane = -1);

/// Returns what messages call a CTA, such as "CTA (1,0,0)".
std::string nameOf(const Cta &cta);
/// Reports a CTA that waits for its part of an allocation of a pair while the
/// other one, `missing`, does what `why` says.
void reportLoneRequests(Cluster &cluster, const Cta &missing,
                        llvm::StringRef why);

/// Checks and records an access to `count` columns of some lanes.
void trackTensor(Exec &x, Cta &cta, const Stamp &stamp, const Clock &clock,
                 RowShadow::Rows lanes, unsigned column, unsigned count,
                 bool write);

/// Checks an access to all lanes of `count` columns against `shadow`, an
/// earlier state of the CTA's, which it changes.
void checkTensorUses(Exec &x, Cta &cta, RowShadow &shadow, const Stamp &stamp,
                     const Clock &clock, unsigned column, unsigned count);

/// An operand of a tcgen05 operation is not in shared memory: stops the run.
void reportOutside(Cluster &cluster, const EngineOp &op);
/// Checks and records what shifting the rows of `lane`'s partition touches.
void trackShift(Exec &x, Cta &cta, const Stamp &stamp, unsigned lane,
                uint32_t column);
/// Remembers what an operation that `lane` issues now is ordered after.
void rememberIssue(Exec &x, unsigned lane);
/// Completes an operation now, or hands it to the engine.
void startOperation(Exec &x, std::unique_ptr<EngineOp> op);

/// alloc, dealloc, relinquish_alloc_permit.
llvm::Error decodeTensorAllocation(Decoding &c);
llvm::Error decodeTensorMma(Decoding &c);
llvm::Error decodeTensorCommit(Decoding &c);
llvm::Error decodeTensorCopy(Decoding &c);
llvm::Error decodeTensorShift(Decoding &c);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_TENSOROPERATIONS_H
