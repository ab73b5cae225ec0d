//===- Decoding.cpp - One instruction's modifiers and operands ------------===//

#include "Decoder.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/bit.h"

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

Error Decoding::decodeAs(StringRef entry) {
  DecodeFn decode = d.table.lookup(entry);
  assert(decode && "an entry of the table");
  return decode(*this);
}

ProgramImpl &Decoding::program() const { return d.program; }

void Decoding::addAux(std::shared_ptr<void> p) {
  d.program.auxiliaries.push_back(std::move(p));
}

RegClass mlir::attn::sim::classOf(unsigned bits) {
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
  markWritten();
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

Error Decoding::literal(const AstOperand &op, Type type) {
  uint64_t bits = op.bits;
  switch (op.kind) {
  case AstOperand::Int:
    if (type == Type::F32)
      bits = llvm::bit_cast<uint32_t>(float(int64_t(bits)));
    else if (type == Type::F64)
      bits = llvm::bit_cast<uint64_t>(double(int64_t(bits)));
    else if (bitWidth(type) < 64)
      bits &= (uint64_t(1) << bitWidth(type)) - 1;
    break;
  case AstOperand::F32:
    if (type == Type::F64)
      bits = llvm::bit_cast<uint64_t>(
          double(llvm::bit_cast<float>(uint32_t(bits))));
    else if (bitWidth(type) != 32)
      return error("expected a literal of the instruction's width");
    break;
  default:
    if (type == Type::F32)
      bits = llvm::bit_cast<uint32_t>(float(llvm::bit_cast<double>(bits)));
    else if (bitWidth(type) != 64)
      return error("expected a literal of the instruction's width");
    break;
  }
  ops.push_back(d.constant(ConstSlot::Plain, classOf(bitWidth(type)), bits));
  return Error::success();
}

Error Decoding::variable(const AstOperand &op, const Scope::Entry &entry,
                         Type type) {
  ConstSlot::Kind kind;
  switch (entry.kind) {
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
  ops.push_back(
      d.constant(kind, classOf(bitWidth(type)), entry.offset, op.imm));
  return Error::success();
}

Error Decoding::special(const AstOperand &op, Type type) {
  RegClass cls = classOf(bitWidth(type));
  SpecialReg special;
  if (findSpecial(op.name, special)) {
    ops.push_back(d.constant(ConstSlot::Special, cls, uint64_t(special)));
    return Error::success();
  }
  if (op.name.starts_with("%envreg") || op.name == "%gridid" ||
      op.name.starts_with("%pm") || op.name.starts_with("%reserved_smem") ||
      op.name == "%aggr_smem_size") {
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

Error Decoding::src(const AstOperand &op, Type type) {
  if (type == Type::Pred)
    return srcPred(op);
  switch (op.kind) {
  case AstOperand::Int:
  case AstOperand::F32:
  case AstOperand::F64:
    return literal(op, type);
  case AstOperand::Name:
    break;
  default:
    return error("expected a register or a literal");
  }
  Operand reg;
  uint32_t bits = 0;
  const Scope::Entry *entry = d.lookup(op.name, &reg, &bits);
  if (!entry)
    return special(op, type);
  if (!bits)
    return variable(op, *entry, type);
  if (bits == 1 || !widthFits(bits, type))
    return error("expected a register of the instruction's width, got '" +
                 op.name + "'");
  ops.push_back(reg);
  return Error::success();
}

Error Decoding::dstWide(const AstOperand &op, Type type) {
  markWritten();
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
