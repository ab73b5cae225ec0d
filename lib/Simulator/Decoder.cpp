//===- Decoder.cpp - From statements to decoded instructions --------------===//

#include "Decoder.h"
#include "Machine.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;
using llvm::Twine;

//===----------------------------------------------------------------------===//
// Decoding: one instruction
//===----------------------------------------------------------------------===//

bool Decoding::take(StringRef mod) {
  auto it = llvm::find(mods, mod);
  if (it == mods.end())
    return false;
  mods.erase(it);
  return true;
}

StringRef Decoding::takeAny(llvm::ArrayRef<StringRef> list) {
  for (StringRef mod : list)
    if (take(mod))
      return mod;
  return {};
}

Type Decoding::takeType() {
  for (auto it = mods.begin(); it != mods.end(); ++it) {
    Type t = parseType(*it);
    if (t != Type::None) {
      mods.erase(it);
      return t;
    }
  }
  return Type::None;
}

unsigned Decoding::takeVector() {
  if (take("v2"))
    return 2;
  if (take("v4"))
    return 4;
  if (take("v8"))
    return 8;
  return 1;
}

void Decoding::takeCacheHints() {
  for (auto it = mods.begin(); it != mods.end();) {
    bool hint = it->starts_with("L1::") || it->starts_with("L2::") ||
                *it == "ca" || *it == "cg" || *it == "cs" || *it == "lu" ||
                *it == "cv" || *it == "wb" || *it == "wt";
    it = hint ? mods.erase(it) : it + 1;
  }
}

Error Decoding::error(const Twine &message) const {
  return d.error(ast.line, message + " in '" + ast.text + "'");
}

Error Decoding::finish() {
  if (mods.empty())
    return Error::success();
  return error("unknown qualifier '." + mods.front() + "'");
}

Error Decoding::expectOps(unsigned least, unsigned most) {
  if (numOps() >= least && numOps() <= most)
    return Error::success();
  return error("expected " + Twine(least) + " operands, got " +
               Twine(numOps()));
}

ProgramImpl &Decoding::program() const { return d.program; }

void Decoding::addAux(std::shared_ptr<void> p) {
  d.program.auxiliaries.push_back(std::move(p));
}

static RegClass classOf(unsigned bits) {
  if (bits == 1)
    return RegClass::Pred;
  if (bits <= 32)
    return RegClass::R32;
  return bits == 64 ? RegClass::R64 : RegClass::R128;
}

static bool widthFits(unsigned regBits, Type type) {
  unsigned bits = bitWidth(type);
  return regBits == bits || (bits == 8 && regBits >= 8 && regBits <= 32);
}

Error Decoding::dst(const AstOperand &op, Type type) {
  if (op.kind == AstOperand::Sink) {
    ops.push_back(d.newRegister(type == Type::Pred ? 1 : bitWidth(type)));
    return Error::success();
  }
  Operand reg;
  uint32_t bits;
  if (op.kind != AstOperand::Name || !d.lookup(op.name, &reg, &bits) ||
      bits == 0)
    return error("expected a destination register");
  if (type == Type::Pred ? bits != 1 : (bits == 1 || !widthFits(bits, type)))
    return error("expected a register of the instruction's width, got '" +
                 op.name + "'");
  ops.push_back(reg);
  return Error::success();
}

Error Decoding::dstPred(const AstOperand &op) { return dst(op, Type::Pred); }

Error Decoding::srcPred(const AstOperand &op) {
  if (op.kind == AstOperand::Int) {
    ops.push_back(d.constant(ConstSlot::Plain, RegClass::Pred,
                             op.bits ? 0xffffffffu : 0));
    return Error::success();
  }
  Operand reg;
  uint32_t bits;
  if ((op.kind != AstOperand::Name && op.kind != AstOperand::NotName) ||
      !d.lookup(op.name, &reg, &bits) || bits != 1)
    return error("expected a predicate");
  reg.negated = op.kind == AstOperand::NotName;
  ops.push_back(reg);
  return Error::success();
}

