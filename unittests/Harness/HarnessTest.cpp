//===- HarnessTest.cpp - tests of the harness around the simulator --------===//
//
// What the harness decides before a launch: shapes, contents, and whether the
// program fits the record. Whole runs are tested through attn-sim.
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Harness.h"

#include "FakeProgram.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <map>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using testing::ElementsAre;
using testing::HasSubstr;

static constexpr const char *recordText = R"json({
  "version": 1, "kernel": "attn_fwd", "target": {"chip": "sm_80", "ptx": 80},
  "grid": ["ceildiv(q.dim2, 64)", "q.dim1", "q.dim0"],
  "block": [32, 1, 1], "cluster": [1, 1, 1], "shared_bytes": 0,
  "tensors": [
    {"name": "q", "dtype": "f16", "shape": [-1, 4, -1, 8], "strides": [-1, -1, -1, 1], "access": "read"},
    {"name": "k", "dtype": "f16", "shape": [-1, 2, -1, 8], "strides": [-1, -1, 40, 1], "access": "read"},
    {"name": "v", "dtype": "f16", "shape": [-1, 2, -1, 16], "strides": [-1, -1, -1, 1], "access": "read"},
    {"name": "o", "dtype": "f16", "shape": [-1, 4, -1, 16], "strides": [-1, -1, -1, 1], "access": "write"},
    {"name": "lse", "dtype": "f32", "shape": [-1, 4, -1], "strides": [-1, -1, -1], "access": "write"},
    {"name": "cu_seqlens_q", "dtype": "i32", "shape": [4], "strides": [1], "access": "read"},
    {"name": "cu_seqlens_k", "dtype": "i32", "shape": [4], "strides": [1], "access": "read"}],
  "args": [{"kind": "pointer", "tensor": "q"},
           {"kind": "size", "tensor": "q", "dim": 2, "type": "i32"}],
  "workspace": [],
  "problem": {"scale": 0.5, "mask": {"kind": "none"}, "heads": 4, "kv_heads": 2,
              "d": 8, "dv": 16, "varlen": true, "max_seqlen_q": 60}
})json";

namespace {

class Harness : public testing::Test {
protected:
  void SetUp() override {
    auto parsed = parseLaunchRecord(recordText);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    record = std::move(*parsed);
    program = FakeProgram();
    options = HarnessOptions();
    // Without queries there is no CTA, and nothing is executed.
    options.sizes["q.dim0"] = 1;
    options.sizes["q.dim2"] = 0;
    options.sizes["k.dim2"] = 100;
    options.verify = true;
  }

  HarnessReport run() {
    auto report = runLaunch(record, program, options);
    if (!report) {
      ADD_FAILURE() << llvm::toString(report.takeError());
      return {};
    }
    return std::move(*report);
  }

  std::string fail() {
    auto report = runLaunch(record, program, options);
    return report ? "no error" : llvm::toString(report.takeError());
  }

  LaunchRecord record;
  FakeProgram program;
  HarnessOptions options;
};

} // namespace

/// An array of halves.
static NpyArray makeArray(llvm::ArrayRef<int64_t> shape) {
  NpyArray array;
  array.width = 2;
  array.shape.assign(shape.begin(), shape.end());
  array.data.resize(2 * array.getNumElements());
  for (int64_t i = 0; i < array.getNumElements(); ++i)
    encodeElement(DType::F16, double(i), &array.data[2 * i]);
  return array;
}

TEST_F(Harness, PropagatesSizesAndStrides) {
  HarnessReport report = run();
  EXPECT_TRUE(report.hasPassed());
  EXPECT_THAT(report.steps[0].grid, ElementsAre(0, 4, 1));
  EXPECT_THAT(report.findTensor("o")->argument.shape, ElementsAre(1, 4, 0, 16));
  EXPECT_THAT(report.findTensor("lse")->argument.shape, ElementsAre(1, 4, 0));
  const TensorArgument &v = report.findTensor("v")->argument;
  EXPECT_THAT(v.shape, ElementsAre(1, 2, 100, 16));
  EXPECT_THAT(v.strides, ElementsAre(3200, 1600, 16, 1));
  // The record's stride of 40 carries on to the outer dimensions.
  EXPECT_THAT(report.findTensor("k")->argument.strides,
              ElementsAre(8000, 4000, 40, 1));
  EXPECT_EQ(report.findTensor("k")->bytes.size(), (4000 + 99 * 40 + 8) * 2u);
  EXPECT_EQ(report.findTensor("k")->getElements().size(), 2u * 100 * 8 * 2);
  EXPECT_EQ(report.findTensor("missing"), nullptr);
}

