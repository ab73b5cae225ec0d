//===- SyncNotes.cpp - What PTX does about synchronisation ----------------===//
//
// In the words in which the check of barriers describes what it has proved
// (lib/Analysis/BarrierSkeleton.cpp). A signal or a wait that orders no memory
// is another word.
//
//===----------------------------------------------------------------------===//

#include "Exec.h"
#include "TraceRecorder.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::StringRef;

/// Where dynamic shared memory begins, behind what is declared.
static int64_t getDynamicStart(const Machine &machine) {
  return machine.config.dynamicShared
             ? llvm::alignTo(machine.kernel.staticShared,
                             machine.program.dynamicSharedAlign)
             : 0;
}

namespace {

/// Describes one instruction that has been executed.
class Notes {
public:
  Notes(const Exec &x, std::vector<SyncStep> &steps)
      : x(x), I(x.machine.program.code[x.pc]), steps(steps) {}
  void take(uint64_t bulkBytes);

private:
  bool starts(StringRef prefix) const { return I.text.starts_with(prefix); }
  bool takeBarrier();
  bool takeMbarrier();
  bool takeGroup();
  bool takeTensor();
  /// By the active threads unless it says by which ones.
  void add(SyncStep::Kind kind, std::string text, int64_t amount = 0,
           uint32_t threads = 0);
  /// Bytes from the start of dynamic shared memory, and the CTA.
  std::pair<int64_t, unsigned> find(const Operand &base, int64_t displacement,
                                    unsigned lane) const;
  /// The number at the end of the instruction.
  int64_t lastNumber() const {
    int64_t number = 0;
    StringRef text = I.text.rtrim("; \t");
    text = text.substr(text.find_last_of(" \t") + 1);
    return text.getAsInteger(10, number) ? 0 : number;
  }

  const Exec &x;
  const Inst &I;
  std::vector<SyncStep> &steps;
};

} // namespace

void Notes::add(SyncStep::Kind kind, std::string text, int64_t amount,
                uint32_t threads) {
  SyncStep step;
  step.kind = kind;
  step.threads = threads ? threads : x.active;
  step.text = std::move(text);
  if ((starts("mbarrier") || starts("barrier.cluster")) &&
      I.text.contains(".relaxed"))
    step.text += " relaxed";
  step.amount = amount;
  step.place = I.line;
  steps.push_back(std::move(step));
}

std::pair<int64_t, unsigned>
Notes::find(const Operand &base, int64_t displacement, unsigned lane) const {
  uint64_t address = x.read(base, lane) + displacement;
  if (address >= SharedWindow && address < SharedWindow + WindowSize)
    address -= SharedWindow;
  return {int64_t(address & 0xffffff) - SharedBase - getDynamicStart(x.machine),
          unsigned(address >> 24 & 0xff)};
}

bool Notes::takeMbarrier() {
  if (!starts("mbarrier."))
    return false;
  unsigned first = llvm::countr_zero(x.active);
  if (starts("mbarrier.init")) {
    add(SyncStep::Event,
        llvm::formatv("init +{0} {1}", find(I.ops[0], I.imm, first).first,
                      x.r32(I.ops[1])[first]));
  } else if (starts("mbarrier.inval")) {
    add(SyncStep::Event,
        llvm::formatv("inval +{0}", find(I.ops[0], I.imm, first).first));
  } else if (starts("mbarrier.try_wait") || starts("mbarrier.test_wait")) {
    // Those that still have to wait come around again.
    if (uint32_t done = x.pred(I.ops[0]) & x.active)
      add(SyncStep::Event,
          llvm::formatv("wait +{0} {1}", find(I.ops[1], I.imm, first).first,
                        x.r32(I.ops[2])[first] & 1),
          /*amount=*/0, done);
  } else if (starts("mbarrier.arrive")) {
    bool isExpect = I.text.contains("expect_tx");
    forLanes(x.active, [&](unsigned lane) {
      auto [offset, rank] = find(I.ops[1], I.imm, lane);
      std::string text = llvm::formatv(
          "{0} +{1}@{2}", isExpect ? "expect" : "arrive", offset, rank);
      if (isExpect)
        text += llvm::formatv(" {0}", x.r32(I.ops[2])[lane]);
      add(SyncStep::Event, std::move(text), /*amount=*/0, 1u << lane);
    });
  } else if (!starts("mbarrier.pending_count")) {
    // What a proof never has.
    add(SyncStep::Event, I.text.str());
  }
  return true;
}

bool Notes::takeBarrier() {
  unsigned first = llvm::countr_zero(x.active);
  if (starts("bar.warp.sync")) {
    add(SyncStep::Order, "warp");
    return true;
  }
  if (starts("barrier.cluster.wait")) {
    add(SyncStep::Event, "cluster");
    return true;
  }
  if (starts("barrier.cluster"))
    return true;
  if (!starts("bar.") && !starts("barrier."))
    return false;
  bool votes = I.text.contains(".red.");
  bool hasCount = I.text.count(',') == (votes ? 3 : 1);
  int64_t threads = hasCount ? int64_t(x.r32(I.ops[1])[first])
                             : 32 * int64_t(x.machine.warpsPerCta);
  bool arrives = I.text.contains(".arrive");
  add(SyncStep::Event,
      llvm::formatv("{0} {1} {2}", arrives ? "barrier.arrive" : "barrier",
                    x.r32(I.ops[0])[first], threads));
  return true;
}

