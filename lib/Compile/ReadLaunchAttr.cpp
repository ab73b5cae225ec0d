//===- ReadLaunchAttr.cpp - The launch record of a kernel -----------------===//

#include "attn/Compile/Compiler.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/JSON.h"

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

llvm::Expected<LaunchRecord> attn::readLaunchRecord(Operation *kernel) {
  auto launch = kernel->getAttrOfType<DictionaryAttr>(AttnDialect::kLaunchAttr);
  if (!launch)
    return llvm::createStringError("expected a kernel with 'attn.launch'");
  StringAttr bad;
  launch.walk([&](StringAttr text) {
    if (!llvm::json::isUTF8(text.getValue()))
      bad = text;
  });
  if (bad) {
    std::string text;
    llvm::raw_string_ostream(text) << bad;
    return llvm::createStringError("expected 'attn.launch' in UTF-8, got " +
                                   text);
  }
  llvm::json::Value json = convertToJSON(launch);
  // attn-allocate-shared decides the size after the record was made.
  if (auto bytes =
          kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr))
    (*json.getAsObject())["shared_bytes"] = bytes.getInt();
  std::string text;
  llvm::raw_string_ostream(text) << json;
  return parseLaunchRecord(text);
}
