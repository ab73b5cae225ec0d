//===- BulkStoreOps.cpp - st.bulk -----------------------------------------===//

#include "../Sanitizer/Races.h"
#include "MemoryTraffic.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;

// ops: address, size.
static void execBulkStore(Exec &x, const Inst &I) {
  x.checkPoison(I.ops[0], "an address");
  x.checkPoison(I.ops[1], "the size of a st.bulk");
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    uint64_t address = x.read(I.ops[0], lane) + I.imm;
    uint64_t bytes = x.read(I.ops[1], lane);
    if (I.ops[0].cls == RegClass::R32)
      address = uint32_t(address);
    else if (address >= SharedWindow && address < SharedWindow + WindowSize)
      address -= SharedWindow;
    if (bytes % 8 || bytes > 16777216)
      return x.fault(FindingKind::InvalidOperation,
                     "expected a size that is a multiple of 8 up to 16777216, "
                     "got " +
                         llvm::Twine(bytes),
                     lane);
    for (uint64_t at = 0; at < bytes; at += 8) {
      MemRef ref;
      if (!x.resolve(Space::Shared, address + at, 8, 8, true, lane, ref))
        return;
      track(x, ref, 8, true, 0, lane);
      checkMbarrierOverlap(x, ref, 8, lane);
      std::memset(ref.data, 0, 8);
      std::memset(ref.valid, 1, 8);
    }
  });
}

static Error decodeBulkStore(Decoding &c) {
  c.take("weak");
  c.take("shared::cta");
  int64_t value;
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.srcWide(c.ast.ops[1], Type::B32));
  ATTN_SIM_TRY(c.immediate(c.ast.ops[2], value));
  if (value)
    return c.error("expected the value 0, got " + llvm::Twine(value));
  c.program().sharedGranule = std::min(c.program().sharedGranule, 8u);
  return c.set(execBulkStore, InstClass::StShared);
}

void mlir::attn::sim::registerBulkStoreOps(DecodeTable &table) {
  table["st.bulk"] = decodeBulkStore;
}
