//===- Problem.cpp - An attention problem from flags ----------------------===//

#include "attn/Compile/Problem.h"
#include "attn/Problem/Limits.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include <cmath>
#include <numeric>

using namespace mlir;
using namespace mlir::attn;

/// Kernels compute indices in 32 bits.
static constexpr int64_t kMaxSize = std::numeric_limits<int32_t>::max();

/// An error that names the flag: `--q: expected ...`.
static llvm::Error makeError(StringRef flag, const Twine &message) {
  return llvm::createStringError("--" + flag + ": " + message);
}

/// The same for an option by its name in the table.
static llvm::Error makeOptionError(StringRef option, const Twine &message) {
  return makeError(llvm::join(llvm::split(option, '_'), "-"), message);
}

std::string ProblemFlags::getFirstGiven() const {
  std::string first;
  ProblemFlags(*this).forEach([&](const OptionRow &row, const auto &value) {
    if (!first.empty() || !value)
      return;
    if constexpr (std::is_same_v<decltype(*value), const bool &>) {
      if (*value != row.isOn)
        first = (*value ? "" : "no-") + row.getFlag();
    } else {
      first = row.getFlag();
    }
  });
  return first;
}

static bool isFloat8Name(StringRef type) {
  return llvm::is_contained({"f8E4M3FN", "f8E5M2"}, type);
}

static bool isElementType(StringRef type) {
  return llvm::is_contained({"f16", "bf16"}, type) || isFloat8Name(type);
}

/// Reads --q into the sizes of the queries.
static llvm::Error parseQueries(StringRef text, Problem &problem) {
  SmallVector<StringRef> parts;
  text.split(parts, 'x');
  if (parts.size() != 5)
    return makeError("q", "expected BxHxNxDxTYPE, got '" + text + "'");
  int64_t *sizes[] = {&problem.batch, &problem.heads, &problem.queries,
                      &problem.headDim};
  for (auto [part, size] : llvm::zip(parts, sizes))
    if (part.getAsInteger(10, *size) || *size < 0 || *size > kMaxSize)
      return makeError("q", "expected a size below 2^31, got '" + part +
                                "' in '" + text + "'");
  if (!isElementType(parts.back()))
    return makeError("q", "expected type f16, bf16, f8E4M3FN or f8E5M2, got '" +
                              parts.back() + "'");
  problem.type = parts.back().str();
  return llvm::Error::success();
}

/// Reads a factor; negative ones only where they make sense.
static llvm::Error parseFactor(StringRef option,
                               const std::optional<std::string> &written,
                               FactorSign sign, std::optional<double> &result) {
  if (!written)
    return llvm::Error::success();
  StringRef text = *written;
  bool allowNegative = sign == FactorSign::AnySign;
  double value;
  if (text.getAsDouble(value))
    return makeOptionError(option, "expected a number, got '" + text + "'");
  // The attribute is an f32.
  float rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || rounded == 0 ||
      (!allowNegative && rounded < 0))
    return makeOptionError(option,
                           Twine("expected a finite number ") +
                               (allowNegative ? "other than" : "above") +
                               " zero, got '" + text + "'");
  result = value;
  return llvm::Error::success();
}

static llvm::Error parseCount(StringRef option, std::optional<int64_t> written,
                              int64_t &result) {
  result = written.value_or(0);
  if (written && (result < 1 || result > kMaxSize))
    return makeOptionError(option,
                           "expected a number from 1 to 2^31 - 1, got '" +
                               Twine(result) + "'");
  return llvm::Error::success();
}

static llvm::Error parseNatural(StringRef option,
                                std::optional<int64_t> written,
                                std::optional<int64_t> &result) {
  result = written;
  if (written && (*written < 0 || *written > kMaxSize))
    return makeOptionError(option,
                           "expected a number from 0 to 2^31 - 1, got '" +
                               Twine(*written) + "'");
  return llvm::Error::success();
}

/// Reads where the diagonal of a mask lies.
static llvm::Error parseAlign(StringRef flag, StringRef text,
                              Problem &problem) {
  if (text != "top-left" && text != "bottom-right")
    return makeError(flag,
                     "expected top-left or bottom-right, got '" + text + "'");
  problem.align =
      text == "bottom-right" ? MaskAlign::BottomRight : MaskAlign::TopLeft;
  return llvm::Error::success();
}

