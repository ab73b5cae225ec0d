// B = A^T on sm_90a and later, A is 200 x 136 of f16. A CTA transposes 64 x 64 elements: one thread
// loads them by TMA, all wait at an mbarrier, and one thread stores them by TMA. Neither extent of A is
// a multiple of 64: TMA fills with zeros what does not exist, and drops it when it stores.
//
// docs/HowTo/write-a-kernel.md goes through it, and says how it is compiled.

!map  = !attn.tensor_map<64x64xf16, swizzle = 128>
!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
gpu.module @kernels [#attn.target<chip = "sm_90a">] {
  gpu.func @transpose(%amap: !map, %bmap: !map) kernel attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>,
      attn.launch = #attn.launch<chip = "sm_90a", ptx = 86, grid = ["4", "3", "1"], block = [128, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 200, 136>},
                   {access = "write", dtype = "f16", name = "b", shape = array<i64: 136, 200>}],
        args = [{box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "a"},
                {box = array<i64: 64, 64>, element = "f16", kind = "tensor_map", rank = 2 : i64, swizzle = "128B", tensor = "b"}]>} {
    %a = attn.alloc {name = "a"} : !tile
    %b = attn.alloc {name = "b"} : !tile
    %full = attn.mbarrier.alloc {name = "full"} : !attn.mbarriers<1>
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c64 : i32
    %by = gpu.block_id y
    %bj = arith.index_cast %by : index to i32
    %col = arith.muli %bj, %c64 : i32
    attn.elect {
      attn.mbarrier.init %full {count = 1} : !attn.mbarriers<1>
      attn.mbarrier.fence_init
    }
    gpu.barrier
    attn.elect {
      attn.mbarrier.expect_tx %full[%c0] {bytes = 8192 : i64} : !attn.mbarriers<1>
      attn.tma.load %amap[%row, %col], %a barrier %full[%c0] : !attn.mbarriers<1> : !map, !tile
    }
    attn.mbarrier.wait %full[%c0] parity %c0 : !attn.mbarriers<1>
    %at = attn.transpose %a : !tile -> !tile
    %x = attn.local_load %at : !tile -> tensor<64x64xf16, #attn.auto>
    attn.local_store %x, %b : tensor<64x64xf16, #attn.auto>, !tile
    attn.elect {
      attn.tma.store %b, %bmap[%col, %row] : !tile, !map
      attn.tma.commit
      attn.tma.wait {pending = 0, read}
    }
    gpu.return
  }
}
