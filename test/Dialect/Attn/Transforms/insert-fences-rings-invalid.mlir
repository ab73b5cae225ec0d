// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' -split-input-file -verify-diagnostics

// Slots that may be the one that a copy is on its way to.

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// Indices from elsewhere.

gpu.module @kernels {
  gpu.func @unknown(%g: !g, %n: i32, %x: i32, %y: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
      %index = arith.remui %x, %three : i32
      %ahead = arith.remui %y, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      // expected-note @below {{whether this is another slot is not known: its index and that of the copy's slot have to be constants, or one counter or carried value plus constants, modulo 3}}
      %s = attn.slot %k[%index] : !ring3 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// The remainder of a number below zero, as one without sign, is another one.

gpu.module @kernels {
  gpu.func @behind_zero(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
      %sum = arith.subi %i, %two : i32
      %ahead = arith.remui %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      // expected-note @below {{whether this is another slot is not known: its index and that of the copy's slot have to be constants, or one counter or carried value plus constants, modulo 3}}
      %s = attn.slot %k[%index] : !ring3 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// The counter starts below zero.

gpu.module @kernels {
  gpu.func @from_below_zero(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
    scf.for %i = %m1 to %n step %one : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.remui %i, %three : i32
      %sum = arith.addi %i, %one : i32
      %ahead = arith.remui %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      // expected-note @below {{whether this is another slot is not known: its index and that of the copy's slot have to be constants, or one counter or carried value plus constants, modulo 3}}
      %s = attn.slot %k[%index] : !ring3 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// The remainder is by another number than the depth.

gpu.module @kernels {
  gpu.func @other_depth(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
      %index = arith.remui %i, %two : i32
      %sum = arith.addi %i, %one : i32
      %ahead = arith.remui %sum, %two : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      // expected-note @below {{whether this is another slot is not known: its index and that of the copy's slot have to be constants, or one counter or carried value plus constants, modulo 3}}
      %s = attn.slot %k[%index] : !ring3 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// A sum beyond the depth becomes 0, and not what is left of it.

gpu.module @kernels {
  gpu.func @beyond(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
    %end = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 0}
      %index = arith.addi %slot, %zero : i32
      %sum = arith.addi %slot, %three : i32
      %over = arith.cmpi sge, %sum, %four : i32
      %ahead = arith.select %over, %zero, %sum : i32
      %s1 = attn.slot %k[%ahead] : !ring4 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      // expected-note @below {{whether this is another slot is not known: its index and that of the copy's slot have to be constants, or one counter or carried value plus constants, modulo 4}}
      %s = attn.slot %k[%index] : !ring4 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
      scf.yield %ahead : i32
    }
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// A counter goes on where the index starts over.

gpu.module @kernels {
  gpu.func @counter_starts_over(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
      %inside = arith.cmpi slt, %i, %three : i32
      %index = arith.select %inside, %i, %zero : i32
      %sum = arith.addi %i, %one : i32
      %over = arith.cmpi sge, %sum, %three : i32
      %ahead = arith.select %over, %zero, %sum : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      // expected-note @below {{whether this is another slot is not known: its index and that of the copy's slot have to be constants, or one counter or carried value plus constants, modulo 3}}
      %s = attn.slot %k[%index] : !ring3 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }
}

// -----

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring2 = !attn.buffer<2x64x64xf16, #s128, shared>
!ring3 = !attn.buffer<3x64x64xf16, #s128, shared>
!ring4 = !attn.buffer<4x64x64xf16, #s128, shared>
!g = !attn.global<?x64xf16>

// The slots are known, and the copy is to the one that is read.

gpu.module @kernels {
  gpu.func @same(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
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
      %sum = arith.addi %i, %three : i32
      %ahead = arith.remui %sum, %three : i32
      %s1 = attn.slot %k[%ahead] : !ring3 -> !b
      // expected-note @below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
      attn.cp_async %g[%i], %s1 : !g, !b
      attn.cp_async.commit
      %s = attn.slot %k[%index] : !ring3 -> !b
      // expected-error @below {{read of buffer 'k', whose copy is not awaited}}
      %0 = attn.local_load %s : !b -> !tile
    }
    gpu.return
  }
}
