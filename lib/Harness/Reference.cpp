//===- Reference.cpp - attention in float64 -------------------------------===//
//
// Straight from the formula, one (batch, head) pair at a time: the pair's
// operands become row-major float64, K transposed, so that both products run
// along contiguous rows. Two threads take pairs from a counter.
//
//===----------------------------------------------------------------------===//
#include "attn/Harness/Reference.h"
#include "BlockLists.h"
#include "RowMatrix.h"
#include "TensorShape.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <future>
#include <limits>

using namespace mlir::attn;
using namespace mlir::attn::sim;
using llvm::ArrayRef;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
using llvm::Twine;

static constexpr double infinity = std::numeric_limits<double>::infinity();

namespace {

/// The rows of one sequence inside the tensors.
struct Sequence {
  /// Index along the tensors' batch dimension.
  int64_t batch;
  int64_t firstQuery, queries, firstKey, keys;
  /// Where its part of a page table begins: index along the last dimension.
  int64_t firstPage = 0;
};

/// Computes the reference; one object for one call.
class Computation {
public:
  Computation(const AttentionProblem &problem, const AttentionInputs &inputs,
              ProgressMeter *progress)
      : problem(problem), inputs(inputs), progress(progress) {}

  Expected<AttentionResult> run() {
    if (Error error = check())
      return std::move(error);
    if (Error error = findSequences())
      return std::move(error);
    if (Error error = checkDescales())
      return std::move(error);
    result.shape = {inputs.q.shape[0], problem.heads, inputs.q.shape[2],
                    problem.dv};
    int64_t rows = result.shape[0] * result.shape[1] * result.shape[2];
    result.o.assign(rows * problem.dv, 0.0);
    result.lse.assign(rows, -infinity);
    if (problem.rowState)
      result.sums.assign(rows, 0);
    result.defined.assign(rows, 0);

    std::atomic<int64_t> next{0};
    int64_t pairs = int64_t(sequences.size()) * problem.heads;
    for (const Sequence &sequence : sequences)
      totalRows += sequence.queries * problem.heads;
    auto work = [&](bool isCaller) {
      for (int64_t pair = next++; pair < pairs && !isStopped(); pair = next++)
        if (isAsked(sequences[pair / problem.heads], pair % problem.heads))
          computeHead(pair / problem.heads, pair % problem.heads, isCaller);
    };
    std::future<void> helper =
        std::async(std::launch::async, [&] { work(/*isCaller=*/false); });
    work(/*isCaller=*/true);
    while (helper.wait_for(std::chrono::milliseconds(50)) !=
           std::future_status::ready)
      report();
    if (progress)
      if (Error error = progress->takeError())
        return std::move(error);
    return std::move(result);
  }

private:
  Error check();
  Error findSequences();
  Error findPackedSequences();
  /// Cuts the keys of each sequence to what lengths and pages say.
  Error limitKeys();
  /// Entries of the page table that belong to a sequence, and the first one.
  std::pair<int64_t, int64_t> getPages(int64_t sequence) const;
  Error checkDescales();
  Expected<std::vector<int64_t>>
  readLengths(StringRef name, const TensorView &view, int64_t limit);
  /// The first row of a sequence and head in the result.
  int64_t getRow(const Sequence &sequence, int64_t head) const {
    return (sequence.batch * problem.heads + head) * result.shape[2] +
           sequence.firstQuery;
  }
  bool isAsked(const Sequence &sequence, int64_t head) const {
    return inputs.rows.empty() ||
           llvm::is_contained(
               inputs.rows.slice(getRow(sequence, head), sequence.queries), 1);
  }
  void computeHead(int64_t sequence, int64_t head, bool isCaller);
  /// Caps a score, and changes it.
  double finishScore(double score, int64_t sequence, int64_t head,
                     int64_t query, int64_t key) const;
  /// Says whether a key of a block of some kind has no weight.
  bool isHidden(BlockKind kind, double score, int64_t sequence, int64_t head,
                int64_t query, int64_t key) const {
    if (kind == BlockKind::Partial && inputs.maskMod &&
        !inputs.maskMod(score, sequence, head, query, key))
      return true;
    return kind == BlockKind::Hidden ||
           (problem.selected && isAbsent(sequence, key));
  }
  /// Returns what list `list` of a head says of each block of keys.
  std::vector<BlockKind> readBlocks(int64_t sequence, int64_t head,
                                    int64_t list) const;
  /// Does with a row of results what stands between attention and rounding.
  void finishRow(int64_t sequence, int64_t head, int64_t query,
                 double *o) const;
  /// Stores what a row has beside o.
  void setLogs(int64_t row, double max, double sum) {
    result.lse[row] = problem.rowState ? max : max + std::log(sum);
    if (problem.rowState)
      result.sums[row] = sum;
  }
  bool isStopped() const { return progress && progress->isStopped(); }
  void report() {
    if (progress)
      progress->update(totalRows ? double(doneRows) / double(totalRows) : 1);
  }
  std::vector<double> load(const TensorView &view, int64_t batch, int64_t head,
                           int64_t first, int64_t rows, bool transpose);
  /// The queries of a head of a sequence, whose rotated columns may be apart.
  std::vector<double> loadQueries(const Sequence &sequence, int64_t head);
  /// The same of the keys of a sequence: those in pages that are not in the
  /// pool are zeros.
  std::vector<double> loadKeys(const TensorView &view, int64_t sequence,
                               int64_t head, bool transpose);
  /// The page of a key of a sequence, which need not be in the pool.
  int64_t getPage(int64_t sequence, int64_t key) const;
  /// Whether a selection has no key in the place of one.
  bool isAbsent(int64_t sequence, int64_t key) const {
    int64_t page = getPage(sequence, key);
    return page < 0 || page >= inputs.k.shape[0];
  }
  /// The visible keys [begin, end) of a query by mask kind.
  std::pair<int64_t, int64_t> getKeyRange(const Sequence &sequence,
                                          int64_t query);

