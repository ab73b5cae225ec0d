//===- LaunchBindingTest.cpp - tests of the binding of a launch -----------===//
#include "attn/Launch/LaunchBinding.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using testing::ElementsAre;
using testing::HasSubstr;
namespace endian = llvm::support::endian;

static constexpr const char *recordText = R"({
  "version": 1, "kernel": "attn_fwd", "target": {"chip": "sm_90a", "ptx": 80},
  "grid": ["ceildiv(q.dim1, 128) * 2", "q.dim0", "1"],
  "block": [128, 1, 1], "cluster": [2, 1, 1], "shared_bytes": 0,
  "tensors": [
    {"name": "q", "dtype": "f16", "shape": [-1, -1, 64], "strides": [-1, -1, 1], "access": "read"},
    {"name": "o", "dtype": "f32", "shape": [4], "strides": [2], "access": "write"}],
  "args": [
    {"kind": "size", "tensor": "q", "dim": 1, "type": "i32"},
    {"kind": "pointer", "tensor": "q"},
    {"kind": "stride", "tensor": "q", "dim": 0, "type": "i32"},
    {"kind": "tensor_map", "tensor": "q", "rank": 3, "box": [64, 32, 1], "swizzle": "128B", "element": "bf16"},
    {"kind": "scalar", "name": "x", "type": "f32", "value": 0.5},
    {"kind": "stride", "tensor": "q", "dim": 0, "type": "i64"},
    {"kind": "scalar", "name": "n", "type": "i32"},
    {"kind": "pointer", "tensor": "o"},
    {"kind": "workspace", "index": 0}],
  "workspace": [{"bytes": "q.dim0 * 4096", "zeroed": true}]
})";

namespace {

class LaunchBinding : public testing::Test {
protected:
  void SetUp() override {
    auto parsed = parseLaunchRecord(recordText);
    ASSERT_TRUE(bool(parsed)) << llvm::toString(parsed.takeError());
    record = std::move(*parsed);
    // Out of the record's order, and with gaps between the rows of q.
    tensors = {{"o", DType::F32, {4}, {2}, 0x9000},
               {"q", DType::F16, {3, 300, 64}, {30000, 72, 1}, 0x1000}};
    scalars.clear();
    scalars["n"] = 7;
  }

  std::string resolveFailure() {
    auto resolved = resolveLaunch(record, tensors);
    return resolved ? "no error" : llvm::toString(resolved.takeError());
  }

  std::string bindFailure(llvm::ArrayRef<uint64_t> workspaces = {0x100}) {
    auto resolved = resolveLaunch(record, tensors);
    if (!resolved)
      return llvm::toString(resolved.takeError());
    auto bound =
        bindParameters(record, *resolved, 0, tensors, scalars, workspaces);
    return bound ? "no error" : llvm::toString(bound.takeError());
  }

  LaunchRecord record;
  std::vector<TensorArgument> tensors;
  llvm::StringMap<double> scalars;
};

} // namespace

TEST_F(LaunchBinding, EvaluatesGridAndWorkspaces) {
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  EXPECT_THAT(resolved->steps[0].grid, ElementsAre(6, 3, 1));
  EXPECT_THAT(resolved->workspaceBytes, ElementsAre(3 * 4096));
  EXPECT_THAT(resolved->tensors, ElementsAre(1, 0));
}

