// RUN: not attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-check-channels))' 2>&1 | FileCheck %s

// The producer leaves out the first block.
// CHECK: error: balance: expected roles to acquire equal numbers of slots of channel 'go' per tile, got (%arg0 - 1) as role 'producer' in partition 'producer' and %arg0 as role 'consumer' in partition 'consumer': 0 and 1, where %arg0 is 1
// CHECK: note: the other role acquires here

gpu.module @kernels {
  gpu.func @signals(%n: i32) kernel
      attributes {known_block_size = array<i32: 256, 1, 1>} {
    %go = attn.channel.create {name = "go", roles = [#attn.role<"producer", arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    attn.warp_specialize
    partition "consumer" warps 4 registers 160 {
      %c = attn.cursor.start %go as "consumer" : !attn.channel<2>
      %r = scf.for %i = %zero to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %go[%at] as "consumer" : !attn.channel<2>
        attn.channel.release %go, %token as "consumer" : !attn.channel<2>
        %next = attn.cursor.advance %at on %go : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
    }
    partition "producer" warps 4 registers 160 {
      %c = attn.cursor.start %go as "producer" : !attn.channel<2>
      %r = scf.for %i = %one to %n step %one iter_args(%at = %c) -> (!attn.cursor) : i32 {
        %index, %token = attn.channel.acquire %go[%at] as "producer" : !attn.channel<2>
        attn.channel.release %go, %token as "producer" : !attn.channel<2>
        %next = attn.cursor.advance %at on %go : !attn.channel<2>
        scf.yield %next : !attn.cursor
      }
    }
    gpu.return
  }
}
