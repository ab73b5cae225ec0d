//===- Module.cpp - Taking PTX out of what programs load ------------------===//

#include "attn/Device/Module.h"

#include "FatbinLayout.h"
#include "attn/Target/TargetTable.h"
#include "llvm/Support/Compression.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include <cstring>

using namespace mlir::attn::device;
using namespace mlir::attn;
using llvm::Error;
using llvm::Expected;
using llvm::formatv;
using llvm::StringRef;
using namespace llvm::support::endian;

static constexpr uint64_t kLeastEntry = 64;
enum FatbinFlags : uint64_t { LZ4 = 0x2000, Zstd = 0x8000 };
/// A C program keeps this in place of a fatbin: a magic number, a version, and
/// the address of the fatbin.
static constexpr uint32_t kWrapperMagic = 0x466243b1;
/// Decompressed text above this is no PTX that anybody writes.
static constexpr uint64_t kMostText = uint64_t(1) << 28;

/// The text of an entry whose payload is PTX.
static Expected<std::string> readEntry(const FatbinEntry &entry) {
  if (entry.flags & LZ4)
    return fail(Status::NotSupported, "expected PTX without LZ4 in the fatbin: "
                                      "--compress-mode=size leaves it out");
  if (!(entry.flags & Zstd))
    return StringRef(reinterpret_cast<const char *>(entry.payload.data()),
                     entry.payload.size())
        .rtrim('\0')
        .str();
  if (!llvm::compression::zstd::isAvailable() || entry.textSize > kMostText ||
      entry.packedSize > entry.payload.size())
    return fail(Status::InvalidImage,
                formatv("expected compressed PTX of a fatbin, got {0} bytes "
                        "that stand for {1}",
                        entry.packedSize, entry.textSize));
  llvm::SmallVector<uint8_t, 0> text;
  if (Error error = llvm::compression::zstd::decompress(
          entry.payload.take_front(entry.packedSize), text, entry.textSize))
    return fail(Status::InvalidImage,
                "expected compressed PTX of a fatbin, got: " +
                    llvm::toString(std::move(error)));
  return StringRef(reinterpret_cast<const char *>(text.data()), text.size())
      .rtrim('\0')
      .str();
}

Error mlir::attn::device::walkEntries(
    llvm::ArrayRef<uint8_t> fatbin,
    llvm::function_ref<Error(const FatbinEntry &)> take) {
  for (uint64_t at = kFatbinHeader; fatbin.size() - at >= kLeastEntry;) {
    const uint8_t *entry = &fatbin[at];
    uint64_t header = read32le(entry + 4), payload = read64le(entry + 8);
    if (header < kLeastEntry || header > fatbin.size() - at ||
        payload > fatbin.size() - at - header)
      return fail(Status::InvalidImage,
                  formatv("expected an entry inside of the fatbin's {0} bytes, "
                          "got one of {1} bytes at {2}",
                          fatbin.size(), payload, at));
    FatbinEntry read{read16le(entry),      read32le(entry + 28),
                     read64le(entry + 40), read32le(entry + 16),
                     read64le(entry + 56), fatbin.slice(at + header, payload)};
    if (Error error = take(read))
      return error;
    at += header + payload;
  }
  return Error::success();
}

/// The PTX of a fatbin: that of the newest chip, where there is more than one.
static Expected<std::string> readFatbin(llvm::ArrayRef<uint8_t> fatbin) {
  std::string text;
  uint32_t newest = 0;
  bool hasCode = false;
  Error error = walkEntries(fatbin, [&](const FatbinEntry &entry) -> Error {
    if (entry.kind != PTXEntry) {
      hasCode = true;
    } else if (text.empty() || entry.chip > newest) {
      Expected<std::string> read = readEntry(entry);
      if (!read)
        return read.takeError();
      text = std::move(*read);
      newest = entry.chip;
    }
    return Error::success();
  });
  if (error)
    return std::move(error);
  if (text.empty())
    return fail(Status::NoBinary,
                formatv("expected a fatbin with PTX, got {0}: build it with "
                        "-gencode arch=compute_90a,code=compute_90a, or with "
                        "-ptx",
                        hasCode ? "one with machine code alone" : "none"));
  return text;
}

Expected<std::string>
mlir::attn::device::extractPTX(const void *image,
                               std::optional<uint64_t> size) {
  if (!image)
    return fail(Status::InvalidValue, "expected a module, got null");
  const auto *bytes = static_cast<const uint8_t *>(image);
  // No image has fewer bytes than its magic number, but a text may.
  uint64_t readable = size ? *size : strnlen((const char *)bytes, 4);
  uint32_t magic = readable >= 4 ? read32le(bytes) : 0;
  if (magic == kWrapperMagic && (!size || *size >= 16)) {
    const void *inner;
    std::memcpy(&inner, bytes + 8, sizeof(inner));
    return extractPTX(inner);
  }
  if (magic == kFatbinMagic) {
    if (size && *size < kFatbinHeader)
      return fail(Status::InvalidImage, "expected a whole fatbin, got its "
                                        "first bytes");
    uint64_t all = kFatbinHeader + read64le(bytes + 8);
    return readFatbin({bytes, size ? std::min(*size, all) : all});
  }
  StringRef text(reinterpret_cast<const char *>(bytes),
                 size ? *size : std::strlen((const char *)bytes));
  if (text.starts_with("\x7f"
                       "ELF"))
    return fail(Status::NoBinary,
                "expected PTX, got machine code (a cubin): use nvcc -ptx, or "
                "attn-run for Triton");
  text = text.take_until([](char c) { return c == '\0'; });
  if (!text.contains(".version") || !text.contains(".target"))
    return fail(Status::InvalidImage,
                "expected PTX or a fatbin, got '" + text.take_front(20) + "'");
  return text.str();
}

Error mlir::attn::device::explainUnread(StringRef ptx, Error error) {
  StringRef rest = ptx.split(".version").second.ltrim();
  unsigned major = 0, minor = 0;
  bool isNewer = !rest.consumeInteger(10, major) && rest.consume_front(".") &&
                 !rest.consumeInteger(10, minor) &&
                 std::pair(major, minor) > kNewestPTX;
  std::string why = llvm::toString(std::move(error));
  if (!isNewer)
    return fail(Status::InvalidPTX, why);
  return fail(Status::UnsupportedPTX,
              llvm::formatv("expected PTX of version {0}.{1} or older, got "
                            "{2}.{3}, with {4}",
                            kNewestPTX.first, kNewestPTX.second, major, minor,
                            why)
                  .str());
}

Error mlir::attn::device::checkTarget(StringRef ptxTarget,
                                      const TargetRow &chip) {
  StringRef rest = ptxTarget;
  unsigned number = 0;
  if (rest.consume_front("sm_") && !rest.consumeInteger(10, number)) {
    unsigned has = chip.computeCapability;
    bool runs = rest == "a"   ? number == has
                : rest == "f" ? number / 10 == has / 10 && number <= has
                              : rest.empty() && number <= has;
    if (runs)
      return Error::success();
  }
  return fail(Status::UnsupportedPTX, "expected PTX that runs on " + chip.chip +
                                          ", got PTX for '" + ptxTarget + "'");
}
