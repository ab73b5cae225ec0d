//===- BarrierRings.cpp - Rings that may be turned ------------------------===//
//
// A cursor is a position in a ring: the slot in bits 0 to 15, a parity in bit
// 16. Where cursors are used only as slots, as parities and to go on by one, a
// kernel does in a turned ring what it does in the ring, one slot further on.
// States then differ only by where their rings stand, and are the same state.
//
// Here values are found that may be of one ring. Whether all steps go along
// when it turns is asked of the steps (BarrierTurns.cpp).
//
//===----------------------------------------------------------------------===//

#include "BarrierCompiler.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/EquivalenceClasses.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

static constexpr int64_t kParityShift = 16;
static constexpr int64_t kSlotMask = (1 << kParityShift) - 1;

namespace {

/// Groups values and the memory that they index.
class RingFinder {
public:
  RingFinder(Program &program, const llvm::DenseSet<Value> &demanded,
             const llvm::DenseMap<Value, SmallVector<Value, 2>> &flow)
      : program(program), demanded(demanded), flow(flow) {}
  void run();
  void judge();
  void assign(llvm::function_ref<Slot(Value)> slotOf);

private:
  void collectUses(Value value);
  void addCursor(Value value);
  void addBetween(Operation *advance, Value cursor);
  void addIndex(Value index, Value cursor);
  void addBuffer(Value buffer, Value cursor);
  void refuse(Value value) { refused.insert(value); }
  void unite(Value a, Value b) { groups.unionSets(key(a), key(b)); }
  void *key(Value value) {
    void *pointer = value.getAsOpaquePointer();
    groups.insert(pointer);
    return pointer;
  }

  Program &program;
  const llvm::DenseSet<Value> &demanded;
  const llvm::DenseMap<Value, SmallVector<Value, 2>> &flow;
  /// Where a value goes through control flow.
  llvm::DenseMap<Value, SmallVector<Value, 2>> goesTo;
  llvm::EquivalenceClasses<void *> groups;
  llvm::DenseSet<Value> cursors, refused;
  /// With the cursor that each is of; what a cursor goes on by is `between`.
  llvm::DenseMap<Value, Value> indices, parities, between;
  /// What is added to an index, of each sum.
  llvm::DenseMap<Value, Value> added;
  llvm::DenseMap<Value, int64_t> depths;
  llvm::DenseSet<Value> arrays, allocs;
  SmallVector<Value> worklist;
  /// By the leader of a group.
  llvm::DenseMap<void *, int64_t> depthOf;
  /// Those that are no rings, and rings whose slots are not found by cursors
  /// alone, which turn by their parities.
  llvm::DenseSet<void *> bad, keeping;
};

} // namespace

static std::optional<int64_t> getConstant(Value value) {
  APInt constant;
  if (matchPattern(value, m_ConstantInt(&constant)))
    return constant.getZExtValue();
  return std::nullopt;
}

/// The operand of a binary op whose other one is `constant`.
template <typename OpT>
static Value getOperand(Operation *op, int64_t constant) {
  auto binary = dyn_cast_or_null<OpT>(op);
  if (!binary || getConstant(binary.getRhs()) != constant)
    return {};
  return binary.getLhs();
}

/// The cursor that a value is one position behind, and the ring's depth.
static std::pair<Value, int64_t> matchAdvance(Operation *op) {
  // In a ring of one slot only the parity changes.
  if (Value cursor = getOperand<arith::XOrIOp>(op, kSlotMask + 1))
    return {cursor, 1};
  auto select = dyn_cast_or_null<arith::SelectOp>(op);
  if (!select)
    return {};
  Value next = select.getFalseValue();
  Value cursor = getOperand<arith::AddIOp>(next.getDefiningOp(), 1);
  auto isLast = select.getCondition().getDefiningOp<arith::CmpIOp>();
  if (!cursor || !isLast || isLast.getPredicate() != arith::CmpIPredicate::eq)
    return {};
  std::optional<int64_t> depth = getConstant(isLast.getRhs());
  if (!depth || *depth < 1 || *depth > kSlotMask ||
      getOperand<arith::AndIOp>(isLast.getLhs().getDefiningOp(), kSlotMask) !=
          next ||
      getOperand<arith::XOrIOp>(select.getTrueValue().getDefiningOp(),
                                (kSlotMask + 1) | *depth) != next)
    return {};
  return {cursor, *depth};
}

void RingFinder::addCursor(Value value) {
  if (getConstant(value) || !cursors.insert(value).second)
    return;
  key(value);
  worklist.push_back(value);
}

