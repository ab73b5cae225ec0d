// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

// Probabilities whose uses are slices are computed slice by slice, each where it
// stands.

!s = tensor<128x64xf32, #attn.auto>
!p = tensor<128x64xf16, #attn.auto>
!front = tensor<128x48xf16, #attn.auto>
!back = tensor<128x16xf16, #attn.auto>
!m = tensor<128xf32, #attn.auto>
!l = tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
!to_front = !attn.buffer<128x48xf16, #attn.tmem<m = 128>, tmem>
!results = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!to_back = !attn.buffer<128x16xf16, #attn.tmem<m = 128>, tmem>

gpu.module @kernels {
  // CHECK-LABEL: gpu.func @threshold(
  // CHECK: %[[KEPT:.*]]:3 = attn.rare any
  // CHECK: attn.slice %[[S:.*]] {column = 0 : i64} : {{.*}} -> tensor<128x48xf32
  // CHECK: attn.exp2 %{{.*}} {bounded, polynomial = 2 : i64} : tensor<128x48xf32
  // CHECK: attn.tmem.store
  // CHECK: %[[SUMS:.*]] = attn.reduce add {{.*}} : tensor<128x48xf32
  // CHECK: %[[L:.*]] = arith.addf %[[KEPT]]#1, %[[SUMS]]
  // CHECK: attn.slice %[[S]] {column = 48 : i64}
  // CHECK: attn.exp2 %{{.*}} {bounded, polynomial = 2 : i64} : tensor<128x16xf32
  // CHECK: attn.tmem.store
  // CHECK: %[[SUMS:.*]] = attn.reduce add {{.*}} : tensor<128x16xf32
  // CHECK: arith.addf %[[L]], %[[SUMS]]
  // CHECK-NOT: attn.exp2
  // CHECK: gpu.return
  gpu.func @threshold(%x: f32, %f: !to_front, %b: !to_back) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l scale %x policy<threshold, polynomial = 2> : !s, !m, !l
    %n = arith.truncf %p : !s to !p
    %front = attn.slice %n {column = 0} : !p -> !front
    attn.tmem.store %front, %f : !front, !to_front
    %back = attn.slice %n {column = 48} : !p -> !back
    attn.tmem.store %back, %b : !back, !to_back
    gpu.return
  }

  // CHECK-LABEL: gpu.func @exact(
  // CHECK-NOT: attn.rare
  // CHECK: attn.slice %{{.*}} {column = 0 : i64}
  // CHECK: attn.tmem.store
  // CHECK: attn.slice %{{.*}} {column = 48 : i64}
  // CHECK: attn.tmem.store
  // CHECK: gpu.return
  gpu.func @exact(%x: f32, %f: !to_front, %b: !to_back) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l scale %x : !s, !m, !l
    %n = arith.truncf %p : !s to !p
    %front = attn.slice %n {column = 0} : !p -> !front
    attn.tmem.store %front, %f : !front, !to_front
    %back = attn.slice %n {column = 48} : !p -> !back
    attn.tmem.store %back, %b : !back, !to_back
    gpu.return
  }

  // The first slice is the bet, the other one knows what became of it.
  // CHECK-LABEL: gpu.func @lagged(
  // CHECK: attn.exp2 %{{.*}} : tensor<128x48xf32
  // CHECK: %[[BET:.*]] = arith.truncf
  // CHECK: attn.reduce max
  // CHECK: %[[KEPT:.*]]:4 = attn.rare any %{{.*}} default(%[[BET]],
  // CHECK:   attn.exp2 %{{.*}} : tensor<128x48xf32
  // CHECK:   attn.yield
  // CHECK: attn.tmem.store %[[KEPT]]#0
  // CHECK: arith.negf %[[KEPT]]#1
  // CHECK: attn.exp2 %{{.*}} : tensor<128x16xf32
  // CHECK: attn.tmem.store
  // CHECK: gpu.return
  gpu.func @lagged(%x: f32, %f: !to_front, %b: !to_back) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l scale %x policy<lagged> : !s, !m, !l
    %n = arith.truncf %p : !s to !p
    %front = attn.slice %n {column = 0} : !p -> !front
    attn.tmem.store %front, %f : !front, !to_front
    %back = attn.slice %n {column = 48} : !p -> !back
    attn.tmem.store %back, %b : !back, !to_back
    gpu.return
  }

  // Under optimistic the vote stands behind what stores the slices, where the
  // results are rescaled. The rare path stores them once more, of the exponents
  // that they were made of. Rows without a maximum bet on 0, and lose.
  // CHECK-LABEL: gpu.func @optimistic(
  // CHECK: %[[NONE:.*]] = arith.cmpf ole, %[[M:.*]], %{{.*}} : tensor<128xf32
  // CHECK: %[[STANDING:.*]] = arith.select %[[NONE]], %{{.*}}, %[[M]]
  // CHECK: %[[FRONT:.*]] = math.fma {{.*}} : tensor<128x48xf32
  // CHECK: attn.exp2 %[[FRONT]] : tensor<128x48xf32
  // CHECK: attn.tmem.store
  // CHECK: %[[BACK:.*]] = math.fma {{.*}} : tensor<128x16xf32
  // CHECK: attn.exp2 %[[BACK]] : tensor<128x16xf32
  // CHECK: attn.reduce add {{.*}} : tensor<128x48xf32
  // CHECK: attn.tmem.store
  // CHECK: attn.reduce add {{.*}} : tensor<128x16xf32
  // CHECK: arith.cmpf uge
  // CHECK: attn.rare any %{{.*}} default(%[[STANDING]],
  // CHECK:   attn.reduce max %[[FRONT]]
  // CHECK:   attn.reduce max %[[BACK]]
  // CHECK:   %[[FACTOR:.*]] = attn.exp2 %{{.*}} : tensor<128xf32
  // CHECK:   attn.broadcast %[[FACTOR]]
  // CHECK:   attn.tmem.store
  // CHECK:   attn.tmem.store_wait
  // CHECK:   arith.subf %[[FRONT]]
  // CHECK:   attn.tmem.store
  // CHECK:   arith.subf %[[BACK]]
  // CHECK:   attn.tmem.store
  // CHECK:   attn.yield
  // CHECK-NOT: attn.rare
  // CHECK: gpu.return
  gpu.func @optimistic(%x: f32, %f: !to_front, %b: !to_back, %o: !results) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %one = arith.constant dense<1.0> : !m
    %none = arith.constant dense<0xFF800000> : !m
    %p, %m1, %l1, %c = attn.online_softmax %s, %m, %l scale %x policy<optimistic> : !s, !m, !l
    %n = arith.truncf %p : !s to !p
    %front = attn.slice %n {column = 0} : !p -> !front
    attn.tmem.store %front, %f : !front, !to_front
    %back = attn.slice %n {column = 48} : !p -> !back
    attn.tmem.store %back, %b : !back, !to_back
    %changed = arith.cmpf une, %c, %one : !m
    %some = arith.cmpf une, %m, %none : !m
    %both = arith.andi %changed, %some : tensor<128xi1, #attn.auto>
    attn.rare any %both : tensor<128xi1, #attn.auto> {
      %z = attn.broadcast %c : !m -> !s
      attn.tmem.store %z, %o : !s, !results
    }
    gpu.return
  }

  // Slices that leave columns out are slices of all of p.
  // CHECK-LABEL: gpu.func @incomplete(
  // CHECK: attn.exp2 %{{.*}} : tensor<128x64xf32
  // CHECK: attn.slice %{{.*}} -> tensor<128x48xf16
  gpu.func @incomplete(%x: f32, %f: !to_front) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l scale %x : !s, !m, !l
    %n = arith.truncf %p : !s to !p
    %front = attn.slice %n {column = 0} : !p -> !front
    attn.tmem.store %front, %f : !front, !to_front
    gpu.return
  }
}
