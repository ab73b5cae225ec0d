//===- Bundle.cpp - A compiled kernel in one file -------------------------===//

#include "attn/Compile/Bundle.h"
#include "attn/Target/Assembler.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace mlir::attn;

static constexpr StringLiteral kMagic("ATTNBNDL");
/// Images begin at multiples of this.
static constexpr uint64_t kAlignment = 16;

static llvm::Expected<std::string> assemble(const std::string &ptx,
                                            const std::string &chip) {
  AssemblerOptions options;
  options.chip = chip;
  llvm::Expected<AssemblerResult> result = assemblePTX(ptx, options);
  if (!result)
    return result.takeError();
  for (const AssemblerMessage &message : result->log.messages)
    if (message.severity == AssemblerMessage::Severity::Error)
      return llvm::createStringError("ptxas refuses the kernel for " + chip +
                                     ": " + message.text);
  return std::move(result->cubin);
}

llvm::Expected<Bundle> attn::makeBundle(const CompileResult &result,
                                        llvm::ArrayRef<std::string> chips) {
  if (result.launches.size() != 1)
    return llvm::createStringError(
        "expected one kernel with a launch record to bundle, got " +
        Twine(result.launches.size()));
  Bundle bundle;
  bundle.launch = result.launches.front();
  std::vector<std::string> wanted(chips.begin(), chips.end());
  if (wanted.empty()) {
    if (llvm::Expected<std::string> ptxas = findPtxas())
      wanted.push_back(bundle.launch.chip);
    else
      llvm::consumeError(ptxas.takeError());
  }
  for (const std::string &chip : wanted) {
    llvm::Expected<std::string> cubin = assemble(result.ptx, chip);
    if (!cubin)
      return cubin.takeError();
    bundle.images.push_back(
        {BundleImage::Kind::Cubin, chip, std::move(*cubin)});
  }
  bundle.images.push_back(
      {BundleImage::Kind::PTX, bundle.launch.chip, result.ptx});
  return std::move(bundle);
}

static std::array<uint8_t, 32> getHash(StringRef bytes) {
  return llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
}

static void appendInteger(std::string &bytes, uint32_t value) {
  char raw[4];
  llvm::support::endian::write32le(raw, value);
  bytes.append(raw, sizeof(raw));
}

std::string attn::writeBundle(const Bundle &bundle) {
  std::string payload;
  llvm::json::Array images;
  for (const BundleImage &image : bundle.images) {
    payload.resize(llvm::alignTo(payload.size(), kAlignment));
    images.push_back(llvm::json::Object{
        {"kind", image.kind == BundleImage::Kind::Cubin ? "cubin" : "ptx"},
        {"chip", image.chip},
        {"offset", int64_t(payload.size())},
        {"bytes", int64_t(image.bytes.size())},
        {"sha256", llvm::toHex(getHash(image.bytes), /*LowerCase=*/true)}});
    payload += image.bytes;
  }
  std::string header =
      llvm::formatv("{0}", llvm::json::Value(llvm::json::Object{
                               {"launch", toJSON(bundle.launch)},
                               {"images", std::move(images)}}))
          .str();
  std::string file = kMagic.str();
  appendInteger(file, kBundleVersion);
  appendInteger(file, header.size());
  for (uint8_t byte : getHash(header))
    file.push_back(static_cast<char>(byte));
  file += header;
  file.resize(llvm::alignTo(file.size(), kAlignment));
  return file + payload;
}
