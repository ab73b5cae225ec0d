//===- ProblemOps.cpp - Verifiers and interfaces of the problem -----------===//
//
// attn.attention, attn.combine and attn.yield. Each check carries the number
// that its constraint has in docs/spec.md; the tests use the same numbers.
//
//===----------------------------------------------------------------------===//

#include "../ElementTypes.h"
#include "../ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Problem/Options.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

/// Largest length, batch or window bound: kernels index with int32.
static constexpr int64_t kIndexLimit = int64_t(1) << 31;

//===----------------------------------------------------------------------===//
// AttentionOp
//===----------------------------------------------------------------------===//

void AttentionOp::build(OpBuilder &builder, OperationState &state, Value q,
                        Value k, Value v, Value o, Value lse, Value sinks,
                        Value cuSeqlensQ, Value cuSeqlensK) {
  SmallVector<Type> results;
  for (Value init : {o, lse})
    if (init && isa<RankedTensorType>(init.getType()))
      results.push_back(init.getType());
  state.addTypes(results);
  // A segment for each operand of the op; those behind cu_seqlens are empty.
  auto &segments = state.getOrAddProperties<Properties>().operandSegmentSizes;
  segments.fill(0);
  const Value operands[] = {q,       k,       v,     o,          lse,
                            Value(), Value(), sinks, cuSeqlensQ, cuSeqlensK};
  for (auto [segment, operand] : llvm::enumerate(operands)) {
    if (!operand)
      continue;
    state.addOperands(operand);
    segments[segment] = 1;
  }
  // score_mod and mask_mod.
  state.addRegion();
  state.addRegion();
}

MutableOperandRange AttentionOp::getDpsInitsMutable() {
  // o is the operand after q, k and v; lse, o_scales and amax follow it.
  return MutableOperandRange(getOperation(), /*start=*/3,
                             /*length=*/1 + (getLse() ? 1 : 0) +
                                 (getOScales() ? 1 : 0) + (getAmax() ? 1 : 0));
}

void AttentionOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  addDestinationStyleEffects(*this, effects);
}

/// The name that `plan` gives the kernel, else `name`.
static StringRef getNameInForce(std::optional<PlanAttrInterface> plan,
                                StringRef name) {
  StringRef given = plan ? plan->getKernelName() : StringRef();
  return given.empty() ? name : given;
}

StringRef AttentionOp::getKernelName() {
  return getNameInForce(getPlan(), getKernel());
}

StringRef CombineOp::getKernelName() {
  return getNameInForce(getPlan(), getKernel());
}

double AttentionOp::getEffectiveScale() {
  if (FloatAttr scale = getScaleAttr())
    return scale.getValueAsDouble();
  return 1.0 / std::sqrt(static_cast<double>(getHeadDim()));
}

MaskAttr AttentionOp::getEffectiveMask() {
  if (MaskAttr mask = getMaskAttr())
    return mask;
  return MaskAttr::get(getContext(), MaskKind::None, MaskAlign::TopLeft, -1,
                       -1);
}

