//===- IssueLoopExpander.cpp - attn.issue_loop as loops -------------------===//
//
// A statement s with n iterations runs in the steps skew <= t < skew + n. In a
// step it has not begun, runs, or has ended; statements begin at steps that are
// known and end at steps that may not be. Steps between two skews with the same
// statements ended are a phase, whose bounds follow from the trips: behind all
// that have ended, in front of the end of all that run. Phases in which more
// has ended come later; of two of which neither has ended all that the other
// has at least one is empty. So each phase becomes a loop in this order, none
// of which asks what runs (docs/Rationale/Pipeline/IssueOrder.md).
//
// Where a slot is held there is one phase, whose loop carries the slot's token
// behind the cursors.
//
// Ends are not independent: of statements with the same trips the one with the
// larger skew ends later, and with `rising` those of later operands end no
// earlier.
//
//===----------------------------------------------------------------------===//

#include "IssueLoopExpander.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// The rights that a step has to a slot.
struct SlotRights {
  /// Those of the parts, or one of the whole slot.
  SmallVector<ChannelUserOpInterface> acquires;
  SmallVector<StringRef> parts;
  /// The right to the whole slot, once it is there.
  Value whole;
};

/// Steps in which the same statements run.
struct IssuePhase {
  /// The first step at which as many have begun, and the first at which more
  /// have; none if all have.
  int64_t begin = 0;
  std::optional<int64_t> end;
  llvm::SmallBitVector active, ended;
};

class IssueExpander {
public:
  explicit IssueExpander(IssueLoopOp loop)
      : loop(loop), builder(loop.getLoc(), loop) {}
  IssueLoopSummary run();

private:
  bool isPossible(const llvm::SmallBitVector &begun,
                  const llvm::SmallBitVector &ended);
  void collectPhases();
  Value constant(int64_t value) {
    return builder.createOrFold<arith::ConstantIntOp>(value, 32);
  }
  /// The first step behind the last one of a statement.
  Value endOf(unsigned statement);
  /// Of statements with the same trips the one that ends first, or last.
  SmallVector<unsigned> selectEnds(const llvm::SmallBitVector &statements,
                                   bool first);
  SmallVector<Value> emitPhase(const IssuePhase &phase,
                               SmallVector<Value> cursors);
  /// The parts of a slot that statements name, in their order; one without a
  /// name if there are none.
  SmallVector<StringRef> collectParts(unsigned slot);
  /// The right to a part of a slot, or to all of it if that has no name.
  Value acquire(unsigned slot, StringRef part, Value cursor,
                SlotRights &rights);
  /// One step; the cursors behind it, and behind them the token of what is
  /// held.
  SmallVector<Value> emitStep(const llvm::SmallBitVector &active, Value step,
                              SmallVector<Value> cursors);

  IssueLoopOp loop;
  ImplicitLocOpBuilder builder;
  SmallVector<IssuePhase> phases;
  IssueLoopSummary summary;
};

} // namespace

/// True if some trips let these statements have ended and no other ones that
/// have begun.
bool IssueExpander::isPossible(const llvm::SmallBitVector &begun,
                               const llvm::SmallBitVector &ended) {
  for (unsigned late : ended.set_bits())
    for (unsigned early : begun.set_bits()) {
      int64_t distance = loop.getCounts()[late] - loop.getCounts()[early];
      bool endsNoLater = loop.getSkews()[early] <= loop.getSkews()[late] &&
                         (distance == 0 || (loop.getRising() && distance > 0));
      if (endsNoLater && !ended.test(early))
        return false;
    }
  return true;
}

