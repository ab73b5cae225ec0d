//===- PlanTest.cpp - What plans say and what kernels take ----------------===//
//
// Whatever head dimensions an attention has, the planner has a plan for it, and
// nothing behind the planner takes more shared memory than the plan's sum says.
//
//===----------------------------------------------------------------------===//

#include "attn/Compile/Compiler.h"
#include "attn/Compile/Problem.h"
#include "attn/Planner/Choice/PlanCandidates.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <mutex>

using namespace mlir;
using namespace mlir::attn;

/// Why schedules have no plan.
static std::string listReasons(const PlanCandidates &found) {
  return llvm::join(
      llvm::map_range(found.reasons,
                      [](const PlanReason &reason) { return reason.text; }),
      "; ");
}

namespace {

class PlanTest : public ::testing::Test {
protected:
  PlanTest() {
    // Pass managers ask for them, and they can be registered only once.
    static std::once_flag once;
    std::call_once(once, [] { registerPassManagerCLOptions(); });
    DialectRegistry registry;
    registerCompileDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.disableMultithreading();
  }

  /// Builds the problem and returns the facts of its attention.
  ProblemFacts build(const Problem &problem) {
    module = buildProblem(&context, problem);
    AttentionOp op;
    module->walk([&](AttentionOp found) { op = found; });
    FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
    EXPECT_TRUE(succeeded(facts));
    return *facts;
  }

  /// Bytes of shared memory of the kernel that the module becomes; -1 after a
  /// diagnostic.
  int64_t compileToBarriers(const CompileOptions &options) {
    DefaultTimingManager manager;
    TimingScope timing = manager.getRootScope();
    CompileResult result;
    if (failed(compile(*module, options, timing, result)))
      return -1;
    int64_t bytes = -1;
    module->walk([&](gpu::GPUFuncOp kernel) {
      bytes = kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr)
                  .getInt();
    });
    return bytes;
  }

  /// Plans and compiles to barriers, and compares the bytes.
  void checkSum(StringRef chip, StringRef flags, StringRef schedule = "",
                StringRef set = "");

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

/// A problem of two heads of two batches with a causal mask.
Problem makeProblem(StringRef type, int64_t headDim, int64_t valueDim,
                    int64_t queries, int64_t keys) {
  Problem problem;
  problem.batch = problem.heads = problem.kvHeads = 2;
  problem.queries = queries;
  problem.keys = keys;
  problem.headDim = headDim;
  problem.valueDim = valueDim;
  problem.type = type;
  problem.outType = type.starts_with("f8") ? "bf16" : type;
  problem.mask = MaskKind::Causal;
  return problem;
}

} // namespace

void PlanTest::checkSum(StringRef chip, StringRef text, StringRef scheduleName,
                        StringRef set) {
  SCOPED_TRACE(
      llvm::formatv("{0} {1} {2} {3}", chip, text, scheduleName, set).str());
  ProblemFlags flags;
  SmallVector<StringRef> words;
  text.split(words, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef word : words) {
    auto [name, value] = word.split('=');
    auto number = [&, value = value] { return std::stoll(value.str()); };
    if (name == "q")
      flags.q = value.str();
    else if (name == "dv")
      flags.dv = number();
    else if (name == "kv-len")
      flags.kvLen = number();
    else if (name == "out-type")
      flags.outType = value.str();
    else if (name == "varlen")
      flags.varlen = value.str();
    else if (name == "causal")
      flags.causal = "";
    else if (name == "sinks")
      flags.sinks = true;
    else if (name == "v-transposed")
      flags.vTransposed = true;
    else
      FAIL() << "a flag that the test does not know: " << name.str();
  }
  llvm::Expected<Problem> problem = parseProblem(flags);
  ASSERT_TRUE(bool(problem)) << llvm::toString(problem.takeError());
  ProblemFacts facts = build(*problem);

  SmallVector<const Schedule *> schedules = getSchedules();
  if (!scheduleName.empty())
    schedules = {&llvm::cantFail(lookupSchedule(scheduleName))};
  CompileOptions options;
  options.chip = chip.str();
  options.schedule = scheduleName.str();
  options.shippedPlans = false;
  options.last = Rung::Barrier;
  SmallVector<PlanParameter> parameters;
  SmallVector<StringRef> settings;
  set.split(settings, ' ', /*MaxSplit=*/-1, /*KeepEmpty=*/false);
  for (StringRef setting : settings) {
    auto [name, value] = setting.split('=');
    parameters.push_back({name, value});
    options.set.push_back(setting.str());
  }
  PlanCandidates found = collectCandidates(
      facts, llvm::cantFail(lookupTarget(chip)), schedules, parameters);
  ASSERT_FALSE(found.plans.empty()) << listReasons(found);
  const PlanCandidate &plan = found.plans.front();
  std::string description = plan.describe();
  int64_t planned = plan.estimate.sharedBytes.getTotal();
  EXPECT_EQ(compileToBarriers(options), planned) << description;
}

