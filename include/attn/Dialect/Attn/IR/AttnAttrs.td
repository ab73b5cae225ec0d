//===- AttnAttrs.td - Attributes of the attn dialect --------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnEnums.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/AttnTargetAttr.td"
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

    Example: `tensor<128x64xf32, #attn.mma<warps = [4, 1]>>` has 64 registers a
    thread: each warp owns 32 rows.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$warps);
  let assemblyFormat = "`<` `warps` `=` `[` $warps `]` `>`";
  let genVerifyDecl = 1;
}

def Attn_OperandLayoutAttr : Attn_TileLayoutAttr<"OperandLayout", "operand"> {
  let summary = "operand fragments of the matrix instruction of a layout";
  let description = [{
    Operand `index` (0: A, M x K; 1: B, K x N) of the matrix instruction whose
    accumulator layout is `parent`. All warps that share rows (A) or columns
    (B) hold copies.

    Example: `tensor<128x64xf16, #attn.operand<index = 0, parent = #attn.mma<warps = [4, 1]>>>`.
  }];
  let parameters = (ins
    "int64_t":$index,
    AttrParameter<"::mlir::Attribute", "accumulator layout">:$parent);
  let assemblyFormat = "`<` `index` `=` $index `,` `parent` `=` $parent `>`";
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
    AttrParameter<"::mlir::Attribute", "#attn.mma, the layout of the rank-2 tile">:$parent);
  let assemblyFormat = "`<` `dim` `=` $dim `,` `parent` `=` $parent `>`";
  let genVerifyDecl = 1;
}

