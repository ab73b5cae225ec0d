//===- Descales.cpp - What units of queries, keys and values stand for ----===//

#include "AttentionEmitter.h"

using namespace mlir;
using namespace mlir::attn;

Value AttentionEmitter::emitDescale(StringRef name, Value head) {
  Type type = context.getTensor(name).elementType;
  Value address = context.getPointer(name);
  auto advance = [&](Value index, unsigned dim) {
    Value distance = arith::MulIOp::create(b, context.widen(index),
                                           context.getStride(name, dim));
    address = LLVM::GEPOp::create(b, address.getType(), type, address,
                                  ValueRange{distance});
  };
  // A sum of both would be one for k and v, and be kept through the loop.
  advance(at.batch, 0);
  advance(head, 1);
  return LLVM::LoadOp::create(b, type, address, /*alignment=*/4);
}

void AttentionEmitter::emitScoreDescale() {
  if (!facts.kDescale)
    return;
  Value ofQueries =
      facts.qDescale ? emitDescale("q_descale", at.head) : Value();
  scoreDescale = emitDescale("k_descale", at.kvHead);
  if (ofQueries)
    scoreDescale = arith::MulFOp::create(b, ofQueries, scoreDescale);
}

void AttentionEmitter::emitValueDescale() {
  if (facts.vDescale)
    valueDescale = emitDescale("v_descale", at.kvHead);
}
