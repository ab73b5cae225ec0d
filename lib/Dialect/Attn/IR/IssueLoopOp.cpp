//===- IssueLoopOp.cpp - Statements in an order ---------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

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
  SmallVector<OpAsmParser::UnresolvedOperand> trips, channels, cursors, held;
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
      parser.parseKeyword("from") || parser.parseOperandList(cursors))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("holding"))) {
    StringAttr slot, behind;
    if (parser.parseAttribute(slot) || parser.parseKeyword("behind") ||
        parser.parseAttribute(behind) || parser.parseEqual() ||
        parser.parseOperand(held.emplace_back()))
      return failure();
    result.addAttribute(IssueLoopOp::getHoldingAttrName(op), slot);
    result.addAttribute(IssueLoopOp::getBehindAttrName(op), behind);
  }
  if (parser.parseOptionalAttrDict(result.attributes) ||
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
  SmallVector<Type> heldTypes(held.size(),
                              TokenType::get(builder.getContext()));
  if (parser.resolveOperands(held, heldTypes, loc, result.operands))
    return failure();
  result.addTypes(heldTypes);
  result.addAttribute(IssueLoopOp::getRoleAttrName(op), role);
  result.addAttribute(IssueLoopOp::getSlotsAttrName(op),
                      builder.getArrayAttr(slots));
  result.addAttribute(IssueLoopOp::getSlotChannelsAttrName(op),
                      builder.getDenseI64ArrayAttr(slotChannels));
  std::array<int32_t, 4> segments = {
      static_cast<int32_t>(trips.size()), static_cast<int32_t>(channels.size()),
      static_cast<int32_t>(cursors.size()), static_cast<int32_t>(held.size())};
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
  if (getHeld())
    printer << " holding " << getHoldingAttr() << " behind " << getBehindAttr()
            << " = " << getHeld();
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getRoleAttrName(), getRisingAttrName(), getSlotsAttrName(),
       getSlotChannelsAttrName(), getNamesAttrName(), getCountsAttrName(),
       getSkewsAttrName(), getUsesAttrName(), getPartsAttrName(),
       getHoldingAttrName(), getBehindAttrName(),
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

/// Where a name stands; none if it does not.
static std::optional<unsigned> findName(ArrayAttr names,
                                        std::optional<StringRef> name) {
  for (auto [index, each] :
       llvm::enumerate(names.getAsValueRange<StringAttr>()))
    if (name && each == *name)
      return index;
  return std::nullopt;
}

std::optional<unsigned> IssueLoopOp::getHeldSlot() {
  return findName(getSlots(), getHolding());
}

std::optional<unsigned> IssueLoopOp::getReleasingStatement() {
  return findName(getNames(), getBehind());
}

/// Checks that each step acquires the slot that a loop holds, behind the
/// release of the one before.
static LogicalResult verifyHeld(IssueLoopOp loop) {
  if (!loop.getHeld() && !loop.getHolding() && !loop.getBehind())
    return success();
  std::optional<unsigned> slot = loop.getHeldSlot(),
                          behind = loop.getReleasingStatement();
  if (!loop.getHeld() || !slot || !behind)
    return loop.emitOpError("expected a token, a slot and a statement of the "
                            "loop for what is held");
  for (unsigned index = 0; index < loop.getBodies().size(); ++index)
    if (loop.getSkews()[index] != loop.getSkews().front() ||
        loop.getCounts()[index] != loop.getCounts().front())
      return loop.emitOpError(
                 "expected all statements to run in the same steps "
                 "where a slot is held, got other steps of ")
             << loop.getNames()[index];
  bool isUsed = false;
  for (unsigned index = 0; index < loop.getBodies().size(); ++index) {
    bool uses = llvm::is_contained(loop.getUsedSlots(index), *slot);
    isUsed |= uses;
    if (uses && index <= *behind)
      return loop.emitOpError("expected statement ")
             << loop.getNames()[index] << ", which uses the slot that is held, "
             << "to stand behind " << loop.getBehindAttr();
  }
  if (!isUsed)
    return loop.emitOpError("expected a statement to use the slot ")
           << loop.getHoldingAttr() << " that is held";
  return success();
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
  size_t held = getHeld() ? 1 : 0;
  if (getCursors().size() != getChannels().size() ||
      getResults().size() != getChannels().size() + held)
    return emitOpError("expected a cursor and a result for each of ")
           << getChannels().size() << " channels, got " << getCursors().size()
           << " and " << getResults().size();
  for (auto [index, result] : llvm::enumerate(getResults()))
    if (isa<TokenType>(result.getType()) != (index == getChannels().size()))
      return emitOpError("expected cursors and behind them the token of what "
                         "is held, got result ")
             << index << " of type " << result.getType();
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
  return verifyHeld(*this);
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
