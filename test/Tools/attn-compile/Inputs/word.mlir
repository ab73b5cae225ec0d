// Whether its warps meet depends on a word of shared memory.
module {
  gpu.module @kernels [#attn.target<chip = "sm_80">] attributes {attn.rung = "barrier"} {
    gpu.func @word() kernel attributes {attn.shared_bytes = 16 : i64, attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>} {
      %c0 = arith.constant 0 : i32
      %x = attn.alloc {name = "x", offset = 0} : !attn.buffer<4xi32, #attn.rows, shared>
      %v = attn.scalar_load %x[%c0] : !attn.buffer<4xi32, #attn.rows, shared>
      %is = arith.cmpi eq, %v, %c0 : i32
      scf.if %is {
        gpu.barrier
      }
      gpu.return
    }
  }
}
