//===- Npz.cpp - archives of numpy arrays ---------------------------------===//
//
// The part of the zip format (PKWARE APPNOTE 6.3) that numpy writes: entries
// found through the central directory, stored or deflated, without encryption;
// sizes of 4 GiB and more (zip64) are refused.
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Npy.h"

#include "attn/Support/Files.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CRC.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;
using llvm::support::endian::read16le;
using llvm::support::endian::read32le;

/// Inflates a raw deflate stream. LLVM gives access to zlib's wrapped format
/// only, so the stream gets a wrapper's header. Its missing checksum makes the
/// call fail after all output was written; the caller checks the CRC-32 of the
/// output instead.
static std::vector<uint8_t> inflate(ArrayRef<uint8_t> stream, size_t size) {
  std::vector<uint8_t> wrapped = {0x78, 0x9c};
  wrapped.insert(wrapped.end(), stream.begin(), stream.end());
  std::vector<uint8_t> output(size);
  if (size)
    llvm::consumeError(
        llvm::compression::zlib::decompress(wrapped, output.data(), size));
  return output;
}

/// The offset of the end-of-central-directory record, or npos.
static size_t findDirectoryEnd(ArrayRef<uint8_t> bytes) {
  constexpr size_t recordSize = 22, maxComment = 65535;
  for (size_t back = recordSize;
       back <= bytes.size() && back <= recordSize + maxComment; ++back)
    if (read32le(&bytes[bytes.size() - back]) == 0x06054b50)
      return bytes.size() - back;
  return StringRef::npos;
}

Expected<llvm::StringMap<NpyArray>> sim::readNpz(StringRef path) {
  auto fail = [&](const Twine &problem) {
    return createStringError(path + ": " + problem);
  };
  Expected<std::string> file = readFile(path, getMaxArrayBytes());
  if (!file)
    return file.takeError();
  ArrayRef<uint8_t> bytes = llvm::arrayRefFromStringRef(*file);
  size_t end = findDirectoryEnd(bytes);
  if (end == StringRef::npos)
    return fail("not a .npz file");
  unsigned count = read16le(&bytes[end + 10]);
  size_t at = read32le(&bytes[end + 16]);
  llvm::StringMap<NpyArray> arrays;
  for (unsigned i = 0; i < count; ++i) {
    constexpr size_t entrySize = 46, localSize = 30;
    if (at + entrySize > bytes.size() || read32le(&bytes[at]) != 0x02014b50)
      return fail("damaged zip directory");
    const uint8_t *entry = &bytes[at];
    unsigned flags = read16le(entry + 8), method = read16le(entry + 10);
    uint32_t crc = read32le(entry + 16);
    size_t packed = read32le(entry + 20), size = read32le(entry + 24);
    size_t nameLength = read16le(entry + 28);
    size_t local = read32le(entry + 42);
    if (at + entrySize + nameLength > bytes.size())
      return fail("damaged zip directory");
    StringRef name(reinterpret_cast<const char *>(entry + entrySize),
                   nameLength);
    at += entrySize + nameLength + read16le(entry + 30) + read16le(entry + 32);
    if ((flags & 1) || (method != 0 && method != 8))
      return fail("entry '" + name + "' is neither stored nor deflated");
    if (packed == UINT32_MAX || size == UINT32_MAX || local == UINT32_MAX)
      return fail("entry '" + name + "' is too large");
    if (local + localSize > bytes.size())
      return fail("entry '" + name + "' is truncated");
    size_t begin = local + localSize + read16le(&bytes[local + 26]) +
                   read16le(&bytes[local + 28]);
    // Deflate cannot shrink data by more than about a thousand times.
    if (begin > bytes.size() || packed > bytes.size() - begin ||
        size / 2000 > packed)
      return fail("entry '" + name + "' is truncated");
    ArrayRef<uint8_t> stream = bytes.slice(begin, packed);
    if (method == 8 && !llvm::compression::zlib::isAvailable())
      return fail("entry '" + name +
                  "' is deflated, and LLVM was built "
                  "without zlib");
    std::vector<uint8_t> content =
        method == 8 ? inflate(stream, size) : stream.vec();
    if (llvm::crc32(content) != crc)
      return fail("entry '" + name + "' has a wrong checksum");
    if (!name.consume_back(".npy"))
      continue;
    Expected<NpyArray> array =
        parseNpy(content, (path + ":" + name + ".npy").str());
    if (!array)
      return array.takeError();
    arrays[name] = std::move(*array);
  }
  return std::move(arrays);
}