def Attn_PartialLayoutAttr : Attn_TileLayoutAttr<"PartialLayout", "partial"> {
  let summary = "the layout of partial row sums, one column for each owner";
  let description = [{
    Rows as in `parent`; one column for each group of threads that owns
    different columns of the same row, so each thread holds one value a row.
    The extent along dimension 1 is the number of such groups (4 for
    `#attn.mma<warps = [4, 1]>`).

    Example: `tensor<128x4xf32, #attn.partial<parent = #attn.mma<warps = [4, 1]>>>`.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::Attribute", "#attn.mma, the layout of the rank-2 tile">:$parent);
  let assemblyFormat = "`<` `parent` `=` $parent `>`";
  let genVerifyDecl = 1;
}

def Attn_RunsLayoutAttr : Attn_TileLayoutAttr<"RunsLayout", "runs"> {
  let summary = "rows of accumulator fragments in runs of 16 bytes";
  let description = [{
    Rows as in `parent`, which has one warp along the columns. The four lanes
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

class Attn_BufferLayoutAttr<string name, string mnemonic, list<Trait> traits = []>
    : Attn_Attr<name, mnemonic, traits # [
        DeclareAttrInterfaceMethods<Attn_BufferLayoutInterface>]>;

def Attn_SwizzledLayoutAttr : Attn_BufferLayoutAttr<"SwizzledLayout", "swizzled"> {
  let summary = "rows in shared memory, 16-byte chunks permuted by the row";
  let description = [{
    A row-major rows x columns slot, cut along the columns into spans of `span`
    bytes (128, 64 or 32), which follow each other; inside a span the 16-byte
    chunks of a row are permuted by XOR with bits of the row, as TMA's swizzle
    modes do. `span = 0`: plain rows, padded to an odd number of chunks.

    Example: `!attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>`.
  }];
  let parameters = (ins "int64_t":$span);
  let assemblyFormat = "`<` `span` `=` $span `>`";
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

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

def Attn_RoleAttr : Attn_Attr<"Role", "role"> {
  let summary = "one station of a channel's cycle";
  let description = [{
    The partition that acquires and releases slots in this role, and the signal
    of its release. A partition that has a second role of one channel calls it
    `partition.name`: its elected thread may load what all of its warps read.

    - `arrive`: one lane of each of its warps arrives (so the count is the
      number of the partition's warps);
    - `tx`: the slot is complete when the bytes of the copies started for it
      have arrived.

    Example: `#attn.role<"producer", tx>`.
  }];
  let parameters = (ins
    StringRefParameter<"name of a partition">:$partition,
    EnumParameter<Attn_SignalKind>:$signal);
  let assemblyFormat = "`<` $partition `,` $signal `>`";
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

def Attn_SplitQPlanAttr : Attn_Attr<"SplitQPlan", "split_q",
    [DeclareAttrInterfaceMethods<Attn_PlanInterface>]> {
  let summary = "plan of the schedule split_q";
  let description = [{
    FlashAttention-2 style: a CTA owns `block_m` query rows, its warps split
    the rows, and all of them walk the keys in blocks of `block_n`.

    - `warps`: warps of a CTA; `block_m` is a multiple of `16 * warps`.
    - `stages`: slots of the K and V rings, 1 or 2.
    - `q_in_regs`: Q fragments stay in registers instead of being read from
      shared memory for each block.
    - `parts`: equal parts of a block's keys that take the softmax one after the
      other, so that the products of one overlap the exponentials of another.
      Each has a multiple of 16 keys.
    - `group`: heads whose tiles run side by side in the order `longest_first`,
      so that their K and V stay in L2: a divisor of the number of heads, or 0
      for all heads of all batches.
    - `softmax`, `order`, `epilogue`: see the enumerations.

    Example: `#attn.split_q<block_m = 128, block_n = 64, warps = 4>`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "128">:$block_m,
    DefaultValuedParameter<"int64_t", "64">:$block_n,
    DefaultValuedParameter<"int64_t", "4">:$warps,
    DefaultValuedParameter<"int64_t", "2">:$stages,
    DefaultValuedParameter<"bool", "true">:$q_in_regs,
    DefaultValuedParameter<"int64_t", "1">:$parts,
    DefaultValuedParameter<"::mlir::attn::SoftmaxPolicy",
        "::mlir::attn::SoftmaxPolicy::Exact">:$softmax,
    DefaultValuedParameter<"::mlir::attn::TileOrder",
        "::mlir::attn::TileOrder::RowMajor">:$order,
    DefaultValuedParameter<"int64_t", "0">:$group,
    DefaultValuedParameter<"::mlir::attn::EpilogueKind",
        "::mlir::attn::EpilogueKind::Auto">:$epilogue);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_WsWgmmaPlanAttr : Attn_Attr<"WsWgmmaPlan", "ws_wgmma",
    [DeclareAttrInterfaceMethods<Attn_PlanInterface>]> {
  let summary = "plan of the schedule ws_wgmma";
  let description = [{
    FlashAttention-3 style: one warp loads by TMA, warpgroups of 64 query rows
    each multiply with wgmma, in one CTA for each SM that walks tiles of
    `block_m` rows.

    - `block_m`: 64 rows for each consumer warpgroup.
    - `block_n`: keys of a block, a multiple of 16.
    - `q_stages`, `k_stages`, `v_stages`: slots of the rings.
    - `qk_ahead`: QK of the next block starts before PV of this one.
    - `pv_behind`: PV of a block is awaited with QK of the block after the next
      one, which takes a second set of probabilities. Needs `qk_ahead` and the
      softmax policy `optimistic`.
    - `p_shared`: PV reads the probabilities of a block from shared memory, which
      the warpgroups write with stmatrix, and not from registers. Not with
      `pv_behind` or `first_block`, nor for 8-bit operands.
    - `turns`: warpgroups take turns to start their products (`attn.turn.take`).
    - `cluster`: CTAs of a cluster, each of which loads a part of every block of
      keys and values for all.
    - `key_quads`: rows of a block of K are loaded in the order in which a thread's
      scores are of four neighbouring keys, so that 8-bit probabilities need no
      shuffles. Needs 8-bit V whose keys are contiguous, and a number of keys that
      is a known multiple of 4.
    - `dynamic`: tiles are dealt by a counter in global memory, not by rank.
    - `order`: with `longest_first`, the longest tiles of a group of heads come
      first, and CTAs take them in turns of alternating direction, or as the
      counter deals them.
    - `group_heads`: query heads of a group, 0 for all: a number whose keys and
      values stay in L2.
    - `first_block`: with `auto` each warpgroup multiplies only those keys of a
      tile's first block, the one with the last keys, that it may need: where the
      lengths of the sequences tell (`first` of `attn.kv_loop`), and not with
      `key_quads`. Needs `qk_ahead`. Under a window it also ends at the last block
      that its own rows need, whatever the lengths, except with `turns`.
    - `softmax`, `epilogue`: see the enumerations. With `tma` results leave
      through shared memory of their own if it fits, else through that of the
      queries; packed sequences take another way.

    Example: `#attn.ws_wgmma<block_m = 128, block_n = 128>`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "128">:$block_m,
    DefaultValuedParameter<"int64_t", "128">:$block_n,
    DefaultValuedParameter<"int64_t", "1">:$q_stages,
    DefaultValuedParameter<"int64_t", "2">:$k_stages,
    DefaultValuedParameter<"int64_t", "2">:$v_stages,
    DefaultValuedParameter<"bool", "true">:$qk_ahead,
    DefaultValuedParameter<"bool", "false">:$pv_behind,
    DefaultValuedParameter<"bool", "false">:$p_shared,
    DefaultValuedParameter<"bool", "false">:$turns,
    DefaultValuedParameter<"int64_t", "1">:$cluster,
    DefaultValuedParameter<"bool", "false">:$key_quads,
    DefaultValuedParameter<"bool", "false">:$dynamic,
    DefaultValuedParameter<"::mlir::attn::SoftmaxPolicy",
        "::mlir::attn::SoftmaxPolicy::Exact">:$softmax,
    DefaultValuedParameter<"::mlir::attn::TileOrder",
        "::mlir::attn::TileOrder::RowMajor">:$order,
    DefaultValuedParameter<"int64_t", "0">:$group_heads,
    DefaultValuedParameter<"::mlir::attn::EpilogueKind",
        "::mlir::attn::EpilogueKind::Auto">:$epilogue,
    DefaultValuedParameter<"::mlir::attn::FirstBlock",
        "::mlir::attn::FirstBlock::Whole">:$first_block);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_SelfLoadPlanAttr : Attn_Attr<"SelfLoadPlan", "self_load",
    [DeclareAttrInterfaceMethods<Attn_PlanInterface>]> {
  let summary = "plan of the schedule self_load";
  let description = [{
    A warpgroup of 64 query rows is a CTA, several of which share an SM: it
    multiplies with wgmma, and one of its threads loads by TMA what it needs
    next. CTAs walk tiles as those of `ws_wgmma` do.

    - `block_n`: keys of a block, a multiple of 16.
    - `k_stages`, `v_stages`: slots of the rings.
    - `qk_ahead`: QK of the next block starts before PV of this one.
    - `ctas_per_sm`: CTAs that an SM is to hold at once, 1 to 4. A thread has
      as many registers as that leaves it, and the grid as many CTAs as fit
      the chip.
    - `key_quads`, `order`, `group_heads`: see `#attn.ws_wgmma`.
    - `softmax`, `epilogue`: see the enumerations. With `staged` and `tma`
      results leave through shared memory of their own.

    Example: `#attn.self_load<block_n = 96, ctas_per_sm = 3>`.
  }];
  let parameters = (ins
    DefaultValuedParameter<"int64_t", "64">:$block_n,
    DefaultValuedParameter<"int64_t", "2">:$k_stages,
    DefaultValuedParameter<"int64_t", "2">:$v_stages,
    DefaultValuedParameter<"bool", "false">:$qk_ahead,
    DefaultValuedParameter<"int64_t", "1">:$ctas_per_sm,
    DefaultValuedParameter<"bool", "false">:$key_quads,
    DefaultValuedParameter<"::mlir::attn::SoftmaxPolicy",
        "::mlir::attn::SoftmaxPolicy::Exact">:$softmax,
    DefaultValuedParameter<"::mlir::attn::TileOrder",
        "::mlir::attn::TileOrder::RowMajor">:$order,
    DefaultValuedParameter<"int64_t", "0">:$group_heads,
    DefaultValuedParameter<"::mlir::attn::EpilogueKind",
        "::mlir::attn::EpilogueKind::Auto">:$epilogue);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNATTRS_TD
