//===- ThreadPasses.td - Passes on the code of one thread --*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_TRANSFORMS_THREADPASSES_TD
#define ATTN_DIALECT_ATTN_TRANSFORMS_THREADPASSES_TD

include "mlir/Pass/PassBase.td"

def AttnMoveRarePathsPass : Pass<"attn-move-rare-paths", "::mlir::gpu::GPUModuleOp"> {
  let summary = "Take rare paths out of the loops that end with them";
  let description = [{
    A path that warps hardly ever take (`scf.if` with `attn.leave_loop`, which is
    what `attn-lower-tiles` makes of `attn.rare` with `leave_loop`) cuts a loop's body in two, although
    it does not run: no instruction moves across its branch. Where only
    arithmetic follows it in the body of an `scf.for`, the loop becomes one that
    is left where the path is to be taken:

    ```
    do {
      do {
        body; arithmetic on what the body has
      } while (more blocks && the path is not to be taken);
      if (the path is to be taken)
        path; arithmetic on what the path has
    } while (more blocks);
    ```

    The inner loop has a single branch, at its end. Iterations are the same, and
    those of other warps too: a warp that leaves comes back to the same
    instructions.

    Other paths stay where they are.

    Example: test/doc/attn-move-rare-paths.mlir
  }];
  let statistics = [
    Statistic<"numMoved", "moved", "Number of paths taken out of their loops">,
    Statistic<"numKept", "kept", "Number of paths left where they were">
  ];
  let dependentDialects = ["::mlir::scf::SCFDialect",
    "::mlir::arith::ArithDialect"];
}

#endif // ATTN_DIALECT_ATTN_TRANSFORMS_THREADPASSES_TD
