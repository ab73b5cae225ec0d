// C = A B^T on sm_80, with attn.stage: a tile of any box is rows of a view that begins at its first
// column, and the view may follow from the key.
!tile = !attn.buffer<64x64xf16, #attn.auto, shared>
!ring = !attn.buffer<2x64x64xf16, #attn.auto, shared>
!acc  = tensor<64x64xf32, #attn.auto>
gpu.module @kernels [#attn.target<chip = "sm_80">] {
  gpu.func @gemm(%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>) kernel attributes {known_block_size = array<i32: 128, 1, 1>, attn.warps = array<i64: 4, 1>,
      attn.launch = #attn.launch<chip = "sm_80", ptx = 80, grid = ["2", "1", "1"], block = [128, 1, 1],
        tensors = [{access = "read", dtype = "f16", name = "a", shape = array<i64: 128, 256>, strides = array<i64: 256, 1>},
                   {access = "read", dtype = "f16", name = "b", shape = array<i64: 64, 256>, strides = array<i64: 256, 1>},
                   {access = "write", dtype = "f16", name = "c", shape = array<i64: 128, 64>, strides = array<i64: 64, 1>}],
        args = [{kind = "pointer", tensor = "a"}, {kind = "pointer", tensor = "b"}, {kind = "pointer", tensor = "c"}]>} {
    %ra = attn.alloc {name = "a"} : !ring
    %rb = attn.alloc {name = "b"} : !ring
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %steps = arith.constant 4 : i32
    %c64 = arith.constant 64 : i32
    %off0 = arith.constant 0 : i64
    %ld = arith.constant 256 : i64
    %ldc = arith.constant 64 : i64
    %m = arith.constant 128 : i32
    %bx = gpu.block_id x
    %bi = arith.index_cast %bx : index to i32
    %row = arith.muli %bi, %c64 : i32
    %zero = arith.constant dense<0.0> : !acc
    %r = attn.kv_loop %c0, %c0, %steps, %steps block 64 stages 2 iter_args(%zero : !acc) {
    ^bb0(%key: i32, %acc: !acc):
      %o = arith.extui %key : i32 to i64
      %va = attn.global_view %a[%o] rows %m stride %ld {alignment = 16 : i64} : !attn.global<?x64xf16>
      %vb = attn.global_view %b[%o] rows %c64 stride %ld {alignment = 16 : i64} : !attn.global<?x64xf16>
      %as = attn.stage %va[%row], %ra : !attn.global<?x64xf16>, !ring -> !tile
      %bs = attn.stage %vb[%c0], %rb : !attn.global<?x64xf16>, !ring -> !tile
      %bt = attn.transpose %bs : !tile -> !tile
      %x = attn.mma %as, %bt, %acc : !tile, !tile, !acc
      attn.yield %x : !acc
    }
    %h = arith.truncf %r : !acc to tensor<64x64xf16, #attn.auto>
    %vc = attn.global_view %c[%off0] rows %m stride %ldc {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %h, %vc[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }
}
