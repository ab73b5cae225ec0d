//===- Tcgen05Ops.td - Matrix instructions of one thread ----*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_TCGEN05OPS_TD
#define ATTN_DIALECT_ATTN_IR_TCGEN05OPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/BarrierOps.td"

def Attn_Tcgen05CommitOp : Attn_Op<"tcgen05.commit", [AttnRequiresSM<100>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "arrives when this thread's products are complete";
  let description = [{
    Barrier `index` gets one arrival when all products that the executing thread
    has started before are complete: they have read their operands and written
    their results (PTX ISA, tcgen05.commit). Several commits in a row arrive in
    their order. The thread does not wait.

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
    ```
  }];
  let arguments = (ins
    Arg<Attn_MBarriersType, "the barriers">:$barriers,
    Arg<I32, "which one">:$index);
  let assemblyFormat = "$barriers `[` $index `]` attr-dict `:` type($barriers)";
  let hasVerifier = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_TCGEN05OPS_TD
