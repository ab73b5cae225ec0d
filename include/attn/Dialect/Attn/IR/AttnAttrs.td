//===- AttnAttrs.td - Attributes of the attn dialect --------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnEnums.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/AttnPlans.td"
include "attn/Dialect/Attn/IR/AttnTargetAttr.td"
include "attn/Problem/MaskEnums.td"
include "mlir/IR/TensorEncoding.td"

//===----------------------------------------------------------------------===//
// The problem
//===----------------------------------------------------------------------===//

def Attn_MaskAttr : Attn_Attr<"Mask", "mask"> {
  let summary = "which keys each query attends to";
  let description = [{
    With `off = 0` for `top_left` and `off = Nk - Nq` for `bottom_right`,
    query `i` attends to key `j` when

    - `none`: always;
    - `causal`: `j <= i + off`;
    - `window`: `i + off - left <= j <= i + off + right`, where a negative
      `left` or `right` removes that bound.

    Example: `#attn.mask<kind = window, align = bottom_right, left = 1024, right = 0>`.
  }];
  let parameters = (ins
    EnumParameter<Attn_MaskKind>:$kind,
    DefaultValuedParameter<"::mlir::attn::MaskAlign",
        "::mlir::attn::MaskAlign::TopLeft">:$align,
    DefaultValuedParameter<"int64_t", "-1">:$left,
    DefaultValuedParameter<"int64_t", "-1">:$right);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True if keys right of the diagonal band are masked.
    bool hasRight() const;
    /// True if keys left of the diagonal band are masked.
    bool hasLeft() const;
    /// The band's upper bound of j - i - off; only if hasRight().
    int64_t rightBound() const;
    /// The band's lower bound of j - i - off; only if hasLeft().
    int64_t leftBound() const;
  }];
}

//===----------------------------------------------------------------------===//
// How the loop over keys and its softmax run
//===----------------------------------------------------------------------===//