void RingFinder::addBuffer(Value buffer, Value cursor) {
  // What other memory is touched so is seen at the steps.
  if (!buffer.getDefiningOp<AllocOp>())
    return;
  allocs.insert(buffer);
  unite(buffer, cursor);
}

/// A number that says which slot: what it indexes belongs to the ring.
void RingFinder::addIndex(Value index, Value cursor) {
  indices[index] = cursor;
  unite(index, cursor);
  for (OpOperand &use : index.getUses()) {
    Operation *user = use.getOwner();
    if (auto slot = dyn_cast<SlotOp>(user)) {
      addBuffer(slot.getSource(), cursor);
      continue;
    }
    // Parts of a slot lie `depth` mbarriers apart.
    if (auto part = dyn_cast<arith::AddIOp>(user)) {
      added[part.getResult()] =
          part.getLhs() == index ? part.getRhs() : part.getLhs();
      addIndex(part.getResult(), cursor);
      continue;
    }
    for (Value operand : user->getOperands()) {
      if (isa<MBarriersType>(operand.getType())) {
        arrays.insert(operand);
        unite(operand, cursor);
      }
      auto buffer = dyn_cast<BufferType>(operand.getType());
      if (buffer && buffer.getRank() == 1)
        addBuffer(operand, cursor);
    }
  }
}

/// What a step from a cursor to the next one computes on the way.
void RingFinder::addBetween(Operation *advance, Value cursor) {
  auto select = dyn_cast<arith::SelectOp>(advance);
  if (!select)
    return;
  Operation *isLast = select.getCondition().getDefiningOp();
  for (Value value : {select.getFalseValue(), select.getTrueValue(),
                      select.getCondition(), isLast->getOperand(0)})
    between[value] = cursor;
}

void RingFinder::collectUses(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    if (getOperand<arith::AndIOp>(user, kSlotMask) == value) {
      addIndex(user->getResult(0), value);
    } else if (getOperand<arith::ShRUIOp>(user, kParityShift) == value) {
      Value parity = user->getResult(0);
      parities[parity] = value;
      unite(parity, value);
      for (Operation *waiting : parity.getUsers())
        if (auto wait = dyn_cast<MBarrierWaitOp>(waiting)) {
          arrays.insert(wait.getBarriers());
          unite(wait.getBarriers(), value);
        }
    } else if (getOperand<arith::XOrIOp>(user, kSlotMask + 1) == value) {
      depths[user->getResult(0)] = 1;
      addCursor(user->getResult(0));
      unite(user->getResult(0), value);
    } else if (auto next = getOperand<arith::AddIOp>(user, 1); next == value) {
      // The sum is part of going on by one, or something else is done with it.
      bool isAdvance = false;
      for (Operation *later : user->getResult(0).getUsers())
        if (auto [cursor, depth] = matchAdvance(later); cursor == value) {
          isAdvance = true;
          addBetween(later, value);
          depths[later->getResult(0)] = depth;
          addCursor(later->getResult(0));
          unite(later->getResult(0), value);
        }
      if (!isAdvance)
        refuse(value);
    } else if (!user->hasTrait<OpTrait::IsTerminator>() &&
               user->getNumRegions() == 0) {
      refuse(value);
    }
  }
  for (Value to : goesTo.lookup(value)) {
    addCursor(to);
    unite(to, value);
  }
}

void RingFinder::run() {
  for (auto &[value, sources] : flow)
    for (Value source : sources)
      goesTo[source].push_back(value);
  program.kernel.walk([&](Operation *op) {
    if (op->getNumResults() != 1 || !demanded.contains(op->getResult(0)))
      return;
    if (Value cursor = getOperand<arith::ShRUIOp>(op, kParityShift))
      addCursor(cursor);
    if (auto [cursor, depth] = matchAdvance(op); cursor)
      addCursor(cursor);
  });
  while (!worklist.empty()) {
    Value value = worklist.pop_back_val();
    collectUses(value);
    // Where it comes from: a start, another cursor, or one that went on.
    for (Value source : flow.lookup(value)) {
      std::optional<int64_t> start = getConstant(source);
      if (start && *start != 0 && *start != kSlotMask + 1)
        refuse(value);
      if (start)
        continue;
      addCursor(source);
      unite(source, value);
    }
    Operation *def = value.getDefiningOp();
    if (def && def->getNumRegions() == 0) {
      auto [cursor, depth] = matchAdvance(def);
      if (!cursor) {
        refuse(value);
        continue;
      }
      depths[value] = depth;
      addBetween(def, cursor);
      addCursor(cursor);
      if (!getConstant(cursor))
        unite(cursor, value);
    }
  }
}

