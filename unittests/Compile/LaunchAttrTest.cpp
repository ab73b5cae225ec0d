//===- LaunchAttrTest.cpp - Launch records in attributes ------------------===//

#include "attn/Compile/Compiler.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class LaunchAttr : public ::testing::Test {
protected:
  LaunchAttr() { context.loadDialect<AttnDialect>(); }

  llvm::Expected<LaunchRecord> read(StringRef attributes) {
    module = parseSourceString<ModuleOp>(
        ("llvm.func @kernel() attributes {" + attributes + "}").str(),
        &context);
    if (!module)
      return llvm::createStringError("the test does not parse");
    return readLaunchRecord(&module->getBody()->front());
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

constexpr StringLiteral kRecord =
    R"mlir(attn.launch = {
      version = 1 : i64, kernel = "kernel",
      target = {chip = "sm_80", ptx = 80 : i64},
      grid = ["ceildiv(q.dim2, 128)", "q.dim1", "1"],
      block = array<i64: 128, 1, 1>, cluster = [1 : i32, 1 : i32, 1 : i32],
      shared_bytes = 0 : i64,
      tensors = [{name = "q", dtype = "f16", shape = array<i64: 2, 8, -1, 64>,
                  strides = array<i64: -1, -1, 64, 1>, access = "read"}],
      args = [{kind = "pointer", tensor = "q"},
              {kind = "scalar", name = "x", type = "f32", value = 0.5 : f64}],
      workspace = [{bytes = "q.dim0 * 4096", zeroed = true}]
})mlir";

TEST_F(LaunchAttr, AllFields) {
  llvm::Expected<LaunchRecord> record = read(kRecord);
  ASSERT_TRUE(static_cast<bool>(record)) << llvm::toString(record.takeError());
  EXPECT_EQ(record->kernel, "kernel");
  EXPECT_EQ(record->chip, "sm_80");
  EXPECT_EQ(record->block[0], 128);
  EXPECT_EQ(record->tensors[0].shape[2], kDynamicSize);
  EXPECT_EQ(record->args[1].value, 0.5);
  EXPECT_TRUE(record->workspaces[0].zeroed);
}

TEST_F(LaunchAttr, SharedBytesOfTheKernelCount) {
  llvm::Expected<LaunchRecord> record =
      read((kRecord + ", attn.shared_bytes = 4096 : i64").str());
  ASSERT_TRUE(static_cast<bool>(record)) << llvm::toString(record.takeError());
  EXPECT_EQ(record->sharedBytes, 4096);
}

TEST_F(LaunchAttr, Errors) {
  EXPECT_EQ(llvm::toString(read("").takeError()),
            "expected a kernel with 'attn.launch'");
  EXPECT_EQ(
      llvm::toString(read(R"(attn.launch = {kernel = "a\FF"})").takeError()),
      "expected 'attn.launch' in UTF-8, got \"a\\FF\"");
  // What JSON cannot say is an error of the record's reader.
  std::string message =
      llvm::toString(read("attn.launch = {version = #attn.auto}").takeError());
  EXPECT_NE(message.find("version"), std::string::npos) << message;
}

} // namespace
