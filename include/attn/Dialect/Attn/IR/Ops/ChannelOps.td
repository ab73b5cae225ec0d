//===- ChannelOps.td - Hand-over between partitions ---------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_CHANNELOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_CHANNELOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/Ops/BarrierOps.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Attn_RoleArrayAttr : TypedArrayAttrBase<Attn_RoleAttr, "roles in cyclic order">;

let opDocGroup = Attn_ChannelGroup in {

def Attn_ChannelCreateOp : Attn_Op<"channel.create", [DeclareOpInterfaceMethods<Attn_ArchOpInterface>,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    MemoryEffects<[MemAlloc<Attn_BarrierState>]>]> {
  let summary = "makes a ring of slots with a cycle of roles";
  let description = [{
    Role r acquires a slot after role r - 1 released it; role 0 starts with all
    slots free. `attn-lower-channels` makes an array of mbarriers for each role
    and derives counts, bytes and phases; it initialises them before the
    `attn.warp_specialize`, where the channel must be made.

    Example:

    ```mlir
    func.func @channel() {
      %k = attn.channel.create {name = "k", roles = [#attn.role<"producer", tx>, #attn.role<"consumer", arrive>]} : !attn.channel<2>
      %q = attn.channel.create {name = "q", roles = [#attn.role<"producer", tx, parts = ["upper", "lower"]>, #attn.role<"consumer", arrive, parts = ["upper", "lower"]>]} : !attn.channel<1>
      return
    }
    ```
  }];
  let arguments = (ins Described<StrAttr, "what it hands over, in messages and printed IR">:$name,
    Attn_RoleArrayAttr:$roles);
  let results = (outs Res<Attn_ChannelType, "the channel">:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The index of the role called `name`, or nothing.
    std::optional<unsigned> findRole(::llvm::StringRef name);
    ::mlir::attn::RoleAttr getRole(unsigned index) {
      return ::llvm::cast<::mlir::attn::RoleAttr>(getRoles()[index]);
    }
    /// The role whose releases the acquires of role `index` wait for.
    ::mlir::attn::RoleAttr getRoleBefore(unsigned index) {
      return getRole((index + getRoles().size() - 1) % getRoles().size());
    }
  }];
}

def Attn_CursorStartOp : Attn_Op<"cursor.start", [Pure, Attn_ChannelUserOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the first position of a role in a channel";
  let description = [{
    Slot 0, in the phase in which the role `role` first meets it.

    Example:

    ```mlir
    func.func @start(%k: !attn.channel<2>) -> !attn.cursor {
      %c = attn.cursor.start %k as "consumer" : !attn.channel<2>
      return %c : !attn.cursor
    }
    ```
  }];
  let arguments = (ins Arg<Attn_ChannelType, "the channel">:$channel, Described<StrAttr, "the position's role, as the channel names it">:$role);
  let results = (outs Res<Attn_CursorType, "the position">:$result);
  let assemblyFormat = "$channel `as` $role attr-dict `:` type($channel)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Start; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::Value getMadeHandle() { return getResult(); }
  }];
}

def Attn_CursorAdvanceOp : Attn_Op<"cursor.advance", [Pure, Attn_ChannelUserOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let summary = "the next position in a channel";
  let description = [{
    The next slot; after the last one slot 0 in the next phase.

    Example:

    ```mlir
    func.func @advance(%k: !attn.channel<2>, %c: !attn.cursor) -> !attn.cursor {
      %n = attn.cursor.advance %c on %k : !attn.channel<2>
      return %n : !attn.cursor
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_CursorType, "a position">:$cursor,
    Arg<Attn_ChannelType, "the channel">:$channel);
  let results = (outs Res<Attn_CursorType, "the next position">:$result);
  let assemblyFormat = "$cursor `on` $channel attr-dict `:` type($channel)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Advance; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::mlir::OpOperand *getUsedHandle() { return &getCursorMutable(); }
    ::mlir::Value getMadeHandle() { return getResult(); }
  }];
}

def Attn_ChannelAcquireOp : Attn_Op<"channel.acquire", [AttnRequiresSM<80>, Attn_ChannelUserOpInterface,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "waits for a slot of a channel";
  let description = [{
    Waits until the role before `role` has released the slot at `cursor`, and
    returns its index and the right to touch it. Where that role hands a slot on
    in parts it takes the one named by `part` or, with `each_warpgroup`, in each
    warpgroup of the partition the part of the warpgroup's number.

    Undefined behaviour: a cursor of another channel or role; acquiring a
    position, or a part of it, twice or out of order.

    Example:

    ```mlir
    func.func @use(%k: !attn.channel<2>, %q: !attn.channel<1>, %c: !attn.cursor, %d: !attn.cursor) {
      %i, %t = attn.channel.acquire %k[%c] as "consumer" : !attn.channel<2>
      attn.channel.release %k, %t as "consumer" : !attn.channel<2>
      %j, %u = attn.channel.acquire %q[%d] as "consumer" part "upper" : !attn.channel<1>
      attn.channel.release %q, %u as "consumer" : !attn.channel<1>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_ChannelType, "the channel">:$channel,
    Arg<Attn_CursorType, "the role's position">:$cursor,
    Described<StrAttr, "who waits, as the channel names it">:$role,
    Described<OptionalAttr<StrAttr>, "which part of the slot, as the role before names it">:$part,
    Described<UnitAttr, "each warpgroup takes the part of its number">:$each_warpgroup);
  let results = (outs
    Res<I32, "index of the slot">:$index,
    Res<Attn_TokenType, "the right to touch it">:$token);
  let assemblyFormat = "$channel `[` $cursor `]` `as` $role (`part` $part^)? attr-dict `:` type($channel)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$channel,
    "::mlir::Value":$cursor, "::llvm::StringRef":$role), [{
      build($_builder, $_state, channel, cursor, role, ::mlir::StringAttr(),
            /*each_warpgroup=*/false);
    }]>];
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Acquire; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::OpOperand *getUsedHandle() { return &getCursorMutable(); }
    ::mlir::Value getMadeHandle() { return getToken(); }
    ::mlir::Value getSlotIndex() { return getIndex(); }
    ::std::optional<::llvm::StringRef> getUsedPart() { return getPart(); }
    bool usesOwnParts() { return getEachWarpgroup(); }
  }];
}

