//===- WorkOps.td - Which work a CTA does -------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

let opDocGroup = Attn_WorkGroup in {

def Attn_DealRunOp : Attn_Op<"deal_run", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps]> {
  let summary = "which run of which sequence a CTA has";
  let description = [{
    Cuts the keys of `sequences` sequences into at most `total` runs, so that all
    runs are about as long: with `w` the blocks of 64 keys of a sequence and one
    more for its start, and `W` the sum of all `w`, a sequence has

        min(most, ceil(w / ceil(W / (total - sequences))))

    runs, at least one. Runs are numbered through all sequences in their order.
    Number `index` is run `run` of the `runs` runs of sequence `sequence`. A number
    that no run has gives three zeros.

    `lengths` has a number of keys (i32) for each sequence; below 0 counts as 0,
    above `capacity` as that. Results depend on these lengths alone, and are the
    same in all threads of a CTA, which all come to the op together.

    Example:

    ```mlir
    func.func @deal(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32) -> (i32, i32, i32) {
      %sequence, %run, %runs = attn.deal_run %index of 264 from %lengths[64] up to %capacity most 32
      return %sequence, %run, %runs : i32, i32, i32
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the number among all runs">:$index,
    Arg<LLVM_PointerInAddressSpace<1>, "the sequences' numbers of keys", [MemRead]>:$lengths,
    Arg<I32, "the most keys that count">:$capacity,
    Described<ConfinedAttr<I64Attr, [IntMinValue<2>]>, "most runs of all sequences">:$total,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "how many there are">:$sequences,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "most runs of a sequence">:$most);
  let results = (outs Res<I32, "the sequence">:$sequence,
                      Res<I32, "the run of it">:$run,
                      Res<I32, "how many runs it has">:$runs);
  let assemblyFormat = [{
    $index `of` $total `from` $lengths `[` $sequences `]` `up` `to` $capacity
    `most` $most attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Most sequences: each lane of a warp has as many as another one.
    static constexpr int64_t kMostSequences = 256;
    /// Keys of a block, the unit of a run's work.
    static constexpr int64_t kBlockKeys = 64;
  }];
}

def Attn_PlanWorkOp : Attn_Op<"plan_work", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps]> {
  let summary = "writes down which run of which sequence a CTA has";
  let description = [{
    Cuts keys into runs: with `w` the blocks that `attn.deal_run` counts, a sequence
    has ceil(w / n) runs, of ceil(w / runs) blocks each. `n` is the least number with
    which all sequences have at most `total` runs and each at most `most`. Longer runs
    come first, those of one length in the order of their sequences: CTAs that start
    last have the least to do. This takes a search and a sort, which is why it is done
    once for all launches that read the same lengths.

    Record `index` of `plan` becomes four numbers (i32): the sequence, the run, how
    many runs it has, and the sequence's keys. One that no run has becomes zeros.
    All threads of a warp come to the op together and write the same record.

    Example:

    ```mlir
    func.func @plan(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32, %plan: !llvm.ptr<1>) {
      attn.plan_work %index of 264 from %lengths[64] up to %capacity most 32 into %plan
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the number among all runs">:$index,
    Arg<LLVM_PointerInAddressSpace<1>, "the sequences' numbers of keys", [MemRead]>:$lengths,
    Arg<I32, "the most keys that count">:$capacity,
    Described<ConfinedAttr<I64Attr, [IntMinValue<2>]>, "most runs of all sequences">:$total,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "how many there are">:$sequences,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "most runs of a sequence">:$most,
    Arg<LLVM_PointerInAddressSpace<1>, "the records", [MemWrite]>:$plan);
  let assemblyFormat = [{
    $index `of` $total `from` $lengths `[` $sequences `]` `up` `to` $capacity
    `most` $most `into` $plan attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Numbers of a record.
    static constexpr int64_t kRecordWords = 4;
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD
