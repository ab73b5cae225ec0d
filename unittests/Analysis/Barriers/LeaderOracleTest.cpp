//===- LeaderOracleTest.cpp - Pairs of CTAs against all interleavings -----===//
//
// Two CTAs run one program, in which some ops are the leader's alone: products
// of both CTAs and their commits, or sends to both. Each kernel is executed in
// every order, in which copies, sends and commits come at any time. The check
// may prove no kernel in which an order goes wrong.
//
// ATTN_ORACLE_KERNELS and ATTN_ORACLE_SEED say how many kernels, and which.
//
//===----------------------------------------------------------------------===//

#include "LeaderOracle.h"
#include "OracleNumbers.h"
#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::oracle;

TEST(LeaderOracle, AgreesWithAllInterleavings) {
  DialectRegistry registry;
  registerAttnDialect(registry);
  registry.insert<gpu::GPUDialect, arith::ArithDialect, NVVM::NVVMDialect>();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  unsigned count = getNumber("ATTN_ORACLE_KERNELS", 50);
  std::mt19937 rng(getNumber("ATTN_ORACLE_SEED", 3));
  unsigned proved = 0, refused = 0, tooStrict = 0, skipped = 0;
  for (unsigned i = 0; i < count; ++i) {
    PairKernel kernel = makePairKernel(rng);
    std::optional<std::string> wrong;
    if (!explore(kernel, wrong)) {
      ++skipped;
      continue;
    }
    std::string text = print(kernel);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module) << text;
    auto kernels = *module->getOps<gpu::GPUModuleOp>().begin();
    BarrierCheckOptions options;
    options.profile = OrderProfile::Hw;
    BarrierReport report =
        checkBarriers(*kernels.getOps<gpu::GPUFuncOp>().begin(), options);
    bool isProved = report.verdict == BarrierVerdict::Proved;
    ASSERT_TRUE(isProved || report.verdict == BarrierVerdict::Witness)
        << text << (report.unsupported ? report.unsupported->text : "");
    ++(isProved ? proved : refused);
    ASSERT_FALSE(isProved && wrong)
        << "kernel " << i << " is proved; all interleavings: " << *wrong << "\n"
        << text;
    if (isProved || wrong)
      continue;
    ++tooStrict;
    if (std::getenv("ATTN_ORACLE_SHOW"))
      llvm::outs() << stringifyBarrierFault(report.witness->fault) << ": "
                   << report.witness->text << "\n"
                   << text;
  }
  EXPECT_GT(proved, count / 10);
  EXPECT_GT(refused, count / 10);
  EXPECT_LT(skipped, count / 10 + 1);
  llvm::outs() << proved << " proved, " << refused << " refused, " << tooStrict
               << " of them right in all orders, " << skipped
               << " with too many states\n";
}
