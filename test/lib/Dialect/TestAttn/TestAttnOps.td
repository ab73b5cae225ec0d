//===- TestAttnOps.td - Ops that only tests use -------------*- tablegen -*-===//

#ifndef ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD
#define ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD

include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def TestAttn_Dialect : Dialect {
  let name = "test_attn";
  let cppNamespace = "::mlir::attn::test";
}

def TestAttn_NeedsSM90Op
    : Op<TestAttn_Dialect, "needs_sm90", [AttnRequiresSM<90>]> {
  let summary = "an op that exists from sm_90 on";
  let assemblyFormat = "attr-dict";
}

def TestAttn_Groups : Resource<"::mlir::attn::AsyncGroups">;

/// An engine that no library knows: async proxy, groups of a thread.
class TestAttn_AsyncOp<string mnemonic, list<Trait> traits = []>
    : Op<TestAttn_Dialect, mnemonic, !listconcat(
          [AttnAsync<"::mlir::attn::test::kTestEngine">], traits)>;

def TestAttn_AsyncReadOp : TestAttn_AsyncOp<"async_read"> {
  let summary = "starts to read a buffer";
  let arguments = (ins Arg<Attn_BufferType, "the buffer", [MemRead]>:$source);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def TestAttn_AsyncCommitOp : TestAttn_AsyncOp<"async_commit",
    [MemoryEffects<[MemWrite<TestAttn_Groups>]>]> {
  let summary = "closes a group of reads";
  let assemblyFormat = "attr-dict";
  let extraClassDeclaration = [{ bool closesGroup() { return true; } }];
}

def TestAttn_AsyncWaitOp : TestAttn_AsyncOp<"async_wait",
    [MemoryEffects<[MemWrite<TestAttn_Groups>]>]> {
  let summary = "waits for all groups but the last ones";
  let arguments = (ins I64Attr:$pending);
  let assemblyFormat = "$pending attr-dict";
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return getPending(); }
  }];
}

def TestAttn_AsyncFillOp : Op<TestAttn_Dialect, "async_fill",
    [AttnAsync<"::mlir::attn::kBulkLoads">, AttrSizedOperandSegments,
     DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
       ["getUsedHandle", "getFilledBytes", "setFillBarrier"]>]> {
  let summary = "fills a channel's slot, which counts the bytes";
  let arguments = (ins Arg<Attn_BufferType, "the slot", [MemWrite]>:$dest,
                       Optional<Attn_TokenType>:$token,
                       Optional<Attn_MBarriersType>:$barriers,
                       Optional<I32>:$index);
  let assemblyFormat = [{
    $dest (`token` $token^)? (`barrier` $barriers^ `[` $index `]` `:` type($barriers))?
    attr-dict `:` type($dest)
  }];
}

def TestAttn_BulkFillOp : Op<TestAttn_Dialect, "bulk_fill",
    [AttnAsync<"::mlir::attn::kBulkLoads">, Attn_BulkCopyOpInterface,
     DeclareOpInterfaceMethods<Attn_ChannelUserOpInterface,
       ["getUsedHandle", "getFilledBytes"]>]> {
  let summary = "copies a box of a tensor to a channel's slot";
  let arguments = (ins Attn_TensorMapType:$map, Variadic<I32>:$coords,
                       Arg<Attn_BufferType, "the slot", [MemWrite]>:$dest,
                       Attn_TokenType:$token);
  let assemblyFormat = [{
    $map `[` $coords `]` `,` $dest `token` $token attr-dict
    `:` type($map) `,` type($dest)
  }];
  let extraClassDeclaration = [{
    ::mlir::Value getCopiedBuffer() { return getDest(); }
    bool isBulkLoad() { return true; }
    ::mlir::OperandRange getBoxStart() { return getCoords(); }
  }];
}

def TestAttn_TakeOp
    : Op<TestAttn_Dialect, "take", [Attn_ChannelUserOpInterface]> {
  let summary = "waits for a slot of a channel";
  let arguments = (ins Attn_CursorType:$cursor, Attn_ChannelType:$channel,
                       StrAttr:$role);
  let results = (outs Attn_TokenType:$token, I32:$slot);
  let assemblyFormat = "$channel `[` $cursor `]` $role attr-dict `:` type($channel)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Acquire; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::OpOperand *getUsedHandle() { return &getCursorMutable(); }
    ::mlir::Value getMadeHandle() { return getToken(); }
    ::mlir::Value getSlotIndex() { return getSlot(); }
  }];
}

