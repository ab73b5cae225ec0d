//===- AttnCGAAttr.td - Blocks of a value in a cluster ------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNCGAATTR_TD
#define ATTN_DIALECT_ATTN_IR_ATTNCGAATTR_TD

include "attn/Dialect/Attn/IR/AttnDialect.td"

def Attn_CGAAttr : Attn_Attr<"CGA", "cga"> {
  let summary = "which block of a value each CTA of a cluster holds";
  let description = [{
    The shape in the type of a buffer is that of one CTA's block. Over a cluster of
    2, 4 or 8 CTAs (a CGA) the blocks make up a larger value: the CTA of rank r, with
    bits r_0, r_1, .., holds the block at r_0 * b_0 + r_1 * b_1 + .., in units of
    blocks. `bases` has one b_i for each bit of the rank. A basis steps along one
    dimension, by a power of two; those that step along the same dimension are 1, 2
    and 4, in any order. A basis of zeros is a copy: CTAs whose ranks differ in that
    bit only hold the same block. So z bases of zeros are 2^z copies, each CTA's
    coset being the CTAs that hold its block.

    Of mbarriers, which have one dimension, a basis of zeros says that the CTAs which
    differ in that bit have one barrier together: that of the one whose bit is clear,
    their leader. Its count and its bytes are those of all of them.

    `attn-shard-cga` and `attn-lower-channels` write it where CTAs share the work of
    a product. Where somebody has written another one, that is an error.

    Undefined behaviour: copies that hold different elements.

    Example: `#attn.cga<[[1, 0], [0, 0]]>`: of four CTAs the first two hold one block
    below the other, and the last two hold the same two blocks.
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::DenseI64ArrayAttr", "for each bit of the rank">:$bases);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<::llvm::SmallVector<int64_t>>":$bases), [{
      ::llvm::SmallVector<::mlir::DenseI64ArrayAttr> attrs;
      for (const ::llvm::SmallVector<int64_t> &basis : bases)
        attrs.push_back(::mlir::DenseI64ArrayAttr::get($_ctxt, basis));
      return $_get($_ctxt, attrs);
    }]>];
  let extraClassDeclaration = [{
    /// CTAs of the cluster, and dimensions of the value.
    int64_t countCTAs() const { return int64_t(1) << getBases().size(); }
    int64_t getRank() const {
      return getBases().empty() ? 0 : getBases().front().size();
    }
    /// The basis of a bit of the rank, one number for each dimension.
    ::llvm::ArrayRef<int64_t> getBasis(unsigned bit) const {
      return getBases()[bit].asArrayRef();
    }
    /// The place of a CTA's block in units of blocks, along a dimension.
    int64_t getBlock(uint32_t rank, unsigned dim) const;
    /// The bits of the rank whose bases are zeros.
    uint32_t getCopiedBits() const;
  }];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNCGAATTR_TD
