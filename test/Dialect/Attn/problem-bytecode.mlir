// RUN: attn-opt %S/Inputs/version-0.mlirbc | FileCheck %s
// RUN: attn-opt %S/Inputs/version-0.mlirbc -emit-bytecode | attn-opt | FileCheck %s

// RUN: attn-opt %S/Inputs/version-1.mlirbc | FileCheck %s --check-prefix=ONE
// ONE: attn.attention {{.*}} pages(%{{.*}} : memref<2x13xi32>) kv_lengths(%{{.*}} : memref<2xi32>) {kernel = "served", kv_splits = 4 : i64, page_size = 16 : i64}

// RUN: attn-opt %S/Inputs/version-2.mlirbc | FileCheck %s --check-prefix=TWO
// TWO: attn.attention {{.*}} {kernel = "runs", kv_splits = 3 : i64, page_size = 16 : i64, run_keys = 32 : i64, selected}

// RUN: attn-opt %S/Inputs/version-3.mlirbc | FileCheck %s --check-prefix=THREE
// THREE: attn.attention {{.*}} sinks(%{{.*}} : memref<16xf32>) pages(%{{.*}} : memref<2x12xi32>) scales(%{{.*}} : memref<90x1x16x1xf32>) rope(%{{.*}} : memref<90x1x16x64xf16>) {kv_splits = 3 : i64, page_size = 16 : i64, rope_dim = 64 : i64, scale_group = 128 : i64}
// THREE: attn.combine {{.*}} {kernel = "merge"}

// RUN: attn-opt %S/Inputs/version-4.mlirbc | FileCheck %s --check-prefix=LAST
// LAST: attn.attention {{.*}} rope(%{{.*}}, %{{.*}} : memref<17x1x16x64xf16>, memref<2x16x1x64xf16>)
// LAST: attn.combine {{.*}} {out_scale = 2.000000e+00 : f32}
// LAST: attn.attention {{.*}} out_scales(%{{.*}} : memref<2x8x1x2xf32>) {out_group = 32 : i64}

// RUN: attn-opt %S/Inputs/version-5.mlirbc | FileCheck %s --check-prefix=FIVE

// What version 11 has added is written and read again.

// RUN: attn-compile --q=2x8x70x64xbf16 --kv-splits=2 --sinks --amax --emit=problem -o %t.amax
// RUN: attn-opt %t.amax -emit-bytecode | attn-opt | FileCheck %s --check-prefix=ELEVEN
// ELEVEN: attn.combine {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : memref<2x8x70x64xbf16>, memref<2x8x70xf32>, memref<1xf32>) {amax}

// What version 10 has added is written and read again.

// RUN: attn-compile --q=2x16x1x128xbf16 --kv-lengths=100,9 --page-size=16 --added-page-size=1 --added-lengths=50,7 --emit=problem -o %t.added
// RUN: attn-opt %t.added -emit-bytecode | attn-opt | FileCheck %s --check-prefix=TEN
// TEN: attn.attention {{.*}} added(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : memref<103x16x1x128xbf16>, memref<103x16x1x128xbf16>, memref<2x50xi32>, memref<2xi32>) {added_page_size = 1 : i64, page_size = 16 : i64}

// What version 9 has added is written and read again.

// RUN: attn-compile --q=2x16x1x128xf16 --rope-dim=0 --kv-lengths=100,9 --page-size=16 --row-state --expected-keys=50,7 --emit=problem -o %t.states
// RUN: attn-opt %t.states -emit-bytecode | attn-opt | FileCheck %s --check-prefix=NINE
// NINE: attn.attention {{.*}} {expected_keys = array<i64: 50, 7>, page_size = 16 : i64, rope_dim = 0 : i64, row_state}

// What version 8 has added is written and read again.

// RUN: attn-compile --q=1x2x256x64xf16 --block-rows=128 --block-keys=64 --emit=problem -o %t.blocks
// RUN: attn-opt %t.blocks -emit-bytecode | attn-opt | FileCheck %s --check-prefix=EIGHT
// EIGHT: attn.attention {{.*}} {block_keys = 64 : i64, block_rows = 128 : i64}

// What version 7 has added is written and read again.

