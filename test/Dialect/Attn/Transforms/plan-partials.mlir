// RUN: attn-opt --attn-plan="chip=sm_90a partials=bf16" --split-input-file %s | FileCheck %s
// RUN: attn-opt --attn-plan="chip=sm_90a" --split-input-file %s | FileCheck %s --check-prefix=WIDE
// RUN: attn-opt --attn-plan="chip=sm_90a partials=f16" --split-input-file %s | FileCheck %s --check-prefix=HALF
// RUN: not attn-opt --attn-plan="chip=sm_90a partials=f64" --split-input-file %s 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: attn-compile --q=1x128x1x576xbf16 --rope-dim=64 --kv-lengths=32768 --page-size=64 --chip=sm_90a --emit=plan | FileCheck %s --check-prefix=LATENT
// RUN: attn-compile --q=1x128x1x576xbf16 --rope-dim=64 --kv-lengths=300 --page-size=64 --kv-splits=3 --chip=sm_90a --emit=plan | FileCheck %s --check-prefix=LATENT
// RUN: attn-compile --q=1x128x1x576xbf16 --rope-dim=64 --kv-lengths=32768 --page-size=64 --out-type=f32 --chip=sm_90a --emit=plan | FileCheck %s --check-prefix=EXACT
// RUN: attn-compile --q=1x128x1x576xbf16 --rope-dim=64 --kv-lengths=300 --page-size=64 --kv-splits=3 --out-type=f32 --chip=sm_90a --emit=plan | FileCheck %s --check-prefix=EXACT
// RUN: attn-compile --q=1x128x1x576xbf16 --rope-dim=64 --kv-lengths=32768 --page-size=64 --partials=f32 --chip=sm_90a --emit=plan | FileCheck %s --check-prefix=EXACT
// RUN: attn-compile --q=1x128x1x576xbf16 --rope-dim=64 --kv-lengths=32768 --page-size=64 --chip=sm_90a --partials=bf16 --emit=plan | FileCheck %s --check-prefix=CUT
// RUN: attn-compile --q=1x8x1x64xf16 --kv-heads=2 --kv-lengths=300 --page-size=16 --run-keys=128 --chip=sm_80 --partials=bf16 --emit=plan | FileCheck %s --check-prefix=FIXED

// The option is about partial results of o that only the launch sees, those of the planner's
// runs and of a problem's own. LSEs stay f32, and rows of f16 have scales. Without it latent
// attention has f16, unless its results are f32.

// TYPE: error: partials: expected auto, f32, f16 or bf16, got 'f64'

// LATENT: %[[O:.*]] = memref.alloc() : memref<[[RUNS:[0-9]+]]x1x128x1x512xf16>
// LATENT-DAG: %[[L:.*]] = memref.alloc() : memref<[[RUNS]]x1x128x1xf32>
// LATENT-DAG: %[[S:.*]] = memref.alloc() : memref<[[RUNS]]x1x128x1x2xf32>
// LATENT: attn.attention {{.*}} outs(%[[O]], %[[L]] : {{.*}} out_scales(%[[S]] :
// LATENT: attn.combine ins(%[[O]], %[[L]] : {{.*}} scales(%[[S]] :

// EXACT: memref.alloc() : memref<{{[0-9]+}}x1x128x1x512xf32>
// EXACT-NOT: out_scales
// EXACT: attn.combine

// CUT: memref.alloc() : memref<[[RUNS:[0-9]+]]x1x128x1x512xbf16>
// CUT: memref.alloc() : memref<[[RUNS]]x1x128x1xf32>
// CUT: attn.combine

// FIXED: memref.alloc() : memref<3x1x8x1x64xbf16>
// FIXED: run_keys = 128

// CHECK-LABEL: func.func @launch
// CHECK: memref.alloc() : memref<3x1x8x1x64xbf16>
// CHECK: memref.alloc() : memref<3x1x8x1xf32>
// CHECK: attn.combine ins({{.*}} : memref<3x1x8x1x64xbf16>, memref<3x1x8x1xf32>)
// WIDE-NOT: bf16
// WIDE: attn.combine
// HALF-LABEL: func.func @launch
// HALF: %[[O:.*]] = memref.alloc() : memref<3x1x8x1x64xf16>
// HALF: %[[L:.*]] = memref.alloc() : memref<3x1x8x1xf32>
// HALF: %[[S:.*]] = memref.alloc() : memref<3x1x8x1x1xf32>
// HALF: attn.attention {{.*}} outs(%[[O]], %[[L]] : {{.*}} out_scales(%[[S]] : memref<3x1x8x1x1xf32>)
// HALF: attn.combine ins(%[[O]], %[[L]] : {{.*}} scales(%[[S]] : memref<3x1x8x1x1xf32>) outs(
func.func @launch(%q: memref<1x8x1x64xf16>, %k: memref<1x2x300x64xf16>,
                  %v: memref<1x2x300x64xf16>, %o: memref<1x8x1x64xf16>) {
  %partial = memref.alloc() : memref<3x1x8x1x64xf32>
  %lse = memref.alloc() : memref<3x1x8x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x8x1x64xf16>, memref<1x2x300x64xf16>, memref<1x2x300x64xf16>)
                 outs(%partial, %lse : memref<3x1x8x1x64xf32>, memref<3x1x8x1xf32>)
                 {kv_splits = 3 : i64}
  attn.combine ins(%partial, %lse : memref<3x1x8x1x64xf32>, memref<3x1x8x1xf32>)
               outs(%o : memref<1x8x1x64xf16>)
  return
}

// -----

// A caller has them, or somebody else reads them.

// CHECK-LABEL: func.func @caller
// CHECK-NOT: bf16
// HALF-LABEL: func.func @caller
// HALF-NOT: out_scales
func.func @caller(%q: memref<1x8x1x64xf16>, %k: memref<1x2x300x64xf16>,
                  %v: memref<1x2x300x64xf16>, %partial: memref<3x1x8x1x64xf32>,
                  %lse: memref<3x1x8x1xf32>) {
  attn.attention ins(%q, %k, %v : memref<1x8x1x64xf16>, memref<1x2x300x64xf16>, memref<1x2x300x64xf16>)
                 outs(%partial, %lse : memref<3x1x8x1x64xf32>, memref<3x1x8x1xf32>)
                 {kv_splits = 3 : i64}
  return
}

// -----

// CHECK-LABEL: func.func @reader
// CHECK-NOT: bf16
// HALF-LABEL: func.func @reader
// HALF-NOT: out_scales
func.func @reader(%q: memref<1x8x1x64xf16>, %k: memref<1x2x300x64xf16>,
                  %v: memref<1x2x300x64xf16>, %o: memref<1x8x1x64xf16>,
                  %copy: memref<3x1x8x1x64xf32>) {
  %partial = memref.alloc() : memref<3x1x8x1x64xf32>
  %lse = memref.alloc() : memref<3x1x8x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x8x1x64xf16>, memref<1x2x300x64xf16>, memref<1x2x300x64xf16>)
                 outs(%partial, %lse : memref<3x1x8x1x64xf32>, memref<3x1x8x1xf32>)
                 {kv_splits = 3 : i64}
  attn.combine ins(%partial, %lse : memref<3x1x8x1x64xf32>, memref<3x1x8x1xf32>)
               outs(%o : memref<1x8x1x64xf16>)
  memref.copy %partial, %copy : memref<3x1x8x1x64xf32> to memref<3x1x8x1x64xf32>
  return
}
