//===- LaunchRecordWriter.cpp - writing launch records --------------------===//
#include "attn/Target/LaunchRecord.h"

#include "LaunchRecordNames.h"
#include "ProblemJSON.h"
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
    break;
  case ArgKind::Workspace:
    object["index"] = arg.workspace;
    break;
  }
  return object;
}

json::Value mlir::attn::toJSON(const LaunchRecord &record) {
  json::Array grid, tensors, args, workspaces;
  for (const SizeExpr &extent : record.grid)
    grid.push_back(extent.getText().str());
  for (const LaunchTensor &tensor : record.tensors)
    tensors.push_back(
        json::Object{{"name", tensor.name},
                     {"dtype", stringifyDType(tensor.dtype)},
                     {"shape", json::Array(tensor.shape)},
                     {"strides", json::Array(tensor.strides)},
                     {"access", getName(accessNames, tensor.access)}});
  for (const LaunchArg &arg : record.args)
    args.push_back(writeArg(record, arg));
  for (const LaunchWorkspace &workspace : record.workspaces) {
    json::Object object{{"bytes", workspace.bytes.getText().str()},
                        {"zeroed", workspace.zeroed}};
    if (workspace.restored)
      object["restored"] = true;
    workspaces.push_back(std::move(object));
  }
  json::Object object{{"version", LaunchRecord::currentVersion},
                      {"kernel", record.kernel},
                      {"target", json::Object{{"chip", record.chip},
                                              {"ptx", record.ptxVersion}}},
                      {"grid", std::move(grid)},
                      {"block", json::Array(record.block)},
                      {"cluster", json::Array(record.cluster)},
                      {"shared_bytes", record.sharedBytes},
                      {"tensors", std::move(tensors)},
                      {"args", std::move(args)},
                      {"workspace", std::move(workspaces)}};
  if (record.problem)
    object["problem"] = writeProblem(*record.problem);
  return object;
}