  const AttentionProblem &problem;
  const AttentionInputs &inputs;
  ProgressMeter *progress;
  int64_t totalRows = 0;
  std::atomic<int64_t> doneRows{0};
  std::vector<Sequence> sequences;
  AttentionResult result;
};

} // namespace

Error Computation::check() {
  const TensorView &q = inputs.q, &k = inputs.k, &v = inputs.v;
  for (const TensorView *view : {&q, &k, &v})
    if (view->shape.size() != 4)
      return createStringError("reference: expected operands of rank 4, got " +
                               printShape(view->shape));
  // Pools have pages in the place of the batch.
  int64_t batch = q.shape[0], keys = k.shape[2];
  int64_t keyBatch = inputs.pageTable ? k.shape[0] : batch;
  if (Error error = checkShape("q", q.shape,
                               {batch, problem.heads, q.shape[2],
                                inputs.qRope ? problem.dv : problem.d}))
    return error;
  if (inputs.qRope)
    if (Error error = checkShape(
            "q_rope", inputs.qRope->shape,
            {batch, problem.heads, q.shape[2], problem.d - problem.dv}))
      return error;
  int64_t ropeDim = inputs.kRope ? problem.d - problem.dv : 0;
  if (Error error = checkShape(
          "k", k.shape, {keyBatch, problem.kvHeads, keys, problem.d - ropeDim}))
    return error;
  if (inputs.kRope)
    if (Error error = checkShape("k_rope", inputs.kRope->shape,
                                 {keyBatch, problem.kvHeads, keys, ropeDim}))
      return error;
  if (Error error = checkShape("v", v.shape,
                               {keyBatch, problem.kvHeads, keys, problem.dv}))
    return error;
  auto missing = [](StringRef what) {
    return createStringError("reference: the problem has " + what +
                             ", which was not given");
  };
  if (problem.sinks && !inputs.sinks)
    return missing("sinks");
  if (problem.sinks)
    if (Error error = checkShape("sinks", inputs.sinks->shape, {problem.heads}))
      return error;
  if (problem.initState && (!inputs.initO || !inputs.initLse))
    return missing("a state to go on from");
  if (problem.initState) {
    if (Error error =
            checkShape("init_o", inputs.initO->shape,
                       {batch, problem.heads, q.shape[2], problem.dv}))
      return error;
    if (Error error = checkShape("init_lse", inputs.initLse->shape,
                                 {batch, problem.heads, q.shape[2]}))
      return error;
  }
  if (!inputs.kScales != !inputs.vScales)
    return createStringError("reference: expected scales of k and v, or none");
  for (auto [name, scales, rows] :
       {std::tuple("k_scales", &inputs.kScales, &k),
        std::tuple("v_scales", &inputs.vScales, &v)})
    if (*scales) {
      // As many columns as the rows have groups.
      int64_t columns = rows->shape[3];
      int64_t groups = (*scales)->shape.empty() ? 0 : (*scales)->shape.back();
      if (groups == 0 || columns % groups != 0)
        groups = columns;
      if (Error error = checkShape(name, (*scales)->shape,
                                   {keyBatch, problem.kvHeads, keys, groups}))
        return error;
    }
  bool hasOwnKeys = inputs.pageTable && inputs.kvLengths;
  if (problem.varlen &&
      (!inputs.cuSeqlensQ || (!inputs.cuSeqlensK && !hasOwnKeys)))
    return missing("cumulative lengths");
  if (problem.scoreMod && !inputs.scoreMod)
    return missing("a score_mod");
  if (problem.selected && !inputs.pageTable)
    return missing("a selection of keys");
  auto getShape = [](const std::optional<TensorView> &view) {
    return view ? ArrayRef<int64_t>(view->shape) : ArrayRef<int64_t>();
  };
  if (Error error = checkBlockLists(problem, {q.shape, k.shape,
                                              getShape(inputs.blockCounts),
                                              getShape(inputs.blockIndices)}))
    return error;
  if (problem.maskMod && !inputs.maskMod)
    return missing("a mask_mod");
  if (problem.outMod && !inputs.outMod)
    return missing("an out_mod");
  return Error::success();
}

