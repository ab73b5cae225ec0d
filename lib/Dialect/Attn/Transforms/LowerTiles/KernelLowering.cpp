//===- KernelLowering.cpp - What the partitions of a kernel share ---------===//
//
// Walks a kernel once, in order, and puts the instructions of one thread beside
// each op on tiles. Structured control flow gets one carried value for each
// register. Everything replaced is erased at the end, users before definitions.
//
//===----------------------------------------------------------------------===//

#include "../ClusterWait.h"
#include "PartitionLowering.h"
#include "attn/Analysis/Memory/Footprint.h"
#include "attn/Dialect/Attn/IR/TensorProducts.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/Support/SaveAndRestore.h"
#include <map>

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

KernelLowering::KernelLowering(gpu::GPUFuncOp func, bool clusterScope)
    : func(func), signals{clusterScope, usesPairs(func)},
      teams(getTeams(func)) {
  addBarrierLowerings(table);
  addControlFlowLowerings(table);
  addCopyLowerings(table);
  addElementwiseLowerings(table);
  addMemoryLowerings(table);
  addMmaLowerings(table);
  addNarrowOperandLowerings(table);
  addPartitionLowerings(table);
  addPowerLowerings(table);
  addRowLowerings(table);
  addTeamLowerings(table);
  addTcgen05Lowerings(table);
  addTmaLowerings(table);
  addTmemLowerings(table);
  addViewLowerings(table);
  addWgmmaLowerings(table);
  addWordLowerings(table);
  addWorkLowerings(table);
}

/// The ops that make a 16-bit word of products of f16 numbers that were widened
/// to f32 for them, in order and with `narrow` last; none if others need one of
/// the f32 numbers.
static SmallVector<Operation *> collectWidened(LLVM::FPTruncOp narrow) {
  SmallVector<Operation *> users{narrow};
  auto insert = narrow.getArg().getDefiningOp<LLVM::InsertElementOp>();
  for (; insert;
       insert = insert.getVector().getDefiningOp<decltype(insert)>()) {
    auto product = insert.getValue().getDefiningOp<arith::MulFOp>();
    if (!product)
      return {};
    auto wide = product.getLhs().getDefiningOp<arith::ExtFOp>();
    if (!wide || !wide.getIn().getType().isF16())
      return {};
    users.append({insert, product, wide});
  }
  bool areOwn = llvm::all_of(users, [&](Operation *op) {
    return (op == narrow || op->hasOneUse()) &&
           op->getBlock() == narrow->getBlock();
  });
  if (!areOwn || users.size() == 1)
    return {};
  std::reverse(users.begin(), users.end());
  return users;
}

/// Puts products of f16 numbers, widened to f32 for them, where their 16-bit
/// words are stored. All of a tile would else be live in f32, in twice the
/// registers that it takes.
static void sinkWidenedProducts(gpu::GPUFuncOp kernel) {
  SmallVector<LLVM::FPTruncOp> words;
  kernel.walk([&](LLVM::FPTruncOp op) { words.push_back(op); });
  for (LLVM::FPTruncOp narrow : words) {
    SmallVector<Operation *> ops = collectWidened(narrow);
    if (ops.empty())
      continue;
    Operation *user = narrow;
    if (narrow->hasOneUse() &&
        (*narrow->user_begin())->getBlock() == narrow->getBlock())
      user = *narrow->user_begin();
    for (Operation *op : ops)
      if (op != user)
        op->moveBefore(user);
  }
}

LogicalResult KernelLowering::run() {
  if (failed(checkTensorGroups(func)))
    return failure();
  // Partitions have grids of their own, and tiles are theirs alone.
  std::optional<std::pair<int64_t, int64_t>> grid;
  int64_t warps = 0;
  for (WarpSpecializeOp partitions : func.getOps<WarpSpecializeOp>())
    warps = partitions.getTotalWarps();
  if (warps == 0) {
    grid = *getWarpGrid(func);
    warps = grid->first * grid->second;
  }
  Block &entry = func.getBody().front();
  // A marker that keeps the entry's computations in front of everything else.
  OpBuilder b = OpBuilder::atBlockBegin(&entry);
  auto marker = arith::ConstantIntOp::create(b, func.getLoc(), 0, 1);
  entryEnd = marker;
  // Lowering moves ops to blocks of their own.
  SmallVector<Operation *> ops;
  for (Block &block : func.getBody())
    for (Operation &op : block)
      if (&op != entryEnd)
        ops.push_back(&op);
  func.walk([&](NVVM::MBarrierTryWaitOp op) {
    if (op->removeDiscardableAttr(kClusterWaitAttr) && signals.clusterScope)
      op.setScope(NVVM::MemScopeKind::CLUSTER);
  });
  func.walk([&](LocalSendOp op) { exchanged.insert(findAlloc(op.getDest())); });
  PartitionLowering all(*this, /*firstWarp=*/0, warps, /*isPartition=*/false,
                        grid);
  for (Operation *op : ops)
    if (failed(all.lowerOp(op)))
      return failure();
  // An old loop's arguments may be used by ops that moved out of it.
  for (Operation *op : dead)
    op->dropAllReferences();
  for (Operation *op : dead)
    op->erase();
  marker.erase();
  sinkWidenedProducts(func);
  lowerTensorMaps();
  return success();
}

