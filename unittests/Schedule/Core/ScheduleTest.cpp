//===- ScheduleTest.cpp - The registry of schedules -----------------------===//

#include "attn/Planner/Models/PlanModels.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

namespace {

/// split_q under another name.
class Renamed : public Schedule, public PlanModel {
public:
  llvm::StringRef getName() const override { return "renamed"; }
  std::vector<PlanAttrInterface>
  getCandidates(const ProblemFacts &facts,
                const TargetRow &target) const override {
    return model.getCandidates(facts, target);
  }
  llvm::Error isApplicable(const ProblemFacts &facts,
                           const TargetRow &target) const override {
    return base.isApplicable(facts, target);
  }
  PlanAttrInterface getDefaultPlan(mlir::MLIRContext *context) const override {
    return base.getDefaultPlan(context);
  }
  llvm::Error checkPlan(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override {
    return base.checkPlan(facts, plan, target);
  }
  bool isExpectedToSpill(const ProblemFacts &facts, PlanAttrInterface plan,
                         const TargetRow &target) const override {
    return model.isExpectedToSpill(facts, plan, target);
  }
  PlanEstimate estimate(const ProblemFacts &facts, PlanAttrInterface plan,
                        const TargetRow &target) const override {
    return model.estimate(facts, plan, target);
  }
  KernelShape getKernelShape(const ProblemFacts &facts, PlanAttrInterface plan,
                             const TargetRow &target) const override {
    return base.getKernelShape(facts, plan, target);
  }
  mlir::LogicalResult emit(KernelContext &context,
                           PlanAttrInterface plan) const override {
    return base.emit(context, plan);
  }

  const PlanModel *getOwnModel() const override {
    return bringsModel ? this : nullptr;
  }

  bool bringsModel = false;

private:
  const Schedule &base = getSplitQSchedule();
  const PlanModel &model = getPlanModel(base);
};

TEST(ResourceSum, CountsEachPartAsOftenAsItIsThere) {
  ResourceSum sum;
  sum.add("q", 100);
  sum.add("k", 16, 2);
  sum.add("v", 8, 3);
  sum.add("none", 7, 0);
  EXPECT_EQ(sum.getTotal(), 156);
  EXPECT_EQ(sum.str(), "156 (q 100 + k 2 x 16 + v 3 x 8)");
}

TEST(Schedule, RegistersOnceByName) {
  static Renamed renamed;
  size_t before = getSchedules().size();
  llvm::Expected<const Schedule &> unknown = lookupSchedule("renamed");
  ASSERT_FALSE(static_cast<bool>(unknown));
  EXPECT_EQ(llvm::toString(unknown.takeError()),
            "unknown schedule 'renamed', expected one of split_q, ws_wgmma, "
            "self_load, ws_tmem, ws_columns, ws_pair, decode, mla, ws_mla, "
            "tiled_d");

  EXPECT_EQ(llvm::toString(registerSchedule(renamed)),
            "expected a model of the plans of schedule 'renamed', got none: "
            "derive it from ScheduleOf");
  EXPECT_EQ(getSchedules().size(), before);
  renamed.bringsModel = true;
  ASSERT_FALSE(static_cast<bool>(registerSchedule(renamed)));
  EXPECT_EQ(getSchedules().size(), before + 1);
  EXPECT_EQ(getSchedules().back(), &renamed);
  EXPECT_EQ(&getPlanModel(renamed), &renamed);
  EXPECT_EQ(&llvm::cantFail(lookupSchedule("renamed")), &renamed);

  EXPECT_EQ(llvm::toString(registerSchedule(renamed)),
            "schedule 'renamed' is registered already");
  EXPECT_EQ(llvm::toString(registerSchedule(getSplitQSchedule())),
            "schedule 'split_q' is registered already");
  EXPECT_EQ(getSchedules().size(), before + 1);
}

} // namespace
