//===- SassCountsTest.cpp - tests of counting machine code ----------------===//
#include "attn/Cost/SassCounts.h"

#include "attn/Target/Assembler.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn::sim;

TEST(SassCounts, SortsInstructionsByUnit) {
  EXPECT_EQ(getSassClass("HMMA.16816.F32"), "tensor");
  EXPECT_EQ(getSassClass("HGMMA.64x64x16.F32"), "tensor");
  EXPECT_EQ(getSassClass("MUFU.EX2"), "mufu");
  EXPECT_EQ(getSassClass("FFMA"), "fma");
  EXPECT_EQ(getSassClass("IMAD.WIDE.U32"), "fma");
  EXPECT_EQ(getSassClass("DFMA"), "fp64");
  EXPECT_EQ(getSassClass("LDSM.16.M88.4"), "lsu");
  EXPECT_EQ(getSassClass("SHFL.BFLY"), "lsu");
  EXPECT_EQ(getSassClass("UTMALDG.2D"), "lsu");
  EXPECT_EQ(getSassClass("BAR.SYNC.DEFER_BLOCKING"), "control");
  EXPECT_EQ(getSassClass("S2R"), "control");
  EXPECT_EQ(getSassClass("UIADD3"), "uniform");
  EXPECT_EQ(getSassClass("LOP3.LUT"), "alu");
}

TEST(SassCounts, NumbersLines) {
  EXPECT_EQ(numberLines(".version 8.0\n.address_size 64\n.entry k(\n.param "
                        ".u64 p)\n{\n.reg .b32 %r;\n.local .b8 l[4];\n.loc 3 7 "
                        "1\nmov.u32 %r, "
                        "1;\nL:\nadd.u32 %r,\n %r, 1; // next\nret;\n}\n"
                        ".section .debug_info\n{\n.b8 1\n}\n"),
            ".version 8.0\n.address_size 64\n.file 1 \"kernel.ptx\"\n.entry "
            "k(\n.param .u64 p)\n{\n.reg .b32 %r;\n.local .b8 l[4];\n.loc 1 9 "
            "1\nmov.u32 %r, "
            "1;\nL:\n.loc 1 11 1\nadd.u32 %r,\n %r, 1; // next\n.loc 1 13 "
            "1\nret;\n}\n");
}

// A loop that ptxas has unrolled twice, with code before it and behind it.
TEST(SassCounts, CountsBlocks) {
  const char *listing = R"(
//--------------------- .text.other --------------------------
.text.other:
        /*0000*/                   EXIT ;
//--------------------- .text.k      --------------------------
        .section        .text.k,"ax",@progbits
k:
.text.k:
        //## File "kernel.ptx", line 3
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 BRA `(.L_x_1) ;
.L_x_0:
        //## File "kernel.ptx", line 5
        /*0020*/                   LDS R2, [R3] ;
        //## File "kernel.ptx", line 6
        /*0030*/                   IADD3 R3, R3, R2, RZ ;
        //## File "kernel.ptx", line 5
        /*0040*/                   LDS R2, [R3] ;
        //## File "kernel.ptx", line 6
        /*0050*/                   IADD3 R3, R3, R2, RZ ;
        /*0060*/               @P0 BRA `(.L_x_0) ;
.L_x_1:
        //## File "kernel.ptx", line 9
        /*0070*/                   EXIT ;
.L_x_2:
        /*0080*/                   BRA `(.L_x_2);
        /*0090*/                   NOP;
)";
  std::map<unsigned, uint64_t> lines = {{3, 4}, {5, 80}, {6, 80}, {9, 4}};
  auto counts = countListing(listing, "k", lines);
  ASSERT_TRUE(bool(counts)) << llvm::toString(counts.takeError());
  // 40 rounds of five instructions, and 4 each before and behind.
  EXPECT_EQ(counts->classes["lsu"], 2u * 40 + 4);
  EXPECT_EQ(counts->classes["alu"], 2u * 40);
  EXPECT_EQ(llvm::toString(countListing(listing, "q", lines).takeError()),
            "expected a kernel \"q\" in the listing of nvdisasm, got none");
}

static const char *const kernelText =
    ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n"
    "ret;\n}\n";

TEST(SassCounts, AsksPtxasForRegisters) {
  auto ptxas = mlir::attn::findPtxas();
  if (!ptxas) {
    llvm::consumeError(ptxas.takeError());
    GTEST_SKIP() << "no ptxas";
  }
  auto registers = countRegisters(kernelText, "k", "sm_80");
  ASSERT_TRUE(bool(registers)) << llvm::toString(registers.takeError());
  EXPECT_GT(registers->count, 0u);
  EXPECT_EQ(
      llvm::toString(countRegisters(kernelText, "q", "sm_80").takeError()),
      "expected ptxas to report on kernel \"q\", got no line");
  EXPECT_THAT(
      llvm::toString(countRegisters("nonsense", "q", "sm_80").takeError()),
      ::testing::StartsWith("ptxas: "));
}

TEST(SassCounts, NamesWhereNvdisasmWasSought) {
  if (llvm::sys::fs::exists("/usr/local/cuda/bin/nvdisasm"))
    GTEST_SKIP() << "nvdisasm is installed";
  const char *path = getenv("PATH");
  std::string before = path ? path : "";
  setenv("PATH", "/none", 1);
  setenv("CUDA_HOME", "/none", 1);
  std::string error =
      llvm::toString(countSass(kernelText, "k", "sm_80", {}).takeError());
  setenv("PATH", before.c_str(), 1);
  unsetenv("CUDA_HOME");
  EXPECT_EQ(error, "no nvdisasm in $CUDA_HOME/bin, in /usr/local/cuda/bin or "
                   "on the PATH");
}