static llvm::Error parseMask(const ProblemFlags &flags, Problem &problem) {
  if (flags.causal && flags.window)
    return makeError("causal", "contradicts --window; a causal window is "
                               "--window=LEFT,0");
  if (flags.causal) {
    problem.mask = MaskKind::Causal;
    return flags.causal->empty() ? llvm::Error::success()
                                 : parseAlign("causal", *flags.causal, problem);
  }
  if (!flags.window)
    return llvm::Error::success();
  SmallVector<StringRef> parts;
  StringRef(*flags.window).split(parts, ',');
  if (parts.size() < 2 || parts.size() > 3 ||
      parts[0].getAsInteger(10, problem.left) ||
      parts[1].getAsInteger(10, problem.right))
    return makeError("window", "expected LEFT,RIGHT[,ALIGN], got '" +
                                   *flags.window + "'");
  problem.mask = MaskKind::Window;
  problem.left = std::max<int64_t>(problem.left, -1);
  problem.right = std::max<int64_t>(problem.right, -1);
  if (problem.left < 0 && problem.right < 0)
    return makeError("window", "expected a window with at least one bound, "
                               "got '" +
                                   *flags.window + "'");
  return parts.size() == 3 ? parseAlign("window", parts[2], problem)
                           : llvm::Error::success();
}

/// Reads the lengths of packed sequences and checks them against --q.
static llvm::Error parseLengths(const ProblemFlags &flags, Problem &problem) {
  StringRef text = *flags.varlen;
  if (flags.kvLen)
    return makeError("kv-len", "contradicts --varlen, which gives the lengths");
  auto [queries, keys] = text.split('/');
  auto parseSide = [&](StringRef side, StringRef prefix,
                       SmallVectorImpl<int64_t> &lengths) -> llvm::Error {
    SmallVector<StringRef> parts;
    if (side.consume_front(prefix))
      side.split(parts, ',');
    for (StringRef part : parts) {
      int64_t length;
      if (part.getAsInteger(10, length) || length < 0 || length > kMaxSize)
        return makeError("varlen", "expected a sequence length below 2^31, "
                                   "got '" +
                                       part + "'");
      lengths.push_back(length);
    }
    if (lengths.empty())
      return makeError("varlen",
                       "expected q:LENGTHS[/k:LENGTHS], got '" + text + "'");
    return llvm::Error::success();
  };
  if (llvm::Error error = parseSide(queries, "q:", problem.lengthsQ))
    return error;
  problem.lengthsK = problem.lengthsQ;
  if (text.contains('/')) {
    problem.lengthsK.clear();
    if (llvm::Error error = parseSide(keys, "k:", problem.lengthsK))
      return error;
  }
  if (problem.lengthsQ.size() != problem.lengthsK.size())
    return makeError("varlen", "expected as many lengths of keys as of "
                               "queries, got " +
                                   Twine(problem.lengthsK.size()) + " and " +
                                   Twine(problem.lengthsQ.size()));
  int64_t rows = std::accumulate(problem.lengthsQ.begin(),
                                 problem.lengthsQ.end(), int64_t(0));
  if (problem.batch != 1 || problem.queries != rows)
    return makeError("varlen", "expected --q with batch 1 and " + Twine(rows) +
                                   " queries, the sum of the lengths, got " +
                                   Twine(problem.batch) + " and " +
                                   Twine(problem.queries));
  problem.keys = std::accumulate(problem.lengthsK.begin(),
                                 problem.lengthsK.end(), int64_t(0));
  if (problem.keys > kMaxSize)
    return makeError("varlen", "expected less than 2^31 keys, got " +
                                   Twine(problem.keys));
  return llvm::Error::success();
}

/// Reads numbers from `least` on that an i32 holds.
static llvm::Error parseNumbers(StringRef flag, StringRef text, int64_t least,
                                SmallVectorImpl<int64_t> &numbers) {
  SmallVector<StringRef> parts;
  text.split(parts, ',');
  for (StringRef part : parts) {
    int64_t number;
    if (part.getAsInteger(10, number) || number < least || number > kMaxSize)
      return makeError(flag, "expected an i32" +
                                 Twine(least == 0 ? " of at least 0" : "") +
                                 ", got '" + part + "'");
    numbers.push_back(number);
  }
  return llvm::Error::success();
}

/// Reads a length, which may be below zero, for each of `batch` sequences.
static llvm::Error parseLengths(StringRef flag, StringRef text, int64_t batch,
                                SmallVectorImpl<int64_t> &lengths) {
  if (llvm::Error error =
          parseNumbers(flag, text, /*least=*/-kMaxSize - 1, lengths))
    return error;
  int64_t count = lengths.size();
  if (count != batch)
    return makeError(flag, "expected one length for each of the " +
                               Twine(batch) + " batches, got " + Twine(count));
  return llvm::Error::success();
}

