//===- DTypeNames.h - Names of element types --------------------*- C++ -*-===//

#ifndef ATTN_LIB_LAUNCH_DTYPENAMES_H
#define ATTN_LIB_LAUNCH_DTYPENAMES_H

#include "EnumNames.h"
#include "attn/Launch/DType.h"

namespace mlir::attn {

inline constexpr NameEntry<DType> dtypeNames[] = {
    {DType::F16, "f16"},
    {DType::BF16, "bf16"},
    {DType::F32, "f32"},
    {DType::F64, "f64"},
    {DType::F8E4M3FN, "f8E4M3FN"},
    {DType::F8E5M2, "f8E5M2"},
    {DType::F8E8M0FNU, "f8E8M0FNU"},
    {DType::I8, "i8"},
    {DType::I16, "i16"},
    {DType::I32, "i32"},
    {DType::I64, "i64"},
    {DType::U8, "u8"},
    {DType::U16, "u16"},
    {DType::U32, "u32"},
    {DType::U64, "u64"}};

} // namespace mlir::attn

#endif // ATTN_LIB_LAUNCH_DTYPENAMES_H
