//===- RoundTripTest.cpp - Every rung is an input -------------------------===//
//
// What is printed at a rung and read back goes on to the same text as the whole
// compilation: then, rung by rung, to the same PTX and launch record.
//
//===----------------------------------------------------------------------===//

#include "attn/Compile/Compiler.h"
#include "attn/Compile/Problem.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// A problem and how to compile it.
struct Case {
  const char *name;
  const char *q;
  const char *chip;
  /// What else: flags of the problem and options of the compilation.
  void (*change)(ProblemFlags &, CompileOptions &);
};

void PrintTo(const Case &each, std::ostream *os) { *os << each.name; }

class RungsTest : public ::testing::Test {
protected:
  RungsTest() : context(getRegistry(), MLIRContext::Threading::DISABLED) {
    // compile() applies these options.
    static bool isRegistered = [] {
      registerPassManagerCLOptions();
      return true;
    }();
    (void)isRegistered;
    context.getDiagEngine().registerHandler([&](Diagnostic &diagnostic) {
      diagnostics += diagnostic.str() + "\n";
    });
  }

  static DialectRegistry getRegistry() {
    DialectRegistry registry;
    registerCompileDialects(registry);
    return registry;
  }

  bool run(ModuleOp module, const CompileOptions &options,
           CompileResult &result) {
    DefaultTimingManager manager;
    TimingScope timing = manager.getRootScope();
    return succeeded(compile(module, options, timing, result));
  }

  /// Compiles `module` and leaves the text of all rungs in `folder`.
  void dump(ModuleOp module, CompileOptions options, CompileResult &result) {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("attn-rungs", folder));
    options.dumpDir = std::string(folder);
    ASSERT_TRUE(run(module, options, result)) << diagnostics;
  }

  std::string read(Rung rung) {
    SmallString<128> path(folder);
    StringRef extension = rung == Rung::PTX ? "ptx" : "mlir";
    llvm::sys::path::append(path,
                            llvm::formatv("{0,0+2}-{1}.{2}", unsigned(rung),
                                          stringifyRung(rung), extension)
                                .str());
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "no such file";
  }

  /// Goes from each rung to the next one.
  void check(const CompileOptions &whole, const CompileResult &expected) {
    constexpr Rung rungs[] = {Rung::Problem, Rung::Plan,   Rung::Tile,
                              Rung::Barrier, Rung::Thread, Rung::NVVM,
                              Rung::PTX};
    for (auto [from, to] : llvm::zip(rungs, ArrayRef(rungs).drop_front())) {
      SCOPED_TRACE(("from " + stringifyRung(from)).str());
      OwningOpRef<ModuleOp> module =
          parseSourceString<ModuleOp>(read(from), &context);
      ASSERT_TRUE(module) << diagnostics;
      CompileOptions options = whole;
      options.last = to;
      if (from >= Rung::Tile) {
        options.schedule.clear();
        options.set.clear();
      }
      if (from > Rung::Tile)
        options.epilogue = "auto";
      CompileResult result;
      ASSERT_TRUE(run(*module, options, result)) << diagnostics;
      EXPECT_TRUE(result.output == read(to))
          << "other text of " << stringifyRung(to).str();
      if (to < Rung::NVVM)
        continue;
      ASSERT_EQ(result.launches.size(), 1u);
      EXPECT_EQ(llvm::formatv("{0}", toJSON(result.launches[0])).str(),
                llvm::formatv("{0}", toJSON(expected.launches[0])).str());
    }
    // Nothing is said about a rung, and nothing is missing.
    EXPECT_EQ(diagnostics, "");
    llvm::sys::fs::remove_directories(folder);
  }

  MLIRContext context;
  SmallString<128> folder;
  std::string diagnostics;
};

class RoundTrip : public RungsTest,
                  public ::testing::WithParamInterface<Case> {};

