//===- FindKey.cpp - Keys are looked for by their numbers -----------------===//
//
// A thread that searches for itself reads the ends of eight parts in a step,
// and the threads of a warp those of 128 together: a search waits for memory as
// many times as the number of keys has digits in that base.
//
//===----------------------------------------------------------------------===//

#include "FindKey.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::lowering;

/// Ends of parts of which a thread reads the numbers in a step of the search:
/// of all parts, or of those that it has of the warp's.
static constexpr int64_t kOwnParts = 8, kPartsOfLane = 4;
static constexpr int64_t kLanes = 32;
/// Pairs of neighbours that a thread looks at together to see if they are in
/// order.
static constexpr int64_t kTogether = 16;

static Value emitNumber(ImplicitLocOpBuilder &b, int64_t value) {
  return arith::ConstantIntOp::create(b, value, 32);
}

/// Loads element `index`, i32 or i64, of `base`.
static Value emitLoad(ImplicitLocOpBuilder &b, Type type, Value base,
                      Value index) {
  if (index.getType().isInteger(32))
    index = arith::ExtSIOp::create(b, b.getI64Type(), index);
  Value address =
      LLVM::GEPOp::create(b, base.getType(), type, base, ValueRange{index});
  return LLVM::LoadOp::create(b, type, address,
                              type.getIntOrFloatBitWidth() / 8);
}

//===----------------------------------------------------------------------===//
// Search
//===----------------------------------------------------------------------===//

/// Emits how many of the ends of parts, of `size` keys each from `begin` on,
/// are before `end` and keys whose number `isBefore` holds for: of `kOwnParts`,
/// or of those of all lanes where `lane` is this thread's.
static Value
emitPartsBefore(FindKeyOp op, ImplicitLocOpBuilder &b, Value begin, Value size,
                Value end, Value lane,
                function_ref<Value(ImplicitLocOpBuilder &, Value)> isBefore) {
  Value one = emitNumber(b, 1);
  Value last = arith::SubIOp::create(b, end, one);
  Value sum = emitNumber(b, 0), part = begin;
  int64_t parts = kOwnParts;
  if (lane) {
    parts = kPartsOfLane;
    Value step = arith::MulIOp::create(b, size, emitNumber(b, kPartsOfLane));
    part = arith::AddIOp::create(b, part, arith::MulIOp::create(b, lane, step));
  }
  for (int64_t i = 0; i < parts; ++i) {
    part = arith::AddIOp::create(b, part, size);
    Value key = arith::SubIOp::create(b, part, one);
    Value inside = arith::MinSIOp::create(b, key, last);
    Value number = emitLoad(b, op.getElement(), op.getKeys(), inside);
    Value exists =
        arith::CmpIOp::create(b, arith::CmpIPredicate::sle, key, last);
    Value counts = arith::AndIOp::create(b, exists, isBefore(b, number));
    Value more;
    if (lane)
      more = LLVM::CtPopOp::create(
          b, b.getI32Type(),
          NVVM::VoteSyncOp::create(b, b.getI32Type(), emitNumber(b, -1), counts,
                                   NVVM::VoteSyncKind::ballot)
              .getResult());
    else
      more = arith::ExtUIOp::create(b, b.getI32Type(), counts);
    sum = arith::AddIOp::create(b, sum, more);
  }
  return sum;
}

/// Emits the first key of `begin` to `end` whose number `isBefore` does not
/// hold for, else `end`.
static Value
emitSearch(FindKeyOp op, ImplicitLocOpBuilder &b, Value begin, Value end,
           Value lane,
           function_ref<Value(ImplicitLocOpBuilder &, Value)> isBefore) {
  auto loop = scf::WhileOp::create(
      b, TypeRange{begin.getType(), end.getType()}, ValueRange{begin, end},
      [&](OpBuilder &builder, Location loc, ValueRange range) {
        Value isOpen = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::slt, range[0], range[1]);
        scf::ConditionOp::create(builder, loc, isOpen, range);
      },
      [&](OpBuilder &builder, Location loc, ValueRange range) {
        ImplicitLocOpBuilder lb(loc, builder);
        Value from = range[0], to = range[1];
        Value count = arith::SubIOp::create(lb, to, from);
        int64_t all = lane ? kPartsOfLane * kLanes : kOwnParts;
        Value size = arith::CeilDivUIOp::create(lb, count, emitNumber(lb, all));
        Value parts = emitPartsBefore(op, lb, from, size, to, lane, isBefore);
        // The end of the next part is none of them.
        from = arith::AddIOp::create(lb, from,
                                     arith::MulIOp::create(lb, parts, size));
        Value next = arith::AddIOp::create(
            lb, from, arith::SubIOp::create(lb, size, emitNumber(lb, 1)));
        scf::YieldOp::create(
            lb, ValueRange{from, arith::MinSIOp::create(lb, next, to)});
      });
  return loop.getResult(0);
}

