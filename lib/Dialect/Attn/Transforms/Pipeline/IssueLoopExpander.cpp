//===- IssueLoopExpander.cpp - attn.issue_loop as loops -------------------===//
//
// A statement s with n iterations runs in the steps skew <= t < skew + n. In a
// step it has not begun, runs, or has ended; statements begin at steps that are
// known and end at steps that may not be. Steps between two skews with the same
// statements ended are a phase, whose bounds follow from the trips: behind all
// that have ended, in front of the end of all that run. Phases in which more
// has ended come later; of two of which neither has ended all that the other
// has at least one is empty. So each phase becomes a loop in this order, none
// of which asks what runs (docs/Rationale/Pipeline.md).
//
// Where a slot is held there is one phase, whose loop carries the slot's token
// behind the cursors. Tokens of slots that span iterations stand between both.
//
// Where last iterations are left to the next loop, step 0 has those of the loop
// before beside the first ones of this loop: one of a few sets, told apart by
// which of both loops' trips are 0, so that step 0 becomes branches. Then all
// statements run in the steps 1 <= t < n.
//
// Ends are not independent: of statements with the same trips the one with the
// larger skew ends later, and with `rising` those of later operands end no
// earlier.
//
//===----------------------------------------------------------------------===//

#include "IssueLoopExpander.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
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

/// A statement's turn in a step.
struct IssueTurn {
  unsigned statement;
  Value iteration;
  ValueRange values;
  /// Whether it is the last one, where the loop says so.
  bool isLast = false;
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
  SmallVector<Value> emitPhases(SmallVector<Value> cursors);
  /// The first step of a loop that leaves last iterations to the next one:
  /// statements `active` so far, and of those whose turn depends on a number of
  /// trips from `undecided` on those that it is not 0 for.
  SmallVector<Value> emitFirstStep(ArrayRef<std::pair<Value, bool>> undecided,
                                   llvm::SmallBitVector active,
                                   SmallVector<Value> cursors);
  /// The same, and the other steps of the one number of trips behind it, with
  /// what is held and what spans iterations.
  SmallVector<Value> emitSpanningLoop();
  /// The steps behind the first one, of which the last one ends spans.
  SmallVector<Value> emitSpannedSteps(SmallVector<Value> cursors);
  /// A loop of steps from `begin` up to `end`, and the values behind it.
  SmallVector<Value>
  emitLoop(Value begin, Value end, ValueRange cursors,
           function_ref<SmallVector<Value>(Value, SmallVector<Value>)> emit);
  /// What `emit` makes if `condition` is true of the trips, else what `other`
  /// does; one of both where they are known.
  SmallVector<Value> emitIf(arith::CmpIPredicate predicate, Value trips,
                            int64_t bound, TypeRange types,
                            function_ref<SmallVector<Value>()> emit,
                            function_ref<SmallVector<Value>()> other);
  void emitRelease(unsigned slot, Value token) {
    ChannelReleaseOp::create(builder,
                             loop.getChannels()[loop.getSlotChannels()[slot]],
                             token, loop.getRole());
  }
  /// The parts of a slot that statements name, in their order; one without a
  /// name if there are none.
  SmallVector<StringRef> collectParts(unsigned slot);
  /// The right to a part of a slot, or to all of it if that has no name.
  Value acquire(unsigned slot, StringRef part, Value cursor,
                SlotRights &rights);
  /// The statements' turns in a step that is not the first one of a loop that
  /// leaves last iterations.
  SmallVector<IssueTurn> getTurns(const llvm::SmallBitVector &active,
                                  Value step);
  /// What a step does beside its statements' turns.
  enum class StepKind { Opens, Other, Closes };
  /// One step; the cursors behind it, and the tokens of what spans iterations
  /// and of what is held.
  SmallVector<Value> emitStep(ArrayRef<IssueTurn> turns,
                              SmallVector<Value> cursors,
                              StepKind kind = StepKind::Other);
  /// The types of the cursors, and of the tokens of what spans iterations and
  /// of what is held if there are any.
  SmallVector<Type> getCarriedTypes(bool hasTokens);

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
      bool endsNoLater = (loop.getSkews()[early] <= loop.getSkews()[late] ||
                          loop.leavesLast()) &&
                         (distance == 0 || (loop.getRising() && distance > 0));
      if (endsNoLater && !ended.test(early))
        return false;
    }
  return true;
}

