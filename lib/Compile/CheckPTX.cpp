//===- CheckPTX.cpp - Is the PTX what was proved? -------------------------===//

#include "attn/Compile/CheckPTX.h"
#include "attn/Compile/Verify.h"
#include "attn/Support/Files.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include <chrono>

using namespace mlir::attn;
using llvm::createStringError;

llvm::Expected<PTXCheck> PTXCheck::create(llvm::StringRef path) {
  PTXCheck check;
  check.path = path.str();
  if (!path.empty())
    return std::move(check);
  llvm::SmallString<128> made;
  if (std::error_code code =
          llvm::sys::fs::createTemporaryFile("attn-skeleton", "json", made))
    return createStringError("check-ptx: no temporary file: " + code.message());
  check.path = std::string(made);
  check.remover = std::make_unique<llvm::FileRemover>(made);
  return std::move(check);
}

llvm::Expected<std::string> PTXCheck::run(const std::string &ptx,
                                          const LaunchRecord &launch,
                                          sim::HarnessOptions options,
                                          double seconds) const {
  llvm::Expected<std::string> text = readFile(path);
  if (!text)
    return text.takeError();
  llvm::Expected<SyncSkeleton> skeleton = parseSkeleton(*text);
  if (!skeleton)
    return skeleton.takeError();
  options.skeleton = std::move(*skeleton);
  options.verify = options.corners = false;
  // Paths that bets on scores rarely take are of the kernel too.
  options.losesBets = true;
  using Clock = std::chrono::steady_clock;
  Clock::time_point start = Clock::now();
  double expected = -1;
  bool isTooLong = false;
  ProgressFn show = std::move(options.progress);
  options.progress = [&](const ProgressState &state) {
    double elapsed =
        std::chrono::duration<double>(Clock::now() - start).count();
    if (expected < 0)
      expected = elapsed + std::max(state.secondsLeft, 0.0);
    // The estimate is right to within a few times; the limit holds.
    isTooLong = std::max(expected, elapsed) > seconds;
    expected = std::max(expected, elapsed);
    return !isTooLong && (!show || show(state));
  };
  llvm::Expected<sim::HarnessReport> report =
      verifyKernel(ptx, launch, options);
  if (!report && isTooLong) {
    llvm::consumeError(report.takeError());
    return createStringError(llvm::formatv(
        "check-ptx: a run of this launch takes about {0:f0} s, which is more "
        "than {1:f0} s; expected --check-ptx=SECONDS with more of them, or a "
        "problem with fewer heads and queries and the same plan",
        expected, seconds));
  }
  if (!report)
    return createStringError("check-ptx: " +
                             llvm::toString(report.takeError()));
  if (!report->hasPassed()) {
    bool isElsewhere = report->skeleton->isSame && !report->problems.empty();
    return createStringError("check-ptx: " + (isElsewhere
                                                  ? report->problems.front()
                                                  : report->skeleton->text));
  }
  return report->skeleton->text;
}
