//===- FilesTest.cpp - Files and the machine's memory ---------------------===//

#include "attn/Support/Files.h"
#include "attn/Support/HostMemory.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "gtest/gtest.h"

using namespace mlir::attn;

static std::string failToRead(llvm::StringRef path, uint64_t limit) {
  llvm::Expected<std::string> text = readFile(path, limit);
  return text ? "no error" : llvm::toString(text.takeError());
}

TEST(Files, ReadsWhatWasWritten) {
  llvm::SmallString<128> path;
  ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("attn", "txt", path));
  std::string text(200000, 'x');
  auto print = [&](llvm::raw_ostream &os) { os << text; };
  EXPECT_FALSE(bool(writeFile(path, print)));
  llvm::Expected<std::string> read = readFile(path);
  ASSERT_TRUE(bool(read));
  EXPECT_EQ(*read, text);
  EXPECT_EQ(failToRead(path, 200000), "no error");
  EXPECT_EQ(failToRead(path, 199999), "cannot read " + path.str().str() +
                                          ": expected at most 195.3 KiB, got "
                                          "195.3 KiB");
  llvm::sys::fs::remove(path);
  EXPECT_EQ(failToRead(path, 1), "cannot read " + path.str().str() +
                                     ": No such file or directory");
}

TEST(Files, FilesWithoutEnd) {
  EXPECT_EQ(failToRead("/dev/zero", 1 << 20),
            "cannot read /dev/zero: expected at most 1.0 MiB, got more");
}

TEST(Files, FullDisk) {
  llvm::Error error = writeFile(
      "/dev/full", [](llvm::raw_ostream &os) { os << std::string(99999, 'x'); });
  EXPECT_EQ(llvm::toString(std::move(error)),
            "cannot write /dev/full: No space left on device");
  error = writeFile("/no/such/file", [](llvm::raw_ostream &) {});
  EXPECT_EQ(llvm::toString(std::move(error)),
            "cannot write /no/such/file: No such file or directory");
}

TEST(HostMemory, FormatsBytes) {
  EXPECT_EQ(formatBytes(1000), "1000 bytes");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(uint64_t(24) << 30), "24.0 GiB");
  EXPECT_EQ(formatBytes(UINT64_MAX), "16.0 EiB");
  EXPECT_GE(getHostMemory(), uint64_t(1) << 30);
  EXPECT_LT(getHostMemory(), uint64_t(1) << 50);
}
