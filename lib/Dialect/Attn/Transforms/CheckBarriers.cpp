//===- CheckBarriers.cpp - Prove that synchronisation is right ------------===//

#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "attn/Analysis/Barriers/LaunchAgreement.h"
#include "attn/Dialect/Attn/IR/ProofAttr.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "attn/Support/Files.h"
#include "mlir/IR/Remarks.h"
#include "llvm/Support/FormatVariadic.h"

namespace mlir::attn {
#define GEN_PASS_DEF_ATTNCHECKBARRIERSPASS
#include "attn/Dialect/Attn/Transforms/Passes.h.inc"
} // namespace mlir::attn

using namespace mlir;
using namespace mlir::attn;

namespace {

struct AttnCheckBarriersPass
    : attn::impl::AttnCheckBarriersPassBase<AttnCheckBarriersPass> {
  using Base::Base;

  void runOnOperation() override {
    BarrierCheckOptions options;
    if (profile != "isa" && profile != "hw") {
      getOperation().emitError("expected profile isa or hw, got '")
          << profile << "'";
      return signalPassFailure();
    }
    options.profile = profile == "hw" ? OrderProfile::Hw : OrderProfile::Isa;
    options.limit = limit;
    options.clusterScope = clusterScope;
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>())
      if (failed(check(kernel, options)))
        return signalPassFailure();
  }

  LogicalResult check(gpu::GPUFuncOp kernel,
                      const BarrierCheckOptions &options);
  void writeWitness(gpu::GPUFuncOp kernel, const BarrierCheckOptions &options,
                    const BarrierReport &report);
  LogicalResult writeSkeleton(gpu::GPUFuncOp kernel,
                              const BarrierCheckOptions &options);
  void reportSuperfluous(gpu::GPUFuncOp kernel,
                         const BarrierCheckOptions &options);
};

} // namespace

/// What a launch record says of a kernel that is made.
static SyncVerdict getVerdict(const BarrierReport &report, StringRef profile) {
  SyncVerdict verdict;
  if (report.verdict == BarrierVerdict::Unsupported) {
    verdict.reason = report.unsupported->text;
    return verdict;
  }
  bool isProved = report.verdict == BarrierVerdict::Proved;
  verdict.kind =
      isProved ? SyncVerdict::Kind::Proved : SyncVerdict::Kind::Bounded;
  verdict.profile = profile.str();
  verdict.assumptions = report.assumptions;
  if (!isProved) {
    verdict.tiles = report.tiles;
    verdict.reason = report.bound;
  }
  return verdict;
}

