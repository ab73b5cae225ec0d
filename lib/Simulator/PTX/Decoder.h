//===- Decoder.h - From statements to decoded instructions ------*- C++ -*-===//
//
// Each instruction family registers decode functions by mnemonic. A decode
// function takes the qualifiers it knows out of the set; one that is left over
// is an error. Qualifiers are a set because compilers order them differently.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_SIMULATOR_PTX_DECODER_H
#define ATTN_LIB_SIMULATOR_PTX_DECODER_H

#include "ProgramImpl.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemAlloc.h"
#include <cstdlib>
#include <new>
#include <tuple>
#include <type_traits>

namespace mlir::attn::sim {

class Decoder;

/// The register class of a register of `bits` bits.
RegClass classOf(unsigned bits);

/// A lexical scope of registers, variables and labels.
struct Scope {
  struct Entry {
    enum Kind {
      Register,
      Numbered,
      Shared,
      SharedDyn,
      Local,
      Param,
      KernelParam,
      Global,
      Const,
      Targets
    } kind;
    Operand reg;         ///< Register; Numbered: the first
    uint32_t count = 0;  ///< Numbered
    uint32_t bits = 0;   ///< register width, 1 for predicates
    uint64_t offset = 0; ///< variables: offset in the space
    uint64_t bytes = 0;
    const AstVariable *var = nullptr;
    const std::vector<llvm::StringRef> *targets = nullptr;
    Scope *scope = nullptr; ///< Targets: where their labels are looked up
  };
  Scope *parent = nullptr;
  llvm::StringMap<Entry> entries;
  llvm::StringMap<Entry> numbered; ///< by prefix
  llvm::StringMap<uint32_t> labels;
};

/// The instruction that is being decoded.
struct Decoding {
  Decoder &d;
  const AstInst &ast;
  Inst &inst;
  llvm::SmallVector<llvm::StringRef, 8> mods; ///< not yet taken
  std::vector<Operand> ops;

  /// Takes a qualifier if it is there.
  bool take(llvm::StringRef mod);
  /// Takes the first of the alternatives that is there, or returns "".
  llvm::StringRef takeAny(llvm::ArrayRef<llvm::StringRef> list);
  /// Takes the first remaining type qualifier.
  Type takeType();
  /// Takes `.v2/.v4/.v8`; 1 when absent.
  unsigned takeVector();
  /// Takes cache and eviction hints, which change nothing.
  void takeCacheHints();
  /// Goes on as another entry of the table.
  llvm::Error decodeAs(llvm::StringRef entry);
  /// A qualifier is left over, or nothing is.
  llvm::Error finish();

  llvm::Error error(const llvm::Twine &message) const;
  llvm::Error expectOps(unsigned least, unsigned most);
  unsigned numOps() const { return ast.ops.size(); }

  /// Adds a destination register of a type.
  llvm::Error dst(const AstOperand &op, Type type);
  /// Adds a source register or literal of a type.
  llvm::Error src(const AstOperand &op, Type type);
  /// Adds a register of any class of at least `bits` (ld, st, cvt).
  llvm::Error dstWide(const AstOperand &op, Type type);
  llvm::Error srcWide(const AstOperand &op, Type type);
  llvm::Error dstPred(const AstOperand &op);
  llvm::Error srcPred(const AstOperand &op);
  /// Adds the elements of a `{…}` operand, or the single register.
  llvm::Error dstVector(const AstOperand &op, Type type, unsigned count);
  llvm::Error srcVector(const AstOperand &op, Type type, unsigned count);
  /// Adds the base register of `[…]` elems[0] and returns the displacement.
  /// `is64` tells the width of the base.
  llvm::Error address(const AstOperand &op, int64_t &displacement);
  /// A literal.
  llvm::Error immediate(const AstOperand &op, int64_t &value);
  /// The next operand is one that the instruction writes.
  void markWritten() {
    if (ops.size() < 64)
      inst.written |= uint64_t(1) << ops.size();
  }
  /// Appends an empty operand.
  void none() { ops.push_back(Operand()); }

