// RUN: attn-opt %s -split-input-file -verify-diagnostics -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" | FileCheck %s

// CHECK-LABEL: func.func @into_arguments(
// CHECK-SAME: %[[Q:.*]]: memref<2x8x300x64xf16>, %[[K:.*]]: memref<2x2x?x64xf16>, %[[O:.*]]: memref<2x8x300x64xf16>, %[[LSE:.*]]: memref<2x8x300xf32>)
// CHECK-NOT: memref.alloc
// CHECK: attn.attention ins(%[[Q]], %[[K]], %[[K]] : {{.*}}) outs(%[[O]], %[[LSE]] : {{.*}}) {mask = #attn.mask<kind = causal>}
// CHECK: return %[[O]], %[[LSE]]
func.func @into_arguments(%q: tensor<2x8x300x64xf16>, %k: tensor<2x2x?x64xf16>,
                          %o: tensor<2x8x300x64xf16> {bufferization.writable = true},
                          %lse: tensor<2x8x300xf32> {bufferization.writable = true})
    -> (tensor<2x8x300x64xf16>, tensor<2x8x300xf32>) {
  %r:2 = attn.attention ins(%q, %k, %k : tensor<2x8x300x64xf16>, tensor<2x2x?x64xf16>, tensor<2x2x?x64xf16>)
                        outs(%o, %lse : tensor<2x8x300x64xf16>, tensor<2x8x300xf32>)
                        {mask = #attn.mask<kind = causal>}
                        -> tensor<2x8x300x64xf16>, tensor<2x8x300xf32>
  return %r#0, %r#1 : tensor<2x8x300x64xf16>, tensor<2x8x300xf32>
}

// -----

// The output may not overwrite an input that is read later. Its old values do
// not matter, so nothing is copied.
// CHECK-LABEL: func.func @conflict(
// CHECK-SAME: %[[Q:.*]]: memref<2x8x300x64xf16>)
// CHECK: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<2x8x300x64xf16>
// CHECK-NOT: memref.copy
// CHECK: outs(%[[NEW]] : memref<2x8x300x64xf16>)
// CHECK: return %[[NEW]], %[[Q]]
func.func @conflict(%q: tensor<2x8x300x64xf16> {bufferization.writable = true})
    -> (tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>) {
  %r = attn.attention ins(%q, %q, %q : tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>)
                      outs(%q : tensor<2x8x300x64xf16>) -> tensor<2x8x300x64xf16>
  return %r, %q : tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>
}

// -----

// Rows that no packed sequence owns keep their values: the copy stays.
// CHECK-LABEL: func.func @packed(
// CHECK: memref.copy
// CHECK: attn.attention
func.func @packed(%q: tensor<1x8x82x64xf16> {bufferization.writable = true}, %lengths: tensor<4xi32>)
    -> (tensor<1x8x82x64xf16>, tensor<1x8x82x64xf16>) {
  %r = attn.attention ins(%q, %q, %q : tensor<1x8x82x64xf16>, tensor<1x8x82x64xf16>, tensor<1x8x82x64xf16>)
                      outs(%q : tensor<1x8x82x64xf16>)
                      cu_seqlens(%lengths, %lengths : tensor<4xi32>, tensor<4xi32>)
                      {max_seqlen_q = 64 : i64} -> tensor<1x8x82x64xf16>
  return %r, %q : tensor<1x8x82x64xf16>, tensor<1x8x82x64xf16>
}

// -----

// A region's reads of tensors become loads.
// CHECK-LABEL: func.func @regions(
// CHECK-SAME: %{{.*}}: memref<2x8x300x64xf16>, %[[O:.*]]: memref<2x8x300x64xf16>, %[[SLOPES:.*]]: memref<8xf32>)
// CHECK: outs(%[[O]] : memref<2x8x300x64xf16>) score_mod {
// CHECK: memref.load %[[SLOPES]]
func.func @regions(%q: tensor<2x8x300x64xf16>, %o: tensor<2x8x300x64xf16> {bufferization.writable = true},
                   %slopes: tensor<8xf32>) -> tensor<2x8x300x64xf16> {
  %r = attn.attention ins(%q, %q, %q : tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>)
                      outs(%o : tensor<2x8x300x64xf16>) score_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %head = arith.index_cast %h : i32 to index
    %slope = tensor.extract %slopes[%head] : tensor<8xf32>
    %r = arith.addf %score, %slope : f32
    attn.yield %r : f32
  } -> tensor<2x8x300x64xf16>
  return %r : tensor<2x8x300x64xf16>
}

// -----

// CHECK-LABEL: func.func @combine(
// CHECK: attn.combine ins(%{{.*}}, %{{.*}} : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>) outs(%[[NEW:.*]] : memref<2x8x300x64xf16>)
// CHECK: return %[[NEW]]
func.func @combine(%po: tensor<4x2x8x300x64xf32>, %pl: tensor<4x2x8x300xf32>) -> tensor<2x8x300x64xf16> {
  %o = tensor.empty() : tensor<2x8x300x64xf16>
  %r = attn.combine ins(%po, %pl : tensor<4x2x8x300x64xf32>, tensor<4x2x8x300xf32>)
                    outs(%o : tensor<2x8x300x64xf16>) -> tensor<2x8x300x64xf16>
  return %r : tensor<2x8x300x64xf16>
}

// -----

// Results may not overwrite the state that they go on from where it is read later.
// CHECK-LABEL: func.func @state(
// CHECK-SAME: %[[STATE:[^:]*]]: memref<2x8x300x64xf16>, %[[TO:[^:]*]]: memref<2x8x300xf32>
// CHECK: %[[NEW:.*]] = memref.alloc() {{.*}} : memref<2x8x300x64xf16>
// CHECK-NOT: memref.copy
// CHECK: outs(%[[NEW]] : memref<2x8x300x64xf16>) init(%[[STATE]], %[[TO]] :
// CHECK: return %[[NEW]], %[[STATE]]
func.func @state(%q: tensor<2x8x300x64xf16> {bufferization.writable = true}, %lse: tensor<2x8x300xf32>)
    -> (tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>) {
  %r = attn.attention ins(%q, %q, %q : tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>)
                      outs(%q : tensor<2x8x300x64xf16>)
                      init(%q, %lse : tensor<2x8x300x64xf16>, tensor<2x8x300xf32>) -> tensor<2x8x300x64xf16>
  return %r, %q : tensor<2x8x300x64xf16>, tensor<2x8x300x64xf16>
}

// -----

// A table, lengths and what they are read by stay.
// CHECK-LABEL: func.func @selected(
// CHECK: attn.attention
// CHECK-SAME: pages(%{{.*}} : memref<2x128xi32>) kv_lengths(%{{.*}} : memref<2xi32>)
// CHECK-SAME: {page_size = 1 : i64, selected}
func.func @selected(%q: tensor<2x8x1x64xf16>, %k: tensor<300x2x1x64xf16>, %table: tensor<2x128xi32>,
                    %lengths: tensor<2xi32>) -> tensor<2x8x1x64xf16> {
  %o = tensor.empty() : tensor<2x8x1x64xf16>
  %r = attn.attention ins(%q, %k, %k : tensor<2x8x1x64xf16>, tensor<300x2x1x64xf16>, tensor<300x2x1x64xf16>)
                      outs(%o : tensor<2x8x1x64xf16>)
                      pages(%table : tensor<2x128xi32>) kv_lengths(%lengths : tensor<2xi32>)
                      {page_size = 1 : i64, selected} -> tensor<2x8x1x64xf16>
  return %r : tensor<2x8x1x64xf16>
}
