//===- MlaWidener.cpp - The warpgroup that widens keys of mla -------------===//

#include "../Tma/Widening.h"
#include "MlaKernel.h"

using namespace mlir;
using namespace mlir::attn;

void MlaKernel::widen() {
  // A slice's cursors stand side by side.
  std::vector<Pipe> narrow, wide;
  for (const LatentSlice &slice : rings.slices) {
    narrow.emplace_back(control, slice.raw.channel, kLatentWidener);
    wide.emplace_back(control, slice.ring.channel, kLatentWidener);
  }
  tiles.forTiles(control, [&] {
    control.forRange(context.i32(0), countTrips(), [&](Value) {
      for (unsigned i : rings.order) {
        const Ring &from = rings.slices[i].raw, &to = rings.slices[i].ring;
        Slot filled = narrow[i].acquire(), free;
        SmallVector<Value> parts = listSlotParts(tile, from.at(filled));
        SmallVector<Value> wideParts;
        Value next = loadNarrowRows(b, parts.front());
        for (auto [number, part] : llvm::enumerate(parts)) {
          Value rows = emitWidened(b, next, tile.getOperandType());
          // A part in registers need not wait.
          if (!free) {
            free = wide[i].acquire();
            wideParts = listSlotParts(tile, to.at(free));
          }
          bool isLast = number + 1 == parts.size();
          // Before the stores, after which no load moves.
          if (hasSimpleLoads() && !isLast)
            next = loadNarrowRows(b, parts[number + 1]);
          LocalStoreOp::create(b, rows, wideParts[number]);
          if (!hasSimpleLoads() && !isLast)
            next = loadNarrowRows(b, parts[number + 1]);
        }
        // One fence for both: it takes longer than the slot waits.
        filled.release();
        free.release();
        narrow[i].advance();
        wide[i].advance();
      }
    });
  });
}
