// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared{print-map=true}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=MAP
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring = !attn.buffer<2x64x64xf16, #s128, shared>
!row = tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
!rowb = !attn.buffer<64xf32, #attn.rows, shared>

gpu.module @kernels {
  // Buffers that are live at the same time: the largest first, rows of 256 bytes
  // behind the others, at 128 bytes.
  // CHECK-LABEL: gpu.func @together
  // CHECK-SAME: attn.shared_bytes = 25088 : i64
  // CHECK-DAG: attn.alloc {name = "rows", offset = 24576 : i64}
  // CHECK-DAG: attn.alloc {name = "more", offset = 24832 : i64}
  // CHECK-DAG: attn.alloc {name = "a", offset = 16384 : i64}
  // CHECK-DAG: attn.alloc {name = "ring", offset = 0 : i64}
  gpu.func @together(%t: !tile, %r: !row, %i: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %rows = attn.alloc {name = "rows"} : !rowb
    %more = attn.alloc {name = "more"} : !rowb
    %a = attn.alloc {name = "a"} : !b
    %ring = attn.alloc {name = "ring"} : !ring
    %s = attn.slot %ring[%i] : !ring -> !b
    attn.local_store %r, %rows : !row, !rowb
    attn.local_store %r, %more : !row, !rowb
    attn.local_store %t, %a : !tile, !b
    attn.local_store %t, %s : !tile, !b
    %0 = attn.local_load %rows : !rowb -> !row
    %1 = attn.local_load %more : !rowb -> !row
    %2 = attn.local_load %a : !b -> !tile
    %3 = attn.local_load %s : !b -> !tile
    gpu.return
  }

  // One after the other: the same bytes.
  // REMARK: Function=in_turn {{.*}}, bytes=8192, bytes-without-reuse=16384,
  // CHECK-LABEL: gpu.func @in_turn
  // CHECK-SAME: attn.shared_bytes = 8192 : i64
  // CHECK: attn.alloc {name = "a", offset = 0 : i64}
  // CHECK: attn.alloc {name = "b", offset = 0 : i64}
  // MAP: shared memory, 8192 bytes
  // MAP-NEXT: {{^ +0 +8192  a, live \[.*\]$}}
  // MAP-NEXT: {{^ +0 +8192  b, live \[.*\]$}}
  gpu.func @in_turn(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %b = attn.alloc {name = "b"} : !b
    attn.local_store %t, %a : !tile, !b
    %0 = attn.local_load %a : !b -> !tile
    attn.local_store %0, %b : !tile, !b
    %1 = attn.local_load %b : !b -> !tile
    gpu.return
  }

  // A hole: q is dead between its last read and the next write of all of it. A
  // ring in a loop between them takes its bytes.
  // REMARK: Function=hole {{.*}}, bytes=16384, bytes-without-reuse=24576,
  // CHECK-LABEL: gpu.func @hole
  // CHECK-SAME: attn.shared_bytes = 16384 : i64
  // CHECK: attn.alloc {name = "q", offset = 0 : i64}
  // CHECK: attn.alloc {name = "ring", offset = 0 : i64}
  // MAP: shared memory, 16384 bytes
  // MAP-NEXT: q, live [{{[0-9]+}}, {{[0-9]+}}] [{{[0-9]+}}, {{[0-9]+}}]
  gpu.func @hole(%t: !tile, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %q = attn.alloc {name = "q"} : !b
    %ring = attn.alloc {name = "ring"} : !ring
    attn.local_store %t, %q : !tile, !b
    %0 = attn.local_load %q : !b -> !tile
    scf.for %i = %zero to %n step %one : i32 {
      %slot = arith.andi %i, %one : i32
      %s = attn.slot %ring[%slot] : !ring -> !b
      attn.local_store %t, %s : !tile, !b
      %1 = attn.local_load %s : !b -> !tile
    }
    attn.local_store %t, %q : !tile, !b
    %2 = attn.local_load %q : !b -> !tile
    gpu.return
  }

  // No hole where only a part is written anew, or the write may not happen.
  // CHECK-LABEL: gpu.func @no_hole
  // CHECK-SAME: attn.shared_bytes = 32768 : i64
  gpu.func @no_hole(%t: !tile, %c: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %part = attn.alloc {name = "part"} : !ring
    %maybe = attn.alloc {name = "maybe"} : !b
    %other = attn.alloc {name = "other"} : !b
    %s0 = attn.slot %part[%zero] : !ring -> !b
    %s1 = attn.slot %part[%one] : !ring -> !b
    attn.local_store %t, %s0 : !tile, !b
    attn.local_store %t, %s1 : !tile, !b
    attn.local_store %t, %maybe : !tile, !b
    %0 = attn.local_load %s0 : !b -> !tile
    %1 = attn.local_load %maybe : !b -> !tile
    attn.local_store %t, %other : !tile, !b
    %2 = attn.local_load %other : !b -> !tile
    attn.local_store %t, %s0 : !tile, !b
    scf.if %c {
      attn.local_store %t, %maybe : !tile, !b
    }
    %3 = attn.local_load %s1 : !b -> !tile
    %4 = attn.local_load %maybe : !b -> !tile
    gpu.return
  }

  // Data that passes from one iteration to the next: b is live in all of the
  // loop although a is written behind its last read there.
  // CHECK-LABEL: gpu.func @carried
  // CHECK-SAME: attn.shared_bytes = 16384 : i64
  gpu.func @carried(%t: !tile, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.alloc {name = "a"} : !b
    %b = attn.alloc {name = "b"} : !b
    attn.local_store %t, %b : !tile, !b
    scf.for %i = %zero to %n step %one : i32 {
      %1 = attn.local_load %b : !b -> !tile
      attn.local_store %t, %a : !tile, !b
      %2 = attn.local_load %a : !b -> !tile
    }
    gpu.return
  }

  // A copy on its way keeps its buffer until it is awaited.
  // CHECK-LABEL: gpu.func @in_flight
  // CHECK-SAME: attn.shared_bytes = 16384 : i64
  gpu.func @in_flight(%g: !attn.global<?x64xf16>, %row: i32, %t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %b = attn.alloc {name = "b"} : !b
    attn.cp_async %g[%row], %a : !attn.global<?x64xf16>, !b
    attn.cp_async.commit
    attn.cp_async.wait {pending = 1}
    attn.local_store %t, %b : !tile, !b
    %0 = attn.local_load %b : !b -> !tile
    attn.cp_async.wait {pending = 0}
    gpu.return
  }

  // A declared overlay: one offset, as much as the largest needs.
  // CHECK-LABEL: gpu.func @overlay
  // CHECK-SAME: attn.shared_bytes = 24576 : i64
  // CHECK: attn.alloc {name = "small", offset = 0 : i64, overlay = "group"}
  // CHECK: attn.alloc {name = "other", offset = 16384 : i64}
  // CHECK: attn.alloc {name = "large", offset = 0 : i64, overlay = "group"}
  gpu.func @overlay(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %small = attn.alloc {name = "small", overlay = "group"} : !b
    %other = attn.alloc {name = "other"} : !b
    %large = attn.alloc {name = "large", overlay = "group"} : !ring
    attn.local_store %t, %small : !tile, !b
    attn.local_store %t, %other : !tile, !b
    %0 = attn.local_load %small : !b -> !tile
    %s = attn.slot %large[%zero] : !ring -> !b
    attn.local_store %t, %s : !tile, !b
    %1 = attn.local_load %s : !b -> !tile
    %2 = attn.local_load %other : !b -> !tile
    gpu.return
  }

  // Offsets that are there stay, and the others go around them.
  // CHECK-LABEL: gpu.func @given
  // CHECK-SAME: attn.shared_bytes = 20480 : i64
  // CHECK: attn.alloc {name = "a", offset = 12288 : i64}
  // CHECK: attn.alloc {name = "b", offset = 0 : i64}
  gpu.func @given(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 12288 : i64} : !b
    %b = attn.alloc {name = "b"} : !b
    attn.local_store %t, %a : !tile, !b
    attn.local_store %t, %b : !tile, !b
    %0 = attn.local_load %a : !b -> !tile
    %1 = attn.local_load %b : !b -> !tile
    gpu.return
  }

  // Behind 8320 bytes a swizzled buffer would start at the next multiple of 1024:
  // in front of them it leaves no gap, though it is the smaller one.
  // CHECK-LABEL: gpu.func @aligned
  // CHECK-SAME: attn.shared_bytes = 16512 : i64
  // CHECK: attn.alloc {name = "rows", offset = 8192 : i64}
  // CHECK: attn.alloc {name = "a", offset = 0 : i64}
  gpu.func @aligned(%t: !tile, %g: !attn.global<?x32xf32>, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %rows = attn.alloc {name = "rows"} : !attn.buffer<65x32xf32, #attn.rows, shared>
    %a = attn.alloc {name = "a"} : !b
    attn.local_store %t, %a : !tile, !b
    attn.copy_out %rows, %g[%row] : !attn.buffer<65x32xf32, #attn.rows, shared>, !attn.global<?x32xf32>
    attn.local_store %t, %a : !tile, !b
    attn.copy_out %rows, %g[%row] : !attn.buffer<65x32xf32, #attn.rows, shared>, !attn.global<?x32xf32>
    %0 = attn.local_load %a : !b -> !tile
    gpu.return
  }

  // A kernel without buffers, and a buffer that nobody touches.
  // CHECK-LABEL: gpu.func @none
  // CHECK-SAME: attn.shared_bytes = 0 : i64
  gpu.func @none() kernel attributes {attn.warps = array<i64: 4, 1>} {
    gpu.return
  }
  // MAP: x, never used
  gpu.func @unused() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %x = attn.alloc {name = "x"} : !b
    gpu.return
  }
}
