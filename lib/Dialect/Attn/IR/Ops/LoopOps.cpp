//===- LoopOps.cpp - The loop over key blocks -----------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attn;

using BodyBuilder =
    function_ref<void(OpBuilder &, Location, Value, ValueRange)>;

/// The body of a loop: an i32 and the carried values.
static void buildBody(OpBuilder &builder, OperationState &state,
                      ValueRange inits, BodyBuilder bodyBuilder) {
  Region *body = state.regions.front().get();
  SmallVector<Type> types = {builder.getI32Type()};
  llvm::append_range(types, inits.getTypes());
  SmallVector<Location> locations(types.size(), state.location);
  OpBuilder::InsertionGuard guard(builder);
  Block *entry = builder.createBlock(body, {}, types, locations);
  if (bodyBuilder)
    bodyBuilder(builder, state.location, entry->getArgument(0),
                entry->getArguments().drop_front());
}

/// Says what the interfaces of loops would say in other words. The body's ops
/// are not verified yet.
static LogicalResult verifyBody(Operation *loop, Block &block,
                                TypeRange carried) {
  SmallVector<Type> expected = {IntegerType::get(loop->getContext(), 32)};
  llvm::append_range(expected, carried);
  if (block.getArgumentTypes() != ArrayRef<Type>(expected))
    return loop->emitOpError("expected region arguments (")
           << expected << "), got (" << block.getArgumentTypes() << ")";
  auto yield = dyn_cast<YieldOp>(block.back());
  if (yield && yield.getOperandTypes() != carried)
    return yield.emitOpError("expected the carried types (")
           << carried << "), got (" << yield.getOperandTypes() << ")";
  return success();
}

void KVLoopOp::build(
    OpBuilder &builder, OperationState &state, Value begin, Value fullBegin,
    Value fullEnd, Value end, int64_t block, int64_t stages, ValueRange inits,
    function_ref<void(OpBuilder &, Location, Value, ValueRange)> bodyBuilder) {
  build(builder, state, inits.getTypes(), begin, fullBegin, fullEnd, end, block,
        stages, inits, /*order=*/KVOrderAttr());
  buildBody(builder, state, inits, bodyBuilder);
}

/// A loop's body or, as it may run no more, what is behind it.
template <typename LoopOp>
static void getLoopSuccessors(LoopOp loop,
                              SmallVectorImpl<RegionSuccessor> &successors) {
  successors.emplace_back(&loop.getBody(), loop.getIterArgs());
  successors.emplace_back(loop.getOperation(), loop->getResults());
}

template <typename LoopOp>
static std::optional<MutableArrayRef<OpOperand>> getYielded(LoopOp loop) {
  return cast<YieldOp>(loop.getBody().front().getTerminator())
      .getOperandsMutable();
}

/// What a carried value is for, from the users that say so; empty if none does.
static StringRef getCarriedName(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (auto acquire = dyn_cast<ChannelUserOpInterface>(user);
        acquire && acquire.getChannelUse() == ChannelUse::Acquire &&
        acquire.getUsedHandle() == &use)
      if (auto create =
              acquire.getUsedChannel().getDefiningOp<ChannelCreateOp>())
        return create.getName();
    if (auto softmax = dyn_cast<OnlineSoftmaxOp>(user))
      for (auto [operand, name] :
           {std::pair(softmax.getM(), "m"), std::pair(softmax.getL(), "l"),
            std::pair(softmax.getO(), "o"),
            std::pair(softmax.getLargest(), "largest")})
        if (operand == value)
          return name;
    // Loops hand their carried values on.
    if (auto loop = dyn_cast<LoopLikeOpInterface>(user))
      if (BlockArgument inner = loop.getTiedLoopRegionIterArg(&use))
        if (StringRef name = getCarriedName(inner); !name.empty())
          return name;
  }
  return "";
}

/// Names of a loop's arguments: the index and the carried values.
static void nameLoopArguments(Block &body, StringRef index,
                              OpAsmSetValueNameFn setName) {
  setName(body.getArgument(0), index);
  for (BlockArgument value : body.getArguments().drop_front()) {
    StringRef name = getCarriedName(value);
    if (isa<CursorType>(value.getType()))
      setName(value, name.empty() ? "cursor" : (name + "_cursor").str());
    else if (!name.empty())
      setName(value, name);
  }
}

std::optional<ArrayRef<int64_t>> KVLoopOp::getFirst() {
  KVOrderAttr order = getOrderAttr();
  if (!order || order.getFirst().empty())
    return std::nullopt;
  return order.getFirst();
}