static bool findSpecial(StringRef name, SpecialReg &reg) {
  static const llvm::StringMap<SpecialReg> table = {
      {"%tid.x", SpecialReg::TidX},
      {"%tid.y", SpecialReg::TidY},
      {"%tid.z", SpecialReg::TidZ},
      {"%ntid.x", SpecialReg::NtidX},
      {"%ntid.y", SpecialReg::NtidY},
      {"%ntid.z", SpecialReg::NtidZ},
      {"%ctaid.x", SpecialReg::CtaidX},
      {"%ctaid.y", SpecialReg::CtaidY},
      {"%ctaid.z", SpecialReg::CtaidZ},
      {"%nctaid.x", SpecialReg::NctaidX},
      {"%nctaid.y", SpecialReg::NctaidY},
      {"%nctaid.z", SpecialReg::NctaidZ},
      {"%laneid", SpecialReg::LaneId},
      {"%warpid", SpecialReg::WarpId},
      {"%nwarpid", SpecialReg::NwarpId},
      {"%smid", SpecialReg::SmId},
      {"%nsmid", SpecialReg::NsmId},
      {"%gridid", SpecialReg::GridId},
      {"%lanemask_eq", SpecialReg::LanemaskEq},
      {"%lanemask_le", SpecialReg::LanemaskLe},
      {"%lanemask_lt", SpecialReg::LanemaskLt},
      {"%lanemask_ge", SpecialReg::LanemaskGe},
      {"%lanemask_gt", SpecialReg::LanemaskGt},
      {"%clusterid.x", SpecialReg::ClusterIdX},
      {"%clusterid.y", SpecialReg::ClusterIdY},
      {"%clusterid.z", SpecialReg::ClusterIdZ},
      {"%nclusterid.x", SpecialReg::NclusterIdX},
      {"%nclusterid.y", SpecialReg::NclusterIdY},
      {"%nclusterid.z", SpecialReg::NclusterIdZ},
      {"%cluster_ctaid.x", SpecialReg::ClusterCtaidX},
      {"%cluster_ctaid.y", SpecialReg::ClusterCtaidY},
      {"%cluster_ctaid.z", SpecialReg::ClusterCtaidZ},
      {"%cluster_nctaid.x", SpecialReg::ClusterNctaidX},
      {"%cluster_nctaid.y", SpecialReg::ClusterNctaidY},
      {"%cluster_nctaid.z", SpecialReg::ClusterNctaidZ},
      {"%cluster_ctarank", SpecialReg::ClusterCtarank},
      {"%cluster_nctarank", SpecialReg::ClusterNctarank},
      {"%is_explicit_cluster", SpecialReg::IsExplicitCluster},
      {"%dynamic_smem_size", SpecialReg::DynamicSmemSize},
      {"%total_smem_size", SpecialReg::TotalSmemSize},
  };
  auto it = table.find(name);
  if (it == table.end())
    return false;
  reg = it->second;
  return true;
}

