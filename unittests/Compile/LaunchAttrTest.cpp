//===- LaunchAttrTest.cpp - Launch records in attributes ------------------===//

#include "attn/Compile/Compiler.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class ReadLaunch : public ::testing::Test {
protected:
  ReadLaunch() {
    context.loadDialect<AttnDialect>();
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
  }

  llvm::Expected<LaunchRecord> read(StringRef attributes) {
    module = parseSourceString<ModuleOp>(
        ("llvm.func @kernel() attributes {" + attributes + "}").str(),
        &context);
    if (!module)
      return llvm::createStringError(message);
    return readLaunchRecord(&module->getBody()->front());
  }

  /// The record of a gpu.module with two kernels.
  std::string join(StringRef first, StringRef second) {
    module = parseSourceString<ModuleOp>(
        ("gpu.module @m { llvm.func @first() attributes {attn.launch = "
         "#attn.launch<" +
         first +
         ">} llvm.func @second() attributes {attn.launch = "
         "#attn.launch<" +
         second + ">} }")
            .str(),
        &context);
    if (!module)
      return message;
    llvm::Expected<LaunchRecord> record =
        readLaunchSequence(&module->getBody()->front());
    if (!record)
      return llvm::toString(record.takeError());
    joined = *record;
    return "";
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  LaunchRecord joined;
  std::string message;
};

constexpr StringLiteral kRecord =
    R"mlir(attn.launch = #attn.launch<chip = "sm_80", ptx = 80,
      grid = ["ceildiv(q.dim2, 128)", "q.dim1", "1"],
      block = [128, 1, 1], cluster = [1, 1, 1],
      tensors = [{name = "q", dtype = "f16", shape = array<i64: 2, 8, -1, 64>,
                  strides = array<i64: -1, -1, 64, 1>, access = "read"}],
      args = [{kind = "pointer", tensor = "q"},
              {kind = "scalar", name = "x", type = "f32", value = 0.5 : f64}],
      workspaces = [{bytes = "q.dim0 * 4096", zeroed = true}]>)mlir";

/// A step on a workspace.
std::string makeStep(StringRef workspace, StringRef access,
                     StringRef chip = "sm_80", StringRef more = "") {
  return (R"(chip = ")" + chip + R"(", ptx = 80, grid = ["1", "1", "1"],
             block = [32, 1, 1],
             tensors = [{name = "q", dtype = "f16", shape = array<i64: -1>,
                         strides = array<i64: 1>, access = "read"}],
             args = [{kind = "workspace", index = 0 : i64, access = ")" +
          access + R"("}], workspaces = [{name = "part", )" + workspace + "}]" +
          more)
      .str();
}

TEST_F(ReadLaunch, AllFields) {
  llvm::Expected<LaunchRecord> record = read(kRecord);
  ASSERT_TRUE(static_cast<bool>(record)) << llvm::toString(record.takeError());
  EXPECT_EQ(record->steps[0].kernel, "kernel");
  EXPECT_EQ(record->chip, "sm_80");
  EXPECT_EQ(record->steps[0].block[0], 128);
  EXPECT_EQ(record->tensors[0].shape[2], kDynamicSize);
  EXPECT_EQ(record->steps[0].args[1].value, 0.5);
  EXPECT_TRUE(record->workspaces[0].zeroed);
  EXPECT_EQ(record->getLeastVersion(), 1);
}

TEST_F(ReadLaunch, SharedBytesOfTheKernelCount) {
  llvm::Expected<LaunchRecord> record =
      read((kRecord + ", attn.shared_bytes = 4096 : i64").str());
  ASSERT_TRUE(static_cast<bool>(record)) << llvm::toString(record.takeError());
  EXPECT_EQ(record->steps[0].sharedBytes, 4096);
}

