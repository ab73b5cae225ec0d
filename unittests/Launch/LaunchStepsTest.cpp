//===- LaunchStepsTest.cpp - tests of launches with several steps ---------===//
#include "attn/Launch/LaunchBinding.h"
#include "attn/Launch/LaunchRecord.h"

#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn;
using llvm::StringRef;
using testing::ElementsAre;

namespace {

/// Two kernels, the second of which reads what the first one writes.
constexpr llvm::StringLiteral kRecord = R"json({
  "version": 2,
  "target": {"chip": "sm_90a", "ptx": 80},
  "tensors": [
    {"name": "q", "dtype": "f16", "shape": [-1, 64], "strides": [64, 1], "access": "read"},
    {"name": "o", "dtype": "f32", "shape": [-1], "strides": [1], "access": "write"}
  ],
  "workspaces": [
    {"name": "part", "bytes": "q.dim0 * 4", "zeroed": false},
    {"bytes": "sms * 4", "zeroed": true, "persistent": true}
  ],
  "steps": [
    {"kernel": "first", "grid": ["min(q.dim0, sms)", "1", "1"], "block": [32, 1, 1],
     "cluster": [1, 1, 1], "shared_bytes": 128,
     "args": [{"kind": "pointer", "tensor": "q"},
              {"kind": "workspace", "index": 0, "access": "write"},
              {"kind": "expression", "value": "q.dim0 * sms", "type": "i32"}]},
    {"kernel": "second", "grid": ["o.dim0", "1", "1"], "block": [64, 1, 1],
     "cluster": [1, 1, 1], "shared_bytes": 0, "cooperative": true, "programmatic": true,
     "args": [{"kind": "workspace", "index": 0, "access": "read"},
              {"kind": "pointer", "tensor": "o"},
              {"kind": "scalar", "name": "x", "type": "f32"},
              {"kind": "workspace", "index": 1}]}
  ]
})json";

LaunchRecord parseSteps(StringRef text = kRecord) {
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
  if (!record) {
    ADD_FAILURE() << llvm::toString(record.takeError());
    return {};
  }
  return std::move(*record);
}

/// The error of the record after its first `from` behind `after` became `to`.
std::string stepsFailure(StringRef from, StringRef to, StringRef after = "{") {
  std::string text = kRecord.str();
  size_t at = text.find(from.str(), text.find(after.str()));
  if (at == std::string::npos)
    return "the record has no " + from.str();
  text.replace(at, from.size(), to.str());
  llvm::Expected<LaunchRecord> record = parseLaunchRecord(text);
  return record ? "no error" : llvm::toString(record.takeError());
}

TEST(LaunchSteps, Reads) {
  LaunchRecord record = parseSteps();
  ASSERT_EQ(record.steps.size(), 2u);
  EXPECT_EQ(record.steps[0].sharedBytes, 128);
  EXPECT_FALSE(record.steps[0].cooperative || record.steps[0].programmatic);
  EXPECT_TRUE(record.steps[1].cooperative && record.steps[1].programmatic);
  EXPECT_EQ(record.steps[0].args[1].access, WorkspaceAccess::Write);
  EXPECT_EQ(record.steps[1].args[3].access, WorkspaceAccess::Update);
  EXPECT_EQ(record.workspaces[0].name, "part");
  EXPECT_TRUE(record.workspaces[1].persistent);
  EXPECT_EQ(record.describeWorkspace(0), "workspace \"part\"");
  EXPECT_EQ(record.describeWorkspace(1), "workspace 1");
  EXPECT_EQ(record.describeStep(1), "step 2, kernel \"second\"");
  EXPECT_EQ(record.getLeastVersion(), 2);
}

TEST(LaunchSteps, RoundTrips) {
  llvm::json::Value written = toJSON(parseSteps());
  EXPECT_EQ(written, llvm::cantFail(llvm::json::parse(kRecord)));
  EXPECT_EQ(toJSON(parseSteps(llvm::formatv("{0}", written).str())), written);
}

