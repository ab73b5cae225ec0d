//===- BuildProblem.cpp - The module of an attention problem --------------===//

#include "attn/Compile/Problem.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Planner/Choice/SplitKeys.h"
#include "attn/Problem/ScaleTiles.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::attn;

/// The type of q, k, v or o in the problem's memory order.
static MemRefType getOperandType(Builder &builder, const Problem &problem,
                                 int64_t heads, int64_t rows, int64_t columns,
                                 Type element) {
  SmallVector<int64_t> shape = {problem.batch, heads, rows, columns};
  if (problem.dynamic) {
    // Packed sequences have batch 1, whatever their number.
    if (problem.lengthsQ.empty())
      shape[0] = ShapedType::kDynamic;
    shape[2] = ShapedType::kDynamic;
  }
  if (problem.dynamic || problem.openStrides) {
    SmallVector<int64_t> strides(3, ShapedType::kDynamic);
    strides.push_back(1);
    return MemRefType::get(
        shape, element,
        StridedLayoutAttr::get(builder.getContext(), /*offset=*/0, strides));
  }
  if (!problem.sequenceMajor)
    return MemRefType::get(shape, element);
  return MemRefType::get(shape, element,
                         StridedLayoutAttr::get(builder.getContext(),
                                                /*offset=*/0,
                                                {rows * heads * columns,
                                                 columns, heads * columns, 1}));
}

/// The type of a pool of pages of k or v.
static MemRefType getPoolType(Builder &builder, const Problem &problem,
                              int64_t columns, Type element,
                              bool isAdded = false) {
  int64_t heads = problem.kvHeads;
  int64_t rows = isAdded ? problem.addedPageSize : problem.pageSize;
  int64_t pages = isAdded ? problem.getAddedPages() : problem.getPoolPages();
  SmallVector<int64_t> shape = {pages, heads, rows, columns};
  bool isOpen = problem.dynamic || problem.openStrides;
  if (!isOpen && !problem.sequenceMajor)
    return MemRefType::get(shape, element);
  SmallVector<int64_t> strides = {rows * heads * columns, columns,
                                  heads * columns, 1};
  if (problem.dynamic)
    shape[0] = ShapedType::kDynamic;
  if (isOpen) {
    strides = SmallVector<int64_t>(3, ShapedType::kDynamic);
    strides.push_back(1);
  }
  return MemRefType::get(
      shape, element,
      StridedLayoutAttr::get(builder.getContext(), /*offset=*/0, strides));
}

/// Appends the types of page_table, page_indptr and kv_lengths.
static void addPageTypes(Builder &builder, const Problem &problem,
                         SmallVectorImpl<Type> &types) {
  auto lengths = [&](ArrayRef<int64_t> extents) {
    SmallVector<int64_t> shape(extents);
    if (problem.dynamic)
      shape.assign(extents.size(), ShapedType::kDynamic);
    types.push_back(MemRefType::get(shape, builder.getI32Type()));
  };
  int64_t sequences = problem.getSequences();
  if (problem.pageIndptr) {
    lengths({sequences * problem.getTableColumns()});
    lengths({sequences + 1});
  } else if (problem.pageSize != 0) {
    lengths({sequences, problem.getTableColumns()});
  }
  if (!problem.kvLengths.empty())
    lengths({sequences});
}

/// Appends the types of block_counts and block_indices.
static void addBlockTypes(Builder &builder, const Problem &problem,
                          SmallVectorImpl<Type> &types) {
  int64_t lists = (problem.queries + problem.blockRows - 1) / problem.blockRows;
  SmallVector<int64_t> counts = {problem.batch, problem.heads, lists, 2};
  if (problem.dynamic)
    counts[0] = counts[2] = ShapedType::kDynamic;
  SmallVector<int64_t> indices = counts;
  indices[3] =
      problem.dynamic ? ShapedType::kDynamic : problem.keys / problem.blockKeys;
  for (const SmallVector<int64_t> &shape : {counts, indices})
    types.push_back(MemRefType::get(shape, builder.getI32Type()));
}

