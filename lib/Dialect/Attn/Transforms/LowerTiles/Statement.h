//===- Statement.h - One statement of inline assembly -----------*- C++ -*-===//
//
// The text of an inline assembly statement and its operands. Results come
// first, then inputs that are tied to results, then the others. LLVM takes it
// to touch any memory.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_STATEMENT_H
#define ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_STATEMENT_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::attn::lowering {

class Statement {
public:
  /// Adds an input and returns its name.
  std::string input(Value value, StringRef constraint) {
    inputs.push_back(value);
    constraints.push_back(constraint.str());
    return "$" + std::to_string(types.size() + inputs.size() - 1);
  }
  /// The same for f32, or for what a register of 32 bits holds.
  std::string input(Value value) {
    return input(value, value.getType().isF32() ? "f" : "r");
  }
  /// Results in registers of their own.
  void results(ArrayRef<Type> resultTypes) {
    assert(inputs.empty() && "results come first");
    llvm::append_range(types, resultTypes);
  }
  /// Results in the registers of values.
  void tiedResults(ArrayRef<Value> values) {
    for (auto [index, value] : llvm::enumerate(values))
      types.push_back(value.getType());
    for (auto [index, value] : llvm::enumerate(values)) {
      inputs.push_back(value);
      constraints.push_back(std::to_string(index));
    }
  }
  /// The name of a result.
  std::string result(unsigned index) const {
    return "$" + std::to_string(index);
  }
  SmallVector<Value> create(ImplicitLocOpBuilder &b) {
    // Early clobbers: inputs are read while results are written.
    SmallVector<std::string> all;
    for (Type type : types)
      all.push_back(type.isF32() ? "=&f" : "=&r");
    llvm::append_range(all, constraints);
    all.push_back("~{memory}");
    SmallVector<Type, 1> result;
    if (types.size() == 1)
      result.push_back(types.front());
    else if (!types.empty())
      result.push_back(LLVM::LLVMStructType::getLiteral(b.getContext(), types));
    auto op = LLVM::InlineAsmOp::create(
        b, result, inputs, text, llvm::join(all, ","),
        /*has_side_effects=*/true, /*is_align_stack=*/false,
        LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
        ArrayAttr());
    if (types.size() == 1)
      return {op.getResult(0)};
    SmallVector<Value> values;
    for (unsigned i = 0; i < types.size(); ++i)
      values.push_back(LLVM::ExtractValueOp::create(b, op.getResult(0), i));
    return values;
  }

  std::string text;

private:
  SmallVector<Type> types;
  SmallVector<Value> inputs;
  SmallVector<std::string> constraints;
};

/// Names in braces, as instructions take lists of registers.
inline std::string bracket(ArrayRef<std::string> names) {
  return "{" + llvm::join(names, ", ") + "}";
}

} // namespace mlir::attn::lowering

#endif // ATTN_LIB_DIALECT_ATTN_TRANSFORMS_LOWERTILES_STATEMENT_H
