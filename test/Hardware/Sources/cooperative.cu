// Warps, barriers, shared memory, atomics and control flow. Compiled for sm_80.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define FULL 0xffffffffu
#define THREAD (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void shuffles(const int *a, int *o, int n) {
  int i = THREAD, k = 0, x = a[i], lane = threadIdx.x & 31;
#define PUT(value) o[k++ * n + i] = (value)
  PUT(__shfl_sync(FULL, x, x & 31));
  PUT(__shfl_sync(FULL, x, x & 31, 8));
  PUT(__shfl_up_sync(FULL, x, 3));
  PUT(__shfl_up_sync(FULL, x, 5, 16));
  PUT(__shfl_down_sync(FULL, x, 7));
  PUT(__shfl_down_sync(FULL, x, 2, 4));
  PUT(__shfl_xor_sync(FULL, x, 21));
  PUT(__shfl_xor_sync(FULL, x, 3, 8));
  int r, p;
  asm volatile("{.reg .pred p; shfl.sync.down.b32 %0|p, %2, 9, 31, -1; "
               "selp.s32 %1, 1, 0, p;}" : "=r"(r), "=r"(p) : "r"(x));
  PUT(r);
  PUT(p);
  double d = __shfl_xor_sync(FULL, __hiloint2double(x, lane), 1);
  PUT(__double2loint(d));
  if (lane & 1)
    r = __shfl_sync(0xaaaaaaaau, x, 7);
  else
    r = __shfl_sync(0x55555555u, x, 2);
  PUT(r);
}

extern "C" __global__ void votes(const int *a, int *o, int n) {
  int i = THREAD, k = 0, x = a[i];
  PUT(__ballot_sync(FULL, x & 1));
  PUT(__any_sync(FULL, (x & 0xff) == 0));
  PUT(__all_sync(FULL, x > -2000000000));
  PUT(__match_any_sync(FULL, x & 3));
  int p;
  PUT(__match_all_sync(FULL, x >> 31, &p));
  PUT(p);
  PUT(__reduce_add_sync(FULL, x));
  PUT(__reduce_min_sync(FULL, x));
  PUT(__reduce_max_sync(FULL, (unsigned)x));
  PUT(__reduce_and_sync(FULL, (unsigned)x | 0xff));
  PUT(__reduce_or_sync(FULL, (unsigned)x & 0xff00));
  PUT(__reduce_xor_sync(FULL, (unsigned)x));
  if (x & 4)
    PUT(__ballot_sync(__match_any_sync(__activemask(), 1), x & 2));
  else
    PUT(-1);
  PUT(__syncthreads_count(x & 1));
  PUT(__syncthreads_and(x != 0));
  PUT(__syncthreads_or(x == 12345));
}

extern "C" __global__ void block_reduce(const int *a, long long *o) {
  __shared__ long long part[32];
  long long s = 0;
  for (int j = threadIdx.x; j < 2048; j += blockDim.x)
    s += a[blockIdx.x * 2048 + j];
  for (int d = 16; d; d >>= 1)
    s += __shfl_down_sync(FULL, s, d);
  if (threadIdx.x % 32 == 0)
    part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0;
    for (int d = 16; d; d >>= 1)
      s += __shfl_xor_sync(FULL, s, d);
    if (threadIdx.x == 0)
      o[blockIdx.x] = s;
  }
}

extern "C" __global__ void block_scan(const float *a, float *o) {
  __shared__ float buffer[2][256];
  int t = threadIdx.x, from = 0;
  buffer[0][t] = a[THREAD];
  __syncthreads();
  for (int d = 1; d < 256; d *= 2, from ^= 1) {
    buffer[from ^ 1][t] = buffer[from][t] + (t >= d ? buffer[from][t - d] : 0);
    __syncthreads();
  }
  o[THREAD] = buffer[from][t];
}

