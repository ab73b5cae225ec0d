//===- SuggestTest.cpp - The name that a wrong one stands for -------------===//

#include "attn/Support/Suggest.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using llvm::StringRef;

TEST(Suggest, Nearest) {
  const StringRef known[] = {"chip",    "kv-heads", "kv-len",    "page-size",
                             "sm_80",   "sm_90a",   "sm_100a",   "sm_100f",
                             "softcap", "o",        "print-plan"};
  const Synonym synonyms[] = {
      {"arch", "chip"}, {"H100", "sm_90a"}, {"target", "absent"}};
  const std::pair<StringRef, StringRef> rows[] = {
      // The same but for case and punctuation.
      {"kvheads", "kv-heads"},
      {"KV_HEADS", "kv-heads"},
      {"sm80", "sm_80"},
      {"90a", "sm_90a"},
      // The beginning of one, one and more, the end of one.
      {"sm_90", "sm_90a"},
      {"sm_100", "sm_100a"},
      {"page", "page-size"},
      {"plan", "print-plan"},
      {"softcaps", "softcap"},
      {"so", ""},
      // Letters that are wrong, left out or exchanged.
      {"chp", "chip"},
      {"sofcap", "softcap"},
      {"kvlne", ""},
      {"page-sizw", "page-size"},
      // Other numbers are other things.
      {"sm_70", ""},
      {"sm_9", "sm_90a"},
      // Other names, of which the program may have none.
      {"arch", "chip"},
      {"h100", "sm_90a"},
      {"target", ""},
      // Nothing like it.
      {"", ""},
      {"--", ""},
      {"\xff\xfe", ""},
      {"something-else", ""},
      {"out", ""},
  };
  for (auto [got, expected] : rows)
    EXPECT_EQ(findNearest(got, known, synonyms), expected) << got.str();
  EXPECT_EQ(suggest("sm_90", known), "; did you mean 'sm_90a'?");
  EXPECT_EQ(suggest("sm_70", known), "");
  EXPECT_EQ(findNearest("chip", {}), "");
}
