// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tile-loops,canonicalize))' | FileCheck %s

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @single
  // CHECK-SAME: (%[[COUNT:.*]]: i32, %[[X:.*]]: f32
  // CHECK: %[[CTA:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[EXISTS:.*]] = arith.cmpi ult, %[[CTA]], %[[COUNT]]
  // CHECK: %[[R:.*]] = scf.if %[[EXISTS]] -> (f32)
  // CHECK: %[[Y:.*]] = arith.addf %[[X]], %[[X]]
  // CHECK: scf.yield %[[Y]]
  // CHECK: else
  // CHECK: scf.yield %[[X]]
  // CHECK: llvm.store %[[R]]
  gpu.func @single(%count: i32, %x: f32, %out: !llvm.ptr<1>) kernel {
    %r = attn.tile_loop %count scheduler single iter_args(%x : f32) {
    ^bb0(%tile: i32, %v: f32):
      %y = arith.addf %v, %v : f32
      gpu.printf "%d", %tile : i32
      attn.yield %y : f32
    }
    llvm.store %r, %out : f32, !llvm.ptr<1>
    gpu.return
  }

  // Whole rounds, one more if the last one reaches this CTA, which is at its
  // mirrored place in odd rounds.
  // CHECK-LABEL: gpu.func @snake
  // CHECK-SAME: (%[[COUNT:.*]]: i32, %[[X:.*]]: f32
  // CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
  // CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK: %[[CTA:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[GRID:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[LAST:.*]] = arith.subi %[[GRID]], %[[ONE]]
  // CHECK: %[[MIRRORED:.*]] = arith.subi %[[LAST]], %[[CTA]]
  // CHECK: %[[WHOLE:.*]] = arith.divui %[[COUNT]], %[[GRID]]
  // CHECK: %[[REST:.*]] = arith.remui %[[COUNT]], %[[GRID]]
  // CHECK: %[[BIT:.*]] = arith.andi %[[WHOLE]], %[[ONE]]
  // CHECK: %[[ODD:.*]] = arith.cmpi ne, %[[BIT]], %[[ZERO]]
  // CHECK: %[[PLACE:.*]] = arith.select %[[ODD]], %[[MIRRORED]], %[[CTA]]
  // CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[PLACE]], %[[REST]]
  // CHECK: %[[EXTRA:.*]] = arith.extui %[[MORE]]
  // CHECK: %[[ROUNDS:.*]] = arith.addi %[[WHOLE]], %[[EXTRA]]
  // CHECK: scf.for %[[ROUND:.*]] = %[[ZERO]] to %[[ROUNDS]] step %[[ONE]] iter_args(%[[V:.*]] = %[[X]])
  // CHECK: %[[FIRST:.*]] = arith.muli %[[ROUND]], %[[GRID]]
  // CHECK: %[[PLACE2:.*]] = arith.select %{{.*}}, %[[MIRRORED]], %[[CTA]]
  // CHECK: %[[TILE:.*]] = arith.addi %[[FIRST]], %[[PLACE2]]
  // CHECK: arith.addf %[[V]], %[[V]]
  // CHECK: gpu.printf "%d", %[[TILE]]
  gpu.func @snake(%count: i32, %x: f32, %out: !llvm.ptr<1>) kernel {
    %r = attn.tile_loop %count scheduler snake iter_args(%x : f32) {
    ^bb0(%tile: i32, %v: f32):
      %y = arith.addf %v, %v : f32
      gpu.printf "%d", %tile : i32
      attn.yield %y : f32
    }
    llvm.store %r, %out : f32, !llvm.ptr<1>
    gpu.return
  }

  // The CTAs of a cluster run the same tiles.
  // CHECK-LABEL: gpu.func @cluster
  // CHECK-DAG: %[[TWO:.*]] = arith.constant 2 : i32
  // CHECK: %[[CTA:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[GRID:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK-DAG: %[[OWN:.*]] = arith.divui %[[CTA]], %[[TWO]]
  // CHECK-DAG: %[[NUMBER:.*]] = arith.divui %[[GRID]], %[[TWO]]
  // CHECK: scf.for %{{.*}} = %[[OWN]] to %{{.*}} step %[[NUMBER]]
  gpu.func @cluster(%count: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    attn.tile_loop %count scheduler strided {
    ^bb0(%tile: i32):
      gpu.printf "%d", %tile : i32
      attn.yield
    }
    gpu.return
  }

  // Both roles start with the tile of the CTA's rank. The producer takes the next
  // ones from the counter, which the last of all additions sets back to 0, and
  // knows what it hands on; the channel hands on the index behind the last tile
  // too.
  // CHECK-LABEL: gpu.func @dynamic
  // CHECK-SAME: (%[[COUNT:.*]]: i32, %[[COUNTER:.*]]: !llvm.ptr<1>, %[[X:.*]]: f32
  // CHECK: %[[RING:.*]] = attn.alloc
  // CHECK: %[[C:.*]] = attn.channel.create
  // CHECK: partition "consumer"
  // CHECK: %[[CTA:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[FIRST:.*]] = attn.cursor.start %[[C]] as "consumer"
  // CHECK: %[[R:.*]]:3 = scf.while (%[[TILE:.*]] = %[[CTA]], %[[CUR:.*]] = %[[FIRST]], %[[V:.*]] = %[[X]])
  // CHECK: %[[MORE:.*]] = arith.cmpi ult, %[[TILE]], %[[COUNT]]
  // CHECK: scf.condition(%[[MORE]]) %[[TILE]], %[[CUR]], %[[V]]
  // CHECK: ^bb0(%[[TILE:.*]]: i32, %[[CUR:.*]]: !attn.cursor, %[[V:.*]]: f32):
  // CHECK: %[[Y:.*]] = arith.addf %[[V]], %[[V]]
  // CHECK: gpu.printf "%d", %[[TILE]]
  // CHECK: %[[I:.*]], %[[TOKEN:.*]] = attn.channel.acquire %[[C]][%[[CUR]]] as "consumer"
  // CHECK: %[[NEXT:.*]] = attn.scalar_load %[[RING]][%[[I]]]
  // CHECK: attn.channel.release %[[C]], %[[TOKEN]] as "consumer"
  // CHECK: %[[BEHIND:.*]] = attn.cursor.advance %[[CUR]] on %[[C]]
  // CHECK: scf.yield %[[NEXT]], %[[BEHIND]], %[[Y]]
  // CHECK: gpu.printf "%f", %[[R]]#2
  // CHECK: partition "producer"
  // CHECK: %[[ONE:.*]] = arith.constant 1 : i32
  // CHECK: attn.elect
  // CHECK: %[[CTA:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[GRID:.*]] = arith.index_cast %{{.*}} : index to i32
  // CHECK: %[[FIRST:.*]] = attn.cursor.start %[[C]] as "producer"
  // CHECK: scf.while (%[[TILE:.*]] = %[[CTA]], %[[CUR:.*]] = %[[FIRST]])
  // CHECK: arith.cmpi ult, %[[TILE]], %[[COUNT]]
  // CHECK: ^bb0(%{{.*}}: i32, %[[CUR:.*]]: !attn.cursor):
  // CHECK: gpu.printf
  // CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %[[ONE]]
  // CHECK: %[[DEALT:.*]] = llvm.atomicrmw uinc_wrap %[[COUNTER]], %[[LAST]] syncscope("device") monotonic
  // CHECK: %[[TAKEN:.*]] = arith.addi %[[GRID]], %[[DEALT]]
  // CHECK: %[[I:.*]], %[[TOKEN:.*]] = attn.channel.acquire %[[C]][%[[CUR]]] as "producer"
  // CHECK: attn.scalar_store %[[TAKEN]], %[[RING]][%[[I]]]
  // CHECK: attn.channel.release %[[C]], %[[TOKEN]] as "producer"
  // CHECK: scf.yield %[[TAKEN]], %{{.*}}
  gpu.func @dynamic(%count: i32, %counter: !llvm.ptr<1>, %x: f32) kernel {
    %ring = attn.alloc {name = "tile"} : !attn.buffer<2xi32, #attn.auto, shared>
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      %r = attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> iter_args(%x : f32) {
      ^bb0(%tile: i32, %v: f32):
        %y = arith.addf %v, %v : f32
        gpu.printf "%d", %tile : i32
        attn.yield %y : f32
      }
      gpu.printf "%f", %r : f32
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> {
        ^bb0(%tile: i32):
          gpu.printf "%d", %tile : i32
          attn.yield
        }
      }
    }
    gpu.return
  }

  // Where all threads of the dealing partition loop, one of them takes the next
  // tile, and all of them read it as the other role does.
  // CHECK-LABEL: gpu.func @readers
  // CHECK: %[[RING:.*]] = attn.alloc
  // CHECK: %[[C:.*]] = attn.channel.create
  // CHECK: partition "producer"
  // CHECK-NOT: attn.elect
  // CHECK: %[[DEALS:.*]] = attn.cursor.start %[[C]] as "producer"
  // CHECK: %[[READS:.*]] = attn.cursor.start %[[C]] as "reader"
  // CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %[[DEALS]], %{{.*}} = %[[READS]])
  // CHECK: ^bb0(%[[TILE:.*]]: i32, %[[D:.*]]: !attn.cursor, %[[R:.*]]: !attn.cursor):
  // CHECK: gpu.printf
  // CHECK: attn.elect {
  // CHECK: %[[DEALT:.*]] = llvm.atomicrmw uinc_wrap
  // CHECK: %[[TAKEN:.*]] = arith.addi %{{.*}}, %[[DEALT]]
  // CHECK: %[[I:.*]], %[[TOKEN:.*]] = attn.channel.acquire %[[C]][%[[D]]] as "producer"
  // CHECK: attn.scalar_store %[[TAKEN]], %[[RING]][%[[I]]]
  // CHECK: attn.channel.release %[[C]], %[[TOKEN]] as "producer"
  // CHECK-NEXT: }
  // CHECK: %[[J:.*]], %[[OWN:.*]] = attn.channel.acquire %[[C]][%[[R]]] as "reader"
  // CHECK: %[[NEXT:.*]] = attn.scalar_load %[[RING]][%[[J]]]
  // CHECK: attn.channel.release %[[C]], %[[OWN]] as "reader"
  // CHECK-DAG: %[[D2:.*]] = attn.cursor.advance %[[D]] on %[[C]]
  // CHECK-DAG: %[[R2:.*]] = attn.cursor.advance %[[R]] on %[[C]]
  // CHECK: scf.yield %[[NEXT]], %[[D2]], %[[R2]]
  gpu.func @readers(%count: i32, %counter: !llvm.ptr<1>) kernel {
    %ring = attn.alloc {name = "tile"} : !attn.buffer<2xi32, #attn.auto, shared>
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", arrive>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
      attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> {
      ^bb0(%tile: i32):
        gpu.printf "%d", %tile : i32
        attn.yield
      }
    }
    partition "producer" warps 4 registers 24 {
      attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> {
      ^bb0(%tile: i32):
        gpu.printf "%d", %tile : i32
        attn.yield
      }
    }
    gpu.return
  }

  // A cluster's leader takes tiles for all of its CTAs, whose producers read them.
  // CHECK-LABEL: gpu.func @dealt_cluster
  // CHECK: partition "producer"
  // CHECK: attn.elect
  // CHECK-DAG: %[[NUMBER:.*]] = arith.divui
  // CHECK: scf.while
  // CHECK: gpu.printf
  // CHECK-NOT: attn.elect
  // CHECK: attn.cluster_leader {
  // CHECK: %[[DEALT:.*]] = llvm.atomicrmw uinc_wrap
  // CHECK: attn.channel.acquire %{{.*}} as "producer" :
  // CHECK: attn.scalar_send
  // CHECK: attn.channel.release %{{.*}} as "producer" :
  // CHECK-NEXT: }
  // CHECK: attn.channel.acquire %{{.*}} as "reader"
  // CHECK: attn.scalar_load
  // CHECK: attn.channel.release %{{.*}} as "reader"
  gpu.func @dealt_cluster(%count: i32, %counter: !llvm.ptr<1>) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !attn.buffer<2xi32, #attn.auto, shared>
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        attn.tile_loop %count scheduler dynamic counter %counter channel %c ring %ring : !llvm.ptr<1>, !attn.channel<2>, !attn.buffer<2xi32, #attn.auto, shared> {
        ^bb0(%tile: i32):
          gpu.printf "%d", %tile : i32
          attn.yield
        }
      }
    }
    gpu.return
  }

  // The leader asks for a cluster in front of a tile, and all of its CTAs read the response behind it.
  // CHECK-LABEL: gpu.func @requested(
  // CHECK-SAME: %[[COUNT:.*]]: i32
  // CHECK: partition "producer"
  // CHECK: scf.while
  // CHECK: attn.cluster_leader {
  // CHECK: attn.channel.acquire %{{.*}} as "producer" :
  // CHECK: attn.cluster_request %[[RING:.*]][%{{.*}}] token
  // CHECK: attn.channel.release %{{.*}} as "producer" :
  // CHECK-NEXT: }
  // CHECK: gpu.printf
  // CHECK: %[[I:.*]], %{{.*}} = attn.channel.acquire %{{.*}} as "reader"
  // CHECK: %[[NEXT:.*]] = attn.cluster_response %[[RING]][%[[I]]] none %[[COUNT]]
  // CHECK: attn.fence.proxy_async
  // CHECK: attn.channel.release %{{.*}} as "reader"
  // CHECK: scf.yield %[[NEXT]]
  gpu.func @requested(%count: i32) kernel attributes {known_cluster_size = array<i32: 2, 1, 1>} {
    %ring = attn.alloc {name = "tile"} : !attn.buffer<2xi128, #attn.auto, shared>
    %c = attn.channel.create {name = "tile", roles = [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 96 {
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        attn.tile_loop %count scheduler clc channel %c ring %ring : !attn.channel<2>, !attn.buffer<2xi128, #attn.auto, shared> {
        ^bb0(%tile: i32):
          gpu.printf "%d", %tile : i32
          attn.yield
        }
      }
    }
    gpu.return
  }
}
