//===- RecordedReader.cpp - reading a recorded launch ---------------------===//
#include "attn/Harness/Recorded.h"

#include "attn/Support/Files.h"
#include "attn/Support/JSON.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Path.h"
#include <algorithm>
#include <cmath>
#include <limits>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

namespace {

/// Reads launch.json. Recordings come from tools of several kinds and carry
/// notes, so that unknown fields are let through; the needed ones are checked.
class RecordingReader {
public:
  RecordingReader(RecordedLaunch &launch) : launch(launch) {}

  Error run(const json::Value &root);

private:
  Error fail(const Twine &path, const Twine &problem) {
    return createStringError("launch.json: " + path + ": " + problem);
  }
  template <typename T>
  Error readInteger(const json::Object &object, StringRef path, StringRef field,
                    T &result, bool isOptional = false);
  template <typename T>
  Error readIntegers(const json::Object &object, StringRef path,
                     StringRef field, T &result);
  Error readTensors(const json::Object &root);
  Error readParameter(const json::Object &object, const std::string &path);
  Error readPointer(const json::Object &object, const std::string &path,
                    RecordedPointer &pointer);
  Error readTensorMap(const json::Object &object, const std::string &path,
                      RecordedParameter &parameter);

  RecordedLaunch &launch;
};

} // namespace

template <typename T>
Error RecordingReader::readInteger(const json::Object &object, StringRef path,
                                   StringRef field, T &result,
                                   bool isOptional) {
  const json::Value *value = object.get(field);
  if (!value && isOptional)
    return Error::success();
  std::optional<int64_t> integer;
  if (value)
    integer = value->getAsInteger();
  if (!integer || *integer < 0 || uint64_t(*integer) > T(~T(0)))
    return fail(path + "." + field, "expected an integer of at least 0");
  result = T(*integer);
  return Error::success();
}

template <typename T>
Error RecordingReader::readIntegers(const json::Object &object, StringRef path,
                                    StringRef field, T &result) {
  const json::Array *array = object.getArray(field);
  if (!array)
    return fail(path + (path.empty() ? "" : ".") + field, "expected an array");
  for (const json::Value &item : *array) {
    std::optional<int64_t> integer = item.getAsInteger();
    using Element = typename T::value_type;
    constexpr uint64_t limit = std::min<uint64_t>(
        std::numeric_limits<Element>::max(), UINT64_C(0xffffffffffff));
    if (!integer || *integer < 0 || uint64_t(*integer) > limit)
      return fail(path + (path.empty() ? "" : ".") + field,
                  "expected integers from 0 to " + Twine(limit));
    result.push_back(*integer);
  }
  return Error::success();
}

static std::optional<DType> parseNumpyName(StringRef name) {
  return llvm::StringSwitch<std::optional<DType>>(name)
      .Case("float16", DType::F16)
      .Case("bfloat16", DType::BF16)
      .Case("float32", DType::F32)
      .Case("float64", DType::F64)
      .Case("float8_e4m3fn", DType::F8E4M3FN)
      .Case("float8_e5m2", DType::F8E5M2)
      .Case("float8_e8m0fnu", DType::F8E8M0FNU)
      .Case("int8", DType::I8)
      .Case("int16", DType::I16)
      .Case("uint8", DType::U8)
      .Case("uint16", DType::U16)
      .Case("uint32", DType::U32)
      .Case("uint64", DType::U64)
      .Case("int32", DType::I32)
      .Case("int64", DType::I64)
      .Default(std::nullopt);
}

Error RecordingReader::readTensors(const json::Object &root) {
  const json::Object *tensors = root.getObject("tensors");
  if (!tensors)
    return fail("tensors", "expected an object");
  for (const auto &entry : *tensors) {
    RecordedTensor tensor;
    tensor.name = StringRef(entry.first).str();
    std::string path = "tensors." + tensor.name;
    const json::Object *object = entry.second.getAsObject();
    if (!object)
      return fail(path, "expected an object");
    StringRef name = object->getString("dtype").value_or("");
    std::optional<DType> dtype = parseNumpyName(name);
    if (!dtype)
      return fail(path + ".dtype", "unknown type \"" + name + "\"");
    tensor.dtype = *dtype;
    if (Error error = readIntegers(*object, path, "shape", tensor.shape))
      return error;
    tensor.isInput =
        tensor.name == "q" || tensor.name == "k" || tensor.name == "v";
    if (const json::Value *access = object->get("access")) {
      StringRef text = access->getAsString().value_or("");
      if (text != "read" && text != "write" && text != "update")
        return fail(path + ".access",
                    "expected read, write or update, got \"" + text + "\"");
      tensor.isInput = text == "read";
      tensor.isUpdated = text == "update";
    }
    launch.tensors.push_back(std::move(tensor));
  }
  // An object has no order; addresses must not depend on its hash.
  llvm::sort(launch.tensors,
             [](const auto &a, const auto &b) { return a.name < b.name; });
  return Error::success();
}