def Attn_SoftmaxAttr : Attn_Attr<"Softmax", "softmax"> {
  let summary = "how a step of the online softmax keeps maxima and computes powers";
  let description = [{
    `policy` says how the running maximum m is kept; `attn.online_softmax` has the
    formula. `exact` is that formula. The others keep a standing maximum that lies at
    most a bound below the true one, which the final division cancels:

    - `threshold`: m, l and o change only if some row's maximum grew by more than
      `growth` powers of two;
    - `lagged`: the same, but p is computed with the standing maximum while the
      maximum of the block is found; where some row's has grown, the exact step is
      done after all. p does not wait for the maximum;
    - `optimistic`: in blocks without mask the maximum is not computed at all; a vote
      on the partial sums of p, which must stay below `limit`, tells whether the exact
      step has to be done after all.

    The other parameters are

    - `offset`, 0 by default: powers of two by which a new maximum stands below the
      largest exponent, so that p reaches up to 2^offset. 8-bit probabilities make use
      of that: below their smallest number they are 0;
    - `growth`, 8 by default: powers of two by which a maximum may grow before it is
      renewed;
    - `limit`, 16 by default: the partial sums from which on a bet is lost;
    - `polynomial`, 0 by default: how many of every 16 probabilities a polynomial
      computes (`attn.exp2`);
    - `whole`: maxima are whole numbers, the least that are not below what the formula
      gives. Powers of the same score then have the same digits whatever keys stand
      before it, so that narrow ones are rounded alike in all runs of keys, and factors
      are powers of two;
    - `slack`, 0 by default: how much higher, in powers of two, a maximum stands in
      rows that no key decides, where the step knows which these are (`keys` of
      `attn.online_softmax`).

    Example: `#attn.softmax<lagged, growth = 7>`, `#attn.softmax<exact, whole>`.
  }];
  let parameters = (ins
    EnumParameter<Attn_SoftmaxPolicy>:$policy,
    APFloatParameter<"powers of two below the largest exponent">:$offset,
    APFloatParameter<"powers of two before a maximum is renewed">:$growth,
    APFloatParameter<"partial sums from which on a bet is lost">:$limit,
    AttrParameter<"int64_t", "of every 16 probabilities">:$polynomial,
    AttrParameter<"bool", "maxima are whole numbers">:$whole,
    APFloatParameter<"powers of two by which maxima of rows without a deciding key stand higher">:$slack);
  let builders = [
    // The defaults of all parameters but the policy.
    AttrBuilder<(ins "::mlir::attn::SoftmaxPolicy":$policy)>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Attn_KVOrderAttr : Attn_Attr<"KVOrder", "kv_order"> {
  let summary = "in which order a loop over keys starts and awaits its work";
  let description = [{
    Each part is optional:

    - `qk_ahead`: QK of the next block starts before PV of this one;
    - `pv_behind`, which needs `qk_ahead`: PV is awaited with QK of the block after
      the next one;
    - `rescore`, which needs `qk_ahead` and excludes `pv_behind`: lost bets are
      corrected, or QK is multiplied once more;
    - `turns N`, which needs `qk_ahead`: warpgroups start products in turn, by the
      named barriers from N on;
    - `first [n, ...]`, which needs `qk_ahead`: the keys of the first block that are
      multiplied, one number for all warpgroups or one for each;
    - `second right`, `second interior` or `second left`, which needs `first`: the
      phase of the block after the first one;
    - `above_wait`, which excludes `qk_ahead`: the first blocks' copies start above the
      wait before the loop.

    `attn.kv_loop` prints the parts without brackets, and says what each of them does.

    Example: `#attn.kv_order<qk_ahead rescore turns 1 first [64, 128] second interior>`.
  }];
  let parameters = (ins
    AttrParameter<"bool", "QK of the next block starts before PV of this one">:$qk_ahead,
    AttrParameter<"bool", "PV is awaited with QK of the block after the next one">:$pv_behind,
    AttrParameter<"bool", "lost bets are corrected, or QK is multiplied once more">:$rescore,
    AttrParameter<"::std::optional<uint64_t>", "named barrier of the first warpgroup, where they start products in turn">:$turns,
    OptionalArrayRefParameter<"int64_t", "keys of the first block that are multiplied, for all warpgroups or for each">:$first,
    AttrParameter<"::std::optional<::mlir::attn::KVPhase>", "phase of the block after the first one">:$second,
    AttrParameter<"bool", "the first blocks' copies start above the wait before the loop">:$above_wait);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The parameters, to change some of them.
    struct Parts {
      bool qkAhead = false, pvBehind = false, rescore = false;
      std::optional<uint64_t> turns;
      ::llvm::SmallVector<int64_t> first;
      std::optional<::mlir::attn::KVPhase> second;
      bool aboveWait = false;
    };
    /// Returns the parts of an order, none of a null one.
    static Parts getParts(::mlir::attn::KVOrderAttr order);
    /// Reads the parts as attn.kv_loop has them; null for none.
    static ::mlir::ParseResult parseParts(::mlir::AsmParser &parser, ::mlir::attn::KVOrderAttr &order);
    /// Prints the parts in that form.
    void printParts(::llvm::raw_ostream &os) const;
    /// Returns the order of these parts, null if there is none.
    static ::mlir::attn::KVOrderAttr get(::mlir::MLIRContext *context, const Parts &parts);
  }];
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

def Attn_LaunchAttr : Attn_Attr<"Launch", "launch"> {
  let summary = "how a host launches a kernel";
  let description = [{
    One step of a launch record (docs/LaunchRecord.md), the attribute
    `attn.launch` of a kernel. Its parameters have the names and the meanings of
    the record's fields, and what the record's reader refuses is an error here.
    The kernel's name is that of the function, and its shared memory stands in
    `attn.shared_bytes`. The kernels of one `gpu.module` are the steps of one
    record, in their order; tensors and workspaces of one name are the same.

    Example:

    ```
    #attn.launch<chip = "sm_80", ptx = 70, grid = ["ceildiv(x.dim0, 128)", "1", "1"], block = [128, 1, 1],
      tensors = [{access = "write", dtype = "f32", name = "x", shape = array<i64: -1>, strides = array<i64: 1>} ],
      args = [{kind = "pointer", tensor = "x"}, {dim = 0 : i64, kind = "size", tensor = "x", type = "i32"} ]>
    ```
  }];
  let parameters = (ins
    StringRefParameter<"a target's name">:$chip,
    "int64_t":$ptx,
    AttrParameter<"::mlir::ArrayAttr", "CTAs in x, y and z, as expressions">:$grid,
    AttrParameter<"::mlir::DenseI64ArrayAttr", "threads of a CTA in x, y and z">:$block,
    OptionalParameter<"::mlir::DenseI64ArrayAttr", "CTAs of a cluster; one without it">:$cluster,
    OptionalParameter<"::mlir::StringAttr", "tiles that the CTAs deal among themselves, as an expression">:$tiles,
    AttrParameter<"::mlir::ArrayAttr", "dictionaries of the tensors">:$tensors,
    AttrParameter<"::mlir::ArrayAttr", "dictionaries of the kernel's parameters">:$args,
    OptionalParameter<"::mlir::ArrayAttr", "dictionaries of the workspaces">:$workspaces,
    DefaultValuedParameter<"bool", "false">:$cooperative,
    DefaultValuedParameter<"bool", "false">:$programmatic,
    OptionalParameter<"::mlir::DictionaryAttr", "the attention problem">:$problem);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The record with this as its only step, the kernel `kernel` that takes
    /// `sharedBytes` of dynamic shared memory. Errors are those of
    /// parseLaunchRecord.
    ::llvm::Expected<::mlir::attn::LaunchRecord>
    getRecord(::llvm::StringRef kernel, int64_t sharedBytes) const;
    /// The same with other parameters of the kernel.
    LaunchAttr withArgs(::mlir::ArrayAttr args) const;
  }];
}

