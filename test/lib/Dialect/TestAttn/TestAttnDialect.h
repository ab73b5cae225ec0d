//===- TestAttnDialect.h - Ops that only tests use --------------*- C++ -*-===//

#ifndef ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNDIALECT_H
#define ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNDIALECT_H

#include "attn/Dialect/Attn/IR/Attn.h"

#include "TestAttnDialect.h.inc"

namespace mlir::attn::test {

/// An engine that no library knows.
inline constexpr AsyncEngine kTestEngine = {
    "which a test_attn.async_read still reads",
    "it starts here; a test_attn.async_wait has to cover its group",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Groups};
/// Products in registers.
inline constexpr AsyncEngine kTestProducts = {
    "which a test_attn.product still reads",
    "it starts here; a test_attn.product_wait has to cover it",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Groups};
/// Products in buffers.
inline constexpr AsyncEngine kTestBufferProducts = {
    "which a test_attn.buffer_product still touches",
    "it starts here; its mbarrier has to be awaited",
    /*isAsyncProxy=*/true, AsyncEngine::Completion::Barrier};

} // namespace mlir::attn::test

#define GET_OP_CLASSES
#include "TestAttnOps.h.inc"

#endif // ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNDIALECT_H
