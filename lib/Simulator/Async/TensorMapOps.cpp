//===- TensorMapOps.cpp - tensormap.replace and cp_fenceproxy -------------===//

#include "../Instructions/MemoryTraffic.h"
#include "../Instructions/WarpSync.h"
#include "../Sanitizer/Races.h"
#include "AsyncInstructions.h"
#include "attn/Simulator/Async/TensorMap.h"

using namespace mlir::attn::sim;
using llvm::Error;
using llvm::StringRef;

namespace {

constexpr unsigned MapBytes = 128;

struct ReplaceAux {
  TensorMapField field = TensorMapField::GlobalAddress;
  unsigned ordinal = 0;
  Space space = Space::Generic;
};

/// An address operand of one lane.
uint64_t laneAddress(Exec &x, const Operand &base, int64_t displacement,
                     unsigned lane) {
  uint64_t address = x.read(base, lane) + displacement;
  return base.cls == RegClass::R32 ? uint32_t(address) : address;
}

// ops: address, value.
void execReplace(Exec &x, const Inst &I) {
  const auto &o = *static_cast<const ReplaceAux *>(I.aux);
  x.checkPoison(I.ops[0], "an address");
  x.checkPoison(I.ops[1], "a field of a tensor map");
  forLanes(x.active, [&](unsigned lane) {
    if (x.action == Action::Fault)
      return;
    MemRef ref;
    if (!x.resolve(o.space, laneAddress(x, I.ops[0], I.imm, lane), MapBytes, 64,
                   true, lane, ref))
      return;
    track(x, ref, MapBytes, true, 0, lane);
    if (ref.space == Space::Shared)
      checkMbarrierOverlap(x, ref, MapBytes, lane);
    if (Error error =
            replaceTensorMapField(llvm::MutableArrayRef(ref.data, MapBytes),
                                  o.field, o.ordinal, x.read(I.ops[1], lane)))
      x.fault(FindingKind::InvalidOperation, llvm::toString(std::move(error)),
              lane);
  });
}

// ops: destination in global memory, source in shared memory.
void execCopyFence(Exec &x, const Inst &I) {
  if (!gatherWarp(x))
    return;
  x.checkPoison(I.ops[0], "an address");
  x.checkPoison(I.ops[1], "an address");
  unsigned lane = llvm::countr_zero(x.active);
  MemRef to, from;
  if (!x.resolve(Space::Global, laneAddress(x, I.ops[0], I.imm, lane), MapBytes,
                 MapBytes, true, lane, to) ||
      !x.resolve(Space::Shared, laneAddress(x, I.ops[1], int64_t(I.imm2), lane),
                 MapBytes, MapBytes, false, lane, from))
    return;
  track(x, from, MapBytes, false, 0, -1);
  track(x, to, MapBytes, true, 0, -1);
  std::memcpy(to.data, from.data, MapBytes);
  if (to.valid)
    std::memcpy(to.valid, from.valid, MapBytes);
  if (x.sanitizing())
    releaseAtFence(x, SyncScope(I.flags));
}

/// tensormap.cp_fenceproxy, without its first qualifier.
Error decodeCopyFence(Decoding &c) {
  for (StringRef mod : {"global", "shared::cta", "tensormap::generic",
                        "release", "sync", "aligned"})
    if (!c.take(mod))
      return c.error("expected '." + mod + "'");
  if (!llvm::is_contained(c.mods, "cta") &&
      !llvm::is_contained(c.mods, "cluster") &&
      !llvm::is_contained(c.mods, "gpu") && !llvm::is_contained(c.mods, "sys"))
    return c.error("expected a scope");
  c.inst.flags = uint8_t(takeScope(c, SyncScope::Gpu));
  int64_t bytes, displacement;
  ATTN_SIM_TRY(c.expectOps(3, 3));
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  ATTN_SIM_TRY(c.address(c.ast.ops[1], displacement));
  c.inst.imm2 = displacement;
  ATTN_SIM_TRY(c.immediate(c.ast.ops[2], bytes));
  if (bytes != MapBytes)
    return c.error("expected a size of 128, got " + llvm::Twine(bytes));
  c.program().sharedGranule = std::min(c.program().sharedGranule, 16u);
  c.program().globalGranule = std::min(c.program().globalGranule, 16u);
  return c.set(execCopyFence, InstClass::Fence);
}

Error decodeTensorMapOp(Decoding &c) {
  if (c.take("cp_fenceproxy"))
    return decodeCopyFence(c);
  if (!c.take("replace") || !c.take("tile"))
    return c.error("expected 'tensormap.replace.tile' or "
                   "'tensormap.cp_fenceproxy'");
  struct Field {
    StringRef name;
    TensorMapField field;
    bool hasOrdinal, wide;
  };
  static const Field fields[] = {
      {"global_address", TensorMapField::GlobalAddress, false, true},
      {"rank", TensorMapField::Rank, false, false},
      {"box_dim", TensorMapField::BoxDim, true, false},
      {"global_dim", TensorMapField::GlobalDim, true, false},
      {"global_stride", TensorMapField::GlobalStride, true, true},
      {"element_stride", TensorMapField::ElementStride, true, false},
      {"elemtype", TensorMapField::ElementType, false, false},
      {"interleave_layout", TensorMapField::Interleave, false, false},
      {"swizzle_mode", TensorMapField::SwizzleMode, false, false},
      {"fill_mode", TensorMapField::FillMode, false, false},
  };
  const Field *field =
      llvm::find_if(fields, [&](const Field &f) { return c.take(f.name); });
  if (field == std::end(fields))
    return c.error("unknown field of a tensor map");
  auto *o = c.makeAux<ReplaceAux>();
  o->field = field->field;
  StringRef space = c.takeAny({"global", "shared::cta"});
  o->space = space == "global"        ? Space::Global
             : space == "shared::cta" ? Space::Shared
                                      : Space::Generic;
  if (!c.take("b1024") || !c.take(field->wide ? "b64" : "b32"))
    return c.error(llvm::Twine("expected '.b1024.") +
                   (field->wide ? "b64'" : "b32'"));
  unsigned want = field->hasOrdinal ? 3 : 2;
  ATTN_SIM_TRY(c.expectOps(want, want));
  ATTN_SIM_TRY(c.address(c.ast.ops[0], c.inst.imm));
  if (field->hasOrdinal) {
    int64_t ordinal;
    ATTN_SIM_TRY(c.immediate(c.ast.ops[1], ordinal));
    o->ordinal = ordinal;
  }
  ATTN_SIM_TRY(c.src(c.ast.ops[want - 1], field->wide ? Type::B64 : Type::B32));
  c.program().sharedGranule = std::min(c.program().sharedGranule, 16u);
  c.program().globalGranule = std::min(c.program().globalGranule, 16u);
  return c.set(execReplace, InstClass::Other);
}

} // namespace

void mlir::attn::sim::registerTensorMapOps(DecodeTable &table) {
  table["tensormap"] = decodeTensorMapOp;
}