TEST_P(RoundTrip, FromEachRungToTheNext) {
  ProblemFlags flags;
  CompileOptions options;
  flags.q = GetParam().q;
  options.chip = GetParam().chip;
  GetParam().change(flags, options);
  llvm::Expected<Problem> problem = parseProblem(flags);
  ASSERT_TRUE(static_cast<bool>(problem))
      << llvm::toString(problem.takeError());
  OwningOpRef<ModuleOp> module = buildProblem(&context, *problem);
  CompileResult result;
  dump(*module, options, result);
  check(options, result);
}

/// The flags of a problem and the options of a compilation.
#define CHANGE(...)                                                            \
  [](ProblemFlags &f, CompileOptions &c) {                                     \
    (void)f;                                                                   \
    (void)c;                                                                   \
    __VA_ARGS__;                                                               \
  }

const Case kCases[] = {
    // split_q.
    {"Plain", "1x4x100x64xf16", "sm_80", CHANGE()},
    {"CausalGQA", "1x4x100x128xbf16", "sm_89",
     CHANGE(f.causal = ""; f.kvHeads = 2)},
    {"Window", "2x2x100x40xf16", "sm_100a",
     CHANGE(f.window = "40,8,bottom-right"; f.kvLen = 77; f.dv = 96)},
    {"Softcap", "1x2x100x64xf16", "sm_80",
     CHANGE(f.softcap = "30"; f.scale = "0.3"; f.sinks = true; f.lse = false)},
    {"Varlen", "1x2x81x64xf16", "sm_80",
     CHANGE(f.varlen = "q:17,64/k:20,30"; f.causal = "bottom-right")},
    {"Dynamic", "1x2x100x64xf16", "sm_80",
     CHANGE(f.dynamic = true; f.layout = "bnhd")},
    {"OutType", "1x2x100x64xbf16", "sm_86",
     CHANGE(f.outType = "f32"; f.layout = "bnhd")},
    {"NoKeys", "1x2x20x64xf16", "sm_80", CHANGE(f.kvLen = 0)},
    {"Parts", "1x4x200x64xf16", "sm_80",
     CHANGE(f.causal = "";
            c.set = {"block_n=128", "parts=4", "order=longest_first",
                     "group_heads=2", "softmax=threshold"})},
    {"OneStage", "1x2x200x64xf16", "sm_80",
     CHANGE(c.set = {"stages=1", "q_in_regs=false", "softmax=optimistic"})},
    {"Exact", "1x2x200x64xf16", "sm_80",
     CHANGE(c.set = {"block_m=64", "softmax=exact"}; c.epilogue = "direct")},
    {"Shuffled", "1x2x200x64xf16", "sm_80", CHANGE(c.epilogue = "shuffled")},
    {"Staged", "1x2x200x64xf16", "sm_80", CHANGE(c.epilogue = "staged")},
    {"SplitQOnHopper", "1x2x200x64xf16", "sm_90a",
     CHANGE(c.schedule = "split_q")},
    {"Pages", "2x4x5x64xf16", "sm_80",
     CHANGE(f.kvLengths = "40,17"; f.pageSize = 16; f.kvHeads = 2;
            f.causal = "bottom-right")},
    {"ListOfPages", "1x6x20x64xf16", "sm_86",
     CHANGE(f.varlen = "q:15,5/k:30,90"; f.pageSize = 64; f.pageIndptr = true;
            f.kvHeads = 2; f.dynamic = true; f.sinks = true)},
    {"Lengths", "2x4x5x64xf16", "sm_90a",
     CHANGE(c.schedule = "split_q"; f.kvLengths = "40,17")},
    // ws_wgmma.
    {"WsWgmma", "1x2x300x64xf16", "sm_90a", CHANGE(c.schedule = "ws_wgmma")},
    {"WsCausal", "1x4x300x128xbf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.causal = ""; f.kvHeads = 2)},
    {"WsWindow", "1x4x300x128xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.window = "64,0"; f.sinks = true)},
    {"WsVarlen", "1x2x300x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.varlen = "q:100,200")},
    {"WsCluster", "1x4x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; c.set = {"cluster=2"})},
    {"WsClusterOf4", "1x4x512x128xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; c.set = {"cluster=4", "block_m=64"})},
    {"WsClusterDynamic", "1x4x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.causal = "";
            c.set = {"cluster=2", "dynamic=true"})},
    {"WsDealt", "1x4x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.causal = "";
            c.set = {"dynamic=true", "order=longest_first"})},
    {"WsBehind", "1x2x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma";
            c.set = {"softmax=optimistic", "qk_ahead=true", "pv_behind=true"})},
    {"WsTurns", "1x2x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; c.set = {"turns=true", "qk_ahead=true"})},
    {"WsNoAhead", "1x2x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma";
            c.set = {"qk_ahead=false", "pv_behind=false", "turns=false",
                     "first_block=whole", "softmax=exact"})},
    {"WsFirstBlock", "1x2x500x128xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.causal = "";
            c.set = {"first_block=auto", "qk_ahead=true"})},
    {"WsTma", "1x2x512x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; c.set = {"epilogue=tma"})},
    {"WsF8", "1x2x300x64xf8E4M3FN", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.descales = true)},
    {"WsF8Turned", "1x2x304x128xf8E5M2", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.vTransposed = true)},
    {"WsQuads", "1x2x304x128xf8E4M3FN", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.vTransposed = true;
            c.set = {"key_quads=true", "first_block=whole"})},
    {"WsTurned", "1x2x304x64xf16", "sm_90a",
     CHANGE(c.schedule = "ws_wgmma"; f.vTransposed = true)},
    // self_load.
    {"SelfLoad", "1x2x300x64xf16", "sm_90a", CHANGE(c.schedule = "self_load")},
    {"SelfCausal", "1x4x300x128xbf16", "sm_90a",
     CHANGE(c.schedule = "self_load"; f.causal = ""; f.kvHeads = 1)},
    {"SelfVarlen", "1x2x300x64xf16", "sm_90a",
     CHANGE(c.schedule = "self_load"; f.varlen = "q:100,200";
            f.window = "9,9")},
    {"SelfF8", "1x2x300x64xf8E4M3FN", "sm_90a",
     CHANGE(c.schedule = "self_load"; f.descales = true)},
    {"SelfF8Turned", "1x2x304x64xf8E4M3FN", "sm_90a",
     CHANGE(c.schedule = "self_load"; f.vTransposed = true)},
    {"SelfExact", "1x2x300x64xf16", "sm_90a",
     CHANGE(c.schedule = "self_load";
            c.set = {"softmax=exact", "qk_ahead=false"})},
};

