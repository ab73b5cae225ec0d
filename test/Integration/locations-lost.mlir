// RUN: not attn-test-opt %s --strip-debuginfo --test-attn-check-locations 2>&1 | FileCheck %s
// RUN: attn-test-opt %s --test-attn-check-locations -o /dev/null

// What the check says. A fused location needs one known part.

// CHECK:     error: 'arith.constant' op has no location, like 1 others of its kind
// CHECK:     error: 'func.func' op has no location, like 0 others of its kind

func.func @f() {
  %0 = arith.constant 0 : i32
  %1 = arith.constant 1 : i32 loc(fused[unknown, "known"])
  return
}
