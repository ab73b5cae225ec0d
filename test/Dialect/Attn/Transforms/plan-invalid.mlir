// RUN: attn-opt %s -attn-plan="chip=sm_86 schedule=split_q" -split-input-file -verify-diagnostics

func.func @shared(%q: memref<1x8x256x256xf16>, %k: memref<1x8x256x256xf16>, %v: memref<1x8x256x256xf16>, %o: memref<1x8x256x256xf16>) {
  // expected-error@+1 {{cannot be computed by plan #attn.split_q<q_in_regs = false>: does not fit: shared memory 196608 (q 65536 + k 2 x 32768 + v 2 x 32768) exceeds 101376 on sm_86}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x256xf16>, memref<1x8x256x256xf16>, memref<1x8x256x256xf16>)
                 outs(%o : memref<1x8x256x256xf16>) {plan = #attn.split_q<q_in_regs = false>}
  return
}

// -----

func.func @grid(%q: memref<70000x40000x1x64xf16>, %o: memref<70000x40000x1x64xf16>) {
  // expected-error@+1 {{does not fit: expected at most 2147483647 CTAs in a launch, got 1 x 40000 x 70000}}
  attn.attention ins(%q, %q, %q : memref<70000x40000x1x64xf16>, memref<70000x40000x1x64xf16>, memref<70000x40000x1x64xf16>)
                 outs(%o : memref<70000x40000x1x64xf16>) {plan = #attn.split_q<block_m = 64>}
  return
}

// -----

func.func @tma(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support results that TMA stores}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.split_q<epilogue = tma>}
  return
}

// -----

func.func @policy(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support the softmax policy 'lagged'}}
  attn.attention ins(%q, %k, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.split_q<softmax = lagged>}
  return
}

// -----

func.func @paged(%q: memref<2x8x1x64xf16>, %k: memref<9x8x131072x64xf16>, %v: memref<9x8x131072x64xf16>, %o: memref<2x8x1x64xf16>, %pages: memref<2x4xi32>) {
  // expected-error@+1 {{has no legal plan on sm_86: schedule 'split_q' does not support pages of 131072 keys, expected at most 65536}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x64xf16>, memref<9x8x131072x64xf16>, memref<9x8x131072x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) pages(%pages : memref<2x4xi32>) {page_size = 131072 : i64}
  return
}

// -----

func.func @packed_heads(%q: memref<2x8x1x64xf16>, %k: memref<2x8x16x64xf16>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{expected groups of 2 to 256 heads for pack_heads, got 8 query heads and 8 key heads}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x8x16x64xf16>, memref<2x8x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) {plan = #attn.split_q<pack_heads = true>}
  return
}

// -----

func.func @packed_dynamic(%q: memref<2x?x1x64xf16>, %k: memref<2x8x16x64xf16>, %o: memref<2x?x1x64xf16>) {
  // expected-error@+1 {{expected groups of 2 to 256 heads for pack_heads, got a dynamic number of query heads and 8 key heads}}
  attn.attention ins(%q, %k, %k : memref<2x?x1x64xf16>, memref<2x8x16x64xf16>, memref<2x8x16x64xf16>)
                 outs(%o : memref<2x?x1x64xf16>) {plan = #attn.split_q<pack_heads = true>}
  return
}

// -----

func.func @packed_groups(%q: memref<2x8x1x64xf16>, %k: memref<2x2x16x64xf16>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{expected group_heads to be 0 with pack_heads, got 2}}
  attn.attention ins(%q, %k, %k : memref<2x8x1x64xf16>, memref<2x2x16x64xf16>, memref<2x2x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) {plan = #attn.split_q<order = longest_first, group_heads = 2, pack_heads = true>}
  return
}

// -----

func.func @packed_rows(%q: memref<1x256x268435456x16xf16>, %k: memref<1x2x16x16xf16>, %o: memref<1x256x268435456x16xf16>) {
  // expected-error@+1 {{expected fewer than 536870912 rows with pack_heads, got 268435456 queries of 128 heads}}
  attn.attention ins(%q, %k, %k : memref<1x256x268435456x16xf16>, memref<1x2x16x16xf16>, memref<1x2x16x16xf16>)
                 outs(%o : memref<1x256x268435456x16xf16>) {plan = #attn.split_q<pack_heads = true>}
  return
}

// -----

func.func @splits(%q: memref<1x8x20x64xf16>, %k: memref<1x8x16x64xf16>, %o: memref<3x1x8x20x64xf32>, %lse: memref<3x1x8x20xf32>, %s: memref<3xi32>) {
  // expected-error@+1 {{schedule 'split_q' does not support split keys of packed sequences, since attn.combine would write rows that no sequence owns}}
  attn.attention ins(%q, %k, %k : memref<1x8x20x64xf16>, memref<1x8x16x64xf16>, memref<1x8x16x64xf16>)
                 outs(%o, %lse : memref<3x1x8x20x64xf32>, memref<3x1x8x20xf32>) cu_seqlens(%s, %s : memref<3xi32>, memref<3xi32>)
                 {kv_splits = 3 : i64, max_seqlen_q = 20 : i64}
  return
}

// -----

func.func @runs(%q: memref<2x40000x1x64xf16>, %k: memref<2x40000x16x64xf16>, %o: memref<40000x2x40000x1x64xf32>, %lse: memref<40000x2x40000x1xf32>) {
  // expected-error@+1 {{does not fit: expected at most 2147483647 CTAs in a launch, got 1 x 40000 x 80000}}
  attn.attention ins(%q, %k, %k : memref<2x40000x1x64xf16>, memref<2x40000x16x64xf16>, memref<2x40000x16x64xf16>)
                 outs(%o, %lse : memref<40000x2x40000x1x64xf32>, memref<40000x2x40000x1xf32>)
                 {kv_splits = 40000 : i64, plan = #attn.split_q<>}
  return
}

// -----

func.func @combine(%po: memref<4x2x8x300x64xf32>, %pl: memref<4x2x8x300xf32>, %o: memref<2x8x300x64xf16>) {
  // expected-error @below {{cannot be computed by plan #attn.split_q<>: expected a plan of schedule 'combine', got one of 'split_q'}}
  attn.combine ins(%po, %pl : memref<4x2x8x300x64xf32>, memref<4x2x8x300xf32>)
               outs(%o : memref<2x8x300x64xf16>) {plan = #attn.split_q<>}
  return
}

// -----

func.func @latent(%q: memref<2x8x1x96xf16>, %k: memref<2x1x16x96xf16>, %v: memref<2x1x16x64xf16>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support the absorbed latent form ('rope_dim')}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x96xf16>, memref<2x1x16x96xf16>, memref<2x1x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>) {rope_dim = 32 : i64}
  return
}

// -----

func.func @fp8(%q: memref<2x8x1x64xf8E4M3FN>, %k: memref<2x8x16x64xf8E4M3FN>, %v: memref<2x8x16x64xf8E4M3FN>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support 8-bit queries on sm_86, which has no mma.sync of 8-bit floats, expected sm_89 or a later chip}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x64xf8E4M3FN>, memref<2x8x16x64xf8E4M3FN>, memref<2x8x16x64xf8E4M3FN>)
                 outs(%o : memref<2x8x1x64xf16>)
  return
}

