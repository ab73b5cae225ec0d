// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-check-channels,attn-lower-channels))' | FileCheck %s
// RUN: attn-opt %s --split-input-file --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-check-channels,attn-lower-channels))' --remarks-filter='attn.lower-channels' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// A channel of which nobody acquires a slot gets no mbarriers. One whose roles are never reached is a
// channel like any other, and so is one with many roles.

// REMARK: [Passed] unused {{.*}}Function=nobody | Remark="nobody acquires a slot of channel 'x', which gets no mbarriers"
// CHECK-LABEL: gpu.func @nobody
// CHECK-NOT: mbarrier
// CHECK-NOT: gpu.barrier
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @nobody() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
    }
    partition "p" warps 4 registers 24 {
    }
    gpu.return
  }
}

// -----

// REMARK: [Passed] unused {{.*}}Function=starts_only
// CHECK-LABEL: gpu.func @starts_only
// CHECK-NOT: mbarrier
// CHECK: gpu.return
gpu.module @kernels {
  gpu.func @starts_only() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
    }
    partition "p" warps 4 registers 24 {
      %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
    }
    gpu.return
  }
}

// -----

// REMARK: [Passed] channel {{.*}}Function=zero_trips {{.*}}counts="p 4, c 4"
// CHECK-LABEL: gpu.func @zero_trips
// CHECK: attn.mbarrier.init
gpu.module @kernels {
  gpu.func @zero_trips() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      scf.for %j = %c0 to %c0 step %c1 : i32 {
        %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
        %ic, %tc = attn.channel.acquire %ch[%sc] as "c" : !attn.channel<1>
        attn.channel.release %ch, %tc as "c" : !attn.channel<1>
      }
    }
    partition "p" warps 4 registers 24 {
      scf.for %j = %c0 to %c0 step %c1 : i32 {
        %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
        %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
        attn.channel.release %ch, %tp as "p" : !attn.channel<1>
      }
    }
    gpu.return
  }
}

// -----

// REMARK: [Passed] channel {{.*}}Function=unreachable {{.*}}counts="p 4, c 4"
gpu.module @kernels {
  gpu.func @unreachable() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"p", arrive>, #attn.role<"c", arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
      scf.if %false {
        %sc = attn.cursor.start %ch as "c" : !attn.channel<1>
        %ic, %tc = attn.channel.acquire %ch[%sc] as "c" : !attn.channel<1>
        attn.channel.release %ch, %tc as "c" : !attn.channel<1>
      }
    }
    partition "p" warps 4 registers 24 {
      scf.if %false {
        %sp = attn.cursor.start %ch as "p" : !attn.channel<1>
        %ip, %tp = attn.channel.acquire %ch[%sp] as "p" : !attn.channel<1>
        attn.channel.release %ch, %tp as "p" : !attn.channel<1>
      }
    }
    gpu.return
  }
}

// -----

