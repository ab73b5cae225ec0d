//===- BulkCopy.cpp - A bulk copy in flight -------------------------------===//

#include "BulkCopy.h"
#include "EngineOps.h"

using namespace mlir::attn::sim;

void BulkOp::read(Cluster &cluster) {
  if (dataRead)
    return;
  dataRead = true;
  data.assign(pieces.size() * 16, 0);
  valid.assign(pieces.size() * 16, 1);
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece &p = pieces[i];
    uint8_t *d = data.data() + 16 * i, *v = valid.data() + 16 * i;
    if (source) {
      std::memcpy(d, source->shared.data() + p.shared, p.bytes);
      std::memcpy(v, source->sharedValid.data() + p.shared, p.bytes);
      continue;
    }
    if (nanFill && elementType != Type::None) {
      uint64_t nan = elementType == Type::F32 ? 0x7fffffff7fffffffull
                                              : 0x7fff7fff7fff7fffull;
      std::memcpy(d, &nan, 8);
      std::memcpy(d + 8, &nan, 8);
    }
    if (p.first >= p.last)
      continue;
    Allocation *a =
        cluster.machine->memory.find(p.global + p.first, p.last - p.first);
    if (!a)
      continue;
    uint64_t at = p.global + p.first - a->address;
    std::memcpy(d + p.first, a->storage.bytes + at, p.last - p.first);
    if (const uint8_t *known = a->validAt(at))
      std::memcpy(v + p.first, known, p.last - p.first);
    else
      std::memset(v + p.first, 1, p.last - p.first);
  }
}

void BulkOp::reduce(size_t piece, unsigned at, unsigned bytes, uint8_t *to,
                    uint8_t *toValid) const {
  uint64_t value = 0;
  std::memcpy(&value, data.data() + 16 * piece + at, bytes);
  const uint8_t *v = valid.data() + 16 * piece + at;
  bool isDefined = std::all_of(v, v + bytes, [](uint8_t b) { return b; });
  applyAtomic(aux->op, elementType, value, isDefined, bytes, to, toValid);
}

void BulkOp::writeGlobal(Cluster &cluster) {
  bool undefined = false;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece &p = pieces[i];
    if (p.first >= p.last)
      continue;
    Allocation *a =
        cluster.machine->memory.find(p.global + p.first, p.last - p.first);
    if (!a)
      continue;
    uint64_t at = p.global + p.first - a->address;
    uint8_t *to = a->startWrite(at, p.last - p.first);
    uint8_t *toValid = a->validAt(at);
    const uint8_t *d = data.data() + 16 * i, *v = valid.data() + 16 * i;
    for (unsigned b = p.first; b < p.last; ++b)
      undefined |= !v[b];
    if (aux->reduce) {
      unsigned size = bitWidth(elementType) / 8;
      for (unsigned b = p.first; b + size <= p.last; b += size)
        reduce(i, b, size, to + (b - p.first),
               toValid ? toValid + (b - p.first) : nullptr);
      continue;
    }
    std::memcpy(to, d + p.first, p.last - p.first);
    if (toValid)
      std::memcpy(toValid, v + p.first, p.last - p.first);
  }
  if (!undefined || !cluster.machine->config.sanitize)
    return;
  Exec x(*cluster.machine, cluster);
  Finding f;
  f.kind = FindingKind::UninitialisedRead;
  f.message = "a bulk copy stores shared memory that was never written, or "
              "holds an undefined value";
  f.second = x.siteOf(inst, issuer->cta, issuer->id, lane);
  cluster.machine->report(std::move(f));
}

TraceWork BulkOp::getWork() const {
  TraceWork work;
  work.kind = TraceWork::Copy;
  for (const Target &target : targets)
    if (target.cta)
      work.ranks.push_back(target.cta->rank);
  work.sharedBytes = totalBytes;
  return work;
}

