//===- FormTableTest.cpp - Tests of the form table ------------------------===//

#include "attn/Target/FormTable.h"
#include "llvm/ADT/STLExtras.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <set>

using namespace mlir::attn;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

std::vector<std::string> names(FormSpelling spelling, llvm::StringRef text) {
  std::vector<std::string> result;
  for (const Form *form : lookupForms(spelling, text))
    result.push_back(form->name.str());
  return result;
}

const TargetRow &target(llvm::StringRef chip) {
  return llvm::cantFail(lookupTarget(chip));
}

std::optional<std::string> explain(llvm::StringRef mnemonic,
                                   llvm::StringRef chip, unsigned ptx) {
  return explainForms(lookupForms(FormSpelling::Mnemonic, mnemonic),
                      target(chip), ptx);
}

TEST(FormTable, NamesAreDistinct) {
  std::set<llvm::StringRef> seen;
  for (const Form &form : getForms()) {
    EXPECT_TRUE(seen.insert(form.name).second) << form.name.str();
    EXPECT_FALSE(form.mnemonics.empty() && form.intrinsics.empty() &&
                 form.operations.empty())
        << form.name.str();
  }
}

TEST(FormTable, EveryFormIsAvailableSomewhere) {
  for (const Form &form : getForms())
    EXPECT_TRUE(llvm::any_of(getTargets(), [&](const TargetRow &row) {
      return isAvailable(form, row);
    })) << form.name.str();
}

