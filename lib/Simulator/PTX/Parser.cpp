//===- Parser.cpp - PTX text to statements --------------------------------===//

#include "Lexer.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"
#include <cstring>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// Of a variable, in bytes: no memory that kernels declare is as long.
static constexpr int64_t kMostAlignment = 1 << 20;
/// Of one declaration.
static constexpr int64_t kMostRegisters = 1000000;

namespace {

/// A recursive-descent parser.
class Parser : Lexer {
public:
  Parser(StringRef text, StringRef name) : Lexer(text, name) {
    module.locs.push_back({});
  }

  Expected<AstModule> run() {
    while (true) {
      skipSpace();
      if (cur == end)
        break;
      if (Error e = parseTopLevel())
        return std::move(e);
    }
    return std::move(module);
  }

private:
  AstModule module;
  AstFunction *function = nullptr;
  unsigned currentLoc = 0;

  Error parseTopLevel() {
    unsigned startLine = line;
    StringRef d = directive();
    if (d.empty())
      return expected("a directive");
    if (d == "version") {
      skipSpace();
      const char *begin = cur;
      while (cur != end && (llvm::isDigit(*cur) || *cur == '.'))
        ++cur;
      auto [major, minor] = StringRef(begin, cur - begin).split('.');
      unsigned a = 0, b = 0;
      if (major.getAsInteger(10, a) || minor.getAsInteger(10, b))
        return error("expected a version such as 8.0");
      module.version = a * 10 + b;
      return Error::success();
    }
    if (d == "target") {
      do {
        StringRef t = name();
        if (t.starts_with("sm_"))
          module.target = t.str();
      } while (consume(','));
      return Error::success();
    }
    if (d == "address_size") {
      Expected<int64_t> size = integer();
      if (!size)
        return size.takeError();
      if (*size != 64)
        return error("expected 64-bit addresses, got " + llvm::Twine(*size));
      return Error::success();
    }
    if (d == "file")
      return parseFile();
    if (d == "section") {
      while (cur != end && *cur != '{')
        ++cur;
      return skipBraces();
    }
    if (d == "pragma") {
      if (Error e = skipString())
        return e;
      return require(';');
    }
    if (d == "alias") {
      while (cur != end && *cur != ';')
        ++cur;
      return require(';');
    }
    bool isExtern = false;
    while (d == "visible" || d == "weak" || d == "extern" || d == "common") {
      isExtern |= d == "extern";
      d = directive();
    }
    if (d == "entry" || d == "func")
      return parseFunction(d == "entry", startLine);
    if (d == "global" || d == "const" || d == "shared") {
      AstVariable v;
      v.space = d;
      v.isExtern = isExtern;
      do {
        AstVariable each = v;
        if (Error e = parseVariable(each))
          return e;
        v.type = each.type;
        v.elementBytes = each.elementBytes;
        v.align = each.align;
        module.globals.push_back(std::move(each));
      } while (consume(','));
      return require(';');
    }
    return error("unknown directive '." + d + "'");
  }

  Error parseFile() {
    Expected<int64_t> index = integer();
    if (!index)
      return index.takeError();
    skipSpace();
    if (Error e = require('"'))
      return e;
    const char *begin = cur;
    while (cur != end && *cur != '"')
      ++cur;
    module.files[*index] = std::string(begin, cur - begin);
    if (Error e = require('"'))
      return e;
    while (consume(',')) {
      Expected<int64_t> ignored = integer();
      if (!ignored)
        return ignored.takeError();
    }
    return Error::success();
  }

  /// What no device has; sums of sizes below do not overflow.
  static constexpr uint64_t kMaxVariableBytes = uint64_t(1) << 40;
  static unsigned typeBytes(StringRef type) {
    return llvm::StringSwitch<unsigned>(type)
        .Cases({"b8", "u8", "s8"}, 1)
        .Cases({"b16", "u16", "s16", "f16", "bf16"}, 2)
        .Cases({"b32", "u32", "s32", "f32", "f16x2", "bf16x2"}, 4)
        .Cases({"b64", "u64", "s64", "f64"}, 8)
        .Case("b128", 16)
        .Default(0);
  }