void BulkOp::complete(Cluster &cluster) {
  read(cluster);
  if (aux->kind == BulkAux::Store)
    return writeGlobal(cluster);
  for (const Target &t : targets) {
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Piece &p = pieces[i];
      uint32_t at =
          (aux->kind == BulkAux::Load ? p.shared : p.global) + t.offset;
      if (aux->reduce) {
        unsigned size = bitWidth(elementType) / 8;
        for (unsigned b = 0; b + size <= p.bytes; b += size)
          reduce(i, b, size, t.cta->shared.data() + at + b,
                 t.cta->sharedValid.data() + at + b);
        continue;
      }
      std::memcpy(t.cta->shared.data() + at, data.data() + 16 * i, p.bytes);
      std::memcpy(t.cta->sharedValid.data() + at, valid.data() + 16 * i,
                  p.bytes);
    }
    signalBytes(cluster, *this, t.barrierCta, t.barrier, totalBytes);
  }
}

Type mlir::attn::sim::elementTypeOf(TensorMapElement e) {
  switch (e) {
  case TensorMapElement::F16:
    return Type::F16;
  case TensorMapElement::BF16:
    return Type::BF16;
  case TensorMapElement::F32:
  case TensorMapElement::F32Ftz:
  case TensorMapElement::TF32:
  case TensorMapElement::TF32Ftz:
    return Type::F32;
  case TensorMapElement::S32:
    return Type::S32;
  case TensorMapElement::U64:
    return Type::U64;
  case TensorMapElement::S64:
    return Type::S64;
  default:
    return Type::U32;
  }
}

/// Rows of a box along the dimensions behind the first.
static std::array<uint64_t, 5> countRows(const TensorMapInfo &map) {
  std::array<uint64_t, 5> counts = {};
  for (unsigned i = 1; i < map.rank; ++i)
    counts[i] = llvm::divideCeil(map.box[i], map.elementStrides[i]);
  return counts;
}

uint64_t mlir::attn::sim::getBoxBytes(const TensorMapInfo &map, bool gather) {
  uint64_t rows = 1;
  for (unsigned i = 1; i < map.rank; ++i)
    rows *= countRows(map)[i];
  return getSharedBytes(map.element, map.box[0]) * (gather ? 4 : rows);
}

void mlir::attn::sim::cutBox(const TensorMapInfo &map,
                             llvm::ArrayRef<int64_t> coords, bool gather,
                             uint32_t shared, std::vector<Piece> &pieces,
                             uint64_t &total) {
  // A piece is 16 bytes of shared memory. Padded elements fill a part of it.
  int64_t bits = getElementBits(map.element);
  uint64_t inner = getSharedBytes(map.element, map.box[0]);
  int64_t pieceBytes = inner == map.box[0] && bits < 8 ? 16 * bits / 8 : 16;
  std::array<uint64_t, 5> counts = countRows(map);
  total = getBoxBytes(map, gather);
  uint64_t rows = total / inner;
  pieces.reserve(total / 16);
  for (uint64_t row = 0; row < rows; ++row) {
    bool inside = true;
    uint64_t address = map.address;
    uint64_t rest = row;
    for (unsigned i = 1; i < map.rank; ++i) {
      int64_t c =
          gather
              ? coords[1 + row]
              : coords[i] + int64_t(rest % counts[i] * map.elementStrides[i]);
      if (!gather)
        rest /= counts[i];
      inside &= c >= 0 && uint64_t(c) < map.dims[i];
      address += uint64_t(c) * map.strides[i];
    }
    for (uint64_t b = 0; b < inner; b += 16) {
      Piece p;
      int64_t start = coords[0] * bits / 8 + int64_t(b) / 16 * pieceBytes;
      int64_t limit = int64_t(map.dims[0] * bits / 8);
      p.global = address + start;
      p.shared =
          uint32_t(swizzleAddress(shared + row * inner + b, map.swizzleBytes));
      if (!inside) {
        p.first = p.last = 0;
      } else {
        p.first = start < 0 ? std::min<int64_t>(16, -start) : 0;
        p.last =
            std::max<int64_t>(0, std::min<int64_t>(pieceBytes, limit - start));
        if (p.first >= p.last)
          p.first = p.last = 0;
      }
      pieces.push_back(p);
    }
  }
}
