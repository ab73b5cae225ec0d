//===- LoopOps.cpp - The loop over key blocks -----------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

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

static LogicalResult verifyBody(Operation *loop, Block &block,
                                TypeRange carried) {
  SmallVector<Type> expected = {IntegerType::get(loop->getContext(), 32)};
  llvm::append_range(expected, carried);
  if (block.getArgumentTypes() != ArrayRef<Type>(expected))
    return loop->emitOpError("expected region arguments (")
           << expected << "), got (" << block.getArgumentTypes() << ")";
  auto yield = cast<YieldOp>(block.getTerminator());
  if (yield.getOperandTypes() != carried)
    return yield.emitOpError("expected the carried types (")
           << carried << "), got (" << yield.getOperandTypes() << ")";
  return success();
}

void KVLoopOp::build(
    OpBuilder &builder, OperationState &state, Value begin, Value fullBegin,
    Value fullEnd, Value end, int64_t block, int64_t stages, ValueRange inits,
    function_ref<void(OpBuilder &, Location, Value, ValueRange)> bodyBuilder) {
  build(builder, state, inits.getTypes(), begin, fullBegin, fullEnd, end, block,
        stages, inits, /*qk_ahead=*/false, /*pv_behind=*/false,
        /*rescore=*/false, /*turns=*/IntegerAttr(),
        /*first=*/DenseI64ArrayAttr(),
        /*second=*/KVPhaseAttr());
  buildBody(builder, state, inits, bodyBuilder);
}

LogicalResult KVLoopOp::verify() {
  if (static_cast<int64_t>(getBlock()) < 1)
    return emitOpError("expected a positive block, got ")
           << static_cast<int64_t>(getBlock());
  if (static_cast<int64_t>(getStages()) < 1)
    return emitOpError("expected at least 1 stage, got ")
           << static_cast<int64_t>(getStages());
  if (getPvBehind() && !getQkAhead())
    return emitOpError("expected qk_ahead with pv_behind");
  if (getRescore() && (!getQkAhead() || getPvBehind()))
    return emitOpError("expected qk_ahead and no pv_behind with rescore");
  if (getTurns() && !getQkAhead())
    return emitOpError("expected qk_ahead with turns");
  if (getSecond() && !getFirst())
    return emitOpError("expected first with second");
  std::optional<ArrayRef<int64_t>> first = getFirst();
  if (!first)
    return success();
  if (!getQkAhead())
    return emitOpError("expected qk_ahead with first");
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

LogicalResult KVLoopOp::verifyRegions() {
  return verifyBody(*this, getBody().front(), getInits().getTypes());
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
  bool isDynamic = getScheduler() == TileScheduler::Dynamic;
  for (auto [name, value] :
       {std::pair<StringRef, Value>("counter", getCounter()),
        std::pair<StringRef, Value>("channel", getChannel()),
        std::pair<StringRef, Value>("ring", getRing())})
    if (static_cast<bool>(value) != isDynamic)
      return emitOpError("expected ")
             << (isDynamic ? "a " : "no ") << name << " with the scheduler '"
             << stringifyTileScheduler(getScheduler()) << "', got "
             << (value ? "one" : "none");
  if (!isDynamic)
    return success();
  int64_t depth = cast<ChannelType>(getChannel().getType()).getDepth();
  auto ring = cast<BufferType>(getRing().getType());
  if (ring.getShape() != ArrayRef<int64_t>(depth) ||
      !ring.getElementType().isInteger(32))
    return emitOpError("expected a ring of ")
           << depth << " i32, one for each slot of the channel, got " << ring;
  return success();
}

LogicalResult TileLoopOp::verifyRegions() {
  return verifyBody(*this, getBody().front(), getInits().getTypes());
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
