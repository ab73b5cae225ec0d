//===- BarrierLaunch.cpp - What only the launch gives ---------------------===//

#include "BarrierCompiler.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// An argument of the kernel, or a load from the memory behind one.
static bool isGivenByLaunch(Value value, gpu::GPUFuncOp kernel) {
  if (!value.getType().isIntOrIndex())
    return false;
  if (auto argument = dyn_cast<BlockArgument>(value))
    return argument.getOwner()->getParentOp() == kernel;
  if (isa_and_nonnull<DealRunOp, FindKeyOp>(value.getDefiningOp()))
    return true;
  auto load = value.getDefiningOp<LLVM::LoadOp>();
  return load && cast<LLVM::LLVMPointerType>(load.getAddr().getType())
                         .getAddressSpace() == 1;
}

/// The values that decide how often, or whether, an op's regions run.
static void addControl(Operation *op, SmallVectorImpl<Value> &values) {
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    values.push_back(loop.getConditionOp().getCondition());
  llvm::copy_if(op->getOperands(), std::back_inserter(values),
                [](Value value) { return value.getType().isIntOrIndex(); });
}

bool barriers::dependsOnLaunch(const Program &program, Operation *op) {
  gpu::GPUFuncOp kernel = program.kernel;
  if (op == kernel)
    return program.isGridOpen;
  llvm::DenseMap<Value, SmallVector<Value, 2>> flow;
  kernel.walk([&](RegionBranchOpInterface branch) {
    forEachPassedOn(branch, [&](OpOperand &from, ArrayRef<Value> to) {
      for (Value value : to)
        flow[value].push_back(from.get());
    });
  });
  SmallVector<Value> worklist;
  addControl(op, worklist);
  llvm::DenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    if (!seen.insert(value).second)
      continue;
    if (isGivenByLaunch(value, kernel))
      return true;
    llvm::append_range(worklist, flow.lookup(value));
    if (Operation *def = value.getDefiningOp())
      addControl(def, worklist);
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Words of global memory
//===----------------------------------------------------------------------===//

/// True if all that is done with a pointer is to load from it.
static bool isOnlyRead(Value pointer) {
  return llvm::all_of(pointer.getUsers(), [](Operation *user) {
    if (auto element = dyn_cast<LLVM::GEPOp>(user))
      return isOnlyRead(element.getResult());
    if (auto load = dyn_cast<LLVM::LoadOp>(user))
      return !load.getVolatile_();
    return isa<DealRunOp, FindKeyOp, InOrderOp>(user);
  });
}

/// True for memory behind an argument of the kernel, which does not write it.
static bool isReadArgument(Value pointer, gpu::GPUFuncOp kernel) {
  auto argument = dyn_cast<BlockArgument>(pointer);
  return argument && argument.getOwner()->getParentOp() == kernel &&
         isOnlyRead(argument);
}

/// Says where an address is, and adds the numbers that it is computed from;
/// false for memory that the kernel may write.
static bool describeAddress(Value pointer, gpu::GPUFuncOp kernel,
                            llvm::raw_ostream &os,
                            SmallVectorImpl<Value> &indices) {
  while (auto element = pointer.getDefiningOp<LLVM::GEPOp>()) {
    os << " element " << element.getElemType();
    for (int32_t index : element.getRawConstantIndices())
      os << ' ' << index;
    llvm::append_range(indices, element.getDynamicIndices());
    pointer = element.getBase();
  }
  if (!isReadArgument(pointer, kernel))
    return false;
  os << " of argument " << cast<BlockArgument>(pointer).getArgNumber();
  return true;
}

std::pair<std::string, SmallVector<Value>>
barriers::getGlobalAddress(LLVM::LoadOp load, gpu::GPUFuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SmallVector<Value> indices;
  os << load.getType();
  if (!describeAddress(load.getAddr(), kernel, os, indices))
    text.clear();
  return {text, indices};
}

std::pair<std::string, SmallVector<Value>>
barriers::getFoundKey(FindKeyOp find, gpu::GPUFuncOp kernel) {
  std::string text;
  llvm::raw_string_ostream os(text);
  SmallVector<Value> numbers = {find.getFrom(), find.getTo(), find.getFirst(),
                                find.getLast()};
  os << find->getName() << ' ' << stringifyKeySearch(find.getSearch());
  if (!describeAddress(find.getKeys(), kernel, os, numbers) ||
      !describeAddress(find.getQueries(), kernel, os, numbers))
    text.clear();
  return {text, numbers};
}

std::string barriers::getDealtNumber(OpResult result, gpu::GPUFuncOp kernel) {
  auto deal = cast<DealRunOp>(result.getOwner());
  std::string text;
  if (!isReadArgument(deal.getLengths(), kernel))
    return text;
  llvm::raw_string_ostream(text)
      << "result " << result.getResultNumber() << " of " << deal->getName()
      << ' ' << deal->getAttrDictionary() << " of argument "
      << cast<BlockArgument>(deal.getLengths()).getArgNumber();
  return text;
}

/// True for the number of the cluster, or one that follows from it: the block's
/// divided by what is a number of whole clusters.
static bool isClusterNumber(Operation *op, int64_t cluster) {
  APInt by;
  return isa<arith::DivUIOp, arith::DivSIOp>(op) &&
         matchPattern(op->getOperand(1), m_ConstantInt(&by)) &&
         by.isStrictlyPositive() && by.getSExtValue() % cluster == 0;
}

/// Whether a value is the same for all threads of a cluster that compute it in
/// one way, as long as `tile` is: it comes from integers that the kernel is
/// given, the size of the grid, the cluster's number in it and constants.
bool Compiler::isOfLaunch(Value value, Value tile) {
  if (value == tile)
    return true;
  Operation *def = value.getDefiningOp();
  if (!def)
    return isGivenByLaunch(value, program.kernel);
  if (auto block = dyn_cast<gpu::BlockIdOp>(def))
    return program.cluster == 1 || block.getDimension() != gpu::Dimension::x;
  if (isa<gpu::GridDimOp>(def))
    return true;
  auto isOperand = [&](Value operand) { return isOfLaunch(operand, tile); };
  // A word that the kernel does not write, at a place that is the same.
  if (auto load = dyn_cast<LLVM::LoadOp>(def)) {
    auto [place, indices] = getGlobalAddress(load, program.kernel);
    return isGivenByLaunch(value, program.kernel) && !place.empty() &&
           llvm::all_of(indices, isOperand);
  }
  if (!isa_and_nonnull<arith::ArithDialect>(def->getDialect()) ||
      !value.getType().isIntOrIndex())
    return false;
  if (isClusterNumber(def, program.cluster)) {
    Value divided = def->getOperand(0);
    while (auto cast = divided.getDefiningOp<arith::IndexCastOp>())
      divided = cast.getIn();
    if (isBlockNumber(divided))
      return true;
  }
  return llvm::all_of(def->getOperands(), isOperand);
}

/// True for what casts do not change, as far as sums do not overflow.
static bool isWide(Type type) {
  return type.isIndex() || type.getIntOrFloatBitWidth() >= 32;
}

/// Returns what the number of a CTA or of CTAs along x is divided by, 1 if it
/// is not; nothing for another value.
template <typename Number>
static std::optional<int64_t> getDivisor(Value value) {
  int64_t by = 1;
  while (Operation *def = value.getDefiningOp()) {
    if (auto number = dyn_cast<Number>(def))
      return number.getDimension() == gpu::Dimension::x
                 ? std::optional<int64_t>(by)
                 : std::nullopt;
    APInt constant;
    if (isa<arith::DivUIOp>(def) && by == 1 &&
        matchPattern(def->getOperand(1), m_ConstantInt(&constant)) &&
        constant.isStrictlyPositive())
      by = constant.getSExtValue();
    else if (!isa<arith::IndexCastOp, arith::IndexCastUIOp>(def))
      return std::nullopt;
    value = def->getOperand(0);
  }
  return std::nullopt;
}

/// True for how many clusters come behind the CTA's own in a row of the grid,
/// which has whole clusters.
static bool isRestOfGrid(arith::SubIOp op, int64_t cluster) {
  auto last = op.getLhs().getDefiningOp<arith::SubIOp>();
  if (!last || getConstantNumber(last.getRhs()) != 1)
    return false;
  std::optional<int64_t> all = getDivisor<gpu::GridDimOp>(last.getLhs()),
                         own = getDivisor<gpu::BlockIdOp>(op.getRhs());
  return all && own && *all == *own && cluster % *all == 0;
}

/// True for an integer that is not negative as long as `count`, what the kernel
/// is given and what a counter says are not, and sums do not overflow.
bool Compiler::isCount(Value value, Value count) {
  if (value == count)
    return true;
  Operation *def = value.getDefiningOp();
  if (!def)
    return isGivenByLaunch(value, program.kernel);
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return !constant.isNegative();
  if (isa<gpu::BlockIdOp, gpu::GridDimOp>(def))
    return true;
  auto isOperand = [&](Value operand) { return isCount(operand, count); };
  // A counter that only counts up.
  if (auto counter = dyn_cast<LLVM::AtomicRMWOp>(def))
    return counter.getBinOp() == LLVM::AtomicBinOp::add &&
           isOperand(counter.getVal());
  if (isa<arith::MaxSIOp, arith::AndIOp>(def))
    return llvm::any_of(def->getOperands(), isOperand);
  if (auto choice = dyn_cast<arith::SelectOp>(def))
    return isOperand(choice.getTrueValue()) &&
           isOperand(choice.getFalseValue());
  if (auto difference = dyn_cast<arith::SubIOp>(def))
    return isRestOfGrid(difference, program.cluster);
  return isa<arith::AddIOp, arith::MulIOp, arith::DivUIOp, arith::DivSIOp,
             arith::CeilDivUIOp, arith::CeilDivSIOp, arith::FloorDivSIOp,
             arith::RemUIOp, arith::RemSIOp, arith::MinSIOp, arith::MinUIOp,
             arith::MaxUIOp, arith::ExtSIOp, arith::IndexCastOp,
             arith::IndexCastUIOp>(def) &&
         isWide(value.getType()) && llvm::all_of(def->getOperands(), isOperand);
}

bool Compiler::isOfLaunch(scf::ForOp loop) {
  return isOfLaunch(loop.getLowerBound(), {}) &&
         isOfLaunch(loop.getUpperBound(), {}) && isOfLaunch(loop.getStep(), {});
}

void Compiler::findOpenLaunch() {
  for (Value value : demanded) {
    Operation *def = value.getDefiningOp();
    bool isSize = program.isGridOpen && (isa_and_nonnull<gpu::BlockIdOp>(def) ||
                                         isa_and_nonnull<gpu::GridDimOp>(def));
    program.isOpen |= isSize || isGivenByLaunch(value, program.kernel);
  }
}
