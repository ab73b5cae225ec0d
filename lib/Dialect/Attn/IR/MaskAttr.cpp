//===- MaskAttr.cpp - Masks -----------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"

using namespace mlir;
using namespace mlir::attn;

using EmitErrorFn = function_ref<InFlightDiagnostic()>;

LogicalResult MaskAttr::verify(EmitErrorFn emitError, MaskKind kind,
                               MaskAlign align, int64_t left, int64_t right) {
  if (kind != MaskKind::Window && (left >= 0 || right >= 0))
    return emitError() << "expected bounds with a window only, got left = "
                       << left << " and right = " << right << " with "
                       << stringifyMaskKind(kind);
  if (kind == MaskKind::Window && left < 0 && right < 0)
    return emitError() << "expected a window with at least one bound, got none";
  return success();
}

bool MaskAttr::hasRight() const {
  return getKind() == MaskKind::Causal ||
         (getKind() == MaskKind::Window && getRight() >= 0);
}

bool MaskAttr::hasLeft() const {
  return getKind() == MaskKind::Window && getLeft() >= 0;
}

int64_t MaskAttr::rightBound() const {
  return getKind() == MaskKind::Causal ? 0 : getRight();
}

int64_t MaskAttr::leftBound() const { return -getLeft(); }
