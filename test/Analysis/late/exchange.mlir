// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' --remarks-filter='attn.check.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=PROVED
// RUN: %python %S/../Inputs/move-signal.py %s load > %t.load.mlir
// RUN: not attn-opt %t.load.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: %python %S/../Inputs/move-signal.py %s arithmetic > %t.arithmetic.mlir
// RUN: not attn-opt %t.arithmetic.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: %python %S/../Inputs/move-signal.py %s barrier > %t.barrier.mlir
// RUN: not attn-opt %t.barrier.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers))' -o /dev/null 2>&1 | FileCheck %s
// RUN: %python %S/../Inputs/move-signal.py %s fence > %t.fence.mlir
// RUN: not attn-opt %t.fence.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{profile=hw}))' -o /dev/null 2>&1 | FileCheck %s

// Two CTAs send each other a tile in each trip. The slot is handed back behind
// the reduction, whose shuffles use what was loaded. Behind the load alone,
// behind arithmetic, which may sink below the signal, or behind a barrier of
// the warps or a fence the signal may overtake the load.

// PROVED: proved{{.*}}assumptions=A4,

// CHECK: error: race: write by warp {{[0-3]}} of CTA {{[01]}} of 's' is not ordered after read by warp {{[0-3]}} of CTA {{[01]}}, in the memory of CTA {{[01]}}: a signal to another CTA may overtake the read
// CHECK: note: the read
// CHECK: note: the signal: nothing has used what was read by then; it has to stand after the first use, or to have the scope of the cluster (cluster-scope)

// The witness names the three.

// RUN: not attn-opt %t.load.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{witness=%t.json}))' -o /dev/null 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=WITNESS < %t.json
// WITNESS: "fault": "race"
// WITNESS: "op": "attn.local_send"
// WITNESS: "op": "attn.local_load"
// WITNESS: "op": "attn.mbarrier.arrive"
// WITNESS: the signal: nothing has used what was read by then

// With the cluster's scope all of them are right.

// RUN: attn-opt %t.load.mlir --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof cluster-scope}))' --remarks-filter='attn.check.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=SCOPE
// SCOPE: proved{{.*}}assumptions=none,

gpu.module @kernels {
  gpu.func @exchange(%sum: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %c1024 = arith.constant 1024 : i32
    %start = arith.constant 0 : i64
    %stride = arith.constant 1 : i64
    %s = attn.alloc {name = "s", offset = 0} : !attn.buffer<64x64xf32, #attn.swizzled<span = 32>, shared>
    %full = attn.mbarrier.alloc {name = "full", offset = 16384} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 16392} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.init %empty {count = 8} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    attn.cluster_barrier
    %out = attn.global_view %sum[%start] rows %c1024 stride %stride : !attn.global<?xf32>
    attn.warp_specialize
    partition "rows" warps 4 tiles [4, 1] registers 240 {
      %first = arith.constant dense<1.000000e+00> : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
      %end = scf.for %i = %c0 to %c5 step %c1 iter_args(%parity = %c0) -> (i32) : i32 {
        %odd = arith.xori %parity, %c1 : i32
        attn.mbarrier.wait %empty[%c0] parity %odd : !attn.mbarriers<1>
        attn.elect {
          attn.mbarrier.expect_tx %full[%c0] {bytes = 16384} : !attn.mbarriers<1>
        }
        attn.local_send %first, %s barrier %full[%c0] : !attn.mbarriers<1> : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x64xf32, #attn.swizzled<span = 32>, shared>
        attn.mbarrier.wait %full[%c0] parity %parity : !attn.mbarriers<1>
        %t = attn.local_load %s : !attn.buffer<64x64xf32, #attn.swizzled<span = 32>, shared> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
        // behind load
        attn.named_barrier %c1 {threads = 128}
        // behind barrier
        attn.fence.proxy_async
        // behind fence
        %twice = arith.addf %t, %first : tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
        // behind arithmetic
        %row = attn.reduce add %twice : tensor<64x64xf32, #attn.mma<warps = [4, 1]>> -> tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
        attn.mbarrier.arrive %empty[%c0] {ctas = 2} : !attn.mbarriers<1>
        attn.global_store %row, %out[%i] : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, !attn.global<?xf32>
        scf.yield %odd : i32
      }
    }
    attn.cluster_barrier
    gpu.return
  }
}
