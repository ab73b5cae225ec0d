// RUN: attn-opt %s -attn-plan=chip=sm_80 | FileCheck %s
// RUN: attn-opt %s -attn-plan=chip=sm_86 | FileCheck %s --check-prefix=SM86
// RUN: attn-opt %s -attn-plan=chip=sm_80 --remarks-filter='attn.plan' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK
// RUN: attn-opt %s -attn-plan="chip=sm_80 set=block_m=64,stages=1,order=row_major" | FileCheck %s --check-prefix=SET
// RUN: attn-opt %s -attn-plan="chip=sm_80 set=softmax=exact,q_in_regs=false,epilogue=direct,warps=4,block_n=32" | FileCheck %s --check-prefix=SET2
// RUN: attn-opt %s -attn-plan="schedule=split_q print-all=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=PRINT
// RUN: attn-opt %s -attn-plan="schedule=split_q print=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=TABLE

// RUN: attn-opt %s -attn-plan="chip=sm_80 set=spills=allow,block_n=64,parts=2,order=longest_first,group_heads=2" | FileCheck %s --check-prefix=PARTS

// PARTS-LABEL: func.func @long
// PARTS: plan = #attn.split_q<{{.*}}parts = 2, {{.*}}group_heads = 2>
// The sums of shared memory and registers stand in the remark, and what a
// block's clocks are spent on.
// CHECK-LABEL: func.func @long
// CHECK: plan = #attn.split_q<{{.*}}softmax = optimistic, order = longest_first, group_heads = 8>
// SM86-LABEL: func.func @long
// SM86: plan = #attn.split_q<
// REMARK: plan | Category:attn.plan {{.*}}plan for sm_80: #attn.split_q<{{[^>]*}}>: {{[0-9.]+}} us ({{[0-9.]+}} waves of {{[0-9]+}} CTAs an SM; {{.*}}limit {{(tensor|exp|issue|shared)}}), shared memory {{[0-9]+}} ({{.*}}k {{.*}} + v {{.*}}), registers {{[0-9]+}} (o {{.*}} + s {{.*}} + row values {{.*}} + other {{.*}})"
// SET-LABEL: func.func @long
// SET: plan = #attn.split_q<block_m = 64, {{.*}}stages = 1
// SET2-LABEL: func.func @long
// SET2: plan = #attn.split_q<{{.*}}block_n = 32, {{.*}}q_in_regs = false, {{.*}}epilogue = direct>
// PRINT: remark: {{[0-9]+}} plans for sm_80, fastest first
// PRINT: note: #attn.split_q<
// PRINT: expected to spill
// TABLE: remark: {{[0-9]+}} plans for sm_80, the fastest 10
// TABLE-NEXT: us waves CTAs/SM clocks/block limit shared registers
// TABLE-COUNT-10: #attn.split_q<
// TABLE-NOT: #attn.split_q<
// TABLE: remark:
func.func @long(%q: memref<4x16x4096x128xf16>, %k: memref<4x16x4096x128xf16>, %v: memref<4x16x4096x128xf16>, %o: memref<4x16x4096x128xf16>) {
  attn.attention ins(%q, %k, %v : memref<4x16x4096x128xf16>, memref<4x16x4096x128xf16>, memref<4x16x4096x128xf16>)
                 outs(%o : memref<4x16x4096x128xf16>) {mask = #attn.mask<kind = causal>}
  return
}

// One query: one warp of 16 rows wastes least.
// CHECK-LABEL: func.func @one_query
// CHECK: plan = #attn.split_q<block_m = 16, {{.*}}warps = 1
func.func @one_query(%q: memref<1x8x1x64xf16>, %k: memref<1x8x300x64xf16>, %v: memref<1x8x300x64xf16>, %o: memref<1x8x1x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x1x64xf16>, memref<1x8x300x64xf16>, memref<1x8x300x64xf16>)
                 outs(%o : memref<1x8x1x64xf16>)
  return
}

// A plan that is already there stays, and the options apply to it.
// CHECK-LABEL: func.func @planned
// CHECK: plan = #attn.split_q<block_n = 32, stages = 1>
// SET-LABEL: func.func @planned
// SET: plan = #attn.split_q<block_m = 64, block_n = 32, stages = 1>
func.func @planned(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.split_q<block_n = 32, stages = 1>}
  return
}
