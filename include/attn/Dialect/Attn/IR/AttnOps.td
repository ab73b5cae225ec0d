//===- AttnOps.td - All ops of the attn dialect -------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_TD

include "attn/Dialect/Attn/IR/Ops/ProblemOps.td"
include "attn/Dialect/Attn/IR/Ops/BufferOps.td"
include "attn/Dialect/Attn/IR/Ops/CopyOps.td"
include "attn/Dialect/Attn/IR/Ops/MmaOps.td"
include "attn/Dialect/Attn/IR/Ops/TileOps.td"
include "attn/Dialect/Attn/IR/Ops/MaskOps.td"
include "attn/Dialect/Attn/IR/Ops/LoopOps.td"
include "attn/Dialect/Attn/IR/Ops/BarrierOps.td"
include "attn/Dialect/Attn/IR/Ops/ChannelOps.td"
include "attn/Dialect/Attn/IR/Ops/TmaOps.td"
include "attn/Dialect/Attn/IR/Ops/WgmmaOps.td"
include "attn/Dialect/Attn/IR/Ops/Tcgen05Ops.td"
include "attn/Dialect/Attn/IR/Ops/TmemOps.td"
include "attn/Dialect/Attn/IR/Ops/WarpSpecializeOps.td"
include "attn/Dialect/Attn/IR/Ops/TeamOps.td"
include "attn/Dialect/Attn/IR/Ops/WorkOps.td"
include "attn/Dialect/Attn/IR/Ops/IndexOps.td"

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