/// Appends the types of the pools, the table and the lengths of added keys.
static void addAddedTypes(Builder &builder, const Problem &problem,
                          Type keyElement, SmallVectorImpl<Type> &types) {
  types.push_back(getPoolType(builder, problem, problem.getKeyColumns(),
                              keyElement, /*isAdded=*/true));
  if (!problem.isLatent())
    types.push_back(getPoolType(builder, problem, problem.valueDim, keyElement,
                                /*isAdded=*/true));
  SmallVector<int64_t> table = {problem.batch, problem.getAddedColumns()};
  if (problem.dynamic)
    table.assign(2, ShapedType::kDynamic);
  types.push_back(MemRefType::get(table, builder.getI32Type()));
  types.push_back(MemRefType::get(table[0], builder.getI32Type()));
}

/// The type of a v whose keys are contiguous.
static MemRefType getTransposedType(Builder &builder, const Problem &problem,
                                    MemRefType plain) {
  SmallVector<int64_t> strides(4, ShapedType::kDynamic);
  if (!problem.dynamic && !problem.openStrides) {
    int64_t pitch = problem.getValuePitch();
    strides[1] = problem.valueDim * pitch;
    strides[0] = problem.kvHeads * strides[1];
    strides[3] = pitch;
  }
  strides[2] = 1;
  return MemRefType::get(
      plain.getShape(), plain.getElementType(),
      StridedLayoutAttr::get(builder.getContext(), /*offset=*/0, strides));
}

static Type getElementType(Builder &builder, StringRef name) {
  return llvm::StringSwitch<Type>(name)
      .Case("f16", builder.getF16Type())
      .Case("bf16", builder.getBF16Type())
      .Case("f32", builder.getF32Type())
      .Case("f8E4M3FN", builder.getType<Float8E4M3FNType>())
      .Case("f8E5M2", builder.getType<Float8E5M2Type>())
      .Case("f8E8M0FNU", builder.getType<Float8E8M0FNUType>())
      // Two of them are in a byte.
      .Case("f4E2M1FN", builder.getI8Type());
}

/// The type of an LSE.
static MemRefType getLogType(Builder &builder, const Problem &problem) {
  Type f32 = builder.getF32Type();
  MemRefType rows = getOperandType(builder, problem, problem.heads,
                                   problem.queries, /*columns=*/1, f32);
  SmallVector<int64_t> shape(rows.getShape().drop_back());
  // A row's maximum and its sum.
  if (problem.rowState)
    shape.push_back(2);
  return MemRefType::get(shape, f32);
}

/// Returns the type of the scales of an output, which may be in tiles.
static MemRefType getOutputScaleType(Builder &builder, const Problem &problem) {
  Type element = getElementType(builder, problem.getScaleType());
  int64_t groups = problem.valueDim / problem.outGroup;
  if (!problem.outScaleTiles)
    return getOperandType(builder, problem, problem.heads, problem.queries,
                          groups, element);
  int64_t rows =
      problem.dynamic
          ? ShapedType::kDynamic
          : llvm::alignTo(problem.batch * problem.queries, kScaleTileRows);
  return MemRefType::get(
      {rows, int64_t(llvm::alignTo(problem.heads * groups, kScaleTileColumns))},
      element);
}

