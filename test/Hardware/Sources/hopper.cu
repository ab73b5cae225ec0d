// What sm_90a adds: bulk and tensor copies, clusters, transaction barriers,
// wgmma, setmaxnreg, stmatrix, fp8. Compiled for sm_90a.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

struct alignas(64) Map {
  uint64_t words[16];
};

__device__ inline unsigned shared(const void *p) {
  return __cvta_generic_to_shared(p);
}
__device__ inline void init(unsigned bar, int count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(count)
               : "memory");
}
__device__ inline void fence_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}
__device__ inline void fence_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}
__device__ inline void expect(unsigned bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   bar), "r"(bytes) : "memory");
}
__device__ inline void arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar)
               : "memory");
}
__device__ inline void wait(unsigned bar, int parity) {
  asm volatile("{.reg .pred p; W: mbarrier.try_wait.parity.shared::cta.b64 p, "
               "[%0], %1; @p bra D; bra W; D:}" ::"r"(bar), "r"(parity)
               : "memory");
}
__device__ inline void load2(unsigned to, const Map *map, int x, int y,
                             unsigned bar) {
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::"
               "complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
               "l"(map), "r"(x), "r"(y), "r"(bar) : "memory");
}
__device__ inline void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n"
               "barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
__device__ inline unsigned rank() {
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ inline unsigned peer(unsigned address, unsigned rank) {
  unsigned r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(r) : "r"(address), "r"(rank));
  return r;
}

// A box as it lies in shared memory, swizzled as the map says.
extern "C" __global__ void tma_load(const __grid_constant__ Map map,
                                    unsigned *o, int words, int dx, int dy) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ uint64_t barrier;
  unsigned bar = shared(&barrier);
  if (threadIdx.x == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    expect(bar, words * 4);
    load2(shared(memory), &map, (int)blockIdx.x * dx - 8, (int)blockIdx.y * dy - 2, bar);
  }
  wait(bar, 0);
  int cta = blockIdx.y * gridDim.x + blockIdx.x;
  for (int j = threadIdx.x; j < words; j += blockDim.x)
    o[cta * words + j] = ((unsigned *)memory)[j];
}

// Three dimensions in, changed, out by another map; then a reduction.
extern "C" __global__ void tma_store(const __grid_constant__ Map in,
                                     const __grid_constant__ Map out,
                                     const __grid_constant__ Map sum) {
  __shared__ __align__(128) float tile[4][8][16];
  __shared__ uint64_t barrier;
  unsigned bar = shared(&barrier), t = threadIdx.x;
  if (t == 0) {
    init(bar, 1);
    fence_init();
  }
  __syncthreads();
  int x = blockIdx.x * 16, y = blockIdx.y * 8;
  if (t == 0) {
    expect(bar, sizeof(tile));
    asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier"
                 "::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];" ::"r"(
                     shared(tile)), "l"(&in), "r"(x), "r"(y), "r"(0), "r"(bar)
                 : "memory");
  }
  wait(bar, 0);
  for (int j = t; j < 512; j += blockDim.x)
    (&tile[0][0][0])[j] = (&tile[0][0][0])[j] * 2 + 1;
  fence_async();
  __syncthreads();
  if (t == 0) {
    asm volatile("cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group "
                 "[%0, {%1, %2, %3}], [%4];" ::"l"(&out), "r"(x), "r"(y),
                 "r"(0), "r"(shared(tile)) : "memory");
    asm volatile("cp.reduce.async.bulk.tensor.3d.global.shared::cta.add.tile."
                 "bulk_group [%0, {%1, %2, %3}], [%4];" ::"l"(&sum), "r"(0),
                 "r"(0), "r"(0), "r"(shared(tile)) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

// Bulk copies without a map.
extern "C" __global__ void bulk_copy(const int *a, int *o, int *sum) {
  __shared__ __align__(128) int tile[2][256];
  __shared__ uint64_t barrier[2];
  int t = threadIdx.x;
  if (t == 0) {
    init(shared(&barrier[0]), 1);
    init(shared(&barrier[1]), 1);
    fence_init();
  }
  __syncthreads();
  for (int step = 0; step < 6; ++step) {
    int s = step & 1;
    const int *from = a + (blockIdx.x * 6 + step) * 256;
    if (t == 0) {
      asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
      expect(shared(&barrier[s]), 1024);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx"
                   "::bytes [%0], [%1], 1024, [%2];" ::"r"(shared(tile[s])),
                   "l"(from), "r"(shared(&barrier[s])) : "memory");
    }
    wait(shared(&barrier[s]), step / 2 & 1);
    tile[s][t] = tile[s][t] * 3 + t;
    tile[s][t + 128] ^= 0x5555;
    fence_async();
    __syncthreads();
    if (t == 0) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], "
                   "1024;" ::"l"(o + (blockIdx.x * 6 + step) * 256),
                   "r"(shared(tile[s])) : "memory");
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 "
                   "[%0], [%1], 1024;" ::"l"(sum), "r"(shared(tile[s]))
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
  }
  if (t == 0)
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Every CTA of a cluster of four reads and writes the others' shared memory.
extern "C" __global__ void __cluster_dims__(4, 1, 1)
    cluster_exchange(const int *a, int *o) {
  __shared__ int mine[128], inbox[4][128], tally;
  int t = threadIdx.x, r = rank();
  mine[t] = a[blockIdx.x * 128 + t];
  tally = 0;
  cluster_sync();
  int sum = r;
  for (int j = 0; j < 4; ++j) {
    int v;
    asm volatile("ld.shared::cluster.s32 %0, [%1];"
                 : "=r"(v) : "r"(peer(shared(&mine[127 - t]), j)) : "memory");
    sum = sum * 31 + v;
    asm volatile("st.shared::cluster.s32 [%0], %1;" ::"r"(
                     peer(shared(&inbox[r][t]), j)), "r"(mine[t] * (j + 1))
                 : "memory");
  }
  asm volatile("red.shared::cluster.add.s32 [%0], %1;" ::"r"(
                   peer(shared(&tally), (r + 1) & 3)), "r"(t * r) : "memory");
  cluster_sync();
  for (int j = 0; j < 4; ++j)
    sum = sum * 17 + inbox[j][t];
  o[blockIdx.x * 128 + t] = sum + tally;
}

