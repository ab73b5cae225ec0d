//===- MemoryTest.cpp - Simulated global memory and tensor maps -----------===//

#include "attn/Simulator/Async/TensorMap.h"
#include "attn/Simulator/Machine/GlobalMemory.h"
#include "gtest/gtest.h"

using namespace mlir::attn::sim;

namespace {

TEST(Memory, RoundTrip) {
  Memory memory;
  uint64_t address = memory.allocate(8, "x");
  ASSERT_FALSE(memory.write(address + 2, {1, 2, 3}));
  std::array<uint8_t, 3> back;
  ASSERT_FALSE(memory.read(address + 2, back));
  EXPECT_EQ(back, (std::array<uint8_t, 3>{1, 2, 3}));
  llvm::Expected<uint64_t> count = memory.countUninitialised(address, 8);
  ASSERT_TRUE(static_cast<bool>(count));
  EXPECT_EQ(*count, 5u);
}

TEST(Memory, RangeOutsideOfAnAllocation) {
  Memory memory;
  uint64_t address = memory.allocate(8, "x");
  std::string message = llvm::toString(memory.fill(address + 4, 8, 0));
  EXPECT_NE(message.find("inside one allocation, got none"), std::string::npos)
      << message;
}

TEST(Memory, NothingLiesAsFarBeforeAnAllocationAsItIsLong) {
  Memory memory;
  memory.allocate(1 << 20, "x");
  uint64_t address = memory.allocate(1 << 20, "y");
  EXPECT_EQ(memory.find(address - (1 << 20), 16), nullptr);
  EXPECT_EQ(memory.find(address - 16, 16), nullptr);
}

TEST(Memory, ReleaseInsideOfAnAllocation) {
  Memory memory;
  uint64_t address = memory.allocate(8, "x");
  std::string message = llvm::toString(memory.release(address + 4));
  EXPECT_NE(message.find("expected the start of an allocation, got address"),
            std::string::npos)
      << message;
  EXPECT_FALSE(memory.release(address));
}

/// A map over 64 x 128 f16 elements with boxes of 8 x 64, swizzled.
TensorMapInfo validMap() {
  TensorMapInfo info;
  info.address = 0x700000000;
  info.element = TensorMapElement::F16;
  info.rank = 2;
  info.dims[0] = 128;
  info.dims[1] = 64;
  info.strides[1] = 256;
  info.box[0] = 64;
  info.box[1] = 8;
  info.swizzleBytes = 128;
  return info;
}

std::string encodeError(const TensorMapInfo &info) {
  auto bytes = encodeTensorMap(info);
  return bytes ? "none" : llvm::toString(bytes.takeError());
}

TEST(TensorMap, RoundTrip) {
  auto bytes = encodeTensorMap(validMap());
  ASSERT_TRUE(static_cast<bool>(bytes));
  auto info = decodeTensorMap(*bytes);
  ASSERT_TRUE(static_cast<bool>(info));
  EXPECT_EQ(info->rank, 2u);
  EXPECT_EQ(info->dims[1], 64u);
  EXPECT_EQ(info->strides[1], 256u);
  EXPECT_EQ(info->box[0], 64u);
  EXPECT_EQ(info->swizzleBytes, 128u);
}

TEST(TensorMap, RefusesWhatTheDriverRefuses) {
  TensorMapInfo info = validMap();
  info.rank = 6;
  EXPECT_EQ(encodeError(info),
            "tensor map: expected a rank between 1 and 5, got 6");
  info = validMap();
  info.strides[1] = 250;
  EXPECT_EQ(encodeError(info),
            "tensor map: expected a stride that is a multiple of 16 below 2^40 "
            "in dimension 1, got 250");
  info = validMap();
  info.box[0] = 128;
  EXPECT_EQ(encodeError(info),
            "tensor map: expected an inner box of at most 128 bytes, got 256");
}

TEST(TensorMap, ForeignBytes) {
  std::array<uint8_t, 128> zeros{};
  auto info = decodeTensorMap(zeros);
  ASSERT_FALSE(static_cast<bool>(info));
  EXPECT_EQ(llvm::toString(info.takeError()),
            "tensor map: expected a base address that is a multiple of 16 and "
            "not 0, got 0");
  info = decodeTensorMap(llvm::ArrayRef<uint8_t>(zeros).take_front(64));
  ASSERT_FALSE(static_cast<bool>(info));
  EXPECT_EQ(llvm::toString(info.takeError()),
            "expected 128 bytes of a tensor map, got 64");
}

} // namespace