/// Says what the check has found; fails where the kernel may not go on.
LogicalResult AttnCheckBarriersPass::check(gpu::GPUFuncOp kernel,
                                           const BarrierCheckOptions &options) {
  if (std::optional<std::string> why = findUnlikeLaunch(kernel))
    return kernel.emitError("expected a kernel that agrees with its launch: ")
           << *why;
  if (failed(checkTensorGroups(kernel)))
    return failure();
  BarrierReport report = checkBarriers(kernel, options);
  if (!skeleton.empty() && report.verdict != BarrierVerdict::Witness &&
      report.verdict != BarrierVerdict::Proved) {
    bool isBounded = report.verdict == BarrierVerdict::Bounded;
    return kernel.emitError("skeleton: expected a kernel that is proved: ")
           << (isBounded ? report.bound : report.unsupported->text);
  }
  if (!skeleton.empty() && report.unknowns != 0 &&
      report.verdict == BarrierVerdict::Proved)
    return kernel.emitError("skeleton: expected a launch that gives all sizes, "
                            "got ")
           << report.unknowns << " unknown numbers";
  if (report.verdict != BarrierVerdict::Witness)
    kernel->setAttr(kProofAttr,
                    getProofAttr(&getContext(), getVerdict(report, profile)));
  switch (report.verdict) {
  case BarrierVerdict::Witness: {
    writeWitness(kernel, options, report);
    InFlightDiagnostic diag = report.witness->op->emitError()
                              << stringifyBarrierFault(report.witness->fault)
                              << ": " << report.witness->text;
    for (const OpNote &note : report.witness->notes)
      diag.attachNote(note.op->getLoc()) << note.text;
    return failure();
  }
  case BarrierVerdict::Unsupported: {
    ++numUnsupported;
    Operation *op = report.unsupported->op;
    numOfLaunch += report.isOfLaunch;
    if (report.isOfLaunch && launchRemark && !requireProof) {
      remark::missed(op->getLoc(), remark::RemarkOpts::name("not-checked")
                                       .category("attn.check-barriers")
                                       .function(kernel.getName()))
          << remark::add("synchronisation is not checked: it depends on what "
                         "only the launch gives")
          << remark::reason("{0}", report.unsupported->text);
      return success();
    }
    InFlightDiagnostic diag =
        requireProof ? op->emitError() : op->emitWarning();
    diag << "the synchronisation of '" << kernel.getName()
         << "' cannot be checked: " << report.unsupported->text;
    return failure(requireProof);
  }
  case BarrierVerdict::Bounded: {
    ++numBounded;
    if (report.isOfLaunch && launchRemark && !requireProof) {
      remark::missed(kernel.getLoc(), remark::RemarkOpts::name("not-proved")
                                          .category("attn.check-barriers")
                                          .function(kernel.getName()))
          << remark::add("synchronisation is not proved for all sizes")
          << remark::reason("{0}", report.bound);
      return success();
    }
    InFlightDiagnostic diag =
        requireProof ? kernel.emitError() : kernel.emitWarning();
    diag << "checked up to " << report.tiles
         << " tiles, not proved: " << report.bound;
    return requireProof ? failure() : success();
  }
  case BarrierVerdict::Proved:
    break;
  }
  ++numProved;
  remark::passed(kernel.getLoc(), remark::RemarkOpts::name("proved")
                                      .category("attn.check-barriers")
                                      .function(kernel.getName()))
      << remark::add(report.unknowns == 0
                         ? "synchronisation is proved for all tiles"
                         : "synchronisation is proved for all tiles, where "
                           "arguments are not negative, sums do not "
                           "overflow and tensors that are written do not "
                           "overlap those that are only loaded")
      << remark::metric("profile", profile.getValue())
      << remark::metric("assumptions", describeAssumptions(report.assumptions))
      << remark::metric("warps", report.warps)
      << remark::metric("tile-kinds", report.classes)
      << remark::metric("block-kinds", report.blocks)
      << remark::metric("states", report.states)
      << remark::metric("tiles-in-a-row", report.tiles)
      << remark::metric("unknowns", report.unknowns)
      << remark::metric("steps", report.steps);
  if (superfluous)
    reportSuperfluous(kernel, options);
  return writeSkeleton(kernel, options);
}

/// Says which ops order nothing that is not ordered without them. Two of them
/// may stand for each other.
void AttnCheckBarriersPass::reportSuperfluous(
    gpu::GPUFuncOp kernel, const BarrierCheckOptions &options) {
  for (Operation *op : getOrderingOps(kernel)) {
    if (checkWithout(op, options).verdict != BarrierVerdict::Proved)
      continue;
    ++numSuperfluous;
    remark::analysis(op->getLoc(), remark::RemarkOpts::name("superfluous")
                                       .category("attn.check-barriers")
                                       .function(kernel.getName()))
        << remark::add("the kernel is proved without this op too")
        << remark::metric("op", op->getName().getStringRef());
  }
}

LogicalResult
AttnCheckBarriersPass::writeSkeleton(gpu::GPUFuncOp kernel,
                                     const BarrierCheckOptions &options) {
  if (skeleton.empty())
    return success();
  SyncSkeleton found = recordSkeleton(kernel, options);
  if (found.runs.empty())
    return kernel.emitError("skeleton: a launch cannot be followed to its end "
                            "within ")
           << options.limit << " steps";
  llvm::json::Value text = toJSON(found);
  if (llvm::Error error = writeFile(skeleton, [&](llvm::raw_ostream &os) {
        os << llvm::formatv("{0}\n", text);
      }))
    return kernel.emitError("skeleton: ") << llvm::toString(std::move(error));
  return success();
}

void AttnCheckBarriersPass::writeWitness(gpu::GPUFuncOp kernel,
                                         const BarrierCheckOptions &options,
                                         const BarrierReport &report) {
  if (witness.empty())
    return;
  llvm::json::Value text = toJSON(recordWitness(kernel, options, report));
  if (llvm::Error error = writeFile(witness, [&](llvm::raw_ostream &os) {
        os << llvm::formatv("{0:2}\n", text);
      }))
    kernel.emitError("witness: ") << llvm::toString(std::move(error));
}
