//===- ProblemChecks.cpp - Checks that problem ops share ------------------===//

#include "ProblemChecks.h"
#include "ElementTypes.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Problem/Limits.h"
#include "attn/Problem/ScaleTiles.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

std::string attn::describeExtent(int64_t extent) {
  return ShapedType::isDynamic(extent) ? "dynamic" : std::to_string(extent);
}

/// True for the memory spaces that mean global memory.
static bool isGlobalSpace(Attribute space) {
  if (!space)
    return true;
  if (auto integer = dyn_cast<IntegerAttr>(space))
    return integer.getInt() == 0 || integer.getInt() == 1;
  auto gpuSpace = dyn_cast<gpu::AddressSpaceAttr>(space);
  return gpuSpace && gpuSpace.getValue() == gpu::AddressSpace::Global;
}

/// Returns whether all elements of `type` are at most kMostElements apart, and
/// so far from its start.
static bool isWithinReach(MemRefType type, ArrayRef<int64_t> strides,
                          int64_t offset) {
  uint64_t last = ShapedType::isDynamic(offset) ? 0 : std::abs(offset);
  for (auto [extent, stride] : llvm::zip_equal(type.getShape(), strides)) {
    // Each stride is within reach by itself, also where nothing takes it.
    uint64_t steps = std::max<int64_t>(extent, 2) - 1;
    if (!ShapedType::isDynamic(stride))
      last = llvm::SaturatingMultiplyAdd<uint64_t>(steps, stride, last);
  }
  return last <= kMostElements;
}

/// Checks where a memref lies and that its strides are known to exist.
static LogicalResult checkMemRef(Operation *op, const OperandRule &rule,
                                 MemRefType type) {
  // attention_c3, combine_c2
  if (!isGlobalSpace(type.getMemorySpace()))
    return op->emitOpError("expected '")
           << rule.operand.name << "' in global memory, got memory space "
           << type.getMemorySpace();
  // attention_c4, combine_c2
  SmallVector<int64_t> strides;
  int64_t offset;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return op->emitOpError("expected '")
           << rule.operand.name << "' to have strides, got " << type;
  for (int64_t stride : strides)
    if (!ShapedType::isDynamic(stride) && stride < 0)
      return op->emitOpError("expected no negative stride of '")
             << rule.operand.name << "', got " << stride;
  if (!isWithinReach(type, strides, offset))
    return op->emitOpError("expected at most 2^48 elements from the first to "
                           "the last of '")
           << rule.operand.name << "', got " << type;
  bool isTransposed = rule.mayBeTransposed && strides[strides.size() - 2] == 1;
  if (rule.unitStride && strides.back() != 1 && !isTransposed)
    return op->emitOpError("expected innermost stride 1 for '")
           << rule.operand.name << "', got " << describeExtent(strides.back());
  return success();
}

LogicalResult attn::checkOperands(Operation *op, ArrayRef<OperandRule> rules) {
  bool onTensors = isa<RankedTensorType>(rules.front().operand.value.getType());
  for (const OperandRule &rule : rules) {
    const NamedValue &operand = rule.operand;
    if (!operand.value)
      continue;
    // attention_c2, combine_c2
    bool isTensor = isa<RankedTensorType>(operand.value.getType());
    if (isTensor != onTensors) {
      const NamedValue &first = rules.front().operand;
      InFlightDiagnostic diag =
          op->emitOpError("expected only tensors or only memrefs, got '")
          << operand.name << "' of type " << operand.getType();
      diag.attachNote(first.value.getLoc())
          << "'" << first.name << "' has type " << first.getType();
      return diag;
    }
    // attention_c1, combine_c1
    if (!operand.getType().hasRank() || operand.getRank() != rule.rank)
      return op->emitOpError("expected '")
             << operand.name << "' of rank " << rule.rank << ", got "
             << operand.getType();
    // attention_c4, combine_c2
    uint64_t elements = 1;
    // One that is not known, or none, says nothing about the others.
    for (int64_t extent : operand.getType().getShape())
      elements = llvm::SaturatingMultiply<uint64_t>(
          elements, std::max<int64_t>(extent, 1));
    if (elements > kMostElements)
      return op->emitOpError("expected at most 2^48 elements in '")
             << operand.name << "', got " << operand.getType();
    if (auto tensor = dyn_cast<RankedTensorType>(operand.value.getType())) {
      // attention_c3, combine_c2
      if (tensor.getEncoding())
        return op->emitOpError("expected a tensor without encoding for '")
               << operand.name << "', got " << tensor.getEncoding();
    } else if (failed(checkMemRef(op, rule,
                                  cast<MemRefType>(operand.value.getType())))) {
      return failure();
    }
  }
  return success();
}