// Remote arrives and st.async with transaction bytes around a ring.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    cluster_ring(const int *a, int *o) {
  __shared__ __align__(16) int slots[2][128];
  __shared__ uint64_t full[2], empty[2];
  int t = threadIdx.x, r = rank();
  if (t == 0) {
    for (int j = 0; j < 2; ++j) {
      init(shared(&full[j]), 1);
      init(shared(&empty[j]), 128);
    }
    fence_init();
  }
  cluster_sync();
  unsigned other = r ^ 1;
  for (int step = 0; step < 6; ++step) {
    int s = step & 1, phase = step / 2 & 1;
    if (step > 1)
      wait(shared(&empty[s]), phase ^ 1);
    if (t == 0)
      expect(shared(&full[s]), 512);
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 "
                 "[%0], %1, [%2];" ::"r"(peer(shared(&slots[s][t]), other)),
                 "r"(a[(blockIdx.x * 6 + step) * 128 + t]),
                 "r"(peer(shared(&full[s]), other)) : "memory");
    wait(shared(&full[s]), phase);
    o[(blockIdx.x * 6 + step) * 128 + t] = slots[s][t ^ 5] * 3;
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::
                 "r"(peer(shared(&empty[s]), other)) : "memory");
  }
  cluster_sync();
}

// One CTA loads half a box for both.
extern "C" __global__ void __cluster_dims__(2, 1, 1)
    multicast(const __grid_constant__ Map map, unsigned *o) {
  __shared__ __align__(1024) unsigned tile[16 * 32];
  __shared__ uint64_t barrier;
  unsigned bar = shared(&barrier), r = rank(), t = threadIdx.x;
  if (t == 0) {
    init(bar, 1);
    fence_init();
  }
  cluster_sync();
  if (t == 0) {
    expect(bar, sizeof(tile));
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier"
                 "::complete_tx::bytes.multicast::cluster [%0], [%1, {%2, %3}],"
                 " [%4], %5;" ::"r"(shared(tile + r * 256)), "l"(&map), "r"(0),
                 "r"(blockIdx.x / 2 * 16 + r * 8), "r"(bar), "h"((short)3)
                 : "memory");
  }
  wait(bar, 0);
  for (int j = t; j < 512; j += 128)
    o[blockIdx.x * 512 + j] = tile[j] + r;
  cluster_sync();
}

