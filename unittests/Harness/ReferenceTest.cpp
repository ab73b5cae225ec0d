//===- ReferenceTest.cpp - tests of the attention reference ---------------===//
//
// The reference is compared with the formula written out per element, on random
// problems, and with cases whose result is known.
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Reference.h"

#include "TestTensor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <random>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using testing::HasSubstr;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// Operands of one problem.
struct Case {
  AttentionProblem problem;
  Tensor q, k, v;
  AttentionInputs inputs;

  Case(int64_t batch, int64_t heads, int64_t kvHeads, int64_t queries,
       int64_t keys, int64_t d, int64_t dv, DType dtype = DType::F16)
      : q(dtype, {batch, heads, queries, d}),
        k(dtype, {batch, kvHeads, keys, d}),
        v(dtype, {batch, kvHeads, keys, dv}) {
    std::mt19937 random(queries * 1000 + keys);
    for (Tensor *tensor : {&q, &k, &v})
      tensor->randomise(random);
    problem.scale = 1.0 / std::sqrt(double(d));
    problem.heads = heads;
    problem.kvHeads = kvHeads;
    problem.d = d;
    problem.dv = dv;
    inputs.q = q.view;
    inputs.k = k.view;
    inputs.v = v.view;
  }

  AttentionResult run() {
    auto result = computeReference(problem, inputs);
    if (!result) {
      ADD_FAILURE() << llvm::toString(result.takeError());
      return {};
    }
    return std::move(*result);
  }

  std::string fail() {
    auto result = computeReference(problem, inputs);
    return result ? "no error" : llvm::toString(result.takeError());
  }

  /// The formula of docs/Reference.md for one row, `keep` being step 4.
  void checkAgainstFormula(
      const AttentionResult &result,
      llvm::function_ref<bool(int64_t i, int64_t j, int64_t nq, int64_t nk)>
          keep) {
    int64_t nq = q.view.shape[2], nk = k.view.shape[2];
    int64_t group = problem.heads / problem.kvHeads;
    for (int64_t b = 0; b < q.view.shape[0]; ++b)
      for (int64_t h = 0; h < problem.heads; ++h)
        for (int64_t i = 0; i < nq; ++i) {
          double l = 0;
          std::vector<double> o(problem.dv, 0.0);
          if (problem.sinks)
            l = std::exp(inputs.sinks->get({h}));
          for (int64_t j = 0; j < nk; ++j) {
            if (!keep(i, j, nq, nk))
              continue;
            double s = 0;
            for (int64_t e = 0; e < problem.d; ++e)
              s += q.view.get({b, h, i, e}) * k.view.get({b, h / group, j, e});
            s *= problem.scale;
            if (problem.softcap > 0)
              s = problem.softcap * std::tanh(s / problem.softcap);
            if (inputs.scoreMod)
              s = inputs.scoreMod(s, b, h, i, j);
            l += std::exp(s);
            for (int64_t e = 0; e < problem.dv; ++e)
              o[e] += std::exp(s) * v.view.get({b, h / group, j, e});
          }
          int64_t row = (b * problem.heads + h) * nq + i;
          ASSERT_EQ(result.defined[row], 1);
          if (l == 0)
            ASSERT_EQ(result.lse[row], -infinity);
          else
            ASSERT_NEAR(result.lse[row], std::log(l), 1e-12);
          for (int64_t e = 0; e < problem.dv; ++e)
            ASSERT_NEAR(result.o[row * problem.dv + e], l ? o[e] / l : 0,
                        1e-12);
        }
  }
};

} // namespace

static bool keepAll(int64_t, int64_t, int64_t, int64_t) { return true; }

TEST(Reference, MatchesTheFormula) {
  Case plain(2, 4, 2, 5, 7, 16, 24);
  plain.checkAgainstFormula(plain.run(), keepAll);
  Case brain(1, 3, 1, 9, 4, 8, 8, DType::BF16);
  brain.checkAgainstFormula(brain.run(), keepAll);
  Case capped(1, 2, 2, 3, 6, 8, 8);
  capped.problem.softcap = 0.7;
  capped.checkAgainstFormula(capped.run(), keepAll);
}

