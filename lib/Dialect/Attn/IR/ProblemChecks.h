//===- ProblemChecks.h - Checks that problem ops share ----------*- C++ -*-===//

#ifndef ATTN_LIB_DIALECT_ATTN_IR_PROBLEMCHECKS_H
#define ATTN_LIB_DIALECT_ATTN_IR_PROBLEMCHECKS_H

#include "attn/Problem/Options.h"
#include "mlir/IR/BuiltinTypeInterfaces.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/Operation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <optional>
#include <string>

namespace mlir::attn {

class AttentionOp;

/// An operand and the name that messages give it; without value when an
/// optional operand is absent.
struct NamedValue {
  StringRef name;
  Value value;

  ShapedType getType() const { return cast<ShapedType>(value.getType()); }
  int64_t getRank() const { return getType().getRank(); }
  int64_t getExtent(unsigned dim) const { return getType().getDimSize(dim); }
};

/// What every operand of a problem op must be by itself.
struct OperandRule {
  NamedValue operand;
  int64_t rank;
  /// The innermost dimension of a memref must have stride 1.
  bool unitStride;
  /// Or the one before it.
  bool mayBeTransposed = false;
};

/// An extent as messages print it: the number, or "dynamic".
std::string describeExtent(int64_t extent);

/// Checks that the operands are all memrefs or all tensors, have the stated
/// ranks, and lie in global memory with strides.
LogicalResult checkOperands(Operation *op, ArrayRef<OperandRule> rules);

/// Checks that an extent, `what` in words, is static and at least 1.
LogicalResult checkStaticExtent(Operation *op, const NamedValue &operand,
                                unsigned dim, StringRef what);

/// Checks a floating-point attribute of a problem, if it is there.
LogicalResult checkFactor(Operation *op, StringRef name, FactorSign sign);

/// Checks that results are the types of the tensor operands in `inits`, and
/// that there are none on memrefs.
LogicalResult checkResults(Operation *op, ArrayRef<NamedValue> inits);

/// Reads of the inputs and writes of the inits of a destination-style op on
/// memrefs; on tensors it has none.
void addDestinationStyleEffects(
    Operation *op, SmallVectorImpl<MemoryEffects::EffectInstance> &effects);

/// What units of k and v stand for, and in front of them those of q where it is
/// said, with their types behind a colon.
ParseResult
parseDescales(OpAsmParser &parser,
              std::optional<OpAsmParser::UnresolvedOperand> &q, Type &qType,
              std::optional<OpAsmParser::UnresolvedOperand> &k, Type &kType,
              std::optional<OpAsmParser::UnresolvedOperand> &v, Type &vType);
void printDescales(OpAsmPrinter &printer, Operation *op, Value q, Type qType,
                   Value k, Type kType, Value v, Type vType);

/// Parses and prints what stands in `added(...)`: pools of keys and of values,
/// of which latent keys have none, a table and lengths.
ParseResult parseAdded(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &k,
    Type &kType, std::optional<OpAsmParser::UnresolvedOperand> &v, Type &vType,
    std::optional<OpAsmParser::UnresolvedOperand> &table, Type &tableType,
    std::optional<OpAsmParser::UnresolvedOperand> &lengths, Type &lengthsType);
void printAdded(OpAsmPrinter &printer, Operation *op, Value k, Type kType,
                Value v, Type vType, Value table, Type tableType, Value lengths,
                Type lengthsType);

/// Checks the keys that stand beside those of k.
LogicalResult checkAdded(AttentionOp op);

/// key_range and out_mod, as far as they are there, each behind its name.
OptionalParseResult
parseLateRegions(OpAsmParser &parser,
                 SmallVectorImpl<std::unique_ptr<Region>> &regions);
void printLateRegions(OpAsmPrinter &printer, Operation *op,
                      MutableArrayRef<Region> regions);

/// Checks what units of q, k and v stand for: descales, and scales of rows; and
/// keys whose rotated columns are a tensor of their own, which have none.
LogicalResult checkUnits(AttentionOp op);

/// Checks the scales of the output, which are an output too.
LogicalResult checkOutputScales(AttentionOp op);
/// Checks results of f4E2M1FN, two in a byte of `o`, with a scale for each
/// `group` of their `columns`, of which there are few.
LogicalResult checkFloat4(Operation *op, int64_t columns, int64_t group,
                          const NamedValue &o, const NamedValue &scales);
/// Returns the rank that scales of an output have: 2 if they are in tiles, else
/// 4, and `lead` more of partial results.
int64_t getScalesRank(const NamedValue &scales, int64_t lead = 0);
/// Checks the type of scales of an output of 8-bit floats.
LogicalResult checkScaleType(Operation *op, const NamedValue &scales);
/// Checks that `scales` have a column for each `size` of the `columns` of o, or
/// are in tiles to which the matrix of all tokens is padded.
LogicalResult checkScaleColumns(Operation *op, const NamedValue &o,
                                const NamedValue &scales, int64_t columns,
                                int64_t size);
/// Checks that groups of `size` columns of `o` have as many columns of
/// `scales`.
LogicalResult checkOutputGroups(Operation *op, const NamedValue &o,
                                const NamedValue &scales, int64_t size);

/// Checks the number that the largest result joins, by itself and beside what
/// else `op` has.
LogicalResult checkAmaxType(Operation *op, const NamedValue &amax);
LogicalResult checkAmax(AttentionOp op);

/// Checks that partial results `o` have whole groups of columns for `scales`.
LogicalResult checkUnitGroups(Operation *op, const NamedValue &o,
                              const NamedValue &scales);

/// `scales` and its operand beside partial outputs of f16, of type `partials`,
/// then the outputs of attn.combine.
ParseResult
parseScalesAndOutputs(OpAsmParser &parser,
                      SmallVectorImpl<OpAsmParser::UnresolvedOperand> &others,
                      SmallVectorImpl<Type> &types, Type partials);
void printScalesAndOutputs(OpAsmPrinter &printer, Operation *op,
                           OperandRange others, TypeRange types, Type partials);

/// An extent that several operands have in common. The first static one is
/// taken as what the others have to be.
class Extent {
public:
  Extent(Operation *op, StringRef meaning) : op(op), meaning(meaning) {}

  /// Checks dimension `dim` of `operand` against the extent. An absent operand
  /// and a dynamic extent agree with everything.
  LogicalResult unify(const NamedValue &operand, unsigned dim);

private:
  Operation *op;
  StringRef meaning;
  std::optional<NamedValue> first;
  unsigned firstDim = 0;
};

} // namespace mlir::attn

#endif // ATTN_LIB_DIALECT_ATTN_IR_PROBLEMCHECKS_H
