//===- SharedTrace.cpp - Runs of a kernel on shared memory ----------------===//

#include "SharedTrace.h"
#include <random>

using namespace mlir;
using namespace mlir::attn;

namespace {

class Interpreter {
public:
  DenseMap<Value, int64_t> numbers;
  std::vector<TraceEvent> events;

  SmallVector<int64_t> run(Block &block) {
    for (Operation &op : block) {
      if (auto yield = dyn_cast<scf::YieldOp>(op)) {
        SmallVector<int64_t> results;
        for (Value value : yield.getOperands())
          results.push_back(numbers.lookup(value));
        return results;
      }
      step(op);
    }
    return {};
  }

private:
  void step(Operation &op) {
    using Kind = TraceEvent::Kind;
    if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
      if (auto integer = dyn_cast<IntegerAttr>(constant.getValue()))
        numbers[constant] = integer.getInt();
    } else if (auto add = dyn_cast<arith::AddIOp>(op)) {
      numbers[add] =
          numbers.lookup(add.getLhs()) + numbers.lookup(add.getRhs());
    } else if (auto rem = dyn_cast<arith::RemUIOp>(op)) {
      numbers[rem] =
          numbers.lookup(rem.getLhs()) % numbers.lookup(rem.getRhs());
    } else if (auto store = dyn_cast<LocalStoreOp>(op)) {
      access(Kind::Write, op, store.getDest());
    } else if (auto load = dyn_cast<LocalLoadOp>(op)) {
      access(Kind::Read, op, load.getSource());
    } else if (auto copy = dyn_cast<CpAsyncOp>(op)) {
      access(Kind::Copy, op, copy.getDest());
    } else if (isa<CpAsyncCommitOp>(op)) {
      events.push_back({Kind::Commit, &op, {}, 0, 0});
    } else if (auto wait = dyn_cast<CpAsyncWaitOp>(op)) {
      events.push_back(
          {Kind::Wait, &op, {}, static_cast<int64_t>(wait.getPending()), 0});
    } else if (isa<gpu::BarrierOp>(op)) {
      events.push_back({Kind::Barrier, &op, {}, 0, 0});
    } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
      if (numbers.lookup(branch.getCondition()))
        run(*branch.thenBlock());
      else if (branch.elseBlock())
        run(*branch.elseBlock());
    } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
      SmallVector<int64_t> carried;
      for (Value init : loop.getInits())
        carried.push_back(numbers.lookup(init));
      int64_t end = numbers.lookup(loop.getUpperBound());
      for (int64_t i = 0; i < end; ++i) {
        numbers[loop.getInductionVar()] = i;
        for (auto [argument, value] :
             llvm::zip(loop.getRegionIterArgs(), carried))
          numbers[argument] = value;
        carried = run(*loop.getBody());
      }
      for (auto [result, value] : llvm::zip(loop.getResults(), carried))
        numbers[result] = value;
    }
  }

  void access(TraceEvent::Kind kind, Operation &op, Value buffer) {
    TraceEvent event{kind, &op, {}, 0, 0};
    int64_t bytes =
        llvm::cantFail(cast<BufferType>(buffer.getType()).getSlotBytes());
    while (!(event.alloc = buffer.getDefiningOp<AllocOp>())) {
      auto slot = buffer.getDefiningOp<SlotOp>();
      event.begin = numbers.lookup(slot.getIndex()) * bytes;
      buffer = slot.getSource();
    }
    event.end = event.begin + bytes;
    events.push_back(event);
  }
};

} // namespace

std::vector<TraceEvent> attn::traceKernel(gpu::GPUFuncOp kernel,
                                          ArrayRef<int64_t> arguments) {
  Interpreter interpreter;
  size_t next = 0;
  for (Value argument : kernel.getArguments())
    if (isa<IntegerType>(argument.getType()))
      interpreter.numbers[argument] = arguments[next++];
  interpreter.run(kernel.getBody().front());
  return std::move(interpreter.events);
}

static bool sameBytes(TraceEvent a, TraceEvent b) {
  int64_t baseA = 0, baseB = 0;
  if (a.alloc.getOffset() && b.alloc.getOffset()) {
    baseA = *a.alloc.getOffset();
    baseB = *b.alloc.getOffset();
  } else if (a.alloc != b.alloc) {
    return false;
  }
  return baseA + a.begin < baseB + b.end && baseB + b.begin < baseA + a.end;
}

/// True if each thread stores to the bytes again that it stored to before:
/// types say which one stores an element.
static bool storeAlike(const TraceEvent &a, const TraceEvent &b) {
  return isa<LocalStoreOp>(a.op) && isa<LocalStoreOp>(b.op) &&
         a.op->getOperandTypes() == b.op->getOperandTypes() &&
         a.alloc == b.alloc && a.begin == b.begin && a.end == b.end;
}

bool attn::hasHazard(ArrayRef<TraceEvent> events) {
  using Kind = TraceEvent::Kind;
  struct Open {
    TraceEvent event;
    /// Number of the group, or none before the commit; done when awaited.
    int64_t group = -1;
    bool done = false;
  };
  std::vector<Open> open;
  int64_t groups = 0;
  for (const TraceEvent &event : events) {
    switch (event.kind) {
    case Kind::Commit:
      for (Open &other : open)
        if (!other.done && other.group < 0)
          other.group = groups;
      ++groups;
      break;
    case Kind::Wait:
      for (Open &other : open)
        if (!other.done && other.group >= 0 &&
            other.group < groups - event.begin)
          other.done = true;
      break;
    case Kind::Barrier:
      llvm::erase_if(open, [](const Open &other) { return other.done; });
      break;
    default:
      for (const Open &other : open) {
        bool bothRead =
            event.kind == Kind::Read && other.event.kind == Kind::Read;
        if (!bothRead && sameBytes(other.event, event) &&
            !storeAlike(other.event, event))
          return true;
      }
      open.push_back({event, -1, event.kind != Kind::Copy});
    }
  }
  return false;
}

void attn::forEachRun(gpu::GPUFuncOp kernel, unsigned seed,
                      llvm::function_ref<bool(ArrayRef<TraceEvent>)> visit) {
  constexpr unsigned kMostRuns = 300;
  SmallVector<int64_t> counts;
  for (Value argument : kernel.getArguments())
    if (auto type = dyn_cast<IntegerType>(argument.getType()))
      counts.push_back(type.getWidth() == 1 ? 2 : 4);
  // %x, the index of a slot.
  counts.front() = 2;
  int64_t all = 1;
  for (int64_t count : counts)
    all = std::min<int64_t>(all * count, kMostRuns + 1);
  std::mt19937 random(seed);
  bool exhaustive = all <= kMostRuns;
  for (int64_t run = 0; run < (exhaustive ? all : kMostRuns); ++run) {
    SmallVector<int64_t> arguments;
    int64_t rest = run;
    for (int64_t count : counts) {
      arguments.push_back((exhaustive ? rest : random()) % count);
      rest /= count;
    }
    if (!visit(traceKernel(kernel, arguments)))
      return;
  }
}
