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

#define GET_OP_CLASSES
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
