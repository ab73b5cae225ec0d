//===- LaunchRecord.h - what a launch of a kernel needs ---------*- C++ -*-===//
//
// The launch record goes with PTX and says everything that a host needs to
// launch its kernels: the target, the tensors, the workspaces that kernels
// share, the steps in order (a kernel with its grid as expressions over tensor
// sizes, block, cluster, dynamic shared memory and parameters), and the
// attention problem that they solve together.
//
// Its JSON form is described in docs/LaunchRecord.md, with a schema in
// docs/launch-record.schema.json. Reading is strict: an unknown field, a
// missing field or a wrong type is an error that names the field's path.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LAUNCH_LAUNCHRECORD_H
#define ATTN_LAUNCH_LAUNCHRECORD_H

#include "attn/Launch/DType.h"
#include "attn/Launch/SizeExpr.h"
#include "attn/Launch/SyncVerdict.h"
#include "attn/Problem/Mask.h"
#include "attn/Problem/Options.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mlir::attn {

/// Stands for a size or stride that only the launch decides.
inline constexpr int64_t kDynamicSize = -1;

/// Most tiles that the CTAs of a launch deal among themselves: their numbers
/// have 32 bits, and whoever finds that none is left counts on by one for each
/// CTA that there is at once, which no device has more of than are left out
/// here.
inline constexpr int64_t kMostTiles = (int64_t(1) << 31) - (1 << 16);

/// How the kernel uses a tensor. `Update` is one that has contents before the
/// launch and others after it.
enum class TensorAccess { Read, Write, Update };

/// Returns true if a tensor has contents before the launch.
inline bool isRead(TensorAccess access) {
  return access != TensorAccess::Write;
}
/// Returns true if a launch changes a tensor.
inline bool isWritten(TensorAccess access) {
  return access != TensorAccess::Read;
}

/// A tensor of the launch. Dimension order is (batch, head, sequence, dim) for
/// q, k, v and o, and (batch, head, sequence) for lse.
struct LaunchTensor {
  std::string name;
  DType dtype = DType::F16;
  /// Elements; kDynamicSize where the launch decides.
  llvm::SmallVector<int64_t, 4> shape;
  /// Elements, of the shape's rank; kDynamicSize where the launch decides.
  llvm::SmallVector<int64_t, 4> strides;
  TensorAccess access = TensorAccess::Read;
};

/// Swizzle mode of a tensor map (PTX ISA, "Tensor Swizzling Modes").
enum class TensorMapSwizzle { None, B32, B64, B128 };

/// Bytes of the swizzle span: 0, 32, 64 or 128.
unsigned getSwizzleBytes(TensorMapSwizzle swizzle);

/// As what a tensor map describes its tensor.
enum class TensorMapView {
  /// As it is: map dimension i is tensor dimension rank-1-i.
  Whole,
  /// With the last two dimensions exchanged.
  Transposed,
  /// With the dimension before the last, whose extent is a multiple of 4, as
  /// two: (..., rows / 4, 4, columns), one rank more.
  Quads,
  /// Packed sequences, whose batch is 1, with a dimension in place of the batch
  /// that says where a sequence ends: with R rows in all, element (e, ..., i,
  /// c)
  /// is row e - R + i. The last row of a sequence that ends at row e is i = R -
  /// 1, and all rows behind it are outside.
  Packed,
  /// With one dimension more, behind the first, that says where its rows end:
  /// with R rows, element (b, e, ..., i, c) is row e - R + i of batch or page
  /// b.
  /// The last of its first e rows is i = R - 1, and all rows behind it are
  /// outside.
  Bounded,
  /// With the dimension before the last exchanged with the one in front of it:
  /// of (..., heads, rows, columns) the heads of a row stand side by side.
  ByRow,
  /// The same of what Packed is.
  PackedByRow,
  /// With all dimensions but the last as one: row i begins i pitches behind the
  /// first one.
  Rows
};

