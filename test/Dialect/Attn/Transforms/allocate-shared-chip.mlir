// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared{chip=sm_90a}))' | FileCheck %s
// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' 2>&1 | FileCheck %s --check-prefix=SM80
// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared{chip=sm_1}))' 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK: attn.shared_bytes = 196608
// SM80: error: shared memory does not fit: expected at most 166912 bytes on sm_80, got 196608 (k 3 x 65536)
// UNKNOWN: error: {{.*}}sm_1
!ring = !attn.buffer<3x256x128xf16, #attn.swizzled<span = 128>, shared>
!b = !attn.buffer<256x128xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @large(%i: i32, %g: !attn.global<?x128xf16>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %k = attn.alloc {name = "k"} : !ring
    %s = attn.slot %k[%i] : !ring -> !b
    attn.copy_out %s, %g[%i] : !b, !attn.global<?x128xf16>
    gpu.return
  }
}
