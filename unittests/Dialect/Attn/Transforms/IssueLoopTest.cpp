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

/// The same where last iterations are left to the next tile. Tiles have the
/// first and the second number of trips in turns, or with two numbers of trips
/// both, in turns the other way round. Behind them stands a loop without trips.
struct RotatedOrder {
  struct Rotated : Statement {
    std::vector<std::string> ends = {};
  };
  std::vector<Rotated> statements = {{{"pv0", 0, 1, {"v", "t0"}}, {"o0"}},
                                     {{"qk0", 0, 0, {"k", "t0"}}},
                                     {{"pv1", 0, 1, {"v", "t1"}}, {"o1"}},
                                     {{"qk1", 0, 0, {"k", "t1"}}}};
  std::vector<std::pair<std::string, unsigned>> slots = {
      {"v", 0},  {"k", 0},  {"t0", 1}, {"t1", 2},
      {"o0", 3}, {"o1", 4}, {"q0", 5}, {"q1", 5}};
  unsigned counts = 1;
  /// Slots that span iterations, and from which statement to which.
  std::vector<std::array<std::string, 3>> spans;
  /// The slot that is held, and behind which statement it is released.
  std::string held, behind;

  unsigned channelOf(const std::string &slot) const {
    return llvm::find_if(slots,
                         [&](auto &entry) { return entry.first == slot; })
        ->second;
  }
  int64_t getTrips(ArrayRef<int64_t> trips, int64_t tile,
                   unsigned count) const {
    return trips[(tile + count) % 2];
  }
  std::string getText(int64_t tiles) const;
  std::vector<std::string> getExpected(ArrayRef<int64_t> trips,
                                       int64_t tiles) const;
};

/// What a tile's steps do, in the words of the op's description.
class RotatedTile {
public:
  RotatedTile(const RotatedOrder &order, std::vector<std::string> &trace,
              std::vector<int64_t> &positions)
      : order(order), trace(trace), positions(positions) {}
  /// Trips of this tile and of the one before, whose number is one less.
  void run(ArrayRef<int64_t> own, ArrayRef<int64_t> left, int64_t tile);

private:
  using Statement = RotatedOrder::Rotated;
  struct Turn {
    const Statement *statement;
    int64_t iteration, tile;
    bool isLast;
  };
  void acquire(const std::string &slot, std::map<std::string, int64_t> &into) {
    unsigned channel = order.channelOf(slot);
    into[slot] = positions[channel]++;
    trace.push_back(llvm::formatv("acquire {0} {1}", channel, into[slot]));
  }
  void release(const std::string &slot, std::map<std::string, int64_t> &from) {
    trace.push_back(
        llvm::formatv("release {0} {1}", order.channelOf(slot), from[slot]));
    from.erase(slot);
  }
  std::vector<Turn> getTurns(int64_t step, ArrayRef<int64_t> own,
                             ArrayRef<int64_t> left, int64_t tile) const;
  void runStep(ArrayRef<Turn> turns, bool opens, bool closes);

