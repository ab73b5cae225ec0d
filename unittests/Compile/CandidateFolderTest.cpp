//===- CandidateFolderTest.cpp - How far the kernels of a tuning are ------===//

#include "attn/Compile/CandidateFolder.h"
#include "attn/Compile/Problem.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Writes candidates of a small problem; its messages.
std::string writeSome(StringRef folder, ProgressFn progress) {
  DialectRegistry registry;
  registerCompileDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  std::string messages;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    messages += diagnostic.str();
    return success();
  });
  ProblemFlags flags;
  flags.q = "1x1x32x64xf16";
  OwningOpRef<ModuleOp> module =
      buildProblem(&context, llvm::cantFail(parseProblem(flags)));
  DefaultTimingManager manager;
  TimingScope timing = manager.getRootScope();
  CompileOptions options;
  EXPECT_EQ(succeeded(writeCandidates(*module, options, /*count=*/2, folder,
                                      timing, std::move(progress))),
            messages.empty());
  return messages;
}

TEST(Candidates, SayHowManyAreDone) {
  registerPassManagerCLOptions();
  llvm::SmallString<128> folder;
  ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-candidates", folder));
  llvm::SmallString<128> index = folder;
  llvm::sys::path::append(index, "index.json");
  std::vector<double> fractions;
  auto remember = [&](const ProgressState &state) {
    EXPECT_EQ(state.phase, "candidates");
    fractions.push_back(state.fraction);
    return fractions.size() < 2;
  };
  // Reports come ten times a second, so that the last one may be missing.
  EXPECT_EQ(writeSome(folder,
                      [&](const ProgressState &state) {
                        fractions.push_back(state.fraction);
                        return true;
                      }),
            "");
  ASSERT_FALSE(fractions.empty());
  EXPECT_EQ(fractions.front(), 0);
  EXPECT_TRUE(llvm::sys::fs::exists(index));
  llvm::sys::fs::remove(index);
  fractions = {0};
  EXPECT_EQ(writeSome(folder, remember), "stopped by the caller");
  EXPECT_FALSE(llvm::sys::fs::exists(index));
  llvm::sys::fs::remove_directories(folder);
}

} // namespace
