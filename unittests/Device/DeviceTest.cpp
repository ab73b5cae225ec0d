//===- DeviceTest.cpp - Modules, launches and streams ---------------------===//

#include "attn/Device/Graph.h"
#include "attn/Device/Recording.h"
#include "attn/Harness/Npy.h"
#include "attn/Harness/Recorded.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace mlir::attn;
using namespace mlir::attn::device;
using ::testing::HasSubstr;

namespace {

/// Adds one to 32 words, counts its launches, and has parts for bad launches.
const char text[] = R"(.version 8.0
.target sm_80
.address_size 64
.global .align 4 .u32 launches;
.extern .shared .align 16 .b8 smem[];
.visible .entry increment(.param .u64 p) {
  .reg .b64 %d<3>;
  .reg .b32 %r<4>;
  .reg .pred %q;
  ld.param.u64 %d0, [p];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d1, %d0, %d1;
  ld.global.u32 %r1, [%d1];
  add.u32 %r1, %r1, 1;
  st.global.u32 [%d1], %r1;
  setp.ne.u32 %q, %r0, 0;
  @%q bra END;
  atom.global.add.u32 %r2, [launches], 1;
END:
  ret;
}
.visible .entry fails(.param .u64 p) { trap; }
)";

class DeviceTest : public ::testing::Test {
protected:
  DeviceTest() : chip(llvm::cantFail(lookupTarget("sm_80"))) {
    DeviceOptions options;
    options.memory = 1 << 24;
    device = std::make_unique<Device>(chip, log, options);
    module = llvm::cantFail(device->loadModule(text));
    function = llvm::cantFail(device->getFunction(*module, "increment"));
    words = llvm::cantFail(device->getMemory().allocate(128, "words"));
    llvm::cantFail(device->fill(words, 0, 4, 32, device->getDefaultStream()));
    device->getOrder().synchroniseAll();
  }
  LaunchRequest makeRequest() const {
    LaunchRequest request;
    request.function = &function;
    request.block = {32, 1, 1};
    request.params.resize(8);
    std::memcpy(request.params.data(), &words, 8);
    return request;
  }
  std::string launchError(const LaunchRequest &request, Status status) {
    auto [got, message] =
        takeStatus(device->launch(request, device->getDefaultStream()));
    EXPECT_EQ(int(got), int(status)) << message;
    return message;
  }
  uint32_t readWord(uint64_t address) {
    uint32_t word = 0;
    llvm::cantFail(device->getMemory().copy(reinterpret_cast<uint64_t>(&word),
                                            address, 4));
    return word;
  }

  const TargetRow &chip;
  FindingLog log;
  std::unique_ptr<Device> device;
  Module *module = nullptr;
  Function function;
  uint64_t words = 0;
};

TEST_F(DeviceTest, LaunchesShareMemoryAndVariables) {
  for (unsigned i = 0; i < 3; ++i)
    llvm::cantFail(device->launch(makeRequest(), device->getDefaultStream()));
  EXPECT_EQ(readWord(words + 4), 3u);
  EXPECT_EQ(readWord(module->variables.find("launches")->address), 3u);
  EXPECT_EQ(log.count(), 0u);
  EXPECT_EQ(log.getKernels().at("increment").launches, 3u);
  uint64_t variable = module->variables.find("launches")->address;
  EXPECT_EQ(int(takeStatus(device->free(variable, nullptr, "cuMemFree")).first),
            int(Status::InvalidValue));
  llvm::cantFail(device->unloadModule(*module));
  EXPECT_EQ(device->getMemory().find(variable), nullptr);
}

