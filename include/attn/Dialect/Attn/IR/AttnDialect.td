//===- AttnDialect.td - The attn dialect --------------------*- tablegen -*-===//
//
// The dialect and the base classes of its ops, types and attributes.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
#define ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"

def Attn_Dialect : Dialect {
  let name = "attn";
  let cppNamespace = "::mlir::attn";
  let summary = "Attention kernels, from the problem to one thread's program";
  let description = [{
    One op, `attn.attention`, states an attention problem. Passes turn it, step
    by visible step, into a kernel for one NVIDIA target. The dialect has a
    family of ops for each concern: the problem, buffers in shared memory, copies,
    bulk copies by TMA, matrix instructions of a warp and of a warpgroup, register
    tiles, the loops over blocks of keys and over tiles, partitions of a CTA's
    warps, the channels by which they hand slots to each other, and the barriers
    that these become.

    Bytecode says which version of the dialect wrote it
    ([Bytecode](../Rationale/Interfaces.md#bytecode)).

    Register tiles are `tensor` values whose encoding is a layout attribute of
    this dialect, so that `arith`, `math` and `scf` work on them. Shared memory
    is a `!attn.buffer`; global memory a `!attn.global` view of rows.

    A kernel that somebody writes is a `gpu.func` with the word `kernel`. It states:

    - the chip, on its `gpu.module`: `[#attn.target<chip = "sm_90a">]`;
    - `known_block_size`, the threads of a CTA, all along x. A kernel with partitions
      that does not state it gets the threads of its partitions;
    - `attn.warps`, the grid of warps (rows, columns) that shares a register tile. Needed
      where there are tiles outside of partitions; each partition states its own;
    - `nvvm.minctasm`, the CTAs that an SM holds at once, which decides how many registers
      the partitions share. The default is 1;
    - `known_cluster_size`, the CTAs of a cluster. The default is 1;
    - `attn.launch`, what a host needs to launch it ([LaunchRecord](../LaunchRecord.md)).
      Without it there is PTX and no launch record. Its `cluster` is 1 by default, and the
      `strides` of a tensor are those of dense rows.

    [Write a kernel by hand](../HowTo/write-a-kernel.md) builds kernels for sm_80, sm_90a
    and sm_100a from nothing.
  }];
  let dependentDialects = [
    "arith::ArithDialect", "gpu::GPUDialect", "LLVM::LLVMDialect",
    "NVVM::NVVMDialect", "scf::SCFDialect", "math::MathDialect",
    "tensor::TensorDialect"
  ];
  let useDefaultTypePrinterParser = 1;
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasConstantMaterializer = 1;
  let extraClassDeclaration = [{
    /// `#attn.launch` on a kernel: how it is launched.
    static constexpr llvm::StringLiteral kLaunchAttr = "attn.launch";
    /// Attribute on a kernel without partitions: the grid of warps over (rows,
    /// columns).
    static constexpr llvm::StringLiteral kWarpsAttr = "attn.warps";
    /// Attribute on a kernel without partitions: how many teams the CTA's warps
    /// are, each of which runs the kernel's body by itself (TeamOps.td).
    static constexpr llvm::StringLiteral kTeamsAttr = "attn.teams";
    /// Attribute on a kernel: bytes of dynamic shared memory, set by
    /// attn-allocate-shared.
    static constexpr llvm::StringLiteral kSharedBytesAttr = "attn.shared_bytes";
    /// Unit attribute on a kernel, set by attn-materialize-scratch: from here
    /// on no pass creates shared memory.
    static constexpr llvm::StringLiteral kSharedClosedAttr =
        "attn.shared_closed";

    void registerAttributes();
    void registerTypes();
    void registerBytecode();
  }];
}

class Attn_Type<string name, string typeMnemonic, list<Trait> traits = []>
    : TypeDef<Attn_Dialect, name, traits> {
  let mnemonic = typeMnemonic;
}

class Attn_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Attn_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

/// An attribute of an op that says what it stands for, in the generated pages and
/// behind the constraint in messages.
class Described<Attr attr, string meaning> : ConfinedAttr<attr, []> {
  let summary = attr.summary # ": " # meaning;
}

/// Base of all ops. `sinceVersion` is the dialect version that introduced the
/// op.
class Attn_Op<string mnemonic, list<Trait> traits = []>
    : Op<Attn_Dialect, mnemonic, traits> {
  string sinceVersion = "0.1";
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNDIALECT_TD