/// The types of the function's arguments.
static SmallVector<Type> getArgumentTypes(Builder &builder,
                                          const Problem &problem) {
  Type element = getElementType(builder, problem.type);
  Type keyElement = problem.kvType.empty()
                        ? element
                        : getElementType(builder, problem.kvType);
  Type out = getElementType(builder, problem.outType);
  int64_t dynamic = ShapedType::kDynamic;
  SmallVector<Type> types = {
      getOperandType(builder, problem, problem.heads, problem.queries,
                     problem.getQueryColumns(), element),
      getOperandType(builder, problem, problem.kvHeads, problem.keys,
                     problem.getKeyColumns(), keyElement),
      getOperandType(builder, problem, problem.kvHeads, problem.keys,
                     problem.valueDim, keyElement),
      getOperandType(builder, problem, problem.heads, problem.queries,
                     problem.getOutputColumns(), out)};
  if (problem.pageSize != 0) {
    types[1] =
        getPoolType(builder, problem, problem.getKeyColumns(), keyElement);
    types[2] = getPoolType(builder, problem, problem.valueDim, keyElement);
  }
  if (problem.vTransposed)
    types[2] = getTransposedType(builder, problem, cast<MemRefType>(types[2]));
  // Values are a view of the keys.
  if (problem.isLatent())
    types.erase(types.begin() + 2);
  if (problem.lse)
    types.push_back(getLogType(builder, problem));
  if (problem.sinks)
    types.push_back(MemRefType::get({problem.heads}, builder.getF32Type()));
  bool varlen = !problem.lengthsQ.empty();
  if (varlen) {
    int64_t entries = problem.lengthsQ.size() + 1;
    Type lengths = MemRefType::get({problem.dynamic ? dynamic : entries},
                                   builder.getI32Type());
    types.append(problem.lengthsK.empty() ? 1 : 2, lengths);
  }
  if (problem.descales) {
    int64_t sequences = varlen ? problem.lengthsQ.size() : problem.batch;
    if (problem.dynamic)
      sequences = dynamic;
    SmallVector<int64_t> allHeads = {problem.kvHeads, problem.kvHeads};
    if (problem.isNarrow())
      allHeads.insert(allHeads.begin(), problem.heads);
    for (int64_t heads : allHeads)
      types.push_back(
          MemRefType::get({sequences, heads}, builder.getF32Type()));
  }
  addPageTypes(builder, problem, types);
  if (problem.blockRows != 0)
    addBlockTypes(builder, problem, types);
  if (problem.initState) {
    types.push_back(getOperandType(builder, problem, problem.heads,
                                   problem.queries, problem.valueDim,
                                   builder.getF32Type()));
    types.push_back(getLogType(builder, problem));
  }
  auto addRows = [&](int64_t columns, Type type) {
    types.push_back(problem.pageSize != 0
                        ? getPoolType(builder, problem, columns, type)
                        : getOperandType(builder, problem, problem.kvHeads,
                                         problem.keys, columns, type));
  };
  if (int64_t group = problem.scaleGroup) {
    addRows(problem.getKeyColumns() / group, builder.getF32Type());
    if (!problem.isLatent())
      addRows(problem.valueDim / group, builder.getF32Type());
  }
  if (problem.hasOwnRope())
    addRows(problem.getRopeColumns(), element);
  if (problem.ropeApart)
    types.push_back(getOperandType(builder, problem, problem.heads,
                                   problem.queries, problem.getRopeColumns(),
                                   element));
  if (problem.outGroup != 0)
    types.push_back(getOutputScaleType(builder, problem));
  if (problem.amax)
    types.push_back(MemRefType::get({1}, builder.getF32Type()));
  if (!problem.addedLengths.empty())
    addAddedTypes(builder, problem, keyElement, types);
  return types;
}

/// The first columns of k.
static Value makeLatentValues(OpBuilder &builder, Location loc,
                              const Problem &problem, Value k) {
  auto type = cast<MemRefType>(k.getType());
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0)),
      strides(4, builder.getIndexAttr(1)), sizes;
  for (auto [dim, extent] : llvm::enumerate(type.getShape())) {
    if (dim == 3)
      sizes.push_back(builder.getIndexAttr(problem.valueDim));
    else if (ShapedType::isDynamic(extent))
      sizes.push_back(memref::DimOp::create(builder, loc, k, dim).getResult());
    else
      sizes.push_back(builder.getIndexAttr(extent));
  }
  return memref::SubViewOp::create(builder, loc, k, offsets, sizes, strides);
}

