//===- AttnPlans.td - Plans of the project's schedules ------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNPLANS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNPLANS_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnEnums.td"
include "attn/Dialect/Attn/IR/PlanBase.td"

def Attn_SplitQPlanAttr : Attn_Plan<Attn_Dialect, "SplitQPlan", "split_q", "split_q", (ins
    Attn_PlanInt<128, "Query rows of a CTA, a multiple of `16 * warps`">:$block_m,
    Attn_PlanInt<64, "Keys of a block, a multiple of 16">:$block_n,
    Attn_PlanInt<4, "Warps of a CTA">:$warps,
    Attn_PlanInt<2, "Slots of the K and V rings, 1 to 4">:$stages,
    Attn_PlanBool<true,
      "Q fragments stay in registers instead of being read from shared memory "
      "for each block">:$q_in_regs,
    Attn_PlanInt<1,
      "Equal parts of a block's keys that take the softmax one after the other, "
      "so that the products of one overlap the exponentials of another. Each has "
      "a multiple of 16 keys">:$parts,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to CTAs">:$order,
    Attn_PlanInt<0,
      "Heads whose tiles run side by side in the order `longest_first`, so that "
      "their K and V stay in L2: a divisor of the number of heads, or 0 for all "
      "heads of all batches">:$group_heads,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma`">:$epilogue,
    Attn_PlanBool<false,
      "Rows of a tile are the heads of a key head's group, query by query, so that "
      "a group reads its K and V once. Not with `group_heads`">:$pack_heads,
    Attn_PlanEnum<Attn_KVShare, "none",
      "With `kv` K and V of a block have the slots of one ring in turns, which "
      "takes rows of one length. Not with `parts`">:$share,
    Attn_PlanEnum<Attn_ScoreSums, "f32",
      "Accumulators of the scores: with `f16` half of the registers, at twice the "
      "rate on GeForce chips, for operands of f16. Scores beyond 65504 overflow">:$accumulate_s,
    Attn_PlanEnum<Attn_ResultSums, "f32",
      "Accumulators of the results: with `f16_block` the products of a block (of a "
      "slice of its columns) are summed in f16 and added to f32, with `f16` results "
      "stay f16 until the end, in half of the registers. For operands of f16; "
      "weighted sums of values beyond 65504 overflow">:$accumulate_o,
    Attn_PlanEnum<Attn_CombineWay, "kernel",
      "What merges the partial results of a tile's runs of keys, as in "
      "`#attn.decode`">:$combine),
    [Attn_RenamedParameter<"group", "group_heads">]> {
  let description = [{
    FlashAttention-2 style: a CTA owns `block_m` query rows, its warps split
    the rows, and all of them walk the keys in blocks of `block_n`.

    Example: `#attn.split_q<block_m = 128, block_n = 64, warps = 4>`.
  }];
}

def Attn_WsWgmmaPlanAttr : Attn_Plan<Attn_Dialect, "WsWgmmaPlan", "ws_wgmma", "ws_wgmma", (ins
    Attn_PlanInt<128, "Query rows of a tile, 64 for each consumer warpgroup">:$block_m,
    Attn_PlanInt<128, "Keys of a block, a multiple of 16">:$block_n,
    Attn_PlanInt<1, "Slots of the ring of queries">:$q_stages,
    Attn_PlanInt<2, "Slots of the ring of keys">:$k_stages,
    Attn_PlanInt<2, "Slots of the ring of values">:$v_stages,
    Attn_PlanBool<true, "QK of the next block starts before PV of this one">:$qk_ahead,
    Attn_PlanBool<false,
      "PV of a block is awaited with QK of the block after the next one, which "
      "takes a second set of probabilities. Needs `qk_ahead` and the softmax "
      "policy `optimistic`">:$pv_behind,
    Attn_PlanBool<false,
      "Warpgroups take turns to start their products (`attn.turn.take`). Needs "
      "`qk_ahead`">:$turns,
    Attn_PlanInt<1,
      "CTAs of a cluster, 1, 2 or 4, each of which loads a part of every block of "
      "keys and values for all">:$cluster,
    Attn_PlanBool<false,
      "Rows of a block of K are loaded in the order in which a thread's scores are "
      "of four neighbouring keys, so that 8-bit probabilities need no shuffles. "
      "Needs 8-bit V whose keys are contiguous, and a number of keys that is a "
      "known multiple of 4">:$key_quads,
    Attn_PlanBool<false, "Tiles are dealt by a counter in global memory, not by rank">:$dynamic,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to CTAs. With `longest_first`, the "
      "longest tiles of a group of heads come first, and CTAs take them in turns "
      "of alternating direction, or as the counter deals them">:$order,
    Attn_PlanInt<0,
      "Query heads of a group in the order `longest_first`, 0 for all: a number "
      "whose keys and values stay in L2">:$group_heads,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. With `tma` they leave through shared memory "
      "of their own if it fits, else through that of the queries; packed sequences "
      "take another way">:$epilogue,
    Attn_PlanEnum<Attn_FirstBlock, "whole",
      "With `auto` each warpgroup multiplies only those keys of a tile's first "
      "block, the one with the last keys, that it may need: where the lengths of "
      "the sequences tell (`first` of `attn.kv_loop`), and not with `key_quads`. "
      "Needs `qk_ahead`. Under a window it also ends at the last block that its "
      "own rows need, whatever the lengths, except with `turns`">:$first_block,
    Attn_PlanInt<1,
      "Warps that load, 1 or 2: of two, one loads queries and keys and the other "
      "values, for blocks of many small copies. With 8-bit values that are "
      "transposed, and in a cluster, 1">:$loaders,
    Attn_PlanBool<false,
      "Rows of a tile are the heads of a key head's group, query by query, so that "
      "a group reads its K and V once. A query has as many rows as the next "
      "power of two of the heads says. With `cluster = 1` and `order = row_major`">:$pack_heads,
    Attn_PlanBool<false,
      "Where equal numbers of packed documents are the mask, tiles begin with "
      "documents, as those of packed sequences do: a kernel in front lists them "
      "by length (`attn.plan_tiles`). Blocks of keys begin there too, but with the "
      "softmax `exact` at multiples of `block_n`, so that sums are those of tiles "
      "that are not cut. With `cluster = 1` and `order = longest_first`">:$cut_documents)> {
  let description = [{
    FlashAttention-3 style: one warp loads by TMA, warpgroups of 64 query rows
    each multiply with wgmma, in one CTA for each SM that walks tiles of
    `block_m` rows.

    Example: `#attn.ws_wgmma<block_m = 128, block_n = 128>`.
  }];
}

def Attn_SelfLoadPlanAttr : Attn_Plan<Attn_Dialect, "SelfLoadPlan", "self_load", "self_load", (ins
    Attn_PlanInt<64, "Keys of a block, a multiple of 16">:$block_n,
    Attn_PlanInt<2, "Slots of the ring of keys">:$k_stages,
    Attn_PlanInt<2, "Slots of the ring of values">:$v_stages,
    Attn_PlanBool<false, "QK of the next block starts before PV of this one">:$qk_ahead,
    Attn_PlanInt<1,
      "CTAs that an SM is to hold at once, 1 to 4. A thread has as many registers "
      "as that leaves it, and the grid as many CTAs as fit the chip">:$ctas_per_sm,
    Attn_PlanBool<false, "As in `#attn.ws_wgmma`">:$key_quads,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to CTAs, as in `#attn.ws_wgmma`">:$order,
    Attn_PlanInt<0, "Query heads of a group, as in `#attn.ws_wgmma`">:$group_heads,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. With `staged` and `tma` they pass through "
      "shared memory of their own">:$epilogue)> {
  let description = [{
    A warpgroup of 64 query rows is a CTA, several of which share an SM: it
    multiplies with wgmma, and one of its threads loads by TMA what it needs
    next. CTAs walk tiles as those of `ws_wgmma` do.

    Example: `#attn.self_load<block_n = 96, ctas_per_sm = 3>`.
  }];
}

def Attn_WsTmemPlanAttr : Attn_Plan<Attn_Dialect, "WsTmemPlan", "ws_tmem", "ws_tmem", (ins
    Attn_PlanInt<2,
      "Tiles of 128 query rows of a CTA, which walk the same keys: 2, or 1 where wide "
      "results leave no columns for another one. Then scores of two blocks have "
      "columns, rows come in slices of 128 bytes and values in parts of 32 keys, in a "
      "pair of 64, a slot each, and a warpgroup of its own stores results">:$tiles,
    Attn_PlanInt<128,
      "Keys of a block, a multiple of 16 up to 128, or 256 in a pair with one "
      "tile">:$block_n,
    Attn_PlanInt<3,
      "Slots of the ring of keys and values, at least 2; of each of two rings "
      "where rows of keys and values differ in length, or with one tile unless its "
      "heads are wide: queries of more than 256 columns, or `value_ctas = 2`">:$kv_stages,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanInt<0,
      "Of every 16 exponentials, how many a polynomial computes (`attn.exp2`)">:$polynomial,
    Attn_PlanBool<false,
      "Probabilities have columns of their own, so that scores are handed back as "
      "soon as they are in registers. Else they lie over the scores. Not with one tile">:$p_beside,
    Attn_PlanBool<false,
      "Probabilities of a block's first keys, five eighths or with `p_beside` three "
      "quarters, are handed on in front of the others', so that their product starts "
      "earlier. With one tile, half of them">:$p_parts,
    Attn_PlanBool<false,
      "Each of the two tiles computes the blocks that its own queries need, and not "
      "those of both. Not with one tile">:$own_blocks,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to CTAs, as in `#attn.ws_wgmma`">:$order,
    Attn_PlanInt<0, "Query heads of a group, as in `#attn.ws_wgmma`">:$group_heads,
    Attn_PlanBool<false,
      "Rows of a tile are the heads of a key head's group, query by query, so that "
      "a group reads its K and V once: for each query a power of two of rows, of "
      "which those behind its heads do not exist. Not with `group_heads`">:$pack_heads,
    Attn_PlanBool<false, "Tiles are dealt by a counter in global memory, not by rank">:$dynamic,
    Attn_PlanBool<false,
      "The grid has a CTA or cluster for each tile, of which those that run take over "
      "others that have not started. Not with `dynamic`">:$clc,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel">:$epilogue,
    Attn_PlanBool<false,
      "Results pass through shared memory in two halves of their columns, one behind "
      "the other, in half of the memory. With the epilogue `staged` or `tma` only">:$o_halves,
    Attn_PlanBool<false,
      "Two CTAs of a cluster multiply together: each has tiles of its own, and of each "
      "block half of the keys for scores and half of the columns of values, so that it "
      "loads and reads half as many bytes of them. With queries of more than 256 "
      "columns a tile has 64 rows in each, two threads of the softmax have a row, "
      "`block_n` is 128 or 256, columns of values are a multiple of 256, `softmax` is "
      "exact or threshold, and `p_parts` and `value_ctas` are not there">:$pair,
    Attn_PlanInt<1,
      "CTAs of a cluster that have the same tile and divide the columns of its results, "
      "1 or 2: each computes all scores and probabilities. With 2 `tiles` is 1 and "
      "`pair` is false">:$value_ctas,
    Attn_PlanInt<0,
      "Runs of keys that all sequences have together, as in `#attn.decode`, which a "
      "kernel in front deals (`attn.plan_work`): CTAs walk the tiles of each. 0: each "
      "sequence has as many">:$dealt_runs,
    Attn_PlanInt<1,
      "CTAs of a cluster: 1 for as many as `pair` and `value_ctas` ask for, or 4. Then "
      "two pairs walk the same keys, and CTAs of the same rank in their pairs load "
      "half of each slot for both. With `pair` and two tiles, not with `own_blocks`">:$cluster,
    Attn_PlanBool<false,
      "Keys and values of a pair share a ring, where rows of both are as long: half of "
      "a block's keys takes as many bytes as half of the columns of its values. With "
      "`pair` and two tiles only">:$one_ring)> {
  let description = [{
    FlashAttention-4 style: one thread loads by TMA, one multiplies with tcgen05
    into tensor memory, and two warpgroups of 128 query rows each compute the
    softmax of one product under the products of the other. One CTA for each SM
    walks tiles of 256 rows. With `tiles = 1` it walks tiles of 128 rows, and the
    softmax of a block runs under the scores of the next one and the results of the
    one before. With `pair` a thread of the first CTA of two starts the products of
    both.

    Example: `#attn.ws_tmem<kv_stages = 4, softmax = lagged>`.
  }];
}

def Attn_WsColumnsPlanAttr : Attn_Plan<Attn_Dialect, "WsColumnsPlan", "ws_columns", "ws_columns", (ins
    Attn_PlanInt<96, "Keys of a block, a multiple of 16">:$block_n,
    Attn_PlanInt<192,
      "Columns of the results that the warpgroup of the softmax has, the first "
      "ones: a multiple of 64 up to 256">:$softmax_columns,
    Attn_PlanInt<4, "Slots of the ring of keys, at least 2">:$k_stages,
    Attn_PlanInt<2,
      "Slots of the ring of values of the softmax's warpgroup, at least 2">:$v_stages,
    Attn_PlanInt<2,
      "Slots of the ring of values of the other warpgroup, at least 2">:$w_stages,
    Attn_PlanInt<1, "CTAs of a cluster, as in `#attn.ws_wgmma`">:$cluster,
    Attn_PlanInt<1,
      "CTAs of a cluster that have the same tile and divide its depth and its "
      "columns of results. 1 or 2; with 2 `cluster` is 2 too">:$depth_ctas,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to CTAs, as in `#attn.ws_wgmma`">:$order,
    Attn_PlanInt<0, "Query heads of a group, as in `#attn.ws_wgmma`">:$group_heads,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma` or `staged`">:$epilogue,
    Attn_PlanBool<false,
      "Rows of a tile are the heads of a key head's group, query by query, so that "
      "a group reads its K and V once. As in "
      "`#attn.ws_wgmma`, with `cluster` and `depth_ctas` alike">:$pack_heads)> {
  let description = [{
    For heads whose results are too wide for one warpgroup: a tile of 64 query rows
    is shared by two. One computes scores, probabilities and the first
    `softmax_columns` columns of the results, the other one the other columns, of
    probabilities that it is handed. One warp loads slices of the rows of Q, K and
    V by TMA. CTAs walk tiles as those of `ws_wgmma` do. With `depth_ctas = 2` two
    CTAs share a tile: each multiplies its half of the depth, they exchange these
    parts of the scores, and each has half of the columns of the results.

    Example: `#attn.ws_columns<block_n = 128, k_stages = 3, cluster = 2>`.
  }];
}

def Attn_WsPairPlanAttr : Attn_Plan<Attn_Dialect, "WsPairPlan", "ws_pair", "ws_pair", (ins
    Attn_PlanInt<128,
      "Keys of a block, a multiple of 32 up to 256: each CTA computes the scores of "
      "half of them">:$block_n,
    Attn_PlanInt<128, "Columns of a slot of Q, K and V, a multiple of 64 up to 256">:$slice,
    Attn_PlanInt<5, "Slots of the ring of keys and values, at least 2">:$stages,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to clusters, as in `#attn.ws_wgmma`">:$order,
    Attn_PlanInt<0, "Query heads of a group, as in `#attn.ws_wgmma`">:$group_heads,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma` or `staged`">:$epilogue)> {
  let description = [{
    For heads whose results are too wide for the registers of one CTA's warpgroups:
    two CTAs of a cluster share a tile of 128 query rows, 64 for each of two
    warpgroups. Each CTA computes scores and probabilities of its half of the keys
    of a block, sends the probabilities to the other one, and has half of the columns
    of the results. So keys and values are loaded once for 128 rows. Clusters walk
    tiles as the CTAs of `ws_wgmma` do.

    Example: `#attn.ws_pair<block_n = 128, stages = 5>`.
  }];
}