TEST(LaunchSteps, OneStepIsVersion1UnlessItIsNew) {
  LaunchRecord record = parseSteps();
  record.steps.erase(record.steps.begin());
  record.steps[0].cooperative = record.steps[0].programmatic = false;
  record.workspaces[0].name.clear();
  record.workspaces[1] = {"", 4, /*zeroed=*/true, /*restored=*/true, false};
  record.steps[0].args[0].access = WorkspaceAccess::Update;
  LaunchRecord plain = record;
  auto version = [&] {
    return *toJSON(record).getAsObject()->getInteger("version");
  };
  EXPECT_EQ(version(), 1);
  EXPECT_EQ(toJSON(parseSteps(llvm::formatv("{0}", toJSON(record)).str())),
            toJSON(record));
  auto becomesNew = [&](auto change) {
    record = plain;
    change();
    return version() == 2;
  };
  EXPECT_TRUE(becomesNew([&] { record.steps[0].cooperative = true; }));
  EXPECT_FALSE(becomesNew([&] { record.steps[0].tiles = SizeExpr(7); }));
  EXPECT_EQ(toJSON(parseSteps(llvm::formatv("{0}", toJSON(record)).str())),
            toJSON(record));
  EXPECT_TRUE(becomesNew([&] { record.workspaces[0].name = "x"; }));
  EXPECT_TRUE(becomesNew([&] { record.workspaces[0].persistent = true; }));
  EXPECT_TRUE(becomesNew(
      [&] { record.workspaces[0].bytes = SizeExpr::getMultiprocessors(); }));
  EXPECT_TRUE(becomesNew(
      [&] { record.steps[0].grid[1] = SizeExpr::getMultiprocessors() * 2; }));
  EXPECT_TRUE(becomesNew(
      [&] { record.steps[0].args[0].access = WorkspaceAccess::Write; }));
  EXPECT_TRUE(
      becomesNew([&] { record.steps[0].args[0].kind = ArgKind::Expression; }));
}

TEST(LaunchSteps, Rejects) {
  EXPECT_EQ(stepsFailure("\"version\": 2", "\"version\": 3"),
            "launch record: version: expected 1 to 2, got 3");
  EXPECT_EQ(stepsFailure("\"index\": 0", "\"index\": 2", "second"),
            "launch record: steps[1].args[0].index: expected an integer from 0 "
            "to 1, got 2");
  EXPECT_EQ(stepsFailure("\"tensor\": \"o\"", "\"tensor\": \"p\"", "second"),
            "launch record: steps[1].args[1].tensor: unknown tensor \"p\"");
  EXPECT_EQ(stepsFailure("o.dim0", "p.dim0", "second"),
            "launch record: steps[1].grid[0]: unknown tensor \"p\" in "
            "\"p.dim0\"");
  EXPECT_EQ(stepsFailure("q.dim0 * sms", "q.dim2 * sms", "expression"),
            "launch record: steps[0].args[2].value: expected a dimension below "
            "2 of \"q\", got 2");
  EXPECT_EQ(stepsFailure("\"i32\"", "\"f32\"", "expression"),
            "launch record: steps[0].args[2].type: expected one of \"i32\", "
            "\"i64\", got \"f32\"");
  EXPECT_EQ(stepsFailure("\"read\"", "\"fetch\"", "second"),
            "launch record: steps[1].args[0].access: expected one of "
            "\"update\", \"read\", \"write\", got \"fetch\"");
  EXPECT_EQ(
      stepsFailure("\"bytes\": \"sms", "\"name\": \"part\", \"bytes\": \"sms"),
      "launch record: workspaces[1].name: expected distinct names, got "
      "\"part\" twice");
  EXPECT_EQ(
      stepsFailure("\"persistent\"", "\"restored\": true, \"persistent\""),
      "launch record: workspaces[1].restored: expected false with "
      "persistent, got true");
  EXPECT_EQ(stepsFailure("\"kernel\": \"second\"", "\"stream\": 1"),
            "launch record: steps[1].kernel: missing field\n"
            "launch record: steps[1].stream: unknown field");
}

