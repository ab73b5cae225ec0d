//===- KernelTest.cpp - Kernels compiled by nvcc --------------------------===//
//
// Inputs/kernels.cu holds the sources.
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cmath>

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

class Kernels : public ::testing::Test {
protected:
  static const std::string &source() {
    static const std::string ptx = [] {
      auto buffer = llvm::MemoryBuffer::getFile(
          std::string(ATTN_SIMULATOR_INPUTS) + "/kernels.ptx");
      return (*buffer)->getBuffer().str();
    }();
    return ptx;
  }
  static const Program &program() {
    static std::unique_ptr<Program> parsed =
        llvm::cantFail(parsePTX(source(), "kernels.ptx"));
    return *parsed;
  }

  Memory memory;
  LaunchConfig config;

  template <typename T>
  uint64_t put(const std::vector<T> &v, const char *name) {
    uint64_t a = memory.allocate(v.size() * sizeof(T), name);
    llvm::cantFail(memory.write(a, bytesOf(v)));
    return a;
  }
  template <typename T>
  std::vector<T> get(uint64_t a, size_t n) {
    std::vector<T> v(n);
    llvm::cantFail(memory.read(
        a, llvm::MutableArrayRef(reinterpret_cast<uint8_t *>(v.data()),
                                 n * sizeof(T))));
    return v;
  }
  template <typename T>
  void arg(T value) {
    size_t at = llvm::alignTo(config.params.size(), sizeof(T));
    config.params.resize(at + sizeof(T));
    std::memcpy(config.params.data() + at, &value, sizeof(T));
  }
  RunReport go(const char *kernel, unsigned grid, unsigned block) {
    config.kernel = kernel;
    config.grid[0] = grid;
    config.block[0] = block;
    // From the kernel's entry to the next one.
    llvm::StringRef rest =
        llvm::StringRef(source()).split(".entry " + std::string(kernel)).second;
    recordText(rest.split(".entry").first);
    return llvm::cantFail(run(program(), memory, config));
  }
  static std::string text(const RunReport &r) {
    std::string s;
    llvm::raw_string_ostream os(s);
    r.print(os, "kernels.ptx");
    return s;
  }
};

} // namespace

TEST_F(Kernels, Saxpy) {
  std::vector<float> x(1000), y(1000);
  for (int i = 0; i < 1000; ++i) {
    x[i] = i * 0.5f;
    y[i] = -i;
  }
  uint64_t xa = put(x, "x"), ya = put(y, "y");
  arg(1000);
  arg(3.0f);
  arg(xa);
  arg(ya);
  RunReport r = go("saxpy", 4, 256);
  ASSERT_TRUE(r.isClean()) << text(r);
  auto got = get<float>(ya, 1000);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(got[i], std::fma(3.0f, x[i], y[i]));
}

TEST_F(Kernels, SaxpyOutOfBounds) {
  uint64_t xa = put(std::vector<float>(1000), "x"),
           ya = put(std::vector<float>(999), "y");
  arg(1000);
  arg(3.0f);
  arg(xa);
  arg(ya);
  RunReport r = go("saxpy", 4, 256);
  ASSERT_EQ(r.countErrors(FindingKind::OutOfBounds), 1u) << text(r);
  EXPECT_EQ(r.findings[0].buffer, "y");
  EXPECT_EQ(r.findings[0].offset, 999u * 4);
  EXPECT_EQ(r.findings[0].second->file, "kernels.cu");
  EXPECT_GT(r.findings[0].second->line, 0u);
}

TEST_F(Kernels, Softmax) {
  const int rows = 3, columns = 300;
  std::vector<float> in(rows * columns);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = std::sin(i * 1.7) * 4;
  uint64_t a = put(in, "in"), o = memory.allocate(in.size() * 4, "out");
  arg(columns);
  arg(a);
  arg(o);
  RunReport r = go("softmax", rows, 128);
  ASSERT_TRUE(r.isClean()) << text(r);
  EXPECT_TRUE(r.findings.empty()) << text(r);
  auto got = get<float>(o, in.size());
  for (int row = 0; row < rows; ++row) {
    double m = -1e30, s = 0;
    for (int c = 0; c < columns; ++c)
      m = std::max<double>(m, in[row * columns + c]);
    for (int c = 0; c < columns; ++c)
      s += std::exp(in[row * columns + c] - m);
    for (int c = 0; c < columns; ++c)
      EXPECT_NEAR(got[row * columns + c],
                  std::exp(in[row * columns + c] - m) / s, 1e-6);
  }
}

TEST_F(Kernels, SoftmaxRacy) {
  uint64_t a = put(std::vector<float>(256, 1.0f), "in"),
           o = memory.allocate(256 * 4, "out");
  arg(128);
  arg(a);
  arg(o);
  RunReport r = go("softmax_racy", 2, 128);
  EXPECT_GE(r.countErrors(FindingKind::Race), 1u) << text(r);
}

TEST_F(Kernels, Histogram) {
  std::vector<unsigned> in(5000), want(64);
  for (size_t i = 0; i < in.size(); ++i) {
    in[i] = i * 2654435761u >> 7;
    ++want[in[i] % 64];
  }
  uint64_t a = put(in, "in"), o = put(std::vector<unsigned>(64), "bins");
  arg(5000);
  arg(a);
  arg(o);
  RunReport r = go("histogram", 6, 128);
  ASSERT_TRUE(r.isClean()) << text(r);
  EXPECT_EQ(get<unsigned>(o, 64), want);
}