TEST_F(LaunchBinding, LaysOutAndFillsParameters) {
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  std::vector<uint32_t> offsets;
  for (ParameterSlot slot : resolved->steps[0].parameters)
    offsets.push_back(slot.offset);
  EXPECT_THAT(offsets, ElementsAre(0, 8, 16, 64, 192, 200, 208, 216, 224));
  EXPECT_EQ(resolved->steps[0].parameterBytes, 232u);

  auto bound =
      bindParameters(record, *resolved, 0, tensors, scalars, {0xabc000});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  const uint8_t *bytes = bound->bytes.data();
  EXPECT_EQ(bound->bytes.size(), 232u);
  EXPECT_EQ(endian::read32le(bytes), 300u);
  EXPECT_EQ(endian::read64le(bytes + 8), 0x1000u);
  EXPECT_EQ(endian::read32le(bytes + 16), 30000u);
  EXPECT_EQ(endian::read32le(bytes + 192), 0x3f000000u);
  EXPECT_EQ(endian::read64le(bytes + 200), 30000u);
  EXPECT_EQ(endian::read32le(bytes + 208), 7u);
  EXPECT_EQ(endian::read64le(bytes + 216), 0x9000u);
  EXPECT_EQ(endian::read64le(bytes + 224), 0xabc000u);

  ASSERT_EQ(bound->tensorMaps.size(), 1u);
  const TensorMapParameter &map = bound->tensorMaps[0];
  EXPECT_EQ(map.slot.offset, 64u);
  EXPECT_EQ(map.slot.size, 128u);
  EXPECT_EQ(map.address, 0x1000u);
  EXPECT_THAT(map.dims, ElementsAre(64, 300, 3));
  EXPECT_THAT(map.strides, ElementsAre(144, 60000));
  EXPECT_THAT(map.box, ElementsAre(64, 32, 1));
}

TEST_F(LaunchBinding, MapsTransposedTensors) {
  record.tensors[0].strides = {kDynamicSize, kDynamicSize, kDynamicSize};
  LaunchArg &arg = record.steps[0].args[3];
  arg.view = TensorMapView::Transposed;
  tensors[1].strides = {64 * 304, 1, 304};
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  EXPECT_THAT(bound->tensorMaps[0].dims, ElementsAre(300, 64, 3));
  EXPECT_THAT(bound->tensorMaps[0].strides, ElementsAre(608, 64 * 608));
  tensors[1].strides = {64 * 300, 1, 300};
  EXPECT_EQ(bindFailure(),
            "args[3]: tensor \"q\": its tensor map expects strides of a "
            "multiple of 16 bytes below 2^40, got 300 elements");
  tensors[1].strides = {30000, 72, 1};
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects an "
                           "innermost stride of 1, got 72");
}

TEST_F(LaunchBinding, MapsRowsInFours) {
  LaunchArg &arg = record.steps[0].args[3];
  arg.view = TensorMapView::Quads;
  arg.box = {64, 2, 32, 1};
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  EXPECT_THAT(bound->tensorMaps[0].dims, ElementsAre(64, 4, 75, 3));
  EXPECT_THAT(bound->tensorMaps[0].strides, ElementsAre(144, 576, 60000));
  EXPECT_THAT(bound->tensorMaps[0].box, ElementsAre(64, 2, 32, 1));
  tensors[1].shape[1] = 298;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects rows "
                           "of a multiple of 4, got 298");
}

TEST_F(LaunchBinding, MapsPackedSequences) {
  LaunchArg &arg = record.steps[0].args[3];
  arg.view = TensorMapView::Packed;
  tensors[1].shape[0] = 1;
  tensors[1].address = 0x100000;
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  const TensorMapParameter &map = bound->tensorMaps[0];
  EXPECT_THAT(map.dims, ElementsAre(64, 300, 301));
  EXPECT_THAT(map.strides, ElementsAre(144, 144));
  // Row 2 of 5 of a sequence that ends in front of row 100 is row 97.
  EXPECT_EQ(map.address + 100 * 144 + (300 - 5 + 2) * 144,
            0x100000u + 97 * 144);
  tensors[1].address = 300 * 144;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects an "
                           "address above 300 rows of 72 elements");
  tensors[1].shape[0] = 3;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects one "
                           "batch of packed sequences, got 3");
}

TEST_F(LaunchBinding, MapsTensorsWithoutElements) {
  LaunchArg &arg = record.steps[0].args[3];
  tensors[1].shape = {1, 0, 64};
  for (TensorMapView view : {TensorMapView::Whole, TensorMapView::Packed}) {
    arg.view = view;
    auto resolved = resolveLaunch(record, tensors);
    ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
    auto bound =
        bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
    ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
    const TensorMapParameter &map = bound->tensorMaps[0];
    EXPECT_EQ(map.address, 0x1000u);
    EXPECT_THAT(map.dims, ElementsAre(1, 1, 1));
    EXPECT_THAT(map.strides, ElementsAre(16, 16));
    EXPECT_THAT(map.box, ElementsAre(64, 32, 1));
  }
  // A pool without pages, which kernels load zeros of.
  arg.view = TensorMapView::Whole;
  tensors[1].shape = {0, 300, 64};
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects "
                           "extents from 1 to 2^32, got 0");
  record.tensors[1].shape = {kDynamicSize};
  tensors[0].shape = {0};
  EXPECT_EQ(bindFailure(), "no error");
}

