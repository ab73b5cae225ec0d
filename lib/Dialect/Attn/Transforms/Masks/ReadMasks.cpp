//===- ReadMasks.cpp - The pass attn-read-masks ---------------------------===//
//
// A mask_mod is a conjunction of conditions. Each is read as a formula; those
// that are bounds of the key less the query go to the attribute mask, the
// others are asked which keys they leave to a tile.
//
//===----------------------------------------------------------------------===//

#include "KeyRange.h"
#include "MaskReader.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNREADMASKSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::masks;

static constexpr llvm::StringLiteral kCategory = "attn.read-masks";

namespace {

/// One of the conditions of which a mask_mod is the conjunction.
struct Condition {
  Value value;
  Formula formula;
};

/// Bounds of the key less the query; none where there is no value.
struct Band {
  std::optional<int64_t> lower, upper;

  void addLower(int64_t bound) {
    lower = std::max(lower.value_or(bound), bound);
  }
  void addUpper(int64_t bound) {
    upper = std::min(upper.value_or(bound), bound);
  }
};

/// Works on one attention.
class Reading {
public:
  explicit Reading(AttentionOp op) : op(op), reader(op) {}

  /// Moves conditions to the attribute mask, and returns how many.
  unsigned moveBounds();
  /// Writes key_range if that says anything.
  bool writeRange();
  void collect();

private:
  /// Adds the bounds that a formula is a conjunction of; false if it is
  /// something else.
  bool addBounds(const Formula &formula, Band &band) const;
  /// The mask in force and a band; null if no attribute can say both.
  MaskAttr joinMask(const Band &band) const;
  MaskAttr makeMask(const Band &band, MaskAlign align, int64_t offset) const;
  /// Returns keys less queries, where they are constants.
  std::optional<int64_t> getOffset() const;
  /// True if no captured value stands anywhere below `value`.
  bool hasOwnValuesOnly(Value value) const;
  /// Makes mask_mod the conjunction of the conditions that are left.
  void rebuild();
  void reportRange(const Condition &condition, const KeyRange &range);
  /// Puts a region into the op, which is made anew.
  void addRegion(std::unique_ptr<Region> region);

  AttentionOp op;
  MaskReader reader;
  std::vector<Condition> conditions;
  /// Those that are bounds of the mask now.
  std::vector<Formula> moved;
};

} // namespace

//===----------------------------------------------------------------------===//
// Conditions
//===----------------------------------------------------------------------===//

void Reading::collect() {
  SmallVector<Value> open = {
      op.getMaskMod().front().getTerminator()->getOperand(0)};
  while (!open.empty()) {
    Value value = open.pop_back_val();
    auto both = value.getDefiningOp<arith::AndIOp>();
    if (both && op.getMaskMod().isAncestor(both->getParentRegion())) {
      open.push_back(both.getRhs());
      open.push_back(both.getLhs());
      continue;
    }
    bool isKnown = llvm::any_of(conditions, [&](const Condition &condition) {
      return condition.value == value;
    });
    if (!isKnown && !matchPattern(value, m_One()))
      conditions.push_back({value, reader.read(value)});
  }
}

bool Reading::hasOwnValuesOnly(Value value) const {
  Region &region = AttentionOp(op).getMaskMod();
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner()->getParent() == &region;
  Operation *def = value.getDefiningOp();
  if (def->hasTrait<OpTrait::ConstantLike>())
    return true;
  return region.isAncestor(def->getParentRegion()) && isPure(def) &&
         llvm::all_of(def->getOperands(),
                      [&](Value operand) { return hasOwnValuesOnly(operand); });
}

//===----------------------------------------------------------------------===//
// Bounds of the attribute
//===----------------------------------------------------------------------===//

bool Reading::addBounds(const Formula &formula, Band &band) const {
  if (formula.kind == Formula::Kind::True)
    return true;
  if (formula.kind == Formula::Kind::And)
    return llvm::all_of(formula.parts, [&](const Formula &part) {
      return addBounds(part, band);
    });
  const Linear &x = formula.linear;
  int64_t factor = x.getFactor(AtomTable::kKey);
  if (formula.kind != Formula::Kind::AtMostZero || x.terms.size() != 2 ||
      factor == 0 || x.getFactor(AtomTable::kQuery) != -factor)
    return false;
  // f (k - q) + c <= 0.
  if (factor > 0)
    band.addUpper(llvm::divideFloorSigned(-x.constant, factor));
  else
    band.addLower(llvm::divideCeilSigned(-x.constant, factor));
  return true;
}

std::optional<int64_t> Reading::getOffset() const {
  AttentionOp attention = op;
  if (attention.isVariableLength() || attention.getPageTable() ||
      attention.getKvLengths())
    return std::nullopt;
  int64_t queries = AttentionOp::getShape(attention.getQ())[2];
  int64_t keys = AttentionOp::getShape(attention.getK())[2];
  if (ShapedType::isDynamic(queries) || ShapedType::isDynamic(keys))
    return std::nullopt;
  return keys - queries;
}

MaskAttr Reading::makeMask(const Band &band, MaskAlign align,
                           int64_t offset) const {
  // A negative number stands for no bound.
  int64_t left = -1, right = -1;
  if (band.lower)
    left = offset - *band.lower;
  if (band.upper)
    right = *band.upper - offset;
  if ((band.lower && left < 0) || (band.upper && right < 0))
    return {};
  bool isCausal = !band.lower && band.upper && right == 0;
  return MaskAttr::get(AttentionOp(op).getContext(),
                       isCausal ? MaskKind::Causal : MaskKind::Window, align,
                       left, isCausal ? -1 : right);
}

MaskAttr Reading::joinMask(const Band &band) const {
  MaskAttr mask = AttentionOp(op).getEffectiveMask();
  std::optional<int64_t> offset = getOffset();
  bool isBottom = mask.getAlign() == MaskAlign::BottomRight;
  bool isBand = mask.hasLeft() || mask.hasRight();
  // Bounds of the attribute count from its diagonal.
  int64_t shift = isBand && isBottom ? offset.value_or(0) : 0;
  if (isBand && isBottom && !offset)
    return {};
  Band joined = band;
  if (mask.hasLeft())
    joined.addLower(mask.leftBound() + shift);
  if (mask.hasRight())
    joined.addUpper(mask.rightBound() + shift);
  MaskAlign first = isBand ? mask.getAlign() : MaskAlign::TopLeft;
  MaskAlign second =
      first == MaskAlign::TopLeft ? MaskAlign::BottomRight : MaskAlign::TopLeft;
  for (MaskAlign align : {first, second}) {
    if (align == MaskAlign::BottomRight && !offset)
      continue;
    if (MaskAttr made = makeMask(joined, align,
                                 align == MaskAlign::BottomRight ? *offset : 0))
      return made;
  }
  return {};
}

unsigned Reading::moveBounds() {
  // The table of pages says which keys there are.
  if (op.getSelected())
    return 0;
  if (conditions.empty()) {
    remark::passed(op.getMaskMod().getLoc(),
                   remark::RemarkOpts::name("mask").category(kCategory))
        << remark::add("true: left mask_mod");
    rebuild();
    return 1;
  }
  unsigned count = 0;
  llvm::erase_if(conditions, [&](const Condition &condition) {
    Band band;
    if (!addBounds(condition.formula, band) ||
        !hasOwnValuesOnly(condition.value))
      return false;
    // What holds everywhere bounds nothing.
    bool isBand = band.lower || band.upper;
    MaskAttr mask = isBand ? joinMask(band) : op.getEffectiveMask();
    if (!mask)
      return false;
    if (isBand)
      op.setMaskAttr(mask);
    std::string text;
    llvm::raw_string_ostream(text) << Attribute(mask);
    remark::passed(condition.value.getLoc(),
                   remark::RemarkOpts::name("mask").category(kCategory))
        << remark::add("{0}: left mask_mod, mask is now {1}",
                       print(reader.atoms, condition.formula), text);
    moved.push_back(condition.formula);
    ++count;
    return true;
  });
  if (count != 0)
    rebuild();
  return count;
}

void Reading::rebuild() {
  Region &region = op.getMaskMod();
  llvm::SetVector<Value> outside;
  getUsedValuesDefinedAbove(region, outside);
  bool isCaptured = llvm::any_of(
      outside, [](Value value) { return !matchPattern(value, m_Constant()); });
  // Values that the region captures are what a launch is given.
  if (conditions.empty() && !isCaptured) {
    region.dropAllReferences();
    region.getBlocks().clear();
    return;
  }
  Block &block = region.front();
  Operation *yield = block.getTerminator();
  OpBuilder builder(yield);
  Value all;
  for (const Condition &condition : conditions)
    all = all ? arith::AndIOp::create(builder, condition.value.getLoc(), all,
                                      condition.value)
                    .getResult()
              : condition.value;
  if (!all)
    all = arith::ConstantIntOp::create(builder, yield->getLoc(), 1, 1);
  yield->setOperand(0, all);
  for (Operation &each : llvm::make_early_inc_range(llvm::reverse(block)))
    if (!isa<memref::LoadOp>(each) && isOpTriviallyDead(&each))
      each.erase();
}

