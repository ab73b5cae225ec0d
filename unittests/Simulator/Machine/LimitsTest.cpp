//===- LimitsTest.cpp - Launches that no device or machine can hold -------===//

#include "../TestKernel.h"
#include "gmock/gmock.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;
using ::testing::HasSubstr;

namespace {

std::string errorOf(const std::string &body, LaunchConfig config = {},
                    const std::string &extra = "") {
  return runText(wrapKernel(body, "sm_90a", extra), {}, 4, config).error;
}

} // namespace

TEST(Limits, LaunchSizes) {
  auto launch = [](std::array<uint32_t, 3> grid, std::array<uint32_t, 3> block,
                   std::array<uint32_t, 3> cluster) {
    LaunchConfig config;
    config.grid = grid;
    config.block = block;
    config.cluster = cluster;
    return errorOf("", config);
  };
  // 2^32 CTAs and 2^64 threads are not none.
  EXPECT_THAT(launch({1u << 31, 2, 1}, {32, 1, 1}, {1, 1, 1}),
              HasSubstr("expected at most 2147483647 CTAs, 1024 threads and "
                        "clusters of 16 in dimension 0, got 2147483648"));
  EXPECT_THAT(launch({1, 1, 1}, {1u << 22, 1u << 21, 1u << 21}, {1, 1, 1}),
              HasSubstr("got 1, 4194304 and 1"));
  EXPECT_THAT(launch({1u << 31, 1, 1}, {32, 1, 1}, {1u << 31, 2, 1}),
              HasSubstr("in dimension 0, got 2147483648, 32 and 2147483648"));
  EXPECT_EQ(launch({1u << 16, 1u << 15, 2}, {32, 1, 1}, {1, 1, 1}),
            "expected at most 4194303 clusters in a simulated launch, got "
            "4294967296");
  EXPECT_EQ(launch({1, 1, 1}, {1024, 2, 1}, {1, 1, 1}),
            "expected at most 1024 threads a CTA, got 2048");
}

TEST(Limits, Variables) {
  EXPECT_EQ(errorOf(".local .b8 x[524288];\n"), "");
  EXPECT_THAT(errorOf(".local .b8 x[500000];\n.local .b8 y[24289];\n"),
              HasSubstr("expected at most 524288 bytes of local memory a "
                        "thread, got 524289 with 'y'"));
  EXPECT_THAT(errorOf(".local .b8 x[4294967296];\n"),
              HasSubstr("got 4294967296 with 'x'"));
  EXPECT_THAT(errorOf(".shared .b8 x[200000];\n.shared .b8 y[32449];\n"),
              HasSubstr("expected at most 232448 bytes of shared memory, got "
                        "232449 with 'y'"));
  EXPECT_THAT(errorOf(".shared .b64 x[2305843009213693952];\n"),
              HasSubstr("expected 'x' to have at most 1099511627776 bytes, got "
                        "more"));
  EXPECT_THAT(errorOf(".local .b8 x[-1];\n"),
              HasSubstr("expected 'x' to have"));
  LaunchConfig config;
  config.memoryLimit = 100000;
  EXPECT_EQ(
      errorOf("", config, ".global .b8 x[30000];\n.global .b8 y[20000];\n"),
      "");
  EXPECT_EQ(
      errorOf("", config, ".global .b8 x[30000];\n.global .b8 y[20001];\n"),
      "expected variables of the module that fit into 97.7 KiB of "
      "memory, got 97.7 KiB with 'y'");
  EXPECT_THAT(errorOf("", {}, ".global .b8 x[1000000000000];\n"),
              HasSubstr("of memory, got 1.8 TiB with 'x'"));
}

TEST(Limits, LocalMemoryOfAllThreads) {
  LaunchConfig config;
  config.block = {1024, 1, 1};
  config.threads = 1;
  config.memoryLimit = 64 * 1024 * 1024;
  EXPECT_EQ(errorOf(".local .b8 x[32768];\n", config), "");
  EXPECT_EQ(errorOf(".local .b8 x[32769];\n", config),
            "expected local memory of the CTAs that run at once to fit into "
            "64.0 MiB, got 64.0 MiB with 32784 bytes a thread");
}

TEST(Limits, RegistersOfAllThreads) {
  LaunchConfig config;
  config.block = {1024, 1, 1};
  config.threads = 1;
  config.memoryLimit = 64 * 1024 * 1024;
  EXPECT_EQ(errorOf(".reg .b32 %x<10000>;\n", config), "");
  EXPECT_THAT(
      errorOf(".reg .b32 %x<100000>;\n", config),
      HasSubstr("expected registers of the CTAs that run at once to "
                "fit into 64.0 MiB, got 440.8 MiB with 100284 registers"));
}

TEST(Limits, Parameters) {
  auto parse = [](const char *size) {
    std::string text = std::string(".version 8.8\n.target sm_90a\n"
                                   ".address_size 64\n.visible .entry k(.param "
                                   ".b8 x[") +
                       size + "])\n{\nret;\n}\n";
    auto program = parsePTX(text, "test.ptx");
    return program ? "" : llvm::toString(program.takeError());
  };
  EXPECT_EQ(parse("32764"), "");
  EXPECT_THAT(parse("4294967304"),
              HasSubstr("expected at most 32764 bytes of parameters, got "
                        "4294967304 with 'x'"));
}
