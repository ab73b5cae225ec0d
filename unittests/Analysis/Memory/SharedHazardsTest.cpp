//===- SharedHazardsTest.cpp - Barriers against executed kernels ----------===//
//
// Inserts barriers into random kernels and executes them: no run may have an
// unordered pair of accesses, and taking out any one barrier must break a run,
// except where the analysis cannot tell slots apart.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/SharedHazards.h"
#include "../Barriers/RandomKernels.h"
#include "SharedTrace.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

struct Counts {
  unsigned kernels = 0;
  unsigned barriers = 0;
  unsigned needed = 0;
  unsigned refused = 0;
  unsigned wronglyRefused = 0;
};

class SharedHazards : public ::testing::Test {
protected:
  SharedHazards() {
    DialectRegistry registry;
    registerAttnDialect(registry);
    registry.insert<gpu::GPUDialect, scf::SCFDialect, arith::ArithDialect>();
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    // Refused kernels say why; nobody reads that here.
    context.getDiagEngine().registerHandler([](Diagnostic &) {});
  }

  static bool anyRunBreaks(gpu::GPUFuncOp kernel) {
    bool broken = false;
    forEachRun(kernel, /*seed=*/7, [&](ArrayRef<TraceEvent> events) {
      broken = hasHazard(events);
      return !broken;
    });
    return broken;
  }

  void check(const std::string &text, Counts &counts) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    PassManager passes(&context);
    passes.nest<gpu::GPUModuleOp>().addPass(createAttnInsertFencesPass());
    auto kernel = *(*module->getOps<gpu::GPUModuleOp>().begin())
                       .getOps<gpu::GPUFuncOp>()
                       .begin();
    ++counts.kernels;
    if (failed(passes.run(*module))) {
      ++counts.refused;
      // No barrier can help: one in front of everything.
      SmallVector<Operation *> accesses;
      kernel.walk([&](Operation *op) {
        if (isa<LocalLoadOp, LocalStoreOp, CpAsyncOp>(op))
          accesses.push_back(op);
      });
      for (Operation *op : accesses) {
        OpBuilder builder(op);
        gpu::BarrierOp::create(builder, op->getLoc());
      }
      counts.wronglyRefused += !anyRunBreaks(kernel);
      return;
    }
    ASSERT_FALSE(anyRunBreaks(kernel)) << text;
    SmallVector<gpu::BarrierOp> barriers;
    kernel.walk([&](gpu::BarrierOp op) { barriers.push_back(op); });
    counts.barriers += barriers.size();
    for (gpu::BarrierOp barrier : barriers) {
      Operation *next = barrier->getNextNode();
      barrier->remove();
      SharedAccessCache cache;
      auto hazard = findSharedHazard(kernel, cache);
      EXPECT_TRUE(succeeded(hazard) && hazard->has_value()) << text;
      counts.needed += anyRunBreaks(kernel);
      next->getBlock()->getOperations().insert(next->getIterator(), barrier);
    }
  }

  Counts run(const KernelOptions &options, unsigned kernels) {
    Counts counts;
    std::mt19937 random(20250101);
    for (unsigned i = 0; i < kernels && !HasFatalFailure(); ++i)
      check(makeRandomKernel(random, options), counts);
    RecordProperty("kernels", counts.kernels);
    RecordProperty("barriers", counts.barriers);
    RecordProperty("needed", counts.needed);
    RecordProperty("refused", counts.refused);
    return counts;
  }

  MLIRContext context;
};

} // namespace

TEST_F(SharedHazards, PlainAccesses) {
  KernelOptions options;
  options.copies = false;
  options.unknownSlots = false;
  Counts counts = run(options, 100);
  EXPECT_EQ(counts.refused, 0u);
  EXPECT_GT(counts.barriers, 100u);
  // Nearly every barrier is needed in some run.
  EXPECT_GT(counts.needed * 100, counts.barriers * 97)
      << counts.needed << " of " << counts.barriers;
}

TEST_F(SharedHazards, Copies) {
  KernelOptions options;
  options.offsets = false;
  options.statements = 5;
  Counts counts = run(options, 300);
  EXPECT_GT(counts.kernels - counts.refused, 50u);
  EXPECT_GT(counts.barriers, 100u);
  EXPECT_LT(counts.wronglyRefused * 10, counts.refused)
      << counts.wronglyRefused << " of " << counts.refused;
}

TEST_F(SharedHazards, Overlaps) {
  KernelOptions options;
  options.statements = 6;
  Counts counts = run(options, 300);
  EXPECT_GT(counts.kernels - counts.refused, 50u);
}