void IssueExpander::collectPhases() {
  unsigned count = loop.getBodies().size();
  SmallVector<int64_t> starts(loop.getSkews());
  llvm::sort(starts);
  starts.erase(llvm::unique(starts), starts.end());
  for (auto [index, start] : llvm::enumerate(starts)) {
    IssuePhase phase;
    phase.begin = start;
    if (index + 1 < starts.size())
      phase.end = starts[index + 1];
    llvm::SmallBitVector begun(count);
    for (unsigned statement = 0; statement < count; ++statement)
      if (loop.getSkews()[statement] <= start)
        begun.set(statement);
    SmallVector<unsigned> members(begun.set_bits());
    size_t first = phases.size();
    // All subsets but the one in which nothing runs.
    for (uint64_t set = 0; set + 1 < uint64_t(1) << members.size(); ++set) {
      phase.ended = llvm::SmallBitVector(count);
      for (auto [bit, member] : llvm::enumerate(members))
        if (set >> bit & 1)
          phase.ended.set(member);
      if (!isPossible(begun, phase.ended))
        continue;
      phase.active = begun;
      phase.active.reset(phase.ended);
      phases.push_back(phase);
    }
    // Fewer ends first; sets of one size stay in their order.
    SmallVector<IssuePhase> sorted;
    for (unsigned size = 0; size <= count; ++size)
      for (IssuePhase &phase : MutableArrayRef(phases).drop_front(first))
        if (phase.ended.count() == size)
          sorted.push_back(std::move(phase));
    phases.truncate(first);
    llvm::append_range(phases, sorted);
  }
}

Value IssueExpander::endOf(unsigned statement) {
  Value trips = loop.getTrips()[loop.getCounts()[statement]];
  return builder.createOrFold<arith::AddIOp>(
      trips, constant(loop.getSkews()[statement]));
}

SmallVector<unsigned>
IssueExpander::selectEnds(const llvm::SmallBitVector &statements, bool first) {
  SmallVector<unsigned> selected;
  for (unsigned statement : statements.set_bits()) {
    auto same = llvm::find_if(selected, [&](unsigned other) {
      return loop.getCounts()[other] == loop.getCounts()[statement];
    });
    if (same == selected.end())
      selected.push_back(statement);
    else if ((loop.getSkews()[statement] < loop.getSkews()[*same]) == first)
      *same = statement;
  }
  return selected;
}

SmallVector<StringRef> IssueExpander::collectParts(unsigned slot) {
  llvm::SmallSetVector<StringRef, 4> parts;
  for (unsigned statement = 0; statement < loop.getBodies().size(); ++statement)
    for (auto [used, part] :
         llvm::zip(loop.getUsedSlots(statement), loop.getUsedParts(statement)))
      if (used == slot && !part.empty())
        parts.insert(part);
  if (parts.empty())
    return {StringRef()};
  return llvm::to_vector(parts);
}

Value IssueExpander::acquire(unsigned slot, StringRef part, Value cursor,
                             SlotRights &rights) {
  Value channel = loop.getChannels()[loop.getSlotChannels()[slot]];
  auto acquirePart = [&](StringRef name) -> Value {
    auto it = llvm::find(rights.parts, name);
    if (it != rights.parts.end())
      return rights.acquires[it - rights.parts.begin()].getMadeHandle();
    auto op =
        ChannelAcquireOp::create(builder, channel, cursor, loop.getRole());
    if (!name.empty())
      op.setPart(name);
    rights.acquires.push_back(cast<ChannelUserOpInterface>(op.getOperation()));
    rights.parts.push_back(name);
    return op.getToken();
  };
  if (!part.empty())
    return acquirePart(part);
  if (rights.whole)
    return rights.whole;
  SmallVector<StringRef> parts = collectParts(slot);
  SmallVector<Value> tokens = llvm::map_to_vector(parts, acquirePart);
  rights.whole = tokens.front();
  if (parts.size() > 1)
    rights.whole =
        ChannelJoinOp::create(builder, channel, tokens, loop.getRole());
  return rights.whole;
}

