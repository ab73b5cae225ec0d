//===- signals.cu - What an arrival in another CTA overtakes --------------===//
//
// Counts wrong values, on a Hopper GPU: docs/results/simulator-evidence.json has a table.
//
//   nvcc -gencode arch=compute_90a,code=sm_90a -O3 -std=c++17 -o signals
//     signals.cu && ./signals [ROUNDS [ROW]]
//
// Two CTAs of a cluster. `loads`: a warpgroup of CTA 0 reads a slot, arrives
// where the writing warpgroup waits (in CTA 1, or in CTA 0 for the local case),
// and compares what it read only then; the writer overwrites the slot as soon
// as it is told. `stores`: a warpgroup of CTA 0 writes, arrives in CTA 1, whose
// readers compare. Two more warpgroups keep shared memory busy. What ptxas
// makes of a row has to be looked at: it moves loads, and uses behind barriers.
//
//===----------------------------------------------------------------------===//

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

constexpr int kStage = 8192, kHog = 24576, kFull = 57344, kEmpty = 57352,
              kDone = 57360, kBytes = 57472, kSlotBytes = 8192, kLoads = 16;

struct Params {
  uint32_t iterations, zero, hogs, hogCTAs, conflict, write, writerRank,
      waitCluster, sleep;
  uint32_t *global; // 8 KB for each cluster
  unsigned long long *wrong, *rounds,
      *lost; // values, rounds with one, waits that gave up
};
enum Load { LDMATRIX, LDS, LDSC, LDG };
enum Use { NONE, ALL, ONE, LAST };
enum Signal {
  DEFAULT,
  RELEASE,
  BARRIER,
  LOCAL,
  RELAXED,
  FENCE_CTA,
  FENCE_PROXY,
  FENCE_CLUSTER
};
enum Write { ST, ST_ASYNC, BULK };
enum Store { STS, STSC, STG, STSC_BULK, STSC_FENCE_BULK };

__device__ uint32_t smem(const void *p) {
  return (uint32_t)__cvta_generic_to_shared(p);
}
__device__ uint32_t mapa(uint32_t a, uint32_t rank) {
  uint32_t r;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;"
               : "=r"(r)
               : "r"(a), "r"(rank));
  return r;
}
__device__ uint32_t ctaRank() {
  uint32_t r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}
__device__ void clusterSync() {
  asm volatile(
      "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::
          : "memory");
}
__device__ void wait(uint32_t bar, uint32_t parity, uint32_t cluster,
                     Params &p) {
  uint32_t done = 0;
  for (int i = 0; i < (1 << 16) && !done; ++i) {
    if (cluster)
      asm volatile(
          "{.reg .pred q; "
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 q, "
          "[%1], %2; selp.u32 %0, 1, 0, q;}"
          : "=r"(done)
          : "r"(bar), "r"(parity)
          : "memory");
    else
      asm volatile("{.reg .pred q; mbarrier.try_wait.parity.shared::cta.b64 q, "
                   "[%1], %2; "
                   "selp.u32 %0, 1, 0, q;}"
                   : "=r"(done)
                   : "r"(bar), "r"(parity)
                   : "memory");
  }
  if (!done) {
    atomicAdd(p.lost, 1ull);
    __trap();
  }
}
__device__ void arriveDefault(uint32_t a) {
  asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(a)
               : "memory");
}
__device__ void arriveRelease(uint32_t a) {
  asm volatile(
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(a)
      : "memory");
}
__device__ void arriveRelaxed(uint32_t a) {
  asm volatile(
      "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [%0];" ::"r"(a)
      : "memory");
}
__device__ void arriveLocal(uint32_t a) {
  asm volatile(
      "{.reg .b64 s; mbarrier.arrive.shared::cta.b64 s, [%0];}" ::"r"(a)
      : "memory");
}

