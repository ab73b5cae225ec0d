//===- LaunchSequence.cpp - steps of one launch ---------------------------===//
//
// Kernels are compiled with a record each. Joining them finds what they share
// by name, and refuses what they do not agree on.
//
//===----------------------------------------------------------------------===//
#include "attn/Launch/LaunchRecord.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// A workspace in words that show what two steps may disagree on.
static std::string describe(const LaunchWorkspace &workspace) {
  StringRef state = workspace.restored ? ", restored"
                    : workspace.zeroed ? ", zeroed"
                                       : "";
  return llvm::formatv("{0} bytes{1}{2}", workspace.bytes.getText(), state,
                       workspace.persistent ? ", persistent" : "");
}

static std::string describe(const LaunchTensor &tensor) {
  return llvm::formatv(
      "{0} of shape [{1:$[, ]}] and strides [{2:$[, ]}]",
      stringifyDType(tensor.dtype),
      llvm::make_range(tensor.shape.begin(), tensor.shape.end()),
      llvm::make_range(tensor.strides.begin(), tensor.strides.end()));
}

namespace {

/// Joins parts to one record, one after the other.
class Joiner {
public:
  Error add(const LaunchRecord &part);
  LaunchRecord record;

private:
  Expected<unsigned> addTensor(const LaunchTensor &tensor, StringRef step);
  Expected<unsigned> addWorkspace(const LaunchWorkspace &workspace,
                                  StringRef step);
};

} // namespace

Expected<unsigned> Joiner::addTensor(const LaunchTensor &tensor,
                                     StringRef step) {
  std::optional<unsigned> index = record.findTensor(tensor.name);
  if (!index) {
    record.tensors.push_back(tensor);
    return record.tensors.size() - 1;
  }
  LaunchTensor &known = record.tensors[*index];
  if (known.dtype != tensor.dtype || known.shape != tensor.shape ||
      known.strides != tensor.strides)
    return createStringError(
        llvm::formatv("tensor \"{0}\": expected {1} as in the steps before, "
                      "got {2} in {3}",
                      tensor.name, describe(known), describe(tensor), step));
  if (!isWritten(known.access))
    known.access = tensor.access;
  return *index;
}

Expected<unsigned> Joiner::addWorkspace(const LaunchWorkspace &workspace,
                                        StringRef step) {
  auto known = llvm::find_if(record.workspaces, [&](const auto &other) {
    return !workspace.name.empty() && other.name == workspace.name;
  });
  if (known == record.workspaces.end()) {
    record.workspaces.push_back(workspace);
    return record.workspaces.size() - 1;
  }
  if (*known != workspace)
    return createStringError(llvm::formatv(
        "workspace \"{0}\": expected {1} as in the steps before, "
        "got {2} in {3}",
        workspace.name, describe(*known), describe(workspace), step));
  return known - record.workspaces.begin();
}

Error Joiner::add(const LaunchRecord &part) {
  std::string step = part.describeStep(0);
  if (record.steps.empty()) {
    record.chip = part.chip;
    record.ptxVersion = part.ptxVersion;
  }
  if (part.chip != record.chip || part.ptxVersion != record.ptxVersion)
    return createStringError(llvm::formatv(
        "target: expected {0} and PTX {1} as in the steps before, got {2} and "
        "PTX {3} in {4}",
        record.chip, record.ptxVersion, part.chip, part.ptxVersion, step));
  llvm::SmallVector<unsigned> tensors, workspaces;
  for (const LaunchTensor &tensor : part.tensors) {
    Expected<unsigned> index = addTensor(tensor, step);
    if (!index)
      return index.takeError();
    tensors.push_back(*index);
  }
  for (const LaunchWorkspace &workspace : part.workspaces) {
    Expected<unsigned> index = addWorkspace(workspace, step);
    if (!index)
      return index.takeError();
    workspaces.push_back(*index);
  }
  for (LaunchStep copy : part.steps) {
    for (LaunchArg &arg : copy.args) {
      if (arg.kind == ArgKind::Workspace)
        arg.workspace = workspaces[arg.workspace];
      else if (arg.kind != ArgKind::Scalar && arg.kind != ArgKind::Expression)
        arg.tensor = tensors[arg.tensor];
    }
    record.steps.push_back(std::move(copy));
  }
  if (part.problem && record.problem)
    return createStringError(
        "expected one problem in the steps of a launch, got another one in " +
        step);
  if (part.problem)
    record.problem = part.problem;
  return Error::success();
}

Error mlir::attn::checkSteps(const LaunchRecord &record) {
  llvm::SmallVector<bool> isFilled;
  for (const LaunchWorkspace &workspace : record.workspaces)
    isFilled.push_back(workspace.zeroed || workspace.persistent);
  for (auto [number, step] : llvm::enumerate(record.steps)) {
    for (const LaunchArg &arg : step.args)
      if (arg.kind == ArgKind::Workspace &&
          arg.access == WorkspaceAccess::Read && !isFilled[arg.workspace])
        return createStringError(
            record.describeStep(number) + " reads " +
            record.describeWorkspace(arg.workspace) +
            ", which no step before it writes and which is not zeroed");
    for (const LaunchArg &arg : step.args)
      if (arg.kind == ArgKind::Workspace && arg.access != WorkspaceAccess::Read)
        isFilled[arg.workspace] = true;
  }
  return Error::success();
}

Expected<LaunchRecord>
mlir::attn::joinLaunches(llvm::ArrayRef<LaunchRecord> parts) {
  Joiner joiner;
  for (const LaunchRecord &part : parts)
    if (Error error = joiner.add(part))
      return std::move(error);
  if (Error error = checkSteps(joiner.record))
    return std::move(error);
  return std::move(joiner.record);
}
