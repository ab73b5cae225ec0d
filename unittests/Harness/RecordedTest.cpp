//===- RecordedTest.cpp - tests of recorded launches ----------------------===//
#include "attn/Harness/Recorded.h"

#include "FakeProgram.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::StringRef;
using testing::ElementsAre;
using testing::HasSubstr;

static constexpr const char *launchText = R"json({
  "kernel": "scale_rows", "chip": "sm_90a", "notes": "ignored",
  "grid": [4, 1, 1], "block": [128, 1, 1], "cluster": [2, 1, 1],
  "dynamic_shared_bytes": 1024,
  "tensors": {"q": {"shape": [4, 64], "dtype": "bfloat16"},
              "o": {"shape": [4, 64], "dtype": "bfloat16"}},
  "params": [
    {"size": 16, "hex": "000102030405060708090a0b0c0d0e0f",
     "pointers": [{"at": 8, "tensor": "q", "offset": 128}]},
    {"size": 128, "tensor_map": {"tensor": "o", "offset": 0, "rank": 2,
     "dims": [64, 4], "stride_bytes": [128], "box": [64, 4],
     "swizzle_bytes": 128, "element_bytes": 2}}
  ]
})json";

namespace {

/// A recording in a temporary folder, with its arrays in a folder `data`.
class Recorded : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-recorded", folder));
    ASSERT_FALSE(llvm::sys::fs::create_directory(folder + "/data"));
    launch = launchText;
    writeArray("q", DType::BF16, {4, 64});
    writeArray("o", DType::F32, {4, 64});
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  void writeArray(StringRef name, DType dtype, llvm::ArrayRef<int64_t> shape) {
    int64_t count = 1;
    for (int64_t extent : shape)
      count *= extent;
    std::vector<uint8_t> data(count * getByteWidth(dtype));
    ASSERT_FALSE(bool(writeNpy((folder + "/data/" + name + ".npy").str(), dtype,
                               shape, data)));
  }

  llvm::Expected<RecordedLaunch> read() {
    std::error_code error;
    llvm::raw_fd_ostream((folder + "/launch.json").str(), error) << launch;
    return readRecordedLaunch(folder);
  }

  std::string fail() {
    auto result = read();
    return result ? "no error" : llvm::toString(result.takeError());
  }

  /// The error after the first `from` of launch.json became `to`.
  std::string failure(StringRef from, StringRef to) {
    launch = launchText;
    size_t at = launch.find(from.str());
    if (at == std::string::npos)
      return "launch.json has no " + from.str();
    launch.replace(at, from.size(), to.str());
    return fail();
  }

  llvm::SmallString<128> folder;
  std::string launch;
};

} // namespace

TEST_F(Recorded, ReadsLaunches) {
  auto result = read();
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(result->kernel, "scale_rows");
  EXPECT_EQ(result->chip, "sm_90a");
  EXPECT_THAT(result->grid, ElementsAre(4, 1, 1));
  EXPECT_THAT(result->block, ElementsAre(128, 1, 1));
  EXPECT_THAT(result->cluster, ElementsAre(2, 1, 1));
  EXPECT_EQ(result->dynamicShared, 1024u);
  ASSERT_EQ(result->tensors.size(), 2u);
  EXPECT_EQ(result->tensors[0].name, "o");
  EXPECT_FALSE(result->tensors[0].isInput);
  EXPECT_TRUE(result->tensors[1].isInput);
  ASSERT_EQ(result->parameters.size(), 2u);
  EXPECT_EQ(result->parameters[0].bytes[3], 3);
  ASSERT_EQ(result->parameters[0].pointers.size(), 1u);
  EXPECT_EQ(result->parameters[0].pointers[0].at, 8u);
  EXPECT_EQ(result->parameters[0].pointers[0].tensor, 1u);
  EXPECT_EQ(result->parameters[0].pointers[0].offset, 128u);
  ASSERT_TRUE(result->parameters[1].tensorMap);
  const TensorMapParameter &map = *result->parameters[1].tensorMap;
  EXPECT_THAT(map.dims, ElementsAre(64, 4));
  EXPECT_THAT(map.strides, ElementsAre(128));
  EXPECT_THAT(map.box, ElementsAre(64, 4));
  EXPECT_EQ(map.swizzle, TensorMapSwizzle::B128);
  EXPECT_EQ(map.element, DType::BF16);
  EXPECT_EQ(result->arrays.size(), 2u);
}

