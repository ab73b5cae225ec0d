// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences,attn-insert-fences))' | FileCheck %s
// What indices say, 'distance' need not say.
// RUN: sed 's/ {distance = [0-9]*}//' %s | attn-opt --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

gpu.module @kernels {
  // Write, read, write: two barriers, each at the latest place.
  // REMARK: Function=straight | Remark="barriers inserted", count=2
  // REMARK: Function=straight | Remark="a barrier separates a write of 'a' from a read of 'a'", first=attn.local_store, second=attn.local_load
  // REMARK: Function=straight | Remark="a barrier separates a read of 'a' from a write of 'a'", first=attn.local_load, second=attn.local_store
  // CHECK-LABEL: gpu.func @straight
  // CHECK: attn.local_store
  // CHECK-NEXT: arith.addf
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_load
  // CHECK-NEXT: attn.local_load
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: gpu.return
  gpu.func @straight(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    %u = arith.addf %t, %t : !tile
    %0 = attn.local_load %a : !b -> !tile
    %1 = attn.local_load %a : !b -> !tile
    attn.local_store %u, %a : !tile, !b
    gpu.return
  }

  // One barrier for two buffers; none for buffers apart.
  // CHECK-LABEL: gpu.func @shared_barrier
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_load
  // CHECK-NEXT: attn.local_load
  // CHECK-NEXT: gpu.return
  gpu.func @shared_barrier(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %b = attn.alloc {name = "b", offset = 8192 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    attn.local_store %t, %b : !tile, !b
    %0 = attn.local_load %a : !b -> !tile
    %1 = attn.local_load %b : !b -> !tile
    gpu.return
  }

  // Two buffers in the same bytes are the same memory.
  // CHECK-LABEL: gpu.func @same_bytes
  // CHECK: attn.local_load
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: gpu.return
  gpu.func @same_bytes(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %b = attn.alloc {name = "b", offset = 4096 : i64} : !b
    %0 = attn.local_load %a : !b -> !tile
    attn.local_store %t, %b : !tile, !b
    gpu.return
  }

  // Who stores an element stores it again without one. Values that lie elsewhere need one.
  // CHECK-LABEL: gpu.func @again
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: gpu.return
  gpu.func @again(%t: !tile, %other: tensor<64x64xf16, #attn.mma<warps = [2, 2]>>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    attn.local_store %t, %a : !tile, !b
    attn.local_store %other, %a : tensor<64x64xf16, #attn.mma<warps = [2, 2]>>, !b
    gpu.return
  }

  // Barriers that are there count.
  // CHECK-LABEL: gpu.func @given
  // CHECK-COUNT-1: gpu.barrier
  // CHECK-NOT: gpu.barrier
  gpu.func @given(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    gpu.barrier
    %0 = attn.local_load %a : !b -> !tile
    gpu.return
  }

  // Double buffering: one barrier in each iteration orders the copy that was
  // awaited before its read, and the last read of a slot before the next copy
  // into it. It stands in front of the branch.
  // REMARK: Function=double_buffer | Remark="barriers inserted", count=1
  // CHECK-LABEL: gpu.func @double_buffer
  // CHECK: scf.for
  // CHECK: attn.cp_async.wait
  // CHECK-NEXT: arith.xori
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: scf.if
  // CHECK-NOT: gpu.barrier
  gpu.func @double_buffer(%g: !g, %n: i32, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring
    %s0 = attn.slot %k[%zero] : !ring -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %next = arith.xori %slot, %one : i32
      scf.if %c {
        %s1 = attn.slot %k[%next] {distance = 1} : !ring -> !b
        attn.cp_async %g[%i], %s1 : !g, !b
      }
      attn.cp_async.commit
      %s = attn.slot %k[%slot] {distance = 0} : !ring -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %next : i32
    }
    gpu.return
  }

  // Three slots, two groups in flight: slots are told apart from one loop to
  // the next, and from those with a constant index before the first.
  // REMARK: Function=three_slots | Remark="barriers inserted", count=2
  // CHECK-LABEL: gpu.func @three_slots
  // CHECK: scf.for
  // CHECK: attn.cp_async.wait
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.cp_async
  // CHECK: scf.for
  // CHECK: attn.cp_async.wait
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.cp_async
  // CHECK-NOT: gpu.barrier
  gpu.func @three_slots(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %s0 = attn.slot %k[%zero] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %s1 = attn.slot %k[%one] : !ring3 -> !b
    attn.cp_async %g[%zero], %s1 : !g, !b
    attn.cp_async.commit
    %first = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 1}
      %sum = arith.addi %slot, %two : i32
      %ahead = arith.remui %sum, %three : i32
      %s2 = attn.slot %k[%ahead] {distance = 2} : !ring3 -> !b
      attn.cp_async %g[%i], %s2 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%slot] {distance = 0} : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      %more = arith.addi %slot, %one : i32
      %next = arith.remui %more, %three : i32
      scf.yield %next : i32
    }
    %second = scf.for %i = %zero to %n step %one iter_args(%slot = %first) -> (i32) : i32 {
      attn.cp_async.wait {pending = 1}
      %sum = arith.addi %slot, %two : i32
      %ahead = arith.remui %sum, %three : i32
      %s2 = attn.slot %k[%ahead] {distance = 2} : !ring3 -> !b
      attn.cp_async %g[%i], %s2 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%slot] {distance = 0} : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      %more = arith.addi %slot, %one : i32
      %next = arith.remui %more, %three : i32
      scf.yield %next : i32
    }
    gpu.return
  }

  // Of indices from elsewhere nothing is known: the read may be of the slot just
  // written, so that it needs a barrier of its own.
  // REMARK: Function=unknown_slots | Remark="barriers inserted", count=2
  // CHECK-LABEL: gpu.func @unknown_slots
  // CHECK: scf.for
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.local_store
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.local_load
  gpu.func @unknown_slots(%t: !tile, %n: i32, %x: i32, %y: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring
    scf.for %i = %zero to %n step %one : i32 {
      %s1 = attn.slot %k[%x] : !ring -> !b
      attn.local_store %t, %s1 : !tile, !b
      %s = attn.slot %k[%y] : !ring -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }

  // What a loop reads and somebody wrote before it: one barrier in front of the
  // loop, not one in each iteration.
  // CHECK-LABEL: gpu.func @before_loop
  // CHECK: attn.local_store
  // CHECK: gpu.barrier
  // CHECK-NEXT: scf.for
  // CHECK-NOT: gpu.barrier
  gpu.func @before_loop(%t: !tile, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    scf.for %i = %zero to %n step %one : i32 {
      %0 = attn.local_load %a : !b -> !tile
    }
    gpu.return
  }

  // A barrier in the loop anyway: it serves what was written before, too.
  // CHECK-LABEL: gpu.func @served_by_loop
  // CHECK: scf.for
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: attn.local_load
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_load
  // CHECK-NOT: gpu.barrier
  gpu.func @served_by_loop(%t: !tile, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %b = attn.alloc {name = "b", offset = 8192 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    scf.for %i = %zero to %n step %one : i32 {
      attn.local_store %t, %b : !tile, !b
      %0 = attn.local_load %a : !b -> !tile
      %1 = attn.local_load %b : !b -> !tile
    }
    gpu.return
  }

  // Inside a branch only where both accesses are in it.
  // CHECK-LABEL: gpu.func @in_branch
  // CHECK: scf.if
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.local_load
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.local_store
  gpu.func @in_branch(%t: !tile, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    scf.if %c {
      attn.local_store %t, %a : !tile, !b
      %0 = attn.local_load %a : !b -> !tile
    }
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }

  // Before offsets are there, different buffers are different memory.
  // CHECK-LABEL: gpu.func @no_offsets
  // CHECK-NOT: gpu.barrier
  // CHECK: gpu.return
  gpu.func @no_offsets(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %b = attn.alloc {name = "b"} : !b
    attn.local_store %t, %a : !tile, !b
    %0 = attn.local_load %b : !b -> !tile
    gpu.return
  }
}
