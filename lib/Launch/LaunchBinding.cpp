//===- LaunchBinding.cpp - a launch record meets its tensors --------------===//
#include "attn/Launch/LaunchBinding.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// Extents as `[2, ?, 64]`.
static std::string printExtents(ArrayRef<int64_t> extents) {
  std::string text = "[";
  for (auto [index, extent] : llvm::enumerate(extents)) {
    text += index ? ", " : "";
    text += extent == kDynamicSize ? "?" : std::to_string(extent);
  }
  return text + "]";
}

static Error failTensor(StringRef name, const Twine &problem) {
  return createStringError("tensor \"" + name + "\": " + problem);
}

/// True when `actual` fits `expected`, in which kDynamicSize fits all.
static bool matches(ArrayRef<int64_t> expected, ArrayRef<int64_t> actual) {
  return llvm::all_of(llvm::zip_equal(expected, actual), [](auto pair) {
    auto [want, got] = pair;
    return want == kDynamicSize || want == got;
  });
}

static Error checkTensor(const LaunchTensor &expected,
                         const TensorArgument &actual) {
  auto fail = [&](const Twine &problem) {
    return failTensor(expected.name, problem);
  };
  if (expected.dtype != actual.dtype)
    return fail("expected dtype " + stringifyDType(expected.dtype) + ", got " +
                stringifyDType(actual.dtype));
  if (expected.shape.size() != actual.shape.size())
    return fail("expected rank " + Twine(expected.shape.size()) + ", got " +
                Twine(actual.shape.size()));
  if (actual.strides.size() != actual.shape.size())
    return fail("expected " + Twine(actual.shape.size()) + " strides, got " +
                Twine(actual.strides.size()));
  if (llvm::any_of(actual.shape, [](int64_t extent) { return extent < 0; }))
    return fail("expected extents of at least 0, got " +
                printExtents(actual.shape));
  if (!matches(expected.shape, actual.shape))
    return fail("expected shape " + printExtents(expected.shape) + ", got " +
                printExtents(actual.shape));
  // Nothing steps along a dimension of extent 1.
  llvm::SmallVector<int64_t, 4> strides(expected.strides);
  for (auto [index, extent] : llvm::enumerate(actual.shape))
    if (extent <= 1)
      strides[index] = kDynamicSize;
  if (!matches(strides, actual.strides))
    return fail("expected strides " + printExtents(expected.strides) +
                ", got " + printExtents(actual.strides));
  return Error::success();
}

/// Offsets as the CUDA driver lays parameters out: each at its own alignment.
static void layOutParameters(const LaunchStep &step, ResolvedStep &resolved) {
  uint64_t offset = 0;
  for (const LaunchArg &arg : step.args) {
    uint64_t size = 8, align = 8;
    switch (arg.kind) {
    case ArgKind::Pointer:
    case ArgKind::Workspace:
      break;
    case ArgKind::Size:
    case ArgKind::Stride:
    case ArgKind::Scalar:
    case ArgKind::Expression:
      size = align = getByteWidth(arg.type);
      break;
    case ArgKind::TensorMap:
      size = 128;
      align = 64;
      break;
    }
    offset = llvm::alignTo(offset, align);
    resolved.parameters.push_back({uint32_t(offset), uint32_t(size)});
    offset += size;
  }
  resolved.parameterBytes = offset;
}

/// Fails where the CTAs of a step would deal more tiles than they can number.
static llvm::Error checkTiles(const LaunchStep &step, SizeExpr::Lookup lookup) {
  if (!step.tiles)
    return llvm::Error::success();
  Expected<int64_t> tiles = step.tiles->evaluate(lookup);
  if (!tiles)
    return createStringError("tiles: " + llvm::toString(tiles.takeError()));
  if (*tiles <= kMostTiles)
    return llvm::Error::success();
  return createStringError("tiles: expected at most " + Twine(kMostTiles) +
                           ", got " + Twine(*tiles));
}

/// Where a step is in messages: nothing for the only one.
static std::string getStepPrefix(const LaunchRecord &record, unsigned step) {
  return record.steps.size() == 1 ? std::string()
                                  : ("steps[" + Twine(step) + "].").str();
}

