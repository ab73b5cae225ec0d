// C = A B^T on sm_80: A is 128 x 256, B 64 x 256, C 128 x 64, all f16. A CTA has 64 rows of C. All its
// threads copy ahead by cp.async into rings of two slots and multiply by mma.sync. There are no
// channels: groups of copies are awaited, and attn-insert-fences places the barriers.
//
//   attn-compile examples/by-hand/gemm-ampere.mlir -o gemm.ptx --launch-out=gemm.json
//   attn-sim gemm.ptx --launch=gemm.json

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
    %va0 = attn.global_view %a[%off0] rows %m stride %ld {alignment = 16 : i64} : !attn.global<?x64xf16>
    %vb0 = attn.global_view %b[%off0] rows %c64 stride %ld {alignment = 16 : i64} : !attn.global<?x64xf16>
    %as0 = attn.slot %ra[%c0] : !ring -> !tile
    %bs0 = attn.slot %rb[%c0] : !ring -> !tile
    attn.cp_async %va0[%row], %as0 : !attn.global<?x64xf16>, !tile
    attn.cp_async %vb0[%c0], %bs0 : !attn.global<?x64xf16>, !tile
    attn.cp_async.commit
    %zero = arith.constant dense<0.0> : !acc
    %r = scf.for %i = %c0 to %steps step %c1 iter_args(%acc = %zero) -> (!acc) : i32 {
      // This step's slots and the next one's.
      %n = arith.addi %i, %c1 : i32
      %s = arith.andi %i, %c1 : i32
      %ns = arith.andi %n, %c1 : i32
      %more = arith.cmpi slt, %n, %steps : i32
      scf.if %more {
        %k = arith.muli %n, %c64 : i32
        %o = arith.extui %k : i32 to i64
        %va = attn.global_view %a[%o] rows %m stride %ld {alignment = 16 : i64} : !attn.global<?x64xf16>
        %vb = attn.global_view %b[%o] rows %c64 stride %ld {alignment = 16 : i64} : !attn.global<?x64xf16>
        %as1 = attn.slot %ra[%ns] : !ring -> !tile
        %bs1 = attn.slot %rb[%ns] : !ring -> !tile
        attn.cp_async %va[%row], %as1 : !attn.global<?x64xf16>, !tile
        attn.cp_async %vb[%c0], %bs1 : !attn.global<?x64xf16>, !tile
      }
      // A group in each step, so that the one before the last is this step's.
      attn.cp_async.commit
      attn.cp_async.wait {pending = 1}
      %as = attn.slot %ra[%s] : !ring -> !tile
      %bs = attn.slot %rb[%s] : !ring -> !tile
      %bt = attn.transpose %bs : !tile -> !tile
      %x = attn.mma %as, %bt, %acc : !tile, !tile, !acc
      scf.yield %x : !acc
    }
    %h = arith.truncf %r : !acc to tensor<64x64xf16, #attn.auto>
    %vc = attn.global_view %c[%off0] rows %m stride %ldc {alignment = 16 : i64} : !attn.global<?x64xf16>
    attn.store_result %h, %vc[%row] : tensor<64x64xf16, #attn.auto>, !attn.global<?x64xf16>
    gpu.return
  }
}