LogicalResult attn::checkStaticExtent(Operation *op, const NamedValue &operand,
                                      unsigned dim, StringRef what) {
  int64_t extent = operand.getExtent(dim);
  if (!ShapedType::isDynamic(extent) && extent >= 1)
    return success();
  return op->emitOpError("expected ")
         << what << " that is static and at least 1 in '" << operand.name
         << "', got " << describeExtent(extent);
}

LogicalResult attn::checkFactor(Operation *op, StringRef name,
                                FactorSign sign) {
  auto attr = op->getAttrOfType<FloatAttr>(name);
  if (!attr)
    return success();
  bool allowNegative = sign == FactorSign::AnySign;
  double value = attr.getValueAsDouble();
  if (std::isfinite(value) && (allowNegative ? value != 0 : value > 0))
    return success();
  SmallString<16> text;
  attr.getValue().toString(text);
  if (allowNegative)
    return op->emitOpError("expected a finite '")
           << name << "' other than zero, got " << text;
  return op->emitOpError("expected a finite '")
         << name << "' above zero, got " << text;
}

LogicalResult attn::checkResults(Operation *op, ArrayRef<NamedValue> inits) {
  SmallVector<NamedValue> expected;
  for (const NamedValue &init : inits)
    if (init.value && isa<RankedTensorType>(init.value.getType()))
      expected.push_back(init);
  if (op->getNumResults() != expected.size())
    return op->emitOpError("expected ")
           << expected.size() << " results, one for each output tensor, got "
           << op->getNumResults();
  for (auto [result, init] : llvm::zip_equal(op->getResults(), expected))
    if (result.getType() != init.value.getType()) {
      InFlightDiagnostic diag = op->emitOpError("expected the result for '")
                                << init.name << "' to be of its type, "
                                << init.getType() << ", got "
                                << result.getType();
      diag.attachNote(init.value.getLoc())
          << "'" << init.name << "' stands here";
      return diag;
    }
  return success();
}

void attn::addDestinationStyleEffects(
    Operation *op, SmallVectorImpl<MemoryEffects::EffectInstance> &effects) {
  auto destination = cast<DestinationStyleOpInterface>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<BaseMemRefType>(operand.get().getType()))
      continue;
    if (destination.isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
    else
      effects.emplace_back(MemoryEffects::Read::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

LogicalResult Extent::unify(const NamedValue &operand, unsigned dim) {
  if (!operand.value || ShapedType::isDynamic(operand.getExtent(dim)))
    return success();
  if (!first) {
    first = operand;
    firstDim = dim;
    return success();
  }
  int64_t expected = first->getExtent(firstDim);
  if (operand.getExtent(dim) == expected)
    return success();
  InFlightDiagnostic diag = op->emitOpError("expected dimension ")
                            << dim << " of '" << operand.name << "' ("
                            << meaning << ") to be " << expected << ", got "
                            << operand.getExtent(dim);
  diag.attachNote(first->value.getLoc()) << "dimension " << firstDim << " of '"
                                         << first->name << "' is " << expected;
  return diag;
}

//===----------------------------------------------------------------------===//
// What units of 8-bit operands stand for
//===----------------------------------------------------------------------===//

ParseResult attn::parseDescales(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &q,
    Type &qType, std::optional<OpAsmParser::UnresolvedOperand> &k, Type &kType,
    std::optional<OpAsmParser::UnresolvedOperand> &v, Type &vType) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseColonTypeList(types))
    return failure();
  if (operands.size() < 2 || operands.size() > 3 ||
      types.size() != operands.size())
    return parser.emitError(loc)
           << "expected descales of k and v, or of q, k and v, with as many "
              "types, got "
           << operands.size() << " and " << types.size();
  size_t first = operands.size() - 2;
  if (first == 1) {
    q = operands[0];
    qType = types[0];
  }
  k = operands[first];
  kType = types[first];
  v = operands[first + 1];
  vType = types[first + 1];
  return success();
}

