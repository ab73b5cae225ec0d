//===- ProgrammaticTest.cpp - Launches that may begin early ---------------===//

#include "attn/Device/Device.h"
#include "attn/Device/Graph.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstring>

using namespace mlir::attn;
using namespace mlir::attn::device;
using ::testing::HasSubstr;

namespace {

/// produce writes 64 words; consume copies them behind themselves, by loads for
/// constants: the first threads wait for the launch in front, and a barrier
/// hands that on. idle touches nothing.
const char dependentKernels[] = R"(.version 8.0
.target sm_90
.address_size 64
.visible .entry produce(.param .u64 p) {
  .reg .b64 %d<3>;
  .reg .b32 %r<3>;
  ld.param.u64 %d0, [p];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d1, %d0, %d1;
  griddepcontrol.launch_dependents;
  st.global.u32 [%d1], %r0;
  ret;
}
.visible .entry consume(.param .u64 p, .param .u32 waits) {
  .reg .b64 %d<3>;
  .reg .b32 %r<4>;
  .reg .pred %q;
  ld.param.u64 %d0, [p];
  ld.param.u32 %r1, [waits];
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %d1, %r0, 4;
  add.u64 %d1, %d0, %d1;
  setp.ge.u32 %q, %r0, %r1;
  @%q bra BEHIND;
  griddepcontrol.wait;
BEHIND:
  bar.sync 0;
  ld.global.nc.u32 %r2, [%d1];
  st.global.u32 [%d1 + 256], %r2;
  ret;
}
.visible .entry idle(.param .u64 p, .param .u32 waits) {
  .reg .b32 %r1;
  .reg .pred %q;
  ld.param.u32 %r1, [waits];
  setp.eq.u32 %q, %r1, 0;
  @%q bra BEHIND;
  griddepcontrol.wait;
BEHIND:
  ret;
}
)";

class ProgrammaticTest : public ::testing::Test {
protected:
  ProgrammaticTest()
      : device(llvm::cantFail(lookupTarget("sm_90a")), log, makeOptions()),
        module(*llvm::cantFail(device.loadModule(dependentKernels))),
        produce(llvm::cantFail(device.getFunction(module, "produce"))),
        consume(llvm::cantFail(device.getFunction(module, "consume"))),
        idle(llvm::cantFail(device.getFunction(module, "idle"))),
        words(llvm::cantFail(device.getMemory().allocate(512, "words"))) {}

  static DeviceOptions makeOptions() {
    DeviceOptions options;
    options.memory = 1 << 24;
    return options;
  }
  void launch(const Function &function, Stream &stream, bool isProgrammatic,
              uint32_t waiting = 0) {
    LaunchRequest request;
    request.function = &function;
    request.block = {64, 1, 1};
    request.isProgrammatic = isProgrammatic;
    request.params.resize(function.kernel->paramBytes);
    std::memcpy(request.params.data(), &words, 8);
    if (request.params.size() > 8)
      std::memcpy(request.params.data() + 8, &waiting, 4);
    llvm::cantFail(device.launch(request, stream));
  }
  /// Work of a captured stream.
  Work getWork(const Function &function, bool isProgrammatic,
               uint32_t waiting = 0) {
    return [this, &function, isProgrammatic, waiting](Stream &stream) {
      launch(function, stream, isProgrammatic, waiting);
      return llvm::Error::success();
    };
  }
  std::string getMessage() const {
    return log.getFindings().empty() ? ""
                                     : log.getFindings()[0].finding.message;
  }

  FindingLog log;
  Device device;
  Module &module;
  Function produce, consume, idle;
  uint64_t words;
};

} // namespace

TEST_F(ProgrammaticTest, EarlyReadsAreRaces) {
  Stream &stream = device.getDefaultStream();
  launch(produce, stream, false);
  launch(consume, stream, true);
  EXPECT_EQ(log.count(), 1u);
  EXPECT_THAT(getMessage(),
              HasSubstr("read is not ordered after an earlier write of kernel "
                        "'produce' (launch 1), which the programmatic launch "
                        "may overlap"));
}

