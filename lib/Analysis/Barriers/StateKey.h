//===- StateKey.h - When two states go on in the same way -------*- C++ -*-===//

#ifndef ATTN_LIB_ANALYSIS_BARRIERS_STATEKEY_H
#define ATTN_LIB_ANALYSIS_BARRIERS_STATEKEY_H

#include "BarrierMachine.h"

namespace mlir::attn::barriers {

/// What an access is, whenever it was: with the same key, the same conflicts.
/// The second number is where it begins in turned rings, the last one the group
/// that it is pending in.
using AccessKey = std::array<int64_t, 9>;

/// An event that is no access: what it is to which barrier, and by which warp.
struct OtherEvent {
  enum Kind : uint8_t {
    Init,
    Complete,                     ///< the last phase
    CompleteBefore,               ///< the one before it
    SignalNow,                    ///< of the current phase
    SignalLast = SignalNow + 1,   ///< of the last complete one
    SignalBefore = SignalNow + 2, ///< of the one before it
    Wait,
    Columns ///< of tensor memory, which a CTA has taken
  };
  /// The barrier's place among the turned rings.
  uint32_t place = 0;
  Kind kind = Init;
  /// Who has signalled or waits, and whether that comes from elsewhere.
  uint16_t warp = 0;
  bool isRemote = false;
  /// Among those that are the same otherwise.
  uint16_t number = 0;
  /// What it is in the machine. A state with another one is the same.
  uint32_t event = 0, step = 0;

  auto getKey() const {
    return std::make_tuple(place, kind, warp, isRemote, number);
  }
};

/// Holds the numbers that each of several kinds has for some values, as runs of
/// kinds in which each value goes on by equal distances.
class KindList {
public:
  /// Adds a value: what each kind makes of it.
  void add(const NumberList &values) { columns.push_back(values); }
  /// Makes the runs, once all values are there.
  void finish();
  /// Returns true if each kind of `other`, which has the same values, is one of
  /// these. Adds to `work` what was compared.
  bool includes(const KindList &other, Work &work) const;
  size_t countRuns() const { return runs.size(); }
  bool operator==(const KindList &other) const { return runs == other.runs; }

private:
  struct Run {
    int64_t count = 0;
    SmallVector<NumberList::Run, 4> values;
    bool operator==(const Run &other) const {
      return count == other.count && values == other.values;
    }
  };
  int64_t countAlike(const Run &own, const Run &other, int64_t from) const;
  std::vector<NumberList> columns;
  std::vector<Run> runs;
};

/// A state that waits for a tile: where everybody is, and who knows what.
/// States with the same places and the same knowledge take the same steps from
/// there on, with the same verdicts. With less knowledge, or with more accesses
/// that matter, a state takes the same steps too, and what is right from there
/// on is right from the other one.
struct StateSummary {
  struct Known {
    Access access;
    /// The numbers of the sets of events that it is in.
    EventSet knowers;
  };
  /// Places in the program, values, what barriers have counted.
  std::string places;
  /// In the order of their keys.
  std::vector<std::pair<AccessKey, Known>> accesses;
  const Known *find(const AccessKey &key) const {
    auto found =
        llvm::lower_bound(accesses, key, [](const auto &a, const AccessKey &b) {
          return a.first < b;
        });
    return found != accesses.end() && found->first == key ? &found->second
                                                          : nullptr;
  }
  /// Other events in the order of their keys, and who knows each: as many words
  /// of each, behind each other. One that is not there is known to everybody.
  std::vector<OtherEvent> others;
  std::vector<uint64_t> otherKnowers;
  ArrayRef<uint64_t> knowersOfOther(size_t index) const {
    size_t words = otherKnowers.size() / others.size();
    return ArrayRef<uint64_t>(otherKnowers).slice(index * words, words);
  }
  /// Where the last tile may be one of several kinds, what each of them makes
  /// of the values and words that tell them apart, in order.
  KindList kinds;

  /// Holds a counter of trips that is left out of the places: a number, one for
  /// each kind, or what is added to unknowns.
  struct Count {
    uint32_t warp;
    Slot slot;
    NumberList numbers;
    Affine unknowns;
  };
  std::vector<Count> counts;
  bool leavesOutCounts = false;

  /// Cells of tensor memory that somebody has written, of each CTA. What is
  /// right with fewer is right with more.
  std::vector<llvm::BitVector> written;

  /// What is known of the unknowns in its places.
  Facts facts;