void attn::printDescales(OpAsmPrinter &printer, Operation *, Value q, Type,
                         Value k, Type, Value v, Type) {
  SmallVector<Value> given;
  for (Value value : {q, k, v})
    if (value)
      given.push_back(value);
  printer.printOperands(given);
  printer << " : ";
  llvm::interleaveComma(ValueRange(given).getTypes(), printer);
}

/// What the first dimensions of queries and of outputs count.
static constexpr StringLiteral kQueryRows[] = {"batch", "query heads",
                                               "queries"};

/// Checks that the first dimensions of both, which count what `meanings` say,
/// are the same.
static LogicalResult unifyRows(AttentionOp op, ArrayRef<StringLiteral> meanings,
                               NamedValue a, NamedValue b) {
  for (auto [dim, meaning] : llvm::enumerate(meanings)) {
    Extent extent(op, meaning);
    if (failed(extent.unify(a, dim)) || failed(extent.unify(b, dim)))
      return failure();
  }
  return success();
}

static LogicalResult checkDescales(AttentionOp op) {
  SmallVector<NamedValue> all = {{"q_descale", op.getQDescale()},
                                 {"k_descale", op.getKDescale()},
                                 {"v_descale", op.getVDescale()}};
  int64_t given = llvm::count_if(
      all, [](NamedValue operand) { return static_cast<bool>(operand.value); });
  if (given == 0)
    return success();
  // attention_c34
  Type type = elementTypeOf(op.getK());
  if (!isFloat8(type))
    return op.emitOpError("expected descales only with 8-bit keys, got ")
           << type;
  // attention_c33
  bool isWide = !isFloat8(elementTypeOf(op.getQ()));
  if (isWide && op.getQDescale())
    return op.emitOpError("expected no 'q_descale' beside a 'q' of type ")
           << elementTypeOf(op.getQ());
  if (isWide)
    all.erase(all.begin());
  if (given != int64_t(all.size()))
    return op.emitOpError("expected ") << (isWide ? "both" : "all three")
                                       << " descales or none, got " << given;
  for (NamedValue operand : all)
    if (!elementTypeOf(operand.value).isF32())
      return op.emitOpError("expected '")
             << operand.name << "' of type f32, got "
             << elementTypeOf(operand.value);
  // attention_c35
  Extent batch(op, "batch"), heads(op, "query heads"),
      keyHeads(op, "key heads");
  if (!op.isVariableLength() && failed(batch.unify({"q", op.getQ()}, 0)))
    return failure();
  if (failed(heads.unify({"q", op.getQ()}, 1)) ||
      failed(keyHeads.unify({"k", op.getK()}, 1)))
    return failure();
  for (NamedValue operand : all)
    if (failed(batch.unify(operand, 0)) ||
        failed((operand.value == op.getQDescale() ? heads : keyHeads)
                   .unify(operand, 1)))
      return failure();
  if (!op.isVariableLength())
    return success();
  int64_t entries = NamedValue{"cu_seqlens_q", op.getCuSeqlensQ()}.getExtent(0);
  int64_t sequences = all[0].getExtent(0);
  if (!ShapedType::isDynamic(entries) && !ShapedType::isDynamic(sequences) &&
      entries != sequences + 1)
    return op.emitOpError("expected descales of ")
           << entries - 1 << " sequences, got " << sequences;
  return success();
}

/// Checks that `part` has the batches or pages, key heads and rows of k.
static LogicalResult checkRowsOfKeys(AttentionOp op, NamedValue part) {
  return unifyRows(op, {"batch or page", "key head", "row"}, {"k", op.getK()},
                   part);
}