SmallVector<Value> IssueExpander::emitStep(const llvm::SmallBitVector &active,
                                           Value step,
                                           SmallVector<Value> cursors) {
  unsigned numSlots = loop.getSlots().size();
  // The last statement of the step that uses each slot.
  SmallVector<int> last(numSlots, -1);
  for (unsigned statement : active.set_bits())
    for (unsigned slot : loop.getUsedSlots(statement))
      last[slot] = statement;
  SmallVector<SlotRights> rights(numSlots);
  SmallVector<Value> at(numSlots);
  std::optional<unsigned> held = loop.getHeldSlot();
  for (unsigned statement : active.set_bits()) {
    Block &body = loop.getBodies()[statement].front();
    SmallVector<unsigned> used = loop.getUsedSlots(statement);
    IRMapping mapping;
    mapping.map(body.getArgument(0),
                builder.createOrFold<arith::SubIOp>(
                    step, constant(loop.getSkews()[statement])));
    for (auto [index, slot, part] :
         llvm::enumerate(used, loop.getUsedParts(statement))) {
      unsigned number = loop.getSlotChannels()[slot];
      bool isNew = !at[slot];
      if (isNew)
        at[slot] = cursors[number];
      Value token = acquire(slot, part, at[slot], rights[slot]);
      if (isNew)
        cursors[number] = CursorAdvanceOp::create(builder, cursors[number],
                                                  loop.getChannels()[number]);
      mapping.map(body.getArgument(2 * index + 1),
                  rights[slot].acquires.front().getSlotIndex());
      mapping.map(body.getArgument(2 * index + 2), token);
    }
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    ++summary.copies;
    auto release = [&](unsigned slot, Value token) {
      ChannelReleaseOp::create(builder,
                               loop.getChannels()[loop.getSlotChannels()[slot]],
                               token, loop.getRole());
    };
    if (held && loop.getReleasingStatement() == statement)
      release(*held, cursors.back());
    for (unsigned slot : used) {
      if (last[slot] != int(statement))
        continue;
      Value token = acquire(slot, /*part=*/"", at[slot], rights[slot]);
      if (slot == held)
        cursors.back() = token;
      else
        release(slot, token);
    }
  }
  return cursors;
}

SmallVector<Value> IssueExpander::emitPhase(const IssuePhase &phase,
                                            SmallVector<Value> cursors) {
  Value begin = constant(phase.begin), end;
  for (unsigned statement : selectEnds(phase.ended, /*first=*/false))
    begin = builder.createOrFold<arith::MaxSIOp>(endOf(statement), begin);
  if (phase.end)
    end = constant(*phase.end);
  for (unsigned statement : selectEnds(phase.active, /*first=*/true))
    end = end ? builder.createOrFold<arith::MinSIOp>(endOf(statement), end)
              : endOf(statement);
  APInt first, behind;
  if (matchPattern(begin, m_ConstantInt(&first)) &&
      matchPattern(end, m_ConstantInt(&behind))) {
    if (first.sge(behind))
      return cursors;
    if (first + 1 == behind)
      return emitStep(phase.active, begin, std::move(cursors));
  }
  ++summary.loops;
  auto made = scf::ForOp::create(
      builder, begin, end, constant(1), cursors,
      [&](OpBuilder &nested, Location loc, Value step, ValueRange carried) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(nested.getInsertionBlock());
        scf::YieldOp::create(
            builder, emitStep(phase.active, step, llvm::to_vector(carried)));
      });
  return llvm::to_vector(ValueRange(made.getResults()));
}

IssueLoopSummary IssueExpander::run() {
  summary.statements = loop.getBodies().size();
  collectPhases();
  SmallVector<Value> cursors(loop.getCursors());
  if (loop.getHeld())
    cursors.push_back(loop.getHeld());
  for (const IssuePhase &phase : phases)
    cursors = emitPhase(phase, std::move(cursors));
  loop.replaceAllUsesWith(cursors);
  loop.erase();
  return summary;
}

IssueLoopSummary attn::expandIssueLoop(IssueLoopOp loop) {
  return IssueExpander(loop).run();
}
