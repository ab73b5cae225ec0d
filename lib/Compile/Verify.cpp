//===- Verify.cpp - Run a compiled kernel against the reference -----------===//

#include "attn/Compile/Verify.h"
#include "attn/Analysis/Flow/RegionEvaluator.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Problem/ScaleTiles.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <random>

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Contents of a memref that a region reads.
struct Capture {
  DType dtype = DType::F32;
  sim::NpyArray array;

  llvm::Expected<double> load(ArrayRef<int64_t> index) const;
};

} // namespace

struct Modifications::Regions {
  /// The module that the evaluators' values live in.
  OwningOpRef<ModuleOp> module;
  std::optional<RegionEvaluator> scoreMod, maskMod, outMod;
  std::vector<Capture> captures;
  /// Values of captured scalars.
  std::vector<double> scalars;

  RegionNumber evaluate(const RegionEvaluator &region, double number,
                        ArrayRef<int64_t> indices) const;
};

Modifications::Modifications(std::unique_ptr<Regions> regions)
    : regions(std::move(regions)) {}
Modifications::Modifications(Modifications &&) = default;
Modifications::~Modifications() = default;

llvm::Expected<double> Capture::load(ArrayRef<int64_t> index) const {
  int64_t linear = 0;
  for (auto [position, extent] : llvm::zip_equal(index, array.shape)) {
    if (position < 0 || position >= extent)
      return llvm::createStringError(
          "a region reads index %lld of a dimension of %lld elements",
          static_cast<long long>(position), static_cast<long long>(extent));
    linear = linear * extent + position;
  }
  return decodeElement(dtype, array.data.data() + linear * array.width);
}

static llvm::Error makeCaptureError(Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << value.getType();
  return llvm::createStringError("expected regions that read only scalars and "
                                 "memrefs of static shape, got '" +
                                 text + "'");
}

/// A normally distributed float, or an integer from 0 to 3.
static double makeNumber(std::mt19937 &random, bool isReal) {
  return isReal ? std::normal_distribution<double>()(random)
                : static_cast<double>(random() % 4);
}

/// Random contents for a captured memref.
static llvm::Expected<Capture> makeCapture(Value value, unsigned seed) {
  auto type = dyn_cast<MemRefType>(value.getType());
  std::string element;
  if (type)
    llvm::raw_string_ostream(element) << type.getElementType();
  std::optional<DType> dtype = symbolizeDType(element);
  if (!type || !type.hasStaticShape() || !dtype)
    return makeCaptureError(value);
  Capture capture;
  capture.dtype = *dtype;
  capture.array.kind = isFloat(*dtype) ? 'f' : 'i';
  if (*dtype == DType::BF16)
    capture.array.kind = 'V';
  capture.array.width = getByteWidth(*dtype);
  capture.array.shape.assign(type.getShape().begin(), type.getShape().end());
  capture.array.data.resize(type.getNumElements() * capture.array.width);
  std::mt19937 random(seed);
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    encodeElement(*dtype, makeNumber(random, isFloat(*dtype)),
                  capture.array.data.data() + i * capture.array.width);
  return capture;
}

/// A random value for a captured scalar that its type can hold.
static llvm::Expected<double> makeScalar(Value value, unsigned seed) {
  std::string name;
  llvm::raw_string_ostream(name) << value.getType();
  std::optional<DType> dtype =
      value.getType().isIndex() ? DType::I64 : symbolizeDType(name);
  if (!dtype)
    return makeCaptureError(value);
  std::mt19937 random(seed);
  uint8_t bytes[8];
  encodeElement(*dtype, makeNumber(random, isFloat(*dtype)), bytes);
  return decodeElement(*dtype, bytes);
}

