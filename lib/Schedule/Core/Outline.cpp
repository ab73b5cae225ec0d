//===- Outline.cpp - Problems become kernels ------------------------------===//

#include "attn/Schedule/Core/Outline.h"
#include "HostEmitter.h"
#include "WorkPlan.h"
#include "attn/Dialect/Attn/IR/OccupancyAttr.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "attn/Planner/Facts/Captures.h"
#include "attn/Schedule/Core/CombineSchedule.h"
#include "attn/Schedule/Core/LaunchAttrBuilder.h"
#include "attn/Schedule/Core/MergedCombine.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

/// CTAs of a step that merges that an SM holds where they wait for the step in
/// front.
static constexpr int64_t kMostMerging = 2;

Outliner::Outliner(const TargetRow &target, SymbolTable &symbols)
    : target(target), symbols(symbols) {}

gpu::GPUModuleOp Outliner::createModule(Operation *op) {
  ImplicitLocOpBuilder b(op->getLoc(), op->getContext());
  b.setInsertionPointToEnd(
      &cast<ModuleOp>(symbols.getOp()).getBodyRegion().front());
  std::string name = "attn";
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    name = function.getName().str();
  auto chip = TargetAttr::get(b.getContext(), target.chip, /*ptx=*/0);
  auto module =
      gpu::GPUModuleOp::create(b, name + "_kernels", b.getArrayAttr({chip}));
  setRung(module, Rung::Tile);
  symbols.insert(module);
  symbols.getOp()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                           b.getUnitAttr());
  return module;
}

/// The empty kernel with its attributes, the last one of `module`. The builder
/// of `frame` stands in its body.
static gpu::GPUFuncOp createKernel(gpu::GPUModuleOp module, StringRef name,
                                   KernelFrame &frame,
                                   const KernelShape &shape) {
  ImplicitLocOpBuilder &b = frame.b;
  b.setInsertionPointToEnd(&module.getBodyRegion().front());
  auto kernel = gpu::GPUFuncOp::create(
      b, name, b.getFunctionType(frame.getParameterTypes(), {}));
  kernel->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  kernel.setKnownBlockSizeAttr(
      b.getDenseI32ArrayAttr({int32_t(shape.threads), 1, 1}));
  if (shape.cluster > 1)
    kernel.setKnownClusterSizeAttr(
        b.getDenseI32ArrayAttr({int32_t(shape.cluster), 1, 1}));
  // Without a bound ptxas picks an occupancy of its own and spills for it.
  kernel->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                  b.getI32IntegerAttr(shape.ctasPerSM));
  if (shape.warps)
    kernel->setAttr(AttnDialect::kWarpsAttr,
                    b.getDenseI64ArrayAttr(*shape.warps));
  if (shape.teams > 1)
    kernel->setAttr(AttnDialect::kTeamsAttr, b.getI64IntegerAttr(shape.teams));
  frame.bindParameters(kernel, shape.grid);
  b.setInsertionPointToStart(&kernel.getBody().front());
  auto end = gpu::ReturnOp::create(b);
  b.setInsertionPoint(end);
  return kernel;
}

/// Refuses shapes that a schedule has not filled in, and grids that depend on
/// what the launch does not have.
static LogicalResult checkShape(const KernelContext &context,
                                const Schedule &schedule,
                                const KernelShape &shape) {
  AttentionOp op = context.facts.op;
  bool hasGrid = llvm::none_of(shape.grid, [](const SizeExpr &extent) {
    return extent.getText() == "0";
  });
  if (!hasGrid || shape.threads <= 0)
    return op.emitOpError("expected schedule '")
           << schedule.getName() << "' to give its kernel a grid and threads";
  SmallVector<SizeExpr> extents(shape.grid.begin(), shape.grid.end());
  if (shape.tiles)
    extents.push_back(*shape.tiles);
  for (const SizeExpr &extent : extents)
    for (const SizeSymbol &symbol : extent.getSymbols())
      if (!symbol.isDevice() && !findTensor(context, symbol))
        return op.emitOpError("expected schedule '")
               << schedule.getName()
               << "' to make its grid of extents that the launch has, got "
               << extent.getText();
  return success();
}

/// The kernel's body; a schedule that fails without a reason gets one.
static LogicalResult emitBody(KernelContext &context, const Schedule &schedule,
                              PlanAttrInterface plan) {
  AttentionOp op = context.facts.op;
  bool hasReason = false;
  LogicalResult result = success();
  {
    ScopedDiagnosticHandler listen(
        op.getContext(), [&](Diagnostic &diagnostic) {
          hasReason |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
          return failure();
        });
    result = schedule.emit(context, plan);
  }
  if (failed(result) && !hasReason)
    return op.emitOpError("cannot be computed: schedule '")
           << schedule.getName() << "' gave up on plan " << plan;
  return result;
}