// REMARK: [Passed] channel {{.*}}barriers=20,
gpu.module @kernels {
  gpu.func @roles20_used() kernel {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %false = arith.constant false
    %ch = attn.channel.create {name = "x", roles = [#attn.role<"r0" in ["p"], arrive>, #attn.role<"r1" in ["p"], arrive>, #attn.role<"r2" in ["p"], arrive>, #attn.role<"r3" in ["p"], arrive>, #attn.role<"r4" in ["p"], arrive>, #attn.role<"r5" in ["p"], arrive>, #attn.role<"r6" in ["p"], arrive>, #attn.role<"r7" in ["p"], arrive>, #attn.role<"r8" in ["p"], arrive>, #attn.role<"r9" in ["p"], arrive>, #attn.role<"r10" in ["p"], arrive>, #attn.role<"r11" in ["p"], arrive>, #attn.role<"r12" in ["p"], arrive>, #attn.role<"r13" in ["p"], arrive>, #attn.role<"r14" in ["p"], arrive>, #attn.role<"r15" in ["p"], arrive>, #attn.role<"r16" in ["p"], arrive>, #attn.role<"r17" in ["p"], arrive>, #attn.role<"r18" in ["p"], arrive>, #attn.role<"r19" in ["p"], arrive>]} : !attn.channel<1>
    attn.warp_specialize
    partition "c" warps 4 registers 240 {
    }
    partition "p" warps 4 registers 24 {
      %sr0 = attn.cursor.start %ch as "r0" : !attn.channel<1>
      %ir0, %tr0 = attn.channel.acquire %ch[%sr0] as "r0" : !attn.channel<1>
      attn.channel.release %ch, %tr0 as "r0" : !attn.channel<1>
      %sr1 = attn.cursor.start %ch as "r1" : !attn.channel<1>
      %ir1, %tr1 = attn.channel.acquire %ch[%sr1] as "r1" : !attn.channel<1>
      attn.channel.release %ch, %tr1 as "r1" : !attn.channel<1>
      %sr2 = attn.cursor.start %ch as "r2" : !attn.channel<1>
      %ir2, %tr2 = attn.channel.acquire %ch[%sr2] as "r2" : !attn.channel<1>
      attn.channel.release %ch, %tr2 as "r2" : !attn.channel<1>
      %sr3 = attn.cursor.start %ch as "r3" : !attn.channel<1>
      %ir3, %tr3 = attn.channel.acquire %ch[%sr3] as "r3" : !attn.channel<1>
      attn.channel.release %ch, %tr3 as "r3" : !attn.channel<1>
      %sr4 = attn.cursor.start %ch as "r4" : !attn.channel<1>
      %ir4, %tr4 = attn.channel.acquire %ch[%sr4] as "r4" : !attn.channel<1>
      attn.channel.release %ch, %tr4 as "r4" : !attn.channel<1>
      %sr5 = attn.cursor.start %ch as "r5" : !attn.channel<1>
      %ir5, %tr5 = attn.channel.acquire %ch[%sr5] as "r5" : !attn.channel<1>
      attn.channel.release %ch, %tr5 as "r5" : !attn.channel<1>
      %sr6 = attn.cursor.start %ch as "r6" : !attn.channel<1>
      %ir6, %tr6 = attn.channel.acquire %ch[%sr6] as "r6" : !attn.channel<1>
      attn.channel.release %ch, %tr6 as "r6" : !attn.channel<1>
      %sr7 = attn.cursor.start %ch as "r7" : !attn.channel<1>
      %ir7, %tr7 = attn.channel.acquire %ch[%sr7] as "r7" : !attn.channel<1>
      attn.channel.release %ch, %tr7 as "r7" : !attn.channel<1>
      %sr8 = attn.cursor.start %ch as "r8" : !attn.channel<1>
      %ir8, %tr8 = attn.channel.acquire %ch[%sr8] as "r8" : !attn.channel<1>
      attn.channel.release %ch, %tr8 as "r8" : !attn.channel<1>
      %sr9 = attn.cursor.start %ch as "r9" : !attn.channel<1>
      %ir9, %tr9 = attn.channel.acquire %ch[%sr9] as "r9" : !attn.channel<1>
      attn.channel.release %ch, %tr9 as "r9" : !attn.channel<1>
      %sr10 = attn.cursor.start %ch as "r10" : !attn.channel<1>
      %ir10, %tr10 = attn.channel.acquire %ch[%sr10] as "r10" : !attn.channel<1>
      attn.channel.release %ch, %tr10 as "r10" : !attn.channel<1>
      %sr11 = attn.cursor.start %ch as "r11" : !attn.channel<1>
      %ir11, %tr11 = attn.channel.acquire %ch[%sr11] as "r11" : !attn.channel<1>
      attn.channel.release %ch, %tr11 as "r11" : !attn.channel<1>
      %sr12 = attn.cursor.start %ch as "r12" : !attn.channel<1>
      %ir12, %tr12 = attn.channel.acquire %ch[%sr12] as "r12" : !attn.channel<1>
      attn.channel.release %ch, %tr12 as "r12" : !attn.channel<1>
      %sr13 = attn.cursor.start %ch as "r13" : !attn.channel<1>
      %ir13, %tr13 = attn.channel.acquire %ch[%sr13] as "r13" : !attn.channel<1>
      attn.channel.release %ch, %tr13 as "r13" : !attn.channel<1>
      %sr14 = attn.cursor.start %ch as "r14" : !attn.channel<1>
      %ir14, %tr14 = attn.channel.acquire %ch[%sr14] as "r14" : !attn.channel<1>
      attn.channel.release %ch, %tr14 as "r14" : !attn.channel<1>
      %sr15 = attn.cursor.start %ch as "r15" : !attn.channel<1>
      %ir15, %tr15 = attn.channel.acquire %ch[%sr15] as "r15" : !attn.channel<1>
      attn.channel.release %ch, %tr15 as "r15" : !attn.channel<1>
      %sr16 = attn.cursor.start %ch as "r16" : !attn.channel<1>
      %ir16, %tr16 = attn.channel.acquire %ch[%sr16] as "r16" : !attn.channel<1>
      attn.channel.release %ch, %tr16 as "r16" : !attn.channel<1>
      %sr17 = attn.cursor.start %ch as "r17" : !attn.channel<1>
      %ir17, %tr17 = attn.channel.acquire %ch[%sr17] as "r17" : !attn.channel<1>
      attn.channel.release %ch, %tr17 as "r17" : !attn.channel<1>
      %sr18 = attn.cursor.start %ch as "r18" : !attn.channel<1>
      %ir18, %tr18 = attn.channel.acquire %ch[%sr18] as "r18" : !attn.channel<1>
      attn.channel.release %ch, %tr18 as "r18" : !attn.channel<1>
      %sr19 = attn.cursor.start %ch as "r19" : !attn.channel<1>
      %ir19, %tr19 = attn.channel.acquire %ch[%sr19] as "r19" : !attn.channel<1>
      attn.channel.release %ch, %tr19 as "r19" : !attn.channel<1>
    }
    gpu.return
  }
}
