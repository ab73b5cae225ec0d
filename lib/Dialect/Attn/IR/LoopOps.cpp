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
        stages, inits, /*qk_ahead=*/false, /*pv_behind=*/false,
        /*rescore=*/false, /*turns=*/IntegerAttr(),
        /*first=*/DenseI64ArrayAttr(),
        /*second=*/KVPhaseAttr());
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
            std::pair(softmax.getO(), "o")})
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

LogicalResult KVLoopOp::verify() {
  if (failed(verifyBody(*this, getBody().front(), getInits().getTypes())))
    return failure();
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

LogicalResult TileLoopOp::canonicalize(TileLoopOp op,
                                       PatternRewriter &rewriter) {
  // Dynamic loops hand tiles to each other, and the counter back.
  APInt count;
  if (op.getScheduler() == TileScheduler::Dynamic ||
      !matchPattern(op.getCount(), m_ConstantInt(&count)) ||
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

//===----------------------------------------------------------------------===//
// Statements in an order
//===----------------------------------------------------------------------===//

/// `["v", "t" part "front"]`.
static ParseResult parseUses(OpAsmParser &parser, ArrayAttr &names,
                             ArrayAttr &parts) {
  Builder &builder = parser.getBuilder();
  SmallVector<Attribute> all, allParts;
  auto parseUse = [&]() -> ParseResult {
    StringAttr name, part = builder.getStringAttr("");
    if (parser.parseAttribute(name) ||
        (succeeded(parser.parseOptionalKeyword("part")) &&
         parser.parseAttribute(part)))
      return failure();
    all.push_back(name);
    allParts.push_back(part);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseUse))
    return failure();
  names = builder.getArrayAttr(all);
  parts = builder.getArrayAttr(allParts);
  return success();
}

/// True if some use is of a part of a slot.
static bool usesParts(ArrayRef<Attribute> parts) {
  return llvm::any_of(parts, [](Attribute statement) {
    return llvm::any_of(cast<ArrayAttr>(statement), [](Attribute part) {
      return !cast<StringAttr>(part).empty();
    });
  });
}

/// What stands in front of the statements.
static ParseResult parseHead(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OperationName op = result.name;
  StringAttr role;
  SmallVector<OpAsmParser::UnresolvedOperand> trips, channels, cursors;
  SmallVector<Attribute> slots;
  SmallVector<int64_t> slotChannels;
  SmallVector<Type> types;
  auto parseSlot = [&]() -> ParseResult {
    StringAttr name;
    int64_t channel = 0;
    if (parser.parseAttribute(name) || parser.parseEqual() ||
        parser.parseInteger(channel))
      return failure();
    slots.push_back(name);
    slotChannels.push_back(channel);
    return success();
  };
  if (parser.parseKeyword("as") || parser.parseAttribute(role) ||
      parser.parseKeyword("trips") ||
      parser.parseOperandList(trips, AsmParser::Delimiter::Paren))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("rising")))
    result.addAttribute(IssueLoopOp::getRisingAttrName(op),
                        builder.getUnitAttr());
  if (parser.parseKeyword("slots") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSlot) ||
      parser.parseKeyword("of") || parser.parseOperandList(channels) ||
      parser.parseKeyword("from") || parser.parseOperandList(cursors) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonTypeList(types))
    return failure();
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Type> cursorTypes(cursors.size(),
                                CursorType::get(builder.getContext()));
  if (parser.resolveOperands(trips, builder.getI32Type(), result.operands) ||
      parser.resolveOperands(channels, types, loc, result.operands) ||
      parser.resolveOperands(cursors, cursorTypes, loc, result.operands))
    return failure();
  result.addTypes(cursorTypes);
  result.addAttribute(IssueLoopOp::getRoleAttrName(op), role);
  result.addAttribute(IssueLoopOp::getSlotsAttrName(op),
                      builder.getArrayAttr(slots));
  result.addAttribute(IssueLoopOp::getSlotChannelsAttrName(op),
                      builder.getDenseI64ArrayAttr(slotChannels));
  std::array<int32_t, 3> segments = {static_cast<int32_t>(trips.size()),
                                     static_cast<int32_t>(channels.size()),
                                     static_cast<int32_t>(cursors.size())};
  llvm::copy(segments, result.getOrAddProperties<IssueLoopOp::Properties>()
                           .operandSegmentSizes.begin());
  return success();
}