llvm::Expected<Modifications> Modifications::get(ModuleOp module) {
  unsigned count = 0;
  bool hasRegions = false;
  module.walk([&](AttentionOp op) {
    ++count;
    hasRegions |=
        !op.getScoreMod().empty() || !op.getMaskMod().empty() || op.getOutMod();
  });
  // Partial results are changed where they are merged.
  module.walk([&](CombineOp op) { hasRegions |= op.getOutMod() != nullptr; });
  auto regions = std::make_unique<Regions>();
  if (!hasRegions)
    return Modifications(std::move(regions));
  if (count != 1)
    return llvm::createStringError(
        "expected one 'attn.attention' to verify, got %u", count);
  regions->module = module.clone();
  AttentionOp op;
  regions->module->walk([&](AttentionOp found) { op = found; });
  Region *outMod = op.getOutMod();
  regions->module->walk([&](CombineOp found) {
    if (!outMod)
      outMod = found.getOutMod();
  });

  // In the order in which the kernels take them.
  llvm::SetVector<Value> used;
  for (Region &region : op->getRegions())
    getUsedValuesDefinedAbove(region, used);
  if (outMod)
    getUsedValuesDefinedAbove(*outMod, used);
  llvm::DenseMap<Value, unsigned> memrefs, scalars;
  for (Value value : used) {
    if (isa<BaseMemRefType>(value.getType())) {
      llvm::Expected<Capture> capture = makeCapture(value, used.size());
      if (!capture)
        return capture.takeError();
      memrefs[value] = regions->captures.size();
      regions->captures.push_back(std::move(*capture));
    } else if (!matchPattern(value, m_Constant())) {
      llvm::Expected<double> scalar = makeScalar(value, scalars.size());
      if (!scalar)
        return scalar.takeError();
      scalars[value] = regions->scalars.size();
      regions->scalars.push_back(*scalar);
    }
  }
  auto translate = [&](Region &region,
                       std::optional<RegionEvaluator> &result) -> llvm::Error {
    if (region.empty())
      return llvm::Error::success();
    llvm::Expected<RegionEvaluator> evaluator = RegionEvaluator::get(region);
    if (!evaluator)
      return evaluator.takeError();
    for (auto [index, value] : llvm::enumerate(evaluator->getCaptures())) {
      if (auto memref = memrefs.find(value); memref != memrefs.end()) {
        const Capture &capture = regions->captures[memref->second];
        evaluator->bindMemRef(index,
                              [data = &capture](ArrayRef<int64_t> position) {
                                return data->load(position);
                              });
        continue;
      }
      double scalar = regions->scalars[scalars.lookup(value)];
      RegionNumber number;
      if (isa<FloatType>(value.getType()))
        number.real = scalar;
      else
        number.integer = static_cast<int64_t>(scalar);
      evaluator->bindScalar(index, number);
    }
    result = std::move(*evaluator);
    return llvm::Error::success();
  };
  if (llvm::Error error = translate(op.getScoreMod(), regions->scoreMod))
    return std::move(error);
  if (llvm::Error error = translate(op.getMaskMod(), regions->maskMod))
    return std::move(error);
  if (outMod)
    if (llvm::Error error = translate(*outMod, regions->outMod))
      return std::move(error);
  return Modifications(std::move(regions));
}

RegionNumber Modifications::Regions::evaluate(const RegionEvaluator &region,
                                              double number,
                                              ArrayRef<int64_t> indices) const {
  RegionNumber arguments[5];
  arguments[0].real = number;
  for (auto [index, value] : llvm::enumerate(indices))
    arguments[index + 1].integer = value;
  llvm::Expected<RegionNumber> result = region.evaluate(arguments);
  if (result)
    return *result;
  // Undefined in the kernel too, so that nothing it computes can be right.
  llvm::consumeError(result.takeError());
  RegionNumber undefined;
  undefined.real = NAN;
  return undefined;
}

