//===- CGAAttr.cpp - Blocks of a value in a cluster -----------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/CGALayout.h"

using namespace mlir;
using namespace mlir::attn;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

static CGABases getBases(ArrayRef<DenseI64ArrayAttr> attrs) {
  CGABases bases;
  for (DenseI64ArrayAttr basis : attrs)
    bases.emplace_back(basis.asArrayRef());
  return bases;
}

LogicalResult CGAAttr::verify(EmitErrorFn emitError,
                              ArrayRef<DenseI64ArrayAttr> bases) {
  std::string fault = findFault(::getBases(bases));
  return fault.empty() ? success() : LogicalResult(emitError() << fault);
}

Attribute CGAAttr::parse(AsmParser &parser, Type) {
  SmallVector<DenseI64ArrayAttr> bases;
  SMLoc loc = parser.getCurrentLocation();
  auto parseBasis = [&]() -> ParseResult {
    SmallVector<int64_t> basis;
    auto parseStep = [&]() -> ParseResult {
      return parser.parseInteger(basis.emplace_back());
    };
    if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseStep))
      return failure();
    bases.push_back(DenseI64ArrayAttr::get(parser.getContext(), basis));
    return success();
  };
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseBasis) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<CGAAttr>(loc, parser.getContext(),
                                    ArrayRef<DenseI64ArrayAttr>(bases));
}

void CGAAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getBases(), printer, [&](DenseI64ArrayAttr basis) {
    printer << "[" << basis.asArrayRef() << "]";
  });
  printer << "]>";
}

int64_t CGAAttr::getBlock(uint32_t rank, unsigned dim) const {
  int64_t block = 0;
  for (unsigned bit = 0; bit < getBases().size(); ++bit)
    if (rank >> bit & 1)
      block += getBasis(bit)[dim];
  return block;
}

uint32_t CGAAttr::getCopiedBits() const {
  return attn::getCopiedBits(::getBases(getBases()));
}
