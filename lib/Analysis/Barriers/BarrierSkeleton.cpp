//===- BarrierSkeleton.cpp - What a proof says each warp does -------------===//
//
// The steps of each warp in a run as a launch has it, in the words in which the
// simulator describes what the PTX does (lib/Simulator/Machine/SyncNotes.cpp).
//
//===----------------------------------------------------------------------===//

#include "BarrierMachine.h"
#include "attn/Analysis/Barriers/BarrierCheck.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace mlir::attn;
using namespace mlir::attn::barriers;

/// The elected thread among those of a warp.
static constexpr uint32_t kElected = 1;
static constexpr int64_t kThreads = 32;

std::string Machine::placeOf(const Warp &warp, const Step &step) const {
  const BarrierArray &array = program->arrays[step.array];
  return llvm::formatv("+{0}",
                       array.offset + kBarrierBytes * warp.values[step.index]);
}

void Machine::addNote(const Warp &warp, SyncStep::Kind kind, std::string text,
                      int64_t amount) {
  SyncStep note;
  note.kind = kind;
  note.threads = isElected(warp) ? kElected : ~0u;
  note.text = std::move(text);
  note.amount = amount;
  note.place = warp.pc;
  (*notes)[&warp - warps.data()].push_back(std::move(note));
}

/// Accesses of its own that the warp makes by a step.
void Machine::noteAccesses(Warp &warp, const Step &step) {
  for (uint32_t number = step.first; number < step.last; ++number) {
    const AccessInfo &info = program->accesses[number];
    int64_t base = 0;
    if (info.footprint.isTensor() || !findBase(warp, info, base))
      continue;
    uint16_t part = getPart(warp, info);
    addNote(warp, SyncStep::Access,
            info.footprint.isWrite() ? "write" : "read");
    for (ByteRange range : info.footprint.parts[part])
      (*notes)[&warp - warps.data()].back().bytes.push_back(
          {base + range.begin, base + range.end});
  }
}

/// The threads of a warp that send elements of a tile: of those that hold
/// copies of one the first.
static uint32_t findSenders(Operation *op) {
  for (Type type : op->getOperandTypes()) {
    auto tile = dyn_cast<RankedTensorType>(type);
    if (!tile)
      continue;
    llvm::Expected<TileLayout> layout = getTileLayout(tile);
    if (!layout) {
      llvm::consumeError(layout.takeError());
      continue;
    }
    uint32_t senders = 0;
    for (unsigned lane = 0; lane < kThreads; ++lane)
      if ((lane & layout->laneBroadcastMask()) == 0)
        senders |= 1u << lane;
    return senders;
  }
  return ~0u;
}

/// Bytes that the warp starts to bring. Words are sent to each CTA by
/// themselves, and elements of a tile by each thread its own.
void Machine::noteFill(Warp &warp, const Step &step) {
  uint32_t senders = step.flag ? findSenders(step.op) : ~0u;
  int64_t bytes = step.value * (step.args.empty() ? 1 : step.ctas);
  addNote(warp, SyncStep::Work, "load " + placeOf(warp, step),
          bytes / (step.flag ? llvm::popcount(senders) : 1));
  (*notes)[&warp - warps.data()].back().threads &= senders;
}

/// A barrier of warps, as `meetAt` and `takeTurn` come to it.
void Machine::noteMeeting(Warp &warp, const Step &step) {
  int64_t own = warp.inPartition / 4, id = step.value;
  int64_t threads = 256;
  bool waits = true;
  switch (step.code) {
  case Code::ClusterBarrier:
    return addNote(warp, SyncStep::Event, "cluster");
  case Code::CtaBarrier:
    id = 0;
    threads = 32 * program->warps;
    break;
  case Code::NamedBarrier:
    id = step.index == kNoSlot ? int64_t(step.first) : warp.values[step.index];
    id += step.flag ? own : 0;
    threads = step.value;
    break;
  default:
    if (step.times < 2 ||
        (step.code == Code::TurnStart && own != step.times - 1))
      return;
    waits = step.code == Code::TurnTake;
    id += waits                          ? own
          : step.code == Code::TurnStart ? 0
                                         : (own + 1) % step.times;
    break;
  }
  addNote(warp, SyncStep::Event,
          llvm::formatv("{0} {1} {2}", waits ? "barrier" : "barrier.arrive", id,
                        threads));
}

/// A signal to mbarriers of one or all CTAs.
void Machine::noteSignal(Warp &warp, const Step &step) {
  bool isExpect = step.code == Code::Expect;
  if (isExpect && (warp.cta & step.where.getClear()) != 0)
    return;
  if (!isExpect && !step.isElected)
    addNote(warp, SyncStep::Order, "warp");
  uint32_t number = 0;
  step.forEachTarget(warp.cta, program->cluster, [&](uint32_t cta) {
    std::string text =
        llvm::formatv("{0} {1}@{2}", isExpect ? "expect" : "arrive",
                      placeOf(warp, step), cta);
    if (isExpect)
      text += llvm::formatv(" {0}", step.value);
    addNote(warp, SyncStep::Event, std::move(text));
    // Thread n arrives in the CTA of number n for its warp, the first one in
    // its own.
    if (!isExpect && !step.isElected)
      (*notes)[&warp - warps.data()].back().threads =
          step.ctas > 1 ? 1u << number : kElected;
    ++number;
    return true;
  });
}

