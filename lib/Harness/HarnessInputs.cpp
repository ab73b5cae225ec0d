//===- HarnessInputs.cpp - tensors of a simulated launch ------------------===//
#include "HarnessInputs.h"

#include "HarnessEffort.h"
#include "HarnessPages.h"
#include "HarnessRandom.h"
#include "attn/Simulator/Async/TensorMap.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <cmath>
#include <cstring>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static TensorMapElement getMapElement(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return TensorMapElement::F16;
  case DType::BF16:
    return TensorMapElement::BF16;
  case DType::F32:
    return TensorMapElement::F32;
  case DType::F64:
    return TensorMapElement::F64;
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E8M0FNU:
  case DType::I8:
  case DType::U8:
    return TensorMapElement::U8;
  case DType::I16:
  case DType::U16:
    return TensorMapElement::U16;
  case DType::U32:
    return TensorMapElement::U32;
  case DType::U64:
    return TensorMapElement::U64;
  case DType::I32:
    return TensorMapElement::S32;
  case DType::I64:
    return TensorMapElement::S64;
  }
  llvm_unreachable("covered switch");
}

Error sim::writeTensorMap(const TensorMapParameter &map,
                          llvm::MutableArrayRef<uint8_t> parameters) {
  TensorMapInfo info;
  info.address = map.address;
  info.element = getMapElement(map.element);
  info.rank = map.dims.size();
  llvm::copy(map.dims, info.dims.begin());
  llvm::copy(map.strides, info.strides.begin() + 1);
  llvm::copy(map.box, info.box.begin());
  info.swizzleBytes = getSwizzleBytes(map.swizzle);
  Expected<std::array<uint8_t, 128>> bytes = encodeTensorMap(info);
  if (!bytes)
    return bytes.takeError();
  llvm::copy(*bytes, parameters.begin() + map.slot.offset);
  return Error::success();
}

namespace {

/// Makes the tensors of one launch.
class TensorMaker {
public:
  TensorMaker(const LaunchRecord &record, const HarnessOptions &options,
              ProgressMeter &progress)
      : record(record), options(options), progress(progress) {}

  Expected<std::vector<HarnessTensor>> run() {
    for (const LaunchTensor &declared : record.tensors) {
      HarnessTensor tensor;
      tensor.access = declared.access;
      tensor.argument = {declared.name, declared.dtype, declared.shape,
                         declared.strides, 0};
      tensors.push_back(std::move(tensor));
    }
    if (Error error = applySizes())
      return std::move(error);
    if (Error error = applyArrays())
      return std::move(error);
    if (record.problem)
      if (Error error = propagateSizes(*record.problem))
        return std::move(error);
    std::vector<HostBuffer> buffers;
    for (HarnessTensor &tensor : tensors) {
      Expected<uint64_t> bytes = finish(tensor.argument);
      if (!bytes)
        return bytes.takeError();
      buffers.push_back({"tensor \"" + tensor.argument.name + "\"",
                         getHostBytes(*bytes, tensor.access)});
    }
    if (Error error = checkMemory(buffers, options.config.memoryLimit))
      return std::move(error);
    Effort effort = estimateEffort(record, tensors, options);
    progress.begin("inputs", effort.inputs,
                   effort.reference +
                       effort.simulation * (options.corners ? 9 : 1));
    PageMaker pages(tensors, options,
                    record.problem && record.problem->selected);
    PageMaker added = PageMaker::getAdded(tensors, options);
    for (HarnessTensor &tensor : tensors) {
      if (isRead(tensor.access) && !pages.makes(tensor) && !added.makes(tensor))
        if (Error error = fill(tensor))
          return std::move(error);
      if (Error error = progress.takeError())
        return std::move(error);
    }
    for (PageMaker *maker : {&pages, &added})
      if (Error error = maker->make())
        return std::move(error);
    return std::move(tensors);
  }

private:
  Error applySizes();
  Error applyArrays();
  Error propagateSizes(const AttentionProblem &problem);
  Error unify(ArrayRef<std::pair<StringRef, unsigned>> sizes, int64_t value);
  Expected<uint64_t> finish(TensorArgument &tensor);
  Error fill(HarnessTensor &tensor);
  Error fillLengths(HarnessTensor &tensor, Random &random);
  Error fillBlocks(HarnessTensor &tensor);