TEST_F(LaunchBinding, MapsHeadsInsideOfRows) {
  LaunchArg &arg = record.steps[0].args[3];
  arg.view = TensorMapView::ByRow;
  arg.box = {64, 1, 32};
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  EXPECT_THAT(bound->tensorMaps[0].dims, ElementsAre(64, 3, 300));
  EXPECT_THAT(bound->tensorMaps[0].strides, ElementsAre(60000, 144));
  EXPECT_THAT(bound->tensorMaps[0].box, ElementsAre(64, 1, 32));
}

TEST_F(LaunchBinding, MapsBoundedPages) {
  LaunchArg &arg = record.steps[0].args[3];
  arg.view = TensorMapView::Bounded;
  arg.box = {64, 32, 1, 1};
  tensors[1].address = 0x100000;
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  const TensorMapParameter &map = bound->tensorMaps[0];
  EXPECT_THAT(map.dims, ElementsAre(64, 300, 301, 3));
  EXPECT_THAT(map.strides, ElementsAre(144, 144, 60000));
  EXPECT_THAT(map.box, ElementsAre(64, 32, 1, 1));
  // Row 2 of page 1, of which 5 rows count.
  EXPECT_EQ(map.address + 60000 + 5 * 144 + (300 - 5 + 2) * 144,
            0x100000u + 60000 + 2 * 144);
  tensors[1].address = 300 * 144;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects an "
                           "address above 300 rows of 72 elements");
}

TEST_F(LaunchBinding, MapsRowsThatLieApart) {
  LaunchArg &arg = record.steps[0].args[3];
  arg.view = TensorMapView::Rows;
  arg.pitch = 72;
  arg.box = {64, 1};
  record.tensors[0].strides = {kDynamicSize, kDynamicSize, 1};
  // Batches 5 rows further apart than each has.
  tensors[1].strides = {305 * 72, 72, 1};
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound)) << llvm::toString(bound.takeError());
  EXPECT_THAT(bound->tensorMaps[0].dims, ElementsAre(64, 2 * 305 + 300));
  EXPECT_THAT(bound->tensorMaps[0].strides, ElementsAre(144));
  EXPECT_THAT(bound->tensorMaps[0].box, ElementsAre(64, 1));
  tensors[1].strides[0] = 30000;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects "
                           "strides of a multiple of 72 elements, got 30000");
  tensors[1].strides[0] = int64_t(72) << 24;
  tensors[1].shape[0] = 200;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects "
                           "fewer than 2^31 rows");
  tensors[1].strides[0] = 305 * 72;
  tensors[1].shape[0] = 0;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects "
                           "extents of at least 1, got 0");
}

TEST_F(LaunchBinding, CallerOverridesScalars) {
  scalars["x"] = 2.0;
  auto resolved = resolveLaunch(record, tensors);
  ASSERT_TRUE(bool(resolved));
  auto bound = bindParameters(record, *resolved, 0, tensors, scalars, {0x100});
  ASSERT_TRUE(bool(bound));
  EXPECT_EQ(endian::read32le(bound->bytes.data() + 192), 0x40000000u);
}