TEST_F(Harness, FillsInputs) {
  HarnessReport report = run();
  const HarnessTensor &v = *report.findTensor("v");
  double sum = 0, squares = 0;
  for (size_t i = 0; i < v.bytes.size(); i += 2) {
    double value = decodeElement(DType::F16, &v.bytes[i]);
    sum += value;
    squares += value * value;
  }
  double count = v.bytes.size() / 2;
  EXPECT_NEAR(sum / count, 0, 0.1);
  EXPECT_NEAR(squares / count, 1, 0.1);
  EXPECT_NE(v.getElements(), report.findTensor("k")->getElements());
  EXPECT_EQ(v.bytes, run().findTensor("v")->bytes);
  options.seed = 1;
  EXPECT_NE(v.bytes, run().findTensor("v")->bytes);
  // Cumulative lengths: 0, some split, the number of keys.
  TensorView lengths = report.findTensor("cu_seqlens_k")->getView();
  EXPECT_EQ(lengths.get({0}), 0);
  EXPECT_LE(lengths.get({1}), lengths.get({2}));
  EXPECT_EQ(lengths.get({3}), 100);
}

TEST_F(Harness, TakesArrays) {
  options.inputs["v"] = makeArray({1, 2, 100, 16});
  HarnessReport report = run();
  TensorView v = report.findTensor("v")->getView();
  EXPECT_EQ(v.get({0, 0, 1, 2}), 18);
  EXPECT_EQ(v.get({0, 1, 0, 0}), 1600);
  options.inputs["v"].kind = 'i';
  options.inputs["v"].width = 4;
  EXPECT_EQ(fail(), "input \"v\": expected elements of f16, got i4");
  options.inputs["v"] = makeArray({2, 100, 16});
  EXPECT_EQ(fail(), "input \"v\": expected rank 4, got 3");
  options.inputs["v"] = makeArray({1, 2, 100, 8});
  EXPECT_EQ(fail(), "input \"v\": dimension 3: expected 16, got 8");
  options.inputs["v"] = makeArray({1, 2, 99, 16});
  EXPECT_EQ(fail(), "tensor \"v\": dimension 2: expected 100, got 99");
  options.inputs.clear();
  options.inputs["o"] = makeArray({1, 4, 0, 16});
  EXPECT_EQ(fail(), "input \"o\": the kernel writes this tensor");
  options.inputs.clear();
  options.inputs["w"] = makeArray({1});
  EXPECT_EQ(fail(),
            "input \"w\": the launch record has no tensor of this name");
}

TEST_F(Harness, ChecksSizes) {
  options.sizes["q.dim1"] = 5;
  EXPECT_EQ(fail(), "size \"q.dim1\": expected 4, got 5");
  SetUp();
  options.sizes["q"] = 5;
  EXPECT_EQ(fail(), "size \"q\": expected NAME.dimI or NAME.strideI");
  SetUp();
  options.sizes["1+q.dim2"] = 5;
  EXPECT_EQ(fail(), "size \"1+q.dim2\": expected NAME.dimI or NAME.strideI");
  SetUp();
  options.sizes["q.dim9"] = 5;
  EXPECT_EQ(fail(), "size \"q.dim9\": the launch record has no such size");
  SetUp();
  options.sizes["v.dim2"] = -5;
  EXPECT_EQ(fail(), "size \"v.dim2\": expected at least 0, got -5");
  SetUp();
  options.sizes["v.dim2"] = 5;
  EXPECT_EQ(fail(), "tensor \"v\": dimension 2: expected 100, got 5");
  SetUp();
  options.sizes.erase("k.dim2");
  EXPECT_EQ(fail(), "tensor \"k\": dimension 2 is open, give \"k.dim2\"");
  SetUp();
  options.sizes["v.stride2"] = int64_t(1) << 62;
  EXPECT_EQ(fail(), "tensor \"v\": expected an extent below 2^63 elements");
  SetUp();
  options.sizes["v.stride2"] = int64_t(1) << 40;
  EXPECT_THAT(fail(),
              testing::MatchesRegex(
                  "expected a launch that takes at most the .* of memory that "
                  "there are, got .* PiB, of which tensor \"v\" takes .* "
                  "PiB"));
}

TEST_F(Harness, ComparesWithTheMemory) {
  // k has 15936 bytes, v 6400, the lengths 32: three times each.
  options.config.memoryLimit = 3 * (15936 + 6400 + 32);
  EXPECT_EQ(fail(), "no error");
  --options.config.memoryLimit;
  EXPECT_EQ(fail(), "expected a launch that takes at most the 65.5 KiB of "
                    "memory that there are, got 65.5 KiB, of which tensor "
                    "\"k\" takes 46.7 KiB");
}