Error RecordingReader::readPointer(const json::Object &object,
                                   const std::string &path,
                                   RecordedPointer &pointer) {
  StringRef name = object.getString("tensor").value_or("");
  // They are in the order of their names.
  auto found = llvm::lower_bound(
      launch.tensors, name, [](const RecordedTensor &tensor, StringRef name) {
        return StringRef(tensor.name) < name;
      });
  if (found == launch.tensors.end() || found->name != name)
    return fail(path + ".tensor", "unknown tensor \"" + name + "\"");
  pointer.tensor = found - launch.tensors.begin();
  return readInteger(object, path, "offset", pointer.offset,
                     /*isOptional=*/true);
}

Error RecordingReader::readTensorMap(const json::Object &object,
                                     const std::string &path,
                                     RecordedParameter &parameter) {
  TensorMapParameter map;
  if (Error error = readPointer(object, path, parameter.tensorMapBase))
    return error;
  map.element = launch.tensors[parameter.tensorMapBase.tensor].dtype;
  if (const json::Value *element = object.get("element")) {
    StringRef name = element->getAsString().value_or("");
    std::optional<DType> dtype = parseNumpyName(name);
    if (!dtype)
      return fail(path + ".element", "unknown type \"" + name + "\"");
    map.element = *dtype;
  }
  uint32_t rank = 0, swizzle = 0;
  if (Error error = readInteger(object, path, "rank", rank))
    return error;
  if (Error error = readIntegers(object, path, "dims", map.dims))
    return error;
  if (Error error = readIntegers(object, path, "stride_bytes", map.strides))
    return error;
  if (Error error = readIntegers(object, path, "box", map.box))
    return error;
  if (rank < 1 || rank > 5 || map.dims.size() != rank ||
      map.box.size() != rank || map.strides.size() != rank - 1)
    return fail(path, "expected as many extents as the rank says");
  if (Error error = readInteger(object, path, "swizzle_bytes", swizzle))
    return error;
  bool isKnown = false;
  for (auto mode : {TensorMapSwizzle::None, TensorMapSwizzle::B32,
                    TensorMapSwizzle::B64, TensorMapSwizzle::B128})
    if (getSwizzleBytes(mode) == swizzle) {
      map.swizzle = mode;
      isKnown = true;
    }
  if (!isKnown)
    return fail(path + ".swizzle_bytes", "expected 0, 32, 64 or 128");
  parameter.tensorMap = std::move(map);
  return Error::success();
}

Error RecordingReader::readParameter(const json::Object &object,
                                     const std::string &path) {
  RecordedParameter parameter;
  if (const json::Value *value = object.get("integer")) {
    parameter.integer = value->getAsInteger();
    if (!parameter.integer)
      return fail(path + ".integer", "expected an integer of 64 bits");
  } else if (const json::Value *value = object.get("number")) {
    parameter.number = value->getAsNumber();
    if (!parameter.number)
      return fail(path + ".number", "expected a number");
  }
  if (parameter.integer || parameter.number) {
    launch.parameters.push_back(std::move(parameter));
    return Error::success();
  }
  uint32_t size = 0;
  if (Error error = readInteger(object, path, "size", size))
    return error;
  if (size > 4096)
    return fail(path + ".size", "expected at most 4096 bytes");
  if (const json::Object *map = object.getObject("tensor_map")) {
    if (Error error = readTensorMap(*map, path + ".tensor_map", parameter))
      return error;
    if (size != 128)
      return fail(path + ".size", "expected the 128 bytes of a tensor map");
    parameter.bytes.assign(size, 0);
  } else {
    std::string bytes;
    if (!llvm::tryGetFromHex(object.getString("hex").value_or("?"), bytes) ||
        bytes.size() != size)
      return fail(path + ".hex", "expected the hexadecimal digits of " +
                                     Twine(size) + " bytes");
    parameter.bytes.assign(bytes.begin(), bytes.end());
  }
  if (const json::Array *pointers = object.getArray("pointers"))
    for (auto [index, item] : llvm::enumerate(*pointers)) {
      std::string itemPath = path + ".pointers[" + std::to_string(index) + "]";
      RecordedPointer pointer;
      if (!item.getAsObject())
        return fail(itemPath, "expected an object");
      if (Error error = readPointer(*item.getAsObject(), itemPath, pointer))
        return error;
      if (Error error =
              readInteger(*item.getAsObject(), itemPath, "at", pointer.at))
        return error;
      if (uint64_t(pointer.at) + 8 > size)
        return fail(itemPath + ".at",
                    "expected an address inside the " + Twine(size) + " bytes");
      parameter.pointers.push_back(pointer);
    }
  launch.parameters.push_back(std::move(parameter));
  return Error::success();
}

