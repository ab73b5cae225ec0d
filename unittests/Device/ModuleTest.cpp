//===- ModuleTest.cpp - Taking PTX out of what programs load --------------===//

#include "attn/Device/Module.h"
#include "attn/Target/TargetTable.h"
#include "llvm/BinaryFormat/ELF.h"
#include "llvm/Support/Chrono.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir::attn::device;
using ::testing::HasSubstr;
using namespace llvm::support::endian;

namespace {

const char ptx[] = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// Appends an entry as fatbinary writes it.
void addEntry(std::vector<uint8_t> &fatbin, unsigned kind, unsigned chip,
              uint64_t flags, llvm::ArrayRef<uint8_t> payload,
              uint64_t textSize) {
  std::vector<uint8_t> entry(64);
  uint64_t padded = (payload.size() + 7) / 8 * 8;
  write16le(&entry[0], kind);
  write16le(&entry[2], 0x101);
  write32le(&entry[4], 64);
  write64le(&entry[8], padded);
  write32le(&entry[16], flags ? payload.size() : 0);
  write32le(&entry[28], chip);
  write64le(&entry[40], flags);
  write64le(&entry[56], textSize);
  fatbin.insert(fatbin.end(), entry.begin(), entry.end());
  fatbin.insert(fatbin.end(), payload.begin(), payload.end());
  fatbin.resize(fatbin.size() + padded - payload.size());
  write64le(&fatbin[8], fatbin.size() - 16);
}

std::vector<uint8_t> makeFatbin() {
  std::vector<uint8_t> fatbin(16);
  write32le(&fatbin[0], 0xba55ed50);
  write16le(&fatbin[4], 1);
  write16le(&fatbin[6], 16);
  return fatbin;
}

llvm::ArrayRef<uint8_t> bytesOf(llvm::StringRef text) {
  return {reinterpret_cast<const uint8_t *>(text.data()), text.size()};
}

std::string errorOf(llvm::Expected<std::string> got, Status status) {
  if (got) {
    ADD_FAILURE() << *got;
    return "";
  }
  auto [code, message] = takeStatus(got.takeError());
  EXPECT_EQ(int(code), int(status)) << message;
  return message;
}

/// Machine code with sections of these names.
std::string makeMachineCode(llvm::ArrayRef<llvm::StringRef> sections,
                            llvm::StringRef data = "") {
  using namespace llvm::ELF;
  std::string table("\0", 1), headers(sizeof(Elf64_Shdr), '\0');
  auto add = [&](llvm::StringRef name, uint64_t offset, uint64_t size) {
    std::string header(sizeof(Elf64_Shdr), '\0');
    write32le(&header[offsetof(Elf64_Shdr, sh_name)], table.size());
    write64le(&header[offsetof(Elf64_Shdr, sh_offset)], offset);
    write64le(&header[offsetof(Elf64_Shdr, sh_size)], size);
    headers += header;
    table += name.str() + '\0';
  };
  for (llvm::StringRef section : sections)
    add(section, 0, 0);
  llvm::StringRef own = ".shstrtab";
  add(own, sizeof(Elf64_Ehdr), table.size() + own.size() + 1);
  std::string code(sizeof(Elf64_Ehdr), '\0');
  std::copy(ElfMagic, ElfMagic + 4, code.begin());
  write64le(&code[offsetof(Elf64_Ehdr, e_shoff)],
            code.size() + table.size() + data.size());
  write16le(&code[offsetof(Elf64_Ehdr, e_shnum)], sections.size() + 2);
  write16le(&code[offsetof(Elf64_Ehdr, e_shstrndx)], sections.size() + 1);
  return code + table + data.str() + headers;
}

/// A folder with files of PTX, the last one the newest.
class KeptPTX : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("kept", folder));
  }
  void TearDown() override { llvm::sys::fs::remove_directories(folder); }

  void write(llvm::StringRef name, llvm::StringRef text) {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    int file = -1;
    ASSERT_FALSE(llvm::sys::fs::openFileForWrite(path, file));
    llvm::raw_fd_ostream os(file, /*shouldClose=*/true);
    os << text;
    os.flush();
    // Files of one instant have no order.
    auto time = llvm::sys::toTimePoint(1000 + ++written);
    ASSERT_FALSE(
        llvm::sys::fs::setLastAccessAndModificationTime(file, time, time));
  }

  llvm::SmallString<128> folder;
  unsigned written = 0;
};