//===----------------------------------------------------------------------===//
// Layouts of register tiles
//===----------------------------------------------------------------------===//

class Attn_TileLayoutAttr<string name, string mnemonic, list<Trait> traits = []>
    : Attn_Attr<name, mnemonic, traits # [
        DeclareAttrInterfaceMethods<Attn_TileLayoutInterface>,
        DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]>;

def Attn_AutoLayoutAttr : Attn_Attr<"AutoLayout", "auto"> {
  let summary = "a layout that attn-infer-layouts will choose";
  let description = [{
    Stands for the layout of a register tile or a buffer until
    `attn-infer-layouts` has chosen one. After that pass no `#attn.auto` is left.
  }];
}

def Attn_MmaLayoutAttr : Attn_TileLayoutAttr<"MmaLayout", "mma"> {
  let summary = "accumulator fragments of mma.sync m16n8, tiled over warps";
  let description = [{
    The accumulator of `mma.sync.m16n8k*` (PTX ISA, matrix fragments for
    m16n8k16): in a 16 x 8 unit, lane `l` holds row `l / 4` and `l / 4 + 8`,
    columns `2 (l % 4)` and `2 (l % 4) + 1`. `warps` is the grid of warps over
    (rows, columns); the tile is cut into one contiguous piece for each warp.
    Both are powers of two, or there is one warp along the columns and any number
    along the rows, with 16 rows each.

    With `copies = c` there are c times as many warps, and each grid of them holds
    all of the tile: warp `w + copy * (rows * columns)` has what warp `w` has. What
    warps that divide columns have to know together, such as a softmax, is in this
    layout in each of them.

    With `column_runs` a warp's columns are one run and not 8 of every `8 *
    columns`, as warpgroups have them that divide the columns of an `attn.wgmma`. Each
    has a power of two of them.

    With `column_quads` a warp has 16 of every `16 * columns` columns, and lane `l`
    columns `4 (l % 4)` to `4 (l % 4) + 3` of them: of two units of 8 columns the first
    one has the even columns, the second one the odd ones, as products with 8-bit values
    leave them (`attn.mma`).

    Example: `tensor<128x64xf32, #attn.mma<warps = [4, 1]>>` has 64 registers a
    thread: each warp owns 32 rows. `tensor<32x64xf32, #attn.mma<warps = [2, 1],
    copies = 4>>` has 32: of 8 warps four own the first 16 rows.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$warps,
    DefaultValuedParameter<"int64_t", "1">:$copies,
    DefaultValuedParameter<"bool", "false">:$column_runs,
    DefaultValuedParameter<"bool", "false">:$column_quads);
  let assemblyFormat = [{
    `<` `warps` `=` `[` $warps `]`
    (`,` struct($copies, $column_runs, $column_quads)^)? `>`
  }];
  let builders = [AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$warps,
                                   CArg<"int64_t", "1">:$copies), [{
    return $_get($_ctxt, warps, copies, /*columnRuns=*/false,
                 /*columnQuads=*/false);
  }]>,
  AttrBuilder<(ins "::llvm::ArrayRef<int64_t>":$warps, "int64_t":$copies,
                   "bool":$columnRuns), [{
    return $_get($_ctxt, warps, copies, columnRuns, /*columnQuads=*/false);
  }]>];
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The warps as the layout library takes them.
    ::mlir::attn::WarpGrid getGrid() const;
  }];
}

