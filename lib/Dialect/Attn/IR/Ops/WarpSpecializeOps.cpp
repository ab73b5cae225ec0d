//===- WarpSpecializeOps.cpp - Partitions of a CTA ------------------------===//

#include "../Completion.h"
#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Target/TargetTable.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace mlir::attn;

ParseResult WarpSpecializeOp::parse(OpAsmParser &parser,
                                    OperationState &result) {
  SmallVector<Attribute> names;
  SmallVector<int64_t> warps, tiles, registers;
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  while (succeeded(parser.parseOptionalKeyword("partition"))) {
    StringAttr name;
    int64_t count = 0, budget = 0;
    if (parser.parseAttribute(name) || parser.parseKeyword("warps") ||
        parser.parseInteger(count))
      return failure();
    std::array<int64_t, 2> grid = {0, 0};
    if (succeeded(parser.parseOptionalKeyword("tiles")) &&
        (parser.parseLSquare() || parser.parseInteger(grid[0]) ||
         parser.parseComma() || parser.parseInteger(grid[1]) ||
         parser.parseRSquare()))
      return failure();
    if (parser.parseKeyword("registers") || parser.parseInteger(budget))
      return failure();
    Region *region = result.addRegion();
    if (parser.parseRegion(*region))
      return failure();
    ensureTerminator(*region, parser.getBuilder(), result.location);
    names.push_back(name);
    warps.push_back(count);
    llvm::append_range(tiles, grid);
    registers.push_back(budget);
  }
  Builder &builder = parser.getBuilder();
  result.addAttribute(getNamesAttrName(result.name),
                      builder.getArrayAttr(names));
  result.addAttribute(getWarpsAttrName(result.name),
                      builder.getDenseI64ArrayAttr(warps));
  result.addAttribute(getTilesAttrName(result.name),
                      builder.getDenseI64ArrayAttr(tiles));
  result.addAttribute(getRegistersAttrName(result.name),
                      builder.getDenseI64ArrayAttr(registers));
  return success();
}

void WarpSpecializeOp::print(OpAsmPrinter &printer) {
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(), {getNamesAttrName(), getWarpsAttrName(),
                            getTilesAttrName(), getRegistersAttrName()});
  for (auto [index, region] : llvm::enumerate(getPartitions())) {
    printer.printNewline();
    printer << "partition " << getNames()[index] << " warps "
            << getWarps()[index];
    if (auto grid = getTileGrid(index))
      printer << " tiles [" << grid->first << ", " << grid->second << "]";
    printer << " registers " << getRegisters()[index] << ' ';
    printer.printRegion(region, /*printEntryBlockArgs=*/false,
                        /*printBlockTerminators=*/false);
  }
}

bool WarpSpecializeOp::movesRegisters() {
  return getWarps().size() > 1 && !llvm::all_equal(getRegisters());
}

int WarpSpecializeOp::getMinimumSM() { return movesRegisters() ? 90 : 80; }

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

std::optional<std::pair<int64_t, int64_t>>
WarpSpecializeOp::getTileGrid(unsigned partition) {
  ArrayRef<int64_t> grid = getTiles().slice(2 * partition, 2);
  if (grid[0] == 0)
    return std::nullopt;
  return std::pair(grid[0], grid[1]);
}

/// Whether a partition's warps, grid and registers are possible by themselves.
static LogicalResult verifyPartition(WarpSpecializeOp op, unsigned index) {
  StringRef name = cast<StringAttr>(op.getNames()[index]).getValue();
  if (op.findPartition(name) != index)
    return op.emitOpError("expected partitions of different names, got '")
           << name << "' twice";
  int64_t warps = op.getWarps()[index], first = op.getFirstWarp(index);
  int64_t registers = op.getRegisters()[index];
  if (warps < 1 || warps > kMaxWarps)
    return op.emitOpError("expected 1 to ")
           << kMaxWarps << " warps in partition '" << name << "', got "
           << warps;
  bool isWhole = first % kWarpgroupWarps == 0 && warps % kWarpgroupWarps == 0;
  if (!isWhole &&
      first / kWarpgroupWarps != (first + warps - 1) / kWarpgroupWarps)
    return op.emitOpError("expected partition '")
           << name << "' to be whole warpgroups of " << kWarpgroupWarps
           << " warps, or to lie in one, got warps " << first << " to "
           << first + warps - 1;
  ArrayRef<int64_t> grid = op.getTiles().slice(2 * index, 2);
  if ((grid[0] != 0 || grid[1] != 0) &&
      (!isWarpGrid(grid) || grid[0] * grid[1] != warps))
    return op.emitOpError("expected the grid of partition '")
           << name << "' to deal its " << warps
           << " warps to two powers of two (rows, columns), or to any number "
              "of rows and 1, got ["
           << grid << "]";
  if (registers < 24 || registers > 256 || registers % 8 != 0)
    return op.emitOpError("expected 24 to 256 registers, a multiple of 8, in "
                          "partition '")
           << name << "', got " << registers;
  return success();
}

