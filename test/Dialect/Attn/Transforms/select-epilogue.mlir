// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue{kind=direct}))' | FileCheck %s --check-prefix=DIRECT
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-select-epilogue))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

gpu.module @kernels {
  // A dead buffer of the right shape: the tile passes through it.
  // CHECK-LABEL: gpu.func @reuse
  // CHECK: attn.local_store %[[T:.*]], %[[Q:.*]] : tensor<128x64xf16, #attn.auto>
  // CHECK-NEXT: attn.copy_out %[[Q]], %[[G:.*]][%[[ROW:.*]]] :
  // CHECK-NEXT: gpu.return
  // REMARK: result | Category:attn.select-epilogue | Function=reuse | Remark="the result is staged", kind=staged, row-alignment=16, row-bytes=128, scratch-bytes=16384, staged-bytes=16384
  // DIRECT-LABEL: gpu.func @reuse
  // DIRECT: attn.global_store
  gpu.func @reuse(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<128x64xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<128x64xf16, #attn.auto, shared> : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // A larger dead buffer of another shape serves under another type.
  // CHECK-LABEL: gpu.func @reinterpret(
  // CHECK: %[[V:.*]] = attn.reinterpret %{{.*}} : <2x64x128xf16, #attn.auto, shared> -> <64x64xf32, #attn.auto, shared>
  // CHECK-NEXT: attn.local_store %{{.*}}, %[[V]]
  // CHECK-NEXT: attn.copy_out %[[V]]
  // REMARK: Function=reinterpret | {{.*}}kind=staged, row-alignment=16, row-bytes=256, scratch-bytes=32768, staged-bytes=16384
  gpu.func @reinterpret(%t: tensor<64x64xf32, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<2x64x128xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf32>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<2x64x128xf16, #attn.auto, shared> : tensor<64x64xf32, #attn.auto>, !attn.global<?x64xf32>
    gpu.return
  }

  // The dead buffer is too small: lanes exchange pieces instead.
  // CHECK-LABEL: gpu.func @too_small(
  // CHECK-NOT: attn.local_store
  // CHECK: %[[R:.*]] = attn.convert_layout %{{.*}} : tensor<128x64xf32, #attn.auto> -> tensor<128x64xf32, #attn.runs<parent = #attn.mma<warps = [4, 1]>>>
  // CHECK-NEXT: attn.global_store %[[R]]
  // REMARK: Function=too_small | {{.*}}kind=shuffled, row-alignment=16, row-bytes=256, scratch-bytes=16384, staged-bytes=32768
  gpu.func @too_small(%t: tensor<128x64xf32, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<128x64xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf32>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<128x64xf16, #attn.auto, shared> : tensor<128x64xf32, #attn.auto>, !attn.global<?x64xf32>
    gpu.return
  }

  // Neither a dead buffer nor rows of whole 64 bytes.
  // CHECK-LABEL: gpu.func @narrow(
  // CHECK-NOT: attn.convert_layout
  // CHECK: attn.global_store
  // REMARK: Function=narrow | {{.*}}kind=direct, row-alignment=16, row-bytes=48
  gpu.func @narrow(%t: tensor<128x24xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x24xf16>
    attn.store_result %t, %g[%row] : tensor<128x24xf16, #attn.auto>, !attn.global<?x24xf16>
    gpu.return
  }

  // Rows that several warps share are not shuffled.
  // CHECK-LABEL: gpu.func @shared_rows(
  // CHECK-NOT: attn.convert_layout
  // CHECK: attn.global_store
  gpu.func @shared_rows(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 2, 2>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // Unless each warp has a run of the row's columns.
  // CHECK-LABEL: gpu.func @column_runs(
  // CHECK: %[[PIECES:.*]] = attn.convert_layout {{.*}} -> tensor<64x64xf16, #attn.runs<parent = #attn.mma<warps = [4, 2], column_runs = true>>>
  // CHECK: attn.global_store %[[PIECES]],
  gpu.func @column_runs(%t: tensor<64x64xf16, #attn.mma<warps = [4, 2], column_runs = true>>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 2>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] : tensor<64x64xf16, #attn.mma<warps = [4, 2], column_runs = true>>, !attn.global<?x64xf16>
    gpu.return
  }

  // Of 32 bits four lanes fill a sector as they are.
  // CHECK-LABEL: gpu.func @runs_of_words(
  // CHECK-NOT: attn.convert_layout
  // CHECK: attn.global_store
  gpu.func @runs_of_words(%t: tensor<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 2>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf32>
    attn.store_result %t, %g[%row] : tensor<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>>, !attn.global<?x64xf32>
    gpu.return
  }

  // A loop's tile has the layout of what the loop awaits.
  // CHECK-LABEL: gpu.func @awaited_runs(
  // CHECK: attn.convert_layout {{.*}} -> tensor<64x64xf16, #attn.runs<parent = #attn.mma<warps = [4, 2], column_runs = true>>>
  gpu.func @awaited_runs(%a: !attn.buffer<64x64xf16, #attn.auto, shared>, %b: !attn.buffer<64x64xf16, #attn.auto, shared>, %t: tensor<64x64xf32, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sums = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %t) -> (tensor<64x64xf32, #attn.auto>) : i32 {
      %product = attn.wgmma %a, %b acc %sum : tensor<64x64xf32, #attn.auto> : !attn.buffer<64x64xf16, #attn.auto, shared>, <64x64xf16, #attn.auto, shared> -> <64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>>
      %next = attn.wgmma.wait %product {pending = 0 : i64} : !attn.inflight<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true>> -> tensor<64x64xf32, #attn.auto>
      scf.yield %next : tensor<64x64xf32, #attn.auto>
    }
    %narrow = arith.truncf %sums : tensor<64x64xf32, #attn.auto> to tensor<64x64xf16, #attn.auto>
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %narrow, %g[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // Rows that start anywhere cannot be written in 16-byte pieces.
  // CHECK-LABEL: gpu.func @unaligned(
  // CHECK-NOT: attn.local_store
  // CHECK: attn.global_store
  // REMARK: Function=unaligned | {{.*}}kind=direct, row-alignment=2
  gpu.func @unaligned(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<128x64xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 2 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<128x64xf16, #attn.auto, shared> : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // Without a stated alignment that of an element holds.
  // CHECK-LABEL: gpu.func @no_alignment(
  // CHECK-NOT: attn.local_store
  // CHECK: attn.global_store
  // REMARK: Function=no_alignment | {{.*}}kind=direct, row-alignment=2
  gpu.func @no_alignment(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<128x64xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<128x64xf16, #attn.auto, shared> : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // Rows that no swizzle divides take the padding of their layout; the same shape
  // has the same.
  // CHECK-LABEL: gpu.func @short_rows(
  // CHECK: attn.local_store
  // CHECK: attn.copy_out
  // REMARK: Function=short_rows | {{.*}}kind=staged, row-alignment=16, row-bytes=80, scratch-bytes=[[N:[0-9]+]], staged-bytes=[[N]]
  gpu.func @short_rows(%t: tensor<128x40xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<128x40xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x40xf16>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<128x40xf16, #attn.auto, shared> : tensor<128x40xf16, #attn.auto>, !attn.global<?x40xf16>
    gpu.return
  }

  // Staging that is asked for gets a buffer of its own.
  // CHECK-LABEL: gpu.func @own_buffer(
  // CHECK: %[[B:.*]] = attn.alloc {name = "staging"} : <128x64xf16, #attn.auto, shared>
  // CHECK-NEXT: attn.local_store %{{.*}}, %[[B]]
  // CHECK-NEXT: attn.copy_out %[[B]]
  // REMARK: Function=own_buffer | {{.*}}kind=staged, row-alignment=16, row-bytes=128, scratch-bytes=0, staged-bytes=16384
  gpu.func @own_buffer(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind staged>} : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // Direct stores that are asked for.
  // CHECK-LABEL: gpu.func @direct(
  // CHECK-NOT: attn.local_store
  // CHECK: attn.global_store
  // REMARK: Function=direct | {{.*}}kind=direct
  gpu.func @direct(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32, %q: !attn.buffer<128x64xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] scratch %q : !attn.buffer<128x64xf16, #attn.auto, shared> {kind = #attn<epilogue_kind direct>} : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // Row values are stored directly.
  // CHECK-LABEL: gpu.func @row_values(
  // CHECK-NOT: attn.local_store
  // CHECK: attn.global_store
  // REMARK: Function=row_values | {{.*}}kind=direct, row-alignment=4, row-bytes=4
  gpu.func @row_values(%t: tensor<128xf32, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off : !attn.global<?xf32>
    attn.store_result %t, %g[%row] : tensor<128xf32, #attn.auto>, !attn.global<?xf32>
    gpu.return
  }

  // One thread of each warpgroup stores its rows by TMA. It waits for its last
  // copy before the buffer is written again, and at the end of the partition.
  // CHECK-LABEL: gpu.func @tma(
  // CHECK: %[[O:.*]] = attn.alloc
  // CHECK: scf.for %[[I:.*]] =
  // CHECK: attn.elect each_warpgroup {
  // CHECK-NEXT: attn.tma.wait {pending = 0 : i64, read}
  // CHECK-NEXT: }
  // CHECK-NEXT: attn.local_store %[[T:.*]], %[[O]]
  // CHECK-NEXT: attn.elect each_warpgroup {
  // CHECK-NEXT: attn.tma.store %[[O]], %{{.*}}[%[[I]], %{{.*}}] {warpgroups = 2 : i64}
  // CHECK-NEXT: attn.tma.commit
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  // CHECK-NEXT: attn.elect each_warpgroup {
  // CHECK-NEXT: attn.tma.wait {pending = 0 : i64, read}
  // CHECK-NEXT: }
  // CHECK-NEXT: }
  // CHECK-NEXT: partition "producer"
  // REMARK: Function=tma | Remark="the result is tma", kind=tma, row-alignment=16, row-bytes=128, scratch-bytes=16384, staged-bytes=16384
  gpu.func @tma(%x: f16, %p: !llvm.ptr<1>, %off: i64, %n: i32, %map: !attn.tensor_map<64x64xf16, swizzle = 128>) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %o = attn.alloc {name = "o"} : !attn.buffer<128x64xf16, #attn.auto, shared>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      %t = tensor.splat %x : tensor<128x64xf16, #attn.auto>
      %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
      scf.for %i = %zero to %n step %one : i32 {
        attn.store_result %t, %g[%i] scratch %o : !attn.buffer<128x64xf16, #attn.auto, shared> map %map[%i, %zero] : !attn.tensor_map<64x64xf16, swizzle = 128> {kind = #attn<epilogue_kind tma>} : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // Where no map ends with the rows, another way is taken.
  // CHECK-LABEL: gpu.func @no_map(
  // CHECK-NOT: attn.tma
  // CHECK: attn.global_store
  // REMARK: tma | Category:attn.select-epilogue | Function=no_map | Reason="no tensor map ends where its rows do", Remark="the result is not stored by TMA"
  // REMARK: Function=no_map | Remark="the result is shuffled"
  gpu.func @no_map(%t: tensor<128x64xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %t, %g[%row] {kind = #attn<epilogue_kind tma>} : tensor<128x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }

  // A tile with columns that rows in memory have not passes through shared memory
  // if it can, and is never shuffled.
  // CHECK-LABEL: gpu.func @padded(
  // CHECK: attn.local_store %{{.*}}, %[[O:.*]] : tensor<128x128xf16
  // CHECK: attn.copy_out %[[O]], %{{.*}} : <128x128xf16, #attn.auto, shared>, <?x96xf16>
  // CHECK: attn.global_store %{{.*}} : tensor<128x128xf16, #attn.auto>, <?x96xf16>
  // REMARK: Function=padded | Remark="the result is staged"
  // REMARK: Function=padded | Remark="the result is direct"
  gpu.func @padded(%t: tensor<128x128xf16, #attn.auto>, %p: !llvm.ptr<1>, %off: i64, %n: i32, %row: i32) kernel attributes {attn.warps = array<i64: 8, 1>} {
    %o = attn.alloc {name = "o"} : !attn.buffer<128x128xf16, #attn.auto, shared>
    %g = attn.global_view %p[%off] rows %n stride %off {alignment = 16 : i64} : !attn.global<?x96xf16>
    attn.store_result %t, %g[%row] scratch %o : !attn.buffer<128x128xf16, #attn.auto, shared> : tensor<128x128xf16, #attn.auto>, !attn.global<?x96xf16>
    attn.store_result %t, %g[%row] : tensor<128x128xf16, #attn.auto>, !attn.global<?x96xf16>
    gpu.return
  }
}
