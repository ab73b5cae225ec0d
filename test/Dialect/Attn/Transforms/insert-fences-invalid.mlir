// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --split-input-file -verify-diagnostics

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!g = !attn.global<?x64xf16>
gpu.module @kernels {
  gpu.func @no_wait(%g: !g, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    // expected-note@below {{the copy starts here; an attn.cp_async.wait has to cover its group}}
    attn.cp_async %g[%row], %a : !g, !b
    attn.cp_async.commit
    gpu.barrier
    // expected-error@below {{read of buffer 'a', whose copy is not awaited}}
    %0 = attn.local_load %a : !b -> !tile
    gpu.return
  }
}

// -----

// The wait does not reach the last group.
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!g = !attn.global<?x64xf16>
gpu.module @kernels {
  gpu.func @wait_too_little(%g: !g, %row: i32, %t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %b = attn.alloc {name = "b"} : !b
    attn.cp_async %g[%row], %a : !g, !b
    attn.cp_async.commit
    // expected-note@below {{the copy starts here}}
    attn.cp_async %g[%row], %b : !g, !b
    attn.cp_async.commit
    attn.cp_async.wait {pending = 1}
    %0 = attn.local_load %a : !b -> !tile
    // expected-error@below {{write of buffer 'b', whose copy is not awaited}}
    attn.local_store %t, %b : !tile, !b
    gpu.return
  }
}

// -----

// A wait does not cover what is not in a group yet.
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!g = !attn.global<?x64xf16>
gpu.module @kernels {
  gpu.func @uncommitted(%g: !g, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    // expected-note@below {{the copy starts here}}
    attn.cp_async %g[%row], %a : !g, !b
    attn.cp_async.wait {pending = 0}
    // expected-error@below {{read of buffer 'a', whose copy is not awaited}}
    %0 = attn.local_load %a : !b -> !tile
    gpu.return
  }
}

// -----

// Awaited on one path only.
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!g = !attn.global<?x64xf16>
gpu.module @kernels {
  gpu.func @one_path(%g: !g, %row: i32, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    // expected-note@below {{the copy starts here}}
    attn.cp_async %g[%row], %a : !g, !b
    attn.cp_async.commit
    scf.if %c {
      attn.cp_async.wait {pending = 0}
    }
    // expected-error@below {{read of buffer 'a', whose copy is not awaited}}
    %0 = attn.local_load %a : !b -> !tile
    gpu.return
  }
}

// -----

// The next iteration's copy goes into the slot that is still being filled.
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.swizzled<span = 128>, shared>
!g = !attn.global<?x64xf16>
gpu.module @kernels {
  gpu.func @overrun(%g: !g, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %k = attn.alloc {name = "k"} : !ring
    %r = scf.for %i = %zero to %n step %one iter_args(%slot = %zero) -> (i32) : i32 {
      attn.cp_async.wait {pending = 2}
      %s = attn.slot %k[%slot] {distance = 0} : !ring -> !b
      // expected-error@below {{write of buffer 'k', whose copy is not awaited}}
      // expected-note@below {{the copy starts here}}
      attn.cp_async %g[%i], %s : !g, !b
      attn.cp_async.commit
      %next = arith.xori %slot, %one : i32
      scf.yield %next : i32
    }
    gpu.return
  }
}

// -----

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @closed(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>, attn.shared_bytes = 0 : i64} {
    // expected-error@below {{expected an offset: shared memory is laid out, and no pass creates buffers any more}}
    %a = attn.alloc {name = "a"} : !b
    gpu.return
  }
}

// -----

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @region(%t: !tile, %i: index) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    // expected-error@below {{expected accesses to shared memory in branches and in loops that run one iteration after the other}}
    scf.parallel (%j) = (%i) to (%i) step (%i) {
      attn.local_store %t, %a : !tile, !b
      scf.reduce
    }
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error@below {{expected one block, got 2}}
  gpu.func @blocks() kernel attributes {attn.warps = array<i64: 4, 1>} {
    cf.br ^next
  ^next:
    gpu.return
  }
}
