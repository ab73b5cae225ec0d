//===- AttnOps.cpp - Generated definitions of all ops ---------------------===//

#include "ProblemChecks.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"

using namespace mlir;
using namespace mlir::attn;

/// Reads the parts of a loop's order.
static ParseResult parseKVOrder(OpAsmParser &parser, KVOrderAttr &order) {
  return KVOrderAttr::parseParts(parser, order);
}

static void printKVOrder(OpAsmPrinter &printer, Operation *,
                         KVOrderAttr order) {
  if (!order)
    return;
  printer << ' ';
  order.printParts(printer.getStream());
}

/// Parses what hands tiles over in a loop: `counter %c channel %h ring %r`, of
/// which the counter may be missing, and their types; or nothing.
static ParseResult parseDealer(
    OpAsmParser &parser, std::optional<OpAsmParser::UnresolvedOperand> &counter,
    Type &counterType, std::optional<OpAsmParser::UnresolvedOperand> &channel,
    Type &channelType, std::optional<OpAsmParser::UnresolvedOperand> &ring,
    Type &ringType) {
  auto parseOne = [&](StringRef name, auto &operand) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(name)))
      return success();
    return parser.parseOperand(operand.emplace());
  };
  if (parseOne("counter", counter) || parseOne("channel", channel) ||
      parseOne("ring", ring))
    return failure();
  if (!counter && !channel && !ring)
    return success();
  bool isFirst = true;
  auto parseType = [&](bool isThere, Type &type) -> ParseResult {
    if (!isThere)
      return success();
    if (isFirst ? parser.parseColon() : parser.parseComma())
      return failure();
    isFirst = false;
    return parser.parseType(type);
  };
  return failure(parseType(counter.has_value(), counterType) ||
                 parseType(channel.has_value(), channelType) ||
                 parseType(ring.has_value(), ringType));
}

static void printDealer(OpAsmPrinter &printer, Operation *, Value counter, Type,
                        Value channel, Type, Value ring, Type) {
  SmallVector<Type> types;
  for (auto [name, value] : {std::pair<StringRef, Value>("counter", counter),
                             std::pair<StringRef, Value>("channel", channel),
                             std::pair<StringRef, Value>("ring", ring)}) {
    if (!value)
      continue;
    printer << ' ' << name << ' ' << value;
    types.push_back(value.getType());
  }
  if (!types.empty())
    printer << " : " << types;
}

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
