//===- Problem.h - An attention problem from flags --------------*- C++ -*-===//
//
// The short form in which tools take an attention problem, and the IR that it
// stands for: a host function `attention` with one attn.attention on memrefs.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_COMPILE_PROBLEM_H
#define ATTN_COMPILE_PROBLEM_H

#include "attn/Problem/Mask.h"
#include "attn/Problem/Options.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <optional>
#include <string>

namespace mlir::attn {

/// What the user wrote after each flag; nothing where a flag was not given. The
/// options and the forms of their values are those of Options.def.
struct ProblemFlags {
#define ATTN_OPTION(ID, NAME, KIND, VALUE, CONSTRAINTS, DOC)                   \
  std::optional<OptionValue<OptionKind::KIND>::type> ID;
#include "attn/Problem/Options.def"

  /// Calls `visit(row, value)` for each option in the table's order; `value` is
  /// the std::optional of its member.
  template <typename Visitor>
  void forEach(Visitor visit) {
    auto row = getProblemOptions().begin();
#define ATTN_OPTION(ID, NAME, KIND, VALUE, CONSTRAINTS, DOC) visit(*row++, ID);
#define ATTN_REGION(ID, NAME, GIVEN, RECORD, CONSTRAINTS, DOC) ++row;
#include "attn/Problem/Options.def"
  }

  /// The name of a flag that was given, or an empty string. A switch in its
  /// default position counts as not given.
  std::string getFirstGiven() const;
};

/// A problem with all its numbers.
struct Problem {
  int64_t batch = 1;
  int64_t heads = 1;
  int64_t kvHeads = 1;
  int64_t queries = 1;
  int64_t keys = 1;
  int64_t headDim = 1;
  int64_t valueDim = 1;
  /// Element types as MLIR spells them; of keys and values empty where it is
  /// that of queries.
  std::string type, kvType, outType;
  /// True if a byte of the output has two results.
  bool hasFloat4Results() const { return outType == "f4E2M1FN"; }
  /// The type of scales of an output.
  StringRef getScaleType() const {
    if (!outScaleType.empty())
      return outScaleType;
    return hasFloat4Results() ? "f8E4M3FN" : "f32";
  }
  /// Elements of a row of the output.
  int64_t getOutputColumns() const {
    return hasFloat4Results() ? valueDim / 2 : valueDim;
  }
  /// Type of scales of an output; empty for the default.
  std::string outScaleType;
  MaskKind mask = MaskKind::None;
  MaskAlign align = MaskAlign::TopLeft;
  /// Window only; negative means no bound.
  int64_t left = -1, right = -1;
  /// Factors, counts and switches under their names in Options.def. 0 is no
  /// count; rows of a transposed v have getValuePitch() elements.
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  std::optional<double> ID;
#define ATTN_COUNT(ID, NAME, VALUE, CONSTRAINTS, DOC) int64_t ID = 0;
#define ATTN_NATURAL(ID, NAME, VALUE, CONSTRAINTS, DOC)                        \
  std::optional<int64_t> ID;
#define ATTN_SWITCH(ID, NAME, DEFAULT, GIVEN, RECORD, CONSTRAINTS, DOC)        \
  bool ID = DEFAULT;
#include "attn/Problem/Options.def"
  /// (batch, sequence, head, dim) in memory instead of (batch, head, sequence,
  /// dim).
  bool sequenceMajor = false;
  /// Strides of q, k, v and o come with the launch.
  bool openStrides = false;
  /// Lengths of packed sequences; empty without.
  llvm::SmallVector<int64_t> lengthsQ, lengthsK;
  /// What kv_lengths holds; empty without.
  llvm::SmallVector<int64_t> kvLengths;
  /// Keys that costs are those of; empty without.
  llvm::SmallVector<int64_t> expectedKeys;
  /// Numbers of added_lengths; empty without.
  llvm::SmallVector<int64_t> addedLengths;

  /// Elements from one column of a transposed v to the next: the keys, rounded
  /// up to what makes 16 bytes of 8-bit elements.
  int64_t getValuePitch() const { return (keys + 15) / 16 * 16; }

  /// Sequences of the batch, packed or not.
  int64_t getSequences() const {
    return lengthsQ.empty() ? batch : int64_t(lengthsQ.size());
  }
  /// With pages: entries of the table for each sequence, and pages of the pool,
  /// of which some belong to none.
  int64_t getTableColumns() const { return (keys + pageSize - 1) / pageSize; }
  /// Counts those of added keys.
  int64_t getAddedColumns() const;
  int64_t getAddedPages() const {
    return batch * getAddedColumns() + kSparePages;
  }
  /// Most keys of a sequence, in pages or not.
  int64_t getCapacity() const {
    return pageSize ? getTableColumns() * pageSize : keys;
  }
  /// True if q has 8 bits.
  bool isNarrow() const { return StringRef(type).starts_with("f8"); }
  /// True if values are columns of the keys.
  bool isLatent() const { return ropeDim.has_value(); }
  /// Columns of keys that are none of values.
  int64_t getRopeColumns() const { return ropeDim.value_or(0); }
  /// True if rotated columns of keys are apart, as beside latent ones of 8
  /// bits with scales.
  bool hasOwnRope() const {
    return getRopeColumns() != 0 && (ropeApart || scaleGroup != 0);
  }
  /// Columns of the tensor q.
  int64_t getQueryColumns() const { return ropeApart ? valueDim : headDim; }
  /// Columns of the tensor k.
  int64_t getKeyColumns() const { return hasOwnRope() ? valueDim : headDim; }
  int64_t getPoolPages() const {
    return getSequences() * getTableColumns() + kSparePages;
  }
  static constexpr int64_t kSparePages = 3;
};

/// Reads the flags. Errors name the flag: `--scale: expected a finite number
/// other than zero, got 'nan'`. What the verifier of attn.attention checks is
/// left to it.
llvm::Expected<Problem> parseProblem(const ProblemFlags &flags);

/// Builds the module. The arguments of its function are q, k, v, o, lse, sinks,
/// cu_seqlens_q, cu_seqlens_k, q_descale, k_descale, v_descale, page_table,
/// page_indptr, kv_lengths, block_counts, block_indices, init_o, init_lse,
/// k_scales, v_scales, k_rope, q_rope, o_scales, amax, added_k, added_v,
/// added_table and added_lengths, as far as the problem has them. With split
/// keys it allocates the partial results, which an attn.combine merges into o
/// and lse.
OwningOpRef<ModuleOp> buildProblem(MLIRContext *context,
                                   const Problem &problem);

} // namespace mlir::attn

#endif // ATTN_COMPILE_PROBLEM_H
