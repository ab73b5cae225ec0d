//===- BankConflicts.cpp - Shared-memory wavefronts -----------------------===//

#include "attn/Layout/BankConflicts.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <array>

using namespace mlir::attn;
using llvm::ArrayRef;
using llvm::SmallVector;

static constexpr unsigned numBanks = 32;
static constexpr unsigned bankBytes = 4;

/// Wavefronts of lanes that are served together: the most different words of
/// one bank.
static BankReport countPhase(ArrayRef<int64_t> addresses, unsigned bytes) {
  // The words that each bank has been asked for: few, so that a search is
  // faster than sorting all of them.
  std::array<SmallVector<int64_t, 8>, numBanks> words;
  uint64_t most = 0, total = 0;
  for (int64_t address : addresses)
    for (unsigned at = 0; address >= 0 && at < bytes; at += bankBytes) {
      int64_t word = (address + at) / bankBytes;
      SmallVector<int64_t, 8> &bank = words[word % numBanks];
      if (llvm::is_contained(bank, word))
        continue;
      bank.push_back(word);
      most = std::max<uint64_t>(most, bank.size());
      ++total;
    }
  return {most, llvm::divideCeil(total, numBanks)};
}

static BankReport countPhases(ArrayRef<int64_t> addresses, unsigned bytes,
                              unsigned lanesPerPhase) {
  BankReport report;
  while (!addresses.empty()) {
    size_t count = std::min<size_t>(lanesPerPhase, addresses.size());
    report += countPhase(addresses.take_front(count), bytes);
    addresses = addresses.drop_front(count);
  }
  return report;
}

BankReport mlir::attn::countBankConflicts(ArrayRef<int64_t> addresses,
                                          unsigned bytes) {
  unsigned lanes = bytes <= bankBytes ? 32 : bytes <= 8 ? 16 : 8;
  return countPhases(addresses, bytes, lanes);
}

BankReport mlir::attn::countMatrixConflicts(ArrayRef<int64_t> addresses) {
  return countPhases(addresses, 16, 8);
}

/// Thread parts of the addresses of a warp's lanes, for each form.
static SmallVector<std::array<std::pair<int64_t, int64_t>, 32>, 2>
threadParts(ArrayRef<AddressForm> forms, unsigned warp) {
  SmallVector<std::array<std::pair<int64_t, int64_t>, 32>, 2> result;
  for (const AddressForm &form : forms) {
    result.emplace_back();
    for (unsigned lane = 0; lane < 32; ++lane)
      result.back()[lane] = {form.evaluateXor(lane, warp),
                             form.evaluateAdd(lane, warp)};
  }
  return result;
}

BankReport mlir::attn::countBankConflicts(const VectorPlan &plan,
                                          unsigned numWarps) {
  BankReport report;
  for (unsigned warp = 0; warp < numWarps; ++warp) {
    auto parts = threadParts(plan.forms, warp);
    for (const VectorAccess &access : plan.accesses) {
      SmallVector<int64_t, 32> addresses;
      for (auto [xorPart, addPart] : parts[access.address.form])
        addresses.push_back((xorPart ^ access.address.xorConst) + addPart +
                            access.address.addConst);
      report += countBankConflicts(addresses, plan.bytes);
    }
  }
  return report;
}

BankReport mlir::attn::countBankConflicts(const MatrixPlan &plan,
                                          unsigned numWarps) {
  BankReport report;
  for (unsigned warp = 0; warp < numWarps; ++warp) {
    auto parts = threadParts(plan.forms, warp);
    for (const MatrixAccess &access : plan.accesses) {
      SmallVector<int64_t, 32> addresses;
      for (auto [xorPart, addPart] : ArrayRef(parts[access.address.form])
                                         .take_front(size_t(8) * access.num))
        addresses.push_back((xorPart ^ access.address.xorConst) + addPart +
                            access.address.addConst);
      report += countMatrixConflicts(addresses);
    }
  }
  return report;
}

BankReport mlir::attn::countBankConflicts(const CopyPlan &plan) {
  BankReport report;
  for (unsigned first = 0; first < plan.activeThreads; first += 32)
    for (const CopyStep &step : plan.steps) {
      SmallVector<int64_t, 32> addresses;
      for (unsigned thread = first; thread < first + 32; ++thread) {
        bool active =
            thread < plan.activeThreads &&
            (!step.rowLimit || plan.threadRow(thread) < *step.rowLimit);
        addresses.push_back(active ? plan.sharedOffset(thread, step) : -1);
      }
      report += countBankConflicts(addresses, plan.chunkBytes);
    }
  return report;
}