Error Decoding::src(const AstOperand &op, Type type) {
  if (type == Type::Pred)
    return srcPred(op);
  RegClass cls = classOf(bitWidth(type));
  uint64_t mask =
      bitWidth(type) >= 64 ? ~0ull : (uint64_t(1) << bitWidth(type)) - 1;
  switch (op.kind) {
  case AstOperand::Int: {
    uint64_t bits = op.bits;
    if (type == Type::F32) {
      float f = int64_t(bits);
      uint32_t b;
      std::memcpy(&b, &f, 4);
      bits = b;
    } else if (type == Type::F64) {
      double f = int64_t(bits);
      std::memcpy(&bits, &f, 8);
    }
    ops.push_back(d.constant(ConstSlot::Plain, cls, bits & mask));
    return Error::success();
  }
  case AstOperand::F32: {
    uint64_t bits = op.bits;
    if (type == Type::F64) {
      float f;
      uint32_t b = bits;
      std::memcpy(&f, &b, 4);
      double wide = f;
      std::memcpy(&bits, &wide, 8);
    } else if (bitWidth(type) != 32) {
      return error("expected a literal of the instruction's width");
    }
    ops.push_back(d.constant(ConstSlot::Plain, cls, bits));
    return Error::success();
  }
  case AstOperand::F64: {
    uint64_t bits = op.bits;
    if (type == Type::F32) {
      double wide;
      std::memcpy(&wide, &bits, 8);
      float f = wide;
      uint32_t b;
      std::memcpy(&b, &f, 4);
      bits = b;
    } else if (bitWidth(type) != 64) {
      return error("expected a literal of the instruction's width");
    }
    ops.push_back(d.constant(ConstSlot::Plain, cls, bits));
    return Error::success();
  }
  case AstOperand::Name: {
    Operand reg;
    uint32_t bits = 0;
    const Scope::Entry *entry = d.lookup(op.name, &reg, &bits);
    if (entry && bits) {
      if (bits == 1 || !widthFits(bits, type))
        return error("expected a register of the instruction's width, got '" +
                     op.name + "'");
      ops.push_back(reg);
      return Error::success();
    }
    if (entry) {
      ConstSlot::Kind kind;
      uint64_t value = entry->offset;
      switch (entry->kind) {
      case Scope::Entry::Shared:
        kind = ConstSlot::SharedVar;
        break;
      case Scope::Entry::SharedDyn:
        kind = ConstSlot::SharedVarDyn;
        break;
      case Scope::Entry::Local:
      case Scope::Entry::Param:
        kind = ConstSlot::LocalVar;
        break;
      case Scope::Entry::KernelParam:
        kind = ConstSlot::Plain;
        break;
      case Scope::Entry::Global:
      case Scope::Entry::Const:
        kind = ConstSlot::GlobalVar;
        break;
      default:
        return error("expected a value, got '" + op.name + "'");
      }
      ops.push_back(d.constant(kind, cls, value, op.imm));
      return Error::success();
    }
    SpecialReg special;
    if (findSpecial(op.name, special)) {
      ops.push_back(d.constant(ConstSlot::Special, cls, uint64_t(special)));
      return Error::success();
    }
    if (op.name.starts_with("%envreg") || op.name == "%gridid" ||
        op.name.starts_with("%pm") || op.name.starts_with("%reserved_smem")) {
      ops.push_back(
          d.constant(ConstSlot::Special, cls, uint64_t(SpecialReg::Zero)));
      return Error::success();
    }
    if (op.name == "WARP_SZ") {
      ops.push_back(d.constant(ConstSlot::Plain, cls, 32));
      return Error::success();
    }
    return error("unknown register or symbol '" + op.name + "'");
  }
  default:
    return error("expected a register or a literal");
  }
}

Error Decoding::dstWide(const AstOperand &op, Type type) {
  if (op.kind == AstOperand::Sink) {
    ops.push_back(d.newRegister(bitWidth(type)));
    return Error::success();
  }
  Operand reg;
  uint32_t bits;
  if (op.kind != AstOperand::Name || !d.lookup(op.name, &reg, &bits) ||
      bits <= 1)
    return error("expected a destination register");
  if (bits < bitWidth(type))
    return error("expected a register of at least " + Twine(bitWidth(type)) +
                 " bits, got '" + op.name + "'");
  ops.push_back(reg);
  return Error::success();
}

Error Decoding::srcWide(const AstOperand &op, Type type) {
  if (op.kind == AstOperand::Name) {
    Operand reg;
    uint32_t bits = 0;
    if (d.lookup(op.name, &reg, &bits) && bits > 1) {
      if (bits < bitWidth(type))
        return error("expected a register of at least " +
                     Twine(bitWidth(type)) + " bits, got '" + op.name + "'");
      ops.push_back(reg);
      return Error::success();
    }
  }
  return src(op, type);
}

Error Decoding::dstVector(const AstOperand &op, Type type, unsigned count) {
  if (op.kind != AstOperand::Vector) {
    if (count != 1)
      return error("expected " + Twine(count) + " destination registers");
    return dstWide(op, type);
  }
  if (op.elems.size() != count)
    return error("expected " + Twine(count) + " destination registers, got " +
                 Twine(op.elems.size()));
  for (const AstOperand &elem : op.elems)
    ATTN_SIM_TRY(dstWide(elem, type));
  return Error::success();
}

Error Decoding::srcVector(const AstOperand &op, Type type, unsigned count) {
  if (op.kind != AstOperand::Vector) {
    if (count != 1)
      return error("expected " + Twine(count) + " source registers");
    return srcWide(op, type);
  }
  if (op.elems.size() != count)
    return error("expected " + Twine(count) + " source registers, got " +
                 Twine(op.elems.size()));
  for (const AstOperand &elem : op.elems)
    ATTN_SIM_TRY(srcWide(elem, type));
  return Error::success();
}

Error Decoding::address(const AstOperand &op, int64_t &displacement) {
  const AstOperand *base = &op;
  if (op.kind == AstOperand::Address) {
    if (op.elems.empty())
      return error("expected an address");
    base = &op.elems.front();
  }
  if (base->kind == AstOperand::Int) {
    displacement = 0;
    ops.push_back(d.constant(ConstSlot::Plain, RegClass::R64, base->bits));
    return Error::success();
  }
  if (base->kind != AstOperand::Name)
    return error("expected an address");
  Operand reg;
  uint32_t bits = 0;
  displacement = base->imm;
  const Scope::Entry *entry = d.lookup(base->name, &reg, &bits);
  if (entry && bits) {
    if (bits != 32 && bits != 64)
      return error("expected a 32-bit or 64-bit address register, got '" +
                   base->name + "'");
    ops.push_back(reg);
    return Error::success();
  }
  AstOperand symbol = *base;
  symbol.imm = 0;
  return src(symbol, Type::B64);
}

Error Decoding::immediate(const AstOperand &op, int64_t &value) {
  if (op.kind != AstOperand::Int)
    return error("expected an integer literal");
  value = int64_t(op.bits);
  return Error::success();
}

//===----------------------------------------------------------------------===//
// Decoder: the module
//===----------------------------------------------------------------------===//

Decoder::Decoder(ProgramImpl &program) : program(program) {
  registerIntegerOps(table);
  registerFloatOps(table);
  registerConvertOps(table);
  registerMoveOps(table);
  registerMemoryOps(table);
  registerAtomicOps(table);
  registerWarpOps(table);
  registerBarrierOps(table);
  registerMbarrierOps(table);
  registerMatrixOps(table);
  registerAsyncCopyOps(table);
  registerBulkCopyOps(table);
  registerWgmmaOps(table);
  registerTensorMemoryOps(table);
  registerControlOps(table);
}

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
  for (const ConstSlot &c : program.constants)
    if (c.kind == kind && c.cls == cls && c.value == value &&
        c.addend == addend) {
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

uint32_t Decoder::newLocal(uint64_t bytes, uint32_t align) {
  uint32_t offset = llvm::alignTo(program.localBytes, std::max(align, 1u));
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
      program.staticShared = e.offset + v.bytes;
    }
  } else if (v.space == "local") {
    e.kind = Scope::Entry::Local;
    e.offset = newLocal(v.bytes, v.align);
  } else if (v.space == "param") {
    e.kind = Scope::Entry::Param;
    e.offset = newLocal(v.bytes, v.align);
  } else if (v.space == "global" || v.space == "const") {
    if (v.isExtern)
      return error(v.line, "unresolved variable '" + v.name + "'");
    e.kind = v.space == "global" ? Scope::Entry::Global : Scope::Entry::Const;
    e.offset = program.globals.size();
    program.globals.push_back({v});
    program.globalIndex[v.name] = e.offset;
  } else {
    return error(v.line, "unknown state space '." + v.space + "'");
  }
  scope->entries[v.name] = e;
  return Error::success();
}

