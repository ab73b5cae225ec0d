//===- Barriers.cpp - mbarriers, named barriers and fences ----------------===//

#include "PartitionLowering.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Bytes of an mbarrier (PTX ISA, "Size and alignment of mbarrier object").
static constexpr int64_t kBarrierBytes = 8;

template <>
LogicalResult PartitionLowering::lower(MBarrierAllocOp op) {
  if (!op.getOffset())
    return op.emitOpError(
        "expected an offset; attn-allocate-shared gives it one");
  if (*op.getOffset() % kBarrierBytes != 0)
    return op.emitOpError("expected an offset that is a multiple of ")
           << kBarrierBytes << ", got " << *op.getOffset();
  kernel.barriers[op.getResult()] =
      kernel.sharedPointer(op.getLoc(), *op.getOffset());
  return success();
}

Value PartitionLowering::barrierPointer(ImplicitLocOpBuilder &b, Value array,
                                        Value index) {
  Value base = kernel.barriers.lookup(array);
  IntegerAttr constant;
  if (matchPattern(index, m_Constant(&constant))) {
    int32_t offset = constant.getInt() * kBarrierBytes;
    if (offset == 0)
      return base;
    return LLVM::GEPOp::create(b, base.getType(), b.getI8Type(), base,
                               ArrayRef<LLVM::GEPArg>{offset});
  }
  return LLVM::GEPOp::create(b, base.getType(), b.getI64Type(), base,
                             ValueRange{index});
}

template <>
LogicalResult PartitionLowering::lower(MBarrierInitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value count = arith::ConstantIntOp::create(b, op.getCount(), 32);
  for (int64_t i = 0; i < op.getBarriers().getType().getCount(); ++i)
    NVVM::MBarrierInitOp::create(
        b,
        barrierPointer(b, op.getBarriers(),
                       arith::ConstantIntOp::create(b, i, 32)),
        count, /*predicate=*/Value());
  return success();
}

template <>
LogicalResult PartitionLowering::lower(MBarrierInvalOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  for (int64_t i = 0; i < op.getBarriers().getType().getCount(); ++i)
    NVVM::MBarrierInvalOp::create(
        b, barrierPointer(b, op.getBarriers(),
                          arith::ConstantIntOp::create(b, i, 32)));
  return success();
}

/// Generic accesses to shared memory before asynchronous ones.
static void fenceProxy(ImplicitLocOpBuilder &b) {
  NVVM::FenceProxyOp::create(
      b, NVVM::ProxyKind::async_shared,
      NVVM::SharedSpaceAttr::get(b.getContext(),
                                 NVVM::SharedSpace::shared_cta));
}