extern "C" __global__ void stmatrix_all(const unsigned *a, unsigned *o) {
  __shared__ __align__(16) unsigned s[1024];
  int t = threadIdx.x;
  for (int j = t; j < 1024; j += 32)
    s[j] = 0;
  __syncwarp();
  unsigned r[4], base = shared(s) + t * 16;
  for (int i = 0; i < 4; ++i)
    r[i] = a[(blockIdx.x * 4 + i) * 32 + t];
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::
               "r"(base), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::
      "r"(base + 512), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1,%2};" ::
               "r"(base + 1024), "r"(r[0]), "r"(r[1]) : "memory");
  asm volatile("stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::
               "r"(base + 1536), "r"(r[2]) : "memory");
  __syncwarp();
  for (int j = t; j < 1024; j += 32)
    o[blockIdx.x * 1024 + j] = s[j];
}

extern "C" __global__ void fp8_convert(const float *a, unsigned *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  float x = a[i], y = a[n - 1 - i];
#define PUT(value) o[k++ * n + i] = (value)
  PUT(__nv_cvt_float2_to_fp8x2(make_float2(x, y), __NV_SATFINITE, __NV_E4M3));
  PUT(__nv_cvt_float2_to_fp8x2(make_float2(x, y), __NV_SATFINITE, __NV_E5M2));
  __half2_raw h = __floats2half2_rn(x, y);
  PUT(__nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E4M3));
  PUT(__nv_cvt_halfraw2_to_fp8x2(h, __NV_SATFINITE, __NV_E5M2));
  __half2_raw back = __nv_cvt_fp8x2_to_halfraw2((uint16_t)i, __NV_E4M3);
  PUT((unsigned)back.x | (unsigned)back.y << 16);
  back = __nv_cvt_fp8x2_to_halfraw2((uint16_t)(i * 257), __NV_E5M2);
  PUT((unsigned)back.x | (unsigned)back.y << 16);
  unsigned short r;
  asm("cvt.rn.satfinite.relu.e4m3x2.f32 %0, %1, %2;" : "=h"(r) : "f"(x), "f"(y));
  PUT(r);
}

extern "C" __global__ void bf16_sm90(const __nv_bfloat162 *a,
                                     const __nv_bfloat162 *b, unsigned *o,
                                     int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;
  __nv_bfloat162 x = a[i], y = b[i];
  auto put = [&](__nv_bfloat162 v) { PUT(*(unsigned *)&v); };
  put(__hadd2_rn(x, y));
  put(__hsub2_rn(x, y));
  put(__hmul2_rn(x, y));
  put(__hfma2(x, y, x));
  put(__hlt2(x, y));
  put(__hmin2(x, y));
  PUT(__bfloat162int_rz(__low2bfloat16(x)));
  put(__floats2bfloat162_rn((float)i, __bfloat162float(__int2bfloat16_rn(i * 77))));
}

extern "C" __global__ void vector_atomics(const int *a, float *f, __half2 *h,
                                          __nv_bfloat162 *b) {
  int t = blockIdx.x * blockDim.x + threadIdx.x, x = a[t], cell = x & 7;
  float v = x & 15;
  asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %1, %3};" ::"l"(f + cell * 4),
               "f"(v), "f"(v + 1), "f"(1.f) : "memory");
  float r0, r1;
  asm volatile("atom.global.add.v2.f32 {%0, %1}, [%2], {%3, %4};"
               : "=f"(r0), "=f"(r1)
               : "l"(f + 32 + cell * 2), "f"(1.f), "f"(2.f) : "memory");
  f[48 + t] = (r0 + r1) * 0;
  unsigned one = 0x3c003c00, bone = 0x3f803f80;
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(h + cell), "r"(one)
               : "memory");
  if (x & 1)
    asm volatile("red.global.add.noftz.bf16x2 [%0], %1;" ::"l"(b + cell),
                 "r"(bone) : "memory");
}

extern "C" __global__ void elect_and_wait(const int *a, int *o) {
  int t = threadIdx.x, p;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  asm volatile("{.reg .pred p; elect.sync _|p, 0xffffffff; selp.s32 %0, 1, 0, "
               "p;}" : "=r"(p));
  int count = __popc(__ballot_sync(~0u, p));
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
  o[blockIdx.x * 128 + t] = a[blockIdx.x * 128 + t] * 2 + count;
}

