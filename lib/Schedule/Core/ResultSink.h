//===- ResultSink.h - Where the results of a tile go ------------*- C++ -*-===//
//
// Results are final, or partial ones of a run of the keys, which attn.combine
// merges. Whoever finishes a tile asks for views of its rows, and what of the
// problem's extra logits belongs to it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_CORE_RESULTSINK_H
#define ATTN_LIB_SCHEDULE_CORE_RESULTSINK_H

#include "RowViews.h"
#include <memory>

namespace mlir::attn {

class ResultSink {
public:
  explicit ResultSink(KernelContext &context)
      : context(context), b(context.b) {}
  /// What the problem's outputs are.
  static std::unique_ptr<ResultSink> create(KernelContext &context);
  virtual ~ResultSink() = default;

  /// The rows of o or lse.
  virtual Value emitView(StringRef name, HeadRows rows,
                         const TileCoordinates &at) = 0;
  /// Whether the extra logits, which count once, are the tile's, i1; null where
  /// they always are.
  virtual Value emitHasSinks(const TileCoordinates &at) = 0;

protected:
  KernelContext &context;
  ImplicitLocOpBuilder &b;
};

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_CORE_RESULTSINK_H