def Attn_DecodePlanAttr : Attn_Plan<Attn_Dialect, "DecodePlan", "decode", "decode", (ins
    Attn_PlanInt<16, "Query rows of a tile, a multiple of 16 up to 64, which every warp has all of">:$block_m,
    Attn_PlanInt<16, "Keys of a warp's block, a multiple of 16">:$block_n,
    Attn_PlanInt<4, "Warps of a CTA, a power of two up to 16, each of which walks keys of its own">:$warps,
    Attn_PlanInt<3, "Slots of a warp's K and V rings, 2 to 8">:$stages,
    Attn_PlanInt<2,
      "CTAs that an SM is to hold at once, 1 to 8, which bounds a thread's "
      "registers">:$ctas_per_sm,
    Attn_PlanBool<true,
      "Q fragments stay in registers instead of being read from shared memory "
      "for each block">:$q_in_regs,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma`">:$epilogue,
    Attn_PlanBool<false,
      "Rows of a tile are the heads of a key head's group, query by query, so that "
      "a group reads its K and V once">:$pack_heads,
    Attn_PlanEnum<Attn_CombineWay, "kernel",
      "What merges the partial results of a tile's runs of keys: a second kernel, "
      "or, with `launch`, the CTA that finishes the last run of the tile, with the "
      "same results. Does nothing where keys are in one run">:$combine,
    Attn_PlanInt<1,
      "Warps that share keys, 1 or all: each computes all scores and has its own "
      "columns of the results, for head dimensions above 256">:$warps_n,
    Attn_PlanInt<0,
      "Runs of keys that all sequences have together, dealt by their lengths "
      "(`attn.deal_run`): the longer one, the more of them, up to as many as the "
      "problem has. 0: each sequence has as many">:$dealt_runs,
    Attn_PlanBool<false,
      "A kernel in front deals the runs (`attn.plan_work`), whose records the CTAs "
      "read, and every launch on the same lengths may. Does nothing without "
      "`dealt_runs`">:$plan_work,
    Attn_PlanInt<1,
      "Heads, or groups of packed ones, of a CTA, a power of two that divides "
      "`warps` by `warps_n`: its warps walk the same keys of several heads, which "
      "lie side by side in pages of few keys. Not with `combine = launch`">:$cta_heads)> {
  let description = [{
    For few query rows and many keys: the warps of a CTA have the same rows and
    divide the keys of a tile among them. Each copies its own blocks by cp.async
    and waits for no other warp until all keys are done; then their states are
    merged. With `cta_heads` the warps are as many groups, each of which does so for
    a head of its own.

    Example: `#attn.decode<warps = 8, stages = 3>`.
  }];
}

