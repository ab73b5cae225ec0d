//===- LayoutTextFuzzTest.cpp - Damaged text is an error ------------------===//

#include "LayoutTesting.h"
#include "attn/Layout/NamedLayouts.h"

using namespace mlir::attn;
using namespace mlir::attn::testing;

/// A text with a few characters deleted, repeated or replaced.
static std::string damage(std::string text, Random &random) {
  static constexpr llvm::StringLiteral alphabet("0123456789 {}[]()*@,:;->xdim");
  for (unsigned count = 1 + pick(random, 3); count && !text.empty(); --count) {
    unsigned at = pick(random, text.size());
    switch (pick(random, 4)) {
    case 0:
      text.erase(at, 1 + pick(random, 4));
      break;
    case 1:
      text.insert(at, text.substr(pick(random, text.size()), 6));
      break;
    case 2:
      text[at] = alphabet[pick(random, alphabet.size())];
      break;
    default:
      text.insert(at, std::to_string(random()));
      break;
    }
  }
  return text;
}

/// Parses damaged forms of a text: an error with a message, or a layout that
/// prints and parses again.
template <typename Layout>
static void expectRobust(const std::string &text, Random &random) {
  for (unsigned round = 0; round < 4000; ++round) {
    std::string damaged = damage(text, random);
    llvm::Expected<Layout> layout = Layout::parse(damaged);
    if (!layout) {
      EXPECT_THAT(llvm::toString(layout.takeError()),
                  ::testing::StartsWith("expected "));
      continue;
    }
    llvm::Expected<Layout> again = Layout::parse(layout->str());
    ASSERT_TRUE(bool(again)) << llvm::toString(again.takeError());
    EXPECT_EQ(*again, *layout) << damaged;
  }
}

TEST(LayoutText, DamagedTextIsAnError) {
  Random random(1);
  expectRobust<LinearLayout>(
      "{register: [0,1] [8,0]; lane: [0,2] [1,0] -> dim0: 16, dim1: 4}",
      random);
  expectRobust<TileLayout>(unwrap(mmaAccumulator(64, 40, {2, 1})).str(),
                           random);
  SharedLayout buffer = unwrap(SharedLayout::swizzled(60, 96, 16, 64));
  expectRobust<SharedLayout>(
      unwrap(unwrap(buffer.subview({8, 16}, {16, 24})).ring(2)).str(), random);
}
