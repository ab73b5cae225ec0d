//===- PrintOps.cpp - Calls of the driver's functions ---------------------===//
//
// vprintf takes the address of a format and that of its arguments, which lie
// one after the other, each at a multiple of its bytes (CUDA C++ Programming
// Guide, Formatted Output; PTX Interoperability, System Calls).
//
//===----------------------------------------------------------------------===//

#include "PrintOps.h"
#include "../Machine/Exec.h"
#include "attn/Support/PrintfFormat.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;

/// Characters of a format or of a string that is printed.
static constexpr size_t kMostCharacters = 65536;

namespace {

/// What one lane prints.
class Printer {
public:
  Printer(Exec &x, unsigned lane) : x(x), lane(lane) {}
  /// Appends to what the cluster prints and returns the number of arguments;
  /// nothing after a fault.
  std::optional<uint32_t> print(uint64_t format, uint64_t list);
  /// Reads an argument of the call.
  std::optional<uint64_t> read(Space space, uint64_t address, unsigned bytes);
  std::optional<std::string> readString(uint64_t address);

private:
  Exec &x;
  unsigned lane;
};

} // namespace

std::optional<uint64_t> Printer::read(Space space, uint64_t address,
                                      unsigned bytes) {
  MemRef ref;
  if (!x.resolve(space, address, bytes, bytes, /*write=*/false, lane, ref))
    return std::nullopt;
  bool isValid = !ref.valid || std::all_of(ref.valid, ref.valid + bytes,
                                           [](uint8_t byte) { return byte; });
  if (!isValid && x.sanitizing())
    x.report(FindingKind::UninitialisedRead, Severity::Error,
             "what is printed depends on memory that was never written", lane);
  uint64_t value = 0;
  std::memcpy(&value, ref.data, bytes);
  return value;
}

std::optional<std::string> Printer::readString(uint64_t address) {
  std::string text;
  while (text.size() < kMostCharacters) {
    std::optional<uint64_t> byte = read(Space::Generic, address++, 1);
    if (!byte)
      return std::nullopt;
    if (*byte == 0)
      return text;
    text += char(*byte);
  }
  x.fault(FindingKind::InvalidOperation,
          "expected a string of fewer than " + llvm::Twine(kMostCharacters) +
              " characters for printf, got no end",
          lane);
  return std::nullopt;
}

std::optional<uint32_t> Printer::print(uint64_t format, uint64_t list) {
  std::optional<std::string> text = readString(format);
  if (!text)
    return std::nullopt;
  auto pieces = parsePrintfFormat(*text);
  if (!pieces) {
    x.fault(FindingKind::InvalidOperation, llvm::toString(pieces.takeError()),
            lane);
    return std::nullopt;
  }
  uint64_t offset = 0;
  uint32_t count = 0;
  std::string printed;
  for (const PrintfPiece &piece : *pieces) {
    llvm::SmallVector<uint64_t, 2> arguments;
    for (const PrintfArgument &argument : piece.arguments) {
      offset = llvm::alignTo(offset, argument.bytes);
      std::optional<uint64_t> value =
          read(Space::Generic, list + offset, argument.bytes);
      if (!value)
        return std::nullopt;
      arguments.push_back(*value);
      offset += argument.bytes;
      ++count;
    }
    if (arguments.empty()) {
      printed += piece.text;
      continue;
    }
    std::optional<std::string> string = "";
    if (piece.arguments.back().kind == PrintfArgument::Kind::String)
      string = readString(arguments.back());
    if (!string)
      return std::nullopt;
    printed += printConversion(piece, arguments, *string);
  }
  x.cluster.print(printed);
  return count;
}

void mlir::attn::sim::execPrint(Exec &x, const Inst &I) {
  uint64_t stride = x.machine.program.localBytes;
  bool isRight = true;
  forLanes(x.active, [&](unsigned lane) {
    if (!isRight)
      return;
    Printer printer(x, lane);
    auto format = printer.read(Space::Local, I.imm, 8),
         list = printer.read(Space::Local, I.imm2, 8);
    std::optional<uint32_t> count =
        format && list ? printer.print(*format, *list) : std::nullopt;
    isRight = count.has_value();
    if (!isRight)
      return;
    std::memcpy(&x.warp->local.bytes[lane * stride + I.flags], &*count, 4);
    std::memset(&x.warp->local.valid[lane * stride + I.flags], 1, 4);
  });
}

void mlir::attn::sim::execAssert(Exec &x, const Inst &I) {
  unsigned lane = llvm::countr_zero(x.active);
  Printer printer(x, lane);
  auto readText = [&](uint32_t offset) -> std::optional<std::string> {
    std::optional<uint64_t> address = printer.read(Space::Local, offset, 8);
    return address ? printer.readString(*address) : std::nullopt;
  };
  std::optional<std::string> message = readText(uint32_t(I.imm));
  std::optional<std::string> file =
      message ? readText(uint64_t(I.imm) >> 32) : std::nullopt;
  std::optional<uint64_t> line =
      file ? printer.read(Space::Local, uint32_t(I.imm2), 4) : std::nullopt;
  std::optional<std::string> function =
      line ? readText(I.imm2 >> 32) : std::nullopt;
  if (!function)
    return;
  x.fault(FindingKind::Trap,
          "assertion failed: " + *message + " (" + *file + ":" +
              llvm::Twine(*line) + ", " + *function + ")",
          lane);
}
