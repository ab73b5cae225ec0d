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
    static constexpr int64_t kMostSequences = DealRunOp::kMostSequences;
  }];
}

def Attn_PlanPiecesOp : Attn_Op<"plan_pieces", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps]> {
  let summary = "writes down which pieces of which sequences a CTA has";
  let description = [{
    Puts the blocks of `block` keys of all sequences end to end, with `start` more in
    front of each, and cuts them into `runs` equal runs of at least 2 `fewest` blocks.
    What a run has of a sequence is a piece. A cut moves to an end of its sequence where
    that is closer than `fewest` blocks, so that the sequence stays whole or its pieces
    are that long. How many runs a sequence is part of follows from the lengths.

    The op writes run `index`. A plan begins with four numbers (i32) for each run: its
    first record, the record after its last one, and the sequence that begins in it and
    goes on in later runs, with the number of its pieces; zeros where there is none.
    The record of the piece that run r has of sequence s is number s + r, so that the
    records of a run, and those of a sequence, are neighbours. A record has four
    numbers: the sequence, its keys, the first block, and how many blocks the piece has.

    `lengths` has a number of keys (i32) for each sequence; below 0 counts as 0,
    above `capacity` as that. All threads of a warp come to the op together.

    Example:

    ```mlir
    func.func @plan(%lengths: !llvm.ptr<1>, %index: i32, %capacity: i32, %plan: !llvm.ptr<1>) {
      attn.plan_pieces %index of 132 from %lengths[64] up to %capacity block 64 start 1 fewest 2 into %plan
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<I32, "the number of the run">:$index,
    Arg<LLVM_PointerInAddressSpace<1>, "the sequences' numbers of keys", [MemRead]>:$lengths,
    Arg<I32, "the most keys that count">:$capacity,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "how many runs there are">:$runs,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "how many sequences there are">:$sequences,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "keys of a block">:$block,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "blocks that the begin of a sequence counts as">:$start,
    Described<ConfinedAttr<I64Attr, [IntMinValue<1>]>, "fewest blocks of a piece that is not whole">:$fewest,
    Arg<LLVM_PointerInAddressSpace<1>, "the runs and their records", [MemWrite]>:$plan);
  let assemblyFormat = [{
    $index `of` $runs `from` $lengths `[` $sequences `]` `up` `to` $capacity
    `block` $block `start` $start `fewest` $fewest `into` $plan attr-dict
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Most sequences: each lane of a warp has as many as another one.
    static constexpr int64_t kMostSequences = 1024;
    /// Numbers of a run, and of a record.
    static constexpr int64_t kRecordWords = 4;
    /// Returns the records of so many sequences: no cut has more than one piece after
    /// it that another cut has not.
    static constexpr int64_t countRecords(int64_t runs, int64_t sequences) {
      return runs + sequences;
    }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD
