//===- TensorMapCalls.cpp - Tensor maps -----------------------------------===//

#include "Platform.h"
#include "attn/Simulator/Async/TensorMap.h"
#include <cstring>

using namespace cuda;
using llvm::formatv;
using namespace mlir::attn::sim;

/// CUtensorMapSwizzle: none, then 32, 64 and 128 bytes.
static constexpr int kMostSwizzle = 3;
/// CUtensorMapDataType.
static constexpr int kMostElement = int(TensorMapElement::B6x16P32);

ATTN_API int
cuTensorMapEncodeTiled(void *map, int element, uint32_t rank, void *address,
                       const uint64_t *dims, const uint64_t *strides,
                       const uint32_t *box, const uint32_t *elementStrides,
                       int interleave, int swizzle, int, int fill) {
  return call("cuTensorMapEncodeTiled", [&](Platform &) -> Error {
    if (!map || !dims || !box || !elementStrides || (rank > 1 && !strides))
      return checkOutput(nullptr);
    if (interleave || swizzle < 0 || swizzle > kMostSwizzle || element < 0 ||
        element > kMostElement || rank > 5)
      return fail(Status::NotSupported,
                  formatv("expected a tensor map without interleave, of rank 5 "
                          "at most and swizzle 0 to {0}, got interleave {1}, "
                          "rank {2}, swizzle {3}, element {4}",
                          kMostSwizzle, interleave, rank, swizzle, element));
    TensorMapInfo info;
    info.address = reinterpret_cast<uint64_t>(address);
    info.element = TensorMapElement(element);
    info.rank = rank;
    for (unsigned axis = 0; axis < rank; ++axis) {
      info.dims[axis] = dims[axis];
      info.box[axis] = box[axis];
      info.elementStrides[axis] = elementStrides[axis];
      if (axis)
        info.strides[axis] = strides[axis - 1];
    }
    info.swizzleBytes = swizzle ? 16u << swizzle : 0;
    info.nanFill = fill;
    auto encoded = encodeTensorMap(info);
    if (!encoded)
      return fail(Status::InvalidValue, llvm::toString(encoded.takeError()));
    std::memcpy(map, encoded->data(), encoded->size());
    return Error::success();
  });
}

ATTN_API int cuTensorMapReplaceAddress(void *map, void *address) {
  return call("cuTensorMapReplaceAddress", [&](Platform &) -> Error {
    if (Error error = checkOutput(map))
      return error;
    llvm::MutableArrayRef<uint8_t> bytes(static_cast<uint8_t *>(map), 128);
    if (Error error =
            replaceTensorMapField(bytes, TensorMapField::GlobalAddress, 0,
                                  reinterpret_cast<uint64_t>(address)))
      return fail(Status::InvalidValue, llvm::toString(std::move(error)));
    return Error::success();
  });
}
