//===- Deadlock.cpp - What every warp waits for ---------------------------===//

#include "Deadlock.h"
#include "Machine/Exec.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;

void mlir::attn::sim::reportDeadlock(Cluster &cluster) {
  Exec x(*cluster.machine, cluster);
  std::string waiters;
  llvm::raw_string_ostream os(waiters);
  std::optional<Site> first;
  unsigned count = 0;
  for (Warp *warp : cluster.warps)
    for (const Split &s : warp->splits) {
      x.warp = warp;
      Site site = x.siteOf(s.pc, warp->cta, warp->id, -1);
      if (!first)
        first = site;
      if (++count > 64)
        continue;
      os << llvm::formatv("; CTA ({0},{1},{2}) warp {3} lanes {4:x} at line "
                          "{5}: ",
                          warp->cta->id[0], warp->cta->id[1], warp->cta->id[2],
                          warp->id, s.mask, site.ptxLine);
      switch (s.block) {
      case BlockKind::None:
        os << "polls";
        if (s.pollAddress) {
          uint32_t rank = s.pollAddress >> 24 & 0xff;
          uint32_t offset = (s.pollAddress & 0xffffff) - SharedBase;
          os << llvm::formatv(" the mbarrier at shared offset {0}", offset);
          if (rank < cluster.ctas.size()) {
            auto it = cluster.ctas[rank]->mbarriers.find(offset);
            if (it != cluster.ctas[rank]->mbarriers.end())
              os << llvm::formatv(
                  " (phase {0}, {1} of {2} arrivals pending, {3} bytes "
                  "pending)",
                  it->second.phase, it->second.pending, it->second.expected,
                  it->second.tx);
          }
        }
        break;
      case BlockKind::Converge:
        os << "waits for the other lanes of its warp";
        break;
      case BlockKind::WarpSync:
        os << llvm::formatv("waits in bar.warp.sync for lanes {0:x}", s.arg);
        break;
      case BlockKind::NamedBarrier: {
        const NamedBarrier &b = warp->cta->barriers[s.arg];
        os << llvm::formatv("waits at barrier {0} ({1} of {2} threads arrived)",
                            s.arg, b.arrived, b.expected);
        break;
      }
      case BlockKind::ClusterBarrier:
        os << "waits at the cluster barrier";
        break;
      case BlockKind::Mbarrier:
        os << "waits on an mbarrier";
        break;
      case BlockKind::Registers:
        os << llvm::formatv("waits for {0} registers a thread ({1} free in the "
                            "CTA)",
                            s.arg, warp->cta->freeRegisters);
        break;
      case BlockKind::TensorAlloc:
        os << "waits for tensor memory";
        break;
      case BlockKind::AsyncWait:
        os << "waits for its asynchronous operations";
        break;
      }
    }
  Finding f;
  f.kind = FindingKind::Deadlock;
  f.message = llvm::formatv("no thread can advance: {0} waiters", count).str() +
              waiters;
  f.second = first;
  x.report(std::move(f));
}