Expected<std::vector<int64_t>> Computation::readLengths(StringRef name,
                                                        const TensorView &view,
                                                        int64_t limit) {
  auto fail = [&](const Twine &problem) {
    return createStringError("reference: \"" + name + "\": " + problem);
  };
  if (view.shape.size() != 1 || view.shape[0] < 1)
    return fail("expected shape [sequences + 1], got " +
                printShape(view.shape));
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < view.shape[0]; ++i) {
    int64_t value = int64_t(view.get({i}));
    int64_t low = lengths.empty() ? 0 : lengths.back();
    int64_t high = lengths.empty() ? 0 : limit;
    if (value < low || value > high)
      return fail("expected a value from " + Twine(low) + " to " + Twine(high) +
                  " at index " + Twine(i) + ", got " + Twine(value));
    lengths.push_back(value);
  }
  return lengths;
}

Error Computation::findSequences() {
  int64_t queries = inputs.q.shape[2], keys = inputs.k.shape[2];
  if (inputs.pageTable)
    keys = std::numeric_limits<int32_t>::max();
  if (problem.varlen) {
    if (Error error = findPackedSequences())
      return error;
  } else {
    for (int64_t batch = 0; batch < inputs.q.shape[0]; ++batch)
      sequences.push_back({batch, 0, queries, 0, keys});
  }
  return limitKeys();
}

std::pair<int64_t, int64_t> Computation::getPages(int64_t sequence) const {
  const TensorView &table = *inputs.pageTable;
  if (!inputs.pageIndptr)
    return {0, table.shape[1]};
  int64_t all = table.shape[0];
  int64_t first =
      std::clamp<int64_t>(inputs.pageIndptr->get({sequence}), 0, all);
  int64_t last =
      std::clamp<int64_t>(inputs.pageIndptr->get({sequence + 1}), first, all);
  return {first, last - first};
}

