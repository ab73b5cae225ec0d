//===- LinearLayoutTest.cpp - Linear maps against brute force -------------===//

#include "attn/Layout/LinearLayout.h"
#include "LayoutTesting.h"
#include <map>
#include <set>

using namespace mlir::attn;
using namespace mlir::attn::testing;

static uint64_t inputs(const LinearLayout &layout) {
  return uint64_t(1) << layout.totalInputBits();
}

TEST(LinearLayout, ApplyIsXorOfBases) {
  Random random(1);
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout layout = randomLayout(random);
    for (uint64_t input = 0; input < inputs(layout); ++input) {
      Coords indices = layout.unflattenInput(input), expected(2, 0);
      EXPECT_EQ(layout.flattenInput(indices), input);
      for (unsigned axis = 0; axis < 3; ++axis)
        for (unsigned bit = 0; bit < layout.axes()[axis].bits; ++bit)
          if ((indices[axis] >> bit) & 1)
            for (unsigned dim = 0; dim < 2; ++dim)
              expected[dim] ^= layout.basisAlong(layout.axes()[axis].name, bit,
                                                 layout.dims()[dim].name);
      EXPECT_EQ(layout.apply(indices), expected);
    }
  }
}

TEST(LinearLayout, RankFreeMaskSurjectivity) {
  Random random(2);
  for (unsigned round = 0; round < 100; ++round) {
    LinearLayout layout = randomLayout(random);
    std::set<uint64_t> image;
    for (uint64_t input = 0; input < inputs(layout); ++input)
      image.insert(layout.applyFlat(input));
    EXPECT_EQ(image.size(), uint64_t(1) << layout.rank());
    EXPECT_EQ(layout.isInjective(), image.size() == inputs(layout));
    EXPECT_EQ(layout.isSurjective(),
              image.size() == uint64_t(1) << layout.totalOutputBits());
    // Inputs without free bits still reach the whole image, each value once.
    uint64_t freeBits = 0;
    unsigned shift = 0;
    for (const LinearLayout::Space &axis : layout.axes()) {
      freeBits |= layout.freeMask(axis.name) << shift;
      shift += axis.bits;
    }
    std::set<uint64_t> reached;
    for (uint64_t input = 0; input < inputs(layout); ++input)
      if (!(input & freeBits)) {
        EXPECT_TRUE(reached.insert(layout.applyFlat(input)).second);
      }
    EXPECT_EQ(reached, image);
  }
}

TEST(LinearLayout, InverseComposesToIdentity) {
  Random random(3);
  for (unsigned round = 0; round < 100; ++round) {
    LinearLayout layout = randomBijection(random);
    LinearLayout inverse = unwrap(layout.invert());
    for (uint64_t input = 0; input < inputs(layout); ++input)
      EXPECT_EQ(inverse.applyFlat(layout.applyFlat(input)), input);
    LinearLayout both = unwrap(layout.compose(inverse));
    for (uint64_t input = 0; input < inputs(layout); ++input)
      EXPECT_EQ(both.applyFlat(input), input);
  }
}

TEST(LinearLayout, PseudoInverseIsRightInverseWithoutFreeBits) {
  Random random(4);
  unsigned seen = 0;
  while (seen < 50) {
    LinearLayout layout = randomLayout(random);
    if (!layout.isSurjective())
      continue;
    ++seen;
    LinearLayout inverse = unwrap(layout.pseudoInvert());
    for (uint64_t out = 0; out < uint64_t(1) << layout.totalOutputBits();
         ++out) {
      uint64_t preimage = inverse.applyFlat(out);
      EXPECT_EQ(layout.applyFlat(preimage), out);
      Coords indices = layout.unflattenInput(preimage);
      for (unsigned axis = 0; axis < 3; ++axis)
        EXPECT_EQ(indices[axis] & layout.freeMask(layout.axes()[axis].name),
                  0u);
    }
  }
}