Error RecordingReader::run(const json::Value &value) {
  const json::Object *root = value.getAsObject();
  if (!root)
    return fail("the whole", "expected an object");
  launch.kernel = root->getString("kernel").value_or("").str();
  if (launch.kernel.empty())
    return fail("kernel", "expected a string that is not empty");
  launch.chip = root->getString("chip").value_or("").str();
  const std::pair<StringRef, std::array<uint32_t, 3> *> extents[] = {
      {"grid", &launch.grid},
      {"block", &launch.block},
      {"cluster", &launch.cluster}};
  for (auto [field, result] : extents) {
    llvm::SmallVector<uint32_t, 3> values;
    if (Error error = readIntegers(*root, "", field, values))
      return error;
    if (values.size() != 3)
      return fail(field, "expected 3 extents");
    std::copy_n(values.begin(), 3, result->begin());
  }
  if (Error error =
          readInteger(*root, "", "dynamic_shared_bytes", launch.dynamicShared))
    return error;
  if (Error error = readTensors(*root))
    return error;
  const json::Array *parameters = root->getArray("params");
  if (!parameters)
    return fail("params", "expected an array");
  for (auto [index, item] : llvm::enumerate(*parameters)) {
    std::string path = "params[" + std::to_string(index) + "]";
    if (!item.getAsObject())
      return fail(path, "expected an object");
    if (Error error = readParameter(*item.getAsObject(), path))
      return error;
  }
  return Error::success();
}

/// data.npz, or the .npy files of a folder `data`.
static Expected<llvm::StringMap<NpyArray>> readArrays(StringRef folder) {
  std::string data = (folder + "/data").str();
  if (!llvm::sys::fs::is_directory(data))
    return readNpz(data + ".npz");
  llvm::StringMap<NpyArray> arrays;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator it(data, error), end;
       it != end && !error; it.increment(error)) {
    StringRef path = it->path();
    if (llvm::sys::path::extension(path) != ".npy")
      continue;
    Expected<NpyArray> array = readNpy(path);
    if (!array)
      return array.takeError();
    arrays[llvm::sys::path::stem(path)] = std::move(*array);
  }
  return std::move(arrays);
}

Expected<RecordedLaunch> sim::parseRecordedLaunch(StringRef text) {
  Expected<json::Value> root = parseJSON(text);
  if (!root)
    return createStringError("launch.json: not JSON: " +
                             llvm::toString(root.takeError()));
  RecordedLaunch launch;
  if (Error error = RecordingReader(launch).run(*root))
    return std::move(error);
  return std::move(launch);
}

Expected<RecordedLaunch> sim::readRecordedLaunch(StringRef folder) {
  Expected<std::string> text = readFile((folder + "/launch.json").str());
  if (!text)
    return text.takeError();
  Expected<RecordedLaunch> launch = parseRecordedLaunch(*text);
  if (!launch)
    return launch.takeError();
  Expected<llvm::StringMap<NpyArray>> arrays = readArrays(folder);
  if (!arrays)
    return arrays.takeError();
  launch->arrays = std::move(*arrays);
  for (const RecordedTensor &tensor : launch->tensors) {
    auto found = launch->arrays.find(tensor.name);
    auto fail = [&](const Twine &problem) {
      return createStringError("data: array \"" + tensor.name +
                               "\": " + problem);
    };
    if (found == launch->arrays.end())
      return fail("missing");
    const NpyArray &array = found->second;
    if (array.shape != tensor.shape)
      return fail("expected the shape that launch.json states");
    bool hasContents = tensor.isInput || tensor.isUpdated;
    DType expected = hasContents ? tensor.dtype : DType::F32;
    if (!array.holds(expected))
      return fail("expected elements of " + stringifyDType(expected) +
                  ", got " + array.getTypeName());
    auto after = launch->arrays.find(tensor.name + ".after");
    if (tensor.isUpdated && after != launch->arrays.end() &&
        (after->second.shape != tensor.shape ||
         !after->second.holds(DType::F32)))
      return createStringError("data: array \"" + tensor.name +
                               ".after\": expected elements of f32 and the "
                               "shape that launch.json states");
  }
  return launch;
}
