//===- AddedKeys.cpp - Keys that stand beside those of k ------------------===//

#include "ElementTypes.h"
#include "ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// Sizes of pages are numbers of 32 bits.
static constexpr int64_t kIndexLimit = int64_t(1) << 31;

ParseResult attn::parseAdded(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &k,
    Type &kType, std::optional<OpAsmParser::UnresolvedOperand> &v, Type &vType,
    std::optional<OpAsmParser::UnresolvedOperand> &table, Type &tableType,
    std::optional<OpAsmParser::UnresolvedOperand> &lengths, Type &lengthsType) {
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<Type> types;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOperandList(operands) || parser.parseColonTypeList(types))
    return failure();
  if (operands.size() < 3 || operands.size() > 4 ||
      types.size() != operands.size())
    return parser.emitError(loc)
           << "expected keys, values, a table and lengths, or latent keys, a "
              "table and lengths, with as many types, got "
           << operands.size() << " and " << types.size();
  size_t next = 0;
  auto take = [&](std::optional<OpAsmParser::UnresolvedOperand> &operand,
                  Type &type) {
    operand = operands[next];
    type = types[next++];
  };
  take(k, kType);
  if (operands.size() == 4)
    take(v, vType);
  take(table, tableType);
  take(lengths, lengthsType);
  return success();
}

void attn::printAdded(OpAsmPrinter &printer, Operation *, Value k, Type,
                      Value v, Type, Value table, Type, Value lengths, Type) {
  SmallVector<Value> given;
  for (Value value : {k, v, table, lengths})
    if (value)
      given.push_back(value);
  printer.printOperands(given);
  printer << " : ";
  llvm::interleaveComma(ValueRange(given).getTypes(), printer);
}

/// Checks what the op has, and what it must not have, beside added keys.
static LogicalResult checkBeside(AttentionOp op) {
  // attention_c60
  for (auto [name, isThere] :
       {std::pair("cu_seqlens", op.isVariableLength()),
        std::pair("'page_indptr'", static_cast<bool>(op.getPageIndptr())),
        std::pair("'selected'", op.getSelected()),
        std::pair("'run_keys'", op.getRunKeys().has_value()),
        std::pair("'rope'", static_cast<bool>(op.getKRope())),
        std::pair("'scales'", static_cast<bool>(op.getKScales())),
        std::pair("'expected_keys'", op.getExpectedKeys().has_value()),
        std::pair("'score_mod'", !op.getScoreMod().empty()),
        std::pair("'mask_mod'", !op.getMaskMod().empty()),
        std::pair("'key_range'", op.hasKeyRange())})
    if (isThere)
      return op.emitOpError("expected no added keys beside ") << name;
  if (!op.getPageTable())
    return op.emitOpError("expected added keys only beside a page table");
  MaskAttr mask = op.getEffectiveMask();
  if (mask.getKind() != MaskKind::None &&
      mask.getAlign() != MaskAlign::BottomRight)
    return op.emitOpError("expected a mask that counts from the last key, "
                          "align = bottom_right, beside added keys, got "
                          "top_left");
  return success();
}

LogicalResult attn::checkAdded(AttentionOp op) {
  NamedValue k{"added_k", op.getAddedK()}, v{"added_v", op.getAddedV()},
      table{"added_table", op.getAddedTable()},
      lengths{"added_lengths", op.getAddedLengths()};
  IntegerAttr pageSize = op.getAddedPageSizeAttr();
  // attention_c59
  if (!k.value != !table.value || !k.value != !lengths.value ||
      !k.value != !pageSize)
    return op.emitOpError("expected all of 'added_k', 'added_table', "
                          "'added_lengths' and 'added_page_size' or none, got "
                          "some");
  if (!k.value)
    return success();
  if (op.getRopeDim().has_value() == static_cast<bool>(v.value))
    return op.emitOpError("expected ")
           << (v.value ? "no 'added_v' with 'rope_dim', whose values are "
                         "columns of the keys, got one"
                       : "'added_v' beside 'added_k', got none");
  int64_t size = pageSize.getInt();
  if (size < 1 || size >= kIndexLimit)
    return op.emitOpError("expected 'added_page_size' in [1, 2^31), got ")
           << size;
  NamedValue q{"q", op.getQ()}, ownK{"k", op.getK()}, ownV{"v", op.getV()};
  for (auto [pool, own] : {std::pair(k, ownK), std::pair(v, ownV)}) {
    if (!pool.value)
      continue;
    Type type = elementTypeOf(own.value);
    if (elementTypeOf(pool.value) != type)
      return op.emitOpError("expected '")
             << pool.name << "' of the type of '" << own.name << "', " << type
             << ", got " << elementTypeOf(pool.value);
    if (pool.getExtent(2) != size)
      return op.emitOpError("expected dimension 2 of '")
             << pool.name << "' to be 'added_page_size' = " << size << ", got "
             << describeExtent(pool.getExtent(2));
    for (auto [dim, meaning] :
         {std::pair(1, "key heads"), std::pair(3, "columns")}) {
      Extent extent(op, meaning);
      if (failed(extent.unify(own, dim)) || failed(extent.unify(pool, dim)))
        return failure();
    }
  }
  Extent pages(op, "added pages"), batch(op, "batch");
  if (failed(pages.unify(k, 0)) || failed(pages.unify(v, 0)) ||
      failed(batch.unify(q, 0)) || failed(batch.unify(table, 0)) ||
      failed(batch.unify(lengths, 0)))
    return failure();
  for (auto [tensor, dim] : {std::pair(k, 0), std::pair(table, 1)})
    if (tensor.getExtent(dim) == 0)
      return op.emitOpError("expected dimension ")
             << dim << " of '" << tensor.name << "' to be at least 1, got 0";
  for (NamedValue numbers : {table, lengths})
    if (!elementTypeOf(numbers.value).isInteger(32))
      return op.emitOpError("expected '")
             << numbers.name << "' of type i32, got "
             << elementTypeOf(numbers.value);
  return checkBeside(op);
}
