// RUN: attn-opt -split-input-file -attn-plan=chip=sm_90a -attn-expand=chip=sm_90a %s | FileCheck %s

// A kernel that merges runs takes the place of the attention: what it writes has to exist
// there, and nothing between the two ops may see the difference.

// CHECK-LABEL: func.func @merged(
// CHECK-COUNT-1: gpu.launch_func
// CHECK-NOT: gpu.launch_func
// CHECK: return
func.func @merged(%q: memref<1x32x1x128xbf16>, %k: memref<1x8x4096x128xbf16>, %v: memref<1x8x4096x128xbf16>, %o: memref<1x32x1x128xbf16>) {
  %po = memref.alloc() : memref<4x1x32x1x128xf32>
  %pl = memref.alloc() : memref<4x1x32x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x32x1x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>)
                 outs(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) {kv_splits = 4 : i64}
  attn.combine ins(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) outs(%o : memref<1x32x1x128xbf16>)
  return
}

// -----

// CHECK-LABEL: func.func @defined_between(
// CHECK-COUNT-2: gpu.launch_func
func.func @defined_between(%q: memref<1x32x1x128xbf16>, %k: memref<1x8x4096x128xbf16>, %v: memref<1x8x4096x128xbf16>) -> memref<1x32x1x128xbf16> {
  %po = memref.alloc() : memref<4x1x32x1x128xf32>
  %pl = memref.alloc() : memref<4x1x32x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x32x1x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>)
                 outs(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) {kv_splits = 4 : i64}
  %o = memref.alloc() : memref<1x32x1x128xbf16>
  attn.combine ins(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) outs(%o : memref<1x32x1x128xbf16>)
  return %o : memref<1x32x1x128xbf16>
}

// -----

// CHECK-LABEL: func.func @read_between(
// CHECK: gpu.launch_func
// CHECK: memref.copy
// CHECK: gpu.launch_func
func.func @read_between(%q: memref<1x32x1x128xbf16>, %k: memref<1x8x4096x128xbf16>, %v: memref<1x8x4096x128xbf16>, %o: memref<1x32x1x128xbf16>, %x: memref<1x32x1x128xbf16>) {
  %po = memref.alloc() : memref<4x1x32x1x128xf32>
  %pl = memref.alloc() : memref<4x1x32x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x32x1x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>)
                 outs(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) {kv_splits = 4 : i64}
  memref.copy %o, %x : memref<1x32x1x128xbf16> to memref<1x32x1x128xbf16>
  attn.combine ins(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) outs(%o : memref<1x32x1x128xbf16>)
  return
}

// -----

// Another head's CTAs may still read the queries that this one's results replace.

// CHECK-LABEL: func.func @written_input(
// CHECK-COUNT-2: gpu.launch_func
func.func @written_input(%q: memref<1x32x1x128xbf16>, %k: memref<1x8x4096x128xbf16>, %v: memref<1x8x4096x128xbf16>) {
  %po = memref.alloc() : memref<4x1x32x1x128xf32>
  %pl = memref.alloc() : memref<4x1x32x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x32x1x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>)
                 outs(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) {kv_splits = 4 : i64}
  attn.combine ins(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) outs(%q : memref<1x32x1x128xbf16>)
  return
}

// -----

// Two ops merge these runs: each needs them in memory, behind the kernel that writes them.

// CHECK-LABEL: func.func @merged_twice(
// CHECK-COUNT-3: gpu.launch_func
func.func @merged_twice(%q: memref<1x32x1x128xbf16>, %k: memref<1x8x4096x128xbf16>, %v: memref<1x8x4096x128xbf16>, %o: memref<1x32x1x128xbf16>, %p: memref<1x32x1x128xf16>) {
  %po = memref.alloc() : memref<4x1x32x1x128xf32>
  %pl = memref.alloc() : memref<4x1x32x1xf32>
  attn.attention ins(%q, %k, %v : memref<1x32x1x128xbf16>, memref<1x8x4096x128xbf16>, memref<1x8x4096x128xbf16>)
                 outs(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) {kv_splits = 4 : i64}
  attn.combine ins(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) outs(%o : memref<1x32x1x128xbf16>)
  attn.combine ins(%po, %pl : memref<4x1x32x1x128xf32>, memref<4x1x32x1xf32>) outs(%p : memref<1x32x1x128xf16>) {kernel = "halves"}
  return
}
