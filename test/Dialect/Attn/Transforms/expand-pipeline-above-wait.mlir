// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline,canonicalize,cse))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: sed 's/ above_wait iter_args/ iter_args/' %s | attn-opt --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s --check-prefix=BELOW

// Q is awaited before the loop: the first block's copies start above that, and
// what they need goes with them. A store to another buffer and a load from global
// memory between are no obstacle; an access to the ring and a count from a branch
// are.

// REMARK: kv-loop | Category:attn.expand-pipeline | Function=above_wait | {{.*}}above-wait=true
// REMARK: kv-loop | Category:attn.expand-pipeline | Function=above_store | {{.*}}above-wait=true
// REMARK: kv-loop | Category:attn.expand-pipeline | Function=below_store | {{.*}}above-wait=false
// REMARK: kv-loop | Category:attn.expand-pipeline | Function=below_load | {{.*}}above-wait=false
// REMARK: kv-loop | Category:attn.expand-pipeline | Function=below_branch | {{.*}}above-wait=false

// BELOW-LABEL: gpu.func @above_wait
// BELOW: attn.cp_async.wait {pending = 0 : i64}
// BELOW: attn.local_load %q
// BELOW: attn.cp_async %

// CHECK-LABEL: gpu.func @above_wait
// CHECK: attn.cp_async %arg0[%c0_i32], %q
// CHECK-NEXT: attn.cp_async.commit
// CHECK: %[[N:.*]] = arith.minsi
// CHECK: scf.if
// CHECK: attn.cp_async.commit
// CHECK-NEXT: attn.cp_async.wait {pending = 1 : i64}
// CHECK-NEXT: attn.local_load %q
// CHECK: scf.for
// CHECK-LABEL: gpu.func @above_store
// CHECK: scf.if
// CHECK: attn.cp_async
// CHECK: attn.cp_async.wait {pending = 1 : i64}
// CHECK: llvm.load
// CHECK: attn.local_store
// CHECK-LABEL: gpu.func @below_store
// CHECK: attn.cp_async.wait {pending = 0 : i64}
// CHECK: attn.local_store
// CHECK: attn.cp_async
// CHECK-LABEL: gpu.func @below_load
// CHECK: attn.cp_async.wait {pending = 0 : i64}
// CHECK: attn.local_load
// CHECK: attn.cp_async
// CHECK-LABEL: gpu.func @below_branch
// CHECK: attn.cp_async.wait {pending = 0 : i64}
// CHECK: attn.local_load
// CHECK: attn.cp_async
gpu.module @kernels {
  gpu.func @above_wait(%g: !attn.global<?x64xf16>, %a: i32, %b: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.cp_async %g[%zero], %q : !attn.global<?x64xf16>, !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.cp_async.commit
    attn.cp_async.wait {pending = 0}
    %t = attn.local_load %q : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    %n = arith.minsi %a, %b : i32
    %r = attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 above_wait iter_args(%t : tensor<64x64xf16, #attn.auto>) {
    ^bb0(%key: i32, %acc: tensor<64x64xf16, #attn.auto>):
      %kb = attn.stage %g[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      %u = attn.local_load %kb : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
      %sum = arith.addf %acc, %u : tensor<64x64xf16, #attn.auto>
      attn.yield %sum : tensor<64x64xf16, #attn.auto>
    }
    attn.local_store %r, %q : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
  gpu.func @above_store(%p: !llvm.ptr<1>, %g: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.cp_async.wait {pending = 0}
    %x = llvm.load %p : !llvm.ptr<1> -> f16
    %t = tensor.splat %x : tensor<64x64xf16, #attn.auto>
    attn.local_store %t, %q : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 above_wait {
    ^bb0(%key: i32):
      %kb = attn.stage %g[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      attn.yield
    }
    gpu.return
  }
  gpu.func @below_store(%g: !attn.global<?x64xf16>, %n: i32, %t: tensor<64x64xf16, #attn.auto>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.cp_async.wait {pending = 0}
    %slot = attn.slot %k[%zero] : !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.local_store %t, %slot : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 above_wait {
    ^bb0(%key: i32):
      %kb = attn.stage %g[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      attn.yield
    }
    gpu.return
  }
  gpu.func @below_load(%g: !attn.global<?x64xf16>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.cp_async.wait {pending = 0}
    %slot = attn.slot %k[%zero] : !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
    %t = attn.local_load %slot : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
    attn.kv_loop %zero, %zero, %n, %n block 64 stages 2 above_wait {
    ^bb0(%key: i32):
      %kb = attn.stage %g[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      attn.yield
    }
    attn.local_store %t, %q : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
  gpu.func @below_branch(%g: !attn.global<?x64xf16>, %n: i32, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %q = attn.alloc {name = "q"} : !attn.buffer<64x64xf16, #attn.auto, shared>
    %k = attn.alloc {name = "k"} : !attn.buffer<2x64x64xf16, #attn.auto, shared>
    attn.cp_async.wait {pending = 0}
    %t = attn.local_load %q : !attn.buffer<64x64xf16, #attn.auto, shared> -> tensor<64x64xf16, #attn.auto>
    %count = scf.if %c -> i32 {
      scf.yield %zero : i32
    } else {
      scf.yield %n : i32
    }
    attn.kv_loop %zero, %zero, %count, %count block 64 stages 2 above_wait {
    ^bb0(%key: i32):
      %kb = attn.stage %g[%key], %k : !attn.global<?x64xf16>, !attn.buffer<2x64x64xf16, #attn.auto, shared> -> !attn.buffer<64x64xf16, #attn.auto, shared>
      attn.yield
    }
    attn.local_store %t, %q : tensor<64x64xf16, #attn.auto>, !attn.buffer<64x64xf16, #attn.auto, shared>
    gpu.return
  }
}
