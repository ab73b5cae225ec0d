//===- ControlOps.cpp - Branches, calls, exits ----------------------------===//

#include "../Machine/Exec.h"
#include "../PTX/Decoder.h"
#include "PrintOps.h"
#include "SyncInstructions.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

static void execBranch(Exec &x, const Inst &I) {
  x.action = Action::Branch;
  x.branchTarget = I.target;
}

static Error decodeBranch(Decoding &c) {
  c.take("uni");
  ATTN_SIM_TRY(c.expectOps(1, 1));
  c.d.fixups.push_back({uint32_t(c.program().code.size()), c.ast.ops[0].name,
                        c.d.scope, c.ast.line, nullptr});
  return c.set(execBranch, InstClass::Branch);
}

static thread_local uint32_t indirectTargets[32];

static void execBranchIndexed(Exec &x, const Inst &I) {
  const auto &list = *static_cast<const std::vector<uint32_t> *>(I.aux);
  x.checkPoison(I.ops[0], "the index of a branch");
  bool ok = true;
  forLanes(x.active, [&](unsigned lane) {
    uint32_t index = x.r32(I.ops[0])[lane];
    if (index >= list.size()) {
      if (ok)
        x.fault(FindingKind::InvalidOperation,
                "branch index " + llvm::Twine(index) + " is beyond the " +
                    llvm::Twine(list.size()) + " targets",
                lane);
      ok = false;
      return;
    }
    indirectTargets[lane] = list[index];
  });
  if (!ok)
    return;
  x.action = Action::Indirect;
  x.laneTargets = indirectTargets;
}

static Error decodeBranchIndexed(Decoding &c) {
  c.take("uni");
  if (!c.take("idx"))
    return c.error("expected 'brx.idx'");
  ATTN_SIM_TRY(c.expectOps(2, 2));
  ATTN_SIM_TRY(c.src(c.ast.ops[0], Type::U32));
  const Scope::Entry *entry = c.d.lookup(c.ast.ops[1].name);
  if (!entry || entry->kind != Scope::Entry::Targets)
    return c.error("expected a list of branch targets");
  std::vector<uint32_t> *&list = c.d.targetLists[entry->targets];
  if (!list) {
    list = c.makeAux<std::vector<uint32_t>>();
    for (StringRef label : *entry->targets)
      c.d.fixups.push_back({0, label, entry->scope, c.ast.line, list});
  }
  c.inst.aux = list;
  return c.set(execBranchIndexed, InstClass::Branch);
}

static void execExit(Exec &x, const Inst &I) { x.action = Action::Exit; }

static void execReturn(Exec &x, const Inst &I) {
  x.action = Action::Indirect;
  x.laneTargets = x.warp->returnPC.data() + I.imm * 32;
}

static Error decodeReturn(Decoding &c) {
  c.take("uni");
  ATTN_SIM_TRY(c.expectOps(0, 0));
  if (c.ast.base == "exit" || c.d.function->ast->isEntry)
    return c.set(execExit, InstClass::Branch);
  c.inst.imm = c.d.function->returnSlot;
  return c.set(execReturn, InstClass::Branch);
}

static void execTrap(Exec &x, const Inst &I) {
  x.fault(FindingKind::Trap, "the kernel executed a trap",
          llvm::countr_zero(x.active));
}

static Error decodeTrap(Decoding &c) {
  ATTN_SIM_TRY(c.expectOps(0, 0));
  return c.set(execTrap, InstClass::Other);
}

static void execNothing(Exec &, const Inst &) {}

static Error decodeNanosleep(Decoding &c) {
  c.takeType();
  ATTN_SIM_TRY(c.expectOps(1, 1));
  return c.set([](Exec &x, const Inst &) { x.action = Action::Yield; },
               InstClass::Other);
}

static Error decodeIgnored(Decoding &c) {
  c.mods.clear();
  return c.set(execNothing, InstClass::Other);
}

