//===- ClusterSetup.cpp - The state in which warps start ------------------===//

#include "ClusterSetup.h"
#include "AddressSpace.h"
#include "Cluster.h"
#include "Machine.h"
#include "TraceRecorder.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir::attn::sim;

static uint64_t specialValue(SpecialReg reg, const Machine &m, const Cta &cta,
                             const Warp &warp, unsigned lane) {
  const auto &block = m.config.block;
  const auto &grid = m.config.grid;
  const auto &cl = m.config.cluster;
  const Cluster &cluster = *cta.cluster;
  uint32_t thread = warp.id * 32 + lane;
  uint32_t bit = uint32_t(1) << lane;
  switch (reg) {
  case SpecialReg::TidX:
    return thread % block[0];
  case SpecialReg::TidY:
    return thread / block[0] % block[1];
  case SpecialReg::TidZ:
    return thread / block[0] / block[1];
  case SpecialReg::NtidX:
    return block[0];
  case SpecialReg::NtidY:
    return block[1];
  case SpecialReg::NtidZ:
    return block[2];
  case SpecialReg::CtaidX:
    return cta.id[0];
  case SpecialReg::CtaidY:
    return cta.id[1];
  case SpecialReg::CtaidZ:
    return cta.id[2];
  case SpecialReg::NctaidX:
    return grid[0];
  case SpecialReg::NctaidY:
    return grid[1];
  case SpecialReg::NctaidZ:
    return grid[2];
  case SpecialReg::LaneId:
    return lane;
  case SpecialReg::WarpId:
    return warp.id;
  case SpecialReg::NwarpId:
    return m.warpsPerCta;
  case SpecialReg::SmId:
    return cta.linear % 132;
  case SpecialReg::NsmId:
    return 132;
  case SpecialReg::GridId:
  case SpecialReg::Zero:
    return 0;
  case SpecialReg::LanemaskEq:
    return bit;
  case SpecialReg::LanemaskLe:
    return bit | (bit - 1);
  case SpecialReg::LanemaskLt:
    return bit - 1;
  case SpecialReg::LanemaskGe:
    return ~(bit - 1);
  case SpecialReg::LanemaskGt:
    return ~(bit | (bit - 1));
  case SpecialReg::ClusterIdX:
    return cluster.id[0];
  case SpecialReg::ClusterIdY:
    return cluster.id[1];
  case SpecialReg::ClusterIdZ:
    return cluster.id[2];
  case SpecialReg::NclusterIdX:
    return m.clusters[0];
  case SpecialReg::NclusterIdY:
    return m.clusters[1];
  case SpecialReg::NclusterIdZ:
    return m.clusters[2];
  case SpecialReg::ClusterCtaidX:
    return cta.id[0] % cl[0];
  case SpecialReg::ClusterCtaidY:
    return cta.id[1] % cl[1];
  case SpecialReg::ClusterCtaidZ:
    return cta.id[2] % cl[2];
  case SpecialReg::ClusterNctaidX:
    return cl[0];
  case SpecialReg::ClusterNctaidY:
    return cl[1];
  case SpecialReg::ClusterNctaidZ:
    return cl[2];
  case SpecialReg::ClusterCtarank:
    return cta.rank;
  case SpecialReg::ClusterNctarank:
    return cl[0] * cl[1] * cl[2];
  case SpecialReg::IsExplicitCluster:
    return cl[0] * cl[1] * cl[2] > 1;
  case SpecialReg::DynamicSmemSize:
    return m.config.dynamicShared;
  case SpecialReg::TotalSmemSize:
    return cta.shared.size();
  }
  return 0;
}

/// Words of a warp's registers and of their halves.
static size_t countRegisterWords(const Machine &m) {
  return llvm::alignTo(m.program.regWords + 32 + 4 * m.program.regMetas, 16);
}

static void initWarp(const Machine &m, Warp &warp, Cta &cta, uint32_t id) {
  warp.cta = &cta;
  warp.id = id;
  uint32_t threads = std::min(32u, m.threadsPerCta - id * 32);
  warp.live = warp.initial = threads == 32 ? ~0u : (1u << threads) - 1;
  size_t numWords = m.program.regWords + 32;
  warp.file.words = &cta.registers[countRegisterWords(m) * id];
  warp.file.halves =
      reinterpret_cast<std::array<uint32_t, 2> *>(warp.file.words + numWords);
  warp.file.poison.assign(m.program.regMetas, ~0u);
  warp.file.origin.assign(m.program.regMetas, 0);
  warp.file.poison[0] = 0;
  warp.local.bytes.assign(size_t(m.program.localBytes) * 32, 0xCB);
  warp.local.valid.assign(size_t(m.program.localBytes) * 32, 0);
  warp.returnPC.assign(size_t(m.program.functionCount) * 32, 0);
  Split split;
  split.pc = m.entry;
  split.mask = warp.live;
  warp.splits.push_back(split);
  uint32_t shared = SharedBase | (cta.rank << 24);
  uint32_t dynamic = shared + llvm::alignTo(m.kernel.staticShared,
                                            m.program.dynamicSharedAlign);
  for (const ConstSlot &c : m.program.constants) {
    warp.file.poison[c.meta] = 0;
    uint64_t value = c.value + c.addend;
    if (c.kind == ConstSlot::SharedVar)
      value += shared;
    else if (c.kind == ConstSlot::SharedVarDyn)
      value += dynamic;
    else if (c.kind == ConstSlot::GlobalVar)
      value = m.globalAddresses[c.value] + c.addend;
    if (c.cls == RegClass::Pred) {
      warp.file.words[c.off] = value;
      continue;
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (c.kind == ConstSlot::Special)
        value = specialValue(SpecialReg(c.value), m, cta, warp, lane);
      if (c.cls == RegClass::R32)
        warp.file.words[c.off + lane] = value;
      else
        std::memcpy(&warp.file.words[c.off + lane * 2], &value, 8);
    }
  }
}

