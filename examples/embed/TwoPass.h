//===- TwoPass.h - A schedule outside of attn -------------------*- C++ -*-===//
//
// two_pass computes the row maxima first and everything else in a second walk
// over the keys. It multiplies Q and K twice, and in return never corrects
// what it has summed up.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_EXAMPLES_EMBED_TWOPASS_H
#define ATTN_EXAMPLES_EMBED_TWOPASS_H

#include "attn/Schedule/Core/Schedule.h"

#include "TwoPassDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "TwoPassAttrs.h.inc"

namespace two_pass {

/// The schedule, to be given to registerSchedule.
const mlir::attn::Schedule &getSchedule();

} // namespace two_pass

#endif // ATTN_EXAMPLES_EMBED_TWOPASS_H