/// The shape of a TMEM load or store, spelled as in #nvvm.tcgen05_ldst_shape.
def Attn_TmemShapeParameter : AttrOrTypeParameter<"::mlir::attn::TmemShape",
    "the instruction's shape"> {
  let parser = "::mlir::attn::parseTmemShape($_parser)";
  let printer = "$_printer << \"shape_\" << ::mlir::attn::stringifyTmemShape($_self)";
}

def Attn_TmemRegsLayoutAttr : Attn_TileLayoutAttr<"TmemRegsLayout", "tmem_regs"> {
  let summary = "the registers of tcgen05.ld and tcgen05.st";
  let description = [{
    A tile of 128 or 64 rows as a warpgroup holds it that has loaded words of 32
    bits from tensor memory with a shape of `tcgen05.ld` (PTX ISA, "Data Movement
    Shape"): `shape_32x32b`, `shape_16x64b`, `shape_16x128b`, `shape_16x256b` or
    `shape_16x32bx2`. Warp `w` has the rows from `32 w` or `16 w` on. With
    `shape_32x32b`, which needs 128 rows, each thread has a whole row; with
    `shape_16x256b` and 64 rows the layout is that of `#attn.mma`.

    `warps` is the grid of warps over (rows, columns). Only four warps reach all
    lanes of tensor memory, so it is [4, 1]; or, with `shape_32x32b`, [2, 2] for 64
    rows in halves (`#attn.tmem`): two threads have 64 of each 128 elements of a row.

    Example: `tensor<128x64xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>` has
    64 registers a thread.
  }];
  let parameters = (ins
    Attn_TmemShapeParameter:$shape,
    ArrayRefParameter<"int64_t">:$warps);
  let assemblyFormat = "`<` $shape `,` `warps` `=` `[` $warps `]` `>`";
  let genVerifyDecl = 1;
}

def Attn_OperandLayoutAttr : Attn_TileLayoutAttr<"OperandLayout", "operand"> {
  let summary = "operand fragments of the matrix instruction of a layout";
  let description = [{
    Operand `index` (0: A, M x K; 1: B, K x N) of the matrix instruction whose
    accumulator layout is `parent`. All warps that share rows (A) or columns
    (B) hold copies.

    With `depth_quads` an A of 16 bits has the contraction in the order in which
    rows of 8-bit elements come from shared memory: lane `l` holds elements
    `4 (l % 4)` to `4 (l % 4) + 3` of every 16.

    Example: `tensor<128x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>`.
  }];
  let parameters = (ins
    "int64_t":$index,
    AttrParameter<"::mlir::Attribute", "accumulator layout">:$parent,
    DefaultValuedParameter<"bool", "false">:$depth_quads);
  let assemblyFormat = [{
    `<` `index` `=` $index `,` `parent` `=` $parent
    (`,` struct($depth_quads)^)? `>`
  }];
  let builders = [AttrBuilder<(ins "int64_t":$index,
                                   "::mlir::Attribute":$parent), [{
    return $_get($_ctxt, index, parent, /*depthQuads=*/false);
  }]>];
  let genVerifyDecl = 1;
}

def Attn_SliceLayoutAttr : Attn_TileLayoutAttr<"SliceLayout", "slice"> {
  let summary = "the layout of a tile's row or column values";
  let description = [{
    What is left of `parent` when dimension `dim` is dropped: the layout of the
    result of a reduction along `dim`, and of the operand of a broadcast along
    it. Threads that differ only along `dim` hold copies.

    Example: `tensor<128xf32, #attn.slice<dim = 1, parent = #attn.mma<warps = [4, 1]>>>`.
  }];
  let parameters = (ins
    "int64_t":$dim,
    AttrParameter<"::mlir::Attribute", "#attn.mma or #attn.tmem_regs, the layout of the rank-2 tile">:$parent);
  let assemblyFormat = "`<` `dim` `=` $dim `,` `parent` `=` $parent `>`";
  let genVerifyDecl = 1;
}

def Attn_PartialLayoutAttr : Attn_TileLayoutAttr<"PartialLayout", "partial"> {
  let summary = "the layout of partial row sums, one column for each owner";
  let description = [{
    Rows as in `parent`; one column for each group of threads that owns
    different columns of the same row, so each thread holds one value a row.
    The extent along dimension 1 is the number of such groups (4 for
    `#attn.mma<warps = [4, 1]>`, 1 for `shape_32x32b` of `#attn.tmem_regs`, 2 for
    `shape_16x64b` and `shape_16x32bx2`, 4 for the others). With `#attn.auto` as parent,
    `attn-infer-layouts` chooses it.

    Example: `tensor<128x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>`.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::Attribute", "#attn.mma or #attn.tmem_regs, the layout of the rank-2 tile, or #attn.auto">:$parent);
  let assemblyFormat = "`<` `parent` `=` $parent `>`";
  let genVerifyDecl = 1;
}

def Attn_RunsLayoutAttr : Attn_TileLayoutAttr<"RunsLayout", "runs"> {
  let summary = "rows of accumulator fragments in runs of 16 bytes";
  let description = [{
    Rows as in `parent`, which has one warp along the columns, or whose warps
    have runs of the columns, which they keep. The four lanes
    that share a row hold runs of 16 bytes of it, one after the other: lane `l`
    holds run `l % 4` of each 64 bytes. Reached from `parent` by exchanges in
    groups of four lanes, and stored with 16 bytes a lane.

    Example: `tensor<128x64xf16, #attn.runs<parent = #attn.mma<warps = [4, 1]>>>`.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::Attribute", "#attn.mma, the layout of the tile">:$parent);
  let assemblyFormat = "`<` `parent` `=` $parent `>`";
  let genVerifyDecl = 1;
}

def Attn_BlockedLayoutAttr : Attn_TileLayoutAttr<"BlockedLayout", "blocked"> {
  let summary = "rectangles of elements, dealt to threads in order";
  let description = [{
    Each thread holds `per_thread` elements along each dimension; lanes, then
    warps, fill the tile in `order` (the fastest dimension first), along each
    dimension at most the power of two that divides what is left of the extent;
    the rest of the tile is repeated over registers, and threads that find no
    room hold copies.

    Example: `tensor<64x64xf16, #attn.blocked<per_thread = [1, 8], warps = 4, order = [1, 0]>>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$perThread,
    "int64_t":$warps,
    ArrayRefParameter<"int64_t">:$order);
  let assemblyFormat = [{
    `<` `per_thread` `=` `[` $perThread `]` `,` `warps` `=` $warps `,`
    `order` `=` `[` $order `]` `>`
  }];
  let genVerifyDecl = 1;
}

//===----------------------------------------------------------------------===//
// Layouts of buffers
//===----------------------------------------------------------------------===//

/// A layout of buffers in shared memory, or one that answers `method` alone.
class Attn_BufferLayoutAttr<string name, string mnemonic, string method = "toSharedLayout">
    : Attn_Attr<name, mnemonic, [
        DeclareAttrInterfaceMethods<Attn_BufferLayoutInterface, [method]>]>;

def Attn_SwizzledLayoutAttr : Attn_BufferLayoutAttr<"SwizzledLayout", "swizzled"> {
  let summary = "rows in shared memory, 16-byte chunks permuted by the row";
  let description = [{
    A row-major rows x columns slot, cut along the columns into spans of `span`
    bytes (128, 64 or 32), which follow each other; inside a span the 16-byte
    chunks of a row are permuted by XOR with bits of the row, as TMA's swizzle
    modes do. `span = 0`: plain rows, padded to an odd number of chunks.

    With `column_quads` the 16-bit elements of every 16 columns are in another
    order: column 4t + 2h + i (t < 4; h, i < 2) lies where column 8h + 2t + i would,
    so that `ldmatrix` gives thread t of those that share a row four columns in a
    row. It is the order of operand `a` of an `attn.mma` beside 8-bit elements whose
    contraction is contiguous.

    Example: `!attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>`.
  }];
  let parameters = (ins
    "int64_t":$span,
    DefaultValuedParameter<"bool", "false">:$column_quads);
  let assemblyFormat = [{
    `<` `span` `=` $span (`,` `column_quads` `=` $column_quads^)? `>`
  }];
  let builders = [
    AttrBuilder<(ins "int64_t":$span), [{
      return $_get($_ctxt, span, /*columnQuads=*/false);
    }]>
  ];
  let genVerifyDecl = 1;
}

def Attn_RowLayoutAttr : Attn_BufferLayoutAttr<"RowLayout", "rows"> {
  let summary = "plain rows in shared memory";
  let description = [{
    Row-major, without padding or permutation. Rank 1 or 2.

    Example: `!attn.buffer<128xf32, #attn.rows, shared>`.
  }];
}

def Attn_TransposedLayoutAttr
    : Attn_BufferLayoutAttr<"TransposedLayout", "transposed"> {
  let summary = "the two dimensions of another layout exchanged";
  let description = [{
    Element (i, j) lies where `inner` puts element (j, i).

    Example: `#attn.transposed<#attn.swizzled<span = 128>>`.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::Attribute", "layout of the untransposed slot">:$inner);
  let assemblyFormat = "`<` $inner `>`";
  let genVerifyDecl = 1;
}

def Attn_TmemLayoutAttr
    : Attn_BufferLayoutAttr<"TmemLayout", "tmem", "toTensorMemoryLayout"> {
  let summary = "rows in the lanes of tensor memory";
  let description = [{
    A slot of `m` rows in tensor memory, which has 128 lanes of 512 columns of 32
    bits, where `attn.tcgen05.mma` with M = `m` has its accumulator and its operand
    `a` (PTX ISA, "Data path layout organization"). With `m = 128` row r is lane r;
    with `m = 64` it is lane `32 (r / 16) + r % 16`. Elements of 32 bits take a
    column each; those of 16 bits are packed, two neighbours in a column, as operand
    `a` is.

    With `halves` a slot has the 64 rows that a CTA has of an accumulator of M = 128
    of a pair. Of each 128 elements of a row the first 64 are in lane r, and the
    others in lane `64 + r` of the same columns.

    Examples: `!attn.buffer<128x128xf16, #attn.tmem<m = 128>, tmem>` has 64 columns,
    and so has `!attn.buffer<64x128xf32, #attn.tmem<m = 64, halves = true>, tmem>`.
  }];
  let parameters = (ins "int64_t":$m,
    DefaultValuedParameter<"bool", "false">:$halves);
  let assemblyFormat = "`<` `m` `=` $m (`,` struct($halves)^)? `>`";
  let builders = [AttrBuilder<(ins "int64_t":$m), [{
    return $_get($_ctxt, m, /*halves=*/false);
  }]>];
  let genVerifyDecl = 1;
}

def Attn_FieldAttr : Attn_Attr<"Field", "field"> {
  let summary = "a name for columns of an allocation of tensor memory";
  let description = [{
    `columns` columns of 32 bits from column `first` of each slot of an
    `attn.tmem_alloc` on. Fields may overlap: they are the ways to see the same
    columns, one after the other. `attn.tmem.field` makes a view of one.

    Example: `#attn.field<"p", 64, 64>`.
  }];
  let parameters = (ins
    StringRefParameter<"its name in the allocation">:$name,
    "int64_t":$first,
    "int64_t":$columns);
  let assemblyFormat = "`<` $name `,` $first `,` $columns `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getEnd() const { return getFirst() + getColumns(); }
    /// True if the two have columns in common.
    bool overlaps(FieldAttr other) const {
      return getFirst() < other.getEnd() && other.getFirst() < getEnd();
    }
  }];
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

def Attn_RoleAttr : Attn_Attr<"Role", "role"> {
  let summary = "one station of a channel's cycle";
  let description = [{
    Who acquires and releases slots in this role, and the signal of its release.
    Its participants are the partitions named behind `in`, or the one that is
    called as the role is. Each of them comes to every slot, and a slot is handed
    on when all have released it. A partition may have several roles of one
    channel: its elected thread may load what all of its warps read.

    With `parts` the role hands a slot on in parts, one by one, each with
    mbarriers of its own. The role after it acquires these parts, and may itself
    hand the slot on in other parts or as a whole (`attn.channel.split`,
    `attn.channel.join`). So the rows of a warpgroup can be awaited, or free
    again, before those of another one.

    - `arrive`: one lane of each warp of the participants arrives (so the count
      is the number of their warps);
    - `tx`: the slot is complete when the bytes of the copies started for it
      have arrived;
    - `commit`: the slot is complete when the products that the releasing thread
      has started are (`attn.tcgen05.commit`). One thread of each participant
      releases, the one that started the products;
    - `copies`: the slot is complete when all copies are that the threads of the
      participants started before they released it (`attn.cp_async.arrive`). They go
      on without waiting.

    Example: `#attn.role<"producer", tx>`, `#attn.role<"loader" in ["consumer"], tx>`,
    `#attn.role<"softmax", arrive, parts = ["front", "back"]>`,
    `#attn.role<"mma", commit>`, `#attn.role<"load", copies>`.
  }];
  let parameters = (ins
    StringRefParameter<"its name in the channel">:$name,
    EnumParameter<Attn_SignalKind>:$signal,
    ArrayRefParameter<"::mlir::StringAttr", "the partitions that take part">:$partitions,
    OptionalArrayRefParameter<"::mlir::StringAttr", "names of the parts in which it hands slots on; without them as a whole">:$parts);
  let builders = [
    // A role of the partition of its name.
    AttrBuilder<(ins "::llvm::StringRef":$name,
                     "::mlir::attn::SignalKind":$signal), [{
      return $_get($_ctxt, name, signal,
                   ::llvm::ArrayRef(::mlir::StringAttr::get($_ctxt, name)),
                   ::llvm::ArrayRef<::mlir::StringAttr>());
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// True if the partition `name` takes part.
    bool hasPartition(::llvm::StringRef name) const;
    /// How often the role releases a slot: 1 without parts.
    unsigned getNumParts() const {
      return getParts().empty() ? 1 : getParts().size();
    }
  }];
}

include "attn/Dialect/Attn/IR/AttnCGAAttr.td"

#endif // ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
