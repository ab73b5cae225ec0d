//===- BulkCopy.h - A bulk copy in flight -----------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_ASYNC_BULKCOPY_H
#define ATTN_LIB_SIMULATOR_ASYNC_BULKCOPY_H

#include "../Instructions/AtomicOps.h"
#include "../Machine/Exec.h"
#include "attn/Simulator/Async/TensorMap.h"

namespace mlir::attn::sim {

/// Up to 16 bytes between global and shared memory.
struct Piece {
  uint64_t global = 0; ///< address of byte 0
  uint32_t shared = 0; ///< offset in the CTA's shared memory
  uint8_t bytes = 16;
  uint8_t first = 0, last = 16; ///< bytes [first, last) are in bounds
};

struct Target {
  Cta *cta = nullptr;
  uint32_t offset = 0; ///< added to Piece::shared
  Cta *barrierCta = nullptr;
  uint32_t barrier = 0; ///< offset
};

struct BulkAux {
  enum Kind { Load, Store, SharedToShared } kind = Load;
  unsigned rank = 0; ///< 0: not a tensor copy
  bool multicast = false, pair = false, gather = false;
  bool reduce = false;
  AtomicOp op = AtomicOp::Add;
  Type type = Type::None;
};

struct BulkOp : EngineOp {
  const BulkAux *aux = nullptr;
  std::vector<Piece> pieces;
  llvm::SmallVector<Target, 2> targets;
  Cta *source = nullptr; ///< shared-memory source
  uint64_t totalBytes = 0;
  unsigned lane = 0;
  bool nanFill = false;
  Type elementType = Type::None;
  bool dataRead = false;
  bool readWaited = false; ///< the thread has waited for the reads
  std::vector<uint8_t> data, valid;
  uint32_t group = ~0u; ///< of the issuing thread; ~0: not committed

  void read(Cluster &cluster);
  /// Combines an element of a piece with what is there.
  void reduce(size_t piece, unsigned at, unsigned bytes, uint8_t *to,
              uint8_t *toValid) const;
  void writeGlobal(Cluster &cluster);
  void complete(Cluster &cluster) override;
  std::string describe() const override { return "a bulk copy"; }
  TraceWork getWork() const override;
  EngineOp *dynamicBulk() override {
    return aux->kind == BulkAux::Store ? this : nullptr;
  }
  bool touches(const Cta *cta) const override {
    if (source == cta && !readWaited)
      return true;
    for (const Target &t : targets)
      if (t.cta == cta || t.barrierCta == cta)
        return true;
    return false;
  }
};

/// cp.async.bulk.commit_group and wait_group.
void execBulkCommit(Exec &x, const Inst &I);
void execBulkWait(Exec &x, const Inst &I);

/// Type of the elements for reductions and fill values.
Type elementTypeOf(TensorMapElement e);

/// Bytes of a box in shared memory.
uint64_t getBoxBytes(const TensorMapInfo &map, bool gather);

/// Cuts a tensor box into pieces; `shared` is the full shared address.
void cutBox(const TensorMapInfo &map, llvm::ArrayRef<int64_t> coords,
            bool gather, uint32_t shared, std::vector<Piece> &pieces,
            uint64_t &total);

/// Faults where the launch has no clusters, not even of one CTA: an H200 calls
/// these instructions illegal there.
bool checkClusterLaunch(Exec &x, llvm::StringRef what);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_ASYNC_BULKCOPY_H
