// RUN: not attn-opt %s -attn-plan=chip=sm_20 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: not attn-opt %s -attn-plan=schedule=fast 2>&1 | FileCheck %s --check-prefix=SCHEDULE
// RUN: not attn-opt %s -attn-plan=set=block_m 2>&1 | FileCheck %s --check-prefix=FORM
// RUN: not attn-opt %s -attn-plan=set=blocks=3 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not attn-opt %s -attn-plan=set=warps=many 2>&1 | FileCheck %s --check-prefix=INTEGER
// RUN: not attn-opt %s -attn-plan=set=q_in_regs=1 2>&1 | FileCheck %s --check-prefix=BOOL
// RUN: not attn-opt %s -attn-plan=set=order=random 2>&1 | FileCheck %s --check-prefix=ENUM
// RUN: not attn-opt %s -attn-plan=set=block_m=100 2>&1 | FileCheck %s --check-prefix=VERIFY
// RUN: not attn-opt %s -attn-plan="set=order=longest_first,group_heads=3" 2>&1 | FileCheck %s --check-prefix=GROUP
// RUN: not attn-opt %s -attn-plan="set=order=longest_first,group=2" 2>&1 | FileCheck %s --check-prefix=RENAMED
// RUN: not attn-opt %s -attn-plan="set=block_m=512,block_n=512,q_in_regs=false" 2>&1 | FileCheck %s --check-prefix=SUM
// RUN: not attn-opt %s -attn-expand 2>&1 | FileCheck %s --check-prefix=NOPLAN
// RUN: not attn-opt %s -attn-expand=chip=sm_20 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: {{.*}}sm_20
// SCHEDULE: error: 'attn.attention' op unknown schedule 'fast', expected one of split_q
// FORM: error: expected parameters of the form name=value, got 'block_m'
// NAME: error: 'attn.attention' op has no such plan of schedule 'split_q': unknown parameter 'blocks' of schedule 'split_q', expected one of block_m, block_n, warps, stages, q_in_regs, parts, softmax, order, group_heads, epilogue
// INTEGER: error: 'attn.attention' op has no such plan of schedule 'split_q': expected warps to be an integer, got 'many'
// BOOL: error: 'attn.attention' op has no such plan of schedule 'split_q': expected q_in_regs to be true or false, got '1'
// ENUM: error: 'attn.attention' op has no such plan of schedule 'split_q': expected order to be one of row_major, longest_first, got 'random'
// VERIFY: error: 'attn.attention' op has no such plan of schedule 'split_q': expected block_m to be a multiple of 16 * warps
// GROUP: error: 'attn.attention' op has no legal plan on sm_80: #attn.split_q<{{.*}}>: expected group_heads to divide the number of heads, 8, got 3
// RENAMED: error: 'attn.attention' op has no such plan of schedule 'split_q': parameter 'group' of schedule 'split_q' is called 'group_heads' now
// SUM: error: 'attn.attention' op has no legal plan on sm_80: #attn.split_q<{{.*}}>: does not fit: shared memory {{[0-9]+}} (q 65536 + k {{.*}}65536 + v {{.*}}65536) exceeds 166912 on sm_80
// NOPLAN: error: 'attn.attention' op expected a plan: run attn-plan first
func.func @problem(%q: memref<1x8x256x64xf16>, %k: memref<1x8x256x64xf16>, %v: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>)
  return
}