Error Decoder::decode(const AstInst &ast) {
  if (ast.base == "call")
    return decodeCall(ast);
  auto it = table.find(ast.base);
  if (it == table.end())
    return error(ast.line, "unknown instruction '" + ast.text + "'");
  Inst inst;
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
  Decoding decoding{*this, ast, inst, {}, {}};
  decoding.mods.assign(ast.mods.begin(), ast.mods.end());
  ATTN_SIM_TRY(it->second(decoding));
  ATTN_SIM_TRY(decoding.finish());
  program.operandLists.push_back(std::move(decoding.ops));
  inst.ops = program.operandLists.back().data();
  inst.numOps = std::min<size_t>(program.operandLists.back().size(), 255);
  program.code.push_back(inst);
  return Error::success();
}

Error Decoder::decodeFunction(const AstFunction &f) {
  FunctionInfo &info = functions[f.name];
  function = &info;
  Scope *moduleScope = scope;
  scope = pushScope(moduleScope);
  info.entry = program.code.size();
  uint32_t savedShared = program.staticShared;
  if (f.isEntry) {
    KernelInfo kernel;
    kernel.name = f.name.str();
    uint32_t offset = 0;
    for (const AstVariable &p : f.params) {
      KernelParam param;
      param.name = p.name.str();
      param.align = p.align;
      param.size = p.bytes;
      param.offset = offset = llvm::alignTo(offset, p.align);
      offset += p.bytes;
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
    program.kernels.push_back(std::move(kernel));
    program.kernelEntry[f.name.str()] = info.entry;
  } else {
    for (size_t i = 0; i < f.params.size(); ++i) {
      Scope::Entry e;
      e.kind = Scope::Entry::Param;
      e.offset = info.paramOffsets[i];
      e.bytes = f.params[i].bytes;
      e.var = &f.params[i];
      scope->entries[f.params[i].name] = e;
    }
    for (size_t i = 0; i < f.results.size(); ++i) {
      Scope::Entry e;
      e.kind = Scope::Entry::Param;
      e.offset = info.resultOffsets[i];
      e.bytes = f.results[i].bytes;
      e.var = &f.results[i];
      scope->entries[f.results[i].name] = e;
    }
  }

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
  ATTN_SIM_TRY(decode(end));
  scope = moduleScope;
  if (f.isEntry) {
    program.kernels.back().staticShared = program.staticShared;
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
  std::string cycle;
  std::function<bool(const std::string &)> visit =
      [&](const std::string &name) {
        if (state[name] == 2)
          return true;
        if (state[name] == 1) {
          cycle = name;
          return false;
        }
        state[name] = 1;
        for (const std::string &callee : callGraph[name])
          if (!visit(callee))
            return false;
        state[name] = 2;
        return true;
      };
  for (const auto &entry : callGraph)
    if (!visit(entry.first))
      return error(functions[cycle].ast->line,
                   "recursion through '" + cycle + "' is not supported");
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
  return Error::success();
}

Error mlir::attn::sim::decodeProgram(ProgramImpl &program) {
  return Decoder(program).run();
}

StringRef mlir::attn::sim::stringifyInstClass(InstClass c) {
  static const char *const names[] = {
      "move",      "alu",      "imad",      "float",     "fma",
      "half",      "double",   "convert",   "compare",   "special",
      "ex2",       "branch",   "ld.global", "st.global", "ld.shared",
      "st.shared", "ld.local", "st.local",  "ld.param",  "atomic",
      "shuffle",   "vote",     "barrier",   "fence",     "ldmatrix",
      "stmatrix",  "mma",      "cp.async",  "mbarrier",  "bulk",
      "wgmma",     "tcgen05",  "tmem.ld",   "tmem.st",   "other"};
  static_assert(sizeof(names) / sizeof(names[0]) ==
                size_t(InstClass::NumClasses));
  return names[size_t(c)];
}