TEST_F(Harness, TellsHowFarItIs) {
  std::vector<std::string> phases;
  options.progress = [&](const ProgressState &state) {
    phases.push_back(state.phase.str());
    return true;
  };
  run();
  EXPECT_THAT(phases, ElementsAre("inputs", "reference", "simulation"));
  unsigned left = 0;
  options.progress = [&](const ProgressState &) { return left-- > 0; };
  for (unsigned calls : {0, 1, 2}) {
    left = calls;
    auto report = runLaunch(record, program, options);
    ASSERT_FALSE(bool(report));
    llvm::Error error = report.takeError();
    EXPECT_TRUE(error.isA<StoppedError>());
    llvm::consumeError(std::move(error));
  }
}

TEST_F(Harness, EstimatesLongRuns) {
  double seconds = 0;
  options.progress = [&](const ProgressState &state) {
    seconds = state.secondsLeft;
    return false;
  };
  record.problem->varlen = false;
  options.sizes["q.dim2"] = options.sizes["k.dim2"] = 1 << 20;
  EXPECT_EQ(fail(), "stopped by the caller");
  EXPECT_GT(seconds, 600);
}

TEST_F(Harness, NeedsValuesForIntegers) {
  record.problem->varlen = false;
  EXPECT_EQ(fail(), "tensor \"cu_seqlens_q\": expected values for an input of "
                    "integers, got none");
  SetUp();
  record.tensors[5].shape = {};
  record.tensors[5].strides = {};
  EXPECT_EQ(fail(), "tensor \"cu_seqlens_q\": expected shape [sequences + 1] "
                    "and packed operands of rank 4");
}

TEST_F(Harness, ChecksTheProgram) {
  program.kernel.name = "other";
  EXPECT_EQ(fail(), "fake.ptx: expected a kernel \"attn_fwd\" as in the launch "
                    "record, got none");
  SetUp();
  program.target = "sm_90a";
  EXPECT_EQ(fail(), "fake.ptx: expected target sm_80 as in the launch record, "
                    "got sm_90a");
  SetUp();
  program.kernel.params[1].size = 8;
  EXPECT_EQ(fail(), "args[1]: expected 8 bytes at offset 8, as kernel "
                    "\"attn_fwd\" declares \"p1\", got 4 bytes at offset 8");
  SetUp();
  program.kernel.params.pop_back();
  EXPECT_EQ(fail(), "kernel \"attn_fwd\" has 1 parameters, the launch record "
                    "gives 2");
}

TEST_F(Harness, EncodesTensorMaps) {
  LaunchArg map;
  map.kind = ArgKind::TensorMap;
  map.tensor = 1;
  map.box = {8, 16, 1, 1};
  record.steps[0].args.push_back(map);
  program.kernel.params.push_back({"p2", 64, 128, 64});
  program.kernel.paramBytes = 192;
  EXPECT_EQ(fail(), "no error");
  for (DType dtype : {DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN,
                      DType::F8E5M2, DType::I8, DType::I32, DType::I64}) {
    record.tensors[1].dtype = record.steps[0].args.back().element = dtype;
    record.steps[0].args.back().box[0] = 16;
    record.tensors[1].strides[2] = 48;
    options.verify = false;
    options.sizes["k.dim2"] = 3;
    options.inputs["k"] = NpyArray();
    options.inputs["k"].kind = isFloat(dtype) ? 'f' : 'i';
    if (getByteWidth(dtype) == 1 && isFloat(dtype))
      options.inputs["k"].kind = 'u';
    if (dtype == DType::BF16)
      options.inputs["k"].kind = 'V';
    options.inputs["k"].width = getByteWidth(dtype);
    options.inputs["k"].shape = {1, 2, 3, 8};
    options.inputs["k"].data.resize(48 * getByteWidth(dtype));
    EXPECT_EQ(fail(), "no error") << stringifyDType(dtype).str();
  }
}

TEST_F(Harness, NeedsAProblemToVerify) {
  record.tensors[3].name = "out";
  options.sizes["out.dim0"] = 1;
  options.sizes["out.dim2"] = 0;
  EXPECT_EQ(fail(),
            "launch record: expected a tensor \"o\" to verify, got none");
  SetUp();
  record.tensors[0].access = TensorAccess::Write;
  EXPECT_EQ(fail(), "launch record: expected tensor \"q\" to be read, got one "
                    "that is written");
  SetUp();
  record.tensors.resize(5);
  record.problem.reset();
  for (llvm::StringRef name : {"k", "v", "o", "lse"})
    options.sizes[(name + ".dim0").str()] = 1;
  for (llvm::StringRef name : {"o", "lse"})
    options.sizes[(name + ".dim2").str()] = 0;
  options.sizes["v.dim2"] = 100;
  EXPECT_EQ(fail(), "launch record: expected a problem to verify, got none");
  options.verify = false;
  EXPECT_EQ(fail(), "no error");
}

