// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-lower-tiles,canonicalize,cse))' | FileCheck %s

#acc = #attn.mma<warps = [4, 1]>
#rows = #attn.slice<dim = 1, parent = #acc>

gpu.module @kernels {
  // What memory says of a key alone a warp asks for together: each lane asks for a key of
  // 32, and a thread's columns are bits of what all say. Of 64 keys a thread of mma.sync
  // has 16, in two words, whose bits it finds behind its own first column.
  // CHECK-LABEL: gpu.func @words(
  // CHECK-SAME: %{{[^:]*}}: f32, %{{[^:]*}}: !llvm.ptr<1>, %{{[^:]*}}: !llvm.ptr<1>, %[[ROW:[^:]*]]: i32, %[[COLUMN:[^:]*]]: i32, %[[END:[^:]*]]: i32
  gpu.func @words(%x: f32, %table: !llvm.ptr<1>, %out: !llvm.ptr<1>, %row: i32, %column: i32, %end: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x64xf32, #acc>
    // CHECK: %[[THREAD:.*]] = nvvm.read.ptx.sreg.tid.x
    // CHECK: %[[LANE:.*]] = arith.andi %[[THREAD]], %c31_i32
    // CHECK: %[[PLACE:.*]] = arith.andi %{{.*}}, %c31_i32
    // CHECK: %[[OWN:.*]] = arith.addi %[[COLUMN]], %[[LANE]]
    // CHECK: %[[KEY:.*]] = arith.addi %[[OWN]], %{{.*}}
    // CHECK: llvm.load
    // CHECK: %[[HIDDEN:.*]] = arith.cmpi sge, %{{.*}}, %[[END]]
    // CHECK: arith.addi %[[KEY]], %c32_i32
    // CHECK: llvm.load
    // CHECK: %[[SECOND:.*]] = arith.cmpi sge, %{{.*}}, %[[END]]
    // CHECK: %[[WORD:.*]] = nvvm.vote.sync ballot %{{.*}}, %[[HIDDEN]]
    // CHECK: %[[BITS:.*]] = arith.shrui %[[WORD]], %[[PLACE]] : i32
    // CHECK: %[[NEXT:.*]] = nvvm.vote.sync ballot %{{.*}}, %[[SECOND]]
    // CHECK: arith.shrui %[[NEXT]], %[[PLACE]] : i32
    // CHECK-NOT: llvm.load
    // CHECK: %[[BIT:.*]] = arith.andi %[[BITS]], %c1_i32
    // CHECK: %[[IS:.*]] = arith.cmpi ne, %[[BIT]], %c0_i32
    // CHECK: arith.select %[[IS]]
    // CHECK: arith.andi %[[BITS]], %c2_i32
    // CHECK: arith.andi %[[BITS]], %c256_i32
    %y = attn.map_elements %t[%row, %column] : tensor<64x64xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %wide = arith.extui %j : i32 to i64
      %address = llvm.getelementptr %table[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      %page = llvm.load %address : !llvm.ptr<1> -> i32
      %hidden = arith.cmpi sge, %page, %end : i32
      %least = arith.constant 0xFF800000 : f32
      %z = arith.select %hidden, %least, %e : f32
      attn.yield %z : f32
    }
    %most = attn.reduce max %y : tensor<64x64xf32, #acc> -> tensor<64xf32, #rows>
    %none = arith.constant 0 : i64
    %g = attn.global_view %out[%none] rows %end stride %none : !attn.global<?xf32>
    attn.global_store %most, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // A word has 32 keys: of 8 each thread asks for its own.
  // CHECK-LABEL: gpu.func @few(
  gpu.func @few(%x: f32, %table: !llvm.ptr<1>, %out: !llvm.ptr<1>, %row: i32, %column: i32, %end: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x8xf32, #acc>
    // CHECK-COUNT-2: llvm.load
    // CHECK-NOT: vote
    %y = attn.map_elements %t[%row, %column] : tensor<64x8xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %wide = arith.extui %j : i32 to i64
      %address = llvm.getelementptr %table[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      %page = llvm.load %address : !llvm.ptr<1> -> i32
      %hidden = arith.cmpi sge, %page, %end : i32
      %least = arith.constant 0xFF800000 : f32
      %z = arith.select %hidden, %least, %e : f32
      attn.yield %z : f32
    }
    %most = attn.reduce max %y : tensor<64x8xf32, #acc> -> tensor<64xf32, #rows>
    %none = arith.constant 0 : i64
    %g = attn.global_view %out[%none] rows %end stride %none : !attn.global<?xf32>
    attn.global_store %most, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // What depends on the query is no bit of a key.
  // CHECK-LABEL: gpu.func @queries(
  gpu.func @queries(%x: f32, %table: !llvm.ptr<1>, %out: !llvm.ptr<1>, %row: i32, %column: i32, %end: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x64xf32, #acc>
    // CHECK-NOT: vote
    // CHECK: gpu.return
    %y = attn.map_elements %t[%row, %column] : tensor<64x64xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %wide = arith.extui %i : i32 to i64
      %address = llvm.getelementptr %table[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      %page = llvm.load %address : !llvm.ptr<1> -> i32
      %hidden = arith.cmpi sge, %page, %end : i32
      %least = arith.constant 0xFF800000 : f32
      %z = arith.select %hidden, %least, %e : f32
      attn.yield %z : f32
    }
    %most = attn.reduce max %y : tensor<64x64xf32, #acc> -> tensor<64xf32, #rows>
    %none = arith.constant 0 : i64
    %g = attn.global_view %out[%none] rows %end stride %none : !attn.global<?xf32>
    attn.global_store %most, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }

  // A warp saves nothing where each element needs what was read.
  // CHECK-LABEL: gpu.func @values(
  gpu.func @values(%x: f32, %table: !llvm.ptr<1>, %out: !llvm.ptr<1>, %row: i32, %column: i32, %end: i32) kernel attributes {attn.warps = array<i64: 4, 1>} {
    %t = tensor.splat %x : tensor<64x64xf32, #acc>
    // CHECK-COUNT-16: llvm.load
    // CHECK-NOT: vote
    %y = attn.map_elements %t[%row, %column] : tensor<64x64xf32, #acc> {
    ^bb0(%e: f32, %i: i32, %j: i32):
      %wide = arith.extui %j : i32 to i64
      %address = llvm.getelementptr %table[%wide] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
      %page = llvm.load %address : !llvm.ptr<1> -> i32
      %hidden = arith.cmpi sge, %page, %end : i32
      %least = arith.constant 0xFF800000 : f32
      %number = arith.sitofp %page : i32 to f32
      %z = arith.select %hidden, %least, %number : f32
      attn.yield %z : f32
    }
    %most = attn.reduce max %y : tensor<64x64xf32, #acc> -> tensor<64xf32, #rows>
    %none = arith.constant 0 : i64
    %g = attn.global_view %out[%none] rows %end stride %none : !attn.global<?xf32>
    attn.global_store %most, %g[%row] : tensor<64xf32, #rows>, !attn.global<?xf32>
    gpu.return
  }
}
