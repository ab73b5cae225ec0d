//===- TestPasses.h - Passes that only tests use ----------------*- C++ -*-===//

#ifndef ATTN_TEST_LIB_TESTPASSES_H
#define ATTN_TEST_LIB_TESTPASSES_H

namespace mlir::attn::test {

/// Registers `test-attn-check-locations`.
void registerCheckLocationsPass();

} // namespace mlir::attn::test

#endif // ATTN_TEST_LIB_TESTPASSES_H