TEST(Reference, CausalMasks) {
  for (auto [nq, nk] : {std::pair(6, 6), std::pair(3, 8), std::pair(8, 3)}) {
    Case test(1, 2, 1, nq, nk, 8, 8);
    test.problem.mask = MaskKind::Causal;
    test.checkAgainstFormula(test.run(), [](int64_t i, int64_t j, int64_t,
                                            int64_t) { return j <= i; });
    test.problem.align = MaskAlign::BottomRight;
    test.checkAgainstFormula(test.run(),
                             [](int64_t i, int64_t j, int64_t nq, int64_t nk) {
                               return j <= i + nk - nq;
                             });
  }
}

TEST(Reference, Windows) {
  for (int64_t left : {int64_t(-1), int64_t(0), int64_t(2), INT64_MAX})
    for (int64_t right : {int64_t(-1), int64_t(0), int64_t(3), INT64_MAX})
      for (MaskAlign align : {MaskAlign::TopLeft, MaskAlign::BottomRight}) {
        Case test(1, 2, 2, 5, 9, 8, 8);
        test.problem.mask = MaskKind::Window;
        test.problem.align = align;
        test.problem.left = left;
        test.problem.right = right;
        test.checkAgainstFormula(test.run(), [&](int64_t i, int64_t j,
                                                 int64_t nq, int64_t nk) {
          int64_t middle = i + (align == MaskAlign::BottomRight ? nk - nq : 0);
          bool keepLeft = left < 0 || middle - j <= left;
          bool keepRight = right < 0 || j - middle <= right;
          return keepLeft && keepRight;
        });
      }
}

TEST(Reference, SinksEnterTheDenominatorAndLSE) {
  Case test(1, 2, 1, 4, 5, 8, 8);
  Tensor sinks(DType::F32, {2});
  sinks.set({0}, 0.5);
  sinks.set({1}, -1.25);
  test.problem.sinks = true;
  EXPECT_EQ(test.fail(),
            "reference: the problem has sinks, which was not given");
  test.inputs.sinks = sinks.view;
  test.checkAgainstFormula(test.run(), keepAll);
  Case empty(1, 2, 1, 4, 0, 8, 8);
  empty.problem.sinks = true;
  empty.inputs.sinks = sinks.view;
  AttentionResult result = empty.run();
  EXPECT_EQ(result.lse[0], 0.5);
  EXPECT_EQ(result.lse[7], -1.25);
  EXPECT_THAT(result.o, testing::Each(0.0));
  // -inf is no sink, +inf takes all and NaN spoils the row, with keys or not.
  for (Case *one : {&test, &empty}) {
    sinks.set({0}, -infinity);
    sinks.set({1}, infinity);
    result = one->run();
    AttentionProblem problem = one->problem;
    problem.sinks = false;
    AttentionResult none = cantFail(computeReference(problem, one->inputs));
    for (int64_t row = 0; row < 4; ++row) {
      EXPECT_EQ(result.lse[row], none.lse[row]);
      EXPECT_EQ(result.lse[4 + row], infinity);
    }
    for (int64_t at = 0; at < 4 * 8; ++at) {
      EXPECT_EQ(result.o[at], none.o[at]);
      EXPECT_EQ(result.o[4 * 8 + at], 0.0);
    }
    sinks.set({0}, NAN);
    result = one->run();
    EXPECT_TRUE(std::isnan(result.lse[3]));
    EXPECT_TRUE(std::isnan(result.o[3 * 8 + 7]));
  }
  Tensor wrong(DType::F32, {3});
  test.inputs.sinks = wrong.view;
  EXPECT_EQ(test.fail(), "reference: \"sinks\": expected shape [2], got [3]");
}

