//===- BarrierCompiler.cpp - From the barrier rung to steps ---------------===//
//-===//
//
// First the ops that matter are found: those that synchronise or touch shared
// memory, the values that these depend on, and the control flow around both.
// Then the kernel is walked once more and each of them becomes a step. An op
// that is neither known nor known to be harmless ends it.
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "attn/Analysis/Barriers/LaunchAgreement.h"
#include "attn/Analysis/Flow/HandleFlow.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "attn/Dialect/Attn/IR/BulkStores.h"
#include "attn/Launch/SizeExpr.h"
#include "attn/Target/FormTable.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/IR/Attributes.h"
#include "llvm/IR/Intrinsics.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

//===----------------------------------------------------------------------===//
// Which ops matter
//===----------------------------------------------------------------------===//

bool barriers::isSynchronisation(Operation *op) {
  return isa<MBarrierInitOp, MBarrierInvalOp, MBarrierFenceInitOp,
             MBarrierExpectTxOp, MBarrierArriveOp, MBarrierWaitOp, FenceProxyOp,
             NamedBarrierOp, TurnStartOp, TurnTakeOp, TurnPassOp,
             ClusterBarrierOp, gpu::BarrierOp, TileArriveOp, InOrderOp,
             Tcgen05FenceOp, TeamBarrierOp, NVVM::SyncWarpOp, CommitOpInterface,
             TmemReserveOp, TmemDeallocOp>(op);
}

static bool isControlFlow(Operation *op) {
  return isa<scf::ForOp, scf::WhileOp, scf::IfOp, ElectOp, ClusterLeaderOp,
             RareOp, WarpSpecializeOp>(op);
}

bool barriers::touchesBuffer(Operation *op) {
  return !isBufferView(op) && !isa<AllocOp>(op) &&
         llvm::any_of(op->getOperandTypes(), [](Type type) {
           auto buffer = dyn_cast<BufferType>(type);
           return buffer && buffer.getSpace() == MemorySpace::Shared;
         });
}

bool barriers::isEvent(Operation *op) {
  return isSynchronisation(op) || touchesBuffer(op) ||
         isa<AsyncOpInterface>(op);
}

/// True for an intrinsic that only computes, as LLVM says of it.
static bool isArithmetic(LLVM::CallIntrinsicOp op) {
  llvm::Intrinsic::ID id = llvm::Intrinsic::lookupIntrinsicID(op.getIntrin());
  if (id == llvm::Intrinsic::not_intrinsic)
    return false;
  llvm::LLVMContext context;
  llvm::AttributeSet attributes = llvm::Intrinsic::getFnAttributes(context, id);
  return attributes.getMemoryEffects().doesNotAccessMemory() &&
         !attributes.hasAttribute(llvm::Attribute::Convergent);
}

/// True if all that the op does is to compute, or to access global memory.
static bool isHarmless(Operation *op) {
  // What inline assembly says of its effects is not believed.
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return !findBeyondRegisters(assembly.getAsmString());
  if (isBufferView(op) || isa<AllocOp, MBarrierAllocOp, TmemAllocOp>(op) ||
      op->hasTrait<OpTrait::IsTerminator>() || isMemoryEffectFree(op))
    return true;
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return isArithmetic(call);
  // Between grids, which share no barriers, and among the lanes of a warp;
  // conversions and hints to caches, of which their dialect says nothing; what
  // is printed.
  if (isa<NVVM::GriddepcontrolOp, NVVM::ShflOp, NVVM::ReduxOp,
          NVVM::ConvertF32x2ToF4x2Op, NVVM::ConvertF32x2ToF8x2Op,
          NVVM::ConvertF8x2ToF16x2Op, NVVM::PrefetchOp, gpu::PrintfOp>(op))
    return true;
  // A hint on a map.
  if (auto copy = dyn_cast<BulkCopyOpInterface>(op))
    return !copy.getCopiedBuffer();
  auto isGlobal = [](Value value) {
    Type type = value.getType();
    if (auto pointer = dyn_cast<LLVM::LLVMPointerType>(type))
      return pointer.getAddressSpace() == 1;
    if (auto memory = dyn_cast<MemRefType>(type))
      return !memory.getMemorySpace();
    return isa<GlobalType>(type);
  };
  if (isa<LLVM::LoadOp, LLVM::StoreOp, LLVM::AtomicRMWOp>(op))
    return llvm::all_of(op->getOperands(), [&](Value value) {
      return !isa<LLVM::LLVMPointerType>(value.getType()) || isGlobal(value);
    });
  // Such as a modification of scores that reads a table.
  if (op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() && !isEvent(op))
    return llvm::all_of(op->getRegions(), [](Region &region) {
      return llvm::all_of(region.getOps(), [](Operation &nested) {
        return isHarmless(&nested);
      });
    });
  auto effects = dyn_cast<MemoryEffectOpInterface>(op);
  if (!effects || op->getNumRegions() != 0)
    return false;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::all_of(instances, [&](const auto &effect) {
    return effect.getValue() && isGlobal(effect.getValue());
  });
}

