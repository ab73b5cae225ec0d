//===- FormTable.h - What each instruction form needs -----------*- C++ -*-===//
//
// A form is a group of instructions with the same requirements: a capability of
// the chip and a least PTX ISA version. LLVM ends the process on a form that
// it cannot select, and ptxas refuses others long after their location is
// lost; so every operation is looked up here before translation. Together with
// the chips of TargetTable.h this is the (form, chip, PTX version) table.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_FORMTABLE_H
#define ATTN_TARGET_FORMTABLE_H

#include "attn/Target/TargetTable.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace mlir::attn {

/// One group of instruction forms. The three last members are lists of globs
/// ('*' and '?') separated by '|'; an entry that starts with '!' excludes.
struct Form {
  /// Name in tables and tests: the PTX spelling of what is typical.
  llvm::StringLiteral name;
  /// What the chip must have.
  Capability needs;
  /// Least PTX ISA version times ten. The chip's own least version holds too.
  unsigned ptx;
  /// PTX mnemonics with all modifiers, as in inline assembly. For min and max
  /// the number of operands is appended: "max.f32/4".
  llvm::StringLiteral mnemonics;
  /// LLVM intrinsics without the prefix "llvm.nvvm.".
  llvm::StringLiteral intrinsics;
  /// Operations of the nvvm and llvm dialects with the qualifiers that
  /// checkForms appends, as in "nvvm.tcgen05.mma/i8".
  llvm::StringLiteral operations;
};

/// All forms, in the order of the documentation.
llvm::ArrayRef<Form> getForms();

/// How an instruction is spelled where it is looked up.
enum class FormSpelling { Mnemonic, Intrinsic, Operation };

/// All forms that `text` belongs to; their requirements add up. Empty for an
/// instruction in no table.
llvm::SmallVector<const Form *, 2> lookupForms(FormSpelling spelling,
                                               llvm::StringRef text);

/// True if `target` can do `form` in some PTX version.
bool isAvailable(const Form &form, const TargetRow &target);

/// Least PTX ISA version times ten in which `target` can do `form`.
unsigned getLeastPTX(const Form &form, const TargetRow &target);

/// Why `target` with PTX version `ptx` cannot do an instruction that belongs to
/// `matches`, or nothing if it can: "needs sm_90 and PTX 8.0, got sm_80 and
/// PTX 8.0", or "is not in the form table" if there are none.
std::optional<std::string> explainForms(llvm::ArrayRef<const Form *> matches,
                                        const TargetRow &target, unsigned ptx);

/// The PTX mnemonics in the text of an inline assembly statement, without
/// labels, predicates and directives. Unbalanced text gives what can be read.
llvm::SmallVector<std::string> getAsmMnemonics(llvm::StringRef text);

/// The first statement in the text of inline assembly that is not plainly
/// arithmetic on registers, such as an access to memory or a barrier. What is
/// not known is none.
std::optional<std::string> findBeyondRegisters(llvm::StringRef text);

} // namespace mlir::attn

#endif // ATTN_TARGET_FORMTABLE_H
