// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-nvvm))' | FileCheck %s

// The data layout is on the module before translation: 32-bit pointers to
// shared memory, 64-bit integers aligned to 64.
// CHECK: gpu.module @kernels attributes {llvm.data_layout = "e-p3:32:32-{{.*}}i64:64
gpu.module @kernels {
  // CHECK-LABEL: llvm.func @kernel
  // CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
  // CHECK-SAME: nvvm.kernel
  // CHECK-SAME: nvvm.reqntid = array<i32: 128, 1, 1>
  gpu.func @kernel(%p: !llvm.ptr<1>, %n: i32) kernel attributes {known_block_size = array<i32: 128, 1, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    // Indices are 32 bits wide: no extension of a special register.
    // CHECK: %[[X:.*]] = nvvm.read.ptx.sreg.ctaid.x : i32
    // CHECK: nvvm.read.ptx.sreg.ctaid.y : i32
    // CHECK: nvvm.read.ptx.sreg.tid.x : i32
    // CHECK: nvvm.read.ptx.sreg.nctaid.z : i32
    // CHECK-NOT: llvm.sext
    %bx = gpu.block_id x
    %by = gpu.block_id y
    %tx = gpu.thread_id x
    %gz = gpu.grid_dim z
    %x = arith.index_cast %bx : index to i32
    %y = arith.index_cast %by : index to i32
    %t = arith.index_cast %tx : index to i32
    %z = arith.index_cast %gz : index to i32
    %s = arith.addi %x, %y : i32
    %s1 = arith.addi %t, %z : i32
    %one = arith.constant 1 : i32
    // CHECK: llvm.br ^[[HEAD:.*]](%
    // CHECK: ^[[HEAD]](%
    // CHECK: llvm.cond_br
    %r = scf.for %i = %s to %n step %one iter_args(%a = %s1) -> (i32) : i32 {
      %b = arith.addi %a, %i : i32
      // CHECK: nvvm.barrier
      gpu.barrier
      scf.yield %b : i32
    }
    llvm.store %r, %p : i32, !llvm.ptr<1>
    // CHECK: llvm.return
    gpu.return
  }

  // A tensor map is passed by value: 128 bytes at a multiple of 64, which stay
  // where they are.
  // CHECK-LABEL: llvm.func @map
  // CHECK-SAME: %{{.*}}: i32, %[[MAP:.*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
  gpu.func @map(%n: i32, %map: !attn.tensor_map<64x64xf16, swizzle = 128>) kernel {
    %address = builtin.unrealized_conversion_cast %map : !attn.tensor_map<64x64xf16, swizzle = 128> to !llvm.ptr
    // CHECK: nvvm.prefetch tensormap, %[[MAP]]
    nvvm.prefetch tensormap, %address : !llvm.ptr
    gpu.return
  }

  // A loop that is to stay one says so where it has one known trip, whose number
  // need not be folded, and nowhere else.
  // CHECK-LABEL: llvm.func @rolled
  // CHECK: {loop_annotation = #[[ROLLED:loop_annotation[0-9]*]]}
  // CHECK-NOT: loop_annotation
  // CHECK: llvm.return
  gpu.func @rolled(%n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %keys = arith.constant 300 : i32
    %block = arith.constant 128 : i32
    %blocks = arith.divui %keys, %block : i32
    %last = arith.subi %blocks, %one : i32
    scf.for %i = %zero to %last step %one : i32 {
      gpu.barrier
    } {attn.rolled}
    scf.for %i = %zero to %blocks step %one : i32 {
      gpu.barrier
    } {attn.rolled}
    scf.for %i = %zero to %n step %one : i32 {
      gpu.barrier
    } {attn.rolled}
    gpu.return
  }
}
