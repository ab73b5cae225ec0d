//===- Syntax.h - Parsed PTX, before decoding -------------------*- C++ -*-===//
//
// The parser splits a module into declarations and statements. It knows the
// grammar but not the instructions; the decoder gives them meaning. All
// references point into the program's text, which outlives them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PTX_SYNTAX_H
#define ATTN_LIB_SIMULATOR_PTX_SYNTAX_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace mlir::attn::sim {

/// An operand as written.
struct AstOperand {
  enum Kind {
    Name,    ///< register, symbol or label, plus `imm` when written `name+imm`
    NotName, ///< `!name`
    Int,     ///< integer literal in `bits`
    F32,     ///< `0f…`, bits of the float
    F64,     ///< `0d…` or a decimal fraction, bits of the double
    Sink,    ///< `_`
    Vector,  ///< `{…}`
    Address, ///< `[base+imm, …]`: elems[0] is the base, then what follows
    List,    ///< `(…)`
    Pair,    ///< `a|b`
  };
  Kind kind = Sink;
  llvm::StringRef name;
  int64_t imm = 0;
  uint64_t bits = 0;
  std::vector<AstOperand> elems;
};

/// An instruction as written.
struct AstInst {
  llvm::StringRef base;                       ///< "ld"
  llvm::SmallVector<llvm::StringRef, 6> mods; ///< "global", "v4", "b32"
  llvm::StringRef guard;                      ///< predicate name or empty
  bool guardNegated = false;
  llvm::SmallVector<AstOperand, 4> ops;
  llvm::StringRef text; ///< without the guard, up to the semicolon
  unsigned line = 0;
  unsigned loc = 0; ///< index into AstModule::locs
};

/// A variable: `.shared .align 16 .b8 x[64] = {…}`, a parameter, and so on.
struct AstVariable {
  llvm::StringRef name;
  llvm::StringRef space; ///< "shared", "global", "const", "local", "param"
  bool isExtern = false;
  bool isArray = false;
  bool unsized = false;
  bool isPointer = false; ///< a parameter that says so
  uint32_t align = 1;
  uint32_t elementBytes = 1;
  llvm::StringRef type;
  uint64_t bytes = 0;
  std::vector<uint8_t> init;
  /// `= {…}` entries that name symbols: (byte offset, name, addend, generic).
  struct SymbolInit {
    uint64_t offset;
    llvm::StringRef name;
    int64_t addend;
    bool generic;
  };
  std::vector<SymbolInit> symbolInits;
  unsigned line = 0;
};

/// `.reg .b32 %r<10>` (count 10) or `.reg .pred p` (count 0).
struct AstReg {
  llvm::StringRef name;
  llvm::StringRef type;
  int64_t count = 0;
};

/// One item of a function body, in order.
struct AstItem {
  enum Kind { ScopeBegin, ScopeEnd, Reg, Variable, Label, Inst, Targets };
  Kind kind;
  unsigned line = 0;
  llvm::StringRef name;                    ///< Label, Targets
  AstReg reg;                              ///< Reg
  uint32_t index = 0;                      ///< Inst, Variable: into the lists
  std::vector<llvm::StringRef> targetList; ///< Targets
};

struct AstFunction {
  llvm::StringRef name;
  bool isEntry = false;
  bool hasBody = false;
  std::vector<AstVariable> params;
  std::vector<AstVariable> results;
  std::vector<AstItem> body;
  std::vector<AstInst> insts;
  std::vector<AstVariable> variables;
  std::map<std::string, std::array<uint32_t, 3>> tuning;
  unsigned line = 0;
};

/// A source location from `.loc`.
struct AstLoc {
  unsigned file = 0;
  unsigned line = 0;
};

struct AstModule {
  unsigned version = 0;
  std::string target;
  std::map<unsigned, std::string> files;
  std::vector<AstLoc> locs; ///< locs[0] is "none"
  std::vector<AstVariable> globals;
  std::vector<AstFunction> functions;
};

/// Parses `text`; errors read `name:line: …`.
llvm::Expected<AstModule> parseModule(llvm::StringRef text,
                                      llvm::StringRef name);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_SYNTAX_H
