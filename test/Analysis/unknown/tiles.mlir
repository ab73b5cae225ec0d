// Lengths that only the launch gives, in a kernel that walks tiles: neither how many there are nor how many blocks each
// has is known.

// DEFINE: %{schedule} =
// DEFINE: %{kernel} = attn-compile %s --chip=sm_90a --schedule=ws_wgmma %{schedule} --emit=barrier -o -
// DEFINE: %{check} = attn-opt --pass-pipeline='builtin.module(gpu.module(attn-check-barriers{require-proof}))' -o /dev/null --remarks-filter='attn.check.*'

// RUN: %{kernel} | %{check} 2>&1 | FileCheck %s
// CHECK: synchronisation is proved for all tiles, where arguments are not negative, sums do not
// CHECK-SAME: unknowns=

// The numbers of tiles may be dealt.

// REDEFINE: %{schedule} = --set=dynamic=true
// RUN: %{kernel} | %{check} 2>&1 | FileCheck %s

// Without the first signal that a slot of K is free it is not right, and without the wait for a tile's number neither.

// RUN: %{kernel} | awk '/mbarrier.arrive %%k.consumer/ && ++n == 1 {next} {print}' | not %{check} 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: %{kernel} | awk '/mbarrier.wait %%tile.producer/ {next} {print}' | not %{check} 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: error: {{.*}}cannot be checked

!t = memref<2x4x?x128xf16>
func.func @lengths(%q: !t, %k: !t, %v: !t, %o: !t) {
  attn.attention ins(%q, %k, %v : !t, !t, !t) outs(%o : !t)
  return
}
