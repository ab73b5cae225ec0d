//===- ChannelProgram.cpp - What partitions do about channels -------------===//

#include "ChannelProgram.h"
#include "attn/Analysis/Flow/RegionPaths.h"

using namespace mlir;
using namespace mlir::attn;
using StepKind = ChannelStep::Kind;

int64_t ChannelProgram::getDepth(unsigned channel) const {
  return cast<ChannelType>(getChannel(channel).getResult().getType())
      .getDepth();
}

int64_t ChannelProgram::getClusterSize() const {
  gpu::GPUFuncOp kernel = analysis.getKernel();
  std::optional<ArrayRef<int32_t>> size = kernel.getKnownClusterSize();
  return size ? countLaunched(*size) : 1;
}

std::string ChannelProgram::describe(const PartitionProgram &partition) {
  return ("partition '" + partition.name + "'").str();
}

bool ChannelProgram::usesChannels(Operation *op) const {
  return users.contains(op);
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// The parts of a token or of an acquire, as bits.
static unsigned getParts(const Owner &owner) {
  if (owner.parts.empty())
    return 1;
  if (owner.part == Owner::kOwnPart)
    return (1u << owner.parts.size()) - 1;
  return 1u << owner.part;
}

std::optional<ChannelNote> ChannelProgram::buildUser(ChannelUserOpInterface op,
                                                     Steps &steps) {
  ChannelStep step;
  step.op = op;
  auto find = [&](Value token) {
    const Owner &owner = analysis.getOwners().find(token)->second;
    auto channel = analysis.getChannels().find(owner.channel);
    step.place.channel = channel - analysis.getChannels().begin();
    step.place.role = owner.role;
    step.place.parts = getParts(owner);
    step.token = token;
  };
  switch (op.getChannelUse()) {
  case ChannelUse::Acquire:
    step.kind = StepKind::Acquire;
    find(op.getMadeHandle());
    break;
  case ChannelUse::Release:
    step.kind = StepKind::Release;
    find(op.getUsedHandle()->get());
    break;
  case ChannelUse::Split:
  case ChannelUse::Join:
    for (Value operand : op->getOperands())
      if (isa<TokenType>(operand.getType()))
        step.passes.push_back(
            {operand, SmallVector<Value, 2>(op->getResults())});
    break;
  default:
    return std::nullopt;
  }
  steps.push_back(std::move(step));
  return std::nullopt;
}

/// What the operands of `from` hand on to block arguments of `region`, or
/// behind the op around it if that is null.
static void addPasses(Operation *from, Region *region, const HandleFlow &flow,
                      std::vector<ChannelStep> &steps) {
  ChannelStep step;
  step.op = from;
  for (OpOperand &operand : from->getOpOperands()) {
    auto targets = flow.find(&operand);
    if (targets == flow.end() || !isa<TokenType>(operand.get().getType()))
      continue;
    SmallVector<Value, 2> received;
    for (Value target : targets->second) {
      auto argument = dyn_cast<BlockArgument>(target);
      Region *parent = argument ? argument.getOwner()->getParent() : nullptr;
      if (parent == region)
        received.push_back(target);
    }
    if (!received.empty())
      step.passes.push_back({operand.get(), std::move(received)});
  }
  if (!step.passes.empty())
    steps.push_back(std::move(step));
}

std::optional<ChannelNote>
ChannelProgram::buildRegions(Operation &op, Steps &steps,
                             const HandleFlow &flow) {
  ChannelStep step;
  step.op = &op;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (loop.getUnsignedCmp())
      return ChannelNote{&op, "a loop over channels counts without a sign"};
    step.kind = StepKind::Loop;
    step.lower = terms.get(loop.getLowerBound());
    step.upper = terms.get(loop.getUpperBound());
    step.step = terms.get(loop.getStep());
    step.counter = terms.makeLeaf(loop.getInductionVar());
    addPasses(&op, &loop.getRegion(), flow, steps);
    addPasses(&op, nullptr, flow, steps);
    if (auto note = build(*loop.getBody(), step.body, flow))
      return note;
    Operation *yield = loop.getBody()->getTerminator();
    addPasses(yield, &loop.getRegion(), flow, step.body);
    addPasses(yield, nullptr, flow, step.body);
    steps.push_back(std::move(step));
    return std::nullopt;
  }
  if (runsInSomeThreads(&op)) {
    addPasses(&op, &op.getRegion(0), flow, steps);
    Block &block = op.getRegion(0).front();
    if (auto note = build(block, steps, flow))
      return note;
    addPasses(block.getTerminator(), nullptr, flow, steps);
    return std::nullopt;
  }
  if (isa<scf::WhileOp>(op))
    return ChannelNote{&op, "it is not shown that all partitions go through "
                            "the same tiles"};
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch)
    return ChannelNote{&op, "a condition that decides over channels is not of "
                            "numbers"};
  step.kind = StepKind::If;
  step.condition = terms.get(branch.getCondition());
  for (auto [region, taken] :
       {std::pair(&branch.getThenRegion(), &step.body),
        std::pair(&branch.getElseRegion(), &step.otherwise)}) {
    if (region->empty())
      continue;
    if (auto note = build(region->front(), *taken, flow))
      return note;
    addPasses(region->front().getTerminator(), nullptr, flow, *taken);
  }
  steps.push_back(std::move(step));
  return std::nullopt;
}

