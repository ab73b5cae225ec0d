//===- LaunchRecordWriter.cpp - writing launch records --------------------===//
#include "attn/Launch/LaunchRecord.h"

#include "LaunchRecordNames.h"
#include "ProblemJSON.h"
#include "attn/Support/Assumption.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using llvm::StringRef;
namespace json = llvm::json;

static json::Value writeArg(const LaunchRecord &record, const LaunchArg &arg) {
  json::Object object{{"kind", getName(argKindNames, arg.kind)}};
  auto writeTensor = [&] {
    object["tensor"] = record.tensors[arg.tensor].name;
  };
  switch (arg.kind) {
  case ArgKind::Pointer:
    writeTensor();
    break;
  case ArgKind::Size:
  case ArgKind::Stride:
    writeTensor();
    object["dim"] = arg.dim;
    object["type"] = stringifyDType(arg.type);
    break;
  case ArgKind::Scalar:
    object["name"] = arg.name;
    object["type"] = stringifyDType(arg.type);
    if (arg.value)
      object["value"] = *arg.value;
    break;
  case ArgKind::TensorMap:
    writeTensor();
    object["rank"] = int64_t(arg.box.size());
    object["box"] = json::Array(arg.box);
    object["swizzle"] = getName(swizzleNames, arg.swizzle);
    object["element"] = stringifyDType(arg.element);
    if (arg.view != TensorMapView::Whole)
      object["view"] = getName(mapViewNames, arg.view);
    if (arg.view == TensorMapView::Rows)
      object["pitch"] = arg.pitch;
    break;
  case ArgKind::Workspace:
    object["index"] = arg.workspace;
    if (arg.access != WorkspaceAccess::Update)
      object["access"] = getName(workspaceAccessNames, arg.access);
    break;
  case ArgKind::Expression:
    object["value"] = arg.expression.getText().str();
    object["type"] = stringifyDType(arg.type);
    break;
  }
  return object;
}

static json::Value writeProof(const SyncVerdict &proof) {
  json::Object object{{"verdict", getName(verdictNames, proof.kind)}};
  if (!proof.profile.empty()) {
    json::Array assumptions;
    for (unsigned number = 1; number <= numAssumptions; ++number)
      if (proof.assumptions >> number & 1)
        assumptions.push_back("A" + std::to_string(number));
    object["profile"] = proof.profile;
    object["assumptions"] = std::move(assumptions);
  }
  if (proof.kind == SyncVerdict::Kind::Bounded)
    object["tiles"] = proof.tiles;
  if (proof.kind != SyncVerdict::Kind::Proved)
    object["reason"] = proof.reason;
  return object;
}

/// Adds the fields of a step to `object`, which is the record in version 1.
static void writeStep(const LaunchRecord &record, const LaunchStep &step,
                      json::Object &object) {
  json::Array grid, args;
  for (const SizeExpr &extent : step.grid)
    grid.push_back(extent.getText().str());
  for (const LaunchArg &arg : step.args)
    args.push_back(writeArg(record, arg));
  object["kernel"] = step.kernel;
  object["grid"] = std::move(grid);
  object["block"] = json::Array(step.block);
  object["cluster"] = json::Array(step.cluster);
  if (step.tiles)
    object["tiles"] = step.tiles->getText().str();
  object["shared_bytes"] = step.sharedBytes;
  object["args"] = std::move(args);
  if (step.cooperative)
    object["cooperative"] = true;
  if (step.programmatic)
    object["programmatic"] = true;
  if (step.proof)
    object["proof"] = writeProof(*step.proof);
}

static json::Value writeWorkspace(const LaunchWorkspace &workspace) {
  json::Object object{{"bytes", workspace.bytes.getText().str()},
                      {"zeroed", workspace.zeroed}};
  if (!workspace.name.empty())
    object["name"] = workspace.name;
  if (workspace.restored)
    object["restored"] = true;
  if (workspace.persistent)
    object["persistent"] = true;
  return object;
}

json::Value mlir::attn::toJSON(const LaunchRecord &record) {
  json::Array tensors, workspaces;
  for (const LaunchTensor &tensor : record.tensors)
    tensors.push_back(
        json::Object{{"name", tensor.name},
                     {"dtype", stringifyDType(tensor.dtype)},
                     {"shape", json::Array(tensor.shape)},
                     {"strides", json::Array(tensor.strides)},
                     {"access", getName(accessNames, tensor.access)}});
  for (const LaunchWorkspace &workspace : record.workspaces)
    workspaces.push_back(writeWorkspace(workspace));
  int64_t version = record.getLeastVersion();
  json::Object object{{"version", version},
                      {"target", json::Object{{"chip", record.chip},
                                              {"ptx", record.ptxVersion}}},
                      {"tensors", std::move(tensors)}};
  if (version == 1) {
    writeStep(record, record.steps.front(), object);
    object["workspace"] = std::move(workspaces);
  } else {
    json::Array steps;
    for (const LaunchStep &step : record.steps) {
      json::Object written;
      writeStep(record, step, written);
      steps.push_back(std::move(written));
    }
    object["steps"] = std::move(steps);
    object["workspaces"] = std::move(workspaces);
  }
  if (record.problem)
    object["problem"] = writeProblem(*record.problem);
  if (record.assembled)
    object["assembled"] = json::Object{{"ptxas", record.assembled->ptxas},
                                       {"skipped", record.assembled->skipped}};
  return object;
}
