//===- BulkCopyOps.cpp - cp.async.bulk and tensor copies ------------------===//
//
// A bulk copy is cut into pieces of at most 16 bytes, the unit of swizzling.
// Loads signal an mbarrier when their bytes are there and are stamped with the
// barrier's actor and phase. Stores belong to the bulk groups of their thread:
// their reads and their writes are published separately, because
// wait_group.read promises the former only.
//
//===----------------------------------------------------------------------===//

#include "../Instructions/MemoryTraffic.h"
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

/// What one lane asks for. Each step is false after a fault.
class BulkRequest {
public:
  BulkRequest(Exec &x, const Inst &I, unsigned lane);
  /// Checks the request and hands the copy to the engine.
  void start();

private:
  bool isLoad() const { return aux.kind == BulkAux::Load; }
  bool isStore() const { return aux.kind == BulkAux::Store; }
  bool isGlobal() const { return aux.kind != BulkAux::SharedToShared; }
  uint64_t address(unsigned i, int64_t displacement) const;
  uint64_t sharedAddress(unsigned i, int64_t displacement) const;
  bool fail(FindingKind kind, const Twine &message) {
    x.fault(kind, message, lane);
    return false;
  }

  bool findShared();
  /// Cuts the box of a tensor map, or a range of bytes, into pieces.
  bool cutTensor();
  bool cutRange();
  /// Whether `bytes` bytes at a shared address lie in the CTA's memory.
  bool checkShared(const Cta &cta, uint64_t address, uint64_t bytes);
  bool checkBounds();
  /// Whether a box without an element in its tensor may be loaded.
  bool checkAbsentBox(const TensorMapInfo &map);
  /// Destinations and their barriers.
  bool findTargets();
  bool addTarget(unsigned rank, uint32_t barrier, Cta *barrierCta);
  void count();
  bool trackAll();
  bool trackStore();
  void trackLoad();
  /// Reports mbarriers of the CTA that the copy writes over.
  void checkOverlap(Cta &cta);
  /// The tensor map, which the copy reads when it reads its source.
  void trackMap(Stamp stamp);
  Stamp stamp(uint16_t actor, uint32_t epoch) const;
  /// Stamps a copy that signals the target's barrier.
  Stamp stamp(const Target &target) const;
  /// The part of a piece in global memory; no allocation where there is none.
  MemRef globalPart(const Piece &piece) const;

  Exec &x;
  const Inst &I;
  const BulkAux &aux;
  unsigned lane;
  std::unique_ptr<BulkOp> op = std::make_unique<BulkOp>();
  /// The operand in shared memory: the destination of loads.
  uint32_t sharedSide = 0;
  Cta *sharedCta = nullptr;
  MemRef mapRef; ///< of tensor copies
};

BulkRequest::BulkRequest(Exec &x, const Inst &I, unsigned lane)
    : x(x), I(I), aux(*static_cast<const BulkAux *>(I.aux)), lane(lane) {
  op->inst = x.pc;
  op->issuer = x.warp;
  op->control = controlOf(x);
  op->aux = &aux;
  op->lane = lane;
}

uint64_t BulkRequest::address(unsigned i, int64_t displacement) const {
  uint64_t v = x.read(I.ops[i], lane) + displacement;
  return I.ops[i].cls == RegClass::R32 ? uint32_t(v) : v;
}

uint64_t BulkRequest::sharedAddress(unsigned i, int64_t displacement) const {
  uint64_t v = address(i, displacement);
  return v >= SharedWindow && v < SharedWindow + WindowSize ? v - SharedWindow
                                                            : v;
}

bool BulkRequest::findShared() {
  sharedSide =
      isStore() ? sharedAddress(1, int64_t(I.imm2)) : sharedAddress(0, I.imm);
  uint32_t rank = sharedSide >> 24;
  if (rank >= x.cluster.ctas.size())
    return fail(FindingKind::OutOfBounds,
                "a bulk copy names a CTA that the cluster does not have");
  sharedCta = x.cluster.ctas[rank].get();
  return true;
}

bool BulkRequest::checkShared(const Cta &cta, uint64_t address,
                              uint64_t bytes) {
  uint64_t offset = address & 0xffffff;
  if (offset >= SharedBase && offset - SharedBase + bytes <= cta.shared.size())
    return true;
  return fail(FindingKind::OutOfBounds,
              llvm::formatv("a bulk copy of {0} bytes leaves the {1} bytes of "
                            "the CTA's shared memory",
                            bytes, cta.shared.size()));
}

