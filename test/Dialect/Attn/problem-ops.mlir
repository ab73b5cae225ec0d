// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// CHECK-LABEL: @plain
// CHECK: attn.attention ins(%{{.*}}, %{{.*}}, %{{.*}} : memref<2x8x300x64xf16>, memref<2x8x200x64xf16>, memref<2x8x200x48xf16>) outs(%{{.*}} : memref<2x8x300x48xf16>)
func.func @plain(%q: memref<2x8x300x64xf16>, %k: memref<2x8x200x64xf16>,
                 %v: memref<2x8x200x48xf16>, %o: memref<2x8x300x48xf16>) {
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf16>, memref<2x8x200x64xf16>, memref<2x8x200x48xf16>)
                 outs(%o : memref<2x8x300x48xf16>)
  return
}

// CHECK-LABEL: @attributes
// CHECK: outs(%{{.*}}, %{{.*}} : memref<2x8x300x64xbf16>, memref<2x8x300xf32>)
// CHECK-SAME: sinks(%{{.*}} : memref<8xf32>)
// CHECK-SAME: mask = #attn.mask<kind = window, align = bottom_right, left = 128, right = 0>
// CHECK-SAME: plan = #attn.split_q<block_m = 64>
// CHECK-SAME: scale = 1.250000e-01 : f32, softcap = 3.000000e+01 : f32
func.func @attributes(%q: memref<2x8x300x64xbf16>, %k: memref<2x2x200x64xbf16>,
                      %o: memref<2x8x300x64xbf16>, %lse: memref<2x8x300xf32>,
                      %sinks: memref<8xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x300x64xbf16>, memref<2x2x200x64xbf16>, memref<2x2x200x64xbf16>)
                 outs(%o, %lse : memref<2x8x300x64xbf16>, memref<2x8x300xf32>)
                 sinks(%sinks : memref<8xf32>)
                 {mask = #attn.mask<kind = window, align = bottom_right, left = 128, right = 0>,
                  scale = 0.125 : f32, softcap = 30.0 : f32,
                  plan = #attn.split_q<block_m = 64>}
  return
}

// Other strides say that (batch, sequence, head, dim) is the order in memory.
// CHECK-LABEL: @sequence_major
// CHECK: attn.attention
func.func @sequence_major(%q: memref<?x8x?x64xf16, strided<[?, 64, 512, 1]>>,
                          %k: memref<?x8x?x64xf16, strided<[?, 64, 512, 1], offset: ?>>,
                          %o: memref<?x8x?x64xf16, strided<[?, 64, 512, 1]>>) {
  attn.attention ins(%q, %k, %k : memref<?x8x?x64xf16, strided<[?, 64, 512, 1]>>, memref<?x8x?x64xf16, strided<[?, 64, 512, 1], offset: ?>>, memref<?x8x?x64xf16, strided<[?, 64, 512, 1], offset: ?>>)
                 outs(%o : memref<?x8x?x64xf16, strided<[?, 64, 512, 1]>>)
  return
}

// CHECK-LABEL: @packed
// CHECK: cu_seqlens(%{{.*}}, %{{.*}} : memref<4xi32>, memref<4xi32>)
// CHECK-SAME: max_seqlen_q = 64
func.func @packed(%q: memref<1x8x82x64xf16>, %k: memref<1x8x100x64xf16>,
                  %o: memref<1x8x82x64xf16>, %lengths: memref<4xi32>) {
  attn.attention ins(%q, %k, %k : memref<1x8x82x64xf16>, memref<1x8x100x64xf16>, memref<1x8x100x64xf16>)
                 outs(%o : memref<1x8x82x64xf16>)
                 cu_seqlens(%lengths, %lengths : memref<4xi32>, memref<4xi32>)
                 {max_seqlen_q = 64 : i64}
  return
}

// CHECK-LABEL: @paged
// CHECK: pages(%{{.*}} : memref<2x16xi32>)
func.func @paged(%q: memref<2x8x1x64xf16>, %k: memref<100x8x16x64xf16>,
                 %o: memref<2x8x1x64xf16>, %table: memref<2x16xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<100x8x16x64xf16>, memref<100x8x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>)
                 pages(%table : memref<2x16xi32>) {page_size = 16 : i64}
  return
}

// CHECK-LABEL: @lengths
// CHECK: kv_lengths(%{{.*}} : memref<2xi32>)
func.func @lengths(%q: memref<2x8x1x64xf16>, %k: memref<2x8x4096x64xf16>,
                   %o: memref<2x8x1x64xf16>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x4096x64xf16>, memref<2x8x4096x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) kv_lengths(%n : memref<2xi32>)
  return
}

