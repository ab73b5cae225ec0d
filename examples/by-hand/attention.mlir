// O = softmax(Q K^T / 8) V for one head on sm_90a: Q, K, V and O are 256 x 64 of f16. A CTA has 64 rows
// of Q. One thread loads, a warpgroup multiplies and keeps the softmax; K and V have two slots each.
//
// docs/HowTo/write-a-kernel.md goes through it, and says how it is compiled.

!map  = !attn.tensor_map<64x64xf16, swizzle = 128>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
!acc  = tensor<64x64xf32, #attn.auto>
!rows = tensor<64xf32, #attn.auto>
!sums = tensor<64x4xf32, #attn.partial<parent = #attn.auto>>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @attention(%o: !llvm.ptr<1>, %qmap: !map, %kmap: !map, %vmap: !map) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "q", shape = array<i64: 256, 64>, strides = array<i64: 64, 1>},
                   {access = "read", dtype = "f16", name = "k", shape = array<i64: 256, 64>, strides = array<i64: 64, 1>},
                   {access = "read", dtype = "f16", name = "v", shape = array<i64: 256, 64>, strides = array<i64: 64, 1>},
                   {access = "write", dtype = "f16", name = "o", shape = array<i64: 256, 64>, strides = array<i64: 64, 1>}],
        args = [{kind = "pointer", tensor = "o"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "q"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "k"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "v"}]>} {
    %q = attn.alloc {name = "q"} : !tile
    %k = attn.alloc {name = "k"} : !ring
    %v = attn.alloc {name = "v"} : !ring
    %qch = attn.channel.create {name = "q", roles = [#attn.role<"load", tx>, #attn.role<"softmax", arrive>]} : !attn.channel<1>
    %kch = attn.channel.create {name = "k", roles = [#attn.role<"load", tx>, #attn.role<"softmax", arrive>]} : !attn.channel<2>
    %vch = attn.channel.create {name = "v", roles = [#attn.role<"load", tx>, #attn.role<"softmax", arrive>]} : !attn.channel<2>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %blocks = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c64 : i32
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 240 {
      %q0 = attn.cursor.start %qch as "softmax" : !attn.channel<1>
      %k0 = attn.cursor.start %kch as "softmax" : !attn.channel<2>
      %v0 = attn.cursor.start %vch as "softmax" : !attn.channel<2>
      // log2(e) / 8: the softmax is in powers of two.
      %scale = arith.constant 0.18033688 : f32
      %none = arith.constant dense<0xFF800000> : !rows
      %empty = arith.constant dense<0.0> : !sums
      %zero = arith.constant dense<0.0> : !acc
      %qi, %qt = attn.channel.acquire %qch[%q0] as "softmax" : !attn.channel<1>
      %r:5 = scf.for %i = %c0 to %blocks step %c1 iter_args(%kc = %k0, %vc = %v0, %m = %none, %l = %empty, %acc = %zero) -> (!attn.cursor, !attn.cursor, !rows, !sums, !acc) : i32 {
        %ki, %kt = attn.channel.acquire %kch[%kc] as "softmax" : !attn.channel<2>
        %ks = attn.slot %k[%ki] : !ring -> !tile
        %kx = attn.transpose %ks : !tile -> !tile
        %sf = attn.wgmma %q, %kx : !tile, !tile -> !attn.inflight<64x64xf32>
        %s = attn.wgmma.wait %sf {pending = 0 : i64} : !attn.inflight<64x64xf32> -> !acc
        attn.channel.release %kch, %kt as "softmax" : !attn.channel<2>
        %p, %m1, %l1, %acc1 = attn.online_softmax %s, %m, %l, %acc scale %scale : !acc, !rows, !sums, !acc
        %ph = arith.truncf %p : !acc to tensor<64x64xf16, #attn.auto>
        %vi, %vt = attn.channel.acquire %vch[%vc] as "softmax" : !attn.channel<2>
        %vs = attn.slot %v[%vi] : !ring -> !tile
        %of = attn.wgmma %ph, %vs acc %acc1 : !acc : tensor<64x64xf16, #attn.auto>, !tile -> !attn.inflight<64x64xf32>
        %o1 = attn.wgmma.wait %of {pending = 0 : i64} : !attn.inflight<64x64xf32> -> !acc
        attn.channel.release %vch, %vt as "softmax" : !attn.channel<2>
        %kn = attn.cursor.advance %kc on %kch : !attn.channel<2>
        %vn = attn.cursor.advance %vc on %vch : !attn.channel<2>
        scf.yield %kn, %vn, %m1, %l1, %o1 : !attn.cursor, !attn.cursor, !rows, !sums, !acc
      }
      attn.channel.release %qch, %qt as "softmax" : !attn.channel<1>
      %sum = attn.reduce add %r#3 : !sums -> !rows
      %sums = attn.broadcast %sum : !rows -> !acc
      %mean = arith.divf %r#4, %sums : !acc
      %h = arith.truncf %mean : !acc to tensor<64x64xf16, #attn.auto>
      %off = arith.constant 0 : i64
      %stride = arith.constant 64 : i64
      %rows = arith.constant 256 : i32
      %view = attn.global_view %o[%off] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
      attn.store_result %h, %view[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    }
    partition "load" warps 4 registers 24 {
      attn.elect {
        %q0 = attn.cursor.start %qch as "load" : !attn.channel<1>
        %k0 = attn.cursor.start %kch as "load" : !attn.channel<2>
        %v0 = attn.cursor.start %vch as "load" : !attn.channel<2>
        %qi, %qt = attn.channel.acquire %qch[%q0] as "load" : !attn.channel<1>
        attn.tma.load %qmap[%row, %c0], %q token %qt : !map, !tile
        attn.channel.release %qch, %qt as "load" : !attn.channel<1>
        %r:2 = scf.for %i = %c0 to %blocks step %c1 iter_args(%kc = %k0, %vc = %v0) -> (!attn.cursor, !attn.cursor) : i32 {
          %key = arith.muli %i, %c64 : i32
          %ki, %kt = attn.channel.acquire %kch[%kc] as "load" : !attn.channel<2>
          %ks = attn.slot %k[%ki] : !ring -> !tile
          attn.tma.load %kmap[%key, %c0], %ks token %kt : !map, !tile
          attn.channel.release %kch, %kt as "load" : !attn.channel<2>
          %vi, %vt = attn.channel.acquire %vch[%vc] as "load" : !attn.channel<2>
          %vs = attn.slot %v[%vi] : !ring -> !tile
          attn.tma.load %vmap[%key, %c0], %vs token %vt : !map, !tile
          attn.channel.release %vch, %vt as "load" : !attn.channel<2>
          %kn = attn.cursor.advance %kc on %kch : !attn.channel<2>
          %vn = attn.cursor.advance %vc on %vch : !attn.channel<2>
          scf.yield %kn, %vn : !attn.cursor, !attn.cursor
        }
      }
    }
    gpu.return
  }
}
