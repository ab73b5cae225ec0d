//===- BulkCopyOps.cpp - cp.async.bulk and tensor copies ------------------===//
//
// A bulk copy is cut into pieces of at most 16 bytes, the unit of swizzling.
// Loads signal an mbarrier when their bytes are there and are stamped with the
// barrier's actor and phase. Stores belong to the bulk groups of their thread:
// their reads and their writes are published separately, because
// wait_group.read promises the former only.
//
//===----------------------------------------------------------------------===//

#include "../PTX/Decoder.h"
#include "../Sanitizer/PhaseChecks.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "BulkCopy.h"
#include "EngineOps.h"
#include "MbarrierOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// What a copy moves between L2 and the SMs: what is out of bounds is neither
/// read nor written.
void countL2(L2Traffic &l2, const BulkOp &op) {
  uint64_t sectors = 0, last = ~uint64_t(0);
  for (const Piece &p : op.pieces)
    if (p.first < p.last)
      for (uint64_t s = (p.global + p.first) / 32,
                    end = (p.global + p.last - 1) / 32;
           s <= end; ++s)
        if (s != last) {
          ++sectors;
          last = s;
        }
  if (op.aux->kind == BulkAux::Store) {
    (op.aux->reduce ? l2.atomicBytes : l2.writtenBytes) += 32 * sectors;
  } else {
    l2.readBytes += 32 * sectors;
    l2.deliveredBytes += 32 * sectors * op.targets.size();
  }
}