  /// After the state space: `.align N .type name[dims] = init`.
  Error parseVariable(AstVariable &v) {
    v.line = line;
    bool explicitAlign = v.align > 1;
    while (at('.')) {
      StringRef d = directive();
      if (d == "align") {
        Expected<int64_t> a = integer();
        if (!a)
          return a.takeError();
        if (*a <= 0 || *a > kMostAlignment || !llvm::isPowerOf2_64(*a))
          return error("expected a power of two up to " +
                       llvm::Twine(kMostAlignment) + " as alignment, got " +
                       llvm::Twine(*a));
        v.align = *a;
        explicitAlign = true;
      } else if (d == "ptr") {
        // `.ptr .global .align 16`: describes a pointer parameter. Its
        // alignment is the pointee's.
        v.isPointer = true;
        while (at('.')) {
          StringRef p = peekDirective();
          if (p == "align") {
            directive();
            Expected<int64_t> a = integer();
            if (!a)
              return a.takeError();
          } else if (p == "global" || p == "shared" || p == "const" ||
                     p == "local" || p == "param") {
            directive();
          } else {
            break;
          }
        }
      } else if (d == "attribute") {
        while (cur != end && *cur != ')')
          ++cur;
        if (Error e = require(')'))
          return e;
      } else if (unsigned bytes = typeBytes(d)) {
        v.type = d;
        v.elementBytes = bytes;
      } else {
        return error("unknown variable attribute '." + d + "'");
      }
    }
    if (v.type.empty())
      return error("expected a variable type");
    v.name = name();
    if (v.name.empty())
      return expected("a variable name");
    v.bytes = v.elementBytes;
    while (consume('[')) {
      v.isArray = true;
      if (consume(']')) {
        v.unsized = true;
        v.bytes = 0;
        continue;
      }
      Expected<int64_t> n = integer();
      if (!n)
        return n.takeError();
      v.bytes =
          *n < 0 ? UINT64_MAX : llvm::SaturatingMultiply<uint64_t>(v.bytes, *n);
      if (v.bytes > kMaxVariableBytes)
        return error("expected '" + v.name + "' to have at most " +
                     llvm::Twine(kMaxVariableBytes) + " bytes, got more");
      if (Error e = require(']'))
        return e;
    }
    if (!explicitAlign)
      v.align = v.elementBytes;
    if (consume('='))
      if (Error e = parseInit(v))
        return e;
    if (!v.init.empty() && v.unsized)
      v.bytes = v.init.size();
    if (v.init.size() > v.bytes)
      return error("expected at most " + llvm::Twine(v.bytes) +
                   " bytes of initial values of '" + v.name + "', got " +
                   llvm::Twine(v.init.size()));
    return Error::success();
  }

  Error parseInit(AstVariable &v) {
    if (consume('{')) {
      if (consume('}'))
        return Error::success();
      do {
        if (Error e = nest([&] { return parseInit(v); }))
          return e;
      } while (consume(','));
      return require('}');
    }
    uint64_t at = v.init.size();
    v.init.resize(at + v.elementBytes, 0);
    skipSpace();
    if (cur != end && isNameStart(*cur)) {
      StringRef n = name();
      bool generic = n == "generic" && consume('(');
      if (generic)
        n = name();
      int64_t addend = 0;
      if (consume('+')) {
        Expected<int64_t> a = integer();
        if (!a)
          return a.takeError();
        addend = *a;
      }
      if (generic)
        if (Error e = require(')'))
          return e;
      v.symbolInits.push_back({at, n, addend, generic});
      return Error::success();
    }
    AstOperand op;
    if (Error e = number(op))
      return e;
    uint64_t bits = op.bits;
    if (op.kind == AstOperand::F64 && v.elementBytes == 4) {
      double wide;
      std::memcpy(&wide, &bits, 8);
      float narrow = wide;
      bits = 0;
      std::memcpy(&bits, &narrow, 4);
    }
    std::memcpy(v.init.data() + at, &bits,
                std::min<unsigned>(v.elementBytes, 8));
    return Error::success();
  }

