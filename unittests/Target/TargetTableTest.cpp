//===- TargetTableTest.cpp - Tests of the target table --------------------===//

#include "attn/Target/TargetTable.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir::attn;

namespace {

TEST(TargetTable, UnknownChipListsTheKnownOnes) {
  llvm::Expected<const TargetRow &> row = lookupTarget("sm_999");
  ASSERT_FALSE(bool(row));
  EXPECT_EQ(llvm::toString(row.takeError()),
            "unknown chip 'sm_999', expected one of sm_80, sm_86, sm_89, "
            "sm_90a, sm_100a, sm_100f, sm_103a, sm_110, sm_120, sm_121");
}

TEST(TargetTable, OldChipsLackWhatKernelsNeed) {
  for (llvm::StringRef chip : {"sm_75", "sm_70"}) {
    llvm::Expected<const TargetRow &> row = lookupTarget(chip);
    ASSERT_FALSE(bool(row));
    EXPECT_EQ(llvm::toString(row.takeError()),
              "chip '" + chip.str() +
                  "' lacks cp.async and mma.sync on bf16, which all kernels "
                  "here need, expected one of sm_80, sm_86, sm_89, sm_90a, "
                  "sm_100a, sm_100f, sm_103a, sm_110, sm_120, sm_121");
  }
}

// What is compiled as another chip's kernels has that one's instructions.
TEST(TargetTable, LaterChipsHaveInstructionsOfAda) {
  const TargetRow &ada = llvm::cantFail(lookupTarget("sm_89"));
  for (llvm::StringRef chip : {"sm_110", "sm_120", "sm_121"}) {
    const TargetRow &row = llvm::cantFail(lookupTarget(chip));
    EXPECT_EQ(row.capabilities, ada.capabilities);
    EXPECT_EQ(row.instructionCapability, 89u);
    EXPECT_EQ(row.maxCTAsPerSM, 24u);
    EXPECT_EQ(row.maxWarpsPerSM, 48u);
  }
}

TEST(TargetTable, EveryRowIsFoundByItsName) {
  for (const TargetRow &target : getTargets()) {
    llvm::Expected<const TargetRow &> row = lookupTarget(target.chip);
    ASSERT_TRUE(bool(row));
    EXPECT_EQ(&*row, &target);
  }
}

TEST(TargetTable, RowsAreComplete) {
  for (const TargetRow &target : getTargets()) {
    SCOPED_TRACE(target.chip.str());
    EXPECT_TRUE(target.has(Capability::Base));
    EXPECT_GE(target.computeCapability, 80u);
    EXPECT_LE(target.minPTX, target.defaultPTX);
    EXPECT_LT(target.sharedBytesPerCTA, target.sharedBytesPerSM);
    EXPECT_EQ(target.registersPerSM, 65536u);
    EXPECT_EQ(target.maxThreadsPerSM, 32 * target.maxWarpsPerSM);
    EXPECT_EQ(target.has(Capability::Tcgen05), target.tmemColumns == 512);
    EXPECT_EQ(target.has(Capability::Fp8), target.tensorFlopFp8 > 0);
    EXPECT_EQ(target.has(Capability::Cluster), target.maxClusterSize > 1);
    EXPECT_LE(target.mmaSyncFlopF16, target.tensorFlopF16);
    EXPECT_GT(target.expPerClock, 0u);
    EXPECT_GT(target.fmaPerClock, 0u);
    EXPECT_GT(target.issuePerClock, 0u);
    EXPECT_GT(target.sharedBytesPerClock, 0u);
    EXPECT_GT(target.l2BytesPerClock, 0u);
    EXPECT_GT(target.smCount, 0u);
    EXPECT_GT(target.clockMHz, 0u);
    EXPECT_GT(target.dramGBPerSecond, 0u);
    EXPECT_GT(target.l2Bytes, 0u);
    EXPECT_GT(target.powerWatts, 0u);
    EXPECT_GT(target.picojoulePerFlop, 0.0);
    EXPECT_GT(target.picojoulePerLaneInstruction, 0.0);
    EXPECT_GT(target.picojoulePerL2Byte, 0.0);
    EXPECT_FALSE(bool(checkPTXVersion(target, target.defaultPTX)));
  }
}

TEST(TargetTable, OptInSharedMemory) {
  auto bytes = [](llvm::StringRef chip) {
    return llvm::cantFail(lookupTarget(chip)).sharedBytesPerCTA;
  };
  EXPECT_EQ(bytes("sm_80"), 166912u);
  EXPECT_EQ(bytes("sm_86"), 101376u);
  EXPECT_EQ(bytes("sm_89"), 101376u);
  EXPECT_EQ(bytes("sm_90a"), 232448u);
  EXPECT_EQ(bytes("sm_100a"), 232448u);
  EXPECT_EQ(bytes("sm_110"), 232448u);
  EXPECT_EQ(bytes("sm_120"), 101376u);
  EXPECT_EQ(bytes("sm_121"), 101376u);
}

// The published dense 16-bit peaks follow from the rates.
TEST(TargetTable, TensorPeaks) {
  auto teraFlops = [](llvm::StringRef chip) {
    const TargetRow &row = llvm::cantFail(lookupTarget(chip));
    return 1e-6 * row.tensorFlopF16 * row.smCount * row.clockMHz;
  };
  EXPECT_NEAR(teraFlops("sm_80"), 312, 1);
  EXPECT_NEAR(teraFlops("sm_86"), 149.7, 1);
  EXPECT_NEAR(teraFlops("sm_89"), 362, 5);
  EXPECT_NEAR(teraFlops("sm_90a"), 989, 1);
  EXPECT_NEAR(teraFlops("sm_100a"), 2250, 10);
  EXPECT_NEAR(teraFlops("sm_110"), 259, 1);
  EXPECT_NEAR(teraFlops("sm_120"), 209.5, 1);
}

TEST(TargetTable, FamilyTargetClaimsWhatBothMembersHave) {
  const TargetRow &a = llvm::cantFail(lookupTarget("sm_100a"));
  const TargetRow &b = llvm::cantFail(lookupTarget("sm_103a"));
  const TargetRow &family = llvm::cantFail(lookupTarget("sm_100f"));
  EXPECT_EQ(family.capabilities & ~(a.capabilities & b.capabilities),
            decltype(family.capabilities)());
}

TEST(TargetTable, PTXVersions) {
  const TargetRow &hopper = llvm::cantFail(lookupTarget("sm_90a"));
  EXPECT_EQ(llvm::toString(checkPTXVersion(hopper, 78)),
            "chip 'sm_90a' needs PTX 8.0 or later, got PTX 7.8");
  EXPECT_EQ(llvm::toString(checkPTXVersion(hopper, 79)),
            "unknown PTX version 7.9, expected 7.0 to 7.8, 8.0 to 8.8 or 9.0");
  EXPECT_FALSE(bool(checkPTXVersion(hopper, 80)));
  EXPECT_EQ(TargetRow::getFeatures(88), "+ptx88");
}

TEST(TargetTable, CapabilitiesHaveDistinctNames) {
  std::set<llvm::StringRef> names;
  for (unsigned i = 0; i < numCapabilities; ++i) {
    names.insert(getCapabilityName(static_cast<Capability>(i)));
    EXPECT_FALSE(getCapabilityChips(static_cast<Capability>(i)).empty());
  }
  EXPECT_EQ(names.size(), numCapabilities);
}

// The chips that a capability names in diagnostics are those that have it.
TEST(TargetTable, CapabilityTextAgreesWithTheRows) {
  for (unsigned i = 0; i < numCapabilities; ++i) {
    auto capability = static_cast<Capability>(i);
    llvm::StringRef text = getCapabilityChips(capability);
    SCOPED_TRACE(text.str());
    bool isMinimum = !text.contains(' ') && !text.ends_with("a");
    unsigned least = 0;
    if (isMinimum)
      ASSERT_FALSE(text.drop_front(3).getAsInteger(10, least));
    for (const TargetRow &target : getTargets()) {
      llvm::SmallVector<llvm::StringRef> words;
      text.split(words, ' ');
      bool named = llvm::any_of(words, [&](llvm::StringRef word) {
        return word.trim(',') == target.chip;
      });
      EXPECT_EQ(target.has(capability),
                isMinimum ? target.instructionCapability >= least : named)
          << target.chip.str();
    }
  }
}

TEST(TargetTable, ClusteredSMs) {
  for (const TargetRow &target : getTargets()) {
    EXPECT_EQ(target.getClusteredSMs(1), target.smCount);
    EXPECT_EQ(target.getClusteredSMs(3), 0u);
    for (unsigned size : {2u, 4u}) {
      unsigned sms = target.getClusteredSMs(size);
      EXPECT_LE(sms, target.smCount);
      EXPECT_EQ(sms % size, 0u);
      bool isPair = size == 2 && target.has(Capability::Tcgen05);
      EXPECT_EQ(sms != 0, target.chip == "sm_90a" || isPair)
          << target.chip.str() << " " << size;
    }
  }
}

} // namespace
