// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --remarks-filter='attn.insert-fences' -o /dev/null 2>&1 | FileCheck %s

// Slots are told apart by how their indices are computed: a copy goes to the next slot of a ring
// while this one is read. One barrier in each iteration orders both.

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

gpu.module @kernels {
  // CHECK: Function=counter_of_two | Remark="barriers inserted", count=1,
  gpu.func @counter_of_two(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring2
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring2 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    scf.for %i = %zero to %n step %one : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.andi %i, %one : i32
      %sum = arith.addi %i, %one : i32
      %ahead = arith.andi %sum, %one : i32
      %s1 = attn.slot %k[%ahead] : !ring2 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring2 -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }

  // CHECK: Function=counter_of_three | Remark="barriers inserted", count=1,
  gpu.func @counter_of_three(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    scf.for %i = %zero to %n step %one : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.remui %i, %three : i32
      %sum = arith.addi %one, %i : i32
      %ahead = arith.remsi %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }

  // CHECK: Function=counter_of_four | Remark="barriers inserted", count=1,
  gpu.func @counter_of_four(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring4
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring4 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    scf.for %i = %zero to %n step %one : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.remui %i, %four : i32
      %sum = arith.subi %i, %three : i32
      %ahead = arith.remui %sum, %four : i32
      %s1 = attn.slot %k[%ahead] : !ring4 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring4 -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }

  // CHECK: Function=counter_by_two | Remark="barriers inserted", count=1,
  gpu.func @counter_by_two(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    scf.for %i = %zero to %n step %two : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.remui %i, %three : i32
      %sum = arith.addi %i, %two : i32
      %ahead = arith.remui %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }

  // CHECK: Function=counter_from_five | Remark="barriers inserted", count=1,
  gpu.func @counter_from_five(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 2 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    scf.for %i = %five to %n step %one : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.remui %i, %three : i32
      %sum = arith.subi %i, %two : i32
      %ahead = arith.remui %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }

  // CHECK: Function=carried_equal | Remark="barriers inserted", count=1,
  gpu.func @carried_equal(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.addi %slot, %zero : i32
      %sum = arith.addi %slot, %one : i32
      %last = arith.cmpi eq, %sum, %three : i32
      %ahead = arith.select %last, %zero, %sum : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %ahead : i32
    }
    gpu.return
  }

  // CHECK: Function=carried_unequal | Remark="barriers inserted", count=1,
  gpu.func @carried_unequal(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.addi %slot, %zero : i32
      %sum = arith.addi %slot, %one : i32
      %inner = arith.cmpi ne, %sum, %three : i32
      %ahead = arith.select %inner, %sum, %zero : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %ahead : i32
    }
    gpu.return
  }

  // CHECK: Function=carried_below | Remark="barriers inserted", count=1,
  gpu.func @carried_below(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.addi %slot, %zero : i32
      %sum = arith.addi %slot, %one : i32
      %inner = arith.cmpi ult, %sum, %three : i32
      %ahead = arith.select %inner, %sum, %zero : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %ahead : i32
    }
    gpu.return
  }

  // CHECK: Function=carried_wrapped | Remark="barriers inserted", count=1,
  gpu.func @carried_wrapped(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.addi %slot, %zero : i32
      %sum = arith.addi %slot, %one : i32
      %beyond = arith.cmpi sge, %sum, %three : i32
      %wrapped = arith.subi %sum, %three : i32
      %ahead = arith.select %beyond, %wrapped, %sum : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %ahead : i32
    }
    gpu.return
  }

  // CHECK: Function=carried_flipped | Remark="barriers inserted", count=1,
  gpu.func @carried_flipped(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring2
    %first = arith.constant 1 : i32
    %s0 = attn.slot %k[%first] : !ring2 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %one) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.addi %slot, %zero : i32
      %ahead = arith.xori %slot, %one : i32
      %s1 = attn.slot %k[%ahead] : !ring2 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring2 -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %ahead : i32
    }
    gpu.return
  }

  // CHECK: Function=carried_count | Remark="barriers inserted", count=1,
  gpu.func @carried_count(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.remui %slot, %three : i32
      %next = arith.addi %slot, %one : i32
      %ahead = arith.remui %next, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %next : i32
    }
    gpu.return
  }

  // Behind a loop with constant bounds slots are known by their numbers: of the two copies on
  // their way the older one is to slot 2, which is read when it has ended.
  // CHECK: Function=epilogue | Remark="barriers inserted", count=2,
  gpu.func @epilogue(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %m1 = arith.constant -1 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %two = arith.constant 2 : i32
    %three = arith.constant 3 : i32
    %four = arith.constant 4 : i32
    %five = arith.constant 5 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring3
    %first = arith.constant 0 : i32
    %s0 = attn.slot %k[%first] : !ring3 -> !b
    attn.cp_async %g[%zero], %s0 : !g, !b
    attn.cp_async.commit
    %t0 = attn.slot %k[%one] : !ring3 -> !b
    attn.cp_async %g[%zero], %t0 : !g, !b
    attn.cp_async.commit
    scf.for %i = %zero to %five step %one : i32 {
      attn.cp_async.wait {pending = 1}
      %index = arith.remui %i, %three : i32
      %sum = arith.addi %i, %two : i32
      %ahead = arith.remui %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      %0 = attn.local_load %s : !b -> !tile
    }
    attn.cp_async.wait {pending = 1}
    %last = attn.slot %k[%two] : !ring3 -> !b
    %1 = attn.local_load %last : !b -> !tile
    gpu.return
  }
}