bool BulkRequest::cutTensor() {
  uint64_t mapAddress =
      isLoad() ? address(1, int64_t(I.imm2)) : address(0, I.imm);
  if (!x.resolve(Space::Generic, mapAddress, 128, 64, false, lane, mapRef))
    return false;
  auto map = decodeTensorMap(llvm::ArrayRef(mapRef.data, 128));
  if (!map)
    return fail(FindingKind::InvalidOperation, llvm::toString(map.takeError()));
  if (map->rank != (aux.gather ? 2 : aux.rank))
    return fail(FindingKind::InvalidOperation,
                "expected a tensor map of rank " + Twine(aux.rank) + ", got " +
                    Twine(map->rank));
  if (aux.gather && map->box[1] != 1)
    return fail(FindingKind::InvalidOperation,
                "expected a box of one row for rows that lie apart, got " +
                    Twine(map->box[1]));
  if (sharedSide & 127)
    return fail(FindingKind::Misaligned,
                "expected shared memory aligned to 128 bytes");
  int64_t coords[5];
  for (unsigned i = 0; i < (aux.gather ? 5 : aux.rank); ++i)
    coords[i] = int32_t(x.r32(I.ops[5 + i])[lane]);
  // Else an illegal instruction on an H200, whatever type and swizzle.
  int64_t bits = getElementBits(map->element);
  if (isLoad() && !aux.gather && bits >= 8 && coords[0] * bits % 128 != 0)
    return fail(FindingKind::Misaligned,
                "expected the first coordinate of a tensor load to be a "
                "multiple of " +
                    Twine(128 / bits) + ", 16 bytes, got " + Twine(coords[0]));
  if (!checkShared(*sharedCta, sharedSide, getBoxBytes(*map, aux.gather)))
    return false;
  cutBox(*map, coords, aux.gather, sharedSide & 0xffffff, op->pieces,
         op->totalBytes);
  op->nanFill = map->nanFill;
  op->elementType = elementTypeOf(map->element);
  return !isLoad() || checkAbsentBox(*map);
}

bool BulkRequest::checkAbsentBox(const TensorMapInfo &map) {
  // An illegal access on an H200 (docs/Simulator.md).
  if (x.machine.memory.find(map.address, 16) ||
      llvm::any_of(op->pieces, [](const Piece &p) { return p.first < p.last; }))
    return true;
  return fail(FindingKind::OutOfBounds,
              llvm::formatv("a tensor load has no element inside of its tensor "
                            "map, and the map's address {0:x} is outside of "
                            "every allocation",
                            map.address));
}

bool BulkRequest::cutRange() {
  uint32_t size = x.r32(I.ops[4])[lane];
  uint64_t other = isStore()  ? address(0, I.imm)
                   : isLoad() ? address(1, int64_t(I.imm2))
                              : sharedAddress(1, int64_t(I.imm2));
  if (size % 16 || other % 16 || sharedSide % 16)
    return fail(FindingKind::Misaligned,
                "expected addresses and size of a bulk copy to be "
                "multiples of 16");
  // Of what fits there are few pieces, whatever the size says.
  if (!checkShared(*sharedCta, sharedSide, size))
    return false;
  if (!isGlobal()) {
    if (other >> 24 != x.cta->rank)
      return fail(FindingKind::OutOfBounds,
                  "expected the source of a bulk copy in the shared memory of "
                  "the executing CTA");
    if (!checkShared(*x.cta, other, size))
      return false;
  }
  op->totalBytes = size;
  op->elementType = aux.type;
  for (uint32_t b = 0; b < size; b += 16) {
    Piece p;
    p.global = other + b;
    p.shared = (sharedSide & 0xffffff) + b;
    op->pieces.push_back(p);
  }
  if (isGlobal())
    return true;
  // Shared to shared: the source is this CTA's, pieces go across.
  for (Piece &p : op->pieces) {
    uint32_t to = p.shared - SharedBase;
    p.shared = uint32_t(p.global & 0xffffff);
    p.global = to;
  }
  op->source = x.cta;
  return true;
}

