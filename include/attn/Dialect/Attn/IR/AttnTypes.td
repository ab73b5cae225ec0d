//===- AttnTypes.td - Types of the attn dialect -------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNTYPES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNTYPES_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"
include "attn/Dialect/Attn/IR/AttnEnums.td"

def Attn_BufferType : Attn_Type<"Buffer", "buffer"> {
  let summary = "a mutable region of on-chip memory";
  let description = [{
    A handle to shared or tensor memory of a CTA. The shape is that of
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
    bool isTmem() const { return getSpace() == MemorySpace::Tmem; }
    /// Columns of 32 bits of one slot in tensor memory.
    int64_t getSlotColumns() const;
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

def Attn_MBarriersType : Attn_Type<"MBarriers", "mbarriers"> {
  let summary = "an array of mbarriers in shared memory";
  let description = [{
    `count` mbarriers of 8 bytes each (PTX ISA, mbarrier), one after the other.

    Example: `!attn.mbarriers<2>`.
  }];
  let parameters = (ins "int64_t":$count);
  let assemblyFormat = "`<` $count `>`";
  let genVerifyDecl = 1;
}

def Attn_ChannelType : Attn_Type<"Channel", "channel"> {
  let summary = "a ring of slots that partitions hand to each other";
  let description = [{
    A ring of `depth` slots and a cycle of roles, made by `attn.channel.create`.
    It says who may touch a slot when; the bytes are a buffer beside it.

    Example: `!attn.channel<2>`.
  }];
  let parameters = (ins "int64_t":$depth);
  let assemblyFormat = "`<` $depth `>`";
  let genVerifyDecl = 1;
}

def Attn_CursorType : Attn_Type<"Cursor", "cursor"> {
  let summary = "a role's position in a channel: slot and phase";
  let description = [{
    Made by `attn.cursor.start`, moved by `attn.cursor.advance` only, and carried
    by the loop that walks the channel.
  }];
}

def Attn_TokenType : Attn_Type<"Token", "token"> {
  let summary = "the right to touch a slot of a channel";
  let description = [{
    Made by `attn.channel.acquire` and given up by `attn.channel.release`: each
    token exactly once on each path. It may cross a loop's back-edge.
  }];
}

def Attn_TensorMapType : Attn_Type<"TensorMap", "tensor_map"> {
  let summary = "a tensor map: how a tensor lies in global memory, for TMA";
  let description = [{
    A kernel parameter of 128 bytes that the host encodes (CUDA driver API,
    cuTensorMapEncodeTiled). `box` is what one instruction copies, in the
    tensor's order of dimensions, `swizzle` the span in bytes (0, 32, 64, 128)
    in which 16-byte chunks are permuted in shared memory.

    Example: `!attn.tensor_map<1x1x128x64xf16, swizzle = 128>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$box,
    "::mlir::Type":$elementType,
    "int64_t":$swizzle);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    int64_t getRank() const { return getBox().size(); }
    /// Rows and columns of a box as it lies in shared memory: the product of
    /// all extents but the last, and the last.
    int64_t getRows() const {
      return ::llvm::product_of(getBox().drop_back());
    }
    int64_t getColumns() const { return getBox().back(); }
  }];
}

def Attn_InFlightType : Attn_Type<"InFlight", "inflight"> {
  let summary = "registers that an instruction is still writing";
  let description = [{
    The registers of a tile between the op that started to write them and the wait
    that returns them. Without a layout it is the M x N accumulator of an
    `attn.wgmma`, in the fragments of the warps that hold it; its only uses are one
    further `attn.wgmma` as accumulator or one `attn.wgmma.wait`. With the layout
    `#attn.mma` it is one too: copies of warpgroups each make the whole product,
    `column_runs` of several warpgroups say which columns each of them makes. With
    another layout it is what an `attn.tmem.load` loads; its only use is one
    `attn.tmem.wait`.

    Example: `!attn.inflight<128x64xf32>`,
    `!attn.inflight<128x32xf32, #attn.tmem_regs<shape_32x32b, warps = [4, 1]>>`.
  }];
  let parameters = (ins
    ArrayRefParameter<"int64_t">:$shape,
    "::mlir::Type":$elementType,
    OptionalParameter<"::mlir::Attribute">:$layout);
  let builders = [
    // An accumulator of wgmma.
    TypeBuilder<(ins "::llvm::ArrayRef<int64_t>":$shape,
                     "::mlir::Type":$elementType), [{
      return $_get($_ctxt, shape, elementType, ::mlir::Attribute());
    }]>];
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNTYPES_TD
