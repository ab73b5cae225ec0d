//===- Replayer.h - Gives times to a trace ----------------------*- C++ -*-===//
//
// The SMs of one cluster, their units, and the warps of the CTAs that are on
// them. Replay.cpp runs the warps, ReplayOperations.cpp what they start.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_COST_REPLAYER_H
#define ATTN_LIB_COST_REPLAYER_H

#include "Calendar.h"
#include "CycleCosts.h"
#include <deque>
#include <queue>

namespace mlir::attn::sim {

/// Asynchronous operations of a warp that it commits in groups.
struct Groups {
  double open = 0; ///< when what is not committed yet ends
  std::deque<double> committed;

  void commit() {
    committed.push_back(
        std::max(open, committed.empty() ? 0 : committed.back()));
    open = 0;
  }
  /// When all but the `left` newest groups have ended.
  double getEnd(size_t left) const {
    return committed.size() > left ? committed[committed.size() - 1 - left] : 0;
  }
};

struct WarpState {
  const std::vector<TraceEvent> *events = nullptr;
  size_t next = 0;
  /// When the newest instruction has issued.
  double time = 0;
  /// Nothing moves above the last wait, and no load above the last store to
  /// shared or global memory.
  double fence = 0;
  std::array<double, 2> stores = {0, 0};
  /// When the last instructions have issued, as many as ptxas moves others up.
  std::vector<double> issued;
  size_t count = 0;
  unsigned scheduler = 0;
  unsigned cta = 0;
  unsigned sm = 0;
  /// When each register may be read.
  std::vector<float> ready;
  Groups copies, products, bulk, tmemLoads, tmemStores;
  /// When the tensor core's products that it has issued are seen to have ended
  /// by who waits for a commit.
  double productsEnd = 0;
  /// When its stores to tensor memory have ended that it has waited for.
  double storesEnd = 0;

  Groups *getGroups(Group group);
};

struct TokenState {
  uint32_t missing = 0;
  double time = 0;
  std::vector<unsigned> waiters;
};

/// One SM.
struct SmState {
  std::array<std::array<Calendar, 4>, numUnits> units;
  /// Its tensor core, for tcgen05: products run in their order.
  double tensorFree = 0;
  /// When the newest products have begun.
  std::deque<double> begins;
};

class Replayer {
public:
  Replayer(const Trace &trace, const CycleNumbers &numbers, unsigned resident)
      : trace(trace), numbers(numbers), resident(resident),
        costs(makeCycleCosts(trace, numbers)) {}
  llvm::Expected<Timeline> run();

private:
  void addWarps();
  void startCluster(double time);
  void runWarps();
  /// A warp has ended.
  void finish(const WarpState &warp);
  /// Runs one event; false when the warp waits for a token.
  bool step(unsigned index);
  /// When the event could begin.
  double getStart(const WarpState &warp, const TraceEvent &event) const;
  void execute(WarpState &warp, unsigned index, const TraceEvent &event);
  /// The unit's part of an instruction that issues at `start`, which moves when
  /// a full queue holds the warp; when its result is ready, and `end` of the
  /// unit's work.
  double useUnit(WarpState &warp, const CycleCost &cost,
                 const TraceEvent &event, double &start, double &end);
  void advanceGroups(WarpState &warp, unsigned index, const TraceEvent &event,
                     double done);
  void signal(uint32_t token, double time, unsigned cta);
  void addSpan(unsigned row, Activity activity, double begin, double end,
               uint32_t instruction);
  void stall(unsigned index, double until, uint32_t instruction,
             const std::string &why);
  void summarise();

  void startOperation(unsigned index, const TraceEvent &event);
  /// These take the operation's time on its units; when it has ended.
  double startProduct(unsigned index, const TraceOperation &operation);
  double startCopy(unsigned index, const TraceOperation &operation,
                   double bytes);
  /// Takes the port for a copy whose bytes come or go from `time` on.
  void fill(unsigned sm, double time, double bytes);
  double startOther(unsigned index, const TraceOperation &operation);
  /// Holds the warp while the tensor core has no place for its product.
  void awaitTensorCore(unsigned index, const TraceOperation &operation);
  llvm::SmallVector<unsigned, 2> getSms(const WarpState &warp,
                                        const TraceWork &work) const;
  /// Takes bytes of the shared-memory port of an SM; when they have passed.
  double usePort(unsigned sm, double time, double cycles);

  const Trace &trace;
  const CycleNumbers &numbers;
  unsigned resident;
  std::vector<CycleCost> costs;
  uint32_t numRegisters = 0;
  unsigned clusterSize = 1;
  std::vector<WarpState> warps;
  std::vector<unsigned> firstWarp, liveWarps; ///< by CTA
  std::vector<unsigned> liveCtas;             ///< by cluster
  unsigned nextCluster = 0;
  std::vector<TokenState> tokens;
  std::vector<SmState> sms;
  std::array<double, numUnits> busy{};
  /// Instructions and bytes (docs/CycleModel.md), of all SMs.
  std::array<double, numUnits> instructions{};
  double issues = 0, wavefronts = 0, sharedBytes = 0, tmemBytes = 0,
         barrierWaits = 0, products = 0;
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> queue;
  Timeline result;
};

} // namespace mlir::attn::sim

#endif // ATTN_LIB_COST_REPLAYER_H
