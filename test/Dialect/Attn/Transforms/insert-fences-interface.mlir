// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s
// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-shared))' | FileCheck %s --check-prefix=ALLOCATE

// An asynchronous op of another dialect: the analyses ask AsyncOpInterface and
// know none by name.

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
!d = !attn.buffer<64x32xf32, #attn.swizzled<span = 128>, shared>

gpu.module @kernels {
  // A proxy fence in front of the barrier behind which the engine reads, and a
  // barrier behind the wait that covers its group.
  // CHECK-LABEL: gpu.func @read
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: test_attn.async_read
  // CHECK-NEXT: test_attn.async_commit
  // CHECK-NEXT: test_attn.async_wait 0
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.local_store
  gpu.func @read(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    test_attn.async_read %a : !b
    test_attn.async_commit
    test_attn.async_wait 0
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }

  // The buffer lives until the wait: another one does not take its bytes before.
  // ALLOCATE-LABEL: gpu.func @live
  // ALLOCATE-SAME: attn.shared_bytes = 16384 : i64
  gpu.func @live(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %c = attn.alloc {name = "c"} : !b
    attn.local_store %t, %a : !tile, !b
    test_attn.async_read %a : !b
    test_attn.async_commit
    attn.local_store %t, %c : !tile, !b
    test_attn.async_wait 0
    %0 = attn.local_load %c : !b -> !tile
    gpu.return
  }

  // Behind the wait it does.
  // ALLOCATE-LABEL: gpu.func @dead
  // ALLOCATE-SAME: attn.shared_bytes = 8192 : i64
  gpu.func @dead(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a"} : !b
    %c = attn.alloc {name = "c"} : !b
    attn.local_store %t, %a : !tile, !b
    test_attn.async_read %a : !b
    test_attn.async_commit
    test_attn.async_wait 0
    attn.local_store %t, %c : !tile, !b
    %0 = attn.local_load %c : !b -> !tile
    gpu.return
  }

  // Products in registers: as with attn.wgmma, and slots that one case of a
  // switch touches need the barrier too.
  // CHECK-LABEL: gpu.func @product
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: test_attn.product
  // CHECK-NEXT: test_attn.product_wait
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: scf.index_switch
  gpu.func @product(%t: !tile, %i: index) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    attn.local_store %t, %a : !tile, !b
    %s = test_attn.product %a, %a : !b, !b -> !attn.inflight<64x64xf32>
    %r = test_attn.product_wait %s {pending = 0} : !attn.inflight<64x64xf32> -> tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
    scf.index_switch %i
    case 1 {
      attn.local_store %t, %a : !tile, !b
      scf.yield
    }
    default {
    }
    gpu.return
  }

  // A product in a buffer that an mbarrier completes: channels order it, and the
  // generic write before it gets its fence.
  // CHECK-LABEL: gpu.func @in_buffer
  // CHECK: attn.local_store
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: test_attn.buffer_product
  // CHECK-NEXT: gpu.return
  gpu.func @in_buffer(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %d = attn.alloc {name = "d", offset = 8192 : i64} : !d
    attn.local_store %t, %a : !tile, !b
    test_attn.buffer_product %a, %a to %d : !b, !b, !d
    gpu.return
  }
}
