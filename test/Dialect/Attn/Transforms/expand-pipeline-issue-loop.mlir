// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-verify-tokens,attn-expand-pipeline,attn-verify-tokens,canonicalize))' | FileCheck %s
// RUN: attn-opt %s --pass-pipeline='builtin.module(gpu.module(attn-expand-pipeline))' --remarks-filter='attn.*' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

!kv = !attn.channel<3>
!t = !attn.channel<1>
gpu.module @kernels {
  // One block ahead: QK alone, then PV and QK of each step, at last PV. V and K
  // are positions of one channel, in the order of their acquires; what both
  // products of a step use is acquired once.
  // CHECK-LABEL: gpu.func @blocks
  // CHECK-SAME: %[[N:[^:]*]]: i32
  // CHECK: %[[FEW:.*]] = arith.minsi %[[N]], %{{.*}} : i32
  // CHECK: scf.for %{{.*}} = %c0_i32 to %[[FEW]]
  // CHECK:   %[[K:.*]], %[[KT:.*]] = attn.channel.acquire %[[KV:.*]][%{{.*}}] as "mma"
  // CHECK:   %{{.*}}, %[[TT:.*]] = attn.channel.acquire %[[T:.*]][
  // CHECK:   arith.addi %{{.*}}, %[[K]]
  // CHECK:   attn.channel.release %[[KV]], %[[KT]]
  // CHECK:   attn.channel.release %[[T]], %[[TT]]
  // CHECK: scf.for %[[STEP:.*]] = %c1_i32 to %[[N]] step
  // CHECK:   %[[BEFORE:.*]] = arith.subi %[[STEP]], %c1_i32
  // CHECK:   %[[V:.*]], %[[VT:.*]] = attn.channel.acquire %[[KV]]
  // CHECK:   %[[NEXT:.*]] = attn.cursor.advance
  // CHECK:   attn.channel.acquire %[[T]]
  // CHECK:   arith.muli %[[BEFORE]], %[[V]]
  // CHECK:   attn.channel.release %[[KV]], %[[VT]]
  // CHECK:   attn.channel.acquire %[[KV]][%[[NEXT]]]
  // CHECK:   arith.addi %[[STEP]],
  // CHECK:   attn.channel.release %[[KV]]
  // CHECK:   attn.channel.release %[[T]]
  // CHECK: scf.for
  // CHECK:   attn.channel.acquire %[[KV]]
  // CHECK:   attn.channel.acquire %[[T]]
  // CHECK:   arith.muli
  // CHECK-NOT: arith.addi
  // CHECK:   attn.channel.release %[[T]]
  // CHECK-NOT: scf.for
  // CHECK: gpu.return
  // REMARK: statements are issued in loops that know which of them run
  // REMARK-SAME: copies=4, loops=3, statements=2
  gpu.func @blocks(%n: i32, %p: !llvm.ptr<1>) kernel {
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !kv
    %t = attn.channel.create {name = "t", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive>]} : !t
    %c = attn.cursor.start %kv as "mma" : !kv
    %d = attn.cursor.start %t as "mma" : !t
    %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0, "t" = 1] of %kv, %t from %c, %d : !kv, !t
    statement "pv" of 0 skew 1 uses ["v", "t"] {
    ^bb0(%i: i32, %v: i32, %v_token: !attn.token, %s: i32, %s_token: !attn.token):
      %x = arith.muli %i, %v : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk" of 0 skew 0 uses ["k", "t"] {
    ^bb0(%i: i32, %k: i32, %k_token: !attn.token, %s: i32, %s_token: !attn.token):
      %x = arith.addi %i, %k : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // A part is awaited where it is used, the whole slot where that is, and it is
  // released as a whole.
  // CHECK-LABEL: gpu.func @parts
  // CHECK: scf.for
  // CHECK:   attn.channel.acquire %[[T:.*]][%[[AT:.*]]] as "mma" part "front"
  // CHECK:   attn.channel.acquire %[[T]][%[[AT]]] as "mma" part "back"
  // CHECK:   %[[ALL:.*]] = attn.channel.join
  // CHECK:   arith.addi
  // CHECK:   attn.channel.release %[[T]], %[[ALL]]
  // CHECK: scf.for
  // CHECK:   %[[I:.*]], %[[FRONT:.*]] = attn.channel.acquire %[[T]][%[[AT:.*]]] as "mma" part "front"
  // CHECK:   arith.muli %{{.*}}, %[[I]]
  // CHECK:   %{{.*}}, %[[BACK:.*]] = attn.channel.acquire %[[T]][%[[AT]]] as "mma" part "back"
  // CHECK:   arith.muli %{{.*}}, %[[I]]
  // CHECK:   %[[ALL:.*]] = attn.channel.join %[[T]], %[[FRONT]], %[[BACK]] as "mma"
  // CHECK:   arith.addi
  // CHECK:   attn.channel.release %[[T]], %[[ALL]]
  // CHECK: scf.for
  // CHECK:   part "front"
  // CHECK:   part "back"
  // CHECK:   attn.channel.join
  // CHECK:   attn.channel.release
  // CHECK: gpu.return
  // REMARK: copies=6, loops=3, statements=3
  gpu.func @parts(%n: i32, %p: !llvm.ptr<1>) kernel {
    %t = attn.channel.create {name = "t", roles = [#attn.role<"mma", arrive>, #attn.role<"softmax", arrive, parts = ["front", "back"]>]} : !t
    %d = attn.cursor.start %t as "mma" : !t
    %r = attn.issue_loop as "mma" trips(%n) slots ["t" = 0] of %t from %d : !t
    statement "pv_front" of 0 skew 1 uses ["t" part "front"] {
    ^bb0(%i: i32, %s: i32, %s_token: !attn.token):
      %x = arith.muli %i, %s : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "pv_back" of 0 skew 1 uses ["t" part "back"] {
    ^bb0(%i: i32, %s: i32, %s_token: !attn.token):
      %x = arith.muli %i, %s : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk" of 0 skew 0 uses ["t"] {
    ^bb0(%i: i32, %s: i32, %s_token: !attn.token):
      %x = arith.addi %i, %s : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // A slot that is held is released in the next step, the last one by whoever
  // gets its token.
  // CHECK-LABEL: gpu.func @held
  // CHECK: %{{.*}}, %[[FIRST:.*]] = attn.channel.acquire %[[KV:.*]][
  // CHECK: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[HELD:.*]] = %[[FIRST]])
  // CHECK:   %{{.*}}, %[[VT:.*]] = attn.channel.acquire %[[KV]]
  // CHECK:   arith.muli
  // CHECK:   attn.channel.release %[[KV]], %[[HELD]] as "mma"
  // CHECK:   attn.channel.release %[[KV]], %[[VT]] as "mma"
  // CHECK:   %{{.*}}, %[[KT:.*]] = attn.channel.acquire %[[KV]]
  // CHECK:   arith.addi
  // CHECK-NOT: attn.channel.release
  // CHECK:   scf.yield %{{.*}}, %[[KT]]
  // CHECK: attn.channel.release %[[KV]], %[[R]]#1 as "mma"
  // CHECK-NOT: attn.channel.release
  // CHECK: gpu.return
  // REMARK: copies=2, loops=1, statements=2
  gpu.func @held(%n: i32, %p: !llvm.ptr<1>) kernel {
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !kv
    %start = attn.cursor.start %kv as "mma" : !kv
    %i0, %first = attn.channel.acquire %kv[%start] as "mma" : !kv
    %c = attn.cursor.advance %start on %kv : !kv
    %r:2 = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0] of %kv from %c holding "k" behind "pv" = %first : !kv
    statement "pv" of 0 skew 0 uses ["v"] {
    ^bb0(%i: i32, %v: i32, %v_token: !attn.token):
      %x = arith.muli %i, %v : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk" of 0 skew 0 uses ["k"] {
    ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
      %x = arith.addi %i, %k : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    attn.channel.release %kv, %r#1 as "mma" : !kv
    gpu.return
  }

  // Trips that are known leave out what cannot run, and loops of one step.
  // CHECK-LABEL: gpu.func @known
  // CHECK: attn.channel.acquire
  // CHECK: attn.channel.release
  // CHECK: attn.channel.acquire
  // CHECK: attn.channel.release
  // CHECK-NOT: scf.for
  // CHECK: gpu.return
  // REMARK: copies=2, loops=0, statements=2
  gpu.func @known(%p: !llvm.ptr<1>) kernel {
    %n = arith.constant 1 : i32
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !kv
    %c = attn.cursor.start %kv as "mma" : !kv
    %r = attn.issue_loop as "mma" trips(%n) slots ["v" = 0, "k" = 0] of %kv from %c : !kv
    statement "pv" of 0 skew 1 uses ["v"] {
    ^bb0(%i: i32, %v: i32, %v_token: !attn.token):
      llvm.store %v, %p : i32, !llvm.ptr<1>
    }
    statement "qk" of 0 skew 0 uses ["k"] {
    ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
      llvm.store %k, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // Two numbers of trips: 11 sets of statements that can run, 7 where the second
  // number is known to be no less.
  // REMARK: copies=22, loops=11, statements=4
  gpu.func @two(%n: i32, %m: i32, %p: !llvm.ptr<1>) kernel {
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !kv
    %c = attn.cursor.start %kv as "mma" : !kv
    %r = attn.issue_loop as "mma" trips(%n, %m) slots ["v" = 0, "k" = 0] of %kv from %c : !kv
    statement "pv0" of 0 skew 1 uses ["v"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk0" of 0 skew 0 uses ["k"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "pv1" of 1 skew 1 uses ["v"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk1" of 1 skew 0 uses ["k"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // REMARK: copies=15, loops=7, statements=4
  gpu.func @rising(%n: i32, %m: i32, %p: !llvm.ptr<1>) kernel {
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !kv
    %c = attn.cursor.start %kv as "mma" : !kv
    %r = attn.issue_loop as "mma" trips(%n, %m) rising slots ["v" = 0, "k" = 0] of %kv from %c : !kv
    statement "pv0" of 0 skew 1 uses ["v"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk0" of 0 skew 0 uses ["k"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "pv1" of 1 skew 1 uses ["v"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk1" of 1 skew 0 uses ["k"] {
    ^bb0(%i: i32, %x: i32, %token: !attn.token):
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // The last results of the tile before stand in front of the first scores, and
  // say that they are there; queries are handed back behind the last scores of a
  // tile, and keys that are held behind the next block's results.
  // CHECK-LABEL: gpu.func @rotated
  // CHECK-SAME: %[[N:[^:]*]]: i32, %[[M:[^:]*]]: i32
  // CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[N]], %c0_i32
  // CHECK: scf.if %[[SOME]]
  // CHECK:   %[[LEFT:.*]] = arith.cmpi sgt, %[[M]], %c0_i32
  // CHECK:   %[[FIRST:.*]]:3 = scf.if %[[LEFT]]
  // CHECK:     attn.channel.acquire %[[KV:.*]][
  // CHECK:     %{{.*}}, %[[O:.*]] = attn.channel.acquire %[[OC:.*]][
  // CHECK:     arith.muli
  // CHECK:     attn.channel.release %[[OC]], %[[O]] as "mma"
  // CHECK:     %{{.*}}, %[[Q:.*]] = attn.channel.acquire %[[QC:.*]][
  // CHECK:     %[[K:.*]], %[[KT:.*]] = attn.channel.acquire %[[KV]][
  // CHECK-NOT: attn.channel.release
  // CHECK:     scf.yield %{{.*}}, %[[Q]], %[[KT]]
  // CHECK:   else
  // CHECK:     attn.channel.acquire %[[QC]][
  // CHECK:     attn.channel.acquire %[[KV]][
  // CHECK:   %[[MORE:.*]] = arith.cmpi sgt, %[[N]], %c1_i32
  // CHECK:   scf.if %[[MORE]]
  // CHECK:     scf.for %{{.*}} = %c1_i32 to %{{.*}} iter_args
  // CHECK:       attn.channel.release %[[KV]]
  // CHECK:       attn.channel.release %[[KV]]
  // CHECK-NOT:   attn.channel.release %[[QC]]
  // CHECK:     attn.channel.acquire
  // CHECK:     attn.channel.release %[[QC]], %[[FIRST]]#1 as "mma"
  // CHECK:   else
  // CHECK:     attn.channel.release %[[QC]], %[[FIRST]]#1 as "mma"
  // CHECK:   attn.channel.release %[[KV]]
  // CHECK: else
  // CHECK:   scf.if
  // CHECK:     attn.channel.acquire %[[OC]]
  // CHECK: gpu.return
  // REMARK: copies=8, loops=1, statements=2
  gpu.func @rotated(%n: i32, %m: i32, %p: !llvm.ptr<1>) kernel {
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !kv
    %o = attn.channel.create {name = "o", roles = [#attn.role<"mma", arrive>, #attn.role<"results", arrive>]} : !t
    %q = attn.channel.create {name = "q", roles = [#attn.role<"load", tx>, #attn.role<"mma", arrive>]} : !t
    %c = attn.cursor.start %kv as "mma" : !kv
    %d = attn.cursor.start %o as "mma" : !t
    %e = attn.cursor.start %q as "mma" : !t
    %r:3 = attn.issue_loop as "mma" trips(%n) left(%m) slots ["v" = 0, "k" = 0, "o" = 1, "q" = 2] of %kv, %o, %q from %c, %d, %e holding "k" behind "pv" spanning "q" from "qk" to "qk" : !kv, !t, !t
    statement "pv" of 0 skew 1 uses ["v"] ends ["o"] {
    ^bb0(%i: i32, %v: i32, %v_token: !attn.token):
      %x = arith.muli %i, %v : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    statement "qk" of 0 skew 0 uses ["k"] {
    ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
      %x = arith.addi %i, %k : i32
      llvm.store %x, %p : i32, !llvm.ptr<1>
    }
    gpu.return
  }

  // A loop of products stays a loop, where its trips are known too; without products
  // (@rotated) ptxas may do what it likes.
  // CHECK-NOT: loop_annotation
  // CHECK-LABEL: gpu.func @products
  // CHECK: scf.for
  // CHECK:   attn.tcgen05.mma
  // CHECK: } {loop_annotation = #[[ROLLED:loop_annotation[0-9]*]]}
  // CHECK-NOT: scf.for
  // CHECK: gpu.return
  gpu.func @products(%n: i32, %q: !attn.buffer<128x64xbf16, #attn.auto, shared>, %b: !attn.buffer<64x128xbf16, #attn.auto, shared>, %s: !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>, %more: i1) kernel {
    %kv = attn.channel.create {name = "kv", roles = [#attn.role<"load", tx>, #attn.role<"mma", commit>]} : !kv
    attn.elect {
      %c = attn.cursor.start %kv as "mma" : !kv
      %r = attn.issue_loop as "mma" trips(%n) slots ["k" = 0] of %kv from %c : !kv
      statement "qk" of 0 skew 0 uses ["k"] {
      ^bb0(%i: i32, %k: i32, %k_token: !attn.token):
        attn.tcgen05.mma %q, %b, %s accumulate %more : !attn.buffer<128x64xbf16, #attn.auto, shared>, !attn.buffer<64x128xbf16, #attn.auto, shared>, !attn.buffer<128x128xf32, #attn.tmem<m = 128>, tmem>
      }
    }
    gpu.return
  }
}
