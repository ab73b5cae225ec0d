//===- LoopAttrs.cpp - How the loop over keys and its softmax run ---------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace mlir::attn;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

//===----------------------------------------------------------------------===//
// SoftmaxAttr
//===----------------------------------------------------------------------===//

static constexpr float kDefaultOffset = 0, kDefaultGrowth = 8,
                       kDefaultLimit = 16, kDefaultSlack = 0;

SoftmaxAttr SoftmaxAttr::get(MLIRContext *context, SoftmaxPolicy policy) {
  return get(context, policy, APFloat(kDefaultOffset), APFloat(kDefaultGrowth),
             APFloat(kDefaultLimit), /*polynomial=*/0, /*whole=*/false,
             APFloat(kDefaultSlack));
}

/// Reads 7, 7.5 or 7.5e0 as f32.
static ParseResult parseNumber(AsmParser &parser, APFloat &value) {
  int64_t integer = 0;
  double number = 0;
  OptionalParseResult parsed = parser.parseOptionalInteger(integer);
  if (parsed.has_value()) {
    if (failed(*parsed))
      return failure();
    number = integer;
  } else if (failed(parser.parseFloat(number))) {
    return failure();
  }
  value = APFloat(static_cast<float>(number));
  return success();
}

Attribute SoftmaxAttr::parse(AsmParser &parser, Type) {
  MLIRContext *context = parser.getContext();
  SMLoc place = parser.getCurrentLocation();
  FailureOr<SoftmaxPolicy> policy = failure();
  if (parser.parseLess() ||
      failed(policy = FieldParser<SoftmaxPolicy>::parse(parser)))
    return {};
  SoftmaxAttr defaults = get(context, *policy);
  APFloat offset = defaults.getOffset(), growth = defaults.getGrowth(),
          limit = defaults.getLimit(), slack = defaults.getSlack();
  int64_t polynomial = defaults.getPolynomial();
  bool whole = defaults.getWhole();
  llvm::StringSet<> seen;
  while (succeeded(parser.parseOptionalComma())) {
    StringRef name;
    SMLoc at = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return {};
    if (!seen.insert(name).second)
      return parser.emitError(at, "expected each parameter once, got '")
                 << name << "' twice",
             Attribute();
    if (name == "whole") {
      whole = true;
      continue;
    }
    APFloat *number = llvm::StringSwitch<APFloat *>(name)
                          .Case("offset", &offset)
                          .Case("growth", &growth)
                          .Case("limit", &limit)
                          .Case("slack", &slack)
                          .Default(nullptr);
    if (!number && name != "polynomial")
      return parser.emitError(at, "expected offset, growth, limit, slack, "
                                  "polynomial or whole, got '")
                 << name << "'",
             Attribute();
    if (parser.parseEqual() || (number ? parseNumber(parser, *number)
                                       : parser.parseInteger(polynomial)))
      return {};
  }
  if (parser.parseGreater())
    return {};
  return getChecked([&] { return parser.emitError(place); }, context, *policy,
                    offset, growth, limit, polynomial, whole, slack);
}

void SoftmaxAttr::print(AsmPrinter &printer) const {
  auto &os = printer.getStream();
  os << '<' << stringifySoftmaxPolicy(getPolicy());
  for (auto [name, value, standard] :
       {std::tuple("offset", getOffset(), kDefaultOffset),
        std::tuple("growth", getGrowth(), kDefaultGrowth),
        std::tuple("limit", getLimit(), kDefaultLimit),
        std::tuple("slack", getSlack(), kDefaultSlack)}) {
    float number = value.convertToFloat();
    if (number == standard)
      continue;
    os << ", " << name << " = ";
    // Digits without a point where that is all of the number.
    if (number == std::trunc(number) && std::abs(number) < 0x1p24f)
      os << static_cast<int64_t>(number);
    else
      printer.printFloat(value);
  }
  if (getPolynomial() != 0)
    os << ", polynomial = " << getPolynomial();
  if (getWhole())
    os << ", whole";
  os << '>';
}

LogicalResult SoftmaxAttr::verify(EmitErrorFn emitError, SoftmaxPolicy,
                                  APFloat offset, APFloat growth, APFloat limit,
                                  int64_t polynomial, bool, APFloat slack) {
  for (auto [name, value] :
       {std::pair("offset", &offset), std::pair("growth", &growth),
        std::pair("limit", &limit), std::pair("slack", &slack)}) {
    if (!value->isFinite() || value->isNegative())
      return emitError() << "expected a finite '" << name
                         << "' of at least 0, got " << value->convertToFloat();
  }
  if (polynomial < 0 || polynomial > 16)
    return emitError() << "expected 0 to 16 polynomial elements of 16, got "
                       << polynomial;
  return success();
}