TEST_F(KeptPTX, IsFoundByItsKernels) {
  std::vector<uint8_t> fatbin = makeFatbin();
  addEntry(fatbin, 2, 90, 0,
           bytesOf(makeMachineCode({".text.one", ".nv.info.one", ".text.two"})),
           0);
  EXPECT_TRUE(isFatbin(fatbin.data()));
  EXPECT_FALSE(isFatbin(ptx));
  EXPECT_FALSE(isFatbin(nullptr));
  EXPECT_THAT(
      errorOf(findKeptPTX(fatbin.data(), folder), Status::NoBinary),
      HasSubstr((llvm::Twine("expected the PTX of kernel 'one' in '") + folder +
                 "', got none: let its compiler keep PTX there")
                    .str()));
  write("old.ptx", "old .entry one( .entry two(");
  write("both.ptx", "both .entry one( .entry two(");
  write("one.ptx", ".entry one(");
  write("longer.ptx", ".entry one( .entry two_more(");
  write("text.txt", ".entry one( .entry two(");
  llvm::Expected<std::string> found = findKeptPTX(fatbin.data(), folder);
  ASSERT_TRUE(static_cast<bool>(found));
  EXPECT_EQ(llvm::StringRef(*found).take_front(4), "both");
}

TEST_F(KeptPTX, NeedsKernelsAndAFolder) {
  std::vector<uint8_t> fatbin = makeFatbin();
  addEntry(fatbin, 2, 90, 0, bytesOf("machine code"), 0);
  EXPECT_THAT(errorOf(findKeptPTX(fatbin.data(), folder), Status::NoBinary),
              HasSubstr("expected machine code with kernels, got none"));
  std::string code = makeMachineCode({".text.k"});
  addEntry(fatbin, 2, 90, 0, bytesOf(code), 0);
  EXPECT_THAT(
      errorOf(findKeptPTX(fatbin.data(), "/no/folder"), Status::FileNotFound),
      HasSubstr("expected a folder with PTX, got '/no/folder'"));
  // No part of it is read beyond its end.
  for (size_t size = 0; size < code.size(); size += 3) {
    std::vector<uint8_t> part = makeFatbin();
    addEntry(part, 2, 90, 0, bytesOf(code).take_front(size), 0);
    llvm::consumeError(findKeptPTX(part.data(), folder).takeError());
  }
}

TEST_F(KeptPTX, FunctionsThatKernelsCallHaveSections) {
  std::vector<uint8_t> fatbin = makeFatbin();
  addEntry(fatbin, 2, 90, 0,
           bytesOf(makeMachineCode({".text.one", ".text.helper"},
                                   "a text that names .text.nothing")),
           0);
  write("other.ptx", ".func ahelper(.param .b32 p) .entry one(");
  write("right.ptx", "right .func (.param .b32 r) helper(\n.entry one(");
  write("newer.ptx", "call (r), helper, (p); .entry one(");
  llvm::Expected<std::string> found = findKeptPTX(fatbin.data(), folder);
  ASSERT_TRUE(static_cast<bool>(found));
  EXPECT_EQ(llvm::StringRef(*found).take_front(5), "right");
}

TEST(ExtractPTX, FromText) {
  EXPECT_EQ(llvm::cantFail(extractPTX(ptx)), ptx);
  // Bytes after the end are not read.
  std::string longer = ptx + std::string("\0junk", 5);
  EXPECT_EQ(llvm::cantFail(extractPTX(longer.data(), longer.size())), ptx);
  EXPECT_THAT(errorOf(extractPTX("hello"), Status::InvalidImage),
              HasSubstr("expected PTX or a fatbin, got 'hello'"));
  EXPECT_THAT(errorOf(extractPTX(""), Status::InvalidImage),
              HasSubstr("got ''"));
  EXPECT_EQ(errorOf(extractPTX(nullptr), Status::InvalidValue),
            "expected a module, got null");
  EXPECT_THAT(
      errorOf(extractPTX("\x7f"
                         "ELF\x02"),
              Status::NoBinary),
      HasSubstr(
          R"(expected PTX, got machine code (a cubin): use nvcc -ptx, or attn-run for Triton)"));
}

