//===- IssueLoopOp.cpp - Statements in an order ---------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

/// A name behind which types may stand.
static ParseResult parseName(OpAsmParser &parser, StringAttr &name) {
  std::string text;
  if (parser.parseString(&text))
    return failure();
  name = parser.getBuilder().getStringAttr(text);
  return success();
}

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

namespace {

/// The operands of a loop as they are written.
struct IssueOperands {
  using List = SmallVector<OpAsmParser::UnresolvedOperand>;
  List trips, leftTrips, values, leftValues, channels, cursors, held;
  SmallVector<Type> valueTypes, channelTypes;
};

} // namespace

/// `trips(%n) left(%m) values(%x) left(%y) : i32`.
static ParseResult parseTrips(OpAsmParser &parser, IssueOperands &operands) {
  auto parseLeft = [&](IssueOperands::List &left) {
    return parser.parseOperandList(left, AsmParser::Delimiter::Paren);
  };
  if (parser.parseKeyword("trips") || parseLeft(operands.trips))
    return failure();
  if (failed(parser.parseOptionalKeyword("left")))
    return success();
  if (parseLeft(operands.leftTrips))
    return failure();
  if (failed(parser.parseOptionalKeyword("values")))
    return success();
  return failure(parseLeft(operands.values) || parser.parseKeyword("left") ||
                 parseLeft(operands.leftValues) ||
                 parser.parseColonTypeList(operands.valueTypes));
}

/// `holding "k" behind "pv" = %held`, without the token where last iterations
/// are left, and `spanning "q" from "qk" to "qk"`.
static ParseResult parseReleases(OpAsmParser &parser, OperationState &result,
                                 IssueOperands &operands) {
  OperationName op = result.name;
  if (succeeded(parser.parseOptionalKeyword("holding"))) {
    StringAttr slot, behind;
    if (parser.parseAttribute(slot) || parser.parseKeyword("behind") ||
        parseName(parser, behind) ||
        (succeeded(parser.parseOptionalEqual()) &&
         parser.parseOperand(operands.held.emplace_back())))
      return failure();
    result.addAttribute(IssueLoopOp::getHoldingAttrName(op), slot);
    result.addAttribute(IssueLoopOp::getBehindAttrName(op), behind);
  }
  if (failed(parser.parseOptionalKeyword("spanning")))
    return success();
  SmallVector<Attribute> spanning, opening, closing;
  auto parseSpan = [&]() -> ParseResult {
    StringAttr slot, first, last;
    if (parser.parseAttribute(slot) || parser.parseKeyword("from") ||
        parser.parseAttribute(first) || parser.parseKeyword("to") ||
        parseName(parser, last))
      return failure();
    spanning.push_back(slot);
    opening.push_back(first);
    closing.push_back(last);
    return success();
  };
  if (parser.parseCommaSeparatedList(parseSpan))
    return failure();
  Builder &builder = parser.getBuilder();
  result.addAttribute(IssueLoopOp::getSpanningAttrName(op),
                      builder.getArrayAttr(spanning));
  result.addAttribute(IssueLoopOp::getOpeningAttrName(op),
                      builder.getArrayAttr(opening));
  result.addAttribute(IssueLoopOp::getClosingAttrName(op),
                      builder.getArrayAttr(closing));
  return success();
}

/// Resolves the operands and says how many there are of each kind.
static ParseResult resolveOperands(OpAsmParser &parser, OperationState &result,
                                   const IssueOperands &operands) {
  Builder &builder = parser.getBuilder();
  SMLoc loc = parser.getCurrentLocation();
  Type i32 = builder.getI32Type();
  Type token = TokenType::get(builder.getContext());
  Type cursor = CursorType::get(builder.getContext());
  SmallVector<int32_t> segments;
  auto resolve = [&](const IssueOperands::List &list, auto &&type) {
    segments.push_back(list.size());
    return parser.resolveOperands(list, type, loc, result.operands);
  };
  auto repeat = [](const IssueOperands::List &list, Type type) {
    return SmallVector<Type>(list.size(), type);
  };
  if (resolve(operands.trips, repeat(operands.trips, i32)) ||
      resolve(operands.leftTrips, repeat(operands.leftTrips, i32)) ||
      resolve(operands.values, operands.valueTypes) ||
      resolve(operands.leftValues, operands.valueTypes) ||
      resolve(operands.channels, operands.channelTypes) ||
      resolve(operands.cursors, repeat(operands.cursors, cursor)) ||
      resolve(operands.held, repeat(operands.held, token)))
    return failure();
  result.addTypes(repeat(operands.cursors, cursor));
  result.addTypes(repeat(operands.held, token));
  llvm::copy(segments, result.getOrAddProperties<IssueLoopOp::Properties>()
                           .operandSegmentSizes.begin());
  return success();
}

