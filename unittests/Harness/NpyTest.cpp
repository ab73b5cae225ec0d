//===- NpyTest.cpp - tests of numpy array files ---------------------------===//
#include "attn/Harness/Npy.h"

#include "llvm/Support/CRC.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <random>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::StringRef;
using testing::ElementsAre;
using testing::HasSubstr;

/// A .npy file with the given header text and data.
static std::string makeNpy(StringRef header, StringRef data, char major = 1) {
  std::string text("\x93NUMPY", 6);
  text += major;
  text += '\0';
  text += char(header.size() & 0xff);
  text += char(header.size() >> 8);
  if (major > 1)
    text += std::string(2, '\0');
  return text + header.str() + data.str();
}

static llvm::Expected<NpyArray> parse(StringRef text) {
  return parseNpy({text.bytes_begin(), text.bytes_end()}, "x.npy");
}

static std::string failure(StringRef text) {
  llvm::Expected<NpyArray> array = parse(text);
  return array ? "no error" : llvm::toString(array.takeError());
}

static std::string failHeader(StringRef header) {
  return failure(makeNpy(header, ""));
}

namespace {

/// A file in a temporary folder, removed at the end.
class TemporaryFile {
public:
  TemporaryFile() {
    llvm::sys::fs::createTemporaryFile("attn-npy", "npy", path);
  }
  ~TemporaryFile() { llvm::sys::fs::remove(path); }
  StringRef getPath() const { return path; }
  void write(StringRef text) {
    std::error_code error;
    llvm::raw_fd_ostream(path, error) << text;
  }

private:
  llvm::SmallString<128> path;
};

/// Builds a zip archive.
class ZipWriter {
public:
  void add(StringRef name, StringRef content, bool deflate,
           uint32_t crcChange = 0) {
    llvm::ArrayRef<uint8_t> bytes(content.bytes_begin(), content.size());
    std::string packed = content.str();
    if (deflate) {
      llvm::SmallVector<uint8_t> stream;
      llvm::compression::zlib::compress(bytes, stream);
      // Without zlib's header of two and trailer of four bytes.
      packed.assign(stream.begin() + 2, stream.end() - 4);
    }
    std::string common;
    number(common, 20, 2);
    number(common, 0, 2);
    number(common, deflate ? 8 : 0, 2);
    number(common, 0, 4);
    number(common, llvm::crc32(bytes) ^ crcChange, 4);
    number(common, packed.size(), 4);
    number(common, content.size(), 4);
    number(common, name.size(), 2);
    number(common, 0, 2);
    number(directory, 0x02014b50, 4);
    number(directory, 20, 2);
    directory += common;
    number(directory, 0, 2);
    number(directory, 0, 2);
    number(directory, 0, 2);
    number(directory, 0, 4);
    number(directory, text.size(), 4);
    directory += name;
    number(text, 0x04034b50, 4);
    text += common;
    text += name;
    text += packed;
    ++count;
  }

  std::string finish() {
    size_t start = text.size();
    text += directory;
    number(text, 0x06054b50, 4);
    number(text, 0, 4);
    number(text, count, 2);
    number(text, count, 2);
    number(text, directory.size(), 4);
    number(text, start, 4);
    number(text, 0, 2);
    return text;
  }

private:
  static void number(std::string &out, uint64_t value, unsigned bytes) {
    for (unsigned i = 0; i < bytes; ++i)
      out += char(value >> (8 * i));
  }
  std::string text, directory;
  unsigned count = 0;
};

} // namespace

static constexpr const char *halfHeader =
    "{'descr': '<f2', 'fortran_order': False, 'shape': (2, 3), }    \n";

