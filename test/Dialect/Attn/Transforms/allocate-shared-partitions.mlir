// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared{print-map=true}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=MAP
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #s128, shared>
!h = !attn.buffer<64x32xf16, #attn.swizzled<span = 64>, shared>
!row = tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
!rowb = !attn.buffer<64xf32, #attn.rows, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>

gpu.module @kernels {
  // Buffers of two partitions share nothing, whatever the order of the text; nor
  // do two of one partition. What is dead before shares bytes with them.
  // Mbarriers go behind, at 8 bytes.
  // mbarriers count too.
  // REMARK: Function=partitions {{.*}}, bytes=16672, bytes-without-reuse=24864,
  // CHECK-LABEL: gpu.func @partitions
  // CHECK-SAME: attn.shared_bytes = 16672 : i64
  // CHECK-DAG: attn.alloc {name = "before", offset = 0 : i64}
  // CHECK-DAG: attn.alloc {name = "a", offset = 0 : i64}
  // CHECK-DAG: attn.alloc {name = "b", offset = 8192 : i64}
  // CHECK-DAG: attn.alloc {name = "rows", offset = 16384 : i64}
  // CHECK-DAG: attn.mbarrier.alloc {name = "full", offset = 16640 : i64} : <3>
  // CHECK-DAG: attn.mbarrier.alloc {offset = 16664 : i64} : <1>
  // MAP: shared memory, 16672 bytes
  // MAP: 16384     256  rows, live
  // MAP-NEXT: 16640      24  full, mbarriers
  // MAP-NEXT: 16664       8  mbarriers, mbarriers
  gpu.func @partitions(%t: !tile, %r: !row, %map: !map, %i: i32) kernel {
    %before = attn.alloc {name = "before"} : !b
    %a = attn.alloc {name = "a"} : !b
    %b = attn.alloc {name = "b"} : !b
    %full = attn.mbarrier.alloc {name = "full"} : !attn.mbarriers<3>
    %other = attn.mbarrier.alloc : !attn.mbarriers<1>
    attn.local_store %t, %before : !tile, !b
    %0 = attn.local_load %before : !b -> !tile
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %rows = attn.alloc {name = "rows"} : !rowb
      %ones = arith.constant dense<1.0> : !row
      attn.local_store %ones, %rows : !row, !rowb
      %1 = attn.local_load %a : !b -> !tile
    }
    partition "producer" warps 4 registers 96 {
      attn.tma.load %map[%i, %i], %b barrier %full[%i] : !attn.mbarriers<3> : !map, !b
    }
    gpu.return
  }

  // Given offsets stay, and others go behind them.
  // CHECK-LABEL: gpu.func @given
  // CHECK-SAME: attn.shared_bytes = 8232 : i64
  // CHECK-DAG: attn.mbarrier.alloc {name = "x", offset = 8216 : i64} : <1>
  // CHECK-DAG: attn.mbarrier.alloc {name = "y", offset = 8224 : i64} : <1>
  gpu.func @given(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %y = attn.mbarrier.alloc {name = "y"} : !attn.mbarriers<1>
    %x = attn.mbarrier.alloc {name = "x", offset = 8216 : i64} : !attn.mbarriers<1>
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }
}
