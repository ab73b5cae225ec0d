//===- ProblemRegions.cpp - The regions of problems -----------------------===//
//
// Each check carries the number that its constraint has in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#include "../ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace mlir::attn;

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

/// Names each of `late_regions`, in their order.
static constexpr StringLiteral kLateRegions[] = {"key_range", "out_mod"};

OptionalParseResult
attn::parseLateRegions(OpAsmParser &parser,
                       SmallVectorImpl<std::unique_ptr<Region>> &regions) {
  bool isThere = false;
  for (auto [number, keyword] : llvm::enumerate(kLateRegions)) {
    if (failed(parser.parseOptionalKeyword(keyword)))
      continue;
    isThere = true;
    while (regions.size() <= number)
      regions.push_back(std::make_unique<Region>());
    if (parser.parseRegion(*regions[number]))
      return failure();
  }
  if (!isThere)
    return std::nullopt;
  return success();
}

void attn::printLateRegions(OpAsmPrinter &printer, Operation *,
                            MutableArrayRef<Region> regions) {
  for (auto [keyword, region] : llvm::zip(kLateRegions, regions)) {
    if (region.empty())
      continue;
    printer << keyword << ' ';
    printer.printRegion(region);
    if (&region != &regions.back())
      printer << ' ';
  }
}

//===----------------------------------------------------------------------===//
// Checks
//===----------------------------------------------------------------------===//

/// Finds the yield that ends a region; null after a diagnostic.
static YieldOp findYield(Operation *op, StringRef name, Region &region) {
  Block *block = region.empty() ? nullptr : &region.front();
  YieldOp yield;
  if (block && block->mightHaveTerminator())
    yield = dyn_cast<YieldOp>(block->getTerminator());
  if (!yield)
    op->emitOpError("expected '") << name << "' to end with 'attn.yield'";
  return yield;
}

/// Refuses a yield of types other than `expected`, which is text.
static LogicalResult refuseYield(Operation *op, StringRef name, YieldOp yield,
                                 StringRef expected) {
  InFlightDiagnostic diag = op->emitOpError("expected '")
                            << name << "' to yield " << expected << ", got ("
                            << yield.getOperandTypes() << ")";
  diag.attachNote(yield.getLoc()) << "it is yielded here";
  return diag;
}

