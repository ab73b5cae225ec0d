// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,cse))' | FileCheck %s

// Each warp deals runs for itself. Lane i has sequences 2 i and 2 i + 1: the blocks of
// 64 keys of both, at least one, in a sum over all lanes, of which 24 - 34 are shared
// beside a run for each sequence. Of up to 2^22 blocks of each the sum has room in 32 bits.

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @deal(
  // CHECK-SAME: %[[LENGTHS:[^:]*]]: !llvm.ptr<1>, %[[OUT:[^:]*]]: !llvm.ptr<1>, %[[INDEX:[^:]*]]: i32, %[[CAPACITY:[^:]*]]: i32
  gpu.func @deal(%lengths: !llvm.ptr<1>, %out: !llvm.ptr<1>, %index: i32, %capacity: i32) kernel attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64} {
    // CHECK-NOT: gpu.barrier
    // CHECK: arith.cmpi ult, %{{.*}}, %c34_i32
    // CHECK: llvm.getelementptr %[[LENGTHS]]
    // CHECK: llvm.load
    // CHECK: arith.minsi %{{.*}}, %[[CAPACITY]]
    // CHECK: arith.minui %{{.*}}, %c4194304_i32
    // CHECK: llvm.load
    // CHECK-COUNT-5: nvvm.shfl.sync bfly
    // CHECK: arith.divui %{{.*}}, %c30_i32
    // CHECK-COUNT-2: arith.minui %{{.*}}, %c7_i32
    // CHECK-COUNT-5: nvvm.shfl.sync up
    // CHECK: %[[BEHIND:.*]] = arith.cmpi ule, %{{.*}}, %[[INDEX]]
    // CHECK: %[[LANES:.*]] = nvvm.vote.sync ballot %{{.*}}, %[[BEHIND]]
    // CHECK: %[[OWNER:.*]] = llvm.intr.ctpop(%[[LANES]])
    // CHECK-COUNT-3: nvvm.shfl.sync idx %{{.*}}, %{{.*}}, %[[OWNER]]
    // CHECK-NOT: gpu.barrier
    %sequence, %run, %runs = attn.deal_run %index of 64 from %lengths[34] up to %capacity most 7
    llvm.store %sequence, %out : i32, !llvm.ptr<1>
    llvm.store %run, %out : i32, !llvm.ptr<1>
    llvm.store %runs, %out : i32, !llvm.ptr<1>
    gpu.return
  }

  // A plan takes the least length of a run that leaves at most 64 of them, found by halves.
  // Runs stand in the order of their lengths, for which each lane asks all others, and the
  // lane that has the run tells lane 0, which writes the record.
  // CHECK-LABEL: gpu.func @plan(
  // CHECK-SAME: %{{[^:]*}}: !llvm.ptr<1>, %[[PLAN:[^:]*]]: !llvm.ptr<1>, %[[INDEX:[^:]*]]: i32
  gpu.func @plan(%lengths: !llvm.ptr<1>, %plan: !llvm.ptr<1>, %index: i32, %capacity: i32) kernel attributes {attn.warps = array<i64: 1, 1>} {
    // CHECK-COUNT-10: nvvm.shfl.sync bfly
    // CHECK: arith.divui %{{.*}}, %c7_i32
    // CHECK: arith.divui %{{.*}}, %c64_i32
    // CHECK: arith.divui %{{.*}}, %c30_i32
    // CHECK: scf.while
    // CHECK: arith.cmpi ult
    // CHECK-COUNT-5: nvvm.shfl.sync bfly
    // CHECK: arith.cmpi ule, %{{.*}}, %c64_i32
    // CHECK: scf.yield
    // CHECK: scf.for
    // CHECK-COUNT-4: nvvm.shfl.sync idx
    // CHECK: scf.yield
    // CHECK: arith.subi %[[INDEX]]
    // CHECK: nvvm.vote.sync ballot
    // CHECK: llvm.intr.cttz
    // CHECK-COUNT-4: nvvm.shfl.sync idx
    // CHECK: scf.if
    // CHECK: llvm.getelementptr %[[PLAN]]
    // CHECK-COUNT-4: llvm.store
    // CHECK-NOT: gpu.barrier
    attn.plan_work %index of 64 from %lengths[34] up to %capacity most 7 into %plan
    gpu.return
  }

  // Each lane has blocks of two sequences, in a sum over the lanes before it, and writes
  // the record of each that the run has a piece of. The run's own numbers are those of the
  // lanes that have its first and last one, and lane 0 writes them.
  // CHECK-LABEL: gpu.func @pieces(
  // CHECK-SAME: %{{[^:]*}}: !llvm.ptr<1>, %[[PLAN:[^:]*]]: !llvm.ptr<1>, %[[INDEX:[^:]*]]: i32
  gpu.func @pieces(%lengths: !llvm.ptr<1>, %plan: !llvm.ptr<1>, %index: i32, %capacity: i32) kernel attributes {attn.warps = array<i64: 1, 1>} {
    // CHECK-COUNT-5: nvvm.shfl.sync up
    // CHECK: nvvm.shfl.sync idx
    // CHECK: arith.divui %{{.*}}, %c66_i32
    // CHECK: %[[LENGTH:.*]] = arith.maxui %{{.*}}, %c4_i32
    // CHECK: arith.muli %[[INDEX]], %[[LENGTH]]
    // CHECK: scf.if
    // CHECK: llvm.getelementptr %[[PLAN]]
    // CHECK-COUNT-4: llvm.store
    // CHECK: scf.if
    // CHECK-COUNT-4: llvm.store
    // CHECK-COUNT-20: nvvm.shfl.sync bfly
    // CHECK: scf.if
    // CHECK-COUNT-4: llvm.store
    // CHECK-NOT: gpu.barrier
    attn.plan_pieces %index of 66 from %lengths[34] up to %capacity block 64 start 1 fewest 2 into %plan
    gpu.return
  }
}
