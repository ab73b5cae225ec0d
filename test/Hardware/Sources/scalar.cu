// Integer, float and conversion instructions, one result array a kernel:
// o[operation * n + i]. Compiled for sm_80.
#include <cstdint>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define INDEX                                                                  \
  int i = blockIdx.x * blockDim.x + threadIdx.x, k = 0;                        \
  if (i >= n)                                                                  \
    return;
#define PUT(value) o[k++ * n + i] = (value)

extern "C" __global__ void integer32(const int *a, const int *b, const int *c,
                                     int *o, int n) {
  INDEX
  int x = a[i], y = b[i], z = c[i];
  unsigned ux = x, uy = y, uz = z;
  PUT(x + y);
  PUT(x - y);
  PUT(x * y + z);
  PUT(__mulhi(x, y));
  PUT(__umulhi(ux, uy));
  PUT(__mul24(x, y));
  PUT(__umul24(ux, uy));
  PUT(x / (y | 1));
  PUT(x % (y | 1));
  PUT(ux / (uy | 1));
  PUT(ux % (uy | 1));
  PUT(x << (y & 31));
  PUT(x >> (y & 31));
  PUT(ux >> (uy & 31));
  PUT(__funnelshift_l(ux, uy, uz));
  PUT(__funnelshift_r(ux, uy, uz));
  PUT(__funnelshift_lc(ux, uy, uz));
  PUT(__funnelshift_rc(ux, uy, uz));
  PUT(min(x, y));
  PUT(max(x, y));
  PUT(min(ux, uy));
  PUT(max(ux, uy));
  PUT(abs(x));
  PUT(__popc(ux));
  PUT(__clz(x));
  PUT(__ffs(x));
  PUT(__brev(ux));
  PUT(__byte_perm(ux, uy, uz & 0xffff));
  PUT((x & y) | (~x & z));
  PUT(x ^ y ^ z);
  PUT(__dp4a(x, y, z));
  PUT(__dp4a(ux, uy, uz));
  PUT(__dp2a_lo(x, y, z));
  PUT(__dp2a_hi(ux, uy, uz));
  PUT(__sad(x, y, uz));
  PUT(__usad(ux, uy, uz));
  PUT(__hadd(x, y));
  PUT(__urhadd(ux, uy));
  PUT(x < y ? z : x);
  PUT(ux <= uy ? uz : ux);
  PUT(__vadd4(ux, uy));
  PUT(__vmaxs2(ux, uy));
  int r;
  asm("bfe.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 63), "r"(z & 63));
  PUT(r);
  asm("bfe.u32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y & 63), "r"(z & 63));
  PUT(r);
  asm("bfi.b32 %0, %1, %2, %3, %4;"
      : "=r"(r) : "r"(x), "r"(y), "r"(z & 31), "r"(y & 31));
  PUT(r);
  asm("bfind.s32 %0, %1;" : "=r"(r) : "r"(x));
  PUT(r);
  asm("bfind.shiftamt.u32 %0, %1;" : "=r"(r) : "r"(x));
  PUT(r);
  asm("prmt.b32.f4e %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z & 3));
  PUT(r);
  asm("prmt.b32.ecl %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z & 3));
  PUT(r);
  asm("add.cc.u32 %0, %1, %2; addc.u32 %0, %3, 0;"
      : "=&r"(r) : "r"(x), "r"(y), "r"(z));
  PUT(r);
  asm("add.sat.s32 %0, %1, %2;" : "=r"(r) : "r"(x), "r"(y));
  PUT(r);
  asm("mad.hi.sat.s32 %0, %1, %2, %3;" : "=r"(r) : "r"(x), "r"(y), "r"(z));
  PUT(r);
}

extern "C" __global__ void integer64(const long long *a, const long long *b,
                                     long long *o, int n) {
  INDEX
  long long x = a[i], y = b[i];
  unsigned long long ux = x, uy = y;
  PUT(x + y);
  PUT(x * y);
  PUT(__mul64hi(x, y));
  PUT(__umul64hi(ux, uy));
  PUT(x / (y | 1));
  PUT(x % (y | 1));
  PUT(ux / (uy | 1));
  PUT(ux % (uy >> 40 | 1));
  PUT(x << (y & 63));
  PUT(x >> (y & 63));
  PUT(ux >> (uy & 63));
  PUT(min(x, y));
  PUT(max(ux, uy));
  PUT(llabs(x));
  PUT(__popcll(ux));
  PUT(__clzll(x));
  PUT(__ffsll(x));
  PUT(__brevll(ux));
  PUT((long long)(int)x * (int)y);
  PUT((unsigned long long)(unsigned)ux * (unsigned)uy);
  PUT(x < y ? x ^ y : x & y);
  PUT((long long)(short)x + (unsigned short)y);
  PUT((long long)(signed char)x - (unsigned char)y);
}

extern "C" __global__ void float32(const float *a, const float *b,
                                   const float *c, float *o, int n) {
  INDEX
  float x = a[i], y = b[i], z = c[i];
  PUT(x + y);
  PUT(__fsub_rn(x, y));
  PUT(__fmul_rn(x, y));
  PUT(__fmaf_rn(x, y, z));
  PUT(__fadd_rz(x, y));
  PUT(__fadd_ru(x, y));
  PUT(__fadd_rd(x, y));
  PUT(__fmul_rz(x, y));
  PUT(__fmul_ru(x, y));
  PUT(__fmul_rd(x, y));
  PUT(__fmaf_rz(x, y, z));
  PUT(__fmaf_ru(x, y, z));
  PUT(__fmaf_rd(x, y, z));
  PUT(__fdiv_rn(x, y));
  PUT(__fdiv_rz(x, y));
  PUT(__fsqrt_rn(fabsf(x)));
  PUT(__fsqrt_ru(fabsf(x)));
  PUT(__frcp_rn(y));
  PUT(__frcp_rd(y));
  PUT(fminf(x, y));
  PUT(fmaxf(x, y));
  PUT(fabsf(x));
  PUT(-x);
  PUT(floorf(x));
  PUT(ceilf(x));
  PUT(truncf(x));
  PUT(rintf(x));
  PUT(__saturatef(x));
  PUT(copysignf(x, y));
  PUT(x < y ? z : x);
  PUT(isnan(x) ? 1.f : isinf(y) ? 2.f : 3.f);
  PUT(fmodf(x, 3.5f));
  float r;
  asm("add.ftz.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  PUT(r);
  asm("fma.rn.ftz.sat.f32 %0, %1, %2, %3;" : "=f"(r) : "f"(x), "f"(y), "f"(z));
  PUT(r);
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  PUT(r);
  asm("{.reg .pred p; setp.nan.f32 p, %1, %2; selp.f32 %0, %1, %2, p;}"
      : "=f"(r) : "f"(x), "f"(y));
  PUT(r);
  asm("set.ltu.f32.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(y));
  PUT(r);
}

extern "C" __global__ void float64(const double *a, const double *b,
                                   const double *c, double *o, int n) {
  INDEX
  double x = a[i], y = b[i], z = c[i];
  PUT(x + y);
  PUT(__dmul_rn(x, y));
  PUT(fma(x, y, z));
  PUT(__dadd_rz(x, y));
  PUT(__dmul_ru(x, y));
  PUT(__fma_rd(x, y, z));
  PUT(x / y);
  PUT(sqrt(fabs(x)));
  PUT(fmin(x, y));
  PUT(fmax(x, y));
  PUT(floor(x));
  PUT(rint(x));
  PUT(x < y ? z : -x);
  PUT((double)(float)x);
  PUT((double)(long long)x);
  PUT((double)(unsigned)(int)y);
}

extern "C" __global__ void half2_arithmetic(const __half2 *a, const __half2 *b,
                                            const __half2 *c, __half2 *o,
                                            int n) {
  INDEX
  __half2 x = a[i], y = b[i], z = c[i];
  PUT(__hadd2_rn(x, y));
  PUT(__hsub2_rn(x, y));
  PUT(__hmul2_rn(x, y));
  PUT(__hfma2(x, y, z));
  PUT(__hfma2_sat(x, y, z));
  PUT(__hfma2_relu(x, y, z));
  PUT(__hadd2_sat(x, y));
  PUT(__hmin2(x, y));
  PUT(__hmax2(x, y));
  PUT(__hmin2_nan(x, y));
  PUT(__hmax2_nan(x, y));
  PUT(__habs2(x));
  PUT(__hneg2(x));
  PUT(__hlt2(x, y));
  PUT(__hgeu2(x, y));
  PUT(__lowhigh2highlow(x));
  PUT(__halves2half2(__hadd_rn(__low2half(x), __high2half(y)),
                     __hfma(__low2half(x), __low2half(y), __high2half(z))));
  PUT(__hlt(__low2half(x), __low2half(y)) ? x : y);
}

extern "C" __global__ void bfloat2_arithmetic(const __nv_bfloat162 *a,
                                              const __nv_bfloat162 *b,
                                              const __nv_bfloat162 *c,
                                              __nv_bfloat162 *o, int n) {
  INDEX
  __nv_bfloat162 x = a[i], y = b[i], z = c[i];
  PUT(__hfma2(x, y, z));
  PUT(__hfma2_relu(x, y, z));
  PUT(__hadd2(x, y));
  PUT(__hmul2(x, y));
  PUT(__hmin2(x, y));
  PUT(__hmax2_nan(x, y));
  PUT(__habs2(x));
  PUT(__hneg2(x));
  PUT(__floats2bfloat162_rn(__low2float(x) + __high2float(y),
                            __low2float(y) * __high2float(z)));
}

extern "C" __global__ void convert(const float *a, const int *b, float *o,
                                   int n) {
  INDEX
  float x = a[i];
  int y = b[i];
  auto bits = [](int v) { return __int_as_float(v); };
  PUT(bits(__float2int_rn(x)));
  PUT(bits(__float2int_rz(x)));
  PUT(bits(__float2int_ru(x)));
  PUT(bits(__float2int_rd(x)));
  PUT(bits(__float2uint_rn(x)));
  PUT(bits(__float2uint_rz(x)));
  PUT(bits((int)__float2ll_rn(x)));
  PUT(bits((int)(__float2ull_rz(x) >> 16)));
  PUT(bits((signed char)__float2int_rz(x)));
  PUT(__int2float_rn(y));
  PUT(__int2float_rz(y));
  PUT(__uint2float_ru(y));
  PUT(__uint2float_rd(y));
  PUT(__ll2float_rn((long long)y * 1234567));
  PUT((float)(short)y);
  PUT((float)(unsigned char)y);
  PUT(bits(__half_as_ushort(__float2half_rn(x))));
  PUT(bits(__half_as_ushort(__float2half_rz(x))));
  PUT(__half2float(__ushort_as_half((unsigned short)y)));
  PUT(bits(__half_as_ushort(__int2half_rn(y >> 12))));
  PUT(bits(__half2int_rz(__ushort_as_half((unsigned short)y))));
  PUT(bits(__bfloat16_as_ushort(__float2bfloat16_rn(x))));
  PUT(bits(__bfloat16_as_ushort(__float2bfloat16_rz(x))));
  PUT(__bfloat162float(__ushort_as_bfloat16((unsigned short)y)));
  unsigned r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(x * 3));
  PUT(bits(r));
  asm("cvt.rz.relu.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(x), "f"(-x));
  PUT(bits(r));
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(r) : "f"(x));
  PUT(bits(r));
  asm("cvt.rni.sat.u8.f32 %0, %1;" : "=r"(r) : "f"(x));
  PUT(bits(r & 0xff));
  asm("cvt.rzi.sat.s16.f32 %0, %1;" : "=r"(r) : "f"(x));
  PUT(bits(r & 0xffff));
  asm("cvt.sat.s8.s32 %0, %1;" : "=r"(r) : "r"(y));
  PUT(bits(r & 0xff));
  asm("cvt.pack.sat.u8.s32.b32 %0, %1, %2, %1;" : "=r"(r) : "r"(y), "r"(y / 7));
  PUT(bits(r));
  asm("cvt.rmi.ftz.f32.f32 %0, %1;" : "=f"(x) : "f"(x));
  PUT(x);
}

extern "C" __global__ void special_functions(const float *a, float *o, int n) {
  INDEX
  float x = a[i], r;
#define APPROX(name, argument)                                                 \
  asm(name " %0, %1;" : "=f"(r) : "f"(argument));                              \
  PUT(r)
  APPROX("ex2.approx.f32", x);
  APPROX("ex2.approx.ftz.f32", x);
  APPROX("lg2.approx.f32", fabsf(x));
  APPROX("rcp.approx.ftz.f32", x);
  APPROX("rsqrt.approx.f32", fabsf(x));
  APPROX("sqrt.approx.f32", fabsf(x));
  asm("div.approx.f32 %0, %1, %2;" : "=f"(r) : "f"(x), "f"(1.7f));
  PUT(r);
  asm("div.full.f32 %0, %1, %2;" : "=f"(r) : "f"(1.7f), "f"(x));
  PUT(r);
}

extern "C" __global__ void special_functions_absolute(const float *a, float *o,
                                                      int n) {
  INDEX
  float x = a[i], r;
  APPROX("sin.approx.f32", x);
  APPROX("cos.approx.f32", x);
  APPROX("tanh.approx.f32", x);
  unsigned h;
  asm("tanh.approx.f16x2 %0, %1;"
      : "=r"(h) : "r"((unsigned)__half_as_ushort(__float2half_rn(x))));
  PUT(__half2float(__ushort_as_half(h & 0xffff)));
  asm("ex2.approx.f16x2 %0, %1;"
      : "=r"(h)
      : "r"((unsigned)__half_as_ushort(__float2half_rn(-fabsf(x)))));
  PUT(__half2float(__ushort_as_half(h & 0xffff)));
}

extern "C" __global__ void narrow_memory(const unsigned char *a, int4 *v,
                                         unsigned char *o, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  // Bytes, halves and vectors of every width.
  short s = ((const short *)a)[i];
  char4 c = ((const char4 *)a)[i];
  short2 h = ((const short2 *)a)[i];
  uchar2 u = ((const uchar2 *)a)[i];
  double2 d = ((const double2 *)a)[i % (n / 4)];
  float3 f = ((const float3 *)a)[i % (n / 4)];
  o[i] = a[i] + 3;
  ((short *)(o + n))[i] = s * 3 + u.x - u.y;
  ((char4 *)(o + 4 * n))[i] = make_char4(c.w, c.z, h.x, h.y);
  v[i] = make_int4(__double2loint(d.x), __double2hiint(d.y),
                   __float_as_int(f.z), __float_as_int(f.x));
}