TEST(HarnessReport, JudgesAndPrints) {
  HarnessReport report;
  report.steps.emplace_back().kernel = "attn_fwd";
  report.chip = "sm_80";
  report.run.completed = true;
  report.output = Deviation{1e-3, {0, 1}, 2.5, 2.0};
  report.outputTolerance = 2e-3;
  report.lse = Deviation{INFINITY, {0}, 1.0, -INFINITY};
  report.lseTolerance = 1e-3;
  EXPECT_FALSE(report.hasPassed());
  std::string text;
  llvm::raw_string_ostream os(text);
  report.print(os, "x.ptx");
  EXPECT_THAT(text, HasSubstr("largest at [0, 1]: expected 2.000000, got "
                              "2.500000"));
  EXPECT_THAT(text, HasSubstr("FAILED"));
  const llvm::json::Value json = report.toJSON();
  EXPECT_EQ(*json.getAsObject()->getObject("output")->getNumber("error"), 1e-3);
  EXPECT_EQ(*json.getAsObject()->getObject("lse")->getString("error"), "inf");
  EXPECT_EQ(*json.getAsObject()->getObject("lse")->getString("ref"), "-inf");
  EXPECT_FALSE(*json.getAsObject()->getBoolean("passed"));
  report.lse->error = NAN;
  EXPECT_FALSE(report.hasPassed());
  report.lse.reset();
  EXPECT_TRUE(report.hasPassed());
  report.problems.push_back("something");
  EXPECT_FALSE(report.hasPassed());
  report.problems.clear();
  report.output->error = 3e-3;
  EXPECT_FALSE(report.hasPassed());
}

TEST(HarnessCorners, CoverTimings) {
  std::vector<std::string> names;
  for (const LaunchConfig &corner : getCorners(LaunchConfig()))
    names.push_back(describeConfig(corner));
  EXPECT_EQ(names.size(), 8u);
  EXPECT_THAT(
      names, testing::Contains("round-robin, reads at issue, writes at issue"));
  EXPECT_THAT(names,
              testing::Contains("random, adversarial, reads at completion, "
                                "writes at completion"));
  LaunchConfig random;
  random.asyncReads = AsyncTiming::Random;
  EXPECT_THAT(describeConfig(random), HasSubstr("reads at random"));
}

/// The record with three sequences whose keys are in pages of four.
static void makePaged(LaunchRecord &record, HarnessOptions &options) {
  record.problem->varlen = false;
  for (unsigned dim : {1, 2})
    record.tensors[dim].shape[2] = 4;
  record.tensors[5] = {"page_table", DType::I32, {3, 5}, {5, 1}};
  record.tensors[6] = {"kv_lengths", DType::I32, {3}, {1}};
  options.sizes = {{"q.dim0", 3}, {"q.dim2", 0}, {"k.dim0", 20}};
}

TEST_F(Harness, LengthsAndPages) {
  makePaged(record, options);
  HarnessReport report = run();
  TensorView lengths = report.findTensor("kv_lengths")->getView();
  TensorView table = report.findTensor("page_table")->getView();
  // A sequence of full length and an empty one; ids up to each length.
  EXPECT_EQ(lengths.get({0}), 20);
  EXPECT_EQ(lengths.get({1}), 0);
  std::map<int64_t, int64_t> owned;
  llvm::SmallVector<int64_t> order;
  for (int64_t b = 0; b < 3; ++b)
    for (int64_t entry = 0; entry < 5; ++entry) {
      int64_t page = table.get({b, entry});
      int64_t rows = lengths.get({b}) - 4 * entry;
      EXPECT_EQ(page >= 0, rows > 0);
      if (rows <= 0)
        continue;
      EXPECT_TRUE(owned.try_emplace(page, std::min<int64_t>(4, rows)).second);
      order.push_back(page);
    }
  EXPECT_FALSE(llvm::is_sorted(order));
  // What nobody owns is NaN, and pages of nobody are not there.
  for (const char *name : {"k", "v"}) {
    const HarnessTensor *pool = report.findTensor(name);
    int64_t pageStride = pool->argument.strides[0];
    for (int64_t page = 0; page < 20; ++page) {
      for (int64_t row = 0; row < 4; ++row)
        EXPECT_EQ(std::isnan(pool->getView().get({page, 1, row, 3})),
                  row >= owned[page]);
      EXPECT_EQ(pool->absent[2 * page * pageStride], owned[page] == 0);
    }
  }
}

