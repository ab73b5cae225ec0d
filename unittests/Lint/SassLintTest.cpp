//===- SassLintTest.cpp - tests of the checks of machine code -------------===//
#include "attn/Lint/SassLint.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::ElementsAre;
using testing::HasSubstr;

static CodeInstruction makeInstruction(const char *opcode) {
  CodeInstruction inst;
  inst.opcode = opcode;
  return inst;
}

TEST(SassLint, SortsInstructionsByPurpose) {
  auto purpose = [](const char *opcode) {
    return getSassPurpose(makeInstruction(opcode));
  };
  EXPECT_EQ(purpose("HGMMA.64x128x16.F32"), "tensor");
  EXPECT_EQ(purpose("MUFU.EX2"), "mufu");
  EXPECT_EQ(purpose("FMNMX"), "fp32");
  EXPECT_EQ(purpose("F2FP.F16.F32.PACK_AB"), "convert");
  EXPECT_EQ(purpose("IMAD.WIDE.U32"), "integer");
  EXPECT_EQ(purpose("IMAD.MOV.U32"), "move");
  EXPECT_EQ(purpose("LDSM.16.M88.4"), "shared");
  EXPECT_EQ(purpose("UTMALDG.4D"), "global");
  EXPECT_EQ(purpose("LDL.LU"), "local");
  EXPECT_EQ(purpose("SHFL.BFLY"), "exchange");
  EXPECT_EQ(purpose("ULDC.64"), "constant");
  EXPECT_EQ(purpose("UIADD3"), "uniform");
  EXPECT_EQ(purpose("WARPGROUP.DEPBAR.LE"), "sync");
  EXPECT_EQ(purpose("BSSY"), "control");
  EXPECT_EQ(purpose("TWICE"), "other");
}

// Two loops, of which the second does less beside its products. Each has a
// rare path, that of the second stands behind the kernel's end.
static const char *const listing = R"(
.text.k:
.L_x_0:
        /*0000*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0010*/                   FADD R1, R1, R1 ;
        /*0018*/                   FADD R1, R1, R1 ;
        /*0020*/                   WARPGROUP.DEPBAR.LE gsb0, 0x0 ;
        /*0030*/                   VOTE.ANY P0, P0 ;
        /*0040*/              @!P0 BRA `(.L_x_1) ;
        /*0050*/                   FADD R1, R1, R1 ;
.L_x_1:
        /*0060*/              @!P1 BRA `(.L_x_0) ;
.L_x_2:
        /*0070*/                   HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0 ;
        /*0080*/                   MUFU.EX2 R4, R5 ;
        /*0090*/                   WARPGROUP.DEPBAR.LE gsb0, 0x1 ;
        /*00a0*/                   VOTEU.ANY UP0, P0 ;
        /*00b0*/                   BRA.U UP0, `(.L_x_4) ;
.L_x_3:
        /*00c0*/              @!P1 BRA `(.L_x_2) ;
        /*00d0*/                   EXIT ;
.L_x_4:
        /*00e0*/                   FADD R1, R1, R1 ;
        /*00f0*/                   FADD R1, R1, R1 ;
        /*0100*/                   BRA `(.L_x_3) ;
)";

static HotLoop getLoop(llvm::StringRef text) {
  auto code = parseSassListing(text);
  EXPECT_TRUE(bool(code));
  auto loop = findHotLoop(*code, /*isPTX=*/false);
  EXPECT_TRUE(loop.has_value());
  return *loop;
}

TEST(SassLint, FindsTheHotLoop) {
  HotLoop loop = getLoop(listing);
  EXPECT_EQ(loop.begin, 0x70u);
  EXPECT_EQ(loop.end, 0xc0u);
  EXPECT_EQ(loop.instructions, 6u);
  EXPECT_EQ(loop.tensor, 1u);
  EXPECT_EQ(loop.exponentials, 1u);
  EXPECT_EQ(loop.purposes["exchange"], 1u);
  EXPECT_EQ(loop.rareInside, 0u);
  EXPECT_EQ(loop.rareOutside, 3u);
  EXPECT_THAT(loop.waits, ElementsAre(CodeWait{"wgmma", 1, 0}));
  EXPECT_EQ(loop.waits[0].exponentials, 1u);
}

// One thread starts products; of the others' loops the first one applies masks.
static const char *const parted = R"(
.text.k:
.L_x_0:
        /*0000*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;
        /*0010*/              @!P1 BRA `(.L_x_0) ;