TEST(Npy, ReadsArrays) {
  auto array = parse(makeNpy(halfHeader, "abcdefghijkl"));
  ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
  EXPECT_EQ(array->getTypeName(), "f2");
  EXPECT_THAT(array->shape, ElementsAre(2, 3));
  EXPECT_EQ(array->getNumElements(), 6);
  EXPECT_EQ(array->data[11], 'l');
  EXPECT_TRUE(array->holds(DType::F16));
  EXPECT_FALSE(array->holds(DType::BF16));
  EXPECT_FALSE(array->holds(DType::F32));
  auto scalar = parse(makeNpy(
      "{'descr': '<i4', 'fortran_order': False, 'shape': ()}", "abcd", 2));
  ASSERT_TRUE(bool(scalar)) << llvm::toString(scalar.takeError());
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_TRUE(scalar->holds(DType::I32));
  auto raw = parse(makeNpy(
      "{'descr': '|V2', 'fortran_order': False, 'shape': (1,)}", "ab", 3));
  ASSERT_TRUE(bool(raw)) << llvm::toString(raw.takeError());
  EXPECT_TRUE(raw->holds(DType::BF16));
  auto byte = parse(
      makeNpy("{'descr': '|u1', 'fortran_order': False, 'shape': (0,)}", ""));
  ASSERT_TRUE(bool(byte)) << llvm::toString(byte.takeError());
  EXPECT_TRUE(byte->holds(DType::F8E5M2));
  EXPECT_FALSE(byte->holds(DType::I8));
}

TEST(Npy, RejectsOtherFiles) {
  EXPECT_EQ(failure("PK"), "x.npy: not a .npy file");
  EXPECT_EQ(failure(StringRef("\x93NUMPY\1\0", 8)),
            "x.npy: truncated .npy file");
  EXPECT_EQ(failure(makeNpy(halfHeader, "").substr(0, 40)),
            "x.npy: truncated .npy file");
  EXPECT_EQ(failure(makeNpy(halfHeader, "", 2).substr(0, 11)),
            "x.npy: truncated .npy file");
  EXPECT_EQ(failure(makeNpy(halfHeader, "", 4)),
            "x.npy: expected .npy version 1 to 3, got 4");
  EXPECT_EQ(failure(makeNpy(halfHeader, "abcd")),
            "x.npy: expected 12 bytes of data, got 4");
  EXPECT_EQ(failHeader("[]"), "x.npy: expected a dictionary as header");
  EXPECT_EQ(failHeader("{descr}"),
            "x.npy: expected a key and ':' in the header");
  EXPECT_EQ(failHeader("{'x': 1}"), "x.npy: unknown key 'x' in the header");
  EXPECT_EQ(failHeader("{'shape': (1) 'x'"),
            "x.npy: expected ',' or '}' in the header");
  EXPECT_EQ(failHeader("{'shape': (1,)}"),
            "x.npy: expected 'descr', 'fortran_order' and 'shape' in the "
            "header");
  EXPECT_EQ(failHeader("{'descr': [('a', '<f4')]}"),
            "x.npy: expected a plain element type, got a structured one");
  EXPECT_EQ(failHeader("{'descr': '>f4'}"),
            "x.npy: expected little-endian elements, got '>f4'");
  EXPECT_EQ(failHeader("{'descr': '|O'}"), "x.npy: unknown element type '|O'");
  EXPECT_EQ(failHeader("{'descr': '<c8'}"),
            "x.npy: unknown element type '<c8'");
  EXPECT_EQ(failHeader("{'fortran_order': True}"),
            "x.npy: expected row-major (C) order, got Fortran order");
  EXPECT_EQ(failHeader("{'fortran_order': 1}"),
            "x.npy: expected True or False for 'fortran_order'");
  EXPECT_EQ(failHeader("{'shape': 3}"), "x.npy: expected a tuple for 'shape'");
  EXPECT_EQ(failHeader("{'shape': (-3,)}"),
            "x.npy: expected integers of at least 0 in 'shape'");
  EXPECT_EQ(failHeader("{'shape': (3 4)}"),
            "x.npy: expected ',' or ')' in 'shape'");
  EXPECT_EQ(failHeader("{'descr': '<f4', 'fortran_order': False, 'shape': "
                       "(9223372036854775807, 4)}"),
            "x.npy: expected an array below 2^63 bytes");
}

TEST(Npy, RoundTripsEveryType) {
  for (DType dtype :
       {DType::F16, DType::BF16, DType::F32, DType::F64, DType::F8E4M3FN,
        DType::F8E5M2, DType::I8, DType::I32, DType::I64}) {
    TemporaryFile file;
    std::vector<uint8_t> data(6 * getByteWidth(dtype));
    for (size_t i = 0; i < data.size(); ++i)
      data[i] = i;
    ASSERT_FALSE(bool(writeNpy(file.getPath(), dtype, {2, 3}, data)));
    auto array = readNpy(file.getPath());
    ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
    EXPECT_TRUE(array->holds(dtype)) << stringifyDType(dtype).str();
    EXPECT_THAT(array->shape, ElementsAre(2, 3));
    EXPECT_EQ(array->data, data);
  }
}