/// True if a value is certainly a multiple of a number.
static bool isMultiple(Value value, int64_t depth) {
  if (std::optional<int64_t> constant = getConstant(value))
    return depth != 0 && *constant % depth == 0;
  auto product = value.getDefiningOp<arith::MulIOp>();
  return product && (isMultiple(product.getLhs(), depth) ||
                     isMultiple(product.getRhs(), depth));
}

/// The leader of each group that is no ring goes to `bad`, the others' depths
/// to `depthOf`.
void RingFinder::judge() {
  for (Value value : refused)
    bad.insert(groups.getLeaderValue(key(value)));
  for (auto [value, depth] : depths) {
    void *leader = groups.getLeaderValue(key(value));
    if (auto [known, isNew] = depthOf.try_emplace(leader, depth);
        !isNew && known->second != depth)
      bad.insert(leader);
  }
  for (Value array : arrays) {
    void *leader = groups.getLeaderValue(key(array));
    int64_t depth = depthOf.lookup(leader);
    if (depth == 0 ||
        cast<MBarriersType>(array.getType()).getCount() % depth != 0)
      bad.insert(leader);
  }
  for (Value alloc : allocs) {
    void *leader = groups.getLeaderValue(key(alloc));
    auto type = cast<BufferType>(alloc.getType());
    int64_t slots =
        type.getRank() == 1 ? type.getShape()[0] : type.getNumSlots();
    if (slots != depthOf.lookup(leader))
      bad.insert(leader);
  }
  for (auto [sum, part] : added) {
    void *leader = groups.getLeaderValue(key(sum));
    if (int64_t depth = depthOf.lookup(leader); !isMultiple(part, depth))
      keeping.insert(leader);
  }
}

/// Whether the bytes of two allocs are the same, as far as they are touched.
static bool mayOverlap(const Footprint &a, const Footprint &b) {
  auto endOf = [](const Footprint &footprint) {
    int64_t end = 0;
    for (const auto &part : footprint.parts)
      if (!part.empty())
        end = std::max(end, part.back().end);
    return footprint.getStart() + end +
           footprint.slotBytes * (footprint.numSlots - 1);
  };
  return a.getStart() < endOf(b) && b.getStart() < endOf(a);
}

void RingFinder::assign(llvm::function_ref<Slot(Value)> slotOf) {
  llvm::DenseMap<void *, uint32_t> numbers;
  auto ringOf = [&](Value value) -> uint32_t {
    void *leader = groups.getLeaderValue(key(value));
    if (bad.contains(leader) || !depthOf.contains(leader))
      return kNoRing;
    auto [number, isNew] = numbers.try_emplace(leader, program.rings.size());
    if (isNew)
      program.rings.push_back(
          {depthOf.lookup(leader), keeping.contains(leader)});
    return number->second;
  };
  auto place = [&](Value value, RingUse::Kind kind, Value cursor) {
    Slot slot = slotOf(value);
    if (slot != kNoSlot && ringOf(cursor) != kNoRing)
      program.ringUses[slot] = {kind, ringOf(cursor), slotOf(cursor)};
  };
  for (Value cursor : cursors)
    place(cursor, RingUse::Cursor, cursor);
  for (auto [index, cursor] : indices)
    place(index, RingUse::Index, cursor);
  for (auto [parity, cursor] : parities)
    place(parity, RingUse::Parity, cursor);
  for (auto [value, cursor] : between)
    place(value, RingUse::Between, cursor);
  for (BarrierArray &array : program.arrays)
    if (arrays.contains(array.op.getResult()))
      array.ring = ringOf(array.op.getResult());
  for (AccessInfo &info : program.accesses)
    if (allocs.contains(info.footprint.getMemory()))
      info.ring = ringOf(info.footprint.getMemory());
  findTurns(program);
  // Bytes that a ring has in common with something else.
  for (AccessInfo &info : program.accesses)
    for (const AccessInfo &other : program.accesses)
      if (other.ring != kNoRing && other.ring != info.ring &&
          !llvm::is_contained(info.overlaid, other.ring) &&
          mayOverlap(info.footprint, other.footprint))
        info.overlaid.push_back(other.ring);
}

void Compiler::findRings() {
  program.ringUses.resize(program.numSlots);
  RingFinder finder(program, demanded, flow);
  finder.run();
  finder.judge();
  finder.assign([&](Value value) {
    auto slot = slots.find(value);
    return slot == slots.end() ? kNoSlot : slot->second;
  });
}