ParseResult IssueLoopOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<Attribute> names, uses, parts;
  SmallVector<int64_t> counts, skews;
  if (parseHead(parser, result))
    return failure();
  while (succeeded(parser.parseOptionalKeyword("statement"))) {
    StringAttr name;
    ArrayAttr slots, slotParts;
    int64_t count = 0, skew = 0;
    Region *region = result.addRegion();
    if (parser.parseAttribute(name) || parser.parseKeyword("of") ||
        parser.parseInteger(count) || parser.parseKeyword("skew") ||
        parser.parseInteger(skew) || parser.parseKeyword("uses") ||
        parseUses(parser, slots, slotParts) || parser.parseRegion(*region))
      return failure();
    ensureTerminator(*region, parser.getBuilder(), result.location);
    names.push_back(name);
    counts.push_back(count);
    skews.push_back(skew);
    uses.push_back(slots);
    parts.push_back(slotParts);
  }
  Builder &builder = parser.getBuilder();
  result.addAttribute(getNamesAttrName(result.name),
                      builder.getArrayAttr(names));
  result.addAttribute(getCountsAttrName(result.name),
                      builder.getDenseI64ArrayAttr(counts));
  result.addAttribute(getSkewsAttrName(result.name),
                      builder.getDenseI64ArrayAttr(skews));
  result.addAttribute(getUsesAttrName(result.name), builder.getArrayAttr(uses));
  if (usesParts(parts))
    result.addAttribute(getPartsAttrName(result.name),
                        builder.getArrayAttr(parts));
  return success();
}

void IssueLoopOp::print(OpAsmPrinter &printer) {
  printer << " as " << getRoleAttr() << " trips(" << getTrips() << ')';
  if (getRising())
    printer << " rising";
  printer << " slots [";
  llvm::interleaveComma(
      llvm::zip(getSlots(), getSlotChannels()), printer, [&](auto slot) {
        printer << std::get<0>(slot) << " = " << std::get<1>(slot);
      });
  printer << "] of " << getChannels() << " from " << getCursors();
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getRoleAttrName(), getRisingAttrName(), getSlotsAttrName(),
       getSlotChannelsAttrName(), getNamesAttrName(), getCountsAttrName(),
       getSkewsAttrName(), getUsesAttrName(), getPartsAttrName(),
       getOperandSegmentSizesAttrName()});
  printer << " : " << getChannels().getTypes();
  for (auto [index, body] : llvm::enumerate(getBodies())) {
    printer.printNewline();
    printer << "statement " << getNames()[index] << " of " << getCounts()[index]
            << " skew " << getSkews()[index] << " uses [";
    llvm::interleaveComma(
        llvm::zip(cast<ArrayAttr>(getUses()[index]), getUsedParts(index)),
        printer, [&](auto use) {
          printer << std::get<0>(use);
          if (StringRef part = std::get<1>(use); !part.empty())
            printer << " part \"" << part << '"';
        });
    printer << "] ";
    printer.printRegion(body, /*printEntryBlockArgs=*/true,
                        /*printBlockTerminators=*/false);
  }
}

SmallVector<unsigned> IssueLoopOp::getUsedSlots(unsigned statement) {
  SmallVector<unsigned> used;
  for (Attribute name : cast<ArrayAttr>(getUses()[statement]))
    used.push_back(
        std::distance(getSlots().begin(), llvm::find(getSlots(), name)));
  return used;
}