// Powers of two change nothing but the operands' exponents.
TEST(Reference, DescalesAreUnitsOfTheOperands) {
  Case test(2, 2, 1, 3, 5, 8, 8, DType::F32);
  AttentionResult plain = test.run();
  Tensor q(DType::F32, {2, 2}), k(DType::F32, {2, 1}), v(DType::F32, {2, 1});
  for (int64_t batch : {0, 1}) {
    for (int64_t head : {0, 1})
      q.set({batch, head}, 2.0 * (1 + head) * (1 + batch));
    k.set({batch, 0}, 0.5 / (1 + batch));
    v.set({batch, 0}, 4.0);
  }
  test.inputs.qDescale = q.view;
  EXPECT_EQ(test.fail(), "reference: expected descales of k and v, or none");
  test.inputs.kDescale = k.view;
  test.inputs.vDescale = v.view;
  AttentionResult scaled = test.run();
  // Head 0 has a factor of 1 for the scores.
  for (int64_t batch : {0, 1})
    for (int64_t row = 0; row < 3; ++row) {
      int64_t at = batch * 6 + row;
      EXPECT_DOUBLE_EQ(scaled.lse[at], plain.lse[at]);
      for (int64_t column = 0; column < 8; ++column)
        EXPECT_DOUBLE_EQ(scaled.o[at * 8 + column],
                         4 * plain.o[at * 8 + column]);
    }
  // Head 1 has 2.
  test.problem.scale *= 2;
  test.inputs.qDescale = test.inputs.kDescale = test.inputs.vDescale =
      std::nullopt;
  AttentionResult twice = test.run();
  for (int64_t row = 3; row < 6; ++row)
    EXPECT_DOUBLE_EQ(scaled.lse[row], twice.lse[row]);
  Tensor wrong(DType::F32, {2, 3});
  test.inputs.qDescale = q.view;
  test.inputs.kDescale = wrong.view;
  test.inputs.vDescale = v.view;
  EXPECT_EQ(test.fail(),
            "reference: \"k_descale\": expected shape [2, 1], got [2, 3]");
}

TEST(Reference, ScalesAreUnitsOfRows) {
  Case test(1, 2, 1, 3, 5, 8, 8, DType::F32),
      scaled(1, 2, 1, 3, 5, 8, 8, DType::F32);
  Tensor k(DType::F32, {1, 1, 5, 2}), v(DType::F32, {1, 1, 5, 2});
  for (int64_t row = 0; row < 5; ++row)
    for (int64_t column = 0; column < 8; ++column) {
      double ofKey = 0.5 + row + 3 * (column / 4),
             ofValue = 2 - row - column / 4;
      k.set({0, 0, row, column / 4}, ofKey);
      v.set({0, 0, row, column / 4}, ofValue);
      std::array<int64_t, 4> at = {0, 0, row, column};
      scaled.k.set(at, ofKey * test.inputs.k.get(at));
      scaled.v.set(at, ofValue * test.inputs.v.get(at));
    }
  test.inputs.kScales = k.view;
  EXPECT_EQ(test.fail(), "reference: expected scales of k and v, or none");
  test.inputs.vScales = v.view;
  AttentionResult got = test.run(), want = scaled.run();
  for (auto [x, y] : llvm::zip(got.o, want.o))
    EXPECT_NEAR(x, y, 1e-5);
  test.inputs.vScales->shape[2] = 4;
  EXPECT_EQ(test.fail(), "reference: \"v_scales\": expected shape "
                         "[1, 1, 5, 2], got [1, 1, 4, 2]");
}

TEST(Reference, RowsWithoutKeys) {
  Case empty(2, 2, 1, 3, 0, 8, 8);
  AttentionResult result = empty.run();
  EXPECT_THAT(result.o, testing::Each(0.0));
  EXPECT_THAT(result.lse, testing::Each(-infinity));
  Case noQueries(1, 2, 1, 0, 3, 8, 8);
  EXPECT_TRUE(noQueries.run().lse.empty());
}

