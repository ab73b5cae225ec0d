//===- ChannelLicence.cpp - Accesses through held tokens ------------------===//
//
// Each partition is followed along all of its paths, loops until nothing new
// comes up. A state says of which acquires tokens and indices are, which of
// these are held, and which accesses of engines are still under way.
//
//===----------------------------------------------------------------------===//

#include "ChannelLicence.h"
#include "LicenceState.h"
#include "attn/Analysis/Flow/RegionPaths.h"
#include "attn/Analysis/Memory/SharedAccess.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace mlir::attn;

/// States at one place that are told apart.
static constexpr unsigned kMaxStates = 256;
/// Groups under way.
static constexpr unsigned kMaxGroups = 12;
/// Ops of a partition, each as often as it is come to with a state.
static constexpr unsigned kMaxVisits = 100000;

namespace {

using States = std::vector<LicenceState>;

class LicenceCheck {
public:
  LicenceCheck(const ChannelAnalysis &analysis, ChannelReport &report);
  void run();

private:
  // Paths.
  States visit(Block &block, States states);
  States visitOp(Operation &op, States states);
  States visitRegions(Operation &op, States states);
  States visitLoop(Operation &op, States states);
  void pass(LicenceState &state, Operation *from, Region *to, Block *leaves);
  void addState(States &states, LicenceState state);

  // Steps.
  void visitUser(ChannelUserOpInterface op, LicenceState &state);
  void visitRelease(ChannelUserOpInterface op, LicenceState &state);
  void visitFill(ChannelUserOpInterface op, LicenceState &state);
  void visitAccesses(Operation &op, LicenceState &state);
  void visitAsync(AsyncOpInterface op, LicenceState &state,
                  ArrayRef<unsigned> grants);
  std::optional<unsigned> visitAccess(OpOperand &operand, LicenceState &state);

  // What is wrong.
  void leaveOut(Operation *op, const Twine &text);
  ChannelWitness &fail(Operation *op, const Twine &text);

  unsigned getNumber(Value value);
  SmallVector<Right, 1> getRights(const LicenceState &state, Value value);
  unsigned getChannel(const Grant &grant) const;
  std::string describe(const Grant &grant) const;

  const ChannelAnalysis &analysis;
  ChannelReport &report;
  /// Of tokens and numbers.
  DenseMap<OpOperand *, SmallVector<Value>> flow;
  DenseSet<Operation *> interesting;
  DenseMap<Value, unsigned> numbers;
  std::vector<Value> values;
  unsigned partition = 0;
  /// In this partition; a loop in a loop is followed anew with each state.
  unsigned numVisits = 0;
  BufferAccesses buffers;
  BufferRings ringOf;
};

} // namespace

/// The buffer that is allocated, behind views, and the slot among these.
static std::pair<Value, SlotOp> findMemory(Value buffer) {
  SlotOp slot;
  while (auto view = buffer.getDefiningOp<ViewLikeOpInterface>()) {
    if (auto found = dyn_cast<SlotOp>(*view))
      slot = found;
    buffer = view.getViewSource();
  }
  return {buffer, slot};
}

LicenceCheck::LicenceCheck(const ChannelAnalysis &analysis,
                           ChannelReport &report)
    : analysis(analysis), report(report) {
  gpu::GPUFuncOp kernel = analysis.getKernel();
  kernel.walk([&](RegionBranchOpInterface op) {
    forEachPassedOn(op, [&](OpOperand &from, ArrayRef<Value> targets) {
      Type type = from.get().getType();
      if (isa<TokenType>(type) || type.isInteger(32))
        flow[&from].assign(targets.begin(), targets.end());
    });
  });
  kernel.walk([&](Operation *op) {
    bool touches = llvm::any_of(
        op->getOperandTypes(), [](Type type) { return isa<BufferType>(type); });
    if (!touches && !isa<ChannelUserOpInterface, AsyncOpInterface>(op))
      return;
    for (Operation *at = op; at != kernel && interesting.insert(at).second;)
      at = at->getParentOp();
  });
}