void Modifications::apply(sim::HarnessOptions &options) {
  if (regions->scoreMod)
    options.scoreMod = [this](double score, int64_t batch, int64_t head,
                              int64_t query, int64_t key) {
      return regions
          ->evaluate(*regions->scoreMod, score, {batch, head, query, key})
          .real;
    };
  if (regions->maskMod)
    options.maskMod = [this](double score, int64_t batch, int64_t head,
                             int64_t query, int64_t key) {
      return regions
                 ->evaluate(*regions->maskMod, score, {batch, head, query, key})
                 .integer != 0;
    };
  if (regions->outMod)
    options.outMod = [this](double result, int64_t batch, int64_t head,
                            int64_t query, int64_t column) {
      return regions
          ->evaluate(*regions->outMod, result, {batch, head, query, column})
          .real;
    };
  for (auto [index, capture] : llvm::enumerate(regions->captures)) {
    // Contents from a file count; those that do not fit are the harness's to
    // refuse.
    auto [given, isNew] = options.inputs.try_emplace(
        "capture" + std::to_string(index), capture.array);
    if (!isNew && given->second.shape == capture.array.shape &&
        given->second.holds(capture.dtype))
      capture.array = given->second;
  }
  for (auto [index, scalar] : llvm::enumerate(regions->scalars))
    options.scalars["scalar" + std::to_string(index)] = scalar;
}

/// Numbers as an int32 array.
static sim::NpyArray getNumbers(ArrayRef<int64_t> numbers) {
  sim::NpyArray array;
  array.kind = 'i';
  array.width = 4;
  array.shape = {static_cast<int64_t>(numbers.size())};
  array.data.resize(4 * numbers.size());
  for (auto [index, number] : llvm::enumerate(numbers))
    encodeElement(DType::I32, number, array.data.data() + 4 * index);
  return array;
}

/// Cumulative sums from 0.
static sim::NpyArray getCumulative(ArrayRef<int64_t> lengths) {
  SmallVector<int64_t> sums = {0};
  for (int64_t length : lengths)
    sums.push_back(sums.back() + length);
  return getNumbers(sums);
}

/// The problem with the sizes that the caller gave in place of its own: queries
/// and keys of all tensors that have them, which may still be told apart by
/// name.
static Problem withGivenSizes(Problem problem,
                              const sim::HarnessOptions &options) {
  auto take = [&](StringRef name, int64_t &size) {
    auto given = options.sizes.find(name);
    if (given != options.sizes.end())
      size = given->second;
  };
  for (StringRef tensor : {"o", "v", "k", "q"})
    if (problem.pageSize == 0 || tensor == "o" || tensor == "q")
      take((tensor + ".dim0").str(), problem.batch);
  take("o.dim2", problem.queries);
  take("q.dim2", problem.queries);
  if (problem.pageSize != 0)
    return problem;
  take("v.dim2", problem.keys);
  take("k.dim2", problem.keys);
  return problem;
}

/// Elements between rows of operands whose strides the launch gives, which are
/// slices of a wider tensor then. Nothing initialises them.
static constexpr int64_t kGap = 16;