// A warp's arrival, or the warpgroup's behind its barrier.
template <int SIG>
__device__ void signal(uint32_t local, uint32_t remote, int thread) {
  if (SIG == BARRIER) {
    asm volatile("bar.sync 1, 128;" ::: "memory");
    if (thread == 0)
      arriveDefault(remote);
    return;
  }
  __syncwarp();
  if (thread % 32)
    return;
  if (SIG == FENCE_CTA)
    asm volatile("fence.acq_rel.cta;" ::: "memory");
  if (SIG == FENCE_PROXY)
    asm volatile("fence.proxy.async;" ::: "memory");
  if (SIG == FENCE_CLUSTER)
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
  if (SIG == DEFAULT || SIG >= FENCE_CTA)
    arriveDefault(remote);
  if (SIG == RELEASE)
    arriveRelease(remote);
  if (SIG == RELAXED)
    arriveRelaxed(remote);
  if (SIG == LOCAL)
    arriveLocal(local);
}

// Offset of the 16 bytes of lane `lane` in piece `j` of the slot.
__device__ uint32_t place(int j, int lane, uint32_t conflict) {
  return conflict ? (lane + 32 * (j & 1)) * 128 + (j >> 1) * 16
                  : j * 512 + lane * 16;
}

template <int LOAD>
__device__ void load4(uint32_t *r, uint32_t shared, const uint32_t *global) {
#define OUT "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
  if (LOAD == LDMATRIX)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : OUT
                 : "r"(shared)
                 : "memory");
  if (LOAD == LDS)
    asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : OUT
                 : "r"(shared)
                 : "memory");
  if (LOAD == LDSC)
    asm volatile("ld.shared::cluster.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : OUT
                 : "r"(shared)
                 : "memory");
  if (LOAD == LDG)
    asm volatile("ld.global.cg.v4.u32 {%0,%1,%2,%3}, [%4];"
                 : OUT
                 : "l"(global)
                 : "memory");
}

__device__ void hog(Params &p, char *base, int warp) {
  uint32_t lane = threadIdx.x % 32, at = smem(base + kHog);
  volatile uint32_t *done = (volatile uint32_t *)(base + kDone);
  uint32_t sum = 0, stop = 0;
  float d[32];
  for (float &x : d)
    x = 0;
  uint64_t desc = ((uint64_t)(at & 0x3ffff) >> 4) | (uint64_t(8) << 16) |
                  (uint64_t(16) << 32);
  while (!stop) {
    // All warps of the warpgroup end together.
    asm volatile("{.reg .pred q, r; setp.ne.u32 q, %1, 0; bar.red.or.pred r, "
                 "%2, 128, q; "
                 "selp.u32 %0, 1, 0, r;}"
                 : "=r"(stop)
                 : "r"(*done), "r"(4 + warp / 4)
                 : "memory");
    if (p.hogs == 1)
#pragma unroll
      for (int j = 0; j < 16; ++j) {
        uint32_t r[4];
        load4<LDMATRIX>(r, at + lane * 128 + (j & 7) * 16, nullptr);
        sum ^= r[0] ^ r[1] ^ r[2] ^ r[3];
      }
    if (p.hogs == 2) {
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int j = 0; j < 16; ++j)
        asm volatile("wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 "
                     "{%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,"
                     "%10,%11,%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%"
                     "24,%25,%26,%27,%28,%29,%30,"
                     "%31}, %32, %33, 1, 1, 1, 0, 0;"
                     : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]),
                       "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                       "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]),
                       "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                       "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]),
                       "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                       "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
                       "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                     : "l"(desc), "l"(desc + 256));
      asm volatile("wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync."
                   "aligned 0;" ::
                       : "memory");
    }
  }
  for (float x : d)
    sum += __float_as_uint(x);
  if (sum == 0x12345 && p.zero)
    p.global[0] = sum;
}