extern "C" __global__ void bitonic_sort(const int *a, int *o) {
  __shared__ int s[256];
  int t = threadIdx.x;
  s[t] = a[THREAD];
  for (int size = 2; size <= 256; size *= 2)
    for (int d = size / 2; d; d /= 2) {
      __syncthreads();
      int u = t ^ d;
      if (u > t) {
        int x = s[t], y = s[u];
        if ((x > y) == !(t & size)) {
          s[t] = y;
          s[u] = x;
        }
      }
    }
  __syncthreads();
  o[THREAD] = s[t];
}

extern "C" __global__ void histogram(const unsigned char *a, unsigned *o,
                                     int n) {
  __shared__ unsigned bins[256];
  bins[threadIdx.x] = 0;
  __syncthreads();
  for (int j = THREAD; j < n; j += gridDim.x * blockDim.x)
    atomicAdd(&bins[a[j]], 1);
  __syncthreads();
  atomicAdd(&o[threadIdx.x], bins[threadIdx.x]);
}

extern "C" __global__ void global_atomics(const int *a, int *o, float *f,
                                          __half2 *h, long long *l) {
  int x = a[THREAD], cell = x & 7;
  atomicAdd(&o[cell], x);
  atomicMin(&o[8 + cell], x);
  atomicMax((unsigned *)&o[16 + cell], (unsigned)x);
  atomicAnd(&o[24 + cell], x | 0xffff);
  atomicOr(&o[32 + cell], x & 0xff00);
  atomicXor(&o[40 + cell], x);
  atomicInc((unsigned *)&o[48 + cell], 10);
  atomicDec((unsigned *)&o[56 + cell], 12);
  int old = atomicAdd(&o[64 + cell], 0), seen;
  do {
    seen = old;
    old = atomicCAS(&o[64 + cell], seen, seen * 3 + 1);
  } while (old != seen);
  if (threadIdx.x == 0)
    atomicExch(&o[72 + blockIdx.x % 8], 7);
  // Small whole numbers: the order of the sums does not matter.
  atomicAdd(&f[cell], (float)(x & 15));
  atomicAdd(&h[cell], __floats2half2_rn(x & 1, x >> 1 & 1));
  atomicAdd((unsigned long long *)&l[cell], (unsigned long long)(x & 0xffff));
  atomicMax(&l[8 + cell], (long long)x << 20);
}

extern "C" __global__ void transpose(const float *a, float *o, int pad) {
  extern __shared__ float tile[];
  int x = threadIdx.x % 32, y = threadIdx.x / 32, pitch = 32 + pad;
  for (int j = y; j < 32; j += 8)
    tile[j * pitch + x] = a[(blockIdx.y * 32 + j) * gridDim.x * 32 +
                            blockIdx.x * 32 + x];
  __syncthreads();
  for (int j = y; j < 32; j += 8)
    o[(blockIdx.x * 32 + j) * gridDim.y * 32 + blockIdx.y * 32 + x] =
        tile[x * pitch + j];
}

extern "C" __global__ void shared_strides(const int *a, int *o) {
  __shared__ int s[4096];
  int t = threadIdx.x;
  for (int j = t; j < 4096; j += 128)
    s[j] = a[j];
  __syncthreads();
  int sum = 0;
  for (int stride = 1; stride <= 32; ++stride)
    sum = sum * 5 + s[t * stride & 4095];
  long long *l = (long long *)s;
  int4 *q = (int4 *)s;
  for (int j = 0; j < 4; ++j) {
    long long v = l[(t * (2 * j + 1)) & 2047];
    int4 w = q[(t * (j + 1)) & 1023];
    sum = sum * 7 + (int)v + (int)(v >> 32) + w.x - w.y + w.z * 3 - w.w;
  }
  __syncthreads();
  s[t * 8] = sum;
  q[t * 2 + 256] = make_int4(sum, t, sum, t);
  __syncthreads();
  o[blockIdx.x * 128 + t] = s[t * 8] + s[1024 + t * 8 + t % 4];
}

