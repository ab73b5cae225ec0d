//===- Rung.h - The forms that a kernel goes through ------------*- C++ -*-===//
//
// Each form on the way from a problem to a cubin is a rung. Kernels in IR carry
// the name of theirs on their gpu.module, so that a file that is read back goes
// on from there: passes behind a rung would undo what was changed by hand.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_RUNG_H
#define ATTN_DIALECT_ATTN_IR_RUNG_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include <optional>

namespace mlir::attn {

/// The forms that a kernel goes through. `Launch` is not below the others: the
/// record stands on the kernel from the tile rung on and is complete at NVVM.
enum class Rung {
  Problem,
  Plan,
  Tile,
  Barrier,
  Thread,
  NVVM,
  Launch,
  LLVM,
  PTX,
  Cubin
};

/// The name of a rung in flags, file names and IR, such as "nvvm".
llvm::StringRef stringifyRung(Rung rung);
/// The inverse of stringifyRung; nothing for another name.
std::optional<Rung> symbolizeRung(llvm::StringRef name);
/// The same; an error for another name that lists the rungs: "expected one of
/// problem, ..., got 'sass'".
llvm::Expected<Rung> parseRung(llvm::StringRef name);
/// All rungs in order.
llvm::ArrayRef<Rung> getRungs();

/// String attribute on a gpu.module: the rung of its kernels, from tile to
/// nvvm.
constexpr llvm::StringLiteral kRungAttr = "attn.rung";

/// Says that the kernels in `module` are at `rung`.
void setRung(gpu::GPUModuleOp module, Rung rung);

/// Says so where `module` said an earlier rung: a pass ends one rung, and what
/// says nothing may be a part of a kernel.
void advanceRung(gpu::GPUModuleOp module, Rung rung);

/// The rung of what is in `module`: problem or plan for attentions, else that
/// of the kernels, as their gpu.module says or, with a remark, as their ops
/// show. Errors: nothing to compile, several rungs, ops of another rung than
/// the gpu.module says, a kernel at the barrier rung whose shared memory is not
/// laid out.
FailureOr<Rung> findRung(ModuleOp module);

} // namespace mlir::attn

#endif // ATTN_DIALECT_ATTN_IR_RUNG_H