//===----------------------------------------------------------------------===//
// KVOrderAttr
//===----------------------------------------------------------------------===//

KVOrderAttr::Parts KVOrderAttr::getParts(KVOrderAttr order) {
  Parts parts;
  if (!order)
    return parts;
  parts.qkAhead = order.getQkAhead();
  parts.pvBehind = order.getPvBehind();
  parts.rescore = order.getRescore();
  parts.turns = order.getTurns();
  parts.first = llvm::to_vector(order.getFirst());
  parts.second = order.getSecond();
  parts.aboveWait = order.getAboveWait();
  return parts;
}

KVOrderAttr KVOrderAttr::get(MLIRContext *context, const Parts &parts) {
  if (!parts.qkAhead && !parts.pvBehind && !parts.rescore && !parts.turns &&
      parts.first.empty() && !parts.second && !parts.aboveWait)
    return {};
  return get(context, parts.qkAhead, parts.pvBehind, parts.rescore, parts.turns,
             parts.first, parts.second, parts.aboveWait);
}

ParseResult KVOrderAttr::parseParts(AsmParser &parser, KVOrderAttr &order) {
  SMLoc place = parser.getCurrentLocation();
  auto has = [&](StringRef name) {
    return succeeded(parser.parseOptionalKeyword(name));
  };
  Parts parts;
  parts.qkAhead = has("qk_ahead");
  parts.pvBehind = has("pv_behind");
  parts.rescore = has("rescore");
  if (has("turns") && parser.parseInteger(parts.turns.emplace()))
    return failure();
  if (has("first") &&
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseInteger(parts.first.emplace_back());
      }))
    return failure();
  if (has("second")) {
    FailureOr<KVPhase> phase = FieldParser<KVPhase>::parse(parser);
    if (failed(phase))
      return failure();
    parts.second = *phase;
  }
  parts.aboveWait = has("above_wait");
  auto fail = [&] { return parser.emitError(place); };
  if (failed(verify(fail, parts.qkAhead, parts.pvBehind, parts.rescore,
                    parts.turns, parts.first, parts.second, parts.aboveWait)))
    return failure();
  order = get(parser.getContext(), parts);
  return success();
}

void KVOrderAttr::printParts(llvm::raw_ostream &os) const {
  SmallVector<std::string> parts;
  if (getQkAhead())
    parts.push_back("qk_ahead");
  if (getPvBehind())
    parts.push_back("pv_behind");
  if (getRescore())
    parts.push_back("rescore");
  if (getTurns())
    parts.push_back("turns " + std::to_string(*getTurns()));
  if (!getFirst().empty())
    parts.push_back("first [" +
                    llvm::join(llvm::map_range(getFirst(),
                                               [](int64_t keys) {
                                                 return std::to_string(keys);
                                               }),
                               ", ") +
                    "]");
  if (getSecond())
    parts.push_back(("second " + stringifyKVPhase(*getSecond())).str());
  if (getAboveWait())
    parts.push_back("above_wait");
  os << llvm::join(parts, " ");
}

Attribute KVOrderAttr::parse(AsmParser &parser, Type) {
  KVOrderAttr order;
  SMLoc place = parser.getCurrentLocation();
  if (parser.parseLess() || parseParts(parser, order) || parser.parseGreater())
    return {};
  if (!order)
    parser.emitError(place, "expected a part of an order, got none");
  return order;
}

void KVOrderAttr::print(AsmPrinter &printer) const {
  printer.getStream() << '<';
  printParts(printer.getStream());
  printer.getStream() << '>';
}

LogicalResult KVOrderAttr::verify(EmitErrorFn emitError, bool qkAhead,
                                  bool pvBehind, bool rescore,
                                  std::optional<uint64_t> turns,
                                  ArrayRef<int64_t> first,
                                  std::optional<KVPhase> second,
                                  bool aboveWait) {
  if (pvBehind && !qkAhead)
    return emitError() << "expected qk_ahead with pv_behind";
  if (rescore && (!qkAhead || pvBehind))
    return emitError() << "expected qk_ahead and no pv_behind with rescore";
  if (turns && !qkAhead)
    return emitError() << "expected qk_ahead with turns";
  if (aboveWait && qkAhead)
    return emitError() << "expected no qk_ahead with above_wait";
  if (second && first.empty())
    return emitError() << "expected first with second";
  if (!first.empty() && !qkAhead)
    return emitError() << "expected qk_ahead with first";
  return success();
}
