//===- OutlineTest.cpp - What a schedule may ask of its kernel ------------===//

#include "attn/Schedule/Core/Outline.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Asks for tensor maps of q and k, the latter twice.
class TensorMapSchedule : public Schedule {
public:
  StringRef getName() const override { return "tensor_maps"; }
  llvm::Error isApplicable(const ProblemFacts &,
                           const TargetRow &) const override {
    return llvm::Error::success();
  }
  PlanAttrInterface getDefaultPlan(MLIRContext *context) const override {
    return SplitQPlanAttr::get(context, {});
  }
  llvm::Error checkPlan(const ProblemFacts &, PlanAttrInterface,
                        const TargetRow &) const override {
    return llvm::Error::success();
  }
  KernelShape getKernelShape(const ProblemFacts &, PlanAttrInterface,
                             const TargetRow &) const override {
    KernelShape shape;
    shape.grid = grid;
    shape.threads = threads;
    shape.warps = warps;
    shape.cluster = 2;
    return shape;
  }
  LogicalResult emit(KernelContext &context, PlanAttrInterface) const override {
    if (givesUp)
      return failure();
    Value q = context.getTensorMap("q", {1, 1, 128, 64}, 128);
    Value k = context.getTensorMap("k", {1, 1, 96, 32}, 64);
    EXPECT_NE(q, k);
    EXPECT_EQ(context.getTensorMap("k", {1, 1, 96, 32}, 64), k);
    for (Value map : {k, q})
      TmaPrefetchOp::create(context.b, map);
    return success();
  }

  std::array<SizeExpr, 3> grid = {1, 1, 1};
  int64_t threads = 128;
  std::optional<std::array<int64_t, 2>> warps = {{4, 1}};
  bool givesUp = false;
};

/// An attention whose number of queries the launch decides.
constexpr StringLiteral kProblem = R"mlir(
  func.func @f(%q: memref<1x2x?x64xf16>, %kv: memref<1x2x64x64xf16>) {
    attn.attention ins(%q, %kv, %kv : memref<1x2x?x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>)
                   outs(%q : memref<1x2x?x64xf16>)
    return
  })mlir";

/// Every operator that an expression may have, on static and dynamic extents.
constexpr StringLiteral kGrids[] = {"q.dim1 + k.dim1",
                                    "(q.dim2 - 1) * 2 + 3",
                                    "ceildiv(q.dim2, 64) * (k.dim2 - 60) / 3",
                                    "min(q.dim2, k.dim2) + max(q.dim2, 7) % 5",
                                    "-(2 - q.dim2) - -3",
                                    "(3 - q.dim2) / 7 + 40",
                                    "(3 - q.dim2) % 7",
                                    "ceildiv(3 - q.dim2, 7) + 40",
                                    "q.stride1 / k.stride2"};

class Outline : public ::testing::Test {
protected:
  Outline() {
    context.loadDialect<AttnDialect, func::FuncDialect, gpu::GPUDialect,
                        memref::MemRefDialect>();
  }

  /// Reads a module with one attention.
  void parse(StringRef text) {
    module = parseSourceString<ModuleOp>(text, &context);
    ASSERT_TRUE(bool(module));
    AttentionOp op;
    module->walk([&](AttentionOp found) { op = found; });
    FailureOr<ProblemFacts> found = ProblemFacts::get(op);
    ASSERT_TRUE(succeeded(found));
    facts = *found;
  }

  LogicalResult outline(const Schedule &schedule) {
    SymbolTable symbols(*module);
    return Outliner(llvm::cantFail(lookupTarget("sm_90a")), symbols)
        .outline(facts, schedule, SplitQPlanAttr::get(&context, {}));
  }

  /// What is said about a schedule that is refused.
  std::string refuse(const Schedule &schedule) {
    parse(kProblem);
    std::string message;
    ScopedDiagnosticHandler listen(&context, [&](Diagnostic &diagnostic) {
      message = diagnostic.str();
      return success();
    });
    EXPECT_TRUE(failed(outline(schedule)));
    return message;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  ProblemFacts facts;
};

TEST_F(Outline, TensorMapsAreTheLastParameters) {
  parse(R"mlir(
    func.func @f(%q: memref<1x2x?x64xf16>, %kv: memref<1x2x64x64xf16>, %s: f32) {
      attn.attention ins(%q, %kv, %kv : memref<1x2x?x64xf16>, memref<1x2x64x64xf16>, memref<1x2x64x64xf16>)
                     outs(%q : memref<1x2x?x64xf16>)
      score_mod {
      ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32):
        %y = arith.mulf %x, %s : f32
        attn.yield %y : f32
      }
      return
    })mlir");
  ASSERT_TRUE(succeeded(outline(TensorMapSchedule())));
  EXPECT_TRUE(succeeded(verify(*module)));

  gpu::GPUFuncOp kernel;
  gpu::LaunchFuncOp launch;
  module->walk([&](gpu::GPUFuncOp found) { kernel = found; });
  module->walk([&](gpu::LaunchFuncOp found) { launch = found; });
  auto f16 = Float16Type::get(&context);
  auto q = TensorMapType::get(&context, {1, 1, 128, 64}, f16, 128);
  auto k = TensorMapType::get(&context, {1, 1, 96, 32}, f16, 64);