void IssueExpander::collectPhases() {
  unsigned count = loop.getBodies().size();
  // Behind the first step of a loop that leaves last iterations all statements
  // run.
  SmallVector<int64_t> starts(loop.getSkews());
  if (loop.leavesLast())
    starts = {1};
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
  if (loop.leavesLast())
    return trips;
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

SmallVector<IssueTurn>
IssueExpander::getTurns(const llvm::SmallBitVector &active, Value step) {
  SmallVector<IssueTurn> turns;
  for (unsigned statement : active.set_bits())
    turns.push_back({statement,
                     builder.createOrFold<arith::SubIOp>(
                         step, constant(loop.getSkews()[statement])),
                     loop.getValues()});
  return turns;
}

SmallVector<Value> IssueExpander::emitStep(ArrayRef<IssueTurn> turns,
                                           SmallVector<Value> cursors,
                                           StepKind kind) {
  unsigned numSlots = loop.getSlots().size();
  // The last statement of the step that uses each slot.
  SmallVector<int> last(numSlots, -1);
  for (const IssueTurn &turn : turns)
    for (unsigned slot : loop.getUsedSlots(turn.statement))
      last[slot] = turn.statement;
  SmallVector<SlotRights> rights(numSlots);
  SmallVector<Value> at(numSlots);
  auto take = [&](unsigned slot, StringRef part) {
    unsigned number = loop.getSlotChannels()[slot];
    bool isNew = !at[slot];
    if (isNew)
      at[slot] = cursors[number];
    Value token = acquire(slot, part, at[slot], rights[slot]);
    if (isNew)
      cursors[number] = CursorAdvanceOp::create(builder, cursors[number],
                                                loop.getChannels()[number]);
    return token;
  };
  // What the step before handed over.
  std::optional<unsigned> heldSlot = loop.getHeldSlot();
  SmallVector<IssueLoopOp::Span> spans = loop.getSpans();
  ArrayRef<Value> tokens =
      ArrayRef(cursors).drop_front(loop.getChannels().size());
  SmallVector<Value> spanned(spans.size());
  if (kind != StepKind::Opens)
    llvm::copy(tokens.take_front(tokens.empty() ? 0 : spans.size()),
               spanned.begin());
  Value held = tokens.size() > spans.size() ? tokens.back() : Value();
  cursors.truncate(loop.getChannels().size());
  for (const IssueTurn &turn : turns) {
    unsigned statement = turn.statement;
    for (auto [span, token] : llvm::zip(spans, spanned))
      if (kind == StepKind::Opens && span.opening == statement)
        token = take(span.slot, /*part=*/"");
    SmallVector<Value> arguments = {turn.iteration};
    SmallVector<unsigned> used = loop.getUsedSlots(statement);
    for (auto [slot, part] : llvm::zip(used, loop.getUsedParts(statement))) {
      Value token = take(slot, part);
      arguments.append({rights[slot].acquires.front().getSlotIndex(), token});
    }
    llvm::append_range(arguments, turn.values);
    SmallVector<std::pair<unsigned, Value>> ended;
    if (turn.isLast)
      for (unsigned slot : loop.getEndedSlots(statement))
        ended.push_back({slot, take(slot, /*part=*/"")});
    Block &body = loop.getBodies()[statement].front();
    IRMapping mapping;
    mapping.map(body.getArguments(), arguments);
    for (Operation &op : body.without_terminator())
      builder.clone(op, mapping);
    ++summary.copies;
    for (auto [slot, token] : ended)
      emitRelease(slot, token);
    if (held && loop.getReleasingStatement() == statement)
      emitRelease(*heldSlot, std::exchange(held, Value()));
    for (unsigned slot : used) {
      if (last[slot] != int(statement))
        continue;
      Value token = acquire(slot, /*part=*/"", at[slot], rights[slot]);
      if (slot == heldSlot)
        held = token;
      else
        emitRelease(slot, token);
    }
    for (auto [span, token] : llvm::zip(spans, spanned))
      if (kind == StepKind::Closes && span.closing == statement)
        emitRelease(span.slot, std::exchange(token, Value()));
  }
  llvm::copy_if(spanned, std::back_inserter(cursors),
                [](Value token) { return bool(token); });
  if (held)
    cursors.push_back(held);
  return cursors;
}

/// ptxas makes straight code of few known trips, whose addresses and
/// descriptors do not fit the registers of a thread that issues. The attribute
/// is that of the branch that a loop becomes.
static void keepRolled(scf::ForOp loop) {
  Builder builder(loop.getContext());
  auto unroll = LLVM::LoopUnrollAttr::get(loop.getContext(),
                                          /*disable=*/builder.getBoolAttr(true),
                                          {}, {}, {}, {}, {}, {});
  auto annotation =
      LLVM::LoopAnnotationAttr::get(loop.getContext(), {}, {}, {}, unroll, {},
                                    {}, {}, {}, {}, {}, {}, {}, {}, {}, {});
  OperationName branch(LLVM::BrOp::getOperationName(), loop.getContext());
  loop->setDiscardableAttr(LLVM::BrOp::getLoopAnnotationAttrName(branch),
                           annotation);
}

SmallVector<Value> IssueExpander::emitLoop(
    Value begin, Value end, ValueRange cursors,
    function_ref<SmallVector<Value>(Value, SmallVector<Value>)> emit) {
  ++summary.loops;
  auto made = scf::ForOp::create(
      builder, begin, end, constant(1), cursors,
      [&](OpBuilder &nested, Location, Value step, ValueRange carried) {
        OpBuilder::InsertionGuard guard(builder);
        builder.setInsertionPointToStart(nested.getInsertionBlock());
        scf::YieldOp::create(builder, emit(step, llvm::to_vector(carried)));
      });
  // Those of products are the ones with many descriptors.
  auto isProduct = [](ProductOpInterface) { return WalkResult::interrupt(); };
  if (loop.walk(isProduct).wasInterrupted())
    keepRolled(made);
  return llvm::to_vector(ValueRange(made.getResults()));
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
      return emitStep(getTurns(phase.active, begin), std::move(cursors));
  }
  return emitLoop(
      begin, end, cursors, [&](Value step, SmallVector<Value> carried) {
        return emitStep(getTurns(phase.active, step), std::move(carried));
      });
}

