//===- BlockLoopsTest.cpp - tests of the loops over blocks of keys --------===//
#include "attn/Lint/SassLint.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

/// Writes a listing whose lines are labels, which end in a colon, and code.
std::string write(llvm::ArrayRef<const char *> lines) {
  std::string text = ".text.k:\n";
  unsigned place = 0;
  for (llvm::StringRef line : lines) {
    if (line.ends_with(":"))
      text += line.str() + "\n";
    else
      text += llvm::formatv("/*{0:x-4}*/ {1} ;\n", 16 * place++, line).str();
  }
  return text;
}

/// Lists the work of each loop with its spill instructions, such as "softmax
/// 2".
std::vector<std::string> list(llvm::ArrayRef<const char *> lines) {
  auto code = parseSassListing(write(lines));
  EXPECT_TRUE(bool(code)) << llvm::toString(code.takeError());
  std::vector<std::string> result;
  for (const BlockLoop &loop : findBlockLoops(*code))
    result.push_back(
        llvm::formatv("{0} {1}", loop.getWork(), loop.countSpills()));
  return result;
}

constexpr const char *Product = "HGMMA.64x64x16.F32 R24, gdesc[UR4], R24, gsb0";
constexpr const char *Exp = "MUFU.EX2 R4, R5";
constexpr const char *BulkLoad = "UTMALDG.4D [UR8], [UR4]";
constexpr const char *SpinWait = "SYNCS.PHASECHK.TRANS64.TRYWAIT P2, [UR4], R3";
constexpr const char *Spill = "STL [R1+0x4], R3";
constexpr const char *Reload = "LDL R3, [R1+0x4]";

} // namespace

TEST(BlockLoops, CountsSpillsOfOneRole) {
  EXPECT_THAT(list({Spill, ".L_0:", Reload, Product, Exp, Spill,
                    "@!P1 BRA `(.L_0)", Reload, "EXIT"}),
              ElementsAre("products and softmax 2"));
  // Spills elsewhere are none of a loop's.
  EXPECT_THAT(
      list({Spill, ".L_0:", Product, Exp, "@!P1 BRA `(.L_0)", Reload, "EXIT"}),
      ElementsAre("products and softmax 0"));
  EXPECT_THAT(list({Spill, Reload, "EXIT"}), IsEmpty());
}

TEST(BlockLoops, ListsMaskedAndUsualBlocks) {
  EXPECT_THAT(list({".L_0:", Product, Exp, Spill, "@!P1 BRA `(.L_0)",
                    ".L_1:", Product, Exp, "@!P1 BRA `(.L_1)", "EXIT"}),
              ElementsAre("products and softmax 1", "products and softmax 0"));
}

TEST(BlockLoops, ListsEveryRoleOfPersistentKernels) {
  // The loader's tiles and blocks, where it waits for slots; one thread's
  // products; and the softmax, around which tiles spill.
  EXPECT_THAT(list({".tile_a:",
                    BulkLoad,
                    ".block_a:",
                    ".spin_a:",
                    SpinWait,
                    "@!P2 BRA `(.spin_a)",
                    Reload,
                    BulkLoad,
                    "@!P1 BRA `(.block_a)",
                    "@!P3 BRA `(.tile_a)",
                    ".tile_b:",
                    ".block_b:",
                    "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8]",
                    "@!P1 BRA `(.block_b)",
                    "@!P3 BRA `(.tile_b)",
                    ".tile_c:",
                    Spill,
                    ".block_c:",
                    Exp,
                    Reload,
                    Spill,
                    "@!P1 BRA `(.block_c)",
                    Reload,
                    "@!P3 BRA `(.tile_c)",
                    "EXIT"}),
              ElementsAre("other 1", "products 0", "softmax 2"));
}

TEST(BlockLoops, LeavesOutLoopsOfTilesAndLoopsThatOnlyWait) {
  EXPECT_THAT(list({".tile:", Spill, ".spin:", SpinWait, "@!P2 BRA `(.spin)",
                    ".block:", Product, Exp, "@!P1 BRA `(.block)", Reload,
                    "@!P3 BRA `(.tile)", "EXIT"}),
              ElementsAre("products and softmax 0"));
  // Copies of queries run once for each tile.
  EXPECT_THAT(
      list({".copy:", "LDGSTS.E.128 [R2], [R4.64]", Spill, "@!P1 BRA `(.copy)",
            ".block:", Product, Exp, "@!P1 BRA `(.block)", "EXIT"}),
      ElementsAre("products and softmax 0"));
}

TEST(BlockLoops, CountsLoopsInsideAndLeavesOutRarePaths) {
  // Keys of a block are copied in a loop inside.
  EXPECT_THAT(
      list({".block:", Product, Exp, ".keys:", "LDGSTS.E.128 [R2], [R4.64]",
            Spill, "@!P0 BRA `(.keys)", "@!P1 BRA `(.block)", "EXIT"}),
      ElementsAre("products and softmax 1"));
  EXPECT_THAT(
      list({".block:", Product, Exp, "VOTE.ANY P0, P0", "@!P0 BRA `(.usual)",
            Spill, Reload, ".usual:", "@!P1 BRA `(.block)", "EXIT"}),
      ElementsAre("products and softmax 0"));
}

TEST(BlockLoops, ReportsSpillsByPlace) {
  auto lint = [](llvm::ArrayRef<const char *> lines) {
    SassInput input;
    input.listing = write(lines);
    auto report = lintSass(input);
    EXPECT_TRUE(bool(report));
    return std::move(*report);
  };
  SassReport inside = lint({".L_0:", Reload, Product, Exp, Spill,
                            "@!P1 BRA `(.L_0)", Reload, "EXIT"});
  EXPECT_TRUE(inside.hasErrors());
  EXPECT_EQ(inside.countLoopSpills(), 2u);
  ASSERT_EQ(inside.findings.size(), 2u);
  EXPECT_EQ(inside.findings[0].text,
            "expected no spill instructions in the loop at 0x0 (products and "
            "softmax), which runs for each block of keys, got 2");
  EXPECT_EQ(inside.findings[1].text,
            "1 spill instructions stand outside of the loops that run for each "
            "block of keys");
  EXPECT_FALSE(inside.findings[1].isError);
  std::string text;
  llvm::raw_string_ostream os(text);
  inside.print(os);
  EXPECT_THAT(text, HasSubstr("0x0 to 0x40, products and softmax: 5 "
                              "instructions, 1 spill stores, 1 spill loads"));
  EXPECT_TRUE(inside.toJSON().getAsObject()->getArray("block_loops"));
  EXPECT_FALSE(lint({Spill, ".L_0:", Product, Exp, "@!P1 BRA `(.L_0)", "EXIT"})
                   .hasErrors());
}