def Attn_MlaPlanAttr : Attn_Plan<Attn_Dialect, "MlaPlan", "mla", "mla", (ins
    Attn_PlanInt<16, "Query rows of a tile, a multiple of 16 warps_m">:$block_m,
    Attn_PlanInt<64, "Keys of a block, a multiple of 16">:$block_n,
    Attn_PlanInt<1, "Warps along the rows, a power of two">:$warps_m,
    Attn_PlanInt<8,
      "Warps along the columns, a power of two: those that share rows, of which "
      "each has its own columns of the results">:$warps_n,
    Attn_PlanInt<2,
      "Slots of the ring of keys, whose first columns are the values, 1 to 8. With "
      "8-bit keys and `score = own` those of widened keys, of which the first half "
      "of the values has one more">:$stages,
    Attn_PlanInt<1,
      "CTAs that an SM is to hold at once, 1 to 8, which bounds a thread's "
      "registers">:$ctas_per_sm,
    Attn_PlanBool<false,
      "Q fragments stay in registers instead of being read from shared memory "
      "for each block">:$q_in_regs,
    Attn_PlanEnum<Attn_ScoreWork, "shard",
      "Which scores the warps that share rows compute: each those of its own keys, "
      "and exchange the scores, or with `softmax = exact` the probabilities, through "
      "shared memory (`shard`), or each all of them (`twice`); or none of them, but "
      "a warpgroup of its own all, and another one loads the keys (`own`, with "
      "wgmma, without `combine = launch` and `init`)">:$score,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept. With `lagged`, which "
      "is for `score = own`, the first half of a block's probabilities is handed "
      "over before the second one is computed">:$softmax,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma`">:$epilogue,
    Attn_PlanBool<true,
      "Rows of a tile are the heads, query by query, so that all of them read the "
      "keys once">:$pack_heads,
    Attn_PlanBool<false,
      "Products by wgmma, in warpgroups of 64 rows. For `block_m = 64`, "
      "`warps_m = 4`, `warps_n = 2` and `score = twice` or `own`, beside 8-bit keys "
      "`own`">:$wgmma,
    Attn_PlanInt<1,
      "CTAs of a cluster, 1 or 2, whose tiles are rows of one query: each loads a "
      "half of every block of keys for both. For `score = own`, keys that TMA copies "
      "and pages of whole blocks">:$cluster,
    Attn_PlanEnum<Attn_CombineWay, "kernel",
      "What merges the partial results of a tile's runs of keys, as in "
      "`#attn.decode`">:$combine,
    Attn_PlanInt<0,
      "Equal runs into which the keys of all sequences, end to end, are cut by their "
      "lengths (`attn.plan_pieces`): a CTA or cluster walks one of them, which has "
      "pieces of several sequences. For `score = own`. 0: each sequence has as many "
      "runs">:$dealt_runs,
    Attn_PlanInt<1,
      "Blocks of keys that the begin of a sequence counts as in a run of "
      "`dealt_runs`, at least 1">:$start_blocks,
    Attn_PlanInt<2,
      "Fewest blocks of keys of a piece that shares its sequence, at least 1: ends of "
      "runs closer to an end of the sequence move to it">:$piece_blocks)> {
  let description = [{
    For latent attention in its absorbed form: a block of keys is copied to shared
    memory once, by cp.async, or with `score = own` by TMA where pages have 16 keys
    or more, and its first columns are the values. Warps that share rows divide the
    keys where scores are computed and the columns of the results where these are.
    Keys of 8 bits become f16 as fragments, or with `score = own` in shared memory,
    where a warpgroup more writes them.

    Example: `#attn.mla<block_m = 32, warps_m = 2, warps_n = 4>`.
  }];
}

