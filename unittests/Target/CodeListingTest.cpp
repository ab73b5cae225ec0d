//===- CodeListingTest.cpp - tests of listings and their loops ------------===//
#include "attn/Target/CodeListing.h"

#include "attn/Target/CodeFlow.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using Flow = CodeInstruction::Flow;

// A loop whose body waits in a place apart, an end on a condition, and ptxas's
// ways to leave loops and to branch by uniform predicates.
static const char *const sass = R"(
//--------------------- .text.other --------------------------
.text.other:
        /*0000*/                   EXIT ;
//--------------------- .text.k      --------------------------
        .section        .text.k,"ax",@progbits
k:
.text.k:
        //## File "kernel.ptx", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 EXIT ;
.L_x_0:
        /*0020*/                   LDS R2, [R3] ;
        /*0030*/              @!P1 BRA `(.L_x_3) ;
.L_x_1:
        /*0040*/                   FADD R4, R4, R2 ;
        /*0050*/                   BRA.U UP0, `(.L_x_0) ;
        /*0060*/               @P2 CALL.REL.NOINC `(.L_x_2) ;
        /*0070*/                   BRA `(.L_x_0) ;
.L_x_2:
        /*0080*/                   CALL.REL.NOINC `($slow) ;
        /*0090*/                   EXIT ;
.L_x_3:
        /*00a0*/                   SYNCS.PHASECHK.TRANS64.TRYWAIT P1, [UR4], R0 ;
        /*00b0*/              @!P1 BRA `(.L_x_3) ;
        /*00c0*/                   BRA `(.L_x_1) ;
)";

TEST(CodeListing, ReadsMachineCode) {
  auto listing = parseSassListing(sass, "k");
  ASSERT_TRUE(bool(listing)) << llvm::toString(listing.takeError());
  EXPECT_EQ(listing->kernel, "k");
  ASSERT_EQ(listing->instructions.size(), 13u);
  EXPECT_EQ(listing->labels[".L_x_1"], 4u);
  const CodeInstruction &load = listing->instructions[0];
  EXPECT_EQ(load.opcode, "LDC");
  EXPECT_EQ(load.operands, "R1, c[0x0][0x28]");
  EXPECT_EQ(load.line, 3u);
  const CodeInstruction &end = listing->instructions[1];
  EXPECT_EQ(end.guard, "!P0");
  EXPECT_EQ(end.flow, Flow::End);
  EXPECT_TRUE(end.conditional);
  EXPECT_EQ(end.place, 0x10u);
  const CodeInstruction &uniform = listing->instructions[5];
  EXPECT_EQ(uniform.guard, "UP0");
  EXPECT_EQ(uniform.target, ".L_x_0");
  EXPECT_TRUE(uniform.conditional);
  EXPECT_EQ(listing->instructions[6].flow, Flow::Branch);
  EXPECT_FALSE(listing->instructions[7].conditional);
  // A function returns.
  EXPECT_EQ(listing->instructions[8].flow, Flow::Next);
  EXPECT_EQ(parseSassListing(sass)->kernel, "other");
}

TEST(CodeListing, ReadsPTX) {
  const char *ptx =
      ".version 8.0\n.target sm_80\n.visible .entry k(\n\t.param "
      ".u64 k_param_0\n)\n{\n\t.reg .pred %p<2>;\n\t.loc 1 2 3\n"
      "$L__BB0_1: // a loop\n\t{ .reg .b32 %t; mov.b32 %t, 1; }\n"
      "\tmma.sync.aligned\n\t  {%r1, %r2},\n\t  {%r3};\n"
      "\t@!%p1 bra \t$L__BB0_1;\n\tret;\n}\n.entry l() {\nret;\n}";
  auto listing = parsePTXListing(ptx);
  ASSERT_TRUE(bool(listing)) << llvm::toString(listing.takeError());
  EXPECT_EQ(listing->kernel, "k");
  ASSERT_EQ(listing->instructions.size(), 4u);
  EXPECT_EQ(listing->labels["$L__BB0_1"], 0u);
  EXPECT_EQ(listing->instructions[0].opcode, "mov.b32");
  EXPECT_EQ(listing->instructions[1].opcode, "mma.sync.aligned");
  EXPECT_EQ(listing->instructions[1].place, 11u);
  EXPECT_EQ(listing->instructions[2].guard, "!%p1");
  EXPECT_EQ(listing->instructions[2].target, "$L__BB0_1");
  EXPECT_EQ(listing->instructions[3].flow, Flow::End);
  EXPECT_EQ(parsePTXListing(ptx, "l")->instructions.size(), 1u);
}

TEST(CodeFlow, FindsLoops) {
  auto listing = parseSassListing(sass, "k");
  ASSERT_TRUE(bool(listing)) << llvm::toString(listing.takeError());
  CodeFlow flow(*listing);
  ASSERT_EQ(flow.getLoops().size(), 2u);
  // The outer loop from .L_x_0 to the branch in front of .L_x_2, with the code
  // apart; its entry dominates all of it.
  const CodeLoop &outer = flow.getLoops()[0], &inner = flow.getLoops()[1];
  EXPECT_EQ(flow.getBlocks()[outer.header].begin, 2u);
  EXPECT_EQ(flow.getBlocks()[outer.latch].end, 8u);
  EXPECT_TRUE(outer.blocks.test(inner.header));
  EXPECT_EQ(flow.getBlocks()[inner.header].begin, 10u);
  EXPECT_EQ(inner.blocks.count(), 1u);
  EXPECT_TRUE(flow.dominates(outer.header, inner.header));
  EXPECT_FALSE(flow.dominates(inner.header, outer.latch));
}

TEST(CodeFlow, IgnoresWhatIsNotReached) {
  auto listing = parseSassListing(".text.k:\n/*0000*/ EXIT ;\n.L_x_0:\n"
                                  "/*0010*/ BRA `(.L_x_0);\n/*0020*/ NOP;\n");
  ASSERT_TRUE(bool(listing)) << llvm::toString(listing.takeError());
  CodeFlow flow(*listing);
  EXPECT_TRUE(flow.getLoops().empty());
  EXPECT_FALSE(flow.dominates(0, 1));
}
