//===- Reference.h - attention in float64 -----------------------*- C++ -*-===//
//
// The result that a kernel is compared with, computed in float64 from the
// operands as stored. docs/Reference.md has the formulas.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_HARNESS_REFERENCE_H
#define ATTN_HARNESS_REFERENCE_H

#include "attn/Launch/LaunchRecord.h"
#include "attn/Support/Progress.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"
#include <functional>
#include <optional>
#include <vector>

namespace mlir::attn::sim {

/// A strided tensor in host memory. Shape and strides count elements; `data`
/// holds every element that they reach.
struct TensorView {
  DType dtype = DType::F16;
  llvm::SmallVector<int64_t, 4> shape;
  llvm::SmallVector<int64_t, 4> strides;
  llvm::ArrayRef<uint8_t> data;

  /// The element at `index`, one number for each dimension.
  double get(llvm::ArrayRef<int64_t> index) const {
    int64_t offset = 0;
    for (auto [i, stride] : llvm::zip_equal(index, strides))
      offset += i * stride;
    return decodeElement(dtype, data.data() + offset * getByteWidth(dtype));
  }
};

/// Score of (batch, query head, query, key) after scale and cap -> score.
/// Query and key count within their sequence. Called from two threads at once.
using ScoreMod = std::function<double(double score, int64_t b, int64_t h,
                                      int64_t i, int64_t j)>;
/// True when query i sees key j; `score` is what score_mod gave. Called from
/// two threads at once.
using MaskMod = std::function<bool(double score, int64_t b, int64_t h,
                                   int64_t i, int64_t j)>;

/// Result of (batch, query head, query, column) -> result; the query counts
/// within its sequence. Called from two threads at once.
using OutMod = std::function<double(double result, int64_t b, int64_t h,
                                    int64_t i, int64_t column)>;

/// What attention is computed from. Dimension order is (batch, head, sequence,
/// dim); sinks is (head), cuSeqlens is (sequences + 1), descales are (sequence,
/// query head) and (sequence, key head), all three or none. With a page table k
/// and v are (page, head, row of the page, dim), and the table is (sequence,
/// page of the sequence), or with pageIndptr (sequences + 1) a list. kvLengths
/// is (sequence). Lists of blocks of keys are (sequence, query head, list),
/// with two numbers and with blocks, both or none. initO and initLse have the
/// shapes of o and lse.
struct AttentionInputs {
  TensorView q, k, v;
  std::optional<TensorView> sinks, cuSeqlensQ, cuSeqlensK;
  std::optional<TensorView> qDescale, kDescale, vDescale;
  std::optional<TensorView> pageTable, pageIndptr, kvLengths, initO, initLse;
  std::optional<TensorView> blockCounts, blockIndices;
  /// (batch or page, key head, row, group of columns), both or none; of latent
  /// keys those of k. With kRope k has no rotated columns.
  std::optional<TensorView> kScales, vScales, kRope;
  /// The rotated columns of q where q has only the others.
  std::optional<TensorView> qRope;
  /// Keys beside those of k, all or none: pools in pages, (sequence, page of
  /// the sequence) and (sequence).
  std::optional<TensorView> addedK, addedV, addedTable, addedLengths;
  ScoreMod scoreMod;
  MaskMod maskMod;
  OutMod outMod;
  /// For each element of lse 1 where it and its row of o are computed; empty:
  /// all are. Not owned.
  llvm::ArrayRef<uint8_t> rows;
};

/// The result, row-major: o is (batch, head, query, dv), lse is (batch, head,
/// query), natural logarithm.
struct AttentionResult {
  llvm::SmallVector<int64_t, 4> shape;
  std::vector<double> o;
  /// With `row_state` maxima of rows.
  std::vector<double> lse;
  /// True with `row_state`.
  bool hasStates = false;
  /// With `row_state` sums of rows, by which o is not divided; else empty.
  std::vector<double> sums;
  /// For each element of lse 1 where it and its row of o are defined; rows
  /// beyond the last packed sequence are not.
  std::vector<uint8_t> defined;
};

/// Computes attention. Errors: shapes that contradict the problem or each
/// other, missing sinks or lengths, cumulative lengths that decrease or reach
/// beyond the tensors, a score_mod or mask_mod that the problem has and
/// `inputs` lacks, and StoppedError where `progress` stops it.
llvm::Expected<AttentionResult>
computeReference(const AttentionProblem &problem, const AttentionInputs &inputs,
                 ProgressMeter *progress = nullptr);

/// How far a kernel's output lies from the reference.
struct Deviation {
  /// O: ‖out - ref‖ / ‖ref‖. LSE: the largest |out - ref| / max(1, |ref| /
  /// 1024). Equal infinities count as equal; infinite where one is finite and
  /// the other is not. What O's type cannot hold is judged as its conversion
  /// would give it: infinity beyond the range, and below the normal numbers
  /// half their spacing counts as no difference.
  double error = 0;
  /// The element that differs most, and its two values.
  llvm::SmallVector<int64_t, 4> worst;
  double out = 0, ref = 0;
};

/// Compares O. `out` has the reference's shape.
llvm::Expected<Deviation> compareOutput(const TensorView &out,
                                        const AttentionResult &reference);
/// Compares LSE. `out` has the reference's shape without its last dimension.
llvm::Expected<Deviation> compareLSE(const TensorView &out,
                                     const AttentionResult &reference);

} // namespace mlir::attn::sim

#endif // ATTN_HARNESS_REFERENCE_H
