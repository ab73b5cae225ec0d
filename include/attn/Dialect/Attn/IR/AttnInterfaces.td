//===- AttnInterfaces.td - Interfaces and traits ------------*- tablegen -*-===//

#ifndef ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
#define ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD

include "mlir/IR/OpBase.td"

def Attn_ArchOpInterface : OpInterface<"ArchOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that does not exist on all chips. `attn::verifyArch` holds it against
    the `#attn.target` of the enclosing gpu.module.
  }];
  let methods = [
    InterfaceMethod<
      "Returns the least compute capability that has the op, 80 for sm_80.",
      "int", "getMinimumSM">,
  ];
}

/// The implementation of Attn_ArchOpInterface by a constant.
class Attn_MinimumSM<int sm>
    : ParamNativeOpTrait<"AttnRequiresSM", !cast<string>(sm)> {
  let cppNamespace = "::mlir::attn";
}

/// Trait: the op needs at least compute capability `sm` (80 for sm_80). An op
/// some of whose forms need more has
/// DeclareOpInterfaceMethods<Attn_ArchOpInterface> instead.
class AttnRequiresSM<int sm>
    : TraitList<[Attn_ArchOpInterface, Attn_MinimumSM<sm>]>;

/// Trait: all threads of a warp come to the op together, as to a barrier or a
/// vote. `attn.elect` holds none of these; `attn::takesWholeWarps` knows more.
def Attn_TakesWholeWarps : NativeOpTrait<"TakesWholeWarps"> {
  let cppNamespace = "::mlir::attn";
}

def Attn_ArithmeticOpInterface : OpInterface<"ArithmeticOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that stands for arithmetic. It has no effects, and its results are the same
    wherever its operands are. `attn-expand-arithmetic` puts the arithmetic in its
    place.
  }];
  let methods = [
    InterfaceMethod<[{
      Emits the arithmetic before the op. Returns a value for each result.
    }], "::llvm::SmallVector<::mlir::Value>", "emitArithmetic",
      (ins "::mlir::ImplicitLocOpBuilder &":$builder)>,
  ];
}

def Attn_AsyncOpInterface : OpInterface<"AsyncOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that starts accesses to shared or tensor memory which end later, closes a group of
    them, or waits for groups. Its accesses are those that
    `MemoryEffectOpInterface` states for its operands; an op that only closes or
    waits has none.
  }];
  let methods = [
    InterfaceMethod<"Returns what carries out the accesses.",
      "const ::mlir::attn::AsyncEngine &", "getAsyncEngine">,
    InterfaceMethod<[{
      True if the op closes a group: its own accesses, and those that the
      executing thread started since the last group, end together.
    }], "bool", "closesGroup", (ins), "", "return false;">,
    InterfaceMethod<[{
      If the op waits: how many of the youngest groups it leaves pending. All
      others have ended behind it.
    }], "::std::optional<int64_t>", "getAwaitedGroups", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<[{
      True if each warpgroup touches its own part of the operand's rows only, the
      first warpgroup the first part.
    }], "bool", "touchesOwnRows", (ins "::mlir::OpOperand &":$operand), "",
      "return false;">,
  ];
}

/// The implementation of getAsyncEngine by a row of AsyncEngine.h.
class Attn_AsyncBy<string engine>
    : ParamNativeOpTrait<"AttnAsyncBy", "&" # engine> {
  let cppNamespace = "::mlir::attn";
}

/// Trait: the op's accesses are carried out by `engine`. What else the op has to
/// say of Attn_AsyncOpInterface stands in its class.
class AttnAsync<string engine>
    : TraitList<[Attn_AsyncOpInterface, Attn_AsyncBy<engine>]>;

def Attn_CommitOpInterface : OpInterface<"CommitOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A signal that comes when the asynchronous accesses that the executing thread
    has started through one engine are complete: an mbarrier gets an arrival of
    each thread that executes it. Commits of a thread arrive in the order of their
    ops.
  }];
  let methods = [
    InterfaceMethod<"Returns what carries out the accesses.",
      "const ::mlir::attn::AsyncEngine &", "getCommittedEngine">,
    InterfaceMethod<"Returns the barriers and the index of the one that is signalled.",
      "::std::pair<::mlir::Value, ::mlir::Value>", "getCommitBarrier">,
    InterfaceMethod<[{
      Returns the number of CTAs of the cluster in which that barrier is signalled;
      one is the own CTA.
    }], "int64_t", "countCommitCTAs", (ins), "", "return 1;">,
    InterfaceMethod<"Returns the arrivals of a warp that executes it.",
      "int64_t", "countCommitArrivals", (ins), "", "return 1;">,
    InterfaceMethod<"Returns which CTAs of the cluster these are.",
      "::mlir::attn::SignalMask", "getCommitTargets", (ins), "",
      "return ::mlir::attn::SignalMask::own();">,
  ];
}

