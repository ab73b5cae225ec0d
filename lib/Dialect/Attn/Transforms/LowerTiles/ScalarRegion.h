//===- ScalarRegion.h - Regions inlined for each element --------*- C++ -*-===//
//
// A region of attn.map_elements is inlined for each element that a thread
// holds. What it asks of memory about a key alone, say whether a table has it,
// would be read and compared once for each of a thread's columns, by all
// threads of the warp. The lanes of a warp ask for a key each instead and tell
// each other: a word has the answers of 32 keys.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_SCALARREGION_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_SCALARREGION_H

#include "Masks.h"
#include "PartitionLowering.h"
#include "mlir/IR/IRMapping.h"
#include <map>

namespace mlir::attn::lowering {

/// Clones operations of a scalar region, of which `mapping` has the operands,
/// and adds their results to it. Failure after a diagnostic.
LogicalResult inlineScalars(PartitionLowering &lowering,
                            ImplicitLocOpBuilder &b,
                            ArrayRef<Operation *> operations,
                            IRMapping &mapping);

/// Returns the operations of a block but its terminator.
SmallVector<Operation *> listOperations(Block &block);

/// The values of type i1 of a region that depend on nothing but the key and
/// read memory, as bits of words that a warp makes together.
class KeyBits {
public:
  /// Finds such values; none where the layout gives the threads of a warp
  /// other keys than those of whole words, or where words save nothing.
  KeyBits(PartitionLowering &lowering, MapElementsOp op,
          const TileLayout &layout, const ColumnKeys &keys);

  /// Emits the words, given the part of keys that the thread adds.
  LogicalResult emit(ImplicitLocOpBuilder &b, Value threadColumn);
  /// Maps the values to bits of the key that is register constant `column`.
  void map(ImplicitLocOpBuilder &b, int64_t column, IRMapping &mapping);
  /// Returns the operations that are left to inline for each element.
  ArrayRef<Operation *> getOthers() const { return others; }

private:
  /// Finds the values and the operations that make them.
  void find();
  /// True if a thread's columns are bits of few words, which are the same in
  /// all lanes.
  bool hasWholeWords(const TileLayout &layout, const ColumnKeys &keys);

  PartitionLowering &lowering;
  MapElementsOp op;
  /// Operations that words need, and those that each element does.
  SmallVector<Operation *> alone, others;
  SmallVector<Value> values;
  /// The words of a thread's columns by their number in the tile, one for each
  /// value, moved so that register constants are numbers of bits.
  std::map<int64_t, SmallVector<Value>> words;
};

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_SCALARREGION_H
