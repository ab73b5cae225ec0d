//===- Outline.cpp - An attention becomes a kernel ------------------------===//
//
// The host side is there to read and to run through the gpu dialect's runtime:
// it takes addresses, sizes and strides out of the memrefs, computes the grid
// as the launch record states it, and launches.
//
//===----------------------------------------------------------------------===//

#include "attn/Schedule/Core/Outline.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Emits the launch in place of an attention.
class HostEmitter {
public:
  HostEmitter(AttentionOp op, const KernelContext &context)
      : facts(context.facts), context(context), b(op.getLoc(), op) {}
  void emit(gpu::GPUFuncOp kernel, PlanAttrInterface plan,
            const KernelShape &shape);

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  memref::ExtractStridedMetadataOp metadata(unsigned tensor);
  Value getSize(unsigned tensor, unsigned dim);
  Value getSymbol(const SizeSymbol &symbol);
  Value getAddress(unsigned tensor);
  /// A memref's address as a kernel takes it.
  Value getPointer(Value address);
  /// A memref as a tensor map describes it.
  Value getView(const TensorMapArg &arg);
  /// Allocates a workspace; its memref of bytes.
  Value makeWorkspace(const WorkspaceArg &workspace);
  /// The value of a grid's expression, whose symbols the launch has.
  Value emitSize(const SizeExpr &expression);
  Value emitStep(SizeExpr::Op op, Value left, Value right);

  const ProblemFacts &facts;
  const KernelContext &context;
  ImplicitLocOpBuilder b;
  llvm::DenseMap<unsigned, memref::ExtractStridedMetadataOp> cache;
};

} // namespace

memref::ExtractStridedMetadataOp HostEmitter::metadata(unsigned tensor) {
  memref::ExtractStridedMetadataOp &op = cache[tensor];
  if (!op)
    op = memref::ExtractStridedMetadataOp::create(
        b, context.tensors[tensor].value);
  return op;
}

Value HostEmitter::getSize(unsigned tensor, unsigned dim) {
  int64_t extent = context.tensors[tensor].shape[dim];
  if (!ShapedType::isDynamic(extent))
    return index(extent);
  return metadata(tensor).getSizes()[dim];
}

/// The tensor of the launch that a symbol names, if it has the dimension.
static std::optional<unsigned> findTensor(const KernelContext &context,
                                          const SizeSymbol &symbol) {
  for (auto [position, tensor] : llvm::enumerate(context.tensors))
    if (tensor.name == symbol.tensor && symbol.index < tensor.shape.size())
      return position;
  return std::nullopt;
}

Value HostEmitter::getSymbol(const SizeSymbol &symbol) {
  unsigned tensor = *findTensor(context, symbol);
  if (!symbol.isStride)
    return getSize(tensor, symbol.index);
  int64_t stride = context.tensors[tensor].strides[symbol.index];
  if (!ShapedType::isDynamic(stride))
    return index(stride);
  return metadata(tensor).getStrides()[symbol.index];
}

Value HostEmitter::getAddress(unsigned tensor) {
  const TensorFacts &facts = context.tensors[tensor];
  Value address =
      memref::ExtractAlignedPointerAsIndexOp::create(b, facts.value);
  if (facts.offset != 0) {
    Value elements = ShapedType::isDynamic(facts.offset)
                         ? metadata(tensor).getOffset()
                         : index(facts.offset);
    int64_t bits = std::max(8u, facts.elementType.getIntOrFloatBitWidth());
    Value bytes = arith::MulIOp::create(b, elements, index(bits / 8));
    address = arith::AddIOp::create(b, address, bytes);
  }
  return getPointer(address);
}

Value HostEmitter::makeWorkspace(const WorkspaceArg &workspace) {
  auto type = MemRefType::get({workspace.bytes}, b.getI8Type());
  Value memory = gpu::AllocOp::create(b, type, /*asyncToken=*/Type(),
                                      /*asyncDependencies=*/ValueRange(),
                                      /*dynamicSizes=*/ValueRange(),
                                      /*symbolOperands=*/ValueRange())
                     .getMemref();
  if (workspace.zeroed)
    gpu::MemsetOp::create(b, /*asyncToken=*/Type(),
                          /*asyncDependencies=*/ValueRange(), memory,
                          arith::ConstantIntOp::create(b, 0, 8));
  return memory;
}