TEST_F(Harness, SelectionsLackKeys) {
  makePaged(record, options);
  record.problem->selected = true;
  record.tensors[5] = {"page_table", DType::I32, {3, 40}, {40, 1}};
  for (unsigned dim : {1, 2})
    record.tensors[dim].shape[2] = 1;
  options.sizes["k.dim0"] = 120;
  HarnessReport report = run();
  TensorView lengths = report.findTensor("kv_lengths")->getView();
  TensorView table = report.findTensor("page_table")->getView();
  EXPECT_EQ(lengths.get({0}), 40);
  int64_t absent = 0;
  for (int64_t entry = 0; entry < 40; ++entry)
    absent += table.get({0, entry}) < 0;
  EXPECT_GT(absent, 0);
  EXPECT_LT(absent, 20);
}

TEST_F(Harness, ListsOfBlocksNeedSizes) {
  record.tensors.push_back(
      {"block_counts", DType::I32, {1, 4, 2, 2}, {16, 4, 2, 1}});
  EXPECT_EQ(fail(), "tensor \"block_counts\": expected i32 of rank 4 beside k "
                    "of rank 4 and sizes of blocks");
}

TEST_F(Harness, ListsOfPages) {
  makePaged(record, options);
  record.tensors[5] = {"page_table", DType::I32, {15}, {1}};
  record.tensors.push_back({"page_indptr", DType::I32, {4}, {1}});
  HarnessReport report = run();
  TensorView lengths = report.findTensor("kv_lengths")->getView();
  TensorView counts = report.findTensor("page_indptr")->getView();
  TensorView table = report.findTensor("page_table")->getView();
  EXPECT_EQ(counts.get({0}), 0);
  for (int64_t b = 0; b < 3; ++b)
    EXPECT_EQ(counts.get({b + 1}) - counts.get({b}),
              std::ceil(lengths.get({b}) / 4));
  for (int64_t entry = 0; entry < 15; ++entry)
    EXPECT_EQ(table.get({entry}) >= 0, entry < counts.get({3}));
}

TEST_F(Harness, PagesThatDoNotFit) {
  makePaged(record, options);
  record.tensors[5].shape = {3};
  record.tensors[5].strides = {1};
  EXPECT_EQ(fail(), "tensor \"page_table\": expected rank 2, got 1");
  makePaged(record, options);
  record.tensors[1].shape[2] = record.tensors[2].shape[2] = 0;
  EXPECT_EQ(fail(), "tensor \"k\": expected pages of 1 to 2^31 keys, got 0");
  makePaged(record, options);
  record.tensors[5].access = TensorAccess::Write;
  EXPECT_EQ(fail(), "tensor \"page_table\": expected it to be read, got one "
                    "that is written");
  makePaged(record, options);
  record.tensors[5].shape[1] = int64_t(1) << 60;
  record.tensors[5].strides = {0, 0};
  EXPECT_EQ(fail(),
            "tensor \"page_table\": expected at most 2^31 elements, got "
            "3458764513820540928");
  makePaged(record, options);
  record.problem->varlen = true;
  record.tensors.push_back({"cu_seqlens_k", DType::I32, {3}, {1}});
  EXPECT_EQ(fail(), "tensor \"cu_seqlens_k\": expected one more than the 3 "
                    "sequences, got 3");
  record.tensors.back() = {"cu_seqlens_k", DType::I32, {int64_t(1) << 40}, {0}};
  EXPECT_EQ(fail(), "tensor \"cu_seqlens_k\": expected at most 2^31 - 1 "
                    "elements, got 1099511627776");
  record.tensors.pop_back();
  record.problem->varlen = false;
  makePaged(record, options);
  record.tensors[5] = {"page_table", DType::I32, {15}, {1}};
  record.tensors.push_back({"page_indptr", DType::I32, {3}, {1}});
  EXPECT_EQ(fail(), "tensor \"page_indptr\": expected one more than the 3 "
                    "sequences, got 3");
  record.tensors.pop_back();
  makePaged(record, options);
  record.tensors[2].shape = {20, 2, 4};
  record.tensors[2].strides = {8, 4, 1};
  EXPECT_EQ(fail(), "tensor \"k\": expected k and v of rank 4 beside lengths "
                    "or pages");
}
