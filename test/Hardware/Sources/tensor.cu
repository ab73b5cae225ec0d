// ldmatrix and mma.sync: fragments lie in memory register by register, so that
// the kernels show the instructions' layouts. Compiled for sm_80.
#include <cstdint>

extern "C" __global__ void ldmatrix_all(const unsigned *a, unsigned *o) {
  __shared__ __align__(16) unsigned s[512];
  int t = threadIdx.x;
  for (int j = t; j < 512; j += 32)
    s[j] = a[blockIdx.x * 512 + j];
  __syncwarp();
  unsigned base = __cvta_generic_to_shared(s), r[4];
  // Rows of 16 bytes in an order with few and with many bank conflicts.
  unsigned at[2] = {base + t * 16 ^ (t >> 3 & 1) * 16,
                    base + (t * 128 & 2047) + (t >> 4) * 16};
  unsigned *out = o + blockIdx.x * 32 * 28;
  int k = 0;
  for (int j = 0; j < 2; ++j) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
                 : "=r"(r[0]) : "r"(at[j]) : "memory");
    out[k++ * 32 + t] = r[0];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(at[j]) : "memory");
    for (int i = 0; i < 2; ++i)
      out[k++ * 32 + t] = r[i];
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at[j])
        : "memory");
    for (int i = 0; i < 4; ++i)
      out[k++ * 32 + t] = r[i];
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at[j])
        : "memory");
    for (int i = 0; i < 4; ++i)
      out[k++ * 32 + t] = r[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];"
                 : "=r"(r[0]), "=r"(r[1]) : "r"(at[j]) : "memory");
    for (int i = 0; i < 2; ++i)
      out[k++ * 32 + t] = r[i];
    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r[0]) : "r"(at[j]) : "memory");
    out[k++ * 32 + t] = r[0];
  }
}

#define MMA_PROLOGUE(NA, NB, NC)                                               \
  int t = threadIdx.x, w = blockIdx.x;                                         \
  unsigned A[NA], B[NB], C[NC];                                                \
  for (int i = 0; i < NA; ++i)                                                 \
    A[i] = a[(w * NA + i) * 32 + t];                                           \
  for (int i = 0; i < NB; ++i)                                                 \
    B[i] = b[(w * NB + i) * 32 + t];                                           \
  for (int i = 0; i < NC; ++i)                                                 \
    C[i] = c[(w * NC + i) * 32 + t];
#define MMA_EPILOGUE(NC)                                                       \
  for (int i = 0; i < NC; ++i)                                                 \
    o[(w * NC + i) * 32 + t] = C[i];

// A 4, B 2, C 4 registers.
#define MMA424(name, text)                                                     \
  extern "C" __global__ void name(const unsigned *a, const unsigned *b,        \
                                  const unsigned *c, unsigned *o) {            \
    MMA_PROLOGUE(4, 2, 4)                                                      \
    asm volatile("mma.sync.aligned." text                                      \
                 " {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"      \
                 : "+r"(C[0]), "+r"(C[1]), "+r"(C[2]), "+r"(C[3])              \
                 : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]),      \
                   "r"(B[1]));                                                 \
    MMA_EPILOGUE(4)                                                            \
  }
// A 4, B 2, C 2 registers.
#define MMA422(name, text)                                                     \
  extern "C" __global__ void name(const unsigned *a, const unsigned *b,        \
                                  const unsigned *c, unsigned *o) {            \
    MMA_PROLOGUE(4, 2, 2)                                                      \
    asm volatile("mma.sync.aligned." text                                      \
                 " {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"                  \
                 : "+r"(C[0]), "+r"(C[1])                                      \
                 : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]),      \
                   "r"(B[1]));                                                 \
    MMA_EPILOGUE(2)                                                            \
  }
// A 2, B 1, C 4 registers.
#define MMA214(name, text)                                                     \
  extern "C" __global__ void name(const unsigned *a, const unsigned *b,        \
                                  const unsigned *c, unsigned *o) {            \
    MMA_PROLOGUE(2, 1, 4)                                                      \
    asm volatile("mma.sync.aligned." text                                      \
                 " {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"               \
                 : "+r"(C[0]), "+r"(C[1]), "+r"(C[2]), "+r"(C[3])              \
                 : "r"(A[0]), "r"(A[1]), "r"(B[0]));                           \
    MMA_EPILOGUE(4)                                                            \
  }
