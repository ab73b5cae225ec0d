// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-move-rare-paths))' -split-input-file | FileCheck %s
// RUN: attn-opt %s -pass-pipeline='builtin.module(gpu.module(attn-move-rare-paths))' -split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// REMARK-COUNT-2: [Passed] rare-path {{.*}} Remark="the loop is left where the path is taken", inputs=0
// REMARK-COUNT-2: [Missed] rare-path {{.*}} Reason="the path stays where it is: more than arithmetic follows it"
// REMARK-NOT: rare-path

// An effect behind the path happens once: in the inner loop only where the path
// is not taken, and behind the path. Warps may meet in both.
// CHECK-LABEL: gpu.func @effect
// CHECK: %[[IN:.*]]:4 = scf.while
// CHECK: %[[HOT:.*]] = arith.xori %[[RARE:.*]], %true
// CHECK: nvvm.bar.warp.sync
// CHECK: %[[BOTH:.*]] = arith.andi %[[ELECTED:.*]], %[[HOT]]
// CHECK: scf.if %[[BOTH]] {
// CHECK-NEXT: nvvm.mbarrier.arrive
// CHECK: scf.condition
// CHECK: scf.if %[[IN]]#3
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if %[[ELECTED]] {
// CHECK-NEXT: nvvm.mbarrier.arrive
gpu.module @kernels {
  gpu.func @effect(%count: index, %x: f32, %rare: i1, %elected: i1, %b: !llvm.ptr<3>, %mask: i32) -> f32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %i = %zero to %count step %one iter_args(%acc = %x) -> f32 {
      %kept = scf.if %rare -> f32 {
        %half = arith.mulf %x, %x : f32
        scf.yield %half : f32
      } else {
        scf.yield %acc : f32
      } {attn.leave_loop}
      nvvm.bar.warp.sync %mask : i32
      scf.if %elected {
        nvvm.mbarrier.arrive %b : !llvm.ptr<3>
      }
      scf.yield %kept : f32
    }
    gpu.return %sum : f32
  }
}

// -----

// A counter without a sign is compared without one.
// CHECK-LABEL: gpu.func @unsigned
// CHECK: arith.cmpi ult
// CHECK: scf.while
// CHECK-NOT: arith.cmpi slt
// CHECK: arith.cmpi ult
// CHECK-NOT: arith.cmpi slt
gpu.module @kernels {
  gpu.func @unsigned(%count: i32, %x: f32, %rare: i1) -> f32 {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %sum = scf.for unsigned %i = %zero to %count step %one iter_args(%acc = %x) -> f32 : i32 {
      %kept = scf.if %rare -> f32 {
        %half = arith.mulf %x, %x : f32
        scf.yield %half : f32
      } else {
        scf.yield %acc : f32
      } {attn.leave_loop}
      scf.yield %kept : f32
    }
    gpu.return %sum : f32
  }
}

// -----

// A store that every warp comes to cannot be left out: the path stays.
// CHECK-LABEL: gpu.func @stays
// CHECK-NOT: scf.while
// CHECK: scf.for
// CHECK: attn.leave_loop
gpu.module @kernels {
  gpu.func @stays(%count: index, %x: f32, %rare: i1, %p: !llvm.ptr<3>) -> f32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %i = %zero to %count step %one iter_args(%acc = %x) -> f32 {
      %kept = scf.if %rare -> f32 {
        %half = arith.mulf %x, %x : f32
        scf.yield %half : f32
      } else {
        scf.yield %acc : f32
      } {attn.leave_loop}
      llvm.store %kept, %p : f32, !llvm.ptr<3>
      scf.yield %kept : f32
    }
    gpu.return %sum : f32
  }
}

// -----

// Nor can a branch with another side, one of which every warp takes.
// CHECK-LABEL: gpu.func @otherwise
// CHECK-NOT: scf.while
// CHECK: scf.for
// CHECK: attn.leave_loop
gpu.module @kernels {
  gpu.func @otherwise(%count: index, %x: f32, %rare: i1, %elected: i1, %b: !llvm.ptr<3>) -> f32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %i = %zero to %count step %one iter_args(%acc = %x) -> f32 {
      %kept = scf.if %rare -> f32 {
        %half = arith.mulf %x, %x : f32
        scf.yield %half : f32
      } else {
        scf.yield %acc : f32
      } {attn.leave_loop}
      scf.if %elected {
        nvvm.mbarrier.arrive %b : !llvm.ptr<3>
      } else {
        llvm.store %kept, %b : f32, !llvm.ptr<3>
      }
      scf.yield %kept : f32
    }
    gpu.return %sum : f32
  }
}

// -----

// A path that does not ask for it stays too.
// CHECK-LABEL: gpu.func @other
// CHECK-NOT: scf.while
// CHECK: scf.for
gpu.module @kernels {
  gpu.func @other(%count: index, %x: f32, %rare: i1) -> f32 {
    %zero = arith.constant 0 : index
    %one = arith.constant 1 : index
    %sum = scf.for %i = %zero to %count step %one iter_args(%acc = %x) -> f32 {
      %kept = scf.if %rare -> f32 {
        %half = arith.mulf %x, %x : f32
        scf.yield %half : f32
      } else {
        scf.yield %acc : f32
      }
      scf.yield %kept : f32
    }
    gpu.return %sum : f32
  }
}
