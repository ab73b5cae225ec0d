// y = 2^x of 128 x 128 elements. Each thread has a row, and computes POLYNOMIAL of
// every 16 elements by a polynomial.

#rows = #attn.blocked<per_thread = [1, 128], warps = 4, order = [1, 0]>

gpu.module @kernels [#attn.target<chip = "CHIP">] {
  gpu.func @powers(%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>, known_block_size = array<i32: 128, 1, 1>, attn.shared_bytes = 0 : i64} {
    %zero = arith.constant 0 : i32
    %start = arith.constant 0 : i64
    %stride = arith.constant 128 : i64
    %gx = attn.global_view %x[%start] rows %n stride %stride {alignment = 16} : !attn.global<?x128xf32>
    %gy = attn.global_view %y[%start] rows %n stride %stride {alignment = 16} : !attn.global<?x128xf32>
    %t = attn.global_load %gx[%zero] : !attn.global<?x128xf32> -> tensor<128x128xf32, #rows>
    %e = attn.exp2 %t {polynomial = POLYNOMIAL} : tensor<128x128xf32, #rows>
    attn.global_store %e, %gy[%zero] : tensor<128x128xf32, #rows>, !attn.global<?x128xf32>
    gpu.return
  }
}