def Attn_ChannelReleaseOp : Attn_Op<"channel.release", [AttnRequiresSM<80>, Attn_ChannelUserOpInterface,
    MemoryEffects<[MemRead<Attn_BarrierState>, MemWrite<Attn_BarrierState>]>]> {
  let summary = "gives a slot to the next role";
  let description = [{
    Signals that `role` is done with the slot, or with the token's part of it, in
    the way that the channel's roles say. With `tx` the copies that were started with the token complete
    the signal by themselves. With `commit` the signal comes when all products are
    complete that the executing thread has started so far: releases at one place
    are signalled in their order. Such a release stands in the `attn.elect` of the
    products that use the slot, behind them.

    Undefined behaviour: touching the slot afterwards.

    Example: see `attn.channel.acquire`.
  }];
  let arguments = (ins
    Arg<Attn_ChannelType, "the channel">:$channel,
    Arg<Attn_TokenType, "the token of the acquire">:$token,
    Described<StrAttr, "who hands it on, as the channel names it">:$role);
  let assemblyFormat = "$channel `,` $token `as` $role attr-dict `:` type($channel)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Release; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::OpOperand *getUsedHandle() { return &getTokenMutable(); }
  }];
}

def Attn_ChannelSplitOp : Attn_Op<"channel.split", [AttnRequiresSM<80>, Attn_ChannelUserOpInterface, Pure]> {
  let summary = "cuts the right to a slot into the parts of a role";
  let description = [{
    Takes the token of a whole slot and returns one for each part in which `role`
    hands the slot on, in the order of the role's `parts`. Each is released on its
    own.

    Example:

    ```mlir
    func.func @halves(%s: !attn.channel<1>, %c: !attn.cursor) {
      %i, %t = attn.channel.acquire %s[%c] as "softmax" : !attn.channel<1>
      %front, %back = attn.channel.split %s, %t as "softmax" : !attn.channel<1> -> !attn.token, !attn.token
      attn.channel.release %s, %front as "softmax" : !attn.channel<1>
      attn.channel.release %s, %back as "softmax" : !attn.channel<1>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_ChannelType, "the channel">:$channel,
    Arg<Attn_TokenType, "the right to a whole slot">:$token,
    Described<StrAttr, "who has it, as the channel names it">:$role);
  let results = (outs Res<Variadic<Attn_TokenType>, "the rights to its parts">:$parts);
  let assemblyFormat = "$channel `,` $token `as` $role attr-dict `:` type($channel) `->` type($parts)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Split; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::OpOperand *getUsedHandle() { return &getTokenMutable(); }
  }];
}

def Attn_ChannelJoinOp : Attn_Op<"channel.join", [AttnRequiresSM<80>, Attn_ChannelUserOpInterface, Pure]> {
  let summary = "makes one right of those to all parts of a slot";
  let description = [{
    Takes the tokens of all parts of a slot that `role` has acquired, and returns
    one for the whole slot, which is released at once, or split into other parts.

    Example:

    ```mlir
    func.func @whole(%s: !attn.channel<1>, %c: !attn.cursor) {
      %i, %front = attn.channel.acquire %s[%c] as "mma" part "front" : !attn.channel<1>
      %j, %back = attn.channel.acquire %s[%c] as "mma" part "back" : !attn.channel<1>
      %t = attn.channel.join %s, %front, %back as "mma" : !attn.channel<1>
      attn.channel.release %s, %t as "mma" : !attn.channel<1>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Attn_ChannelType, "the channel">:$channel,
    Arg<Variadic<Attn_TokenType>, "the rights to all parts, each once">:$parts,
    Described<StrAttr, "who has them, as the channel names it">:$role);
  let results = (outs Res<Attn_TokenType, "the right to the whole slot">:$token);
  let assemblyFormat = "$channel `,` $parts `as` $role attr-dict `:` type($channel)";
  let extraClassDeclaration = [{
    ::mlir::attn::ChannelUse getChannelUse() { return ::mlir::attn::ChannelUse::Join; }
    ::mlir::Value getUsedChannel() { return getChannel(); }
    ::llvm::StringRef getUsedRole() { return getRole(); }
    ::mlir::Value getMadeHandle() { return getToken(); }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_CHANNELOPS_TD
