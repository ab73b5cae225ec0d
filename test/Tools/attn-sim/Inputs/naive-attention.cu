// One thread for each query row: the plainest attention kernel, by which the
// tests of attn-sim check launching, strides, masks and verification. The PTX
// beside this file was made by
//   clang++-22 -x cuda --cuda-device-only -nocudainc -nocudalib
//     --cuda-gpu-arch=sm_80 -Os -S naive-attention.cu -o naive-attention.ptx
// SKIP_LAST leaves the last element of each row unwritten, RACE lets all
// CTAs write each row, GAP writes behind each row but the last.

typedef long long i64;

#define LOG2E 1.4426950408889634f

static __attribute__((device)) int read_x(void) {
  return __nvvm_read_ptx_sreg_ctaid_x() * 32 + __nvvm_read_ptx_sreg_tid_x();
}

extern "C" __attribute__((global)) void
attn_fwd(const _Float16 *q, const _Float16 *k, const _Float16 *v, _Float16 *o,
         float *lse, int nq, int nk, int d, int dv, int group, float scale,
         int causal, i64 qb, i64 qh, i64 qn, i64 kb, i64 kh, i64 kn, i64 vb,
         i64 vh, i64 vn, i64 ob, i64 oh, i64 on, i64 lb, i64 lh) {
  int i = read_x(), h = __nvvm_read_ptx_sreg_ctaid_y(),
      b = __nvvm_read_ptx_sreg_ctaid_z();
#ifdef RACE
  i %= 32;
#endif
  if (i >= nq)
    return;
  q += b * qb + h * qh + i * qn;
  k += b * kb + (h / group) * kh;
  v += b * vb + (h / group) * vh;
  o += b * ob + h * oh + i * on;
  // Top-left: query i sees the keys up to i.
  int end = causal && i + 1 < nk ? i + 1 : nk;
  float m = -__builtin_inff(), l = 0;
#pragma clang loop unroll(disable)
  for (int j = 0; j < end; ++j) {
    float s = 0;
#pragma clang loop unroll(disable)
    for (int e = 0; e < d; ++e)
      s += (float)q[e] * (float)k[j * kn + e];
    s *= scale * LOG2E;
    m = s > m ? s : m;
  }
#ifdef SKIP_LAST
  dv -= 1;
#endif
#pragma clang loop unroll(disable)
  for (int c = 0; c < dv; ++c) {
    float sum = 0;
    l = 0;
#pragma clang loop unroll(disable)
    for (int j = 0; j < end; ++j) {
      float s = 0;
#pragma clang loop unroll(disable)
      for (int e = 0; e < d; ++e)
        s += (float)q[e] * (float)k[j * kn + e];
      float p = __nvvm_ex2_approx_f(s * scale * LOG2E - m);
      l += p;
      sum += p * (float)v[j * vn + c];
    }
    o[c] = (_Float16)(l > 0 ? sum / l : 0.0f);
  }
#ifdef GAP
  if (i + 1 < nq)
    o[dv] = 0;
#endif
  lse[b * lb + h * lh + i] =
      l > 0 ? (m + __nvvm_lg2_approx_f(l)) / LOG2E : -__builtin_inff();
}
