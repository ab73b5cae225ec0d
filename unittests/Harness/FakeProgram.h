//===- FakeProgram.h - a program without code -------------------*- C++ -*-===//
//
// Stands for a parsed module where a test ends before anything is executed.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_UNITTESTS_HARNESS_FAKEPROGRAM_H
#define ATTN_UNITTESTS_HARNESS_FAKEPROGRAM_H

#include "attn/Simulator/Simulator.h"

namespace mlir::attn::sim {

/// A program that only has a name, a target and one kernel.
class FakeProgram : public Program {
public:
  FakeProgram() {
    kernel.name = "attn_fwd";
    kernel.params = {{"p0", 0, 8, 8}, {"p1", 8, 4, 4}};
    kernel.paramBytes = 12;
  }
  llvm::StringRef getName() const override { return "fake.ptx"; }
  llvm::StringRef getTarget() const override { return target; }
  unsigned getVersion() const override { return 80; }
  llvm::ArrayRef<KernelInfo> getKernels() const override { return kernel; }
  bool hasDependentCtas() const override { return false; }

  KernelInfo kernel;
  std::string target = "sm_80";
};

} // namespace mlir::attn::sim

#endif // ATTN_UNITTESTS_HARNESS_FAKEPROGRAM_H
