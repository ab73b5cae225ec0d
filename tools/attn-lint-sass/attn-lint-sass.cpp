//===- attn-lint-sass.cpp - Checks what ptxas made of a kernel ------------===//
//
//   attn-lint-sass kernel.ptx
//   attn-lint-sass kernel.cubin --ptx=kernel.ptx --log=ptxas.log
//   attn-lint-sass kernel.attn
//
// Exit status: 0 when nothing was found or nothing could be checked, 1 when
// the machine code is not what was asked for, 2 when the input cannot be read
// or holds no kernel.
//
//===----------------------------------------------------------------------===//

#include "Tool/Tool.h"
#include "attn/Launch/BundleFile.h"
#include "attn/Lint/SassLint.h"
#include "attn/Support/Files.h"
#include "attn/Target/Disassembler.h"
#include "attn/Target/ToolMain.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/WithColor.h"

using namespace mlir::attn;
using llvm::Expected;
using llvm::StringRef;
namespace cl = llvm::cl;

static cl::OptionCategory category("attn-lint-sass options");

static cl::opt<std::string>
    inputPath(cl::Positional, cl::Required,
              cl::desc("<PTX, cubin, bundle, or listing of nvdisasm -c>"),
              cl::cat(category));
static cl::opt<std::string>
    flagKernel("kernel", cl::value_desc("name"),
               cl::desc("Kernel to check (default: the first one)"),
               cl::cat(category));
static cl::opt<std::string>
    flagChip("chip", cl::value_desc("chip"),
             cl::desc("What PTX is assembled for (default: its own target)"),
             cl::cat(category));
static cl::opt<std::string>
    ptxPath("ptx", cl::value_desc("file"),
            cl::desc("The PTX of a cubin or of a listing"), cl::cat(category));
static cl::opt<std::string> logPath("log", cl::value_desc("file"),
                                    cl::desc("What ptxas -v --warn-on-spills "
                                             "said about a cubin or a listing"),
                                    cl::cat(category));
static cl::opt<std::string> budgetPath("budget", cl::value_desc("file"),
                                       cl::desc("Compare with a budget of this "
                                                "file"),
                                       cl::cat(category));
static cl::opt<std::string> flagName("name", cl::value_desc("name"),
                                     cl::desc("Name of the budget"),
                                     cl::cat(category));
static cl::opt<bool> printJson("json", cl::desc("Print the report as JSON"),
                               cl::cat(category));

namespace {

/// One kernel to check and what could not be had of it.
struct Job {
  Job() { input.kernel = flagKernel; }

  SassInput input;
  /// Printed above the report; empty for a single kernel.
  std::string title;
  std::vector<std::string> notChecked;
};

} // namespace

/// Fills the listing of a job from its cubin, and chooses the kernel.
static llvm::Error addCubin(Job &job, StringRef cubin) {
  Expected<std::vector<std::string>> kernels = getCubinKernels(cubin);
  if (!kernels)
    return kernels.takeError();
  if (kernels->empty())
    return llvm::createStringError("expected a kernel in the cubin, got none");
  if (job.input.kernel.empty() && kernels->size() == 1)
    job.input.kernel = kernels->front();
  if (!job.input.kernel.empty() &&
      !llvm::is_contained(*kernels, job.input.kernel))
    return llvm::createStringError("expected a kernel \"" + job.input.kernel +
                                   "\" in the cubin, got \"" +
                                   llvm::join(*kernels, "\", \"") + "\"");
  Expected<std::string> nvdisasm = findNvdisasm();
  if (!nvdisasm) {
    job.notChecked.push_back("machine code: " +
                             llvm::toString(nvdisasm.takeError()));
    return llvm::Error::success();
  }
  Expected<std::string> listing = disassemble(cubin, *nvdisasm);
  if (!listing)
    return listing.takeError();
  job.input.listing = std::move(*listing);
  return llvm::Error::success();
}

/// The chip in a PTX's `.target`.
static std::string getTarget(StringRef ptx) {
  return ptx.split("\n.target ")
      .second.take_until([](char c) { return c == ',' || llvm::isSpace(c); })
      .str();
}

static llvm::Error addPTX(Job &job, std::string ptx) {
  AssemblerOptions options;
  options.chip = flagChip.empty() ? getTarget(ptx) : flagChip;
  job.input.ptx = std::move(ptx);
  Expected<std::string> ptxas = findPtxas();
  if (!ptxas) {
    job.notChecked.push_back("machine code: " +
                             llvm::toString(ptxas.takeError()));
    return llvm::Error::success();
  }
  options.ptxas = *ptxas;
  Expected<AssemblerResult> result = assemblePTX(*job.input.ptx, options);
  if (!result)
    return result.takeError();
  std::string cubin = std::move(result->cubin);
  job.input.log = std::move(result->log);
  if (!job.input.log->hasErrors())
    return addCubin(job, cubin);
  job.notChecked.push_back("machine code: ptxas made none");
  return llvm::Error::success();
}