TEST(Reference, LargeScoresDoNotOverflow) {
  Case test(1, 1, 1, 1, 2, 8, 1);
  test.problem.scale = 1.0;
  for (int64_t e = 0; e < 8; ++e) {
    test.q.set({0, 0, 0, e}, 100.0);
    test.k.set({0, 0, 0, e}, 100.0);
    test.k.set({0, 0, 1, e}, 100.0);
  }
  test.v.set({0, 0, 0, 0}, 1.0);
  test.v.set({0, 0, 1, 0}, 3.0);
  AttentionResult result = test.run();
  EXPECT_DOUBLE_EQ(result.o[0], 2.0);
  EXPECT_DOUBLE_EQ(result.lse[0], 80000.0 + std::log(2.0));
}

TEST(Reference, Modifications) {
  Case test(2, 2, 1, 4, 5, 8, 8);
  test.problem.scoreMod = true;
  EXPECT_EQ(test.fail(),
            "reference: the problem has a score_mod, which was not given");
  test.inputs.scoreMod = [](double score, int64_t b, int64_t h, int64_t i,
                            int64_t j) {
    return score * 0.5 + 0.25 * b - 0.125 * h + 0.1 * i - 0.2 * j;
  };
  test.checkAgainstFormula(test.run(), keepAll);
  test.problem.maskMod = true;
  EXPECT_EQ(test.fail(),
            "reference: the problem has a mask_mod, which was not given");
  test.inputs.maskMod = [](double, int64_t, int64_t, int64_t i, int64_t j) {
    return (i + j) % 3 != 0 && i != 2;
  };
  test.checkAgainstFormula(test.run(),
                           [](int64_t i, int64_t j, int64_t, int64_t) {
                             return (i + j) % 3 != 0 && i != 2;
                           });
}

TEST(Reference, ChangedResults) {
  Case test(2, 2, 1, 4, 5, 8, 8);
  AttentionResult plain = test.run();
  test.problem.outMod = true;
  EXPECT_EQ(test.fail(),
            "reference: the problem has an out_mod, which was not given");
  test.inputs.outMod = [](double result, int64_t b, int64_t h, int64_t i,
                          int64_t column) {
    return 2 * result + 1000 * b + 100 * h + 10 * i + column;
  };
  // A factor of results stands behind it.
  test.problem.outScale = 0.5;
  AttentionResult changed = test.run();
  for (int64_t n = 0; n < int64_t(plain.o.size()); ++n) {
    int64_t row = n / 8, places = 1000 * (row / 8) + 100 * (row / 4 % 2) +
                                  10 * (row % 4) + n % 8;
    EXPECT_DOUBLE_EQ(changed.o[n], 0.5 * (2 * plain.o[n] + double(places)));
  }
}

TEST(Reference, StridesOfAnyOrder) {
  Case plain(2, 3, 1, 4, 5, 8, 8);
  AttentionResult expected = plain.run();
  // (batch, sequence, head, dim) with gaps.
  Tensor q(DType::F16, {2, 3, 4, 8}, {4 * 50, 16, 50, 1});
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t i = 0; i < 4; ++i)
        for (int64_t e = 0; e < 8; ++e)
          q.set({b, h, i, e}, plain.q.view.get({b, h, i, e}));
  plain.inputs.q = q.view;
  EXPECT_EQ(plain.run().o, expected.o);
}

