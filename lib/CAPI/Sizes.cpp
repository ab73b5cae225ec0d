//===- Sizes.cpp - Expressions of launch records in the C interface -------===//

#include "Request.h"
#include "attn/Launch/SizeExpr.h"

using namespace mlir::attn;

/// As an expression spells it.
static std::string getName(const SizeSymbol &symbol) {
  if (symbol.isDevice())
    return "sms";
  return symbol.tensor + (symbol.isStride ? ".stride" : ".dim") +
         std::to_string(symbol.index);
}

bool attnEvaluateSize(AttnStringRef expression, const AttnStringRef *names,
                      const int64_t *values, size_t count, int64_t *result,
                      AttnStringRef *error) {
  thread_local std::string message;
  if (count && (!names || !values)) {
    message = "expected " + std::to_string(count) + " " +
              (names ? "values" : "names") + ", got NULL";
    if (error)
      *error = toC(message);
    return false;
  }
  auto lookup = [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
    std::string name = getName(symbol);
    for (size_t index = 0; index < count; ++index)
      if (copyString(names[index]) == name)
        return values[index];
    return std::nullopt;
  };
  std::string text = copyString(expression);
  llvm::Expected<SizeExpr> parsed = SizeExpr::parse(text);
  llvm::Expected<int64_t> value =
      parsed ? parsed->evaluate(lookup) : parsed.takeError();
  message = value ? "" : llvm::toString(value.takeError());
  if (error)
    *error = toC(message);
  if (!value)
    return false;
  if (result)
    *result = *value;
  return true;
}
