//===- CostTest.cpp - What estimates have to tell apart -------------------===//

#include "../../../lib/Planner/Facts/TileBalance.h"
#include "attn/Planner/Models/PlanModels.h"
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
    return parse(llvm::formatv(
        "!t = memref<1x{0}x{1}x128xf16>\nfunc.func @f(%q: !t, %o: !t) {{\n"
        "attn.attention ins(%q, %q, %q : !t, !t, !t) outs(%o : !t) "
        "{{mask = #attn.mask<kind = {2}>}\nreturn\n}",
        heads, length, mask));
  }

  /// The facts of one of 8-bit operands whose keys are contiguous in V.
  ProblemFacts getNarrowFacts(int64_t headDim) {
    return parse(llvm::formatv(
        "!t = memref<1x8x512x{0}xf8E4M3FN>\n!v = memref<1x8x512x{0}xf8E4M3FN, "
        "strided<[{1}, {2}, 1, 512]>>\n!o = memref<1x8x512x{0}xf16>\n"
        "func.func @f(%q: !t, %v: !v, %o: !o) {{\n"
        "attn.attention ins(%q, %q, %v : !t, !t, !v) outs(%o : !o)\nreturn\n}",
        headDim, 8 * 512 * headDim, 512 * headDim));
  }

  ProblemFacts parse(const std::string &text) {
    module = parseSourceString<ModuleOp>(text, &context);
    AttentionOp op;
    module->walk([&](AttentionOp found) { op = found; });
    FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
    EXPECT_TRUE(succeeded(facts));
    return *facts;
  }

  /// The default plan of a schedule with parameters replaced.
  PlanAttrInterface getPlan(const Schedule &schedule, const ProblemFacts &facts,
                            ArrayRef<PlanParameter> parameters) {
    auto plan =
        schedule.setParameters([&] { return facts.op->emitError(); },
                               schedule.getDefaultPlan(&context), parameters);
    EXPECT_TRUE(succeeded(plan));
    return *plan;
  }

  /// Microseconds of a plan of ws_wgmma with parameters replaced.
  double estimate(const ProblemFacts &facts,
                  ArrayRef<PlanParameter> parameters) {
    const Schedule &schedule = getWsWgmmaSchedule();
    return getPlanModel(schedule)
        .estimate(facts, getPlan(schedule, facts, parameters), target)
        .microseconds;
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
      // The start of the launch is in all of them.
      EXPECT_GT(uneven, 1.25 * whole) << what;
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

// Whole turns of all CTAs give each of them as much, however many there are.
TEST_F(CostTest, WholeTurnsAreEven) {
  constexpr int64_t ctas = 132, heads = 35;
  auto getMost = [&](int64_t count) {
    ProblemFacts facts = getFacts(count, /*length=*/1024, "causal");
    return count * *getImbalance(facts, /*blockM=*/128, /*blockN=*/128,
                                 /*groupHeads=*/0, ctas);
  };
  double few = getMost(heads);
  EXPECT_GT(few, heads);
  for (int64_t turns : {1, 2, 1000000})
    EXPECT_NEAR(getMost(heads + turns * 2 * ctas) - turns * 2 * ctas, few,
                1e-12 * turns * 2 * ctas + 1e-9);
}

// Groups that end where they began are dealt together: one by one, 2^40 heads
// would have no end.
TEST_F(CostTest, GroupsThatRepeatAreDealtTogether) {
  constexpr int64_t ctas = 132, groupHeads = 22;
  auto get = [&](int64_t heads) {
    ProblemFacts facts = getFacts(/*heads=*/1, /*length=*/1024, "causal");
    facts.heads = facts.kvHeads = heads;
    return *getImbalance(facts, /*blockM=*/128, /*blockN=*/128, groupHeads,
                         ctas);
  };
  EXPECT_NEAR(get(2 * ctas), get(2 * ctas << 32), 1e-9);
}

// A second tile of one row needs one block more than the first, which is uneven
// for two CTAs: the key of that row counts.
TEST_F(CostTest, ATileNeedsTheKeyOfItsLastRow) {
  auto get = [&](int64_t length) {
    return *getImbalance(getFacts(/*heads=*/1, length, "causal"),
                         /*blockM=*/128, /*blockN=*/128, /*groupHeads=*/0,
                         /*ctas=*/2);
  };
  // A tile takes as long as it has blocks, and the same time beside them.
  double first = get(256), second = get(129);
  EXPECT_GT(second, 1);
  EXPECT_EQ(first, second);
}

// A tile takes as many blocks as a mask leaves, those that it cuts included,
// and the same time beside them: that is known from tiles of one and two
// blocks.
TEST_F(CostTest, BlocksThatAMaskCutsAreWork) {
  ProblemFacts facts = getFacts(/*heads=*/1, /*length=*/256, "causal");
  auto get = [&](int64_t ctas) {
    return *getImbalance(facts, /*blockM=*/128, /*blockN=*/128,
                         /*groupHeads=*/0, ctas);
  };
  double two = get(/*ctas=*/2), beside = (4 - 3 * two) / (2 * two - 2);
  // The third tile has two blocks, and none of them is cut.
  facts.queries = 384;
  EXPECT_NEAR(get(/*ctas=*/3), 3 * (2 + beside) / (5 + 3 * beside), 1e-9);
}

// The products of two parts of a block are live together, one at a time else.
TEST_F(CostTest, ScoresOfTwoPartsTakeRegisters) {
  const Schedule &schedule = getSplitQSchedule();
  ProblemFacts facts = getFacts(/*heads=*/1, /*length=*/512, "none");
  auto countScores = [&](const char *parts) {
    auto plan = getPlan(schedule, facts,
                        {{"block_m", "64"},
                         {"block_n", "128"},
                         {"warps", "4"},
                         {"parts", parts}});
    ResourceSum sum =
        getPlanModel(schedule).estimate(facts, plan, target).registers;
    std::string text = sum.str();
    StringRef rest = StringRef(text).split(" s ").second;
    return rest.split(" + ").first.str();
  };
  // 16 rows of a warp: half a register for each key.
  EXPECT_EQ(countScores("1"), "64");
  EXPECT_EQ(countScores("2"), "64");
  EXPECT_EQ(countScores("4"), "32");
}

// What ptxas was seen to keep of 8-bit operands with PV one block behind.
TEST_F(CostTest, NarrowBlocksThatSpill) {
  auto spills = [&](int64_t headDim, const char *blockN) {
    const Schedule &schedule = getWsWgmmaSchedule();
    ProblemFacts facts = getNarrowFacts(headDim);
    auto plan = getPlan(schedule, facts,
                        {{"block_m", "128"},
                         {"block_n", blockN},
                         {"softmax", "optimistic"},
                         {"qk_ahead", "true"},
                         {"pv_behind", "true"}});
    return getPlanModel(schedule).isExpectedToSpill(facts, plan, target);
  };
  EXPECT_FALSE(spills(128, "128"));
  EXPECT_FALSE(spills(64, "128"));
  EXPECT_TRUE(spills(64, "160"));
}

// A pair divides keys and values. CTAs that divide the columns of results load
// all keys each, and of latent heads their values besides.
TEST_F(CostTest, CopiesAreThoseOfACTA) {
  ProblemFacts facts = parse(
      "!q = memref<64x128x1x576xbf16>\n!k = memref<64x1x8192x576xbf16>\n"
      "!v = memref<64x1x8192x512xbf16, strided<[4718592, 4718592, 576, 1]>>\n"
      "!o = memref<64x128x1x512xbf16>\nfunc.func @f(%q: !q, %k: !k, %o: !o) {\n"
      "%v = memref.subview %k[0, 0, 0, 0] [64, 1, 8192, 512] [1, 1, 1, 1] : "
      "!k to !v\nattn.attention ins(%q, %k, %v : !q, !k, !v) outs(%o : !o) "
      "{rope_dim = 64}\nreturn\n}");
  const Schedule &schedule = getWsTmemSchedule();
  auto time = [&](StringRef blockN, StringRef pair, StringRef valueCTAs) {
    PlanAttrInterface plan = getPlan(schedule, facts,
                                     {{"tiles", "1"},
                                      {"block_n", blockN},
                                      {"kv_stages", "2"},
                                      {"p_parts", "false"},
                                      {"pack_heads", "true"},
                                      {"epilogue", "direct"},
                                      {"pair", pair},
                                      {"value_ctas", valueCTAs}});
    return getPlanModel(schedule)
        .estimate(facts, plan, llvm::cantFail(lookupTarget("sm_100a")))
        .loneTileMicroseconds;
  };
  // Slots are as long, so that the time is that of the bytes.
  EXPECT_NEAR(time("128", "false", "2") / time("256", "true", "1"),
              (576 + 256) / (576 / 2.0 + 256), 1e-3);
}

} // namespace