/// Loops and branches that neither use channels nor hand tokens on are left
/// out.
static bool handsTokensOn(Operation &op) {
  auto isToken = [](Type type) { return isa<TokenType>(type); };
  return llvm::any_of(op.getResultTypes(), isToken);
}

std::optional<ChannelNote> ChannelProgram::build(Operation &op, Steps &steps,
                                                 const HandleFlow &flow) {
  if (auto user = dyn_cast<ChannelUserOpInterface>(op))
    return buildUser(user, steps);
  bool takesPart = usesChannels(&op) || handsTokensOn(op);
  if (op.getNumRegions() == 0 || !takesPart)
    return std::nullopt;
  return buildRegions(op, steps, flow);
}

std::optional<ChannelNote> ChannelProgram::build(Block &block, Steps &steps,
                                                 const HandleFlow &flow) {
  for (Operation &op : block)
    if (auto note = build(op, steps, flow))
      return note;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

/// The only outermost loop of a partition that acquires, if there is one.
static Operation *findTileLoop(Block &block,
                               llvm::function_ref<bool(Operation *)> uses) {
  Operation *found = nullptr;
  for (Operation &op : block) {
    Operation *loop = nullptr;
    if (op.getNumRegions() == 0 || !uses(&op))
      continue;
    if (isa<scf::ForOp, scf::WhileOp>(op))
      loop = &op;
    else if (runsInSomeThreads(&op))
      loop = findTileLoop(op.getRegion(0).front(), uses);
    if (loop && found)
      return nullptr;
    if (loop)
      found = loop;
  }
  return found;
}

/// Makes the tiles of a partition those of the ones before it; false if they
/// are not shown to be.
bool ChannelProgram::bindTiles(Operation *op) {
  bool isFirst = !tiles;
  if (isFirst)
    tiles.emplace().op = op;
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    if (loop.getUnsignedCmp())
      return false;
    TermId bounds[] = {terms.get(loop.getLowerBound()),
                       terms.get(loop.getUpperBound()),
                       terms.get(loop.getStep())};
    if (isFirst) {
      tiles->lower = bounds[0];
      tiles->upper = bounds[1];
      tiles->step = bounds[2];
      tiles->tile.push_back(terms.makeLeaf(loop.getInductionVar()));
      return true;
    }
    if (tiles->condition || tiles->lower != bounds[0] ||
        tiles->upper != bounds[1] || tiles->step != bounds[2])
      return false;
    terms.bind(loop.getInductionVar(), tiles->tile.front());
    return true;
  }
  return bindWhile(cast<scf::WhileOp>(op), isFirst);
}

/// Partitions begin with the same numbers, go on while the same holds of them,
/// and compute the next ones alike, of them and of what all partitions have.
bool ChannelProgram::bindWhile(scf::WhileOp loop, bool isFirst) {
  auto condition =
      cast<scf::ConditionOp>(loop.getBeforeBody()->getTerminator());
  // Numbers among the values that are carried, in their order.
  unsigned count = 0;
  for (auto [index, argument] : llvm::enumerate(loop.getBeforeArguments())) {
    if (!argument.getType().isIntOrIndex())
      continue;
    TermId first = terms.get(loop.getInits()[index]);
    if (isFirst) {
      tiles->tile.push_back(terms.makeLeaf(argument));
      tiles->first.push_back(first);
    } else if (count >= tiles->tile.size() || tiles->first[count] != first) {
      return false;
    }
    terms.bind(argument, tiles->tile[count++]);
  }
  for (auto [passed, argument] :
       llvm::zip_equal(condition.getArgs(), loop.getAfterArguments()))
    if (argument.getType().isIntOrIndex())
      terms.bind(argument, terms.get(passed));
  TermId isTile = terms.get(condition.getCondition());
  if (isFirst)
    tiles->condition = isTile;
  if (tiles->condition != isTile || count != tiles->tile.size())
    return false;
  SmallVector<TermId, 2> next;
  for (Value yielded : loop.getYieldOp().getOperands())
    if (yielded.getType().isIntOrIndex())
      next.push_back(terms.get(yielded));
  if (isFirst)
    tiles->next = next;
  return tiles->next == next;
}

void ChannelProgram::findTileLoops(WarpSpecializeOp partitionsOp) {
  auto uses = [&](Operation *op) { return usesChannels(op); };
  bool isTiled = true;
  for (Region &region : partitionsOp->getRegions()) {
    if (region.empty() || !llvm::any_of(region.front(), [&](Operation &op) {
          return usesChannels(&op);
        }))
      continue;
    Operation *loop = findTileLoop(region.front(), uses);
    tileLoops[&region] = loop;
    isTiled = isTiled && loop;
  }
  for (Region &region : partitionsOp->getRegions())
    if (isTiled && tileLoops.contains(&region))
      isTiled = bindTiles(tileLoops.lookup(&region));
  if (isTiled)
    return;
  tiles.reset();
  for (auto &[region, loop] : tileLoops)
    loop = nullptr;
}

/// What a loop over tiles does about one of them.
std::optional<ChannelNote> ChannelProgram::buildTile(Operation *loop,
                                                     Steps &steps,
                                                     const HandleFlow &flow) {
  Region &first = loop->getRegion(0), &body = loop->getRegions().back();
  if (&first != &body) {
    if (llvm::any_of(first.front(),
                     [&](Operation &op) { return usesChannels(&op); }))
      return ChannelNote{loop, "channels are used where it is decided whether "
                               "there is a tile"};
    addPasses(first.front().getTerminator(), &body, flow, steps);
  }
  if (auto note = build(body.front(), steps, flow))
    return note;
  addPasses(body.front().getTerminator(), &first, flow, steps);
  return std::nullopt;
}

/// A partition, with what its loop over tiles does by itself.
std::optional<ChannelNote> ChannelProgram::build(Block &block,
                                                 PartitionProgram &program,
                                                 Operation *tileLoop,
                                                 const HandleFlow &flow) {
  if (!tileLoop)
    return build(block, program.tile, flow);
  bool isBehind = false;
  for (Operation &op : block) {
    if (&op == tileLoop) {
      if (auto note = buildTile(tileLoop, program.tile, flow))
        return note;
      isBehind = true;
    } else if (op.isProperAncestor(tileLoop)) {
      if (auto note = build(op.getRegion(0).front(), program, tileLoop, flow))
        return note;
      isBehind = true;
    } else if (auto note =
                   build(op, isBehind ? program.after : program.before, flow)) {
      return note;
    }
  }
  return std::nullopt;
}

std::optional<ChannelNote> ChannelProgram::build() {
  WarpSpecializeOp partitionsOp = analysis.getPartitions();
  gpu::GPUFuncOp kernel = analysis.getKernel();
  kernel.walk([&](ChannelUserOpInterface op) {
    ChannelUse use = op.getChannelUse();
    if (use != ChannelUse::Acquire && use != ChannelUse::Release)
      return;
    for (Operation *at = op; at != kernel && users.insert(at).second;)
      at = at->getParentOp();
  });
  findTileLoops(partitionsOp);
  HandleFlow flow = collectHandleFlow(kernel);
  for (auto [index, region] : llvm::enumerate(partitionsOp->getRegions())) {
    if (!tileLoops.contains(&region))
      continue;
    PartitionProgram &program = partitions.emplace_back();
    program.index = index;
    program.name = cast<StringAttr>(partitionsOp.getNames()[index]).getValue();
    if (auto note =
            build(region.front(), program, tileLoops.lookup(&region), flow))
      return note;
  }
  return std::nullopt;
}