TEST_F(DeviceTest, StreamsWithoutAnEventRace) {
  Stream first = device->makeStream(StreamKind::NonBlocking);
  Stream second = device->makeStream(StreamKind::NonBlocking);
  LaunchRequest request = makeRequest();
  request.site = "first.py:3";
  llvm::cantFail(device->launch(request, first));
  Event event;
  device->record(event, first);
  device->wait(second, event);
  request.site = "second.py:4";
  llvm::cantFail(device->launch(request, second));
  EXPECT_EQ(log.count(), 0u);
  // The variable of the module is shared, too, but by atomics.
  request.site = "third.py:5";
  llvm::cantFail(device->launch(request, first));
  ASSERT_EQ(log.count(), 1u);
  const sim::Finding &finding = log.getFindings()[0].finding;
  EXPECT_THAT(finding.message,
              HasSubstr("kernel 'increment' (launch 3) at third.py:5 writes "
                        "what kernel 'increment' (launch 2) at second.py:4 "
                        "writes, and nothing orders the two"));
}

TEST_F(DeviceTest, HostCopiesAreOperations) {
  Stream stream = device->makeStream(StreamKind::NonBlocking);
  llvm::cantFail(device->launch(makeRequest(), stream));
  std::vector<uint32_t> host(32);
  auto target = reinterpret_cast<uint64_t>(host.data());
  // The default stream does not wait for one that does not block.
  llvm::cantFail(
      device->copy(target, words, 128, device->getDefaultStream(), "a.py:9"));
  ASSERT_EQ(log.count(), 1u);
  EXPECT_THAT(log.getFindings()[0].finding.message,
              HasSubstr("copy 2 of 128 bytes at a.py:9 reads what kernel"));
  device->getOrder().synchronise(stream.actor);
  llvm::cantFail(
      device->copy(target, words, 128, device->getDefaultStream(), "b.py:9"));
  EXPECT_EQ(log.count(), 1u);
}

TEST_F(DeviceTest, FreedInAStream) {
  Stream stream = device->makeStream(StreamKind::NonBlocking);
  llvm::cantFail(device->launch(makeRequest(), stream));
  Stream other = device->makeStream(StreamKind::NonBlocking);
  llvm::cantFail(device->free(words, &other, "cuMemFreeAsync"));
  ASSERT_EQ(log.count(), 1u);
  EXPECT_THAT(log.getFindings()[0].finding.message,
              HasSubstr("cuMemFreeAsync writes what kernel"));
  EXPECT_THAT(launchError(makeRequest(), Status::IllegalAddress),
              HasSubstr("reads 4 bytes of memory that was freed by "
                        "cuMemFreeAsync; it had 128 bytes"));
}

TEST_F(DeviceTest, GraphsOfCapturedWork) {
  Stream first = device->makeStream(StreamKind::NonBlocking);
  Stream second = device->makeStream(StreamKind::NonBlocking);
  auto work = [&](Stream &in) { return device->launch(makeRequest(), in); };
  for (bool isOrdered : {true, false}) {
    Capture capture(first.actor);
    Capture::Tips begin = capture.record(first.actor);
    capture.add(first.actor, work);
    Capture::Tips event = capture.record(first.actor);
    // The second stream is part of it behind the launch, or beside it.
    capture.wait(second.actor, isOrdered ? event : begin);
    capture.add(second.actor, work);
    EXPECT_TRUE(capture.has(second.actor));
    Capture open = capture;
    auto unjoined = open.end(first.actor);
    ASSERT_FALSE(static_cast<bool>(unjoined));
    auto [status, message] = takeStatus(unjoined.takeError());
    EXPECT_EQ(int(status), int(Status::CaptureUnjoined));
    EXPECT_THAT(
        message,
        HasSubstr(
            R"(expected a stream that waits for all captured work, got some left over)"));
    EXPECT_THAT(
        takeStatus(open.end(second.actor).takeError()).second,
        HasSubstr(
            R"(expected a capture to end where it began, got another stream)"));
    capture.wait(first.actor, capture.record(second.actor));
    Graph graph = llvm::cantFail(capture.end(first.actor));
    EXPECT_EQ(graph.nodes.size(), 2u);
    uint32_t before = readWord(words);
    OrderClock end;
    for (unsigned i = 0; i < 2; ++i)
      llvm::cantFail(launchGraph(*device, graph, first, end));
    EXPECT_EQ(readWord(words), before + 4);
    EXPECT_EQ(log.count() == 0, isOrdered);
    // Later work of the stream comes after all of it.
    size_t found = log.count();
    llvm::cantFail(device->launch(makeRequest(), first));
    EXPECT_EQ(log.count(), found);
  }
}