TEST(LinearLayout, InvertAndComposeFindsTheSameElement) {
  Random random(5);
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout target = randomBijection(random);
    LinearLayout source =
        LinearLayout(target.permuteDims({1, 0})).renameAxis("a", "c");
    LinearLayout map = unwrap(target.invertAndCompose(source));
    for (uint64_t input = 0; input < inputs(target); ++input) {
      Coords there = source.apply(map.unflattenOutput(map.applyFlat(input)));
      Coords here = target.unflattenOutput(target.applyFlat(input));
      EXPECT_EQ(Coords({there[1], there[0]}), here);
    }
  }
}

TEST(LinearLayout, ProductStacksBits) {
  Random random(6);
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout inner = randomLayout(random), outer = randomLayout(random);
    LinearLayout product = unwrap(inner.product(outer));
    for (unsigned trial = 0; trial < 20; ++trial) {
      uint64_t low = pick(random, inputs(inner));
      uint64_t high = pick(random, inputs(outer));
      Coords lowIn = inner.unflattenInput(low);
      Coords highIn = outer.unflattenInput(high);
      Coords in, expected;
      for (unsigned axis = 0; axis < 3; ++axis)
        in.push_back(lowIn[axis] | highIn[axis] << inner.axes()[axis].bits);
      Coords lowOut = inner.apply(lowIn), highOut = outer.apply(highIn);
      for (unsigned dim = 0; dim < 2; ++dim)
        expected.push_back(lowOut[dim] | highOut[dim]
                                             << inner.dims()[dim].bits);
      EXPECT_EQ(product.apply(in), expected);
    }
    EXPECT_EQ(product.divideLeft(inner), outer);
    EXPECT_EQ(product.divideRight(outer), inner);
  }
}

TEST(LinearLayout, DivisionFailsWhereThereIsNoQuotient) {
  LinearLayout layout = LinearLayout::identity("a", 8, "x");
  EXPECT_EQ(layout.divideLeft(LinearLayout::identity("a", 2, "x")),
            LinearLayout::identity("a", 4, "x"));
  EXPECT_FALSE(layout.divideLeft(LinearLayout::strided("a", 2, 2, "x")));
  EXPECT_FALSE(layout.divideLeft(LinearLayout::identity("a", 16, "x")));
  EXPECT_FALSE(layout.divideRight(LinearLayout::zeros("a", 2, "x")));
  EXPECT_FALSE(layout.divideRight(LinearLayout::identity("b", 2, "x")));
}

TEST(LinearLayout, QuotientDropsIdentities) {
  LinearLayout layout =
      unwrap(LinearLayout::identity("a", 4, "x")
                 .product(LinearLayout::identity("block", 2, "block")));
  EXPECT_EQ(layout.quotient({"block"}), LinearLayout::identity("a", 4, "x"));
  EXPECT_FALSE(layout.quotient({"a"}));
  LinearLayout swapped = unwrap(LinearLayout::get({{"x", 4}}));
  ASSERT_FALSE(bool(swapped.addAxis("x", {{2}, {1}})));
  EXPECT_FALSE(swapped.quotient({"x"}));
}

TEST(LinearLayout, ReshapeKeepsFlatBits) {
  Random random(7);
  for (unsigned round = 0; round < 20; ++round) {
    LinearLayout layout = randomBijection(random);
    int64_t total = int64_t(1) << layout.totalOutputBits();
    LinearLayout flat = unwrap(layout.reshapeDims({{"all", total}}));
    EXPECT_EQ(flat, layout.flattenDims("all"));
    LinearLayout axes = unwrap(layout.reshapeAxes({{"in", total}}));
    EXPECT_EQ(axes, layout.flattenAxes("in"));
    for (uint64_t input = 0; input < inputs(layout); ++input) {
      EXPECT_EQ(flat.applyFlat(input), layout.applyFlat(input));
      EXPECT_EQ(axes.applyFlat(input), layout.applyFlat(input));
    }
    LinearLayout swapped = layout.permuteAxes({1, 0});
    Coords in = layout.unflattenInput(pick(random, inputs(layout)));
    EXPECT_EQ(swapped.apply({in[1], in[0]}), layout.apply(in));
  }
}

