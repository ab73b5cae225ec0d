//===- OracleSearch.h - States of small kernels, in every order -*- C++ -*-===//
//
// What oracles share that run kernels in every order: mbarriers that count, the
// states that were seen, and the phase that each signal and each wait has.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_UNITTESTS_ANALYSIS_BARRIERS_ORACLESEARCH_H
#define ATTN_UNITTESTS_ANALYSIS_BARRIERS_ORACLESEARCH_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"
#include <bitset>
#include <map>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

namespace mlir::attn::oracle {

/// Makes a text of numbers, by which equal states are found.
class StateText {
public:
  template <typename T>
  void add(const T &value) {
    text.append(reinterpret_cast<const char *>(&value), sizeof(value));
  }
  std::string take() { return std::move(text); }

private:
  std::string text;
};

/// Counts the arrivals and bytes of a phase, and what its signals carry of
/// `count` accesses.
template <size_t count>
struct CountingBarrier {
  int phase = 0, pending = 0, bytes = 0;
  /// Accesses that signals of this phase carry, and those of the phases before.
  std::bitset<count> gathering, published;

  /// Counts a signal of a barrier that expects `expected` in a phase; returns
  /// what is wrong with it, or null.
  const char *signal(int arrivals, int moreBytes, unsigned expected) {
    bytes += moreBytes;
    pending -= arrivals;
    if (pending < 0)
      return "too many arrivals";
    if (pending == 0 && bytes < 0)
      return "too many bytes";
    if (pending != 0 || bytes != 0)
      return nullptr;
    ++phase;
    pending = expected;
    published |= gathering;
    gathering.reset();
    return nullptr;
  }
  void addTo(StateText &text) const {
    text.add(phase);
    text.add(pending);
    text.add(bytes);
    text.add(gathering);
    text.add(published);
  }
};

/// Holds the states that were seen, and says what was wrong first.
template <typename State>
class OracleSearch {
public:
  std::optional<std::string> wrong;

  void fail(const llvm::Twine &text) {
    if (!wrong)
      wrong = text.str();
  }
  /// Says that a signal or a wait is of a phase, which is one in all orders.
  void fixPhase(unsigned event, int phase) {
    auto [known, isNew] = phases.try_emplace(event, phase);
    if (known->second != phase)
      fail("event " + llvm::Twine(event) + " belongs to phase " +
           llvm::Twine(known->second) + " or " + llvm::Twine(phase));
  }
  void add(State state) {
    if (seen.insert(state.getText()).second)
      worklist.push_back(std::move(state));
  }
  /// Goes on from each state until something is wrong; returns false if there
  /// are more than 60,000.
  bool run(llvm::function_ref<void(const State &)> goOn) {
    constexpr size_t mostStates = 60000;
    while (!worklist.empty() && !wrong) {
      if (seen.size() > mostStates)
        return false;
      State state = std::move(worklist.back());
      worklist.pop_back();
      goOn(state);
    }
    return true;
  }

private:
  std::map<unsigned, int> phases;
  std::unordered_set<std::string> seen;
  std::vector<State> worklist;
};

} // namespace mlir::attn::oracle

#endif // ATTN_UNITTESTS_ANALYSIS_BARRIERS_ORACLESEARCH_H
