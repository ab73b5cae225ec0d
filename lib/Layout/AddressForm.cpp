//===- AddressForm.cpp - How an address depends on a thread ---------------===//

#include "attn/Layout/AddressForm.h"

using namespace mlir::attn;
using llvm::ArrayRef;

static int64_t xorOver(ArrayRef<int64_t> constants, unsigned index) {
  int64_t result = 0;
  for (auto [bit, constant] : llvm::enumerate(constants))
    if ((index >> bit) & 1)
      result ^= constant;
  return result;
}

static int64_t sumOver(ArrayRef<int64_t> constants, unsigned index) {
  int64_t result = 0;
  for (auto [bit, constant] : llvm::enumerate(constants))
    if ((index >> bit) & 1)
      result += constant;
  return result;
}

int64_t AddressForm::evaluateXor(unsigned lane, unsigned warp,
                                 unsigned block) const {
  return xorOver(laneXor, lane) ^ xorOver(warpXor, warp) ^
         xorOver(blockXor, block);
}

int64_t AddressForm::evaluateAdd(unsigned lane, unsigned warp,
                                 unsigned block) const {
  return sumOver(laneAdd, lane) + sumOver(warpAdd, warp) +
         sumOver(blockAdd, block);
}

int64_t AddressForm::xorMask() const {
  int64_t result = 0;
  for (ArrayRef<int64_t> constants :
       {ArrayRef<int64_t>(laneXor), ArrayRef<int64_t>(warpXor),
        ArrayRef<int64_t>(blockXor)})
    for (int64_t constant : constants)
      result |= constant;
  return result;
}

bool AddressForm::operator==(const AddressForm &other) const {
  return laneXor == other.laneXor && laneAdd == other.laneAdd &&
         warpXor == other.warpXor && warpAdd == other.warpAdd &&
         blockXor == other.blockXor && blockAdd == other.blockAdd;
}

int64_t AccessAddress::evaluate(ArrayRef<AddressForm> forms, unsigned lane,
                                unsigned warp, unsigned block) const {
  const AddressForm &thread = forms[form];
  return thread.evaluateAdd(lane, warp, block) + addConst +
         (thread.evaluateXor(lane, warp, block) ^ xorConst);
}