std::unique_ptr<Cluster> mlir::attn::sim::createCluster(Machine &m,
                                                        uint32_t linear) {
  auto cluster = std::make_unique<Cluster>();
  cluster->machine = &m;
  cluster->linear = linear;
  cluster->id = {linear % m.clusters[0], linear / m.clusters[0] % m.clusters[1],
                 linear / m.clusters[0] / m.clusters[1]};
  cluster->rng.seed(m.config.seed * 0x9E3779B97F4A7C15ull + linear + 1);
  cluster->execCount.assign(m.program.code.size(), 0);
  const auto &cl = m.config.cluster;
  uint32_t numCtas = cl[0] * cl[1] * cl[2];
  uint32_t sharedBytes =
      llvm::alignTo(m.kernel.staticShared, m.program.dynamicSharedAlign) +
      m.config.dynamicShared;
  if (!m.config.dynamicShared)
    sharedBytes = m.kernel.staticShared;
  // What ptxas gives each thread at launch, if the module bounds it.
  uint32_t launchRegisters = m.kernel.maxnreg;
  if (!launchRegisters && m.kernel.reqntid[0] && m.kernel.minnctapersm)
    launchRegisters = std::min(
        255u, 65536 / (m.warpsPerCta * 32 * m.kernel.minnctapersm) / 8 * 8);
  for (uint32_t rank = 0; rank < numCtas; ++rank) {
    auto cta = std::make_unique<Cta>();
    cta->cluster = cluster.get();
    cta->rank = rank;
    cta->id = {cluster->id[0] * cl[0] + rank % cl[0],
               cluster->id[1] * cl[1] + rank / cl[0] % cl[1],
               cluster->id[2] * cl[2] + rank / cl[0] / cl[1]};
    cta->linear = cta->id[0] + m.config.grid[0] *
                                   (cta->id[1] + m.config.grid[1] * cta->id[2]);
    cta->shared.assign(sharedBytes, 0xCB);
    cta->sharedValid.assign(sharedBytes, 0);
    if (m.config.sanitize)
      cta->shadow.init(sharedBytes, std::max(m.program.sharedGranule, 1u));
    cta->liveThreads = m.threadsPerCta;
    cta->registers = ZeroPages<uint32_t>(countRegisterWords(m) * m.warpsPerCta);
    for (uint32_t w = 0; w < m.warpsPerCta; ++w) {
      auto warp = std::make_unique<Warp>();
      initWarp(m, *warp, *cta, w);
      warp->registers = launchRegisters;
      warp->index = cluster->warps.size();
      warp->order.actor = cluster->newActor();
      warp->cpAsync.stream.actor = cluster->newActor();
      warp->bulk.actor = cluster->newActor();
      warp->bulk.writeActor = cluster->newActor();
      warp->mma.actor = cluster->newActor();
      warp->mbarriers.stream.actor = cluster->newActor();
      warp->tcgen05.loads.actor = cluster->newActor();
      warp->tcgen05.stores.actor = cluster->newActor();
      warp->order.know.generic.cluster = warp->order.know.async.cluster =
          warp->order.know.asyncGlobal.cluster =
              warp->order.know.tensor.cluster =
                  warp->order.know.control.cluster = linear;
      cluster->warps.push_back(warp.get());
      cta->warps.push_back(std::move(warp));
    }
    cluster->ctas.push_back(std::move(cta));
  }
  cluster->tensorPairs.resize((cluster->ctas.size() + 1) / 2);
  // A warp orders its own accesses for each lane.
  for (Warp *warp : cluster->warps) {
    warp->order.know.generic.setPart(warp->order.actor, ~0u, 0);
    if (!m.program.usesAsyncProxy)
      continue;
    // Its tensor operations run in order as far as it can tell itself: products
    // by assumption A1, loads and stores by A3.
    if (m.config.assumes(Assumption::MmaOrder))
      warp->order.know.tensor.setPart(warp->mma.actor, ~0u, 0);
    if (m.config.assumes(Assumption::LoadUse)) {
      warp->order.know.tensor.setPart(warp->tcgen05.loads.actor, ~0u, 0);
      warp->order.know.tensor.setPart(warp->tcgen05.stores.actor, ~0u, 0);
    }
  }
  uint32_t total = m.countClusters();
  uint32_t traced = std::min(m.config.tracedClusters, total);
  // Spread over the grid.
  if (traced && (uint64_t(linear) * traced + total - 1) / total !=
                    ((uint64_t(linear) + 1) * traced + total - 1) / total)
    cluster->recorder = std::make_shared<TraceRecorder>(
        *m.result.trace, *cluster, m.config.notesSync);
  return cluster;
}