TEST(Reference, VariableLengths) {
  Case packed(1, 2, 1, 9, 12, 8, 8);
  packed.problem.varlen = true;
  packed.problem.mask = MaskKind::Causal;
  packed.problem.align = MaskAlign::BottomRight;
  EXPECT_EQ(
      packed.fail(),
      "reference: the problem has cumulative lengths, which was not given");
  Tensor cuQ(DType::I32, {4}), cuK(DType::I32, {4});
  const int64_t starts[2][4] = {{0, 3, 3, 8}, {0, 5, 7, 11}};
  for (int64_t i = 0; i < 4; ++i) {
    cuQ.set({i}, starts[0][i]);
    cuK.set({i}, starts[1][i]);
  }
  packed.inputs.cuSeqlensQ = cuQ.view;
  packed.inputs.cuSeqlensK = cuK.view;
  AttentionResult result = packed.run();
  EXPECT_EQ(result.defined[7], 1);
  EXPECT_EQ(result.defined[8], 0);
  for (int64_t s = 0; s < 3; ++s) {
    int64_t nq = starts[0][s + 1] - starts[0][s];
    int64_t nk = starts[1][s + 1] - starts[1][s];
    Case single(1, 2, 1, nq, nk, 8, 8);
    single.problem = packed.problem;
    single.problem.varlen = false;
    // Views into the packed tensors.
    auto slice = [](TensorView view, int64_t first, int64_t rows) {
      view.data = view.data.drop_front(first * view.strides[2] * 2);
      view.shape[2] = rows;
      return view;
    };
    single.inputs.q = slice(packed.q.view, starts[0][s], nq);
    single.inputs.k = slice(packed.k.view, starts[1][s], nk);
    single.inputs.v = slice(packed.v.view, starts[1][s], nk);
    AttentionResult part = single.run();
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < nq; ++i) {
        int64_t row = h * 9 + starts[0][s] + i, partRow = h * nq + i;
        EXPECT_EQ(result.lse[row], part.lse[partRow]);
        for (int64_t e = 0; e < 8; ++e)
          EXPECT_EQ(result.o[row * 8 + e], part.o[partRow * 8 + e]);
      }
  }
  // The longest sequence has 5.
  packed.problem.maxSeqlenQ = 5;
  EXPECT_EQ(packed.run().lse, result.lse);
  packed.problem.maxSeqlenQ = 4;
  EXPECT_EQ(packed.fail(), "reference: \"cu_seqlens_q\": expected at most 4 "
                           "queries in sequence 2, got 5");
  cuQ.set({2}, 2);
  EXPECT_EQ(packed.fail(), "reference: \"cu_seqlens_q\": expected a value from "
                           "3 to 9 at index 2, got 2");
  cuQ.set({2}, 10);
  EXPECT_EQ(packed.fail(), "reference: \"cu_seqlens_q\": expected a value from "
                           "3 to 9 at index 2, got 10");
  cuQ.set({2}, 3);
  Tensor shorter(DType::I32, {2});
  shorter.set({1}, 4);
  packed.inputs.cuSeqlensK = shorter.view;
  EXPECT_EQ(packed.fail(), "reference: expected cumulative lengths of as many "
                           "sequences, got 3 and 1");
  Tensor flat(DType::I32, {0});
  packed.inputs.cuSeqlensK = flat.view;
  EXPECT_EQ(packed.fail(), "reference: \"cu_seqlens_k\": expected shape "
                           "[sequences + 1], got [0]");
  Case batched(2, 2, 1, 9, 12, 8, 8);
  batched.problem.varlen = true;
  batched.inputs.cuSeqlensQ = batched.inputs.cuSeqlensK = cuQ.view;
  EXPECT_EQ(batched.fail(),
            "reference: expected batch size 1 with variable lengths, got 2");
}