  /// Only functions, not kernels, have parameters in registers.
  Error parseParams(std::vector<AstVariable> &list, bool mayBeReg) {
    if (Error e = require('('))
      return e;
    if (consume(')'))
      return Error::success();
    do {
      StringRef d = directive();
      AstVariable v;
      v.space = "param";
      if (d == "reg" && mayBeReg)
        v.space = "reg";
      else if (d != "param")
        return error("expected '.param', got '." + d + "'");
      if (Error e = parseVariable(v))
        return e;
      list.push_back(std::move(v));
    } while (consume(','));
    return require(')');
  }

  Error parseFunction(bool isEntry, unsigned startLine) {
    AstFunction f;
    f.isEntry = isEntry;
    f.line = startLine;
    while (at('.')) {
      StringRef d = directive();
      if (d != "attribute" && d != "noreturn")
        return error("unknown function attribute '." + d + "'");
      if (consume('(')) {
        while (cur != end && *cur != ')')
          ++cur;
        if (Error e = require(')'))
          return e;
      }
    }
    if (!isEntry && at('('))
      if (Error e = parseParams(f.results, /*mayBeReg=*/true))
        return e;
    f.name = name();
    if (f.name.empty())
      return expected("a function name");
    if (at('('))
      if (Error e = parseParams(f.params, /*mayBeReg=*/!isEntry))
        return e;
    while (at('.')) {
      StringRef d = directive();
      if (d == "pragma") {
        if (Error e = skipString())
          return e;
        if (Error e = require(';'))
          return e;
        continue;
      }
      std::array<uint32_t, 3> values = {1, 1, 1};
      bool known =
          llvm::StringSwitch<bool>(d)
              .Cases({"maxntid", "reqntid", "minnctapersm", "maxnctapersm",
                      "maxnreg", "reqnctapercluster", "maxclusterrank",
                      "explicitcluster", "noreturn", "blocksareclusters",
                      "abi_preserve", "abi_preserve_control"},
                     true)
              .Default(false);
      if (!known)
        return error("unknown performance directive '." + d + "'");
      skipSpace();
      if (cur != end && llvm::isDigit(*cur)) {
        unsigned i = 0;
        do {
          Expected<int64_t> n = integer();
          if (!n)
            return n.takeError();
          if (uint64_t(*n) > UINT32_MAX)
            return error("expected a number up to " + llvm::Twine(UINT32_MAX) +
                         " after '." + d + "', got " +
                         llvm::Twine(uint64_t(*n)));
          if (i < 3)
            values[i++] = *n;
        } while (consume(','));
      }
      f.tuning[d.str()] = values;
    }
    if (consume(';')) {
      module.functions.push_back(std::move(f));
      return Error::success();
    }
    f.hasBody = true;
    if (Error e = require('{'))
      return e;
    function = &f;
    currentLoc = 0;
    depth = 1;
    while (depth) {
      skipSpace();
      if (cur == end)
        return expected("'}'");
      if (consume('{')) {
        if (depth == kMostDepth)
          return failNesting();
        item(AstItem::ScopeBegin);
        ++depth;
      } else if (consume('}')) {
        --depth;
        if (depth)
          item(AstItem::ScopeEnd);
      } else if (consume(';')) {
        continue;
      } else if (Error e = parseStatement()) {
        return e;
      }
    }
    function = nullptr;
    module.functions.push_back(std::move(f));
    return Error::success();
  }

  AstItem &item(AstItem::Kind kind) {
    function->body.push_back({});
    AstItem &it = function->body.back();
    it.kind = kind;
    it.line = line;
    return it;
  }