TEST_F(ReadLaunch, PrintsAsItIsRead) {
  ASSERT_TRUE(static_cast<bool>(read(kRecord)));
  std::string text;
  llvm::raw_string_ostream(text) << *module;
  OwningOpRef<ModuleOp> again = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(again) << text;
  EXPECT_EQ(again->getBody()->front().getAttr(AttnDialect::kLaunchAttr),
            module->getBody()->front().getAttr(AttnDialect::kLaunchAttr));
}

TEST_F(ReadLaunch, Errors) {
  EXPECT_EQ(llvm::toString(read("").takeError()),
            "expected a kernel with 'attn.launch'");
  auto replace = [&](StringRef from, StringRef to) {
    std::string text = kRecord.str();
    text.replace(text.find(from.str()), from.size(), to.str());
    return llvm::toString(read(text).takeError());
  };
  EXPECT_EQ(replace("\"x\"", "\"a\\FF\""),
            "expected 'attn.launch' in UTF-8, got \"a\\FF\"");
  EXPECT_EQ(replace("tensor = \"q\"", "tensor = \"k\""),
            "launch record: steps[0].args[0].tensor: unknown tensor \"k\"");
  // What JSON cannot say is an error of the record's reader.
  EXPECT_EQ(replace("0.5 : f64", "#attn.auto"),
            "launch record: steps[0].args[1].value: expected a finite number, "
            "got \"#attn.auto\"");
}

TEST_F(ReadLaunch, StepsShareWorkspacesByName) {
  ASSERT_EQ(
      join(makeStep("bytes = \"q.dim0 * 4\", zeroed = false", "write"),
           makeStep("bytes = \"q.dim0 * 4\", zeroed = false", "read", "sm_80",
                    ", cooperative = true, programmatic = true")),
      "");
  EXPECT_EQ(joined.steps.size(), 2u);
  EXPECT_EQ(joined.steps[1].kernel, "second");
  EXPECT_EQ(joined.workspaces.size(), 1u);
  EXPECT_EQ(joined.tensors.size(), 1u);
  EXPECT_TRUE(joined.steps[1].cooperative && joined.steps[1].programmatic);
  EXPECT_EQ(joined.getLeastVersion(), 2);
}

TEST_F(ReadLaunch, StepsHaveToAgree) {
  std::string first = makeStep("bytes = \"64\", zeroed = true", "write");
  EXPECT_EQ(join(first, makeStep("bytes = \"32\", zeroed = true", "read")),
            "workspace \"part\": expected 64 bytes, zeroed as in the steps "
            "before, got 32 bytes, zeroed in kernel \"second\"");
  EXPECT_EQ(join(first, makeStep("bytes = \"64\", zeroed = false, persistent = "
                                 "true",
                                 "read")),
            "workspace \"part\": expected 64 bytes, zeroed as in the steps "
            "before, got 64 bytes, persistent in kernel \"second\"");
  EXPECT_EQ(
      join(first, makeStep("bytes = \"64\", zeroed = true", "read", "sm_90a")),
      "target: expected sm_80 and PTX 80 as in the steps before, got "
      "sm_90a and PTX 80 in kernel \"second\"");
  std::string other = first;
  other.replace(other.find("f16"), 3, "f32");
  EXPECT_EQ(
      join(first, other),
      "tensor \"q\": expected f16 of shape [-1] and strides [1] as in the "
      "steps before, got f32 of shape [-1] and strides [1] in kernel "
      "\"second\"");
  std::string scratch = "bytes = \"64\", zeroed = false";
  EXPECT_EQ(join(makeStep(scratch, "read"), makeStep(scratch, "write")),
            "step 1, kernel \"first\" reads workspace \"part\", which no step "
            "before it writes and which is not zeroed");
  std::string problem = ", problem = {scale = 1.0 : f64, mask = {kind = "
                        "\"none\"}, heads = 1, kv_heads = 1, d = 8, dv = 8}";
  EXPECT_EQ(join(makeStep(scratch, "write", "sm_80", problem),
                 makeStep(scratch, "read", "sm_80", problem)),
            "expected one problem in the steps of a launch, got another one in "
            "kernel \"second\"");
}

} // namespace
