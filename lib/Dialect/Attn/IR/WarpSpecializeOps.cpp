//===- WarpSpecializeOps.cpp - Partitions of a CTA ------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Target/TargetTable.h"

using namespace mlir;
using namespace mlir::attn;

ParseResult WarpSpecializeOp::parse(OpAsmParser &parser,
                                    OperationState &result) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> warps, registers;
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  while (succeeded(parser.parseOptionalKeyword("partition"))) {
    StringAttr name;
    int64_t count = 0, budget = 0;
    if (parser.parseAttribute(name) || parser.parseKeyword("warps") ||
        parser.parseInteger(count) || parser.parseKeyword("registers") ||
        parser.parseInteger(budget))
      return failure();
    Region *region = result.addRegion();
    if (parser.parseRegion(*region))
      return failure();
    ensureTerminator(*region, parser.getBuilder(), result.location);
    names.push_back(name);
    warps.push_back(count);
    registers.push_back(budget);
  }
  Builder &builder = parser.getBuilder();
  result.addAttribute(getNamesAttrName(result.name),
                      builder.getArrayAttr(names));
  result.addAttribute(getWarpsAttrName(result.name),
                      builder.getDenseI64ArrayAttr(warps));
  result.addAttribute(getRegistersAttrName(result.name),
                      builder.getDenseI64ArrayAttr(registers));
  return success();
}

void WarpSpecializeOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {getNamesAttrName(), getWarpsAttrName(), getRegistersAttrName()});
  for (auto [index, region] : llvm::enumerate(getPartitions())) {
    printer.printNewline();
    printer << "partition " << getNames()[index] << " warps "
            << getWarps()[index] << " registers " << getRegisters()[index]
            << ' ';
    printer.printRegion(region, /*printEntryBlockArgs=*/false,
                        /*printBlockTerminators=*/false);
  }
}

std::optional<unsigned> WarpSpecializeOp::findPartition(StringRef name) {
  for (auto [index, other] :
       llvm::enumerate(getNames().getAsValueRange<StringAttr>()))
    if (other == name)
      return index;
  return std::nullopt;
}

int64_t WarpSpecializeOp::getFirstWarp(unsigned partition) {
  return llvm::sum_of(getWarps().take_front(partition), int64_t(0));
}

int64_t WarpSpecializeOp::getTotalWarps() {
  return getFirstWarp(getWarps().size());
}

LogicalResult WarpSpecializeOp::verify() {
  size_t count = getPartitions().size();
  if (count == 0)
    return emitOpError("expected at least one partition, got none");
  if (getNames().size() != count || getWarps().size() != count ||
      getRegisters().size() != count)
    return emitOpError("expected a name, warps and registers for each of ")
           << count << " partitions, got " << getNames().size() << ", "
           << getWarps().size() << " and " << getRegisters().size();
  std::string sum;
  int64_t total = 0;
  for (auto [index, warps, registers] :
       llvm::enumerate(getWarps(), getRegisters())) {
    StringRef name = cast<StringAttr>(getNames()[index]).getValue();
    if (findPartition(name) != index)
      return emitOpError("expected partitions of different names, got '")
             << name << "' twice";
    // setmaxnreg acts on whole warpgroups.
    if (warps < 4 || warps % 4 != 0)
      return emitOpError("expected whole warpgroups of 4 warps in partition '")
             << name << "', got " << warps << " warps";
    if (registers < 24 || registers > 256 || registers % 8 != 0)
      return emitOpError("expected 24 to 256 registers, a multiple of 8, in "
                         "partition '")
             << name << "', got " << registers;
    total += warps * 32 * registers;
    sum += llvm::formatv("{0}{1} {2} x 32 x {3}", index ? " + " : "", name,
                         warps, registers);
  }
  if (total > kRegisterFile)
    return emitOpError("expected at most ")
           << kRegisterFile << " registers in all, got " << total << " (" << sum
           << ")";
  Operation *parent = (*this)->getParentOp();
  if (!isa<gpu::GPUFuncOp>(parent)) {
    InFlightDiagnostic diag =
        emitOpError("expected to stand at the top level of a kernel");
    diag.attachNote(parent->getLoc()) << "it stands in this op";
    return diag;
  }
  for (Operation *other = (*this)->getPrevNode(); other;
       other = other->getPrevNode())
    if (isa<WarpSpecializeOp>(other)) {
      InFlightDiagnostic diag = emitOpError("expected to be the only one");
      diag.attachNote(other->getLoc()) << "another one is here";
      return diag;
    }
  return success();
}

LogicalResult WarpSpecializeOp::verifyRegions() {
  for (Region &region : getPartitions()) {
    WalkResult result = region.walk([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (isa<RankedTensorType>(operand.getType()) &&
            operand.getParentRegion()->isProperAncestor(&region)) {
          InFlightDiagnostic diag = op->emitOpError(
              "expected no register tile from outside the partition");
          diag.attachNote(operand.getLoc()) << "the tile is made here";
          return WalkResult::interrupt();
        }
      return WalkResult::advance();
    });
    if (result.wasInterrupted())
      return failure();
  }
  return success();
}

/// Either the regions, which all begin, or what is behind them.
static void getRegionsOrParent(Operation *op, RegionBranchPoint point,
                               SmallVectorImpl<RegionSuccessor> &successors) {
  if (point.isParent())
    for (Region &region : op->getRegions())
      successors.emplace_back(&region);
  successors.emplace_back(op, op->getResults());
}

void WarpSpecializeOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &successors) {
  getRegionsOrParent(*this, point, successors);
}

void ElectOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &successors) {
  getRegionsOrParent(*this, point, successors);
}

void ClusterLeaderOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &successors) {
  getRegionsOrParent(*this, point, successors);
}