Error Computation::limitKeys() {
  int64_t count = sequences.size();
  if (inputs.kvLengths)
    if (Error error =
            checkShape("kv_lengths", inputs.kvLengths->shape, {count}))
      return error;
  if (inputs.pageIndptr)
    if (Error error =
            checkShape("page_indptr", inputs.pageIndptr->shape, {count + 1}))
      return error;
  if (inputs.pageTable) {
    ArrayRef<int64_t> shape = inputs.pageTable->shape;
    if (shape.size() != (inputs.pageIndptr ? 1 : 2) ||
        (!inputs.pageIndptr && shape[0] != count))
      return createStringError("reference: \"page_table\": expected a row for "
                               "each of " +
                               Twine(count) + " sequences, got " +
                               printShape(shape));
  }
  for (auto [index, sequence] : llvm::enumerate(sequences)) {
    if (inputs.pageTable) {
      auto [first, pages] = getPages(index);
      sequence.firstPage = first;
      sequence.keys = std::min(sequence.keys, pages * inputs.k.shape[2]);
    }
    if (inputs.kvLengths)
      sequence.keys = std::clamp<int64_t>(
          inputs.kvLengths->get({int64_t(index)}), 0, sequence.keys);
  }
  return Error::success();
}

Error Computation::findPackedSequences() {
  int64_t queries = inputs.q.shape[2], keys = inputs.k.shape[2];
  if (inputs.pageTable)
    keys = std::numeric_limits<int32_t>::max();
  if (inputs.q.shape[0] != 1)
    return createStringError("reference: expected batch size 1 with variable "
                             "lengths, got " +
                             Twine(inputs.q.shape[0]));
  Expected<std::vector<int64_t>> q =
      readLengths("cu_seqlens_q", *inputs.cuSeqlensQ, queries);
  if (!q)
    return q.takeError();
  // Without lengths of its own each sequence has all that its pages hold.
  Expected<std::vector<int64_t>> k = std::vector<int64_t>(q->size(), 0);
  if (inputs.cuSeqlensK)
    k = readLengths("cu_seqlens_k", *inputs.cuSeqlensK, keys);
  if (!k)
    return k.takeError();
  if (q->size() != k->size())
    return createStringError("reference: expected cumulative lengths of as "
                             "many sequences, got " +
                             Twine(q->size() - 1) + " and " +
                             Twine(k->size() - 1));
  for (size_t i = 0; i + 1 < q->size(); ++i) {
    int64_t length = (*q)[i + 1] - (*q)[i];
    if (problem.maxSeqlenQ && length > problem.maxSeqlenQ)
      return createStringError(
          "reference: \"cu_seqlens_q\": expected at most " +
          Twine(problem.maxSeqlenQ) + " queries in sequence " + Twine(i) +
          ", got " + Twine(length));
    sequences.push_back({0, (*q)[i], length, (*k)[i],
                         inputs.cuSeqlensK ? (*k)[i + 1] - (*k)[i] : keys});
  }
  return Error::success();
}

Error Computation::checkDescales() {
  int64_t count = sequences.size();
  for (const auto &[name, view, heads] :
       {std::tuple("q_descale", &inputs.qDescale, problem.heads),
        std::tuple("k_descale", &inputs.kDescale, problem.kvHeads),
        std::tuple("v_descale", &inputs.vDescale, problem.kvHeads)}) {
    bool isOptional = view == &inputs.qDescale;
    if (isOptional ? *view && !inputs.kDescale
                   : view->has_value() != inputs.kDescale.has_value())
      return createStringError(
          "reference: expected descales of k and v, or none");
    if (*view)
      if (Error error = checkShape(name, (*view)->shape, {count, heads}))
        return error;
  }
  return Error::success();
}

std::vector<double> Computation::load(const TensorView &view, int64_t batch,
                                      int64_t head, int64_t first, int64_t rows,
                                      bool transpose) {
  int64_t columns = view.shape[3];
  std::vector<double> matrix(rows * columns);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      matrix[transpose ? column * rows + row : row * columns + column] =
          view.get({batch, head, first + row, column});
  return matrix;
}

int64_t Computation::getPage(int64_t sequence, int64_t key) const {
  int64_t entry = sequences[sequence].firstPage + key / inputs.k.shape[2];
  return int64_t(inputs.pageIndptr ? inputs.pageTable->get({entry})
                                   : inputs.pageTable->get({sequence, entry}));
}

