// O = softmax(Q K^T / 8) V for one head on sm_100a: Q, K, V and O are 256 x 64 of f16. A CTA has 128 rows
// of Q. One thread loads by TMA, another one starts the products (tcgen05), and a warpgroup computes the
// softmax. Scores, probabilities and products with V pass between these two in tensor memory. O is
// summed in registers, where it is rescaled.
//
// docs/HowTo/write-a-kernel.md goes through it, and says how it is compiled.

!qmap = !attn.tensor_map<128x64xf16, swizzle = 128>
!map  = !attn.tensor_map<64x64xf16, swizzle = 128>
!q    = !attn.buffer<128x64xf16, #attn.auto, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
!d    = !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
!p    = !attn.buffer<128x64xf16, #attn.tmem<m = 128>, tmem>
!regs = !attn.inflight<128x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>
!acc  = tensor<128x64xf32, #attn.auto>
!half = tensor<128x64xf16, #attn.auto>
!rows = tensor<128xf32, #attn.auto>
!sums = tensor<128x1xf32, #attn.partial<parent = #attn.auto>>
gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  gpu.func @attention(%o: !llvm.ptr<1>, %qmap: !qmap, %kmap: !map, %vmap: !map) kernel attributes {attn.launch = #attn.launch<chip = "sm_100a", ptx = 88, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "q", shape = array<i64: 256, 64>},
                   {access = "read", dtype = "f16", name = "k", shape = array<i64: 256, 64>},
                   {access = "read", dtype = "f16", name = "v", shape = array<i64: 256, 64>},
                   {access = "write", dtype = "f16", name = "o", shape = array<i64: 256, 64>}],
        args = [{kind = "pointer", tensor = "o"},
                {box = array<i64: 64, 128>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "q"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "k"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "v"}]>} {
    %qs = attn.alloc {name = "q"} : !q
    %ks = attn.alloc {name = "k"} : !ring
    %vs = attn.alloc {name = "v"} : !ring
    %s = attn.tmem_alloc {name = "s"} : !d
    %p = attn.tmem_alloc {name = "p"} : !p
    %pv = attn.tmem_alloc {name = "pv"} : !d
    %qch = attn.channel.create {name = "q", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !attn.channel<1>
    %kch = attn.channel.create {name = "k", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %vch = attn.channel.create {name = "v", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !attn.channel<2>
    %sch = attn.channel.create {name = "s", roles = [#attn.role<"mma", commit>, #attn.role<"softmax", arrive>]} : !attn.channel<1>
    %pch = attn.channel.create {name = "p", roles = [#attn.role<"softmax", arrive>, #attn.role<"mma", commit>]} : !attn.channel<1>
    %och = attn.channel.create {name = "pv", roles = [#attn.role<"mma", commit>, #attn.role<"softmax", arrive>]} : !attn.channel<1>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %blocks = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %c128 = arith.constant 128 : i32
    %no = arith.constant false
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c128 : i32
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 224 {
      %s0 = attn.cursor.start %sch as "softmax" : !attn.channel<1>
      %p0 = attn.cursor.start %pch as "softmax" : !attn.channel<1>
      %o0 = attn.cursor.start %och as "softmax" : !attn.channel<1>
      // log2(e) / 8: the softmax is in powers of two.
      %scale = arith.constant 0.18033688 : f32
      // A thread has a whole row, so that there is one column of sums.
      %none = arith.constant dense<0xFF800000> : !rows
      %empty = arith.constant dense<0.0> : !sums
      %zero = arith.constant dense<0.0> : !acc
      %r:6 = scf.for %i = %c0 to %blocks step %c1 iter_args(%sc = %s0, %pc = %p0, %oc = %o0, %m = %none, %l = %empty, %acc = %zero) -> (!attn.cursor, !attn.cursor, !attn.cursor, !rows, !sums, !acc) : i32 {
        %si, %st = attn.channel.acquire %sch[%sc] as "softmax" : !attn.channel<1>
        %sf = attn.tmem.load %s : !d -> !regs
        %x = attn.tmem.wait %sf : !regs -> !acc
        attn.channel.release %sch, %st as "softmax" : !attn.channel<1>
        %e, %m1, %l1, %acc1 = attn.online_softmax %x, %m, %l, %acc scale %scale : !acc, !rows, !sums, !acc
        %h = arith.truncf %e : !acc to !half
        %pi, %pt = attn.channel.acquire %pch[%pc] as "softmax" : !attn.channel<1>
        attn.tmem.store %h, %p : !half, !p
        attn.channel.release %pch, %pt as "softmax" : !attn.channel<1>
        %oi, %ot = attn.channel.acquire %och[%oc] as "softmax" : !attn.channel<1>
        %of = attn.tmem.load %pv : !d -> !regs
        %y = attn.tmem.wait %of : !regs -> !acc
        attn.channel.release %och, %ot as "softmax" : !attn.channel<1>
        %acc2 = arith.addf %acc1, %y : !acc
        %sn = attn.cursor.advance %sc on %sch : !attn.channel<1>
        %pn = attn.cursor.advance %pc on %pch : !attn.channel<1>
        %on = attn.cursor.advance %oc on %och : !attn.channel<1>
        scf.yield %sn, %pn, %on, %m1, %l1, %acc2 : !attn.cursor, !attn.cursor, !attn.cursor, !rows, !sums, !acc
      }
      %sum = attn.reduce add %r#4 : !sums -> !rows
      %sums = attn.broadcast %sum : !rows -> !acc
      %mean = arith.divf %r#5, %sums : !acc
      %h = arith.truncf %mean : !acc to !half
      %off = arith.constant 0 : i64
      %stride = arith.constant 64 : i64
      %length = arith.constant 256 : i32
      %view = attn.global_view %o[%off] rows %length stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
      attn.store_result %h, %view[%row] : !half, !attn.global<?x64xf16>
    }
    partition "mma" warps 1 registers 24 {
      %q0 = attn.cursor.start %qch as "mma" : !attn.channel<1>
      %k0 = attn.cursor.start %kch as "mma" : !attn.channel<2>
      %v0 = attn.cursor.start %vch as "mma" : !attn.channel<2>
      %s0 = attn.cursor.start %sch as "mma" : !attn.channel<1>
      %p0 = attn.cursor.start %pch as "mma" : !attn.channel<1>
      %o0 = attn.cursor.start %och as "mma" : !attn.channel<1>
      %qi, %qt = attn.channel.acquire %qch[%q0] as "mma" : !attn.channel<1>
      %r:5 = scf.for %i = %c0 to %blocks step %c1 iter_args(%kc = %k0, %vc = %v0, %sc = %s0, %pc = %p0, %oc = %o0) -> (!attn.cursor, !attn.cursor, !attn.cursor, !attn.cursor, !attn.cursor) : i32 {
        %ki, %kt = attn.channel.acquire %kch[%kc] as "mma" : !attn.channel<2>
        %si, %st = attn.channel.acquire %sch[%sc] as "mma" : !attn.channel<1>
        %kb = attn.slot %ks[%ki] : !ring -> !tile
        %kx = attn.transpose %kb : !tile -> !tile
        attn.elect {
          attn.tcgen05.mma %qs, %kx, %s accumulate %no : !q, !tile, !d
          attn.channel.release %kch, %kt as "mma" : !attn.channel<2>
          attn.channel.release %sch, %st as "mma" : !attn.channel<1>
        }
        %vi, %vt = attn.channel.acquire %vch[%vc] as "mma" : !attn.channel<2>
        %pi, %pt = attn.channel.acquire %pch[%pc] as "mma" : !attn.channel<1>
        %oi, %ot = attn.channel.acquire %och[%oc] as "mma" : !attn.channel<1>
        %vb = attn.slot %vs[%vi] : !ring -> !tile
        attn.elect {
          attn.tcgen05.mma %p, %vb, %pv accumulate %no : !p, !tile, !d
          attn.channel.release %vch, %vt as "mma" : !attn.channel<2>
          attn.channel.release %pch, %pt as "mma" : !attn.channel<1>
          attn.channel.release %och, %ot as "mma" : !attn.channel<1>
        }
        %kn = attn.cursor.advance %kc on %kch : !attn.channel<2>
        %vn = attn.cursor.advance %vc on %vch : !attn.channel<2>
        %sn = attn.cursor.advance %sc on %sch : !attn.channel<1>
        %pn = attn.cursor.advance %pc on %pch : !attn.channel<1>
        %on = attn.cursor.advance %oc on %och : !attn.channel<1>
        scf.yield %kn, %vn, %sn, %pn, %on : !attn.cursor, !attn.cursor, !attn.cursor, !attn.cursor, !attn.cursor
      }
      // Nobody waits for this release, so it must not come later than the CTA's exit, as a commit might.
      attn.channel.release %qch, %qt as "mma" : !attn.channel<1>
    }
    partition "load" warps 3 registers 24 {
      attn.elect {
        %q0 = attn.cursor.start %qch as "load" : !attn.channel<1>
        %k0 = attn.cursor.start %kch as "load" : !attn.channel<2>
        %v0 = attn.cursor.start %vch as "load" : !attn.channel<2>
        %qi, %qt = attn.channel.acquire %qch[%q0] as "load" : !attn.channel<1>
        attn.tma.load %qmap[%row, %c0], %qs token %qt : !qmap, !q
        attn.channel.release %qch, %qt as "load" : !attn.channel<1>
        %r:2 = scf.for %i = %c0 to %blocks step %c1 iter_args(%kc = %k0, %vc = %v0) -> (!attn.cursor, !attn.cursor) : i32 {
          %key = arith.muli %i, %c64 : i32
          %ki, %kt = attn.channel.acquire %kch[%kc] as "load" : !attn.channel<2>
          %kb = attn.slot %ks[%ki] : !ring -> !tile
          attn.tma.load %kmap[%key, %c0], %kb token %kt : !map, !tile
          attn.channel.release %kch, %kt as "load" : !attn.channel<2>
          %vi, %vt = attn.channel.acquire %vch[%vc] as "load" : !attn.channel<2>
          %vb = attn.slot %vs[%vi] : !ring -> !tile
          attn.tma.load %vmap[%key, %c0], %vb token %vt : !map, !tile
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
