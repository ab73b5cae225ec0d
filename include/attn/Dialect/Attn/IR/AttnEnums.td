//===- AttnEnums.td - Enumerations of the attn dialect ------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNENUMS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNENUMS_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "mlir/IR/EnumAttr.td"

class Attn_I32Enum<string name, string summary, list<I32EnumAttrCase> cases>
    : I32EnumAttr<name, summary, cases> {
  let cppNamespace = "::mlir::attn";
  let genSpecializedAttr = 0;
}

def Attn_MemorySpace : Attn_I32Enum<"MemorySpace", "where a buffer lives", [
  I32EnumAttrCase<"Shared", 0, "shared">,
  I32EnumAttrCase<"Tmem", 1, "tmem">]>;

def Attn_SoftmaxPolicy : Attn_I32Enum<"SoftmaxPolicy",
    "how the running maximum of the online softmax is kept", [
  I32EnumAttrCase<"Exact", 0, "exact">,
  I32EnumAttrCase<"Threshold", 1, "threshold">,
  I32EnumAttrCase<"Lagged", 2, "lagged">,
  I32EnumAttrCase<"Optimistic", 3, "optimistic">]>;

def Attn_TileOrder : Attn_I32Enum<"TileOrder",
    "the order in which tiles are given to CTAs", [
  I32EnumAttrCase<"RowMajor", 0, "row_major">,
  I32EnumAttrCase<"LongestFirst", 1, "longest_first">]>;

def Attn_ScoreWork : Attn_I32Enum<"ScoreWork",
    "which scores the warps that share rows compute", [
  I32EnumAttrCase<"Shard", 0, "shard">,
  I32EnumAttrCase<"Twice", 1, "twice">,
  I32EnumAttrCase<"Own", 2, "own">]>;

def Attn_ScoreSplit : Attn_I32Enum<"ScoreSplit",
    "how warps that share rows divide the product that gives scores", [
  I32EnumAttrCase<"Keys", 0, "keys">,
  I32EnumAttrCase<"Depth", 1, "depth">]>;

def Attn_KVShare : Attn_I32Enum<"KVShare",
    "which tensors have the slots of one ring in turns", [
  I32EnumAttrCase<"None", 0, "none">,
  I32EnumAttrCase<"KV", 1, "kv">]>;

def Attn_ScoreSums : Attn_I32Enum<"ScoreSums",
    "the accumulators of scores", [
  I32EnumAttrCase<"F32", 0, "f32">,
  I32EnumAttrCase<"F16", 1, "f16">]>;

def Attn_ResultSums : Attn_I32Enum<"ResultSums",
    "the accumulators of results", [
  I32EnumAttrCase<"F32", 0, "f32">,
  I32EnumAttrCase<"F16Block", 1, "f16_block">,
  I32EnumAttrCase<"F16", 2, "f16">]>;

def Attn_CombineWay : Attn_I32Enum<"CombineWay",
    "what merges the partial results of a tile's runs of keys", [
  I32EnumAttrCase<"Kernel", 0, "kernel">,
  I32EnumAttrCase<"Launch", 1, "launch">]>;

def Attn_EpilogueKind : Attn_I32Enum<"EpilogueKind",
    "how results leave the kernel", [
  I32EnumAttrCase<"Auto", 0, "auto">,
  I32EnumAttrCase<"Direct", 1, "direct">,
  I32EnumAttrCase<"Shuffled", 2, "shuffled">,
  I32EnumAttrCase<"Staged", 3, "staged">,
  I32EnumAttrCase<"Tma", 4, "tma">]>;

def Attn_KeyOrder : Attn_I32Enum<"KeyOrder",
    "in which order keys lie where the contraction of PV has to have four of "
    "them in a thread", [
  I32EnumAttrCase<"Interleaved", 0, "interleaved">,
  I32EnumAttrCase<"Plain", 1, "plain">,
  I32EnumAttrCase<"Quads", 2, "quads">]>;

def Attn_FirstBlock : Attn_I32Enum<"FirstBlock",
    "which keys of a tile's first block are multiplied", [
  I32EnumAttrCase<"Whole", 0, "whole">,
  I32EnumAttrCase<"Auto", 1, "auto">]>;

def Attn_ReduceKind : Attn_I32Enum<"ReduceKind", "the operator of a reduction", [
  I32EnumAttrCase<"Add", 0, "add">,
  I32EnumAttrCase<"Max", 1, "max">,
  I32EnumAttrCase<"Maximum", 2, "maximum">]>;

def Attn_KVPhase : Attn_I32Enum<"KVPhase",
    "a stretch of the loop over key blocks, told apart by the masks it needs", [
  I32EnumAttrCase<"Right", 0, "right">,
  I32EnumAttrCase<"Interior", 1, "interior">,
  I32EnumAttrCase<"Left", 2, "left">]>;

def Attn_SignalKind : Attn_I32Enum<"SignalKind",
    "how a role says that it is done with a slot", [
  I32EnumAttrCase<"Arrive", 0, "arrive">,
  I32EnumAttrCase<"Tx", 1, "tx">,
  I32EnumAttrCase<"Commit", 2, "commit">,
  I32EnumAttrCase<"Copies", 3, "copies">]>;

def Attn_TensorFence : Attn_I32Enum<"TensorFence",
    "which side of a signal a fence of tensor memory stands on", [
  I32EnumAttrCase<"Before", 0, "before">,
  I32EnumAttrCase<"After", 1, "after">]>;

def Attn_TileScheduler : Attn_I32Enum<"TileScheduler",
    "which tiles a CTA computes, and in which order", [
  I32EnumAttrCase<"Single", 0, "single">,
  I32EnumAttrCase<"Strided", 1, "strided">,
  I32EnumAttrCase<"Snake", 2, "snake">,
  I32EnumAttrCase<"Dynamic", 3, "dynamic">,
  I32EnumAttrCase<"Clc", 4, "clc">]>;

def Attn_KeySearch : Attn_I32Enum<"KeySearch",
    "which key is looked for", [
  I32EnumAttrCase<"First", 0, "first">,
  I32EnumAttrCase<"Last", 1, "last">,
  I32EnumAttrCase<"Same", 2, "same">]>;

class Attn_EnumAttr<EnumInfo info, string name>
    : EnumAttr<Attn_Dialect, info, name> {
  let assemblyFormat = "$value";
}
def Attn_EpilogueKindAttr : Attn_EnumAttr<Attn_EpilogueKind, "epilogue_kind">;
def Attn_KeyOrderAttr : Attn_EnumAttr<Attn_KeyOrder, "key_order">;
def Attn_ReduceKindAttr : Attn_EnumAttr<Attn_ReduceKind, "reduce_kind">;
def Attn_TensorFenceAttr : Attn_EnumAttr<Attn_TensorFence, "tensor_fence">;
def Attn_TileOrderAttr : Attn_EnumAttr<Attn_TileOrder, "tile_order">;
def Attn_TileSchedulerAttr : Attn_EnumAttr<Attn_TileScheduler, "tile_scheduler">;
def Attn_KeySearchAttr : Attn_EnumAttr<Attn_KeySearch, "key_search">;
def Attn_KVPhaseAttr : Attn_EnumAttr<Attn_KVPhase, "kv_phase">;

#endif // ATTN_DIALECT_ATTN_IR_ATTNENUMS_TD