TEST(LaunchSteps, RejectsReadsOfWhatNobodyWrote) {
  EXPECT_EQ(stepsFailure("\"write\"", "\"read\"", "first"),
            "launch record: step 1, kernel \"first\" reads workspace \"part\", "
            "which no step before it writes and which is not zeroed");
  // Zeros and what the last call left are something to read.
  std::string text = kRecord.str();
  size_t at = text.find("\"write\"", text.find("first"));
  text.replace(at, 7, "\"read\"");
  at = text.find("false");
  for (StringRef filled : {"true", "false, \"persistent\": true"}) {
    std::string other = text;
    other.replace(at, 5, filled.str());
    parseSteps(other);
  }
}

class BoundSteps : public testing::Test {
protected:
  LaunchRecord record = parseSteps();
  std::vector<TensorArgument> tensors = {
      {"q", DType::F16, {300, 64}, {64, 1}, 0x1000},
      {"o", DType::F32, {300}, {1}, 0x2000}};
};

TEST_F(BoundSteps, ResolveEachStep) {
  auto resolved = resolveLaunch(record, tensors, 132);
  ASSERT_TRUE(bool(resolved)) << llvm::toString(resolved.takeError());
  EXPECT_THAT(resolved->steps[0].grid, ElementsAre(132, 1, 1));
  EXPECT_THAT(resolved->steps[1].grid, ElementsAre(300, 1, 1));
  EXPECT_THAT(resolved->workspaceBytes, ElementsAre(1200, 528));
  EXPECT_EQ(resolved->steps[0].parameterBytes, 20u);
  auto first = bindParameters(record, *resolved, 0, tensors, {{"x", 1.0}},
                              {0xa000, 0xb000});
  ASSERT_TRUE(bool(first)) << llvm::toString(first.takeError());
  using llvm::support::endian::read32le;
  using llvm::support::endian::read64le;
  EXPECT_EQ(read64le(first->bytes.data() + 8), 0xa000u);
  EXPECT_EQ(read32le(first->bytes.data() + 16), 300u * 132);
  auto second = bindParameters(record, *resolved, 1, tensors, {{"x", 1.0}},
                               {0xa000, 0xb000});
  ASSERT_TRUE(bool(second)) << llvm::toString(second.takeError());
  EXPECT_EQ(read64le(second->bytes.data()), 0xa000u);
  EXPECT_EQ(read64le(second->bytes.data() + 24), 0xb000u);
}

TEST_F(BoundSteps, ErrorsNameTheStep) {
  auto fail = [&](std::optional<int64_t> sms) {
    auto resolved = resolveLaunch(record, tensors, sms);
    return resolved ? "no error" : llvm::toString(resolved.takeError());
  };
  EXPECT_EQ(fail(std::nullopt), "steps[0].grid[0]: no value for \"sms\" in "
                                "\"min(q.dim0, sms)\"");
  record.steps[1].cluster[0] = 7;
  EXPECT_EQ(fail(1), "steps[1].grid[0]: expected a multiple of the cluster's "
                     "7, got 300");
  record = parseSteps();
  record.steps[0].args[2].expression =
      llvm::cantFail(SizeExpr::parse("1 / (sms - 1)"));
  EXPECT_EQ(fail(1), "steps[0].args[2].value: division by zero in \"1 / (sms - "
                     "1)\"");
  record.steps[0].args[2].expression = int64_t(1) << 40;
  auto resolved = resolveLaunch(record, tensors, 1);
  ASSERT_TRUE(bool(resolved));
  auto bound = bindParameters(record, *resolved, 0, tensors, {}, {0, 0});
  EXPECT_EQ(llvm::toString(bound.takeError()),
            "steps[0].args[2]: expected a value that fits i32, got "
            "1099511627776");
}

} // namespace