//===----------------------------------------------------------------------===//
// Workspaces
//===----------------------------------------------------------------------===//

/// True if steps of a launch start before what is in front of them has ended,
/// and await it by themselves.
static bool startsEarly(const TargetRow &target) {
  return target.has(Capability::Cluster);
}

static void emitGridControl(ImplicitLocOpBuilder &b,
                            NVVM::GridDepActionKind kind) {
  NVVM::GriddepcontrolOp::create(b, kind);
}

/// Partial results that the function allocates are workspaces, which nothing
/// but problems may touch: what is in them is nobody else's.
static FailureOr<bool> findPartialResults(AttentionOp op) {
  if (!op.getKvSplits())
    return false;
  auto isAllocated = [](Value value) {
    return static_cast<bool>(value.getDefiningOp<memref::AllocOp>());
  };
  SmallVector<Value> partials = {op.getO(), op.getLse()};
  if (Value scales = op.getOScales())
    partials.push_back(scales);
  for (Value value : partials)
    if (isAllocated(value) != isAllocated(op.getO()))
      return op.emitOpError("expected all partial results in memory of "
                            "memref.alloc, or none of them");
  if (!isAllocated(op.getO()))
    return false;
  for (Value value : partials) {
    if (!cast<MemRefType>(value.getType()).getLayout().isIdentity())
      return op.emitOpError("expected dense partial results from memref.alloc, "
                            "got ")
             << value.getType();
    for (Operation *user : value.getUsers())
      if (!isa<AttentionOp, CombineOp, memref::DeallocOp, memref::DimOp>(
              user)) {
        InFlightDiagnostic diag = op.emitOpError(
            "expected partial results that only problems use, since the launch "
            "keeps them to itself");
        diag.attachNote(user->getLoc()) << "they are used here";
        return diag;
      }
  }
  return true;
}

/// Makes the partial results of `facts` workspaces, whose extents are those of
/// the operands.
static void makeWorkspaces(ProblemFacts &facts) {
  auto extent = [](int64_t known, StringRef tensor, unsigned dim) {
    return ShapedType::isDynamic(known) ? SizeExpr::getDim(tensor, dim)
                                        : SizeExpr(known);
  };
  std::vector<SizeExpr> extents = {
      SizeExpr(facts.kvSplits), extent(facts.batch, "q", 0),
      extent(facts.heads, "q", 1), extent(facts.queries, "q", 2)};
  facts.lse.workspace = "partial_lse";
  facts.lse.extents = extents;
  // Maxima and sums of rows.
  if (facts.lse.shape.size() == 5)
    facts.lse.extents.emplace_back(2);
  if (facts.oScales) {
    facts.oScales.workspace = "partial_scales";
    facts.oScales.extents = extents;
    facts.oScales.extents.emplace_back(facts.getUnitGroups());
  }
  extents.emplace_back(facts.valueDim);
  facts.o.workspace = "partial_o";
  facts.o.extents = extents;
}

/// What the record says about a problem: with the types of sums, where they are
/// not f32.
static DictionaryAttr buildProblemAttr(Builder &b, const ProblemFacts &facts,
                                       PlanAttrInterface plan) {
  NamedAttrList fields(attn::buildProblemAttr(b, facts));
  // Partial results are rounded where they are merged.
  if (CombineOp combine = findMergedCombine(facts.op))
    if (IntegerAttr group = combine.getOutGroupAttr())
      fields.append("out_group", group);
  for (const PlanParameterInfo &each : plan.listParameters())
    for (auto [parameter, field] : {std::pair("accumulate_s", "score_sums"),
                                    std::pair("accumulate_o", "result_sums")})
      if (each.name == parameter && each.value != "f32")
        fields.append(field, b.getStringAttr("f16"));
  return fields.getDictionary(b.getContext());
}

/// Makes what `combine` writes results of the kernel of `facts`: merged from
/// its workspaces, or with equal runs those of whole sequences.
static LogicalResult mergeInLaunch(ProblemFacts &facts, CombineOp combine,
                                   bool reads) {
  FailureOr<CombineFacts> merge = CombineFacts::get(combine);
  if (failed(merge))
    return failure();
  facts.mergedO = merge->o;
  facts.mergedLse = merge->lse;
  facts.mergedScales = merge->oScales;
  facts.mergedAmax = merge->amax;
  facts.mergedGroup = merge->groupColumns;
  if (failed(collectCaptures(combine, facts.captures, facts.scalars)))
    return failure();
  for (TensorFacts *partial : {&facts.o, &facts.lse, &facts.oScales}) {
    if (!*partial)
      continue;
    partial->name = partial->workspace;
    partial->reread = reads;
  }
  return success();
}

