//===- Instrument.cpp - The pass attn-instrument --------------------------===//

#include "Instrumenter.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Target/TargetTable.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNINSTRUMENTPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::instrument;

namespace {
struct AttnInstrumentPass
    : attn::impl::AttnInstrumentPassBase<AttnInstrumentPass> {
  using Base::Base;

  void runOnOperation() override {
    gpu::GPUModuleOp module = getOperation();
    if (failed(checkOptions(module)))
      return signalPassFailure();
    Sites sites;
    Options own{checks, timeout, delay, seed};
    bool isAny = false;
    module.walk([&](MBarrierAllocOp) { isAny = true; });
    if (!isAny) {
      module.emitWarning("attn-instrument: nothing to check as it runs: no "
                         "kernel has mbarriers");
      return;
    }
    // Ops refer to it; how large it is stands fast in the end.
    LLVM::GlobalOp reports = makeGlobal(kReportsName, 1, Attribute());
    for (auto kernel : module.getOps<gpu::GPUFuncOp>())
      if (failed(instrument(kernel, own, sites)))
        return signalPassFailure();
    numChecks += sites.size();
    setWords(reports, kHeaderWords + sites.size() * kRecordWords);
    std::string text = sites.toText();
    text.push_back('\0');
    makeGlobal(kSitesName, text.size(), StringAttr::get(&getContext(), text));
  }

  LogicalResult checkOptions(gpu::GPUModuleOp module) {
    if (timeout < 0 || timeout > 1000000000)
      return module.emitError("attn-instrument: expected timeout-us from 0 to "
                              "1000000000, got ")
             << timeout.getValue();
    if (delay < 0 || delay > 1000000)
      return module.emitError(
                 "attn-instrument: expected delay-ns from 0 to 1000000, got ")
             << delay.getValue();
    if (module.lookupSymbol(kReportsName))
      return module.emitError("attn-instrument: the kernels are instrumented "
                              "already");
    return success();
  }

  LLVM::GlobalOp makeGlobal(StringRef name, int64_t count, Attribute value) {
    OpBuilder b = OpBuilder::atBlockBegin(getOperation().getBody());
    Type element = value ? b.getI8Type() : b.getI32Type();
    auto global = LLVM::GlobalOp::create(
        b, getOperation().getLoc(), LLVM::LLVMArrayType::get(element, count),
        /*isConstant=*/false, LLVM::Linkage::External, name, value,
        /*alignment=*/16, /*addrSpace=*/1);
    return global;
  }

  /// Gives the variable its size, and zeros at the start.
  static void setWords(LLVM::GlobalOp global, int64_t words) {
    OpBuilder b(global);
    global.setGlobalType(LLVM::LLVMArrayType::get(b.getI32Type(), words));
    b.createBlock(&global.getInitializerRegion());
    Value zero =
        LLVM::ZeroOp::create(b, global.getLoc(), global.getGlobalType());
    LLVM::ReturnOp::create(b, global.getLoc(), zero);
  }

  LogicalResult instrument(gpu::GPUFuncOp kernel, const Options &own,
                           Sites &sites);
};
} // namespace

LogicalResult AttnInstrumentPass::instrument(gpu::GPUFuncOp kernel,
                                             const Options &own, Sites &sites) {
  bool isAny = false;
  kernel.walk([&](MBarrierAllocOp) { isAny = true; });
  if (!isAny)
    return success();
  Instrumenter instrumenter(kernel, own, sites);
  if (failed(instrumenter.run()))
    return failure();
  auto bytes =
      kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  std::string target = chip;
  if (ArrayAttr targets = getOperation().getTargetsAttr())
    for (Attribute attr : targets)
      if (auto each = dyn_cast<TargetAttr>(attr))
        target = each.getChip().str();
  auto row = lookupTarget(target);
  if (!row)
    return kernel.emitError() << llvm::toString(row.takeError());
  int64_t before = llvm::alignTo(bytes.getInt(), 8);
  int64_t total = before + instrumenter.getBytes();
  if (total > row->sharedBytesPerCTA)
    return kernel.emitError("shared memory does not fit with the words of "
                            "attn-instrument: expected at most ")
           << row->sharedBytesPerCTA << " bytes on " << row->chip << ", got "
           << total << " (kernel " << before << " + words "
           << instrumenter.getBytes() << ")";
  numBytes += instrumenter.getBytes();
  kernel->setAttr(AttnDialect::kSharedBytesAttr,
                  OpBuilder(kernel).getI64IntegerAttr(total));
  return success();
}