TEST_F(ProgrammaticTest, WaitsOrder) {
  Stream &stream = device.getDefaultStream();
  // All threads wait, or those of one warp, and a barrier hands that on.
  for (uint32_t waiting : {64, 32}) {
    launch(produce, stream, true);
    launch(consume, stream, true, waiting);
    // Then consume may write again.
    device.getOrder().synchroniseAll();
  }
  EXPECT_EQ(getMessage(), "");
}

TEST_F(ProgrammaticTest, LaunchesThatWaitForNothingEndFirst) {
  Stream &stream = device.getDefaultStream();
  for (bool waits : {true, false}) {
    launch(produce, stream, false);
    launch(idle, stream, true, waits);
    launch(consume, stream, true, /*waiting=*/64);
    device.getOrder().synchroniseAll();
    EXPECT_EQ(log.count() == 0, waits);
  }
  EXPECT_THAT(getMessage(),
              HasSubstr("read is not ordered after an earlier write of kernel "
                        "'produce' (launch 4), which the programmatic launch "
                        "may overlap"));
  EXPECT_THAT(log.getFindings()[0].finding.hint,
              HasSubstr("griddepcontrol.wait in kernel 'idle' (launch 5)"));
  // Of three that wait for nothing the last two count.
  size_t found = log.count();
  launch(produce, stream, false);
  for (unsigned i = 0; i < 3; ++i)
    launch(idle, stream, true, false);
  launch(consume, stream, true, /*waiting=*/64);
  EXPECT_EQ(log.count(), found);
}

TEST_F(ProgrammaticTest, WhatIsOverIsNotOverlapped) {
  Stream &stream = device.getDefaultStream();
  launch(produce, stream, false);
  launch(consume, stream, false);
  launch(produce, stream, false);
  device.getOrder().synchronise(stream.actor);
  launch(consume, stream, true);
  // Work of other kinds is waited for, and waits.
  launch(produce, stream, false);
  llvm::cantFail(device.fill(words + 256, 0, 4, 64, stream));
  launch(consume, stream, true);
  launch(produce, stream, false);
  uint64_t other = llvm::cantFail(device.getMemory().allocate(256, "other"));
  llvm::cantFail(device.free(other, &stream, "freed", ""));
  launch(consume, stream, true);
  EXPECT_EQ(getMessage(), "");
}

TEST_F(ProgrammaticTest, EarlyWritesAreRaces) {
  Stream &stream = device.getDefaultStream();
  launch(produce, stream, false);
  launch(consume, stream, false);
  launch(produce, stream, true);
  EXPECT_THAT(getMessage(),
              HasSubstr("write is not ordered after an earlier read of kernel "
                        "'consume' (launch 2)"));
}

TEST_F(ProgrammaticTest, GraphsKeepProgrammaticEdges) {
  constexpr uint32_t kOrigin = 100, kOther = 101;
  Stream &stream = device.getDefaultStream();
  auto run = [&](llvm::function_ref<void(Capture &)> add) {
    Capture capture(kOrigin);
    add(capture);
    Graph graph = llvm::cantFail(capture.end(kOrigin));
    OrderClock end;
    llvm::cantFail(launchGraph(device, graph, stream, end));
    device.getOrder().synchroniseAll();
  };
  auto fill = [&](Stream &branch) {
    return device.fill(words + 256, 0, 4, 64, branch);
  };
  run([&](Capture &capture) {
    capture.add(kOrigin, getWork(produce, true));
    capture.add(kOrigin, getWork(consume, true, /*waiting=*/64));
  });
  // Kernels behind other work, or another stream's, have ended.
  run([&](Capture &capture) {
    capture.add(kOrigin, getWork(produce, false));
    capture.add(kOrigin, fill);
    capture.add(kOrigin, getWork(consume, true));
  });
  run([&](Capture &capture) {
    capture.add(kOrigin, getWork(produce, false));
    capture.wait(kOther, capture.record(kOrigin));
    capture.add(kOther, getWork(consume, true));
    capture.wait(kOrigin, capture.record(kOther));
  });
  EXPECT_EQ(getMessage(), "");
  run([&](Capture &capture) {
    capture.add(kOrigin, getWork(produce, false));
    capture.add(kOrigin, getWork(consume, true));
  });
  EXPECT_EQ(log.count(), 1u);
  EXPECT_THAT(getMessage(), HasSubstr("which the programmatic launch may "
                                      "overlap"));
}