// ops of loads: dst, source or map, barrier, mask or none, size or none,
//   coordinates…
// ops of stores: destination or map, source, none, none, size or none, coords…
void execBulk(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const BulkAux *>(I.aux);
  // Lanes that store the same bytes to the same place: compilers leave the
  // election out here, since repeating the store changes nothing.
  uint32_t lanes = x.active;
  if (o.kind == BulkAux::Store && !o.reduce)
    forLanes(x.active, [&](unsigned lane) {
      forLanes(lanes & ((1u << lane) - 1), [&](unsigned earlier) {
        bool same = true;
        for (unsigned i = 0; i < I.numOps && same; ++i)
          same = I.ops[i].cls == RegClass::Sink ||
                 x.read(I.ops[i], lane) == x.read(I.ops[i], earlier);
        if (same)
          lanes &= ~(1u << lane);
      });
    });
  forLanes(lanes, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    auto address = [&](unsigned i, int64_t displacement) -> uint64_t {
      uint64_t v = x.read(I.ops[i], lane) + displacement;
      return I.ops[i].cls == RegClass::R32 ? uint32_t(v) : v;
    };
    auto sharedAddress = [&](unsigned i, int64_t displacement) -> uint64_t {
      uint64_t v = address(i, displacement);
      return v >= SharedWindow && v < SharedWindow + WindowSize
                 ? v - SharedWindow
                 : v;
    };
    for (unsigned i = 0; i < I.numOps; ++i)
      if (I.ops[i].cls != RegClass::Sink && x.poison[I.ops[i].meta] >> lane & 1)
        x.checkPoison(I.ops[i], "an operand of a bulk copy");
    auto op = std::make_unique<BulkOp>();
    op->inst = x.pc;
    op->issuer = x.warp;
    op->control = controlOf(x);
    op->aux = &o;
    op->lane = lane;
    bool load = o.kind == BulkAux::Load;
    bool store = o.kind == BulkAux::Store;
    if (o.kind == BulkAux::SharedToShared &&
        !checkClusterLaunch(x, "a copy to shared memory of the cluster"))
      return;
    uint32_t sharedSide =
        store ? sharedAddress(1, int64_t(I.imm2)) : sharedAddress(0, I.imm);
    uint32_t sharedRank = sharedSide >> 24;
    if (sharedRank >= x.cluster.ctas.size())
      return x.fault(FindingKind::OutOfBounds,
                     "a bulk copy names a CTA that the cluster does not have",
                     lane);
    Cta *sharedCta = x.cluster.ctas[sharedRank].get();
    uint64_t total = 0;
    if (o.rank) {
      uint64_t mapAddress =
          load ? address(1, int64_t(I.imm2)) : address(0, I.imm);
      MemRef ref;
      if (!x.resolve(Space::Generic, mapAddress, 128, 64, false, lane, ref))
        return;
      auto map = decodeTensorMap(llvm::ArrayRef(ref.data, 128));
      if (!map)
        return x.fault(FindingKind::InvalidOperation,
                       llvm::toString(map.takeError()), lane);
      if (map->rank != (o.gather ? 2 : o.rank))
        return x.fault(FindingKind::InvalidOperation,
                       "expected a tensor map of rank " + Twine(o.rank) +
                           ", got " + Twine(map->rank),
                       lane);
      if (sharedSide & 127)
        return x.fault(FindingKind::Misaligned,
                       "expected shared memory aligned to 128 bytes", lane);
      int64_t coords[5];
      for (unsigned i = 0; i < (o.gather ? 5 : o.rank); ++i)
        coords[i] = int32_t(x.r32(I.ops[5 + i])[lane]);
      // Else an illegal instruction on an H200, whatever type and swizzle.
      int64_t bits = getElementBits(map->element);
      if (load && !o.gather && bits >= 8 && coords[0] * bits % 128 != 0)
        return x.fault(FindingKind::Misaligned,
                       "expected the first coordinate of a tensor load to be a "
                       "multiple of " +
                           Twine(128 / bits) + ", 16 bytes, got " +
                           Twine(coords[0]),
                       lane);
      cutBox(*map, coords, o.gather, sharedSide & 0xffffff, op->pieces, total);
      op->nanFill = map->nanFill;
      op->elementType = elementTypeOf(map->element);
    } else {
      uint32_t size = x.r32(I.ops[4])[lane];
      uint64_t other = store  ? address(0, I.imm)
                       : load ? address(1, int64_t(I.imm2))
                              : sharedAddress(1, int64_t(I.imm2));
      if (size % 16 || other % 16 || sharedSide % 16)
        return x.fault(FindingKind::Misaligned,
                       "expected addresses and size of a bulk copy to be "
                       "multiples of 16",
                       lane);
      total = size;
      op->elementType = o.type;
      for (uint32_t b = 0; b < size; b += 16) {
        Piece p;
        p.global = other + b;
        p.shared = (sharedSide & 0xffffff) + b;
        op->pieces.push_back(p);
      }
      if (!load && !store) {
        // Shared to shared: the source is this CTA's, pieces go across.
        for (Piece &p : op->pieces) {
          uint32_t to = p.shared - SharedBase;
          p.shared = uint32_t(p.global & 0xffffff);
          p.global = to;
        }
        op->source = x.cta;
      }
    }
    op->totalBytes = total;
    for (Piece &p : op->pieces) {
      p.shared -= SharedBase;
      if (p.shared + 16 > sharedCta->shared.size())
        return x.fault(FindingKind::OutOfBounds,
                       "a bulk copy leaves the CTA's shared memory", lane);
      if (o.kind != BulkAux::SharedToShared && p.first < p.last &&
          !x.machine.memory.find(p.global + p.first, p.last - p.first))
        return x.fault(FindingKind::OutOfBounds,
                       llvm::formatv("a bulk copy touches global address "
                                     "{0:x}, outside of every allocation",
                                     p.global + p.first),
                       lane);
    }
    // Destinations and their barriers.
    if (!store) {
      uint32_t barrier = sharedAddress(2, int64_t(I.flags));
      Cta *barrierCta = nullptr;
      if (!findMbarrier(x, barrier, lane, &barrierCta))
        return;
      uint32_t mask = 1u << sharedRank;
      if (o.multicast)
        mask = x.r32(I.ops[3])[lane] & 0xffff;
      forLanes(mask, [&](unsigned rank) {
        if (rank >= x.cluster.ctas.size() || x.action == Action::Fault)
          return x.fault(FindingKind::OutOfBounds,
                         "the multicast mask names a CTA that the cluster does "
                         "not have",
                         lane);
        Target t;
        t.cta = x.cluster.ctas[rank].get();
        t.barrier = (barrier & 0xffffff) - SharedBase;
        t.barrierCta =
            o.multicast
                ? (o.pair
                       ? x.cluster.ctas[(rank & ~1u) | (barrierCta->rank & 1)]
                             .get()
                       : t.cta)
                : barrierCta;
        if (!o.pair && t.barrierCta != t.cta)
          return x.fault(FindingKind::MbarrierMisuse,
                         "expected the mbarrier in the CTA of the destination",
                         lane);
        if (t.cta->exited || t.barrierCta->exited)
          return x.fault(FindingKind::ExitInFlight,
                         "a bulk copy is sent to a CTA that has exited", lane);
        op->targets.push_back(t);
      });
      if (x.action == Action::Fault)
        return;
    } else {
      op->source = sharedCta;
    }
    if (o.kind != BulkAux::SharedToShared)
      countL2(x.cluster.counters.l2, *op);
    x.cluster.counters.bulkLoadBytes += store ? 0 : total;
    x.cluster.counters.bulkStoreBytes += store ? total : 0;
    if (x.sanitizing()) {
      auto stamp = [&](uint16_t actor, uint32_t epoch) {
        Stamp s = x.stampHere(lane);
        s.actor = actor;
        s.epoch = epoch;
        s.flags = Stamp::Async | Stamp::AsyncProxy;
        return s;
      };
      uint32_t storeEpoch = store ? ++x.warp->bulk.epoch : 0;
      for (const Piece &p : op->pieces) {
        MemRef g;
        g.space = Space::Global;
        g.address = p.global + p.first;
        g.allocation = p.first < p.last && o.kind != BulkAux::SharedToShared
                           ? x.machine.memory.find(g.address, p.last - p.first)
                           : nullptr;
        MemRef s;
        s.space = Space::Shared;
        s.cta = store ? sharedCta : op->source;
        s.offset = p.shared;
        s.address = p.shared + SharedBase;
        if (store) {
          trackAsync(x, stamp(x.warp->bulk.actor, storeEpoch), s, p.bytes,
                     false);
          if (g.allocation) {
            if (g.allocation->access == Access::Read)
              return x.fault(FindingKind::ReadOnlyWrite,
                             "writes an allocation that is read-only", lane);
            Stamp w = stamp(x.warp->bulk.writeActor, storeEpoch);
            if (o.reduce)
              w.flags |= Stamp::Strong;
            trackAsync(x, w, g, p.last - p.first, true);
          }
          continue;
        }
        if (g.allocation) {
          // Read now or later: until the barrier's phase completes.
          const Target &t = op->targets.front();
          Mbarrier &b = t.barrierCta->mbarriers[t.barrier];
          trackAsync(
              x, stamp(signalActor(b, *t.barrierCta, *x.cta), phaseEpoch(b)), g,
              p.last - p.first, false);
        }
        for (const Target &t : op->targets) {
          Mbarrier &b = t.barrierCta->mbarriers[t.barrier];
          Stamp w = stamp(signalActor(b, *t.barrierCta, *x.cta), phaseEpoch(b));
          if (o.reduce)
            w.flags |= Stamp::Strong;
          MemRef d;
          d.space = Space::Shared;
          d.cta = t.cta;
          d.offset = load ? p.shared : uint32_t(p.global);
          d.address = d.offset + SharedBase;
          trackAsync(x, w, d, p.bytes, true);
        }
      }
    }
    const LaunchConfig &config = x.machine.config;
    if (decideNow(x.cluster, config.asyncReads))
      op->read(x.cluster);
    if (config.asyncWrites == AsyncTiming::Issue && !store) {
      op->complete(x.cluster);
      x.cluster.advance();
      return;
    }
    x.cluster.engine.push_back(std::move(op));
  });
}

