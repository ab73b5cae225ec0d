//===- HostEmitter.cpp - The host launches a kernel -----------------------===//
//
// The host side is there to read and to run through the gpu dialect's runtime:
// it takes addresses, sizes and strides out of the memrefs, computes the grid
// as the launch record states it, and launches.
//
//===----------------------------------------------------------------------===//

#include "HostEmitter.h"
#include "EmitSize.h"
#include "attn/Planner/Facts/RowPitch.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// Emits the launch in place of a problem.
class HostEmitter {
public:
  HostEmitter(Operation *op, const KernelFrame &frame)
      : frame(frame), b(op->getLoc(), op) {}
  void emit(gpu::GPUFuncOp kernel, const KernelShape &shape);

private:
  Value index(int64_t value) {
    return arith::ConstantIndexOp::create(b, value);
  }
  memref::ExtractStridedMetadataOp metadata(unsigned tensor);
  Value getSize(unsigned tensor, unsigned dim);
  Value getSymbol(const SizeSymbol &symbol);
  /// Adds the addresses of all tensors.
  void addAddresses(SmallVectorImpl<Value> &arguments);
  /// A memref's address as a kernel takes it.
  Value getPointer(Value address);
  /// A memref as a tensor map describes it.
  Value getView(const TensorMapArg &arg);
  /// A memref as one of rows, which are a pitch apart.
  Value getRows(unsigned tensor);
  /// Allocates a workspace; its memref of bytes.
  Value makeWorkspace(const WorkspaceArg &workspace);
  /// The value of a grid's expression, whose symbols the launch has.
  Value emitSize(const SizeExpr &expression);

  const KernelFrame &frame;
  ImplicitLocOpBuilder b;
  llvm::DenseMap<unsigned, memref::ExtractStridedMetadataOp> cache;
};

} // namespace

memref::ExtractStridedMetadataOp HostEmitter::metadata(unsigned tensor) {
  memref::ExtractStridedMetadataOp &op = cache[tensor];
  if (!op)
    op = memref::ExtractStridedMetadataOp::create(b,
                                                  frame.tensors[tensor].value);
  return op;
}

Value HostEmitter::getSize(unsigned tensor, unsigned dim) {
  int64_t extent = frame.tensors[tensor].shape[dim];
  if (!ShapedType::isDynamic(extent))
    return index(extent);
  return metadata(tensor).getSizes()[dim];
}

std::optional<unsigned> attn::findTensor(const KernelFrame &frame,
                                         const SizeSymbol &symbol) {
  for (auto [position, tensor] : llvm::enumerate(frame.tensors))
    if (tensor.name == symbol.tensor && symbol.index < tensor.shape.size())
      return position;
  return std::nullopt;
}

Value HostEmitter::getSymbol(const SizeSymbol &symbol) {
  // Host IR is for one board.
  if (symbol.isDevice())
    return index(frame.target.smCount);
  unsigned tensor = *findTensor(frame, symbol);
  if (!symbol.isStride)
    return getSize(tensor, symbol.index);
  int64_t stride = frame.tensors[tensor].strides[symbol.index];
  if (!ShapedType::isDynamic(stride))
    return index(stride);
  return metadata(tensor).getStrides()[symbol.index];
}

void HostEmitter::addAddresses(SmallVectorImpl<Value> &arguments) {
  SmallVector<Value> whole;
  for (const TensorFacts &facts : frame.tensors)
    if (facts.offset == 0)
      whole.push_back(facts.value);
  ValueRange pointers;
  if (!whole.empty())
    pointers = DevicePointersOp::create(b, whole).getPointers();
  auto nextPointer = pointers.begin();
  for (auto [tensor, facts] : llvm::enumerate(frame.tensors)) {
    if (facts.offset == 0) {
      arguments.push_back(*nextPointer++);
      continue;
    }
    Value elements = ShapedType::isDynamic(facts.offset)
                         ? metadata(tensor).getOffset()
                         : index(facts.offset);
    int64_t bits = std::max(8u, facts.elementType.getIntOrFloatBitWidth());
    Value bytes = arith::MulIOp::create(b, elements, index(bits / 8));
    Value address =
        memref::ExtractAlignedPointerAsIndexOp::create(b, facts.value);
    arguments.push_back(getPointer(arith::AddIOp::create(b, address, bytes)));
  }
}