TEST(LinearLayout, TextRoundTrip) {
  Random random(8);
  for (unsigned round = 0; round < 50; ++round) {
    LinearLayout layout = randomLayout(random);
    EXPECT_EQ(unwrap(LinearLayout::parse(layout.str())), layout);
  }
  LinearLayout layout = unwrap(LinearLayout::parse(
      "{ register : [0,1][8,0]; lane: [ 1,0 ]; warp:->dim0: 16, dim1: 2 }"));
  EXPECT_EQ(layout.str(),
            "{register: [0,1] [8,0]; lane: [1,0]; warp: -> dim0: 16, dim1: 2}");
  EXPECT_EQ(LinearLayout().str(), "{->}");
  EXPECT_EQ(unwrap(LinearLayout::parse("{->}")), LinearLayout());
}

TEST(LinearLayout, ParseErrors) {
  expectError(LinearLayout::parse("{a: [1] - > x: 2}"),
              "expected ';' at character 8 of the layout, got '- > x: 2'");
  expectError(LinearLayout::parse("{a: [1 -> x: 2}"),
              "expected ']' at character 7 of the layout, got '-> x: 2}'");
  expectError(
      LinearLayout::parse("{a: [] -> x: 2}"),
      "expected an integer at character 5 of the layout, got '] -> x: '");
  expectError(LinearLayout::parse("{: [1] -> x: 2}"),
              "expected a name at character 1 of the layout, got ': [1] ->'");
  expectError(LinearLayout::parse("{a: [1] -> x: 2"),
              "expected ',' at character 15 of the layout, got the end");
  expectError(LinearLayout::parse("{a: [1] -> x: 2} 3"),
              "expected the end at character 17 of the layout, got '3'");
}

TEST(LinearLayout, ConstructionErrors) {
  expectError(LinearLayout::parse("{-> x: 3}"),
              "expected a power of two as size of 'x', got 3");
  expectError(LinearLayout::parse("{-> x: 2, x: 2}"),
              "expected different dimension names, got 'x' twice");
  expectError(LinearLayout::parse("{a: ; a: -> x: 2}"),
              "expected different axis names, got 'a' twice");
  expectError(LinearLayout::parse("{a: [1,1] -> x: 2}"),
              "expected 1 coordinates in a basis of 'a', got 2");
  expectError(LinearLayout::parse("{a: [2] -> x: 2}"),
              "expected a basis of 'a' below 2 along 'x', got 2");
  expectError(LinearLayout::parse("{a: [-1] -> x: 2}"),
              "expected a basis of 'a' below 2 along 'x', got -1");
  expectError(
      LinearLayout::get({{"x", int64_t(1) << 40}, {"y", int64_t(1) << 40}}),
      "expected at most 62 output bits, got 80");
  LinearLayout layout = LinearLayout::zeros("a", int64_t(1) << 40, "x");
  llvm::SmallVector<Coords> bases(40, Coords({0}));
  EXPECT_EQ(llvm::toString(layout.addAxis("b", bases)),
            "expected at most 62 input bits, got 80");
  expectError(layout.product(layout),
              "expected at most 62 bits in a product, got 80");
}

TEST(LinearLayout, AlgebraErrors) {
  LinearLayout zeros = LinearLayout::zeros("a", 2, "x");
  LinearLayout sparse = LinearLayout::strided("a", 2, 2, "x");
  expectError(zeros.invert(), "expected a bijection to invert, got rank 0 of 1 "
                              "input and 0 output bits");
  expectError(sparse.pseudoInvert(), "expected a surjective map to invert, got "
                                     "rank 1 of 2 output bits");
  expectError(LinearLayout::identity("a", 4, "x").invertAndCompose(sparse),
              "expected every element in both maps, got one that the inverted "
              "map does not hold");
  expectError(zeros.invertAndCompose(LinearLayout()),
              "expected 1 dimensions, got 0");
  expectError(sparse.invertAndCompose(LinearLayout::identity("a", 2, "y")),
              "expected dimension 'x' of size 4 in both maps, got size 1");
  expectError(sparse.compose(LinearLayout::identity("x", 2, "y")),
              "expected dimension 'x' of size 4 to fit the axis, got size 2");
  expectError(sparse.reshapeDims({{"y", 8}}),
              "expected 2 bits in the new shape, got 3");
  expectError(sparse.reshapeAxes({{"b", 3}}),
              "expected a power of two as size of 'b', got 3");
}
