// RUN: attn-opt %s -split-input-file -verify-diagnostics

// What the buffer and global view types refuse.

// expected-error @below {{expected the memory space shared or tmem, got global}}
func.func private @f(!attn.buffer<64x128xf16, #attn.auto, global>)

// -----

// expected-error @below {{expected a buffer of rank 1, 2 or 3, got rank 4}}
func.func private @f(!attn.buffer<2x2x64x128xf16, #attn.auto, shared>)

// -----

// expected-error @below {{expected positive extents, got 0}}
func.func private @f(!attn.buffer<0x128xf16, #attn.auto, shared>)

// -----

// expected-error @below {{expected elements of whole bytes up to 16, got 'i1'}}
func.func private @f(!attn.buffer<64x128xi1, #attn.auto, shared>)

// -----

// expected-error @below {{expected a buffer layout or #attn.auto, got #attn.mma<warps = [4, 1]>}}
func.func private @f(!attn.buffer<64x128xf16, #attn.mma<warps = [4, 1]>, shared>)

// -----

// expected-error @below {{expected a slot of rank 2 for #attn.swizzled, got rank 1}}
func.func private @f(!attn.buffer<128xf16, #attn.swizzled<span = 128>, shared>)

// -----

// expected-error @below {{expected a slot of rank 2 for #attn.transposed, got rank 1}}
func.func private @f(!attn.buffer<128xf16, #attn.transposed<#attn.rows>, shared>)

// -----

// expected-error @below {{expected rows of a multiple of}}
func.func private @f(!attn.buffer<64x40xf16, #attn.swizzled<span = 128>, shared>)

// -----

// expected-error @below {{expected a view of rank 1 or 2, got rank 3}}
func.func private @f(!attn.global<?x2x128xf16>)

// -----

// expected-error @below {{expected ? as the number of rows, got 64}}
func.func private @f(!attn.global<64x128xf16>)

// -----

// expected-error @below {{expected a positive number of columns}}
func.func private @f(!attn.global<?x?xf16>)

// -----

// expected-error @below {{expected elements of whole bytes, got 'i4'}}
func.func private @f(!attn.global<?x128xi4>)

// -----

// expected-error @below {{expected 1 to 32768 barriers, got 0}}
func.func private @barriers(!attn.mbarriers<0>)

// -----

// expected-error @below {{expected 1 to 256 slots, got 300}}
func.func private @slots(!attn.channel<300>)

// -----

// expected-error @below {{expected a box of rank 2 to 5, got rank 1}}
func.func private @box_rank(!attn.tensor_map<64xf16, swizzle = 128>)

// -----

// expected-error @below {{expected extents from 1 to 256, got 512}}
func.func private @box_extent(!attn.tensor_map<512x64xf16, swizzle = 128>)

// -----

// expected-error @below {{expected elements of whole bytes, got 'i4'}}
func.func private @box_element(!attn.tensor_map<64x64xi4, swizzle = 128>)

// -----

// expected-error @below {{expected a swizzle of 0, 32, 64 or 128 bytes, got 16}}
func.func private @box_swizzle(!attn.tensor_map<64x64xf16, swizzle = 16>)

// -----

// expected-error @below {{expected rows of whole 16 bytes, not longer than the swizzle, got 256 bytes}}
func.func private @box_row(!attn.tensor_map<64x128xf16, swizzle = 128>)

// -----

// expected-error @below {{expected an accumulator of rank 2, got rank 1}}
func.func private @inflight_rank(!attn.inflight<64xf32>)

// -----

// expected-error @below {{expected f32 elements, got 'f16'}}
func.func private @inflight_element(!attn.inflight<64x64xf16>)

// -----

// expected-error @below {{expected elements of whole bytes up to 16, got 'i256'}}
func.func private @wide(!attn.buffer<64x128xi256, #attn.auto, shared>)

// -----

// expected-error @below {{expected a buffer of at most 16777216 bytes, got 549755813888}}
func.func private @large(!attn.buffer<128x2147483648xf16, #attn.auto, shared>)

// -----

// expected-error @below {{expected a buffer of at most 16777216 bytes, got 18446744073709551615}}
func.func private @slots(!attn.buffer<4611686018427387904x64x64xf16, #attn.rows, shared>)
