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
// Ends are not independent: of statements with the same trips the one with the
// larger skew ends later, and with `rising` those of later operands end no
// earlier.
//
//===----------------------------------------------------------------------===//

#include "IssueLoopExpander.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SmallBitVector.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

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
  /// One step; the cursors behind it.
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
    std::stable_sort(phases.begin() + first, phases.end(),
                     [](const IssuePhase &a, const IssuePhase &b) {
                       return a.ended.count() < b.ended.count();
                     });
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

SmallVector<Value> IssueExpander::emitStep(const llvm::SmallBitVector &active,
                                           Value step,
                                           SmallVector<Value> cursors) {
  unsigned numSlots = loop.getSlots().size();
  // The last statement of the step that uses each slot.
  SmallVector<int> last(numSlots, -1);
  for (unsigned statement : active.set_bits())
    for (unsigned slot : loop.getUsedSlots(statement))
      last[slot] = statement;
  SmallVector<ChannelUserOpInterface> acquired(numSlots);
  for (unsigned statement : active.set_bits()) {
    Block &body = loop.getBodies()[statement].front();
    SmallVector<unsigned> used = loop.getUsedSlots(statement);
    IRMapping mapping;
    mapping.map(body.getArgument(0),
                builder.createOrFold<arith::SubIOp>(
                    step, constant(loop.getSkews()[statement])));
    for (auto [index, slot] : llvm::enumerate(used)) {
      unsigned number = loop.getSlotChannels()[slot];
      Value channel = loop.getChannels()[number];
      if (!acquired[slot]) {
        acquired[slot] = cast<ChannelUserOpInterface>(
            ChannelAcquireOp::create(builder, channel, cursors[number],
                                     loop.getRole())
                .getOperation());
        cursors[number] =
            CursorAdvanceOp::create(builder, cursors[number], channel);
      }
      mapping.map(body.getArgument(2 * index + 1),
                  acquired[slot].getSlotIndex());
      mapping.map(body.getArgument(2 * index + 2),
                  acquired[slot].getMadeHandle());
    }
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    ++summary.copies;
    for (unsigned slot : used)
      if (last[slot] == int(statement))
        ChannelReleaseOp::create(
            builder, loop.getChannels()[loop.getSlotChannels()[slot]],
            acquired[slot].getMadeHandle(), loop.getRole());
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
  for (const IssuePhase &phase : phases)
    cursors = emitPhase(phase, std::move(cursors));
  loop.replaceAllUsesWith(cursors);
  loop.erase();
  return summary;
}

IssueLoopSummary attn::expandIssueLoop(IssueLoopOp loop) {
  return IssueExpander(loop).run();
}
