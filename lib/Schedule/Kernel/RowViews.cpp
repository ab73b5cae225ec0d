//===- RowViews.cpp - Views of the rows of a head -------------------------===//

#include "attn/Schedule/Kernel/RowViews.h"
#include "attn/Dialect/Attn/IR/ScaleOffsets.h"
#include "attn/Problem/ScaleTiles.h"
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

Value attn::emitKVHead(KernelContext &context, Value head) {
  const ProblemFacts &facts = context.facts;
  ImplicitLocOpBuilder &b = context.b;
  if (facts.heads == facts.kvHeads && !ShapedType::isDynamic(facts.heads))
    return head;
  if (facts.kvHeads == 1)
    return context.i32(0);
  bool isDynamic = ShapedType::isDynamic(facts.heads) ||
                   ShapedType::isDynamic(facts.kvHeads);
  Value group = isDynamic ? arith::DivUIOp::create(b, context.getHeads(),
                                                   context.getKVHeads())
                                .getResult()
                          : context.i32(facts.heads / facts.kvHeads);
  return arith::DivUIOp::create(b, head, group);
}

IntegerAttr attn::getPresentRows(KernelContext &context, const HeadRows &rows) {
  return rows.members == rows.group ? IntegerAttr()
                                    : context.b.getI64IntegerAttr(rows.members);
}

/// Returns a view of a column of scales in tiles 128x4, or of a word of them.
static Value emitTiledRows(KernelContext &context, StringRef name,
                           const HeadRows &rows) {
  assert(!rows.part && !rows.leadIndex &&
         "expected whole rows of a tensor without a leading dimension");
  ImplicitLocOpBuilder &b = context.b;
  const ProblemFacts &facts = context.facts;
  Value groups = context.i64(facts.valueDim / facts.outGroup);
  Value column = emitScaleColumn(
      b, context.widen(rows.head), groups,
      rows.firstColumn ? context.i64(rows.firstColumn) : Value());
  Value origin = rows.origin ? context.widen(rows.origin) : Value();
  Value first;
  if (!rows.start)
    first = emitScaleRow(b, context.widen(rows.batch),
                         context.widen(context.getSize("o", 2)), origin);
  else
    first = origin ? arith::AddIOp::create(b, rows.start, origin).getResult()
                   : rows.start;
  Type element = context.getTensor(name).elementType;
  if (rows.inWord != 0)
    element = b.getI32Type();
  bool isScaled = rows.group != 1;
  return GlobalViewOp::create(
      b, GlobalType::get(b.getContext(), {ShapedType::kDynamic}, element),
      context.getPointer(name), column, rows.rows, context.getStride(name, 0),
      isScaled ? groups : Value(), first, /*alignment=*/IntegerAttr(),
      isScaled ? b.getI64IntegerAttr(rows.group) : IntegerAttr(),
      isScaled ? getPresentRows(context, rows) : IntegerAttr(),
      isScaled && rows.isInBounds ? b.getUnitAttr() : UnitAttr());
}

Value attn::emitHeadRows(KernelContext &context, StringRef name,
                         const HeadRows &rows) {
  if (isInScaleTiles(context.getTensor(name).shape))
    return emitTiledRows(context, name, rows);
  ImplicitLocOpBuilder &b = context.b;
  // Offsets may exceed 2^31 elements: 64 bits here, 32 inside of a tile.
  auto mul = [&](Value x, Value y) -> Value {
    return arith::MulIOp::create(b, x, y);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, x, y);
  };
  const TensorFacts &tensor = context.getTensor(name);
  unsigned lead = rows.lead;
  Value rowStride = context.getStride(name, lead + 2);
  bool isScaled = rows.group != 1;
  SmallVector<Value> indices = {rows.head, rows.batch};
  SmallVector<int64_t> strides = {tensor.strides[lead + 1],
                                  tensor.strides[lead]};
  if (rows.leadIndex) {
    indices.push_back(rows.leadIndex);
    strides.push_back(tensor.strides.front());
  }
  bool isKnown = !rows.start && !rows.origin &&
                 !llvm::is_contained(strides, ShapedType::kDynamic);
  Value headStride;
  if (isScaled || !isKnown)
    headStride = context.getStride(name, lead + 1);
  Value offset;
  if (isKnown) {
    bool hasFirst = rows.firstColumn && !rows.isOneColumn && rows.inWord == 0;
    offset = ElementOffsetOp::create(b, indices, strides,
                                     hasFirst ? rows.firstColumn : 0);
  } else {
    offset = mul(context.widen(rows.head), headStride);
    offset = add(offset, rows.start ? mul(rows.start, rowStride)
                                    : mul(context.widen(rows.batch),
                                          context.getStride(name, lead)));
    if (rows.origin)
      offset = add(offset, mul(context.widen(rows.origin), rowStride));
    if (rows.leadIndex)
      offset = add(offset, mul(context.widen(rows.leadIndex),
                               context.getStride(name, 0)));
  }
  SmallVector<int64_t> shape = {ShapedType::kDynamic};
  IntegerAttr alignment;
  bool isOneColumn = rows.isOneColumn || rows.inWord != 0;
  if (tensor.shape.size() == lead + 4 && !isOneColumn) {
    shape.push_back(rows.columns ? rows.columns : tensor.shape.back());
    int64_t bytes = std::gcd(rows.firstColumn, rows.partColumns) *
                    tensor.elementType.getIntOrFloatBitWidth() / 8;
    alignment = b.getI64IntegerAttr(std::gcd(tensor.getRowAlignment(), bytes));
  }
  if (isOneColumn)
    offset = add(offset, mul(context.i64(rows.firstColumn),
                             context.getStride(name, lead + 3)));
  else if (rows.firstColumn && !isKnown)
    offset = add(offset, context.i64(rows.firstColumn));
  if (rows.part)
    offset = add(offset,
                 mul(context.widen(rows.part), context.i64(rows.partColumns)));
  Type element = tensor.elementType;
  if (rows.inWord != 0) {
    element = b.getI32Type();
    for (Value *distance : {&offset, &rowStride, &headStride})
      if (*distance)
        *distance =
            arith::DivUIOp::create(b, *distance, context.i64(rows.inWord));
  }
  auto type = GlobalType::get(b.getContext(), shape, element);
  Value pointer = context.getPointer(name);
  if (rows.group == 1)
    return GlobalViewOp::create(b, type, pointer, offset, rows.rows, rowStride,
                                alignment);
  return GlobalViewOp::create(
      b, type, pointer, offset, rows.rows, rowStride, headStride,
      /*first=*/Value(), alignment, b.getI64IntegerAttr(rows.group),
      getPresentRows(context, rows),
      rows.isInBounds ? b.getUnitAttr() : UnitAttr());
}