ChannelWitness &LicenceCheck::fail(Operation *op, const Twine &text) {
  report.witness.emplace();
  report.witness->what = {op, text.str()};
  return *report.witness;
}

void LicenceCheck::leaveOut(Operation *op, const Twine &text) {
  if (!report.unsupported)
    report.unsupported = {op, text.str()};
}

unsigned LicenceCheck::getNumber(Value value) {
  auto [entry, isNew] = numbers.insert({value, values.size()});
  if (isNew)
    values.push_back(value);
  return entry->second;
}

SmallVector<Right, 1> LicenceCheck::getRights(const LicenceState &state,
                                              Value value) {
  auto found = state.rights.find(getNumber(value));
  return found == state.rights.end() ? SmallVector<Right, 1>() : found->second;
}

unsigned LicenceCheck::getChannel(const Grant &grant) const {
  auto acquire = cast<ChannelUserOpInterface>(grant.acquire);
  const Owner &owner =
      analysis.getOwners().find(acquire.getMadeHandle())->second;
  return analysis.getChannels().find(owner.channel) -
         analysis.getChannels().begin();
}

std::string LicenceCheck::describe(const Grant &grant) const {
  auto acquire = cast<ChannelUserOpInterface>(grant.acquire);
  Owner owner = analysis.getOwners().find(acquire.getMadeHandle())->second;
  return mlir::attn::describe(owner);
}

//===----------------------------------------------------------------------===//
// Paths
//===----------------------------------------------------------------------===//

void LicenceCheck::addState(States &states, LicenceState state) {
  state.tidy();
  if (llvm::is_contained(states, state))
    return;
  if (states.size() < kMaxStates)
    states.push_back(std::move(state));
  else
    leaveOut(analysis.getPartitions(),
             "paths of a partition differ in what it holds in more than " +
                 Twine(kMaxStates) + " ways");
}

/// Hands on what `from` passes to arguments of `to`, or behind the op around it
/// if that is null, and forgets the values of a block that is left.
void LicenceCheck::pass(LicenceState &state, Operation *from, Region *to,
                        Block *leaves) {
  SmallVector<std::pair<unsigned, SmallVector<Right, 1>>> passed;
  for (OpOperand &operand : from->getOpOperands()) {
    auto targets = flow.find(&operand);
    auto rights = state.rights.find(getNumber(operand.get()));
    if (targets == flow.end() || rights == state.rights.end())
      continue;
    for (Value target : targets->second) {
      auto argument = dyn_cast<BlockArgument>(target);
      if ((argument ? argument.getOwner()->getParent() : nullptr) == to)
        passed.push_back({getNumber(target), rights->second});
    }
  }
  for (auto entry = state.rights.begin();
       leaves && entry != state.rights.end();)
    entry = values[entry->first].getParentBlock() == leaves
                ? state.rights.erase(entry)
                : std::next(entry);
  for (auto &[target, rights] : passed)
    state.rights[target] = rights;
}

States LicenceCheck::visit(Block &block, States states) {
  for (Operation &op : block) {
    if (report.witness)
      return {};
    if (!interesting.contains(&op))
      continue;
    numVisits += states.size();
    if (numVisits > kMaxVisits) {
      leaveOut(analysis.getPartitions(), "to follow a partition takes more "
                                         "than " +
                                             Twine(kMaxVisits) + " steps");
      return {};
    }
    states = visitOp(op, std::move(states));
  }
  return states;
}

States LicenceCheck::visitOp(Operation &op, States states) {
  for (LicenceState &state : states) {
    if (auto user = dyn_cast<ChannelUserOpInterface>(op))
      visitUser(user, state);
    if (!report.witness)
      visitAccesses(op, state);
    if (report.witness)
      return {};
  }
  if (op.getNumRegions() == 0)
    return states;
  if (isSequentialLoop(&op) && isa<scf::ForOp, scf::WhileOp>(op))
    return visitLoop(op, std::move(states));
  return visitRegions(op, std::move(states));
}