/// The kernel that deals the runs of `facts`, the first step of the launch.
static void outlineWorkPlan(gpu::GPUModuleOp module, const ProblemFacts &facts,
                            const KernelShape &planned,
                            const TargetRow &target) {
  AttentionOp op = facts.op;
  WorkPlanFrame frame(facts, planned, target);
  KernelShape shape = frame.getShape();
  std::string name = (op.getKernelName() + "_plan").str();
  gpu::GPUFuncOp kernel = createKernel(module, name, frame, shape);
  // One CTA leaves room to those that wait for it.
  if (planned.cutTiles && planned.programmatic)
    emitGridControl(frame.b, NVVM::GridDepActionKind::launch_dependents);
  frame.emit();
  kernel->setAttr(AttnDialect::kLaunchAttr,
                  buildLaunchAttr(frame, shape, /*problem=*/DictionaryAttr()));
  emitHostLaunch(op, frame, kernel, shape);
}

/// Names the captures of a step of a launch as others of it that are `known`.
static void nameCaptures(CombineFacts &facts, ArrayRef<TensorFacts> known) {
  size_t count = known.size();
  for (TensorFacts &capture : facts.captures) {
    const TensorFacts *same = llvm::find_if(
        known, [&](const auto &each) { return each.value == capture.value; });
    capture.name =
        same != known.end() ? same->name : "capture" + std::to_string(count++);
  }
}

//===----------------------------------------------------------------------===//
// Problems
//===----------------------------------------------------------------------===//

LogicalResult Outliner::outline(AttentionOp op) {
  if (op.hasTensorSemantics())
    return op.emitOpError("expected operands on memrefs, got tensors: run "
                          "one-shot-bufferize first");
  PlanAttrInterface plan = op.getPlanAttr();
  if (!plan)
    return op.emitOpError("expected a plan: run attn-plan first");
  llvm::Expected<const Schedule &> schedule =
      lookupSchedule(plan.getSchedule());
  if (!schedule)
    return op.emitOpError() << llvm::toString(schedule.takeError());
  FailureOr<ProblemFacts> facts = ProblemFacts::get(op);
  if (failed(facts))
    return failure();
  return outline(*facts, *schedule, plan);
}

LogicalResult Outliner::outline(ProblemFacts facts, const Schedule &schedule,
                                PlanAttrInterface plan) {
  AttentionOp op = facts.op;
  if (llvm::Error error = schedule.isLegal(facts, plan, target))
    return op.emitOpError("cannot be computed by plan ")
           << plan << ": " << llvm::toString(std::move(error));
  FailureOr<bool> isStep = findPartialResults(op);
  if (failed(isStep))
    return failure();
  if (*isStep) {
    makeWorkspaces(facts);
    // The op that merges them changes and scales the results.
    for (Operation *user : op.getO().getUsers())
      if (auto merge = dyn_cast<CombineOp>(user)) {
        facts.mergedMod = merge.getOutMod();
        if (FloatAttr scale = merge.getOutScaleAttr())
          facts.outScale = scale.getValueAsDouble();
      }
  }

  KernelShape shape = schedule.getKernelShape(facts, plan, target);
  CombineOp combine;
  if (shape.mergesRuns || shape.equalRuns) {
    combine = findMergedCombine(op);
    if (!combine)
      return op.emitOpError("expected partial results in memory of "
                            "memref.alloc and one attn.combine of them, behind "
                            "the op and with nothing between that its place "
                            "could change, for ")
             << (shape.mergesRuns ? "combine = launch" : "dealt_runs")
             << " of plan " << plan;
    if (failed(mergeInLaunch(facts, combine, shape.mergesRuns)))
      return failure();
  }
  if (shape.isPlanned())
    makeWorkPlan(facts, shape);
  shape.programmatic = (*isStep || shape.cutTiles) && startsEarly(target);
  KernelContext context(facts, target, op.getLoc());
  if (failed(checkShape(context, schedule, shape)))
    return failure();
  gpu::GPUModuleOp module = createModule(op);
  if (shape.isPlanned())
    outlineWorkPlan(module, facts, shape, target);
  gpu::GPUFuncOp kernel =
      createKernel(module, op.getKernelName(), context, shape);
  if (shape.programmatic)
    emitGridControl(context.b, NVVM::GridDepActionKind::wait);
  // Once all CTAs run, nobody waits for the place that those of the next step
  // take.
  if (shape.programmatic && !shape.mergesRuns && !shape.releasesNext)
    emitGridControl(context.b, NVVM::GridDepActionKind::launch_dependents);
  LogicalResult result = emitBody(context, schedule, plan);
  if (succeeded(result) && !isTileKernel(kernel))
    result = op.emitOpError("expected schedule '")
             << schedule.getName()
             << "' to give its kernel a grid of warps, or partitions";
  if (failed(result)) {
    symbols.erase(module);
    return failure();
  }
  // The reference needs the numbers of heads; with dynamic ones there is none.
  DictionaryAttr problem;
  if (!ShapedType::isDynamic(facts.heads) &&
      !ShapedType::isDynamic(facts.kvHeads))
    problem = ::buildProblemAttr(context.b, facts, plan);
  kernel->setAttr(AttnDialect::kLaunchAttr,
                  buildLaunchAttr(context, shape, problem));
  emitHostLaunch(op, context, kernel, shape);
  if (shape.mergesRuns)
    merged.insert(combine);
  else
    for (const TensorFacts *result : {&facts.o, &facts.lse, &facts.oScales})
      if (result->isWorkspace())
        written[result->value] = {module,
                                  *result,
                                  context.tensors,
                                  shape.dealsRuns,
                                  shape.fillsSMs,
                                  shape.equalRuns ? facts.work : TensorFacts(),
                                  shape.equalRuns.runs,
                                  facts.captures,
                                  int64_t(facts.scalars.size())};
  op.erase();
  return success();
}