/// Whether a map has the dimension before the last outside of the one in front
/// of it.
inline bool isByRow(TensorMapView view) {
  return view == TensorMapView::ByRow || view == TensorMapView::PackedByRow;
}
/// Whether a map says where each of packed sequences ends.
inline bool isPacked(TensorMapView view) {
  return view == TensorMapView::Packed || view == TensorMapView::PackedByRow;
}

/// Dimensions of a map of a tensor of rank `tensorRank`.
unsigned getMapRank(TensorMapView view, unsigned tensorRank);

/// What a kernel parameter carries.
enum class ArgKind {
  Pointer,
  Size,
  Stride,
  Scalar,
  TensorMap,
  Workspace,
  Expression
};

/// What a step does with a workspace.
enum class WorkspaceAccess {
  /// Anything; what it finds there is its own matter.
  Update,
  /// Reads what an earlier step, an earlier call or zeroing has left.
  Read,
  Write
};

/// One kernel parameter.
struct LaunchArg {
  ArgKind kind = ArgKind::Pointer;
  /// pointer, size, stride, tensor_map: the tensor's index in the record.
  unsigned tensor = 0;
  /// size, stride: dimension of the tensor. Strides are in elements.
  unsigned dim = 0;
  /// size, stride, expression: I32 or I64. scalar: any type.
  DType type = DType::I32;
  /// scalar: its name, by which the caller supplies the value.
  std::string name;
  /// scalar: the value where the record fixes it.
  std::optional<double> value;
  /// tensor_map: box extents, innermost dimension first; their number is the
  /// map's rank.
  llvm::SmallVector<int64_t, 5> box;
  TensorMapView view = TensorMapView::Whole;
  /// Elements from one row to the next; 0 but in the view Rows.
  int64_t pitch = 0;
  TensorMapSwizzle swizzle = TensorMapSwizzle::None;
  /// tensor_map: element type that the map states.
  DType element = DType::F16;
  /// workspace: its index in the record.
  unsigned workspace = 0;
  WorkspaceAccess access = WorkspaceAccess::Update;
  /// expression: what the parameter's value is.
  SizeExpr expression;
};

/// Global memory that the launch provides beside the tensors, the same for all
/// steps. Without a promise it holds anything at the start of a call.
struct LaunchWorkspace {
  /// How messages call it; empty for "workspace I".
  std::string name;
  SizeExpr bytes;
  /// True when the memory must hold zeros at the start of a call; with
  /// `persistent` at the start of the first one.
  bool zeroed = false;
  /// True when the steps leave zeros behind, so that calls one after the other
  /// may share the memory. Only with `zeroed`.
  bool restored = false;
  /// True when what one call leaves is there for the next one of the same
  /// sizes. Not with `restored`.
  bool persistent = false;

  bool operator==(const LaunchWorkspace &other) const;
  bool operator!=(const LaunchWorkspace &other) const {
    return !(*this == other);
  }
};

/// One launch of a kernel.
struct LaunchStep {
  std::string kernel;
  std::array<SizeExpr, 3> grid;
  std::array<int64_t, 3> block = {1, 1, 1};
  std::array<int64_t, 3> cluster = {1, 1, 1};
  /// Tiles that the CTAs deal among themselves, at most kMostTiles; absent
  /// where they do not, or where no launch can have more.
  std::optional<SizeExpr> tiles;
  /// Dynamic shared memory of a CTA in bytes.
  int64_t sharedBytes = 0;
  std::vector<LaunchArg> args;
  /// True when all CTAs have to be on the device at once: a cooperative launch.
  bool cooperative = false;
  /// True when the kernel may start before the one in front of it has ended,
  /// another step or what else the stream has there, and awaits it by
  /// griddepcontrol.wait: programmatic stream serialization.
  bool programmatic = false;
  /// Absent where nobody looked.
  std::optional<SyncVerdict> proof;
};