/// Regions of which one runs, or none.
States LicenceCheck::visitRegions(Operation &op, States states) {
  if (!isBranch(&op)) {
    leaveOut(&op, "it is not known how often its regions run");
    return states;
  }
  States behind;
  if (maySkipRegions(&op))
    for (LicenceState state : states) {
      pass(state, &op, nullptr, nullptr);
      addState(behind, std::move(state));
    }
  for (Region &region : op.getRegions()) {
    if (region.empty())
      continue;
    States entered = states;
    for (LicenceState &state : entered)
      pass(state, &op, &region, nullptr);
    Block &block = region.front();
    for (LicenceState &state : visit(block, std::move(entered))) {
      pass(state, block.getTerminator(), nullptr, &block);
      addState(behind, std::move(state));
    }
  }
  return behind;
}

/// A loop: its last region is the body; what is in front of that decides
/// whether it goes on.
States LicenceCheck::visitLoop(Operation &op, States states) {
  Region &first = op.getRegion(0), &body = op.getRegions().back();
  States heads, behind;
  for (LicenceState &state : states) {
    LicenceState entered = state;
    pass(entered, &op, &first, nullptr);
    addState(heads, std::move(entered));
    if (&first != &body)
      continue;
    pass(state, &op, nullptr, nullptr);
    addState(behind, std::move(state));
  }
  for (size_t next = 0; next < heads.size(); ++next) {
    States inside = visit(first.front(), {heads[next]});
    for (LicenceState &state : inside) {
      LicenceState left = state;
      pass(left, first.front().getTerminator(), nullptr, &first.front());
      addState(behind, std::move(left));
      if (&first != &body)
        pass(state, first.front().getTerminator(), &body, &first.front());
    }
    if (&first != &body)
      inside = visit(body.front(), std::move(inside));
    for (LicenceState &state : inside) {
      pass(state, body.front().getTerminator(), &first, &body.front());
      addState(heads, std::move(state));
    }
  }
  return behind;
}

//===----------------------------------------------------------------------===//
// Channels
//===----------------------------------------------------------------------===//

void LicenceCheck::visitUser(ChannelUserOpInterface op, LicenceState &state) {
  switch (op.getChannelUse()) {
  case ChannelUse::Acquire: {
    const Owner &owner = analysis.getOwners().find(op.getMadeHandle())->second;
    unsigned parts = owner.parts.empty() || owner.part == Owner::kOwnPart
                         ? 1
                         : 1u << owner.part;
    unsigned grant = state.grants.size();
    state.grants.push_back({op, parts, nullptr});
    state.rights[getNumber(op.getMadeHandle())] = {{grant, parts}};
    if (Value index = op.getSlotIndex())
      state.rights[getNumber(index)] = {{grant, parts}};
    break;
  }
  case ChannelUse::Split: {
    // The slot is held until each part is released.
    auto whole = getRights(state, op.getUsedHandle()->get());
    for (auto [part, token] : llvm::enumerate(op->getResults())) {
      auto &rights = state.rights[getNumber(token)];
      rights.clear();
      for (const Right &right : whole) {
        rights.push_back({right.first, 1u << part});
        state.grants[right.first].held |= 1u << part;
      }
    }
    for (const Right &right : whole)
      state.grants[right.first].held = (1u << op->getNumResults()) - 1;
    break;
  }
  case ChannelUse::Join: {
    SmallVector<Right, 1> all;
    for (Value token : op->getOperands())
      if (isa<TokenType>(token.getType()))
        llvm::append_range(all, getRights(state, token));
    state.rights[getNumber(op.getMadeHandle())] = all;
    break;
  }
  case ChannelUse::Release:
    visitRelease(op, state);
    break;
  case ChannelUse::Fill:
    visitFill(op, state);
    break;
  default:
    break;
  }
}

