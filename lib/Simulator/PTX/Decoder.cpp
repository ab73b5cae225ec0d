//===- Decoder.cpp - From statements to decoded instructions --------------===//

#include "Decoder.h"
#include "ParamUses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/MathExtras.h"
#include <functional>

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

Error Decoder::error(unsigned line, const Twine &message) const {
  return llvm::createStringError(Twine(program.name) + ":" + Twine(line) +
                                 ": " + message);
}

Scope *Decoder::pushScope(Scope *parent) {
  scopes.emplace_back();
  scopes.back().parent = parent;
  return &scopes.back();
}

Operand Decoder::newRegister(unsigned bits) {
  Operand o;
  o.cls = classOf(bits);
  // Lanes of wide registers are read as vectors: keep them aligned.
  if (o.cls != RegClass::Pred)
    program.regWords = llvm::alignTo(program.regWords, 32);
  o.off = program.regWords;
  o.meta = program.regMetas++;
  switch (o.cls) {
  case RegClass::Pred:
    program.regWords += 1;
    break;
  case RegClass::R32:
    program.regWords += 32;
    break;
  case RegClass::R64:
    program.regWords += 64;
    break;
  default:
    program.regWords += 128;
    break;
  }
  return o;
}

Operand Decoder::constant(ConstSlot::Kind kind, RegClass cls, uint64_t value,
                          int64_t addend) {
  auto [known, isNew] = constants.try_emplace(
      std::make_tuple(kind, cls, value, addend), program.constants.size());
  if (!isNew) {
    const ConstSlot &c = program.constants[known->second];
    Operand o;
    o.off = c.off;
    o.meta = c.meta;
    o.cls = cls;
    return o;
  }
  Operand o = newRegister(cls == RegClass::Pred  ? 1
                          : cls == RegClass::R32 ? 32
                          : cls == RegClass::R64 ? 64
                                                 : 128);
  ConstSlot c;
  c.kind = kind;
  c.cls = cls;
  c.value = value;
  c.addend = addend;
  c.off = o.off;
  c.meta = o.meta;
  program.constants.push_back(c);
  return o;
}

uint64_t Decoder::newLocal(uint64_t bytes, uint32_t align) {
  uint64_t offset = llvm::alignTo(program.localBytes, std::max(align, 1u));
  program.localBytes = offset + bytes;
  return offset;
}

const Scope::Entry *Decoder::lookup(StringRef name, Operand *reg,
                                    uint32_t *bits) {
  StringRef prefix = name.rtrim("0123456789");
  StringRef digits = name.drop_front(prefix.size());
  uint32_t number = 0;
  bool numbered = !digits.empty() && !digits.getAsInteger(10, number);
  if (bits)
    *bits = 0;
  for (Scope *s = scope; s; s = s->parent) {
    auto it = s->entries.find(name);
    if (it != s->entries.end()) {
      if (it->second.kind == Scope::Entry::Register) {
        if (reg)
          *reg = it->second.reg;
        if (bits)
          *bits = it->second.bits;
      }
      return &it->second;
    }
    if (!numbered)
      continue;
    auto n = s->numbered.find(prefix);
    if (n != s->numbered.end() && number < n->second.count) {
      if (reg) {
        *reg = n->second.reg;
        unsigned words = n->second.bits == 1    ? 1
                         : n->second.bits <= 32 ? 32
                         : n->second.bits == 64 ? 64
                                                : 128;
        reg->off += number * words;
        reg->meta += number;
      }
      if (bits)
        *bits = n->second.bits;
      return &n->second;
    }
  }
  return nullptr;
}

Error Decoder::declareRegisters(const AstItem &item) {
  unsigned bits =
      item.reg.type == "pred" ? 1 : bitWidth(parseType(item.reg.type));
  if (!bits)
    return error(item.line, "unknown register type '." + item.reg.type + "'");
  // So that the words of the registers can be counted.
  constexpr uint64_t limit = 4000000;
  declaredRegisters += std::max<int64_t>(item.reg.count, 1);
  if (declaredRegisters > limit)
    return error(item.line, "expected at most " + Twine(limit) +
                                " registers in a module, got " +
                                Twine(declaredRegisters) + " with '" +
                                item.reg.name + "'");
  Scope::Entry e;
  e.bits = bits;
  e.kind = item.reg.count ? Scope::Entry::Numbered : Scope::Entry::Register;
  e.count = item.reg.count;
  e.reg = newRegister(bits);
  for (uint32_t i = 1; i < e.count; ++i)
    newRegister(bits);
  if (e.count)
    scope->numbered[item.reg.name] = e;
  else
    scope->entries[item.reg.name] = e;
  return Error::success();
}

