// RUN: attn-test-opt %s --pass-pipeline='builtin.module(gpu.module(attn-insert-fences))' -split-input-file -verify-diagnostics

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @not_awaited(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    // expected-note @below {{it starts here; a test_attn.async_wait has to cover its group}}
    test_attn.async_read %a : !b
    test_attn.async_commit
    test_attn.async_wait 1
    // expected-error @below {{write of buffer 'a', which a test_attn.async_read still reads}}
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }
}

// -----

// A wait for another engine's groups does not count.

!tile = tensor<64x64xf16, #attn.mma<warps = [4, 1]>>
!b = !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>
gpu.module @kernels {
  gpu.func @other_engine(%t: !tile) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc {name = "a", offset = 0 : i64} : !b
    // expected-note @below {{it starts here; a test_attn.async_wait has to cover its group}}
    test_attn.async_read %a : !b
    attn.tma.wait {pending = 0}
    // expected-error @below {{write of buffer 'a', which a test_attn.async_read still reads}}
    attn.local_store %t, %a : !tile, !b
    gpu.return
  }
}