/// Why an op that is neither known nor harmless ends the check.
static std::string explainUnknown(Operation *op) {
  if (auto assembly = dyn_cast<LLVM::InlineAsmOp>(op))
    return "its instruction '" + *findBeyondRegisters(assembly.getAsmString()) +
           "' does more than to compute with registers";
  return "what it does to shared memory or to who waits for whom is not known";
}

std::optional<UnsupportedOp> Compiler::findEvents() {
  std::optional<UnsupportedOp> unsupported;
  program.kernel.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (op == program.kernel)
      return WalkResult::advance();
    if (isControlFlow(op))
      return WalkResult::advance();
    if (isEvent(op)) {
      if (program.teams > 1 && !isKnownOfTeams(op)) {
        unsupported =
            UnsupportedOp{op, "what it does in a kernel of teams is not known"};
        return WalkResult::interrupt();
      }
      require(op);
      return WalkResult::advance();
    }
    if (isHarmless(op))
      return WalkResult::skip();
    unsupported = UnsupportedOp{op, explainUnknown(op)};
    return WalkResult::interrupt();
  });
  return unsupported;
}

/// A warp of the partition comes to this op: so it matters, what decides that
/// does, and what it is about.
void Compiler::require(Operation *op) {
  if (!needed.insert(op).second)
    return;
  for (Operation *parent = op->getParentOp(); parent != program.kernel;
       parent = parent->getParentOp())
    requireControl(parent);
  bool namesPlaces = isSynchronisation(op) || isa<ElementOpInterface>(op);
  bool awaits = isa<ProductWaitOpInterface>(op);
  for (Value operand : op->getOperands()) {
    Type type = operand.getType();
    if ((namesPlaces && type.isIntOrIndex()) ||
        (awaits && isa<InFlightType>(type)))
      demand(op, operand);
    if (!isa<BufferType>(type))
      continue;
    for (auto view = operand.getDefiningOp<ViewLikeOpInterface>(); view;
         view = view.getViewSource().getDefiningOp<ViewLikeOpInterface>())
      if (auto slot = dyn_cast<SlotOp>(view.getOperation()))
        demand(op, slot.getIndex());
  }
  if (Value condition = getSumCondition(op))
    demand(op, condition);
  if (auto fill = dyn_cast<ChannelUserOpInterface>(op)) {
    if (Value index = fill.getFillBarrier().second)
      demand(op, index);
    auto [element, value] = fill.getFilledElement();
    if (element) {
      demand(op, element);
      if (value)
        demand(op, value);
    }
  }
}

/// What a product takes besides its factors and the sum is a bit that says
/// whether it adds.
Value barriers::getSumCondition(Operation *op) {
  auto product = dyn_cast<ProductOpInterface>(op);
  Value sum = product ? product.getAccumulator() : Value();
  if (!sum || !isa<BufferType>(sum.getType()))
    return {};
  for (Value operand : op->getOperands())
    if (operand.getType().isInteger(1) && !matchPattern(operand, m_Constant()))
      return operand;
  return {};
}