TEST_F(LaunchBinding, ChecksTensors) {
  tensors[1].dtype = DType::BF16;
  EXPECT_EQ(resolveFailure(), "tensor \"q\": expected dtype f16, got bf16");
  SetUp();
  tensors[1].shape = {3, 300, 32};
  EXPECT_EQ(resolveFailure(),
            "tensor \"q\": expected shape [?, ?, 64], got [3, 300, 32]");
  SetUp();
  tensors[1].shape = {300, 64};
  EXPECT_EQ(resolveFailure(), "tensor \"q\": expected rank 3, got 2");
  SetUp();
  tensors[1].strides = {72, 1};
  EXPECT_EQ(resolveFailure(), "tensor \"q\": expected 3 strides, got 2");
  SetUp();
  tensors[1].strides = {30000, 1, 300};
  EXPECT_EQ(resolveFailure(),
            "tensor \"q\": expected strides [?, ?, 1], got [30000, 1, 300]");
  SetUp();
  tensors[1].shape[0] = -3;
  EXPECT_EQ(resolveFailure(), "tensor \"q\": expected extents of at least 0, "
                              "got [-3, 300, 64]");
  SetUp();
  tensors[0].name = "out";
  EXPECT_EQ(resolveFailure(),
            "tensor \"out\": the launch record has no tensor of this name");
  SetUp();
  tensors.pop_back();
  EXPECT_EQ(resolveFailure(), "tensor \"q\": missing");
  SetUp();
  tensors.push_back(tensors[0]);
  EXPECT_EQ(resolveFailure(), "tensor \"o\": expected one tensor, got two");
}

TEST_F(LaunchBinding, FreesTheStrideOfAnExtentOfOne) {
  record.tensors[1].shape = {kDynamicSize};
  tensors[0].shape = {1};
  tensors[0].strides = {99};
  EXPECT_EQ(resolveFailure(), "no error");
  tensors[0].shape = {2};
  EXPECT_EQ(resolveFailure(), "tensor \"o\": expected strides [2], got [99]");
}

TEST_F(LaunchBinding, ChecksTheGrid) {
  tensors[1].shape[0] = 70000;
  EXPECT_EQ(resolveFailure(),
            "grid[1]: expected an extent from 0 to 65535, got 70000");
  SetUp();
  record.steps[0].cluster[0] = 4;
  EXPECT_EQ(resolveFailure(),
            "grid[0]: expected a multiple of the cluster's 4, got 6");
  SetUp();
  record.steps[0].grid[2] = cantFail(SizeExpr::parse("1 / (q.dim0 - 3)"));
  EXPECT_THAT(resolveFailure(), HasSubstr("grid[2]: division by zero"));
  SetUp();
  record.steps[0].tiles = cantFail(SizeExpr::parse("q.dim0 * 715806037"));
  EXPECT_EQ(resolveFailure(), "no error");
  record.steps[0].tiles = cantFail(SizeExpr::parse("q.dim0 * 715806038"));
  EXPECT_EQ(resolveFailure(),
            "tiles: expected at most 2147418112, got 2147418114");
  record.steps[0].tiles = cantFail(SizeExpr::parse("1 / (q.dim0 - 3)"));
  EXPECT_THAT(resolveFailure(), HasSubstr("tiles: division by zero"));
  SetUp();
  record.workspaces[0].bytes = cantFail(SizeExpr::parse("0 - q.dim0"));
  EXPECT_EQ(resolveFailure(),
            "workspace[0].bytes: expected at least 0, got -3");
}

TEST_F(LaunchBinding, ChecksParameters) {
  tensors[1].strides[0] = int64_t(1) << 33;
  EXPECT_EQ(bindFailure(),
            "args[2]: expected a value that fits i32, got 8589934592");
  SetUp();
  tensors[1].strides[1] = 68;
  EXPECT_EQ(bindFailure(),
            "args[3]: tensor \"q\": its tensor map expects strides of a "
            "multiple of 16 bytes below 2^40, got 68 elements");
  SetUp();
  tensors[1].address = 0x1008;
  EXPECT_EQ(bindFailure(), "args[3]: tensor \"q\": its tensor map expects an "
                           "address of a multiple of 16 bytes");
  SetUp();
  scalars.erase("n");
  EXPECT_EQ(bindFailure(), "args[6]: scalar \"n\": missing value");
  scalars["n"] = 0.5;
  EXPECT_EQ(bindFailure(), "args[6]: scalar \"n\": expected an integer that "
                           "fits i32, got 0.50");
  SetUp();
  record.steps[0].args[6].type = DType::U32;
  for (double wrong : {-1.0, 0x1p32}) {
    scalars["n"] = wrong;
    EXPECT_EQ(bindFailure(), llvm::formatv("args[6]: scalar \"n\": expected an "
                                           "integer that fits u32, got {0}",
                                           wrong)
                                 .str());
  }
  scalars["n"] = 0xffffffff;
  EXPECT_EQ(bindFailure(), "no error");
  record.steps[0].args[6].type = DType::I32;
  scalars["n"] = 1;
  scalars["m"] = 1;
  EXPECT_EQ(bindFailure(), "scalar \"m\": the launch record has no scalar of "
                           "this name");
  SetUp();
  EXPECT_EQ(bindFailure({}), "expected 1 workspaces, got 0");
}

