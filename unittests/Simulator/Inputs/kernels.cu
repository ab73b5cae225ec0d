// Test kernels for the simulator: plain CUDA C++ that exercises what compilers
// emit for reductions, matrix products, softmax and data movement.
// kernels.ptx is made by: nvcc -ptx -arch=sm_80 -lineinfo kernels.cu
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_pipeline.h>
#include <mma.h>

extern "C" __global__ void saxpy(int n, float a, const float *x, float *y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    y[i] = a * x[i] + y[i];
}

// Row softmax, one CTA a row, any length.
extern "C" __global__ void softmax(int columns, const float *in, float *out) {
  __shared__ float scratch[32];
  const float *row = in + (size_t)blockIdx.x * columns;
  float *to = out + (size_t)blockIdx.x * columns;
  float m = -INFINITY;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    m = fmaxf(m, row[c]);
  for (int o = 16; o; o >>= 1)
    m = fmaxf(m, __shfl_xor_sync(~0u, m, o));
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = m;
  __syncthreads();
  m = scratch[0];
  for (int w = 1; w < blockDim.x / 32; ++w)
    m = fmaxf(m, scratch[w]);
  __syncthreads();
  float s = 0;
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    s += expf(row[c] - m);
  for (int o = 16; o; o >>= 1)
    s += __shfl_xor_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0)
    scratch[threadIdx.x / 32] = s;
  __syncthreads();
  s = 0;
  for (int w = 0; w < blockDim.x / 32; ++w)
    s += scratch[w];
  for (int c = threadIdx.x; c < columns; c += blockDim.x)
    to[c] = expf(row[c] - m) / s;
}

// The same with the second barrier missing: the next round may overwrite
// scratch while others still read it.
extern "C" __global__ void softmax_racy(int columns, const float *in,
                                        float *out) {
  __shared__ float scratch[32];
  const float *row = in + (size_t)blockIdx.x * columns;
  float s = 0;
  for (int round = 0; round < 2; ++round) {
    float v = row[threadIdx.x] + round;
    for (int o = 16; o; o >>= 1)
      v += __shfl_xor_sync(~0u, v, o);
    if (threadIdx.x % 32 == 0)
      scratch[threadIdx.x / 32] = v;
    __syncthreads();
    for (int w = 0; w < blockDim.x / 32; ++w)
      s += scratch[w];
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = s;
}

// Histogram through shared atomics, then global ones.
extern "C" __global__ void histogram(int n, const unsigned *in, unsigned *bins) {
  __shared__ unsigned local[64];
  if (threadIdx.x < 64)
    local[threadIdx.x] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n;
       i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] % 64], 1u);
  __syncthreads();
  if (threadIdx.x < 64)
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

// Last CTA to finish sums the partial results.
__device__ unsigned finished = 0;
extern "C" __global__ void last_block_sum(const float *in, float *partial,
                                          float *out) {
  __shared__ bool last;
  float v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int o = 16; o; o >>= 1)
    v += __shfl_down_sync(~0u, v, o);
  __shared__ float warps[8];
  if (threadIdx.x % 32 == 0)
    warps[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x == 0) {
    float s = 0;
    for (int w = 0; w < blockDim.x / 32; ++w)
      s += warps[w];
    partial[blockIdx.x] = s;
    __threadfence();
    last = atomicAdd(&finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float s = 0;
    for (int b = 0; b < gridDim.x; ++b)
      s += partial[b];
    *out = s;
    finished = 0;
  }
}

// The same without the fences.
extern "C" __global__ void last_block_sum_racy(const float *in, float *partial,
                                               float *out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    last = atomicAdd(&finished, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    float s = 0;
    for (int b = 0; b < gridDim.x; ++b)
      s += partial[b];
    *out = s;
    finished = 0;
  }
}

// Tiled transpose through padded shared memory.
extern "C" __global__ void transpose(int rows, int columns, const __half *in,
                                     __half *out) {
  __shared__ __half tile[32][34];
  int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += blockDim.y)
    if (c < columns && r0 + i < rows)
      tile[i][threadIdx.x] = in[(size_t)(r0 + i) * columns + c];
  __syncthreads();
  int r = r0 + threadIdx.x, c0 = blockIdx.x * 32;
  for (int i = threadIdx.y; i < 32; i += blockDim.y)
    if (r < rows && c0 + i < columns)
      out[(size_t)(c0 + i) * rows + r] = tile[threadIdx.x][i];
}

// Double-buffered copies with cp.async.
extern "C" __global__ void pipelined_copy(int tiles, const float4 *in,
                                          float4 *out) {
  __shared__ float4 buffer[2][128];
  int t = threadIdx.x;
  __pipeline_memcpy_async(&buffer[0][t], &in[t], 16);
  __pipeline_commit();
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) {
      __pipeline_memcpy_async(&buffer[(i + 1) & 1][t], &in[(i + 1) * 128 + t],
                              16);
      __pipeline_commit();
      __pipeline_wait_prior(1);
    } else {
      __pipeline_wait_prior(0);
    }
    __syncthreads();
    out[i * 128 + t] = buffer[i & 1][127 - t];
    __syncthreads();
  }
}

__device__ __noinline__ float poly(float x, int degree, const float *c) {
  float r = c[degree];
  for (int i = degree - 1; i >= 0; --i)
    r = r * x + c[i];
  return r;
}
__constant__ float table[4] = {1.0f, 0.5f, 0.25f, 0.125f};

// Calls, local arrays, switch, integer division, doubles.
extern "C" __global__ void mixture(int n, const int *in, double *out) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  float coefficients[4];
  for (int k = 0; k < 4; ++k)
    coefficients[(k + in[i]) & 3] = table[k];
  double r;
  switch (in[i] % 7) {
  case 0: r = poly(i * 0.01f, 3, coefficients); break;
  case 1: r = sqrt((double)i); break;
  case 2: r = in[i] / (i + 1); break;
  case 3: r = (long long)in[i] * i % 1000003; break;
  case 4: r = __popc(in[i]) + __clz(in[i]) + __ffs(in[i]); break;
  case 5: r = __half2float(__float2half(i * 0.37f)); break;
  default: r = rsqrtf(i + 1.0f) + logf(i + 1.0f) + sinf(i) + tanhf(i * 0.1f); break;
  }
  out[i] = r;
}

// Half-precision vector arithmetic.
extern "C" __global__ void half_math(int n, const __half2 *a, const __half2 *b,
                                     __half2 *c, __nv_bfloat162 *d) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  c[i] = __hmin2(__hfma2(a[i], b[i], a[i]), __hadd2(a[i], h2exp2(b[i])));
  float2 f = __half22float2(a[i]);
  __nv_bfloat162 x = __floats2bfloat162_rn(f.x, f.y);
  d[i] = __hmax2(__hmul2(x, x), __hsub2(x, x));
}
