//===- Simulator.cpp - Launching a kernel ---------------------------------===//

#include "attn/Simulator/Simulator.h"

using namespace mlir::attn::sim;

Program::~Program() = default;

const KernelInfo *Program::findKernel(llvm::StringRef name) const {
  for (const KernelInfo &kernel : getKernels())
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

llvm::Expected<std::unique_ptr<Program>>
mlir::attn::sim::parsePTX(llvm::StringRef text, llvm::StringRef name) {
  return llvm::createStringError(name + ": expected a supported module, got "
                                        "one that this version cannot parse");
}

llvm::Expected<RunReport> mlir::attn::sim::run(const Program &program,
                                               Memory &memory,
                                               const LaunchConfig &config) {
  return llvm::createStringError("expected a decoded program, got none");
}