def Attn_WsMlaPlanAttr : Attn_Plan<Attn_Dialect, "WsMlaPlan", "ws_mla", "ws_mla", (ins
    Attn_PlanInt<32, "Query rows of a tile: 16, 32 or 64">:$block_m,
    Attn_PlanInt<32,
      "Keys of a block, a multiple of 16, and of 32 with `block_m = 16`, up to 128">:$block_n,
    Attn_PlanInt<2, "Slots of the ring of keys, whose first columns are the values, 1 to 8">:$stages,
    Attn_PlanInt<1,
      "Slots in which scores are handed to the softmax, 1 or 2: with 2 the products "
      "of the next block start before the softmax has read this one's">:$s_stages,
    Attn_PlanInt<1,
      "Slots in which probabilities are handed to the results, 1 or 2: with 2 the "
      "softmax of the next block starts before the results have read this one's">:$p_stages,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept">:$softmax,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma` or `staged`">:$epilogue)> {
  let description = [{
    Latent attention as in `#attn.mla`, by warps of unlike roles, without wgmma or
    TMA: of the 18 warps of a CTA four copy keys by cp.async, four multiply them with
    the queries, two compute the softmax, and eight hold the results, an eighth of
    their columns each. Scores and probabilities pass through shared memory. All
    heads of a query are rows. A thread has as many registers as the file holds for
    all of them, whatever its role is.

    Example: `#attn.ws_mla<block_m = 64, block_n = 64>`.
  }];
}