TEST(Reference, LengthsAndPages) {
  // Two sequences in pages of four keys: one in pages 3 and 0, one of 2 keys in
  // page 1 behind an entry that is not in the pool.
  Case paged(2, 2, 1, 3, 4, 8, 8), dense(2, 2, 1, 3, 8, 8, 8);
  Tensor k(DType::F16, {5, 1, 4, 8}), v(DType::F16, {5, 1, 4, 8});
  Tensor table(DType::I32, {2, 2}), lengths(DType::I32, {2});
  std::mt19937 random(7);
  for (Tensor *tensor : {&k, &v})
    tensor->randomise(random);
  constexpr int64_t pages[] = {3, 0, -1, 1}, keys[] = {7, 6};
  for (int64_t b = 0; b < 2; ++b) {
    lengths.set({b}, keys[b]);
    for (int64_t j = 0; j < 8; ++j) {
      int64_t page = pages[2 * b + j / 4];
      table.set({b, j / 4}, page);
      for (int64_t e = 0; e < 8; ++e)
        for (auto [from, to] : {std::pair(&k, &dense.k), {&v, &dense.v}})
          to->set({b, 0, j, e},
                  page < 0 ? 0 : from->view.get({page, 0, j % 4, e}));
    }
  }
  dense.inputs.q = paged.inputs.q;
  dense.inputs.kvLengths = paged.inputs.kvLengths = lengths.view;
  paged.inputs.k = k.view;
  paged.inputs.v = v.view;
  paged.inputs.pageTable = table.view;
  for (MaskKind mask : {MaskKind::None, MaskKind::Causal}) {
    paged.problem.mask = dense.problem.mask = mask;
    paged.problem.align = dense.problem.align = MaskAlign::BottomRight;
    AttentionResult expected = dense.run();
    EXPECT_EQ(paged.run().o, expected.o);
    EXPECT_EQ(paged.run().lse, expected.lse);
  }
  // Lengths out of range are those next to them.
  AttentionResult whole = paged.run();
  lengths.set({0}, 8), lengths.set({1}, 0);
  AttentionResult ends = paged.run();
  lengths.set({0}, 1000), lengths.set({1}, -3);
  EXPECT_EQ(paged.run().o, ends.o);
  EXPECT_NE(ends.o, whole.o);
  EXPECT_EQ(ends.lse.back(), -infinity);

  // The same table as a list, whose counts may lead out of it.
  Tensor list(DType::I32, {4}), counts(DType::I32, {3});
  for (int64_t entry = 0; entry < 4; ++entry)
    list.set({entry}, pages[entry]);
  counts.set({1}, 2), counts.set({2}, 9);
  lengths.set({0}, 7), lengths.set({1}, 6);
  paged.inputs.pageTable = list.view;
  paged.inputs.pageIndptr = counts.view;
  EXPECT_EQ(paged.run().o, whole.o);
  paged.inputs.pageIndptr = std::nullopt;
  EXPECT_THAT(paged.fail(),
              HasSubstr("reference: \"page_table\": expected a row for each of "
                        "2 sequences, got [4]"));
}

TEST(Reference, SelectedKeys) {
  // A list of keys with places that are left out is as good as one without.
  Case some(1, 2, 1, 3, 1, 8, 8), all(1, 2, 1, 3, 1, 8, 8);
  Tensor k(DType::F16, {9, 1, 1, 8}), v(DType::F16, {9, 1, 1, 8});
  Tensor gaps(DType::I32, {1, 6}), dense(DType::I32, {1, 3});
  std::mt19937 random(11);
  for (Tensor *tensor : {&k, &v})
    tensor->randomise(random);
  constexpr int64_t keys[] = {-1, 7, 2, 9, -1, 4};
  for (int64_t place = 0; place < 6; ++place)
    gaps.set({0, place}, keys[place]);
  constexpr int64_t seen[] = {7, 2, 4};
  for (auto [place, key] : llvm::enumerate(seen))
    dense.set({0, int64_t(place)}, key);
  all.inputs.q = some.inputs.q;
  all.inputs.k = some.inputs.k = k.view;
  all.inputs.v = some.inputs.v = v.view;
  some.inputs.pageTable = gaps.view;
  all.inputs.pageTable = dense.view;
  some.problem.selected = all.problem.selected = true;
  AttentionResult expected = all.run();
  EXPECT_EQ(some.run().o, expected.o);
  EXPECT_EQ(some.run().lse, expected.lse);
  // Without the promise the places are keys of zeros.
  some.problem.selected = false;
  EXPECT_NE(some.run().o, expected.o);
  some.problem.selected = true;
  some.inputs.pageTable = std::nullopt;
  some.inputs.k = some.k.view;
  some.inputs.v = some.v.view;
  EXPECT_EQ(some.fail(), "reference: the problem has a selection of keys, "
                         "which was not given");
}