template <>
LogicalResult PartitionLowering::lower(MBarrierFenceInitOp op) {
  // Nothing is outside of the CTA before sm_90, whose barrier stands behind.
  if (kernel.someTargetLacks(Capability::Tma))
    return success();
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::FenceMbarrierInitOp::create(b);
  fenceProxy(b);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TileArriveOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto i32 = [&](int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  // All threads' stores come before what one of them releases.
  gpu::BarrierOp::create(b);
  Value thread = gpu::ThreadIdOp::create(b, gpu::Dimension::x);
  Value isFirst = arith::CmpIOp::create(b, arith::CmpIPredicate::eq, thread,
                                        arith::ConstantIndexOp::create(b, 0));
  Value end = arith::SubIOp::create(b, op.getCount(), i32(1));
  auto branch = scf::IfOp::create(
      b, isFirst,
      [&](OpBuilder &builder, Location loc) {
        ImplicitLocOpBuilder lb(loc, builder);
        // The last one finds count - 1 and leaves 0 for the next launch.
        // LLVM's atomics are translated without their ordering.
        Value before =
            emitOrdered(lb, lb.getI32Type(),
                        "atom.acq_rel.gpu.global.inc.u32 $0, [$1], $2;",
                        "=r,l,r,~{memory}", {op.getCounter(), end});
        Value last =
            arith::CmpIOp::create(lb, arith::CmpIPredicate::eq, before, end);
        Value flag = arith::ExtUIOp::create(lb, lb.getI32Type(), last);
        scf::YieldOp::create(lb, flag);
      },
      [&](OpBuilder &builder, Location loc) {
        Value none = arith::ConstantIntOp::create(builder, loc, 0, 32);
        scf::YieldOp::create(builder, loc, none);
      });
  // What it has acquired comes before what all threads do behind the barrier.
  auto meet = NVVM::BarrierOp::create(
      b, b.getI32Type(), /*barrierId=*/Value(), /*numberOfThreads=*/Value(),
      NVVM::BarrierReductionAttr::get(b.getContext(),
                                      NVVM::BarrierReduction::OR),
      branch.getResult(0));
  Value last =
      arith::CmpIOp::create(b, arith::CmpIPredicate::ne, meet.getRes(), i32(0));
  op.getLast().replaceAllUsesWith(last);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(FenceProxyOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  fenceProxy(b);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(MBarrierExpectTxOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value pointer = barrierPointer(b, op.getBarriers(), op.getIndex());
  Value bytes = arith::ConstantIntOp::create(b, op.getBytes(), 32);
  if (op.getLeader()) {
    auto branch = scf::IfOp::create(b, isClusterLeader(b, op.getRankBits()),
                                    /*withElseRegion=*/false);
    b.setInsertionPointToStart(branch.thenBlock());
  }
  if (elected) {
    emitElected(b, "mbarrier.arrive.expect_tx.shared.b64 _, [$1], $2;",
                {pointer, bytes});
    return success();
  }
  forEachCTA(b, op.getCtas(), op.getRankBits(), [&](auto inCTA) {
    NVVM::MBarrierArriveExpectTxOp::create(
        b, /*res=*/Type(), inCTA(pointer), bytes,
        op.getCtas() && kernel.signals.clusterScope
            ? NVVM::MemScopeKind::CLUSTER
            : NVVM::MemScopeKind::CTA,
        /*relaxed=*/false, /*predicate=*/Value());
  });
  return success();
}

Value PartitionLowering::remotePointer(ImplicitLocOpBuilder &b, Value pointer,
                                       Value rank) {
  auto type = LLVM::LLVMPointerType::get(
      b.getContext(), unsigned(NVVM::NVVMMemorySpace::SharedCluster));
  return NVVM::MapaOp::create(b, type, pointer, rank);
}

void PartitionLowering::forEachCTA(
    ImplicitLocOpBuilder &b, std::optional<int64_t> ctas, RankBits bits,
    function_ref<void(function_ref<Value(Value)>)> emit) {
  if (!ctas)
    return emit([](Value pointer) { return pointer; });
  for (int64_t index = 0; index < *ctas; ++index)
    emit([&](Value pointer) {
      Value rank = arith::ConstantIntOp::create(b, index, 32);
      return remotePointer(b, pointer, getMember(b, rank, bits));
    });
}

template <>
LogicalResult PartitionLowering::lower(MBarrierArriveOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value pointer = barrierPointer(b, op.getBarriers(), op.getIndex());
  bool isRemote = op.getCtas() || op.getLeader();
  int64_t ctas = op.getCtas().value_or(1);
  auto constant = [&](int64_t value) {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  // In the CTA of a number among those that it goes to.
  auto arrive = [&](Value number) {
    if (!isRemote) {
      NVVM::MBarrierArriveOp::create(b, /*res=*/Type(), pointer,
                                     /*count=*/Value());
      return;
    }
    NVVM::MBarrierArriveOp::create(
        b, /*res=*/Type(),
        remotePointer(b, pointer, getMember(b, number, op.getRankBits())),
        /*count=*/Value(),
        kernel.signals.clusterScope ? NVVM::MemScopeKind::CLUSTER
                                    : NVVM::MemScopeKind::CTA);
  };
  // The one thread of an elect stands for its warp.
  if (inElect) {
    for (int64_t number = 0; number < ctas; ++number)
      arrive(constant(number));
    return success();
  }
  NVVM::SyncWarpOp::create(b, constant(-1));
  // Lane r arrives in the CTA of number r.
  Value isArriving = arith::CmpIOp::create(b, arith::CmpIPredicate::ult, lane(),
                                           constant(ctas));
  auto branch = scf::IfOp::create(b, isArriving, /*withElseRegion=*/false);
  b.setInsertionPointToStart(branch.thenBlock());
  // A pair's softmaxes have no register to spare for a rank that is known.
  arrive(op.getLeader() && kernel.signals.isOfPair ? constant(0) : lane());
  return success();
}

template <>
LogicalResult PartitionLowering::lower(MBarrierWaitOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value pointer = barrierPointer(b, op.getBarriers(), op.getIndex());
  Value parity = op.getParity();
  auto loop = scf::WhileOp::create(b, TypeRange(), ValueRange());
  b.createBlock(&loop.getBefore());
  Value complete;
  if (kernel.someTargetLacks(Capability::Tma))
    complete =
        NVVM::MBarrierTestWaitOp::create(b, b.getI1Type(), pointer, parity);
  else
    complete = NVVM::MBarrierTryWaitOp::create(
        b, b.getI1Type(), pointer, parity, /*ticks=*/Value(),
        op.getCluster() && kernel.signals.clusterScope
            ? NVVM::MemScopeKind::CLUSTER
            : NVVM::MemScopeKind::CTA);
  Value again =
      arith::XOrIOp::create(b, complete, arith::ConstantIntOp::create(b, 1, 1));
  scf::ConditionOp::create(b, again, ValueRange());
  b.createBlock(&loop.getAfter());
  scf::YieldOp::create(b);
  return success();
}

template <>
LogicalResult PartitionLowering::lower(ClusterBarrierOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  NVVM::ClusterArriveOp::create(b, /*aligned=*/UnitAttr());
  NVVM::ClusterWaitOp::create(b, /*aligned=*/UnitAttr());
  return success();
}

template <>
LogicalResult PartitionLowering::lower(NamedBarrierOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Value threads = arith::ConstantIntOp::create(b, op.getThreads(), 32);
  Value id = op.getId();
  if (op.getEachWarpgroup())
    id = arith::AddIOp::create(b, id, warpgroup());
  LLVM::CallIntrinsicOp::create(
      b, b.getStringAttr("llvm.nvvm.barrier.cta.sync.count"),
      ValueRange{id, threads});
  return success();
}

/// Two warpgroups meet at each barrier: the one whose turn it is, and the one
/// that passed it on.
static constexpr int64_t kTurnThreads = 256;

LogicalResult PartitionLowering::lowerTurn(Operation *op, int64_t id) {
  int64_t groups = warps / kWarpgroupWarps;
  if (groups < 2)
    return success();
  if (id + groups > 16)
    return op->emitOpError("expected a named barrier for each of ")
           << groups << " warpgroups from " << id << " on, got 15 in all";
  ImplicitLocOpBuilder b(op->getLoc(), op);
  auto constant = [](ImplicitLocOpBuilder &b, int64_t value) -> Value {
    return arith::ConstantIntOp::create(b, value, 32);
  };
  auto isLast = [&](ImplicitLocOpBuilder &b) -> Value {
    return arith::CmpIOp::create(
        b, arith::CmpIPredicate::uge, kernel.uniformWarp(),
        constant(b, firstWarp + kWarpgroupWarps * (groups - 1)));
  };
  // The numbers of a warpgroup do not change: they are computed once.
  auto cached = [&](StringRef name, auto make) -> Value {
    Value &value =
        kernel.entryCache[(threadKey() + name + std::to_string(id)).str()];
    if (!value) {
      Value group = warpgroup();
      ImplicitLocOpBuilder entry = kernel.entryBuilder();
      Value own = arith::AddIOp::create(entry, group, constant(entry, id));
      value = make(entry, own);
    }
    return value;
  };
  auto call = [&](ImplicitLocOpBuilder &b, StringRef name, Value barrier) {
    LLVM::CallIntrinsicOp::create(
        b, b.getStringAttr(name),
        ValueRange{barrier, constant(b, kTurnThreads)});
  };
  constexpr llvm::StringLiteral kArrive("llvm.nvvm.barrier.cta.arrive.count");
  if (isa<TurnStartOp>(op)) {
    auto branch = scf::IfOp::create(b, isLast(b), /*withElseRegion=*/false);
    ImplicitLocOpBuilder inner(op->getLoc(), branch.getThenBodyBuilder());
    call(inner, kArrive, constant(inner, id));
  } else if (isa<TurnTakeOp>(op)) {
    call(b, "llvm.nvvm.barrier.cta.sync.count",
         cached("turn", [](ImplicitLocOpBuilder &, Value own) { return own; }));
  } else {
    call(b, kArrive,
         cached("turn-next", [&](ImplicitLocOpBuilder &entry, Value own) {
           Value next = arith::AddIOp::create(entry, own, constant(entry, 1));
           return arith::SelectOp::create(entry, isLast(entry),
                                          constant(entry, id), next)
               .getResult();
         }));
  }
  return success();
}

template <>
LogicalResult PartitionLowering::lower(TurnStartOp op) {
  return lowerTurn(op, op.getId());
}

template <>
LogicalResult PartitionLowering::lower(TurnTakeOp op) {
  return lowerTurn(op, op.getId());
}

template <>
LogicalResult PartitionLowering::lower(TurnPassOp op) {
  return lowerTurn(op, op.getId());
}

void lowering::addBarrierLowerings(LoweringTable &table) {
  table.addReplaced<MBarrierAllocOp, MBarrierInitOp, MBarrierInvalOp,
                    MBarrierFenceInitOp, MBarrierExpectTxOp, MBarrierArriveOp,
                    MBarrierWaitOp, ClusterBarrierOp, FenceProxyOp,
                    NamedBarrierOp, TurnStartOp, TurnTakeOp, TurnPassOp,
                    TileArriveOp>();
}
