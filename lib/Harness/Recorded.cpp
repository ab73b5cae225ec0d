//===- Recorded.cpp - launches recorded elsewhere -------------------------===//
#include "attn/Harness/Recorded.h"

#include "HarnessEffort.h"
#include "HarnessInputs.h"
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
      .Case("int8", DType::I8)
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
  auto found = llvm::find_if(
      launch.tensors, [&](const auto &tensor) { return tensor.name == name; });
  if (found == launch.tensors.end())
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
  }
  return launch;
}

//===----------------------------------------------------------------------===//
// Running
//===----------------------------------------------------------------------===//

/// A number as the kernel declares it: an integer of any width, or a float.
static Error writeNumber(const RecordedParameter &parameter,
                         const KernelParam &declared, uint8_t *to) {
  uint64_t bits = parameter.integer.value_or(0);
  StringRef type = declared.type;
  bool isFloat = type == "f32" || type == "f64";
  if (parameter.number || isFloat) {
    if (declared.size != 4 && declared.size != 8)
      return createStringError("parameter " + declared.name +
                               ": expected a float of 4 or 8 bytes, got " +
                               Twine(declared.size) + " bytes");
    if (type.starts_with("u") || type.starts_with("s"))
      return createStringError("parameter " + declared.name +
                               ": expected an integer for ." + type + ", got " +
                               llvm::formatv("{0}", *parameter.number).str());
    double value =
        parameter.number ? *parameter.number : double(*parameter.integer);
    bits = declared.size == 4 ? llvm::bit_cast<uint32_t>(float(value))
                              : llvm::bit_cast<uint64_t>(value);
  } else {
    int64_t value = *parameter.integer;
    unsigned width = 8 * declared.size;
    if (width > 64 || (width < 64 && !llvm::isIntN(width, value) &&
                       !llvm::isUIntN(width, value)))
      return createStringError(
          "parameter " + declared.name + ": expected an integer of " +
          Twine(declared.size) + " bytes, got " + Twine(value));
  }
  for (unsigned i = 0; i < declared.size; ++i)
    to[i] = bits >> (8 * i);
  return Error::success();
}

/// Builds the parameter buffer as the kernel declares it.
static Expected<std::vector<uint8_t>>
makeParameters(const RecordedLaunch &launch, const KernelInfo &kernel,
               ArrayRef<uint64_t> addresses) {
  std::vector<ParameterSlot> slots;
  for (auto [index, parameter] : llvm::enumerate(launch.parameters)) {
    KernelParam declared;
    if (index < kernel.params.size())
      declared = kernel.params[index];
    bool isNumber = parameter.integer || parameter.number;
    slots.push_back({declared.offset, isNumber
                                          ? declared.size
                                          : uint32_t(parameter.bytes.size())});
  }
  if (Error error = checkParameters(kernel, slots))
    return std::move(error);
  std::vector<uint8_t> buffer(kernel.paramBytes, 0);
  for (auto [slot, parameter, declared] :
       llvm::zip_equal(slots, launch.parameters, kernel.params)) {
    if (parameter.integer || parameter.number) {
      if (Error error = writeNumber(parameter, declared, &buffer[slot.offset]))
        return std::move(error);
    } else if (parameter.tensorMap) {
      TensorMapParameter map = *parameter.tensorMap;
      const RecordedPointer &base = parameter.tensorMapBase;
      map.slot = slot;
      map.address = addresses[base.tensor] + base.offset;
      if (Error error = writeTensorMap(map, buffer))
        return std::move(error);
    } else {
      llvm::copy(parameter.bytes, buffer.begin() + slot.offset);
    }
    for (const RecordedPointer &pointer : parameter.pointers)
      llvm::support::endian::write64le(&buffer[slot.offset + pointer.at],
                                       addresses[pointer.tensor] +
                                           pointer.offset);
  }
  return std::move(buffer);
}

/// Compares a result with the recorded one.
static Deviation compareRecorded(const HarnessTensor &tensor,
                                 const NpyArray &expected, bool isRelative) {
  AttentionResult reference;
  reference.shape = expected.shape;
  for (int64_t i = 0; i < expected.getNumElements(); ++i)
    reference.o.push_back(decodeElement(DType::F32, &expected.data[4 * i]));
  if (isRelative) {
    reference.defined.assign(reference.o.size(), 1);
    return cantFail(compareOutput(tensor.getView(), reference));
  }
  reference.lse = std::move(reference.o);
  reference.defined.assign(reference.lse.size(), 1);
  reference.shape.push_back(1);
  return cantFail(compareLSE(tensor.getView(), reference));
}

/// Runs the launch again from the memory it started with; outputs have to be
/// the same.
static Error runCorner(const Program &program, Memory &memory,
                       const Memory::Snapshot &before,
                       const LaunchConfig &corner, HarnessReport &report) {
  memory.restore(before);
  Expected<RunReport> result = sim::run(program, memory, corner);
  if (!result)
    return result.takeError();
  ++report.runs;
  std::string name = "under " + describeConfig(corner) + ": ";
  if (!result->isClean()) {
    auto found = llvm::find_if(result->findings, [](const Finding &finding) {
      return finding.severity == Severity::Error;
    });
    report.problems.push_back(name + (found == result->findings.end()
                                          ? "the run did not complete"
                                          : found->message));
  }
  for (const HarnessTensor &tensor : report.tensors) {
    std::vector<uint8_t> bytes(tensor.bytes.size());
    if (Error error = memory.read(tensor.argument.address, bytes))
      return error;
    if (bytes == tensor.bytes)
      continue;
    auto at = std::mismatch(bytes.begin(), bytes.end(), tensor.bytes.begin());
    report.problems.push_back(llvm::formatv(
        "{0}output \"{1}\" differs from the first run at byte {2}", name,
        tensor.argument.name, at.first - bytes.begin()));
  }
  return Error::success();
}

