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
    [AttnAsync<"::mlir::attn::kBulkLoads">]> {
  let summary = "fills a channel's slot, which counts the bytes";
  let arguments = (ins Arg<Attn_BufferType, "the slot", [MemWrite]>:$dest,
                       Attn_TokenType:$token);
  let assemblyFormat = "$dest `token` $token attr-dict `:` type($dest)";
  let extraClassDeclaration = [{
    ::mlir::Value getSlotToken() { return getToken(); }
  }];
}

#endif // ATTN_TEST_LIB_DIALECT_TESTATTN_TESTATTNOPS_TD
