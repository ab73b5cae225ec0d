//===- LinearLayout.cpp - Labelled linear maps over F2 --------------------===//

#include "attn/Layout/LinearLayout.h"
#include "Errors.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::Error;
using llvm::Expected;
using llvm::SmallVector;
using llvm::StringRef;

Expected<LinearLayout>
LinearLayout::get(ArrayRef<std::pair<StringRef, int64_t>> dims) {
  LinearLayout result;
  unsigned total = 0;
  for (auto &[name, size] : dims) {
    if (size < 1 || !llvm::isPowerOf2_64(size))
      return makeError("expected a power of two as size of '{0}', got {1}",
                       name, size);
    if (result.hasDim(name))
      return makeError("expected different dimension names, got '{0}' twice",
                       name);
    unsigned bits = llvm::Log2_64(size);
    total += bits;
    result.outputs.push_back({name.str(), bits});
  }
  if (total > maxBits)
    return makeError("expected at most {0} output bits, got {1}", maxBits,
                     total);
  return result;
}

Error LinearLayout::addAxis(StringRef name, ArrayRef<Coords> bases) {
  if (hasAxis(name))
    return makeError("expected different axis names, got '{0}' twice", name);
  if (columns.size() + bases.size() > maxBits)
    return makeError("expected at most {0} input bits, got {1}", maxBits,
                     columns.size() + bases.size());
  SmallVector<uint64_t> added;
  for (const Coords &basis : bases) {
    if (basis.size() != outputs.size())
      return makeError("expected {0} coordinates in a basis of '{1}', got {2}",
                       outputs.size(), name, basis.size());
    for (auto [coord, dim] : llvm::zip_equal(basis, outputs))
      if (coord < 0 || coord >= dim.size())
        return makeError(
            "expected a basis of '{0}' below {1} along '{2}', got {3}", name,
            dim.size(), dim.name, coord);
    added.push_back(flattenOutput(basis));
  }
  inputs.push_back({name.str(), unsigned(bases.size())});
  columns.append(added);
  return Error::success();
}

LinearLayout LinearLayout::identity(StringRef axis, int64_t size,
                                    StringRef dim) {
  return strided(axis, size, 1, dim);
}

LinearLayout LinearLayout::zeros(StringRef axis, int64_t size, StringRef dim) {
  assert(llvm::isPowerOf2_64(size) && "sizes are powers of two");
  LinearLayout result;
  unsigned bits = llvm::Log2_64(size);
  result.inputs.push_back({axis.str(), bits});
  result.outputs.push_back({dim.str(), 0});
  result.columns.assign(bits, 0);
  return result;
}

LinearLayout LinearLayout::strided(StringRef axis, int64_t size, int64_t stride,
                                   StringRef dim) {
  assert(llvm::isPowerOf2_64(size) && llvm::isPowerOf2_64(stride) &&
         "sizes and strides are powers of two");
  LinearLayout result;
  unsigned bits = llvm::Log2_64(size);
  result.inputs.push_back({axis.str(), bits});
  result.outputs.push_back(
      {dim.str(), bits ? bits + unsigned(llvm::Log2_64(stride)) : 0});
  for (unsigned bit = 0; bit < bits; ++bit)
    result.columns.push_back(uint64_t(stride) << bit);
  return result;
}

std::optional<unsigned> LinearLayout::axisIndex(StringRef name) const {
  for (auto [index, axis] : llvm::enumerate(inputs))
    if (axis.name == name)
      return index;
  return std::nullopt;
}

std::optional<unsigned> LinearLayout::dimIndex(StringRef name) const {
  for (auto [index, dim] : llvm::enumerate(outputs))
    if (dim.name == name)
      return index;
  return std::nullopt;
}

std::pair<unsigned, unsigned> LinearLayout::axisRange(StringRef name) const {
  unsigned first = 0;
  for (const Space &axis : inputs) {
    if (axis.name == name)
      return {first, axis.bits};
    first += axis.bits;
  }
  return {first, 0};
}

unsigned LinearLayout::dimShift(unsigned index) const {
  unsigned shift = 0;
  for (unsigned i = 0; i < index; ++i)
    shift += outputs[i].bits;
  return shift;
}

unsigned LinearLayout::axisBits(StringRef name) const {
  return axisRange(name).second;
}

unsigned LinearLayout::dimBits(StringRef name) const {
  std::optional<unsigned> index = dimIndex(name);
  return index ? outputs[*index].bits : 0;
}

bool LinearLayout::hasAxis(StringRef name) const {
  return axisIndex(name).has_value();
}

bool LinearLayout::hasDim(StringRef name) const {
  return dimIndex(name).has_value();
}

unsigned LinearLayout::totalOutputBits() const {
  return dimShift(outputs.size());
}

ArrayRef<uint64_t> LinearLayout::flatBases(StringRef axis) const {
  auto [first, count] = axisRange(axis);
  return ArrayRef<uint64_t>(columns).slice(first, count);
}

Coords LinearLayout::basis(StringRef axis, unsigned bit) const {
  ArrayRef<uint64_t> bases = flatBases(axis);
  return unflattenOutput(bit < bases.size() ? bases[bit] : 0);
}

int64_t LinearLayout::basisAlong(StringRef axis, unsigned bit,
                                 StringRef dim) const {
  std::optional<unsigned> index = dimIndex(dim);
  return index ? basis(axis, bit)[*index] : 0;
}

uint64_t LinearLayout::applyFlat(uint64_t input) const {
  uint64_t result = 0;
  for (auto [bit, column] : llvm::enumerate(columns))
    if ((input >> bit) & 1)
      result ^= column;
  return result;
}

Coords LinearLayout::apply(ArrayRef<int64_t> indices) const {
  return unflattenOutput(applyFlat(flattenInput(indices)));
}

static uint64_t flatten(ArrayRef<LinearLayout::Space> spaces,
                        ArrayRef<int64_t> values) {
  assert(spaces.size() == values.size() && "one value for each space");
  uint64_t result = 0;
  unsigned shift = 0;
  for (auto [space, value] : llvm::zip_equal(spaces, values)) {
    assert(value >= 0 && value < space.size() && "value outside its space");
    result |= uint64_t(value) << shift;
    shift += space.bits;
  }
  return result;
}

static Coords unflatten(ArrayRef<LinearLayout::Space> spaces, uint64_t value) {
  Coords result;
  for (const LinearLayout::Space &space : spaces) {
    result.push_back(value & (space.size() - 1));
    value >>= space.bits;
  }
  return result;
}

uint64_t LinearLayout::flattenInput(ArrayRef<int64_t> indices) const {
  return flatten(inputs, indices);
}
Coords LinearLayout::unflattenInput(uint64_t input) const {
  return unflatten(inputs, input);
}
uint64_t LinearLayout::flattenOutput(ArrayRef<int64_t> coords) const {
  return flatten(outputs, coords);
}
Coords LinearLayout::unflattenOutput(uint64_t output) const {
  return unflatten(outputs, output);
}