LogicalResult Outliner::outline(CombineOp op) {
  if (merged.erase(op)) {
    op.erase();
    return success();
  }
  if (op.hasTensorSemantics())
    return op.emitOpError("expected operands on memrefs, got tensors: run "
                          "one-shot-bufferize first");
  auto plan = dyn_cast_if_present<CombinePlanAttr>(op.getPlanAttr());
  if (!plan)
    return op.emitOpError("expected a plan: run attn-plan first");
  FailureOr<CombineFacts> facts = CombineFacts::get(op);
  if (failed(facts))
    return failure();

  // A combine of partial results of the same launch is a step of it.
  const Writer *writer = nullptr;
  for (TensorFacts *partial :
       {&facts->partialO, &facts->partialLse, &facts->partialScales}) {
    auto known = written.find(partial->value);
    if (known == written.end())
      continue;
    if (writer && writer->module != known->second.module)
      return op.emitOpError("expected partial results of one attention, got "
                            "those of two");
    writer = &known->second;
    partial->workspace = writer->result.workspace;
    partial->extents = writer->result.extents;
    facts->areDealt = writer->areDealt;
    facts->work = writer->work;
    facts->equalRuns = writer->equalRuns;
  }
  if (!writer && op.getPartialO().getDefiningOp<memref::AllocOp>() &&
      llvm::none_of(op.getPartialO().getUsers(), [&](Operation *user) {
        return user->getBlock() == op->getBlock() &&
               user->isBeforeInBlock(op) &&
               !isa<CombineOp, memref::DimOp>(user);
      }))
    return op.emitOpError("expected partial results that something before "
                          "the op writes");
  for (const TensorFacts *partial : {&facts->partialLse, &facts->partialScales})
    if (*partial && facts->partialO.isWorkspace() != partial->isWorkspace())
      return op.emitOpError("expected all partial results from one attention, "
                            "got some of them");
  gpu::GPUModuleOp module = writer ? writer->module : createModule(op);
  if (module.lookupSymbol(op.getKernelName()))
    return op.emitOpError("expected kernels of different names in one launch, "
                          "got two of '")
           << op.getKernelName()
           << "'; the attribute 'kernel' names them, or that parameter of a "
              "plan";

  if (writer)
    nameCaptures(*facts, writer->captures);
  CombineFrame frame(*facts, target);
  frame.firstScalar = writer ? writer->scalars : 0;
  KernelShape shape = getCombineShape(*facts, plan);
  shape.programmatic = writer && startsEarly(target);
  gpu::GPUFuncOp kernel =
      createKernel(module, op.getKernelName(), frame, shape);
  // Where the step in front leaves no room beside its CTAs, all of these would
  // wait on the first SMs that are free.
  std::optional<int64_t> ctas = countCombineCtas(*facts, plan);
  if (writer && writer->fillsSMs && ctas &&
      *ctas <= kMostMerging * int64_t(target.smCount))
    kernel->setAttr(kMostCtasAttr, frame.b.getI64IntegerAttr(kMostMerging));
  if (shape.programmatic)
    emitGridControl(frame.b, NVVM::GridDepActionKind::wait);
  emitCombine(frame, *facts, plan);
  kernel->setAttr(AttnDialect::kLaunchAttr,
                  buildLaunchAttr(frame, shape, /*problem=*/DictionaryAttr(),
                                  writer ? ArrayRef(writer->tensors)
                                         : ArrayRef<TensorFacts>()));
  emitHostLaunch(op, frame, kernel, shape);
  op.erase();
  return success();
}
