//===- InferLayouts.cpp - The pass attn-infer-layouts ---------------------===//
//
// Resolves #attn.auto in one kernel.
//
// Terminology. An *anchor* is a place that fixes a layout: the accumulator and
// the operands of a matrix instruction, and every type that the user or a pass
// before wrote out. A *link* says that two values have related layouts: the
// same (elementwise ops, carried values), or one is the row layout of the other
// (reduce, broadcast). Ops say theirs (LayoutOpInterface).
//
// 1. Buffers: a view has the layout that its source determines; an allocation
//    takes the widest swizzle that divides its rows.
// 2. Strong anchors seed a worklist: accumulators and written-out types.
//    Layouts travel along links, both ways, until nothing changes. The first
//    layout that reaches a value stays; a later, different one is a conflict.
// 3. Weak anchors (operands of matrix instructions) seed what is left: they
//    name what one use wants, and a conversion at that use serves as well.
// 4. What nothing reached gets the accumulator layout of the warps that hold
// it:
//    those of its partition, or the kernel's.
// 5. Types are written; where a use needs another layout than its value has, an
//    attn.convert_layout is put in front of the use. Constants are cloned in
//    the layout that is needed.
//
//===----------------------------------------------------------------------===//

#include "InferBuffers.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "attn/Dialect/Attn/IR/LayoutLinks.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Layout/Convert.h"
#include "mlir/IR/Remarks.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ScopedPrinter.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINFERLAYOUTSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

struct Link {
  Value other;
  LayoutRelation relation;
  Operation *op;
};

/// A layout, and where it came from.
struct Choice {
  Attribute layout;
  /// The op that fixed the layout.
  Operation *seed = nullptr;
  /// The value that it came along; null at the seed.
  Value from;
};

class LayoutInference {
public:
  LayoutInference(gpu::GPUFuncOp kernel, bool assertTrivial)
      : kernel(kernel), assertTrivial(assertTrivial) {}
  LogicalResult run();

  unsigned numConversions = 0, numResolved = 0;

private:
  void collectLinks();
  void link(Value a, Value b, Operation *op,
            LayoutRelation relation = LayoutRelation::Same);
  void seed(Value value, Attribute layout, Operation *op);
  /// Seeds what an op says that it gives, or what it wants.
  void seedAnchors(Operation *op, bool isStrong);
  void propagate();
  /// The layout of accumulators where `op` stands, which has tiles.
  MmaLayoutAttr getAccumulator(Operation *op) const;
  void seedWeakAnchors();
  LogicalResult writeTypes();
  LogicalResult convertUses();
  Value converted(OpBuilder &b, Operation *user, Value value,
                  RankedTensorType type);
  LogicalResult reportConversion(Operation *user, Value value,
                                 RankedTensorType type);

  gpu::GPUFuncOp kernel;
  bool assertTrivial;
  llvm::MapVector<Value, SmallVector<Link, 2>> links;
  llvm::DenseMap<Value, Choice> choices;
  SmallVector<Value> worklist;
};

} // namespace

static bool hasTile(Value value) { return isTile(value.getType()); }

/// The encoding of a tile.
static Attribute encodingOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getEncoding();
}

/// True for partial row sums, in a layout that is known or not.
static bool isPartial(Value value) {
  return isa<PartialLayoutAttr>(encodingOf(value));
}

/// Returns true if `value` is a tile or buffer whose layout is still to be
/// chosen.
static bool isLayoutOpen(Value value) {
  auto buffer = dyn_cast<BufferType>(value.getType());
  return (buffer && isAuto(buffer.getLayout())) ||
         (hasTile(value) && isAuto(encodingOf(value)));
}

/// True for an op that register tiles go into, come out of or pass through.
static bool touchesTiles(Operation *op) {
  return llvm::any_of(op->getOperandTypes(), isRegisters) ||
         llvm::any_of(op->getResultTypes(), isRegisters) ||
         llvm::any_of(op->getRegions(), [&](Region &region) {
           return llvm::any_of(region.getBlocks(), [&](Block &block) {
             return llvm::any_of(block.getArgumentTypes(), isRegisters);
           });
         });
}