extern "C" __global__ void async_stencil(const float *a, float *o, int n) {
  __shared__ __align__(16) float ring[3][260];
  int t = threadIdx.x, tiles = n / 256;
  auto fetch = [&](int tile) {
    if (tile < tiles) {
      unsigned to = __cvta_generic_to_shared(&ring[tile % 3][0]);
      const float *from = a + tile * 256;
      if (t < 64)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::
                         "r"(to + t * 16), "l"(from + t * 4) : "memory");
      else if (t < 68)
        // Elements past the end read as zero.
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::
                         "r"(to + 1024 + (t - 64) * 4),
                     "l"(from + (tile + 1 < tiles ? 256 + t - 64 : 0)),
                     "r"(tile + 1 < tiles ? 4 : 0) : "memory");
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  fetch(1);
  for (int tile = 0; tile < tiles; ++tile) {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
    fetch(tile + 2);
    float *s = ring[tile % 3];
    for (int j = t; j < 256; j += blockDim.x)
      o[tile * 256 + j] = fmaf(s[j], 0.5f, fmaf(s[j + 1], 0.25f, s[j + 4]));
  }
}

extern "C" __global__ void named_barriers(const int *a, int *o) {
  __shared__ int box[2][64];
  int warp = threadIdx.x / 32, t = threadIdx.x % 64;
  if (warp < 2) {
    for (int step = 0; step < 6; ++step) {
      int slot = step & 1;
      if (step > 1)
        asm volatile("bar.sync %0, 128;" ::"r"(3 + slot) : "memory");
      box[slot][t] = a[(blockIdx.x * 6 + step) * 64 + t] * 3;
      asm volatile("bar.arrive %0, 128;" ::"r"(1 + slot) : "memory");
    }
  } else {
    for (int step = 0; step < 6; ++step) {
      int slot = step & 1;
      asm volatile("bar.sync %0, 128;" ::"r"(1 + slot) : "memory");
      o[(blockIdx.x * 6 + step) * 64 + t] = box[slot][63 - t] + 1;
      if (step < 4)
        asm volatile("bar.arrive %0, 128;" ::"r"(3 + slot) : "memory");
    }
  }
}

// Whether a warp that exits counts at a barrier with a thread count: warp 0
// exits, warp 1 waits, and warp 2 arrives once before and once after the flag.
extern "C" __global__ void barrier_exit(int *o, int count) {
  __shared__ volatile int flag;
  int warp = threadIdx.x / 32;
  if (threadIdx.x == 0)
    flag = 0;
  __syncthreads();
  if (warp == 1) {
    asm volatile("bar.sync 1, %0;" ::"r"(count) : "memory");
    if (threadIdx.x == 32)
      o[blockIdx.x] = flag;
  } else if (warp == 2) {
    asm volatile("bar.arrive 1, %0;" ::"r"(count) : "memory");
    for (int j = 0; j < 200; ++j)
      __nanosleep(10000);
    flag = 1;
    asm volatile("bar.arrive 1, %0;" ::"r"(count) : "memory");
  }
}

extern "C" __global__ void mbarrier_async(const int *a, int *o) {
  __shared__ __align__(16) int buffer[256];
  __shared__ uint64_t barrier;
  unsigned bar = __cvta_generic_to_shared(&barrier), t = threadIdx.x;
  if (t == 0)
    asm volatile("mbarrier.init.shared.b64 [%0], 128;" ::"r"(bar) : "memory");
  __syncthreads();
  for (int step = 0; step < 4; ++step) {
    for (int half = 0; half < 2; ++half)
      asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::
          "r"((unsigned)__cvta_generic_to_shared(&buffer[half * 128 + t])),
          "l"(a + (blockIdx.x * 4 + step) * 256 + half * 128 + t) : "memory");
    uint64_t state;
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(bar)
                 : "memory");
    state = step & 1;
    asm volatile("{.reg .pred p; WAIT: mbarrier.test_wait.parity.shared.b64 p, "
                 "[%0], %1; @!p bra WAIT;}" ::"r"(bar), "r"((int)state)
                 : "memory");
    o[(blockIdx.x * 4 + step) * 128 + t] = buffer[255 - t] - buffer[t ^ 1];
    __syncthreads();
  }
}