/// Forgets the copies to the slot of `grant`, whose end its release tells.
static void forgetCopies(LicenceState &state, unsigned grant) {
  for (Group &group : state.groups)
    if (group.engine == &kCopyGroups)
      llvm::erase_if(group.accesses, [grant](const auto &access) {
        return access.first == grant;
      });
}

void LicenceCheck::visitRelease(ChannelUserOpInterface op,
                                LicenceState &state) {
  Value token = op.getUsedHandle()->get();
  const ChannelSignal &signal =
      analysis.getOwners().find(token)->second.getSignal();
  for (auto [grant, parts] : getRights(state, token)) {
    Grant &of = state.grants[grant];
    of.held &= ~parts;
    of.released = op;
    if (of.held != 0 || signal.countsBytes || signal.awaitsProducts)
      continue;
    if (signal.awaitsCopies) {
      forgetCopies(state, grant);
      continue;
    }
    for (const Group &group : state.groups)
      for (auto [accessed, access] : group.accesses) {
        if (accessed != grant)
          continue;
        ChannelWitness &witness = fail(op, describe(of) + " releases a slot " +
                                               group.engine->unfinished);
        witness.notes.push_back({access, group.engine->remedy.str()});
        return;
      }
  }
}

/// Bytes that are counted for one slot go to that slot.
void LicenceCheck::visitFill(ChannelUserOpInterface op, LicenceState &state) {
  auto rights = getRights(state, op.getUsedHandle()->get());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<BufferType>(operand.get().getType()) || rights.empty())
      continue;
    // A buffer that a load only reads is not its slot: numbers of rows.
    auto effects = dyn_cast<MemoryEffectOpInterface>(op.getOperation());
    if (effects &&
        !effects.getEffectOnValue<MemoryEffects::Write>(operand.get()))
      continue;
    SlotOp slot = findMemory(operand.get()).second;
    if (!slot)
      continue;
    auto ofSlot = getRights(state, slot.getIndex());
    bool isOther =
        !ofSlot.empty() && ofSlot.front().first != rights.front().first;
    if (!isOther)
      continue;
    ChannelWitness &witness =
        fail(op, "expected a load into the slot of its token, got the slot of "
                 "another acquire");
    witness.notes.push_back({state.grants[rights.front().first].acquire,
                             "the token is of this one"});
    witness.notes.push_back({state.grants[ofSlot.front().first].acquire,
                             "the slot is of this one"});
    return;
  }
}

//===----------------------------------------------------------------------===//
// Accesses
//===----------------------------------------------------------------------===//

static bool isAccess(OpOperand &operand) {
  auto effects = dyn_cast<MemoryEffectOpInterface>(operand.getOwner());
  if (!effects)
    return false;
  SmallVector<MemoryEffects::EffectInstance> instances;
  effects.getEffects(instances);
  return llvm::any_of(instances, [&](const auto &instance) {
    return instance.template getEffectValue<OpOperand *>() == &operand;
  });
}