bool BulkRequest::checkBounds() {
  for (Piece &p : op->pieces) {
    // A swizzle moves bytes within rows that may be larger than the box's.
    if (!checkShared(isGlobal() ? *sharedCta : *op->source, p.shared, p.bytes))
      return false;
    p.shared -= SharedBase;
    if (!isGlobal() || p.first >= p.last ||
        x.machine.memory.find(p.global + p.first, p.last - p.first))
      continue;
    if (const FreedAllocation *freed =
            x.machine.memory.findFreed(p.global + p.first))
      return fail(FindingKind::UseAfterFree,
                  llvm::formatv("a bulk copy touches global address {0:x} of "
                                "'{1}', which was freed",
                                p.global + p.first, freed->name));
    return fail(FindingKind::OutOfBounds,
                llvm::formatv("a bulk copy touches global address "
                              "{0:x}, outside of every allocation",
                              p.global + p.first));
  }
  return true;
}

bool BulkRequest::addTarget(unsigned rank, uint32_t barrier, Cta *barrierCta) {
  if (rank >= x.cluster.ctas.size())
    return fail(FindingKind::OutOfBounds,
                "the multicast mask names a CTA that the cluster does "
                "not have");
  Target t;
  t.cta = x.cluster.ctas[rank].get();
  t.barrier = (barrier & 0xffffff) - SharedBase;
  t.barrierCta = barrierCta;
  if (aux.multicast)
    t.barrierCta =
        aux.pair ? x.cluster.ctas[(rank & ~1u) | (barrierCta->rank & 1)].get()
                 : t.cta;
  if (!aux.pair && t.barrierCta != t.cta)
    return fail(FindingKind::MbarrierMisuse,
                "expected the mbarrier in the CTA of the destination");
  if (t.cta->exited || t.barrierCta->exited)
    return fail(FindingKind::ExitInFlight,
                "a bulk copy is sent to a CTA that has exited");
  if (t.barrierCta != barrierCta &&
      !findMbarrier(x, t.barrierCta->rank << 24 | (barrier & 0xffffff), lane,
                    nullptr))
    return false;
  op->targets.push_back(t);
  return true;
}

bool BulkRequest::findTargets() {
  if (isStore()) {
    op->source = sharedCta;
    return true;
  }
  uint32_t barrier = sharedAddress(2, int64_t(I.flags));
  Cta *barrierCta = nullptr;
  if (!findMbarrier(x, barrier, lane, &barrierCta))
    return false;
  uint32_t mask =
      aux.multicast ? x.r32(I.ops[3])[lane] & 0xffff : 1u << sharedCta->rank;
  bool ok = true;
  forLanes(mask, [&](unsigned rank) {
    ok = ok && addTarget(rank, barrier, barrierCta);
  });
  return ok;
}

void BulkRequest::count() {
  if (isGlobal())
    countL2(x.cluster.counters.l2, *op);
  (isStore() ? x.cluster.counters.bulkStoreBytes
             : x.cluster.counters.bulkLoadBytes) += op->totalBytes;
}

Stamp BulkRequest::stamp(uint16_t actor, uint32_t epoch) const {
  Stamp s = x.stampHere(lane);
  s.actor = actor;
  s.epoch = epoch;
  s.flags = Stamp::Async | Stamp::AsyncProxy;
  return s;
}

Stamp BulkRequest::stamp(const Target &target) const {
  const Mbarrier &b = target.barrierCta->mbarriers.at(target.barrier);
  return stamp(signalActor(b, *target.barrierCta, *x.cta), phaseEpoch(b));
}

MemRef BulkRequest::globalPart(const Piece &piece) const {
  MemRef ref;
  ref.space = Space::Global;
  ref.address = piece.global + piece.first;
  if (piece.first < piece.last && isGlobal())
    ref.allocation =
        x.machine.memory.find(ref.address, piece.last - piece.first);
  return ref;
}

bool BulkRequest::trackStore() {
  uint32_t epoch = ++x.warp->bulk.epoch;
  const BulkState &bulk = x.warp->bulk;
  Stamp write = stamp(bulk.writeActor, epoch);
  if (aux.reduce)
    write.flags |= Stamp::Strong;
  trackMap(stamp(bulk.actor, epoch));
  AsyncTracker reads(x, stamp(bulk.actor, epoch), sharedCta, /*write=*/false);
  AsyncTracker writes(x, write, nullptr, /*write=*/true);
  for (const Piece &piece : op->pieces) {
    reads.touchShared(piece.shared, piece.bytes);
    MemRef to = globalPart(piece);
    if (!to.allocation)
      continue;
    if (to.allocation->access == Access::Read)
      return fail(FindingKind::ReadOnlyWrite,
                  "writes an allocation that is read-only");
    writes.touch(to, piece.last - piece.first);
  }
  return true;
}

