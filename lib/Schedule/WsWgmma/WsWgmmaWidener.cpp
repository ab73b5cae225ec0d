//===- WsWgmmaWidener.cpp - The widener of ws_wgmma -----------------------===//

#include "../Tma/Widening.h"
#include "WsWgmmaKernel.h"

using namespace mlir;
using namespace mlir::attn;

/// Returns a tile of f16 times a number of each row. A number is a power of
/// two, which f16 may not hold without losing digits of the rest, times one
/// from 1 to 2.
static Value emitScaled(ImplicitLocOpBuilder &b, Value tile, Value scales) {
  auto type = cast<RankedTensorType>(tile.getType()),
       rows = cast<RankedTensorType>(scales.getType());
  RankedTensorType words = rows.clone(b.getI32Type());
  auto constant = [&](uint32_t bits) -> Value {
    return arith::ConstantOp::create(
        b, DenseElementsAttr::get(words, b.getI32IntegerAttr(int32_t(bits))));
  };
  Value bits = arith::BitcastOp::create(b, words, scales);
  auto multiply = [&](Value x, Value factor) -> Value {
    Value spread =
        BroadcastOp::create(b, type.clone(b.getF32Type()),
                            arith::BitcastOp::create(b, rows, factor));
    return arith::MulFOp::create(b, x,
                                 arith::TruncFOp::create(b, type, spread));
  };
  constexpr uint32_t kExponent = 0x7f800000, kOne = 0x3f800000;
  Value mantissa = arith::OrIOp::create(
      b, arith::AndIOp::create(b, bits, constant(~kExponent)), constant(kOne));
  Value power = arith::AndIOp::create(b, bits, constant(kExponent));
  return multiply(multiply(tile, power), mantissa);
}

/// Returns scales of the rows of a block, from a view of one column.
static Value loadScales(TileWalk &walk, Value view, Value block) {
  ImplicitLocOpBuilder &b = walk.context.b;
  int64_t blockN = walk.plan.blockN;
  auto layout = BlockedLayoutAttr::get(b.getContext(), /*perThread=*/{1},
                                       kWarpgroupWarps, /*order=*/{0});
  auto type = RankedTensorType::get({blockN}, b.getF32Type(), layout);
  // After the last block, and of a tile without any, those of an own one.
  Value own = arith::MaxSIOp::create(b, block, walk.cluster.begin);
  Value key = arith::MulIOp::create(b, own, walk.context.i32(blockN));
  return GlobalLoadOp::create(b, type, view, key);
}

void attn::widenKeys(TileWalk &walk, Control &control,
                     const WsWgmmaRings &rings,
                     function_ref<void(TileLoopOp)> complete) {
  ImplicitLocOpBuilder &b = walk.context.b;
  KernelContext &context = walk.context;
  AttentionTile &tile = walk.tile;
  const Ring &k = rings.k, &kw = rings.kw, &v = rings.v, &vw = rings.vw;
  Pipe narrowKeys(control, k.channel, kWidener),
      wideKeys(control, kw.channel, kWidener),
      narrowValues(control, v.channel, kWidener),
      wideValues(control, vw.channel, kWidener);

  // Writes the next slot of `from` to the next one of `to` in wider elements,
  // with `scales` of its rows beside it if there is a ring for them, else times
  // these.
  auto widen = [&](const Ring &from, Pipe &narrow, const Ring &to, Pipe &wide,
                   Value scales, Value scaleRing) {
    Slot filled = narrow.acquire();
    Value rows = loadNarrowRows(b, from.at(filled));
    Slot free = wide.acquire();
    Value slot = to.at(free);
    rows = emitWidened(b, rows, tile.getOperandType());
    if (scaleRing)
      LocalStoreOp::create(b, scales, getRowNumbers(b, slot, scaleRing));
    else if (scales)
      rows = emitScaled(b, rows, scales);
    LocalStoreOp::create(b, rows, slot);
    // One fence for both: it takes longer than the slot waits.
    filled.release(), free.release();
    narrow.advance(), wide.advance();
  };

  walk.forTiles(
      control,
      [&] {
        // The scales of the block's keys and values.
        std::optional<Var> keyScales, valueScales;
        Value keyView, valueView, one = context.i32(1);
        if (context.facts.kScales) {
          keyView = tile.source->emitColumnView("k_scales", tile.at, 0);
          valueView = tile.source->emitColumnView("v_scales", tile.at, 0);
        }
        Value trips =
            b.createOrFold<arith::SubIOp>(walk.cluster.end, walk.cluster.begin);
        Value last = arith::SubIOp::create(b, walk.cluster.end, one);
        if (keyView) {
          keyScales.emplace(control, loadScales(walk, keyView, last));
          valueScales.emplace(control, loadScales(walk, valueView, last));
        }
        control.forRange(context.i32(0), trips, [&](Value trip) {
          Value next = arith::SubIOp::create(
              b, arith::SubIOp::create(b, last, trip), one);
          widen(k, narrowKeys, kw, wideKeys,
                keyScales ? keyScales->get() : Value(), rings.keyScales);
          // They arrive while the other tensor is widened.
          if (keyScales)
            *keyScales = loadScales(walk, keyView, next);
          widen(v, narrowValues, vw, wideValues,
                valueScales ? valueScales->get() : Value(),
                /*scaleRing=*/Value());
          if (valueScales)
            *valueScales = loadScales(walk, valueView, next);
        });
      },
      complete);
}
