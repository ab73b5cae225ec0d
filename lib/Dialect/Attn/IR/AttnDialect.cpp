//===- AttnDialect.cpp - Registration and attribute checks ----------------===//

#include "attn/Dialect/Attn/IR/AssembledAttr.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/IR/OccupancyAttr.h"
#include "attn/Dialect/Attn/IR/ProofAttr.h"
#include "attn/Dialect/Attn/IR/Rung.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Interfaces/FoldInterfaces.h"

using namespace mlir;
using namespace mlir::attn;

#include "attn/Dialect/Attn/IR/AttnDialect.cpp.inc"

#include "attn/Dialect/Attn/IR/AttnEnums.cpp.inc"

namespace {

/// Where folding puts constants.
struct AttnFoldInterface : DialectFoldInterface {
  using DialectFoldInterface::DialectFoldInterface;

  /// A partition keeps its constants: tiles do not come from above, and neither
  /// should registers that no other partition needs.
  bool shouldMaterializeInto(Region *region) const final {
    return isa<WarpSpecializeOp>(region->getParentOp());
  }
};

} // namespace

void AttnDialect::initialize() {
  addInterfaces<AttnFoldInterface>();
  registerBytecode();
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "attn/Dialect/Attn/IR/AttnOps.cpp.inc"
      >();
  declarePromisedInterface<gpu::TargetAttrInterface, TargetAttr>();
}

/// Most warps of a CTA.
static constexpr int64_t kMostTeams = 32;

Operation *AttnDialect::materializeConstant(OpBuilder &builder, Attribute value,
                                            Type type, Location loc) {
  return arith::ConstantOp::materialize(builder, value, type, loc);
}

LogicalResult AttnDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  if (name == kLaunchAttr) {
    if (!isa<FunctionOpInterface>(op))
      return op->emitOpError("'attn.launch' is for kernels only");
    if (auto kernel = dyn_cast<gpu::GPUFuncOp>(op);
        kernel && !kernel.isKernel())
      return op->emitOpError("expected 'kernel' before its attributes, got a "
                             "function that nothing launches");
    if (!isa<LaunchAttr>(attribute.getValue()))
      return op->emitOpError("expected 'attn.launch' to be #attn.launch<...>, "
                             "got ")
             << attribute.getValue();
  }
  if (name == kProofAttr) {
    if (!isa<FunctionOpInterface>(op))
      return op->emitOpError("'attn.proof' is for kernels only");
    if (!readProofAttr(attribute.getValue()))
      return op->emitOpError("expected 'attn.proof' to be a verdict of the "
                             "check of barriers, such as {assumptions = "
                             "[\"A4\"], profile = \"isa\", verdict = "
                             "\"proved\"}, got ")
             << attribute.getValue();
  }
  if (name == kAssembledAttr) {
    if (!isa<ModuleOp>(op))
      return op->emitOpError("'attn.assembled' is for builtin modules only");
    if (!readAssembledAttr(attribute.getValue()))
      return op->emitOpError("expected 'attn.assembled' to be what ptxas said "
                             "of plans, such as {ptxas = \"13.0\", skipped = "
                             "0 : i64}, got ")
             << attribute.getValue();
  }
  if (name == kWarpsAttr) {
    auto grid = dyn_cast<DenseI64ArrayAttr>(attribute.getValue());
    if (!grid || !isWarpGrid(grid))
      return op->emitOpError("expected 'attn.warps' to be two powers of two "
                             "(warps over rows and columns), or any number of "
                             "rows and 1, of at most 32 warps, got ")
             << attribute.getValue();
  }
  if (name == kTeamsAttr) {
    auto teams = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!teams || teams.getInt() < 1 || teams.getInt() > kMostTeams)
      return op->emitOpError("expected 'attn.teams' to be from 1 to ")
             << kMostTeams << ", got " << attribute.getValue();
    auto grid = op->getAttrOfType<DenseI64ArrayAttr>(kWarpsAttr);
    if (!grid || grid.asArrayRef() != ArrayRef<int64_t>{1, 1})
      return op->emitOpError("expected 'attn.warps' to be one warp beside "
                             "'attn.teams', got ")
             << (grid ? Attribute(grid) : UnitAttr::get(getContext()));
  }
  if (name == kMostCtasAttr) {
    auto ctas = dyn_cast<IntegerAttr>(attribute.getValue());
    if (!ctas || ctas.getInt() < 1 || ctas.getInt() > kMostCtas)
      return op->emitOpError(
                 "expected 'attn.most_ctas_per_sm' to be from 1 to ")
             << kMostCtas << ", got " << attribute.getValue();
  }
  if (name == kRungAttr) {
    if (!isa<gpu::GPUModuleOp>(op))
      return op->emitOpError("'attn.rung' is for a gpu.module only");
    auto text = dyn_cast<StringAttr>(attribute.getValue());
    std::optional<Rung> rung;
    if (text)
      rung = symbolizeRung(text.getValue());
    if (!rung || *rung < Rung::Tile || *rung > Rung::NVVM)
      return op->emitOpError("expected 'attn.rung' to be \"tile\", "
                             "\"barrier\", \"thread\" or \"nvvm\", got ")
             << attribute.getValue();
  }
  return success();
}

FailureOr<std::pair<int64_t, int64_t>> attn::getWarpGrid(Operation *op) {
  Operation *place = op;
  for (; !isa<FunctionOpInterface>(place); place = place->getParentOp()) {
    auto partitions = dyn_cast<WarpSpecializeOp>(place->getParentOp());
    if (!partitions)
      continue;
    unsigned index = place->getParentRegion()->getRegionNumber();
    auto grid = partitions.getTileGrid(index);
    assert(grid && "the verifier of partitions lets no tile into others");
    return *grid;
  }
  auto grid = place->getAttrOfType<DenseI64ArrayAttr>(AttnDialect::kWarpsAttr);
  if (!grid)
    return place->emitOpError(
        "expected the attribute 'attn.warps' on a kernel in tile IR");
  return std::pair<int64_t, int64_t>(grid[0], grid[1]);
}

int64_t attn::getTeams(gpu::GPUFuncOp kernel) {
  auto teams = kernel->getAttrOfType<IntegerAttr>(AttnDialect::kTeamsAttr);
  return teams ? teams.getInt() : 1;
}

bool attn::isTileKernel(gpu::GPUFuncOp kernel) {
  return kernel->hasAttr(AttnDialect::kWarpsAttr) ||
         !kernel.getOps<WarpSpecializeOp>().empty();
}

void attn::registerAttnDialect(DialectRegistry &registry) {
  registry.insert<AttnDialect>();
}