__device__ __noinline__ int mix(int x, int rounds) {
  for (int j = 0; j < rounds; ++j)
    x = x * 1664525 + 1013904223 ^ x >> 7;
  return x;
}

extern "C" __global__ void control_flow(const int *a, int *o, int n) {
  int i = THREAD, x = a[i], k = 0, local[16];
  // Data-dependent trip counts, breaks and a dense switch.
  int steps = 0;
  for (unsigned v = x & 0xffff; v > 1 && steps < 300; ++steps)
    v = v & 1 ? 3 * v + 1 : v / 2;
  PUT(steps);
  int y = 0;
  for (int j = 0; j < (x & 63); ++j) {
    if ((j * x & 31) == 17)
      continue;
    if (j * j > (x & 0xfff))
      break;
    y += j;
  }
  PUT(y);
  switch (x & 7) {
  case 0: y = x + 1; break;
  case 1: y = x * 3; break;
  case 2: y = mix(x, 2);
  case 3: y ^= 5; break;
  case 4: y = __clz(x); break;
  case 5: y = -x; break;
  case 6: y = x >> 3; break;
  default: y = mix(y, x & 15);
  }
  PUT(y);
  // Indexed by data: local memory.
#pragma unroll 1
  for (int j = 0; j < 16; ++j)
    local[j ^ (x & 15)] = mix(j, 1);
  PUT(local[x >> 4 & 15] + local[x >> 8 & 15]);
  int (*table[2])(int, int) = {mix, mix};
  PUT(table[0](x, 3));
}

extern "C" __global__ void sgemm(const float *a, const float *b, float *c,
                                 int n) {
  __shared__ float sa[16][17], sb[16][16];
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  float sum = 0;
  for (int k = 0; k < n; k += 16) {
    sa[y][x] = a[(blockIdx.y * 16 + y) * n + k + x];
    sb[y][x] = b[(k + y) * n + blockIdx.x * 16 + x];
    __syncthreads();
    for (int j = 0; j < 16; ++j)
      sum = fmaf(sa[y][j], sb[j][x], sum);
    __syncthreads();
  }
  c[(blockIdx.y * 16 + y) * n + blockIdx.x * 16 + x] = sum;
}

extern "C" __global__ void softmax(const float *a, float *o, int n) {
  // One warp a row.
  int lane = threadIdx.x & 31, row = THREAD / 32;
  float m = -INFINITY, s = 0;
  for (int j = lane; j < n; j += 32)
    m = fmaxf(m, a[row * n + j]);
  for (int d = 16; d; d /= 2)
    m = fmaxf(m, __shfl_xor_sync(FULL, m, d));
  for (int j = lane; j < n; j += 32)
    s += exp2f(1.4426950408889634f * (a[row * n + j] - m));
  for (int d = 16; d; d /= 2)
    s += __shfl_xor_sync(FULL, s, d);
  for (int j = lane; j < n; j += 32)
    o[row * n + j] =
        __fdividef(exp2f(1.4426950408889634f * (a[row * n + j] - m)), s);
}

extern "C" __global__ void layer_norm(const __half *a, const float *w,
                                      float *o, int n) {
  __shared__ float part[2][8];
  int t = threadIdx.x, lane = t & 31;
  float s = 0, q = 0;
  for (int j = t; j < n; j += 256) {
    float x = __half2float(a[blockIdx.x * n + j]);
    s += x;
    q = fmaf(x, x, q);
  }
  for (int d = 16; d; d /= 2) {
    s += __shfl_xor_sync(FULL, s, d);
    q += __shfl_xor_sync(FULL, q, d);
  }
  if (lane == 0) {
    part[0][t / 32] = s;
    part[1][t / 32] = q;
  }
  __syncthreads();
  s = q = 0;
  for (int j = 0; j < 8; ++j) {
    s += part[0][j];
    q += part[1][j];
  }
  float mean = s / n, scale = rsqrtf(q / n - mean * mean + 1e-5f);
  for (int j = t; j < n; j += 256)
    o[blockIdx.x * n + j] =
        (__half2float(a[blockIdx.x * n + j]) - mean) * scale * w[j];
}