static LogicalResult checkScales(AttentionOp op) {
  NamedValue k{"k", op.getK()}, v{"v", op.getV()},
      kScales{"k_scales", op.getKScales()},
      vScales{"v_scales", op.getVScales()};
  IntegerAttr group = op.getScaleGroupAttr();
  // attention_c42
  if (!kScales.value && !group)
    return success();
  if (!kScales.value || !group)
    return op.emitOpError("expected both 'scales' and 'scale_group' or "
                          "neither, got one");
  Type type = elementTypeOf(k.value);
  if (!isFloat8(type) || isFloat8(elementTypeOf(op.getQ())))
    return op.emitOpError("expected scales of rows only with 8-bit keys beside "
                          "16-bit queries, got 'k' of type ")
           << type << " beside 'q' of type " << elementTypeOf(op.getQ());
  bool isLatent = op.getRopeDim().has_value();
  if (isLatent == static_cast<bool>(vScales.value))
    return op.emitOpError("expected scales of ")
           << (isLatent ? "the keys alone with 'rope_dim', got those of values"
                        : "both keys and values, got those of keys alone");
  SmallVector<std::pair<NamedValue, NamedValue>> parts = {{kScales, k}};
  if (!isLatent)
    parts.push_back({vScales, v});
  for (auto [scales, rows] : parts) {
    if (!elementTypeOf(scales.value).isF32())
      return op.emitOpError("expected '")
             << scales.name << "' of type f32, got "
             << elementTypeOf(scales.value);
    // attention_c43
    int64_t size = group.getInt(), columns = rows.getExtent(3);
    if (size < 1 || columns % size != 0)
      return op.emitOpError("expected 'scale_group' to divide the ")
             << columns << " columns of '" << rows.name << "', got " << size;
    if (scales.getExtent(3) != columns / size)
      return op.emitOpError("expected ")
             << columns / size << " columns of '" << scales.name
             << "', one for each " << size << " of '" << rows.name << "', got "
             << describeExtent(scales.getExtent(3));
    if (failed(checkRowsOfKeys(op, scales)))
      return failure();
  }
  return success();
}

static LogicalResult checkRope(AttentionOp op) {
  // attention_c47
  if (!op.getKRope() && op.getQRope())
    return op.emitOpError("expected 'q_rope' only with 'k_rope'");
  // attention_c44
  if (!op.getKRope())
    return success();
  if (op.getRopeDim().value_or(0) == 0)
    return op.emitOpError("expected 'rope' only with 'rope_dim' above 0");
  NamedValue k{"k", op.getK()}, rope{"k_rope", op.getKRope()};
  Type type = elementTypeOf(op.getQ());
  if (elementTypeOf(rope.value) != type)
    return op.emitOpError("expected 'k_rope' of the type of 'q', ")
           << type << ", got " << elementTypeOf(rope.value);
  int64_t columns = *op.getRopeDim();
  if (rope.getExtent(3) != columns)
    return op.emitOpError("expected 'k_rope' of 'rope_dim' = ")
           << columns << " columns, got " << describeExtent(rope.getExtent(3));
  if (k.getExtent(3) != op.getHeadDim() - columns)
    return op.emitOpError("expected 'k' without the columns of 'k_rope', ")
           << op.getHeadDim() - columns << ", got " << k.getExtent(3);
  if (failed(checkRowsOfKeys(op, rope)))
    return failure();
  // attention_c47
  NamedValue q{"q", op.getQ()}, apart{"q_rope", op.getQRope()};
  if (!apart.value)
    return success();
  if (elementTypeOf(apart.value) != type)
    return op.emitOpError("expected 'q_rope' of the type of 'q', ")
           << type << ", got " << elementTypeOf(apart.value);
  if (apart.getExtent(3) != columns)
    return op.emitOpError("expected 'q_rope' of 'rope_dim' = ")
           << columns << " columns, got " << describeExtent(apart.getExtent(3));
  return unifyRows(op, kQueryRows, q, apart);
}

LogicalResult attn::checkOutputGroups(Operation *op, const NamedValue &o,
                                      const NamedValue &scales, int64_t size) {
  int64_t columns = o.getExtent(3);
  if (size < 1 || columns % size != 0)
    return op->emitOpError("expected 'out_group' to divide the ")
           << columns << " columns of 'o', got " << size;
  return checkScaleColumns(op, o, scales, columns, size);
}

int64_t attn::getScalesRank(const NamedValue &scales, int64_t lead) {
  bool isTiled = scales.value && scales.getType().hasRank() && lead == 0 &&
                 isInScaleTiles(scales.getType().getShape());
  return isTiled ? 2 : 4 + lead;
}

