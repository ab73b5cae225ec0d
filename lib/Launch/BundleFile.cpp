//===- BundleFile.cpp - The bytes of a bundle -----------------------------===//

#include "attn/Launch/BundleFile.h"
#include "attn/Support/JSON.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Alignment.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SHA256.h"

using namespace mlir::attn;
using llvm::StringRef;

static constexpr llvm::StringLiteral kMagic("ATTNBNDL");
/// Images begin at multiples of this.
static constexpr uint64_t kAlignment = 16;
/// Magic, version, bytes of the header and its hash.
static constexpr size_t kPreamble = 48;

static std::string getHash(StringRef bytes) {
  std::array<uint8_t, 32> hash =
      llvm::SHA256::hash(llvm::arrayRefFromStringRef(bytes));
  return std::string(hash.begin(), hash.end());
}

static void appendInteger(std::string &bytes, uint32_t value) {
  char raw[4];
  llvm::support::endian::write32le(raw, value);
  bytes.append(raw, sizeof(raw));
}

std::string mlir::attn::writeBundle(const Bundle &bundle) {
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
  file += getHash(header);
  file += header;
  file.resize(llvm::alignTo(file.size(), kAlignment));
  return file + payload;
}

bool mlir::attn::isBundle(StringRef bytes) { return bytes.starts_with(kMagic); }

static llvm::Error makeDamaged(const llvm::Twine &what) {
  return llvm::createStringError("damaged bundle: " + what);
}

static llvm::Expected<BundleImage> readImage(const llvm::json::Object &object,
                                             StringRef payload) {
  std::optional<StringRef> kind = object.getString("kind"),
                           chip = object.getString("chip"),
                           hash = object.getString("sha256");
  std::optional<int64_t> offset = object.getInteger("offset"),
                         size = object.getInteger("bytes");
  if (!kind || !chip || !hash || !offset || !size || *offset < 0 || *size < 0)
    return makeDamaged("an image without its fields");
  if (uint64_t(*offset) > payload.size() ||
      uint64_t(*size) > payload.size() - *offset)
    return makeDamaged("an image ends behind the file");
  BundleImage image;
  image.kind =
      *kind == "ptx" ? BundleImage::Kind::PTX : BundleImage::Kind::Cubin;
  image.chip = chip->str();
  image.bytes = payload.substr(*offset, *size).str();
  if (llvm::toHex(getHash(image.bytes), /*LowerCase=*/true) != *hash)
    return makeDamaged("an image differs from its hash");
  return std::move(image);
}

llvm::Expected<Bundle> mlir::attn::readBundle(StringRef bytes) {
  if (!isBundle(bytes) || bytes.size() < kPreamble)
    return makeDamaged("no complete preamble");
  uint32_t version = llvm::support::endian::read32le(bytes.data() + 8);
  if (version != kBundleVersion)
    return llvm::createStringError(
        llvm::formatv("expected a bundle of version {0}, got version {1}",
                      kBundleVersion, version));
  uint64_t size = llvm::support::endian::read32le(bytes.data() + 12);
  StringRef header = bytes.substr(kPreamble, size);
  if (header.size() != size || getHash(header) != bytes.substr(16, 32))
    return makeDamaged("the header differs from its hash");
  llvm::Expected<llvm::json::Value> json = parseJSON(header);
  if (!json)
    return json.takeError();
  const llvm::json::Object *root = json->getAsObject();
  const llvm::json::Value *launch = root ? root->get("launch") : nullptr;
  const llvm::json::Array *images = root ? root->getArray("images") : nullptr;
  if (!launch || !images)
    return makeDamaged("a header without its fields");
  llvm::Expected<LaunchRecord> record =
      parseLaunchRecord(llvm::formatv("{0}", *launch).str());
  if (!record)
    return record.takeError();
  Bundle bundle;
  bundle.launch = std::move(*record);
  StringRef payload = bytes.substr(llvm::alignTo(kPreamble + size, kAlignment));
  for (const llvm::json::Value &value : *images) {
    const llvm::json::Object *object = value.getAsObject();
    llvm::Expected<BundleImage> image =
        readImage(object ? *object : llvm::json::Object(), payload);
    if (!image)
      return image.takeError();
    bundle.images.push_back(std::move(*image));
  }
  return std::move(bundle);
}