/// Changes a part of a loop's order.
template <typename Value, typename NewValue>
static void setPart(KVLoopOp loop, Value KVOrderAttr::Parts::*part,
                    NewValue value) {
  KVOrderAttr::Parts parts = loop.getParts();
  parts.*part = value;
  loop.setParts(parts);
}

void KVLoopOp::setQkAhead(bool value) {
  setPart(*this, &KVOrderAttr::Parts::qkAhead, value);
}
void KVLoopOp::setPvBehind(bool value) {
  setPart(*this, &KVOrderAttr::Parts::pvBehind, value);
}
void KVLoopOp::setRescore(bool value) {
  setPart(*this, &KVOrderAttr::Parts::rescore, value);
}
void KVLoopOp::setAboveWait(bool value) {
  setPart(*this, &KVOrderAttr::Parts::aboveWait, value);
}
void KVLoopOp::setTurns(uint64_t barrier) {
  setPart(*this, &KVOrderAttr::Parts::turns, barrier);
}
void KVLoopOp::setFirst(ArrayRef<int64_t> keys) {
  setPart(*this, &KVOrderAttr::Parts::first, llvm::to_vector(keys));
}
void KVLoopOp::setSecond(KVPhase phase) {
  setPart(*this, &KVOrderAttr::Parts::second, phase);
}

LogicalResult KVLoopOp::verify() {
  if (failed(verifyBody(*this, getBody().front(), getInits().getTypes())))
    return failure();
  if (static_cast<int64_t>(getBlock()) < 1)
    return emitOpError("expected a positive block, got ")
           << static_cast<int64_t>(getBlock());
  if (static_cast<int64_t>(getStages()) < 1)
    return emitOpError("expected at least 1 stage, got ")
           << static_cast<int64_t>(getStages());
  // Whoever builds a loop sets its parts one after the other.
  KVOrderAttr::Parts parts = getParts();
  if (failed(KVOrderAttr::verify([&] { return emitOpError(); }, parts.qkAhead,
                                 parts.pvBehind, parts.rescore, parts.turns,
                                 parts.first, parts.second, parts.aboveWait)))
    return failure();
  std::optional<ArrayRef<int64_t>> first = getFirst();
  if (!first)
    return success();
  bool some = false;
  for (int64_t keys : *first) {
    some |= keys != 0;
    if (keys < 0 || keys > static_cast<int64_t>(getBlock()) || keys % 16 != 0)
      return emitOpError("expected multiples of 16 from 0 to the block's ")
             << getBlock() << " keys in first, got " << keys;
  }
  if (!some)
    return emitOpError("expected a warpgroup with keys in first, got none");
  return success();
}

LogicalResult KVLoopOp::canonicalize(KVLoopOp op, PatternRewriter &rewriter) {
  APInt begin, end;
  bool isEmpty =
      op.getBegin() == op.getEnd() ||
      (matchPattern(op.getBegin(), m_ConstantInt(&begin)) &&
       matchPattern(op.getEnd(), m_ConstantInt(&end)) && end.sle(begin));
  if (!isEmpty)
    return failure();
  rewriter.replaceOp(op, op.getInits());
  return success();
}

void KVLoopOp::getAsmBlockArgumentNames(Region &region,
                                        OpAsmSetValueNameFn setName) {
  nameLoopArguments(region.front(), "key", setName);
}

SmallVector<Region *> KVLoopOp::getLoopRegions() { return {&getBody()}; }

Block::BlockArgListType KVLoopOp::getRegionIterArgs() { return getIterArgs(); }

std::optional<MutableArrayRef<OpOperand>> KVLoopOp::getYieldedValuesMutable() {
  return getYielded(*this);
}

std::optional<ResultRange> KVLoopOp::getLoopResults() { return getResults(); }

// Blocks and tiles are counted, by 1.
using LoopBounds = std::optional<SmallVector<OpFoldResult>>;

static LoopBounds makeBound(MLIRContext *context, int64_t value) {
  return {{IntegerAttr::get(IntegerType::get(context, 32), value)}};
}

LoopBounds KVLoopOp::getLoopLowerBounds() { return {{getBegin()}}; }

LoopBounds KVLoopOp::getLoopUpperBounds() { return {{getEnd()}}; }

LoopBounds KVLoopOp::getLoopSteps() { return makeBound(getContext(), 1); }

OperandRange KVLoopOp::getEntrySuccessorOperands(RegionSuccessor) {
  return getInits();
}

void KVLoopOp::getSuccessorRegions(
    RegionBranchPoint, SmallVectorImpl<RegionSuccessor> &successors) {
  getLoopSuccessors(*this, successors);
}