TEST_F(DeviceTest, GraphsInTwoStreams) {
  Stream first = device->makeStream(StreamKind::NonBlocking);
  Stream second = device->makeStream(StreamKind::NonBlocking);
  Capture capture(first.actor);
  capture.add(first.actor,
              [&](Stream &in) { return device->launch(makeRequest(), in); });
  Graph graph = llvm::cantFail(capture.end(first.actor));
  // One graph runs once at a time; two that were made from one capture do not.
  OrderClock end, endOfOther;
  llvm::cantFail(launchGraph(*device, graph, first, end));
  llvm::cantFail(launchGraph(*device, graph, second, end));
  EXPECT_EQ(log.count(), 0u);
  device->getOrder().synchroniseAll();
  llvm::cantFail(launchGraph(*device, graph, first, end));
  llvm::cantFail(launchGraph(*device, graph, second, endOfOther));
  EXPECT_GT(log.count(), 0u);
}

TEST_F(DeviceTest, FindingsLeaveRecordings) {
  llvm::SmallString<64> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn", folder));
  DeviceOptions options;
  options.memory = 1 << 24;
  options.recordings = folder.str().str();
  device = std::make_unique<Device>(chip, log, options);
  module = llvm::cantFail(device->loadModule(text));
  function = llvm::cantFail(device->getFunction(*module, "increment"));
  // One word too few, of which one has not been written.
  words = llvm::cantFail(device->getMemory().allocate(124, "words"));
  llvm::cantFail(device->fill(words, 7, 4, 30, device->getDefaultStream()));
  LaunchRequest request = makeRequest();
  launchError(request, Status::IllegalAddress);
  auto recorded = sim::readRecordedLaunch((folder + "/increment-1").str());
  ASSERT_TRUE(static_cast<bool>(recorded));
  EXPECT_EQ(recorded->kernel, "increment");
  ASSERT_EQ(recorded->tensors.size(), 1u);
  auto program = sim::parsePTX(text, "kernel.ptx");
  auto report = sim::runRecorded(*recorded, **program, sim::HarnessOptions());
  ASSERT_TRUE(static_cast<bool>(report));
  EXPECT_EQ(report->run.countErrors(sim::FindingKind::OutOfBounds), 1u);
  // A launch that shows nothing new leaves none.
  launchError(request, Status::IllegalAddress);
  EXPECT_FALSE(llvm::sys::fs::exists(folder + "/increment-2"));
  llvm::sys::fs::remove_directories(folder);
}

TEST_F(DeviceTest, RecordingsKeepWhatALaunchLeaves) {
  llvm::SmallString<64> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn", folder));
  sim::LaunchConfig config;
  config.params.resize(8);
  std::memcpy(config.params.data(), &words, 8);
  llvm::cantFail(device->fill(words, 1, 4, 32, device->getDefaultStream()));
  LaunchRecorder recorder(device->getMemory().getMemory(), chip.chip);
  llvm::cantFail(device->launch(makeRequest(), device->getDefaultStream()));
  llvm::cantFail(
      recorder.write(folder, text, *function.kernel, config, sim::RunReport()));
  EXPECT_EQ(readWord(words), 2u);
  auto npy = sim::readNpy((folder + "/data/memory0.npy").str());
  ASSERT_TRUE(static_cast<bool>(npy));
  EXPECT_EQ(npy->data[0], 1);
  llvm::sys::fs::remove_directories(folder);
  std::string message = llvm::toString(recorder.write(
      "/proc/absent", text, *function.kernel, config, sim::RunReport()));
  EXPECT_THAT(message, HasSubstr("/proc/absent/data: "));
}

