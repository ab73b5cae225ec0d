//===- ControlTest.cpp - What loops and branches carry --------------------===//

#include "../../../lib/Schedule/Kernel/Pipe.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

/// A function with the arguments %arg0 to %arg2, i32, and %arg3, i1. Its body
/// is what a test makes by `control`.
class ControlTest : public ::testing::Test {
protected:
  ControlTest()
      : context(makeRegistry()), b(UnknownLoc::get(&context), &context),
        module(ModuleOp::create(b.getLoc())), control(b) {
    context.loadAllAvailableDialects();
    b.setInsertionPointToStart(module->getBody());
    Type i32 = b.getI32Type();
    auto type = b.getFunctionType({i32, i32, i32, b.getI1Type()}, {});
    func = func::FuncOp::create(b, "f", type);
    b.setInsertionPointToStart(func.addEntryBlock());
  }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registry.insert<arith::ArithDialect, AttnDialect, func::FuncDialect,
                    scf::SCFDialect>();
    return registry;
  }
  Value arg(unsigned i) { return func.getArgument(i); }
  Value add(Value x, Value y) { return arith::AddIOp::create(b, x, y); }
  /// Makes a channel from the role "load" to the role "rows", which hands slots
  /// on in `parts`.
  Value makeChannel(ArrayRef<StringRef> parts) {
    Builder &plain = b;
    auto role = [&](StringRef name, ArrayRef<StringRef> parts) {
      return RoleAttr::get(&context, name, SignalKind::Arrive,
                           {plain.getStringAttr(name)},
                           llvm::map_to_vector(parts, [&](StringRef part) {
                             return plain.getStringAttr(part);
                           }));
    };
    return ChannelCreateOp::create(
        b, ChannelType::get(&context, /*stages=*/2), b.getStringAttr("c"),
        b.getArrayAttr({role("load", parts), role("rows", {})}));
  }
  /// Ends the function and returns what its body prints.
  std::string print() {
    func::ReturnOp::create(b);
    EXPECT_TRUE(succeeded(verify(*module)));
    std::string text;
    llvm::raw_string_ostream os(text);
    for (Operation &op : func.getBody().front())
      os << op << "\n";
    return text;
  }

  MLIRContext context;
  ImplicitLocOpBuilder b;
  OwningOpRef<ModuleOp> module;
  func::FuncOp func;
  Control control;
};

} // namespace

TEST_F(ControlTest, LoopsCarryWhatTheyAssignInOrderOfDeclaration) {
  Var x(control, arg(0)), kept(control, arg(1)), y(control, arg(2));
  control.forRange(arg(0), arg(1), [&](Value index) {
    y = add(y, kept);
    x = add(x, index);
  });
  add(x, y);
  EXPECT_EQ(print(), R"mlir(%c1_i32 = arith.constant 1 : i32
%0:2 = scf.for %arg4 = %arg0 to %arg1 step %c1_i32 iter_args(%arg5 = %arg0, %arg6 = %arg2) -> (i32, i32)  : i32 {
  %2 = arith.addi %arg6, %arg1 : i32
  %3 = arith.addi %arg5, %arg4 : i32
  scf.yield %3, %2 : i32, i32
}
%1 = arith.addi %0#0, %0#1 : i32
func.return
)mlir");
}

TEST_F(ControlTest, NestedBodiesCarryWhatIsAssignedWithinThem) {
  Var x(control, arg(0)), y(control, arg(2));
  control.forRange(arg(0), arg(1), [&](Value outer) {
    control.forRange(arg(0), outer, [&](Value inner) {
      control.ifThen(arg(3), [&] { y = add(y, inner); });
    });
    x = add(x, y);
  });
  add(x, y);
  EXPECT_EQ(print(), R"mlir(%c1_i32 = arith.constant 1 : i32
%0:2 = scf.for %arg4 = %arg0 to %arg1 step %c1_i32 iter_args(%arg5 = %arg0, %arg6 = %arg2) -> (i32, i32)  : i32 {
  %c1_i32_0 = arith.constant 1 : i32
  %2 = scf.for %arg7 = %arg0 to %arg4 step %c1_i32_0 iter_args(%arg8 = %arg6) -> (i32)  : i32 {
    %4 = scf.if %arg3 -> (i32) {
      %5 = arith.addi %arg8, %arg7 : i32
      scf.yield %5 : i32
    } else {
      scf.yield %arg8 : i32
    }
    scf.yield %4 : i32
  }
  %3 = arith.addi %arg5, %2 : i32
  scf.yield %3, %2 : i32, i32
}
%1 = arith.addi %0#0, %0#1 : i32
func.return
)mlir");
}