/// The grant through whose slot an access goes, if it does.
std::optional<unsigned> LicenceCheck::visitAccess(OpOperand &operand,
                                                  LicenceState &state) {
  Operation *op = operand.getOwner();
  auto [memory, slot] = findMemory(operand.get());
  if (!memory.getDefiningOp())
    return std::nullopt;
  AccessInfo access{partition, op,
                    llvm::SmallBitVector(analysis.getChannels().size())};
  for (const Grant &grant : state.grants)
    if (grant.held != 0)
      access.held.set(getChannel(grant));
  SmallVector<Right, 1> rights;
  if (slot)
    rights = getRights(state, slot.getIndex());
  if (slot && rights.empty())
    access.elsewhere = slot.getIndex();
  // On all paths.
  auto &known = buffers[memory];
  auto same = llvm::find_if(
      known, [&](const AccessInfo &other) { return other.op == op; });
  if (same == known.end())
    known.push_back(access);
  else
    same->held &= access.held;
  if (rights.empty())
    return std::nullopt;
  ++report.accesses;
  const Grant &grant = state.grants[rights.front().first];
  unsigned channel = getChannel(grant);
  auto [ring, isNew] = ringOf.insert({memory, {channel, grant.acquire}});
  auto getChannelName = [&](unsigned number) {
    ChannelCreateOp create = (analysis.getChannels().begin() + number)->first;
    return "channel '" + create.getName().str() + "'";
  };
  if (ring->second.first != channel) {
    ChannelWitness &witness =
        fail(op, "expected slots of buffer '" + getMemoryName(memory) +
                     "' at positions of one channel, got " +
                     getChannelName(channel) + " here and " +
                     getChannelName(ring->second.first) + " elsewhere");
    witness.notes.push_back({grant.acquire, "the position is acquired here"});
    witness.notes.push_back(
        {ring->second.second, "a position of the other channel"});
  } else if (grant.held == 0) {
    ChannelWitness &witness =
        fail(op, "expected accesses to buffer '" + getMemoryName(memory) +
                     "' while its slot is held, got one after the release of " +
                     describe(grant));
    witness.notes.push_back({grant.acquire, "the slot is acquired here"});
    if (grant.released)
      witness.notes.push_back({grant.released, "and released here"});
  }
  return rights.front().first;
}

void LicenceCheck::visitAsync(AsyncOpInterface op, LicenceState &state,
                              ArrayRef<unsigned> grants) {
  const AsyncEngine *engine = &op.getAsyncEngine();
  // Accesses to tensor memory end before a signal: attn-insert-fences refuses
  // loads that are not awaited there, and places the waits for stores.
  if (engine->completion != AsyncEngine::Completion::Groups ||
      engine->isTensorCore)
    return;
  if (auto pending = op.getAwaitedGroups()) {
    int64_t left = *pending;
    for (unsigned next = state.groups.size(); next-- > 0;) {
      const Group &group = state.groups[next];
      if (group.engine == engine && group.isClosed && left-- <= 0)
        state.groups.erase(state.groups.begin() + next);
    }
    return;
  }
  auto isOpen = [&](const Group &group) {
    return group.engine == engine && !group.isClosed;
  };
  auto open = llvm::find_if(state.groups, isOpen);
  if (open == state.groups.end())
    open = state.groups.insert(open, Group{engine, false, {}});
  for (unsigned grant : grants)
    open->accesses.push_back({grant, op});
  open->isClosed = op.closesGroup();
  if (state.groups.size() <= kMaxGroups)
    return;
  if (!state.groups.front().accesses.empty())
    leaveOut(op, "more than " + Twine(kMaxGroups) + " groups are under way");
  state.groups.erase(state.groups.begin());
}

void LicenceCheck::visitAccesses(Operation &op, LicenceState &state) {
  SmallVector<unsigned> grants;
  for (OpOperand &operand : op.getOpOperands()) {
    if (!isa<BufferType>(operand.get().getType()) || !isAccess(operand))
      continue;
    if (auto grant = visitAccess(operand, state))
      grants.push_back(*grant);
    if (report.witness)
      return;
  }
  if (auto async = dyn_cast<AsyncOpInterface>(op))
    visitAsync(async, state, grants);
}

void LicenceCheck::run() {
  WarpSpecializeOp partitions = analysis.getPartitions();
  for (auto [index, region] : llvm::enumerate(partitions->getRegions())) {
    if (region.empty() || report.witness)
      continue;
    partition = index;
    numVisits = 0;
    visit(region.front(), {LicenceState()});
  }
  if (!report.witness)
    checkBuffers(analysis, buffers, ringOf, report);
}

void attn::checkLicence(const ChannelAnalysis &analysis,
                        ChannelReport &report) {
  LicenceCheck(analysis, report).run();
}
