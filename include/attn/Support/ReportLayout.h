//===- ReportLayout.h - Where checked kernels report ------------*- C++ -*-===//
//
// Two variables of a module that attn-instrument makes (docs/Instrument.md):
// the records, and a JSON list that says what each is of.
// python/attn/launch/device_reports.py says the same of them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTN_SUPPORT_REPORTLAYOUT_H
#define ATTN_SUPPORT_REPORTLAYOUT_H

#include "llvm/ADT/StringRef.h"
#include <cstdint>

namespace mlir::attn::reports {

inline constexpr llvm::StringLiteral kReportsName = "attn_reports";
inline constexpr llvm::StringLiteral kSitesName = "attn_report_sites";
/// Words in front of the first record.
inline constexpr int64_t kHeaderWords = 8;
/// Words of a record: how often, CTA, warp, slot, and what the check says.
inline constexpr int64_t kRecordWords = 8;

} // namespace mlir::attn::reports

#endif // ATTN_SUPPORT_REPORTLAYOUT_H