/// True if copies by these maps fill as many bytes in the same way, wherever
/// they come from.
static bool fillAlike(Value a, Value b) {
  if (a == b || !a || !b)
    return a == b;
  auto x = cast<TensorMapType>(a.getType());
  auto y = cast<TensorMapType>(b.getType());
  return x.getRows() == y.getRows() && x.getColumns() == y.getColumns() &&
         x.getElementType() == y.getElementType() &&
         x.getSwizzle() == y.getSwizzle();
}

bool Compiler::hasSidesAlike(scf::IfOp op) {
  if (!op.elseBlock() || op.getNumResults() != 0)
    return false;
  SmallVector<BulkCopyOpInterface> sides[2];
  for (auto [block, copies] :
       llvm::zip(std::array{op.thenBlock(), op.elseBlock()}, sides))
    for (Operation &nested : *block) {
      auto copy = dyn_cast<BulkCopyOpInterface>(nested);
      if (copy && copy.isBulkLoad() && isa<ChannelUserOpInterface>(nested))
        copies.push_back(copy);
      else if (isEvent(&nested) || nested.getNumRegions() != 0)
        return false;
    }
  auto isAlike = [&](BulkCopyOpInterface a, BulkCopyOpInterface b) {
    auto [barriers, index] =
        cast<ChannelUserOpInterface>(a.getOperation()).getFillBarrier();
    auto [others, other] =
        cast<ChannelUserOpInterface>(b.getOperation()).getFillBarrier();
    return a->getName() == b->getName() && barriers && barriers == others &&
           textOf(index, Value()) == textOf(other, Value()) &&
           fillAlike(a.getMap(), b.getMap()) &&
           a.getCopiedBuffer() == b.getCopiedBuffer() &&
           a.getMulticastCTAs() == b.getMulticastCTAs() &&
           a.getMulticastBits() == b.getMulticastBits() &&
           a.getStackedBoxes() == b.getStackedBoxes();
  };
  return llvm::equal(sides[0], sides[1], isAlike);
}

void Compiler::requireControl(Operation *op) {
  if (!needed.insert(op).second)
    return;
  for (Operation *parent = op->getParentOp(); parent != program.kernel;
       parent = parent->getParentOp())
    requireControl(parent);
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    demand(op, loop.getLowerBound());
    demand(op, loop.getUpperBound());
    demand(op, loop.getStep());
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    if (!hasSidesAlike(branch))
      demand(op, branch.getCondition());
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    demand(op, loop.getConditionOp().getCondition());
  }
}

void Compiler::demand(Operation *op, Value value) {
  roots.push_back({op, value});
  demand(value);
}

void Compiler::demand(Value value) {
  SmallVector<Value> worklist = {value};
  while (!worklist.empty()) {
    Value next = worklist.pop_back_val();
    if (!demanded.insert(next).second)
      continue;
    for (Value source : flow.lookup(next))
      worklist.push_back(source);
    Operation *def = next.getDefiningOp();
    if (!def) {
      Operation *parent = next.getParentRegion()->getParentOp();
      if (parent != program.kernel)
        requireControl(parent);
      continue;
    }
    if (auto load = dyn_cast<LLVM::LoadOp>(def))
      llvm::append_range(worklist,
                         getGlobalAddress(load, program.kernel).second);
    if (auto find = dyn_cast<FindKeyOp>(def))
      llvm::append_range(worklist, getFoundKey(find, program.kernel).second);
    // A loop's results are what it carries, which its body may not take.
    if (auto loop = dyn_cast<scf::ForOp>(def))
      worklist.push_back(loop.getTiedLoopRegionIterArg(cast<OpResult>(next)));
    if (isControlFlow(def))
      requireControl(def);
    else if (isEvent(def))
      require(def);
    else
      llvm::copy_if(
          def->getOperands(), std::back_inserter(worklist),
          [](Value operand) { return operand.getType().isIntOrIndex(); });
  }
}

void Compiler::collectFlow() {
  program.kernel.walk([&](RegionBranchOpInterface op) {
    forEachPassedOn(op, [&](OpOperand &from, ArrayRef<Value> to) {
      for (Value value : to)
        flow[value].push_back(from.get());
    });
  });
}

//===----------------------------------------------------------------------===//
// The launch
//===----------------------------------------------------------------------===//

