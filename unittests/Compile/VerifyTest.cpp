//===- VerifyTest.cpp - What the harness is given -------------------------===//

#include "attn/Compile/Verify.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace mlir::attn;

namespace {

class ModificationsTest : public ::testing::Test {
protected:
  ModificationsTest() {
    context
        .loadDialect<AttnDialect, func::FuncDialect, memref::MemRefDialect>();
  }

  /// An attention whose score_mod has this body and yields %r.
  std::string attention(StringRef body) {
    return llvm::formatv(
        "attn.attention ins(%q, %q, %q : !q, !q, !q) outs(%q : !q) score_mod "
        "{{\n^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):\n{0}\n"
        "attn.yield %r : f32\n} mask_mod {{\n"
        "^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):\n"
        "%keep = arith.cmpi sle, %j, %i : i32\nattn.yield %keep : i1\n}",
        body);
  }

  llvm::Expected<Modifications> get(StringRef body) {
    std::string text =
        ("!q = memref<1x2x8x64xf16>\nfunc.func @f(%q: !q, %slopes: "
         "memref<2xf32>, %open: memref<?xf32>, %factor: f32) {\n" +
         body + "\nreturn\n}")
            .str();
    module = parseSourceString<ModuleOp>(text, &context);
    if (!module)
      return llvm::createStringError("the test does not parse");
    return Modifications::get(*module);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(ModificationsTest, KernelAndReferenceGetTheSameNumbers) {
  llvm::Expected<Modifications> modifications =
      get(attention("%head = arith.index_cast %h : i32 to index\n"
                    "%slope = memref.load %slopes[%head] : memref<2xf32>\n"
                    "%r = arith.addf %s, %slope : f32"));
  ASSERT_TRUE(static_cast<bool>(modifications))
      << llvm::toString(modifications.takeError());
  // The op goes away before the kernel runs.
  module = nullptr;
  sim::HarnessOptions options;
  modifications->apply(options);
  const sim::NpyArray &slopes = options.inputs["capture0"];
  ASSERT_EQ(slopes.shape[0], 2);
  EXPECT_EQ(options.scoreMod(1.0, 0, 1, 3, 3),
            1.0 + decodeElement(DType::F32, slopes.data.data() + 4));
  EXPECT_TRUE(options.maskMod(1.0, 0, 1, 3, 3));
  EXPECT_FALSE(options.maskMod(1.0, 0, 1, 3, 4));
}

TEST_F(ModificationsTest, FilesAndScalars) {
  llvm::Expected<Modifications> modifications =
      get(attention("%head = arith.index_cast %h : i32 to index\n"
                    "%slope = memref.load %slopes[%head] : memref<2xf32>\n"
                    "%scaled = arith.mulf %slope, %factor : f32\n"
                    "%r = arith.addf %s, %scaled : f32"));
  ASSERT_TRUE(static_cast<bool>(modifications))
      << llvm::toString(modifications.takeError());
  sim::HarnessOptions options;
  sim::NpyArray slopes;
  slopes.shape = {2};
  slopes.data.resize(8);
  encodeElement(DType::F32, 3.0, slopes.data.data());
  options.inputs["capture0"] = slopes;
  modifications->apply(options);
  EXPECT_EQ(options.scoreMod(1.0, 0, 0, 3, 3),
            1.0 + 3.0 * options.scalars["scalar0"]);
}

TEST_F(ModificationsTest, OutOfBoundsIsUndefined) {
  llvm::Expected<Modifications> modifications =
      get(attention("%key = arith.index_cast %j : i32 to index\n"
                    "%slope = memref.load %slopes[%key] : memref<2xf32>\n"
                    "%r = arith.addf %s, %slope : f32"));
  ASSERT_TRUE(static_cast<bool>(modifications));
  sim::HarnessOptions options;
  modifications->apply(options);
  // The load says "a region reads index 5 of a dimension of 2 elements"; the
  // score it belongs to has no value.
  EXPECT_TRUE(std::isnan(options.scoreMod(1.0, 0, 0, 5, 5)));
  EXPECT_TRUE(std::isnan(options.scoreMod(1.0, 0, 0, 5, 2)));
  EXPECT_FALSE(std::isnan(options.scoreMod(1.0, 0, 0, 5, 1)));
}

TEST_F(ModificationsTest, NoRegions) {
  llvm::Expected<Modifications> modifications = get("");
  ASSERT_TRUE(static_cast<bool>(modifications));
  sim::HarnessOptions options;
  modifications->apply(options);
  EXPECT_FALSE(options.scoreMod);
  EXPECT_FALSE(options.maskMod);
}

TEST_F(ModificationsTest, Errors) {
  EXPECT_EQ(
      llvm::toString(get(attention("%zero = arith.constant 0 : index\n"
                                   "%x = memref.load %open[%zero] : "
                                   "memref<?xf32>\n"
                                   "%r = arith.addf %s, %x : f32"))
                         .takeError()),
      "expected regions that read only scalars and memrefs of static shape, "
      "got 'memref<?xf32>'");
  std::string simple = attention("%r = arith.addf %s, %s : f32");
  EXPECT_EQ(llvm::toString(get(simple + "\n" + simple).takeError()),
            "expected one 'attn.attention' to verify, got 2");
}

TEST(ApplyProblem, LengthsAndSizes) {
  Problem problem;
  problem.lengthsQ = {17, 64};
  problem.lengthsK = {3, 0};
  problem.dynamic = true;
  problem.sequenceMajor = true;
  problem.heads = 8;
  problem.queries = 81;
  problem.headDim = 64;
  sim::HarnessOptions options;
  applyProblem(problem, options);
  const sim::NpyArray &lengths = options.inputs["cu_seqlens_q"];
  ASSERT_EQ(lengths.shape[0], 3);
  EXPECT_EQ(decodeElement(DType::I32, lengths.data.data() + 8), 81);
  EXPECT_EQ(options.sizes["q.dim2"], 81);
  EXPECT_EQ(options.sizes["q.stride2"], 512);
}

} // namespace