INSTANTIATE_TEST_SUITE_P(Kernels, RoundTrip, ::testing::ValuesIn(kCases),
                         [](const auto &info) { return info.param.name; });

TEST_F(RungsTest, Regions) {
  const char *text = R"mlir(
func.func @alibi(%q: memref<1x4x100x64xf16>, %o: memref<1x4x100x64xf16>,
                 %slopes: memref<4xf32>, %factor: f32) {
  attn.attention ins(%q, %q, %q : memref<1x4x100x64xf16>, memref<1x4x100x64xf16>, memref<1x4x100x64xf16>)
                 outs(%o : memref<1x4x100x64xf16>) score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %head = arith.index_cast %h : i32 to index
    %slope = memref.load %slopes[%head] : memref<4xf32>
    %distance = arith.subi %j, %i : i32
    %d = arith.sitofp %distance : i32 to f32
    %t = arith.mulf %slope, %factor : f32
    %bias = arith.mulf %t, %d : f32
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sle, %j, %i : i32
    attn.yield %keep : i1
  }
  return
})mlir";
  for (const char *schedule : {"split_q", "ws_wgmma", "self_load"}) {
    SCOPED_TRACE(schedule);
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(module);
    CompileOptions options;
    options.chip = "sm_90a";
    options.schedule = schedule;
    CompileResult result;
    dump(*module, options, result);
    check(options, result);
  }
}

} // namespace