/// The extents of an attention that have to agree.
static LogicalResult checkExtents(AttentionOp op) {
  // Partial results have a leading dimension for the split.
  unsigned lead = op.getKvSplits() ? 1 : 0;
  NamedValue q{"q", op.getQ()}, k{"k", op.getK()}, v{"v", op.getV()},
      o{"o", op.getO()}, lse{"lse", op.getLse()},
      initO{"init_o", op.getInitO()}, initLse{"init_lse", op.getInitLse()};

  // attention_c8
  for (NamedValue operand : {q, k, v, o})
    if (failed(checkStaticExtent(op, operand, operand.getRank() - 1,
                                 "a head dimension")))
      return failure();

  // attention_c31
  for (NamedValue operand : {q, k, v})
    for (unsigned dim : {0u, 2u})
      if (operand.getExtent(dim) >= kIndexLimit)
        return op.emitOpError("expected dimension ")
               << dim << " of '" << operand.name << "' to be below 2^31, got "
               << operand.getExtent(dim);

  // attention_c9
  int64_t heads = q.getExtent(1), keyHeads = k.getExtent(1);
  if (heads == 0 || keyHeads == 0)
    return op.emitOpError("expected at least one head, got ")
           << heads << " query heads and " << keyHeads << " key heads";
  if (!ShapedType::isDynamic(heads) && !ShapedType::isDynamic(keyHeads) &&
      heads % keyHeads != 0)
    return op.emitOpError("expected the number of query heads to be a multiple "
                          "of the number of key heads, got ")
           << heads << " and " << keyHeads;

  // attention_c10
  Extent batch(op, "batch");
  if (failed(batch.unify(q, 0)) || failed(batch.unify(o, lead)) ||
      failed(batch.unify(lse, lead)) || failed(batch.unify(initO, 0)) ||
      failed(batch.unify(initLse, 0)))
    return failure();
  // With pages, dimension 0 of k and v counts the pages of the pool.
  Extent pages(op, "pages");
  Extent &keyBatch = op.getPageTable() ? pages : batch;
  if (failed(keyBatch.unify(k, 0)) || failed(keyBatch.unify(v, 0)))
    return failure();

  // attention_c11
  Extent queryHeads(op, "query heads");
  if (failed(queryHeads.unify(q, 1)) || failed(queryHeads.unify(o, lead + 1)) ||
      failed(queryHeads.unify(lse, lead + 1)) ||
      failed(queryHeads.unify({"sinks", op.getSinks()}, 0)) ||
      failed(queryHeads.unify(initO, 1)) ||
      failed(queryHeads.unify(initLse, 1)))
    return failure();
  // attention_c12
  Extent kvHeads(op, "key heads");
  if (failed(kvHeads.unify(k, 1)) || failed(kvHeads.unify(v, 1)))
    return failure();
  // attention_c13
  Extent queries(op, "queries");
  if (failed(queries.unify(q, 2)) || failed(queries.unify(o, lead + 2)) ||
      failed(queries.unify(lse, lead + 2)) || failed(queries.unify(initO, 2)) ||
      failed(queries.unify(initLse, 2)))
    return failure();
  // attention_c14
  Extent keys(op, "keys");
  if (failed(keys.unify(k, 2)) || failed(keys.unify(v, 2)))
    return failure();
  // attention_c15
  Extent headDim(op, "head dimension");
  if (!op.getKRope() &&
      (failed(headDim.unify(q, 3)) || failed(headDim.unify(k, 3))))
    return failure();
  // attention_c16
  Extent valueDim(op, "value dimension");
  // Pairs have half as many columns (attention_c53).
  bool isPaired = isPairOfFloat4(elementTypeOf(o.value));
  return success(succeeded(valueDim.unify(v, 3)) &&
                 (isPaired || succeeded(valueDim.unify(o, lead + 3))) &&
                 succeeded(valueDim.unify(initO, 3)));
}

