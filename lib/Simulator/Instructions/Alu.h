//===- Alu.h - Elementwise instructions over lanes --------------*- C++ -*-===//

#ifndef ATTN_LIB_SIMULATOR_INSTRUCTIONS_ALU_H
#define ATTN_LIB_SIMULATOR_INSTRUCTIONS_ALU_H

#include "../Machine/Exec.h"
#include "../Numerics/FloatFormat.h"
#include "../PTX/Decoder.h"
#include <type_traits>

namespace mlir::attn::sim {

/// How a value of type T is kept in a register: narrow ones zero-extended.
template <typename T>
using Stored = std::conditional_t<(sizeof(T) <= 4), uint32_t, uint64_t>;

template <typename T>
inline T decodeLane(Stored<T> s) {
  if constexpr (std::is_floating_point_v<T>)
    return bitCast<T>(s);
  else
    return static_cast<T>(s);
}
template <typename T>
inline Stored<T> encodeLane(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return bitCast<Stored<T>>(v);
  else
    return static_cast<std::make_unsigned_t<T>>(v);
}
template <typename T>
inline Stored<T> *lanesOf(Exec &x, const Operand &o) {
  return reinterpret_cast<Stored<T> *>(x.regs + o.off);
}

/// Elementwise instructions with one to three sources. `Op::f` is the scalar
/// function.
template <typename D, typename A, typename Op>
void exec1(Exec &x, const Inst &I) {
  auto *d = lanesOf<D>(x, I.ops[0]);
  const auto *a = lanesOf<A>(x, I.ops[1]);
  uint32_t mask = x.active;
  if (mask == ~0u)
    for (unsigned l = 0; l < 32; ++l)
      d[l] = encodeLane<D>(Op::f(decodeLane<A>(a[l])));
  else
    forLanes(mask, [&](unsigned l) {
      d[l] = encodeLane<D>(Op::f(decodeLane<A>(a[l])));
    });
  x.propagate<1>(I);
}

template <typename D, typename A, typename B, typename Op>
void exec2(Exec &x, const Inst &I) {
  auto *d = lanesOf<D>(x, I.ops[0]);
  const auto *a = lanesOf<A>(x, I.ops[1]);
  const auto *b = lanesOf<B>(x, I.ops[2]);
  uint32_t mask = x.active;
  if (mask == ~0u)
    for (unsigned l = 0; l < 32; ++l)
      d[l] = encodeLane<D>(Op::f(decodeLane<A>(a[l]), decodeLane<B>(b[l])));
  else
    forLanes(mask, [&](unsigned l) {
      d[l] = encodeLane<D>(Op::f(decodeLane<A>(a[l]), decodeLane<B>(b[l])));
    });
  x.propagate<2>(I);
}

template <typename D, typename A, typename B, typename C, typename Op>
void exec3(Exec &x, const Inst &I) {
  auto *d = lanesOf<D>(x, I.ops[0]);
  const auto *a = lanesOf<A>(x, I.ops[1]);
  const auto *b = lanesOf<B>(x, I.ops[2]);
  const auto *c = lanesOf<C>(x, I.ops[3]);
  uint32_t mask = x.active;
  if (mask == ~0u)
    for (unsigned l = 0; l < 32; ++l)
      d[l] = encodeLane<D>(
          Op::f(decodeLane<A>(a[l]), decodeLane<B>(b[l]), decodeLane<C>(c[l])));
  else
    forLanes(mask, [&](unsigned l) {
      d[l] = encodeLane<D>(
          Op::f(decodeLane<A>(a[l]), decodeLane<B>(b[l]), decodeLane<C>(c[l])));
    });
  x.propagate<3>(I);
}

/// Takes a destination and `sources` operands of one type.
llvm::Error decodeSame(Decoding &c, ExecFn fn, Type t, unsigned sources,
                       InstClass cls);

/// Unsigned arithmetic type of at least 32 bits, where wrapping is defined.
template <typename T>
using Wrap =
    std::conditional_t<(sizeof(T) < 4), uint32_t, std::make_unsigned_t<T>>;

/// Expands to a switch over integer types: `make(T{})` returns an ExecFn.
template <typename Make>
ExecFn pickInteger(Type t, Make &&make) {
  switch (t) {
  case Type::U16:
  case Type::B16:
    return make(uint16_t());
  case Type::U32:
  case Type::B32:
    return make(uint32_t());
  case Type::U64:
  case Type::B64:
    return make(uint64_t());
  case Type::S16:
    return make(int16_t());
  case Type::S32:
    return make(int32_t());
  case Type::S64:
    return make(int64_t());
  default:
    return nullptr;
  }
}
template <typename Make>
ExecFn pickUnsigned(Type t, Make &&make) {
  switch (bitWidth(t)) {
  case 16:
    return make(uint16_t());
  case 32:
    return make(uint32_t());
  case 64:
    return make(uint64_t());
  default:
    return nullptr;
  }
}

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_INSTRUCTIONS_ALU_H