/// The word that a kernel with a float and an integer parameter makes of two
/// numbers of launch.json, or the error.
static std::string runNumbers(StringRef real, StringRef integer) {
  auto program = llvm::cantFail(
      parsePTX(".version 8.0\n.target sm_80\n.address_size 64\n"
               ".visible .entry k(.param .u64 o, .param .f32 f, .param .u32 n)"
               "\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<2>;\n"
               "ld.param.u64 %d0, [o];\nld.param.b32 %r0, [f];\n"
               "ld.param.u32 %r1, [n];\nadd.u32 %r0, %r0, %r1;\n"
               "st.global.b32 [%d0], %r0;\nret;\n}\n",
               "k.ptx"));
  std::string text =
      ("{\"kernel\": \"k\", \"grid\": [1, 1, 1], \"block\": [1, 1, 1], "
       "\"cluster\": [1, 1, 1], \"dynamic_shared_bytes\": 0, \"tensors\": "
       "{\"o\": {\"shape\": [1], \"dtype\": \"int32\", \"access\": "
       "\"write\"}}, \"params\": [{\"size\": 8, \"hex\": \"0000000000000000\","
       " \"pointers\": [{\"at\": 0, \"tensor\": \"o\"}]}, " +
       real + ", " + integer + "]}")
          .str();
  auto launch = parseRecordedLaunch(text);
  if (!launch)
    return llvm::toString(launch.takeError());
  auto report = runRecorded(*launch, *program, HarnessOptions());
  if (!report)
    return llvm::toString(report.takeError());
  return std::to_string(int64_t(report->findTensor("o")->getView().get({0})));
}

TEST(RecordedNumbers, HaveTheDeclaredType) {
  // 3 for a float is 3.0f and not the bits of 3.
  EXPECT_EQ(runNumbers("{\"integer\": 3}", "{\"integer\": 1}"), "1077936129");
  EXPECT_EQ(runNumbers("{\"number\": 3}", "{\"integer\": 0}"), "1077936128");
  EXPECT_EQ(runNumbers("{\"number\": 3}", "{\"number\": 2.5}"),
            "parameter n: expected an integer for .u32, got 2.50");
}

TEST_F(Recorded, ChecksLaunchJson) {
  EXPECT_THAT(failure("\"kernel\"", "kernel"),
              HasSubstr("launch.json: not JSON: "));
  launch = "[]";
  EXPECT_EQ(fail(), "launch.json: the whole: expected an object");
  EXPECT_EQ(failure("\"scale_rows\"", "\"\""),
            "launch.json: kernel: expected a string that is not empty");
  EXPECT_EQ(failure("[4, 1, 1]", "[4, 1]"),
            "launch.json: grid: expected 3 extents");
  EXPECT_EQ(failure("[4, 1, 1]", "[4, 1, -1]"),
            "launch.json: grid: expected integers from 0 to 4294967295");
  for (const char *each : {"[4, 1, 1]", "[128, 1, 1]", "[2, 1, 1]"})
    EXPECT_THAT(failure(each, "[4294967297, 1, 1]"),
                HasSubstr(": expected integers from 0 to 4294967295"));
  EXPECT_EQ(failure("[4, 1, 1]", "4"), "launch.json: grid: expected an array");
  EXPECT_THAT(failure("\"ignored\"", std::string(1000000, '[')),
              HasSubstr("launch.json: not JSON: expected at most 64 nested "
                        "arrays and objects"));
  EXPECT_EQ(failure("\"dynamic_shared_bytes\": 1024", "\"x\": 0"),
            "launch.json: .dynamic_shared_bytes: expected an integer of at "
            "least 0");
  EXPECT_EQ(failure("\"tensors\"", "\"x\""),
            "launch.json: tensors: expected an object");
  EXPECT_EQ(failure("{\"shape\": [4, 64], \"dtype\": \"bfloat16\"}", "3"),
            "launch.json: tensors.q: expected an object");
  EXPECT_EQ(failure("\"bfloat16\"", "\"complex64\""),
            "launch.json: tensors.q.dtype: unknown type \"complex64\"");
  EXPECT_EQ(failure("\"params\"", "\"x\""),
            "launch.json: params: expected an array");
  EXPECT_EQ(failure("\"params\": [", "\"params\": [1, "),
            "launch.json: params[0]: expected an object");
}

TEST_F(Recorded, ChecksParameters) {
  EXPECT_EQ(failure("\"size\": 16", "\"size\": 5000"),
            "launch.json: params[0].size: expected at most 4096 bytes");
  EXPECT_EQ(failure("0e0f", "0e"), "launch.json: params[0].hex: expected the "
                                   "hexadecimal digits of 16 bytes");
  EXPECT_EQ(failure("0e0f", "0e0x"), "launch.json: params[0].hex: expected the "
                                     "hexadecimal digits of 16 bytes");
  EXPECT_EQ(failure("\"at\": 8", "\"at\": 9"),
            "launch.json: params[0].pointers[0].at: expected an address inside "
            "the 16 bytes");
  EXPECT_EQ(failure("\"tensor\": \"q\"", "\"tensor\": \"w\""),
            "launch.json: params[0].pointers[0].tensor: unknown tensor \"w\"");
  EXPECT_EQ(failure("{\"at\": 8, \"tensor\": \"q\", \"offset\": 128}", "8"),
            "launch.json: params[0].pointers[0]: expected an object");
  EXPECT_EQ(failure("\"rank\": 2", "\"rank\": 3"),
            "launch.json: params[1].tensor_map: expected as many extents as "
            "the rank says");
  EXPECT_EQ(failure("\"size\": 128", "\"size\": 64"),
            "launch.json: params[1].size: expected the 128 bytes of a tensor "
            "map");
  EXPECT_EQ(failure("\"swizzle_bytes\": 128", "\"swizzle_bytes\": 48"),
            "launch.json: params[1].tensor_map.swizzle_bytes: expected 0, 32, "
            "64 or 128");
}

