//===- BarrierTiles.cpp - Loops over tiles --------------------------------===//
//
// A persistent kernel walks tiles. In each of its partitions there is a loop in
// which one value stands for the tile: all that the body computes from the
// block's number and the induction variable goes through it. The loops of all
// partitions walk the same tiles if these values are computed in the same way.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "attn/Analysis/Flow/HandleFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "llvm/ADT/SmallSet.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// The integers and groups that a value is computed from, directly.
SmallVector<Value> Compiler::sourcesOf(Value value) {
  SmallVector<Value> sources(flow.lookup(value));
  Operation *def = value.getDefiningOp();
  if (!def || isa<InFlightType>(value.getType())) {
    // A product is a new group, whatever it is computed from.
  } else if (tileValues.contains(def)) {
    // How many tiles come first does not depend on the block.
  } else if (auto branch = dyn_cast<scf::IfOp>(def)) {
    // Which way control went decides which of its values a branch has.
    sources.push_back(branch.getCondition());
  } else if (auto loop = dyn_cast<scf::ForOp>(def)) {
    sources.append({loop.getLowerBound(), loop.getUpperBound()});
  } else if (auto loop = dyn_cast<scf::WhileOp>(def)) {
    sources.push_back(loop.getConditionOp().getCondition());
  } else if (def->getNumRegions() == 0) {
    llvm::append_range(sources, def->getOperands());
  }
  llvm::erase_if(sources, [](Value source) {
    return !source.getType().isIntOrIndex() &&
           !isa<InFlightType>(source.getType());
  });
  return sources;
}

/// Whether `from` is computed from a source, other than through a stop.
bool Compiler::reaches(Value from, llvm::function_ref<bool(Value)> isSource,
                       llvm::function_ref<bool(Value)> isStop) {
  SmallVector<Value> worklist = {from};
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (isStop(value) || !seen.insert(value).second)
      continue;
    if (isSource(value))
      return true;
    llvm::append_range(worklist, sourcesOf(value));
  }
  return false;
}

/// Whether everything that matters in the body depends on the block and on the
/// induction variable only through `value`.
bool Compiler::isTile(scf::ForOp loop, Value value) {
  Value induction = loop.getInductionVar();
  auto isSource = [&](Value source) {
    return source == induction || isBlockNumber(source);
  };
  auto isValue = [&](Value other) { return other == value; };
  return llvm::none_of(roots, [&](const auto &root) {
    return loop->isProperAncestor(root.first) &&
           reaches(root.second, isSource, isValue);
  });
}

/// How a value is computed, as text: the same text is the same number.
std::string Compiler::textOf(Value value, Value induction) {
  if (value == induction)
    return "i";
  std::string text;
  llvm::raw_string_ostream os(text);
  Operation *def = value.getDefiningOp();
  if (!def) {
    os << "argument " << cast<BlockArgument>(value).getArgNumber() << " of "
       << value.getParentRegion()->getParentOp();
    return text;
  }
  os << def->getName() << def->getAttrDictionary() << def->getResultTypes()
     << '(';
  if (def->getNumRegions() != 0)
    os << def;
  for (Value operand : def->getOperands())
    os << textOf(operand, induction) << ',';
  os << ')' << cast<OpResult>(value).getResultNumber();
  return text;
}

/// A loop over tiles starts at the block's, or counts those that it has, and
/// goes on by the size of the grid.
void Compiler::findTileFor(scf::ForOp loop) {
  // CTAs that share tiles stand in a row.
  if (program.grid[1] > 1 || program.grid[2] > 1)
    return;
  if (!reaches(loop.getLowerBound(), isBlockNumber, isNothing) &&
      !reaches(loop.getUpperBound(), isBlockNumber, isNothing))
    return;
  Value tile;
  if (isTile(loop, loop.getInductionVar()))
    tile = loop.getInductionVar();
  for (Operation &op : *loop.getBody())
    if (!tile && op.getNumRegions() == 0 && op.getNumResults() == 1 &&
        isDemanded(op.getResult(0)) && isTile(loop, op.getResult(0)))
      tile = op.getResult(0);
  // What goes on in other steps is a loop within a tile, or counts tiles whose
  // numbers nothing needs.
  if (!tile || !reaches(tile == loop.getInductionVar() ? loop.getStep() : tile,
                        isGridSize, isNothing))
    tile = findDistinctNumber(loop);
  if (!tile)
    return;
  // Without partitions a kernel walks tiles in one loop, or none.
  if (!partitions && !tileValues.empty()) {
    hasSeveralLoops = true;
    return;
  }
  Value induction = loop.getInductionVar();
  std::string text;
  for (Value value :
       {loop.getLowerBound(), loop.getUpperBound(), loop.getStep(), tile})
    text += textOf(value, induction) + ";";
  text += loop.getUnsignedCmp() ? "unsigned" : "";
  if (hasOpenLoops() && !isOfLaunch(loop))
    return fail(loop, kUnlikeTiles.str());
  program.areTilesCounts &= !loop.getUnsignedCmp() &&
                            isCount(loop.getLowerBound(), {}) &&
                            isCount(tile, induction);
  demand(loop, tile);
  tileValues[loop] = tile;
  if (!tileText.empty() && tileText != text)
    unlikeLoop = loop;
  else
    tileText = text;
}