/// Reads the lengths of the keys and checks what pages go with.
static llvm::Error parseKeys(const ProblemFlags &flags, Problem &problem) {
  if (flags.kvLengths) {
    if (flags.varlen)
      return makeError("kv-lengths",
                       "contradicts --varlen, which gives the lengths");
    if (llvm::Error error = parseLengths("kv-lengths", *flags.kvLengths,
                                         problem.batch, problem.kvLengths))
      return error;
    // Memory without a row has no views, and servers have some.
    if (!flags.kvLen)
      problem.keys =
          std::max<int64_t>(1, *llvm::max_element(problem.kvLengths));
  }
  if (problem.pageSize == 0 && (problem.pageIndptr || problem.selected))
    return makeError(problem.pageIndptr ? "page-indptr" : "selected",
                     "expected --page-size beside it");
  if (problem.pageSize == 0)
    return llvm::Error::success();
  if (problem.pageSize > kPageLimit)
    return makeError("page-size", "expected at most " + Twine(kPageLimit) +
                                      ", got '" + Twine(problem.pageSize) +
                                      "'");
  if (problem.vTransposed)
    return makeError("v-transposed", "contradicts --page-size");
  // Packed queries have their keys in pages, by lengths and not by places.
  problem.kvLengths.append(problem.lengthsK);
  if (!problem.lengthsK.empty())
    problem.keys = *llvm::max_element(problem.lengthsK);
  problem.lengthsK.clear();
  uint64_t pages = llvm::SaturatingMultiply<uint64_t>(
      problem.getSequences(), problem.getTableColumns());
  if (pages > kMaxSize / 2)
    return makeError("page-size",
                     "expected less than 2^30 pages, got " + Twine(pages));
  return llvm::Error::success();
}

int64_t Problem::getAddedColumns() const {
  int64_t most = std::max<int64_t>(1, *llvm::max_element(addedLengths));
  return llvm::divideCeil(most, addedPageSize);
}

/// Reads how many added keys there are.
static llvm::Error parseAddedKeys(const ProblemFlags &flags, Problem &problem) {
  if ((problem.addedPageSize == 0) == flags.addedLengths.has_value())
    return makeError(flags.addedLengths ? "added-lengths" : "added-page-size",
                     flags.addedLengths ? "expected --added-page-size beside it"
                                        : "expected --added-lengths beside it");
  if (!flags.addedLengths)
    return llvm::Error::success();
  if (problem.pageSize == 0)
    return makeError("added-page-size", "expected --page-size beside it");
  if (problem.addedPageSize > kPageLimit)
    return makeError("added-page-size", "expected at most " +
                                            Twine(kPageLimit) + ", got '" +
                                            Twine(problem.addedPageSize) + "'");
  if (llvm::Error error = parseLengths("added-lengths", *flags.addedLengths,
                                       problem.batch, problem.addedLengths))
    return error;
  uint64_t elements = problem.addedPageSize;
  for (int64_t extent :
       {problem.getAddedPages(), problem.kvHeads, problem.headDim})
    elements = llvm::SaturatingMultiply<uint64_t>(elements, extent);
  if (elements > kMostElements)
    return makeError("added-lengths",
                     "expected at most 2^48 elements in added_k, got " +
                         Twine(problem.getAddedPages()) + " pages");
  return llvm::Error::success();
}

/// Runs of a fixed number of keys are as many as the keys take.
static llvm::Error parseRuns(const ProblemFlags &flags, Problem &problem) {
  if (problem.runKeys == 0)
    return llvm::Error::success();
  if (flags.kvSplits)
    return makeError("run-keys", "contradicts --kv-splits");
  int64_t runs = llvm::divideCeil(problem.getCapacity(), problem.runKeys);
  problem.kvSplits = std::max<int64_t>(1, runs);
  return llvm::Error::success();
}

/// Scales of rows, whose groups of columns divide these.
static llvm::Error checkScaleGroup(const Problem &problem) {
  int64_t group = problem.scaleGroup;
  if (group == 0)
    return llvm::Error::success();
  if (isFloat8Name(problem.type) || !isFloat8Name(problem.kvType))
    return makeError("scale-group",
                     "expected --kv-type of 8 bits beside queries of 16 bits");
  for (int64_t columns : {problem.getKeyColumns(), problem.valueDim})
    if (columns % group != 0)
      return makeError("scale-group", "expected a divisor of " +
                                          Twine(columns) + ", got '" +
                                          Twine(group) + "'");
  return llvm::Error::success();
}

/// A tensor's bytes have to be a number; so have the strides that follow from
/// its shape.
static llvm::Error checkElements(const Problem &problem) {
  int64_t keys = problem.vTransposed ? problem.getValuePitch() : problem.keys;
  int64_t pages = problem.pageSize ? problem.getPoolPages() : 0;
  const std::tuple<StringRef, int64_t, int64_t, int64_t> tensors[] = {
      {"q", problem.heads, problem.queries, problem.headDim},
      {"k", problem.kvHeads, problem.keys, problem.headDim},
      {"v", problem.kvHeads, keys, problem.valueDim},
      {"o", problem.heads, problem.queries, problem.valueDim}};
  for (auto [name, heads, rows, columns] : tensors) {
    bool isPool = pages && (name == "k" || name == "v");
    uint64_t elements = isPool ? pages : problem.batch;
    for (int64_t extent : {heads, isPool ? problem.pageSize : rows, columns})
      elements = llvm::SaturatingMultiply<uint64_t>(elements, extent);
    if (elements > kMostElements)
      return makeError("q", "expected at most 2^48 elements in " + name +
                                ", got " +
                                Twine(isPool ? pages : problem.batch) + " x " +
                                Twine(heads) + " x " +
                                Twine(isPool ? problem.pageSize : rows) +
                                " x " + Twine(columns));
    if (problem.kvSplits != 0 && name == "o" &&
        llvm::SaturatingMultiply<uint64_t>(elements, problem.kvSplits) >
            kMostElements)
      return makeError("kv-splits", "expected at most 2^48 elements in partial "
                                    "results, got " +
                                        Twine(problem.kvSplits) + " x " +
                                        Twine(elements));
  }
  return llvm::Error::success();
}

/// Scales of an output of 8 bits, whose groups of columns divide its rows.
static llvm::Error checkOutGroup(const Problem &problem) {
  int64_t group = problem.outGroup;
  if (group == 0) {
    if (!problem.outScaleType.empty() || problem.outScaleTiles)
      return makeError(problem.outScaleTiles ? "out-scale-tiles"
                                             : "out-scale-type",
                       "expected --out-group beside it");
    return llvm::Error::success();
  }
  if (!isFloat8Name(problem.outType) && !problem.hasFloat4Results())
    return makeError("out-group", "expected --out-type of 8 bits, got '" +
                                      problem.outType + "'");
  if (problem.hasFloat4Results() && group != 16)
    return makeError("out-group",
                     "expected 16 with --out-type=f4E2M1FN, got '" +
                         Twine(group) + "'");
  StringRef type = problem.getScaleType();
  if (problem.hasFloat4Results() ? type != "f8E4M3FN"
                                 : type != "f32" && type != "f8E8M0FNU")
    return makeError(
        "out-scale-type",
        Twine("expected ") +
            (problem.hasFloat4Results() ? "f8E4M3FN" : "f32 or f8E8M0FNU") +
            " with --out-type=" + problem.outType + ", got '" + type + "'");
  if (problem.outScaleTiles && type == "f32")
    return makeError(
        "out-scale-tiles",
        "expected --out-scale-type=f8E8M0FNU beside it, got 'f32'");
  if (problem.outScale && !problem.hasFloat4Results())
    return makeError("out-group", "contradicts --out-scale");
  if (problem.valueDim % group != 0)
    return makeError("out-group",
                     "expected a divisor of the " + Twine(problem.valueDim) +
                         " columns of the output, got '" + Twine(group) + "'");
  return llvm::Error::success();
}

/// Checks rows that are not divided, which are f32 and stand beside maxima and
/// sums.
static llvm::Error checkRowState(const Problem &problem) {
  if (!problem.rowState)
    return llvm::Error::success();
  if (problem.outType != "f32")
    return makeError("row-state", "expected --out-type=f32 beside it, got '" +
                                      problem.outType + "'");
  if (!problem.lse)
    return makeError("row-state", "expected --lse beside it, for the maxima "
                                  "and sums of rows");
  return llvm::Error::success();
}

llvm::Expected<Problem> attn::parseProblem(const ProblemFlags &flags) {
  Problem problem;
  if (!flags.q)
    return makeError(flags.getFirstGiven(), "expected --q beside it");
  if (llvm::Error error = parseQueries(*flags.q, problem))
    return error;
  problem.kvHeads = flags.kvHeads.value_or(problem.heads);
  problem.keys = flags.kvLen.value_or(problem.queries);
  problem.valueDim = flags.dv.value_or(problem.headDim);
  for (auto [flag, value] :
       {std::pair<StringRef, int64_t>{"kv-heads", problem.kvHeads},
        {"kv-len", problem.keys},
        {"dv", problem.valueDim}})
    if (value < 0 || value > kMaxSize)
      return makeError(flag, "expected a size below 2^31, got '" +
                                 Twine(value) + "'");
#define ATTN_SWITCH(ID, NAME, DEFAULT, GIVEN, RECORD, CONSTRAINTS, DOC)        \
  problem.ID = flags.ID.value_or(DEFAULT);
#include "attn/Problem/Options.def"
  // An 8-bit output needs a factor.
  bool isFloat8 = isFloat8Name(problem.type);
  problem.kvType = flags.kvType.value_or("");
  if (flags.kvType && problem.kvType != problem.type &&
      (isFloat8 || !isFloat8Name(problem.kvType)))
    return makeError("kv-type", "expected " + problem.type +
                                    (isFloat8 ? "" : ", f8E4M3FN or f8E5M2") +
                                    " beside queries of " + problem.type +
                                    ", got '" + problem.kvType + "'");
  problem.outScaleType = flags.outScaleType.value_or("");
  problem.outType = flags.outType.value_or(problem.rowState ? "f32"
                                           : isFloat8       ? "bf16"
                                                            : problem.type);
  if (!llvm::is_contained({"f16", "bf16", "f32"}, problem.outType) &&
      !isFloat8Name(problem.outType) && !problem.hasFloat4Results())
    return makeError(
        "out-type",
        "expected f16, bf16, f32, f8E4M3FN, f8E5M2 or f4E2M1FN, got '" +
            problem.outType + "'");
  StringRef layout = flags.layout ? StringRef(*flags.layout) : "bhnd";
  if (layout != "bhnd" && layout != "bnhd" && layout != "strided")
    return makeError("layout",
                     "expected bhnd, bnhd or strided, got '" + layout + "'");
  problem.sequenceMajor = layout == "bnhd";
  problem.openStrides = layout == "strided";
#define ATTN_FACTOR(ID, NAME, VALUE, SIGN, CONSTRAINTS, DOC)                   \
  if (llvm::Error error =                                                      \
          parseFactor(NAME, flags.ID, FactorSign::SIGN, problem.ID))           \
    return std::move(error);
#define ATTN_COUNT(ID, NAME, VALUE, CONSTRAINTS, DOC)                          \
  if (llvm::Error error = parseCount(NAME, flags.ID, problem.ID))              \
    return std::move(error);
#define ATTN_NATURAL(ID, NAME, VALUE, CONSTRAINTS, DOC)                        \
  if (llvm::Error error = parseNatural(NAME, flags.ID, problem.ID))            \
    return std::move(error);
#include "attn/Problem/Options.def"
  if (problem.isLatent()) {
    // The values are columns of the keys, which all heads share.
    if (!flags.kvHeads)
      problem.kvHeads = 1;
    if (!flags.dv)
      problem.valueDim =
          std::max<int64_t>(0, problem.headDim - problem.getRopeColumns());
    if (problem.vTransposed)
      return makeError("v-transposed", "contradicts --rope-dim");
  }
  if ((problem.blockRows == 0) != (problem.blockKeys == 0))
    return makeError(problem.blockKeys == 0 ? "block-rows" : "block-keys",
                     problem.blockKeys == 0
                         ? "expected --block-keys beside it"
                         : "expected --block-rows beside it");
  if (problem.ropeApart && problem.getRopeColumns() == 0)
    return makeError("rope-apart", "expected --rope-dim above 0 beside it");
  if (llvm::Error error = checkScaleGroup(problem))
    return error;
  if (llvm::Error error = parseMask(flags, problem))
    return error;
  if (flags.varlen)
    if (llvm::Error error = parseLengths(flags, problem))
      return error;
  if (llvm::Error error = parseKeys(flags, problem))
    return error;
  if (llvm::Error error = parseAddedKeys(flags, problem))
    return error;
  if (flags.expectedKeys)
    if (llvm::Error error = parseNumbers("expected-keys", *flags.expectedKeys,
                                         /*least=*/0, problem.expectedKeys))
      return error;
  if (llvm::Error error = parseRuns(flags, problem))
    return error;
  if (llvm::Error error = checkOutGroup(problem))
    return error;
  if (llvm::Error error = checkRowState(problem))
    return error;
  if (llvm::Error error = checkElements(problem))
    return error;
  return problem;
}
