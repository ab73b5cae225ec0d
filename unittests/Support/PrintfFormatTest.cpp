//===- PrintfFormatTest.cpp - Formats of printf on a GPU ------------------===//

#include "attn/Support/PrintfFormat.h"
#include "llvm/ADT/bit.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

/// Prints what a format makes of numbers, or what is wrong with it.
static std::string print(llvm::StringRef format,
                         llvm::ArrayRef<uint64_t> arguments,
                         llvm::StringRef string = "") {
  auto pieces = parsePrintfFormat(format);
  if (!pieces)
    return llvm::toString(pieces.takeError());
  std::string text;
  for (const PrintfPiece &piece : *pieces) {
    size_t count = piece.arguments.size();
    if (count > arguments.size())
      return "more arguments";
    text += count == 0
                ? piece.text
                : printConversion(piece, arguments.take_front(count), string);
    arguments = arguments.drop_front(count);
  }
  return arguments.empty() ? text : "fewer arguments";
}

static uint64_t bitsOf(double number) {
  return llvm::bit_cast<uint64_t>(number);
}

TEST(PrintfFormat, PrintsAsTheHostDoes) {
  EXPECT_EQ(print("", {}), "");
  EXPECT_EQ(print("100%% of %d\n", {7}), "100% of 7\n");
  // 32 bits of what is there.
  EXPECT_EQ(print("%d %u %x", {0xffffffff, 0xffffffff, 0x1ffffffff}),
            "-1 4294967295 ffffffff");
  EXPECT_EQ(print("%ld|%lld|%llx", {~0ull, ~0ull, 1ull << 40}),
            "-1|-1|10000000000");
  EXPECT_EQ(print("%hhd %hd", {0x1ff, 0x18000}), "-1 -32768");
  EXPECT_EQ(print("%5.2f|%-8g|%e", {bitsOf(1.5), bitsOf(0.25), bitsOf(2.0)}),
            " 1.50|0.25    |2.000000e+00");
  EXPECT_EQ(print("%c%c", {'o', 'k'}), "ok");
  EXPECT_EQ(print("[%s]", {0x1000}, "text"), "[text]");
  EXPECT_EQ(print("[%6.2s]", {0x1000}, "text"), "[    te]");
}

TEST(PrintfFormat, TakesWidthsFromArguments) {
  EXPECT_EQ(print("[%*d]", {4, 7}), "[   7]");
  EXPECT_EQ(print("[%*d]", {uint32_t(-4), 7}), "[7   ]");
  EXPECT_EQ(print("[%.*f]", {1, bitsOf(0.25)}), "[0.2]");
  // None.
  EXPECT_EQ(print("[%.*d]", {uint32_t(-4), 7}), "[7]");
  EXPECT_EQ(print("%*d", {0x7fffffff, 7}).size(), 4096u);
  EXPECT_EQ(print("%5d", {7}).size(), 5u);
}

TEST(PrintfFormat, RefusesWhatIsNoConversion) {
  const char *conversions =
      "expected a conversion of printf (d, i, o, u, x, X, "
      "c, f, F, e, E, g, G, a, A, s or p), got '";
  EXPECT_EQ(print("%", {}), std::string(conversions) + "%'");
  EXPECT_EQ(print("at the end %5", {}), std::string(conversions) + "%5'");
  EXPECT_EQ(print("%n", {0}), std::string(conversions) + "%n'");
  EXPECT_EQ(print("%ly", {0}), std::string(conversions) + "%ly'");
  EXPECT_EQ(print("%99999d", {0}),
            "expected a width and a precision of at most 4096 in a conversion "
            "of printf, got '%99999'");
  EXPECT_EQ(print("%.2000000000000f", {0}),
            "expected a width and a precision of at most 4096 in a conversion "
            "of printf, got '%.2000000000000'");
}