  const RotatedOrder &order;
  std::vector<std::string> &trace;
  std::vector<int64_t> &positions;
  /// Positions of what spans iterations and of what is held.
  std::map<std::string, int64_t> spanned, kept;
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
  void runBranch(scf::IfOp branch);
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

static std::string quoteAll(const std::vector<std::string> &names) {
  std::string list;
  for (const std::string &name : names)
    list += llvm::formatv("{0}\"{1}\"", list.empty() ? "" : ", ", name);
  return list;
}

std::string RotatedOrder::getText(int64_t tiles) const {
  std::string body;
  for (const Rotated &statement : statements) {
    std::string arguments = "%i: i32";
    for (const std::string &slot : statement.uses)
      arguments += llvm::formatv(", %{0}: i32, %{0}_token: !attn.token", slot);
    std::string ends;
    if (!statement.ends.empty())
      ends = llvm::formatv("ends [{0}] ", quoteAll(statement.ends));
    body += llvm::formatv(
        "statement \"{0}\" of {1} skew {2} uses [{3}] {4}{{\n"
        "^bb0({5}, %tile: i32):\n"
        "  \"test.issue\"(%i, %tile) {{name = \"{0}\"} : (i32, i32) -> ()\n"
        "}\n",
        statement.name, statement.count, statement.skew,
        quoteAll(statement.uses), ends, arguments);
  }
  std::string list, extra, text;
  for (const auto &[name, channel] : slots)
    list += llvm::formatv("{0}\"{1}\" = {2}", list.empty() ? "" : ", ", name,
                          channel);
  if (!held.empty())
    extra += llvm::formatv(" holding \"{0}\" behind \"{1}\"", held, behind);
  for (const auto &[slot, first, last] : spans)
    extra += llvm::formatv("{0} \"{1}\" from \"{2}\" to \"{3}\"",
                           slot == spans.front()[0] ? " spanning" : ",", slot,
                           first, last);
  std::string cursors = "%s0, %s1, %s2, %s3, %s4, %s5";
  auto listTrips = [&](int64_t tile) -> std::string {
    if (tile < 0 || tile == tiles)
      return counts == 2 ? "%zero, %zero" : "%zero";
    std::string first = tile % 2 ? "%n1" : "%n0",
                second = tile % 2 ? "%n0" : "%n1";
    return counts == 2 ? first + ", " + second : first;
  };
  for (int64_t tile = 0; tile <= tiles; ++tile) {
    text += llvm::formatv(
        "%x{0} = arith.constant {0} : i32\n"
        "%l{0}:6 = attn.issue_loop as \"mma\" trips({1}) left({2}) "
        "values(%x{0}) left({3}) : i32 slots [{4}] of %c0, %c1, %c2, %c3, %c4, "
        "%c5 from {5}{6} : !c0, !c1, !c1, !c1, !c1, !c0\n{7}\n",
        tile, listTrips(tile), listTrips(tile - 1),
        tile == 0 ? "%zero" : llvm::formatv("%x{0}", tile - 1).str(), list,
        cursors, extra, body);
    cursors = llvm::formatv(
        "%l{0}#0, %l{0}#1, %l{0}#2, %l{0}#3, %l{0}#4, %l{0}#5", tile);
  }
  std::string starts;
  for (int64_t channel = 0; channel < 6; ++channel)
    starts +=
        llvm::formatv("%s{0} = attn.cursor.start %c{0} as \"mma\" : !c{1}\n",
                      channel, channel == 0 || channel == 5 ? 0 : 1);
  return llvm::formatv(R"(
!c0 = !attn.channel<3>
!c1 = !attn.channel<1>
gpu.module @kernels {{
  gpu.func @order(%n0: i32, %n1: i32, %c0: !c0, %c1: !c1, %c2: !c1, %c3: !c1, %c4: !c1, %c5: !c0) kernel {{
    %zero = arith.constant 0 : i32
    {0}
    {1}
    gpu.return
  }
}
)",
                       starts, text);
}

std::vector<RotatedTile::Turn> RotatedTile::getTurns(int64_t step,
                                                     ArrayRef<int64_t> own,
                                                     ArrayRef<int64_t> left,
                                                     int64_t tile) const {
  std::vector<Turn> turns;
  for (const Statement &statement : order.statements) {
    int64_t trips = own[statement.count], before = left[statement.count];
    if (step == 0 && statement.skew == 1 && before > 0)
      turns.push_back({&statement, before - 1, tile - 1, true});
    if (step < trips && step >= statement.skew)
      turns.push_back({&statement, step - statement.skew, tile, false});
  }
  return turns;
}

void RotatedTile::runStep(ArrayRef<Turn> turns, bool opens, bool closes) {
  std::map<std::string, int64_t> held;
  for (size_t turn = 0; turn < turns.size(); ++turn) {
    const Statement &statement = *turns[turn].statement;
    for (const auto &[slot, first, last] : order.spans)
      if (opens && first == statement.name)
        acquire(slot, spanned);
    for (const std::string &slot : statement.uses)
      if (!held.count(slot))
        acquire(slot, held);
    std::map<std::string, int64_t> ended;
    if (turns[turn].isLast)
      for (const std::string &slot : statement.ends)
        acquire(slot, ended);
    trace.push_back(llvm::formatv("{0} {1} of {2}", statement.name,
                                  turns[turn].iteration, turns[turn].tile));
    if (turns[turn].isLast)
      for (const std::string &slot : statement.ends)
        release(slot, ended);
    if (order.behind == statement.name && !kept.empty())
      release(order.held, kept);
    for (const std::string &slot : statement.uses) {
      bool again = false;
      for (size_t other = turn + 1; other < turns.size(); ++other)
        again |= llvm::is_contained(turns[other].statement->uses, slot);
      if (again)
        continue;
      if (slot == order.held)
        kept[slot] = held[slot];
      else
        release(slot, held);
    }
    for (const auto &[slot, first, last] : order.spans)
      if (closes && last == statement.name)
        release(slot, spanned);
  }
}

void RotatedTile::run(ArrayRef<int64_t> own, ArrayRef<int64_t> left,
                      int64_t tile) {
  int64_t steps = std::max(int64_t(1), *llvm::max_element(own));
  for (int64_t step = 0; step < steps; ++step)
    runStep(getTurns(step, own, left, tile), step == 0,
            step > 0 && step + 1 == steps);
  for (const auto &span : order.spans)
    if (spanned.count(span[0]))
      release(span[0], spanned);
  if (!kept.empty())
    release(order.held, kept);
}

std::vector<std::string> RotatedOrder::getExpected(ArrayRef<int64_t> trips,
                                                   int64_t tiles) const {
  std::vector<std::string> trace;
  std::vector<int64_t> positions(6, 0), before(counts, 0);
  for (int64_t tile = 0; tile <= tiles; ++tile) {
    std::vector<int64_t> own(counts, 0);
    if (tile < tiles)
      for (unsigned count = 0; count < counts; ++count)
        own[count] = getTrips(trips, tile, count);
    RotatedTile(*this, trace, positions).run(own, before, tile);
    before = own;
  }
  return trace;
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

void Runner::runBranch(scf::IfOp branch) {
  Region &region = get(branch.getCondition()) ? branch.getThenRegion()
                                              : branch.getElseRegion();
  runBlock(region.front());
  for (auto [result, value] : llvm::zip(
           branch.getResults(), region.front().getTerminator()->getOperands()))
    values[result] = get(value);
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
  else if (auto compare = dyn_cast<arith::CmpIOp>(op);
           compare && compare.getPredicate() == arith::CmpIPredicate::sgt)
    result = a > b;
  else
    ADD_FAILURE() << "no rule for " << op.getName().getStringRef().str();
  values[op.getResult(0)] = result;
}

void Runner::runOp(Operation &op) {
  if (auto constant = dyn_cast<arith::ConstantIntOp>(op)) {
    values[constant.getResult()] = constant.value();
  } else if (auto loop = dyn_cast<scf::ForOp>(op)) {
    runLoop(loop);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    runBranch(branch);
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
    std::string text = llvm::formatv(
        "{0} {1}", op.getAttrOfType<StringAttr>("name").getValue(),
        get(op.getOperand(0)));
    if (op.getNumOperands() == 2)
      text += llvm::formatv(" of {0}", get(op.getOperand(1)));
    trace.push_back(text);
  } else {
    runArithmetic(op);
  }
}

//===----------------------------------------------------------------------===//
// Tests
//===----------------------------------------------------------------------===//

/// Expands the loops of a text and runs them.
static std::vector<std::string> runText(MLIRContext &context,
                                        const std::string &text,
                                        ArrayRef<int64_t> trips) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return {"no module"};
  PassManager passes(&context);
  passes.nest<gpu::GPUModuleOp>().addPass(createAttnExpandPipelinePass());
  if (failed(passes.run(*module)))
    return {"not expanded"};
  gpu::GPUFuncOp kernel;
  module->walk([&](gpu::GPUFuncOp op) { kernel = op; });
  return Runner().run(kernel, trips);
}

/// Calls `check` for each pair of trips and number of tiles.
static void
forTrips(bool rising,
         function_ref<void(MLIRContext &, ArrayRef<int64_t>, int64_t)> check) {
  DialectRegistry registry;
  registerAttnDialect(registry);
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  context.allowUnregisteredDialects();
  for (int64_t n0 = 0; n0 <= 5; ++n0)
    for (int64_t n1 = rising ? n0 : 0; n1 <= 5; ++n1)
      for (int64_t tiles = 1; tiles <= 3; ++tiles) {
        SCOPED_TRACE(
            llvm::formatv("{0} and {1} trips, {2} tiles", n0, n1, tiles).str());
        check(context, {n0, n1}, tiles);
      }
}

static void checkOrder(const Order &order, bool known) {
  forTrips(order.rising, [&](MLIRContext &context, ArrayRef<int64_t> trips,
                             int64_t tiles) {
    EXPECT_EQ(runText(context, order.getText(trips, tiles, known), trips),
              order.getExpected(trips, tiles));
  });
}

static void checkRotated(const RotatedOrder &order) {
  forTrips(/*rising=*/false,
           [&](MLIRContext &context, ArrayRef<int64_t> trips, int64_t tiles) {
             EXPECT_EQ(runText(context, order.getText(tiles), trips),
                       order.getExpected(trips, tiles));
           });
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

TEST(IssueLoopTest, Rotated) { checkRotated(RotatedOrder()); }

TEST(IssueLoopTest, RotatedTwoCounts) {
  RotatedOrder order;
  order.counts = 2;
  order.statements[2].count = order.statements[3].count = 1;
  checkRotated(order);
}

// Queries of a tile that are handed back behind its own last scores, and keys
// that are held for a step.
TEST(IssueLoopTest, RotatedSpans) {
  RotatedOrder order;
  order.spans = {{"q0", "qk0", "qk0"}, {"q1", "qk1", "qk1"}};
  checkRotated(order);
  order.held = "k";
  order.behind = "pv0";
  checkRotated(order);
  order.spans = {{"q0", "qk0", "qk0"}, {"q1", "qk0", "qk1"}};
  checkRotated(order);
  order.spans = {};
  checkRotated(order);
}

// Scores in front of results, as where probabilities have columns of their own.
TEST(IssueLoopTest, RotatedScoresFirst) {
  RotatedOrder order;
  std::swap(order.statements[0], order.statements[1]);
  std::swap(order.statements[1], order.statements[2]);
  std::swap(order.statements[1], order.statements[3]);
  std::swap(order.statements[2], order.statements[3]);
  order.spans = {{"q0", "qk0", "qk0"}, {"q1", "qk1", "qk1"}};
  checkRotated(order);
}