def Attn_TensorGroupOpInterface : OpInterface<"TensorGroupOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op of the tensor core that a CTA executes for itself or for both CTAs of a
    pair, whose ranks in the cluster are 2n and 2n + 1. All of a kernel are of one kind
    (PTX ISA, .cta_group of tcgen05).
  }];
  let methods = [
    InterfaceMethod<"Returns true if the op is of both CTAs of a pair.",
      "bool", "isOfPair", (ins), "", "return $_op.getPair();">,
    InterfaceMethod<"Makes the op one of both CTAs of a pair.", "void",
      "setOfPair", (ins), "", "$_op.setPair(true);">,
    InterfaceMethod<"Returns true if the op takes a kernel's tensor memory.",
      "bool", "takesMemory", (ins), "", "return false;">,
    InterfaceMethod<"Returns true if the op gives a kernel's tensor memory back.",
      "bool", "givesMemoryBack", (ins), "", "return false;">,
  ];
}

def Attn_ElementOpInterface : OpInterface<"ElementOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that reads or writes one element of a buffer of rank 1 by which threads
    tell each other an integer.
  }];
  let methods = [
    InterfaceMethod<"Returns the element's index, an i32.", "::mlir::Value",
      "getElementIndex", (ins), "", "return $_op.getIndex();">,
    InterfaceMethod<"Returns the integer that a write tells; null for a read.",
      "::mlir::Value", "getToldInteger", (ins), "", "return {};">,
    InterfaceMethod<"Returns the integer that a read is told; null for a write.",
      "::mlir::Value", "getHeardInteger", (ins), "", "return {};">,
  ];
}

