//===- PlanParameters.cpp - Parameters of plans by name -------------------===//

#include "attn/Dialect/Attn/IR/PlanParameters.h"
#include "attn/Support/Suggest.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::attn;

std::vector<PlanParameterInfo>
attn::describePlanFields(ArrayRef<PlanField> fields) {
  std::vector<PlanParameterInfo> infos;
  for (const PlanField &field : fields)
    infos.push_back(
        {field.getName(), field.getExpected(), field.print(), field.getDoc()});
  return infos;
}

/// The field called `name`, or null after a diagnostic.
static PlanField *findField(function_ref<InFlightDiagnostic()> emitError,
                            const PlanSyntax &syntax,
                            MutableArrayRef<PlanField> fields, StringRef name) {
  for (PlanField &field : fields)
    if (field.getName() == name)
      return &field;
  for (const RenamedParameter &renamed : syntax.renamed)
    if (renamed.was == name) {
      emitError() << "parameter '" << name << "' of schedule '"
                  << syntax.schedule << "' is called '" << renamed.is
                  << "' now";
      return nullptr;
    }
  SmallVector<StringRef> known = llvm::map_to_vector(
      fields, [](const PlanField &field) { return field.getName(); });
  emitError() << "unknown parameter '" << name << "' of schedule '"
              << syntax.schedule << "', expected one of "
              << llvm::join(known, ", ") << suggest(name, known);
  return nullptr;
}

static LogicalResult setField(function_ref<InFlightDiagnostic()> emitError,
                              PlanField &field, StringRef value) {
  if (field.read(value))
    return success();
  std::string expected = field.getExpected();
  StringRef names = expected;
  SmallVector<StringRef> known;
  if (names.consume_front("one of "))
    names.split(known, ", ");
  return emitError() << "expected " << field.getName() << " to be " << expected
                     << ", got '" << value << "'" << suggest(value, known);
}

LogicalResult attn::setPlanFields(function_ref<InFlightDiagnostic()> emitError,
                                  const PlanSyntax &syntax,
                                  MutableArrayRef<PlanField> fields,
                                  ArrayRef<PlanParameter> parameters) {
  for (const PlanParameter &parameter : parameters) {
    PlanField *field = findField(emitError, syntax, fields, parameter.name);
    if (!field || failed(setField(emitError, *field, parameter.value)))
      return failure();
  }
  return success();
}

LogicalResult
attn::verifyKernelName(function_ref<InFlightDiagnostic()> emitError,
                       StringRef name) {
  auto isLetter = [](char c) { return llvm::isAlpha(c) || c == '_'; };
  if (!name.empty() && isLetter(name.front()) &&
      llvm::all_of(name,
                   [&](char c) { return isLetter(c) || llvm::isDigit(c); }))
    return success();
  std::string quoted;
  llvm::raw_string_ostream stream(quoted);
  llvm::printEscapedString(name, stream);
  return emitError() << "expected 'kernel' to be letters, digits and "
                        "underscores that begin with no digit, got \""
                     << quoted << '"';
}

/// Reads an integer, a keyword or a string as text.
static FailureOr<std::string> parseValue(AsmParser &parser) {
  StringRef keyword;
  if (succeeded(parser.parseOptionalKeyword(&keyword)))
    return keyword.str();
  std::string text;
  if (succeeded(parser.parseOptionalString(&text)))
    return text;
  int64_t integer;
  if (failed(parser.parseInteger(integer)))
    return failure();
  return std::to_string(integer);
}

LogicalResult attn::parsePlanFields(AsmParser &parser, const PlanSyntax &syntax,
                                    MutableArrayRef<PlanField> fields) {
  SmallVector<StringRef> seen;
  return parser.parseCommaSeparatedList(
      AsmParser::Delimiter::LessGreater, [&]() -> LogicalResult {
        SMLoc loc = parser.getCurrentLocation();
        auto emitError = [&] { return parser.emitError(loc); };
        StringRef name;
        if (failed(parser.parseKeyword(&name)))
          return failure();
        PlanField *field = findField(emitError, syntax, fields, name);
        if (!field)
          return failure();
        if (llvm::is_contained(seen, name))
          return emitError() << "expected parameter '" << name << "' once";
        seen.push_back(name);
        if (failed(parser.parseEqual()))
          return failure();
        loc = parser.getCurrentLocation();
        FailureOr<std::string> value = parseValue(parser);
        if (failed(value))
          return failure();
        return setField(emitError, *field, *value);
      });
}

void attn::printPlanFields(AsmPrinter &printer, ArrayRef<PlanField> fields,
                           ArrayRef<PlanField> defaults) {
  printer << '<';
  bool isFirst = true;
  for (auto [field, other] : llvm::zip_equal(fields, defaults)) {
    if (field.print() == other.print())
      continue;
    printer << (isFirst ? "" : ", ") << field.getName() << " = "
            << field.print();
    isFirst = false;
  }
  printer << '>';
}