/// Whether the partitions fill warpgroups and fit the register file.
static LogicalResult verifyWarpgroups(WarpSpecializeOp op) {
  std::string sum;
  int64_t total = 0;
  for (auto [index, warps, registers] :
       llvm::enumerate(op.getWarps(), op.getRegisters())) {
    // setmaxnreg acts on whole warpgroups.
    if (op.getFirstWarp(index) % kWarpgroupWarps != 0 &&
        op.getRegisters()[index - 1] != registers)
      return op.emitOpError("expected one number of registers for the "
                            "partitions of a warpgroup, got ")
             << op.getRegisters()[index - 1] << " in "
             << op.getNames()[index - 1] << " and " << registers << " in "
             << op.getNames()[index];
    total += warps * 32 * registers;
    sum += llvm::formatv("{0}{1} {2} x 32 x {3}", index ? " + " : "",
                         cast<StringAttr>(op.getNames()[index]).getValue(),
                         warps, registers);
  }
  if (op.movesRegisters() && op.getTotalWarps() % kWarpgroupWarps != 0)
    return op.emitOpError("expected whole warpgroups of ")
           << kWarpgroupWarps << " warps in all, got " << op.getTotalWarps()
           << " warps; a partition without ops may take the rest";
  if (total > kRegisterFile)
    return op.emitOpError("expected at most ")
           << kRegisterFile << " registers in all, got " << total << " (" << sum
           << ")";
  return success();
}

LogicalResult WarpSpecializeOp::verify() {
  size_t count = getPartitions().size();
  if (count == 0)
    return emitOpError("expected at least one partition, got none");
  if (getNames().size() != count || getWarps().size() != count ||
      getTiles().size() != 2 * count || getRegisters().size() != count)
    return emitOpError("expected a name, warps, two extents of tiles and "
                       "registers for each of ")
           << count << " partitions, got " << getNames().size() << ", "
           << getWarps().size() << ", " << getTiles().size() << " and "
           << getRegisters().size();
  for (unsigned index = 0; index < count; ++index)
    if (failed(verifyPartition(*this, index)))
      return failure();
  if (failed(verifyWarpgroups(*this)))
    return failure();
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
  for (auto [index, partition] : llvm::enumerate(getPartitions())) {
    Region &region = partition;
    bool hasTiles = getTileGrid(index).has_value();
    WalkResult result =
        region.walk([&, name = getNames()[index]](Operation *op) {
          if (!hasTiles && llvm::any_of(op->getResultTypes(), isRegisters)) {
            InFlightDiagnostic diag =
                op->emitOpError("expected no register tile in partition ")
                << name << ", whose grid of warps nothing states";
            diag.attachNote(getLoc())
                << "expected 'tiles [rows, columns]' after "
                   "the partition's warps here";
            return WalkResult::interrupt();
          }
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

/// Erases an op whose region does nothing.
static LogicalResult eraseIfEmpty(Operation *op, PatternRewriter &rewriter) {
  if (!llvm::hasSingleElement(op->getRegion(0).front()))
    return failure();
  rewriter.eraseOp(op);
  return success();
}

/// Ops of other dialects that all threads of a warp come to together; none of
/// them says so itself.
static bool takesWholeWarpsUpstream(Operation *op) {
  return isa<gpu::BarrierOp, gpu::ShuffleOp, gpu::RotateOp, gpu::AllReduceOp,
             gpu::SubgroupReduceOp, NVVM::Barrier0Op, NVVM::BarrierOp,
             NVVM::SyncWarpOp, NVVM::ShflOp, NVVM::VoteSyncOp, NVVM::ReduxOp,
             NVVM::MatchSyncOp, NVVM::ElectSyncOp>(op);
}

bool attn::takesWholeWarps(Operation *op) {
  if (op->hasTrait<TakesWholeWarps>() || takesWholeWarpsUpstream(op))
    return true;
  if (auto async = dyn_cast<AsyncOpInterface>(op)) {
    const AsyncEngine &engine = async.getAsyncEngine();
    // One thread may wait for its own copies.
    bool isOfThreads = &engine == &kBulkStores ||
                       (&engine == &kCopyGroups && async.getAwaitedGroups());
    if (engine.completion == AsyncEngine::Completion::Groups && !isOfThreads)
      return true;
  }
  auto isInThreads = llvm::IsaPred<RankedTensorType, InFlightType>;
  return llvm::any_of(op->getOperandTypes(), isInThreads) ||
         llvm::any_of(op->getResultTypes(), isInThreads);
}

LogicalResult ElectOp::verifyRegions() {
  Operation *whole = nullptr;
  getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    whole = takesWholeWarps(op) ? op : nullptr;
    return whole ? WalkResult::interrupt() : WalkResult::advance();
  });
  if (!whole)
    return success();
  InFlightDiagnostic diag =
      whole->emitOpError("needs all threads of a warp, and one comes to it");
  diag.attachNote(getLoc()) << "one thread runs this region";
  return diag;
}

LogicalResult ElectOp::canonicalize(ElectOp op, PatternRewriter &rewriter) {
  return eraseIfEmpty(op, rewriter);
}

LogicalResult ClusterLeaderOp::verify() {
  return verifyRankBits(*this, std::nullopt, true, getRankBits());
}

LogicalResult ClusterLeaderOp::canonicalize(ClusterLeaderOp op,
                                            PatternRewriter &rewriter) {
  return eraseIfEmpty(op, rewriter);
}

void ElectOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &successors) {
  getRegionsOrParent(*this, point, successors);
}

void ClusterLeaderOp::getSuccessorRegions(
    RegionBranchPoint point, SmallVectorImpl<RegionSuccessor> &successors) {
  getRegionsOrParent(*this, point, successors);
}

std::pair<WarpSpecializeOp, unsigned> attn::getPartition(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto parent = dyn_cast_or_null<WarpSpecializeOp>(op->getParentOp()))
      return {parent, op->getParentRegion()->getRegionNumber()};
  return {};
}