.L_x_1:
        /*0020*/                   MUFU.EX2 R4, R5 ;
        /*0030*/                   FSEL R4, R4, R5, P0 ;
        /*0040*/              @!P1 BRA `(.L_x_1) ;
.L_x_2:
        /*0050*/                   MUFU.EX2 R4, R5 ;
        /*0060*/              @!P1 BRA `(.L_x_2) ;
        /*0070*/                   EXIT ;
)";

TEST(SassLint, FindsTheSoftmaxLoopOfOtherWarps) {
  auto code = parseSassListing(parted);
  ASSERT_TRUE(bool(code));
  auto softmax = findSoftmax(*code, /*isPTX=*/false);
  ASSERT_TRUE(softmax.has_value());
  EXPECT_EQ(softmax->loop.begin, 0x50u);
  EXPECT_EQ(softmax->loop.instructions, 2u);
  EXPECT_EQ(softmax->loop.exponentials, 1u);
  // There is none where the hot loop has the exponentials itself.
  auto whole = parseSassListing(listing);
  ASSERT_TRUE(bool(whole));
  EXPECT_FALSE(findSoftmax(*whole, /*isPTX=*/false).has_value());

  SassInput input;
  input.listing = parted;
  input.budget.emplace();
  input.budget->loop = getLoop(parted);
  input.budget->softmaxLoop = softmax->loop;
  auto fits = lintSass(input);
  ASSERT_TRUE(bool(fits));
  EXPECT_FALSE(fits->hasErrors());
  std::string text;
  llvm::raw_string_ostream os(text);
  fits->print(os);
  EXPECT_THAT(text, HasSubstr("softmax loop:  0x50 to 0x60, 2 instructions"));
  EXPECT_TRUE(fits->toJSON().getAsObject()->getObject("softmax_loop"));
  --input.budget->softmaxLoop->instructions;
  auto exceeds = lintSass(input);
  ASSERT_TRUE(bool(exceeds));
  ASSERT_EQ(exceeds->findings.size(), 1u);
  EXPECT_EQ(exceeds->findings[0].text,
            "expected at most 1 instructions in the softmax loop, got 2");
}

// A loop of masked blocks that computes most of them on a vote only.
static const char *const chunked = R"(
.text.k:
.L_x_0:
        /*0000*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;
        /*0010*/              @!P1 BRA `(.L_x_0) ;
.L_x_1:
        /*0020*/                   VOTE.ANY P0, P1 ;
        /*0030*/              @!P0 BRA `(.L_x_2) ;
        /*0040*/                   MUFU.EX2 R4, R5 ;
        /*0050*/                   MUFU.EX2 R6, R7 ;
.L_x_2:
        /*0060*/              @!P1 BRA `(.L_x_1) ;
.L_x_3:
        /*0070*/                   MUFU.EX2 R4, R5 ;
        /*0080*/              @!P1 BRA `(.L_x_3) ;
        /*0090*/                   EXIT ;
)";

TEST(SassLint, TakesTheLoopWithMostExponentialsOnTheUsualPath) {
  auto code = parseSassListing(chunked);
  ASSERT_TRUE(bool(code));
  auto softmax = findSoftmax(*code, /*isPTX=*/false);
  ASSERT_TRUE(softmax.has_value());
  EXPECT_EQ(softmax->loop.begin, 0x70u);
  EXPECT_EQ(softmax->loop.exponentials, 1u);
}

// Tiles: two loops with exponentials, then results behind a loop that waits.
static const char *const tiles = R"(
.text.k:
.L_x_0:
        /*0000*/                   UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8] ;
        /*0010*/              @!P1 BRA `(.L_x_0) ;
.L_x_4:
        /*0018*/                   MOV R7, RZ ;
.L_x_1:
        /*0020*/                   MUFU.EX2 R4, R5 ;
        /*0030*/              @!P1 BRA `(.L_x_1) ;
        /*0040*/                   MOV R6, RZ ;
