// REQUIRES: mlir-opt
// RUN: %mlir_opt %s --load-dialect-plugin=%attn_plugin --load-pass-plugin=%attn_plugin --pass-pipeline='builtin.module(attn-plan{chip=sm_80})' | FileCheck %s
// RUN: %mlir_opt %s --load-dialect-plugin=%attn_plugin --load-pass-plugin=%attn_plugin --pass-pipeline='builtin.module(attn-to-barrier{chip=sm_80})' | FileCheck %s --check-prefix=BARRIER
// RUN: %mlir_opt %s --load-dialect-plugin=%attn_plugin -canonicalize | FileCheck %s --check-prefix=DIALECT
// RUN: not %mlir_opt %s 2>&1 | FileCheck %s --check-prefix=WITHOUT

// The distribution's mlir-opt reads the dialect and runs the passes.

// CHECK: attn.attention
// CHECK-SAME: plan = #attn.split_q<

// BARRIER: gpu.module @{{.*}} [#attn.target<chip = "sm_80">]
// BARRIER: gpu.barrier

// DIALECT: attn.attention
// DIALECT-NOT: plan

// WITHOUT: error: Dialect `attn' not found for custom op 'attn.attention'

func.func @problem(%q: memref<1x2x128x64xf16>, %k: memref<1x2x128x64xf16>,
                   %v: memref<1x2x128x64xf16>, %o: memref<1x2x128x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x2x128x64xf16>, memref<1x2x128x64xf16>, memref<1x2x128x64xf16>)
                 outs(%o : memref<1x2x128x64xf16>)
  return
}
