//===- LicenceBuffers.cpp - Accesses of all partitions to buffers ---------===//
//
// What no partition shows by itself: whether accesses to a buffer happen while
// tokens of one channel are held, and its slots are found by its positions.
//
//===----------------------------------------------------------------------===//

#include "LicenceState.h"
#include "attn/Analysis/Memory/SharedAccess.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::attn;

namespace {

class BufferCheck {
public:
  BufferCheck(const ChannelAnalysis &analysis, const BufferAccesses &buffers,
              const BufferRings &ringOf, ChannelReport &report)
      : analysis(analysis), buffers(buffers), ringOf(ringOf), report(report) {}
  void run();

private:
  void checkBuffer(Value memory, ArrayRef<AccessInfo> accesses);
  void checkWithout(Value memory, ArrayRef<AccessInfo> accesses,
                    unsigned channel);
  void checkElsewhere(Value memory, const AccessInfo &access, unsigned channel,
                      Operation *position);
  ChannelWitness &fail(Operation *op, const Twine &text);
  void leaveOut(Operation *op, const Twine &text);

  const ChannelAnalysis &analysis;
  const BufferAccesses &buffers;
  const BufferRings &ringOf;
  ChannelReport &report;
};

} // namespace

std::string attn::getMemoryName(Value memory) {
  if (auto alloc = memory.getDefiningOp<AllocOp>())
    return getBufferName(alloc).str();
  if (auto alloc = memory.getDefiningOp<TmemAllocOp>())
    return alloc.getName().value_or("buffer").str();
  return "buffer";
}

ChannelWitness &BufferCheck::fail(Operation *op, const Twine &text) {
  report.witness.emplace();
  report.witness->what = {op, text.str()};
  return *report.witness;
}

void BufferCheck::leaveOut(Operation *op, const Twine &text) {
  if (!report.unsupported)
    report.unsupported = {op, text.str()};
}

/// Where partitions touch a buffer without positions under tokens of one
/// channel, one of them does not do so elsewhere without any token. What is
/// ordered by signals, or by one channel after another, is not judged here.
void BufferCheck::checkBuffer(Value memory, ArrayRef<AccessInfo> accesses) {
  DenseMap<unsigned, llvm::SmallBitVector> held;
  for (const AccessInfo &access : accesses)
    held.insert({access.partition, access.held}).first->second |= access.held;
  llvm::SmallBitVector candidates(analysis.getChannels().size(), true);
  for (const auto &[partition, channels] : held)
    candidates &= channels;
  auto without = llvm::find_if(
      accesses, [](const AccessInfo &access) { return access.held.none(); });
  if (held.size() < 2 || candidates.none() || without == accesses.end())
    return;
  // The channel that most accesses hold.
  auto countHeld = [&](unsigned channel) {
    return llvm::count_if(accesses, [&](const AccessInfo &access) {
      return access.held[channel];
    });
  };
  unsigned channel = candidates.find_first();
  for (unsigned other : candidates.set_bits())
    if (countHeld(other) > countHeld(channel))
      channel = other;
  checkWithout(memory, accesses, channel);
}

/// An access without token may stand where nobody else can come to, as in front
/// of all acquires. It cannot in a loop of which each trip acquires, and in
/// which another partition's accesses are as often, if nothing but this channel
/// orders them.
void BufferCheck::checkWithout(Value memory, ArrayRef<AccessInfo> accesses,
                               unsigned channel) {
  ChannelCreateOp create = (analysis.getChannels().begin() + channel)->first;
  auto isOfEachTrip = [&](const AccessInfo &access) {
    return findAcquireOfEachTrip(analysis, access.op, create);
  };
  for (const AccessInfo &access : accesses) {
    if (access.held.any())
      continue;
    auto with = llvm::find_if(accesses, [&](const AccessInfo &other) {
      return other.partition != access.partition && other.held[channel] &&
             isOfEachTrip(other);
    });
    if (with == accesses.end() || !isOfEachTrip(access) ||
        countChannels(analysis, access.partition) != 1) {
      leaveOut(access.op, "it is not shown what orders an access to buffer '" +
                              getMemoryName(memory) + "' without a token");
      continue;
    }
    ChannelWitness &witness = fail(
        access.op, "expected accesses to buffer '" + getMemoryName(memory) +
                       "' while a token of channel '" + create.getName() +
                       "' is held, as elsewhere, got one without");
    witness.notes.push_back({with->op, "one is held here"});
    return;
  }
}

/// An index that is no position of the ring's channel. A constant is one where
/// there is one slot, and none where positions go on from trip to trip.
void BufferCheck::checkElsewhere(Value memory, const AccessInfo &access,
                                 unsigned channel, Operation *position) {
  ChannelCreateOp create = (analysis.getChannels().begin() + channel)->first;
  int64_t depth = cast<ChannelType>(create.getResult().getType()).getDepth();
  bool isConstant = matchPattern(access.elsewhere, m_Constant());
  if (depth == 1 && matchPattern(access.elsewhere, m_Zero()))
    return;
  if (!isConstant || depth == 1 ||
      !findAcquireOfEachTrip(analysis, access.op, create)) {
    leaveOut(access.op,
             "it is not shown that a slot of buffer '" + getMemoryName(memory) +
                 "' is at a position of channel '" + create.getName() + "'");
    return;
  }
  ChannelWitness &witness =
      fail(access.op, "expected a slot of buffer '" + getMemoryName(memory) +
                          "' at a position of channel '" + create.getName() +
                          "', got another index");
  witness.notes.push_back({position, "a position of the channel"});
}

void BufferCheck::run() {
  for (auto &[memory, accesses] : buffers) {
    if (report.witness)
      return;
    auto ring = ringOf.find(memory);
    if (ring == ringOf.end()) {
      checkBuffer(memory, accesses);
      continue;
    }
    const auto &[channel, position] = ring->second;
    const ChannelInfo &info =
        (analysis.getChannels().begin() + channel)->second;
    for (const AccessInfo &access : accesses)
      if (access.elsewhere && takesPart(info, access.partition) &&
          !report.witness)
        checkElsewhere(memory, access, channel, position);
  }
}

void attn::checkBuffers(const ChannelAnalysis &analysis,
                        const BufferAccesses &buffers,
                        const BufferRings &ringOf, ChannelReport &report) {
  BufferCheck(analysis, buffers, ringOf, report).run();
}
