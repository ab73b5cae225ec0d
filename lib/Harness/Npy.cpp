//===- Npy.cpp - numpy array files ----------------------------------------===//
//
// A .npy file is a magic string, a version, the length of a header and the
// header: a Python dictionary of `descr`, `fortran_order` and `shape`. The data
// follow (numpy, "A simple file format for NumPy arrays").
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Npy.h"

#include "attn/Support/Files.h"
#include "attn/Support/HostMemory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static constexpr StringRef magic("\x93NUMPY", 6);

bool NpyArray::holds(DType dtype) const {
  if (width != getByteWidth(dtype))
    return false;
  switch (dtype) {
  case DType::F16:
    // int16 is a common carrier of half bits where numpy sees no difference.
    return llvm::is_contained({'f', 'V', 'u', 'i'}, kind);
  case DType::BF16:
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E8M0FNU:
    return llvm::is_contained({'V', 'u', 'i'}, kind);
  case DType::F32:
  case DType::F64:
    return kind == 'f';
  case DType::I8:
  case DType::I16:
  case DType::I32:
  case DType::I64:
    return kind == 'i';
  case DType::U8:
  case DType::U16:
  case DType::U32:
  case DType::U64:
    return kind == 'u';
  }
  llvm_unreachable("covered switch");
}

std::string NpyArray::getTypeName() const {
  return std::string(1, kind) + std::to_string(width);
}

int64_t NpyArray::getNumElements() const {
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  return count;
}

namespace {

/// Reads the dictionary literal of a header.
class HeaderParser {
public:
  HeaderParser(StringRef text, NpyArray &array) : text(text), array(array) {}

  /// The problem, or an empty string.
  std::string run() {
    if (!consume('{'))
      return "expected a dictionary as header";
    while (!consume('}')) {
      std::string key, problem;
      if (!parseString(key) || !consume(':'))
        return "expected a key and ':' in the header";
      if (key == "descr")
        problem = parseDescr();
      else if (key == "fortran_order")
        problem = parseOrder();
      else if (key == "shape")
        problem = parseShape();
      else
        problem = "unknown key '" + key + "' in the header";
      if (!problem.empty())
        return problem;
      if (!consume(',') && !text.ltrim().starts_with("}"))
        return "expected ',' or '}' in the header";
    }
    if (!hasDescr || !hasOrder || !hasShape)
      return "expected 'descr', 'fortran_order' and 'shape' in the header";
    return "";
  }

private:
  bool consume(StringRef token) {
    text = text.ltrim();
    return text.consume_front(token);
  }
  bool consume(char c) { return consume(StringRef(&c, 1)); }

  bool parseString(std::string &result) {
    text = text.ltrim();
    if (text.empty() || (text[0] != '\'' && text[0] != '"'))
      return false;
    size_t end = text.find(text[0], 1);
    if (end == StringRef::npos)
      return false;
    result = text.slice(1, end).str();
    text = text.drop_front(end + 1);
    return true;
  }

  std::string parseDescr() {
    std::string descr;
    if (!parseString(descr))
      return "expected a plain element type, got a structured one";
    StringRef type = descr;
    if (type.starts_with(">"))
      return "expected little-endian elements, got '" + descr + "'";
    type = type.ltrim("<|=");
    if (type.empty() ||
        !llvm::is_contained({'f', 'i', 'u', 'b', 'V'}, type[0]) ||
        type.drop_front().getAsInteger(10, array.width) ||
        !llvm::is_contained({1u, 2u, 4u, 8u}, array.width))
      return "unknown element type '" + descr + "'";
    array.kind = type[0];
    hasDescr = true;
    return "";
  }

  std::string parseOrder() {
    hasOrder = true;
    if (consume("False"))
      return "";
    if (consume("True"))
      return "expected row-major (C) order, got Fortran order";
    return "expected True or False for 'fortran_order'";
  }