def Attn_ChannelUserOpInterface : OpInterface<"ChannelUserOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op that acts on a channel: which one, in which role, and how. An op with
    an operand of a channel, a cursor or a token has to answer, unless it only
    passes the cursor or token on. `attn-lower-channels` replaces starts,
    advances, acquires and releases; fills stay and get an mbarrier.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns what the op does. An op that can do without a channel may answer
      `None`.
    }], "::mlir::attn::ChannelUse", "getChannelUse">,
    InterfaceMethod<[{
      Returns the channel, where an operand names it; a fill's follows from its
      token.
    }], "::mlir::Value", "getUsedChannel", (ins), "", "return {};">,
    InterfaceMethod<[{
      Returns the role that a start, an acquire or a release names.
    }], "::llvm::StringRef", "getUsedRole", (ins), "", "return {};">,
    InterfaceMethod<[{
      Returns the operand with the cursor that an advance or an acquire takes, or
      the token of a release or a fill; null for others.
    }], "::mlir::OpOperand *", "getUsedHandle", (ins), "", "return nullptr;">,
    InterfaceMethod<[{
      Returns the cursor that a start or an advance makes, or the token of an
      acquire; null for others.
    }], "::mlir::Value", "getMadeHandle", (ins), "", "return {};">,
    InterfaceMethod<"Returns the i32 result of an acquire that is the slot's index.",
      "::mlir::Value", "getSlotIndex", (ins), "", "return {};">,
    InterfaceMethod<"Returns the part of the slot that an acquire names, if it does.",
      "::std::optional<::llvm::StringRef>", "getUsedPart", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<[{
      True if an acquire takes in each warpgroup the part of its number.
    }], "bool", "usesOwnParts", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns how many bytes of a fill the slot counts, in each CTA that gets
      them.
    }], "int64_t", "getFilledBytes", (ins), "", "return 0;">,
    InterfaceMethod<[{
      Returns the number of CTAs that get a fill's bytes, if the op says so; else
      they are those that the role's signal goes to, of which `setFillBarrier`
      hears.
    }], "::std::optional<int64_t>", "getFilledCTAs", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<[{
      Returns the barriers and the index of the one that counts a fill's bytes,
      once `setFillBarrier` has named them; null before, and for others.
    }], "::std::pair<::mlir::Value, ::mlir::Value>", "getFillBarrier", (ins), "",
      "return {};">,
    InterfaceMethod<[{
      Returns the index and the value that a fill of a single element writes; null
      for fills of whole slots. The value is null for a fill that takes a tile.
    }], "::std::pair<::mlir::Value, ::mlir::Value>", "getFilledElement", (ins),
      "", "return {};">,
    InterfaceMethod<[{
      Returns true for a fill of a single element with the number of a tile that
      nobody has had yet, or with what says that there is none.
    }], "bool", "takesTile", (ins), "", "return false;">,
    InterfaceMethod<[{
      True for a fill by which the two CTAs of a cluster exchange tiles: all warps
      of a partition start it, each with an equal part of the bytes, and it goes to
      the other CTA.
    }], "bool", "isExchange", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns true if a fill of the own slot can count its bytes at the barrier of the
      cluster's leader.
    }], "bool", "canFillAtLeader", (ins), "", "return false;">,
    InterfaceMethod<[{
      Returns true if a fill of the own slot counts its bytes at the barrier of the
      cluster's leader.
    }], "bool", "isFilledAtLeader", (ins), "", "return false;">,
    InterfaceMethod<[{
      Lets a fill of the own slot count its bytes at the barrier of the cluster's
      leader, once `setFillBarrier` has named it.
    }], "void", "setFilledAtLeader", (ins), "",
      "llvm_unreachable(\"a fill says whether it can count at the leader\");">,
    InterfaceMethod<[{
      Returns the CTAs whose slots and barriers a fill goes to.
    }], "::mlir::attn::SignalMask", "getFillTargets", (ins), "",
      [{ return $_op.getFilledCTAs().value_or(1) == 1
                    ? ::mlir::attn::SignalMask::own()
                    : ::mlir::attn::SignalMask::all(); }]>,
    InterfaceMethod<[{
      Makes barrier `index` of `barriers` count a fill's bytes in place of the
      token's slot, in all of `ctas` CTAs of the cluster if that is not null.
    }], "void", "setFillBarrier",
      (ins "::mlir::Value":$barriers, "::mlir::Value":$index,
           "::mlir::IntegerAttr":$ctas), "",
      "llvm_unreachable(\"a fill says how it gets its barrier\");">,
  ];
}

def Attn_BulkCopyOpInterface : OpInterface<"BulkCopyOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op on a tensor map: a copy of boxes between the tensor and shared memory,
    or one that does not look at the box, such as a hint. A user of a map that is
    neither has to be taken for one that needs the box as it is.
  }];
  let methods = [
    InterfaceMethod<"Returns the tensor map.", "::mlir::Value", "getMap">,
    InterfaceMethod<[{
      Returns the buffer that boxes fill or come from; null if none is copied.
    }], "::mlir::Value", "getCopiedBuffer", (ins), "", "return {};">,
    InterfaceMethod<"True if the buffer is the destination.", "bool",
      "isBulkLoad", (ins), "", "return false;">,
    InterfaceMethod<"Returns the first element, one index for each dimension.",
      "::mlir::OperandRange", "getBoxStart", (ins), "",
      "return $_op->getOperands().take_front(0);">,
    InterfaceMethod<[{
      Returns how many boxes of the map lie one below the other in the buffer,
      all from this CTA.
    }], "int64_t", "getStackedBoxes", (ins), "", "return 1;">,
    InterfaceMethod<[{
      True for a load that the CTAs of a cluster may share, each bringing a part
      of the rows to all of them.
    }], "bool", "canMulticast", (ins), "", "return false;">,
    InterfaceMethod<"Returns the number of CTAs that share the load, if they do.",
      "::std::optional<int64_t>", "getMulticastCTAs", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<[{
      Returns the bits of the ranks in which the CTAs that share the load differ.
    }], "uint32_t", "getMulticastBits", (ins), "", "return ~uint32_t(0);">,
    InterfaceMethod<[{
      Makes `ctas` CTAs share the load, whose ranks differ in `bits`, in all if it is
      null; only if `canMulticast`.
    }], "void", "setMulticastCTAs",
      (ins "int64_t":$ctas, "::mlir::IntegerAttr":$bits), "",
      "llvm_unreachable(\"a load that can be a multicast becomes one\");">,
  ];
  let extraSharedClassDeclaration = [{
    /// Bytes of the buffer that is copied.
    int64_t getCopiedBytes() {
      auto type = ::llvm::cast<::mlir::attn::BufferType>(
          $_op.getCopiedBuffer().getType());
      return ::mlir::ShapedType::getNumElements(type.getShape()) *
             type.getElementType().getIntOrFloatBitWidth() / 8;
    }
  }];
}

