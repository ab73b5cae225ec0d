//===- CheckLocations.cpp - Ops that have lost their location -------------===//

#include "TestPasses.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

using namespace mlir;

/// True if nothing in `location` says where the op comes from.
static bool isUnknown(Location location) {
  bool known = false;
  location->walk([&](Location part) {
    known |= isa<FileLineColLoc, FileLineColRange, NameLoc>(part);
    return known ? WalkResult::interrupt() : WalkResult::advance();
  });
  return !known;
}

namespace {
/// An error at the first op of each kind whose location is unknown, for use
/// after a pass whose input has locations.
struct CheckLocationsPass : PassWrapper<CheckLocationsPass, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(CheckLocationsPass)

  StringRef getArgument() const final { return "test-attn-check-locations"; }
  StringRef getDescription() const final {
    return "Check that every op has a location";
  }

  void runOnOperation() override {
    markAllAnalysesPreserved();
    llvm::MapVector<OperationName, std::pair<Operation *, unsigned>> lost;
    getOperation()->walk([&](Operation *op) {
      if (isUnknown(op->getLoc())) {
        auto &entry = lost[op->getName()];
        entry.first = op;
        ++entry.second;
      }
    });
    for (auto &[name, entry] : lost)
      entry.first->emitOpError("has no location, like ")
          << entry.second - 1 << " others of its kind";
    if (!lost.empty())
      signalPassFailure();
  }
};
} // namespace

void attn::test::registerCheckLocationsPass() {
  PassRegistration<CheckLocationsPass>();
}