std::vector<double> Computation::loadKeys(const TensorView &view,
                                          int64_t sequenceIndex, int64_t head,
                                          bool transpose) {
  const Sequence &sequence = sequences[sequenceIndex];
  int64_t rows = sequence.keys, columns = view.shape[3];
  if (!inputs.pageTable)
    return load(view, sequence.batch, head, sequence.firstKey, rows, transpose);
  int64_t pageSize = view.shape[2];
  std::vector<double> matrix(rows * columns, 0.0);
  for (int64_t row = 0; row < rows; ++row) {
    int64_t page = getPage(sequenceIndex, row);
    if (page < 0 || page >= view.shape[0])
      continue;
    for (int64_t column = 0; column < columns; ++column)
      matrix[transpose ? column * rows + row : row * columns + column] =
          view.get({page, head, row % pageSize, column});
  }
  return matrix;
}

std::pair<int64_t, int64_t> Computation::getKeyRange(const Sequence &sequence,
                                                     int64_t query) {
  if (problem.mask == MaskKind::None)
    return {0, sequence.keys};
  int64_t diagonal = query;
  if (problem.align == MaskAlign::BottomRight)
    diagonal += sequence.keys - sequence.queries;
  bool causal = problem.mask == MaskKind::Causal;
  int64_t left = causal ? -1 : problem.left;
  int64_t right = causal ? 0 : problem.right;
  // Bounds beyond every length change nothing; clamped, they cannot overflow.
  constexpr int64_t far = int64_t(1) << 48;
  int64_t begin = left < 0 ? 0 : diagonal - std::min(left, far);
  int64_t end = right < 0 ? sequence.keys : diagonal + std::min(right, far) + 1;
  begin = std::clamp<int64_t>(begin, 0, sequence.keys);
  return {begin, std::clamp<int64_t>(end, begin, sequence.keys)};
}

std::vector<double> Computation::loadQueries(const Sequence &sequence,
                                             int64_t head) {
  auto loadRows = [&](const TensorView &view) {
    return load(view, sequence.batch, head, sequence.firstQuery,
                sequence.queries, /*transpose=*/false);
  };
  std::vector<double> q = loadRows(inputs.q);
  if (!inputs.qRope || sequence.queries == 0)
    return q;
  return joinColumns(q, loadRows(*inputs.qRope), sequence.queries);
}

/// The weight of a sink or a state: one of +inf takes all, which keys with such
/// scores do not.
static double weigh(double logit, double max) {
  return logit == infinity ? 1 : std::exp(logit - max);
}

void Computation::finishRow(int64_t sequence, int64_t head, int64_t query,
                            double *o) const {
  double factor = problem.outScale > 0 ? problem.outScale : 1;
  for (int64_t column = 0; column < problem.dv; ++column) {
    if (inputs.outMod)
      o[column] = inputs.outMod(o[column], sequence, head, query, column);
    o[column] *= factor;
  }
}

double Computation::finishScore(double score, int64_t sequence, int64_t head,
                                int64_t query, int64_t key) const {
  if (problem.softcap > 0)
    score = problem.softcap * std::tanh(score / problem.softcap);
  if (inputs.scoreMod)
    score = inputs.scoreMod(score, sequence, head, query, key);
  return score;
}

std::vector<BlockKind> Computation::readBlocks(int64_t sequence, int64_t head,
                                               int64_t list) const {
  auto read = [&](const TensorView &view) {
    std::vector<int64_t> numbers;
    for (int64_t place = 0; place < view.shape[3]; ++place)
      numbers.push_back(int64_t(view.get({sequence, head, list, place})));
    return numbers;
  };
  return readBlockList(inputs.k.shape[2] / problem.blockKeys,
                       read(*inputs.blockCounts), read(*inputs.blockIndices));
}