// CHECK-LABEL: @page_list
// CHECK: cu_seqlens(%{{.*}} : memref<3xi32>)
// CHECK-SAME: pages(%{{.*}}, %{{.*}} : memref<?xi32>, memref<3xi32>)
// CHECK-SAME: kv_lengths(%{{.*}} : memref<2xi32>)
func.func @page_list(%q: memref<1x8x20x64xf16>, %k: memref<100x8x16x64xf16>, %o: memref<1x8x20x64xf16>,
                     %cu: memref<3xi32>, %pages: memref<?xi32>, %counts: memref<3xi32>, %n: memref<2xi32>) {
  attn.attention ins(%q, %k, %k : memref<1x8x20x64xf16>, memref<100x8x16x64xf16>, memref<100x8x16x64xf16>)
                 outs(%o : memref<1x8x20x64xf16>) cu_seqlens(%cu : memref<3xi32>)
                 pages(%pages, %counts : memref<?xi32>, memref<3xi32>) kv_lengths(%n : memref<2xi32>)
                 {max_seqlen_q = 15 : i64, page_size = 16 : i64}
  return
}

// CHECK-LABEL: @split
// CHECK: kv_splits = 4
func.func @split(%q: memref<2x8x1x64xf16>, %k: memref<2x8x4096x64xf16>,
                 %o: memref<4x2x8x1x64xf32>, %lse: memref<4x2x8x1xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x4096x64xf16>, memref<2x8x4096x64xf16>)
                 outs(%o, %lse : memref<4x2x8x1x64xf32>, memref<4x2x8x1xf32>)
                 {kv_splits = 4 : i64}
  return
}

// CHECK-LABEL: @fixed_runs
// CHECK: {kv_splits = 4 : i64, run_keys = 1024 : i64}
func.func @fixed_runs(%q: memref<2x8x1x64xf16>, %k: memref<2x8x4096x64xf16>,
                      %o: memref<4x2x8x1x64xf32>, %lse: memref<4x2x8x1xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x4096x64xf16>, memref<2x8x4096x64xf16>)
                 outs(%o, %lse : memref<4x2x8x1x64xf32>, memref<4x2x8x1xf32>)
                 {kv_splits = 4 : i64, run_keys = 1024 : i64}
  return
}

// CHECK-LABEL: @selected
// CHECK: pages(%{{.*}} : memref<2x2048xi32>) {page_size = 1 : i64, selected}
func.func @selected(%q: memref<2x8x1x64xf16>, %k: memref<9000x8x1x64xf16>,
                    %o: memref<2x8x1x64xf16>, %keys: memref<2x2048xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<9000x8x1x64xf16>, memref<9000x8x1x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) pages(%keys : memref<2x2048xi32>)
                 {page_size = 1 : i64, selected}
  return
}

// CHECK-LABEL: @init
// CHECK: init(%{{.*}}, %{{.*}} : memref<2x8x1x64xbf16>, memref<2x8x1xf32>)
func.func @init(%q: memref<2x8x1x64xf16>, %k: memref<2x8x40x64xf16>, %o: memref<2x8x1x64xf16>,
                %io: memref<2x8x1x64xbf16>, %il: memref<2x8x1xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x40x64xf16>, memref<2x8x40x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) init(%io, %il : memref<2x8x1x64xbf16>, memref<2x8x1xf32>)
  return
}

// CHECK-LABEL: @scales
// CHECK: scales(%{{.*}}, %{{.*}} : memref<2x8x40x2xf32>, memref<2x8x40x2xf32>) {scale_group = 32 : i64}
func.func @scales(%q: memref<2x8x1x64xf16>, %k: memref<2x8x40x64xf8E4M3FN>, %o: memref<2x8x1x64xf16>,
                  %s: memref<2x8x40x2xf32>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x40x64xf8E4M3FN>, memref<2x8x40x64xf8E4M3FN>)
                 outs(%o : memref<2x8x1x64xf16>) scales(%s, %s : memref<2x8x40x2xf32>, memref<2x8x40x2xf32>)
                 {scale_group = 32 : i64}
  return
}