static RankedTensorType withLayout(Value value, Attribute layout) {
  auto type = cast<RankedTensorType>(value.getType());
  return RankedTensorType::get(type.getShape(), type.getElementType(), layout);
}

//===----------------------------------------------------------------------===//
// Links and seeds
//===----------------------------------------------------------------------===//

void LayoutInference::link(Value a, Value b, Operation *op,
                           LayoutRelation relation) {
  if (!hasTile(a) || !hasTile(b))
    return;
  links[a].push_back({b, relation, op});
  links[b].push_back({a, invert(relation), op});
}

void LayoutInference::seed(Value value, Attribute layout, Operation *op) {
  if (!hasTile(value) || choices.contains(value))
    return;
  choices[value] = {layout, op, Value()};
  worklist.push_back(value);
}

void LayoutInference::collectLinks() {
  kernel.walk([&](Operation *op) {
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op)) {
      forEachPassedOn(branch, [&](OpOperand &from, ArrayRef<Value> to) {
        for (Value target : to)
          link(target, from.get(), op);
      });
    } else if (isElementwiseOnTiles(op) && op->getNumResults() == 1) {
      for (Value operand : op->getOperands())
        link(op->getResult(0), operand, op);
    }
    if (auto tiles = dyn_cast<LayoutOpInterface>(op)) {
      SmallVector<LayoutLink> own;
      tiles.getLayoutLinks(own);
      for (const LayoutLink &each : own)
        link(each.first, each.second, op, each.relation);
    }
  });
  // Strong anchors, in program order.
  kernel.walk([&](Operation *op) {
    seedAnchors(op, /*isStrong=*/true);
    for (Value result : op->getResults())
      if (hasTile(result) && !isAuto(encodingOf(result)))
        seed(result, encodingOf(result), op);
  });
}

MmaLayoutAttr LayoutInference::getAccumulator(Operation *op) const {
  FailureOr<std::pair<int64_t, int64_t>> grid = getWarpGrid(op);
  assert(succeeded(grid) && "run() has asked all ops with tiles");
  return MmaLayoutAttr::get(op->getContext(), {grid->first, grid->second});
}

void LayoutInference::seedAnchors(Operation *op, bool isStrong) {
  auto tiles = dyn_cast<LayoutOpInterface>(op);
  if (!tiles || !touchesTiles(op))
    return;
  SmallVector<LayoutAnchor> anchors;
  tiles.getLayoutAnchors(getAccumulator(op), anchors);
  for (const LayoutAnchor &anchor : anchors)
    if (anchor.isStrong == isStrong)
      seed(anchor.value, anchor.layout, op);
}

void LayoutInference::propagate() {
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    Choice choice = choices.lookup(value);
    auto it = links.find(value);
    if (it == links.end())
      continue;
    for (const Link &link : it->second) {
      if (choices.contains(link.other))
        continue;
      Attribute layout = followLink(choice.layout, link.relation);
      if (!layout)
        continue;
      // A row layout says nothing of the width: partial sums have the partial
      // layout, not the accumulator's.
      if (link.relation == LayoutRelation::RowsOf && isPartial(link.other))
        layout = PartialLayoutAttr::get(layout.getContext(), layout);
      choices[link.other] = {layout, choice.seed, value};
      worklist.push_back(link.other);
    }
  }
}

void LayoutInference::seedWeakAnchors() {
  kernel.walk([&](Operation *op) { seedAnchors(op, /*isStrong=*/false); });
  propagate();
  // Nothing fixes these: any layout serves, and this one needs no conversion
  // where they meet the others later.
  auto fallback = [&](Value value, Operation *op) {
    if (!hasTile(value) || choices.contains(value))
      return;
    auto type = cast<RankedTensorType>(value.getType());
    MmaLayoutAttr accumulator = getAccumulator(op);
    Attribute layout = accumulator;
    if (type.getRank() == 1)
      layout = SliceLayoutAttr::get(kernel.getContext(), 1, accumulator);
    else if (isPartial(value))
      layout = PartialLayoutAttr::get(kernel.getContext(), accumulator);
    seed(value, layout, value.getDefiningOp());
    propagate();
  };
  kernel.walk([&](Operation *op) {
    for (Value result : op->getResults())
      fallback(result, op);
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Value argument : block.getArguments())
          fallback(argument, op);
  });
}

