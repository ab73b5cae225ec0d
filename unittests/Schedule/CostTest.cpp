//===- CostTest.cpp - What estimates have to tell apart -------------------===//

#include "../../lib/Schedule/TileBalance.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class CostTest : public ::testing::Test {
protected:
  CostTest() : target(llvm::cantFail(lookupTarget("sm_90a"))) {
    context
        .loadDialect<AttnDialect, func::FuncDialect, memref::MemRefDialect>();
  }

  /// The facts of an attention of one batch and head dimension 128.
  ProblemFacts getFacts(int64_t heads, int64_t length, StringRef mask) {
    std::string text = llvm::formatv(
        "!t = memref<1x{0}x{1}x128xf16>\nfunc.func @f(%q: !t, %o: !t) {{\n"
        "attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%o : !t) "
        "{{mask = #attn.mask<kind = {2}>}\nreturn\n}",
        heads, length, mask);
    module = parseSourceString<ModuleOp>(text, &context);
    AttentionOp op;
    module->walk([&](AttentionOp found) { op = found; });
    FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
    EXPECT_TRUE(succeeded(facts));
    return *facts;
  }

  /// Microseconds of a plan of ws_wgmma with parameters replaced.
  double estimate(const ProblemFacts &facts,
                  ArrayRef<PlanParameter> parameters) {
    const Schedule &schedule = getWsWgmmaSchedule();
    auto plan = schedule.setParameters([&] { return facts.op->emitError(); },
                                       &context, nullptr, parameters);
    EXPECT_TRUE(succeeded(plan));
    return schedule.estimate(facts, *plan, target).microseconds;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  const TargetRow &target;
};

// One tile more than there are SMs is one that all others wait for.
TEST_F(CostTest, UnevenWavesTakeLonger) {
  int64_t sms = target.smCount;
  for (StringRef order : {"row_major", "longest_first"})
    for (StringRef dynamic : {"false", "true"}) {
      auto time = [&](int64_t tiles) {
        return estimate(getFacts(tiles, /*length=*/128, "none"),
                        {{"order", order}, {"dynamic", dynamic}});
      };
      double whole = time(sms), uneven = time(sms + 1), next = time(2 * sms);
      std::string what = (order + ", dynamic = " + dynamic).str();
      EXPECT_GT(uneven, 1.4 * whole) << what;
      EXPECT_LE(uneven, next) << what;
      EXPECT_GT(uneven / (sms + 1), 1.3 * next / (2 * sms)) << what;
    }
}

// Of groups of heads the one that deals tiles more evenly is preferred.
TEST_F(CostTest, EvenlyDealtTilesTakeLessTime) {
  ProblemFacts facts = getFacts(/*heads=*/48, /*length=*/1024, "causal");
  std::vector<std::pair<double, double>> seen;
  for (int64_t heads : {1, 2, 3, 5, 8, 12, 16, 24, 33, 48}) {
    std::string text = std::to_string(heads);
    double time =
        estimate(facts, {{"order", "longest_first"}, {"group_heads", text}});
    std::optional<double> imbalance = getImbalance(
        facts, /*blockM=*/128, /*blockN=*/128, heads, target.smCount);
    ASSERT_TRUE(imbalance.has_value());
    EXPECT_GE(*imbalance, 1);
    seen.emplace_back(*imbalance, time);
  }
  llvm::sort(seen);
  EXPECT_GT(seen.back().first, 1.05 * seen.front().first);
  for (size_t i = 1; i < seen.size(); ++i)
    EXPECT_LE(seen[i - 1].second, seen[i].second * (1 + 1e-9))
        << seen[i - 1].first << " and " << seen[i].first;
}

} // namespace
