//===- Mask.h - Which keys a query attends to -------------------*- C++ -*-===//
//
// The enumerations of masks, MaskKind and MaskAlign, with their names: for IR,
// flags, launch records and the reference alike. Needs no library of MLIR.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_PROBLEM_MASK_H
#define ATTN_PROBLEM_MASK_H

#include "mlir/Support/LLVM.h"
#include "llvm/ADT/DenseMapInfo.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/LogicalResult.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdint>
#include <optional>
#include <string>

#include "attn/Problem/MaskEnums.h.inc"

#endif // ATTN_PROBLEM_MASK_H