/// That a thread's local memory, with `v`, is no more than a device has.
Error Decoder::checkLocal(const AstVariable &v) const {
  constexpr uint64_t limit = 512 << 10;
  if (program.localBytes <= limit)
    return Error::success();
  return error(v.line, "expected at most " + Twine(limit) +
                           " bytes of local memory a thread, got " +
                           Twine(program.localBytes) + " with '" + v.name +
                           "'");
}

Error Decoder::declareVariable(const AstVariable &v, bool moduleScope) {
  Scope::Entry e;
  e.var = &v;
  e.bytes = v.bytes;
  if (v.space == "shared") {
    if (v.unsized || (v.isExtern && v.bytes == 0)) {
      e.kind = Scope::Entry::SharedDyn;
      program.dynamicSharedAlign =
          std::max(program.dynamicSharedAlign, v.align);
    } else {
      e.kind = Scope::Entry::Shared;
      e.offset = llvm::alignTo(program.staticShared, v.align);
      if (e.offset + v.bytes > kMaxSharedBytes)
        return error(v.line, "expected at most " + Twine(kMaxSharedBytes) +
                                 " bytes of shared memory, got " +
                                 Twine(e.offset + v.bytes) + " with '" +
                                 v.name + "'");
      program.staticShared = e.offset + v.bytes;
    }
    bool isOfKernel = !moduleScope && function && function->ast->isEntry;
    program.sharedVars.push_back({v.name.str(), uint32_t(e.offset), v.bytes,
                                  e.kind == Scope::Entry::SharedDyn,
                                  isOfKernel ? function->ast->name.str() : ""});
  } else if (v.space == "local") {
    e.kind = Scope::Entry::Local;
    e.offset = newLocal(v.bytes, v.align);
    ATTN_SIM_TRY(checkLocal(v));
  } else if (v.space == "param") {
    e.kind = Scope::Entry::Param;
    e.offset = newLocal(v.bytes, v.align);
    ATTN_SIM_TRY(checkLocal(v));
  } else {
    assert((v.space == "global" || v.space == "const") &&
           "the parser knows no other space");
    if (v.isExtern)
      return error(v.line, "unresolved variable '" + v.name + "'");
    e.kind = v.space == "global" ? Scope::Entry::Global : Scope::Entry::Const;
    e.offset = program.globals.size();
    program.globals.push_back({v});
    program.globalIndex[v.name] = e.offset;
  }
  scope->entries[v.name] = e;
  return Error::success();
}

Error Decoder::begin(const AstInst &ast, Inst &inst) {
  inst.text = ast.text;
  inst.line = ast.line;
  inst.loc = ast.loc;
  if (!ast.guard.empty()) {
    Operand reg;
    uint32_t bits;
    if (!lookup(ast.guard, &reg, &bits) || bits != 1)
      return error(ast.line, "unknown predicate '" + ast.guard + "'");
    inst.hasGuard = true;
    inst.guardNegated = ast.guardNegated;
    inst.guardOff = reg.off;
    inst.guardMeta = reg.meta;
  }
  return Error::success();
}

Error Decoder::decode(const AstInst &ast) {
  if (ast.base == "call")
    return table.call(*this, ast);
  DecodeFn decode = table.lookup(ast.base);
  if (!decode)
    return error(ast.line, "unknown instruction '" + ast.text + "'");
  Inst inst;
  ATTN_SIM_TRY(begin(ast, inst));
  Decoding decoding{*this, ast, inst, {}, {}};
  decoding.mods.assign(ast.mods.begin(), ast.mods.end());
  ATTN_SIM_TRY(decode(decoding));
  ATTN_SIM_TRY(decoding.finish());
  program.operandLists.push_back(std::move(decoding.ops));
  inst.ops = program.operandLists.back().data();
  inst.numOps = std::min<size_t>(program.operandLists.back().size(), 255);
  program.code.push_back(inst);
  return Error::success();
}

/// True if an instruction may stand in front of the wait for the grid in front:
/// it is a hint, or a load that says that others may write meanwhile, or moves
/// what no other grid reaches.
static bool isHarmlessEarly(const AstInst &inst) {
  auto has = [&](llvm::StringRef mod) {
    return llvm::is_contained(inst.mods, mod);
  };
  if (has("param") || has("prefetch"))
    return true;
  // A copy has shared memory at one end, and may have global memory at the
  // other one.
  bool hasOneEnd = !inst.base.starts_with("cp");
  if (hasOneEnd && (has("local") || has("shared") || has("shared::cta") ||
                    has("shared::cluster")))
    return true;
  if (inst.base == "ld")
    return has("volatile") || has("relaxed");
  return !(inst.base.starts_with("ld") || inst.base.starts_with("st") ||
           inst.base.starts_with("cp") || inst.base == "brx" ||
           inst.base == "call" || inst.base == "atom" || inst.base == "red" ||
           inst.base == "ret" || inst.base == "exit");
}

