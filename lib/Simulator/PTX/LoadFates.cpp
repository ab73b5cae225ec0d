//===- LoadFates.cpp - Where values of loads may go -----------------------===//

#include "LoadFates.h"
#include "RegisterUses.h"
#include "llvm/ADT/STLExtras.h"
#include <set>

using namespace mlir::attn::sim;

namespace {
enum class Flow {
  Registers, ///< from registers to registers of the same lane
  Lanes,     ///< to registers of other lanes
  Out,       ///< anything else
};
} // namespace

static Flow getFlow(const Inst &inst) {
  switch (inst.cls) {
  case InstClass::Move:
  case InstClass::Alu:
  case InstClass::Imad:
  case InstClass::Float:
  case InstClass::Fma:
  case InstClass::Half:
  case InstClass::Double:
  case InstClass::Convert:
  case InstClass::Compare:
  case InstClass::Special:
  case InstClass::Ex2:
    return Flow::Registers;
  case InstClass::Shuffle:
  case InstClass::Vote:
    return Flow::Lanes;
  default:
    return Flow::Out;
  }
}

uint32_t LoadFates::makeSlot(uint32_t inst) {
  if (!slots[inst])
    slots[inst] = numSlots++;
  return slots[inst];
}

LoadFates::LoadFates(const ProgramImpl &program) : slots(program.code.size()) {
  RegisterUses uses(program);
  std::vector<std::vector<uint32_t>> guarded(program.regMetas);
  for (auto [index, inst] : llvm::enumerate(program.code))
    if (inst.hasGuard)
      guarded[inst.guardMeta].push_back(index);
  auto forWritten = [&](const Inst &inst, auto &&fn) {
    for (auto [i, o] : llvm::enumerate(llvm::ArrayRef(inst.ops, inst.numOps)))
      if (o.cls != RegClass::Sink && inst.writes(i))
        fn(o.meta);
  };
  for (auto [index, load] : llvm::enumerate(program.code)) {
    if (load.cls != InstClass::LdGlobal)
      continue;
    LoadFate fate{uint32_t(index), makeSlot(index), {}};
    // Registers that depend on the value, and whether lanes have exchanged it.
    std::set<std::pair<uint32_t, bool>> reached;
    std::set<std::pair<uint32_t, bool>> found;
    std::vector<std::pair<uint32_t, bool>> pending;
    auto reach = [&](uint32_t meta, bool isShared) {
      if (reached.insert({meta, isShared}).second)
        pending.push_back({meta, isShared});
    };
    auto use = [&](uint32_t user, bool isGuard, bool isShared) {
      const Inst &inst = program.code[user];
      Flow flow = getFlow(inst);
      if (flow != Flow::Out) {
        forWritten(inst, [&](uint32_t meta) {
          reach(meta, isShared || flow == Flow::Lanes);
        });
        return;
      }
      if (found.insert({2 * user + isGuard, isShared}).second)
        fate.uses.push_back({makeSlot(user), isGuard, isShared});
    };
    forWritten(load, [&](uint32_t meta) { reach(meta, false); });
    while (!pending.empty()) {
      auto [meta, isShared] = pending.back();
      pending.pop_back();
      for (uint32_t user : uses.get(meta)) {
        const Inst &inst = program.code[user];
        bool isRead = false;
        for (auto [i, o] :
             llvm::enumerate(llvm::ArrayRef(inst.ops, inst.numOps)))
          isRead |= o.meta == meta && !inst.writes(i);
        if (isRead)
          use(user, /*isGuard=*/false, isShared);
      }
      for (uint32_t user : guarded[meta])
        use(user, /*isGuard=*/true, isShared);
    }
    fates.push_back(std::move(fate));
  }
}

const LoadFate *LoadFates::find(uint32_t inst) const {
  auto it = llvm::lower_bound(
      fates, inst, [](const LoadFate &f, uint32_t at) { return f.inst < at; });
  return it != fates.end() && it->inst == inst ? &*it : nullptr;
}

const LoadFates &mlir::attn::sim::getLoadFates(const ProgramImpl &program) {
  std::call_once(program.fatesFlag, [&] {
    program.fates = std::make_shared<const LoadFates>(program);
  });
  return *program.fates;
}
