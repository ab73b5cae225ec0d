//===- Decode.h - The schedule decode ---------------------------*- C++ -*-===//
//
// For few query rows and many keys. Rows that one tile does not hold are tiles
// side by side. A CTA has all rows of a tile, its warps
// divide the keys: each is a team with rings of its own, which cp.async fills
// `stages` - 1 blocks ahead, and waits for no other until the end, when their
// states are merged. Of head dimensions above 256 a warp has no registers for
// all columns of the results: there the CTA is one team, whose warps all
// compute the scores and divide the columns. Since a warp waits for its own
// copies only, all warps of an SM keep DRAM busy while some compute.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SCHEDULE_DECODE_DECODE_H
#define ATTN_LIB_SCHEDULE_DECODE_DECODE_H

#include "attn/Schedule/Core/Schedule.h"

namespace mlir::attn {

/// Returns how many query heads share a key head; 1 if only the launch knows.
int64_t getKnownGroup(const ProblemFacts &facts);

} // namespace mlir::attn

#endif // ATTN_LIB_SCHEDULE_DECODE_DECODE_H
