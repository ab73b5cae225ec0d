// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,cse))' | FileCheck %s

gpu.module @kernels {
  // A warp searches together: its threads read the ends of 128 parts at once, and go on in
  // the first one whose end is not before what they look for.
  // CHECK-LABEL: gpu.func @find(
  // CHECK-SAME: %[[KEYS:[^:]*]]: !llvm.ptr<1>, %[[QUERIES:[^:]*]]: !llvm.ptr<1>, %[[OUT:[^:]*]]: !llvm.ptr<1>, %[[FROM:[^:]*]]: i32, %[[TO:[^:]*]]: i32, %[[FIRST:[^:]*]]: i32, %[[LAST:[^:]*]]: i32
  gpu.func @find(%keys: !llvm.ptr<1>, %queries: !llvm.ptr<1>, %out: !llvm.ptr<1>, %from: i32, %to: i32, %first: i32, %last: i32, %stride: i64) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK: %[[ORDERED:.*]] = arith.cmpi eq
    %ordered = attn.in_order %queries[%first by %stride, %last] of i32
    // CHECK-DAG: llvm.getelementptr %[[QUERIES]]
    // CHECK-DAG: %[[END:.*]] = arith.select %[[ORDERED]], %[[TO]], %[[FROM]] : i32
    // CHECK: %[[BEGIN:.*]]:2 = scf.while (%{{.*}} = %[[FROM]], %{{.*}} = %[[END]])
    // CHECK: arith.ceildivui %{{.*}}, %c128_i32
    // CHECK: arith.cmpi slt, %{{.*}}, %[[LEAST:.*]] : i32
    // CHECK: nvvm.vote.sync ballot
    // CHECK: llvm.intr.ctpop
    // CHECK-COUNT-3: nvvm.vote.sync ballot
    // CHECK-NOT: nvvm.
    %begin = attn.find_key first %keys from %from to %to like %queries from %first to %last if %ordered : !llvm.ptr<1>, !llvm.ptr<1> of i32
    // Only where the last key is not one of them there is a search.
    // CHECK: arith.cmpi sgt, %{{.*}}, %[[MOST:.*]] : i32
    // CHECK: %[[START:.*]] = arith.select %{{.*}}, %[[BEGIN]]#0, %[[TO]] : i32
    // CHECK: %[[FOUND:.*]]:2 = scf.while (%{{.*}} = %[[START]], %{{.*}} = %[[TO]])
    // CHECK: arith.cmpi sle, %{{.*}}, %[[MOST]] : i32
    // CHECK-COUNT-4: nvvm.vote.sync ballot
    %end = attn.find_key last %keys from %begin to %to like %queries from %first to %last if %ordered : !llvm.ptr<1>, !llvm.ptr<1> of i32
    // Queries of several documents have no key in common.
    // CHECK: arith.cmpi eq, %{{.*}}, %{{.*}} : i32
    // CHECK-NOT: scf.while
    // CHECK: arith.select %{{.*}}, %[[FOUND]]#0, %[[BEGIN]]#0 : i32
    %same = attn.find_key same %keys from %begin to %end like %queries from %first to %last if %ordered : !llvm.ptr<1>, !llvm.ptr<1> of i32
    llvm.store %begin, %out : i32, !llvm.ptr<1>
    llvm.store %end, %out : i32, !llvm.ptr<1>
    llvm.store %same, %out : i32, !llvm.ptr<1>
    gpu.return
  }

  // All threads look at pairs of neighbours, and tell each other.
  // CHECK-LABEL: gpu.func @ordered(
  // CHECK-SAME: %[[IDS:[^:]*]]: !llvm.ptr<1>
  gpu.func @ordered(%ids: !llvm.ptr<1>, %out: !llvm.ptr<1>, %rows: i32, %stride: i64, %count: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    // CHECK: gpu.thread_id
    // CHECK: scf.for
    // CHECK: arith.divui
    // CHECK: llvm.load %{{.*}} : !llvm.ptr<1> -> i64
    // CHECK: arith.cmpi sgt
    // CHECK: nvvm.barrier #nvvm.reduction<or>
    %sorted = attn.in_order %ids[%rows by %stride, %count] of i64
    %flag = arith.extui %sorted : i1 to i32
    llvm.store %flag, %out : i32, !llvm.ptr<1>
    gpu.return
  }

  // A thread that is alone reads the ends of eight parts.
  // CHECK-LABEL: gpu.func @alone(
  gpu.func @alone(%keys: !llvm.ptr<1>, %out: !llvm.ptr<1>, %to: i32, %ordered: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    attn.elect {
      %zero = arith.constant 0 : i32
      // CHECK: arith.ceildivui %{{.*}}, %c8_i32
      // CHECK-COUNT-8: arith.cmpi slt
      // CHECK-NOT: nvvm.vote
      %begin = attn.find_key first %keys from %zero to %to like %keys from %zero to %zero if %ordered : !llvm.ptr<1>, !llvm.ptr<1> of i32
      llvm.store %begin, %out : i32, !llvm.ptr<1>
    }
    gpu.return
  }
}
