//===- ProgramImpl.cpp - A decoded program --------------------------------===//

#include "ProgramImpl.h"

using namespace mlir::attn::sim;
using llvm::StringRef;

Program::~Program() = default;

const KernelInfo *Program::findKernel(StringRef name) const {
  for (const KernelInfo &kernel : getKernels())
    if (kernel.name == name)
      return &kernel;
  return nullptr;
}

StringRef mlir::attn::sim::stringifyInstClass(InstClass c) {
  static const char *const names[] = {
      "move",      "alu",      "imad",      "float",     "fma",
      "half",      "double",   "convert",   "compare",   "special",
      "ex2",       "branch",   "ld.global", "st.global", "ld.shared",
      "st.shared", "ld.local", "st.local",  "ld.param",  "atomic",
      "shuffle",   "vote",     "barrier",   "fence",     "ldmatrix",
      "stmatrix",  "mma",      "cp.async",  "mbarrier",  "bulk",
      "wgmma",     "tcgen05",  "tmem.ld",   "tmem.st",   "other"};
  static_assert(sizeof(names) / sizeof(names[0]) ==
                size_t(InstClass::NumClasses));
  return names[size_t(c)];
}
