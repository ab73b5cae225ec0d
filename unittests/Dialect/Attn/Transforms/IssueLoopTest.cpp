//===- IssueLoopTest.cpp - The order in which statements are issued -------===//
//
// Loops that attn.issue_loop becomes are run on numbers and compared with what
// the op's description says, step by step.
//
//===----------------------------------------------------------------------===//

#include "attn/Dialect/Attn/IR/Attn.h"
#include "attn/Dialect/Attn/Transforms/Passes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FormatVariadic.h"
#include "gtest/gtest.h"
#include <map>

using namespace mlir;
using namespace mlir::attn;

namespace {

struct Statement {
  std::string name;
  unsigned count;
  int64_t skew;
  std::vector<std::string> uses;
};

/// The loop of the thread that multiplies for two tiles of queries.
struct Order {
  std::vector<Statement> statements = {{"pv0", 0, 1, {"v", "t0"}},
                                       {"qk0", 0, 0, {"k", "t0"}},
                                       {"pv1", 1, 1, {"v", "t1"}},
                                       {"qk1", 1, 0, {"k", "t1"}}};
  std::vector<std::pair<std::string, unsigned>> slots = {
      {"v", 0}, {"k", 0}, {"t0", 1}, {"t1", 2}};
  bool rising = false;

  std::string getText(ArrayRef<int64_t> trips, int64_t tiles, bool known) const;
  /// What the description says.
  std::vector<std::string> getExpected(ArrayRef<int64_t> trips,
                                       int64_t tiles) const;
};

/// Runs a function of loops, arithmetic and channels, and writes down in which
/// order slots are acquired and released, and statements run.
class Runner {
public:
  std::vector<std::string> run(gpu::GPUFuncOp kernel, ArrayRef<int64_t> trips);

private:
  void runBlock(Block &block);
  void runLoop(scf::ForOp loop);
  void runOp(Operation &op);
  void runArithmetic(Operation &op);
  int64_t get(Value value) { return values.lookup(value); }

  llvm::DenseMap<Value, int64_t> values;
  std::vector<std::string> trace;
};

} // namespace

std::string Order::getText(ArrayRef<int64_t> trips, int64_t tiles,
                           bool known) const {
  std::string body;
  for (const Statement &statement : statements) {
    std::string arguments = "%i: i32", uses;
    for (const std::string &slot : statement.uses) {
      arguments += llvm::formatv(", %{0}: i32, %{0}_token: !attn.token", slot);
      uses += llvm::formatv("{0}\"{1}\"", uses.empty() ? "" : ", ", slot);
    }
    body += llvm::formatv(
        "statement \"{0}\" of {1} skew {2} uses [{3}] {{\n^bb0({4}):\n"
        "  \"test.issue\"(%i) {{name = \"{0}\"} : (i32) -> ()\n}\n",
        statement.name, statement.count, statement.skew, uses, arguments);
  }
  std::string list;
  for (const auto &[name, channel] : slots)
    list += llvm::formatv("{0}\"{1}\" = {2}", list.empty() ? "" : ", ", name,
                          channel);
  std::string constants;
  if (known)
    constants = llvm::formatv("%x = arith.constant {0} : i32\n"
                              "%y = arith.constant {1} : i32\n",
                              trips[0], trips[1]);
  return llvm::formatv(
      R"(
!c0 = !attn.channel<3>
!c1 = !attn.channel<1>
gpu.module @kernels {{
  gpu.func @order(%n0: i32, %n1: i32, %c0: !c0, %c1: !c1, %c2: !c1) kernel {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %tiles = arith.constant {0} : i32
    {1}
    %s0 = attn.cursor.start %c0 as "mma" : !c0
    %s1 = attn.cursor.start %c1 as "mma" : !c1
    %s2 = attn.cursor.start %c2 as "mma" : !c1
    %r:3 = scf.for %tile = %zero to %tiles step %one iter_args(%u0 = %s0, %u1 = %s1, %u2 = %s2) -> (!attn.cursor, !attn.cursor, !attn.cursor) : i32 {{
      %l:3 = attn.issue_loop as "mma" trips({2}){3} slots [{4}] of %c0, %c1, %c2 from %u0, %u1, %u2 : !c0, !c1, !c1
      {5}
      scf.yield %l#0, %l#1, %l#2 : !attn.cursor, !attn.cursor, !attn.cursor
    }
    gpu.return
  }
}
)",
      tiles, constants, known ? "%x, %y" : "%n0, %n1", rising ? " rising" : "",
      list, body);
}

std::vector<std::string> Order::getExpected(ArrayRef<int64_t> trips,
                                            int64_t tiles) const {
  std::vector<std::string> expected;
  int64_t positions[3] = {0, 0, 0};
  auto channelOf = [&](const std::string &slot) {
    return llvm::find_if(slots,
                         [&](auto &entry) { return entry.first == slot; })
        ->second;
  };
  for (int64_t tile = 0; tile < tiles; ++tile)
    for (int64_t step = 0; step < 20; ++step) {
      auto runs = [&](const Statement &statement) {
        int64_t i = step - statement.skew;
        return i >= 0 && i < trips[statement.count];
      };
      std::map<std::string, int64_t> held;
      for (size_t s = 0; s < statements.size(); ++s) {
        const Statement &statement = statements[s];
        if (!runs(statement))
          continue;
        for (const std::string &slot : statement.uses)
          if (!held.count(slot)) {
            unsigned channel = channelOf(slot);
            held[slot] = positions[channel]++;
            expected.push_back(
                llvm::formatv("acquire {0} {1}", channel, held[slot]));
          }
        expected.push_back(
            llvm::formatv("{0} {1}", statement.name, step - statement.skew));
        for (const std::string &slot : statement.uses) {
          bool again = false;
          for (size_t other = s + 1; other < statements.size(); ++other)
            again |= runs(statements[other]) &&
                     llvm::is_contained(statements[other].uses, slot);
          if (!again)
            expected.push_back(
                llvm::formatv("release {0} {1}", channelOf(slot), held[slot]));
        }
      }
    }
  return expected;
}

//===----------------------------------------------------------------------===//
// Running loops on numbers
//===----------------------------------------------------------------------===//

std::vector<std::string> Runner::run(gpu::GPUFuncOp kernel,
                                     ArrayRef<int64_t> trips) {
  Block &body = kernel.getBody().front();
  for (auto [argument, value] : llvm::zip(body.getArguments(), trips))
    values[argument] = value;
  // Channels are their numbers.
  for (auto [number, channel] :
       llvm::enumerate(body.getArguments().drop_front(trips.size())))
    values[channel] = number;
  runBlock(body);
  return trace;
}

void Runner::runBlock(Block &block) {
  for (Operation &op : block.without_terminator())
    runOp(op);
}

void Runner::runLoop(scf::ForOp loop) {
  SmallVector<int64_t> carried;
  for (Value init : loop.getInits())
    carried.push_back(get(init));
  int64_t end = get(loop.getUpperBound());
  for (int64_t i = get(loop.getLowerBound()); i < end; ++i) {
    values[loop.getInductionVar()] = i;
    for (auto [argument, value] : llvm::zip(loop.getRegionIterArgs(), carried))
      values[argument] = value;
    runBlock(*loop.getBody());
    carried.clear();
    for (Value value : loop.getBody()->getTerminator()->getOperands())
      carried.push_back(get(value));
  }
  for (auto [result, value] : llvm::zip(loop.getResults(), carried))
    values[result] = value;
}

void Runner::runArithmetic(Operation &op) {
  int64_t a = get(op.getOperand(0)), b = get(op.getOperand(1));
  int64_t result = 0;
  if (isa<arith::AddIOp>(op))
    result = a + b;
  else if (isa<arith::SubIOp>(op))
    result = a - b;
  else if (isa<arith::MaxSIOp>(op))
    result = std::max(a, b);
  else if (isa<arith::MinSIOp>(op))
    result = std::min(a, b);
  else
    ADD_FAILURE() << "no rule for " << op.getName().getStringRef().str();
  values[op.getResult(0)] = result;
}

void Runner::runOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantIntOp>(op)) {
    values[constant.getResult()] = constant.value();
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    runLoop(loop);
  } else if (isa<CursorStartOp>(op)) {
    values[op.getResult(0)] = 0;
  } else if (auto advance = dyn_cast<CursorAdvanceOp>(op)) {
    values[advance.getResult()] = get(advance.getCursor()) + 1;
  } else if (auto acquire = dyn_cast<ChannelAcquireOp>(op)) {
    int64_t position = get(acquire.getCursor());
    values[acquire.getIndex()] = values[acquire.getToken()] = position;
    trace.push_back(
        llvm::formatv("acquire {0} {1}", get(acquire.getChannel()), position));
  } else if (auto release = dyn_cast<ChannelReleaseOp>(op)) {
    trace.push_back(llvm::formatv("release {0} {1}", get(release.getChannel()),
                                  get(release.getToken())));
  } else if (op.getName().getStringRef() == "test.issue") {
    trace.push_back(llvm::formatv(
        "{0} {1}", op.getAttrOfType<StringAttr>("name").getValue(),
        get(op.getOperand(0))));
  } else {
    runArithmetic(op);
  }
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

