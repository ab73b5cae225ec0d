//===- CommonChecks.h - What schedules refuse alike -------------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_CORE_COMMONCHECKS_H
#define ATTN_LIB_SCHEDULE_CORE_COMMONCHECKS_H

#include "attn/Problem/Limits.h"
#include "attn/Schedule/Core/Schedule.h"
#include "llvm/Support/Error.h"

namespace mlir::attn {

/// Most columns of Q, K and V: in schedules without a reason for another limit;
/// where two warpgroups of a CTA share the results; in ws_columns, where two
/// CTAs have two each; and in tiled_d, whose warps share them.
inline constexpr int64_t kUsualColumns = 256, kMostSharedColumns = 512,
                         kMostPairedColumns = 1024, kMostTiledColumns = 1024;

/// Most heads of a group whose rows a tile may hold together.
inline constexpr int64_t kPackedHeadsLimit = 256;

/// "schedule 'x' does not support what".
llvm::Error makeUnsupported(llvm::StringRef schedule, const llvm::Twine &what);

/// Says the same of an option that the schedule does not take, whatever the
/// problem's extents are: an OptionError.
llvm::Error makeLacking(llvm::StringRef schedule, const llvm::Twine &what);

/// What the parts that a schedule is made of can do beyond plain attention.
struct Parts {
  /// Products of 8-bit floats.
  bool narrow = false;
  /// 8-bit keys and values beside 16-bit queries.
  bool narrowKeys = false;
  /// Scales of their rows.
  bool rowScales = false;
  /// Where keys come from: batches that end before k does, pages.
  bool lengths = false, pages = false;
  /// Keys of another pool beside those of k.
  bool addedKeys = false;
  /// Lists of blocks of keys.
  bool blockLists = false;
  /// Where results go: partial results of runs of keys.
  bool partialResults = false;
  /// Results of other keys that rows go on from.
  bool init = false;
  /// Values that are columns of the keys.
  bool latent = false;
  /// Scales of the columns of results.
  bool resultScales = false;
  /// Most columns of Q, K and V.
  int64_t mostColumns = kUsualColumns;
};

/// Refuses problems whose form takes more than plain attention on f16 or bf16
/// and what the schedule's parts can do, head dimensions other than multiples
/// of 8 up to `mostColumns`, pages of more than kPageLimit keys, and lengths
/// from kLengthLimit on.
llvm::Error checkCommon(llvm::StringRef schedule, const ProblemFacts &facts,
                        const Parts &parts);

/// Refuses softmax policies that the code of a schedule does not have.
llvm::Error checkPolicy(llvm::StringRef schedule, SoftmaxPolicy policy);

/// Refuses softmax policies whose maxima are not those of rows where these are
/// results, or depend on other rows where results must not.
llvm::Error checkExactMaxima(const ProblemFacts &facts, SoftmaxPolicy policy);

/// Refuses heads of a group as rows of their query where groups are not known,
/// too large, or in the plan `groupHeads` side by side.
llvm::Error checkPackedHeads(const ProblemFacts &facts, int64_t groupHeads);

/// Refuses tiles of `rows` rows and blocks of `blockN` keys that lists of
/// blocks do not hold whole.
llvm::Error checkBlockLists(const ProblemFacts &facts, int64_t rows,
                            int64_t blockN);

/// Refuses runs of keys of packed sequences.
llvm::Error checkPackedRuns(llvm::StringRef schedule,
                            const ProblemFacts &facts);

/// These parameters of a plan, and no group of heads beside packed heads or an
/// order that has none, unless they set one: a candidate may have it.
llvm::SmallVector<PlanParameter>
dropHeadGroups(llvm::ArrayRef<PlanParameter> parameters);

/// Refuses plans whose shared memory a CTA cannot have.
llvm::Error checkSharedBytes(const ResourceSum &shared,
                             const TargetRow &target);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_COMMONCHECKS_H