SmallVector<Value> IssueExpander::emitPhases(SmallVector<Value> cursors) {
  collectPhases();
  for (const IssuePhase &phase : phases)
    cursors = emitPhase(phase, std::move(cursors));
  return cursors;
}

//===----------------------------------------------------------------------===//
// Loops that leave last iterations to the next one
//===----------------------------------------------------------------------===//

SmallVector<Value>
IssueExpander::emitIf(arith::CmpIPredicate predicate, Value trips,
                      int64_t bound, TypeRange types,
                      function_ref<SmallVector<Value>()> emit,
                      function_ref<SmallVector<Value>()> other) {
  Value condition =
      builder.createOrFold<arith::CmpIOp>(predicate, trips, constant(bound));
  if (APInt known; matchPattern(condition, m_ConstantInt(&known)))
    return known.isZero() ? other() : emit();
  auto branch = scf::IfOp::create(builder, types, condition,
                                  /*withElseRegion=*/true);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(branch.thenBlock());
  scf::YieldOp::create(builder, emit());
  builder.setInsertionPointToStart(branch.elseBlock());
  scf::YieldOp::create(builder, other());
  return llvm::to_vector(ValueRange(branch.getResults()));
}

SmallVector<Value>
IssueExpander::emitFirstStep(ArrayRef<std::pair<Value, bool>> undecided,
                             llvm::SmallBitVector active,
                             SmallVector<Value> cursors) {
  if (undecided.empty()) {
    SmallVector<IssueTurn> turns;
    for (unsigned statement : active.set_bits()) {
      bool isLeft = loop.getSkews()[statement] == 1;
      Value iteration = constant(0);
      if (isLeft)
        iteration = builder.createOrFold<arith::SubIOp>(
            loop.getLeftTrips()[loop.getCounts()[statement]], constant(1));
      turns.push_back({statement, iteration,
                       isLeft ? loop.getLeftValues() : loop.getValues(),
                       isLeft});
    }
    return emitStep(turns, std::move(cursors), StepKind::Opens);
  }
  auto [trips, isLeft] = undecided.front();
  llvm::SmallBitVector more = active;
  for (unsigned statement = 0; statement < active.size(); ++statement)
    if ((loop.getSkews()[statement] == 1) == isLeft &&
        (isLeft ? loop.getLeftTrips()
                : loop.getTrips())[loop.getCounts()[statement]] == trips)
      more.set(statement);
  // What is held and what spans iterations begins with the loop's own.
  return emitIf(
      arith::CmpIPredicate::sgt, trips, 0,
      getCarriedTypes(/*hasTokens=*/isLeft && active.any()),
      [&] { return emitFirstStep(undecided.drop_front(), more, cursors); },
      [&] { return emitFirstStep(undecided.drop_front(), active, cursors); });
}

