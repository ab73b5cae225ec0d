//===- Bundle.cpp - A compiled kernel in one file -------------------------===//

#include "attn/Compile/Bundle.h"
#include "attn/Target/Assembler.h"

using namespace mlir;
using namespace mlir::attn;

static llvm::Expected<std::string> assemble(const std::string &ptx,
                                            const std::string &chip) {
  AssemblerOptions options;
  options.chip = chip;
  llvm::Expected<AssemblerResult> result = assemblePTX(ptx, options);
  if (!result)
    return result.takeError();
  for (const AssemblerMessage &message : result->log.messages)
    if (message.severity == AssemblerMessage::Severity::Error)
      return llvm::createStringError("ptxas refuses the kernel for " + chip +
                                     ": " + message.text);
  return std::move(result->cubin);
}

llvm::Expected<Bundle> attn::makeBundle(const CompileResult &result,
                                        llvm::ArrayRef<std::string> chips,
                                        std::string *whyNoCubin) {
  if (result.launches.size() != 1)
    return llvm::createStringError(
        "expected one kernel with a launch record to bundle, got " +
        Twine(result.launches.size()));
  Bundle bundle;
  bundle.launch = result.launches.front();
  std::vector<std::string> wanted(chips.begin(), chips.end());
  if (wanted.empty()) {
    // What is found may be a link to nothing, or a script that does not run.
    if (llvm::Expected<std::string> version = getPtxasVersion())
      wanted.push_back(bundle.launch.chip);
    else if (whyNoCubin)
      *whyNoCubin = llvm::toString(version.takeError());
    else
      llvm::consumeError(version.takeError());
  }
  for (const std::string &chip : wanted) {
    llvm::Expected<std::string> cubin = assemble(result.ptx, chip);
    if (!cubin)
      return cubin.takeError();
    bundle.images.push_back(
        {BundleImage::Kind::Cubin, chip, std::move(*cubin)});
  }
  bundle.images.push_back(
      {BundleImage::Kind::PTX, bundle.launch.chip, result.ptx});
  return std::move(bundle);
}