TEST(FormTable, Mnemonics) {
  auto lookup = [](llvm::StringRef text) {
    return names(FormSpelling::Mnemonic, text);
  };
  EXPECT_THAT(lookup("add.rn.f32"), ElementsAre("scalar"));
  EXPECT_THAT(lookup("add.rn.f32x2"), ElementsAre("scalar", "f32x2"));
  EXPECT_THAT(lookup("max.f32/3"), ElementsAre("scalar"));
  EXPECT_THAT(lookup("max.f32/4"),
              ElementsAre("scalar", "max with three inputs"));
  EXPECT_THAT(lookup("ex2.approx.ftz.f32"), ElementsAre("float"));
  EXPECT_THAT(lookup("cp.async.cg.shared.global"), ElementsAre("cp.async"));
  EXPECT_THAT(lookup("cp.async.bulk.commit_group"),
              ElementsAre("cp.async.bulk"));
  EXPECT_THAT(lookup("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
              ElementsAre("mma.sync"));
  EXPECT_THAT(lookup("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
              ElementsAre("mma.sync", "mma.sync fp8"));
  EXPECT_THAT(
      lookup(
          "mma.sync.aligned.kind::f8f6f4.m16n8k32.row.col.f32.e4m3.e3m2.f32"),
      IsEmpty());
  EXPECT_THAT(lookup("tcgen05.wait::ld.sync.aligned"), ElementsAre("tcgen05"));
  EXPECT_THAT(lookup("frobnicate.b32"), IsEmpty());
  EXPECT_THAT(lookup(""), IsEmpty());
}

TEST(FormTable, Intrinsics) {
  auto lookup = [](llvm::StringRef text) {
    return names(FormSpelling::Intrinsic, text);
  };
  EXPECT_THAT(lookup("mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"),
              ElementsAre("mma.sync", "mma.sync fp8"));
  EXPECT_THAT(lookup("mma.m16n8k32.row.col.kind.f8f6f4.f32.e4m3.e3m2.f32"),
              IsEmpty());
  EXPECT_THAT(lookup("barrier.cta.sync.count"), ElementsAre("barrier"));
  EXPECT_THAT(lookup("lg2.approx.ftz.f"), ElementsAre("float"));
  EXPECT_THAT(lookup("tex.1d.v4f32.f32"), IsEmpty());
}

TEST(FormTable, Explanations) {
  EXPECT_EQ(explain("add.rn.f32", "sm_80", 70), std::nullopt);
  EXPECT_EQ(explain("mbarrier.arrive.expect_tx.shared.b64", "sm_80", 80),
            "needs sm_90 and PTX 8.0, got sm_80 and PTX 8.0");
  EXPECT_EQ(explain("cp.async.cg.shared.global.L2::128B", "sm_80", 73),
            "needs PTX 7.4, got sm_80 and PTX 7.3");
  EXPECT_EQ(
      explain("tcgen05.ld.red.sync.aligned.32x32b.x2.max.f32", "sm_100a", 88),
      "needs sm_103a and PTX 8.8, got sm_100a and PTX 8.8");
  EXPECT_EQ(explain("frobnicate", "sm_80", 80), "is not in the form table");
}

TEST(FormTable, LeastPTXHoldsForTheChipToo) {
  const Form *form = lookupForms(FormSpelling::Operation, "nvvm.ldmatrix")[0];
  EXPECT_EQ(getLeastPTX(*form, target("sm_80")), 70u);
  EXPECT_EQ(getLeastPTX(*form, target("sm_103a")), 88u);
}

TEST(FormTable, MnemonicsOfAssemblyText) {
  EXPECT_THAT(getAsmMnemonics("add.f32 $0, $1, $2;"), ElementsAre("add.f32"));
  EXPECT_THAT(getAsmMnemonics("{ .reg .pred p; setp.ne.b32 p, $4, 0;\n"
                              "@p tcgen05.mma.cta_group::1.kind::f16 [$0], $1, "
                              "$2, $3, p; }"),
              ElementsAre("setp.ne.b32", "tcgen05.mma.cta_group::1.kind::f16"));
  EXPECT_THAT(getAsmMnemonics("LAB: mov.b32 $0, {$1, $2}; // add.f32 x;\n"
                              "@!p bra LAB; /* sub; */ ret;"),
              ElementsAre("mov.b32", "bra", "ret"));
  EXPECT_THAT(getAsmMnemonics("max.f32 $0, $1, $2, $3; min.f32 $0, $1, $2;"),
              ElementsAre("max.f32/4", "min.f32/3"));
  EXPECT_THAT(getAsmMnemonics(""), IsEmpty());
  EXPECT_THAT(getAsmMnemonics("} ; ;; /* open"), IsEmpty());
}

TEST(FormTable, AssemblyOfRegistersAlone) {
  for (const char *text :
       {"", "add.f32 $0, $1, $2;", "{ .reg .b32 t; xor.b32 t, $1, $2; }",
        "{ .reg .pred p; setp.ne.b32 p, $1, 0;\n@!p mov.b32 $0, {$1, $2}; }",
        "mov.u32 $0, %laneid; // bar.sync 0;", "/* ld.u32 */ prmt.b32 $0, $1;"})
    EXPECT_EQ(findBeyondRegisters(text), std::nullopt) << text;
  auto find = [](const char *text) {
    return findBeyondRegisters(text).value_or("");
  };
  EXPECT_EQ(find("mov.u32 $0, 0; bar.sync 9, 256;"), "bar.sync 9, 256");
  EXPECT_EQ(find("@p bar.sync 0"), "bar.sync 0");
  EXPECT_EQ(find("{ ld.shared.u32 $0, [$1]; }"), "ld.shared.u32 $0, [$1]");
  EXPECT_EQ(find("add.u32 $0, $1, [$2];"), "add.u32 $0, $1, [$2]");
  EXPECT_EQ(find("L: add.u32 $0, $0, 1; bra L;"), "bra L");
  EXPECT_EQ(find(".shared .b32 x; mov.u32 $0, x;"), ".shared .b32 x");
  EXPECT_EQ(find("shfl.sync.idx.b32 $0, $1, 0, 31, -1;"),
            "shfl.sync.idx.b32 $0, $1, 0, 31, -1");
  EXPECT_EQ(find("// mov\rbar.sync 0;\n"), "// mov\rbar.sync 0;");
  EXPECT_EQ(find("$(bar.sync 0;$|mov.u32 $0, 0;$)"),
            "$(bar.sync 0;$|mov.u32 $0, 0;$)");
}

} // namespace
