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

/// An attention with paged keys in three runs that says `init` and `attributes`
/// beside that.
static std::string getAttention(StringRef init, StringRef attributes) {
  return (R"(
  func.func @f(%q: memref<2x8x1x64xf16>, %k: memref<90x2x16x64xf16>,
      %o: memref<3x2x8x1x64xf32>, %lse: memref<3x2x8x1xf32>,
      %table: memref<2x12xi32>, %first: memref<2x8x1x64xf32>,
      %first_lse: memref<2x8x1xf32>, %keep: i1) {
    attn.attention
      ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<90x2x16x64xf16>,
                       memref<90x2x16x64xf16>)
      outs(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>)
      pages(%table : memref<2x12xi32>) )" +
          init + " {kv_splits = 3 : i64, page_size = 16 : i64" + attributes +
          R"(}
    return
  })")
      .str();
}

class Bytecode : public ::testing::Test {
protected:
  Bytecode() { context.loadDialect<AttnDialect, func::FuncDialect>(); }

  /// `text` as bytecode, of `version` where it is not this one. `message` is
  /// then the last error, or "none".
  std::string write(std::optional<uint64_t> version = std::nullopt,
                    StringRef text = kText) {
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    message = "none";
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
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
    message = "none";
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
  std::string message;
};

TEST_F(Bytecode, OwnVersion) { EXPECT_EQ(read(write()), "none"); }

TEST_F(Bytecode, OwnVersionIsWritten) {
  EXPECT_EQ(write(), write(kBytecodeVersion));
  EXPECT_NE(write(), write(kBytecodeVersion + 1));
}

TEST_F(Bytecode, LaterVersionIsRefused) {
  EXPECT_EQ(read(write(12)), "expected bytecode of the dialect 'attn' of at "
                             "most version 11, got version 12");
}

TEST_F(Bytecode, LargestResultsAreOfVersion11) {
  constexpr const char *text = R"(
  func.func @f(%q: memref<1x1x64x64xf16>, %o: memref<1x1x64x64xf16>,
      %sinks: memref<1xf32>, %amax: memref<1xf32>, %po: memref<2x1x1x64x64xf32>,
      %pl: memref<2x1x1x64xf32>) {
    attn.attention
      ins(%q, %q, %q : memref<1x1x64x64xf16>, memref<1x1x64x64xf16>,
                       memref<1x1x64x64xf16>)
      outs(%o : memref<1x1x64x64xf16>) sinks(%sinks : memref<1xf32>)
      amax(%amax : memref<1xf32>)
    attn.combine ins(%po, %pl : memref<2x1x1x64x64xf32>, memref<2x1x1x64xf32>)
      outs(%o, %amax : memref<1x1x64x64xf16>, memref<1xf32>) {amax}
    return
  })";
  EXPECT_EQ(read(write(std::nullopt, text)), "none");
  write(10, text);
  EXPECT_EQ(message, "'attn.combine' op has 'amax', which bytecode of version "
                     "10 of the dialect 'attn' cannot say");
}

TEST_F(Bytecode, EarlierVersionsAreWritten) {
  for (uint64_t version : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}) {
    std::string bytes = write(version, getAttention("", ""));
    EXPECT_EQ(message, "none");
    EXPECT_EQ(read(bytes), "none");
  }
}

TEST_F(Bytecode, ListsOfBlocksAreOfVersion8) {
  constexpr const char *text = R"(
  func.func @f(%q: memref<1x1x64x64xf16>, %counts: memref<1x1x1x2xi32>,
      %indices: memref<1x1x1x1xi32>, %o: memref<1x1x64x64xf16>) {
    attn.attention
      ins(%q, %q, %q : memref<1x1x64x64xf16>, memref<1x1x64x64xf16>,
                       memref<1x1x64x64xf16>)
      outs(%o : memref<1x1x64x64xf16>)
      blocks(%counts, %indices : memref<1x1x1x2xi32>, memref<1x1x1x1xi32>)
      {block_rows = 64 : i64, block_keys = 64 : i64}
    return
  })";
  EXPECT_EQ(read(write(8, text)), "none");
  write(7, text);
  EXPECT_EQ(message, "'attn.attention' op has 'blocks', which bytecode of "
                     "version 7 of the dialect 'attn' cannot say");
}

TEST_F(Bytecode, AddedKeysAreOfVersion10) {
  constexpr const char *text = R"(
  func.func @f(%q: memref<2x1x1x64xf16>, %k: memref<9x1x16x64xf16>,
      %t: memref<2x4xi32>, %n: memref<2xi32>, %a: memref<9x1x1x64xf16>) {
    attn.attention
      ins(%q, %k, %k : memref<2x1x1x64xf16>, memref<9x1x16x64xf16>,
                       memref<9x1x16x64xf16>)
      outs(%q : memref<2x1x1x64xf16>) pages(%t : memref<2x4xi32>)
      added(%a, %a, %t, %n : memref<9x1x1x64xf16>, memref<9x1x1x64xf16>,
                             memref<2x4xi32>, memref<2xi32>)
      {added_page_size = 1 : i64, page_size = 16 : i64}
    return
  })";
  EXPECT_EQ(read(write(10, text)), "none");
  write(9, text);
  EXPECT_EQ(message, "'attn.attention' op has 'added', which bytecode of "
                     "version 9 of the dialect 'attn' cannot say");
}

