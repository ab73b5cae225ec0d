//===- ParamUses.cpp - What a kernel's parameters seem to be --------------===//
//
// PTX has no pointer types: a pointer is an integer of 64 bits that ends up in
// an address. Which parameters a register comes from is followed through moves
// and sums, whatever the control flow.
//
//===----------------------------------------------------------------------===//

#include "ParamUses.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir::attn::sim;
using llvm::BitVector;
using llvm::StringRef;

namespace {

class Guesser {
public:
  Guesser(const AstFunction &kernel, std::vector<KernelParam> &params)
      : kernel(kernel), params(params), converted(params.size()),
        addresses(params.size()) {
    for (auto [index, param] : llvm::enumerate(params))
      indices[param.name] = index;
  }
  void run();

private:
  const BitVector *find(const AstOperand &operand) const;
  bool add(const AstOperand &to, const AstOperand &from);
  bool propagate(const AstInst &inst);
  void noteUses(const AstInst &inst);
  void noteAccess(const AstInst &inst, const AstOperand &address, bool isWrite);

  const AstFunction &kernel;
  std::vector<KernelParam> &params;
  llvm::StringMap<unsigned> indices;
  /// Of each register the parameters that it may come from.
  llvm::StringMap<BitVector> sources;
  /// Parameters that are made addresses of global memory, and those that come
  /// into one.
  BitVector converted, addresses;
};

} // namespace

const BitVector *Guesser::find(const AstOperand &operand) const {
  StringRef name = operand.kind == AstOperand::Address && !operand.elems.empty()
                       ? operand.elems.front().name
                       : operand.name;
  auto found = sources.find(name);
  return found == sources.end() ? nullptr : &found->second;
}

bool Guesser::add(const AstOperand &to, const AstOperand &from) {
  const BitVector *given = find(from);
  if (!given || to.name.empty())
    return false;
  BitVector added = *given;
  BitVector &known = sources.try_emplace(to.name, params.size()).first->second;
  added.reset(known);
  known |= added;
  return added.any();
}

bool Guesser::propagate(const AstInst &inst) {
  const auto &ops = inst.ops;
  if (ops.size() < 2)
    return false;
  if (inst.base == "ld" && llvm::is_contained(inst.mods, "param")) {
    if (ops[1].kind != AstOperand::Address || ops[1].elems.empty())
      return false;
    auto param = indices.find(ops[1].elems.front().name);
    if (param == indices.end())
      return false;
    BitVector &known =
        sources.try_emplace(ops[0].name, params.size()).first->second;
    bool isNew = !known.test(param->second);
    known.set(param->second);
    return isNew;
  }
  if (inst.base == "mov" || inst.base == "cvta" || inst.base == "cvt")
    return add(ops[0], ops[1]);
  if ((inst.base == "add" || inst.base == "sub" || inst.base == "selp") &&
      ops.size() > 2) {
    bool isNew = add(ops[0], ops[1]);
    return add(ops[0], ops[2]) || isNew;
  }
  // Of a product only what is added to it.
  if (inst.base == "mad" && ops.size() > 3)
    return add(ops[0], ops[3]);
  return false;
}

void Guesser::noteAccess(const AstInst &inst, const AstOperand &address,
                         bool isWrite) {
  const BitVector *from = find(address);
  if (!from)
    return;
  addresses |= *from;
  for (unsigned index : from->set_bits()) {
    KernelParam &param = params[index];
    (isWrite ? param.isWritten : param.isRead) = true;
    StringRef type = inst.mods.empty() ? "" : inst.mods.back();
    // Copies move bytes.
    if (param.element.empty() && inst.base != "cp")
      param.element = type.str();
  }
}

void Guesser::noteUses(const AstInst &inst) {
  const auto &ops = inst.ops;
  auto has = [&](StringRef mod) { return llvm::is_contained(inst.mods, mod); };
  if (inst.base == "cvta" && has("global") && ops.size() > 1)
    if (const BitVector *from = find(ops[1]))
      converted |= *from;
  bool isLoad = inst.base == "ld" || inst.base == "ldu";
  bool isStore = inst.base == "st" || inst.base == "red";
  bool isBoth = inst.base == "atom";
  if ((!isLoad && !isStore && !isBoth && inst.base != "cp") || has("param") ||
      has("local") || (inst.base != "cp" && has("shared")))
    return;
  bool isFirst = true;
  for (const AstOperand &operand : ops) {
    if (operand.kind != AstOperand::Address)
      continue;
    // Copies have the destination in front of the source.
    bool isWrite = inst.base == "cp" ? isFirst : !isLoad;
    isFirst = false;
    noteAccess(inst, operand, isWrite);
    if (isBoth || inst.base == "red")
      noteAccess(inst, operand, /*isWrite=*/false);
  }
}

void Guesser::run() {
  // Loops bring a register's parameters back to where it is read.
  for (bool changes = true; changes;) {
    changes = false;
    for (const AstInst &inst : kernel.insts)
      changes |= propagate(inst);
  }
  for (const AstInst &inst : kernel.insts)
    noteUses(inst);
  // A stride that is added to an address is none; where the kernel says what
  // it converts, only that is.
  const BitVector &pointers = converted.any() ? converted : addresses;
  for (auto [index, param] : llvm::enumerate(params)) {
    bool isDeclared = kernel.params[index].isPointer;
    param.isPointer = isDeclared || pointers.test(index);
    if (param.isPointer)
      continue;
    param.element.clear();
    param.isRead = param.isWritten = false;
  }
}

void mlir::attn::sim::guessParams(const AstFunction &kernel,
                                  std::vector<KernelParam> &params) {
  Guesser(kernel, params).run();
}