static Expected<ResolvedStep> resolveStep(const LaunchStep &step,
                                          SizeExpr::Lookup lookup) {
  ResolvedStep resolved;
  // CUDA programming guide, "Technical Specifications per Compute Capability".
  constexpr int64_t gridLimits[] = {INT32_MAX, 65535, 65535};
  for (unsigned axis : {0, 1, 2}) {
    Expected<int64_t> extent = step.grid[axis].evaluate(lookup);
    if (!extent)
      return createStringError("grid[" + Twine(axis) +
                               "]: " + llvm::toString(extent.takeError()));
    if (*extent < 0 || *extent > gridLimits[axis])
      return createStringError(
          "grid[" + Twine(axis) + "]: expected an extent from 0 to " +
          Twine(gridLimits[axis]) + ", got " + Twine(*extent));
    if (*extent % step.cluster[axis])
      return createStringError(
          "grid[" + Twine(axis) + "]: expected a multiple of the cluster's " +
          Twine(step.cluster[axis]) + ", got " + Twine(*extent));
    resolved.grid[axis] = *extent;
  }
  if (llvm::Error error = checkTiles(step, lookup))
    return std::move(error);
  for (auto [index, arg] : llvm::enumerate(step.args)) {
    resolved.values.push_back(0);
    if (arg.kind != ArgKind::Expression)
      continue;
    Expected<int64_t> value = arg.expression.evaluate(lookup);
    if (!value)
      return createStringError("args[" + Twine(index) +
                               "].value: " + llvm::toString(value.takeError()));
    resolved.values.back() = *value;
  }
  layOutParameters(step, resolved);
  return std::move(resolved);
}

/// For each tensor of the record its index among the caller's, which it fits.
static Expected<llvm::SmallVector<unsigned, 8>>
matchTensors(const LaunchRecord &record, ArrayRef<TensorArgument> tensors) {
  llvm::StringSet<> known;
  for (const LaunchTensor &expected : record.tensors)
    known.insert(expected.name);
  llvm::StringMap<unsigned> places;
  for (auto [index, actual] : llvm::enumerate(tensors)) {
    if (!known.contains(actual.name))
      return failTensor(actual.name,
                        "the launch record has no tensor of this name");
    if (!places.try_emplace(actual.name, index).second)
      return failTensor(actual.name, "expected one tensor, got two");
  }
  llvm::SmallVector<unsigned, 8> indices;
  for (const LaunchTensor &expected : record.tensors) {
    auto found = places.find(expected.name);
    if (found == places.end())
      return failTensor(expected.name, "missing");
    if (Error error = checkTensor(expected, tensors[found->second]))
      return std::move(error);
    indices.push_back(found->second);
  }
  return std::move(indices);
}

Expected<ResolvedLaunch>
mlir::attn::resolveLaunch(const LaunchRecord &record,
                          ArrayRef<TensorArgument> tensors,
                          std::optional<int64_t> multiprocessors) {
  ResolvedLaunch resolved;
  Expected<llvm::SmallVector<unsigned, 8>> indices =
      matchTensors(record, tensors);
  if (!indices)
    return indices.takeError();
  resolved.tensors = std::move(*indices);

  auto lookup = [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
    if (symbol.isDevice())
      return multiprocessors;
    std::optional<unsigned> index = record.findTensor(symbol.tensor);
    if (!index)
      return std::nullopt;
    const TensorArgument &tensor = tensors[resolved.tensors[*index]];
    ArrayRef<int64_t> values = symbol.isStride ? tensor.strides : tensor.shape;
    if (symbol.index >= values.size())
      return std::nullopt;
    return values[symbol.index];
  };
  for (auto [index, step] : llvm::enumerate(record.steps)) {
    Expected<ResolvedStep> found = resolveStep(step, lookup);
    if (!found)
      return createStringError(getStepPrefix(record, index) +
                               llvm::toString(found.takeError()));
    resolved.steps.push_back(std::move(*found));
  }
  StringRef field = record.steps.size() == 1 ? "workspace" : "workspaces";
  for (auto [index, workspace] : llvm::enumerate(record.workspaces)) {
    Expected<int64_t> bytes = workspace.bytes.evaluate(lookup);
    if (!bytes)
      return createStringError(field + "[" + Twine(index) +
                               "].bytes: " + llvm::toString(bytes.takeError()));
    if (*bytes < 0)
      return createStringError(field + "[" + Twine(index) +
                               "].bytes: expected at least 0, got " +
                               Twine(*bytes));
    resolved.workspaceBytes.push_back(*bytes);
  }
  return std::move(resolved);
}

