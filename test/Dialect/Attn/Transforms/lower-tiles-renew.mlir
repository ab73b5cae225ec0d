// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles))' | FileCheck %s

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #regs>
#partial = #attn.partial<parent = #regs>

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // Of each tile of a partition, what only its results need of the thread is
  // computed behind the last loop on tiles, from an index that is read again and
  // passed through a shuffle. Behind the loop over tiles, and in the other
  // partition, the first one is used. Each partition takes the address of shared
  // memory, and computes what it needs of the thread, where it begins.
  // CHECK-LABEL: gpu.func @partitions
  // CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
  // CHECK: cf.cond_br
  // CHECK: %[[SHARED:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, attn_shared;", "=r"
  // CHECK: %[[OWN:.*]] = llvm.inttoptr %[[SHARED]]
  // CHECK: %[[BEHIND:.*]] = llvm.getelementptr %[[OWN]][512]
  // CHECK: arith.andi %[[THREAD]]
  // CHECK: %[[XOR:.*]] = arith.xori
  // CHECK: %[[OFFSET:.*]] = arith.addi %[[XOR]]
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: scf.yield
  // CHECK: %[[AGAIN:.*]] = llvm.inline_asm has_side_effects "mov.u32 $0, %tid.x;", "=r"
  // CHECK: %[[LANE:.*]] = arith.andi %[[AGAIN]], %c31_i32
  // CHECK: %[[INDEX:.*]] = nvvm.shfl.sync{{ +}}idx %{{.*}}, %[[AGAIN]], %[[LANE]]
  // CHECK: arith.andi %[[INDEX]], %c31_i32
  // CHECK: %[[NEWXOR:.*]] = arith.xori
  // CHECK: %[[NEW:.*]] = arith.addi %[[NEWXOR]]
  // CHECK: llvm.getelementptr %[[BEHIND]][%[[NEW]]]
  // CHECK: "st.shared.b32 [$0], $1;"
  // CHECK: llvm.getelementptr %[[BEHIND]][%[[OFFSET]]]
  // CHECK: "mov.u32 $0, attn_shared;"
  gpu.func @partitions(%x: f32, %n: i32) kernel attributes {attn.renew_entry, nvvm.minctasm = 1 : i32, known_block_size = array<i32: 256, 1, 1>} {
    %b = attn.alloc {offset = 512 : i64} : !attn.buffer<128xf32, #attn.rows, shared>
    attn.warp_specialize
    partition "softmax" warps 4 tiles [4, 1] registers 240 {
      %zero = arith.constant 0 : i32
      %one = arith.constant 1 : i32
      scf.for %tile = %zero to %n step %one : i32 {
        %l0 = arith.constant dense<0.0> : tensor<128x1xf32, #partial>
        %t = tensor.splat %x : tensor<128x16xf32, #regs>
        %l = scf.for %i = %zero to %n step %one iter_args(%l1 = %l0) -> (tensor<128x1xf32, #partial>) : i32 {
          %s = attn.reduce add %t partial : tensor<128x16xf32, #regs> -> tensor<128x1xf32, #partial>
          %l2 = arith.addf %l1, %s : tensor<128x1xf32, #partial>
          scf.yield %l2 : tensor<128x1xf32, #partial>
        }
        %sum = attn.reduce add %l : tensor<128x1xf32, #partial> -> tensor<128xf32, #rows>
        attn.local_store %sum, %b : tensor<128xf32, #rows>, !attn.buffer<128xf32, #attn.rows, shared>
      }
      %last = tensor.splat %x : tensor<128xf32, #rows>
      attn.local_store %last, %b : tensor<128xf32, #rows>, !attn.buffer<128xf32, #attn.rows, shared>
    }
    partition "other" warps 4 registers 24 {
    }
    gpu.return
  }
}