/// Checks that `scales` are one of 8 bits for each group of `size` columns, in
/// tiles to which the matrix of all tokens is padded.
static LogicalResult checkScaleTiles(Operation *op, const NamedValue &o,
                                     const NamedValue &scales, int64_t groups) {
  Type type = elementTypeOf(scales.value);
  if (type.getIntOrFloatBitWidth() != 8)
    return op->emitOpError("expected '")
           << scales.name << "' of 8 bits in tiles, got " << type;
  auto multiply = [](int64_t x, int64_t y, int64_t tile) -> int64_t {
    if (ShapedType::isDynamic(x) || ShapedType::isDynamic(y))
      return ShapedType::kDynamic;
    return llvm::alignTo(llvm::SaturatingMultiply<uint64_t>(x, y), tile);
  };
  int64_t expected[] = {
      multiply(o.getExtent(0), o.getExtent(2), kScaleTileRows),
      multiply(o.getExtent(1), groups, kScaleTileColumns)};
  for (unsigned dim : {0u, 1u}) {
    int64_t extent = scales.getExtent(dim);
    if (ShapedType::isDynamic(extent) || ShapedType::isDynamic(expected[dim]) ||
        extent == expected[dim])
      continue;
    return op->emitOpError("expected '")
           << scales.name << "' padded to tiles of " << kScaleTileRows << " x "
           << kScaleTileColumns << ", " << expected[dim]
           << (dim == 0 ? " rows" : " columns") << ", got " << extent;
  }
  auto memref = dyn_cast<MemRefType>(scales.getType());
  if (!memref)
    return success();
  int64_t stride = memref.getStridesAndOffset().first.front();
  if (int64_t columns = scales.getExtent(1);
      !ShapedType::isDynamic(stride) && stride != columns)
    return op->emitOpError("expected rows of '")
           << scales.name << "' without gaps in tiles, " << columns
           << " elements apart, got " << stride;
  return success();
}

LogicalResult attn::checkScaleColumns(Operation *op, const NamedValue &o,
                                      const NamedValue &scales, int64_t columns,
                                      int64_t size) {
  if (isInScaleTiles(scales.getType().getShape()))
    return checkScaleTiles(op, o, scales, columns / size);
  if (scales.getExtent(3) == columns / size)
    return success();
  return op->emitOpError("expected ")
         << columns / size << " columns of 'o_scales', one for each " << size
         << " of 'o', got " << describeExtent(scales.getExtent(3));
}

LogicalResult attn::checkUnitGroups(Operation *op, const NamedValue &o,
                                    const NamedValue &scales) {
  int64_t columns = o.getExtent(4), groups = scales.getExtent(4);
  if (!ShapedType::isDynamic(groups) && groups > 0 && columns % groups == 0)
    return success();
  return op->emitOpError("expected a number of groups in '")
         << scales.name << "' that divides the " << columns << " columns of '"
         << o.name << "', got " << describeExtent(groups);
}

/// Partial results of f16 have a scale for each group of columns of a row.
static LogicalResult checkPartialScales(AttentionOp op) {
  NamedValue o{"o", op.getO()}, scales{"o_scales", op.getOScales()};
  // attention_c48
  bool hasHalves = elementTypeOf(o.value).isF16();
  if (hasHalves != static_cast<bool>(scales.value))
    return op.emitOpError("expected 'out_scales' exactly with partial results "
                          "of type f16, got ")
           << (hasHalves ? "none" : "them") << " and partial results of type "
           << elementTypeOf(o.value);
  if (op.getOutGroupAttr())
    return op.emitOpError("expected no 'out_group' with partial results");
  if (!scales.value)
    return success();
  if (!elementTypeOf(scales.value).isF32())
    return op.emitOpError("expected 'o_scales' of type f32, got ")
           << elementTypeOf(scales.value);
  const char *meanings[] = {"partial results", "batch", "query heads",
                            "queries"};
  for (auto [dim, meaning] : llvm::enumerate(meanings)) {
    Extent extent(op, meaning);
    if (failed(extent.unify(o, dim)) || failed(extent.unify(scales, dim)))
      return failure();
  }
  return checkUnitGroups(op, o, scales);
}