  // Four pointers, the number of queries, four strides, the scalar, two maps.
  ASSERT_EQ(kernel.getNumArguments(), 12u);
  EXPECT_EQ(kernel.getArgument(9).getType(), Float32Type::get(&context));
  EXPECT_EQ(kernel.getArgument(10).getType(), q);
  EXPECT_EQ(kernel.getArgument(11).getType(), k);
  ASSERT_EQ(launch.getNumKernelOperands(), 12u);
  auto encode = launch.getKernelOperand(11).getDefiningOp<EncodeTensorMapOp>();
  ASSERT_TRUE(encode);
  EXPECT_EQ(encode.getSource(), facts.k.value);
  EXPECT_EQ(encode.getType(), k);

  auto record = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  ASSERT_TRUE(record);
  EXPECT_EQ(record.getCluster(), DenseI64ArrayAttr::get(&context, {2, 1, 1}));
  EXPECT_EQ(kernel.getKnownClusterSize(),
            std::optional<ArrayRef<int32_t>>({2, 1, 1}));
  EXPECT_TRUE(launch.hasClusterSize());
  ArrayAttr args = record.getArgs();
  ASSERT_EQ(args.size(), 12u);
  auto text = [](Attribute attr) {
    std::string result;
    llvm::raw_string_ostream(result) << attr;
    return result;
  };
  EXPECT_EQ(text(args[10]),
            R"({box = array<i64: 64, 128, 1, 1>, element = "f16", )"
            R"(kind = "tensor_map", rank = 4 : i64, swizzle = "128B", )"
            R"(tensor = "q"})");
  EXPECT_EQ(text(args[11]),
            R"({box = array<i64: 32, 96, 1, 1>, element = "f16", )"
            R"(kind = "tensor_map", rank = 4 : i64, swizzle = "64B", )"
            R"(tensor = "k"})");
}

/// The value that index arithmetic on the host has when there are `queries`
/// queries.
int64_t evaluateOnHost(Value value, int64_t queries) {
  Operation *def = value.getDefiningOp();
  if (isa<memref::ExtractStridedMetadataOp>(def)) {
    // The base, the offset and four sizes stand before the strides.
    bool isStride = cast<OpResult>(value).getResultNumber() >= 6;
    return isStride ? queries * 64 : queries;
  }
  SmallVector<Attribute> operands;
  for (Value operand : def->getOperands())
    operands.push_back(IntegerAttr::get(IndexType::get(value.getContext()),
                                        evaluateOnHost(operand, queries)));
  SmallVector<OpFoldResult> folded;
  EXPECT_TRUE(succeeded(def->fold(operands, folded)));
  EXPECT_EQ(folded.size(), 1u);
  if (auto same = dyn_cast<Value>(folded[0]))
    return evaluateOnHost(same, queries);
  return cast<IntegerAttr>(cast<Attribute>(folded[0])).getInt();
}

TEST_F(Outline, GridsAreTheirExpressions) {
  constexpr int64_t kQueries = 100;
  for (StringRef text : kGrids) {
    parse(kProblem);
    TensorMapSchedule schedule;
    schedule.grid[0] = llvm::cantFail(SizeExpr::parse(text));
    ASSERT_TRUE(succeeded(outline(schedule)));
    gpu::LaunchFuncOp launch;
    module->walk([&](gpu::LaunchFuncOp found) { launch = found; });
    int64_t expected = llvm::cantFail(schedule.grid[0].evaluate(
        [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
          const TensorFacts &tensor = symbol.tensor == "q" ? facts.q : facts.k;
          int64_t value = symbol.isStride ? tensor.strides[symbol.index]
                                          : tensor.shape[symbol.index];
          if (!ShapedType::isDynamic(value))
            return value;
          return symbol.isStride ? kQueries * 64 : kQueries;
        }));
    EXPECT_EQ(evaluateOnHost(launch.getGridSizeX(), kQueries), expected)
        << text.str();
  }
}

TEST_F(Outline, RefusesGridsOfUnknownExtents) {
  for (StringRef text : {"lse.dim0", "q.dim4", "w.stride0 + 1"}) {
    TensorMapSchedule schedule;
    schedule.grid[1] = llvm::cantFail(SizeExpr::parse(text));
    EXPECT_EQ(refuse(schedule),
              "'attn.attention' op expected schedule 'tensor_maps' to "
              "make its grid of extents that the launch has, got " +
                  text.str());
  }
}

TEST_F(Outline, SchedulesWithoutAnAnswerAreNamed) {
  TensorMapSchedule schedule;
  schedule.givesUp = true;
  EXPECT_EQ(refuse(schedule),
            "'attn.attention' op cannot be computed: schedule 'tensor_maps' "
            "gave up on plan #attn.split_q<>");
  schedule.grid[2] = SizeExpr();
  StringRef message = "'attn.attention' op expected schedule 'tensor_maps' to "
                      "give its kernel a grid and threads";
  EXPECT_EQ(refuse(schedule), message);
  schedule.grid[2] = 1;
  schedule.threads = 0;
  EXPECT_EQ(refuse(schedule), message);
  schedule.threads = 128;
  schedule.givesUp = false;
  schedule.warps = std::nullopt;
  EXPECT_EQ(refuse(schedule),
            "'attn.attention' op expected schedule 'tensor_maps' to give its "
            "kernel a grid of warps, or partitions");
}

} // namespace