TEST_F(ControlTest, BranchesKeepWhatOnlyTheyAssign) {
  Var x(control, arg(0)), y(control, arg(1));
  control.ifThen(arg(3), [&] { y = add(x, y); });
  control.ifThen(arg(3), [&] { add(x, y); });
  EXPECT_EQ(print(), R"mlir(%0 = scf.if %arg3 -> (i32) {
  %1 = arith.addi %arg0, %arg1 : i32
  scf.yield %1 : i32
} else {
  scf.yield %arg1 : i32
}
scf.if %arg3 {
  %1 = arith.addi %arg0, %0 : i32
}
func.return
)mlir");
}

TEST_F(ControlTest, BothBranchesStartFromTheSameValues) {
  Var x(control, arg(0)), y(control, arg(1));
  control.ifElse(
      arg(3), [&] { x = add(x, y); },
      [&] {
        control.forRange(arg(0), arg(2), /*step=*/arg(1),
                         [&](Value index) { y = add(x, index); });
      });
  add(x, y);
  control.ifElse(arg(3), [] {}, [&] { add(x, y); });
  EXPECT_EQ(print(), R"mlir(%0:2 = scf.if %arg3 -> (i32, i32) {
  %2 = arith.addi %arg0, %arg1 : i32
  scf.yield %2, %arg1 : i32, i32
} else {
  %2 = scf.for %arg4 = %arg0 to %arg2 step %arg1 iter_args(%arg5 = %arg1) -> (i32)  : i32 {
    %3 = arith.addi %arg0, %arg4 : i32
    scf.yield %3 : i32
  }
  scf.yield %arg0, %2 : i32, i32
}
%1 = arith.addi %0#0, %0#1 : i32
scf.if %arg3 {
} else {
  %2 = arith.addi %0#0, %0#1 : i32
}
func.return
)mlir");
}

TEST_F(ControlTest, RarePathsKeepWhatOnlyTheyAssign) {
  Var x(control, arg(0)), y(control, arg(1));
  auto type = RankedTensorType::get({8}, b.getI1Type());
  Value some = arith::ConstantOp::create(b, DenseElementsAttr::get(type, true));
  control.rarely(some, [&] { x = add(x, y); });
  add(x, y);
  EXPECT_EQ(print(), R"mlir(%cst = arith.constant dense<true> : tensor<8xi1>
%0 = attn.rare any %cst default(%arg0 : i32) : tensor<8xi1> {
  %2 = arith.addi %arg0, %arg1 : i32
  attn.yield %2 : i32
}
%1 = arith.addi %0, %arg1 : i32
func.return
)mlir");
}

TEST_F(ControlTest, VariablesOfABodyEndWithIt) {
  Var x(control, arg(0));
  control.forRange(arg(0), arg(1), [&](Value index) {
    Var local(control, index);
    control.ifThen(arg(3), [&] { local = add(local, x); });
    x = local;
  });
  Var y(control, x);
  add(x, y);
  EXPECT_EQ(print(), R"mlir(%c1_i32 = arith.constant 1 : i32
%0 = scf.for %arg4 = %arg0 to %arg1 step %c1_i32 iter_args(%arg5 = %arg0) -> (i32)  : i32 {
  %2 = scf.if %arg3 -> (i32) {
    %3 = arith.addi %arg4, %arg5 : i32
    scf.yield %3 : i32
  } else {
    scf.yield %arg4 : i32
  }
  scf.yield %2 : i32
}
%1 = arith.addi %0, %0 : i32
func.return
)mlir");
}

TEST_F(ControlTest, NothingIsMadeAfterAFailure) {
  Var x(control, arg(0));
  unsigned calls = 0;
  control.forRange(arg(0), arg(1), [&](Value) {
    ++calls;
    x = add(x, x);
    control.fail();
  });
  control.ifThen(arg(3), [&] { ++calls; });
  control.forRange(arg(0), arg(1), [&](Value) { ++calls; });
  EXPECT_FALSE(control.isWhole());
  EXPECT_EQ(calls, 1u);
  EXPECT_EQ(print(), "func.return\n");
}

