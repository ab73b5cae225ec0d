//===- MmaOps.td - Matrix instructions ----------------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_MMAOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_MMAOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Attn_MmaOperand : AnyTypeOf<[AnyRankedTensor, Attn_BufferType],
    "register tile or buffer">;

let opDocGroup = Attn_ProductGroup in {

def Attn_MmaOp : Attn_Op<"mma", [
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks", "getLayoutAnchors", "getOperandLayout"]>,
    DeclareOpInterfaceMethods<Attn_ArchOpInterface>,
    DeclareOpInterfaceMethods<Attn_ProductOpInterface>,
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
    AllTypesMatch<["c", "result"]>]> {
  let summary = "matrix multiply-accumulate with mma.sync";
  let description = [{
    `result = a * b + c` for tiles a (M x K), b (K x N), c (M x N), with
    `mma.sync` fragments (PTX ISA, mma). An operand is a register tile in the
    instruction's operand layout, or a buffer, from which fragments are read
    k-step by k-step just before their use (`ldmatrix` where the layouts allow).
    A K x N view of a buffer that holds N x K is an `attn.transpose`.

    With `column` the product has the columns of c from there on, `result` is c
    elsewhere: a wide accumulator takes the products of operands that come in
    slices of its columns. In the fragments of a grid of warps the columns of c
    and of each slice are whole rounds of its warps, 8 columns for each.

    With `depth_parts = n` c has n times the columns of b: run i of them takes the
    products of k-steps (16 of the contraction) i, i + n, and so on. Where n warps
    along the columns have a run each (`column_runs` of `#attn.mma`), they divide
    the contraction; the sum of the runs is the product of a and b.

    Beside an a of f16 a buffer b may hold 8-bit floats, which become f16 on their
    way; f16 holds them exactly. Where the contraction is contiguous in memory (b is
    an `attn.transpose`), a has the layout `#attn.operand` with `depth_quads`, or as
    a buffer that of `#attn.swizzled` with `column_quads`; where the columns are, the
    result has that of `#attn.mma` with `column_quads`.

    With `interleaved` a and b are 8-bit floats, b is a buffer whose columns are
    contiguous, and the contraction is in two orders: of every 16, column `4t + 2u +
    i` of a belongs to row `8u + 2t + i` of b (t < 4; u, i < 2), as
    `attn.narrow_operand` makes a of an accumulator. The result has the layout
    `#attn.mma` with `column_quads`. Without it the contraction of such a b has to be
    contiguous.

    Products of 8 bits need sm_89, the others sm_80.

    Products are exact; sums are in f32 (f16 for f16 accumulators), in an order
    that PTX does not specify. With `f16_sums` the products of f16 operands are
    summed in f16, from zero, and their sum is added to c, which is f32.

    Example:

    ```mlir
    func.func @qk(%q: !attn.buffer<128x64xf16, #attn.auto, shared>, %k: !attn.buffer<32x64xf16, #attn.auto, shared>) -> tensor<128x32xf32, #attn.auto> {
      %zero = arith.constant dense<0.0> : tensor<128x32xf32, #attn.auto>
      %kt = attn.transpose %k : !attn.buffer<32x64xf16, #attn.auto, shared> -> !attn.buffer<64x32xf16, #attn.auto, shared>
      %s = attn.mma %q, %kt, %zero : !attn.buffer<128x64xf16, #attn.auto, shared>, !attn.buffer<64x32xf16, #attn.auto, shared>, tensor<128x32xf32, #attn.auto>
      return %s : tensor<128x32xf32, #attn.auto>
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_MmaOperand, "M x K">:$a,
    Arg<Attn_MmaOperand, "K x N">:$b,
    Arg<AnyRankedTensor, "M x N, the accumulator">:$c,
    Described<OptionalAttr<I64Attr>, "column of c that the first one of b belongs to">:$column,
    Described<OptionalAttr<I64Attr>, "runs of columns of c that divide the contraction">:$depth_parts,
    Described<UnitAttr, "sums of f16, which are added to c">:$f16_sums,
    Described<UnitAttr, "the columns of a are in the order of attn.narrow_operand">:$interleaved);
  let results = (outs Res<AnyRankedTensor, "M x N">:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $c attr-dict `:` type($a) `,` type($b) `,` type($c)
  }];
  let builders = [OpBuilder<(ins "::mlir::Type":$type, "::mlir::Value":$a,
    "::mlir::Value":$b, "::mlir::Value":$c), [{
      build($_builder, $_state, type, a, b, c, /*column=*/nullptr,
            /*depth_parts=*/nullptr, /*f16_sums=*/nullptr,
            /*interleaved=*/nullptr);
    }]>];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// True if b is a buffer of 8-bit floats that become of the type of a.
    bool widensB();
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_MMAOPS_TD
