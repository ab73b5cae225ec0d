//===- BytecodeTest.cpp - Versions of the dialect in bytecode -------------===//

#include "attn/Dialect/Attn/IR/Bytecode.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Bytecode/BytecodeWriter.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// A dialect's version is looked at where the bytecode has an op of it.
constexpr const char *kText = R"(
  func.func @f() attributes {m = #attn.mask<kind = causal>} {
    attn.cp_async.commit
    return
  })";

class Bytecode : public ::testing::Test {
protected:
  Bytecode() { context.loadDialect<AttnDialect, func::FuncDialect>(); }

  /// kText as bytecode, of `version` where it is not this one.
  std::string write(std::optional<uint64_t> version = std::nullopt) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(kText, &context);
    BytecodeWriterConfig config;
    if (version)
      config.setDialectVersion<AttnDialect>(
          std::make_unique<AttnBytecodeVersion>(*version));
    std::string bytes;
    llvm::raw_string_ostream stream(bytes);
    EXPECT_TRUE(succeeded(writeBytecodeToFile(*module, stream, config)));
    return bytes;
  }

  /// What reading says: the first error, or "none".
  std::string read(StringRef bytes) {
    std::string message = "none";
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (message == "none")
        message = diagnostic.str();
      return success();
    });
    OwningOpRef<ModuleOp> module =
        parseSourceString<ModuleOp>(bytes, ParserConfig(&context));
    EXPECT_EQ(static_cast<bool>(module), message == "none");
    return message;
  }

  MLIRContext context;
};

TEST_F(Bytecode, OwnVersion) { EXPECT_EQ(read(write()), "none"); }

TEST_F(Bytecode, OwnVersionIsWritten) {
  EXPECT_EQ(write(), write(kBytecodeVersion));
  EXPECT_NE(write(), write(kBytecodeVersion + 1));
}

TEST_F(Bytecode, LaterVersionIsRefused) {
  EXPECT_EQ(read(write(7)), "expected bytecode of the dialect 'attn' of at "
                            "most version 3, got version 7");
}

} // namespace
