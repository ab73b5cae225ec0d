//===- BufferLivenessTest.cpp - Live ranges against executed kernels ------===//
//
// Executes random kernels and follows each byte: data that a read sees must lie
// in memory that no other buffer's write has taken since, when every two
// buffers that the analysis calls apart share their bytes.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/BufferLiveness.h"
#include "../Barriers/RandomKernels.h"
#include "SharedTrace.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// True if in this run a read of `victim` sees a byte that was written before a
/// write of `other`: the two cannot share memory.
bool needsBoth(ArrayRef<TraceEvent> events, AllocOp victim, AllocOp other) {
  // By line of 256 bytes: a slot is two of them.
  DenseMap<int64_t, bool> lost;
  for (const TraceEvent &event : events) {
    using Kind = TraceEvent::Kind;
    if (event.kind != Kind::Read && event.kind != Kind::Write &&
        event.kind != Kind::Copy)
      continue;
    bool isWrite = event.kind != Kind::Read;
    if (event.alloc == other && isWrite)
      for (auto &entry : lost)
        entry.second = true;
    if (event.alloc != victim)
      continue;
    for (int64_t byte = event.begin; byte < event.end; byte += 256) {
      if (isWrite)
        lost[byte] = false;
      else if (auto found = lost.find(byte);
               found != lost.end() && found->second)
        return true;
    }
  }
  return false;
}

} // namespace

TEST(BufferLiveness, SharingIsSafe) {
  MLIRContext context;
  DialectRegistry registry;
  registerAttnDialect(registry);
  registry.insert<gpu::GPUDialect, scf::SCFDialect, arith::ArithDialect>();
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  KernelOptions options;
  options.offsets = false;
  options.statements = 4;
  std::mt19937 random(5);
  unsigned apart = 0, together = 0;
  for (unsigned i = 0; i < 200; ++i) {
    std::string text = makeRandomKernel(random, options);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    auto kernel = *(*module->getOps<gpu::GPUModuleOp>().begin())
                       .getOps<gpu::GPUFuncOp>()
                       .begin();
    auto liveness = BufferLiveness::compute(kernel);
    ASSERT_TRUE(succeeded(liveness)) << text;
    for (AllocOp a : liveness->getAllocs()) {
      for (AllocOp b : liveness->getAllocs()) {
        if (a == b)
          continue;
        if (liveness->overlap(a, b)) {
          ++together;
          continue;
        }
        ++apart;
        forEachRun(kernel, i, [&](ArrayRef<TraceEvent> events) {
          bool broken = needsBoth(events, a, b);
          EXPECT_FALSE(broken) << text;
          return !broken;
        });
        if (::testing::Test::HasFailure())
          return;
      }
    }
  }
  EXPECT_GT(apart, 100u);
  EXPECT_GT(together, 100u);
}