static LogicalResult checkElementTypes(AttentionOp op) {
  // attention_c5
  Type type = elementTypeOf(op.getQ());
  if (!type.isF16() && !type.isBF16() && !isFloat8(type))
    return op.emitOpError("expected 'q' of type f16, bf16, f8E4M3FN or "
                          "f8E5M2, got ")
           << type;
  Type keyType = elementTypeOf(op.getK());
  if (keyType != type && (isFloat8(type) || !isFloat8(keyType))) {
    InFlightDiagnostic diag =
        op.emitOpError("expected 'k' of the type of 'q', ")
        << type << (isFloat8(type) ? "" : ", or of 8 bits") << ", got "
        << keyType;
    diag.attachNote(op.getQ().getLoc()) << "'q' stands here";
    return diag;
  }
  if (Type valueType = elementTypeOf(op.getV()); valueType != keyType) {
    InFlightDiagnostic diag =
        op.emitOpError("expected 'v' of the type of 'k', ")
        << keyType << ", got " << valueType;
    diag.attachNote(op.getK().getLoc()) << "'k' stands here";
    return diag;
  }
  // attention_c6, attention_c24
  Type outType = elementTypeOf(op.getO());
  if (op.getKvSplits()) {
    if (!outType.isF32() && !outType.isBF16() && !outType.isF16())
      return op.emitOpError(
                 "expected partial results of type f32, bf16 or f16, got ")
             << outType;
  } else if (!isOutputType(outType) && !isFloat8(outType) &&
             !isPairOfFloat4(outType)) {
    return op.emitOpError("expected 'o' of type f16, bf16, f32, f8E4M3FN, "
                          "f8E5M2 or, for pairs of f4E2M1FN, i8, got ")
           << outType;
  }
  // attention_c26
  if (!isFloat8(outType) && !isPairOfFloat4(outType) && op.getOutScaleAttr())
    return op.emitOpError("expected 'out_scale' only with an 8-bit output, "
                          "got an output of type ")
           << outType;
  if (isFloat8(outType) && !op.getOScales() && !op.getOutScaleAttr())
    return op.emitOpError("expected 'out_scale' with an output of type ")
           << outType << ", got none";
  // attention_c41
  if (!op.getInitO() != !op.getInitLse())
    return op.emitOpError("expected both 'init_o' and 'init_lse' or neither, "
                          "got one");
  if (Value init = op.getInitO(); init && !isOutputType(elementTypeOf(init)))
    return op.emitOpError("expected 'init_o' of type f16, bf16 or f32, got ")
           << elementTypeOf(init);
  // attention_c7, attention_c41
  for (NamedValue operand :
       {NamedValue{"lse", op.getLse()}, NamedValue{"sinks", op.getSinks()},
        NamedValue{"init_lse", op.getInitLse()}})
    if (operand.value && !elementTypeOf(operand.value).isF32())
      return op.emitOpError("expected '")
             << operand.name << "' of type f32, got "
             << elementTypeOf(operand.value);
  // attention_c21, attention_c23, attention_c37, attention_c38, attention_c54
  for (NamedValue operand : {NamedValue{"cu_seqlens_q", op.getCuSeqlensQ()},
                             NamedValue{"cu_seqlens_k", op.getCuSeqlensK()},
                             NamedValue{"page_table", op.getPageTable()},
                             NamedValue{"page_indptr", op.getPageIndptr()},
                             NamedValue{"kv_lengths", op.getKvLengths()},
                             NamedValue{"block_counts", op.getBlockCounts()},
                             NamedValue{"block_indices", op.getBlockIndices()}})
    if (operand.value && !elementTypeOf(operand.value).isInteger(32))
      return op.emitOpError("expected '")
             << operand.name << "' of type i32, got "
             << elementTypeOf(operand.value);
  return success();
}

/// Packed sequences of different lengths.
static LogicalResult checkVariableLengths(AttentionOp op) {
  // attention_c20
  bool hasOwnKeys = op.getPageTable() && op.getKvLengths();
  if (!op.getCuSeqlensQ() != !op.getCuSeqlensK() &&
      !(op.getCuSeqlensQ() && hasOwnKeys))
    return op.emitOpError("expected both 'cu_seqlens_q' and 'cu_seqlens_k' or "
                          "neither, or 'cu_seqlens_q' beside pages and "
                          "'kv_lengths', got one");
  // attention_c22
  IntegerAttr maxLength = op.getMaxSeqlenQAttr();
  if (!op.isVariableLength()) {
    if (maxLength)
      return op.emitOpError("expected 'max_seqlen_q' only with cu_seqlens");
    return success();
  }
  // attention_c21
  NamedValue lengthsQ{"cu_seqlens_q", op.getCuSeqlensQ()};
  NamedValue lengthsK{"cu_seqlens_k", op.getCuSeqlensK()};
  Extent entries(op, "batch + 1");
  if (failed(entries.unify(lengthsQ, 0)) || failed(entries.unify(lengthsK, 0)))
    return failure();
  for (NamedValue lengths : {lengthsQ, lengthsK})
    if (lengths.value && !ShapedType::isDynamic(lengths.getExtent(0)) &&
        lengths.getExtent(0) < 2)
      return op.emitOpError("expected at least two elements in '")
             << lengths.name << "', got " << lengths.getExtent(0);
  // attention_c22
  if (op.getShape(op.getQ())[0] != 1)
    return op.emitOpError("expected batch 1 with cu_seqlens, since the "
                          "sequences are packed, got ")
           << describeExtent(op.getShape(op.getQ())[0]);
  if (!maxLength)
    return op.emitOpError("expected 'max_seqlen_q' with cu_seqlens, got none");
  if (maxLength.getInt() < 0 || maxLength.getInt() >= kIndexLimit)
    return op.emitOpError("expected 'max_seqlen_q' in [0, 2^31), got ")
           << maxLength.getInt();
  return success();
}