TEST_F(DeviceTest, LimitsOfLaunches) {
  LaunchRequest request = makeRequest();
  request.block = {1025, 1, 1};
  EXPECT_EQ(launchError(request, Status::InvalidValue),
            "kernel 'increment': expected at most 1024 threads a CTA, got "
            "1025");
  request = makeRequest();
  request.dynamicShared = 50000;
  EXPECT_THAT(
      launchError(request, Status::InvalidValue),
      HasSubstr("bytes of dynamic shared memory, as the function's attribute "
                "says, got 50000"));
  request.dynamicShared = 200000;
  EXPECT_THAT(
      launchError(request, Status::InvalidValue),
      HasSubstr("bytes of shared memory on sm_80, got 0 static and 200000"));
  request = makeRequest();
  request.cluster = {2, 1, 1};
  EXPECT_THAT(
      launchError(request, Status::InvalidValue),
      HasSubstr("': expected clusters of at most 1 CTAs on sm_80, got 2"));
  request = makeRequest();
  request.isCooperative = true;
  request.grid = {100000, 1, 1};
  EXPECT_THAT(launchError(request, Status::OutOfResources),
              HasSubstr("CTAs of a cooperative launch on sm_80, got 100000"));
  request = makeRequest();
  request.params.resize(4);
  EXPECT_THAT(launchError(request, Status::InvalidValue),
              HasSubstr("expected 8 parameter bytes, got 4"));
}

TEST_F(DeviceTest, FaultsHaveCodes) {
  LaunchRequest request = makeRequest();
  uint64_t odd = words + 1;
  std::memcpy(request.params.data(), &odd, 8);
  launchError(request, Status::Misaligned);
  uint64_t outside = words + 4;
  std::memcpy(request.params.data(), &outside, 8);
  launchError(request, Status::IllegalAddress);
  Function fails = llvm::cantFail(device->getFunction(*module, "fails"));
  request.function = &fails;
  launchError(request, Status::IllegalInstruction);
}

TEST_F(DeviceTest, NamesThatAModuleLacks) {
  auto absent = device->getFunction(*module, "decrement");
  ASSERT_FALSE(static_cast<bool>(absent));
  auto [status, message] = takeStatus(absent.takeError());
  EXPECT_EQ(int(status), int(Status::NotFound));
  EXPECT_EQ(message, "expected a kernel of the module, which has 'increment', "
                     "'fails', got 'decrement'");
  Module other;
  EXPECT_EQ(takeStatus(device->unloadModule(other)).second,
            "expected a module that is loaded");
}

TEST_F(DeviceTest, ModulesThatDoNotLoad) {
  auto bad = device->loadModule(".version 8.0\n.target sm_80\n.frobnicate\n");
  EXPECT_EQ(int(takeStatus(bad.takeError()).first), int(Status::InvalidPTX));
  auto newer = device->loadModule(".version 8.0\n.target sm_90a\n"
                                  ".address_size 64\n");
  EXPECT_EQ(int(takeStatus(newer.takeError()).first),
            int(Status::UnsupportedPTX));
  auto later =
      device->loadModule(".version 99.0\n.target sm_80\n.frobnicate\n");
  auto [status, message] = takeStatus(later.takeError());
  EXPECT_EQ(int(status), int(Status::UnsupportedPTX));
  EXPECT_THAT(message, HasSubstr("expected PTX of version 9.4 or older, got "
                                 "99.0, with "));
  auto big = device->loadModule(".version 8.0\n.target sm_80\n"
                                ".address_size 64\n"
                                ".global .b8 x[100];\n"
                                ".global .b8 big[100000000];\n");
  EXPECT_EQ(int(takeStatus(big.takeError()).first), int(Status::OutOfMemory));
  EXPECT_EQ(device->getMemory().getUsed(), 128u + 4);
}

} // namespace
