//===- ChannelRuns.cpp - Runs of partitions about their channels ----------===//

#include "ChannelRuns.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::attn;
using StepKind = ChannelStep::Kind;

/// Events of a partition in one tile, and trips of a loop in it.
static constexpr unsigned kMaxEvents = 4000;
/// Trips of loops of all partitions in one tile, with those that have no event,
/// and in all tiles.
static constexpr unsigned kMaxTrips = 20000;
static constexpr unsigned kMaxTripsOfAll = 400000;
/// Kernels, and tiles of each, that are tried.
static constexpr unsigned kKernels = 24;
static constexpr unsigned kTiles = 16;

//===----------------------------------------------------------------------===//
// What is given
//===----------------------------------------------------------------------===//

void ChannelRuns::collectLeaves(TermId id) {
  if (!seen.insert(id).second)
    return;
  const Term &term = program.terms[id];
  if (term.kind == Term::Kind::Leaf)
    leaves.push_back(id);
  for (TermId operand : term.operands)
    collectLeaves(operand);
}

void ChannelRuns::collectLeaves(const std::vector<ChannelStep> &steps) {
  for (const ChannelStep &step : steps) {
    if (step.kind == StepKind::If)
      collectLeaves(step.condition);
    if (step.kind == StepKind::Loop)
      for (TermId bound : {step.lower, step.upper, step.step})
        collectLeaves(bound);
    collectLeaves(step.body);
    collectLeaves(step.otherwise);
  }
}

/// A number that `number` and `of` decide: all the same and small at first,
/// then such as lengths and offsets have.
static int64_t pick(unsigned number, TermId of) {
  static constexpr int64_t kNumbers[] = {
      0,  1,   2,   3,   4,   5,   7,   8,   16,  31,  33,   64,
      65, 127, 128, 129, 192, 256, 300, 384, 512, 640, 1024, 6};
  constexpr unsigned kSame = 7;
  if (number < kSame)
    return kNumbers[number];
  return kNumbers[mixNumbers(number, of) % std::size(kNumbers)];
}

/// Arguments and the place of the CTA.
void ChannelRuns::giveLeaves(TermValues &values, unsigned number) {
  for (TermId leaf : leaves) {
    Value origin = program.terms[leaf].origin;
    Operation *op = origin.getDefiningOp();
    int64_t given = pick(number, leaf);
    if (op && isa<gpu::GridDimOp>(op))
      given = program.getClusterSize() * (2 + number % 3);
    else if (op && isa<gpu::ClusterDimOp, gpu::ClusterDimBlocksOp>(op))
      given = program.getClusterSize();
    else if (op && isa<gpu::ClusterBlockIdOp>(op))
      given = number % program.getClusterSize();
    else if (op && isa<gpu::GPUDialect>(op->getDialect()))
      given = number % 2;
    values.set(leaf, limitToType(given, origin.getType()));
  }
  values.seed = number;
}

/// Trips of a loop; nothing if they have no number.
static std::optional<int64_t> countTrips(std::optional<int64_t> lower,
                                         std::optional<int64_t> upper,
                                         std::optional<int64_t> step) {
  int64_t range = 0;
  if (!lower || !upper || !step || *step <= 0 ||
      llvm::SubOverflow(*upper, *lower, range))
    return std::nullopt;
  return range <= 0 ? 0 : range / *step + (range % *step != 0);
}

/// A tile that the loop over tiles has; false if it has none.
bool ChannelRuns::giveTile(TermValues &values, unsigned number) {
  if (!program.tiles)
    return true;
  const TileLoop &tiles = *program.tiles;
  if (tiles.condition) {
    for (TermId term : tiles.tile)
      values.set(term,
                 limitToType(number < kTiles / 2 ? number : pick(number, term),
                             program.terms[term].origin.getType()));
    return values.get(*tiles.condition) == 1;
  }
  auto lower = values.get(tiles.lower), upper = values.get(tiles.upper),
       step = values.get(tiles.step);
  auto trips = countTrips(lower, upper, step);
  if (!trips || *trips == 0)
    return false;
  int64_t count = *trips;
  // All tiles if there are few, else some from all over.
  int64_t index = number;
  if (count > kTiles && llvm::MulOverflow(count, int64_t(number), index))
    return false;
  if (count > kTiles)
    index /= kTiles;
  if (index >= count)
    return false;
  values.set(tiles.tile.front(), *lower + index * *step);
  return true;
}

void ChannelRuns::collectLeaves() {
  for (const PartitionProgram &partition : program.partitions)
    for (const auto *steps :
         {&partition.before, &partition.tile, &partition.after})
      collectLeaves(*steps);
  if (!program.tiles)
    return;
  for (TermId term : program.tiles->first)
    collectLeaves(term);
  if (program.tiles->condition)
    collectLeaves(*program.tiles->condition);
  else
    for (TermId term :
         {program.tiles->lower, program.tiles->upper, program.tiles->step})
      collectLeaves(term);
}

std::optional<TermId> ChannelRuns::findLocal() {
  collectLeaves();
  auto local = llvm::find_if(
      leaves, [&](TermId leaf) { return program.terms[leaf].isLocal; });
  return local == leaves.end() ? std::nullopt : std::optional(*local);
}

std::vector<KernelSample> ChannelRuns::makeKernels() {
  collectLeaves();
  std::vector<KernelSample> kernels;
  // Places of the CTA make few kernels.
  bool hasArguments = llvm::any_of(leaves, [&](TermId leaf) {
    Operation *op = program.terms[leaf].origin.getDefiningOp();
    bool isTile =
        program.tiles && llvm::is_contained(program.tiles->tile, leaf);
    return !isTile && !(op && isa<gpu::GPUDialect>(op->getDialect()));
  });
  for (unsigned number = 0; number < (hasArguments ? kKernels : 2); ++number) {
    TermValues given(program.terms);
    giveLeaves(given, number);
    KernelSample kernel;
    if (!unroll(&PartitionProgram::before, given, kernel.before) ||
        !unroll(&PartitionProgram::after, given, kernel.after)) {
      ++report.leftOut;
      continue;
    }
    for (unsigned tile = 0; tile < (program.tiles ? kTiles : 1); ++tile) {
      TermValues values = given;
      TileEvents events;
      if (!giveTile(values, tile))
        continue;
      if (unroll(&PartitionProgram::tile, values, events))
        kernel.tiles.push_back({std::move(events), std::move(values)});
      else
        ++report.leftOut;
    }
    kernels.push_back(std::move(kernel));
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// Lists of events
//===----------------------------------------------------------------------===//

bool ChannelRuns::unrollLoop(const ChannelStep &loop, TermValues &values,
                             std::vector<ChannelEvent> &events) {
  auto lower = values.get(loop.lower), upper = values.get(loop.upper),
       step = values.get(loop.step);
  auto trips = countTrips(lower, upper, step);
  if (!trips || *trips > kMaxEvents)
    return false;
  // Without steps that depend on the counter its values need not be known.
  bool counts = seen.contains(loop.counter);
  for (int64_t trip = 0; trip < *trips; ++trip) {
    if (++numTrips > kMaxTrips || ++numTripsOfAll > kMaxTripsOfAll)
      return false;
    if (counts)
      values.set(loop.counter, *lower + trip * *step);
    if (!unroll(loop.body, values, events))
      return false;
  }
  return true;
}

/// A part of all partitions; no token comes from another part.
bool ChannelRuns::unroll(std::vector<ChannelStep> PartitionProgram::*steps,
                         TermValues &values, TileEvents &events) {
  numTrips = 0;
  for (const PartitionProgram &partition : program.partitions) {
    tokens.clear();
    if (!unroll(partition.*steps, values, events.emplace_back()))
      return false;
  }
  return true;
}

/// False if a number or a token is missing, or there are too many trips or
/// events.
bool ChannelRuns::unroll(const std::vector<ChannelStep> &steps,
                         TermValues &values,
                         std::vector<ChannelEvent> &events) {
  for (const ChannelStep &step : steps) {
    switch (step.kind) {
    case StepKind::Acquire:
      tokens[step.token] = {unsigned(events.size())};
      events.push_back({&step, {}});
      break;
    case StepKind::Release:
      // The token may come from another tile.
      if (tokens.lookup(step.token).empty())
        return false;
      events.push_back({&step, tokens.lookup(step.token)});
      break;
    case StepKind::Split:
    case StepKind::Pass: {
      // All at the same time; a join collects.
      SmallVector<std::pair<Value, SmallVector<unsigned, 2>>> made;
      for (const auto &[from, targets] : step.passes)
        for (Value target : targets) {
          auto same = llvm::find_if(
              made, [&](const auto &entry) { return entry.first == target; });
          if (same == made.end())
            made.push_back({target, tokens.lookup(from)});
          else
            llvm::append_range(same->second, tokens.lookup(from));
        }
      for (auto &[target, acquires] : made)
        tokens[target] = std::move(acquires);
      break;
    }
    case StepKind::If: {
      auto condition = values.get(step.condition);
      if (!condition ||
          !unroll(*condition ? step.body : step.otherwise, values, events))
        return false;
      break;
    }
    case StepKind::Loop:
      if (!unrollLoop(step, values, events))
        return false;
      break;
    }
    if (events.size() > kMaxEvents)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

namespace {

/// All partitions, each at its next event.
class Machine {
public:
  Machine(const ChannelProgram &program, ArrayRef<const TileEvents *> tiles,
          ChannelReport &report)
      : program(program), tiles(tiles), report(report),
        at(program.partitions.size()) {}

  std::optional<ChannelWitness> run();

private:
  /// A partition's place in the tiles.
  struct Place {
    unsigned tile = 0;
    unsigned event = 0;
    /// Positions of the acquires of this tile.
    std::vector<int64_t> positions;
    /// The next position of each role and part.
    DenseMap<std::pair<uint64_t, unsigned>, int64_t> next;
  };

  bool step(unsigned partition);
  bool isFree(const ChannelStep &acquire, int64_t position) const;
  int64_t &getNext(Place &place, const ChannelStep &acquire);
  const ChannelEvent *getEvent(const Place &place, unsigned partition) const;
  ChannelWitness describe();
  std::string describeWait(unsigned partition);

  const ChannelProgram &program;
  ArrayRef<const TileEvents *> tiles;
  ChannelReport &report;
  std::vector<Place> at;
  /// The parts of positions that partitions have released, by role and
  /// partition.
  DenseMap<std::pair<uint64_t, unsigned>, std::vector<unsigned>> released;
};

/// A number for each role of all channels.
uint64_t getRole(unsigned channel, unsigned role) {
  return uint64_t(channel) << 32 | role;
}

} // namespace

const ChannelEvent *Machine::getEvent(const Place &place,
                                      unsigned partition) const {
  return place.tile == tiles.size()
             ? nullptr
             : &(*tiles[place.tile])[partition][place.event];
}

int64_t &Machine::getNext(Place &place, const ChannelStep &acquire) {
  const ChannelPlace &of = acquire.place;
  return place.next[{getRole(of.channel, of.role),
                     unsigned(llvm::countr_zero(of.parts))}];
}

/// True if the role before has handed on what an acquire takes.
bool Machine::isFree(const ChannelStep &acquire, int64_t position) const {
  const ChannelPlace &place = acquire.place;
  const ChannelInfo &info = program.getInfo(place.channel);
  unsigned before = (place.role + info.roles.size() - 1) % info.roles.size();
  if (place.role == 0)
    position -= program.getDepth(place.channel);
  if (position < 0)
    return true;
  for (const Participant &participant : info.roles[before].participants) {
    unsigned all = 0;
    for (int part : participant.released.set_bits())
      all |= 1u << part;
    auto found =
        released.find({getRole(place.channel, before), participant.partition});
    unsigned done = 0;
    if (found != released.end() && position < int64_t(found->second.size()))
      done = found->second[position];
    if (((done ^ all) & all & place.parts) != 0)
      return false;
  }
  return true;
}

/// True if a partition could do its next event.
bool Machine::step(unsigned partition) {
  Place &place = at[partition];
  while (place.tile < tiles.size() &&
         place.event == (*tiles[place.tile])[partition].size()) {
    ++place.tile;
    place.event = 0;
    place.positions.clear();
  }
  const ChannelEvent *event = getEvent(place, partition);
  if (!event)
    return false;
  const ChannelStep &step = *event->step;
  int64_t position = -1;
  if (step.kind == StepKind::Acquire) {
    int64_t &next = getNext(place, step);
    if (!isFree(step, next))
      return false;
    position = next++;
  } else {
    size_t of = place.positions[event->acquires.front()];
    auto &parts = released[{getRole(step.place.channel, step.place.role),
                            program.partitions[partition].index}];
    parts.resize(std::max(parts.size(), of + 1));
    parts[of] |= step.place.parts;
  }
  place.positions.push_back(position);
  ++place.event;
  ++report.steps;
  return true;
}

std::string Machine::describeWait(unsigned partition) {
  const ChannelStep &step = *getEvent(at[partition], partition)->step;
  ChannelCreateOp channel = program.getChannel(step.place.channel);
  int64_t position = getNext(at[partition], step);
  int64_t depth = program.getDepth(step.place.channel);
  std::string text;
  llvm::raw_string_ostream os(text);
  os << ChannelProgram::describe(program.partitions[partition])
     << " waits as role '" << channel.getRole(step.place.role).getName()
     << "' for position " << position << " of channel '" << channel.getName()
     << "' (slot " << position % depth << " of " << depth << ")";
  return text;
}

/// Everybody who waits, the one with the earliest wait first.
ChannelWitness Machine::describe() {
  ChannelWitness witness;
  witness.fault = ChannelFault::Order;
  for (unsigned partition = 0; partition < at.size(); ++partition) {
    const ChannelEvent *event = getEvent(at[partition], partition);
    if (!event)
      continue;
    ChannelNote note{event->step->op, describeWait(partition)};
    if (witness.what.op) {
      witness.notes.push_back(note);
      continue;
    }
    const ChannelPlace &place = event->step->place;
    ChannelCreateOp channel = program.getChannel(place.channel);
    note.text += ", which role '" +
                 channel.getRoleBefore(place.role).getName().str() +
                 "' does not hand on before others go on";
    witness.what = note;
  }
  return witness;
}

std::optional<ChannelWitness> Machine::run() {
  bool moves = true;
  while (moves) {
    moves = false;
    for (unsigned partition = 0; partition < at.size(); ++partition)
      while (step(partition))
        moves = true;
  }
  for (unsigned partition = 0; partition < at.size(); ++partition)
    if (getEvent(at[partition], partition))
      return describe();
  return std::nullopt;
}

std::optional<ChannelWitness>
ChannelRuns::run(ArrayRef<const TileEvents *> tiles) {
  ++report.runs;
  return Machine(program, tiles, report).run();
}