  std::string parseShape() {
    if (!consume('('))
      return "expected a tuple for 'shape'";
    while (!consume(')')) {
      int64_t extent;
      text = text.ltrim();
      if (text.consumeInteger(10, extent) || extent < 0)
        return "expected integers of at least 0 in 'shape'";
      array.shape.push_back(extent);
      if (!consume(',') && !text.ltrim().starts_with(")"))
        return "expected ',' or ')' in 'shape'";
    }
    hasShape = true;
    return "";
  }

  StringRef text;
  NpyArray &array;
  bool hasDescr = false, hasOrder = false, hasShape = false;
};

} // namespace

Expected<NpyArray> sim::parseNpy(ArrayRef<uint8_t> bytes, StringRef name) {
  auto fail = [&](const Twine &problem) {
    return createStringError(name + ": " + problem);
  };
  StringRef text(reinterpret_cast<const char *>(bytes.data()), bytes.size());
  if (!text.starts_with(magic))
    return fail("not a .npy file");
  if (bytes.size() < 10)
    return fail("truncated .npy file");
  unsigned major = bytes[6];
  if (major < 1 || major > 3)
    return fail("expected .npy version 1 to 3, got " + Twine(major));
  size_t start = major == 1 ? 10 : 12;
  if (bytes.size() < start)
    return fail("truncated .npy file");
  size_t length = major == 1 ? llvm::support::endian::read16le(&bytes[8])
                             : llvm::support::endian::read32le(&bytes[8]);
  if (length > bytes.size() - start)
    return fail("truncated .npy file");
  NpyArray array;
  std::string problem = HeaderParser(text.substr(start, length), array).run();
  if (!problem.empty())
    return fail(problem);
  int64_t size = array.width;
  for (int64_t extent : array.shape)
    if (llvm::MulOverflow<int64_t>(size, extent, size))
      return fail("expected an array below 2^63 bytes");
  size_t rest = bytes.size() - start - length;
  if (rest != uint64_t(size))
    return fail("expected " + Twine(size) + " bytes of data, got " +
                Twine(rest));
  array.data.assign(bytes.end() - rest, bytes.end());
  return std::move(array);
}

uint64_t sim::getMaxArrayBytes() { return getHostMemory() / 4; }

Expected<NpyArray> sim::readNpy(StringRef path) {
  Expected<std::string> bytes = readFile(path, getMaxArrayBytes());
  if (!bytes)
    return bytes.takeError();
  return parseNpy(llvm::arrayRefFromStringRef(*bytes), path);
}

static StringRef getDescr(DType dtype) {
  switch (dtype) {
  case DType::F16:
    return "<f2";
  case DType::BF16:
    return "|V2";
  case DType::F32:
    return "<f4";
  case DType::F64:
    return "<f8";
  case DType::F8E4M3FN:
  case DType::F8E5M2:
  case DType::F8E8M0FNU:
    return "|u1";
  case DType::I8:
    return "|i1";
  case DType::I16:
    return "<i2";
  case DType::U8:
    return "|u1";
  case DType::U16:
    return "<u2";
  case DType::U32:
    return "<u4";
  case DType::U64:
    return "<u8";
  case DType::I32:
    return "<i4";
  case DType::I64:
    return "<i8";
  }
  llvm_unreachable("covered switch");
}

Error sim::writeNpy(StringRef path, DType dtype, ArrayRef<int64_t> shape,
                    ArrayRef<uint8_t> data) {
  std::string header = ("{'descr': '" + getDescr(dtype) +
                        "', 'fortran_order': False, 'shape': (")
                           .str();
  for (int64_t extent : shape)
    header += std::to_string(extent) + ",";
  header += "), }";
  // The data begin at a multiple of 64 bytes, after a newline.
  size_t padded = llvm::alignTo(10 + header.size() + 1, 64) - 10;
  header.append(padded - 1 - header.size(), ' ');
  header += '\n';
  return writeFile(path, [&](llvm::raw_ostream &os) {
    os << magic << '\x01' << '\0' << char(padded & 0xff) << char(padded >> 8)
       << header;
    os.write(reinterpret_cast<const char *>(data.data()), data.size());
  });
}