TEST(Npy, ReportsFilesThatCannotBeUsed) {
  EXPECT_THAT(llvm::toString(readNpy("/no/such.npy").takeError()),
              HasSubstr("cannot read /no/such.npy: "));
  EXPECT_THAT(llvm::toString(writeNpy("/no/such.npy", DType::F16, {0}, {})),
              HasSubstr("cannot write /no/such.npy: "));
}

TEST(Npz, ReadsStoredAndDeflatedEntries) {
  std::string data(3000, 'x');
  for (size_t i = 0; i < data.size(); ++i)
    data[i] = char(i * i >> 3);
  std::string big = makeNpy(
      "{'descr': '<i4', 'fortran_order': False, 'shape': (750,)}", data);
  ZipWriter zip;
  zip.add("q.npy", big, true);
  zip.add("k.npy", makeNpy(halfHeader, "abcdefghijkl"), false);
  zip.add("notes.txt", "no array", false);
  TemporaryFile file;
  file.write(zip.finish());
  auto arrays = readNpz(file.getPath());
  ASSERT_TRUE(bool(arrays)) << llvm::toString(arrays.takeError());
  ASSERT_EQ(arrays->size(), 2u);
  StringRef q(reinterpret_cast<const char *>((*arrays)["q"].data.data()),
              (*arrays)["q"].data.size());
  EXPECT_EQ(q, data);
  EXPECT_THAT((*arrays)["k"].shape, ElementsAre(2, 3));
}

TEST(Npz, RejectsDamagedArchives) {
  auto fail = [](StringRef text) {
    TemporaryFile file;
    file.write(text);
    auto arrays = readNpz(file.getPath());
    return arrays ? "no error" : llvm::toString(arrays.takeError());
  };
  auto make = [](uint32_t crcChange, bool deflate = true) {
    ZipWriter zip;
    zip.add("q.npy", makeNpy(halfHeader, "abcdefghijkl"), deflate, crcChange);
    return zip.finish();
  };
  EXPECT_EQ(fail(make(0)), "no error");
  EXPECT_THAT(fail("nothing"), HasSubstr("not a .npz file"));
  EXPECT_THAT(fail(make(1)), HasSubstr("entry 'q.npy' has a wrong checksum"));
  std::string text = make(0);
  std::string changed = text;
  changed[60] ^= 0x55;
  EXPECT_THAT(fail(changed), HasSubstr("entry 'q.npy' has a wrong checksum"));
  changed = text;
  size_t entry = changed.find("PK\1\2");
  changed[entry] = 'X';
  EXPECT_THAT(fail(changed), HasSubstr("damaged zip directory"));
  changed = text;
  changed[entry + 10] = 12;
  EXPECT_THAT(fail(changed),
              HasSubstr("entry 'q.npy' is neither stored nor deflated"));
  changed = text;
  changed[entry + 22] = 0x7f;
  EXPECT_THAT(fail(changed), HasSubstr("entry 'q.npy' is truncated"));
  changed = text;
  for (int i = 0; i < 4; ++i)
    changed[entry + 24 + i] = char(0xff);
  EXPECT_THAT(fail(changed), HasSubstr("entry 'q.npy' is too large"));
  ZipWriter zip;
  zip.add("q.npy", "no array", false);
  EXPECT_THAT(fail(zip.finish()), HasSubstr(":q.npy: not a .npy file"));
}

TEST(Npz, SurvivesDamage) {
  std::string array = makeNpy(halfHeader, "abcdefghijkl");
  ZipWriter zip;
  zip.add("q.npy", array, true);
  zip.add("k.npy", array, false);
  std::string archive = zip.finish();
  std::mt19937 random(1);
  TemporaryFile file;
  for (int i = 0; i < 2000; ++i) {
    std::string damagedArray = array, damagedArchive = archive;
    for (unsigned j = 0; j <= random() % 4; ++j) {
      damagedArray[random() % array.size()] = char(random());
      damagedArchive[random() % archive.size()] = char(random());
    }
    llvm::consumeError(parse(damagedArray).takeError());
    file.write(damagedArchive.substr(0, archive.size() - random() % 2));
    llvm::consumeError(readNpz(file.getPath()).takeError());
  }
}