__device__ void start(Params &p, char *base, uint32_t fullCount,
                      uint32_t emptyCount) {
  for (int i = threadIdx.x; i < kBytes / 4; i += blockDim.x)
    ((uint32_t *)base)[i] = 0;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(base + kFull)),
        "r"(fullCount));
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(smem(base + kEmpty)),
        "r"(emptyCount));
    asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;" ::
                     : "memory");
  }
  __syncthreads();
  clusterSync();
}
__device__ void count(Params &p, unsigned wrong, unsigned rounds) {
  if (wrong)
    atomicAdd(p.wrong, (unsigned long long)wrong);
  if (rounds)
    atomicAdd(p.rounds, (unsigned long long)rounds);
}

// Role of a warpgroup: 0 the first, 1 the second, 2 keeps shared memory busy.
template <int LOAD, int USE, int SIG>
__global__ void __launch_bounds__(512, 1) loads(Params p) {
  extern __shared__ __align__(1024) char base[];
  uint32_t rank = ctaRank(), group = threadIdx.x / 128,
           thread = threadIdx.x % 128, lane = thread % 32;
  start(p, base, p.write == ST ? 128 : 1, SIG == BARRIER ? 1 : 4);
  uint32_t *global = p.global + blockIdx.x / 2 * (kSlotBytes / 4);
  uint32_t full = smem(base + kFull), empty = smem(base + kEmpty);
  uint32_t slotRank = LOAD == LDSC ? p.writerRank : 0;
  uint32_t slot = LOAD == LDSC ? mapa(smem(base), slotRank) : smem(base);
  if (group == 0 && rank == 0) {
    uint32_t remote = mapa(empty, p.writerRank);
    unsigned wrong = 0, rounds = 0;
    for (uint32_t i = 0; i < p.iterations; ++i) {
      if (p.write != ST &&
          thread == 0) // arms the phase that the writer's bytes complete
        asm volatile("{.reg .b64 s; mbarrier.arrive.expect_tx.shared::cta.b64 "
                     "s, [%0], %1;}" ::"r"(full),
                     "r"(kSlotBytes)
                     : "memory");
      if (i == 0) { // the slot is free
        if (p.write != ST)
          asm volatile("bar.sync 1, 128;" ::: "memory");
        signal<SIG>(empty, remote, thread);
      }
      wait(full, i & 1, 1, p);
      uint32_t r[kLoads][4];
#pragma unroll
      for (int j = 0; j < kLoads; ++j) {
        uint32_t at = place(j, lane, p.conflict);
        load4<LOAD>(r[j], slot + at, global + at / 4);
      }
      uint32_t used = 0;
      if (USE == ALL || USE == ONE)
#pragma unroll
        for (int j = 0; j < kLoads; ++j)
          used |= USE == ALL ? r[j][0] | r[j][1] | r[j][2] | r[j][3] : r[j][0];
      if (USE == LAST)
        used = r[kLoads - 1][0];
      used &= p.zero;
      if (USE != NONE && used)
        __trap(); // nothing moves a use behind this
      if (i + 1 < p.iterations)
        signal<SIG>(empty + used, remote + used, thread);
      if (p.sleep)
        __nanosleep(p.sleep);
      unsigned bad = 0;
#pragma unroll
      for (int j = 0; j < kLoads; ++j)
#pragma unroll
        for (int k = 0; k < 4; ++k)
          bad += r[j][k] != i + 1;
      wrong += bad;
      rounds += bad != 0;
    }
    count(p, wrong, rounds);
    asm volatile("bar.sync 1, 128;" ::: "memory");
    *(volatile uint32_t *)(base + kDone) = 1;
  }
  if (group == 1 && rank == p.writerRank) {
    uint32_t to = mapa(smem(base), slotRank), remoteFull = mapa(full, 0);
    for (uint32_t i = 0; i < p.iterations; ++i) {
      uint32_t value = i + 1, stage = kStage + (i & 1) * kSlotBytes;
      if (p.write == BULK) {
        for (int j = thread; j < kSlotBytes / 4; j += 128)
          ((uint32_t *)(base + stage))[j] = value;
        asm volatile("fence.proxy.async;\nbar.sync 2, 128;" ::: "memory");
      }
      wait(empty, i & 1, p.waitCluster, p);
      for (int j = kSlotBytes / 2048 - 1; j >= 0;
           --j) { // what was read last comes first
        uint32_t at = j * 2048 + thread * 16;
        if (p.conflict)
          at = (j / 2 * 32 + thread / 4) * 128 % kSlotBytes +
               ((j & 1) * 4 + thread % 4) * 16;
        if (LOAD == LDG)
          asm volatile(
              "st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(global + at / 4),
              "r"(value)
              : "memory");
        else if (p.write == ST)
          asm volatile(
              "st.shared::cluster.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(to + at),
              "r"(value)
              : "memory");
        else if (p.write == ST_ASYNC)
          asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes."
                       "v4.b32 [%0], {%1,%1,%1,%1}, [%2];" ::"r"(to + at),
                       "r"(value), "r"(remoteFull)
                       : "memory");
        else if (thread == 0)
          asm volatile(
              "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx:"
              ":bytes [%0], [%1], 2048, [%2];" ::"r"(to + j * 2048),
              "r"(smem(base + stage + j * 2048)), "r"(remoteFull)
              : "memory");
      }
      if (LOAD == LDG)
        __threadfence();
      if (p.write == ST)
        arriveRelease(remoteFull);
    }
    if (p.writerRank) {
      asm volatile("bar.sync 2, 128;" ::: "memory");
      *(volatile uint32_t *)(base + kDone) = 1;
    }
  }
  if (group >= 2 && p.hogs && (p.hogCTAs >> rank & 1)) {
    if (rank == 0 || p.writerRank)
      hog(p, base, threadIdx.x / 32);
  }
  __syncthreads();
  clusterSync();
}