MMA424(mma_f16_k16, "m16n8k16.row.col.f32.f16.f16.f32")
MMA422(mma_f16_f16_k16, "m16n8k16.row.col.f16.f16.f16.f16")
MMA214(mma_f16_k8, "m16n8k8.row.col.f32.f16.f16.f32")
MMA424(mma_bf16_k16, "m16n8k16.row.col.f32.bf16.bf16.f32")
MMA214(mma_bf16_k8, "m16n8k8.row.col.f32.bf16.bf16.f32")
MMA424(mma_tf32_k8, "m16n8k8.row.col.f32.tf32.tf32.f32")
MMA214(mma_tf32_k4, "m16n8k4.row.col.f32.tf32.tf32.f32")
MMA424(mma_s8_k32, "m16n8k32.row.col.s32.s8.s8.s32")
MMA424(mma_u8s8_sat_k32, "m16n8k32.row.col.satfinite.s32.u8.s8.s32")
MMA214(mma_s8_k16, "m16n8k16.row.col.s32.s8.s8.s32")
MMA424(mma_s4_k64, "m16n8k64.row.col.s32.s4.s4.s32")

extern "C" __global__ void mma_f64(const double *a, const double *b,
                                   const double *c, double *o) {
  int t = threadIdx.x, w = blockIdx.x * 32 + t;
  double C0 = c[w * 2], C1 = c[w * 2 + 1];
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, "
               "{%3}, {%0,%1};"
               : "+d"(C0), "+d"(C1) : "d"(a[w]), "d"(b[w]));
  o[w * 2] = C0;
  o[w * 2 + 1] = C1;
}

// A product of n columns through cp.async, ldmatrix and mma.sync: c = a * b^T,
// a (64 x n), b (64 x n), by four warps. Rows are padded by 16 bytes, or not.
extern "C" __global__ void gemm_mma(const uint16_t *a, const uint16_t *b,
                                    float *c, int n, int pad) {
  extern __shared__ __align__(16) unsigned char memory[];
  int t = threadIdx.x, lane = t & 31, warp = t / 32, pitch = 64 + pad;
  unsigned base = __cvta_generic_to_shared(memory), half = 64 * pitch;
  a += blockIdx.x * 64 * n;
  c += blockIdx.x * 64 * 64;
  auto fetch = [&](int k, int stage) {
    // 64 rows of 32 elements are 256 chunks of 16 bytes for each operand.
    for (int j = t; j < 512; j += 128) {
      const uint16_t *from = (j < 256 ? a : b) + (j % 256 / 4) * n + k + j % 4 * 8;
      unsigned to = base + stage * 2 * half + (j < 256 ? 0 : half) +
                    j % 256 / 4 * pitch + j % 4 * 16;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to),
                   "l"(from) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float d[8][4] = {};
  fetch(0, 0);
  for (int k = 0; k < n; k += 32) {
    int stage = k / 32 & 1;
    asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    if (k + 32 < n)
      fetch(k + 32, stage ^ 1);
#pragma unroll
    for (int kk = 0; kk < 2; ++kk) {
      unsigned A[4], B[4];
      unsigned at = base + stage * 2 * half + (warp * 16 + lane % 16) * pitch +
                    kk * 32 + lane / 16 * 16;
      asm volatile(
          "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
          : "=r"(A[0]), "=r"(A[1]), "=r"(A[2]), "=r"(A[3]) : "r"(at)
          : "memory");
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        at = base + stage * 2 * half + half +
             (j * 16 + lane % 8 + lane / 16 * 8) * pitch + kk * 32 +
             (lane / 8 & 1) * 16;
        asm volatile(
            "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
            : "=r"(B[0]), "=r"(B[1]), "=r"(B[2]), "=r"(B[3]) : "r"(at)
            : "memory");
#pragma unroll
        for (int i = 0; i < 2; ++i)
          asm volatile(
              "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
              "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
              : "+f"(d[2 * j + i][0]), "+f"(d[2 * j + i][1]),
                "+f"(d[2 * j + i][2]), "+f"(d[2 * j + i][3])
              : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[2 * i]),
                "r"(B[2 * i + 1]));
      }
    }
  }
  for (int j = 0; j < 8; ++j)
    for (int i = 0; i < 4; ++i)
      c[(warp * 16 + lane / 4 + i / 2 * 8) * 64 + j * 8 + lane % 4 * 2 + i % 2] =
          d[j][i];
}
