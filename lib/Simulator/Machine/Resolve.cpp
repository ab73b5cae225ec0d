//===- Resolve.cpp - From addresses to bytes ------------------------------===//

#include "Exec.h"

using namespace mlir::attn::sim;
using llvm::StringRef;
using llvm::Twine;

namespace {

/// The search for the bytes of one access; what is wrong stops the launch.
struct Resolver {
  Exec &x;
  uint64_t bytes;
  bool write;
  int lane;
  MemRef &ref;

  StringRef verb() const { return write ? "writes" : "reads"; }
  bool fail(FindingKind kind, const Twine &message, StringRef where,
            uint64_t offset, StringRef buffer = "");
  bool failFreed(const FreedAllocation &freed);
  bool shared(uint64_t address);
  bool local(uint64_t address);
  bool parameter(uint64_t address);
  bool global(uint64_t address);
};

} // namespace

bool Resolver::fail(FindingKind kind, const Twine &message, StringRef where,
                    uint64_t offset, StringRef buffer) {
  Finding f;
  f.kind = kind;
  f.message = message.str();
  f.second = x.here(lane);
  f.space = where.str();
  f.buffer = buffer.str();
  f.offset = offset;
  f.address = ref.address;
  f.bytes = bytes;
  x.fault(std::move(f));
  return false;
}

bool Resolver::failFreed(const FreedAllocation &freed) {
  std::string by = freed.where.empty() ? "" : " by " + freed.where;
  return fail(FindingKind::UseAfterFree,
              verb() + " " + Twine(bytes) + " bytes of memory that was freed" +
                  by + "; it had " + Twine(freed.size) + " bytes",
              "global", ref.address - freed.address, freed.name);
}

bool Resolver::shared(uint64_t address) {
  uint32_t rank = address >> 24;
  int64_t offset = int64_t(address & 0xffffff) - SharedBase;
  if (address >> 32 || rank >= x.cluster.ctas.size())
    return fail(FindingKind::OutOfBounds,
                verb() + " shared memory of a CTA that the cluster does not "
                         "have",
                "shared", address);
  Cta *owner = x.cluster.ctas[rank].get();
  if (offset < 0 || offset + bytes > owner->shared.size())
    return fail(FindingKind::OutOfBounds,
                verb() + " " + Twine(bytes) + " bytes outside of the CTA's " +
                    Twine(owner->shared.size()) + " bytes of shared memory",
                "shared", offset);
  if (owner->exited && owner != x.cta)
    return fail(FindingKind::ExitInFlight,
                verb() + " shared memory of a CTA that has exited", "shared",
                offset);
  ref.cta = owner;
  ref.offset = offset;
  ref.data = owner->shared.data() + offset;
  ref.valid = owner->sharedValid.data() + offset;
  return true;
}

bool Resolver::local(uint64_t address) {
  uint64_t size = x.machine.program.localBytes;
  if (address > size || bytes > size - address)
    return fail(FindingKind::OutOfBounds,
                verb() + " " + Twine(bytes) +
                    " bytes outside of the thread's " + Twine(size) +
                    " bytes of local memory",
                "local", address);
  ref.offset = address;
  ref.data = x.warp->local.bytes.data() + lane * size + address;
  ref.valid = x.warp->local.valid.data() + lane * size + address;
  return true;
}

bool Resolver::parameter(uint64_t address) {
  std::vector<uint8_t> &params = x.machine.params;
  if (write)
    return fail(FindingKind::ReadOnlyWrite, "writes a kernel parameter",
                "param", address);
  if (address > params.size() || bytes > params.size() - address)
    return fail(FindingKind::OutOfBounds,
                "reads outside of the kernel's parameters", "param", address);
  ref.offset = address;
  ref.data = params.data() + address;
  ref.valid = nullptr;
  return true;
}

bool Resolver::global(uint64_t address) {
  Allocation *a = x.lastAllocation;
  if (!a || !a->contains(address, bytes)) {
    a = x.machine.memory.find(address, bytes);
    if (!a) {
      if (const FreedAllocation *freed = x.machine.memory.findFreed(address))
        return failFreed(*freed);
      const Allocation *near = x.machine.memory.findNear(address);
      if (!near)
        return fail(FindingKind::OutOfBounds,
                    verb() + " " + Twine(bytes) +
                        " bytes at an address outside of every allocation",
                    "global", address);
      return fail(FindingKind::OutOfBounds,
                  verb() + " " + Twine(bytes) +
                      " bytes outside of every "
                      "allocation; the nearest below has " +
                      Twine(near->size()) + " bytes",
                  "global", address - near->address, near->name);
    }
    x.lastAllocation = a;
  }
  ref.allocation = a;
  ref.offset = address - a->address;
  if (write && a->access == Access::Read)
    return fail(FindingKind::ReadOnlyWrite,
                "writes an allocation that is read-only", "global", ref.offset,
                a->name);
  ref.data =
      write ? a->startWrite(ref.offset, bytes) : a->storage.bytes + ref.offset;
  ref.valid = a->validAt(ref.offset);
  return true;
}

/// The space that a generic address is in, which becomes an address there.
static Space takeWindow(uint64_t &address) {
  for (auto [window, space] : {std::make_pair(SharedWindow, Space::Shared),
                               std::make_pair(LocalWindow, Space::Local),
                               std::make_pair(ParamWindow, Space::Param)})
    if (address >= window && address < window + WindowSize) {
      address -= window;
      return space;
    }
  return Space::Global;
}

bool Exec::resolve(Space space, uint64_t address, uint64_t bytes,
                   unsigned align, bool write, int lane, MemRef &ref) {
  ref.address = address;
  if (space == Space::Generic)
    space = takeWindow(address);
  ref.space = space;
  Resolver resolver{*this, bytes, write, lane, ref};
  if (address & (align - 1))
    return resolver.fail(FindingKind::Misaligned,
                         resolver.verb() + " " + Twine(bytes) +
                             " bytes at an address that is not a "
                             "multiple of " +
                             Twine(align),
                         "address", address);
  switch (space) {
  case Space::Shared:
    return resolver.shared(address);
  case Space::Local:
    return resolver.local(address);
  case Space::Param:
    return resolver.parameter(address);
  default:
    return resolver.global(address);
  }
}
