// C = A B^T on sm_90a: A is 128 x 256, B 64 x 256, C 128 x 64, all f16. A CTA has 64 rows of C: one
// thread loads by TMA, one warpgroup multiplies (wgmma), with a ring of two slots between them. The
// slots are handed over by mbarriers that the kernel waits for and signals itself.
//
// docs/HowTo/write-a-kernel.md goes through it.

!map  = !attn.tensor_map<64x64xf16, swizzle = 128>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
!acc  = tensor<64x64xf32, #attn.auto>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @gemm(%c: !llvm.ptr<1>, %amap: !map, %bmap: !map) kernel attributes {attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["2", "1", "1"], block = [256, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 128, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f16", name = "b", shape = array<i64: 64, 256>, strides = array<i64: 256, 1>},
                   {access = "write", dtype = "f16", name = "c", shape = array<i64: 128, 64>, strides = array<i64: 64, 1>}],
        args = [{kind = "pointer", tensor = "c"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "a"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"}]>} {
    %a = attn.alloc {name = "a"} : !ring
    %b = attn.alloc {name = "b"} : !ring
    %full = attn.mbarrier.alloc {name = "full"} : !attn.mbarriers<2>
    %empty = attn.mbarrier.alloc {name = "empty"} : !attn.mbarriers<2>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %steps = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c64 : i32
    // A phase of `full` ends with one arrival and its bytes, one of `empty` with an arrival of each
    // of the consumer's four warps.
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<2>
      attn.mbarrier.init %empty {count = 4} : !attn.mbarriers<2>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.warp_specialize
    partition "consumer" warps 4 tiles [4, 1] registers 240 {
      %zero = arith.constant dense<0.0> : !acc
      %r = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
        // Steps 0 and 1 wait for phase 0 of slots 0 and 1, steps 2 and 3 for phase 1.
        %slot = arith.andi %i, %c1 : i32
        %round = arith.shrui %i, %c1 : i32
        %parity = arith.andi %round, %c1 : i32
        attn.mbarrier.wait %full[%slot] parity %parity : !attn.mbarriers<2>
        %as = attn.slot %a[%slot] : !ring -> !tile
        %bs = attn.slot %b[%slot] : !ring -> !tile
        %bt = attn.transpose %bs : !tile -> !tile
        %f = attn.wgmma %as, %bt acc %acc : !acc : !tile, !tile -> !attn.inflight<64x64xf32>
        %n = attn.wgmma.wait %f {pending = 0 : i64} : !attn.inflight<64x64xf32> -> !acc
        attn.mbarrier.arrive %empty[%slot] : !attn.mbarriers<2>
        scf.yield %n : !acc
      }
      %h = arith.truncf %r : !acc to tensor<64x64xf16, #attn.auto>
      %off = arith.constant 0 : i64
      %stride = arith.constant 64 : i64
      %rows = arith.constant 128 : i32
      %view = attn.global_view %c[%off] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
      attn.store_result %h, %view[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    }
    partition "producer" warps 4 registers 24 {
      attn.elect {
        scf.for %i = %c0 to %steps step %c1 : i32 {
          %k = arith.muli %i, %c64 : i32
          %slot = arith.andi %i, %c1 : i32
          %round = arith.shrui %i, %c1 : i32
          %parity = arith.andi %round, %c1 : i32
          // Slots are free at first: parity 1 passes an mbarrier that was only initialised.
          %free = arith.xori %parity, %c1 : i32
          attn.mbarrier.wait %empty[%slot] parity %free : !attn.mbarriers<2>
          attn.mbarrier.expect_tx %full[%slot] {bytes = 16384 : i64} : !attn.mbarriers<2>
          %as = attn.slot %a[%slot] : !ring -> !tile
          %bs = attn.slot %b[%slot] : !ring -> !tile
          attn.tma.load %amap[%row, %k], %as barrier %full[%slot] : !attn.mbarriers<2> : !map, !tile
          attn.tma.load %bmap[%c0, %k], %bs barrier %full[%slot] : !attn.mbarriers<2> : !map, !tile
        }
      }
    }
    gpu.return
  }
}
