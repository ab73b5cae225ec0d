//===- MapDivider.cpp - Smaller boxes for tensor maps ---------------------===//

#include "MapDivider.h"

using namespace mlir;
using namespace mlir::attn;

/// The entry of the launch record for `map`; null if there is none.
static DictionaryAttr lookupRecord(LaunchAttr launch, BlockArgument map) {
  ArrayAttr args = launch.getArgs();
  if (args.size() <= map.getArgNumber())
    return {};
  return cast<DictionaryAttr>(args[map.getArgNumber()]);
}

/// Returns true if the launch record says that a map's address may be no one's
/// memory.
static bool mayBeginInFront(gpu::GPUFuncOp kernel, BlockArgument map) {
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  DictionaryAttr entry = launch ? lookupRecord(launch, map) : DictionaryAttr();
  auto view = entry ? entry.getAs<StringAttr>("view") : StringAttr();
  return view &&
         (view == "packed" || view == "packed_by_row" || view == "bounded");
}

std::string MapDivider::findReason(Value map) {
  auto argument = dyn_cast<BlockArgument>(map);
  if (!argument || argument.getOwner() != &kernel.getBody().front())
    return "a load's tensor map is no parameter of the kernel";
  if (mayBeginInFront(kernel, argument))
    return "a part of a packed sequence's rows may lie behind its end, and TMA "
           "reads the address of its map then, which is in front of the tensor";
  return "";
}

/// The map for one part of the rows.
static TensorMapType getPart(TensorMapType type, int64_t parts) {
  SmallVector<int64_t> box(type.getBox());
  box[box.size() - 2] /= parts;
  return TensorMapType::get(type.getContext(), box, type.getElementType(),
                            type.getSwizzle());
}

/// The launch record's arguments are in the kernel's order, its boxes have the
/// innermost extent first.
static SmallVector<int64_t> getRecordBox(TensorMapType type) {
  return llvm::to_vector(llvm::reverse(type.getBox()));
}

LogicalResult MapDivider::checkRecord(BlockArgument map) {
  auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr);
  if (!launch)
    return success();
  DictionaryAttr entry = lookupRecord(launch, map);
  SmallVector<int64_t> expected =
      getRecordBox(cast<TensorMapType>(map.getType()));
  auto box =
      entry ? entry.getAs<DenseI64ArrayAttr>("box") : DenseI64ArrayAttr();
  if (box && box.asArrayRef() == ArrayRef(expected))
    return success();
  InFlightDiagnostic diag =
      kernel.emitOpError("expected argument ")
      << map.getArgNumber()
      << " of the launch record to be a tensor map with box ["
      << ArrayRef(expected) << "], got ";
  if (box)
    return diag << box;
  if (entry)
    return diag << entry;
  return diag << "none";
}

LogicalResult MapDivider::collectOperands(BlockArgument map, Plan &plan) {
  WalkResult walk = module.walk([&](gpu::LaunchFuncOp launch) -> WalkResult {
    if (SymbolTable::lookupNearestSymbolFrom(launch, launch.getKernel()) !=
        kernel)
      return WalkResult::advance();
    OpOperand &operand = launch.getKernelOperandsMutable()[map.getArgNumber()];
    if (!operand.get().getDefiningOp<EncodeTensorMapOp>()) {
      InFlightDiagnostic diag =
          launch.emitOpError("expected the result of an attn.encode_tensor_map "
                             "as kernel operand ")
          << map.getArgNumber() << ", whose box attn-shard-cga divides";
      diag.attachNote(kernel.getLoc()) << "for this kernel";
      return diag;
    }
    plan.operands.push_back(&operand);
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

void MapDivider::rewrite(BlockArgument map, const Plan &plan) {
  TensorMapType part = getPart(cast<TensorMapType>(map.getType()), plan.parts);
  map.setType(part);
  SmallVector<Type> inputs(kernel.getArgumentTypes());
  inputs[map.getArgNumber()] = part;
  kernel.setFunctionType(kernel.getFunctionType().clone(inputs, {}));
  if (auto launch =
          kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr)) {
    Builder b(kernel.getContext());
    NamedAttrList entry(lookupRecord(launch, map));
    entry.set("box", b.getDenseI64ArrayAttr(getRecordBox(part)));
    SmallVector<Attribute> args(launch.getArgs().getValue());
    args[map.getArgNumber()] = entry.getDictionary(b.getContext());
    kernel->setAttr(AttnDialect::kLaunchAttr,
                    launch.withArgs(b.getArrayAttr(args)));
  }
  for (OpOperand *operand : plan.operands) {
    auto encoding = operand->get().getDefiningOp<EncodeTensorMapOp>();
    OpBuilder b(encoding);
    operand->set(EncodeTensorMapOp::create(
        b, encoding.getLoc(), part, encoding.getSource(), encoding.getPacked(),
        encoding.getBounded(), encoding.getByRow()));
    if (encoding.use_empty())
      encoding.erase();
  }
}

LogicalResult MapDivider::add(Value map, int64_t parts) {
  auto [entry, isNew] = maps.try_emplace(map);
  entry->second.parts = parts;
  auto argument = cast<BlockArgument>(map);
  return failure(isNew && (failed(checkRecord(argument)) ||
                           failed(collectOperands(argument, entry->second))));
}

void MapDivider::rewrite() {
  for (auto &[map, plan] : maps)
    if (plan.parts != 1)
      rewrite(cast<BlockArgument>(map), plan);
}