/// Makes `dim` of a map's dimensions, the innermost first, say where rows end,
/// and moves where they start; what the tensor has to be if it cannot.
static std::optional<std::string>
setEnds(llvm::SmallVectorImpl<int64_t> &shape,
        llvm::SmallVectorImpl<int64_t> &strides, size_t dim, unsigned width,
        uint64_t &address) {
  int64_t rows = shape[1], stride = strides[1], before = 0;
  // The last row is always the last one of the map, so that nothing behind it
  // is inside. Rows that end at e lie e rows further on.
  shape[dim] = rows + 1;
  strides[dim] = stride;
  if (stride < 0 || llvm::MulOverflow<int64_t>(rows, stride * width, before) ||
      static_cast<uint64_t>(before) >= address)
    return ("an address above " + Twine(rows) + " rows of " + Twine(stride) +
            " elements")
        .str();
  address -= before;
  return std::nullopt;
}

/// Makes one dimension of all of a map's but the innermost, in which rows are
/// `pitch` elements apart; what the tensor has to be if it cannot.
static std::optional<std::string>
joinRows(llvm::SmallVectorImpl<int64_t> &shape,
         llvm::SmallVectorImpl<int64_t> &strides, int64_t pitch) {
  int64_t last = 0;
  for (auto [extent, stride] :
       llvm::drop_begin(llvm::zip_equal(shape, strides))) {
    if (extent < 1)
      return ("extents of at least 1, got " + Twine(extent)).str();
    // Nothing steps along a dimension of extent 1.
    if (extent == 1)
      continue;
    if (stride < 0 || stride % pitch != 0)
      return ("strides of a multiple of " + Twine(pitch) + " elements, got " +
              Twine(stride))
          .str();
    int64_t rows = 0;
    if (llvm::MulOverflow(extent - 1, stride / pitch, rows) ||
        llvm::AddOverflow(last, rows, last) || last >= INT32_MAX)
      return std::string("fewer than 2^31 rows");
  }
  shape.truncate(1), strides.truncate(1);
  shape.push_back(last + 1), strides.push_back(pitch);
  return std::nullopt;
}

/// Makes the map of a tensor without elements, of which no kernel loads
/// anything: extents of maps begin at 1, so that it is of one element.
static void setEmpty(TensorMapParameter &map, ArrayRef<int64_t> box) {
  constexpr int64_t strideUnit = 16;
  map.dims.assign(box.size(), 1);
  map.strides.assign(box.size() - 1, strideUnit);
  map.box.assign(box.begin(), box.end());
}

/// True when no kernel loads anything of a tensor: it has no elements, but is
/// no pool without pages. Pages that a pool does not have hold zeros, which
/// kernels load where there are results.
static bool isNeverLoaded(const TensorArgument &tensor, bool hasResults) {
  return llvm::is_contained(tensor.shape, 0) &&
         (!hasResults || tensor.shape.front());
}

/// True when one of the tensors that a launch fills has elements.
static bool hasResults(const LaunchRecord &record,
                       const ResolvedLaunch &resolved,
                       ArrayRef<TensorArgument> tensors) {
  return llvm::any_of(llvm::zip_equal(record.tensors, resolved.tensors),
                      [&](auto pair) {
                        auto [expected, index] = pair;
                        return expected.access == TensorAccess::Write &&
                               !llvm::is_contained(tensors[index].shape, 0);
                      });
}

