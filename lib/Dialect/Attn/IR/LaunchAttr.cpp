//===- LaunchAttr.cpp - How a kernel is launched --------------------------===//
//
// The attribute's rules are those of the launch record: it is written as the
// record's JSON and read by the record's reader, which knows them all.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Launch/LaunchRecord.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::attn;

/// The attribute as JSON. What JSON has no form for becomes the attribute's
/// text, which the reader of the record then refuses.
static llvm::json::Value convertToJSON(Attribute attr) {
  using llvm::json::Value;
  auto convertElements = [](auto elements) {
    llvm::json::Array array;
    for (auto element : elements)
      array.push_back(element);
    return Value(std::move(array));
  };
  return llvm::TypeSwitch<Attribute, Value>(attr)
      .Case([](DictionaryAttr dictionary) -> Value {
        llvm::json::Object object;
        for (NamedAttribute field : dictionary)
          object[field.getName().getValue()] = convertToJSON(field.getValue());
        return object;
      })
      .Case([](ArrayAttr elements) -> Value {
        llvm::json::Array array;
        for (Attribute element : elements)
          array.push_back(convertToJSON(element));
        return array;
      })
      .Case([&](DenseI64ArrayAttr elements) {
        return convertElements(elements.asArrayRef());
      })
      .Case([&](DenseI32ArrayAttr elements) {
        return convertElements(elements.asArrayRef());
      })
      .Case([](BoolAttr value) -> Value { return value.getValue(); })
      .Case([](IntegerAttr value) -> Value { return value.getInt(); })
      .Case([](FloatAttr value) -> Value { return value.getValueAsDouble(); })
      .Case([](StringAttr value) -> Value { return value.getValue().str(); })
      .Case([](UnitAttr) -> Value { return true; })
      .Default([](Attribute other) -> Value {
        std::string text;
        llvm::raw_string_ostream(text) << other;
        return text;
      });
}

namespace {

/// The parameters of the attribute.
struct LaunchFields {
  StringRef chip;
  int64_t ptx;
  ArrayAttr grid;
  DenseI64ArrayAttr block, cluster;
  StringAttr tiles;
  ArrayAttr tensors, args, workspaces;
  bool cooperative, programmatic;
  DictionaryAttr problem;
};

} // namespace

/// Text from a file may hold any bytes, and JSON may not.
static llvm::Error checkText(const LaunchFields &fields) {
  std::string bad;
  auto check = [&](StringRef text) {
    if (!llvm::json::isUTF8(text))
      llvm::raw_string_ostream(bad)
          << StringAttr::get(fields.grid.getContext(), text);
  };
  check(fields.chip);
  for (Attribute attr :
       {Attribute(fields.grid), Attribute(fields.tiles),
        Attribute(fields.tensors), Attribute(fields.args),
        Attribute(fields.workspaces), Attribute(fields.problem)})
    if (attr)
      attr.walk([&](StringAttr text) { check(text.getValue()); });
  if (bad.empty())
    return llvm::Error::success();
  return llvm::createStringError("expected 'attn.launch' in UTF-8, got " + bad);
}

/// A record of one step. A step alone may await one of another kernel, and read
/// what another kernel writes: joinLaunches judges these.
static llvm::Expected<LaunchRecord>
makeRecord(const LaunchFields &fields, StringRef kernel, int64_t sharedBytes) {
  using llvm::json::Array;
  using llvm::json::Object;
  if (llvm::Error error = checkText(fields))
    return std::move(error);
  auto convert = [](Attribute attr) -> llvm::json::Value {
    return attr ? convertToJSON(attr) : llvm::json::Value(Array());
  };
  Object step{{"kernel", kernel},
              {"grid", convert(fields.grid)},
              {"block", convert(fields.block)},
              {"cluster", fields.cluster ? convert(fields.cluster)
                                         : llvm::json::Value(Array{1, 1, 1})},
              {"shared_bytes", sharedBytes},
              {"args", convert(fields.args)},
              {"cooperative", fields.cooperative},
              {"programmatic", fields.programmatic}};
  if (fields.tiles)
    step["tiles"] = fields.tiles.getValue();
  Object root{{"version", LaunchRecord::currentVersion},
              {"target", Object{{"chip", fields.chip}, {"ptx", fields.ptx}}},
              {"tensors", convert(fields.tensors)},
              {"workspaces", convert(fields.workspaces)},
              {"steps", Array{std::move(step)}}};
  if (fields.problem)
    root["problem"] = convert(fields.problem);
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(root));
  return parseLaunchStep(text);
}

llvm::Expected<LaunchRecord> LaunchAttr::getRecord(StringRef kernel,
                                                   int64_t sharedBytes) const {
  return makeRecord({getChip(), getPtx(), getGrid(), getBlock(), getCluster(),
                     getTiles(), getTensors(), getArgs(), getWorkspaces(),
                     getCooperative(), getProgrammatic(), getProblem()},
                    kernel, sharedBytes);
}

LaunchAttr LaunchAttr::withArgs(ArrayAttr args) const {
  return get(getContext(), getChip(), getPtx(), getGrid(), getBlock(),
             getCluster(), getTiles(), getTensors(), args, getWorkspaces(),
             getCooperative(), getProgrammatic(), getProblem());
}

LogicalResult LaunchAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 StringRef chip, int64_t ptx, ArrayAttr grid,
                                 DenseI64ArrayAttr block,
                                 DenseI64ArrayAttr cluster, StringAttr tiles,
                                 ArrayAttr tensors, ArrayAttr args,
                                 ArrayAttr workspaces, bool cooperative,
                                 bool programmatic, DictionaryAttr problem) {
  llvm::Expected<LaunchRecord> record =
      makeRecord({chip, ptx, grid, block, cluster, tiles, tensors, args,
                  workspaces, cooperative, programmatic, problem},
                 "kernel", /*sharedBytes=*/0);
  if (record)
    return success();
  return emitError() << llvm::toString(record.takeError());
}