  HarnessTensor *find(StringRef name) {
    std::optional<unsigned> index = record.findTensor(name);
    return index ? &tensors[*index] : nullptr;
  }

  /// Sets a size or stride that may be known already.
  Error set(int64_t &slot, int64_t value, const Twine &name) {
    if (slot != kDynamicSize && slot != value)
      return createStringError(name + ": expected " + Twine(slot) + ", got " +
                               Twine(value));
    slot = value;
    return Error::success();
  }

  const LaunchRecord &record;
  const HarnessOptions &options;
  ProgressMeter &progress;
  std::vector<HarnessTensor> tensors;
};

} // namespace

Error TensorMaker::applySizes() {
  for (const auto &entry : options.sizes) {
    StringRef name = entry.getKey();
    auto fail = [&](const Twine &problem) {
      return createStringError("size \"" + name + "\": " + problem);
    };
    // Of all expressions, only a lone symbol names something to set.
    Expected<SizeExpr> expression = SizeExpr::parse(name);
    if (!expression) {
      llvm::consumeError(expression.takeError());
      return fail("expected NAME.dimI or NAME.strideI");
    }
    SizeSymbol symbol;
    if (!expression->getSymbols().empty())
      symbol = expression->getSymbols().front();
    if ((symbol.tensor + (symbol.isStride ? ".stride" : ".dim") +
         Twine(symbol.index))
            .str() != name)
      return fail("expected NAME.dimI or NAME.strideI");
    HarnessTensor *tensor = find(symbol.tensor);
    if (!tensor || symbol.index >= tensor->argument.shape.size())
      return fail("the launch record has no such size");
    if (entry.second < 0)
      return fail("expected at least 0, got " + Twine(entry.second));
    int64_t &slot = symbol.isStride ? tensor->argument.strides[symbol.index]
                                    : tensor->argument.shape[symbol.index];
    if (Error error = set(slot, entry.second, "size \"" + name + "\""))
      return error;
  }
  return Error::success();
}

Error TensorMaker::applyArrays() {
  for (const auto &entry : options.inputs) {
    StringRef name = entry.getKey();
    HarnessTensor *tensor = find(name);
    auto fail = [&](const Twine &problem) {
      return createStringError("input \"" + name + "\": " + problem);
    };
    if (!tensor)
      return fail("the launch record has no tensor of this name");
    if (!isRead(tensor->access))
      return fail("the kernel writes this tensor");
    TensorArgument &argument = tensor->argument;
    const NpyArray &array = entry.second;
    if (!array.holds(argument.dtype))
      return fail("expected elements of " + stringifyDType(argument.dtype) +
                  ", got " + array.getTypeName());
    if (array.shape.size() != argument.shape.size())
      return fail("expected rank " + Twine(argument.shape.size()) + ", got " +
                  Twine(array.shape.size()));
    for (auto [axis, extent] : llvm::enumerate(array.shape))
      if (Error error = set(argument.shape[axis], extent,
                            "input \"" + name + "\": dimension " + Twine(axis)))
        return error;
  }
  return Error::success();
}

/// Gives all of `sizes`, tensor and dimension, one value: `value`, or the one
/// that is known.
Error TensorMaker::unify(ArrayRef<std::pair<StringRef, unsigned>> sizes,
                         int64_t value) {
  for (auto [name, axis] : sizes) {
    HarnessTensor *tensor = find(name);
    if (tensor && tensor->sharesAxis(axis) && value == kDynamicSize)
      value = tensor->argument.shape[axis];
  }
  if (value == kDynamicSize)
    return Error::success();
  for (auto [name, axis] : sizes) {
    HarnessTensor *tensor = find(name);
    if (!tensor || !tensor->sharesAxis(axis))
      continue;
    int64_t &slot = tensor->argument.shape[axis];
    if (slot != kDynamicSize && slot != value)
      return createStringError("tensor \"" + name + "\": dimension " +
                               Twine(axis) + ": expected " + Twine(value) +
                               ", got " + Twine(slot));
    slot = value;
  }
  return Error::success();
}

Error TensorMaker::propagateSizes(const AttentionProblem &problem) {
  using Sizes = std::vector<std::pair<StringRef, unsigned>>;
  // Partial results have their run in front of the batch.
  std::optional<unsigned> o = record.findTensor("o");
  unsigned lead = o && record.tensors[*o].shape.size() == 5 ? 1 : 0;
  // Pools have pages in the place of the batch.
  bool isPaged = record.findTensor("page_table").has_value();
  bool hasRows = !record.findTensor("page_indptr");
  // A byte of such an output has two results.
  bool isPaired = o && record.tensors[*o].dtype == DType::I8;
  Sizes batch = {{"q", 0},        {"q_rope", 0},        {"o", lead},
                 {"lse", lead},   {"init_o", 0},        {"init_lse", 0},
                 {"o_scales", 0}, {"block_indices", 0}, {"block_counts", 0}};
  Sizes pool = {
      {"k", 0}, {"v", 0}, {"k_scales", 0}, {"v_scales", 0}, {"k_rope", 0}};
  Sizes sequences = {{"kv_lengths", 0},  {"q_descale", 0},
                     {"k_descale", 0},   {"v_descale", 0},
                     {"added_table", 0}, {"added_lengths", 0}};
  if (isPaged && hasRows)
    sequences.push_back({"page_table", 0});
  if (!isPaged)
    batch.insert(batch.end(), pool.begin(), pool.end());
  if (!problem.varlen)
    batch.insert(batch.end(), sequences.begin(), sequences.end());
  int64_t numSequences = kDynamicSize;
  if (HarnessTensor *ends = find("cu_seqlens_q");
      ends && !ends->argument.shape.empty() &&
      ends->argument.shape[0] != kDynamicSize)
    numSequences = ends->argument.shape[0] - 1;
  const std::pair<Sizes, int64_t> groups[] = {
      {batch, kDynamicSize},
      {pool, kDynamicSize},
      {{{"added_k", 0}, {"added_v", 0}}, kDynamicSize},
      {sequences, numSequences},
      {{{"q", 1},
        {"q_rope", 1},
        {"o", lead + 1},
        {"lse", lead + 1},
        {"o_scales", 1},
        {"sinks", 0},
        {"init_o", 1},
        {"init_lse", 1},
        {"block_indices", 1},
        {"block_counts", 1},
        {"q_descale", 1}},
       problem.heads},
      {{{"block_indices", 2}, {"block_counts", 2}}, kDynamicSize},
      {{{"k", 1},
        {"v", 1},
        {"k_scales", 1},
        {"v_scales", 1},
        {"k_rope", 1},
        {"added_k", 1},
        {"added_v", 1},
        {"k_descale", 1},
        {"v_descale", 1}},
       problem.kvHeads},
      {{{"q", 2},
        {"q_rope", 2},
        {"o", lead + 2},
        {"lse", lead + 2},
        {"o_scales", 2},
        {"init_o", 2},
        {"init_lse", 2}},
       kDynamicSize},
      {{{"k", 2}, {"v", 2}, {"k_scales", 2}, {"v_scales", 2}, {"k_rope", 2}},
       kDynamicSize},
      {{{"q", 3}}, record.findTensor("q_rope") ? problem.dv : problem.d},
      {{{"k", 3}}, record.findTensor("k_rope") ? problem.dv : problem.d},
      {{{"v", 3}, {"init_o", 3}, {"added_v", 3}}, problem.dv},
      {{{"added_k", 3}}, problem.d},
      {{{"added_k", 2}, {"added_v", 2}}, kDynamicSize},
      {{{"o", lead + 3}}, isPaired ? problem.dv / 2 : problem.dv},
      {{{"cu_seqlens_q", 0}, {"cu_seqlens_k", 0}}, kDynamicSize}};
  for (const auto &[sizes, value] : groups)
    if (Error error = unify(sizes, value))
      return error;
  return Error::success();
}

