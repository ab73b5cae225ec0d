//===- EventSet.h - Who knows which events ----------------------*- C++ -*-===//
//
// Events that still matter have numbers; what a warp or a barrier knows is a
// set of them. Releases and acquires are unions.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_LIB_ANALYSIS_KNOWLEDGE_EVENTSET_H
#define ATTN_LIB_ANALYSIS_KNOWLEDGE_EVENTSET_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/bit.h"
#include <cstdint>
#include <optional>

namespace mlir::attn::barriers {

/// A set of events.
class EventSet {
public:
  bool test(uint32_t event) const {
    return event / 64 < words.size() && words[event / 64] >> event % 64 & 1;
  }
  void set(uint32_t event) {
    if (event / 64 >= words.size())
      words.resize(event / 64 + 1);
    words[event / 64] |= uint64_t(1) << event % 64;
  }
  void reset(uint32_t event) {
    if (event / 64 < words.size())
      words[event / 64] &= ~(uint64_t(1) << event % 64);
  }
  /// Takes the event of the lowest number out.
  std::optional<uint32_t> takeFirst() {
    for (size_t i = 0; i < words.size(); ++i)
      if (uint64_t word = words[i]) {
        words[i] = word & (word - 1);
        return i * 64 + llvm::countr_zero(word);
      }
    return std::nullopt;
  }
  void join(const EventSet &other) {
    if (other.words.size() > words.size())
      words.resize(other.words.size());
    for (size_t i = 0; i < other.words.size(); ++i)
      words[i] |= other.words[i];
  }
  /// Keeps what is in the other one too.
  void intersect(const EventSet &other) {
    for (size_t i = 0; i < words.size(); ++i)
      words[i] &= i < other.words.size() ? other.words[i] : 0;
  }
  void remove(const EventSet &other) {
    for (size_t i = 0; i < std::min(words.size(), other.words.size()); ++i)
      words[i] &= ~other.words[i];
  }
  /// True if all of it is in the other one.
  bool isWithin(const EventSet &other) const {
    for (size_t i = 0; i < words.size(); ++i)
      if (words[i] & ~(i < other.words.size() ? other.words[i] : 0))
        return false;
    return true;
  }
  void clear() { words.clear(); }
  llvm::ArrayRef<uint64_t> getWords() const { return words; }
  void setWords(llvm::ArrayRef<uint64_t> from) {
    words.assign(from.begin(), from.end());
  }

private:
  llvm::SmallVector<uint64_t, 12> words;
};

/// One or two sets that are read as one.
class EventView {
public:
  EventView(const EventSet &set, const EventSet *more = nullptr)
      : set(set), more(more) {}
  bool test(uint32_t event) const {
    return set.test(event) || (more && more->test(event));
  }
  bool contains(llvm::ArrayRef<uint32_t> events) const {
    for (uint32_t event : events)
      if (!test(event))
        return false;
    return true;
  }

private:
  const EventSet &set;
  const EventSet *more;
};

/// What somebody may rely on.
struct Knowledge {
  /// With generic accesses of its own.
  EventSet generic;
  /// With asynchronous operations that it starts.
  EventSet async;
  /// What cannot happen any more, whether or not its memory may be seen.
  EventSet cause;
  /// With its own accesses to tensor memory.
  EventSet tensor;
  /// What a fence has handed over of tensor memory, or will, once it stands
  /// behind a wait.
  EventSet handed;

  void join(const Knowledge &other) {
    receive(other);
    tensor.join(other.tensor);
  }
  /// Takes over what a signal carries.
  void receive(const Knowledge &other) {
    generic.join(other.generic);
    async.join(other.async);
    cause.join(other.cause);
    handed.join(other.handed);
  }
  void intersect(const EventSet &events) {
    for (EventSet *set : {&generic, &async, &cause, &tensor, &handed})
      set->intersect(events);
  }
  void remove(const EventSet &events) {
    for (EventSet *set : {&generic, &async, &cause, &tensor, &handed})
      set->remove(events);
  }
  /// Keeps the memory of the sets, which are filled again.
  void clear() {
    for (EventSet *set : {&generic, &async, &cause, &tensor, &handed})
      set->clear();
  }
};

/// What the threads of a warp may rely on. Threads do not see what others of
/// their warp have done or learned until they wait for each other.
struct WarpKnowledge {
  /// Each of them.
  Knowledge all;
  /// The elected one besides.
  Knowledge elected;
  /// Of what all have done by parts, each thread of its own part.
  Knowledge shares;

  /// What all threads together can hand on.
  void handOn(Knowledge &to) const {
    for (const Knowledge *part : {&all, &elected, &shares})
      to.receive(*part);
  }
  /// All threads have waited for each other, with memory order.
  void synchronise() {
    for (Knowledge *part : {&elected, &shares}) {
      all.receive(*part);
      EventSet tensor = std::move(part->tensor);
      part->clear();
      part->tensor = std::move(tensor);
    }
  }
  /// All threads have waited for each other, without.
  void converge() {
    all.cause.join(elected.cause);
    all.cause.join(shares.cause);
  }
  void remove(const EventSet &events) {
    for (Knowledge *part : {&all, &elected, &shares})
      part->remove(events);
  }
};

} // namespace mlir::attn::barriers

#endif // ATTN_LIB_ANALYSIS_KNOWLEDGE_EVENTSET_H