/// Words for the groups of an engine, by its number.
static const char *const kStarts[] = {"copy", "product", "store", "tensor.load",
                                      "tensor.store"};

void Machine::noteGroups(Warp &warp, const Step &step) {
  bool isOfTensor = step.dim >= kFirstTensorEngine;
  if (step.code == Code::Await)
    return addNote(warp, SyncStep::Event,
                   llvm::formatv("await {0} {1}", step.dim, step.value));
  if (step.code == Code::Issue)
    addNote(warp, SyncStep::Work, kStarts[step.dim]);
  if (!isOfTensor && (step.code == Code::Commit || step.flag))
    addNote(warp, SyncStep::Event, llvm::formatv("commit {0}", step.dim));
}

void Machine::note(Warp &warp, const Step &step) {
  const BarrierArray *array =
      program->arrays.empty() ? nullptr : &program->arrays[step.array];
  switch (step.code) {
  case Code::Init:
  case Code::Inval:
    for (uint32_t i = 0; i < array->count; ++i)
      addNote(
          warp, SyncStep::Event,
          step.code == Code::Init
              ? llvm::formatv("init +{0} {1}",
                              array->offset + kBarrierBytes * i, step.value)
                    .str()
              : llvm::formatv("inval +{0}", array->offset + kBarrierBytes * i)
                    .str());
    break;
  case Code::Expect:
  case Code::Arrive:
    noteSignal(warp, step);
    break;
  case Code::Wait:
    addNote(warp, SyncStep::Event,
            llvm::formatv("wait {0} {1}", placeOf(warp, step),
                          warp.values[step.args[0]] & 1));
    break;
  case Code::CtaBarrier:
  case Code::NamedBarrier:
  case Code::ClusterBarrier:
  case Code::TurnStart:
  case Code::TurnTake:
  case Code::TurnPass:
    noteMeeting(warp, step);
    break;
  case Code::WarpBarrier:
    addNote(warp, SyncStep::Order, "warp");
    break;
  case Code::FenceProxy:
    addNote(warp, SyncStep::Order, "fence.proxy");
    break;
  case Code::FenceTensor:
    addNote(warp, SyncStep::Order,
            step.flag ? "tensor.after" : "tensor.before");
    break;
  case Code::TakeTensor:
    if (warp.local != 0)
      break;
    noteAccesses(warp, step);
    addNote(warp, SyncStep::Event, "take");
    break;
  case Code::LeaveTensor:
    if (warp.local == 0)
      addNote(warp, SyncStep::Event, "leave");
    break;
  case Code::Access:
    noteAccesses(warp, step);
    break;
  case Code::Fill:
    noteFill(warp, step);
    break;
  case Code::Issue:
  case Code::Commit:
  case Code::Await:
    noteGroups(warp, step);
    break;
  case Code::Product:
    addNote(warp, SyncStep::Work, "tensor.product");
    break;
  case Code::Signal:
    addNote(warp, SyncStep::Event, "signal " + placeOf(warp, step));
    break;
  case Code::RareBegin:
    addNote(warp, SyncStep::RareBegin, "rare");
    break;
  case Code::RareEnd:
    addNote(warp, SyncStep::RareEnd, "rare end");
    break;
  default:
    break;
  }
}

/// An op with the place where it stands.
static std::string describe(Operation *op) {
  std::string text = op->getName().getStringRef().str();
  if (auto place = op->getLoc()->findInstanceOf<FileLineColLoc>())
    text += llvm::formatv(" ({0}:{1})", place.getFilename().getValue(),
                          place.getLine());
  return text;
}

SyncSkeleton attn::recordSkeleton(gpu::GPUFuncOp kernel,
                                  const BarrierCheckOptions &options) {
  SyncSkeleton result;
  result.kernel = kernel.getName().str();
  Program program;
  if (compileProgram(kernel, program, /*isOfOneCluster=*/true))
    return result;
  result.runsAllTiles = program.hasTiles;
  if (!program.hasTiles) {
    program = Program();
    if (compileProgram(kernel, program))
      return result;
  }
  if (program.hasOpenTiles())
    return SyncSkeleton();
  if (int64_t(program.allTiles.size()) != program.numTiles)
    return SyncSkeleton();
  for (const Step &step : program.steps)
    result.sites.push_back(describe(step.op));
  for (std::array<int64_t, 3> block : program.blocks) {
    SyncRun run;
    run.block = block;
    run.warps.resize(program.cluster * program.warps);
    Machine machine(program, options);
    machine.setLimit(options.limit);
    machine.setBlock(block);
    machine.takeNotes(run.warps);
    for (int64_t tile : program.allTiles)
      machine.addTile(tile);
    machine.endTiles();
    machine.run();
    if (!machine.isDone())
      return SyncSkeleton();
    result.runs.push_back(std::move(run));
  }
  return result;
}
