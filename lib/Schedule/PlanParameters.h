//===- PlanParameters.h - Reading the parameters of plans -------*- C++ -*-===//

#ifndef ATTN_LIB_SCHEDULE_PLANPARAMETERS_H
#define ATTN_LIB_SCHEDULE_PLANPARAMETERS_H

#include "attn/Schedule/Schedule.h"

namespace mlir::attn {

/// Reads an integer. The diagnostic names the parameter.
inline LogicalResult
setInteger(llvm::function_ref<InFlightDiagnostic()> emitError,
           PlanParameter parameter, int64_t &result) {
  if (!parameter.value.getAsInteger(10, result))
    return success();
  return emitError() << "expected " << parameter.name
                     << " to be an integer, got '" << parameter.value << "'";
}

/// Reads true or false.
inline LogicalResult setBool(llvm::function_ref<InFlightDiagnostic()> emitError,
                             PlanParameter parameter, bool &result) {
  if (parameter.value != "true" && parameter.value != "false")
    return emitError() << "expected " << parameter.name
                       << " to be true or false, got '" << parameter.value
                       << "'";
  result = parameter.value == "true";
  return success();
}

/// Reads an enumerator; the diagnostic lists them all.
template <typename T>
LogicalResult setEnum(llvm::function_ref<InFlightDiagnostic()> emitError,
                      PlanParameter parameter, T &result,
                      std::optional<T> symbol, uint64_t max,
                      llvm::StringRef (*stringify)(T)) {
  if (symbol) {
    result = *symbol;
    return success();
  }
  InFlightDiagnostic diag = emitError() << "expected " << parameter.name
                                        << " to be one of ";
  for (uint64_t i = 0; i <= max; ++i)
    diag << (i ? ", " : "") << stringify(static_cast<T>(i));
  return diag << ", got '" << parameter.value << "'";
}

/// Reads one of the enumerations that plans of all schedules have: softmax,
/// order or epilogue. Nothing if the parameter is another one.
inline std::optional<LogicalResult>
setCommon(llvm::function_ref<InFlightDiagnostic()> emitError,
          PlanParameter parameter, SoftmaxPolicy &softmax, TileOrder &order,
          EpilogueKind &epilogue) {
  llvm::StringRef name = parameter.name, value = parameter.value;
  if (name == "softmax")
    return setEnum<SoftmaxPolicy>(
        emitError, parameter, softmax, symbolizeSoftmaxPolicy(value),
        getMaxEnumValForSoftmaxPolicy(), stringifySoftmaxPolicy);
  if (name == "order")
    return setEnum<TileOrder>(emitError, parameter, order,
                              symbolizeTileOrder(value),
                              getMaxEnumValForTileOrder(), stringifyTileOrder);
  if (name == "epilogue")
    return setEnum<EpilogueKind>(
        emitError, parameter, epilogue, symbolizeEpilogueKind(value),
        getMaxEnumValForEpilogueKind(), stringifyEpilogueKind);
  return std::nullopt;
}

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_PLANPARAMETERS_H