/// The number of sequences.
static int64_t countBatches(AttentionOp op) {
  if (!op.isVariableLength())
    return op.getShape(op.getQ())[0];
  int64_t entries = op.getShape(op.getCuSeqlensQ())[0];
  return ShapedType::isDynamic(entries) ? entries : entries - 1;
}

/// Keys and values in pages of a pool.
static LogicalResult checkPages(AttentionOp op) {
  // attention_c40
  if (op.getSelected()) {
    if (!op.getPageTable())
      return op.emitOpError("expected 'selected' only with a page table");
    if (MaskKind kind = op.getEffectiveMask().getKind(); kind != MaskKind::None)
      return op.emitOpError("expected no mask with 'selected', since the keys "
                            "of a table have no positions, got '")
             << stringifyMaskKind(kind) << "'";
  }
  // attention_c23
  IntegerAttr pageSize = op.getPageSizeAttr();
  if (!op.getPageTable() != !pageSize)
    return op.emitOpError("expected both a page table and 'page_size' or "
                          "neither, got one");
  if (!pageSize)
    return success();
  int64_t size = pageSize.getInt();
  if (size < 1 || size >= kIndexLimit)
    return op.emitOpError("expected 'page_size' in [1, 2^31), got ") << size;
  for (NamedValue operand :
       {NamedValue{"k", op.getK()}, NamedValue{"v", op.getV()}})
    if (operand.getExtent(2) != size)
      return op.emitOpError("expected dimension 2 of '")
             << operand.name << "' to be the page size " << size << ", got "
             << describeExtent(operand.getExtent(2));
  if (op.getShape(op.getK())[0] == 0)
    return op.emitOpError("expected dimension 0 of 'k', its pages, to be at "
                          "least 1, got 0");
  int64_t batch = countBatches(op);
  if (op.getPageIndptr())
    return success();
  int64_t rows = op.getShape(op.getPageTable())[0];
  if (!ShapedType::isDynamic(rows) && !ShapedType::isDynamic(batch) &&
      rows != batch)
    return op.emitOpError("expected one row of the page table for each batch, "
                          "got ")
           << rows << " rows and " << batch << " batches";
  return success();
}

/// Lengths of the sequences' keys, and cumulative counts of their pages.
static LogicalResult checkSequences(AttentionOp op) {
  int64_t batch = countBatches(op);
  auto disagrees = [&](Value value, int64_t more) {
    int64_t extent = op.getShape(value)[0];
    return !ShapedType::isDynamic(extent) && !ShapedType::isDynamic(batch) &&
           extent != batch + more;
  };
  // attention_c37
  if (Value lengths = op.getKvLengths()) {
    if (op.getCuSeqlensK())
      return op.emitOpError("expected 'kv_lengths' or 'cu_seqlens_k', which "
                            "both say how many keys there are, got both");
    if (disagrees(lengths, 0))
      return op.emitOpError("expected one of 'kv_lengths' for each batch, got ")
             << op.getShape(lengths)[0] << " and " << batch << " batches";
  }
  // attention_c38
  if (Value counts = op.getPageIndptr()) {
    if (!op.getPageTable())
      return op.emitOpError("expected 'page_indptr' only with a page table");
    if (disagrees(counts, 1))
      return op.emitOpError("expected one of 'page_indptr' more than batches, "
                            "got ")
             << op.getShape(counts)[0] << " and " << batch << " batches";
  }
  return success();
}

