//===- ReadLaunchAttr.cpp - The launch record of kernels ------------------===//

#include "attn/Compile/Compiler.h"
#include "attn/Dialect/Attn/IR/AssembledAttr.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/ProofAttr.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;
using namespace mlir::attn;

llvm::Expected<LaunchRecord> attn::readLaunchRecord(Operation *kernel) {
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  if (!launch)
    return llvm::createStringError("expected a kernel with 'attn.launch'");
  // attn-allocate-shared decides the size after the attribute was made.
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  llvm::Expected<LaunchRecord> record =
      launch.getRecord(SymbolTable::getSymbolName(kernel).getValue(),
                       bytes ? bytes.getInt() : 0);
  if (Attribute proof = kernel->getAttr(kProofAttr); record && proof)
    record->steps.front().proof = readProofAttr(proof);
  return record;
}

llvm::Expected<LaunchRecord> attn::readLaunchSequence(Operation *module) {
  std::vector<LaunchRecord> steps;
  for (Operation &op : module->getRegion(0).front()) {
    if (!op.hasAttr(AttnDialect::kLaunchAttr))
      continue;
    llvm::Expected<LaunchRecord> step = readLaunchRecord(&op);
    if (!step)
      return step.takeError();
    steps.push_back(std::move(*step));
  }
  if (steps.empty())
    return llvm::createStringError("expected a kernel with 'attn.launch'");
  llvm::Expected<LaunchRecord> record = joinLaunches(steps);
  if (auto parent = module->getParentOfType<ModuleOp>(); record && parent)
    if (Attribute assembled = parent->getAttr(kAssembledAttr))
      record->assembled = readAssembledAttr(assembled);
  return record;
}
