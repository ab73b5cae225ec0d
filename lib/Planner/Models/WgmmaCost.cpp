//===- WgmmaCost.cpp - What blocks multiplied by wgmma take ---------------===//

#include "WgmmaCost.h"
#include "../../Schedule/Wgmma/WgmmaFacts.h"

using namespace mlir;
using namespace mlir::attn;

void attn::setResourceClocks(PlanEstimate &estimate, const ProblemFacts &facts,
                             const TargetRow &target, double blockM,
                             double blockN, SoftmaxPolicy softmax) {
  double columns = getKeyDepth(facts) + facts.valueDim;
  double bytes = facts.isNarrow() ? 1 : 2;
  estimate.tensorClocks =
      2 * blockM * blockN * columns /
      (facts.isNarrow() ? target.tensorFlopFp8 : target.tensorFlopF16);
  estimate.expClocks = blockM * blockN / target.expPerClock;
  // Warp instructions for 32 elements of S: scale, exponential, sum, maximum,
  // half a packing; and one multiplication for 32 elements of O. Optimistic
  // blocks have neither maximum nor multiplication, those with a threshold
  // multiply rarely.
  bool optimistic = softmax == SoftmaxPolicy::Optimistic;
  double elements = blockM * blockN / 32;
  bool rescales = softmax == SoftmaxPolicy::Exact;
  double rescale = rescales ? blockM * facts.valueDim / 32 : 0;
  estimate.issueClocks =
      ((optimistic ? 3.5 : 4.5) * elements + rescale + 40 * blockM / 16) /
      target.issuePerClock;
  // Operands from shared memory: B of both products for each warpgroup, A of
  // QK, and what TMA writes. A transposer reads and writes values once more.
  double transposed =
      needsTransposer(facts) ? 2 * blockN * getValueColumns(facts) : 0;
  double operandBytes =
      bytes *
      (blockM / 64 * blockN * columns + blockM * getKeyDepth(facts) +
       blockN * (getKeyColumns(facts) + getValueColumns(facts)) + transposed);
  // What is widened is written and read with 8 bits, too.
  double slots = blockN * (facts.headDim + facts.valueDim);
  if (facts.hasNarrowKeys()) {
    operandBytes += 2 * slots;
    // For two elements a conversion, for 16 a load and two stores.
    estimate.issueClocks +=
        slots / 32 * (0.5 + 3.0 / 16) / target.issuePerClock;
  }
  // A product for each score, and two for two values.
  if (facts.kScales)
    estimate.issueClocks +=
        (elements + blockN * facts.valueDim / 32) / target.issuePerClock;
  estimate.sharedClocks = operandBytes / target.sharedBytesPerClock;
}