static Expected<TensorMapParameter> makeTensorMap(const LaunchArg &arg,
                                                  const TensorArgument &tensor,
                                                  ParameterSlot slot,
                                                  bool hasResults) {
  auto fail = [&](const Twine &problem) {
    return failTensor(tensor.name, "its tensor map expects " + problem);
  };
  TensorMapParameter map;
  map.slot = slot;
  map.address = tensor.address;
  map.element = arg.element;
  map.swizzle = arg.swizzle;
  unsigned width = getByteWidth(arg.element);
  if (width != getByteWidth(tensor.dtype))
    return fail("elements of " + Twine(width) + " bytes, got " +
                stringifyDType(tensor.dtype));
  if (tensor.address % 16)
    return fail("an address of a multiple of 16 bytes");
  if (isNeverLoaded(tensor, hasResults)) {
    setEmpty(map, arg.box);
    return std::move(map);
  }
  // The map's dimensions, the innermost first.
  llvm::SmallVector<int64_t, 5> shape(llvm::reverse(tensor.shape));
  llvm::SmallVector<int64_t, 5> strides(llvm::reverse(tensor.strides));
  if (arg.view == TensorMapView::Transposed) {
    std::swap(shape[0], shape[1]);
    std::swap(strides[0], strides[1]);
  } else if (arg.view == TensorMapView::Quads) {
    if (shape[1] % 4)
      return fail("rows of a multiple of 4, got " + Twine(shape[1]));
    shape[1] /= 4;
    shape.insert(shape.begin() + 1, 4);
    strides.insert(strides.begin() + 2, 4 * strides[1]);
  } else if (arg.view == TensorMapView::Rows) {
    if (std::optional<std::string> problem =
            joinRows(shape, strides, arg.pitch))
      return fail(*problem);
  } else if (isPacked(arg.view) || arg.view == TensorMapView::Bounded) {
    size_t dim = shape.size() - 1;
    if (arg.view == TensorMapView::Bounded) {
      shape.insert(shape.begin() + dim, 1);
      strides.insert(strides.begin() + dim, 0);
    } else if (shape.back() != 1) {
      return fail("one batch of packed sequences, got " + Twine(shape.back()));
    }
    if (std::optional<std::string> problem =
            setEnds(shape, strides, dim, width, map.address))
      return fail(*problem);
  }
  if (isByRow(arg.view)) {
    std::swap(shape[1], shape[2]);
    std::swap(strides[1], strides[2]);
  }
  // Limits of cuTensorMapEncodeTiled in the CUDA driver API.
  for (auto [i, extent, stride] : llvm::enumerate(shape, strides)) {
    if (extent < 1 || extent > (int64_t(1) << 32))
      return fail("extents from 1 to 2^32, got " + Twine(extent));
    map.dims.push_back(extent);
    map.box.push_back(arg.box[i]);
    if (i == 0) {
      if (stride != 1 && extent > 1)
        return fail("an innermost stride of 1, got " + Twine(stride));
      continue;
    }
    // A dimension of extent 1 may carry any stride; the map needs a valid one.
    if (extent == 1)
      stride = 16 / width;
    int64_t bytes = 0;
    if (llvm::MulOverflow<int64_t>(stride, width, bytes) || bytes % 16 ||
        bytes < 0 || bytes >= (int64_t(1) << 40))
      return fail("strides of a multiple of 16 bytes below 2^40, got " +
                  Twine(stride) + " elements");
    map.strides.push_back(bytes);
  }
  return std::move(map);
}

/// Writes an integer of `width` bytes; fails when it does not fit.
static Error writeInteger(DType type, int64_t value, uint8_t *bytes) {
  if (type == DType::I32 && !llvm::isInt<32>(value))
    return createStringError("expected a value that fits i32, got " +
                             Twine(value));
  if (type == DType::I32)
    llvm::support::endian::write32le(bytes, uint32_t(value));
  else
    llvm::support::endian::write64le(bytes, uint64_t(value));
  return Error::success();
}

static Error writeScalar(const LaunchArg &arg, std::optional<double> value,
                         uint8_t *bytes) {
  if (!value)
    return createStringError("scalar \"" + arg.name + "\": missing value");
  if (!isFloat(arg.type)) {
    bool hasSign = !isUnsignedInteger(arg.type);
    double limit = std::ldexp(1.0, getByteWidth(arg.type) * 8 - hasSign);
    if (*value != std::floor(*value) || *value < (hasSign ? -limit : 0) ||
        *value >= limit)
      return createStringError(
          llvm::formatv("scalar \"{0}\": expected an integer that fits {1}, "
                        "got {2}",
                        arg.name, stringifyDType(arg.type), *value)
              .str());
  }
  encodeElement(arg.type, *value, bytes);
  return Error::success();
}

Expected<BoundParameters> mlir::attn::bindParameters(
    const LaunchRecord &record, const ResolvedLaunch &resolved, unsigned step,
    ArrayRef<TensorArgument> tensors, const llvm::StringMap<double> &scalars,
    ArrayRef<uint64_t> workspaces) {
  const ResolvedStep &layout = resolved.steps[step];
  BoundParameters bound;
  bound.bytes.assign(layout.parameterBytes, 0);
  for (const auto &scalar : scalars)
    if (llvm::none_of(record.steps, [&](const LaunchStep &each) {
          return llvm::any_of(each.args, [&](const LaunchArg &arg) {
            return arg.kind == ArgKind::Scalar && arg.name == scalar.getKey();
          });
        }))
      return createStringError("scalar \"" + scalar.getKey() +
                               "\": the launch record has no scalar of this "
                               "name");
  if (workspaces.size() != record.workspaces.size())
    return createStringError("expected " + Twine(record.workspaces.size()) +
                             " workspaces, got " + Twine(workspaces.size()));
  for (auto [index, arg] : llvm::enumerate(record.steps[step].args)) {
    uint8_t *bytes = bound.bytes.data() + layout.parameters[index].offset;
    Error error = Error::success();
    auto getTensor = [&, tensor = arg.tensor]() -> const TensorArgument & {
      return tensors[resolved.tensors[tensor]];
    };
    switch (arg.kind) {
    case ArgKind::Pointer:
      llvm::support::endian::write64le(bytes, getTensor().address);
      break;
    case ArgKind::Size:
      error = writeInteger(arg.type, getTensor().shape[arg.dim], bytes);
      break;
    case ArgKind::Stride:
      error = writeInteger(arg.type, getTensor().strides[arg.dim], bytes);
      break;
    case ArgKind::Scalar: {
      auto found = scalars.find(arg.name);
      error = writeScalar(arg,
                          found == scalars.end()
                              ? arg.value
                              : std::optional<double>(found->second),
                          bytes);
      break;
    }
    case ArgKind::TensorMap: {
      Expected<TensorMapParameter> map =
          makeTensorMap(arg, getTensor(), layout.parameters[index],
                        hasResults(record, resolved, tensors));
      if (map)
        bound.tensorMaps.push_back(std::move(*map));
      else
        error = map.takeError();
      break;
    }
    case ArgKind::Workspace:
      llvm::support::endian::write64le(bytes, workspaces[arg.workspace]);
      break;
    case ArgKind::Expression:
      error = writeInteger(arg.type, layout.values[index], bytes);
      break;
    }
    if (error)
      return createStringError(getStepPrefix(record, step) + "args[" +
                               Twine(index) +
                               "]: " + llvm::toString(std::move(error)));
  }
  return std::move(bound);
}

Expected<uint64_t> mlir::attn::getExtentBytes(ArrayRef<int64_t> shape,
                                              ArrayRef<int64_t> strides,
                                              DType dtype) {
  int64_t last = 0;
  for (auto [extent, stride] : llvm::zip_equal(shape, strides)) {
    if (extent == 0)
      return 0;
    if (extent == 1)
      continue;
    if (stride < 0)
      return createStringError("expected strides of at least 0, got " +
                               Twine(stride));
    int64_t reach;
    if (llvm::MulOverflow<int64_t>(extent - 1, stride, reach) ||
        llvm::AddOverflow(last, reach, last))
      return createStringError("expected an extent below 2^63 elements");
  }
  int64_t bytes;
  if (llvm::AddOverflow<int64_t>(last, 1, last) ||
      llvm::MulOverflow<int64_t>(last, getByteWidth(dtype), bytes))
    return createStringError("expected an extent below 2^63 bytes");
  return uint64_t(bytes);
}

llvm::SmallVector<int64_t, 4>
mlir::attn::getContiguousStrides(ArrayRef<int64_t> shape) {
  llvm::SmallVector<int64_t, 4> strides(shape.size(), 1);
  for (size_t i = shape.size(); i-- > 1;)
    // What does not fit is refused where it is known how far a tensor reaches.
    if (llvm::MulOverflow(strides[i], std::max<int64_t>(shape[i], 1),
                          strides[i - 1]))
      strides[i - 1] = INT64_MAX;
  return strides;
}
