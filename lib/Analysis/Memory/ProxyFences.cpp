//===- ProxyFences.cpp - Generic accesses before asynchronous ones --------===//
//
// A forward data flow with two bits: a generic access has no fence behind it
// yet, and an asynchronous one is on its way. The first release behind such an
// access gets the fence, so that the bits are cleared soon.
//
//===----------------------------------------------------------------------===//

#include "attn/Analysis/Memory/ProxyFences.h"
#include "../Flow/ForwardWalk.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

struct ProxyState {
  bool dirty = false;
  bool copying = false;

  void join(ProxyState other) {
    dirty |= other.dirty;
    copying |= other.copying;
  }
  bool operator!=(ProxyState other) const {
    return dirty != other.dirty || copying != other.copying;
  }
};

class ProxyFenceFinder : public ForwardWalk<ProxyFenceFinder, ProxyState> {
public:
  explicit ProxyFenceFinder(SharedAccessCache &cache) : cache(cache) {}

  /// Collects what the async proxy touches; true if there is anything.
  FailureOr<bool> collect(gpu::GPUFuncOp kernel);
  SmallVector<Operation *> takePlaces() { return places.takeVector(); }
  ProxyState visitOp(Operation &op, ProxyState state);

private:
  bool isTouched(const SharedAccess &access);
  /// Clears `state` by a fence before `op`, if it needs one.
  void clear(Operation &op, ProxyState &state);

  SharedAccessCache &cache;
  SmallVector<SharedAccess> touched;
  llvm::SetVector<Operation *> places;
};

} // namespace

FailureOr<bool> ProxyFenceFinder::collect(gpu::GPUFuncOp kernel) {
  WalkResult walk = kernel.walk([&](Operation *op) -> WalkResult {
    if (llvm::none_of(op->getOperandTypes(), llvm::IsaPred<BufferType>))
      return WalkResult::advance();
    if (!cache.contains(op)) {
      auto accesses = getSharedAccesses(op);
      if (failed(accesses))
        return failure();
      cache[op] = std::move(*accesses);
    }
    for (const SharedAccess &access : cache[op])
      if (access.isAsyncProxy())
        touched.push_back(access);
    return WalkResult::advance();
  });
  if (walk.wasInterrupted())
    return failure();
  return !touched.empty();
}

bool ProxyFenceFinder::isTouched(const SharedAccess &access) {
  return llvm::any_of(touched, [&](const SharedAccess &other) {
    return bytesOverlap(access, other);
  });
}

void ProxyFenceFinder::clear(Operation &op, ProxyState &state) {
  if (state.dirty)
    places.insert(&op);
  state.dirty = false;
}

/// True for ops that start accesses through the async proxy.
static bool startsAsyncProxy(Operation &op) {
  auto async = dyn_cast<AsyncOpInterface>(op);
  return async && async.getAsyncEngine().isAsyncProxy &&
         llvm::any_of(op.getOperandTypes(), llvm::IsaPred<BufferType>);
}

bool attn::isRelease(Operation &op) {
  if (auto user = dyn_cast<ChannelUserOpInterface>(op))
    return user.getChannelUse() == ChannelUse::Release;
  return isa<gpu::BarrierOp, ClusterBarrierOp, NamedBarrierOp, MBarrierArriveOp,
             MBarrierExpectTxOp, NVVM::SyncWarpOp>(op);
}

bool attn::releasesInside(ElectOp elect) {
  return elect
      .walk([](Operation *nested) {
        return isRelease(*nested) ? WalkResult::interrupt()
                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

ProxyState ProxyFenceFinder::visitOp(Operation &op, ProxyState state) {
  if (isa<FenceProxyOp>(op)) {
    state.dirty = false;
    return state;
  }
  if (auto elect = dyn_cast<ElectOp>(op)) {
    // A fence in one thread does not order the others' accesses.
    bool starts = elect
                      .walk([](Operation *nested) {
                        return startsAsyncProxy(*nested)
                                   ? WalkResult::interrupt()
                                   : WalkResult::advance();
                      })
                      .wasInterrupted();
    if (starts || releasesInside(elect))
      clear(op, state);
    state.join(visit(elect.getBody().front(), state));
    return state;
  }
  if (auto rare = dyn_cast<RareOp>(op)) {
    // On the path itself, not at the release behind it, which all come to.
    Block &body = rare.getBody().front();
    ProxyState taken = visit(body, state);
    if (!state.dirty)
      clear(*body.getTerminator(), taken);
    state.join(taken);
    return state;
  }
  if (op.getNumRegions() != 0)
    return visitNested(op, state);
  if (auto async = dyn_cast<AsyncOpInterface>(op))
    if (std::optional<int64_t> pending = async.getAwaitedGroups();
        pending && !async.getAsyncEngine().isAsyncProxy &&
        !async.getAsyncEngine().isTensorCore) {
      state.dirty |= state.copying;
      state.copying &= *pending != 0;
      return state;
    }
  if (isRelease(op))
    clear(op, state);
  auto accesses = cache.find(&op);
  if (accesses == cache.end())
    return state;
  for (const SharedAccess &access : accesses->second) {
    if (access.isAsyncProxy())
      clear(op, state);
    else if (!isTouched(access))
      continue;
    else if (access.isInGroup())
      state.copying = true;
    else
      state.dirty = true;
  }
  return state;
}

FailureOr<SmallVector<Operation *>>
attn::findMissingProxyFences(gpu::GPUFuncOp kernel, SharedAccessCache &cache) {
  ProxyFenceFinder finder(cache);
  FailureOr<bool> any = finder.collect(kernel);
  if (failed(any))
    return failure();
  if (*any)
    finder.visit(kernel.getBody().front(), ProxyState());
  return finder.takePlaces();
}