// Rows of 656 bytes: 512 e4m3, 4 f32 and 64 bf16.
// CHECK-LABEL: @rope
// CHECK: scales(%{{.*}} : memref<9x1x64x4xf32, strided<[10496, 164, 164, 1]>>)
// CHECK-SAME: rope(%{{.*}} : memref<9x1x64x64xbf16, strided<[20992, 328, 328, 1]>>)
func.func @rope(%q: memref<2x16x1x576xbf16>, %k: memref<9x1x64x512xf8E4M3FN, strided<[41984, 656, 656, 1]>>,
                %s: memref<9x1x64x4xf32, strided<[10496, 164, 164, 1]>>,
                %r: memref<9x1x64x64xbf16, strided<[20992, 328, 328, 1]>>,
                %o: memref<2x16x1x512xbf16>, %table: memref<2x4xi32>) {
  attn.attention ins(%q, %k, %k : memref<2x16x1x576xbf16>, memref<9x1x64x512xf8E4M3FN, strided<[41984, 656, 656, 1]>>, memref<9x1x64x512xf8E4M3FN, strided<[41984, 656, 656, 1]>>)
                 outs(%o : memref<2x16x1x512xbf16>) pages(%table : memref<2x4xi32>)
                 scales(%s : memref<9x1x64x4xf32, strided<[10496, 164, 164, 1]>>)
                 rope(%r : memref<9x1x64x64xbf16, strided<[20992, 328, 328, 1]>>)
                 {page_size = 64 : i64, rope_dim = 64 : i64, scale_group = 128 : i64}
  return
}

// CHECK-LABEL: @latent
// CHECK: rope_dim = 64
func.func @latent(%q: memref<2x128x1x576xbf16>, %k: memref<2x1x4096x576xbf16>,
                  %o: memref<2x128x1x512xbf16>) {
  %v = memref.subview %k[0, 0, 0, 0] [2, 1, 4096, 512] [1, 1, 1, 1]
      : memref<2x1x4096x576xbf16> to memref<2x1x4096x512xbf16, strided<[2359296, 2359296, 576, 1]>>
  attn.attention ins(%q, %k, %v : memref<2x128x1x576xbf16>, memref<2x1x4096x576xbf16>, memref<2x1x4096x512xbf16, strided<[2359296, 2359296, 576, 1]>>)
                 outs(%o : memref<2x128x1x512xbf16>)
                 {rope_dim = 64 : i64}
  return
}

// CHECK-LABEL: @float8
// CHECK: out_scale = 4.000000e+00
func.func @float8(%q: memref<2x8x300x64xf8E4M3FN>, %o: memref<2x8x300x64xf8E4M3FN>) {
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf8E4M3FN>, memref<2x8x300x64xf8E4M3FN>, memref<2x8x300x64xf8E4M3FN>)
                 outs(%o : memref<2x8x300x64xf8E4M3FN>)
                 {out_scale = 4.0 : f32}
  return
}

// CHECK-LABEL: @modifications
// CHECK: score_mod {
// CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32):
// CHECK: memref.load
// CHECK: attn.yield %{{.*}} : f32
// CHECK: mask_mod {
// CHECK: attn.yield %{{.*}} : i1
func.func @modifications(%q: memref<2x8x300x64xf16>, %o: memref<2x8x300x64xf16>,
                         %slopes: memref<8xf32>) {
  attn.attention ins(%q, %q, %q : memref<2x8x300x64xf16>, memref<2x8x300x64xf16>, memref<2x8x300x64xf16>)
                 outs(%o : memref<2x8x300x64xf16>)
                 score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %head = arith.index_cast %h : i32 to index
    %slope = memref.load %slopes[%head] : memref<8xf32>
    %distance = arith.subi %j, %i : i32
    %d = arith.sitofp %distance : i32 to f32
    %bias = arith.mulf %slope, %d : f32
    %r = arith.addf %score, %bias : f32
    attn.yield %r : f32
  } mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %keep = arith.cmpi sle, %j, %i : i32
    attn.yield %keep : i1
  }
  return
}

// CHECK-LABEL: @tensors
// CHECK: %{{.*}}:2 = attn.attention ins(%{{.*}} : tensor<2x8x300x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>)
// CHECK-SAME: -> tensor<2x8x300x64xf16>, tensor<2x8x300xf32>
func.func @tensors(%q: tensor<2x8x300x64xf16>, %k: tensor<2x2x?x64xf16>,
                   %o: tensor<2x8x300x64xf16>, %lse: tensor<2x8x300xf32>)
    -> (tensor<2x8x300x64xf16>, tensor<2x8x300xf32>) {
  %r:2 = attn.attention ins(%q, %k, %k : tensor<2x8x300x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>)
                        outs(%o, %lse : tensor<2x8x300x64xf16>, tensor<2x8x300xf32>)
                        -> tensor<2x8x300x64xf16>, tensor<2x8x300xf32>
  return %r#0, %r#1 : tensor<2x8x300x64xf16>, tensor<2x8x300xf32>
}

