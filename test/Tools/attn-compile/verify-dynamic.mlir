// RUN: attn-compile %s --verify --size=q.dim0=2 --size=q.dim2=65 --size=k.dim2=30 | FileCheck %s
// RUN: not attn-compile %s --verify 2>&1 | FileCheck %s --check-prefix=OPEN

// CHECK: passed
// OPEN: attn-compile: error: {{.*}}q.dim
func.func @dynamic(%q: memref<?x4x?x64xf16>, %k: memref<?x2x?x64xf16>, %v: memref<?x2x?x64xf16>, %o: memref<?x4x?x64xf16>) {
  attn.attention ins(%q, %k, %v : memref<?x4x?x64xf16>, memref<?x2x?x64xf16>, memref<?x2x?x64xf16>)
                 outs(%o : memref<?x4x?x64xf16>)
                 {mask = #attn.mask<kind = causal, align = bottom_right>}
  return
}