// -----

func.func @head_dim(%q: memref<2x8x1x64xf16>, %k: memref<2x8x16x64xf16>, %v: memref<2x8x16x260xf16>, %o: memref<2x8x1x260xf16>) {
  // expected-error@+1 {{has no legal plan on sm_86: expected a value dimension that is a multiple of 8, got 260: pad v with zeros to 264 columns}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x64xf16>, memref<2x8x16x64xf16>, memref<2x8x16x260xf16>)
                 outs(%o : memref<2x8x1x260xf16>)
  return
}

// -----

func.func @long_dim(%q: memref<2x8x1x264xf16>, %k: memref<2x8x16x264xf16>, %v: memref<2x8x16x64xf16>, %o: memref<2x8x1x64xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support a head dimension of 264, expected a multiple of 8 up to 256}}
  attn.attention ins(%q, %k, %v : memref<2x8x1x264xf16>, memref<2x8x16x264xf16>, memref<2x8x16x64xf16>)
                 outs(%o : memref<2x8x1x64xf16>)
  return
}

// -----

func.func @lengths(%q: memref<1x1x1x16xf16>, %k: memref<1x1x536870912x16xf16>, %v: memref<1x1x536870912x16xf16>, %o: memref<1x1x1x16xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support 536870912 keys, expected fewer than 536870912}}
  attn.attention ins(%q, %k, %v : memref<1x1x1x16xf16>, memref<1x1x536870912x16xf16>, memref<1x1x536870912x16xf16>)
                 outs(%o : memref<1x1x1x16xf16>)
  return
}

// -----

func.func @alignment(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16, strided<[171, 171, 17, 1]>>, %v: memref<1x1x8x16xf16>, %o: memref<1x1x8x16xf16>) {
  // expected-error@+1 {{schedule 'split_q' does not support rows of 'k' that start at multiples of 2 bytes, expected 4, 8 or 16}}
  attn.attention ins(%q, %k, %v : memref<1x1x8x16xf16>, memref<1x1x8x16xf16, strided<[171, 171, 17, 1]>>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  return
}

// -----

func.func @captured(%q: memref<1x1x8x16xf16>, %k: memref<1x1x8x16xf16>, %v: memref<1x1x8x16xf16>, %o: memref<1x1x8x16xf16>, %t: tensor<4xf32>) {
  // expected-error@+2 {{expected regions to use memrefs and scalars from outside, got a value of type}}
  // expected-note@-2 {{the value stands here}}
  attn.attention ins(%q, %k, %v : memref<1x1x8x16xf16>, memref<1x1x8x16xf16>, memref<1x1x8x16xf16>)
                 outs(%o : memref<1x1x8x16xf16>)
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %c0 = arith.constant 0 : index
    %x = tensor.extract %t[%c0] : tensor<4xf32>
    attn.yield %x : f32
  }
  return
}

// -----

func.func @wide_integers(%q: memref<1x8x300x64xf16>, %o: memref<1x8x300x64xf16>, %p: memref<4xi128>) {
  // expected-note@-1 {{the memref stands here}}
  // expected-error@+1 {{expected regions to use memrefs of integers of at most 64 bits or of floats, got 'memref<4xi128>'}}
  attn.attention ins(%q, %q, %q : memref<1x8x300x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>) outs(%o : memref<1x8x300x64xf16>) mask_mod {
  ^bb0(%score: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %k = arith.index_cast %b : i32 to index
    %x = memref.load %p[%k] : memref<4xi128>
    %y = arith.trunci %x : i128 to i32
    %keep = arith.cmpi sle, %j, %y : i32
    attn.yield %keep : i1
  }
  return
}