void BulkRequest::trackMap(Stamp stamp) {
  if (!mapRef.data)
    return;
  // Maps are written by generic accesses, and fences of their own proxy hand
  // them over.
  stamp.flags = Stamp::Async;
  trackAs(x, stamp, x.warp->order.know.generic, mapRef, 128, /*write=*/false);
}

void BulkRequest::trackLoad() {
  // Read now or later: until the barrier's phase completes.
  Stamp read = stamp(op->targets.front());
  trackMap(read);
  AsyncTracker reads(x, read, op->source, /*write=*/false);
  for (const Piece &piece : op->pieces) {
    if (op->source)
      reads.touchShared(piece.shared, piece.bytes);
    else if (MemRef from = globalPart(piece); from.allocation)
      reads.touch(from, piece.last - piece.first);
  }
  for (const Target &target : op->targets) {
    Stamp write = stamp(target);
    if (aux.reduce)
      write.flags |= Stamp::Strong;
    AsyncTracker writes(x, write, target.cta, /*write=*/true);
    for (const Piece &piece : op->pieces)
      writes.touchShared(isLoad() ? piece.shared : uint32_t(piece.global),
                         piece.bytes);
    checkOverlap(*target.cta);
  }
}

void BulkRequest::checkOverlap(Cta &cta) {
  auto getOffset = [&](const Piece &piece) {
    return isLoad() ? piece.shared : uint32_t(piece.global);
  };
  uint32_t first = ~0u, end = 0;
  for (const Piece &piece : op->pieces) {
    first = std::min(first, getOffset(piece));
    end = std::max(end, getOffset(piece) + piece.bytes);
  }
  auto near = cta.mbarriers.lower_bound(first - std::min(first, 7u));
  if (near == cta.mbarriers.end() || near->first >= end)
    return;
  for (const Piece &piece : op->pieces) {
    MemRef ref;
    ref.space = Space::Shared;
    ref.cta = &cta;
    ref.offset = getOffset(piece);
    ref.address = ref.offset + SharedBase;
    checkMbarrierOverlap(x, ref, piece.bytes, lane);
  }
}

bool BulkRequest::trackAll() {
  if (!x.sanitizing())
    return true;
  if (isStore())
    return trackStore();
  trackLoad();
  return true;
}

void BulkRequest::start() {
  for (unsigned i = 0; i < I.numOps; ++i)
    if (I.ops[i].cls != RegClass::Sink && x.poison[I.ops[i].meta] >> lane & 1)
      x.checkPoison(I.ops[i], "an operand of a bulk copy");
  if (!isGlobal() &&
      !checkClusterLaunch(x, "a copy to shared memory of the cluster"))
    return;
  if (!findShared() || !(aux.rank ? cutTensor() : cutRange()) ||
      !checkBounds() || !findTargets())
    return;
  count();
  if (!trackAll())
    return;
  const LaunchConfig &config = x.machine.config;
  if (decideNow(x.cluster, config.asyncReads))
    op->read(x.cluster);
  if (config.asyncWrites == AsyncTiming::Issue && !isStore()) {
    op->complete(x.cluster);
    x.cluster.advance();
    return;
  }
  x.cluster.engine.push_back(std::move(op));
}

/// Without lanes that store the same bytes to the same place as an earlier one:
/// compilers leave the election out here, since repeating the store changes
/// nothing.
uint32_t dropRepeated(const Exec &x, const Inst &I) {
  uint32_t lanes = x.active;
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
  return lanes;
}

void execBulk(Exec &x, const Inst &I) {
  const auto &aux = *static_cast<const BulkAux *>(I.aux);
  bool mayRepeat = aux.kind == BulkAux::Store && !aux.reduce;
  forLanes(mayRepeat ? dropRepeated(x, I) : x.active, [&](unsigned lane) {
    if (x.action != Action::Fault)
      BulkRequest(x, I, lane).start();
  });
}

} // namespace

/// What is copied, and how: the qualifiers but for the completion mechanism.
static Error takeShape(Decoding &c, BulkAux &o, bool isTensor) {
  for (unsigned r = 1; r <= 5 && isTensor; ++r)
    if (c.take(std::to_string(r) + "d"))
      o.rank = r;
  if (isTensor && !o.rank)
    return c.error("expected a rank");
  c.take("tile");
  if (c.take("tile::gather4") || c.take("tile::scatter4"))
    o.gather = true;
  o.multicast = c.take("multicast::cluster");
  o.pair = c.take("cta_group::2");
  c.take("cta_group::1");
  c.takeCacheHints();
  if (!o.reduce)
    return Error::success();
  StringRef name =
      c.takeAny({"add", "min", "max", "inc", "dec", "and", "or", "xor"});
  if (!parseAtomicOp(name, o.op))
    return c.error("expected a reduction");
  c.take("noftz");
  if (!isTensor)
    o.type = c.takeType();
  return Error::success();
}

