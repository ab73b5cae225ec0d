//===- LateLoads.cpp - Loads that an arrival in another CTA may overtake --===//
//
// An arrival in another CTA overtakes a load from shared memory whose data have
// not come yet (docs/Rationale/Clusters.md), and so may a st.async,
// whose bytes are a signal as well. A load names one of
// the warp's six scoreboards, and its data have come once an instruction of the
// warp has waited for that one. ptxas puts such a wait in front of the first
// use, wherever it has moved that.
//
//===----------------------------------------------------------------------===//

#include "attn/Lint/SassLint.h"
#include "attn/Target/CodeFlow.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir::attn;
using llvm::StringRef;

/// A load whose data come in the order in which the loads of its warp were
/// issued. ptxas counts on it: some name no scoreboard, and the wait for a
/// later one stands in front of their first use.
static bool isOrderedLoad(const CodeInstruction &inst) {
  StringRef base = inst.getBase();
  return base == "LDS" || base == "LDSM";
}

static bool isSharedLoad(const CodeInstruction &inst) {
  // A generic address may be one of shared memory.
  return isOrderedLoad(inst) || inst.getBase() == "LD";
}

/// An arrival at an mbarrier of shared::cluster memory; those of the own CTA
/// have no ".RED".
static bool isRemoteArrival(const CodeInstruction &inst) {
  StringRef opcode = inst.opcode;
  return opcode.starts_with("SYNCS.ARRIVE.") && opcode.contains(".RED");
}

/// A st.async.
static bool isSend(const CodeInstruction &inst) {
  return inst.getBase() == "STAS";
}

static bool isRemoteSignal(const CodeInstruction &inst) {
  return isRemoteArrival(inst) || isSend(inst);
}

/// The scoreboards whose wait an instruction is.
static unsigned getAwaited(const CodeInstruction &inst) {
  unsigned awaited = inst.scoreboards->awaited;
  // "DEPBAR.LE SB0, 0x0": no instruction of SB0 is left.
  StringRef operands = inst.operands;
  unsigned board = 0, left = 0;
  if (inst.getBase() == "DEPBAR" && operands.consume_front("SB") &&
      !operands.consumeInteger(10, board) && operands.consume_front(", ") &&
      !operands.consumeInteger(0, left) && left == 0)
    awaited |= 1u << board;
  return awaited;
}

namespace {

/// The loads that may be on their way, by their index in the listing. Each has
/// a mask of the scoreboards of which one wait shows that its data have come.
using Pending = std::map<unsigned, unsigned>;

/// Follows the loads through a kernel.
class LateLoads {
public:
  explicit LateLoads(const CodeListing &listing)
      : listing(listing), flow(listing), entering(flow.getBlocks().size()) {}
  RemoteArrivals find();

private:
  /// Takes the loads on their way over a block; notes its early signals if
  /// there is a `result`.
  void cross(const CodeBlock &block, Pending &pending,
             RemoteArrivals *result) const;
  void issueLoad(unsigned index, Pending &pending) const;

  const CodeListing &listing;
  CodeFlow flow;
  /// What is on its way at the begin of each block.
  std::vector<Pending> entering;
};

} // namespace

void LateLoads::issueLoad(unsigned index, Pending &pending) const {
  const CodeInstruction &load = listing.instructions[index];
  unsigned mask =
      load.scoreboards->written ? 1u << *load.scoreboards->written : 0;
  if (isOrderedLoad(load))
    for (auto &[earlier, boards] : pending)
      if (isOrderedLoad(listing.instructions[earlier]))
        boards |= mask;
  pending[index] = mask;
}

void LateLoads::cross(const CodeBlock &block, Pending &pending,
                      RemoteArrivals *result) const {
  for (unsigned i = block.begin; i != block.end; ++i) {
    const CodeInstruction &inst = listing.instructions[i];
    // The wait comes before the instruction, whatever its guard says.
    unsigned awaited = getAwaited(inst);
    for (auto load = pending.begin(); load != pending.end();)
      load = load->second & awaited ? pending.erase(load) : std::next(load);
    if (result && isRemoteSignal(inst) && !pending.empty()) {
      RemoteArrivals::Early &early = result->early.emplace_back();
      early.place = inst.place;
      early.isSend = isSend(inst);
      for (const auto &[load, boards] : pending)
        early.loads.push_back(listing.instructions[load].place);
    }
    if (isSharedLoad(inst))
      issueLoad(i, pending);
  }
}

/// What is on its way on one of two paths; a wait has to show it on both. True
/// if `into` has changed.
static bool join(const Pending &from, Pending &into) {
  bool changed = false;
  for (const auto &[load, boards] : from) {
    auto [place, isNew] = into.try_emplace(load, boards);
    unsigned both = place->second & boards;
    changed |= isNew || both != place->second;
    place->second = both;
  }
  return changed;
}

RemoteArrivals LateLoads::find() {
  RemoteArrivals result;
  result.arrivals = llvm::count_if(listing.instructions, isRemoteArrival);
  result.sends = llvm::count_if(listing.instructions, isSend);
  result.loads = llvm::count_if(listing.instructions, isSharedLoad);
  llvm::ArrayRef<CodeBlock> blocks = flow.getBlocks();
  std::vector<unsigned> work;
  for (unsigned i = blocks.size(); i != 0; --i)
    work.push_back(i - 1);
  while (!work.empty()) {
    unsigned index = work.back();
    work.pop_back();
    Pending pending = entering[index];
    cross(blocks[index], pending, nullptr);
    for (unsigned successor : blocks[index].successors)
      if (join(pending, entering[successor]))
        work.push_back(successor);
  }
  for (auto [block, first] : llvm::zip(blocks, entering)) {
    Pending pending = first;
    cross(block, pending, &result);
  }
  return result;
}

std::optional<RemoteArrivals>
mlir::attn::findRemoteArrivals(const CodeListing &listing) {
  if (!llvm::all_of(listing.instructions, [](const CodeInstruction &inst) {
        return inst.scoreboards.has_value();
      }))
    return std::nullopt;
  return LateLoads(listing).find();
}

bool mlir::attn::hasRemoteArrival(const CodeListing &listing) {
  return llvm::any_of(listing.instructions, isRemoteSignal);
}