LogicalResult attn::checkFloat4(Operation *op, int64_t columns, int64_t group,
                                const NamedValue &o, const NamedValue &scales) {
  if (!scales.value || group != kFloat4Group)
    return op->emitOpError("expected 'out_scales' and 'out_group' = ")
           << kFloat4Group << " with an output of type i8, pairs of f4E2M1FN, "
           << "got " << (scales.value ? "groups of " : "no scales")
           << (scales.value ? std::to_string(group) : "");
  if (columns % kFloat4Group != 0)
    return op->emitOpError("expected a value dimension that is a multiple of ")
           << kFloat4Group << " with an output of f4E2M1FN, got " << columns;
  if (o.getExtent(3) != columns / 2)
    return op->emitOpError("expected 'o' to have a byte for each two of ")
           << columns << " columns, got " << describeExtent(o.getExtent(3));
  if (!isa<Float8E4M3FNType>(elementTypeOf(scales.value)))
    return op->emitOpError("expected 'o_scales' of type f8E4M3FN beside an "
                           "output of f4E2M1FN, got ")
           << elementTypeOf(scales.value);
  return checkScaleColumns(op, o, scales, columns, kFloat4Group);
}

LogicalResult attn::checkScaleType(Operation *op, const NamedValue &scales) {
  Type type = elementTypeOf(scales.value);
  if (type.isF32() || isa<Float8E8M0FNUType>(type))
    return success();
  return op->emitOpError("expected 'o_scales' of type f32 or f8E8M0FNU, got ")
         << type;
}

LogicalResult attn::checkOutputScales(AttentionOp op) {
  if (op.getKvSplits())
    return checkPartialScales(op);
  NamedValue o{"o", op.getO()}, scales{"o_scales", op.getOScales()};
  Type type = elementTypeOf(o.value);
  bool isTiled = scales.value && isInScaleTiles(scales.getType().getShape());
  // attention_c53
  if (isPairOfFloat4(type)) {
    if (failed(checkFloat4(op, op.getValueDim(), op.getOutGroup().value_or(0),
                           o, scales)))
      return failure();
    return isTiled ? success() : unifyRows(op, kQueryRows, o, scales);
  }
  // attention_c45
  IntegerAttr group = op.getOutGroupAttr();
  if (!op.getOScales() && !group)
    return success();
  if (!op.getOScales() || !group)
    return op.emitOpError("expected both 'out_scales' and 'out_group' or "
                          "neither, got one");
  if (!isFloat8(type))
    return op.emitOpError("expected 'out_scales' only with an 8-bit output, "
                          "got an output of type ")
           << type;
  if (op.getOutScaleAttr())
    return op.emitOpError("expected 'out_scale' or 'out_scales', got both");
  if (failed(checkScaleType(op, scales)))
    return failure();
  // attention_c46
  if (failed(checkOutputGroups(op, o, scales, group.getInt())))
    return failure();
  return isTiled ? success() : unifyRows(op, kQueryRows, o, scales);
}

LogicalResult attn::checkUnits(AttentionOp op) {
  return success(succeeded(checkDescales(op)) && succeeded(checkScales(op)) &&
                 succeeded(checkRope(op)));
}

LogicalResult attn::checkAmaxType(Operation *op, const NamedValue &amax) {
  if (Type type = getElementTypeOrSelf(amax.value.getType()); !type.isF32())
    return op->emitOpError("expected 'amax' of type f32, got ") << type;
  if (amax.getExtent(0) != 1)
    return op->emitOpError("expected one number in 'amax', got ")
           << describeExtent(amax.getExtent(0));
  return success();
}

LogicalResult attn::checkAmax(AttentionOp op) {
  // attention_c61
  NamedValue amax{"amax", op.getAmax()};
  if (!amax.value)
    return success();
  if (op.getKvSplits())
    return op.emitOpError("expected no 'amax' with partial results: it stands "
                          "beside the attn.combine of them");
  if (op.getRowState())
    return op.emitOpError("expected no 'amax' with 'row_state', whose rows are "
                          "not divided");
  return checkAmaxType(op, amax);
}