/// Emits the last key of a search, or `same`.
static Value emitLast(FindKeyOp op, ImplicitLocOpBuilder &b, Value lane,
                      Value least, Value most) {
  Value from = op.getFrom(), to = op.getTo(), searches = op.getOrdered();
  auto compare = [&](arith::CmpIPredicate predicate, Value x,
                     Value y) -> Value {
    return arith::CmpIOp::create(b, predicate, x, y);
  };
  if (op.getSearch() == KeySearch::Same) {
    Value isOne = arith::AndIOp::create(
        b, searches, compare(arith::CmpIPredicate::eq, least, most));
    return arith::SelectOp::create(b, isOne, to, from);
  }
  // Under a causal mask the last key is the query's own, as a rule.
  Value last = arith::MaxSIOp::create(
      b, arith::SubIOp::create(b, to, emitNumber(b, 1)), emitNumber(b, 0));
  Value number = emitLoad(b, op.getElement(), op.getKeys(), last);
  searches = arith::AndIOp::create(
      b, searches, compare(arith::CmpIPredicate::sgt, number, most));
  from = arith::SelectOp::create(b, searches, from, to);
  return emitSearch(op, b, from, to, lane,
                    [&](ImplicitLocOpBuilder &lb, Value number) -> Value {
                      return arith::CmpIOp::create(
                          lb, arith::CmpIPredicate::sle, number, most);
                    });
}

Value lowering::emitFoundKey(FindKeyOp op, Value lane) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type type = op.getElement();
  Value least = emitLoad(b, type, op.getQueries(), op.getFirst());
  Value found;
  if (op.getSearch() == KeySearch::First) {
    Value end =
        arith::SelectOp::create(b, op.getOrdered(), op.getTo(), op.getFrom());
    found = emitSearch(op, b, op.getFrom(), end, lane,
                       [&](ImplicitLocOpBuilder &lb, Value number) -> Value {
                         return arith::CmpIOp::create(
                             lb, arith::CmpIPredicate::slt, number, least);
                       });
  } else {
    Value most = emitLoad(b, type, op.getQueries(), op.getLast());
    found = emitLast(op, b, lane, least, most);
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Order
//===----------------------------------------------------------------------===//

Value lowering::emitOrder(InOrderOp op) {
  ImplicitLocOpBuilder b(op.getLoc(), op);
  Type i64 = b.getI64Type(), i32 = b.getI32Type();
  auto wide = [&](Value value) -> Value {
    return arith::ExtUIOp::create(b, i64, value);
  };
  // Pairs of neighbours, in parts of all rows in turn; a row without any pair
  // has no part. The last part of a row ends with it.
  Value one = emitNumber(b, 1), zero = emitNumber(b, 0);
  Value size = emitNumber(b, kTogether);
  Value pairs = arith::SubIOp::create(
      b, arith::MaxSIOp::create(b, op.getCount(), one), one);
  Value parts = wide(arith::CeilDivUIOp::create(b, pairs, size));
  Value all = arith::MulIOp::create(b, wide(op.getRows()), parts);
  Value lastPart =
      arith::MaxSIOp::create(b, arith::SubIOp::create(b, pairs, size), zero);
  Value thread = arith::IndexCastOp::create(
      b, i64, gpu::ThreadIdOp::create(b, gpu::Dimension::x));
  Value threads = arith::IndexCastOp::create(
      b, i64, gpu::BlockDimOp::create(b, gpu::Dimension::x));
  auto loop = scf::ForOp::create(
      b, thread, all, threads, ValueRange{zero},
      [&](OpBuilder &builder, Location loc, Value part, ValueRange found) {
        ImplicitLocOpBuilder lb(loc, builder);
        Value row = arith::DivUIOp::create(lb, part, parts);
        Value ofRow = arith::TruncIOp::create(
            lb, i32,
            arith::SubIOp::create(lb, part,
                                  arith::MulIOp::create(lb, row, parts)));
        Value first = arith::MinSIOp::create(
            lb, arith::MulIOp::create(lb, ofRow, size), lastPart);
        Value start = LLVM::GEPOp::create(
            lb, op.getNumbers().getType(), op.getElement(), op.getNumbers(),
            ValueRange{arith::AddIOp::create(
                lb, arith::MulIOp::create(lb, row, op.getStride()),
                wide(first))});
        Value bad = found[0], before;
        for (int64_t i = 0; i <= kTogether; ++i) {
          // Beyond the last number it is that one again.
          Value place = arith::MinSIOp::create(lb, emitNumber(lb, i), pairs);
          Value number = emitLoad(lb, op.getElement(), start, place);
          if (before) {
            Value falls = arith::CmpIOp::create(lb, arith::CmpIPredicate::sgt,
                                                before, number);
            bad = arith::OrIOp::create(lb, bad,
                                       arith::ExtUIOp::create(lb, i32, falls));
          }
          before = number;
        }
        scf::YieldOp::create(lb, bad);
      });
  auto meet = NVVM::BarrierOp::create(
      b, i32, /*barrierId=*/Value(), /*numberOfThreads=*/Value(),
      NVVM::BarrierReductionAttr::get(b.getContext(),
                                      NVVM::BarrierReduction::OR),
      loop.getResult(0));
  return arith::CmpIOp::create(b, arith::CmpIPredicate::eq, meet.getRes(),
                               zero);
}
