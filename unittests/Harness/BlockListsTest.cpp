//===- BlockListsTest.cpp - tests of lists of blocks in the reference -----===//

#include "TestTensor.h"
#include "attn/Harness/Reference.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::attn;
using namespace mlir::attn::sim;

namespace {

/// One head with two lists of two queries each, of blocks of 4 of 12 keys.
class BlockLists : public ::testing::Test {
protected:
  BlockLists() {
    std::mt19937 random(7);
    for (Tensor *tensor : {&q, &k})
      tensor->randomise(random);
    inputs.q = q.view;
    inputs.k = inputs.v = k.view;
    inputs.blockCounts = counts.view;
    inputs.blockIndices = indices.view;
    problem.d = problem.dv = 8;
    problem.maskMod = true;
    problem.blockRows = 2;
    problem.blockKeys = 4;
  }

  void set(llvm::ArrayRef<int64_t> numbers, llvm::ArrayRef<int64_t> blocks) {
    for (int64_t i = 0; i < 4; ++i)
      counts.set({0, 0, i / 2, i % 2}, numbers[i]);
    for (int64_t i = 0; i < 6; ++i)
      indices.set({0, 0, i / 3, i % 3}, blocks[i]);
  }

  std::vector<double> run() {
    return cantFail(computeReference(problem, inputs)).o;
  }

  std::string fail() {
    auto result = computeReference(problem, inputs);
    return result ? "no error" : llvm::toString(result.takeError());
  }

  Tensor q{DType::F16, {1, 1, 4, 8}}, k{DType::F16, {1, 1, 12, 8}};
  Tensor counts{DType::I32, {1, 1, 2, 2}}, indices{DType::I32, {1, 1, 2, 3}};
  AttentionProblem problem;
  AttentionInputs inputs;
};

} // namespace

TEST_F(BlockLists, SayWhatIsSeen) {
  // Full block 2 and partial block 0; full ones 1 and 2. More are not there.
  set({2, 1, 9, 2}, {2, 0, 1, 1, 2, -7});
  inputs.maskMod = [](double, int64_t, int64_t, int64_t, int64_t j) {
    return j % 2 == 0;
  };
  std::vector<double> listed = run();
  problem.blockRows = problem.blockKeys = 0;
  inputs.blockCounts = inputs.blockIndices = std::nullopt;
  inputs.maskMod = [](double, int64_t, int64_t, int64_t i, int64_t j) {
    return i < 2 ? j >= 8 || (j < 4 && j % 2 == 0) : j >= 4;
  };
  EXPECT_EQ(listed, run());
}

TEST_F(BlockLists, WrongShapesAreRefused) {
  inputs.maskMod = [](double, int64_t, int64_t, int64_t, int64_t) {
    return true;
  };
  problem.blockKeys = 5;
  EXPECT_EQ(fail(), "reference: expected keys in whole blocks of 5, got 12");
  problem.blockKeys = 4;
  problem.blockRows = 1;
  EXPECT_EQ(fail(), "reference: expected a list of blocks, and two counts, for "
                    "each 1 queries of each batch and head");
  problem.blockRows = 0;
  EXPECT_EQ(fail(), "reference: expected lists of blocks, their counts and "
                    "sizes, or none");
}
