//===- BarrierUses.cpp - Which instructions use what was loaded -----------===//
//
// A signal of default scope to another CTA was seen to overtake a load whose
// registers nothing had used (docs/Rationale/Clusters.md). Here is
// found which loads may be late, and which ops use their registers for certain:
// those whose instructions neither LLVM nor ptxas moves behind a signal, and
// that cannot be issued before the register is there.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "attn/Dialect/Attn/IR/LayoutLinks.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

//===----------------------------------------------------------------------===//
// Loads that may be late
//===----------------------------------------------------------------------===//

/// Accesses that are known; what is wrong with others is said elsewhere.
static SmallVector<SharedAccess, 2> getKnownAccesses(Operation *op) {
  ScopedDiagnosticHandler handler(op->getContext(),
                                  [](Diagnostic &) { return success(); });
  auto accesses = getSharedAccesses(op);
  return succeeded(accesses) ? *accesses : SmallVector<SharedAccess, 2>();
}

static ByteRange getBytes(AllocOp alloc) {
  int64_t start = alloc.getOffset().value_or(0);
  auto bytes = getAllocBytes(alloc);
  if (bytes)
    return {start, start + *bytes};
  llvm::consumeError(bytes.takeError());
  return {};
}

int barriers::getEngineNumber(const AsyncEngine &engine) {
  const AsyncEngine *engines[] = {
      &kCopyGroups,  &kWgmmaGroups,    &kBulkStores,
      &kTensorLoads, &kTensorStores,   &kBulkLoads,
      &kSends,       &kTensorProducts, &kClusterRequests};
  for (auto [number, known] : llvm::enumerate(engines))
    if (known == &engine)
      return number;
  return -1;
}

/// The memory that is written from other CTAs of the cluster, or on the way
/// that leads there.
SmallVector<ByteRange> Compiler::collectRemoteBytes() {
  SmallVector<ByteRange> bytes;
  program.kernel.walk([&](ChannelUserOpInterface fill) {
    if (!fill.getFillBarrier().first)
      return;
    bool isRemote =
        fill.isExchange() || fill.getFillTargets() != SignalMask::own();
    for (const SharedAccess &access : getKnownAccesses(fill))
      if (access.isWrite && (isRemote || overtakesLoads(access.engine)))
        bytes.push_back(getBytes(access.alloc));
  });
  return bytes;
}

/// A load may be late if its instructions leave tiles behind that others use: a
/// product reads fragments just in front of their use, and of a word the load's
/// own instructions wait until it is there.
void Compiler::findLateLoads() {
  SmallVector<ByteRange> bytes = collectRemoteBytes();
  if (bytes.empty())
    return;
  auto isRemote = [&](const SharedAccess &access) {
    ByteRange own = getBytes(access.alloc);
    return !access.isWrite && llvm::any_of(bytes, [&](ByteRange range) {
      return own.begin < range.end && range.begin < own.end;
    });
  };
  program.kernel.walk([&](Operation *op) {
    if (touchesBuffer(op) &&
        llvm::any_of(op->getResultTypes(), llvm::IsaPred<RankedTensorType>) &&
        op->getNumRegions() == 0 &&
        !isa<AsyncOpInterface, ProductOpInterface>(op) &&
        llvm::any_of(getKnownAccesses(op), isRemote))
      lateLoads.insert({op, {}});
  });
  program.hasLateLoads = !lateLoads.empty();
  program.kernel.walk([&](RegionBranchOpInterface op) {
    if (program.hasLateLoads)
      forEachPassedOn(op, [&](OpOperand &from, ArrayRef<Value>) {
        passedOn.insert(&from);
      });
  });
}

//===----------------------------------------------------------------------===//
// What a value is computed from
//===----------------------------------------------------------------------===//

static int64_t countElements(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  return shaped && shaped.hasStaticShape() ? shaped.getNumElements() : 1;
}

static void addAll(SmallVectorImpl<Operation *> &to,
                   ArrayRef<Operation *> loads) {
  for (Operation *load : loads)
    if (!llvm::is_contained(to, load))
      to.push_back(load);
}

/// Whether what `load` brings goes through arithmetic to `value` and to nothing
/// else, there and on the way.
static bool leadsOnlyTo(Operation *load, Value value) {
  if (load->getNumResults() != 1)
    return false;
  Value at = load->getResult(0);
  while (at.hasOneUse()) {
    if (at == value)
      return true;
    Operation *user = *at.user_begin();
    if (!isMemoryEffectFree(user) || user->getNumRegions() != 0 ||
        user->getNumResults() != 1)
      return false;
    at = user->getResult(0);
  }
  return false;
}

