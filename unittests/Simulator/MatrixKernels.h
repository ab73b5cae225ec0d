//===- MatrixKernels.h - Small wgmma and tcgen05 kernels --------*- C++ -*-===//
//
// A (64x16) and B (Nx16) of small integers in f16, K-major without swizzle:
// core matrices of 8 rows of 16 bytes, k halves 128 bytes apart, row groups 256
// bytes apart. `in` holds them in that order already.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_UNITTESTS_SIMULATOR_MATRIXKERNELS_H
#define ATTN_UNITTESTS_SIMULATOR_MATRIXKERNELS_H

#include "TestKernel.h"
#include <cmath>

namespace mlir::attn::sim::testing {

inline uint16_t half(float f) {
  // Small integers and halves only.
  if (f == 0)
    return 0;
  int e;
  float m = std::frexp(std::fabs(f), &e);
  return (f < 0 ? 0x8000 : 0) | uint16_t((e + 14) << 10) |
         (uint16_t(m * 2048) & 0x3ff);
}

inline float valueA(unsigned r, unsigned k) {
  return float(int(r * 3 + k * 5) % 7 - 3);
}
inline float valueB(unsigned n, unsigned k) {
  return float(int(n * 2 + k * 3) % 5 - 2);
}

inline std::vector<uint8_t> operands(unsigned m, unsigned n) {
  std::vector<uint16_t> v((m + n) * 16);
  auto place = [&](unsigned base, unsigned r, unsigned k, float f) {
    v[base + r / 8 * 128 + k / 8 * 64 + r % 8 * 8 + k % 8] = half(f);
  };
  for (unsigned k = 0; k < 16; ++k) {
    for (unsigned r = 0; r < m; ++r)
      place(0, r, k, valueA(r, k));
    for (unsigned c = 0; c < n; ++c)
      place(m * 16, c, k, valueB(c, k));
  }
  return bytesOf(v);
}
inline float product(unsigned r, unsigned n) {
  float s = 0;
  for (unsigned k = 0; k < 16; ++k)
    s += valueA(r, k) * valueB(n, k);
  return s;
}

/// Copies `bytes` of `in` to smem+1024 with 128 threads, 16 bytes at a time.
inline std::string fillShared(unsigned bytes) {
  std::string s = "shl.b32 %r2, %r0, 4;\nmov.b32 %r1, smem;\n";
  for (unsigned at = 0; at < bytes; at += 2048) {
    std::string o = std::to_string(at), t = std::to_string(at + 1024);
    std::string guard = "";
    if (at + 2048 > bytes)
      s += "setp.lt.u32 %p9, %r2, " + std::to_string(bytes - at) + ";\n",
          guard = "@%p9 ";
    s += "cvt.u64.u32 %d2, %r2;\nadd.s64 %d3, %d0, %d2;\nadd.s32 %r3, %r1, "
         "%r2;\n" +
         guard + "ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%d3+" + o + "];\n" +
         guard + "st.shared.v4.b32 [%r3+" + t + "], {%r4, %r5, %r6, %r7};\n";
  }
  return s;
}

/// %d<reg> = descriptor of the operand `offset` bytes into smem.
inline std::string descriptor(unsigned reg, unsigned offset, bool blackwell) {
  std::string d = "%d" + std::to_string(reg);
  uint64_t fixed = uint64_t(128 >> 4) << 16 | uint64_t(256 >> 4) << 32;
  if (blackwell)
    fixed |= uint64_t(1) << 46;
  return "add.s32 %r8, %r1, " + std::to_string(offset) +
         ";\nshr.u32 %r8, %r8, 4;\ncvt.u64.u32 " + d + ", %r8;\nor.b64 " + d +
         ", " + d + ", " + std::to_string(fixed) + ";\n";
}

inline std::string list(const char *prefix, unsigned first, unsigned n) {
  std::string s = "{";
  for (unsigned i = 0; i < n; ++i)
    s += (i ? ", " : "") + std::string(prefix) + std::to_string(first + i);
  return s + "}";
}

constexpr const char *FenceAfter = "tcgen05.fence::after_thread_sync;";
constexpr const char *FenceBefore = "tcgen05.fence::before_thread_sync;";
constexpr const char *WaitPhase0 =
    "L: mbarrier.try_wait.parity.shared.b64 %p1, [%r1], 0;\n"
    "@%p1 bra D;\nbra L;\nD:";

/// One tcgen05.mma of 128x32x16, read back by four warps.
inline std::string tensorKernel(const char *proxyFence, const char *commit,
                                const char *wait, const char *dealloc,
                                const char *after = FenceAfter,
                                const char *before = FenceBefore) {
  std::string s =
      "mov.b32 %r1, smem;\nsetp.eq.s32 %p0, %r0, 0;\n"
      "@%p0 mbarrier.init.shared.b64 [%r1], 1;\n"
      "setp.lt.u32 %p7, %r0, 32;\n@!%p7 bra A;\n"
      "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1+16], 64;\n"
      "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\nA:\n" +
      fillShared(128 * 32 + 32 * 32) + proxyFence +
      "\nbar.sync 0;\nld.shared.b32 %r10, [%r1+16];\n" +
      descriptor(10, 1024, true) + descriptor(11, 1024 + 4096, true) +
      // f16 operands, f32 result, N = 32, M = 128.
      "mov.b32 %r11, " + std::to_string(1u << 4 | 4u << 17 | 8u << 24) +
      ";\n@!%p0 bra W;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%r10], %d10, %d11, %r11, 0;\n"
      "tcgen05.mma.cta_group::1.kind::f16 [%r10], %d10, %d11, %r11, 1;\n" +
      commit + "\nW:\n" + wait + "\n" + after +
      "\nshr.u32 %r12, %r0, 5;\n"
      "shl.b32 %r12, %r12, 21;\nadd.s32 %r13, %r10, %r12;\n"
      "tcgen05.ld.sync.aligned.32x32b.x32.b32 " +
      list("%r", 100, 32) +
      ", [%r13];\ntcgen05.wait::ld.sync.aligned;\n"
      "mul.wide.u32 %d2, %r0, 128;\nadd.s64 %d3, %d1, %d2;\n";
  for (int i = 0; i < 32; i += 4)
    s += "st.global.v4.b32 [%d3+" + std::to_string(4 * i) + "], " +
         list("%r", 100 + i, 4) + ";\n";
  return s + before + "\nbar.sync 0;\n@!%p7 bra E;\n" + dealloc + "\nE:";
}
constexpr const char *Commit =
    "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared"
    "::cluster.b64 [%r1];";
constexpr const char *Dealloc =
    "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r10, 64;";
constexpr const char *ProxyFence = "fence.proxy.async.shared::cta;";

inline Outcome runTensor(const std::string &body,
                         AsyncTiming timing = AsyncTiming::Completion,
                         Profile profile = Profile::Hw,
                         uint16_t assumptions = 0) {
  LaunchConfig config;
  config.block = {128, 1, 1};
  config.dynamicShared = 8192;
  config.asyncReads = config.asyncWrites = timing;
  config.profile = profile;
  config.assumptions = assumptions;
  return runText(wrapKernel(body), operands(128, 32), 128 * 128, config);
}

} // namespace mlir::attn::sim::testing

#endif // ATTN_UNITTESTS_SIMULATOR_MATRIXKERNELS_H