TEST_F(Bytecode, StatesExpectedKeysAndKeysAsValuesAreOfVersion9) {
  constexpr const char *text = R"(
  func.func @f(%q: memref<1x1x64x64xf16>, %n: memref<1xi32>,
      %o: memref<1x1x64x64xf32>, %l: memref<1x1x64x2xf32>) {
    attn.attention
      ins(%q, %q, %q : memref<1x1x64x64xf16>, memref<1x1x64x64xf16>,
                       memref<1x1x64x64xf16>)
      outs(%o, %l : memref<1x1x64x64xf32>, memref<1x1x64x2xf32>)
      kv_lengths(%n : memref<1xi32>) {ATTRIBUTES}
    return
  })";
  for (auto [name, attributes] :
       {std::pair("row_state", "row_state"),
        std::pair("expected_keys", "expected_keys = array<i64: 9>, row_state"),
        std::pair("rope_dim = 0", "rope_dim = 0 : i64, row_state")}) {
    std::string all = text;
    all.replace(all.find("ATTRIBUTES"), std::strlen("ATTRIBUTES"), attributes);
    EXPECT_EQ(read(write(9, all)), "none");
    write(8, all);
    EXPECT_NE(message.find("which bytecode of version 8"), std::string::npos)
        << name;
  }
}

TEST_F(Bytecode, WhatEarlierVersionsCannotSayIsRefused) {
  struct Case {
    uint64_t since;
    const char *name, *init, *attributes;
  };
  for (const Case &each :
       {Case{1, "kernel", "", ", kernel = \"served\""},
        Case{2, "run_keys", "", ", run_keys = 64 : i64"},
        Case{2, "selected", "", ", selected"},
        Case{2, "init",
             "init(%first, %first_lse : memref<2x8x1x64xf32>, "
             "memref<2x8x1xf32>)",
             ""},
        Case{6, "key_range",
             "mask_mod {\n^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):"
             "\nattn.yield %keep : i1\n} key_range {\n^bb0(%b: i32, %h0: i32, "
             "%h1: i32, %i0: i32, %i1: i32):\nattn.yield %i0, %i1 : i32, "
             "i32\n}",
             ""}}) {
    std::string text = getAttention(each.init, each.attributes);
    EXPECT_EQ(read(write(each.since, text)), "none") << each.name;
    for (uint64_t version = 0; version < each.since; ++version) {
      write(version, text);
      EXPECT_EQ(message, "'attn.attention' op has '" + std::string(each.name) +
                             "', which bytecode of version " +
                             std::to_string(version) +
                             " of the dialect 'attn' cannot say");
    }
  }
}

TEST_F(Bytecode, CombineOfEarlierVersions) {
  auto getText = [](StringRef attributes) {
    return (R"(
  func.func @f(%o: memref<3x2x8x1x64xf32>, %lse: memref<3x2x8x1xf32>,
      %out: memref<2x8x1x64xf8E4M3FN>) {
    attn.combine ins(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>)
      outs(%out : memref<2x8x1x64xf8E4M3FN>) )" +
            attributes + R"(
    return
  })")
        .str();
  };
  std::string text = getText("{out_scale = 2.0 : f32}");
  EXPECT_EQ(read(write(4, text)), "none");
  write(3, text);
  EXPECT_EQ(message, "'attn.combine' op has 'out_scale', which bytecode of "
                     "version 3 of the dialect 'attn' cannot say");
}

TEST_F(Bytecode, CombineWithScalesOfEarlierVersions) {
  StringRef text = R"(
  func.func @f(%o: memref<3x2x8x1x64xf32>, %lse: memref<3x2x8x1xf32>,
      %out: memref<2x8x1x64xf8E4M3FN>, %scales: memref<2x8x1x2xf32>) {
    attn.combine ins(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>)
      outs(%out, %scales : memref<2x8x1x64xf8E4M3FN>, memref<2x8x1x2xf32>)
      {out_group = 32 : i64}
    return
  })";
  EXPECT_EQ(read(write(5, text)), "none");
  write(4, text);
  EXPECT_EQ(message, "'attn.combine' op has 'out_group', which bytecode of "
                     "version 4 of the dialect 'attn' cannot say");
}

TEST_F(Bytecode, ChangedResultsOfEarlierVersions) {
  StringRef region = R"(out_mod {
    ^bb0(%r: f32, %b: i32, %h: i32, %i: i32, %c: i32):
      attn.yield %r : f32
    })";
  std::string merged = (R"(
  func.func @f(%o: memref<3x2x8x1x64xf32>, %lse: memref<3x2x8x1xf32>,
      %out: memref<2x8x1x64xf16>) {
    attn.combine ins(%o, %lse : memref<3x2x8x1x64xf32>, memref<3x2x8x1xf32>)
      outs(%out : memref<2x8x1x64xf16>) )" +
                        region + "\nreturn\n}")
                           .str();
  std::string whole = (R"(
  func.func @f(%q: memref<2x8x1x64xf16>) {
    attn.attention ins(%q, %q, %q : memref<2x8x1x64xf16>, memref<2x8x1x64xf16>,
      memref<2x8x1x64xf16>) outs(%q : memref<2x8x1x64xf16>) )" +
                       region + "\nreturn\n}")
                          .str();
  for (auto [name, text] : {std::pair("attn.combine", merged),
                            std::pair("attn.attention", whole)}) {
    EXPECT_EQ(read(write(7, text)), "none") << name;
    write(6, text);
    EXPECT_EQ(message, "'" + std::string(name) +
                           "' op has 'out_mod', which bytecode of version 6 of "
                           "the dialect 'attn' cannot say");
  }
}

} // namespace