void execBulkCommit(Exec &x, const Inst &I) {
  for (auto &op : x.cluster.engine)
    if (auto *bulk = op->asBulkStore(x.warp))
      forLanes(x.active, [&](unsigned lane) {
        auto *b = static_cast<BulkOp *>(bulk);
        if (b->lane == lane && b->group == ~0u)
          b->group = x.warp->bulk.committed[lane];
      });
  forLanes(x.active, [&](unsigned lane) { ++x.warp->bulk.committed[lane]; });
}

void execBulkWait(Exec &x, const Inst &I) {
  // imm groups may stay; flags 1: `.read`.
  Warp &w = *x.warp;
  uint32_t known = w.bulk.epoch;
  bool anyLeft = false;
  auto &engine = x.cluster.engine;
  for (size_t i = 0; i < engine.size();) {
    auto *op = static_cast<BulkOp *>(engine[i]->asBulkStore(&w));
    if (!op || !(x.active >> op->lane & 1)) {
      ++i;
      continue;
    }
    bool finished =
        op->group != ~0u &&
        int64_t(op->group) < int64_t(w.bulk.committed[op->lane]) - I.imm;
    if (!finished) {
      anyLeft = true;
      ++i;
      continue;
    }
    if (I.flags & 1) {
      op->read(x.cluster);
      op->readWaited = true;
      ++i;
      continue;
    }
    std::unique_ptr<EngineOp> done = std::move(engine[i]);
    engine.erase(engine.begin() + i);
    done->complete(x.cluster);
  }
  x.cluster.advance();
  // Groups complete in order; with groups left nothing new is promised about
  // the newest ones. Epochs count operations, so be exact only without.
  if (anyLeft || !x.sanitizing()) {
    if (!anyLeft)
      return;
    uint32_t pending = 0;
    for (auto &e : engine)
      if (auto *op = static_cast<BulkOp *>(e->asBulkStore(&w)))
        pending +=
            x.active >> op->lane & 1 &&
            (op->group == ~0u ||
             int64_t(op->group) >= int64_t(w.bulk.committed[op->lane]) - I.imm);
    known -= std::min(known, pending);
  }
  for (Clock *clock : {&w.order.know.generic, &w.order.know.async,
                       &w.order.know.asyncGlobal}) {
    clock->setPart(w.bulk.actor, std::max(clock->get(w.bulk.actor).part, known),
                   0);
    if (!(I.flags & 1))
      clock->raise(w.bulk.writeActor, known);
  }
}

} // namespace

