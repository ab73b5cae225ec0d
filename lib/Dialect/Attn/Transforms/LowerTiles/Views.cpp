//===- Views.cpp - Views of global memory and where their rows are --------===//
//
// Rows at equal distances have addresses that are sums, most of which do not
// depend on the loop (threadBase, rowBytes). Rows of groups, of pages and of
// matrices in tiles are placed one by one.
//
//===----------------------------------------------------------------------===//

#include "PartitionLowering.h"
#include "attn/Dialect/Attn/IR/ScaleOffsets.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Dominance.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

template <>
LogicalResult PartitionLowering::lower(GlobalViewOp op) {
  GlobalType type = op.getType();
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  kernel.views[op.getResult()] =
      ViewValue{op.getBase(),
                op.getOffset(),
                op.getRows(),
                op.getStride(),
                static_cast<int64_t>(op.getAlignment().value_or(elementBytes)),
                type,
                op};
  kernel.views[op.getResult()].inBounds = op.getInBounds();
  kernel.views[op.getResult()].tiledRow = op.getFirst();
  if (std::optional<uint64_t> group = op.getGroup()) {
    kernel.views[op.getResult()].group = *group;
    kernel.views[op.getResult()].members = op.getMembers();
    kernel.views[op.getResult()].present = op.getPresent().value_or(*group);
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(PagedViewOp op) {
  GlobalType type = op.getType();
  int64_t elementBytes = type.getElementType().getIntOrFloatBitWidth() / 8;
  ViewValue view{op.getBase(),
                 op.getOffset(),
                 op.getRows(),
                 op.getStride(),
                 static_cast<int64_t>(op.getAlignment().value_or(elementBytes)),
                 type,
                 op};
  view.page = op.getPage();
  view.pages = op.getPages();
  view.distance = op.getDistance();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  view.table = LLVM::GEPOp::create(b, op.getTable().getType(), b.getI32Type(),
                                   op.getTable(), ValueRange{op.getFirst()});
  kernel.views[op.getResult()] = view;
  return success();
}

template <>
LogicalResult PartitionLowering::lower(JoinedViewOp op) {
  const ViewValue front = kernel.views.lookup(op.getFront()),
                  back = kernel.views.lookup(op.getBack());
  ImplicitLocOpBuilder b(op.getLoc(), op);
  ViewValue view;
  view.rows = arith::AddIOp::create(
      b, front.rows, arith::SubIOp::create(b, back.rows, op.getSkip()));
  view.alignment = std::min(front.alignment, back.alignment);
  view.type = op.getType();
  view.anchor = op;
  view.front = op.getFront();
  view.back = op.getBack();
  view.skip = op.getSkip();
  kernel.views[op.getResult()] = view;
  return success();
}

Value PartitionLowering::rowBytes(const ViewValue &view, int64_t rowCount) {
  Value &cached = kernel.rowDistances[{view.anchor, rowCount}];
  if (cached)
    return cached;
  ImplicitLocOpBuilder b(view.anchor->getLoc(), view.anchor);
  int64_t scale =
      rowCount * (view.type.getElementType().getIntOrFloatBitWidth() / 8);
  cached = arith::MulIOp::create(b, view.stride,
                                 arith::ConstantIntOp::create(b, scale, 64));
  return cached;
}

Value PartitionLowering::threadBase(const ViewValue &view, Value row,
                                    Value column) {
  Value &cached = kernel.threadBases[{view.anchor, row, column}];
  if (cached)
    return cached;
  ImplicitLocOpBuilder b(view.anchor->getLoc(), view.anchor);
  // Behind the view, out of loops, unless what is added is known later: an
  // upstream pass may have moved the view out of a loop.
  for (Value added : {row, column})
    if (added &&
        !DominanceInfo().properlyDominates(added, &*b.getInsertionPoint()))
      b.setInsertionPointAfterValue(added);
  auto wide = [&](Value narrow) -> Value {
    return arith::ExtSIOp::create(b, b.getI64Type(), narrow);
  };
  Value elements = arith::AddIOp::create(
      b, view.offset, arith::MulIOp::create(b, wide(row), view.stride));
  if (column)
    elements = arith::AddIOp::create(b, elements, wide(column));
  cached = LLVM::GEPOp::create(b, view.base.getType(),
                               storageOf(view.type.getElementType()), view.base,
                               ValueRange{elements});
  return cached;
}

/// Places a row of `view`, which is one of `front` or of `back` behind it.
static PartitionLowering::RowPlace
placeJoinedRow(ImplicitLocOpBuilder &b, const ViewValue &view,
               const ViewValue &front, const ViewValue &back, Value position,
               Value column, bool inBounds) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto wide = [&](Value narrow) -> Value {
    return arith::ExtUIOp::create(b, b.getI64Type(), narrow);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  Value isFront =
      arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position, front.rows);
  auto choose = [&](Value ofFront, Value ofBack) -> Value {
    if (ofFront == ofBack)
      return ofFront;
    return arith::SelectOp::create(b, isFront, ofFront, ofBack);
  };
  PartitionLowering::RowPlace place;
  if (!inBounds)
    place.exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position,
                                         view.rows);
  Value inBack = add(arith::SubIOp::create(b, position, front.rows), view.skip);
  Value entry =
      choose(arith::DivUIOp::create(b, position, constant(front.page)),
             arith::DivUIOp::create(b, inBack, constant(back.page)));
  // Rows behind the last one are none of the front: the back's first entry.
  if (place.exists)
    entry = arith::SelectOp::create(b, place.exists, entry, constant(0));
  Value table = choose(front.table, back.table);
  Value address = LLVM::GEPOp::create(b, table.getType(), b.getI32Type(), table,
                                      ValueRange{wide(entry)});
  Value id = LLVM::LoadOp::create(b, b.getI32Type(), address, /*alignment=*/4,
                                  /*isVolatile=*/false,
                                  /*isNonTemporal=*/false,
                                  /*isInvariant=*/true);
  Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, id,
                                        choose(front.pages, back.pages));
  place.exists =
      place.exists ? arith::AndIOp::create(b, place.exists, isThere).getResult()
                   : isThere;
  Value row = choose(arith::RemUIOp::create(b, position, constant(front.page)),
                     arith::RemUIOp::create(b, inBack, constant(back.page)));
  Value elements = choose(front.offset, back.offset);
  if (column)
    elements = add(elements, wide(column));
  elements =
      add(elements, arith::MulIOp::create(
                        b, wide(id), choose(front.distance, back.distance)));
  elements =
      add(elements, arith::MulIOp::create(b, wide(row),
                                          choose(front.stride, back.stride)));
  Value base = choose(front.base, back.base);
  place.address = LLVM::GEPOp::create(b, base.getType(),
                                      storageOf(view.type.getElementType()),
                                      base, ValueRange{elements});
  return place;
}