//===----------------------------------------------------------------------===//
// Writing the result
//===----------------------------------------------------------------------===//

LogicalResult LayoutInference::writeTypes() {
  for (auto &[value, choice] : choices) {
    if (encodingOf(value) == choice.layout)
      continue;
    RankedTensorType type = withLayout(value, choice.layout);
    llvm::Expected<TileLayout> layout = getTileLayout(type);
    if (!layout) {
      InFlightDiagnostic diag = emitError(value.getLoc())
                                << "cannot give this tile the layout "
                                << choice.layout << ": "
                                << llvm::toString(layout.takeError());
      if (choice.seed)
        diag.attachNote(choice.seed->getLoc()) << "the layout comes from here";
      return diag;
    }
    Value target = value;
    target.setType(type);
    ++numResolved;
    if (auto constant = target.getDefiningOp<arith::ConstantOp>())
      if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
        constant.setValueAttr(splat.resizeSplat(type));
  }
  return success();
}

LogicalResult LayoutInference::reportConversion(Operation *user, Value value,
                                                RankedTensorType type) {
  llvm::Expected<TileLayout> source =
      getTileLayout(cast<RankedTensorType>(value.getType()));
  llvm::Expected<TileLayout> target = getTileLayout(type);
  if (!source || !target) {
    InFlightDiagnostic diag = user->emitOpError("cannot take a value of type ")
                              << value.getType() << " as " << type;
    if (!source)
      diag << ": " << llvm::toString(source.takeError());
    if (!target)
      diag << ": " << llvm::toString(target.takeError());
    return diag;
  }
  llvm::Expected<ConversionPlan> plan =
      planConversion(*source, *target, type.getElementTypeBitWidth());
  if (!plan)
    return user->emitOpError() << llvm::toString(plan.takeError());
  bool moves = plan->kind == ConversionKind::Shuffles ||
               plan->kind == ConversionKind::Scratch;
  remark::analysis(user->getLoc(), remark::RemarkOpts::name("layout-conversion")
                                       .category("attn.infer-layouts"))
      << "conversion of " << llvm::to_string(value.getType()) << " to "
      << llvm::to_string(type.getEncoding()) << " by "
      << stringifyConversionKind(plan->kind).str() << ": "
      << remark::metric("instructions", plan->instructions) << " instructions, "
      << remark::metric("bytes", plan->scratchBytes()) << " bytes of scratch";
  if (!moves || !assertTrivial)
    return success();
  InFlightDiagnostic diag =
      user->emitOpError("needs a layout conversion that "
                        "moves data between threads, from ")
      << encodingOf(value) << " to " << type.getEncoding();
  Choice choice = choices.lookup(value);
  if (choice.seed)
    diag.attachNote(choice.seed->getLoc())
        << "the layout " << encodingOf(value) << " comes from here";
  for (Value step = choice.from; step; step = choices.lookup(step).from)
    diag.attachNote(step.getLoc()) << "and reaches the use through here";
  diag.attachNote(user->getLoc())
      << "the layout " << type.getEncoding() << " is needed here";
  return diag;
}

Value LayoutInference::converted(OpBuilder &b, Operation *user, Value value,
                                 RankedTensorType type) {
  b.setInsertionPoint(user);
  if (auto constant = value.getDefiningOp<arith::ConstantOp>())
    if (auto splat = dyn_cast<SplatElementsAttr>(constant.getValue()))
      return arith::ConstantOp::create(b, constant.getLoc(),
                                       splat.resizeSplat(type));
  if (auto splat = value.getDefiningOp<tensor::SplatOp>())
    return tensor::SplatOp::create(b, splat.getLoc(), type, splat.getInput());
  if (failed(reportConversion(user, value, type)))
    return {};
  ++numConversions;
  return ConvertLayoutOp::create(b, user->getLoc(), type, value);
}

