// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' --verify-diagnostics

#row = #attn.blocked<per_thread = [1, 1], warps = 4, order = [1, 0]>

gpu.module @odd [#attn.target<chip = "sm_103a">] {
  gpu.func @halves(%p: !llvm.ptr<1>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %start = arith.constant 0 : i64
    %stride = arith.constant 16 : i64
    %g = attn.global_view %p[%start] rows %n stride %stride {alignment = 16} : !attn.global<?x1xf32>
    %t = attn.global_load %g[%zero] : !attn.global<?x1xf32> -> tensor<128x1xf32, #row>
    // expected-error @below {{expected threads to hold an even number of exponents for 'halves', got 1}}
    %e = attn.exp2 %t {halves} : tensor<128x1xf32, #row>
    attn.global_store %e, %g[%zero] : tensor<128x1xf32, #row>, !attn.global<?x1xf32>
    gpu.return
  }
}