Value HostEmitter::getView(const TensorMapArg &arg) {
  TensorMapView view = arg.view;
  Value memref = context.tensors[arg.tensor].value;
  auto type = cast<MemRefType>(memref.getType());
  unsigned rows = type.getRank() - 2, columns = rows + 1;
  if (view == TensorMapView::Transposed) {
    SmallVector<unsigned> order =
        llvm::to_vector(llvm::seq<unsigned>(type.getRank()));
    std::swap(order[rows], order[columns]);
    return memref::TransposeOp::create(
        b, memref,
        AffineMapAttr::get(
            AffineMap::getPermutationMap(order, b.getContext())));
  }
  if (view == TensorMapView::Whole || view == TensorMapView::Packed)
    return memref;
  SmallVector<ReassociationIndices> groups;
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    groups.push_back({dim});
  groups[rows].push_back(columns);
  groups[columns] = {columns + 1};
  shape[rows] /= 4;
  shape.insert(shape.begin() + columns, 4);
  return memref::ExpandShapeOp::create(b, shape, memref, groups);
}

Value HostEmitter::getPointer(Value address) {
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b,
      LLVM::LLVMPointerType::get(b.getContext(),
                                 unsigned(NVVM::NVVMMemorySpace::Global)),
      integer);
}

Value HostEmitter::emitStep(SizeExpr::Op op, Value left, Value right) {
  switch (op) {
  case SizeExpr::Op::Add:
    return arith::AddIOp::create(b, left, right);
  case SizeExpr::Op::Sub:
    return arith::SubIOp::create(b, left, right);
  case SizeExpr::Op::Mul:
    return arith::MulIOp::create(b, left, right);
  case SizeExpr::Op::FloorDiv:
    return arith::FloorDivSIOp::create(b, left, right);
  case SizeExpr::Op::CeilDiv:
    return arith::CeilDivSIOp::create(b, left, right);
  case SizeExpr::Op::Mod:
    // The sign is the divisor's.
    return arith::SubIOp::create(
        b, left,
        arith::MulIOp::create(b, arith::FloorDivSIOp::create(b, left, right),
                              right));
  case SizeExpr::Op::Min:
    return arith::MinSIOp::create(b, left, right);
  case SizeExpr::Op::Max:
    return arith::MaxSIOp::create(b, left, right);
  case SizeExpr::Op::Constant:
  case SizeExpr::Op::Symbol:
  case SizeExpr::Op::Neg:
    break;
  }
  llvm_unreachable("a step with two operands");
}

Value HostEmitter::emitSize(const SizeExpr &expression) {
  SmallVector<Value> stack;
  for (SizeExpr::Step step : expression.getSteps()) {
    if (step.op == SizeExpr::Op::Constant) {
      stack.push_back(index(step.value));
    } else if (step.op == SizeExpr::Op::Symbol) {
      stack.push_back(getSymbol(expression.getSymbols()[step.value]));
    } else {
      Value right = stack.pop_back_val();
      bool isNeg = step.op == SizeExpr::Op::Neg;
      Value left = isNeg ? index(0) : stack.pop_back_val();
      stack.push_back(
          emitStep(isNeg ? SizeExpr::Op::Sub : step.op, left, right));
    }
  }
  return stack.back();
}

void HostEmitter::emit(gpu::GPUFuncOp kernel, PlanAttrInterface plan,
                       const KernelShape &shape) {
  SmallVector<Value> arguments;
  for (unsigned i = 0; i < context.tensors.size(); ++i)
    arguments.push_back(getAddress(i));
  for (const DescriptorArg &arg : context.descriptorArgs) {
    Value value = arg.isStride ? metadata(arg.tensor).getStrides()[arg.dim]
                               : getSize(arg.tensor, arg.dim);
    arguments.push_back(arith::IndexCastOp::create(
        b, arg.isStride ? b.getI64Type() : b.getI32Type(), value));
  }
  for (Value scalar : facts.scalars)
    arguments.push_back(
        scalar.getType().isIndex()
            ? arith::IndexCastOp::create(b, b.getI64Type(), scalar).getResult()
            : scalar);
  SmallVector<Value> workspaces;
  for (const WorkspaceArg &workspace : context.workspaceArgs) {
    workspaces.push_back(makeWorkspace(workspace));
    arguments.push_back(getPointer(
        memref::ExtractAlignedPointerAsIndexOp::create(b, workspaces.back())));
  }
  for (const TensorMapArg &arg : context.tensorMapArgs)
    arguments.push_back(EncodeTensorMapOp::create(
        b, arg.type, getView(arg), arg.view == TensorMapView::Packed));
  gpu::KernelDim3 grid{emitSize(shape.grid[0]), emitSize(shape.grid[1]),
                       emitSize(shape.grid[2])};
  gpu::KernelDim3 block{index(shape.threads), index(1), index(1)};
  std::optional<gpu::KernelDim3> cluster;
  if (shape.cluster > 1)
    cluster = gpu::KernelDim3{index(shape.cluster), index(1), index(1)};
  gpu::LaunchFuncOp::create(b, kernel, grid, block,
                            /*dynamicSharedMemorySize=*/Value(), arguments,
                            /*asyncTokenType=*/Type(),
                            /*asyncDependencies=*/ValueRange(), cluster);
  for (Value workspace : workspaces)
    gpu::DeallocOp::create(b, /*asyncToken=*/Type(),
                           /*asyncDependencies=*/ValueRange(), workspace);
}

