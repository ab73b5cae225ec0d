//===- ExampleTest.cpp - the example of docs/Simulator.md -----------------===//
//
// What stands between the markers is the page's example, to the letter.
//
//===----------------------------------------------------------------------===//
#include "../Simulator/TestKernel.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"

// example begins
#include "attn/Cost/Timeline.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

/// Runs kernel k(const float *in, float *out) of `ptx` on 128 elements.
llvm::Expected<std::vector<float>> runKernel(llvm::StringRef ptx,
                                             std::vector<float> in) {
  llvm::Expected<std::unique_ptr<Program>> program = parsePTX(ptx, "k.ptx");
  if (!program)
    return program.takeError();
  Memory memory;
  uint64_t addresses[] = {memory.allocate(512, "in"),
                          memory.allocate(512, "out")};
  const auto *bytes = reinterpret_cast<const uint8_t *>(in.data());
  if (llvm::Error error = memory.write(addresses[0], {bytes, 512}))
    return std::move(error);
  LaunchConfig launch;
  launch.kernel = "k";
  launch.block = {128, 1, 1};
  launch.tracedClusters = 1;
  bytes = reinterpret_cast<const uint8_t *>(addresses);
  launch.params.assign(bytes, bytes + sizeof(addresses));
  llvm::Expected<RunReport> report = run(**program, memory, launch);
  if (!report)
    return report.takeError();
  if (!report->isClean())
    report->print(llvm::errs(), "k.ptx");
  llvm::Expected<Timeline> timeline =
      replay(*report->trace, llvm::cantFail(lookupTarget("sm_90a")),
             /*resident=*/1);
  if (!timeline)
    return timeline.takeError();
  llvm::outs() << timeline->cycles << " cycles\n";
  std::vector<float> out(128);
  if (llvm::Error error = memory.read(
          addresses[1], {reinterpret_cast<uint8_t *>(out.data()), 512}))
    return std::move(error);
  return out;
}
// example ends

TEST(Example, Runs) {
  std::vector<float> in(128, 3);
  auto out = runKernel(mlir::attn::sim::testing::wrapKernel(
                           "mul.wide.u32 %d2, %r0, 4;\nadd.u64 %d3, %d0, %d2;\n"
                           "ld.global.f32 %r1, [%d3];\nadd.f32 %r1, %r1, %r1;\n"
                           "add.u64 %d3, %d1, %d2;\nst.global.f32 [%d3], %r1;",
                           "sm_90a"),
                       in);
  ASSERT_TRUE(bool(out)) << llvm::toString(out.takeError());
  for (float value : *out)
    EXPECT_EQ(value, 6);
}

TEST(Example, IsThePages) {
  auto read = [](const char *path) {
    auto buffer =
        llvm::MemoryBuffer::getFile(std::string(ATTN_SOURCE_DIR) + "/" + path);
    return buffer ? (*buffer)->getBuffer().str() : std::string();
  };
  std::string source = read("unittests/Cost/ExampleTest.cpp");
  llvm::StringRef example = llvm::StringRef(source)
                                .split("// example begins\n")
                                .second.split("// example ends\n")
                                .first;
  EXPECT_FALSE(example.empty());
  EXPECT_NE(read("docs/Simulator.md").find("```c++\n" + example.str() + "```"),
            std::string::npos);
}
