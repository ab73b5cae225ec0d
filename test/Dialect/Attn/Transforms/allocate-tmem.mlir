// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-tmem))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-tmem{print-map=true}))' -o /dev/null 2>&1 | FileCheck %s --check-prefix=MAP
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-allocate-tmem))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

#regs = #attn.tmem_regs<shape_32x32b, warps = [4, 1]>
!b = !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
!narrow = !attn.buffer<128x24xf32, #attn.tmem<m = 128>, tmem>
!f = !attn.inflight<128x128xf32, #regs>
!t = tensor<128x128xf32, #regs>

gpu.module @kernels [#attn.target<chip = "sm_100a">] {
  // The widest first. All are live in the partitions.
  // REMARK: Function=partitions {{.*}}at-peak="small 24 + s 128 = 152", columns=152, limit=512, reserved=256
  // MAP: remark: tensor memory, 152 columns, 256 reserved
  // MAP-NEXT: {{^ +0 +128  s$}}
  // MAP-NEXT: {{^ +128 +24  small$}}
  // CHECK-LABEL: gpu.func @partitions
  // CHECK: attn.tmem.reserve %{{.*}} {columns = 256 : i64}
  // CHECK: attn.tmem_alloc {column = 128 : i64, name = "small"}
  // CHECK: attn.tmem_alloc {column = 0 : i64, name = "s"}
  // CHECK: attn.tmem.dealloc %{{.*}} {columns = 256 : i64}
  // CHECK-NEXT: gpu.return
  gpu.func @partitions() kernel attributes {known_block_size = array<i32: 256, 1, 1>} {
    %small = attn.tmem_alloc {name = "small"} : !narrow
    %s = attn.tmem_alloc {name = "s"} : !b
    attn.warp_specialize
    partition "a" warps 4 tiles [4, 1] registers 128 {
      %f = attn.tmem.load %s : !b -> !f
      %t = attn.tmem.wait %f : !f -> !t
    }
    partition "b" warps 4 tiles [4, 1] registers 128 {
      %z = arith.constant dense<0.0> : tensor<128x24xf32, #regs>
      attn.tmem.store %z, %small : tensor<128x24xf32, #regs>, !narrow
    }
    gpu.return
  }

  // A barrier stands between the last access of the one and the first of the
  // other: the same columns.
  // CHECK-LABEL: gpu.func @in_turn
  // CHECK: attn.tmem.reserve %{{.*}} {columns = 128 : i64}
  // CHECK: attn.tmem_alloc {column = 0 : i64, name = "a"}
  // CHECK: attn.tmem_alloc {column = 0 : i64, name = "b"}
  gpu.func @in_turn(%x: !t) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.tmem_alloc {name = "a"} : !b
    %b = attn.tmem_alloc {name = "b"} : !b
    attn.tmem.store %x, %a : !t, !b
    attn.tmem.store_wait
    %f = attn.tmem.load %a : !b -> !f
    %t = attn.tmem.wait %f : !f -> !t
    gpu.barrier
    attn.tmem.store %t, %b : !t, !b
    gpu.return
  }

  // No barrier, or one in a loop.
  // CHECK-LABEL: gpu.func @at_once
  // CHECK: attn.tmem_alloc {column = 0 : i64, name = "a"}
  // CHECK: attn.tmem_alloc {column = 128 : i64, name = "b"}
  gpu.func @at_once(%x: !t, %n: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = attn.tmem_alloc {name = "a"} : !b
    %b = attn.tmem_alloc {name = "b"} : !b
    scf.for %i = %zero to %n step %one : i32 {
      attn.tmem.store %x, %a : !t, !b
      gpu.barrier
    }
    attn.tmem.store %x, %b : !t, !b
    gpu.return
  }

  // Nobody knows here when a product ends. Columns that are given stay.
  // CHECK-LABEL: gpu.func @product
  // CHECK: attn.tmem.reserve %{{.*}} {columns = 512 : i64}
  // CHECK: attn.tmem_alloc {column = 256 : i64, name = "d"}
  // CHECK: attn.tmem_alloc {column = 0 : i64, name = "b"}
  gpu.func @product(%x: !t, %yes: i1) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %a = attn.alloc : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>
    %v = attn.alloc : !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>
    %d = attn.tmem_alloc {column = 256 : i64, name = "d"} : !b
    %b = attn.tmem_alloc {name = "b"} : !b
    attn.elect {
      attn.tcgen05.mma %a, %v, %d accumulate %yes : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x128xf16, #attn.swizzled<span = 128>, shared>, !b
    }
    gpu.barrier
    attn.tmem.store %x, %b : !t, !b
    gpu.return
  }

  // Nothing happens without tensor memory.
  // CHECK-LABEL: gpu.func @without
  // CHECK-NEXT: gpu.return
  gpu.func @without() kernel {
    gpu.return
  }
}