Value HostEmitter::makeWorkspace(const WorkspaceArg &workspace) {
  Value bytes = emitSize(workspace.bytes);
  IntegerAttr known;
  bool isKnown = matchPattern(bytes, m_Constant(&known));
  auto type = MemRefType::get({isKnown ? known.getInt() : ShapedType::kDynamic},
                              b.getI8Type());
  Value memory =
      gpu::AllocOp::create(b, type, /*asyncToken=*/Type(),
                           /*asyncDependencies=*/ValueRange(),
                           isKnown ? ValueRange() : ValueRange(bytes),
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
  Value memref = frame.tensors[arg.tensor].value;
  auto type = cast<MemRefType>(memref.getType());
  unsigned rows = type.getRank() - 2, columns = rows + 1;
  if (view == TensorMapView::Rows)
    return getRows(arg.tensor);
  if (view == TensorMapView::Transposed) {
    SmallVector<unsigned> order =
        llvm::to_vector(llvm::seq<unsigned>(type.getRank()));
    std::swap(order[rows], order[columns]);
    return memref::TransposeOp::create(
        b, memref,
        AffineMapAttr::get(
            AffineMap::getPermutationMap(order, b.getContext())));
  }
  if (view != TensorMapView::Quads)
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

Value HostEmitter::getRows(unsigned tensor) {
  const TensorFacts &facts = frame.tensors[tensor];
  int64_t pitch = getRowPitch(facts), columns = facts.shape.back();
  Value rows = index(1);
  for (size_t dim = 0; dim + 1 < facts.shape.size(); ++dim)
    if (facts.shape[dim] != 1)
      rows = b.createOrFold<arith::AddIOp>(
          rows,
          b.createOrFold<arith::MulIOp>(
              b.createOrFold<arith::SubIOp>(getSize(tensor, dim), index(1)),
              index(facts.strides[dim] / pitch)));
  OpFoldResult extent = getAsOpFoldResult(rows),
               offset = b.getIndexAttr(facts.offset);
  if (ShapedType::isDynamic(facts.offset))
    offset = metadata(tensor).getOffset();
  std::optional<int64_t> known = getConstantIntValue(extent);
  auto type = MemRefType::get(
      {known.value_or(ShapedType::kDynamic), columns},
      cast<MemRefType>(facts.value.getType()).getElementType(),
      StridedLayoutAttr::get(b.getContext(), facts.offset, {pitch, 1}));
  return memref::ReinterpretCastOp::create(
      b, type, facts.value, offset, {extent, b.getIndexAttr(columns)},
      {b.getIndexAttr(pitch), b.getIndexAttr(1)});
}

Value HostEmitter::getPointer(Value address) {
  Value integer = arith::IndexCastOp::create(b, b.getI64Type(), address);
  return LLVM::IntToPtrOp::create(
      b,
      LLVM::LLVMPointerType::get(b.getContext(),
                                 unsigned(NVVM::NVVMMemorySpace::Global)),
      integer);
}

Value HostEmitter::emitSize(const SizeExpr &expression) {
  return attn::emitSize(
      b, b.getIndexType(), expression,
      [&](const SizeSymbol &symbol) { return getSymbol(symbol); });
}

void HostEmitter::emit(gpu::GPUFuncOp kernel, const KernelShape &shape) {
  SmallVector<Value> arguments;
  addAddresses(arguments);
  for (const DescriptorArg &arg : frame.descriptorArgs) {
    Value value = arg.isStride ? metadata(arg.tensor).getStrides()[arg.dim]
                               : getSize(arg.tensor, arg.dim);
    arguments.push_back(arith::IndexCastOp::create(
        b, arg.isStride ? b.getI64Type() : b.getI32Type(), value));
  }
  for (Value scalar : frame.hostScalars)
    arguments.push_back(
        scalar.getType().isIndex()
            ? arith::IndexCastOp::create(b, b.getI64Type(), scalar).getResult()
            : scalar);
  SmallVector<Value> workspaces;
  for (const WorkspaceArg &workspace : frame.workspaceArgs) {
    workspaces.push_back(makeWorkspace(workspace));
    arguments.push_back(getPointer(
        memref::ExtractAlignedPointerAsIndexOp::create(b, workspaces.back())));
  }
  for (const TensorMapArg &arg : frame.tensorMapArgs)
    arguments.push_back(EncodeTensorMapOp::create(
        b, arg.type, getView(arg), isPacked(arg.view),
        arg.view == TensorMapView::Bounded, isByRow(arg.view)));
  auto [x, y, z] = frame.getLaunchedGrid();
  gpu::KernelDim3 grid{emitSize(x), emitSize(y), emitSize(z)};
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

void attn::emitHostLaunch(Operation *op, const KernelFrame &frame,
                          gpu::GPUFuncOp kernel, const KernelShape &shape) {
  HostEmitter(op, frame).emit(kernel, shape);
}
