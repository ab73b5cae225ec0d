// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-fuse-row-maxima))' --split-input-file | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-fuse-row-maxima))' --split-input-file --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// REMARK: row-maxima | Category:attn.fuse-row-maxima | Function=whole | Remark="loads bring 1 of 1 maxima of rows", fused=1, kept=0
// REMARK: row-maxima {{.*}}Function=others | Remark="loads bring 0 of 3 maxima of rows", fused=0, kept=3
// REMARK-NOT: remark

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#quads = #attn.tmem_regs<shape_16x256b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!c = !attn.buffer<128x48xf32, #attn.tmem<m = 128>, tmem>
!flying = !attn.inflight<128x64xf32, #regs>
!t = tensor<128x64xf32, #attn.auto>
!m = tensor<128xf32, #attn.auto>

gpu.module @kernels [#attn.target<chip = "sm_103a">] {
  // NaN stays NaN, and a wait for several loads returns what it did.
  // CHECK-LABEL: gpu.func @whole
  // CHECK: %[[G:.*]] = attn.tmem.load
  // CHECK: %[[F:.*]], %[[MAX:.*]] = attn.tmem.load %{{.*}} {reduce = #attn<reduce_kind maximum>}
  // CHECK: %[[T:.*]]:3 = attn.tmem.wait %[[F]], %[[G]], %[[MAX]]
  // CHECK-NOT: attn.reduce maximum
  // CHECK: attn.reduce add %[[T]]#1
  // CHECK: gpu.return %[[T]]#0, %[[T]]#2
  gpu.func @whole(%s: !s) -> (!t, !m, !m) {
    %g = attn.tmem.load %s : !s -> !flying
    %f = attn.tmem.load %s : !s -> !flying
    %t, %u = attn.tmem.wait %f, %g : !flying, !flying -> !t, !t
    %m = attn.reduce maximum %t : !t -> !m
    %l = attn.reduce add %u : !t -> !m
    gpu.return %t, %m, %l : !t, !m, !m
  }

  // What is changed in between, other numbers of columns, and threads that have
  // parts of rows.
  // CHECK-LABEL: gpu.func @others
  // CHECK-COUNT-3: attn.reduce max
  gpu.func @others(%s: !s, %c: !c) -> (!m, !m, !m) {
    %f = attn.tmem.load %s : !s -> !flying
    %t = attn.tmem.wait %f : !flying -> !t
    %n = arith.negf %t : !t
    %m = attn.reduce max %n : !t -> !m
    %g = attn.tmem.load %c : !c -> !attn.inflight<128x48xf32, #regs>
    %u = attn.tmem.wait %g : !attn.inflight<128x48xf32, #regs> -> tensor<128x48xf32, #attn.auto>
    %k = attn.reduce max %u : tensor<128x48xf32, #attn.auto> -> !m
    %h = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #quads>
    %v = attn.tmem.wait %h : !attn.inflight<128x64xf32, #quads> -> !t
    %q = attn.reduce max %v : !t -> !m
    gpu.return %m, %k, %q : !m, !m, !m
  }
}

// -----

// Other chips have no such load.
#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!s = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!t = tensor<128x64xf32, #attn.auto>
gpu.module @older [#attn.target<chip = "sm_100a">] {
  // CHECK-LABEL: gpu.func @kept
  // CHECK: attn.reduce max
  gpu.func @kept(%s: !s) -> tensor<128xf32, #attn.auto> {
    %f = attn.tmem.load %s : !s -> !attn.inflight<128x64xf32, #regs>
    %t = attn.tmem.wait %f : !attn.inflight<128x64xf32, #regs> -> !t
    %m = attn.reduce max %t : !t -> tensor<128xf32, #attn.auto>
    gpu.return %m : tensor<128xf32, #attn.auto>
  }
}
