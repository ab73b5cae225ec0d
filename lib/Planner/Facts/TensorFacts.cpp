//===- TensorFacts.cpp - What schedules ask about a tensor ----------------===//

#include "attn/Planner/Facts/TensorFacts.h"
#include "llvm/ADT/bit.h"

using namespace mlir;
using namespace mlir::attn;

/// What everything that only the launch decides is a multiple of, in bytes: by
/// contract, since an address that is not faults and is never silently wrong.
static constexpr int64_t kAssumedAlignment = 16;

unsigned TensorFacts::getContiguousDim() const {
  unsigned last = strides.size() - 1;
  return last > 0 && strides[last] != 1 && strides[last - 1] == 1 ? last - 1
                                                                  : last;
}

int64_t TensorFacts::getRowAlignment() const {
  int64_t bytes = elementType.getIntOrFloatBitWidth() / 8;
  int64_t alignment = kAssumedAlignment;
  auto limit = [&](int64_t elements) {
    if (elements == 0)
      return;
    // Their product in bytes may have more bits than a number.
    int zeros = llvm::countr_zero(uint64_t(elements)) +
                llvm::countr_zero(uint64_t(bytes));
    alignment = std::min(alignment, int64_t(1) << std::min(zeros, 62));
  };
  if (!ShapedType::isDynamic(offset))
    limit(offset);
  for (auto [dim, stride, extent] : llvm::enumerate(strides, shape))
    if (dim != getContiguousDim() && !ShapedType::isDynamic(stride) &&
        extent != 1)
      limit(stride);
  return alignment;
}

FailureOr<TensorFacts> TensorFacts::get(Operation *op, StringRef name,
                                        Value value, bool written) {
  TensorFacts facts;
  facts.name = name.str();
  facts.value = value;
  facts.written = written;
  if (!value)
    return facts;
  auto type = cast<ShapedType>(value.getType());
  facts.elementType = type.getElementType();
  facts.shape.assign(type.getShape().begin(), type.getShape().end());
  if (auto memref = dyn_cast<MemRefType>(type)) {
    if (failed(memref.getStridesAndOffset(facts.strides, facts.offset)))
      return op->emitOpError("expected '")
             << name << "' to have strides, got " << memref;
    return facts;
  }
  facts.strides.assign(facts.shape.size(), 1);
  for (size_t dim = facts.shape.size(); dim > 1; --dim) {
    int64_t extent = facts.shape[dim - 1], inner = facts.strides[dim - 1];
    facts.strides[dim - 2] =
        ShapedType::isDynamic(extent) || ShapedType::isDynamic(inner)
            ? ShapedType::kDynamic
            : extent * inner;
  }
  return facts;
}

int64_t attn::unifyExtents(
    std::initializer_list<std::pair<const TensorFacts *, unsigned>> extents) {
  for (auto [tensor, dim] : extents)
    if (*tensor && !ShapedType::isDynamic(tensor->shape[dim]))
      return tensor->shape[dim];
  return ShapedType::kDynamic;
}

SizeExpr TensorFacts::getStrideExpr(unsigned dim) const {
  SizeExpr stride = 1;
  int64_t known = 1;
  bool isKnown = true;
  for (unsigned inner = dim + 1; inner < shape.size(); ++inner) {
    if (!ShapedType::isDynamic(shape[inner])) {
      known *= shape[inner];
      continue;
    }
    stride = isKnown ? extents[inner] : stride * extents[inner];
    isKnown = false;
  }
  return isKnown      ? SizeExpr(known)
         : known == 1 ? stride
                      : stride * SizeExpr(known);
}

SizeExpr TensorFacts::getBytesExpr() const {
  int64_t width = elementType.getIntOrFloatBitWidth() / 8;
  SizeExpr rows = getStrideExpr(0);
  SizeExpr bytes = SizeExpr(shape[0] * width);
  // Static sizes are one number.
  if (rows.getSymbols().empty())
    return SizeExpr(llvm::cantFail(rows.evaluate(
                        [](const SizeSymbol &) { return std::nullopt; })) *
                    shape[0] * width);
  return rows * bytes;
}