TEST(ExtentBytes, CountsToTheLastElement) {
  auto bytes = [](llvm::ArrayRef<int64_t> shape,
                  llvm::ArrayRef<int64_t> strides) {
    auto result = getExtentBytes(shape, strides, DType::F16);
    return result ? std::to_string(*result)
                  : llvm::toString(result.takeError());
  };
  EXPECT_EQ(bytes({2, 3, 4}, {12, 4, 1}), "48");
  EXPECT_EQ(bytes({2, 3, 4}, {100, 10, 1}), "248");
  EXPECT_EQ(bytes({2, 0, 4}, {100, 10, 1}), "0");
  EXPECT_EQ(bytes({}, {}), "2");
  EXPECT_EQ(bytes({2}, {-1}), "expected strides of at least 0, got -1");
  EXPECT_EQ(bytes({int64_t(1) << 40}, {int64_t(1) << 40}),
            "expected an extent below 2^63 elements");
  EXPECT_EQ(bytes({(int64_t(1) << 62) + 1}, {1}),
            "expected an extent below 2^63 bytes");
  EXPECT_THAT(getContiguousStrides({2, 3, 4}), ElementsAre(12, 4, 1));
}

TEST(DTypes, ConvertElements) {
  auto roundTrip = [](DType dtype, double value) {
    uint8_t bytes[8] = {};
    encodeElement(dtype, value, bytes);
    return decodeElement(dtype, bytes);
  };
  for (DType dtype : {DType::F16, DType::BF16, DType::F32, DType::F64,
                      DType::F8E4M3FN, DType::F8E5M2})
    for (double value : {0.0, 1.0, -1.5, 0.0625, 96.0})
      EXPECT_EQ(roundTrip(dtype, value), value);
  EXPECT_EQ(roundTrip(DType::F16, 65504.0), 65504.0);
  EXPECT_EQ(roundTrip(DType::F16, 65536.0), INFINITY);
  EXPECT_EQ(roundTrip(DType::F16, std::ldexp(3.0, -24)), std::ldexp(3.0, -24));
  EXPECT_EQ(roundTrip(DType::F16, -INFINITY), -INFINITY);
  EXPECT_TRUE(std::isnan(roundTrip(DType::F16, NAN)));
  EXPECT_EQ(roundTrip(DType::BF16, 1.0 + 1.0 / 256), 1.0);
  EXPECT_EQ(roundTrip(DType::BF16, 1.0 + 3.0 / 256), 1.0 + 4.0 / 256);
  EXPECT_TRUE(std::isnan(roundTrip(DType::F8E4M3FN, 1000.0)));
  EXPECT_EQ(roundTrip(DType::I8, 200.0), 127.0);
  EXPECT_EQ(roundTrip(DType::I8, 128.0), 127.0);
  EXPECT_EQ(roundTrip(DType::I8, -128.0), -128.0);
  EXPECT_EQ(roundTrip(DType::I32, -1e12), -2147483648.0);
  EXPECT_EQ(roundTrip(DType::I64, 1e30), 9223372036854775807.0);
  for (unsigned bits = 0; bits < 65536; ++bits) {
    uint8_t bytes[2] = {uint8_t(bits), uint8_t(bits >> 8)}, again[2];
    for (DType dtype : {DType::F16, DType::BF16}) {
      double value = decodeElement(dtype, bytes);
      if (std::isnan(value))
        continue;
      encodeElement(dtype, value, again);
      ASSERT_EQ(again[0], bytes[0]);
      ASSERT_EQ(again[1], bytes[1]);
    }
  }
}