// CHECK-LABEL: @descales
// CHECK: cu_seqlens(%{{.*}}, %{{.*}} : memref<4xi32>, memref<4xi32>)
// CHECK-SAME: descales(%{{.*}}, %{{.*}}, %{{.*}} : memref<3x8xf32>, memref<3x2xf32>, memref<3x2xf32>)
func.func @descales(%q: memref<1x8x300x64xf8E4M3FN>, %k: memref<1x2x200x64xf8E4M3FN>, %o: memref<1x8x300x64xbf16>, %lengths: memref<4xi32>,
                    %a: memref<3x8xf32>, %b: memref<3x2xf32>) {
  attn.attention ins(%q, %k, %k : memref<1x8x300x64xf8E4M3FN>, memref<1x2x200x64xf8E4M3FN>, memref<1x2x200x64xf8E4M3FN>)
                 outs(%o : memref<1x8x300x64xbf16>)
                 cu_seqlens(%lengths, %lengths : memref<4xi32>, memref<4xi32>)
                 descales(%a, %b, %b : memref<3x8xf32>, memref<3x2xf32>, memref<3x2xf32>)
                 {max_seqlen_q = 300 : i64}
  return
}

// 8-bit keys beside 16-bit queries, whose units are ones.
// CHECK-LABEL: @narrow_keys
// CHECK: descales(%{{.*}}, %{{.*}} : memref<2x2xf32>, memref<2x2xf32, strided<[0, 1]>>)
func.func @narrow_keys(%q: memref<2x8x1x64xbf16>, %k: memref<2x2x200x64xf8E5M2>, %o: memref<2x8x1x64xbf16>,
                       %a: memref<2x2xf32>, %b: memref<2x2xf32, strided<[0, 1]>>) {
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xbf16>, memref<2x2x200x64xf8E5M2>, memref<2x2x200x64xf8E5M2>)
                 outs(%o : memref<2x8x1x64xbf16>)
                 descales(%a, %b : memref<2x2xf32>, memref<2x2xf32, strided<[0, 1]>>)
  return
}

// V may have its keys contiguous.
// CHECK-LABEL: @transposed_values
// CHECK: memref<2x2x200x64xf8E4M3FN, strided<[26624, 13312, 1, 208]>>
func.func @transposed_values(%q: memref<2x8x300x64xf8E4M3FN>, %k: memref<2x2x200x64xf8E4M3FN>,
                             %v: memref<2x2x200x64xf8E4M3FN, strided<[26624, 13312, 1, 208]>>, %o: memref<2x8x300x64xbf16>) {
  attn.attention ins(%q, %k, %v : memref<2x8x300x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN>, memref<2x2x200x64xf8E4M3FN, strided<[26624, 13312, 1, 208]>>)
                 outs(%o : memref<2x8x300x64xbf16>)
  return
}

// CHECK-LABEL: @combine_memrefs
// CHECK: attn.combine ins(%{{.*}}, %{{.*}} : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
func.func @combine_memrefs(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>,
                   %o: memref<2x8x300x64xf16>, %lse: memref<2x8x300xf32>) {
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// CHECK-LABEL: @combine_halves
// CHECK: attn.combine ins(%{{.*}}, %{{.*}} : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>) scales(%{{.*}} : memref<4x2x8x300x2xf32>)
// CHECK-SAME: outs(%{{.*}}, %{{.*}} : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
func.func @combine_halves(%po: memref<4x2x8x300x64xf16>, %pl: memref<4x2x8x300xf32>, %ps: memref<4x2x8x300x2xf32>,
                          %o: memref<2x8x300x64xf16>, %lse: memref<2x8x300xf32>) {
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf16>, memref<4x2x8x300xf32>) scales(%ps : memref<4x2x8x300x2xf32>)
               outs(%o, %lse : memref<2x8x300x64xf16>, memref<2x8x300xf32>)
  return
}

// CHECK-LABEL: @combine_tensors
// CHECK: %{{.*}} = attn.combine ins(%{{.*}}, %{{.*}} : tensor<?x2x8x?x64xf32>, tensor<?x2x8x?xf32>)
// CHECK-SAME: outs(%{{.*}} : tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16>
func.func @combine_tensors(%po: tensor<?x2x8x?x64xf32>, %pl: tensor<?x2x8x?xf32>,
                   %o: tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16> {
  %r = attn.combine ins(%po, %pl : tensor<?x2x8x?x64xf32>, tensor<?x2x8x?xf32>)
                    outs(%o : tensor<2x8x?x64xf16>) -> tensor<2x8x?x64xf16>
  return %r : tensor<2x8x?x64xf16>
}