TEST(Reference, GoesOnFromState) {
  // Two halves of the keys, one from the results of the other one, are all.
  Case all(2, 2, 1, 3, 8, 8, 8), first(2, 2, 1, 3, 8, 8, 8),
      second(2, 2, 1, 3, 8, 8, 8);
  Tensor o(DType::F32, {2, 2, 3, 8}), lse(DType::F32, {2, 2, 3});
  for (Case *half : {&first, &second}) {
    half->inputs = all.inputs;
    for (TensorView *view : {&half->inputs.k, &half->inputs.v}) {
      view->shape[2] = 4;
      if (half == &second)
        view->data = view->data.drop_front(4 * 8 * 2);
    }
  }
  AttentionResult state = first.run(), expected = all.run();
  for (int64_t row = 0; row < 12; ++row) {
    int64_t b = row / 6, h = row / 3 % 2, i = row % 3;
    lse.set({b, h, i}, state.lse[row]);
    for (int64_t c = 0; c < 8; ++c)
      o.set({b, h, i, c}, state.o[row * 8 + c]);
  }
  second.problem.initState = true;
  EXPECT_EQ(second.fail(), "reference: the problem has a state to go on from, "
                           "which was not given");
  second.inputs.initO = o.view;
  second.inputs.initLse = lse.view;
  AttentionResult merged = second.run();
  for (auto [got, want] : llvm::zip(merged.o, expected.o))
    EXPECT_NEAR(got, want, 1e-6);
  for (auto [got, want] : llvm::zip(merged.lse, expected.lse))
    EXPECT_NEAR(got, want, 1e-6);
  // A state of no keys may hold anything.
  lse.set({0, 0, 0}, -infinity);
  o.set({0, 0, 0, 5}, std::nan(""));
  second.problem.initState = false;
  AttentionInputs inputs = second.inputs;
  second.inputs.initO = second.inputs.initLse = std::nullopt;
  double alone = second.run().o[5];
  second.problem.initState = true;
  second.inputs = inputs;
  EXPECT_EQ(second.run().o[5], alone);
  second.inputs.initLse->shape[2] = 2;
  EXPECT_EQ(second.fail(), "reference: \"init_lse\": expected shape [2, 2, 3], "
                           "got [2, 2, 2]");
}

TEST(Reference, ChecksShapes) {
  Case test(1, 4, 2, 3, 5, 8, 16);
  test.problem.heads = 2;
  EXPECT_EQ(test.fail(), "reference: \"q\": expected shape [1, 2, 3, 8], got "
                         "[1, 4, 3, 8]");
  test.problem.heads = 4;
  test.problem.dv = 8;
  EXPECT_EQ(test.fail(), "reference: \"v\": expected shape [1, 2, 5, 8], got "
                         "[1, 2, 5, 16]");
  test.inputs.k.shape.pop_back();
  EXPECT_EQ(test.fail(),
            "reference: expected operands of rank 4, got [1, 2, 5]");
}

TEST(Reference, NonFiniteValues) {
  Case test(1, 1, 1, 2, 3, 8, 8);
  test.q.set({0, 0, 0, 0}, NAN);
  AttentionResult result = test.run();
  EXPECT_TRUE(std::isnan(result.lse[0]));
  EXPECT_TRUE(std::isnan(result.o[3]));
  EXPECT_FALSE(std::isnan(result.lse[1]));
  // A hidden key cannot spoil a row.
  Case hidden(1, 1, 1, 2, 3, 8, 8);
  hidden.k.set({0, 0, 2, 0}, NAN);
  hidden.problem.mask = MaskKind::Causal;
  EXPECT_FALSE(std::isnan(hidden.run().lse[1]));
}
