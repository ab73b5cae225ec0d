//===- Registers.cpp - Registers of a thread of a kernel ------------------===//

#include "attn/Cost/Registers.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::createStringError;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

/// The numbers behind a directive, multiplied; 0 where it is not there.
static unsigned readDirective(StringRef head, StringRef name) {
  size_t at = head.find(name);
  if (at == StringRef::npos)
    return 0;
  StringRef rest = head.drop_front(at + name.size());
  unsigned product = 1, value = 0;
  do {
    rest = rest.ltrim();
    if (rest.consumeInteger(10, value))
      return 0;
    product *= value;
    rest = rest.ltrim();
  } while (rest.consume_front(","));
  return product;
}

RegisterDirectives mlir::attn::sim::readRegisterDirectives(StringRef ptx,
                                                           StringRef kernel) {
  RegisterDirectives found;
  for (size_t at = ptx.find(".entry"); at != StringRef::npos;
       at = ptx.find(".entry", at + 1)) {
    StringRef rest = ptx.drop_front(at + StringRef(".entry").size()).ltrim();
    if (rest.take_while([](char c) {
          return llvm::isAlnum(c) || c == '_' || c == '$';
        }) != kernel)
      continue;
    auto [head, body] = rest.split('{');
    body = body.take_front(body.find("\n}"));
    found.maxRegisters = readDirective(head, ".maxnreg");
    found.threads = readDirective(head, ".reqntid");
    if (!found.threads)
      found.threads = readDirective(head, ".maxntid");
    found.minCtas = readDirective(head, ".minnctapersm");
    found.isDynamic = body.contains("setmaxnreg.");
  }
  return found;
}

unsigned RegisterDirectives::getMost(const TargetRow &target) const {
  unsigned most = target.registersPerThread;
  if (threads) {
    unsigned warps = llvm::divideCeil(threads, 32u) * std::max(minCtas, 1u);
    most = std::min<unsigned>(
        most, llvm::alignDown(target.registersPerSM / (32 * warps),
                              target.registerAllocationUnit));
  }
  return maxRegisters ? std::min(most, maxRegisters) : most;
}

std::string RegisterDirectives::describe() const {
  std::string text;
  for (auto [name, value] : {std::pair(".maxnreg", maxRegisters),
                             {".reqntid or .maxntid", threads},
                             {".minnctapersm", minCtas}})
    if (value)
      text += (text.empty() ? "" : ", ") +
              llvm::formatv("{0} {1}", name, value).str();
  return text.empty() ? "none" : text;
}

Expected<RegisterCount>
mlir::attn::sim::findRegisters(StringRef ptx, StringRef kernel,
                               const TargetRow &target) {
  RegisterDirectives directives = readRegisterDirectives(ptx, kernel);
  bool isBounded = directives.maxRegisters || directives.threads;
  bool isFixed = directives.isDynamic && isBounded;
  Expected<RegisterCount> registers =
      countRegisters(ptx, kernel, target.chip, /*mayLowerVersion=*/!isFixed);
  if (registers)
    return registers;
  std::string why = llvm::toString(registers.takeError());
  if (isFixed)
    return RegisterCount{directives.getMost(target),
                         "its directives: " + directives.describe()};
  return createStringError(
      "registers of a thread: " + why +
      "; the option registers gives their number without ptxas\nnote: the "
      "directives of \"" +
      kernel + "\" (" + directives.describe() + ") only say that they are " +
      Twine(directives.getMost(target)) +
      " at most; with setmaxnreg in it they would say how many");
}
