//===- Resolve.cpp - From addresses to bytes ------------------------------===//

#include "Exec.h"

using namespace mlir::attn::sim;
using llvm::StringRef;
using llvm::Twine;

bool Exec::resolve(Space space, uint64_t address, uint64_t bytes,
                   unsigned align, bool write, int lane, MemRef &ref) {
  ref.address = address;
  StringRef verb = write ? "writes" : "reads";
  if (space == Space::Generic) {
    if (address >= SharedWindow && address < SharedWindow + WindowSize) {
      space = Space::Shared;
      address -= SharedWindow;
    } else if (address >= LocalWindow && address < LocalWindow + WindowSize) {
      space = Space::Local;
      address -= LocalWindow;
    } else if (address >= ParamWindow && address < ParamWindow + WindowSize) {
      space = Space::Param;
      address -= ParamWindow;
    } else {
      space = Space::Global;
    }
  }
  ref.space = space;
  auto fail = [&](FindingKind kind, const Twine &message, StringRef where,
                  uint64_t offset, StringRef buffer = "") {
    Finding f;
    f.kind = kind;
    f.message = message.str();
    f.second = here(lane);
    f.space = where.str();
    f.buffer = buffer.str();
    f.offset = offset;
    f.address = ref.address;
    f.bytes = bytes;
    fault(std::move(f));
    return false;
  };
  if (address & (align - 1))
    return fail(FindingKind::Misaligned,
                verb + " " + Twine(bytes) +
                    " bytes at an address that is not a "
                    "multiple of " +
                    Twine(align),
                "address", address);
  switch (space) {
  case Space::Shared: {
    uint32_t rank = address >> 24;
    int64_t offset = int64_t(address & 0xffffff) - SharedBase;
    if (address >> 32 || rank >= cluster.ctas.size())
      return fail(FindingKind::OutOfBounds,
                  verb + " shared memory of a CTA that the cluster does not "
                         "have",
                  "shared", address);
    Cta *owner = cluster.ctas[rank].get();
    if (offset < 0 || offset + bytes > owner->shared.size())
      return fail(FindingKind::OutOfBounds,
                  verb + " " + Twine(bytes) + " bytes outside of the CTA's " +
                      Twine(owner->shared.size()) + " bytes of shared memory",
                  "shared", offset);
    if (owner->exited && owner != cta)
      return fail(FindingKind::ExitInFlight,
                  verb + " shared memory of a CTA that has exited", "shared",
                  offset);
    ref.cta = owner;
    ref.offset = offset;
    ref.data = owner->shared.data() + offset;
    ref.valid = owner->sharedValid.data() + offset;
    return true;
  }
  case Space::Local: {
    uint64_t size = machine.program.localBytes;
    if (address > size || bytes > size - address)
      return fail(FindingKind::OutOfBounds,
                  verb + " " + Twine(bytes) +
                      " bytes outside of the thread's " + Twine(size) +
                      " bytes of local memory",
                  "local", address);
    ref.offset = address;
    ref.data = warp->local.bytes.data() + lane * size + address;
    ref.valid = warp->local.valid.data() + lane * size + address;
    return true;
  }
  case Space::Param:
    if (write)
      return fail(FindingKind::ReadOnlyWrite, "writes a kernel parameter",
                  "param", address);
    if (address > machine.params.size() ||
        bytes > machine.params.size() - address)
      return fail(FindingKind::OutOfBounds,
                  "reads outside of the kernel's parameters", "param", address);
    ref.offset = address;
    ref.data = machine.params.data() + address;
    ref.valid = nullptr;
    return true;
  default:
    break;
  }
  Allocation *a = lastAllocation;
  if (!a || address < a->address || address - a->address > a->bytes.size() ||
      bytes > a->bytes.size() - (address - a->address)) {
    a = machine.memory.find(address, bytes);
    if (!a) {
      const Allocation *near = machine.memory.findNear(address);
      if (!near)
        return fail(FindingKind::OutOfBounds,
                    verb + " " + Twine(bytes) +
                        " bytes at an address outside of every allocation",
                    "global", address);
      return fail(FindingKind::OutOfBounds,
                  verb + " " + Twine(bytes) +
                      " bytes outside of every "
                      "allocation; the nearest below has " +
                      Twine(near->bytes.size()) + " bytes",
                  "global", address - near->address, near->name);
    }
    lastAllocation = a;
  }
  ref.allocation = a;
  ref.offset = address - a->address;
  if (write && a->access == Access::Read)
    return fail(FindingKind::ReadOnlyWrite,
                "writes an allocation that is read-only", "global", ref.offset,
                a->name);
  ref.data = a->bytes.data() + ref.offset;
  ref.valid = a->valid.data() + ref.offset;
  return true;
}