template <int STORE, int SIG>
__global__ void __launch_bounds__(512, 1) stores(Params p) {
  extern __shared__ __align__(1024) char base[];
  uint32_t rank = ctaRank(), group = threadIdx.x / 128,
           thread = threadIdx.x % 128, lane = thread % 32;
  start(p, base, SIG == BARRIER ? 1 : 4, 128);
  uint32_t *global = p.global + blockIdx.x / 2 * (kSlotBytes / 4);
  uint32_t full = smem(base + kFull), empty = smem(base + kEmpty);
  if (group == 0 && rank == 0) {
    uint32_t remote = mapa(full, 1);
    uint32_t slot = STORE == STS ? smem(base) : mapa(smem(base), 1);
    for (uint32_t i = 0; i < p.iterations; ++i) {
      if (i)
        wait(empty, (i - 1) & 1, 1, p);
      uint32_t value = i + 1;
#pragma unroll
      for (int j = 0; j < kLoads / 4; ++j) { // each warp a quarter of the slot
        uint32_t at = place(j * 4 + thread / 32, lane, p.conflict);
        if (STORE == STS)
          asm volatile("st.shared.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(slot + at),
                       "r"(value)
                       : "memory");
        else if (STORE == STG)
          asm volatile(
              "st.global.v4.u32 [%0], {%1,%1,%1,%1};" ::"l"(global + at / 4),
              "r"(value)
              : "memory");
        else
          asm volatile(
              "st.shared::cluster.v4.u32 [%0], {%1,%1,%1,%1};" ::"r"(slot + at),
              "r"(value)
              : "memory");
      }
      if (STORE == STSC_FENCE_BULK)
        asm volatile("fence.proxy.async;" ::: "memory");
      signal<SIG>(full, remote, thread);
    }
    asm volatile("bar.sync 1, 128;" ::: "memory");
    *(volatile uint32_t *)(base + kDone) = 1;
  }
  if (group == 1 && rank == 1) {
    uint32_t from = mapa(smem(base), 0), remoteEmpty = mapa(empty, 0);
    unsigned wrong = 0, rounds = 0;
    for (uint32_t i = 0; i < p.iterations; ++i) {
      wait(full, i & 1, p.waitCluster, p);
      if (STORE == STSC_BULK || STORE == STSC_FENCE_BULK) {
        if (thread == 0)
          asm volatile(
              "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;\n"
              "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::"l"(
                  global),
              "r"(smem(base)), "r"(kSlotBytes)
              : "memory");
        asm volatile("bar.sync 2, 128;" ::: "memory");
      }
      unsigned bad = 0;
#pragma unroll
      for (int j = kLoads / 4 - 1; j >= 0; --j) {
        uint32_t at = place(j * 4 + thread / 32, lane, p.conflict), r[4];
        if (STORE == STS)
          load4<LDSC>(r, from + at, nullptr);
        else if (STORE == STSC)
          load4<LDS>(r, smem(base) + at, nullptr);
        else
          load4<LDG>(r, 0, global + at / 4);
        for (uint32_t x : r)
          bad += x != i + 1;
      }
      wrong += bad;
      rounds += bad != 0;
      if (STORE == STSC_BULK || STORE == STSC_FENCE_BULK)
        asm volatile("bar.sync 2, 128;" ::: "memory");
      if (i + 1 < p.iterations)
        arriveRelease(remoteEmpty);
    }
    count(p, wrong, rounds);
    asm volatile("bar.sync 2, 128;" ::: "memory");
    *(volatile uint32_t *)(base + kDone) = 1;
  }
  if (group >= 2 && p.hogs && (p.hogCTAs >> rank & 1))
    hog(p, base, threadIdx.x / 32);
  __syncthreads();
  clusterSync();
}

