//===- ExampleSchedule.h - A schedule outside of the library ----*- C++ -*-===//
//
// The least that computes an attention: docs/HowTo/add-schedule.md builds it
// step by step, and examples/embed has one that does more.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_TEST_LIB_EXAMPLESCHEDULE_EXAMPLESCHEDULE_H
#define ATTN_TEST_LIB_EXAMPLESCHEDULE_EXAMPLESCHEDULE_H

#include "attn/Schedule/Core/Schedule.h"

#include "ExampleDialect.h.inc"
#define GET_ATTRDEF_CLASSES
#include "ExampleAttrs.h.inc"

namespace mlir::attn::example {

/// The schedule, to be given to registerSchedule.
const Schedule &getSchedule();

} // namespace mlir::attn::example

#endif // ATTN_TEST_LIB_EXAMPLESCHEDULE_EXAMPLESCHEDULE_H