bool KernelLowering::targetsHave(Capability capability) {
  auto module = func->getParentOfType<gpu::GPUModuleOp>();
  ArrayAttr targets = module.getTargetsAttr();
  return targets && llvm::all_of(targets, [&](Attribute attribute) {
           auto target = dyn_cast<TargetAttr>(attribute);
           return target && target.getRow().has(capability);
         });
}

bool KernelLowering::someTargetLacks(Capability capability) {
  ArrayAttr targets =
      func->getParentOfType<gpu::GPUModuleOp>().getTargetsAttr();
  return targets && !targets.empty() && !targetsHave(capability);
}

void KernelLowering::lowerTensorMaps() {
  // The kernel's signature stays as the launch has it; convert-attn-to-nvvm
  // makes the parameter the pointer that is cast to here.
  auto pointer = LLVM::LLVMPointerType::get(func.getContext());
  OpBuilder b = OpBuilder::atBlockBegin(&func.getBody().front());
  for (BlockArgument argument : func.getBody().getArguments()) {
    if (!isa<TensorMapType>(argument.getType()))
      continue;
    auto cast =
        UnrealizedConversionCastOp::create(b, func.getLoc(), pointer, argument);
    argument.replaceAllUsesExcept(cast.getResult(0), cast);
    // What chooses one of two maps chooses one of two pointers.
    for (Operation *user : cast.getResult(0).getUsers())
      if (auto select = dyn_cast<arith::SelectOp>(user))
        select.getResult().setType(pointer);
  }
}

//===----------------------------------------------------------------------===//
// The entry
//===----------------------------------------------------------------------===//

ImplicitLocOpBuilder KernelLowering::entryBuilder(Location loc) {
  ImplicitLocOpBuilder b(loc, func.getContext());
  b.setInsertionPoint(entryEnd);
  return b;
}

LogicalResult KernelLowering::withEntry(Operation *entry,
                                        function_ref<LogicalResult()> lower) {
  llvm::SaveAndRestore restoreEnd(entryEnd, entry);
  llvm::SaveAndRestore restoreLane(laneValue, Value());
  llvm::SaveAndRestore restoreWarp(warpValue, Value());
  llvm::SaveAndRestore restoreShared(sharedBase);
  llvm::SaveAndRestore restoreThread(threadIdValue);
  llvm::SaveAndRestore restoreUniformWarp(uniformWarpValue);
  llvm::StringMap<Value> cache;
  DenseMap<std::pair<Value, uint32_t>, Value> words;
  std::swap(cache, entryCache);
  std::swap(words, descriptorWords);
  LogicalResult result = lower();
  std::swap(cache, entryCache);
  std::swap(words, descriptorWords);
  return result;
}

LogicalResult
KernelLowering::withPartitionEntry(ImplicitLocOpBuilder &b,
                                   function_ref<LogicalResult()> lower) {
  renewAddresses(b);
  auto marker = arith::ConstantIntOp::create(b, 0, 1);
  dead.push_back(marker);
  return withEntry(marker, lower);
}

KernelLowering::Entry KernelLowering::getEntry() const {
  return {sharedBase,       threadIdValue, laneValue, warpValue,
          uniformWarpValue, entryCache,    entryEnd};
}

void KernelLowering::setEntry(Entry entry) {
  sharedBase = entry.sharedBase;
  threadIdValue = entry.threadId;
  laneValue = entry.lane;
  warpValue = entry.warp;
  uniformWarpValue = entry.uniformWarp;
  entryCache = std::move(entry.cache);
  entryEnd = entry.end;
}

LogicalResult KernelLowering::inBody(function_ref<LogicalResult()> lower) {
  std::optional<Entry> outer;
  std::swap(outer, ownEntry);
  LogicalResult result = lower();
  std::swap(outer, ownEntry);
  // What the body has renewed first is what stands in front of it.
  if (outer)
    setEntry(std::move(*outer));
  return result;
}

void KernelLowering::renewEntry(Operation *op, bool inLoops) {
  if (!ownEntry)
    ownEntry = getEntry();
  ImplicitLocOpBuilder b(op->getLoc(), op->getContext());
  b.setInsertionPointAfter(op);
  auto thread = LLVM::InlineAsmOp::create(
      b, TypeRange(b.getI32Type()), ValueRange(), "mov.u32 $0, %tid.x;", "=r",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  threadIdValue = thread->getResult(0);
  if (inLoops) {
    // Where the code runs again, ptxas would know that it is the same index and
    // keep what follows from it all the same.
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, value, 32);
    };
    Value lane = arith::AndIOp::create(b, threadIdValue, constant(31));
    threadIdValue = NVVM::ShflOp::create(
        b, b.getI32Type(), constant(-1), threadIdValue, lane, constant(31),
        NVVM::ShflKind::idx, /*return_value_and_is_valid=*/UnitAttr());
  }
  laneValue = warpValue = uniformWarpValue = Value();
  entryCache.clear();
  entryEnd = arith::ConstantIntOp::create(b, 0, 1);
  dead.push_back(entryEnd);
}

