// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s --check-prefixes=CHECK,CTA
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles{cluster-scope=true}))' | FileCheck %s --check-prefixes=CHECK,CLUSTER

!map = !attn.tensor_map<16x64xf16, swizzle = 128>
!b = !attn.buffer<32x128xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  // The CTA of rank r loads its 16 of 32 rows, 2048 bytes further in each span of
  // 4096 bytes, to both CTAs.
  // CHECK-LABEL: gpu.func @multicast
  // CHECK-SAME: %[[X:[^,]*]]: i32, %[[ROW:[^,]*]]: i32)
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
  // CHECK: %[[ROWS:.*]] = arith.muli %[[RANK]], %c16_i32
  // CHECK: %[[FIRST:.*]] = arith.addi %[[ROW]], %[[ROWS]]
  // CHECK: %[[BYTES:.*]] = arith.muli %[[RANK]], %c2048_i32
  // CHECK: %[[PART:.*]] = llvm.getelementptr %{{.*}}[%[[BYTES]]] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i8
  // CHECK: %[[MASK:.*]] = arith.constant 3 : i16
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%[[X]], %[[FIRST]]] multicast_mask = %[[MASK]]
  // CHECK: llvm.getelementptr %[[PART]][4096]
  // CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, box[%{{.*}}, %[[FIRST]]] multicast_mask = %[[MASK]]
  gpu.func @multicast(%map: !map, %x: i32, %row: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {offset = 0 : i64} : !b
    %full = attn.mbarrier.alloc {offset = 8192 : i64} : !attn.mbarriers<1>
    attn.tma.load %map[%row, %x], %b barrier %full[%zero] : !attn.mbarriers<1> {multicast = 2} : !map, !b
    gpu.return
  }

  // Lane r arrives in the CTA of rank r; one thread arrives in each. The scope of
  // these signals is an option.
  // CHECK-LABEL: gpu.func @arrive
  // CHECK: nvvm.bar.warp.sync
  // CHECK: %[[ARRIVES:.*]] = arith.cmpi ult, %[[LANE:.*]], %c2_i32
  // CHECK: scf.if %[[ARRIVES]]
  // CHECK: %[[REMOTE:.*]] = nvvm.mapa %{{.*}}, %[[LANE]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CTA: nvvm.mbarrier.arrive %[[REMOTE]] : !llvm.ptr<7>
  // CLUSTER: nvvm.mbarrier.arrive %[[REMOTE]] {scope = #nvvm.mem_scope<cluster>}
  // CHECK: nvvm.elect.sync
  // CHECK: nvvm.mapa %{{.*}}, %c0_i32
  // CHECK: nvvm.mbarrier.arrive
  // CHECK: nvvm.mapa %{{.*}}, %c1_i32
  // CHECK: nvvm.mbarrier.arrive
  // CTA: nvvm.mbarrier.try_wait %{{.*}}, %{{[^ ]*}} :
  // CLUSTER: nvvm.mbarrier.try_wait {{.*}} {scope = #nvvm.mem_scope<cluster>}
  // CHECK: nvvm.cluster.arrive
  // CHECK-NEXT: nvvm.cluster.wait
  gpu.func @arrive() kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %empty = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    attn.mbarrier.arrive %empty[%zero] {ctas = 2} : !attn.mbarriers<1>
    attn.elect {
      attn.mbarrier.arrive %empty[%zero] {ctas = 2} : !attn.mbarriers<1>
    }
    attn.mbarrier.wait %empty[%zero] parity %zero {cluster} : !attn.mbarriers<1>
    attn.cluster_barrier
    gpu.return
  }

  // The first CTA announces 4 bytes in both CTAs and stores to both. One lane of
  // each warp arrives in the first CTA, where it may be itself.
  // CHECK-LABEL: gpu.func @leader
  // CHECK: nvvm.elect.sync
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
  // CHECK: %[[LEADS:.*]] = arith.cmpi eq, %[[RANK]], %c0_i32{{[_0-9]*}}
  // CHECK: scf.if %[[LEADS]]
  // CHECK: %[[HERE:.*]] = nvvm.mapa %{{.*}}, %c0_i32{{[_0-9]*}} : !llvm.ptr<3> -> !llvm.ptr<7>
  // CTA: nvvm.mbarrier.arrive.expect_tx %[[HERE]], %c4_i32{{[_0-9]*}} : !llvm.ptr<7>
  // CLUSTER: nvvm.mbarrier.arrive.expect_tx %[[HERE]], %c4_i32{{[_0-9]*}} {scope = #nvvm.mem_scope<cluster>}
  // CHECK: %[[THERE:.*]] = nvvm.mapa %{{.*}}, %c1_i32{{[_0-9]*}}
  // CHECK: nvvm.mbarrier.arrive.expect_tx %[[THERE]], %c4_i32{{[_0-9]*}}
  // CHECK: %[[ELEMENT:.*]] = llvm.getelementptr %{{.*}} : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
  // CHECK: %[[TO:.*]] = nvvm.mapa %[[ELEMENT]], %c0_i32{{[_0-9]*}}
  // CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[TO]] : !llvm.ptr<7> to i32
  // CHECK: llvm.inline_asm {{.*}}"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "r,r,r,~{memory}" %[[ADDRESS]], %{{.*}}, %{{.*}}
  // CHECK: nvvm.mapa %[[ELEMENT]], %c1_i32{{[_0-9]*}}
  // CHECK: llvm.inline_asm {{.*}}"st.async
  // CHECK: nvvm.bar.warp.sync
  // CHECK: arith.cmpi ult, %[[LANE:.*]], %c1_i32{{[_0-9]*}}
  // CHECK: %[[REMOTE:.*]] = nvvm.mapa %{{.*}}, %[[LANE]]
  // CTA: nvvm.mbarrier.arrive %[[REMOTE]] : !llvm.ptr<7>
  gpu.func @leader(%x: i32) kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {offset = 32 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {offset = 16 : i64} : !attn.mbarriers<2>
    attn.elect {
      attn.cluster_leader {
        attn.mbarrier.expect_tx %full[%zero] {bytes = 4, ctas = 2} : !attn.mbarriers<2>
        attn.scalar_send %x, %b[%x] barrier %full[%zero] : !attn.mbarriers<2> {ctas = 2} : !attn.buffer<2xi32, #attn.rows, shared>
      }
    }
    attn.mbarrier.arrive %empty[%zero] {leader} : !attn.mbarriers<2>
    gpu.return
  }

  // All CTAs of a cluster get a response, and each finds in it the number of its cluster.
  // CHECK-LABEL: gpu.func @requests
  // CHECK: scf.if
  // CHECK: %[[RESPONSE:.*]] = llvm.getelementptr %{{.*}} : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i128
  // CHECK: nvvm.clusterlaunchcontrol.try.cancel multicast, %[[RESPONSE]], %{{.*}}
  // CHECK: %[[FIRST:.*]] = llvm.inline_asm {{.*}}"{ .reg .pred %found; .reg .b128 %response; ld.shared.b128 %response, [$1]; mov.b32 $0, -1; clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %found, %response; @%found clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 $0, %response; }", "=&r,r,~{memory}"
  // CHECK: %[[ALL:.*]] = nvvm.shfl.sync idx %{{.*}}, %[[FIRST]]
  // CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[ALL]], %c-1_i32
  // CHECK: %[[NUMBER:.*]] = arith.divui %[[ALL]], %c2_i32
  // CHECK: arith.select %[[NONE]], %{{.*}}, %[[NUMBER]]
  gpu.func @requests(%i: i32) kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %b = attn.alloc {offset = 32 : i64} : !attn.buffer<2xi128, #attn.rows, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<2>
    attn.elect {
      attn.cluster_leader {
        attn.cluster_request %b[%i] barrier %full[%i] : !attn.mbarriers<2> {ctas = 2} : !attn.buffer<2xi128, #attn.rows, shared>
      }
    }
    %next = attn.cluster_response %b[%i] none %i : !attn.buffer<2xi128, #attn.rows, shared>
    gpu.printf "%d", %next : i32
    gpu.return
  }

  // In a pair the leader's rank is in no register.
  // CHECK-LABEL: gpu.func @pair
  // CHECK: arith.cmpi ult, %{{.*}}, %c1_i32
  // CHECK: nvvm.mapa %{{.*}}, %c0_i32
  gpu.func @pair() kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    %empty = attn.mbarrier.alloc {offset = 8 : i64} : !attn.mbarriers<1>
    attn.elect {
      attn.cluster_leader {
        attn.tcgen05.commit %full[%zero] {ctas = 2, pair} : !attn.mbarriers<1>
      }
    }
    attn.mbarrier.arrive %empty[%zero] {leader} : !attn.mbarriers<1>
    gpu.return
  }

  // Alone a CTA leads itself.
  // CHECK-LABEL: gpu.func @alone
  // CHECK-NOT: ctarank
  // CHECK-NOT: mapa
  // CHECK: llvm.inline_asm {{.*}}"st.async
  // CHECK-NOT: st.async
  // CHECK: gpu.return
  gpu.func @alone(%x: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %b = attn.alloc {offset = 32 : i64} : !attn.buffer<2xi32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<2>
    attn.elect {
      attn.cluster_leader {
        attn.scalar_send %x, %b[%x] barrier %full[%zero] : !attn.mbarriers<2> : !attn.buffer<2xi32, #attn.rows, shared>
      }
    }
    gpu.return
  }

  // A tile goes to the other CTA, whose own tile comes here, with two elements
  // that lie together in one store. What came is read behind a wait.
  // CHECK-LABEL: gpu.func @exchange
  // CHECK: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
  // CHECK: %[[OTHER:.*]] = arith.xori %[[RANK]], %c1_i32
  // CHECK: %[[FULL:.*]] = nvvm.mapa %{{.*}}, %[[OTHER]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK: %[[BARRIER:.*]] = llvm.ptrtoint %[[FULL]]
  // CHECK: %[[BASE:.*]] = nvvm.mapa %{{.*}}, %[[OTHER]] : !llvm.ptr<3> -> !llvm.ptr<7>
  // CHECK: %[[TO:.*]] = llvm.getelementptr %[[BASE]]
  // CHECK: %[[ADDRESS:.*]] = llvm.ptrtoint %[[TO]]
  // CHECK: llvm.inline_asm {{.*}}"st.async.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [$0], {$1, $2}, [$3];", "r,f,f,r,~{memory}" %[[ADDRESS]], %{{.*}}, %{{.*}}, %[[BARRIER]]
  // CHECK-COUNT-3: st.async
  // CHECK-NOT: st.async
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK-COUNT-4: llvm.inline_asm {{.*}}"ld.shared.v2.b32 {$0, $1}, [$2];", "=f,=f,r,~{memory}"
  // CHECK: arith.addf
  gpu.func @exchange() kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %t = arith.constant dense<1.0> : tensor<64x16xf32, #attn.mma<warps = [4, 1]>>
    %b = attn.alloc {offset = 1024 : i64} : !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    attn.local_send %t, %b barrier %full[%zero] : !attn.mbarriers<1> : tensor<64x16xf32, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared>
    attn.mbarrier.wait %full[%zero] parity %zero {cluster} : !attn.mbarriers<1>
    %other = attn.local_load %b : !attn.buffer<64x16xf32, #attn.swizzled<span = 64>, shared> -> tensor<64x16xf32, #attn.mma<warps = [4, 1]>>
    %sum = arith.addf %t, %other : tensor<64x16xf32, #attn.mma<warps = [4, 1]>>
    gpu.return
  }

  // Elements of 16 bits go in pairs, whose words ldmatrix reads; of four threads
  // that hold a row's value one sends it.

  // CHECK-LABEL: gpu.func @exchange_halves
  // CHECK-COUNT-4: llvm.inline_asm {{.*}}"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "r,r,r,~{memory}"
  // CHECK: scf.if
  // CHECK: llvm.inline_asm {{.*}}"st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [$0], $1, [$2];", "r,f,r,~{memory}"
  // CHECK: nvvm.mbarrier.try_wait
  // CHECK: nvvm.ldmatrix
  // CHECK-COUNT-2: llvm.inline_asm {{.*}}"ld.shared.b32 $0, [$1];", "=f,r,~{memory}"
  gpu.func @exchange_halves() kernel attributes {attn.warps = array<i64: 4, 1>, known_cluster_size = array<i32: 2, 1, 1>} {
    %zero = arith.constant 0 : i32
    %t = arith.constant dense<1.0> : tensor<64x16xf16, #attn.mma<warps = [4, 1]>>
    %r = arith.constant dense<1.0> : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    %b = attn.alloc {offset = 1024 : i64} : !attn.buffer<64x16xf16, #attn.swizzled<span = 32>, shared>
    %m = attn.alloc {offset = 4096 : i64} : !attn.buffer<64xf32, #attn.rows, shared>
    %full = attn.mbarrier.alloc {offset = 0 : i64} : !attn.mbarriers<1>
    attn.local_send %t, %b barrier %full[%zero] : !attn.mbarriers<1> : tensor<64x16xf16, #attn.mma<warps = [4, 1]>>, !attn.buffer<64x16xf16, #attn.swizzled<span = 32>, shared>
    attn.local_send %r, %m barrier %full[%zero] : !attn.mbarriers<1> : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>, !attn.buffer<64xf32, #attn.rows, shared>
    attn.mbarrier.wait %full[%zero] parity %zero {cluster} : !attn.mbarriers<1>
    %other = attn.local_load %b : !attn.buffer<64x16xf16, #attn.swizzled<span = 32>, shared> -> tensor<64x16xf16, #attn.mma<warps = [4, 1]>>
    %sum = arith.addf %t, %other : tensor<64x16xf16, #attn.mma<warps = [4, 1]>>
    %row = attn.local_load %m : !attn.buffer<64xf32, #attn.rows, shared> -> tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    %rows = arith.addf %r, %row : tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
    gpu.return
  }
}