TEST_F(ControlTest, PipesOwnTheirCursors) {
  Value channel = makeChannel(/*parts=*/{});
  Pipe pipe(control, channel, "rows");
  control.forRange(arg(0), arg(1), [&](Value) {
    Slot slot = pipe.acquire();
    slot.release();
    pipe.advance();
  });
  pipe.acquireParts().release();
  EXPECT_EQ(
      print(),
      R"mlir(%c_channel = attn.channel.create {name = "c", roles = [#attn.role<"load", arrive>, #attn.role<"rows", arrive>]} : <2>
%c_cursor = attn.cursor.start %c_channel as "rows" : <2>
%c1_i32 = arith.constant 1 : i32
%0 = scf.for %arg4 = %arg0 to %arg1 step %c1_i32 iter_args(%arg5 = %c_cursor) -> (!attn.cursor)  : i32 {
  %c_index_0, %c_token_1 = attn.channel.acquire %c_channel[%arg5] as "rows" : <2>
  attn.channel.release %c_channel, %c_token_1 as "rows" : <2>
  %c_next = attn.cursor.advance %arg5 on %c_channel : <2>
  scf.yield %c_next : !attn.cursor
}
%c_index, %c_token = attn.channel.acquire %c_channel[%0] as "rows" {each_warpgroup} : <2>
attn.channel.release %c_channel, %c_token as "rows" : <2>
func.return
)mlir");
}

TEST_F(ControlTest, RolesHandSlotsOnInParts) {
  Pipe pipe(control, makeChannel({"front", "back"}), "load");
  Slot slot = pipe.acquire();
  auto [front, back] = slot.split<2>();
  front.release();
  back.release();
  EXPECT_EQ(front.getIndex(), slot.getIndex());
  EXPECT_EQ(
      print(),
      R"mlir(%c_channel = attn.channel.create {name = "c", roles = [#attn.role<"load", arrive, parts = ["front", "back"]>, #attn.role<"rows", arrive>]} : <2>
%c_cursor = attn.cursor.start %c_channel as "load" : <2>
%c_index, %c_token = attn.channel.acquire %c_channel[%c_cursor] as "load" : <2>
%0:2 = attn.channel.split %c_channel, %c_token as "load" : <2> -> !attn.token, !attn.token
attn.channel.release %c_channel, %0#0 as "load" : <2>
attn.channel.release %c_channel, %0#1 as "load" : <2>
func.return
)mlir");
}

TEST_F(ControlTest, RolesTakeSlotsInParts) {
  Pipe pipe(control, makeChannel({"front", "back"}), "rows");
  Slot front = pipe.acquire("front"), back = pipe.acquire("back");
  Slot whole = Slot::join({front, back});
  whole.release();
  EXPECT_EQ(whole.getIndex(), front.getIndex());
  EXPECT_EQ(
      print(),
      R"mlir(%c_channel = attn.channel.create {name = "c", roles = [#attn.role<"load", arrive, parts = ["front", "back"]>, #attn.role<"rows", arrive>]} : <2>
%c_cursor = attn.cursor.start %c_channel as "rows" : <2>
%c_index, %c_token = attn.channel.acquire %c_channel[%c_cursor] as "rows" part "front" : <2>
%c_index_0, %c_token_1 = attn.channel.acquire %c_channel[%c_cursor] as "rows" part "back" : <2>
%0 = attn.channel.join %c_channel, %c_token, %c_token_1 as "rows" : <2>
attn.channel.release %c_channel, %0 as "rows" : <2>
func.return
)mlir");
}

TEST_F(ControlTest, LoopsCarryHeldSlots) {
  Pipe pipe(control, makeChannel(/*parts=*/{}), "rows");
  HeldSlot held(control, pipe.take());
  Operation *made = nullptr;
  control.forRange(
      arg(0), arg(1),
      [&](Value) {
        Slot next = pipe.take();
        held.release();
        held = next;
      },
      [&](Operation *loop) { made = loop; });
  held.release();
  ASSERT_TRUE(made);
  made->setAttr("made", b.getUnitAttr());
  EXPECT_EQ(
      print(),
      R"mlir(%c_channel = attn.channel.create {name = "c", roles = [#attn.role<"load", arrive>, #attn.role<"rows", arrive>]} : <2>
%c_cursor = attn.cursor.start %c_channel as "rows" : <2>
%c_index, %c_token = attn.channel.acquire %c_channel[%c_cursor] as "rows" : <2>
%c_next = attn.cursor.advance %c_cursor on %c_channel : <2>
%c1_i32 = arith.constant 1 : i32
%0:2 = scf.for %arg4 = %arg0 to %arg1 step %c1_i32 iter_args(%arg5 = %c_next, %arg6 = %c_token) -> (!attn.cursor, !attn.token)  : i32 {
  %c_index_0, %c_token_1 = attn.channel.acquire %c_channel[%arg5] as "rows" : <2>
  %c_next_2 = attn.cursor.advance %arg5 on %c_channel : <2>
  attn.channel.release %c_channel, %arg6 as "rows" : <2>
  scf.yield %c_next_2, %c_token_1 : !attn.cursor, !attn.token
} {made}
attn.channel.release %c_channel, %0#1 as "rows" : <2>
func.return
)mlir");
}