  /// True if what is right from this state on is right from the other one on,
  /// which has the same places: it knows no less, each of its kinds is one of
  /// this state's, and so are all numbers that its unknowns may be. Adds to
  /// `work` how much was compared.
  bool standsFor(const StateSummary &other, Work &work) const;
  /// Stands for a state of the same places as well; false if it did before.
  /// They know the same of their unknowns.
  bool join(const StateSummary &other, Work &work);
  /// Its places, and what is known of its unknowns.
  std::string getText() const;

private:
  bool joinOthers(const StateSummary &other);
};

/// Stands for the parity of an mbarrier at which nobody will wait.
inline constexpr uint8_t kNobodyAsks = 2;

/// Takes a state apart.
class StateKey {
public:
  /// With `leavesOutCounts` what says how many trips loops have left is no
  /// part of the places.
  explicit StateKey(Machine &machine, bool leavesOutCounts = false)
      : m(machine) {
    summary.leavesOutCounts = leavesOutCounts;
  }
  /// Drops what cannot matter any more. Adds to `work` how much it looked at.
  StateSummary &summarise(Work &work);
  /// Takes from the machine what `joined`, which stands for its state, does not
  /// know. Behind `summarise`.
  void weaken(const StateSummary &joined);
  /// Forgets what tiles have said of numbers of the launch: each of them may be
  /// the first one. Before `summarise`.
  void forgetLaunch(Work &work);

private:
  void countWork(Work &work) const;
  void dropAccesses();
  void dropWords();
  void learnOwn();
  void learnPublished();
  void learnCompletions();
  const Knowledge *findUsers(const Warp &warp, size_t array, bool isWait) const;
  void dropSignals();
  bool isKnownToAll(uint32_t event, const EventSet &who) const;
  void learn(uint32_t event, ArrayRef<uint64_t> who);
  void addOther(OtherEvent::Kind kind, uint32_t place, uint32_t event,
                uint32_t step = 0, uint16_t warp = 0, bool isRemote = false);
  void addSignals(Barrier &barrier, unsigned level, uint32_t place);
  bool sharesWork(uint32_t step) const;
  int64_t bytesOf(const Access &access) const;
  int64_t findUser(const Access &access) const;
  AccessKey describe(const Access &access) const;
  void transposeSets();
  ArrayRef<uint64_t> wordsOf(uint32_t event) const;
  EventSet knowersOf(uint32_t event) const;
  void setKnowers(uint32_t event, const EventSet &knowers);
  void weakenOthers(const StateSummary &joined);
  uint32_t addToMachine(const OtherEvent &other);
  void findGroups();
  void collectSets();
  void addAccesses();
  void addBarriers();
  void addGroup(ArrayRef<uint32_t> events);
  void addWarp(const Warp &warp);
  void addVaried(const NumberList &values);
  void add(int64_t value) {
    summary.places.append(reinterpret_cast<const char *>(&value),
                          sizeof(value));
  }
  int64_t instanceBase(uint32_t step, uint16_t warp) const;
  bool isInStep(uint32_t step, uint16_t warp) const;
  bool mayTakeTile(const Warp &warp) const {
    return warp.state != Warp::Done &&
           m.program->getLive(warp.cta, warp.pc).test(m.program->numSlots);
  }

  bool isShared(uint32_t ring) const;
  void turnRings();
  int64_t &turnOf(uint32_t ring, int64_t cta) {
    return turns[cta * m.program->rings.size() + ring];
  }
  int64_t turnSlot(uint32_t ring, int64_t slot) const;
  int64_t turnSlotOn(uint32_t ring, int64_t slot) const;
  int64_t turnParity(uint32_t ring, int64_t cta, int64_t slot);
  int64_t turnValue(const Warp &warp, unsigned slot, int64_t value);
  int64_t turnBase(const Access &access) const;
  void orderBarriers();
  void addWords();
  void addUnknowns();

  Machine &m;
  StateSummary summary;
  /// How far each ring is turned back, for each CTA behind each other.
  SmallVector<int64_t> turns;
  /// The numbers of the barriers in the order of the turned rings, the other
  /// way around, and what is added to their phases; kNobodyAsks where these do
  /// not matter.
  std::vector<uint32_t> barrierOrder, barrierPlace;
  std::vector<uint8_t> barrierParity;
  SmallVector<EventSet *> sets;
  /// Of each event which sets it is in, `knowerWords` words of it behind each
  /// other.
  std::vector<uint64_t> knowers;
  size_t knowerWords = 0;
  /// The sets that warps which go on may rely on in all of their threads, by
  /// what they are of, and those of them and of others that are of causes.
  EventSet generic, async, cause, tensor, handed, causes;
  llvm::DenseMap<uint32_t, int64_t> groupOf;
  /// The unknowns of the state.
  struct {
    /// Values that are sums of them, in the order in which they come up.
    std::vector<Affine> sums;
    /// Those that loops which are not over count, where numbers of the launch
    /// are forgotten.
    std::optional<llvm::DenseSet<uint32_t>> counted;
  } open;
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_BARRIERS_STATEKEY_H
