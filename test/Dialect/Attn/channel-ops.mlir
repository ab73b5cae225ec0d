// RUN: attn-opt %s | attn-opt | FileCheck %s
// RUN: attn-opt %s -mlir-print-op-generic | attn-opt | FileCheck %s
// RUN: attn-opt %s -emit-bytecode | attn-opt | FileCheck %s

// Hand-over between partitions. The forms are those that the printer writes:
// attributes that have their default are not there.

// Channels in whole, in parts, and in parts by warpgroup.
// CHECK-LABEL: func.func @create(
func.func @create() {
  // CHECK: %[[K:.*]] = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : <2>
  %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
  // CHECK: %[[Q:.*]] = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : <1>
  %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
  // A partition with two roles names the second one.
  // CHECK: %[[V:.*]] = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"transposer" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : <3>
  %v = attn.channel.create {name = "v", roles = [#attn.role<"producer", tx>, #attn.role<"transposer" in ["producer"], arrive>, #attn.role<"consumer", arrive>]} : !attn.channel<3>
  // Several partitions may have a role together.
  // CHECK: attn.channel.create {name = "s", roles = [#attn.role<"mma", tx>, #attn.role<"softmax" in ["softmax0", "softmax1"], arrive>]} : <1>
  %s = attn.channel.create {name = "s", roles = [#attn.role<"mma" in ["mma"], tx>, #attn.role<"softmax" in ["softmax0", "softmax1"], arrive>]} : !attn.channel<1>
  // Products that are done are a signal.
  // CHECK: attn.channel.create {name = "o", roles = [#attn.role<"mma", commit>, #attn.role<"epilogue", arrive>]} : <1>
  %o = attn.channel.create {name = "o", roles = [#attn.role<"mma", commit>, #attn.role<"epilogue", arrive>]} : !attn.channel<1>
  return
}

// CHECK-LABEL: func.func @cursors(
// CHECK-SAME: %[[K:.*]]: !attn.channel<2>
func.func @cursors(%k: !attn.channel<2>) -> !attn.cursor {
  // CHECK: %[[C:.*]] = attn.cursor.start %[[K]] as "consumer" : <2>
  %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
  // CHECK: %[[N:.*]] = attn.cursor.advance %[[C]] on %[[K]] : <2>
  %n = attn.cursor.advance %c on %k : !attn.channel<2>
  return %n : !attn.cursor
}

// CHECK-LABEL: func.func @slots(
// CHECK-SAME: %[[K:.*]]: !attn.channel<2>, %[[C:.*]]: !attn.cursor
func.func @slots(%k: !attn.channel<2>, %c: !attn.cursor) {
  // CHECK: %[[I:.*]], %[[T:.*]] = attn.channel.acquire %[[K]][%[[C]]] as "consumer" : <2>
  %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
  // CHECK: attn.channel.release %[[K]], %[[T]] as "consumer" : <2>
  attn.channel.release %k, %t as "consumer" : !attn.channel<2>
  return
}

// CHECK-LABEL: func.func @parts(
// CHECK-SAME: %[[Q:.*]]: !attn.channel<1>, %[[C:.*]]: !attn.cursor
func.func @parts(%q: !attn.channel<1>, %c: !attn.cursor) {
  // CHECK: %[[I:.*]], %[[T:.*]] = attn.channel.acquire %[[Q]][%[[C]]] as "consumer" part "upper" : <1>
  %i, %t = attn.channel.acquire %q[%c] as "consumer" part "upper" : !attn.channel<1>
  // CHECK: attn.channel.release %[[Q]], %[[T]] as "consumer" : <1>
  attn.channel.release %q, %t as "consumer" : !attn.channel<1>
  // CHECK: %[[J:.*]], %[[U:.*]] = attn.channel.acquire %[[Q]][%[[C]]] as "consumer" {each_warpgroup} : <1>
  %j, %u = attn.channel.acquire %q[%c] as "consumer" {each_warpgroup} : !attn.channel<1>
  // CHECK: attn.channel.release %[[Q]], %[[U]] as "consumer" : <1>
  attn.channel.release %q, %u as "consumer" : !attn.channel<1>
  return
}

// Tokens of whole slots and of parts.
// CHECK-LABEL: func.func @split_join(
// CHECK-SAME: %[[K:.*]]: !attn.channel<2>, %[[T:.*]]: !attn.token
func.func @split_join(%k: !attn.channel<2>, %t: !attn.token) {
  // CHECK: %[[P:.*]]:2 = attn.channel.split %[[K]], %[[T]] as "softmax" : <2> -> !attn.token, !attn.token
  %front, %back = attn.channel.split %k, %t as "softmax" : !attn.channel<2> -> !attn.token, !attn.token
  // CHECK: %[[W:.*]] = attn.channel.join %[[K]], %[[P]]#0, %[[P]]#1 as "mma" : <2>
  %w = attn.channel.join %k, %front, %back as "mma" : !attn.channel<2>
  attn.channel.release %k, %w as "mma" : !attn.channel<2>
  return
}