LogicalResult LayoutInference::convertUses() {
  OpBuilder b(kernel.getContext());
  LogicalResult status = success();
  auto require = [&](Operation *user, OpOperand &operand, Attribute layout) {
    if (!hasTile(operand.get()) || encodingOf(operand.get()) == layout)
      return;
    Value value =
        converted(b, user, operand.get(), withLayout(operand.get(), layout));
    if (!value) {
      status = failure();
      return;
    }
    operand.set(value);
  };
  SmallVector<Operation *> ops;
  kernel.walk([&](Operation *op) { ops.push_back(op); });
  for (Operation *op : ops) {
    if (auto branch = dyn_cast<RegionBranchOpInterface>(op)) {
      forEachPassedOn(branch, [&](OpOperand &from, ArrayRef<Value> to) {
        if (!hasTile(from.get()))
          return;
        // What a loop carries has one type, that of the body's argument.
        const Value *argument = llvm::find_if(to, llvm::IsaPred<BlockArgument>);
        Type type = (argument == to.end() ? to.front() : *argument).getType();
        for (Value target : to)
          target.setType(type);
        require(from.getOwner(), from, encodingOf(to.front()));
      });
    } else if (isElementwiseOnTiles(op) && op->getNumResults() == 1 &&
               hasTile(op->getResult(0))) {
      for (OpOperand &operand : op->getOpOperands())
        require(op, operand, encodingOf(op->getResult(0)));
    } else if (auto tiles = dyn_cast<LayoutOpInterface>(op)) {
      for (OpOperand &operand : op->getOpOperands())
        if (hasTile(operand.get()))
          if (Attribute layout =
                  tiles.getOperandLayout(operand, getAccumulator(op)))
            require(op, operand, layout);
    }
  }
  return status;
}

LogicalResult LayoutInference::run() {
  WalkResult grids = kernel.walk([&](Operation *op) {
    return !touchesTiles(op) || succeeded(getWarpGrid(op))
               ? WalkResult::advance()
               : WalkResult::interrupt();
  });
  if (grids.wasInterrupted())
    return failure();
  FailureOr<unsigned> numBuffers = inferBufferLayouts(kernel);
  if (failed(numBuffers))
    return failure();
  numResolved += *numBuffers;
  collectLinks();
  propagate();
  seedWeakAnchors();
  if (failed(writeTypes()) || failed(convertUses()))
    return failure();
  WalkResult left = kernel.walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      if (isLayoutOpen(result)) {
        op->emitOpError("has a result whose layout nothing determines");
        return WalkResult::interrupt();
      }
    }
    return WalkResult::advance();
  });
  return failure(left.wasInterrupted());
}

/// Checks that nothing in `kernel`, of which no grid of warps is known, waits
/// for a layout.
static LogicalResult checkHasNoTiles(gpu::GPUFuncOp kernel) {
  WalkResult walk = kernel.walk([&](Operation *op) {
    for (Value result : op->getResults()) {
      if (!isLayoutOpen(result))
        continue;
      InFlightDiagnostic diagnostic =
          kernel->emitOpError("expected 'attn.warps', the grid of warps that "
                              "shares its tiles, or partitions");
      diagnostic.attachNote(op->getLoc()) << "a tile without a layout is here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

namespace {
struct AttnInferLayoutsPass
    : attn::impl::AttnInferLayoutsPassBase<AttnInferLayoutsPass> {
  using Base::Base;
  void runOnOperation() override {
    for (gpu::GPUFuncOp kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!isTileKernel(kernel)) {
        if (failed(checkHasNoTiles(kernel)))
          return signalPassFailure();
        continue;
      }
      LayoutInference inference(kernel, assertTrivial);
      if (failed(inference.run()))
        return signalPassFailure();
      remark::passed(
          kernel.getLoc(),
          remark::RemarkOpts::name("layouts").category("attn.infer-layouts"))
          << "resolved " << remark::metric("values", inference.numResolved)
          << " layouts with "
          << remark::metric("conversions", inference.numConversions)
          << " conversions";
    }
  }
};
} // namespace