/// The attention problem that the kernel solves; docs/Reference.md has the
/// formula. What stands in Options.def is a member under its name there.
struct AttentionProblem {
  /// Factors of the scores and what else is a number: 0 for none.
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  double ID = getDefaultFactor(FactorSign::SIGN);
  /// Heads, and the head dimensions of q and k, and of v and o. The key heads
  /// divide the query heads.
#define ATTN_RECORDED_EXTENT(FACT, NAME, ID, RECORD) int64_t ID = 1;
  /// What the problem has: tensors `sinks`; `cu_seqlens_q` and `cu_seqlens_k`,
  /// with q, k, v and o that hold the sequences one after another and have
  /// batch size 1; regions, which a launch record cannot carry.
#define ATTN_FEATURE(ID, NAME, GIVEN, RECORD) ATTN_IF_##RECORD(bool ID = false;)
#include "attn/Problem/Options.def"

  MaskKind mask = MaskKind::None;
  MaskAlign align = MaskAlign::TopLeft;
  /// Window only: keys left and right of the diagonal; negative is unbounded.
  int64_t left = -1;
  int64_t right = -1;
  /// With varlen: no sequence has more queries. 0 states no bound.
  int64_t maxSeqlenQ = 0;
  /// Queries that share a list of blocks of keys, and keys of such a block; 0
  /// without lists.
  int64_t blockRows = 0, blockKeys = 0;
  /// Columns of o that share a scale; 0 without scales.
  int64_t outGroup = 0;
  /// The kernel adds up scores, or results, in f16: how far off they may be.
  bool narrowScores = false, narrowResults = false;
};

/// Says that ptxas was asked about plans when the kernel was compiled.
struct AssembledPlan {
  /// Its version, such as "13.0".
  std::string ptxas;
  /// Plans that the planner would rather have taken, and whose kernels ptxas
  /// spilled.
  int64_t skipped = 0;
};

/// The whole record.
struct LaunchRecord {
  /// The last version that this library reads and writes.
  static constexpr int64_t currentVersion = 2;

  /// Target name (`sm_80`) and PTX version times ten (80 is PTX 8.0).
  std::string chip;
  int64_t ptxVersion = 0;
  std::vector<LaunchTensor> tensors;
  std::vector<LaunchWorkspace> workspaces;
  /// Launched in this order on one stream; at least one.
  std::vector<LaunchStep> steps;
  /// Absent where the steps are not attention.
  std::optional<AttentionProblem> problem;
  /// Absent where ptxas was not asked.
  std::optional<AssembledPlan> assembled;

  /// Index of the tensor called `name`, or nothing.
  std::optional<unsigned> findTensor(llvm::StringRef name) const;
  /// How messages call a workspace: its name in quotes, or its index.
  std::string describeWorkspace(unsigned index) const;
  /// How messages call a step: its kernel, with its number if there are others.
  std::string describeStep(unsigned index) const;
  /// The least version that can say all of it.
  int64_t getLeastVersion() const;
};

/// Reads a record from JSON text. Errors are of the form
/// `launch record: args[3].kind: expected one of "pointer", ..., got "x"`, a
/// line for each thing that is wrong.
llvm::Expected<LaunchRecord> parseLaunchRecord(llvm::StringRef json);

/// The same for a step of a sequence, as a record with one step: what it reads
/// of other steps is not judged.
llvm::Expected<LaunchRecord> parseLaunchStep(llvm::StringRef json);

/// The record as a JSON value that parseLaunchRecord reads back, in the least
/// version that can say it: hosts of that version read it too. Number-valued
/// fields of the problem must be finite.
llvm::json::Value toJSON(const LaunchRecord &record);

/// One record with the steps of all `parts`, in order, where tensors of one
/// name are one tensor, and so are workspaces of one name. Errors: parts that
/// disagree on the target, a tensor, a workspace or the problem; what
/// checkSteps refuses.
llvm::Expected<LaunchRecord> joinLaunches(llvm::ArrayRef<LaunchRecord> parts);

/// Fails where a step reads a workspace that no earlier step writes and that
/// neither zeroing nor an earlier call fills.
llvm::Error checkSteps(const LaunchRecord &record);

} // namespace mlir::attn

#endif // ATTN_LAUNCH_LAUNCHRECORD_H