PartitionLowering::RowPlace
PartitionLowering::placeRow(ImplicitLocOpBuilder &b, const ViewValue &view,
                            Value position, Value column, bool inBounds) {
  if (view.front)
    return placeJoinedRow(b, view, kernel.views.lookup(view.front),
                          kernel.views.lookup(view.back), position, column,
                          inBounds);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto wide = [&](Value narrow) -> Value {
    return arith::ExtUIOp::create(b, b.getI64Type(), narrow);
  };
  auto times = [&](Value narrow, Value stride) -> Value {
    return arith::MulIOp::create(b, wide(narrow), stride);
  };
  RowPlace place;
  if (!inBounds)
    place.exists = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, position,
                                         view.rows);
  // The view's offset and the thread's column do not depend on the row.
  Value elements = view.offset;
  if (column)
    elements = arith::AddIOp::create(b, elements, wide(column));
  Value row = position, stride = view.stride;
  // Only some rows of a group may exist.
  auto hideMembers = [&] {
    if (view.present == view.group)
      return;
    Value member = arith::RemUIOp::create(b, position, constant(view.group));
    Value isThere = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, member,
                                          constant(view.present));
    place.exists =
        place.exists
            ? arith::AndIOp::create(b, place.exists, isThere).getResult()
            : isThere;
  };
  if (view.tiledRow) {
    Value matrixColumn = elements;
    if (view.group != 1) {
      row = arith::DivUIOp::create(b, position, constant(view.group));
      Value member = arith::RemUIOp::create(b, position, constant(view.group));
      matrixColumn =
          arith::AddIOp::create(b, matrixColumn, times(member, view.members));
      hideMembers();
    }
    row = arith::AddIOp::create(b, wide(row), view.tiledRow);
    place.address = LLVM::GEPOp::create(
        b, view.base.getType(), b.getI8Type(), view.base,
        ValueRange{emitScaleTileOffset(b, row, matrixColumn, stride)});
    return place;
  }
  if (view.page != 0) {
    Value entry = arith::DivUIOp::create(b, position, constant(view.page));
    // The first entry belongs to every sequence that has rows.
    if (place.exists)
      entry = arith::SelectOp::create(b, place.exists, entry, constant(0));
    Value address = LLVM::GEPOp::create(b, view.table.getType(), b.getI32Type(),
                                        view.table, ValueRange{wide(entry)});
    Value id = LLVM::LoadOp::create(b, b.getI32Type(), address, /*alignment=*/4,
                                    /*isVolatile=*/false,
                                    /*isNonTemporal=*/false,
                                    /*isInvariant=*/true);
    Value isThere =
        arith::CmpIOp::create(b, arith::CmpIPredicate::ult, id, view.pages);
    place.exists =
        place.exists
            ? arith::AndIOp::create(b, place.exists, isThere).getResult()
            : isThere;
    elements = arith::AddIOp::create(b, elements, times(id, view.distance));
    row = arith::RemUIOp::create(b, position, constant(view.page));
  } else {
    row = arith::DivUIOp::create(b, position, constant(view.group));
    hideMembers();
    // As many members as rows, less those of the groups in front: no
    // remainder, and a term in which rows of a thread differ by constants.
    elements =
        arith::AddIOp::create(b, elements, times(position, view.members));
    Value group = arith::ConstantIntOp::create(b, view.group, 64);
    stride = arith::SubIOp::create(
        b, stride, arith::MulIOp::create(b, view.members, group));
  }
  elements = arith::AddIOp::create(b, elements, times(row, stride));
  place.address = LLVM::GEPOp::create(b, view.base.getType(),
                                      storageOf(view.type.getElementType()),
                                      view.base, ValueRange{elements});
  return place;
}