TEST_F(Kernels, LastBlockSum) {
  const unsigned blocks = 9;
  std::vector<float> in(blocks * 64);
  float want = 0;
  for (size_t i = 0; i < in.size(); ++i)
    want += in[i] = float(i % 17);
  for (bool random : {false, true}) {
    config.params.clear();
    config.schedule = random ? Schedule::Random : Schedule::RoundRobin;
    uint64_t a = put(in, "in"), p = memory.allocate(blocks * 4, "partial"),
             o = memory.allocate(4, "out");
    arg(a);
    arg(p);
    arg(o);
    RunReport r = go("last_block_sum", blocks, 64);
    ASSERT_TRUE(r.isClean()) << text(r);
    EXPECT_TRUE(r.findings.empty()) << text(r);
    EXPECT_EQ(get<float>(o, 1)[0], want);
    RunReport bad = go("last_block_sum_racy", blocks, 64);
    EXPECT_GE(bad.countErrors(FindingKind::Race), 1u) << text(bad);
  }
}

TEST_F(Kernels, Transpose) {
  const int rows = 70, columns = 45;
  std::vector<uint16_t> in(rows * columns);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = i;
  uint64_t a = put(in, "in"), o = memory.allocate(in.size() * 2, "out");
  arg(rows);
  arg(columns);
  arg(a);
  arg(o);
  config.grid[1] = 3;
  config.block[1] = 8;
  RunReport r = go("transpose", 2, 32);
  ASSERT_TRUE(r.isClean()) << text(r);
  auto got = get<uint16_t>(o, in.size());
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      ASSERT_EQ(got[j * rows + i], in[i * columns + j]);
}

TEST_F(Kernels, PipelinedCopy) {
  const int tiles = 5;
  std::vector<float> in(tiles * 128 * 4);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = i;
  for (AsyncTiming timing :
       {AsyncTiming::Issue, AsyncTiming::Completion, AsyncTiming::Random}) {
    config.params.clear();
    config.asyncReads = config.asyncWrites = timing;
    config.schedule = Schedule::Random;
    uint64_t a = put(in, "in"), o = memory.allocate(in.size() * 4, "out");
    arg(tiles);
    arg(a);
    arg(o);
    RunReport r = go("pipelined_copy", 1, 128);
    ASSERT_TRUE(r.isClean()) << text(r);
    EXPECT_TRUE(r.findings.empty()) << text(r);
    auto got = get<float>(o, in.size());
    for (int t = 0; t < tiles; ++t)
      for (int i = 0; i < 512; ++i)
        ASSERT_EQ(got[t * 512 + i], in[t * 512 + (127 - i / 4) * 4 + i % 4]);
  }
}

TEST_F(Kernels, Mixture) {
  const int n = 200;
  std::vector<int> in(n);
  for (int i = 0; i < n; ++i)
    in[i] = i * 37 % 101;
  uint64_t a = put(in, "in"), o = memory.allocate(n * 8, "out");
  arg(n);
  arg(a);
  arg(o);
  RunReport r = go("mixture", 2, 128);
  ASSERT_TRUE(r.isClean()) << text(r);
  auto got = get<double>(o, n);
  for (int i = 0; i < n; ++i) {
    double want = 0, table[4] = {1, 0.5, 0.25, 0.125}, c[4];
    for (int k = 0; k < 4; ++k)
      c[(k + in[i]) & 3] = table[k];
    double x = i * 0.01;
    switch (in[i] % 7) {
    case 0:
      want = ((c[3] * x + c[2]) * x + c[1]) * x + c[0];
      break;
    case 1:
      want = std::sqrt(double(i));
      break;
    case 2:
      want = in[i] / (i + 1);
      break;
    case 3:
      want = (long long)in[i] * i % 1000003;
      break;
    case 4:
      want = __builtin_popcount(in[i]) + (in[i] ? __builtin_clz(in[i]) : 32) +
             __builtin_ffs(in[i]);
      break;
    case 5:
      want = got[i];
      EXPECT_NEAR(got[i], i * 0.37, i * 0.37 * 5e-4);
      break;
    default:
      want = 1 / std::sqrt(i + 1.0) + std::log(i + 1.0) + std::sin(i) +
             std::tanh(i * 0.1);
      break;
    }
    EXPECT_NEAR(got[i], want, 1e-5 * std::max(1.0, std::fabs(want))) << i;
  }
}

TEST_F(Kernels, HalfMath) {
  const int n = 64;
  // 1.0 and 2.0 in each half.
  uint64_t a = put(std::vector<uint32_t>(n, 0x40003c00), "a"),
           b = put(std::vector<uint32_t>(n, 0x3c003c00), "b"),
           c = memory.allocate(n * 4, "c"), d = memory.allocate(n * 4, "d");
  arg(n);
  arg(a);
  arg(b);
  arg(c);
  arg(d);
  RunReport r = go("half_math", 1, 64);
  ASSERT_TRUE(r.isClean()) << text(r);
  // min(a·b + a, a + 2^b): (1+1, 2+2) against (1+2, 2+2).
  EXPECT_EQ(get<uint32_t>(c, 1)[0], 0x44004000u);
  // bf16: max(x², 0) with x = (1, 2).
  EXPECT_EQ(get<uint32_t>(d, 1)[0], 0x40803f80u);
}