void Compiler::findTileWhile(scf::WhileOp loop) {
  for (auto [init, argument] :
       llvm::zip(loop.getInits(), loop.getBeforeArguments())) {
    if (!isDemanded(argument) || !reaches(init, isBlockNumber, isNothing))
      continue;
    // The number behind the last tile may be dealt, which none of the tiles
    // shows: all have to take it for none.
    Value condition = loop.getConditionOp().getCondition();
    std::string text =
        "first " + textOf(init, {}) + " while " + textOf(condition, argument);
    bool isOther = !tileText.empty() && tileText != text;
    bool isOpen = hasOpenLoops() &&
                  !(isOfLaunch(init, {}) && isOfLaunch(condition, argument));
    if (tileValues.contains(loop) || isOther || isOpen)
      return fail(loop, kUnlikeTiles.str());
    program.areTilesCounts &= isCount(init, {});
    tileText = text;
    tileValues[loop] = argument;
  }
}

/// The op that computes the number of the next tile from what a counter in
/// global memory says, or that asks for a cluster which has not started. Where
/// there is none a kernel is told a number of its own choice. The machine takes
/// one that is no tile: so this has to be the bound of a loop over tiles, and
/// nothing else may look at it.
void Compiler::findDealer() {
  auto endsTiles = [&](Value bound, OpOperand &use) {
    auto loop = dyn_cast<scf::WhileOp>(use.getOwner()->getParentOp());
    if (!loop || !isa<scf::YieldOp>(use.getOwner()) ||
        !tileValues.contains(loop))
      return false;
    Value tile = loop.getBeforeArguments()[use.getOperandNumber()];
    auto test =
        loop.getConditionOp().getCondition().getDefiningOp<arith::CmpIOp>();
    return tile == tileValues.lookup(loop) && test && test.getLhs() == tile &&
           (test.getPredicate() == arith::CmpIPredicate::ult ||
            test.getPredicate() == arith::CmpIPredicate::slt) &&
           textOf(test.getRhs(), {}) == textOf(bound, {});
  };
  auto isCounter = [](Value value) {
    return value.getDefiningOp<LLVM::AtomicRMWOp>() != nullptr;
  };
  Operation *request = nullptr;
  program.kernel.walk([&](Operation *op) {
    if (auto response = dyn_cast<ClusterResponseOp>(op))
      if (!llvm::all_of(response->getUses(), [&](OpOperand &use) {
            return endsTiles(response.getNone(), use);
          }))
        return fail(op, "what is told where there is no other cluster is not "
                        "the bound of a loop over tiles, or something else "
                        "looks at it");
    Value dealt;
    auto fill = dyn_cast<ChannelUserOpInterface>(op);
    if (auto element = dyn_cast<ElementOpInterface>(op))
      dealt = element.getToldInteger();
    else if (fill)
      dealt = fill.getFilledElement().second;
    bool isRequest = fill && fill.takesTile();
    bool isDealt =
        dealt && dealt.getDefiningOp() && reaches(dealt, isCounter, isNothing);
    if (!needed.contains(op) || (!isRequest && !isDealt))
      return;
    // One thread's requests come in its order. That it is one thread is seen
    // where they fill.
    bool isOfSameThread =
        isRequest && request && getPartition(request) == getPartition(op);
    if (!tiles.empty() || (request && !isOfSameThread))
      return fail(op, "tiles are dealt in more than one place");
    if (isRequest) {
      request = op;
      return;
    }
    if (!isElected(dealt.getDefiningOp()))
      return fail(op, "its tiles are dealt by several threads");
    program.areTilesCounts &= isCount(dealt, {});
    tiles[dealt.getDefiningOp()] = dealt;
  });
}

void Compiler::findTileLoops() {
  program.kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!needed.contains(op) || !isa<LoopLikeOpInterface>(op))
      return WalkResult::advance();
    if (auto loop = dyn_cast<scf::ForOp>(op))
      findTileFor(loop);
    else if (auto loop = dyn_cast<scf::WhileOp>(op))
      findTileWhile(loop);
    // Tiles are walked by the outermost loops.
    return WalkResult::skip();
  });
  if (unlikeLoop)
    compareTiles();
  if (hasSeveralLoops)
    tileValues.clear();
  findDealer();
  // Warps walk one such loop, so that they count tiles alike.
  llvm::SmallSet<unsigned, 4> walked;
  for (auto &[loop, tile] : tileValues) {
    auto [parts, index] = getPartition(loop);
    if (!walked.insert(parts ? index : ~0u).second)
      return fail(loop, "its warps walk tiles in several loops");
  }
  program.hasTiles = !tileValues.empty();
  program.isOpen &= !program.hasTiles || opensTiles;
  if (program.hasTiles && !unsupportedOp && !program.isOpen)
    classifyTiles();
  if (program.hasOpenTiles() && !unsupportedOp && program.grid[0] > 0)
    boundTiles();
  program.blocks = {{0, 0, 0}};
  if (!unsupportedOp && !program.isOpen)
    classifyBlocks();
}
