//===- HarnessRandom.h - random numbers of inputs ---------------*- C++ -*-===//
#ifndef ATTN_LIB_HARNESS_HARNESSRANDOM_H
#define ATTN_LIB_HARNESS_HARNESSRANDOM_H

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/xxhash.h"
#include <cmath>

namespace mlir::attn::sim {

/// A generator with the same values on every platform (splitmix64).
class Random {
public:
  Random(uint64_t seed, llvm::StringRef stream)
      : state(seed * 0x9e3779b97f4a7c15 ^ llvm::xxh3_64bits(stream)) {}

  uint64_t next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  /// Uniform in (0, 1].
  double uniform() { return double((next() >> 11) + 1) * 0x1p-53; }
  /// Standard normal (Box and Muller).
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) *
           std::cos(6.283185307179586 * uniform());
  }
  /// Uniform in [0, limit].
  int64_t integer(int64_t limit) { return next() % uint64_t(limit + 1); }

private:
  uint64_t state;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_HARNESS_HARNESSRANDOM_H