//===----------------------------------------------------------------------===//
// The keys of a tile
//===----------------------------------------------------------------------===//

void Reading::reportRange(const Condition &condition, const KeyRange &range) {
  Location loc = condition.value.getLoc();
  if (range.saysNothing()) {
    const Formula *unknown = condition.formula.findUnknown();
    std::string reason = unknown ? unknown->reason : "it bounds no key";
    remark::missed(unknown ? unknown->loc.value_or(loc) : loc,
                   remark::RemarkOpts::name("kept").category(kCategory))
        << remark::reason("a condition stays in mask_mod alone: {0}", reason);
    return;
  }
  SmallVector<StringRef> parts;
  if (range.begin)
    parts.push_back("begin");
  if (range.end)
    parts.push_back("end");
  if (range.hasFull)
    parts.push_back("blocks without a test");
  remark::passed(loc, remark::RemarkOpts::name("key-range").category(kCategory))
      << remark::add("{0}: gives key_range {1}",
                     print(reader.atoms, condition.formula),
                     llvm::join(parts, ", "));
}

void Reading::addRegion(std::unique_ptr<Region> region) {
  OpBuilder builder(op);
  OperationState state(op.getLoc(), op->getName(), op->getOperands(),
                       op->getResultTypes());
  state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
  state.propertiesAttr = op->getPropertiesAsAttribute();
  // key_range stands behind score_mod and mask_mod, in the place of an empty
  // one where out_mod follows.
  for (Region *old : {&op.getScoreMod(), &op.getMaskMod()})
    state.addRegion()->takeBody(*old);
  state.addRegion(std::move(region));
  if (Region *outMod = op.getOutMod())
    state.addRegion()->takeBody(*outMod);
  Operation *made = builder.create(state);
  op->replaceAllUsesWith(made->getResults());
  op->erase();
  op = cast<AttentionOp>(made);
}

bool Reading::writeRange() {
  if (conditions.empty())
    return false;
  auto region = std::make_unique<Region>();
  Block &block = region->emplaceBlock();
  ImplicitLocOpBuilder b(op.getMaskMod().getLoc(), op.getContext());
  b.setInsertionPointToStart(&block);
  for (int argument = 0; argument < 5; ++argument)
    block.addArgument(b.getI32Type(), b.getLoc());
  KeyRangeEmitter emitter(b, reader.atoms, block.getArguments());
  KeyRange all = emitter.emit(Formula::get(true));
  for (const Formula &formula : moved)
    emitter.narrow(emitter.emit(formula));
  // Keys are looked for among those that other conditions leave.
  for (bool searches : {false, true})
    for (const Condition &condition : conditions) {
      if (condition.formula.hasLabels() != searches)
        continue;
      b.setLoc(condition.value.getLoc());
      KeyRange range = emitter.emit(condition.formula);
      reportRange(condition, range);
      all = emitter.joinBoth(all, range);
      emitter.narrow(range);
    }
  if (all.saysNothing())
    return false;
  b.setLoc(op.getMaskMod().getLoc());
  YieldOp::create(b, emitter.finish(all));
  for (Operation &each : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&each))
      each.erase();
  addRegion(std::move(region));
  return true;
}

namespace {
struct AttnReadMasksPass
    : attn::impl::AttnReadMasksPassBase<AttnReadMasksPass> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<AttentionOp> attentions;
    getOperation().walk([&](AttentionOp op) {
      // Lists of blocks say which keys a tile has.
      if (!op.getMaskMod().empty() && !op.hasKeyRange() && !op.getBlockRows())
        attentions.push_back(op);
    });
    for (AttentionOp op : attentions) {
      Reading reading(op);
      reading.collect();
      if (bounds)
        numMoved += reading.moveBounds();
      if (range && reading.writeRange())
        ++numRanges;
    }
  }
};
} // namespace