/// Checks the effects of the operations in a region.
static LogicalResult checkEffects(Operation *op, StringRef name,
                                  Region &region) {
  // attention_c32
  WalkResult walk = region.walk([&](Operation *nested) {
    if (isa<YieldOp>(nested) ||
        nested->hasTrait<OpTrait::HasRecursiveMemoryEffects>() ||
        nested->hasTrait<OpTrait::IsTerminator>())
      return WalkResult::advance();
    auto effects = dyn_cast<MemoryEffectOpInterface>(nested);
    SmallVector<MemoryEffects::EffectInstance> instances;
    if (effects)
      effects.getEffects(instances);
    bool readsOnly = effects && llvm::all_of(instances, [](const auto &effect) {
                       return isa<MemoryEffects::Read>(effect.getEffect());
                     });
    if (readsOnly)
      return WalkResult::advance();
    InFlightDiagnostic diag =
        op->emitOpError("expected operations without effects other than reads "
                        "in '")
        << name << "', got '" << nested->getName() << "'";
    diag.attachNote(nested->getLoc()) << "the operation is here";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

/// Checks that a kernel can take the operations of a region as they are: they
/// compute with numbers, and read what is outside; with `mayFind` they look for
/// keys, too.
static LogicalResult checkInlined(Operation *op, StringRef name, Region &region,
                                  bool mayFind) {
  for (Operation &nested : region.front().without_terminator()) {
    bool isFromOutside =
        llvm::none_of(nested.getOperands(), [&](Value operand) {
          return !operand.getType().isIntOrIndexOrFloat() &&
                 region.isAncestor(operand.getParentRegion());
        });
    bool isRead = isFromOutside && (isa<memref::LoadOp>(nested) ||
                                    (mayFind && isa<FindKeyOp>(nested)));
    if (nested.getNumRegions() == 0 && (isRead || isPure(&nested)))
      continue;
    InFlightDiagnostic diag =
        op->emitOpError("expected operations without effects and regions, and "
                        "'memref.load'")
        << (mayFind ? " and 'attn.find_key'" : "")
        << " of what is outside, in '" << name << "', got '" << nested.getName()
        << "'";
    diag.attachNote(nested.getLoc()) << "the operation is here";
    return diag;
  }
  return success();
}

/// Checks the arguments, the result and the effects of score_mod, mask_mod or
/// out_mod.
static LogicalResult checkModification(Operation *op, StringRef name,
                                       Region &region, Type result) {
  if (region.empty())
    return success();
  Block &block = region.front();
  Type f32 = Float32Type::get(op->getContext());
  Type i32 = IntegerType::get(op->getContext(), 32);
  SmallVector<Type> expected = {f32, i32, i32, i32, i32};
  if (llvm::to_vector(block.getArgumentTypes()) != expected)
    return op->emitOpError("expected '")
           << name << "' to take (f32, i32, i32, i32, i32), got ("
           << block.getArgumentTypes() << ")";
  YieldOp yield = findYield(op, name, region);
  if (!yield)
    return failure();
  if (yield.getNumOperands() != 1 || yield.getOperand(0).getType() != result)
    return refuseYield(op, name, yield, result.isF32() ? "'f32'" : "'i1'");
  return checkEffects(op, name, region);
}

/// Checks key_range.
static LogicalResult checkKeyRange(AttentionOp op) {
  if (!op.hasKeyRange())
    return success();
  // attention_c50
  if (op.getMaskMod().empty())
    return op.emitOpError("expected 'mask_mod' beside 'key_range', got none");
  // attention_c49
  Region &region = *op.getKeyRange();
  YieldOp yield = findYield(op, "key_range", region);
  if (!yield)
    return failure();
  TypeRange taken = region.front().getArgumentTypes();
  auto isI32 = [](Type type) { return type.isInteger(32); };
  if (taken.size() != 5 || !llvm::all_of(taken, isI32))
    return op.emitOpError("expected 'key_range' to take (i32, i32, i32, i32, "
                          "i32), got (")
           << taken << ")";
  TypeRange yielded = yield.getOperandTypes();
  if ((yielded.size() != 2 && yielded.size() != 4) ||
      !llvm::all_of(yielded, isI32))
    return refuseYield(op, "key_range", yield, "two or four i32");
  return checkInlined(op, "key_range", region, /*mayFind=*/true);
}

/// Checks out_mod, which reads nothing that the op writes.
static LogicalResult checkOutMod(Operation *op, Region *region) {
  if (!region)
    return success();
  if (failed(checkModification(op, "out_mod", *region,
                               Float32Type::get(op->getContext()))) ||
      failed(checkInlined(op, "out_mod", *region, /*mayFind=*/false)))
    return failure();
  // Others may have written to it, or not.
  auto inits = cast<DestinationStyleOpInterface>(op).getDpsInits();
  WalkResult walk = region->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      if (!llvm::is_contained(inits, operand))
        continue;
      InFlightDiagnostic diag =
          op->emitOpError("expected 'out_mod' to read no output of the op, got "
                          "'")
          << nested->getName() << "' of one";
      diag.attachNote(nested->getLoc()) << "the operation is here";
      return WalkResult::interrupt();
    }
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

LogicalResult AttentionOp::verifyRegions() {
  // attention_c50
  if (getLateRegions().size() > std::size(kLateRegions))
    return emitOpError("expected at most one 'key_range' and one 'out_mod', "
                       "got ")
           << getLateRegions().size() << " regions";
  // attention_c52
  if (getOutMod() && getKvSplits())
    return emitOpError("expected no 'out_mod' with partial results, which "
                       "'attn.combine' takes in its place");
  // attention_c57
  if (getOutMod() && getRowState())
    return emitOpError("expected no 'row_state' beside 'out_mod'");
  // attention_c27, attention_c28, attention_c51
  return success(
      succeeded(checkModification(*this, "score_mod", getScoreMod(),
                                  Float32Type::get(getContext()))) &&
      succeeded(checkModification(*this, "mask_mod", getMaskMod(),
                                  IntegerType::get(getContext(), 1))) &&
      succeeded(checkKeyRange(*this)) &&
      succeeded(checkOutMod(*this, getOutMod())));
}

LogicalResult CombineOp::verifyRegions() {
  // combine_c13
  if (getOutMods().size() > 1)
    return emitOpError("expected at most one 'out_mod', got ")
           << getOutMods().size();
  // combine_c15
  if (getOutMod() && cast<ShapedType>(getPartialLse().getType()).getRank() == 5)
    return emitOpError("expected no 'out_mod' beside maxima and sums of rows");
  return checkOutMod(*this, getOutMod());
}
