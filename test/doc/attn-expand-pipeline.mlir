// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

gpu.module @kernels {
  gpu.func @walk(%p: !llvm.ptr<1>, %stride: i64, %n: i32) kernel
      attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %offset = arith.constant 0 : i64
    %x = arith.constant 0.0 : f32
    %k = attn.global_view %p[%offset] rows %n stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %ring = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    %r = attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 iter_args(%x : f32) {
    ^bb0(%key: i32, %acc: f32):
      %slot = attn.stage %k[%key], %ring : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %next = arith.addf %acc, %acc : f32
      attn.yield %next : f32
    }
    gpu.return
  }
}

// CHECK: attn.alloc {name = "k"} : <2x64x64xf16, #attn.auto, shared>
// CHECK: scf.if
// CHECK:   attn.cp_async {{.*}} {in_bounds}
// CHECK: attn.cp_async.commit
// CHECK: scf.for
// CHECK:   attn.cp_async.wait {pending = 0 : i64}
// CHECK:   scf.if
// CHECK:     attn.slot {{.*}} {distance = 1 : i64}
// CHECK:     attn.cp_async
// CHECK:   attn.cp_async.commit
// CHECK:   attn.slot {{.*}} {distance = 0 : i64}
// CHECK:   arith.addf
// CHECK: } {attn.phase = #attn<kv_phase interior>}