/// Sets the attributes that the problem states.
static void setAttributes(OpBuilder &builder, const Problem &problem,
                          AttentionOp op) {
  if (problem.mask != MaskKind::None)
    op.setMaskAttr(MaskAttr::get(builder.getContext(), problem.mask,
                                 problem.align, problem.left, problem.right));
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (problem.ID)                                                              \
    op->setAttr(NAME, builder.getF32FloatAttr(static_cast<float>(*problem.ID)));
#define ATTN_COUNT(ID, NAME, VALUE, CONSTRAINTS, DOC)                          \
  if (problem.ID != 0)                                                         \
    op->setAttr(NAME, builder.getI64IntegerAttr(problem.ID));
#define ATTN_NATURAL(ID, NAME, VALUE, CONSTRAINTS, DOC)                        \
  if (problem.ID)                                                              \
    op->setAttr(NAME, builder.getI64IntegerAttr(*problem.ID));
#include "attn/Problem/Options.def"
  op.setSelected(problem.selected);
  op.setRowState(problem.rowState);
  if (!problem.expectedKeys.empty())
    op.setExpectedKeys(problem.expectedKeys);
  if (!problem.lengthsQ.empty())
    op.setMaxSeqlenQAttr(
        builder.getI64IntegerAttr(*llvm::max_element(problem.lengthsQ)));
}

OwningOpRef<ModuleOp> attn::buildProblem(MLIRContext *context,
                                         const Problem &problem) {
  context->loadDialect<AttnDialect, arith::ArithDialect, func::FuncDialect,
                       memref::MemRefDialect>();
  OpBuilder builder(context);
  Location loc = FileLineColLoc::get(context, "<flags>", 1, 1);
  OwningOpRef<ModuleOp> module(ModuleOp::create(loc));
  builder.setInsertionPointToEnd(module->getBody());
  auto function = func::FuncOp::create(
      builder, loc, "attention",
      builder.getFunctionType(getArgumentTypes(builder, problem), TypeRange()));
  builder.setInsertionPointToStart(function.addEntryBlock());
  ArrayRef<BlockArgument> arguments = function.getArguments();
  bool isLatent = problem.isLatent();
  Value k = arguments[1];
  Value v = isLatent ? makeLatentValues(builder, loc, problem, k)
                     : Value(arguments[2]);
  unsigned next = isLatent ? 3 : 4;
  auto take = [&](bool present) -> Value {
    return present ? Value(arguments[next++]) : Value();
  };
  bool varlen = !problem.lengthsQ.empty();
  Value o = arguments[next - 1], lse = take(problem.lse),
        sinks = take(problem.sinks);
  Value lengthsQ = take(varlen), lengthsK = take(!problem.lengthsK.empty());
  auto op = AttentionOp::create(builder, loc, arguments[0], k, v, o, lse, sinks,
                                lengthsQ, lengthsK);
  if (problem.descales) {
    if (problem.isNarrow())
      op.getQDescaleMutable().assign(take(true));
    op.getKDescaleMutable().assign(take(true));
    op.getVDescaleMutable().assign(take(true));
  }
  if (problem.pageSize != 0)
    op.getPageTableMutable().assign(take(true));
  if (problem.pageIndptr)
    op.getPageIndptrMutable().assign(take(true));
  if (!problem.kvLengths.empty())
    op.getKvLengthsMutable().assign(take(true));
  if (problem.blockRows != 0) {
    op.getBlockCountsMutable().assign(take(true));
    op.getBlockIndicesMutable().assign(take(true));
  }
  if (problem.initState) {
    op.getInitOMutable().assign(take(true));
    op.getInitLseMutable().assign(take(true));
  }
  if (problem.scaleGroup != 0) {
    op.getKScalesMutable().assign(take(true));
    if (!isLatent)
      op.getVScalesMutable().assign(take(true));
  }
  if (problem.hasOwnRope())
    op.getKRopeMutable().assign(take(true));
  if (problem.ropeApart)
    op.getQRopeMutable().assign(take(true));
  if (problem.outGroup != 0)
    op.getOScalesMutable().assign(take(true));
  if (problem.amax)
    op.getAmaxMutable().assign(take(true));
  if (!problem.addedLengths.empty()) {
    op.getAddedKMutable().assign(take(true));
    if (!isLatent)
      op.getAddedVMutable().assign(take(true));
    op.getAddedTableMutable().assign(take(true));
    op.getAddedLengthsMutable().assign(take(true));
  }
  setAttributes(builder, problem, op);
  if (problem.kvSplits != 0)
    splitKeys(op, problem.kvSplits);
  func::ReturnOp::create(builder, loc);
  return module;
}