void TileLoopOp::build(
    OpBuilder &builder, OperationState &state, Value count,
    TileScheduler scheduler, ValueRange inits,
    function_ref<void(OpBuilder &, Location, Value, ValueRange)> bodyBuilder) {
  build(builder, state, inits.getTypes(), count, scheduler,
        /*counter=*/Value(), /*channel=*/Value(), /*ring=*/Value(), inits);
  buildBody(builder, state, inits, bodyBuilder);
}

LogicalResult TileLoopOp::verify() {
  if (failed(verifyBody(*this, getBody().front(), getInits().getTypes())))
    return failure();
  bool isCounted = getScheduler() == TileScheduler::Dynamic;
  bool isRequested = getScheduler() == TileScheduler::Clc;
  bool isDealt = isCounted || isRequested;
  for (auto [name, value, isNeeded] :
       {std::tuple<StringRef, Value, bool>("counter", getCounter(), isCounted),
        {"channel", getChannel(), isDealt},
        {"ring", getRing(), isDealt}})
    if (static_cast<bool>(value) != isNeeded)
      return emitOpError("expected ")
             << (isNeeded ? "a " : "no ") << name << " with the scheduler '"
             << stringifyTileScheduler(getScheduler()) << "', got "
             << (value ? "one" : "none");
  if (!isDealt)
    return success();
  int64_t depth = cast<ChannelType>(getChannel().getType()).getDepth();
  auto ring = cast<BufferType>(getRing().getType());
  unsigned bits = isRequested ? 128 : 32;
  if (ring.getShape() != ArrayRef<int64_t>(depth) ||
      !ring.getElementType().isInteger(bits))
    return emitOpError("expected a ring of ")
           << depth << " i" << bits
           << ", one for each slot of the channel, got " << ring;
  return success();
}

LogicalResult TileLoopOp::canonicalize(TileLoopOp op,
                                       PatternRewriter &rewriter) {
  // Partitions hand tiles to each other, and the counter back.
  APInt count;
  if (op.getChannel() || !matchPattern(op.getCount(), m_ConstantInt(&count)) ||
      count.isStrictlyPositive())
    return failure();
  rewriter.replaceOp(op, op.getInits());
  return success();
}

void TileLoopOp::getAsmBlockArgumentNames(Region &region,
                                          OpAsmSetValueNameFn setName) {
  nameLoopArguments(region.front(), "tile", setName);
}

SmallVector<Region *> TileLoopOp::getLoopRegions() { return {&getBody()}; }

Block::BlockArgListType TileLoopOp::getRegionIterArgs() {
  return getIterArgs();
}

std::optional<MutableArrayRef<OpOperand>>
TileLoopOp::getYieldedValuesMutable() {
  return getYielded(*this);
}

std::optional<ResultRange> TileLoopOp::getLoopResults() { return getResults(); }

LoopBounds TileLoopOp::getLoopLowerBounds() {
  return makeBound(getContext(), 0);
}

LoopBounds TileLoopOp::getLoopUpperBounds() { return {{getCount()}}; }

LoopBounds TileLoopOp::getLoopSteps() { return makeBound(getContext(), 1); }

OperandRange TileLoopOp::getEntrySuccessorOperands(RegionSuccessor) {
  return getInits();
}

void TileLoopOp::getSuccessorRegions(
    RegionBranchPoint, SmallVectorImpl<RegionSuccessor> &successors) {
  getLoopSuccessors(*this, successors);
}

LogicalResult StageOp::verify() {
  BufferType ring = getRing().getType(), result = getType();
  auto loop = cast<KVLoopOp>((*this)->getParentOp());
  if (ring.getRank() != 3)
    return emitOpError("expected a ring (a buffer of rank 3), got ") << ring;
  if (ring.getNumSlots() != static_cast<int64_t>(loop.getStages())) {
    auto diag = emitOpError("expected a ring of ")
                << loop.getStages() << " slots, got " << ring.getNumSlots();
    diag.attachNote(loop.getLoc()) << "the number of stages is given here";
    return diag;
  }
  BufferType slot =
      BufferType::get(getContext(), ring.getSlotShape(), ring.getElementType(),
                      ring.getLayout(), ring.getSpace());
  if (result != slot)
    return emitOpError("expected the slot type ") << slot << ", got " << result;
  GlobalType source = getSource().getType();
  if (source.getElementType() != ring.getElementType())
    return emitOpError("expected the element type ")
           << source.getElementType() << " of the view, got "
           << ring.getElementType();
  if (source.getRank() != 2 || source.getColumns() > ring.getShape()[2])
    return emitOpError("expected at least ")
           << source.getColumns() << " columns, got " << ring.getShape()[2];
  return success();
}
