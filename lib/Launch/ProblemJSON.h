//===- ProblemJSON.h - The problem of a launch record -----------*- C++ -*-===//
//
// The object `problem` of a launch record: docs/LaunchRecord.md. Its fields
// follow from Options.def.
//
//===----------------------------------------------------------------------===//
#ifndef ATTN_LIB_LAUNCH_PROBLEMJSON_H
#define ATTN_LIB_LAUNCH_PROBLEMJSON_H

#include "ObjectReader.h"
#include "attn/Launch/LaunchRecord.h"

namespace mlir::attn {

/// Reads the object; what is wrong with it goes to `failure`.
AttentionProblem readProblem(const llvm::json::Value &value, Failure &failure);

/// The object that readProblem reads back.
llvm::json::Value writeProblem(const AttentionProblem &problem);

} // namespace mlir::attn

#endif // ATTN_LIB_LAUNCH_PROBLEMJSON_H
