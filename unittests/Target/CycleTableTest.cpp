//===- CycleTableTest.cpp - Tests of the cycle model's numbers ------------===//

#include "attn/Target/CycleTable.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir::attn;

namespace {

TEST(CycleTable, NumbersHaveNamesAndSources) {
  std::set<llvm::StringRef> keys;
  for (unsigned i = 0; i < numCycleNumbers; ++i) {
    auto number = static_cast<CycleNumber>(i);
    EXPECT_FALSE(getCycleTitle(number).empty());
    keys.insert(getCycleKey(number));
    for (const TargetRow &target : getTargets()) {
      SCOPED_TRACE((target.chip + " " + getCycleKey(number)).str());
      const CycleEntry &entry = getCycleTable(target)[number];
      EXPECT_FALSE(entry.source.empty());
      // Only what is believed may be otherwise, and then is another value.
      EXPECT_TRUE(entry.others.empty() || entry.evidence == Evidence::Believed);
      EXPECT_FALSE(llvm::is_contained(entry.others, entry.value));
    }
  }
  EXPECT_EQ(keys.size(), numCycleNumbers);
}

TEST(CycleTable, RatesAreThoseOfTheTargetTable) {
  for (const TargetRow &target : getTargets()) {
    const CycleTable &table = getCycleTable(target);
    EXPECT_EQ(table[CycleNumber::TensorFlop].value, target.tensorFlopF16);
    EXPECT_EQ(table[CycleNumber::ExpLanes].value, target.expPerClock);
    EXPECT_EQ(table[CycleNumber::FmaLanes].value, target.fmaPerClock);
    EXPECT_EQ(table[CycleNumber::L2Bytes].value, target.l2BytesPerClock);
    EXPECT_EQ(table.getNominal()[CycleNumber::SharedBytes],
              target.sharedBytesPerClock);
    // What a unit divides by.
    for (CycleNumber number :
         {CycleNumber::AluLanes, CycleNumber::ImadLanes,
          CycleNumber::DoubleLanes, CycleNumber::IssueLanes,
          CycleNumber::ScheduleWindow, CycleNumber::MmaSyncFlop})
      EXPECT_GT(table[number].value, 0);
  }
}

TEST(CycleTable, OnlyHopperWasMeasured) {
  for (const TargetRow &target : getTargets()) {
    EXPECT_EQ(getModelError(target) != nullptr, target.chip == "sm_90a");
    const CycleTable &table = getCycleTable(target);
    EXPECT_FALSE(table.getUncertain().empty());
    EXPECT_EQ(table.count(Evidence::Measured) +
                  table.count(Evidence::Published) +
                  table.count(Evidence::Believed),
              numCycleNumbers);
    // Nobody here has run a kernel there: what is measured was counted.
    if (target.has(Capability::Tcgen05))
      EXPECT_LE(table.count(Evidence::Measured), 2u);
  }
}

} // namespace