/// An expression of the launch record over the sizes of its tensors.
static int64_t evaluate(StringRef text, LaunchAttr launch) {
  auto expression = SizeExpr::parse(text);
  if (!expression) {
    llvm::consumeError(expression.takeError());
    return 0;
  }
  auto value = expression->evaluate(
      [&](const SizeSymbol &symbol) -> std::optional<int64_t> {
        for (Attribute attr : launch.getTensors()) {
          auto tensor = cast<DictionaryAttr>(attr);
          auto name = tensor.getAs<StringAttr>("name");
          auto sizes = tensor.getAs<DenseI64ArrayAttr>(
              symbol.isStride ? "strides" : "shape");
          if (name && sizes && name.getValue() == symbol.tensor &&
              symbol.index < sizes.size() && sizes[symbol.index] >= 0)
            return sizes[symbol.index];
        }
        return std::nullopt;
      });
  if (!value) {
    llvm::consumeError(value.takeError());
    return 0;
  }
  return *value;
}

std::optional<UnsupportedOp> Compiler::readLaunch() {
  gpu::GPUFuncOp kernel = program.kernel;
  if (auto size = kernel.getKnownClusterSize()) {
    program.cluster = countLaunched(*size);
    if (program.cluster != int64_t(size->front()))
      return UnsupportedOp{kernel, "its clusters do not lie along x"};
  }
  if (auto launch = kernel->getAttrOfType<LaunchAttr>(AttnDialect::kLaunchAttr))
    for (unsigned dim : {0, 1, 2})
      program.grid[dim] =
          evaluate(cast<StringAttr>(launch.getGrid()[dim]).getValue(), launch);
  program.isGridOpen = kernel->hasAttr(AttnDialect::kLaunchAttr) &&
                       llvm::is_contained(program.grid, 0);
  if (isOfOneCluster)
    program.grid = {program.cluster, 1, 1};
  kernel.walk([&](WarpSpecializeOp op) { partitions = op; });
  if (std::optional<std::string> why = findUnlikeLaunch(kernel))
    return UnsupportedOp{kernel, *why};
  if (partitions) {
    program.warps = partitions.getTotalWarps();
    for (unsigned index = 0; index < partitions.getPartitions().size(); ++index)
      program.firstWarps.push_back(partitions.getFirstWarp(index));
  } else {
    program.firstWarps.push_back(0);
    if (auto block = kernel.getKnownBlockSize())
      program.warps = countLaunched(*block) / 32;
    else
      program.warps = countThreads(kernel).value_or(0) / 32;
    readTeams();
  }
  if (program.warps < 1 || program.warps > 32)
    return UnsupportedOp{kernel, "the number of its warps is not known"};
  if (program.cluster < 1 || program.cluster > 16)
    return UnsupportedOp{kernel, "its clusters do not have 1 to 16 CTAs"};
  if (!kernel.getBody().hasOneBlock())
    return UnsupportedOp{kernel, "it has several blocks"};
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Barriers and buffers
//===----------------------------------------------------------------------===//

std::optional<UnsupportedOp> Compiler::collectMemory() {
  SmallVector<MemoryRange> ranges;
  std::optional<UnsupportedOp> unsupported;
  program.kernel.walk([&](Operation *op) {
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      auto bytes = getAllocBytes(alloc);
      if (!bytes || !alloc.getOffset()) {
        if (!bytes)
          llvm::consumeError(bytes.takeError());
        unsupported = UnsupportedOp{op, "its place in shared memory is not "
                                        "chosen (attn-allocate-shared)"};
      } else {
        ranges.push_back({int64_t(*alloc.getOffset()),
                          int64_t(*alloc.getOffset()) + *bytes, op});
      }
    } else if (auto alloc = dyn_cast<TmemAllocOp>(op)) {
      BufferType type = alloc.getType();
      int64_t columns = type.getSlotColumns() * type.getNumSlots();
      if (!alloc.getColumn())
        unsupported = UnsupportedOp{op, "its columns are not chosen "
                                        "(attn-allocate-tmem)"};
      else
        program.tensorColumns = std::max(program.tensorColumns,
                                         int64_t(*alloc.getColumn()) + columns);
    } else if (auto array = dyn_cast<MBarrierAllocOp>(op)) {
      uint32_t count = array.getResult().getType().getCount();
      arrays[array.getResult()] = program.arrays.size();
      program.arrays.push_back({array, int64_t(array.getOffset().value_or(0)),
                                program.numBarriers, count});
      program.numBarriers += count;
      if (!array.getOffset())
        unsupported = UnsupportedOp{op, "its place in shared memory is not "
                                        "chosen (attn-allocate-shared)"};
      else
        ranges.push_back({int64_t(*array.getOffset()),
                          int64_t(*array.getOffset()) + count * kBarrierBytes,
                          op});
    }
  });
  if (unsupported)
    return unsupported;
  checkMemory(ranges);
  return std::nullopt;
}

