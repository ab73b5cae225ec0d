//===- AttnOps.td - All ops of the attn dialect -------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
#define ATTN_DIALECT_ATTN_IR_ATTNOPS_TD

include "attn/Dialect/Attn/IR/ProblemOps.td"
include "attn/Dialect/Attn/IR/BufferOps.td"
include "attn/Dialect/Attn/IR/CopyOps.td"
include "attn/Dialect/Attn/IR/MmaOps.td"
include "attn/Dialect/Attn/IR/TileOps.td"
include "attn/Dialect/Attn/IR/LoopOps.td"
include "attn/Dialect/Attn/IR/BarrierOps.td"
include "attn/Dialect/Attn/IR/ChannelOps.td"
include "attn/Dialect/Attn/IR/TmaOps.td"
include "attn/Dialect/Attn/IR/WgmmaOps.td"
include "attn/Dialect/Attn/IR/Tcgen05Ops.td"
include "attn/Dialect/Attn/IR/TmemOps.td"
include "attn/Dialect/Attn/IR/WarpSpecializeOps.td"
include "attn/Dialect/Attn/IR/TeamOps.td"
include "attn/Dialect/Attn/IR/WorkOps.td"

#endif // ATTN_DIALECT_ATTN_IR_ATTNOPS_TD
