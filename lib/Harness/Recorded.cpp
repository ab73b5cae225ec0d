//===- Recorded.cpp - launches recorded elsewhere -------------------------===//
#include "attn/Harness/Recorded.h"
#include "attn/Harness/Results.h"

#include "HarnessEffort.h"
#include "HarnessInputs.h"
#include "HarnessSteps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

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
                       MemoryUndo &before, const LaunchConfig &corner,
                       HarnessReport &report) {
  before.restore();
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

/// Puts a tensor into memory, with its contents where it has some.
static Expected<HarnessTensor> placeTensor(const RecordedLaunch &launch,
                                           const RecordedTensor &recorded,
                                           Memory &memory) {
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
  if (!recorded.isInput && !recorded.isUpdated)
    return std::move(tensor);
  auto found = launch.arrays.find(recorded.name);
  if (found == launch.arrays.end())
    return createStringError("tensor \"" + recorded.name +
                             "\": expected its contents, got none");
  if (found->second.data.size() != *bytes)
    return createStringError("tensor \"" + recorded.name +
                             "\": expected contents of " + Twine(*bytes) +
                             " bytes, got " + Twine(found->second.data.size()));
  tensor.bytes = found->second.data;
  if (Error error = memory.write(address, tensor.bytes))
    return std::move(error);
  if (recorded.isInput)
    if (Error error = memory.setAccess(address, Access::Read))
      return std::move(error);
  return std::move(tensor);
}

static LaunchConfig makeConfig(const RecordedLaunch &launch,
                               const HarnessOptions &options) {
  LaunchConfig config = options.config;
  config.kernel = launch.kernel;
  config.grid = launch.grid;
  config.block = launch.block;
  config.cluster = launch.cluster;
  config.dynamicShared = launch.dynamicShared;
  return config;
}

static void setTolerances(HarnessReport &report,
                          const HarnessOptions &options) {
  const HarnessTensor *q = report.findTensor("q"), *o = report.findTensor("o");
  report.outputTolerance =
      options.outputTolerance >= 0
          ? options.outputTolerance
          : getDefaultTolerance(q ? q->argument.dtype : DType::F16,
                                o ? o->argument.dtype : DType::F16);
  report.lseTolerance = options.lseTolerance >= 0 ? options.lseTolerance : 1e-3;
}

/// Reads a result and compares it with the recorded one, if there is one.
static Error judgeResult(const RecordedLaunch &launch,
                         const RecordedTensor &recorded, const Memory &memory,
                         HarnessTensor &tensor, HarnessReport &report) {
  const TensorArgument &argument = tensor.argument;
  tensor.bytes.resize(cantFail(
      getExtentBytes(argument.shape, argument.strides, argument.dtype)));
  if (Error error = memory.read(argument.address, tensor.bytes))
    return error;
  // Under its own name an updated tensor has what it holds before.
  auto expected = launch.arrays.find(
      recorded.isUpdated ? argument.name + ".after" : argument.name);
  if (!report.run.completed || expected == launch.arrays.end())
    return Error::success();
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
  if (isRelative)
    report.output = deviation;
  else if (argument.name == "lse")
    report.lse = deviation;
  else
    report.results.push_back({argument.name, deviation, report.lseTolerance});
  return Error::success();
}

static Error runCorners(const Program &program, Memory &memory,
                        MemoryUndo &before, const LaunchConfig &config,
                        ProgressMeter &progress, HarnessReport &report) {
  std::vector<LaunchConfig> corners = getCorners(config);
  for (auto [index, corner] : llvm::enumerate(corners)) {
    double seconds = report.run.seconds;
    progress.begin("corner " + Twine(index + 1) + " of " +
                       Twine(corners.size()),
                   seconds, seconds * double(corners.size() - index - 1));
    if (Error error = runCorner(program, memory, before, corner, report))
      return error;
  }
  return Error::success();
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
  report.chip = launch.chip;
  std::vector<uint64_t> addresses;
  for (const RecordedTensor &recorded : launch.tensors) {
    Expected<HarnessTensor> tensor = placeTensor(launch, recorded, memory);
    if (!tensor)
      return tensor.takeError();
    addresses.push_back(tensor->argument.address);
    report.tensors.push_back(std::move(*tensor));
  }
  LaunchConfig config = makeConfig(launch, options);
  config.progress = &progress;
  Expected<std::vector<uint8_t>> parameters =
      makeParameters(launch, *kernel, addresses);
  if (!parameters)
    return parameters.takeError();
  config.params = std::move(*parameters);
  MemoryUndo before(memory);
  LaunchShape shape = getShape(config, *kernel);
  Expected<RunReport> result = sim::run(program, memory, config);
  if (!result)
    return result.takeError();
  report.run = std::move(*result);
  report.steps = {{launch.kernel, launch.grid, shape, report.run}};
  report.runs = 1;
  setTolerances(report, options);
  for (auto [tensor, recorded] :
       llvm::zip_equal(report.tensors, launch.tensors))
    if (tensor.access != TensorAccess::Read)
      if (Error error = judgeResult(launch, recorded, memory, tensor, report))
        return std::move(error);
  if (options.corners && report.run.completed)
    if (Error error =
            runCorners(program, memory, before, config, progress, report))
      return std::move(error);
  return std::move(report);
}
