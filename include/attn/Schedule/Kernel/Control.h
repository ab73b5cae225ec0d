//===- Control.h - Loops and branches that carry by themselves --*- C++ -*-===//
//
// A schedule writes its kernel as a program: it declares variables, assigns
// them in loops and branches, and reads them afterwards. Which of them an
// operation has to carry follows from what its body assigns. Control finds that
// out by a trial: it calls the body once in a place that is erased again, looks
// which variables have another value then, and makes the operation with these.
//
// A body is therefore called more than once, and must not change anything but
// variables and what it declares itself.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SCHEDULE_KERNEL_CONTROL_H
#define ATTN_SCHEDULE_KERNEL_CONTROL_H

#include "attn/Dialect/Attn/IR/Attn.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <array>
#include <functional>
#include <vector>

namespace mlir::attn {

class Control;

/// A variable of the kernel. Copies name the same variable. It lives until the
/// body in which it was declared ends.
class Var {
public:
  /// Declares a variable with the value `init`.
  Var(Control &control, Value init);
  Var(const Var &) = default;

  /// Assigns a value; a copy of another variable's value with `get`.
  Var &operator=(Value value);
  Var &operator=(const Var &other) { return *this = other.get(); }
  /// Returns the value that the variable has where code is made next.
  Value get() const;
  operator Value() const { return get(); }

private:
  Control *control;
  unsigned index;
};

/// Variables that are read and assigned together.
class Vars {
public:
  /// Declares a variable for each of `inits`.
  Vars(Control &control, ValueRange inits);

  /// Returns how many there are, and one of them.
  size_t size() const { return all.size(); }
  Var &operator[](size_t i) { return all[i]; }
  /// Returns the values, in order.
  SmallVector<Value> get() const;
  /// Assigns as many values as there are variables.
  Vars &operator=(ValueRange values);

private:
  std::vector<Var> all;
};

/// A partition of a warp-specialised kernel.
struct Partition {
  StringRef name;
  int64_t warps;
  /// Rows and columns of its grid of warps; 0 by 0 if it has no tiles.
  std::array<int64_t, 2> grid;
  /// Registers that each of its threads asks for.
  int64_t registers;
  std::function<void()> body;
};

/// Makes the loops, branches and partitions of a kernel.
class Control {
public:
  using Body = function_ref<void()>;
  using IndexBody = function_ref<void(Value)>;
  /// Fills the body of an operation, given the index and what it carries.
  using Fill = function_ref<void(OpBuilder &, Location, Value, ValueRange)>;

  /// Makes operations with `b`, whose insertion point bodies move.
  explicit Control(ImplicitLocOpBuilder &b) : b(b) {}

  /// Calls `body` for the indices from `begin` up to `end`, i32, by an scf.for,
  /// and `complete` with that.
  void forRange(Value begin, Value end, IndexBody body,
                function_ref<void(Operation *)> complete = nullptr);
  /// Calls `body` for every `step`th of them.
  void forRange(Value begin, Value end, Value step, IndexBody body,
                function_ref<void(Operation *)> complete = nullptr);
  /// Calls `body` with the index of a loop that `create` makes: it gets the
  /// values that the loop carries and the function that fills its body. The
  /// body's terminator is attn.yield.
  void loop(Type indexType, IndexBody body,
            function_ref<Operation *(ValueRange, Fill)> create);
  /// Calls `body` under `condition`, i1, by an scf.if.
  void ifThen(Value condition, Body body);
  /// Calls `body` under `condition`, and `otherwise` where it is false.
  void ifElse(Value condition, Body body, Body otherwise);
  /// Calls `body` where some element of `condition`, a tile of i1, is true, by
  /// an attn.rare.
  void rarely(Value condition, Body body);
  /// Makes the partitions of the kernel.
  void partitions(ArrayRef<Partition> list);
  /// Calls `body` for one thread of the warp.
  void elect(Body body);
  /// Calls `body` in the CTAs of a cluster whose lowest `bits` bits of the rank
  /// are zeros; without any in the first one.
  void inLeader(Body body, int64_t bits = 0);

  /// Gives up: nothing more is made, and isWhole() is false. The caller has
  /// emitted a diagnostic.
  void fail() { whole = false; }
  bool isWhole() const { return whole; }

  /// The kernel's builder.
  ImplicitLocOpBuilder &b;

private:
  friend class Var;

  /// Calls `body`, and ends the variables that it declares.
  void runScope(Body body);
  /// Calls `body` in the region of an op that carries nothing.
  void fillRegion(Region &region, Body body);
  /// Returns the variables that `body` assigns, and forgets all that it did.
  SmallVector<unsigned> findAssigned(Type indexType, IndexBody body);
  SmallVector<Value> getValues(ArrayRef<unsigned> variables) const;
  void setValues(ArrayRef<unsigned> variables, ValueRange to);
  /// Makes a loop whose body's terminator `yield` makes.
  void makeLoop(Type indexType, IndexBody body,
                function_ref<Operation *(ValueRange, Fill)> create,
                function_ref<void(ValueRange)> yield);

  /// The values of all variables that live.
  std::vector<Value> values;
  /// Where a trial's operations go; null outside of trials.
  Block *trial = nullptr;
  bool whole = true;
};

} // namespace mlir::attn

#endif // ATTN_SCHEDULE_KERNEL_CONTROL_H
