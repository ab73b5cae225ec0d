//===- Tcgen05Ops.td - Matrix instructions of one thread ----*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_TCGEN05OPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_TCGEN05OPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/Ops/BarrierOps.td"
include "attn/Dialect/Attn/IR/Ops/TmemOps.td"
include "attn/Dialect/Attn/IR/OpGroups.td"

let opDocGroup = Attn_TmemGroup in {

def Attn_Tcgen05MmaOp : Attn_Op<"tcgen05.mma", [AttnRequiresSM<100>, AttnAsync<"kTensorProducts">,
    DeclareOpInterfaceMethods<Attn_ProductOpInterface>, Attn_TensorGroupOpInterface,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a matrix multiply-accumulate into tensor memory";
  let description = [{
    `d = a * b`, or `d + a * b` where `accumulate` is true, for a (M x K), b (K x N)
    and d (M x N) with M 64 or 128, started by the one thread of the `attn.elect`
    that it stands in (PTX ISA, tcgen05.mma with cta_group::1 and kind::f16, or
    kind::f8f6f4 where `a` and `b` are 8-bit floats, which may be of two types). `a` is
    a buffer in shared memory, or one in tensor memory with the rows of `d`; `b` is
    in shared memory; `d` is f32 in tensor memory. A K x N view of a buffer that
    holds N x K is an `attn.transpose`. Rows of more columns than an instruction
    takes are several products.

    Products of one thread are executed in the order in which they were started: a
    later one may overwrite what an earlier one reads. (The ISA says so only for
    products into the same accumulator. All kernels that are in use rely on it.)

    With `depth = k` the contraction goes over k columns of `a` and rows of `b`, which
    may have more, from the first ones or from those of number `first` on.

    With `pair` one of two CTAs of a cluster, of ranks 2n and 2n + 1, starts a product
    for both (PTX ISA, cta_group::2). Each has 128 or 64 rows of its own of `a` and `d`, and half of the
    columns of `b`: those of the first CTA are the first half of the columns of `d`.
    The buffers lie at the same places in both CTAs. Where each has 64 rows, `a` is
    in shared memory and `d` in halves (`#attn.tmem`): of each 128 columns of `d`
    those of the first CTA are the first 64.

    The product and its reads of `a` and `b` have ended when the mbarrier of an
    `attn.tcgen05.commit` behind it says so.

    Undefined behaviour: touching `d`, or writing `a` or `b`, before that;
    accumulating on what was never written; with `pair`, one that both CTAs start.

    Example:

    ```mlir
    func.func @qk(%q: !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, %k: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, %s: !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>) {
      %kt = attn.transpose %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
      %no = arith.constant false
      attn.elect {
        attn.tcgen05.mma %q, %kt, %s accumulate %no : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
      }
      return
    }

    // 256 rows of scores in two CTAs, each with 32 of 64 keys.
    func.func @qk_pair(%q: !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, %k: !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared>, %s: !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>) {
      %kt = attn.transpose %k : !attn.buffer<32x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
      %no = arith.constant false
      attn.elect {
        attn.cluster_leader {
          attn.tcgen05.mma %q, %kt, %s accumulate %no {pair} : !attn.buffer<128x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x32xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, !attn.buffer<128x64xf32, #attn.tmem<m = 128>, tmem>
        }
      }
      return
    }

    // 128 rows, 64 in each CTA.
    func.func @qk_halves(%q: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, %k: !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, %s: !attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>) {
      %kt = attn.transpose %k : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared> -> !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>
      %no = arith.constant false
      attn.elect {
        attn.cluster_leader {
          attn.tcgen05.mma %q, %kt, %s accumulate %no {pair} : !attn.buffer<64x64xf16, #attn.swizzled<span = 128>, shared>, !attn.buffer<64x64xf16, #attn.transposed<#attn.swizzled<span = 128>>, shared>, !attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_BufferType, "M x K, in shared or tensor memory">:$a,
    Arg<Attn_BufferType, "K x N, in shared memory">:$b,
    Arg<Attn_BufferType, "M x N, in tensor memory">:$d,
    Arg<I1, "whether the product is added to what is there">:$accumulate,
    Described<OptionalAttr<I64Attr>, "of the contraction, columns of a; all from the first on without it">:$depth,
    Described<OptionalAttr<I64Attr>, "the first column of a and row of b of the contraction, 0 without it">:$first,
    Described<UnitAttr, "of both CTAs of a pair, each with half of the columns of b">:$pair);
  let assemblyFormat = [{
    $a `,` $b `,` $d `accumulate` $accumulate attr-dict
    `:` type($a) `,` type($b) `,` type($d)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The extent of the contraction, and where it starts.
    int64_t getContraction();
    int64_t getStart() { return getFirst().value_or(0); }
    ::std::optional<::std::pair<int64_t, int64_t>> getContracted() {
      return ::std::pair(getStart(), getContraction());
    }
  }];
}

def Attn_Tcgen05CommitOp : Attn_Op<"tcgen05.commit", [AttnRequiresSM<100>,
    DeclareOpInterfaceMethods<Attn_CommitOpInterface, ["countCommitCTAs", "getCommitTargets"]>,
    Attn_TensorGroupOpInterface,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "arrives when this thread's products are complete";
  let description = [{
    Barrier `index` gets one arrival when all products that the executing thread
    has started before are complete: they have read their operands and written
    their results (PTX ISA, tcgen05.commit). Several commits in a row arrive in
    their order. The thread does not wait.

    With `ctas = n` that barrier gets one arrival in each of the n CTAs of the cluster
    (PTX ISA, multicast::cluster); with `rank_bits = b` these are the CTAs whose ranks
    agree with that of this CTA in all bits but those of b. With `pair` the products
    are of both CTAs of a pair (cta_group::2).

    Undefined behaviour: an index outside the array; more arrivals than the
    phase has.

    Example:

    ```mlir
    func.func @commit(%done: !attn.mbarriers<2>, %i: i32) {
      attn.elect {
        attn.tcgen05.commit %done[%i] : !attn.mbarriers<2>
      }
      return
    }

    func.func @commit_pair(%done: !attn.mbarriers<2>, %i: i32) {
      attn.elect {
        attn.cluster_leader {
          attn.tcgen05.commit %done[%i] {ctas = 2, pair} : !attn.mbarriers<2>
        }
      }
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MBarriersType, "the barriers">:$barriers,
    Arg<I32, "which one">:$index,
    Described<OptionalAttr<I64Attr>, "CTAs of the cluster at whose barriers it arrives, 2 to 16; without it this one alone">:$ctas,
    Described<UnitAttr, "behind products of both CTAs of a pair">:$pair,
    Described<OptionalAttr<I64Attr>, "bits of the CTAs' ranks that 'ctas' is about, a number from 1 to 7; all without it">:$rank_bits);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

def Attn_Tcgen05FenceOp : Attn_Op<"tcgen05.fence", [AttnRequiresSM<100>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "orders accesses to tensor memory with those of other threads";
  let description = [{
    `before`: the thread's loads, stores and products come before what other threads
    do behind a signal that the thread gives after the fence. `after`: they come
    behind what other threads did before a signal that the thread has waited for
    (PTX ISA, tcgen05.fence::before_thread_sync and ::after_thread_sync).
    `attn-insert-fences` places both.

    Example:

    ```mlir
    func.func @fence(%full: !attn.mbarriers<1>, %i: i32, %parity: i32) {
      attn.mbarrier.wait %full[%i] parity %parity : !attn.mbarriers<1>
      attn.tcgen05.fence after
      return
    }
    ```
  }];
  let arguments = (ins Described<Attn_TensorFenceAttr, "before or after a signal">:$kind);
  let assemblyFormat = "`` $kind attr-dict";
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_TCGEN05OPS_TD
