//===- LimitShared.cpp - The pass example-limit-shared --------------------===//

#include "ExamplePasses.h"
#include "mlir/IR/Remarks.h"

namespace mlir::attn::example {
#define GEN_PASS_DEF_EXAMPLELIMITSHAREDPASS
#include "ExamplePasses.h.inc"
} // namespace mlir::attn::example

using namespace mlir;
using namespace mlir::attn;

namespace {
struct ExampleLimitSharedPass
    : example::impl::ExampleLimitSharedPassBase<ExampleLimitSharedPass> {
  using Base::Base;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(check(kernel)))
        signalPassFailure();
  }

  LogicalResult check(gpu::GPUFuncOp kernel) {
    auto bytes =
        kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
    if (!bytes)
      return kernel.emitError("expected '")
             << AttnDialect::kSharedBytesAttr
             << "', which attn-allocate-shared sets, got none";
    if (bytes.getInt() > limit)
      return kernel.emitError("expected at most ")
             << limit.getValue() << " bytes of shared memory, got "
             << bytes.getInt();
    ++numWithin;
    remark::passed(kernel.getLoc(), remark::RemarkOpts::name("within")
                                        .category("example.limit-shared")
                                        .function(kernel.getName()))
        << remark::add("shared memory is within the limit")
        << remark::metric("bytes", bytes.getInt())
        << remark::metric("limit", limit.getValue());
    return success();
  }
};
} // namespace