  /// Plain data lies in zeroed memory, so that equal ones have equal bytes.
  template <typename T>
  T *makeAux() {
    T *raw = new (llvm::safe_calloc(1, sizeof(T))) T();
    addAux(std::shared_ptr<void>(raw, [](void *p) {
      static_cast<T *>(p)->~T();
      std::free(p);
    }));
    inst.aux = raw;
    inst.auxBytes = std::is_trivially_copyable_v<T> ? sizeof(T) : 0;
    return raw;
  }
  void addAux(std::shared_ptr<void> p);
  llvm::Error set(ExecFn fn, InstClass cls) {
    inst.fn = fn;
    inst.cls = cls;
    return llvm::Error::success();
  }
  ProgramImpl &program() const;

private:
  // Sources by what they are.
  llvm::Error literal(const AstOperand &op, Type type);
  llvm::Error variable(const AstOperand &op, const Scope::Entry &entry,
                       Type type);
  llvm::Error special(const AstOperand &op, Type type);
};

using DecodeFn = llvm::Error (*)(Decoding &);

/// How instructions are decoded, by mnemonic. What a qualifier makes another
/// instruction has an entry such as "st.async".
class DecodeTable {
public:
  DecodeFn &operator[](llvm::StringRef name) { return functions[name]; }
  /// Null when there is none.
  DecodeFn lookup(llvm::StringRef name) const { return functions.lookup(name); }
  /// A call becomes several instructions.
  llvm::Error (*call)(Decoder &, const AstInst &) = nullptr;

private:
  llvm::StringMap<DecodeFn> functions;
};

#define ATTN_SIM_TRY(expr)                                                     \
  do {                                                                         \
    if (llvm::Error attnError = (expr))                                        \
      return attnError;                                                        \
  } while (false)

class Decoder {
public:
  Decoder(ProgramImpl &program, const DecodeTable &table)
      : program(program), table(table) {}
  llvm::Error run();

  ProgramImpl &program;
  const DecodeTable &table;
  Scope *scope = nullptr;
  FunctionInfo *function = nullptr;
  llvm::StringMap<FunctionInfo> functions;

  llvm::Error error(unsigned line, const llvm::Twine &message) const;
  const Scope::Entry *lookup(llvm::StringRef name, Operand *reg = nullptr,
                             uint32_t *bits = nullptr);
  Operand constant(ConstSlot::Kind kind, RegClass cls, uint64_t value,
                   int64_t addend = 0);
  Operand newRegister(unsigned bits);
  uint64_t newLocal(uint64_t bytes, uint32_t align);
  llvm::Error checkLocal(const AstVariable &v) const;

  struct Fixup {
    uint32_t inst;
    llvm::StringRef label;
    Scope *scope;
    unsigned line;
    std::vector<uint32_t> *list; ///< brx: append here
  };
  std::vector<Fixup> fixups;
  struct CallFixup {
    uint32_t inst;
    llvm::StringRef callee;
    unsigned line;
  };
  std::vector<CallFixup> callFixups;
  /// The instructions that lists of branch targets name, one for each list.
  std::map<const std::vector<llvm::StringRef> *, std::vector<uint32_t> *>
      targetLists;
  /// Callers and callees, to reject recursion.
  std::map<std::string, std::vector<std::string>> callGraph;

  /// Appends an instruction and decodes it.
  llvm::Error decode(const AstInst &ast);
  /// Gives an instruction its text and its guard.
  llvm::Error begin(const AstInst &ast, Inst &inst);

private:
  /// By what they are: the index in ProgramImpl::constants.
  std::map<std::tuple<ConstSlot::Kind, RegClass, uint64_t, int64_t>, size_t>
      constants;
  uint64_t declaredRegisters = 0;

  std::deque<Scope> scopes;
  Scope *pushScope(Scope *parent);
  llvm::Error declareVariable(const AstVariable &v, bool moduleScope);
  llvm::Error declareRegisters(const AstItem &item);
  llvm::Error declareKernel(const AstFunction &f);
  void declareFormals(llvm::ArrayRef<AstVariable> formals,
                      llvm::ArrayRef<uint32_t> offsets);
  llvm::Error decodeBody(const AstFunction &f);
  llvm::Error decodeFunction(const AstFunction &f);
  llvm::Error checkRecursion();
  llvm::Error finishFixups();
};

/// Marks the instructions with registers that loads write, and with copies of
/// those.
void markLoadedRegisters(ProgramImpl &program);

/// Says what other warps can see of each instruction.
void markEffects(ProgramImpl &program);

/// Marks the instructions with registers that tcgen05.ld writes.
void markTensorLoadRegisters(ProgramImpl &program);

/// Marks the instructions that write registers of products of wgmma.
void markProductRegisters(ProgramImpl &program);

/// Decodes `ast` into `program` (which already owns text and ast).
llvm::Error decodeProgram(ProgramImpl &program, const DecodeTable &table);

} // namespace mlir::attn::sim

#endif // ATTN_LIB_SIMULATOR_PTX_DECODER_H