/// Lists of blocks of keys.
static LogicalResult checkBlocks(AttentionOp op) {
  // attention_c54
  IntegerAttr rows = op.getBlockRowsAttr(), keys = op.getBlockKeysAttr();
  Value counts = op.getBlockCounts(), indices = op.getBlockIndices();
  if (!rows != !keys || !rows != !counts || !rows != !indices)
    return op.emitOpError("expected all of 'block_counts', 'block_indices', "
                          "'block_rows' and 'block_keys' or none, got some");
  if (!rows)
    return success();
  for (auto [name, size] :
       {std::pair("block_rows", rows), std::pair("block_keys", keys)})
    if (size.getInt() < 1 || size.getInt() >= kIndexLimit)
      return op.emitOpError("expected '")
             << name << "' in [1, 2^31), got " << size.getInt();
  // attention_c56
  for (auto [name, isThere] :
       {std::pair("cu_seqlens", op.isVariableLength()),
        std::pair("a page table", static_cast<bool>(op.getPageTable())),
        std::pair("'kv_lengths'", static_cast<bool>(op.getKvLengths())),
        std::pair("'kv_splits'", op.getKvSplits().has_value()),
        std::pair("'rope_dim'", op.getRopeDim().has_value()),
        std::pair("'scales'", static_cast<bool>(op.getKScales())),
        std::pair("'key_range'", op.hasKeyRange())})
    if (isThere)
      return op.emitOpError("expected no lists of blocks beside ") << name;
  if (MaskKind kind = op.getEffectiveMask().getKind(); kind != MaskKind::None)
    return op.emitOpError("expected no mask with lists of blocks, whose "
                          "'mask_mod' says what they leave, got '")
           << stringifyMaskKind(kind) << "'";
  // attention_c55
  ArrayRef<int64_t> q = op.getShape(op.getQ());
  int64_t held = op.getShape(op.getK())[2];
  if (!ShapedType::isDynamic(held) && held % keys.getInt() != 0)
    return op.emitOpError("expected keys in whole blocks of 'block_keys' = ")
           << keys.getInt() << ", got " << held;
  int64_t lists = ShapedType::isDynamic(q[2])
                      ? q[2]
                      : llvm::divideCeil(q[2], rows.getInt());
  for (NamedValue operand : {NamedValue{"block_counts", counts},
                             NamedValue{"block_indices", indices}}) {
    const int64_t expected[] = {q[0], q[1], lists};
    for (auto [dim, extent] : llvm::enumerate(expected))
      if (!ShapedType::isDynamic(extent) &&
          !ShapedType::isDynamic(operand.getExtent(dim)) &&
          operand.getExtent(dim) != extent)
        return op.emitOpError("expected dimension ")
               << dim << " of '" << operand.name << "' to be " << extent
               << ", got " << operand.getExtent(dim);
  }
  if (int64_t pair = op.getShape(counts)[3]; pair != 2)
    return op.emitOpError("expected two numbers in 'block_counts' for each "
                          "list, got ")
           << describeExtent(pair);
  return success();
}

/// Most keys of a sequence; dynamic if only the launch knows.
static int64_t countKeys(AttentionOp op) {
  if (!op.getPageTable())
    return op.getShape(op.getK())[2];
  ArrayRef<int64_t> table = op.getShape(op.getPageTable());
  if (op.getPageIndptr() || table.size() != 2 ||
      ShapedType::isDynamic(table[1]) || !op.getPageSize())
    return ShapedType::kDynamic;
  return llvm::SaturatingMultiply<uint64_t>(table[1], *op.getPageSize());
}