/// Expands the loop and runs it for each pair of trips and number of tiles.
static void checkOrder(const Order &order, bool known) {
  DialectRegistry registry;
  registerAttnDialect(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.allowUnregisteredDialects();
  for (int64_t n0 = 0; n0 <= 5; ++n0)
    for (int64_t n1 = order.rising ? n0 : 0; n1 <= 5; ++n1)
      for (int64_t tiles = 1; tiles <= 3; ++tiles) {
        SCOPED_TRACE(
            llvm::formatv("{0} and {1} trips, {2} tiles", n0, n1, tiles).str());
        OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(
            order.getText({n0, n1}, tiles, known), &context);
        ASSERT_TRUE(module);
        PassManager passes(&context);
        passes.nest<gpu::GPUModuleOp>().addPass(createAttnExpandPipelinePass());
        ASSERT_TRUE(succeeded(passes.run(*module)));
        gpu::GPUFuncOp kernel;
        module->walk([&](gpu::GPUFuncOp op) { kernel = op; });
        EXPECT_EQ(Runner().run(kernel, {n0, n1}),
                  order.getExpected({n0, n1}, tiles));
      }
}

TEST(IssueLoopTest, TwoTiles) { checkOrder(Order(), /*known=*/false); }

TEST(IssueLoopTest, KnownTrips) { checkOrder(Order(), /*known=*/true); }

TEST(IssueLoopTest, Rising) {
  Order order;
  order.rising = true;
  checkOrder(order, /*known=*/false);
}

TEST(IssueLoopTest, OneCount) {
  Order order;
  for (Statement &statement : order.statements)
    statement.count = 1;
  checkOrder(order, /*known=*/false);
}

// Skews that are no neighbours, and a statement that trails one of other trips.
TEST(IssueLoopTest, LargeSkews) {
  Order order;
  order.statements = {
      {"a", 0, 3, {"v", "t0"}}, {"b", 1, 0, {"k"}}, {"c", 0, 1, {"v", "t1"}}};
  checkOrder(order, /*known=*/false);
}

TEST(IssueLoopTest, Loads) {
  Order order;
  order.statements = {{"v", 0, 1, {"v"}}, {"k", 0, 0, {"k"}}};
  checkOrder(order, /*known=*/false);
}
