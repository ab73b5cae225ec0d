//===- MaskPasses.td - Passes that read masks ---------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_MASKPASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_MASKPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnReadMasksPass : Pass<"attn-read-masks", "::mlir::ModuleOp"> {
  let summary = "Find in mask_mod what masks and block bounds say";
  let description = [{
    Reads the integer arithmetic of each `mask_mod` as a formula of comparisons that are
    linear in query, key, batch and head, with quotients by constants, minima, maxima,
    absolute values and captured tensors that no query or key indexes. Then

    - conditions that are one of others and bound the key less the query by constants
      become bounds of `mask`, where it can say them, and leave `mask_mod`. A `mask_mod`
      without conditions goes;
    - of the others the region `key_range` gets an interval of keys for each tile of
      queries: chunks, prefixes, lengths of sequences, windows that `mask` has no name
      for, and what conjunctions and disjunctions of them leave. Alternatives give the
      interval that holds all of them. They stay in `mask_mod`, since a block may hold
      keys of both kinds; `full_begin` and `full_end` say which blocks do not;
    - equal numbers of a query and a key in captured tensors, such as those of the
      documents that they are of, give what `attn.find_key` finds.

    Results have the same bits under the same plan, where its softmax is `exact`, or
    `threshold` and all rows of tiles exist (others bet in blocks without a test), and keys are in one run
    or in runs of a fixed number, and a tile never gets more blocks.
    Whatever captured tensors hold, `key_range` is right: numbers with which arithmetic
    might overflow give all keys, and so do numbers of documents that decrease.

    Remarks of the category `attn.read-masks` say for each condition where it went, or
    why it stays: `mask`, `key-range`, and the missed `kept`.

    Not read, and kept: floats, the score, bits of integers, remainders, quotients by
    what is no constant, other uses of tensors that a query or a key indexes, operations
    with regions. An attention that has a `key_range` is left as it is.

    Example: test/doc/attn-read-masks.mlir
  }];
  let options = [
    Option<"bounds", "bounds", "bool", "true",
           "Move conditions to the attribute mask.">,
    Option<"range", "range", "bool", "true",
           "Write the region key_range.">
  ];
  let statistics = [
    Statistic<"numMoved", "moved", "Number of conditions that became bounds of a mask">,
    Statistic<"numRanges", "ranges", "Number of attentions that got a key_range">];
  let dependentDialects = ["::mlir::attn::AttnDialect", "::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect"];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_MASKPASSES_TD
