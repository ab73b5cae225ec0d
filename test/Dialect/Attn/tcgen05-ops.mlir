// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// CHECK-LABEL: func.func @commit(
// CHECK-SAME: %[[DONE:.*]]: !attn.mbarriers<2>, %[[I:.*]]: i32
func.func @commit(%done: !attn.mbarriers<2>, %i: i32) {
  attn.elect {
    // CHECK: attn.tcgen05.commit %[[DONE]][%[[I]]] : <2>
    attn.tcgen05.commit %done[%i] : !attn.mbarriers<2>
  }
  return
}