  Error parseStatement() {
    if (*cur == '.')
      return parseBodyDirective();
    // A label, unless the colon belongs to a mnemonic (`::`).
    const char *save = cur;
    StringRef n = name();
    if (!n.empty()) {
      skipSpace();
      if (cur != end && *cur == ':' && (cur + 1 == end || cur[1] != ':')) {
        ++cur;
        skipSpace();
        if (cur != end && *cur == '.') {
          StringRef d = peekDirective();
          if (d == "branchtargets" || d == "calltargets") {
            directive();
            AstItem &it = item(AstItem::Targets);
            it.name = n;
            do
              it.targetList.push_back(name());
            while (consume(','));
            return require(';');
          }
          if (d == "callprototype")
            return error("indirect calls are not supported");
        }
        item(AstItem::Label).name = n;
        return Error::success();
      }
    }
    cur = save;
    return parseInstruction();
  }

  Error parseBodyDirective() {
    StringRef d = directive();
    if (d == "loc") {
      Expected<int64_t> file = integer();
      if (!file)
        return file.takeError();
      Expected<int64_t> sourceLine = integer();
      if (!sourceLine)
        return sourceLine.takeError();
      while (cur != end && *cur != '\n')
        ++cur;
      // LLVM counts lines of inline assembly on from that of the statement.
      if (isInlineAsm)
        return Error::success();
      module.locs.push_back({unsigned(*file), unsigned(*sourceLine)});
      currentLoc = module.locs.size() - 1;
      return Error::success();
    }
    if (d == "pragma") {
      if (Error e = skipString())
        return e;
      return require(';');
    }
    if (d == "reg")
      return parseRegs();
    if (d == "shared" || d == "local" || d == "param" || d == "global" ||
        d == "const") {
      AstVariable v;
      v.space = d;
      do {
        AstVariable each = v;
        if (Error e = parseVariable(each))
          return e;
        v.type = each.type;
        v.elementBytes = each.elementBytes;
        v.align = each.align;
        AstItem &it = item(AstItem::Variable);
        it.index = function->variables.size();
        function->variables.push_back(std::move(each));
      } while (consume(','));
      return require(';');
    }
    return error("unknown directive '." + d + "'");
  }

  Error parseRegs() {
    StringRef type = directive();
    if (type.empty())
      return expected("a register type");
    if (type.starts_with("v"))
      return error("vector registers '." + type + "' are not supported");
    do {
      AstItem &it = item(AstItem::Reg);
      it.reg.type = type;
      it.reg.name = name();
      if (it.reg.name.empty())
        return expected("a register name");
      if (consume('<')) {
        Expected<int64_t> n = integer();
        if (!n)
          return n.takeError();
        if (*n <= 0 || *n > kMostRegisters)
          return error("expected between 1 and " + llvm::Twine(kMostRegisters) +
                       " registers '" + it.reg.name + "', got " +
                       llvm::Twine(*n));
        it.reg.count = *n;
        if (Error e = require('>'))
          return e;
      }
    } while (consume(','));
    return require(';');
  }

  Error parseInstruction() {
    AstInst inst;
    inst.line = line;
    inst.loc = currentLoc;
    if (consume('@')) {
      inst.guardNegated = consume('!');
      inst.guard = name();
      if (inst.guard.empty())
        return expected("a predicate");
    }
    skipSpace();
    const char *begin = cur;
    const char *mnemonic = cur;
    while (cur != end &&
           (llvm::isAlnum(*cur) || *cur == '_' || *cur == '.' || *cur == ':'))
      ++cur;
    StringRef opcode(mnemonic, cur - mnemonic);
    if (opcode.empty())
      return expected("an instruction");
    llvm::SmallVector<StringRef, 8> parts;
    opcode.split(parts, '.');
    inst.base = parts.front();
    inst.mods.assign(parts.begin() + 1, parts.end());
    if (!at(';')) {
      do {
        AstOperand op;
        if (Error e = parseOperand(op))
          return e;
        inst.ops.push_back(std::move(op));
      } while (consume(','));
    }
    inst.text = StringRef(begin, cur - begin).trim();
    if (Error e = require(';'))
      return e;
    AstItem &it = item(AstItem::Inst);
    it.line = inst.line;
    it.index = function->insts.size();
    function->insts.push_back(std::move(inst));
    return Error::success();
  }
};

} // namespace

Expected<AstModule> mlir::attn::sim::parseModule(StringRef text,
                                                 StringRef name) {
  return Parser(text, name).run();
}
