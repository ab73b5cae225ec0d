//===- CodeListing.h - PTX and machine code as lists of code ----*- C++ -*-===//
//
// Reads the text of a kernel, PTX or what nvdisasm prints, into one form: its
// instructions in order and where labels stand. What the instructions mean is
// left to who asks; only how they pass control is told here.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TARGET_CODELISTING_H
#define ATTN_TARGET_CODELISTING_H

#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn {

/// The counters of a warp, six of them, that an instruction of no fixed latency
/// counts up and, once it is done, down.
struct CodeScoreboards {
  /// The one that is counted down when the results are there.
  std::optional<unsigned> written;
  /// Mask of those that have to be 0 before the instruction is issued.
  unsigned awaited = 0;
};

/// One instruction.
struct CodeInstruction {
  enum class Flow {
    /// Goes on with the next instruction.
    Next,
    /// Goes to `target`; if `conditional`, perhaps.
    Branch,
    /// Ends the thread or the function; if `conditional`, perhaps.
    End
  };
  /// Such as "FFMA" or "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32".
  std::string opcode;
  std::string operands;
  /// The predicate that guards it, such as "!P0" or "%p1"; empty without one.
  std::string guard;
  Flow flow = Flow::Next;
  bool conditional = false;
  /// Label that it branches to.
  std::string target;
  /// Address in bytes of machine code, line of PTX.
  unsigned place = 0;
  /// Line of the source that the listing names; 0 without.
  unsigned line = 0;

  /// Of machine code from sm_70 on, where the listing has its words
  /// (`nvdisasm -hex`).
  std::optional<CodeScoreboards> scoreboards;

  /// The opcode up to its first full stop.
  llvm::StringRef getBase() const {
    return llvm::StringRef(opcode).split('.').first;
  }
};

/// A kernel. Functions that it calls follow behind its own code.
struct CodeListing {
  std::string kernel;
  std::vector<CodeInstruction> instructions;
  /// Index of the instruction that a label stands before.
  llvm::StringMap<unsigned> labels;
};

/// The kernel called `kernel` (empty: the first one) in what `nvdisasm -c`
/// prints. Error: no such kernel.
llvm::Expected<CodeListing> parseSassListing(llvm::StringRef text,
                                             llvm::StringRef kernel = "");

/// The kernel called `kernel` (empty: the first one) in PTX. Blocks of inline
/// assembly are part of their surroundings. Error: no such kernel.
llvm::Expected<CodeListing> parsePTXListing(llvm::StringRef text,
                                            llvm::StringRef kernel = "");

} // namespace mlir::attn

#endif // ATTN_TARGET_CODELISTING_H