/// What stands in front of the statements.
static ParseResult parseHead(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  OperationName op = result.name;
  StringAttr role;
  IssueOperands operands;
  SmallVector<Attribute> slots;
  SmallVector<int64_t> slotChannels;
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
      parseTrips(parser, operands))
    return failure();
  if (succeeded(parser.parseOptionalKeyword("rising")))
    result.addAttribute(IssueLoopOp::getRisingAttrName(op),
                        builder.getUnitAttr());
  if (parser.parseKeyword("slots") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseSlot) ||
      parser.parseKeyword("of") || parser.parseOperandList(operands.channels) ||
      parser.parseKeyword("from") ||
      parser.parseOperandList(operands.cursors) ||
      parseReleases(parser, result, operands) ||
      parser.parseOptionalAttrDict(result.attributes) ||
      parser.parseColonTypeList(operands.channelTypes) ||
      resolveOperands(parser, result, operands))
    return failure();
  result.addAttribute(IssueLoopOp::getRoleAttrName(op), role);
  result.addAttribute(IssueLoopOp::getSlotsAttrName(op),
                      builder.getArrayAttr(slots));
  result.addAttribute(IssueLoopOp::getSlotChannelsAttrName(op),
                      builder.getDenseI64ArrayAttr(slotChannels));
  return success();
}

ParseResult IssueLoopOp::parse(OpAsmParser &parser, OperationState &result) {
  SmallVector<Attribute> names, uses, parts, ends;
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
        parseUses(parser, slots, slotParts))
      return failure();
    ArrayAttr ended = parser.getBuilder().getArrayAttr({});
    if ((succeeded(parser.parseOptionalKeyword("ends")) &&
         parser.parseAttribute(ended)) ||
        parser.parseRegion(*region))
      return failure();
    ensureTerminator(*region, parser.getBuilder(), result.location);
    names.push_back(name);
    counts.push_back(count);
    skews.push_back(skew);
    uses.push_back(slots);
    parts.push_back(slotParts);
    ends.push_back(ended);
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
  if (llvm::any_of(ends, [](Attribute statement) {
        return !cast<ArrayAttr>(statement).empty();
      }))
    result.addAttribute(getEndsAttrName(result.name),
                        builder.getArrayAttr(ends));
  return success();
}

