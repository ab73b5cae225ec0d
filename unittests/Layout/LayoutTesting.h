//===- LayoutTesting.h - Helpers of the layout tests ------------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_LAYOUT_LAYOUTTESTING_H
#define ATTN_UNITTESTS_LAYOUT_LAYOUTTESTING_H

#include "attn/Layout/SharedLayout.h"
#include "attn/Layout/TileLayout.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>

namespace mlir::attn::testing {

/// The value, or a test failure with the error's text.
template <typename T>
T unwrap(llvm::Expected<T> value) {
  if (value)
    return std::move(*value);
  ADD_FAILURE() << llvm::toString(value.takeError());
  return T();
}

/// Expects an error with exactly this text.
template <typename T>
void expectError(llvm::Expected<T> value, llvm::StringRef message) {
  if (value)
    ADD_FAILURE() << "expected an error: " << message.str();
  else
    EXPECT_EQ(llvm::toString(value.takeError()), message.str());
}

using Random = std::mt19937;

inline unsigned pick(Random &random, unsigned limit) {
  return std::uniform_int_distribution<unsigned>(0, limit - 1)(random);
}

/// A layout with random bases: axes a, b, c and dimensions x, y of random
/// sizes.
LinearLayout randomLayout(Random &random);
/// A bijection between axes a, b and dimensions x, y.
LinearLayout randomBijection(Random &random);
/// A tile of random unit (each basis one bit, in random order, some broadcast
/// lane and warp bits) and random repetitions over two dimensions.
TileLayout randomTile(Random &random);

/// A tile like this with 3 to 7 groups of warps along one dimension, a number
/// that is no power of two.
TileLayout randomPartialTile(Random &random);

/// All coordinates of a shape, the last dimension fastest.
std::vector<Coords> allCoords(llvm::ArrayRef<int64_t> shape);

} // namespace mlir::attn::testing

#endif // ATTN_UNITTESTS_LAYOUT_LAYOUTTESTING_H