// Operands of mma.sync on fp8 lie in memory register by register.
#define MMA8(name, types)                                                      \
  extern "C" __global__ void name(const unsigned *a, const unsigned *b,        \
                                  const unsigned *c, unsigned *o) {            \
    int t = threadIdx.x, w = blockIdx.x;                                       \
    unsigned A[4], B[2], C[4];                                                 \
    for (int i = 0; i < 4; ++i) {                                              \
      A[i] = a[(w * 4 + i) * 32 + t];                                          \
      B[i & 1] = b[(w * 2 + (i & 1)) * 32 + t];                                \
      C[i] = c[(w * 4 + i) * 32 + t];                                          \
    }                                                                          \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." types                \
                 ".f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"  \
                 : "+r"(C[0]), "+r"(C[1]), "+r"(C[2]), "+r"(C[3])              \
                 : "r"(A[0]), "r"(A[1]), "r"(A[2]), "r"(A[3]), "r"(B[0]),      \
                   "r"(B[1]));                                                 \
    for (int i = 0; i < 4; ++i)                                                \
      o[(w * 4 + i) * 32 + t] = C[i];                                          \
  }
MMA8(mma_e4m3, "e4m3.e4m3")
MMA8(mma_e5m2_e4m3, "e5m2.e4m3")

__device__ inline uint64_t descriptor(unsigned address, int lead, int stride,
                                      int swizzle) {
  return (uint64_t)((address & 0x3ffff) >> 4) | (uint64_t)(lead >> 4) << 16 |
         (uint64_t)(stride >> 4) << 32 | (uint64_t)swizzle << 62;
}

#define D32(d)                                                                 \
  "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]),      \
      "+r"(d[6]), "+r"(d[7]), "+r"(d[8]), "+r"(d[9]), "+r"(d[10]),             \
      "+r"(d[11]), "+r"(d[12]), "+r"(d[13]), "+r"(d[14]), "+r"(d[15]),         \
      "+r"(d[16]), "+r"(d[17]), "+r"(d[18]), "+r"(d[19]), "+r"(d[20]),         \
      "+r"(d[21]), "+r"(d[22]), "+r"(d[23]), "+r"(d[24]), "+r"(d[25]),         \
      "+r"(d[26]), "+r"(d[27]), "+r"(d[28]), "+r"(d[29]), "+r"(d[30]),         \
      "+r"(d[31])
#define R32                                                                    \
  "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,"    \
  "%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}"
#define D8(d)                                                                  \
  "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]), "+r"(d[4]), "+r"(d[5]),      \
      "+r"(d[6]), "+r"(d[7])
#define R8 "{%0,%1,%2,%3,%4,%5,%6,%7}"

// One wgmma on operands that lie in shared memory as bytes: 128-byte rows
// swizzled by 128 bytes. a is 64 rows, b is N rows (or k rows when transposed).
#define WGMMA(name, text, N, RD, DD, NR, leadA, leadB, tail, rows)             \
  extern "C" __global__ void __launch_bounds__(128)                            \
      name(const uint4 *a, const uint4 *b, const unsigned *c, unsigned *o) {   \
    __shared__ __align__(1024) uint4 sa[64 * 8], sb[rows * 8];                 \
    int t = threadIdx.x;                                                       \
    for (int j = t; j < 64 * 8; j += 128)                                      \
      sa[j] = a[blockIdx.x * 64 * 8 + j];                                      \
    for (int j = t; j < rows * 8; j += 128)                                    \
      sb[j] = b[blockIdx.x * rows * 8 + j];                                    \
    unsigned d[NR];                                                            \
    for (int j = 0; j < NR; ++j)                                               \
      d[j] = c[(blockIdx.x * NR + j) * 128 + t];                               \
    fence_async();                                                             \
    __syncthreads();                                                           \
    uint64_t da = descriptor(shared(sa), leadA, 1024, 1),                      \
             db = descriptor(shared(sb), leadB, 1024, 1);                      \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");                    \
    asm volatile("{wgmma.mma_async.sync.aligned." text " " RD                  \
                 ", %" #NR ", %" tail ";}" : DD(d) : "l"(da), "l"(db));        \
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");             \
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");             \
    for (int j = 0; j < NR; ++j)                                               \
      o[(blockIdx.x * NR + j) * 128 + t] = d[j];                               \
  }
WGMMA(wgmma_f16, "m64n64k16.f32.f16.f16", 64, R32, D32, 32, 16, 16,
      "33, 1, 1, 1, 0, 0", 64)
WGMMA(wgmma_bf16_negated, "m64n64k16.f32.bf16.bf16", 64, R32, D32, 32, 16, 16,
      "33, 1, -1, 1, 0, 0", 64)
WGMMA(wgmma_bf16_b_transposed, "m64n64k16.f32.bf16.bf16", 64, R32, D32, 32, 16,
      1024, "33, 1, 1, 1, 0, 1", 16)
WGMMA(wgmma_f16_both_transposed, "m64n64k16.f32.f16.f16", 64, R32, D32, 32,
      1024, 1024, "33, 1, 1, 1, 1, 1", 16)
WGMMA(wgmma_f16_f16, "m64n32k16.f16.f16.f16", 32, R8, D8, 8, 16, 16,
      "9, 1, 1, 1, 0, 0", 32)
WGMMA(wgmma_tf32, "m64n64k8.f32.tf32.tf32", 64, R32, D32, 32, 16, 16,
      "33, 1, 1, 1", 64)
WGMMA(wgmma_e4m3, "m64n64k32.f32.e4m3.e4m3", 64, R32, D32, 32, 16, 16,
      "33, 1, 1, 1", 64)
WGMMA(wgmma_e5m2_e4m3, "m64n16k32.f32.e5m2.e4m3", 16, R8, D8, 8, 16, 16,
      "9, 1, 1, 1", 16)
WGMMA(wgmma_s8, "m64n64k32.s32.s8.s8", 64, R32, D32, 32, 16, 16, "33, 1", 64)
WGMMA(wgmma_u8_s8, "m64n16k32.s32.u8.s8", 16, R8, D8, 8, 16, 16,
      "9, 1", 16)

// A from registers.
extern "C" __global__ void __launch_bounds__(128)
    wgmma_from_registers(const unsigned *a, const uint4 *b, float *o) {
  __shared__ __align__(1024) uint4 sb[64 * 8];
  int t = threadIdx.x;
  for (int j = t; j < 64 * 8; j += 128)
    sb[j] = b[blockIdx.x * 64 * 8 + j];
  unsigned A[16], d[32];
  for (int j = 0; j < 16; ++j)
    A[j] = a[(blockIdx.x * 16 + j) * 128 + t];
  for (int j = 0; j < 32; ++j)
    d[j] = 0;
  fence_async();
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
  for (int k = 0; k < 4; ++k)
    asm volatile("{wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " R32
                 ", {%32, %33, %34, %35}, %36, 1, 1, 1, 0;}"
                 : D32(d)
                 : "r"(A[4 * k]), "r"(A[4 * k + 1]), "r"(A[4 * k + 2]),
                   "r"(A[4 * k + 3]),
                   "l"(descriptor(shared(sb) + 32 * k, 16, 1024, 1)));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
  for (int j = 0; j < 32; ++j)
    o[(blockIdx.x * 32 + j) * 128 + t] = __uint_as_float(d[j]);
}

// A product through a ring of tensor copies: one producer warp with few
// registers, one consumer warpgroup with many. c = a * b^T, tiles 64 x 64 x 64.
extern "C" __global__ void __launch_bounds__(256, 1)
    gemm_wgmma(const __grid_constant__ Map a, const __grid_constant__ Map b,
               float *c, int steps) {
  extern __shared__ __align__(1024) unsigned char memory[];
  __shared__ uint64_t full[3], empty[3];
  int t = threadIdx.x;
  unsigned base = shared(memory);
  if (t == 0) {
    for (int j = 0; j < 3; ++j) {
      init(shared(&full[j]), 1);
      init(shared(&empty[j]), 128);
    }
    fence_init();
  }
  __syncthreads();
  if (t >= 128) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (t == 128)
      for (int k = 0; k < steps; ++k) {
        int s = k % 3;
        if (k > 2)
          wait(shared(&empty[s]), k / 3 - 1 & 1);
        expect(shared(&full[s]), 16384);
        load2(base + s * 16384, &a, k * 64, blockIdx.x * 64, shared(&full[s]));
        load2(base + s * 16384 + 8192, &b, k * 64, blockIdx.y * 64,
              shared(&full[s]));
      }
    return;
  }
  asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
  unsigned d[32];
  for (int j = 0; j < 32; ++j)
    d[j] = 0;
  for (int k = 0; k < steps; ++k) {
    int s = k % 3;
    wait(shared(&full[s]), k / 3 & 1);
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int j = 0; j < 4; ++j)
      asm volatile(
          "{wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 " R32
          ", %32, %33, 1, 1, 1, 0, 0;}"
          : D32(d)
          : "l"(descriptor(base + s * 16384 + 32 * j, 16, 1024, 1)),
            "l"(descriptor(base + s * 16384 + 8192 + 32 * j, 16, 1024, 1)));
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    arrive(shared(&empty[s]));
  }
  int row = blockIdx.x * 64 + t / 32 * 16 + t % 32 / 4;
  for (int j = 0; j < 32; ++j)
    c[(row + (j / 2 & 1) * 8) * gridDim.y * 64 + blockIdx.y * 64 + j / 4 * 8 +
      t % 4 * 2 + j % 2] = __uint_as_float(d[j]);
}
