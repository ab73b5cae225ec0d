// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What layouts refuse by themselves, and as the encoding of a tile.

// expected-error @below {{expected warps to be two powers of two (rows, columns), or any number of rows and 1, of at most 32 warps, got [3, 2]}}
func.func private @f(tensor<128x64xf32, #attn.mma<warps = [3, 2]>>)

// -----

// expected-error @below {{expected copies to be a power of two beside powers of two of warps, of at most 32 warps, got 3 of [2, 1]}}
func.func private @f(tensor<128x64xf32, #attn.mma<warps = [2, 1], copies = 3>>)

// -----

// expected-error @below {{expected copies to be a power of two beside powers of two of warps, of at most 32 warps, got 16 of [4, 1]}}
func.func private @f(tensor<128x64xf32, #attn.mma<warps = [4, 1], copies = 16>>)

// -----

// expected-error @below {{expected column_runs with several warps along the columns, got 1}}
func.func private @f(tensor<128x64xf32, #attn.mma<warps = [4, 1], column_runs = true>>)

// -----

// expected-error @below {{expected column_runs or column_quads, got both}}
func.func private @f(tensor<64x64xf32, #attn.mma<warps = [4, 2], column_runs = true, column_quads = true>>)

// -----

// expected-error @below {{expected n to be a positive multiple of 16, got 24}}
func.func private @f(tensor<64x24xf32, #attn.mma<warps = [4, 1], column_quads = true>>)

// -----

// expected-error @below {{expected depth_quads of operand index 0, got 1}}
func.func private @f(tensor<64x64xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [4, 1]>, depth_quads = true>>)

// -----

// expected-error @below {{expected no elements of 8 bits with depth_quads}}
func.func private @f(tensor<64x64xf8E4M3FN, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>, depth_quads = true>>)

// -----

// expected-error @below {{expected runs of a power of two of columns, got 24}}
func.func private @f(tensor<64x48xf32, #attn.mma<warps = [4, 2], column_runs = true>>)

// -----

// expected-error @below {{expected no runs of columns in an operand B of mma.sync}}
func.func private @f(tensor<64x64xf16, #attn.operand<index = 1, parent = #attn.mma<warps = [4, 2], column_runs = true>>>)

// -----

// expected-error @below {{expected one copy, got 2}}
func.func private @f(tensor<128x64xf32, #attn.runs<parent = #attn.mma<warps = [4, 1], copies = 2>>>)

// -----

// expected-error @below {{expected no repetition along dim0, which 3 warps share, no power of two}}
func.func private @f(tensor<96x64xf32, #attn.mma<warps = [3, 1]>>)

// -----

// expected-error @below {{of at most 32 warps, got [33, 1]}}
func.func private @f(tensor<528x64xf32, #attn.mma<warps = [33, 1]>>)

// -----

// expected-error @below {{expected a tile of integers or floats, got 'index'}}
func.func private @f(tensor<128x64xindex, #attn.mma<warps = [4, 1]>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.mma, got rank 1}}
func.func private @f(tensor<128xf32, #attn.mma<warps = [4, 1]>>)

// -----

// expected-error @below {{to be a positive multiple of}}
func.func private @f(tensor<100x64xf32, #attn.mma<warps = [4, 1]>>)

// -----

// expected-error @below {{expected operand index 0 (A) or 1 (B), got 2}}
func.func private @f(tensor<128x64xf16, #attn.operand<index = 2, parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected the parent to be #attn.mma, got #attn.auto}}
func.func private @f(tensor<128x64xf16, #attn.operand<index = 0, parent = #attn.auto>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.operand, got rank 1}}
func.func private @f(tensor<128xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected the contraction extent to be a multiple of 8, got 60}}
func.func private @f(tensor<128x60xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected dim 0 or 1, got 2}}
func.func private @f(tensor<128xf32, #attn.slice<dim = 2, parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected the parent to be #attn.mma or #attn.tmem_regs, got #attn.auto}}
func.func private @f(tensor<128xf32, #attn.slice<dim = 1, parent = #attn.auto>>)

// -----

// expected-error @below {{expected a tile of rank 1 for #attn.slice, got rank 2}}
func.func private @f(tensor<128x64xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected the parent to be #attn.mma, #attn.tmem_regs or #attn.auto, got #attn.rows}}
func.func private @f(tensor<128x4xf32, #attn.partial<parent = #attn.rows>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.partial, got rank 1}}
func.func private @f(tensor<128xf32, #attn.partial<parent = #attn.auto>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.partial, got rank 1}}
func.func private @f(tensor<128xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected 4 columns, one for each owner of a row, got 8}}
func.func private @f(tensor<128x8xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected the rows to be a multiple of 64, got 96}}
func.func private @f(tensor<96x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected the parent to be #attn.mma, got #attn.auto}}
func.func private @f(tensor<128x64xf16, #attn.runs<parent = #attn.auto>>)

// -----

// expected-error @below {{expected one warp along the columns or column_runs}}
func.func private @f(tensor<128x64xf16, #attn.runs<parent = #attn.mma<warps = [2, 2]>>>)

// -----

// expected-error @below {{expected multiples of 64 x 64 for #attn.runs, got 64 x 32}}
func.func private @f(tensor<64x32xf16, #attn.runs<parent = #attn.mma<warps = [4, 2], column_runs = true>>>)

// -----

// expected-error @below {{expected a power of two of columns a warp, got 96}}
func.func private @f(tensor<64x192xf16, #attn.runs<parent = #attn.mma<warps = [4, 2], column_runs = true>>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.runs, got rank 1}}
func.func private @f(tensor<128xf16, #attn.runs<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected multiples of 64 x 32 for #attn.runs, got 128 x 48}}
func.func private @f(tensor<128x48xf16, #attn.runs<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected multiples of 64 x 16 for #attn.runs, got 96 x 48}}
func.func private @f(tensor<96x48xf32, #attn.runs<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected per_thread and order of one rank, got 1 and 2}}
func.func private @f(tensor<128x64xf32, #attn.blocked<per_thread = [8], warps = 4, order = [1, 0]>>)

// -----

// expected-error @below {{expected order to be a permutation of the dimensions}}
func.func private @f(tensor<128x64xf32, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 1]>>)

// -----

// expected-error @below {{expected powers of two for per_thread, got 3}}
func.func private @f(tensor<128x64xf32, #attn.blocked<per_thread = [1, 3], warps = 4, order = [1, 0]>>)

// -----

// expected-error @below {{expected a power of two up to 32 of warps, got 3}}
func.func private @f(tensor<128x64xf32, #attn.blocked<per_thread = [1, 8], warps = 3, order = [1, 0]>>)

// -----

// expected-error @below {{expected a tile of rank 2 for #attn.blocked, got rank 1}}
func.func private @f(tensor<128xf32, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>)

// -----

// expected-error @below {{expected a span of 0, 32, 64 or 128 bytes, got 16}}
func.func private @f(!attn.buffer<64x128xf16, #attn.swizzled<span = 16>, shared>)

// -----

// expected-error @below {{expected a span with column_quads, got 0}}
func.func private @f(!attn.buffer<64x128xf16, #attn.swizzled<span = 0, column_quads = true>, shared>)

// -----

// expected-error @below {{expected a swizzled buffer of 16-bit elements, got 8-bit}}
func.func private @f(!attn.buffer<64x128xf8E4M3FN, #attn.swizzled<span = 128, column_quads = true>, shared>)

// -----

// expected-error @below {{expected a buffer layout inside, got #attn.auto}}
func.func private @f(!attn.buffer<64x128xf16, #attn.transposed<#attn.auto>, shared>)

// -----

// Numbers that wrap, and grids that no CTA has.

// expected-error @below {{of at most 32 warps, got [2147483648, 1]}}
// expected-error @below {{failed to parse Attn_PartialLayoutAttr parameter}}
func.func private @f(tensor<128x4xf32, #attn.partial<parent = #attn.mma<warps = [2147483648, 1]>>>)

// -----

// expected-error @below {{of at most 32 warps, got [4294967296, 4294967296]}}
func.func private @f(tensor<128x64xf32, #attn.mma<warps = [4294967296, 4294967296]>>)

// -----

// expected-error @below {{of at most 32 warps, got [8, 8]}}
func.func private @f(tensor<128x64xf32, #attn.mma<warps = [8, 8]>>)

// -----

// expected-error @below {{of at most 32 warps, got [1, 4611686018427387904]}}
// expected-error @below {{failed to parse Attn_SliceLayoutAttr parameter}}
func.func private @f(tensor<128xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [1, 4611686018427387904]>>>)

// -----

// expected-error @below {{expected a power of two up to 32 of warps, got 4294967296}}
func.func private @f(tensor<128x64xf32, #attn.blocked<per_thread = [1, 8], warps = 4294967296, order = [1, 0]>>)

// -----

// expected-error @below {{expected elements of at most 128 bits, got 256}}
func.func private @f(tensor<128x64xi256, #attn.runs<parent = #attn.mma<warps = [4, 1]>>>)

// -----

// expected-error @below {{expected a layout inside that is not transposed itself, got #attn.transposed<#attn.rows>}}
func.func private @f(!attn.buffer<64x64xf16, #attn.transposed<#attn.transposed<#attn.rows>>, shared>)
