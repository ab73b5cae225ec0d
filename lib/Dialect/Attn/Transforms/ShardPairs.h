//===- ShardPairs.h - Products that pairs of CTAs make together -*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_SHARDPAIRS_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_SHARDPAIRS_H

#include "MapDivider.h"
#include "attn/Analysis/Channels/ChannelAnalysis.h"
#include "attn/Analysis/Flow/RankValues.h"
#include "attn/Dialect/Attn/IR/CGALayout.h"

namespace mlir::attn {

/// How what a buffer is loaded with differs between the CTAs of a cluster.
struct ClusterBuffer {
  AllocOp alloc;
  /// The view whose slots these are, where slots of a ring hold other values by
  /// turns; null if they are those that are allocated.
  ReinterpretOp view;
  SmallVector<BulkCopyOpInterface> loads;
  /// The bits of the rank in which nothing differs, and what differs in another
  /// one, because of which op; null if none does.
  uint32_t same = 0;
  Operation *source = nullptr;
  std::string difference;
  /// How many blocks of rows and columns each bit of the rank steps by; nothing
  /// if that is not known.
  std::optional<CGABases> steps;
  /// These steps, if they are a layout.
  std::optional<CGABases> bases;

  /// Returns what has the layout, and the layout that somebody has written.
  Operation *getHolder() {
    return view ? view.getOperation() : alloc.getOperation();
  }
  CGAAttr getCga() { return view ? view.getCgaAttr() : alloc.getCgaAttr(); }
};

/// A product, with its factors in shared memory.
struct ClusterProduct {
  TensorGroupOpInterface group;
  ProductOpInterface product;
  /// Null if a lies in tensor memory, where each CTA has its own rows.
  ClusterBuffer *a = nullptr;
  ClusterBuffer *b = nullptr;
  /// The dimension of b's slot that is N of the product, 0 or 1.
  unsigned dimN = 0;
};

/// The layout of what somebody allocates, and the product from which it
/// follows.
struct FoundLayout {
  Operation *alloc;
  CGAAttr cga;
  Operation *product;
};

/// Returns true if an odd number of the views that lead to `view` exchange rows
/// and columns.
bool isTransposed(Value view);

/// Finds the products of a kernel that the CTAs of ranks 2n and 2n + 1 can make
/// together, and lets them; checks those that somebody has written.
class PairSharder {
public:
  PairSharder(gpu::GPUFuncOp kernel, int64_t ctas,
              const ClusterUniformity &uniformity, MapDivider &maps)
      : kernel(kernel), ctas(ctas), uniformity(uniformity),
        values(kernel, uniformity), maps(maps) {}

  /// Checks, decides, rewrites and reports. On failure a diagnostic was
  /// emitted.
  LogicalResult run(const ChannelAnalysis &channels);
  /// True if loads and products were rewritten.
  bool areMade() const { return isMade || isShared; }
  int64_t countProducts() const { return isMade ? products.size() : 0; }

private:
  /// True for clusters whose CTAs differ in bits of their ranks.
  bool hasBits() {
    return ctas <= 8 && llvm::isPowerOf2_64(ctas) && isAlongX();
  }
  /// True if the number of a CTA along x is its rank.
  bool isAlongX();
  void collect();
  ClusterBuffer *getBuffer(Value view);
  void findBlocks(ClusterBuffer &buffer);
  void findSame(ClusterBuffer &buffer);
  std::optional<CGABases> findSteps(BulkCopyOpInterface load) const;

  LogicalResult checkGiven();
  LogicalResult shareGiven(const ChannelAnalysis &channels);

  /// Whose products they are: each CTA's, a pair's because it is found that
  /// they can be, or a pair's because somebody has written so.
  enum class Products { Own, Found, Given };
  LogicalResult checkLayouts();
  SmallVector<FoundLayout> findLayouts(Products kind);
  LogicalResult checkSums(ArrayRef<FoundLayout> layouts);
  void setLayouts(ArrayRef<FoundLayout> layouts);

  std::string findReason(const ChannelAnalysis &channels);
  std::string findReason(ClusterProduct product);
  std::string findHalvingReason(ClusterProduct product);
  std::string findPartitionReason(Operation *product);
  std::string findSignalReason(const ChannelAnalysis &channels);
  int64_t planParts(ClusterBuffer &buffer, unsigned dim, bool isHalved);
  bool isMapShared(const ClusterBuffer &buffer) const;

  void setMulticasts();
  void makePairs();
  void halve(ClusterProduct product);
  LogicalResult report();

  gpu::GPUFuncOp kernel;
  int64_t ctas;
  const ClusterUniformity &uniformity;
  RankValues values;
  MapDivider &maps;
  llvm::MapVector<Operation *, std::unique_ptr<ClusterBuffer>> buffers;
  SmallVector<ClusterProduct> products;
  /// The bits in which CTAs differ that share the loads of a buffer.
  llvm::MapVector<ClusterBuffer *, uint32_t> multicasts;
  bool isMade = false, isShared = false;
};

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_SHARDPAIRS_H
