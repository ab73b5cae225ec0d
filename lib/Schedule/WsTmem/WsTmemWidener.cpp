//===- WsTmemWidener.cpp - The warpgroup of ws_tmem that widens keys ------===//
//
// Both operands of a product have elements of one size. Keys and values of 8
// bits come in rings of their own, slot for slot as those of 16 bits that the
// products read.
//
//===----------------------------------------------------------------------===//

#include "../Tma/Widening.h"
#include "WsTmemKernel.h"

using namespace mlir;
using namespace mlir::attn;

void attn::widenKeys(WsTmemKernel &shared) {
  ImplicitLocOpBuilder &b = shared.b;
  const WsTmemMemory &memory = shared.memory;
  const ProblemFacts &facts = shared.facts;
  KeyPipes narrow(shared.control, memory.rawK, memory.rawV, kTmemWidener);
  KeyPipes wide(shared.control, memory.k, memory.v, kTmemWidener);

  // Widens a slot: the columns of boxes with the first `columns`, all if 0.
  auto widen = [&](const Ring &from, Pipe &loaded, const Ring &to, Pipe &made,
                   int64_t columns) {
    Slot filled = loaded.acquire();
    Value source = from.at(filled);
    if (columns != 0)
      source = narrowSlot(shared.walk, source, columns);
    Value rows = loadNarrowRows(b, source);
    // Rows in registers need not wait.
    Slot free = made.acquire();
    // A box has more columns of 8 bits than of 16.
    Value dest = narrowSlot(shared.walk, to.at(free),
                            cast<BufferType>(source.getType()).getShape()[1]);
    LocalStoreOp::create(b, emitWidened(b, rows, facts.elementType), dest);
    // One fence for both: it takes longer than the slot waits.
    filled.release(), free.release();
    loaded.advance(), made.advance();
  };
  int64_t columns = getSliceColumns(facts, shared.plan);
  auto widenSlices = [&](Value) {
    forSlots(shared, 0, countKeySlices(facts, shared.plan) * columns, columns,
             [&](Value) {
               widen(memory.rawK, narrow.keys(), memory.k, wide.keys(),
                     /*columns=*/0);
             });
  };
  auto widenParts = [&](Value) {
    forSlots(shared, 0, shared.plan.getBlockN(),
             getPartKeys(facts, shared.plan), [&](Value) {
               widen(memory.rawV, narrow.values(), memory.v, wide.values(),
                     getColumnsInSlot(shared));
             });
  };
  shared.forTiles(/*number=*/0, [&] {
    shared.ifBlocks(
        [&] { shared.forOperands(widenSlices, [] {}, widenParts); });
  });
}
