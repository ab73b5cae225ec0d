//===- AttnTypes.td - Types of the attn dialect -------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNTYPES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNTYPES_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnEnums.td"

def Attn_BufferType : Attn_Type<"Buffer", "buffer"> {
  let summary = "a mutable region of on-chip memory";
  let description = [{
    A handle to memory that the threads of a CTA share. The shape is that of
    one slot, with a leading dimension for the slots of a ring when the rank is
    3. `layout` says where the elements of one slot lie; slots follow each
    other. `#attn.auto` until `attn-infer-layouts` has run.

    Example: `!attn.buffer<2x64x128xf16, #attn.swizzled<span = 128>, shared>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    AttrParameter<"::mlir::Attribute", "layout of a slot">:$layout,
    EnumParameter<Attn_MemorySpace>:$space);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// The number of slots: the leading extent of a rank-3 buffer, else 1.
    int64_t getNumSlots() const;
    /// The shape of one slot: the last two extents, or the only one.
    ::llvm::ArrayRef<int64_t> getSlotShape() const;
    /// Bytes of one slot under the buffer's layout; the layout is not auto.
    ::llvm::Expected<int64_t> getSlotBytes() const;
    /// The same buffer with another layout.
    BufferType withLayout(::mlir::Attribute layout) const;
  }];
}

def Attn_GlobalType : Attn_Type<"Global", "global"> {
  let summary = "a view of rows in global memory";
  let description = [{
    A base address, a number of rows known at run time, and a distance between
    rows in elements. Rank 2: rows of `shape[1]` contiguous elements. Rank 1:
    one element a row.

    Example: `!attn.global<?x128xf16>`, `!attn.global<?xf32>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getShape().size(); }
    /// Contiguous elements of a row.
    int64_t getColumns() const { return getRank() == 2 ? getShape()[1] : 1; }
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNTYPES_TD
