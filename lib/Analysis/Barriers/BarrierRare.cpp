//===- BarrierRare.cpp - Paths that may be left out -----------------------===//

#include "BarrierMachine.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

void Machine::beginRare(Warp &warp) {
  warp.rare.push_back(warp.knows);
  warp.rareEvents.emplace_back();
  for (unsigned engine = 0; engine < kGroupEngines; ++engine) {
    if (!warp.open[engine].empty())
      fail(warp.pc, "an asynchronous access is in no group yet");
    warp.rareGroups.push_back(warp.groups[engine]);
  }
}

/// Of what was there before, a warp knows no more than without the path; of
/// what the path itself does, what it knows at its end.
void Machine::endRare(Warp &warp) {
  EventSet made = std::move(warp.rareEvents.back());
  warp.rareEvents.pop_back();
  for (Knowledge WarpKnowledge::*part :
       {&WarpKnowledge::all, &WarpKnowledge::elected, &WarpKnowledge::shares}) {
    Knowledge own = std::move(warp.knows.*part);
    own.intersect(made);
    warp.knows.*part = std::move(warp.rare.back().*part);
    (warp.knows.*part).join(own);
  }
  warp.rare.pop_back();
  if (!warp.rareEvents.empty())
    warp.rareEvents.back().join(made);
  // Of what was pending before, a wait on the path is not relied on; what the
  // path has started is pending behind it.
  for (unsigned engine = kGroupEngines; engine-- > 0;) {
    auto before = std::move(warp.rareGroups.back());
    warp.rareGroups.pop_back();
    for (auto &group : warp.groups[engine])
      if (llvm::any_of(group, [&](uint32_t event) { return made.test(event); }))
        before.push_back(std::move(group));
    warp.groups[engine] = std::move(before);
  }
}