TEST(ExtractPTX, FromFatbins) {
  std::vector<uint8_t> fatbin = makeFatbin();
  addEntry(fatbin, 2, 90, 0, bytesOf("machine code"), 0);
  EXPECT_THAT(
      errorOf(extractPTX(fatbin.data(), fatbin.size()), Status::NoBinary),
      HasSubstr(
          R"(got one with machine code alone: build it with -gencode arch=compute_90a,code=compute_90a, or with -ptx)"));
  addEntry(fatbin, 1, 80, 0, bytesOf(ptx), 0);
  EXPECT_EQ(llvm::cantFail(extractPTX(fatbin.data())), ptx);
  // The newest chip's is taken, compressed or not.
  std::string newer = llvm::StringRef(ptx).str() + "// newer\n";
  llvm::SmallVector<uint8_t, 0> packed;
  llvm::compression::zstd::compress(bytesOf(newer), packed);
  addEntry(fatbin, 1, 90, 0x8000, packed, newer.size());
  EXPECT_EQ(llvm::cantFail(extractPTX(fatbin.data(), fatbin.size())), newer);
  // In a C program there is a structure around it.
  struct {
    uint32_t magic = 0x466243b1, version = 1;
    const void *fatbin;
    const void *unused = nullptr;
  } wrapper;
  wrapper.fatbin = fatbin.data();
  EXPECT_EQ(llvm::cantFail(extractPTX(&wrapper)), newer);
}

TEST(ExtractPTX, FromDamagedFatbins) {
  std::vector<uint8_t> fatbin = makeFatbin();
  EXPECT_THAT(errorOf(extractPTX(fatbin.data(), 8), Status::InvalidImage),
              HasSubstr("expected a whole fatbin, got its first bytes"));
  EXPECT_THAT(errorOf(extractPTX(fatbin.data()), Status::NoBinary),
              HasSubstr("got none"));
  std::vector<uint8_t> damaged = fatbin;
  addEntry(damaged, 1, 80, 0x2000, bytesOf("abc"), 10);
  EXPECT_THAT(
      errorOf(extractPTX(damaged.data()), Status::NotSupported),
      HasSubstr(
          R"(expected PTX without LZ4 in the fatbin: --compress-mode=size leaves it out)"));
  damaged = fatbin;
  addEntry(damaged, 1, 80, 0x8000, bytesOf("no zstd"), 10);
  EXPECT_THAT(errorOf(extractPTX(damaged.data()), Status::InvalidImage),
              HasSubstr("expected compressed PTX of a fatbin, got: "));
  write64le(&damaged[16 + 56], uint64_t(1) << 40);
  EXPECT_THAT(errorOf(extractPTX(damaged.data()), Status::InvalidImage),
              HasSubstr("bytes that stand for 1099511627776"));
  write64le(&damaged[16 + 8], 1000);
  EXPECT_THAT(
      errorOf(extractPTX(damaged.data(), damaged.size()), Status::InvalidImage),
      HasSubstr("expected an entry inside of the fatbin's"));
}

TEST(CheckTarget, ChipsThatRunTheCode) {
  auto runs = [](llvm::StringRef code, llvm::StringRef chip) {
    llvm::Error error =
        checkTarget(code, llvm::cantFail(mlir::attn::lookupTarget(chip)));
    bool isRight = !error;
    llvm::consumeError(std::move(error));
    return isRight;
  };
  EXPECT_TRUE(runs("sm_80", "sm_90a"));
  EXPECT_TRUE(runs("sm_90a", "sm_90a"));
  EXPECT_FALSE(runs("sm_90a", "sm_100a"));
  EXPECT_FALSE(runs("sm_90", "sm_80"));
  EXPECT_TRUE(runs("sm_100f", "sm_103a"));
  EXPECT_FALSE(runs("sm_103f", "sm_100a"));
  EXPECT_FALSE(runs("compute_80", "sm_80"));
  EXPECT_EQ(
      takeStatus(checkTarget("sm_90",
                             llvm::cantFail(mlir::attn::lookupTarget("sm_80"))))
          .second,
      "expected PTX that runs on sm_80, got PTX for 'sm_90'");
}

} // namespace
