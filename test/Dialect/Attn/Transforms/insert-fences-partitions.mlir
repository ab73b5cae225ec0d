// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences,attn-insert-fences))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#s128 = #attn.swizzled<span = 128>
!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!acc = tensor<64x64xf32, #attn.mma<warps = [4, 1]>>
!flight = !attn.inflight<64x64xf32>
!b = !attn.buffer<64x64xf16, #s128, shared>
!ring = !attn.buffer<2x64x64xf16, #s128, shared>
!map = !attn.tensor_map<64x64xf16, swizzle = 128>
!g = !attn.global<?x64xf16>
!bytes = !attn.buffer<2x64x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>
!byte = !attn.buffer<64x64xf8E4M3FN, #attn.swizzled<span = 64>, shared>

gpu.module @kernels {
  // What one partition loads by TMA and another one reads by wgmma needs neither
  // barriers nor fences.
  // REMARK: Function=channels | Remark="barriers inserted", count=0, proxy-fences=0
  // CHECK-LABEL: gpu.func @channels
  // CHECK-NOT: gpu.barrier
  // CHECK-NOT: attn.named_barrier
  // CHECK-NOT: attn.fence
  // CHECK: gpu.return
  gpu.func @channels(%map: !map, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %k = attn.alloc {name = "k", offset = 0 : i64} : !ring
    %full = attn.mbarrier.alloc {name = "full", offset = 16384 : i64} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 16400 : i64} : !attn.mbarriers<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      scf.for %i = %zero to %n step %one : i32 {
        attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<2>
        %s = attn.slot %k[%i] : !ring -> !b
        %f = attn.wgmma %s, %s : !b, !b -> !flight
        %r = attn.wgmma.wait %f {pending = 0} : !flight -> !acc
        attn.mbarrier.arrive %empty[%zero] : !attn.mbarriers<2>
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %zero to %n step %one : i32 {
          attn.mbarrier.wait %empty[%zero] parity %one : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%zero] {bytes = 8192} : !attn.mbarriers<2>
          %s = attn.slot %k[%i] : !ring -> !b
          attn.tma.load %map[%i, %zero], %s barrier %full[%zero] : !attn.mbarriers<2> : !map, !b
        }
      }
    }
    gpu.return
  }

  // A result staged in the buffer that wgmma has read: a barrier of the partition
  // before the write, one with a fence before one thread's TMA store, which is
  // awaited before the next write.
  // REMARK: Function=staged | Remark="barriers inserted", count=2, proxy-fences=1
  // REMARK: Function=staged | Remark="a barrier separates a read of 'q' from a write of 'q'", first=attn.wgmma, second=attn.local_store
  // REMARK: Function=staged | Remark="a barrier separates a write of 'q' from a read of 'q'", first=attn.local_store, second=attn.tma.store
  // CHECK-LABEL: gpu.func @staged
  // CHECK: attn.warp_specialize
  // CHECK: attn.wgmma.wait
  // CHECK: attn.tma.wait
  // CHECK-NOT: attn.fence
  // CHECK: %[[ID:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: attn.named_barrier %[[ID]] {threads = 128 : i64}
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: %[[ID2:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: attn.named_barrier %[[ID2]] {threads = 128 : i64}
  // CHECK-NEXT: attn.elect
  // CHECK-NEXT: attn.tma.store
  // CHECK-NOT: attn.fence
  // CHECK-NOT: named_barrier
  // CHECK: gpu.return
  gpu.func @staged(%map: !map, %t: f16, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %q = attn.alloc {name = "q", offset = 0 : i64} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %o = arith.constant dense<0.0> : !tile
      scf.for %i = %zero to %n step %one : i32 {
        %f = attn.wgmma %q, %q : !b, !b -> !flight
        %r = attn.wgmma.wait %f {pending = 0} : !flight -> !acc
        attn.elect {
          attn.tma.wait {pending = 0, read}
        }
        attn.local_store %o, %q : !tile, !b
        attn.elect {
          attn.tma.store %q, %map[%i, %zero] : !b, !map
          attn.tma.commit
        }
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // Each partition has an id of its own; ids in use are left out. Generic reads
  // of what TMA loads get a fence before the arrival that frees the slot. A
  // barrier of fewer threads does not count.
  // CHECK-LABEL: gpu.func @ids
  // CHECK: partition "consumer"
  // CHECK: attn.local_store
  // CHECK: %[[SOME:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: attn.named_barrier %[[SOME]] {threads = 64 : i64}
  // CHECK: %[[ID:.*]] = arith.constant 2 : i32
  // CHECK-NEXT: attn.named_barrier %[[ID]] {threads = 128 : i64}
  // CHECK-NEXT: attn.local_load
  // CHECK: attn.local_load
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK: partition "producer"
  // CHECK: attn.copy_out
  // CHECK: %[[ID2:.*]] = arith.constant 3 : i32
  // CHECK-NEXT: attn.named_barrier %[[ID2]] {threads = 256 : i64}
  // CHECK-NEXT: attn.cp_async %
  gpu.func @ids(%map: !map, %g: !g, %row: i32) kernel {
    %zero = arith.constant 0 : i32
    %x = attn.alloc {name = "x", offset = 0 : i64} : !b
    %y = attn.alloc {name = "y", offset = 8192 : i64} : !b
    %k = attn.alloc {name = "k", offset = 16384 : i64} : !b
    %full = attn.mbarrier.alloc {name = "full", offset = 24576 : i64} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 24584 : i64} : !attn.mbarriers<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %o = arith.constant dense<0.0> : !tile
      attn.local_store %o, %x : !tile, !b
      %id = arith.constant 1 : i32
      attn.named_barrier %id {threads = 64}
      %0 = attn.local_load %x : !b -> !tile
      %1 = attn.local_load %k : !b -> !tile
      attn.mbarrier.arrive %empty[%zero] : !attn.mbarriers<1>
    }
    partition "producer" warps 8 registers 96 {
      attn.elect {
        attn.tma.load %map[%row, %zero], %k barrier %full[%zero] : !attn.mbarriers<1> : !map, !b
      }
      attn.copy_out %y, %g[%row] : !b, !g
      attn.cp_async %g[%row], %y : !g, !b
      attn.cp_async.commit
      attn.cp_async.wait {pending = 0}
    }
    gpu.return
  }

  // What is written before the partitions start is separated by a barrier of the
  // CTA, and fenced for wgmma; so is what comes behind them. Copies count from
  // their wait on.
  // CHECK-LABEL: gpu.func @around
  // CHECK: attn.cp_async.wait
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.warp_specialize
  // CHECK-NOT: barrier
  // CHECK-NOT: attn.fence
  // CHECK: partition "producer"
  // CHECK: gpu.barrier
  // CHECK-NEXT: attn.local_store
  gpu.func @around(%t: !tile, %g: !g, %row: i32) kernel {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %c = attn.alloc {name = "c", offset = 8192 : i64} : !b
    attn.cp_async %g[%row], %a : !g, !b
    attn.cp_async.commit
    attn.cp_async.wait {pending = 0}
    attn.local_store %t, %c : !tile, !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %f = attn.wgmma %a, %a : !b, !b -> !flight
      %r = attn.wgmma.wait %f {pending = 0} : !flight -> !acc
      %u = attn.local_load %c : !b -> !tile
    }
    partition "producer" warps 4 registers 24 {
    }
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }

  // A fence in one thread does not do for the others, a fence in a loop's first
  // release does for what its last iteration left.
  // CHECK-LABEL: gpu.func @fence_places
  // CHECK: scf.for
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK: attn.local_store
  // CHECK: }
  // CHECK-NEXT: attn.elect
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK: }
  // CHECK: attn.fence.proxy_async
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: attn.warp_specialize
  gpu.func @fence_places(%map: !map, %t: !tile, %n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %full = attn.mbarrier.alloc {name = "full", offset = 24576 : i64} : !attn.mbarriers<1>
    scf.for %i = %zero to %n step %one : i32 {
      attn.mbarrier.arrive %full[%zero] : !attn.mbarriers<1>
      gpu.barrier
      attn.local_store %t, %a : !tile, !b
    }
    attn.elect {
      attn.fence.proxy_async
    }
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      attn.elect {
        attn.tma.load %map[%n, %zero], %a barrier %full[%zero] : !attn.mbarriers<1> : !map, !b
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // Rows of each warpgroup are its own affair: the products that read them, the
  // results that take their place, and their copies. The barriers' ids are those
  // behind the turns'. Nothing separates the loop's last copy from the next
  // tile's write but the wait of the thread that started it, and a barrier.
  // REMARK: Function=own_rows | Remark="barriers inserted", count=2, proxy-fences=1
  // CHECK-LABEL: gpu.func @own_rows
  // CHECK: attn.wgmma.wait
  // CHECK: %[[ID:.*]] = arith.constant 3 : i32
  // CHECK-NEXT: attn.named_barrier %[[ID]] {each_warpgroup, threads = 128 : i64}
  // CHECK-NEXT: attn.local_store
  // CHECK-NEXT: %[[ID2:.*]] = arith.constant 3 : i32
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: attn.named_barrier %[[ID2]] {each_warpgroup, threads = 128 : i64}
  // CHECK-NEXT: attn.elect each_warpgroup
  // CHECK-NOT: named_barrier
  // CHECK: gpu.return
  gpu.func @own_rows(%map: !map, %n: i32, %x: f16) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %q = attn.alloc {name = "q", offset = 0 : i64} : !attn.buffer<2x128x128xf16, #s128, shared>
    %k = attn.alloc {name = "k", offset = 65536 : i64} : !attn.buffer<128x64xf16, #s128, shared>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      attn.turn.start 1
      %o = tensor.splat %x : tensor<128x64xf16, #attn.mma<warps = [8, 1]>>
      scf.for %i = %zero to %n step %one : i32 {
        %slot = attn.slot %q[%i] : !attn.buffer<2x128x128xf16, #s128, shared> -> !attn.buffer<128x128xf16, #s128, shared>
        attn.turn.take 1
        %f = attn.wgmma %slot, %k : !attn.buffer<128x128xf16, #s128, shared>, !attn.buffer<128x64xf16, #s128, shared> -> !attn.inflight<128x64xf32>
        attn.turn.pass 1
        %r = attn.wgmma.wait %f {pending = 0} : !attn.inflight<128x64xf32> -> tensor<128x64xf32, #attn.mma<warps = [8, 1]>>
        attn.elect each_warpgroup {
          attn.tma.wait {pending = 0, read}
        }
        %v = attn.reinterpret %slot : !attn.buffer<128x128xf16, #s128, shared> -> !attn.buffer<128x64xf16, #s128, shared>
        attn.local_store %o, %v : tensor<128x64xf16, #attn.mma<warps = [8, 1]>>, !attn.buffer<128x64xf16, #s128, shared>
        attn.elect each_warpgroup {
          attn.tma.store %v, %map[%i, %zero] {warpgroups = 2} : !attn.buffer<128x64xf16, #s128, shared>, !map
          attn.tma.commit
        }
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // Spans of another width divide the bytes otherwise, a second operand is read
  // by all, and so is what one thread stores: the whole partition has to wait,
  // with ids of its own beside the warpgroups'.
  // REMARK: Function=mixed_rows | Remark="barriers inserted", count=3
  // CHECK-LABEL: gpu.func @mixed_rows
  // CHECK: attn.wgmma.wait
  // CHECK: %[[ALL:.*]] = arith.constant 1 : i32
  // CHECK-NEXT: attn.named_barrier %[[ALL]] {threads = 256 : i64}
  // CHECK-NEXT: attn.local_store
  // CHECK: attn.named_barrier %{{.*}} {threads = 256 : i64}
  // CHECK-NEXT: attn.local_load
  // CHECK: %[[EACH:.*]] = arith.constant 2 : i32
  // CHECK: attn.named_barrier %[[EACH]] {each_warpgroup, threads = 128 : i64}
  // CHECK-NEXT: attn.elect each_warpgroup
  gpu.func @mixed_rows(%map: !map, %i: i32, %x: f16) kernel {
    %q = attn.alloc {name = "q", offset = 0 : i64} : !attn.buffer<128x64xf16, #s128, shared>
    %c = attn.alloc {name = "c", offset = 65536 : i64} : !attn.buffer<128x64xf16, #s128, shared>
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      %o = tensor.splat %x : tensor<128x32xf16, #attn.mma<warps = [8, 1]>>
      %p = tensor.splat %x : tensor<128x64xf16, #attn.mma<warps = [8, 1]>>
      %v = attn.transpose %q : !attn.buffer<128x64xf16, #s128, shared> -> !attn.buffer<64x128xf16, #attn.transposed<#s128>, shared>
      %f = attn.wgmma %q, %v : !attn.buffer<128x64xf16, #s128, shared>, !attn.buffer<64x128xf16, #attn.transposed<#s128>, shared> -> !attn.inflight<128x128xf32>
      %r = attn.wgmma.wait %f {pending = 0} : !attn.inflight<128x128xf32> -> tensor<128x128xf32, #attn.mma<warps = [8, 1]>>
      %n = attn.reinterpret %q : !attn.buffer<128x64xf16, #s128, shared> -> !attn.buffer<128x32xf16, #attn.swizzled<span = 64>, shared>
      attn.local_store %o, %n : tensor<128x32xf16, #attn.mma<warps = [8, 1]>>, !attn.buffer<128x32xf16, #attn.swizzled<span = 64>, shared>
      %l = attn.local_load %q : !attn.buffer<128x64xf16, #s128, shared> -> tensor<128x64xf16, #attn.mma<warps = [8, 1]>>
      attn.local_store %p, %c : tensor<128x64xf16, #attn.mma<warps = [8, 1]>>, !attn.buffer<128x64xf16, #s128, shared>
      attn.elect each_warpgroup {
        attn.tma.store %c, %map[%i, %i] {warpgroups = 2} : !attn.buffer<128x64xf16, #s128, shared>, !map
        attn.tma.commit
        attn.tma.wait {pending = 0, read}
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // A loop that ends when its first part says so: what the body's end leaves
  // meets the first part's accesses.
  // CHECK-LABEL: gpu.func @while
  // CHECK: scf.while
  // CHECK: attn.named_barrier
  // CHECK-NEXT: attn.local_load
  // CHECK: } do {
  // CHECK: attn.named_barrier
  // CHECK-NEXT: attn.local_store
  // CHECK-NOT: attn.named_barrier
  // CHECK: gpu.return
  gpu.func @while(%x: f16, %n: i1) kernel {
    %q = attn.alloc {name = "q", offset = 0 : i64} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %o = tensor.splat %x : !tile
      scf.while : () -> () {
        %l = attn.local_load %q : !b -> !tile
        scf.condition(%n)
      } do {
        attn.local_store %o, %q : !tile, !b
        scf.yield
      }
    }
    partition "producer" warps 4 registers 24 {
    }
    gpu.return
  }

  // Votes of warpgroups take ids behind those of turns.
  // CHECK-LABEL: gpu.func @votes
  // CHECK: attn.rare {{.*}} {barrier = 3 : i64, each_warpgroup}
  // CHECK: attn.rare {{.*}} {barrier = 3 : i64, each_warpgroup}
  // CHECK: attn.rare {{.*}} : tensor<128x8xf32, {{.*}}>) : tensor
  // CHECK: partition "single"
  // CHECK: attn.rare {{.*}} {barrier = 5 : i64, each_warpgroup}
  gpu.func @votes(%x: f32, %c: i1) kernel {
    attn.warp_specialize
    partition "consumer" warps 8 tiles [8, 1] registers 240 {
      attn.turn.start 1
      attn.turn.take 1
      attn.turn.pass 1
      %t = tensor.splat %x : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>
      %b = tensor.splat %c : tensor<128x8xi1, #attn.mma<warps = [8, 1]>>
      %r0 = attn.rare any %b default(%t : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>) {each_warpgroup} : tensor<128x8xi1, #attn.mma<warps = [8, 1]>> {
        attn.yield %t : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>
      }
      %r1 = attn.rare any %b default(%t : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>) {each_warpgroup} : tensor<128x8xi1, #attn.mma<warps = [8, 1]>> {
        attn.yield %t : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>
      }
      %r2 = attn.rare any %b default(%t : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>) : tensor<128x8xi1, #attn.mma<warps = [8, 1]>> {
        attn.yield %t : tensor<128x8xf32, #attn.mma<warps = [8, 1]>>
      }
    }
    partition "single" warps 4 tiles [4, 1] registers 24 {
      %t = tensor.splat %x : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
      %b = tensor.splat %c : tensor<64x8xi1, #attn.mma<warps = [4, 1]>>
      %r = attn.rare any %b default(%t : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>) {each_warpgroup} : tensor<64x8xi1, #attn.mma<warps = [4, 1]>> {
        attn.yield %t : tensor<64x8xf32, #attn.mma<warps = [4, 1]>>
      }
    }
    gpu.return
  }

  // What one thread sends is awaited at an mbarrier, in its own partition too, and
  // is no access of the async proxy; what it stores needs a barrier.
  // CHECK-LABEL: gpu.func @sent
  // CHECK-NOT: attn.named_barrier
  // CHECK-NOT: attn.fence
  // CHECK: attn.scalar_send
  // CHECK-NOT: attn.named_barrier
  // CHECK-NOT: attn.fence
  // CHECK: attn.scalar_load
  // CHECK-NOT: attn.named_barrier
  // CHECK-NOT: attn.fence
  // CHECK: attn.scalar_store
  // CHECK: attn.named_barrier
  // CHECK: attn.scalar_load
  gpu.func @sent(%x: i32) kernel {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {name = "b", offset = 0 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    %c = attn.alloc {name = "c", offset = 16 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {name = "full", offset = 32 : i64} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {name = "empty", offset = 40 : i64} : !attn.mbarriers<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        attn.cluster_leader {
          attn.mbarrier.expect_tx %full[%zero] {bytes = 4} : !attn.mbarriers<1>
          attn.scalar_send %x, %b[%zero] barrier %full[%zero] : !attn.mbarriers<1> : !attn.buffer<2xi32, #attn.rows, shared>
        }
      }
      attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<1>
      %y = attn.scalar_load %b[%zero] : !attn.buffer<2xi32, #attn.rows, shared>
      attn.mbarrier.arrive %empty[%zero] : !attn.mbarriers<1>
      attn.elect {
        attn.scalar_store %y, %c[%zero] : !attn.buffer<2xi32, #attn.rows, shared>
      }
      %z = attn.scalar_load %c[%zero] : !attn.buffer<2xi32, #attn.rows, shared>
    }
    gpu.return
  }

  // The last of the 16 named barriers is as good as any.
  // CHECK-LABEL: gpu.func @last_id
  // CHECK: attn.local_store
  // CHECK-NEXT: %[[ID:.*]] = arith.constant 15 : i32
  // CHECK-NEXT: attn.named_barrier %[[ID]] {threads = 128 : i64}
  // CHECK-NEXT: attn.local_load
  gpu.func @last_id() kernel {
    %x = attn.alloc {name = "x", offset = 0 : i64} : !b
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %o = arith.constant dense<0.0> : !tile
      attn.local_store %o, %x : !tile, !b
      %0 = attn.local_load %x : !b -> !tile
    }
    partition "producer" warps 4 registers 24 {
      %id1 = arith.constant 1 : i32
      attn.named_barrier %id1 {threads = 128}
      %id2 = arith.constant 2 : i32
      attn.named_barrier %id2 {threads = 128}
      %id3 = arith.constant 3 : i32
      attn.named_barrier %id3 {threads = 128}
      %id4 = arith.constant 4 : i32
      attn.named_barrier %id4 {threads = 128}
      %id5 = arith.constant 5 : i32
      attn.named_barrier %id5 {threads = 128}
      %id6 = arith.constant 6 : i32
      attn.named_barrier %id6 {threads = 128}
      %id7 = arith.constant 7 : i32
      attn.named_barrier %id7 {threads = 128}
      %id8 = arith.constant 8 : i32
      attn.named_barrier %id8 {threads = 128}
      %id9 = arith.constant 9 : i32
      attn.named_barrier %id9 {threads = 128}
      %id10 = arith.constant 10 : i32
      attn.named_barrier %id10 {threads = 128}
      %id11 = arith.constant 11 : i32
      attn.named_barrier %id11 {threads = 128}
      %id12 = arith.constant 12 : i32
      attn.named_barrier %id12 {threads = 128}
      %id13 = arith.constant 13 : i32
      attn.named_barrier %id13 {threads = 128}
      %id14 = arith.constant 14 : i32
      attn.named_barrier %id14 {threads = 128}
    }
    gpu.return
  }

  // A wait that leaves a group of copies on its way leaves one to fence behind the
  // next wait.
  // REMARK: Function=copies_in_turn | {{.*}}, proxy-fences=2
  // CHECK-LABEL: gpu.func @copies_in_turn
  // CHECK: attn.cp_async.wait {pending = 1 : i64}
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK-NEXT: attn.cp_async.wait {pending = 0 : i64}
  // CHECK-NEXT: attn.fence.proxy_async
  // CHECK-NEXT: attn.mbarrier.arrive
  // CHECK-NEXT: attn.mbarrier.arrive
  gpu.func @copies_in_turn(%g: !g, %row: i32) kernel {
    %zero = arith.constant 0 : i32
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    %c = attn.alloc {name = "c", offset = 8192 : i64} : !b
    %full = attn.mbarrier.alloc {name = "full", offset = 16384 : i64} : !attn.mbarriers<1>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      attn.mbarrier.wait %full[%zero] parity %zero : !attn.mbarriers<1>
      %f = attn.wgmma %a, %c : !b, !b -> !flight
      %r = attn.wgmma.wait %f {pending = 0} : !flight -> !acc
    }
    partition "producer" warps 4 registers 24 {
      attn.cp_async %g[%row], %a : !g, !b
      attn.cp_async.commit
      attn.cp_async %g[%row], %c : !g, !b
      attn.cp_async.commit
      attn.cp_async.wait {pending = 1}
      attn.mbarrier.arrive %full[%zero] : !attn.mbarriers<1>
      attn.cp_async.wait {pending = 0}
      attn.mbarrier.arrive %full[%zero] : !attn.mbarriers<1>
      attn.mbarrier.arrive %full[%zero] : !attn.mbarriers<1>
    }
    gpu.return
  }

  // Threads share a slot out alike each time, so that each of them writes again
  // what it has written before.
  // REMARK: Function=transposed | Remark="barriers inserted", count=0, proxy-fences=0
  // CHECK-LABEL: gpu.func @transposed
  // CHECK-NOT: attn.named_barrier
  // CHECK: gpu.return
  gpu.func @transposed(%n: i32) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %v = attn.alloc {name = "v", offset = 0 : i64} : !bytes
    %vt = attn.alloc {name = "vt", offset = 8192 : i64} : !bytes
    attn.warp_specialize
    partition "transposer" warps 4 registers 24 {
      scf.for %i = %zero to %n step %one : i32 {
        %s = attn.slot %v[%i] : !bytes -> !byte
        %d = attn.slot %vt[%i] : !bytes -> !byte
        attn.local_transpose %s, %d : !byte, !byte
      }
      %s = attn.slot %v[%zero] : !bytes -> !byte
      %d = attn.slot %vt[%one] : !bytes -> !byte
      attn.local_transpose %s, %d : !byte, !byte
    }
    partition "other" warps 4 registers 24 {
    }
    gpu.return
  }

  // Through another view of the bytes it is another share.
  // REMARK: Function=transposed_view | Remark="barriers inserted", count=1, proxy-fences=0
  // CHECK-LABEL: gpu.func @transposed_view
  // CHECK: attn.local_transpose
  // CHECK: attn.named_barrier
  // CHECK: attn.local_transpose
  gpu.func @transposed_view() kernel {
    %one = arith.constant 1 : i32
    %v = attn.alloc {name = "v", offset = 0 : i64} : !bytes
    %vt = attn.alloc {name = "vt", offset = 8192 : i64} : !bytes
    %other = attn.reinterpret %vt : !bytes -> !bytes
    attn.warp_specialize
    partition "transposer" warps 4 registers 24 {
      %s = attn.slot %v[%one] : !bytes -> !byte
      %d = attn.slot %vt[%one] : !bytes -> !byte
      attn.local_transpose %s, %d : !byte, !byte
      %e = attn.slot %other[%one] : !bytes -> !byte
      attn.local_transpose %s, %e : !byte, !byte
    }
    partition "other" warps 4 registers 24 {
    }
    gpu.return
  }
}