.L_x_2:
        /*0050*/                   MUFU.EX2 R4, R5 ;
        /*0060*/                   FSEL R4, R4, R5, P0 ;
        /*0070*/              @!P1 BRA `(.L_x_2) ;
        /*0080*/                   MUFU.RCP R4, R5 ;
.L_x_3:
        /*0090*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR4], R3 ;
        /*00a0*/              @!P2 BRA `(.L_x_3) ;
        /*00a8*/                   R2UR UR5, R4 ;
        /*00b0*/                   STS [R0], R4 ;
        /*00c0*/                   STG [R2], R4 ;
        /*00d0*/              @!P3 BRA `(.L_x_4) ;
        /*00e0*/                   EXIT ;
)";

TEST(SassLint, FindsWhatFollowsTheSoftmax) {
  auto code = parseSassListing(tiles);
  ASSERT_TRUE(bool(code));
  auto softmax = findSoftmax(*code, /*isPTX=*/false);
  ASSERT_TRUE(softmax.has_value());
  EXPECT_EQ(softmax->loop.begin, 0x20u);
  HotLoop &epilogue = softmax->epilogue;
  EXPECT_EQ(epilogue.begin, 0x80u);
  EXPECT_EQ(epilogue.end, 0xd0u);
  EXPECT_EQ(epilogue.instructions, 7u);
  EXPECT_EQ(epilogue.moves["R2UR"], 1u);
  EXPECT_EQ(epilogue.purposes["shared"], 1u);
  EXPECT_EQ(epilogue.purposes["global"], 1u);
  EXPECT_EQ(epilogue.exponentials, 0u);

  SassInput input;
  input.listing = tiles;
  input.budget.emplace();
  input.budget->loop = *findHotLoop(*code, /*isPTX=*/false);
  input.budget->epilogue = epilogue;
  auto report = lintSass(input);
  ASSERT_TRUE(bool(report));
  EXPECT_FALSE(report->hasErrors());
  input.budget->epilogue->purposes["global"] = 0;
  report = lintSass(input);
  ASSERT_TRUE(bool(report));
  ASSERT_EQ(report->findings.size(), 1u);
  EXPECT_EQ(
      report->findings[0].text,
      "expected at most 0 instructions for global in the epilogue, got 1");
}

TEST(SassLint, FindsRarePathsInsideOfLoops) {
  // Only the first loop is left.
  HotLoop loop = getLoop(llvm::StringRef(listing).split(".L_x_2:").first);
  EXPECT_EQ(loop.instructions, 7u);
  EXPECT_EQ(loop.rareInside, 1u);
  EXPECT_EQ(loop.rareOutside, 0u);
}

// The loop of `listing` as LLVM prints it: it begins in its middle, and the
// vote is negated before the branch.
static const char *const ptx = R"(
.entry k() {
  bra.uni $L__BB0_3;
$L__BB0_2:
  @%p1 bra $L__BB0_5;
$L__BB0_3:
  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%r1}, %rd1, %rd2, 1, 1;
  ex2.approx.ftz.f32 %r2, %r3;
  ex2.approx.ftz.f32 %r2, %r3;
  wgmma.wait_group.sync.aligned 1;
  vote.sync.any.pred %p2, %p3, -1;
  not.pred %p4, %p2;
  @%p4 bra $L__BB0_2;
  add.f32 %r1, %r1, %r1;
  bra.uni $L__BB0_2;
$L__BB0_5:
  ret;
}
)";

static SassReport lint(const SassInput &input) {
  auto report = lintSass(input);
  EXPECT_TRUE(bool(report)) << llvm::toString(report.takeError());
  return std::move(*report);
}

TEST(SassLint, FindsVotesAtBarriers) {
  auto replaced = [](std::string text, llvm::StringRef from,
                     llvm::StringRef to) {
    return text.replace(text.find(from), from.size(), to);
  };
  // The barrier's result goes to a predicate afterwards.
  std::string machine =
      replaced(llvm::StringRef(listing).split(".L_x_2:").first.str(),
               "VOTE.ANY P0, P0", "B2R.RESULT RZ, P0");
  EXPECT_EQ(getLoop(machine).rareInside, 1u);
  SassInput input;
  input.listing = listing;
  input.ptx = replaced(ptx, "vote.sync.any.pred %p2, %p3, -1;",
                       "barrier.red.or.pred %p2, %r9, 128, %p3;");
  EXPECT_EQ(lint(input).ptxLoop->rareInside, 2u);
}

TEST(SassLint, ComparesWaitsWithThePTX) {
  SassInput input;
  input.ptx = ptx;
  input.listing = listing;
  SassReport report = lint(input);
  ASSERT_TRUE(report.ptxLoop.has_value());
  EXPECT_EQ(report.ptxLoop->rareInside, 2u);
  EXPECT_FALSE(report.hasErrors());
  ASSERT_EQ(report.findings.size(), 1u);
  EXPECT_EQ(report.findings[0].text,
            "wait 1 of the hot loop (wgmma 1) stands behind 1 exponentials, in "
            "the PTX behind 2");
  // The wait waits for more than it was told to.
  std::string strict = listing;
  strict.replace(strict.find("gsb0, 0x1"), 9, "gsb0, 0x0");
  input.listing = strict;
  report = lint(input);
  EXPECT_TRUE(report.hasErrors());
  EXPECT_EQ(report.findings[0].text,
            "expected the waits of the PTX in the hot loop, wgmma 1, got wgmma "
            "0");
}

TEST(SassLint, CountsLocalMemoryToTheBudget) {
  SassInput input;
  input.listing = listing;
  for (int i = 0; i < 2; ++i) {
    size_t at = input.listing->find("FADD R1, R1, R1 ;");
    input.listing->replace(at, 17, "LDL R1, [R2] ;");
  }
  auto findLocal = [&](unsigned most) {
    input.budget = SassBudget();
    input.budget->local = most;
    return llvm::any_of(lint(input).findings, [](const SassFinding &finding) {
      return llvm::StringRef(finding.text).contains("on local memory, got 2");
    });
  };
  EXPECT_EQ(lint(input).localLoads, 2u);
  EXPECT_TRUE(findLocal(1));
  EXPECT_FALSE(findLocal(2));
}

TEST(SassLint, ReportsTheLogOfItsKernel) {
  SassInput input;
  input.listing = listing;
  input.log.emplace();
  AssemblerMessage message;
  message.severity = AssemblerMessage::Severity::Performance;
  message.code = "C7510";
  message.text = "serialised";
  message.function = "other";
  input.log->messages = {message};
  EXPECT_FALSE(lint(input).hasErrors());
  input.log->messages[0].function = "k";
  SassReport report = lint(input);
  ASSERT_TRUE(report.hasErrors());
  EXPECT_EQ(report.findings[0].text, "ptxas C7510: serialised");
}

TEST(SassLint, ReadsBudgets) {
  auto getError = [](llvm::StringRef json) {
    return llvm::toString(readBudget(json, "k").takeError());
  };
  EXPECT_THAT(getError("nonsense"), HasSubstr("Invalid JSON"));
  EXPECT_EQ(getError("[]"),
            "expected a budget \"k\" under \"kernels\", got none");
  std::string start = "{\"kernels\": {\"k\": {\"registers\": 1, "
                      "\"spill_bytes\": 0, \"local\": 0, \"hot_loop\": "
                      "{\"instructions\": 9, \"tensor\": 2, \"exponentials\": "
                      "3, \"rare_inside\": 4, \"rare_outside\": 5, "
                      "\"purposes\": {\"mufu\": 3}";
  EXPECT_EQ(getError(start + "}}}}"),
            "budget \"k\": expected an array 'waits'");
  EXPECT_EQ(getError(start + ", \"waits\": [1]}}}}"),
            "budget \"k\": expected objects with a string \"work\" in 'waits'");
  auto budget = readBudget(start + ", \"waits\": [{\"work\": \"wgmma\", "
                                   "\"pending\": 1, \"exponentials\": 7}]}}}}",
                           "k");
  ASSERT_TRUE(bool(budget)) << llvm::toString(budget.takeError());
  EXPECT_EQ(budget->loop.purposes["mufu"], 3u);
  EXPECT_EQ(budget->loop.rareOutside, 5u);
  ASSERT_EQ(budget->loop.waits.size(), 1u);
  EXPECT_EQ(budget->loop.waits[0].exponentials, 7u);
}