/// Whoever touches bytes that are not there, or those of mbarriers in another
/// way, is wrong in each order.
void Compiler::checkMemory(ArrayRef<MemoryRange> ranges) {
  auto textOf = [](const MemoryRange &range) {
    return llvm::formatv("bytes {0} to {1}", range.begin, range.end - 1).str();
  };
  auto report = [&](BarrierFault fault, Operation *op, std::string text) {
    program.wrong = BarrierWitness{fault, op, std::move(text), {}, {}};
  };
  auto all =
      program.kernel->getAttrOfType<IntegerAttr>(AttnDialect::kSharedBytesAttr);
  for (const MemoryRange &range : ranges)
    if (all && range.end > all.getInt() && !program.wrong)
      report(BarrierFault::Lifetime, range.op,
             llvm::formatv("expected all of it within the {0} bytes of "
                           "'attn.shared_bytes', got {1}",
                           all.getInt(), textOf(range)));
  for (const MemoryRange &a : ranges)
    for (const MemoryRange &b : ranges) {
      if (program.wrong || a.op == b.op || !isa<MBarrierAllocOp>(a.op) ||
          a.begin >= b.end || b.begin >= a.end)
        continue;
      report(BarrierFault::Race, a.op,
             llvm::formatv("expected mbarriers in bytes of their own, got {0}",
                           textOf(a)));
      program.wrong->notes.push_back(
          {b.op, "this has " + textOf(b), BarrierActor()});
    }
}

std::optional<UnsupportedOp> barriers::compileProgram(gpu::GPUFuncOp kernel,
                                                      Program &program,
                                                      bool isOfOneCluster,
                                                      bool opensTiles) {
  program.kernel = kernel;
  Compiler compiler(program, isOfOneCluster, opensTiles);
  return compiler.run();
}

std::optional<UnsupportedOp> Compiler::run() {
  if (auto unsupported = readLaunch())
    return unsupported;
  if (auto unsupported = collectMemory())
    return unsupported;
  if (program.wrong)
    return UnsupportedOp{program.wrong->op, program.wrong->text};
  collectFlow();
  if (auto unsupported = findEvents())
    return unsupported;
  findLateLoads();
  findOpenLaunch();
  findTileLoops();
  if (program.teams > 1 && program.hasTiles)
    fail(program.kernel, "its teams walk tiles");
  if (unsupportedOp)
    return unsupportedOp;
  emitBlock(program.kernel.getBody().front());
  emit(Code::Exit, program.kernel.getBody().front().getTerminator());
  // A bit is no number that is not negative: set, it is -1 with its sign.
  for (BlockArgument argument : program.kernel.getArguments())
    if (demanded.contains(argument) && !argument.getType().isInteger(1))
      program.arguments.push_back({slotOf(argument), argument.getArgNumber()});
  program.numSlots = slots.size() + temporaries;
  if (unsupportedOp)
    return unsupportedOp;
  program.groupSlots.resize(program.numSlots);
  for (auto [value, slot] : slots)
    if (isa<InFlightType>(value.getType()))
      program.groupSlots.set(slot);
  program.dealsTiles = !tiles.empty();
  findRings();
  program.counts.resize(program.numSlots);
  for (Slot counter : program.counters)
    program.counts.set(counter);
  for (auto [slot, growth] : program.growths)
    program.counts.set(slot);
  findDecisions();
  computeLiveness();
  return std::nullopt;
}