#define CHECK(x)                                                               \
  do {                                                                         \
    cudaError_t e = (x);                                                       \
    if (e != cudaSuccess) {                                                    \
      printf("%s: %s\n", #x, cudaGetErrorString(e));                           \
      return 1;                                                                \
    }                                                                          \
  } while (0)

struct Row {
  const char *name;
  void (*kernel)(Params);
  uint32_t write, writerRank, waitCluster, valuesPerRound;
};
#define L(load, use, sig, write, rank, cluster)                                \
  {#load " use=" #use " " #sig " by " #write,                                  \
   loads<load, use, sig>,                                                      \
   write,                                                                      \
   rank,                                                                       \
   cluster,                                                                    \
   128 * kLoads * 4}
#define S(store, sig, cluster)                                                 \
  {#store " " #sig " wait.cluster=" #cluster,                                  \
   stores<store, sig>,                                                         \
   ST,                                                                         \
   1,                                                                          \
   cluster,                                                                    \
   128 * kLoads}

int main(int argc, char **argv) {
  uint32_t iterations = argc > 1 ? atoi(argv[1]) : 20000;
  Row rows[] = {
      L(LDMATRIX, NONE, DEFAULT, ST, 1, 0),
      L(LDMATRIX, NONE, DEFAULT, ST_ASYNC, 1, 0),
      L(LDMATRIX, NONE, DEFAULT, BULK, 1, 0),
      L(LDMATRIX, NONE, BARRIER, ST, 1, 0),
      L(LDMATRIX, NONE, FENCE_CTA, ST, 1, 0),
      L(LDMATRIX, NONE, FENCE_PROXY, ST, 1, 0),
      L(LDMATRIX, NONE, RELEASE, ST, 1, 1),
      L(LDMATRIX, NONE, LOCAL, ST, 0, 0),
      L(LDMATRIX, NONE, LOCAL, ST_ASYNC, 0, 0),
      L(LDMATRIX, NONE, LOCAL, BULK, 0, 0),
      L(LDMATRIX, ONE, DEFAULT, ST, 1, 0),
      L(LDMATRIX, ONE, DEFAULT, ST_ASYNC, 1, 0),
      L(LDMATRIX, ONE, DEFAULT, BULK, 1, 0),
      L(LDMATRIX, ONE, BARRIER, ST, 1, 0),
      L(LDMATRIX, ONE, LOCAL, ST_ASYNC, 0, 0),
      L(LDS, NONE, DEFAULT, ST, 1, 0),
      L(LDS, NONE, BARRIER, ST, 1, 0),
      L(LDS, NONE, RELEASE, ST, 1, 1),
      L(LDS, NONE, LOCAL, ST, 0, 0),
      L(LDS, ONE, DEFAULT, ST, 1, 0),
      L(LDS, ONE, BARRIER, ST, 1, 0),
      L(LDSC, NONE, DEFAULT, ST, 1, 0),
      L(LDSC, NONE, BARRIER, ST, 1, 0),
      L(LDSC, NONE, RELEASE, ST, 1, 1),
      L(LDSC, ONE, DEFAULT, ST, 1, 0),
      L(LDSC, ONE, BARRIER, ST, 1, 0),
      L(LDG, NONE, DEFAULT, ST, 1, 0),
      L(LDG, NONE, BARRIER, ST, 1, 0),
      L(LDG, NONE, RELEASE, ST, 1, 1),
      L(LDG, NONE, LOCAL, ST, 0, 0),
      L(LDG, ONE, DEFAULT, ST, 1, 0),
      S(STS, DEFAULT, 0),
      S(STS, DEFAULT, 1),
      S(STS, BARRIER, 0),
      S(STS, FENCE_CTA, 0),
      S(STS, FENCE_PROXY, 0),
      S(STS, RELEASE, 1),
      S(STSC, DEFAULT, 0),
      S(STSC, BARRIER, 0),
      S(STSC, RELEASE, 1),
      S(STSC_BULK, DEFAULT, 0),
      S(STSC_FENCE_BULK, DEFAULT, 0),
      S(STG, DEFAULT, 0),
      S(STG, FENCE_CTA, 0),
      S(STG, RELEASE, 1),
  };
  cudaDeviceProp prop;
  CHECK(cudaGetDeviceProperties(&prop, 0));
  const uint32_t clusters = 48;
  unsigned long long *counters;
  uint32_t *global;
  CHECK(cudaMallocManaged(&counters, 3 * sizeof(*counters)));
  CHECK(cudaMalloc(&global, clusters * kSlotBytes));
  const int only = argc > 2 ? atoi(argv[2]) : -1;
  if (only < 1)
    printf("%s, %u clusters of 2, %u rounds each\n", prop.name, clusters,
           iterations);
  if (only < 1)
    printf("wrong rounds (of warps' threads) / wrong values; hogs: none, "
           "ldmatrix, wgmma on CTA 0, wgmma on both, each without and with "
           "bank conflicts\n");
  if (only >= int(sizeof(rows) / sizeof(*rows)))
    return 2;
  for (const Row &row : rows) {
    if (only >= 0 && &row != rows + only)
      continue;
    CHECK(cudaFuncSetAttribute(
        row.kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, kBytes));
    double values = double(clusters) * iterations * row.valuesPerRound;
    printf("%-42s %8.0fM values:", row.name, values / 1e6);
    for (int variant = 0; variant < 8; ++variant) {
      uint32_t hogs = variant / 2 == 0 ? 0 : variant / 2 == 1 ? 1 : 2;
      Params p = {iterations,
                  0,
                  hogs,
                  variant / 2 == 3 ? 3u : 1u,
                  uint32_t(variant & 1),
                  row.write,
                  row.writerRank,
                  row.waitCluster,
                  0,
                  global,
                  counters,
                  counters + 1,
                  counters + 2};
      memset(counters, 0, 3 * sizeof(*counters));
      CHECK(cudaMemset(global, 0, clusters * kSlotBytes));
      cudaLaunchConfig_t config = {};
      config.gridDim = dim3(2 * clusters);
      config.blockDim = dim3(512);
      config.dynamicSmemBytes = kBytes;
      cudaLaunchAttribute attribute;
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim = {2, 1, 1};
      config.attrs = &attribute;
      config.numAttrs = 1;
      CHECK(cudaLaunchKernelEx(&config, row.kernel, p));
      CHECK(cudaDeviceSynchronize());
      printf(" %llu/%llu", counters[1], counters[0]);
      fflush(stdout);
    }
    printf("\n");
  }
  return 0;
}
