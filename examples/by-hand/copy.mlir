// B = A, 128 x 64 of f16, on any chip from sm_80 on. A CTA of four warps copies 64 rows to shared
// memory, waits, and writes them to B from registers.
//
// docs/HowTo/write-a-kernel.md goes through it, and says how it is compiled.

!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
gpu.module @kernels [#attn.target<chip = "sm_80">] {
  gpu.func @copy(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.warps = array<i64: 4, 1>,
      attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["2", "1", "1"], block = [128, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 128, 64>},
                   {access = "write", dtype = "f16", name = "b", shape = array<i64: 128, 64>}],
        args = [{kind = "pointer", tensor = "a"}, {kind = "pointer", tensor = "b"}]>} {
    %tile = attn.alloc {name = "tile"} : !tile
    %start = arith.constant 0 : i64
    %stride = arith.constant 64 : i64
    %rows = arith.constant 128 : i32
    %c64 = arith.constant 64 : i32
    %block = gpu.block_id x
    %number = arith.index_cast %block : index to i32
    %row = arith.muli %number, %c64 : i32
    %from = attn.global_view %a[%start] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    %to = attn.global_view %b[%start] rows %rows stride %stride {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.cp_async %from[%row], %tile : !attn.global<?x64xf16>, !tile
    attn.cp_async.commit
    attn.cp_async.wait {pending = 0}
    %x = attn.local_load %tile : !tile -> tensor<64x64xf16, #attn.auto>
    attn.store_result %x, %to[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }
}