/// The gpu.module and the empty kernel with its attributes.
static gpu::GPUFuncOp createKernel(AttentionOp op, KernelContext &context,
                                   const KernelShape &shape,
                                   SymbolTable &symbols) {
  ImplicitLocOpBuilder b(op.getLoc(), op->getContext());
  b.setInsertionPointToEnd(
      &cast<ModuleOp>(symbols.getOp()).getBodyRegion().front());
  std::string name = "attn";
  if (auto function = op->getParentOfType<FunctionOpInterface>())
    name = function.getName().str();
  auto target = TargetAttr::get(b.getContext(), context.target.chip, /*ptx=*/0);
  auto module =
      gpu::GPUModuleOp::create(b, name + "_kernels", b.getArrayAttr({target}));
  setRung(module, Rung::Tile);
  symbols.insert(module);
  b.setInsertionPointToStart(&module.getBodyRegion().front());
  StringRef kernelName = "attn_fwd";
  auto kernel = gpu::GPUFuncOp::create(
      b, kernelName, b.getFunctionType(context.getParameterTypes(), {}));
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
  context.bindParameters(kernel);
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
  for (const SizeExpr &extent : shape.grid)
    for (const SizeSymbol &symbol : extent.getSymbols())
      if (!findTensor(context, symbol))
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

LogicalResult attn::refuseCombines(ModuleOp module) {
  WalkResult walk = module.walk([](CombineOp op) {
    op.emitOpError("cannot be computed: expected problems that a schedule "
                   "knows, and none knows this one yet");
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult attn::outlineAttention(AttentionOp op, const TargetRow &target,
                                     SymbolTable &symbols) {
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
  return outlineAttention(*facts, *schedule, plan, target, symbols);
}

LogicalResult attn::outlineAttention(const ProblemFacts &facts,
                                     const Schedule &schedule,
                                     PlanAttrInterface plan,
                                     const TargetRow &target,
                                     SymbolTable &symbols) {
  AttentionOp op = facts.op;
  if (llvm::Error error = schedule.isLegal(facts, plan, target))
    return op.emitOpError("cannot be computed by plan ")
           << plan << ": " << llvm::toString(std::move(error));

  KernelContext context(facts, target, op.getLoc());
  KernelShape shape = schedule.getKernelShape(facts, plan, target);
  if (failed(checkShape(context, schedule, shape)))
    return failure();
  gpu::GPUFuncOp kernel = createKernel(op, context, shape, symbols);
  context.b.setInsertionPointToStart(&kernel.getBody().front());
  auto end = gpu::ReturnOp::create(context.b);
  context.b.setInsertionPoint(end);
  LogicalResult result = emitBody(context, schedule, plan);
  if (succeeded(result) && !isTileKernel(kernel))
    result = op.emitOpError("expected schedule '")
             << schedule.getName()
             << "' to give its kernel a grid of warps, or partitions";
  if (failed(result)) {
    symbols.erase(kernel->getParentOp());
    return failure();
  }
  kernel->setAttr(AttnDialect::kLaunchAttr,
                  buildLaunchAttr(context, kernel.getName(), shape));
  symbols.getOp()->setAttr(gpu::GPUDialect::getContainerModuleAttrName(),
                           UnitAttr::get(op.getContext()));
  HostEmitter(op, context).emit(kernel, plan, shape);
  op.erase();
  return success();
}