// 16 and 8 bits, the lengths of a few keys, of neither's multiples, and long.
// Of the pairs of 16 bits each length takes another quarter, on all of which
// the nightly tier insists.
TEST_F(PlanTest, AllHeadDimensionsHavePlans) {
  // Chips with the same limits and instructions have the same plans.
  std::vector<const TargetRow *> chips;
  for (const TargetRow &row : getTargets())
    if (llvm::none_of(chips, [&](const TargetRow *other) {
          return other->sharedBytesPerCTA == row.sharedBytesPerCTA &&
                 other->has(Capability::Wgmma) == row.has(Capability::Wgmma);
        }))
      chips.push_back(&row);
  ASSERT_EQ(chips.size(), 4u);
  SmallVector<const Schedule *> schedules = getSchedules();
  bool takesAll = std::getenv("ATTN_NIGHTLY");
  int64_t quarter = 0;
  for (auto [queries, keys] :
       {std::pair(578, 5), std::pair(578, 700), std::pair(4096, 4096)}) {
    ++quarter;
    for (StringRef type : {"bf16", "f8E4M3FN"}) {
      // A matrix instruction takes 32 operands of 8 bits.
      bool narrow = type != "bf16";
      int64_t least = narrow ? 32 : 16, step = narrow ? 32 : 8;
      for (int64_t headDim = least; headDim <= 256; headDim += step)
        for (int64_t valueDim = least; valueDim <= 256; valueDim += step) {
          // Equal dimensions are what most problems have.
          bool isTaken =
              takesAll || narrow || headDim == valueDim ||
              (headDim / 8 + 2 * (valueDim / 8) + valueDim / 32) % 4 == quarter;
          if (!isTaken)
            continue;
          ProblemFacts facts =
              build(makeProblem(type, headDim, valueDim, queries, keys));
          for (const TargetRow *chip : chips) {
            if (narrow && !chip->has(Capability::Wgmma))
              continue;
            PlanCandidates found = collectCandidates(facts, *chip, schedules);
            std::string what =
                llvm::formatv("{0}, {1}, D {2}, Dv {3}, {4} keys", chip->chip,
                              type, headDim, valueDim, keys);
            ASSERT_FALSE(found.plans.empty())
                << what << ": " << listReasons(found);
            const PlanCandidate &plan = found.plans.front();
            EXPECT_FALSE(plan.spills) << what << ": " << plan.describe();
            EXPECT_LE(plan.estimate.sharedBytes.getTotal(),
                      chip->sharedBytesPerCTA)
                << what << ": " << plan.describe();
          }
        }
    }
  }
}

// Results whose rows are an odd number of 64 bytes once passed through shared
// memory that no sum had.
TEST_F(PlanTest, ResultsOfOddWidthsTakeNoSharedMemory) {
  StringRef odd = "q=2x2x578x128xbf16 kv-len=5 dv=224 causal sinks";
  checkSum("sm_90a", odd);
  for (auto [headDim, valueDim] : {std::pair(96, 224), std::pair(128, 160),
                                   std::pair(192, 160), std::pair(256, 224)})
    checkSum("sm_90a", llvm::formatv("q=2x2x578x{0}xbf16 kv-len=700 dv={1} "
                                     "causal",
                                     headDim, valueDim)
                           .str());
  checkSum("sm_80", odd);
  checkSum("sm_86", "q=2x2x578x256xf16 dv=160 out-type=f32");
}

TEST_F(PlanTest, SharedMemoryIsThePlansSum) {
  for (StringRef chip : {"sm_80", "sm_90a"})
    for (StringRef schedule : {"split_q", "ws_wgmma", "self_load"}) {
      if (chip == "sm_80" && schedule != "split_q")
        continue;
      for (StringRef epilogue : {"", "epilogue=staged"}) {
        checkSum(chip, "q=1x2x130x64xf16 causal", schedule, epilogue);
        checkSum(chip, "q=1x2x130x32xbf16 dv=224 out-type=f32", schedule,
                 epilogue);
        checkSum(chip, "q=1x2x130x240xbf16 dv=48 kv-len=70", schedule,
                 epilogue);
      }
    }
  for (StringRef schedule : {"ws_wgmma", "self_load"}) {
    checkSum("sm_90a", "q=1x2x130x64xf16", schedule, "epilogue=tma");
    checkSum("sm_90a", "q=1x2x130x96xf8E4M3FN causal", schedule);
    checkSum("sm_90a", "q=1x2x132x64xf8E4M3FN v-transposed", schedule,
             "epilogue=staged");
    checkSum("sm_90a", "q=1x2x130x64xf16 varlen=q:70,60", schedule,
             "epilogue=staged");
  }
  checkSum("sm_90a", "q=1x2x130x64xf16", "ws_wgmma",
           "dynamic=true cluster=2 epilogue=tma");
  // Swizzles of several spans, so that alignments differ.
  checkSum("sm_90a", "q=1x2x130x128xbf16 dv=208 causal", "ws_wgmma",
           "block_n=80 k_stages=3 v_stages=3");
  checkSum("sm_90a", "q=1x2x130x128xf8E4M3FN", "ws_wgmma", "dynamic=true");
  checkSum("sm_80", "q=1x2x130x24xf16 dv=40 causal", "split_q", "parts=2");
}
