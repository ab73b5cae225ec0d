// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-move-rare-paths))' | FileCheck %s

gpu.module @kernels {
  gpu.func @sum(%count: index, %x: f32, %rare: i1) -> f32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %i = %zero to %count step %one iter_args(%acc = %x) -> f32 {
      %next = arith.addf %acc, %x : f32
      %kept = scf.if %rare -> f32 {
        %half = arith.mulf %next, %acc : f32
        scf.yield %half : f32
      } else {
        scf.yield %next : f32
      } {attn.leave_loop}
      %last = arith.negf %kept : f32
      scf.yield %last : f32
    }
    gpu.return %sum : f32
  }
}

// CHECK: gpu.func @sum(%[[COUNT:.*]]: index, %[[X:.*]]: f32, %[[RARE:.*]]: i1)
// CHECK: scf.while
// CHECK: %[[IN:.*]]:6 = scf.while (%[[I:.*]] = %{{.*}}, %[[ACC:.*]] = %{{.*}})
// CHECK-NEXT: %[[NEXT:.*]] = arith.addf %[[ACC]], %[[X]]
// CHECK: %[[LAST:.*]] = arith.negf %[[NEXT]]
// CHECK: %[[MORE:.*]] = arith.cmpi slt, %{{.*}}, %[[COUNT]]
// CHECK: scf.condition(%{{.*}}) %{{.*}}, %[[LAST]], %[[MORE]], %[[RARE]], %[[NEXT]], %[[ACC]]
// CHECK: scf.if %[[IN]]#3
// CHECK: %[[HALF:.*]] = arith.mulf %[[IN]]#4, %[[IN]]#5
// CHECK: arith.negf %[[HALF]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[IN]]#1
// CHECK: scf.condition(%[[IN]]#2)