static Error decodeBulkCopy(Decoding &c) {
  const auto &ops = c.ast.ops;
  c.take("bulk");
  c.program().usesAsyncProxy = true;
  if (c.take("commit_group")) {
    ATTN_SIM_TRY(c.expectOps(0, 0));
    return c.set(execBulkCommit, InstClass::Bulk);
  }
  if (c.take("wait_group")) {
    c.inst.flags = c.take("read");
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.immediate(ops[0], c.inst.imm));
    return c.set(execBulkWait, InstClass::Bulk);
  }
  if (c.take("prefetch")) {
    c.mods.clear();
    return c.set([](Exec &, const Inst &) {}, InstClass::Bulk);
  }
  auto *o = c.makeAux<BulkAux>();
  o->reduce = c.take("reduce");
  bool tensor = c.take("tensor");
  for (unsigned r = 1; r <= 5 && tensor; ++r)
    if (c.take(std::to_string(r) + "d"))
      o->rank = r;
  if (tensor && !o->rank)
    return c.error("expected a rank");
  c.take("tile");
  if (c.take("tile::gather4") || c.take("tile::scatter4"))
    o->gather = true;
  bool barrier = c.take("mbarrier::complete_tx::bytes");
  bool group = c.take("bulk_group");
  o->multicast = c.take("multicast::cluster");
  o->pair = c.take("cta_group::2");
  c.take("cta_group::1");
  c.takeCacheHints();
  if (o->reduce) {
    StringRef name =
        c.takeAny({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
    if (!parseAtomicOp(name, o->op))
      return c.error("expected a reduction");
    c.take("noftz");
    if (!tensor)
      o->type = c.takeType();
  }
  // The first space named is the destination's.
  StringRef to, from;
  for (StringRef mod : c.ast.mods)
    if (mod == "global" || mod.starts_with("shared"))
      (to.empty() ? to : from) = mod;
  c.takeAny({"global"});
  for (int i = 0; i < 2; ++i)
    c.takeAny({"shared::cta", "shared::cluster", "shared"});
  if (to == "global")
    o->kind = BulkAux::Store;
  else if (from == "global")
    o->kind = BulkAux::Load;
  else
    o->kind = BulkAux::SharedToShared;
  bool store = o->kind == BulkAux::Store;
  if (store && o->reduce)
    c.program().communicates = true;
  if (store ? !group || barrier : !barrier || group)
    return c.error("expected the completion mechanism of this direction");
  c.program().sharedGranule = std::min(c.program().sharedGranule, 16u);
  c.program().globalGranule = std::min(c.program().globalGranule, 16u);
  size_t least = (store ? 2 : 3) + (tensor ? 0 : 1);
  ATTN_SIM_TRY(c.expectOps(least, least + 2));
  int64_t displacement;
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.address(ops[1], displacement));
  c.inst.imm2 = displacement;
  size_t next = 2;
  Operand sizeOp;
  if (!tensor) {
    ATTN_SIM_TRY(c.src(ops[next++], Type::U32));
    sizeOp = c.ops.back();
    c.ops.pop_back();
  }
  if (store) {
    c.none();
  } else {
    ATTN_SIM_TRY(c.address(ops[next++], displacement));
    c.inst.flags = uint32_t(displacement);
  }
  if (o->multicast) {
    if (next >= ops.size())
      return c.error("expected a multicast mask");
    ATTN_SIM_TRY(c.srcWide(ops[next++], Type::B16));
  } else {
    c.none();
  }
  c.ops.push_back(sizeOp);
  if (tensor) {
    const AstOperand &map = ops[store ? 0 : 1];
    if (map.kind != AstOperand::Address || map.elems.size() < 2 ||
        map.elems[1].kind != AstOperand::Vector)
      return c.error("expected coordinates");
    unsigned want = o->gather ? 5 : o->rank;
    if (map.elems[1].elems.size() != want)
      return c.error("expected " + Twine(want) + " coordinates, got " +
                     Twine(map.elems[1].elems.size()));
    for (const AstOperand &coordinate : map.elems[1].elems)
      ATTN_SIM_TRY(c.src(coordinate, Type::S32));
  }
  return c.set(execBulk, InstClass::Bulk);
}

void mlir::attn::sim::registerBulkCopyOps(DecodeTable &table) {
  table["cp.async.bulk"] = decodeBulkCopy;
}
