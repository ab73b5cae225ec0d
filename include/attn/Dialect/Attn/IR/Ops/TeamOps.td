//===- TeamOps.td - Teams of a CTA's warps ------------------*- tablegen -*-===//
//
// A kernel with `attn.teams = T` has T warps, each a team that runs the kernel's
// body by itself: its register tiles are its own, and so is what `attn.alloc`
// makes, which stands for one buffer in each team. Nothing in the body waits for
// another team but the ops of this file that say so.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_DIALECT_ATTN_IR_OPS_TEAMOPS_TD
#define ATTN_DIALECT_ATTN_IR_OPS_TEAMOPS_TD

include "attn/Dialect/Attn/IR/AttnAttrs.td"
include "attn/Dialect/Attn/IR/AttnTypes.td"
include "attn/Dialect/Attn/IR/AttnInterfaces.td"
include "attn/Dialect/Attn/IR/OpGroups.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

let opDocGroup = Attn_PartitionGroup in {

def Attn_TeamIndexOp : Attn_Op<"team_index", [AttnRequiresSM<80>, Pure]> {
  let summary = "the number of a thread's team";
  let description = [{
    Counts from 0. In a kernel without `attn.teams` the CTA is one team. A kernel
    with that attribute has as many teams of one warp each, which run its body
    without waiting for each other: register tiles are a team's own, and so is the
    buffer that an `attn.alloc` makes in each team. All threads of a team take the
    same way in a branch on the number.

    Example:

    ```mlir
    func.func @index() -> i32 attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64} {
      %t = attn.team_index
      return %t : i32
    }
    ```
  }];
  let results = (outs Res<I32, "the number">:$result);
  let assemblyFormat = "attr-dict";
}

def Attn_TeamBarrierOp : Attn_Op<"team_barrier", [AttnRequiresSM<80>,
    Attn_TakesWholeWarps,
    MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "waits for all threads of a team";
  let description = [{
    As `gpu.barrier`, for the threads of one team (`attn.team_index`): what they
    did to shared memory before it is seen by all of them behind it. Put in by
    `attn-insert-fences`.

    Example:

    ```mlir
    func.func @wait() attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64} {
      attn.team_barrier
      return
    }
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Attn_TeamTakeOp : Attn_Op<"team_take", [AttnRequiresSM<80>,
    RangedTypesMatchWith<"results have the tiles' types", "tiles", "results",
      "$_self">,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>]> {
  let summary = "takes over tiles of teams further on";
  let description = [{
    Team t below `from` gets the tiles of team t + `from`, if there is one; all
    others keep their own. The teams that give write their registers to `buffer`,
    f32 elements of which there are 32 for each register of the tiles; those that
    take read the giver's. All teams of the CTA meet in between.

    Undefined behaviour: threads of the CTA that do not come to it; a team that
    touches the bytes of its `buffer` before the next barrier of the CTA although
    it gave.

    Example:

    ```mlir
    func.func @halve(%x: tensor<16x8xf32, #attn.mma<warps = [1, 1]>>, %b: !attn.buffer<128xf32, #attn.rows, shared>) attributes {attn.warps = array<i64: 1, 1>, attn.teams = 4 : i64} {
      %y = attn.team_take %x via %b from 2 : tensor<16x8xf32, #attn.mma<warps = [1, 1]>> via <128xf32, #attn.rows, shared>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<AnyRankedTensor>, "the team's own tiles, f32">:$tiles,
    Arg<Attn_BufferType, "the registers of the teams that give", [MemRead, MemWrite]>:$buffer,
    Described<I64Attr, "how many teams take, and how far away each one's giver is">:$from);
  let results = (outs Res<Variadic<AnyRankedTensor>, "the tiles that the team goes on with">:$results);
  let assemblyFormat = [{
    $tiles `via` $buffer `from` $from attr-dict `:` type($tiles) `via` type($buffer)
  }];
  let hasVerifier = 1;
}

def Attn_TeamShareOp : Attn_Op<"team_share", [AttnRequiresSM<80>,
    DeclareOpInterfaceMethods<Attn_LayoutOpInterface, ["getLayoutLinks"]>]> {
  let summary = "divides the tiles of all teams by their columns";
  let description = [{
    Each of T teams gets, of every team's tiles, its own columns: with C columns team t
    gets C / T of them from t C / T on. Of tiles that have rows only it gets the whole.
    Results are what it gets of the tiles of team 0, then of those of team 1, up to the
    last one. All teams write their registers to `buffer`, f32 elements of which there
    are 32 for each register of the tiles, meet, and read each other's.

    Undefined behaviour: threads of the CTA that do not come to it; a team that
    touches the bytes of its `buffer` before the next barrier of the CTA.

    Example:

    ```mlir
    func.func @divide(%x: tensor<16x32xf32, #attn.mma<warps = [1, 1]>>, %b: !attn.buffer<512xf32, #attn.rows, shared>) attributes {attn.warps = array<i64: 1, 1>, attn.teams = 2 : i64} {
      %y:2 = attn.team_share %x via %b : tensor<16x32xf32, #attn.mma<warps = [1, 1]>> via <512xf32, #attn.rows, shared> -> tensor<16x16xf32, #attn.mma<warps = [1, 1]>>, tensor<16x16xf32, #attn.mma<warps = [1, 1]>>
      return
    }
    ```
  }];
  let arguments = (ins
    Arg<Variadic<AnyRankedTensor>, "the team's own tiles, f32">:$tiles,
    Arg<Attn_BufferType, "the registers of all teams", [MemRead, MemWrite]>:$buffer);
  let results = (outs Res<Variadic<AnyRankedTensor>, "the team's part of all teams' tiles">:$results);
  let assemblyFormat = [{
    $tiles `via` $buffer attr-dict `:` type($tiles) `via` type($buffer) `->` type($results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// How many teams the results are of.
    int64_t countTeams() {
      return getTiles().empty() ? 0 : getResults().size() / getTiles().size();
    }
  }];
}

} // let opDocGroup

#endif // ATTN_DIALECT_ATTN_IR_OPS_TEAMOPS_TD