def Attn_ProductOpInterface : OpInterface<"ProductOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A matrix product a (M x K) times b (K x N), to which an accumulator may be
    added. The product is a result in registers, or is written to a buffer.
  }];
  let methods = [
    InterfaceMethod<"Returns the first factor, M x K.", "::mlir::Value", "getA">,
    InterfaceMethod<[{
      Returns the first of the columns of a that are contracted and how many are;
      none if the op does not say.
    }], "::std::optional<::std::pair<int64_t, int64_t>>", "getContracted", (ins), "",
      "return ::std::nullopt;">,
    InterfaceMethod<"Returns the second factor, K x N.", "::mlir::Value", "getB">,
    InterfaceMethod<[{
      Returns what the product is added to; null if nothing. A product that adds
      to its buffer returns that.
    }], "::mlir::Value", "getAccumulator">,
    InterfaceMethod<[{
      Returns the value that holds the product: a result, or the buffer.
    }], "::mlir::Value", "getProduct">,
    InterfaceMethod<"Returns when the product may be read.",
      "::mlir::attn::ProductCompletion", "getCompletion">,
    InterfaceMethod<[{
      Returns how many elements of K an instruction takes: what K is a multiple
      of.
    }], "int64_t", "getDepthStep">,
    InterfaceMethod<[{
      Returns the number of warpgroups that share the M rows, each a part of its
      own, the first one the first part; 0 if rows are dealt in another way.
    }], "int64_t", "getWarpgroups", (ins), "", "return 0;">,
    InterfaceMethod<[{
      True if `limitColumns` and `limitDepth` can leave a part of the factors out.
    }], "bool", "hasLimits", (ins), "", "return false;">,
    InterfaceMethod<[{
      Makes the product one with the first `columns` columns of b. The type of
      what holds it is the caller's business.
    }], "void", "limitColumns", (ins "int64_t":$columns), "",
      "llvm_unreachable(\"a product with limits sets them\");">,
    InterfaceMethod<[{
      Makes the contraction go over the first `depth` columns of a and rows of b.
    }], "void", "limitDepth", (ins "int64_t":$depth), "",
      "llvm_unreachable(\"a product with limits sets them\");">,
    InterfaceMethod<[{
      True if a single warp can compute its rows of the same product anew, by an
      instruction of its own.
    }], "bool", "canRepeatInWarp", (ins), "", "return false;">,
    InterfaceMethod<[{
      Makes that product, without the accumulator, as a tile of type `tile`.
    }], "::mlir::Value", "repeatInWarp",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::RankedTensorType":$tile), "",
      "llvm_unreachable(\"a product that can be repeated is\");">,
  ];
}

def Attn_ProductWaitOpInterface : OpInterface<"ProductWaitOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A wait for products in flight: takes accumulators in flight and returns them
    as tiles, one result for each operand. How many groups it leaves pending
    says `getAwaitedGroups` of `AsyncOpInterface`.
  }];
  let methods = [
    InterfaceMethod<"Returns the accumulators in flight.",
      "::mlir::OperandRange", "getAwaited", (ins), "",
      "return $_op->getOperands();">,
    InterfaceMethod<"Makes it leave `groups` groups pending, the youngest ones.",
      "void", "setPendingGroups", (ins "int64_t":$groups)>,
    InterfaceMethod<[{
      Makes an accumulator in flight of `tile`, one that nothing is pending of,
      as an operand for a wait of this kind.
    }], "::mlir::Value", "resume",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Location":$loc,
           "::mlir::Value":$tile)>,
    InterfaceMethod<[{
      True if the warps of a warpgroup have to execute it together.
    }], "bool", "isOfWarpgroup", (ins), "", "return true;">,
  ];
}

def Attn_LayoutOpInterface : OpInterface<"LayoutOpInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    An op on register tiles that fixes layouts, or whose tiles have related ones.
    `attn-infer-layouts` asks it. `accumulator` is the layout of a product's result
    in the warps that hold the op's tiles. Elementwise ops of other dialects need
    none of this.
  }];
  let methods = [
    InterfaceMethod<"Adds the pairs of tiles whose layouts are related.",
      "void", "getLayoutLinks",
      (ins "::llvm::SmallVectorImpl<::mlir::attn::LayoutLink> &":$links), "",
      "return;">,
    InterfaceMethod<[{
      Adds the tiles whose layouts the op gives or wants, while they are
      `#attn.auto`.
    }], "void", "getLayoutAnchors",
      (ins "::mlir::attn::MmaLayoutAttr":$accumulator,
           "::llvm::SmallVectorImpl<::mlir::attn::LayoutAnchor> &":$anchors), "",
      "return;">,
    InterfaceMethod<[{
      Returns the layout that an operand has to have now that the results have
      theirs, or null if any will do.
    }], "::mlir::Attribute", "getOperandLayout",
      (ins "::mlir::OpOperand &":$operand,
           "::mlir::attn::MmaLayoutAttr":$accumulator), "", "return {};">,
    InterfaceMethod<[{
      True if all tiles have the layout of the result, as those of ops with the
      trait `ElementwiseMappable` have.
    }], "bool", "isElementwiseOnTiles", (ins), "", "return false;">,
  ];
}

def Attn_TileLayoutInterface : AttrInterface<"TileLayoutAttrInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A layout of a register tile: which thread holds which element in which
    register.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the layout of a tile of `shape` with elements of `elementBits`
      bits, or an error that says why this layout cannot hold such a tile.
    }], "::llvm::Expected<::mlir::attn::TileLayout>", "toTileLayout",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "unsigned":$elementBits)>,
  ];
}

def Attn_BufferLayoutInterface : AttrInterface<"BufferLayoutAttrInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A layout of a buffer in shared memory, at which offset each element lies, or in
    tensor memory, in which lane and column. A layout answers one of the two
    methods. Shapes are those of one slot; a leading ring dimension is not part of
    it.
  }];
  let methods = [
    InterfaceMethod<[{
      Returns the layout of a slot of `shape` with elements of `elementBits`
      bits, or an error that says why this layout cannot hold such a slot.
    }], "::llvm::Expected<::mlir::attn::SharedLayout>", "toSharedLayout",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "unsigned":$elementBits), "", [{
      return ::llvm::createStringError(
          "expected a layout of shared memory, got one of tensor memory");
    }]>,
    InterfaceMethod<"Returns the same of a slot in tensor memory.",
      "::llvm::Expected<::mlir::attn::TensorMemoryLayout>",
      "toTensorMemoryLayout",
      (ins "::llvm::ArrayRef<int64_t>":$shape, "unsigned":$elementBits), "", [{
      return ::llvm::createStringError(
          "expected a layout of tensor memory, got one of shared memory");
    }]>,
  ];
}

def Attn_PlanInterface : AttrInterface<"PlanAttrInterface"> {
  let cppNamespace = "::mlir::attn";
  let description = [{
    A plan: the name of a schedule and the value of each of its parameters.
    Attributes that derive from `Attn_Plan` (PlanBase.td) define `getThreads`
    only.
  }];
  let methods = [
    InterfaceMethod<"Returns the registered name of the schedule.",
      "::llvm::StringRef", "getSchedule", (ins)>,
    InterfaceMethod<"Returns the number of threads of a CTA.",
      "int64_t", "getThreads", (ins)>,
    InterfaceMethod<"Returns the name of the kernel; empty for the problem's.",
      "::llvm::StringRef", "getKernelName", (ins)>,
    InterfaceMethod<[{
      Returns the parameters in the order in which they print, with this plan's
      values.
    }], "::std::vector<::mlir::attn::PlanParameterInfo>", "listParameters",
      (ins)>,
    InterfaceMethod<[{
      Returns the plan with parameters replaced, which together may be right
      where one by one they are not; null after a diagnostic of `emitError`.
    }], "::mlir::attn::PlanAttrInterface", "withParameters",
      (ins "::llvm::function_ref<::mlir::InFlightDiagnostic()>":$emitError,
           "::llvm::ArrayRef<::mlir::attn::PlanParameter>":$parameters)>,
  ];
}

#endif // ATTN_DIALECT_ATTN_IR_ATTNINTERFACES_TD