/// That the tensors fit into memory together.
static Error checkSizes(const RecordedLaunch &launch, uint64_t limit) {
  std::vector<HostBuffer> buffers;
  for (const RecordedTensor &tensor : launch.tensors) {
    std::string name = "tensor \"" + tensor.name + "\"";
    Expected<uint64_t> bytes = getExtentBytes(
        tensor.shape, getContiguousStrides(tensor.shape), tensor.dtype);
    if (!bytes)
      return createStringError(name + ": " + llvm::toString(bytes.takeError()));
    buffers.push_back(
        {name, getHostBytes(*bytes, tensor.isInput ? TensorAccess::Read
                                                   : TensorAccess::Write)});
  }
  return checkMemory(buffers, limit);
}

Expected<HarnessReport> sim::runRecorded(const RecordedLaunch &launch,
                                         const Program &program,
                                         const HarnessOptions &options) {
  const KernelInfo *kernel = program.findKernel(launch.kernel);
  if (!kernel)
    return createStringError(program.getName() + ": expected a kernel \"" +
                             launch.kernel + "\" as in launch.json, got none");
  ProgressMeter progress(options.progress);
  progress.begin("simulation");
  if (Error error = checkSizes(launch, options.config.memoryLimit))
    return std::move(error);
  Memory memory;
  HarnessReport report;
  report.kernel = launch.kernel;
  report.chip = launch.chip;
  report.grid = launch.grid;
  std::vector<uint64_t> addresses;
  for (const RecordedTensor &recorded : launch.tensors) {
    HarnessTensor tensor;
    tensor.access = recorded.isInput ? TensorAccess::Read : TensorAccess::Write;
    tensor.argument = {recorded.name, recorded.dtype, recorded.shape,
                       getContiguousStrides(recorded.shape), 0};
    Expected<uint64_t> bytes =
        getExtentBytes(recorded.shape, tensor.argument.strides, recorded.dtype);
    if (!bytes)
      return bytes.takeError();
    uint64_t address = memory.allocate(*bytes, recorded.name);
    tensor.argument.address = address;
    addresses.push_back(address);
    if (recorded.isInput || recorded.isUpdated) {
      auto found = launch.arrays.find(recorded.name);
      if (found == launch.arrays.end())
        return createStringError("tensor \"" + recorded.name +
                                 "\": expected its contents, got none");
      if (found->second.data.size() != *bytes)
        return createStringError(
            "tensor \"" + recorded.name + "\": expected contents of " +
            Twine(*bytes) + " bytes, got " + Twine(found->second.data.size()));
      tensor.bytes = found->second.data;
      if (Error error = memory.write(address, tensor.bytes))
        return std::move(error);
      if (recorded.isInput)
        if (Error error = memory.setAccess(address, Access::Read))
          return std::move(error);
    }
    report.tensors.push_back(std::move(tensor));
  }
  LaunchConfig config = options.config;
  config.kernel = launch.kernel;
  config.grid = launch.grid;
  config.block = launch.block;
  config.cluster = launch.cluster;
  config.dynamicShared = launch.dynamicShared;
  config.progress = &progress;
  Expected<std::vector<uint8_t>> parameters =
      makeParameters(launch, *kernel, addresses);
  if (!parameters)
    return parameters.takeError();
  config.params = std::move(*parameters);
  Memory::Snapshot before = memory.save();
  report.shape = getShape(config, *kernel);
  Expected<RunReport> result = sim::run(program, memory, config);
  if (!result)
    return result.takeError();
  report.run = std::move(*result);
  report.runs = 1;
  const HarnessTensor *q = report.findTensor("q"), *o = report.findTensor("o");
  report.outputTolerance =
      options.outputTolerance >= 0
          ? options.outputTolerance
          : getDefaultTolerance(q ? q->argument.dtype : DType::F16,
                                o ? o->argument.dtype : DType::F16);
  report.lseTolerance = options.lseTolerance >= 0 ? options.lseTolerance : 1e-3;
  for (auto [tensor, recorded] :
       llvm::zip_equal(report.tensors, launch.tensors)) {
    if (tensor.access == TensorAccess::Read)
      continue;
    const TensorArgument &argument = tensor.argument;
    tensor.bytes.resize(cantFail(
        getExtentBytes(argument.shape, argument.strides, argument.dtype)));
    if (Error error = memory.read(argument.address, tensor.bytes))
      return std::move(error);
    auto expected = launch.arrays.find(argument.name);
    if (!report.run.completed || recorded.isUpdated ||
        expected == launch.arrays.end())
      continue;
    Expected<uint64_t> missing =
        memory.countUninitialised(argument.address, tensor.bytes.size());
    if (!missing)
      return missing.takeError();
    if (*missing)
      report.problems.push_back("output \"" + argument.name +
                                "\": " + std::to_string(*missing) +
                                " bytes were not written");
    bool isRelative = argument.name == "o";
    Deviation deviation = compareRecorded(tensor, expected->second, isRelative);
    (isRelative ? report.output : report.lse) = deviation;
  }
  if (!options.corners || !report.run.completed)
    return std::move(report);
  std::vector<LaunchConfig> corners = getCorners(config);
  for (auto [index, corner] : llvm::enumerate(corners)) {
    double seconds = report.run.seconds;
    progress.begin("corner " + Twine(index + 1) + " of " +
                       Twine(corners.size()),
                   seconds, seconds * double(corners.size() - index - 1));
    if (Error error = runCorner(program, memory, before, corner, report))
      return std::move(error);
  }
  return std::move(report);
}