void Computation::computeHead(int64_t sequenceIndex, int64_t head,
                              bool isCaller) {
  const Sequence &sequence = sequences[sequenceIndex];
  int64_t kvHead = head / (problem.heads / problem.kvHeads);
  int64_t queries = sequence.queries, keys = sequence.keys;
  int64_t d = problem.d, dv = problem.dv;
  std::vector<double> q = loadQueries(sequence, head);
  std::vector<double> kt = loadKeys(inputs.k, sequenceIndex, kvHead, true);
  std::vector<double> v = loadKeys(inputs.v, sequenceIndex, kvHead, false);
  if (inputs.kScales) {
    scaleRows(kt, loadKeys(*inputs.kScales, sequenceIndex, kvHead, true),
              inputs.k.shape[3], keys, /*isTransposed=*/true);
    scaleRows(v, loadKeys(*inputs.vScales, sequenceIndex, kvHead, false), dv,
              keys, /*isTransposed=*/false);
  }
  if (inputs.kRope)
    llvm::append_range(kt,
                       loadKeys(*inputs.kRope, sequenceIndex, kvHead, true));
  double scale = problem.scale;
  if (inputs.qDescale)
    scale *= inputs.qDescale->get({sequenceIndex, head});
  if (inputs.kDescale) {
    scale *= inputs.kDescale->get({sequenceIndex, kvHead});
    double factor = inputs.vDescale->get({sequenceIndex, kvHead});
    for (double &value : v)
      value *= factor;
  }
  double sink = problem.sinks ? inputs.sinks->get({head}) : -infinity;
  std::vector<double> scores(keys);
  std::vector<BlockKind> kinds;
  for (int64_t i = 0; i < queries && !isStopped(); ++i, ++doneRows) {
    if (isCaller)
      report();
    int64_t row = getRow(sequence, head) + i;
    if (!inputs.rows.empty() && !inputs.rows[row])
      continue;
    double *o = result.o.data() + row * dv;
    result.defined[row] = 1;
    llvm::scope_exit finish([&] { finishRow(sequenceIndex, head, i, o); });
    auto [begin, end] = getKeyRange(sequence, i);
    if (inputs.blockIndices && i % problem.blockRows == 0)
      kinds = readBlocks(sequenceIndex, head, i / problem.blockRows);
    std::fill(scores.begin(), scores.end(), 0.0);
    for (int64_t column = 0; column < d; ++column) {
      double factor = q[i * d + column];
      const double *keyRow = kt.data() + column * keys;
      for (int64_t j = begin; j < end; ++j)
        scores[j] += factor * keyRow[j];
    }
    double init = inputs.initLse
                      ? inputs.initLse->get(
                            {sequence.batch, head, sequence.firstQuery + i})
                      : -infinity;
    double max = std::max(sink, init);
    // Of two that take all nobody knows which takes more.
    bool isNaN = std::isnan(sink) || std::isnan(init) ||
                 (sink == infinity && init == infinity);
    for (int64_t j = begin; j < end; ++j) {
      double score = finishScore(scale * scores[j], sequenceIndex, head, i, j);
      BlockKind kind =
          kinds.empty() ? BlockKind::Partial : kinds[j / problem.blockKeys];
      if (isHidden(kind, score, sequenceIndex, head, i, j))
        score = -infinity;
      scores[j] = score;
      isNaN |= std::isnan(score);
      max = std::max(max, score);
    }
    if (isNaN) {
      std::fill_n(o, dv, std::nan(""));
      setLogs(row, std::nan(""), std::nan(""));
      continue;
    }
    // No key and no sink: O = 0 and LSE = -inf, as initialised.
    if (max == -infinity)
      continue;
    double sum = problem.sinks ? weigh(sink, max) : 0.0;
    // The state counts as a key.
    if (init != -infinity) {
      double p = weigh(init, max);
      sum += p;
      for (int64_t column = 0; column < dv; ++column)
        o[column] = p * inputs.initO->get({sequence.batch, head,
                                           sequence.firstQuery + i, column});
    }
    for (int64_t j = begin; j < end; ++j) {
      double p = std::exp(scores[j] - max);
      // A hidden key has no share, whatever its value is. Kernels multiply it
      // by 0 where it shares a block with visible ones, so that it has to be
      // finite (docs/Reference.md).
      if (p == 0)
        continue;
      sum += p;
      const double *valueRow = v.data() + j * dv;
      for (int64_t column = 0; column < dv; ++column)
        o[column] += p * valueRow[column];
    }
    for (int64_t column = 0; column < dv && !problem.rowState; ++column)
      o[column] /= sum;
    setLogs(row, max, sum);
  }
}

Expected<AttentionResult> sim::computeReference(const AttentionProblem &problem,
                                                const AttentionInputs &inputs,
                                                ProgressMeter *progress) {
  return Computation(problem, inputs, progress).run();
}