/// Checks that all sizes are known, and makes open strides row-major, or
/// column-major in the last two dimensions if columns are known to be
/// contiguous. The bytes that the tensor spans.
Expected<uint64_t> TensorMaker::finish(TensorArgument &tensor) {
  for (auto [axis, extent] : llvm::enumerate(tensor.shape))
    if (extent == kDynamicSize)
      return createStringError("tensor \"" + tensor.name + "\": dimension " +
                               Twine(axis) + " is open, give \"" + tensor.name +
                               ".dim" + Twine(axis) + "\"");
  int64_t next = 1;
  size_t rank = tensor.shape.size();
  const auto &declared = record.tensors[*record.findTensor(tensor.name)];
  int64_t unit = getStrideUnit(tensor.name, getByteWidth(tensor.dtype));
  if (rank >= 2 && tensor.strides[rank - 2] == 1 &&
      tensor.strides[rank - 1] == kDynamicSize)
    next = std::max<int64_t>(tensor.shape[rank - 2], 1);
  for (size_t axis = rank; axis-- > 0;) {
    int64_t &stride = tensor.strides[axis];
    bool isRow = axis + 1 < rank && tensor.shape[axis] > 1;
    if (stride == kDynamicSize)
      stride =
          isRow && next < INT64_MAX - unit ? llvm::alignTo(next, unit) : next;
    else if (isRow && declared.strides[axis] == kDynamicSize && stride % unit)
      return createStringError("tensor \"" + tensor.name + "\": stride " +
                               Twine(axis) + ": expected a multiple of " +
                               Twine(unit) + " elements, got " + Twine(stride));
    // A product that overflows is refused below, where the extent is known.
    int64_t reach;
    if (llvm::MulOverflow(stride, std::max<int64_t>(tensor.shape[axis], 1),
                          reach))
      reach = INT64_MAX;
    next = std::max(next, reach);
  }
  Expected<uint64_t> bytes =
      getExtentBytes(tensor.shape, tensor.strides, tensor.dtype);
  if (!bytes)
    return createStringError("tensor \"" + tensor.name +
                             "\": " + llvm::toString(bytes.takeError()));
  return *bytes;
}

Error TensorMaker::fill(HarnessTensor &tensor) {
  const TensorArgument &argument = tensor.argument;
  unsigned width = getByteWidth(argument.dtype);
  tensor.bytes.resize(cantFail(
      getExtentBytes(argument.shape, argument.strides, argument.dtype)));
  auto given = options.inputs.find(argument.name);
  if (given != options.inputs.end()) {
    const uint8_t *source = given->second.data.data();
    forEachElement(argument, [&](int64_t offset) {
      std::memcpy(&tensor.bytes[offset], source, width);
      source += width;
    });
    return Error::success();
  }
  // The largest result joins what is there, so that nothing is.
  if (argument.name == "amax")
    return Error::success();
  Random random(options.seed, argument.name);
  if (record.problem && record.problem->varlen &&
      StringRef(argument.name).starts_with("cu_seqlens_"))
    return fillLengths(tensor, random);
  if (argument.name == "block_counts" || argument.name == "block_indices")
    return fillBlocks(tensor);
  if (!isFloat(argument.dtype))
    return createStringError("tensor \"" + argument.name +
                             "\": expected values for an input of integers, "
                             "got none");
  // Descales and scales are above zero: powers of two from 1/2 to 2, and
  // between.
  bool isDescale = StringRef(argument.name).ends_with("_descale") ||
                   StringRef(argument.name).ends_with("_scales");
  bool isInitLse = argument.name == "init_lse";
  uint64_t count = 0;
  forEachElement(argument, [&](int64_t offset) {
    // A look at the clock for each element would take as long as its value.
    if (++count % 4096 == 0)
      progress.update(double(offset) / double(tensor.bytes.size()));
    if (progress.isStopped())
      return;
    double value =
        isDescale ? std::exp2(2 * random.uniform() - 1) : random.normal();
    // Some rows have no state to go on from.
    if (isInitLse && count % 5 == 0)
      value = -std::numeric_limits<double>::infinity();
    encodeElement(argument.dtype, value, &tensor.bytes[offset]);
  });
  return Error::success();
}

