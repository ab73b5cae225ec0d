// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' | FileCheck %s

!s = tensor<64x32xf32, #attn.auto>
!m = tensor<64xf32, #attn.auto>
!l = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>

gpu.module @kernels {
  // The maximum is known; l and o change on the rare path only.
  // CHECK-LABEL: gpu.func @threshold(
  // CHECK: attn.reduce max
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt
  // CHECK: %[[KEPT:.*]]:3 = attn.rare any %[[GROWN]] default(
  // CHECK-NOT: attn.reduce
  // CHECK: attn.yield
  // CHECK: arith.negf %[[KEPT]]#0
  // CHECK: attn.exp2
  // CHECK: attn.reduce add {{.*}} partial
  gpu.func @threshold(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %s scale %x policy<threshold> : !s, !m, !l, !s
    gpu.return
  }

  // An accumulator that is awaited is touched behind the exponentials, and each
  // thread knows its part of the maximum, which threads exchange on the rare path.
  // CHECK-LABEL: gpu.func @threshold_awaited
  // CHECK: %[[PART:.*]] = attn.reduce max %{{.*}} partial
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt
  // CHECK: %[[MAX:.*]] = attn.rare any %[[GROWN]] default(
  // CHECK: attn.reduce max %[[PART]] :
  // CHECK-NOT: arith.mulf {{.*}}tensor<64x32
  // CHECK: attn.exp2 %{{.*}} : tensor<64x32
  // CHECK: attn.rare any %[[GROWN]] default(
  // CHECK: arith.mulf {{.*}} : tensor<64x32
  gpu.func @threshold_awaited(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %f = attn.wgmma.resume %s : !s -> !attn.inflight<64x32xf32>
    %o = attn.wgmma.wait %f {pending = 0} : !attn.inflight<64x32xf32> -> !s
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %x policy<threshold, growth = 0> : !s, !m, !l, !s
    gpu.return
  }

  // No maximum and no factor outside of the rare path.
  // CHECK-LABEL: gpu.func @optimistic
  // CHECK-NOT: attn.reduce max
  // CHECK: attn.exp2
  // CHECK: %[[SUMS:.*]] = attn.reduce add %{{.*}} partial
  // CHECK: arith.constant dense<1.600000e+01>
  // CHECK: %[[LARGE:.*]] = arith.cmpf uge, %[[SUMS]]
  // CHECK: attn.rare any %[[LARGE]] default(
  // CHECK: attn.reduce max
  // CHECK: attn.yield
  gpu.func @optimistic(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %s scale %x policy<optimistic> : !s, !m, !l, !s
    gpu.return
  }

  // Probabilities that are only used as f16 are narrow at the vote already.
  // CHECK-LABEL: gpu.func @narrow
  // CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<64x32xf32, #attn.auto> to tensor<64x32xf16, #attn.auto>
  // CHECK: %[[R:.*]]:4 = attn.rare any %{{.*}} default(%[[P]],
  // CHECK: %[[RARE:.*]] = arith.truncf
  // CHECK: attn.yield %[[RARE]],
  // CHECK: attn.local_store %[[R]]#0
  gpu.func @narrow(%x: f32, %n: i32, %dest: !attn.buffer<64x32xf16, #attn.auto, shared>) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %s scale %x policy<optimistic> : !s, !m, !l, !s
    %half = arith.truncf %p : !s to tensor<64x32xf16, #attn.auto>
    attn.local_store %half, %dest : tensor<64x32xf16, #attn.auto>, !attn.buffer<64x32xf16, #attn.auto, shared>
    gpu.return
  }

  // Masked blocks compare maxima; interior ones bet.
  // CHECK-LABEL: gpu.func @phases
  // CHECK: scf.for
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt
  // CHECK: attn.rare any %[[GROWN]]
  // CHECK: attn.phase = #attn<kv_phase right>
  // CHECK: scf.for
  // CHECK: %[[LARGE:.*]] = arith.cmpf uge
  // CHECK: attn.rare any %[[LARGE]]
  // CHECK: attn.phase = #attn<kv_phase interior>
  gpu.func @phases(%x: f32, %n: i32, %full: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %r:3 = attn.kv_loop %zero, %zero, %full, %n block 32 stages 1 iter_args(%m, %l, %s : !m, !l, !s) {
    ^bb0(%key: i32, %mi: !m, %li: !l, %oi: !s):
      %masked = attn.apply_mask %s[%zero, %key] limit %n : !s
      %p, %m1, %l1, %o1 = attn.online_softmax %masked, %mi, %li, %oi scale %x policy<optimistic> : !s, !m, !l, !s
      attn.yield %m1, %l1, %o1 : !m, !l, !s
    }
    gpu.return
  }

  // Probabilities of 8 bits: the maximum stays below the true one, a sum may
  // reach further, and the narrow ones pass the rare path.
  // CHECK-LABEL: gpu.func @eight_bits
  // CHECK: arith.constant dense<4.400000e+02>
  // CHECK: %[[BIG:.*]] = arith.cmpf uge
  // CHECK: %[[A:.*]] = attn.narrow_operand
  // CHECK: attn.rare any %[[BIG]] default(%[[A]],
  // CHECK: %[[MAX:.*]] = attn.reduce max
  // CHECK: %[[OFFSET:.*]] = arith.constant dense<-3.000000e+00>
  // CHECK: math.fma %[[MAX]], %{{.*}}, %[[OFFSET]]
  // CHECK: attn.narrow_operand
  // CHECK: attn.yield
  gpu.func @eight_bits(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %s scale %x policy<optimistic, offset = 3, limit = 440> : !s, !m, !l, !s
    %a = attn.narrow_operand %p : !s -> tensor<64x32xf8E4M3FN, #attn.auto>
    gpu.return
  }

  // Where the accumulator is awaited at the vote 16-bit probabilities stay wide:
  // the product that makes it still reads the last block's.
  // CHECK-LABEL: gpu.func @awaited
  // CHECK: %[[P:.*]] = attn.exp2
  // CHECK-NOT: arith.truncf
  // CHECK: attn.rare any %{{.*}} default(%[[P]],
  // CHECK: arith.truncf
  gpu.func @awaited(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %f = attn.wgmma.resume %s : !s -> !attn.inflight<64x32xf32>
    %o = attn.wgmma.wait %f {pending = 0} : !attn.inflight<64x32xf32> -> !s
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %x policy<optimistic> : !s, !m, !l, !s
    %a = arith.truncf %p : !s to tensor<64x32xf16, #attn.auto>
    gpu.return
  }

  // 8-bit ones are few enough to have registers of their own.
  // CHECK-LABEL: gpu.func @awaited_eight_bits
  // CHECK: attn.exp2
  // CHECK: %[[A:.*]] = attn.narrow_operand %{{.*}} {order = #attn<key_order quads>}
  // CHECK: attn.rare any %{{.*}} default(%[[A]],
  // CHECK: attn.narrow_operand %{{.*}} {order = #attn<key_order quads>}
  // CHECK-NOT: attn.narrow_operand
  gpu.func @awaited_eight_bits(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %f = attn.wgmma.resume %s : !s -> !attn.inflight<64x32xf32>
    %o = attn.wgmma.wait %f {pending = 0} : !attn.inflight<64x32xf32> -> !s
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %o scale %x policy<optimistic> : !s, !m, !l, !s
    %a = attn.narrow_operand %p {order = #attn<key_order quads>} : !s -> tensor<64x32xf8E4M3FN, #attn.auto>
    gpu.return
  }

  // Probabilities do not wait for the maximum; where it has grown they are
  // computed anew.
  // CHECK-LABEL: gpu.func @lagged
  // CHECK: %[[P:.*]] = attn.exp2 %{{.*}} {bounded, polynomial = 2 : i64} : tensor<64x32xf32
  // CHECK: %[[SUMS:.*]] = attn.reduce add %[[P]] partial
  // CHECK: %[[MAX:.*]] = attn.reduce maximum %{{.*}} partial
  // CHECK: %[[GROWN:.*]] = arith.cmpf ugt
  // CHECK: %[[L:.*]] = arith.addf %{{.*}}, %[[SUMS]]
  // CHECK: attn.rare any %[[GROWN]] default(%[[P]], %{{.*}}, %[[L]], %{{.*}} :
  // A polynomial does not pass NaN on, so the maximum does, and is NaN where it
  // would be infinite.
  // CHECK: attn.reduce maximum
  // CHECK: arith.maximumf
  // CHECK: %[[LARGEST:.*]] = arith.maximumf
  // CHECK: %[[KEPT:.*]] = math.fma %[[LARGEST]], %{{.*}}, %[[LARGEST]]
  // CHECK: arith.negf %[[KEPT]]
  // CHECK: attn.exp2 %{{.*}} {bounded, polynomial = 2 : i64}
  // CHECK: attn.yield
  gpu.func @lagged(%x: f32, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %o1 = attn.online_softmax %s, %m, %l, %s scale %x policy<lagged, polynomial = 2> : !s, !m, !l, !s
    gpu.return
  }

  // Without an accumulator the factor is the last result, 1 where the maximum
  // stands.
  // CHECK-LABEL: gpu.func @factor_exact
  // CHECK: %[[F:.*]] = attn.exp2 %{{.*}} : tensor<64xf32
  // CHECK: arith.addf %[[F]], %[[F]]
  gpu.func @factor_exact(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x : !s, !m, !l
    %use = arith.addf %f, %f : !m
    gpu.return
  }

  // CHECK-LABEL: gpu.func @factor_first
  // CHECK-NOT: attn.rare
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf32
  // CHECK: arith.addf %[[ONE]], %[[ONE]]
  gpu.func @factor_first(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = arith.constant dense<0.0> : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<lagged> : !s, !m, !l
    %use = arith.addf %f, %f : !m
    gpu.return
  }

  // CHECK-LABEL: gpu.func @factor_threshold
  // CHECK: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf32
  // CHECK: %[[KEPT:.*]]:3 = attn.rare any %{{.*}} default(%{{.*}}, %{{.*}}, %[[ONE]] :
  // CHECK: %[[F:.*]] = attn.exp2
  // CHECK: attn.yield %{{.*}}, %{{.*}}, %[[F]]
  // CHECK: arith.addf %[[KEPT]]#2, %[[KEPT]]#2
  gpu.func @factor_threshold(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<threshold> : !s, !m, !l
    %use = arith.addf %f, %f : !m
    gpu.return
  }

  // What rescales the accumulator elsewhere goes to the step's own rare path:
  // one vote. Optimistic and lagged steps do so in the exact step.
  // CHECK-LABEL: gpu.func @rescale
  // CHECK: %[[LARGE:.*]] = arith.cmpf uge
  // CHECK: attn.rare any %[[LARGE]]
  // CHECK: %[[F:.*]] = attn.exp2 %{{.*}} : tensor<64xf32
  // CHECK: arith.mulf %{{.*}}, %[[F]] : tensor<64xf32
  // CHECK: attn.yield
  // CHECK-NOT: attn.rare
  // CHECK: gpu.return
  gpu.func @rescale(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<optimistic> : !s, !m, !l
    %one = arith.constant dense<1.0> : !m
    %changed = arith.cmpf une, %f, %one : !m
    attn.rare any %changed : tensor<64xi1, #attn.auto> {
      %g = arith.mulf %m, %f : !m
      attn.yield
    }
    gpu.return
  }

  // The exact step has a vote of its own for it; without a sum so far there is
  // nothing to rescale.
  // CHECK-LABEL: gpu.func @rescale_exact
  // CHECK: %[[F:.*]] = attn.exp2 %{{.*}} : tensor<64xf32
  // CHECK: %[[CHANGED:.*]] = arith.cmpf une, %[[F]],
  // CHECK: attn.rare any %[[CHANGED]]
  // CHECK-NOT: attn.rare
  // CHECK: gpu.return
  gpu.func @rescale_exact(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x : !s, !m, !l
    %one = arith.constant dense<1.0> : !m
    %changed = arith.cmpf une, %f, %one : !m
    attn.rare any %changed : tensor<64xi1, #attn.auto> {
      %g = arith.mulf %m, %f : !m
      attn.yield
    }
    %none = arith.constant dense<0.0> : !l
    %p2, %m2, %l2, %f2 = attn.online_softmax %s, %m, %none scale %x : !s, !m, !l
    %changed2 = arith.cmpf une, %f2, %one : !m
    attn.rare any %changed2 : tensor<64xi1, #attn.auto> {
      %g = arith.mulf %m, %f2 : !m
      attn.yield
    }
    gpu.return
  }

  // What is computed behind the step cannot go there.
  // CHECK-LABEL: gpu.func @rescale_late
  // CHECK: attn.rare any
  // CHECK: attn.rare any
  // CHECK: gpu.return
  gpu.func @rescale_late(%x: f32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %s = tensor.splat %x : !s
    %m = tensor.splat %x : !m
    %l = tensor.splat %x : !l
    %p, %m1, %l1, %f = attn.online_softmax %s, %m, %l scale %x policy<threshold> : !s, !m, !l
    %one = arith.constant dense<1.0> : !m
    %late = arith.addf %m1, %one : !m
    %changed = arith.cmpf une, %f, %one : !m
    attn.rare any %changed : tensor<64xi1, #attn.auto> {
      %g = arith.mulf %late, %f : !m
      attn.yield
    }
    gpu.return
  }
}