/// Adds the loads of tiles of which `op` takes each element or leaves it out:
/// what it leaves out nobody ever asks for.
void Compiler::addChosen(Operation *op, Loads &loads) {
  for (Value operand : op->getOperands())
    if (isa<RankedTensorType>(operand.getType()))
      addAll(loads, llvm::filter_to_vector<2>(
                        getCertainLoads(operand), [&](Operation *load) {
                          return leadsOnlyTo(load, operand);
                        }));
}

/// Of what a region hands on, what it does on all paths.
void Compiler::addLoadsOfResult(OpResult result, Loads &loads) {
  Operation *op = result.getOwner();
  if (lateLoads.contains(op)) {
    loads.push_back(op);
    return;
  }
  if (isa<RegionBranchOpInterface>(op)) {
    bool isFirst = true;
    for (Value source : SmallVector<Value, 2>(flow.lookup(result))) {
      Loads other = getCertainLoads(source);
      if (isFirst)
        loads = std::move(other);
      else
        llvm::erase_if(loads, [&](Operation *load) {
          return !llvm::is_contained(other, load);
        });
      isFirst = false;
    }
    return;
  }
  if (isElementwiseOnTiles(op))
    addChosen(op, loads);
  // A part of a tile says nothing of what loads the rest.
  if (!isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return;
  auto select = dyn_cast<SelectLikeOpInterface>(op);
  for (Value operand : op->getOperands())
    if (countElements(operand.getType()) <= countElements(result.getType()) &&
        (!select || operand == select.getCondition()))
      addAll(loads, getCertainLoads(operand));
}

/// The loads of which each element has to be there for a value, in the last
/// execution of each. What loops carry is taken for nobody's.
Compiler::Loads Compiler::getCertainLoads(Value value) {
  auto [known, isNew] = certainLoads.try_emplace(value);
  if (!isNew)
    return known->second;
  Loads loads;
  if (auto result = dyn_cast<OpResult>(value))
    addLoadsOfResult(result, loads);
  certainLoads[value] = loads;
  return loads;
}

//===----------------------------------------------------------------------===//
// Uses
//===----------------------------------------------------------------------===//

/// Whether threads exchange what they have computed from all elements of a
/// tile: a row that lies in several of them is reduced.
static bool exchangesRows(Operation *op) {
  auto tiles = dyn_cast<LayoutOpInterface>(op);
  if (!tiles)
    return false;
  SmallVector<LayoutLink> links;
  tiles.getLayoutLinks(links);
  return llvm::any_of(links, [&](const LayoutLink &link) {
    auto type = dyn_cast<RankedTensorType>(link.second.getType());
    if (link.relation != LayoutRelation::RowsOf || !type ||
        link.first.getDefiningOp() != op)
      return false;
    llvm::Expected<TileLayout> layout = getTileLayout(type);
    if (!layout) {
      llvm::consumeError(layout.takeError());
      return false;
    }
    return !layout->laneBitsAlong(1).empty();
  });
}

/// Whether the instructions of an op stay in front of a signal behind it.
/// Arithmetic and loads from global memory may sink below; what writes memory,
/// signals, waits, or takes all threads of a warp may not.
static bool staysInPlace(Operation *op) {
  if (isEvent(op))
    return true;
  if (isMemoryEffectFree(op))
    return exchangesRows(op);
  if (isa<MemoryEffectOpInterface>(op))
    return hasEffect<MemoryEffects::Write>(op);
  return takesWholeWarps(op);
}

/// Whether an op needs the register of an operand there: it does not only pass
/// it on. Of control flow the conditions and bounds are needed where events
/// stand in it, which are not executed before they are known.
bool Compiler::usesRegister(OpOperand &operand) const {
  Operation *op = operand.getOwner();
  if (passedOn.contains(&operand))
    return false;
  if (isa<RegionBranchOpInterface>(op))
    return needed.contains(op) || op->hasTrait<TakesWholeWarps>();
  if (op->hasTrait<OpTrait::IsTerminator>())
    return needed.contains(op->getParentOp());
  return staysInPlace(op);
}

/// One thread uses its own registers, not those of the others.
void Compiler::emitUses(Operation *op) {
  if (lateLoads.empty())
    return;
  Loads used;
  for (OpOperand &operand : op->getOpOperands())
    if (usesRegister(operand))
      addAll(used, getCertainLoads(operand.get()));
  llvm::erase_if(
      used, [&](Operation *load) { return isElected(op) && !isElected(load); });
  if (used.empty())
    return;
  Step &step = emit(Code::Use, op);
  step.first = program.usedLoads.size();
  for (Operation *load : used) {
    auto [first, last] = lateLoads.lookup(load);
    llvm::append_range(program.usedLoads, llvm::seq(first, last));
  }
  step.last = program.usedLoads.size();
}