SmallVector<Type> IssueExpander::getCarriedTypes(bool hasTokens) {
  SmallVector<Type> types(loop.getChannels().size(),
                          CursorType::get(builder.getContext()));
  if (hasTokens)
    types.append(loop.getSpans().size() + (loop.getHeldSlot() ? 1 : 0),
                 TokenType::get(builder.getContext()));
  return types;
}

SmallVector<Value> IssueExpander::emitSpannedSteps(SmallVector<Value> cursors) {
  Value last =
      builder.createOrFold<arith::SubIOp>(loop.getTrips().front(), constant(1));
  llvm::SmallBitVector all(loop.getBodies().size(), true);
  cursors = emitLoop(constant(1), last, cursors,
                     [&](Value step, SmallVector<Value> carried) {
                       return emitStep(getTurns(all, step), std::move(carried));
                     });
  return emitStep(getTurns(all, last), std::move(cursors), StepKind::Closes);
}

SmallVector<Value> IssueExpander::emitSpanningLoop() {
  Value trips = loop.getTrips().front();
  std::pair<Value, bool> left = {loop.getLeftTrips().front(), true};
  llvm::SmallBitVector none(loop.getBodies().size()), first = none;
  for (unsigned statement = 0; statement < first.size(); ++statement)
    if (loop.getSkews()[statement] == 0)
      first.set(statement);
  SmallVector<Value> cursors(loop.getCursors());
  SmallVector<IssueLoopOp::Span> spans = loop.getSpans();
  // Behind the last step spans have ended.
  auto closeAll = [&](SmallVector<Value> next) {
    auto token = next.begin() + cursors.size();
    for (const IssueLoopOp::Span &span : spans)
      emitRelease(span.slot, *token++);
    next.erase(next.begin() + cursors.size(), token);
    return next;
  };
  SmallVector<Type> types = getCarriedTypes(/*hasTokens=*/false),
                    heldTypes = types;
  if (loop.getHeldSlot())
    heldTypes.push_back(TokenType::get(builder.getContext()));
  auto emitSteps = [&] {
    SmallVector<Value> next = emitFirstStep(left, first, cursors);
    next = emitIf(
        arith::CmpIPredicate::sgt, trips, 1, heldTypes,
        [&] { return emitSpannedSteps(next); }, [&] { return closeAll(next); });
    if (std::optional<unsigned> held = loop.getHeldSlot())
      emitRelease(*held, next.pop_back_val());
    return next;
  };
  return emitIf(arith::CmpIPredicate::sgt, trips, 0, types, emitSteps,
                [&] { return emitFirstStep(left, none, cursors); });
}

IssueLoopSummary IssueExpander::run() {
  summary.statements = loop.getBodies().size();
  SmallVector<Value> cursors(loop.getCursors());
  if (loop.getHeld())
    cursors.push_back(loop.getHeld());
  if (!loop.leavesLast()) {
    cursors = emitPhases(std::move(cursors));
  } else if (loop.getHeldSlot() || loop.getSpanning()) {
    cursors = emitSpanningLoop();
  } else {
    SmallVector<std::pair<Value, bool>> undecided;
    for (auto [count, skew] : llvm::zip(loop.getCounts(), loop.getSkews())) {
      bool isLeft = skew == 1;
      std::pair<Value, bool> each = {
          isLeft ? loop.getLeftTrips()[count] : loop.getTrips()[count], isLeft};
      if (!llvm::is_contained(undecided, each))
        undecided.push_back(each);
    }
    cursors =
        emitFirstStep(undecided, llvm::SmallBitVector(loop.getBodies().size()),
                      std::move(cursors));
    cursors = emitPhases(std::move(cursors));
  }
  loop.replaceAllUsesWith(cursors);
  loop.erase();
  return summary;
}

IssueLoopSummary attn::expandIssueLoop(IssueLoopOp loop) {
  return IssueExpander(loop).run();
}
