//===- ProbeTest.cpp - The simulator answers as an H200 does --------------===//
//
// test/Simulator/Inputs/Probes/probes.ptx asks what the manual leaves open;
// h200.json has what an H200 answered.
//
//===----------------------------------------------------------------------===//

#include "TestKernel.h"
#include "attn/Simulator/Async/TensorMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"

using namespace mlir::attn::sim;
using namespace mlir::attn::sim::testing;

namespace {

std::string readFile(const char *name) {
  auto buffer =
      llvm::MemoryBuffer::getFile(std::string(ATTN_PROBES) + "/" + name);
  return buffer ? (*buffer)->getBuffer().str() : "";
}

class Probes : public ::testing::Test {
protected:
  static void SetUpTestSuite() {
    program = llvm::cantFail(parsePTX(readFile("probes.ptx"), "probes.ptx"));
    answers = llvm::cantFail(llvm::json::parse(readFile("h200.json")));
  }
  static void TearDownTestSuite() { program.reset(); }

  std::vector<uint32_t> answerOf(llvm::StringRef name) {
    std::vector<uint32_t> words;
    const auto *list =
        answers.getAsObject()->getObject("probes")->getArray(name);
    EXPECT_TRUE(list) << name.str();
    for (const llvm::json::Value &v : *list)
      words.push_back(*v.getAsInteger());
    return words;
  }

  /// Runs a probe; `out` has as many words as the answer.
  std::vector<uint32_t> ask(llvm::StringRef name, size_t words,
                            LaunchConfig config = LaunchConfig()) {
    const KernelInfo *kernel = program->findKernel(name);
    EXPECT_TRUE(kernel) << name.str();
    config.kernel = name.str();
    config.block = kernel->reqntid;
    if (kernel->reqnctapercluster[0])
      config.grid = config.cluster = kernel->reqnctapercluster;
    config.dynamicShared = 32768;
    config.sanitize = sanitizes;
    Memory memory;
    std::vector<uint16_t> source(80 * 20);
    for (size_t i = 0; i < source.size(); ++i)
      source[i] = i;
    uint64_t in = memory.allocate(2 * source.size(), "in");
    uint64_t out = memory.allocate(4 * words, "out");
    llvm::cantFail(memory.write(in, bytesOf(source)));
    if (zeroed)
      llvm::cantFail(memory.fill(out, 4 * words, 0));
    TensorMapInfo map;
    map.element = TensorMapElement::U16;
    map.address = in;
    map.rank = 2;
    map.dims = {80, 20, 1, 1, 1};
    map.strides = {0, 160, 0, 0, 0};
    map.box = {64, 8, 1, 1, 1};
    map.swizzleBytes = 128;
    config.params.assign(144, 0);
    auto bytes = llvm::cantFail(encodeTensorMap(map));
    std::memcpy(config.params.data(), bytes.data(), 128);
    std::memcpy(config.params.data() + 128, &in, 8);
    std::memcpy(config.params.data() + 136, &out, 8);
    RunReport report = llvm::cantFail(run(*program, memory, config));
    std::string text;
    llvm::raw_string_ostream os(text);
    report.print(os, "probes.ptx");
    EXPECT_TRUE(report.isClean()) << text;
    std::vector<uint8_t> raw(4 * words);
    llvm::cantFail(memory.read(out, raw));
    std::vector<uint32_t> result(words);
    std::memcpy(result.data(), raw.data(), raw.size());
    return result;
  }

  /// The same answer in every corner of the schedules.
  void expectAgrees(llvm::StringRef name) {
    std::vector<uint32_t> want = answerOf(name);
    for (Schedule schedule : {Schedule::RoundRobin, Schedule::Random})
      for (AsyncTiming reads : {AsyncTiming::Issue, AsyncTiming::Completion})
        for (AsyncTiming writes :
             {AsyncTiming::Issue, AsyncTiming::Completion}) {
          LaunchConfig config;
          config.schedule = schedule;
          config.asyncReads = reads;
          config.asyncWrites = writes;
          EXPECT_EQ(ask(name, want.size(), config), want) << name.str();
        }
  }

  bool zeroed = false;
  bool sanitizes = true;
  static std::unique_ptr<Program> program;
  static llvm::json::Value answers;
};

std::unique_ptr<Program> Probes::program;
llvm::json::Value Probes::answers = nullptr;

} // namespace

TEST_F(Probes, BoxesOutOfBoundsSignalAllBytes) { expectAgrees("oob_box"); }
TEST_F(Probes, SwizzleActsOnTheAddress) { expectAgrees("swizzle_unaligned"); }
TEST_F(Probes, BytesMayComeBeforeTheyAreExpected) {
  expectAgrees("complete_before_expect");
}
TEST_F(Probes, AddressesHoldTheRank) { expectAgrees("address_bits"); }
TEST_F(Probes, NamedBarriersCountArrivals) { expectAgrees("arrive_twice"); }
TEST_F(Probes, ExitWithOpenBarriers) { expectAgrees("dangling_exit"); }
TEST_F(Probes, ParityOfAFreshBarrier) { expectAgrees("fresh_parity"); }
TEST_F(Probes, MulticastSignalsEachCta) { expectAgrees("multicast"); }
TEST_F(Probes, BaseOffsetOfWgmma) { expectAgrees("wgmma_base_offset"); }
TEST_F(Probes, ElectsTheLowestLane) { expectAgrees("elect_lane"); }
TEST_F(Probes, OverwriteWithoutProxyFence) {
  zeroed = true;
  expectAgrees("overwrite_without_proxy_fence");
}
TEST_F(Probes, RemoteArriveOfDefaultScope) {
  zeroed = true;
  // An H100 has shown since that nothing orders its stores.
  sanitizes = false;
  expectAgrees("remote_arrive_default_scope");
}
TEST_F(Probes, ExitAfterReadsOfABulkStore) { expectAgrees("exit_after_read"); }
TEST_F(Probes, CountsThatArrivalsReturn) { expectAgrees("arrive_states"); }