/// Partial results, the absorbed latent form, and the window.
static LogicalResult checkVariants(AttentionOp op) {
  // attention_c24
  if (IntegerAttr splits = op.getKvSplitsAttr()) {
    if (splits.getInt() < 1)
      return op.emitOpError("expected 'kv_splits' of at least 1, got ")
             << splits.getInt();
    if (!op.getLse())
      return op.emitOpError("expected 'lse' with 'kv_splits', since partial "
                            "results are merged by it, got none");
    for (NamedValue operand :
         {NamedValue{"o", op.getO()}, NamedValue{"lse", op.getLse()}})
      if (operand.getExtent(0) != splits.getInt())
        return op.emitOpError("expected dimension 0 of '")
               << operand.name << "' to be 'kv_splits' = " << splits.getInt()
               << ", got " << describeExtent(operand.getExtent(0));
  }
  // attention_c39
  if (IntegerAttr run = op.getRunKeysAttr()) {
    if (run.getInt() < 1)
      return op.emitOpError("expected 'run_keys' of at least 1, got ")
             << run.getInt();
    if (!op.getKvSplits())
      return op.emitOpError(
          "expected 'kv_splits' beside 'run_keys', which says "
          "how many runs there are, got none");
    int64_t keys = countKeys(op);
    int64_t least = llvm::divideCeil(std::max<int64_t>(keys, 0), run.getInt());
    if (!ShapedType::isDynamic(keys) &&
        static_cast<int64_t>(*op.getKvSplits()) < least)
      return op.emitOpError("expected 'kv_splits' of at least ")
             << least << " for " << keys << " keys in runs of " << run.getInt()
             << ", got " << *op.getKvSplits();
  }
  // attention_c25
  if (IntegerAttr rope = op.getRopeDimAttr()) {
    if (rope.getInt() < 0 || rope.getInt() >= op.getHeadDim())
      return op.emitOpError("expected 'rope_dim' in [0, ")
             << op.getHeadDim() - 1 << "], got " << rope.getInt();
    int64_t latent = op.getHeadDim() - rope.getInt();
    if (op.getValueDim() != latent)
      return op.emitOpError("expected the value dimension to be the head "
                            "dimension less 'rope_dim', ")
             << latent << ", got " << op.getValueDim();
    if (op.getShape(op.getK())[1] != 1)
      return op.emitOpError("expected one key head with 'rope_dim', got ")
             << describeExtent(op.getShape(op.getK())[1]);
  }
  // attention_c30
  if (MaskAttr mask = op.getMaskAttr())
    if (mask.getLeft() >= kIndexLimit || mask.getRight() >= kIndexLimit)
      return op.emitOpError("expected window bounds below 2^31, got left = ")
             << mask.getLeft() << " and right = " << mask.getRight();
  return success();
}

/// Rows that are not divided by their sums.
static LogicalResult checkRowState(AttentionOp op) {
  // attention_c57
  if (!op.getRowState())
    return success();
  if (op.getInitLse())
    return op.emitOpError("expected no 'row_state' beside 'init'");
  NamedValue lse{"lse", op.getLse()};
  if (!lse.value)
    return op.emitOpError("expected 'lse' with 'row_state', for the maxima and "
                          "sums of rows, got none");
  int64_t numbers = lse.getExtent(op.getKvSplits() ? 4 : 3);
  if (numbers != 2)
    return op.emitOpError("expected two numbers in 'lse' for each row with "
                          "'row_state', got ")
           << describeExtent(numbers);
  if (Type type = elementTypeOf(op.getO()); !type.isF32())
    return op.emitOpError("expected 'o' of type f32 with 'row_state', got ")
           << type;
  return success();
}

/// Keys that costs are those of.
static LogicalResult checkExpectedKeys(AttentionOp op) {
  // attention_c58
  std::optional<ArrayRef<int64_t>> keys = op.getExpectedKeys();
  if (!keys)
    return success();
  if (!op.isVariableLength() && !op.getKvLengths())
    return op.emitOpError("expected 'expected_keys' only with cu_seqlens or "
                          "'kv_lengths'");
  if (keys->empty())
    return op.emitOpError("expected at least one of 'expected_keys', got none");
  for (int64_t each : *keys)
    if (each < 0 || each > std::numeric_limits<int32_t>::max())
      return op.emitOpError("expected 'expected_keys' in [0, 2^31), got ")
             << each;
  return success();
}

