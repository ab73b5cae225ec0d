// O = softmax(Q K^T / 8) V for one head on sm_80: Q, K, V and O are 256 x 64 of f16. A CTA has 64 rows
// of Q. All its threads copy the next block of K and V by cp.async while they multiply this one by
// mma.sync. There are no channels: groups of copies are awaited, and attn-insert-fences places the
// barriers.
//
// docs/HowTo/write-a-kernel.md goes through it, and says how it is compiled.

!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!acc  = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
!view = !attn.global<?x64xf16>
gpu.module @kernels [#attn.target<chip = "sm_80">] {
  gpu.func @attention(%q: !llvm.ptr<1>, %k: !llvm.ptr<1>, %v: !llvm.ptr<1>, %o: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.warps = array<i64: 4, 1>,
      attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["4", "1", "1"], block = [128, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "q", shape = array<i64: 256, 64>},
                   {access = "read", dtype = "f16", name = "k", shape = array<i64: 256, 64>},
                   {access = "read", dtype = "f16", name = "v", shape = array<i64: 256, 64>},
                   {access = "write", dtype = "f16", name = "o", shape = array<i64: 256, 64>}],
        args = [{kind = "pointer", tensor = "q"}, {kind = "pointer", tensor = "k"}, {kind = "pointer", tensor = "v"}, {kind = "pointer", tensor = "o"}]>} {
    %qs = attn.alloc {name = "q"} : !tile
    %ks = attn.alloc {name = "k"} : !ring
    %vs = attn.alloc {name = "v"} : !ring
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %blocks = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %off = arith.constant 0 : i64
    %stride = arith.constant 64 : i64
    %length = arith.constant 256 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c64 : i32
    %qv = attn.global_view %q[%off] rows %length stride %stride {alignment = 16 : i64} : !view
    %kv = attn.global_view %k[%off] rows %length stride %stride {alignment = 16 : i64} : !view
    %vv = attn.global_view %v[%off] rows %length stride %stride {alignment = 16 : i64} : !view
    %ov = attn.global_view %o[%off] rows %length stride %stride {alignment = 16 : i64} : !view
    // The first group: Q, and K and V of the first block.
    %k0 = attn.slot %ks[%c0] : !ring -> !tile
    %v0 = attn.slot %vs[%c0] : !ring -> !tile
    attn.cp_async %qv[%row], %qs : !view, !tile
    attn.cp_async %kv[%c0], %k0 : !view, !tile
    attn.cp_async %vv[%c0], %v0 : !view, !tile
    attn.cp_async.commit
    // log2(e) / 8: the softmax is in powers of two.
    %scale = arith.constant 0.18033688 : f32
    %none = arith.constant dense<0xFF800000> : !rows
    %empty = arith.constant dense<0.0> : !sums
    %zero = arith.constant dense<0.0> : !acc
    %r:3 = scf.for %i = %c0 to %blocks step %c1 iter_args(%m = %none, %l = %empty, %acc = %zero) -> (!rows, !sums, !acc) : i32 {
      %n = arith.addi %i, %c1 : i32
      %slot = arith.andi %i, %c1 : i32
      %next = arith.andi %n, %c1 : i32
      %more = arith.cmpi slt, %n, %blocks : i32
      scf.if %more {
        %key = arith.muli %n, %c64 : i32
        %kn = attn.slot %ks[%next] : !ring -> !tile
        %vn = attn.slot %vs[%next] : !ring -> !tile
        attn.cp_async %kv[%key], %kn : !view, !tile
        attn.cp_async %vv[%key], %vn : !view, !tile
      }
      // A group in each step, so that the one before the last is this step's.
      attn.cp_async.commit
      attn.cp_async.wait {pending = 1}
      %kb = attn.slot %ks[%slot] : !ring -> !tile
      %vb = attn.slot %vs[%slot] : !ring -> !tile
      %kt = attn.transpose %kb : !tile -> !tile
      %s = attn.mma %qs, %kt, %zero : !tile, !tile, !acc
      %p, %m1, %l1, %acc1 = attn.online_softmax %s, %m, %l, %acc scale %scale : !acc, !rows, !sums, !acc
      %ph = arith.truncf %p : !acc to tensor<64x64xf16, #attn.auto>
      %o1 = attn.mma %ph, %vb, %acc1 : tensor<64x64xf16, #attn.auto>, !tile, !acc
      scf.yield %m1, %l1, %o1 : !rows, !sums, !acc
    }
    %sum = attn.reduce add %r#1 : !sums -> !rows
    %sums = attn.broadcast %sum : !rows -> !acc
    %mean = arith.divf %r#2, %sums : !acc
    %h = arith.truncf %mean : !acc to tensor<64x64xf16, #attn.auto>
    attn.store_result %h, %ov[%row] : tensor<64x64xf16, #attn.auto>, !view
    gpu.return
  }
}
