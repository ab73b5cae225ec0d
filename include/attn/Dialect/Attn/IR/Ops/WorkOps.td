//===- WorkOps.td - Which work a CTA does -------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Numbers that kernels compute with in 32 bits.
def Attn_WordNumber : ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<2147483647>]>;
def Attn_WordCount : ConfinedAttr<I64Attr, [IntMinValue<1>, IntMaxValue<2147483647>]>;

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

def Attn_PlanTilesOp : Attn_Op<"plan_tiles", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps]> {
  let summary = "writes down tiles that begin where documents do";
  let description = [{
    `numbers` has `rows` rows, a batch each, of `count` integers: the number of the
    document that the query and the key of that place are of. A row begins `stride`
    elements after the one before. A document is a run of equal numbers; tiles of
    `block_m` queries are counted from its first one, so that no tile has queries of
    two documents.

    The plan begins with a record whose first number (i32) says how many tiles there
    are. A record for each tile follows, in the order of the blocks of `block_n` keys
    that they have, from few to many: the batch; a place from which the others of these
    numbers count; the first query; one past the last query of the document; its first
    key; one past its last key; 1, which says that all keys of the tile are its
    queries' own. The place is a multiple of `align` up to the begin of the document.
    Of a document's keys a query sees those that `mask` leaves it.

    If numbers decrease somewhere, if `capacity` records are too few for such tiles, or
    if these have more than `most` blocks together, tiles are those of `block_m`
    queries from the first one of a batch on. They have 0
    at the end of their records, end with the last query of the batch, and have the
    keys of the documents of their queries: all if numbers decrease.

    Behind the records the op keeps numbers of its own. The threads of a CTA of
    1024 come to the op together.

    Example:

    ```mlir
    func.func @plan(%ids: !llvm.ptr<1>, %rows: i32, %stride: i64, %count: i32, %plan: !llvm.ptr<1>) {
      attn.plan_tiles %ids[%rows by %stride, %count] of i32 block_m 128 block_n 64 align 1 mask <kind = causal> capacity 256 most 9000 into %plan
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<LLVM_PointerInAddressSpace<1>, "the documents' numbers", [MemRead]>:$numbers,
    Arg<I32, "batches">:$rows,
    Arg<I64, "elements from one row to the next">:$stride,
    Arg<I32, "queries of a batch">:$count,
    Described<TypeAttrOf<AnyTypeOf<[I32, I64]>>, "the type of the numbers">:$element,
    Described<Attn_WordCount, "queries of a tile">:$block_m,
    Described<Attn_WordCount, "keys of a block">:$block_n,
    Described<Attn_WordCount, "keys of which begins of blocks are a multiple">:$align,
    Described<Attn_MaskAttr, "bounds of the key less the query">:$mask,
    Described<Attn_WordCount, "the records that the plan has room for">:$capacity,
    Described<Attn_WordNumber, "the most blocks that tiles of documents may have">:$most,
    Arg<LLVM_PointerInAddressSpace<1>, "the records", [MemWrite]>:$plan);
  let assemblyFormat = [{
    $numbers `[` $rows `by` $stride `,` $count `]` `of` $element `block_m` $block_m
    `block_n` $block_n `align` $align `mask` $mask
    `capacity` $capacity `most` $most `into` $plan attr-dict
  }];
  let extraClassDeclaration = [{
    /// Threads of the CTA, each of which counts the tiles of one length.
    static constexpr int64_t kThreads = 1024;
    /// Numbers of a record.
    static constexpr int64_t kRecordWords = 8;
    /// Returns the numbers of a plan with `capacity` records: those of the tiles, the
    /// first one, the sums of warps in three rounds, the tiles of each length, and the
    /// begins of documents and the end of the last one.
    static constexpr int64_t countWords(int64_t capacity) {
      return kRecordWords * (capacity + 1) + 3 * (kThreads / 32) + kThreads +
             capacity + 1;
    }
    /// Returns records for documents that have a quarter of a tile's queries on
    /// average, if not fewer: more tiles would take longer than those that
    /// documents share.
    static constexpr int64_t getCapacity(int64_t rows, int64_t count, int64_t block_m) {
      return 4 * rows * ((count + block_m - 1) / block_m);
    }
  }];
}

def Attn_InOrderOp : Attn_Op<"in_order", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps]> {
  let summary = "says whether numbers in memory decrease nowhere";
  let description = [{
    Looks at `rows` rows of `count` integers each, which lie side by side; a row begins
    `stride` elements after the one before. The result is true if no number is less than
    its left neighbour. All threads of the CTA come to the op together with the same
    operands, share the work, and get the same result.

    Example:

    ```mlir
    func.func @sorted(%ids: !llvm.ptr<1>, %rows: i32, %stride: i64, %count: i32) -> i1 {
      %sorted = attn.in_order %ids[%rows by %stride, %count] of i32
      return %sorted : i1
    }
    ```
  }];
  let arguments = (ins
    Arg<LLVM_PointerInAddressSpace<1>, "the numbers", [MemRead]>:$numbers,
    Arg<I32, "rows of numbers">:$rows,
    Arg<I64, "elements from one row to the next">:$stride,
    Arg<I32, "numbers of a row">:$count,
    Described<TypeAttrOf<AnyTypeOf<[I32, I64]>>, "the type of the numbers">:$element);
  let results = (outs Res<I1, "true if they decrease nowhere">:$ordered);
  let assemblyFormat = [{
    $numbers `[` $rows `by` $stride `,` $count `]` `of` $element attr-dict
  }];
}

def Attn_FindKeyOp : Attn_Op<"find_key", [AttnRequiresSM<80>,
    AttrSizedOperandSegments]> {
  let summary = "looks for a key by a number that queries have too";
  let description = [{
    `keys` has a number for each key, `queries` one for each query, such as the number of
    the document that it is of. A key is like the queries `first` to `last` if its number is
    at least that of the first and at most that of the last one. Of the keys `from` to
    `to - 1`, where numbers outside of the tensor count as its first and its end,

    - `first` gives the first one that is like them, else the first greater one or `to`;
    - `last` gives one past the last one that is like them, else as `first` does;
    - `same` gives `to` if the first and the last query have the same number, else `from`.

    The search needs an order: where numbers of keys or of queries decrease somewhere,
    `first` and `same` give `from`, and `last` gives `to`.

    Memrefs are read at `[indices..., key]` and `[indices..., query]`; whether they are in
    order the kernel finds out. Pointers of global memory are read at the key and the
    query, and `if` says whether they are in order.

    Outside of `attn.elect` and `attn.row_keys` the threads of a warp search together.

    Undefined behaviour: threads of a warp that search together with operands of their
    own; a query outside of the tensor; `first` above `last`; of pointers, a
    key outside of the tensor.

    Example:

    ```mlir
    func.func @find(%ids: memref<2x4096xi32>, %b: index, %from: i32, %to: i32, %first: i32, %last: i32) -> (i32, i32) {
      %begin = attn.find_key first %ids[%b] from %from to %to like %ids[%b] from %first to %last : memref<2x4096xi32>, memref<2x4096xi32> of i32
      %end = attn.find_key last %ids[%b] from %begin to %to like %ids[%b] from %first to %last : memref<2x4096xi32>, memref<2x4096xi32> of i32
      return %begin, %end : i32, i32
    }
    ```
  }];
  let arguments = (ins
    Described<Attn_KeySearchAttr, "which key is looked for">:$search,
    Arg<AnyTypeOf<[AnyMemRef, LLVM_PointerInAddressSpace<1>]>, "the keys' numbers", [MemRead]>:$keys,
    Arg<Variadic<Index>, "where in the memref these are">:$key_indices,
    Arg<I32, "the first key that is looked at">:$from,
    Arg<I32, "one past the last one">:$to,
    Arg<AnyTypeOf<[AnyMemRef, LLVM_PointerInAddressSpace<1>]>, "the queries' numbers", [MemRead]>:$queries,
    Arg<Variadic<Index>, "where in the memref these are">:$query_indices,
    Arg<I32, "the first query">:$first,
    Arg<I32, "the last query">:$last,
    Arg<Optional<I1>, "of pointers, true if the numbers are in order">:$ordered,
    Described<TypeAttrOf<AnyTypeOf<[I32, I64]>>, "the type of the numbers">:$element);
  let results = (outs Res<I32, "the key">:$key);
  let assemblyFormat = [{
    `` $search $keys (`[` $key_indices^ `]`)? `from` $from `to` $to
    `like` $queries (`[` $query_indices^ `]`)? `from` $first `to` $last (`if` $ordered^)?
    attr-dict `:` type($keys) `,` type($queries) `of` $element
  }];
  let hasVerifier = 1;
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_WORKOPS_TD
