//===- ProblemJSON.cpp - The problem of a launch record -------------------===//
#include "ProblemJSON.h"
#include "attn/Problem/RecordedFactors.h"

using namespace mlir::attn;
using llvm::StringRef;
using llvm::Twine;
namespace json = llvm::json;

/// Types of sums, narrow ones second.
static constexpr StringRef kSums[] = {"f32", "f16"};
static constexpr StringRef kScoreSums = "score_sums",
                           kResultSums = "result_sums";

/// An enumeration of ODS by the names that IR has for it.
template <typename T>
static T takeEnum(ObjectReader &reader, StringRef field, unsigned last) {
  llvm::SmallVector<StringRef, 4> names;
  for (unsigned value = 0; value <= last; ++value)
    names.push_back(stringifyEnum(static_cast<T>(value)));
  return static_cast<T>(reader.takeName(field, names));
}

static void readMask(const json::Value &value, Failure &failure,
                     AttentionProblem &problem) {
  ObjectReader mask(value, "problem.mask", failure);
  problem.mask = takeEnum<MaskKind>(mask, "kind", getMaxEnumValForMaskKind());
  if (mask.failed())
    return;
  if (problem.mask != MaskKind::None)
    problem.align =
        takeEnum<MaskAlign>(mask, "align", getMaxEnumValForMaskAlign());
  if (problem.mask == MaskKind::Window) {
    problem.left = mask.takeInteger("left", INT64_MIN);
    problem.right = mask.takeInteger("right", INT64_MIN);
  }
  mask.finish();
}

static double readFactor(ObjectReader &reader, StringRef field,
                         FactorSign sign) {
  bool isPositive = sign == FactorSign::Positive;
  if (isPositive && !reader.has(field))
    return getDefaultFactor(sign);
  double value = reader.takeNumber(field);
  if (!reader.failed() && (isPositive ? value < 0 : value == 0))
    reader.fail(field, isPositive ? "expected a number of at least 0"
                                  : "expected a number other than 0");
  return value;
}

AttentionProblem mlir::attn::readProblem(const json::Value &value,
                                         Failure &failure) {
  ObjectReader reader(value, "problem", failure);
  AttentionProblem problem;
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  problem.ID = readFactor(reader, NAME, FactorSign::SIGN);
#define ATTN_RECORDED_EXTENT(FACT, NAME, ID, RECORD)                           \
  problem.ID = reader.takeInteger(RECORD, 1);
#define ATTN_FEATURE(ID, NAME, GIVEN, RECORD)                                  \
  ATTN_IF_##RECORD(problem.ID = reader.has(NAME) && reader.takeBool(NAME);)
#include "attn/Problem/Options.def"
  if (const json::Value *mask = reader.take("mask"))
    readMask(*mask, failure, problem);
  if (!reader.failed() && problem.heads % problem.kvHeads)
    reader.fail("kv_heads", "expected a divisor of the " +
                                Twine(problem.heads) + " heads, got " +
                                Twine(problem.kvHeads));
  if (reader.has("max_seqlen_q"))
    problem.maxSeqlenQ = reader.takeInteger("max_seqlen_q", 0);
  if (reader.has("block_rows") || reader.has("block_keys")) {
    problem.blockRows = reader.takeInteger("block_rows", 1);
    problem.blockKeys = reader.takeInteger("block_keys", 1);
  }
  if (reader.has("out_group"))
    problem.outGroup = reader.takeInteger("out_group", 1);
  if (reader.has(kScoreSums))
    problem.narrowScores = reader.takeName(kScoreSums, kSums) != 0;
  if (reader.has(kResultSums))
    problem.narrowResults = reader.takeName(kResultSums, kSums) != 0;
  reader.finish();
  return problem;
}

json::Value mlir::attn::writeProblem(const AttentionProblem &problem) {
  json::Object mask{{"kind", stringifyEnum(problem.mask)}};
  if (problem.mask != MaskKind::None)
    mask["align"] = stringifyEnum(problem.align);
  if (problem.mask == MaskKind::Window) {
    mask["left"] = problem.left;
    mask["right"] = problem.right;
  }
  json::Object object{{"mask", std::move(mask)},
                      {"max_seqlen_q", problem.maxSeqlenQ}};
  if (problem.blockRows != 0) {
    object["block_rows"] = problem.blockRows;
    object["block_keys"] = problem.blockKeys;
  }
  if (problem.outGroup != 0)
    object["out_group"] = problem.outGroup;
  if (problem.narrowScores)
    object[kScoreSums] = kSums[1];
  if (problem.narrowResults)
    object[kResultSums] = kSums[1];
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (recordsFactor(NAME, problem.ID))                                         \
    object[NAME] = problem.ID;
#define ATTN_RECORDED_EXTENT(FACT, NAME, ID, RECORD)                           \
  object[RECORD] = problem.ID;
#define ATTN_FEATURE(ID, NAME, GIVEN, RECORD)                                  \
  ATTN_IF_##RECORD(object[NAME] = problem.ID;)
#include "attn/Problem/Options.def"
  return object;
}