static Expected<std::vector<Job>> getBundleJobs(StringRef bytes) {
  Expected<Bundle> bundle = readBundle(bytes);
  if (!bundle)
    return bundle.takeError();
  std::vector<Job> jobs;
  std::string ptx;
  for (const BundleImage &image : bundle->images)
    if (image.kind == BundleImage::Kind::PTX)
      ptx = image.bytes;
  for (const BundleImage &image : bundle->images) {
    if (image.kind != BundleImage::Kind::Cubin)
      continue;
    Job &job = jobs.emplace_back();
    job.title = "cubin for " + image.chip;
    job.input.ptx = ptx;
    if (llvm::Error error = addCubin(job, image.bytes))
      return std::move(error);
  }
  if (jobs.empty())
    if (llvm::Error error = addPTX(jobs.emplace_back(), ptx))
      return std::move(error);
  return std::move(jobs);
}

static Expected<std::vector<Job>> getJobs() {
  Expected<std::string> bytes = readFile(inputPath);
  if (!bytes)
    return bytes.takeError();
  if (isBundle(*bytes)) {
    for (auto [isGiven, flag] : {std::pair(!ptxPath.empty(), "ptx"),
                                 std::pair(!logPath.empty(), "log"),
                                 std::pair(!flagChip.empty(), "chip")})
      if (isGiven)
        return llvm::createStringError(
            "--%s: expected no bundle beside it, which says that itself", flag);
    return getBundleJobs(*bytes);
  }
  std::vector<Job> jobs(1);
  Job &job = jobs.front();
  StringRef text = *bytes;
  bool isPTX = text.contains("\n.target ") && text.contains(".entry ");
  for (auto [isGiven, flag] :
       {std::pair(!ptxPath.empty(), "ptx"), std::pair(!logPath.empty(), "log")})
    if (isGiven && isPTX)
      return llvm::createStringError(
          "--%s: expected a cubin or a listing beside it, got PTX", flag);
  if (!flagChip.empty() && !isPTX)
    return llvm::createStringError("--chip: expected PTX beside it, got a "
                                   "cubin or a listing");
  if (isPTX) {
    if (llvm::Error error = addPTX(job, std::move(*bytes)))
      return std::move(error);
    return std::move(jobs);
  }
  if (!text.starts_with("\x7f"
                        "ELF"))
    job.input.listing = std::move(*bytes);
  else if (llvm::Error error = addCubin(job, *bytes))
    return std::move(error);
  if (!ptxPath.empty()) {
    Expected<std::string> ptx = readFile(ptxPath);
    if (!ptx)
      return ptx.takeError();
    job.input.ptx = std::move(*ptx);
  }
  if (!logPath.empty()) {
    Expected<std::string> log = readFile(logPath);
    if (!log)
      return log.takeError();
    job.input.log = parseAssemblerLog(*log);
  }
  return std::move(jobs);
}

static Expected<std::optional<SassBudget>> getBudget() {
  if (budgetPath.empty() != flagName.empty())
    return llvm::createStringError("--budget and --name need each other");
  if (budgetPath.empty())
    return std::nullopt;
  Expected<std::string> json = readFile(budgetPath);
  if (!json)
    return json.takeError();
  Expected<SassBudget> budget = readBudget(*json, flagName);
  if (!budget)
    return budget.takeError();
  return std::move(*budget);
}

/// Whether ptxas speaks of the kernel.
static bool isIn(StringRef kernel, const AssemblerLog &log) {
  return log.hasErrors() ||
         llvm::any_of(log.functions, [&](const FunctionResources &function) {
           return function.name == kernel;
         });
}

/// True if all kernels are as they should be.
static Expected<bool> run() {
  Expected<std::optional<SassBudget>> budget = getBudget();
  if (!budget)
    return budget.takeError();
  Expected<std::vector<Job>> jobs = getJobs();
  if (!jobs)
    return jobs.takeError();
  bool isRight = true;
  for (Job &job : *jobs) {
    job.input.budget = *budget;
    Expected<SassReport> report = lintSass(job.input);
    if (!report)
      return report.takeError();
    if (!logPath.empty() && job.input.log &&
        !isIn(report->kernel, *job.input.log))
      return llvm::createStringError(logPath +
                                     ": expected what ptxas -v says "
                                     "of kernel \"" +
                                     report->kernel + "\", got none");
    report->notChecked.insert(report->notChecked.end(), job.notChecked.begin(),
                              job.notChecked.end());
    isRight &= !report->hasErrors();
    if (printJson) {
      llvm::outs() << llvm::formatv("{0:2}\n", report->toJSON());
      continue;
    }
    if (!job.title.empty())
      llvm::outs() << job.title << "\n";
    report->print(llvm::outs());
  }
  return isRight;
}

int main(int argc, char **argv) {
  Tool tool(argc, argv, "attn-lint-sass");
  tool.parse("attn-lint-sass - what ptxas made of a kernel, and whether it is "
             "what was asked for\n",
             &category, /*withLibraries=*/false);
  Expected<bool> isRight = run();
  if (isRight)
    if (llvm::Error error = flushOutput())
      isRight = std::move(error);
  if (isRight)
    return *isRight ? 0 : 1;
  llvm::WithColor::error(llvm::errs(), "attn-lint-sass")
      << llvm::toString(isRight.takeError()) << "\n";
  return 2;
}
