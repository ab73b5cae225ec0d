//===- Colors.cpp - Whether messages have colours -------------------------===//

#include "attn/Support/Colors.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/WithColor.h"
#include "llvm/Support/raw_ostream.h"
#include <cstdlib>

static bool wantsColors(const llvm::raw_ostream &stream) {
  const llvm::cl::Option *flag =
      llvm::cl::getRegisteredOptions().lookup("color");
  const char *noColor = std::getenv("NO_COLOR");
  if (noColor && *noColor && !(flag && flag->getNumOccurrences()))
    return false;
  return llvm::WithColor::defaultAutoDetectFunction()(stream);
}

void mlir::attn::setColors() {
  llvm::WithColor::setAutoDetectFunction(wantsColors);
}
