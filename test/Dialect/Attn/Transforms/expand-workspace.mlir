// RUN: attn-opt %s -attn-expand=chip=sm_90a -split-input-file | FileCheck %s

// The counter that deals tiles is memory that the host provides, filled with
// zeros; the kernel leaves it so.

// CHECK-LABEL: func.func @dealt
// CHECK: %[[MEMORY:.*]] = gpu.alloc () : memref<4xi8>
// CHECK: %[[ZERO:.*]] = arith.constant 0 : i8
// CHECK: gpu.memset %[[MEMORY]], %[[ZERO]] : memref<4xi8>, i8
// CHECK: %[[ADDRESS:.*]] = memref.extract_aligned_pointer_as_index %[[MEMORY]]
// CHECK: %[[INTEGER:.*]] = arith.index_cast %[[ADDRESS]] : index to i64
// CHECK: %[[COUNTER:.*]] = llvm.inttoptr %[[INTEGER]] : i64 to !llvm.ptr<1>
// CHECK: gpu.launch_func @dealt_kernels::@attn_fwd
// CHECK-SAME: %[[COUNTER]] : !llvm.ptr<1>, %{{.*}} : !attn.tensor_map
// CHECK: gpu.dealloc %[[MEMORY]]
// CHECK: gpu.func @attn_fwd
// CHECK-SAME: %[[PARAMETER:[^:]*]]: !llvm.ptr<1>, %{{[^:]*}}: !attn.tensor_map
// CHECK-SAME: {index = 0 : i64, kind = "workspace"}, {box =
// CHECK-SAME: workspaces = [{bytes = "4", restored = true, zeroed = true}]
// CHECK: %[[CHANNEL:.*]] = attn.channel.create {name = "tile"
// CHECK-SAME: #attn.role<"producer", arrive>, #attn.role<"consumer", arrive>
// CHECK: %[[RING:.*]] = attn.alloc {name = "tile"} : <2xi32
// CHECK: attn.tile_loop %{{.*}} scheduler dynamic counter %[[PARAMETER]] channel %[[CHANNEL]] ring %[[RING]]
// CHECK: attn.tile_loop %{{.*}} scheduler dynamic counter %[[PARAMETER]] channel %[[CHANNEL]] ring %[[RING]]
func.func @dealt(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {mask = #attn.mask<kind = causal>, plan = #attn.ws_wgmma<dynamic = true, order = longest_first>}
  return
}

// -----

// Where V is transposed on its way, all threads of the producer's partition walk
// the tiles, and where CTAs are a cluster, the producers of all of them do.

// CHECK-LABEL: func.func @transposed
// CHECK: attn.channel.create {name = "tile"
// CHECK-SAME: [#attn.role<"producer", arrive>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]
// CHECK: partition "producer"
// CHECK: attn.elect {
// CHECK: }
// CHECK: attn.tile_loop %{{.*}} scheduler dynamic
func.func @transposed(%q: memref<1x8x256x64xf8E4M3FN>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>, memref<1x8x256x64xf8E4M3FN>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<dynamic = true>}
  return
}

// -----

// CHECK-LABEL: func.func @cluster
// CHECK: attn.channel.create {name = "tile"
// CHECK-SAME: [#attn.role<"producer", tx>, #attn.role<"reader" in ["producer"], arrive>, #attn.role<"consumer", arrive>]
// CHECK: attn.tile_loop %{{.*}} scheduler dynamic
func.func @cluster(%q: memref<1x8x256x64xf16>, %o: memref<1x8x256x64xf16>) {
  attn.attention ins(%q, %q, %q : memref<1x8x256x64xf16>, memref<1x8x256x64xf16>, memref<1x8x256x64xf16>)
                 outs(%o : memref<1x8x256x64xf16>) {plan = #attn.ws_wgmma<cluster = 2, dynamic = true>}
  return
}
