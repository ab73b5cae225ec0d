//===- HelpTextTest.cpp - Help texts in lines that fit --------------------===//

#include "Tool/HelpText.h"
#include "llvm/ADT/SmallVector.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using llvm::StringRef;

TEST(HelpText, Wraps) {
  EXPECT_EQ(
      wrapHelp("OVERVIEW: what it does\n\nOPTIONS:\n\n"
               "  --chip=<string>                         - Target (default: "
               "that of the kernels in <input>, else sm_80)\n"
               "  --epilogue=<direct|shuffled|staged|tma> - How results leave\n"
               "  -o <file>                               - Where it goes\n"
               "  --reads=<value>                         - When they read:\n"
               "    =issue                                -   at once\n"
               "  --lines                                 - One\n"
               "                                            two\n"
               "    Passes:\n"
               "      --attn-plan                         -   Choose a plan\n"
               "        --set=<string>                    - Fix it\n"),
      "OVERVIEW: what it does\n\nOPTIONS:\n\n"
      "  --chip=<string>         - Target (default: that of the kernels in "
      "<input>,\n"
      "                            else sm_80)\n"
      "  --epilogue=<direct|shuffled|staged|tma>\n"
      "                          - How results leave\n"
      "  -o <file>               - Where it goes\n"
      "  --reads=<value>         - When they read:\n"
      "    =issue                -   at once\n"
      "  --lines                 - One\n"
      "                            two\n"
      "    Passes:\n"
      "      --attn-plan         -   Choose a plan\n"
      "        --set=<string>    - Fix it\n");
}

TEST(HelpText, NoLineIsLonger) {
  std::string words;
  for (int i = 0; i < 60; ++i)
    words += "word" + std::to_string(i) + " ";
  std::string text = words + "\n  --flag - " + words + "\n  --" +
                     std::string(70, 'f') + " - " + words + "\n     " + words;
  std::string wrapped = wrapHelp(text);
  llvm::SmallVector<StringRef> lines;
  StringRef(wrapped).split(lines, '\n');
  EXPECT_GT(lines.size(), 12u);
  for (StringRef line : lines)
    EXPECT_LE(line.size(), kHelpColumns) << line.str();
  EXPECT_EQ(wrapHelp(""), "");
  EXPECT_EQ(wrapHelp(std::string(99, 'x')), std::string(99, 'x') + "\n");
}