/// A random split of the packed rows into sequences, some of them empty.
Error TensorMaker::fillLengths(HarnessTensor &tensor, Random &random) {
  const TensorArgument &argument = tensor.argument;
  bool isQuery = argument.name == "cu_seqlens_q";
  HarnessTensor *packed = find(isQuery ? "q" : "k");
  if (!packed || packed->argument.shape.size() != 4 ||
      argument.shape.size() != 1 || argument.shape[0] < 1)
    return createStringError("tensor \"" + argument.name +
                             "\": expected shape [sequences + 1] and packed "
                             "operands of rank 4");
  // With a stride of zero few bytes are many elements.
  if (argument.shape[0] > INT32_MAX)
    return createStringError("tensor \"" + argument.name +
                             "\": expected at most 2^31 - 1 elements, got " +
                             Twine(argument.shape[0]));
  int64_t rows = packed->argument.shape[2];
  int64_t bound = isQuery ? record.problem->maxSeqlenQ : 0;
  std::vector<int64_t> cuts(argument.shape[0]);
  for (int64_t &cut : cuts)
    cut = random.integer(rows);
  llvm::sort(cuts);
  cuts.front() = 0;
  if (cuts.size() > 1)
    cuts.back() = rows;
  for (size_t i = 1; bound && i < cuts.size(); ++i)
    cuts[i] = std::min(cuts[i], cuts[i - 1] + bound);
  size_t next = 0;
  forEachElement(argument, [&](int64_t offset) {
    encodeElement(argument.dtype, double(cuts[next++]), &tensor.bytes[offset]);
  });
  return Error::success();
}

/// Random lists of blocks, in any order: each is hidden, full or partial. The
/// first list is empty, and the second one names all blocks. Both tensors are
/// made of the same numbers.
Error TensorMaker::fillBlocks(HarnessTensor &tensor) {
  const TensorArgument &argument = tensor.argument;
  HarnessTensor *indices = find("block_indices"), *keys = find("k");
  int64_t size = record.problem ? record.problem->blockKeys : 0;
  if (!indices || !keys || indices->argument.shape.size() != 4 ||
      argument.shape.size() != 4 || keys->argument.shape.size() != 4 ||
      size < 1 || argument.dtype != DType::I32)
    return createStringError("tensor \"" + argument.name +
                             "\": expected i32 of rank 4 beside k of rank 4 "
                             "and sizes of blocks");
  Random random(options.seed, "block_indices");
  int64_t blocks =
      std::min(keys->argument.shape[2] / size, indices->argument.shape[3]);
  bool isCounts = argument.name == "block_counts";
  std::vector<int64_t> numbers;
  size_t list = 0, next = 0;
  auto makeList = [&] {
    std::vector<int64_t> full, partial, order(blocks);
    std::iota(order.begin(), order.end(), 0);
    for (int64_t i = blocks - 1; i > 0; --i)
      std::swap(order[i], order[random.integer(i)]);
    for (int64_t block : order) {
      int64_t kind = random.integer(2);
      if (list == 0 || (kind == 0 && list != 1))
        continue;
      (kind == 2 ? full : partial).push_back(block);
    }
    numbers = {int64_t(full.size() + partial.size()), int64_t(full.size())};
    if (!isCounts) {
      numbers = std::move(full);
      llvm::append_range(numbers, partial);
      // Entries behind a list's end say nothing.
      numbers.resize(argument.shape[3], -1);
    }
    ++list, next = 0;
  };
  forEachElement(argument, [&](int64_t offset) {
    if (next == numbers.size())
      makeList();
    encodeElement(argument.dtype, double(numbers[next++]),
                  &tensor.bytes[offset]);
  });
  return Error::success();
}

void sim::enlargeScores(const AttentionProblem &problem,
                        llvm::MutableArrayRef<HarnessTensor> tensors) {
  // Regions may do anything with large scores: a little is what they get.
  bool hasRegions = problem.scoreMod || problem.maskMod;
  double deviation = std::abs(problem.scale) * std::sqrt(double(problem.d));
  double mostOfKeys = std::clamp((hasRegions ? 4 : 16) / deviation, 1.0, 64.0);
  double ofSomeRows =
      hasRegions ? 1.0 : std::clamp(64 / (deviation * mostOfKeys), 1.0, 4.0);
  for (HarnessTensor &tensor : tensors) {
    const TensorArgument &argument = tensor.argument;
    bool isKeys = argument.name == "k";
    if ((!isKeys && argument.name != "q") || argument.shape.size() != 4)
      continue;
    int64_t rows = argument.shape[2], element = 0;
    forEachElement(argument, [&](int64_t offset) {
      int64_t row = element++ / argument.shape[3] % rows;
      double factor = row % 5 == 3 ? ofSomeRows : 1;
      if (isKeys)
        factor = 1 + (mostOfKeys - 1) * double(rows - row) / double(rows);
      uint8_t *bytes = &tensor.bytes[offset];
      encodeElement(argument.dtype,
                    factor * decodeElement(argument.dtype, bytes), bytes);
    });
  }
}