/// Line of what a kernel does before it has awaited the grid in front of it; 0
/// if that is nothing. Branches there lead to labels in front of the wait.
static unsigned findUnawaited(const AstFunction &f) {
  llvm::StringSet<> labels;
  llvm::SmallVector<const AstInst *> branches;
  for (const AstItem &item : f.body) {
    if (item.kind == AstItem::Label)
      labels.insert(item.name);
    if (item.kind != AstItem::Inst)
      continue;
    const AstInst &inst = f.insts[item.index];
    if (inst.base == "bra")
      branches.push_back(&inst);
    if (inst.base == "griddepcontrol" &&
        llvm::is_contained(inst.mods, "wait")) {
      for (const AstInst *branch : branches)
        if (!labels.contains(branch->ops[0].name))
          return branch->line;
      return inst.guard.empty() ? 0 : inst.line;
    }
    if (!isHarmlessEarly(inst))
      return inst.line;
  }
  // Nothing touches memory, unless it is skipped.
  return branches.empty() ? 0 : branches.front()->line;
}

/// Parameters of a kernel are in a buffer that the launch fills.
Error Decoder::declareKernel(const AstFunction &f) {
  KernelInfo kernel;
  kernel.name = f.name.str();
  uint64_t offset = 0;
  constexpr uint64_t maxParamBytes = 32764;
  for (const AstVariable &p : f.params) {
    KernelParam param;
    param.name = p.name.str();
    param.align = p.align;
    param.size = p.bytes;
    param.type = p.isArray ? "" : p.type.str();
    param.offset = offset = llvm::alignTo(offset, p.align);
    offset += p.bytes;
    if (offset > maxParamBytes)
      return error(p.line, "expected at most " + Twine(maxParamBytes) +
                               " bytes of parameters, got " + Twine(offset) +
                               " with '" + p.name + "'");
    Scope::Entry e;
    e.kind = Scope::Entry::KernelParam;
    e.offset = param.offset;
    e.bytes = p.bytes;
    e.var = &p;
    scope->entries[p.name] = e;
    kernel.params.push_back(std::move(param));
  }
  kernel.paramBytes = offset;
  auto tuning = [&](const char *key, std::array<uint32_t, 3> &to) {
    auto it = f.tuning.find(key);
    if (it != f.tuning.end())
      to = it->second;
  };
  tuning("reqntid", kernel.reqntid);
  tuning("maxntid", kernel.maxntid);
  tuning("reqnctapercluster", kernel.reqnctapercluster);
  std::array<uint32_t, 3> one{};
  tuning("maxnreg", one);
  kernel.maxnreg = one[0];
  one = {};
  tuning("minnctapersm", one);
  kernel.minnctapersm = one[0];
  kernel.unawaitedLine = findUnawaited(f);
  guessParams(f, kernel.params);
  program.kernelEntry[kernel.name] = program.code.size();
  program.kernels.push_back(std::move(kernel));
  return Error::success();
}

/// Parameters or results of a device function, which are in local memory.
void Decoder::declareFormals(llvm::ArrayRef<AstVariable> formals,
                             llvm::ArrayRef<uint32_t> offsets) {
  for (auto [variable, offset] : llvm::zip_equal(formals, offsets)) {
    Scope::Entry e;
    e.kind = Scope::Entry::Param;
    e.offset = offset;
    e.bytes = variable.bytes;
    e.var = &variable;
    scope->entries[variable.name] = e;
  }
}

Error Decoder::decodeBody(const AstFunction &f) {
  for (const AstItem &item : f.body) {
    switch (item.kind) {
    case AstItem::ScopeBegin:
      scope = pushScope(scope);
      break;
    case AstItem::ScopeEnd:
      scope = scope->parent;
      break;
    case AstItem::Reg:
      ATTN_SIM_TRY(declareRegisters(item));
      break;
    case AstItem::Variable:
      ATTN_SIM_TRY(declareVariable(f.variables[item.index], false));
      break;
    case AstItem::Label:
      if (!scope->labels.try_emplace(item.name, program.code.size()).second)
        return error(item.line, "label '" + item.name + "' is defined twice");
      break;
    case AstItem::Targets: {
      Scope::Entry e;
      e.kind = Scope::Entry::Targets;
      e.targets = &item.targetList;
      e.scope = scope;
      scope->entries[item.name] = e;
      break;
    }
    case AstItem::Inst:
      ATTN_SIM_TRY(decode(f.insts[item.index]));
      break;
    }
  }
  // Control that runs off the end returns.
  AstInst end;
  end.base = "ret";
  end.text = "ret";
  end.line = f.insts.empty() ? f.line : f.insts.back().line;
  return decode(end);
}

Error Decoder::decodeFunction(const AstFunction &f) {
  FunctionInfo &info = functions[f.name];
  function = &info;
  Scope *moduleScope = scope;
  scope = pushScope(moduleScope);
  info.entry = program.code.size();
  uint32_t savedShared = program.staticShared;
  if (f.isEntry) {
    ATTN_SIM_TRY(declareKernel(f));
  } else {
    declareFormals(f.params, info.paramOffsets);
    declareFormals(f.results, info.resultOffsets);
  }
  ATTN_SIM_TRY(decodeBody(f));
  scope = moduleScope;
  if (f.isEntry) {
    program.kernels.back().staticShared = program.staticShared;
    program.kernels.back().usesDynamicShared =
        llvm::any_of(program.sharedVars, [&](const SharedVar &var) {
          return var.isDynamic && (var.kernel.empty() || var.kernel == f.name);
        });
    program.staticShared = savedShared;
  }
  return Error::success();
}

Error Decoder::finishFixups() {
  for (const Fixup &fixup : fixups) {
    const uint32_t *found = nullptr;
    for (Scope *s = fixup.scope; s && !found; s = s->parent) {
      auto it = s->labels.find(fixup.label);
      if (it != s->labels.end())
        found = &it->second;
    }
    if (!found)
      return error(fixup.line, "unknown label '" + fixup.label + "'");
    if (fixup.list)
      fixup.list->push_back(*found);
    else
      program.code[fixup.inst].target = *found;
  }
  for (const CallFixup &fixup : callFixups) {
    auto it = functions.find(fixup.callee);
    program.code[fixup.inst].target = it->second.entry;
    program.code[fixup.inst].imm = it->second.returnSlot;
  }
  return Error::success();
}

Error Decoder::checkRecursion() {
  std::map<std::string, int> state;
  std::string found;
  constexpr unsigned deepest = 1000;
  bool isTooDeep = false;
  std::function<bool(const std::string &, unsigned)> visit =
      [&](const std::string &name, unsigned depth) {
        if (state[name] == 2)
          return true;
        isTooDeep = depth > deepest;
        if (state[name] == 1 || isTooDeep) {
          found = name;
          return false;
        }
        state[name] = 1;
        for (const std::string &callee : callGraph[name])
          if (!visit(callee, depth + 1))
            return false;
        state[name] = 2;
        return true;
      };
  for (const auto &entry : callGraph) {
    if (visit(entry.first, 0))
      continue;
    unsigned line = functions[found].ast->line;
    if (isTooDeep)
      return error(line, "expected at most " + Twine(deepest) +
                             " calls inside of each other, got more with '" +
                             found + "'");
    return error(line, "recursion through '" + found + "' is not supported");
  }
  return Error::success();
}

Error Decoder::run() {
  scope = pushScope(nullptr);
  for (const AstVariable &v : program.ast.globals)
    ATTN_SIM_TRY(declareVariable(v, true));
  // Formal parameters first, so that calls may precede definitions.
  for (const AstFunction &f : program.ast.functions) {
    if (!f.hasBody)
      continue;
    FunctionInfo &info = functions[f.name];
    if (info.ast)
      return error(f.line, "function '" + f.name + "' is defined twice");
    info.ast = &f;
    info.returnSlot = program.functionCount++;
    if (f.isEntry)
      continue;
    for (const AstVariable &p : f.params)
      info.paramOffsets.push_back(newLocal(p.bytes, p.align));
    for (const AstVariable &p : f.results)
      info.resultOffsets.push_back(newLocal(p.bytes, p.align));
    for (const AstVariable &p :
         llvm::concat<const AstVariable>(f.params, f.results))
      ATTN_SIM_TRY(checkLocal(p));
  }
  // Device functions first: their shared variables belong to every kernel.
  for (bool entries : {false, true})
    for (const AstFunction &f : program.ast.functions)
      if (f.hasBody && f.isEntry == entries)
        ATTN_SIM_TRY(decodeFunction(f));
  ATTN_SIM_TRY(checkRecursion());
  ATTN_SIM_TRY(finishFixups());
  program.localBytes = llvm::alignTo(program.localBytes, 16);
  program.sharedGranule = std::min(program.sharedGranule, 16u);
  markLoadedRegisters(program);
  markTensorLoadRegisters(program);
  markEffects(program);
  markProductRegisters(program);
  return Error::success();
}

Error mlir::attn::sim::decodeProgram(ProgramImpl &program,
                                     const DecodeTable &table) {
  return Decoder(program, table).run();
}