TEST_F(Recorded, ReadsNumbersAndAccess) {
  launch.replace(launch.find("\"params\": ["), 11,
                 "\"params\": [{\"integer\": -3}, {\"number\": 4.0}, ");
  launch.replace(launch.find("\"dtype\""), 0, "\"access\": \"update\", ");
  auto result = parseRecordedLaunch(launch);
  ASSERT_TRUE(bool(result)) << llvm::toString(result.takeError());
  EXPECT_EQ(result->parameters[0].integer, -3);
  EXPECT_EQ(result->parameters[1].number, 4.0);
  EXPECT_FALSE(result->tensors[1].isInput);
  EXPECT_TRUE(result->tensors[1].isUpdated);
  EXPECT_EQ(failure("\"params\": [", "\"params\": [{\"integer\": 0.5}, "),
            "launch.json: params[0].integer: expected an integer of 64 bits");
  EXPECT_EQ(failure("\"params\": [", "\"params\": [{\"number\": \"1\"}, "),
            "launch.json: params[0].number: expected a number");
  EXPECT_EQ(failure("\"dtype\"", "\"access\": \"in\", \"dtype\""),
            "launch.json: tensors.q.access: expected read, write or update, "
            "got \"in\"");
  EXPECT_EQ(failure("\"rank\"", "\"element\": \"f2\", \"rank\""),
            "launch.json: params[1].tensor_map.element: unknown type \"f2\"");
}

TEST_F(Recorded, ChecksNumbersAndContents) {
  FakeProgram program;
  auto fail = [&](StringRef params) {
    auto result = parseRecordedLaunch(
        ("{\"kernel\": \"attn_fwd\", \"grid\": [1, 1, 1], \"block\": [32, 1, "
         "1], \"cluster\": [1, 1, 1], \"dynamic_shared_bytes\": 0, "
         "\"tensors\": {\"q\": {\"shape\": [4], \"dtype\": \"float32\"}}, "
         "\"params\": [" +
         params + "]}")
            .str());
    if (!result)
      return llvm::toString(result.takeError());
    if (params.contains("0.5"))
      result->arrays["q"].data.resize(16);
    if (params.contains("0.25"))
      result->arrays["q"].data.resize(12);
    auto report = runRecorded(*result, program, HarnessOptions());
    return report ? "no error" : llvm::toString(report.takeError());
  };
  EXPECT_EQ(fail("{\"integer\": 0}, {\"integer\": 0}"),
            "tensor \"q\": expected its contents, got none");
  EXPECT_EQ(fail("{\"number\": 0.25}, {\"integer\": 0}"),
            "tensor \"q\": expected contents of 16 bytes, got 12");
  EXPECT_EQ(fail("{\"number\": 0.5}, {\"integer\": 4294967296}"),
            "parameter p1: expected an integer of 4 bytes, got 4294967296");
  program.kernel.params[1].size = 2;
  EXPECT_EQ(fail("{\"integer\": 3}, {\"number\": 0.5}"),
            "parameter p1: expected a float of 4 or 8 bytes, got 2 bytes");
}

TEST_F(Recorded, ChecksArrays) {
  writeArray("q", DType::BF16, {4, 32});
  EXPECT_EQ(fail(),
            "data: array \"q\": expected the shape that launch.json states");
  writeArray("q", DType::F32, {4, 64});
  EXPECT_EQ(fail(), "data: array \"q\": expected elements of bf16, got f4");
  llvm::sys::fs::remove(folder + "/data/q.npy");
  EXPECT_EQ(fail(), "data: array \"q\": missing");
  llvm::sys::fs::remove_directories(folder + "/data");
  EXPECT_THAT(fail(), HasSubstr("cannot read"));
  EXPECT_THAT(llvm::toString(readRecordedLaunch("/no/such/folder").takeError()),
              HasSubstr("cannot read /no/such/folder/launch.json: "));
}

TEST_F(Recorded, ChecksTheProgram) {
  auto launch = read();
  ASSERT_TRUE(bool(launch)) << llvm::toString(launch.takeError());
  FakeProgram program;
  auto fail = [&] {
    auto report = runRecorded(*launch, program, HarnessOptions());
    return report ? "no error" : llvm::toString(report.takeError());
  };
  EXPECT_EQ(fail(), "fake.ptx: expected a kernel \"scale_rows\" as in "
                    "launch.json, got none");
  program.kernel.name = "scale_rows";
  EXPECT_EQ(fail(), "args[0]: expected 8 bytes at offset 0, as kernel "
                    "\"scale_rows\" declares \"p0\", got 16 bytes at offset "
                    "0");
}
