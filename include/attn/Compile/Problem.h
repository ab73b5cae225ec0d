//===- Problem.h - An attention problem from flags --------------*- C++ -*-===//
//
// The short form in which tools take an attention problem, and the IR that it
// stands for: a host function `attention` with one attn.attention on memrefs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_PROBLEM_H
#define ATTN_COMPILE_PROBLEM_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace mlir::attn {

/// What the user wrote after each flag; nothing where a flag was not given.
struct ProblemFlags {
  /// BxHxNxDxTYPE, for example 4x32x4096x128xf16.
  std::optional<std::string> q;
  std::optional<int64_t> kvHeads;
  std::optional<int64_t> kvLen;
  std::optional<int64_t> dv;
  /// Empty, "top-left" or "bottom-right".
  std::optional<std::string> causal;
  /// LEFT,RIGHT[,ALIGN]; a negative number means no bound.
  std::optional<std::string> window;
  std::optional<std::string> softcap;
  std::optional<std::string> scale;
  /// f16, bf16 or f32; the type of q without it.
  std::optional<std::string> outType;
  /// "bhnd" or "bnhd": the order of the dimensions in memory.
  std::optional<std::string> layout;
  /// q:17,64,1[/k:20,64,9]: the lengths of packed sequences.
  std::optional<std::string> varlen;
  bool sinks = false;
  /// 8-bit operands have descales.
  bool descales = false;
  /// v is (batch, head, dim, sequence) in memory.
  bool vTransposed = false;
  bool lse = true;
  /// Batch, lengths and strides become dynamic in the IR.
  bool dynamic = false;

  /// The name of a flag that was given, or an empty string.
  llvm::StringRef getFirstGiven() const;
};

/// A problem with all its numbers.
struct Problem {
  enum class Mask { None, Causal, Window };

  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t headDim = 1;
  int64_t valueDim = 1;
  /// Element types as MLIR spells them.
  std::string type, outType;
  Mask mask = Mask::None;
  bool bottomRight = false;
  /// Window only; negative means no bound.
  int64_t left = -1, right = -1;
  std::optional<double> scale, softcap;
  bool sinks = false;
  bool descales = false;
  /// v is (batch, head, dim, sequence) in memory, with rows of getValuePitch()
  /// elements.
  bool vTransposed = false;
  bool lse = true;
  bool dynamic = false;
  /// (batch, sequence, head, dim) in memory instead of (batch, head, sequence,
  /// dim).
  bool sequenceMajor = false;
  /// Lengths of packed sequences; empty without.
  llvm::SmallVector<int64_t> lengthsQ, lengthsK;

  /// Elements from one column of a transposed v to the next: the keys, rounded
  /// up to what makes 16 bytes of 8-bit elements.
  int64_t getValuePitch() const { return (keys + 15) / 16 * 16; }
};

/// Reads the flags. Errors name the flag: `--softcap: expected a finite number
/// above zero, got 'nan'`. What the verifier of attn.attention checks is left
/// to it.
llvm::Expected<Problem> parseProblem(const ProblemFlags &flags);

/// Builds the module. The arguments of its function are q, k, v, o, lse, sinks,
/// cu_seqlens_q, cu_seqlens_k, q_descale, k_descale and v_descale, as far as
/// the problem has them.
OwningOpRef<ModuleOp> buildProblem(MLIRContext *context,
                                   const Problem &problem);

} // namespace mlir::attn

#endif // ATTN_COMPILE_PROBLEM_H
