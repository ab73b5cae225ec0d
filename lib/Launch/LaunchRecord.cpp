//===- LaunchRecord.cpp - what a launch of a kernel needs -----------------===//
#include "attn/Launch/LaunchRecord.h"

#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using llvm::StringRef;

unsigned mlir::attn::getMapRank(TensorMapView view, unsigned tensorRank) {
  if (view == TensorMapView::Rows)
    return 2;
  bool hasMore = view == TensorMapView::Quads || view == TensorMapView::Bounded;
  return hasMore ? tensorRank + 1 : tensorRank;
}

unsigned mlir::attn::getSwizzleBytes(TensorMapSwizzle swizzle) {
  switch (swizzle) {
  case TensorMapSwizzle::None:
    return 0;
  case TensorMapSwizzle::B32:
    return 32;
  case TensorMapSwizzle::B64:
    return 64;
  case TensorMapSwizzle::B128:
    return 128;
  }
  llvm_unreachable("covered switch");
}

std::optional<unsigned> LaunchRecord::findTensor(StringRef name) const {
  for (auto [index, tensor] : llvm::enumerate(tensors))
    if (tensor.name == name)
      return index;
  return std::nullopt;
}

std::string LaunchRecord::describeWorkspace(unsigned index) const {
  StringRef name = workspaces[index].name;
  return name.empty() ? "workspace " + std::to_string(index)
                      : ("workspace \"" + name + "\"").str();
}

std::string LaunchRecord::describeStep(unsigned index) const {
  std::string name = "kernel \"" + steps[index].kernel + "\"";
  if (steps.size() == 1)
    return name;
  return "step " + std::to_string(index + 1) + ", " + name;
}

/// True if an expression needs a number that version 1 does not know.
static bool usesDevice(const SizeExpr &expression) {
  return llvm::any_of(expression.getSymbols(), [](const SizeSymbol &symbol) {
    return symbol.isDevice();
  });
}

int64_t LaunchRecord::getLeastVersion() const {
  if (steps.size() != 1)
    return 2;
  const LaunchStep &step = steps.front();
  bool isNew = step.cooperative || step.programmatic ||
               llvm::any_of(step.grid, usesDevice) ||
               llvm::any_of(step.args,
                            [](const LaunchArg &arg) {
                              return arg.kind == ArgKind::Expression ||
                                     arg.access != WorkspaceAccess::Update;
                            }) ||
               llvm::any_of(workspaces, [](const LaunchWorkspace &workspace) {
                 return !workspace.name.empty() || workspace.persistent ||
                        usesDevice(workspace.bytes);
               });
  return isNew ? 2 : 1;
}

bool LaunchWorkspace::operator==(const LaunchWorkspace &other) const {
  return name == other.name && bytes.getText() == other.bytes.getText() &&
         zeroed == other.zeroed && restored == other.restored &&
         persistent == other.persistent;
}