def Attn_TiledDPlanAttr : Attn_Plan<Attn_Dialect, "TiledDPlan", "tiled_d", "tiled_d", (ins
    Attn_PlanInt<64, "Query rows of a CTA, a multiple of 16 warps_m up to 128">:$block_m,
    Attn_PlanInt<32, "Keys of a block, a multiple of 16 and of 8 warps_n up to 128">:$block_n,
    Attn_PlanInt<4, "Warps along the rows, a power of two">:$warps_m,
    Attn_PlanInt<2,
      "Warps along the columns, a power of two: those that share rows, of which "
      "each has keys of its own where scores are computed, and its own columns of "
      "the results">:$warps_n,
    Attn_PlanInt<64,
      "Columns of K and V in a slot of their ring, a multiple of 16 and of "
      "8 warps_n up to 256">:$slice,
    Attn_PlanInt<4, "Slots of the ring that slices of K and V have in turns, 2 to 16">:$stages,
    Attn_PlanBool<false,
      "Slices of Q are loaded for each block, beside those of K, so that shared "
      "memory does not grow with the head dimension">:$q_streamed,
    Attn_PlanEnum<Attn_SoftmaxPolicy, "exact",
      "How the running maximum of the online softmax is kept. With `exact` warps "
      "that share rows exchange maxima and then probabilities, with the others, and "
      "where they divide the depth, scores">:$softmax,
    Attn_PlanEnum<Attn_TileOrder, "row_major",
      "The order in which tiles are given to CTAs">:$order,
    Attn_PlanInt<0,
      "Heads whose tiles run side by side in the order `longest_first`, as in "
      "`#attn.split_q`">:$group_heads,
    Attn_PlanEnum<Attn_EpilogueKind, "auto",
      "How results leave the kernel. Not `tma`">:$epilogue,
    Attn_PlanEnum<Attn_ScoreSplit, "keys",
      "What warps that share rows divide where scores are computed: the keys of a "
      "block, or the depth, of which each takes k-steps and which gives partial "
      "sums to add up">:$s_split,
    Attn_PlanEnum<Attn_ScoreSums, "f32",
      "Accumulators of the scores: with `f16` half of the registers, at twice the "
      "rate on GeForce chips, for operands of f16. Scores beyond 65504 overflow">:$accumulate_s,
    Attn_PlanEnum<Attn_ResultSums, "f32",
      "Accumulators of the results: with `f16_block` the products of a block (of a "
      "slice of its columns) are summed in f16 and added to f32, with `f16` results "
      "stay f16 until the end, in half of the registers. For operands of f16; "
      "weighted sums of values beyond 65504 overflow">:$accumulate_o,
    Attn_PlanBool<false,
      "Rows of a tile are the heads of a key head's group, query by query, so that "
      "a group reads its K and V once. Not with `group_heads`">:$pack_heads)> {
  let description = [{
    For wide heads, without tensor memory, wgmma or TMA: slices of the columns of a
    block's keys, then of its values, have the slots of one ring in turns, and warps
    divide the columns of the results.

    Example: `#attn.tiled_d<block_m = 32, warps_m = 2, slice = 128>`.
  }];
}

def Attn_CombinePlanAttr : Attn_Plan<Attn_Dialect, "CombinePlan", "combine", "combine", (ins
    Attn_PlanInt<4, "Warps of a CTA, a power of two up to 32">:$warps)> {
  let description = [{
    A thread owns up to four columns of a row of the result and walks the partial
    results of the row, whose weights it computes itself.

    Example: `#attn.combine<warps = 8>`.
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNPLANS_TD
