//===- Types.h - PTX scalar types -------------------------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_PTX_TYPES_H
#define ATTN_LIB_SIMULATOR_PTX_TYPES_H

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstdint>

namespace mlir::attn::sim {

/// The types that mnemonics name. Packed types are types of their own.
enum class Type : uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64,
  TF32,
  F16x2,
  BF16x2,
  F32x2,
  U16x2,
  S16x2,
  E4M3,
  E5M2,
  E2M3,
  E3M2,
  E2M1,
  E4M3x2,
  E5M2x2,
  E2M3x2,
  E3M2x2,
  E2M1x2,
  UE8M0x2,
  E4M3x4,
  E5M2x4,
  E2M3x4,
  E3M2x4,
  E2M1x4,
  U4,
  S4,
  B1,
};

inline Type parseType(llvm::StringRef s) {
  return llvm::StringSwitch<Type>(s)
      .Case("pred", Type::Pred)
      .Case("b8", Type::B8)
      .Case("b16", Type::B16)
      .Case("b32", Type::B32)
      .Case("b64", Type::B64)
      .Case("b128", Type::B128)
      .Case("u8", Type::U8)
      .Case("u16", Type::U16)
      .Case("u32", Type::U32)
      .Case("u64", Type::U64)
      .Case("s8", Type::S8)
      .Case("s16", Type::S16)
      .Case("s32", Type::S32)
      .Case("s64", Type::S64)
      .Case("f16", Type::F16)
      .Case("bf16", Type::BF16)
      .Case("f32", Type::F32)
      .Case("f64", Type::F64)
      .Case("tf32", Type::TF32)
      .Case("f16x2", Type::F16x2)
      .Case("bf16x2", Type::BF16x2)
      .Case("f32x2", Type::F32x2)
      .Case("u16x2", Type::U16x2)
      .Case("s16x2", Type::S16x2)
      .Case("e4m3", Type::E4M3)
      .Case("e5m2", Type::E5M2)
      .Case("e2m3", Type::E2M3)
      .Case("e3m2", Type::E3M2)
      .Case("e2m1", Type::E2M1)
      .Case("e4m3x2", Type::E4M3x2)
      .Case("e5m2x2", Type::E5M2x2)
      .Case("e2m3x2", Type::E2M3x2)
      .Case("e3m2x2", Type::E3M2x2)
      .Case("e2m1x2", Type::E2M1x2)
      .Case("ue8m0x2", Type::UE8M0x2)
      .Case("e4m3x4", Type::E4M3x4)
      .Case("e5m2x4", Type::E5M2x4)
      .Case("e2m3x4", Type::E2M3x4)
      .Case("e3m2x4", Type::E3M2x4)
      .Case("e2m1x4", Type::E2M1x4)
      .Case("u4", Type::U4)
      .Case("s4", Type::S4)
      .Case("b1", Type::B1)
      .Default(Type::None);
}

/// Size of a register operand of this type; 0 for predicates.
inline unsigned bitWidth(Type t) {
  switch (t) {
  case Type::None:
  case Type::Pred:
    return 0;
  case Type::B1:
    return 1;
  case Type::U4:
  case Type::S4:
    return 4;
  case Type::B8:
  case Type::U8:
  case Type::S8:
  case Type::E4M3:
  case Type::E5M2:
  case Type::E2M3:
  case Type::E3M2:
  case Type::E2M1:
  case Type::E2M1x2:
    return 8;
  case Type::B16:
  case Type::U16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
  case Type::E4M3x2:
  case Type::E5M2x2:
  case Type::E2M3x2:
  case Type::E3M2x2:
  case Type::UE8M0x2:
  case Type::E2M1x4:
    return 16;
  case Type::B32:
  case Type::U32:
  case Type::S32:
  case Type::F32:
  case Type::TF32:
  case Type::F16x2:
  case Type::BF16x2:
  case Type::U16x2:
  case Type::S16x2:
  case Type::E4M3x4:
  case Type::E5M2x4:
  case Type::E2M3x4:
  case Type::E3M2x4:
    return 32;
  case Type::B64:
  case Type::U64:
  case Type::S64:
  case Type::F64:
  case Type::F32x2:
    return 64;
  case Type::B128:
    return 128;
  }
  return 0;
}

inline bool isSigned(Type t) {
  return t == Type::S8 || t == Type::S16 || t == Type::S32 || t == Type::S64;
}
inline bool isInteger(Type t) { return (t >= Type::U8 && t <= Type::S64); }
inline bool isBits(Type t) { return t >= Type::B8 && t <= Type::B128; }

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_TYPES_H
