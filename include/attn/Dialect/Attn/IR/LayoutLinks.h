//===- LayoutLinks.h - How the layouts of an op's tiles relate --*- C++ -*-===//
//
// What AttnLayoutOpInterface says of an op: which tiles have related layouts,
// and which layouts it gives or wants.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_LAYOUTLINKS_H
#define ATTN_DIALECT_ATTN_IR_LAYOUTLINKS_H

#include "mlir/IR/Attributes.h"
#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace mlir::attn {

/// True for an op that computes each element of its tiles from the same element
/// of its operands.
bool isElementwiseOnTiles(Operation *op);

/// How the layouts of two tiles relate, seen from the first.
enum class LayoutRelation {
  Same,
  RowsOf,
  ColumnsOf,
  PartialOf,
  TileOf,
  TileOfColumns,
  TileOfPartial
};

/// The layout that a relation gives to the second tile where the first one has
/// `layout`; null if it gives none.
Attribute followLink(Attribute layout, LayoutRelation relation);

/// The same relation, seen from the second tile.
LayoutRelation invert(LayoutRelation relation);

/// Two tiles whose layouts are related.
struct LayoutLink {
  Value first, second;
  LayoutRelation relation = LayoutRelation::Same;
};

/// A tile whose layout an op determines.
struct LayoutAnchor {
  Value value;
  Attribute layout;
  /// True for what an instruction gives; false for what one use wants, where a
  /// conversion serves as well.
  bool isStrong = true;
};

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_LAYOUTLINKS_H