void IssueLoopOp::print(OpAsmPrinter &printer) {
  printer << " as " << getRoleAttr() << " trips(" << getTrips() << ')';
  if (leavesLast())
    printer << " left(" << getLeftTrips() << ')';
  if (!getValues().empty())
    printer << " values(" << getValues() << ") left(" << getLeftValues()
            << ") : " << getValues().getTypes();
  if (getRising())
    printer << " rising";
  printer << " slots [";
  llvm::interleaveComma(
      llvm::zip(getSlots(), getSlotChannels()), printer, [&](auto slot) {
        printer << std::get<0>(slot) << " = " << std::get<1>(slot);
      });
  printer << "] of " << getChannels() << " from " << getCursors();
  if (getHolding())
    printer << " holding " << getHoldingAttr() << " behind " << getBehindAttr();
  if (getHeld())
    printer << " = " << getHeld();
  if (getSpanning()) {
    printer << " spanning ";
    llvm::interleaveComma(
        llvm::zip(getSpanningAttr(), getOpeningAttr(), getClosingAttr()),
        printer, [&](auto span) {
          printer << std::get<0>(span) << " from " << std::get<1>(span)
                  << " to " << std::get<2>(span);
        });
  }
  printer.printOptionalAttrDict(
      (*this)->getAttrs(),
      {getRoleAttrName(), getRisingAttrName(), getSlotsAttrName(),
       getSlotChannelsAttrName(), getNamesAttrName(), getCountsAttrName(),
       getSkewsAttrName(), getUsesAttrName(), getPartsAttrName(),
       getHoldingAttrName(), getBehindAttrName(), getEndsAttrName(),
       getSpanningAttrName(), getOpeningAttrName(), getClosingAttrName(),
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
    if (!getEndedSlots(index).empty())
      printer << "ends " << (*getEnds())[index] << ' ';
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

SmallVector<unsigned> IssueLoopOp::getEndedSlots(unsigned statement) {
  SmallVector<unsigned> ended;
  if (getEnds())
    for (Attribute name : cast<ArrayAttr>((*getEnds())[statement]))
      ended.push_back(
          std::distance(getSlots().begin(), llvm::find(getSlots(), name)));
  return ended;
}

SmallVector<IssueLoopOp::Span> IssueLoopOp::getSpans() {
  SmallVector<Span> spans;
  if (!getSpanning())
    return spans;
  auto find = [](ArrayAttr names, Attribute name) -> unsigned {
    return std::distance(names.begin(), llvm::find(names, name));
  };
  for (auto [slot, opening, closing] :
       llvm::zip(getSpanningAttr(), getOpeningAttr(), getClosingAttr()))
    spans.push_back({find(getSlots(), slot), find(getNames(), opening),
                     find(getNames(), closing)});
  return spans;
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
  if (bool(loop.getHeld()) == loop.leavesLast() || !slot || !behind)
    return loop.emitOpError("expected ")
           << (loop.leavesLast() ? "no token, " : "a token, ")
           << "a slot and a statement of the loop for what is held";
  for (unsigned index = 0; index < loop.getBodies().size(); ++index)
    if ((loop.getSkews()[index] != loop.getSkews().front() &&
         !loop.leavesLast()) ||
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
    if (uses && loop.leavesLast() && loop.getSkews()[index] != 0)
      return loop.emitOpError("expected statement ")
             << loop.getNames()[index] << ", which uses the slot that is held, "
             << "to run in each step that begins an iteration";
  }
  if (!isUsed)
    return loop.emitOpError("expected a statement to use the slot ")
           << loop.getHoldingAttr() << " that is held";
  return success();
}

/// True if a statement uses a slot, in all iterations or in the last one.
static bool isUsed(IssueLoopOp loop, unsigned slot) {
  for (unsigned index = 0; index < loop.getBodies().size(); ++index)
    if (llvm::is_contained(loop.getUsedSlots(index), slot) ||
        llvm::is_contained(loop.getEndedSlots(index), slot))
      return true;
  return false;
}

/// Checks what is acquired once for all iterations.
static LogicalResult verifySpans(IssueLoopOp loop) {
  if (!loop.getSpanning() && !loop.getOpening() && !loop.getClosing())
    return success();
  size_t count = loop.getSpanning() ? loop.getSpanning()->size() : 0;
  if (!loop.getOpening() || !loop.getClosing() ||
      loop.getOpening()->size() != count || loop.getClosing()->size() != count)
    return loop.emitOpError("expected two statements for each of ")
           << count << " slots that span iterations";
  if (!loop.leavesLast() || loop.getTrips().size() != 1)
    return loop.emitOpError("expected one number of trips and that of the loop "
                            "before where slots span iterations");
  auto hasSkew0 = [&](unsigned statement) {
    return statement < loop.getBodies().size() &&
           loop.getSkews()[statement] == 0;
  };
  for (auto [index, span] : llvm::enumerate(loop.getSpans()))
    if (span.slot == loop.getSlots().size() || isUsed(loop, span.slot) ||
        !hasSkew0(span.opening) || !hasSkew0(span.closing) ||
        span.opening > span.closing)
      return loop.emitOpError("expected a slot that no statement uses, from "
                              "one statement of skew 0 to the same or a later "
                              "one, got ")
             << (*loop.getSpanning())[index] << " from "
             << (*loop.getOpening())[index] << " to "
             << (*loop.getClosing())[index];
  return success();
}

/// Checks what is left of the loop before, and to the next one.
static LogicalResult verifyLeft(IssueLoopOp loop) {
  if (loop.getValues().getTypes() != loop.getLeftValues().getTypes())
    return loop.emitOpError("expected values of the same types of this loop "
                            "and of the one before");
  if (loop.getEnds() && loop.getEnds()->size() != loop.getBodies().size())
    return loop.emitOpError("expected slots that end for ")
           << loop.getBodies().size() << " statements, got "
           << loop.getEnds()->size();
  if (!loop.leavesLast()) {
    if (loop.getEnds() || !loop.getValues().empty())
      return loop.emitOpError("expected trips of the loop before where "
                              "statements have values or end slots");
    return success();
  }
  if (loop.getLeftTrips().size() != loop.getTrips().size() || loop.getRising())
    return loop.emitOpError("expected trips of the loop before for each of ")
           << loop.getTrips().size() << ", and none that rise, got "
           << loop.getLeftTrips().size();
  for (unsigned index = 0; index < loop.getBodies().size(); ++index) {
    Attribute name = loop.getNames()[index];
    if (loop.getSkews()[index] > 1)
      return loop.emitOpError("expected a skew of statement ")
             << name << " of at most 1 where the last iteration is left, got "
             << loop.getSkews()[index];
    for (unsigned slot : loop.getEndedSlots(index)) {
      bool isKnown = slot != loop.getSlots().size();
      for (unsigned other = 0; other < loop.getBodies().size(); ++other)
        isKnown &= !llvm::is_contained(loop.getUsedSlots(other), slot);
      if (!isKnown || loop.getSkews()[index] != 1)
        return loop.emitOpError("expected statement ")
               << name << " to have skew 1 and to end slots of the loop that "
               << "none uses, got " << (*loop.getEnds())[index];
    }
  }
  return success();
}

void IssueLoopOp::getAsmBlockArgumentNames(Region &region,
                                           OpAsmSetValueNameFn setName) {
  Block &body = region.front();
  if (body.getNumArguments() == 0)
    return;
  setName(body.getArgument(0), "i");
  SmallVector<unsigned> used = getUsedSlots(region.getRegionNumber());
  if (body.getNumArguments() < 2 * used.size() + 1)
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
  return failure(failed(verifyLeft(*this)) || failed(verifyHeld(*this)) ||
                 failed(verifySpans(*this)));
}

LogicalResult IssueLoopOp::verifyRegions() {
  Builder builder(getContext());
  for (auto [index, region] : llvm::enumerate(getBodies())) {
    SmallVector<Type> expected = {builder.getI32Type()};
    for (size_t slot = 0; slot < getUsedSlots(index).size(); ++slot)
      expected.append({builder.getI32Type(), TokenType::get(getContext())});
    llvm::append_range(expected, getValues().getTypes());
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