// RUN: attn-opt %S/problem-out-mod-ops.mlir -emit-bytecode | attn-opt | FileCheck %S/problem-out-mod-ops.mlir

// What version 6 has added is written and read again.

// RUN: attn-opt %attn_src/test/doc/attn-read-masks.mlir --attn-read-masks -emit-bytecode | attn-opt | FileCheck %s --check-prefix=SIX
// SIX: key_range {

// What version 5 has added is written and read again.

// RUN: attn-compile --q=2x16x1x128xf16 --kv-lengths=100,9 --page-size=16 --kv-splits=2 --out-type=f8E4M3FN --out-group=64 --emit=problem -o %t.groups
// RUN: attn-opt %t.groups -emit-bytecode | attn-opt | FileCheck %s --check-prefix=FIVE
// FIVE: attn.combine {{.*}} outs(%{{.*}}, %{{.*}}, %{{.*}} : memref<2x16x1x128xf8E4M3FN>, memref<2x16x1xf32>, memref<2x16x1x2xf32>) {out_group = 64 : i64}

// What version 4 has added is written and read again.

// RUN: attn-compile --q=2x16x1x192xf16 --kv-lengths=100,9 --page-size=16 --rope-dim=64 --rope-apart --kv-splits=2 --out-type=f8E4M3FN --out-scale=2 --emit=problem -o %t.apart
// RUN: attn-opt %t.apart -emit-bytecode | attn-opt | FileCheck %s --check-prefix=FOUR
// FOUR: attn.attention {{.*}} rope(%{{.*}}, %{{.*}} : memref<17x1x16x64xf16>, memref<2x16x1x64xf16>)
// FOUR: attn.combine {{.*}} {out_scale = 2.000000e+00 : f32}
// RUN: attn-compile --q=2x8x1x64xf16 --kv-heads=2 --out-type=f8E4M3FN --out-group=32 --emit=problem -o %t.scaled
// RUN: attn-opt %t.scaled -emit-bytecode | attn-opt | FileCheck %s --check-prefix=SCALED
// SCALED: attn.attention {{.*}} out_scales(%{{.*}} : memref<2x8x1x2xf32>) {out_group = 32 : i64}

// What version 2 has added is written and read again.

// RUN: attn-compile --q=2x8x1x64xf16 --kv-heads=2 --kv-lengths=100,9 --page-size=16 --run-keys=64 --selected --init-state --emit=problem -o %t.mlir
// RUN: attn-opt %t.mlir -emit-bytecode | attn-opt | FileCheck %s --check-prefix=STATE
// STATE: attn.attention {{.*}} init(%{{.*}}, %{{.*}} : {{.*}}) {{{.*}}run_keys = 64 : i64, selected}

// Bytecode that was written before the dialect had versions, and by the compilers of versions 1 to 5,
// is read, and written again with one. No file is kept that a compiler of versions 6 to 10 wrote: what
// these have added is written here by the present one.

// CHECK-LABEL: func.func @causal(
// CHECK: attn.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : memref<2x8x300x64xbf16>, memref<2x2x200x64xbf16>, memref<2x2x200x64xbf16>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : memref<2x8x300x64xbf16>, memref<2x8x300xf32>)
// CHECK-SAME: sinks(%{{.*}} : memref<8xf32>)
// CHECK-SAME: mask = #attn.mask<kind = window, align = bottom_right, left = 128, right = 0>
// CHECK-SAME: plan = #attn.split_q<block_m = 64>
// CHECK-SAME: scale = 1.250000e-01 : f32, softcap = 3.000000e+01 : f32

// CHECK-LABEL: func.func @modified(
// CHECK: attn.attention
// CHECK: score_mod
// CHECK: memref.load
// CHECK: attn.yield

// CHECK-LABEL: func.func @merged(
// CHECK: attn.combine ins(%{{.*}}, %{{.*}} : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)

// CHECK-LABEL: func.func @step(
// CHECK: attn.reduce max %{{.*}} : tensor<64x32xf32, #attn.mma<warps = [4, 1]>> -> tensor<64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>
// CHECK: attn.slot %{{.*}} : <2x64x32xf16, #attn.swizzled<span = 64>, shared> -> <64x32xf16, #attn.swizzled<span = 64>, shared>