Expected<std::vector<HarnessTensor>>
sim::makeTensors(const LaunchRecord &record, const HarnessOptions &options,
                 ProgressMeter &progress) {
  return TensorMaker(record, options, progress).run();
}

Expected<AttentionInputs>
sim::getReferenceInputs(const LaunchRecord &record,
                        llvm::ArrayRef<HarnessTensor> tensors,
                        const HarnessOptions &options) {
  auto find = [&](StringRef name) -> const HarnessTensor * {
    std::optional<unsigned> index = record.findTensor(name);
    return index ? &tensors[*index] : nullptr;
  };
  // Latent attention: the values are the first columns of the keys.
  const HarnessTensor *keys = find("k"), *values = find("v");
  bool isLatent = keys && !values && keys->argument.shape.size() == 4 &&
                  record.problem->dv <= keys->argument.shape[3];
  for (StringRef name : {"q", "k", "v", "o"})
    if (!find(name) && !(isLatent && name == "v"))
      return createStringError("launch record: expected a tensor \"" + name +
                               "\" to verify, got none");
  AttentionInputs inputs;
  inputs.q = find("q")->getView();
  inputs.k = keys->getView();
  inputs.v = values ? values->getView() : inputs.k;
  using Optional = std::optional<TensorView> AttentionInputs::*;
  const std::pair<StringRef, Optional> others[] = {
      {"sinks", &AttentionInputs::sinks},
      {"cu_seqlens_q", &AttentionInputs::cuSeqlensQ},
      {"cu_seqlens_k", &AttentionInputs::cuSeqlensK},
      {"q_descale", &AttentionInputs::qDescale},
      {"k_descale", &AttentionInputs::kDescale},
      {"v_descale", &AttentionInputs::vDescale},
      {"page_table", &AttentionInputs::pageTable},
      {"page_indptr", &AttentionInputs::pageIndptr},
      {"kv_lengths", &AttentionInputs::kvLengths},
      {"block_counts", &AttentionInputs::blockCounts},
      {"block_indices", &AttentionInputs::blockIndices},
      {"init_o", &AttentionInputs::initO},
      {"init_lse", &AttentionInputs::initLse},
      {"k_scales", &AttentionInputs::kScales},
      {"v_scales", &AttentionInputs::vScales},
      {"k_rope", &AttentionInputs::kRope},
      {"q_rope", &AttentionInputs::qRope},
      {"added_k", &AttentionInputs::addedK},
      {"added_v", &AttentionInputs::addedV},
      {"added_table", &AttentionInputs::addedTable},
      {"added_lengths", &AttentionInputs::addedLengths}};
  // Nothing is computed from what is written.
  SmallVector<StringRef> read = {"q", "k", "v"};
  for (auto [name, member] : others) {
    read.push_back(name);
    if (const HarnessTensor *tensor = find(name))
      inputs.*member = tensor->getView();
  }
  for (StringRef name : read)
    if (std::optional<unsigned> index = record.findTensor(name);
        index && isWritten(record.tensors[*index].access))
      return createStringError("launch record: expected tensor \"" + name +
                               "\" to be read, got one that is written");
  if (!values) {
    inputs.v.shape[3] = record.problem->dv;
    // Values are scaled as the keys whose columns they are.
    inputs.vScales = inputs.kScales;
    inputs.addedV = inputs.addedK;
    if (inputs.addedV)
      inputs.addedV->shape.back() = record.problem->dv;
  }
  inputs.scoreMod = options.scoreMod;
  inputs.maskMod = options.maskMod;
  inputs.outMod = options.outMod;
  return inputs;
}