SmallVector<StringRef> IssueLoopOp::getUsedParts(unsigned statement) {
  if (!getParts())
    return SmallVector<StringRef>(cast<ArrayAttr>(getUses()[statement]).size());
  return llvm::to_vector(
      cast<ArrayAttr>((*getParts())[statement]).getAsValueRange<StringAttr>());
}

void IssueLoopOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  Block &body = region.front();
  if (body.getNumArguments() == 0)
    return;
  setName(body.getArgument(0), "i");
  SmallVector<unsigned> used = getUsedSlots(region.getRegionNumber());
  if (body.getNumArguments() != 2 * used.size() + 1)
    return;
  for (auto [index, slot] : llvm::enumerate(used)) {
    if (slot >= getSlots().size())
      return;
    StringRef name = cast<StringAttr>(getSlots()[slot]).getValue();
    setName(body.getArgument(2 * index + 1), (name + "_index").str());
    setName(body.getArgument(2 * index + 2), (name + "_token").str());
  }
}

LogicalResult IssueLoopOp::verify() {
  size_t statements = getBodies().size();
  if (statements == 0)
    return emitOpError("expected at least one statement, got none");
  for (size_t size : {getNames().size(), getCounts().size(), getSkews().size(),
                      getUses().size()})
    if (size != statements)
      return emitOpError("expected names, counts, skews and uses of ")
             << statements << " statements, got " << size;
  if (getParts() && getParts()->size() != statements)
    return emitOpError("expected parts of ")
           << statements << " statements, got " << getParts()->size();
  if (getCursors().size() != getChannels().size() ||
      getResults().size() != getChannels().size())
    return emitOpError("expected a cursor and a result for each of ")
           << getChannels().size() << " channels, got " << getCursors().size()
           << " and " << getResults().size();
  if (getSlots().size() != getSlotChannels().size())
    return emitOpError("expected a channel for each of ")
           << getSlots().size() << " slots, got " << getSlotChannels().size();
  for (auto [name, channel] : llvm::zip(getSlots(), getSlotChannels()))
    if (channel < 0 || channel >= int64_t(getChannels().size()))
      return emitOpError("expected slot ")
             << name << " to be of one of " << getChannels().size()
             << " channels, got " << channel;
  for (size_t index = 0; index < statements; ++index) {
    Attribute name = getNames()[index];
    if (getCounts()[index] < 0 ||
        getCounts()[index] >= int64_t(getTrips().size()))
      return emitOpError("expected statement ")
             << name << " to be of one of " << getTrips().size()
             << " trips, got " << getCounts()[index];
    if (getSkews()[index] < 0)
      return emitOpError("expected a skew of statement ")
             << name << " of at least 0, got " << getSkews()[index];
    if (getUsedParts(index).size() != getUsedSlots(index).size())
      return emitOpError("expected statement ")
             << name << " to use parts of " << getUsedSlots(index).size()
             << " slots, got " << getUsedParts(index).size();
    for (unsigned slot : getUsedSlots(index))
      if (slot == getSlots().size())
        return emitOpError("expected statement ")
               << name << " to use slots of the loop, got " << getUses()[index];
  }
  return success();
}

LogicalResult IssueLoopOp::verifyRegions() {
  Builder builder(getContext());
  for (auto [index, region] : llvm::enumerate(getBodies())) {
    SmallVector<Type> expected = {builder.getI32Type()};
    for (size_t slot = 0; slot < getUsedSlots(index).size(); ++slot)
      expected.append({builder.getI32Type(), TokenType::get(getContext())});
    Block &body = region.front();
    if (body.getArgumentTypes() != ArrayRef<Type>(expected))
      return emitOpError("expected arguments (")
             << expected << ") of statement " << getNames()[index] << ", got ("
             << body.getArgumentTypes() << ")";
    if (body.getTerminator()->getNumOperands() != 0)
      return body.getTerminator()->emitOpError(
          "expected no values in a statement");
  }
  return success();
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