/// One grid runs at a time: that before has completed. From here on the warp
/// knows it, too.
static void execGridWait(Exec &x, const Inst &) {
  x.cluster.hasWaited = true;
  if (x.machine.config.earlier)
    for (Clock *clock : x.warp->order.know.getStreams())
      clock->foreign[Stamp::EarlierLaunch].raise(/*actor=*/0,
                                                 EarlierLaunch::LastEpoch);
}

static Error decodeGridDependency(Decoding &c) {
  if (c.take("wait"))
    return c.set(execGridWait, InstClass::Other);
  if (!c.take("launch_dependents"))
    return c.error("expected '.wait' or '.launch_dependents'");
  return c.set(execNothing, InstClass::Other);
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

static void execLocalCopy(Exec &x, const Inst &I) {
  uint32_t to = I.imm, from = I.imm2, bytes = I.flags;
  uint64_t stride = x.machine.program.localBytes;
  forLanes(x.active, [&](unsigned lane) {
    uint8_t *target = &x.warp->local.bytes[lane * stride + to];
    const uint8_t *source = &x.warp->local.bytes[lane * stride + from];
    x.cluster.writes += std::memcmp(target, source, bytes) != 0;
    std::memcpy(target, source, bytes);
    std::memcpy(&x.warp->local.valid[lane * stride + to],
                &x.warp->local.valid[lane * stride + from], bytes);
  });
}

static void execCall(Exec &x, const Inst &I) {
  uint32_t *slot = x.warp->returnPC.data() + I.imm * 32;
  forLanes(x.active, [&](unsigned lane) { slot[lane] = x.pc + 1; });
  x.action = Action::Branch;
  x.branchTarget = I.target;
}

static Error emitLocalCopy(Decoder &d, const AstInst &ast, uint32_t to,
                           uint32_t from, uint32_t bytes) {
  Inst inst;
  ATTN_SIM_TRY(d.begin(ast, inst));
  inst.fn = execLocalCopy;
  inst.cls = InstClass::Move;
  inst.imm = to;
  inst.imm2 = from;
  inst.flags = bytes;
  d.program.code.push_back(inst);
  return Error::success();
}

using FindParam = llvm::function_ref<llvm::Expected<uint32_t>(
    const AstOperand &op, uint64_t bytes)>;

/// A call of the driver's function for assertions that fail: the message, the
/// file, the line, the function, and the bytes of a character.
static Error decodeAssert(Decoder &d, const AstInst &ast,
                          const AstOperand *results, const AstOperand *args,
                          FindParam local) {
  if (results || !args || args->elems.size() != 5)
    return d.error(ast.line, "expected no result and five arguments of '" +
                                 kAssertFunction + "' in '" + ast.text + "'");
  uint64_t offsets[4];
  for (unsigned i = 0; i < 4; ++i) {
    bool isLine = i == 2;
    llvm::Expected<uint32_t> offset = local(args->elems[i], isLine ? 4 : 8);
    if (!offset)
      return offset.takeError();
    offsets[i] = *offset;
  }
  ATTN_SIM_TRY(emitLocalCopy(d, ast, 0, 0, 0));
  Inst &inst = d.program.code.back();
  inst.fn = execAssert;
  inst.cls = InstClass::Other;
  inst.imm = offsets[0] | offsets[1] << 32;
  inst.imm2 = offsets[2] | offsets[3] << 32;
  return Error::success();
}

/// A call of the function that the driver has.
static Error decodePrint(Decoder &d, const AstInst &ast,
                         const AstOperand *results, const AstOperand *args,
                         FindParam local) {
  if (!results || results->elems.size() != 1 || !args ||
      args->elems.size() != 2)
    return d.error(ast.line, "expected one result and two arguments of '" +
                                 kPrintFunction + "' in '" + ast.text + "'");
  llvm::Expected<uint32_t> format = local(args->elems[0], 8);
  if (!format)
    return format.takeError();
  llvm::Expected<uint32_t> list = local(args->elems[1], 8);
  if (!list)
    return list.takeError();
  llvm::Expected<uint32_t> count = local(results->elems[0], 4);
  if (!count)
    return count.takeError();
  ATTN_SIM_TRY(emitLocalCopy(d, ast, *format, *list, *count));
  d.program.code.back().fn = execPrint;
  d.program.code.back().cls = InstClass::Other;
  return Error::success();
}

static Error decodeCall(Decoder &d, const AstInst &ast) {
  auto fail = [&](const llvm::Twine &message) {
    return d.error(ast.line, message + " in '" + ast.text + "'");
  };
  for (StringRef mod : ast.mods)
    if (mod != "uni")
      return fail("unknown qualifier '." + mod + "'");
  size_t i = 0;
  const AstOperand *results = nullptr, *args = nullptr;
  if (i < ast.ops.size() && ast.ops[i].kind == AstOperand::List)
    results = &ast.ops[i++];
  if (i >= ast.ops.size() || ast.ops[i].kind != AstOperand::Name)
    return fail("expected a function name");
  StringRef callee = ast.ops[i++].name;
  if (i < ast.ops.size() && ast.ops[i].kind == AstOperand::List)
    args = &ast.ops[i++];
  if (i != ast.ops.size())
    return fail("indirect calls are not supported");
  auto local = [&](const AstOperand &op,
                   uint64_t bytes) -> llvm::Expected<uint32_t> {
    const Scope::Entry *entry =
        op.kind == AstOperand::Name ? d.lookup(op.name) : nullptr;
    if (!entry || entry->kind != Scope::Entry::Param || entry->bytes < bytes)
      return fail("expected a '.param' variable of the declared size");
    return uint32_t(entry->offset);
  };
  auto it = d.functions.find(callee);
  if (it == d.functions.end() || !it->second.ast) {
    if (callee == kPrintFunction)
      return decodePrint(d, ast, results, args, local);
    if (callee == kAssertFunction)
      return decodeAssert(d, ast, results, args, local);
    return fail("unresolved call to '" + callee + "'");
  }
  const FunctionInfo &info = it->second;
  d.callGraph[d.function->ast->name.str()].push_back(callee.str());
  size_t numArgs = args ? args->elems.size() : 0;
  size_t numResults = results ? results->elems.size() : 0;
  if (numArgs != info.paramOffsets.size() ||
      numResults != info.resultOffsets.size())
    return fail("expected as many arguments and results as '" + callee +
                "' declares");
  for (size_t n = 0; n < numArgs; ++n) {
    uint64_t bytes = info.ast->params[n].bytes;
    llvm::Expected<uint32_t> from = local(args->elems[n], bytes);
    if (!from)
      return from.takeError();
    ATTN_SIM_TRY(emitLocalCopy(d, ast, info.paramOffsets[n], *from, bytes));
  }
  d.callFixups.push_back({uint32_t(d.program.code.size()), callee, ast.line});
  ATTN_SIM_TRY(emitLocalCopy(d, ast, 0, 0, 0));
  d.program.code.back().fn = execCall;
  d.program.code.back().cls = InstClass::Branch;
  for (size_t n = 0; n < numResults; ++n) {
    uint64_t bytes = info.ast->results[n].bytes;
    llvm::Expected<uint32_t> to = local(results->elems[n], bytes);
    if (!to)
      return to.takeError();
    ATTN_SIM_TRY(emitLocalCopy(d, ast, *to, info.resultOffsets[n], bytes));
  }
  return Error::success();
}

void mlir::attn::sim::registerControlOps(DecodeTable &table) {
  table.call = decodeCall;
  table["bra"] = decodeBranch;
  table["brx"] = decodeBranchIndexed;
  table["ret"] = decodeReturn;
  table["exit"] = decodeReturn;
  table["trap"] = decodeTrap;
  table["brkpt"] = decodeIgnored;
  table["pmevent"] = decodeIgnored;
  table["nanosleep"] = decodeNanosleep;
  table["griddepcontrol"] = decodeGridDependency;
}