LogicalResult AttentionOp::verify() {
  NamedValue scales{"o_scales", getOScales()};
  int64_t scalesRank = getScalesRank(scales, getKvSplits() ? 1 : 0);
  int64_t lead = getKvSplits() ? 1 : 0, tableRank = getPageIndptr() ? 1 : 2;
  // attention_c1, attention_c19, attention_c21, attention_c23, attention_c33,
  // attention_c37, attention_c38, attention_c41, attention_c42, attention_c44,
  // attention_c45, attention_c47, attention_c54, attention_c57, attention_c59,
  // attention_c61
  SmallVector<OperandRule> rules = {
      {{"q", getQ()}, 4, /*unitStride=*/true},
      {{"k", getK()}, 4, /*unitStride=*/true},
      // With rope_dim v is a part of k.
      {{"v", getV()},
       4,
       /*unitStride=*/true,
       /*mayBeTransposed=*/!getRopeDim().has_value()},
      {{"o", getO()}, 4 + lead, /*unitStride=*/true},
      {{"lse", getLse()},
       3 + lead + (getRowState() ? 1 : 0),
       /*unitStride=*/false},
      {scales, scalesRank, /*unitStride=*/scalesRank == 2},
      {{"amax", getAmax()}, 1, /*unitStride=*/true},
      {{"sinks", getSinks()}, 1, /*unitStride=*/true},
      {{"cu_seqlens_q", getCuSeqlensQ()}, 1, /*unitStride=*/true},
      {{"cu_seqlens_k", getCuSeqlensK()}, 1, /*unitStride=*/true},
      {{"page_table", getPageTable()}, tableRank, /*unitStride=*/true},
      {{"page_indptr", getPageIndptr()}, 1, /*unitStride=*/true},
      {{"kv_lengths", getKvLengths()}, 1, /*unitStride=*/true},
      {{"q_descale", getQDescale()}, 2, /*unitStride=*/false},
      {{"k_descale", getKDescale()}, 2, /*unitStride=*/false},
      {{"v_descale", getVDescale()}, 2, /*unitStride=*/false},
      {{"init_o", getInitO()}, 4, /*unitStride=*/true},
      {{"init_lse", getInitLse()}, 3, /*unitStride=*/false},
      {{"k_scales", getKScales()}, 4, /*unitStride=*/true},
      {{"v_scales", getVScales()}, 4, /*unitStride=*/true},
      {{"k_rope", getKRope()}, 4, /*unitStride=*/true},
      {{"q_rope", getQRope()}, 4, /*unitStride=*/true},
      {{"block_counts", getBlockCounts()}, 4, /*unitStride=*/true},
      {{"block_indices", getBlockIndices()}, 4, /*unitStride=*/true},
      {{"added_k", getAddedK()}, 4, /*unitStride=*/true},
      {{"added_v", getAddedV()}, 4, /*unitStride=*/true},
      {{"added_table", getAddedTable()}, 2, /*unitStride=*/true},
      {{"added_lengths", getAddedLengths()}, 1, /*unitStride=*/true}};
  // attention_c1, attention_c2, attention_c3, attention_c4
  if (failed(checkOperands(*this, rules)) || failed(checkElementTypes(*this)) ||
      failed(checkVariants(*this)) || failed(checkVariableLengths(*this)) ||
      failed(checkPages(*this)) || failed(checkSequences(*this)) ||
      failed(checkBlocks(*this)) || failed(checkExtents(*this)) ||
      failed(checkUnits(*this)) || failed(checkOutputScales(*this)) ||
      failed(checkRowState(*this)) || failed(checkExpectedKeys(*this)) ||
      failed(checkAdded(*this)) || failed(checkAmax(*this)))
    return failure();
  // attention_c17, attention_c18, attention_c26
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (failed(checkFactor(*this, NAME, FactorSign::SIGN)))                      \
    return failure();
#include "attn/Problem/Options.def"
  // attention_c36
  if (failed(verifyKernelName([&] { return emitOpError(); }, getKernel())))
    return failure();
  // attention_c29
  return checkResults(*this, {{"o", getO()},
                              {"lse", getLse()},
                              {"o_scales", getOScales()},
                              {"amax", getAmax()}});
}