PartitionLowering::RowPlace
PartitionLowering::placePage(ImplicitLocOpBuilder &b, const ViewValue &view,
                             Value position, Value start) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto times = [&](Value narrow, Value stride) -> Value {
    return arith::MulIOp::create(
        b, arith::ExtUIOp::create(b, b.getI64Type(), narrow), stride);
  };
  Value entry = arith::DivUIOp::create(b, position, constant(view.page));
  Value address = LLVM::GEPOp::create(
      b, view.table.getType(), b.getI32Type(), view.table,
      ValueRange{arith::ExtUIOp::create(b, b.getI64Type(), entry)});
  Value id = LLVM::LoadOp::create(b, b.getI32Type(), address, /*alignment=*/4,
                                  /*isVolatile=*/false,
                                  /*isNonTemporal=*/false,
                                  /*isInvariant=*/true);
  RowPlace place;
  place.exists =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ult, id, view.pages);
  Value row = arith::RemUIOp::create(b, position, constant(view.page));
  Value elements = arith::AddIOp::create(b, times(id, view.distance),
                                         times(row, view.stride));
  place.address = LLVM::GEPOp::create(b, start.getType(),
                                      storageOf(view.type.getElementType()),
                                      start, ValueRange{elements});
  return place;
}

template <>
LogicalResult PartitionLowering::lower(PageRowsOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto isBelow = [&](Value x, Value y) -> Value {
    return arith::CmpIOp::create(b, arith::CmpIPredicate::ult, x, y);
  };
  auto scale = [&](Value x, uint64_t factor) -> Value {
    return arith::MulIOp::create(b, x, constant(factor));
  };
  int64_t count = op.getDest().getType().getShape()[0];
  Value base = kernel.buffers.lookup(op.getDest()).base;
  Value table = LLVM::GEPOp::create(b, op.getTable().getType(), b.getI32Type(),
                                    op.getTable(), ValueRange{op.getFirst()});
  Value last = arith::SubIOp::create(b, op.getRows(), constant(1));
  auto loop =
      scf::ForOp::create(b, threadId(), constant(count), constant(32 * warps));
  b.setInsertionPoint(loop.getBody()->getTerminator());
  Value row = arith::AddIOp::create(b, op.getRow(), loop.getInductionVar());
  Value page = constant(op.getPage());
  Value entry =
      arith::DivUIOp::create(b, arith::MinUIOp::create(b, row, last), page);
  Value address = LLVM::GEPOp::create(
      b, table.getType(), b.getI32Type(), table,
      ValueRange{arith::ExtUIOp::create(b, b.getI64Type(), entry)});
  Value id = LLVM::LoadOp::create(b, b.getI32Type(), address, /*alignment=*/4,
                                  /*isVolatile=*/false,
                                  /*isNonTemporal=*/false,
                                  /*isInvariant=*/true);
  Value exists = arith::AndIOp::create(b, isBelow(row, op.getRows()),
                                       isBelow(id, op.getPages()));
  Value number = arith::AddIOp::create(
      b, arith::AddIOp::create(b, op.getOffset(), scale(id, op.getDistance())),
      scale(arith::RemUIOp::create(b, row, page), op.getStride()));
  number = arith::SelectOp::create(b, exists, number, constant(-1));
  LLVM::StoreOp::create(b, number,
                        LLVM::GEPOp::create(b, base.getType(), b.getI32Type(),
                                            base,
                                            ValueRange{loop.getInductionVar()}),
                        /*alignment=*/4);
  return success();
}

void lowering::addViewLowerings(LoweringTable &table) {
  table.addReplaced<GlobalViewOp, PagedViewOp, JoinedViewOp, PageRowsOp>();
}