bool Notes::takeGroup() {
  int engine = starts("cp.async.bulk.") ? 2
               : starts("cp.async.")    ? 0
               : starts("wgmma.")       ? 1
                                        : -1;
  if (engine < 0)
    return false;
  if (starts("cp.async.mbarrier.arrive")) {
    unsigned first = llvm::countr_zero(x.active);
    add(SyncStep::Event,
        llvm::formatv("signal +{0}", find(I.ops[0], I.imm, first).first));
    return true;
  }
  if (I.text.contains("commit_group"))
    add(SyncStep::Event, llvm::formatv("commit {0}", engine));
  else if (I.text.contains("wait_group") || I.text.contains("wait_all"))
    add(SyncStep::Event, llvm::formatv("await {0} {1}", engine, lastNumber()));
  else if (engine == 0)
    add(SyncStep::Work, "copy");
  else if (starts("wgmma.mma_async"))
    add(SyncStep::Work, "product");
  else if (I.text.contains(".global.shared::cta"))
    add(SyncStep::Work, "store");
  else
    return false;
  return true;
}

bool Notes::takeTensor() {
  if (!starts("tcgen05."))
    return false;
  if (starts("tcgen05.commit")) {
    unsigned first = llvm::countr_zero(x.active);
    add(SyncStep::Event,
        llvm::formatv("signal +{0}", find(I.ops[0], I.imm, first).first));
    return true;
  }
  static constexpr std::tuple<StringRef, SyncStep::Kind, StringRef> words[] = {
      {"tcgen05.alloc", SyncStep::Event, "take"},
      {"tcgen05.dealloc", SyncStep::Event, "leave"},
      {"tcgen05.mma", SyncStep::Work, "tensor.product"},
      {"tcgen05.ld", SyncStep::Work, "tensor.load"},
      {"tcgen05.st", SyncStep::Work, "tensor.store"},
      {"tcgen05.wait::ld", SyncStep::Event, "await 3 0"},
      {"tcgen05.wait::st", SyncStep::Event, "await 4 0"},
      {"tcgen05.fence::before", SyncStep::Order, "tensor.before"},
      {"tcgen05.fence::after", SyncStep::Order, "tensor.after"}};
  for (auto [prefix, kind, text] : words)
    if (starts(prefix))
      add(kind, text.str());
  return true;
}

void Notes::take(uint64_t bulkBytes) {
  if (takeMbarrier() || takeBarrier() || takeTensor())
    return;
  unsigned first = llvm::countr_zero(x.active);
  if (starts("fence.proxy.async"))
    return add(SyncStep::Order, "fence.proxy");
  if (starts("st.async")) {
    // The mbarrier stands behind the words.
    unsigned words = I.text.contains(".v4")   ? 4
                     : I.text.contains(".v2") ? 2
                                              : 1;
    const Operand &barrier = I.ops[1 + words];
    return add(
        SyncStep::Work,
        llvm::formatv("load +{0}", find(barrier, int64_t(I.imm2), first).first),
        /*amount=*/words * (I.text.contains(".b64") ? 8 : 4));
  }
  if (!takeGroup() && starts("cp.async.bulk") &&
      I.text.contains("mbarrier::complete_tx"))
    add(SyncStep::Work,
        llvm::formatv("load +{0}",
                      find(I.ops[2], int64_t(I.flags), first).first),
        bulkBytes);
}

std::vector<SyncStep> &TraceRecorder::syncsOf(const Warp &warp) {
  return trace.ctas[firstCta + warp.cta->rank].warps[warp.id].syncs;
}

void TraceRecorder::noteSync(const Exec &x, uint64_t bulkBytes) {
  Notes(x, syncsOf(*x.warp)).take(bulkBytes);
}

void TraceRecorder::noteAccess(const Exec &x, uint64_t offset, uint64_t bytes,
                               bool write, int lane) {
  const Inst &I = x.machine.program.code[x.pc];
  if (!notesSync || I.text.starts_with("mbarrier."))
    return;
  int64_t begin = int64_t(offset) - getDynamicStart(x.machine);
  int64_t end = begin + int64_t(bytes);
  std::vector<SyncStep> &steps = syncsOf(*x.warp);
  StringRef text = write ? "write" : "read";
  uint32_t threads = lane >= 0 && lane < 32 ? 1u << lane : x.active;
  if (steps.empty() || steps.back().kind != SyncStep::Access ||
      steps.back().place != I.line || steps.back().text != text ||
      steps.back().threads != threads) {
    SyncStep step;
    step.kind = SyncStep::Access;
    step.text = text.str();
    step.threads = threads;
    step.place = I.line;
    steps.push_back(std::move(step));
  }
  auto &ranges = steps.back().bytes;
  if (!ranges.empty() && ranges.back().second == begin)
    ranges.back().second = end;
  else
    ranges.push_back({begin, end});
}