/// From where to where; the first space named is the destination's.
static BulkAux::Kind takeDirection(Decoding &c) {
  StringRef to, from;
  for (StringRef mod : c.ast.mods)
    if (mod == "global" || mod.starts_with("shared"))
      (to.empty() ? to : from) = mod;
  c.takeAny({"global"});
  for (int i = 0; i < 2; ++i)
    c.takeAny({"shared::cta", "shared::cluster", "shared"});
  return to == "global"     ? BulkAux::Store
         : from == "global" ? BulkAux::Load
                            : BulkAux::SharedToShared;
}

static Error takeOperands(Decoding &c, const BulkAux &o) {
  const auto &ops = c.ast.ops;
  bool isTensor = o.rank, isStore = o.kind == BulkAux::Store;
  size_t least = (isStore ? 2 : 3) + (isTensor ? 0 : 1);
  ATTN_SIM_TRY(c.expectOps(least, least + 2));
  int64_t displacement;
  ATTN_SIM_TRY(c.address(ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.address(ops[1], displacement));
  c.inst.imm2 = displacement;
  size_t next = 2;
  Operand sizeOp;
  if (!isTensor) {
    ATTN_SIM_TRY(c.src(ops[next++], Type::U32));
    sizeOp = c.ops.back();
    c.ops.pop_back();
  }
  if (isStore) {
    c.none();
  } else {
    ATTN_SIM_TRY(c.address(ops[next++], displacement));
    c.inst.flags = uint32_t(displacement);
  }
  if (o.multicast) {
    if (next >= ops.size())
      return c.error("expected a multicast mask");
    ATTN_SIM_TRY(c.srcWide(ops[next++], Type::B16));
  } else {
    c.none();
  }
  c.ops.push_back(sizeOp);
  if (!isTensor)
    return Error::success();
  const AstOperand &map = ops[isStore ? 0 : 1];
  if (map.kind != AstOperand::Address || map.elems.size() < 2 ||
      map.elems[1].kind != AstOperand::Vector)
    return c.error("expected coordinates");
  unsigned want = o.gather ? 5 : o.rank;
  if (map.elems[1].elems.size() != want)
    return c.error("expected " + Twine(want) + " coordinates, got " +
                   Twine(map.elems[1].elems.size()));
  for (const AstOperand &coordinate : map.elems[1].elems)
    ATTN_SIM_TRY(c.src(coordinate, Type::S32));
  return Error::success();
}

static Error decodeBulkCopy(Decoding &c) {
  c.take("bulk");
  c.program().usesAsyncProxy = true;
  if (c.take("commit_group")) {
    ATTN_SIM_TRY(c.expectOps(0, 0));
    return c.set(execBulkCommit, InstClass::Bulk);
  }
  if (c.take("wait_group")) {
    c.inst.flags = c.take("read");
    ATTN_SIM_TRY(c.expectOps(1, 1));
    ATTN_SIM_TRY(c.immediate(c.ast.ops[0], c.inst.imm));
    return c.set(execBulkWait, InstClass::Bulk);
  }
  if (c.take("prefetch")) {
    c.mods.clear();
    return c.set([](Exec &, const Inst &) {}, InstClass::Bulk);
  }
  auto *o = c.makeAux<BulkAux>();
  o->reduce = c.take("reduce");
  bool barrier = c.take("mbarrier::complete_tx::bytes");
  bool group = c.take("bulk_group");
  ATTN_SIM_TRY(takeShape(c, *o, c.take("tensor")));
  o->kind = takeDirection(c);
  bool isStore = o->kind == BulkAux::Store;
  if (isStore && o->reduce)
    c.program().communicates = true;
  if (isStore ? !group || barrier : !barrier || group)
    return c.error("expected the completion mechanism of this direction");
  c.program().sharedGranule = std::min(c.program().sharedGranule, 16u);
  c.program().globalGranule = std::min(c.program().globalGranule, 16u);
  ATTN_SIM_TRY(takeOperands(c, *o));
  return c.set(execBulk, InstClass::Bulk);
}

void mlir::attn::sim::registerBulkCopyOps(DecodeTable &table) {
  table["cp.async.bulk"] = decodeBulkCopy;
}
