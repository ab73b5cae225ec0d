//===- TestAttnDialect.h - Ops that only tests use --------------*- C++ -*-===//

#ifndef ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNDIALECT_H
#define ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNDIALECT_H

#include "attn/Dialect/Attn/IR/Attn.h"

#include "TestAttnDialect.h.inc"

#define GET_OP_CLASSES
#include "TestAttnOps.h.inc"

#endif // ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNDIALECT_H
