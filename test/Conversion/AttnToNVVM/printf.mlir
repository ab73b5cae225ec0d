// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(convert-attn-to-nvvm))' | FileCheck %s

// The list of arguments is taken once for each thread, not in each iteration.
// Numbers are promoted as C promotes them, and formats are shared.

// CHECK-LABEL: gpu.module @kernels
// CHECK-DAG:     llvm.mlir.global internal constant @[[FIRST:attn_format_0]]("%d %d %f\0A\00") {addr_space = 1 : i32}
// CHECK-DAG:     llvm.mlir.global internal constant @[[SECOND:attn_format_1]]("no arguments\0A\00") {addr_space = 1 : i32}
// CHECK-DAG:     llvm.func @vprintf(!llvm.ptr, !llvm.ptr) -> i32
// CHECK:         llvm.func @print
// CHECK-COUNT-2:   llvm.alloca %{{.*}} x !llvm.struct<(i32, i32, f64)>
// CHECK:           llvm.br
// CHECK-DAG:       llvm.zext %{{.*}} : i1 to i32
// CHECK-DAG:       llvm.sext %{{.*}} : i8 to i32
// CHECK-DAG:       llvm.fpext %{{.*}} : f16 to f64
// CHECK:           %[[ADDRESS:.*]] = llvm.mlir.addressof @[[FIRST]]
// CHECK:           %[[FORMAT:.*]] = llvm.addrspacecast %[[ADDRESS]]
// CHECK:           llvm.getelementptr %[[LIST:.*]][0, 0]
// CHECK-COUNT-3:   llvm.store
// CHECK:           llvm.call @vprintf(%[[FORMAT]], %[[LIST]])
// CHECK:           llvm.mlir.addressof @[[FIRST]]
// CHECK:           llvm.store %{{.*}} : f64
// CHECK:           llvm.mlir.addressof @[[SECOND]]
// CHECK:           %[[NONE:.*]] = llvm.mlir.zero : !llvm.ptr
// CHECK:           llvm.call @vprintf(%{{.*}}, %[[NONE]])
// CHECK-NOT:       llvm.alloca
gpu.module @kernels {
  gpu.func @print(%n: i32, %a: i1, %b: i8, %c: f16, %d: f64) kernel {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      gpu.printf "%d %d %f\n", %a, %b, %c : i1, i8, f16
      gpu.printf "%d %d %f\n", %i, %i, %d : i32, i32, f64
      gpu.printf "no arguments\n"
    }
    gpu.return
  }
}