void attn::applyProblem(const Problem &given, sim::HarnessOptions &options) {
  Problem problem = withGivenSizes(given, options);
  if (!problem.lengthsQ.empty())
    options.inputs.try_emplace("cu_seqlens_q", getCumulative(problem.lengthsQ));
  if (!problem.lengthsK.empty())
    options.inputs.try_emplace("cu_seqlens_k", getCumulative(problem.lengthsK));
  if (!problem.kvLengths.empty())
    options.inputs.try_emplace("kv_lengths", getNumbers(problem.kvLengths));
  if (!problem.addedLengths.empty())
    options.inputs.try_emplace("added_lengths",
                               getNumbers(problem.addedLengths));
  if (!problem.dynamic && !problem.openStrides)
    return;
  llvm::StringMap<int64_t> sizes;
  auto set = [&](const char *name, int64_t heads, int64_t rows,
                 int64_t columns) {
    std::string prefix(name);
    bool isAdded = StringRef(prefix).starts_with("added_");
    bool isPool = problem.pageSize != 0 &&
                  (prefix.front() == 'k' || prefix.front() == 'v');
    if (isPool)
      rows = problem.pageSize;
    if (problem.dynamic) {
      sizes[prefix + ".dim0"] = isAdded  ? problem.getAddedPages()
                                : isPool ? problem.getPoolPages()
                                         : problem.batch;
      sizes[prefix + ".dim2"] = rows;
    }
    if (!problem.sequenceMajor && !problem.openStrides)
      return;
    // A launch's strides are expected to be whole pieces of 16 bytes.
    int64_t pitch = llvm::alignTo(columns, kGap);
    int64_t step = heads * pitch + (problem.openStrides ? kGap : 0);
    sizes[prefix + ".stride0"] = rows * step;
    sizes[prefix + ".stride1"] = pitch;
    sizes[prefix + ".stride2"] = step;
  };
  set("q", problem.heads, problem.queries, problem.getQueryColumns());
  if (problem.ropeApart)
    set("q_rope", problem.heads, problem.queries, problem.getRopeColumns());
  set("k", problem.kvHeads, problem.keys, problem.getKeyColumns());
  if (!problem.isLatent())
    set("v", problem.kvHeads, problem.keys, problem.valueDim);
  if (problem.vTransposed) {
    int64_t pitch = problem.getValuePitch() + (problem.openStrides ? kGap : 0);
    sizes["v.stride0"] = problem.kvHeads * problem.valueDim * pitch;
    sizes["v.stride1"] = problem.valueDim * pitch;
    sizes["v.stride3"] = pitch;
    sizes.erase("v.stride2");
  }
  set("o", problem.heads, problem.queries, problem.getOutputColumns());
  if (problem.initState)
    set("init_o", problem.heads, problem.queries, problem.valueDim);
  if (int64_t group = problem.scaleGroup) {
    set("k_scales", problem.kvHeads, problem.keys,
        problem.getKeyColumns() / group);
    if (!problem.isLatent())
      set("v_scales", problem.kvHeads, problem.keys, problem.valueDim / group);
  }
  if (problem.hasOwnRope())
    set("k_rope", problem.kvHeads, problem.keys, problem.getRopeColumns());
  if (problem.outScaleTiles)
    sizes["o_scales.dim0"] =
        llvm::alignTo(problem.batch * problem.queries, kScaleTileRows);
  else if (problem.outGroup != 0)
    set("o_scales", problem.heads, problem.queries,
        problem.valueDim / problem.outGroup);
  if (!problem.addedLengths.empty()) {
    set("added_k", problem.kvHeads, problem.addedPageSize,
        problem.getKeyColumns());
    if (!problem.isLatent())
      set("added_v", problem.kvHeads, problem.addedPageSize, problem.valueDim);
    if (problem.dynamic) {
      sizes["added_table.dim0"] = sizes["added_lengths.dim0"] = problem.batch;
      sizes["added_table.dim1"] = problem.getAddedColumns();
    }
  }
  if (problem.dynamic && problem.blockRows != 0)
    for (const char *name : {"block_counts", "block_indices"})
      sizes[name + std::string(".dim2")] =
          llvm::divideCeil(problem.queries, problem.blockRows);
  if (problem.dynamic && problem.blockRows != 0)
    sizes["block_indices.dim3"] = problem.keys / problem.blockKeys;
  if (problem.dynamic && problem.pageSize != 0) {
    int64_t sequences = problem.getSequences();
    int64_t columns = problem.getTableColumns();
    sizes["page_table.dim0"] =
        problem.pageIndptr ? sequences * columns : sequences;
    if (problem.pageIndptr)
      sizes["page_indptr.dim0"] = sequences + 1;
    else
      sizes["page_table.dim1"] = columns;
  }
  for (const auto &entry : sizes)
    options.sizes.try_emplace(entry.getKey(), entry.second);
}

llvm::Expected<sim::HarnessReport>
attn::verifyKernel(const std::string &ptx, const LaunchRecord &launch,
                   const sim::HarnessOptions &options) {
  llvm::Expected<std::unique_ptr<sim::Program>> program =
      sim::parsePTX(ptx, launch.steps.front().kernel + ".ptx");
  if (!program)
    return program.takeError();
  return sim::runLaunch(launch, **program, options);
}
