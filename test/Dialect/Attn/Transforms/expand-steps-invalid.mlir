// RUN: attn-opt %s --attn-plan --attn-expand --split-input-file --verify-diagnostics

func.func @one_allocated(%q: memref<1x1x16x16xf16>, %pl: memref<2x1x1x16xf32>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  // expected-error @below {{expected all partial results in memory of memref.alloc, or none of them}}
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  return
}

// -----

func.func @strided(%q: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32, strided<[512, 512, 512, 32, 1]>>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  // expected-error @below {{expected dense partial results from memref.alloc, got 'memref<2x1x1x16x16xf32, strided<[512, 512, 512, 32, 1]>>'}}
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32, strided<[512, 512, 512, 32, 1]>>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  return
}

// -----

func.func @escapes(%q: memref<1x1x16x16xf16>) -> memref<2x1x1x16xf32> {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  // expected-error @below {{expected partial results that only problems use, since the launch keeps them to itself}}
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  // expected-note @below {{they are used here}}
  return %pl : memref<2x1x1x16xf32>
}

// -----

func.func @two_names(%q: memref<1x1x16x16xf16>, %o: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64, kernel = "same", plan = #attn.split_q<>}
  // expected-error @below {{expected kernels of different names in one launch, got two of 'same'; the attribute 'kernel' names them, or that parameter of a plan}}
  attn.combine ins(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>)
               outs(%o : memref<1x1x16x16xf16>) {kernel = "same"}
  return
}

// -----

func.func @half(%q: memref<1x1x16x16xf16>, %other: memref<2x1x1x16xf32>, %o: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  // expected-error @below {{expected all partial results from one attention, got some of them}}
  attn.combine ins(%po, %other : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>)
               outs(%o : memref<1x1x16x16xf16>)
  return
}

// -----

func.func @other_scales(%q: memref<1x1x16x16xf16>, %other: memref<2x1x1x16x1xf32>, %o: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf16>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  %ps = memref.alloc() : memref<2x1x1x16x1xf32>
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf16>, memref<2x1x1x16xf32>)
                 out_scales(%ps : memref<2x1x1x16x1xf32>) {kv_splits = 2 : i64}
  // expected-error @below {{expected all partial results from one attention, got some of them}}
  attn.combine ins(%po, %pl : memref<2x1x1x16x16xf16>, memref<2x1x1x16xf32>)
               scales(%other : memref<2x1x1x16x1xf32>) outs(%o : memref<1x1x16x16xf16>)
  return
}

// -----

func.func @two_writers(%q: memref<1x1x16x16xf16>, %o: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  %po2 = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl2 = memref.alloc() : memref<2x1x1x16xf32>
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po2, %pl2 : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  // expected-error @below {{expected partial results of one attention, got those of two}}
  attn.combine ins(%po, %pl2 : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>)
               outs(%o : memref<1x1x16x16xf16>)
  return
}

// -----

// A combine in front of the attention reads what nobody has written.
func.func @order(%q: memref<1x1x16x16xf16>, %o: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  // expected-error @below {{expected partial results that something before the op writes}}
  attn.combine ins(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>)
               outs(%o : memref<1x1x16x16xf16>)
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64}
  return
}

// -----

func.func @merged_by_nobody(%q: memref<1x1x16x16xf16>, %po: memref<2x1x1x16x16xf32>, %pl: memref<2x1x1x16xf32>) {
  // expected-error @below {{expected partial results in memory of memref.alloc and one attn.combine of them, behind the op and with nothing between that its place could change, for combine = launch of plan #attn.split_q<combine = launch>}}
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64, plan = #attn.split_q<combine = launch>}
  return
}

// -----

func.func @merged_twice(%q: memref<1x1x16x16xf16>, %o: memref<1x1x16x16xf16>, %p: memref<1x1x16x16xf16>) {
  %po = memref.alloc() : memref<2x1x1x16x16xf32>
  %pl = memref.alloc() : memref<2x1x1x16xf32>
  // expected-error @below {{expected partial results in memory of memref.alloc and one attn.combine of them}}
  attn.attention ins(%q, %q, %q : memref<1x1x16x16xf16>, memref<1x1x16x16xf16>, memref<1x1x16x16xf16>)
                 outs(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) {kv_splits = 2 : i64, plan = #attn.split_q<combine = launch>}
  attn.combine ins(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) outs(%o : memref<1x1x16x16xf16>)
  attn.combine ins(%po, %pl : memref<2x1x1x16x16xf32>, memref<2x1x1x16xf32>) outs(%p : memref<1x1x16x16xf16>) {kernel = "again"}
  return
}

// -----

// Runs that nobody has are in no result.
func.func @dealt(%q: memref<2x1x1x16xf16>, %k: memref<2x1x64x16xf16>, %lengths: memref<2xi32>,
                 %po: memref<2x2x1x1x16xf32>, %pl: memref<2x2x1x1xf32>) {
  // expected-error @below {{expected partial results in memory of memref.alloc for dealt_runs}}
  attn.attention ins(%q, %k, %k : memref<2x1x1x16xf16>, memref<2x1x64x16xf16>, memref<2x1x64x16xf16>)
                 outs(%po, %pl : memref<2x2x1x1x16xf32>, memref<2x2x1x1xf32>)
                 kv_lengths(%lengths : memref<2xi32>) {kv_splits = 2 : i64, plan = #attn.decode<dealt_runs = 4>}
  return
}
