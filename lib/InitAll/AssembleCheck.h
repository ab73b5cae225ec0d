//===- AssembleCheck.h - Plans that ptxas is asked about --------*- C++ -*-===//

#ifndef ATTN_LIB_INITALL_ASSEMBLECHECK_H
#define ATTN_LIB_INITALL_ASSEMBLECHECK_H

#include "attn/Dialect/Attn/Transforms/Pipelines.h"
#include "mlir/Pass/Pass.h"
#include <memory>

namespace mlir::attn {

/// Creates the pass that plans as attn-plan does, but asks ptxas about each
/// plan before it takes it: of the first three the first one that spills
/// nothing in a loop that runs for each block of keys.
std::unique_ptr<Pass>
createAssembleCheckPass(const AttnPipelineOptions &options);

} // namespace mlir::attn

#endif // ATTN_LIB_INITALL_ASSEMBLECHECK_H
