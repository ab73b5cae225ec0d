//===- TestForms.h - The forms of Inputs/forms.txt --------------*- C++ -*-===//

#ifndef ATTN_UNITTESTS_SIMULATOR_TESTFORMS_H
#define ATTN_UNITTESTS_SIMULATOR_TESTFORMS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include "gtest/gtest.h"
#include <string>
#include <vector>

namespace mlir::attn::sim::testing {

inline std::string readInput(llvm::StringRef name) {
  auto file = llvm::MemoryBuffer::getFile(ATTN_SIMULATOR_INPUTS "/" + name);
  EXPECT_TRUE(bool(file)) << name.str();
  return file ? (*file)->getBuffer().str() : "";
}

/// Expands alternatives; vectors of registers have a `%` and stay.
inline void expand(const std::string &text, std::vector<std::string> &out) {
  for (size_t open = text.find('{'); open != std::string::npos;
       open = text.find('{', open + 1)) {
    size_t close = text.find('}', open);
    llvm::StringRef inside =
        llvm::StringRef(text).slice(open + 1, std::min(close, text.size()));
    if (inside.contains('%'))
      continue;
    llvm::SmallVector<llvm::StringRef> alternatives;
    inside.split(alternatives, ',');
    for (llvm::StringRef each : alternatives)
      expand(text.substr(0, open) + each.str() + text.substr(close + 1), out);
    return;
  }
  out.push_back(text);
}

/// Puts registers for the operand signs.
inline std::string fillOperands(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, " ; ");
  std::string out;
  for (llvm::StringRef part : parts) {
    auto [op, operands] = part.trim().split(' ');
    std::string r = op.ends_with("16")   ? "%h"
                    : op.ends_with("64") ? "%d"
                                         : "%r";
    std::string list = operands.str();
    if (list == "@@")
      list = r + "0," + r + "1," + r + "2," + r + "3";
    else if (list == "@")
      list = r + "0," + r + "1," + r + "2";
    else if (list == "!")
      list = r + "0," + r + "1";
    else if (list == "#")
      list = r + "0," + r + "1,%r2";
    else if (llvm::StringRef(list).ends_with(" ?"))
      list = list.substr(0, list.size() - 2) + "," + r + "0," + r + "1";
    else if (llvm::StringRef(list).ends_with(" &"))
      list =
          list.substr(0, list.size() - 2) +
          (op.contains(".and.") || op.contains(".or.") || op.contains(".xor.")
               ? ",%p2"
               : "");
    out += op.str() + " " + list + ";\n";
  }
  return out;
}

inline const char *const declarations =
    ".reg .pred %p<8>;\n.reg .b8 %b<8>;\n"
    ".reg .b16 %h<16>;\n.reg .b32 %r<64>;\n"
    ".reg .b64 %d<40>;\n.reg .b128 %q<8>;\n";

/// A module with one statement in a kernel.
inline std::string makeModule(llvm::StringRef chip,
                              const std::string &statements) {
  return ".version 9.0\n.target " + chip.str() +
         "\n.address_size 64\n"
         ".extern .shared .align 1024 .b8 smem[];\n"
         ".visible .entry k(.param .align 64 .b8 prm[128])\n{\n" +
         std::string(declarations) + statements + "ret;\n}\n";
}

} // namespace mlir::attn::sim::testing

#endif // ATTN_UNITTESTS_SIMULATOR_TESTFORMS_H