def TestAttn_GiveOp
    : Op<TestAttn_Dialect, "give", [Attn_ChannelUserOpInterface]> {
  let summary = "hands a slot on";
  let arguments = (ins Attn_TokenType:$token, Attn_ChannelType:$channel,
                       StrAttr:$role);
  let assemblyFormat = "$token `to` $channel $role attr-dict `:` type($channel)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Release; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::OpOperand *getUsedHandle() { return &getTokenMutable(); }
  }];
}

/// A product like attn.wgmma's, by an engine that no library knows, which can
/// do all of what schedules ask or nothing but multiply.
def TestAttn_ProductOp : Op<TestAttn_Dialect, "product",
    [AttnAsync<"::mlir::attn::test::kTestProducts">,
     DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getOperandLayout"]>,
     DeclareOpInterfaceMethods<Attn_ProductOpInterface,
       ["getWarpgroups", "canRepeatInWarp", "repeatInWarp"]>,
     DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "starts a product";
  let arguments = (ins AnyType:$a, AnyType:$b, Optional<AnyType>:$c,
                       OptionalAttr<I64Attr>:$columns,
                       OptionalAttr<I64Attr>:$depth, UnitAttr:$whole);
  let results = (outs Attn_InFlightType:$result);
  let assemblyFormat = [{
    $a `,` $b (`acc` $c^ `:` type($c))? attr-dict
    `:` type($a) `,` type($b) `->` type($result)
  }];
  let extraClassDeclaration = [{
    bool closesGroup() { return true; }
    bool touchesOwnRows(::mlir::OpOperand &operand) {
      return operand.getOperandNumber() == 0;
    }
    bool hasLimits() { return !getWhole(); }
    void limitColumns(int64_t columns) { setColumns(columns); }
    void limitDepth(int64_t depth) { setDepth(depth); }
  }];
}

def TestAttn_ProductWaitOp : Op<TestAttn_Dialect, "product_wait",
    [AttnAsync<"::mlir::attn::test::kTestProducts">, SameVariadicResultSize,
     DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutAnchors"]>,
     DeclareOpInterfaceMethods<Attn_ProductWaitOpInterface>,
     MemoryEffects<[MemWrite<TestAttn_Groups>]>]> {
  let summary = "waits for products";
  let arguments = (ins Variadic<Attn_InFlightType>:$sources, I64Attr:$pending);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$sources attr-dict `:` type($sources) `->` type($results)";
  let extraClassDeclaration = [{
    ::std::optional<int64_t> getAwaitedGroups() { return getPending(); }
  }];
}

def TestAttn_ProductResumeOp : Op<TestAttn_Dialect, "product_resume", [Pure]> {
  let summary = "a tile as an accumulator in flight";
  let arguments = (ins AnyRankedTensor:$source);
  let results = (outs Attn_InFlightType:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
}

/// A product that is written to a buffer and that an mbarrier completes.
def TestAttn_BufferProductOp : Op<TestAttn_Dialect, "buffer_product",
    [AttnAsync<"::mlir::attn::test::kTestBufferProducts">,
     DeclareOpInterfaceMethods<Attn_ProductOpInterface>]> {
  let summary = "starts a product whose result is in a buffer";
  let arguments = (ins Arg<Attn_BufferType, "M x K", [MemRead]>:$a,
                       Arg<Attn_BufferType, "K x N", [MemRead]>:$b,
                       Arg<Attn_BufferType, "M x N", [MemRead, MemWrite]>:$d);
  let assemblyFormat = "$a `,` $b `to` $d attr-dict `:` type($a) `,` type($b) `,` type($d)";
}

def TestAttn_OpaqueOp : Op<TestAttn_Dialect, "opaque"> {
  let summary = "takes anything and answers no interface";
  let arguments = (ins Variadic<AnyType>:$operands);
  let assemblyFormat = "$operands attr-dict `:` type($operands)";
}

#endif // ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD
