//===- ResultSink.cpp - Where the results of a tile go --------------------===//

#include "ResultSink.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// The outputs of the attention itself.
class FinalResults : public ResultSink {
public:
  using ResultSink::ResultSink;
  Value emitView(StringRef name, HeadRows rows,
                 const TileCoordinates &) override {
    return emitHeadRows(context, name, rows);
  }
  Value emitHasSinks(const TileCoordinates &) override { return {}; }
};

/// What attn.combine merges: the run of keys stands in front of the batch.
class PartialResults : public ResultSink {
public:
  using ResultSink::ResultSink;
  Value emitView(StringRef name, HeadRows rows,
                 const TileCoordinates &at) override {
    rows.lead = 1;
    rows.leadIndex = at.split;
    const ProblemFacts &facts = context.facts;
    // What the kernel merges itself has names of its own.
    const TensorFacts &result = name == "o"     ? facts.o
                                : name == "lse" ? facts.lse
                                                : facts.oScales;
    return emitHeadRows(context, result.name, rows);
  }
  /// They count in run 0 only.
  Value emitHasSinks(const TileCoordinates &at) override {
    if (!at.split)
      return {};
    return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, at.split,
                                 context.i32(0));
  }
};

} // namespace

std::unique_ptr<ResultSink> ResultSink::create(KernelContext &context) {
  if (context.facts.kvSplits)
    return std::make_unique<PartialResults>(context);
  return std::make_unique<FinalResults>(context);
}
