//===- DeviceMemoryTest.cpp - Memory that programs and kernels share ------===//

#include "attn/Device/DeviceMemory.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn::device;
using ::testing::HasSubstr;

namespace {

constexpr uint64_t capacity = 1 << 20;

uint8_t *toPointer(uint64_t address) {
  return reinterpret_cast<uint8_t *>(address);
}
uint64_t toAddress(const void *pointer) {
  return reinterpret_cast<uint64_t>(pointer);
}

std::string errorOf(llvm::Error error, Status status) {
  auto [got, message] = takeStatus(std::move(error));
  EXPECT_EQ(int(got), int(status)) << message;
  return message;
}

TEST(DeviceMemory, AllocationsAreTheHosts) {
  DeviceMemory memory(capacity);
  uint64_t x = llvm::cantFail(memory.allocate(100, "x"));
  uint64_t y = llvm::cantFail(memory.allocate(100, "y"));
  EXPECT_EQ(x % 512, 0u);
  EXPECT_GE(y - x, 100u + 256);
  EXPECT_EQ(memory.classify(x + 99), MemoryKind::Device);
  EXPECT_EQ(memory.classify(x + 100), MemoryKind::Unknown);
  std::vector<uint8_t> host = {1, 2, 3};
  llvm::cantFail(memory.copy(x + 5, toAddress(host.data()), 3));
  EXPECT_EQ(toPointer(x)[6], 2);
  EXPECT_EQ(llvm::cantFail(memory.getMemory().countUninitialised(x, 100)), 97u);
  // A copy of unknown bytes is unknown, too.
  llvm::cantFail(memory.copy(y, x, 6));
  EXPECT_EQ(llvm::cantFail(memory.getMemory().countUninitialised(y, 6)), 5u);
  llvm::cantFail(memory.fill(y, 0x01020304, 4, 2));
  EXPECT_EQ(toPointer(y)[7], 1);
  EXPECT_EQ(memory.getUsed(), 200u);
}

TEST(DeviceMemory, FreedPlacesComeBackLate) {
  DeviceMemory memory(capacity);
  uint64_t first = 0, last = 0;
  // More than the reserved range in all, one after the other.
  for (unsigned i = 0; i < 64; ++i) {
    uint64_t address = llvm::cantFail(memory.allocate(capacity / 8, "x"));
    EXPECT_NE(address, last);
    EXPECT_EQ(llvm::cantFail(
                  memory.getMemory().countUninitialised(address, capacity / 8)),
              capacity / 8);
    llvm::cantFail(memory.fill(address, 1, 1, capacity / 8));
    llvm::cantFail(memory.free(address, MemoryKind::Device, "cuMemFree"));
    first = first ? first : address;
    last = address;
  }
  EXPECT_EQ(memory.getUsed(), 0u);
  uint64_t small = llvm::cantFail(memory.allocate(8, "small"));
  EXPECT_EQ(llvm::cantFail(memory.getMemory().countUninitialised(small, 8)),
            8u);
}

TEST(DeviceMemory, WhatCannotBe) {
  DeviceMemory memory(capacity);
  EXPECT_EQ(errorOf(memory.allocate(0, "x").takeError(), Status::InvalidValue),
            "expected at least one byte, got 0");
  EXPECT_THAT(
      errorOf(memory.allocate(capacity + 1, "x").takeError(),
              Status::OutOfMemory),
      HasSubstr("of device memory beside the 0 bytes that are in use, got"));
  // Nothing to fill is right, even nowhere.
  EXPECT_FALSE(llvm::errorToBool(memory.fill(0, 1, 1, 0)));
  uint64_t x = llvm::cantFail(memory.allocate(16, "x"));
  EXPECT_THAT(errorOf(memory.free(x + 8, MemoryKind::Device, "cuMemFree"),
                      Status::InvalidValue),
              HasSubstr("expected the start of an allocation to free, got "
                        "address"));
  EXPECT_THAT(errorOf(memory.copy(x, x + 8, 16), Status::InvalidValue),
              HasSubstr("expected memory to read inside of one allocation, got "
                        "16 bytes"));
  EXPECT_THAT(errorOf(memory.copy(0, x, 8), Status::InvalidValue),
              HasSubstr("expected an address, got null"));
  EXPECT_THAT(errorOf(memory.fill(x + 1, 0, 4, 1), Status::InvalidValue),
              HasSubstr("expected an address that is a multiple of 4, got"));
  uint8_t own = 0;
  EXPECT_THAT(
      errorOf(memory.fill(toAddress(&own), 0, 1, 1), Status::InvalidValue),
      HasSubstr("expected memory that the device knows, got address"));
  llvm::cantFail(memory.free(x, MemoryKind::Device, "cuMemFree"));
  EXPECT_THAT(errorOf(memory.free(x, MemoryKind::Device, "cuMemFree"),
                      Status::InvalidValue),
              HasSubstr("got 'x', which was freed by cuMemFree"));
  EXPECT_THAT(errorOf(memory.copy(x, x, 8), Status::InvalidValue),
              HasSubstr("expected memory to read that is allocated, got 8 "
                        "bytes of 'x', which was freed by cuMemFree"));
}

TEST(DeviceMemory, RegisteredRangesMayOverlap) {
  DeviceMemory memory(capacity);
  std::vector<uint8_t> host(100);
  uint64_t at = toAddress(host.data());
  llvm::cantFail(memory.registerHost(at, 40, "head"));
  llvm::cantFail(memory.registerHost(at + 60, 40, "tail"));
  EXPECT_EQ(memory.find(at + 30, 40), nullptr);
  llvm::cantFail(memory.registerHost(at + 30, 40, "middle"));
  EXPECT_NE(memory.find(at, 100), nullptr);
  EXPECT_EQ(memory.classify(at + 50), MemoryKind::Registered);
  llvm::cantFail(memory.registerHost(at, 40, "head again"));
  llvm::cantFail(memory.unregisterHost(at));
  EXPECT_NE(memory.find(at, 100), nullptr);
  llvm::cantFail(memory.unregisterHost(at + 30));
  EXPECT_EQ(memory.find(at, 41), nullptr);
  EXPECT_NE(memory.find(at, 40), nullptr);
  llvm::cantFail(memory.unregisterHost(at));
  EXPECT_EQ(memory.find(at), nullptr);
  EXPECT_NE(memory.find(at + 60, 40), nullptr);
  EXPECT_THAT(
      errorOf(memory.unregisterHost(at), Status::NotRegistered),
      HasSubstr("expected the start of registered memory, got address"));
  EXPECT_THAT(errorOf(memory.registerHost(0, 8, "x"), Status::InvalidValue),
              HasSubstr("expected memory of the host, got 8 bytes at"));
  // Device memory is known as it is.
  uint64_t x = llvm::cantFail(memory.allocate(16, "x"));
  llvm::cantFail(memory.registerHost(x, 16, "x"));
  llvm::cantFail(memory.unregisterHost(x));
  EXPECT_EQ(memory.classify(x), MemoryKind::Device);
}

TEST(Status, Names) {
  EXPECT_EQ(getStatusName(1), "CUDA_ERROR_INVALID_VALUE");
  EXPECT_EQ(getStatusName(12345), "");
  EXPECT_EQ(getStatusText(700), "an illegal memory access");
  auto [status, text] = takeStatus(llvm::createStringError("of somebody else"));
  EXPECT_EQ(int(status), int(Status::Unknown));
  EXPECT_EQ(text, "of somebody else");
}

} // namespace