Value KernelLowering::threadId() {
  if (!threadIdValue) {
    ImplicitLocOpBuilder b = entryBuilder();
    threadIdValue = NVVM::ThreadIdXOp::create(b, b.getI32Type());
  }
  return threadIdValue;
}

Value KernelLowering::lane() {
  if (!laneValue) {
    Value thread = threadId();
    ImplicitLocOpBuilder b = entryBuilder();
    laneValue = arith::AndIOp::create(b, thread,
                                      arith::ConstantIntOp::create(b, 31, 32));
  }
  return laneValue;
}

Value KernelLowering::warp() {
  if (!warpValue) {
    Value thread = threadId();
    ImplicitLocOpBuilder b = entryBuilder();
    warpValue = arith::ShRUIOp::create(b, thread,
                                       arith::ConstantIntOp::create(b, 5, 32));
  }
  return warpValue;
}

Value KernelLowering::uniformWarp() {
  if (!uniformWarpValue) {
    Value own = warp();
    ImplicitLocOpBuilder b = entryBuilder();
    auto constant = [&](int64_t value) -> Value {
      return arith::ConstantIntOp::create(b, value, 32);
    };
    uniformWarpValue = NVVM::ShflOp::create(
        b, b.getI32Type(), constant(-1), own, constant(0), constant(31),
        NVVM::ShflKind::idx, /*return_value_and_is_valid=*/UnitAttr());
  }
  return uniformWarpValue;
}

static constexpr StringLiteral kSharedSymbol = "attn_shared";

/// The one symbol of dynamic shared memory. It is external so that LLVM keeps
/// stores whose reader it cannot see.
static LLVM::GlobalOp getSharedGlobal(gpu::GPUFuncOp func) {
  auto module = func->getParentOfType<gpu::GPUModuleOp>();
  if (auto global = module.lookupSymbol<LLVM::GlobalOp>(kSharedSymbol))
    return global;
  OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
  return LLVM::GlobalOp::create(
      b, func.getLoc(), LLVM::LLVMArrayType::get(b.getI8Type(), 0),
      /*isConstant=*/false, LLVM::Linkage::External, kSharedSymbol, Attribute(),
      /*alignment=*/1024, /*addrSpace=*/3);
}

Value KernelLowering::sharedPointer(Location loc, int64_t offset) {
  if (!sharedBase) {
    Value team = teams > 1 ? uniformWarp() : Value();
    ImplicitLocOpBuilder b = entryBuilder();
    sharedBase = LLVM::AddressOfOp::create(b, getSharedGlobal(func));
    if (team) {
      Value distance = arith::MulIOp::create(
          b, team, arith::ConstantIntOp::create(b, getTeamBytes(func), 32));
      sharedBase = LLVM::GEPOp::create(b, sharedBase.getType(), b.getI8Type(),
                                       sharedBase, ValueRange{distance});
    }
  }
  if (offset == 0)
    return sharedBase;
  ImplicitLocOpBuilder b = entryBuilder(loc);
  return LLVM::GEPOp::create(
      b, sharedBase.getType(), b.getI8Type(), sharedBase,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)});
}

void KernelLowering::renewAddresses(ImplicitLocOpBuilder &b) {
  // Teams have a first byte that is computed.
  if (!sharedBase || teams > 1)
    return;
  // LLVM would take equal addresses of several partitions in front of all.
  auto word = LLVM::InlineAsmOp::create(
      b, TypeRange(b.getI32Type()), ValueRange(),
      ("mov.u32 $0, " + kSharedSymbol + ";").str(), "=r",
      /*has_side_effects=*/true, /*is_align_stack=*/false,
      LLVM::tailcallkind::TailCallKind::None, LLVM::AsmDialectAttr(),
      ArrayAttr());
  Value own =
      LLVM::IntToPtrOp::create(b, sharedBase.getType(), word->getResult(0));
  // Offsets of pointers that the entry has, in an order that is the same in
  // every run.
  std::map<int64_t, Value> renewed;
  auto forPointers = [&](function_ref<void(Value &, int64_t)> visit) {
    auto visitKnown = [&](Value &pointer) {
      auto sum = pointer.getDefiningOp<LLVM::GEPOp>();
      if (pointer == sharedBase)
        visit(pointer, 0);
      else if (sum && sum.getBase() == sharedBase &&
               sum.getDynamicIndices().empty())
        visit(pointer, sum.getRawConstantIndices().front());
    };
    for (auto &[buffer, value] : buffers)
      visitKnown(value.base);
    for (auto &[array, pointer] : barriers)
      visitKnown(pointer);
  };
  forPointers([&](Value &, int64_t offset) { renewed[offset] = own; });
  for (auto &[offset, pointer] : renewed) {
    if (offset == 0)
      continue;
    LLVM::GEPArg index(static_cast<int32_t>(offset));
    pointer = LLVM::GEPOp::create(b, own.getType(), b.getI8Type(), own, index);
  }
  forPointers(
      [&](Value &pointer, int64_t offset) { pointer = renewed.at(offset); });
}
