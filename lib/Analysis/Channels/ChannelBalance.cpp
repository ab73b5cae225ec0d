//===- ChannelBalance.cpp - As many acquires of all roles -----------------===//

#include "ChannelBalance.h"
#include "mlir/IR/AsmState.h"

using namespace mlir;
using namespace mlir::attn;
using StepKind = ChannelStep::Kind;

/// What the partitions acquire, the first acquire of each place.
static void collect(const std::vector<ChannelStep> &steps, unsigned partition,
                    std::vector<AcquireCount> &counts) {
  for (const ChannelStep &step : steps) {
    bool isNew = llvm::none_of(counts, [&](const AcquireCount &known) {
      return known.partition == partition &&
             known.place.channel == step.place.channel &&
             known.place.role == step.place.role &&
             known.place.parts == step.place.parts;
    });
    if (step.kind == StepKind::Acquire && isNew)
      counts.push_back({partition, step.place, step.op});
    collect(step.body, partition, counts);
    collect(step.otherwise, partition, counts);
  }
}

static int64_t countEvents(const TileSample &tile, const AcquireCount &of) {
  return llvm::count_if(tile.events[of.partition],
                        [&](const ChannelEvent &event) {
                          const ChannelStep &step = *event.step;
                          return step.kind == StepKind::Acquire &&
                                 step.place.channel == of.place.channel &&
                                 step.place.role == of.place.role &&
                                 step.place.parts == of.place.parts;
                        });
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

namespace {

/// Prints numbers of acquires as the kernel computes them.
class CountPrinter {
public:
  explicit CountPrinter(const ChannelProgram &program, Operation *kernel)
      : program(program), state(kernel) {}

  std::string print(const AcquireCount &of) {
    return print(program.partitions[of.partition].tile, of);
  }
  /// Such as ", where %n is 1" with the values of what was printed.
  std::string printValues(TermValues &values);

private:
  std::string print(const std::vector<ChannelStep> &steps,
                    const AcquireCount &of);
  std::string print(TermId term);

  const ChannelProgram &program;
  AsmState state;
  SmallVector<std::pair<std::string, TermId>> printed;
};

} // namespace

std::string CountPrinter::print(TermId id) {
  return printTerm(program.terms, id, [&](const Term &term) {
    std::string name;
    llvm::raw_string_ostream os(name);
    Value(term.origin).printAsOperand(os, state);
    TermId known = &term - &program.terms[0];
    if (!llvm::is_contained(printed, std::pair(name, known)))
      printed.push_back({name, known});
    return name;
  });
}

std::string CountPrinter::printValues(TermValues &values) {
  std::string text;
  for (auto &[name, term] : printed)
    if (auto value = values.get(term))
      text += (text.empty() ? ", where " : ", ") + name + " is " +
              std::to_string(*value);
  return text;
}

std::string CountPrinter::print(const std::vector<ChannelStep> &steps,
                                const AcquireCount &of) {
  int64_t constant = 0;
  std::string sum;
  auto add = [&](const std::string &text) {
    sum += (sum.empty() ? "" : " + ") + text;
  };
  for (const ChannelStep &step : steps) {
    if (step.kind == StepKind::Acquire &&
        step.place.channel == of.place.channel &&
        step.place.role == of.place.role &&
        step.place.parts == of.place.parts) {
      ++constant;
      continue;
    }
    std::string body = print(step.body, of);
    std::string otherwise = print(step.otherwise, of);
    if (body == "0" && otherwise == "0")
      continue;
    if (step.kind == StepKind::Loop) {
      std::string trips = print(step.upper), first = print(step.lower);
      if (first.find(' ') != std::string::npos && first.front() != 'm')
        first = "(" + first + ")";
      if (first != "0")
        trips = "(" + trips + " - " + first + ")";
      if (std::string by = print(step.step); by != "1")
        trips = "ceil(" + trips + " / " + by + ")";
      else if (body != "1" && first == "0")
        trips = "(" + trips + ")";
      if (body.find(' ') != std::string::npos)
        body = "(" + body + ")";
      add(body == "1" ? trips : trips + " * " + body);
    } else {
      add("(" + print(step.condition) + " ? " + body + " : " + otherwise + ")");
    }
  }
  if (constant != 0 || sum.empty())
    sum = std::to_string(constant) + (sum.empty() ? "" : " + ") + sum;
  return sum;
}

/// Such as "role 'producer' in partition 'load'".
static std::string describe(const ChannelProgram &program,
                            const AcquireCount &of) {
  ChannelCreateOp channel = program.getChannel(of.place.channel);
  return "role '" + channel.getRole(of.place.role).getName().str() + "' in " +
         ChannelProgram::describe(program.partitions[of.partition]);
}

//===----------------------------------------------------------------------===//
// The check
//===----------------------------------------------------------------------===//

/// The smallest tile in which two numbers differ.
static TileSample *findDifference(std::vector<KernelSample> &kernels,
                                  const AcquireCount &a,
                                  const AcquireCount &b) {
  TileSample *smallest = nullptr;
  int64_t least = 0;
  for (KernelSample &kernel : kernels)
    for (TileSample &tile : kernel.tiles) {
      int64_t first = countEvents(tile, a), second = countEvents(tile, b);
      if (first == second || (smallest && first + second >= least))
        continue;
      smallest = &tile;
      least = first + second;
    }
  return smallest;
}

static void compare(ChannelProgram &program, std::vector<KernelSample> &kernels,
                    const AcquireCount &a, const AcquireCount &b,
                    ChannelReport &report) {
  TileSample *different = findDifference(kernels, a, b);
  bool takesSigns = false;
  if (!different && haveEqualCounts(program, a, b, takesSigns)) {
    ++report.balances;
    report.takenSigns += takesSigns;
    return;
  }
  ChannelCreateOp channel = program.getChannel(a.place.channel);
  CountPrinter printer(program, channel->getParentOfType<gpu::GPUFuncOp>());
  std::string ofA = printer.print(a), ofB = printer.print(b);
  std::string place =
      (" slots of channel '" + channel.getName() + "' per tile").str();
  std::string both = ofA + " as " + describe(program, a) + " and " + ofB +
                     " as " + describe(program, b);
  if (!different) {
    if (!report.unsupported)
      report.unsupported = {a.op, "cannot show that roles acquire equal "
                                  "numbers of" +
                                      place + ": " + both};
    return;
  }
  report.witness.emplace();
  report.witness->fault = ChannelFault::Balance;
  report.witness->what = {
      b.op, "expected roles to acquire equal numbers of" + place + ", got " +
                both + ": " + std::to_string(countEvents(*different, a)) +
                " and " + std::to_string(countEvents(*different, b)) +
                printer.printValues(different->values)};
  report.witness->notes.push_back({a.op, "the other role acquires here"});
}

void attn::checkBalance(ChannelProgram &program,
                        std::vector<KernelSample> &kernels,
                        ChannelReport &report) {
  std::vector<AcquireCount> counts;
  for (auto [index, partition] : llvm::enumerate(program.partitions))
    collect(partition.tile, index, counts);
  for (unsigned channel = 0; channel < program.getNumChannels(); ++channel) {
    SmallVector<AcquireCount> ofChannel;
    llvm::copy_if(counts, std::back_inserter(ofChannel),
                  [&](const AcquireCount &count) {
                    return count.place.channel == channel;
                  });
    // Nobody uses the channel.
    if (ofChannel.empty())
      continue;
    // The first role comes first, and is what others are compared with.
    llvm::sort(ofChannel, [](const AcquireCount &a, const AcquireCount &b) {
      return std::tuple(a.place.role, a.partition, a.place.parts) <
             std::tuple(b.place.role, b.partition, b.place.parts);
    });
    for (const AcquireCount &count : llvm::drop_begin(ofChannel)) {
      compare(program, kernels, ofChannel.front(), count, report);
      if (report.witness)
        return;
    }
  }
}
